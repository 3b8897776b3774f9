"""Learned numbers of the prior: against fits with given numbers, refits, quadrature, and a sampler's own."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from latent_class import gibbs
from latent_class.catalogue import (
    PROBLEMS,
    assert_same_fit,
    fitted,
    kinds_of,
    refitted,
    refitted_given,
    tables_of,
)
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

from sklearn_lrvb import LRVBLatentClassMixture

TARGETS = ("weights", "tables")
CATEGORIES, RATES = "category_concentration_prior", "rate_shape_prior"


def learned(name):
    """A problem of the catalogue whose prior is learned, and its fit."""
    problem = replace(PROBLEMS[name], prior="learned")
    return problem, refitted(problem, tol=1e-14)


def log_density(values):
    """The prior density of log u, u being gamma with shape and rate one."""
    return np.sum(np.log(values) - values)


def estimates(fit):
    """Posterior means and standard deviations of weights and tables, (d,) each."""
    summary = fit.posterior(method="lrvb").summary(list(TARGETS))
    return summary["mean"].to_numpy(), summary["sd"].to_numpy()


# The fit.


@pytest.mark.parametrize("name", ["learned", "learned, one class", "learned, surplus"])
def test_the_fit_is_that_of_the_most_probable_numbers(name):
    problem, fit = PROBLEMS[name], fitted(name)
    values, h = fit.learned_prior_["value"].to_numpy(), 1e-3
    given = refitted_given(fit, problem, values)
    assert_same_fit(given, fit, bound=False)
    np.testing.assert_allclose(fit.lower_bound_, given.lower_bound_ + log_density(values), rtol=1e-12)
    for number in range(len(values)):
        bounds = []
        for sign in (1, -1):
            moved = values * np.exp(sign * h * (np.arange(len(values)) == number))
            bounds.append(refitted_given(fit, problem, moved).lower_bound_ + log_density(moved))
        assert abs(bounds[0] - bounds[1]) / (2 * h) < 1e-6
        assert max(bounds) < fit.lower_bound_


def test_a_number_that_is_given_is_not_learned():
    problem = PROBLEMS["learned"]
    assert fitted("learned").learned_prior_.index.tolist() == [CATEGORIES, RATES]
    assert refitted(problem, **{CATEGORIES: 2.0}).learned_prior_.index.tolist() == [RATES]
    both = {CATEGORIES: 1.0, RATES: 1.0}
    assert_same_fit(refitted(problem, **both), fitted("weights"), 1e-12)
    assert fitted("weights").learned_prior_.empty


def test_the_prior_of_numeric_columns_is_not_learned():
    _, fit = learned("numbers")
    assert fit.learned_prior_.empty
    assert_same_fit(fit, fitted("numbers"), 1e-12)


def test_columns_of_one_category_do_not_matter():
    problem = PROBLEMS["learned"]
    constant = pd.Series("a", problem.X.index).where(problem.X.notna().any(axis=1))
    columns = {**problem.columns, "same": "categorical"}
    same = replace(problem, X=problem.X.assign(same=constant), columns=columns)
    with pytest.warns(UserWarning, match="same"):
        fit = refitted(same)
    np.testing.assert_allclose(fit.weights_, fitted("learned").weights_, rtol=1e-8)
    np.testing.assert_allclose(fit.weights_std_, fitted("learned").weights_std_, rtol=1e-7)
    np.testing.assert_allclose(fit.learned_prior_, fitted("learned").learned_prior_, rtol=1e-7)


@pytest.mark.parametrize("seed", [2, 3])
def test_columns_that_say_nothing_do_not_hide_the_classes(seed):
    rng = np.random.default_rng(seed)
    classes, n_columns = rng.integers(3, size=200), 200
    shares = rng.beta(2.0, 2.0, size=n_columns)
    probabilities = np.tile(shares, (3, 1))
    probabilities[:, :20] = rng.beta(0.5, 0.5, size=(3, 20))
    X = pd.DataFrame(rng.random((200, n_columns)) < probabilities[classes]).add_prefix("q")
    found = {}
    for prior in ("learned", "fixed"):
        fit = LRVBLatentClassMixture(3, prior=prior, moves="search", random_state=0).fit(X)
        found[prior] = adjusted_rand_score(classes, fit.labels_)
    assert found["learned"] > 0.8 > found["fixed"]


# Error bars and the prior of the learned numbers.


@pytest.mark.parametrize("name", ["categories", "counts", "durations", "mixed"])
def test_error_bars_obey_the_law_of_total_variance(name):
    problem, fit = learned(name)
    numbers, h = fit.learned_prior_, 1e-3
    values, count = numbers["value"].to_numpy(), len(numbers)

    def given(change):
        moved = values * np.exp(change)
        return refitted_given(fit, problem, moved), log_density(moved)

    fits = {sign: [given(sign * h * unit) for unit in np.eye(count)] for sign in (1, -1)}
    held, _ = given(np.zeros(count))
    slopes = [
        (estimates(up)[0] - estimates(down)[0]) / (2 * h)
        for (up, _), (down, _) in zip(fits[1], fits[-1], strict=True)
    ]
    # The curvature of the bound along the optima of given numbers is the inverse of their covariance.
    curvature = np.empty((count, count))
    for i, j in np.ndindex(count, count):
        corners = [
            given(h * (a * np.eye(count)[i] + b * np.eye(count)[j]))
            for a, b in [(1, 1), (1, -1), (-1, 1), (-1, -1)]
        ]
        bounds = [corner.lower_bound_ + density for corner, density in corners]
        curvature[i, j] = -(bounds[0] - bounds[1] - bounds[2] + bounds[3]) / (4 * h**2)
    covariance = np.linalg.inv(curvature)
    np.testing.assert_allclose(numbers["sd"], values * np.sqrt(np.diag(covariance)), rtol=1e-4)
    expected = estimates(held)[1] ** 2 + np.einsum("in,ij,jn->n", slopes, covariance, slopes)
    np.testing.assert_allclose(estimates(fit)[1] ** 2, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["categories", "counts", "mixed"])
def test_prior_sensitivity_is_the_slope_of_refits(name, monkeypatch):
    problem, fit = learned(name)
    place, h = "sklearn_lrvb.estimators.latent_class_arguments._DEFAULTS", 1e-4
    defaults = {CATEGORIES: 1.0, RATES: 1.0, "mean_precision_prior": 0.1, "degrees_of_freedom_prior": 2.0}
    defaults["variance_prior"] = 1.0
    moves = {target: fit.prior_sensitivity(target) for target in TARGETS}
    for number in moves["weights"].keys() & defaults:
        ends = []
        for change in (h, -h):
            monkeypatch.setattr(place, {**defaults, number: defaults[number] + change})
            end = refitted(problem, init_params=fit.predict_proba(problem.X), tol=1e-14, moves=None)
            ends.append(estimates(end)[0])
        found = np.concatenate([moves[target][number].ravel() for target in TARGETS])
        deviations = estimates(fit)[1]
        difference = (ends[0] - ends[1]) / (2 * h)
        np.testing.assert_allclose(found / deviations, difference / deviations, rtol=0, atol=1e-6)


# The exact posterior.


@pytest.mark.parametrize(
    ("name", "most"), [("counts", 0.02), pytest.param("mixed", 0.03, marks=pytest.mark.slow)]
)
def test_exact_draws_are_those_of_gibbs_sampling(name, most):
    problem, fit = learned(name)
    kinds = {
        column: kind if isinstance(kind, str) else "categorical"
        for column, kind in kinds_of(problem.X).items()
    }
    draws = gibbs.sample(
        problem.X, kinds, (fit.weights_, tables_of(fit)), n_chains=100, n_draws=600, n_warmup=100, learns=True
    )
    exact = fit.posterior(problem.X, method="exact", n_draws=8000, random_state=0).summary(list(TARGETS))
    means, deviations = (
        np.concatenate([own["weights"], np.concatenate([own[name] for name in kinds], axis=1).ravel()])
        for own in (draws.mean(), draws.std())
    )
    errors = (exact["mean"].to_numpy() - means) / deviations
    assert np.sqrt(np.mean(np.square(errors))) < most
    np.testing.assert_allclose(exact["sd"], deviations, rtol=0.04)


@pytest.mark.parametrize("name", ["counts", "durations"])
def test_the_evidence_of_one_class_is_the_integral_over_the_numbers(name):
    problem = replace(PROBLEMS[name], n_components=1)
    fit = refitted(replace(problem, prior="learned"))
    logs = np.linspace(-6.0, 5.0, 150)
    # With given numbers the bound of one class is the evidence.
    bounds = [refitted(problem, **{RATES: value}).lower_bound_ for value in np.exp(logs)]
    densities = np.array(bounds) + logs - np.exp(logs)
    expected = logsumexp(densities) + np.log(logs[1] - logs[0])
    assert abs(fit.log_evidence_ - expected) < 0.1
    check = fit.posterior_check(problem.X, n_draws=4000, random_state=0)
    assert abs(check.log_evidence - expected) < 5.0 * check.log_evidence_error + 1e-3
