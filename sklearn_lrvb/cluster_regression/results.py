"""What explains the clusters, and what they explain: the answers of two methods of an estimator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.cluster_regression.conclusion import RegressionConclusion
from sklearn_lrvb.cluster_regression.direct_effects import DirectEffect
from sklearn_lrvb.cluster_regression.estimation import Estimate, SecondStep, influence_of_all
from sklearn_lrvb.cluster_regression.intervals import Quantities, Symmetric
from sklearn_lrvb.reports import SentenceAndNumbers, require_interval, required_pandas
from sklearn_lrvb.reports.rounding import p_in_words, rounded

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05  # Of all tests together, below which an effect is told as one.
_PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
_MOST_SHOWN = 4  # Effects of a covariate, or clusters, on a line of the display.
_ROWS_OF_A_LEVEL = 10  # Fewer rows of a level of a covariate are told.
_SHARE_OF_PRIOR = 0.05  # Of the information on a coefficient, from which on the prior decides its size.
_ROWS_OF_A_COEFFICIENT = 10  # Expected rows of a cluster for each of its coefficients: fewer are told.


@dataclass(frozen=True, eq=False)
class Regression:
    """One second step with its error bars: that of the covariates, or of one outcome.

    Attributes
    ----------
    step : SecondStep at the fit, without the rows of X
    reported : SecondStep to which the estimate belongs: the same, or that at the mean over draws
    estimate : Estimate
    quantities : CovariateQuantities or OutcomeQuantities
    """

    step: SecondStep
    reported: SecondStep
    estimate: Estimate
    quantities: Any

    @cached_property
    def kinds(self):
        """What users can ask for: dict of names and function."""
        return self.quantities.kinds()

    @cached_property
    def _known(self):
        return {}

    def of(self, kind):
        """Quantities of a kind: Quantities."""
        if kind not in self._known:
            names, function = self.kinds[kind]
            values, covariance = self.estimate.of(function)
            intervals = self.quantities.intervals(kind, self)
            self._known[kind] = Quantities(names, values, covariance, intervals, self.estimate.freedom)
        return self._known[kind]

    def design_effect(self, function):
        """The mean factor by which groups, or a finite population, change the variances of shares: float."""
        if np.isinf(self.estimate.freedom):
            return 1.0
        shares, whole = self.estimate.of(function)
        _, alone = replace(self.estimate, covariance=self.reported.own_covariance).of(function)
        ratios = np.diag(whole) / np.maximum(np.diag(alone), 1e-300)
        return max(1e-12, float(np.average(ratios, weights=shares * (1.0 - shares) + 1e-12)))

    def p_values(self):
        """p-values by what is tested, covariates or the outcome: dict of float."""
        own = self.estimate
        return {
            name: self.reported.p_value(contrasts, own.covariance, own.freedom)
            for name, contrasts in self.quantities.tests().items()
        }

    @cached_property
    def doubtful_levels(self):
        """Levels of covariates with few rows, as they are named, and their rows: dict."""
        design, weights = self.quantities.design, self.step.data.weights
        counts = {
            design.level_name(number, level): float(weights[values == level].sum())
            for number, values in enumerate(design.table.values.T)
            for level in design.levels(number)
        }
        return {name: count for name, count in counts.items() if count < _ROWS_OF_A_LEVEL}

    @property
    def notes(self):
        """What is doubtful, and what to do: list of sentences."""
        notes, of_name = [], "" if self.quantities.name is None else f" of {self.quantities.name!r}"
        if not self.reported.converged:
            notes.append(f"The regression{of_name} did not converge: its numbers are rough.")
        labels, n_own = self.step.labels, self.quantities.n_of_cluster
        counts = self.reported.maximum.counts[: labels.n_clusters]
        least = int(counts.argmin())
        if counts[least] < _ROWS_OF_A_COEFFICIENT * n_own:
            notes.append(
                f"Cluster {labels.clusters[least]} has {counts[least]:.0f} rows for {n_own} coefficient(s): "
                "its error bars are rough."
            )
        levels = self.doubtful_levels
        if levels:
            fewest = min(levels, key=levels.get)
            notes.append(
                f"Level {fewest!r} has {levels[fewest]:.0f} row(s): its effects and error bars are rough."
            )
        decided = self.quantities.named_parameters(self.reported.of_prior > _SHARE_OF_PRIOR)
        if decided:
            some = f"{', '.join(decided[:3])}{', ...' * (len(decided) > 3)}"
            notes.append(self.quantities.sentence_of_prior(some))
        return notes


@dataclass(frozen=True, eq=False, repr=False)
class ClusterRegression(SentenceAndNumbers):
    """What `covariate_effects` and `outcome_differences` return; they have a subclass each.

    Attributes
    ----------
    reference : int
        The cluster with which others are compared.
    clusters : list of int
        Numbers of the clusters that hold rows.
    n_rows : int
        Rows that take part, in the regression of the outcome that has the fewest.
    n_left_out : int
        Rows that count, but lack a covariate or this outcome.
    note : str
        Where error bars come from, how far to trust them, and what is doubtful.
    direct_effects : tuple of DirectEffect
        Dependence of covariates or outcomes and columns of X within clusters, which the method takes not to
        exist; the surest first. In wide tables only the pairs that look surest are tested.
    regressions : tuple of Regression
        What the numbers are computed from: one, or one for every outcome.
    mixture : estimator
        The mixture whose clusters these are.
    """

    reference: int
    clusters: list[int]
    n_rows: int
    n_left_out: int
    note: str
    direct_effects: tuple[DirectEffect, ...]
    regressions: tuple[Regression, ...]
    mixture: Any

    def summary(self, kind: str | None = None, *, interval: float = 0.95) -> pd.DataFrame:
        """Estimates with error bars.

        Parameters
        ----------
        kind : str, default=None
            Which estimates; the class says which there are. None is the first.

        interval : float, default=0.95
            Probability of the intervals.

        Returns
        -------
        summary : pandas.DataFrame
            A row for every estimate, by its name, with the columns estimate, sd, lower and upper.

        Raises
        ------
        ImportError
            pandas is not installed.
        ValueError
            On an unknown kind, or an interval that is none.
        """
        pd = required_pandas("summary")
        require_interval(interval)
        tables = []
        for regression in self.regressions:
            own = regression.of(self._checked_kind(kind))
            lower, upper = own.interval(interval)
            columns = {"estimate": own.values, "sd": own.deviations, "lower": lower, "upper": upper}
            tables.append(pd.DataFrame(columns, own.names))
        return pd.concat(tables)

    @cached_property
    def p_values(self) -> dict[str, float]:
        """p-values, by covariate: that it has no effect on any cluster; by outcome: that its means are equal.

        Each is of its own test. With fewer groups than what is tested there is none (NaN).
        """
        return {name: p for own in self.regressions for name, p in own.p_values().items()}

    @property
    def names(self) -> list[str]:
        """Names of all estimates, which :meth:`influence` and `deciding_rows` take."""
        return [name for own in self.regressions for names, _ in own.kinds.values() for name in names]

    def _checked_kind(self, kind):
        kinds = list(self.regressions[0].kinds)
        if kind is None:
            return kinds[0]
        if kind not in kinds:
            raise ValueError(f"kind must be one of {', '.join(map(repr, kinds))}, got {kind!r}.")
        return kind

    def named(self, name):
        """The regression that has an estimate, its kind, and its function: (D,) -> value, (D,).

        Raises
        ------
        ValueError
            There is none of this name.
        """
        for regression in self.regressions:
            for kind, (names, function) in regression.kinds.items():
                if name in names:
                    return regression, kind, _Entry(function, names.index(name))
        raise ValueError(f"{name!r} names no estimate. There are {', '.join(self.names)}.")

    def conclusion(self, name, interval=None, side=0.0):
        """An estimate as `deciding_rows` takes it: RegressionConclusion."""
        regression, kind, entry = self.named(name)
        is_plain = isinstance(regression.of(kind).intervals, Symmetric)
        if interval is not None and not (regression.estimate.is_of_response and is_plain):
            raise ValueError(
                f"The interval of {name!r} is not by linear response, or not symmetric, so that rows that "
                "decide it are not sought. (a) Leave interval out. (b) Use method='lrvb', and an estimate "
                "that is no share."
            )
        return RegressionConclusion(regression.step, entry, name, interval, side)

    def influence(
        self, X: ArrayLike, *, name: str, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """How much every row moves an estimate at the fit: its derivative in the weight of the row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        name : str
            One of `names`, such as "slope[1,age]".

        sample_weight : array-like of shape (n_samples,), default=None
            The weights of X in the fit, where there were any.

        Returns
        -------
        influence : ndarray of shape (n_samples,)
            In units of the estimate, per row: through the clusters, and by the covariates and outcomes of
            the row. Minus this is the effect of leaving the row out, to first order. Averages stay over
            the covariates of all rows. NaN for rows that do not count. (Theory page "What explains the
            clusters".)

        Raises
        ------
        ValueError
            On an unknown name, or if X is not what the mixture was fitted to.
        """
        regression, _, entry = self.named(name)
        uncertainty = self.mixture._uncertainty
        given = self.mixture._given_rows(X, sample_weight, uncertainty.fitted)
        rows = given.counted()
        step = regression.step.seeing(rows)
        step.require_order(rows)
        information = uncertainty.source.information(1, rows=rows)
        _, slopes = entry(step.parameters)
        with uncertainty.source.threads():
            functions = step.influence_functions(uncertainty.targets, information, slopes[None])
        influence = np.full(given.n_given, np.nan)
        influence[given.which_count()] = influence_of_all(rows, functions)[:, 0]
        return influence

    def _note_lines(self):
        most = max(len(own.step.data.numbers) for own in self.regressions)
        rows = f"{self.n_rows}" + f" to {most}" * (most > self.n_rows)
        rows += f"; {self.n_left_out} left out" * (self.n_left_out > 0)
        return [("rows", rows), ("note", self.note)]


class _Entry:
    """One value of a function of the parameters, and its derivatives: (D,) -> float, (D,)."""

    def __init__(self, function, place):
        self._function, self._place = function, place

    def __call__(self, parameters):
        values, slopes = self._function(parameters)
        return float(values[self._place]), slopes[self._place]


def _shown(quantities, place, sign=""):
    """An estimate and its standard deviation as text."""
    value, sd = quantities.values[place], quantities.deviations[place]
    text = rounded(value, sd)
    return f"{'+' * bool(sign and value > 0)}{text} {_PLUS_MINUS} {rounded(sd, sd)}"


class CovariateEffects(ClusterRegression):
    """What explains the clusters (the result of ``covariate_effects``).

    Its display is a sentence, on what is sure by all tests together, and the average effects of every
    covariate. `summary` has three kinds of estimates:

    * ``"effects"``, such as "effect[1,age]": the slope of the share of cluster 1 in age, averaged over the
      rows; and "effect[1,sex=male]": the difference of its share if every row was male, and if every row was
      of the reference level;
    * ``"shares"``, such as "share[1,sex=male]": the share of cluster 1 if every row was male, and all else as
      it is; and "share[1]" as it is;
    * ``"coefficients"``, such as "slope[1,age]": of the log odds of cluster 1 against the reference, as in a
      multinomial logistic regression, in units of the covariate.

    See Also
    --------
    sklearn_lrvb.LRVBGaussianMixture.covariate_effects : Makes it.
    sklearn_lrvb.displays.CovariateEffectsDisplay : Draws it.

    Examples
    --------
    Who has long petals? Clusters are of the length and width of petals alone:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> iris = load_iris(as_frame=True)
    >>> X, sepals = iris.data.iloc[:, 2:], iris.data[["sepal length (cm)"]]
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> mixture.covariate_effects(X, sepals, method="lrvb").p_values["sepal length (cm)"] < 0.001
    True
    """

    @property
    def verdict(self) -> str:
        """What was found, in a sentence."""
        tests = self.p_values
        found = _sure(tests)
        if not found:
            return f"No covariate is known to tell clusters apart ({_surest(tests)})."
        listed = _joined([f"{name} ({p_in_words(p)})" for name, p in found.items()])
        (regression,) = self.regressions
        effects, settings = regression.of("effects"), regression.quantities.settings
        z = np.abs(effects.values) / np.maximum(effects.deviations, 1e-300)
        z, names = z.reshape(len(settings), -1), list(tests)
        is_found = np.array([names[own.covariate] in found for own in settings])
        is_sure = is_found & [not own.levels_named & regression.doubtful_levels.keys() for own in settings]
        z[~(is_sure if is_sure.any() else is_found)] = 0.0
        number, rank = divmod(int(z.argmax()), z.shape[1])
        own, cluster, change = settings[number], self.clusters[rank], _shown(effects, int(z.argmax()), "+")
        condition = (
            f"per unit of {own.name}"
            if own.reference is None
            else f"if all rows are {own.name} rather than {own.reference}"
        )
        return (
            f"Who is in which cluster depends on {listed}. Surest: the share of cluster {cluster} "
            f"changes by {change} {condition}."
        )

    def _lines(self):
        (regression,) = self.regressions
        effects, p_values = regression.of("effects"), list(self.p_values.values())
        lines = [("covariate", "average effect on the share of each cluster")]
        for number, own in enumerate(regression.quantities.settings):
            places = number * len(self.clusters) + np.arange(len(self.clusters))
            shown = [
                f"{k}: {_shown(effects, place, '+')}" for k, place in zip(self.clusters, places, strict=True)
            ]
            lines.append((f"{own.name} ({p_in_words(p_values[own.covariate])})", _some(shown)))
        return [*lines, *self._note_lines()]


class OutcomeDifferences(ClusterRegression):
    """What the clusters explain (the result of ``outcome_differences``).

    Its display is a sentence, on what is sure by all tests together, and the means of every outcome.
    `summary` has these kinds of estimates:

    * ``"means"``, such as "mean[1,age]", or "mean[1,smoker=yes]", the share of smokers in cluster 1; with
      covariates, if these were distributed alike in all clusters (standardized means);
    * ``"differences"``, such as "mean[1,age] - mean[0,age]", of all pairs of clusters;
    * ``"slopes"``, with covariates: such as "slope[age,income]", of an outcome, or of the share of a
      category, within clusters.

    See Also
    --------
    sklearn_lrvb.LRVBGaussianMixture.outcome_differences : Makes it.
    sklearn_lrvb.displays.OutcomeDifferencesDisplay : Draws it.

    Examples
    --------
    Do irises of two clusters by their petals differ in their sepals?

    >>> from sklearn.datasets import load_iris
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> iris = load_iris(as_frame=True)
    >>> X, sepals = iris.data.iloc[:, 2:], iris.data[["sepal length (cm)"]]
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> differences = mixture.outcome_differences(X, sepals, method="lrvb")
    >>> differences.summary("means")["estimate"].round(1).tolist()
    [6.3, 5.0]
    """

    @property
    def verdict(self) -> str:
        """What was found, in a sentence."""
        tests = self.p_values
        found = _sure(tests)
        if not found:
            return f"Clusters are not known to differ in any outcome ({_surest(tests)})."
        listed = _joined([f"{name} ({p_in_words(p)})" for name, p in found.items()])
        surest = []
        for own in self.regressions:
            if own.quantities.name in found:
                differences = own.of("differences")
                z = np.abs(differences.values) / np.maximum(differences.deviations, 1e-300)
                surest.append((z.max(), differences, int(z.argmax())))
        _, differences, place = max(surest, key=lambda own: own[0])
        return (
            f"Clusters differ in {listed}. Surest: {differences.names[place]} is "
            f"{_shown(differences, place, '+')}."
        )

    def _lines(self):
        lines = [("outcome", "mean, or share, in each cluster")]
        for own in self.regressions:
            means, quantities = own.of("means"), own.quantities
            p = p_in_words(self.p_values[quantities.name])
            for number, subject in enumerate(quantities.subjects):
                places = number + quantities.n_means * np.arange(len(quantities.labels))
                shown = [
                    f"{k}: {_shown(means, place)}" for k, place in zip(quantities.labels, places, strict=True)
                ]
                lines.append((f"{subject} ({p})", _some(shown)))
        return [*lines, *self._note_lines()]


def _some(shown):
    """The first of some texts, and that there are more."""
    return ", ".join(shown[:_MOST_SHOWN]) + ", ... summary()" * (len(shown) > _MOST_SHOWN)


def _surest(tests):
    """The test of the smallest p-value, in words."""
    known = {p: name for name, p in tests.items() if not np.isnan(p)}
    if not known:
        return "groups are too few for a test"
    return f"the surest is {known[min(known)]}, {p_in_words(min(known))}"


def _sure(tests):
    """p-values below 0.05 after Bonferroni's correction, by their names: dict."""
    return {name: p for name, p in tests.items() if p * len(tests) < LEVEL}


def _joined(parts):
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
