"""How experiments are measured: settings, a clock, and rows that are written as they come."""

import datetime
import math
import platform
import re
import statistics
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks.harness import experiments, rows
from benchmarks.problems.clusters import PROBLEMS

# How the quick mode makes problems small: this times the root of a problem's rows, so that a size that grows
# still does; and every fifth of the problems that have no more unknowns and components than these.
_QUICK_ROWS, _QUICK_STRIDE, _QUICK_UNKNOWNS, _QUICK_COMPONENTS = 4, 5, 1250, 20


@dataclass(frozen=True)
class Clock:
    """Times calls in turn, so that a change in the machine's load meets all of them.

    Attributes
    ----------
    repeats : int, number of rounds
    shortest : float, least duration of one measurement in seconds: a shorter call is repeated within it
    longest : float, seconds after which no further round begins
    """

    repeats: int
    shortest: float = 0.05
    longest: float = 60.0

    def interleaved(self, calls):
        """Seconds of every call in every round: {name: callable} -> {name: list}."""
        times = {name: [] for name in calls}
        begin = perf_counter()
        for _ in range(self.repeats):
            for name, call in calls.items():
                seconds = _elapsed(call, 1)
                if seconds < self.shortest:
                    seconds = _elapsed(call, math.ceil(self.shortest / seconds))
                times[name].append(seconds)
            if perf_counter() - begin > self.longest:
                break
        return times

    def once(self, calls):
        """Seconds of every call, each made once: {name: callable} -> {name: list of one}."""
        return {name: [_elapsed(call, 1)] for name, call in calls.items()}


def _elapsed(call, number):
    begin = perf_counter()
    for _ in range(number):
        call()
    return (perf_counter() - begin) / number


def summary(times):
    """Columns of a row: the least and the median of every call's seconds."""
    least = {f"{name}_seconds": min(seconds) for name, seconds in times.items()}
    return least | {f"{name}_median": statistics.median(seconds) for name, seconds in times.items()}


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

    def problems(self, names):
        """The named problems, made small in quick mode."""
        return self.sized(PROBLEMS[name] for name in names)

    def sized(self, problems):
        """The problems; in quick mode every fifth of the small ones, with few rows."""
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
    names = ("n_samples", "n_features", "n_components", "distance", "covariance_type")
    return {"problem": problem.name} | {name: getattr(problem, name) for name in names}


def run(names, settings, folder):
    """Measure experiments by name; every row is appended to its CSV file as soon as it is measured."""
    import scipy
    import sklearn
    from sklearn.exceptions import ConvergenceWarning

    import sklearn_lrvb

    folder.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(settings.threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the rows say whether a fit converged
        warnings.filterwarnings("ignore", "A covariance matrix of")  # tables are as wide as they are
        for name in names:
            for row in experiments.module(name).measure(settings):
                pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
                common = {
                    "mode": "quick" if settings.quick else "full",
                    "threads": settings.threads,
                    "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                    "cpu": cpu(),
                    "python": platform.python_version(),
                    "numpy": np.__version__,
                    "scipy": scipy.__version__,
                    "scikit-learn": sklearn.__version__,
                    "sklearn-lrvb": sklearn_lrvb.__version__,
                    "blas": ", ".join(
                        sorted({f"{pool['internal_api']} {pool['version']}" for pool in pools})
                    ),
                }
                rows.append(folder / f"{name}.csv", row | common)
                shown = (f"{column} {cell}" for column, cell in row.items() if column != "points")
                print(f"{name}: {', '.join(shown)}", flush=True)


def cpu():
    """The processor's name."""
    information = Path("/proc/cpuinfo")
    found = information.exists() and re.search(r"model name\s*: (.*)", information.read_text())
    return found[1] if found else platform.processor()
