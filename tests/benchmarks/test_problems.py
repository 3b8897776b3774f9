"""Problems of the benchmarks: their rows are what they say, and the same every time."""

import urllib.error

import numpy as np
import pytest
import scipy.stats
from scipy.spatial.distance import cdist, pdist
from sklearn.utils import Bunch

from benchmarks.harness.measuring import Settings
from benchmarks.problems import digits, outliers, paper_mixtures
from benchmarks.problems.heavy_tails import HEAVY_TAILS, HeavyTails
from benchmarks.problems.model_departures import DEPARTURES, class_table, gaussian_table
from benchmarks.problems.populations import SCENARIOS
from benchmarks.problems.surplus_problems import COLUMNS, KNOWN, Clusters, random_problems


def _stored_digits(folder):
    """A file of ten digits, and what is in it."""
    rng = np.random.default_rng(0)
    stored = {f"X_{part}": rng.integers(256, size=(5, 784), dtype=np.uint8) for part in ("train", "test")}
    stored |= {f"y_{part}": np.array([0, 1, 1, 0, 1], dtype=np.uint8) for part in ("train", "test")}
    np.savez(folder / "digits.npz", **stored)
    return folder / "digits.npz", stored


def test_features_of_the_paper_are_of_pixels_read_as_signed_bytes(tmp_path, capsys):
    path, stored = _stored_digits(tmp_path)
    found = digits.zeros_and_ones(path, quick=True)
    assert path.name in capsys.readouterr().out
    np.testing.assert_array_equal(found.test, stored["X_test"])
    np.testing.assert_array_equal(found.test_labels, [0, 1, 1, 0, 1])
    np.savez(tmp_path / "pca.npz", pixel_mean=np.arange(784.0), components=np.eye(784)[:25])
    for features, part in zip(
        digits.paper_features(found, tmp_path / "pca.npz"), ("train", "test"), strict=True
    ):
        pixels = stored[f"X_{part}"][:, :25].astype(float)
        np.testing.assert_array_equal(features, np.where(pixels > 127, pixels - 256, pixels) - np.arange(25))


def test_digits_other_than_zeros_and_ones_are_refused_by_their_labels(tmp_path):
    path, stored = _stored_digits(tmp_path)
    np.savez(path, **(stored | {"y_test": np.array([0, 1, 7, 3, 7])}))
    with pytest.raises(ValueError, match=r"digits.npz: y_test has the labels 0, 1, 3, 7;"):
        digits.zeros_and_ones(path)


def test_a_file_of_digits_without_an_array_is_refused_by_its_name(tmp_path):
    path, stored = _stored_digits(tmp_path)
    np.savez(path, **{name: array for name, array in stored.items() if name != "y_test"})
    with pytest.raises(ValueError, match=r"digits.npz has no y_test; it has X_train, X_test, y_train"):
        digits.zeros_and_ones(path)


def test_mnist_of_any_source_has_the_features_of_the_paper(tmp_path, monkeypatch):
    path, _ = _stored_digits(tmp_path)
    openml = digits.zeros_and_ones(path)
    monkeypatch.setattr(paper_mixtures, "zeros_and_ones", lambda path, quick: openml)
    monkeypatch.setattr(paper_mixtures, "_of_digits", lambda name, *others: name)
    np.savez(tmp_path / "pca.npz", pixel_mean=np.zeros(784), components=np.eye(784)[:25])
    settings = Settings(quick=True, pca=tmp_path / "pca.npz")
    assert next(paper_mixtures.digits(settings)) == "MNIST, the paper's features"


def test_digits_of_other_sizes_have_no_features_of_the_paper(tmp_path):
    np.savez(tmp_path / "pca.npz", pixel_mean=np.zeros(784), components=np.eye(784)[:25])
    with pytest.raises(ValueError, match=r"projects 784 pixels, but these digits have 64 .*--mnist"):
        digits.paper_features(digits.zeros_and_ones(None, quick=True), tmp_path / "pca.npz")


def test_without_a_network_the_digits_are_small_and_it_is_said(monkeypatch, capsys):
    def unreachable(*arguments, **settings):
        raise urllib.error.URLError("no route")

    monkeypatch.setattr(digits, "fetch_openml", unreachable)
    found = digits.zeros_and_ones(None)
    printed = capsys.readouterr().out
    assert "no route" in printed
    assert "load_digits" in printed
    assert (found.train.shape[1], found.train.min(), found.train.max()) == (64, 0.0, 255.0)
    assert set(found.train_labels) == set(found.test_labels) == {0, 1}
    quickly = digits.zeros_and_ones(None, quick=True)
    assert "no route" not in capsys.readouterr().out
    np.testing.assert_array_equal(found.test, quickly.test)


