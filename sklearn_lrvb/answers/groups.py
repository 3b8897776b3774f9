"""Influence of groups of rows, and how estimates vary from one sample of groups to another.

Let S_g = sum over the rows of group g of w_n r_nk h_nk, stacked over the components: what the group adds to
the sufficient statistics. w_n is the weight of a row, r_nk its responsibility, and h_nk its features in
component k (`influence`). If the weights of all rows of the group grow by a small factor 1 + e, the
coefficients change by e M^-1 S_g, with M the observed information. So, with J the derivative of a target,

    J M^-1 S_g                                      is the weight influence of the group on a target,
    S_g' M^-1 S_g                                   is its leverage, and
    V = sum_s (1 - n_s/N_s) n_s/(n_s - 1) sum_g F_g F_g',    F_g = M^-1 S_g less its mean in stratum s,

is the covariance of the coefficients from one sample of groups to another: the sandwich estimator for
clusters, with the small-sample factor known as CR1, and in survey sampling the linearization estimator. n_s
of the N_s groups of stratum s were sampled; without strata there is one, and without its size the factor 1 -
n_s/N_s is 1. The design effect is the trace of M V divided by the sum of the leverages of the rows, which is
that trace for independent rows.
"""

import functools
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.answers.influence import sources_of_weights
from sklearn_lrvb.mixture.e_step import expect_in_range
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.rows import added, batches, untracked
from sklearn_lrvb.symmetric_matrices import gram_root

# The design effect needs the leverages of the rows. Those of more than the first number, or of so many that
# their solutions would take more than the last number of flops, are taken from a random sample of the rows,
# of the second number at least.
_MOST_ROWS_SOLVED, _LEAST_ROWS_SOLVED, _FLOPS_OF_SOLUTIONS = 10_000, 100, 1e10
_OF_OTHER_GROUPS = 0.5  # Expected rows of other groups below which a component belongs to one group.


@dataclass
class _SumsOfGroups:
    """Sums by group, of the groups that occur among some rows. (Other sums are added in place.)

    Attributes
    ----------
    n_groups : int
    groups : int array (g,), ascending
    sums : (g, D)
    """

    n_groups: int
    groups: np.ndarray
    sums: np.ndarray

    def of_all(self):
        """The sums of all groups, (n_groups, D)."""
        if len(self.groups) == self.n_groups:
            return self.sums
        sums = np.zeros((self.n_groups, self.sums.shape[1]))
        sums[self.groups] = self.sums
        return sums

    def __add__(self, later):
        sums = self.of_all()
        sums[later.groups] += later.sums
        return _SumsOfGroups(self.n_groups, np.arange(self.n_groups), sums)


def summed_by_group(values, codes, n_groups):
    """Sums of columns by group, (d, n) and int array (n,): _SumsOfGroups."""
    order = np.argsort(codes, kind="stable")
    groups, first = np.unique(codes[order], return_index=True)
    return _SumsOfGroups(n_groups, groups, np.add.reduceat(values[:, order], first, axis=1).T)


def _sums_of_block(coordinates, place, block, codes):
    """`_SumsOfGroups` of the groups in a slice, over the rows of a block; None where it has none of them."""
    n_groups, size = place.stop - place.start, coordinates.posterior.n_coefficients
    total, inside = None, np.flatnonzero((codes >= place.start) & (codes < place.stop))
    for batch in batches(len(inside), 8 * size):
        part = block.selected(inside[batch])
        values = part.weighted(sources_of_weights(coordinates, part))
        total = added(total, summed_by_group(values, codes[inside[batch]] - place.start, n_groups))
    return total


def sums_by_group(rows, posterior, groups, tracked=untracked):
    """Yield slices of groups, as many as fit into a batch, and their sums S_g, (n, D).

    Parameters
    ----------
    rows : Rows of positive weight
    posterior : posterior of a mixture
    groups : RowGroups, along the rows
    tracked : Tracked, through which the batches are gone
    """
    coordinates, size = posterior.model.coordinates(posterior), posterior.n_coefficients
    places = batches(len(groups), 8 * size)
    for place in tracked(places, len(places)):
        total = rows.total(functools.partial(_sums_of_block, coordinates, place), along=groups.codes)
        yield place, np.zeros((place.stop - place.start, size)) if total is None else total.of_all()


