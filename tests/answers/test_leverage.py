"""Leverage, and the spread of scores and responsibilities, against refits, definitions and each other."""

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    INFORMATION,
    MODELS,
    assert_equal_to_rounding,
    few_of,
    fitted,
    information_of,
    mixture,
    model_id,
    models_in_turn,
    overlapping,
    posterior_of,
    rows_of,
    set_sizes,
    solvers_of,
    three_blobs,
    uncertainty_of,
    use_information,
    with_fixed_prior,
)
from covariance_types import TYPES
from scipy.special import digamma

from sklearn_lrvb.answers.responses import RowResponses
from sklearn_lrvb.gaussian.answers.influence import ResponsesOfNormalRows
from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates
from sklearn_lrvb.mixture.e_step import expect
from sklearn_lrvb.rows import RowBlock

catalogue = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
X = overlapping()


def dense_features(posterior, whitened_rows):
    """H of every row by the definition of the features: (D, L, n)."""
    structure, whitened = posterior.structure, whitened_rows.values
    n_components, _, n_rows = whitened.shape
    features = np.zeros((structure.layout.n_coefficients, structure.n_labels, n_rows))
    features[n_components : structure.n_labels, n_components:] = 1.0  # the only feature of noise
    for k, rows in enumerate(whitened):
        for n, y in enumerate(rows.T):
            statistic = structure.statistic_by_row(y[:, None])[0]
            quadratic = statistic - posterior.second_moment_origin[structure.layout.group_of(k)]
            own = 1.0, y, structure.features.from_sums(quadratic[None])[0]
            if whitened_rows.scales is not None:
                u = whitened_rows.scales.mean[k, n]
                spread = u * (statistic + posterior.known_noise[structure.layout.group_of(k)])
                quadratic = spread - structure.identity_statistic
                own = 1.0, u * y, structure.features.from_sums(quadratic[None])[0]
                features[structure.layout.blocks["scale"], k, n] = u * np.eye(n_components)[k]
            for place, part in zip(structure.layout.slices_of(k), own, strict=True):
                features[place, k, n] = part
        if structure.n_tails:
            nu = posterior.tails.nu[k]
            shape = 0.5 * (nu + structure.n_features)
            log_u = digamma(shape) - np.log(shape / whitened_rows.scales.mean[k])
            own = 0.5 * nu * (np.log(0.5 * nu) + 1 - digamma(0.5 * nu) + log_u - whitened_rows.scales.mean[k])
            tail = structure.layout.blocks["tail"].start + k * (structure.n_tails > 1)
            features[tail, k] = own
    return features


def dense_covariances(estimator, rows):
    """r, H and M^-1 at some rows."""
    uncertainty = uncertainty_of(estimator)
    posterior = uncertainty.targets.posterior
    block = RowBlock((rows - uncertainty.targets.origin).T.copy())
    expectation = expect(OwnCoordinates(posterior), block)
    features = dense_features(posterior, expectation.represented)
    return (
        expectation,
        features,
        uncertainty.source.information(1, "primal", rows_of(estimator, X)).covariance(),
    )


@models_in_turn(few_of(MODELS), "name", ("first", "ambiguous", "last"))
def test_leverage_is_the_derivative_of_a_rows_score_in_its_weight(model, name):
    model = with_fixed_prior(model)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=len(X))
    estimator = mixture(model).fit(X, sample_weight=weights)
    r = estimator.predict_proba(X)
    refitted = mixture({**model, "init_params": r})  # to the same optimum, in few steps
    row = {"first": 0, "ambiguous": int(np.argmin(r.max(axis=1))), "last": 230}[name]
    step, scores = 1e-3, []
    for sign in (1, -1):
        changed = weights.copy()
        changed[row] += sign * step
        scores.append(refitted.fit(X, sample_weight=changed).score_samples(X[[row]])[0])
    leverage = estimator.leverage(X[[row]])
    np.testing.assert_allclose(leverage, [(scores[0] - scores[1]) / (2 * step)], rtol=1e-5)


