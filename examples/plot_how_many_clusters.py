"""
==================
How many clusters?
==================

Set `n_components` to an upper bound, fit once, and read `n_occupied_`. Here 1,500 rows in the plane come
from six Gaussian clusters of unequal size and shape, some of them close to each other, and the mixture has
20 components. The fit merges or deletes surplus components and sorts the others by falling weight, each time
only if that raises the lower bound. The settings of `moves` are compared with each other and with
scikit-learn's mixture on three data sets, from one start each.

The lower bound tells how many components are worth their parameters, given the prior and given that
components are Gaussian. It cannot tell how many classes there are: a class that is not Gaussian takes
several components. Under the default prior two clusters less than about 3 standard deviations apart become
one component unless they have many rows. A second simulation counts how often two round clusters are both
found.

What to see. With moves every fit ends in the same optimum, with the six clusters, after fewer steps than
without. Without moves the fits have six components too, but end 7 to 81 nats lower: the stick-breaking prior
expects falling weights, and coordinate ascent does not change the order of the components. The last columns
of the table show that these fits reach the same optimum once their components are sorted. Ten starts cost
ten times as much as one start with moves, and end 7 to 19 nats lower. The 100 sweeps that are scikit-learn's
default are too few for all of its fits, and two of three end with surplus components. Two clusters of 50
rows each, 3 standard deviations apart, are both found in one data set of ten; with 200 rows each, in all
ten. The ellipse of the smallest cluster is too wide, because the default prior expects every cluster to have
the covariance of all rows.
"""

import argparse
import copy
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.displays import ComponentDisplay

UPPER_BOUND = 20  # components
N_SEEDS = 3  # data sets, each fitted from one start
ROWS = (480, 330, 270, 210, 140, 70)  # rows of each cluster
MEANS = ((0.0, 0.0), (1.2, 2.8), (-4.5, 2.6), (5.0, -0.8), (-4.0, -2.8), (2.4, -2.6))
AXES = ((2.0, 0.7), (2.0, 0.7), (1.2, 1.2), (0.5, 1.5), (1.4, 0.4), (0.5, 0.4))  # standard deviations
ANGLES = np.deg2rad((20, 20, 0, 0, 70, 0))  # direction of the first axis of each cluster
DISTANCES = (2, 3, 4)  # of two round clusters, in standard deviations
PAIR_ROWS = (50, 200)
N_PAIRS = 10
LEAST_SHOWN = 1e-3  # nats, `tol`
MARKED = {"ms": 6, "mec": "black", "mew": 0.4}

OURS = {
    'moves="auto"': {},
    'moves="merge"': {"moves": "merge"},
    'moves="search"': {"moves": "search"},
    "moves=None": {"moves": None},
    "moves=None, n_init=10": {"moves": None, "n_init": 10},
}
SCIKIT_LEARN = {
    "scikit-learn": {},
    "scikit-learn, tol=1e-6": {"tol": 1e-6, "max_iter": 2000},
}
PALETTE = (
    "#0072B2",
    "#56B4E9",
    "#009E73",
    "#D55E00",
    "#E69F00",
    "#CC79A7",
    "#000000",
)  # the palette of Okabe and Ito
MARKERS = dict(zip(OURS | SCIKIT_LEARN, "o^sDvPX", strict=True))
COLORS = dict(zip(MARKERS, PALETTE, strict=True))


def first_use(X):
    """Fit with an upper bound and report the components that hold rows: most analyses need no more."""
    mixture = LRVBGaussianMixture(n_components=20, random_state=0).fit(X)
    print(f"{mixture.n_occupied_} clusters, converged: {mixture.converged_}")
    for k in np.argsort(-mixture.weights_)[: mixture.n_occupied_]:
        print(f"  component {k}: weight {mixture.weights_[k]:.3f} +- {mixture.weights_std_[k]:.3f}")
    return mixture


