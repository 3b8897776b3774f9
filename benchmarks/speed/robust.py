"""Noise and Student's t: a default fit and its error bars, beside those of normal components.

Rows are those of three clusters of Student's t with five degrees of freedom. The normal fit of the same rows
is the measure, though it ends elsewhere: what counts is how long a user waits.
"""

from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import milliseconds, ratio, table, text_of
from benchmarks.problems.heavy_tails import HeavyTails

TITLE = "Noise and heavy tails"
_SIZES = ((600, 2), (10_000, 5), (100_000, 5), (2_000, 20), (2_000, 50))
_MODELS = {
    "normal": {},
    "noise": {"noise": True},
    "given": {"tails": 5.0},
    "student": {"tails": "student"},
}
_PARTS = {"fit": "fit", "all": "fit and error bars"}


def measure(settings):
    """A row for every size."""
    for n_samples, n_features in _SIZES[: 1 if settings.quick else None]:
        problem = HeavyTails(5, 6.0, n_components=3, n_features=n_features, n_samples=n_samples)
        X = problem.simulate(0)
        calls = {
            f"{model}_{part}": _call(X, arguments, part == "all")
            for model, arguments in _MODELS.items()
            for part in _PARTS
        }
        yield {
            "problem": f"{n_samples:,} x {n_features}",
            "n_samples": n_samples,
            "n_features": n_features,
            "n_components": 3,
            **summary(settings.clock.interleaved(calls)),
        }


def _call(X, arguments, with_error_bars):
    """A fit, and the error bars of means and covariances or scales if they are asked for."""
    from sklearn_lrvb import LRVBGaussianMixture

    def fitted():
        mixture = LRVBGaussianMixture(
            n_components=3, prior="fixed", random_state=0, max_iter=1000, **arguments
        ).fit(X)
        if with_error_bars:
            _ = mixture.means_std_, mixture.precisions_std_

    return fitted


def section(found):
    columns = [("rows x features", lambda row: row["problem"])]
    for part, title in _PARTS.items():
        columns.append((f"normal {title}, ms", milliseconds(f"normal_{part}_seconds")))
        for model, name in (("noise", "`noise`"), ("given", "`tails=5`"), ("student", '`tails="student"`')):
            of_model = text_of(ratio(f"{model}_{part}_seconds", f"normal_{part}_seconds"))
            columns.append((f"{name}, times that", of_model))
    return f"""Times of a default fit, and of a fit with the error bars of all means and precisions.

{table(columns, found)}

A fit with `noise` makes three starts, and runs up to three of them to the end. With tails every row has a
scale of its own, also where its label is certain. So passes over the rows take twice as long. Where a normal
fit solves a small system for the few ambiguous rows, one with tails factorizes the matrix of all parameters.
"""
