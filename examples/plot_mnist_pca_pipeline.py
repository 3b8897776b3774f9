"""
==================================================================================
Clusters of handwritten digits: how sure is the answer, and which digits drive it?
==================================================================================

A mixture of two Gaussians sorts images of eights and nines into two clusters without seeing their labels. Its
answer is a few numbers: each cluster's share of the digits, and its mean. How sure is it of them? Mean-field
variational Bayes, which scikit-learn's BayesianGaussianMixture computes, treats the cluster of every digit as
settled, and so its error bars are too small wherever clusters overlap. Linear response (LRVB) corrects them
from the same single fit. The script checks both against the slow way of finding out: a Gibbs sampler, which
draws from the exact posterior.

The same fit also says what leaving out a digit would do to the answer, for every digit at once, and which
digits it cannot tell apart.

What to see. The Gibbs draws fill the solid ellipses of LRVB; three times as many of them as it claims lie
outside the dashed ellipses of mean field. The digits that drive the answer are not only the ambiguous ones:
some lie far out in their cluster, and some are, with certainty, in the wrong one.

Why eights and nines in two principal components: they overlap while the two clusters still are the two digits
(92 % of the labels), and with two components the figure's plane is all that the mixture sees. The paper's
zeros and ones hardly overlap, and there both methods agree.

By default the script runs anywhere, on scikit-learn's 8 x 8 digits. On MNIST's zeros and ones, in 25
principal components::

    python plot_mnist_pca_pipeline.py --openml
    python plot_mnist_pca_pipeline.py --mnist mnist01.npz
    python plot_mnist_pca_pipeline.py --mnist mnist01.npz --paper-features mnist_author_pca.npz

The last line reproduces the paper's test error of 0.08, where grey levels give 0.018: the authors' program
read the pixels as signed bytes (full ink, 255, becomes -1) and projected them on the principal components of
all 60,000 training digits.
"""

import argparse
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from scipy.stats import chi2, wishart
from sklearn.base import clone
from sklearn.datasets import fetch_openml, load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_lrvb import LRVBGaussianMixture

DIGIT_NAMES = ("zeros", "ones", "twos", "threes", "fours", "fives", "sixes", "sevens", "eights", "nines")
CLUSTER_COLOURS = ("#0072B2", "#E69F00")
CLUSTER_MARKERS = ("o", "^")
METHODS = {"lrvb": "LRVB", "mean_field": "mean field"}
METHOD_LINES = {
    "lrvb": {"linestyle": "-", "linewidth": 2.4, "edgecolor": "black"},
    "mean_field": {"linestyle": (0, (3, 1.5)), "linewidth": 2.0, "edgecolor": "#B22222"},
}
PARAMETERS = {"weights": "shares", "means": "means", "covariances": "covariances"}
LEVEL = 0.95  # of the regions and intervals
CERTAIN = 0.9  # a digit whose cluster has less probability is called doubtful
N_DOTS = 1000  # at most as many digits or Gibbs draws are drawn in one panel
N_SHOWN = 7  # images in each row of the gallery


# Data.


@dataclass(frozen=True)
class Digits:
    """Images (n, pixels) in [0, 1] of two digits and their labels (n,), to train and to count errors."""

    source: str
    pair: tuple[int, int]
    n_pca: int
    n_draws: int
    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray

    @property
    def names(self):
        """The two digits in words."""
        return [DIGIT_NAMES[digit] for digit in self.pair]


def embedded_digits(pair=(8, 9)):
    """Two of scikit-learn's 8 x 8 digits. All of them train; errors are counted on the same ones."""
    images, labels = load_digits(return_X_y=True)
    chosen = np.isin(labels, pair)
    images, labels = images[chosen] / 16, labels[chosen]
    return Digits("scikit-learn's 8 x 8 digits", pair, 2, 3000, images, labels, images, labels)


def stored_mnist(path):
    """MNIST's zeros and ones from an .npz file with X_train, y_train, X_test, y_test."""
    with np.load(path) as stored:
        train, test = stored["X_train"] / 255, stored["X_test"] / 255
        labels = stored["y_train"], stored["y_test"]
    return Digits(f"MNIST ({path.name})", (0, 1), 25, 500, train, labels[0], test, labels[1])


def openml_mnist():
    """MNIST's zeros and ones from OpenML: the first 60,000 rows train, the others test."""
    images, names = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True)
    labels = names.astype(int)
    train = (labels < 2) & (np.arange(len(labels)) < 60_000)
    test = (labels < 2) & ~train
    images = images / 255
    return Digits("MNIST (OpenML)", (0, 1), 25, 500, images[train], labels[train], images[test], labels[test])


