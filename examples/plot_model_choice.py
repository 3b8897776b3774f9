"""
===========================================
How many clusters are there, and what shape?
===========================================

The lower bound of a mixture is a bound on its log evidence, log p(X), that includes every constant. It may
therefore be compared between numbers of components and between covariance types, and one fit of each is
enough. One optimum covers one of the K! labellings of the components, so log K! is added. Cross-validation
answers the same question by five more fits of every candidate, with scikit-learn's own tools.

What to see. For 178 wines from three cultivars, in three principal components and without their labels, both
methods choose three clusters, each with a covariance matrix of its own. All but nine wines are in the cluster
of their cultivar. The evidence is far cheaper. The choice is a close one: a fourth, round cluster would lower
the evidence by less than a nat. The 95 % regions of the means show how well 178 wines locate the clusters.
"""

import argparse
from math import lgamma
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_lrvb import LRVBGaussianMixture

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")
N_COMPONENTS = (1, 2, 3, 4, 5)
COLORS = dict(zip(COVARIANCE_TYPES, ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True))
RADIUS = np.sqrt(-2 * np.log(0.05))  # 95 % of a standard normal in two dimensions lie within


def mixture(**parameters):
    """A mixture whose weights have a Dirichlet prior: its components are exchangeable."""
    return LRVBGaussianMixture(
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=1.0,
        n_init=2,
        max_iter=500,
        random_state=0,
        **parameters,
    )


def evidence(X):
    """The lower bound and log K! of every candidate, and the fits."""
    fits = {
        (kind, k): mixture(n_components=k, covariance_type=kind).fit(X)
        for kind in COVARIANCE_TYPES
        for k in N_COMPONENTS
    }
    return {key: fit.lower_bound_ + lgamma(key[1] + 1) for key, fit in fits.items()}, fits


def cross_validated(X):
    """Mean held-out log-likelihood of a row for every candidate."""
    grid = {"n_components": N_COMPONENTS, "covariance_type": COVARIANCE_TYPES}
    folds = KFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(mixture(), grid, cv=folds, refit=False).fit(X)
    results = zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)
    return {(p["covariance_type"], p["n_components"]): score for p, score in results}


def report(bounds, scores, times, best, cultivars, labels):
    """Print the candidates and what is chosen."""
    for title, values in (("log evidence", bounds), ("cross-validated", scores)):
        print(
            f"{title:<18}" + "".join(f"{f'K = {k}':>10}" for k in N_COMPONENTS) + f"{times[title]:>12.1f} s"
        )
        for kind in COVARIANCE_TYPES:
            cells = [f"{values[kind, k]:10.2f}" for k in N_COMPONENTS]
            print(f"  {kind:<16}" + "".join(cells))
        print(f"  chosen: {' '.join(map(str, max(values, key=values.get)))} components\n")
    print("cultivars (rows) and clusters:")
    print(confusion_matrix(cultivars, labels))
    for k, (weight, sd) in enumerate(zip(best.weights_, best.weights_std_, strict=True)):
        print(f"cluster {k}: {weight:.3f} +- {sd:.3f} of the wines")


def ellipse(mean, covariance):
    """Boundary of the 95 % region of a bivariate normal, (n, 2)."""
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = RADIUS * np.column_stack([np.cos(angle), np.sin(angle)])
    return mean + circle @ np.linalg.cholesky(covariance).T


def draw_candidates(ax, values, ylabel):
    """One line for every covariance type, the chosen candidate in a ring."""
    for kind, color in COLORS.items():
        ax.plot(N_COMPONENTS, [values[kind, k] for k in N_COMPONENTS], "o-", color=color, label=kind, ms=4)
    kind, k = max(values, key=values.get)
    ax.plot(k, values[kind, k], "o", ms=13, mfc="none", color="black")
    ax.set(xlabel="components", ylabel=ylabel, xticks=N_COMPONENTS)
    ax.spines[["top", "right"]].set_visible(False)


def draw(X, bounds, scores, best, cultivars):
    """Both judges, and the mixture they choose."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 4.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    draw_candidates(left, bounds, "log evidence: lower bound + log K!")
    left.legend(frameon=False, loc="lower right")
    draw_candidates(middle, scores, "cross-validated log-likelihood of a wine")
    for cultivar, marker in enumerate("os^"):
        right.scatter(
            *X[cultivars == cultivar, :2].T, s=12, marker=marker, color="0.65", label=f"cultivar {cultivar}"
        )
    covariance = best.get_posterior_covariance("means").reshape(2 * best.means_.shape)
    for k, mean in enumerate(best.means_):
        right.plot(*ellipse(mean[:2], best.covariances_[k, :2, :2]).T, color=COLORS["full"], lw=1)
        right.fill(*ellipse(mean[:2], covariance[k, :2, k, :2]).T, color=COLORS["tied"], alpha=0.8, lw=0)
    right.plot([], [], color=COLORS["full"], lw=1, label="95 % of a cluster")
    right.plot([], [], color=COLORS["tied"], lw=6, alpha=0.8, label="95 % region of its mean")
    right.set(xlabel="first component", ylabel="second component")
    right.set_ylim(top=5.6)
    right.legend(frameon=False, fontsize=8, ncols=2, loc="upper center")
    right.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    """Fit, choose, print, draw."""
    parser = argparse.ArgumentParser(description="How many clusters, and of what shape?")
    parser.add_argument("--output", type=Path, default=Path("model_choice.png"))
    output = parser.parse_args().output
    wine = load_wine()
    X = make_pipeline(StandardScaler(), PCA(3, random_state=0)).fit_transform(wine.data)
    start = perf_counter()
    bounds, fits = evidence(X)
    middle = perf_counter()
    scores = cross_validated(X)
    times = {"log evidence": middle - start, "cross-validated": perf_counter() - middle}
    best = fits[max(bounds, key=bounds.get)]
    report(bounds, scores, times, best, wine.target, best.predict(X))
    draw(X, bounds, scores, best, wine.target).savefig(output, dpi=110)
    print(f"figure: {output}")


if __name__ == "__main__":
    main()
