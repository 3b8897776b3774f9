"""Fits to the zeros and ones of MNIST, their errors and times, and a comparison with the published posterior.

A mixture of two components is fitted to four sets of features: the paper's, whose program read the pixels as
signed bytes; principal components (two numbers of them) of the training digits, with the grey levels read
rightly; and all pixels. It is fitted by the paper's model (flat prior, independent factors) and by our
defaults. Features are made before the clock starts; k-means is part of the fit. The standard deviations are
compared with the published posterior where that is given.
"""

import dataclasses

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA

from benchmarks.analysis.published_posterior import PUBLISHED, comparison, same_table
from benchmarks.harness.inside import lrvb_std, mean_field_std
from benchmarks.harness.measuring import summary
from benchmarks.problems.digits import paper_features, zeros_and_ones
from benchmarks.problems.stored import stored_arrays
from sklearn_lrvb import LRVBGaussianMixture

PAPER_FEATURES = "the paper's features"
N_COMPONENTS = 2
_PAPER_MODEL = {"prior": "flat", "factorization": "independent", "reg_covar": 0.0}
MODELS = {"paper": _PAPER_MODEL, "defaults": {"prior": "fixed"}}
_N_FEATURES = (25, 100)
_N_FEATURES_QUICKLY = (5, 10)
_MOST_STEPS = 300
_MOST_UNKNOWNS = 14_000  # with which precisions still have standard deviations
_MOST_BYTES = 4e9  # of an array of influence that is still formed


@dataclasses.dataclass(frozen=True)
class Features:
    """Training and test digits in some features, and the models to fit to them.

    Attributes
    ----------
    name : str
    train, test : (n, n_features)
    models : names of `MODELS`
    """

    name: str
    train: np.ndarray
    test: np.ndarray
    models: tuple = tuple(MODELS)


def measure(settings):
    """Yield a row for every set of features and model, and for every group of the published posterior."""
    digits = zeros_and_ones(settings.mnist, settings.quick)
    lacking = _lacking(digits, settings)
    if lacking:
        what = "the published posterior is" if lacking == ["--published"] else "the paper's features are"
        options = ", ".join(lacking)
        print(f"paper_mnist: {what} left out, and what is compared with it; give {options}", flush=True)
    for features in _all_features(digits, settings):
        for model in features.models:
            study = _Study(features.train, model, settings)
            times = study.times()
            tables = study.tables(features, digits)
            yield {
                "problem": features.name if model == "paper" else f"{features.name}, our defaults",
                "n_samples": len(features.train),
                "n_features": features.train.shape[1],
                "n_components": N_COMPONENTS,
                **times,
                **study.fit_columns(),
                **_table_columns(**tables),
            }
            if settings.published and (features.name, model) == (PAPER_FEATURES, "paper"):
                yield from _beside_published(settings.published, study.mixture, tables["test"])


def _lacking(digits, settings):
    """Options that would give more to compare."""
    there = {
        "--mnist": digits.of_mnist,
        "--pca": settings.pca,
        "--published": settings.published,
    }
    return [option for option, value in there.items() if not value]


def _all_features(digits, settings):
    """Yield features of the digits, those of the paper only where its digits and projection are given."""
    n_pixels = digits.train.shape[1]
    prefix = "" if digits.of_mnist else f"{n_pixels} pixels, "
    if digits.of_mnist and settings.pca:
        yield Features(PAPER_FEATURES, *paper_features(digits, settings.pca))
    for n_features in _N_FEATURES_QUICKLY if settings.quick else _N_FEATURES:
        if n_features < n_pixels:
            pca = PCA(n_features, random_state=0).fit(digits.train)
            train, test = pca.transform(digits.train), pca.transform(digits.test)
            yield Features(f"{prefix}P = {n_features}", train, test)
    if digits.of_mnist and not settings.quick:
        # Pixels at the edge are constant, which needs a proper prior and the default noise.
        yield Features("raw pixels", digits.train, digits.test, ("defaults",))


class _Study:
    """One fit, and the questions that it is asked in turn.

    Parameters
    ----------
    X : (n_samples, n_features)
    model : name in `MODELS`
    settings : Settings
    """

    def __init__(self, X, model, settings):
        self._X = X
        self._settings = settings
        self._unfitted = LRVBGaussianMixture(
            n_components=N_COMPONENTS,
            max_iter=_MOST_STEPS,
            random_state=0,
            n_jobs=settings.threads,
            **MODELS[model],
        )
        n_features = X.shape[1]
        n_unknowns = N_COMPONENTS * (1 + n_features + n_features * (n_features + 1) // 2)
        self._groups = ("log_weights", "means") + ("precisions",) * (n_unknowns <= _MOST_UNKNOWNS)

    def times(self):
        """Seconds of the fit and of every question to it, asked once in a round as the answers are cached."""
        calls = {
            "fit": self._fit,
            "covariance": self._ask_standard_deviations,
        }
        if self._influence_bytes("means") <= _MOST_BYTES:
            calls["influence"] = lambda: self._ask_influence("means", "log_weights")
        if self._influence_bytes("precisions") <= _MOST_BYTES:
            calls["precisions_influence"] = lambda: self._ask_influence("precisions")
        clock = dataclasses.replace(self._settings.clock, shortest=0.0)
        return summary(clock.interleaved(calls))

    def _fit(self):
        self.mixture = clone(self._unfitted).fit(self._X)

    def _ask_standard_deviations(self):
        for group in self._groups:
            lrvb_std(self.mixture, group)

    def _ask_influence(self, *targets):
        for target in targets:
            self.mixture.influence(self._X, target=target)

    def _influence_bytes(self, target):
        """Bytes of the influence of all points on a target."""
        n_samples, n_features = self._X.shape
        entries = {"means": N_COMPONENTS * n_features, "precisions": N_COMPONENTS * n_features**2}
        return 8 * n_samples * entries[target] * n_features

    def fit_columns(self):
        """Columns about the fit, and of every group the least ratio of a mean-field sd to the LRVB sd."""
        row = {
            "iterations": self.mixture.n_iter_,
            "converged": self.mixture.converged_,
            "lower_bound": self.mixture.lower_bound_,
        }
        for group in self._groups:
            ratios = mean_field_std(self.mixture, group) / lrvb_std(self.mixture, group)
            row[f"{group}_least_ratio"] = ratios.min()
        return row

    def tables(self, features, digits):
        """Numbers of digits by component and label, of both sets: {name: (N_COMPONENTS, 2)}."""
        return {
            "train": label_table(self.mixture.predict(features.train), digits.train_labels),
            "test": label_table(self.mixture.predict(features.test), digits.test_labels),
        }


def label_table(components, labels):
    """Number of digits of every component (rows) and label (columns)."""
    table = np.zeros((N_COMPONENTS, 2), dtype=int)
    np.add.at(table, (components, labels), 1)
    return table


def error_rate(table):
    """Share of digits whose label is not that of the majority of their component.

    Both components may have the same majority.
    """
    return (table.sum() - table.max(axis=1).sum()) / table.sum()


def _table_columns(train, test):
    row = {"n_test": int(test.sum()), "test_error": error_rate(test), "train_error": error_rate(train)}
    for label, name in enumerate(("zeros", "ones")):
        row |= {f"test_{name}_{component}": int(test[component, label]) for component in range(N_COMPONENTS)}
    return row


def _beside_published(path, mixture, test_table):
    """Yield a row for every group of parameters of the published posterior."""
    published = stored_arrays(path, PUBLISHED)
    for row in comparison(published, mixture):
        yield row | {"same_test_table": same_table(published, test_table)}
