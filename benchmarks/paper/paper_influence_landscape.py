"""Which way does a mean follow a point? The landscape of influence (Section 6.5 of the paper).

Influence of a row's first coordinate on that of the upper right component's mean, times the number of rows of
that component: 1 is the influence of a row of a component that stands alone. The mixtures are fitted to the
paper's simulation, and to variants with its components further apart and closer together; the paper does not
say how far apart those of its figure are.
"""

from dataclasses import replace
from itertools import product

import numpy as np
from matplotlib import pyplot as plt

from benchmarks.harness.figures import BLACK, STYLE, saved
from benchmarks.harness.tables import grouped, table, text
from benchmarks.problems.populations import PAPER

TITLE = "Landscape of influence (Section 6.5)"
_DISTANCES = {
    "little overlap": 1.4,
    "moderate overlap": 1.0,
    "large overlap": 0.75,
}  # in units of the paper's
_SAMPLES_IN_QUICK_MODE = 1000  # with fewer, the closest components have no optimum
_SHOWN = 1500  # rows in a panel of the figure
_CERTAIN = 0.95  # responsibility of a component beyond which a row is its own
_OVERLAPS = ("little", "moderate", "large")
_READ = (
    "its own",
    "ambiguous",
    "the other's",
    "within 1 sd",
    "2 to 3 sd",
    "beyond 3 sd",
)  # places that the text refers to
_SHARE_IN_SCALE = 98  # % of the points that the colour scale spans; all others have the darkest colours


def measure(settings):
    """A row for every overlap and place of points."""
    from benchmarks.problems.paper_mixtures import simulated

    for name, distance in _DISTANCES.items():
        population = replace(PAPER.population, means=distance * PAPER.population.means)
        fitted = simulated(name, population, settings, _SAMPLES_IN_QUICK_MODE)
        influence = _on_first_coordinate(fitted)
        for row in _by_place(fitted, influence):
            yield row | {"distance": distance}


def _on_first_coordinate(fitted):
    """Influence of x_n1 on the first coordinate of the upper right mean, times its rows: (n_samples,)."""
    k = fitted.order[1]
    own_rows = fitted.responsibilities[:, 1].sum()
    return own_rows * fitted.mixture.influence(fitted.X)[:, k, 0, 0]


def _by_place(fitted, influence):
    """Yield a row for the points of either component, the ambiguous ones, and every ring around the mean.

    The first three, to which every point belongs once, have the points of the figure.
    """
    own, distances = fitted.responsibilities[:, 1], _distances(fitted)
    kinds = {
        "its own": own > _CERTAIN,
        "ambiguous": (own <= _CERTAIN) & (own >= 1.0 - _CERTAIN),
        "the other's": own < 1.0 - _CERTAIN,
    }
    rings = {
        "within 1 sd": distances < 1,
        "1 to 2 sd": (distances >= 1) & (distances < 2),
        "2 to 3 sd": (distances >= 2) & (distances < 3),
        "beyond 3 sd": distances >= 3,
    }
    shown = np.arange(len(influence)) < _SHOWN  # the rows are in random order
    for place, here in (kinds | rings).items():
        if not here.any():
            continue
        found = influence[here]
        yield {
            "problem": f"{fitted.name}: {place}",
            "overlap": fitted.name,
            "place": place,
            **fitted.sizes,
            **_means(fitted),
            "rows": int(here.sum()),
            "median": np.median(found),
            "median_size": np.median(np.abs(found)),
            "largest_size": np.abs(found).max(),
            "share_reversed": np.mean(found < 0),
            "points": _points(fitted.X, influence, np.flatnonzero(here & shown)) if place in kinds else [],
        }


def _distances(fitted):
    """Distances from the upper right mean, in its component's standard deviations: (n_samples,)."""
    mixture, k = fitted.mixture, fitted.order[1]
    return np.linalg.norm((fitted.X - mixture.means_[k]) @ mixture.precisions_cholesky_[k], axis=1)


def _means(fitted):
    """Columns of the coordinates of both means."""
    means = fitted.mixture.means_[fitted.order]
    return {f"mean_{k}_{axis}": means[k, p] for k in (0, 1) for p, axis in enumerate("xy")}


def _points(X, influence, selected):
    from benchmarks.problems.paper_mixtures import rounded

    values = np.column_stack([X, influence])[selected]
    return [dict(zip(("x", "y", "influence"), map(rounded, row), strict=True)) for row in values]


