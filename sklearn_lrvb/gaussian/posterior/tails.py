"""Student's t components: the scales u of the rows, and the degrees of freedom nu.

*Mathematics.* A row of component k is normal given its scale u,

    u ~ Gamma(nu/2, nu/2),        x | u ~ N(mu_k, (u Lambda_k)^-1),

so that x has Student's t distribution with nu degrees of freedom; the normal distribution is the case u = 1.
q is joint in z and u of a row. Let delta be the expectation of (x - mu)' Lambda (x - mu), and P the number of
features of the row that are seen. Given the component

    q(u) = Gamma(kappa, (nu + delta)/2),        kappa = (nu + P)/2,

    E u = (nu + P)/(nu + delta),    Var u = (E u)^2/kappa,    E log u = psi(kappa) - log((nu + delta)/2),

and the log density of the row is, without E log|Lambda|/2,

    log Gamma(kappa) - log Gamma(nu/2) - P/2 log(nu pi) - kappa log(1 + delta/nu).

*Fitted nu.* The prior is exponential with mean 10 (Fernandez and Steel, 1998), a density of log nu. It keeps
nu finite if rows are normal. The derivative of the lower bound in log nu is zero at the optimum. It depends
on the sums N = sum w r and T = sum w r (E log u - E u) over the rows, of all components or of each:

    nu/2 [N k(nu) + T] + 1 - nu/10 = 0,        k(nu) = log(nu/2) + 1 - psi(nu/2).

The feature of nu is phi = nu/2 (k(nu) + log u - u), and the complete information of log nu is
nu^2 N (psi'(nu/2)/4 - 1/(2 nu)) + 1.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import digamma, gammaln, zeta

from sklearn_lrvb.distributions.special_functions import log_gamma_rise

_SHAPE, _RATE = 1.0, 0.1  # Of the prior of nu.
_LOG_PRIOR_CONSTANT = _SHAPE * np.log(_RATE) - gammaln(_SHAPE)
# nu at which fits and trial merges start: iterations raise nu fast, and lower it slowly.
NU_AT_START = 3.0
NU_WITHOUT_ROWS = _SHAPE / _RATE  # Of a component without rows, where each component has its own nu.
_LEAST, _MOST = 1e-2, 1e6  # Range in which nu is sought.
_STEPS = 100  # More than bisection needs.


@dataclass(frozen=True)
class Scales:
    """What q says of the scales of some rows, given the component.

    Attributes
    ----------
    mean : (K, n), E u
    shape : (K, n) or (K, 1), kappa
    log_of_mean : (K, n), log E u; None where no nu is fitted: E log u is then not needed
    """

    mean: np.ndarray
    shape: np.ndarray
    log_of_mean: np.ndarray | None

    @cached_property
    def variance(self):
        """Var u, (K, n)."""
        return np.square(self.mean) / self.shape

    @cached_property
    def expected_log_minus_mean(self):
        """E log u - E u, (K, n), or zeros (K, 1) where no nu is fitted."""
        if self.log_of_mean is None:
            return np.zeros((len(self.mean), 1))
        return self.log_of_mean - self.mean + (digamma(self.shape) - np.log(self.shape))

    def weights(self, counted):
        """Weights of the rows' moments, from weights (L, n) of the labels: ScaledWeights."""
        of_components = counted[: len(self.mean)]
        log_scale_sums = (of_components * self.expected_log_minus_mean).sum(axis=1)
        return ScaledWeights(counted, of_components * self.mean, log_scale_sums)

    def mean_of_reciprocal(self):
        """E(1/u), (K, n); infinite where kappa is one or less."""
        exists = self.shape > 1.0
        rest = np.where(exists, self.shape - 1.0, 1.0) / self.shape
        return np.where(exists, 1.0 / (self.mean * rest), np.inf)

    def selected(self, index):
        """The scales of some rows, int array."""
        shape = self.shape if self.shape.shape[1] == 1 else self.shape.take(index, axis=1)
        log_of_mean = None if self.log_of_mean is None else self.log_of_mean.take(index, axis=1)
        return Scales(self.mean.take(index, axis=1), shape, log_of_mean)


@dataclass(frozen=True)
class ScaledWeights:
    """Weights of rows that have scales u.

    Attributes
    ----------
    counted : (L, n), weights of the constant feature and of the spread of missing values
    scaled : (K, n), those of the components times E u, or changes of that: weights of y and s(y)
    log_scale_sums : (K,), sums of log u - u, or changes of that
    """

    counted: np.ndarray
    scaled: np.ndarray
    log_scale_sums: np.ndarray


