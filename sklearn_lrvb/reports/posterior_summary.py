"""The table of a posterior: a data frame that is displayed with as many digits as are known.

pandas is needed: the method imports this file when a table is asked for.
"""

import html
import math
import textwrap

import numpy as np
import pandas as pd

from sklearn_lrvb.reports.rounding import rounded

# Attributes that are displayed: what was fitted; how good the table is, whether the prior matters, and which
# columns are doubtful.
_ABOVE, _BELOW = ("fit",), ("note", "prior", "columns")

COLUMNS = ("mean", "sd", "mean_field_sd", "ratio", "lower", "upper")
MEDIAN = "median"  # One more column, where some rows have no variance.

# A row is written with exponents where its mean and standard deviation are below the first number, or one of
# them is not below the second.
_LEAST_PLAIN, _LARGEST_PLAIN = 1e-4, 1e7


def summary_rows(labels, mean, sd, mean_field_sd, ends):
    """Rows of the table, labelled: numbers (n,), and the lower and the upper limits of intervals.

    The ratio of the standard deviations is 1 where that by mean field is zero, and NaN where one is infinite.
    """
    ratio = np.where(np.isfinite(sd) & np.isfinite(mean_field_sd), 1.0, np.nan)
    np.divide(sd, mean_field_sd, out=ratio, where=(mean_field_sd > 0) & np.isfinite(ratio))
    columns = zip(COLUMNS, (mean, sd, mean_field_sd, ratio, *ends), strict=True)
    return pd.DataFrame(dict(columns), labels)


def without_moments(summary):
    """A sentence on the rows of a table that have no variance; empty where there are none."""
    names = summary.index[np.isinf(summary["sd"])]
    if not len(names):
        return ""
    has, others = "has", ""
    if len(names) > 1:
        has, others = "have", f" and {len(names) - 1} more"
    return (
        f" {names[0]}{others} {has} no variance (sd is inf; a mean that does not exist is inf or NaN), as a "
        "component may have so few rows that the prior decides: take the median and the interval."
    )


class PosteriorSummary(pd.DataFrame):
    """A data frame whose display rounds every row to two digits of its standard deviation.

    Slices, copies, computations, pickles and files are those of an ordinary data frame, with all digits. So
    is the display under ``pandas.options.display.float_format``.
    """

    @property
    def _constructor(self):
        return pd.DataFrame

    def __reduce__(self):
        return self.copy(deep=False).__reduce__()

    def __repr__(self):
        above, below = (self._lines(names) for names in (_ABOVE, _BELOW))
        blank = [""]
        # All columns are shown, however long the names of the rows are.
        with pd.option_context("display.max_columns", None, "display.expand_frame_repr", False):
            table = repr(self._displayed())
        parts = [above, blank * bool(above), [table], blank * bool(below), below]
        return "\n".join(line for part in parts for line in part)

    def _repr_html_(self):
        table = self._displayed()._repr_html_()
        if table is None:  # pandas' options ask for text.
            return None
        above, below = (
            [f"<p>{html.escape(caption)}</p>" for caption in self._captions(names)]
            for names in (_ABOVE, _BELOW)
        )
        return "\n".join([*above, table, *below])

    def _lines(self, names):
        """Captions by their names, as lines of text."""
        width = pd.get_option("display.width") or 80
        return [line for caption in self._captions(names) for line in textwrap.wrap(caption, width)]

    def _captions(self, names):
        """What is said above or below the table, list of str."""
        return [self.attrs[name] for name in names if self.attrs.get(name)]

    def _displayed(self):
        """The rounded table; the numbers where the user has chosen a format for them, or changed columns."""
        plain, own = self.copy(deep=False), self.iloc[:, : len(COLUMNS)]
        is_changed = tuple(own.columns) != COLUMNS or not all(map(pd.api.types.is_float_dtype, own.dtypes))
        if is_changed or pd.get_option("display.float_format") is not None:
            return plain
        n_ends = pd.get_option("display.max_rows") or len(own)
        not_displayed = range(n_ends, len(own) - n_ends)
        rows = [
            len(COLUMNS) * ("",) if place in not_displayed else _rounded_row(*numbers)
            for place, numbers in enumerate(own.itertuples(index=False))
        ]
        shown = pd.DataFrame(rows, index=self.index, columns=COLUMNS)
        others = plain.iloc[:, len(COLUMNS) :]
        if list(others.columns) == [MEDIAN]:
            medians = zip(others[MEDIAN], own["sd"], strict=True)
            shown[MEDIAN] = [rounded(median, sd, is_plain=True) for median, sd in medians]
            return shown
        return pd.concat([shown, others], axis=1)


def _rounded_row(mean, sd, mean_field_sd, ratio, lower, upper):
    """The numbers of a row as text."""
    sizes = [size for size in (abs(mean), sd) if math.isfinite(size)]
    is_plain = _LEAST_PLAIN <= max(sizes, default=1.0) < _LARGEST_PLAIN
    mean, lower, upper, sd = (rounded(number, sd, is_plain) for number in (mean, lower, upper, sd))
    ratio = "NaN" if math.isnan(ratio) else f"{ratio:.2f}"
    return mean, sd, rounded(mean_field_sd, mean_field_sd, is_plain), ratio, lower, upper
