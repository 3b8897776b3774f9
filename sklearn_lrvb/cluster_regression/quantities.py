"""What users read of a second step: coefficients, average shares and effects, and means.

A function of the parameters returns values (m,) and derivatives (m, D). Shares are averages over the rows
that take part. To find the share of a cluster at a level of a covariate, all rows get this level and keep
their other covariates (*average marginal effects*). The mean of an outcome in a cluster is that at the mean
of the covariates (*standardized means*). The covariates of the rows are taken as fixed.

*Conventions.* K clusters, D parameters, P columns of the design, n rows.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sklearn_lrvb.cluster_regression.intervals import LogOdds, OfDifferences, OfShares, Symmetric
from sklearn_lrvb.rows import slices

_STEP = 1e-3  # Standard deviations by which a covariate is moved for its average effect.
_NUMBERS_AT_ONCE = 2**20


def average_shares(model, parameters, matrix, weights):
    """Average shares of the clusters among rows with some design: (K,), and their derivatives (K, D).

    Parameters
    ----------
    model : StructuralModel
    parameters : (D,)
    matrix : (n, P)
    weights : (n,)
    """
    K, n_own = model.n_clusters, model.n_logits * model.n_columns
    values, slopes = np.zeros(K), np.zeros((K * model.n_logits, model.n_columns))
    for place in slices(len(matrix), max(256, _NUMBERS_AT_ONCE // K**2)):
        shares, _ = model.cluster_shares(parameters, matrix[place])
        values += shares @ weights[place]
        changes = -shares[:, None] * shares[1:]
        changes[np.arange(1, K), np.arange(K - 1)] += shares[1:]
        slopes += changes.reshape(-1, shares.shape[1]) @ (matrix[place] * weights[place, None])
    full, total = np.zeros((K, model.size)), weights.sum()
    full[:, :n_own] = slopes.reshape(K, -1)
    return values / total, full / total


@dataclass(frozen=True)
class Setting:
    """The effect of a covariate: of a level against the reference level, or of a number.

    Attributes
    ----------
    name : str, of the covariate, or "sex=male"
    covariate : int, its number
    levels : two of float, codes of the level and the reference level; empty of numbers
    reference : str or None, that of the reference level
    """

    name: str
    covariate: int
    levels: tuple = ()
    reference: str | None = None

    @property
    def levels_named(self):
        """The names of both levels, as "sex=male": set of str, empty of numbers."""
        return set() if self.reference is None else {self.name, self.reference}


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
        self.n_of_cluster = design.size  # Coefficients of a cluster.

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

    def _shares(self, parameters, matrix):
        """Average shares in the order of the components if rows have some design, (n, P)."""
        shares, slopes = average_shares(self._model, parameters, matrix, self._data.weights)
        return shares[self._order], slopes[self._order]

    def _shares_at(self, parameters, covariate, value):
        """The same if all rows have a value of a covariate, or a level of it."""
        return self._shares(parameters, self.design.with_value(self._data.matrix, covariate, value))

    @cached_property
    def settings(self):
        """What effects are of: list of Setting."""
        design, settings = self.design, []
        for number, column in enumerate(design.table.columns):
            levels = design.levels(number)
            if not levels:
                settings.append(Setting(column.name, number))
            for level in levels[1:]:
                name, reference = (design.level_name(number, own) for own in (level, levels[0]))
                settings.append(Setting(name, number, (level, levels[0]), reference))
        return settings

    def kinds(self):
        """What users can ask for: dict of names and function."""
        return {
            "effects": (self.effect_names, self.effects),
            "shares": (self.share_names, self.level_shares),
            "coefficients": (self.coefficient_names, self.coefficients),
        }

    def intervals(self, kind, regression):
        """Their intervals, given the Regression."""
        return LogOdds() if kind == "shares" else Symmetric()

    def tests(self):
        """By covariate the contrasts of the parameters that are zero if it has no effect: dict of (q, D)."""
        return {
            column.name: self._slopes_of(number) for number, column in enumerate(self.design.table.columns)
        }

    def effects(self, parameters):
        """Average effects of covariates on the shares of the clusters: K values of each."""
        parts = []
        for own in self.settings:
            if own.levels:
                ends = [self._shares_at(parameters, own.covariate, level) for level in own.levels]
                divisor = 1.0
            else:
                matrices = (self.design.moved(self._data.matrix, own.covariate, by) for by in (_STEP, -_STEP))
                ends = [self._shares(parameters, matrix) for matrix in matrices]
                divisor = 2.0 * _STEP * self.design.scale_of(own.covariate)
            parts.append([(a - b) / divisor for a, b in zip(*ends, strict=True)])
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    @property
    def effect_names(self):
        return [f"effect[{k},{own.name}]" for own in self.settings for k in sorted(self._clusters)]

    def _levels(self):
        design = self.design
        for number in range(len(design.table.columns)):
            for level in design.levels(number):
                yield design.level_name(number, level), number, level

    def level_shares(self, parameters):
        """Shares of the clusters as they are, and if all rows had a level of a covariate: K values each."""
        parts = [self._shares(parameters, self._data.matrix)]
        parts += [self._shares_at(parameters, number, level) for _, number, level in self._levels()]
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    @property
    def share_names(self):
        clusters = sorted(self._clusters)
        of_levels = [f"share[{k},{name}]" for name, *_ in self._levels() for k in clusters]
        return [f"share[{k}]" for k in clusters] + of_levels

    def shares_along(self, number, values):
        """The function of the parameters that gives shares if all rows had each of some values: (v K,)."""

        def function(parameters):
            parts = [self._shares_at(parameters, number, value) for value in values]
            return tuple(map(np.concatenate, zip(*parts, strict=True)))

        return function

    def named_parameters(self, which):
        """Names of the slopes among some parameters, bool array (D,)."""
        model = self._model
        own = which[: model.n_logits * model.n_columns].reshape(model.n_logits, -1)[:, 1:]
        return [
            f"slope[{self._clusters[1:][row]},{self.design.columns[place].name}]"
            for row, place in np.argwhere(own)
        ]

    def sentence_of_prior(self, named):
        """What is said of parameters that the prior decides."""
        return (
            f"The rows alone do not bound {named} (clusters are separated, or rows are few): a weak prior "
            "does. Their sizes are the prior's; error bars next to them, also of effects, are rough."
        )

    def _slopes_of(self, number):
        """The slopes of a covariate as contrasts of the parameters, (q, D)."""
        places = [p for p, column in enumerate(self.design.columns, 1) if column.covariate == number]
        index = np.add.outer(np.arange(self._model.n_logits) * self._model.n_columns, places).ravel()
        return np.eye(self._model.size)[index]


class OutcomeQuantities:
    """The quantities of an outcome, all of them linear in theta (`outcome_step`).

    Parameters
    ----------
    outcome : Outcome
    design : Design, of covariates
    labels : Labels
    counts : (L,), expected rows of the labels
    """

    def __init__(self, outcome, design, labels, counts):
        self._outcome, self.design, self.name = outcome, design, outcome.name
        self._clusters, self._has_noise = labels.clusters, labels.has_noise
        self.n_of_cluster = max(1, len(outcome.levels) - 1)  # Means of a cluster.
        order = np.argsort(self._clusters).tolist()
        self._order = [*order, *[len(order)] * self._has_noise]
        self._rows = np.repeat(counts[self._order], self.n_means)

    @property
    def subjects(self):
        """Of what there are means: the outcome, or "smoker=yes"; list of str."""
        return [f"{self.name}={level}" for level in self._outcome.levels] or [self.name]

    @property
    def n_means(self):
        """Number of means of a cluster: 1, or that of the categories."""
        return len(self.subjects)

    @property
    def are_shares(self):
        """Whether means are shares of categories."""
        return bool(self._outcome.levels)

    def kinds(self):
        """What users can ask for: dict of names and function."""
        kinds = {
            "means": (self.mean_names, self.means),
            "differences": (self.difference_names, self.differences),
        }
        if self.design.columns:
            kinds["slopes"] = (self.slope_names, self.slopes)
        return kinds

    def intervals(self, kind, regression):
        """Their intervals, given the Regression."""
        if kind == "slopes" or not self.are_shares:
            return Symmetric()
        if kind == "means":
            return OfShares(self._rows / regression.design_effect(self.means))
        places = np.arange(len(self._rows)).reshape(-1, self.n_means)
        one, other = (places[list(own)].ravel() for own in zip(*self._pairs(), strict=True))
        return OfDifferences(regression.of("means"), one, other)

    def tests(self):
        """The contrasts of coefficients that are zero if clusters have the same means: dict of (K - 1, p)."""
        K = len(self._clusters)
        between = np.zeros((K - 1, self._n_coefficients))
        between[:, 0], between[:, 1:K] = -1.0, np.eye(K - 1)
        return {self.name: between}

    @property
    def _n_coefficients(self):
        return len(self._order) + len(self.design.columns)

    def means(self, parameters):
        """Means in the clusters, and in noise: q values of each, cluster by cluster.

        Shares that least squares put beside 0 and 1 are 0 and 1; derivatives stay those of least squares.
        """
        outcome, q = self._outcome, self.n_means
        slopes = outcome.scale * np.kron(np.eye(self._n_coefficients)[self._order], np.eye(q))
        values = np.tile(outcome.centre, len(self._order)) + slopes @ parameters
        return np.clip(values, 0.0, 1.0) if self.are_shares else values, slopes

    def _named(self, what, label):
        return [f"{what}[{label},{subject}]" for subject in self.subjects]

    @property
    def labels(self):
        """What the means are of: numbers of the clusters, and "noise"."""
        return [*sorted(self._clusters), *["noise"] * self._has_noise]

    @property
    def mean_names(self):
        return [name for label in self.labels for name in self._named("mean", label)]

    def _pairs(self):
        K = len(self._clusters)
        return [(i, j) for j in range(K) for i in range(j + 1, K)]

    def differences(self, parameters):
        """Differences of the means between all pairs of clusters: q values of each."""
        both = self.means(parameters)
        one, other = np.array(self._pairs()).T
        parts = (own.reshape(len(self._order), self.n_means, -1) for own in both)
        values, slopes = (own[one] - own[other] for own in parts)
        return values.ravel(), slopes.reshape(-1, slopes.shape[2])

    @property
    def difference_names(self):
        clusters = sorted(self._clusters)
        return [
            f"{a} - {b}"
            for i, j in self._pairs()
            for a, b in zip(self._named("mean", clusters[i]), self._named("mean", clusters[j]), strict=True)
        ]

    def slopes(self, parameters):
        """Slopes of the covariates within clusters, in units of both: of every mean P - 1 values."""
        n_labels, scale = len(self._order), self._outcome.scale
        change = np.zeros((len(self.design.columns), self._n_coefficients))
        change[:, n_labels:] = np.diag([scale / column.scale for column in self.design.columns])
        slopes = np.kron(change, np.eye(self.n_means))
        slopes = slopes.reshape(len(change), self.n_means, -1).swapaxes(0, 1).reshape(len(slopes), -1)
        return slopes @ parameters, slopes

    @property
    def slope_names(self):
        columns = self.design.columns
        return [f"slope[{subject},{column.name}]" for subject in self.subjects for column in columns]

    def named_parameters(self, which):
        """Names of the means among some parameters, bool array (D,)."""
        own = which.reshape(self._n_coefficients, -1)[: len(self._clusters)].any(axis=1)
        return [
            self._named("mean", k)[0] for k, is_meant in zip(self._clusters, own, strict=True) if is_meant
        ]

    def sentence_of_prior(self, named):
        """What is said of parameters that the prior decides."""
        return (
            f"Rows are few, or clusters hard to tell apart: a weak prior moves {named} to the mean of all "
            "rows."
        )
