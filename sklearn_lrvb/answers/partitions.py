"""Which clusters, and how sure: the answer of `partition_posterior`, the posterior of the rows' partition.

Parameters are drawn and then, for each draw, a label for every row. If there are more than `max_rows` rows,
only a sample gets labels that are kept. From these come the partition that is closest to the drawn ones
(`partition_search`), and how far they are from it. All other rows are placed in its clusters by a pass, in
which labels are drawn within a block and thrown away. So memory is that of the results.

*Noise.* Rows that are noise in a draw belong together in it, as one set. So the search finds a set of them,
as it finds clusters. Sets whose rows are noise in more than half of the draws, on average, are called noise:
no cluster, but the label -1 and the last column of the affinities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.random import sample_without_replacement

from sklearn_lrvb.answers.partition_search import DrawnPartitions, closest_partition, improved_partition
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.reports import SentenceAndNumbers
from sklearn_lrvb.rows import untracked
from sklearn_lrvb.sampling.random_assignments import RandomLabels, label_draws

UNSURE = 0.8  # Certainty below which a row is called unsure of its cluster.
_LEVEL = 0.95  # Probability of the credible ball.
# Clusters that the display lists, and the least share of the draws with a number of clusters that it lists.
_MOST_LISTED, _LEAST_LISTED = 8, 0.01

# Fewest draws with a number of clusters for which a partition of their own is searched for. One chosen for 20
# draws was closer to them than the partition of all draws by 1 to 2 % where both were draws of the same kind;
# for 5, by 2 to 11 %, and for one always by all.
_FEWEST_DRAWS = 20

# Memory that draws may take, and bytes for the label of a row: its place as an integer, and the entry of a
# sparse matrix there. Tables of every draw, label and cluster have up to six numbers for each (`_tables`).
_MOST_BYTES, _BYTES_PER_LABEL, _BYTES_PER_PAIR = 2**32, 24, 48

_ROWS_PER_COMPONENT = 5  # Least number of rows in the search for each component, where it leaves rows out.


@dataclass(frozen=True, repr=False)
class PartitionPosterior(SentenceAndNumbers):
    """Which rows belong together, and how sure that is (the result of ``partition_posterior``).

    Attributes
    ----------
    labels : ndarray or Dask array of int of shape (n_samples,)
        Cluster of every row, in the partition that is closest to the draws by `expected_vi`. Clusters are
        numbered from zero by size, the largest first: they are not the components of the mixture. Rows that
        are noise have -1.
    certainty : ndarray or Dask array of shape (n_samples,)
        Mean posterior probability that the row belongs together with another row of its cluster; of a row
        that is a cluster by itself, the probability that it is one; of noise, the probability to be noise.
    affinity : ndarray or Dask array of shape (n_samples, n_clusters)
        The same for all clusters. With noise there is one more column, the last: the probability to be noise.
    stability : ndarray of shape (n_clusters,)
        How well the draws reproduce a cluster, between 0 and 1: the mean of the Jaccard index (rows in both
        over rows in either) with the most similar cluster of the draw. With noise there is one more number,
        the last: the same of the rows that are noise, here and in the draw.
    expected_vi : float
        Mean variation of information between this partition and the draws, in nats. It is the information
        that two partitions do not share: 0 where they are the same, and at most the logarithm of the number
        of rows. The search has found no partition with a smaller mean, among those with no more clusters than
        the draws have at most. Noise counts as a cluster.
    number_known_vi : float
        The same mean if the number of clusters of each draw were known, with a partition for each number that
        20 draws or more have.
    n_clusters_draws : ndarray of int of shape (n_draws,)
        Number of clusters among the sampled rows in every draw, without noise.
    vi_draws : ndarray of shape (n_draws,)
        Variation of information between this partition and every draw, in nats.
    ball_radius : float
        95 % of the draws are within this distance of the partition, in nats: the credible ball.
    ball_bounds : dict of int
        Numbers of the draws at the ends of the credible ball: "horizontal", the farthest; "upper", the
        farthest with the fewest clusters; "lower", the farthest with the most (Wade and Ghahramani, 2018).
    label_draws : ndarray of int of shape (n_draws, n_sampled)
        Components of the sampled rows in every draw, -1 for noise. Their order may differ between draws.
    sampled_rows : ndarray of int of shape (n_sampled,)
        Numbers of the rows of X that the search has seen, ascending: all that count, or a random sample
        of them. A row that counts w times is there w times.
    sampled_labels, sampled_certainty : ndarray of shape (n_sampled,)
        Their clusters and certainties.
    n_rows : int
        How many rows count, one of weight w as w rows.
    note : str
        What the draws are, and how good.
    number_note : str
        What has decided the number of clusters.
    has_noise : bool
        Whether the mixture has noise.

    See Also
    --------
    sklearn_lrvb.LRVBGaussianMixture.partition_posterior : Makes it.
    sklearn_lrvb.displays.PartitionDisplay : Draws it.

    Examples
    --------
    Which irises belong together, by linear response?

    >>> from sklearn.datasets import load_iris
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> X = load_iris().data
    >>> mixture = LRVBGaussianMixture(n_components=3, covariance_type="tied", random_state=0).fit(X)
    >>> mixture.partition_posterior(X, method="lrvb", random_state=0)
    PartitionPosterior: 3 clusters. The certainty of 10 of 150 rows is below 0.8. Least
      stable is cluster 2 (stability 0.92). More than 3 were not possible (n_components=3):
      number_of_clusters says how probable each number is.
      rows of each            53, 50, 47
      stability of each       0.92, 1.00, 0.92
      clusters in the draws   3 in 100 %
      mean distance to draws  0.21 nats (variation of information)
      95 % of draws within    0.337 nats, with 3 clusters
      draws                   400. Linear response; posterior_check says how good it is.
    """

    labels: Any
    certainty: Any
    affinity: Any
    stability: NDArray[np.float64]
    expected_vi: float
    number_known_vi: float
    n_clusters_draws: NDArray[np.intp]
    vi_draws: NDArray[np.float64]
    ball_radius: float
    ball_bounds: dict[str, int]
    label_draws: NDArray[np.integer]
    sampled_rows: NDArray[np.intp]
    sampled_labels: NDArray[np.intp]
    sampled_certainty: NDArray[np.float64]
    n_rows: int
    note: str
    number_note: str
    has_noise: bool = False

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the partition, without noise."""
        return len(self.stability) - self.has_noise

    @property
    def cluster_sizes(self) -> NDArray[np.intp]:
        """Number of sampled rows in every cluster, of shape (n_clusters,)."""
        return np.bincount(self.sampled_labels[self.sampled_labels >= 0], minlength=self.n_clusters)

    @property
    def n_clusters_frequencies(self) -> dict[int, float]:
        """Share of the draws that have so many clusters, by the number."""
        numbers, counts = np.unique(self.n_clusters_draws, return_counts=True)
        return dict(zip(numbers.tolist(), (counts / counts.sum()).tolist(), strict=True))

    def coclustering(self, rows: ArrayLike) -> NDArray[np.float64]:
        """Posterior probabilities that rows belong together; rows that are noise do.

        Parameters
        ----------
        rows : array-like of int of shape (n,)
            Numbers of rows of X, among `sampled_rows`.

        Returns
        -------
        probabilities : ndarray of shape (n, n)

        Raises
        ------
        ValueError
            A row was not in the sample.
        """
        rows = np.asarray(rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise ValueError(f"rows must be a list of numbers of rows, got {rows!r}.")
        places = np.searchsorted(self.sampled_rows, rows)
        is_sampled = self.sampled_rows.take(places, mode="clip") == rows
        if not is_sampled.all():
            raise ValueError(
                f"Row {rows[~is_sampled][0]} is not among the {len(self.sampled_rows)} rows with draws, "
                "`sampled_rows`. (a) Choose from these. (b) Raise max_rows. (c) Of any row, affinity tells "
                "how it goes with the clusters."
            )
        labels = self.label_draws[:, places]
        return np.stack([(labels == own[:, None]).mean(axis=0) for own in labels.T])

    @property
    def verdict(self) -> str:
        """What was found, in a few sentences."""
        rows = f"{len(self.sampled_rows)}{' sampled' * self.is_sample} rows"
        n_unsure = np.sum(self.sampled_certainty < UNSURE)
        said = [f"{_clusters(self.n_clusters)}."]
        if self.has_noise:
            said.append(f"Noise: {np.sum(self.sampled_labels == -1)} of {rows}.")
        said.append(f"The certainty of {n_unsure} of {rows} is below {UNSURE}.")
        least = int(self.stability[: max(self.n_clusters, 1)].argmin())
        if self.n_clusters > 1 and round(self.stability[least], 2) < 1.0:
            said.append(f"Least stable is cluster {least} (stability {self.stability[least]:.2f}).")
        if np.median(self.n_clusters_draws) > self.n_clusters:
            others = "any" if self.n_clusters == 1 else "the others"
            said.append(f"Most draws have more clusters, but do not agree on {others}.")
        if len(self.n_clusters_frequencies) > 1:
            share = 100.0 * max(1.0 - self.number_known_vi / self.expected_vi, 0.0)
            smaller = f"{share:.0f} % smaller" if share >= 0.5 else "no smaller"
            said.append(f"If their number were known, the mean distance to the draws would be {smaller}.")
        return " ".join([*said, self.number_note]).rstrip()

    @property
    def is_sample(self) -> bool:
        """Whether the search has seen some of the rows only."""
        return len(self.sampled_rows) < self.n_rows

    def _lines(self):
        numbers = ", ".join(
            f"{number} in {100 * share:.0f} %"
            for number, share in self.n_clusters_frequencies.items()
            if share >= _LEAST_LISTED
        )
        least, most = (int(self.n_clusters_draws[self.ball_bounds[end]]) for end in ("upper", "lower"))
        in_ball = f"{least} to {most} clusters" if least < most else _clusters(most)
        return [
            ("sampled rows of each" if self.is_sample else "rows of each", _listed(self.cluster_sizes, "d")),
            ("stability of each", _listed(self.stability[: self.n_clusters], ".2f")),
            *([("stability of noise", f"{self.stability[-1]:.2f}")] if self.has_noise else []),
            ("clusters in the draws", numbers),
            ("mean distance to draws", f"{self.expected_vi:.3g} nats (variation of information)"),
            ("95 % of draws within", f"{self.ball_radius:.3g} nats, with {in_ball}"),
            ("draws", f"{len(self.label_draws)}. {self.note}"),
        ]


def _clusters(number):
    return f"{number} cluster{'s' * (number != 1)}"


def _listed(values, form):
    """The first of some numbers, in a line."""
    shown = ", ".join(format(value, form) for value in values[:_MOST_LISTED])
    return shown + ", ..." * (len(values) > _MOST_LISTED)


def number_of_rows(rows):
    """How many rows the partition is of, an int: one of weight w is w rows.

    All are looked at, even if their weights sum to less.

    Parameters
    ----------
    rows : Rows, those that count
    """
    return max(rows.n_samples, int(rows.total_weight))


def check_sizes(posterior, n_draws, max_rows, n_rows):
    """Raise an error where draws take too much memory, or the search gets too few of the rows.

    Parameters
    ----------
    posterior : posterior of a mixture
    n_draws, max_rows : int
    n_rows : int, how many rows there are
    """
    least = _ROWS_PER_COMPONENT * posterior.n_components
    if max_rows < min(least, n_rows):
        raise ValueError(
            f"max_rows={max_rows} is too few to search for the clusters of {posterior.n_components} "
            f"components: pass at least {least}. The default is 1000."
        )
    of_rows = _BYTES_PER_LABEL * min(max_rows, n_rows)
    of_components = 4 * 8 * posterior.n_coefficients + _BYTES_PER_PAIR * posterior.n_components**2
    size = n_draws * (of_rows + of_components)
    if size > _MOST_BYTES:
        n_possible = int(_MOST_BYTES // (of_rows + of_components))
        raise MemoryError(
            f"{n_draws} draws, with labels of up to {max_rows} rows each, take {size / 2**30:.1f} GiB; up to "
            f"{_MOST_BYTES / 2**30:g} GiB are taken. (a) Ask for fewer draws: n_draws={n_possible}; 400 are "
            "enough as a rule. (b) Lower max_rows."
        )


def note_of_number(fitted):
    """What decides how many clusters the draws of one mixture have, a sentence.

    Parameters
    ----------
    fitted : Fitted
    """
    posterior = fitted.posterior
    n_components, n_held = posterior.n_components, int(occupied(posterior.counts).sum())
    if n_components == 1:
        return "One component makes one cluster: n_components=1 decides that, not the rows."
    if n_held == n_components:
        return (
            f"More than {n_components} were not possible (n_components={n_components}): number_of_clusters "
            "says how probable each number is."
        )
    return (
        f"Components without rows in the fit: {n_components - n_held} of {n_components}. How often they get "
        "some in the draws depends on the prior of the weights (weight_concentration_prior) more than on "
        "the rows: number_of_clusters says how probable each number is."
    )


class Placement:
    """Places rows in the clusters of a partition of some of them: a function of a block.

    The results, (2 + L, n), are the cluster, certainty and affinities. Rows of the search keep theirs.

    With noise the last of the L is noise. A row is placed there only if it is noise in more than half of the
    draws: otherwise noise of few rows would cost the least for a row that may be in two large clusters.

    Parameters
    ----------
    random_labels : RandomLabels
    drawn : DrawnPartitions, of the rows of the search
    overlaps : int array (S, K, L), how many rows the clusters share with the labels
    sizes : int array (L,), of the clusters
    sampled_rows : int array (n,), ascending, numbers of the rows of the search
    of_sampled : (2 + L, n), their results
    """

    def __init__(self, random_labels, drawn, overlaps, sizes, sampled_rows, of_sampled):
        self._random_labels, self.workload = random_labels, random_labels.workload
        self._sampled_rows, self._of_sampled = sampled_rows, of_sampled
        self._has_noise = drawn.has_noise
        shares = overlaps / np.maximum(sizes, 1)
        if drawn.has_noise:
            shares[:, :, -1] = 0.0
            shares[:, -1, -1] = 1.0
        # What a label of a draw adds to the cost of every cluster, and to the affinity with it: (S, K, 2 L).
        costs = -2.0 * drawn.slopes.take(overlaps, mode="clip")
        self._table = np.concatenate([costs, shares], axis=2) / drawn.n_draws
        self._slopes = drawn.slopes.take(sizes, mode="clip")

    def __call__(self, block):
        sums = np.zeros((self._table.shape[2], block.n_rows))
        for draws, labels, assigned in self._random_labels.assigned(block):
            table = self._table[draws, labels].swapaxes(0, 1).reshape(-1, len(sums))
            sums += table.T @ assigned.reshape(len(table), -1)
        costs, affinity = np.split(sums, 2)
        costs += self._slopes[:, None]
        affinity = np.clip(affinity, 0.0, 1.0)  # Sums of shares may exceed one by rounding.
        if self._has_noise:
            costs[-1, affinity[-1] <= 0.5] = np.inf
        clusters = costs.argmin(axis=0)
        certainty = affinity[clusters, np.arange(block.n_rows)]
        if self._has_noise:
            clusters[clusters == len(costs) - 1] = -1
        results = np.concatenate([[clusters, certainty], affinity])
        places = np.searchsorted(self._sampled_rows, block.numbers)
        is_sampled = self._sampled_rows.take(places, mode="clip") == block.numbers
        results[:, is_sampled] = self._of_sampled[:, places[is_sampled]]
        return results


def partition_posterior(sources, given, max_rows, random_state, notes, tracked=untracked):
    """The posterior of the partition of some rows: PartitionPosterior.

    Parameters
    ----------
    sources : list of DrawnParameters
        Draws of the parameters given the rows, all measured from the origin of the rows; those of different
        sources may have different numbers of components. A draw counts as much as any other.
    given : Rows, all rows, also those that do not count
    max_rows : int, most rows in the search
    random_state : numpy.random.RandomState
    notes : pair of str, on the draws and on their numbers of clusters
    tracked : Tracked, through which the search goes, or the pass over more rows than it has seen
    """
    rows = given.counted()
    seed = int(random_state.randint(2**63, dtype=np.uint64))
    # If all rows fit, each is taken as often as it counts; weights that are no whole numbers are rounded.
    n_all = number_of_rows(rows)
    n_sampled, goes_on = min(max_rows, n_all), n_all > max_rows
    chosen = np.arange(n_sampled)
    if goes_on:  # At random, because evenly spaced rows may agree with a period of X.
        chosen = np.sort(sample_without_replacement(n_all, n_sampled, random_state=random_state))
    index, sample = rows.at(rows.total_weight / n_all * (chosen + 0.5))
    if rows.n_samples < given.n_given:
        index = np.flatnonzero(given.which_count())[index]
    labels = label_draws(sample, sources, seed)
    has_noise = sources[0].posterior.n_labels > sources[0].posterior.n_components
    n_components = max(source.posterior.n_components for source in sources)
    drawn = DrawnPartitions(labels, has_noise, n_components)
    clusters, sizes = closest_clusters(drawn, random_state, untracked if goes_on else tracked)
    distances, numbers = drawn.distances(clusters), drawn.numbers
    overlaps = drawn.overlaps(clusters, len(sizes))
    affinity = _affinities(drawn, clusters, overlaps, sizes)
    certainty = affinity[np.arange(n_sampled), clusters]
    sampled_labels = np.where(clusters == len(sizes) - has_noise, -1, clusters)
    of_sampled = np.vstack([sampled_labels, certainty, affinity.T])
    random_labels = RandomLabels(sources, seed, repetition=1)
    placement = Placement(random_labels, drawn, overlaps, sizes, index, of_sampled)
    placed = given.each(
        placement,
        (2 + affinity.shape[1],),
        workload=placement.workload,
        tracked=tracked if goes_on else untracked,
    )
    ball_radius, ball_bounds = credible_ball(distances, numbers)
    return PartitionPosterior(
        labels=placed[:, 0].astype(np.intp),
        certainty=placed[:, 1],
        affinity=placed[:, 2:],
        stability=_stability(drawn, overlaps, sizes),
        expected_vi=float(distances.mean()),
        number_known_vi=_number_known(drawn, clusters, random_state),
        n_clusters_draws=numbers,
        vi_draws=distances,
        ball_radius=ball_radius,
        ball_bounds=ball_bounds,
        label_draws=labels,
        sampled_rows=index,
        sampled_labels=sampled_labels,
        sampled_certainty=certainty,
        n_rows=n_all,
        note=notes[0],
        number_note=notes[1],
        has_noise=has_noise,
    )


def closest_clusters(drawn, random_state, tracked=untracked):
    """The closest partition, (N,), and the sizes of its clusters, (L,); with noise that is the last one.

    Parameters
    ----------
    drawn : DrawnPartitions
    random_state : numpy.random.RandomState
    tracked : Tracked, through which the search goes
    """
    clusters = closest_partition(drawn, random_state, tracked)
    if not drawn.has_noise:
        return clusters, np.bincount(clusters)
    clusters, sizes = _with_noise(drawn, clusters)
    most = drawn.numbers.max()
    if len(sizes) > most + 1:  # None of the sets is noise, so that they are one cluster too many.
        clusters, sizes = _with_noise(drawn, closest_partition(drawn, random_state, most=most))
    return clusters, sizes


def _with_noise(drawn, clusters):
    """The partition in which sets of rows that mostly are noise are one, and the last one.

    Parameters
    ----------
    drawn : DrawnPartitions
    clusters : int array (N,), numbered from zero

    Returns
    -------
    clusters : int array (N,)
    sizes : int array (L,), that of noise may be zero
    """
    is_noise = np.bincount(clusters, drawn.noise_shares) > 0.5 * np.bincount(clusters)
    n_clusters = np.sum(~is_noise)
    clusters = np.where(is_noise, n_clusters, np.cumsum(~is_noise) - 1)[clusters]
    return clusters, np.bincount(clusters, minlength=n_clusters + 1)


def _affinities(drawn, clusters, overlaps, sizes):
    """Mean probabilities of being together with the other rows of a cluster, or of being noise: (N, L)."""
    own = np.arange(drawn.n_rows), clusters
    shared = drawn.means(overlaps.reshape(-1, len(sizes)).astype(np.float64))
    affinity = shared / np.maximum(sizes, 1)
    alone = drawn.means((drawn.sizes.ravel() == 1).astype(np.float64))
    others = sizes[clusters] - 1
    affinity[own] = np.where(others > 0, (shared[own] - 1.0) / np.maximum(others, 1), alone)
    if drawn.has_noise:
        affinity[:, -1] = drawn.noise_shares
    return np.clip(affinity, 0.0, 1.0)


def _stability(drawn, overlaps, sizes):
    """Mean of the largest Jaccard index of each cluster with those of a draw, of noise with noise: (L,)."""
    either = sizes + drawn.sizes[:, :, None] - overlaps
    # Without noise, here and in the draw, noise is the same.
    similar = np.divide(overlaps, either, out=np.ones(overlaps.shape), where=either > 0)
    if drawn.has_noise:
        similar[:, -1, :-1] = similar[:, :-1, -1] = 0.0
    return similar.max(axis=1).mean(axis=0)


def credible_ball(distances, numbers):
    """The draws that are closest to a partition, and those at the ends of this ball.

    Parameters
    ----------
    distances : (S,), of the draws from the partition
    numbers : int array (S,), numbers of clusters of the draws

    Returns
    -------
    radius : float
    bounds : dict of int, numbers of the draws that are the "horizontal", "upper" and "lower" bound
    """
    closest = np.argsort(distances, kind="stable")[: math.ceil(_LEVEL * len(distances))]
    inside = numbers[closest]
    bounds = {
        "horizontal": int(closest[-1]),
        "upper": int(closest[inside == inside.min()][-1]),
        "lower": int(closest[inside == inside.max()][-1]),
    }
    return float(distances[closest[-1]]), bounds


def _number_known(drawn, clusters, random_state):
    """The mean distance if each number of clusters has a partition of its own, a float.

    Numbers of fewer than `_FEWEST_DRAWS` draws have that of all, and so has a single number.
    """
    total, numbers = 0.0, np.unique(drawn.numbers)
    if len(numbers) == 1:
        return float(drawn.distances(clusters).mean())
    for number in numbers:
        some = DrawnPartitions(drawn.labels[drawn.numbers == number], drawn.has_noise)
        if some.n_draws >= _FEWEST_DRAWS:
            total += some.distances(improved_partition(some, clusters, random_state)).sum()
        else:
            total += some.distances(clusters).sum()
    return float(total / drawn.n_draws)
