"""The maximum of the likelihood next to a posterior, by which other programs compare numbers of classes.

EM goes on from the sums of the posterior, without the prior.
"""

import functools

import numpy as np
from scipy.special import logsumexp

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.family_mixture.coordinates import values_of
from sklearn_lrvb.mixture.model import DegenerateComponentError

_SMALL_GAIN = 1e-8  # EM stops when an iteration gains less, in nats.
_MAX_ITERATIONS = 5000
_LEAST_COUNT = 1e-300  # Weights may be zero, but their logarithms remain numbers.
_LEAST_DEVIATION = 1e-4  # In units of the column's: sums of squares have few digits below.


def maximum_log_likelihood(rows, posterior, held):
    """The maximum of the log likelihood to which EM leads, a float.

    Parameters
    ----------
    rows : Rows, those that count
    posterior : ClassPosterior
    held : bool (K,), the classes that take part

    Raises
    ------
    ValueError
        Where the likelihood has no maximum, as a standard deviation falls to zero.
    """
    prior, sums, before = posterior.prior, posterior.sums[held], -np.inf
    for _ in range(_MAX_ITERATIONS):
        function = functools.partial(_sums_of_block, prior, _statistics(prior, sums))
        log_likelihood, sums = rows.total(function)
        if log_likelihood - before < _SMALL_GAIN:
            break
        before = log_likelihood
    else:
        warn_caller(
            f"EM did not reach the maximum of the likelihood in {_MAX_ITERATIONS} iterations: aic and bic "
            "are too large."
        )
    return float(log_likelihood)


def _statistics(prior, sums):
    """T at the estimates of maximum likelihood of every class, given sums over its rows: (K, W)."""
    parts = []
    for family, part in zip(prior.families, prior.split(sums), strict=True):
        values = family.estimated(part)
        if family.deviation_entry is not None:
            _require_deviations(prior, family, values[..., family.deviation_entry])
        parts.append(family.statistics_of(family.scalars_at(values[None], part), part)[0])
    counts = np.maximum(sums[:, 0], _LEAST_COUNT)
    return prior.joined(np.log(counts / counts.sum()), parts)


def _require_deviations(prior, family, deviations):
    is_narrow = ~(deviations > _LEAST_DEVIATION * family.units)
    if is_narrow.any():
        k, which = np.argwhere(is_narrow)[0]
        raise DegenerateComponentError(
            "There is no maximum of the likelihood: the standard deviation of column "
            f"{prior.columns[family.places[which]].name!r} falls to zero in class {k}, and so aic and bic "
            "are not defined. (a) Compare log_evidence_, which the prior keeps finite. (b) Lower "
            "n_components. (c) If the column has one value in many rows, let it be 'categorical' or 'count'."
        )


def _sums_of_block(prior, statistics, block):
    """Log likelihood of a block's rows, and sums of their features in every class, (K, W)."""
    values = values_of(block)
    features = prior.features(values)
    log_joint = statistics @ features
    log_densities = logsumexp(log_joint, axis=0)
    r = block.weighted(np.exp(log_joint - log_densities))
    return (log_densities + prior.log_base(values)) @ block.counts, r @ features.T
