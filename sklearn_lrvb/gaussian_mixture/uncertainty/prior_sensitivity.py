"""Sensitivity of the posterior means to the prior's hyperparameters, without refitting.

The prior's part of the complete moments is b0 rows at m0 and the scatter C0, seen in every component's frame.
At fixed responsibilities a change of the hyperparameters moves, with delta_k = W_k (m0 - m_k),

    first moments:   db0 delta + b0 W dm0
    second moments:  db0 s(delta) + b0 ds(delta) + s of W dC0 W' - dnu0 s(I)/power
    intercepts:      dgamma dE log pi/dgamma + db0 P/(2 tau^2) + dnu0 (Var log|Lambda| - explained)/(4 power)

(the last second moment because E Lambda = c A^-1, and c grows with nu0). With the intercepts turned into
counts by (V_pi + C)^-1 this is the source R^-1 beta_e of the direct effect beta_e. The responsibilities
answer until beta = beta_e + R G beta, so that the total derivative is beta = M^-1 R^-1 beta_e. Weights
respond to the counts that beta - beta_e stands for, and to gamma itself.

Rows of J M^-1, polynomials in y, give gradients in m0 and C0 through the transposed sources: the prior's mean
acts like b0 rows at m0 that belong to every component for certain.
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.uncertainty.targets import PARAMETERS

_SCALARS = ("weight_concentration_prior", "mean_precision_prior", "degrees_of_freedom_prior")
DIRECTIONS = (*_SCALARS, "covariance_prior", "mean_prior")
_LEAST_COUNT = 0.5  # expected rows of a component that the data speak of
_READINGS = ((0.1, "hardly matters"), (1.0, "matters somewhat"))  # below so many standard deviations


class PriorResponse:
    """Sources of changes of the hyperparameters, their transposes, and what does not go through coefficients.

    A change is four numbers, dgamma, db0, dnu0 and t with dC0 = t C0, and the vector dm0.

    Parameters
    ----------
    parameters : ParameterMap, of a proper prior
    """

    def __init__(self, parameters):
        self._parameters = parameters
        self._posterior = posterior = parameters.posterior
        prior, structure = posterior.prior, posterior.structure
        excess = structure.log_determinant_excess_variance(posterior.degrees_of_freedom) / structure.power
        self._intercepts = np.stack(
            [
                prior.weights.expected_log_sensitivity(posterior.counts),
                0.5 * posterior.n_features / posterior.mean_precision**2,
                structure.per_component(0.25 * excess),
                np.zeros(posterior.n_components),
            ]
        )
        self._second = np.stack(
            [
                np.zeros_like(posterior.whitened_prior_scatter),
                structure.sum_of_squares(posterior.whitened_prior_mean, np.ones(posterior.n_components)),
                np.broadcast_to(
                    -structure.identity_statistic / structure.power, posterior.whitened_prior_scatter.shape
                ),
                posterior.whitened_prior_scatter,
            ]
        )

    def sources(self, scalars, mean_changes):
        """R^-1 beta_e of changes: (n, 4), (n, P) -> (D, n)."""
        posterior, structure = self._posterior, self._posterior.structure
        weight, distance = posterior.prior.mean_precision, posterior.whitened_prior_mean
        counts = self._parameters.count_response(scalars @ self._intercepts)
        moved = np.broadcast_to(mean_changes[:, None, :], (len(scalars), *distance.shape))
        moved = structure.transformed(posterior.whiteners, moved)
        first = scalars[:, 1, None, None] * distance + weight * moved
        second = np.tensordot(scalars, self._second, axes=1)
        if mean_changes.any():
            second += weight * np.stack([self._change_of_squares(own) for own in moved])
        lead = len(scalars)
        quadratic = structure.quadratic_features(second)
        return np.hstack([counts, first.reshape(lead, -1), quadratic.reshape(lead, -1)]).T

    def _change_of_squares(self, moved):
        """d s(delta) = s(delta + u/2) - s(delta - u/2), of u (K, P): (S, ...)."""
        distance, structure = self._posterior.whitened_prior_mean, self._posterior.structure
        ends = np.stack([distance + 0.5 * moved, distance - 0.5 * moved], axis=-1)
        return structure.signed_second_moments(ends, np.tile([1.0, -1.0], (len(moved), 1)))

    def beyond_coefficients(self, target):
        """What a target does beside J of the coefficients, for a unit of each of the four numbers, (4, d)."""
        posterior, weights = self._posterior, self._posterior.prior.weights
        if target not in ("log_weights", "weights"):
            return np.zeros((4, self._parameters.size(target)))
        of_concentration = (
            weights.expected_log_sensitivity if target == "log_weights" else weights.mean_sensitivity
        )
        beyond = -self._parameters.respond(target, self._intercepts[..., None])
        beyond[0] += of_concentration(posterior.counts)
        return beyond

    def gradients(self, coefficients):
        """Derivatives in m0 and C0, given rows of J M^-1: (d, D) -> (d, P), (d, *shape of C0).

        Of matrices the symmetric gradient, with d target = sum(gradient * dC0).
        """
        posterior, structure = self._posterior, self._posterior.structure
        _, linear, curvature = structure.polynomials(coefficients, posterior.second_moment_origin)
        of_mean = np.empty((1, len(coefficients), posterior.n_features))
        weights = np.full((posterior.n_components, 1), posterior.prior.mean_precision)
        write = structure.gradients(posterior.whiteners, linear, curvature)
        write(weights, posterior.whitened_prior_mean[:, :, None], of_mean)
        maps = structure.transposed(posterior.whiteners)
        of_covariance = structure.flattened(structure.congruence(maps, curvature)).sum(axis=1)
        of_covariance = structure.unflattened(of_covariance)  # symmetric to the last digit
        return of_mean[0], of_covariance.reshape(-1, *structure.prior_shape)


def prior_sensitivity(uncertainty, target):
    """d E[target] / d hyperparameter, by the constructor's names: (*attribute's, *hyperparameter's shape).

    Parameters
    ----------
    uncertainty : PosteriorUncertainty, under a proper prior
    """
    parameters = uncertainty.map
    response = PriorResponse(parameters)
    structure = parameters.posterior.structure
    n_targets, n_features = parameters.size(target), structure.n_features
    scalar_sources = response.sources(np.eye(4)[:3], np.zeros((3, n_features)))
    of_scalars = response.beyond_coefficients(target)[:3].T.copy()
    of_mean = np.empty((n_targets, n_features))
    of_covariance = np.empty((n_targets, *structure.prior_shape))
    first = 0
    for coefficients in uncertainty.coefficients(target):
        batch = slice(first, first + len(coefficients))
        first = batch.stop
        of_scalars[batch] += coefficients @ scalar_sources
        of_mean[batch], of_covariance[batch] = response.gradients(coefficients)
    gradients = dict(zip(_SCALARS, of_scalars.T, strict=True))
    gradients |= {"mean_prior": of_mean, "covariance_prior": of_covariance}
    return {name: _shaped(parameters, target, gradient) for name, gradient in gradients.items()}


def _shaped(parameters, target, gradient):
    """(d, *shape of a hyperparameter) -> (*shape of the attribute, *shape of a hyperparameter)."""
    axes = np.arange(gradient.ndim - 1)
    shaped = parameters.shaped(target, np.moveaxis(gradient, 0, -1))
    return np.moveaxis(shaped, axes, axes - len(axes))


def per_standard_deviation(gradients, std):
    """`prior_sensitivity` in posterior standard deviations; 0 where that is 0, as the derivative then is."""
    return {name: _in_units(gradient, std) for name, gradient in gradients.items()}


def _in_units(gradient, std):
    """(*shape, ...) over the standard deviations (*shape), 0 where they are."""
    std = np.broadcast_to(std.reshape(*std.shape, *[1] * (gradient.ndim - std.ndim)), gradient.shape)
    return np.divide(gradient, std, out=np.zeros(gradient.shape), where=std > 0)


def prior_reading(uncertainty, feature_names, targets=PARAMETERS):
    """Whether the prior matters, in one sentence.

    To first order, by the largest move of a posterior mean of ``targets``, in its standard deviations, where
    one hyperparameter is doubled (all of ``covariance_prior`` at once), or ``mean_prior`` moved by a standard
    deviation of the covariance C0/nu0 in the direction that is worst for that posterior mean. Of what the
    data do not speak nothing is said: components without rows, which are the prior's, and the log weight of
    a single component.
    """
    if uncertainty.map.posterior.prior.flat:
        return "The prior is flat: there is nothing to choose."
    parameters = uncertainty.map
    names = np.array([name for target in targets for name in parameters.labels(target, feature_names)])
    moves = prior_moves(uncertainty, targets)
    moves *= np.concatenate([_told_by_data(parameters, target) for target in targets])
    direction, entry = np.unravel_index(moves.argmax(), moves.shape)
    largest = moves[direction, entry]
    if largest == 0:
        return "The prior does not matter: to first order, it moves none of these posterior means."
    how_much = next((reading for below, reading in _READINGS if largest < below), "matters")
    return (
        f"The prior {how_much}: to first order, doubling a hyperparameter, or moving mean_prior by a "
        f"standard deviation of the prior's covariance, moves posterior means by up to {largest:.2g} "
        f"posterior standard deviations (most: {DIRECTIONS[direction]} moves {names[entry]})."
    )


def _told_by_data(parameters, target):
    """Which flat entries belong to a component with rows, or to all, and can be anything: bool (d,)."""
    occupied = parameters.posterior.counts >= _LEAST_COUNT
    if target in ("log_weights", "weights"):
        return occupied & (len(occupied) > 1)
    if target != "means" and parameters.posterior.structure.n_precision_groups < len(occupied):
        return np.ones(parameters.size(target), dtype=bool)
    return np.repeat(occupied, parameters.size(target) // len(occupied))


def prior_moves(uncertainty, targets):
    """What the moves of `prior_reading` do to every entry of the targets, in its standard deviations, (5, d).

    In the order of `DIRECTIONS`; 0 where there is no standard deviation.
    """
    parameters = uncertainty.map
    response = PriorResponse(parameters)
    prior = parameters.posterior.prior
    doubled = np.log(2.0) * np.diag(
        [prior.weights.prior_concentration, prior.mean_precision, prior.degrees_of_freedom, 1.0]
    )
    deviations = _deviations_under(prior)
    n_features = len(deviations)
    scalars = np.concatenate([doubled, np.zeros((n_features, 4))])
    mean_changes = np.concatenate([np.zeros((4, n_features)), deviations])
    of_direction = np.minimum(np.arange(4 + n_features), 4)
    squares = {target: np.zeros((5, parameters.size(target))) for target in targets}
    solutions = uncertainty.solutions(
        len(scalars), lambda batch: response.sources(scalars[batch], mean_changes[batch])
    )
    first = 0
    for coefficients in solutions:
        batch = slice(first, first + len(coefficients))
        first = batch.stop
        for target, own in squares.items():
            moves = parameters.responses(target, coefficients)
            moves += scalars[batch] @ response.beyond_coefficients(target)
            np.add.at(own, of_direction[batch], np.square(moves))
    stds = {target: parameters.flat(target, uncertainty.std(target)) for target in targets}
    return np.hstack([_in_units(np.sqrt(squares[target]).T, stds[target]).T for target in targets])


def _deviations_under(prior):
    """Rows v with sum of v v' = C0/nu0, (P, P)."""
    structure = prior.structure
    root = structure.cholesky(prior.covariance / prior.degrees_of_freedom)
    return structure.transformed(root[None], np.eye(structure.n_features)[:, None, :])[:, 0]
