"""Components of draws in another order, and how far they are from those of a fit (`labels` asks for both)."""

import numpy as np

from sklearn_lrvb.gaussian.sampling.copula import ParameterDraws


def component_divergences(parameters, posterior):
    """Kullback and Leibler's divergences, doubled, of the components of draws from a fit's: (n, K, K).

    Rows are the fit's components, over whose densities the expectation is, columns those of the draws.
    Components with tails have the divergences of normal ones with their scales.

    Parameters
    ----------
    parameters : GaussianParameters, of n draws
    posterior : VariationalPosterior of as many components, measured from the same origin: the fit
    """
    structure, roots = posterior.structure, _roots(parameters)
    axes = tuple(range(-structure.identity.ndim, 0))
    divergences = np.empty((len(roots), structure.n_components, structure.n_components))
    own = structure.log_determinants(parameters.posterior.covariance_cholesky)
    own = own - structure.log_determinants(parameters.draws.factors)
    of_fit = np.broadcast_to(
        structure.log_determinants(posterior.covariance_cholesky), structure.n_components
    )
    for k in range(structure.n_components):
        traces = np.square(_roots_in_frame(posterior, roots, k)).sum(axis=axes)
        gaps = structure.transformed(roots, parameters.means - parameters.origin - posterior.centred_means[k])
        divergences[:, k] = structure.power * traces + own + np.square(gaps).sum(axis=-1)
        divergences[:, k] -= of_fit[k] + structure.n_features
    return divergences


def _roots(parameters):
    """V with V' V = Lambda, (n, S, ...)."""
    structure = parameters.posterior.structure
    return structure.composed(structure.transposed(parameters.draws.factors), parameters.posterior.whiteners)


def _roots_in_frame(posterior, roots, k):
    """V W_k^-1, (n, S, ...)."""
    group = posterior.structure.precision_group(k)
    return posterior.structure.composed(roots, posterior.covariance_cholesky[[group]])


def reordered_draws(parameters, orders):
    """The draws whose component k is component ``orders[:, k]`` of given ones: ParameterDraws.

    Parameters
    ----------
    parameters : GaussianParameters, of n draws
    orders : int array (n, K)
    """
    posterior, structure = parameters.posterior, parameters.posterior.structure
    roots, factors = _roots(parameters), parameters.draws.factors.copy()
    for k in range(structure.n_groups):
        if structure.has_own_precisions:
            own = _roots_in_frame(posterior, roots, k)[np.arange(len(orders)), orders[:, k]]
            factors[:, k] = structure.transposed(own)
    means = np.take_along_axis(parameters.means - parameters.origin, orders[:, :, None], axis=1)
    in_frames = structure.transformed(posterior.whiteners, means - posterior.centred_means)
    log_weights = parameters.log_weights.copy()
    of_components = log_weights[:, : structure.n_components]
    of_components[...] = np.take_along_axis(of_components, orders, axis=1)
    log_left = parameters.draws.log_rest.sum(axis=1)
    log_stick, log_rest = posterior.prior.weights.log_sticks(log_weights, log_left)
    scaled_means = structure.transformed(structure.transposed(factors), in_frames)
    log_tails = parameters.draws.log_tails
    if log_tails.shape[1] > 1:
        log_tails = np.take_along_axis(log_tails, orders, axis=1)
    return ParameterDraws(log_stick, log_rest, factors, scaled_means, log_tails)
