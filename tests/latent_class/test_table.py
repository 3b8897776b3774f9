"""Tables with columns of several types become arrays of numbers, and tables again."""

import pickle
from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.compose import make_column_selector

from sklearn_lrvb.mixed_tables.table import described, described_part

N = 40
KINDS = ("numeric", "categorical", "binary", "binary", "numeric")
NAMES = ("size", "species", "sex", "is_old", "visits")
LARGE = np.arange(N) + 20  # more different numbers than codes have


def values():
    """The columns of a table with missing values, as lists of Python values."""
    columns = {
        "size": [0.5 * row for row in range(N)],
        "species": ["Gentoo", "Adelie", "Chinstrap", "Adelie"] * (N // 4),
        "sex": ["male", "female"] * (N // 2),
        "is_old": [True, False, False, False] * (N // 4),
        "visits": LARGE.tolist(),
    }
    for place, column in enumerate(columns.values()):
        column[place] = None
    return columns


def nullable():
    dtypes = dict(zip(NAMES, ("Float64", "string", "category", "boolean", "Int64"), strict=True))
    return pd.DataFrame(values()).astype(dtypes)


def of_arrow():
    dtypes = ("double[pyarrow]", "string[pyarrow]", "string[pyarrow]", "bool[pyarrow]", "int64[pyarrow]")
    return pd.DataFrame(values()).astype(dict(zip(NAMES, dtypes, strict=True)))


def objects():
    return pd.DataFrame(values()).astype(object).to_numpy()


FORMS = {
    "pandas": lambda: pd.DataFrame(values()),
    "pandas' objects": lambda: pd.DataFrame(values()).astype(object),
    "nullable": nullable,
    "pandas with Arrow": of_arrow,
    "polars": lambda: pl.DataFrame(values()),
    "objects": objects,
    "masked": lambda: np.ma.masked_array(
        pd.DataFrame(values()).ffill().bfill().to_numpy(object), np.eye(N, 5)
    ),
    "lists": lambda: [list(row) for row in zip(*values().values(), strict=True)],
    "Arrow": lambda: pa.table(values()),
}


def frame(**columns):
    return pd.DataFrame({"size": np.arange(N) / 2, "sex": ["male", "female"] * (N // 2)}).assign(**columns)


def column_of(given, kinds="auto"):
    """What is learned of one column, which is the last of a frame."""
    return described(frame(last=given), kinds).columns[-1]


# There and back.


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_table_are_one_array(form):
    columns = described(FORMS[form]())
    expected = np.column_stack(
        [
            np.arange(N) / 2,
            np.tile([2, 0, 1, 0], N // 4),
            np.tile([1, 0], N // 2),
            np.tile([1, 0, 0, 0], N // 4),
            LARGE,
        ]
    )
    np.fill_diagonal(expected[:5], np.nan)
    assert tuple(column.kind for column in columns.columns) == KINDS
    assert columns.columns[1].categories == ("Adelie", "Chinstrap", "Gentoo")
    has_names = form not in ("objects", "masked", "lists") and (form != "Arrow" or columns.names[0] != "x0")
    assert columns.names == (NAMES if has_names else ("x0", "x1", "x2", "x3", "x4"))
    assert columns.notes == ()
    np.testing.assert_array_equal(columns.encoded(FORMS[form]()), expected)


@pytest.mark.parametrize("form", FORMS)
def test_a_decoded_table_is_encoded_alike(form):
    X = FORMS[form]()
    columns = pickle.loads(pickle.dumps(described(X)))
    array = columns.encoded(X)
    np.testing.assert_array_equal(columns.encoded(columns.decoded(array)), array)


@pytest.mark.parametrize("form", ["pandas", "nullable", "polars"])
def test_a_decoded_data_frame_is_that_which_was_given(form):
    X = FORMS[form]()
    table = described(X).decoded(described(X).encoded(X))
    if form == "polars":
        assert table.equals(X) and table.schema == X.schema
    else:
        pd.testing.assert_frame_equal(table, X.where(X.notna(), np.nan) if form == "pandas" else X)


def test_decoded_objects_are_those_which_were_given():
    X = objects()
    table = described(X).decoded(described(X).encoded(X))
    assert table.dtype == object
    is_there = pd.notna(X)
    np.testing.assert_array_equal(pd.notna(table), is_there)
    np.testing.assert_array_equal(table[is_there], X[is_there])


def test_an_array_of_numbers_remains_such():
    X = np.random.default_rng(0).normal(size=(N, 3))
    X[2, 1] = np.nan
    columns = described(X)
    np.testing.assert_array_equal(columns.encoded(X), X)
    assert columns.decoded(X).dtype == np.float64


def test_numbers_keep_their_dtype_where_it_can_hold_them():
    X = frame(
        small=LARGE.astype(np.int8), single=(LARGE / 2).astype(np.float32), level=pd.Categorical(LARGE % 3)
    )
    X["level"] = X["level"].cat.as_ordered()
    columns = described(X)
    array = columns.encoded(X)
    pd.testing.assert_frame_equal(columns.decoded(array), X.astype({"small": np.int64}))
    array[0] = 0.5, 0.0, 1000.5, 0.5, np.nan  # as draws are
    assert columns.decoded(array)["small"][0] == 1000.5
    assert columns.decoded(array)["level"].dtype == X["level"].dtype
    of_polars = described(pl.from_pandas(X[["small", "single"]]))
    assert of_polars.decoded(array[:, 2:4]).schema == {"small": pl.Float64, "single": pl.Float32}
    assert of_polars.decoded(array[1:, 2:4]).schema == {"small": pl.Int64, "single": pl.Float32}


@pytest.mark.parametrize("present", [1, "a"])
@pytest.mark.parametrize("make", [np.array, pd.DataFrame])
def test_values_are_missing_in_all_the_ways_there_are(present, make):
    missing = [None, np.nan, float("nan"), np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]
    column = np.array([present, 2] * 15 + missing, dtype=object)[:, None]
    X = make(column, dtype=object)
    codes = [1, 0] if present == "a" else [0, 1]
    expected = np.concatenate([np.tile(codes, 15), np.full(7, np.nan)])
    np.testing.assert_array_equal(described(X).encoded(X)[:, 0], expected)
    as_numbers = [] if present == "a" else described(X, {0: "numeric"}).encoded(X)[:30, 0]
    np.testing.assert_array_equal(as_numbers, [1, 2] * 15 if present == 1 else [])


# Kinds.

COLUMNS = {
    "floats": (LARGE / 2, "numeric", ()),
    "integers": (LARGE, "numeric", ()),
    "booleans": (LARGE % 3 == 0, "binary", (False, True)),
    "strings": (list("cabb") * 10, "categorical", ("a", "b", "c")),
    "two strings": (list("ba") * 20, "binary", ("a", "b")),
    "mixed": ([1, "b", "a", 2.5] * 10, "categorical", (1, 2.5, "a", "b")),
    "without an order": ([range(2), range(1), "c", "b"] * 10, "categorical", (range(1), range(2), "b", "c")),
    "objects": (pd.Series(LARGE.tolist(), dtype=object), "numeric", ()),
    "objects that are booleans": ([True, False, None, True] * 10, "binary", (False, True)),
    "categories in their order": (
        pd.Categorical(list("ab") * 20, ["c", "b", "a"]),
        "categorical",
        ("c", "b", "a"),
    ),
    "intervals": (pd.cut(LARGE, 2, labels=None), "binary", None),
    "zeros and ones": (LARGE % 3 % 2, "binary", (0, 1)),
    "ones and twos, with missing values": (np.where(LARGE % 3, LARGE % 3, np.nan), "binary", (1, 2)),
    "two floats": (np.float32(LARGE % 2 / 10), "binary", (0, float(np.float32(0.1)))),
    "nullable integers": (pd.array([1, 2, None, 2] * 10, dtype="Int64"), "binary", (1, 2)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_kinds_are_inferred(name):
    given, kind, categories = COLUMNS[name]
    column = column_of(given)
    assert (column.name, column.kind, column.place) == ("last", kind, 2)
    assert categories is None or column.categories == categories


def test_categories_of_polars():
    enum = pl.Series(["b", None, "a", "b"] * 10, dtype=pl.Enum(["c", "b", "a"]))
    X = pl.DataFrame({"enum": enum, "seen": enum.cast(pl.Categorical), "word": enum.cast(pl.String)})
    columns = described(X)
    expected = ("c", "b", "a"), ("a", "b"), ("a", "b")
    assert tuple(column.categories for column in columns.columns) == expected
    np.testing.assert_array_equal(columns.encoded(X)[:3], [[1, 1, 1], [np.nan] * 3, [2, 0, 0]])
    table = columns.decoded(columns.encoded(X))
    assert table.schema == X.schema and table.cast(pl.String).equals(X.cast(pl.String))


SAID = {
    "name": {"visits": "count"},
    "position": {4: "count"},
    "from the end": {-1: "count"},
    "tuple": {("visits",): "count"},
    "selector": {make_column_selector("visits"): "count"},
    "later ones overrule": {make_column_selector(dtype_include="int"): "ignore", "visits": "count"},
}


@pytest.mark.parametrize("form", SAID)
def test_the_user_says_a_kind(form):
    X = pd.DataFrame(values()).assign(visits=LARGE)
    columns = described(X, SAID[form])
    assert tuple(column.kind for column in columns.columns) == (*KINDS[:4], "count")


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ([1, 0], 1),
        ([1, 0], make_column_selector(dtype_include="int64")),
        ([10, 20], 10),
        ([10, 20], make_column_selector(dtype_include="int64")),
        ([("a", "x"), ("a", "y")], ("a", "x")),
        ([0, 1], -2),
        ([0.5, 1.5], 0),
    ],
)
def test_numbers_are_labels_where_a_frame_has_such(labels, key):
    X = pd.DataFrame({"code": LARGE % 3, "number": LARGE / 2}).set_axis(labels, axis=1)
    columns = described(X, {key: "categorical"})
    assert [column.kind for column in columns.columns] == ["categorical", "numeric"]
    assert columns.decoded(columns.encoded(X)).columns.tolist() == labels


@pytest.mark.parametrize("key", [0, 1, -1, "code"])
def test_a_number_that_is_no_label_is_refused(key):
    X = pd.DataFrame({10: LARGE % 3, 20: LARGE / 2})
    with pytest.raises(ValueError, match=f"column {key!r}, but X has no such.* are 10, 20"):
        described(X, {key: "categorical"})


def test_frames_with_other_labels_are_refused():
    X = pd.DataFrame({10: LARGE, 20: LARGE / 2})
    message = "columns of X are 20, 10, but those of the training table, or of the first batch, are 10, 20"
    with pytest.raises(ValueError, match=message):
        described(X).encoded(X[[20, 10]])
    with pytest.raises(ValueError, match=message):
        described_part(X) + described_part(X[[20, 10]])


def test_ignored_columns_are_left_out():
    X = frame(day=pd.date_range("2024-01-01", periods=N), last=LARGE)
    columns = described(X, {"day": "ignore", "size": "ignore"})
    assert columns.names == ("sex", "last") and columns.n_given == 4
    np.testing.assert_array_equal(columns.encoded(X), np.column_stack([np.tile([1, 0], N // 2), LARGE]))
    pd.testing.assert_frame_equal(columns.decoded(columns.encoded(X)), X[["sex", "last"]])


def test_numbers_as_categories():
    assert column_of(LARGE % 3, {"last": "categorical"}).categories == (0, 1, 2)
    incomplete = np.where(LARGE % 4 == 3, np.nan, LARGE % 4)
    assert repr(column_of(incomplete, {"last": "categorical"}).categories) == "(0, 1, 2)"
    halves = column_of(incomplete / 2, {"last": "categorical"})
    assert halves.categories == (0.0, 0.5, 1.0)
    assert column_of(LARGE % 2, {"last": "categorical"}).kind == "binary"


LARGEST_OF_POLARS = getattr(pl, "Int128", pl.Int64)  # which the oldest versions do not have
LARGE_IDS = {
    "int64": lambda ids: pd.DataFrame({"id": ids}),
    "Int64": lambda ids: pd.DataFrame({"id": pd.array(ids, dtype="Int64")}),
    "UInt64": lambda ids: pd.DataFrame({"id": pd.array(ids, dtype="UInt64")}),
    "arrow": lambda ids: pd.DataFrame({"id": pd.array(ids, dtype="int64[pyarrow]")}),
    "objects": lambda ids: pd.DataFrame({"id": pd.Series(ids, dtype=object)}),
    "polars": lambda ids: pl.DataFrame({"id": ids}),
    "polars, 128 bits": lambda ids: pl.DataFrame({"id": pl.Series(ids, dtype=LARGEST_OF_POLARS)}),
    "Arrow's table": lambda ids: pa.table({"id": ids}),
    "array of objects": lambda ids: np.array(ids, dtype=object)[:, None],
    "masked": lambda ids: np.ma.masked_equal(np.array([0 if i is None else i for i in ids])[:, None], 0),
}


@pytest.mark.parametrize("form", LARGE_IDS)
@pytest.mark.parametrize("is_incomplete", [False, True])
def test_large_whole_numbers_are_different_categories(form, is_incomplete):
    ids = [2**53 + place for place in (0, 1, 2, 1)] * (N // 4)
    ids[0] = None if is_incomplete and form != "int64" else ids[0]
    columns = described(LARGE_IDS[form](ids), {0: "categorical"})
    assert columns.columns[0].categories == tuple(2**53 + place for place in (0, 1, 2))
    expected = [np.nan if value is None else value - 2**53 for value in ids]
    np.testing.assert_array_equal(columns.encoded(LARGE_IDS[form](ids))[:, 0], expected)
    numbers = described(LARGE_IDS[form](ids), {0: "numeric"}).encoded(LARGE_IDS[form](ids))
    np.testing.assert_array_equal(np.isnan(numbers[:, 0]), np.isnan(np.array(expected)))


INFINITE = {
    **{
        name: lambda codes, name=name: pd.Series(codes, dtype=name)
        for name in ("float32", "float16", "Float32")
    },
    "arrow": lambda codes: pd.array(codes, dtype="float[pyarrow]"),
    "objects": lambda codes: pd.Series(codes, dtype=object),
    "categories": lambda codes: pd.Categorical(codes),
}


@pytest.mark.parametrize("form", INFINITE)
def test_infinity_is_no_category_and_no_number(form):
    message = "10 value.* 'last' of X are infinite.* inf in row 3"
    codes = [1.0, 2.0, 3.0, np.inf] * (N // 4)
    with pytest.raises(ValueError, match=message):
        column_of(INFINITE[form](codes), {"last": "categorical"})
    with pytest.raises(ValueError, match=message):
        column_of(INFINITE[form](codes))
    finite = INFINITE[form]([1.0, 2.0, 3.0, 4.0] * (N // 4))  # Without any warning.
    assert column_of(finite, {"last": "categorical"}).categories == (1, 2, 3, 4)


@pytest.mark.parametrize("make", [pd.DataFrame, lambda X: pl.DataFrame(X).cast(pl.Float32)])
def test_frames_of_single_precision_have_categories(make):
    X = make({"code": np.tile([1, 2, 3, 4], N // 4).astype(np.float32)})
    assert described(X, {"code": "categorical"}).columns[0].categories == (1, 2, 3, 4)


def test_categories_as_numbers():
    levels = pd.Categorical(LARGE % 3, [0, 1, 2, 3])
    X = frame(last=levels)
    np.testing.assert_array_equal(described(X, {"last": "count"}).encoded(X)[:, 2], LARGE % 3)


def test_where_all_say_no_some_could_have_said_yes():
    with pytest.warns(UserWarning, match="Columns of X with one value.*: 'last'"):
        columns = described(frame(last=0), {"last": "binary"})
    np.testing.assert_array_equal(columns.encoded(frame(last=1))[:, 2], np.ones(N))


CODES = {
    "code": LARGE % 3 + 1,
    "incomplete": np.where(LARGE % 4, LARGE % 4, np.nan),
    "below": LARGE % 3 - 1,
    "rate": LARGE % 3 / 3,
    "many": LARGE,
}


@pytest.mark.parametrize("n_batches", [1, 3])
def test_one_warning_names_numbers_that_may_be_codes(n_batches):
    parts = [described_part(part) for part in [frame(**CODES)[k::n_batches] for k in range(n_batches)]]
    with pytest.warns(UserWarning, match="whole numbers are taken for measurements") as caught:
        columns = reduce(add, parts).checked()
    (note,) = columns.notes
    assert [str(warning.message) for warning in caught] == [note]
    assert "'code', 'incomplete', 'below'. Classes can" in note
    assert "columns={'code': 'categorical'}" in note
    # What the user has said is not doubtful, nor are few values of few rows.
    assert described(frame(**CODES), {("code", "incomplete", "below"): "numeric"}).notes == ()
    assert described(frame(**CODES)[:12]).notes == ()


@pytest.mark.parametrize("dtype", ["int8", "float32", "Float64", "int64[pyarrow]", "object"])
@pytest.mark.parametrize("container", ["pandas", "polars", "array"])
def test_two_numbers_are_categories_there_and_back(container, dtype):
    X = frame(last=pd.Series(np.arange(N) % 3 % 2 + 1).astype(dtype))
    if container == "array":
        X = X[["size", "last"]].to_numpy()
    elif container == "polars":
        X = pl.from_pandas(X.astype({"last": "int64" if dtype == "object" else dtype}))
    columns = described(X)
    assert columns.columns[-1].kind == "binary" and columns.columns[-1].categories == (1, 2)
    array = columns.encoded(X)
    np.testing.assert_array_equal(array[:, -1], np.arange(N) % 3 % 2)
    back = columns.decoded(array)
    if container == "pandas":
        pd.testing.assert_frame_equal(back, X)
    elif container == "polars":
        assert back.equals(X) and back.schema == X.schema
    else:
        np.testing.assert_array_equal(back, X.astype(float))
    assert described(X, {-1: "numeric"}).columns[-1].kind == "numeric"


def test_two_numbers_that_may_be_more_stay_numeric():
    # As float64, of which the table learns, the first two are the same.
    large = np.array([2**53, 2**53 + 1, 2**53 + 2] * 13 + [2**53])
    with pytest.warns(UserWarning, match="taken for measurements: 'last'"):
        assert described(frame(last=large)).columns[-1].kind == "numeric"


def test_two_numbers_are_known_once_all_batches_are():
    X = frame(two=np.repeat([0.0, 5.0], N // 2), more=np.repeat([1.0, 2.0, np.nan, 4.5], N // 4))
    parts = [described_part(X[start : start + 10]) for start in range(0, N, 10)]
    columns = reduce(add, parts).checked()
    assert columns == described(X)
    assert [column.kind for column in columns.columns[2:]] == ["binary", "numeric"]


# Errors and warnings.

ERRORS = {
    "missing": ({"last": np.nan}, "auto", "All values are missing in 1 .* 'last'. Drop"),
    "infinite": ({"last": [1.0] * 39 + [-np.inf]}, "auto", "1 value.* 'last' .*infinite.* -inf in row 39"),
    "infinite category": ({"last": [np.inf] * N}, {2: "categorical"}, "'last' of X are infinite"),
    "large": ({"last": [0, 1e101] * 20}, "auto", r"20 value.* larger than 1e\+100 .* 1e\+101 in row 1"),
    "negative count": ({"last": LARGE - 21}, {"last": "count"}, "1 value.* negative .*-1 in row 0"),
    "broken count": ({"last": LARGE / 2}, {"last": "count"}, "20 value.* whole numbers.* 10.5 in row 1"),
    "three": (
        {"last": LARGE % 3},
        {"last": "binary"},
        "'last' of X is to be binary, but has 3 values: 0, 1, 2",
    ),
    "absent": (
        {},
        {"lost": "count"},
        "for column 'lost', but X has no such column. Its 2 columns are 'size'",
    ),
    "out of range": ({}, {2: "count"}, "for column 2, but X has no such"),
    "no kind": ({}, {"sex": "word"}, "The type of .* 'sex' must be one of 'numeric', .* got 'word'"),
    "no dict": ({}, ["sex"], r"must be 'auto' or a dict .* got \['sex'\]"),
    "nothing left": ({}, {(0, 1): "ignore"}, "All 2 columns of X are ignored"),
    "words": (
        {"last": ["1", None] * 20},
        {"last": "numeric"},
        "20 value.* no numbers. .*'1' in row 0. Convert",
    ),
    "complex": ({"last": 1j}, "auto", "Complex data not supported: column 'last'"),
    "complex objects": ({"last": pd.Series([1j] * N, dtype=object)}, "auto", "Complex .* 'last'"),
    "lists": ({"last": [[1]] * N}, "auto", "'last' of X holds objects .* unhashable"),
    "lists of Arrow": (
        {"last": pd.array([[1]] * N, dtype=pd.ArrowDtype(pa.list_(pa.int64())))},
        "auto",
        "'last' of X holds objects that cannot be categories",
    ),
    "endless": (
        {"last": pd.Series([-(10**400)] * N, dtype=object)},
        "auto",
        "'last' .* (is -inf in row 0|too large)",
    ),
    "endless code": (
        {"last": pd.Series([1, 10**5000] * (N // 2), dtype=object)},
        {"last": "categorical"},
        "'last' .* (is inf in row 1|too large)",
    ),
    "complex category": (
        {"last": pd.Categorical([1j, 2j] * (N // 2))},
        {"last": "numeric"},
        "'last' of X are no numbers.* 1j in row 0",
    ),
    "dates": ({"last": pd.date_range("2024-01-01", periods=N)}, "auto", "'last' of X holds dates .*Convert"),
    "days": ({"last": pd.date_range("2024-01-01", periods=N).date}, "auto", "'last' of X holds dates"),
    "durations": ({"last": pd.timedelta_range("1D", periods=N)}, "auto", "'last' of X holds dates"),
}


@pytest.mark.parametrize("error", ERRORS)
def test_bad_columns_are_named(error):
    columns, kinds, message = ERRORS[error]
    with pytest.raises(ValueError, match=message):
        described(frame(**columns), kinds)


NO_TABLES = {
    "one axis": (lambda: np.ones(3), "Expected 2D array, got 1D array instead.*\n.*\nReshape your data"),
    "series": (lambda: pd.Series([1.0]), "Expected a 2-dimensional container"),
    "three axes": (lambda: np.ones((2, 2, 2)), "Found array with dim 3"),
    "no rows": (lambda: np.ones((0, 3)), r"Found array with 0 sample\(s\)"),
    "no rows of a frame": (lambda: frame()[:0], r"Found array with 0 sample\(s\)"),
    "no columns": (lambda: np.ones((3, 0)), r"Found array with 0 feature\(s\)"),
    "word": (lambda: "size", "Expected 2D array, got scalar array"),
    "dates of polars": (
        lambda: pl.DataFrame({"day": pd.date_range("2024", periods=3)}),
        "'day' of X holds dates",
    ),
    "same names": (lambda: frame().set_axis(["a", "a"], axis=1), "same name: 'a'. Rename"),
}


@pytest.mark.parametrize("name", NO_TABLES)
def test_what_is_no_table_is_refused(name):
    make, message = NO_TABLES[name]
    with pytest.raises(ValueError, match=message):
        described(make())


def test_sparse_tables_are_refused():
    with pytest.raises(TypeError, match="toarray"):
        described(csr_array(np.eye(3)))


def test_many_categories_are_warned_of_once():
    X = frame(id=[f"row {row}" for row in range(N)], place=list("abcd") * 10)
    with pytest.warns(UserWarning, match=r"tenth of the rows: column 'id' has 40 in 40 rows\.") as caught:
        columns = described(X)
    columns.encoded(X)
    assert [warning.filename for warning in caught] == [__file__]


def test_rows_that_count_often_are_enough_for_many_categories():
    patterns = pd.DataFrame({"place": list("abcd")})
    described(patterns, sample_weight=np.full(4, 10.0))  # It would warn.
    with pytest.warns(UserWarning, match=r"column 'place' has 4 in 36 rows\."):
        described(patterns, sample_weight=np.full(4, 9.0))


def test_a_constant_column_is_warned_of_once():
    X = frame(
        place=pd.Categorical(["a"] * N, list("abcde")),
        same=1.5,
        word="b",
        none=pd.Series([True] * N, dtype=object),
    )
    with pytest.warns(
        UserWarning, match="with one value, .* 'place', 'same', 'word', 'none'. They"
    ) as caught:
        described(X)
    assert len(caught) == 1


def test_unseen_categories_are_missing_or_refused():
    columns = described(frame(place=list("abcd") * 10))
    X = frame(place=list("abyz") * 10)
    message = r"\(2\): 'y' of column 'place' in 10 row\(s\), the first is row 2; 'z' .* row 3"
    with pytest.warns(UserWarning, match=message) as caught:
        array = columns.encoded(X)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(array[:, 2], np.tile([0, 1, np.nan, np.nan], 10))
    with pytest.raises(ValueError, match=message):
        columns.encoded(X, unknown="error")


def test_a_category_that_only_a_dtype_has_is_not_unseen():
    place = pd.Categorical(list("abcd") * 10)
    columns = described(frame(place=place))
    other = pd.Categorical(list("dcba") * 10, list("dcbaz"))
    np.testing.assert_array_equal(columns.encoded(frame(place=other))[:4, 2], [3, 2, 1, 0])


def test_other_tables_are_refused():
    columns = described(frame())
    with pytest.raises(ValueError, match="X has 3 columns, but the training table had 2"):
        columns.encoded(frame(last=1))
    with pytest.raises(ValueError, match=r"40 value.* of column 'size' of X are no numbers"):
        columns.encoded(frame(size="large"))


# Rows that do not count, and batches.


def test_words_in_rows_of_weight_zero_do_not_make_categories():
    X = frame(last=pd.Series([*LARGE[1:].tolist(), "none"], dtype=object))
    weights = np.append(np.ones(N - 1), 0.0)
    with pytest.raises(
        ValueError, match=r"1 value.* 'last' of X are no numbers\. The first is 'none' in row 39"
    ):
        described(X, sample_weight=weights)
    X["last"] = X["last"].mask(weights == 0, None)
    assert described(X, sample_weight=weights).columns[2].kind == "numeric"


def test_rows_of_weight_zero_do_not_count():
    counts = np.arange(N) % 2 == 0
    X = frame(place=list("azbz") * 10, code=np.where(counts, np.arange(N) // 2 % 2, LARGE))
    weighted = described(X.drop(columns="sex"), sample_weight=1.0 * counts)
    assert weighted == described(X[counts].drop(columns="sex"))
    assert weighted.columns[-1].categories == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pandas", "polars", "objects"])
@pytest.mark.parametrize("size", [8, 1])
def test_a_table_is_the_sum_of_its_batches(form, size):
    # Batches of one row, or the first one, have columns without values and columns with one.
    X = FORMS[form]()
    parts = [described_part(X[start : start + size]) for start in range(0, N, size)]
    assert reduce(add, parts).checked() == described(X)


def test_kinds_that_are_said_hold_in_all_batches():
    X = frame(answer=np.tile([1, 0], N // 2), word=["a"] * 20 + ["b", "c"] * 10)
    kinds = {"answer": "binary", "word": "binary"}
    joined = described_part(X[:1], kinds) + described_part(X[1:20], kinds)
    assert joined.columns[2].categories == (0, 1)
    with pytest.raises(ValueError, match="'word' of X is to be binary, but has 3 values"):
        (joined + described_part(X[20:], kinds)).checked()


def test_declared_categories_of_batches_are_joined_in_their_order():
    parts = [
        described_part(frame(last=pd.Categorical(list("ab") * 20, order)))
        for order in (list("ba"), list("bca"))
    ]
    assert (parts[0] + parts[1]).columns[2].categories == ("b", "a", "c")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: frame(size="large"), "'size' is numeric in one batch and categorical in another"),
        (lambda: frame().rename(columns={"sex": "gender"}), "is 'sex' in one batch and 'gender' in another"),
        (lambda: frame(last=1), "One batch has 2 columns, and another 3"),
    ],
)
def test_batches_that_differ_are_refused(other, message):
    with pytest.raises(ValueError, match=message):
        described_part(frame()) + described_part(other())
