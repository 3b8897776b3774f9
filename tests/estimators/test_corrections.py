"""The exact posterior in users' hands: draws, tables, covariances and the check, for rows of every kind."""

import copy
import functools
import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    INFORMATION,
    fitted,
    mixture,
    overlapping,
    set_sizes,
    uncertainty_of,
    use_information,
)
from covariance_types import TYPES
from sampling_problems import MODELS, PROPER, model_id
from sklearn.exceptions import NotFittedError

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.answers.prior_sensitivity import prior_changes
from sklearn_lrvb.gaussian.answers.targets import PARAMETERS

by_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def waits(n_rows=400):
    return overlapping(n_rows)


def fit(covariance_type="full", n_rows=400, **parameters):
    return mixture({"covariance_type": covariance_type, "reg_covar": 0.0, **parameters}).fit(waits(n_rows))


@functools.cache
def shared(covariance_type):
    """A fit whose exact draws several tests ask for; not to be changed."""
    return fit(covariance_type)


@pytest.mark.slow
@by_type
def test_draws_have_the_shapes_and_ranges_of_parameters(covariance_type):
    estimator = shared(covariance_type)
    posterior = estimator.posterior(waits(), random_state=0, method="exact")
    draws = posterior.sample(30)
    assert list(draws) == ["weights", "means", "precisions", "covariances"]
    for target, values in draws.items():
        assert values.shape == (30, *getattr(estimator, f"{target}_").shape)
    np.testing.assert_allclose(draws["weights"].sum(axis=1), 1)
    if TYPES[covariance_type].is_matrix:
        assert np.all(np.linalg.eigvalsh(draws["precisions"]) > 0)
    again = estimator.posterior(waits(), random_state=0, method="exact").sample(30)
    others = estimator.posterior(waits(), random_state=1, method="exact").sample(30)
    for target, values in draws.items():
        np.testing.assert_array_equal(again[target], values)
        np.testing.assert_array_equal(posterior.sample(30)[target], values)
        assert np.any(posterior.sample(30, random_state=1)[target] != values)
        assert np.any(others[target] != values)


@pytest.mark.slow
@by_type
def test_table_and_covariance_are_those_of_the_same_draws(covariance_type):
    estimator, X = shared(covariance_type), waits()
    asked = {"X": X, "random_state": 0, "method": "exact"}
    table = estimator.posterior(**asked).summary("all", interval=0.9)
    plain = estimator.posterior(method="lrvb").summary("all", interval=0.9)
    assert list(table.columns) == list(plain.columns)
    assert list(table.index) == list(plain.index)
    np.testing.assert_array_equal(table["mean_field_sd"], plain["mean_field_sd"])
    np.testing.assert_allclose(table["ratio"], table["sd"] / table["mean_field_sd"])
    moves = prior_changes(uncertainty_of(estimator), PARAMETERS, table["sd"].to_numpy())
    assert f" {moves.max():.2g} sd, " in table.attrs["prior"]
    names = {"log_weights": "log_weight", "means": "mean", "precisions": "precision"}
    covariance = estimator.posterior(**asked).covariance()
    deviations = table["sd"][[name.split("[")[0] in names.values() for name in table.index]]
    np.testing.assert_allclose(
        np.sqrt(np.diag(covariance)), deviations[estimator.posterior_names_], rtol=1e-10
    )
    assert np.linalg.eigvalsh(covariance / np.outer(deviations, deviations)).min() > -1e-12
    lrvb = estimator.posterior_covariance_
    correlations = [own / np.sqrt(np.outer(own.diagonal(), own.diagonal())) for own in (covariance, lrvb)]
    np.testing.assert_allclose(*correlations, atol=0.35)
    assert np.all((table["lower"] < table["mean"]) & (table["mean"] < table["upper"]))
    some = estimator.posterior(**asked).summary("means", min_count=1)
    pd.testing.assert_series_equal(some["sd"], estimator.posterior(**asked).summary("means")["sd"])
    more = estimator.posterior(n_draws=20_000, **asked).summary("all", interval=0.9)
    np.testing.assert_allclose((more["mean"] - table["mean"]) / table["sd"], 0, atol=0.3)
    assert np.any(more["mean"] != table["mean"])


