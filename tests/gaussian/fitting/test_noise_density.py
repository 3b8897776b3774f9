"""What a fit with noise is given: the core, the density of noise, and the rows far out."""

import itertools

import dask
import dask.array as da
import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, rows_around_mean, set_sizes, three_blobs
from covariance_types import TYPES
from scipy.stats import chi2, multivariate_normal
from sklearn.datasets import load_iris

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.covariance_structures import COVARIANCE_STRUCTURES
from sklearn_lrvb.gaussian.fitting.completion import Completion
from sklearn_lrvb.gaussian.fitting.core import core_of
from sklearn_lrvb.gaussian.fitting.far_out import FarOut
from sklearn_lrvb.gaussian.fitting.noise_density import default_log_density
from sklearn_lrvb.gaussian.model import GAUSSIAN
from sklearn_lrvb.rows import given_rows


def with_outliers(n_samples=300, n_features=3, distance=50.0):
    """Three clusters, of which the last 15 rows are outliers in all directions, in other units."""
    X = three_blobs(n_samples, n_features)
    directions = np.random.default_rng(0).normal(size=(15, n_features))
    X[-15:] = distance * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    return X


def structure_of(covariance_type, n_features):
    return COVARIANCE_STRUCTURES[covariance_type](2, n_features)


def found(rows, covariance_type="full", reg_covar=0.0):
    """Mean and covariance of the core, the log density, and the rows far out."""
    completion = Completion(rows, needs_matrix=True, model=GAUSSIAN) if rows.has_missing else None
    core = core_of(rows, completion)
    log_density = default_log_density(core, structure_of(covariance_type, rows.n_features), reg_covar)
    return core.mean + rows.origin, core.covariance, log_density, FarOut(rows, core).are_far_out


def found_in(X, weights=None, **options):
    return found(rows_around_mean(X, None, weights), **options)


def assert_same(results, expected, rtol=1e-9):
    for result, value in zip(results[:3], expected[:3], strict=True):
        np.testing.assert_allclose(result, value, rtol=rtol, atol=1e-11)
    np.testing.assert_array_equal(results[3], expected[3])


# Invariance.


@pytest.mark.parametrize("n_features", [1, 3, 12])
def test_nothing_depends_on_the_coordinates(n_features):
    X, rng = with_outliers(n_features=n_features), np.random.default_rng(1)
    units = 10.0 ** rng.integers(-3, 4, size=n_features)
    map_, shift = units[:, None] * rng.normal(size=(n_features, n_features)), rng.normal(size=n_features)
    mean, covariance, log_density, far_out = found_in(X)
    in_others = found_in(X @ map_.T + shift)
    expected = map_ @ covariance @ map_.T
    scale = np.sqrt(np.diag(expected))
    np.testing.assert_allclose((in_others[0] - map_ @ mean - shift) / scale, 0.0, atol=1e-9)
    np.testing.assert_allclose((in_others[1] - expected) / np.outer(scale, scale), 0.0, atol=1e-9)
    np.testing.assert_allclose(in_others[2], log_density - np.linalg.slogdet(map_)[1], atol=1e-8)
    np.testing.assert_array_equal(in_others[3], far_out)


@pytest.mark.parametrize(
    ("covariance_type", "units"), [("diag", [1e3, 1e-2, 7.0]), ("spherical", 40.0), ("tied", 1e-3)]
)
def test_densities_in_units(covariance_type, units):
    X, units = with_outliers(), np.broadcast_to(units, 3)
    log_density = found_in(X, covariance_type=covariance_type)[2]
    in_units = found_in(X * units + 5.0, covariance_type=covariance_type)[2]
    np.testing.assert_allclose(in_units, log_density - np.log(units).sum(), atol=1e-9)


@pytest.mark.parametrize("n_sampled", [None, 200])
def test_a_row_of_a_weight_is_so_many_rows(n_sampled, monkeypatch):
    X = with_outliers()
    weights = np.random.default_rng(0).integers(1, 4, size=len(X)).astype(float)
    repeated = np.repeat(np.arange(len(X)), weights.astype(int))
    if n_sampled is not None:
        set_sizes(monkeypatch, sample_rows=n_sampled)
    *results, far_out = found_in(X, weights)
    assert_same((*results, far_out[repeated]), found_in(X[repeated]))


@pytest.mark.slow
@pytest.mark.parametrize("n_sampled", [None, 200])
@pytest.mark.parametrize("has_missing", [False, True])
def test_rows_in_parts_and_small_blocks_give_the_same(n_sampled, has_missing, monkeypatch):
    X = with_outliers()
    if has_missing:
        X[np.arange(0, 250, 5), np.arange(50) % 3] = np.nan
    if n_sampled is not None:
        set_sizes(monkeypatch, sample_rows=n_sampled)
    expected = found_in(X)
    batches, chunks = [X[:7], X[7:200], X[200:]], da.from_array(X, chunks=(90, 3))
    with dask.config.set(scheduler="synchronous"):
        for given in (batches, chunks):
            assert_same(found(given_rows(LRVBGaussianMixture(), given, reset=True).around_mean()), expected)
    set_sizes(monkeypatch, most_rows=50, least_rows=1)
    assert_same(found_in(X), expected)