def _solved_sums(rows, uncertainty, groups, information, tracked):
    """Yield slices of groups, their sums S_g, (n, D), and M^-1 S_g as rows, (n, D)."""
    for place, sums in sums_by_group(rows, uncertainty.fitted.posterior, groups, tracked):
        with uncertainty.source.threads():
            solved = information.solve(sums.T).T
        yield place, sums, solved


def influence_of_groups(rows, uncertainty, target, groups, tracked=untracked):
    """Weight influence of groups on a flat target, (G, d)."""
    information = uncertainty.source.information(len(groups))
    influence = np.empty((len(groups), target.size))
    for place, _, solved in _solved_sums(rows, uncertainty, groups, information, tracked):
        influence[place] = target.responses(solved)
    return influence


def leverages_of_groups(rows, uncertainty, groups, tracked=untracked):
    """S_g' M^-1 S_g, (G,)."""
    information = uncertainty.source.information(len(groups))
    leverages = np.empty(len(groups))
    for place, sums, solved in _solved_sums(rows, uncertainty, groups, information, tracked):
        leverages[place] = np.einsum("gd,gd->g", sums, solved)
    return np.maximum(leverages, 0.0)


class SamplingVariation:
    """The covariance V of coefficients from one sample of groups to another, at some coordinates.

    It has the methods of an `ObservedInformation` by which targets and draws get their covariance.

    Parameters
    ----------
    coordinates : int array (c,), ascending
    root : (m, c), Y with Y' Y = V, of no more rows than columns
    counts : (G, L), expected rows of every group by label
    n_components : int, K
    design_effect : float, variances relative to those of independent rows, on average
    """

    def __init__(self, coordinates, root, counts, n_components, design_effect):
        self._coordinates, self._root = coordinates, root
        self.design_effect = design_effect
        # Kish's effective numbers of groups, in all and by component (infinite without rows): that of groups
        # of equal weight from which a mean would be known as well.
        weights, component_counts = counts.sum(axis=1), counts[:, :n_components]
        self.n_effective = weights.sum() ** 2 / np.square(weights).sum()
        total, squares = component_counts.sum(axis=0), np.square(component_counts).sum(axis=0)
        held = occupied(total)
        self.of_components = np.divide(total**2, squares, out=np.full_like(total, np.inf), where=held)

    def covariance_root(self, coordinates):
        """Y at some of the coordinates, (m, n)."""
        return self._root[:, np.searchsorted(self._coordinates, coordinates)]

    @property
    def deviations(self):
        """Standard deviations of the coefficients, (c,)."""
        return np.linalg.norm(self._root, axis=0)

    def correlated(self, normals):
        """Draws with covariance V from standard normal columns: (c, n) -> (c, n)."""
        return self._root.T @ normals[: len(self._root)]


def groups_that_count(rows, posterior, groups):
    """The groups that have rows of positive weight, for error bars: RowGroups.

    Parameters
    ----------
    rows : Rows, the training rows of positive weight
    posterior : posterior of a mixture
    groups : RowGroups, along the rows

    Raises
    ------
    ValueError
        A stratum has fewer than two of them, or a component that holds rows has next to none of a second one.
    """
    of_block = functools.partial(_counts_of_block, posterior.model.coordinates(posterior), len(groups))
    counts = rows.total(of_block, along=groups.codes).of_all()
    chosen = groups.chosen(counts.sum(axis=1) > 0)
    _refuse_components_of_one_group(counts[:, : posterior.n_components], groups.names)
    return chosen


def _counts_of_block(coordinates, n_groups, block, codes):
    """Expected rows of every group by label, as far as they are in a block: _SumsOfGroups."""
    responsibilities = expect_in_range(coordinates, block).responsibilities
    return summed_by_group(block.weighted(responsibilities), codes, n_groups)


