"""Every special path of the library, switched off and on: what it is worth.

    python -m benchmarks.ablations               measures all of them (some minutes)
    python -m benchmarks.ablations acceleration  measures one

A special path is a second way to the same numbers that is there because it is faster. A new one has to make a
fit with an answer, mostly the error bars of the means, at least 1.5 times as fast, on a problem that is named
here. Both sides are run in turn on one thread, in processor time; the ratio is that of the least times.
"""

import argparse
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import process_time
from unittest.mock import patch

from threadpoolctl import threadpool_limits

from benchmarks.problems.clusters import PROBLEMS, WIDE, Problem
from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.linear_response.observed_information import SolverCosts

LEAST_RATIO = 1.5
_MIXTURE = "sklearn_lrvb.gaussian"


@dataclass(frozen=True)
class Ablation:
    """A special path, and how it is switched off.

    Attributes
    ----------
    path : str, what it is
    problem : Problem, on which it is worth most
    replaced : dict, name of a function or constant: what takes its place
    arguments : dict, of the mixture besides those of the problem
    question : callable (mixture, X), what is asked of the fit
    """

    path: str
    problem: Problem
    replaced: dict[str, object]
    arguments: dict[str, object] = field(default_factory=lambda: {"prior": "fixed"})
    question: Callable = lambda mixture, X: mixture.means_std_

    def switched_off(self):
        """Context in which the path is not taken."""
        stack = ExitStack()
        for name, replacement in self.replaced.items():
            stack.enter_context(patch(name, replacement))
        return stack


def _without_dual(costs, n_targets, _costs=SolverCosts.costs):
    return {solver: cost for solver, cost in _costs(costs, n_targets).items() if solver != "dual"}


ABLATIONS = (
    Ablation(
        "acceleration of the iterations",
        PROBLEMS["five"].scaled(10_000),
        {"sklearn_lrvb.mixture.acceleration.AndersonMixing.combination": lambda *arguments: None},
        {"tails": "student"},
    ),
    Ablation(
        "Newton steps before the iterations arrive",
        PROBLEMS["few-five"],
        {"sklearn_lrvb.mixture.acceleration.Acceleration.newton_pays": lambda *arguments: False},
        {},
    ),
    Ablation(
        "coordinates that all components share",
        PROBLEMS["twenty-diagonal"],
        {
            f"{_MIXTURE}.e_step.coordinates.MAX_AMPLIFICATION": 0.0,
            f"{_MIXTURE}.information.missing_information.MAX_AMPLIFICATION": 0.0,
        },
        question=lambda mixture, X: [mixture.predict(X) for _ in range(5)],
    ),
    Ablation(
        "missing information by pairs of components",
        PROBLEMS["ten"],
        {f"{_MIXTURE}.information.observed_information._FLOPS_PER_FULL_PAIR": 1e30},
    ),
    Ablation(
        "the dual solver",
        Problem("400 rows, 150 features", 400, 150, 2, spread=0.5, shapes="equal"),
        {"sklearn_lrvb.linear_response.observed_information.SolverCosts.costs": _without_dual},
    ),
    Ablation(
        "the dual solver of learned hyperparameters",
        Problem("400 rows, 60 features", 400, 60, 2, spread=1.0, shapes="equal"),
        {"sklearn_lrvb.linear_response.observed_information.SolverCosts.costs": _without_dual},
        {},
    ),
    Ablation(
        "the factor of what a typical covariance loses",
        Problem("1,500 rows, 40 features", 1500, 40, 8, spread=1.5),
        {
            f"{_MIXTURE}.information.{module}.MOST_FACTORED": 0
            for module in ("learned_prior_information", "observed_information")
        },
        {},
        lambda mixture, X: mixture.leverage(X),
    ),
    Ablation(
        "the space that few rows span",
        next(problem for problem in WIDE if problem.name == "40 x 1000" and problem.n_components == 3),
        {f"{_MIXTURE}.fitting.row_span.RowSpan.if_smaller": lambda *arguments: None},
    ),
)


def answered(ablation, X):
    """A fit of a problem's rows, and its answer to the question."""
    problem = ablation.problem
    mixture = LRVBGaussianMixture(
        n_components=problem.n_components,
        covariance_type=problem.covariance_type,
        max_iter=1000,
        random_state=0,
        **ablation.arguments,
    ).fit(X)
    return mixture, ablation.question(mixture, X)


def measure(ablation, rounds):
    """Least processor seconds of a fit with its error bars, with the path and without it."""
    X, least = ablation.problem.simulate(), [float("inf")] * 2
    for _ in range(rounds):
        for is_off in (False, True):
            with ablation.switched_off() if is_off else ExitStack():
                begin = process_time()
                answered(ablation, X)
                least[is_off] = min(least[is_off], process_time() - begin)
    return least


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ablations", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "words", nargs="*", help="measure only paths whose description has one of these words"
    )
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for ablation in ABLATIONS:
            if not chosen.words or any(word in ablation.path for word in chosen.words):
                on, off = measure(ablation, chosen.rounds)
                verdict = "stays" if off >= LEAST_RATIO * on else f"below {LEAST_RATIO}"
                print(
                    f"{ablation.path:45} {ablation.problem.name:25} {on:8.3f} s, without {off:8.3f} s: "
                    f"{off / on:.2f}, {verdict}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
