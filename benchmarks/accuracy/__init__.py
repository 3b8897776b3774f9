"""How good the error bars and leave-one-out scores are, where fits end, and what else one could use.

The comparison of posterior standard deviations with Gibbs sampling is on [the page of the paper](paper.md).
That the formulas are evaluated correctly is not measured here but tested: in the test suite the covariance
equals the paper's full formula, with every statistic and every assignment in one dense matrix, to 1e-8 for
every covariance type; influence equals refits under a fixed prior to 1e-5 sds; and the lower bound lies 0.7
to 1.6 nats below the exact log evidence of two components on nine rows, of which 0.7 are the two labellings.

N is the number of rows, P of features and K of components. *sd* is short for standard deviation, and *sds*
for several. LRVB stands for the linear response covariance of this library. Fits are under scikit-learn's
prior (`prior="fixed"`), a flat one, or one that is named, except under
[the learned prior](#the-learned-prior) and [embeddings](#embeddings).
"""
