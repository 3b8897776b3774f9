"""Error bars of a second step: what its estimates vary by.

Let beta be the coefficients of the fit, of which the clusters' log densities are linear functions, dl_nk =
h_k(x_n)' dbeta_k with the features h (`mixture.model.Coordinates`), and M^-1 their covariance by linear
response. The parameters phi of a second step make its score zero, a sum over the rows of s_n. With minus its
derivative I, and

    C = sum_n v_n sum_k (ds_n / dl_nk) h_k(x_n)',

    dphi = I^-1 (change of the score + C dbeta),    Cov(phi) = I^-1 Var(score) I^-1 + I^-1 C M^-1 C' I^-1.

The two parts are uncorrelated in large samples: given the values of X in a row, its score is zero on average.
C takes one pass over the rows, and M^-1 C' one solve. The influence of a row of weight one is

    I^-1 (s_n + C M^-1 g_n),

with M^-1 g_n its influence on beta (`answers.influence`): its sums over groups give the sandwich.

Where linear response is not good, beta is drawn from the exact posterior. In place of C M^-1 C' is then the
covariance of the score over the draws, at the estimate that belongs to the mean log densities over the draws.
(The mean of the estimates of all draws would be too small: draws are further from the truth than their mean
is, and errors of the clusters make effects smaller.) In both cases clusters are not moved by covariates and
outcomes, as in a *cut posterior* (M. Plummer, "Cuts in Bayesian graphical models", Statistics and Computing
25 (2015), 37-43).

*Conventions.* n rows, L labels (clusters, and noise), P columns of the design, D parameters.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import chdtrc, fdtrc

from sklearn_lrvb.answers.groups import summed_by_group
from sklearn_lrvb.answers.targets import LogWeights
from sklearn_lrvb.mixture.e_step import expect_in_range
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.rows import Workload, batches
from sklearn_lrvb.sampling.likelihood import log_densities_of_draws

_LEAST_EIGENVALUE = 1e-8  # Of a correlation matrix, below which it is zero.
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
    along : (n, P + 1), whether a row takes part, and its design; zero of rows that do not
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

    def weights(self, values):
        """How often rows count in the second step, (n,), zero of rows that do not take part."""
        return values[:, -1] * self.along[:, 0]


class SecondStep(ABC):
    """A second step at one posterior: estimates from the rows, and from their log densities in the clusters.

    Attributes
    ----------
    data : StructuralData, of the rows that take part
    maximum : Maximum, of the likelihood of covariates
    converged : bool
    of_prior : (D,), what of the information on parameters is of the prior
    rows : StepRows
    posterior : posterior of the fit
    labels : Labels
    parameters : (D,)
    inverse : (D, D), I^-1
    own_covariance : (D, D), that of the parameters if the clusters were known
    of_one_row : (D, D), what one row more in every cluster adds to the variance of the score
    """

    rows: StepRows
    posterior: Any
    labels: Labels

    @property
    @abstractmethod
    def n_of_row(self):
        """Numbers that are made of a row: int."""

    @abstractmethod
    def score_of_rows(self, numbers):
        """s of some rows, given their numbers among those that count: (n, D)."""

    @abstractmethod
    def score(self, log_densities):
        """The sum of s over the rows that take part, (D,), with other log densities (L, n)."""

    @abstractmethod
    def response(self, targets):
        """C, how the score responds to the coefficients of the fit: (D, number of these)."""

    @abstractmethod
    def with_values(self, values, posterior=None):
        """The same second step with other `StepRows.values`, and perhaps of another fit: SecondStep."""

    @abstractmethod
    def seeing(self, rows):
        """The same second step of the same rows, passed again, or of none: SecondStep."""

    def at(self, rows, posterior):
        """The same second step at another posterior, of the same rows with other weights: SecondStep."""
        return self.with_values(self.rows.values(rows, posterior, self.labels), posterior)

    def influence_functions(self, targets, information, combinations=None):
        """The influence of rows on the parameters, or on combinations (m, D): StepInfluence."""
        change = self.inverse if combinations is None else combinations @ self.inverse
        solved = information.solve((change @ self.response(targets)).T).T
        of_fit = self.posterior.model.influence_functions(self.posterior, solved)
        return StepInfluence(of_fit, change, self.seeing(None))

    def covariance(self, targets, information):
        """Covariance of the parameters by linear response, (D, D)."""
        response = self.response(targets)
        return self._covariance(response @ information.solve(response.T))

    def _covariance(self, of_score):
        """That of the parameters, given that of the score which the uncertainty of clusters makes: (D, D)."""
        return self.own_covariance + self.inverse @ (0.5 * (of_score + of_score.T)) @ self.inverse

    def covariance_of(self, scores):
        """Covariance of the parameters, (D, D), given scores under draws of the clusters, list of (D,)."""
        return self._covariance(np.cov(np.stack(scores).T).reshape(self.inverse.shape))


def under_draws(steps, parameters, mean):
    """Second steps at the mean log densities under draws of the clusters, and covariances there.

    Parameters
    ----------
    steps : list of SecondStep
    parameters : DrawnParameters
    mean : (n, L + 1), `mean_values` under the draws

    Returns
    -------
    reported : list of SecondStep
    covariances : list of (D, D)
    """
    rows, labels = steps[0].rows, steps[0].labels.index
    reported, scores = [step.with_values(mean) for step in steps], [[] for _ in steps]
    for drawn in log_densities_of_draws(rows.rows, parameters):
        values = rows.counted(drawn)[:, labels]
        for step, own in zip(reported, scores, strict=True):
            own.append(step.score(values[step.data.numbers].T))
    return reported, [step.covariance_of(own) for step, own in zip(reported, scores, strict=True)]


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


def _log_densities_and_counts(coordinates, labels, block):
    """Log densities of rows, without log weights, and how often those with a value count: (L + 1, n)."""
    log_weights = coordinates.posterior.expectations.log_weights
    values = expect_in_range(coordinates, block).log_densities[labels] - log_weights[labels][:, None]
    counts = block.counts.copy()
    counts[block.without_value] = 0.0
    return np.concatenate([values, counts[None]])


def response_to_clusters(sums, step, targets):
    """How some sums over the rows respond to the coefficients of the fit: (m, number of these).

    Parameters
    ----------
    sums : has `n_of_row` and `responses(numbers)`, how m sums respond to log densities of rows: (m, L, n)
    step : SecondStep, whose rows these are
    targets : Targets at its posterior
    """
    coordinates = step.posterior.model.coordinates(step.posterior)
    function = _Response(sums, coordinates, step.labels.index)
    matrix, responses = step.rows.rows.total(function, function.workload)
    by_label = np.zeros((len(responses), step.posterior.n_labels))
    by_label[:, step.labels.index] = responses
    # Log densities have no log weights.
    return matrix - _LogWeights(step.posterior, targets.origin).transposed_responses(by_label).T


class _LogWeights(LogWeights):
    """E log pi as log densities of rows have it, also where the weights do not sum to one."""

    @property
    def count_jacobian(self):
        return self.posterior.log_weight_covariance


@dataclass(eq=False)
class _Response:
    """How m sums respond to the coefficients over the rows of a block, and their responses by label.

    Attributes
    ----------
    sums : as in `response_to_clusters`
    coordinates : Coordinates of the fit, for any rows
    labels : int array (L,)
    """

    sums: Any
    coordinates: Any
    labels: np.ndarray

    @property
    def workload(self):
        own = self.coordinates.workload
        return Workload(own.per_row + self.sums.n_of_row, own.per_pattern, own.product)

    def __call__(self, block):
        coordinates, posterior = self.coordinates, self.coordinates.posterior
        sensitivity, total = 0.0, 0.0
        # The features of a row may be half a million numbers.
        places = batches(block.n_rows, 8 * max(map(len, posterior.coefficients_of_labels)))
        for place in places:
            part = block if len(places) == 1 else block.selected(np.r_[place])
            represented = expect_in_range(coordinates, part).represented
            responses = self.sums.responses(part.numbers)
            if place.start == 0:
                sensitivity = np.zeros((len(responses), posterior.n_coefficients))
            for number, label in enumerate(self.labels):
                features = coordinates.features(represented, label)
                sensitivity[:, posterior.coefficients_of_labels[label]] += responses[:, number] @ features.T
            total = total + responses.sum(axis=2)
        return sensitivity, total


@dataclass(eq=False)
class StepInfluence:
    """d parameters / d weight of rows, (n, m), or of combinations of the parameters.

    Attributes
    ----------
    of_fit : influence functions of the change by the fit (`MixtureModel.influence_functions`)
    change : (m, D), by which scores are multiplied
    step : SecondStep, without rows of X
    """

    of_fit: Any
    change: np.ndarray
    step: SecondStep

    @property
    def workload(self):
        own = self.of_fit.workload
        return Workload(own.per_row + self.step.n_of_row, own.per_pattern, own.product)

    @property
    def n_functions(self):
        return len(self.change)

    def values(self, block, out):
        """Weight influence of a block of n rows, written to (n, m)."""
        self.of_fit.values(block, out)
        out += self.step.score_of_rows(block.numbers) @ self.change.T


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
    functions : StepInfluence
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


def square_and_rank(values, covariance):
    """values' covariance^-1 values, and the rank of the covariance: float, int."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    sizes, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = sizes > _LEAST_EIGENVALUE
    return float((np.square((values / scale) @ vectors)[kept] / sizes[kept]).sum()), int(kept.sum())


def p_value_of_square(square, size, freedom):
    """The p-value of a squared length of so many contrasts; NaN with fewer degrees of freedom."""
    if np.isinf(freedom):
        return float(chdtrc(size, square))
    rest = freedom - size + 1.0
    return float(fdtrc(size, rest, square * rest / (freedom * size))) if rest > 0 else np.nan
