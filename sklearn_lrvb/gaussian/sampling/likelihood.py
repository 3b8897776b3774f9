"""The likelihood of rows under draws of the parameters.

Under weights pi, means mu and precisions Lambda a row counts with the likelihood that the fit maximises,

    log [sum_k pi_k N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2) + pi_0/V],

reg_covar being the known noise on x, and 1/V the density of the noise component, if there is one. In the
whitened coordinates of the fitted component, y = W_k (x - m_k), the logarithm of a component's term is a
polynomial,

    constant + (L u)' y - y' L L' y/2,

with L and u of `copula`. Its coefficients are of order one where the component holds rows: no digits are
lost, wherever X lies. The noise component's is a constant. The values of all draws are one matrix product
with the monomials of the rows, and the moments of the rows, weighted by responsibilities, another: some 2 F
flops for every row, draw and label, F being the number of monomials. Rows with missing values are taken at
what the fit expects of them, and `missing_values` has what draws change there. Where rows have scales
(Student's t), the polynomial is minus half the squared distance alone, from which the log density follows
(`row_scales`).

*Conventions.* K components, and L labels: the components, and the noise component if there is one; d draws, n
rows of a block.
"""

import math
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates
from sklearn_lrvb.gaussian.posterior.tails import student_log_densities
from sklearn_lrvb.gaussian.posterior.variational_posterior import Moments
from sklearn_lrvb.gaussian.sampling.missing_values import (
    MissingValuesUnderDraws,
    missing_values,
    workload_per_pattern_and_draw,
)
from sklearn_lrvb.gaussian.sampling.row_scales import N_UNIFORMS_OF_GAMMA, ScalesUnderDraws
from sklearn_lrvb.rows import Workload, rows_in_batch, slices
from sklearn_lrvb.sampling.likelihood import LikelihoodOfDraws, draws_at_once
from sklearn_lrvb.sampling.random_assignments import (
    DRAWS_OF_STREAM,
    assign_at_random,
    assigned_with_missing_values,
)

_LOG_2_PI = math.log(2.0 * math.pi)

# Patterns of missing values in a block, at least, unless fewer draws than a stream has would then be computed
# at once. What a block takes for every draw, however few patterns it has, is small beside what so many take.
_LEAST_PATTERNS = 64


