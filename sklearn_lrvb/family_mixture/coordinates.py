"""Features of a block of rows, and their log densities in the classes.

`ClassCoordinates` is what the E-step and the answers need of a posterior to go through the rows
(`mixture.e_step`). Features do not depend on the posterior: those of small tables are kept from pass to pass.
"""

import functools
import weakref
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sklearn_lrvb.family_mixture.posterior import ClassPosterior, Sums
from sklearn_lrvb.mixture.model import Coordinates
from sklearn_lrvb.rows import Workload
from sklearn_lrvb.rows.blocks import added

_KEPT_BYTES = 2**25  # The blocks of a table and their features are kept if they take no more memory.
_KEPT: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # KeptRows, by the rows.


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


class KeptRows:
    """The blocks of a small table and their features, which passes over the rows find ready.

    Features take most of a pass over a table. Of a Gaussian fit it is the centred rows that are worth keeping
    (`Rows.centred_once`).

    Parameters
    ----------
    rows : Rows, in memory
    coordinates : ClassCoordinates, by whose families and workload the blocks are made
    """

    def __init__(self, rows, coordinates):
        self.families, self.represented = coordinates.posterior.prior.families, {}
        for block in rows.map(lambda block: block, coordinates.workload):
            self.represented[block] = coordinates.represented(block)

    def total(self, function, workload=None):
        """As `Rows.total`, of the blocks that there are."""
        return functools.reduce(added, map(function, self.represented))


class ClassCoordinates(Coordinates):
    """The rows' features under a posterior.

    Parameters
    ----------
    posterior : ClassPosterior
    rows : Rows or None, whose features are kept if they are small
    """

    def __init__(self, posterior, rows=None):
        self.posterior = posterior
        n_labels, n_features = posterior.sums.shape
        # Rows of a block, and what is computed of them.
        self.workload = Workload(2 * n_features + 4 * n_labels, 0, n_labels)
        self._rows = rows

    @cached_property
    def kept_rows(self):
        """KeptRows, made by the first pass that asks for them, or None where features are not kept."""
        rows, prior = self._rows, self.posterior.prior
        if rows is None or not rows.is_in_memory:
            return None
        if 8 * rows.n_samples * (rows.n_features + prior.n_features) > _KEPT_BYTES:
            return None
        kept = _KEPT.get(rows)
        if kept is None or kept.families is not prior.families:
            kept = _KEPT[rows] = KeptRows(rows, ClassCoordinates(self.posterior))
        return kept

    def represented(self, block):
        """The features of a block's rows: ClassRows."""
        kept = vars(self).get("kept_rows")
        if kept is not None and block in kept.represented:
            return kept.represented[block]
        prior, values = self.posterior.prior, values_of(block)
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
    if block.missing is None:
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
    responsibilities : array (n_samples, K) for rows in memory, or callable RowBlock -> (n, K)
    """
    empty = ClassPosterior(prior, np.zeros((prior.n_components, prior.n_features)))
    coordinates = ClassCoordinates(empty, rows)
    function = functools.partial(_sums_of_block, coordinates, responsibilities)
    return empty.m_step((coordinates.kept_rows or rows).total(function, coordinates.workload))


def _sums_of_block(coordinates, responsibilities, block):
    r = responsibilities(block) if callable(responsibilities) else responsibilities[block.index]
    return coordinates.moments(coordinates.represented(block), block.weighted(np.asarray(r).T))
