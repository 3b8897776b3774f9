"""Clock, speed of a matrix product, peak memory, and what the measurements were taken on."""

import datetime
import math
import platform
import re
import statistics
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy
import sklearn
from problems import PROBLEMS
from threadpoolctl import threadpool_info

import sklearn_lrvb

# of a problem in quick mode
_QUICK_ROWS = 4  # times the root of its rows, so that what grows still does
_QUICK_UNKNOWNS = 1250
_QUICK_COMPONENTS = 20
_QUICK_STRIDE = 3


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes
    ----------
    quick : bool, few rows and one repeat, to see that everything runs
    threads : int, of BLAS and of ours over blocks of rows
    repeats : int, rounds of a comparison
    mnist : str or None, npz with X_train, y_train, X_test, y_test, the zeros and ones of MNIST
    pca : str or None, npz with pixel_mean and components, the paper's projection
    published : str or None, npz with the published posterior of MNIST: params, and gibbs_mean, gibbs_sd,
        gibbs_ess, mfvb_mean, mfvb_sd, lrvb_sd of each; test_table
    published_simulations : str or None, npz with the authors' 200 simulations
    stored_chains : bool, whether to compare with the stored Gibbs chains even where R is there
    """

    quick: bool
    threads: int
    repeats: int
    mnist: str | None = None
    pca: str | None = None
    published: str | None = None
    published_simulations: str | None = None
    stored_chains: bool = False

    def problems(self, names):
        """The named problems, sized."""
        return self.sized(PROBLEMS[name] for name in names)

    def sized(self, problems):
        """The problems, in quick mode every third of the small ones with few rows."""
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
        """Flops a second of a large matrix product."""
        size = 300 if self.quick else 1500
        matrix = np.random.default_rng(0).normal(size=(size, size))
        times = Clock(5, 0.0).interleaved({"product": lambda: matrix @ matrix})["product"]
        return 2 * size**3 / min(times)


@dataclass(frozen=True)
class Clock:
    """Times calls in turn.

    Attributes
    ----------
    repeats : int
    shortest : float, seconds that one measurement takes at least: a shorter call is repeated in it
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
                times[name].append(self._seconds(call))
            if perf_counter() - begin > self.longest:
                break
        return times

    def _seconds(self, call):
        elapsed = _elapsed(call, 1)
        if elapsed >= self.shortest:
            return elapsed
        return _elapsed(call, math.ceil(self.shortest / elapsed))


def _elapsed(call, number):
    begin = perf_counter()
    for _ in range(number):
        call()
    return (perf_counter() - begin) / number


def summary(times):
    """Columns of a row: the least and the median of every call's seconds."""
    row = {}
    for name, seconds in times.items():
        row[f"{name}_seconds"] = min(seconds)
        row[f"{name}_median"] = statistics.median(seconds)
    return row


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


def machine():
    """Columns of a row: versions, processor and date."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": cpu(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "sklearn-lrvb": sklearn_lrvb.__version__,
        "blas": _blas(),
    }


def _blas():
    """The libraries loaded: numpy and scipy may each bring their own."""
    pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return ", ".join(sorted({f"{pool['internal_api']} {pool['version']}" for pool in pools}))


def cpu():
    """The processor's name."""
    information = Path("/proc/cpuinfo")
    found = information.exists() and re.search(r"model name\s*: (.*)", information.read_text())
    return found[1] if found else platform.processor()


def peak_memory(call):
    """Bytes by which a call raises the memory of this process at its peak (Linux).

    `resource.getrusage` would not do: a process inherits the peak of the one that started it.
    """
    Path("/proc/self/clear_refs").write_text("5")  # the peak is forgotten
    before = _status("VmRSS")
    call()
    return _status("VmHWM") - before


def _status(field):
    return 1024 * int(re.search(rf"{field}:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])
