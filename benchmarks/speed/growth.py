"""How the cost of an iteration, of a fit and of the information grows with rows, features and components."""

from benchmarks.analysis import growth_curves
from benchmarks.analysis.growth_curves import curves
from benchmarks.harness.measuring import sizes, summary
from benchmarks.harness.tables import table, text
from benchmarks.problems.clusters import GROWTH
from benchmarks.speed import information, sweep

TITLE = "Growth"
_MOST_ITERATIONS = 200
_LARGEST = 12_000  # unknowns of a primal matrix that takes less than a minute
_LARGEST_IN_QUICK_MODE = 1_000
_GROWING = {"n_samples": "rows N", "n_features": "features P", "n_components": "components K"}
# The column of seconds of a pass, and that of flops where they are known.
_PASSES = {
    "one iteration": ("sweep_seconds", "sweep_flops"),
    "a fit, by iteration": ("iteration_seconds", None),
    "information (primal)": ("information_seconds", "information_flops"),
}


def measure(settings):
    """A row for every problem along every size that grows."""
    for size, problems in GROWTH.items():
        for problem in settings.sized(problems):
            yield {"grows": size} | sizes(problem) | _row(problem, settings)


def _row(problem, settings):
    from benchmarks.harness.inside import InformationPass
    from benchmarks.rivals.libraries import Ours

    X = problem.simulate()
    ours = Ours(problem.n_components, n_jobs=settings.threads)
    mixture = ours.fit(X, "kmeans", max_iter=_MOST_ITERATIONS)
    passes = InformationPass(mixture, X)
    calls = {
        "fit": lambda: ours.fit(X, "kmeans", max_iter=_MOST_ITERATIONS),
        "sweep": ours.single_iteration(mixture, X),
    }
    n_unknowns = passes.n_unknowns
    small = n_unknowns <= (_LARGEST_IN_QUICK_MODE if settings.quick else _LARGEST)
    if small and mixture.converged_:  # elsewhere the information may not be positive definite
        calls["information"] = lambda: passes.mean_std("primal")
    row = summary(settings.clock.interleaved(calls))
    return {
        **row,
        "iterations": mixture.n_iter_,
        "iteration_seconds": row["fit_seconds"] / mixture.n_iter_,
        "sweep_flops": sweep.flops(*X.shape, problem.n_components),
        "information_flops": information.naive_flops(len(X), passes.n_columns) + n_unknowns**3 / 3,
    }


def section(found):
    exponents = [
        {
            "grows": curve.grows,
            "pass": curve.what,
            "exponent": curve.exponent,
            "flops": curve.flops_exponent,
        }
        for curve in curves(found, _GROWING, _PASSES)
    ]
    shown = table(
        [
            ("what grows", lambda row: _GROWING[row["grows"]]),
            ("time of", text("pass", "{}")),
            ("exponent of the flops", text("flops")),
            ("exponent", text("exponent")),
        ],
        exponents,
    )
    return f"""The exponents are those of time as a power of N, P or K, fitted to the upper half of the range.
Wanted is linear growth in N, and in P and K growth like that of the flop count. The flops of an iteration are
4 N K P^2; those of the information are those of the naive product and D^3/3 for D unknowns.

{shown}

![Growth of the cost](growth.png)
"""


def draw(found, path):
    """Times of the passes against the sizes that grow."""
    growth_curves.draw(curves(found, _GROWING, _PASSES), _GROWING, path)
