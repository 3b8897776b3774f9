"""The likelihood of rows under draws of the parameters.

Under weights pi, means mu and precisions Lambda a row counts with the likelihood that the fit maximises,

    log sum_k pi_k N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2),

reg_covar being the known noise on x. In the frame of the fitted component, y = W_k (x - m_k), the logarithm
of a component's term is a polynomial of degree two in y,

    constant + (L u)' y - y' L L' y/2,

with L and u of `parameter_draws`. Its coefficients are of order one where the component holds rows: no digits
are lost, wherever X lies. The values of all draws are one matrix product with the monomials of the rows, and
the moments of the rows, weighted by responsibilities, another: some 2 K F flops for every row and draw, F
being the number of monomials.
"""

import numpy as np
from numpy.random import SeedSequence

from sklearn_lrvb.gaussian_mixture.e_step.own_frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.posterior_sampling.drawn_frames import (
    DrawnFrames,
    constants_of_groups,
    whitened_without_holes,
)
from sklearn_lrvb.gaussian_mixture.posterior_sampling.random_assignments import (
    DRAWS_OF_STREAM,
    UniformStream,
    assign_at_random,
    exponentials,
)
from sklearn_lrvb.row_blocks import batches, slices

_LARGEST_BYTES = 4 * 2**30  # of `log_likelihood_of_draws`; what reads it makes several copies
_NUMBERS_PER_ROW = 256  # Log densities of a row that are computed at once: those of a block stay in cache.


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


class _LikelihoodOfDraws:
    """A function of a block of rows, by the log densities of its rows under some draws.

    Parameters
    ----------
    posterior : VariationalPosterior
    draws : ParameterDraws
    log_weights : (n_draws, K)
    """

    def __init__(self, posterior, draws, log_weights):
        self._posterior, self._frames = posterior, OwnFrames(posterior)
        self._draws, self._log_weights = draws, log_weights
        self._coefficients = _polynomials(posterior, draws, log_weights)
        n_components, n_draws, n_monomials = self._coefficients.shape
        n_streams = _NUMBERS_PER_ROW // (n_components * DRAWS_OF_STREAM)
        self.draws_at_once = min(max(1, n_streams) * DRAWS_OF_STREAM, n_draws)
        # The monomials of all components, and log densities with two arrays of their size.
        self.numbers_per_row = n_components * n_monomials + 3 * n_components * self.draws_at_once

    @property
    def _n_draws(self):
        return self._coefficients.shape[1]

    def _monomials(self, block):
        """The monomials (1, y, s(y)) of a block in every component's frame, (K, F, n)."""
        structure, whitened = self._posterior.structure, self._frames.whiten(block).values
        monomials = np.empty((len(whitened), structure.layout.n_component_features, block.n_rows))
        monomials[:, 0] = 1.0
        monomials[:, 1 : 1 + structure.n_features] = whitened
        for own, rows in zip(monomials, whitened, strict=True):
            structure.write_entries(rows, own[1 + structure.n_features :])
        return monomials

    def _in_batches(self, block):
        """Yield slices of the draws, the block's monomials and its log densities under those draws.

        The log densities are (K, n_draws in the batch, n).
        """
        monomials = self._monomials(block)
        for batch in slices(self._n_draws, self.draws_at_once):
            yield batch, monomials, np.matmul(self._coefficients[:, batch], monomials)

    def _of_holes(self, block):
        """Yield the frames of every draw, the rows of a block with holes there, and their densities.

        The densities (K, n) are relative to the largest of every row, whose logarithm (n,) comes last.
        """
        fitted_rows = whitened_without_holes(self._posterior, block)
        for frames in DrawnFrames.of_draws(self._posterior, self._draws, self._log_weights):
            rows = frames.whiten(fitted_rows, block.holes)
            yield frames, rows, *exponentials(frames.log_densities(rows))

    def _log_likelihood_of_holes(self, block):
        """Log likelihood of every row of a block with holes, (n_draws, n)."""
        return np.stack(
            [largest + np.log(densities.sum(axis=0)) for _, _, densities, largest in self._of_holes(block)]
        )

    def _monomial_sums(self, moments):
        """Moments as sums of the monomials, (K, F); those of a shared precision are all in component 0."""
        structure = self._posterior.structure
        sums = np.zeros((structure.n_components, structure.layout.n_component_features))
        sums[:, 0], sums[:, 1 : 1 + structure.n_features] = moments.counts, moments.first
        sums[: len(moments.second), 1 + structure.n_features :] = structure.entries(moments.second)
        return sums