@pytest.mark.slow
def test_the_right_error_bars_come_by_themselves():
    X = overlapping(20_000)
    plenty = mixture({}).fit(X)
    for asked in ({}, {"X": X}):
        table = plenty.posterior(**asked).summary()
        assert table.attrs["note"] == "Linear response is good: sds within 10 %, means within 0.2 sd."
        pd.testing.assert_frame_equal(table, plenty.posterior(method="lrvb").summary())
        np.testing.assert_array_equal(plenty.posterior(**asked).covariance(), plenty.posterior_covariance_)
    X = overlapping(120)
    few = mixture({}).fit(X)
    table = few.posterior(random_state=0).summary()
    assert table.attrs["note"].startswith("Exact posterior: ")
    assert table.attrs["note"] in repr(table).replace("\n", " ")
    assert table.attrs["note"] in table._repr_html_()
    # The second question costs nothing, and has the same answer.
    pd.testing.assert_frame_equal(few.posterior().summary(), table)
    pd.testing.assert_frame_equal(few.posterior(X, method="exact", random_state=0).summary(), table)
    sds = np.sqrt(np.diag(few.posterior().covariance("means")))
    np.testing.assert_allclose(sds, table["sd"].filter(like="mean["))
    draws = few.posterior(random_state=0).sample(2000)["means"].reshape(2000, -1)
    np.testing.assert_allclose(draws.mean(axis=0), table["mean"].filter(like="mean["), atol=0.3 * sds.max())
    # Attributes stay linear response, and say so once.
    with pytest.warns(UserWarning, match="means_std_ is by linear response. Linear response is rough"):
        by_response = few.means_std_.ravel()
    np.testing.assert_allclose(by_response**2, np.diag(few.posterior_covariance_)[2:6])
    assert np.abs(by_response / sds - 1).max() > 0.05


@pytest.mark.slow
def test_components_without_rows_may_get_some(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 2)) + 8.0 * (np.arange(150) % 2)[:, None]
    estimator = mixture({}, n_components=3).fit(X)
    assert estimator.n_occupied_ == 2
    check = estimator.posterior_check(X, random_state=0)
    assert (check.state, check.recommendation) == ("good", "exact")
    assert check.verdict.endswith("0.2 sd, if components without rows get none.")
    monkeypatch.setattr("sklearn_lrvb.answers.error_bars._MOST_SECONDS", 0.0)
    note = estimator.posterior().note
    assert note.startswith(check.verdict)
    assert "would take" in note
    monkeypatch.undo()
    exact = estimator.posterior()
    assert exact.method == "exact"
    # The weight of the third component is hardly more than nothing by linear response.
    by_response = estimator.posterior(method="lrvb").sample(1000)["weights"].min(axis=1).mean()
    assert exact.sample(1000)["weights"].min(axis=1).mean() > 1.5 * by_response


@pytest.mark.slow
def test_tables_say_where_nothing_was_checked():
    X = overlapping(120)
    estimator = pickle.loads(pickle.dumps(mixture({}).fit(X)))
    assert "not checked: posterior_check(X)" in estimator.posterior().summary().attrs["note"]
    assert "Exact posterior" in estimator.posterior(X, random_state=0).summary().attrs["note"]
    assert estimator.posterior(method="lrvb").summary().attrs["note"].startswith("Linear response is rough: ")
    another = mixture({}).fit(X)
    assert "posterior_check says how good" in another.posterior(method="lrvb").summary().attrs["note"]
    rows = X.copy()
    changed = mixture({}).fit(rows)
    changed.posterior(method="lrvb").summary()  # The matrix is formed from the rows of the fit.
    rows += 1.0
    assert "not checked: posterior_check(X)" in changed.posterior().summary().attrs["note"]
    flat = mixture({"prior": "flat"}).fit(X)
    assert "has no posterior" in flat.posterior(X).summary().attrs["note"]


