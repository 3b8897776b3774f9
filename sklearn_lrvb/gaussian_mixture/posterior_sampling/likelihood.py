"""The likelihood of rows under draws of the parameters.

Under weights pi, means mu and precisions Lambda a row counts with the likelihood that the fit maximises,

    log sum_k pi_k N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2),

reg_covar being the known noise on x. In the frame of the fitted component, y = W_k (x - m_k), the logarithm
of a component's term is a polynomial of degree two in y,

    constant + (L u)' y - y' L L' y/2,

with L and u of `copula`. Its coefficients are of order one where the component holds rows: no digits are
lost, wherever X lies. The values of all draws are one matrix product with the monomials of the rows, and the
moments of the rows, weighted by responsibilities, another: some 2 K F flops for every row and draw, F being
the number of monomials. Rows with holes are taken at what the fit expects of them, and `hidden_values` has
what draws change there.

*The joint density* of rows and parameters is the exact posterior's up to the evidence. It is a density of the
logits of the breaks of the stick, the scaled means and the precisions in the frames of the fitted components,
theta = (logit v; u; unique entries of T = L L'), as is that of the copula (`copula`). The density of a break
itself would lose digits next to zero. With tau and the complete moments M1 and M2 (prior included) of the
rows, weighted by their responsibilities under a draw, its derivatives are

    in u      L' M1 - tau u
    in L      M1 u' - M2 L + kappa diag(1/L_ii),        kappa the exponent of |L|.

*Completed copies* of rows with holes: parameters, components and missing values are drawn, in this order.
Every copy has parameters of its own. What is estimated from the copies therefore varies as the posterior does
(multiple imputation).
"""

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from sklearn_lrvb.exponential_families.dirichlet import log_partition
from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import Moments
from sklearn_lrvb.gaussian_mixture.posterior_sampling.hidden_values import (
    HiddenValues,
    hidden_values,
    noise_by_feature,
    workload_per_pattern_and_draw,
)
from sklearn_lrvb.gaussian_mixture.posterior_sampling.random_assignments import (
    DRAWS_OF_STREAM,
    UniformStream,
    assign_at_random,
    assigned_once,
    assigned_with_holes,
    exponentials,
)
from sklearn_lrvb.row_blocks import Workload, batches, rows_in_batch, slices, untracked

_LARGEST_BYTES = 4 * 2**30  # of `log_likelihood_of_draws`; what reads it makes several copies
_NUMBERS_PER_ROW = 256  # Log densities of a row that are computed at once: those of a block stay in cache.

# Patterns of holes in a block, at least, unless fewer draws than a stream has would then be computed at once.
# What a block takes for every draw, however few patterns it has, is small beside what so many patterns take.
_LEAST_PATTERNS = 64


def check_log_likelihood_size(n_draws, n_rows):
    """Raise MemoryError where the log likelihood of so many rows under so many draws is too large."""
    size = 8 * n_draws * n_rows
    if size > _LARGEST_BYTES:
        raise MemoryError(
            f"The log likelihood of {n_rows} rows under {n_draws} draws takes {size / 2**30:.1f} GiB; up to "
            f"{_LARGEST_BYTES / 2**30:g} GiB are computed. (a) Ask for fewer draws: n_draws="
            f"{max(1, _LARGEST_BYTES // (8 * n_rows))}. (b) Leave X out, for the posterior alone. (c) "
            "loo_score_samples leaves rows out without draws."
        )


def log_likelihood_of_draws(rows, parameters):
    """Log likelihood of every row, as often as it counts, under every draw: (n_draws, n_rows).

    Weights are scaled to sum to one.

    Parameters
    ----------
    rows : Rows
    parameters : DrawnParameters
    """
    by_row = np.empty((rows.n_samples, len(parameters.draws)))
    for batch, likelihood in _in_batches(parameters, parameters.log_shares):
        rows.write(likelihood.by_row, by_row[:, batch], likelihood.workload)
    return by_row.T


def log_likelihood(rows, parameters):
    """Log likelihood of all rows together under every draw, (n_draws,)."""
    batches_of_draws = _in_batches(parameters, parameters.log_weights)
    return np.concatenate(
        [rows.total(likelihood.sums, likelihood.workload) for _, likelihood in batches_of_draws]
    )


