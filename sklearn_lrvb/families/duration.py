"""Durations, such as times until an event: exponential, with a gamma prior of the rates."""

import numpy as np
from scipy.stats import expon

from sklearn_lrvb.families.rate import RateColumns


class DurationColumns(RateColumns):
    """Exponential columns: the features of a value y are 1 and y. The guess of a rate is 1 over the mean."""

    what_is_wrong = "are negative, zero or below 1e-100, but durations are larger"
    dispersion = "the square of its mean, which are equal for an exponential duration", "logarithm"
    compared = staticmethod(np.log)

    @staticmethod
    def is_wrong(numbers):
        return numbers < 1e-100  # Products of smaller ones are not told from zero.

    @staticmethod
    def terms(y):
        return 1.0, y

    def distribution(self, values):
        return expon(scale=1.0 / values[..., 0])
