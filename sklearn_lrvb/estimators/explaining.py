"""What explains the clusters of a mixture, and what they explain: `covariate_effects`, `outcome_differences`.

The methods of estimators pass what users give; here it is checked, and becomes second steps with error bars
(`cluster_regression`).
"""

import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from sklearn_lrvb.answers.error_bars import FEW_GROUPS, Exact, answer_of_posterior, are_given
from sklearn_lrvb.answers.groups import groups_that_count
from sklearn_lrvb.cluster_regression.designs import (
    GivenTable,
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
    SecondStep,
    StepRows,
    mean_values,
    sandwich,
)
from sklearn_lrvb.cluster_regression.outcomes import outcome_of
from sklearn_lrvb.cluster_regression.quantities import CovariateQuantities, OutcomeQuantities
from sklearn_lrvb.cluster_regression.results import Regression, notes_on
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

    def regression(self, covariates, column=None, y=None):
        """The second step with error bars: Regression.

        Parameters
        ----------
        covariates : GivenTable or None
        column, y : a column of outcomes and its values (n,), or None
        """
        used = self.values[:, -1] > 0
        if covariates is not None:
            used &= covariates.is_complete
        if y is not None:
            used &= ~np.isnan(y)
        if used.sum() < 2:
            raise ValueError(
                f"{used.sum()} of {len(used)} rows have values of all covariates and of the outcome, and two "
                "are needed: leave out columns that are mostly missing."
            )
        weights = self.values[used, -1]
        design = no_covariates(used.sum())
        if covariates is not None:
            design = design_of(covariates.along(used), weights, self.choices.levels or {})
        matrix = design.matrix(design.table.values)
        along, outcome = np.zeros((len(used), 2 + design.size)), None
        along[used, 0], along[used, 1:-1] = 1.0, matrix
        if y is not None:
            require_levels(column, y[used], "outcome")
            outcome = outcome_of(column, y[used], weights)
            along[used, -1] = outcome.scaled(y[used])
        moments = (matrix * weights[:, None]).T @ matrix / weights.sum()
        model = StructuralModel(self.labels.n_clusters, self.labels.has_noise, moments, outcome)
        rows = StepRows(self.rows, self.which, along)
        step = SecondStep(rows, self.posterior, self.labels, model, self.values)
        reported, estimate = self._estimated(step)
        if outcome is None:
            quantities = CovariateQuantities(model, design, step.data, self.labels.clusters)
        else:
            quantities = OutcomeQuantities(model, column.name, design, step.data, self.labels)
        alone = None
        if outcome is not None:
            model = StructuralModel(self.labels.n_clusters, self.labels.has_noise, moments)
            alone = SecondStep(rows, self.posterior, self.labels, model, self.values).seeing(None)
        codes = self._codes_of_groups
        codes = None if codes is None else codes[step.data.numbers]
        return Regression(step.seeing(None), reported.seeing(None), estimate, quantities, alone, codes)

    def _estimated(self, step):
        """The second step that is reported, and its parameters with error bars: SecondStep, Estimate."""
        drawn = self._drawn(step.rows) if self.groups is None else ()
        if drawn:
            reported, covariance = step.under_draws(*drawn)
            n_draws = len(drawn[0].draws)
            known = f"How uncertain clusters are is known from {n_draws} draws"
            known += " in which all clusters are there" * (n_draws < N_DRAWS)
            note = f"{known}. {self.answer.note}"
            return reported, Estimate(reported.maximum.parameters, covariance, np.inf, note)
        targets = self.uncertainty.targets
        information = self.uncertainty.source.information(step.model.size, rows=self.rows)
        if self.groups is None:
            covariance = step.covariance(targets, information)
            note = _WITHOUT_DRAWS if isinstance(self.answer, Exact) else self.answer.note
            return step, Estimate(step.maximum.parameters, covariance, np.inf, note, True)
        functions = step.influence_functions(targets, information)
        covariance, freedom = sandwich(self.rows, functions, self.groups), self.groups.degrees_of_freedom
        return step, Estimate(step.maximum.parameters, covariance, freedom, self._note_of_groups())

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
        """The group of every row that counts, int array, or None where rows are independent."""
        if self.groups is None or len(self.groups) == len(self.values):
            return None
        codes = np.asarray(self.groups.codes)
        return codes if len(codes) == len(self.values) else codes[self.which]

    def direct_effects(self, regressions, covariates, outcomes):
        """Direct effects, the surest first: tuple of DirectEffect.

        Every outcome is tested in its own second step: clusters given one outcome do not know of another.

        Parameters
        ----------
        regressions : list of Regression
        covariates, outcomes : GivenTable or None
        """
        names, generator, found = self.mixture._feature_names, np.random.RandomState(self.seed), []
        for number, own in enumerate(regressions):
            parts = [covariates] * (covariates is not None)
            parts += [] if outcomes is None else [outcomes.column(number)]
            step, table = own.step.seeing(self.rows), GivenTable.joined(parts)
            rows = self.uncertainty, self.given
            found += direct_effects(rows, step, (names, table), self._codes_of_groups, generator)
        found = [replace(own, p_value=min(1.0, len(found) * own.p_value)) for own in found]
        return tuple(sorted(found, key=lambda own: own.p_value))

    def result(self, made, regressions, covariates=None, outcomes=None):
        """The result of a class, of some regressions and the tables on which they are."""
        n_rows = min(len(own.step.data.numbers) for own in regressions)
        n_left_out = len(self.values) - n_rows
        direct = self.direct_effects(regressions, covariates, outcomes)
        notes = notes_on(regressions, n_left_out, direct)
        codes = [
            own.name for table in (covariates, outcomes) if table for own in table.columns if own.may_be_codes
        ]
        if codes:
            notes.append(
                f"Taken for measurements: {', '.join(map(repr, codes))}. If whole numbers are codes or "
                f"counts, say columns={{{codes[0]!r}: 'categorical'}} or 'count'."
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
