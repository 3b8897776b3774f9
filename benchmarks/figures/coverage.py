"""Share of intervals that hold the truth."""

from matplotlib import pyplot as plt
from sections.coverage import METHODS

from figures.style import BLUE, GREEN, GREY, ORANGE, STYLE, saved

_NOMINAL = 95  # % of intervals that should hold the truth


def draw(found, path):
    """Share of intervals that hold the truth: a panel for every group, a line for every setting.

    Parameters
    ----------
    found : list of rows, of one setting, group and method each
    """
    groups = dict.fromkeys(row["group"] for row in found)
    lines, labels = _lines_under_headings(found)
    with plt.rc_context(STYLE):
        size = (10, 1.2 + 0.36 * len(labels))
        figure, panels = plt.subplots(
            1, len(groups), figsize=size, layout="constrained", sharex=True, sharey=True
        )
        for axes, group in zip(panels, groups, strict=True):
            axes.axvline(_NOMINAL, color=GREY, linewidth=1)
            axes.hlines(list(lines.values()), 0, 100, color="#F5F5F5", linewidth=20, zorder=0)
            styles = zip(METHODS, "osD", (BLUE, ORANGE, GREEN), (-0.24, 0, 0.24), strict=True)
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
                    label=METHODS[method],
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
        saved(figure, path)


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
