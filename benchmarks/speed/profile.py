"""Where the time of a pass goes: the shares of its parts, on one thread.

A part is the time spent in some functions of the library and in what they call. The rest, which no part
names, is the Python around them and work of the size of the parameters.
"""

import cProfile
import dataclasses
import pstats
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.settings import sizes
from benchmarks.harness.tables import milliseconds, size, table, text
from benchmarks.problems.clusters import FIT, INFLUENCE, INFORMATION, SWEEP

TITLE = "Profile"
_LARGEST = 4_000  # unknowns of a matrix that is profiled
_LEAST_SECONDS, _LEAST_SECONDS_QUICKLY = 0.2, 0.05
_MOST_ROUNDS = 20


@dataclass(frozen=True)
class Pass:
    """A pass over the rows that is profiled.

    Attributes
    ----------
    problems : tuple of str, names of problems
    prepared : callable, problem -> the call to profile, or None where it would take too long
    parts : dict, part -> (file, function) pairs of the library, none of which calls another
    """

    problems: tuple
    prepared: Callable
    parts: dict


def _frames(function):
    return tuple((file, function) for file in ("frames.py", "pair_frame.py"))


def _fitted(problem, max_iter=300):
    """Rows, the start, our library, and its fit."""
    from benchmarks.rivals.libraries import Ours, kmeans_responsibilities

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
    from benchmarks.harness.inside import InformationPass

    if problem.n_unknowns > _LARGEST:
        return None
    X, _, _, mixture = _fitted(problem)
    information = InformationPass(mixture, X)
    return lambda: information.mean_std("primal")


def _influence(problem):
    X, _, _, mixture = _fitted(problem)
    _ = mixture.means_std_  # factors the information
    return lambda: mixture.influence(X)


PASSES = {
    "a sweep": Pass(
        SWEEP,
        _sweep,
        {
            "rows, centred": (("array_rows.py", "block"),),
            "into the frame": _frames("whiten"),
            "log densities": _frames("log_densities"),
            "responsibilities": (("responsibilities.py", "normalized"),),
            "moments": _frames("moments"),
            "ambiguous rows, counted": (("e_step.py", "_ambiguity"),),
        },
    ),
    "a fit": Pass(
        FIT,
        _fit,
        {
            "sweeps": (("e_step.py", "e_step"),),
            "acceleration": (("anderson_acceleration.py", "proposal"),),
            "matrices": (
                ("missing_information.py", "missing_information"),
                ("missing_information.py", "missing_information_from_features"),
            ),
            "products with one": (("missing_information.py", "missing_information_product"),),
            "first M-step": (("e_step.py", "posterior_from_responsibilities"),),
        },
    ),
    "the matrix": Pass(
        INFORMATION,
        _information,
        {
            "ambiguous rows, found": (
                ("responsibilities.py", "expect"),
                ("missing_information.py", "information_of_rows"),
                ("missing_information.py", "counting"),
            ),
            "moments of pairs": (
                ("pairs.py", "moments"),
                ("missing_information.py", "_products_of_monomials"),
            ),
            "into their frames": (
                ("pairs.py", "add_to"),
                ("missing_information.py", "_features_of_monomials"),
            ),
            "scaling": (("complete_information.py", "scale_in_place"),),
            "factor": (("factored_solvers.py", "_cholesky"),),
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
    """A row for every pass and problem, on one thread."""
    single = dataclasses.replace(settings, threads=1)
    for name, one_pass in PASSES.items():
        for problem in single.problems(one_pass.problems):
            call = one_pass.prepared(problem)
            if call is not None:
                row = {"pass": name, **sizes(problem), "problem": f"{problem.name}: {name}"}
                yield row | _shares(
                    call, one_pass.parts, _LEAST_SECONDS_QUICKLY if settings.quick else _LEAST_SECONDS
                )


def _shares(call, parts, least_seconds):
    """Seconds of a call, and the share of every part."""
    call()
    profile = cProfile.Profile()
    rounds = 0
    while rounds < _MOST_ROUNDS and (not rounds or _seconds(profile) < least_seconds):
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


def section(found):
    shown = "\n".join(f"{_capitalized(name)}:\n\n{_profile(name, found)}\n" for name in PASSES)
    return f"""The tables have the shares of the time of a pass on one thread, as a profiler measures them.
The rest, which no part names, is the Python around the parts and work of the size of the parameters.

{shown}"""


def _capitalized(name):
    return name[0].upper() + name[1:]


def _profile(name, found):
    parts = [*PASSES[name].parts, "rest"]
    return table(
        [
            ("problem", lambda row: row["problem"].split(":")[0]),
            ("N, P, K", size),
            ("ms", milliseconds("seconds")),
            *((part, text(part, "{:.0%}")) for part in parts),
        ],
        [row for row in found if row["pass"] == name],
    )
