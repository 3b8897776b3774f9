"""The likelihood of rows under draws of the parameters.

Under weights pi, means mu and precisions Lambda a row counts with the likelihood that the fit maximises,

    log [sum_k pi_k N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2) + pi_0/V],

reg_covar being the known noise on x, and 1/V the density of the background, if there is one. In the frame of
the fitted component, y = W_k (x - m_k), the logarithm of a component's term is a polynomial of degree two,

    constant + (L u)' y - y' L L' y/2,

with L and u of `copula`. Its coefficients are of order one where the component holds rows: no digits are
lost, wherever X lies. The background's is a constant. The values of all draws are one matrix product with the
monomials of the rows, and the moments of the rows, weighted by responsibilities, another: some 2 F flops for
every row, draw and label, F being the number of monomials. Rows with holes are taken at what the fit expects
of them, and `hidden_values` has what draws change there.

*Conventions.* K components, and L labels: the components, and the background if there is one.

*The joint density* of rows and parameters is the exact posterior's up to the evidence. It is a density of the
logits of the breaks of the stick, the scaled means and the precisions in the frames of the fitted components,
theta = (logit v; u; unique entries of T = L L'), as is that of the copula (`copula`). The density of a break
itself would lose digits next to zero. With tau and the complete moments M1 and M2 (prior included) of the
rows, weighted by their responsibilities under a draw, its derivatives are

    in u      L' M1 - tau u
    in L      M1 u' - M2 L + kappa diag(1/L_ii),        kappa the exponent of |L|.

*Completed copies* of rows with holes: parameters, components and missing values are drawn, in this order.
Every copy has parameters of its own. What is estimated from the copies therefore varies as the posterior does
(multiple imputation). The background has no distribution of hidden values: rows are completed as if they
belonged to one of the components.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import digamma

from sklearn_lrvb.gaussian.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian.posterior.tails import student_log_densities
from sklearn_lrvb.gaussian.posterior.variational_posterior import Moments
from sklearn_lrvb.gaussian.sampling.hidden_values import (
    HiddenValues,
    hidden_values,
    noise_by_feature,
    workload_per_pattern_and_draw,
)
from sklearn_lrvb.rows import Workload, batches, rows_in_batch, slices, untracked
from sklearn_lrvb.sampling.likelihood import (
    LikelihoodOfDraws,
)
from sklearn_lrvb.sampling.random_assignments import (
    DRAWS_OF_STREAM,
    N_UNIFORMS_OF_GAMMA,
    assign_at_random,
    assigned_once,
    assigned_with_holes,
    exponentials,
    gamma_variables,
)

_OF_SCALES = 2**40  # The first repetition of a stream that scales are drawn by: labels have smaller ones.
_NUMBERS_PER_ROW = 256  # Log densities of a row that are computed at once: those of a block stay in cache.

# Patterns of holes in a block, at least, unless fewer draws than a stream has would then be computed at once.
# What a block takes for every draw, however few patterns it has, is small beside what so many patterns take.
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
        self._posterior, self._draws, self._frames = posterior, draws, OwnFrames(posterior)
        self._coefficients = _polynomials(posterior, draws, log_weights)
        n_labels, n_draws, n_monomials = self._coefficients.shape
        self._tails = None
        if posterior.tails is not None:
            nu = posterior.tails.by_component(np.exp(draws.log_tails)).T[..., None]
            self._tails = nu, _constants_of_scaled(posterior, draws, log_weights).T[..., None]
        n_streams = _NUMBERS_PER_ROW // (n_labels * DRAWS_OF_STREAM)
        self.draws_at_once = min(max(1, n_streams) * DRAWS_OF_STREAM, n_draws)
        per_pattern = workload_per_pattern_and_draw(posterior)
        n_streams = rows_in_batch(8 * _LEAST_PATTERNS * DRAWS_OF_STREAM * per_pattern)
        self._draws_with_holes = min(n_streams * DRAWS_OF_STREAM, self.draws_at_once)
        # The monomials of all labels, and log densities with two arrays of their size, or five with scales.
        n_arrays = 3 if self._tails is None else 6
        self.workload = Workload(
            n_labels * n_monomials + n_arrays * n_labels * self.draws_at_once,
            self._draws_with_holes * per_pattern,
            self.draws_at_once,
        )

    @cached_property
    def _noise(self):
        return noise_by_feature(self._posterior, self._draws)

    def _monomials(self, whitened):
        """The monomials (1, y, s(y)) in every component's frame: (K, P, n) -> (L, F, n).

        The background has 1 alone, and zeros.
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
        n_components = self._posterior.n_components
        framed = self._frames.whiten(block)
        monomials = self._monomials(framed.values)
        at_once = self.draws_at_once if block.holes is None else self._draws_with_holes
        for batch in slices(self._coefficients.shape[1], at_once):
            hidden, scales = None, None
            log_densities = np.matmul(self._coefficients[:, batch], monomials)
            of_components = log_densities[:n_components]
            if block.holes is not None:
                hidden = hidden_values(self._posterior, self._draws[batch], framed, self._noise[:, batch])
                log_densities[n_components:] += self._frames.changes_of_background(framed)
            if self._tails is not None:
                nu, constants = (own[:, batch] for own in self._tails)
                scales = ScalesUnderDraws.of(of_components, nu, hidden, framed.values.shape[1])
                of_components += constants
            elif hidden is not None:
                hidden.add_log_densities(of_components)
            yield batch, RowsUnderDraws(monomials, hidden, scales), log_densities

    def completed(self, block, uniforms, normals):
        """Rows with drawn hidden values, measured from the origin: (n_draws, P, n).

        Parameters
        ----------
        block : RowBlock, with holes
        uniforms : (1, n_draws, n), by which components are drawn; four of them where scales are drawn too
        normals : (n_draws, P, n), standard normal numbers by which values are drawn
        """
        posterior, parts = self._posterior, []
        maps = posterior.structure.dense(posterior.covariance_cholesky)
        for batch, rows, log_densities in self.in_batches(block):
            of_components = log_densities[: posterior.n_components]
            assigned = assigned_once(exponentials(of_components)[0], uniforms[0, batch])
            own_normals = normals[batch]
            if rows.scales is not None:
                own_normals = (
                    own_normals / np.sqrt(rows.scales.drawn_once(assigned, uniforms[1:, batch]))[:, None]
                )
            coordinates = maps[:, None] @ rows.completed(own_normals)
            coordinates += posterior.centred_means[:, None, :, None]
            parts.append(np.einsum("kdn,kdpn->dpn", assigned, coordinates))
        return np.concatenate(parts)


