"""One sweep, ours beside scikit-learn's, its share of the flop limit, and what memory it takes."""

import sys

import numpy as np
from measuring import sizes, summary
from memory import extra_memory
from problems import SWEEP
from rivals import Ours, Theirs, kmeans_responsibilities

_FIRST_ROWS = 10_000  # that the state to sweep at is fitted to
_SWEEPS_BEFORE = 5


def flops(n_samples, n_features, n_components):
    """Multiplications and additions that a sweep cannot do without: 4 N K P^2."""
    return 4 * n_samples * n_components * n_features**2


def measure(settings):
    """Times; and memory on one thread, where the system tells of it, in quick mode of the first problem."""
    for number, problem in enumerate(settings.problems(SWEEP)):
        X = problem.simulate()
        row = sizes(problem) | _times(X, problem, settings)
        if sys.platform == "linux" and settings.threads == 1 and not (settings.quick and number):
            row |= _memory(X, problem)
        yield row


def _times(X, problem, settings):
    ours, theirs = Ours(problem.n_components, n_jobs=settings.threads), Theirs(problem.n_components)
    first = X[:_FIRST_ROWS]
    start = kmeans_responsibilities(first, problem.n_components)
    our_state, their_state = (
        rival.advanced(rival.start(first, start), first, _SWEEPS_BEFORE) for rival in (ours, theirs)
    )
    single = X.astype(np.float32)
    row = summary(
        settings.clock.interleaved(
            {
                "ours": ours.sweeper(our_state, X),
                "theirs": theirs.sweeper(their_state, X),
                "ours_float32": ours.sweeper(our_state, single),
            }
        )
    )
    work = flops(*X.shape, problem.n_components)
    row["gflops"] = work / row["ours_seconds"] / 1e9
    row["product_gflops"] = settings.product_rate / 1e9
    row["share_of_limit"] = work / row["ours_seconds"] / settings.product_rate
    return row


def _memory(X, problem):
    sides = {
        "ours": (X, Ours(problem.n_components)),
        "theirs": (X, Theirs(problem.n_components)),
        "ours_float32": (X.astype(np.float32), Ours(problem.n_components)),
    }
    row = {"megabytes": X.nbytes / 1e6}
    for name, (rows, rival) in sides.items():
        for what, multiple in extra_memory(rows, rival).items():
            row[f"{name}_{what}_memory"] = multiple
    return row
