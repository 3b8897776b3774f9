"""What a fitted posterior reports: shapes, names, draws, and errors for invalid requests."""

import re

import numpy as np
import pytest
from mean_field.catalogue import CATALOGUE, built, fitted, mixture_terms, statistics_of

from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term, response
from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal


def test_names_follow_the_flat_vector():
    posterior = fitted("normal mixture")
    names = posterior.names
    assert names[:6] == (
        "mu.value[0,0]",
        "mu.value[0,1]",
        "mu.outer[0,0,0]",
        "mu.outer[0,0,1]",
        "mu.outer[0,1,0]",
        "mu.outer[0,1,1]",
    )
    assert names[6] == "mu.value[1,0]"
    assert names[-1] == "z.indicator[15,1]"
    assert fitted("pumps").names[-2:] == ("beta.value", "beta.log")
    V = posterior.mean_field_covariance()
    expected = posterior.mean("z")[15, 1] * posterior.mean("z")[15, 0]
    assert V[-1, -1] == pytest.approx(expected)


def test_mean_and_std_have_the_statistics_shape():
    posterior = fitted("normal mixture")
    for statistic, shape in {
        "mu.value": (2, 2),
        "mu.outer": (2, 2, 2),
        "sticks.log": (2,),
        "z": (16, 2),
    }.items():
        assert posterior.mean(statistic).shape == posterior.std(statistic).shape == shape
    assert fitted("pumps").std("beta.value").shape == ()
    outer = np.einsum("kp,kq->kpq", posterior.mean("mu.value"), posterior.mean("mu.value"))
    spread = posterior.mean("mu.outer") - outer
    np.testing.assert_allclose(spread, spread.swapaxes(1, 2), atol=1e-14)
    assert np.all(np.linalg.eigvalsh(spread) > 0)


