"""How to measure: on how many rows and threads, how often, and with which files."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.harness.clock import Clock
from benchmarks.problems.clusters import PROBLEMS

# How the quick mode makes problems small.
_QUICK_ROWS = 4  # times the root of a problem's rows, so that a size that grows still does
_QUICK_UNKNOWNS = 1250
_QUICK_COMPONENTS = 20
_QUICK_STRIDE = 3


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes
    ----------
    quick : bool, whether to take few rows and one repeat, only to see that everything runs
    threads : int, of BLAS, and of our library over blocks of rows
    repeats : int, rounds of a comparison
    mnist : str or None, npz with X_train, y_train, X_test, y_test, the zeros and ones of MNIST
    pca : str or None, npz with pixel_mean and components, the paper's projection
    published : str or None, npz with the published posterior of MNIST: params, and gibbs_mean, gibbs_sd,
        gibbs_ess, mfvb_mean, mfvb_sd, lrvb_sd of each; test_table
    published_simulations : str or None, npz with the authors' 200 simulations
    stored_chains : bool, whether to compare with the stored Gibbs chains even where R is installed
    """

    quick: bool = False
    threads: int = 1
    repeats: int = 3
    mnist: str | None = None
    pca: str | None = None
    published: str | None = None
    published_simulations: str | None = None
    stored_chains: bool = False

    @property
    def mode(self):
        """The name of the mode in the rows, "quick" or "full"."""
        return "quick" if self.quick else "full"

    def problems(self, names):
        """The named problems, made small in quick mode."""
        return self.sized(PROBLEMS[name] for name in names)

    def sized(self, problems):
        """The problems; in quick mode every third of the small ones, with few rows."""
        if not self.quick:
            return list(problems)
        small = [
            problem.scaled(int(_QUICK_ROWS * problem.n_samples**0.5))
            for problem in problems
            if problem.n_unknowns <= _QUICK_UNKNOWNS and problem.n_components <= _QUICK_COMPONENTS
        ]
        return small[::_QUICK_STRIDE]

    def rows(self, names, measured):
        """Yield a row for each named problem: its sizes, and what ``measured(problem, settings)`` finds."""
        for problem in self.problems(names):
            yield sizes(problem) | measured(problem, self)

    @property
    def clock(self):
        return Clock(1, 0.0) if self.quick else Clock(self.repeats)

    @cached_property
    def product_rate(self):
        """Floating point operations a second of a large matrix product."""
        size = 300 if self.quick else 1500
        matrix = np.random.default_rng(0).normal(size=(size, size))
        times = Clock(5, 0.0).interleaved({"product": lambda: matrix @ matrix})["product"]
        return 2 * size**3 / min(times)


def sizes(problem):
    """Columns of a row: what the problem is."""
    return {
        "problem": problem.name,
        "n_samples": problem.n_samples,
        "n_features": problem.n_features,
        "n_components": problem.n_components,
        "distance": problem.distance,
        "covariance_type": problem.covariance_type,
    }
