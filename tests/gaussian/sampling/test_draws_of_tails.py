"""Draws of mixtures of Student's t components: their scales, and posteriors against quadrature."""

import itertools

import numpy as np
import pytest
from catalogue import mixture, rows_of, uncertainty_of
from incomplete_rows import incomplete
from sampling_problems import Problem, log_density, squared_distances
from scipy import stats
from scipy.special import gammaln, logsumexp

from sklearn_lrvb import number_of_clusters
from sklearn_lrvb.gaussian.sampling.missing_values import imputations
from sklearn_lrvb.gaussian.sampling.row_scales import gamma_variables
from sklearn_lrvb.rows import rows_of_array
from sklearn_lrvb.sampling.exact import ExactPosterior
from sklearn_lrvb.sampling.likelihood import (
    moments_of_random_assignments,
)
from sklearn_lrvb.sampling.number_evidence import run
from sklearn_lrvb.sampling.sampler import PosteriorSampler

by_tails = pytest.mark.parametrize("tails", [4.0, "student"])


def heavy(n_samples, n_features=2, seed=0):
    """Rows of Student's t with three degrees of freedom."""
    return np.random.default_rng(seed).standard_t(3.0, size=(n_samples, n_features))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.3, 1.0, 2.5, 60.0])
def test_gamma_variables_are_gamma(shape):
    uniforms = np.random.default_rng(0).random((3, 40_000))
    found = gamma_variables(np.full(40_000, shape), uniforms)
    assert stats.kstest(found, stats.gamma(shape).cdf).pvalue > 1e-3
    # A uniform number may be zero.
    assert np.isfinite(gamma_variables(np.full(1, shape), np.zeros((3, 1)))).all()


@pytest.mark.slow
@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_scales_have_the_moments_of_gamma_variables(weighted, has_missing):
    # A row that counts w times is w rows, each with a scale of its own.
    X = incomplete() if has_missing else heavy(60, 3)
    times = np.random.default_rng(1).integers(1, 4, len(X)).astype(float) if weighted else np.ones(len(X))
    estimator = mixture({"tails": 4.0, "reg_covar": 0.05}, 1).fit(X, sample_weight=times)
    sampler = PosteriorSampler(uncertainty_of(estimator))
    parameters = sampler.draws(1, np.random.RandomState(0))
    repeated = sampler.parameters(parameters.draws[np.zeros(4000, dtype=int)])
    rows = rows_of(estimator, X, times if weighted else None)
    sums = moments_of_random_assignments(rows, repeated, seed=3)[:, 0]
    mean, precision, scale = (getattr(parameters, name)[0, 0] for name in ("means", "precisions", "scales"))
    shapes, rates = np.empty((2, len(X)))
    for n, row in enumerate(X):
        seen = np.flatnonzero(~np.isnan(row))
        block = np.ix_(seen, seen)
        squares = squared_distances(row[seen], mean[seen], scale[block])
        shapes[n] = 0.5 * (4.0 + len(seen))
        rates[n] = 0.5 * (4.0 + squares + 0.05 * np.trace(precision[block]))
    expected, variance = times @ (shapes / rates), times @ (shapes / rates**2)
    assert sums[:, 0].mean() == pytest.approx(expected, abs=5.0 * np.sqrt(variance / 4000))
    assert sums[:, 0].var() == pytest.approx(variance, rel=0.12)
    np.testing.assert_array_equal(sums[:, -2], times.sum())


@pytest.mark.slow
def test_rows_with_missing_values_have_the_likelihood_of_what_they_show_beside_noise():
    X = incomplete().copy()
    X[::20] *= 8.0
    estimator = mixture({"tails": "student", "noise": True, "reg_covar": 0.05}).fit(X)
    sampler = PosteriorSampler(uncertainty_of(estimator))
    parameters = sampler.draws(2, np.random.RandomState(0))
    found = sampler.log_likelihood(rows_of(estimator, X), parameters)[1]
    noise_component = parameters.posterior.noise_component
    for n in range(0, len(X), 10):
        seen = np.flatnonzero(~np.isnan(X[n]))
        block, row = np.ix_(seen, seen), X[n, seen]
        terms = []
        for k in range(2):
            noise = 0.05 * np.trace(parameters.precisions[1, k][block])
            scale, nu = parameters.scales[1, k][block], parameters.tails[1]
            terms.append(log_density(row, parameters.means[1, k, seen], scale, noise, nu))
        change = noise_component.log_density_changes(parameters.posterior.structure, np.isnan(X[[n]]))[0]
        terms.append(noise_component.log_density + change)
        assert found[n] == pytest.approx(logsumexp(terms + parameters.log_shares[1]), rel=1e-10)


