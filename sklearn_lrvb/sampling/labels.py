"""Label switching, and draws in other modes of the posterior than the fit.

The likelihood does not depend on the numbers of the components. Chains may exchange them, after which
averages of "component 0" mean nothing. Draws get numbers by which their components are closest to those of
the fit; draws that are still far from it are in another mode.

*The evidence of all labellings*, from draws of one of them. The likelihood does not depend on which component
has which number, so that every mode of the posterior has copies. Where components overlap, draws of one copy
also reach the others. Each draw is therefore counted only if its components are closer to those of the fit in
their own order than in any other: the draws that are counted make up one copy exactly, and the evidence is
theirs times the number of copies. Copies that differ in the numbers of empty components alone are the same.

*The noise component* is a label of its own, which is never exchanged with a component.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln, logsumexp, xlogy

from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.weight_priors import DirichletWeights
from sklearn_lrvb.rows import batches

# Distance, in units of `in_mode`, beyond which a parameter has left the mode of the fit; and the
# standard deviation of a normal variable over the median of its distances from the mean.
FAR, _DEVIATION_OF_MEDIAN = 8.0, 1.4826

# Size of the term that decides between components of the fit that are equal, beside shares that sum to one.
_TIE_BREAK = 1e-7


def in_mode(parameters, uncertainty):
    """The draws with the numbers of the closest components of the fit, and which are in another mode.

    A draw is in another mode if one of the `mode_targets` of its model is far from the fit, in a
    label that holds rows. The unit is the standard deviation by linear response, or 1.48 times the median
    distance of all draws from the fit where that is larger.

    Parameters
    ----------
    parameters : DrawnParameters, of n draws
    uncertainty : PosteriorUncertainty

    Returns
    -------
    parameters : DrawnParameters
    is_away : bool (n,)
    """
    posterior, draws = parameters.posterior, parameters.draws
    orders, _ = closest_orders(parameters, posterior)
    changed = np.flatnonzero((orders != np.arange(posterior.n_components)).any(axis=1))
    if len(changed):
        others = parameters.with_draws(draws[changed])
        draws = draws.replaced(changed, others.reordered(orders[changed]))
        parameters = parameters.with_draws(draws)
    is_away = np.zeros(len(draws), dtype=bool)
    for name in posterior.model.mode_targets:
        target = uncertainty.targets[name]
        distances = np.abs(parameters.flat(name) - target.flat_value())
        scale = _DEVIATION_OF_MEDIAN * np.median(distances, axis=0)
        is_far = distances > FAR * np.maximum(uncertainty.flat_std(name), scale)
        is_away |= is_far[:, occupied(target.counts())].any(axis=1)
    return parameters, is_away


def closest_orders(parameters, posterior, some=slice(None)):
    """Numbers of the draws' components that are closest to some of a fit, one each, and how close they are.

    Parameters
    ----------
    parameters : DrawnParameters, of n draws
    posterior : posterior of as many components, measured from the same origin: the fit
    some : bool (K,), which m components of the fit; by default all

    Returns
    -------
    orders : int array (n, m)
    divergences : (n,), sums over these components and the noise component, to compare fits of the same rows
    """
    costs, noise_costs = _divergences(parameters, posterior)
    costs = costs[:, some]
    orders = costs.argmin(axis=2)
    # Where two have the same closest component, one of them has to take another.
    is_taken = (np.diff(np.sort(orders, axis=1), axis=1) == 0).any(axis=1)
    for draw in np.flatnonzero(is_taken):
        orders[draw] = linear_sum_assignment(costs[draw])[1]
    divergences = np.take_along_axis(costs, orders[:, :, None], axis=2).sum(axis=(1, 2))
    return orders, divergences + noise_costs


def _divergences(parameters, posterior):
    """Divergences of draws from a fit: of the components (n, K, K), and of the noise component (n,).

    They are Kullback and Leibler's, doubled, of the joint law of a label and a row: a component of a draw
    without weight is close to none of the fit. Rows are the fit's components, which count as often as they
    have rows; columns are those of the draws. Where components of the fit are equal, the order of the draws'
    weights decides, so that each of their orders is the closest one equally often. Without noise its
    divergence is zero.
    """
    n_components, counts = posterior.n_components, posterior.label_counts
    shares, noise_share = np.split(counts / counts.sum(), [n_components])
    log_weights, log_noise = np.split(parameters.log_weights, [n_components], axis=1)
    factors = _TIE_BREAK * np.arange(n_components) - 2.0 * shares
    costs = parameters.divergences_from(posterior)
    costs = shares[:, None] * costs + xlogy(2.0 * shares, shares)[:, None]
    costs += factors[:, None] * log_weights[:, None, :]
    gaps = xlogy(noise_share, noise_share) - noise_share * log_noise
    # Infinities are of empty labels, whose share is zero.
    return np.nan_to_num(costs), 2.0 * np.nan_to_num(gaps).sum(axis=1)


_MOST_COMPONENTS = 12  # Largest number of components for which all subsets of them are gone through.


def log_copies(counts):
    """log of the number of relabelled copies, K!/m! for K components of which m are empty: (K,) -> float."""
    return float(gammaln(len(counts) + 1) - gammaln(np.sum(~occupied(counts)) + 1))


def log_copies_of(posterior):
    """The same of an optimum; 0 if the prior of the weights depends on the order of the components: float."""
    is_dirichlet = isinstance(posterior.prior.weights.of_components, DirichletWeights)
    return log_copies(posterior.counts) if is_dirichlet else 0.0


def are_in_order(parameters):
    """Which draws are closest to the fit with their components in its own order: bool (n,)."""
    is_occupied = occupied(parameters.posterior.counts)
    orders, _ = closest_orders(parameters, parameters.posterior, is_occupied)
    return np.all(orders == np.flatnonzero(is_occupied), axis=1)


def evidence_of_all_copies(parameters, sampled, is_counted):
    """log of the evidence of all relabelled copies, and its Monte Carlo standard error: a pair of float.

    The pair is (None, None) if components are too many, or overlap so much that no draw is counted.

    Parameters
    ----------
    parameters : DrawnParameters, of n draws
    sampled : ImportanceWeights, of these draws
    is_counted : bool (n,), which draws make up one copy

    Notes
    -----
    A Dirichlet prior is the same for all copies. Broken sticks put large weights first: in another order of
    the components the prior density is another one, and a copy has a larger or smaller evidence. With the
    tails t_k = 1 - sum_{j<k} pi_j the density is a function of the weights in any order over prod_k t_k, and
    the sum of 1/prod_k t_k over all orders is one over subsets. With noise, the pi_k are those given
    its weight.
    """
    posterior = parameters.posterior
    weights = posterior.prior.weights.of_components
    if isinstance(weights, DirichletWeights):
        log_copies_by_draw = np.full(len(parameters.draws), log_copies(posterior.counts))
    elif posterior.n_components > _MOST_COMPONENTS:
        return None, None
    else:
        # The breaks of the components are the last ones.
        draws, breaks = parameters.draws, slice(-posterior.n_components, None)
        log_rest = draws.log_rest[:, breaks]
        log_weights = weights.log_weights(draws.log_stick[:, breaks], log_rest)
        log_left = np.cumsum(log_rest, axis=1)  # of t_2, ..., t_(K + 1)
        log_copies_by_draw = log_left[:, :-1].sum(axis=1)
        is_empty = ~occupied(posterior.counts)
        for some in batches(len(log_left), 16 * 2**posterior.n_components):
            log_copies_by_draw[some] += _log_sum_over_orders(log_weights[some], log_left[some, -1], is_empty)
    counted = np.where(is_counted, sampled.weights, 0.0)
    if not counted.any():
        return None, None
    shares = counted * np.exp(log_copies_by_draw - log_copies_by_draw.max())
    error = np.sqrt(max(np.square(shares / shares.sum()).sum() - 1.0 / len(shares), 0.0))
    return sampled.log_evidence + float(logsumexp(log_copies_by_draw, b=counted)), float(error)


def _log_sum_over_orders(log_weights, log_left, is_empty):
    """log of the sum of 1/prod_k t_k over orders of the components: (n, K), (n,), bool (K,) -> (n,).

    Empty components keep their order among each other: to exchange them makes no other copy. The tail t_k is
    what is left by the components before the k-th: a subset of them, and what none has. The sum for a subset
    at the end is one over its tail, times the sums for the subset without the component that comes first.
    """
    n_components = log_weights.shape[1]
    log_sums = np.zeros((2**n_components, len(log_weights)))
    log_tails = np.empty_like(log_sums)
    log_tails[0] = log_left
    for subset in range(1, 2**n_components):
        members = [k for k in range(n_components) if subset >> k & 1]
        log_tails[subset] = np.logaddexp(log_tails[subset & (subset - 1)], log_weights[:, members[0]])
        first_empty = [k for k in members if is_empty[k]][:1]
        firsts = [k for k in members if not is_empty[k]] + first_empty
        without_first = logsumexp(log_sums[[subset ^ (1 << k) for k in firsts]], axis=0)
        log_sums[subset] = without_first - log_tails[subset]
    return log_sums[-1]
