"""Filled values of real tables: MixtureImputer beside scikit-learn's imputers, all at their defaults.

Columns are standardized by what is there, values are missing completely at random (MCAR) or more often where
the first column is large (MAR), and the error of the filled values is compared with the true ones.
"""

import warnings

import numpy as np

from benchmarks.harness.tables import table
from benchmarks.problems.missing_values import MECHANISMS

TITLE = "Filled values of real tables"
_TABLES = {
    "iris": "load_iris",
    "wine": "load_wine",
    "breast cancer": "load_breast_cancer",
    "diabetes": "load_diabetes",
    "digits": "load_digits",
}
_MOST_ROWS = 600  # Of the digits, whose pixels are then a wide table.
_SETTINGS = (("MCAR", 0.1), ("MCAR", 0.3), ("MAR", 0.2))
_REPETITIONS, _QUICK_REPETITIONS = 10, 1
METHODS = ("MixtureImputer", "IterativeImputer", "KNNImputer", "SimpleImputer")


def measure(settings):
    """A row for every table and setting."""
    repetitions = _QUICK_REPETITIONS if settings.quick else _REPETITIONS
    for name in list(_TABLES)[:1] if settings.quick else _TABLES:
        X = _table(name)
        for mechanism, share in _SETTINGS[:1] if settings.quick else _SETTINGS:
            errors = {method: [] for method in METHODS}
            for repetition in range(repetitions):
                incomplete = MECHANISMS[mechanism](X, share, np.random.default_rng(repetition))
                is_missing = np.isnan(incomplete)
                for method, imputer in _imputers().items():
                    filled = _quietly(imputer, incomplete)
                    errors[method].append(np.sqrt(np.square((filled - X)[is_missing]).mean()))
            yield {
                "problem": f"{name}: {mechanism}, {100 * share:.0f} %",
                "table": name,
                "setting": f"{mechanism}, {100 * share:.0f} %",
                "n_samples": X.shape[0],
                "n_features": X.shape[1],
                "n_repetitions": repetitions,
                **{method: float(np.mean(values)) for method, values in errors.items()},
            }


def _table(name):
    """The standardized table, without constant columns."""
    import sklearn.datasets

    X = getattr(sklearn.datasets, _TABLES[name])().data[:_MOST_ROWS]
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _imputers():
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

    from sklearn_lrvb import MixtureImputer

    made = (MixtureImputer(random_state=0), IterativeImputer(random_state=0), KNNImputer(), SimpleImputer())
    return dict(zip(METHODS, made, strict=True))


def _quietly(imputer, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return imputer.fit_transform(X)


def section(found):
    shown = table(
        [
            ("table", lambda row: row["table"]),
            ("N, P", lambda row: f"{row['n_samples']:,.0f}, {row['n_features']:,.0f}"),
            ("missing", lambda row: row["setting"]),
            *((method, lambda row, method=method: f"{row[method]:.3f}") for method in METHODS),
        ],
        found,
    )
    n_repetitions = max(row["n_repetitions"] for row in found)
    return f"""Root mean squared error of the filled values, in standard deviations of their columns, on
average over {n_repetitions:.0f} ways to hide values. Zero would be perfect, and about one is what the mean of
a column achieves.

{shown}

A regression on the other columns does much better than a mean, and better still where it knows of clusters.
Nothing is tuned: the mixture has up to five components with one covariance matrix for all, the default, and
chooses by its lower bound how far that matrix is drawn towards uncorrelated columns. Neighbours are better
for the digits, whose pixels are far from normal.
"""
