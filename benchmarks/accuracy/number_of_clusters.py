"""P(K | X) against the truth, and against long chains of partitions.

Tables of 100 rows are drawn from the prior, with a number of clusters from 1 to 5 in proportion to 1/K!. So
P(K | X) can be checked in two ways: of all probabilities of about 0.9 nine in ten should be of the true
number; and for the first 30 tables long chains of partitions (`rivals.number_references`) say what it is.
"""

import time
import warnings
from math import lgamma

import numpy as np
from scipy.special import softmax

from benchmarks.harness.tables import table
from benchmarks.problems.prior_tables import MOST_COMPONENTS, PRIOR, log_number_prior, prior_table

TITLE = "The number of clusters, and its probability"
METHODS = {
    "bic": "BIC of scikit-learn's GaussianMixture",
    "bound": "lower bound and log K!",
    "second_order": "second order (`log_evidence_`) and log K!",
    "number_of_clusters": "`number_of_clusters`",
}
NUMBERS = range(1, MOST_COMPONENTS + 1)
_TABLES, _QUICK_TABLES = 100, 1
_STARTS, _QUICK_STARTS = 12, 2
_BINS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0 + 1e-9)


def measure(settings):
    """A row for every table and method."""
    from benchmarks.rivals.number_references import stored

    references = stored()
    for seed in range(_QUICK_TABLES if settings.quick else _TABLES):
        X, n_clusters = prior_table(seed)
        reference = references.get(f"prior, {seed}")
        if reference is not None:
            reference.check(X)
        for method, (probabilities, seconds) in _probabilities(X, settings.quick).items():
            row = {
                "problem": f"{METHODS[method]}: table {seed}",
                "table": seed,
                "method": method,
                "n_samples": len(X),
                "n_clusters": n_clusters,
                "seconds": seconds,
            }
            row |= {f"p{k}": float(p) for k, p in zip(NUMBERS, probabilities, strict=True)}
            exact = [None] * len(NUMBERS) if reference is None else reference.probabilities(MOST_COMPONENTS)
            yield row | {
                f"exact{k}": p if p is None else float(p) for k, p in zip(NUMBERS, exact, strict=True)
            }


