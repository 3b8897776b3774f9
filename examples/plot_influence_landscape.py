"""
==============================================================
When one point moves, which way does a component's mean follow?
==============================================================

Two mixtures of two Gaussians, far apart and strongly overlapping. How much does the first coordinate of
component 0's mean change when a point, anywhere in the plane, moves to the right? One fit answers for every
place, by linear response (LRVB), as in Section 6.5 of the paper.

What to see. Far apart, a mean follows its own points, by about 1 / N_0 of the distance that each moves, and
hardly depends on the others. On the border the sign is reversed. A point there that moves right, towards
component 0, joins it, and since it lies to the left of the mean, it draws the mean to the left; a point that
moves left leaves the component, and the mean goes right. This change of assignment outweighs the pull. With
much overlap more than half of the points are ambiguous. They move the mean by up to 14 times 1 / N_0 of the
distance that they move; points of the other component move it typically more than half as far as its own. Far
out the sign is reversed again, because a point that moves outwards widens its component.

Below, one point of component 0 is put at every place of the dashed line. The prediction is the influence of
its weight there minus that at its own place, which is the exact integral of the landscape; the mean is also
refitted at each place. All fits have the same prior, and refits start from the responsibilities of the first.
The moves are not small, but this hardly matters: one point of a thousand is a small part of the data.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.displays import InfluenceDisplay

N_SAMPLES = 1000
DISTANCES = (5.0, 2.2)  # between the means of the components, in standard deviations
STEPS = (-0.5, 0.5)  # how far the points of the table move to the right
N_PLACES = 25  # places at which one point is put, with a refit at each
BLUE, ORANGE = "#0072B2", "#D55E00"


class Overlap:
    """A mixture of two round Gaussians at a distance, component 0 to the upper right, and refits of it."""

    def __init__(self, distance):
        random = np.random.default_rng(0)
        labels = np.arange(N_SAMPLES) % 2
        centers = 0.5 * distance * np.array([[1.0, 1.0], [-1.0, -1.0]]) / np.sqrt(2)
        self.distance = distance
        self.X = centers[labels] + random.normal(size=(N_SAMPLES, 2))
        self.mixture = self.fit(self.X, np.eye(2)[labels])
        self.responsibilities = self.mixture.predict_proba(self.X)
        self.sd = self.mixture.means_std_[0, 0]

    @staticmethod
    def fit(X, start):
        """A fit with a prior that does not depend on X."""
        return LRVBGaussianMixture(
            n_components=2,
            weight_concentration_prior_type="dirichlet_distribution",
            weight_concentration_prior=1.0,
            mean_prior=np.zeros(2),
            covariance_prior=np.eye(2),
            init_params=start,
            max_iter=1000,
        ).fit(X)

    def refitted_shift(self, row, place):
        """Move of component 0's mean, first coordinate, if the row is put at a place, by refitting."""
        moved = self.X.copy()
        moved[row] = place
        return (self.fit(moved, self.responsibilities).means_ - self.mixture.means_)[0, 0]

    def slope(self, places):
        """Derivative of that coordinate in the first coordinate of points at these places, (n,)."""
        return self.mixture.influence(places)[:, 0, 0, 0]

    def pull(self, places):
        """Derivative of that coordinate in the weight of points at these places, (n,)."""
        return self.mixture.influence(places, perturb="weight")[:, 0, 0]

    def nearest(self, place):
        """The row nearest to a place."""
        return int(np.argmin(np.linalg.norm(self.X - place, axis=1)))

    def journey(self, n_places):
        """Places on the horizontal line midway between the means, from the first point to the last."""
        across = np.linspace(self.X[:, 0].min(), self.X[:, 0].max(), n_places)
        return np.column_stack([across, np.full(n_places, self.mixture.means_[:, 1].mean())])


def head_of(overlap):
    """Title of a column."""
    return f"means {overlap.distance:g} sd apart"


