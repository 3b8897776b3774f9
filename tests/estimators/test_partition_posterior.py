"""Which clusters, and how sure: identities of `partition_posterior`, and its errors."""

import copy

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from catalogue import fitted, mixture, overlapping, peak_memory, posterior_of, rows_of, set_sizes
from exact_evidence import LearnedPrior, clusters, learned_log_joints
from incomplete_rows import fitted as fitted_to_missing_values
from incomplete_rows import incomplete
from sampling_problems import labels_and_probabilities
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.answers.partition_search import DrawnPartitions
from sklearn_lrvb.answers.partitions import note_of_number, partition_posterior
from sklearn_lrvb.gaussian.sampling.parameters import GaussianParameters
from sklearn_lrvb.sampling.random_assignments import RandomLabels, label_draws
from sklearn_lrvb.sampling.sampler import PosteriorSampler

X = overlapping()
OF_ROWS = "labels", "certainty", "affinity"
OF_ALL = "stability", "expected_vi", "number_known_vi", "n_clusters_draws", "vi_draws", "label_draws"


def found(estimator, rows, **options):
    """The answer by 60 draws of linear response, seed 0."""
    options = {"n_draws": 60, "method": "lrvb", "random_state": 0, **options}
    return estimator.partition_posterior(rows, **options)


def assert_same(one, other, names=(*OF_ROWS, *OF_ALL)):
    for name in names:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-12, err_msg=name)


def drawn_by(estimator, n_draws, seed=0):
    """Draws by linear response: DrawnParameters."""
    return PosteriorSampler(estimator._uncertainty).draws(n_draws, np.random.RandomState(seed))


def test_summaries_are_those_of_pairs_of_rows():
    result = found(fitted({}, 3), X)
    labels, clusters, n_draws = result.label_draws, result.labels, 60
    assert labels.shape == (n_draws, 240) and labels.dtype == np.int8
    np.testing.assert_array_equal(result.sampled_rows, np.arange(240))
    together = (labels[:, :, None] == labels[:, None]).mean(axis=0)
    np.testing.assert_allclose(result.coclustering([7, 3, 7]), together[np.ix_([7, 3, 7], [7, 3, 7])])
    others = ~np.eye(240, dtype=bool)
    for cluster in range(result.n_clusters):
        of_cluster = others & (clusters == cluster)
        expected = (together * of_cluster).sum(axis=1) / of_cluster.sum(axis=1)
        np.testing.assert_allclose(result.affinity[:, cluster], expected, atol=1e-12)
        is_in, best = clusters == cluster, []
        for own in labels:
            sets = [own == k for k in np.unique(own)]
            best.append(max(np.sum(is_in & one) / np.sum(is_in | one) for one in sets))
        np.testing.assert_allclose(result.stability[cluster], np.mean(best))
    np.testing.assert_array_equal(result.certainty, result.affinity[np.arange(240), clusters])
    np.testing.assert_array_equal(result.cluster_sizes, np.bincount(clusters))
    np.testing.assert_allclose(result.vi_draws.mean(), result.expected_vi)
    assert result.n_clusters_draws.tolist() == [len(np.unique(own)) for own in labels]
    assert sum(result.n_clusters_frequencies.values()) == pytest.approx(1.0)
    assert np.mean(result.vi_draws <= result.ball_radius) >= 0.95
    assert result.number_known_vi <= result.expected_vi + 1e-12
    assert f" {np.sum(result.certainty < 0.8)} of 240 rows " in result.verdict


@pytest.mark.slow
def test_exact_draws_say_what_the_sum_over_all_assignments_says():
    rng = np.random.default_rng(1)
    rows = np.append(rng.normal(size=5), 3.0 + rng.normal(size=4))[:, None]
    weights = {"weight_concentration_prior_type": "dirichlet_distribution", "weight_concentration_prior": 1.0}
    estimator = mixture({"prior": "fixed", **weights}, 3).fit(rows)
    assignments, probabilities = labels_and_probabilities(estimator, rows)
    expected = np.einsum("s,sij->ij", probabilities, assignments[:, :, None] == assignments[:, None])
    result = estimator.partition_posterior(rows, n_draws=2000, method="exact", random_state=0)
    assert np.abs(result.coclustering(np.arange(9)) - expected).max() < 0.05
    numbers = np.array([len(np.unique(own)) for own in assignments])
    for number in (1, 2, 3):
        frequency = result.n_clusters_frequencies[number]
        assert abs(frequency - probabilities[numbers == number].sum()) < 0.05


