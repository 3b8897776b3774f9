"""Whether rows are those of the fit: by sums over them that other rows do not have.

Every row x has z, its values in units of the columns, and a weight c between 0 and 1 that depends on all of z
and on which values are missing. The sums of c and of c z, as often as rows count, are kept with the fit. The
order of the rows, and how they are stored, change them by round-off of sums alone, however dependent columns
are: no matrix takes part. The lower bound would not do: where a covariance is nearly singular its rounding is
amplified as much as a change of X.

A change of one value by 1e-9 N units of its column, or more, is seen. Smaller changes may pass: they do not
matter to a fit of N rows.
"""

import functools
from dataclasses import dataclass

import numpy as np

# Difference of sums, relative to the sizes of their terms, up to which rows count as the same: 10^7 times the
# rounding of a number.
_RELATIVE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class TrainingSums:
    """Sums over the rows of a fit.

    Attributes
    ----------
    posterior : VariationalPosterior of the fit, which sets the units of the columns
    sums : (2 + P,), how many rows there are, weights counted, and sums of c and of c z
    """

    posterior: object
    sums: np.ndarray

    @classmethod
    def of(cls, posterior, rows):
        """The sums over some rows, measured from the posterior's origin."""
        return cls(posterior, _sums(posterior, rows)[0])

    def difference(self, rows):
        """What makes rows others than those of the fit, the end of a sentence; None where they are the same.

        Parameters
        ----------
        rows : CentredRows
        """
        found, sizes = _sums(self.posterior, rows)
        changes = np.abs(found - self.sums)
        changed = ~(changes <= _RELATIVE_TOLERANCE * sizes)  # NaN is a change.
        if not changed.any():
            return None
        if changed[0]:
            return f"it counts {found[0]:.10g} rows, and that of the fit {self.sums[0]:.10g}"
        largest = np.divide(changes, sizes, out=np.ones_like(changes), where=sizes > 0)[changed].max()
        return f"sums over its rows differ from those of the fit by up to a relative {largest:.1g}"


def _sums(posterior, rows):
    """The sums of `TrainingSums`, and those of the sizes of their terms: (2, 2 + P)."""
    layout, counts = posterior.structure.layout, posterior.counts[:, None]
    deviations = layout.per_component(posterior.structure.deviations(posterior.covariance_cholesky))
    squares = np.square(deviations) + np.square(posterior.centred_means)
    units = np.sqrt((counts * squares).sum(axis=0) / counts.sum())
    return rows.total(functools.partial(_sums_of_block, units))


def _sums_of_block(units, block):
    """The sums over a block, (2, 2 + P)."""
    z = block.rows / units[:, None]
    direction = np.cos(1.0 + np.arange(len(z)))  # A generic one: no other row is likely to have the same c.
    projection = direction @ z
    if block.holes is not None:
        projection += direction @ block.holes.by_row(block.holes.hidden.T)
    c = block.weighted(1.0 / (1.0 + np.square(projection)))
    of_both = [block.counts.sum(), c.sum()]
    return np.array([[*of_both, *(z @ c)], [*of_both, *(np.abs(z) @ c)]])
