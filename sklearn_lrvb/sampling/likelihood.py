"""The likelihood of rows under draws of the parameters: passes over the rows, for any kind of mixture.

*Conventions.* L labels: the components, and the background if there is one; n rows of a block; F
statistics of a row, of which log densities are linear functions: those of a normal component are monomials.
"""

from abc import ABC, abstractmethod
from functools import partial

import numpy as np

from sklearn_lrvb.mixture.responsibilities import expect_in_range
from sklearn_lrvb.rows import batches, untracked
from sklearn_lrvb.sampling.random_assignments import (
    DRAWS_OF_STREAM,
    UniformStream,
    exponentials,
)

_LARGEST_BYTES = 4 * 2**30  # of `log_likelihood_of_draws`; what reads it makes several copies


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


def deviations_of_rows(rows, parameters, function, shape=(), tracked=untracked):
    """Standard deviations over the draws of what their log densities say of each row: (n_given, *shape).

    Memory is that of a block of rows under a batch of draws. Weights are scaled to sum to one.

    Parameters
    ----------
    rows : Rows
    parameters : DrawnParameters
    function : callable
        Log densities (L, d, n) of n rows under d draws, which may be overwritten -> (*shape, d, n).
    shape, tracked : as in `Rows.each`
    """
    posterior = parameters.posterior
    frames = posterior.model.frames(posterior)
    likelihood = parameters.likelihood(parameters.log_shares)
    of_block = partial(_deviations_of_block, frames, likelihood, function)
    return rows.each(of_block, shape, workload=likelihood.workload, tracked=tracked)


def _deviations_of_block(frames, likelihood, function, block):
    expect_in_range(frames, block)  # As by linear response, rows that are too far away are refused.
    return likelihood.deviations(function, block)


def probabilities(log_densities):
    """Probabilities of the labels, (L, d, n), in place of log densities."""
    log_densities *= 1.0 / _normalized(log_densities)[0]
    return log_densities


def scores(log_densities):
    """Log likelihood of every row, (d, n), from its log densities (L, d, n), which are overwritten."""
    return _normalized(log_densities)[1]


def log_likelihood(rows, parameters):
    """Log likelihood of all rows together under every draw, (n_draws,)."""
    return np.concatenate(_totals(rows, parameters, LikelihoodOfDraws.sums))


def expected_counts(rows, parameters):
    """Expected number of rows with every label under every draw, (n_draws, L)."""
    return np.concatenate(_totals(rows, parameters, LikelihoodOfDraws.counts))


def log_likelihood_and_moments(rows, parameters):
    """Log likelihood (n_draws,), and sums of responsibility times the statistics (n_draws, L, F)."""
    parts = _totals(rows, parameters, LikelihoodOfDraws.sums_and_moments)
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def moments_of_random_assignments(rows, parameters, seed):
    """Sums of the statistics over the rows that are assigned to every label, at random: (n_draws, L, F).

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


def _totals(rows, parameters, function):
    """Totals over the rows of ``function(likelihood, block)``, of every batch of draws: list."""
    return [
        rows.total(partial(function, likelihood), likelihood.workload)
        for _, likelihood in _in_batches(parameters, parameters.log_weights)
    ]


def _in_batches(parameters, log_weights):
    """Yield slices of the draws whose coefficients fit into memory, and their `LikelihoodOfDraws`."""
    bytes_each = 2 * 8 * parameters.posterior.n_coefficients * DRAWS_OF_STREAM
    n_streams = -(-len(parameters.draws) // DRAWS_OF_STREAM)
    for streams in batches(n_streams, bytes_each):
        batch = slice(streams.start * DRAWS_OF_STREAM, streams.stop * DRAWS_OF_STREAM)
        yield batch, parameters.with_draws(parameters.draws[batch]).likelihood(log_weights[batch])


class LikelihoodOfDraws(ABC):
    """The log densities of rows under some draws, and functions of a block by way of them.

    Attributes
    ----------
    workload : Workload, of a block
    """

    @abstractmethod
    def in_batches(self, block):
        """Yield slices of the draws, and what belongs to a block under those draws.

        Yields
        ------
        batch : slice, which starts at a multiple of `DRAWS_OF_STREAM`
        rows : object with

            * ``sums(weights)`` : sums of weight times the statistics, as expected given what is seen:
              (L, d, n) -> (d, L, F);
            * ``assigned_sums(log_densities, block, stream)`` : the same of rows that are assigned at random
              by a UniformStream (`assign_at_random`); log densities may be overwritten. The first of the F
              sums is zero for labels without rows alone.

        log_densities : (L, d, n), of the d draws, log weights included, which may be overwritten
        """

    def by_row(self, block, out):
        """Write the log likelihood of each row, as often as it counts: (n, n_draws)."""
        for batch, _, log_densities in self.in_batches(block):
            out[:, batch] = block.weighted(_normalized(log_densities)[1]).T

    def deviations(self, function, block):
        """Standard deviations over the draws of a function of the log densities, as `deviations_of_rows`."""
        n_draws, mean, squares = 0, 0.0, 0.0
        for _, _, log_densities in self.in_batches(block):
            values = function(log_densities)
            n_own, own_mean = values.shape[-2], values.mean(axis=-2)
            share, distance = n_own / (n_draws + n_own), own_mean - mean
            values -= own_mean[..., None, :]
            squares += np.square(values).sum(axis=-2) + n_draws * share * np.square(distance)
            mean, n_draws = mean + share * distance, n_draws + n_own
        return np.sqrt(squares / n_draws)

    def sums(self, block):
        """The log likelihood of a block, (n_draws,)."""
        normalized = (_normalized(log_densities)[1] for _, _, log_densities in self.in_batches(block))
        return np.concatenate([block.weighted(log_likelihood).sum(axis=1) for log_likelihood in normalized])

    def counts(self, block):
        """Expected number of rows of a block with every label, (n_draws, L)."""
        parts = []
        for _, _, log_densities in self.in_batches(block):
            log_densities *= block.weighted(1.0 / _normalized(log_densities)[0])
            parts.append(log_densities.sum(axis=2).T)
        return np.concatenate(parts)

    def sums_and_moments(self, block):
        """The log likelihood (n_draws,) and the weighted sums of statistics (n_draws, L, F) of a block."""
        sums, moments = [], []
        for _, rows, log_densities in self.in_batches(block):
            total, log_likelihood = _normalized(log_densities)
            log_densities *= block.weighted(1.0 / total)
            sums.append(block.weighted(log_likelihood).sum(axis=1))
            moments.append(rows.sums(log_densities))
        return np.concatenate(sums), np.concatenate(moments)

    def assigned_moments(self, seed, first, block):
        """Sums of the statistics over randomly assigned rows of a block; the first draw has a number."""
        return np.concatenate(
            [
                rows.assigned_sums(log_densities, block, UniformStream(seed, first + batch.start))
                for batch, rows, log_densities in self.in_batches(block)
            ]
        )


def _normalized(log_densities):
    """Turn log densities (L, n_draws, n) into densities relative to the largest.

    Returns
    -------
    total : (n_draws, n), sum of the relative densities
    log_likelihood : (n_draws, n)
    """
    densities, largest = exponentials(log_densities)
    total = densities.sum(axis=0)
    return total, largest + np.log(total)
