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
    distance : float, of the shift from the nearest value; 0 of the column itself
    gain : float, in nats, of normal densities of the logarithm over normal ones of x, in all components
    is_of_centred : bool, whether the column has values below zero, as one that was centred
    """

    column: int
    sign: float
    shift: float = 0.0
    distance: float = 0.0
    gain: float = 0.0
    is_of_centred: bool = False

    def of(self, values):
        """The transformed values, and the log derivatives: (n,) -> two of (n,)."""
        logs = np.log(self.sign * values - self.shift)
        return logs, -logs

    def in_words(self, name):
        """What the logarithm is taken of: str.

        The shift is rounded away from the values, by 1 % of its distance from the nearest one at most.
        """
        if self.distance == 0.0:
            return repr(name)
        digits = 2 - int(np.floor(np.log10(self.distance)))
        shift, n_decimals = np.floor(self.shift * 10.0**digits) / 10.0**digits, max(digits, 0)
        if self.sign < 0:
            return f"{0.0 - shift:.{n_decimals}f} - {name!r}"
        return f"{name!r} {'-' if shift > 0 else '+'} {abs(shift):.{n_decimals}f}"


def plain_logarithm(column, parts):
    """That of positive values themselves: Logarithm."""
    return Logarithm(column, 1.0, gain=float(sum(_gains_of_logarithm(own, [0.0])[0] for own in parts)))


def best_logarithm(column, parts, ends):
    """The logarithm of a column from a shifted origin, on either side, that gains most: Logarithm.

    Parameters
    ----------
    column : int
    parts : list of arrays, its values in every component, at least three each
    ends : the smallest and the largest of all its values; each has to have a logarithm
    """
    joined = np.concatenate(parts)
    deviation, cost = joined.std(), 0.5 * np.log(len(joined))  # A parameter costs half the log of the rows.
    smallest, largest = ends
    found = []
    for sign, end in ((1.0, smallest), (-1.0, -largest)):
        shifts = end - deviation * _SHIFTS
        gains = sum(_gains_of_logarithm(sign * own, shifts) for own in parts) - cost
        best = int(gains.argmax())
        place = float(shifts[best]), float(end - shifts[best]), float(gains[best])
        found.append(Logarithm(column, sign, *place, is_of_centred=bool(smallest < 0.0)))
    return max(found, key=lambda own: own.gain)


def _gains_of_logarithm(values, shifts):
    """Log likelihood of normal densities of log(x - shift) over normal ones of x: (n,), (s, ) -> (s,)."""
    logs = np.log(values - np.reshape(shifts, (-1, 1)))
    return len(values) * np.log(values.std() / logs.std(axis=1)) - logs.sum(axis=1)


def gain_of_log_normal(values):
    """Log likelihood of a shifted log-normal density over a normal one, less that of a parameter: float."""
    return max(best_logarithm(0, [values], (values.min(), values.max())).gain, 0.0)


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