def load(arguments):
    """The digits that the command line asks for."""
    if arguments.mnist is not None:
        return stored_mnist(arguments.mnist)
    return openml_mnist() if arguments.openml else embedded_digits()


# Model.


def paper_features(path):
    """The paper's features: pixels as signed bytes, centred and projected as stored in an .npz file."""
    with np.load(path) as stored:
        pixel_mean, components = stored["pixel_mean"], stored["components"]

    def project(images):
        signed = np.rint(255 * images).astype(np.uint8).view(np.int8)
        return (signed - pixel_mean) @ components.T

    return FunctionTransformer(project)


def build_pipeline(digits, features_path):
    """PCA and mixture; with `features_path` the paper's features and the paper's model."""
    if features_path is None:
        return make_pipeline(PCA(digits.n_pca), LRVBGaussianMixture(n_components=2, random_state=0))
    mixture = LRVBGaussianMixture(
        n_components=2, prior="flat", factorization="independent", reg_covar=0, random_state=0
    )
    return make_pipeline(paper_features(features_path), mixture)


def timed(call):
    """What the call returns, and the seconds that it took."""
    start = perf_counter()
    return call(), perf_counter() - start


class Study:
    """A fitted pipeline and all that is asked of it."""

    def __init__(self, digits, pipeline):
        self.digits = digits
        self.pipeline, self.fit_seconds = timed(lambda: pipeline.fit(digits.train))
        self.mixture = pipeline[-1]
        self.rows = pipeline[:-1].transform(digits.train)
        self.probabilities = self.mixture.predict_proba(self.rows)
        (self.lrvb_sd, self.removal), self.answer_seconds = timed(self._ask)

    def _ask(self):
        """LRVB standard deviations of all parameters, and what removing each digit does to both means."""
        sd = {target: self.standard_deviations(target, "lrvb") for target in PARAMETERS}
        # The derivative in the digit's weight, times the change of its weight from 1 to 0.
        return sd, -self.mixture.influence(self.rows, perturb="weight")

    def standard_deviations(self, target, method):
        """Posterior standard deviations of one kind of parameters, (d,)."""
        return np.sqrt(np.diag(self.mixture.get_posterior_covariance(target, method=method)))

    def mean_covariances(self, method):
        """Posterior covariance of either cluster's mean, (2, P, P)."""
        n_features = self.mixture.n_features_in_
        joint = self.mixture.get_posterior_covariance("means", method=method)
        blocks = joint.reshape(2, n_features, 2, n_features)
        return np.stack([blocks[k, :, k] for k in range(2)])

    @cached_property
    def test_table(self):
        """Test digits by cluster (rows) and label (columns)."""
        table = np.zeros((2, 2), dtype=int)
        columns = np.searchsorted(self.digits.pair, self.digits.test_labels)
        np.add.at(table, (self.pipeline.predict(self.digits.test), columns), 1)
        return table

    @cached_property
    def cluster_digits(self):
        """The digit that most test images of each cluster show, (2,)."""
        return np.array(self.digits.pair)[self.test_table.argmax(axis=1)]

    @property
    def clusters(self):
        """Each cluster's name: its digit in words."""
        return [DIGIT_NAMES[digit] for digit in self.cluster_digits]

    @property
    def assignment(self):
        """The more probable cluster of every training digit, (n,)."""
        return self.probabilities.argmax(axis=1)

    @property
    def certainty(self):
        """Probability of the more probable cluster of every training digit."""
        return self.probabilities.max(axis=1)

    @property
    def doubtful(self):
        """Training digits by ascending certainty, those below `CERTAIN`."""
        order = np.argsort(self.certainty, kind="stable")
        return order[: np.sum(self.certainty < CERTAIN)]

    @property
    def shifts(self):
        """How far removing a digit moves a mean, at most, in LRVB standard deviations: (n,)."""
        sd = self.lrvb_sd["means"].reshape(self.mixture.means_.shape)
        return np.abs(self.removal / sd).max(axis=(1, 2))

    @property
    def most_influential(self):
        """Training digits by descending shift."""
        return np.argsort(-self.shifts, kind="stable")[:N_SHOWN]

    def refitted_shift(self, row):
        """`shifts` of one digit, by refitting without it."""
        start, rows = np.delete(self.probabilities, row, axis=0), np.delete(self.rows, row, axis=0)
        without = clone(self.mixture).set_params(init_params=start).fit(rows)
        sd = self.lrvb_sd["means"].reshape(self.mixture.means_.shape)
        return np.abs((without.means_ - self.mixture.means_) / sd).max()

    @cached_property
    def gibbs(self):
        """Draws of the weights (S, 2) and means (S, 2, P) from the exact posterior, and their seconds."""
        (weights, means), seconds = timed(lambda: gibbs_draws(self.mixture, self.rows, self.digits.n_draws))
        return weights, means, seconds

    def held_by_interval(self, method):
        """Fraction of the Gibbs draws in which the first cluster's share lies in its interval."""
        sd = self.standard_deviations("weights", method)[0]
        distance = np.abs(self.gibbs[0][:, 0] - self.mixture.weights_[0])
        return np.mean(distance < np.sqrt(chi2.ppf(LEVEL, df=1)) * sd)

    def held_by_regions(self, method):
        """For either cluster, the fraction of the Gibbs draws whose mean lies in its region."""
        held = []
        for k, covariance in enumerate(self.mean_covariances(method)):
            off = self.gibbs[1][:, k, :2] - self.mixture.means_[k, :2]
            squared_distance = np.sum(off * np.linalg.solve(covariance[:2, :2], off.T).T, axis=1)
            held.append(np.mean(squared_distance < chi2.ppf(LEVEL, df=2)))
        return held


