"""Columns with a rate in every class, which has a gamma prior."""

from abc import abstractmethod

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from sklearn_lrvb.distributions.special_functions import gamma_quantile
from sklearn_lrvb.families.base import NumberColumns
from sklearn_lrvb.families.scalars import trigamma_excess


class RateColumns(NumberColumns):
    """Columns whose log density is f_0 log(rate) - f_1 rate + base: rate ~ Gamma(a, a / m), with m a guess of
    it.

    T = (log rate, -rate). A subclass says what the features (f_0, f_1) of a value are, by `terms`; which
    values are wrong, how they are compared, and what their `distribution` is, as `ColumnFamily` and
    `NumberColumns` describe; and `log_base`, if the density has more. The guess of a rate is its maximum
    likelihood estimate of the whole column.

    Parameters
    ----------
    places : as for every family
    guesses : (c,), positive, m
    shape : float, a
    """

    n_features = 2
    estimates = {"rate": gamma_quantile}
    hyperparameters = {"rate_shape_prior": 0.5}

    def __init__(self, places, guesses, shape):
        self._guesses, self._shape = np.asarray(guesses, dtype=np.float64), float(shape)
        self._rate = self._shape / self._guesses
        super().__init__(places, self.distribution(self._guesses[:, None]).std(), shape)
        self._of_prior = _log_partition(self._shape, self._rate)
        direction = np.stack([np.ones_like(self._guesses), 1.0 / self._guesses], axis=-1)
        self.directions = {"rate_shape_prior": direction}

    @classmethod
    def of_columns(cls, places, means, deviations, total_weight, n_categories, shape):
        of_log, of_rate = cls.terms(means)
        # Where all counts are zero, the rate of which all rows together expect one.
        return cls(places, np.maximum(of_log, 1.0 / total_weight) / of_rate, shape)

    @staticmethod
    @abstractmethod
    def terms(y):
        """The features (f_0, f_1) of values, which are numbers or linear functions of y."""

    def features(self, values):
        seen, features = ~np.isnan(values), np.empty((len(values), 2, values.shape[1]))
        features[:, 0], features[:, 1] = self.terms(np.where(seen, values, 0.0))
        return features * seen[:, None]

    def _shape_and_rate(self, sums):
        return self._shape + sums[..., 0], self._rate + sums[..., 1]

    def log_evidence(self, sums):
        return _log_partition(*self._shape_and_rate(sums)) - self._of_prior

    def expected(self, sums):
        shape, rate = self._shape_and_rate(sums)
        expected = np.stack([digamma(shape) - np.log(rate), -shape / rate], axis=-1)
        expected[~((shape > 0.0) & (rate > 0.0))] = np.nan
        return expected

    def covariance_root(self, sums):
        shape, rate = self._shape_and_rate(sums)
        root = np.zeros((*shape.shape, 2, 2))
        root[..., 0, 0], root[..., 0, 1] = np.sqrt(trigamma_excess(shape)), -1.0 / np.sqrt(shape)
        root[..., 1, 1] = np.sqrt(shape) / rate
        return root

    def values(self, sums):
        shape, rate = self._shape_and_rate(sums)
        return (shape / rate)[..., None]

    def jacobian(self, sums):
        shape, rate = self._shape_and_rate(sums)
        return np.stack([1.0 / rate, -shape / rate**2], axis=-1)[..., None, :]

    def covariance(self, sums):
        shape, rate = self._shape_and_rate(sums)
        return (shape / rate**2)[..., None, None]

    def effects_of_prior(self, sums, name):
        change = self.directions[name]
        of_values = np.einsum("kcqb,cb->kcq", self.jacobian(sums), change)
        return self.covariance_with(sums, change), of_values

    def estimated(self, sums):
        of_log, of_rate = np.moveaxis(np.maximum(sums, np.finfo(float).tiny), -1, 0)
        return (of_log / of_rate)[..., None]

    # The scalar is the log rate.

    scalar_kinds = ("log_gamma",)

    def scalar_parameters(self, sums):
        return np.stack(self._shape_and_rate(sums), axis=-1)[..., None, :]

    def scalar_jacobian(self, sums):
        shape, rate = self._shape_and_rate(sums)
        return np.stack([polygamma(1, shape), -1.0 / rate], axis=-1)[..., None, :]

    def statistics_of(self, scalars, sums):
        return np.concatenate([scalars, -np.exp(scalars)], axis=-1)

    def pulled_back(self, scalars, sums, slopes):
        return slopes[..., :1] - np.exp(scalars) * slopes[..., 1:]

    def prior_score(self, scalars, sums, name):
        # The shape a is the coefficient of log(rate) - rate / guess in the log prior.
        own = scalars[..., 0] - np.exp(scalars[..., 0]) / self._guesses
        of_partition = digamma(self._shape) - np.log(self._rate) - 1.0
        return (own - of_partition).sum(axis=(1, 2))

    def values_of(self, scalars, sums):
        return np.exp(scalars)

    def scalars_at(self, values, sums):
        return np.log(values)

    def first_order(self, changes, sums):
        return self.values(sums) * changes

    def mean_features(self, sums):
        terms = self.terms(self.distribution(self.values(sums)).mean())
        return np.stack(np.broadcast_arrays(*terms), axis=-1)


def _log_partition(shape, rate):
    return gammaln(shape) - shape * np.log(rate)
