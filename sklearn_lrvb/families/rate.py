"""Columns with a rate in every class, which has a gamma prior."""

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from sklearn_lrvb.families.base import ColumnFamily
from sklearn_lrvb.families.scalars import (
    drawn_log_gammas,
    log_gamma_density,
    mixed_moments,
    trigamma_excess,
)


class RateColumns(ColumnFamily):
    """Columns whose log density is f_0 log(rate) - f_1 rate + base: rate ~ Gamma(a, a / m), with m a guess of
    it.

    A subclass says what the features (f_0, f_1) of a value are. T = (log rate, -rate).

    Parameters
    ----------
    places : as for every family
    guesses : (c,), positive, m
    shape : float, a
    """

    n_features = 2
    estimates = ("rate",)
    prior_numbers = ("count_shape_prior",)

    def __init__(self, places, guesses, shape):
        super().__init__(places)
        self._guesses, self._shape = np.asarray(guesses, dtype=np.float64), float(shape)
        self._of_prior = _log_partition(self._shape, self._shape / self._guesses)

    def prior_number(self, name):
        return self._shape

    def units(self):
        return np.maximum(self._guesses, 1.0)

    def _shape_and_rate(self, sums):
        return self._shape + sums[..., 0], self._shape / self._guesses + sums[..., 1]

    def is_proper(self, sums):
        shape, rate = self._shape_and_rate(sums)
        return (shape > 0.0) & (rate > 0.0)

    def expected(self, sums):
        shape, rate = self._shape_and_rate(sums)
        return np.stack([digamma(shape) - np.log(rate), -shape / rate], axis=-1)

    def covariance_root(self, sums):
        shape, rate = self._shape_and_rate(sums)
        root = np.zeros((*shape.shape, 2, 2))
        root[..., 0, 0], root[..., 0, 1] = np.sqrt(trigamma_excess(shape)), -1.0 / np.sqrt(shape)
        root[..., 1, 1] = np.sqrt(shape) / rate
        return root

    def log_evidence(self, sums):
        return _log_partition(*self._shape_and_rate(sums)) - self._of_prior

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
        change = np.stack([np.ones_like(self._guesses), 1.0 / self._guesses], axis=-1)  # of S
        root = self.covariance_root(sums)
        of_statistics = root @ np.einsum("kcij,ci->kcj", root, change)[..., None]
        return of_statistics[..., 0], np.einsum("kcqb,cb->kcq", self.jacobian(sums), change)

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

    def log_prior(self, scalars, sums):
        return log_gamma_density(scalars[..., 0], self._shape, self._shape / self._guesses)

    def prior_score(self, scalars, sums, name):
        # The shape a is the coefficient of log(rate) - rate / guess in the log prior.
        own = scalars[..., 0] - np.exp(scalars[..., 0]) / self._guesses
        of_partition = digamma(self._shape) - np.log(self._shape / self._guesses) - 1.0
        return (own - of_partition).sum(axis=(1, 2))

    def scalars_given(self, drawn_sums, sums, generator):
        shape, rate = self._shape_and_rate(drawn_sums)
        return (drawn_log_gammas(shape, generator) - np.log(rate))[..., None]

    def values_of(self, scalars, sums):
        return np.exp(scalars)

    def filled(self, responsibilities, sums):
        (rates,) = np.moveaxis(self.values(sums), -1, 0)
        return mixed_moments(responsibilities, rates, rates)

    def scalars_at(self, values, sums):
        return np.log(values)

    def first_order(self, changes, sums):
        return self.values(sums) * changes

    def mean_features(self, sums):
        rates = self.values(sums)
        return np.concatenate([rates, np.ones_like(rates)], axis=-1)


def _log_partition(shape, rate):
    return gammaln(shape) - shape * np.log(rate)
