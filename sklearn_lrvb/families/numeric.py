"""Numbers: normal given the class, with a normal-gamma prior of mean and precision."""

import numpy as np
from scipy.special import digamma, gammaln, polygamma, zeta
from scipy.stats import norm

from sklearn_lrvb.distributions.special_functions import log_normal_quantile, normal_quantile
from sklearn_lrvb.families.base import NumberColumns
from sklearn_lrvb.families.scalars import (
    drawn_log_gammas,
    inverse_root_moments,
    log_gamma_density,
    trigamma_excess,
)

_LOG_2_PI = np.log(2.0 * np.pi)


def _deviation_quantile(normal, mean, deviation):
    """Quantiles of log-normal variables with these means and standard deviations, as `normal_quantile`."""
    variance_of_log = np.log1p(np.square(deviation / mean))
    median = mean * np.exp(-0.5 * variance_of_log)
    return log_normal_quantile(normal, median, median * np.sqrt(variance_of_log))


class NumericColumns(NumberColumns):
    """Normal columns: mean given the precision tau ~ N(m0, 1/(kappa tau)), tau ~ Gamma(nu / 2, s^2 C / 2).

    m0 and s are the column's mean and standard deviation. All here is in units of the standardized column y,
    where they are 0 and 1. The features of a value are 1, y and y^2, and T = ((log tau - tau mu^2)/2, tau mu,
    -tau/2). What is reported of a class are E mu and E tau^-1/2.

    Parameters
    ----------
    places : as for every family
    means, deviations : (c,), m0 and s, in units of the encoded table
    mean_precision, degrees_of_freedom, variance : float, kappa, nu and C
    """

    n_features = 3
    estimates = {"mean": normal_quantile, "sd": _deviation_quantile}
    deviation_entry = 1
    hyperparameters = {"mean_precision_prior": 0.1, "degrees_of_freedom_prior": 1.0, "variance_prior": 0.1}

    def __init__(self, places, means, deviations, mean_precision, degrees_of_freedom, variance):
        super().__init__(places, deviations, mean_precision, degrees_of_freedom, variance)
        self._means, self._deviations = np.asarray(means, dtype=np.float64), self.units
        self._prior = float(mean_precision), 0.5 * float(degrees_of_freedom), 0.5 * float(variance)
        self._of_prior = _log_partition(*self._prior)

    @classmethod
    def of_columns(cls, places, means, deviations, total_weight, n_categories, *prior_values):
        return cls(places, means, deviations, *prior_values)

    def distribution(self, values):
        return norm(values[..., 0], values[..., 1])

    def features(self, values):
        y = (values - self._means[:, None]) / self._deviations[:, None]
        seen = ~np.isnan(y)
        y[~seen] = 0.0
        return np.stack([seen.astype(np.float64), y, np.square(y)], axis=1)

    def log_base(self, values):
        return -(0.5 * _LOG_2_PI + np.log(self._deviations)) @ ~np.isnan(values)

    def _parameters(self, sums):
        """kappa, the mean, and shape and rate of tau: (K, c) each."""
        count, of_y, of_square = sums[..., 0], sums[..., 1], sums[..., 2]
        kappa, shape, rate = self._prior
        kappa = kappa + count
        mean = of_y / kappa
        return kappa, mean, shape + 0.5 * count, rate + 0.5 * (of_square - mean * of_y)

    def log_evidence(self, sums):
        kappa, _, shape, rate = self._parameters(sums)
        return _log_partition(kappa, shape, rate) - self._of_prior

    def expected(self, sums):
        kappa, mean, shape, rate = self._parameters(sums)
        precision = shape / rate
        of_count = digamma(shape) - np.log(rate) - 1.0 / kappa - np.square(mean) * precision
        expected = np.stack([0.5 * of_count, mean * precision, -0.5 * precision], axis=-1)
        expected[~((kappa > 0.0) & (shape > 0.0) & (rate > 0.0))] = np.nan
        return expected

    def covariance_root(self, sums):
        # Of y less the mean of q, the first and the last statistic alone are correlated. The statistics of y
        # itself are linear functions of these three.
        kappa, mean, shape, rate = self._parameters(sums)
        root = np.zeros((*mean.shape, 3, 3))
        root[..., 0, 0] = 0.5 * np.sqrt(trigamma_excess(shape) + 2.0 / np.square(kappa))
        root[..., 0, 2] = -0.5 / np.sqrt(shape)
        root[..., 1, 1] = np.sqrt(shape / rate / kappa)
        root[..., 2, 2] = 0.5 * np.sqrt(shape) / rate
        return _shifts(mean) @ root

    def values(self, sums):
        means = self._means + self._deviations * self._parameters(sums)[1]
        return np.stack([means, self._deviations * self._deviation(sums)[0]], axis=-1)

    def _deviation(self, sums):
        """E tau^-1/2, and the slope of its logarithm in the shape: (K, c) each."""
        _, _, shape, rate = self._parameters(sums)
        log_mean, slope, _ = inverse_root_moments(shape)
        return np.sqrt(rate) * np.exp(log_mean), slope

    def jacobian(self, sums):
        kappa, mean, _, rate = self._parameters(sums)
        deviation, slope = self._deviation(sums)
        of_mean = np.stack([-mean / kappa, 1.0 / kappa, np.zeros_like(mean)], axis=-1)
        # d log sd = d rate / (2 rate) + slope d shape
        of_rate = 0.5 * np.stack([np.square(mean), -2.0 * mean, np.ones_like(mean)], axis=-1)
        of_deviation = 0.5 * of_rate / rate[..., None]
        of_deviation[..., 0] += 0.5 * slope
        of_deviation *= deviation[..., None]
        return self._deviations[:, None, None] * np.stack([of_mean, of_deviation], axis=-2)

    def covariance(self, sums):
        kappa, _, shape, rate = self._parameters(sums)
        covariance = np.zeros((*shape.shape, 2, 2))
        # The mean has a Student t distribution, whose variance exists where the shape exceeds one.
        t_shape = np.where(shape > 1.0, shape - 1.0, shape)
        covariance[..., 0, 0] = rate / t_shape / kappa
        covariance[..., 1, 1] = rate * inverse_root_moments(shape)[2]
        return np.square(self._deviations)[:, None, None] * covariance

    def degrees_of_freedom(self, counts):
        return self.prior_values["degrees_of_freedom_prior"] + counts

    def effects_of_prior(self, sums, name):
        kappa, mean, shape, rate = self._parameters(sums)
        zero, (deviation, slope) = np.zeros_like(mean), self._deviation(sums)
        # It is the coefficient of a t in the log prior: covariances about the mean of q, then shifted.
        if name == "mean_precision_prior":  # t = -tau mu^2/2
            of_square = 0.25 * np.square(mean) / rate
            about = [
                0.5 / np.square(kappa) - of_square,
                -mean * shape / rate / kappa,
                of_square * shape / rate,
            ]
            of_mean, of_log_deviation = -mean / kappa, of_square
        elif name == "degrees_of_freedom_prior":  # t = log(tau)/2
            about = [0.25 * zeta(2.0, shape), zero, -0.25 / rate]
            of_mean, of_log_deviation = zero, 0.5 * slope
        else:  # t = -tau/2
            about = [-0.25 / rate, zero, 0.25 * shape / np.square(rate)]
            of_mean, of_log_deviation = zero, 0.25 / rate
        of_statistics = (_shifts(mean) @ np.stack(about, axis=-1)[..., None])[..., 0]
        values = np.stack([of_mean, deviation * of_log_deviation], axis=-1)
        return of_statistics, self._deviations[:, None] * values

    def estimated(self, sums):
        count, of_y, of_square = np.moveaxis(sums, -1, 0)
        count = np.maximum(count, np.finfo(float).tiny)
        mean = of_y / count
        deviation = np.sqrt(np.maximum(of_square / count - np.square(mean), 0.0))
        return np.stack([self._means + self._deviations * mean, self._deviations * deviation], axis=-1)

    # The scalars are log tau, and u with mu = m + u / sqrt(tau), m being the mean of mu under q.

    scalar_kinds = ("log_gamma", "normal")

    def scalar_parameters(self, sums):
        kappa, _, shape, rate = self._parameters(sums)
        pairs = [np.stack([shape, rate], axis=-1), np.stack([1.0 / kappa, np.zeros_like(kappa)], axis=-1)]
        return np.stack(pairs, axis=-2)

    def scalar_jacobian(self, sums):
        kappa, mean, shape, rate = self._parameters(sums)
        of_log_rate = np.stack([np.square(mean), -2.0 * mean, np.ones_like(mean)], axis=-1) / (
            2.0 * rate[..., None]
        )
        of_log = -of_log_rate
        of_log[..., 0] += 0.5 * polygamma(1, shape)
        root = np.sqrt(shape / rate)
        of_mean = np.stack([-mean * root, root, np.zeros_like(mean)], axis=-1) / kappa[..., None]
        return np.stack([of_log, of_mean], axis=-2)

    def _roots_and_scaled_means(self, scalars, sums):
        """sqrt(tau) and sqrt(tau) mu, which are numbers also where tau underflows: (n, K, c) each."""
        root = np.exp(0.5 * scalars[..., 0])
        return root, root * self._parameters(sums)[1] + scalars[..., 1]

    def statistics_of(self, scalars, sums):
        root, scaled = self._roots_and_scaled_means(scalars, sums)
        of_count = 0.5 * (scalars[..., 0] - np.square(scaled))
        return np.stack([of_count, root * scaled, -0.5 * np.square(root)], axis=-1)

    def pulled_back(self, scalars, sums, slopes):
        root, scaled = self._roots_and_scaled_means(scalars, sums)
        by_scaled = root * slopes[..., 1] - scaled * slopes[..., 0]
        by_log = 0.5 * (1.0 - np.square(scaled)) * slopes[..., 0] + root * scaled * slopes[..., 1]
        by_log -= 0.5 * (np.square(root) * slopes[..., 2] + scalars[..., 1] * by_scaled)
        return np.stack([by_log, by_scaled], axis=-1)

    def log_prior(self, scalars, sums):
        kappa, shape, rate = self._prior
        root, scaled = self._roots_and_scaled_means(scalars, sums)
        log_density, slopes = log_gamma_density(scalars[..., :1], [shape, rate])
        # sqrt(tau) mu = sqrt(tau) m + u is normal with variance 1/kappa.
        log_density += 0.5 * (np.log(kappa) - _LOG_2_PI - kappa * np.square(scaled)).sum(axis=(1, 2))
        slopes[..., 0] -= 0.5 * kappa * scaled * root * self._parameters(sums)[1]
        return log_density, np.concatenate([slopes, -kappa * scaled[..., None]], axis=-1)

    def prior_score(self, scalars, sums, name):
        kappa, shape, rate = self._prior
        root, scaled = self._roots_and_scaled_means(scalars, sums)
        if name == "mean_precision_prior":
            score = 0.5 / kappa - 0.5 * np.square(scaled)
        elif name == "degrees_of_freedom_prior":
            score = 0.5 * (scalars[..., 0] - digamma(shape) + np.log(rate))
        else:
            score = 0.5 * (shape / rate - np.square(root))
        return score.sum(axis=(1, 2))

    def scalars_given(self, drawn_sums, sums, generator):
        kappa, mean, shape, rate = self._parameters(drawn_sums)
        log_precision = drawn_log_gammas(np.stack([shape, rate], axis=-1), generator)
        scaled = np.exp(0.5 * log_precision) * (mean - self._parameters(sums)[1])
        scaled += generator.standard_normal(mean.shape) / np.sqrt(kappa)
        return np.stack([log_precision, scaled], axis=-1)

    def values_of(self, scalars, sums):
        with np.errstate(over="ignore"):  # Standard deviations may be beyond all numbers.
            deviation = np.exp(-0.5 * scalars[..., 0])
            mean = self._parameters(sums)[1] + scalars[..., 1] * deviation
            return np.stack([self._means + self._deviations * mean, self._deviations * deviation], axis=-1)

    def scalars_at(self, values, sums):
        precision = np.square(self._deviations / values[..., 1])
        mean = (values[..., 0] - self._means) / self._deviations
        scaled = np.sqrt(precision) * (mean - self._parameters(sums)[1])
        return np.stack([np.log(precision), scaled], axis=-1)

    def reordered(self, scalars, orders, sums):
        # They are measured from the means of the posterior's own classes.
        own, means = super().reordered(scalars, orders, sums), self._parameters(sums)[1]
        own[..., 1] += np.exp(0.5 * own[..., 0]) * (means[orders] - means)
        return own

    def first_order(self, changes, sums):
        _, _, shape, rate = self._parameters(sums)
        deviation = self._deviations * np.sqrt(rate / shape)
        return np.stack([deviation * changes[..., 1], -0.5 * deviation * changes[..., 0]], axis=-1)

    def mean_features(self, sums):
        mean, deviation = self._parameters(sums)[1], self._deviation(sums)[0]
        return np.stack([np.ones_like(mean), mean, np.square(mean) + np.square(deviation)], axis=-1)


def _log_partition(kappa, shape, rate):
    return gammaln(shape) - shape * np.log(rate) - 0.5 * np.log(kappa)


def _shifts(mean):
    """The map of statistics of y - mean to those of y: (...) -> (..., 3, 3)."""
    shifts = np.broadcast_to(np.eye(3), (*mean.shape, 3, 3)).copy()
    shifts[..., 0, 1], shifts[..., 0, 2], shifts[..., 1, 2] = -mean, np.square(mean), -2.0 * mean
    return shifts
