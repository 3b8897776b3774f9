"""What single rows do to the posterior: sums over rows of their influence, and arrays of it.

*Influence functions.* Row j of J M^-1 holds the coefficients of functions p_jk of a row with label k, which
make the influence function of target j

    f_j(x) = sum_k r_k(x) p_jk(x),

whose value is the weight influence of a training point at x, d E[target_j] / d w, and whose gradient is its
location influence, d E[target_j] / d x, where rows are numbers. A model has them in closed form
(`MixtureModel.influence_functions`).

The weight influence of a single row is J M^-1 g, where g stacks r_k h_k over the components, h_k being the
row's features there (`Coordinates.features`). With fewer rows than targets, fewer linear systems are solved
this way.
"""

import functools
from abc import ABC, abstractmethod

import numpy as np

from sklearn_lrvb.mixture.e_step import expect_of_counted
from sklearn_lrvb.rows import Workload, untracked


class InfluenceFunctions(ABC):
    """f_j for the rows j of ``coefficients``; a model has a subclass.

    Parameters
    ----------
    posterior : posterior of a mixture
    coefficients : (d, D), rows of J M^-1

    Attributes
    ----------
    n_functions : int, d
    workload : Workload of a pass over the rows, which the subclass sets
    """

    def __init__(self, posterior, coefficients):
        self._posterior, self._coefficients = posterior, coefficients
        self._coordinates = posterior.model.coordinates(posterior)
        self.n_functions = len(coefficients)

    def __reduce__(self):
        # What a subclass makes of the coefficients is larger than these, and quick to compute again.
        return type(self), (self._posterior, self._coefficients)

    def values(self, block, out):
        """Weight influence of a block of n rows, written to (n, d)."""
        expectation = expect_of_counted(self._coordinates, block)
        total = np.zeros((self.n_functions, len(out)))
        for k, r in enumerate(expectation.responsibilities):
            total += r * self.values_of_label(k, expectation.represented)
        out[...] = total.T

    @abstractmethod
    def values_of_label(self, k, represented):
        """p_jk of represented rows with label k, (d, n), or (d, 1) where it is the same for all rows."""

    @abstractmethod
    def gradients(self, block, out):
        """Location influence of a block of n rows, written to (n, d, P); NaN where a value is missing."""


def influence_of_rows(rows, batches, perturb, entries, out=None, tracked=untracked):
    """The influence of every row, (n_samples, *shape of entries), with a last axis (P,) for "location".

    Parameters
    ----------
    rows : ArrayRows
    batches : iterable of influence functions (`MixtureModel.influence_functions`)
    perturb : {"location", "weight"}
    entries : int array, number of the function that every position of the result reports
    out : array for the result, or None
    tracked : Tracked, through which the blocks of rows are gone
    """
    axes = (rows.n_features,) if perturb == "location" else ()
    if out is None:
        out = np.empty((rows.n_samples, *entries.shape, *axes))
    flat = out.reshape(len(out), entries.size, *axes)
    entries, first = entries.ravel(), 0
    is_direct = out.dtype == np.float64 and np.array_equal(entries, np.arange(entries.size))
    for functions in batches:
        last = first + functions.n_functions
        write = functions.gradients if perturb == "location" else functions.values
        if is_direct:  # Half of the time, of the influence of locations on means.
            rows.write(write, flat[:, first:last], functions.workload, tracked)
        else:
            positions = np.flatnonzero((entries >= first) & (entries < last))
            reported = entries[positions] - first
            write = functools.partial(_write_entries, write, functions.n_functions, positions, reported)
            rows.write(write, flat, functions.workload, tracked)
        first = last
    return out


def _write_entries(write, n_functions, positions, reported, block, out):
    """Write functions to the positions that report them: twice in symmetric matrices, or in float32."""
    written = np.empty((block.n_rows, n_functions, *out.shape[2:]))
    write(block, written)
    out[:, positions] = written[:, reported]


def weight_influence_of_few_rows(rows, uncertainty, target, entries, out, tracked=untracked):
    """`influence_of_rows` for "weight", from one linear system for every row.

    With fewer rows than targets this is faster: for one row and 702 covariances, 25 times.

    Parameters
    ----------
    rows : ArrayRows
    uncertainty : PosteriorUncertainty
    target : Target
    entries, out, tracked : as in `influence_of_rows`
    """
    posterior = uncertainty.fitted.posterior
    information = uncertainty.source.information(rows.n_samples)
    coordinates = posterior.model.coordinates(posterior)
    # Solving may itself pass over the training rows in threads, so that it cannot run inside a pass over
    # these. The sources and solutions of a row take D numbers each.
    for block in rows.blocks(2 * 8 * uncertainty.source.size, tracked):
        with uncertainty.source.threads():
            solved = information.solve(sources_of_weights(coordinates, block))
            out[block.index] = target.responses(solved.T)[:, entries]
    return out


def sources_of_weights(coordinates, block):
    """g of all rows of a block, given the coordinates of a posterior for any rows: (D, n)."""
    posterior = coordinates.posterior
    expectation = expect_of_counted(coordinates, block)
    sources = np.zeros((posterior.n_coefficients, block.n_rows))
    for k, r in enumerate(expectation.responsibilities):
        features = coordinates.features(expectation.represented, k)
        sources[posterior.coefficients_of_labels[k]] += r * features
    return sources


def robust_covariance(rows, posterior, batches, n_targets):
    """Sum over rows of w (d theta/d w - mean)(same)', the infinitesimal jackknife: (d, d).

    The influence of all rows, or all influence functions, are in memory at once, whichever is smaller.

    Parameters
    ----------
    rows : Rows, the training rows
    posterior : posterior of a mixture
    batches : iterable of influence functions (`MixtureModel.influence_functions`); n_targets in all
    """
    if rows.is_in_memory and rows.n_samples < posterior.n_coefficients:
        influence = influence_of_rows(rows, batches, "weight", np.arange(n_targets))
        sums, squares = rows.total(_products_of_influence, Workload(n_targets), influence)
    else:
        batches = list(batches)
        function = functools.partial(_products_of_block, batches, n_targets)
        sums, squares = rows.total(function, batches[0].workload)
    covariance = squares - np.outer(sums, sums) / rows.total_weight
    return 0.5 * (covariance + covariance.T)


def _products_of_block(batches, n_targets, block):
    """The same as `_products_of_influence`, computed from the influence functions."""
    influence, start = np.empty((block.n_rows, n_targets)), 0
    for functions in batches:
        stop = start + functions.n_functions
        functions.values(block, influence[:, start:stop])
        start = stop
    return _products_of_influence(block, influence)


def _products_of_influence(block, influence):
    """Sums over a block's rows of w f and of w f f', given their influence f: (n, d) -> (d,), (d, d)."""
    weighted = block.weighted(influence.T)
    return weighted.sum(axis=1), weighted @ influence
