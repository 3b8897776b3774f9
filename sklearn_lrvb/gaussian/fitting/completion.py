"""One normal distribution of rows with missing values, by which starts and default priors fill them.

Its mean and covariance are estimates by the EM algorithm, for values missing at random. Means of the values
that are there would be biased where other columns decide which values are missing, and covariances of pairs
of columns need not make a positive definite matrix. While it is estimated, the covariance is drawn towards
the diagonal matrix of the columns' variances as by P rows more, so that columns may be dependent or outnumber
the rows. What is reported is not.
"""

import contextlib
import functools
from dataclasses import replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian.covariance_structures import COVARIANCE_STRUCTURES
from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates
from sklearn_lrvb.gaussian.posterior.mixture_prior import MixturePrior
from sklearn_lrvb.gaussian.posterior.variational_posterior import VariationalPosterior
from sklearn_lrvb.mixture.acceleration import Acceleration
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.mixture.weight_priors import DirichletWeights
from sklearn_lrvb.rows import ArrayRows

# Iterations end where one would gain less than about so many nats a row, and at the latest after so many.
_LEAST_GAIN = 1e-7
_MAX_STEPS = 100

# Number of features beyond which a column is completed by its mean alone, where no covariances are asked for:
# completing it by all other columns takes up to P^3 flops for every pattern of missing values and iteration.
# Where they are asked for, iterations end at the larger gain, which saves a quarter of them: at 250 and 400
# columns it moved covariances by less than 0.02 standard deviations.
_MAX_FEATURES = 200
_LEAST_GAIN_BEYOND = 1e-3

_MEAN_PRECISION = 1e-6  # Of the prior that draws the mean to that of the columns, in rows.
_ROUNDING = np.finfo(float).eps
_LEAST_VARIANCE = 1e-200  # Of a column of zeros, whose square root and reciprocal are still numbers.


class Completion:
    """One normal distribution of rows with missing values, estimated when it is first asked for.

    Parameters
    ----------
    rows : Rows
    needs_matrix : bool, whether covariances of pairs of columns are asked for
    model : MixtureModel
    """

    def __init__(self, rows, needs_matrix, model):
        self._rows, self._needs_matrix, self._model = rows, needs_matrix, model

    @cached_property
    def posterior(self):
        """The VariationalPosterior of one component, from the means and variances of the columns alone."""
        rows, n_features = self._rows, self._rows.n_features
        is_wide = n_features > _MAX_FEATURES
        covariance_type = "diag" if is_wide and not self._needs_matrix else "full"
        structure = COVARIANCE_STRUCTURES[covariance_type](1, n_features)
        variances = np.maximum(rows.variances, np.square(_ROUNDING * rows.origin))
        factors = structure.diagonal_factors(np.sqrt(np.maximum(variances, _LEAST_VARIANCE)))
        prior = MixturePrior(
            model=self._model,
            weights=DirichletWeights(1.0, 1),
            structure=structure,
            mean_precision=_MEAN_PRECISION,
            mean=np.zeros(n_features),
            degrees_of_freedom=float(n_features),
            covariance=n_features * structure.gram(factors)[0],
            independent=False,
            reg_covar=0.0,
            resolution=np.zeros(n_features),
        )
        start = VariationalPosterior(prior, np.array([rows.total_weight]), np.zeros((1, n_features)), factors)
        return _optimum(rows, start, _LEAST_GAIN_BEYOND if is_wide else _LEAST_GAIN)

    @property
    def mean(self):
        """(P,), measured from the rows' origin."""
        return self._mean_and_covariance[0]

    def covariance_in(self, structure):
        """The covariance (ddof = 1) in the shape of a structure: a matrix, variances, or their mean."""
        return covariance_in(structure, self._mean_and_covariance[1])

    @cached_property
    def _mean_and_covariance(self):
        """The mean and the covariance, in the posterior's structure, by one more pass without the prior."""
        rows, structure, coordinates = self._rows, self.posterior.structure, OwnCoordinates(self.posterior)
        moments = rows.total(functools.partial(_moments_of_block, coordinates), coordinates.workload)
        total, mean = rows.total_weight, moments.first / rows.total_weight
        scatter = moments.second - structure.sum_of_squares(mean, np.array([total]))
        maps = self.posterior.covariance_cholesky
        covariance = structure.congruence(maps, scatter / max(total - 1.0, _ROUNDING))[0]
        covariance = structure.from_entries(structure.entries(covariance))  # Exactly symmetric.
        # A column has one value only, up to its rounding: then no missing value of it varies either.
        constant = rows.variances <= np.square(_ROUNDING * rows.origin)
        covariance[constant] = covariance[..., constant] = 0.0
        return self.posterior.centred_means[0] + structure.transformed(maps, mean)[0], covariance

    def completed(self, rows):
        """Some rows with all values: ArrayRows; for as many rows as fit into memory."""
        X = rows.each(functools.partial(_completed_values, self.posterior), (rows.n_features,))
        X += rows.origin
        return ArrayRows(X, rows.origin, rows.n_jobs, rows.sample_weight, rows.first)

    def applied(self, function):
        """A function of a block of complete rows, for blocks with missing values: callable."""
        return functools.partial(_of_completed, self.posterior, function)


def covariance_in(structure, covariance):
    """A covariance (P, P), or variances (P,), in a structure's shape: a matrix, variances, or their mean."""
    if structure.is_matrix:
        return covariance
    variances = covariance if covariance.ndim == 1 else np.diag(covariance)
    return structure.gram(structure.diagonal_factors(np.sqrt(variances)))[0]


def _optimum(rows, posterior, least_gain):
    """The posterior after accelerated iterations, once another would gain less than `least_gain` a row."""
    acceleration, result = Acceleration(), e_step(rows, posterior)
    for _ in range(_MAX_STEPS):
        distance = posterior.distance(result.moments)
        if 0.5 * distance**2 < least_gain * rows.total_weight:
            break
        acceleration.record(distance)
        following, proposed = posterior.m_step(result.moments), None
        with contextlib.suppress(DegenerateComponentError):
            proposed = acceleration.proposal(posterior, following)
        if proposed is not None:
            proposed_result = e_step(rows, proposed)
            if proposed_result.lower_bound >= result.lower_bound:
                acceleration.accept()
                posterior, result = proposed, proposed_result
                continue
            acceleration.reject()
        posterior, result = following, e_step(rows, following)
    return posterior


def _moments_of_block(coordinates, block):
    return coordinates.moments(coordinates.represented(block), block.counts[None])


def _completed_values(posterior, block):
    """The rows of a block with their missing values filled by conditional means, (P, n)."""
    if block.missing is None:
        return block.rows
    values = OwnCoordinates(posterior).represented(block).values[0]
    filled = posterior.structure.transformed(posterior.covariance_cholesky, values.T[:, None])[:, 0].T
    return np.where(block.seen > 0, block.rows, filled + posterior.centred_means[0][:, None])


def _of_completed(posterior, function, block):
    return function(replace(block, rows=_completed_values(posterior, block), missing=None))
