"""Rows with holes under draws of the parameters, draw by draw.

A draw has weights, means and precisions. In its own frame, v = L'y - u with y = W_k (x - m_k) that of the
fitted component, a component is the standard normal, and hidden values are integrated out or drawn as at the
fitted posterior (`e_step.hidden_directions`): they move v along the columns of L'W_k. Their distribution
differs from draw to draw, so that rows with holes take as long as a sweep for every draw, where complete rows
share a matrix product.
"""

import math
from dataclasses import replace

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.hidden_directions import directions_in_frames
from sklearn_lrvb.gaussian_mixture.e_step.own_frames import OwnFrames, OwnRows
from sklearn_lrvb.gaussian_mixture.posterior.sufficient_statistics import Moments


def constants_of_groups(posterior, draws):
    """log N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2) at the means: (n_draws, S)."""
    structure = posterior.structure
    return 0.5 * (
        structure.log_determinants(draws.factors)
        - structure.log_determinants(posterior.covariance_cholesky)
        - structure.n_features * math.log(2.0 * math.pi)
        - noise_traces(posterior, structure.gram(draws.factors))
    )


def noise_traces(posterior, squares):
    """reg_covar trace(Lambda) of precisions in their frames: (n, S, ...) -> (n, S)."""
    structure = posterior.structure
    noise = posterior.reg_covar * structure.power * structure.gram(posterior.whiteners)
    axes = tuple(range(-structure.identity.ndim, 0))
    return (squares * noise).sum(axis=axes)


class DrawnFrames:
    """The frames of one draw.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose frames the draw is
    draw : ParameterDraws of length one
    log_weights : (K,)
    """

    def __init__(self, posterior, draw, log_weights):
        structure = posterior.structure
        self._posterior, self._structure = posterior, structure
        self._factors, self._scaled_means = draw.factors[0], draw.scaled_means[0]
        self._maps = structure.transposed(self._factors)
        self._whiteners = structure.composed(self._maps, posterior.whiteners)
        self._constants = log_weights + constants_of_groups(posterior, draw)[0]

    @classmethod
    def of_draws(cls, posterior, draws, log_weights):
        """Yield the frames of all draws, log weights (n_draws, K)."""
        for number, own in enumerate(log_weights):
            yield cls(posterior, draws[number : number + 1], own)

    def whiten(self, fitted_rows, holes):
        """Rows in the frames of the draw, from `whitened_without_holes`: OwnRows."""
        hidden = directions_in_frames(self._structure, self._whiteners, self._posterior.reg_covar, holes)
        values = hidden.mapped(self._maps, fitted_rows)
        values -= self._scaled_means[:, :, None]
        values -= hidden.onto(values)
        return OwnRows(values, hidden, holes.pattern)

    def log_densities(self, rows):
        """Log densities of rows, log weights included: OwnRows -> (K, n)."""
        squares = np.einsum("kpn,kpn->kn", rows.values, rows.values)
        return self._constants[:, None] - 0.5 * squares + rows.hidden.log_densities_by_row(rows.pattern)

    def moments(self, rows, weights):
        """Sums of weight times what is expected of (1, y, s(y)), weights (K, n), in the fitted frames."""
        second = self._structure.second_moments(rows.values, weights)
        spread = rows.hidden.spread_sums(rows.hidden.by_group(weights))
        return self._in_fitted_frames(rows.values, weights, second + spread)

    def moments_of_completed(self, rows, weights):
        """The same of rows whose hidden values have been drawn (`completed`)."""
        second = self._structure.second_moments(rows.values, weights)
        noise = rows.hidden.noise_sums(rows.hidden.by_group(weights))
        return self._in_fitted_frames(rows.values, weights, second - noise)

    def _in_fitted_frames(self, values, weights, second):
        """Moments of y = L^-T (v + u) from sums of weight s(v)."""
        structure, shift = self._structure, self._scaled_means
        counts, first = weights.sum(axis=1), np.matmul(values, weights[:, :, None])[:, :, 0]
        mixed = structure.outer_products(first, shift)
        if structure.is_matrix:
            mixed = 0.5 * (mixed + structure.transposed(mixed))
        second = second + 2.0 * mixed + structure.sum_of_squares(shift, counts)
        back = structure.transposed(structure.whiteners(self._factors))
        first = structure.transformed(back, first + counts[:, None] * shift)
        return Moments(counts, first, structure.congruence(back, second))

    def completed(self, rows, normals):
        """The rows with their hidden values drawn, given standard normal numbers (P, n): OwnRows."""
        values = np.broadcast_to(normals, rows.values.shape)
        return replace(rows, values=rows.values + rows.hidden.onto(values))

    def in_coordinates(self, rows, components):
        """The rows of X, measured from the posterior's origin, each in the frame of one component: (P, n)."""
        structure, posterior = self._structure, self._posterior
        back = structure.transposed(structure.whiteners(self._factors))
        maps = structure.composed(posterior.covariance_cholesky, back)
        coordinates = rows.hidden.mapped(maps, rows.values + self._scaled_means[:, :, None])
        chosen = np.take_along_axis(coordinates, components[None, None], axis=0)[0]
        return chosen + posterior.centred_means[components].T


def whitened_without_holes(posterior, block):
    """Rows in the fitted frames, with zeros in place of hidden values: (K, P, n)."""
    return OwnFrames(posterior).whiten(replace(block, holes=None)).values
