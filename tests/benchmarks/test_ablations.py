"""Ablations: every path that they switch off exists, and leads to the same numbers as the way without it."""

import dataclasses

import numpy as np
import pytest

from benchmarks.ablations import ABLATIONS, answered


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A covariance matrix of")
@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda ablation: ablation.path)
def test_a_fit_is_the_same_without_a_special_path(ablation):
    problem = ablation.problem.scaled(1000 if ablation.problem.n_features < 64 else 200)
    problem = dataclasses.replace(problem, n_features=min(problem.n_features, 70))
    X = problem.simulate()
    ablation = dataclasses.replace(ablation, problem=problem)
    mixture, answer = answered(ablation, X)
    with ablation.switched_off():
        other, other_answer = answered(ablation, X)
    assert other.lower_bound_ == pytest.approx(mixture.lower_bound_, rel=1e-10)
    np.testing.assert_allclose(other.means_, mixture.means_, rtol=1e-6, atol=1e-6 * np.ptp(X))
    np.testing.assert_allclose(other_answer, answer, rtol=1e-5)
