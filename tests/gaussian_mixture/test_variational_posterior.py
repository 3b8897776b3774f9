"""The lower bound: exact where the posterior is, and highest at the fixed point."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import MODELS, fitted, mixture, model_id, overlapping, three_blobs, unique
from scipy.special import betaln, logsumexp, multigammaln

from sklearn_lrvb.gaussian_mixture.sweep import sweep
from sklearn_lrvb.gaussian_mixture.variational_posterior import Moments
from sklearn_lrvb.row_blocks import CentredRows

catalogue = pytest.mark.parametrize("model", MODELS, ids=model_id)


def normal_wishart_log_evidence(X, b0, m0, nu0, C0):
    """log p(X) of one Gaussian under its conjugate prior, in closed form."""
    n, p = X.shape
    mean = X.mean(axis=0)
    centred = X - mean
    A = C0 + centred.T @ centred + b0 * n / (b0 + n) * np.outer(mean - m0, mean - m0)
    return (
        -0.5 * n * p * np.log(np.pi)
        + 0.5 * p * np.log(b0 / (b0 + n))
        + multigammaln(0.5 * (nu0 + n), p)
        - multigammaln(0.5 * nu0, p)
        + 0.5 * nu0 * np.linalg.slogdet(C0)[1]
        - 0.5 * (nu0 + n) * np.linalg.slogdet(A)[1]
    )


PRIOR = {
    "mean_precision_prior": 0.7,
    "mean_prior": [0.3, -1.0, 0.5],
    "degrees_of_freedom_prior": 4.5,
    "covariance_prior": np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]]),
    "reg_covar": 0.0,
}


def exact_evidence(X):
    return normal_wishart_log_evidence(
        X,
        PRIOR["mean_precision_prior"],
        np.array(PRIOR["mean_prior"]),
        PRIOR["degrees_of_freedom_prior"],
        PRIOR["covariance_prior"],
    )


@pytest.mark.parametrize("n_samples", [5, 300])
def test_one_component_gives_the_exact_log_evidence(n_samples):
    X = three_blobs(n_samples)
    model = {**PRIOR, "weight_concentration_prior_type": "dirichlet_distribution"}
    bound = mixture(model, 1).fit(X).lower_bound_
    assert bound == pytest.approx(exact_evidence(X), rel=1e-13, abs=1e-10)


def test_one_stick_costs_the_chance_that_every_row_breaks_off_first():
    # the Dirichlet process keeps mass for components never opened: p(all z = 1) = B(1 + N, gamma)/B(1, gamma)
    X, gamma = three_blobs(50), 0.4
    bound = mixture({**PRIOR, "weight_concentration_prior": gamma}, 1).fit(X).lower_bound_
    chance = betaln(1 + len(X), gamma) - betaln(1, gamma)
    assert bound == pytest.approx(exact_evidence(X) + chance, rel=1e-13, abs=1e-10)


def test_independent_factors_are_a_looser_bound():
    X = three_blobs(40)
    model = {**PRIOR, "weight_concentration_prior_type": "dirichlet_distribution"}
    bound = mixture({**model, "factorization": "independent"}, 1).fit(X).lower_bound_
    assert exact_evidence(X) - 0.5 < bound < exact_evidence(X) - 1e-3


@pytest.mark.parametrize("factorization", ["joint", "independent"])
def test_two_components_bound_the_exact_evidence(factorization):
    # 7 rows: the evidence is a sum over all 2^7 assignments
    X = three_blobs(7)
    alpha = 0.8
    model = {
        **PRIOR,
        "weight_concentration_prior_type": "dirichlet_distribution",
        "weight_concentration_prior": alpha,
        "factorization": factorization,
    }
    terms = []
    for code in range(2**7):
        first = np.array([code >> n & 1 for n in range(7)], dtype=bool)
        counts = np.array([first.sum(), (~first).sum()])
        parts = [
            normal_wishart_log_evidence(
                X[part], 0.7, np.array(PRIOR["mean_prior"]), 4.5, PRIOR["covariance_prior"]
            )
            if part.any()
            else 0.0
            for part in (first, ~first)
        ]
        weights = betaln(*(alpha + counts)) - betaln(alpha, alpha)
        terms.append(sum(parts) + weights)
    bound = mixture(model, 2, init_params="random", n_init=5).fit(X).lower_bound_
    # the optimum sits in one of two labellings of the modes
    assert logsumexp(terms) - 5.0 < bound < logsumexp(terms)


@catalogue
def test_lower_bound_does_not_depend_on_units_but_through_the_density(model):
    X, scale = overlapping(), 1e3
    scaled = {**model, "reg_covar": model["reg_covar"] * scale**2}
    here, there = mixture(model).fit(X), mixture(scaled).fit(X * scale)
    # flat priors are constant in mu (P powers of the unit a component) and Lambda (-2 for every free entry)
    n_free = unique(model, here.precisions_).size
    jacobian = (2 * 2 - 2 * n_free) * np.log(scale) if model["prior"] == "flat" else 0.0
    density = -len(X) * 2 * np.log(scale)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_ + density + jacobian, rel=1e-12)


@catalogue
def test_the_fixed_point_is_where_the_lower_bound_is_highest(model):
    estimator = fitted(model)
    posterior = estimator._uncertainty.map.posterior
    rows = CentredRows(overlapping(), estimator._uncertainty.map.origin)
    best = sweep(rows, posterior).lower_bound
    assert best == pytest.approx(estimator.lower_bound_, rel=1e-13)
    rng = np.random.default_rng(0)
    for _ in range(10):
        shift = rng.normal(size=2)
        moved = replace(
            posterior,
            counts=posterior.counts + np.array([1, -1]) * shift[0],
            offsets=posterior.offsets + 0.02 * rng.normal(size=(2, 2)),
            roots=posterior.structure.composed(
                posterior.roots, (1.0 + 0.01 * shift[0]) * posterior.structure.one
            ),
        )
        bound = sweep(rows, moved).lower_bound
        assert bound < best
        # and by second order only
        assert bound > best - 5.0


def test_moved_round_trip():
    posterior = fitted(MODELS[0])._uncertainty.map.posterior
    change = np.random.default_rng(0).normal(size=(2, 2))
    second = posterior.information[:, None, None] * np.eye(2)
    moments = Moments(posterior.counts, 0 * change, second)
    same = posterior.moved(moments)
    np.testing.assert_allclose(same.offsets, posterior.offsets, rtol=1e-14)
    np.testing.assert_allclose(same.roots, posterior.roots, rtol=1e-14)
    # moments about another point: first = tau d, second = c I + tau d d'
    tau = posterior.mean_precision
    shifted = posterior.moved(
        Moments(
            posterior.counts,
            tau[:, None] * change,
            second + tau[:, None, None] * change[:, :, None] * change[:, None, :],
        )
    )
    expected = posterior.offsets + np.einsum("kpq,kq->kp", posterior.roots, change)
    np.testing.assert_allclose(shifted.offsets, expected, rtol=1e-13)
    np.testing.assert_allclose(shifted.roots, posterior.roots, rtol=1e-12, atol=1e-14)
