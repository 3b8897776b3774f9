"""The mixture from parts against densities, closed forms, refits, itself, and the estimator."""

import functools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from catalogue import (
    WITH_LEARNED_PRIOR,
    WITHOUT_NOISE,
    log_share_map,
    mixture,
    model_id,
    three_blobs,
)
from covariance_types import TYPES
from learned_prior import Hyperprior
from mixture_from_parts import MixtureFromParts, by_factor, fit_from_parts, mixture_model
from scipy import stats
from scipy.linalg import block_diag
from scipy.special import digamma, polygamma, softmax

from sklearn_lrvb.mean_field import MeanFieldModel, Term


def has_sticks(model):
    return model["weight_concentration_prior_type"] == "dirichlet_process"


NORMAL = WITHOUT_NOISE + WITH_LEARNED_PRIOR
INDEPENDENT = [model for model in NORMAL if model["factorization"] == "independent"]
every_model = pytest.mark.parametrize("model", INDEPENDENT, ids=model_id)
LEARNED = [model for model in INDEPENDENT if model["prior"] == "learned"]
# Together these have all terms of the other models with given hyperparameters except for the constants of a
# Dirichlet.
TWO_MODELS = [
    model
    for model in INDEPENDENT
    if model["reg_covar"] and (model["prior"] == "flat" or (model["prior"] == "fixed" and has_sticks(model)))
]
two_models = pytest.mark.parametrize("model", TWO_MODELS, ids=model_id)


def hyperparameters(model, n_components, n_features):
    """A stand-in for a fitted mixture, with the attributes that `mixture_from_parts` reads."""
    covariance_type = TYPES[model["covariance_type"]]
    scale = 0.3 + np.eye(n_features) * np.linspace(1.0, 2.0, n_features)

    def predict_proba(X):
        position = X.sum(axis=1)
        middle = 0.5 * (position.min() + position.max())
        return softmax(np.outer(position - middle, np.arange(n_components)), axis=1)

    return SimpleNamespace(
        **{"tails": "normal", **model},
        n_components=n_components,
        weight_concentration_prior_=0.8,
        mean_precision_prior_=0.6,
        mean_prior_=np.linspace(0.2, -0.5, n_features),
        degrees_of_freedom_prior_=n_features + 0.7,
        covariance_prior_=covariance_type.prior(scale),
        mean_precision_prior=None,
        covariance_prior=None,
        precisions_=np.broadcast_to(
            covariance_type.prior(np.eye(n_features)), covariance_type.shape(n_components, n_features)
        ),
        predict_proba=predict_proba,
    )


def clusters(n_features, shift=5.0):
    """Two clusters with some ambiguous rows between them, (34, n_features)."""
    X = np.random.default_rng(2).normal(size=(34, n_features))
    X[20:] = 0.8 * X[20:] + shift / np.sqrt(n_features)
    return X


@functools.cache
def _fitted(items):
    at = hyperparameters(dict(items), 2, 2)
    return at, fit_from_parts(at, clusters(2))


def fitted_to_clusters(model):
    """Stand-in and fit of two components to `clusters(2)`; shared between tests, so not to be changed."""
    return _fitted(tuple(model.items()))


def errors_in_deviations(found, expected):
    """Largest difference of covariances in units of standard deviations, one of which may be zero."""
    deviations = np.sqrt(np.abs(np.diag(expected))) + 1e-6
    return np.abs((found - expected) / np.outer(deviations, deviations)).max()


# The terms are the densities with all constants.


def log_wishart(covariance_type, values, degrees_of_freedom, inverse_scale):
    """log density of independent Wishart matrices, or of gamma variables of half the numbers, by scipy."""
    if covariance_type.is_matrix:
        values = np.moveaxis(values.reshape(-1, *inverse_scale.shape), 0, -1)
        return np.sum(stats.wishart.logpdf(values, degrees_of_freedom, np.linalg.inv(inverse_scale)))
    return stats.gamma(0.5 * degrees_of_freedom, scale=2.0 / inverse_scale).logpdf(values).sum()


def named(covariance_type, name, values):
    """Values by the names of the factors that they are the values of."""
    if covariance_type.is_matrix:
        return {f"{name}Lambda": values}
    return {f"{name}lambda{i}": one for i, one in enumerate(by_factor(covariance_type, values))}


