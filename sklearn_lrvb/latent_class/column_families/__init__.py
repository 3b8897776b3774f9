"""Families of columns: densities given a class, and their conjugate priors."""

from sklearn_lrvb.latent_class.column_families.base import ColumnFamily
from sklearn_lrvb.latent_class.column_families.categorical import CategoricalColumns
from sklearn_lrvb.latent_class.column_families.count import CountColumns
from sklearn_lrvb.latent_class.column_families.numeric import NumericColumns
from sklearn_lrvb.latent_class.column_families.rate import RateColumns

__all__ = ["CategoricalColumns", "ColumnFamily", "CountColumns", "NumericColumns", "RateColumns"]
