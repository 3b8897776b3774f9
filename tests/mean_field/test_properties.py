"""Identities that hold for every model of the catalogue."""

import numpy as np
import pytest
from mean_field.catalogue import CATALOGUE, built, fitted

from sklearn_lrvb.mean_field import MeanFieldModel, MeanFieldPosterior, Term
from sklearn_lrvb.mean_field.ascent import lower_bound

every_model = pytest.mark.parametrize("name", CATALOGUE)


def flat(by_factor):
    return np.concatenate([array.ravel() for array in by_factor.values()])


@every_model
def test_lower_bound_never_falls(name):
    model, start = built(name)
    bounds = model.fit(start).lower_bounds
    assert np.all(np.diff(bounds) >= -1e-11 * np.abs(bounds).max())
    # The start is far from the optimum.
    rough = {factor: 3.0 * natural for factor, natural in fitted(name).natural_parameters.items()}
    bounds = model.fit({**(start or {}), **rough}).lower_bounds
    assert np.all(np.diff(bounds) >= -1e-11 * np.abs(bounds).max())


@every_model
def test_fixed_point(name):
    posterior = fitted(name)
    assert posterior.converged
    for factor, natural in posterior.natural_parameters.items():
        mean = posterior.factors[factor].family.mean_parameters(natural)
        np.testing.assert_array_equal(posterior.mean_parameters[factor], mean)
        update = posterior.log_joint.natural_parameters(posterior.mean_parameters, factor)
        np.testing.assert_allclose(update, natural, rtol=1e-8, atol=1e-8)
    assert posterior.newton_decrement < 1e-7


@every_model
def test_lower_bound_is_that_of_the_definition(name):
    posterior = fitted(name)
    means = posterior.mean_parameters
    # The entropies are those of the densities of the factors.
    entropy = -sum(
        np.vdot(natural, means[factor]) - np.sum(posterior.factors[factor].family.log_partition(natural))
        for factor, natural in posterior.natural_parameters.items()
    )
    assert posterior.lower_bound == pytest.approx(posterior.log_joint.value(means) + entropy, rel=1e-12)


@every_model
def test_log_joint_is_the_sum_of_its_terms_at_draws(name):
    """Value, and linearity in every factor: at the statistics of a draw as at means."""
    posterior = fitted(name)
    draws = posterior.sample(1, random_state=0)
    statistics = {f: posterior.factors[f].family.statistics_of(draw[0]) for f, draw in draws.items()}
    log_joint = posterior.log_joint
    for factor, own in statistics.items():
        without = log_joint.value({**statistics, factor: np.zeros_like(own)})
        natural = log_joint.natural_parameters(statistics, factor)
        assert log_joint.value(statistics) == pytest.approx(
            without + np.vdot(natural, own), rel=1e-11, abs=1e-9
        )


@every_model
def test_mean_field_covariance_is_the_families(name):
    posterior = fitted(name)
    V, start = posterior.mean_field_covariance(), 0
    np.testing.assert_array_equal(V, V.T)
    rest = V.copy()
    for factor, natural in posterior.natural_parameters.items():
        family = posterior.factors[factor].family
        for own in natural.reshape(-1, family.n_statistics):
            block = slice(start, start + family.n_statistics)
            np.testing.assert_allclose(V[block, block], family.covariance(own), rtol=1e-12, atol=1e-14)
            rest[block, block] = 0
            start = block.stop
    assert start == len(V) == len(posterior.names) == len(set(posterior.names))
    assert not rest.any()


@every_model
def test_expected_hessian_is_the_derivative_of_the_natural_parameters(name):
    posterior = fitted(name)
    H, means = posterior.expected_hessian(), posterior.mean_parameters
    np.testing.assert_array_equal(H, H.T)
    start = 0
    for factor, own in means.items():
        for entry in range(own.size):
            moved = own.copy()
            moved.flat[entry] += 1.0  # The difference is exact, as natural parameters are multilinear.
            change = {
                other: posterior.log_joint.natural_parameters({**means, factor: moved}, other)
                - posterior.log_joint.natural_parameters(means, other)
                for other in means
            }
            np.testing.assert_allclose(H[:, start + entry], flat(change), rtol=1e-9, atol=1e-9)
        start += own.size