@pytest.mark.slow
def test_exact_draws_under_a_learned_prior_say_what_the_sum_over_all_partitions_says():
    rows = clusters(7, 1, 3.0)
    prior = LearnedPrior.of("full", rows)
    labels, log_joints = learned_log_joints(rows, prior, 3)
    together = labels[:, :, None] == labels[:, None]
    expected = np.einsum("s,snm->nm", softmax(log_joints[2]), together)
    estimator = mixture(prior.arguments, 3).fit(rows)
    result = estimator.partition_posterior(rows, n_draws=2000, method="exact", random_state=0)
    np.testing.assert_allclose(result.coclustering(np.arange(7)), expected, atol=0.05)


def test_a_row_on_its_own_is_as_certain_as_it_is_alone():
    far = np.concatenate([X[:60], [[60.0, -60.0]]])
    result = found(mixture({}, 2).fit(far), far)
    alone = np.mean(np.sum(result.label_draws == result.label_draws[:, -1:], axis=1) == 1)
    assert result.cluster_sizes.tolist() == [60, 1] and result.labels[-1] == 1
    assert result.certainty[-1] == alone > 0.9


def test_far_clusters_are_certain_and_one_component_is_one_cluster():
    far = np.concatenate([X[:80], X[:40] + 100.0])
    estimator = mixture({}, 2).fit(far)
    result = found(estimator, far)
    assert result.expected_vi == result.ball_radius == result.number_known_vi == 0.0
    np.testing.assert_array_equal(result.labels, np.repeat([0, 1], [80, 40]))
    np.testing.assert_array_equal(result.certainty, 1.0)
    np.testing.assert_array_equal(result.affinity, np.eye(2)[result.labels])
    np.testing.assert_array_equal(result.stability, 1.0)
    assert "n_components" in result.verdict and "Least stable" not in result.verdict
    one = found(mixture({}, 1).fit(far), far)
    assert one.n_clusters == 1 and one.expected_vi == 0.0 and not one.labels.any()
    assert one.number_note.startswith("One component") and "with 1 cluster\n" in repr(one)
    # Rows that are placed have certainties as those of the search: none is above one by rounding.
    placed = found(estimator, far, max_rows=21)
    np.testing.assert_array_equal(placed.labels, result.labels)
    assert placed.affinity.max() == 1.0 == placed.certainty.min().round(12)


def test_where_components_are_empty_it_says_that_the_prior_decides():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    surplus = mixture({"weight_concentration_prior_type": "dirichlet_distribution"}, 4).fit(rows)
    assert surplus.n_occupied_ == 1
    result = found(surplus, rows)
    assert len(result.n_clusters_frequencies) > 1
    assert (
        "without rows in the fit: 3 of 4." in result.verdict
        and "weight_concentration_prior" in result.verdict
    )
    assert "If their number were known" in result.verdict


@pytest.mark.slow
@pytest.mark.parametrize(("max_rows", "has_missing"), [(1000, False), (100, True)])
def test_rows_may_be_anywhere(max_rows, has_missing, monkeypatch):
    rows = incomplete() if has_missing else X[:120]
    estimator = (fitted_to_missing_values if has_missing else fitted)({}, 3 if has_missing else 2)
    if not has_missing:
        estimator = mixture({}, 3).fit(rows)
    expected = found(estimator, rows, max_rows=max_rows)
    assert len(expected.sampled_rows) == min(max_rows, 120)
    assert_same(found(estimator, [rows[:50], rows[50:51], rows[51:]], max_rows=max_rows), expected)
    lazy = found(estimator, da.from_array(rows, chunks=(37, 2 if not has_missing else 3)), max_rows=max_rows)
    assert all(isinstance(getattr(lazy, name), da.Array) for name in OF_ROWS)
    assert lazy.labels.dtype == np.intp
    assert_same(lazy, expected)
    frame = dd.from_pandas(pd.DataFrame(rows), npartitions=3)  # Its chunks have unknown lengths.
    assert_same(found(estimator, frame, max_rows=max_rows), expected)
    set_sizes(monkeypatch, most_rows=9, least_rows=1, block_bytes=1, product_for_threads=1)
    threaded = copy.deepcopy(estimator).set_params(n_jobs=2)
    assert_same(found(threaded, rows, max_rows=max_rows), expected)


