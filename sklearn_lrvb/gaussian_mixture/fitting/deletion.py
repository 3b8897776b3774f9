"""The optimum without one row, from that with it.

The sweeps go over all rows, and subtract what the row adds to their sums. So a row can be left out wherever
the rows are, and no other row is copied. The sweeps are accelerated by Anderson's method
(`anderson_acceleration`); a proposal is kept if the lower bound of the other rows is not lower there than
before the last sweep.
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


def single_row_blocks(rows, places):
    """Some of the rows, int array of places among them, each as a block: dict of place -> RowBlock."""
    parts = rows.gathered(functools.partial(_single_rows, np.asarray(places)))
    return {place: block for part in parts for place, block in part}


def _single_rows(wanted, block):
    singles = []
    for place in np.flatnonzero(np.isin(block.numbers, wanted)):
        own = np.array([place])
        weight = None if block.sample_weight is None else block.sample_weight[own]
        holes = None if block.holes is None else block.holes.selected(own)
        single = RowBlock(block.rows[:, own], weight, 0, block.numbers[own], holes)
        singles.append((int(block.numbers[place]), single))
    return singles


def refitted_score(rows, posterior, block):
    """Score of a row at the optimum for all other rows; NaN if there is none, or it is not reached.

    Parameters
    ----------
    rows : CentredRows, the training rows
    posterior : VariationalPosterior, the optimum for all of them
    block : RowBlock, the row
    """
    acceleration, bound, swept = Acceleration(), -np.inf, posterior
    score, distance = np.nan, np.inf  # Of the last state that was kept.
    for _ in range(_MOST_SWEEPS):
        result, frames = e_step(rows, posterior), OwnFrames(posterior)
        own = expect(frames, block)
        of_others = result.lower_bound - float(block.weighted(own.log_normalizer)[0])
        if not of_others >= bound - _ROUND_OFF * abs(bound):  # NaN is a fall too.
            acceleration.reject()
            posterior, bound = swept, -np.inf
            continue
        if posterior is not swept:
            acceleration.accept()
        of_row = frames.moments(own.whitened, block.weighted(own.responsibilities))
        moments = result.moments - posterior.with_noise(of_row)
        distance = posterior.deviation(statistics_residual(posterior, moments))
        score = float(own.log_normalizer[0])
        if distance < _TOLERANCE:
            break
        acceleration.record(distance)
        try:
            swept = posterior.m_step(moments)
        except DegenerateComponentError:
            return np.nan
        bound, posterior = of_others, _proposed(acceleration, posterior, swept)
    return score if distance < _SLOW_TOLERANCE else np.nan


def _proposed(acceleration, posterior, next_posterior):
    """What the last sweeps lead to, or the result of the last one."""
    try:
        return acceleration.proposal(posterior, next_posterior) or next_posterior
    except DegenerateComponentError:
        return next_posterior
