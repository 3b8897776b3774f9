"""The second step at a fit, and what its estimates vary by.

Let eta be the coefficients of the fit, of which the clusters' log densities are linear functions, dl_nk =
h_k(x_n)' deta_k with the features h (`mixture.model.Coordinates`), and Sigma their covariance by linear
response. With the information I of the second step, its score s_n, and

    C = sum_n v_n sum_k (ds_n / dl_nk) h_k(x_n)',

    dgamma = I^-1 (change of the score + C deta),        Cov(gamma) = I^-1 + I^-1 C Sigma C' I^-1.

The two parts are uncorrelated in large samples, because the first step finds the clusters whatever their
weights are. C takes one pass over the rows, and Sigma C' one solve. The influence of a row of weight one is

    I^-1 (s_n + C M^-1 g_n),

with M^-1 g_n its influence on eta (`answers.influence`): its sums over groups give the sandwich.

Where linear response is not good, eta is drawn from the exact posterior. In place of C Sigma C' is then the
covariance of the score over the draws, at the maximum that belongs to the mean log densities over the draws.
(The mean of the maxima of all draws would be too small: draws are further from the truth than their mean is,
and errors of the clusters make effects smaller.) In both cases clusters are not moved by covariates and
outcomes, as in a *cut posterior* (M. Plummer, "Cuts in Bayesian graphical models", Statistics and Computing
25 (2015), 37-43).
"""

import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import null_space

from sklearn_lrvb.answers.groups import summed_by_group
from sklearn_lrvb.answers.targets import LogWeights
from sklearn_lrvb.cluster_regression.structural_model import StructuralData, StructuralModel
from sklearn_lrvb.mixture.e_step import expect_in_range
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.rows import Workload, batches
from sklearn_lrvb.sampling.likelihood import log_densities_of_draws

N_DRAWS = 200  # Of the exact posterior: of independent ones, standard deviations are known to 5 %.


@dataclass(frozen=True)
class Estimate:
    """What is known of the parameters of the second step.

    Attributes
    ----------
    parameters : (D,)
    covariance : (D, D)
    freedom : float, degrees of freedom of Student's t; infinite for the normal distribution
    note : str, where they come from, and how far to trust them
    is_of_response : bool, whether the covariance is by linear response at the fit
    """

    parameters: np.ndarray
    covariance: np.ndarray
    freedom: float
    note: str
    is_of_response: bool = False

    def of(self, function):
        """Values (m,) of a function of the parameters and their covariance (m, m), by the delta method.

        Parameters
        ----------
        function : callable (D,) -> values (m,), derivatives (m, D)
        """
        values, slopes = function(self.parameters)
        return values, slopes @ self.covariance @ slopes.T


@dataclass(frozen=True)
class Labels:
    """The labels that take part: components that hold rows, the reference first, and noise if there is any.

    Attributes
    ----------
    index : int array (L,), their numbers among the labels of the mixture
    n_clusters : int, K
    """

    index: np.ndarray
    n_clusters: int

    @classmethod
    def of(cls, posterior, reference):
        """Of a mixture, with a reference, the number of a component that holds rows."""
        held = np.flatnonzero(occupied(posterior.counts))
        ordered = [reference, *held[held != reference]]
        noise = range(posterior.n_components, posterior.n_labels)
        return cls(np.array([*ordered, *noise]), len(ordered))

    @property
    def has_noise(self):
        return len(self.index) > self.n_clusters

    @property
    def clusters(self):
        """Numbers of the components, the reference first: list of int."""
        return self.index[: self.n_clusters].tolist()


@dataclass(frozen=True, eq=False)
class StepRows:
    """The rows of a second step, and what it knows of them besides X.

    Attributes
    ----------
    rows : Rows, n of positive weight
    which : bool (n_given,), which of all rows that were given these are
    along : (n, P + 2), whether a row takes part, its design, and its outcome (zero where there is none)
    """

    rows: Any
    which: np.ndarray
    along: np.ndarray

    def values(self, rows, posterior, labels):
        """Log densities in some labels, and how often rows count: (n, L + 1).

        Parameters
        ----------
        rows : Rows, the same ones, perhaps with other weights
        posterior : posterior of a mixture
        labels : Labels
        """
        coordinates = posterior.model.coordinates(posterior)
        function = partial(_log_densities_and_counts, coordinates, labels.index)
        values = np.asarray(rows.each(function, (len(labels.index) + 1,), workload=coordinates.workload))
        return self.counted(values)

    def counted(self, values):
        """What belongs to the rows, without those that do not count, which rows in parts have too."""
        return values if len(values) == len(self.along) else values[self.which]

    def part(self, model, numbers):
        """Whether some rows take part, (n,), their design (n, P), and their outcomes (n,) or None."""
        along = self.along[numbers]
        y = along[:, -1].astype(model.outcome.dtype) if model.outcome else None
        return along[:, 0], along[:, 1:-1], y


