"""
=============================================
Where are the clusters if values are missing?
=============================================

Values are missing in most tables. The usual way is to fill them in and to go on as if the
filled values had been measured. Here we removed the values ourselves, so that we know where
the clusters would have been found in the complete table, and can compare.

The rows are 178 Italian wines of three cultivars, with four measurements. The fit does not
see the cultivars.
"""

# %%
# Remove values
# -------------
# Two of the four columns lose values, and the more so the stronger a wine is: as if the
# laboratory had skipped some analyses of strong wines. Values are then *missing at random*:
# the chance depends on the alcohol, which is always there.
import warnings

import numpy as np
from matplotlib import pyplot as plt
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from sklearn_lrvb import LRVBGaussianMixture

names = ["alcohol", "flavanoids", "color_intensity", "proline"]
wines = load_wine(as_frame=True).data[names]
truth = (wines - wines.mean()) / wines.std()  # standardized

rng = np.random.default_rng(0)
rank = truth["alcohol"].rank(pct=True).to_numpy()
is_removed = rng.random(truth.shape) < 0.9 * rank[:, None]
is_removed[:, [0, 3]] = False
X = truth.mask(is_removed)
for name, share in X.isna().mean().items():
    print(f"{name:<16} {100 * share:3.0f} % missing")

# %%
# Fit, with and without filling
# -----------------------------
# The mixture takes the table with its missing values. Every other way fills it first, and
# then fits the same mixture to the filled table.
warnings.simplefilter("ignore", ConvergenceWarning)  # of the iterative imputer
ways = {
    "complete": truth,
    "missing in the model": X,
    "KNNImputer": KNNImputer().set_output(transform="pandas").fit_transform(X),
    "IterativeImputer": IterativeImputer(random_state=0)
    .set_output(transform="pandas")
    .fit_transform(X),
    "SimpleImputer": SimpleImputer().set_output(transform="pandas").fit_transform(X),
}
settings = {
    "n_components": 3,
    "covariance_type": "tied",
    "random_state": 0,
    "n_init": 5,
}
fits = {way: LRVBGaussianMixture(**settings).fit(rows) for way, rows in ways.items()}

before = fits["complete"].means_
order = {
    way: linear_sum_assignment(cdist(before, fit.means_))[1]
    for way, fit in fits.items()
}

# %%
# Where each way puts the clusters
# --------------------------------
# Mean flavanoids and color of each cluster, with 95 % intervals, relative to where they were
# found in the complete table.
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
places = np.arange(3)
for number, (way, fit) in enumerate(fits.items()):
    for ax, name in zip(axes, ["flavanoids", "color_intensity"], strict=True):
        feature = names.index(name)
        off = (fit.means_[order[way]] - before)[:, feature]
        ax.errorbar(
            off,
            places + 0.14 * (number - 2),
            xerr=1.96 * fit.means_std_[order[way], feature],
            fmt="o",
            color=["0.5", "#0072B2", "#009E73", "#CC79A7", "#E69F00"][number],
            label=way,
        )
for ax, name in zip(axes, ["flavanoids", "color intensity"], strict=True):
    ax.axvline(0, color="0.7", linewidth=0.8, zorder=0)
    ax.set(title=f"mean {name}", xlabel="off by, in sd of the column")
axes[0].set(yticks=places, yticklabels=[f"cluster {k}" for k in places])
axes[0].invert_yaxis()
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5)
plt.show()

worst = {}
for way, fit in fits.items():
    errors = np.abs(fit.means_[order[way]] - before) / fit.means_std_[order[way]]
    worst[way] = errors.max()
    print(f"{way:<20} largest error of a mean: {worst[way]:4.1f} of its error bars")

# %%
# What missing values cost
# ------------------------
# The error bars are wider than before, by as much as is not known. The share of the
# information that is missing says where: it is split into what is lost to unknown labels, as in
# every mixture, and what is lost to missing values.
model = fits["missing in the model"]
cluster = order["missing in the model"][0]
shares = model.missing_information(X, target="means")
print(shares.filter(like=f"mean[{cluster}", axis=0).round(2))

# %%
# Filled values
# -------------
# If a filled table is what you need, fill it with what the mixture expects. Each value has
# its standard deviation, in which the row's cluster, the spread of the cluster and the
# uncertain parameters take part. We know the true values and can look them up.
filled, deviations = model.impute(X, return_std=True)
expected, true = filled.to_numpy()[is_removed], truth.to_numpy()[is_removed]
error_bars = 1.96 * deviations.to_numpy()[is_removed]
within = np.abs(expected - true) < error_bars

figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
for held, color in ((True, "#0072B2"), (False, "#D55E00")):
    some = within == held
    ax.errorbar(
        true[some],
        expected[some],
        yerr=error_bars[some],
        fmt="o",
        color=color,
        markersize=3,
        elinewidth=0.6,
        alpha=0.6,
    )
ax.axline((0, 0), slope=1, color="0.5", linewidth=0.8)
ax.set(xlabel="true value", ylabel="filled value, with 95 % interval")
plt.show()
print(
    f"{100 * within.mean():.0f} % of {within.size} removed values are within their interval"
)


# %%
# Draws for everything else
# -------------------------
# Filled means are too smooth: they vary less than true values would. Whatever is to be
# computed from a completed table is computed from several drawn ones. Here, the correlation
# of flavanoids and color over all wines.
def correlation(table):
    return np.corrcoef(table["flavanoids"], table["color_intensity"])[0, 1]


copies = model.sample_imputations(X, n_imputations=50, random_state=0)
drawn = np.array([correlation(copy) for copy in copies])
print(f"from complete table  {correlation(truth):.2f}")
print(f"from filled means    {correlation(filled):.2f}")
print(
    f"from drawn tables    {drawn.mean():.2f} +- {drawn.std():.2f}, as values are missing"
)

# %%
# **Answer.** Where they would have been found in the complete table, within error bars that are
# wider by what is missing: give the table to the mixture as it is. Filled first, by a method
# that does not know the clusters, the means are off by several of their error bars.
#
# Read on: the page `Missing values <../guide/missing_values.html>`_ of the user guide.
