"""Spellings of one answer, and words for a missing value, are warned of and never merged."""

from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_lrvb.mixed_tables.table import described, described_part

ANSWERS = ["Yes", "yes", "YES ", "No", " "]
CONTAINERS = {
    "pandas": pd.DataFrame,
    "categories": lambda values: pd.DataFrame(values).astype("category"),
    "arrow": lambda values: pd.DataFrame(values).astype("string[pyarrow]"),
    "polars": pl.DataFrame,
    "array": lambda values: pd.DataFrame(values).to_numpy(),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_warning_names_the_column_and_its_spellings(container):
    X = CONTAINERS[container]({"color": ["red", "blue"] * 50, "answer": ANSWERS * 20})
    name = "x1" if container == "array" else "answer"
    message = (
        rf"different: 'YES ', 'Yes', 'yes' of column '{name}'\. If they are one, .*"
        rf"missing values count as categories: ' ' of column '{name}'\. If .* write None"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        columns = described(X)
    assert len(caught) == 1 and str(caught[0].message) == " ".join(columns.notes)
    assert set(columns.columns[1].categories) == set(ANSWERS)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_what_the_warning_says_to_write_merges_spellings(frame):
    X = frame({"answer": ["Yes", "yes ", "no", "NO"] * 20})
    with pytest.warns(UserWarning, match="'NO', 'no', 'Yes', 'yes ' of column 'answer'") as caught:
        described(X)
    remedy = str(caught[0].message).split(", as by ")[1].removesuffix(".")
    if frame is pl.DataFrame:
        X = eval(remedy)
    else:
        exec(remedy)
    assert described(X).columns[0].categories == ("no", "yes")


def test_what_the_warning_says_to_write_keeps_numbers_and_missing_values():
    X = pd.DataFrame({"answer": pd.Series([1, "1", 2, "2 ", None] * 20, dtype=object)})
    with pytest.warns(UserWarning, match="1, '1', 2, '2 ' of column 'answer'") as caught:
        described(X)
    exec(str(caught[0].message).split(", as by ")[1].removesuffix("."))
    assert X["answer"].value_counts(dropna=False).tolist() == [40, 40, 20]
    assert described(X).columns[0].categories == ("1", "2")


def test_one_warning_tells_spellings_in_different_batches():
    X = pd.DataFrame({"answer": ["yes"] * 30 + ["Yes"] * 30, "code": pd.Series([1, "1"] * 30, dtype=object)})
    parts = [described_part(X[:30]), described_part(X[30:])]
    with pytest.warns(
        UserWarning, match="'Yes', 'yes' of column 'answer'; 1, '1' of column 'code'"
    ) as caught:
        reduce(add, parts).checked()
    assert len(caught) == 1


def test_rows_that_do_not_count_have_no_spellings():
    X = pd.DataFrame({"answer": pd.Categorical(["yes", "no", "Yes"] * 20, ["yes", "no", "Yes", "NO"])})
    described(X, sample_weight=np.tile([1.0, 1.0, 0.0], 20))  # It would warn.


def test_different_answers_are_not_warned_of():
    described(pd.DataFrame({"answer": ["yes", "no", "don't know", "none", "-"] * 20, "x": np.arange(100.0)}))