class GaussianLikelihood(LikelihoodOfDraws):
    """The log densities of rows under some draws, and functions of a block by way of them.

    Parameters
    ----------
    posterior : VariationalPosterior
    draws : ParameterDraws
    log_weights : (n_draws, L)
    """

    def __init__(self, posterior, draws, log_weights):
        self._posterior, self._draws, self._coordinates = posterior, draws, OwnCoordinates(posterior)
        structure = posterior.structure
        log_determinants = structure.log_determinants(draws.factors)  # Of the precisions.
        log_determinants = log_determinants - structure.log_determinants(posterior.covariance_cholesky)
        constants = (log_weights[:, : structure.n_components] + 0.5 * log_determinants).T
        self._coefficients = _half_squares(posterior, draws)
        self._nu = None
        if posterior.tails is None:
            constants -= 0.5 * structure.n_features * _LOG_2_PI
            self._coefficients[: structure.n_components, :, 0] += constants
        else:
            self._nu = posterior.tails.by_component(np.exp(draws.log_tails)).T[..., None]
            self._constants = constants[..., None]
        if structure.has_noise_component:
            self._coefficients[-1, :, 0] = log_weights[:, -1] + posterior.noise_component.log_density
        n_labels, n_draws, n_monomials = self._coefficients.shape
        self._at_once = draws_at_once(n_labels, n_draws)
        per_pattern = workload_per_pattern_and_draw(posterior)
        n_streams = rows_in_batch(8 * _LEAST_PATTERNS * DRAWS_OF_STREAM * per_pattern)
        self._at_once_with_missing = min(n_streams * DRAWS_OF_STREAM, self._at_once)
        # The monomials of all labels, and log densities with two arrays of their size, or five with scales.
        n_arrays = 3 if self._nu is None else 6
        self.workload = Workload(
            n_labels * n_monomials + n_arrays * n_labels * self._at_once,
            self._at_once_with_missing * per_pattern,
            self._at_once,
        )

    def _monomials(self, whitened):
        """The monomials (1, y, s(y)) in every component's whitened coordinates: (K, P, n) -> (L, F, n).

        The noise component has 1 alone, and zeros.
        """
        structure = self._posterior.structure
        n_components, n_features, n_rows = whitened.shape
        monomials = np.empty((structure.n_labels, structure.n_polynomials, n_rows))
        monomials[:, 0] = 1.0
        monomials[:n_components, 1 : 1 + n_features] = whitened
        monomials[n_components:, 1:] = 0.0
        for own, rows in zip(monomials, whitened, strict=False):
            structure.write_entries(rows, own[1 + n_features :])
        return monomials

    def in_batches(self, block):
        """Yield slices of the draws, and what belongs to a block under those draws.

        Yields
        ------
        batch : slice
        rows : RowsUnderDraws
        log_densities : (L, n_draws in the batch, n)
        """
        whitened = self._coordinates.represented(block)
        monomials = self._monomials(whitened.values)
        at_once = self._at_once if block.missing is None else self._at_once_with_missing
        for batch in slices(len(self._draws), at_once):
            yield batch, *self._under_draws(batch, whitened, monomials)

    def _under_draws(self, batch, whitened, monomials):
        """RowsUnderDraws, and log densities (L, n_draws in the batch, n)."""
        n_components, missing, scales = self._posterior.n_components, None, None
        log_densities = np.matmul(self._coefficients[:, batch], monomials)
        in_components = log_densities[:n_components]
        if whitened.directions is not None:
            missing = missing_values(self._posterior, self._draws[batch], whitened)
            log_densities[n_components:] += self._coordinates.changes_of_noise_component(whitened)
        if self._nu is not None:
            scales = self._with_scales(in_components, batch, missing)
        elif missing is not None:
            missing.add_log_densities(in_components)
        return RowsUnderDraws(monomials, n_components, missing, scales), log_densities

    def _with_scales(self, half_squares, batch, missing):
        """Write log densities over minus half the squared distances, (K, d, n): ScalesUnderDraws."""
        n_seen, log_volumes = self._posterior.structure.n_features, 0.0
        if missing is not None:
            missing.add_squares(half_squares)
            n_seen, log_volumes = n_seen - missing.n_missing, missing.log_volumes()
        nu, distances = self._nu[:, batch], -2.0 * half_squares
        half_squares[...] = student_log_densities(nu, distances, n_seen)
        half_squares += self._constants[:, batch] + log_volumes
        return ScalesUnderDraws(0.5 * (nu + n_seen), 0.5 * (nu + distances))


def _half_squares(posterior, draws):
    """Coefficients of minus half the squared distances and traces of the known noise, (L, n_draws, F).

    They are those of the monomials (1, y, s(y)) in the whitened coordinates of the posterior, and zero for
    the noise component.
    """
    structure, scaled_means = posterior.structure, draws.scaled_means
    precisions, quadratic = structure.gram(draws.factors), 1 + structure.n_features
    traces = (precisions * posterior.known_noise).sum(axis=tuple(range(-structure.identity.ndim, 0)))
    squares = traces + np.einsum("nkp,nkp->nk", scaled_means, scaled_means)
    coefficients = np.zeros((len(draws), structure.n_labels, structure.n_polynomials))
    own_coefficients = coefficients[:, : structure.n_components]
    own_coefficients[..., 0] = -0.5 * squares
    own_coefficients[..., 1:quadratic] = structure.transformed(draws.factors, scaled_means)
    own_coefficients[..., quadratic:] = structure.features.entry_coefficients(-0.5 * precisions)
    return np.ascontiguousarray(coefficients.swapaxes(0, 1))