def test_draws_have_the_moments_reported_where_there_are_many_rows():
    estimator = mixture({"tails": "student"}, 1).fit(heavy(4000))
    draws = estimator.posterior(random_state=0, method="lrvb").sample(10_000)
    matrices = [draws[name][:, 0][:, [0, 0, 1], [0, 1, 1]] for name in ("scales", "covariances")]
    flat = np.column_stack([draws["means"][:, 0], *matrices, draws["tails"]])
    names = ["means", "scales", "covariances", "tails"]
    expected = estimator.posterior(method="lrvb").covariance(names)
    deviations = np.sqrt(np.diag(expected))
    found = np.cov(flat.T)
    np.testing.assert_allclose((found - expected) / np.outer(deviations, deviations), 0.0, atol=0.1)


def test_missing_values_have_students_t_given_what_is_seen():
    # With one degree of freedom more for what is seen, and wider the farther out that is.
    rng = np.random.default_rng(0)
    X = heavy(200) @ [[1.0, 0.7], [0.0, 0.8]]
    X[rng.random(200) < 0.2, 1] = np.nan
    estimator = mixture({"tails": 4.0}, 1).fit(X)
    sampler = PosteriorSampler(uncertainty_of(estimator))
    parameters = sampler.draws(1, np.random.RandomState(0))
    repeated = sampler.parameters(parameters.draws[np.zeros(4000, dtype=int)])
    rows = rows_of_array(np.array([[9.0, np.nan], [0.0, np.nan]]), parameters.origin)
    copies = imputations(rows, repeated, np.random.RandomState(1))
    mean, scale, precision = (getattr(parameters, name)[0, 0] for name in ("means", "scales", "precisions"))
    for n, seen in enumerate([9.0, 0.0]):
        gap = seen - mean[0]
        noise = estimator.reg_covar * precision[0, 0]
        wider = (4.0 + gap**2 / scale[0, 0] + noise) / 5.0
        place = mean[1] + scale[0, 1] / scale[0, 0] * gap
        expected = stats.t(5.0, place, np.sqrt(wider / precision[1, 1]))
        assert stats.kstest(copies[:, n, 1], expected.cdf).pvalue > 1e-3


# Posteriors of few rows of one feature, on a grid.

PRIOR = {
    "covariance_type": "diag",
    "weight_concentration_prior_type": "dirichlet_distribution",
    "weight_concentration_prior": 1.5,
    "mean_prior": [0.0],
    "mean_precision_prior": 0.4,
    "degrees_of_freedom_prior": 4.0,
    "covariance_prior": [4.0],
    "reg_covar": 0.0,
}
ROWS = np.array([[-0.8], [-0.3], [0.1], [0.5], [1.0], [7.0]])


def grid(tails):
    """Places, logarithms of precisions and of degrees of freedom on a grid, and logarithms of its measure.

    The prior is included in the measure of the first two; that of the degrees of freedom is apart.
    """
    places, logs = np.linspace(-14.0, 16.0, 161), np.linspace(-7.0, 4.0, 56)
    log_nu = np.log([tails]) if tails == 4.0 else np.linspace(-3.0, 6.0, 31)
    mu, log_precision = np.meshgrid(places, logs, indexing="ij")
    precision = np.exp(log_precision)
    measure = stats.norm.logpdf(mu, 0.0, 1.0 / np.sqrt(0.4 * precision))
    measure += stats.gamma.logpdf(precision, 2.0, scale=0.5) + log_precision
    measure += np.log((places[1] - places[0]) * (logs[1] - logs[0]))
    of_nu = np.zeros(1)
    if tails != 4.0:
        of_nu = stats.expon.logpdf(np.exp(log_nu), scale=10.0) + log_nu + np.log(log_nu[1] - log_nu[0])
    return mu, log_precision, log_nu, measure, of_nu


def log_likelihoods(mu, log_precision, nu):
    """Of every row on the grid of places and precisions, (N, ...)."""
    scale = np.exp(-0.5 * log_precision)
    return np.stack([stats.t.logpdf(x, nu, mu, scale) for x in ROWS[:, 0]])


