"""Where the time goes: what share of a pass its parts take, on one thread.

A part is the time spent in some functions of the library and in what they call; the rest, which no part
names, is Python around them and work of the size of the parameters.
"""

import cProfile
import dataclasses
import pstats
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from measuring import sizes
from problems import FIT, INFLUENCE, INFORMATION, SWEEP
from rivals import InformationPass, Ours, kmeans_responsibilities

_LARGEST = 4_000  # unknowns whose matrix is profiled
_LEAST_SECONDS = 0.2
_MOST_ROUNDS = 20


@dataclass(frozen=True)
class Pass:
    """A pass over the rows.

    Attributes
    ----------
    problems : names of those it is profiled on
    prepared : callable, problem -> the call to profile, or None where it would take too long
    parts : dict, part -> (file, function) pairs, none of which calls another
    """

    problems: tuple
    prepared: Callable
    parts: dict


def _frames(function):
    return tuple((file, function) for file in ("own_frames.py", "common_frame.py", "pair_frame.py"))


def _fitted(problem, max_iter=300):
    """Rows, their start, ours, and its fit."""
    X = problem.simulate()
    start = kmeans_responsibilities(X, problem.n_components)
    ours = Ours(problem.n_components, problem.covariance_type)
    return X, start, ours, ours.fit(X, start, max_iter=max_iter)


def _sweep(problem):
    X, _, ours, mixture = _fitted(problem, max_iter=5)
    return ours.sweeper(mixture, X)


def _fit(problem):
    X, start, ours, _ = _fitted(problem, max_iter=0)
    return lambda: ours.fit(X, start)


def _information(problem):
    if problem.n_unknowns > _LARGEST:
        return None
    X, _, _, mixture = _fitted(problem)
    information = InformationPass(mixture, X)
    return lambda: information.mean_std("primal")


def _influence(problem):
    X, _, _, mixture = _fitted(problem)
    _ = mixture.means_std_  # the factored information
    return lambda: mixture.influence(X)


PASSES = {
    "a sweep": Pass(
        SWEEP,
        _sweep,
        {
            "rows, centred": (("row_blocks.py", "block"),),
            "into the frame": _frames("whiten"),
            "log densities": _frames("log_densities"),
            "responsibilities": (("responsibilities.py", "normalized"),),
            "moments": _frames("moments"),
            "uncertain rows, counted": (("e_step.py", "_ambiguity"),),
        },
    ),
    "a fit": Pass(
        FIT,
        _fit,
        {
            "sweeps": (("e_step.py", "e_step"),),
            "acceleration": (("anderson_acceleration.py", "proposal"),),
            "matrices": (("missing_information.py", "missing_information"),),
            "products with one": (("missing_information.py", "missing_information_product"),),
            "first M-step": (("e_step.py", "posterior_from_responsibilities"),),
        },
    ),
    "the matrix": Pass(
        INFORMATION,
        _information,
        {
            "uncertain rows, found": (("missing_information.py", "of_block"),),
            "moments of pairs": (("pairs.py", "moments"),),
            "into their frames": (("pairs.py", "add_to"),),
            "scaling": (("complete_information.py", "scale_in_place"),),
            "factor": (("observed_information.py", "_cholesky"),),
        },
    ),
    "influence on the means": Pass(
        INFLUENCE,
        _influence,
        {
            "E-step": (("responsibilities.py", "expect"),),
            "assignments fixed": (("matrices.py", "gradients"),),
            "assignments moving": (("influence_functions.py", "_add_reassignment"),),
        },
    ),
}


def measure(settings):
    single = dataclasses.replace(settings, threads=1)
    for name, one_pass in PASSES.items():
        for problem in single.problems(one_pass.problems):
            call = one_pass.prepared(problem)
            if call is not None:
                row = {"pass": name, **sizes(problem), "problem": f"{problem.name}: {name}"}
                yield row | _shares(call, one_pass.parts)


def _shares(call, parts):
    """Seconds of a call, and the share of every part."""
    call()
    profile = cProfile.Profile()
    rounds = 0
    while rounds < _MOST_ROUNDS and (not rounds or _seconds(profile) < _LEAST_SECONDS):
        profile.enable()
        call()
        profile.disable()
        rounds += 1
    functions = pstats.Stats(profile).stats
    total = _seconds(profile)
    row = {"seconds": total / rounds}
    for part, named in parts.items():
        spent = sum(
            cumulative
            for (file, _, function), (_, _, _, cumulative, _) in functions.items()
            if (Path(file).name, function) in named
        )
        row[part] = spent / total
    row["rest"] = 1.0 - sum(row[part] for part in parts)
    return row


def _seconds(profile):
    return pstats.Stats(profile).total_tt