# The exact posterior, by Gibbs sampling from the optimum, so that the two components keep their numbers.


def gibbs_draws(mixture, rows, n_draws):
    """Draws of the weights (S, 2) and of the means (S, 2, P), under the mixture's own prior."""
    rng = np.random.default_rng(0)
    assignment, precisions = mixture.predict(rows), list(mixture.precisions_)
    kept_weights, kept_means = [], []
    n_discarded = n_draws // 10
    for draw in range(n_draws + n_discarded):
        members = [rows[assignment == k] for k in range(2)]
        weights = rng.dirichlet(mixture.weight_concentration_prior_ + np.array([len(own) for own in members]))
        means = []
        for k, own in enumerate(members):
            means.append(drawn_mean(mixture, own, precisions[k], rng))
            precisions[k] = drawn_precision(mixture, own, means[k], rng)
        log_densities = [log_normal(rows, *pair) for pair in zip(means, precisions, strict=True)]
        log_odds = np.subtract(*log_densities[::-1]) + np.log(weights[1] / weights[0])
        assignment = (rng.logistic(size=len(rows)) < log_odds).astype(int)
        if draw >= n_discarded:
            kept_weights.append(weights)
            kept_means.append(means)
    return np.array(kept_weights), np.array(kept_means)


def drawn_mean(mixture, own, precision, rng):
    """A draw of a component's mean, given its rows and its precision matrix."""
    prior_rows = mixture.mean_precision_prior_
    n_effective = prior_rows + len(own)
    centre = (prior_rows * mixture.mean_prior_ + own.sum(axis=0)) / n_effective
    root = np.linalg.cholesky(n_effective * precision)
    return centre + np.linalg.solve(root.T, rng.normal(size=len(centre)))


def drawn_precision(mixture, own, mean, rng):
    """A draw of a component's precision matrix, given its rows and its mean."""
    prior_rows = mixture.mean_precision_prior_
    off, prior_off = own - mean, mean - mixture.mean_prior_
    scatter = mixture.covariance_prior_ + off.T @ off + prior_rows * np.outer(prior_off, prior_off)
    # The conjugate prior of the mean depends on the precision, which counts as one more row.
    degrees_of_freedom = mixture.degrees_of_freedom_prior_ + len(own) + (prior_rows > 0)
    return wishart.rvs(degrees_of_freedom, np.linalg.inv(scatter), random_state=rng)


def log_normal(rows, mean, precision):
    """Log density of a normal distribution in every row, up to a constant: (n,)."""
    whitened = (rows - mean) @ np.linalg.cholesky(precision)
    return 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * np.sum(whitened**2, axis=1)


# Report.


def report(study):
    """Print what was fitted, how sure the answer is, and which digits it depends on."""
    report_fit(study)
    report_standard_deviations(study)
    report_check(study)
    report_influence(study)


def report_fit(study):
    """Print the data, the clusters, and how many digits lie in the cluster of their label."""
    digits, mixture, table = study.digits, study.mixture, study.test_table
    what = " and ".join(digits.names)
    print(f"{len(digits.train):,} {what} of {digits.source}, without their labels: a mixture of")
    print(f"two Gaussians in {mixture.n_features_in_} principal components sorts them into two clusters.\n")
    print(f"{'cluster':<16}{'share of the digits':<24}digits with that label")
    for k, name in enumerate(study.clusters):
        share = f"{mixture.weights_[k]:.3f} +- {mixture.weights_std_[k]:.3f}"
        print(f"{name:<16}{share:<24}{table[k].max()} of {table[k].sum()}")
    n_wrong, n_digits = table.min(axis=1).sum(), table.sum()
    whose = "" if digits.test is digits.train else "test "
    print(f"error {n_wrong / n_digits:.4f}: {n_wrong} of {n_digits} {whose}digits are in the wrong cluster\n")


