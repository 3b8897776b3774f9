"""Draws of the parameters and incomplete rows: likelihood, its derivatives, and the exact posterior."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import (
    MODELS,
    WITH_NOISE,
    WITHOUT_NOISE,
    few_of,
    mixture,
    model_id,
    models_in_turn,
    rows_of,
    set_sizes,
    type_of,
    uncertainty_of,
)
from incomplete_rows import fitted, incomplete
from sampling_problems import log_density, squared_distances
from scipy.special import digamma, logsumexp, softmax
from scipy.stats import chi2, kstest

from sklearn_lrvb.gaussian.sampling.missing_values import imputations
from sklearn_lrvb.rows import rows_of_array
from sklearn_lrvb.sampling.likelihood import (
    log_likelihood,
    log_likelihood_and_moments,
    log_likelihood_of_draws,
    moments_of_random_assignments,
)
from sklearn_lrvb.sampling.sampler import PosteriorSampler

CONJUGATE = [model for model in few_of(MODELS) if model["prior"] != "flat"]
some_models = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
WEIGHTS = np.random.default_rng(0).integers(1, 4, len(incomplete())).astype(float)


def drawn(model, n_draws=3):
    """A sampler at a fit, some draws, and the rows of the fit with weights."""
    estimator = fitted(model)
    sampler = PosteriorSampler(uncertainty_of(estimator))
    rows = rows_of(estimator, incomplete(), WEIGHTS)
    return sampler, sampler.draws(n_draws, np.random.RandomState(0)), rows


@some_models
def test_draws_of_means_have_the_deviations_reported(model):
    estimator = fitted(model)
    draws = estimator.posterior(random_state=2, method="lrvb").sample(2000)
    np.testing.assert_allclose(draws["means"].std(axis=0), estimator.means_std_, rtol=0.12)
    np.testing.assert_allclose(
        draws["precisions"].std(axis=0), estimator.precisions_std_, rtol=0.35, atol=1e-9
    )


def half_missing(n_samples, n_features):
    """Rows of one cluster with every second value missing, on average."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_samples, n_features))
    X[rng.random(X.shape) < 0.5] = np.nan
    return X[~np.isnan(X).all(axis=1)]


@pytest.mark.parametrize("factorization", ["joint", "independent"])
@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_numbers_of_one_component_are_drawn_from_the_exact_posterior(covariance_type, factorization):
    X = half_missing(60, 4)
    model = {"covariance_type": covariance_type, "prior": "fixed", "factorization": factorization}
    estimator = mixture(model, 1).fit(X)
    sampler = PosteriorSampler(uncertainty_of(estimator))
    _, weights = sampler.importance(rows_of(estimator, X), 200, np.random.RandomState(0))
    np.testing.assert_allclose(weights.log_ratios, weights.log_ratios[0], atol=1e-10)


@pytest.mark.slow
def test_matrices_are_nearly_exact_where_later_features_are_seen_with_all_earlier_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5))
    for feature, n_seen in enumerate((60, 50, 40, 30, 20)):
        X[n_seen:, feature] = np.nan
    estimator = mixture({}, 1).fit(X)
    check = estimator.posterior_check(X, n_draws=1000, random_state=0)
    assert check.effective_draws > 600
    # The variance of a feature that is always seen is known as well as without missing values.
    freedom = estimator.degrees_of_freedom_[0] - 4
    variances = estimator.posterior(random_state=0).sample(600)["covariances"][:, 0, 0, 0]
    scaled = estimator.degrees_of_freedom_[0] * estimator.covariances_[0, 0, 0] / variances
    assert kstest(scaled, chi2(freedom).cdf).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_samples", "n_features", "of_means", "of_variances"), [(100, 5, 1.1, 1.35), (200, 10, 1.25, 3.0)]
)
def test_few_rows_of_which_half_the_values_are_missing(n_samples, n_features, of_means, of_variances):
    # in ten features some 50 rows show any two of them, and hardly one shows all
    X = half_missing(n_samples, n_features)
    estimator = mixture({}, n_components=1).fit(X)
    draws = estimator.posterior(random_state=1, method="lrvb").sample(4000)
    ratios = draws["means"].std(axis=0) / estimator.means_std_
    assert ratios.min() > 0.97 and ratios.max() < of_means
    ratios = draws["covariances"].std(axis=0) / estimator.covariances_std_
    assert np.median(ratios) < 1.3 and ratios.max() < of_variances


