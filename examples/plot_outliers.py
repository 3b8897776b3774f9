"""
==================================================================
Which rows are outliers, and on which of them does the fit depend?
==================================================================

12 outliers are planted far from two clusters and 12 between them, and 12 other digits among 360 zeros and
ones in eight principal components. Rows of low density are outliers; rows of high leverage are those on
which the fit depends. The leverage of a row is how much the row raises its own score. To first order it is
also the squared distance by which the whole posterior mean moves without the row, in posterior standard
deviations.

What to see. Leverage detects outliers no better than density does: equally well far away, a little better
between clusters, a little worse among digits. In (b) each component is a curve, zeros to the left and ones
to the right: the component of the ones has the larger volume, so a one is some four nats less probable than
a zero of the same leverage, and most planted digits are assigned to the ones. What leverage adds is the
consequence. Over refits without one digit it ranks almost perfectly how far the posterior moves; density
does not. As a first-order measure it underestimates the largest moves: without the first digit the posterior
moves by 2.3 standard deviations, not 1.9.

The labels are used only to count what is found. The outliers take part in the fit that judges them: enough
of them form a component of their own, and then neither measure finds them. All refits have the prior of the
full fit, and start from its responsibilities.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

from sklearn_lrvb import LRVBGaussianMixture

N_PLANTED = 12  # outliers of each kind
N_REPEATS = 10  # data sets over which detection is averaged
N_FEATURES = 8
N_REFITS = 36
N_SHOWN = 10
ORDINARY, PLANTED, BETWEEN = "#56B4E9", "#D55E00", "#CC79A7"


def mixture(X, **start):
    """A mixture of two with a prior that is the same for all refits."""
    return LRVBGaussianMixture(
        n_components=2,
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=1.0,
        mean_prior=X.mean(axis=0),
        covariance_prior=np.cov(X.T),
        max_iter=1000,
        random_state=0,
        **start,
    )


def clusters(seed):
    """Two clusters (0) with outliers far away (1) and between them (2): rows (n, 2), kinds (n,)."""
    random = np.random.default_rng(seed)
    large = random.normal(size=(300, 2))
    small = random.normal([7.0, 0.0], 0.7, size=(60, 2))
    angle, radius = random.uniform(0, 2 * np.pi, N_PLANTED), random.uniform(4.5, 6.0, N_PLANTED)
    far = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    between = np.column_stack([random.uniform(2.8, 5.2, N_PLANTED), random.normal(0, 0.6, N_PLANTED)])
    return np.vstack([large, small, far, between]), np.repeat([0, 1, 2], [360, N_PLANTED, N_PLANTED])


def digits(seed):
    """Zeros and ones (0) with other digits among them (1): images (n, 64), kinds (n,)."""
    images, labels = load_digits(return_X_y=True)
    ordinary, others = np.flatnonzero(labels < 2), np.flatnonzero(labels > 1)
    planted = np.random.default_rng(seed).choice(others, N_PLANTED, replace=False)
    return images[np.concatenate([ordinary, planted])] / 16, np.repeat([0, 1], [len(ordinary), N_PLANTED])


class Ranking:
    """A fit with the two measures of its rows: leverage, and minus the log density."""

    def __init__(self, X, kinds):
        self.X, self.kinds = X, kinds
        self.fit = mixture(X, n_init=2).fit(X)
        self.measures = {"leverage": self.fit.leverage(X), "low density": -self.fit.score_samples(X)}

    def detection(self, kind):
        """ROC AUC and precision among the first N_PLANTED, of both measures: (2, 2)."""
        rows = np.flatnonzero(np.isin(self.kinds, (0, kind)))
        planted = self.kinds[rows] == kind
        return [
            (roc_auc_score(planted, m[rows]), planted[np.argsort(-m[rows])[:N_PLANTED]].mean())
            for m in self.measures.values()
        ]

    def order(self, measure):
        """Rows in descending order of the measure."""
        return np.argsort(-self.measures[measure], kind="stable")

    def moves(self, rows):
        """Moves of the posterior mean without each row, predicted and refitted: (n, D) in posterior sds."""
        fit, sd = self.fit, self.fit.posterior_std_
        responsibilities = fit.predict_proba(self.X)
        refitted = []
        for row in rows:
            kept = np.delete(np.arange(len(self.X)), row)
            refit = mixture(self.X, init_params=responsibilities[kept]).fit(self.X[kept])
            refitted.append((refit.posterior_mean_ - fit.posterior_mean_) / sd)
        return predicted_moves(fit, self.X[rows]) / sd, np.array(refitted)


def predicted_moves(fit, X):
    """Minus the weight influence on log weights, means and precisions, as in `posterior_mean_`: (n, D)."""
    upper = np.triu_indices(fit.n_features_in_)
    precisions = fit.influence(X, "precisions", perturb="weight")[:, :, *upper]
    parts = [fit.influence(X, target, perturb="weight") for target in ("log_weights", "means")]
    return -np.concatenate([part.reshape(len(X), -1) for part in (*parts, precisions)], axis=1)


def length(moves, fit):
    """Mahalanobis length of moves (n, D), in posterior sds: (n,)."""
    sd = fit.posterior_std_
    correlation = fit.posterior_covariance_ / np.outer(sd, sd)
    return np.sqrt(np.einsum("nd,nd->n", moves, np.linalg.solve(correlation, moves.T).T))


class Refits:
    """What leaving single digits out does: those of the largest leverage, and others at random."""

    def __init__(self, ranking):
        random = np.random.default_rng(0)
        first, others = np.split(ranking.order("leverage"), [N_REFITS // 2])
        self.ranking = ranking
        self.rows = np.concatenate([first, random.choice(others, N_REFITS // 2, replace=False)])
        self.predicted, self.refitted = ranking.moves(self.rows)
        self.lengths = length(self.refitted, ranking.fit)


def report_detection(title, detections):
    """Print AUC and precision of both measures, over repeated data sets: detections (n, 2, 2)."""
    mean = np.mean(detections, axis=0)
    error = np.std(detections, axis=0, ddof=1) / np.sqrt(len(detections))
    for measure, m, e in zip(("leverage", "low density"), mean, error, strict=True):
        cells = "".join(f"{f'{a:.3f} +- {b:.3f}':>18}" for a, b in zip(m, e, strict=True))
        print(f"{title:<28}{measure:<12}{cells}")
        title = ""


def report_gap(detections):
    """Print how much the AUC of leverage is above that of density, paired."""
    gap = np.array(detections)[:, 0, 0] - np.array(detections)[:, 1, 0]
    print(f"{'':<28}{'difference':<12}{gap.mean():>+8.3f} +- {gap.std(ddof=1) / np.sqrt(len(gap)):.3f}")


def report(refits):
    """Print how well planted rows are found, and on which rows the posterior depends."""
    print(f"{N_PLANTED} planted rows of a kind, {N_REPEATS} data sets")
    print(f"{'':<40}{'ROC AUC':>18}{f'precision at {N_PLANTED}':>18}")
    simulated = [Ranking(*clusters(seed)) for seed in range(N_REPEATS)]
    found = {
        f"clusters, {name}": [r.detection(k) for r in simulated] for k, name in ((1, "far"), (2, "between"))
    }
    found["digits, other digits"] = [digit_ranking(seed).detection(1) for seed in range(N_REPEATS)]
    for title, detections in found.items():
        report_detection(title, detections)
        report_gap(detections)
    ranking, lengths = refits.ranking, refits.lengths
    print(
        f"\nhow far the posterior mean moves without a digit ({len(lengths)} refits), rank correlation with"
    )
    for name, measure in ranking.measures.items():
        print(f"  {name:<12}{spearmanr(lengths, measure[refits.rows]).statistic:.3f}")
    print(f"  it moves by 1 sd or more without {(lengths > 1).sum()} of them")
    report_first(refits)


def report_first(refits):
    """Print what moves without the digit of largest leverage."""
    fit = refits.ranking.fit
    print("\nwithout the digit of the largest leverage, in posterior sds: predicted, refitted")
    length_predicted = length(refits.predicted[:1], fit)[0]
    print(f"  {'all parameters together':<44}{length_predicted:>8.2f}{refits.lengths[0]:>8.2f}")
    for entry in np.argsort(-np.abs(refits.refitted[0]))[:4]:
        mean, sd = fit.posterior_mean_[entry], fit.posterior_std_[entry]
        name = f"{fit.posterior_names_[entry]} = {mean:.2f} +- {sd:.2f}"
        print(f"  {name:<44}{refits.predicted[0, entry]:>+8.2f}{refits.refitted[0, entry]:>+8.2f}")


def digit_ranking(seed):
    """The mixture of the digits' principal components."""
    images, kinds = digits(seed)
    return Ranking(PCA(N_FEATURES, random_state=0).fit_transform(images), kinds)