@pytest.mark.slow
@every_model
def test_linear_response_is_the_derivative_of_refits(name):
    """Sigma v = d m / dt of the log joint plus t v times the statistics (Eq. perturbed_dens)."""
    model, posterior = built(name)[0], fitted(name)
    Sigma = posterior.covariance(*posterior.factors)
    scale = np.maximum(np.sqrt(np.diag(Sigma)), 0.01)  # The curvature is large where a probability is near 0.
    rng = np.random.default_rng(0)
    for _ in range(2):
        direction = rng.normal(size=len(scale)) / scale
        means = []
        for step in (1e-4, -1e-4):
            perturbed = [*model.terms]
            start = 0
            for factor in posterior.factors:
                own = posterior.factors[factor]
                for statistic in own.family.statistics:
                    shape = own.statistic_shape(statistic)
                    coefficient = step * direction[start + own.positions(statistic)].reshape(shape)
                    perturbed.append(Term(coefficient, f"{factor}.{statistic}"))
                start += own.size
            refit = MeanFieldModel(model.factors, perturbed).fit(
                posterior.natural_parameters, tol=1e-12, max_iter=20_000
            )
            means.append(flat(refit.mean_parameters))
        derivative = (means[0] - means[1]) / 2e-4
        error = np.abs(Sigma @ direction - derivative) / scale
        assert error.max() < 1e-5 * np.abs(direction * scale).sum()


@every_model
def test_order_of_factors_and_terms_changes_nothing(name):
    model, posterior = built(name)[0], fitted(name)
    reversed_factors = dict(reversed(model.factors.items()))
    other = MeanFieldModel(reversed_factors, model.terms[::-1]).fit(
        posterior.natural_parameters, tol=1e-11, max_iter=20_000
    )
    assert other.lower_bound == pytest.approx(posterior.lower_bound, abs=1e-9)
    Sigma, other_Sigma = (fit.covariance(*posterior.factors) for fit in (posterior, other))
    scale = np.sqrt(np.diag(Sigma))
    np.testing.assert_array_less(np.abs(Sigma - other_Sigma), 1e-7 * np.outer(scale, scale) + 1e-14)
    assert list(other.names) != list(posterior.names) or len(model.factors) == 1


@every_model
def test_schur_complement_is_the_dense_answer(name):
    """Asking for less eliminates more, and changes no number."""
    posterior = fitted(name)
    dense = posterior.covariance(*posterior.factors)
    labels = list(posterior.names)
    for factor in posterior.factors:
        own = [labels.index(label) for label in posterior.factors[factor].labels(factor)]
        alone, expected = posterior.covariance(factor), dense[np.ix_(own, own)]
        np.testing.assert_array_equal(alone, alone.T)
        np.testing.assert_allclose(alone, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max() + 1e-15)


@every_model
def test_newton_decrement_is_the_distance_to_the_optimum(name):
    """Half its square is what the lower bound still gains."""
    model, posterior = built(name)[0], fitted(name)
    rng = np.random.default_rng(0)
    V, start = posterior.mean_field_covariance(), 0
    nearby = {}
    for factor, natural in posterior.natural_parameters.items():
        # V depends on the symmetric part of a matrix statistic's natural parameter alone.
        size = model.factors[factor].size
        response = V[start : start + size, start : start + size] @ rng.normal(size=size)
        scale = 3e-4 * np.abs(natural).max() / np.abs(response).max()
        nearby[factor] = natural + scale * response.reshape(natural.shape)
        start += size
    means = {f: model.factors[f].family.mean_parameters(natural) for f, natural in nearby.items()}
    bound = lower_bound(model.log_joint, nearby, means)
    stopped = MeanFieldPosterior(posterior.log_joint, nearby, means, np.array([bound]), False)
    gain = posterior.lower_bound - bound
    assert gain > 1e-10 * abs(bound)
    assert 0.5 * stopped.newton_decrement**2 == pytest.approx(gain, rel=0.03)
    residual = np.concatenate(
        [
            (posterior.log_joint.natural_parameters(means, f) - natural).ravel()
            for f, natural in nearby.items()
        ]
    )
    Sigma = stopped.covariance(*stopped.factors)
    assert stopped.newton_decrement == pytest.approx(np.sqrt(residual @ Sigma @ residual), rel=1e-6)