@pytest.mark.slow
def test_draws_are_near_the_exact_posterior_where_half_of_the_values_are_missing():
    X = half_missing(100, 5)
    estimator = mixture({"weight_concentration_prior_type": "dirichlet_distribution"}, 1).fit(X)
    check = estimator.posterior_check(X, n_draws=2000, random_state=0)
    assert check.log_evidence - check.log_evidence_bound < 0.7  # Kullback and Leibler's divergence
    exact = estimator.posterior(method="exact", random_state=0).sample(1000)
    draws = estimator.posterior(random_state=0, method="lrvb").sample(4000)
    for name in ("means", "covariances"):
        ratios = draws[name].std(axis=0) / exact[name].std(axis=0)
        assert ratios.min() > 0.85 and ratios.max() < 1.2
        shifts = (np.median(draws[name], axis=0) - np.median(exact[name], axis=0)) / exact[name].std(axis=0)
        assert np.abs(shifts).max() < 0.45


@some_models
def test_the_likelihood_is_that_of_what_is_seen(model):
    _, parameters, rows = drawn(model)
    found = log_likelihood_of_draws(rows, parameters)
    for i in range(3):
        for n in range(0, len(incomplete()), 17):
            terms = conditionals(model, parameters, parameters.log_shares, i, incomplete()[n])[0]
            np.testing.assert_allclose(found[i, n], WEIGHTS[n] * logsumexp(terms), rtol=1e-10, atol=1e-10)
    if model["weight_concentration_prior_type"] == "dirichlet_distribution":  # Weights sum to one.
        np.testing.assert_allclose(log_likelihood(rows, parameters), found.sum(axis=1), rtol=1e-12)


def conditionals(model, parameters, log_weights, number, row):
    """Log densities of a row in all labels, its values and scale given each component.

    Parameters
    ----------
    model : dict
    parameters : DrawnParameters
    log_weights : (n_draws, L)
    number : int, of the draw
    row : (P,), with NaN

    Returns
    -------
    log_densities : (L,)
    means : (K, P)
    covariances : (K, P, P), at the scale one
    scales : list of (a, b), the scale being Gamma(a, b); None for normal components
    """
    is_missing = np.isnan(row)
    covariances, precisions = (
        type_of(model).dense(getattr(parameters, name)[number], 2, 3) for name in ("scales", "precisions")
    )
    has_scales = "tails" in model
    terms, means, spreads, scales = [], [], np.zeros((2, 3, 3)), []
    for k in range(2):
        mean, block = parameters.means[number, k], np.ix_(~is_missing, ~is_missing)
        nu = parameters.degrees_of_freedom[number, k] if has_scales else None
        seen = row[~is_missing], mean[~is_missing], covariances[k][block]
        noise = model["reg_covar"] * np.trace(precisions[k][block])
        terms.append(log_weights[number, k] + log_density(*seen, noise, nu))
        if has_scales:
            scales.append(0.5 * np.array([nu + len(seen[0]), nu + squared_distances(*seen) + noise]))
        slopes = np.linalg.solve(covariances[k][block], covariances[k][~is_missing][:, is_missing])
        filled = row.copy()
        filled[is_missing] = mean[is_missing] + (row - mean)[~is_missing] @ slopes
        means.append(filled)
        spread = (
            covariances[k][np.ix_(is_missing, is_missing)]
            - covariances[k][is_missing][:, ~is_missing] @ slopes
        )
        spreads[k][np.ix_(is_missing, is_missing)] = spread
    if "noise" in model:
        noise_component, structure = parameters.posterior.noise_component, parameters.posterior.structure
        change = noise_component.log_density_changes(structure, is_missing[None])[0]
        terms.append(log_weights[number, 2] + noise_component.log_density + change)
    return np.array(terms), np.array(means), spreads, scales if has_scales else None


