"""What users read of a second step: coefficients, average shares and effects, and means.

A function of the parameters returns values (m,) and derivatives (m, D). Shares and means are averages over
the rows that take part. To find the share of a cluster at a level of a covariate, all rows get this level and
keep their other covariates (*average marginal effects*, *standardized means*). The covariates of the rows are
taken as fixed.

*Conventions.* K clusters, D parameters, P columns of the design, n rows.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri, stdtrit

from sklearn_lrvb.rows import slices

_STEP = 1e-3  # Standard deviations by which a covariate is moved for its average effect.
_NUMBERS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Quantities:
    """Estimates of one kind.

    Attributes
    ----------
    names : list of str, such as "slope[1,age]"
    values : (m,)
    covariance : (m, m)
    link : {"identity", "logit", "log", "atanh"}, the scale on which intervals are symmetric
    freedom : float, degrees of freedom of Student's t
    """

    names: list
    values: np.ndarray
    covariance: np.ndarray
    link: str = "identity"
    freedom: float = np.inf

    @property
    def deviations(self):
        """Standard deviations, (m,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def interval(self, probability):
        """Lower and upper limits of central intervals: two of (m,)."""
        tail = 0.5 + 0.5 * probability
        quantile = ndtri(tail) if np.isinf(self.freedom) else stdtrit(self.freedom, tail)
        half = quantile * self.deviations
        if self.link == "identity":
            return self.values - half, self.values + half
        if self.link == "atanh":  # Of differences of shares, between -1 and 1.
            inside = np.clip(self.values, -1.0 + 1e-12, 1.0 - 1e-12)
            middle, half = np.arctanh(inside), half / (1.0 - np.square(inside))
            return np.tanh(middle - half), np.tanh(middle + half)
        value = np.maximum(self.values, 1e-300)
        if self.link == "log":
            return value * np.exp(-half / value), value * np.exp(half / value)
        rest = np.maximum(1.0 - self.values, 1e-300)
        log_odds, half = np.log(value) - np.log(rest), half / (value * rest)
        return expit(log_odds - half), expit(log_odds + half)


def average_shares(model, parameters, matrix, weights):
    """Average shares of the clusters among rows with some design: (K,), and their derivatives (K, D).

    Parameters
    ----------
    model : StructuralModel
    parameters : (D,)
    matrix : (n, P)
    weights : (n,)
    """
    coefficients, K = model.coefficients(parameters), model.n_clusters
    values, slopes = np.zeros(K), np.zeros((K * model.n_logits, model.n_columns))
    for place in slices(len(matrix), max(256, _NUMBERS_AT_ONCE // K**2)):
        shares, _ = model.cluster_shares(coefficients, matrix[place])
        values += shares @ weights[place]
        changes = -shares[:, None] * shares[1:]
        changes[np.arange(1, K), np.arange(K - 1)] += shares[1:]
        slopes += changes.reshape(-1, shares.shape[1]) @ (matrix[place] * weights[place, None])
    full = np.zeros((K, model.n_predictors, model.n_columns))
    full[:, : model.n_logits] = slopes.reshape(K, model.n_logits, -1)
    total = weights.sum()
    return values / total, model.in_parameters(full) / total


def average_means(model, parameters, matrix, weights):
    """Average means of the outcome in every label: (L, m), and their derivatives (L, m, D)."""
    coefficients = model.coefficients(parameters)[model.first_of_outcome :]
    values, slopes = 0.0, 0.0
    for place in slices(len(matrix), max(256, _NUMBERS_AT_ONCE // model.n_predictors**2)):
        predictors = (coefficients @ matrix[place].T).reshape(model.n_labels, model.n_of_outcome, -1)
        means, changes = model.outcome.mean(predictors)
        values = values + means @ weights[place]
        slopes = slopes + changes @ (matrix[place] * weights[place, None])
    full = np.zeros((*values.shape, model.n_predictors, model.n_columns))
    for label in range(model.n_labels):
        full[label][:, model.of_outcome(label)] = slopes[label]
    total = weights.sum()
    return values / total, model.in_parameters(full) / total


class CovariateQuantities:
    """The quantities of a regression of the clusters on covariates.

    Parameters
    ----------
    model : StructuralModel
    design : Design
    data : StructuralData, of the rows of the design
    clusters : list of int, numbers of the components, the reference first
    """

    def __init__(self, model, design, data, clusters):
        self._model, self._data, self._clusters = model, data, clusters
        self.design, self.name, self._order = design, None, np.argsort(clusters)

    def coefficients(self, parameters):
        """Log odds against the reference in units of the covariates: (K - 1) P values."""
        model, to_units = self._model, self.design.to_units
        n_own = model.n_logits * model.n_columns
        values = parameters[:n_own].reshape(model.n_logits, -1) @ to_units.T
        slopes = np.zeros((n_own, model.size))
        slopes[:, :n_own] = np.kron(np.eye(model.n_logits), to_units)
        return values.ravel(), slopes

    @property
    def coefficient_names(self):
        return [
            name
            for k in self._clusters[1:]
            for name in [f"intercept[{k}]", *(f"slope[{k},{column.name}]" for column in self.design.columns)]
        ]

    def _shares(self, parameters, values):
        """Average shares in the order of the components if covariates have some values, (n, C)."""
        shares, slopes = average_shares(
            self._model, parameters, self.design.matrix(values), self._data.weights
        )
        return shares[self._order], slopes[self._order]

    def _settings(self):
        """Names of effects, and of each two tables of covariates, and what their difference is divided by."""
        design = self.design
        for number, column in enumerate(design.table.columns):
            levels = design.levels(number)
            if not levels:
                step = _STEP * design.scale_of(number)
                yield column.name, (number, step), (number, -step), 2.0 * step
            for level in levels[1:]:
                yield design.level_name(number, level), (number, level), (number, levels[0]), 1.0

    def kinds(self):
        """What users can ask for: dict of names, function and scale of intervals."""
        return {
            "effects": (self.effect_names, self.effects, "identity"),
            "shares": (self.share_names, self.level_shares, "logit"),
            "coefficients": (self.coefficient_names, self.coefficients, "identity"),
        }

    def tests(self):
        """By covariate the contrasts of the parameters that are zero if it has no effect: dict of (q, D)."""
        return {
            column.name: self._slopes_of(number) for number, column in enumerate(self.design.table.columns)
        }

    def effects(self, parameters):
        """Average effects of covariates on the shares of the clusters: K values of each."""
        parts = []
        for _, *settings, divisor in self._settings():
            one, other = (self._shares(parameters, self.design.changed(*own)) for own in settings)
            parts.append([(a - b) / divisor for a, b in zip(one, other, strict=True)])
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    @property
    def effect_names(self):
        clusters = sorted(self._clusters)
        return [f"effect[{k},{name}]" for name, *_ in self._settings() for k in clusters]

    def reference_of(self, setting):
        """The level with which an effect compares: str, or None for numbers."""
        for name, _, (number, level), _ in self._settings():
            if name == setting and self.design.levels(number):
                return self.design.table.columns[number].categories[int(level)]
        return None

    def _levels(self):
        design = self.design
        for number in range(len(design.table.columns)):
            for level in design.levels(number):
                yield design.level_name(number, level), number, level

    def level_shares(self, parameters):
        """Shares of the clusters as they are, and if all rows had a level of a covariate: K values each."""
        parts = [self._shares(parameters, self.design.table.values)]
        for _, number, level in self._levels():
            parts.append(self._shares(parameters, self.design.changed(number, level)))
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    @property
    def share_names(self):
        clusters = sorted(self._clusters)
        of_levels = [f"share[{k},{name}]" for name, *_ in self._levels() for k in clusters]
        return [f"share[{k}]" for k in clusters] + of_levels

    def shares_along(self, number, values):
        """The function of the parameters that gives shares if all rows had each of some values: (v K,)."""

        def function(parameters):
            table = self.design.table.values.copy()
            parts = []
            for value in values:
                table[:, number] = value
                parts.append(self._shares(parameters, table))
            return tuple(map(np.concatenate, zip(*parts, strict=True)))

        return function

    def named_parameters(self, which):
        """Names of the slopes among some parameters, bool array (D,)."""
        names = self.coefficient_names
        return [name for name, own in zip(names, which, strict=False) if own and name.startswith("slope")]

    def _slopes_of(self, number):
        """The slopes of a covariate as contrasts of the parameters, (q, D)."""
        places = [p for p, column in enumerate(self.design.columns, 1) if column.covariate == number]
        index = np.add.outer(np.arange(self._model.n_logits) * self._model.n_columns, places).ravel()
        return np.eye(self._model.size)[index]


class OutcomeQuantities:
    """The quantities of an outcome.

    Parameters
    ----------
    model : StructuralModel, with the outcome
    name : str, of the outcome
    design : Design
    data : StructuralData
    labels : Labels
    """

    def __init__(self, model, name, design, data, labels):
        self._model, self.design, self.name = model, design, name
        self._clusters, self._has_noise = labels.clusters, labels.has_noise
        self._order = np.argsort(self._clusters)
        self._matrix, self._weights = data.matrix, data.weights
        if not design.columns:  # All rows have the same mean.
            self._matrix, self._weights = np.ones((1, 1)), np.ones(1)

    @property
    def n_means(self):
        """Number of means of a cluster: 1, or that of the categories."""
        return len(self._model.outcome.means)

    def means(self, parameters):
        """Means in the clusters, and in noise: m values of each, cluster by cluster."""
        values, slopes = average_means(self._model, parameters, self._matrix, self._weights)
        noise = [len(self._order)] * self._has_noise
        order = [*self._order, *noise]
        return values[order].ravel(), slopes[order].reshape(values.size, -1)

    def _named(self, what, label):
        return [f"{what}[{label},{self.name}{end}]" for end in self._model.outcome.means]

    @property
    def mean_names(self):
        labels = [*sorted(self._clusters), *["noise"] * self._has_noise]
        return [name for label in labels for name in self._named("mean", label)]

    def _pairs(self):
        K = len(self._clusters)
        return [(i, j) for j in range(K) for i in range(j + 1, K)]

    def differences(self, parameters):
        """Differences of the means between all pairs of clusters."""
        values, slopes = self.means(parameters)
        size = self.n_means
        values, slopes = values.reshape(-1, size), slopes.reshape(-1, size, slopes.shape[1])
        one, other = np.array(self._pairs()).T
        return (values[one] - values[other]).ravel(), (slopes[one] - slopes[other]).reshape(
            -1, slopes.shape[2]
        )

    @property
    def difference_names(self):
        clusters = sorted(self._clusters)
        return [
            f"{a} - {b}"
            for i, j in self._pairs()
            for a, b in zip(self._named("mean", clusters[i]), self._named("mean", clusters[j]), strict=True)
        ]

    def named_parameters(self, which):
        """Names of the means whose predictors are among some parameters, bool array (D,)."""
        model = self._model
        own = which[model.first_mean :][: model.n_labels * model.n_of_outcome].reshape(model.n_labels, -1)
        own = own[: model.n_clusters, model.outcome.is_adjusted].any(axis=1)
        clusters = [k for k, is_meant in zip(self._clusters, own, strict=True) if is_meant]
        return [name for k in clusters for name in self._named("mean", k)[:1]]

    def kinds(self):
        """What users can ask for: dict of names, function and scale of intervals."""
        link = self._model.outcome.link
        # Differences of shares are between -1 and 1.
        kinds = {
            "means": (self.mean_names, self.means, link),
            "differences": (
                self.difference_names,
                self.differences,
                "atanh" if link == "logit" else "identity",
            ),
        }
        if self.design.columns:
            kinds["slopes"] = (self.slope_names, self.slopes, "identity")
        return kinds

    def slopes(self, parameters):
        """Slopes of the covariates in the outcome's predictors, in units of both."""
        model, columns = self._model, self.design.columns
        n_own = int(model.outcome.is_adjusted.sum()) * len(columns)
        scales = np.tile([model.outcome.scale / column.scale for column in columns], n_own // len(columns))
        slopes = np.zeros((n_own, model.size))
        slopes[:, model.size - n_own :] = np.diag(scales)
        return slopes @ parameters, slopes

    @property
    def slope_names(self):
        ends = self._model.outcome.predictors
        return [f"slope[{self.name}{end},{column.name}]" for end in ends for column in self.design.columns]