class _ByRow(_LikelihoodOfDraws):
    """The log likelihood of each row, written to (n, n_draws)."""

    def __call__(self, block, out):
        if block.holes is not None:
            out[...] = block.weighted(self._log_likelihood_of_holes(block)).T
            return
        for batch, _, log_densities in self._in_batches(block):
            out[:, batch] = block.weighted(_normalized(log_densities)[1]).T


class _Sums(_LikelihoodOfDraws):
    """The log likelihood of a block, (n_draws,)."""

    def __call__(self, block):
        if block.holes is not None:
            return block.weighted(self._log_likelihood_of_holes(block)).sum(axis=1)
        return np.concatenate(
            [
                block.weighted(_normalized(log_densities)[1]).sum(axis=1)
                for _, _, log_densities in self._in_batches(block)
            ]
        )


class _Moments(_LikelihoodOfDraws):
    """The log likelihood (n_draws,) and the weighted sums of the monomials (n_draws, K, F) of a block."""

    def __call__(self, block):
        if block.holes is not None:
            return self._of_block_with_holes(block)
        sums, moments = [], []
        for _, monomials, log_densities in self._in_batches(block):
            total, log_likelihood = _normalized(log_densities)
            log_densities *= block.weighted(1.0 / total)
            sums.append(block.weighted(log_likelihood).sum(axis=1))
            moments.append(_sums_of(monomials, log_densities))
        return np.concatenate(sums), np.concatenate(moments)

    def _of_block_with_holes(self, block):
        sums, moments = [], []
        for frames, rows, densities, largest in self._of_holes(block):
            total = densities.sum(axis=0)
            densities *= block.weighted(1.0 / total)
            sums.append(block.weighted(largest + np.log(total)).sum())
            moments.append(self._monomial_sums(frames.moments(rows, densities)))
        return np.array(sums), np.stack(moments)


class _AssignedMoments(_LikelihoodOfDraws):
    """Sums of the monomials over randomly assigned rows of a block, (n_draws, K, F)."""

    def __init__(self, posterior, draws, log_weights, first, seed):
        super().__init__(posterior, draws, log_weights)
        self._first, self._seed = first, seed

    def __call__(self, block):
        if block.holes is not None:
            return self._of_block_with_holes(block)
        parts = []
        for batch, monomials, log_densities in self._in_batches(block):
            assign_at_random(log_densities, block, UniformStream(self._seed, self._first + batch.start))
            parts.append(_sums_of(monomials, log_densities))
        return np.concatenate(parts)

    def _of_block_with_holes(self, block):
        """The same, with hidden values drawn for every row as often as it counts."""
        structure, sums = self._posterior.structure, []
        seed = SeedSequence([self._seed, self._first, block.start])
        generators = map(np.random.default_rng, seed.spawn(len(self._draws)))
        n_copies = 1 if block.sample_weight is None else int(block.sample_weight.max())
        for generator, (frames, rows, densities, _) in zip(generators, self._of_holes(block), strict=True):
            bounds, total = np.cumsum(densities, axis=0), 0.0
            for copy in range(n_copies):
                component = (generator.random(block.n_rows) * bounds[-1] >= bounds[:-1]).sum(axis=0)
                assigned = np.zeros_like(densities)
                assigned[component, np.arange(block.n_rows)] = block.counts > copy
                normals = generator.standard_normal((structure.n_features, block.n_rows))
                completed = frames.completed(rows, normals)
                total = total + self._monomial_sums(frames.moments_of_completed(completed, assigned))
            sums.append(total)
        return np.stack(sums)


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
    of_groups = constants_of_groups(posterior, draws)
    quadratic = structure.entry_coefficients(-0.5 * squares)
    n_components, n_linear = structure.n_components, 1 + structure.n_features
    coefficients = np.empty((n_components, len(draws), layout.n_component_features))
    coefficients[:, :, 0] = (
        log_weights + of_groups - 0.5 * np.einsum("nkp,nkp->nk", scaled_means, scaled_means)
    ).T
    coefficients[:, :, 1:n_linear] = linear.transpose(1, 0, 2)
    coefficients[:, :, n_linear:] = quadratic.transpose(1, 0, 2)
    return coefficients
