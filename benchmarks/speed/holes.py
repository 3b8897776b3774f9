"""Rows with missing values: an iteration, a fit with error bars, and the usual way, beside complete rows.

Values are missing completely at random, so that there are as many patterns as can be. The usual way
round is one of scikit-learn's imputers and then our fit to the filled rows: ``IterativeImputer``, or
``KNNImputer`` for a thousand columns, with which the other takes hours.
"""

import warnings

import numpy as np

from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import milliseconds, ratio, table, text_of
from benchmarks.problems.missing_values import completely_at_random

TITLE = "Rows with missing values"
_PROBLEMS = (
    ("few rows", 150, 4, 3, 0.1, "full", "IterativeImputer"),
    ("many rows", 10_000, 10, 3, 0.1, "full", "IterativeImputer"),
    ("many missing", 10_000, 10, 3, 0.4, "full", "IterativeImputer"),
    ("more of all", 100_000, 20, 5, 0.05, "full", "IterativeImputer"),
    ("wide", 1_000, 1_000, 5, 0.05, "diag", "KNNImputer"),
)


def measure(settings):
    """A row for every problem."""
    for name, n_samples, n_features, n_components, share, *ways in _PROBLEMS[: 1 if settings.quick else None]:
        X = _rows(n_samples, n_features, n_components)
        with_missing = completely_at_random(X, share, np.random.default_rng(1))
        yield {
            "problem": name,
            "n_samples": n_samples,
            "n_features": n_features,
            "n_components": n_components,
            "share": share,
            "n_patterns": len(np.unique(np.isnan(with_missing), axis=0)),
            "covariance_type": ways[0],
            "imputer": ways[1],
            **_times(X, with_missing, n_components, *ways, settings),
        }


def _rows(n_samples, n_features, n_components):
    """Overlapping clusters of three standard deviations, (n_samples, n_features)."""
    from sklearn.datasets import make_blobs

    return make_blobs(n_samples, n_features, centers=n_components, cluster_std=3.0, random_state=0)[0]


def _times(X, with_missing, n_components, covariance_type, imputer, settings):
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    from benchmarks.harness.inside import single_iteration
    from sklearn_lrvb import LRVBGaussianMixture

    def fitted(rows):
        mixture = LRVBGaussianMixture(
            n_components=n_components, covariance_type=covariance_type, prior="fixed", random_state=0
        ).fit(rows)
        return mixture, mixture.means_std_

    def filled():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filler = KNNImputer() if imputer == "KNNImputer" else IterativeImputer(random_state=0)
            return fitted(filler.fit_transform(with_missing))

    complete, incomplete = fitted(X)[0], fitted(with_missing)[0]
    times = settings.clock.interleaved(
        {
            "complete_sweep": single_iteration(complete, X, settings.threads),
            "holed_sweep": single_iteration(incomplete, with_missing, settings.threads),
        }
    )
    times |= settings.clock.interleaved(
        {"complete_fit": lambda: fitted(X), "holed_fit": lambda: fitted(with_missing), "filled_fit": filled}
    )
    return summary(times)


def section(found):
    shown = table(
        [
            ("problem", lambda row: row["problem"]),
            (
                "N, P, K",
                lambda row: f"{row['n_samples']:,.0f}, {row['n_features']:.0f}, {row['n_components']:.0f}",
            ),
            ("covariances", lambda row: row["covariance_type"]),
            ("missing, patterns", lambda row: f"{100 * row['share']:.0f} %, {row['n_patterns']:,.0f}"),
            ("complete iteration, ms", milliseconds("complete_sweep_seconds")),
            ("incomplete, ms", milliseconds("holed_sweep_seconds")),
            ("ratio", text_of(ratio("holed_sweep_seconds", "complete_sweep_seconds"))),
            ("complete fit, ms", milliseconds("complete_fit_seconds")),
            ("incomplete, ms", milliseconds("holed_fit_seconds")),
            ("imputed and fitted, ms", milliseconds("filled_fit_seconds")),
            ("imputer", lambda row: row["imputer"]),
        ],
        found,
    )
    return f"""Times of one iteration, and of a default fit with the standard deviations of the means.

{shown}

With "full" covariances every pattern of missing values has a projection of its own, which is computed once in
a pass, and every incomplete row is projected in all components. A fit has more to do besides: one normal
distribution completes the rows for the start, and the information of missing values has to be known for the
error bars.
"""
