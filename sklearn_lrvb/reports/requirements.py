"""What every summary needs before it is computed: pandas, and an interval that is one."""

from numbers import Real


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