def clusters(seed):
    """Rows of the six clusters: (1500, 2)."""
    random = np.random.default_rng(seed)
    parts = []
    for n_rows, mean, axes, angle in zip(ROWS, MEANS, AXES, ANGLES, strict=True):
        along, across = (random.normal(size=(n_rows, 2)) * axes).T
        x, y = np.cos(angle) * along - np.sin(angle) * across, np.sin(angle) * along + np.cos(angle) * across
        parts.append(mean + np.column_stack([x, y]))
    return np.vstack(parts)


@dataclass
class Run:
    """One fit, and what it cost.

    Attributes
    ----------
    steps : int, of the best start
    milliseconds : float, of all starts
    mixture : LRVBGaussianMixture, the end of the fit
    reordered : float, lower bound of the fit `in_order`
    """

    steps: int
    milliseconds: float
    converged: bool
    mixture: LRVBGaussianMixture
    reordered: float


def run(model, X):
    """Fit and measure the cost. The table counts fits that do not converge, so they do not warn here."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    milliseconds = 1e3 * (perf_counter() - start)
    mixture = on_our_scale(model, X)
    return Run(model.n_iter_, milliseconds, model.converged_, mixture, in_order(mixture, X).lower_bound_)


def on_our_scale(model, X):
    """The same posterior as an LRVBGaussianMixture: scikit-learn's bound leaves out constants."""
    if isinstance(model, LRVBGaussianMixture):
        return model
    return LRVBGaussianMixture.from_sklearn(copy.copy(model).set_params(max_iter=0), X)


def in_order(mixture, X):
    """Continue a fit without moves, after sorting its components by falling weight."""
    order = np.argsort(-mixture.weights_)
    start = mixture.predict_proba(X)[:, order]
    return LRVBGaussianMixture(n_components=UPPER_BOUND, init_params=start, max_iter=1000).fit(X)


def compare():
    """Fit every data set in every way: {way: list of Run}."""
    runs = {way: [] for way in MARKERS}
    for seed in range(N_SEEDS):
        X = clusters(seed)
        fixed = {"n_components": UPPER_BOUND, "random_state": seed}
        for way, settings in OURS.items():
            runs[way].append(run(LRVBGaussianMixture(**fixed, **settings), X))
        for way, settings in SCIKIT_LEARN.items():
            runs[way].append(run(BayesianGaussianMixture(**fixed, **settings), X))
    return runs


def highest_bounds(runs):
    """The highest lower bound that any way reached on each data set: (N_SEEDS,)."""
    return np.max([[r.mixture.lower_bound_ for r in fits] for fits in runs.values()], axis=0)


def report(runs):
    """Print the median cost of every way, and how its fits end."""
    best = highest_bounds(runs)
    print(f"\n{N_SEEDS} data sets; medians of steps (of the best start) and of milliseconds (of all starts);")
    print("nats below the highest bound found, at the end and after sorting, median and worst of each")
    print(
        f"{'':<24}{'steps':>6}{'ms':>7}{'converged':>11}  {'occupied':<14}{'nats below':>15}{'in order':>14}"
    )
    for way, fits in runs.items():
        occupied = np.sort([r.mixture.n_occupied_ for r in fits])
        counts = ", ".join(f"{sum(occupied == n)} x {n}" for n in np.unique(occupied))
        below = best - [r.mixture.lower_bound_ for r in fits]
        reordered = best - [r.reordered for r in fits]
        print(
            f"{way:<24}{np.median([r.steps for r in fits]):>6.0f}"
            f"{np.median([r.milliseconds for r in fits]):>7.0f}{sum(r.converged for r in fits):>11}  "
            f"{counts:<22}{np.median(below):>7.1f}{max(below):>7.1f}"
            f"{np.median(reordered):>7.1f}{max(reordered):>7.1f}"
        )


