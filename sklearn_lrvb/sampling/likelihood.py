"""The likelihood of rows under draws of the parameters: passes over the rows, for mixtures of any model.

*Conventions.* L labels: the components, and the noise component if there is one; d draws, n rows of a block;
F statistics of a row, of which log densities are linear functions: those of a normal component are monomials.
"""

from abc import ABC, abstractmethod
from functools import partial

import numpy as np

from sklearn_lrvb.mixture.e_step import expect_in_range
from sklearn_lrvb.rows import batches, untracked
from sklearn_lrvb.sampling.random_assignments import DRAWS_OF_STREAM, UniformStream, exponentials

_NUMBERS_PER_ROW = 256  # Log densities of a row that are computed at once: those of a block stay in cache.
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


class LikelihoodOfDraws(ABC):
    """The log densities of rows under some draws.

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


def draws_at_once(n_labels, n_draws):
    """Number of draws under which the log densities of a block are computed at once: int."""
    n_streams = max(1, _NUMBERS_PER_ROW // (n_labels * DRAWS_OF_STREAM))
    return min(n_streams * DRAWS_OF_STREAM, n_draws)


def _in_batches(parameters, log_weights):
    """Yield slices of the draws whose coefficients fit into memory, and their `LikelihoodOfDraws`."""
    bytes_each = 2 * 8 * parameters.posterior.n_coefficients * DRAWS_OF_STREAM
    n_streams = -(-len(parameters.draws) // DRAWS_OF_STREAM)
    for streams in batches(n_streams, bytes_each):
        batch = slice(streams.start * DRAWS_OF_STREAM, streams.stop * DRAWS_OF_STREAM)
        yield batch, parameters.with_draws(parameters.draws[batch]).likelihood(log_weights[batch])


# Functions of log densities (L, d, n), which are overwritten.


def _normalized(log_densities):
    """Turn log densities into densities relative to the largest.

    Returns
    -------
    total : (d, n), sum of the relative densities
    log_likelihood : (d, n)
    """
    densities, largest = exponentials(log_densities)
    total = densities.sum(axis=0)
    return total, largest + np.log(total)


def probabilities(log_densities):
    """Probabilities of the labels, (L, d, n), in place of log densities."""
    log_densities *= 1.0 / _normalized(log_densities)[0]
    return log_densities


def scores(log_densities):
    """Log likelihood of every row, (d, n)."""
    return _normalized(log_densities)[1]


# Sums over all rows.


def log_likelihood(rows, parameters):
    """Log likelihood of all rows together under every draw, (n_draws,)."""
    return _totals(rows, parameters, _sums_of_scores)[0]


def _sums_of_scores(block, rows, log_densities, first):
    return (block.weighted(scores(log_densities)).sum(axis=1),)


def expected_counts(rows, parameters):
    """Expected number of rows with every label under every draw, (n_draws, L)."""
    return _totals(rows, parameters, _sums_of_probabilities)[0]


def _sums_of_probabilities(block, rows, log_densities, first):
    return (block.weighted(probabilities(log_densities)).sum(axis=2).T,)


def log_likelihood_and_moments(rows, parameters):
    """Log likelihood (n_draws,), and sums of responsibility times the statistics (n_draws, L, F)."""
    return _totals(rows, parameters, _sums_of_scores_and_statistics)


def _sums_of_scores_and_statistics(block, rows, log_densities, first):
    total, own_scores = _normalized(log_densities)
    log_densities *= block.weighted(1.0 / total)
    return block.weighted(own_scores).sum(axis=1), rows.sums(log_densities)


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
    return _totals(rows, parameters, partial(_assigned_sums, seed))[0]


def _assigned_sums(seed, block, rows, log_densities, first):
    return (rows.assigned_sums(log_densities, block, UniformStream(seed, first)),)


def _totals(rows, parameters, function):
    """Totals over the rows of arrays under every draw: tuple of (n_draws, ...).

    Parameters
    ----------
    rows : Rows
    parameters : DrawnParameters
    function : callable
        (block, its rows under some draws, their log densities, number of the first draw) -> tuple of arrays
        whose first axis is that of the draws
    """
    parts = [
        rows.total(partial(_of_block, likelihood, function, batch.start), likelihood.workload)
        for batch, likelihood in _in_batches(parameters, parameters.log_weights)
    ]
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def _of_block(likelihood, function, first, block):
    parts = [
        function(block, rows, log_densities, first + batch.start)
        for batch, rows, log_densities in likelihood.in_batches(block)
    ]
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


# What the draws say of each row.


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
        rows.write(partial(_write_scores, likelihood), by_row[:, batch], likelihood.workload)
    return by_row.T


def _write_scores(likelihood, block, out):
    for batch, _, log_densities in likelihood.in_batches(block):
        out[:, batch] = block.weighted(scores(log_densities)).T


def log_densities_of_draws(rows, parameters):
    """Yield the log densities of all rows with every label, without log weights, draw by draw: (n_given, L).

    Parameters
    ----------
    rows : Rows
    parameters : DrawnParameters
    """
    n_labels = parameters.log_weights.shape[1]
    for batch in batches(len(parameters.draws), 8 * n_labels * rows.n_given):
        some = parameters.with_draws(parameters.draws[batch])
        n_draws = len(some.draws)
        likelihood = some.likelihood(np.zeros((n_draws, n_labels)))
        values = rows.each(
            partial(_log_densities_of_block, likelihood), (n_draws, n_labels), workload=likelihood.workload
        )
        yield from np.moveaxis(np.asarray(values), 1, 0)


def _log_densities_of_block(likelihood, block):
    """(L, d, n)"""
    parts = [log_densities.copy() for _, _, log_densities in likelihood.in_batches(block)]
    return np.concatenate(parts, axis=1)


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
    coordinates = posterior.model.coordinates(posterior)
    likelihood = parameters.likelihood(parameters.log_shares)
    of_block = partial(_deviations_of_block, coordinates, likelihood, function)
    return rows.each(of_block, shape, workload=likelihood.workload, tracked=tracked)


def _deviations_of_block(coordinates, likelihood, function, block):
    expect_in_range(coordinates, block)  # As by linear response, rows that are too far away are refused.
    n_draws, mean, squares = 0, 0.0, 0.0
    for _, _, log_densities in likelihood.in_batches(block):
        values = function(log_densities)
        n_own, own_mean = values.shape[-2], values.mean(axis=-2)
        share, distance = n_own / (n_draws + n_own), own_mean - mean
        values -= own_mean[..., None, :]
        squares += np.square(values).sum(axis=-2) + n_draws * share * np.square(distance)
        mean, n_draws = mean + share * distance, n_draws + n_own
    return np.sqrt(squares / n_draws)
