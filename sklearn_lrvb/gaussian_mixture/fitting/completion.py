"""One normal distribution of rows with holes, by which starts and default priors see them as complete.

Its mean and covariance are estimates by the EM algorithm, for values missing at random. Means of the values
that are there would be biased where other columns decide which values are missing, and covariances of pairs
of columns need not make a positive definite matrix.

While it is estimated, the covariance is drawn towards the diagonal matrix of the columns' variances as by P
rows more, so that columns may be dependent or outnumber the rows. What is reported is not.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np

from sklearn_lrvb.gaussian_mixture.covariance_structures import COVARIANCE_STRUCTURES
from sklearn_lrvb.gaussian_mixture.e_step.e_step import e_step
from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.fitting.anderson_acceleration import Acceleration
from sklearn_lrvb.gaussian_mixture.posterior.degenerate_components import DegenerateComponentError
from sklearn_lrvb.gaussian_mixture.posterior.mixture_prior import MixturePrior
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import (
    VariationalPosterior,
    statistics_residual,
)
from sklearn_lrvb.gaussian_mixture.posterior.weight_priors import DirichletWeights
from sklearn_lrvb.row_blocks import ArrayRows

# Steps end where a sweep would gain less than about so many nats a row, and at the latest after so many.
_LEAST_GAIN = 1e-7
_MAX_STEPS = 100

# Number of features beyond which a column is completed by its mean alone, where no covariances are asked for:
# completing it by all other columns takes up to P^3 flops for every pattern of holes and sweep. Where they
# are asked for, at most the second number of steps are made: most of the way, at the cost of ten sweeps.
_MAX_FEATURES = 200
_STEPS_BEYOND = 10

_MEAN_PRECISION = 1e-6  # Of the prior that draws the mean to that of the columns, in rows.
_ROUNDING = np.finfo(float).eps
_LEAST_VARIANCE = 1e-200  # Of a column of zeros, whose square root and reciprocal are still numbers.


@dataclass(frozen=True)
class Completion:
    """One normal distribution of all rows.

    Attributes
    ----------
    posterior : VariationalPosterior of one component
    mean : (P,), measured from the rows' origin
    covariance : (P, P), or (P,) where it is diagonal; with ddof = 1
    """

    posterior: VariationalPosterior
    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, rows, needs_matrix):
        """The estimate from all rows, by some passes over them; None where they are complete.

        Parameters
        ----------
        rows : CentredRows
        needs_matrix : bool, whether covariances of pairs of columns are asked for
        """
        if not rows.has_holes:
            return None
        is_wide = rows.n_features > _MAX_FEATURES
        start = _start(rows, "diag" if is_wide and not needs_matrix else "full")
        posterior = _fitted(rows, start, _STEPS_BEYOND if is_wide else _MAX_STEPS)
        return cls(posterior, *_mean_and_covariance(rows, posterior))

    def covariance_in(self, structure):
        """The covariance in the shape of a structure: a matrix, variances, or their mean."""
        if structure.is_matrix:
            return self.covariance
        variances = self.posterior.structure.diagonal(self.covariance)
        return structure.gram(structure.scaled_frames(np.sqrt(variances)))[0]

    def completed_values(self, block):
        """The rows of a block with their missing values filled by conditional means, (P, n)."""
        if block.holes is None:
            return block.rows
        structure, posterior = self.posterior.structure, self.posterior
        values = OwnFrames(posterior).whiten(block).values[0]
        filled = structure.transformed(posterior.covariance_cholesky, values.T[:, None])[:, 0].T
        return np.where(block.seen > 0, block.rows, filled + posterior.centred_means[0][:, None])

    def completed(self, rows):
        """Some rows without holes: ArrayRows; for as many rows as fit into memory."""
        X = rows.concatenated(self.completed_values)
        X += rows.origin
        return ArrayRows(X, rows.origin, rows.n_jobs, rows.sample_weight, rows.first)


@dataclass(frozen=True)
class OfCompleted:
    """A function of a block of rows, applied to the block without holes.

    Attributes
    ----------
    completion : Completion
    function : callable
    """

    completion: Completion
    function: object

    def __call__(self, block):
        return self.function(replace(block, rows=self.completion.completed_values(block), holes=None))


def _start(rows, covariance_type):
    """The columns' means and variances, as a posterior."""
    n_features = rows.n_features
    variances = np.maximum(rows.variances, np.square(_ROUNDING * rows.origin))
    variances = np.maximum(variances, _LEAST_VARIANCE)
    structure = COVARIANCE_STRUCTURES[covariance_type](1, n_features)
    frames = structure.scaled_frames(np.sqrt(variances))
    prior = MixturePrior(
        weights=DirichletWeights(1.0, 1),
        structure=structure,
        mean_precision=_MEAN_PRECISION,
        mean=np.zeros(n_features),
        degrees_of_freedom=float(n_features),
        covariance=n_features * structure.gram(frames)[0],
        independent=False,
        reg_covar=0.0,
        resolution=np.zeros(n_features),
    )
    return VariationalPosterior(prior, np.array([rows.total_weight]), np.zeros((1, n_features)), frames)


def _fitted(rows, posterior, max_steps):
    """The posterior at the end of accelerated sweeps."""
    acceleration, result = Acceleration(), e_step(rows, posterior)
    for _ in range(max_steps):
        distance = posterior.deviation(statistics_residual(posterior, result.moments))
        if 0.5 * distance**2 < _LEAST_GAIN * rows.total_weight:
            break
        acceleration.record(distance)
        swept = posterior.m_step(result.moments)
        posterior, result = _accelerated(rows, posterior, swept, result.lower_bound, acceleration)
    return posterior


def _accelerated(rows, posterior, swept, lower_bound, acceleration):
    """The posterior after a step of the acceleration, or after a sweep where that lowers the bound."""
    try:
        proposed = acceleration.proposal(posterior, swept)
    except DegenerateComponentError:
        proposed = None
    if proposed is not None:
        result = e_step(rows, proposed)
        if result.lower_bound >= lower_bound:
            acceleration.accept()
            return proposed, result
        acceleration.reject()
    return swept, e_step(rows, swept)


def _are_constant(rows):
    """Which columns have one value only, up to its rounding: bool (P,)."""
    return rows.variances <= np.square(_ROUNDING * rows.origin)


def _mean_and_covariance(rows, posterior):
    """The mean and the covariance, in the posterior's structure, by one more sweep without the prior."""
    structure, frames = posterior.structure, OwnFrames(posterior)
    moments = rows.total(functools.partial(_moments_of_block, frames), frames.numbers_per_row)
    total, mean = rows.total_weight, moments.first / rows.total_weight
    scatter = moments.second - structure.sum_of_squares(mean, np.array([total]))
    maps = posterior.covariance_cholesky
    covariance = structure.congruence(maps, scatter / max(total - 1.0, _ROUNDING))[0]
    covariance = structure.from_entries(structure.entries(covariance))  # Exactly symmetric.
    constant = _are_constant(rows)  # Of these columns no missing value varies either.
    covariance[constant] = covariance[..., constant] = 0.0
    return posterior.centred_means[0] + structure.transformed(maps, mean)[0], covariance


def _moments_of_block(frames, block):
    return frames.moments(frames.whiten(block), block.counts[None])
