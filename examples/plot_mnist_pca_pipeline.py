"""
=========================================================================
Handwritten zeros and ones without labels: how sure, and by which digits?
=========================================================================

Two questions to a Gaussian mixture behind a PCA. How sure is it of what it has learnt: its weights, and the
mean image of each component, pixel by pixel? And which digits are its means made of?

``make_pipeline(PCA(25), LRVBGaussianMixture(n_components=2))`` sees MNIST's zeros and ones unlabelled; the
labels only count errors afterwards, against the majority label of each component. One fit answers both
questions by linear response (LRVB), and nothing is refitted:

* the posterior covariance, beside that of mean-field theory, which knows nothing of what doubtful assignments
  cost and so has the narrower error bars;
* the influence score of a digit on a component's mean mu: the largest directional derivative of |mu|^2
  as the digit moves in feature space (Section 6.5 of the paper).

What to see. On grey levels the two groups hardly touch: mean-field's error bars are nearly right, and a
handful of doubtful digits move the means hundreds of times as much as the typical one. On the paper's
features the groups overlap and every error bar widens, that of the weights by 12 %. Digits whose own
assignment is certain also move the mean of the other component, at times more than its own digits do: they
reshape their own component, and that shifts the doubtful ones.

By default the script runs anywhere, on scikit-learn's 8 x 8 digits. On MNIST itself::

    python plot_mnist_pca_pipeline.py --openml
    python plot_mnist_pca_pipeline.py --mnist mnist01.npz
    python plot_mnist_pca_pipeline.py --mnist mnist01.npz --paper-features mnist_author_pca.npz

With grey levels the test error is 0.018. The paper's 0.08 belongs to its features, with which the last line
reproduces it: the authors' program read the pixels as signed bytes (full ink, 255, becomes -1) and projected
them on the principal components of all 60,000 training digits.
"""

import argparse
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import fetch_openml, load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_lrvb import LRVBGaussianMixture

LABELS = ("zeros", "ones")
LABEL_COLOURS = ("#0072B2", "#D55E00")
GROUPS = {"log_weight": "log weights", "mean": "means", "precision": "precisions"}
GROUP_STYLES = {
    "log_weight": {"color": "#CC79A7", "marker": "D", "s": 55, "zorder": 4},
    "mean": {"color": "#009E73", "marker": "o", "s": 22, "zorder": 3},
    "precision": {"color": "0.5", "marker": "o", "s": 14, "zorder": 2, "alpha": 0.6},
}
LOG_ODDS_CAP = 15
N_RANDOM, N_UNCERTAIN, N_MOST = 100, 20, 10


# Data.


@dataclass(frozen=True)
class Digits:
    """Zeros and ones: images (n, pixels) in [0, 1], labels (n,) in {0, 1}."""

    source: str
    n_pca: int
    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def small_digits():
    """The zeros and ones of scikit-learn's 8 x 8 digits."""
    images, labels = load_digits(n_class=2, return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(images / 16, labels, random_state=0)
    # In more than a few principal components these 270 digits part without a single doubtful one.
    return Digits("scikit-learn's 8 x 8 digits", 2, train, train_labels, test, test_labels)


def stored_mnist(path):
    """MNIST's zeros and ones from an .npz file with X_train, y_train, X_test, y_test."""
    with np.load(path) as stored:
        train, test = stored["X_train"] / 255, stored["X_test"] / 255
        return Digits(f"MNIST ({path.name})", 25, train, stored["y_train"], test, stored["y_test"])


def openml_mnist():
    """MNIST's zeros and ones from OpenML: the first 60,000 rows train, the others test."""
    images, names = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True)
    labels = names.astype(int)
    train = (labels < 2) & (np.arange(len(labels)) < 60_000)
    test = (labels < 2) & ~train
    return Digits("MNIST (OpenML)", 25, images[train] / 255, labels[train], images[test] / 255, labels[test])


def load(arguments):
    """The digits that the command line asks for."""
    if arguments.mnist is not None:
        return stored_mnist(arguments.mnist)
    return openml_mnist() if arguments.openml else small_digits()


# Model.


def paper_features(path):
    """The paper's features: pixels as signed bytes, centred and projected as stored in an .npz file."""
    with np.load(path) as stored:
        pixel_mean, components = stored["pixel_mean"], stored["components"]

    def project(images):
        signed = np.rint(255 * images).astype(np.uint8).view(np.int8)
        return (signed - pixel_mean) @ components.T

    def reconstruct(features):
        return features @ components + pixel_mean

    return FunctionTransformer(project, reconstruct, check_inverse=False)


