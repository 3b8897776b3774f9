"""Time of passes as one size grows, and its fitted exponents."""

from dataclasses import dataclass

import numpy as np
import rows


@dataclass(frozen=True)
class Curve:
    """Time of one pass as one size grows; exponents are of its upper half, where fixed costs matter less.

    Attributes
    ----------
    grows : str, column of the size
    what : str, the pass
    sizes, seconds : arrays
    flops : array, or None where nobody counts them
    """

    grows: str
    what: str
    sizes: np.ndarray
    seconds: np.ndarray
    flops: np.ndarray | None

    @property
    def upper_half(self):
        return slice(min(len(self.sizes) // 2, len(self.sizes) - 2), None)

    def _power_law(self, values):
        """Exponent, and logarithm of the factor."""
        return np.polyfit(np.log(self.sizes[self.upper_half]), np.log(values[self.upper_half]), 1)

    @property
    def exponent(self):
        return self._power_law(self.seconds)[0]

    @property
    def flops_exponent(self):
        return None if self.flops is None else self._power_law(self.flops)[0]

    @property
    def fitted(self):
        """Sizes and seconds of the fitted line."""
        sizes = self.sizes[self.upper_half]
        return sizes, np.exp(np.polyval(self._power_law(self.seconds), np.log(sizes)))


def curves(found, sizes, passes):
    """The curve of every size and pass that was measured at two sizes or more, on the fewest threads.

    Parameters
    ----------
    found : list of rows, whose column "grows" names the size that grows
    sizes : iterable of str, columns of the sizes
    passes : dict, for every pass its column of seconds, and that of flops or None
    """
    found = rows.on_fewest_threads(found)
    found_curves = []
    for grows in sizes:
        for what, (seconds, flops) in passes.items():
            along = [row for row in found if row["grows"] == grows and row.get(seconds) is not None]
            along.sort(key=lambda row: row[grows])
            if len(along) < 2:
                continue
            sizes_and_times = (np.array([row[column] for row in along]) for column in (grows, seconds))
            counted = None if flops is None else np.array([row[flops] for row in along])
            found_curves.append(Curve(grows, what, *sizes_and_times, counted))
    return found_curves
