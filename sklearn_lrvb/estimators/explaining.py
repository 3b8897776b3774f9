"""What explains the clusters of a mixture, and what they explain: `covariate_effects`, `outcome_differences`.

The methods of estimators pass what users give; here it is checked, and becomes second steps with error bars
(`cluster_regression`).
"""

import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from sklearn_lrvb.answers.error_bars import FEW_GROUPS, Exact, answer_of_posterior, are_given
from sklearn_lrvb.answers.groups import groups_that_count
from sklearn_lrvb.cluster_regression.covariate_step import CovariateStep
from sklearn_lrvb.cluster_regression.designs import (
    array_names,
    design_of,
    given_table,
    no_covariates,
    refuse_columns_of,
    require_levels,
    table_of,
)
from sklearn_lrvb.cluster_regression.direct_effects import direct_effects
from sklearn_lrvb.cluster_regression.estimation import (
    N_DRAWS,
    Estimate,
    Labels,
    StepRows,
    mean_values,
    sandwich,
    under_draws,
)
from sklearn_lrvb.cluster_regression.outcome_step import Outcome, OutcomeStep
from sklearn_lrvb.cluster_regression.quantities import CovariateQuantities, OutcomeQuantities
from sklearn_lrvb.cluster_regression.results import LEVEL, Regression
from sklearn_lrvb.cluster_regression.structural_model import StructuralModel
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.rows import row_groups


@dataclass(frozen=True)
class Choices:
    """How a user wants it to be done; attributes as the arguments of the methods.

    Attributes
    ----------
    columns, levels, method, design, seed : types of columns, reference levels, method of error bars, (groups,
        strata, strata_sizes), and seed
    """

    columns: Any
    levels: Any
    method: str
    design: tuple
    seed: Any

    def __post_init__(self):
        if are_given(self.design) and self.method not in ("auto", "sandwich"):
            raise ValueError(
                f"method={self.method!r} takes rows as independent, and groups say that they are not: use "
                "method='sandwich', or leave groups out."
            )


_WITHOUT_DRAWS = (
    "Linear response: in most draws of the exact posterior a cluster has next to no rows. Error bars hold if "
    "all clusters are there; number_of_clusters says how sure that is."
)
_LEAST_SHARE = 0.25  # Of a cluster's weight in the fit, which it has in draws where it is there.


