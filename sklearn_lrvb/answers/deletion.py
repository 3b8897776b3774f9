"""Scores of rows without the row, or without its group, by steps or by a refit where one step is rough.

*The optimum without one row, from that with it.* Newton's steps for all other rows have the information of
all rows less that of the row (`leave_one_out`), so that one matrix serves all steps without any of the rows.
What the iterations have left to do is a sum over all rows less what the row adds to it. So a row can be left
out wherever the rows are, and no other row is copied. Two steps settle most rows. Where steps do not become
much shorter, the other rows are refitted.
"""

import contextlib

import numpy as np

from sklearn_lrvb.answers.leave_group_out import scores_without_group
from sklearn_lrvb.answers.leave_one_out import (
    ROUGH,
    WORTH_MORE_STEPS,
    RowsLeftOut,
    changes_by_response,
    one_steps,
    scores_of_one_step,
)
from sklearn_lrvb.mixture.e_step import e_step, expect
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.mixture.prediction import scores_of_rows
from sklearn_lrvb.mixture.refit import refitted

# Most refits that one call makes: so many that their iterations go through this many rows at a time, but at
# least the second number, however many rows there are.
_ROWS_OF_REFITS, _LEAST_REFITS = 200_000, 25

# Length of the steps that are left, in mean-field standard deviations, at which a row is settled. By such a
# length scores are off by less than 0.01 nats as a rule. One that moves by m nats, and moves the further for
# it, may be off by 1 + m/1000 times as much.
_TOLERANCE, _RELATIVE_TOLERANCE = 5e-3, 1e-3
_SLOW = 0.9  # Length of a step relative to the last one from which on they do not settle.
_ARRAYS_OF_STEPS = 6  # Of as many numbers as unknowns, which steps for a row take besides its responses.


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
        far = np.sort(far)
        settled = _settled_scores(rows.chosen(far), counted, uncertainty, tracked)
        scores[far], is_rough[far] = np.where(np.isnan(settled), scores[far], settled), np.isnan(settled)
        unsettled = far[np.isnan(settled)]
        along = np.arange(rows.n_given) if counted.n_given == rows.n_given else np.flatnonzero(does_count)
        for number in tracked(unsettled, unsettled.size):
            refit = _refitted_scores(rows, counted, along != number, [number], uncertainty.fitted.posterior)
            if refit is not None:
                scores[number], is_rough[number] = refit[0], False
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
        index = np.flatnonzero(groups.codes == number)
        refitted_scores = _refitted_scores(rows, counted, along.codes != number, index, posterior)
        if refitted_scores is not None:
            scores[index], is_rough[number] = refitted_scores, False
    return scores, np.flatnonzero(np.isnan(changes)), np.flatnonzero(is_rough)


def _worth_refits(changes, n_rows):
    """Which rows or groups are refitted: those of the largest changes, as many as there is time for.

    Parameters
    ----------
    changes : (n,), in nats; NaN where there is no score
    n_rows : int, of all rows
    """
    far = np.flatnonzero(changes > WORTH_MORE_STEPS)
    far = far[np.argsort(-changes[far], kind="stable")]
    return far[: max(_LEAST_REFITS, _ROWS_OF_REFITS // n_rows)]


def _refitted_scores(rows, counted, is_other, index, posterior):
    """Scores of some rows, int array of their numbers, by a refit to others; None if it does not arrive.

    Parameters
    ----------
    rows, counted : as in `scores_without_rows`
    is_other : bool array along ``rows``, or along ``counted``
    posterior : posterior of a mixture, for all rows
    """
    with contextlib.suppress(DegenerateComponentError):
        fit = refitted(counted.reweighted(is_other), posterior)
        if fit.converged:
            return scores_of_rows(rows.chosen(index), fit.posterior)
    return None


def _settled_scores(rows, counted, uncertainty, tracked):
    """Scores of some rows by steps to the optimum for all others; NaN where they do not settle: (n,).

    Parameters
    ----------
    rows : ArrayRows, each of which is left out alone
    counted, uncertainty, tracked : as in `scores_without_rows`
    """
    posterior, source, scores = uncertainty.fitted.posterior, uncertainty.source, np.empty(rows.n_samples)
    information = source.information(source.size)
    responses = posterior.model.responses_of_rows(information, posterior, rows.n_samples, by_kernels=False)
    bytes_each = 8 * len(information) * (responses.n_directions + _ARRAYS_OF_STEPS)
    with source.threads():
        for block in rows.blocks(bytes_each, tracked):
            scores[block.index] = _settled_scores_of_block(responses, counted, block)
    return scores


def _settled_scores_of_block(responses, counted, block):
    own, optimum, open_rows = RowsLeftOut(responses, block), responses.posterior, np.arange(block.n_rows)
    singles = [block.selected(np.array([place])) for place in open_rows]
    in_sample, (scores, settled) = own.expectation.log_normalizer, np.full((2, block.n_rows), np.nan)
    steps, ratios = own.steps(own.residuals(), open_rows), np.ones(block.n_rows)
    changes, lengths = np.zeros_like(steps), own.lengths(steps)
    while open_rows.size:
        changes[:, open_rows] += steps
        is_last = _are_short(lengths * ratios, ratios, np.abs(scores - in_sample)[open_rows])
        residuals = np.zeros_like(steps)
        for number, place in enumerate(open_rows):
            scores[place], residuals[:, number] = _score_and_residual(
                optimum, changes[:, place], counted, singles[place], is_last[number]
            )
        last_lengths, steps = lengths, own.steps(residuals, open_rows)
        lengths = own.lengths(steps)
        ratios = lengths / last_lengths
        is_settled = _are_short(lengths, ratios, np.abs(scores - in_sample)[open_rows])
        settled[open_rows[is_settled]] = scores[open_rows[is_settled]]
        goes_on = ~is_settled & (ratios < _SLOW)
        open_rows, steps = open_rows[goes_on], steps[:, goes_on]
        lengths, ratios = lengths[goes_on], ratios[goes_on]
    return settled


def _are_short(lengths, ratios, moves):
    """Whether steps from one on, each shorter than the last by the same ratio, are negligible together: (n,).

    Parameters
    ----------
    lengths : (n,), of the first of them
    ratios : (n,)
    moves : (n,), how far scores have moved, in nats: for the same length they move the further
    """
    tolerances = _TOLERANCE * (1.0 / np.fmax(moves, 1.0) + _RELATIVE_TOLERANCE)
    return (ratios < _SLOW) & (lengths < tolerances * (1.0 - ratios))


def _score_and_residual(optimum, change, counted, block, is_last):
    """Score of a row at a posterior, and EM(s) - s of all other rows there: float, (D,).

    Parameters
    ----------
    optimum : posterior of a mixture, in whose coordinates the residual is
    change : (D,), from its statistics to those of the posterior; the score is NaN where there is none
    counted : Rows, the training rows
    block : RowBlock, the row that is left out
    is_last : bool, whether the residual is not asked for, and zero
    """
    try:
        posterior = optimum.after_step(change)
        coordinates = posterior.model.coordinates(posterior)
        row, residual = expect(coordinates, block), 0.0
        if not is_last:
            weights = row.weights(block.weighted(row.responsibilities))
            of_row = posterior.with_known_noise(coordinates.moments(row.represented, weights))
            residual = optimum.residual_at(posterior, e_step(counted, posterior).moments - of_row)
    except DegenerateComponentError:
        return np.nan, 0.0
    return float(row.log_normalizer[0]), residual
