"""Tables of posterior means and standard deviations, and containers of draws, for all models.

pandas and ArviZ are imported where they are asked for: they are not among the library's dependencies.
"""

from sklearn_lrvb.reports.arviz_containers import dataset, in_arviz, require_arviz
from sklearn_lrvb.reports.requirements import require_interval, required_pandas

__all__ = ["dataset", "in_arviz", "require_arviz", "require_interval", "required_pandas"]