class ClusterRegressions:
    """Second steps of a fitted mixture on some rows.

    Parameters
    ----------
    mixture : estimator of a mixture, fitted
    given : Rows, the training rows as the user has passed them
    choices : Choices
    reference : int or None, the cluster with which others are compared; None is the first
    """

    def __init__(self, mixture, given, choices, reference=None):
        # A copy is not changed by another fit.
        self.mixture, self.given, self.choices = copy.copy(mixture), given, choices
        self.uncertainty = mixture._uncertainty
        self.posterior = self.uncertainty.fitted.posterior
        self.rows, self.which = given.counted(), given.which_count()
        self.uncertainty.source.check_training_rows(self.rows)
        self.labels = Labels.of(self.posterior, _checked_reference(self.posterior, reference))
        self.seed = 0 if choices.seed is None else choices.seed
        self.groups = None
        if choices.method == "sandwich" or are_given(choices.design):
            groups = row_groups(given, *choices.design).along_counted(given, self.rows)
            self.groups = groups_that_count(self.rows, self.posterior, groups)
        nothing = np.empty((self.which.sum(), 0))
        self.values = StepRows(self.rows, self.which, nothing).values(self.rows, self.posterior, self.labels)
        self._answer = self._draws = None
        self._steps = {}  # Columns of outcomes without missing values have one.

    def tables(self, **tables):
        """Covariates and outcomes along the rows that count, by names of arguments: list of GivenTable."""
        tables = {owner: table_of(table, owner) for owner, table in tables.items()}
        if self.choices.levels and "covariates" not in tables:
            raise ValueError("levels are those of covariates: pass covariates too.")
        kinds, made = _kinds_by_table(self.choices.columns, tables), []
        for owner, table in tables.items():
            given = given_table(table, kinds[owner], self.given.n_given, owner)
            names = self.mixture._feature_names if hasattr(self.mixture, "feature_names_in_") else None
            refuse_columns_of(self.given, names, given, owner)
            made.append(given.along(self.which))
        repeated = [name for name in made[0].names if len(made) > 1 and name in made[1].names]
        if repeated:
            raise ValueError(
                f"{repeated[0]!r} is a column of outcome and of covariates: leave it out of one."
            )
        return made

    def of_covariates(self, covariates):
        """The regression of the clusters on covariates: list of one Regression."""
        step, design = self._step_of(covariates, self.values[:, -1] > 0)
        quantities = CovariateQuantities(step.model, design, step.data, self.labels.clusters)
        return self._regressions([step], [quantities])

    def of_outcomes(self, outcomes, covariates=None):
        """The means of outcomes in the clusters: list of Regression.

        Parameters
        ----------
        outcomes : GivenTable
        covariates : GivenTable or None, for which they are adjusted
        """
        steps, quantities = [], []
        for column, y in zip(outcomes.columns, outcomes.values.T, strict=True):
            clusters, design = self._step_of(covariates, (self.values[:, -1] > 0) & ~np.isnan(y))
            require_levels(column, y[clusters.data.numbers], "outcome")
            step = OutcomeStep.of(clusters, Outcome.of(column, y, clusters.rows.weights(self.values)))
            steps.append(step)
            quantities.append(OutcomeQuantities(step.outcome, design, self.labels, clusters.maximum.counts))
        return self._regressions(steps, quantities)

    def _regressions(self, steps, quantities):
        """Second steps with their error bars: list of Regression."""
        drawn = self._drawn(steps[0].rows) if self.groups is None else ()
        if drawn:
            reported, covariances = under_draws(steps, *drawn)
            n_draws = len(drawn[0].draws)
            known = f"How uncertain clusters are is known from {n_draws} draws"
            known += " in which all clusters are there" * (n_draws < N_DRAWS)
            note = f"{known}. {self.answer.note}"
            estimates = [
                Estimate(step.parameters, covariance, np.inf, note)
                for step, covariance in zip(reported, covariances, strict=True)
            ]
        else:
            reported, estimates = steps, [self._estimated(step) for step in steps]
        return [
            Regression(step.seeing(None), own.seeing(None), estimate, own_quantities)
            for step, own, estimate, own_quantities in zip(
                steps, reported, estimates, quantities, strict=True
            )
        ]

    def _step_of(self, covariates, used):
        """The second step of covariates or of none, on some rows (n,), and its design."""
        used = used if covariates is None else used & covariates.is_complete
        if used.sum() < 2:
            raise ValueError(
                f"{used.sum()} of {len(used)} rows have values of all covariates and of the outcome, and two "
                "are needed: leave out columns that are mostly missing."
            )
        key = covariates is None, used.tobytes()
        known = self._steps.get(key)
        if known is None:
            weights, design = self.values[used, -1], no_covariates(used.sum())
            if covariates is not None:
                design = design_of(covariates.along(used), weights, self.choices.levels or {})
            along = np.zeros((len(used), 1 + design.size))
            along[used, 0], along[used, 1:] = 1.0, design.matrix(design.table.values)
            moments = (along[used, 1:] * weights[:, None]).T @ along[used, 1:] / weights.sum()
            model = StructuralModel(self.labels.n_clusters, self.labels.has_noise, moments)
            rows = StepRows(self.rows, self.which, along)
            known = CovariateStep(rows, self.posterior, self.labels, model, self.values), design
            self._steps[key] = known
        return known

    def _estimated(self, step):
        """The parameters of a second step with error bars by linear response: Estimate."""
        targets = self.uncertainty.targets
        information = self.uncertainty.source.information(len(step.parameters), rows=self.rows)
        if self.groups is None:
            covariance = step.covariance(targets, information)
            note = _WITHOUT_DRAWS if isinstance(self.answer, Exact) else self.answer.note
            return Estimate(step.parameters, covariance, np.inf, note, True)
        functions = step.influence_functions(targets, information)
        covariance = sandwich(self.rows, functions, self.groups)
        unseen = min(1.0, float(self.groups.factors().mean()))  # Of a finite population.
        covariance += unseen * step.inverse @ step.of_one_row @ step.inverse
        return Estimate(step.parameters, covariance, self.groups.degrees_of_freedom, self._note_of_groups())

    def _drawn(self, rows):
        """Draws of the clusters, DrawnParameters, and `mean_values` under them; empty where there are none.

        A draw in which a cluster has next to no rows is left out: its density says nothing about the
        cluster of the fit. If that is most draws, there are none.
        """
        if self._draws is None and isinstance(self.answer, Exact):
            parameters = self.answer.parameters(N_DRAWS, np.random.RandomState(self.seed))
            held = self.labels.index[: self.labels.n_clusters]
            least = _LEAST_SHARE * np.exp(self.posterior.expectations.log_weights[held])
            kept = np.flatnonzero((parameters.weights[:, held] > least).all(axis=1))
            self._draws = ()
            if 2 * len(kept) >= N_DRAWS:
                parameters = parameters.with_draws(parameters.draws[kept])
                self._draws = parameters, mean_values(rows, self.labels, self.values, parameters)
        return self._draws or ()

    def _note_of_groups(self):
        """What is said of the sandwich: str."""
        parts = [f"Sandwich by {len(self.groups)} groups, by linear response, given the covariates."]
        if len(self.groups) < FEW_GROUPS:
            parts.append(
                f"With fewer than {FEW_GROUPS} groups intervals are too short; tests of more contrasts than "
                "groups have no p-value."
            )
        verdict = self.uncertainty.verdict
        if verdict is not None and verdict.state != "good":
            parts.append(verdict.sentence)
        return " ".join(parts)

    @property
    def answer(self):
        """What answers questions about the clusters: LinearResponse or Exact."""
        if self._answer is None:
            rows = self.mixture._counted_rows(self.given, self.uncertainty.fitted)
            self._answer = answer_of_posterior(self.mixture, self.choices.method, rows, self.choices.seed)
        return self._answer

    @property
    def _codes_of_groups(self):
        """The group of every row that counts, int array, or None where weights are numbers of rows."""
        if self.groups is None:
            return None
        codes = np.asarray(self.groups.codes)
        return codes if len(codes) == len(self.values) else codes[self.which]

    def direct_effects(self, regressions, covariates, outcomes):
        """Direct effects, the surest first: tuple of DirectEffect.

        Parameters
        ----------
        regressions : list of Regression
        covariates : GivenTable or None
        outcomes : whether regressions are of outcomes
        """
        steps = [own.step.seeing(self.rows) for own in regressions] if outcomes else []
        if covariates is not None:
            used = (self.values[:, -1] > 0) & covariates.is_complete
            clusters, _ = self._step_of(None, used)
            weights = clusters.rows.weights(self.values)
            steps += [
                OutcomeStep.of(clusters, Outcome.of(column, y, weights))
                for column, y in zip(covariates.columns, covariates.values.T, strict=True)
            ]
        names, generator = self.mixture._feature_names, np.random.RandomState(self.seed)
        return direct_effects(self.uncertainty, self.given, names, steps, self._codes_of_groups, generator)

    def _note_of_missing_values(self, regressions):
        left_out = {own.quantities.name: len(self.values) - len(own.step.data.numbers) for own in regressions}
        if len(set(left_out.values())) == 1:
            return f"{max(left_out.values())} row(s) lack a covariate or an outcome, and are left out."
        listed = ", ".join(f"{count} of {name!r}" for name, count in left_out.items())
        return f"Rows that lack a covariate or the outcome are left out: {listed}."

    def result(self, made, regressions, covariates=None, outcomes=None):
        """The result of a class, of some regressions and the tables on which they are."""
        n_rows = min(len(own.step.data.numbers) for own in regressions)
        n_left_out = len(self.values) - n_rows
        direct = self.direct_effects(regressions, covariates, outcomes is not None)
        notes = [self._note_of_missing_values(regressions)] * (n_left_out > 0)
        notes += dict.fromkeys(note for own in regressions for note in own.notes)
        notes += [own.sentence for own in direct[:1] if own.p_value < LEVEL]
        codes = [
            own.name for table in (covariates, outcomes) if table for own in table.columns if own.may_be_codes
        ]
        if codes:
            notes.append(
                f"Taken for numbers: {', '.join(map(repr, codes))}. If whole numbers are codes, say "
                f"columns={{{codes[0]!r}: 'categorical'}}."
            )
        if self.labels.has_noise and covariates is not None:
            notes.insert(
                0, "Noise is taken not to depend on covariates; shares are of the rows that are no noise."
            )
        return made(
            self.labels.clusters[0],
            sorted(self.labels.clusters),
            n_rows,
            n_left_out,
            " ".join([*notes, regressions[0].estimate.note]),
            direct,
            tuple(regressions),
            self.mixture,
        )


