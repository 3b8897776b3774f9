"""Families of columns: densities given the component, and their conjugate priors. One family a file.

`FAMILIES` is the table of what a column of a table can be. What its classes say is all that the rest of the
library knows of them: `base.py` tells how to add one.
"""

from sklearn_lrvb.families.base import ColumnFamily, NumberColumns
from sklearn_lrvb.families.categorical import CategoricalColumns
from sklearn_lrvb.families.count import CountColumns
from sklearn_lrvb.families.duration import DurationColumns
from sklearn_lrvb.families.numeric import NumericColumns
from sklearn_lrvb.families.rate import RateColumns

FAMILIES = {
    "numeric": NumericColumns,
    "categorical": CategoricalColumns,
    "binary": CategoricalColumns,
    "count": CountColumns,
    "duration": DurationColumns,
}

__all__ = [
    "FAMILIES",
    "CategoricalColumns",
    "ColumnFamily",
    "CountColumns",
    "DurationColumns",
    "NumberColumns",
    "NumericColumns",
    "RateColumns",
]