@every_model
def test_log_joint_is_the_sum_of_the_densities(model):
    n_samples, n_components, n_features = 6, 3, 2
    covariance_type = TYPES[model["covariance_type"]]
    rng = np.random.default_rng(4)
    X, z = rng.normal(size=(n_samples, n_features)), rng.integers(n_components, size=n_samples)
    at = hyperparameters(model, n_components, n_features)
    nu0, b0, C0 = at.degrees_of_freedom_prior_, at.mean_precision_prior_, at.covariance_prior_
    mu = rng.normal(size=(n_components, n_features))
    shape = covariance_type.shape(n_components, n_features)
    values, prior, learned = rng.gamma(2.0, size=shape), 0.0, {}
    if covariance_type.is_matrix:
        n_precisions = 1 if covariance_type.is_shared else n_components
        values = stats.wishart(5, np.eye(n_features)).rvs(n_precisions, random_state=rng).reshape(shape)
    if model["prior"] == "learned":
        hyperprior = Hyperprior.of(at, X)
        b0, C0 = 0.7, 1.3 * C0
        prior += stats.gamma.logpdf(b0, hyperprior.shape, scale=1.0 / hyperprior.rate)
        prior += log_wishart(covariance_type, C0, hyperprior.freedom, hyperprior.inverse_scale)
        learned = {"b0": b0, **named(covariance_type, "C0_", C0)}
    prior += log_wishart(covariance_type, values, nu0, C0)
    precisions = covariance_type.dense(values, n_components, n_features)
    covariances = np.linalg.inv(precisions)
    prior += sum(
        stats.multivariate_normal.logpdf(mean, at.mean_prior_, covariance / b0)
        for mean, covariance in zip(mu, covariances, strict=True)
    )
    if has_sticks(model):
        weights = rng.beta(2.0, 1.0, size=n_components)
        log_weights = np.log(weights) + np.append(0.0, np.cumsum(np.log(1.0 - weights)))[:-1]
        prior += stats.beta(1.0, at.weight_concentration_prior_).logpdf(weights).sum()
    else:
        weights = rng.dirichlet(np.ones(n_components))
        log_weights = np.log(weights)
        concentration = np.full(n_components, at.weight_concentration_prior_)
        prior += stats.dirichlet(concentration).logpdf(weights)
    if model["prior"] == "flat":
        prior = -log_weights.sum()  # the Jacobian of log pi
    likelihood = sum(
        log_weights[k]
        + stats.multivariate_normal.logpdf(x, mu[k], covariances[k])
        - 0.5 * model["reg_covar"] * np.trace(precisions[k])
        for x, k in zip(X, z, strict=True)
    )
    log_joint = mixture_model(at, X).log_joint
    point = {"mu": mu, "weights": weights, "z": z, **named(covariance_type, "", values), **learned}
    found = log_joint.value(
        {name: factor.family.statistics_of(point[name]) for name, factor in log_joint.factors.items()}
    )
    assert found == pytest.approx(prior + likelihood, rel=1e-12)


# The fixed point and its response in closed form.


def weight_moments(model, at, counts):
    """E log pi and its covariance."""
    if not has_sticks(model):
        concentration = counts + (at.weight_concentration_prior_ if model["prior"] == "fixed" else 0.0)
        return (
            digamma(concentration) - digamma(concentration.sum()),
            np.diag(polygamma(1, concentration)) - polygamma(1, concentration.sum()),
        )
    later = np.cumsum(counts[::-1])[::-1] - counts
    sticks, rests = 1.0 + counts, at.weight_concentration_prior_ + later
    earlier = np.tri(len(counts), k=-1)
    shared = polygamma(1, sticks + rests)
    log_sticks, log_rests = (digamma(part) - digamma(sticks + rests) for part in (sticks, rests))
    stick_part = np.eye(len(counts))
    covariance = stick_part * polygamma(1, sticks) + earlier * polygamma(1, rests) @ earlier.T
    both = stick_part + earlier
    return log_sticks + earlier @ log_rests, covariance - both * shared @ both.T