def report(overlap):
    """Print the mean with its error bar, and how far it moves when a point moves: LRVB and refitted."""
    mixture, sd = overlap.mixture, overlap.sd
    n_own = mixture.weights_[0] * N_SAMPLES
    print(
        f"{head_of(overlap)}: component 0's mean has first coordinate {mixture.means_[0, 0]:.3f} +- {sd:.3f}"
    )
    print(f"{'':<42}{'shift of the mean, posterior sd':>42}")
    print(
        f"{'a point':<16}{'responsibility':>15}{'slope N_0':>11}{'moves by':>10}{'LRVB':>16}{'refitted':>16}"
    )
    first, second = mixture.means_
    places = {"in component 0": first, "on the border": 0.5 * (first + second), "in component 1": second}
    for name, place in places.items():
        row = overlap.nearest(place)
        point = overlap.X[[row]]
        start = f"{name:<16}{overlap.responsibilities[row, 0]:>15.2f}{n_own * overlap.slope(point)[0]:>11.2f}"
        for step in STEPS:
            there = point + [step, 0.0]
            shift = (overlap.pull(there) - overlap.pull(point))[0] / sd
            refitted = overlap.refitted_shift(row, there[0]) / sd
            print(f"{start:<42}{step:>+10.1f}{shift:>+16.4f}{refitted:>+16.4f}")
            start = ""
    slopes = n_own * np.abs(overlap.slope(overlap.X))
    print(f"|slope| N_0 over all points: median {np.median(slopes):.2f}, largest {slopes.max():.2f}")


def draw_landscape(ax, overlap):
    """Draw the influence function with the points on it, and the line along which one point is put."""
    dots = {"s": 5, "linewidths": 0.2}
    InfluenceDisplay.from_estimator(overlap.mixture, overlap.X, kind="landscape", ax=ax, scatter_kw=dots)
    ax.plot(*overlap.journey(2).T, color="black", lw=1.5, ls=(0, (4, 3)))
    for k, mean in enumerate(overlap.mixture.means_):
        badge = {"boxstyle": "circle", "facecolor": "white", "edgecolor": "black"}
        ax.text(*mean, f"{k}", ha="center", va="center", fontweight="bold", bbox=badge)
    ax.set(aspect="equal", title=head_of(overlap))


def draw_journey(ax, overlap, limits):
    """Draw the shift of component 0's mean as one of its points is put elsewhere, by LRVB and refits."""
    home = overlap.nearest(overlap.mixture.means_[0])
    fine, coarse = overlap.journey(400), overlap.journey(N_PLACES)
    shift = (overlap.pull(fine) - overlap.pull(overlap.X[[home]])) / overlap.sd
    refitted = [overlap.refitted_shift(home, place) / overlap.sd for place in coarse]
    backwards = overlap.slope(fine) < 0
    ax.fill_between(
        fine[:, 0],
        *(0.0, 1.0),
        where=backwards,
        transform=ax.get_xaxis_transform(),
        color="#cfdcf6",
        lw=0,
        label="the mean goes the other way",
    )
    ax.plot(fine[:, 0], shift, color=BLUE, label="LRVB, from one fit")
    ax.plot(coarse[:, 0], refitted, "o", ms=5, mfc="none", color=ORANGE, label="refitted at each place")
    ax.set(
        xlim=limits, xlabel="x0 of one point on the dashed line", ylabel="shift of mean[0,x0], posterior sd"
    )
    ax.set_title("one point put at every place of the dashed line", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)


def draw(overlaps):
    """Draw the landscapes above, and the shifts of the mean below."""
    figure = Figure(figsize=(12.0, 8.8), layout="constrained")
    above, below = figure.subplots(2, 2, height_ratios=[1.6, 1])
    for landscape, journey, overlap in zip(above, below, overlaps, strict=True):
        draw_landscape(landscape, overlap)
        draw_journey(journey, overlap, landscape.get_xlim())
    handles, labels = below[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def main():
    """Fit, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--output", type=Path, default=Path("influence_landscape.png"))
    output = parser.parse_args().output
    overlaps = [Overlap(distance) for distance in DISTANCES]
    for overlap in overlaps:
        report(overlap)
        print()
    draw(overlaps).savefig(output, dpi=95)
    print(f"figure: {output}")


if __name__ == "__main__":
    main()
