"""Which way does a mean follow a point? The landscape of influence in the paper's Section 6.5.

Influence of a row's first coordinate on that of the upper right component's mean, times the rows of that
component: 1 is what a row of a component that stands alone has. On the paper's simulation, and with its
components further apart and closer together; how far apart those of the paper's figure are it does not say.
"""

from dataclasses import replace

import numpy as np
from paper_mixtures import rounded, simulated
from populations import PAPER

_DISTANCES = {"little overlap": 1.4, "moderate overlap": 1.0, "large overlap": 0.75}  # of the paper's means
_SAMPLES_IN_QUICK_MODE = 1000  # fewer, and the closest components lose their optimum
_SHOWN = 1500  # rows of a figure
_CERTAIN = 0.95  # responsibility


def measure(settings):
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
    """Yield a row for the points of either component, those in doubt, and every ring around the mean.

    Points of the figure go with the first three, which are all there are.
    """
    own, distances = fitted.responsibilities[:, 1], _distances(fitted)
    kinds = {
        "its own": own > _CERTAIN,
        "in doubt": (own <= _CERTAIN) & (own >= 1.0 - _CERTAIN),
        "the other's": own < 1.0 - _CERTAIN,
    }
    rings = {
        "within 1 sd": distances < 1,
        "1 to 2 sd": (distances >= 1) & (distances < 2),
        "2 to 3 sd": (distances >= 2) & (distances < 3),
        "beyond 3 sd": distances >= 3,
    }
    shown = np.arange(len(influence)) < _SHOWN  # rows are in no order
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
    """From the upper right mean, in its component's standard deviations: (n_samples,)."""
    mixture, k = fitted.mixture, fitted.order[1]
    return np.linalg.norm((fitted.X - mixture.means_[k]) @ mixture.precisions_cholesky_[k], axis=1)


def _means(fitted):
    """Columns of both means."""
    means = fitted.mixture.means_[fitted.order]
    return {f"mean_{k}_{axis}": means[k, p] for k in (0, 1) for p, axis in enumerate("xy")}


def _points(X, influence, selected):
    values = np.column_stack([X, influence])[selected]
    return [dict(zip(("x", "y", "influence"), map(rounded, row), strict=True)) for row in values]
