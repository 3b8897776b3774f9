"""Seconds against the sizes that grow, with fitted exponents; growth.py and others draw their curves so."""

from itertools import cycle

from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator

from figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY_BLUE, STYLE, VERMILION, saved

# as 7 and 8 share no divisor, a pair returns after 56 passes only
_COLOURS = (BLUE, GREEN, ORANGE, PURPLE, VERMILION, SKY_BLUE, BLACK)
_MARKERS = "os^DvPX*"
_LINE = 0.1125  # of a legend, as a share of the height of the curves


def draw(curves, names, path):
    """A panel for every size that grows, a line for every pass.

    Parameters
    ----------
    curves : list of Curve, some of which may have fewer points than others
    names : dict, what the sizes that grow are called: {column: name}
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
