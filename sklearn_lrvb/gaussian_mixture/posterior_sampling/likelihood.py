"""The likelihood of rows under draws of the parameters.

Under weights pi, means mu and precisions Lambda a row counts with the likelihood that the fit maximises,

    log sum_k pi_k N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2),

reg_covar being the known noise on x. In the frame of the fitted component, y = W_k (x - m_k), the logarithm
of a component's term is a polynomial of degree two in y,

    constant + (L u)' y - y' L L' y/2,

with L and u of `parameter_draws`. Its coefficients are of order one where the component holds rows: no digits
are lost, wherever X lies. The values of all draws are one matrix product with the monomials of the rows, and
the moments of the rows, weighted by responsibilities, another: some 2 K F flops for every row and draw, F
being the number of monomials. Rows with holes are taken at what the fit expects of them, and `hidden_values`
has what draws change there.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.posterior_sampling.hidden_values import (
    HiddenValues,
    hidden_values,
    noise_by_feature,
    numbers_of_pattern_and_draw,
)
from sklearn_lrvb.gaussian_mixture.posterior_sampling.random_assignments import (
    DRAWS_OF_STREAM,
    UniformStream,
    assign_at_random,
    assigned_with_holes,
    exponentials,
)
from sklearn_lrvb.row_blocks import RowNumbers, batches, rows_in_batch, slices

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
    rows : CentredRows
    parameters : DrawnParameters
    """
    by_row = np.empty((rows.n_samples, len(parameters.draws)))
    log_weights = parameters.log_shares
    for batch, draws in _draws_in_batches(parameters):
        likelihood = _ByRow(parameters.posterior, draws, log_weights[batch])
        rows.write(likelihood, by_row[:, batch], likelihood.numbers_per_row)
    return by_row.T


def log_likelihood(rows, parameters):
    """Log likelihood of all rows together under every draw, (n_draws,).

    Parameters
    ----------
    rows : CentredRows
    parameters : DrawnParameters
    """
    return np.concatenate(
        [
            _total(rows, _Sums(parameters.posterior, draws, parameters.log_weights[batch]))
            for batch, draws in _draws_in_batches(parameters)
        ]
    )


def log_likelihood_and_moments(rows, parameters):
    """Log likelihood (n_draws,), and sums of responsibility times the monomials (n_draws, K, F)."""
    parts = [
        _total(rows, _Moments(parameters.posterior, draws, parameters.log_weights[batch]))
        for batch, draws in _draws_in_batches(parameters)
    ]
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def moments_of_random_assignments(rows, parameters, seed):
    """Sums of the monomials over the rows that are assigned to every component, at random: (n_draws, K, F).

    A row that counts w times, a whole number, is assigned w times.

    Parameters
    ----------
    rows : CentredRows
    parameters : DrawnParameters
    seed : int
        The same seed gives the same assignments, whatever the blocks of rows.
    """
    parts = []
    for batch, draws in _draws_in_batches(parameters):
        log_weights = parameters.log_weights[batch]
        moments = _AssignedMoments(parameters.posterior, draws, log_weights, batch.start, seed)
        parts.append(_total(rows, moments))
    return np.concatenate(parts)


def _total(rows, function):
    return rows.total(function, function.numbers_per_row, product_size=function.draws_at_once)


def _draws_in_batches(parameters):
    """Slices of the draws whose polynomials fit into memory, and the draws."""
    bytes_each = 2 * 8 * parameters.posterior.structure.n_coefficients * DRAWS_OF_STREAM
    n_streams = -(-len(parameters.draws) // DRAWS_OF_STREAM)
    whole = [
        slice(batch.start * DRAWS_OF_STREAM, batch.stop * DRAWS_OF_STREAM)
        for batch in batches(n_streams, bytes_each)
    ]
    return [(batch, parameters.draws[batch]) for batch in whole]


class LikelihoodOfDraws:
    """A function of a block of rows, by the log densities of its rows under some draws.

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
        of_pattern = max(1, numbers_of_pattern_and_draw(posterior))
        n_streams = rows_in_batch(8 * _LEAST_PATTERNS * DRAWS_OF_STREAM * of_pattern)
        self._draws_with_holes = min(n_streams * DRAWS_OF_STREAM, self.draws_at_once)
        # The monomials of all components, and log densities with two arrays of their size.
        self.numbers_per_row = RowNumbers(
            n_components * n_monomials + 3 * n_components * self.draws_at_once,
            self._draws_with_holes * of_pattern,
        )

    @cached_property
    def _noise(self):
        return noise_by_feature(self._posterior, self._draws)

    def _monomials(self, whitened):
        """The monomials (1, y, s(y)) in every component's frame: (K, P, n) -> (K, F, n)."""
        structure = self._posterior.structure
        n_components, n_features, n_rows = whitened.shape
        monomials = np.empty((n_components, structure.layout.n_component_features, n_rows))
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
        whitened = self._frames.whiten(block)
        monomials = self._monomials(whitened.values)
        at_once = self.draws_at_once if block.holes is None else self._draws_with_holes
        for batch in slices(self._coefficients.shape[1], at_once):
            hidden = None
            log_densities = np.matmul(self._coefficients[:, batch], monomials)
            if block.holes is not None:
                hidden = hidden_values(self._posterior, self._draws[batch], whitened, self._noise[:, batch])
                hidden.add_log_densities(log_densities)
            yield batch, RowsUnderDraws(monomials, hidden), log_densities


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


class _ByRow(LikelihoodOfDraws):
    """The log likelihood of each row, written to (n, n_draws)."""

    def __call__(self, block, out):
        for batch, _, log_densities in self.in_batches(block):
            out[:, batch] = block.weighted(_normalized(log_densities)[1]).T


class _Sums(LikelihoodOfDraws):
    """The log likelihood of a block, (n_draws,)."""

    def __call__(self, block):
        return np.concatenate(
            [
                block.weighted(_normalized(log_densities)[1]).sum(axis=1)
                for _, _, log_densities in self.in_batches(block)
            ]
        )


class _Moments(LikelihoodOfDraws):
    """The log likelihood (n_draws,) and the weighted sums of the monomials (n_draws, K, F) of a block."""

    def __call__(self, block):
        sums, moments = [], []
        for _, rows, log_densities in self.in_batches(block):
            total, log_likelihood = _normalized(log_densities)
            log_densities *= block.weighted(1.0 / total)
            sums.append(block.weighted(log_likelihood).sum(axis=1))
            moments.append(rows.sums(log_densities))
        return np.concatenate(sums), np.concatenate(moments)


class _AssignedMoments(LikelihoodOfDraws):
    """Sums of the monomials over randomly assigned rows of a block, (n_draws, K, F)."""

    def __init__(self, posterior, draws, log_weights, first, seed):
        super().__init__(posterior, draws, log_weights)
        self._first, self._seed = first, seed

    def __call__(self, block):
        return np.concatenate(
            [
                rows.assigned_sums(log_densities, block, UniformStream(self._seed, self._first + batch.start))
                for batch, rows, log_densities in self.in_batches(block)
            ]
        )


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
    structure, layout = posterior.structure, posterior.structure.layout
    squares = structure.gram(draws.factors)
    scaled_means = draws.scaled_means
    linear = structure.transformed(draws.factors, scaled_means)
    of_groups = _constants_of_groups(posterior, draws.factors, squares)
    quadratic = structure.entry_coefficients(-0.5 * squares)
    n_components, n_linear = structure.n_components, 1 + structure.n_features
    coefficients = np.empty((n_components, len(draws), layout.n_component_features))
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