def build_pipeline(digits, features_path):
    """PCA and mixture; with `features_path` the paper's features and the paper's model."""
    if features_path is None:
        return make_pipeline(PCA(digits.n_pca), LRVBGaussianMixture(n_components=2, random_state=0))
    mixture = LRVBGaussianMixture(
        n_components=2, prior="flat", factorization="independent", reg_covar=0, random_state=0
    )
    return make_pipeline(paper_features(features_path), mixture)


class Study:
    """A fitted pipeline and all that is asked of it; the slow answers are timed in `seconds`."""

    def __init__(self, digits, pipeline, pixel_unit):
        self.digits = digits
        self.pixel_unit = pixel_unit
        self.seconds = {}
        self.pipeline = self._timed("fit", lambda: pipeline.fit(digits.train))
        self.features, self.mixture = pipeline[:-1], pipeline[-1]
        rows = self.features.transform(digits.train)
        self.responsibilities = self.mixture.predict_proba(rows)
        covariance = self._timed("covariance", lambda: self.mixture.posterior_covariance_)
        self.scores = self._timed("influence", lambda: self.mixture.influence_scores(rows))
        self.lrvb_sd = np.sqrt(np.diag(covariance))
        self.mean_field_sd = np.sqrt(np.diag(self.mixture.get_posterior_covariance(method="mean_field")))
        self.group = np.array([name.split("[")[0] for name in self.mixture.posterior_names_])

    def _timed(self, name, call):
        start = perf_counter()
        result = call()
        self.seconds[name] = perf_counter() - start
        return result

    @cached_property
    def test_table(self):
        """Test digits by component (rows) and label (columns)."""
        table = np.zeros((2, 2), dtype=int)
        np.add.at(table, (self.pipeline.predict(self.digits.test), self.digits.test_labels), 1)
        return table

    @property
    def component_names(self):
        """Components called by their majority label."""
        return [f"component {k} (mostly {LABELS[row.argmax()]})" for k, row in enumerate(self.test_table)]

    @property
    def ratio(self):
        """LRVB over mean-field standard deviation of every parameter."""
        return self.lrvb_sd / self.mean_field_sd

    @property
    def largest_scores(self):
        """Score of every training row on the mean that it moves more."""
        return self.scores.max(axis=1)

    @property
    def most_influential(self):
        """Training rows by descending score on the mean that they move more."""
        return np.argsort(-self.largest_scores, kind="stable")[:N_MOST]

    @property
    def most_uncertain(self):
        """Training rows with the least certain assignment."""
        return np.argsort(self.responsibilities.max(axis=1), kind="stable")[:N_UNCERTAIN]

    @property
    def log_odds(self):
        """Log-odds of either component; the tiniest number stands for responsibilities that underflow."""
        log = np.log(np.clip(self.responsibilities, np.finfo(float).tiny, None))
        return log - log[:, ::-1]

    @property
    def mean_images(self):
        """The two posterior means as images, (2, pixels)."""
        return self.features.inverse_transform(self.mixture.means_)

    def mean_image_sd(self, method):
        """Posterior standard deviation of every pixel of the two mean images, (2, pixels)."""
        n_features = self.mixture.n_features_in_
        corners = self.features.inverse_transform(np.eye(n_features))
        pixels_per_feature = corners - self.features.inverse_transform(np.zeros((1, n_features)))
        covariance = self.mixture.get_posterior_covariance("means", method=method)
        blocks = covariance.reshape(2, n_features, 2, n_features)
        # Through a root the variance of a pixel that is never inked cannot come out negative.
        roots = [np.linalg.cholesky(blocks[k, :, k]) for k in range(2)]
        return np.array([np.linalg.norm(root.T @ pixels_per_feature, axis=0) for root in roots])


# Report.


def report(study):
    """Print data, errors, weights, standard deviations, times and the most influential digits."""
    report_fit(study)
    report_standard_deviations(study)
    report_influence(study)


def report_fit(study):
    """Print data, confusion table, test error and weights with error bars."""
    digits, mixture, table = study.digits, study.mixture, study.test_table
    print(f"{digits.source}: training {digits.train.shape}, test {digits.test.shape}, zeros and ones")
    print(
        f"two Gaussians in {mixture.n_features_in_} features of the pixels as {study.pixel_unit}s, "
        f"fitted in {mixture.n_iter_} steps\n"
    )
    print(f"{'test digits':<28}{LABELS[0]:>8}{LABELS[1]:>8}     weight")
    rows = zip(study.component_names, table, mixture.weights_, mixture.weights_std_, strict=True)
    for name, row, weight, sd in rows:
        print(f"{name:<28}{row[0]:>8}{row[1]:>8}     {weight:.4f} +- {sd:.4f}")
    n_wrong = table.min(axis=1).sum()
    print(f"test error {n_wrong / table.sum():.4f} by majority label ({n_wrong} of {table.sum()})\n")