@pytest.mark.slow
def test_what_takes_long_is_not_done_unasked(monkeypatch):
    set_sizes(monkeypatch, seconds_of_exact=1e-3)
    X = overlapping(120)
    estimator = mixture({}).fit(X)
    table = estimator.posterior().summary()
    assert 'ask for it by method="exact"' in table.attrs["note"]
    pd.testing.assert_frame_equal(table, estimator.posterior(method="lrvb").summary())
    exact = estimator.posterior(method="exact", random_state=0).summary()
    pd.testing.assert_frame_equal(estimator.posterior().summary(), exact)


@by_type
def test_the_check_has_a_verdict_and_the_numbers_behind_it(covariance_type):
    estimator, X = shared(covariance_type), waits()
    check = estimator.posterior_check(X, random_state=0)
    assert check.state in ("good", "rough", "wrong")
    assert check.recommendation in ("lrvb", "exact")
    assert check.verdict in " ".join(repr(check).split())
    assert "variance of log ratio" in repr(check)
    assert "variance of log ratio" in check._repr_html_()
    assert check.mean_shift.shape == check.mean_shift_error.shape == estimator.posterior_mean_.shape
    np.testing.assert_array_equal(check.names, estimator.posterior_names_)
    assert check.log_evidence is check.k_hat is None
    drawn = estimator.posterior_check(X, n_draws=1000, random_state=0)
    np.testing.assert_array_equal(drawn.mean_shift, check.mean_shift)
    assert estimator.lower_bound_ < drawn.log_evidence_bound < drawn.log_evidence
    assert 0 < drawn.effective_draws <= 1000
    assert "log evidence" in repr(drawn)
    assert repr(pickle.loads(pickle.dumps(drawn))) == repr(drawn)


def test_verdicts_are_those_that_one_expects():
    plenty = mixture({}).fit(overlapping(20_000))
    assert plenty.posterior_check(overlapping(20_000), random_state=0).state == "good"
    few = mixture({}).fit(overlapping(60))
    assert few.posterior_check(overlapping(60), random_state=0).state == "wrong"


