"""What explains the clusters, and what they explain: the answers of two methods of an estimator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, fdtrc

from sklearn_lrvb.cluster_regression.conclusion import RegressionConclusion
from sklearn_lrvb.cluster_regression.direct_effects import DirectEffect
from sklearn_lrvb.cluster_regression.estimation import (
    Estimate,
    SecondStep,
    influence_of_all,
)
from sklearn_lrvb.cluster_regression.quantities import Quantities
from sklearn_lrvb.cluster_regression.robust_means import RobustMeans
from sklearn_lrvb.reports import SentenceAndNumbers, require_interval, required_pandas
from sklearn_lrvb.reports.rounding import p_in_words, rounded

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05  # Of all tests together, below which an effect is told as one.
_PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
_MOST_SHOWN = 4  # Effects of a covariate, or clusters, on a line of the display.
# Standard deviations between means of an outcome and those by least squares, from which on its distribution
# is told to be wrong; and the least share of the variance that it takes away.
_MOST_MOVED, _LEAST_GAIN = 3.0, 0.1
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
    alone : SecondStep on the same rows without the outcome, or None
    codes : int array (n,), groups of the rows that take part, or None
    """

    step: SecondStep
    reported: SecondStep
    estimate: Estimate
    quantities: Any
    alone: SecondStep | None = None
    codes: NDArray[np.intp] | None = None

    @cached_property
    def kinds(self):
        """What users can ask for: dict of names, function and scale of intervals."""
        return self.quantities.kinds()

    @cached_property
    def _known(self):
        return {}

    def of(self, kind):
        """Quantities of a kind: Quantities."""
        if kind not in self._known:
            names, function, link = self.kinds[kind]
            values, covariance = self.estimate.of(function)
            self._known[kind] = Quantities(names, values, covariance, link, self.estimate.freedom)
        return self._known[kind]

    @cached_property
    def robust(self):
        """The means of an outcome by least squares: RobustMeans."""
        return RobustMeans.of(self.step, self.alone, self.codes)

    def p_values(self):
        """p-values by what is tested, covariates or the outcome: dict of float."""
        if self.alone is not None:
            return {self.quantities.name: self.robust.p_value(self.estimate.freedom)}
        return {name: self._p_value(contrasts) for name, contrasts in self.quantities.tests().items()}

    def _p_value(self, contrasts):
        """That some contrasts of the parameters (q, D) are zero, by the ratio of likelihoods.

        It is divided by the mean factor by which uncertain clusters, or rows that belong together, make
        variances larger (J. N. K. Rao and A. J. Scott, Annals of Statistics 12 (1984), 46-60). Unlike Wald's,
        the test holds where clusters are separated. NaN with fewer degrees of freedom than contrasts.
        """
        maximum, q = self.reported.maximum, len(contrasts)
        ratio = 2.0 * (maximum.value - self.reported.value_where_zero(contrasts))
        own, whole = (
            contrasts @ each @ contrasts.T for each in (maximum.covariance, self.estimate.covariance)
        )
        square = max(ratio, 0.0) * q / np.trace(np.linalg.solve(own, whole))
        freedom = self.estimate.freedom
        if np.isinf(freedom):
            return float(chdtrc(q, square))
        rest = freedom - q + 1.0
        return float(fdtrc(q, rest, square * rest / (freedom * q))) if rest > 0 else np.nan

    @property
    def is_of_prior(self):
        """Which parameters are as large as they are because of the prior, bool array (D,)."""
        maximum = self.reported.maximum
        return np.diag(maximum.covariance @ maximum.prior) > _SHARE_OF_PRIOR

    @property
    def has_other_distribution(self):
        """Whether the means of an outcome are too far from those by least squares for its distribution.

        If it is right, the variance of the difference is that of the variances (J. A. Hausman, Econometrica
        46 (1978), 1251-1271).
        """
        model = self.step.model
        if self.alone is None or not model.outcome.is_checked:
            return False
        maximum, order = self.step.maximum, np.argsort(self.step.labels.clusters)
        K, scale = len(order), model.outcome.scale
        values, slopes = (own[:K] for own in self.quantities.means(maximum.parameters))
        own = np.einsum("kd,de,ke->k", slopes, maximum.covariance, slopes)
        other = np.square(scale) * np.diag(self.robust.covariance[:K, 0, :K, 0])[order]
        means = model.outcome.centre + scale * self.robust.means[order, 0]
        variance = np.maximum(other - own, _LEAST_GAIN * other)
        return bool((np.abs(values - means) > _MOST_MOVED * np.sqrt(variance)).any())

    @cached_property
    def doubtful_levels(self):
        """Levels of covariates with few rows, as they are named in effects, and their rows: dict."""
        design, weights = self.quantities.design, self.step.data.weights
        counts = {
            column.name: float(weights[design.table.values[:, column.covariate] == column.level].sum())
            for column in design.columns
            if column.level is not None
        }
        return {name: count for name, count in counts.items() if count < _ROWS_OF_A_LEVEL}

    @property
    def rows_of_clusters(self):
        """Expected rows of the clusters among those that take part, in the order of the step: (K,)."""
        return self.reported.maximum.counts[: self.step.labels.n_clusters]


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
        Rows that take part.
    n_left_out : int
        Rows that count, but lack a covariate or an outcome.
    note : str
        Where error bars come from, how far to trust them, and what is doubtful.
    direct_effects : tuple of DirectEffect
        Dependence of every covariate or outcome and every column of X within clusters, which the method takes
        not to exist; the surest first.
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

        Each is of its own test; that of an outcome holds whatever its distribution. With fewer groups than
        what is tested there is none (NaN).
        """
        return {name: p for own in self.regressions for name, p in own.p_values().items()}

    @property
    def names(self) -> list[str]:
        """Names of all estimates, which :meth:`influence` and `deciding_rows` take."""
        return [name for own in self.regressions for names, *_ in own.kinds.values() for name in names]

    def _checked_kind(self, kind):
        kinds = list(self.regressions[0].kinds)
        if kind is None:
            return kinds[0]
        if kind not in kinds:
            raise ValueError(f"kind must be one of {', '.join(map(repr, kinds))}, got {kind!r}.")
        return kind

    def named(self, name):
        """The regression that has an estimate, and its function of the parameters: (D,) -> value, (D,).

        Raises
        ------
        ValueError
            There is none of this name.
        """
        for regression in self.regressions:
            for names, function, _ in regression.kinds.values():
                if name in names:
                    return regression, _Entry(function, names.index(name))
        raise ValueError(f"{name!r} names no estimate. There are {', '.join(self.names)}.")

    def conclusion(self, name, interval=None, side=0.0):
        """An estimate as `deciding_rows` takes it: RegressionConclusion."""
        regression, entry = self.named(name)
        is_plain = any(name in names and link == "identity" for names, _, link in regression.kinds.values())
        if interval is not None and not (regression.estimate.is_of_response and is_plain):
            raise ValueError(
                f"The interval of {name!r} is not by linear response, or not symmetric, so that rows that "
                "decide it are not sought. (a) Leave interval out. (b) Ask for coefficients or effects by "
                "method='lrvb'."
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
        regression, entry = self.named(name)
        uncertainty = self.mixture._uncertainty
        given = self.mixture._given_rows(X, sample_weight, uncertainty.fitted)
        rows = given.counted()
        step = regression.step.seeing(rows)
        step.require_order(rows)
        information = uncertainty.source.information(1, rows=rows)
        _, slopes = entry(step.maximum.parameters)
        with uncertainty.source.threads():
            functions = step.influence_functions(uncertainty.targets, information, slopes[None])
        influence = np.full(given.n_given, np.nan)
        influence[given.which_count()] = influence_of_all(rows, functions)[:, 0]
        return influence

    def _note_lines(self):
        rows = f"{self.n_rows}" + f"; {self.n_left_out} left out" * (self.n_left_out > 0)
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
        effects = self.regressions[0].of("effects")
        z = np.abs(effects.values) / np.maximum(effects.deviations, 1e-300)
        doubtful = self.regressions[0].doubtful_levels
        z[[_covariate_of(name, tests) not in found for name in effects.names]] = 0.0
        z[[_parts_of(name)[1] in doubtful for name in effects.names]] *= 1e-6  # The last resort.
        place = int(z.argmax())
        cluster, what = _parts_of(effects.names[place])
        reference = self.regressions[0].quantities.reference_of(what)
        change = (
            f"if all rows are {what} rather than {reference}"
            if reference is not None
            else f"per unit of {what}"
        )
        return (
            f"Who is in which cluster depends on {listed}. Surest: the share of cluster {cluster} changes by "
            f"{_shown(effects, place, '+')} {change}."
        )

    def _lines(self):
        effects, lines, tests = self.regressions[0].of("effects"), [], self.p_values
        by_setting = {}
        for place, name in enumerate(effects.names):
            cluster, what = _parts_of(name)
            by_setting.setdefault(what, []).append(f"{cluster}: {_shown(effects, place, '+')}")
        lines.append(("covariate", "average effect on the share of each cluster"))
        for what, own in by_setting.items():
            more = ", ... summary()" * (len(own) > _MOST_SHOWN)
            p = p_in_words(tests[_covariate_of(f"effect[0,{what}]", tests)])
            lines.append((f"{what} ({p})", ", ".join(own[:_MOST_SHOWN]) + more))
        return [*lines, *self._note_lines()]


class OutcomeDifferences(ClusterRegression):
    """What the clusters explain (the result of ``outcome_differences``).

    Its display is a sentence, on what is sure by all tests together, and the means of every outcome.
    `summary` has these kinds of estimates:

    * ``"means"``, such as "mean[1,age]", or "mean[1,smoker=yes]", the share of smokers in cluster 1; with
      covariates, if these were distributed alike in all clusters (standardized means);
    * ``"differences"``, such as "mean[1,age] - mean[0,age]", of all pairs of clusters;
    * ``"slopes"``, with covariates: such as "slope[age,income]", of an outcome within clusters, on the log
      odds of categories, the logarithm of counts, or the outcome itself.

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
        moving = [own.quantities.name for own in self.regressions if own.has_other_distribution]
        doubt = " But its size is wrong: see the note." * any(name in found for name in moving)
        return (
            f"Clusters differ in {listed}. Surest: {differences.names[place]} is "
            f"{_shown(differences, place, '+')}.{doubt}"
        )

    def _lines(self):
        tests = self.p_values
        lines = [("outcome", "mean, or share, in each cluster")]
        for own in self.regressions:
            means = own.of("means")
            by_what = {}
            for place, name in enumerate(means.names):
                cluster, what = _parts_of(name)
                by_what.setdefault(what, []).append(f"{cluster}: {_shown(means, place)}")
            for what, parts in by_what.items():
                more = ", ... summary()" * (len(parts) > _MOST_SHOWN)
                p = p_in_words(tests[own.quantities.name])
                lines.append((f"{what} ({p})", ", ".join(parts[:_MOST_SHOWN]) + more))
        return [*lines, *self._note_lines()]


