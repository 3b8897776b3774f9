"""The paper's figure: sds by LRVB and by mean field against Gibbs sampling, and covariances."""

import numpy as np
from matplotlib import pyplot as plt

from benchmarks.harness.figures import BLUE, GREY, ORANGE, STYLE, saved
from benchmarks.paper.paper_covariance.tables import usable

_PANELS = {
    "log_weights": r"sd of $\log\,\pi$",
    "means": r"sd of $\mu$",
    "precisions": r"sd of $\Lambda$",
    "covariances": "covariances, over the Gibbs sds",
}
_METHODS = {"mean_field": ("mean field", "x", ORANGE), "lrvb": ("LRVB", ".", BLUE)}


def draw(found, path):
    """A panel for every group of parameters, and one for covariances."""
    kept = [row for row in found if row["group"] == "paper" and usable(row)]
    points = [point for row in kept for point in row["points"]]
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(2, 2, figsize=(8, 8), layout="constrained")
        for axes, (group, title) in zip(panels.flat, _PANELS.items(), strict=True):
            _panel(axes, [point for point in points if point["group"] == group], group)
            axes.set_title(title)
            axes.set_xlabel("Gibbs sampling")
            if group != "covariances":
                errors = [row[f"gibbs_{group}_error"] for row in kept]
                _band(axes, np.sqrt(np.mean(np.square(errors))) if errors else 0.0)
        panels[0, 0].set_ylabel("estimate")
        panels[1, 0].set_ylabel("estimate")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        title = f"{len(kept)} simulations; grey: two standard errors of the chains"
        figure.legend(handles, labels, loc="outside upper center", ncols=2, title=title)
        saved(figure, path)


def _panel(axes, points, group):
    truth = np.array([point["gibbs"] for point in points])
    for method, (label, marker, colour) in _METHODS.items():
        if group == "covariances" and method == "mean_field":
            continue  # most are zero
        values = [point[method] for point in points]
        axes.plot(truth, values, marker, color=colour, label=label, markersize=4, alpha=0.6)
    everything = np.concatenate([axes.get_xlim(), axes.get_ylim()])
    limits = everything.min(), everything.max()
    axes.plot(limits, limits, color=GREY, linewidth=0.8, zorder=0)
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    axes.locator_params(nbins=6)


def _band(axes, error):
    """A band of two standard errors of the chains about the identity line."""
    line = np.array(axes.get_xlim())
    axes.fill_between(
        line, line * (1 - 2 * error), line * (1 + 2 * error), color=GREY, alpha=0.2, linewidth=0
    )