@pytest.mark.parametrize("model", MODELS[::5], ids=model_id)
def test_spread_of_responsibilities_is_what_the_delta_method_says(model):
    estimator = fitted(model)
    for row in X[[3, 100, 200]]:
        expectation, features, inverse = dense_covariances(estimator, row[None])
        r, own = expectation.responsibilities[:, 0], features[:, :, 0]
        jacobian = np.diag(r) - np.outer(r, r)
        expected = np.sqrt(np.diag(jacobian @ own.T @ inverse @ own @ jacobian))
        np.testing.assert_allclose(
            estimator.posterior(method="lrvb").predict_proba([row])[1][0], expected, rtol=1e-7
        )


@models_in_turn(few_of(MODELS), "solver", INFORMATION)
def test_all_ways_give_what_the_definition_says(model, solver, monkeypatch):
    solver = solver if solver in solvers_of(model) else "primal"
    use_information(solver, monkeypatch)
    set_sizes(monkeypatch, pickled_bytes=0)
    estimator = mixture(model).fit(X)
    rows = np.concatenate([X[::30], [[9.0, -4.0], [1.3, 0.6]]])
    expectation, features, inverse = dense_covariances(fitted(model), rows)
    r = expectation.responsibilities
    covariances = np.einsum("dkn,de,eln->kln", features, inverse, features)
    leverage = np.einsum("kn,kln,ln->n", r, covariances, r)
    np.testing.assert_allclose(estimator.leverage(rows), leverage, rtol=1e-7)
    information, posterior = information_of(estimator), posterior_of(estimator)
    q = np.random.default_rng(0).normal(size=r.shape)
    moved = np.einsum("de,ekn,kn->dn", inverse, features, q)
    columns = np.arange(1, len(rows))
    for n_rows in (1, 10_000) if solver == "primal" else (1,):
        responses = ResponsesOfNormalRows(information, posterior, n_rows)
        used = np.ones(r.shape, dtype=bool)
        own = RowResponses(responses, expectation.represented, used)
        for found in (own.covariances(), responses.covariances(expectation.represented, used)):
            np.testing.assert_allclose(found, covariances, rtol=1e-7, atol=1e-10)
        scale = np.abs(moved).max()
        counts = own.counts(q[:, columns], columns)
        intercepts = (posterior.intercept_root @ posterior.intercept_root.T) @ counts
        expected = posterior.own_intercepts(moved[posterior.weight_coordinates][:, columns].T).T
        np.testing.assert_allclose(intercepts, expected, atol=1e-8 * scale)
        for l in range(2):
            _, linear, quadratic = (
                moved[place][:, columns] for place in posterior.structure.layout.slices_of(l)
            )
            structure = posterior.structure
            coordinates = structure.layout.places_of_components[l][1:]
            changes = own.statistics(coordinates, q[:, columns], columns)
            first, second = (
                changes[: structure.n_features],
                changes[structure.n_features :][: structure.n_quadratic],
            )
            of_scales = (
                changes[structure.n_features + structure.n_quadratic] if structure.has_scales else None
            )
            slot = posterior.structure.layout.group_of(l)
            variance = posterior.structure.power / posterior.effective_degrees_of_freedom[slot]
            np.testing.assert_allclose(first / posterior.mean_precision[l], linear, atol=1e-8 * scale)
            np.testing.assert_allclose(second * variance, quadratic, atol=1e-8 * scale)
            if of_scales is not None:
                expected = moved[posterior.structure.layout.blocks["scale"]][l, columns]
                expected = 2 * posterior.mean_precision[l] ** 2 / 2 * expected
                np.testing.assert_allclose(of_scales, expected, atol=1e-8 * np.abs(expected).max())


