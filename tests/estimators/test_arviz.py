"""Draws and log likelihoods for ArviZ: against scipy's densities, exact predictions and repeated rows."""

import copy
import sys

import numpy as np
import pandas as pd
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    WEIGHT_PRIORS,
    WITH_TAILS,
    assert_equal_to_rounding,
    dense,
    fitted,
    mixture,
    model_id,
    overlapping,
    require_arviz,
    set_sizes,
    three_blobs,
)
from covariance_types import TYPES
from sampling_problems import log_density
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError

from sklearn_lrvb import LRVBGaussianMixture

catalogue = pytest.mark.parametrize("model", [*MODELS[::5], WITH_TAILS[0], WITH_TAILS[-1]], ids=model_id)
by_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def log_likelihood(estimator, X, n_draws=1000, random_state=0):
    """The log likelihood that ArviZ gets, (n_draws, n_rows)."""
    require_arviz()
    data = estimator.posterior(X, method="lrvb").to_arviz(n_draws, random_state=random_state)
    return data.log_likelihood["X"].to_numpy()[0]


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
def test_weights_that_underflow_leave_the_log_likelihood_finite(weights):
    model = {"weight_concentration_prior_type": weights, "weight_concentration_prior": 5e-4}
    X = np.random.default_rng(0).normal(size=(30, 2))
    estimator = mixture(model, 3, init_params=np.repeat(np.eye(1, 3), 30, axis=0)).fit(X)
    assert estimator.posterior(random_state=0, method="lrvb").sample(200)["weights"].min() == 0.0
    assert np.isfinite(log_likelihood(estimator, X, n_draws=200, random_state=0)).all()


def densities(model, draws, X, noise=None):
    """The same by scipy, draw by draw; the noise is given by its log density."""
    by_draw = []
    for i, (weights, means) in enumerate(zip(draws["weights"], draws["means"], strict=True)):
        precisions = dense(model, draws["precisions"][i], len(means))
        tails = model.get("tails")
        nu = np.broadcast_to(draws["tails"][i] if "tails" in draws else tails, len(means))
        terms = [
            np.log(weight)
            + log_density(X, mean, np.linalg.inv(own), model.get("reg_covar", 0.0) * np.trace(own), own_nu)
            for weight, mean, own, own_nu in zip(weights[: len(means)], means, precisions, nu, strict=True)
        ]
        if noise is not None:
            terms.append(np.full(len(X), np.log(weights[-1]) + noise))
        by_draw.append(logsumexp(terms, axis=0))
    return np.array(by_draw)


@catalogue
def test_log_likelihoods_are_scipys(model):
    estimator, X = fitted(model), overlapping()
    noise = estimator.noise_log_density_ if "noise" in model else None
    expected = densities(model, estimator.posterior(random_state=1, method="lrvb").sample(4), X, noise)
    values = log_likelihood(estimator, X, n_draws=4, random_state=1)
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@by_type
def test_their_mean_is_the_score(covariance_type):
    # The E-step computes the posterior mean of each component's log density, and of the noise.
    model, X = {"covariance_type": covariance_type, "reg_covar": 0.05}, overlapping(3000)
    estimator = mixture(model, n_components=1).fit(X)
    values = log_likelihood(estimator, X, random_state=0)
    error = values.mean(axis=0) - estimator.score_samples(X)
    assert np.abs(error).max() < 5 * values.std(axis=0).max() / np.sqrt(1000)


@by_type
def test_draws_batches_and_blocks_do_not_show(covariance_type, monkeypatch):
    model, X = {"covariance_type": covariance_type}, overlapping()
    estimator = fitted(model)
    whole = log_likelihood(estimator, X, n_draws=70, random_state=0)
    set_sizes(monkeypatch, numbers_per_row=1, batch_bytes=2**13, most_rows=100)
    assert_equal_to_rounding(log_likelihood(estimator, X, n_draws=70, random_state=0), whole)


@by_type
def test_units_far_origins_and_collinear_features_lose_no_digits(covariance_type):
    X = three_blobs()
    model = {"covariance_type": covariance_type, "reg_covar": 0.0}
    estimator = mixture(model, n_components=2).fit(X)
    own = log_likelihood(estimator, X, n_draws=5, random_state=0)
    # Powers of two change the units without rounding; spherical covariances allow one unit only.
    units = np.full(3, 2.0**20) if TYPES[covariance_type].n_axes == 0 else np.array([2.0**-20, 1.0, 2.0**30])
    start = {"init_params": estimator.predict_proba(X)}
    scaled = mixture({**model, **start}, n_components=2).fit(X * units)
    values = log_likelihood(scaled, X * units, n_draws=5, random_state=0)
    np.testing.assert_allclose(values, own - np.log(units).sum(), atol=1e-6)
    moved = mixture({**model, **start}, n_components=2).fit(X + 1e6)
    np.testing.assert_allclose(log_likelihood(moved, X + 1e6, n_draws=5, random_state=0), own, atol=1e-6)