def report_standard_deviations(study):
    """Print LRVB over mean-field standard deviations by group, and the times."""
    print(f"{'LRVB sd / mean-field sd':<28}{'number':>8}{'median':>8}{'max':>8}")
    for group, title in GROUPS.items():
        ratio = study.ratio[study.group == group]
        print(f"{title:<28}{len(ratio):>8}{np.median(ratio):>8.4f}{ratio.max():>8.4f}")
    seconds = study.seconds
    print(f"\nfeatures and fit {seconds['fit']:.2f} s")
    print(f"covariance of {len(study.ratio)} parameters {seconds['covariance']:.3f} s")
    print(f"influence of {len(study.scores)} digits on both means {seconds['influence']:.3f} s\n")


def report_influence(study):
    """Print the most influential digits."""
    print(f"{'most influential digits':<28}{'label':>8}{'component':>12}{'responsibility':>16}{'score':>10}")
    for row in study.most_influential:
        component = study.responsibilities[row].argmax()
        print(
            f"{'training row ' + str(row):<28}{study.digits.train_labels[row]:>8}{component:>12}"
            f"{study.responsibilities[row, component]:>16.3f}{study.largest_scores[row]:>10.4f}"
        )
    print(f"{'median of all':<28}{'':>36}{np.median(study.largest_scores):>10.4f}")


# Figure.


def draw(study):
    """All four panels."""
    figure = plt.figure(figsize=(13, 13.4), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.1, w_pad=0.08)
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=[1.3, 0.95, 0.52])
    left, right = top.subfigures(1, 2, width_ratios=[1.25, 1])
    draw_mean_images(left, study)
    draw_standard_deviations(right, study)
    draw_influence(middle, study)
    draw_most_influential(bottom, study)
    return figure


def times_median(study, score):
    """A score in multiples of the median digit's, to two significant digits, in words."""
    multiple = float(f"{score / np.median(study.largest_scores):.2g}")
    return f"{multiple:g} times as much as the median digit"


def head(panel, title):
    """Title of a panel, flush left."""
    panel.suptitle(title, x=0.01, ha="left", fontsize="large", fontweight="bold")


def as_image(pixels):
    """Square image of one row of pixels."""
    side = round(len(pixels) ** 0.5)
    return pixels.reshape(side, side)


def draw_mean_images(panel, study):
    """Mean images, their pixels' standard deviations, and what mean-field misses of these."""
    sd, mean_field_sd = study.mean_image_sd("lrvb"), study.mean_image_sd("mean_field")
    # Pixels that are never inked have no standard deviation to compare.
    inked = mean_field_sd > 0.01 * mean_field_sd.max()
    excess = np.where(inked, 100 * (sd / np.where(inked, mean_field_sd, 1.0) - 1), np.nan)
    columns = [
        ("posterior mean", study.pixel_unit, "gray_r", study.mean_images),
        ("LRVB standard deviation", study.pixel_unit, "cividis", sd),
        ("LRVB beyond mean-field", "% of mean-field sd", "magma", excess),
    ]
    axes = panel.subplots(2, 3)
    for column, (title, unit, colours, images) in zip(axes.T, columns, strict=True):
        limits = {"vmin": min(0.0, np.nanmin(images)), "vmax": np.nanmax(images)}
        for ax, image in zip(column, images, strict=True):
            shown = ax.imshow(as_image(image), cmap=colours, **limits)
            ax.set(xticks=[], yticks=[], facecolor="0.92")
        column[0].set_title(title)
        panel.colorbar(shown, ax=list(column), location="bottom", label=unit, shrink=0.9, aspect=14)
    for ax, name in zip(axes[:, 0], study.component_names, strict=True):
        ax.set_ylabel(name)
    largest = 100 * sd.max() / np.ptp(study.mean_images)
    head(panel, f"(a) Pixels of the mean images: posterior sd at most {largest:.1f} % of their range")