def _parts_of(name):
    """The cluster and the rest of a name such as "effect[1,age]": two of str."""
    cluster, _, what = name[name.index("[") + 1 : -1].partition(",")
    return cluster, what


def _covariate_of(name, covariates):
    """The covariate of the name of an effect: str."""
    what = _parts_of(name)[1]
    return (
        what
        if what in covariates
        else max((own for own in covariates if what.startswith(f"{own}=")), key=len)
    )


def _surest(tests):
    """The test of the smallest p-value, in words."""
    p, name = min((p, name) for name, p in tests.items() if p == p or len(tests) == 1)
    return f"the surest is {name}, {p_in_words(p)}"


def _sure(tests):
    """p-values below 0.05 after Bonferroni's correction, by their names: dict."""
    return {name: p for name, p in tests.items() if p * len(tests) < LEVEL}


def _joined(parts):
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def notes_on(regressions, n_left_out, direct):
    """What is doubtful about some regressions, and what to do: list of sentences."""
    notes = []
    if n_left_out:
        notes.append(f"{n_left_out} row(s) lack a covariate or an outcome, and are left out.")
    for own in regressions:
        name = "" if own.quantities.name is None else f" of {own.quantities.name!r}"
        model = own.step.model
        if not own.reported.maximum.converged:
            notes.append(f"The regression{name} did not converge: its numbers are rough.")
        n_own = model.n_columns if own.quantities.name is None else model.n_of_outcome
        counts = own.rows_of_clusters
        few = np.flatnonzero(counts < _ROWS_OF_A_COEFFICIENT * n_own)
        if few.size:
            least = few[counts[few].argmin()]
            notes.append(
                f"Cluster {own.step.labels.clusters[least]} has {counts[least]:.0f} rows for {n_own} "
                f"coefficient(s){name}: its error bars are rough."
            )
        if own.has_other_distribution:
            notes.append(
                f"Within clusters {own.quantities.name!r} is not distributed as was assumed: its means are "
                "wrong, its p-value holds. Take logarithms or square roots, or a few categories."
            )
        levels = own.doubtful_levels
        if levels:
            least = min(levels, key=levels.get)
            notes.append(
                f"Level {least!r} has {levels[least]:.0f} row(s): its effects and their error bars are rough."
            )
        decided = own.quantities.named_parameters(own.is_of_prior)
        if decided:
            some = f"{', '.join(decided[:3])}{', ...' * (len(decided) > 3)}"
            notes.append(
                f"The rows alone do not bound {some} (clusters are separated, or rows are few): a weak prior "
                "does. Their sizes are the prior's; error bars next to them, also of effects, are rough."
            )
    notes += [own.sentence for own in direct[:1] if own.p_value < LEVEL]
    return notes
