"""Standard errors by peers: each reports what it says about the parameters that we name."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from benchmarks.accuracy import peers
from benchmarks.analysis.parameter_vectors import flat, split
from benchmarks.harness.measuring import Settings
from benchmarks.problems.clusters import PROBLEMS
from benchmarks.problems.near_flat_prior import NearFlatPrior
from benchmarks.rivals import gibbs_references, rscript
from benchmarks.rivals.standard_errors import ways
from benchmarks.rivals.standard_errors.bootstraps import Bootstrap, Mclust
from benchmarks.rivals.standard_errors.gibbs import Gibbs
from benchmarks.rivals.standard_errors.nuts import Nuts
from benchmarks.rivals.standard_errors.protocol import Effort, Task
from benchmarks.rivals.standard_errors.unconstrained import UnconstrainedPosterior


def _few_rows(n_components):
    """Rows of three clusters, a prior with an effect, and our fit of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) @ [[1.0, 0.4], [0.0, 0.7]] + np.repeat(np.eye(3)[:, :2] * 5, 30, axis=0)
    prior = NearFlatPrior(n_components, np.array([1.0, 2.0]), 0.5, np.array([[2.0, 0.3], [0.3, 1.0]]), 1.7)
    return X, prior, prior.fitted(X)


def _log_joint(parameters, X, prior):
    """Log density of pi, mu, Lambda and the rows, (pi, mu, Lambda) being a vector (D,)."""
    log_weights, means, precisions = (
        part[0] for part in split(parameters[None], prior.n_components, X.shape[1])
    )
    found = stats.dirichlet.logpdf(np.exp(log_weights), np.full(prior.n_components, prior.concentration))
    densities = []
    for log_weight, mean, precision in zip(log_weights, means, precisions, strict=True):
        covariance = np.linalg.inv(precision)
        found += stats.wishart.logpdf(precision, prior.degrees_of_freedom, np.linalg.inv(prior.scale))
        found += stats.multivariate_normal.logpdf(mean, prior.mean, covariance / prior.mean_precision)
        densities.append(log_weight + stats.multivariate_normal.logpdf(X, mean, covariance))
    return found + logsumexp(densities, axis=0).sum()


def _log_determinant(posterior, vector, n_components):
    """Of the map to pi_1 to pi_K-1, mu and Lambda, by central differences."""

    def mapped(vector):
        parameters = posterior.constrained(vector)
        return np.concatenate([np.exp(parameters[: n_components - 1]), parameters[n_components:]])

    steps = 1e-5 * np.eye(posterior.size)
    return np.linalg.slogdet([(mapped(vector + step) - mapped(vector - step)) / 2e-5 for step in steps])[1]


@pytest.mark.parametrize("n_components", (2, 3))
def test_what_nuts_samples_is_the_posterior_with_the_assignments_summed_out(n_components):
    X, prior, optimum = _few_rows(n_components)
    posterior = UnconstrainedPosterior(X, prior, optimum)
    rng = np.random.default_rng(0)
    vectors = 2.0 * rng.normal(size=(8, posterior.size))
    determinants = np.array([_log_determinant(posterior, vector, n_components) for vector in vectors])
    expected = determinants + [_log_joint(posterior.constrained(vector), X, prior) for vector in vectors]
    found = np.array([posterior.log_density(vector, np) for vector in vectors])
    assert expected.std() > 5
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-6)
    jacobians = np.array([posterior.log_jacobian(vector, np) for vector in vectors])
    np.testing.assert_allclose(jacobians - jacobians[0], determinants - determinants[0], atol=1e-6)


@pytest.mark.slow
def test_nuts_starts_at_the_optimum_in_units_of_mean_field_sds():
    X, prior, optimum = _few_rows(2)
    posterior = UnconstrainedPosterior(X, prior, optimum)
    start = split(posterior.constrained(np.zeros(posterior.size))[None], 2, 2)
    for found, expected in zip(
        start, (np.log(optimum.weights_), optimum.means_, optimum.precisions_), strict=True
    ):
        np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    draws = np.array([posterior.constrained(v) for v in np.random.default_rng(0).normal(size=(4000, 11))])
    mean_field = np.sqrt(np.diag(optimum.posterior(method="mean_field").covariance()))
    np.testing.assert_allclose(draws.std(axis=0), mean_field, rtol=0.1)


