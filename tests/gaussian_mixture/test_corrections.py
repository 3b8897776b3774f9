"""The exact posterior in users' hands: draws, tables, covariances and the check, for rows of every kind."""

import copy
import pickle
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from catalogue import COVARIANCE_TYPES, INFORMATION, fitted, mixture, overlapping, set_sizes, use_information
from sampling_problems import MODELS, PROPER, model_id
from sklearn.exceptions import NotFittedError

from sklearn_lrvb import LRVBGaussianMixture

CORRECTIONS = ("importance", "gibbs")
by_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
either = pytest.mark.parametrize("method", CORRECTIONS)


@pytest.fixture(autouse=True)
def few_proposals(monkeypatch):
    set_sizes(monkeypatch, proposals=1000)


def waits(n_rows=400):
    return overlapping(n_rows)


def fit(covariance_type="full", n_rows=400, **parameters):
    return mixture({"covariance_type": covariance_type, "reg_covar": 0.0, **parameters}).fit(waits(n_rows))


@by_type
@either
def test_draws_have_the_shapes_and_ranges_of_parameters(covariance_type, method):
    estimator = fit(covariance_type)
    draws = estimator.sample_posterior(30, 0, method, waits())
    assert list(draws) == ["weights", "means", "precisions", "covariances"]
    for target, values in draws.items():
        assert values.shape == (30, *getattr(estimator, f"{target}_").shape)
    np.testing.assert_allclose(draws["weights"].sum(axis=1), 1)
    if covariance_type in ("full", "tied"):
        assert np.all(np.linalg.eigvalsh(draws["precisions"]) > 0)
    again = estimator.sample_posterior(30, 0, method, waits())
    others = estimator.sample_posterior(30, 1, method, waits())
    for target, values in draws.items():
        np.testing.assert_array_equal(again[target], values)
        assert np.any(others[target] != values)


@by_type
@either
def test_table_and_covariance_are_those_of_the_same_draws(covariance_type, method):
    estimator, X = fit(covariance_type), waits()
    asked = {"X": X, "n_draws": 500, "random_state": 0}
    table = estimator.posterior_summary(0.9, method=method, **asked)
    plain = estimator.posterior_summary(0.9)
    assert list(table.columns) == list(plain.columns)
    assert list(table.index) == list(plain.index)
    np.testing.assert_array_equal(table["mean_field_sd"], plain["mean_field_sd"])
    np.testing.assert_allclose(table["ratio"], table["sd"] / table["mean_field_sd"])
    assert table.attrs["prior"] == plain.attrs["prior"]
    names = {"log_weights": "log_weight", "means": "mean", "precisions": "precision"}
    covariance = estimator.get_posterior_covariance(method=method, **asked)
    deviations = table["sd"][[name.split("[")[0] in names.values() for name in table.index]]
    np.testing.assert_allclose(
        np.sqrt(np.diag(covariance)), deviations[estimator.posterior_names_], rtol=1e-10
    )
    assert np.linalg.eigvalsh(covariance / np.outer(deviations, deviations)).min() > -1e-12
    lrvb = estimator.posterior_covariance_
    correlations = [own / np.sqrt(np.outer(own.diagonal(), own.diagonal())) for own in (covariance, lrvb)]
    np.testing.assert_allclose(*correlations, atol=0.3)
    assert np.all((table["lower"] < table["mean"]) & (table["mean"] < table["upper"]))
    if method == "gibbs":
        draws = estimator.sample_posterior(500, 0, "gibbs", X)
        np.testing.assert_allclose(
            draws["means"].mean(axis=0), table["mean"].filter(like="mean[").to_numpy().reshape(2, 2)
        )
    some = estimator.posterior_summary(target="means", min_count=1, method=method, **asked)
    pd.testing.assert_series_equal(
        some["sd"], estimator.posterior_summary(target="means", method=method, **asked)["sd"]
    )


@by_type
def test_the_check_has_a_verdict_and_the_numbers_behind_it(covariance_type):
    estimator, X = fit(covariance_type), waits()
    check = estimator.posterior_check(X, random_state=0)
    assert check.recommendation in ("lrvb", "importance", "gibbs")
    assert check.verdict in " ".join(repr(check).split())
    assert "asymmetry" in repr(check)
    assert "asymmetry" in check._repr_html_()
    assert check.mean_shift.shape == check.mean_shift_error.shape == estimator.posterior_mean_.shape
    np.testing.assert_array_equal(check.names, estimator.posterior_names_)
    assert check.log_evidence is check.k_hat is check.mean is None
    drawn = estimator.posterior_check(X, n_draws=1000, random_state=0)
    assert drawn.asymmetry == check.asymmetry
    np.testing.assert_array_equal(drawn.mean_shift, check.mean_shift)
    assert estimator.lower_bound_ < drawn.log_evidence_bound < drawn.log_evidence
    assert 0 < drawn.effective_draws <= 1000
    assert np.all((drawn.lower < drawn.mean) & (drawn.mean < drawn.upper))
    assert np.abs((drawn.mean - estimator.posterior_mean_) / drawn.std - drawn.mean_shift).max() < 0.25
    assert "log evidence" in repr(drawn)
    pickled = pickle.loads(pickle.dumps(drawn))
    np.testing.assert_array_equal(pickled.std, drawn.std)
    assert repr(pickled) == repr(drawn)


