"""E-step over all rows, the hot loop of the fit.

*Conventions.* Everything of size N x P lives one cache-sized block at a time. An iteration is one E-step and
the M-step from its moments.
"""

import functools
from dataclasses import dataclass
from typing import Any

from sklearn_lrvb.mixture.responsibilities import sums_of_block


@dataclass
class EStepResult:
    """The result of one pass over the rows at q; nothing of it changes.

    Attributes
    ----------
    lower_bound : float, the ELBO at q and the responsibilities that are optimal for it
    moments : moments of the rows, completed by the prior (*Moments* in `model`)
    n_alternatives : int
        Number of labels that a row may have besides the most probable one, summed over the rows.
    n_ambiguous_pairs : int
        Number of pairs of labels that a row may have, summed over the rows.
    """

    lower_bound: float
    moments: Any
    n_alternatives: int
    n_ambiguous_pairs: int


def e_step(rows, posterior, without=None):
    """One pass over the rows: the ELBO at ``posterior`` and the moments of its M-step.

    Parameters
    ----------
    rows : Rows
    posterior : posterior of a mixture
    without : int or None, a component that no row may belong to

    Returns
    -------
    result : EStepResult
    """
    divergence = posterior.divergences.total
    coordinates = posterior.model.coordinates(posterior, rows)
    function = functools.partial(sums_of_block, coordinates, without)
    moments, evidence, n_alternatives, n_pairs = (coordinates.kept_rows or rows).total(
        function, coordinates.workload
    )
    moments = posterior.with_prior(coordinates.in_own_coordinates(moments))
    return EStepResult(float(evidence - divergence), moments, n_alternatives, int(n_pairs))