def _kinds_by_table(kinds, tables):
    """The types of columns that a user names, by the table that has these: dict of "auto" or dict.

    What is not named, but numbered or chosen by a callable, is of the first table, as is an unknown name.
    """
    if not isinstance(kinds, dict):
        return dict.fromkeys(tables, kinds)
    owners, first = {}, next(iter(tables))
    for owner, table in reversed(tables.items()):
        if hasattr(table, "columns"):
            owners |= {str(name): (owner, name) for name in table.columns}
        else:
            owners |= {
                name: (owner, place) for place, name in enumerate(array_names(owner, np.shape(table)[1]))
            }
    split = {owner: {} for owner in tables}
    for key, kind in kinds.items():
        for one in key if isinstance(key, tuple) else (key,):
            owner, own = owners.get(one, (first, one)) if isinstance(one, str) else (first, one)
            split[owner][own] = kind
    return split


def _checked_reference(posterior, reference):
    """The number of the reference cluster: int.

    Raises
    ------
    ValueError
        It holds no rows, or there is only one cluster that does.
    """
    held = np.flatnonzero(occupied(posterior.counts)).tolist()
    if len(held) < 2:
        raise ValueError(
            "All rows are in one cluster, so that there is nothing to explain. number_of_clusters says how "
            "many clusters there are."
        )
    reference = held[0] if reference is None else reference
    if not isinstance(reference, Integral) or reference not in held:
        raise ValueError(
            f"reference must be the number of a cluster that holds rows ({', '.join(map(str, held))}), got "
            f"{reference!r}."
        )
    return int(reference)
