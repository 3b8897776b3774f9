"""The optimum without one row, from that with it.

The sweeps go over all rows, and subtract what the row adds to their sums. So a row can be left out wherever
the rows are, and nothing is copied. The sweeps are accelerated by Anderson's method
(`anderson_acceleration`); a proposal is taken if it raises the lower bound of the other rows.
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.e_step import e_step
from sklearn_lrvb.gaussian_mixture.e_step.own_frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect
from sklearn_lrvb.gaussian_mixture.fitting.anderson_acceleration import Acceleration
from sklearn_lrvb.gaussian_mixture.posterior.degenerate_components import DegenerateComponentError
from sklearn_lrvb.gaussian_mixture.posterior.sufficient_statistics import statistics_residual
from sklearn_lrvb.row_blocks import RowBlock

_MOST_SWEEPS = 100
# Distance that a sweep moves the posterior by at the end, in mean-field standard deviations: the one that is
# aimed at, and the one that will do where the sweeps are slow.
_TOLERANCE, _SLOW_TOLERANCE = 1e-4, 1e-2
_ROUND_OFF = 1e-10  # Of the lower bound, relative.


def blocks_of_rows(rows, numbers):
    """Some of the rows, each as a block of its own: dict of number -> RowBlock."""
    parts = rows.gathered(functools.partial(_single_rows, np.asarray(numbers)))
    return {number: block for part in parts for number, block in part}


def _single_rows(wanted, block):
    singles = []
    for place in np.flatnonzero(np.isin(block.numbers, wanted)):
        own = np.array([place])
        weight = None if block.sample_weight is None else block.sample_weight[own]
        holes = None if block.holes is None else block.holes.selected(own)
        single = RowBlock(block.rows[:, own], weight, 0, block.numbers[own], holes)
        singles.append((int(block.numbers[place]), single))
    return singles


def score_without(rows, posterior, block):
    """Score of a row under the optimum for all other rows; NaN if there is none, or it is not reached.

    Parameters
    ----------
    rows : CentredRows, the training rows
    posterior : VariationalPosterior, the optimum for all of them
    block : RowBlock, the row
    """
    acceleration, bound, next_posterior = Acceleration(), -np.inf, None
    for _ in range(_MOST_SWEEPS):
        result, frames = e_step(rows, posterior), OwnFrames(posterior)
        own = expect(frames, block)
        of_others = result.lower_bound - float(block.weighted(own.log_normalizer)[0])
        if of_others < bound - _ROUND_OFF * abs(bound):
            acceleration.reject()
            posterior, bound = next_posterior, -np.inf
            continue
        of_row = frames.moments(own.whitened, block.weighted(own.responsibilities))
        moments = result.moments - posterior.with_noise(of_row)
        distance = posterior.deviation(statistics_residual(posterior, moments))
        if distance < _TOLERANCE:
            return float(own.log_normalizer[0])
        acceleration.record(distance)
        try:
            next_posterior = posterior.m_step(moments)
        except DegenerateComponentError:
            return np.nan
        bound, posterior = of_others, _proposed(acceleration, posterior, next_posterior)
    return float(own.log_normalizer[0]) if distance < _SLOW_TOLERANCE else np.nan


def _proposed(acceleration, posterior, next_posterior):
    """What the last sweeps lead to, or the result of the last one."""
    try:
        return acceleration.proposal(posterior, next_posterior) or next_posterior
    except DegenerateComponentError:
        return next_posterior