def draw_clusters(ax, ranking):
    """The plane, with points as large as their leverage."""
    styles = (("ordinary", "o", ORDINARY), ("planted far", "^", PLANTED), ("planted between", "s", BETWEEN))
    for kind, (name, marker, color) in enumerate(styles):
        rows = ranking.kinds == kind
        size = 8 + 220 * ranking.measures["leverage"][rows]
        edge = {"edgecolors": "black", "linewidths": 0.4}
        ax.scatter(*ranking.X[rows].T, s=size, marker=marker, color=color, alpha=0.8, **edge)
        ax.scatter([], [], s=40, marker=marker, color=color, label=name, **edge)
    ax.set(xlabel="x0", ylabel="x1", aspect="equal", title="(a) Clusters: area grows with leverage")
    ax.set_ylim(top=10.5)
    ax.legend(frameon=False, ncols=2, loc="upper left")


def scatter_digits(ax, kinds, x, y):
    """Ordinary and planted digits."""
    for kind, (name, marker, color) in enumerate((("zeros, ones", "o", ORDINARY), ("planted", "^", PLANTED))):
        chosen = kinds == kind
        style = {"s": 26, "marker": marker, "color": color, "edgecolors": "black", "linewidths": 0.3}
        ax.scatter(x[chosen], y[chosen], label=name, alpha=0.9, **style)


