"""Margins of the covariances of normal components (`mixtures.uncertainty.margins`).

`CovarianceMargins` come from the precisions, whose distribution under q is known. A covariance matrix is a
nonlinear function of them, so that its posterior mean is not its value at the mean precision. Precisions
themselves are gamma on the diagonal and normal off it, as means are.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sklearn_lrvb.answers.margins import Margins
from sklearn_lrvb.answers.targets import variance
from sklearn_lrvb.distributions.special_functions import inverse_gamma_quantile, log_gamma_rise
from sklearn_lrvb.gaussian.answers.targets import Covariances, LogTails, Scales, StandardDeviations
from sklearn_lrvb.symmetric_matrices import from_unique_entries, upper_triangle

# Least mean of the reciprocal of a variance, relative to its mean under q itself, as for the pivots of random
# precisions (`covariance_structures.random_factors`). Only components of few rows come near it.
_LEAST_RELATIVE_RECIPROCAL = 0.5

# How far a shape must be above the order of a moment that exists. Shapes have round-off: at the order itself,
# where those of a component of three rows may be, the moment would be any large number.
_LEAST_DIVISOR = 1e-6

# Variances of sums and differences of standardized features below which they count as zero, because they are
# differences of numbers of order one: the correlation is then one, and an interval changes by the order of
# this.
_LEAST_VARIANCE = 1e-6

# Shape of an inverse gamma variable from which the standard deviation of its root is that of the delta
# method, to a relative 1e-6. The difference of its moments loses digits.
_LARGE_SHAPE = 1e6


@dataclass(frozen=True)
class InverseGamma:
    """Inverse gamma variables: the variances of x along some directions.

    Attributes
    ----------
    shape, scale : (d,); a scale of zero is the variable that is always zero
    """

    shape: np.ndarray
    scale: np.ndarray

    @classmethod
    def by_moments(cls, value, variance, second_order, least_reciprocal):
        """From the response of the variances to small changes of the precision.

        Let u be the direction in coordinates where the mean precision is the identity, T the precision there,
        and y = 1 / (u' T^-1 u) the reciprocal of the variance along u in units of its ``value`` at the mean
        precision. By Bartlett's decomposition with u as the last axis, y = T_uu - sum_j L_uj^2 over the other
        axes j: a gamma variable with mean m = 1 - sum_j Var T_uj and variance Var T_uu m, if the variances
        are in the ratios of a Wishart matrix, Var T_uu = 2 Var T_uj. Under q itself they are, exactly.

        Parameters
        ----------
        value : (d,), variances at the mean precision
        variance : (d,), of the first-order changes of these, value^2 Var T_uu
        second_order : (d,), means of their second-order changes, value (Var T_uu + sum_j Var T_uj)
        least_reciprocal : (d,), least m
        """
        varies = value > _LEAST_VARIANCE
        value = np.where(varies, value, 1.0)
        relative = np.where(varies, variance / np.square(value), 1.0)
        mean = np.maximum(1.0 - second_order / value + relative, least_reciprocal)
        return cls(mean / relative, np.where(varies, value / relative, 0.0))

    @property
    def mean(self):
        """Infinite where there is none."""
        return self._moment(self.shape - 1.0, self.scale)

    @property
    def variance(self):
        """Infinite where there is none."""
        return self._moment(self.shape - 2.0, np.square(self.mean))

    def _moment(self, divisor, numerator):
        infinite = np.where(self.scale > 0, np.inf, 0.0)
        exists = (divisor > _LEAST_DIVISOR) & (self.scale > 0)
        return np.divide(numerator, divisor, out=infinite, where=exists)

    def quantile(self, normal):
        """Quantiles at the probabilities of standard normal quantiles."""
        return inverse_gamma_quantile(normal, self.shape, self.scale)


@dataclass(frozen=True)
class CovarianceMargins:
    """Margins of the entries of covariance matrices.

    With D the standard deviations at the mean precision, a covariance is the difference of the variances
    along two directions, S_ij = D_i D_j (V_+ - V_-) / 4: V_+ and V_- are the variances of the sum and of
    the difference of x_i / D_i and x_j / D_j. For a variance, on the diagonal, V_- is zero. Both are inverse
    gamma variables with the correlation of their first-order changes. (Under q itself this is zero, where
    theirs is 1/(nu - P), nu being the degrees of freedom.)

    Attributes
    ----------
    unit : (d,), D_i D_j / 4
    plus, minus : InverseGamma, V_+ and V_-
    correlation : (d,), of V_+ and V_-
    """

    unit: np.ndarray
    plus: InverseGamma
    minus: InverseGamma
    correlation: np.ndarray

    @property
    def mean(self):
        """Posterior means, (d,): infinite, or NaN off a diagonal, where there is none."""
        with np.errstate(invalid="ignore"):
            return self.unit * (self.plus.mean - self.minus.mean)

    @property
    def deviation(self):
        """Posterior standard deviations, (d,): infinite where there is none."""
        plus, minus = self.plus.variance, self.minus.variance
        return self.unit * np.sqrt(_variance_of_difference(np.sqrt(plus), np.sqrt(minus), self.correlation))

    def interval(self, probability):
        """Limits of the central intervals, (d,) each.

        On the diagonal they are quantiles. The others follow from the quantiles of V_+ and V_- by the method
        of variance estimates recovery: G. Y. Zou and A. Donner, "Construction of confidence limits about
        effect measures: a general approach", Statistics in Medicine 27 (2008), 1693-1702.
        """
        z = -ndtri(0.5 * (1.0 - probability))
        plus, minus = (
            [variances.quantile(normal) for normal in (-z, 0.0, z)] for variances in (self.plus, self.minus)
        )
        middle = plus[1] - minus[1]
        down = _variance_of_difference(plus[1] - plus[0], minus[2] - minus[1], self.correlation)
        up = _variance_of_difference(plus[2] - plus[1], minus[1] - minus[0], self.correlation)
        is_variance = self.minus.scale == 0  # Its limits are exact, also where the middle is larger by far.
        lower = np.where(is_variance, plus[0], middle - np.sqrt(down))
        upper = np.where(is_variance, plus[2], middle + np.sqrt(up))
        return self.unit * lower, self.unit * upper

    def root_moments(self, variances):
        """Means and standard deviations of the roots of some variances, infinite where there are none.

        Parameters
        ----------
        variances : int array (m,), entries on the diagonal

        Returns
        -------
        mean, deviation : (m,)
        """
        shape = self.plus.shape[variances]
        unit = np.sqrt(self.unit[variances] * self.plus.scale[variances])
        mean, deviation = np.full((2, len(shape)), np.inf)
        has_mean, has_deviation = shape > 0.5, shape > 1.0
        relative_mean = np.exp(-log_gamma_rise(shape[has_mean] - 0.5, 0.5))
        mean[has_mean] = unit[has_mean] * relative_mean
        exact = 1.0 / (shape[has_deviation] - 1.0) - np.square(relative_mean[has_deviation[has_mean]])
        first_order = 0.25 / np.square(shape[has_deviation])
        variance = np.where(shape[has_deviation] > _LARGE_SHAPE, first_order, exact)
        deviation[has_deviation] = unit[has_deviation] * np.sqrt(variance)
        return mean, deviation


def _variance_of_difference(deviation, other, correlation):
    """Variance of the difference of two variables with these standard deviations: (d,)."""
    exist = np.isfinite(deviation) & np.isfinite(other)
    crossed = np.multiply(deviation, other, out=np.zeros_like(deviation), where=exist)
    return np.square(deviation) + np.square(other) - 2.0 * correlation * crossed


def covariance_margins(target, information):
    """Margins of the scales, covariances or standard deviations by linear response, or under q itself.

    Parameters
    ----------
    target : Scales, Covariances or StandardDeviations
    information : object with ``covariance_root`` (`targets.covariance`)

    Returns
    -------
    margins : CovarianceMargins or Margins
    """
    is_root = isinstance(target, StandardDeviations)
    matrices = target.matrices if is_root else target
    scale_margins = margins = _margins_of_scales(Scales(target.posterior, target.origin), information)
    factor = widening = np.ones(matrices.size)
    if isinstance(matrices, Covariances) and target.posterior.structure.has_scales:
        factor, widening, distance_from_two = _effect_of_tails(matrices, information)
        margins = _widened(scale_margins, factor, widening, distance_from_two)
    if not is_root:
        return margins
    variances = np.flatnonzero(matrices.on_diagonal())
    mean, deviation = scale_margins.root_moments(variances)
    factor, widening = np.sqrt(factor[variances]), widening[variances]

    def interval(probability):
        return tuple(np.sqrt(limit[variances]) for limit in margins.interval(probability))

    return Margins(factor * mean, factor * widening * deviation, interval)


def _effect_of_tails(target, information):
    """How covariances of Student's t components differ from their scales.

    They are scales times a function of their degrees of freedom. Where these are fitted, the margins are
    wider by the ratio of the standard deviations to first order.

    Parameters
    ----------
    target : Covariances

    Returns
    -------
    factor : (d,), by which scales are multiplied
    widening : (d,), by which deviations and intervals around the median are multiplied besides
    distance_from_two : (d,), of log nu from log 2, in standard deviations of log nu
    """
    scales = Scales(target.posterior, target.origin)
    factor = np.repeat(target.factors(), target.n_entries)
    own, by_scales = variance(target, information), np.square(factor) * variance(scales, information)
    widening = np.sqrt(np.divide(own, by_scales, out=np.ones_like(own), where=by_scales > 0))
    from_two = np.full(target.n_units, np.inf)
    if target.follows_tails:
        log_tails = LogTails(target.posterior, target.origin)
        distances = (log_tails.flat_value() - np.log(2.0)) / np.sqrt(variance(log_tails, information))
        from_two = np.resize(distances, target.n_units)
    return factor, widening, np.repeat(from_two, target.n_entries)


def _widened(scale_margins, factor, widening, distance_from_two):
    """`Margins` of covariances from those of scales, by the results of `_effect_of_tails`.

    Intervals reach as many times farther from the median: of variances by their logarithms. Where the central
    interval of the degrees of freedom reaches two, so that covariances are infinite, they have no limit.
    """

    def interval(probability):
        median, is_variance = scale_margins.interval(0.0)[0], scale_margins.minus.scale == 0
        reaches_two = -ndtri(0.5 * (1.0 - probability)) >= distance_from_two
        limits = []
        for side, limit in zip((-1.0, 1.0), scale_margins.interval(probability), strict=True):
            ratio = np.divide(limit, median, out=np.ones_like(limit), where=is_variance)
            wider = np.where(is_variance, median * ratio**widening, median + widening * (limit - median))
            is_infinite = reaches_two & (side * factor * wider > 0)
            limits.append(np.where(is_infinite, side * np.inf, factor * wider))
        return tuple(limits)

    return Margins(factor * scale_margins.mean, factor * widening * scale_margins.deviation, interval)


def _margins_of_scales(target, information):
    """`CovarianceMargins` of (E Lambda)^-1."""
    posterior = target.posterior
    size = posterior.n_features if posterior.structure.is_matrix else 1  # A variance is a matrix of its own.
    cholesky = posterior.covariance_cholesky.reshape(-1, size, size)
    row, column = upper_triangle(size)
    covariances = cholesky @ cholesky.transpose(0, 2, 1)
    scale = np.sqrt(np.einsum("bpp->bp", covariances))
    unit = scale[:, row] * scale[:, column]
    correlations = covariances[:, row, column] / unit
    whiteners = posterior.whiteners.reshape(-1, size, size) * scale[:, None, :]
    inverses = whiteners.transpose(0, 2, 1) @ whiteners  # Of the correlation matrices.
    moments, per_unit = [], len(unit) // target.n_units
    for units in target.unit_batches():
        some = slice(units.start * per_unit, units.stop * per_unit)
        root = information.covariance_root(target.coordinates(units))
        changes = _covariances_of_changes(target, units, root, unit[some])
        moments.append(_moments_of_changes(changes, inverses[some]))
    entries, sums, differences, products = map(np.concatenate, zip(*moments, strict=True))

    under_q = 1.0 - (size - 1) / posterior.degrees_of_freedom
    least_reciprocal = _LEAST_RELATIVE_RECIPROCAL * np.repeat(under_q, unit.size // len(under_q))
    diagonal = np.einsum("bpp->bp", products)
    diagonal = diagonal[:, row] + diagonal[:, column]
    plus, minus = (
        InverseGamma.by_moments(
            np.where(row == column, 2.0 + factor, 2.0 + factor * correlations).ravel(),
            variance.ravel(),
            (diagonal + factor * products[:, row, column]).ravel(),
            least_reciprocal,
        )
        for factor, variance in ((2.0, sums), (-2.0, differences))
    )
    # V_+ - V_- is four times the entry.
    crossed = 0.5 * (sums + differences - 16.0 * entries)
    scales = np.sqrt(sums * differences)
    correlation = np.divide(crossed, scales, out=np.zeros_like(scales), where=scales > 0)
    return CovarianceMargins(0.25 * unit.ravel(), plus, minus, np.clip(correlation, -1.0, 1.0).ravel())


def _covariances_of_changes(target, units, root, unit):
    """Covariances of the unique entries of C, (B, d, d).

    C_ij is the first-order change of a covariance S_ij over D_i D_j, the product of the standard deviations
    at the mean precision, which are held fixed.

    Parameters
    ----------
    target : Scales
    units : slice, of the target's units
    root : (n, B q), root of the covariance of their coefficients, q in each of B groups
    unit : (B, d), D_i D_j
    """
    if unit.shape[1] == 1:  # Variances, of which a unit has several.
        variances = sum(np.square(changes).sum(axis=0) for changes in target.response_batches(root, units))
        return variances.reshape(-1, 1, 1) / np.square(unit)[:, :, None]
    roots = root.reshape(len(root), len(unit), -1).swapaxes(0, 1)
    covariances = (roots.swapaxes(1, 2) @ roots).swapaxes(0, 1)  # (q, B, q), within every group.
    for _ in range(2):  # From either side.
        covariances = target.response(np.ascontiguousarray(covariances), units)
        covariances = (covariances.reshape(-1, *unit.shape) / unit).transpose(2, 1, 0)
    return covariances.swapaxes(0, 1)


def _moments_of_changes(covariances, inverses):
    """Second moments of C, as in `_covariances_of_changes`.

    Parameters
    ----------
    covariances : (B, d, d), of the unique entries of C, d = p (p + 1) / 2
    inverses : (B, p, p), of the correlation matrices

    Returns
    -------
    entries : (B, d), variances of C_ij
    sums, differences : (B, d), variances of C_ii + C_jj + 2 C_ij and of C_ii + C_jj - 2 C_ij
    products : (B, p, p), mean of C R C, with R the inverses
    """
    n_blocks, size = inverses.shape[:2]
    row, column = upper_triangle(size)
    entry = np.arange(len(row))
    place = from_unique_entries(entry, size).astype(np.intp)  # Of C_ij among the unique entries.
    first, second = place[row, row], place[column, column]
    entries = np.einsum("bdd->bd", covariances).copy()
    of_both = entries[:, first] + entries[:, second] + 2.0 * covariances[:, first, second] + 4.0 * entries
    crossed = 4.0 * (covariances[:, first, entry] + covariances[:, second, entry])
    products, weights = np.empty_like(inverses), inverses.reshape(n_blocks, 1, -1)
    for p, places in enumerate(place):
        with_row = covariances[:, places][:, :, place].reshape(n_blocks, -1, size)
        products[:, p] = (weights @ with_row)[:, 0]
    return entries, of_both + crossed, np.maximum(of_both - crossed, 0.0), products
