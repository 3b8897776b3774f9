"""The verdict of `posterior_check`, and the numbers on which it rests."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, WEIGHT_PRIORS, mixture, overlapping
from exact_evidence import LearnedPrior, clusters, learned_log_evidence_by_number
from sampling_problems import NORMAL, THETA, model_id, problem
from scipy.special import digamma

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.sampling.posterior_check import PosteriorCheck
from sklearn_lrvb.sampling.sampler import mean_shifts

WELL = PosteriorCheck(
    mean_shift=np.array([-0.02, 0.9]),
    mean_shift_error=np.zeros(2),
    log_ratio_variance=0.02,
    sd_ratio=np.array([1.1, 3.0]),
    names=np.array(["mean[0,x0]", "mean[1,x0]"]),
    is_of_occupied=np.array([True, False]),
    n_rows=100.0,
    n_occupied=1,
    n_components=1,
    n_draws=0,
)


@pytest.mark.parametrize(
    ("changes", "state", "recommendation"),
    [
        ({}, "good", "lrvb"),
        ({"mean_shift": np.array([-0.12, 0.9])}, "rough", "exact"),
        ({"log_ratio_variance": 0.2}, "rough", "exact"),
        ({"sd_ratio": np.array([0.8, 1.0])}, "rough", "exact"),
        ({"sd_ratio": np.array([1.6, 1.0])}, "wrong", "exact"),
        ({"sd_ratio": np.array([0.0, 1.0])}, "wrong", "exact"),
        ({"mean_shift": np.array([0.3, 0.9])}, "wrong", "exact"),
        ({"log_ratio_variance": 20.0}, "wrong", "exact"),
        ({"log_ratio_variance": np.nan}, "wrong", "exact"),
        ({"n_components": 2}, "good", "exact"),
    ],
)
def test_verdicts(changes, state, recommendation):
    check = replace(WELL, **changes)
    assert check.state == state
    assert check.recommendation == recommendation
    assert state in check.verdict


@pytest.mark.parametrize("model", [one for one in NORMAL if one["prior"] != "learned"], ids=model_id)
def test_both_diagnostics_are_zero_where_linear_response_is_exact(model):
    case = problem(model, 1, 30)
    shifts, errors, log_ratios = mean_shifts(case.sampler, case.rows, np.random.RandomState(0), THETA)
    np.testing.assert_allclose(shifts, 0, atol=1e-8)
    np.testing.assert_allclose(errors, 0, atol=1e-8)
    assert np.ptp(log_ratios) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_shift_is_that_of_the_exact_means(covariance_type):
    model = {"covariance_type": covariance_type, "reg_covar": 0.0}
    estimator = mixture(model).fit(overlapping(500))
    check = estimator.posterior_check(overlapping(500), random_state=0)
    table = estimator.posterior(method="exact", n_draws=2000, random_state=0).summary("all")
    exact = (table["mean"] - estimator.posterior_mean_) / estimator.posterior_std_
    assert np.abs(exact).max() > 0.03
    np.testing.assert_allclose(check.mean_shift, exact, atol=0.07 + 0.5 * np.abs(exact).max())
    assert np.corrcoef(check.mean_shift, exact)[0, 1] > 0.4


@pytest.mark.slow
def test_many_empty_components_leave_the_evidence_finite():
    X = np.random.default_rng(0).normal(size=(150, 4))
    fixed, learned = (
        LRVBGaussianMixture(n_components=10, prior=prior, random_state=0).fit(X)
        for prior in ("fixed", "learned")
    )
    check = fixed.posterior_check(X, n_draws=200, random_state=0)
    assert check.log_evidence_bound < check.log_evidence < check.log_evidence_bound + np.log(10)
    # What is learned from all components is less well known than what q makes of it.
    check = learned.posterior_check(X, n_draws=200, random_state=0)
    assert fixed.n_occupied_ == learned.n_occupied_ == 1
    assert learned.lower_bound_ < check.log_evidence_bound < check.log_evidence
    assert check.is_of_occupied.sum() == 1 + 4 + 10  # A log weight, a mean, a precision matrix.
    more = LRVBGaussianMixture(n_components=13, random_state=0).fit(X)
    assert more.posterior_check(X, n_draws=200, random_state=0).log_evidence is None


@pytest.mark.parametrize("degrees_of_freedom", [1.3, 1.01])
def test_the_evidence_is_right_near_the_least_degrees_of_freedom(degrees_of_freedom):
    # Many precisions that are drawn for the empty component are singular to working precision. It adds little
    # to the evidence of the other one, which is known: each bound is above the one before.
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = {"degrees_of_freedom_prior": degrees_of_freedom, "random_state": 0, "moves": "merge"}
    estimator = LRVBGaussianMixture(n_components=2, prior="fixed", **model).fit(X)
    assert estimator.n_occupied_ == 1
    check = estimator.posterior_check(X, n_draws=400, random_state=0)
    assert check.log_evidence_bound_error < 0.02
    assert check.log_evidence_error < 0.1
    assert estimator.lower_bound_ < check.log_evidence_bound + 3 * check.log_evidence_bound_error
    assert check.log_evidence_bound < check.log_evidence < estimator.lower_bound_ + 0.25


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_components_without_rows_change_nothing_under_a_learned_prior(covariance_type, weights):
    # By so small a concentration no row is theirs, and all weight is the first component's.
    X = np.random.default_rng(0).normal(size=(120, 3))
    model = {"covariance_type": covariance_type, "prior": "learned", "reg_covar": 0.0}
    model |= {"weight_concentration_prior_type": weights, "weight_concentration_prior": 1e-8}
    one, many = (mixture(model, n, init_params=np.repeat(np.eye(1, n), 120, axis=0)).fit(X) for n in (1, 6))
    of_one, of_many = (each.posterior_check(X, n_draws=1000, random_state=0) for each in (one, many))
    # One of six labellings is the fit's, and the evidence has all of them.
    log_share = -np.log(6.0) if weights == "dirichlet_distribution" else 0.0
    assert of_many.state == of_one.state == "good"
    assert of_many.log_evidence_bound == pytest.approx(of_one.log_evidence_bound + log_share, abs=1e-3)
    assert of_many.log_evidence == pytest.approx(of_one.log_evidence, abs=1e-3)
    assert of_many.log_ratio_variance == pytest.approx(of_one.log_ratio_variance, abs=5e-3)
    assert of_many.effective_draws == pytest.approx(of_one.effective_draws, rel=0.01)


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
def test_tails_of_components_without_rows_change_nothing_under_a_learned_prior(weights):
    X = np.random.default_rng(0).standard_t(5.0, size=(300, 2))
    model = {"tails": "student_by_component", "reg_covar": 0.0, "prior": "learned"}
    model |= {"weight_concentration_prior_type": weights, "weight_concentration_prior": 1e-8}
    one, many = (mixture(model, n, init_params=np.repeat(np.eye(1, n), 300, axis=0)).fit(X) for n in (1, 4))
    of_one, of_many = (each.posterior_check(X, n_draws=8000, random_state=0) for each in (one, many))
    assert of_many.state != "wrong"
    errors = np.hypot(of_one.log_evidence_error, of_many.log_evidence_error)
    assert of_many.log_evidence == pytest.approx(of_one.log_evidence, abs=4.0 * errors)
    assert of_many.effective_draws == pytest.approx(of_one.effective_draws, rel=0.1)
    # Their means are those of log nu under its prior, exponential with mean 10.
    exact = many.posterior_mean_ + of_many.mean_shift * many.posterior_std_
    without_rows = np.isin(of_many.names, ["log_tail[1]", "log_tail[2]", "log_tail[3]"])
    assert exact[without_rows].mean() == pytest.approx(digamma(1.0) + np.log(10.0), abs=0.2)


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
def test_surplus_components_hardly_count_in_the_check_of_a_learned_prior(weights):
    X = np.random.default_rng(0).normal(size=(600, 2))
    X[300:] += 8.0
    model = {"weight_concentration_prior_type": weights, "random_state": 0}
    estimator = LRVBGaussianMixture(n_components=6, prior="learned", **model).fit(X)
    assert estimator.n_occupied_ == 2
    # Not 41, as where components without rows are drawn from q. Its standard error is of this size.
    assert estimator.posterior_check(X, random_state=0).log_ratio_variance < 0.5


@pytest.mark.slow
def test_the_means_of_components_without_rows_are_those_of_the_exact_posterior():
    X = np.random.default_rng(0).normal(size=(120, 2))
    start = np.repeat(np.eye(1, 4), 120, axis=0)
    model = {"prior": "learned", "weight_concentration_prior": 1e-8}
    estimator = mixture(model, 4, init_params=start).fit(X)
    check = estimator.posterior_check(X, random_state=0)
    draws = estimator.posterior(X, method="exact", random_state=0).sample(4000)["precisions"]
    exact = draws[(..., *np.triu_indices(2))].reshape(len(draws), -1)
    names = np.char.startswith(check.names, "precision")
    shift = (exact.mean(axis=0) - estimator.posterior_mean_[names]) / estimator.posterior_std_[names]
    assert np.abs(shift).max() > 0.5
    assert np.corrcoef(check.mean_shift[names], shift)[0, 1] > 0.7
    error = check.mean_shift_error[names]
    assert (np.abs(check.mean_shift[names] - shift) < 4.0 * error + 0.15).all()


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize("concentration", [1e-8, 1e-12])
def test_the_evidence_is_right_where_the_weights_of_empty_components_underflow(weights, concentration):
    X = np.random.default_rng(0).normal(size=(120, 2))
    model = {"weight_concentration_prior_type": weights, "weight_concentration_prior": concentration}
    start = np.repeat(np.eye(1, 3), 120, axis=0)
    estimator = mixture(model, 3, prior="fixed", init_params=start).fit(X)
    check = estimator.posterior_check(X, n_draws=200, random_state=0)
    # All weight is the first component's, whose posterior is exact.
    copies = np.log(3.0) if weights == "dirichlet_distribution" else 0.0
    assert check.log_evidence_bound == pytest.approx(estimator.lower_bound_, abs=1e-6)
    assert check.log_evidence == pytest.approx(estimator.lower_bound_ + copies, abs=1e-6)
    assert np.abs(check.mean_shift).max() < 1e-6


@pytest.mark.parametrize(
    ("covariance_type", "n_features", "distance"),
    [("full", 1, 20.0), pytest.param("spherical", 2, 20.0, marks=pytest.mark.slow)],
)
def test_the_evidence_is_exact_under_a_learned_prior(covariance_type, n_features, distance):
    X = clusters(8, n_features, distance)
    prior = LearnedPrior.of(covariance_type, X)
    exact = learned_log_evidence_by_number(X, prior, 3)  # The third one holds no rows.
    for n_components, expected in enumerate(exact, 1):
        estimator = mixture(prior.arguments, n_components).fit(X)
        check = estimator.posterior_check(X, n_draws=4000, random_state=0)
        assert estimator.lower_bound_ < check.log_evidence_bound < check.log_evidence
        assert check.log_evidence == pytest.approx(expected, abs=0.02 + 3.0 * check.log_evidence_error)
        # One component has no labels to miss.
        assert estimator.log_evidence_ == pytest.approx(expected, abs=0.02) or n_components > 1


def test_concentrations_without_digits_for_the_exact_posterior_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 2))
    for concentration in (1e-20, 1e20):
        estimator = LRVBGaussianMixture(
            n_components=2, weight_concentration_prior=concentration, random_state=0
        ).fit(X)
        with pytest.raises(ValueError, match=r"weight_concentration_prior is 1e.20; the exact posterior"):
            estimator.posterior_check(X, n_draws=200)
        with pytest.raises(ValueError, match=r"weight_concentration_prior is 1e.20; the exact posterior"):
            estimator.posterior(X, method="exact").sample()


@pytest.mark.filterwarnings("ignore:sample_weight sums to 2.1 over 60 rows")
def test_rows_that_count_next_to_nothing_are_checked():
    X = np.random.default_rng(0).normal(size=(60, 2))
    prior = {"covariance_prior": np.eye(2), "weight_concentration_prior": 1e3}
    estimator = LRVBGaussianMixture(n_components=6, **prior, moves=None, random_state=0)
    few = np.full(60, 0.035)
    check = estimator.fit(X, sample_weight=few).posterior_check(X, sample_weight=few)
    assert check.n_occupied == 0
    assert np.isfinite(check.mean_shift).all()


@pytest.mark.slow
def test_names_of_features_and_large_numbers_are_displayed():
    import pandas as pd

    frame = pd.DataFrame(overlapping(20_000), columns=["wait", "length"])
    estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(frame)
    shown = repr(estimator.posterior_check(frame, random_state=0))
    assert "wait" in shown or "length" in shown or "log_weight" in shown
    assert "20000, 12" in shown
