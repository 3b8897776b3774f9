"""
=========================================================================
How many components predict new rows best, if each may be fitted only once?
=========================================================================

178 wines in three principal components, without their labels. The score of a wine by a mixture that was
fitted to it is too optimistic. ``loo_score_samples`` gives its score under the fit to all other wines, from
one fit: a Newton step approximates the fit without the wine, and the wine is scored exactly there. The mean
of these scores chooses the number of components. Cross-validation answers the same question by refitting.

What to see. In sample the largest mixture wins. ``loo_score_samples`` and refits both choose three
components. Their mean scores agree to 0.002 nats per wine, those of single wines to 0.02 (with four
components to 0.12, with six not all). The choice of three over four is uncertain: the gap is less than its
standard error. To first order (score minus leverage) four would win. The fourth component has some seven
wines, and the one on which it depends most loses 4.8 nats when it is left out, while its leverage is only
2.2.

All refits are given the prior of the full fit, as the default prior would depend on the rows that are left.
They start from the full fit's responsibilities of these rows: from k-means some refits reach another optimum
(4 of 45 that were tried, with four components), and the comparison would be one of optima. Ten folds leave
out many rows at a time, and their scores are a little lower. By default the script refits ten folds, and
leaves single wines out only for three and four components, a sample chosen by leverage. To leave every wine
out once for all six candidates (a minute)::

    python plot_leave_one_out.py --folds 178
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_lrvb import LRVBGaussianMixture

N_COMPONENTS = (1, 2, 3, 4, 5, 6)
CHECKED = (3, 4)  # numbers of components with which rows are left out one by one
EVERY = 8  # unless all rows are left out, every eighth row by leverage is
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.45"


@dataclass(frozen=True)
class Candidate:
    """One number of components: its fit, and its scores of every row, (n,) each, in nats."""

    fit: LRVBGaussianMixture
    in_sample: np.ndarray
    first_order: np.ndarray
    leave_one_out: np.ndarray
    leverage: np.ndarray


def mixture(X, n_components, **start):
    """A mixture with the prior from all rows; the default of a refit would depend on the rows left."""
    return LRVBGaussianMixture(
        n_components=n_components,
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=1.0,
        mean_prior=X.mean(axis=0),
        covariance_prior=np.cov(X.T),
        max_iter=2000,
        random_state=0,
        moves=None,  # Otherwise the fit would empty surplus components down to three.
        **start,
    )


def candidate(X, n_components):
    """Fit once, and score every row as if it had been left out."""
    fit = mixture(X, n_components, n_init=2).fit(X)
    in_sample, leverage = fit.score_samples(X), fit.leverage(X)
    return Candidate(fit, in_sample, in_sample - leverage, fit.loo_score_samples(X), leverage)


def refitted(X, fit, left_out):
    """Score of the rows left out, by a refit for each of these sets, from the full fit's responsibilities."""
    responsibilities = fit.predict_proba(X)
    scores = []
    for rows in left_out:
        others = np.delete(np.arange(len(X)), rows)
        refit = mixture(X, fit.n_components, init_params=responsibilities[others]).fit(X[others])
        scores.append(refit.score_samples(X[rows]))
    return np.concatenate(scores)


def cross_validated(X, fit, n_folds):
    """Held-out score of every row by `n_folds` refits, (n,)."""
    folds = [test for _, test in KFold(n_folds, shuffle=True, random_state=0).split(X)]
    scores = np.empty(len(X))
    scores[np.concatenate(folds)] = refitted(X, fit, folds)
    return scores


def timed(call):
    """Result and seconds."""
    start = perf_counter()
    return call(), perf_counter() - start


def mean_and_error(values):
    """Mean over rows and its standard error."""
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values))


class Study:
    """All candidates by one fit each, by cross-validation, and some rows left out one by one."""

    def __init__(self, X, n_folds):
        self.X, self.n_folds = X, n_folds
        self.candidates, self.seconds = timed(lambda: {k: candidate(X, k) for k in N_COMPONENTS})
        self.cross_validated, self.refit_seconds = timed(
            lambda: {k: cross_validated(X, self.candidates[k].fit, n_folds) for k in N_COMPONENTS}
        )
        if n_folds == len(X):
            self.checked = {k: np.arange(n_folds) for k in CHECKED}
            self.left_out = {k: self.cross_validated[k] for k in CHECKED}
        else:
            self.checked = {k: np.argsort(-self.candidates[k].leverage)[::EVERY] for k in CHECKED}
            self.left_out = {
                k: refitted(X, self.candidates[k].fit, rows[:, None]) for k, rows in self.checked.items()
            }

    @property
    def refits(self):
        """Name of the cross-validation."""
        return "leave-one-out" if self.n_folds == len(self.X) else f"{self.n_folds}-fold"

    def scores(self):
        """Ways of scoring, and the score of every row by each, for each number of components."""
        return {
            "in sample": {k: c.in_sample for k, c in self.candidates.items()},
            "first order": {k: c.first_order for k, c in self.candidates.items()},
            "loo_score_samples": {k: c.leave_one_out for k, c in self.candidates.items()},
            f"{self.refits}, refitted": self.cross_validated,
        }


def choice(scores):
    """The number of components with the highest mean score."""
    return max(scores, key=lambda k: scores[k].mean())