@some_models
def test_expected_moments_are_those_of_conditional_normals(model):
    _, parameters, rows = drawn(model)
    posterior = parameters.posterior
    structure, expected = posterior.structure, 0.0
    whiteners = structure.dense(posterior.whiteners)
    for weight, row in zip(WEIGHTS, incomplete(), strict=True):
        log_densities, means, spreads, scales = conditionals(
            model, parameters, parameters.log_weights, 1, row
        )
        shares = softmax(log_densities)
        mean_scales = np.ones(2) if scales is None else np.divide(*np.transpose(scales))
        noise = model["reg_covar"] * np.diag(np.isnan(row))
        y = np.einsum("kpq,kq->kp", whiteners, means - parameters.origin - posterior.centred_means)
        scaled = mean_scales[:, None, None]
        second = scaled * y[:, :, None] * y[:, None]
        second += whiteners @ (spreads - scaled * noise) @ whiteners.transpose(0, 2, 1)
        entries = structure.entries(of_kind(structure, second))
        parts = [mean_scales[:, None], mean_scales[:, None] * y, entries]
        if scales is not None:  # Counts, and log u - u.
            a, b = np.transpose(scales)
            parts.append(np.column_stack([np.ones(2), digamma(a) - np.log(b) - a / b]))
        sums = np.zeros((len(shares), sum(part.shape[1] for part in parts)))
        sums[:, 0] = 1.0
        sums[:2] = np.concatenate(parts, axis=1)
        expected = expected + weight * shares[:, None] * sums
    found = log_likelihood_and_moments(rows, parameters)[1][1]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())


def of_kind(structure, matrices):
    """Statistics of a structure from sums of y y', (n, P, P)."""
    if structure.is_matrix:
        return matrices
    diagonals = np.einsum("npp->np", matrices)
    return diagonals if structure.n_quadratic == 3 else diagonals.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("model", MODELS[::7], ids=model_id)
def test_drawn_values_have_their_conditional_distribution(model):
    sampler, parameters, _ = drawn(model, n_draws=1)
    n_copies, some = 4000, np.flatnonzero(np.isnan(incomplete()).any(axis=1))[::5]
    rows = rows_of_array(incomplete()[some], parameters.origin)
    repeated = sampler.parameters(parameters.draws[np.zeros(n_copies, dtype=int)])
    copies = imputations(rows, repeated, np.random.RandomState(5))
    for i, row in enumerate(incomplete()[some]):
        log_densities, means, spreads, scales = conditionals(
            model, parameters, parameters.log_weights, 0, row
        )
        shares = softmax(log_densities[:2])
        if scales is not None:  # E(1/u)
            spreads = np.array([b / (a - 1.0) for a, b in scales])[:, None, None] * spreads
        mean = shares @ means
        products = spreads + (means - mean)[:, :, None] * (means - mean)[:, None]
        covariance = np.einsum("k,kpq->pq", shares, products)
        centred = copies[:, i] - mean
        found = centred[:, :, None] * centred[:, None]
        for values, expected in ((centred, 0.0), (found, covariance)):
            errors = values.std(axis=0) / np.sqrt(n_copies)
            assert np.all(np.abs(values.mean(axis=0) - expected) <= 5 * errors + 1e-9)


@pytest.mark.slow
@models_in_turn(CONJUGATE[::2], "n_jobs", [None, 2])
def test_random_numbers_depend_on_row_and_draw_alone(model, n_jobs, monkeypatch):
    sampler, parameters, rows = drawn(model, n_draws=40)
    whole = moments_of_random_assignments(rows, parameters, seed=3)
    set_sizes(monkeypatch, most_rows=7, batch_bytes=2**13, product_for_threads=1, numbers_per_row=40)
    again = rows_of_array(incomplete(), rows.origin, n_jobs, WEIGHTS)
    few = sampler.parameters(parameters.draws[:20])
    for other, draws in ((parameters, slice(40)), (few, slice(20))):
        found = moments_of_random_assignments(again, other, seed=3)
        np.testing.assert_allclose(found, whole[draws], rtol=1e-9, atol=1e-11 * np.abs(whole).max())


@pytest.mark.slow
@models_in_turn(CONJUGATE[::3], "kind", ["batches", "dask"])
def test_chunks_do_not_show(model, kind):
    estimator, X = fitted(model), [incomplete()[:33], incomplete()[33:90], incomplete()[90:]]
    if kind == "dask":
        X = pytest.importorskip("dask.array").concatenate(X)
    whole, found = (
        estimator.posterior(rows, method="exact", random_state=0).sample(5) for rows in (incomplete(), X)
    )
    for name, values in whole.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-7)


