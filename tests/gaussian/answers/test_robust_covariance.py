"""The sandwich: centred weight influences, closed forms, and what it agrees with where the model is true."""

import pickle

import numpy as np
import pytest
from catalogue import (
    MODELS,
    assert_equal_to_rounding,
    covariance_by,
    few_of,
    fitted,
    mixture,
    model_id,
    overlapping,
    set_sizes,
    targets_of,
    unique,
)

catalogue = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
X = overlapping()


def flat_influence(model, estimator, target):
    """d E[target] / d w_n of unique entries, (n, d)."""
    influence = estimator.influence(X, target=target, perturb="weight")
    if target in ("precisions", "covariances", "scales", "covariance_prior"):
        return np.stack([unique(model, one) for one in influence])
    if target == "covariance_prior" and influence.ndim == 3:
        return influence[:, *np.triu_indices(2)]
    return influence.reshape(len(X), -1)


@catalogue
def test_it_is_the_sum_of_squared_weight_influences(model):
    estimator = fitted(model)
    influence = np.hstack([flat_influence(model, estimator, target) for target in targets_of(estimator)])
    influence -= influence.mean(axis=0)
    covariance = estimator.posterior(X, method="sandwich").covariance(targets_of(estimator))
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(
        covariance / np.outer(sd, sd), influence.T @ influence / np.outer(sd, sd), atol=1e-10
    )
    np.testing.assert_array_equal(covariance, covariance.T)


@pytest.mark.parametrize("model", MODELS[::7], ids=model_id)
def test_a_weight_is_so_many_rows(model):
    times = np.random.default_rng(0).integers(0, 3, size=len(X))
    repeated = np.repeat(X, times, axis=0)
    r = mixture(model).fit(X).predict_proba(X)
    weighted = mixture(model, init_params=r).fit(X, sample_weight=times)
    plain = mixture(model, init_params=np.repeat(r, times, axis=0)).fit(repeated)
    expected = plain.posterior(repeated, method="sandwich").covariance()
    found = weighted.posterior(X, method="sandwich", sample_weight=times).covariance()
    sd = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(found / np.outer(sd, sd), expected / np.outer(sd, sd), atol=1e-6)


def test_of_one_component_it_is_that_of_the_samples_mean_and_covariance():
    # the textbook: Cov(x)/N, and the fourth moments of x
    estimator = mixture({"prior": "flat", "reg_covar": 0.0}, n_components=1).fit(X)
    found = estimator.posterior(X, method="sandwich").covariance("means")
    np.testing.assert_allclose(found, np.cov(X.T, bias=True) / len(X), rtol=1e-10)
    centred = X - X.mean(axis=0)
    i, j = np.triu_indices(2)
    products = centred[:, i] * centred[:, j]
    products -= estimator.covariances_[0][i, j]  # in which a row of weight dw counts N + dw times
    products = products / estimator.degrees_of_freedom_[0]
    products -= products.mean(axis=0)
    found = estimator.posterior(X, method="sandwich").covariance("covariances")
    np.testing.assert_allclose(found, products.T @ products, rtol=1e-9)


def test_where_the_model_is_true_it_agrees_with_the_posterior():
    rng = np.random.default_rng(0)
    many = np.concatenate([rng.normal(size=(30_000, 2)), rng.normal(size=(20_000, 2)) * 0.7 + [2.0, 0.5]])
    estimator = mixture({"prior": "flat"}).fit(many)
    sandwich = estimator.posterior(many, method="sandwich").covariance()
    posterior = estimator.posterior_covariance_
    sd = estimator.posterior_std_
    np.testing.assert_allclose(sandwich / np.outer(sd, sd), posterior / np.outer(sd, sd), atol=0.06)


def test_where_it_is_not_the_two_part():
    heavy = np.concatenate([X, np.random.default_rng(1).standard_t(3, size=(400, 2)) * 0.7])
    estimator = mixture({"prior": "flat"}, n_components=1).fit(heavy)
    ratio = np.diag(estimator.posterior(heavy, method="sandwich").covariance("covariances")) / np.diag(
        estimator.posterior(method="lrvb").covariance("covariances")
    )
    assert ratio.max() > 1.5


def test_solvers_batches_and_threads_agree(monkeypatch):
    estimator = fitted(MODELS[0])
    expected = estimator.posterior(X, method="sandwich").covariance()
    for solver in ("primal", "dual", "matrix_free"):
        found = covariance_by(solver, estimator, method="sandwich", X=X)
        np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())
    set_sizes(monkeypatch, batch_bytes=1, most_rows=17)
    for n_jobs in (1, 2):
        estimator = mixture(MODELS[0], n_jobs=n_jobs).fit(X)
        assert_equal_to_rounding(estimator.posterior(X, method="sandwich").covariance(), expected)


def test_with_fewer_rows_than_unknowns():
    rows = np.random.default_rng(0).normal(size=(40, 8)) + 3.0 * (np.arange(40) % 2)[:, None]
    estimator = mixture({"covariance_type": "full"}).fit(rows)
    assert len(estimator.posterior_mean_) > 40
    influence = estimator.influence(rows, perturb="weight").reshape(40, -1)
    influence -= influence.mean(axis=0)
    found = estimator.posterior(rows, method="sandwich").covariance("means")
    np.testing.assert_allclose(found, influence.T @ influence, atol=1e-10 * np.abs(found).max())


def test_it_needs_the_training_rows():
    estimator = fitted(MODELS[0])
    np.testing.assert_array_equal(
        estimator.posterior(method="sandwich").covariance(),  # which a small fit has kept
        estimator.posterior(X, method="sandwich").covariance(),
    )
    with pytest.raises(ValueError, match="method='sandwich' needs the training rows: pass X"):
        pickle.loads(pickle.dumps(estimator)).posterior(method="sandwich").covariance()
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        estimator.posterior(X[:-1], method="sandwich").covariance()
