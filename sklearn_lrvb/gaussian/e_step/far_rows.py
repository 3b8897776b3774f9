"""Responsibilities and scores of rows that are so far away that their squared distances overflow."""

import numpy as np

from sklearn_lrvb.gaussian.e_step.missing_directions import missing_directions
from sklearn_lrvb.mixture.e_step import normalized


def of_far_rows(posterior, block, far):
    """Responsibilities (L, n) and scores (n,) of the rows of a block whose squares overflow.

    If components are normal, all belong to the noise component, if there is one. Otherwise the rows are
    divided by their size before they are squared. Differences between the components' squared distances are
    multiplied by its square again, where they may overflow to infinity; logarithms of distances do not.
    """
    structure, rows = posterior.structure, block.rows[:, far]
    if structure.has_noise_component and posterior.tails is None:
        scores = np.full(len(far), posterior.expectations.density_constants[-1])
        if block.missing is not None:
            missing = block.missing.selected(far)
            scores += missing.by_row(
                posterior.noise_component.log_density_changes(structure, missing.is_missing)
            )
        return np.repeat(np.eye(structure.n_labels)[-1:].T, len(far), axis=1), scores
    size = np.abs(rows).max(axis=0)
    centres = structure.transformed(posterior.whiteners, posterior.centred_means)
    whitened = structure.whiten(
        posterior.whiteners, np.zeros_like(posterior.centred_means), block.with_one[:, far] / size
    )
    whitened = whitened - centres[:, :, None] / size
    constants = posterior.expectations.density_constants[:, None]
    directions = None if block.missing is None else missing_directions(posterior, block.missing.selected(far))
    if directions is not None:
        whitened -= directions.onto(whitened)
    squares = np.einsum("kpn,kpn->kn", whitened, whitened)
    if posterior.tails is not None:
        return normalized(_far_densities_with_scales(posterior, constants, squares, size, directions))
    if directions is not None:
        constants = constants + directions.missing.by_row(directions.log_densities)
    least = squares.min(axis=0)
    with np.errstate(over="ignore"):
        beyond_least = 0.5 * size * (size * (squares - least))
        responsibilities, log_normalizer = normalized(constants - beyond_least)
        return responsibilities, log_normalizer - 0.5 * size * (size * least)


def _far_densities_with_scales(posterior, constants, squares, size, directions):
    """Log densities (L, n) of far rows that have scales, given squared distances over the squared size."""
    n_seen, n_components = posterior.n_features, posterior.n_components
    densities = np.repeat(constants, len(size), axis=1)
    if directions is not None:
        missing = directions.missing
        n_seen = n_seen - missing.by_row(directions.n_missing)
        densities[:n_components] += missing.by_row(directions.log_volumes_of_directions)
        if posterior.structure.has_noise_component:
            changes = posterior.noise_component.log_density_changes(posterior.structure, missing.is_missing)
            densities[n_components:] += missing.by_row(changes)
    log_distances = np.log(squares) + 2.0 * np.log(size)
    densities[:n_components] += posterior.tails.log_densities_far_away(log_distances, n_seen)
    return densities
