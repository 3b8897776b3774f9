"""
==========================================================================
How well does a mixture predict new rows, if each may be fitted only once?
==========================================================================

The score of a row by a mixture that was fitted to it is too optimistic: in sample,
large mixtures look best. Fair is the score under a fit to all other rows, but that
takes a fit for every row. ``loo_score_samples`` gives these leave-one-out scores from
one fit: a Newton step approximates the fit without the row, and the row is scored
exactly there. Their mean chooses the number of components. Is the step accurate enough
for that?

The data are 178 wines in three principal components, without their labels.
"""

# %%
# Six mixtures, one fit each
# --------------------------
# The prior is fixed: by default it is made from the rows and learned from them, and
# would change a little when one is left out.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_lrvb import LRVBGaussianMixture

X = make_pipeline(StandardScaler(), PCA(3, random_state=0)).fit_transform(
    load_wine().data
)
settings = {
    "weight_concentration_prior_type": "dirichlet_distribution",
    "weight_concentration_prior": 1.0,
    "prior": "fixed",
    "mean_prior": X.mean(axis=0),
    "covariance_prior": np.cov(X.T),
    "max_iter": 2000,
    "moves": None,  # No component is merged with another: K is to stay K.
    "random_state": 0,
}
numbers = (1, 2, 3, 4, 5, 6)
fits = {
    k: LRVBGaussianMixture(n_components=k, n_init=2, **settings).fit(X) for k in numbers
}
in_sample = {k: fit.score_samples(X) for k, fit in fits.items()}
left_out = {k: fit.loo_score_samples(X) for k, fit in fits.items()}


def mean_and_error(values):
    """The mean over wines and its standard error, as text."""
    return f"{values.mean():.3f} +- {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


print(f"{'components':<12}{'score in sample':>18}{'left out':>18}{'beyond K = 3':>18}")
for k in numbers:
    gap = mean_and_error(left_out[k] - left_out[3]) if k != 3 else ""
    print(
        f"{k:<12}{mean_and_error(in_sample[k]):>18}{mean_and_error(left_out[k]):>18}{gap:>18}"
    )

# %%
# The last column compares the same wines, so its error bar is smaller than those of the
# scores.
figure, ax = plt.subplots(layout="constrained")
for scores, name, style in (
    (in_sample, "in sample", "s:"),
    (left_out, "left out, from one fit", "o-"),
):
    gaps = np.array([scores[k] - scores[3] for k in numbers[1:]])
    errors = gaps.std(axis=1, ddof=1) / np.sqrt(len(X))
    ax.errorbar(
        numbers[1:], gaps.mean(axis=1), errors, fmt=style, capsize=3, label=name
    )
ax.axhline(0, color="black", lw=0.6, zorder=0)
ax.set(
    xlabel="components, K",
    ylabel="score beyond that of K = 3, nats a wine",
    xticks=numbers[1:],
)
ax.set_title("In sample, four are best; left out, three")
ax.legend(loc="lower right")
plt.show()

# %%
# Check against refits
# --------------------
# Twelve wines are left out one by one with four components: every fifteenth by
# leverage, from the largest down. Refits start from the responsibilities (cluster
# probabilities) of the full fit, as another start might end in another optimum. *First
# order* is the cheaper estimate that subtracts a wine's leverage from its score.
fit, k = fits[4], 4
leverage, responsibilities = fit.leverage(X), fit.predict_proba(X)
rows = np.argsort(-leverage)[::15]
refitted = []
for row in rows:
    others = np.delete(np.arange(len(X)), row)
    start = {"n_components": k, "init_params": responsibilities[others]}
    refit = LRVBGaussianMixture(**settings, **start).fit(X[others])
    refitted.append(refit.score_samples(X[[row]])[0])
print("what a wine's score loses when it is left out, nats")
print(f"{'wine':<8}{'by refitting':>14}{'from one fit':>14}{'first order':>14}")
for row, score in list(zip(rows, refitted, strict=True))[:5]:
    costs = (
        in_sample[k][row] - score,
        in_sample[k][row] - left_out[k][row],
        leverage[row],
    )
    print(f"{row:<8}" + "".join(f"{cost:>14.2f}" for cost in costs))
error = np.abs(left_out[k][rows] - refitted).max()
print(f"largest error among {len(rows)} wines: {error:.2f}; first order", end=" ")
print(f"{np.abs(in_sample[k][rows] - leverage[rows] - refitted).max():.2f}")

# %%
# **Answer.** Well enough: the scores agree with those of refits to 0.01 nats, even for
# the wine that loses 4.84 nats when it is left out, where the first order sees 2.22.
# Three components predict best, and the gap to four, 0.018 +- 0.026, is within its
# error: the wines hardly tell. (Over all 178 wines the errors are up to 0.12 with four
# components, one of which holds 7 wines: with few rows, a component is no small step
# away without one of them. Where a row is most of its component, the method warns.)
#
# Read on: :ref:`sphx_glr_gallery_plot_outliers.py` asks which rows make such a
# difference.
