"""Whether rows are those of the fit: by sums over them that other rows do not have.

Every row x has z, its values in units of the columns, and a weight c between 0 and 1 that depends on all of z
and on which values are missing. The sums of c and of c z, as often as rows count, are kept with the fit. The
order of the rows, and how they are stored, change them by round-off of sums alone, however dependent columns
are: no matrix takes part. The lower bound would not do: where a covariance is nearly singular its rounding is
amplified as much as a change of X.
"""

import functools
from dataclasses import dataclass

import numpy as np

# Relative difference of sums that is more than round-off: 10^7 times that of a number.
_LEAST_CHANGE = 1e-9


@dataclass(frozen=True)
class TrainingSums:
    """Sums over the rows of a fit.

    Attributes
    ----------
    posterior : VariationalPosterior of the fit, which sets the units of the columns
    sums : (2 + P,), numbers of rows, and sums of c and of c z
    """

    posterior: object
    sums: np.ndarray

    @classmethod
    def of(cls, posterior, rows):
        """The sums over some rows, measured from the posterior's origin."""
        return cls(posterior, _sums(posterior, rows, np.positive))

    def difference(self, rows):
        """What makes rows others than those of the fit, in words; None where they are the same.

        Parameters
        ----------
        rows : CentredRows
        """
        found, sizes = _sums(self.posterior, rows, np.positive), _sums(self.posterior, rows, np.abs)
        changes = np.abs(found - self.sums)
        changed = changes > _LEAST_CHANGE * sizes
        if not changed.any():
            return None
        if changed[0]:
            return f"it counts {found[0]:.10g} rows, and that of the fit {self.sums[0]:.10g}"
        largest = np.divide(changes, sizes, out=np.ones_like(changes), where=sizes > 0)[changed].max()
        return f"sums over its rows differ from those of the fit by up to a relative {largest:.1g}"


def _sums(posterior, rows, size):
    """The sums of `TrainingSums`, or of the sizes of their terms."""
    layout, counts = posterior.structure.layout, posterior.counts[:, None]
    deviations = layout.per_component(posterior.structure.deviations(posterior.covariance_cholesky))
    squares = np.square(deviations) + np.square(posterior.centred_means)
    units = np.sqrt((counts * squares).sum(axis=0) / counts.sum())
    return rows.total(functools.partial(_sums_of_block, units, size))


def _sums_of_block(units, size, block):
    """The sums over a block, (2 + P,)."""
    z = block.rows / units[:, None]
    direction = np.cos(1.0 + np.arange(len(z)))  # A generic one: no other row is likely to have the same c.
    projection = direction @ z
    if block.holes is not None:
        projection += direction @ (1.0 - block.seen)
    c = block.weighted(1.0 / (1.0 + np.square(projection)))
    return np.concatenate([[block.counts.sum(), c.sum()], size(z) @ c])