def report_pairs():
    """Print how often two round clusters are found to be two."""
    print(f"\ntwo round clusters: of {N_PAIRS} data sets, how many have both found")
    print("distance in standard deviations" + "".join(f"{distance:>6}" for distance in DISTANCES))
    for n_rows in PAIR_ROWS:
        found = [
            sum(pair_is_found(n_rows, distance, seed) for seed in range(N_PAIRS)) for distance in DISTANCES
        ]
        print(f"{f'{n_rows} rows each':<31}" + "".join(f"{n:>6}" for n in found))


def pair_is_found(n_rows, distance, seed):
    """Whether two clusters of unit variance and ``n_rows`` each are two occupied components."""
    X = np.random.default_rng(seed).normal(size=(2 * n_rows, 2))
    X[:n_rows, 0] += distance
    return LRVBGaussianMixture(n_components=10, random_state=0).fit(X).n_occupied_ == 2


def draw_clusters(ax, mixture, X):
    """Draw the rows, the occupied components, and the regions of their means."""
    ComponentDisplay.from_estimator(mixture, X, ax=ax, scatter_kw={"s": 9, "alpha": 0.6})
    ax.plot(*np.transpose(MEANS), "+", color="black", ms=9, zorder=4)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_title("(a) One fit at the defaults; crosses are the true means")


def draw_ends(ax, runs):
    """Draw where every fit ends: nats below the best bound against the number of occupied components."""
    best = highest_bounds(runs)
    for column, (way, fits) in enumerate(runs.items()):
        shift = 0.12 * (column - (len(runs) - 1) / 2)
        occupied = [r.mixture.n_occupied_ + shift for r in fits]
        bounds = [r.mixture.lower_bound_ for r in fits] - best
        ax.plot(occupied, bounds, MARKERS[way], color=COLORS[way], label=way, **MARKED)
    ends = {r.mixture.n_occupied_ for fits in runs.values() for r in fits}
    for n in range(min(ends), max(ends)):
        ax.axvline(n + 0.5, color="0.85", lw=0.8, zorder=0)
    ax.set(xticks=range(min(ends), max(ends) + 1), xlabel="occupied components")
    ax.set_ylabel("lower bound, nats below the highest found")
    ax.set_title("(b) Where fits end")
    ax.legend(loc="upper right", framealpha=1, edgecolor="none")


def draw_climbs(ax, runs):
    """Draw how far the lower bound is from its highest value, step by step, with moves and without."""
    best = highest_bounds(runs)
    for way, style in (("moves=None", "--"), ('moves="auto"', "-")):
        for fit, top in zip(runs[way], best, strict=True):
            to_go = np.maximum(top - np.array(fit.mixture.lower_bounds_), LEAST_SHOWN)
            steps = np.arange(1, len(to_go) + 1)
            ax.plot(steps, to_go, style, color=COLORS[way], lw=1.2)
            ax.plot(steps[-1], to_go[-1], MARKERS[way], color=COLORS[way], **MARKED)
        ax.plot([], [], style + MARKERS[way], color=COLORS[way], label=way, **MARKED)
    ax.set(yscale="log", xlabel="step", ylabel="nats below the highest bound found")
    ax.set_title("(c) How they get there")
    ax.legend(frameon=False, loc="center right")


def draw(mixture, X, runs):
    """Draw the clusters, the ends of all fits, and the lower bound step by step."""
    figure = Figure(figsize=(16.0, 5.0), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.5, 1.15, 0.95])
    draw_clusters(left, mixture, X)
    draw_ends(middle, runs)
    draw_climbs(right, runs)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    """Fit, compare, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--output", type=Path, default=Path("how_many_clusters.png"))
    output = parser.parse_args().output
    X = clusters(0)
    mixture = first_use(X)
    runs = compare()
    report(runs)
    report_pairs()
    draw(mixture, X, runs).savefig(output, dpi=95)
    print(f"figure: {output}")


if __name__ == "__main__":
    main()