class SecondStep:
    """The second step at one posterior.

    Parameters
    ----------
    rows : StepRows
    posterior : posterior of the fit
    labels : Labels
    model : StructuralModel
    values : (n, L + 1), `StepRows.values`
    start : (D,) or None, where the ascent starts
    """

    def __init__(self, rows, posterior, labels, model, values, start=None):
        self.rows, self.posterior, self.labels, self.model = rows, posterior, labels, model
        self._values, self._start, self._sensitivity = values, start, None

    @cached_property
    def data(self):
        """The rows that take part: StructuralData."""
        weights = self._values[:, -1] * self.rows.along[:, 0]
        numbers = np.flatnonzero(weights > 0)
        _, matrix, y = self.rows.part(self.model, numbers)
        return StructuralData(
            np.ascontiguousarray(self._values[numbers, :-1].T), matrix, y, weights[numbers], numbers
        )

    @cached_property
    def maximum(self):
        """The maximum of the second step at the fit: Maximum."""
        start = self._start
        if start is None:
            log_weights = self.posterior.expectations.log_weights[self.labels.index]
            start = self.model.start(self.data, np.exp(log_weights))
        return self.model.maximum(self.data, start)

    def value_where_zero(self, contrasts):
        """The maximum of log likelihood and log prior where some contrasts (q, D) of parameters are zero."""
        basis = null_space(contrasts)
        start = basis @ (basis.T @ self.maximum.parameters)
        return self.model.maximum(self.data, start, basis).value

    def at(self, rows, posterior):
        """The second step at another posterior, of the same rows with other weights: SecondStep."""
        values = self.rows.values(rows, posterior, self.labels)
        return SecondStep(self.rows, posterior, self.labels, self.model, values, self.maximum.parameters)

    def _terms(self):
        """How rows enter C and the influence: `_TermsOfBlock`."""
        coordinates = self.posterior.model.coordinates(self.posterior)
        weights = self._values[:, -1] * self.rows.along[:, 0]
        return _TermsOfBlock(
            coordinates, self.labels.index, self.model, self.rows, weights, self.maximum.parameters
        )

    def on(self, rows, numbers):
        """The same second step, seen on some of the rows: SecondStep, with the maximum of all.

        Parameters
        ----------
        rows : ArrayRows, the chosen ones
        numbers : int array, their numbers among those that count
        """
        own = StepRows(rows, np.ones(len(numbers), dtype=bool), self.rows.along[numbers])
        step = SecondStep(own, self.posterior, self.labels, self.model, self._values[numbers])
        step.maximum = self.maximum
        return step

    def seeing(self, rows):
        """The same second step of the same rows, passed again, or of none: SecondStep."""
        step = copy.copy(self)
        step.rows = replace(self.rows, rows=rows)
        return step

    def require_order(self, rows):
        """Raise ValueError unless the rows come in the order of the covariates and outcomes."""
        values = self.rows.values(rows, self.posterior, self.labels)
        if not np.allclose(values, self._values, rtol=1e-6, atol=1e-6):
            raise ValueError(
                "X has the rows of the fit in another order than that of the covariates and outcomes, or "
                "other weights: pass X as it was passed for these."
            )

    def sensitivity(self, targets):
        """C, how the score responds to the coefficients of the fit: (D, number of these)."""
        if self._sensitivity is None:
            self._sensitivity = response_to_clusters(self, targets)
        return self._sensitivity

    def influence_functions(self, targets, information, combinations=None):
        """The influence of rows on the parameters, or on combinations (m, D): StructuralInfluence."""
        change = self.maximum.covariance
        change = change if combinations is None else combinations @ change
        solved = information.solve((change @ self.sensitivity(targets)).T).T
        of_fit = self.posterior.model.influence_functions(self.posterior, solved)
        return StructuralInfluence(of_fit, change, self._terms())

    def covariance(self, targets, information):
        """Covariance of the parameters by linear response, (D, D)."""
        sensitivity = self.sensitivity(targets)
        return self._covariance(sensitivity @ information.solve(sensitivity.T))

    def _covariance(self, of_score):
        """That of the parameters, given that of the score which the uncertainty of clusters makes: (D, D)."""
        inverse = self.maximum.covariance
        return inverse + inverse @ (0.5 * (of_score + of_score.T)) @ inverse

    def under_draws(self, parameters, mean):
        """The second step at the mean log densities under draws of the clusters, and covariance there.

        Parameters
        ----------
        parameters : DrawnParameters
        mean : (n, L + 1), `mean_values` under the draws

        Returns
        -------
        step : SecondStep
        covariance : (D, D)
        """
        some, rows = np.ix_(self.data.numbers, self.labels.index), self.rows
        start = self.maximum.parameters
        step = SecondStep(rows, self.posterior, self.labels, self.model, mean, start)
        scores = []
        for values in log_densities_of_draws(rows.rows, parameters):
            data = replace(step.data, log_densities=rows.counted(values)[some].T)
            scores.append(self.model.score(step.maximum.parameters, data))
        return step, step._covariance(np.cov(np.stack(scores).T))


