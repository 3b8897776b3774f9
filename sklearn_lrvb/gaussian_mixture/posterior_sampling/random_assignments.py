"""Rows assigned to components at random, with random numbers that depend on the row and the draw alone.

Results must not depend on how rows are divided into blocks, nor on which thread or process has a block.
Philox's generator can start anywhere in its sequence: every row of every draw has its own place there.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrik

DRAWS_OF_STREAM = 16  # Draws whose random numbers are made together, by one generator.
_NUMBERS_AT_A_TIME = 4  # Random numbers that Philox makes at each count.

# Number of times that a row may count for which it is assigned again and again. For larger numbers, quantiles
# of binomial variables cost less, although one of them takes a microsecond.
_MOST_COPIES = 32


@dataclass(frozen=True)
class UniformStream:
    """Uniform random numbers.

    Attributes
    ----------
    seed : int
    first : int, number of the first draw, a multiple of `DRAWS_OF_STREAM`
    """

    seed: int
    first: int

    def numbers(self, n_draws, start, n_rows, repetition=0):
        """Random numbers of consecutive rows, (n_draws, n_rows).

        Parameters
        ----------
        start : int, number of the first row
        repetition : int, to have different numbers for the same rows
        """
        uniforms = np.empty((n_draws, n_rows))
        for begin in range(0, n_draws, DRAWS_OF_STREAM):
            counter = [0, self.first + begin, repetition, 0]
            philox = np.random.Philox(key=self.seed, counter=counter)
            philox.advance(start * (DRAWS_OF_STREAM // _NUMBERS_AT_A_TIME))
            numbers = np.random.Generator(philox).random((n_rows, DRAWS_OF_STREAM))
            uniforms[begin : begin + DRAWS_OF_STREAM] = numbers.T[: n_draws - begin]
        return uniforms


def assign_at_random(densities, block, stream):
    """Write how often each row is assigned to each component over the relative densities, (K, n_draws, n).

    A row that counts w times, a whole number, is assigned w times.

    Parameters
    ----------
    densities : (K, n_draws, n), overwritten
    block : RowBlock
    stream : UniformStream
    """
    if block.sample_weight is None:
        densities[...] = _assigned_once(
            densities, stream.numbers(densities.shape[1], block.start, block.n_rows)
        )
        return
    counts = np.zeros_like(densities)
    often = block.sample_weight > _MOST_COPIES
    for copy in range(int(block.sample_weight[~often].max(initial=0.0))):
        again = ~often & (block.sample_weight > copy)
        uniforms = stream.numbers(densities.shape[1], block.start, block.n_rows, copy)
        counts[:, :, again] += _assigned_once(densities[:, :, again], uniforms[:, again])
    if often.any():
        counts[:, :, often] = _assigned_often(densities[:, :, often], block, often, stream)
    densities[...] = counts


def _assigned_once(densities, uniforms):
    """One assignment of every row, as ones and zeros: (K, n_draws, n), (n_draws, n) -> (K, n_draws, n)."""
    assigned = np.zeros_like(densities)
    sums = np.cumsum(densities, axis=0)
    beyond = uniforms * sums[-1] >= sums[:-1]  # (K - 1, n_draws, n), falling along the components
    assigned[0] = 1.0
    assigned[1:] = beyond
    assigned[:-1] -= beyond
    return assigned


def _assigned_often(densities, block, often, stream):
    """Many assignments of every row, as binomial numbers: (K, n_draws, n) -> (K, n_draws, n)."""
    n_draws = densities.shape[1]
    left = np.broadcast_to(block.sample_weight[often], densities.shape[1:]).copy()
    counts = np.zeros_like(densities)
    # Sums of a component and all later ones, without cancellation.
    sums = np.cumsum(densities[::-1], axis=0)[::-1]
    for k in range(len(densities) - 1):
        uniforms = stream.numbers(n_draws, block.start, block.n_rows, k)[:, often]
        share = np.divide(densities[k], sums[k], out=np.zeros_like(left), where=sums[k] > 0)
        counts[k] = _binomial_quantile(uniforms, left, share)
        left -= counts[k]
    counts[-1] = left
    return counts


def _binomial_quantile(probability, n, share):
    """Quantiles of binomial variables, all (...)."""
    inside = (share > 0) & (share < 1) & (n > 0)
    quantiles = np.where(share >= 1, n, 0.0)
    found = bdtrik(probability[inside], n[inside], share[inside])
    # It is NaN where zero alone has more probability than asked for.
    quantiles[inside] = np.ceil(np.nan_to_num(np.maximum(found, 0.0)))
    return np.minimum(quantiles, n)
