"""The likelihood of covariates and an outcome given the clusters' densities, and its maximum.

Row n has the log densities l_nk of its values of X in the clusters, which are fixed, covariates w_n, and
perhaps an outcome y_n. Then

    log likelihood of row n = log sum_k p_k(w_n) exp(l_nk) g(y_n; theta_nk),

with p the softmax of linear predictors B w_n, zero for the reference cluster, and theta the outcome's
predictors. If the mixture has noise, a row is noise with a probability that does not depend on covariates,
and p holds for other rows. All predictors together are linear in the Q x P matrix of coefficients; a
parameter is one of its entries, or several that are equal.

With d_nk the gradient of log(p_k g_k) in the predictors, and r_nk = P(k | x_n, w_n, y_n),

    score of row n     s_n = sum_k r_nk d_nk,
    information        sum_n v_n (E_r[-d2 log(p g)] - Cov_r(d_n)), each times w_n w_n',
    ds_n / dl_nk     = r_nk (d_nk - s_n),

where v_n are weights of rows.

*Priors* are weak and normal, so that there is a maximum where clusters are separated by a covariate. They
are the same whatever the reference, its levels and the units (Zellner's g-prior): the difference of the
slopes of two clusters has the covariance 2.5^2 (mean of w w')^-1, so that one covariate alone changes their
log odds by 2.5 a standard deviation, give or take. So do slopes and differences of an outcome, in units of
its link or of its standard deviation. Levels have a standard deviation of 10.

*Conventions.* n rows, K clusters and perhaps noise (L labels), Q predictors, P columns of the design, D
parameters.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from sklearn_lrvb.rows import slices

_SD_OF_DIFFERENCES, _SD_OF_LEVELS = 2.5, 10.0
_MOST_STEPS = 200  # Of the ascent.
# Squared length of its last step in standard deviations, which may be longer where round-off ends it.
_TOL, _LEAST_LENGTH = 1e-14, 1e-8
_TOL_OF_VALUE = 1e-6  # Where the value alone is asked for, which is off by half of it.
_MANY_ROWS = 20_000  # From which on the ascent begins with a tenth of the rows.
_LEAST_FACTOR = 1e-8  # By which steps are shortened.
_NUMBERS_AT_ONCE = 2**20  # Of the arrays of some rows.


def _contrast(size):
    """Precision of the values of some clusters whose differences have the variance 1: (size, size)."""
    return 2.0 * (np.eye(size) - 1.0 / size)


@dataclass(frozen=True, eq=False)
class RowTerms:
    """What the likelihood says of some rows, n of them; Q_y predictors of the outcome belong to a label.

    Attributes
    ----------
    shares : (K, n), p
    of_noise : float, probability of noise, zero without
    predictors : (L, Q_y, n), of the outcome
    outcome_gradients : (L, Q_y, n), of its log density
    scores : (n,), log likelihood
    probabilities : (L, n), r
    """

    shares: np.ndarray
    of_noise: float
    predictors: np.ndarray
    outcome_gradients: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray

    @property
    def has_noise(self):
        return len(self.probabilities) > len(self.shares)

    @cached_property
    def _logit_score(self):
        """s of the predictors of the clusters and of noise, (J, n)."""
        r, K = self.probabilities, len(self.shares)
        score = r[1:K] - r[:K].sum(axis=0) * self.shares[1:]
        return np.concatenate([score, r[K:] - self.of_noise]) if self.has_noise else score

    @cached_property
    def _outcome_score(self):
        """s of the predictors of the outcome, (L, Q_y, n)."""
        return self.probabilities[:, None] * self.outcome_gradients

    @cached_property
    def score(self):
        """s, (Q, n)"""
        flat = self._outcome_score.reshape(-1, len(self.scores))
        return np.concatenate([self._logit_score, flat]) if len(flat) else self._logit_score

    @property
    def gradients(self):
        """d, (Q, L, n)"""
        K, (L, Q_y, n) = len(self.shares), self.outcome_gradients.shape
        gradients = np.zeros((len(self.score), L, n))
        gradients[: K - 1, :K] = np.eye(K)[1:, :, None] - self.shares[1:, None]
        if self.has_noise:
            gradients[K - 1] = -self.of_noise
            gradients[K - 1, K] += 1.0
        for k in range(L):
            first = len(self._logit_score) + k * Q_y
            gradients[first : first + Q_y, k] = self.outcome_gradients[k]
        return gradients

    @property
    def in_log_densities(self):
        """ds / dl, (Q, L, n)."""
        return self.probabilities * (self.gradients - self.score[:, None])

    def information(self, outcome, y):
        """Observed, and complete as if clusters were known, positive semidefinite: two of (Q, Q, n)."""
        K, (L, Q_y, n) = len(self.shares), self.outcome_gradients.shape
        p, r, s, J = self.shares[1:], self.probabilities, self._logit_score, len(self._logit_score)
        observed = self.score[:, None] * self.score  # Less the covariance of d under r.
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
            own_score = s[: K - 1]
            observed[K - 1, : K - 1] += noise * own_score
            observed[: K - 1, K - 1] += noise * own_score
            observed[K - 1, K - 1] -= in_noise * (1.0 - noise) ** 2 + in_clusters * noise**2
        if Q_y:
            minus_second, expected = outcome.information(y, self.predictors)
            for k in range(L):
                place = slice(J + k * Q_y, J + (k + 1) * Q_y)
                score, gradient = self._outcome_score[k], self.outcome_gradients[k]
                complete[place, place] = r[k] * expected[k]
                observed[place, place] += r[k] * (minus_second[k] - expected[k]) - score[:, None] * gradient
                d = np.zeros((J, n))  # Of the predictors of clusters and noise in this label.
                if k < K:
                    d[: K - 1] = -p
                    d[: K - 1][k - 1 : k] += 1.0 if k else 0.0
                if self.has_noise:
                    d[K - 1] = (k == K) - self.of_noise
                observed[place, :J] -= score[:, None] * d
                observed[:J, place] -= d[:, None] * score
        return observed + complete, complete


@dataclass(frozen=True)
class Maximum:
    """The maximum of the likelihood and the prior.

    Attributes
    ----------
    parameters : (D,)
    value : float, log likelihood and log prior
    information : (D, D), observed, with that of the prior
    prior : (D, D), what of it is of the prior
    counts : (L,), expected rows of the labels
    converged : bool
    """

    parameters: np.ndarray
    value: float
    information: np.ndarray
    prior: np.ndarray
    counts: np.ndarray
    converged: bool

    @cached_property
    def covariance(self):
        """Inverse information, (D, D)."""
        return np.linalg.inv(self.information)


class StructuralModel:
    """The likelihood of the second step.

    Parameters
    ----------
    n_clusters : int, K, those that hold rows, the reference first
    has_noise : bool
    design_moments : (P, P), mean of w w' over the rows
    outcome : Outcome or None

    Attributes
    ----------
    entries : list of arrays (e, 2), of every parameter its entries of the coefficients, (predictor, column)
    """

    def __init__(self, n_clusters, has_noise, design_moments, outcome=None):
        self.n_clusters, self.has_noise, self.outcome = n_clusters, has_noise, outcome
        self.n_labels, self.n_columns = n_clusters + has_noise, len(design_moments)
        self.n_logits = n_clusters - 1
        self.first_of_outcome = self.n_logits + has_noise
        self.n_of_outcome = outcome.n_predictors if outcome else 0
        self.n_predictors = self.first_of_outcome + self.n_labels * self.n_of_outcome
        self.entries = self._entries()
        self._prior = self._prior_precision(design_moments)

    @property
    def first_mean(self):
        """The place of the first parameter of the outcome: int."""
        return self.n_logits * self.n_columns + self.has_noise

    def _entries(self):
        columns = range(self.n_columns)
        entries = [[(j, p)] for j in range(self.n_logits) for p in columns]
        entries += [[(self.n_logits, 0)]] * self.has_noise
        for k in range(self.n_labels):
            entries += [[(self.predictor_of_outcome(k, q), 0)] for q in range(self.n_of_outcome)]
        for q in np.flatnonzero(self.outcome.is_adjusted) if self.outcome else ():
            of_labels = [self.predictor_of_outcome(k, int(q)) for k in range(self.n_labels)]
            entries += [[(own, p) for own in of_labels] for p in columns[1:]]
        return [np.array(own) for own in entries]

    def predictor_of_outcome(self, label, number):
        """The place of a label's predictor of the outcome among all: int."""
        return self.first_of_outcome + label * self.n_of_outcome + number

    @property
    def size(self):
        """D."""
        return len(self.entries)

    @cached_property
    def _to_coefficients(self):
        """Coefficients from parameters: (Q P, D), of zeros and ones."""
        matrix = np.zeros((self.n_predictors, self.n_columns, self.size))
        for number, own in enumerate(self.entries):
            matrix[own[:, 0], own[:, 1], number] = 1.0
        return matrix.reshape(-1, self.size)

    def coefficients(self, parameters):
        """The matrix of coefficients, (..., D) -> (..., Q, P)."""
        flat = parameters @ self._to_coefficients.T
        return flat.reshape(*parameters.shape[:-1], self.n_predictors, self.n_columns)

    def in_parameters(self, slopes):
        """Derivatives in the parameters, from those in the coefficients: (..., Q, P) -> (..., D)."""
        return slopes.reshape(*slopes.shape[:-2], -1) @ self._to_coefficients

    def _prior_precision(self, moments):
        """Precision of the normal prior, (D, D)."""
        levels = np.zeros_like(moments)
        levels[0, 0] = _SD_OF_LEVELS**-2.0
        slopes = moments * _SD_OF_DIFFERENCES**-2.0
        slopes[0], slopes[:, 0] = 0.0, 0.0
        precision = np.zeros((self.n_predictors, self.n_columns) * 2)
        logits = slice(0, self.n_logits)
        between = _contrast(self.n_clusters)[1:, 1:]
        precision[logits, :, logits] = np.einsum("jk,pq->jpkq", between, levels + slopes)
        if self.has_noise:
            precision[self.n_logits, 0, self.n_logits, 0] = _SD_OF_LEVELS**-2.0
        if self.outcome:
            first, size = self.first_of_outcome, self.n_of_outcome
            between = _contrast(self.n_labels) * _SD_OF_DIFFERENCES**-2.0
            between += _SD_OF_LEVELS**-2.0 / self.n_labels**2
            own = np.kron(between, self.outcome.contrast)
            precision[first:, 0, first:, 0] = own
            # All clusters have the same slopes, so that the prior of one of them is enough.
            one = slice(first, first + size)
            precision[one, :, one] += np.einsum("jk,pq->jpkq", self.outcome.contrast, slopes)
        flat = precision.reshape(self.n_predictors * self.n_columns, -1)
        return self._to_coefficients.T @ flat @ self._to_coefficients

    # The likelihood of rows.

    def cluster_shares(self, coefficients, matrix):
        """p of the clusters and their logarithms, without noise: two of (K, n)."""
        predictors = np.zeros((self.n_clusters, len(matrix)))
        np.matmul(coefficients[: self.n_logits], matrix.T, out=predictors[1:])
        return _softmax(predictors)[:2]

    def row_terms(self, parameters, log_densities, matrix, y=None):
        """What the likelihood says of some rows: RowTerms.

        Parameters
        ----------
        parameters : (D,)
        log_densities : (L, n), l
        matrix : (n, P), the design
        y : (n,), scaled outcomes, or None
        """
        coefficients, K = self.coefficients(parameters), self.n_clusters
        shares, log_shares = self.cluster_shares(coefficients, matrix)
        joint, of_noise = log_densities.copy(), 0.0
        joint[:K] += log_shares
        if self.has_noise:
            log_odds = coefficients[self.n_logits, 0]
            of_noise = float(expit(log_odds))
            joint[:K] -= np.logaddexp(0.0, log_odds)
            joint[K] -= np.logaddexp(0.0, -log_odds)
        predictors = gradients = np.zeros((self.n_labels, 0, len(matrix)))
        if self.outcome:
            predictors = coefficients[self.first_of_outcome :] @ matrix.T
            predictors = predictors.reshape(self.n_labels, -1, len(matrix))
            values, gradients = self.outcome.log_density(y, predictors)
            joint += values
        probabilities, _, scores = _softmax(joint)
        return RowTerms(shares, of_noise, predictors, gradients, scores, probabilities)

    def of_outcome(self, label):
        """The places of a label's predictors of the outcome: slice."""
        first = self.predictor_of_outcome(label, 0)
        return slice(first, first + self.n_of_outcome)

    def score_of_rows(self, terms, matrix):
        """Scores of rows in the parameters, (n, D)."""
        flat = terms.score.T[:, :, None] * matrix[:, None]
        return flat.reshape(len(matrix), -1) @ self._to_coefficients

    # The sum over the rows, and the prior.

    def _rows_at_once(self):
        return max(256, _NUMBERS_AT_ONCE // (4 * self.n_predictors * max(self.n_predictors, self.n_labels)))

    def _log_prior(self, parameters):
        """Log density of the prior, its gradient (D,) and information (D, D)."""
        information, pull = self._prior, self._prior @ parameters
        value, gradient = -0.5 * parameters @ pull, -pull
        if self.outcome:
            first = self.first_of_outcome
            own = self.coefficients(parameters)[first:, 0].reshape(self.n_labels, -1)
            extra, slopes, curvatures = self.outcome.log_prior(own)
            change = self._to_coefficients.reshape(self.n_predictors, self.n_columns, -1)[first:, 0]
            change = change.reshape(self.n_labels, -1, self.size)
            value = value + extra
            gradient = gradient + np.einsum("kq,kqd->d", slopes, change)
            information = information + np.einsum("kqr,kqd,kre->de", curvatures, change, change)
        return value, gradient, information

    def _objective(self, parameters, data):
        """Log likelihood and prior at some parameters, and their derivatives: _Objective."""
        value, gradient, prior = self._log_prior(parameters)
        sums = np.zeros((2, self.n_predictors**2, self.n_columns**2))
        score, counts = np.zeros((self.n_predictors, self.n_columns)), 0.0
        for place in slices(len(data.weights), self._rows_at_once()):
            log_densities, matrix, y, weights = data.part(place)
            terms = self.row_terms(parameters, log_densities, matrix, y)
            value += float(weights @ terms.scores)
            counts = counts + terms.probabilities @ weights
            weighted = matrix * weights[:, None]
            products = (weighted[:, :, None] * matrix[:, None]).reshape(len(matrix), -1)
            score += terms.score @ weighted
            for total, own in zip(sums, terms.information(self.outcome, y), strict=True):
                total += own.reshape(-1, len(matrix)) @ products
        gradient = gradient + score.ravel() @ self._to_coefficients
        observed, complete = (self._of_parameters(total) + prior for total in sums)
        return _Objective(value, gradient, observed, complete, prior, counts)

    def score(self, parameters, data):
        """Gradient of the log likelihood of all rows, without the prior: (D,)."""
        score = np.zeros((self.n_predictors, self.n_columns))
        for place in slices(len(data.weights), self._rows_at_once()):
            log_densities, matrix, y, weights = data.part(place)
            terms = self.row_terms(parameters, log_densities, matrix, y)
            score += terms.score @ (matrix * weights[:, None])
        return score.ravel() @ self._to_coefficients

    def _of_parameters(self, sums):
        """An information of the parameters, (D, D), from that of predictors times columns, (Q Q, P P)."""
        Q, P = self.n_predictors, self.n_columns
        flat = sums.reshape(Q, Q, P, P).swapaxes(1, 2).reshape(Q * P, Q * P)
        information = self._to_coefficients.T @ flat @ self._to_coefficients
        return 0.5 * (information + information.T)

    def start(self, data, shares):
        """Parameters at which the ascent starts, from the weights (L,) of the mixture: (D,)."""
        parameters = np.zeros(self.size)
        K, weights = self.n_clusters, np.maximum(shares, 1e-8)
        parameters[: self.n_logits * self.n_columns : self.n_columns] = np.log(weights[1:K] / weights[0])
        if self.has_noise:
            parameters[self.first_mean - 1] = np.log(weights[K] / weights[:K].sum())
        if self.outcome:
            r = _softmax(data.log_densities + np.log(weights)[:, None])[0] * data.weights
            own = self.outcome.start(data.y, r).ravel()
            parameters[self.first_mean :][: len(own)] = own
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
        if len(data.weights) > _MANY_ROWS:  # From the maximum of some rows it is not far.
            start = self.maximum(data.thinned(), start, basis).parameters
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
        return Maximum(
            parameters,
            here.value,
            here.observed,
            here.prior,
            here.counts,
            is_strict and length < _LEAST_LENGTH,
        )

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
    """Log likelihood and log prior; gradient (D,); observed, complete and prior information; counts (L,)."""

    value: float
    gradient: np.ndarray
    observed: np.ndarray
    complete: np.ndarray
    prior: np.ndarray
    counts: np.ndarray

    def step(self, basis=None):
        """Newton's step, where the observed information is positive definite, or else one as of EM: (D,)."""
        if basis is None:
            step = _solved(self.observed, self.gradient)
            return _solved(self.complete, self.gradient) if step is None else step
        parts = (basis.T @ own @ basis for own in (self.observed, self.complete))
        return basis @ _Objective(self.value, basis.T @ self.gradient, *parts, None, None).step()


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


@dataclass(frozen=True)
class StructuralData:
    """The rows of the second step, n of them.

    Attributes
    ----------
    log_densities : (L, n)
    matrix : (n, P)
    y : (n,) or None
    weights : (n,)
    numbers : int array (n,), of these rows among all that count
    """

    log_densities: np.ndarray
    matrix: np.ndarray
    y: np.ndarray | None
    weights: np.ndarray
    numbers: np.ndarray

    def thinned(self):
        """A tenth of the rows, evenly spaced, which count ten times: StructuralData."""
        own, numbers = self.part(slice(0, None, 10)), self.numbers[::10]
        return StructuralData(*own[:3], 10.0 * own[3], numbers)

    def part(self, place):
        """Log densities, design, outcomes and weights of a slice of the rows."""
        y = None if self.y is None else self.y[place]
        return self.log_densities[:, place], self.matrix[place], y, self.weights[place]
