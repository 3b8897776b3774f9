"""Acceleration: the coordinates it works in, what it saves, and how it gives way where it does not help."""

import numpy as np
import pytest
from catalogue import (
    MODELS,
    MOST_MODELS,
    fitted,
    mixture,
    model_id,
    newton_decrement,
    overlapping,
    posterior_of,
    rows_of,
    three_blobs,
)

from benchmarks.problems.clusters import PROBLEMS
from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.mixture.acceleration import Acceleration
from sklearn_lrvb.mixture.e_step import e_step


@pytest.mark.parametrize("model", MOST_MODELS, ids=model_id)
def test_statistics_are_what_a_step_takes(model):
    goal = posterior_of(fitted(model))
    start = mixture(model, init_params=0.9 * np.eye(2)[np.arange(240) // 160] + 0.05, max_iter=0)
    reference = posterior_of(start.fit(overlapping()))
    there = reference.after_step(reference.difference(goal))
    np.testing.assert_allclose(there.counts, goal.counts, rtol=1e-11)
    np.testing.assert_allclose(there.centred_means, goal.centred_means, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(there.covariance_cholesky, goal.covariance_cholesky, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(reference.difference(reference), 0, atol=1e-9)


def test_proposals_get_further_than_as_many_iterations():
    X = three_blobs()
    with pytest.warns(UserWarning, match="did not converge"):
        begun = mixture({}, 3, solver="coordinate_ascent", max_iter=8, tol=0.0).fit(X)
    rows = rows_of(begun, X)
    optimum = posterior_of(mixture({}, 3).fit(X))
    plain = accelerated = posterior_of(begun)
    acceleration = Acceleration()
    for _ in range(10):
        plain, result = (q.m_step(e_step(rows, q).moments) for q in (plain, accelerated))
        accelerated = acceleration.proposal(accelerated, result) or result
    result, proposed = (np.abs(q.centred_means - optimum.centred_means).max() for q in (plain, accelerated))
    assert proposed < 0.1 * result


def test_a_rejected_proposal_is_followed_by_a_pause_that_is_longer_each_time():
    posterior = posterior_of(fitted(MODELS[0]))
    nearby = posterior.after_step(0.01 * np.ones(posterior.structure.layout.n_coefficients))
    acceleration = Acceleration()

    def steps_until_a_proposal():
        for n_steps in range(1, 20):
            acceleration.record(1.0)
            if acceleration.proposal(posterior, nearby) is not None:
                return n_steps
        raise AssertionError("no proposal")

    waits = [steps_until_a_proposal()]
    for _ in range(5):
        acceleration.reject()
        waits.append(steps_until_a_proposal())
    assert waits == [2, 2, 3, 7, 7, 7]
    acceleration.accept()
    acceleration.reject()
    assert steps_until_a_proposal() == 2


def test_steps_to_go_follow_the_rate():
    acceleration = Acceleration()
    assert acceleration.steps_to_go(1e-6) == np.inf
    for power in range(4):
        acceleration.record(10.0**-power)
    assert acceleration.steps_to_go(1e-6) == pytest.approx(3)
    assert acceleration.steps_to_go(1e-2) == 0
    for _ in range(6):
        acceleration.record(1e-3)
    assert acceleration.steps_to_go(1e-6) == np.inf
    assert not acceleration.has_stalled()
    for _ in range(4):
        acceleration.record(1e-3)
    assert acceleration.has_stalled()


def test_newton_is_bought_where_acceleration_has_cost_half_as_much_and_more_is_foreseen():
    posterior, slow, fast = posterior_of(fitted(MODELS[0])), Acceleration(), Acceleration()
    for number in range(9):
        slow.record(0.7**number)
        fast.record(0.1**number)
    assert not slow.newton_pays(1.0)  # Acceleration has not been tried.
    for acceleration in (slow, fast):
        for _ in range(7):
            acceleration.proposal(posterior, posterior)
    assert slow.newton_pays(14)  # 7 steps made, some 57 to go
    assert not slow.newton_pays(15)
    assert fast.newton_pays(0.3)  # one to go
    assert not fast.newton_pays(0.5)


# What makes the fit fast: counts of steps on the problems that the benchmarks time.

STEPS = {
    # rows, most steps of the default, least of plain iterations to a gain of 1e-8
    "plane-equal": (4000, 55, 1500),
    "plane-unequal": (4000, 20, 300),
    "plane": (4000, 14, 120),
    "plane-separated": (4000, 7, 4),
    "five": (4000, 95, 150),
    "five-separated": (4000, 10, 4),
    "digits": (3000, 22, 16),
    "twenty-diagonal": (3000, 30, 10),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_steps_on_the_problems_of_the_benchmarks(name):
    n_rows, most, least = STEPS[name]
    problem = PROBLEMS[name].scaled(n_rows)
    X = problem.simulate()
    shared = {"n_components": problem.n_components, "covariance_type": problem.covariance_type}
    newton = LRVBGaussianMixture(**shared, random_state=0, max_iter=most).fit(X)
    assert newton.converged_
    assert newton_decrement(newton) < 1e-6
    iterations = LRVBGaussianMixture(
        **shared, random_state=0, solver="coordinate_ascent", tol=1e-8, max_iter=20_000
    ).fit(X)
    assert iterations.n_iter_ > least
    assert newton.lower_bound_ > iterations.lower_bound_ - 1e-3