def closed_form(model, at, X, responsibilities):
    """q given the responsibilities, those that follow from q, and the response if they are certain.

    Linear response gives a precision the variance of a Wishart of c degrees of freedom, not nu.
    """
    n_components, n_features = at.n_components, X.shape[1]
    flat = model["prior"] == "flat"
    b0, m0 = (0.0 if flat else at.mean_precision_prior_), at.mean_prior_
    counts = responsibilities.sum(axis=0)
    tau = counts + b0
    means = (responsibilities.T @ X + b0 * m0) / tau[:, None]
    offsets = X[:, None] - means
    scatter = np.einsum("nk,nkp,nkq->kpq", responsibilities, offsets, offsets)
    scatter += b0 * np.einsum("kp,kq->kpq", means - m0, means - m0)
    scatter += model["reg_covar"] * counts[:, None, None] * np.eye(n_features)
    covariance_type = TYPES[at.covariance_type]
    shape = covariance_type.shape(n_components, n_features)
    own_counts, own_scatter = covariance_type.blocks_of(counts, scatter)
    if flat:
        c, A = covariance_type.flat_freedom(n_components, n_features) + own_counts, own_scatter
    else:
        c = at.degrees_of_freedom_prior_ + own_counts
        A = own_scatter + np.broadcast_to(at.covariance_prior_, shape).reshape(own_scatter.shape)
    nu = c + covariance_type.freedom_of_means(n_components, n_features)
    blocks = c[:, None, None] * np.linalg.inv(A)
    half = 0.5 * (nu[:, None] - np.arange(blocks.shape[1]))
    log_determinants = digamma(half).sum(axis=1) + np.linalg.slogdet(2.0 * blocks / nu[:, None, None])[1]
    precisions = covariance_type.dense(blocks.reshape(shape), n_components, n_features)
    log_determinants = log_determinants.reshape(-1, covariance_type.n_blocks(n_features)).sum(axis=1)
    log_determinants = covariance_type.power(n_features) * log_determinants
    log_weights, weight_covariance = weight_moments(model, at, counts)
    distances = np.einsum("nkp,kpq,nkq->nk", offsets, precisions, offsets)
    spread = n_features / tau + model["reg_covar"] * np.einsum("kpp->k", precisions)
    scores = log_weights + 0.5 * (log_determinants - spread - distances)
    row, column = np.triu_indices(blocks.shape[1])
    variances = (
        blocks[:, row[:, None], row] * blocks[:, column[:, None], column]
        + blocks[:, row[:, None], column] * blocks[:, column[:, None], row]
    ) / c[:, None, None]
    return SimpleNamespace(
        responsibilities=softmax(scores, axis=1),
        degrees_of_freedom=nu,
        mean=np.concatenate([log_weights, means.ravel(), blocks[:, row, column].ravel()]),
        covariance=block_diag(weight_covariance, *np.linalg.inv(tau[:, None, None] * precisions), *variances),
    )


@two_models
def test_fixed_point_is_the_closed_form(model):
    at, fitted = fitted_to_clusters(model)
    posterior = fitted.posterior
    expected = closed_form(model, at, clusters(2), posterior.mean("z"))
    assert posterior.mean("z").min(axis=1).max() > 0.02  # Some rows are ambiguous.
    np.testing.assert_allclose(posterior.mean("z"), expected.responsibilities, atol=1e-9)
    np.testing.assert_allclose(fitted.mean, expected.mean, rtol=1e-8, atol=1e-9)
    # Precisions are in the order of the components.
    freedom = [
        2.0 * posterior.natural_parameters[name][..., -1] + factor.family.n_features + 1.0
        for name, factor in posterior.factors.items()
        if name.lower().startswith("lambda")
    ]
    np.testing.assert_allclose(np.stack(freedom, axis=-1).ravel(), expected.degrees_of_freedom, rtol=1e-8)


@two_models
def test_covariance_is_the_closed_form_where_assignments_are_certain(model):
    X = clusters(2, shift=60.0)
    at = hyperparameters(model, 2, 2)
    at.mean_precision_prior_ = 0.01  # A strong prior would widen components far from m0.
    fitted = fit_from_parts(at, X)
    expected = closed_form(model, at, X, fitted.posterior.mean("z"))
    np.testing.assert_allclose(fitted.mean, expected.mean, rtol=1e-9)
    assert errors_in_deviations(fitted.covariance, expected.covariance) < 1e-8


@pytest.mark.parametrize("model", TWO_MODELS + LEARNED, ids=model_id)
def test_covariance_is_how_a_refit_moves(model):
    # Adding t u . theta to log p moves E theta by t Cov(theta) u.
    at, fitted = fitted_to_clusters(model)
    covariance, step = fitted.covariance, 1e-4
    deviations = np.sqrt(np.diag(covariance))
    direction = np.random.default_rng(6).normal(size=len(covariance)) / deviations
    shapes = [fitted.posterior.mean(statistic).shape for statistic in fitted.statistics]
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    coefficients = np.split(fitted.jacobian.T @ direction, ends)
    base = mixture_model(at, clusters(2))

    def moved_mean(signed_step):
        tilt = [
            Term(signed_step * own.reshape(shape), statistic)
            for own, shape, statistic in zip(coefficients, shapes, fitted.statistics, strict=True)
        ]
        posterior = MeanFieldModel(base.factors, [*base.terms, *tilt]).fit(fitted.posterior, tol=1e-11)
        return MixtureFromParts(posterior, fitted.statistics, fitted.jacobian).mean

    found = (moved_mean(step) - moved_mean(-step)) / (2 * step)
    expected = covariance @ direction
    np.testing.assert_allclose(found / deviations, expected / deviations, rtol=1e-6, atol=1e-6)


