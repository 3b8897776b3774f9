"""Columns of durations, by closed forms; the catalogue has more tests of them."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from latent_class.catalogue import (
    PROBLEMS,
    Problem,
    assert_same_fit,
    assert_same_scores,
    counts,
    durations,
    fitted,
    in_polars,
    mixture,
    refitted,
)
from scipy import stats

from sklearn_lrvb import LRVBLatentClassMixture

PROBLEM = PROBLEMS["durations"]


@pytest.mark.parametrize("value", [0.0, -2.5, 1e-200])
def test_durations_are_positive(value):
    X = PROBLEM.X.assign(wait=PROBLEM.X["wait"].mask(np.arange(80) == 7, value))
    message = f"1 value.*'wait' of X are negative, zero.* {value} in row 7. Correct.*'wait': 'numeric'"
    for table in (X, in_polars(X)):
        with pytest.raises(ValueError, match=message):
            mixture(PROBLEM).fit(table)
        with pytest.raises(ValueError, match=message):
            fitted("durations").predict(table)


def test_one_class_has_the_gamma_posterior():
    fit = refitted(replace(PROBLEM, n_components=1))
    draws = fit.posterior(random_state=0, method="exact").sample(4000)
    summary = fit.posterior(method="exact", random_state=0).summary("tables")
    for column in PROBLEM.X:
        y = PROBLEM.X[column].dropna()
        posterior = stats.gamma(1 + len(y), scale=1 / (y.mean() + y.sum()))
        assert fit.tables_[column].loc[0, "rate"] == pytest.approx(posterior.mean(), rel=1e-12)
        assert fit.tables_std_[column].loc[0, "rate"] == pytest.approx(posterior.std(), rel=1e-9)
        assert stats.kstest(draws[column].ravel(), posterior.cdf).pvalue > 1e-3
        found = summary.loc[f"rate[0,{column}]", ["lower", "upper"]].to_numpy(float)
        np.testing.assert_allclose(posterior.cdf(found), [0.025, 0.975], atol=0.01)


def test_error_bars_are_nearly_those_of_the_exact_posterior():
    fit = fitted("durations")
    posteriors = [fit.posterior(method=method) for method in ("exact", "lrvb")]
    exact, lrvb = (posterior.summary(["weights", "tables"]) for posterior in posteriors)
    np.testing.assert_allclose(lrvb["sd"], exact["sd"], rtol=0.2)
    np.testing.assert_array_less(abs(lrvb["mean"] - exact["mean"]), 0.3 * exact["sd"])


def test_units_change_nothing_but_units():
    fit, other = fitted("durations"), refitted(replace(PROBLEM, X=60.0 * PROBLEM.X))
    np.testing.assert_allclose(other.predict_proba(60.0 * PROBLEM.X), fit.predict_proba(PROBLEM.X), atol=1e-8)
    shift = np.count_nonzero(PROBLEM.X.notna()) * np.log(60.0)
    assert other.lower_bound_ == pytest.approx(fit.lower_bound_ - shift, rel=1e-10)
    for column, table in fit.tables_std_.items():
        np.testing.assert_allclose(60.0 * other.tables_std_[column], table, rtol=1e-6)


def test_missing_durations_are_filled_by_their_means():
    fit, X = fitted("durations"), PROBLEM.X
    imputed, std = fit.impute(X, return_std=True)
    rates, r = fit.tables_["wait"]["rate"].to_numpy(), fit.predict_proba(X)
    means = r @ (1 / rates)
    expected = np.sqrt(r @ (2 / rates**2) - means**2)
    missing = X["wait"].isna().to_numpy()
    np.testing.assert_allclose(imputed["wait"], X["wait"].fillna(pd.Series(means)), rtol=1e-12)
    np.testing.assert_allclose(std[:, 0], np.where(missing, expected, 0.0), rtol=1e-12)


def test_drawn_rows_are_durations():
    rows, labels = fitted("durations").sample(20_000)
    for column, table in fitted("durations").tables_.items():
        for k, rate in enumerate(table["rate"]):
            assert stats.kstest(rows.loc[labels == k, column], stats.expon(scale=1 / rate).cdf).pvalue > 1e-3


def test_copies_containers_and_chunks_are_the_same_table():
    fit, X = fitted("durations"), PROBLEM.X
    copy = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(copy.influence(X), fit.influence(X))
    rows = X.to_numpy().tolist()
    by_place = mixture(PROBLEM, columns={(0, 1): "duration"}).fit(rows)
    assert_same_scores(by_place, fit, rows, X)
    dask, frames = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    alike = {"init_params": "kmeans", "n_init": 1}
    with dask.config.set(scheduler="synchronous"):
        in_chunks = mixture(PROBLEM, **alike).fit(frames.from_pandas(X, npartitions=3))
    assert_same_fit(in_chunks, refitted(PROBLEM, **alike))


def test_durations_that_vary_more_are_told():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(0.0, 2.0, 2000), rng.normal(size=2000)])
    X[:700, 1] += 30.0
    given = {"columns": {0: "duration"}, "n_init": 1, "random_state": 0}
    message = r"'x0' in class . is .* times the square of its mean.*\(a\) Let its logarithm be 'numeric'"
    with pytest.warns(UserWarning, match=message):
        LRVBLatentClassMixture(2, **given).fit(X)
    X[:, 0] = rng.exponential(3.0, 2000)
    LRVBLatentClassMixture(2, **given).fit(X)  # Warnings are errors.


def test_counts_and_durations_have_one_prior_shape():
    X = counts().join(durations())
    problem = Problem(X, {("visits", "calls"): "count", ("wait", "stay"): "duration"}, 2)
    fit = refitted(problem, rate_shape_prior=1.5)
    start, h = fit.predict_proba(X), 1e-4
    up, down = (
        refitted(problem, init_params=start, tol=1e-14, rate_shape_prior=1.5 + change) for change in (h, -h)
    )
    found = fit.prior_sensitivity()["rate_shape_prior"]
    after, before, sd = (
        np.concatenate([table.to_numpy() for table in tables.values()], axis=1)
        for tables in (up.tables_, down.tables_, fit.tables_std_)
    )
    np.testing.assert_allclose(found / sd, (after - before) / (2 * h) / sd, rtol=0, atol=1e-6)