@dataclass(frozen=True)
class StudentTails:
    """Degrees of freedom of all components.

    Attributes
    ----------
    nu : (K,)
    n_fitted : int, how many of them are fitted: none, one that all components share, or all
    """

    nu: np.ndarray
    n_fitted: int

    @property
    def fitted(self):
        """The fitted ones, (n_fitted,)."""
        return self.nu[: self.n_fitted]

    def selected(self, components):
        """The tails of some components, with nu taken as known."""
        return StudentTails(self.nu[components], 0)

    @property
    def are_per_component(self):
        """Whether every component has a fitted nu of its own."""
        return self.n_fitted == len(self.nu)

    def replaced(self, components, nu):
        """The tails with nu replaced for some components; unchanged if nu is shared or known."""
        if not self.are_per_component:
            return self
        after = self.nu.copy()
        after[components] = nu
        return replace(self, nu=after)

    def heavier(self, component):
        """The tails with a fitted nu of a component lowered to `NU_AT_START`, if it is higher."""
        if self.are_per_component:
            return self.replaced(component, min(self.nu[component], NU_AT_START))
        return replace(self, nu=np.minimum(self.nu, NU_AT_START)) if self.n_fitted else self

    def log_densities(self, distances, n_seen):
        """Log densities without E log|Lambda|/2, and the scales of the rows.

        Parameters
        ----------
        distances : (K, n), delta
        n_seen : int, or int array (n,), P

        Returns
        -------
        log_densities : (K, n)
        scales : Scales
        """
        nu = self.nu[:, None]
        shape = 0.5 * (nu + n_seen)
        mean = (nu + n_seen) / (nu + distances)
        logs = np.log1p(distances / nu)
        log_of_mean = np.log1p(n_seen / nu) - logs if self.n_fitted else None
        logs *= -shape
        logs += _log_constants(nu, n_seen)
        return logs, Scales(mean, shape, log_of_mean)

    def log_densities_far_away(self, log_distances, n_seen):
        """`log_densities` alone, (K, n), given log delta, which is so large that delta may overflow."""
        nu = self.nu[:, None]
        return _log_constants(nu, n_seen) - 0.5 * (nu + n_seen) * (log_distances - np.log(nu))

    def by_component(self, fitted):
        """Degrees of freedom of all components, from those that are fitted: (..., n_fitted) -> (..., K)."""
        nu = fitted if self.n_fitted else self.nu
        return np.broadcast_to(nu, (*np.shape(fitted)[:-1], len(self.nu)))

    def by_tail(self, by_component):
        """Sums over the components of every fitted nu: (..., K) -> (..., n_fitted)."""
        if self.n_fitted == 1:
            return by_component.sum(axis=-1, keepdims=True)
        return by_component[..., : self.n_fitted]

    # The derivative of the lower bound in log nu, and its information.

    @cached_property
    def _log_rise(self):
        """k(nu), (K,)."""
        return log_rise(self.nu)

    def feature_sums(self, counts, sums):
        """Sums of the feature of nu: N and T (K,) -> (n_fitted,)."""
        return self.by_tail(0.5 * self.nu * (counts * self._log_rise + sums))

    def expected_feature(self, scales):
        """The expectation of the feature of nu, (K, n)."""
        return 0.5 * self.nu[:, None] * (self._log_rise[:, None] + scales.expected_log_minus_mean)

    def feature_sums_of_q(self):
        """Sums of the feature at which the present nu are optimal, (n_fitted,)."""
        return _RATE * self.fitted - _SHAPE

    def sums_of(self, counts, feature_sums):
        """T from sums of the feature, split among components in proportion to their counts.

        (..., K), (..., n_fitted) -> (..., K)
        """
        if not self.n_fitted:
            return np.zeros_like(counts)
        totals = self.by_tail(counts)
        per_row = feature_sums / np.where(totals > 0, totals, 1.0)
        return counts * (2.0 * per_row / self.nu - self._log_rise)

    def information(self, counts):
        """Complete information of log nu, (n_fitted,)."""
        per_row = np.square(self.nu) * (0.25 * zeta(2.0, 0.5 * self.nu) - 0.5 / self.nu)
        return self.by_tail(counts * per_row) + _SHAPE

    def negative_log_prior(self):
        """Minus the log density of all fitted log nu under the prior, a float."""
        return float(-_log_prior(self.fitted).sum())

    def negative_log_priors(self):
        """The same by component, (K,); zeros where components have no fitted nu of their own."""
        return -_log_prior(self.nu) if self.are_per_component else np.zeros(len(self.nu))

    def optimal_nu(self, counts, sums):
        """The nu that are optimal for N and T: (..., K) twice -> (..., K)."""
        if not self.n_fitted:
            return np.broadcast_to(self.nu, counts.shape)
        return np.broadcast_to(_roots(self.by_tail(counts), self.by_tail(sums), self.fitted), counts.shape)

    def updated(self, counts, sums):
        """The tails that are optimal for N and T, (K,): StudentTails."""
        return replace(self, nu=self.optimal_nu(counts, sums)) if self.n_fitted else self

    def merged(self, counts, pairs):
        """nu of merged components, and the gain in the lower bound.

        The scales of all rows stay. The second component of a pair is left without rows.

        Parameters
        ----------
        counts : (K,), for which the present nu are optimal
        pairs : int array (n, 2)

        Returns
        -------
        nu, gains : (n,)
        """
        if not self.are_per_component:
            return self.nu[pairs[:, 0]], np.zeros(len(pairs))
        sums = self.sums_of(counts, self.feature_sums_of_q())
        counts_after, sums_after = counts[pairs].sum(axis=1), sums[pairs].sum(axis=1)
        nu = _roots(counts_after, sums_after, self.nu[pairs[:, 0]])
        before = _bound_of_nu(self.nu, counts, sums)[pairs].sum(axis=1)
        return nu, _bound_of_nu(nu, counts_after, sums_after) + _log_prior(NU_WITHOUT_ROWS) - before

    # Covariances of u and the feature of nu, given the component.

    def along_scale(self, scales):
        """Cov(u, phi) over the standard deviation of u, and the variance of phi that u does not explain.

        phi is the feature of nu. (K, n), and (K, n) or (K, 1)
        """
        half, shape = 0.5 * self.nu[:, None], scales.shape
        rest = np.square(half) * np.maximum(zeta(2.0, shape) - 1.0 / shape, 0.0)
        return half * (1.0 - scales.mean) / np.sqrt(shape), rest

    def covariances_with_scale(self, scales):
        """Cov(u, feature of nu), and its variance: (K, n) each."""
        along, rest = self.along_scale(scales)
        return along * np.sqrt(scales.variance), np.square(along) + rest


