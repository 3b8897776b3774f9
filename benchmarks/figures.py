"""Figures of the report."""

import matplotlib
import numpy as np
import rows
import targets
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, NullLocator

matplotlib.use("Agg")

# told apart by colour-blind readers (Okabe and Ito)
_BLUE, _ORANGE, _GREEN, _PURPLE, _GREY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#666666"
_ABOVE, _BELOW = 6, -13  # points from a marker to its note
_NOMINAL = 95  # % of intervals that should hold the truth
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def _saved(figure, path):
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _label(row):
    sizes = f"{row['n_samples']:,.0f} x {row['n_features']:.0f}, K = {row['n_components']:.0f}"
    return f"{rows.label(row)}\n{sizes}"


def _by_problem(axes, found):
    """One line a row, from the top, named at the left."""
    axes.set_yticks(range(len(found)), [_label(row) for row in found])
    axes.set_ylim(len(found) - 0.45, -0.55)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)


def sweep(found, path):
    """How many times faster one sweep of ours is, with its targets."""
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(7.5, 1.2 + 0.45 * len(found)), layout="constrained")
        lines = np.arange(len(found))
        ratios = np.array([row["theirs_seconds"] / row["ours_seconds"] for row in found])
        axes.barh(lines, ratios - 1, left=1, height=0.5, color=_BLUE, label="measured")
        for line, ratio in zip(lines, ratios, strict=True):
            axes.text(1.01, line, f"{ratio:.1f}x", transform=axes.get_yaxis_transform(), va="center")
        wanted = {
            line: targets.SWEEP[row["problem"]]
            for line, row in enumerate(found)
            if row["problem"] in targets.SWEEP
        }
        for name, colour in (("solid", _ORANGE), ("aim", _GREEN)):
            thresholds = [getattr(target, name) for target in wanted.values()]
            below, above = ([line + side for line in wanted] for side in (-0.36, 0.36))
            axes.vlines(thresholds, below, above, color=colour, linewidth=3, label=f"target: {name}")
        axes.axvline(1, color=_GREY, linewidth=1)
        axes.set_xscale("log")
        furthest = max([*ratios, *(target.aim for target in wanted.values())])
        low, high = min(0.8, 0.9 * ratios.min()), 1.2 * furthest
        axes.set_xticks([tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low <= tick <= high])
        axes.set_xlim(low, high)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("time of one sweep: scikit-learn over ours")
        _by_problem(axes, found)
        figure.legend(loc="outside upper center", ncols=3)
        _saved(figure, path)


def fit(found, path):
    """Time to the same accuracy, and where scikit-learn's defaults stop."""
    found = [row for row in found if not row.get("note")]
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(8, 1.2 + 0.48 * len(found)), layout="constrained")
        lines = np.arange(len(found))
        sides = {
            "theirs": ("scikit-learn, to 1e-3 sd", "D", _ORANGE),
            "plain": ("our sweeps alone, to 1e-3 sd", "s", _GREEN),
            "newton_near": ("ours, to 1e-3 sd", "o", _BLUE),
            "newton": ("ours, converged", "|", _BLUE),
            "default": ("scikit-learn's defaults stop, sd away", "x", _PURPLE),
        }
        seconds = {side: [row[f"{side}_seconds"] for row in found] for side in sides}
        all_seconds = list(seconds.values())
        axes.hlines(lines, np.min(all_seconds, axis=0), np.max(all_seconds, axis=0), color="#DDDDDD")
        for side, (label, marker, colour) in sides.items():
            axes.plot(
                seconds[side], lines, marker, color=colour, label=label, markersize=7, markeredgewidth=1.5
            )
        for line, row in zip(lines, found, strict=True):
            _note(axes, row["default_seconds"], line, _distance(row["default_distance"]), _ABOVE)
            for side in ("theirs", "plain"):
                if not row[f"{side}_reached"]:
                    _note(axes, row[f"{side}_seconds"], line, "or more", _ABOVE)
                elif row[f"{side}_elsewhere"]:
                    _note(axes, row[f"{side}_seconds"], line, "another optimum", _BELOW)
        axes.set_xscale("log")
        axes.margins(x=0.08)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("seconds")
        _by_problem(axes, found)
        figure.legend(loc="outside upper center", ncols=2)
        _saved(figure, path)


def _note(axes, x, y, text, offset):
    """A few words beside a marker, ``offset`` points higher."""
    axes.annotate(text, (x, y), (0, offset), textcoords="offset points", ha="center", size=7.5, color=_GREY)