@pytest.mark.slow
@pytest.mark.parametrize("model", PROPER[::5], ids=model_id)
def test_rows_in_parts_give_the_same(model):
    X = overlapping(300)
    weights = np.random.default_rng(0).integers(1, 3, 300).astype(float)
    estimator = mixture(model).fit(X, sample_weight=weights)
    asked = {"random_state": 0, "method": "exact"}
    expected = estimator.posterior(X, sample_weight=weights, **asked).sample(40)
    chunks = da.from_array(X, chunks=(70, 2))
    of_dask = estimator.posterior(chunks, sample_weight=da.from_array(weights, chunks=70), **asked).sample(40)
    batches = [(X[i : i + 90], weights[i : i + 90]) for i in range(0, 300, 90)]
    for found in (of_dask, estimator.posterior(batches, **asked).sample(40)):
        for target, values in expected.items():
            np.testing.assert_allclose(found[target], values, rtol=1e-6, atol=1e-8)
    checks = [
        estimator.posterior_check(X, sample_weight=weights, n_draws=100, random_state=0),
        estimator.posterior_check(
            chunks, sample_weight=da.from_array(weights, chunks=70), n_draws=100, random_state=0
        ),
        estimator.posterior_check(batches, sample_weight=None, n_draws=100, random_state=0),
    ]
    for check in checks[1:]:
        np.testing.assert_allclose(check.mean_shift, checks[0].mean_shift, atol=1e-7)
        assert check.log_evidence == pytest.approx(checks[0].log_evidence, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("solver", INFORMATION)
def test_every_solver_gives_the_same(solver, monkeypatch):
    X = waits()
    expected = fit().posterior(X, random_state=0, method="exact").sample(20)
    use_information(solver, monkeypatch)
    estimator = fit()
    draws = estimator.posterior(X, random_state=0, method="exact").sample(20)
    np.testing.assert_allclose(draws["means"], expected["means"], rtol=1e-3)
    np.testing.assert_allclose(
        estimator.posterior_check(X, random_state=0).mean_shift,
        fit().posterior_check(X, random_state=0).mean_shift,
        atol=1e-4,
    )


@by_type
def test_units_and_origins_do_not_matter(covariance_type):
    X = waits()
    own, moved = (
        fit(covariance_type),
        mixture({"covariance_type": covariance_type, "reg_covar": 0.0}).fit(1e3 * X - 1e5),
    )
    checks = (
        own.posterior_check(X, sample_weight=None, n_draws=500, random_state=0),
        moved.posterior_check(1e3 * X - 1e5, sample_weight=None, n_draws=500, random_state=0),
    )
    assert checks[0].log_ratio_variance == pytest.approx(checks[1].log_ratio_variance, abs=0.02)
    np.testing.assert_allclose(checks[0].mean_shift, checks[1].mean_shift, atol=0.02)
    assert checks[0].log_evidence == pytest.approx(checks[1].log_evidence + X.size * np.log(1e3), abs=0.02)
    assert checks[0].k_hat == pytest.approx(checks[1].k_hat, abs=0.1)


@pytest.mark.slow
def test_a_pickle_and_a_copy_take_the_rows_again():
    estimator, X = fit(), waits()
    expected = estimator.posterior(X, random_state=0, method="exact").sample(10)
    for other in (pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
        np.testing.assert_allclose(
            other.posterior(X, random_state=0, method="exact").sample(10)["means"],
            expected["means"],
        )


@pytest.mark.slow
def test_bad_requests_are_refused():
    estimator, X = fit(), waits()
    copied = pickle.loads(pickle.dumps(estimator))
    with pytest.raises(ValueError, match="method='exact' needs the training rows: pass X"):
        copied.posterior(method="exact")
    for method in ("auto", "exact", "lrvb"):
        for other in (X[:-1], X + 1e-3):
            with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
                estimator.posterior(other, random_state=0, method=method).sample(10)
        with pytest.raises(ValueError, match="Invalid value for 'n_draws'"):
            estimator.posterior(X, random_state=0, method=method).sample(0)
        with pytest.raises(ValueError, match="Invalid value for 'n_draws'"):
            estimator.posterior(method=method, n_draws=0)
    for unknown in ("mcmc", None):
        with pytest.raises(ValueError, match="must be 'auto', 'lrvb', 'exact', 'mean_field', 'sandwich' or"):
            estimator.posterior(method=unknown)
    for method in ("mean_field", "sandwich"):
        with pytest.raises(ValueError, match=f"method='{method}' (is not drawn from|draws estimates from)"):
            estimator.posterior(method=method).sample()
        with pytest.raises(ValueError, match=f"{method}' has no standard deviations of predict_proba"):
            estimator.posterior(method=method).predict_proba(X)
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        estimator.posterior_check(X[:-1])
    for n_draws in (-1, 2.5, "many"):
        with pytest.raises(ValueError, match="Invalid value for 'n_draws'"):
            estimator.posterior_check(X, n_draws=n_draws)
    with pytest.raises(ValueError, match="n_draws=99 are too few for importance sampling"):
        estimator.posterior_check(X, n_draws=99)
    with pytest.raises(NotFittedError):
        LRVBGaussianMixture().posterior_check(X)


@pytest.mark.slow
def test_an_improper_posterior_is_refused():
    for model in MODELS:
        if model["prior"] == "flat":
            estimator, X = fitted(model), overlapping()
            for ask in (
                lambda estimator=estimator: estimator.posterior_check(overlapping()),
                lambda estimator=estimator: estimator.posterior(
                    overlapping(), random_state=0, method="exact"
                ).sample(5),
            ):
                with pytest.raises(ValueError, match="a mixture of several components has no posterior"):
                    ask()
            one = mixture(model, 1).fit(X)
            assert one.posterior_check(X).state in ("good", "rough")


@pytest.mark.slow
def test_weights_that_are_no_whole_numbers_leave_out_the_sweeps():
    X, weights = waits(), np.linspace(0.5, 1.5, 400)
    estimator = mixture({}).fit(X, sample_weight=weights)
    table = estimator.posterior(method="exact", random_state=0).summary()
    assert "Without Gibbs iterations, because sample_weight is not in whole numbers" in table.attrs["note"]


@pytest.mark.slow
def test_chains_that_have_not_converged_say_so(monkeypatch):
    set_sizes(monkeypatch, seconds_of_chains=0, largest_error=1e-3)
    X = overlapping(60)
    estimator = mixture({}).fit(X)
    with pytest.warns(UserWarning, match="Exact posterior, not converged: "):
        estimator.posterior(method="exact", random_state=0)
    again = estimator.posterior(method="exact", random_state=0)  # What is known is said without a warning.
    assert "not converged" in again.summary("means").attrs["note"]
    assert "not converged" in repr(again).replace("\n ", "")


def test_linear_response_takes_the_training_rows_and_checks_them():
    estimator, X = fit(), waits()
    draws = estimator.posterior(X, random_state=0, method="lrvb").sample(10)
    np.testing.assert_array_equal(
        draws["means"], estimator.posterior(random_state=0, method="lrvb").sample(10)["means"]
    )
    summary = estimator.posterior(X, method="lrvb").summary()
    np.testing.assert_allclose(summary, estimator.posterior(method="lrvb").summary(), rtol=1e-12)
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        estimator.posterior(X=X + 1e-3)
    with pytest.raises(ValueError, match="sample_weight goes with X"):
        estimator.posterior(sample_weight=np.ones(len(X)))


def test_the_training_rows_are_checked_once_for_all_targets():
    X, passes = waits(), []

    def batches():
        passes.append(None)
        return iter(np.array_split(X, 3))

    estimator, counts = fit(), []
    estimator.posterior(method="lrvb").summary()  # The matrix is formed by the first question.
    for target in ("means", ("weights", "log_weights", "means", "precisions", "covariances")):
        passes.clear()
        estimator.posterior(batches, method="lrvb").summary(target)
        counts.append(len(passes))
    assert counts[0] == counts[1] > 0


@pytest.mark.slow
def test_draws_for_arviz_are_corrected():
    pytest.importorskip("arviz_base")
    estimator, X = fit(), waits()
    data = estimator.posterior(X, random_state=0, method="exact").to_arviz(20)
    draws = estimator.posterior(X, random_state=0, method="exact").sample(20)
    np.testing.assert_array_equal(data.posterior["means"].to_numpy()[0], draws["means"])


def test_more_parameters_than_a_check_takes_are_said_and_not_refused(monkeypatch):
    set_sizes(monkeypatch, parameters_checked=5)
    estimator = mixture({}).fit(overlapping(120))
    table = estimator.posterior().summary("means")
    assert "it has 12 parameters, and a check of more than 5 takes minutes" in table.attrs["note"]
    pd.testing.assert_frame_equal(table, estimator.posterior(method="lrvb").summary("means"))


@pytest.mark.slow
def test_a_generator_gives_other_draws_every_time():
    estimator, generator = fit(), np.random.RandomState(0)
    asked = [estimator.posterior(method="exact", random_state=generator).summary()["mean"] for _ in range(2)]
    assert np.all(asked[0] != asked[1])
    # Without a seed the first draws answer, whatever was asked since.
    pd.testing.assert_series_equal(estimator.posterior(method="exact").summary()["mean"], asked[0])