# The core.


@pytest.mark.parametrize("n_features", [1, 2, pytest.param(8, marks=pytest.mark.slow)])
def test_normal_rows_have_the_covariance_of_their_core(n_features):
    n_samples = 40_000
    X = np.random.default_rng(0).normal(size=(n_samples, n_features))
    mean, covariance, _, _ = found_in(X)
    np.testing.assert_allclose(mean, 0.0, atol=8 / np.sqrt(n_samples))
    np.testing.assert_allclose(covariance, np.eye(n_features), atol=8 / np.sqrt(n_samples))


def test_how_far_outliers_are_does_not_matter_to_the_core():
    near, far = found_in(with_outliers(distance=1e3)), found_in(with_outliers(distance=1e6))
    assert_same((*far[:2], 0.0, far[3]), (*near[:2], 0.0, near[3]), rtol=1e-6)
    assert np.abs(near[0]).max() < 10


@pytest.mark.slow
@pytest.mark.parametrize("one_in", [5, 20, 299])
def test_most_rows_may_have_one_value_in_a_column(one_in):
    X = three_blobs(300, 3)
    X[:, 1] = np.where(np.arange(300) % one_in == 0, X[:, 1], 0.0)
    mean, covariance, log_density, _ = found_in(X)
    assert np.linalg.matrix_rank(covariance) == 3
    assert np.isfinite(log_density)
    if one_in == 299:  # The two rows with other values are in no central part.
        np.testing.assert_allclose(mean, X.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(covariance, np.cov(X.T, ddof=0), rtol=1e-9, atol=1e-12)
    else:
        far = found_in(np.concatenate([X, [[1e6, 1e6, 1e6], [-2e6, 1e6, 0.0], [1e6, -3e6, 5e6]]]))
        assert np.all(np.diag(far[1]) < 2.0 * X.var(axis=0))


@pytest.mark.parametrize("row", [[1e12, 0.0, 0.0], [1e12, 1e12, 1e12]])
def test_one_row_at_any_distance_does_not_count(row):
    X = three_blobs(300, 3)
    near, far = found_in(np.concatenate([X, [[1e3, 1e3, 0.0]]])), found_in(np.concatenate([X, [row]]))
    ratios = np.linalg.eigvals(np.linalg.solve(near[1], far[1]))
    assert np.all(np.abs(np.log(ratios)) < 0.3)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_core_has_the_shape_of_a_prior(covariance_type):
    core, structure = core_of(rows_around_mean(three_blobs(300, 3))), structure_of(covariance_type, 3)
    expected = np.reshape(TYPES[covariance_type].prior(core.covariance), structure.identity.shape)
    np.testing.assert_allclose(core.covariance_in(structure), expected, rtol=1e-13)


# The density.


def price(n_samples, n_numbers):
    """What the place and the shape of a volume that is taken from the rows costs it, in nats."""
    return n_numbers * (1.0 + np.log(n_samples)) / n_samples


def of_volume(volume, X, n_numbers):
    """log density over a volume that encloses rows: the price counts twice, and ranges are widened."""
    n_values = np.array([len(np.unique(column)) for column in X.T])
    widened = np.log((n_values + 1) / (n_values - 1)).sum() + 0.05
    return -np.log(volume) - widened - 2.0 * price(len(X), n_numbers)


def test_in_many_dimensions_the_density_is_the_normal_one_at_its_quantile():
    X = with_outliers(n_features=20)
    mean, covariance, log_density, _ = found_in(X)
    at = mean + np.linalg.cholesky(covariance)[:, 0] * np.sqrt(chi2.ppf(0.997, 20))
    expected = multivariate_normal(mean, covariance).logpdf(at) - price(len(X), 20 + 210)
    np.testing.assert_allclose(log_density, expected, rtol=1e-10)


@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_in_few_dimensions_it_is_that_of_the_box(n_features):
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=n_features)))
    inner = np.random.default_rng(0).uniform(-0.9, 0.9, size=(100, n_features))
    units = 10.0 ** np.arange(n_features)
    X = np.concatenate([corners, inner]) * units
    n_shape = n_features * (n_features + 1) / 2
    for covariance_type, n_numbers in (("full", n_features + n_shape), ("diag", 2 * n_features)):
        expected = of_volume(np.prod(2.0 * units), X, n_numbers)
        np.testing.assert_allclose(found_in(X, covariance_type=covariance_type)[2], expected, rtol=1e-12)
    of_cube = found_in(X, covariance_type="spherical")[2]
    expected = of_volume((2.0 * units[-1]) ** n_features, X, n_features + 1)
    np.testing.assert_allclose(of_cube, expected, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_that_of_the_ellipse_where_this_is_smaller(weighted):
    angles = np.linspace(0.0, 2.0 * np.pi, 100, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    X = np.concatenate([circle, 0.5 * circle]) @ np.array([[3.0, 2.9], [0.0, 0.2]])
    if weighted:
        weights = np.repeat([1.0, 3.0], 100)
        expected = found_in(np.concatenate([X, X[100:], X[100:]]))[2]
        np.testing.assert_allclose(found_in(X, weights)[2], expected, rtol=1e-9)
    else:
        expected = of_volume(np.pi * 3.0 * 0.2, X, 5)
        np.testing.assert_allclose(found_in(X)[2], expected, rtol=1e-6)


def test_a_known_error_changes_the_density_no_more_than_it_widens_the_range():
    rng = np.random.default_rng(0)
    # The core is narrow beside the error, the range is not.
    X = np.concatenate([0.06 * rng.normal(size=(90, 2)), rng.uniform(-1.0, 1.0, size=(30, 2))])
    for covariance_type in COVARIANCE_TYPES:
        densities = [
            found_in(X, covariance_type=covariance_type, reg_covar=error)[2] for error in (0, 0.06**2)
        ]
        assert densities[0] - 0.01 < densities[1] < densities[0]


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_constant_columns_tell_no_noise(covariance_type):
    X, reg_covar = three_blobs(300, 2), 0.0 if TYPES[covariance_type].n_axes == 0 else 1e-3
    options = {"covariance_type": covariance_type, "reg_covar": reg_covar}
    widened = found_in(np.column_stack([X, np.full(300, 7.1)]), **options)
    narrow = found_in(X, **options)
    np.testing.assert_array_equal(widened[3], narrow[3])
    # A constant column has the known error alone; with "spherical", the mean of all variances.
    variance = reg_covar or core_of(rows_around_mean(X)).covariance.trace() / 3
    np.testing.assert_allclose(widened[2], narrow[2] - 0.5 * np.log(2 * np.pi * variance), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_noise_gains_nothing_on_clean_rows(covariance_type):
    tables = [load_iris().data]
    for n_features in (1, 2, 6, 20):
        rng = np.random.default_rng(0)
        centers = 5 * rng.normal(size=(3, n_features))
        tables.append(rng.normal(size=(400, n_features)) + centers[rng.integers(3, size=400)])
    for X in tables:
        fit = LRVBGaussianMixture(n_components=4, covariance_type=covariance_type, random_state=0).fit(X)
        log_density = found_in(X, covariance_type=covariance_type, reg_covar=fit.reg_covar)[2]
        # The log likelihood of a weight of noise is concave, and falls from this weight on.
        excess, weight = np.expm1(log_density - fit.score_samples(X)), 0.02
        assert (excess / (1.0 + weight * excess)).mean() < 0


def test_one_column_has_one_density():
    X = np.append(np.random.default_rng(0).normal(size=99), 30.0)[:, None]
    found = [found_in(X, covariance_type=covariance_type)[2] for covariance_type in COVARIANCE_TYPES]
    np.testing.assert_allclose(found, of_volume(np.ptp(X), X, 2), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("n_samples", "n_features"), [(20, 3), (30, 2), (30, 5), (50, 1), (50, 3)])
def test_few_clean_rows_are_no_noise(n_samples, n_features):
    lost = 0
    for seed in range(8):
        X = np.random.default_rng(seed).normal(size=(n_samples, n_features))
        lost += (LRVBGaussianMixture(noise=True, random_state=0).fit_predict(X) == -1).sum()
    assert lost <= 0.05 * 8 * n_samples  # A tenth of them without the price.


# The rows far out.


@pytest.mark.parametrize("n_features", [2, 6])
def test_outliers_are_far_out_and_clusters_are_not(n_features):
    rng = np.random.default_rng(0)
    clusters = [
        rng.normal(size=(420, n_features)),
        rng.normal(size=(120, n_features)) + 8,
        2 * rng.normal(size=(60, n_features)) - 9,
    ]
    X = np.concatenate([*clusters, 1000 * rng.normal(size=(40, n_features))])
    far_out = found_in(X)[3]
    assert far_out[600:].all()
    for cluster in np.split(far_out[:600], [420, 540]):
        assert cluster.mean() < 0.5
    assert far_out.mean() <= 0.1


@pytest.mark.parametrize("n_features", [2, 6])
def test_rows_that_are_the_same_are_not_far_out(n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_features + 3, n_features))[rng.integers(n_features + 3, size=400)]
    assert not found_in(X)[3].any()
    # Nor are few rows, all of which are neighbours.
    assert not found_in(rng.normal(size=(8, n_features)))[3].any()


# Bad input.


def test_too_few_rows():
    with pytest.raises(
        ValueError, match=r"X has 4 rows of 3 features, too few to tell noise.*\(b\) Use fewer"
    ):
        core_of(rows_around_mean(three_blobs(4, 3)))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_columns_without_volume(covariance_type):
    X = three_blobs(300, 2)
    X = np.column_stack([X, X.sum(axis=1), np.zeros(300)])
    assert np.isfinite(found_in(X, covariance_type=covariance_type, reg_covar=1e-6)[2])
    if TYPES[covariance_type].n_axes > 0:
        with pytest.raises(ValueError, match=r"X fills no volume.*its 4 columns.*\(b\) Raise reg_covar"):
            found_in(X, covariance_type=covariance_type)
