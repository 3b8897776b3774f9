"""The rows that starts are not made from, where there may be outliers.

With noise they start as noise. Which rows these are is decided by three rules, each of which makes a start,
and the lower bound judges:

* rows *far out* have few others near them: the rule for a few outliers among clusters;
* the *sparser half* of the rows: clusters on an even background;
* rows far out and the *smallest cluster* of one more than there are components: outliers that lie together.

With heavy tails only the first rule holds. The rows far out then start like the nearest of the others, but
are not among the rows that centers are made from: k-means would give a component to a few of them.

Distances are in the metric of the core, so that they depend on no units or rotations of X; the clusters of
the third rule are in units of its standard deviations. All is made from the rows where they are few, and
otherwise from a sample that depends on no random numbers; missing values are completed.
"""

import functools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree
from sklearn.neighbors import NearestNeighbors

from sklearn_lrvb.gaussian.e_step.coordinates import posterior_from_responsibilities
from sklearn_lrvb.gaussian.fitting.core import counts_of
from sklearn_lrvb.gaussian.fitting.starts import STANDARDIZED_KMEANS, starting_responsibilities

# A row is far out if its tenth neighbour is farther than those of 90 % of the rows, and either 1.2 times as
# far as is usual among its neighbours, so that small or wide clusters are spared, or 10 times the median
# distance, as of gross outliers that are neighbours of each other. Where clusters were unequal (of 600 rows,
# 60 in one twice as wide, or 20 in one), with up to 8 % of outliers, 30 to 40 % of the rows of the smallest
# cluster were far out in 2 and 5 dimensions; by the first condition alone, nearly all.
_NEIGHBOURS, _FAR_OUT = 10, 0.1
_LOCAL_RATIO, _GROSS_RATIO = 1.2, 10.0
_HALF = 0.5
_FEW_ROWS = 2**12  # Largest number of rows that starts are made from.
# Number of dimensions up to which a tree finds them faster; in 10 it took 1.3 times as long.
_MOST_FOR_TREE = 8
_LEAST_DISTANCE = 1e-6  # Shorter distances, in standard deviations, or relative differences may be rounding.


@dataclass(frozen=True)
class RowsAside:
    """The rows that starts are made from, and which of them are left aside.

    Attributes
    ----------
    sample : FarOut, whose rows these are
    are_aside : bool array (n,)
    nearest : int array (n,), for every row the nearest one that is not aside; None with noise
    """

    sample: "FarOut"
    are_aside: np.ndarray
    nearest: np.ndarray | None = None

    def start(self, ascent, prior, kind, random_state):
        """The state of an ascent before the first step.

        Parameters
        ----------
        ascent : Ascent
        prior : MixturePrior
        kind : StartKind
        random_state : RandomState
        """
        sample, n_components = self.sample, prior.structure.n_components
        kept = np.flatnonzero(~self.are_aside)
        if len(np.unique(sample.complete.X[kept], axis=0)) < n_components:
            raise ValueError(
                f"{len(kept)} rows are left for {n_components} components to start from, after those far out "
                "that start as noise. (a) Lower n_components. (b) Use noise=None. (c) Pass responsibilities "
                "as init_params."
            )
        responsibilities = np.zeros((sample.rows.n_samples, prior.structure.n_labels))
        responsibilities[kept, :n_components] = _responsibilities(
            sample.complete.chosen(kept), n_components, kind, random_state, prior.flat
        )
        if self.nearest is None:
            responsibilities[self.are_aside, -1] = 1.0
        else:
            responsibilities = responsibilities[self.nearest]
        if sample.are_all:
            return ascent.start_from(responsibilities, prior)
        return ascent.start_at(posterior_from_responsibilities(sample.rows, prior, responsibilities))


def _responsibilities(rows, n_components, kind, random_state, is_flat=False):
    """Starting responsibilities of few complete rows, (n, K)."""
    made = starting_responsibilities(rows, n_components, kind, random_state, is_flat)
    return rows.each(lambda block: made(block).T, (n_components,)) if callable(made) else made