@dataclass(frozen=True)
class ScalesUnderDraws:
    """Scales of the rows of a block, given the component and the parameters: u ~ Gamma(shape, rate).

    Attributes
    ----------
    shape : (K, d, 1) or (K, d, n)
    rate : (K, d, n)
    """

    shape: np.ndarray
    rate: np.ndarray

    @classmethod
    def of(cls, log_densities, nu, hidden, n_features):
        """From minus half the squared distances of the rows, over which their log densities are written.

        Parameters
        ----------
        log_densities : (K, d, n), without log weights and determinants
        nu : (K, d, 1)
        hidden : HiddenValues or None
        n_features : int
        """
        n_seen, volumes = n_features, 0.0
        if hidden is not None:
            n_seen, volumes = n_features - hidden.n_hidden, hidden.add_squares(log_densities)
        distances = -2.0 * log_densities
        log_densities[...] = student_log_densities(nu, distances, n_seen) + volumes
        return cls(0.5 * (nu + n_seen), 0.5 * (nu + distances))

    @property
    def mean(self):
        """E u, (K, d, n)."""
        return self.shape / self.rate

    def expected_log_minus_mean(self):
        """E log u - E u, (K, d, n)."""
        return digamma(self.shape) - np.log(self.rate) - self.mean

    def drawn_once(self, assigned, uniforms):
        """The scales of rows in the components that they are assigned to, and one where in none of them.

        (K, d, n), ones and zeros, and uniform numbers (3, d, n) -> (d, n)
        """
        shape, rate = (
            np.einsum("kdn,kdn->dn", assigned, self._of_rows(own)) for own in (self.shape, self.rate)
        )
        is_in = rate > 0
        scales = gamma_variables(np.where(is_in, shape, 1.0), uniforms) / np.where(is_in, rate, 1.0)
        return np.where(is_in, scales, 1.0)

    def drawn_sums(self, k, times, uniforms):
        """Sums of the scales of rows in a component so many times: (d, n), (3, d, n) -> (d, n)."""
        sums, some = np.zeros_like(times), times > 0
        shapes = self._of_rows(self.shape)[k][some] * times[some]
        sums[some] = gamma_variables(shapes, uniforms[:, some]) / self.rate[k][some]
        return sums

    def _of_rows(self, own):
        return np.broadcast_to(own, self.rate.shape)


