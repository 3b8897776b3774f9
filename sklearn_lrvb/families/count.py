"""Counts: Poisson, with a gamma prior of the rates."""

import numpy as np
from scipy.special import gammaln
from scipy.stats import poisson

from sklearn_lrvb.families.rate import RateColumns

_LOG_FACTORIALS = gammaln(np.arange(1.0, 1001.0))  # Of most counts; a logarithm takes longer than the rest.


class CountColumns(RateColumns):
    """Poisson columns: the features of a value y are y and 1. The guess of a rate is the column's mean."""

    is_discrete = True
    what_is_wrong = "are negative or no whole numbers, but counts are neither"
    dispersion = "its mean, which are equal for a Poisson count", "square root"
    compared = staticmethod(np.sqrt)

    @staticmethod
    def is_wrong(numbers):
        return (numbers < 0) | (np.abs(numbers - np.rint(numbers)) > 0)

    @staticmethod
    def terms(y):
        return y, 1.0

    def distribution(self, values):
        return poisson(values[..., 0])

    def log_base(self, values):
        counts = np.nan_to_num(values)
        if counts.max(initial=0.0) < len(_LOG_FACTORIALS):
            return -_LOG_FACTORIALS[counts.astype(np.intp)].sum(axis=0)
        return -gammaln(counts + 1.0).sum(axis=0)