def mean_values(rows, labels, values, parameters):
    """`StepRows.values` with mean log densities under draws of the clusters: (n, L + 1).

    Parameters
    ----------
    rows : StepRows
    labels : Labels
    values : (n, L + 1), at the fit
    parameters : DrawnParameters
    """
    mean, n_draws = values.copy(), len(parameters.draws)
    mean[:, :-1] = 0.0
    for drawn in log_densities_of_draws(rows.rows, parameters):
        mean[:, :-1] += rows.counted(drawn)[:, labels.index] / n_draws
    return mean


def _own_log_densities(coordinates, labels, expectation):
    """Log densities of rows in some labels, without log weights: (L, n)."""
    log_weights = coordinates.posterior.expectations.log_weights
    return expectation.log_densities[labels] - log_weights[labels][:, None]


def _log_densities_and_counts(coordinates, labels, block):
    """Log densities of a block's rows, and how often rows with a value count: (L + 1, n)."""
    values = _own_log_densities(coordinates, labels, expect_in_range(coordinates, block))
    counts = block.counts.copy()
    counts[block.without_value] = 0.0
    return np.concatenate([values, counts[None]])


@dataclass(eq=False)
class _TermsOfBlock:
    """What the likelihood says of the rows of a block.

    Attributes
    ----------
    coordinates : Coordinates of the fit, for any rows
    labels : int array (L,)
    model : StructuralModel
    rows : StepRows
    weights : (n,), how often rows count in the second step
    parameters : (D,)
    """

    coordinates: Any
    labels: np.ndarray
    model: StructuralModel
    rows: StepRows
    weights: np.ndarray
    parameters: np.ndarray

    def __getstate__(self):
        # What travels to where rows are has no rows of its own.
        return {**vars(self), "rows": replace(self.rows, rows=None, which=None)}

    def workload(self, own):
        """Numbers that a row takes, besides those of another workload: Workload."""
        model = self.model
        size = model.n_labels * (model.size + 2 * model.n_predictors) + 3 * model.n_predictors**2
        return Workload(own.per_row + size, own.per_pattern, own.product)

    def __call__(self, block):
        """The E-step of the fit, RowTerms, whether rows take part (n,), and their design (n, P)."""
        expectation = expect_in_range(self.coordinates, block)
        used, matrix, y = self.rows.part(self.model, block.numbers)
        log_densities = _own_log_densities(self.coordinates, self.labels, expectation)
        return expectation, self.model.row_terms(self.parameters, log_densities, matrix, y), used, matrix


def response_to_clusters(step, targets, responses=None):
    """How sums over the rows respond to the coefficients of the fit: (m, number of these).

    Parameters
    ----------
    step : SecondStep
    targets : Targets at its posterior
    responses : (n, m, L) or None, how the sums respond to log densities of rows; None is the score
    """
    function = _Sensitivity(step._terms(), responses)
    matrix, sums = step.rows.rows.total(function, function.workload)
    by_label = np.zeros((len(sums), step.posterior.n_labels))
    by_label[:, step.labels.index] = sums
    # Log densities have no log weights.
    return matrix - _LogWeights(step.posterior, targets.origin).transposed_responses(by_label).T


class _LogWeights(LogWeights):
    """E log pi as log densities of rows have it, also where the weights do not sum to one."""

    @property
    def count_jacobian(self):
        return self.posterior.log_weight_covariance