@by_type
def test_groups_hold_the_draws_by_name(covariance_type):
    require_arviz()
    X = pd.DataFrame(overlapping(), columns=["height", "width"])
    estimator = LRVBGaussianMixture(n_components=2, covariance_type=covariance_type, random_state=0).fit(X)
    draws = estimator.posterior(random_state=3, method="lrvb").sample(6)
    data = estimator.posterior(X, random_state=3, method="lrvb").to_arviz(6)
    posterior = data.posterior
    assert dict(posterior.sizes)["chain"] == 1
    for name, values in draws.items():
        np.testing.assert_allclose(posterior[name].to_numpy()[0], values, rtol=1e-11)  # To round-off.
        assert posterior[name].dims[:2] == ("chain", "draw")
    own = TYPES[covariance_type]
    dims = ("component",) * (not own.is_shared) + ("feature", "other_feature")[: own.n_axes]
    assert posterior["covariances"].dims[2:] == posterior["precisions"].dims[2:] == dims
    widths = posterior["means"].sel(component=1, feature="width").to_numpy()[0]
    np.testing.assert_allclose(widths, draws["means"][:, 1, 1], rtol=1e-11)
    np.testing.assert_array_equal(data.observed_data["X"].sel(feature="height").to_numpy(), X["height"])
    assert data.log_likelihood["X"].dims == ("chain", "draw", "row")
    assert posterior.attrs["inference_library"] == "sklearn-lrvb"
    groups = [group.strip("/") for group in getattr(data, "children", None) or data.groups()]
    assert groups == ["posterior", "log_likelihood", "observed_data"]
    assert not hasattr(estimator.posterior(method="lrvb").to_arviz(2), "log_likelihood")


@pytest.mark.parametrize("tails", [4.0, "student", "student_by_component"])
def test_heavy_tails_have_scales_and_degrees_of_freedom(tails):
    require_arviz()
    estimator = mixture({"tails": tails}).fit(overlapping())
    draws = estimator.posterior(random_state=3, method="lrvb").sample(6)
    posterior = estimator.posterior(random_state=3, method="lrvb").to_arviz(6).posterior
    assert posterior["scales"].dims == ("chain", "draw", "component", "feature", "other_feature")
    assert ("tails" in posterior) == (tails != 4.0)
    if tails != 4.0:
        by_component = ("component",) * (tails == "student_by_component")
        assert posterior["tails"].dims == ("chain", "draw", *by_component)
        np.testing.assert_array_equal(posterior["tails"][0], draws["tails"])
    np.testing.assert_array_equal(posterior["scales"][0], draws["scales"])


def test_a_row_of_weight_two_is_the_row_twice():
    require_arviz()
    X, weights = overlapping(60), np.resize([1.0, 2.0, 0.0, 0.5], 60)
    estimator = mixture({}).fit(X, sample_weight=weights)
    data = estimator.posterior(X, sample_weight=weights, random_state=0, method="lrvb").to_arviz(5)
    expected = densities({}, estimator.posterior(random_state=0, method="lrvb").sample(5), X) * weights
    kept = weights > 0
    np.testing.assert_array_equal(data.log_likelihood["row"], np.flatnonzero(kept))
    np.testing.assert_allclose(data.log_likelihood["X"].to_numpy()[0], expected[:, kept], atol=1e-4)
    np.testing.assert_array_equal(data.observed_data["X"], X[kept])
    np.testing.assert_array_equal(data.constant_data["sample_weight"], weights[kept])


@by_type
def test_components_without_rows_count_by_their_weight(covariance_type):
    # Their draws are the prior's, some of them nearly singular.
    model, X = {"covariance_type": covariance_type, "reg_covar": 0.0}, overlapping(100)
    estimator = mixture(model, n_components=5).fit(X)
    assert estimator.n_occupied_ < 5
    expected = densities(model, estimator.posterior(random_state=0, method="lrvb").sample(20), X)
    values = log_likelihood(estimator, X, n_draws=20, random_state=0)
    np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-7)


def test_draws_of_nearly_improper_priors_give_no_nan():
    X = overlapping(40)[:, :1]
    estimator = mixture({"degrees_of_freedom_prior": 0.03}, n_components=3).fit(X)
    values = log_likelihood(estimator, X, n_draws=300, random_state=0)
    assert np.isfinite(values).all()


def exact_predictions_without_a_row(estimator, X):
    """Log predictive densities of every row of one component given the others, (n,)."""
    n, P = X.shape
    scores = []
    for i in range(n):
        rest = np.delete(X, i, axis=0)
        tau = estimator.mean_precision_prior_ + n - 1
        nu = estimator.degrees_of_freedom_prior_ + n - 1
        prior_mean = estimator.mean_prior_
        center = rest.mean(axis=0) - prior_mean
        mean = prior_mean + (n - 1) / tau * center
        scatter = (n - 1) * np.cov(rest.T, bias=True)
        shift = estimator.mean_precision_prior_ * (n - 1) / tau * np.outer(center, center)
        scale = estimator.covariance_prior_ + scatter + shift
        freedom = nu - P + 1
        t = stats.multivariate_t(mean, scale * (tau + 1) / (tau * freedom), df=freedom)
        scores.append(t.logpdf(X[i]))
    return np.array(scores)


