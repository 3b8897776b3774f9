"""The second step of an outcome: its means in the clusters, by least squares on their probabilities.

If an outcome y tells about the columns of X through the cluster alone, and is linear in covariates w, then

    E[y_n | x_n, w_n] = sum_k r_nk mu_k + b'w_n = z_n' theta,    z_n = (r_n, w_n),    theta = (mu, b),

with r_nk = P(k | x_n, w_n) of the second step of covariates (without them, of the clusters' weights in these
rows). So least squares of y on z has the means for coefficients, whatever the distribution of y. (With
certain clusters they are means of groups; else it is the method of A. Bolck, M. Croon and J. Hagenaars,
Political Analysis 12 (2004), 3-27, with probabilities in place of labels.) The score of theta is

    s_n = z_n e_n,    e_n = y_n - z_n' theta,
    ds_n / dl_nk = (dz_n / dl_nk) e_n - z_n r_nk (mu_k - sum_j r_nj mu_j).

r depends on the parameters gamma of the second step of covariates, too. With B the derivative of the score of
theta in gamma, and I_gamma^-1 their inverse information, the score of a row is then s_n + B I_gamma^-1
s_n,gamma, and C has B I_gamma^-1 C_gamma more. The variance of the score is that of these sums, so that y
need not vary alike in all clusters; residuals are divided by sqrt(1 - leverage) (HC2: J. G. MacKinnon and H.
White, Journal of Econometrics 29 (1985), 305-325).

*Prior.* Every cluster, and noise, gets some rows more whose outcome is the mean of all rows: for shares one
row, as they are else 0 +- 0 in a cluster that has none of a category; for numbers so many that means are
within 2.5 standard deviations of the outcome, give or take, where clusters cannot be told apart. As many rows
say that slopes are zero. The variance of each mean is as if there was one row more.

*Conventions.* n rows, L labels, q columns of an outcome, p columns of z; theta and its scores have the shape
(p, q), and are flat where they are parameters (D,).
"""

import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.cluster_regression.estimation import (
    SecondStep,
    p_value_of_square,
    response_to_clusters,
    square_and_rank,
)
from sklearn_lrvb.rows import slices

_SD_OF_MEANS = 2.5  # By the prior, in standard deviations of the outcome.
_LEAST_REST = 1e-12  # Of one less a leverage.
_NUMBERS_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class Outcome:
    """A column of an outcome as numbers whose means are looked for.

    Attributes
    ----------
    name : str
    levels : list of str, the categories that columns are of: of two categories the second; empty of numbers
    values : (n, q), indicators of categories, or numbers in standard deviations, less their means; zero where
        rows do not take part
    centre : (q,), means in the user's units
    scale : float, the user's units of a unit
    prior_rows : float, that the prior is worth
    """

    name: str
    levels: list
    values: np.ndarray
    centre: np.ndarray
    scale: float
    prior_rows: float = 1.0

    @classmethod
    def of(cls, column, y, weights):
        """Of a column of a table and its values (n,), given weights, zero of rows that do not take part."""
        used, scale, levels = weights > 0, 1.0, []
        if column.holds_numbers:
            values = np.where(used, y, 0.0)[:, None]
        else:
            codes = np.unique(y[used])
            codes = codes[1:] if len(codes) == 2 else codes
            levels = [column.categories[int(code)] for code in codes]
            values = (y[:, None] == codes).astype(np.float64)
        centre = np.average(values, axis=0, weights=weights)
        if not levels:
            distances = np.abs(values[:, 0] - centre) * used
            largest = distances.max()  # Squares of small numbers are zero.
            scale = float(largest * np.sqrt(np.average(np.square(distances / largest), weights=weights)))
        return cls(
            column.name, levels, np.where(used[:, None], (values - centre) / scale, 0.0), centre, scale
        )

    @property
    def n_columns(self):
        """q"""
        return self.values.shape[1]

    @property
    def covariance(self):
        """Covariance of the indicators of a row, of categories alone: (q, q)."""
        return np.diag(self.centre) - np.outer(self.centre, self.centre)