def section(found):
    shown = table(
        [
            ("overlap", lambda row: row["overlap"]),
            ("means apart, the paper's as 1", text("distance")),
            ("points", lambda row: row["place"]),
            ("how many", text("rows", "{:,.0f}")),
            ("median", text("median", "{:.2f}")),
            ("median size", text("median_size", "{:.2f}")),
            ("largest size", text("largest_size", "{:.2f}")),
            ("reversed", text("share_reversed", "{:.0%}")),
        ],
        found,
    )
    return f"""The table has the influence of the first coordinate of a point on that of the upper right
component's mean, times the number of rows of that component: 1 is the influence of a point of a component
that stands alone. Points are "ambiguous" that belong to the component with a probability of 5 % to 95 %;
distances are from its mean in its own standard deviations. There are {found[0]["n_samples"]:,.0f} rows. The
simulation of moderate overlap is that of the paper's other experiments; the paper does not say how far apart
the means of its figure are.

{shown}

![Landscape of influence](paper_influence_landscape.png)
{_reading({row["problem"]: row for row in found}) if _complete(found) else ""}"""


def _complete(found):
    """Whether all rows that the text refers to were measured: an interrupted run leaves rows out."""
    wanted = {f"{overlap} overlap: {place}" for overlap, place in product(_OVERLAPS, _READ)}
    return found[0]["mode"] == "full" and wanted <= {row["problem"] for row in found}


def _reading(rows):
    """What the paper says, and what these rows say."""

    def share(overlap, place, other):
        sizes = (rows[f"{overlap} overlap: {points}"]["median_size"] for points in (place, other))
        return f"{next(sizes) / next(sizes):.0%}"

    def reversed_ambiguous(overlap):
        return f"{rows[f'{overlap} overlap: ambiguous']['share_reversed']:.0%}"

    ambiguous = rows["large overlap: ambiguous"]
    share_ambiguous = ambiguous["rows"] / ambiguous["n_samples"]
    return f"""
What the paper says, and what is found here (sizes are medians):

* "The component's mean is essentially determined by the points that are assigned to it": with little overlap
  the other's points have {share("little", "the other's", "its own")} of the influence of its own, on the
  paper's own simulation {share("moderate", "the other's", "its own")}.
* "Points on the border between the two components reverse the sign of their effect": of the ambiguous points
  {reversed_ambiguous("little")} do with little overlap and {reversed_ambiguous("moderate")} with moderate
  overlap. With large overlap {reversed_ambiguous("large")} do, where {share_ambiguous:.0%} of all points are
  ambiguous.
* When components overlap even more, "data points that are distant from a component center have nearly as much
  influence as data points well within": points at 2 to 3 standard deviations have
  {share("large", "2 to 3 sd", "within 1 sd")} of the influence of those within one, points beyond three
  {share("large", "beyond 3 sd", "within 1 sd")}; with little overlap these have
  {share("little", "beyond 3 sd", "within 1 sd")}.
"""


def draw(found, path):
    """A panel for every overlap, with a diverging colour scale of its own, symmetric about zero."""
    overlaps = grouped(found, lambda row: row["overlap"])
    size = (0.3 + 3.6 * len(overlaps), 4.2)
    with plt.rc_context(STYLE | {"axes.grid": False}):
        figure, panels = plt.subplots(1, len(overlaps), figsize=size, layout="constrained", squeeze=False)
        for axes, (overlap, here) in zip(panels[0], overlaps.items(), strict=True):
            coloured = _scatter(axes, [point for row in here for point in row.get("points", [])])
            for k in (0, 1):
                mean = here[0][f"mean_{k}_x"], here[0][f"mean_{k}_y"]
                axes.plot(*mean, "X", color=BLACK, markersize=11, markeredgecolor="white")
            axes.set_title(overlap, size=9)
            axes.set_xlabel("first coordinate, $x_{n1}$")
            axes.set_aspect("equal")
            bar = figure.colorbar(coloured, ax=axes, location="bottom", shrink=0.85, extend="both")
            bar.set_label(r"influence of $x_{n1}$ on the upper right $\mu_1$, times its rows", size=8)
        panels[0, 0].set_ylabel("second coordinate, $x_{n2}$")
        saved(figure, path)


def _scatter(axes, points):
    """Points coloured by their influence, the strongest on top."""
    points = sorted(points, key=lambda point: abs(point["influence"]))
    x, y, influence = (np.array([point[name] for point in points]) for name in ("x", "y", "influence"))
    reach = np.percentile(np.abs(influence), _SHARE_IN_SCALE)
    return axes.scatter(
        x,
        y,
        c=influence,
        cmap="RdBu_r",
        vmin=-reach,
        vmax=reach,
        s=11,
        edgecolors="#888888",
        linewidths=0.2,
    )
