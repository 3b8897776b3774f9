"""Means and variances that do not exist are called so: against sums over all assignments."""

import warnings

import numpy as np
import pytest
from covariance_types import TYPES
from sampling_problems import labels_and_probabilities

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture


def cluster_in_noise(nu0, n_rows, spread=1.0, noise=-1.6):
    """A cluster that may lose its rows to the noise if they are few; X (n_rows, 1)."""
    X = spread * np.random.default_rng(1).normal(size=(n_rows, 1))
    prior = {"degrees_of_freedom_prior": nu0, "covariance_prior": [[1.0]], "mean_precision_prior": 0.5}
    mixture = LRVBGaussianMixture(
        noise=noise,
        reg_covar=0.0,
        mean_prior=[0.0],
        random_state=0,
        weight_concentration_prior_type="dirichlet_distribution",
        **prior,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "noise=-1.. is .* above the log density")
        return mixture.fit(X), X


def summed(mixture, X):
    """Rows of the cluster under all assignments, their probabilities, and moments of mean and variance.

    Given the assignments, the mean is Student's t and the variance inverse gamma.
    """
    labels, probabilities = labels_and_probabilities(mixture, X)
    is_in = labels == 0
    n, b0 = is_in.sum(axis=1), mixture.mean_precision_prior_
    freedom = mixture.degrees_of_freedom_prior_ + n
    mean = is_in @ X[:, 0] / (b0 + n)
    squares = 1.0 + np.where(is_in, np.square(X[:, 0] - mean[:, None]), 0.0).sum(axis=1) + b0 * mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(freedom > 2, squares / (freedom - 2.0), np.inf)
        of_mean = np.where(freedom > 2, variance / (b0 + n), np.inf)
        of_variance = np.where(freedom > 4, 2.0 * variance**2 / (freedom - 4.0), np.inf)
    return n, probabilities, (mean, of_mean), (variance, of_variance)


def mixed(probabilities, means, variances):
    """Mean and standard deviation of a mixture."""
    mean = probabilities @ means
    return mean, np.sqrt(probabilities @ (variances + np.square(means - mean)))


def rows_of(mixture, X):
    table = mixture.posterior(X, method="exact", random_state=0).summary(
        ["means", "covariances", "standard_deviations"]
    )
    return table, *(table.loc[name] for name in ("mean[0,x0]", "covariance[0,x0,x0]"))


def test_what_has_a_variance_has_that_of_the_sum_over_assignments():
    mixture, X = cluster_in_noise(6.0, 9)
    n, probabilities, of_mean, of_variance = summed(mixture, X)
    assert probabilities[n <= 1].sum() > 0.003
    table, *found = rows_of(mixture, X)
    assert "median" not in table
    for row, expected in zip(found, (of_mean, of_variance), strict=True):
        mean, sd = mixed(probabilities, *expected)
        assert abs(row["mean"] - mean) < 0.1 * sd
        assert row["sd"] == pytest.approx(sd, rel=0.15)


def test_what_may_lose_its_rows_has_no_variance():
    mixture, X = cluster_in_noise(1.0, 9, noise=-1.4)
    n, probabilities, of_mean, of_variance = summed(mixture, X)
    assert probabilities[n <= 1].sum() > 0.01  # The prior then decides: with one degree of freedom, or two.
    assert np.isinf(of_mean[1][n <= 1]).all() and np.isinf(of_variance[1][n <= 1]).all()
    table, mean, variance = rows_of(mixture, X)
    assert np.isnan(mean["mean"]) and variance["mean"] == np.inf
    for row in (mean, variance, table.loc["sd[0,x0]"]):
        assert row["sd"] == np.inf and np.isnan(row["ratio"])
        assert row["lower"] < row["median"] < row["upper"] < np.inf
    assert "mean[0,x0] and 2 more have no variance" in table.attrs["note"]
    entry = mixture.posterior(X, method="exact", random_state=0).summary("mean[0,x0] - weight[0]")
    assert np.isinf(entry["sd"].item()) and np.isnan(entry["mean"].item())
    assert " inf " in repr(table) and "NaN" in repr(table)
    covariance = mixture.posterior(X, method="exact", random_state=0).covariance(["weights", "means"])
    assert covariance[2, 2] == np.inf and np.isnan(covariance[2, :2]).all()
    assert np.isfinite(covariance[:2, :2]).all()


def test_what_cannot_lose_its_rows_but_in_theory_keeps_its_numbers():
    mixture, X = cluster_in_noise(1.0, 12, spread=0.3, noise=-3.0)
    n, probabilities, of_mean, of_variance = summed(mixture, X)
    enough = n > 3
    assert 0 < probabilities[~enough].sum() < 1e-4
    probabilities = np.where(enough, probabilities, 0.0) / probabilities[enough].sum()
    table, *found = rows_of(mixture, X)
    assert "median" not in table
    for row, (means, variances) in zip(found, (of_mean, of_variance), strict=True):
        _, sd = mixed(probabilities[enough], means[enough], variances[enough])
        assert row["sd"] == pytest.approx(sd, rel=0.15)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_by_linear_response_the_rows_under_q_decide(covariance_type):
    X = np.random.default_rng(0).normal(size=(40, 2))
    mixture = LRVBGaussianMixture(n_components=3, covariance_type=covariance_type, random_state=0).fit(X)
    table = mixture.posterior(method="lrvb").summary("means", min_count=0)
    freedom = np.resize(mixture.degrees_of_freedom_, 3)
    block = TYPES[covariance_type].block_size(2)
    has_variance = np.repeat(freedom > block + 1, 2)
    np.testing.assert_array_equal(np.isfinite(table["sd"]), has_variance)
    np.testing.assert_array_equal(np.isfinite(table["mean_field_sd"]), has_variance)
    np.testing.assert_array_equal(np.isfinite(table["mean"]), np.repeat(freedom > block, 2))
    if TYPES[covariance_type].is_shared:
        assert has_variance.all()


@pytest.mark.slow
def test_a_class_that_may_be_empty_has_no_variance():
    X = np.random.default_rng(0).normal(size=(12, 2))
    classes = LRVBLatentClassMixture(n_components=2, random_state=0).fit(X)
    table = classes.posterior(X, method="exact", random_state=0).summary(min_count=0)
    of_numbers = table.index.str.startswith(("mean", "sd"))
    assert np.isinf(table["sd"][of_numbers]).any()
    assert np.isfinite(table["sd"][~of_numbers]).all()
    assert np.isfinite(table["median"]).all() and np.isfinite(table[["lower", "upper"]]).all(axis=None)
    certain = LRVBLatentClassMixture(n_components=2, degrees_of_freedom_prior=3.0, random_state=0).fit(X)
    assert "median" not in certain.posterior(X, method="exact", random_state=0).summary(min_count=0)


@pytest.mark.parametrize("seed", range(4))
def test_the_variance_of_three_rows_is_infinite_whatever_the_round_off(seed):
    X = np.random.default_rng(seed).normal(size=(3, 2))  # Two columns need more than three rows.
    table = LRVBGaussianMixture().fit(X).posterior(method="lrvb").summary("covariances")
    assert np.isinf(table["sd"]).all()
