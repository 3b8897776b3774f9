"""The warning that `reg_covar` is large for the data."""

import numpy as np

# Features are named in the warning until they have this share of the squared loadings ...
_SHARE_NAMED = 0.9
_MAX_NAMED = 4  # ... but no more than this.


def noise_warning(cost, prior, feature_names):
    """What the noise costs, where, and what to do about it: str.

    Parameters
    ----------
    cost : NoiseCost
    prior : MixturePrior
    feature_names : sequence of str, (P,)
    """
    owner = f"component {cost.group}" if prior.structure.has_own_precisions else "the components"
    remedies = [
        f"pass reg_covar={_power_of_ten_below(cost.negligible):.0e}, which would cost next to nothing"
    ]
    if cost.falls_with_scaling:
        remedies.insert(0, "scale the columns of X first, for example with StandardScaler")
    else:
        remedies.append("drop one of these features if they are nearly linearly dependent")
    if cost.may_be_rounding:
        remedies.append(
            "drop these features if they hold rounding errors alone, as the last principal components of "
            "dependent columns do, which (a) and (b) would fit"
        )
    lettered = "; ".join(f"({letter}) {remedy}" for letter, remedy in zip("abc", remedies, strict=False))
    return (
        f"reg_covar={cost.noise:g}, the variance of known noise on every feature, is large for these "
        f"data: it lowers the lower bound by {cost.per_row:.2g} nats a row, and clusters that differ in "
        f"directions of small variance may be missed. Noise is {_percent(cost.share)} of the variance of "
        f"{owner} {_direction(cost, feature_names)}. Either {lettered}."
    )


def _direction(cost, feature_names):
    """The direction in which the noise costs most, in words."""
    if len(cost.loadings) > 1 and np.ptp(cost.loadings) == 0:
        return f"in every direction (mean variance of a feature {cost.variances.mean():.2g} in X)"
    return f"along {_named_features(cost, feature_names)}"


def _named_features(cost, feature_names):
    """The features with the largest loadings and their variances, in words."""
    order = np.argsort(-cost.loadings, kind="stable")
    n_large = 1 + int(np.searchsorted(np.cumsum(cost.loadings[order]), _SHARE_NAMED))
    n_named = min(n_large, _MAX_NAMED, len(order))
    named = [f"{feature_names[p]} (variance {cost.variances[p]:.2g} in X)" for p in order[:n_named]]
    if n_large > n_named:
        named.append("others")
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def _percent(share):
    """A share in percent, in whole numbers from 1 % on: str."""
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.1g} %"


def _power_of_ten_below(number):
    return 10.0 ** np.floor(np.log10(number))