class ShuffledMixture(GaussianMixture):
    """A mixture whose components come in any order."""

    def fit(self, X):
        super().fit(X)
        order = np.random.default_rng(self.random_state).permutation(self.n_components)
        for name in ("weights_", "means_", "precisions_"):
            setattr(self, name, getattr(self, name)[order])
        return self


def test_a_bootstrap_matches_labels_that_come_in_any_order():
    X, prior, optimum = _few_rows(3)
    task = Task(X, prior, optimum, Effort(n_replicates=6))
    found = Bootstrap("shuffled", ShuffledMixture).standard_errors(task)
    expected = Bootstrap("plain", GaussianMixture).standard_errors(task)
    np.testing.assert_allclose(found.sds, expected.sds, rtol=1e-12)
    np.testing.assert_allclose(np.median(found.sds / optimum.posterior_std_), 1.0, atol=0.5)


def test_replicates_of_mclust_are_read_by_columns_and_in_our_order(monkeypatch):
    X, prior, optimum = _few_rows(3)
    rng = np.random.default_rng(0)
    order, n_replicates = [2, 0, 1], 5
    weights = optimum.weights_ * rng.uniform(0.9, 1.1, size=(n_replicates, 3))
    means = optimum.means_ + 0.1 * rng.normal(size=(n_replicates, 3, 2))
    covariances = optimum.covariances_ * rng.uniform(0.9, 1.1, size=(n_replicates, 3, 1, 1))
    left = {
        "weights": weights[:, order],
        "means": means[:, order].transpose(0, 2, 1),
        "covariances": covariances[:, order].transpose(0, 2, 3, 1),
        "seconds": np.array([3.0]),
    }
    stored = {name: values.ravel(order="F") for name, values in left.items()}
    monkeypatch.setattr(rscript, "run", lambda script, arrays, arguments: stored)
    found = Mclust().standard_errors(Task(X, prior, optimum, Effort(n_replicates)))
    expected = flat(np.log(weights), means, np.linalg.inv(covariances)).std(axis=0, ddof=1)
    np.testing.assert_allclose(found.sds, expected, rtol=1e-10)
    assert found.seconds == 3.0


@pytest.mark.slow
def test_what_is_not_installed_is_left_out_and_it_is_said(monkeypatch, capsys):
    for way in (Nuts, Mclust, Gibbs):
        monkeypatch.setattr(way, "missing", lambda self: f"get {self.name}")
    rows = list(peers.measure(Settings(quick=True)))
    printed = capsys.readouterr().out
    for name in ("NUTS, numpyro", "mclust + bootstrap", "Gibbs, bayesm"):
        assert f"{name} is left out: get {name}" in printed
        assert name not in {row["way"] for row in rows}
    assert len(rows) == 6
    text = peers.section([row | {"mode": "quick"} for row in rows])
    assert "No sampler was installed" in text
    assert "relative to those by the sandwich covariance" in text
    assert text.count(f"| {10**-0.5:.1%} |") == 3  # of a bootstrap with 5 replicates


@pytest.mark.slow
def test_without_a_stored_chain_there_are_times_alone(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(gibbs_references, "stored", dict)
    monkeypatch.setattr(ways, "WAYS", ways.WAYS[:1])
    problem = dataclasses.replace(PROBLEMS["plane"], n_samples=500)
    monkeypatch.setattr(Settings, "problems", lambda settings, names: [problem])
    (row,) = peers.measure(Settings(repeats=1))
    assert "gibbs_references plane" in capsys.readouterr().out
    assert row["seconds"] == row["ours_seconds"]
    assert "| plane | 500, 2, 2 | ours |" in peers.section([row | {"mode": "full"}])
    peers.draw([row], tmp_path / "none.png")