@dataclass(frozen=True)
class RowsUnderDraws:
    """The rows of a block, and what they hide under some draws.

    Attributes
    ----------
    monomials : (L, F, n), of the rows; of rows with holes, at what the fit expects of them
    hidden : HiddenValues, or None where the rows are complete
    scales : ScalesUnderDraws, or None where rows have none
    """

    monomials: np.ndarray
    hidden: HiddenValues | None
    scales: ScalesUnderDraws | None

    def sums(self, weights):
        """Sums of weight times the monomials, as expected given what is seen: (L, d, n) -> (d, L, F).

        Where rows have scales the monomials are multiplied by them, and two sums come after these: of the
        weights, and of weights times log u - u.
        """
        if self.scales is None:
            sums = _sums_of(self.monomials, weights)
            if self.hidden is not None:
                n_components = self.hidden.n_components
                of_components = weights[:n_components]
                sums[:, :n_components] += self.hidden.expected_sums(of_components, of_components)
            return sums
        n_components = len(self.scales.rate)
        of_components = weights[:n_components]
        scaled = weights.copy()
        scaled[:n_components] *= self.scales.mean
        sums = _sums_of(self.monomials, scaled)
        if self.hidden is not None:
            sums[:, :n_components] += self.hidden.expected_sums(of_components, scaled[:n_components])
        logs = np.zeros(weights.shape[:2])
        logs[:n_components] = (of_components * self.scales.expected_log_minus_mean()).sum(axis=2)
        return np.concatenate([sums, np.stack([weights.sum(axis=2), logs], axis=-1).swapaxes(0, 1)], axis=2)

    def completed(self, normals):
        """Rows in every component's frame, with hidden values drawn by normal numbers: (K, d, P, n)."""
        displacements = self.hidden.displacements(normals)
        rows = self.monomials[: self.hidden.n_components, None, 1 : 1 + normals.shape[1]]
        return rows + displacements

    def assigned_sums(self, log_densities, block, stream):
        """Sums of the monomials over rows that are assigned at random, and completed: (d, L, F).

        Parameters
        ----------
        log_densities : (L, d, n), overwritten
        block : RowBlock
        stream : UniformStream
        """
        if self.hidden is None:
            assign_at_random(log_densities, block, stream)
            if self.scales is None:
                return _sums_of(self.monomials, log_densities)
            return self._sums_of_scaled(log_densities, self._scaled(log_densities, block, stream))
        total, counts, scaled = 0.0, np.zeros_like(log_densities), np.zeros_like(log_densities)
        n_components = self.hidden.n_components
        n_uniforms = 1 if self.scales is None else 1 + N_UNIFORMS_OF_GAMMA
        copies = assigned_with_holes(log_densities, block, stream, n_uniforms)
        for assigned, uniforms, normals in copies:
            weights = assigned
            if self.scales is not None:
                own = self.scales.drawn_once(assigned[:n_components], uniforms)
                weights, normals = assigned * own, normals / np.sqrt(own)[:, None]
            total = total + self.hidden.drawn_sums(weights[:n_components], normals)
            counts, scaled = counts + assigned, scaled + weights
        if self.scales is None:
            sums = _sums_of(self.monomials, counts)
        else:
            sums = self._sums_of_scaled(counts, scaled)
        sums[:, :n_components, : self.monomials.shape[1]] += total
        return sums

    def _scaled(self, assigned, block, stream):
        """Sums of scales of complete rows, drawn as often as these are assigned: (L, d, n) -> (L, d, n)."""
        scaled, n_components = assigned.copy(), len(self.scales.rate)
        if block.sample_weight is None:
            scaled *= self.scales.drawn_once(
                assigned[:n_components], _for_scales(block, stream, len(assigned[0]))
            )
            return scaled
        for k in range(n_components):
            uniforms = _for_scales(block, stream, len(assigned[k]), k)
            scaled[k] = self.scales.drawn_sums(k, assigned[k], uniforms)
        return scaled

    def _sums_of_scaled(self, assigned, scaled):
        """Sums as of `sums`, given how often rows are assigned and the sums of their scales; no logs."""
        counts = assigned.sum(axis=2).T[..., None]
        return np.concatenate([_sums_of(self.monomials, scaled), counts, np.zeros_like(counts)], axis=2)


