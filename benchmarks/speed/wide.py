"""A fit to fewer rows than features (genes, pixels, spectra), ours beside scikit-learn's, at the defaults."""

from benchmarks.harness.measuring import sizes, summary
from benchmarks.harness.tables import SIZES, milliseconds, ratio, table, text, text_of
from benchmarks.problems.clusters import WIDE, Problem

TITLE = "More features than rows"
_COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")
_IN_QUICK_MODE = (Problem("6 x 12", 6, 12, 2, spread=1.0, shapes="equal"),)


def measure(settings):
    """A row for every problem and covariance type."""
    for problem in _IN_QUICK_MODE if settings.quick else WIDE:
        X = problem.simulate()
        for covariance_type in _COVARIANCE_TYPES:
            name = f"{problem.name} {covariance_type}, {problem.n_components}"
            row = sizes(problem) | {"problem": name, "covariance_type": covariance_type}
            yield row | _times(X, problem.n_components, covariance_type, settings)


def _times(X, n_components, covariance_type, settings):
    from sklearn.mixture import BayesianGaussianMixture

    from sklearn_lrvb import LRVBGaussianMixture

    given = {"n_components": n_components, "covariance_type": covariance_type, "random_state": 0}
    ours, theirs = (
        LRVBGaussianMixture(**given, prior="fixed", n_jobs=settings.threads),
        BayesianGaussianMixture(**given),
    )
    times = settings.clock.interleaved({"ours": lambda: ours.fit(X), "theirs": lambda: theirs.fit(X)})
    return {**summary(times), "iterations": ours.n_iter_, "their_iterations": theirs.n_iter_}


def section(found):
    shown = table(
        [
            *SIZES,
            ("ours, ms", milliseconds("ours_seconds")),
            ("scikit-learn, ms", milliseconds("theirs_seconds")),
            ("ours over theirs", text_of(ratio("ours_seconds", "theirs_seconds"))),
            ("steps", text("iterations", "{:.0f}")),
            ("theirs", text("their_iterations", "{:.0f}")),
        ],
        found,
    )
    return f"""Whole fits, the start by k-means included. Ours ends at the optimum, scikit-learn's where an
iteration gains less than its `tol`. With "full" and "tied" covariances our fit is made in the space that the
rows span.

{shown}
"""
