"""
=============================
Can I trust these error bars?
=============================

Error bars by linear response take the posterior for a bell curve, around the one fit
that was made. With plenty of rows it is one. With few rows and clusters that overlap,
plausible values stretch further to one side than to the other, and the error bars are
too short. And a component that holds no rows has no bell curve at all. How would you
know which of these you have?

``posterior_check`` compares the fit with the exact posterior, for the price of a few
passes over the rows. Tables and draws ask it by themselves: where linear response is
not good enough, they take the exact posterior, by many Markov chains that run until
they have enough independent draws, or say that they have not.

Here are three data sets: plenty of rows, few rows, and few rows with more components
than clusters. For each there are the verdict, and the posterior of one mean in two
ways.
"""

# %%
# Three data sets
# ---------------
# Two round clusters with 80 and 20 % of the rows, 3.6 standard deviations apart, and 5
# in the data set that is given more components than it has clusters. The prior has
# given numbers, which keeps the Gibbs sampler below short.
import textwrap

import matplotlib.pyplot as plt
import numpy as np

from sklearn_lrvb import LRVBGaussianMixture


def simulated(n_rows, distance, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, 2))
    rows[:, 0] += distance * (rng.random(n_rows) < 0.2)
    return rows


data = {
    "plenty of rows": (simulated(6000, 3.6, 0), 2),
    "few rows": (simulated(150, 3.6, 5), 2),
    "empty components": (simulated(400, 5.0, 2), 4),
}
fits = {
    name: LRVBGaussianMixture(n_components=k, prior="fixed", random_state=0).fit(X)
    for name, (X, k) in data.items()
}

# %%
# The verdicts
# ------------
# A verdict is one sentence, with the numbers behind it. The *mean shift* says how far
# the exact posterior means are from those of the fit, in error bars. The *log ratio* is
# that of the two densities, and would be constant if linear response were exact.
for name, mixture in fits.items():
    print(f"{name}:")
    print(mixture.posterior_check(data[name][0], random_state=0), "\n")

# %%
# With draws, the check also says how probable the data are under the model (the
# *evidence*, in logarithms), and whether that number can be relied on.
few, X = fits["few rows"], data["few rows"][0]
print(few.posterior_check(X, n_draws=4000, random_state=0))

# %%
# The exact posterior
# -------------------
# Draws by linear response and of the exact posterior, of the mean of the smaller cluster
# along the first axis. As a reference that owes nothing to linear
# response, there is a long chain of an ordinary Gibbs sampler, one draw after the
# other. (Such a chain may exchange the numbers of the clusters. In every draw the one
# furthest to the right is taken, of those with at least 5 % of the rows.)


def long_chain(mixture, X, n_draws):
    """The first coordinate of the right mean in consecutive draws of one chain."""
    rng, labels, rightmost = np.random.default_rng(0), mixture.predict(X), []
    K, P = mixture.means_.shape
    m0, b0 = mixture.mean_prior_, mixture.mean_precision_prior_
    nu0, scale0 = mixture.degrees_of_freedom_prior_, mixture.covariance_prior_
    for _ in range(n_draws):
        counts = np.bincount(labels, minlength=K)
        later = counts.sum() - np.cumsum(counts)
        v = rng.beta(1 + counts, mixture.weight_concentration_prior_ + later)
        v = np.clip(v, 1e-300, 1 - 1e-16)
        log_terms = np.log(v) + np.cumsum(np.append(0, np.log1p(-v[:-1])))
        log_terms, means = np.tile(log_terms[:, None], len(X)), np.empty((K, P))
        for k in range(K):
            own = X[labels == k]
            b, nu = b0 + len(own), nu0 + len(own)
            m = (b0 * m0 + own.sum(axis=0)) / b
            scatter = scale0 + (own - m).T @ (own - m) + b0 * np.outer(m0 - m, m0 - m)
            # The precision is a Wishart matrix R R', by Bartlett's decomposition.
            A = np.tril(rng.normal(size=(P, P)), -1)
            A += np.diag(np.sqrt(rng.chisquare(nu - np.arange(P))))
            R = np.linalg.cholesky(np.linalg.inv(scatter)) @ A
            means[k] = m + np.linalg.solve(R.T, rng.normal(size=P)) / np.sqrt(b)
            log_terms[k] += np.log(np.diag(R)).sum()
            log_terms[k] -= 0.5 * np.square((X - means[k]) @ R).sum(axis=1)
        p = np.exp(log_terms - log_terms.max(axis=0))
        labels = (p.cumsum(axis=0) < rng.random(len(X)) * p.sum(axis=0)).sum(axis=0)
        rightmost.append(means[counts >= 0.05 * len(X), 0].max())
    return np.array(rightmost[n_draws // 10 :])


def right_mean(mixture, X, method):
    """Draws of the same by the package."""
    draws = mixture.posterior(X, method=method).sample(4000)
    occupied = np.argsort(-mixture.weights_)[: mixture.n_occupied_]
    right = occupied[np.argmax(mixture.means_[occupied, 0])]
    return draws["means"][:, right, 0]


# %%
figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
styles = {
    "lrvb": ("linear response", "#0072B2", "-"),
    "exact": ("exact posterior", "#D55E00", "--"),
}
for axes, (name, (rows, _)) in zip(panels, data.items(), strict=True):
    mixture = fits[name]
    exact = right_mean(mixture, rows, "exact")
    bins = np.linspace(*np.quantile(exact, [0.002, 0.998]), 41)
    chain = long_chain(mixture, rows, 1_000 if len(rows) > 1000 else 3_000)
    axes.hist(chain, bins[::2], density=True, color="0.85", label="a long Gibbs chain")
    for method, (label, color, line) in styles.items():
        drawn = exact if method == "exact" else right_mean(mixture, rows, method)
        heights, _ = np.histogram(drawn, bins, density=True)
        smooth = np.convolve(np.pad(heights, 2, mode="edge"), np.full(5, 0.2), "valid")
        axes.plot(0.5 * (bins[1:] + bins[:-1]), smooth, line, color=color, label=label)
    axes.set(title=name, xlabel="mean of the smaller cluster", yticks=[])
    axes.spines[["top", "right", "left"]].set_visible(False)
figure.legend(
    *panels[0].get_legend_handles_labels(),
    loc="outside upper center",
    ncols=3,
    frameon=False,
)
plt.show()

# %%
# The table
# ---------
# The table of the posterior chooses by itself, and the line below it says which it is.
columns = ["mean", "sd", "lower", "upper"]
table = few.posterior().summary("means")
plain = few.posterior(method="lrvb").summary("means")
for summary in (table, plain):
    print(summary[columns].round(2))
    print(textwrap.fill(summary.attrs["note"], 80), "\n")

# %%
# **Answer.** With plenty of rows all curves are one: trust linear response, which has
# cost next to nothing. With few rows the posterior is skew and half as wide again: mean
# values down to 1.6 are plausible, of which linear response knows nothing. The draws of
# the exact posterior follow the long chain, and a table takes them by itself. Empty
# components hardly spoil the error bars of the others.
#
# Read on: the page `Can I trust these error bars?
# <../guide/can_i_trust.html>`_ of the user guide.
