"""Linear response (Sections 3 to 5 of the paper): arrays in, arrays out, for any model.

The paper is R. Giordano and T. Broderick, "Covariance Matrices and Influence Scores for Mean Field
Variational Bayes", arXiv:1502.07685; its equations are counted through, supplement included.
`linear_response_covariance` takes the covariance V of the sufficient statistics under q and the Hessian H of
the expected log joint, dense or sparse; `linear_response_influence` goes on to the influence of single
observations. Both, and the models of `mean_field`, solve by `definite_system`.

Errata of the paper
-------------------
Each was found by refitting perturbed data or by the algebra itself. This package uses the corrected forms.

* Equation 14, and the end of the appendix "Influence score derivations", print
  Sigma_alpha^-1 (V_alpha H_alpha,x + V_alpha H_alpha,z (I - V_z H_z)^-1 V_z H_z,x) S_x. It should read
  Sigma_alpha (H_alpha,x + H_alpha,z (I - V_z H_z)^-1 V_z H_z,x) S_x: Sigma_alpha is itself the inverse of the
  system, and contains V_alpha. The printed form is wrong by large factors.
* The appendix "Influence score derivations" defines Q_x* with the last factor H_z,alpha; it is H_z,x.
* The appendix on the normal mixture, second derivative in Lambda and z: mu_a mu_b stands for the expectation
  E_q[mu_a mu_b] = m_a m_b + S_ab, not for the product of the means.
* Section "Scaling experiments" gives O(K^2) as the cost in the number of components K. The inverse of a
  matrix of size O(K P^2) costs O(K^3 P^6), that is O(K^3) in K.
* Section "MNIST data set": the test error of 0.08 belongs to the authors' features. Their program read the
  pixels as signed bytes, so that 255 became -1, and took the principal components of all 60,000 training
  digits. With those features the same model errs in 0.0799 of the test digits; with the grey levels read
  correctly and the principal components of the 12,665 training zeros and ones it errs in 0.019.
"""

from sklearn_lrvb.mean_field.linear_response.covariance import (
    linear_response_covariance,
    linear_response_influence,
)

__all__ = ["linear_response_covariance", "linear_response_influence"]
