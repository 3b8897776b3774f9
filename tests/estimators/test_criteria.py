"""AIC and BIC: those of scikit-learn's mixture where EM leads it to the same optimum."""

import numpy as np
import pytest
from catalogue import SKLEARN_TYPES, mixture, overlapping, three_blobs
from sklearn.mixture import GaussianMixture

X = three_blobs(240)


@pytest.mark.parametrize("covariance_type", SKLEARN_TYPES)
@pytest.mark.parametrize("n_components", [1, 3])
def test_criteria_are_those_of_scikit_learns_mixture(covariance_type, n_components):
    fit = mixture({"covariance_type": covariance_type}, n_components, reg_covar=1e-6).fit(X)
    theirs = GaussianMixture(n_components, covariance_type=covariance_type, tol=1e-8, max_iter=5000)
    theirs.set_params(means_init=fit.means_, weights_init=fit.weights_ / fit.weights_.sum()).fit(X)
    for criterion in ("aic", "bic"):
        expected, found = (getattr(own, criterion)(X) for own in (theirs, fit))
        assert expected - 0.01 < found < expected + 2.0  # The optimum under a flat prior is not the maximum.


def test_components_without_rows_take_no_part():
    surplus = mixture({}, 6).fit(X)
    names, labels = np.unique(surplus.labels_, return_inverse=True)
    assert surplus.n_occupied_ == len(names) < 6
    alone = mixture({}, len(names), init_params=np.eye(len(names))[labels]).fit(X)
    assert surplus.bic(X) == pytest.approx(alone.bic(X), abs=1e-3)


def test_weights_are_copies():
    weights = np.arange(len(X)) % 3 + 1
    copies = np.repeat(X, weights, axis=0)
    fit = mixture({}, 3).fit(X, sample_weight=weights)
    for criterion in ("aic", "bic"):
        found = getattr(fit, criterion)(X, sample_weight=weights)
        assert found == pytest.approx(getattr(mixture({}, 3).fit(copies), criterion)(copies), rel=1e-8)


@pytest.mark.slow
def test_missing_values_tails_and_batches():
    rows = overlapping(120)
    rows[::7, 0] = np.nan
    for options in ({}, {"tails": "student"}):
        fit = mixture(options).fit(rows)
        assert fit.aic([rows[:50], rows[50:]]) == pytest.approx(fit.aic(rows), rel=1e-9)
        n_free = 11 + len(options)
        assert fit.bic(rows) - fit.aic(rows) == pytest.approx(n_free * (np.log(120) - 2.0))


def test_noise_has_no_maximum():
    fit = mixture({"noise": True}).fit(overlapping(80))
    with pytest.raises(ValueError, match=r"with noise there is none\. Compare log_evidence_"):
        fit.bic(overlapping(80))


def test_rows_of_another_fit_are_refused():
    weights = np.arange(len(X)) % 3
    fit = mixture({}, 3).fit(X, sample_weight=weights)
    for given in ({"X": X}, {"X": X[:100], "sample_weight": weights[:100]}):
        for criterion in (fit.aic, fit.bic):
            with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
                criterion(**given)


def test_a_likelihood_without_maximum_is_refused_in_terms_of_the_fit():
    rows = np.r_[overlapping(60), [[50.0, 50.0]]]  # A cluster of one row.
    fit = mixture({}, reg_covar=0.0, init_params=np.eye(2)[[0] * 60 + [1]]).fit(rows)
    with pytest.raises(ValueError, match=r"too few rows\. \(a\) Lower n_components\. \(b\) Compare log_"):
        fit.bic(rows)


def test_criteria_do_not_repeat_the_warning_of_the_fit():
    values = np.random.default_rng(0).normal(size=200)
    rows = np.c_[values, values > 0.5]
    with pytest.warns(UserWarning, match="Components have shrunk onto single values"):
        fit = mixture({}, reg_covar=1e-6).fit(rows)
    assert np.isfinite(fit.bic(rows))
