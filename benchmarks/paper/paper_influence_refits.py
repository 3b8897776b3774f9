"""Is influence right? Linear response beside derivatives by refits (Section 6.5 of the paper).

On the paper's simulation every row is moved in every coordinate, on the digits five rows are: some that
certainly belong to one component, and some that are ambiguous. Differences are in units of the root mean
square influence on the group of parameters.
"""

from time import perf_counter

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter

from benchmarks.harness.figures import BLUE, GREEN, GREY, ORANGE, STYLE, saved
from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import milliseconds, size, table, text
from benchmarks.paper import PAPER_INFLUENCE_SECONDS, PAPER_REFIT_SECONDS
from benchmarks.problems.populations import PAPER

TITLE = "Influence against refits (Section 6.5)"
_SAMPLES_IN_QUICK_MODE, _MOVED_IN_QUICK_MODE = 200, 10
_LOG_ODDS = (-15.0, -2.0, 0.0, 2.0, 15.0)  # of the digits that are moved
_ROWS_AT_ONCE = 1000  # rows whose influence is held in memory
_SHOWN = 600  # points in the figure for each problem and group
_EQUAL = 1e-4  # root mean squares, below which no difference is visible in a figure
_GROUPS = {
    "log_weights": ("log weights", "D", ORANGE),
    "precisions": ("precisions", "s", GREEN),
    "means": ("means", "o", BLUE),
}
_LINEAR = 1.0  # root mean squares up to which the axes are linear


def measure(settings):
    """A row for every mixture and group of parameters."""
    from benchmarks.problems.paper_mixtures import digits, simulated

    fitted = simulated("the paper's simulation", PAPER.population, settings, _SAMPLES_IN_QUICK_MODE)
    n_moved = _MOVED_IN_QUICK_MODE if settings.quick else len(fitted.X)
    yield from _compared(fitted, np.arange(n_moved), settings)
    for fitted in digits(settings):
        moved = representatives(fitted.log_odds)
        odds = ", ".join(f"{value:.1f}" for value in fitted.log_odds[moved])
        yield from _compared(fitted, moved, settings, log_odds=odds)


def representatives(log_odds):
    """Distinct rows whose log odds are nearest to `_LOG_ODDS`, in their order: (5,)."""
    chosen = []
    for wanted in sorted(_LOG_ODDS, key=abs):
        distance = np.abs(log_odds - wanted)
        distance[chosen] = np.inf
        chosen.append(int(distance.argmin()))
    return np.array(sorted(chosen, key=lambda row: log_odds[row]))


def _compared(fitted, moved, settings, **known):
    """Yield a row, with points of the figure, for every group of parameters."""
    from benchmarks.analysis.refits import GROUPS, Refits, influences

    X, mixture = fitted.X, fitted.mixture
    refits = Refits(mixture, X)
    begin = perf_counter()
    by_refits = refits.derivatives(moved)
    common = known | {
        "moved": len(moved),
        "refits": refits.count,
        "refits_seconds": perf_counter() - begin,
        "largest_last_step": refits.largest_last_step,
        "distance_from_fit": refits.distance_from_fit(moved[0]),
    }
    times = settings.clock.interleaved(
        {"refit": lambda: refits.refit(moved[0]), "fit": lambda: refits.fit(moved[0])}
        | {group: lambda group=group: _of_all_rows(mixture, X, group) for group in GROUPS}
    )
    seconds = {group: summary({"influence": times.pop(group)}) for group in GROUPS}
    common |= summary(times)
    for group in GROUPS:
        ours, theirs = influences(mixture, X[moved], group).ravel(), by_refits[group].ravel()
        unit = np.sqrt(np.mean(ours**2))
        yield {
            "problem": f"{fitted.name}: {group}",
            "group": group,
            **fitted.sizes,
            **common,
            **seconds[group],
            "root_mean_square": unit,
            **_agreement(ours / unit, theirs / unit),
            "points": _shown(ours / unit, theirs / unit),
        }


def _of_all_rows(mixture, X, group):
    """Compute the influence of all rows, of which some are in memory at a time."""
    written = np.empty((_ROWS_AT_ONCE, *mixture.influence(X[:1], target=group).shape[1:]))
    for first in range(0, len(X), _ROWS_AT_ONCE):
        some = X[first : first + _ROWS_AT_ONCE]
        mixture.influence(some, target=group, out=written[: len(some)])


def _agreement(ours, theirs):
    """Columns that compare derivatives in units of their root mean square."""
    differences = np.abs(ours - theirs)
    return {
        "lack_of_correlation": 1.0 - np.corrcoef(ours, theirs)[0, 1],
        "slope": (ours @ theirs) / (ours @ ours),
        "largest_difference": differences.max(),
        "median_difference": np.median(differences),
    }


