"""A prior that is learned: what it shares with given hyperparameters, rows that count twice, other units."""

import numpy as np
import pytest
from catalogue import (
    WITH_LEARNED_PRIOR,
    mixture,
    model_id,
    overlapping,
    three_blobs,
    type_of,
    unique,
)

every_model = pytest.mark.parametrize("model", WITH_LEARNED_PRIOR, ids=model_id)
X = overlapping(100)
THETA = ("log_weights", "means", "precisions")
GIVEN = ("mean_precision_prior", "covariance_prior", "degrees_of_freedom_prior", "mean_prior")


def with_given(model, estimator, names, **parameters):
    """A fit that gets some hyperparameters of another fit, from where that one ended."""
    given = {name: getattr(estimator, f"{name}_") for name in names}
    start = estimator.predict_proba(X)
    return mixture({**model, **parameters}, init_params=start, **given).fit(X)


def distance(one, other):
    """Largest difference of posterior means in posterior standard deviations."""
    return np.abs((one.posterior_mean_ - other.posterior_mean_) / other.posterior_std_).max()


# Hyperparameters that are given.


@every_model
def test_the_fit_is_that_under_the_hyperparameters_that_it_learns(model):
    learned = mixture(model).fit(X)
    assert distance(with_given(model, learned, GIVEN, prior="fixed"), learned) < 3e-8  # Fits end within 1e-8.
    for names in (GIVEN[:1], GIVEN[1:3], GIVEN[2:3], GIVEN[3:]):
        other = with_given(model, learned, names)
        assert distance(other, learned) < 3e-8
        np.testing.assert_allclose(other.mean_precision_prior_, learned.mean_precision_prior_, rtol=3e-8)
        np.testing.assert_allclose(other.covariance_prior_, learned.covariance_prior_, rtol=1e-7, atol=1e-8)


@every_model
@pytest.mark.parametrize("name", GIVEN)
def test_a_given_hyperparameter_is_held_and_the_others_are_learned(model, name):
    learned = mixture(model).fit(X)
    value = 1.5 * np.asarray(getattr(learned, f"{name}_"))
    other = mixture(model, **{name: value}).fit(X)
    np.testing.assert_allclose(getattr(other, f"{name}_"), value, rtol=1e-14)
    for learns in {"mean_precision_prior", "covariance_prior"} - {name}:
        assert np.abs(getattr(other, f"{learns}_") / getattr(learned, f"{learns}_") - 1.0).max() > 1e-5


def sensitivities(model, estimator):
    """Derivatives of theta in b0 and the entries of C0, for a fit to which they are given: (D, number)."""
    columns = []
    for target in THETA:
        found = estimator.prior_sensitivity(target)
        by_b0, by_C0 = found["mean_precision_prior"], found["covariance_prior"]
        if type_of(model).is_matrix:  # An entry beside the diagonal stands there twice.
            rows, places = np.triu_indices(2)
            by_C0 = by_C0[..., rows, places] * np.where(rows == places, 1.0, 2.0)
        by_number = np.concatenate(
            [by_b0[..., None], by_C0.reshape(*by_b0.shape, -1)], axis=-1
        )  # (*target, number)
        if target == "precisions":
            by_number = np.stack([unique(model, one) for one in np.moveaxis(by_number, -1, 0)], axis=-1)
        columns.append(by_number.reshape(-1, by_number.shape[-1]))
    return np.concatenate(columns)


@every_model
def test_variances_are_those_for_given_hyperparameters_and_by_what_these_are_uncertain(model):
    learned = mixture(model).fit(X)
    fixed = with_given(model, learned, GIVEN, prior="fixed")
    of_hyperparameters = learned.posterior(method="lrvb").covariance(GIVEN[:2])
    by_number = sensitivities(model, fixed)
    expected = fixed.posterior_covariance_ + by_number @ of_hyperparameters @ by_number.T
    sd = learned.posterior_std_
    error = np.abs(learned.posterior_covariance_ - expected) / np.outer(sd, sd)
    assert error.max() < 1e-8


# Rows that count several times, and other units.


@every_model
def test_weights_of_rows_are_copies(model):
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    copies, start = np.repeat(np.arange(len(X)), weights), mixture(model).fit(X).predict_proba(X)
    weighted = mixture(model, init_params=start).fit(X, sample_weight=weights)
    copied = mixture(model, init_params=start[copies]).fit(X[copies])
    assert distance(weighted, copied) < 1e-8
    np.testing.assert_allclose(
        weighted.posterior_covariance_, copied.posterior_covariance_, rtol=1e-7, atol=1e-9
    )
    np.testing.assert_allclose(weighted.lower_bound_, copied.lower_bound_, rtol=1e-12)


SPREAD_OF_UNITS = (1e-6, 1.0, 1e6)


@every_model
@pytest.mark.parametrize("has_ties", [False, True])
def test_units_origins_and_order_of_columns_do_not_matter(model, has_ties):
    rows, order = three_blobs(90), [2, 0, 1]
    if has_ties:
        rows[:, 0] = rows[:, 0].round(1)
    units = np.array(SPREAD_OF_UNITS if type_of(model).n_axes else 3 * SPREAD_OF_UNITS[:1])
    # Known noise that a user asks for has the units of the columns.
    model = {**model, "reg_covar": 0.0}
    one = mixture(model).fit(rows)
    start = one.predict_proba(rows)
    other = mixture(model, init_params=start).fit((rows * units + 5.0 * units)[:, order])
    np.testing.assert_allclose(other.mean_precision_prior_, one.mean_precision_prior_, rtol=1e-8)
    found = (other.means_ / units[order] - 5.0)[:, np.argsort(order)]
    np.testing.assert_allclose(found, one.means_, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(other.weights_, one.weights_, rtol=1e-8)
    found = other.means_std_[:, np.argsort(order)] / units
    np.testing.assert_allclose(found, one.means_std_, rtol=1e-7)
    volume = len(rows) * np.log(units).sum()
    np.testing.assert_allclose(other.lower_bound_ + volume, one.lower_bound_, rtol=1e-9)
