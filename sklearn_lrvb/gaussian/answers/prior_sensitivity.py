"""Derivatives of the posterior means in the prior's hyperparameters, without refitting.

The prior enters the complete moments like b0 rows at m0, and with the scatter C0, both in every component's
whitened coordinates. At fixed responsibilities, and with delta_k = W_k (m0 - m_k), a change of the
hyperparameters changes these moments by

    first moments:   db0 delta + b0 W dm0
    second moments:  db0 s(delta) + b0 ds(delta) + s of W dC0 W' - dnu0 s(I)/power
    intercepts:      dgamma dE log pi/dgamma + db0 P/(2 tau^2) + dnu0 (Var log|Lambda| - explained)/(4 power)

(the last second moment because E Lambda = c A^-1, and c grows with nu0). Where rows have scales, db0 changes
their sums, and no intercepts. With the intercepts turned into counts by (V_pi + C)^-1 this is the source R^-1
beta_e of the direct effect beta_e. The responsibilities respond until beta = beta_e + R G beta, so that the
total derivative is beta = M^-1 R^-1 beta_e. Weights respond to the counts behind beta - beta_e, and to gamma
itself (`Target.beyond_coefficients`).

The rows of J M^-1, as polynomials in y, give the gradients in m0 and C0 through the transposed sources: the
prior's mean acts like b0 rows at m0 that belong to every component with certainty.
"""

import math

import numpy as np

from sklearn_lrvb.answers.prior_sensitivity import in_units_of
from sklearn_lrvb.gaussian.posterior.learned_prior import LearnedInformation

_MAX_DERIVATIVES = 200_000_000  # Largest number of derivatives that are kept at once, 1.6 GB.


# The hyperparameters whose changes are compared, numbers first.
DIRECTIONS = (
    "weight_concentration_prior",
    "mean_precision_prior",
    "degrees_of_freedom_prior",
    "covariance_prior",
    "mean_prior",
)