def test_verdicts_are_those_that_one_expects():
    plenty = mixture({}).fit(overlapping(20_000))
    assert plenty.posterior_check(overlapping(20_000), random_state=0).recommendation == "lrvb"
    few = mixture({}).fit(overlapping(60))
    check = few.posterior_check(overlapping(60), random_state=0)
    assert check.recommendation != "lrvb"
    assert "rows a parameter" in check.verdict
    X = np.concatenate([overlapping(200), overlapping(200) + [40.0, -30.0]])
    surplus = LRVBGaussianMixture(n_components=8, random_state=0).fit(X)
    assert surplus.n_occupied_ < 8
    assert "empty component" in surplus.posterior_check(X, random_state=0).verdict


@either
@pytest.mark.parametrize("model", PROPER[::5], ids=model_id)
def test_rows_in_parts_give_the_same(model, method):
    X = overlapping(300)
    weights = np.random.default_rng(0).integers(1, 3, 300).astype(float)
    estimator = mixture(model).fit(X, sample_weight=weights)
    asked = {"n_draws": 40, "random_state": 0, "method": method}
    expected = estimator.sample_posterior(X=X, sample_weight=weights, **asked)
    chunks = da.from_array(X, chunks=(70, 2))
    of_dask = estimator.sample_posterior(X=chunks, sample_weight=da.from_array(weights, chunks=70), **asked)
    batches = [(X[i : i + 90], weights[i : i + 90]) for i in range(0, 300, 90)]
    for found in (of_dask, estimator.sample_posterior(X=batches, **asked)):
        for target, values in expected.items():
            np.testing.assert_allclose(found[target], values, rtol=1e-6, atol=1e-8)
    checks = [
        estimator.posterior_check(X, weights, 100, 0),
        estimator.posterior_check(chunks, da.from_array(weights, chunks=70), 100, 0),
        estimator.posterior_check(batches, None, 100, 0),
    ]
    for check in checks[1:]:
        np.testing.assert_allclose(check.mean_shift, checks[0].mean_shift, atol=1e-7)
        assert check.log_evidence == pytest.approx(checks[0].log_evidence, abs=1e-7)


@either
@pytest.mark.parametrize("solver", INFORMATION)
def test_every_solver_gives_the_same(solver, method, monkeypatch):
    X = waits()
    expected = fit().sample_posterior(20, 0, method, X)
    use_information(solver, monkeypatch)
    estimator = fit()
    draws = estimator.sample_posterior(20, 0, method, X)
    np.testing.assert_allclose(draws["means"], expected["means"], rtol=1e-3)
    assert estimator.posterior_check(X, random_state=0).asymmetry == pytest.approx(
        fit().posterior_check(X, random_state=0).asymmetry, abs=1e-4
    )


@by_type
def test_units_and_origins_do_not_matter(covariance_type):
    X = waits()
    own, moved = (
        fit(covariance_type),
        mixture({"covariance_type": covariance_type, "reg_covar": 0.0}).fit(1e3 * X - 1e5),
    )
    checks = own.posterior_check(X, None, 500, 0), moved.posterior_check(1e3 * X - 1e5, None, 500, 0)
    assert checks[0].asymmetry == pytest.approx(checks[1].asymmetry, abs=1e-3)
    np.testing.assert_allclose(checks[0].mean_shift, checks[1].mean_shift, atol=0.02)
    assert checks[0].log_evidence == pytest.approx(checks[1].log_evidence + X.size * np.log(1e3), abs=0.02)
    assert checks[0].k_hat == pytest.approx(checks[1].k_hat, abs=0.1)


