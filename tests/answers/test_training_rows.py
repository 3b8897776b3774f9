"""Rows that nobody touched are those of the fit, whatever the conditioning; any others are not."""

import re
import warnings

import dask.array as da
import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, MODELS, covariance_by, mixture, three_blobs
from incomplete_rows import incomplete

from sklearn_lrvb import LRVBGaussianMixture

CHANGED = "X was changed in place after fit"
OTHER = "X is not what the mixture was fitted to"


def nearly_dependent(n_features=4, seed=0):
    """Rows of two clusters, in two nearly equal columns and others on very different scales."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, n_features))
    X[:30] += 3.0
    X[:, 1] = X[:, 0] * (1.0 + 1e-6 * rng.normal(size=60))
    return X * 10.0 ** np.linspace(-3, 3, n_features)


def wide(seed):
    """Fewer rows than columns, whose scales differ by six orders of magnitude."""
    rng = np.random.default_rng(seed)
    n_rows, n_features = int(rng.integers(4, 15)), int(rng.integers(15, 30))
    return rng.normal(size=(n_rows, n_features)) * 10.0 ** np.linspace(-3, 3, n_features)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.filterwarnings("ignore")
def test_untouched_rows_with_more_columns_than_rows(covariance_type):
    for seed in range(8):
        X = wide(seed)
        estimator = LRVBGaussianMixture(n_components=2, covariance_type=covariance_type, random_state=0)
        estimator.fit(X)
        assert estimator.means_std_.min() > 0
        assert np.isfinite(estimator.loo_score_samples(X)).all()


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_untouched_rows_in_another_order_or_form(covariance_type):
    X = nearly_dependent()
    estimator = mixture({"covariance_type": covariance_type, "reg_covar": 0.0}).fit(X)
    means_std = np.sqrt(np.diag(estimator.posterior(X, method="lrvb").covariance("means")))
    twice = {"X": np.concatenate([X, X]), "sample_weight": np.full(120, 0.5)}
    forms = [{"X": X[::-1]}, {"X": [X[:7], X[7:]]}, {"X": da.from_array(X, chunks=(25, 4))}, twice]
    for form in forms:
        covariance = covariance_by("primal", estimator, "means", **form)
        np.testing.assert_allclose(np.sqrt(np.diag(covariance)), means_std, rtol=1e-5)


def changes(X):
    """Changes in place that leave the numbers of rows and columns as they are."""
    rng = np.random.default_rng(1)
    n_rows = len(X)
    return {
        "a value": lambda Y: Y.__setitem__((3, 1), Y[3, 1] + 1e-3 * np.nanstd(X[:, 1])),
        "a value that goes": lambda Y: Y.__setitem__((3, 1), np.nan),
        "a row": lambda Y: Y.__setitem__(5, Y[6]),
        "the order in a column": lambda Y: Y.__setitem__((slice(None), 0), rng.permutation(X[:, 0])),
        "the order in every column": lambda Y: Y.sort(axis=0),
        "signs": lambda Y: np.subtract(2 * np.nanmean(X, axis=0), Y, out=Y),
        "units": lambda Y: np.multiply(Y, 1.0 + 1e-6, out=Y),
        "other rows with the same means and variances": lambda Y: Y.__setitem__(
            slice(None), _with_moments_of(rng.normal(size=(n_rows, X.shape[1])), X)
        ),
    }


def _with_moments_of(rows, X):
    """Rows moved and scaled column by column to the means and variances of others."""
    standardized = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return np.nanmean(X, axis=0) + standardized * np.nanstd(X, axis=0)


@pytest.mark.parametrize("change", changes(three_blobs()))
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("make", [three_blobs, nearly_dependent])
def test_changed_rows_are_noticed(make, covariance_type, change):
    X = make()
    model = {"covariance_type": covariance_type, "solver": "coordinate_ascent", "tol": 1e-3, "reg_covar": 0.0}
    estimator = mixture(model).fit(X)
    before = X.copy()
    changes(before)[change](X)
    with pytest.raises(ValueError, match=CHANGED):
        estimator.posterior_std_
    with pytest.raises(ValueError, match=OTHER):
        estimator.loo_score_samples(X)
    np.copyto(X, before)
    assert estimator.means_std_.min() > 0


@pytest.mark.parametrize("prior", ["learned", "flat"])
def test_missing_values_that_are_filled_are_noticed(prior):
    X = incomplete().copy()
    estimator = mixture({"prior": prior, "tol": 1e-3}).fit(X)
    X[...] = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    with pytest.raises(ValueError, match=OTHER):
        estimator.loo_score_samples(X)


def test_another_number_of_rows_is_told():
    X = three_blobs()
    estimator = mixture(MODELS[0]).fit(X)
    with pytest.raises(ValueError, match=f"{OTHER}: .*200 rows.* 300"):
        estimator.loo_score_samples(X[:200])
    weights = np.r_[np.full(100, 0.5), np.ones(200)]
    with pytest.raises(ValueError, match=f"{OTHER}: .*250 rows.* 300"):
        estimator.loo_score_samples(X, sample_weight=weights)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_singular_fit_with_missing_values_is_told_that_it_has_not_converged(covariance_type):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(34, 5)) @ rng.normal(size=(5, 5))
    X[rng.random(X.shape) < 0.5] = np.nan
    estimator = LRVBGaussianMixture(covariance_type=covariance_type, prior="flat", reg_covar=0.0)
    estimator.fit(X)
    assert not estimator.converged_
    # Where the fit stops, the information may be definite or not: it warns, or raises an error.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.posterior(X, method="lrvb").covariance("means")
            (told,) = [str(warning.message) for warning in caught]
        except ValueError as error:
            told = str(error)
    assert re.search(r"not converged.*raise max_iter", told) and not re.search(OTHER, told)
