"""Families of columns: densities given the component, and their conjugate priors. One family a file."""

from sklearn_lrvb.families.base import ColumnFamily
from sklearn_lrvb.families.categorical import CategoricalColumns
from sklearn_lrvb.families.count import CountColumns
from sklearn_lrvb.families.numeric import NumericColumns
from sklearn_lrvb.families.rate import RateColumns

__all__ = ["CategoricalColumns", "ColumnFamily", "CountColumns", "NumericColumns", "RateColumns"]