def test_the_first_rows_of_openml_train(monkeypatch):
    labels = np.resize(np.arange(10), 70_000)
    data = Bunch(data=np.arange(70_000)[:, None], target=labels.astype(str))
    monkeypatch.setattr(digits, "fetch_openml", lambda *arguments, **settings: data)
    found = digits.zeros_and_ones(None)
    np.testing.assert_array_equal(found.train[:4, 0], [0, 1, 10, 11])
    np.testing.assert_array_equal(found.test[:4, 0], [60_000, 60_001, 60_010, 60_011])
    assert (len(found.train), len(found.test)) == (12_000, 2_000)
    np.testing.assert_array_equal(found.test_labels, found.test[:, 0] % 10)


def test_surplus_problems_are_many_and_have_names_of_their_own():
    assert len({problem.data_set for problem in KNOWN}) >= 33
    assert len({problem.name for problem in KNOWN}) == len(KNOWN) >= 73
    assert {2, 30} <= {problem.n_components for problem in KNOWN} <= set(range(2, 31))
    assert len({problem.weight_concentration_prior_type for problem in KNOWN}) == 2
    assert len({problem.covariance_type for problem in KNOWN}) == 4
    assert len(COLUMNS) == 10


@pytest.mark.slow
def test_rows_of_surplus_problems_are_the_same_every_time():
    for problem in {problem.data_set: problem for problem in (*KNOWN, *COLUMNS)}.values():
        X = problem.simulate()
        assert X.ndim == 2
        assert np.isfinite(X).all()
        np.testing.assert_array_equal(X, problem.simulate())
        assert len(problem.scaled(60).simulate()) == 60


def test_random_surplus_problems_have_more_components_than_clusters_and_the_right_model():
    first, again, other = random_problems(0), random_problems(0), random_problems(1)
    assert len(first) == 60
    assert [problem.name for problem in first] == [problem.name for problem in again]
    np.testing.assert_array_equal(first[7].simulate(), again[7].simulate())
    for problem in (*first, *other):
        assert 1 <= problem.n_clusters < problem.n_components <= 30


def test_a_model_is_right_for_clusters_of_its_shapes():
    right = {
        "equal": {"full", "tied", "diag", "spherical"},
        "full": {"full"},
        "tied": {"full", "tied"},
        "diag": {"full", "diag"},
        "spherical": {"full", "diag", "spherical"},
    }
    for shapes, types in right.items():
        clusters = Clusters(100, 3, 4, 5.0, shapes=shapes)
        assert {name for name in right["equal"] if clusters.fits(name)} == types
        population = clusters.population(np.random.default_rng(0))
        gaps = cdist(population.means, population.means)
        np.testing.assert_allclose(gaps[gaps > 0].min(), 5.0)
        covariances = population.covariances
        is_diagonal = not np.any(covariances * (1 - np.eye(3)))
        assert is_diagonal == ("diag" in types)
        assert np.array_equal(covariances, covariances[:1].repeat(4, axis=0)) == ("tied" in types)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_rows_of_a_population_have_its_moments(scenario):
    population = scenario.population
    X = population.draw(scenario.generator(0), 200_000)
    mean = population.weights @ population.means
    gaps = population.means - mean
    covariance = np.einsum("k,kpq->pq", population.weights, population.covariances + _outer(gaps))
    np.testing.assert_allclose(X.mean(axis=0), mean, atol=0.02)
    np.testing.assert_allclose(np.cov(X.T), covariance, atol=0.06)
    assert len(scenario.simulate(1)) == scenario.n_samples
    assert not np.array_equal(scenario.simulate(1), scenario.simulate(2))
    np.testing.assert_array_equal(scenario.simulate(1), scenario.simulate(1))


