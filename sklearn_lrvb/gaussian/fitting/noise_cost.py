"""What `reg_covar`, the known noise on the rows, costs a fit.

*Mathematics.* At fixed responsibilities the lower bound depends on the precisions through -(c/2) log|A|. A is
the inverse scale of a precision group, of which N r I is a part: r is `reg_covar`, N the group's expected
count. Along one feature let x be the share of the noise in the variance A_pp/c. Without the noise the bound
rises by

    -(c/2) log(1 - x),

exactly so for variances of their own ("diag" and "spherical"), and by at least the sum of this over features
that are independent. Less noise lets the responsibilities improve too. A feature counts only if the rows add
more to its variance than the prior and rounding do. Others hardly vary: the noise hides nothing there, it is
what makes the fit possible. Where the covariance of the rows is singular, the default prior has the noise
added to it. This part of the prior shrinks with the noise, and is left out when the two are compared; else
noise that exceeds all variances would hide itself. So does noise in a C0 that is learned: there the rows are
compared with the C0 that would be learned without it.
"""

from dataclasses import dataclass

import numpy as np

# Cost in nats a row above which the noise counts as costly. In 130 fits to breast cancer, wine, diabetes,
# iris and digits data, raw, standardized and in small units, refits without noise found the same clusters
# where it cost less (adjusted Rand index 0.99 or more), and others in some where it cost 0.06 or more (0.72
# to 0.91). Standardized columns cost 0.024 at most, unless they are (nearly) dependent.
COSTLY = 0.05

# Share of `COSTLY` that the proposed smaller noise may cost. The margin is needed because a fit with less
# noise may find tighter components.
_NEGLIGIBLE_SHARE = 0.1

_LEAST_SHARE = 1e-9  # Of the rows in a variance: less is rounding of the noise and of the prior.


@dataclass(frozen=True)
class NoiseCost:
    """The cost of the noise at the end of a fit.

    Attributes
    ----------
    per_row : float, nats per row that a fit without noise gains, or more
    group : int, the precision group in which one feature costs most
    feature : int or None, that feature; None where one variance is that of all features
    share : float, share of the noise in the group's variance of the feature
    variance : float, of the feature in all rows, or of a feature on average
    noise : float, `reg_covar`
    negligible : float, noise that would cost next to nothing
    may_be_rounding : bool
        Whether the feature may hold rounding errors alone, as the last principal components may.
    exceeds_features : bool, whether noise is more than the variance of whole features
    """

    per_row: float
    group: int
    feature: int | None
    share: float
    variance: float
    noise: float
    negligible: float
    may_be_rounding: bool
    exceeds_features: bool

    def in_words(self, structure, feature_names):
        """What the noise costs, where, and what to do about it: str, for a warning after a fit.

        Parameters
        ----------
        structure : CovarianceStructure
        feature_names : sequence of str, (P,)
        """
        owner = f"component {self.group}" if structure.has_own_precisions else "the components"
        if self.feature is None:
            direction = f"in every direction (mean variance of a feature {self.variance:.2g} in X)"
        else:
            direction = f"along {feature_names[self.feature]} (variance {self.variance:.2g} in X)"
        smaller = 10.0 ** np.floor(np.log10(self.negligible))
        remedies = [
            "scale the columns of X first, for example with StandardScaler",
            f"pass reg_covar={smaller:.0e}, which would cost next to nothing",
        ]
        if self.may_be_rounding:
            remedies.append(
                "drop this feature if it holds rounding errors alone, as the last principal components of "
                "dependent columns do, which (a) and (b) would fit"
            )
        lettered = "; ".join(f"({letter}) {remedy}" for letter, remedy in zip("abc", remedies, strict=False))
        percent = f"{100 * self.share:.0f}" if self.share >= 0.01 else f"{100 * self.share:.1g}"
        return (
            f"reg_covar={self.noise:g}, the variance of known noise on every feature, is large for these "
            f"data: it lowers the lower bound by {self.per_row:.2g} nats a row, and clusters that differ in "
            f"directions of small variance may be missed. Noise is {percent} % of the variance of "
            f"{owner} {direction}. Either {lettered}."
        )