# Where covariance types coincide.


def assert_same(first, second):
    assert first.lower_bound == pytest.approx(second.lower_bound, rel=1e-12)
    np.testing.assert_allclose(first.mean, second.mean, rtol=1e-8, atol=1e-9)
    assert errors_in_deviations(first.covariance, second.covariance) < 1e-8


def with_type(models, covariance_type):
    """Parametrization by the models of one covariance type."""
    chosen = [model for model in models if model["covariance_type"] == covariance_type]
    return pytest.mark.parametrize("model", chosen, ids=model_id)


@with_type(TWO_MODELS, "full")
def test_diagonal_and_spherical_are_full_for_one_feature(model):
    full, diagonal, spherical = (
        fit_from_parts(hyperparameters({**model, "covariance_type": name}, 2, 1), clusters(1, shift=6.0))
        for name in ("full", "diag", "spherical")
    )
    assert_same(diagonal, full)
    assert_same(spherical, full)


@with_type(INDEPENDENT, "full")
def test_tied_is_full_for_one_component(model):
    full, tied = (
        fit_from_parts(hyperparameters({**model, "covariance_type": name}, 1, 2), clusters(2))
        for name in ("full", "tied")
    )
    assert_same(tied, full)


@with_type([model for model in INDEPENDENT if not has_sticks(model)], "diag")
def test_diagonal_of_one_component_is_one_model_for_every_feature(model):
    X, at = clusters(2), hyperparameters(model, 1, 2)
    together = fit_from_parts(at, X)
    alone = []
    for p in range(2):
        one = hyperparameters(model, 1, 1)
        one.mean_prior_, one.covariance_prior_ = at.mean_prior_[[p]], at.covariance_prior_[[p]]
        one.degrees_of_freedom_prior_ = at.degrees_of_freedom_prior_
        alone.append(fit_from_parts(one, X[:, [p]]))
    assert together.lower_bound == pytest.approx(sum(one.lower_bound for one in alone), rel=1e-12)
    variances = np.stack([np.diag(one.covariance) for one in alone], axis=1)
    # The one log weight comes first, then means and precisions.
    expected = np.diag(np.append(variances[0, 0], variances[1:]))
    assert errors_in_deviations(together.covariance, expected) < 1e-10


# Weights of rows.


def test_weights_of_rows_are_repetitions():
    model, X = TWO_MODELS[0], clusters(2)
    at, _ = fitted_to_clusters(model)
    weights = np.random.default_rng(3).integers(3, size=len(X))
    repeated = np.concatenate([X[weights >= 1], X[weights == 2]])
    assert_same(fit_from_parts(at, X, weights), fit_from_parts(at, repeated))


# The estimator.


@pytest.mark.slow
@every_model
@pytest.mark.parametrize("n_components", [1, 3])
def test_equals_the_estimator(model, n_components):
    X = three_blobs(60, n_features=2) * [1.0, 1.5]
    estimator = mixture(model, n_components).fit(X)
    reference = fit_from_parts(estimator, X)
    assert estimator.lower_bound_ == pytest.approx(reference.lower_bound, abs=1e-8)
    shift, jacobian = log_share_map(estimator)
    np.testing.assert_allclose(estimator.posterior_mean_, reference.mean - shift, rtol=1e-8, atol=1e-8)
    covariance = jacobian @ reference.covariance @ jacobian.T
    assert errors_in_deviations(estimator.posterior_covariance_, covariance) < 1e-8


@pytest.mark.parametrize("model", LEARNED, ids=model_id)
def test_learned_hyperparameters_equal_those_of_the_estimator(model):
    X = three_blobs(60, n_features=2) * [1.0, 1.5]
    estimator = mixture(model, 2).fit(X)
    posterior = fit_from_parts(estimator, X).posterior
    names = [f"{name}.value" for name in posterior.factors if name.startswith("C0")]
    is_matrix = TYPES[model["covariance_type"]].is_matrix
    unique = [0, 1, 3] if is_matrix else slice(None)
    mean = np.concatenate([np.ravel(posterior.mean(name)) for name in ("b0.value", *names)])
    given = estimator.mean_precision_prior_, estimator.covariance_prior_
    np.testing.assert_allclose(np.concatenate([np.ravel(one) for one in given]), mean, rtol=1e-8)
    place = np.append(0, 1 + np.arange(len(mean) - 1)[unique])
    expected = posterior.covariance("b0.value", *names)[np.ix_(place, place)]
    found = estimator.posterior(method="lrvb").covariance(["mean_precision_prior", "covariance_prior"])
    assert errors_in_deviations(found, expected) < 1e-8
