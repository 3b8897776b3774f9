"""Scores of digits on a component's mean against how certain it is of them."""

from matplotlib import pyplot as plt

from figures.style import BLUE, ORANGE, STYLE, saved

_COMPONENTS = (("component 0, zeros", BLUE), ("component 1, ones", ORANGE))


def draw(found, path):
    """A panel for every component, a row of panels for every kind of features."""
    by_features = {}
    for row in found:
        by_features.setdefault(row["features"], []).append(row)
    size = (8.5, 0.6 + 2.6 * len(by_features))
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(by_features), 2, figsize=size, layout="constrained", squeeze=False, sharex=True, sharey="row"
        )
        for line, (features, rows) in zip(panels, by_features.items(), strict=True):
            for row in rows:
                component, colour = _COMPONENTS[int(row["component"])]
                axes = line[int(row["component"])]
                _panel(axes, row["points"], colour)
                axes.set_title(f"{features}: {component}", size=9)
        figure.supxlabel("log odds that the digit is the component's, capped at ± 15", size=9)
        figure.supylabel("largest directional derivative of the mean's squared norm", size=9)
        saved(figure, path)


def _panel(axes, points, colour):
    log_odds, scores = ([point[name] for point in points] for name in ("log_odds", "score"))
    axes.plot(log_odds, scores, "o", color=colour, alpha=0.6, markersize=5)
    axes.set_yscale("log")