def sampling_variation(rows, uncertainty, groups, coordinates, tracked=untracked):
    """`SamplingVariation` of the training rows.

    Parameters
    ----------
    rows : Rows, the training rows of positive weight
    uncertainty : PosteriorUncertainty
    groups : RowGroups, along the rows; all have rows of positive weight
    coordinates : int array (c,), ascending, of the coefficients
    tracked : Tracked, through which the batches of groups are gone

    Raises
    ------
    ValueError
        The rows are not those of the fit.
    """
    information = uncertainty.source.information(len(groups), rows=rows)
    factors, posterior = groups.factors(), uncertainty.fitted.posterior
    counts, leverage, size = np.empty((len(groups), posterior.n_labels)), 0.0, len(coordinates)
    stratum_sums = np.zeros((groups.n_strata, len(information)))
    has_few = len(groups) <= size  # Then the responses of all groups are kept, and else their products.
    kept, gram = [], np.zeros((0, 0) if has_few else (size, size))
    for place, sums, solved in _solved_sums(rows, uncertainty, groups, information, tracked):
        counts[place] = sums[:, : posterior.n_labels]
        responses, strata = solved[:, coordinates], groups.strata[place]
        leverage += float(factors[strata] @ np.einsum("gd,gd->g", sums, solved))
        np.add.at(stratum_sums, strata, sums)
        if has_few:
            kept.append(responses)
        else:
            gram += (factors[strata, None] * responses).T @ responses
    n_groups = np.bincount(groups.strata)
    with uncertainty.source.threads():
        solved = information.solve(stratum_sums.T).T
    mean_leverages = np.einsum("sd,sd->s", stratum_sums, solved) / n_groups
    leverage, total = max(leverage - float(factors @ mean_leverages), 0.0), solved[:, coordinates]
    means = total / n_groups[:, None]
    if has_few:
        root = np.concatenate(kept) - means[groups.strata]
        root *= np.sqrt(factors[groups.strata, None])
    else:
        root = gram_root(gram - (factors[:, None] * means).T @ total)
    design_effect = leverage / _leverage_of_rows(rows, uncertainty, information)
    return SamplingVariation(coordinates, root, counts, posterior.n_components, design_effect)


def _leverage_of_rows(rows, uncertainty, information):
    """Sum of the leverages of the rows, each as often as it counts; of many rows, from some of them."""
    size = len(information)
    n_rows = min(_MOST_ROWS_SOLVED, max(_LEAST_ROWS_SOLVED, int(_FLOPS_OF_SOLUTIONS // size**2)))
    if rows.n_samples <= n_rows:
        some = rows.in_memory()
    else:  # Positions at random, because evenly spaced rows may agree with a period of the weights.
        some = rows.at(np.sort(np.random.RandomState(0).uniform(0.0, rows.total_weight, n_rows)))[1]
    posterior, total = uncertainty.fitted.posterior, 0.0
    coordinates = posterior.model.coordinates(posterior)
    for block in some.blocks(2 * 8 * size):
        sources = sources_of_weights(coordinates, block)
        with uncertainty.source.threads():
            total += float(block.weighted(np.einsum("dn,dn->n", sources, information.solve(sources))).sum())
    return total * rows.total_weight / some.total_weight


def _refuse_components_of_one_group(counts, names):
    """Raise ValueError where a component that holds rows has next to none of a second group.

    Parameters
    ----------
    counts : (G, K), expected rows
    names : (G,), of the groups
    """
    total, largest = counts.sum(axis=0), counts.max(axis=0)
    lonely = np.flatnonzero(occupied(total) & (total - largest < _OF_OTHER_GROUPS))
    if lonely.size:
        k = int(lonely[0])
        name, others = names[counts[:, k].argmax()], (total - largest)[k]
        raise ValueError(
            f"Component {k} has {total[k]:.3g} expected rows, of which all but {others:.2g} belong to group "
            f"{name}, so that the component cannot be told from this group. (a) Lower "
            "n_components. (b) Use smaller groups, if their rows are independent. (c) Leave this group out."
        )