class PriorChanges:
    """Changes of the hyperparameters, their effects through the coefficients, and the direct ones.

    Parameters
    ----------
    posterior : VariationalPosterior, of a proper prior
    scalars : (n, 4), of every change four numbers: dgamma, db0, dnu0, and t with dC0 = t C0
    mean_changes : (n, P), dm0

    Attributes
    ----------
    concentration : (n,), dgamma
    intercepts : (n, L), direct effects on the intercepts
    covariance : (n, ...), direct effects on C0, if it is learned
    names, in_words, direction : as `MixtureModel.changes_of_prior` says
    """

    names = DIRECTIONS
    in_words = (
        *(f"{name} doubled" for name in DIRECTIONS[:4]),
        "mean_prior moved by one standard deviation of a cluster (as the prior expects it)",
    )

    def __init__(self, posterior, scalars, mean_changes):
        self._posterior, self._scalars, self._mean_changes = posterior, scalars, mean_changes
        self.direction = np.minimum(np.arange(len(scalars)), 4)
        prior, structure = posterior.prior, posterior.structure
        excess = structure.wisharts.log_determinant_excess_variance(posterior.expectations.halves)
        # Changes of the intercepts and of the complete second moments, for each of the four numbers.
        intercepts = np.zeros((4, posterior.n_labels))
        intercepts[0] = prior.weights.expected_log_sensitivity(posterior.label_counts)
        component_intercepts = intercepts[:, : posterior.n_components]
        if not structure.has_scales:
            component_intercepts[1] = 0.5 * posterior.n_features / posterior.mean_precision**2
        component_intercepts[2] = structure.layout.per_component(0.25 * excess / structure.power)
        scatter, distance = structure.gram(posterior.whitened_prior_root), posterior.whitened_prior_mean
        self._second = np.zeros((4, *scatter.shape))
        self._second[1] = structure.sum_of_squares(distance, np.ones(posterior.n_components))
        self._second[2] = -structure.identity_statistic / structure.power
        self._second[3] = scatter
        self._by_mean_precision, self._is_learned = 1.0, structure.parts.learns_mean_precision
        if self._is_learned:  # Then it is its expectation s/r that changes, and b0 has a coefficient.
            learned = prior.learned
            intercepts[1], self._second[1], self._by_mean_precision = 0.0, 0.0, 0.0
            self._source_of_mean_precision = learned.rate**2 / learned.shape * prior.mean_precision
        if structure.parts.learns_covariance:
            by_freedom, by_scale = prior.learned.responses_of_covariance(prior)
            to_whitened = structure.composed(posterior.whiteners, prior.covariance_cholesky)
            self._second[2] += structure.congruence(to_whitened, by_freedom)
            self._second[3] = structure.congruence(to_whitened, by_scale)
            direct = np.concatenate([by_freedom, by_scale])
            direct = structure.congruence(prior.covariance_cholesky, direct[:, None])[:, 0]
            self.covariance = np.tensordot(scalars[:, 2:], direct, axes=1)
        self.concentration, self.intercepts = scalars[:, 0], scalars @ intercepts

    def sources(self, some):
        """R^-1 beta_e of some of the changes, a slice: (D, n)."""
        scalars, mean_changes = self._scalars[some], self._mean_changes[some]
        posterior, structure = self._posterior, self._posterior.structure
        n_prior_rows, distance = posterior.prior.mean_precision, posterior.whitened_prior_mean
        counts = posterior.count_response(self.intercepts[some])
        shifts = np.broadcast_to(mean_changes[:, None, :], (len(scalars), *distance.shape))
        shifts = structure.transformed(posterior.whiteners, shifts)
        first = self._by_mean_precision * scalars[:, 1, None, None] * distance + n_prior_rows * shifts
        second = np.tensordot(scalars, self._second, axes=1)
        signs = np.tile([1.0, -1.0], (len(distance), 1))
        for change in np.flatnonzero(mean_changes.any(axis=1)):
            # d s(delta) = s(delta + u/2) - s(delta - u/2)
            half = 0.5 * shifts[change]
            shifted = np.stack([distance + half, distance - half], axis=-1)
            second[change] += n_prior_rows * structure.second_moments(shifted, signs)
        quadratic = structure.features.from_sums(second)
        n_changes, blocks = len(scalars), structure.layout.blocks
        sources = np.zeros((n_changes, structure.layout.n_coefficients))
        sources[:, blocks["intercept"]] = counts
        sources[:, blocks["linear"]] = first.reshape(n_changes, -1)
        sources[:, blocks["quadratic"]] = quadratic.reshape(n_changes, -1)
        sources[:, blocks["scale"]] = self._by_mean_precision * scalars[:, 1:2]
        if self._is_learned:
            by_mean = -n_prior_rows * np.einsum("kp,nkp->n", distance, shifts)
            by_counts = counts @ LearnedInformation(posterior).intercepts
            of_rate = self._source_of_mean_precision * scalars[:, 1]
            sources[:, blocks["mean_precision"].start] = of_rate + by_mean - by_counts
        return sources.T


def changes_of_prior(posterior):
    """The moves of the prior by which its importance is read (`MixtureModel.changes_of_prior`): PriorChanges.

    Every number is doubled, all entries of C0 at once, and m0 is moved by the P vectors v with
    sum of v v' = C0/nu0: the root of the summed squares is the move in the worst direction.

    Parameters
    ----------
    posterior : VariationalPosterior, of a proper prior
    """
    prior, structure = posterior.prior, posterior.structure
    is_learned, learned = structure.parts.learns_mean_precision, prior.learned
    mean_precision = learned.shape / learned.rate if is_learned else prior.mean_precision
    hyperparameters = [prior.weights.prior_concentration, mean_precision, prior.degrees_of_freedom, 1.0]
    # Rows v with sum of v v' = C0/nu0, (P, P).
    cholesky = structure.cholesky((prior.covariance / prior.degrees_of_freedom)[None])
    deviations = structure.transformed(cholesky, np.eye(structure.n_features)[:, None, :])[:, 0]
    scalars = np.zeros((4 + len(deviations), 4))
    scalars[:4] = np.log(2.0) * np.diag(hyperparameters)
    return PriorChanges(posterior, scalars, np.concatenate([np.zeros((4, len(deviations))), deviations]))