def _probabilities(X, quick):
    """P(K | X) by every method, and the processor time in seconds: {method: ((5,), float)}."""
    from sklearn.mixture import GaussianMixture

    from sklearn_lrvb import LRVBGaussianMixture, number_of_clusters

    n_init = _QUICK_STARTS if quick else _STARTS
    found, log_prior = {}, log_number_prior(MOST_COMPONENTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of maximum-likelihood fits that collapse onto few rows
        before = time.process_time()
        bic = [GaussianMixture(k, n_init=n_init, random_state=0).fit(X).bic(X) for k in NUMBERS]
        found["bic"] = softmax(log_prior - 0.5 * np.array(bic)), time.process_time() - before
        before = time.process_time()
        mixture = LRVBGaussianMixture(**PRIOR.arguments, random_state=0)
        result = number_of_clusters(
            mixture, X, n_components=NUMBERS, n_init=n_init, another_prior=False, random_state=0
        )
        seconds = time.process_time() - before
    fits = [result.estimators_[k] for k in NUMBERS]
    log_copies = np.array(
        [lgamma(k + 1) - lgamma(k + 1 - fit.n_occupied_) for k, fit in zip(NUMBERS, fits, strict=True)]
    )
    bounds = np.array([fit.lower_bound_ for fit in fits])
    found["bound"] = softmax(log_prior + bounds + log_copies), seconds
    found["second_order"] = softmax(log_prior + result.scores["second_order"]), seconds
    found["number_of_clusters"] = result.scores["probability"], seconds
    return found


def _numbers(rows):
    """P(K | X) of rows of one method (n, 5), the exact ones or NaN, and the true numbers (n,)."""
    said = np.array([[row[f"p{k}"] for k in NUMBERS] for row in rows])
    exact = np.array(
        [[np.nan if row[f"exact{k}"] is None else row[f"exact{k}"] for k in NUMBERS] for row in rows]
    )
    return said, exact.astype(float), np.array([int(row["n_clusters"]) for row in rows])


def calibration(rows):
    """Means of the probabilities of one method in bins, and how often they were of the truth: two of (n,)."""
    said, _, truth = _numbers(rows)
    is_true = np.eye(MOST_COMPONENTS)[truth - 1]
    place = np.digitize(said, _BINS) - 1
    bins = [place == i for i in range(len(_BINS) - 1) if np.any(place == i)]
    return np.array([said[own].mean() for own in bins]), np.array([is_true[own].mean() for own in bins])


def _distances(rows):
    """Total variation distances from the chains, of the tables of one method that have them: (n,)."""
    said, exact, _ = _numbers(rows)
    distances = 0.5 * np.abs(said - exact).sum(axis=1)
    return distances[~np.isnan(distances)]


def section(found):
    def of(method):
        return [row for row in found if row["method"] == method]

    def distances(method):
        far = _distances(of(method))
        return f"{far.mean():.3f}, {far.max():.2f}" if len(far) else ""

    def p_true(method):
        said, _, truth = _numbers(of(method))
        return said[np.arange(len(said)), truth - 1]

    def right(method):
        said, _, truth = _numbers(of(method))
        return 100 * np.mean(said.argmax(axis=1) + 1 == truth), 100 * said.max(axis=1).mean()

    def sure(method):
        said, _, truth = _numbers(of(method))
        is_sure = said.max(axis=1) > 0.8
        is_right = said.argmax(axis=1) + 1 == truth
        return f"{is_right[is_sure].mean():.2f}, of {is_sure.sum()}" if is_sure.any() else ""

    shown = table(
        [
            ("P(K given X) by", lambda method: METHODS[method]),
            ("mean log P(true K)", lambda method: f"{np.log(np.maximum(p_true(method), 1e-12)).mean():.2f}"),
            ("guess right, %", lambda method: f"{right(method)[0]:.0f}"),
            ("it says, %", lambda method: f"{right(method)[1]:.0f}"),
            ("right where it says above 0.8", sure),
            ("distance from chains: mean, worst", distances),
            ("median s", lambda method: f"{np.median([row['seconds'] for row in of(method)]):.2g}"),
        ],
        list(METHODS),
    )
    n_tables = len({row["table"] for row in found})
    return f"""{n_tables} tables of 100 rows drawn from the prior, with 1 to 5 clusters. P(K) is in proportion
to 1/K!, which all methods know. "It says" is the mean probability of the guess, which should be how often it
is right. The distance is the total variation from P(K | X) by long chains of partitions, of the tables that
have them.

{shown}

![Left, how often probabilities were of the true number; right, the distances](number_of_clusters.png)

BIC, the lower bound and the second order are too sure. `number_of_clusters` is right about as often as it
says, and near the chains.
"""


def draw(found, path):
    from matplotlib import pyplot as plt

    from benchmarks.harness import figures

    colors = dict(zip(METHODS, (figures.GREY, figures.ORANGE, figures.GREEN, figures.BLUE), strict=True))
    with plt.rc_context(figures.STYLE):
        drawn, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.6), layout="constrained")
        left.plot([0, 1], [0, 1], color=figures.BLACK, linewidth=0.8)
        for method, name in METHODS.items():
            rows = [row for row in found if row["method"] == method]
            style = {"color": colors[method], "label": name.replace("`", "")}
            left.plot(*calibration(rows), "o-", markersize=4, **style)
            distances = np.sort(_distances(rows))
            right.plot(distances, (np.arange(len(distances)) + 0.5) / max(len(distances), 1), **style)
        left.set(xlabel="P(K | X) that is said", ylabel="how often K was the truth")
        right.legend(fontsize=7.5, loc="lower right")
        right.set(xlabel="total variation distance from long chains", ylabel="share of the tables")
        figures.saved(drawn, path)
