"""Time of passes as one size grows: its fitted exponents, and a figure of both."""

from dataclasses import dataclass
from itertools import cycle

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator

from benchmarks.harness.figures import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY_BLUE, STYLE, VERMILION, saved

# As 7 and 8 have no common divisor, a pair of colour and marker returns only after 56 passes.
_COLOURS = (BLUE, GREEN, ORANGE, PURPLE, VERMILION, SKY_BLUE, BLACK)
_MARKERS = "os^DvPX*"
_LINE = 0.1125  # height of a line of the legend, as a share of the height of the curves


@dataclass(frozen=True)
class Curve:
    """Time of one pass as one size grows; the exponents are fitted to the upper half, where fixed costs
    matter less.

    Attributes
    ----------
    grows : str, column of the size that grows
    what : str, name of the pass
    sizes, seconds : arrays
    flops : array, or None where they are not counted
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
        """Exponent and logarithm of the factor of the fitted power law."""
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
    """Curves of all passes along all sizes, on the fewest threads, where at least two sizes were measured.

    Parameters
    ----------
    found : list of rows, whose column "grows" names the size that grows
    sizes : iterable of str, columns of the sizes
    passes : dict, for every pass its column of seconds, and its column of flops or None
    """
    fewest = min(row["threads"] for row in found)
    found = [row for row in found if row["threads"] == fewest]
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


def draw(curves, names, path):
    """A figure with a panel for every size that grows and a line for every pass.

    Parameters
    ----------
    curves : list of Curve, which may have different numbers of points
    names : dict, labels of the sizes that grow: {column: label}
    path : Path
    """
    passes = dict.fromkeys(curve.what for curve in curves)
    styles = {
        what: {"color": colour, "marker": marker}
        for what, marker, colour in zip(passes, cycle(_MARKERS), cycle(_COLOURS), strict=False)
    }
    along = {grows: [curve for curve in curves if curve.grows == grows] for grows in names}
    with plt.rc_context(STYLE):
        size = (1.5 + 2.5 * len(names), 4)
        figure, panels = plt.subplots(
            1, len(names), figsize=size, layout="constrained", sharey=True, squeeze=False
        )
        first = panels[0, 0]
        for axes, (grows, name) in zip(panels[0], names.items(), strict=True):
            _panel(axes, along[grows], styles)
            axes.set_xlabel(name)
        low, high = first.get_ylim()
        lines = 1 + max(len(here) for here in along.values())
        first.set_ylim(low, high * (high / low) ** (_LINE * lines))  # room for the legends
        first.set_ylabel("seconds")
        saved(figure, path)


def _panel(axes, curves, styles):
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    sizes = sorted({size for curve in curves for size in curve.sizes})
    axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes], size=8)
    if not curves:
        axes.text(0.5, 0.5, "measured at fewer than two sizes", transform=axes.transAxes, ha="center", size=8)
        return
    for curve in curves:
        label = f"{curve.what}: {_exponents(curve)}"
        axes.plot(*curve.fitted, color=styles[curve.what]["color"], linewidth=5, alpha=0.3)
        axes.plot(curve.sizes, curve.seconds, markersize=5, label=label, **styles[curve.what])
    counted = any(curve.flops is not None for curve in curves)
    title = "exponent of the band (of the flops)" if counted else "exponent of the band"
    axes.legend(title=title, loc="upper left", fontsize=8, title_fontsize=8)


def _exponents(curve):
    counted = "" if curve.flops is None else f" ({curve.flops_exponent:.1f})"
    return f"{curve.exponent:.2f}{counted}"