@dataclass(frozen=True)
class RowsUnderDraws:
    """The rows of a block, with their missing values and scales under some draws.

    Attributes
    ----------
    monomials : (L, F, n), of the rows; of rows with missing values, at what the fit expects of them
    n_components : int, K
    missing : MissingValuesUnderDraws, or None where the rows are complete
    scales : ScalesUnderDraws, or None where rows have none
    """

    monomials: np.ndarray
    n_components: int
    missing: MissingValuesUnderDraws | None
    scales: ScalesUnderDraws | None

    def sums(self, weights):
        """Sums of weight times the monomials, as expected given what is seen: (L, d, n) -> (d, L, F).

        Where rows have scales the monomials are multiplied by them, and two sums come after these: of the
        weights, and of weights times log u - u.
        """
        components, scaled, log_sums = slice(self.n_components), weights, np.zeros(weights.shape[:2])
        if self.scales is not None:
            scaled = weights.copy()
            scaled[components] *= self.scales.mean
            logs = weights[components] * self.scales.expected_log_minus_mean()
            log_sums[components] = logs.sum(axis=2)
        sums = self._sums(weights, scaled, log_sums)
        if self.missing is not None:
            added = self.missing.expected_sums(weights[components], scaled[components])
            sums[:, components, : added.shape[2]] += added
        return sums

    def assigned_sums(self, log_densities, block, stream):
        """Sums of the monomials over rows that are assigned at random, and completed: (d, L, F).

        Where rows have scales these are drawn, and the sums are as in `sums`, with zeros as the last ones.

        Parameters
        ----------
        log_densities : (L, d, n), overwritten
        block : RowBlock
        stream : UniformStream
        """
        components, log_sums = slice(self.n_components), np.zeros(log_densities.shape[:2])
        if self.missing is None:
            assign_at_random(log_densities, block, stream)
            counts = scaled = log_densities
            if self.scales is not None:
                scaled = counts.copy()
                self.scales.multiply_by_drawn(scaled[components], block, stream)
            return self._sums(counts, scaled, log_sums)
        counts, scaled, added = np.zeros_like(log_densities), np.zeros_like(log_densities), 0.0
        n_uniforms = 1 if self.scales is None else 1 + N_UNIFORMS_OF_GAMMA
        for assigned, uniforms, normals in assigned_with_missing_values(
            log_densities, block, stream, n_uniforms
        ):
            weights = assigned
            if self.scales is not None:
                drawn_scales = self.scales.drawn(assigned[components], uniforms)
                weights, normals = assigned * drawn_scales, normals / np.sqrt(drawn_scales)[:, None]
            added = added + self.missing.drawn_sums(weights[components], normals)
            counts, scaled = counts + assigned, scaled + weights
        sums = self._sums(counts, scaled, log_sums)
        sums[:, components, : added.shape[2]] += added
        return sums

    def _sums(self, counts, scaled, log_sums):
        """Sums of weight times the monomials, without missing values, as in `sums`.

        Parameters
        ----------
        counts, scaled : (L, d, n), the weights, and these times the scales
        log_sums : (L, d), sums of weights times log u - u
        """
        sums = np.matmul(scaled, self.monomials.transpose(0, 2, 1)).transpose(1, 0, 2)
        if self.scales is None:
            return sums
        further = np.stack([counts.sum(axis=2), log_sums], axis=-1)
        return np.concatenate([sums, further.swapaxes(0, 1)], axis=2)


def moments_of_sums(posterior, monomial_sums):
    """Moments of the components from sums of the monomials (n, L, F): Moments. Counts are of all labels."""
    structure = posterior.structure
    edges = [1, 1 + structure.n_features, structure.n_polynomials]
    own_sums = monomial_sums[:, : structure.n_components]
    scale_sums, first, entries, further = np.split(own_sums, edges, axis=-1)
    second = structure.from_entries(entries)
    if structure.shares_precision:
        second = second.sum(axis=1, keepdims=True)
    if not structure.has_scales:
        return Moments(monomial_sums[..., 0], first, second)
    counts = monomial_sums[..., structure.n_polynomials]
    return Moments(counts, first, second, scale_sums[..., 0], further[..., 1])
