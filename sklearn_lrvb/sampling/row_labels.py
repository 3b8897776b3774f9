"""Labels of rows, drawn given draws of the parameters.

The draws may be those of several posteriors, each with a number of components of its own: *sources*. Labels
are the numbers of the components, and -1 for the background.
"""

import numpy as np

from sklearn_lrvb.rows import Workload
from sklearn_lrvb.sampling.random_assignments import (
    UniformStream,
    assigned_once,
    exponentials,
)


class RandomLabels:
    """Labels to which rows are assigned at random, once for every draw of the parameters.

    Parameters
    ----------
    sources : list of DrawnParameters, measured from the same origin
    seed : int
        The same seed gives a row the same labels, whatever the blocks of rows.
    repetition : int, to have different labels for the same rows
    """

    def __init__(self, sources, seed, repetition=0):
        self._likelihoods = [
            source.posterior.model.likelihood_of_draws(source.posterior, source.draws, source.log_weights)
            for source in sources
        ]
        self._n_components = [source.posterior.n_components for source in sources]
        self._seed, self._repetition = seed, repetition
        self.n_draws = sum(len(source.draws) for source in sources)
        self.workload = Workload(
            *map(max, zip(*(likelihood.workload for likelihood in self._likelihoods), strict=True))
        )

    def assigned(self, block):
        """Yield the assignments of the rows of a block, some draws at a time.

        Yields
        ------
        number : int, of the source
        batch : slice of its draws, d of them
        assigned : (L, d, n), ones and zeros; the background is the last label, if there is one
        """
        for number, likelihood in enumerate(self._likelihoods):
            for batch, _, log_densities in likelihood.in_batches(block):
                n_draws, stream = log_densities.shape[1], UniformStream(self._seed + number, batch.start)
                if block.holes is None:
                    uniforms = stream.numbers_of_block(n_draws, block, self._repetition)
                else:
                    own = stream.numbers_of_rows(n_draws, block.numbers, 1, self._repetition)
                    uniforms = own[:, :, 0].T
                yield number, batch, assigned_once(exponentials(log_densities)[0], uniforms)

    def labels(self, block):
        """The labels, the draws of all sources one after another: (n_draws, n)."""
        parts = []
        for number, _, assigned in self.assigned(block):
            numbers = np.arange(len(assigned))
            numbers[self._n_components[number] :] = -1
            parts.append(np.tensordot(numbers, assigned, 1))
        return np.concatenate(parts)


def label_draws(rows, sources, seed):
    """Labels of rows in memory under every draw of all sources, int array (n_draws, n_samples)."""
    random_labels = RandomLabels(sources, seed)
    n_components = max(source.posterior.n_components for source in sources)
    dtype = np.min_scalar_type(-n_components)  # int8 up to 128 components.
    labels = rows.each(random_labels.labels, (random_labels.n_draws,), dtype, random_labels.workload)
    return np.ascontiguousarray(labels.T)