def draw_measures(ax, ranking):
    """Leverage against density."""
    measures = ranking.measures
    scatter_digits(ax, ranking.kinds, measures["low density"], measures["leverage"])
    ax.set(yscale="log", xlabel="low density: minus log density, nats", ylabel="leverage, nats")
    ax.set_title("(b) Digits: as improbable, not as influential")
    ax.legend(frameon=False, loc="lower right")


def draw_moves(ax, refits):
    """Moves of the posterior by refitting against the root of the leverage."""
    root = np.sqrt(refits.ranking.measures["leverage"][refits.rows])
    scatter_digits(ax, refits.ranking.kinds[refits.rows], root, refits.lengths)
    ax.axline((1, 1), slope=1, color="black", lw=0.8, zorder=0)
    ax.set(xlim=(0, None), ylim=(0, None), xlabel="root of the leverage")
    ax.set_ylabel("move by refitting, posterior sds")
    ax.set_title("(c) How far the posterior moves without it")


def draw_digits(panel, images, ranking, measure, title):
    """The most conspicuous digits, planted ones framed in their colour."""
    panel.suptitle(title, x=0.01, ha="left")
    for ax, row in zip(panel.subplots(1, N_SHOWN), ranking.order(measure), strict=False):
        ax.imshow(images[row].reshape(8, 8), cmap="gray_r")
        planted = ranking.kinds[row] == 1
        ax.spines[:].set(color=PLANTED if planted else ORDINARY, linewidth=3)
        ax.set(xticks=[], yticks=[])
        ax.set_xlabel("planted" if planted else "", color="black", fontsize="small")


def draw(refits):
    """Clusters, digits, refits, and the digits themselves."""
    figure = Figure(figsize=(13.0, 7.6), layout="constrained")
    above, *strips = figure.subfigures(3, 1, height_ratios=[2.6, 1, 1])
    left, middle, right = above.subplots(1, 3)
    draw_clusters(left, Ranking(*clusters(0)))
    draw_measures(middle, refits.ranking)
    draw_moves(right, refits)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    images, _ = digits(0)
    titles = ("(d) The digits of the largest leverage", "(e) The digits of the lowest density")
    for strip, measure, title in zip(strips, refits.ranking.measures, titles, strict=True):
        draw_digits(strip, images, refits.ranking, measure, title)
    return figure


def main():
    """Fit, rank, refit, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--output", type=Path, default=Path("outliers.png"))
    output = parser.parse_args().output
    refits = Refits(digit_ranking(0))
    report(refits)
    draw(refits).savefig(output, dpi=95)
    print(f"figure: {output}")


if __name__ == "__main__":
    main()