def report(study):
    """Print candidates, choices, times, and rows left out one by one."""
    judges = study.scores()
    print("mean score of a wine, nats")
    print(f"{'components':<12}" + "".join(f"{name:>26}" for name in judges))
    for k in N_COMPONENTS:
        cells = ("{:.3f} +- {:.3f}".format(*mean_and_error(scores[k])) for scores in judges.values())
        print(f"{k:<12}" + "".join(f"{cell:>26}" for cell in cells))
    print(f"{'chosen':<12}" + "".join(f"{choice(scores):>26}" for scores in judges.values()))
    n_refits = study.n_folds * len(N_COMPONENTS)
    print(f"\nfirst three columns: {len(N_COMPONENTS)} fits, {study.seconds:.1f} s")
    print(f"last column: {n_refits} refits, {study.refit_seconds:.1f} s")
    for name in list(judges)[2:]:
        gap = mean_and_error(judges[name][4] - judges[name][3])
        print(f"four components rather than three, {name}: {gap[0]:+.3f} +- {gap[1]:.3f} per wine")
    for k in N_COMPONENTS:
        gap = mean_and_error(study.candidates[k].leave_one_out - study.cross_validated[k])
        print(f"loo_score_samples - {study.refits} refits, K = {k}: {gap[0]:+.4f} +- {gap[1]:.4f} per wine")
    for k, rows in study.checked.items():
        c, truth = study.candidates[k], study.left_out[k]
        print(
            f"{len(rows)} wines left out one by one, K = {k}: largest error of loo_score_samples "
            f"{np.abs(c.leave_one_out[rows] - truth).max():.2f} nats, to first order "
            f"{np.abs(c.first_order[rows] - truth).max():.2f}"
        )


def draw_choice(ax, study):
    """Mean score beyond that of three components, with paired standard errors."""
    styles = {
        "in sample": {"color": GREY, "fmt": "s:"},
        "first order": {"color": GREEN, "fmt": "^--"},
        "loo_score_samples": {"color": BLUE, "fmt": "o-"},
        "refitted": {"color": ORANGE, "fmt": "D-"},
    }
    seconds = dict.fromkeys(styles, study.seconds) | {"refitted": study.refit_seconds}
    for offset, (name, scores) in enumerate(study.scores().items()):
        kind = name.rsplit(", ")[-1]
        gaps, errors = zip(*(mean_and_error(scores[k] - scores[3]) for k in N_COMPONENTS), strict=True)
        x = np.array(N_COMPONENTS) + 0.07 * (offset - 1.5)
        shown = np.where(np.array(gaps) != 0, errors, np.nan)
        label = f"{name}, {seconds[kind]:.1f} s" if offset > 1 else name
        ax.errorbar(x, gaps, shown, ms=5, lw=1.3, elinewidth=0.8, capsize=2, label=label, **styles[kind])
    ax.axhline(0, color="black", lw=0.6, zorder=0)
    one = study.cross_validated[1] - study.cross_validated[3]
    ax.text(0.97, 0.04, f"K = 1: {one.mean():.2f}", transform=ax.transAxes, ha="right")
    ax.set(
        xlabel="components, K", ylabel="score beyond that of K = 3, nats per wine", xticks=N_COMPONENTS[1:]
    )
    ax.set(xlim=(1.7, 6.3))
    ax.set(ylim=(-0.27, 0.15), title="(a) In sample, more is better; left out, three")
    ax.legend(frameon=False, loc="upper left")


def draw_rows(ax, study, k, letter):
    """What leaving a row out costs its score: linear response against refits."""
    c, rows = study.candidates[k], study.checked[k]
    cost = c.in_sample[rows] - study.left_out[k]
    for name, scores, style in (
        ("first order: the leverage", c.first_order, {"marker": "^", "color": GREEN}),
        ("loo_score_samples", c.leave_one_out, {"marker": "o", "color": BLUE}),
    ):
        ax.scatter(cost, (c.in_sample - scores)[rows], s=24, alpha=0.8, linewidths=0, label=name, **style)
    ax.axline((1, 1), slope=1, color="black", lw=0.8, zorder=0)
    limits = (0.8 * cost.min(), 1.3 * cost.max())
    ax.set(xscale="log", yscale="log", xlim=limits, ylim=limits, xlabel="by refitting without it, nats")
    ax.set(ylabel="from one fit, nats", title=f"({letter}) K = {k}: what a wine's score loses without it")


def draw(study):
    """Who chooses what, and single rows."""
    figure = Figure(figsize=(14.0, 4.8), layout="constrained")
    left, *others = figure.subplots(1, 1 + len(CHECKED))
    draw_choice(left, study)
    for ax, k, letter in zip(others, CHECKED, "bc", strict=True):
        draw_rows(ax, study, k, letter)
    others[0].legend(frameon=False, loc="upper left")
    for ax in (left, *others):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    """Fit, refit, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--folds", type=int, default=10, help="178 leaves out every wine")
    parser.add_argument("--output", type=Path, default=Path("leave_one_out.png"))
    arguments = parser.parse_args()
    X = make_pipeline(StandardScaler(), PCA(3, random_state=0)).fit_transform(load_wine().data)
    study = Study(X, arguments.folds)
    report(study)
    draw(study).savefig(arguments.output, dpi=100)
    print(f"figure: {arguments.output}")


if __name__ == "__main__":
    main()