def student_log_densities(nu, distances, n_seen):
    """Log densities of Student's t without E log|Lambda|/2.

    Parameters
    ----------
    nu : (K, n) or (K, 1)
    distances : (K, n), delta
    n_seen : int, or int array (n,), P
    """
    return _log_constants(nu, n_seen) - 0.5 * (nu + n_seen) * np.log1p(distances / nu)


def _log_constants(nu, n_seen):
    """log Gamma(kappa) - log Gamma(nu/2) - P/2 log(nu pi)."""
    return log_gamma_rise(0.5 * nu, 0.5 * n_seen) - 0.5 * n_seen * np.log(nu * np.pi)


def log_rise(nu):
    """k(nu) = log(nu/2) + 1 - psi(nu/2), (...)."""
    return np.log(0.5 * nu) + 1.0 - digamma(0.5 * nu)


def log_prior_of(log_nu):
    """Log density of log nu under the prior, and its derivatives: (..., T) -> (...), (..., T)."""
    rates = _RATE * np.exp(log_nu)
    return (_SHAPE * log_nu - rates + _LOG_PRIOR_CONSTANT).sum(axis=-1), _SHAPE - rates


def log_nu_from_prior(generator, size):
    """Draws of log nu from the prior, an array of some size."""
    return np.log(generator.gamma(_SHAPE, 1.0 / _RATE, size))


def _log_prior(nu):
    """Log density of log nu under the prior."""
    return _SHAPE * np.log(nu) - _RATE * nu + _LOG_PRIOR_CONSTANT


def _bound_of_nu(nu, counts, sums):
    """What nu adds to the lower bound, given N and T."""
    half = 0.5 * nu
    return counts * (half * np.log(half) - gammaln(half)) + half * sums + _log_prior(nu)


def _roots(counts, totals, start):
    """nu with nu/2 [N k(nu) + T] + 1 - nu/10 = 0, by bisection of log nu and Newton's method.

    Arrays (...) of N and T; NaN where one of them is.
    """
    low, high = np.full(counts.shape, np.log(_LEAST)), np.full(counts.shape, np.log(_MOST))
    log_nu = np.log(np.broadcast_to(np.clip(start, _LEAST, _MOST), counts.shape))
    for _ in range(_STEPS):
        slope, curvature = _slope_and_curvature(np.exp(log_nu), counts, totals)
        low, high = np.where(slope > 0, log_nu, low), np.where(slope > 0, high, log_nu)
        # Where the bound is not concave, Newton's step is minus infinity, and bisection replaces it.
        newton = log_nu - np.divide(slope, curvature, out=np.full_like(slope, np.inf), where=curvature < 0)
        step = np.where((low <= newton) & (newton <= high), newton, 0.5 * (low + high))
        is_moving = np.abs(step - log_nu) >= 1e-14 * np.maximum(1.0, np.abs(log_nu))
        if not is_moving.any():
            break
        log_nu = np.where(is_moving, step, log_nu)
    return np.where(np.isnan(counts + totals), np.nan, np.exp(log_nu))


def _slope_and_curvature(nu, counts, totals):
    """First and second derivative of the lower bound in log nu, given N and T."""
    half = 0.5 * nu
    of_rows = half * (counts * log_rise(nu) + totals)
    slope = of_rows + _SHAPE - _RATE * nu
    return slope, of_rows - _RATE * nu + half * counts * (1.0 - half * zeta(2.0, half))
