"""The partition that is closest to drawn ones: by going through all partitions, by sums over pairs, by R."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from sklearn_lrvb.answers.partition_search import (
    DrawnPartitions,
    GrowingPartition,
    closest_partition,
    improved_partition,
    numbered_by_size,
)
from sklearn_lrvb.answers.partitions import closest_clusters, credible_ball

REFERENCES = json.loads((Path(__file__).parent / "partition_references.json").read_text(encoding="utf8"))


def draws(n_rows, n_draws, n_clusters, seed):
    """Partitions that merge clusters of a common one, and move two fifths of the rows: int (S, N)."""
    rng = np.random.RandomState(seed)
    common, labels = rng.randint(0, n_clusters, n_rows), np.empty((n_draws, n_rows), dtype=int)
    for own in labels:
        own[:] = rng.randint(0, n_clusters, n_clusters)[common]
        moved = rng.randint(0, 5, n_rows) < 2
        own[moved] = rng.randint(0, n_clusters, moved.sum())
    return labels


def variation_of_information(one, other):
    """By entropies: those of both, less twice what they have in common."""
    return mutual_info_score(one, one) + mutual_info_score(other, other) - 2.0 * mutual_info_score(one, other)


def all_partitions(n_rows):
    """Every partition once, clusters numbered as they come: int (number of partitions, n_rows)."""
    partitions = [[0]]
    for _ in range(n_rows - 1):
        partitions = [[*own, cluster] for own in partitions for cluster in range(max(own) + 2)]
    return np.array(partitions)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_partition_of_eight_rows_is_closer(seed):
    labels, partitions = draws(8, 12, 4, seed), all_partitions(8)
    assert len(partitions) == 4140
    drawn = DrawnPartitions(labels)
    found = closest_partition(drawn, np.random.RandomState(seed))
    direct = np.mean([variation_of_information(found, own) for own in labels])
    # With more clusters than any draw none is taken.
    least = min(drawn.distances(own).mean() for own in partitions if own.max() < drawn.numbers.max())
    np.testing.assert_allclose([drawn.distances(found).mean(), least], direct, rtol=1e-12)


@pytest.mark.parametrize("reference", REFERENCES["sets"], ids=lambda reference: f"{reference['n_rows']} rows")
def test_it_is_as_close_as_that_of_mcclust_ext_and_its_ball_is_the_same(reference):
    labels = draws(*(reference[name] for name in ("n_rows", "n_draws", "n_clusters", "seed")))
    drawn = DrawnPartitions(labels)
    found = closest_partition(drawn, np.random.RandomState(0))
    assert drawn.distances(found).mean() < reference["expected_vi"] + 1e-7
    distances = drawn.distances(np.array(reference["partition"]))
    radius, bounds = credible_ball(distances, drawn.numbers)
    of_ours = [distances.mean(), radius, *(distances[bounds[end]] for end in ("upper", "lower"))]
    names = "expected_vi_of_partition", "ball_radius", "upper_vi", "lower_vi"
    np.testing.assert_allclose(of_ours, [reference[name] for name in names], rtol=1e-7)
    assert distances[bounds["horizontal"]] == radius


def test_distances_are_those_of_entropies_and_do_not_depend_on_numbers_of_clusters():
    labels = draws(40, 20, 5, 0)
    drawn, partition = DrawnPartitions(labels), draws(40, 1, 3, 1)[0]
    expected = [variation_of_information(partition, own) for own in labels]
    np.testing.assert_allclose(drawn.distances(partition), expected, atol=1e-12)
    rng = np.random.RandomState(2)
    renumbered = DrawnPartitions(np.array([rng.permutation(9)[own] for own in labels]))
    np.testing.assert_allclose(renumbered.distances(2 - partition), expected, atol=1e-12)
    np.testing.assert_array_equal(renumbered.numbers, drawn.numbers)
    found = [closest_partition(which, np.random.RandomState(0)) for which in (drawn, renumbered)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("seed", range(3))
def test_no_single_row_fits_better_elsewhere(seed):
    drawn = DrawnPartitions(draws(30, 25, 6, seed))
    found = closest_partition(drawn, np.random.RandomState(seed))
    least = drawn.distances(found).mean()
    for row, cluster in itertools.product(range(30), range(drawn.numbers.max())):
        moved = found.copy()
        moved[row] = cluster
        assert drawn.distances(moved).mean() > least - 1e-12


def test_rows_that_are_always_together_or_never_are_so():
    together, apart = np.zeros((3, 20), dtype=int), np.tile(np.arange(20), (3, 1))
    for labels in (together, apart):
        drawn = DrawnPartitions(labels)
        found = closest_partition(drawn, np.random.RandomState(0))
        assert len(np.unique(found)) == len(np.unique(labels[0]))
        assert np.all(drawn.distances(found) == 0.0)


def test_a_search_from_a_partition_is_no_worse():
    drawn, rng = DrawnPartitions(draws(60, 40, 8, 0)), np.random.RandomState(0)
    given = numbered_by_size(rng.randint(0, 12, 60))
    improved = improved_partition(drawn, given, rng)
    least = drawn.distances(closest_partition(drawn, rng)).mean()
    assert least - 1e-12 < drawn.distances(improved).mean() < drawn.distances(given).mean()


def test_there_are_no_more_clusters_than_in_any_draw():
    # The first row is with each of three clusters in a third of the draws. Alone it is closer to them.
    labels = np.tile(np.repeat([0, 1, 2], [11, 10, 10]), (3, 1))
    labels[:, 0] = [0, 1, 2]
    drawn, alone = DrawnPartitions(labels), np.repeat([3, 0, 1, 2], [1, 10, 10, 10])
    found = closest_partition(drawn, np.random.RandomState(0))
    assert drawn.distances(alone).mean() < drawn.distances(found).mean() - 0.01
    assert found.max() + 1 == 3
    # Noise takes the place of the third cluster, but the row alone is no noise: then there are two clusters.
    drawn = DrawnPartitions(np.delete(np.where(labels == 2, -1, labels), np.s_[21:], axis=1), has_noise=True)
    assert closest_partition(drawn, np.random.RandomState(0)).max() + 1 == 3
    _, sizes = closest_clusters(drawn, np.random.RandomState(0))
    assert len(sizes) == 2 + 1
    assert sizes[-1] == 0


def test_clusters_are_numbered_by_size():
    np.testing.assert_array_equal(numbered_by_size(np.array([5, 3, 3, 9, 9, 3, 7])), [2, 0, 0, 1, 1, 0, 3])


def test_gains_are_differences_of_losses_after_moves_that_were_undone():
    drawn, random_state = DrawnPartitions(draws(30, 25, 5, 0)), np.random.RandomState(0)

    def loss(clusters):
        of_draws = drawn.h[drawn.sizes].sum(axis=1).mean()
        return drawn.n_rows * drawn.distances(clusters).mean() - of_draws

    partition = GrowingPartition(drawn, 30)
    for row in range(30):
        partition.put(row, row % 3)
    for _ in range(3):
        moved = np.array(
            [
                [loss(np.where(np.arange(30) == row, cluster, partition.clusters)) for cluster in range(31)]
                for row in range(30)
            ]
        )
        np.testing.assert_allclose(partition.gains(), loss(partition.clusters) - moved.min(axis=1), atol=1e-9)
        np.testing.assert_allclose(partition.loss, loss(partition.clusters))
        partition.shake(random_state)