class OutcomeStep(SecondStep):
    """Means of an outcome in the clusters, and slopes of covariates within clusters.

    Parameters
    ----------
    clusters : CovariateStep, of the same rows, whose probabilities are r
    outcome : Outcome
    """

    def __init__(self, clusters, outcome):
        self.clusters, self.outcome = clusters, outcome

    @classmethod
    def of(cls, clusters, outcome):
        """With the prior of numbers, which follows from the variance of their residuals."""
        if outcome.levels:
            return cls(clusters, outcome)
        unexplained = cls(clusters, outcome)._residual_covariance.item()
        return cls(clusters, replace(outcome, prior_rows=unexplained / _SD_OF_MEANS**2))

    @property
    def rows(self):
        """StepRows"""
        return self.clusters.rows

    @property
    def posterior(self):
        """That of the fit."""
        return self.clusters.posterior

    @property
    def labels(self):
        """Labels"""
        return self.clusters.labels

    @property
    def data(self):
        """The rows that take part: StructuralData."""
        return self.clusters.data

    @property
    def maximum(self):
        """That of the second step of covariates: Maximum."""
        return self.clusters.maximum

    @property
    def converged(self):
        """Whether the second step of covariates converged; least squares are no search."""
        return self.clusters.converged

    @property
    def coefficients(self):
        """(p, q)"""
        return self._solution[1]

    @property
    def parameters(self):
        """theta, flat: (D,)."""
        return self.coefficients.ravel()

    @cached_property
    def inverse(self):
        """(D, D)"""
        return np.kron(self._solution[0], np.eye(self.outcome.n_columns))

    @property
    def of_prior(self):
        """What of the information on parameters is of the prior: (D,)."""
        return np.repeat(np.diag(self._solution[0] @ self._prior), self.outcome.n_columns)

    @cached_property
    def _prior(self):
        """Precision of theta, (p, p)."""
        model = self.clusters.model
        prior = np.zeros((model.n_labels + model.n_columns - 1,) * 2)
        prior[: model.n_labels, : model.n_labels] = np.eye(model.n_labels)
        prior[model.n_labels :, model.n_labels :] = model.design_moments[1:, 1:]
        return self.outcome.prior_rows * prior

    def _slices(self):
        """Numbers of the rows that take part, in parts: list of int arrays."""
        size = max(256, _NUMBERS_AT_ONCE // self.n_of_row)
        return [self.data.numbers[place] for place in slices(len(self.data.numbers), size)]

    @cached_property
    def _solution(self):
        """(Z'Z + prior)^-1, (p, p), and theta, (p, q)."""
        products, moments = self._prior.copy(), 0.0
        for numbers in self._slices():
            terms, matrix, weights = self.clusters.terms(numbers)
            z = _regressors(terms, matrix)
            products += (z * weights[:, None]).T @ z
            moments = moments + (z * weights[:, None]).T @ self.outcome.values[numbers]
        inverse = np.linalg.inv(products)
        return inverse, inverse @ moments

    def on_rows(self, numbers):
        """What least squares say of some rows: RowsOfOutcome."""
        terms, matrix, weights = self.clusters.terms(numbers)
        z = _regressors(terms, matrix)
        residuals = (self.outcome.values[numbers] - z @ self.coefficients) * self.rows.along[numbers, :1]
        return RowsOfOutcome(
            z, residuals, self.coefficients[: terms.probabilities.shape[0]], terms, matrix, weights
        )

    def _parts(self):
        """What least squares say of the rows that take part, part by part."""
        return map(self.on_rows, self._slices())

    @cached_property
    def _change(self):
        """B I_gamma^-1, (D, D_gamma)."""
        total = sum(rows.score_in_clusters() for rows in self._parts())
        return total[:, : self.clusters.model.size] @ self.clusters.inverse

    @cached_property
    def of_one_row(self):
        """What one row more in every cluster adds to the variance of the score, (D, D)."""
        n_labels, size = self.clusters.model.n_labels, len(self.coefficients)
        own = self.outcome.covariance if self.outcome.levels else self._residual_covariance
        return np.kron(np.diag(np.arange(size) < n_labels).astype(np.float64), own)

    @cached_property
    def _residual_covariance(self):
        """(q, q)"""
        total = sum(rows.e.T @ (rows.e * rows.weights[:, None]) for rows in self._parts())
        return total / self.data.weights.sum()

    @cached_property
    def own_covariance(self):
        """(D, D)"""
        inverse, of_score = self._solution[0], self.of_one_row
        for rows in self._parts():
            leverages = np.einsum("np,pr,nr->n", rows.z, inverse, rows.z)
            factors = 1.0 / np.sqrt(np.maximum(1.0 - leverages, _LEAST_REST))
            scores = rows.scores(factors) + self._score_of_clusters(rows)
            of_score = of_score + (scores * rows.weights[:, None]).T @ scores
        return self.inverse @ of_score @ self.inverse

    def _score_of_clusters(self, rows):
        """What the score of the second step of covariates adds to that of rows, (n, D)."""
        return self.clusters.model.score_of_rows(rows.terms, rows.matrix) @ self._change.T

    def p_value(self, contrasts, covariance, freedom):
        """The p-value of the hypothesis that contrasts (a, p) of all columns of theta are zero (Wald's test).

        The covariance of shares is that under the hypothesis, since a share of zero has no variance of its
        own: of certain clusters the test is nearly Pearson's. It is multiplied by the mean factor by which
        uncertain clusters, or rows that belong together, make variances larger (J. N. K. Rao and A. J. Scott,
        Annals of Statistics 12 (1984), 46-60). NaN with fewer degrees of freedom than contrasts.
        """
        n_free = max(1, self.outcome.n_columns - bool(self.outcome.levels))  # All shares sum to one.
        free = np.eye(self.outcome.n_columns)[:n_free]
        change = np.kron(contrasts, free)
        whole = change @ covariance @ change.T
        if self.outcome.levels:
            own = change @ self.own_covariance @ change.T
            factor = np.trace(np.linalg.pinv(own, hermitian=True) @ whole) / len(whole)
            whole = factor * self._null_covariance(contrasts, free)
        if not whole.any():  # Of a whole population all is known.
            return float(np.allclose(change @ self.parameters, 0.0))
        square, _ = square_and_rank(change @ self.parameters, whole)
        return p_value_of_square(square, len(change), freedom)

    def _null_covariance(self, contrasts, free):
        """Covariance of contrasts (a, p) of columns of theta, (f, q), if they are zero: (a f, a f)."""
        inverse, values = self._solution[0], contrasts @ self.coefficients
        change = contrasts @ inverse
        of_unit = change @ (np.linalg.inv(inverse) - self._prior) @ change.T  # Of residuals of variance one.
        gain = values.T @ np.linalg.solve(change @ contrasts.T, values) / self.data.weights.sum()
        return np.kron(of_unit, free @ (self._residual_covariance + gain) @ free.T)

    # Rows: of these, `numbers` are places among those that count.

    @property
    def n_of_row(self):
        """Numbers that are made of a row: int."""
        model, q = self.clusters.model, self.outcome.n_columns
        p = model.n_labels + model.n_columns - 1
        return self.clusters.n_of_row + model.n_labels * q * (p + model.n_predictors)

    def score_of_rows(self, numbers):
        """s and what goes through gamma, (n, D)."""
        rows = self.on_rows(numbers)
        return rows.scores() + self._score_of_clusters(rows)

    def score(self, log_densities):
        """The sum of the same, (D,), with log densities (L, n) of the rows that take part."""
        data, clusters = self.data, self.clusters
        total = self._change @ clusters.score(log_densities)
        for place in slices(len(data.weights), max(256, _NUMBERS_AT_ONCE // self.n_of_row)):
            matrix = data.matrix[place]
            z = _regressors(
                clusters.model.row_terms(clusters.parameters, log_densities[:, place], matrix), matrix
            )
            residuals = self.outcome.values[data.numbers[place]] - z @ self.coefficients
            total += ((z * data.weights[place, None]).T @ residuals).ravel()
        return total

    def responses(self, numbers):
        """How the sum of s, for given gamma, responds to log densities of some rows: (D, L, n)."""
        rows = self.on_rows(numbers)
        responses, r = rows.responses(rows.z), rows.terms.probabilities
        own = (rows.e * rows.weights[:, None]).T
        for label, of_label in enumerate(r):
            responses[label] -= own[:, None] * of_label * r
            responses[label, :, label] += own * of_label
        return responses.reshape(-1, *r.shape)

    def response(self, targets):
        """C, how the score responds to the coefficients of the fit: (D, number of these)."""
        own = response_to_clusters(self.seeing(None), self, targets)
        return own + self._change @ self.clusters.response(targets)

    def with_values(self, values, posterior=None):
        """The same second step with other `StepRows.values`, and perhaps of another fit: OutcomeStep."""
        return OutcomeStep(self.clusters.with_values(values, posterior), self.outcome)

    def seeing(self, rows):
        """The same second step of the same rows, passed again, or of none: OutcomeStep."""
        step = copy.copy(self)
        step.clusters = self.clusters.seeing(rows)
        return step

    def on(self, rows, numbers):
        """The second step of some of the rows, as `CovariateStep.on`: OutcomeStep."""
        outcome = replace(self.outcome, values=self.outcome.values[numbers])
        return OutcomeStep(self.clusters.on(rows, numbers), outcome)

    def require_order(self, rows):
        """Raise ValueError unless the rows come in the order of the covariates and outcomes."""
        self.clusters.require_order(rows)


def _regressors(terms, matrix):
    """z of some rows, (n, p)."""
    return np.concatenate([terms.probabilities.T, matrix[:, 1:]], axis=1)


@dataclass(frozen=True, eq=False)
class RowsOfOutcome:
    """What least squares say of some rows, n of them.

    Attributes
    ----------
    z : (n, p)
    e : (n, q), residuals
    means : (L, q), mu
    terms : RowTerms
    matrix : (n, P), the design of covariates
    weights : (n,)
    """

    z: np.ndarray
    e: np.ndarray
    means: np.ndarray
    terms: object
    matrix: np.ndarray
    weights: np.ndarray

    def scores(self, factors=1.0):
        """s, perhaps times factors of rows: (n, p q)."""
        own = self.e * np.reshape(factors, (-1, 1))
        return (self.z[:, :, None] * own[:, None]).reshape(len(self.z), -1)

    def responses(self, instruments):
        """How the sums of instruments (n, a) times residuals respond to log densities: (a, q, L, n)."""
        r = self.terms.probabilities
        of_mean = r * (self.means.T[:, :, None] - (self.means.T @ r)[:, None])
        return -(instruments * self.weights[:, None]).T[:, None, None] * of_mean

    def in_clusters(self, instruments):
        """How these sums respond to the coefficients of the second step of covariates: (a q, Q P)."""
        of_mean = np.einsum("kc,qkn->cqn", self.means, self.terms.changes)
        products = (of_mean[:, :, None] * self._columns).reshape(-1, len(self.z))
        return -(products @ instruments).T.reshape(instruments.shape[1] * self.means.shape[1], -1)

    def score_in_clusters(self):
        """How the sum of s responds to the same: (p q, Q P)."""
        changes, n_columns = self.terms.changes, self.matrix.shape[1]
        residuals = (self.e.T[:, None] * self._columns).reshape(-1, len(self.z))
        own = (changes.reshape(-1, len(self.z)) @ residuals.T).reshape(*changes.shape[:2], -1, n_columns)
        responses = self.in_clusters(self.z)
        own = own.transpose(1, 2, 0, 3).reshape(-1, responses.shape[1])
        responses[: len(own)] += own
        return responses

    @property
    def _columns(self):
        """The design times weights, (P, n)."""
        return (self.matrix * self.weights[:, None]).T