@either
def test_a_pickle_and_a_copy_take_the_rows_again(method):
    estimator, X = fit(), waits()
    expected = estimator.sample_posterior(10, 0, method, X)
    for other in (pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
        np.testing.assert_allclose(other.sample_posterior(10, 0, method, X)["means"], expected["means"])


def test_bad_requests_are_refused():
    estimator, X = fit(), waits()
    for method in CORRECTIONS:
        with pytest.raises(ValueError, match=f"method='{method}' needs the training rows: pass X"):
            estimator.sample_posterior(10, 0, method)
        with pytest.raises(ValueError, match="needs the training rows"):
            estimator.posterior_summary(method=method)
        with pytest.raises(ValueError, match="needs the training rows"):
            estimator.get_posterior_covariance(method=method)
        for other in (X[:-1], X + 1e-3):
            with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
                estimator.sample_posterior(10, 0, method, other)
        with pytest.raises(ValueError, match="Invalid value for 'n_draws'"):
            estimator.sample_posterior(0, 0, method, X)
        one, two = ({"X": X, "n_draws": n_draws, "random_state": 0} for n_draws in (1, 2))
        with pytest.raises(ValueError, match="n_draws=1: one draw has neither a standard deviation"):
            estimator.posterior_summary(method=method, **one)
        with pytest.raises(ValueError, match="n_draws=1: one draw has neither a standard deviation"):
            estimator.get_posterior_covariance(method=method, **one)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # two draws are unreliable
            covariance = estimator.get_posterior_covariance("means", method=method, **two)
        assert np.diag(covariance).min() > 0.0
    with pytest.raises(ValueError, match="method must be 'lrvb', 'importance' or 'gibbs', got 'exact'"):
        estimator.sample_posterior(10, 0, "exact", X)
    for unknown in (None, "mean_field"):
        with pytest.raises(ValueError, match="method must be 'lrvb', 'importance' or 'gibbs'"):
            estimator.posterior_summary(method=unknown)
        with pytest.raises(ValueError, match="method must be 'lrvb', 'importance' or 'gibbs'"):
            estimator.to_arviz(method=unknown)
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        estimator.posterior_check(X[:-1])
    for n_draws in (-1, 2.5, "many"):
        with pytest.raises(ValueError, match="Invalid value for 'n_draws'"):
            estimator.posterior_check(X, n_draws=n_draws)
    with pytest.raises(ValueError, match="n_draws=99 are too few for importance sampling"):
        estimator.posterior_check(X, n_draws=99)
    with pytest.raises(NotFittedError):
        LRVBGaussianMixture().posterior_check(X)


def test_an_improper_posterior_is_refused():
    for model in MODELS:
        if model["prior"] == "flat":
            estimator, X = fitted(model), overlapping()
            for ask in (
                lambda estimator=estimator: estimator.posterior_check(overlapping()),
                lambda estimator=estimator: estimator.sample_posterior(5, 0, "gibbs", overlapping()),
            ):
                with pytest.raises(ValueError, match="a mixture of several components has no posterior"):
                    ask()
            one = mixture(model, 1).fit(X)
            assert one.posterior_check(X).recommendation == "lrvb"


def test_weights_that_are_no_whole_numbers_are_refused_by_gibbs_alone():
    X, weights = waits(), np.linspace(0.5, 1.5, 400)
    estimator = mixture({}).fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match="sample_weight must be whole numbers"):
        estimator.sample_posterior(10, 0, "gibbs", X, weights)
    assert len(estimator.sample_posterior(10, 0, "importance", X, weights)["means"]) == 10


def test_what_cannot_be_relied_on_is_said():
    X = overlapping(30)
    estimator = mixture({}).fit(X)
    with pytest.warns(UserWarning, match="Importance sampling is not reliable here"):
        estimator.sample_posterior(10, 0, "importance", X)
    with pytest.warns(UserWarning, match="draws have left for another mode of the posterior"):
        estimator.sample_posterior(200, 0, "gibbs", X)


def test_linear_response_takes_the_training_rows_and_checks_them():
    estimator, X = fit(), waits()
    draws = estimator.sample_posterior(10, 0, "lrvb", X)
    np.testing.assert_array_equal(draws["means"], estimator.sample_posterior(10, 0)["means"])
    summary = estimator.posterior_summary(method="lrvb", X=X)
    np.testing.assert_allclose(summary, estimator.posterior_summary(), rtol=1e-12)
    for ask in (estimator.sample_posterior, estimator.posterior_summary):
        with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
            ask(X=X + 1e-3)
        with pytest.raises(ValueError, match="sample_weight goes with X"):
            ask(sample_weight=np.ones(len(X)))


def test_the_training_rows_are_checked_once_for_all_targets():
    X, passes = waits(), []

    def batches():
        passes.append(None)
        return iter(np.array_split(X, 3))

    estimator, counts = fit(), []
    for target in ("means", ("weights", "log_weights", "means", "precisions", "covariances")):
        passes.clear()
        estimator.posterior_summary(target=target, X=batches)
        counts.append(len(passes))
    assert counts[0] == counts[1] > 0


@either
def test_draws_for_arviz_are_corrected(method):
    pytest.importorskip("arviz_base")
    estimator, X = fit(), waits()
    data = estimator.to_arviz(X, n_draws=20, random_state=0, method=method)
    draws = estimator.sample_posterior(20, 0, method, X)
    np.testing.assert_array_equal(data.posterior["means"].to_numpy()[0], draws["means"])
    with pytest.raises(ValueError, match="needs the training rows"):
        estimator.to_arviz(method=method)
