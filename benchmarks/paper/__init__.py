"""The experiments of Giordano and Broderick, *Covariance Matrices and Influence Scores for Mean Field
Variational Bayes*.

All of Section 6 of [arXiv:1502.07685](https://arxiv.org/abs/1502.07685) is made again: digits, covariances,
scaling and influence.

N is the number of rows, P of features and K of components. *sd* is short for standard deviation, and *sds*
for several. LRVB stands for linear response variational Bayes, the method of the paper and of this library.

Where the paper is mistaken (each was checked by refitting):

* Equation influence_score is printed as Sigma_alpha^-1 (V_alpha H_alpha,x + V_alpha H_alpha,z Q V_z H_zx)
  S_x. It should read Sigma_alpha (H_alpha,x + H_alpha,z (I - V_z H_z)^-1 V_z H_zx) S_x. The printed form is
  wrong by large factors.
* Appendix, second derivative in Lambda and z: mu_a mu_b stands for E[mu_a mu_b] = m_a m_b + S_ab.
* Appendix, definition of Q_x*: the last factor is H_zx, not H_z,alpha.
* The cost is not quadratic in K: the inverse of a matrix of size O(K P^2) costs O(K^3).
* The test error of 0.08 on MNIST belongs to the authors' features, whose program read the pixels as signed
  bytes (255 became -1). From grey levels read rightly, mixtures of 25 principal components err in 0.018 to
  0.019.
"""

# Seconds that the paper reports on the zeros and ones of MNIST: influence, and perturbing five points and
# fitting again.
PAPER_INFLUENCE_SECONDS = 37.0
PAPER_REFIT_SECONDS = 60 * 20.7
