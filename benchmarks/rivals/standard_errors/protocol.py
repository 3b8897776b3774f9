"""What every way to standard errors is given, and what it returns."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from benchmarks.problems.near_flat_prior import NearFlatPrior
from sklearn_lrvb import LRVBGaussianMixture


@dataclass(frozen=True)
class Effort:
    """How much work is done by ways that could always do more.

    Attributes
    ----------
    n_replicates : int, of a bootstrap
    n_effective : int, effective draws of the slowest parameter after which a chain ends
    most_draws : int, draws after which a chain ends in any case
    n_warm_up : int, draws of NUTS that are discarded
    longest : float, seconds of the processor, warm-up included, after which NUTS makes no further draws
    n_timed_fits : int, fits of ours, of whose times the median is taken
    """

    n_replicates: int = 200
    n_effective: int = 1000
    most_draws: int = 100_000
    n_warm_up: int = 500
    longest: float = 600.0
    n_timed_fits: int = 20


@dataclass(frozen=True)
class Task:
    """A posterior whose standard errors are wanted.

    Attributes
    ----------
    X : (n_samples, n_features)
    prior : NearFlatPrior, which the bootstraps ignore
    optimum : LRVBGaussianMixture, our fit under this prior, where chains start and to which components are
        matched
    effort : Effort
    """

    X: np.ndarray
    prior: NearFlatPrior
    optimum: LRVBGaussianMixture
    effort: Effort


@dataclass(frozen=True)
class StandardErrors:
    """Standard errors, and how long they took.

    Attributes
    ----------
    sds : (D,), in the order of ``posterior_names_``
    seconds : float, of the processor: the fit, and all replicates or 1000 effective draws of every parameter
    columns : dict, further columns of the row, with "sd_error" where the sds have Monte Carlo error
    """

    sds: np.ndarray
    seconds: float
    columns: dict = field(default_factory=dict)


class Peer(Protocol):
    """One way to standard errors."""

    name: str

    def missing(self):
        """What has to be installed, and how; empty if nothing is missing."""

    def version(self):
        """Name and version of the package."""

    def standard_errors(self, task):
        """`StandardErrors` of a task."""