def rules_of_far_out(rows, n_components, core, are_noise):
    """The rows that starts are not made from, by the rules that take turns: list of RowsAside or None.

    Parameters
    ----------
    rows : Rows of positive weight
    n_components : int
    core : Core of the rows
    are_noise : bool, whether rows aside start as noise
    """
    if n_components == 1 and not are_noise:
        return [None]
    sample = FarOut(rows, core)
    far_out = sample.are_far_out
    if are_noise:
        rules = far_out, sample.are_in_sparser_half, sample.with_smallest_cluster(n_components)
        return [RowsAside(sample, are_aside) for are_aside in rules]
    if len(np.unique(sample.complete.X[~far_out], axis=0)) < n_components:
        far_out = np.zeros_like(far_out)
    return [RowsAside(sample, far_out, sample.nearest_of(~far_out))]


class FarOut:
    """Which rows have few others near them.

    Parameters
    ----------
    rows : Rows of positive weight
    core : Core of the rows

    Attributes
    ----------
    rows : ArrayRows, all rows or a sample that counts as much
    complete : ArrayRows, the same without missing values
    are_all : bool
    """

    def __init__(self, rows, core):
        self.are_all = max(rows.n_samples, rows.total_weight) <= _FEW_ROWS
        if self.are_all:
            self.rows = rows.in_memory()
        else:
            counts = np.full(_FEW_ROWS, rows.total_weight / _FEW_ROWS)
            self.rows = replace(rows.thinned(_FEW_ROWS), sample_weight=counts)
        self.complete = self.rows if core.completion is None else core.completion.completed(self.rows)
        self._core, self._points = core, core.whitened(self.complete)

    @cached_property
    def _distances(self):
        """Distances to the tenth neighbour: of every row, of every row as often as it counts, and local ones.

        The last are the medians among the neighbours of every row.
        """
        n_rows = min(int(np.ceil(self.complete.total_weight)), _FEW_ROWS)
        repeated = self._core.whitened(self.complete.thinned(n_rows))
        neighbours = _neighbours(repeated, min(_NEIGHBOURS + 1, n_rows))
        distances, index = neighbours(repeated)
        distances_of_repeated = distances[:, -1]
        if not np.array_equal(repeated, self._points):
            distances, index = neighbours(self._points)
        return distances[:, -1], distances_of_repeated, np.median(distances_of_repeated[index], axis=1)

    def _are_farthest(self, share):
        """The share of the rows whose tenth neighbour is farthest, or fewer where some are equally far."""
        distances, repeated, _ = self._distances
        least = np.sort(repeated)[int(np.ceil((1.0 - share) * len(repeated))) - 1]
        return distances > least * (1.0 + _LEAST_DISTANCE) + _LEAST_DISTANCE

    @cached_property
    def are_far_out(self):
        """Rows with few near them, where small and wide clusters are spared: bool array (n,)."""
        distances, repeated, local = self._distances
        is_alone = distances > _LOCAL_RATIO * local
        is_gross = distances > _GROSS_RATIO * np.median(repeated)
        return self._are_farthest(_FAR_OUT) & (is_alone | is_gross)

    @property
    def are_in_sparser_half(self):
        """The half of the rows whose tenth neighbour is farthest, or fewer: bool array (n,)."""
        return self._are_farthest(_HALF)

    def with_smallest_cluster(self, n_components):
        """Rows far out, and those in the smallest of K + 1 clusters of the others: bool array (n,)."""
        kept = np.flatnonzero(~self.are_far_out)
        rows = self.complete.chosen(kept)
        if len(np.unique(rows.X, axis=0)) <= n_components:
            return self.are_far_out
        # Always the same random numbers, so that all starts of this rule leave the same rows aside.
        clusters = _responsibilities(rows, n_components + 1, STANDARDIZED_KMEANS, np.random.RandomState(0))
        smallest = np.argmin(counts_of(rows) @ clusters)
        are_aside = self.are_far_out.copy()
        are_aside[kept[clusters[:, smallest] > 0]] = True
        return are_aside

    def nearest_of(self, are_kept):
        """For every row the index of the nearest of those that are kept, int array (n,)."""
        kept, nearest = np.flatnonzero(are_kept), np.arange(len(are_kept))
        if len(kept) < len(nearest):
            found = _neighbours(self._points[kept], 1)(self._points[~are_kept])[1]
            nearest[~are_kept] = kept[found[:, 0]]
        return nearest


def _neighbours(points, n_neighbours):
    """A function of other points, (n, d): distances of their nearest neighbours, and which these are."""
    if points.shape[1] <= _MOST_FOR_TREE:
        return functools.partial(KDTree(points).query, k=np.arange(1, n_neighbours + 1))
    return NearestNeighbors(n_neighbors=n_neighbours, algorithm="brute").fit(points).kneighbors
