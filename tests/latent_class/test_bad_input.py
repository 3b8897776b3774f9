"""Tables and arguments that cannot be fitted: errors name the column and the remedy, and nothing changes."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from latent_class import catalogue
from latent_class.catalogue import PROBLEMS, fitted

from sklearn_lrvb import LRVBLatentClassMixture

N = 100
X = catalogue.mixed()
FIRST = np.arange(N) == 0
COUNTS = {"columns": {"visits": "count"}}


def assert_refuses(parameters, table, message, sample_weight=None, error=ValueError):
    """A fit fails with a message, and both a new estimator and a fitted one are as they were."""
    new = LRVBLatentClassMixture(**{"n_init": 1, "random_state": 0, **parameters})
    last = copy.copy(fitted("numbers")).set_params(**new.get_params())
    for estimator in (new, last):
        before = dict(vars(estimator))
        with pytest.raises(error, match=message):
            estimator.fit(table, sample_weight=sample_weight)
        assert vars(estimator).keys() == before.keys()
        assert all(vars(estimator)[key] is value for key, value in before.items())


def with_first(name, value):
    """The table with one value in the first row."""
    return X.assign(**{name: X[name].mask(FIRST, value)})


COLUMNS = {
    "all missing": ({}, X.assign(load=np.nan), r"All values are missing in 1 column.* 'load'\. Drop"),
    "infinite": (
        {},
        with_first("load", np.inf),
        "'load' .*infinite.* inf in row 0. Correct them, or replace",
    ),
    "huge": ({}, with_first("load", -1e101), r"'load' .*larger than 1e\+100.* in row 0. Correct"),
    "absent": (
        {"columns": {"visit": "count"}},
        X,
        "column 'visit', but X has no such .*are 'sport', 'height'",
    ),
    "negative count": (COUNTS, with_first("visits", -1.0), "'visits' .*negative.* -1.0 in row 0. Correct"),
    "broken count": (
        COUNTS,
        with_first("visits", 1.5),
        "'visits' .*whole.* 1.5 in row 0.*'visits': 'numeric'",
    ),
    "three values": (
        {"columns": {"sport": "binary"}},
        X,
        "'sport' of X is to be binary, but has 3 values: 'much', 'none', 'some'.*'sport': 'categorical'",
    ),
    "words as numbers": (
        {"columns": {"sport": "count"}},
        X,
        "'sport' of X are no numbers.*'sport': 'categorical'",
    ),
    "dates": ({}, X.assign(day=pd.date_range("2024", periods=N)), "'day' of X holds dates.*'day': 'ignore'"),
    "complex": ({}, X.assign(load=1j), "column 'load' of X is complex"),
    "lists": ({}, X.assign(load=[[1]] * N), "'load' of X holds objects .*'load': 'ignore'"),
    "no kind": ({"columns": {"load": "normal"}}, X, "'load' must be one of 'numeric', .* got 'normal'"),
    "nothing left": ({"columns": {tuple(X): "ignore"}}, X, "All 5 columns of X are ignored. Leave one"),
    "same names": ({}, X.rename(columns={"load": "height"}), "same name: 'height'. Rename"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_bad_columns_are_named(case):
    assert_refuses(*COLUMNS[case])


VALUES = ["infinite", "huge", "negative count", "broken count"]


@pytest.mark.slow
@pytest.mark.parametrize("case", VALUES)
def test_bad_values_of_batches_are_found(case):
    parameters, table, message = COLUMNS[case]
    assert_refuses(parameters, [X[1:40], table[:40], X[40:]], f"Batch 1 of X: .*{message}")
    good = LRVBLatentClassMixture(n_init=1, random_state=0, **parameters).fit(X)
    with pytest.raises(ValueError, match=f"Batch 1 of X: .*{message}"):
        good.predict([X[40:], table[:40]])


@pytest.mark.parametrize("case", VALUES)
def test_bad_values_of_dask_collections_are_found(case):
    dask, frames = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    parameters, table, message = COLUMNS[case]
    with dask.config.set(scheduler="synchronous"):
        assert_refuses(parameters, frames.from_pandas(table, npartitions=2), f"Chunk 0 of X: .*{message}")


@pytest.mark.parametrize("case", ["infinite", "negative count", "broken count"])
def test_bad_values_of_rows_of_weight_zero_are_found_too(case):
    parameters, table, message = COLUMNS[case]
    assert_refuses(parameters, table, message, sample_weight=1.0 - FIRST)


ROWS = {
    "one row": ({}, X[:1].fillna(0.5), None, r"1 sample\(s\) .*a minimum of 2 is required"),
    "no rows": ({}, X[:0], None, r"Found array with 0 sample\(s\)"),
    "no values": ({}, X.iloc[[5, 5]], None, "All values are missing in 5 column.*'sport', 'height'"),
    "fewer rows than classes": ({"n_components": 100}, X, None, "n_components = 100, n_samples = 99"),
    "a list without rows": ({}, [], None, "Expected 2D array"),
    "no batches": ({}, lambda: iter([]), None, "X yields no batch"),
    "empty batches": ({}, [X[:0], X[:0]], None, r"Found array with 0 sample\(s\)"),
    "a generator": ({}, (batch for batch in [X]), None, "once only.*lambda"),
    "columns in another order": ({}, [X, X[X.columns[::-1]]], None, "'sport' in one batch and 'load' in"),
    "a column less": ({}, [X, X.drop(columns="load")], None, "One batch has .* columns, and another"),
    "kinds of batches": (
        {},
        [X, X.assign(load="a")],
        None,
        "'load' is numeric in one batch and categorical in another.*'load': 'categorical'",
    ),
    "missing weights": ({}, X, np.full(N, np.nan), "sample_weight contains NaN"),
    "negative weights": ({}, X, -np.ones(N), "Negative values in data passed to `sample_weight`"),
    "weights of other rows": ({}, X, np.ones(N - 1), r"sample_weight.shape == \(99,\), expected \(100,\)"),
    "no weight": ({}, X, np.zeros(N), "at least one non-zero"),
    "endless weights": ({}, X, np.full(N, 1e300), r"sums to 9.9e\+301 rows, beyond 1e\+15.*Divide"),
    "no weight of a column": ({}, X, X["load"].isna() * 1.0, "All values are missing in 1 .* 'load'"),
    "weights beside batches": ({}, [X, X], np.ones(2 * N), r"let X yield pairs \(rows, weights\)"),
    "negative weights of batches": ({}, [X, (X, 1.0 - 2.0 * FIRST)], None, "Batch 1 of X: .* -1 in row 0"),
    "short weights of batches": ({}, [(X, [1.0])], None, r"Batch 0 of X: its weights have shape \(1,\)"),
}


@pytest.mark.filterwarnings("ignore:Columns of X with one value")
@pytest.mark.parametrize("case", ROWS)
def test_bad_rows_and_weights_are_refused(case):
    parameters, table, weights, message = ROWS[case]
    assert_refuses(parameters, table, message, weights)


STARTS = {
    "shape": (np.full((N, 3), 1 / 3), r"a row for each of the 100 rows of X .* has shape \(100, 3\)"),
    "sums": (np.ones((N, 2)), r"sum to one in every row, but row 0 is \[1.0, 1.0\]"),
    "negative": (np.tile([-1.0, 2.0], (N, 1)), r"probabilities .* row 0 is \[-1.0, 2.0\]"),
    "missing": (np.full((N, 2), np.nan), "init_params contains NaN"),
}


@pytest.mark.parametrize("case", STARTS)
def test_bad_starts_are_refused(case):
    start, message = STARTS[case]
    assert_refuses({"init_params": start}, X, message)


def test_a_start_of_rows_in_parts_is_refused():
    assert_refuses({"init_params": np.full((N, 2), 0.5)}, [X], "init_params .*needs X in memory")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 0),
        ("columns", "count"),
        ("n_init", 0),
        ("init_params", "random"),
        ("prior", "flat"),
        ("weight_concentration_prior", 0.0),
        ("category_concentration_prior", -1.0),
        ("mean_precision_prior", 0.0),
        ("degrees_of_freedom_prior", "many"),
        ("variance_prior", 0.0),
        ("rate_shape_prior", 0.0),
        ("tol", -1.0),
        ("max_iter", -1),
        ("solver", "em"),
        ("moves", "split"),
        ("unknown", "ignore"),
        ("n_jobs", 1.5),
    ],
)
def test_bad_parameters_are_refused(name, value):
    assert_refuses({name: value}, X, f"'{name}' parameter of LRVBLatentClassMixture must be")


# What may be fitted, but says little.


def warned(table, **parameters):
    """The fit, and the message of the one warning that it gives."""
    estimator = LRVBLatentClassMixture(n_init=1, random_state=0, **parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(table)
    assert [warning.filename for warning in caught] == [__file__]
    return estimator, str(caught[0].message)


def test_many_categories_are_warned_of():
    _, message = warned(X.assign(id=[f"row {row}" for row in range(N)]))
    assert "More categories than a tenth of the rows: column 'id' has 100 in 100 rows" in message
    assert "Join rare categories" in message and "'ignore'" in message


@pytest.mark.parametrize("value", [1.5, "same", True])
def test_a_constant_column_is_warned_of(value):
    _, message = warned(X.assign(last=value), **COUNTS)
    assert "with one value, which tell no classes apart: 'last'. They may be left out" in message
    assert "{'last': 'ignore'}" in message


def test_a_column_of_one_category_changes_nothing():
    problem, before = PROBLEMS["mixed"], fitted("mixed")
    is_missing = problem.X.isna().all(axis=1) | (np.arange(N) % 3 == 0)
    constant = problem.X.assign(last=pd.Series("same", index=X.index).mask(is_missing))
    with pytest.warns(UserWarning, match="with one value"):
        fit = catalogue.refitted(replace(problem, X=constant))
    np.testing.assert_allclose(fit.lower_bound_, before.lower_bound_, rtol=1e-10)
    np.testing.assert_allclose(fit.predict_proba(constant), before.predict_proba(problem.X), atol=1e-8)
    for tables, others in ((fit.tables_, before.tables_), (fit.tables_std_, before.tables_std_)):
        for name, table in others.items():
            np.testing.assert_allclose(tables[name], table, rtol=1e-6)
    assert fit.tables_["last"].to_numpy().tolist() == [[1.0], [1.0]]
    assert fit.tables_std_["last"].to_numpy().tolist() == [[0.0], [0.0]]
    summary, without = fit.posterior().summary(), before.posterior().summary()
    np.testing.assert_allclose(summary.loc[without.index], without, rtol=1e-5, atol=1e-8)


def test_codes_that_look_like_numbers_are_noted():
    coded = X.assign(visits=X["visits"].clip(upper=5.0), answer=np.arange(N) % 3 + 1)
    with pytest.warns(UserWarning, match="taken for measurements: 'visits', 'answer'. Classes") as caught:
        fit = LRVBLatentClassMixture(n_init=1, random_state=0).fit(coded)
    assert fit.columns_.attrs["notes"] == [str(warning.message) for warning in caught]
    assert caught[0].filename == __file__
    said = {"visits": "count", "answer": "categorical"}
    fit = LRVBLatentClassMixture(n_init=1, random_state=0, columns=said).fit(coded)
    assert not fit.columns_.attrs["notes"]
    assert fit.columns_["kind"].tolist() == [
        "categorical",
        "numeric",
        "binary",
        "count",
        "numeric",
        "categorical",
    ]


# New rows.


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
def test_unseen_categories_are_missing_or_refused(container):
    problem = PROBLEMS["mixed"]
    fit = copy.copy(fitted("mixed"))
    rows = problem.X[6:20]
    as_missing = fit.predict_proba(rows.assign(sport=None))
    new = rows.assign(sport="chess")
    new = new if container is pd.DataFrame else catalogue.in_polars(new)
    message = r"'chess' of column 'sport' in 14 row\(s\), the first is row 0"
    with pytest.warns(UserWarning, match=message) as caught:
        found = fit.predict_proba(new)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(found, as_missing)
    with pytest.raises(ValueError, match=f"{message}.*unknown='missing'"):
        fit.set_params(unknown="error").predict(new)


def test_bad_new_rows_are_refused():
    fit = fitted("mixed")
    for case in VALUES:
        _, table, message = COLUMNS[case]
        for method in (fit.predict, fit.predict_proba, fit.score_samples, fit.score):
            with pytest.raises(ValueError, match=message):
                method(table)
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*load"):
        fit.predict(X.drop(columns="load"))
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        pytest.raises(ValueError, match="X has 2 features, but LRVBLatentClassMixture is expecting 5"),
    ):
        fit.predict(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        fit.predict(X[:0])
    assert fit.predict(X[:1]).shape == (1,)


def test_an_estimator_without_a_fit_says_so():
    new = LRVBLatentClassMixture()
    for method in (new.predict, new.predict_proba, new.score_samples, new.score):
        with pytest.raises(ValueError, match="not fitted yet"):
            method(X)
    assert not hasattr(new, "tables_") and not hasattr(new, "weights_")
