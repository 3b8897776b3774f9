"""Tables as users have them: masked arrays, and columns that are no numbers."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from catalogue import mixture, overlapping, three_blobs
from incomplete_rows import incomplete

from sklearn_lrvb import MixtureImputer
from sklearn_lrvb.displays import ComponentDisplay

MODEL = {"tol": 1e-3}


# Masked arrays.


def masked(X=None):
    """A masked array with large numbers behind the mask."""
    X = incomplete() if X is None else X
    return np.ma.masked_array(np.where(np.isnan(X), 999.0, X), mask=np.isnan(X))


MASKED_FORMS = {
    "array": masked,
    "batches": lambda: [masked()[:50], masked()[50:]],
    "Dask": lambda: da.from_array(masked(), chunks=(40, 3)),
    "float32": lambda: masked().astype(np.float32),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", MASKED_FORMS)
def test_masked_values_are_missing(form):
    X = incomplete().astype(np.float32) if form == "float32" else incomplete()
    expected, given = mixture(MODEL, 2).fit(X), MASKED_FORMS[form]()
    fit = mixture(MODEL, 2).fit(given)
    np.testing.assert_allclose(fit.means_, expected.means_, rtol=1e-9)
    for ask in (
        "predict",
        "predict_proba",
        "score_samples",
        "score",
        "impute",
        "leverage",
    ):
        np.testing.assert_allclose(
            getattr(fit, ask)(given), getattr(expected, ask)(X), rtol=1e-6, err_msg=ask
        )


@pytest.mark.slow
@pytest.mark.parametrize("on_dask", [False, True])
def test_masked_whole_numbers_are_missing(on_dask):
    X = np.round(10 * incomplete())
    given = np.ma.masked_array(np.where(np.isnan(X), -9, X).astype(int), mask=np.isnan(X))
    given = da.from_array(given, chunks=(40, 3)) if on_dask else given
    np.testing.assert_allclose(mixture(MODEL, 2).fit(given).means_, mixture(MODEL, 2).fit(X).means_)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["U", "S"])
def test_masked_words_are_missing(kind):
    given = np.ma.masked_array(masked().data.astype(kind), mask=masked().mask)
    expected = mixture(MODEL, 2).fit(incomplete())
    np.testing.assert_allclose(mixture(MODEL, 2).fit(given).means_, expected.means_)
    imputed = MixtureImputer(missing_values=-999.0, random_state=0).fit_transform(given)
    expected = MixtureImputer(random_state=0).fit_transform(incomplete())
    np.testing.assert_allclose(imputed, expected)


@pytest.mark.slow
@pytest.mark.parametrize("missing_values", [np.nan, -999.0])
def test_the_imputer_fills_masked_values(missing_values):
    X = incomplete()
    marked = np.where(np.isnan(X), missing_values, X)
    expected = MixtureImputer(missing_values=missing_values, random_state=0).fit_transform(marked)
    filled = MixtureImputer(missing_values=missing_values, random_state=0).fit_transform(masked())
    np.testing.assert_array_equal(filled, expected)


def test_a_display_leaves_out_masked_values():
    fit = mixture(MODEL, 2).fit(incomplete())
    displays = [ComponentDisplay.from_estimator(fit, X, features=[0, 1]) for X in (incomplete(), masked())]
    np.testing.assert_array_equal(*(display.points for display in displays))


def test_a_mask_that_hides_nothing_changes_nothing():
    X = three_blobs()
    weights = np.ma.masked_array(np.linspace(1, 2, len(X)))
    fit = mixture(MODEL, 2).fit(np.ma.masked_array(X), sample_weight=weights)
    expected = mixture(MODEL, 2).fit(X, sample_weight=weights.data)
    np.testing.assert_array_equal(fit.means_, expected.means_)


def test_masked_weights_are_refused():
    X = three_blobs()
    weights = np.ma.masked_array(np.ones(300), mask=np.arange(300) < 3)
    on_dask = da.from_array(X, chunks=(100, 3))
    for given, keywords in (
        (X, {"sample_weight": weights}),
        ([(X, weights)], {}),
        (on_dask, {"sample_weight": weights}),
    ):
        with pytest.raises(ValueError, match=r"3 of 300 sample weights are masked.*filled\(0\)"):
            mixture(MODEL, 2).fit(given, **keywords)
    with pytest.raises(
        ValueError, match=r"sample_weight is a masked array on Dask.*filled\(sample_weight, 0\)"
    ):
        mixture(MODEL, 2).fit(on_dask, sample_weight=da.from_array(weights, chunks=100))


# Columns that are no numbers.

DAYS = pd.date_range("2024-01-01", periods=240)


def frame(**columns):
    return pd.DataFrame(overlapping(), columns=["length", "depth"]).assign(**columns)


def objects(values):
    """Values as an array of objects, which NumPy and pandas do not convert."""
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return pd.Series(array, dtype=object)


TIMES = {
    "numpy": (lambda: DAYS.to_numpy()[:, None], "0"),
    "durations": (lambda: (DAYS - DAYS[0]).to_numpy()[:, None], "0"),
    "pandas": (lambda: frame(day=DAYS, since=DAYS - DAYS[0]), r"2 \('day'\), 3 \('since'\)"),
    "pandas alone": (lambda: pd.DataFrame({"day": DAYS}), r"0 \('day'\)"),
    "categories": (lambda: frame(day=pd.Categorical(DAYS)), r"2 \('day'\)"),
    "categories alone": (lambda: pd.DataFrame({"day": pd.Categorical(DAYS)}), r"0 \('day'\)"),
    "categories of objects": (lambda: frame(day=pd.Categorical(DAYS.date)), r"2 \('day'\)"),
    "objects": (
        lambda: frame(
            numpy=objects(DAYS.to_numpy()),
            pandas=objects(DAYS),
            since=objects((DAYS - DAYS[0]).to_pytimedelta()),
            elapsed=objects((DAYS - DAYS[0]).to_numpy()),
            days=objects([None, *DAYS.date[1:]]),
        ),
        r"2 \('numpy'\), 3 \('pandas'\), 4 \('since'\), 5 \('elapsed'\), 6 \('days'\)",
    ),
    "object array": (lambda: frame(day=objects(DAYS.to_numpy())).to_numpy(), "2"),
    "lists": (lambda: [[1.0, day] for day in DAYS.to_numpy()], "1"),
    "lists alone": (lambda: [[day] for day in DAYS.to_numpy()], "0"),
    "batches of lists": (lambda: lambda: [[[1.0, day] for day in DAYS.to_numpy()]], "1"),
    "time zones": (lambda: frame(day=DAYS.tz_localize("UTC")), r"2 \('day'\)"),
    "polars": (lambda: pl.from_pandas(frame(day=DAYS)), r"2 \('day'\)"),
    "polars alone": (lambda: pl.DataFrame({"day": DAYS.to_numpy()}), r"0 \('day'\)"),
    "batches": (lambda: [frame(day=DAYS)], r"2 \('day'\)"),
    "Dask array": (lambda: da.from_array(DAYS.to_numpy()[:, None], chunks=(100, 1)), "0"),
    "Dask objects": (lambda: da.from_array(frame(day=objects(DAYS)).to_numpy(), chunks=(100, 3)), "2"),
    "Dask frame": (lambda: dd.from_pandas(frame(day=DAYS), npartitions=2), r"2 \('day'\)"),
}


@pytest.mark.parametrize("table", TIMES)
def test_dates_and_durations_are_refused_by_name(table):
    make, columns = TIMES[table]
    with pytest.raises(TypeError, match=rf"Column\(s\) {columns} of X are dates or durations.*Drop them"):
        mixture(MODEL, 2).fit(make())
    if table not in ("batches", "batches of lists", "Dask array", "Dask objects", "Dask frame"):
        with pytest.raises(TypeError, match=rf"Column\(s\) {columns} of X are dates or durations"):
            MixtureImputer().fit(make())


OTHERS = {
    "words": (lambda: frame(species="Adelie"), ValueError, r"'Adelie', in column\(s\) 2 \('species'\)"),
    "categories": (
        lambda: frame(species=pd.Categorical(["Adelie", "Gentoo"] * 120), one=1, island="Dream"),
        ValueError,
        r"in column\(s\) 2 \('species'\), 4 \('island'\)",
    ),
    "polars": (lambda: pl.from_pandas(frame(species="Adelie")), ValueError, r"column\(s\) 2 \('species'\)"),
    "lists": (lambda: [[1.0, "a"], [2.0, "b"]], ValueError, r"in column\(s\) 1 of X"),
    "numpy": (lambda: np.array([["1.5", "a"], ["2", "b"]]), ValueError, r"in column\(s\) 1 of X"),
    "objects": (lambda: frame(size=objects([1j] * 240)), TypeError, r"in column\(s\) 2 \('size'\) of X"),
    "batches": (
        lambda: [frame(species="Adelie")],
        ValueError,
        r"Batch 0 of X: .*column\(s\) 2 \('species'\)",
    ),
    "missing among them": (
        lambda: frame(count=pd.Series([1, pd.NA] * 120, dtype="Int64"), species="Adelie"),
        ValueError,
        r"in column\(s\) 3 \('species'\) of X",
    ),
}


@pytest.mark.parametrize("table", OTHERS)
def test_columns_that_are_no_numbers_are_named(table):
    make, kind, message = OTHERS[table]
    with pytest.raises(kind, match=f"{message}.*Drop these columns, or encode them"):
        mixture(MODEL, 2).fit(make())


def test_numbers_in_other_clothes_are_taken():
    numbers = frame(size=np.arange(240) % 3)
    expected = mixture(MODEL, 2).fit(numbers).means_
    sizes = np.arange(240) % 3
    np.testing.assert_allclose(mixture(MODEL, 2).fit(numbers.to_numpy().tolist()).means_, expected)
    for others in (pd.Categorical(sizes), sizes.astype(str), sizes.astype(object), pd.array(sizes, "Int64")):
        np.testing.assert_allclose(mixture(MODEL, 2).fit(frame(size=others)).means_, expected)


def test_a_column_alone_is_no_table():
    with pytest.raises(ValueError, match="Expected a 2-dimensional container but got"):
        mixture(MODEL, 2).fit(pd.Series(np.arange(240.0)))
