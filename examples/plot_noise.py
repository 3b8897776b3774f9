"""
======================================================
Where are the clusters if some rows belong to neither?
======================================================

A table of handwritten zeros and ones, into which other digits have slipped: a tenth of the
rows belong to no cluster. A mixture has to put them somewhere, and they pull the means and
widen the clusters. A *noise component* takes them in instead: it has the same low density
everywhere, and gets the rows that no cluster would have.

We know which digits are strangers, and use it only to see what is found.
"""

# %%
# Four fits
# ---------
# To all digits, without and with noise, and with heavy tails, another remedy; and to the
# zeros and ones alone, which shows where the clusters are.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from sklearn_lrvb import LRVBGaussianMixture

images, digits = load_digits(return_X_y=True)
ordinary, others = np.flatnonzero(digits < 2), np.flatnonzero(digits > 1)
strangers = np.random.default_rng(2).choice(others, 40, replace=False)
rows = np.concatenate([ordinary, strangers])
images, is_stranger = images[rows] / 16, digits[rows] > 1
X = PCA(10, random_state=0).fit_transform(images)

settings = {
    "n_components": 2,
    "weight_concentration_prior_type": "dirichlet_distribution",
    "max_iter": 1000,
    "random_state": 0,
}
alone = LRVBGaussianMixture(**settings).fit(X[~is_stranger])
plain = LRVBGaussianMixture(**settings).fit(X)
noisy = LRVBGaussianMixture(noise=True, **settings).fit(X)
heavy = LRVBGaussianMixture(tails="student", **settings).fit(X)

print(
    f"share of noise: {noisy.noise_weight_:.3f} +- {noisy.noise_weight_std_:.3f},"
    f" and strangers are {is_stranger.mean():.3f} of the rows"
)

# %%
# Whom did it find?
# -----------------
# ``predict`` says -1 for noise.
is_noise = noisy.predict(X) == -1
print(f"{np.sum(is_noise & is_stranger)} of {is_stranger.sum()} strangers are noise")
print(f"{np.sum(is_noise & ~is_stranger)} of {np.sum(~is_stranger)} others are")

# %%
# Here are all that were judged wrongly, in red, beside some strangers that were found.
# Above each is the probability that it is noise, the last column of ``predict_proba``,
# with its error bar by linear response.
probability, std = noisy.posterior(method="lrvb").predict_proba(X)
probability, std = probability[:, -1], std[:, -1]
wrong = np.flatnonzero(is_noise != is_stranger)
recognized = np.flatnonzero(is_noise & is_stranger)
shown = np.concatenate([recognized[: 8 - len(wrong)], wrong])
figure, axes = plt.subplots(1, len(shown), figsize=(10, 1.9), layout="constrained")
for ax, row in zip(axes, shown, strict=True):
    ax.imshow(images[row].reshape(8, 8), cmap="gray_r")
    ax.spines[:].set(color="#D55E00" if row in wrong else "0.8", linewidth=3)
    ax.set(xticks=[], yticks=[], title=f"{probability[row]:.2f} ± {std[row]:.2f}")
    ax.set_xlabel("stranger" if is_stranger[row] else "zero or one")
plt.show()


# %%
# Where are the clusters?
# -----------------------
# How far the means are from those without strangers, in error bars of that fit.
def shifts(mixture):
    order = linear_sum_assignment(cdist(alone.means_, mixture.means_))[1]
    return (mixture.means_[order] - alone.means_) / alone.means_std_


fits = {"without noise": plain, "heavy tails": heavy, "with noise": noisy}
for name, mixture in fits.items():
    shift = shifts(mixture)
    print(
        f"{name:<14} root mean square {np.sqrt(np.mean(shift**2)):.2f},"
        f" largest {np.abs(shift).max():.2f} error bars"
    )

# %%
# Left, the clusters in the first two components, by ellipses at two standard deviations.
# The blue ones lie on top of the grey ones. Right, the shifts of all coordinates of the
# means; the band is one error bar.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
angles = np.linspace(0, 2 * np.pi, 100)
circle = np.stack([np.cos(angles), np.sin(angles)])
left.scatter(*X[~is_stranger, :2].T, s=8, color="0.7", label="zeros and ones")
left.scatter(*X[is_stranger, :2].T, s=25, color="black", marker="x", label="strangers")
styles = {
    "zeros and ones alone": (alone, "0.4", "-"),
    "without noise": (plain, "#D55E00", "--"),
    "with noise": (noisy, "#0072B2", "-"),
}
for name, (mixture, color, line) in styles.items():
    for k, label in enumerate([name, None]):
        root = np.linalg.cholesky(mixture.covariances_[k, :2, :2])
        outline = mixture.means_[k, :2, None] + 2 * root @ circle
        left.plot(*outline, color=color, linestyle=line, label=label)
left.set(xlabel="first component", ylabel="second component")
left.legend(fontsize="small")

right.axhspan(-1, 1, color="0.9")
for name, marker in (("without noise", "s"), ("with noise", "o")):
    right.plot(shifts(fits[name]).ravel(), marker, color=styles[name][1], label=name)
right.set(
    xlabel="coordinate of a mean",
    ylabel="shift by the strangers, error bars",
    xticks=[0, 9.5, 19],
    xticklabels=["cluster 0", "", "cluster 1"],
)
right.legend()
plt.show()

# %%
# How dense is noise?
# -------------------
# The density of the noise is chosen before the fit and taken as known: no error bar knows
# how wrong it may be. So go up and down by one nat, a factor of 2.7. (The fit warns of
# numbers well above its own choice, as they may take rows from the clusters.)
warnings.simplefilter("ignore", UserWarning)
for nats in (-1, 0, 1):
    density = noisy.noise_log_density_ + nats
    mixture = LRVBGaussianMixture(noise=density, **settings).fit(X)
    print(
        f"{nats:+d} nat: share {mixture.noise_weight_:.3f} +- {mixture.noise_weight_std_:.3f},"
        f" largest shift {np.abs(shifts(mixture)).max():.2f} error bars"
    )

# %%
# **Answer.** Where they are without these rows, within 0.5 error bars, if noise takes them
# in; without noise the means are off by up to four error bars, and these do not know it.
# Noise found 36 of the 40 strangers and took 4 of the 360 zeros and ones. Its share,
# 0.106 +- 0.016, agrees with that of the strangers, 0.1. A nat less changes it by less
# than its error bar; a nat more takes rows of the clusters. Heavy tails help less: a row
# that is far from everything still belongs to a cluster. (Strangers that look
# alike would be a cluster of their own, with noise as without.)
#
# Read on: :ref:`sphx_glr_gallery_plot_heavy_tails.py`, where the rows far out do belong to
# the clusters, and the page `Outliers and heavy tails
# <../guide/outliers_and_heavy_tails.html>`_ of the user guide.
