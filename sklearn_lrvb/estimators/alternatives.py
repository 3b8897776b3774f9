"""The models that are tried where a mixture does not fit, Gaussian or of latent classes.

`remedies` fits them to the rows that were examined, which are encoded: numbers, and codes of categories.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from sklearn_lrvb.answers.model_check import LEAST_GAIN
from sklearn_lrvb.answers.single_values import listed_first
from sklearn_lrvb.estimators.callbacks import untold_copy
from sklearn_lrvb.estimators.gaussian_arguments import has_noise
from sklearn_lrvb.estimators.other_densities import (
    Logarithm,
    best_logarithm,
    plain_logarithm,
    values_in_components,
)
from sklearn_lrvb.gaussian.answers.doubtful_columns import doubt_of_matrices
from sklearn_lrvb.mixture.prediction import responsibilities_of_rows
from sklearn_lrvb.rows.array_rows import rows_of_array

_ADVISED_STARTS = 12  # At least, where another start is better.
_MOST_SKEW = 5  # Columns, of which the logarithm alone is tried.
_STEPS = 500  # At least, where the fit did not converge.
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


class KindOfMixture(ABC):
    """What depends on the class of an estimator.

    Parameters
    ----------
    mixture : estimator of a mixture, fitted
    ends : smallest and largest values of the columns in all training rows, (P,) each

    Attributes
    ----------
    unfitted : estimator, which can be fitted to what `table_of` makes of encoded rows
    is_same : bool, whether it is the same model as the mixture
    more_steps : int, `max_iter` with which fits that did not converge go on
    weights_of_classes : dict, arguments with which its weights have the prior of latent classes
    """

    weights_of_classes: ClassVar[dict[str, Any]] = {}

    def __init__(self, mixture, ends):
        self.mixture, self._ends = mixture, ends
        self.more_steps = max(_STEPS, 2 * mixture.max_iter)
        # Other parameters may have been set since the fit.
        self.unfitted = untold_copy(mixture, verbose=0, **self._params())
        if mixture.random_state is None:  # NumPy's own generator would move on.
            self.unfitted.set_params(random_state=0)
        self.is_same = not mixture._uncertainty.fitted.posterior.prior.flat
        if not isinstance(mixture.init_params, str):  # It has a row for every row of the training table.
            self.unfitted.set_params(init_params="kmeans")

    @abstractmethod
    def _params(self):
        """Arguments of the estimator for such tables: dict."""

    @abstractmethod
    def table_of(self, X):
        """What estimators are fitted to, of encoded rows (n, P)."""

    @staticmethod
    @abstractmethod
    def doubt(fitted, n_rows):
        """Why fits of so few rows and their evidences mean nothing, and what to do: two str, or None."""

    def from_labels(self, labels):
        """Arguments by which a fit starts at the labels of rows, float array (n, L): dict."""
        return {"init_params": labels, "n_init": 1}

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

    def _shared_arguments(self):
        """Arguments that an estimator of the other class has from this one: dict."""
        return {name: getattr(self.unfitted, name) for name in ("n_components", "random_state", "verbose")}

    def another_start(self):
        """The same model from other starts: Alternative."""
        advice = f"fit with n_init={max(_ADVISED_STARTS, 2 * self.mixture.n_init)}"
        problem = "The fit is not the best one: another start ends higher."
        if not self.mixture.converged_:
            problem = "The fit did not converge, and there is a better one."
            advice += f" and max_iter={self.more_steps}"
        return Alternative("start", problem, advice)

    def alternatives(self, best, examination, X, names):
        """What may describe the rows better than the best fit of the model, which was examined: list."""
        made, n_components = [], self.unfitted.n_components
        if best.n_occupied_ == n_components:
            problem = "Components are too few, or one is not normal and takes two to describe."
            advice = f"fit n_components={n_components + 1}, or ask number_of_clusters"
            made.append(Alternative("more components", problem, advice, {"n_components": n_components + 1}))
        return made + self._own_alternatives(examination, X, names)

    def _logarithms(self, examination, X, names, are_tried, params):
        """Logarithms of columns that are skew, each alone, and all together: list of Alternative.

        Parameters
        ----------
        examination : Examination
        X : (n, P), encoded
        names : list of str
        are_tried : bool (P,), the columns of which there may be one
        params : dict, arguments that change: those that have units
        """
        skew = examination.by_column("skewness", lambda test: are_tried[test.columns[0]])
        found = [self._logarithms_of(test, examination, X) for test in skew.values()]
        found = [of_column for of_column in found if of_column]
        sets = [[own] for of_column in found[:_MOST_SKEW] for own in of_column]
        if len(found) > 1:
            sets.append([of_column[0] for of_column in found])
        return [logarithm_of(own, names, params, starts_anew=len(own) == len(found)) for own in sets]

    def _logarithms_of(self, test, examination, X):
        """Of a skew column: that of its values, if possible, and of shifted ones, if they gain more: list.

        Whether they gain more is asked of each component by itself. But several components may have shared
        out the skewness, so that the answer is too small. So the first is tried in any case, and the other
        one besides, if it promises twice as much.
        """
        (column,) = test.columns
        ends = [float(end[column]) for end in self._ends]
        parts, found = values_in_components(X, examination.labels, column), []
        if test.size > 0 and ends[0] > 0:
            found.append(plain_logarithm(column, parts))
        if parts:
            shifted = best_logarithm(column, parts, ends)
            if shifted.gain > max([0.0, *(max(2.0 * own.gain, LEAST_GAIN) for own in found)]):
                found.append(shifted)
        return found


class GaussianKind(KindOfMixture):
    """Gaussian mixtures, of arrays."""

    weights_of_classes: ClassVar[dict[str, Any]] = {
        "weight_concentration_prior_type": "dirichlet_distribution",
        "weight_concentration_prior": None,
    }

    def _params(self):
        fitted = self.mixture._uncertainty.fitted
        # Under a flat prior there is no evidence.
        prior = {"prior": "learned"} if fitted.posterior.prior.flat else {}
        return {**fitted.model, "n_components": fitted.posterior.n_components, **prior}

    def table_of(self, X):
        return X

    doubt = staticmethod(doubt_of_matrices)

    def from_labels(self, labels):
        moves = None if self.unfitted.moves is None else "auto"  # A search has no such start.
        return super().from_labels(labels) | {"moves": moves}

    def is_count(self, column):
        return False

    def with_columns(self, columns, kind, names):
        from sklearn_lrvb import LRVBLatentClassMixture

        kinds = dict.fromkeys(range(self.mixture.n_features_in_), "numeric") | dict.fromkeys(columns, kind)
        which = listed_first([repr(names[column]) for column in columns])
        advice = f"fit LRVBLatentClassMixture, with {which} as {kind!r}"
        return LRVBLatentClassMixture(columns=kinds, **self._shared_arguments()), advice

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
            made += self._logarithms(examination, X, names, np.ones(X.shape[1], dtype=bool), params)
        return made


class ClassKind(KindOfMixture):
    """Latent classes, of tables."""

    def _params(self):
        columns = self.mixture._fitted.columns.columns
        kinds = {place: column.kind for place, column in enumerate(columns)}
        return {"columns": kinds, "n_components": self.mixture._fitted.posterior.n_components}

    def table_of(self, X):
        return self.mixture._fitted.columns.decoded(X)

    @staticmethod
    def doubt(fitted, n_rows):
        """None: there are no matrices."""

    def is_count(self, column):
        return self.unfitted.columns[column] == "count"

    def with_columns(self, columns, kind, names):
        kinds = self.unfitted.columns | dict.fromkeys(columns, kind)
        which = listed_first([repr(names[column]) for column in columns])
        return untold_copy(self.unfitted, columns=kinds), f"let {which} be {kind!r}"

    def _own_alternatives(self, examination, X, names):
        from sklearn_lrvb import LRVBGaussianMixture

        kinds = np.array([*self.unfitted.columns.values()])
        made = self._logarithms(examination, X, names, kinds == "numeric", {})
        tested = [test.columns[0] for test in examination.departures if len(test.columns) == 1]
        for column in dict.fromkeys(tested):
            if kinds[column] in ("count", "duration"):
                made.append(self._other_dispersion(column, kinds[column], names[column]))
        if np.all(kinds == "numeric") and len(kinds) > 1:
            problem = "Columns depend on each other within a class."
            advice = f"fit LRVBGaussianMixture(n_components={self.unfitted.n_components})"
            weights = {"weight_concentration_prior": self.unfitted.weight_concentration_prior}
            weights = GaussianKind.weights_of_classes | weights
            estimator = LRVBGaussianMixture(**self._shared_arguments(), **weights)
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


def logarithm_of(own, names, params, starts_anew):
    """The model of some logarithms, with arguments that change: Alternative."""
    which = listed_first([each.in_words(names[each.column]) for each in own])
    problem = f"Column {names[own[0].column]!r} is skew." if len(own) == 1 else "Some columns are skew."
    advice = f"take the logarithm of {which}"
    if any(each.is_of_centred for each in own):
        advice += ", or of the values before they were centred"
    return Alternative("skewness", problem, advice, params, tuple(own), starts_anew=starts_anew)
