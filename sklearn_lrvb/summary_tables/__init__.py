"""Tables of posterior means and standard deviations, for the mixture and for models of your own.

pandas is imported where a table is asked for: it is not among the library's dependencies.
"""

from sklearn_lrvb.summary_tables.required_pandas import require_interval, required_pandas

__all__ = ["require_interval", "required_pandas"]