def _distance(sds):
    if sds < 1e-3:
        return "<0.001"
    return f"{sds:.0f}" if sds >= 10 else f"{sds:.1g}"


def growth(curves, names, path):
    """Seconds against rows, features and components, with fitted exponents.

    Parameters
    ----------
    curves : list of Curve
    names : dict, what the sizes that grow are called
    """
    passes = dict.fromkeys(curve.what for curve in curves)
    styles = {
        what: {"color": colour, "marker": marker}
        for what, marker, colour in zip(passes, "os^", (_BLUE, _GREEN, _ORANGE), strict=True)
    }
    with plt.rc_context(_STYLE):
        figure, panels = plt.subplots(1, len(names), figsize=(9, 4), layout="constrained", sharey=True)
        for axes, (grows, name) in zip(panels, names.items(), strict=True):
            here = [curve for curve in curves if curve.grows == grows]
            for curve in here:
                label = f"{curve.what}: {_exponents(curve)}"
                axes.plot(*curve.fitted, color=styles[curve.what]["color"], linewidth=5, alpha=0.3)
                axes.plot(curve.sizes, curve.seconds, markersize=5, label=label, **styles[curve.what])
            axes.set_xscale("log")
            axes.set_yscale("log")
            sizes = sorted({size for curve in here for size in curve.sizes})
            axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes], size=8)
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlabel(name)
            axes.legend(
                title="exponent of the band (of the flops)", loc="upper left", fontsize=8, title_fontsize=8
            )
        low, high = panels[0].get_ylim()
        panels[0].set_ylim(low, high * (high / low) ** 0.45)  # room for the legends
        panels[0].set_ylabel("seconds")
        _saved(figure, path)


def _exponents(curve):
    counted = "" if curve.flops is None else f" ({curve.flops_exponent:.1f})"
    return f"{curve.exponent:.2f}{counted}"


def coverage(found, methods, path):
    """Share of intervals that hold the truth: a panel for every group, a line for every setting.

    Parameters
    ----------
    found : list of rows, of one setting, group and method each
    methods : dict, what the methods are called
    """
    groups = dict.fromkeys(row["group"] for row in found)
    lines, labels = _lines_under_headings(found)
    with plt.rc_context(_STYLE):
        size = (10, 1.2 + 0.36 * len(labels))
        figure, panels = plt.subplots(
            1, len(groups), figsize=size, layout="constrained", sharex=True, sharey=True
        )
        for axes, group in zip(panels, groups, strict=True):
            axes.axvline(_NOMINAL, color=_GREY, linewidth=1)
            axes.hlines(list(lines.values()), 0, 100, color="#F5F5F5", linewidth=20, zorder=0)
            styles = zip(methods, "osD", (_BLUE, _ORANGE, _GREEN), (-0.24, 0, 0.24), strict=True)
            for method, marker, colour, offset in styles:
                here = [row for row in found if (row["group"], row["method"]) == (group, method)]
                axes.errorbar(
                    [100 * row["coverage"] for row in here],
                    [lines[row["setting"]] + offset for row in here],
                    xerr=[200 * row["coverage_se"] for row in here],
                    fmt=marker,
                    color=colour,
                    markersize=4,
                    linewidth=1,
                    label=methods[method],
                )
            axes.set_title(group.replace("_", " "), size=9)
            axes.grid(False, axis="y")
            axes.tick_params(axis="y", length=0)
        panels[0].set_yticks(range(len(labels)), labels)
        panels[0].set_ylim(len(labels) - 0.4, -0.6)
        least = min(100 * (row["coverage"] - 2 * row["coverage_se"]) for row in found)
        panels[0].set_xlim(max(0, 10 * (least // 10)), 101)
        panels[0].set_xticks([tick for tick in (0, 20, 40, 60, 80) if tick >= least - 10] + [_NOMINAL])
        for label in panels[0].get_yticklabels():
            label.set_fontweight("normal" if label.get_text() in lines else "bold")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        figure.supxlabel("% of 95 % intervals that hold the truth, ± 2 Monte Carlo standard errors", size=9)
        _saved(figure, path)


def _lines_under_headings(found):
    """The line of every setting, and what stands at all lines from the top: settings and headings."""
    lines, labels, last = {}, [], None
    for row in found:
        wrong = ", the model is wrong" if row["misspecified"] else ""
        heading = f"{row['n_samples']:,.0f} rows{wrong}"
        if heading != last:
            labels.append(heading)
            last = heading
        if row["setting"] not in lines:
            lines[row["setting"]] = len(labels)
            labels.append(row["setting"])
    return lines, labels