@pytest.mark.parametrize("method", ["lrvb", "mean_field"])
def test_covariance_stacks_what_is_asked_for(method):
    posterior = fitted("normal mixture")
    everything = posterior.covariance(*posterior.factors, method=method)
    where = {name: i for i, name in enumerate(posterior.names)}
    asked = ["Lambda.log_det", "mu.value", "z"]
    found = posterior.covariance(*asked, method=method)
    labels = [f"Lambda.log_det[{k}]" for k in range(2)]
    labels += [f"mu.value[{k},{p}]" for k in range(2) for p in range(2)]
    labels += [f"z.indicator[{n},{k}]" for n in range(16) for k in range(2)]
    order = [where[label] for label in labels]
    np.testing.assert_allclose(found, everything[np.ix_(order, order)], rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    sd = posterior.std("mu.value", method=method)
    np.testing.assert_allclose(sd.ravel() ** 2, np.diag(found)[2:6], rtol=1e-8)
    if method == "mean_field":
        np.testing.assert_array_equal(everything, posterior.mean_field_covariance())


def test_linear_response_is_that_of_the_formula():
    """Eq. lrvb_est, solved as printed."""
    posterior = fitted("normal mixture")
    V, H = posterior.mean_field_covariance(), posterior.expected_hessian()
    Sigma = np.linalg.solve(np.eye(len(V)) - V @ H, V)
    np.testing.assert_allclose(posterior.covariance(*posterior.factors), Sigma, rtol=1e-8, atol=1e-11)


def test_draws_are_those_of_q():
    posterior = fitted("normal mixture")
    draws = posterior.sample(4000, random_state=0)
    assert {name: draw.shape for name, draw in draws.items()} == {
        "mu": (4000, 2, 2),
        "Lambda": (4000, 2, 2, 2),
        "sticks": (4000, 2),
        "z": (4000, 16),
    }
    for name, draw in draws.items():
        factor = posterior.factors[name]
        statistics = factor.family.statistics_of(draw)
        V = factor.covariance_blocks(posterior.natural_parameters[name])
        error = np.sqrt(np.einsum("nii->ni", V) / 4000).reshape(factor.shape)
        np.testing.assert_array_less(
            np.abs(statistics.mean(axis=0) - posterior.mean_parameters[name]), 5 * error + 1e-12
        )
    again = posterior.sample(4000, random_state=0)
    np.testing.assert_array_equal(draws["Lambda"], again["Lambda"])
    assert not np.array_equal(draws["mu"], posterior.sample(4000, random_state=1)["mu"])


def test_factors_do_not_share_their_noise():
    """Two factors of the same parameters, drawn with one seed."""
    factors = {"a": UnivariateNormal(), "b": UnivariateNormal(), "c": Factor(UnivariateNormal(), 2)}
    model = MeanFieldModel(factors, [Term(-0.5, f"{name}.square") for name in factors])
    draws = model.fit().sample(2000, random_state=0)
    together = np.column_stack([draws["a"], draws["b"], draws["c"]])
    correlations = np.corrcoef(together, rowvar=False) - np.eye(4)
    assert np.abs(correlations).max() < 5 / np.sqrt(2000)


@pytest.mark.parametrize("name", CATALOGUE)
def test_standard_deviations_are_the_roots_of_the_covariance(name):
    """Those of the largest factor come from another formula than its covariance."""
    posterior = fitted(name)
    for method in ("lrvb", "mean_field"):
        for label in statistics_of(posterior):
            own = posterior.factors[label.split(".")[0]]
            covariance = posterior.covariance(label, method=method)
            sd = posterior.std(label, method=method)
            assert sd.shape == own.statistic_shape(label.split(".")[1])
            np.testing.assert_allclose(sd.ravel() ** 2, np.diag(covariance), rtol=1e-7, atol=1e-14)


@pytest.mark.slow
def test_many_rows_need_no_matrix_of_their_size(monkeypatch):
    """20,000 indicators: their covariance alone would take 12.8 GB."""
    monkeypatch.setattr(response, "memory_limit", lambda: 2e9)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(12_000, 2)), rng.normal(size=(8_000, 2)) + [4.0, 1.0]])
    factors, terms = mixture_terms(X)
    side = np.where(np.arange(len(X)) < 12_000, 2.0, -2.0)
    posterior = MeanFieldModel(factors, terms).fit({"z": np.stack([side, -side], axis=1)}, tol=1e-6)
    sd = posterior.std("mu.value")
    complete = np.array([[12_000**-0.5], [8_000**-0.5]])
    assert np.all((sd > 1.01 * complete) & (sd < 1.3 * complete))
    assert posterior.newton_decrement < 1e-4
    probabilities = posterior.mean("z")
    mean_field = posterior.std("z", method="mean_field")
    np.testing.assert_allclose(mean_field**2, probabilities * (1 - probabilities), rtol=1e-6, atol=1e-15)
    lrvb = posterior.std("z")
    np.testing.assert_allclose(lrvb[:, 0], lrvb[:, 1], rtol=1e-6, atol=1e-12)
    assert np.all(lrvb >= mean_field * (1 - 1e-12))
    assert np.any(lrvb > 1.0001 * mean_field)
    message = (
        "The covariance of 40000 statistics (40000 of factor 'z') would need 12.8 GB, more than 2 GB (half "
        "of this machine's memory, or 2 GB). (a) Ask for fewer factors at once. (b) Ask for standard "
        "deviations alone: std('z.indicator')."
    )
    with pytest.raises(MemoryError, match=re.escape(message)):
        posterior.covariance("z")
    with pytest.raises(MemoryError, match="The covariance of 40000 statistics"):
        posterior.covariance("z", method="mean_field")
    for whole, what in (
        (posterior.mean_field_covariance, "covariance"),
        (posterior.expected_hessian, "Hessian"),
    ):
        with pytest.raises(MemoryError, match=f"The {what} of 40026 statistics"):
            whole()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda p: p.covariance(),
            "Name the statistics to report; all are rates.value, rates.log, beta.value",
        ),
        (lambda p: p.covariance("beta", method="exact"), "method='exact' is neither 'lrvb' nor 'mean_field'"),
        (lambda p: p.covariance(["beta"]), r"a statistic is named by a string, .*; got \['beta'\]"),
        (lambda p: p.mean(0), "a statistic is named by a string, .*; got 0"),
        (lambda p: p.std("beta.value", "exact"), "method='exact' is neither 'lrvb' nor 'mean_field'"),
        (lambda p: p.covariance("gamma"), "there is no factor 'gamma'; the factors are rates, beta"),
        (lambda p: p.mean("beta"), "'beta' names no statistic of Gamma; it has beta.value, beta.log"),
        (lambda p: p.std("beta.square"), "'beta.square' names no statistic of Gamma"),
    ],
)
def test_requests_that_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(fitted("pumps"))


def test_summary_of_the_fit():
    posterior = fitted("pumps")
    assert posterior.converged is True
    assert posterior.n_iter == len(posterior.lower_bounds)
    assert posterior.lower_bound == posterior.lower_bounds[-1]
    assert isinstance(posterior.lower_bound, float)
    assert built("pumps")[0].factors == posterior.factors