def test_rows_beyond_the_sample_are_placed_among_its_clusters():
    estimator, max_rows = fitted({}, 3), 90
    result = found(estimator, X, max_rows=max_rows)
    sampled = result.sampled_rows
    assert len(sampled) == 90 and np.all(np.diff(sampled) > 0)
    np.testing.assert_array_equal(result.labels[sampled], result.sampled_labels)
    np.testing.assert_array_equal(result.certainty[sampled], result.sampled_certainty)
    # The others: labels drawn for them, compared with those of the sample.
    seeds = np.random.RandomState(0)
    parameters = PosteriorSampler(estimator._uncertainty).draws(60, seeds)
    seed = int(seeds.randint(2**63, dtype=np.uint64))
    rows = rows_of(estimator, X)
    labels = rows.each(RandomLabels([parameters], seed, repetition=1).labels, (60,), np.int8).T
    np.testing.assert_array_equal(result.label_draws, label_draws(rows.selected(sampled), [parameters], seed))
    is_together = (labels[:, :, None] == result.label_draws[:, None]).mean(axis=0)
    others = np.setdiff1d(np.arange(240), sampled)
    members = result.sampled_labels == np.arange(result.n_clusters)[:, None]
    expected = is_together @ members.T / members.sum(axis=1)
    np.testing.assert_allclose(result.affinity[others], expected[others], atol=1e-12)
    for row in others[:40]:
        trials = [
            DrawnPartitions(np.column_stack([result.label_draws, labels[:, row]]))
            .distances(np.append(result.sampled_labels, cluster))
            .mean()
            for cluster in range(result.n_clusters)
        ]
        assert trials[result.labels[row]] == min(trials)
    with pytest.raises(ValueError, match=rf"Row {others[0]} is not among the 90 rows.*Raise max_rows"):
        result.coclustering([sampled[0], others[0]])


def test_a_sample_has_all_clusters_of_rows_that_come_in_turn():
    in_turn = np.tile([0.0, 100.0], 120)[:, None] + X
    result = found(mixture({}, 2).fit(in_turn), in_turn, max_rows=60)  # A spacing of four rows.
    np.testing.assert_array_equal(np.bincount(result.labels), [120, 120])
    assert len(np.unique(result.sampled_rows)) == 60 and result.certainty.min() > 0.99


def test_whole_weights_are_copies_and_rows_without_weight_are_placed():
    weights = np.tile([1.0, 3.0, 0.0, 2.0], 20)
    rows, copies = X[:80], np.repeat(X[:80], weights.astype(int), axis=0)
    weighted = mixture({}, 2).fit(rows, sample_weight=weights)
    one = found(weighted, rows, sample_weight=weights)
    assert one.n_rows == 120 and one.labels.shape == (80,)
    np.testing.assert_array_equal(one.sampled_rows, np.repeat(np.arange(80), weights.astype(int)))
    other = found(mixture({}, 2).fit(copies), copies)
    assert_same(one, other, ("label_draws", "stability", "expected_vi", "vi_draws", "sampled_certainty"))
    first = np.flatnonzero(np.diff(one.sampled_rows, prepend=-1))
    counted = np.flatnonzero(weights)
    np.testing.assert_array_equal(one.labels[counted], other.labels[first])
    np.testing.assert_allclose(one.affinity[counted], other.affinity[first], atol=1e-12)
    # Others are placed where their neighbours are.
    twin = rows.copy()
    twin[weights == 0] = rows[counted[:20]]
    placed = found(weighted, twin, sample_weight=weights)
    assert_same(placed, one, OF_ALL)
    gaps = np.abs(placed.affinity[weights == 0] - one.affinity[counted[:20]])
    assert gaps.max() < 0.35  # Labels are drawn again for them, 60 times.
    batches = [(rows[:30], weights[:30]), (rows[30:], weights[30:])]
    assert_same(found(weighted, batches), one)
    lazy = {"sample_weight": da.from_array(weights, chunks=30)}
    assert_same(found(weighted, da.from_array(rows, chunks=(30, 2)), **lazy), one)


@pytest.mark.slow
def test_with_fractional_weights_rows_are_sampled_in_proportion():
    weights = np.random.default_rng(0).uniform(0.2, 1.8, 240)
    estimator = mixture({}, 2).fit(X, sample_weight=weights)
    often = np.bincount(found(estimator, X, sample_weight=weights).sampled_rows, minlength=240)
    expected = 240 * weights / weights.sum()
    assert np.all((np.floor(expected) <= often) & (often <= np.ceil(expected)))
    few = mixture({}, 2).fit(X, sample_weight=weights / 8)  # As many as 32 rows; all 240 are looked at.
    assert len(found(few, X, sample_weight=weights / 8).sampled_rows) == 240