def costly_noise(rows, posterior):
    """The cost of the noise, if it is more than `COSTLY` nats a row; otherwise None.

    Parameters
    ----------
    rows : Rows, the training rows
    posterior : VariationalPosterior, the end of the fit

    Returns
    -------
    cost : NoiseCost or None
    """
    prior, structure = posterior.prior, posterior.structure
    freedom = posterior.effective_degrees_of_freedom[:, None]
    mean_counts = structure.layout.per_group(posterior.mean_counts)[:, None]
    known = structure.power * mean_counts / freedom
    noise, of_rounding = known * prior.reg_covar, known * prior.variances_of_rounding
    variances = np.square(structure.deviations(posterior.covariance_cholesky))  # (S, P or 1)
    prior_variances = structure.diagonal(np.atleast_1d(prior.covariance)) / freedom
    units = rows.variances if variances.shape[1] > 1 else rows.variances.mean(keepdims=True)
    of_rows = variances - noise - of_rounding - prior_variances
    # Where the difference is rounding alone, the feature varies in all rows, if at all, by less than noise.
    of_rows = np.where(of_rows > _LEAST_SHARE * variances, of_rows, units)
    if structure.parts.learns_covariance:
        without_ridge, varies = 0.0, _exceeds_learned(prior, freedom * of_rows, freedom)
    else:
        without_ridge = np.maximum(prior_variances - prior.ridge / freedom, 0.0)
        varies = of_rows > without_ridge
    varies &= of_rows > np.square(prior.resolution if variances.shape[1] > 1 else prior.resolution.max())
    remaining = np.where(varies, of_rows + of_rounding + prior_variances, np.inf)
    # So few rows vary along so many directions at most: not all features are independent then.
    n_directions = min(rows.n_samples - 1, rows.n_features) if structure.is_matrix else rows.n_features
    costs = 0.5 * freedom * np.log1p(noise / remaining) * (n_directions / rows.n_features)
    if not costs.sum() > COSTLY * rows.total_weight:
        return None
    group, feature = np.unravel_index(costs.argmax(), costs.shape)
    # The cost is concave in the noise, so that a share of the noise costs at most that share of this number.
    linear_cost = 0.5 * (freedom * noise / np.where(varies, of_rows + without_ridge, np.inf)).sum()
    # What rounding of the largest feature leaves in linear combinations of all.
    of_combinations = rows.n_features * np.finfo(rows.dtype).eps ** 2 * rows.variances.max()
    return NoiseCost(
        per_row=float(costs.sum() / rows.total_weight),
        group=int(group),
        feature=int(feature) if variances.shape[1] > 1 or rows.n_features == 1 else None,
        share=float(noise[group, 0] / (noise[group, 0] + remaining[group, feature])),
        variance=float(units[feature]),
        noise=prior.reg_covar,
        negligible=float(prior.reg_covar * _NEGLIGIBLE_SHARE * COSTLY * rows.total_weight / linear_cost),
        may_be_rounding=bool(units[feature] <= of_combinations),
        exceeds_features=bool(prior.reg_covar > units[feature]),
    )


def _exceeds_learned(prior, scatter, freedom):
    """Whether scatter of the rows exceeds the C0 that would be learned without the noise: bool (S, P or 1).

    Feature by feature C0 is the root x of g' = A x + sum over the groups of c x/(x + scatter), which rises.

    Parameters
    ----------
    prior : MixturePrior, that learns C0
    scatter : (S, P or 1), of the rows without the noise
    freedom : (S, 1), c
    """
    learned, nu = prior.learned, prior.degrees_of_freedom
    expected = prior.structure.diagonal(np.atleast_1d(learned.covariance)) - prior.ridge
    expected, scatter = (np.maximum(values, np.finfo(float).tiny) for values in (expected, scatter))
    rising = (learned.freedom / nu) * scatter / expected
    rising += (freedom * (scatter[:, None] / (scatter[:, None] + scatter))).sum(axis=1)
    return rising > learned.own_freedom(len(scatter), nu)
