"""How the cost grows with rows, features and components: one sweep, a fit's iteration, the information."""

from measuring import sizes, summary
from problems import GROWTH
from rivals import InformationPass, Ours

from experiments import information, sweep

_MOST_ITERATIONS = 200
_LARGEST = 12_000  # unknowns of a primal matrix, in less than a minute
_LARGEST_IN_QUICK_MODE = 1_000


def measure(settings):
    for size, problems in GROWTH.items():
        for problem in settings.sized(problems):
            yield {"grows": size} | sizes(problem) | _row(problem, settings)


def _row(problem, settings):
    X = problem.simulate()
    ours = Ours(problem.n_components, n_jobs=settings.threads)
    mixture = ours.fit(X, "kmeans", max_iter=_MOST_ITERATIONS)
    passes = InformationPass(mixture, X)
    calls = {
        "fit": lambda: ours.fit(X, "kmeans", max_iter=_MOST_ITERATIONS),
        "sweep": ours.sweeper(mixture, X),
    }
    n_unknowns = passes.n_unknowns
    small = n_unknowns <= (_LARGEST_IN_QUICK_MODE if settings.quick else _LARGEST)
    if small and mixture.converged_:  # elsewhere the information need not be positive definite
        calls["information"] = lambda: passes.mean_std("primal")
    row = summary(settings.clock.interleaved(calls))
    return {
        **row,
        "iterations": mixture.n_iter_,
        "iteration_seconds": row["fit_seconds"] / mixture.n_iter_,
        "sweep_flops": sweep.flops(*X.shape, problem.n_components),
        "information_flops": information.naive_flops(len(X), passes.n_columns) + n_unknowns**3 / 3,
    }
