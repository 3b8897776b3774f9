"""A posterior is a value: whatever it is asked, the answers agree, and stay the same."""

import copy
import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from catalogue import mixture, overlapping, set_sizes

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture
from sklearn_lrvb.displays import ComponentDisplay, PosteriorIntervalDisplay

X = overlapping(60)
GROUPS = np.arange(60) // 2


ROWS = np.random.default_rng(2).normal(size=(40, 1)) + 1.5 * (np.arange(40) % 2)[:, None]


@functools.cache
def few():
    """A fit to so few rows that posterior means leave it; not to be changed."""
    fit = LRVBGaussianMixture(
        n_components=3, weight_concentration_prior_type="dirichlet_distribution", random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit.fit(ROWS).posterior()
    return fit


def asked(fit):
    """What the tests compare: answers to several questions without a seed."""
    posterior = fit.posterior()
    return [
        posterior.summary()["sd"],
        posterior.covariance("means"),
        posterior.sample(3)["means"],
        *fit.predict_proba(ROWS, return_std=True),
        fit.partition_posterior(ROWS, n_draws=20).certainty,
        fit.posterior_check(ROWS, n_draws=100).log_evidence,
    ]


def test_the_same_question_has_the_same_answer():
    once, again = asked(few()), asked(few())
    for one, other in zip(once, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_all_that_it_is_asked_agrees():
    posterior = few().posterior()
    assert posterior.method == "exact" and posterior.note.startswith("Exact posterior")
    table = posterior.summary(["weights", "means"], min_count=0)
    assert table.attrs["note"] == posterior.note
    np.testing.assert_array_equal(posterior.std("means").ravel(), table["sd"].filter(like="mean["))
    assert posterior.std("weight[0] - weight[1]").shape == (1,)
    np.testing.assert_allclose(
        np.sqrt(np.diag(posterior.covariance(["weights", "means"]))), table["sd"], rtol=1e-10
    )
    for one, other in zip(
        few().predict_proba(ROWS, return_std=True), posterior.predict_proba(ROWS), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(
        few().score_samples(ROWS, return_std=True), posterior.score_samples(ROWS), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    drawn = posterior.plot(target=["weights", "means"], min_count=0)
    np.testing.assert_array_equal(drawn.upper["exact"], table.loc[drawn.names, "upper"])
    assert drawn.note == few().partition_posterior(ROWS, n_draws=9, random_state=5).note == posterior.note
    components = ComponentDisplay.from_estimator(few())
    np.testing.assert_array_equal(components.weights_std, table["sd"].filter(like="weight["))
    np.testing.assert_array_equal(components.means.ravel(), table["mean"].filter(like="mean["))


def test_it_is_of_the_fit_as_it_was():
    fit = mixture({}).fit(X)
    posterior = fit.posterior(method="lrvb")
    before = posterior.summary()
    fit.set_params(n_components=3).fit(X + 1.0)
    pd.testing.assert_frame_equal(posterior.summary(), before)
    np.testing.assert_array_equal(posterior.predict_proba(X)[0].shape, (60, 2))
    assert "2 components" in repr(posterior) and "Error bars by method='lrvb'" in repr(posterior)


def test_rows_that_were_changed_in_place_are_refused():
    rows = overlapping(60)
    fit = mixture({}).fit(rows)
    exact, sandwich = fit.posterior(rows, method="exact"), fit.posterior(rows, method="sandwich")
    before = exact.summary()
    rows *= 5.0
    pd.testing.assert_frame_equal(exact.summary(), before)
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        exact.sample(30_000)
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        sandwich.summary()


def test_a_copy_of_a_posterior_has_its_pictures():
    fit = mixture({}).fit(X)
    posterior = fit.posterior(X)
    pickled_fit, pickled = pickle.loads(pickle.dumps((fit, posterior)))
    for mixture_of_copy, copied in ((pickled_fit, pickled), (fit, pickled), (fit, copy.deepcopy(posterior))):
        pd.testing.assert_frame_equal(copied.summary(), posterior.summary())
        PosteriorIntervalDisplay.from_estimator(mixture_of_copy, copied)
        copied.plot()
    with pytest.raises(ValueError, match="of another fit"):
        PosteriorIntervalDisplay.from_estimator(mixture({}).fit(2.0 * X), pickled)


def test_equal_rows_of_classes_are_joined_wherever_they_come_from():
    table = np.random.default_rng(0).choice(["no", "yes"], (2000, 3)).astype(object)
    fit = LRVBLatentClassMixture(n_components=2, max_iter=500, tol=1e-8, random_state=0).fit(table)
    tables = [fit.posterior(*rows, method="exact").summary() for rows in ((), (table,))]
    again = pickle.loads(pickle.dumps(fit)).posterior(table, method="exact").summary()
    for other in (tables[1], again):
        pd.testing.assert_frame_equal(tables[0], other)


def test_linear_response_says_where_nothing_can_check_it():
    note = mixture({"prior": "flat"}).fit(X).posterior(method="lrvb").note
    assert note.startswith("Linear response, not checked. ")
    assert "posterior_check" not in note


def test_a_seed_is_said_once():
    fit, seed = few(), 3
    posterior = fit.posterior(method="lrvb", random_state=seed)
    draws = posterior.sample(4)["means"]
    np.testing.assert_array_equal(draws, fit.posterior(method="lrvb").sample(4, random_state=seed)["means"])
    assert np.all(draws != fit.posterior(method="lrvb").sample(4)["means"])


def test_mean_field_is_the_column_of_the_table():
    table = few().posterior(method="mean_field").summary("means")
    np.testing.assert_array_equal(table["sd"], table["mean_field_sd"])
    np.testing.assert_array_equal(table["sd"], few().posterior().summary("means")["mean_field_sd"])
    drawn = few().posterior(method="mean_field").plot()
    assert isinstance(drawn, PosteriorIntervalDisplay) and list(drawn.lower) == ["mean_field"]


def test_one_target_has_the_shape_of_its_attribute():
    table = pd.DataFrame({"a": ["x", "y", "x", "y"] * 9, "b": np.arange(36.0)})
    classes = LRVBLatentClassMixture(n_components=2, random_state=0).fit(table)
    std, expected = classes.posterior(method="lrvb").std("tables"), classes.tables_std_
    for name, own in expected.items():
        pd.testing.assert_frame_equal(std[name], own)
    with pytest.raises(ValueError, match="std takes one target"):
        few().posterior(method="lrvb").std("all")


def test_attributes_by_linear_response_warn_once_where_it_is_known_to_fail():
    fit = mixture({}).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = fit.means_std_
    assert fit.posterior_check(X).state != "good"
    with pytest.warns(UserWarning, match=r"means_std_ is by linear response\. Linear response"):
        np.testing.assert_array_equal(fit.means_std_, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit.posterior_covariance_.shape == (12, 12)


def test_attributes_are_infinite_where_the_table_is():
    fit = LRVBGaussianMixture(n_components=3, degrees_of_freedom_prior=2.0, random_state=0).fit(X)
    table = fit.posterior(method="lrvb").summary("means", min_count=0)
    assert np.isinf(table["sd"]).any()
    np.testing.assert_array_equal(fit.means_std_.ravel(), table["sd"])
    for method in ("lrvb", "mean_field"):
        posterior = fit.posterior(method=method)
        np.testing.assert_allclose(
            posterior.std("means").ravel() ** 2, np.diag(posterior.covariance("means"))
        )


# By groups.


def test_groups_are_resampled_where_linear_response_fails_and_it_is_quick(monkeypatch):
    fit = mixture({}).fit(X)
    first, second = (fit.posterior(groups=GROUPS, n_draws=5) for _ in range(2))
    assert first.note.startswith("Bootstrap: 5 refits")
    np.testing.assert_array_equal(first.std("means"), second.std("means"))
    set_sizes(monkeypatch, seconds_of_bootstrap=0.0)
    posterior = fit.posterior(groups=GROUPS)
    assert posterior.method == "sandwich"
    assert posterior.note.endswith(
        "may be wrong: sds by more than a third, means by more than 0.6 sd. method='bootstrap' refits."
    )
    rows = overlapping(4000)
    good = mixture({}).fit(rows).posterior(groups=np.arange(4000) // 4)
    assert good.method == "sandwich" and "linear response" not in good.note


# Where the posterior is not where the fit is.


def test_the_note_says_how_far_posterior_means_are_from_the_fit():
    posterior = few().posterior()
    table = posterior.summary(["weights", "means"])
    fitted = few().posterior(method="lrvb").summary(["weights", "means"])
    distances = (table["mean"] - fitted["mean"]).abs() / table["sd"]
    assert distances.max() > 1.0
    assert f"up to {distances.max():.1f} sd ({distances.idxmax()}) from posterior means" in posterior.note
    rows = overlapping(120)
    assert "weights_" not in mixture({}).fit(rows).posterior(method="exact").note
