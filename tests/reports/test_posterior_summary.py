"""How the table of the posterior is displayed, and that it is an ordinary data frame otherwise."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from catalogue import MODELS, fitted, overlapping

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.reports.posterior_summary import PosteriorSummary

COLUMNS = ["mean", "sd", "mean_field_sd", "ratio", "lower", "upper"]
INF, NAN = np.inf, np.nan


def table(*rows):
    """A table of given rows, by number."""
    return PosteriorSummary(pd.DataFrame(rows, columns=COLUMNS, dtype=float))


def cells(row):
    """The texts of one row in the console."""
    with pd.option_context("display.width", 1000):
        return repr(table(row)).splitlines()[1].split()[1:]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        # Two digits of the standard deviation decide; the mean field's has two digits of its own.
        ((5.98765, 0.1234, 0.0567, 2.17637, 5.74321, 6.23456), "5.99 0.12 0.057 2.18 5.74 6.23"),
        ((0.5, 0.0999, 0.0996, 1.003, 0.301, 0.699), "0.50 0.10 0.10 1.00 0.30 0.70"),
        ((13456.7, 2512.3, 2449.9, 1.0255, 9412.0, 19250.0), "13500 2500 2400 1.03 9400 19200"),
        ((-0.004, 0.12, 0.1, 1.2, -0.239, 0.231), "0.00 0.12 0.10 1.20 -0.24 0.23"),
        # Exponents where nothing is left without.
        (
            (3.14159e-12, 2.3e-14, 2.2e-14, 1.045, 3.09e-12, -1e-16),
            "3.142e-12 2.3e-14 2.2e-14 1.04 3.090e-12 0",
        ),
        ((1e23, 1.2e22, 9e21, 1.333, 7.6e22, 1.24e23), "1.00e+23 1.2e+22 9.0e+21 1.33 7.6e+22 1.24e+23"),
        # No standard deviation: three digits each.
        ((1.0, 0.0, 0.0, 1.0, 1.0, 1.0), "1 0 0 1.00 1 1"),
        ((INF, INF, INF, 1.0, 0.012345, 123456.0), "inf inf inf 1.00 0.0123 1.23e+05"),
        ((NAN, INF, INF, 1.0, -12.345, 12.345), "NaN inf inf 1.00 -12.3 12.3"),
        ((0.25, 0.05, INF, 1.0, 0.15, 0.35), "0.250 0.050 inf 1.00 0.150 0.350"),
        ((0.0, 0.0, 0.0, NAN, 0.0, 0.0), "0 0 0 NaN 0 0"),
        ((2.345, INF, 0.1234, NAN, 1.0, 5.0), "2.35 inf 0.12 NaN 1 5"),
    ],
)
def test_rows_have_the_digits_that_are_known(row, expected):
    assert cells(row) == expected.split()


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-300, 1e-140, 1e-5, 1e-4, 1.0, 9.99e6, 1e7, 1e140, 1e300])
def test_what_is_displayed_is_within_half_of_the_second_digit(scale):
    rng = np.random.default_rng(0)
    for _ in range(20):
        sd = scale * rng.uniform(0.01, 2.0)
        row = (scale, sd, 0.7 * sd, 1 / 0.7, scale - 2 * sd, scale + 2 * sd)
        shown = np.array([float(cell) for cell in cells(row)])
        np.testing.assert_allclose(shown[[1, 2]], np.array(row)[[1, 2]], rtol=0.05)
        assert np.all(np.abs(shown[[0, 4, 5]] - np.array(row)[[0, 4, 5]]) <= 0.0501 * shown[1])


def test_the_display_ends_with_the_reading_of_the_prior():
    summary = fitted(MODELS[0]).posterior(method="lrvb").summary()
    below = " ".join(repr(summary).split("\n\n")[-1].splitlines())
    assert below == f"{summary.attrs['note']} {summary.attrs['prior']}"
    assert max(map(len, repr(summary).splitlines())) <= 80
    assert str(summary) == repr(summary)
    assert summary._repr_html_().endswith(f"<p>{summary.attrs['prior']}</p>".replace("'", "&#x27;"))


def test_names_are_escaped_in_html():
    X = pd.DataFrame(overlapping(60), columns=["<b>", "a & b"])
    summary = (
        LRVBGaussianMixture(n_components=2, random_state=0).fit(X).posterior(method="lrvb").summary("means")
    )
    summary.attrs["prior"] = "moves mean[0,<b>]"
    shown = summary._repr_html_()
    assert "<b>" not in shown
    assert "mean[0,&lt;b&gt;]" in shown.split("<p>")[3]


def test_pandas_options_hold():
    summary = fitted(MODELS[0]).posterior(method="lrvb").summary()
    plain = pd.DataFrame(summary.to_dict("series"))
    with pd.option_context("display.float_format", "{:.4f}".format):
        assert repr(plain) in repr(summary)
    with pd.option_context("display.notebook_repr_html", False):
        assert summary._repr_html_() is None
    for n_rows in (5, 6, len(summary) - 1, len(summary), None):
        with pd.option_context("display.max_rows", n_rows, "display.min_rows", n_rows, "display.width", 1000):
            lines = repr(summary).split("\n\n")[1].splitlines()[1:]
            names = [line.split()[0] for line in lines if not line.startswith("..")]
            n_shown = len(summary) if n_rows is None else n_rows
            assert len(names) in (n_shown, n_shown - n_shown % 2)  # pandas shows two ends alike.
            for name, line in zip(names, lines if len(lines) == len(names) else [], strict=False):
                assert line.split()[1:] == cells(summary.loc[name])


def test_ends_of_a_long_table_are_those_of_the_whole():
    rows = np.random.default_rng(0).lognormal(size=(500, 6))
    shown = [line.split() for line in repr(table(*rows)).splitlines()[1:]]
    for number, *texts in (line for line in shown if len(line) == 7 and line[0].isdigit()):
        assert texts == cells(rows[int(number)])
    assert [line[0] for line in shown if line and line[0].isdigit()] == [*"01234", *map(str, range(495, 500))]


def test_it_is_an_ordinary_frame_otherwise():
    summary = fitted(MODELS[0]).posterior(method="lrvb").summary()
    for other in (
        summary.head(),
        summary[["mean", "sd"]],
        summary[summary["ratio"] > 1],
        summary * 2,
        summary.copy(),
        copy.copy(summary),
        copy.deepcopy(summary),
        pd.concat([summary, summary]),
        pickle.loads(pickle.dumps(summary)),
    ):
        assert type(other) is pd.DataFrame
    loaded = pickle.loads(pickle.dumps(summary))
    pd.testing.assert_frame_equal(summary, loaded)
    assert summary.equals(loaded)
    assert loaded.equals(summary)
    assert loaded.attrs == summary.attrs
    assert re.search(r"\d\.\d{10,}", summary.to_csv())
    assert all(map(pd.api.types.is_float_dtype, summary.dtypes))


def test_tables_that_users_change_are_displayed():
    summary = fitted(MODELS[0]).posterior(method="lrvb").summary("weights")
    shown = repr(summary)
    summary["note"] = ["first", "second"]
    lines = repr(summary).splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("weight[0]"))
    assert lines[first].split() == [*shown.splitlines()[first].split(), "first"]
    assert lines[0].startswith("240 rows, 2 components.")
    summary.attrs.clear()
    assert repr(summary) == "\n".join(lines[first - 1 : first + 2])
    assert "<p>" not in summary._repr_html_()
    del summary["sd"]
    assert repr(summary) == repr(pd.DataFrame(summary.to_dict("series")))
    assert repr(table()).startswith("Empty DataFrame")
