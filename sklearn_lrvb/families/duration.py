"""Durations, such as times until an event: exponential, with a gamma prior of the rates."""

import numpy as np
from scipy.stats import expon

from sklearn_lrvb.families.rate import RateColumns


class DurationColumns(RateColumns):
    """Exponential columns: the features of a value y are 1 and y. The guess of a rate is 1 over the mean."""

    what_is_wrong = "are negative or zero, but durations are positive"
    dispersion = "the square of its mean, which are equal for an exponential duration", "logarithm"
    compared = staticmethod(np.log)

    @staticmethod
    def is_wrong(numbers):
        return numbers <= 0

    @staticmethod
    def terms(y):
        return 1.0, y

    def distribution(self, values):
        return expon(scale=1.0 / values[..., 0])
