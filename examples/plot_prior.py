"""
======================================
I never chose a prior: does it matter?
======================================

A Bayesian fit combines the data with a *prior*, which says what to expect before
seeing them. Whoever sets no argument gets one that is learned: how wide clusters
typically are, and how far they are apart, is found with all else. Some numbers remain
that nobody chose, such as how alike clusters are. Mostly that is little beside the
data. When is it not, and how would one notice? And what would a prior do that is not
learned, such as scikit-learn's?

First 150 irises with four measurements, then a table with 40 rows of 1,000 features.
"""

# %%
# Ask the fit
# -----------
# ``prior_sensitivity`` says how far each estimate would move if a hyperparameter
# changed, without fitting again; in error bars with ``per_std=True``. The summary of
# the posterior puts the largest such move into words.
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_iris

from sklearn_lrvb import LRVBGaussianMixture

X = load_iris(as_frame=True).data.rename(
    columns=lambda name: name.removesuffix(" (cm)")
)
irises = {
    prior: LRVBGaussianMixture(n_components=2, prior=prior, random_state=0).fit(X)
    for prior in ("learned", "fixed")
}
for prior, fit in irises.items():
    for target in ("means", "covariances"):
        table = fit.posterior(method="lrvb").summary(target)
        print(fill(f"{prior}, {target}: {table.attrs['prior']}", 72) + "\n")

# %%
# With the learned prior the means do not depend on the rest, and the covariances by less
# than an error bar. Under scikit-learn's it is half an error bar and two. Are the
# sentences right? Here are the variances of the smaller cluster when the learned prior's
# degrees of freedom, which say how alike clusters are, are halved and doubled: predicted
# from the one fit, and fitted again.
learned = irises["learned"]
small = learned.weights_.argmin()
variance = np.diagonal(learned.covariances_[small])
sd = np.diagonal(learned.covariances_std_[small])
freedom = learned.degrees_of_freedom_prior_
derivative = learned.prior_sensitivity("covariances")["degrees_of_freedom_prior"]
slope = freedom * np.diagonal(derivative[small])  # by the logarithm of the degrees
start = learned.predict_proba(X)
shifts = {}
for factor in (0.5, 2.0):
    refit = LRVBGaussianMixture(
        n_components=2,
        degrees_of_freedom_prior=factor * freedom,
        init_params=start,
        random_state=0,
    ).fit(X)
    shifts[factor] = (
        slope * np.log(factor) / sd,
        (np.diagonal(refit.covariances_[small]) - variance) / sd,
    )

print(f"{'variance of the smaller cluster':<36}{'halved':>16}{'doubled':>16}")
for p, name in enumerate(learned.feature_names_in_):
    own = f"{name} {variance[p]:.3f} +- {sd[p]:.3f}"
    cells = (
        f"{predicted[p]:+.2f} ({refitted[p]:+.2f})"
        for predicted, refitted in shifts.values()
    )
    print(f"{own:<36}" + "".join(f"{cell:>16}" for cell in cells))
print("moves in error bars, predicted and in parentheses refitted")

# %%
# The setosas are a small and tight group, and the prior expects clusters to be somewhat
# alike: the more so, the wider the setosas. The prediction tells which way and about how
# far that leads, though twice is no small step.
#
# Few rows of many features
# -------------------------
# With 1,000 features and 40 rows a prior can outweigh the data. scikit-learn's counts
# like one row for each feature, and with ``covariance_type="diag"`` it expects variances
# of 1/1,000 of those of X. Here the data are simulated: two groups of 20 rows that differ
# in the first 300 features, and every variance within a group is 1.
rng = np.random.default_rng(0)
group = np.repeat([0, 1], 20)
truth = np.zeros((2, 1000))
truth[:, :300] = [[-1.0], [1.0]]
X = truth[group] + rng.normal(size=(40, 1000))

settings = {"n_components": 2, "covariance_type": "diag", "random_state": 0}
fits = {
    prior: LRVBGaussianMixture(**settings, prior=prior).fit(X)
    for prior in ("fixed", "learned")
}
errors = {}
print(f"{'prior':<22}{'variance':>10}{'first mean':>16}{'intervals with truth':>22}")
for name, fit in fits.items():
    clusters = fit.predict(X)[[0, -1]]  # the clusters of the two groups
    means, sd = fit.means_[clusters], fit.means_std_[clusters]
    errors[name] = ((means - truth) / sd).ravel()
    first = f"{means[0, 0]:.2f} +- {sd[0, 0]:.2f}"
    covered = f"{100 * np.mean(np.abs(errors[name]) < 1.96):.0f} %"
    print(f"{name:<22}{np.median(fit.covariances_):>10.3f}{first:>16}{covered:>22}")

# %%
# Errors of means in units of their error bars should be spread like the black curve.
# Under the fixed prior they are seven times as large, because the error bars are seven
# times too small.
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
bins = np.linspace(-20, 20, 81)
for (name, error), style in zip(
    errors.items(), ({"alpha": 0.6}, {"histtype": "step", "lw": 2}), strict=True
):
    ax.hist(error, bins, density=True, label=name, **style)
ax.plot(bins, norm.pdf(bins), color="black", lw=1, label="as they should be")
ax.set(
    xlabel="error of a mean, in its error bars",
    ylabel="density",
    title="2,000 means from 40 rows",
)
ax.legend(title="prior")
plt.show()

# %%
for name, fit in fits.items():
    table = fit.posterior(method="lrvb").summary("means")
    print(fill(f"{name}: {table.attrs['prior']}", 72) + "\n")

# %%
# **Answer.** Little, as most of it is learned: doubling what remains moves the means of
# the irises by less than a tenth of an error bar, and the shape of their small cluster
# by one or two. Where rows are few and features many a fixed prior decides: of 40 rows of
# 1,000 features, 22 % of the 95 % intervals hold the truth under scikit-learn's, and
# 94 % under the learned one. The summary's sentence on the prior gives warning.
#
# Read on: :ref:`sphx_glr_gallery_plot_weighted_rows.py`.
