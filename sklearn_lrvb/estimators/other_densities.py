"""What other densities of a column would gain in the components of a mixture, by their likelihood.

They are cheap guides: a shifted log-normal density tells whether a logarithm can help, and from where to take
it; a negative binomial one whether counts vary more than Poisson counts.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import nbinom, poisson

_SHIFTS = np.geomspace(0.01, 30.0, 25)  # From the outermost value, in standard deviations of the column.


@dataclass(frozen=True)
class Logarithm:
    """The transformation of a column x to log(sign x - shift).

    Attributes
    ----------
    column : int
    sign : float, 1 or -1
    shift : float
    gain : float, in nats, of normal densities of the logarithm over normal ones of x, in all components
    is_of_centred : bool, whether the column has values below zero, as one that was centred
    """

    column: int
    sign: float
    shift: float = 0.0
    gain: float = 0.0
    is_of_centred: bool = False

    def of(self, values):
        """The transformed values, and the log derivatives: (n,) -> two of (n,)."""
        logs = np.log(self.sign * values - self.shift)
        return logs, -logs

    def in_words(self, name):
        """What the logarithm is taken of: str."""
        if self.sign > 0 and self.shift == 0.0:
            return repr(name)
        if self.sign > 0:
            return f"{name!r} {'-' if self.shift > 0 else '+'} {abs(self.shift):.3g}"
        return f"{-self.shift:.3g} - {name!r}"


def best_logarithm(column, parts):
    """The logarithm of a column, from either side, that gains most: Logarithm.

    Parameters
    ----------
    column : int
    parts : list of arrays, its values in every component, at least three each
    """
    joined, found = np.concatenate(parts), []
    deviation, cost = joined.std(), 0.5 * np.log(len(joined))  # A parameter costs half the log of the rows.
    for sign in (1.0, -1.0):
        shifts = (sign * joined).min() - deviation * _SHIFTS
        gains = sum(_gains_of_logarithm(sign * own, shifts) for own in parts) - cost
        best = float(shifts[gains.argmax()]), float(gains.max())
        found.append(Logarithm(column, sign, *best, is_of_centred=bool(joined.min() < 0.0)))
    return max(found, key=lambda own: own.gain)


def _gains_of_logarithm(values, shifts):
    """Log likelihood of normal densities of log(x - shift) over normal ones of x: (n,), (s, ) -> (s,)."""
    logs = np.log(values - np.reshape(shifts, (-1, 1)))
    return len(values) * np.log(values.std() / logs.std(axis=1)) - logs.sum(axis=1)


def gain_of_log_normal(values):
    """Log likelihood of a shifted log-normal density over a normal one, less that of a parameter: float."""
    return max(best_logarithm(0, [values]).gain, 0.0)


def gain_of_negative_binomial(counts):
    """Log likelihood of a negative binomial density over a Poisson one, less that of a parameter: float."""
    mean, variance, n = counts.mean(), counts.var(), len(counts)
    if not variance > mean > 0:
        return 0.0
    size = mean**2 / (variance - mean)
    gain = nbinom.logpmf(counts, size, size / (size + mean)).sum() - poisson.logpmf(counts, mean).sum()
    return max(float(gain - 0.5 * np.log(n)), 0.0)


def values_in_components(X, labels, column):
    """The values of a column in every component that has at least three different ones: list of arrays."""
    parts = [X[labels == k, column] for k in np.unique(labels[labels >= 0])]
    parts = [own[~np.isnan(own)] for own in parts]
    return [own for own in parts if len(np.unique(own)) >= 3]
