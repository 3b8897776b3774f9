"""Counts: Poisson, with a gamma prior of the rates."""

import numpy as np
from scipy.special import gammaln

from sklearn_lrvb.families.rate import RateColumns

_LOG_FACTORIALS = gammaln(np.arange(1.0, 1001.0))  # Of most counts; a logarithm takes longer than the rest.


class CountColumns(RateColumns):
    """Poisson columns: the features of a value y are y and 1. The guess of a rate is the column's mean."""

    def features(self, values):
        seen = ~np.isnan(values)
        return np.stack([np.where(seen, values, 0.0), seen.astype(np.float64)], axis=1)

    def log_base(self, values):
        counts = np.nan_to_num(values)
        if counts.max(initial=0.0) < len(_LOG_FACTORIALS):
            return -_LOG_FACTORIALS[counts.astype(np.intp)].sum(axis=0)
        return -gammaln(counts + 1.0).sum(axis=0)

    def drawn(self, generator, values, n_rows):
        return generator.poisson(np.repeat(values, n_rows, axis=1)).astype(np.float64)
