"""The likelihood of covariates given the clusters' densities, and its maximum.

Row n has the log densities l_nk of its values of X in the clusters, which are fixed, and covariates w_n. Then

    log likelihood of row n = log sum_k p_k(w_n) exp(l_nk),

with p the softmax of linear predictors gamma_k'w_n, zero for the reference cluster. If the mixture has noise,
a row is noise with a probability that does not depend on covariates, and p holds for other rows.

With d_nk the gradient of log p_k in the predictors, and r_nk = P(k | x_n, w_n),

    score of row n     s_n = sum_k r_nk d_nk,
    information        sum_n v_n (E_r[-d2 log p] - Cov_r(d_n)), each times w_n w_n',
    ds_n / dl_nk     = r_nk (d_nk - s_n),

where v_n are weights of rows.

*The prior* is weak and normal, so that there is a maximum where clusters are separated by a covariate. It is
the same whatever the reference, its levels and the units (Zellner's g-prior): the difference of the slopes of
two clusters has the covariance 2.5^2 (mean of w w')^-1, so that one covariate alone changes their log odds by
2.5 a standard deviation, give or take. Intercepts have a standard deviation of 10.

*Conventions.* n rows, K clusters and perhaps noise (L labels), Q predictors, P columns of the design, D
parameters: the coefficients of all columns for a cluster, and of the first for noise.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from sklearn_lrvb.rows import slices

_SD_OF_DIFFERENCES, _SD_OF_INTERCEPTS = 2.5, 10.0
_MOST_STEPS = 200  # Of the ascent.
# Squared length of its last step in standard deviations, which may be longer where round-off ends it.
_TOL, _LEAST_LENGTH = 1e-14, 1e-8
_TOL_OF_VALUE = 1e-6  # Where the value alone is asked for, which is off by half of it.
_MANY_ROWS = 20_000  # From which on the ascent begins with a tenth of the rows.
_LEAST_FACTOR = 1e-8  # By which steps are shortened.
_NUMBERS_AT_ONCE = 2**20  # Of the arrays of some rows.


@dataclass(frozen=True, eq=False)
class RowTerms:
    """What the likelihood says of some rows, n of them.

    Attributes
    ----------
    shares : (K, n), p
    of_noise : float, probability of noise, zero without
    values : (n,), log likelihood
    probabilities : (L, n), r
    """

    shares: np.ndarray
    of_noise: float
    values: np.ndarray
    probabilities: np.ndarray

    @property
    def has_noise(self):
        return len(self.probabilities) > len(self.shares)

    @cached_property
    def score(self):
        """s, (Q, n)."""
        r, K = self.probabilities, len(self.shares)
        score = r[1:K] - r[:K].sum(axis=0) * self.shares[1:]
        return np.concatenate([score, r[K:] - self.of_noise]) if self.has_noise else score

    @property
    def changes(self):
        """r_k (d_k - s), how r changes with the predictors, and s with log densities: (Q, L, n)."""
        K = len(self.shares)
        gradients = np.zeros((len(self.score), *self.probabilities.shape))
        gradients[: K - 1, :K] = np.eye(K)[1:, :, None] - self.shares[1:, None]
        if self.has_noise:
            gradients[K - 1] = -self.of_noise
            gradients[K - 1, K] += 1.0
        gradients -= self.score[:, None]
        gradients *= self.probabilities
        return gradients

    @property
    def information(self):
        """Observed, and complete as if clusters were known, positive semidefinite: two of (Q, Q, n)."""
        K, p, r, s = len(self.shares), self.shares[1:], self.probabilities, self.score
        observed = s[:, None] * s  # Less the covariance of d under r.
        complete, own = np.zeros_like(observed), np.arange(K - 1)
        in_clusters = r[:K].sum(axis=0)
        complete[: K - 1, : K - 1] = -in_clusters * p[:, None] * p
        complete[own, own] += in_clusters * p
        crossed = r[1:K, None] * p
        observed[: K - 1, : K - 1] += crossed + crossed.swapaxes(0, 1) - in_clusters * p[:, None] * p
        observed[own, own] -= r[1:K]
        if self.has_noise:
            noise, in_noise = self.of_noise, r[K]
            complete[K - 1, K - 1] = noise * (1.0 - noise)
            observed[K - 1, : K - 1] += noise * s[: K - 1]
            observed[: K - 1, K - 1] += noise * s[: K - 1]
            observed[K - 1, K - 1] -= in_noise * (1.0 - noise) ** 2 + in_clusters * noise**2
        return observed + complete, complete


@dataclass(frozen=True)
class Maximum:
    """The maximum of the likelihood and the prior.

    Attributes
    ----------
    parameters : (D,)
    value : float, log likelihood and log prior
    information : (D, D), observed, with that of the prior
    counts : (L,), expected rows of the labels
    converged : bool
    """

    parameters: np.ndarray
    value: float
    information: np.ndarray
    counts: np.ndarray
    converged: bool

    @cached_property
    def covariance(self):
        """Inverse information, (D, D)."""
        return np.linalg.inv(self.information)


@dataclass(frozen=True)
class StructuralData:
    """The rows of the second step, n of them.

    Attributes
    ----------
    log_densities : (L, n)
    matrix : (n, P)
    weights : (n,)
    numbers : int array (n,), of these rows among all that count
    """

    log_densities: np.ndarray
    matrix: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray

    def thinned(self):
        """A tenth of the rows, evenly spaced, which count ten times: StructuralData."""
        log_densities, matrix, weights = self.part(slice(0, None, 10))
        return StructuralData(log_densities, matrix, 10.0 * weights, self.numbers[::10])

    def part(self, place):
        """Log densities, design and weights of a slice of the rows."""
        return self.log_densities[:, place], self.matrix[place], self.weights[place]


class StructuralModel:
    """The likelihood of the second step.

    Parameters
    ----------
    n_clusters : int, K, those that hold rows, the reference first
    has_noise : bool
    design_moments : (P, P), mean of w w' over the rows

    Attributes
    ----------
    prior : (D, D), its precision
    """

    def __init__(self, n_clusters, has_noise, design_moments):
        self.n_clusters, self.has_noise, self.design_moments = n_clusters, has_noise, design_moments
        self.n_labels, self.n_columns = n_clusters + has_noise, len(design_moments)
        self.n_logits, self.n_predictors = n_clusters - 1, n_clusters - 1 + has_noise
        self.size = self.n_logits * self.n_columns + has_noise  # Of noise, the first column alone.
        self.prior = self._prior_precision(design_moments)

    def _prior_precision(self, moments):
        intercepts = np.zeros_like(moments)
        intercepts[0, 0] = _SD_OF_INTERCEPTS**-2.0
        slopes = moments * _SD_OF_DIFFERENCES**-2.0
        slopes[0], slopes[:, 0] = 0.0, 0.0
        # Differences of values with this precision have the variance 1, whatever the reference.
        between = 2.0 * (np.eye(self.n_logits) - 1.0 / self.n_clusters)
        precision = np.zeros((self.size, self.size))
        n_own = self.n_logits * self.n_columns
        precision[:n_own, :n_own] = np.kron(between, intercepts + slopes)
        precision[n_own:, n_own:] = _SD_OF_INTERCEPTS**-2.0
        return precision

    def logits(self, parameters):
        """Coefficients of the predictors of all clusters but the reference, (K - 1, P)."""
        return parameters[: self.n_logits * self.n_columns].reshape(self.n_logits, -1)

    # The likelihood of rows.

    def cluster_shares(self, parameters, matrix):
        """p of the clusters and their logarithms, without noise: two of (K, n)."""
        predictors = np.zeros((self.n_clusters, len(matrix)))
        np.matmul(self.logits(parameters), matrix.T, out=predictors[1:])
        return _softmax(predictors)[:2]

    def row_terms(self, parameters, log_densities, matrix):
        """What the likelihood says of some rows: RowTerms.

        Parameters
        ----------
        parameters : (D,)
        log_densities : (L, n), l
        matrix : (n, P), the design
        """
        K = self.n_clusters
        shares, log_shares = self.cluster_shares(parameters, matrix)
        joint, of_noise = log_densities.copy(), 0.0
        joint[:K] += log_shares
        if self.has_noise:
            log_odds = parameters[-1]
            of_noise = float(expit(log_odds))
            joint[:K] -= np.logaddexp(0.0, log_odds)
            joint[K] -= np.logaddexp(0.0, -log_odds)
        probabilities, _, values = _softmax(joint)
        return RowTerms(shares, of_noise, values, probabilities)

    def score_of_rows(self, terms, matrix):
        """Scores of rows in the parameters, (n, D)."""
        return (terms.score.T[:, :, None] * matrix[:, None]).reshape(len(matrix), -1)[:, : self.size]

    # The sum over the rows, and the prior.

    def _rows_at_once(self):
        return max(256, _NUMBERS_AT_ONCE // (4 * self.n_predictors * self.n_labels))

    def _objective(self, parameters, data):
        """Log likelihood and prior at some parameters, and their derivatives: _Objective."""
        pull, Q, P = self.prior @ parameters, self.n_predictors, self.n_columns
        value, score, counts = -0.5 * parameters @ pull, np.zeros((Q, P)), 0.0
        sums = np.zeros((2, Q * Q, P * P))
        for place in slices(len(data.weights), self._rows_at_once()):
            log_densities, matrix, weights = data.part(place)
            terms = self.row_terms(parameters, log_densities, matrix)
            value += float(weights @ terms.values)
            counts = counts + terms.probabilities @ weights
            weighted = matrix * weights[:, None]
            products = (weighted[:, :, None] * matrix[:, None]).reshape(len(matrix), -1)
            score += terms.score @ weighted
            for total, own in zip(sums, terms.information, strict=True):
                total += own.reshape(-1, len(matrix)) @ products
        gradient = score.ravel()[: self.size] - pull
        observed, complete = (self._of_parameters(total) + self.prior for total in sums)
        return _Objective(value, gradient, observed, complete, counts)

    def score(self, parameters, data):
        """Gradient of the log likelihood of all rows, without the prior: (D,)."""
        score = np.zeros((self.n_predictors, self.n_columns))
        for place in slices(len(data.weights), self._rows_at_once()):
            log_densities, matrix, weights = data.part(place)
            score += self.row_terms(parameters, log_densities, matrix).score @ (matrix * weights[:, None])
        return score.ravel()[: self.size]

    def _of_parameters(self, sums):
        """An information of the parameters, (D, D), from that of predictors times columns, (Q Q, P P)."""
        Q, P = self.n_predictors, self.n_columns
        information = sums.reshape(Q, Q, P, P).swapaxes(1, 2).reshape(Q * P, Q * P)
        information = information[: self.size, : self.size]
        return 0.5 * (information + information.T)

    def start(self, shares):
        """Parameters at which the ascent starts, from the weights (L,) of the mixture: (D,)."""
        parameters, K = np.zeros(self.size), self.n_clusters
        weights = np.maximum(shares, 1e-8)
        parameters[: self.n_logits * self.n_columns : self.n_columns] = np.log(weights[1:K] / weights[0])
        if self.has_noise:
            parameters[-1] = np.log(weights[K] / weights[:K].sum())
        return parameters

    def maximum(self, data, start, basis=None):
        """The maximum that is reached from some parameters by Newton's method: Maximum.

        Where the observed information is not positive definite, the complete one is taken, as EM does.

        Parameters
        ----------
        data : StructuralData
        start : (D,)
        basis : (D, d) or None, of the directions in which parameters may change; None is all
        """
        if len(data.weights) > _MANY_ROWS and basis is None:  # From the maximum of some rows it is not far.
            start = self.maximum(data.thinned(), start).parameters
        parameters, here = start, self._objective(start, data)
        length = np.inf
        for _ in range(_MOST_STEPS):
            step = here.step(basis)
            length = float(step @ here.gradient)
            if length < (_TOL if basis is None else _TOL_OF_VALUE):
                break
            found = self._ahead(parameters, step, here, data)
            if found is None:
                break
            parameters, here = found
        is_strict = _solved(here.observed, here.gradient) is not None
        converged = is_strict and length < _LEAST_LENGTH
        return Maximum(parameters, here.value, here.observed, here.counts, converged)

    def _ahead(self, parameters, step, here, data):
        """Parameters at a part of a step at which the objective is no lower, and the latter; or None."""
        factor = 1.0
        while factor > _LEAST_FACTOR:
            trial = parameters + factor * step
            there = self._objective(trial, data)
            if there.value > here.value - 1e-12 * abs(here.value):
                return trial, there
            factor *= 0.5
        return None


@dataclass(frozen=True)
class _Objective:
    """Log likelihood and log prior; gradient (D,); observed and complete information (D, D); counts (L,)."""

    value: float
    gradient: np.ndarray
    observed: np.ndarray
    complete: np.ndarray
    counts: np.ndarray

    def step(self, basis=None):
        """Newton's step, where the observed information is positive definite, or else one as of EM: (D,)."""
        if basis is None:
            step = _solved(self.observed, self.gradient)
            return _solved(self.complete, self.gradient) if step is None else step
        parts = (basis.T @ own @ basis for own in (self.observed, self.complete))
        return basis @ _Objective(self.value, basis.T @ self.gradient, *parts, self.counts).step()


def _softmax(values):
    """Shares, their logarithms, and logarithms of sums of exponentials: (L, n) -> (L, n) twice, (n,)."""
    largest = values.max(axis=0)
    relative = values - largest
    shares = np.exp(relative)
    total = shares.sum(axis=0)
    log_total = np.log(total)
    shares *= 1.0 / total
    return shares, relative - log_total, largest + log_total


def _solved(matrix, gradient):
    """The solution of a positive definite system, or None where it is none."""
    try:
        return cho_solve(cho_factor(matrix), gradient)
    except LinAlgError:
        return None
