"""
=============================================================
When one point moves, which way does a cluster's mean follow?
=============================================================

The mean of a group follows each of its points: move one of n points to the right, and
the mean goes right by 1/n of that. In a mixture nobody says which point belongs to
which cluster, and a point that moves may change its cluster as well. How far does a
mean follow then, and in which direction? The answer depends on where the point is,
and one fit gives it for every place, as in Section 6.5 of Giordano and Broderick
(2015).

The data are two pairs of round clusters of 500 points each, one pair far apart and
one that overlaps strongly.
"""

# %%
# Two fits
# --------
import matplotlib.pyplot as plt
import numpy as np

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.displays import InfluenceDisplay

settings = {
    "n_components": 2,
    "weight_concentration_prior_type": "dirichlet_distribution",
    "weight_concentration_prior": 1.0,
    # The prior is fixed, so that refits with a moved point have the same.
    "prior": "fixed",
    "mean_prior": np.zeros(2),
    "covariance_prior": np.eye(2),
    "max_iter": 1000,
}
labels = np.arange(1000) % 2
noise = np.random.default_rng(0).normal(size=(1000, 2))
data = {
    distance: distance * np.array([(0.5, 0.5), (-0.5, -0.5)])[labels] / np.sqrt(2)
    + noise
    for distance in (5.0, 2.2)  # between the means, in standard deviations
}
fits = {
    distance: LRVBGaussianMixture(**settings, init_params=np.eye(2)[labels]).fit(X)
    for distance, X in data.items()
}
for distance, fit in fits.items():
    mean, sd = fit.means_[0, 0], fit.means_std_[0, 0]
    n_own = fit.weights_[0] * len(labels)
    slope = n_own * fit.influence(data[distance])[:, 0, 0, 0]
    print(
        f"{distance:g} sd apart: mean of cluster 0 has first coordinate {mean:.3f} +- {sd:.3f}"
    )
    print(
        f"    a point moves it by 1/{n_own:.0f} times {slope.min():.2f} to {slope.max():.2f} of its own step"
    )

# %%
# The landscape
# -------------
# Colour says which way the first coordinate of the upper right mean goes when a point
# at this place moves to the right: red follows, blue goes the other way. Black lines
# separate the two.
figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for ax, (distance, fit) in zip(axes, fits.items(), strict=True):
    InfluenceDisplay.from_estimator(
        fit,
        data[distance],
        kind="landscape",
        ax=ax,
        scatter_kw={"s": 5, "linewidths": 0.2},
    )
    height = fit.means_[:, 1].mean()
    ax.axhline(height, color="black", lw=1.5, ls=(0, (4, 3)))
    for k, mean in enumerate(fit.means_):
        badge = {"boxstyle": "circle", "facecolor": "white", "edgecolor": "black"}
        ax.text(*mean, f"{k}", ha="center", va="center", fontweight="bold", bbox=badge)
    ax.set_title(f"means {distance:g} sd apart")
plt.show()

# %%
# On the border the sign is reversed. A point there that moves right, towards cluster 0,
# joins it; as it lies to the left of the mean, it draws the mean to the left. This
# change of cluster outweighs the pull. Where clusters overlap, the sign is reversed
# again far out, because a point that moves outwards widens its cluster.
#
# Is it true?
# -----------
# Put one point of cluster 0 at every place of the dashed line. The prediction is the
# influence of its weight there minus that at its own place, which is the exact integral
# of the landscape; and the mixture is refitted.
figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
for ax, (distance, fit) in zip(axes, fits.items(), strict=True):
    X, sd, responsibilities = (
        data[distance],
        fit.means_std_[0, 0],
        fit.predict_proba(data[distance]),
    )
    point = np.argmin(np.linalg.norm(X - fit.means_[0], axis=1))
    line = np.linspace(X[:, 0].min(), X[:, 0].max(), 200)
    places = np.column_stack([line, np.full(len(line), fit.means_[:, 1].mean())])
    pull = fit.influence(places, perturb="weight")[:, 0, 0]
    predicted = (pull - fit.influence(X[[point]], perturb="weight")[0, 0, 0]) / sd
    refitted = []
    for place in places[::25]:
        moved = X.copy()
        moved[point] = place
        refit = LRVBGaussianMixture(**settings, init_params=responsibilities).fit(moved)
        refitted.append((refit.means_ - fit.means_)[0, 0] / sd)
    ax.plot(line, predicted, label="predicted from one fit")
    ax.plot(line[::25], refitted, "o", mfc="none", label="refitted")
    ax.set(
        xlabel="x0 of one point on the dashed line",
        ylabel="shift of the mean, posterior sd",
    )
    error = np.abs(predicted[::25] - refitted).max()
    print(
        f"{distance:g} sd apart: shifts from {min(refitted):+.3f} to {max(refitted):+.3f}, error {error:.3f}"
    )
axes[0].legend()
plt.show()

# %%
# **Answer.** Far apart, a mean (here 1.756 +- 0.048) follows its own points, by about
# 1/500 of their step, and hardly the others; on the border it goes the other way. With
# much overlap most points are ambiguous, those of the other cluster move the mean too,
# and a point can move it by up to 14 times 1/460 of its step, against its own
# direction. The prediction from one fit agrees with refits to 0.006 error bars.
#
# Read on: :ref:`sphx_glr_gallery_plot_prior.py`, on what moves the answer besides the
# data.
