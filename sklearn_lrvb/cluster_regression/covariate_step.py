"""The second step of covariates: how the clusters depend on them (`structural_model`)."""

import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.linalg import null_space

from sklearn_lrvb.cluster_regression.estimation import (
    SecondStep,
    StepRows,
    p_value_of_square,
    response_to_clusters,
)
from sklearn_lrvb.cluster_regression.structural_model import StructuralData


class CovariateStep(SecondStep):
    """The regression of the clusters on covariates; without covariates, their weights in the rows.

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
        self._values, self._start, self._response = values, start, None

    @cached_property
    def data(self):
        """The rows that take part: StructuralData."""
        weights = self.rows.weights(self._values)
        numbers = np.flatnonzero(weights > 0)
        log_densities = np.ascontiguousarray(self._values[numbers, :-1].T)
        return StructuralData(log_densities, self.rows.along[numbers, 1:], weights[numbers], numbers)

    @cached_property
    def maximum(self):
        """The maximum of the likelihood: Maximum."""
        start = self._start
        if start is None:
            log_weights = self.posterior.expectations.log_weights[self.labels.index]
            start = self.model.start(np.exp(log_weights))
        return self.model.maximum(self.data, start)

    @property
    def parameters(self):
        """(D,)"""
        return self.maximum.parameters

    @property
    def inverse(self):
        """(D, D)"""
        return self.maximum.covariance

    @property
    def own_covariance(self):
        """(D, D)"""
        return self.maximum.covariance

    @property
    def of_one_row(self):
        """(D, D), zero."""
        return np.zeros_like(self.inverse)

    @property
    def n_rows_of_fit(self):
        """How often the rows of the fit count, whether or not they take part: float."""
        return float(self._values[:, -1].sum())

    @property
    def converged(self):
        """Whether the maximum was found."""
        return self.maximum.converged

    @property
    def of_prior(self):
        """What of the information on parameters is of the prior: (D,)."""
        return np.diag(self.inverse @ self.model.prior)

    def p_value(self, contrasts, covariance, freedom):
        """That some contrasts of the parameters (q, D) are zero, by the ratio of likelihoods.

        It is divided by the mean factor by which uncertain clusters, or rows that belong together, make
        variances larger (J. N. K. Rao and A. J. Scott, Annals of Statistics 12 (1984), 46-60). Unlike Wald's,
        the test holds where clusters are separated. NaN with fewer degrees of freedom than contrasts.
        """
        q, basis = len(contrasts), null_space(contrasts)
        own, whole = (contrasts @ each @ contrasts.T for each in (self.own_covariance, covariance))
        moved = self.own_covariance @ contrasts.T @ np.linalg.solve(own, contrasts @ self.parameters)
        start = basis @ (basis.T @ (self.parameters - moved))  # Where a quadratic has its maximum.
        ratio = 2.0 * (self.maximum.value - self.model.maximum(self.data, start, basis).value)
        square = max(ratio, 0.0) * q / np.trace(np.linalg.solve(own, whole))
        return p_value_of_square(square, q, freedom)

    # Rows: of these, `numbers` are places among those that count.

    def terms(self, numbers):
        """What the likelihood says of some rows, their design and weights: RowTerms, (n, P), (n,)."""
        values, matrix = self._values[numbers], self.rows.along[numbers, 1:]
        terms = self.model.row_terms(self.parameters, values[:, :-1].T, matrix)
        return terms, matrix, values[:, -1] * self.rows.along[numbers, 0]

    @property
    def n_of_row(self):
        """Numbers that are made of a row: int."""
        model = self.model
        return model.n_labels * (model.size + 2 * model.n_predictors)

    def score_of_rows(self, numbers):
        """s, (n, D)"""
        return self.model.score_of_rows(*self.terms(numbers)[:2])

    def score(self, log_densities):
        """The sum of s, (D,), with log densities (L, n) of the rows that take part."""
        return self.model.score(self.parameters, replace(self.data, log_densities=log_densities))

    def responses(self, numbers):
        """How the score responds to log densities of some rows: (D, L, n)."""
        terms, matrix, weights = self.terms(numbers)
        changes = terms.changes * weights
        responses = changes[:, None] * matrix.T[None, :, None]  # A predictor and a column.
        return responses.reshape(-1, *changes.shape[1:])[: self.model.size]

    def response(self, targets):
        """C, how the score responds to the coefficients of the fit: (D, number of these)."""
        if self._response is None:
            self._response = response_to_clusters(self.seeing(None), self, targets)
        return self._response

    def with_values(self, values, posterior=None):
        """The same second step with other `StepRows.values`, and perhaps of another fit: CovariateStep."""
        posterior = self.posterior if posterior is None else posterior
        return CovariateStep(self.rows, posterior, self.labels, self.model, values, self.parameters)

    def seeing(self, rows):
        """The same second step of the same rows, passed again, or of none: CovariateStep."""
        step = copy.copy(self)
        step.rows = replace(self.rows, rows=rows)
        return step

    def on(self, rows, numbers):
        """The second step of some of the rows: CovariateStep.

        Parameters
        ----------
        rows : ArrayRows, the chosen ones
        numbers : int array, their numbers among those that count
        """
        own = StepRows(rows, np.ones(len(numbers), dtype=bool), self.rows.along[numbers])
        return CovariateStep(own, self.posterior, self.labels, self.model, self._values[numbers])

    def require_order(self, rows):
        """Raise ValueError unless the rows come in the order of the covariates and outcomes."""
        values = self.rows.values(rows, self.posterior, self.labels)
        if not np.allclose(values, self._values, rtol=1e-6, atol=1e-6):
            raise ValueError(
                "X has the rows of the fit in another order than that of the covariates and outcomes, or "
                "other weights: pass X as it was passed for these."
            )
