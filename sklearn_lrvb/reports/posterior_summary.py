"""The table of `posterior_summary`: a data frame that is displayed with as many digits as are known.

pandas is needed: `posterior_methods` imports this file when a table is asked for.
"""

import html
import math
import textwrap

import pandas as pd

COLUMNS = ("mean", "sd", "mean_field_sd", "ratio", "lower", "upper")

# A row is written with exponents where its mean and standard deviation are below the first number, or one of
# them is not below the second.
_LEAST_PLAIN, _LARGEST_PLAIN = 1e-4, 1e7


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
        width = pd.get_option("display.width") or 80
        caption = textwrap.wrap(self.attrs.get("prior", ""), width)
        return "\n".join([repr(self._displayed()), *([""] * bool(caption)), *caption])

    def _repr_html_(self):
        table, caption = self._displayed()._repr_html_(), self.attrs.get("prior", "")
        if table is None or not caption:  # It is None where pandas' options ask for text.
            return table
        return f"{table}\n<p>{html.escape(caption)}</p>"

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
        rounded = pd.DataFrame(rows, index=self.index, columns=COLUMNS)
        return pd.concat([rounded, plain.iloc[:, len(COLUMNS) :]], axis=1)


def _rounded_row(mean, sd, mean_field_sd, ratio, lower, upper):
    """The numbers of a row as text."""
    is_plain = _LEAST_PLAIN <= max(abs(mean), sd) < _LARGEST_PLAIN
    write = _plain if is_plain else _with_exponent
    mean, lower, upper, sd = (_like(sd, number, write) for number in (mean, lower, upper, sd))
    return mean, sd, _like(mean_field_sd, mean_field_sd, write), f"{ratio:.2f}", lower, upper


def _like(sd, number, write):
    """A number to two digits of a standard deviation; to three of its own where there is none."""
    if 0.0 < sd < math.inf and math.isfinite(number):
        return write(number, _exponent(sd, 1) - 1)
    return "NaN" if math.isnan(number) else f"{number:.3g}"


def _exponent(number, n_decimals):
    """Exponent of a number when it is written with so many decimals."""
    return int(f"{number:.{n_decimals}e}".partition("e")[2])


def _plain(number, last):
    """A number that is rounded to a power of ten: "0.31", "56800"."""
    return f"{_rounded(number, last):.{max(0, -last)}f}"


def _with_exponent(number, last):
    """A number that is rounded to a power of ten, with an exponent: "3.1e-12"."""
    rounded = _rounded(number, last)
    return f"{rounded:.{max(0, _exponent(rounded, 14) - last)}e}" if rounded else "0"


def _rounded(number, last):
    return round(number, -last) + 0.0  # The sum turns -0.0 into 0.0.
