"""
============================================
How many clusters are there, and what shape?
============================================

A mixture can have few clusters or many, and their covariances may be free ("full"),
shared by all ("tied"), without correlations ("diag") or round ("spherical"). Which
model do the data support? Bayesian statistics compares models by their *evidence*,
the probability of the data under each, and ``lower_bound_`` is a bound on its
logarithm that includes every constant. It may therefore be compared between numbers
of components and between covariance types, from one fit of each, though it is some nats
below the evidence: gaps of a nat or two decide little. Where they matter,
``posterior_check`` estimates the evidence itself.
Cross-validation asks which model predicts best, by five more fits of every candidate.

The data are 178 wines from three cultivars, in three principal components and without
their labels.
"""

# %%
# The candidates
# --------------
# The weights have a Dirichlet prior here, which treats all components alike. The fit
# then describes one of the K! ways of numbering its K components, so that log K! is
# added to its bound.
from math import lgamma

import matplotlib.pyplot as plt
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.displays import ComponentDisplay, ModelChoiceDisplay

wine = load_wine()
X = make_pipeline(StandardScaler(), PCA(3, random_state=0)).fit_transform(wine.data)
types, numbers = ("full", "tied", "diag", "spherical"), (1, 2, 3, 4, 5)
mixture = LRVBGaussianMixture(
    weight_concentration_prior_type="dirichlet_distribution",
    weight_concentration_prior=1.0,
    max_iter=500,
    moves=None,  # No component is merged with another: K is to stay K.
    random_state=0,
)

# %%
# How many?
# ---------
# The display fits a mixture for each number of components. Above is the bound and, with
# the logarithm of K! added, an estimate of the evidence (printed and drawn as
# that of all labellings). Below is the leave-one-out score, which says how well each mixture predicts
# a wine that it has not seen; it comes from the same fits, and its bars are one
# standard error of the difference from the best.
choice = ModelChoiceDisplay.from_estimator(mixture, X, n_components=numbers)
plt.show()

# %%
# Which shape?
# ------------
# The same bound, of all labellings, of every covariance type.
fits = {
    (kind, k): clone(mixture).set_params(covariance_type=kind, n_components=k).fit(X)
    for kind in types
    for k in numbers
}
print(f"{'bound + log K!':<14}" + "".join(f"{f'K = {k}':>10}" for k in numbers))
for kind in types:
    bounds = (fits[kind, k].lower_bound_ + lgamma(k + 1) for k in numbers)
    print(f"{kind:<14}" + "".join(f"{value:>10.1f}" for value in bounds))

# %%
# By cross-validation: five fits of each
# --------------------------------------
# Every wine is scored by a mixture that was fitted without it; the score is its log
# probability.
folds = KFold(5, shuffle=True, random_state=0)
grid = {"covariance_type": types, "n_components": numbers}
search = GridSearchCV(mixture, grid, cv=folds, refit=False).fit(X)
scores = search.cv_results_["mean_test_score"].reshape(len(types), len(numbers))
print(f"{'score a wine':<14}" + "".join(f"{f'K = {k}':>10}" for k in numbers))
for kind, row in zip(types, scores, strict=True):
    print(f"{kind:<14}" + "".join(f"{value:>10.2f}" for value in row))

# %%
# The evidence itself
# -------------------
# The bound lies below the evidence, and further below it the more components overlap:
# that is what biases a choice by bounds. Importance sampling by draws from the fit
# estimates the evidence, and its standard error, of the candidates that matter. (Where
# ``reliable`` is False it is too low as a rule, and its error means little.)
print(f"{'':>14}{'bound + log K!':>16}{'log evidence':>14}{'error':>7}  reliable")
for kind, k in (("full", 2), ("full", 3), ("full", 4), ("spherical", 4)):
    fit = fits[kind, k]
    check = fit.posterior_check(X, n_draws=4000, random_state=0)
    bound = fit.lower_bound_ + lgamma(k + 1)
    print(
        f"{kind + f', K = {k}':>14}{bound:>16.1f}{check.log_evidence:>14.1f}"
        f"{check.log_evidence_error:>7.2f}  {check.reliable}"
    )

# %%
# The mixture that both choose
# ----------------------------
# The labels of the wines serve to look at the outcome: rows are cultivars, columns
# clusters.
best = fits["full", 3]
print(confusion_matrix(wine.target, best.predict(X)))
for k in range(3):
    print(
        f"cluster {k}: {best.weights_[k]:.3f} +- {best.weights_std_[k]:.3f} of the wines"
    )
display = ComponentDisplay.from_estimator(best, X)
display.ax_.set(
    title="Three clusters of wines", xlabel="first component", ylabel="second component"
)
plt.show()

# %%
# **Answer.** Bounds and cross-validation choose three components with full covariances,
# and the leave-one-out score agrees on their number. These are the cultivars: all but
# nine wines are in the cluster of their cultivar, and the shares are known to 0.04. The
# bounds take a fifth of the fits. Fewer than three clusters are ruled out, by 17 nats.
# As to the shape they would be weak: four round clusters have a bound that is 0.6 nats
# lower, a factor of two in probability. The evidence is 2 to 5 nats above its bound,
# and by it the two are level: 178 wines do not decide between three free clusters and
# four round ones.
#
# Read on: :ref:`sphx_glr_gallery_plot_leave_one_out.py` asks how good those scores from
# one fit are.
