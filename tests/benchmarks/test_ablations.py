"""Ablations: every path that they switch off exists, and leads to the same numbers as the way without it."""

import dataclasses

import numpy as np
import pytest

from benchmarks.ablations import ABLATIONS, fitted


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A covariance matrix of")
@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda ablation: ablation.path)
def test_a_fit_is_the_same_without_a_special_path(ablation):
    problem = ablation.problem.scaled(1000 if ablation.problem.n_features < 64 else 200)
    problem = dataclasses.replace(problem, n_features=min(problem.n_features, 70))
    X = problem.simulate()
    mixture, std = fitted(problem, X, ablation.prior)
    with ablation.switched_off():
        other, other_std = fitted(problem, X, ablation.prior)
    assert other.lower_bound_ == pytest.approx(mixture.lower_bound_, rel=1e-10)
    np.testing.assert_allclose(other.means_, mixture.means_, rtol=1e-6, atol=1e-6 * np.ptp(X))
    np.testing.assert_allclose(other_std, std, rtol=1e-5)