@pytest.mark.slow
def test_draws_of_several_mixtures_go_together():
    mixtures, rows = [mixture({}, k).fit(X) for k in (1, 2, 3)], rows_of(fitted({}), X)
    sources = [drawn_by(one, n) for one, n in zip(mixtures, (20, 40, 30), strict=True)]

    def of(some):
        return partition_posterior(some, rows, 1000, np.random.RandomState(0), ("", ""))

    result = of(sources)
    assert len(result.label_draws) == 90
    assert [result.label_draws[part].max() for part in (slice(20), slice(20, 60), slice(60, 90))] == [0, 1, 2]
    assert result.n_clusters_draws.tolist() == [len(np.unique(own)) for own in result.label_draws]
    assert result.n_clusters_frequencies[1] == 20 / 90
    assert 0.0 < result.number_known_vi < 0.98 * result.expected_vi
    assert "If their number were known, the mean distance " in result.verdict
    # A source may be divided, and labels renumbered, as the draws of the others are.
    assert_same(of(sources[:1]), of([drawn_by(mixtures[0], 8), drawn_by(mixtures[0], 12)]))
    # Partitions of their own would be close to few draws, whatever these have in common.
    few = of([drawn_by(one, 2) for one in mixtures])
    assert len(few.n_clusters_frequencies) > 1 and few.number_known_vi == few.expected_vi
    # Rows beyond the sample are placed by all sources.
    placed = partition_posterior(sources, rows, 120, np.random.RandomState(0), ("", ""))
    assert np.mean(placed.labels == result.labels) > 0.9
    assert np.abs(placed.affinity - result.affinity).max() < 0.4


@pytest.mark.slow
def test_draws_are_those_of_the_answer_and_reproducible():
    estimator = copy.deepcopy(fitted({}))
    by_default = estimator.partition_posterior(X, n_draws=20, random_state=5)
    assert by_default.note == estimator.posterior_check(X).verdict
    assert_same(by_default, estimator.partition_posterior(X, n_draws=20, random_state=5))
    other = estimator.partition_posterior(X, n_draws=20, random_state=6)
    assert np.any(other.label_draws != by_default.label_draws)
    exact = mixture({}, 1).fit(X[:40]).partition_posterior(X[:40], n_draws=12, method="exact", random_state=0)
    assert exact.note.startswith("Exact posterior") and len(exact.label_draws) == 12


@pytest.mark.slow
def test_memory_does_not_grow_with_draws_times_rows():
    rows = overlapping(60_000)
    estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(rows)
    of_results = 8 * len(rows) * 5
    peak = peak_memory(lambda: found(estimator, rows, n_draws=200, max_rows=50))
    assert peak < of_results + len(rows) * 200 / 2


@pytest.mark.slow
def test_bad_arguments_are_refused():
    estimator = fitted({})
    for options, message in [
        ({"n_draws": 1}, "n_draws=1 says nothing"),
        ({"n_draws": 2.5}, "'n_draws': 2.5"),
        ({"max_rows": 0}, "'max_rows': 0"),
        ({"max_rows": 9}, r"max_rows=9 is too few .* 2 components: pass at least 10"),
        ({"method": "bootstrap"}, "method must be 'auto', 'lrvb' or 'exact', got 'bootstrap'"),
        ({"sample_weight": np.ones(3)}, "sample_weight"),
    ]:
        with pytest.raises(ValueError, match=message):
            found(estimator, X, **options)
    with pytest.raises(MemoryError, match=r"100000000 draws.*n_draws=\d+; 400"):
        found(estimator, X, n_draws=10**8)
    with pytest.raises(ValueError, match="pass X"):
        found(estimator, None)
    with pytest.raises(ValueError, match="not what the mixture was fitted to"):
        found(estimator, X + 1.0)
    with pytest.raises(NotFittedError):
        LRVBGaussianMixture().partition_posterior(X)
    for rows in ([0.5], [[0, 1]], "01", [-1], [240]):
        with pytest.raises(ValueError, match=r"rows must be a list of numbers|is not among the 240 rows"):
            found(estimator, X).coclustering(rows)
    flat = fitted({"prior": "flat"})
    with pytest.raises(
        ValueError, match='Under prior="flat" a mixture of several components has no posterior'
    ):
        found(flat, X, method="exact")
    assert "has no posterior" in found(flat, X, method="auto").note


def test_many_components_have_wider_labels():
    estimator = mixture({}, 130, weight_concentration_prior_type="dirichlet_distribution", max_iter=1)
    with pytest.warns(ConvergenceWarning):
        estimator.fit(X)
    posterior = posterior_of(estimator)
    source = GaussianParameters(
        posterior, estimator._fitted.origin, GaussianParameters.draws_at(posterior, posterior)
    )
    labels = label_draws(rows_of(estimator, X), [source], 0)
    with pytest.raises(MemoryError, match="7000 draws"):  # The tables of the search count.
        found(estimator, X, n_draws=7000)
    assert labels.dtype == np.int16 and labels.min() >= 0 and labels.max() > 127


def test_the_display_is_a_table_too():
    html = found(fitted({}), X)._repr_html_()
    assert "<table" in html and "variation of information" in html
    assert note_of_number(fitted({})._fitted) in html