@dataclass(eq=False)
class _Sensitivity:
    """How m sums respond to the coefficients over the rows of a block, and their responses by label.

    Attributes
    ----------
    terms : _TermsOfBlock
    responses : (n, m, L) or None, as in `response_to_clusters`
    """

    terms: _TermsOfBlock
    responses: np.ndarray | None

    @property
    def workload(self):
        return self.terms.workload(self.terms.coordinates.workload)

    def _of_score(self, block, terms, matrix):
        """Responses of the score of the parameters, (D, L, n)."""
        model = self.terms.model
        slopes = terms.in_log_densities * self.terms.weights[block.numbers]
        of_parameters = np.empty((model.size, model.n_labels, block.n_rows))
        for own, entries in zip(of_parameters, model.entries, strict=True):
            (q, p), *others = entries
            np.multiply(slopes[q], matrix[:, p], out=own)
            for q, p in others:
                own += slopes[q] * matrix[:, p]
        return of_parameters

    def _responses_of(self, block):
        """Whitened or coded rows of a block, and how m sums respond to their log densities: (m, L, n)."""
        if self.responses is None:
            expectation, terms, _, matrix = self.terms(block)
            return expectation.represented, self._of_score(block, terms, matrix)
        represented = expect_in_range(self.terms.coordinates, block).represented
        return represented, self.responses[block.numbers].transpose(1, 2, 0)

    def __call__(self, block):
        coordinates, posterior = self.terms.coordinates, self.terms.coordinates.posterior
        sensitivity, sums = 0.0, 0.0
        # The features of a row may be half a million numbers.
        places = batches(block.n_rows, 8 * max(map(len, posterior.coefficients_of_labels)))
        for place in places:
            part = block if len(places) == 1 else block.selected(np.r_[place])
            represented, responses = self._responses_of(part)
            if place.start == 0:
                sensitivity = np.zeros((len(responses), posterior.n_coefficients))
            for number, label in enumerate(self.terms.labels):
                features = coordinates.features(represented, label)
                sensitivity[:, posterior.coefficients_of_labels[label]] += responses[:, number] @ features.T
            sums = sums + responses.sum(axis=2)
        return sensitivity, sums


@dataclass(eq=False)
class StructuralInfluence:
    """d parameters / d weight of rows, (n, m), or of combinations of the parameters.

    Attributes
    ----------
    of_fit : influence functions of the change by the fit (`MixtureModel.influence_functions`)
    change : (m, D), by which scores are multiplied
    terms : _TermsOfBlock
    """

    of_fit: Any
    change: np.ndarray
    terms: _TermsOfBlock

    @property
    def workload(self):
        return self.terms.workload(self.of_fit.workload)

    @property
    def n_functions(self):
        return len(self.change)

    def values(self, block, out):
        """Weight influence of a block of n rows, written to (n, m)."""
        self.of_fit.values(block, out)
        _, terms, used, matrix = self.terms(block)
        out += (used[:, None] * self.terms.model.score_of_rows(terms, matrix)) @ self.change.T


def influence_of_all(rows, functions):
    """The influence of every row that counts, (n, m), wherever rows are."""
    parts = rows.map(partial(_numbered_influence, functions), functions.workload)
    numbers, values = map(np.concatenate, zip(*parts, strict=True))
    out = np.empty_like(values)
    out[numbers] = values
    return out


def _numbered_influence(functions, block):
    out = np.empty((block.n_rows, functions.n_functions))
    functions.values(block, out)
    return block.numbers, out


def sandwich(rows, functions, groups):
    """The covariance of the parameters from one sample of groups to another: (D, D).

    Parameters
    ----------
    rows : Rows of positive weight
    functions : StructuralInfluence
    groups : RowGroups, along the rows
    """
    function = partial(_influence_of_groups, functions, len(groups))
    sums = rows.total(function, functions.workload, groups.codes).of_all()
    n_groups = np.bincount(groups.strata, minlength=groups.n_strata)
    means = np.zeros((groups.n_strata, sums.shape[1]))
    np.add.at(means, groups.strata, sums)
    centred = sums - (means / n_groups[:, None])[groups.strata]
    return (groups.factors()[groups.strata, None] * centred).T @ centred


def _influence_of_groups(functions, n_groups, block, codes):
    return summed_by_group(block.weighted(_numbered_influence(functions, block)[1].T), codes, n_groups)
