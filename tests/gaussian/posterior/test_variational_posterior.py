"""The lower bound: its units, and that it is highest at the fixed point."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import (
    MODELS,
    MOST_MODELS,
    fitted,
    mixture,
    model_id,
    overlapping,
    posterior_of,
    rows_of,
    unique,
)

from sklearn_lrvb.gaussian.posterior.variational_posterior import Moments
from sklearn_lrvb.mixture.e_step import e_step

catalogue = pytest.mark.parametrize("model", MOST_MODELS, ids=model_id)


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
    posterior = posterior_of(estimator)
    rows = rows_of(estimator, overlapping())
    best = e_step(rows, posterior).lower_bound
    assert best == pytest.approx(estimator.lower_bound_, rel=1e-13)
    rng = np.random.default_rng(0)
    for _ in range(10):
        shift = rng.normal(size=2)
        moved = replace(
            posterior,
            counts=posterior.counts + np.array([1, -1]) * shift[0],
            centred_means=posterior.centred_means + 0.02 * rng.normal(size=(2, 2)),
            covariance_cholesky=posterior.structure.composed(
                posterior.covariance_cholesky, (1.0 + 0.01 * shift[0]) * posterior.structure.identity
            ),
        )
        bound = e_step(rows, moved).lower_bound
        assert bound < best
        # and by second order only
        assert bound > best - 5.0


def test_moved_round_trip():
    posterior = posterior_of(fitted(MODELS[0]))
    change = np.random.default_rng(0).normal(size=(2, 2))
    second = posterior.effective_degrees_of_freedom[:, None, None] * np.eye(2)
    moments = Moments(posterior.counts, 0 * change, second)
    same = posterior.m_step(moments)
    np.testing.assert_allclose(same.centred_means, posterior.centred_means, rtol=1e-14)
    np.testing.assert_allclose(same.covariance_cholesky, posterior.covariance_cholesky, rtol=1e-14)
    # moments about another point: first = tau d, second = c I + tau d d'
    tau = posterior.mean_precision
    shifted = posterior.m_step(
        Moments(
            posterior.counts,
            tau[:, None] * change,
            second + tau[:, None, None] * change[:, :, None] * change[:, None, :],
        )
    )
    expected = posterior.centred_means + np.einsum("kpq,kq->kp", posterior.covariance_cholesky, change)
    np.testing.assert_allclose(shifted.centred_means, expected, rtol=1e-13)
    np.testing.assert_allclose(
        shifted.covariance_cholesky, posterior.covariance_cholesky, rtol=1e-12, atol=1e-14
    )