def _for_scales(block, stream, n_draws, component=0):
    """Uniform numbers by which scales of complete rows are drawn, (3, d, n)."""
    first = _OF_SCALES + N_UNIFORMS_OF_GAMMA * component
    repetitions = range(first, first + N_UNIFORMS_OF_GAMMA)
    return np.stack([stream.numbers_of_block(n_draws, block, own) for own in repetitions])


def _sums_of(monomials, weights):
    """Sums over rows of weight times the monomials: (L, F, n), (L, n_draws, n) -> (n_draws, L, F)."""
    return np.matmul(weights, monomials.transpose(0, 2, 1)).transpose(1, 0, 2)


def _polynomials(posterior, draws, log_weights):
    """Coefficients of log pi_k N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2), (L, n_draws, F).

    They are those of the monomials (1, y, s(y)) in the frames of the posterior. The background's is the
    constant log pi_0 - log V.
    """
    structure = posterior.structure
    squares = structure.gram(draws.factors)
    scaled_means = draws.scaled_means
    linear = structure.transformed(draws.factors, scaled_means)
    of_groups = _constants_of_groups(posterior, draws.factors, squares)
    quadratic = structure.entry_coefficients(-0.5 * squares)
    n_components, n_linear = structure.n_components, 1 + structure.n_features
    coefficients = np.zeros((structure.n_labels, len(draws), structure.n_polynomials))
    own, of_background = np.split(coefficients, [n_components])
    own_log_weights = log_weights[:, :n_components]
    if posterior.tails is not None:  # Minus half the squared distances alone.
        of_groups, own_log_weights = -0.5 * _traces_of_noise(posterior, squares), 0.0
    own[:, :, 0] = (
        own_log_weights + of_groups - 0.5 * np.einsum("nkp,nkp->nk", scaled_means, scaled_means)
    ).T
    own[:, :, 1:n_linear] = linear.transpose(1, 0, 2)
    own[:, :, n_linear:] = quadratic.transpose(1, 0, 2)
    if structure.has_background:
        of_background[0, :, 0] = log_weights[:, -1] + posterior.background.log_density
    return coefficients


def _constants_of_groups(posterior, factors, squares):
    """log N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2) at the means: (n_draws, S).

    Parameters
    ----------
    factors, squares : (n_draws, S, ...), L and L L'
    """
    structure = posterior.structure
    return 0.5 * (
        structure.log_determinants(factors)
        - structure.log_determinants(posterior.covariance_cholesky)
        - structure.n_features * math.log(2.0 * math.pi)
        - _traces_of_noise(posterior, squares)
    )


