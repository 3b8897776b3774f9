"""Features of a block of rows, and their log densities in the classes.

`ClassFrames` is what the E-step and the answers need of a posterior to go through the rows
(`mixtures.e_step`).
"""

import functools
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.family_mixture.posterior import ClassPosterior, Sums
from sklearn_lrvb.mixture.model import Frames
from sklearn_lrvb.rows import Workload


@dataclass(frozen=True)
class ClassRows:
    """Rows of a block.

    Attributes
    ----------
    features : (W, n)
    log_base : (n,), the part of the log densities that is the same in all classes
    """

    features: np.ndarray
    log_base: np.ndarray

    @property
    def n_rows(self):
        """n."""
        return self.features.shape[1]


class ClassFrames(Frames):
    """The rows' features under a posterior.

    Parameters
    ----------
    posterior : ClassPosterior
    """

    def __init__(self, posterior, rows=None):
        self.posterior = posterior
        n_labels, n_features = posterior.sums.shape
        # Rows of a block, and what is computed of them.
        self.workload = Workload(2 * n_features + 4 * n_labels, 0, n_labels)

    def whiten(self, block):
        """The features of a block's rows: ClassRows."""
        prior = self.posterior.prior
        values = values_of(block)
        return ClassRows(prior.features(values), prior.log_base(values))

    def log_densities(self, rows):
        """rho, the expected log densities of rows with each class, log weights included: (K, n), None."""
        return self.posterior.statistics @ rows.features + rows.log_base, None

    def moments(self, rows, weights):
        """Sums of the features, given weights of the rows in every class, (K, n): Sums."""
        return Sums(weights @ rows.features.T)

    def features(self, rows, k):
        return rows.features


def values_of(block):
    """Values of a block's rows column by column, NaN where missing: (P, n)."""
    if block.holes is None:
        return block.rows
    values = block.rows.copy()
    values[block.seen == 0] = np.nan
    return values


def posterior_from_responsibilities(rows, prior, responsibilities):
    """The posterior after an M-step from given responsibilities.

    Parameters
    ----------
    rows : Rows
    prior : ClassPrior
    responsibilities : array (n_samples, K), or callable RowBlock -> (n, K)
    """
    given, along = (responsibilities, None) if callable(responsibilities) else (None, responsibilities)
    workload = Workload(2 * prior.n_features + 4 * prior.n_components, 0, prior.n_components)
    sums = rows.total(functools.partial(_sums_of_block, prior, given), workload, along)
    return ClassPosterior(prior, np.zeros_like(sums)).m_step(Sums(sums))


def _sums_of_block(prior, given, block, along=None):
    responsibilities = along if given is None else given(block)
    return block.weighted(np.asarray(responsibilities).T) @ prior.features(values_of(block)).T
