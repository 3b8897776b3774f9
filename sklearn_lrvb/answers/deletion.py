"""The optimum without one row, from that with it.

The first step is Newton's, with the information of all rows. The sweeps after it go over all rows, and
subtract what the row adds to their sums. So a row can be left out wherever the rows are, and no other row is
copied. The sweeps are accelerated by Anderson's method (`acceleration`). A step is kept if the lower
bound of the other rows is not lower there than before the last sweep.
"""

import functools

import numpy as np

from sklearn_lrvb.mixture.acceleration import Acceleration
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.mixture.responsibilities import expect

_MOST_SWEEPS = 100
# Distance that a sweep moves the posterior by at the end, in mean-field standard deviations: the one that is
# aimed at, by which scores are off by less than 0.01 nats as a rule, and the one that slow sweeps may end at.
_TOLERANCE, _SLOW_TOLERANCE = 3e-3, 1e-2
_ROUND_OFF = 1e-10  # Of the lower bound, relative.


def single_row_blocks(rows, places):
    """Some of the rows, int array of places among them, each as a block: dict of place -> RowBlock."""
    parts = rows.map(functools.partial(_single_rows, np.asarray(places)))
    return {place: block for part in parts for place, block in part}


def _single_rows(wanted, block):
    singles = []
    for place in np.flatnonzero(np.isin(block.numbers, wanted)):
        singles.append((int(block.numbers[place]), block.selected(np.array([place]))))
    return singles


def refitted_score(rows, optimum, at_optimum, information, block):
    """Score of a row at the optimum for all other rows; NaN if there is none, or it is not reached.

    Parameters
    ----------
    rows : Rows, the training rows
    optimum : posterior of a mixture, the optimum for all of them
    at_optimum : EStepResult there
    information : ObservedInformation there
    block : RowBlock, the row
    """
    acceleration, bound, posterior, swept = Acceleration(), -np.inf, optimum, optimum
    score, distance = np.nan, np.inf  # Of the last state that was kept.
    for _ in range(_MOST_SWEEPS):
        result = at_optimum if posterior is optimum else e_step(rows, posterior)
        frames = posterior.model.own_frames(posterior)
        own = expect(frames, block)
        of_others = result.lower_bound - float(block.weighted(own.log_normalizer)[0])
        if not of_others >= bound - _ROUND_OFF * abs(bound):  # NaN is a fall too.
            acceleration.reject()
            posterior, bound = swept, -np.inf
            continue
        if posterior is not swept:
            acceleration.accept()
        of_row = frames.moments(own.framed, own.weights(block.weighted(own.responsibilities)))
        moments = result.moments - posterior.with_noise(of_row)
        residual = posterior.residual(moments)
        score, distance = float(own.log_normalizer[0]), posterior.deviation(residual)
        if distance < _TOLERANCE:
            break
        acceleration.record(distance)
        try:
            swept = posterior.m_step(moments)
        except DegenerateComponentError:
            return np.nan
        bound = of_others
        try:
            if posterior is optimum:
                posterior = optimum.after_step(information.newton_step(residual)[0])
            else:
                posterior = acceleration.proposal(posterior, swept) or swept
        except DegenerateComponentError:
            posterior = swept
    return score if distance < _SLOW_TOLERANCE else np.nan
