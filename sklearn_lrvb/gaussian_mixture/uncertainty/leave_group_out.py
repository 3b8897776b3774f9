"""Scores of the rows of a group without the whole group, without refitting.

Leaving out group g subtracts S_g = sum w H r from the sufficient statistics, and I_g, the sum over its rows
of w H (diag r - r r') H' and of what holes hide, from the missing information. So one Newton step for the
other rows moves the statistics by

    -R^-1 beta,        (M + I_g) beta = S_g,

and the group's rows are scored exactly at the posterior with these statistics. It is the step of
`leave_one_out`, for many rows at once. With I_g = B C' the solution needs M^-1 S_g and M^-1 B alone
(Woodbury's identity), where B = C has up to K - 1 columns for every row (`RowColumns`). For groups of more
rows than that pays for, and for rows with holes, B is I_g itself and C = I.

The step is exact where the other rows do not respond, and where the group moves the fit so little that its
scores are linear in its weight. So the smaller of two differences says how far off it may be: from the scores
by -S_g alone, and from those to first order, less g' M^-1 S_g. Over 986 groups of simulated tables and of the
irises one step was off by up to 1.8 nats, but by up to 0.04 where this difference is below 0.01. Groups above
that are refitted while there is time, as single rows are (`leave_one_out`).
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.e_step.prediction import scores_of_rows
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect
from sklearn_lrvb.gaussian_mixture.information.columns import RowColumns
from sklearn_lrvb.gaussian_mixture.information.missing_information import (
    change_of_log_densities,
    in_own_frames,
    missing_information,
)
from sklearn_lrvb.gaussian_mixture.posterior.degenerate_components import DegenerateComponentError
from sklearn_lrvb.gaussian_mixture.uncertainty.influence import sources_of_weights
from sklearn_lrvb.row_blocks import Workload


def scores_without_group(group, posterior, information):
    """Scores of a group's rows by one step towards the fit without them, and how far off they may be.

    Parameters
    ----------
    group : ArrayRows, its rows with their weights; those without a value have no part in the fit
    posterior : VariationalPosterior, for all rows
    information : ObservedInformation there

    Returns
    -------
    scores : (n,), NaN where the other rows leave a component without a proper posterior
    distance : float, in nats; infinite where only one of the steps, with and without the response of the
        other rows, leads to a posterior, and NaN where none does
    """
    counted, frames = group.reweighted(group.which_count()), OwnFrames(posterior)
    statistics = counted.total(functools.partial(_statistics, frames), Workload(len(information)))
    of_all, of_others = _responses(counted, posterior, information, statistics)
    derivative = change_of_log_densities(frames, posterior, of_all)
    to_first_order = functools.partial(_scores_to_first_order, frames, derivative)
    linear = group.each(to_first_order, workload=frames.workload)
    intercepts = slice(posterior.n_components)  # R^-1 is diagonal after them.
    change = of_others / np.square(information.complete.root)
    change[intercepts] = posterior.count_response(of_others[intercepts])
    step, alone = (_scores_after(group, posterior, -move) for move in (change, statistics))
    if np.isnan(step).any() or np.isnan(alone).any():
        scores = np.where(np.isnan(step), alone, step)
        return scores, np.nan if np.isnan(scores).any() else np.inf
    return step, min(np.abs(step - other).max() for other in (alone, linear))


def _scores_after(group, posterior, change):
    """Scores of rows with statistics that differ by a change, (D,); NaN where there is no such posterior."""
    try:
        return scores_of_rows(group, posterior.after_step(change))
    except DegenerateComponentError:
        return np.full(group.n_samples, np.nan)


def _statistics(frames, block):
    """S_g, as far as the group's rows are in a block: (D,)."""
    return sources_of_weights(frames, block) @ block.counts


def _responses(group, posterior, information, statistics):
    """M^-1 S_g and (M + I_g)^-1 S_g: (D,), (D,)."""
    is_large = group.n_samples * (posterior.n_components - 1) > len(information)
    if is_large or group.has_holes:
        missing = missing_information(group, posterior, [in_own_frames])
        solved = information.solve(np.column_stack([statistics, missing]))
        return solved[:, 0], np.linalg.solve(np.eye(len(missing)) + solved[:, 1:], solved[:, 0])
    columns = RowColumns.of_rows(group, posterior)
    root = columns.product(np.eye(len(columns)))
    solved = information.solve(np.column_stack([statistics, root]))
    first_order, images = solved[:, 0], solved[:, 1:]
    weights = np.linalg.solve(np.eye(len(columns)) + root.T @ images, root.T @ first_order)
    return first_order, first_order - images @ weights


def _scores_to_first_order(frames, change, block):
    """Scores of a block less their derivatives along a change of the log densities: (n,)."""
    expectation = expect(frames, block)
    changes = frames.changes(expectation.framed, change)
    return expectation.log_normalizer - np.einsum("kn,kn->n", expectation.responsibilities, changes)
