"""What a fitted posterior reports: shapes, names, draws, requests that are refused."""

import numpy as np
import pytest
from mean_field_catalogue import built, fitted, mixture_terms

from sklearn_lrvb.mean_field import MeanFieldModel


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
    """Eq. lrvb_est, solved as it stands."""
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


def test_many_rows_need_no_matrix_of_their_size():
    """20,000 indicators: their covariance alone would take 12 GB."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(12_000, 2)), rng.normal(size=(8_000, 2)) + [4.0, 1.0]])
    factors, terms = mixture_terms(X)
    side = np.where(np.arange(len(X)) < 12_000, 2.0, -2.0)
    posterior = MeanFieldModel(factors, terms).fit({"z": np.stack([side, -side], axis=1)}, tol=1e-6)
    sd = posterior.std("mu.value")
    complete = np.array([[12_000**-0.5], [8_000**-0.5]])
    assert np.all((sd > 1.01 * complete) & (sd < 1.3 * complete))
    assert posterior.newton_decrement < 1e-4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda p: p.covariance(),
            "Name the statistics to report; all are rates.value, rates.log, beta.value",
        ),
        (lambda p: p.covariance("beta", method="exact"), "method='exact' is neither 'lrvb' nor 'mean_field'"),
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