def draw_standard_deviations(panel, study):
    """LRVB against mean-field standard deviations, and their ratio."""
    axis, ratio_axis = panel.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    for group, title in GROUPS.items():
        chosen = study.group == group
        x = study.mean_field_sd[chosen]
        axis.scatter(x, study.lrvb_sd[chosen], label=title, linewidths=0, **GROUP_STYLES[group])
        ratio_axis.scatter(x, study.ratio[chosen], linewidths=0, **GROUP_STYLES[group])
    axis.axline((1, 1), slope=1, color="black", linewidth=0.8, zorder=1)
    ratio_axis.axhline(1, color="black", linewidth=0.8, zorder=1)
    axis.set(xscale="log", yscale="log", ylabel="LRVB sd")
    axis.legend(title="on the line: equal", alignment="left", frameon=False)
    ratio_axis.set(xlabel="mean-field sd", ylabel="LRVB / mean-field")
    excess = 100 * (study.ratio - 1)
    head(panel, f"(b) LRVB widens error bars by up to {excess.max():.0f} %, median {np.median(excess):.1f} %")


def capped(log_odds):
    """Log-odds with those beyond the cap spread over a band, else they would hide each other."""
    band = LOG_ODDS_CAP + np.random.default_rng(0).uniform(0.3, 1.7, log_odds.shape)
    return np.where(np.abs(log_odds) < LOG_ODDS_CAP, log_odds, np.sign(log_odds) * band)


def draw_influence(panel, study):
    """Scores against log-odds, of digits drawn at random and of the most uncertain."""
    drawn = np.random.default_rng(0).choice(len(study.scores), N_RANDOM, replace=False)
    chosen = (
        (drawn, {"marker": "o", "s": 26, "edgecolors": "none", "alpha": 0.75}),
        (study.most_uncertain, {"marker": "^", "s": 48, "edgecolors": "black", "linewidths": 0.6}),
    )
    log_odds = capped(study.log_odds)
    colours = np.array(LABEL_COLOURS)[study.digits.train_labels]
    axes = panel.subplots(1, 2, sharey=True)
    for k, (ax, name) in enumerate(zip(axes, study.component_names, strict=True)):
        for rows, style in chosen:
            ax.scatter(log_odds[rows, k], study.scores[rows, k], c=colours[rows], **style)
        for side in (-1, 1):
            ax.axvspan(side * LOG_ODDS_CAP, side * (LOG_ODDS_CAP + 2), color="0.92", zorder=0)
        ax.set(title=name, xlim=(-LOG_ODDS_CAP - 2, LOG_ODDS_CAP + 2))
        ax.set_xlabel(f"log-odds of component {k}, capped at ±{LOG_ODDS_CAP} (grey)")
    axes[0].set_yscale("symlog", linthresh=1e-4)
    axes[0].set_ylabel("influence score on the component's mean")
    explain(axes[0])
    multiple = times_median(study, np.median(study.largest_scores[study.most_uncertain]))
    head(panel, f"(c) The {N_UNCERTAIN} most uncertain digits move the means {multiple}")


def explain(ax):
    """Legend of colours and markers of the influence panel."""
    for colour, title in zip(LABEL_COLOURS, LABELS, strict=True):
        ax.scatter([], [], marker="s", color=colour, label=title)
    for marker, title in (("o", f"{N_RANDOM} at random"), ("^", f"{N_UNCERTAIN} most uncertain")):
        ax.scatter([], [], marker=marker, color="0.4", label=title)
    ax.legend(loc="upper left", bbox_to_anchor=(0.06, 1), frameon=False)


def draw_most_influential(panel, study):
    """Images of the most influential digits."""
    axes = panel.subplots(1, N_MOST)
    for ax, row in zip(axes, study.most_influential, strict=True):
        label = study.digits.train_labels[row]
        component = study.responsibilities[row].argmax()
        ax.imshow(as_image(study.digits.train[row]), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(color=LABEL_COLOURS[label], linewidth=2)
        ax.set_title(f"score {study.largest_scores[row]:#.2g}", fontsize="medium")
        probability = study.responsibilities[row, component]
        ax.set_xlabel(f"label {label}\ncomponent {component}\nwith {probability:.2f}")
    multiple = times_median(study, study.largest_scores.max())
    head(panel, f"(d) The most influential digit moves a mean {multiple}")


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
    pixel_unit = "grey level" if arguments.paper_features is None else "signed byte"
    study = Study(digits, build_pipeline(digits, arguments.paper_features), pixel_unit)
    report(study)
    draw(study).savefig(arguments.output, dpi=100)
    print(f"\nfigure: {arguments.output}")
    if arguments.show:
        plt.show()


if __name__ == "__main__":
    main()