def gradients_in_moments(posterior, coefficients, direct=0.0):
    """Derivatives in m0 and C0, given rows of J M^-1: (d, D) -> (d, P), (d, *shape of C0).

    The gradient in a matrix C0 is the symmetric one, with d target = sum(gradient * dC0). Those for given
    coefficients are ``direct`` (d, ...).
    """
    structure = posterior.structure
    _, linear, curvature, *_ = structure.features.polynomials(coefficients, posterior.second_moment_origin)
    mean_gradients = np.empty((1, len(coefficients), posterior.n_features))
    n_prior_rows = np.full((posterior.n_components, 1), posterior.prior.mean_precision)
    write = structure.features.gradients(posterior.whiteners, linear, curvature)
    write(n_prior_rows, posterior.whitened_prior_mean[:, :, None], mean_gradients)
    if structure.parts.learns_mean_precision:  # b0 responds to the mean.
        block = structure.layout.blocks["mean_precision"]
        per_mean = structure.transformed(
            structure.transposed(posterior.whiteners), posterior.whitened_prior_mean
        )
        mean_gradients[0] -= coefficients[:, block] * posterior.prior.mean_precision * per_mean.sum(axis=0)
    maps = structure.transposed(posterior.whiteners)
    covariance_gradients = structure.entries(structure.congruence(maps, curvature)).sum(axis=1)
    covariance_gradients = structure.from_entries(covariance_gradients) + direct  # exactly symmetric
    if structure.parts.learns_covariance:
        learned = posterior.prior.learned
        covariance_gradients = learned.gradient_in_expectation(posterior.prior, covariance_gradients)
    return mean_gradients[0], covariance_gradients.reshape(-1, *structure.prior_shape)


def prior_sensitivity(uncertainty, name, per_std=False):
    """d E[target] / d hyperparameter, by the constructor's names: (*attribute's, *hyperparameter's shape).

    Parameters
    ----------
    uncertainty : PosteriorUncertainty
    name : str, of the target
    per_std : bool, default=False
        Whether in posterior standard deviations; 0 where that is 0, as the derivative then is.

    Raises
    ------
    ValueError
        There is no target of this name, or the prior is flat.
    MemoryError
        The derivatives in C0 would take more than 1.6 GB.
    """
    target, posterior = uncertainty.targets[name], uncertainty.fitted.posterior
    if posterior.prior.flat:
        raise ValueError("prior_sensitivity is undefined for prior='flat'. Refit with prior='learned'.")
    structure = posterior.structure
    shape = (target.size, *structure.prior_shape)
    if math.prod(shape) > _MAX_DERIVATIVES:
        raise MemoryError(
            f"The derivatives of the {name} in covariance_prior are an array of shape {shape}, of "
            f"{8 * math.prod(shape) / 2**30:.1f} GiB. (a) Ask for target='weights'. (b) Reduce the features "
            "first, for example with PCA in a pipeline. (c) Use covariance_type='diag'."
        )
    changes = PriorChanges(posterior, np.eye(3, 4), np.zeros((3, structure.n_features)))
    sources = changes.sources(slice(None))
    by_scalars = target.beyond_coefficients(changes, slice(None)).T
    by_mean, by_covariance = np.empty((target.size, structure.n_features)), np.empty(shape)
    direct = np.broadcast_to(target.covariance_gradient, (target.size, *structure.identity.shape))
    last = 0
    for coefficients in uncertainty.coefficients(name):
        some = slice(last, last + len(coefficients))
        by_scalars[some] += coefficients @ sources
        by_mean[some], by_covariance[some] = gradients_in_moments(posterior, coefficients, direct[some])
        last = some.stop
    gradients = dict(zip(DIRECTIONS[:3], by_scalars.T, strict=True))
    gradients |= {"mean_prior": by_mean, "covariance_prior": by_covariance}
    if per_std:
        std = uncertainty.flat_std(name)
        gradients = {changed: in_units_of(std, gradient) for changed, gradient in gradients.items()}
    return {changed: gradient[target.flat_indices()] for changed, gradient in gradients.items()}