@pytest.mark.parametrize("kind", outliers.KINDS)
def test_outliers_are_as_many_and_as_far_as_they_say(kind):
    table = outliers.outlier_table(kind, 5, 0)
    rows, others = table.X[~table.is_outlier], table.X[table.is_outlier]
    assert len(others) == round(outliers.KINDS[kind].share * outliers.N_SAMPLES)
    assert len(table.X) == outliers.N_SAMPLES
    means = [rows[table.labels[~table.is_outlier] == k].mean(axis=0) for k in range(outliers.N_CLUSTERS)]
    np.testing.assert_allclose(means, table.population.means, atol=0.6)
    if "uniform" in kind:
        assert ((rows.min(axis=0) <= others) & (others <= rows.max(axis=0))).all()
    if "1000" in kind:
        distances = np.linalg.norm((others - rows.mean(axis=0)) / rows.std(axis=0), axis=1)
        np.testing.assert_allclose(distances, 1000.0)
    if "3 times" in kind:
        precision = np.linalg.inv(np.cov(rows.T))
        squares = np.einsum("np,pq,nq->n", others - rows.mean(axis=0), precision, others - rows.mean(axis=0))
        np.testing.assert_allclose(squares.mean(), 9 * 5, rtol=0.25)
    again, other = outliers.outlier_table(kind, 5, 0), outliers.outlier_table(kind, 5, 1)
    np.testing.assert_array_equal(table.X, again.X)
    assert not np.array_equal(table.X, other.X)


def test_heavy_tailed_rows_have_the_scales_and_degrees_of_freedom_that_they_say():
    # squared distances in the metric of the scale matrix, over P, have an F distribution with P and nu
    problem = HeavyTails(5.0, 1e3, n_components=3, n_samples=100_000)
    X = problem.simulate(0)
    labels = cdist(X, problem.population.means).argmin(axis=1)
    np.testing.assert_allclose(np.bincount(labels) / len(X), problem.population.weights, atol=0.01)
    gaps = X - problem.population.means[labels]
    squares = np.einsum("np,npq,nq->n", gaps, np.linalg.inv(problem.scales)[labels], gaps)
    assert scipy.stats.kstest(squares / 2, scipy.stats.f(2, 5).cdf).pvalue > 0.01


def test_centers_of_heavy_tailed_clusters_are_equally_far_apart():
    assert len({problem.name for problem in HEAVY_TAILS}) == len(HEAVY_TAILS) == 16
    for problem in HEAVY_TAILS:
        np.testing.assert_allclose(pdist(problem.population.means), problem.distance)
        assert problem.simulate(0).shape == (1000, problem.n_features)
        np.testing.assert_array_equal(problem.simulate(0), problem.simulate(0))


def _outer(vectors):
    return vectors[:, :, None] * vectors[:, None, :]


@pytest.mark.parametrize("name", DEPARTURES)
def test_tables_of_departures_are_the_same_every_time(name):
    table, again, other = (DEPARTURES[name].table(number) for number in (0, 0, 1))
    assert np.array_equal(table.X, again.X) and table.arguments == again.arguments
    assert not np.array_equal(table.X, other.X)
    assert table.estimator().get_params().items() >= table.arguments.items()
    assert len(table.X) == 500


def _last_columns(name):
    """The last column of some tables of a departure, one after the other."""
    return np.concatenate([np.asarray(DEPARTURES[name].table(number).X)[:, -1] for number in range(20)])


def test_departures_are_what_they_say():
    assert set(_last_columns("a column of zeros and ones")) == {0.0, 1.0}
    assert np.mean(_last_columns("a column that is zero in half of the rows") == 0) == pytest.approx(
        0.5, abs=0.02
    )
    for number in range(5):
        table = DEPARTURES["classes, two binary columns that depend"].table(number)
        codes = [table.X[column].astype("category").cat.codes for column in ("c4", "c5")]
        assert np.mean(codes[0] == codes[1]) > 0.6
    tails = DEPARTURES["tails of t with 4 degrees of freedom"].table(0)
    mixture = tails.estimator(random_state=0).fit(tails.X)
    rows = (tails.X - mixture.means_[mixture.predict(tails.X)]).ravel()
    assert scipy.stats.kurtosis(rows) > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("make", (gaussian_table, class_table))
def test_tables_that_fit_are_as_large_and_of_the_kinds_that_they_were_drawn_with(make):
    table, again = make(1), make(1)
    assert np.array_equal(table.X, again.X)
    assert not np.array_equal(table.X, make(2).X)
    assert 60 <= len(table.X) <= 5000
    labels = table.estimator(random_state=0).fit(table.X).predict(table.X)
    assert len(np.unique(labels)) > 1
    assert np.mean(labels[1:] == labels[:-1]) < 0.9  # Rows are in random order.
