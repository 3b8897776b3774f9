"""Scores of the rows of a group without the whole group, without refitting.

Leaving out group g subtracts S_g = sum w H r from the sufficient statistics, and I_g, the sum over its rows
of w H (diag r - r r') H' and of what missing values and scales take away, from the missing information. So
one Newton step for the other rows moves the statistics by

    -R^-1 beta,        (M + I_g) beta = S_g,

and the group's rows are scored exactly at the posterior with these statistics. It is the step of
`leave_one_out`, for many rows at once. With I_g = B C' the solution needs M^-1 S_g and M^-1 B alone
(Woodbury's identity), where B = C has up to K - 1 columns for every row
(`MixtureInformation.missing_columns`). For groups of more rows than that pays for, and for rows with missing
values or scales, B is I_g itself and C = I.

As for single rows, the change of the scores by the response of the other rows says how far off one step may
be. Groups above the threshold of single rows are refitted while there is time (`leave_one_out`).
"""

import functools

import numpy as np

from sklearn_lrvb.answers.influence import sources_of_weights
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.mixture.prediction import scores_of_rows
from sklearn_lrvb.rows import Workload


def scores_without_group(group, posterior, information):
    """Scores of a group's rows by one step towards the fit without them, and how far off they may be.

    Parameters
    ----------
    group : ArrayRows, its rows with their weights; those without a value have no part in the fit
    posterior : posterior of a mixture, for all rows
    information : ObservedInformation there

    Returns
    -------
    scores : (n,), NaN where the other rows leave a component without a proper posterior
    distance : float, in nats, the largest change of a score by the response of the other rows; infinite where
        only one of the steps, with and without this response, leads to a posterior, and NaN where none does
    """
    counted, coordinates = group.reweighted(group.which_count()), posterior.model.coordinates(posterior)
    statistics = counted.total(functools.partial(_statistics, coordinates), Workload(len(information)))
    of_others = _response(counted, posterior, information, statistics)
    change = information.complete.solve(of_others[:, None])[:, 0]
    step, alone = (_scores_after(group, posterior, -move) for move in (change, statistics))
    if np.isnan(step).any() or np.isnan(alone).any():
        scores = np.where(np.isnan(step), alone, step)
        return scores, np.nan if np.isnan(scores).any() else np.inf
    return step, np.abs(step - alone).max()


def _scores_after(group, posterior, change):
    """Scores of rows with statistics that differ by a change, (D,); NaN where there is no such posterior."""
    try:
        return scores_of_rows(group, posterior.after_step(change))
    except DegenerateComponentError:
        return np.full(group.n_samples, np.nan)


def _statistics(coordinates, block):
    """S_g, as far as the group's rows are in a block: (D,)."""
    return sources_of_weights(coordinates, block) @ block.counts


def _response(group, posterior, information, statistics):
    """(M + I_g)^-1 S_g, (D,)."""
    is_large = group.n_samples * (posterior.n_labels - 1) > len(information)
    columns = None if is_large else posterior.model.information(posterior).missing_columns(group)
    if columns is None:
        missing = posterior.model.information(posterior).missing(group)
        solved = information.solve(np.column_stack([statistics, missing]))
        return np.linalg.solve(np.eye(len(missing)) + solved[:, 1:], solved[:, 0])
    root = columns.product(np.eye(len(columns)))
    solved = information.solve(np.column_stack([statistics, root]))
    first_order, images = solved[:, 0], solved[:, 1:]
    weights = np.linalg.solve(np.eye(len(columns)) + root.T @ images, root.T @ first_order)
    return first_order - images @ weights
