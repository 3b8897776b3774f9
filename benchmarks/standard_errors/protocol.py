"""What every way to standard errors is given, and what it gives back."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from near_flat_prior import NearFlatPrior

from sklearn_lrvb import LRVBGaussianMixture


@dataclass(frozen=True)
class Effort:
    """How much work those do that have no end of their own.

    Attributes
    ----------
    n_replicates : int, of a bootstrap
    n_effective : int, a chain goes on until its slowest parameter has as many effective draws
    most_draws : int, after which a chain ends even so
    n_warm_up : int, draws of NUTS that are thrown away
    longest : float, seconds of the processor after which NUTS, warm-up included, makes no further draws
    """

    n_replicates: int = 200
    n_effective: int = 1000
    most_draws: int = 100_000
    n_warm_up: int = 500
    longest: float = 600.0


@dataclass(frozen=True)
class Task:
    """Rows, prior, and how far to go.

    Attributes
    ----------
    X : (n_samples, n_features)
    prior : NearFlatPrior, of those who take one
    optimum : LRVBGaussianMixture, our fit under this prior: where chains start, and whose labels all take
    effort : Effort
    """

    X: np.ndarray
    prior: NearFlatPrior
    optimum: LRVBGaussianMixture
    effort: Effort


@dataclass(frozen=True)
class StandardErrors:
    """What came of it.

    Attributes
    ----------
    sds : (D,), in the order of ``posterior_names_``
    seconds : float, of the processor: the fit, and all replicates or 1000 effective draws of every parameter
    columns : dict, further columns of the row, "sd_error" among them where sds vary by chance
    """

    sds: np.ndarray
    seconds: float
    columns: dict = field(default_factory=dict)


class Peer(Protocol):
    """One way to standard errors."""

    name: str

    def missing(self):
        """What there is to install, and how; empty where all is there."""

    def version(self):
        """The package and its version."""

    def standard_errors(self, task):
        """`StandardErrors` of a task."""
