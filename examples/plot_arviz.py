"""
========================================================
ArviZ: what else can be asked of the posterior of a fit?
========================================================

`ArviZ <https://www.arviz.org>`_ draws, summarizes and compares the posteriors of Bayesian
models, whichever program made them. Most of these programs sample, and take minutes or
hours. A fit with error bars has a posterior too, and ``to_arviz`` hands it over: random
draws of all parameters, and the log likelihood of every row under every draw.

What to see: 178 wines from three cultivars, in their three principal components and
without their labels. ArviZ plots the posterior in one line, xarray computes any function
of the parameters, and ArviZ's leave-one-out cross-validation agrees with that of the
estimator, for a reason that explains the small difference.
"""

# %%
# Fit, and hand over
# ------------------
# The draws are independent of each other, unlike those of a Markov chain: none is a
# warm-up, and there is no convergence to check. (They are of the approximate posterior
# that the error bars are from, and more of them do not make it better.) Axes have
# names: the features are those of the data frame, and components have numbers.
import arviz_plots
import arviz_stats
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_lrvb import LRVBGaussianMixture

wine = load_wine(as_frame=True)
to_three = make_pipeline(StandardScaler(), PCA(3, random_state=0))
X = to_three.set_output(transform="pandas").fit_transform(wine.data)
mixture = LRVBGaussianMixture(n_components=3, random_state=0).fit(X)
# Draws by linear response here; the default takes the exact posterior where it differs.
data = mixture.posterior(X, method="lrvb").to_arviz(2000)
for name, group in data.children.items():
    print(name)
    for variable, values in group.data_vars.items():
        print(f"    {variable:<14}{', '.join(values.dims)}")

# %%
# Forest
# ------
# Where are the clusters? Each line is the posterior of one mean: the thin part holds 94 %
# of it, the thick part half.
arviz_plots.plot_forest(
    data, var_names=["means"], ci_probs=(0.5, 0.94), figure_kwargs={"figsize": (8, 4)}
)
plt.show()

# %%
# Pairs, and functions of the parameters
# --------------------------------------
# Where the parameters depend on each other, error bars do not tell the whole story. The
# first two coordinates of the mean of cluster 2 go up and down together.
arviz_plots.plot_pair(
    data,
    var_names=["means"],
    coords={"component": 2, "feature": ["pca0", "pca1"]},
    visuals={"scatter": {"alpha": 0.15}},
    figure_kwargs={"figsize": (6, 6)},
)
plt.show()

# %%
# A function of the parameters has a posterior too: compute it draw by draw, and their
# dependence is taken into account. How far apart are clusters 1 and 2, and which of the
# two is larger?
posterior = data.posterior
one, two = posterior.sel(component=1), posterior.sel(component=2)
distance = np.sqrt(((one["means"] - two["means"]) ** 2).sum("feature"))
larger = (two["weights"] > one["weights"]).mean()
print(f"distance of the means: {distance.mean():.2f} +- {distance.std():.2f}")
print(f"probability that cluster 2 is larger: {larger:.2f}")

# %%
# Leave one out, twice
# --------------------
# How well is each wine predicted by a fit to all others? ArviZ's ``loo`` weights the draws
# as if the wine had not been there. ``loo_score_samples`` needs no draws: it takes one
# Newton step to where the fit to the others would be.
loo = arviz_stats.loo(data, pointwise=True)
by_draws = loo.elpd_i.to_numpy()
by_step = mixture.loo_score_samples(X)
print(f"sum over wines, by draws  {by_draws.sum():.1f} +- {loo.se:.1f}")
print(f"sum over wines, by a step {by_step.sum():.1f}")
print(f"correlation over wines    {np.corrcoef(by_draws, by_step)[0, 1]:.4f}")
print(f"largest Pareto k          {loo.pareto_k.max():.2f}")

# %%
# The wines are in nearly the same order, but the scores by a step are lower. Both
# average over the posterior: ``loo`` takes the logarithm of the average density, and
# scores of the estimator, as those of scikit-learn, are the average of its logarithm or
# hardly less. That is lower by about half the variance of the logarithm, and this
# variance is the *leverage* of the wine; by more than that where the variance grows
# much as the wine is left out.
leverage = mixture.leverage(X)
difference = by_draws - by_step
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, x, y in ((left, by_step, by_draws), (right, leverage / 2, difference)):
    ax.scatter(x, y, s=14, alpha=0.6)
    limits = [min(x.min(), y.min()), max(x.max(), y.max())]
    ax.plot(limits, limits, color="black", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
left.set(
    xlabel="loo_score_samples",
    ylabel="loo of ArviZ",
    title="Score of each wine, left out",
)
right.set(
    xlabel="leverage / 2", ylabel="difference of the two", title="Why they differ"
)
plt.show()
print(f"sum of the differences   {difference.sum():.1f}")
print(f"sum of leverage / 2      {leverage.sum() / 2:.1f}")

# %%
# **Answer.** Whatever ArviZ can do with draws: plots of the posterior in a line, the
# posterior of any function (the means of clusters 1 and 2 are 4.99 +- 0.17 apart, and
# cluster 2 is the larger one with probability 0.68), and cross-validation. Over all
# wines ``loo`` gives -904.7, ``loo_score_samples`` -920.8, and the two agree on which
# wines are hard to predict (correlation 0.9992). Of the difference of 16.1, half the
# leverage explains 13.5. No Pareto k is above 0.7, so that ``loo`` may be trusted as
# far as the draws are: k judges its weights, not the approximation that was drawn from.
# Compare models by the one or by the other, and do not mix them.
#
# Read on: :ref:`sphx_glr_gallery_plot_rows_on_a_cluster.py`, with ten million rows.
