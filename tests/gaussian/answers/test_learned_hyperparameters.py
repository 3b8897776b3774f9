"""b0 and C0, where they are learned, are parameters with error bars of their own."""

import numpy as np
import pytest

from sklearn_lrvb import LRVBGaussianMixture
from tests.covariance_types import TYPES

TARGETS = "mean_precision_prior", "covariance_prior"
GENERATOR = np.random.default_rng(0)
X = np.concatenate(
    [
        GENERATOR.normal(size=(40, 2)),
        GENERATOR.normal(size=(30, 2)) * [1.0, 2.0] + [5.0, 1.0],
        GENERATOR.normal(size=(25, 2)) + [0.0, 6.0],
    ]
)


def fitted(covariance_type, **arguments):
    """A fit to the last digit."""
    options = {"weight_concentration_prior_type": "dirichlet_distribution", "tol": 1e-13} | arguments
    model = LRVBGaussianMixture(n_components=3, covariance_type=covariance_type, random_state=0, **options)
    return model.fit(X)


def values(model, target):
    return np.asarray(getattr(model, f"{target}_"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("covariance_type", TYPES)
def test_their_sensitivity_to_the_degrees_of_freedom_is_that_of_refits(covariance_type, target):
    model, step = fitted(covariance_type), 1e-3
    nu = float(np.min(model.degrees_of_freedom_prior_))
    above, below = (
        values(fitted(covariance_type, degrees_of_freedom_prior=nu + move), target) for move in (step, -step)
    )
    sensitivity = model.prior_sensitivity(target=target)["degrees_of_freedom_prior"]
    np.testing.assert_allclose(sensitivity, (above - below) / (2 * step), rtol=1e-5, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("covariance_type", TYPES)
def test_their_error_bars_are_those_of_the_exact_posterior(covariance_type, target):
    model = fitted(covariance_type)
    table = model.posterior(X, method="lrvb").summary(target)
    exact = model.posterior(X, method="exact", n_draws=4000, random_state=0).summary(target)
    np.testing.assert_allclose(table["sd"], exact["sd"], rtol=0.1)
    np.testing.assert_allclose(table["mean"], exact["mean"], atol=0.15 * exact["sd"].max())


@pytest.mark.parametrize("target", TARGETS)
def test_the_bootstrap_of_their_estimates_is_near_the_sandwich(target):
    model, groups = fitted("diag"), np.arange(len(X))
    sandwich = model.posterior(X, groups=groups).summary(target)
    asked = {"method": "bootstrap", "n_draws": 60, "random_state": 0}
    bootstrap = model.posterior(X, groups=groups, **asked).summary(target)
    np.testing.assert_allclose(bootstrap["sd"], sandwich["sd"], rtol=0.3)


def test_numbers_that_are_given_have_no_error_bars():
    model = fitted("full", mean_precision_prior=1.0)
    assert model.posterior().summary("covariance_prior").shape[0] == 3
    with pytest.raises(ValueError, match="mean_precision_prior=None"):
        model.posterior().summary("mean_precision_prior")
