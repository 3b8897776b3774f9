"""Scores of rows without the row, or without its group, by one step or by a refit where that is rough.

*The optimum without one row, from that with it.* The first step is Newton's, with the information of all
rows. The iterations after it go over all rows, and subtract what the row adds to their sums. So a row can be
left out wherever the rows are, and no other row is copied. The iterations are accelerated by Anderson's
method (`acceleration`). A step is kept if the lower bound of the other rows is not lower there than before
the last iteration.
"""

import contextlib
import functools

import numpy as np

from sklearn_lrvb.answers.leave_group_out import scores_without_group
from sklearn_lrvb.answers.leave_one_out import (
    ROUGH,
    WORTH_A_REFIT,
    changes_by_response,
    one_steps,
    scores_of_one_step,
)
from sklearn_lrvb.mixture.acceleration import Acceleration
from sklearn_lrvb.mixture.e_step import e_step, expect
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.mixture.prediction import scores_of_rows
from sklearn_lrvb.mixture.refit import refitted

# Most refits that one call makes: so many that their iterations go through this many rows at a time, but at
# least the second number, however many rows there are.
_ROWS_OF_REFITS, _LEAST_REFITS = 200_000, 25

_MOST_ITERATIONS = 100
# Distance that an iteration moves the posterior by at the end, in mean-field standard deviations: the one
# that is aimed at, by which scores are off by less than 0.01 nats as a rule, and the one that slow iterations
# may end at.
_TOLERANCE, _SLOW_TOLERANCE = 3e-3, 1e-2
_ROUND_OFF = 1e-10  # Of the lower bound, relative.


def scores_without_rows(rows, counted, uncertainty, tracked):
    """The score of every row at the fit without it, refitted where one step may be too far.

    Parameters
    ----------
    rows, counted : Rows, all rows, and those that count
    uncertainty : PosteriorUncertainty
    tracked : Tracked, through which the rows and the refits are gone

    Returns
    -------
    scores : (n_given,)
    without_score, rough : int arrays, numbers of the rows that have no score, and a rough one
    """
    steps = uncertainty.of_rows(rows, one_steps, (3,), tracked, by_kernels=False)
    scores, changes = scores_of_one_step(steps), changes_by_response(steps)
    if rows.is_lazy:
        # One pass for both questions, which keeps a byte for every row.
        doubts = np.asarray(np.isnan(scores) + 2 * (changes > ROUGH), np.int8)
        return scores, np.flatnonzero(doubts == 1), np.flatnonzero(doubts == 2)
    does_count = rows.which_count()
    changes[~does_count] = 0.0  # Rows that do not count are not left out.
    far, is_rough = _worth_refits(changes, rows.n_samples), changes > ROUGH
    if far.size:
        posterior, source = uncertainty.fitted.posterior, uncertainty.source
        at_optimum, information = e_step(counted, posterior), source.information(source.size)
        places = np.searchsorted(np.flatnonzero(does_count), far)
        blocks = _single_row_blocks(counted, places)
        for number, place in zip(far, tracked(places, far.size), strict=True):
            score = _refitted_score(counted, posterior, at_optimum, information, blocks[int(place)])
            if np.isfinite(score):
                scores[number], is_rough[number] = score, False
    return scores, np.flatnonzero(np.isnan(scores)), np.flatnonzero(is_rough)


def scores_without_groups(rows, counted, groups, uncertainty, tracked):
    """Scores of the rows of every group without the group, refitted where one step may be too far.

    Parameters
    ----------
    rows, counted, uncertainty, tracked : as in `scores_without_rows`
    groups : RowGroups of all rows

    Returns
    -------
    scores : (n_given,)
    without_score, rough : int arrays, places of the groups that have no scores, and rough ones
    """
    posterior, source = uncertainty.fitted.posterior, uncertainty.source
    information = source.information(min(source.size, rows.n_samples * posterior.n_labels))
    scores, changes = np.empty(rows.n_given), np.empty(len(groups))
    with source.threads():
        for number, (index, group) in enumerate(tracked(groups.each(rows), len(groups))):
            scores[index], changes[number] = scores_without_group(group, posterior, information)
    far, is_rough = _worth_refits(changes, rows.n_samples), changes > ROUGH
    along = groups.along_counted(rows, counted)
    for number in tracked(far, far.size):
        others, index = counted.reweighted(along.codes != number), np.flatnonzero(groups.codes == number)
        with contextlib.suppress(DegenerateComponentError):
            fit = refitted(others, posterior)
            if fit.converged:
                scores[index], is_rough[number] = scores_of_rows(rows.chosen(index), fit.posterior), False
    return scores, np.flatnonzero(np.isnan(changes)), np.flatnonzero(is_rough)


def _worth_refits(changes, n_rows):
    """Which rows or groups are refitted: those of the largest changes, as many as there is time for.

    Parameters
    ----------
    changes : (n,), in nats; NaN where there is no score
    n_rows : int, of all rows
    """
    far = np.flatnonzero(changes > WORTH_A_REFIT)
    far = far[np.argsort(-changes[far], kind="stable")]
    return far[: max(_LEAST_REFITS, _ROWS_OF_REFITS // n_rows)]


def _single_row_blocks(rows, places):
    """Some of the rows, int array of places among them, each as a block: dict of place -> RowBlock."""
    parts = rows.map(functools.partial(_single_rows, np.asarray(places)))
    return {place: block for part in parts for place, block in part}


def _single_rows(wanted, block):
    singles = []
    for place in np.flatnonzero(np.isin(block.numbers, wanted)):
        singles.append((int(block.numbers[place]), block.selected(np.array([place]))))
    return singles


def _refitted_score(rows, optimum, at_optimum, information, block):
    """Score of a row at the optimum for all other rows; NaN if there is none, or it is not reached.

    Parameters
    ----------
    rows : Rows, the training rows
    optimum : posterior of a mixture, the optimum for all of them
    at_optimum : EStepResult there
    information : ObservedInformation there
    block : RowBlock, the row
    """
    acceleration, bound, posterior, iterated = Acceleration(), -np.inf, optimum, optimum
    score, distance = np.nan, np.inf  # Of the last state that was kept.
    for _ in range(_MOST_ITERATIONS):
        result = at_optimum if posterior is optimum else e_step(rows, posterior)
        coordinates = posterior.model.coordinates(posterior)
        own = expect(coordinates, block)
        of_others = result.lower_bound - float(block.weighted(own.log_normalizer)[0])
        if not of_others >= bound - _ROUND_OFF * abs(bound):  # NaN is a fall too.
            acceleration.reject()
            posterior, bound = iterated, -np.inf
            continue
        if posterior is not iterated:
            acceleration.accept()
        of_row = coordinates.moments(own.represented, own.weights(block.weighted(own.responsibilities)))
        moments = result.moments - posterior.with_known_noise(of_row)
        score, distance = float(own.log_normalizer[0]), posterior.distance(moments)
        if distance < _TOLERANCE:
            break
        acceleration.record(distance)
        try:
            iterated = posterior.m_step(moments)
        except DegenerateComponentError:
            return np.nan
        bound = of_others
        try:
            if posterior is optimum:
                step = information.newton_step(posterior.residual(moments))[0]
                posterior = optimum.after_step(step)
            else:
                posterior = acceleration.proposal(posterior, iterated) or iterated
        except DegenerateComponentError:
            posterior = iterated
    return score if distance < _SLOW_TOLERANCE else np.nan
