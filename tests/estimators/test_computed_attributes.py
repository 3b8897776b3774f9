"""Attributes that cannot be computed are missing for hasattr and getattr, and say why when read."""

import copy
import inspect
import pickle

import joblib
import numpy as np
import pytest
from catalogue import mixture, overlapping, set_sizes, three_blobs
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.answers.uncertainty import PosteriorUncertainty
from sklearn_lrvb.linear_response import IndefiniteInformationError

COMPUTED = [
    "posterior_covariance_",
    "posterior_std_",
    "weights_std_",
    "means_std_",
    "covariances_std_",
    "precisions_std_",
]
ALL = [*COMPUTED, "posterior_mean_", "posterior_names_"]


def saddle():
    """A fit on a saddle point: two components on one cloud."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    estimator = mixture({"prior": "flat"}, max_iter=1, init_params="random", solver="coordinate_ascent")
    with pytest.warns(UserWarning, match="did not converge"):
        return estimator.fit(X)


def assert_missing(estimator, names, kind, message):
    """The attributes raise an error that is an AttributeError too, and are missing for those who ask."""
    for name in names:
        assert not hasattr(estimator, name)
        assert getattr(estimator, name, "default") == "default"
        with pytest.raises(kind, match=message) as caught:
            getattr(estimator, name)
        assert isinstance(caught.value, AttributeError)
        # Python suggests similar names only for errors that name an attribute.
        assert caught.value.name is None


def test_attributes_of_an_undefined_covariance_are_missing():
    estimator = saddle()
    assert_missing(estimator, COMPUTED, IndefiniteInformationError, "no strict local optimum.*raise max_iter")
    # A method is there, and raises an error that is no AttributeError.
    with pytest.raises(IndefiniteInformationError) as caught:
        estimator.posterior(method="lrvb").covariance()
    assert not isinstance(caught.value, AttributeError)


def test_attributes_before_a_fit_or_after_a_change_are_missing():
    assert_missing(LRVBGaussianMixture(), ALL, NotFittedError, "not fitted yet")
    estimator = mixture({}).fit(overlapping(60))
    assert all(hasattr(estimator, name) for name in ALL)
    estimator.means_ = estimator.means_ + 1.0
    assert_missing(estimator, COMPUTED, NotFittedError, "Changed since the fit: means_")
    estimator.means_ = np.zeros(3)
    assert_missing(estimator, ["posterior_mean_", "posterior_names_"], ValueError, "means_ has shape")


def test_attributes_too_large_or_without_rows_are_missing(monkeypatch):
    X = three_blobs(60)
    set_sizes(monkeypatch, pickled_bytes=0)
    twin = pickle.loads(pickle.dumps(mixture({}, max_iter=1, solver="coordinate_ascent", tol=1e3).fit(X)))
    assert_missing(twin, COMPUTED, ValueError, "needs the training rows")
    estimator = mixture({}).fit(X)
    set_sizes(monkeypatch, dense_size=4)
    assert_missing(estimator, ["posterior_covariance_"], MemoryError, "up to 4 are solved")


def test_refusals_keep_what_errors_carry_and_travel_between_processes():
    with pytest.raises(IndefiniteInformationError) as caught:
        saddle().means_std_
    error = caught.value
    assert error.smallest_eigenvalue < 0
    assert error.direction.shape == (12,)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        np.testing.assert_array_equal(twin.direction, error.direction)


def test_nothing_that_looks_at_an_estimator_computes_or_fails():
    estimator = saddle()
    names = {name for name, _ in inspect.getmembers(estimator)}
    assert {"means_", "fit"} <= names
    assert not names & set(COMPUTED)  # They cannot be computed.
    clone(estimator)
    for twin in (copy.copy(estimator), copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):
        np.testing.assert_array_equal(twin.means_, estimator.means_)
        assert not hasattr(twin, "means_std_")
    assert "LRVBGaussianMixture" in estimator._repr_html_()
    assert joblib.hash(estimator) == joblib.hash(copy.deepcopy(estimator))


def test_dir_lists_what_a_fit_has_and_computes_nothing(monkeypatch):
    fit, unfitted = mixture({}).fit(overlapping(60)), LRVBGaussianMixture()
    monkeypatch.setattr(PosteriorUncertainty, "std", None)
    monkeypatch.setattr(PosteriorUncertainty, "information", None)
    assert {*COMPUTED, "labels_", "log_evidence_", "means_"} <= set(dir(fit))
    assert not {"tails_std_", "scales_std_", "noise_weight_std_"} & set(dir(fit))
    assert not {*COMPUTED, "labels_", "means_"} & set(dir(unfitted))
    shown = fit._repr_html_()
    assert "LRVBGaussianMixture" in shown
    assert "means_std_" not in shown
    assert "means_std_" in dir(fit)


def test_labels_are_those_of_the_training_rows():
    X = overlapping(60)
    for rows, weights in ((X, None), (np.where(X > 3.5, np.nan, X), None), (X, np.arange(60) + 1.0)):
        fit = mixture({"moves": None}).fit(rows, sample_weight=weights)
        np.testing.assert_array_equal(fit.labels_, fit.predict(rows))
        with pytest.raises(ValueError, match="read-only"):
            fit.labels_[0] = 0
    labels = fit.labels_
    np.testing.assert_array_equal(fit.fit(X[:40]).labels_, fit.predict(X[:40]))
    assert len(labels) == 60
    without = mixture({}).fit(X, sample_weight=np.arange(60) > 3)
    batches = mixture({}, init_params="random").fit([X[:30], X[30:]])
    twin = pickle.loads(pickle.dumps(mixture({}).fit(X)))
    for other in (without, batches, twin):
        assert_missing(other, ["labels_"], ValueError, r"needs all training rows.*call predict\(X\)")
    assert_missing(LRVBGaussianMixture(), ["labels_"], NotFittedError, "not fitted yet")
