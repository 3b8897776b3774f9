"""The models that are tried where a mixture does not fit, Gaussian or of latent classes.

`remedies` fits them to the rows that were examined, which are encoded: numbers, and codes of categories.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from sklearn_lrvb.estimators.gaussian_arguments import has_noise
from sklearn_lrvb.estimators.other_densities import Logarithm, best_logarithm, values_in_components
from sklearn_lrvb.mixture.prediction import responsibilities_of_rows
from sklearn_lrvb.rows.array_rows import rows_of_array

_STARTS = 12  # Of the fit that looks for a better optimum.
_MOST_SKEW, _MOST_LISTED = 5, 8  # Skew columns of which each is tried; columns that a list names.

_KNOWN_NOISE = 1e-6  # Its largest variance in logarithms: the default of `reg_covar`.

# Covariance types that describe more, or other things, by type.
_LARGER = {
    "full": (),
    "tied": ("full",),
    "diag": ("tied", "full"),
    "tied_diag": ("diag", "tied", "full"),
    "spherical": ("diag", "tied", "full"),
}


@dataclass(frozen=True)
class Alternative:
    """Another model to be fitted.

    Attributes
    ----------
    kind, problem, advice : as of `Remedy`
    params : dict, arguments of the estimator that change
    logarithms : tuple of Logarithm
    roots : tuple of int, columns of counts whose square root is taken
    estimator : unfitted estimator, or None for that of the mixture
    starts_anew : bool, whether clusters may be elsewhere, so that it also has its own starts
    """

    kind: str
    problem: str
    advice: str
    params: dict = field(default_factory=dict)
    logarithms: tuple = ()
    roots: tuple = ()
    estimator: Any = None
    starts_anew: bool = False

    def transformed(self, X):
        """The rows with transformed columns, and the log derivative of the transformation, summed: a pair."""
        X, log_derivative = X.astype(np.float64), 0.0
        for own in self.logarithms:
            X[:, own.column], log_derivatives = own.of(X[:, own.column])
            log_derivative += np.nansum(log_derivatives)
            log_derivative -= 0.5 * np.log(len(X)) * (own.shift != 0.0)  # A parameter more.
        for column in self.roots:  # A count y stands for the interval from y - 1/2 to y + 1/2.
            counts, X[:, column] = X[:, column].copy(), np.sqrt(X[:, column])
            widths = np.sqrt(counts + 0.5) - np.sqrt(np.maximum(counts - 0.5, 0.0))
            log_derivative += np.nansum(np.log(widths))
        return X, log_derivative


def as_new(mixture, **params):
    """An unfitted copy with other parameters, which tells nobody of its progress."""
    candidate = clone(mixture).set_params(**{"verbose": 0, **params})
    vars(candidate).pop("_skl_callbacks", None)
    if candidate.random_state is None:  # NumPy's own generator would move on.
        candidate.random_state = 0
    return candidate


def listed(words):
    """Some words as a list, the first eight: "'a', 'b' and 5 more"."""
    return ", ".join(words[:_MOST_LISTED]) + f" and {len(words) - _MOST_LISTED} more" * (
        len(words) > _MOST_LISTED
    )


class KindOfMixture(ABC):
    """What depends on the class of an estimator.

    Parameters
    ----------
    mixture : estimator of a mixture, fitted

    Attributes
    ----------
    unfitted : estimator, which can be fitted to what `table_of` makes of encoded rows
    is_same : bool, whether it is the same model as the mixture
    """

    def __init__(self, mixture):
        self.mixture, self.unfitted = mixture, as_new(mixture)
        self.unfitted.set_params(**self._params())  # Others may have been set since the fit.
        self.is_same = not mixture._uncertainty.fitted.posterior.prior.flat
        if not isinstance(mixture.init_params, str):  # It has a row for every row of the training table.
            self.unfitted.set_params(init_params="kmeans")

    @abstractmethod
    def _params(self):
        """Arguments of the estimator for such tables: dict."""

    @abstractmethod
    def table_of(self, X):
        """What estimators are fitted to, of encoded rows (n, P)."""

    def probabilities(self, X):
        """Those of the labels of encoded rows in the fit: (n, L)."""
        fitted = self.mixture._uncertainty.fitted
        return responsibilities_of_rows(rows_of_array(X, fitted.origin), fitted.posterior)

    @abstractmethod
    def is_count(self, column):
        """Whether a column holds counts: int -> bool."""

    @abstractmethod
    def with_columns(self, columns, kind, names):
        """An unfitted estimator of latent classes whose columns are of a kind, and the advice: str."""

    @abstractmethod
    def _own_alternatives(self, examination, X, names):
        """Those that are not common to all mixtures: list of Alternative."""

    def another_start(self):
        """The same model from other starts: Alternative."""
        n_init = max(_STARTS, 2 * self.mixture.n_init)
        problem = "The fit is not the best one: another start ends higher."
        return Alternative("start", problem, f"fit with n_init={n_init}", {"n_init": n_init})

    def alternatives(self, best, examination, X, names):
        """What may describe the rows better than the best fit of the model, which was examined: list."""
        made, n_components = [], self.unfitted.n_components
        if best.n_occupied_ == n_components:
            problem = "Components are too few, or one is not normal and takes two to describe."
            advice = f"fit n_components={n_components + 1}, or ask number_of_clusters"
            made.append(Alternative("more components", problem, advice, {"n_components": n_components + 1}))
        return made + self._own_alternatives(examination, X, names)


class GaussianKind(KindOfMixture):
    """Gaussian mixtures, of arrays."""

    def _params(self):
        fitted = self.mixture._uncertainty.fitted
        # Under a flat prior there is no evidence.
        prior = {"prior": "learned"} if fitted.posterior.prior.flat else {}
        return {**fitted.model, "n_components": fitted.posterior.n_components, **prior}

    def table_of(self, X):
        return X

    def is_count(self, column):
        return False

    def with_columns(self, columns, kind, names):
        from sklearn_lrvb import LRVBLatentClassMixture

        kinds = dict.fromkeys(range(self.mixture.n_features_in_), "numeric") | dict.fromkeys(columns, kind)
        given = {"n_components": self.unfitted.n_components, "random_state": self.unfitted.random_state}
        which = listed([repr(names[column]) for column in columns])
        advice = f"fit LRVBLatentClassMixture, with {which} as {kind!r}"
        return LRVBLatentClassMixture(columns=kinds, verbose=0, **given), advice

    def _own_alternatives(self, examination, X, names):
        mixture, made = self.unfitted, []
        if mixture.tails == "normal":
            problem = "Components have longer tails than normal distributions."
            made.append(Alternative("heavy tails", problem, "fit with tails='student'", {"tails": "student"}))
        if not has_noise(mixture.noise):
            problem = "Some rows belong to no component."
            params = {"noise": True}
            made.append(Alternative("outliers", problem, "fit with noise=True", params, starts_anew=True))
        has_prior = mixture.covariance_prior is not None
        if not has_prior and mixture.degrees_of_freedom_prior is None and X.shape[1] > 1:
            larger_types = _LARGER[mixture.covariance_type]
            for larger in larger_types if mixture.n_components > 1 else larger_types[-1:]:
                problem = f"Columns vary together, or apart, otherwise than {mixture.covariance_type!r} says."
                advice, params = f"fit with covariance_type={larger!r}", {"covariance_type": larger}
                made.append(Alternative("covariances", problem, advice, params))
        if not has_prior and mixture.mean_prior is None:
            # Known noise and the density of noise are in units of X.
            params = {"reg_covar": min(mixture.reg_covar, _KNOWN_NOISE)}
            params |= {"noise": True} if has_noise(mixture.noise) else {}
            made += logarithms(examination, X, names, np.ones(X.shape[1], dtype=bool), params)
        return made


class ClassKind(KindOfMixture):
    """Latent classes, of tables."""

    def _params(self):
        columns = self.mixture._fitted.columns.columns
        kinds = {place: column.kind for place, column in enumerate(columns)}
        return {"columns": kinds, "n_components": self.mixture._fitted.posterior.n_components}

    def table_of(self, X):
        return self.mixture._fitted.columns.decoded(X)

    def is_count(self, column):
        return self.unfitted.columns[column] == "count"

    def with_columns(self, columns, kind, names):
        kinds = self.unfitted.columns | dict.fromkeys(columns, kind)
        which = listed([repr(names[column]) for column in columns])
        return as_new(self.unfitted, columns=kinds), f"let {which} be {kind!r}"

    def _own_alternatives(self, examination, X, names):
        from sklearn_lrvb import LRVBGaussianMixture

        kinds = np.array([*self.unfitted.columns.values()])
        made = logarithms(examination, X, names, kinds == "numeric", {})
        tested = [test.columns[0] for test in examination.departures if len(test.columns) == 1]
        for column in dict.fromkeys(tested):
            if kinds[column] in ("count", "duration"):
                made.append(self._other_dispersion(column, kinds[column], names[column]))
        if np.all(kinds == "numeric") and len(kinds) > 1:
            given = {"n_components": self.unfitted.n_components, "random_state": self.unfitted.random_state}
            problem = "Columns depend on each other within a class."
            advice = f"fit LRVBGaussianMixture(n_components={self.unfitted.n_components})"
            estimator = LRVBGaussianMixture(**given)
            made.append(Alternative("covariances", problem, advice, estimator=estimator))
        return made

    def _other_dispersion(self, column, kind, name):
        """Alternative with a number in place of a count or a duration."""
        is_count = kind == "count"
        return Alternative(
            "dispersion",
            f"Column {name!r} is no {'Poisson count' if is_count else 'exponential duration'} in a class.",
            f"let the {'square root' if is_count else 'logarithm'} of {name!r} be 'numeric'",
            {"columns": {**self.unfitted.columns, column: "numeric"}},
            **({"roots": (column,)} if is_count else {"logarithms": (Logarithm(column, 1.0),)}),
        )


def logarithms(examination, X, names, are_tried, params):
    """Logarithms of columns that are skew, each alone and all: list of Alternative.

    Parameters
    ----------
    examination : Examination
    X : (n, P), encoded
    names : list of str
    are_tried : bool (P,), the columns of which there may be one
    params : dict, arguments that change: those that have units
    """
    made = {}
    for test in examination.departures:
        column = test.columns[0] if test.kind == "skewness" else None
        if column is None or column in made or not are_tried[column]:
            continue
        parts = values_in_components(X, examination.labels, column)
        if test.size > 0 and np.nanmin(X[:, column]) > 0:
            made[column] = Logarithm(column, 1.0)
        elif parts and best_logarithm(column, parts).gain > 0:
            made[column] = best_logarithm(column, parts)
    made = list(made.values())
    sets = [[own] for own in made[:_MOST_SKEW]] + [made] * (len(made) > 1)
    alternatives = [logarithm_of(own, names, params) for own in sets]
    return [replace(own, starts_anew=own is alternatives[-1]) for own in alternatives]


def logarithm_of(own, names, params):
    """The model of some logarithms, with arguments that change: Alternative."""
    which = listed([each.in_words(names[each.column]) for each in own])
    problem = f"Column {names[own[0].column]!r} is skew." if len(own) == 1 else "Some columns are skew."
    advice = f"take the logarithm of {which}"
    if any(each.is_of_centred for each in own):
        advice += ", or of the values before they were centred"
    return Alternative("skewness", problem, advice, params, tuple(own))
