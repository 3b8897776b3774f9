"""covariance_type='tied_diag', one variance a feature for all components: where it equals other models."""

import numpy as np
import pytest
from catalogue import mixture, overlapping, three_blobs

OPTIONS = {
    "joint": {},
    "independent": {"factorization": "independent", "reg_covar": 0.05},
    "flat": {"prior": "flat"},
    "noise": {"noise": -6.0},
    "tails": {"tails": "student"},
    "missing values": {"reg_covar": 0.02},
}
options = pytest.mark.parametrize("name", OPTIONS)


def fitted(name, n_components, X, covariance_type="tied_diag", **parameters):
    model = {"covariance_type": covariance_type, **OPTIONS[name], **parameters}
    return mixture(model, n_components, tol=1e-11).fit(X)


def rows_of(name, n_features):
    """Rows, of which every seventh has no first value where the options say so."""
    X = three_blobs(150, n_features)
    if name == "missing values":
        X[::7, 0] = np.nan
    return X


def assert_same_answers(one, other, X):
    """The same optimum, error bars, influence of rows, scores, leverages and criterion."""
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, rel=1e-12)
    np.testing.assert_allclose(one.posterior_mean_, other.posterior_mean_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.posterior_std_, other.posterior_std_, rtol=1e-8, atol=1e-14)
    scale = np.outer(other.posterior_std_, other.posterior_std_) + 1e-300
    difference = (one.posterior_covariance_ - other.posterior_covariance_) / scale
    np.testing.assert_allclose(difference, 0.0, atol=1e-8)
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(one.leverage(X), other.leverage(X), rtol=1e-7, atol=1e-12)
    if not one.noise:
        assert one.bic(X) == pytest.approx(other.bic(X), rel=1e-8)
    complete = X[~np.isnan(X).any(axis=1)]
    for target in ("means", "precisions", "weights"):
        found, expected = (fit.influence(complete, target=target).ravel() for fit in (one, other))
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "missing values"])
def test_of_one_feature_it_is_tied(name):
    X = rows_of(name, 1)
    one, other = (fitted(name, 2, X, covariance_type) for covariance_type in ("tied_diag", "tied"))
    assert_same_answers(one, other, X)
    assert one.precisions_.shape == (1,) and other.precisions_.shape == (1, 1)


@options
def test_of_one_component_it_is_diag(name):
    X = rows_of(name, 3)
    one, other = (fitted(name, 1, X, covariance_type) for covariance_type in ("tied_diag", "diag"))
    assert_same_answers(one, other, X)
    assert one.precisions_.shape == (3,) and other.precisions_.shape == (1, 3)
    np.testing.assert_allclose(one.loo_score_samples(X), other.loo_score_samples(X), rtol=1e-9)
    draws, expected = (
        fit.posterior(X, method="exact", random_state=0).sample(20)["precisions"] for fit in (one, other)
    )
    np.testing.assert_allclose(draws, expected[:, 0], rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "flat"])
def test_error_bars_are_the_response_of_refits_to_the_prior(name):
    # log p gains -dC lambda / 2 for a precision lambda with the prior C: an identity of E_q theta
    X, C, step = rows_of(name, 3), np.array([1.0, 0.8, 1.4]), 1e-3
    estimator = fitted(name, 2, X, covariance_prior=C, mean_prior=np.zeros(3))
    start = estimator.predict_proba(X)
    first = 2 + 2 * 3 + (name == "noise")  # of the precisions, after log weights and means
    for p, change in enumerate(step * np.eye(3)):
        above, below = (
            fitted(
                name, 2, X, covariance_prior=C + sign * change, mean_prior=np.zeros(3), init_params=start
            ).posterior_mean_
            for sign in (1.0, -1.0)
        )
        error = (above - below) / (2 * step) + 0.5 * estimator.posterior_covariance_[:, first + p]
        np.testing.assert_array_less(np.abs(error), 1e-5 * estimator.posterior_std_)


@options
def test_order_and_units_of_the_columns_do_not_matter(name):
    X, order, units = rows_of(name, 3), [2, 0, 1], np.array([2.0**-20, 1.0, 2.0**30])
    exact = {"reg_covar": 0.0, "init_params": fitted(name, 2, X).predict_proba(X)}
    here = fitted(name, 2, X, **exact)
    if name == "noise":  # Its density is per volume.
        exact["noise"] = OPTIONS[name]["noise"] - np.log(units).sum()
    moved = (X * units)[:, order]
    there = fitted(name, 2, moved, **exact)
    np.testing.assert_allclose(there.predict_proba(moved), here.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(there.weights_std_, here.weights_std_, rtol=1e-7)
    for attribute, power in (("means", 1), ("covariances", 2), ("precisions", -2)):
        for ending in ("_", "_std_"):
            found, expected = (getattr(fit, attribute + ending) for fit in (there, here))
            np.testing.assert_allclose(found, (expected * units**power)[..., order], rtol=1e-7)


def test_scikit_learn_has_no_such_mixture():
    estimator = fitted("joint", 2, overlapping(60))
    with pytest.raises(
        ValueError, match=r"no covariance_type='tied_diag'\. \(a\).*'diag'.*'tied'.*\(b\) Use this mixture"
    ):
        estimator.to_sklearn()


def test_tails_of_every_component_are_refused():
    with pytest.raises(ValueError, match="covariance_type='tied_diag' asks for one that all share"):
        fitted("joint", 2, overlapping(60), tails="student_by_component")