def report_standard_deviations(study):
    """Print how much too small the error bars of mean field are, by LRVB."""
    print("How sure is this? Error bars (posterior standard deviations) by linear response, LRVB, against")
    print("those of mean field, which BayesianGaussianMixture fits and which takes every cluster as known:")
    print(f"    {'':<14}{'number':>8}{'LRVB / mean field: median':>28}{'largest':>10}")
    for target, name in PARAMETERS.items():
        ratio = study.lrvb_sd[target] / study.standard_deviations(target, "mean_field")
        print(f"    {name:<14}{len(ratio):>8}{np.median(ratio):>28.2f}{ratio.max():>10.2f}")


def report_check(study):
    """Print what fraction of draws from the exact posterior either method's 95 % regions hold."""
    n_draws, seconds = len(study.gibbs[0]), study.gibbs[2]
    print(
        "\nWhich is right? Gibbs sampling draws from the exact posterior, slowly. A 95 % region should hold"
    )
    print(f"95 % of the draws; of {n_draws:,} these hold:")
    print(f"    {'':<26}{'LRVB':>8}{'mean field':>14}")
    held = {method: study.held_by_regions(method) for method in METHODS}
    rows = [(f"mean of the {name}", *(held[m][k] for m in METHODS)) for k, name in enumerate(study.clusters)]
    rows.append(("share", *(study.held_by_interval(method) for method in METHODS)))
    for name, lrvb, mean_field in rows:
        print(f"    {name:<26}{100 * lrvb:>6.0f} %{100 * mean_field:>12.0f} %")
    print(f"    Gibbs took {seconds:.1f} s; the fit {study.fit_seconds:.3f} s, and its error bars with the")
    print(f"    influence of every digit another {study.answer_seconds:.3f} s.\n")


def report_influence(study):
    """Print the digits on which the answer depends most, and how many are doubtful."""
    print("Which digits drive it? Leaving out one digit moves a mean by this many of its error bars:")
    print(f"    {'digit':<10}{'label':<9}{'cluster':<20}{'from the one fit':>17}{'refitted without it':>22}")
    for row in study.most_influential:
        label = DIGIT_NAMES[study.digits.train_labels[row]]
        cluster = f"{study.clusters[study.assignment[row]]} ({100 * study.certainty[row]:.0f} %)"
        predicted, refitted = study.shifts[row], study.refitted_shift(row)
        print(f"    {row:<10}{label:<9}{cluster:<20}{predicted:>17.2f}{refitted:>22.2f}")
    print(f"    {'the median digit':<39}{np.median(study.shifts):>17.2f}")
    doubtful = study.doubtful
    n_wrong = np.sum(study.cluster_digits[study.assignment] != study.digits.train_labels)
    in_doubt = study.cluster_digits[study.assignment[doubtful]] != study.digits.train_labels[doubtful]
    chance = f"{100 * CERTAIN:.0f} %"
    print(f"\nWhich are doubtful? For {len(doubtful)} digits neither cluster has {chance} probability. Among")
    print(f"them are {in_doubt.sum()} of the {n_wrong} digits that are in the wrong cluster.")


# Figure.


def draw(study):
    """The clusters, the regions of their means, and the digits that are doubtful or drive the answer."""
    figure = plt.figure(figsize=(12, 9.6), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.08)
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.45, 1])
    left, right = top.subfigures(1, 2, width_ratios=[1.2, 1])
    draw_clusters(left, study)
    draw_means(right, study)
    doubtful, influential = bottom.subfigures(2, 1)
    draw_images(doubtful, study, study.doubtful[:N_SHOWN], probability_of)
    title = f"(c) Doubtful: {len(study.doubtful)} digits for which neither cluster has {100 * CERTAIN:.0f} %"
    head(doubtful, title)
    draw_images(influential, study, study.most_influential, shift_of)
    head(influential, "(d) Driving the answer: how far leaving the digit out moves a mean, in error bars")
    return figure


def head(panel, title):
    """Title of a panel, flush left."""
    panel.suptitle(title, x=0.01, ha="left", fontsize="large", fontweight="bold")


