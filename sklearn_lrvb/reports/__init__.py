"""Tables of posterior means and standard deviations, and containers of draws, for all models.

pandas, ArviZ and xarray, which every ArviZ brings, are imported where they are asked for: they are not among
the library's dependencies. `posterior_summary` is a file of its own, because the table is a pandas class.
"""

import html
import importlib.util
import textwrap
from numbers import Real

import numpy as np

_WIDTH, _LEAST_WIDTH = 88, 40  # Columns of the display of a sentence, and of its values at least.


def required_pandas(method):
    """The module pandas, for a method that returns a data frame.

    Raises
    ------
    ImportError
        It is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ImportError(
            f"{method} returns a pandas DataFrame and needs pandas: pip install pandas"
        ) from None
    return pd


def require_interval(interval):
    """Raise a ValueError unless ``interval`` is the probability of a credible interval."""
    if not isinstance(interval, Real) or not 0.0 < interval < 1.0:
        raise ValueError(
            f"interval must be a probability above 0 and below 1, such as 0.95, got {interval!r}."
        )


def require_arviz():
    """Raise ImportError where no ArviZ is installed."""
    if not _is_installed("arviz_base") and not _is_installed("arviz"):
        raise ImportError('to_arviz needs ArviZ: pip install "sklearn-lrvb[arviz]"')


def _is_installed(name):
    return importlib.util.find_spec(name) is not None


def in_arviz(groups):
    """Groups in the container of the installed ArviZ.

    Parameters
    ----------
    groups : dict of xarray.Dataset, by name

    Returns
    -------
    data : xarray.DataTree where arviz-base is installed; otherwise arviz.InferenceData
    """
    if _is_installed("arviz_base"):
        import xarray as xr

        return xr.DataTree.from_dict(groups)
    import arviz

    return arviz.InferenceData(**groups)


def dataset(variables, coords, is_drawn=False):
    """xarray.Dataset of variables (axes, values); drawn ones are those of one chain."""
    import xarray as xr

    from sklearn_lrvb import __version__

    if is_drawn:
        n_draws = len(next(iter(variables.values()))[1])
        coords = {"chain": [0], "draw": np.arange(n_draws), **coords}
        variables = {
            name: (("chain", "draw", *axes), values[None]) for name, (axes, values) in variables.items()
        }
    attributes = {"inference_library": "sklearn-lrvb", "inference_library_version": __version__}
    return xr.Dataset(variables, coords, attributes)


def datasets_of_rows(log_likelihood, X, sample_weight, row_numbers, feature_names):
    """The groups about rows of a container for ArviZ: dict of xarray.Dataset, by name.

    Parameters
    ----------
    log_likelihood : (n_draws, n_rows)
    X : (n_rows, n_features)
    sample_weight : (n_rows,) or None
    row_numbers : int array (n_rows,), their places in the user's X
    feature_names : sequence of str
    """
    of_rows = {"row": row_numbers}
    groups = {
        "log_likelihood": dataset({"X": (("row",), log_likelihood)}, of_rows, True),
        "observed_data": dataset({"X": (("row", "feature"), X)}, {**of_rows, "feature": feature_names}),
    }
    if sample_weight is not None:
        groups["constant_data"] = dataset({"sample_weight": (("row",), sample_weight)}, of_rows)
    return groups


class SentenceAndNumbers:
    """A result with a sentence, its `verdict`, and with lines of names and values, its `_lines()`."""

    def __repr__(self):
        width = max(len(name) for name, _ in self._lines())
        indent, lines = " " * (width + 4), []
        for name, value in self._lines():
            parts = textwrap.wrap(value, max(_WIDTH - len(indent), _LEAST_WIDTH)) or [""]
            lines += [f"  {name:<{width}}  {parts[0]}", *(indent + part for part in parts[1:])]
        said = textwrap.wrap(f"{type(self).__name__}: {self.verdict}", _WIDTH, subsequent_indent="  ")
        return "\n".join([*said, *lines])

    def _repr_html_(self):
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(value)}</td></tr>'
            for name, value in self._lines()
        )
        verdict = f"<p><b>{html.escape(self.verdict)}</b></p>"
        return f'{verdict}<table style="margin-left:0">{rows}</table>'