def _traces_of_noise(posterior, squares):
    """reg_covar trace(Lambda_k) of L L', (n_draws, S, ...): (n_draws, S)."""
    structure = posterior.structure
    noise = posterior.reg_covar * structure.power * structure.gram(posterior.whiteners)
    return (squares * noise).sum(axis=tuple(range(-structure.identity.ndim, 0)))


def _constants_of_scaled(posterior, draws, log_weights):
    """log pi_k + log|Lambda_k|/2 of components whose rows have scales, (n_draws, K)."""
    structure = posterior.structure
    of_groups = structure.log_determinants(draws.factors)
    of_groups = of_groups - structure.log_determinants(posterior.covariance_cholesky)
    return log_weights[:, : structure.n_components] + 0.5 * of_groups


def complete_moments(posterior, monomial_sums):
    """Moments of the components, prior included, from sums of the monomials (n, L, F): Moments.

    The counts are those of all labels, (n, L), without the prior.
    """
    structure = posterior.structure
    of_components = monomial_sums[:, : structure.n_components]
    edges = [1, 1 + structure.n_features, structure.n_polynomials]
    of_scales, first, entries, of_counts = np.split(of_components, edges, axis=-1)
    second = structure.from_entries(entries)
    if structure.shares_precision:
        second = second.sum(axis=1, keepdims=True)
    if not structure.has_scales:
        return posterior.with_prior(Moments(monomial_sums[..., 0], first, second))
    counts = monomial_sums[..., structure.n_polynomials]
    return posterior.with_prior(Moments(counts, first, second, of_scales[..., 0], of_counts[..., 1]))


def log_derivative_of_precisions(posterior):
    """log|d Lambda / d T| of the unique entries of Lambda = W' T W, summed over the groups: float."""
    structure = posterior.structure
    log_scales = np.log(structure.diagonal(posterior.whiteners)).sum()
    return (structure.wisharts.block_size + 1) * log_scales


_ARRAYS_PER_COPY = 4  # Number of arrays of the size of the rows that exist at once.


def imputations(rows, parameters, random_state, tracked=untracked):
    """Copies of the rows with drawn values in place of missing ones, (n_draws, n_samples, P).

    Parameters
    ----------
    rows : ArrayRows
    parameters : GaussianParameters, whose posterior has the origin of the rows
    random_state : numpy.random.RandomState
    tracked : Tracked, through which batches of the copies are gone
    """
    copies = np.repeat(rows.X[None], len(parameters.draws), axis=0)
    if not rows.has_holes:
        return copies
    places = batches(len(copies), 8 * _ARRAYS_PER_COPY * rows.X.size)
    for batch in tracked(places, len(places)):
        # Every copy uses its own consecutive random numbers, so that the size of batches does not matter.
        n_uniforms = 1 + N_UNIFORMS_OF_GAMMA * (parameters.posterior.tails is not None)
        numbers = [
            (
                random_state.random_sample((n_uniforms, rows.n_samples)),
                random_state.standard_normal(rows.X.shape),
            )
            for _ in copies[batch]
        ]
        uniforms, normals = map(np.stack, zip(*numbers, strict=True))
        uniforms = uniforms.swapaxes(0, 1)
        completed = GaussianLikelihood(
            parameters.posterior, parameters.draws[batch], parameters.log_weights[batch]
        )
        for block in rows.map(lambda block: block, completed.workload):
            if block.holes is not None:
                numbers = block.numbers - rows.first
                drawn = completed.completed(
                    block, uniforms[:, :, numbers], normals[:, numbers].swapaxes(1, 2)
                )
                own = copies[batch, numbers]
                drawn = (drawn + rows.origin[:, None]).swapaxes(1, 2)
                copies[batch, numbers] = np.where(np.isnan(own), drawn.astype(own.dtype), own)
    return copies
