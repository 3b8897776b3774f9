"""Rows assigned to labels at random, with random numbers that depend on the row and the draw alone.

Results must not depend on how rows are divided into blocks, nor on which thread or process has a block.
Philox's generator can start anywhere in its sequence: every row of every draw has its own place there.
`RandomLabels` are the labels themselves; likelihoods sum over the rows that are assigned to each.

*Conventions.* L labels: the components, and the noise component if there is one.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from sklearn_lrvb.rows import Workload

DRAWS_OF_STREAM = 16  # Draws whose random numbers are made together, by one generator.
_NUMBERS_AT_A_TIME = 4  # Random numbers that Philox makes at each count.
LEAST_PROBABILITY = 2.0**-54  # Where a uniform number is zero, which is less than half of the next one.

# Number of times that a row may count for which it is assigned again and again. For larger numbers,
# multinomial variables cost less, although one of them takes a microsecond.
MOST_COPIES = 8


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

    @cached_property
    def _philox(self):
        """The generator of bits, that of numbers, and a state, whose counter is to be set."""
        philox = np.random.Philox(key=self.seed)
        return philox, np.random.Generator(philox), philox.state

    def _generator_at(self, *counter):
        """The generator of numbers, which goes on from four numbers that say where."""
        philox, generator, state = self._philox
        state["state"]["counter"][:] = counter
        philox.state = state
        return generator

    def numbers(self, n_draws, start, n_rows, repetition=0):
        """Random numbers of consecutive rows, (n_draws, n_rows).

        Parameters
        ----------
        start : int, number of the first row
        repetition : int, to have different numbers for the same rows
        """
        uniforms = np.empty((n_draws, n_rows))
        place = start * (DRAWS_OF_STREAM // _NUMBERS_AT_A_TIME)
        for begin in range(0, n_draws, DRAWS_OF_STREAM):
            generator = self._generator_at(place, self.first + begin, repetition, 0)
            numbers = generator.random((n_rows, DRAWS_OF_STREAM))
            uniforms[begin : begin + DRAWS_OF_STREAM] = numbers.T[: n_draws - begin]
        return uniforms

    def counts(self, weight, shares, row):
        """How often a row is assigned to labels of some shares: int, (n_draws, L), int -> (n_draws, L)."""
        counts = np.empty(shares.shape)
        for begin in range(0, len(shares), DRAWS_OF_STREAM):
            # The last of the counter's numbers keeps these apart from those of `numbers`.
            some = slice(begin, begin + DRAWS_OF_STREAM)
            counts[some] = self._generator_at(0, self.first + begin, row, 2).multinomial(weight, shares[some])
        return counts

    def numbers_of_block(self, n_draws, block, repetition=0):
        """Random numbers of a block of complete rows, (n_draws, n_rows)."""
        # Nearly consecutive in most blocks, and ascending except where values are missing.
        numbers = block.numbers
        first = numbers.min()
        n_all = numbers.max() + 1 - first
        uniforms = self.numbers(n_draws, int(first), int(n_all), repetition)
        return uniforms if block.missing is None and n_all == len(numbers) else uniforms[:, numbers - first]

    def numbers_of_rows(self, n_draws, rows, n_each, repetition=0):
        """Several random numbers of every draw for rows in any order, (n_rows, n_draws, n_each).

        Parameters
        ----------
        rows : int array (n_rows,), numbers of the rows
        n_each : int
        repetition : int, to have different numbers for the same rows
        """
        place = self.first * n_each // _NUMBERS_AT_A_TIME
        uniforms = np.empty((len(rows), n_draws, n_each))
        for row, own in zip(rows, uniforms, strict=True):
            # The last of the counter's numbers keeps these apart from those of `numbers`.
            self._generator_at(place, row, repetition, 1).random(out=own)
        return uniforms

    def numbers_of_missing_values(self, n_draws, block, repetition=0, n_uniforms=1):
        """Random numbers of a block of rows with missing values.

        Returns
        -------
        uniforms : (n_uniforms, n_draws, n_rows)
        normals : (n_draws, n_features, n_rows), standard normal, and zero where a value is seen
        """
        is_missing = block.missing.is_missing[block.missing.pattern]
        n_missing, numbers = is_missing.sum(axis=1), block.numbers
        uniforms = np.empty((n_uniforms, n_draws, block.n_rows))
        normals = np.zeros((n_draws, *block.rows.shape))
        for n_own in np.unique(n_missing):
            rows = np.flatnonzero(n_missing == n_own)
            columns = np.nonzero(is_missing[rows])[1].reshape(-1, n_own)
            drawn = self.numbers_of_rows(n_draws, numbers[rows], n_uniforms + n_own, repetition)
            uniforms[:, :, rows] = drawn[:, :, :n_uniforms].transpose(2, 1, 0)
            own_normals = ndtri(np.maximum(drawn[:, :, n_uniforms:], LEAST_PROBABILITY))
            normals[:, columns, rows[:, None]] = own_normals.swapaxes(0, 1)
        return uniforms, normals


def can_be_assigned(rows):
    """Whether all rows count a whole number of times, so that they can be assigned at random."""
    return not rows.total(_distance_from_whole)


def _distance_from_whole(block):
    weights = block.sample_weight
    return None if weights is None else float(np.abs(weights - np.round(weights)).sum())


def assign_at_random(log_densities, block, stream):
    """Write how often each row is assigned to each label over the log densities, (L, n_draws, n).

    A row that counts w times, a whole number, is assigned w times.

    Parameters
    ----------
    log_densities : (L, n_draws, n), overwritten
    block : RowBlock
    stream : UniformStream
    """
    n_labels, n_draws, _ = log_densities.shape
    if block.sample_weight is None:
        uniforms = stream.numbers_of_block(n_draws, block)
        if n_labels == 2:
            _assign_pairs(log_densities, uniforms)
        else:
            log_densities[...] = assigned_once(exponentials(log_densities)[0], uniforms)
        return
    densities = exponentials(log_densities)[0]
    counts = np.zeros_like(densities)
    often = block.sample_weight > MOST_COPIES
    for copy in range(int(block.sample_weight[~often].max(initial=0.0))):
        again = ~often & (block.sample_weight > copy)
        uniforms = stream.numbers_of_block(n_draws, block, copy)
        counts[:, :, again] += assigned_once(densities[:, :, again], uniforms[:, again])
    if often.any():
        counts[:, :, often] = _assigned_often(densities[:, :, often], block, often, stream)
    log_densities[...] = counts


def assigned_with_missing_values(log_densities, block, stream, n_uniforms=1):
    """Yield the assignments of rows with missing values, each with the random numbers of these.

    A row that counts w times, a whole number, is assigned w times, and completed w times.

    Parameters
    ----------
    log_densities : (L, n_draws, n), overwritten
    block : RowBlock, with missing values
    stream : UniformStream
    n_uniforms : int, uniform numbers of a row, of which the first one assigns it

    Yields
    ------
    assigned : (L, n_draws, n), ones and zeros
    uniforms : (n_uniforms - 1, n_draws, n), the others
    normals : (n_draws, n_features, n), as in `UniformStream.numbers_of_missing_values`
    """
    densities, n_draws = exponentials(log_densities)[0], log_densities.shape[1]
    for copy in range(int(block.counts.max())):
        uniforms, normals = stream.numbers_of_missing_values(n_draws, block, copy, n_uniforms)
        assigned = assigned_once(densities, uniforms[0])
        assigned *= block.counts > copy
        yield assigned, uniforms[1:], normals


def exponentials(log_densities):
    """Densities relative to the largest of the labels, which overwrite the log densities (L, n_draws, n).

    Returns
    -------
    densities : (L, n_draws, n)
    largest : (n_draws, n), logarithm of what they are divided by
    """
    largest = log_densities.max(axis=0)
    log_densities -= largest
    return np.exp(log_densities, out=log_densities), largest


def _assign_pairs(log_densities, uniforms):
    """One assignment of every row to one of two labels, without exponentials."""
    with np.errstate(divide="ignore"):
        np.log(uniforms / (1.0 - uniforms), out=uniforms)
    is_first = uniforms < log_densities[0] - log_densities[1]
    log_densities[0] = is_first
    log_densities[1] = ~is_first


def assigned_once(densities, uniforms):
    """One assignment of every row, as ones and zeros: (L, n_draws, n), (n_draws, n) -> (L, n_draws, n)."""
    assigned = np.empty_like(densities)
    threshold = uniforms * densities.sum(axis=0)
    reached, is_free = densities[0].copy(), np.ones(uniforms.shape, dtype=bool)
    # Label by label, because reductions and comparisons of whole arrays along the first axis take ten
    # times as long in NumPy.
    for k in range(len(densities) - 1):
        is_beyond = threshold >= reached
        assigned[k] = is_free ^ is_beyond
        is_free = is_beyond
        reached += densities[k + 1]
    assigned[-1] = is_free
    return assigned


def _assigned_often(densities, block, often, stream):
    """Many assignments of every row, as multinomial numbers: (L, n_draws, n) -> (L, n_draws, n)."""
    densities = densities / densities.sum(axis=0)
    return np.stack(
        [
            stream.counts(int(weight), shares.T, int(row)).T
            for weight, row, shares in zip(
                block.sample_weight[often], block.numbers[often], np.moveaxis(densities, 2, 0), strict=True
            )
        ],
        axis=2,
    )


class RandomLabels:
    """Labels to which rows are assigned at random, once for every draw of the parameters.

    The draws may be those of several posteriors, each with a number of components of its own: *sources*.
    Labels are the numbers of the components, and -1 for the noise component.

    Parameters
    ----------
    sources : list of DrawnParameters, measured from the same origin
    seed : int
        The same seed gives a row the same labels, whatever the blocks of rows.
    repetition : int, to have different labels for the same rows
    """

    def __init__(self, sources, seed, repetition=0):
        self._likelihoods = [source.likelihood(source.log_weights) for source in sources]
        self._n_components = [source.posterior.n_components for source in sources]
        self._seed, self._repetition = seed, repetition
        workloads = zip(*(likelihood.workload for likelihood in self._likelihoods), strict=True)
        self.workload = Workload(*map(max, workloads))

    def assigned(self, block):
        """Yield the assignments of the rows of a block, some draws at a time.

        Yields
        ------
        draws : slice, which d of the draws of all sources, these one after another
        labels : int array (L,), the labels under these draws
        assigned : (L, d, n), ones and zeros
        """
        first = 0
        for number, likelihood in enumerate(self._likelihoods):
            for batch, _, log_densities in likelihood.in_batches(block):
                n_labels, n_draws, _ = log_densities.shape
                stream = UniformStream(self._seed + number, batch.start)
                if block.missing is None:
                    uniforms = stream.numbers_of_block(n_draws, block, self._repetition)
                else:
                    uniforms = stream.numbers_of_rows(n_draws, block.numbers, 1, self._repetition)[..., 0].T
                labels = np.arange(n_labels)
                labels[self._n_components[number] :] = -1
                draws = slice(first, first + n_draws)
                yield draws, labels, assigned_once(exponentials(log_densities)[0], uniforms)
                first += n_draws

    def labels(self, block):
        """The labels of a block's rows, the draws of all sources one after another: (n_draws, n)."""
        parts = self.assigned(block)
        return np.concatenate([np.tensordot(labels, assigned, 1) for _, labels, assigned in parts])


def label_draws(rows, sources, seed):
    """Labels of rows in memory under every draw of all sources, int array (n_draws, n_samples)."""
    random_labels, n_draws = RandomLabels(sources, seed), sum(len(source.draws) for source in sources)
    n_components = max(source.posterior.n_components for source in sources)
    dtype = np.min_scalar_type(-n_components)  # int8 up to 128 components.
    labels = rows.each(random_labels.labels, (n_draws,), dtype, random_labels.workload)
    return np.ascontiguousarray(labels.T)
