"""What one pass over the rows tells of merges and deletions: sums over the rows' assignments at q."""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from sklearn_lrvb.gaussian_mixture.e_step.e_step import normalized, sums_over_blocks
from sklearn_lrvb.gaussian_mixture.e_step.frames import frames_of


@dataclass(frozen=True)
class AssignmentSums:
    """Sums over the rows, each as often as it counts.

    Attributes
    ----------
    entropy_losses : (n_groups,), entropy of the assignments that is lost if a group of components is merged
    log_kept : (n_deleted,), sum of log(1 - r_k), what the rows lose if component k is no longer there
    taken_over : (n_deleted, K), sum of r_k r_l/(1 - r_k), rows of component k that then fall to component l
    """

    entropy_losses: np.ndarray
    log_kept: np.ndarray
    taken_over: np.ndarray


def assignment_sums(rows, posterior, groups, deleted):
    """One pass over the rows.

    Parameters
    ----------
    groups : sequence of int sequences, components that may be merged
    deleted : int sequence (n_deleted,), components that may be deleted one by one
    """
    frames = frames_of(posterior)

    def one_block(selected, block):
        log_densities = frames.log_densities(frames.whiten(block))
        rest = [_without(log_densities, k) for k in deleted]
        r, log_normalizer = normalized(log_densities)
        losses = rows.weighted(_entropy_losses(r, groups), selected).sum(axis=1)
        kept, taken = np.zeros(len(deleted)), np.zeros((len(deleted), len(r)))
        for i, (k, (shares, log_normalizer_without)) in enumerate(zip(deleted, rest, strict=True)):
            kept[i] = rows.weighted(log_normalizer_without - log_normalizer, selected).sum()
            taken[i, np.arange(len(r)) != k] = rows.weighted(shares * r[k], selected).sum(axis=1)
        return losses, kept, taken

    return AssignmentSums(*sums_over_blocks(rows.map(one_block, frames.block_rows)))


def _without(log_densities, component):
    """Responsibilities (K - 1, n) and normaliser (n,) without one component."""
    return normalized(np.delete(log_densities, component, axis=0))


def _entropy_losses(responsibilities, groups):
    """s log s - sum over a group of r_k log r_k, with s the sum of its r_k: (K, n) -> (n_groups, n)."""
    own = xlogy(responsibilities, responsibilities)
    losses = np.empty((len(groups), responsibilities.shape[1]))
    for loss, group in zip(losses, groups, strict=True):
        group = np.asarray(group)
        together = responsibilities[group].sum(axis=0)
        np.subtract(xlogy(together, together), own[group].sum(axis=0), out=loss)
    return losses
