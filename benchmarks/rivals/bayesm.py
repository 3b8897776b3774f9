"""Gibbs sampling by rnmixGibbs of R's bayesm, the sampler of the paper, with coda's effective sizes."""

from dataclasses import dataclass

import numpy as np

from benchmarks.analysis.chains import require_rows
from benchmarks.rivals import rscript

_NUMBERS_IN_MEMORY = 4e7  # most labels that the draws of one segment may have
_LONGEST_SEGMENT = 2000
BURN_IN = 500  # draws; few, as the chain starts at the labels of a fit


@dataclass(frozen=True)
class Chain:
    """A sampled posterior.

    Attributes
    ----------
    draws : (n_draws, D), log weights, means and unique precisions in the order of ``posterior_names_``
    effective_sizes : (D,), by coda's effectiveSize
    burn_in_seconds, seconds : float, of the processor
    """

    draws: np.ndarray
    effective_sizes: np.ndarray
    burn_in_seconds: float
    seconds: float

    def seconds_for(self, effective_size):
        """Seconds until the slowest parameter has the effective size, without burn-in."""
        return self.seconds * effective_size / self.effective_sizes.min()


def missing():
    """What `sample` needs and the machine lacks; empty if nothing is missing."""
    return rscript.missing("bayesm", "coda")


def versions():
    """Versions of R and its packages, and the file of R's BLAS."""
    found = rscript.versions("base", "bayesm", "coda")
    return {"R": found.pop("base"), **found, "BLAS": rscript.blas()}


def sample(X, labels, prior, effective_size, most_draws, seed):
    """Draw from the posterior of a mixture of full components.

    Parameters
    ----------
    X : (n_samples, n_features)
    labels : (n_samples,) of int from 0, where the chain starts
    prior : NearFlatPrior
    effective_size : float, size of every parameter at which the chain ends
    most_draws : int, number of draws at which the chain ends in any case
    seed : int, of R's generator

    Returns
    -------
    Chain
    """
    require_rows(labels, prior.n_components, X.shape[1])
    segment = int(np.clip(_NUMBERS_IN_MEMORY / len(X), 1, _LONGEST_SEGMENT))
    arrays = {
        "X": X,
        "labels": labels + 1,
        "mean": prior.mean,
        "mean_precision": [prior.mean_precision],
        "degrees_of_freedom": [prior.degrees_of_freedom],
        "scale": prior.scale,
        "concentration": [prior.concentration],
    }
    limits = (segment, min(BURN_IN, most_draws), most_draws, effective_size, seed)
    found = rscript.run("gibbs.R", arrays, (*X.shape, prior.n_components, *limits))
    sizes = found["effective"]
    return Chain(found["draws"].reshape(-1, len(sizes)), sizes, *found["seconds"])
