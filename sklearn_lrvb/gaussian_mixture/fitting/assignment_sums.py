"""Sums over the rows' assignments at q, from which the gains of merges and deletions follow: one pass.

`moves` and `search` add to them the gains of `component_statistics`, which need no rows.
"""

import functools
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from sklearn_lrvb.gaussian_mixture.e_step.frames import frames_of
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect, normalized


@dataclass(frozen=True)
class AssignmentSums:
    """Sums over the rows, each times its sample weight.

    Attributes
    ----------
    entropy_losses : (n_groups,), entropy of the assignments that is lost if a group of components is merged
    log_kept : (n_deleted,), sum of log(1 - r_k), by which the rows' scores fall if component k is deleted
    taken_over : (n_deleted, K), sum of r_k r_l/(1 - r_k), rows of component k that then go to component l
    """

    entropy_losses: np.ndarray
    log_kept: np.ndarray
    taken_over: np.ndarray


def assignment_sums(rows, posterior, groups, deleted):
    """One pass over the rows.

    Parameters
    ----------
    rows : CentredRows
    posterior : VariationalPosterior
    groups : sequence of int sequences, components that may be merged
    deleted : int sequence (n_deleted,), components that may be deleted one by one

    Returns
    -------
    sums : AssignmentSums
    """
    frames = frames_of(posterior, rows)
    function = functools.partial(_sums_of_block, frames, groups, deleted)
    return AssignmentSums(*rows.total(function, frames.numbers_per_row))


def _sums_of_block(frames, groups, deleted, block):
    """The attributes of `AssignmentSums`, summed over a block."""
    expectation = expect(frames, block, keep_log_densities=len(deleted) > 0)
    r, n_components = expectation.responsibilities, len(expectation.responsibilities)
    entropy_losses = block.weighted(_entropy_losses(r, groups)).sum(axis=1)
    log_kept, taken_over = np.zeros(len(deleted)), np.zeros((len(deleted), n_components))
    for i, k in enumerate(deleted):
        others, log_normalizer = normalized(np.delete(expectation.log_densities, k, axis=0))
        log_kept[i] = block.weighted(log_normalizer - expectation.log_normalizer).sum()
        taken_over[i, np.arange(n_components) != k] = block.weighted(others * r[k]).sum(axis=1)
    return entropy_losses, log_kept, taken_over


def _entropy_losses(responsibilities, groups):
    """s log s - sum over a group of r_k log r_k, with s the sum of its r_k: (K, n) -> (n_groups, n)."""
    own = xlogy(responsibilities, responsibilities)
    losses = np.empty((len(groups), responsibilities.shape[1]))
    for loss, group in zip(losses, groups, strict=True):
        group = np.asarray(group)
        merged = responsibilities[group].sum(axis=0)
        np.subtract(xlogy(merged, merged), own[group].sum(axis=0), out=loss)
    return losses