def draw_clusters(panel, study):
    """The digits in the plane of the first two principal components, the doubtful ones outlined."""
    ax = panel.subplots()
    shown = np.random.default_rng(0).permutation(len(study.rows))[:N_DOTS]
    points, assignment = study.rows[shown, :2], study.assignment[shown]
    for k, name in enumerate(study.clusters):
        style = {"color": CLUSTER_COLOURS[k], "marker": CLUSTER_MARKERS[k], "linewidths": 0}
        ax.scatter(*points[assignment == k].T, s=26, alpha=0.75, label=f"cluster of the {name}", **style)
    rings = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.1}
    ax.scatter(*points[study.certainty[shown] < CERTAIN].T, s=70, label="doubtful", **rings)
    for k, covariance in enumerate(study.mixture.covariances_):
        style = {"edgecolor": CLUSTER_COLOURS[k], "linewidth": 1.5}
        ax.add_patch(region(study.mixture.means_[k], covariance, **style))
        ax.plot(*study.mixture.means_[k, :2], marker="+", color="black", markersize=14, markeredgewidth=2.5)
    ax.set(xlabel="first principal component", ylabel="second principal component")
    ax.legend(loc="best", framealpha=0.9)
    head(panel, f"(a) {len(study.rows):,} digits, no labels: two clusters")


def region(mean, covariance, **style):
    """The ellipse that holds a normal vector's first two coordinates with probability `LEVEL`."""
    variances, axes = np.linalg.eigh(covariance[:2, :2])
    height, width = 2 * np.sqrt(chi2.ppf(LEVEL, df=2) * variances)
    angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    return Ellipse(mean[:2], width, height, angle=angle, fill=False, **style)


def draw_means(panel, study):
    """For either cluster, the 95 % regions of its mean by both methods, and Gibbs draws of it."""
    axes = panel.subplots(2, 1)
    held = {method: study.held_by_regions(method) for method in METHODS}
    for k, (ax, name) in enumerate(zip(axes, study.clusters, strict=True)):
        draws = study.gibbs[1][-N_DOTS:, k, :2]
        ax.scatter(*draws.T, s=7, color="0.6", linewidths=0, label="exact posterior\n(Gibbs draws)")
        for method, title in METHODS.items():
            covariance = study.mean_covariances(method)[k]
            label = f"{title}\nholds {100 * held[method][k]:.0f} %"
            ax.add_patch(region(study.mixture.means_[k], covariance, label=label, **METHOD_LINES[method]))
        ax.set_title(f"mean of the {name}", loc="left", fontsize="medium")
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, labelspacing=1.2)
    head(panel, "(b) How sure? 95 % regions of the means")


def draw_images(panel, study, rows, caption):
    """Images of some digits in a line, framed in the colour of their cluster."""
    axes = panel.subplots(1, N_SHOWN)
    for ax in axes:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    for ax, row in zip(axes, rows, strict=False):
        image = study.digits.train[row]
        side = round(len(image) ** 0.5)
        ax.imshow(image.reshape(side, side), cmap="gray_r")
        ax.spines[:].set(visible=True, color=CLUSTER_COLOURS[study.assignment[row]], linewidth=2.5)
        ax.set_xlabel(f"label {study.digits.train_labels[row]}\n{caption(study, row)}")


def probability_of(study, row):
    """The probability of each cluster, in words."""
    pairs = zip(study.cluster_digits, study.probabilities[row], strict=True)
    return ", ".join(f"{digit}: {100 * probability:.0f} %" for digit, probability in pairs)


def shift_of(study, row):
    """What leaving the digit out does, in words."""
    return f"{study.shifts[row]:.2f} error bars"


def parse_arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--mnist", type=Path, help=".npz with X_train, y_train, X_test, y_test")
    source.add_argument("--openml", action="store_true", help="download MNIST from OpenML")
    parser.add_argument("--paper-features", type=Path, help=".npz with pixel_mean, components")
    parser.add_argument("--output", type=Path, default=Path("mnist_pca_pipeline.png"))
    parser.add_argument("--show", action="store_true", help="open a window, too")
    arguments = parser.parse_args()
    if arguments.paper_features is not None and arguments.mnist is None and not arguments.openml:
        parser.error("--paper-features is a projection of MNIST's pixels: add --mnist or --openml")
    return arguments


def main():
    """Fit, print, draw."""
    arguments = parse_arguments()
    if not arguments.show:
        plt.switch_backend("Agg")
    digits = load(arguments)
    study = Study(digits, build_pipeline(digits, arguments.paper_features))
    report(study)
    draw(study).savefig(arguments.output, dpi=100)
    print(f"\nfigure: {arguments.output}")
    if arguments.show:
        plt.show()


if __name__ == "__main__":
    main()