def log_likelihood_and_moments(rows, parameters):
    """Log likelihood (n_draws,), and sums of responsibility times the monomials (n_draws, K, F)."""
    batches_of_draws = _in_batches(parameters, parameters.log_weights)
    parts = [
        rows.total(likelihood.sums_and_moments, likelihood.workload) for _, likelihood in batches_of_draws
    ]
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def moments_of_random_assignments(rows, parameters, seed):
    """Sums of the monomials over the rows that are assigned to every component, at random: (n_draws, K, F).

    A row that counts w times, a whole number, is assigned w times.

    Parameters
    ----------
    rows : Rows
    parameters : DrawnParameters
    seed : int
        The same seed gives the same assignments, whatever the blocks of rows.
    """
    return np.concatenate(
        [
            rows.total(partial(likelihood.assigned_moments, seed, batch.start), likelihood.workload)
            for batch, likelihood in _in_batches(parameters, parameters.log_weights)
        ]
    )


def _in_batches(parameters, log_weights):
    """Yield slices of the draws whose polynomials fit into memory, and their `LikelihoodOfDraws`."""
    bytes_each = 2 * 8 * parameters.posterior.structure.n_coefficients * DRAWS_OF_STREAM
    n_streams = -(-len(parameters.draws) // DRAWS_OF_STREAM)
    for streams in batches(n_streams, bytes_each):
        batch = slice(streams.start * DRAWS_OF_STREAM, streams.stop * DRAWS_OF_STREAM)
        yield batch, LikelihoodOfDraws(parameters.posterior, parameters.draws[batch], log_weights[batch])


class LikelihoodOfDraws:
    """The log densities of rows under some draws, and functions of a block by way of them.

    Parameters
    ----------
    posterior : VariationalPosterior
    draws : ParameterDraws
    log_weights : (n_draws, K)
    """

    def __init__(self, posterior, draws, log_weights):
        self._posterior, self._draws, self._frames = posterior, draws, OwnFrames(posterior)
        self._coefficients = _polynomials(posterior, draws, log_weights)
        n_components, n_draws, n_monomials = self._coefficients.shape
        n_streams = _NUMBERS_PER_ROW // (n_components * DRAWS_OF_STREAM)
        self.draws_at_once = min(max(1, n_streams) * DRAWS_OF_STREAM, n_draws)
        per_pattern = workload_per_pattern_and_draw(posterior)
        n_streams = rows_in_batch(8 * _LEAST_PATTERNS * DRAWS_OF_STREAM * per_pattern)
        self._draws_with_holes = min(n_streams * DRAWS_OF_STREAM, self.draws_at_once)
        # The monomials of all components, and log densities with two arrays of their size.
        self.workload = Workload(
            n_components * n_monomials + 3 * n_components * self.draws_at_once,
            self._draws_with_holes * per_pattern,
            self.draws_at_once,
        )

    @cached_property
    def _noise(self):
        return noise_by_feature(self._posterior, self._draws)

    def _monomials(self, whitened):
        """The monomials (1, y, s(y)) in every component's frame: (K, P, n) -> (K, F, n)."""
        structure = self._posterior.structure
        n_components, n_features, n_rows = whitened.shape
        monomials = np.empty((n_components, structure.n_component_features, n_rows))
        monomials[:, 0] = 1.0
        monomials[:, 1 : 1 + n_features] = whitened
        for own, rows in zip(monomials, whitened, strict=True):
            structure.write_entries(rows, own[1 + n_features :])
        return monomials

    def in_batches(self, block):
        """Yield slices of the draws, and what belongs to a block under those draws.

        Yields
        ------
        batch : slice
        rows : RowsUnderDraws
        log_densities : (K, n_draws in the batch, n)
        """
        framed = self._frames.whiten(block)
        monomials = self._monomials(framed.values)
        at_once = self.draws_at_once if block.holes is None else self._draws_with_holes
        for batch in slices(self._coefficients.shape[1], at_once):
            hidden = None
            log_densities = np.matmul(self._coefficients[:, batch], monomials)
            if block.holes is not None:
                hidden = hidden_values(self._posterior, self._draws[batch], framed, self._noise[:, batch])
                hidden.add_log_densities(log_densities)
            yield batch, RowsUnderDraws(monomials, hidden), log_densities

    def by_row(self, block, out):
        """Write the log likelihood of each row, as often as it counts: (n, n_draws)."""
        for batch, _, log_densities in self.in_batches(block):
            out[:, batch] = block.weighted(_normalized(log_densities)[1]).T

    def sums(self, block):
        """The log likelihood of a block, (n_draws,)."""
        normalized = (_normalized(log_densities)[1] for _, _, log_densities in self.in_batches(block))
        return np.concatenate([block.weighted(log_likelihood).sum(axis=1) for log_likelihood in normalized])

    def sums_and_moments(self, block):
        """The log likelihood (n_draws,) and the weighted sums of the monomials (n_draws, K, F) of a block."""
        sums, moments = [], []
        for _, rows, log_densities in self.in_batches(block):
            total, log_likelihood = _normalized(log_densities)
            log_densities *= block.weighted(1.0 / total)
            sums.append(block.weighted(log_likelihood).sum(axis=1))
            moments.append(rows.sums(log_densities))
        return np.concatenate(sums), np.concatenate(moments)

    def assigned_moments(self, seed, first, block):
        """Sums of the monomials over randomly assigned rows of a block; the first draw has a number."""
        return np.concatenate(
            [
                rows.assigned_sums(log_densities, block, UniformStream(seed, first + batch.start))
                for batch, rows, log_densities in self.in_batches(block)
            ]
        )

    def completed(self, block, uniforms, normals):
        """Rows with drawn hidden values, measured from the origin: (n_draws, P, n).

        Parameters
        ----------
        block : RowBlock, with holes
        uniforms : (n_draws, n), by which components are drawn
        normals : (n_draws, P, n), standard normal numbers by which values are drawn
        """
        posterior, parts = self._posterior, []
        maps = posterior.structure.dense(posterior.covariance_cholesky)
        for batch, rows, log_densities in self.in_batches(block):
            assigned = assigned_once(exponentials(log_densities)[0], uniforms[batch])
            coordinates = maps[:, None] @ rows.completed(normals[batch])
            coordinates += posterior.centred_means[:, None, :, None]
            parts.append(np.einsum("kdn,kdpn->dpn", assigned, coordinates))
        return np.concatenate(parts)


@dataclass(frozen=True)
class RowsUnderDraws:
    """The rows of a block, and what they hide under some draws.

    Attributes
    ----------
    monomials : (K, F, n), of the rows; of rows with holes, at what the fit expects of them
    hidden : HiddenValues, or None where the rows are complete
    """

    monomials: np.ndarray
    hidden: HiddenValues | None

    def sums(self, weights):
        """Sums of weight times the monomials, as expected given what is seen: (K, d, n) -> (d, K, F)."""
        sums = _sums_of(self.monomials, weights)
        return sums if self.hidden is None else sums + self.hidden.expected_sums(weights)

    def completed(self, normals):
        """Rows in every component's frame, with hidden values drawn by normal numbers: (K, d, P, n)."""
        displacements = self.hidden.displacements(normals)
        return self.monomials[:, None, 1 : 1 + normals.shape[1]] + displacements

    def assigned_sums(self, log_densities, block, stream):
        """Sums of the monomials over rows that are assigned at random, and completed: (d, K, F).

        Parameters
        ----------
        log_densities : (K, d, n), overwritten
        block : RowBlock
        stream : UniformStream
        """
        if self.hidden is None:
            assign_at_random(log_densities, block, stream)
            return _sums_of(self.monomials, log_densities)
        total, counts = 0.0, np.zeros_like(log_densities)
        for assigned, normals in assigned_with_holes(log_densities, block, stream):
            total = total + self.hidden.drawn_sums(assigned, normals)
            counts += assigned
        return total + _sums_of(self.monomials, counts)


def _normalized(log_densities):
    """Turn log densities (K, n_draws, n) into densities relative to the largest.

    Returns
    -------
    total : (n_draws, n), sum of the relative densities
    log_likelihood : (n_draws, n)
    """
    densities, largest = exponentials(log_densities)
    total = densities.sum(axis=0)
    return total, largest + np.log(total)


def _sums_of(monomials, weights):
    """Sums over rows of weight times the monomials: (K, F, n), (K, n_draws, n) -> (n_draws, K, F)."""
    return np.matmul(weights, monomials.transpose(0, 2, 1)).transpose(1, 0, 2)


def _polynomials(posterior, draws, log_weights):
    """Coefficients of log pi_k N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2), (K, n_draws, F).

    They are those of the monomials (1, y, s(y)) in the frames of the posterior.
    """
    structure = posterior.structure
    squares = structure.gram(draws.factors)
    scaled_means = draws.scaled_means
    linear = structure.transformed(draws.factors, scaled_means)
    of_groups = _constants_of_groups(posterior, draws.factors, squares)
    quadratic = structure.entry_coefficients(-0.5 * squares)
    n_components, n_linear = structure.n_components, 1 + structure.n_features
    coefficients = np.empty((n_components, len(draws), structure.n_component_features))
    coefficients[:, :, 0] = (
        log_weights + of_groups - 0.5 * np.einsum("nkp,nkp->nk", scaled_means, scaled_means)
    ).T
    coefficients[:, :, 1:n_linear] = linear.transpose(1, 0, 2)
    coefficients[:, :, n_linear:] = quadratic.transpose(1, 0, 2)
    return coefficients


def _constants_of_groups(posterior, factors, squares):
    """log N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2) at the means: (n_draws, S).

    Parameters
    ----------
    factors, squares : (n_draws, S, ...), L and L L'
    """
    structure = posterior.structure
    noise = posterior.reg_covar * structure.power * structure.gram(posterior.whiteners)
    axes = tuple(range(-structure.identity.ndim, 0))
    return 0.5 * (
        structure.log_determinants(factors)
        - structure.log_determinants(posterior.covariance_cholesky)
        - structure.n_features * math.log(2.0 * math.pi)
        - (squares * noise).sum(axis=axes)
    )


_LOG_2_PI = math.log(2.0 * math.pi)


def log_joint(rows, parameters):
    """log p(X, theta) of draws, (n,).

    Parameters
    ----------
    rows : Rows, the training rows
    parameters : DrawnParameters
    """
    return log_likelihood(rows, parameters) + log_prior(parameters)


def log_joint_and_slopes(rows, parameters):
    """log p(X, theta) of draws, and its derivatives.

    Returns
    -------
    values : (n,)
    of_log_stick, of_log_rest : (n, B), derivatives in log v and log(1 - v)
    of_scaled_means : (n, K, P), in u
    of_factors : (n, S, ...), in L; entries where L is zero have no meaning
    """
    sums, monomial_sums = log_likelihood_and_moments(rows, parameters)
    posterior, draws = parameters.posterior, parameters.draws
    structure, prior = posterior.structure, posterior.prior
    moments = complete_moments(posterior, monomial_sums)
    group_counts = structure.power * structure.per_group(moments.counts)
    exponent = (group_counts + _prior_exponent(prior))[structure.statistic_axes]
    of_factors = structure.outer_products(moments.first, draws.scaled_means)
    of_factors -= structure.composed(moments.second, draws.factors)
    structure.diagonal(of_factors)[...] += _over_diagonal(structure, exponent, draws.factors)
    of_scaled_means = structure.transformed(structure.transposed(draws.factors), moments.first)
    of_scaled_means -= (prior.mean_precision + moments.counts)[..., None] * draws.scaled_means
    # Sums over rows of the components at a break, and of those behind it, besides the prior's exponents.
    n_breaks = draws.log_stick.shape[1]
    behind = np.cumsum(moments.counts[:, ::-1], axis=1)[:, ::-1] - moments.counts
    stick, rest = _prior_sticks(prior)
    return (
        sums + log_prior(parameters),
        moments.counts[:, :n_breaks] + stick,
        behind[:, :n_breaks] + rest,
        of_scaled_means,
        of_factors,
    )


def complete_moments(posterior, monomial_sums):
    """Moments of the components, prior included, from sums of the monomials (n, K, F): Moments."""
    structure = posterior.structure
    counts, first, entries = np.split(monomial_sums, [1, 1 + structure.n_features], axis=-1)
    second = structure.from_entries(entries)
    if structure.shares_precision:
        second = second.sum(axis=1, keepdims=True)
    return posterior.with_prior(Moments(counts[..., 0], first, second))


def log_prior(parameters):
    """log p(theta) of draws, (n,); a flat prior's density of means and precisions is 1."""
    posterior, draws = parameters.posterior, parameters.draws
    structure, prior = posterior.structure, posterior.prior
    stick, rest = _prior_sticks(prior)
    of_weights = stick * draws.log_stick + rest * draws.log_rest
    of_weights -= log_partition(np.stack([stick, rest], axis=-1))
    log_determinants = structure.log_determinants(draws.factors)  # of T
    of_frames = structure.log_determinants(posterior.covariance_cholesky)  # of (W' W)^-1
    if prior.flat:
        change = structure.per_group(np.ones(structure.n_components)) * (of_frames - log_determinants)
        return of_weights.sum(axis=1) + (0.5 * change).sum(axis=1) + log_derivative_of_precisions(posterior)
    origins = structure.transformed(structure.transposed(draws.factors), posterior.whitened_prior_mean)
    squares = np.square(draws.scaled_means - origins).sum(axis=(1, 2))
    of_means = (
        0.5 * structure.n_components * structure.n_features * (math.log(prior.mean_precision) - _LOG_2_PI)
    )
    of_means = of_means - 0.5 * prior.mean_precision * squares
    axes = tuple(range(-structure.identity.ndim, 0))
    scatter = structure.gram(posterior.whitened_prior_root)
    of_precisions = structure.wisharts.log_density(
        prior.degrees_of_freedom,
        (structure.log_determinants(prior.covariance_cholesky) - of_frames) / structure.power,
        log_determinants,
        (structure.gram(draws.factors) * scatter).sum(axis=axes),
    )
    return of_weights.sum(axis=1) + of_means + of_precisions.sum(axis=1)


def log_derivative_of_precisions(posterior):
    """log|d Lambda / d T| of the unique entries of Lambda = W' T W, summed over the groups: float."""
    structure = posterior.structure
    log_scales = np.log(structure.diagonal(posterior.whiteners)).sum()
    return (structure.wisharts.block_size + 1) * log_scales


def _prior_exponent(prior):
    """Exponent of |L| in the prior, and in the derivative of the means in u."""
    factors = prior.structure.wisharts
    if prior.flat:
        return -prior.structure.power * factors.n_means
    return prior.degrees_of_freedom - factors.block_size - 1.0


def _prior_sticks(prior):
    """Beta parameters of every break of the stick under the prior, a pair of (B,)."""
    return prior.weights.sticks(np.zeros(prior.structure.n_components))


def _over_diagonal(structure, exponent, factors):
    """The exponent over the diagonal of the factors, (n, S, P) or (n, S, Q)."""
    diagonal = structure.diagonal(factors)
    return np.broadcast_to(exponent.reshape(*exponent.shape[:2], 1), diagonal.shape) / diagonal


_ARRAYS_PER_COPY = 4  # Number of arrays of the size of the rows that exist at once.


def imputations(rows, parameters, random_state, tracked=untracked):
    """Copies of the rows with drawn values in place of missing ones, (n_draws, n_samples, P).

    Parameters
    ----------
    rows : ArrayRows
    parameters : DrawnParameters, whose posterior has the origin of the rows
    random_state : numpy.random.RandomState
    tracked : Tracked, through which batches of the copies are gone
    """
    copies = np.repeat(rows.X[None], len(parameters.draws), axis=0)
    if not rows.has_holes:
        return copies
    places = batches(len(copies), 8 * _ARRAYS_PER_COPY * rows.X.size)
    for batch in tracked(places, len(places)):
        # Every copy uses its own consecutive random numbers, so that the size of batches does not matter.
        numbers = [
            (random_state.random_sample(rows.n_samples), random_state.standard_normal(rows.X.shape))
            for _ in copies[batch]
        ]
        uniforms, normals = map(np.stack, zip(*numbers, strict=True))
        completed = LikelihoodOfDraws(
            parameters.posterior, parameters.draws[batch], parameters.log_weights[batch]
        )
        for block in rows.map(lambda block: block, completed.workload):
            if block.holes is not None:
                numbers = block.numbers - rows.first
                drawn = completed.completed(block, uniforms[:, numbers], normals[:, numbers].swapaxes(1, 2))
                own = copies[batch, numbers]
                drawn = (drawn + rows.origin[:, None]).swapaxes(1, 2)
                copies[batch, numbers] = np.where(np.isnan(own), drawn.astype(own.dtype), own)
    return copies