def moments_by_quadrature(tails):
    """Means and deviations of mu, log Lambda and log nu of one component."""
    mu, log_precision, log_nu, measure, of_nu = grid(tails)
    log_joint = np.stack(
        [
            log_likelihoods(mu, log_precision, np.exp(own)).sum(axis=0) + measure + prior
            for own, prior in zip(log_nu, of_nu, strict=True)
        ]
    )
    weights = np.exp(log_joint - logsumexp(log_joint))
    values = [np.broadcast_to(own, weights.shape) for own in (mu, log_precision, log_nu[:, None, None])]
    means = np.array([(weights * own).sum() for own in values])
    squares = np.array([(weights * own**2).sum() for own in values])
    return means, np.sqrt(np.maximum(squares - means**2, 0.0))


def assert_moments(parameters, tails, slack):
    values = [parameters.means[:, 0, 0], np.log(parameters.precisions[:, 0, 0])]
    if tails != 4.0:
        values.append(parameters.log_tails)
    means, deviations = (own[: len(values)] for own in moments_by_quadrature(tails))
    np.testing.assert_allclose((np.mean(values, axis=1) - means) / deviations, 0.0, atol=slack)
    np.testing.assert_allclose(np.std(values, axis=1) / deviations, 1.0, atol=slack)


@pytest.mark.slow
@by_tails
def test_chains_of_gibbs_sweeps_have_the_moments_of_quadrature(tails):
    case = Problem({**PRIOR, "tails": tails}, 1, ROWS)
    posterior, origin = case.sampler.posterior, case.sampler.fitted.origin
    parts = [run(posterior, origin, case.rows, [posterior] * 32, seed)[1] for seed in range(4)]
    draws = parts[0].draws.concatenated([part.draws for part in parts])
    assert_moments(case.sampler.parameters(draws), tails, 0.12)


@pytest.mark.slow
@by_tails
@pytest.mark.parametrize("has_weights", [False, True])
def test_the_exact_posterior_has_the_moments_of_quadrature(tails, has_weights):
    # With weights that are no whole numbers there are no sweeps.
    weights = np.ones(len(ROWS))
    weights[0] += 1e-6
    case = Problem({**PRIOR, "tails": tails}, 1, ROWS, weights if has_weights else None)
    assert_moments(ExactPosterior(case.sampler, case.rows, 0).draws.parameters, tails, 0.15)


def log_evidence_by_quadrature(tails, largest):
    """log p(X | K) of K = 1, ..., largest components, by sums over all assignments."""
    mu, log_precision, log_nu, measure, of_nu = grid(tails)
    n_rows = len(ROWS)
    subsets = np.array(list(itertools.product([0, 1], repeat=n_rows)))
    of_subsets = np.empty((len(log_nu), len(subsets)))
    for i, own in enumerate(log_nu):
        by_row = log_likelihoods(mu, log_precision, np.exp(own)).reshape(n_rows, -1)
        of_subsets[i] = [logsumexp(subset @ by_row + measure.ravel()) for subset in subsets]
    if tails == "student_by_component":
        of_subsets, of_nu = logsumexp(of_subsets + of_nu[:, None], axis=0)[None], np.zeros(1)
    evidences, powers = [], 2 ** np.arange(n_rows)[::-1]
    for K in range(1, largest + 1):
        labels = np.array(list(itertools.product(range(K), repeat=n_rows)))
        is_in = labels[:, :, None] == np.arange(K)
        log_prior = (gammaln(1.5 + is_in.sum(axis=1)) - gammaln(1.5)).sum(axis=1)
        log_prior += gammaln(1.5 * K) - gammaln(1.5 * K + n_rows)
        of_labels = of_subsets[:, np.tensordot(is_in, powers, (1, 0))].sum(axis=2)
        evidences.append(logsumexp(of_labels + log_prior + of_nu[:, None]))
    return np.array(evidences)


@pytest.mark.slow
@pytest.mark.parametrize("tails", [4.0, "student", "student_by_component"])
def test_numbers_of_clusters_have_the_evidence_of_quadrature(tails):
    estimator = mixture({**PRIOR, "tails": tails}, 3)
    found = number_of_clusters(
        estimator, ROWS, n_components=[1, 2, 3], n_init=4, another_prior=False, random_state=0
    )
    expected = log_evidence_by_quadrature(tails, 3)
    np.testing.assert_allclose(np.diff(found.log_evidence), np.diff(expected), atol=0.1)
    # Their level is by importance sampling, which misses some of the tails of fitted degrees of freedom.
    slack = 0.06 if tails == 4.0 else 0.2
    np.testing.assert_allclose(found.log_evidence, expected, atol=slack)
    assert np.all(np.abs(found.log_evidence - expected) < 3.0 * found.log_evidence_error + 0.01)