def _shown(ours, theirs):
    """Points of the figure: some derivatives by both ways, the largest among them."""
    from benchmarks.problems.paper_mixtures import rounded

    by_size = np.argsort(-np.abs(ours))
    largest, others = np.split(by_size, [_SHOWN // 4])
    n_others = min(len(others), _SHOWN - len(largest))
    some = [*largest, *np.random.default_rng(0).choice(others, n_others, replace=False)]
    return [{"lrvb": rounded(ours[i]), "refitted": rounded(theirs[i])} for i in some]


def section(found):
    agreement = table(
        [
            ("problem", _dataset),
            ("N, P, K", size),
            ("points moved", text("moved", "{:,.0f}")),
            ("influence on", lambda row: row["group"].replace("_", " ")),
            ("root mean square", text("root_mean_square")),
            ("1 - correlation", text("lack_of_correlation", "{:.0e}")),
            ("slope - 1", lambda row: f"{row['slope'] - 1:.0e}"),
            ("largest difference", text("largest_difference", "{:.1e}")),
            ("median difference", text("median_difference", "{:.1e}")),
        ],
        found,
    )
    times = table(
        [
            ("problem", _dataset),
            ("log odds of the points", text("log_odds", "{}")),
            ("influence of all points, ms", milliseconds("influence_seconds")),
            ("on the means alone, ms", milliseconds("means_seconds")),
            ("one refit by `fit`, ms", milliseconds("fit_seconds")),
            ("one of ours here, ms", milliseconds("refit_seconds")),
            ("refits done", text("refits", "{:,.0f}")),
            ("took, s", text("refits_seconds", "{:,.0f}")),
            ("the paper's, s", lambda row: f"{PAPER_REFIT_SECONDS:,.0f}" if _is_mnist(row) else ""),
            ("two refits by `fit` of every number in X over the influence", _all_refits_over_influence),
            ("times faster than the paper's 37 s", _beside_the_paper),
        ],
        _by_dataset(found),
    )
    return f"""Points are moved in every coordinate, a little and twice as much, to both sides, and the
mixture is fitted again from its optimum until nothing moves. Central differences of fourth order then are the
derivatives. These refits take Newton's steps with the matrix of the first fit, which decides how soon they
arrive and not where: such a refit and an ordinary warm-started `fit` to the same rows differ by
{_largest(found, "distance_from_fit"):.0e} posterior standard deviations at most. Differences from linear
response are in units of the root mean square influence on the group, over the points moved. On the simulation
these are all points; the digits are chosen by their log odds, some of which are certain and some ambiguous.

{agreement}

{_reading(_largest(found, "largest_difference"))}

Times of the influence are those of all points on all log weights, means and precisions, after the information
has been factored. Times of single refits are the least of the rounds; the time of all refits includes
whatever else the machine did meanwhile. On MNIST the paper takes 37 s for the influence of a number of points
that it does not state, and 20.7 minutes for moving five digits and fitting again.

{times}

![Influence against refits](paper_influence_refits.png)
"""


def _reading(largest):
    """A sentence about the largest of all differences."""
    size = f"the largest of all differences is {largest:.0e} of a root mean square."
    if largest < _EQUAL:
        return f"As in the paper, the two cannot be told apart: {size}"
    return f"Unlike in the paper, the two differ: {size}"


def _dataset(row):
    return row["problem"].split(":")[0]


def _largest(found, name):
    return max(row[name] for row in found)


def _by_dataset(found):
    """One row for every data set, with the times of the influence on all groups and on each of them."""
    merged = {}
    for row in found:
        total = merged.setdefault(_dataset(row), dict(row, influence_seconds=0.0))
        total["influence_seconds"] += row["influence_seconds"]
        total[f"{row['group']}_seconds"] = row["influence_seconds"]
    return list(merged.values())


def _all_refits_over_influence(row):
    n_refits = 2 * row["n_samples"] * row["n_features"]
    return f"{n_refits * row['fit_seconds'] / row['influence_seconds']:,.0f}"


def _beside_the_paper(row):
    return f"{PAPER_INFLUENCE_SECONDS / row['influence_seconds']:,.1f}" if _is_mnist(row) else ""


def _is_mnist(row):
    return row["mode"] == "full" and row["problem"].startswith("MNIST")


def draw(found, path):
    """A panel for every data set: refits above linear response, on the identity line if they agree."""
    datasets = {}
    for row in found:
        datasets.setdefault(row["problem"].split(":")[0], {})[row["group"]] = row["points"]
    size = (0.6 + 3.3 * len(datasets), 4.0)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, len(datasets), figsize=size, layout="constrained", squeeze=False)
        for axes, (dataset, by_group) in zip(panels[0], datasets.items(), strict=True):
            _panel(axes, by_group)
            axes.set_title(dataset, size=9)
        panels[0, 0].set_ylabel("derivative by refits")
        figure.supxlabel("influence by linear response, in root mean squares of its group", size=9)
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        saved(figure, path)


def _panel(axes, by_group):
    reach = 1.3 * max(abs(point["lrvb"]) for points in by_group.values() for point in points)
    axes.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=0.8, zorder=1)
    for group, (label, marker, colour) in _GROUPS.items():
        axes.plot(
            [point["lrvb"] for point in by_group[group]],
            [point["refitted"] for point in by_group[group]],
            marker,
            color=colour,
            markersize=4,
            markerfacecolor="none",
            markeredgewidth=0.7,
            label=label,
        )
    for scale in (axes.set_xscale, axes.set_yscale):
        scale("symlog", linthresh=_LINEAR)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_aspect("equal")