@catalogue
def test_a_scores_spread_is_the_root_of_its_leverage(model):
    estimator = fitted(model)
    scores, deviations = estimator.posterior(method="lrvb").score_samples(X)
    np.testing.assert_array_equal(scores, estimator.score_samples(X))
    np.testing.assert_allclose(deviations**2, estimator.leverage(X), rtol=1e-12)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_spreads_are_those_of_the_density_under_the_posterior_of_the_parameters(covariance_type):
    # the delta method from the covariance of theta, by numerical gradients; equal but for terms of order 1/N
    rows = overlapping(20_000)
    estimator = mixture({"covariance_type": covariance_type, "prior": "flat"}).fit(rows)
    mean, covariance = estimator.posterior_mean_, estimator.posterior_covariance_
    here = X[:40:4]

    def predicted(theta):
        log_weights, means = theta[:2], theta[2:6].reshape(2, 2)
        precisions = uncertainty_of(estimator).targets["precisions"].shaped(theta[6:])
        dense = TYPES[covariance_type].dense(precisions, 2, 2)
        offsets = here[:, None] - means
        squares = np.einsum("nkp,kpq,nkq->nk", offsets, dense, offsets)
        densities = log_weights + 0.5 * np.linalg.slogdet(dense)[1] - 0.5 * squares
        scores = np.logaddexp.reduce(densities, axis=1)
        return np.concatenate([scores, np.exp(densities - scores[:, None]).ravel()])

    steps = 1e-3 * np.sqrt(np.diag(covariance))
    jacobian = np.stack(
        [(predicted(mean + e) - predicted(mean - e)) / (2 * e.sum()) for e in np.diag(steps)], axis=1
    )
    expected = np.sqrt(np.einsum("gd,de,ge->g", jacobian, covariance, jacobian))
    found = np.concatenate(
        [
            estimator.posterior(method="lrvb").score_samples(here)[1],
            estimator.posterior(method="lrvb").predict_proba(here)[1].ravel(),
        ]
    )
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-8)


@catalogue
def test_spreads_of_probabilities_go_with_probabilities(model):
    estimator = fitted(model)
    far = np.concatenate([X, X * [40.0, 30.0]])
    probabilities, deviations = estimator.posterior(method="lrvb").predict_proba(far)
    np.testing.assert_array_equal(probabilities, estimator.predict_proba(far))
    assert deviations.shape == probabilities.shape
    assert np.all(deviations >= 0) and np.all(np.isfinite(deviations))
    # probabilities sum to one, so that two vary together
    if not estimator.noise:
        np.testing.assert_allclose(deviations[:, 0], deviations[:, 1], rtol=1e-6, atol=1e-14)
    assert np.all(deviations <= (deviations.sum(axis=1, keepdims=True) - deviations) * (1 + 1e-6) + 1e-14)


def test_one_component_knows_its_rows():
    estimator = mixture(MODELS[0], n_components=1).fit(X)
    probabilities, deviations = estimator.posterior(method="lrvb").predict_proba(X)
    np.testing.assert_array_equal(probabilities, 1.0)
    np.testing.assert_allclose(deviations, 0.0, atol=1e-12)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_leverage_is_equivariant(covariance_type):
    model = {"covariance_type": covariance_type, "prior": "flat", "reg_covar": 0.0}
    plain = mixture(model).fit(X).leverage(X)
    np.testing.assert_allclose(mixture(model).fit(1e3 * X - 5e6).leverage(1e3 * X - 5e6), plain, rtol=1e-6)


def test_leverages_of_a_linear_model_sum_to_its_parameters():
    # of one component with a flat prior: P of the mean; P(P+1)/2 times the kurtosis' share of the precision
    rows = np.random.default_rng(0).normal(size=(40_000, 3))
    estimator = mixture({"prior": "flat", "reg_covar": 0.0}, n_components=1).fit(rows)
    assert abs(estimator.leverage(rows).sum() - 9) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("solver", INFORMATION)
def test_results_depend_on_neither_blocks_nor_threads(solver, monkeypatch):
    use_information(solver, monkeypatch)
    model = {"covariance_type": "full", "prior": "learned"}
    estimator = mixture(model, n_components=2).fit(three_blobs(150))
    rows = three_blobs()[::15]
    leverage, spread = (
        estimator.leverage(rows),
        estimator.posterior(method="lrvb").predict_proba(rows)[1],
    )
    set_sizes(monkeypatch, most_rows=17)
    for n_jobs in (1, 2):
        estimator.set_params(n_jobs=n_jobs)
        assert_equal_to_rounding(estimator.leverage(rows), leverage)
        assert_equal_to_rounding(estimator.posterior(method="lrvb").predict_proba(rows)[1], spread)