@models_in_turn(CONJUGATE, "name", ["log_stick", "log_rest", "scaled_means", "factors"])
def test_slopes_are_derivatives(model, name):
    sampler, parameters, rows = drawn(model)
    draws, slopes = parameters.draws, getattr(parameters.log_joint_and_slopes(rows)[1], name)
    place = getattr(draws, name)
    direction = np.random.default_rng(1).normal(size=place.shape) * (place != 0)
    up, down = (
        sampler.parameters(replace(draws, **{name: place + sign * 1e-5 * direction})).log_joint(rows)
        for sign in (1.0, -1.0)
    )
    expected = (np.where(place != 0, slopes, 0.0) * direction).reshape(3, -1).sum(axis=1)
    np.testing.assert_allclose((up - down) / 2e-5, expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("model", (*WITHOUT_NOISE, *WITH_NOISE)[::11], ids=model_id)
def test_random_moments_have_the_expected_mean(model):
    sampler, parameters, rows = drawn(model, n_draws=1)
    repeated = parameters.draws[np.zeros(1000, dtype=int)]
    found = moments_of_random_assignments(rows, sampler.parameters(repeated), seed=3)
    expected = log_likelihood_and_moments(rows, parameters)[1][0]
    errors = found.std(axis=0) / np.sqrt(1000)
    if type_of(model).is_shared:  # What components share is in one of them.
        found, expected = found.sum(axis=1), expected.sum(axis=0)
        errors = found.std(axis=0) / np.sqrt(1000)
    assert np.all(np.abs(found.mean(axis=0) - expected) <= 5 * errors + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_linear_response_is_near_the_exact_posterior(covariance_type):
    estimator = mixture({"covariance_type": covariance_type}, 2).fit(incomplete())
    plain, exact = (
        np.sqrt(np.diag(estimator.posterior(method=method, random_state=0).covariance(["weights", "means"])))
        for method in ("lrvb", "exact")
    )
    np.testing.assert_allclose(plain, exact, rtol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_a_column_that_a_component_never_shows_is_not_called_good(covariance_type):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) + [[8.0, 0.0]] * (np.arange(60) % 2)[:, None]
    X[1::2, 1] = np.nan
    estimator = mixture({"covariance_type": covariance_type, "prior": "fixed"}).fit(X)
    check = estimator.posterior_check(X, random_state=0)
    where = list(check.names).index(f"mean[{estimator.means_[:, 0].argmax()},x1]")
    assert check.state == "wrong"
    # Draws by linear response are near the exact posterior; what is reported is not.
    exact = estimator.posterior(X)
    assert exact.method == "exact"
    ratio = exact.summary("means")["sd"][check.names[where]] / estimator.posterior_std_[where]
    assert ratio > 2.0
    assert 0.5 * ratio < check.sd_ratio[where] < 2.0 * ratio


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 6])
def test_precisions_that_underflow_do_not_stop_the_chains(seed):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((80, 3)) + [[7.0, 0.0, 0.0]] * (np.arange(80) % 2)[:, None]
    is_missing = rng.random_sample((80, 3)) < 0.85
    is_missing[:, 0] = False
    X[is_missing] = np.nan
    estimator = mixture({}).fit(X)
    table = estimator.posterior(X, method="exact").summary("means")
    assert np.isfinite(table[["lower", "upper"]]).all(axis=None)


def test_one_component_with_missing_values_needs_no_correction():
    estimator = mixture({"covariance_type": "diag", "reg_covar": 0.0}, 1).fit(incomplete())
    check = estimator.posterior_check(incomplete(), n_draws=4000, random_state=0)
    assert check.recommendation == "lrvb"
    assert abs(check.log_evidence_bound - estimator.log_evidence_) < 0.05


def test_draws_for_arviz_have_the_likelihood_of_rows_with_missing_values():
    pytest.importorskip("arviz_base")
    estimator = fitted({"covariance_type": "full"})
    data = estimator.posterior(incomplete(), random_state=0, method="lrvb").to_arviz(10)
    assert np.isfinite(data["log_likelihood"]["X"].to_numpy()).all()
