"""Every model of the catalogue against coordinate ascent and refits that are written from the model alone."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import (
    MODELS,
    WITH_LEARNED_PRIOR,
    expected_covariance,
    log_share_map,
    mixture,
    model_id,
    models_in_turn,
    overlapping,
    unique,
)
from robust_reference import RobustReference

X = overlapping(80)
THETA = ("log_weights", "means", "precisions")
FITTED = {"student": "shared", "student_by_component": "each"}


def reference(model, estimator):
    """The same model by refits, and its fit."""
    options = {"covariance": expected_covariance(estimator)}
    if "noise" in model:
        alpha = estimator.weight_concentration_prior_
        options |= {"noise": estimator.noise_log_density_, "noise_prior": (alpha, 2 * alpha)}
    if "tails" in model:
        nu = np.broadcast_to(estimator.tails_, 2)
        options |= {"nu": nu, "fit_nu": FITTED.get(model["tails"])}
    found = RobustReference.like(estimator, X, **options)
    return found, found.fit(estimator.predict_proba(X))


@pytest.mark.parametrize("model", MODELS, ids=model_id)
def test_the_lower_bound_has_every_constant(model):
    estimator = mixture(model).fit(X)
    refits, fit = reference(model, estimator)
    np.testing.assert_allclose(estimator.lower_bound_, refits.lower_bound(fit.factors), atol=1e-9)
    np.testing.assert_allclose(
        estimator.mean_precision_prior_, fit.factors.mean_precision_prior, rtol=1e-8, atol=1e-12
    )
    np.testing.assert_allclose(
        estimator.covariance_prior_, fit.factors.covariance_prior, rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize("model", WITH_LEARNED_PRIOR, ids=model_id)
def test_means_and_covariance_under_a_learned_prior(model):
    estimator = mixture(model).fit(X)
    refits, fit = reference(model, estimator)
    sd, (shift, jacobian) = estimator.posterior_std_, log_share_map(estimator)
    distance = np.abs(refits.means(fit.factors) - shift - estimator.posterior_mean_) / sd
    assert distance.max() < 1e-8
    covariance = jacobian @ refits.covariance(fit) @ jacobian.T
    assert (np.abs(covariance - estimator.posterior_covariance_) / np.outer(sd, sd)).max() < 1e-7


@pytest.mark.parametrize("row", [3, 70])
@pytest.mark.parametrize("model", WITH_LEARNED_PRIOR, ids=model_id)
def test_influence_of_rows_under_a_learned_prior(model, row):
    estimator = mixture(model).fit(X)
    refits, fit = reference(model, estimator)
    sd, (_, jacobian) = estimator.posterior_std_[:, None], log_share_map(estimator)
    for perturb, of_refits in (("weight", refits.weight_influence), ("location", refits.place_influence)):
        expected = jacobian @ of_refits(fit, row).reshape(len(sd), -1)
        found = np.concatenate([influence(model, estimator, row, target, perturb) for target in THETA])
        assert (np.abs(found - expected) / sd).max() < 1e-7


def influence(model, estimator, row, target, perturb):
    """Of a row on a target, (d, 1) or (d, P)."""
    values = estimator.influence(X[[row]], target=target, perturb=perturb)[0]
    values = np.moveaxis(values, -1, 0) if perturb == "location" else values[None]
    flat = [unique(model, one) if target == "precisions" else np.ravel(one) for one in values]
    return np.stack(flat, axis=1)


@pytest.mark.parametrize("model", WITH_LEARNED_PRIOR, ids=model_id)
def test_scores_without_a_row_under_a_learned_prior(model):
    estimator = mixture(model).fit(X)
    refits, fit = reference(model, estimator)
    rows = np.array([3, 40, 70])
    expected = np.array([refits.left_out_scores(fit, [row])[0] for row in rows])
    found, change = estimator.loo_score_samples(X)[rows], expected - estimator.score_samples(X)[rows]
    np.testing.assert_array_less(np.abs(found - expected), 1e-3 + 0.02 * np.abs(change))


@pytest.mark.parametrize("model", WITH_LEARNED_PRIOR, ids=model_id)
def test_scores_without_a_group_under_a_learned_prior(model):
    estimator = mixture(model).fit(X)
    refits, fit = reference(model, estimator)
    groups = np.arange(80) % 16
    found, change = estimator.loo_score_samples(X, groups=groups), estimator.score_samples(X)
    for group in (0, 7):
        rows = np.flatnonzero(groups == group)
        expected = refits.left_out_scores(fit, rows)
        np.testing.assert_allclose(found[rows], expected, atol=0.05 * np.abs(change[rows] - expected).max())


# A direction in which the expectation of C0 changes, and one of the prior's mean.
OF_COVARIANCE, OF_MEAN = np.array([[0.5, 0.2], [0.2, 0.3]]), np.array([1.0, -2.0])


def with_other_prior(refits, name, step):
    """The model with a hyperparameter, or the expectation of a learned one, changed by a step."""
    learned, nu0 = refits.hyperprior, refits.freedom
    if name == "mean_prior":
        return replace(refits, mean_prior=refits.mean_prior + step * OF_MEAN)
    if name == "mean_precision_prior":
        rate = learned.shape / (learned.shape / learned.rate + step)
        return replace(refits, hyperprior=replace(learned, rate=rate))
    inverse, changed = refits.covariance_type.inverse, {}
    expected = learned.freedom * inverse(learned.inverse_scale)  # nu0 S
    if name == "degrees_of_freedom_prior":
        expected, changed = expected * (nu0 + step) / nu0, {"freedom": nu0 + step}
    else:
        expected = expected + step * refits.covariance_type.prior(OF_COVARIANCE)
    changed["hyperprior"] = replace(learned, inverse_scale=learned.freedom * inverse(expected))
    return replace(refits, **changed)


NAMES = ("mean_precision_prior", "covariance_prior", "degrees_of_freedom_prior", "mean_prior")


@pytest.mark.all_cases
@models_in_turn(WITH_LEARNED_PRIOR, "name", NAMES)
def test_sensitivity_to_what_a_learned_prior_expects(model, name):
    estimator = mixture(model).fit(X)
    refits, fit = reference(model, estimator)
    _, jacobian = log_share_map(estimator)

    def means_after(step):
        return refits.means(with_other_prior(refits, name, step).refit(fit).factors)

    expected = jacobian @ refits.derivative(means_after, 1e-3)
    direction = {"covariance_prior": refits.covariance_type.prior(OF_COVARIANCE), "mean_prior": OF_MEAN}
    change, found = direction.get(name, np.array(1.0)), []
    for target in THETA:
        gradient = estimator.prior_sensitivity(target)[name]
        along = (gradient * change).sum(axis=tuple(range(gradient.ndim - change.ndim, gradient.ndim)))
        found.append(unique(model, along) if target == "precisions" else np.ravel(along))
    error = np.abs(np.concatenate(found) - expected) / estimator.posterior_std_
    assert error.max() < 1e-7
