"""Missing values are filled, and all others come back as they were, bit by bit and in their dtype."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sklearn_lrvb import LRVBLatentClassMixture
from sklearn_lrvb.mixed_tables.decoding import completed_table
from sklearn_lrvb.mixed_tables.table import described

N = 40
LARGE = 2**53 + 1
IS_MISSING = np.arange(N) % 7 == 3
WHOLE = [None if is_missing_value else place % 5 for place, is_missing_value in enumerate(IS_MISSING)]
NUMBERS = [None if is_missing_value else 0.1 * place for place, is_missing_value in enumerate(IS_MISSING)]
IDS = [None if is_missing_value else LARGE + place % 3 for place, is_missing_value in enumerate(IS_MISSING)]
DECIMALS = [
    None if is_missing_value else Decimal(f"{place}.5") for place, is_missing_value in enumerate(IS_MISSING)
]
WORDS = [None if is_missing_value else "ab"[place % 2] for place, is_missing_value in enumerate(IS_MISSING)]
BOOLS = [None if is_missing_value else place % 2 == 0 for place, is_missing_value in enumerate(IS_MISSING)]


def of_pandas(values, dtype):
    return pd.DataFrame(
        {"a": pd.array(values, dtype=dtype) if dtype != "category" else pd.Categorical(values)}
    )


PANDAS = {
    "float64": (NUMBERS, "numeric"),
    "float32": (NUMBERS, "numeric"),
    "Float32": (NUMBERS, "numeric"),
    "double[pyarrow]": (NUMBERS, "numeric"),
    "Int64": (IDS, "categorical"),
    "UInt64": (IDS, "categorical"),
    "int64[pyarrow]": (IDS, "categorical"),
    "object": (WORDS, "categorical"),
    "string": (WORDS, "categorical"),
    "string[pyarrow]": (WORDS, "categorical"),
    "category": (WORDS, "categorical"),
    "boolean": (BOOLS, "binary"),
    "bool[pyarrow]": (BOOLS, "binary"),
}
POLARS = {
    "Float64": (NUMBERS, "numeric"),
    "Float32": (NUMBERS, "numeric"),
    "Int64": (IDS, "categorical"),
    "UInt64": (IDS, "categorical"),
    "String": (WORDS, "categorical"),
    "Categorical": (WORDS, "categorical"),
    "Boolean": (BOOLS, "binary"),
}
FORMS = {f"pandas {dtype}": (of_pandas(values, dtype), kind) for dtype, (values, kind) in PANDAS.items()}
FORMS |= {
    f"polars {dtype}": (pl.DataFrame({"a": pl.Series(values, dtype=getattr(pl, dtype))}), kind)
    for dtype, (values, kind) in POLARS.items()
}
FORMS["polars Decimal"] = pl.DataFrame({"a": pl.Series(DECIMALS, dtype=pl.Decimal(10, 1))}), "numeric"
FORMS["polars Enum"] = pl.DataFrame({"a": pl.Series(WORDS, dtype=pl.Enum(["b", "a"]))}), "categorical"
FORMS["array of objects"] = np.array(IDS, dtype=object)[:, None], "categorical"
FORMS["float32 array"] = np.array(NUMBERS, dtype=np.float32)[:, None], "numeric"


def completed(X, kind, value):
    """The table whose missing values have been filled with one encoded value."""
    columns = described(X, {0: kind})
    table, is_missing = completed_table(columns, X, np.full((N, 1), float(value)))
    np.testing.assert_array_equal(is_missing[:, 0], IS_MISSING)
    return columns, table


def values_of(table):
    if isinstance(table, np.ndarray):
        return table[:, 0].tolist()
    return table["a"].to_list()


@pytest.mark.parametrize("form", FORMS)
def test_values_that_are_there_come_back_in_their_dtype(form):
    X, kind = FORMS[form]
    columns, table = completed(X, kind, 1.0)
    if isinstance(X, np.ndarray):
        assert table.dtype == X.dtype
    else:
        assert table["a"].dtype == X["a"].dtype
    assert type(table) is type(X)
    filling = 1.0 if kind == "numeric" else columns.columns[0].categories[1]
    expected = [
        filling if is_missing_value else value
        for is_missing_value, value in zip(IS_MISSING, values_of(X), strict=True)
    ]
    assert values_of(table) == expected
    assert list(map(type, values_of(table)[:3])) == list(map(type, expected[:3]))


@pytest.mark.parametrize("make", [lambda v: of_pandas(v, "Int64"), lambda v: pl.DataFrame({"a": v})])
@pytest.mark.parametrize(("kind", "value"), [("numeric", 2.0), ("count", 2.5)])
def test_whole_numbers_are_floats_if_their_means_are_not_whole(make, kind, value):
    _, table = completed(make(WHOLE), kind, value)
    assert values_of(table) == [value if whole is None else whole for whole in WHOLE]
    is_whole = value == 2.0
    assert ("Int64" if is_whole else "Float64") in str(table["a"].dtype)
    # Floats would merge large ones.
    _, table = completed(make(IDS), kind, value)
    assert values_of(table) == [2 if whole is None else whole for whole in IDS]


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": pd.Categorical(["x", None])}),
        pl.DataFrame({"a": pl.Series(["x", None], dtype=pl.Enum(["x"]))}),
        pd.DataFrame({"a": pd.Series(["x", None], dtype=object)}),
        np.array([["x"], [None]], dtype=object),
        pa.table({"a": ["x", None]}),
        [["x"], [None]],
    ],
)
def test_an_unseen_category_stays(X):
    columns = described(pd.DataFrame({"a": ["b", "a"] * 20}))
    table, is_missing = completed_table(columns, X, np.zeros((2, 1)))
    assert values_of(table) == ["x", "a"] and is_missing.tolist() == [[False], [True]]


def test_imputed_tables_are_those_that_were_given():
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=N)
    X = pd.DataFrame(
        {
            "name": [f"n{row}" for row in range(N)],
            "c": pd.Categorical(np.where(groups, "b", "a"), ["b", "a", "none"], ordered=True),
            "x": (4.0 * groups + rng.normal(size=N)).astype(np.float32),
            "day": pd.array(LARGE + rng.integers(3, size=N), dtype="Int64"),
        },
        index=np.repeat(np.arange(N // 2), 2),
    )
    columns = {"name": "ignore", "day": "numeric"}
    fit = LRVBLatentClassMixture(2, columns=columns, n_init=2, random_state=0).fit(X)
    pd.testing.assert_frame_equal(fit.impute(X), X.drop(columns="name"))
    incomplete = X.copy()
    incomplete.iloc[3, 1], incomplete.iloc[4, 2], incomplete.iloc[5, 3] = None, np.nan, pd.NA
    table, std = fit.impute(incomplete, return_std=True)
    known = incomplete.drop(columns="name").notna().to_numpy()
    pd.testing.assert_frame_equal(table.where(known), incomplete.drop(columns="name").where(known))
    assert table.notna().all(axis=None) and (table.dtypes == X.dtypes[1:]).all()
    np.testing.assert_array_equal(std > 0.0, ~known)
    # What is filled in follows the class of the row.
    assert abs(table["x"].iloc[4] - (4.0 if groups[4] else 0.0)) < 1.5


def test_an_unseen_category_has_no_standard_deviation():
    X = pd.DataFrame({"c": list("aabbabab") * 5, "x": np.arange(40.0)})
    fit = LRVBLatentClassMixture(2, n_init=1, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="'zebra' of column 'c'"):
        table, std = fit.impute(pd.DataFrame({"c": ["zebra", None], "x": [0.1, 1.0]}), return_std=True)
    assert table["c"][0] == "zebra" and table["c"][1] in ("a", "b")
    np.testing.assert_array_equal(std > 0.0, [[False, False], [True, False]])


@pytest.mark.filterwarnings("ignore:Columns of X with one value")
def test_the_probability_of_other_categories_keeps_its_digits():
    # One less the probability of the most probable category would be round-off.
    X = pd.DataFrame({"c": pd.Categorical(["a"] * 60, ["a", "b"]), "d": ["x", "y", "z"] * 20})
    fit = LRVBLatentClassMixture(1, category_concentration_prior=1e-14, random_state=0).fit(X)
    _, std = fit.impute(X.iloc[:1].mask([[True, True]]), return_std=True)
    np.testing.assert_allclose(std, [[1e-14 / 60.0, 2.0 / 3.0]], rtol=1e-6)


def test_the_relative_entropy_is_between_zero_and_one():
    # Two equal classes say nothing, and classes far apart say all.
    X = pd.DataFrame({"x": np.arange(30.0)})
    given = {"moves": None, "max_iter": 0, "init_params": np.full((30, 2), 0.5)}
    alike = LRVBLatentClassMixture(2, **given).fit(X)
    assert 0.0 <= alike.relative_entropy(X) < 1e-12
    X = pd.DataFrame({"x": np.repeat([0.0, 1e6], 30) + np.arange(60.0)})
    assert 1.0 - 1e-12 < LRVBLatentClassMixture(2, n_init=1, random_state=0).fit(X).relative_entropy(X) <= 1.0