def left_out(values):
    """Log predictive densities of every row given the others, from log likelihoods (n_draws, n), (n,).

    Importance sampling without ArviZ's smoothing, good enough where no row weighs much.
    """
    return np.log(len(values)) - logsumexp(-values, axis=0)


def test_rows_left_out_of_one_component_are_predicted_exactly():
    X = overlapping(60)
    estimator = mixture({"reg_covar": 0.0}, n_components=1).fit(X)
    values = log_likelihood(estimator, X, n_draws=4000, random_state=0)
    np.testing.assert_allclose(left_out(values), exact_predictions_without_a_row(estimator, X), atol=0.08)


@pytest.mark.slow
def test_predictions_exceed_scores_by_half_their_variance():
    # The log of an average density is above the average log density, by half its variance to second order.
    X = three_blobs(300)
    estimator = mixture({}, n_components=3).fit(X)
    values = log_likelihood(estimator, X, n_draws=2000, random_state=0)
    excess = left_out(values) - estimator.loo_score_samples(X)
    expected = 0.5 * estimator.leverage(X)
    assert excess.sum() == pytest.approx(expected.sum(), rel=0.2)
    assert np.corrcoef(excess, expected)[0, 1] > 0.9


@pytest.mark.slow
def test_loo_of_arviz_takes_what_it_is_given():
    try:
        from arviz_stats import loo
    except ImportError:
        loo = pytest.importorskip("arviz").loo
    X = three_blobs(300)
    data = mixture({}, n_components=3).fit(X).posterior(X, random_state=0, method="lrvb").to_arviz()
    result = loo(data, pointwise=True)
    by_row = result.elpd_i if hasattr(result, "elpd_i") else result.loo_i
    assert np.max(result.pareto_k) < 0.7
    np.testing.assert_allclose(by_row, left_out(data.log_likelihood["X"].to_numpy()[0]), atol=0.1)


def test_bad_requests_are_refused():
    require_arviz()
    estimator, X = fitted(MODELS[0]), overlapping()
    for n_draws in (0, -1, 2.5, "10"):
        with pytest.raises(ValueError, match="Invalid value for 'n_draws'"):
            estimator.posterior(method="lrvb").to_arviz(n_draws)
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        estimator.posterior(X[:-1], method="lrvb").to_arviz()
    with pytest.raises(ValueError, match="sample_weight goes with X"):
        estimator.posterior(sample_weight=np.ones(len(X)), method="lrvb").to_arviz()
    with pytest.raises(NotFittedError):
        LRVBGaussianMixture().posterior(method="lrvb").to_arviz()
    changed = copy.deepcopy(estimator)
    changed.means_ = changed.means_ + 1.0
    with pytest.raises(NotFittedError, match=r"Changed since the fit: means_\."):
        changed.posterior(method="lrvb").to_arviz()
    message = r"240 rows under 10000000 draws takes 17.9 GiB; .* \(a\) Ask for fewer draws: n_draws=2236962\."
    with pytest.raises(MemoryError, match=message):
        estimator.posterior(X, method="lrvb").to_arviz(10_000_000)


def test_without_arviz_it_says_how_to_get_it(monkeypatch):
    for name in ("arviz_base", "arviz"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "sklearn-lrvb\[arviz\]"'):
        fitted(MODELS[0]).posterior(method="lrvb").to_arviz()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sandwich", "bootstrap"])
def test_draws_by_groups_are_those_of_the_posterior(method):
    require_arviz()
    X, groups = overlapping(), np.arange(240) // 5
    estimator = fitted(MODELS[0])
    posterior = estimator.posterior(X, n_draws=20, method=method, groups=groups)
    data, draws = posterior.to_arviz(20), posterior.sample(20)
    for name, values in draws.items():
        np.testing.assert_array_equal(data.posterior[name].to_numpy()[0], values)
    assert np.isfinite(data.log_likelihood["X"].to_numpy()).all()


def test_weights_have_noise_as_their_last_label():
    require_arviz()
    X = np.concatenate([overlapping(), [[15.0, -9.0], [-20.0, 4.0]]])
    estimator = mixture({"noise": True}).fit(X)
    data = estimator.posterior(X, random_state=0, method="lrvb").to_arviz(200)
    draws = estimator.posterior(random_state=0, method="lrvb").sample(200)
    weights = data.posterior["weights"]
    assert weights.dims == ("chain", "draw", "label")
    assert weights.label.to_numpy().tolist() == ["0", "1", "noise"]
    np.testing.assert_array_equal(weights.sel(label="noise")[0], draws["weights"][:, -1])
    found = logsumexp(data.log_likelihood["X"].to_numpy()[0], axis=0) - np.log(200)
    np.testing.assert_allclose(found, estimator.score_samples(X), atol=0.5)
