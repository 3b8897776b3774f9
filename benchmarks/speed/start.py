"""What the start by k-means costs, beside one iteration and the whole fit."""

from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import SIZES, milliseconds, ratio, table, text
from benchmarks.problems.clusters import FIT

TITLE = "Start"


def measure(settings):
    """A row for every problem."""
    return settings.rows(FIT, _times)


def _times(problem, settings):
    from benchmarks.rivals.libraries import Ours, Theirs

    X = problem.simulate()
    ours = Ours(problem.n_components, problem.covariance_type, settings.threads)
    theirs = Theirs(problem.n_components, problem.covariance_type)
    fitted = ours.fit(X, "kmeans")
    times = settings.clock.interleaved(
        {
            "start": lambda: ours.fit(X, "kmeans", max_iter=0),
            "their_start": lambda: theirs.fit(X, "kmeans", max_iter=0),
            "sweep": ours.single_iteration(fitted, X),
            "fit": lambda: ours.fit(X, "kmeans"),
        }
    )
    return {**summary(times), "iterations": fitted.n_iter_}


def section(found):
    shown = table(
        [
            *SIZES,
            ("start, ms", milliseconds("start_seconds")),
            ("scikit-learn's, ms", milliseconds("their_start_seconds")),
            ("one iteration, ms", milliseconds("sweep_seconds")),
            ("whole fit, ms", milliseconds("fit_seconds")),
            ("steps", text("iterations", "{:.0f}")),
            ("start, in iterations", lambda row: f"{ratio('start_seconds', 'sweep_seconds')(row):.3g}"),
            ("start, of the fit", lambda row: f"{ratio('start_seconds', 'fit_seconds')(row):.0%}"),
        ],
        found,
    )
    return f"""The start of a fit is k-means and the first M-step. Both libraries are at their defaults.

{shown}
"""
