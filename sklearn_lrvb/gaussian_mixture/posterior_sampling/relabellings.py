"""How often a posterior occurs among those with relabelled components.

The likelihood does not depend on which component has which number, so that every mode of the posterior has
copies. Draws of one of them give its evidence; that of all of them is larger by a factor. Copies that differ
in the numbers of empty components alone are the same mode.
"""

import numpy as np
from scipy.special import gammaln, logsumexp

from sklearn_lrvb.gaussian_mixture.posterior.occupied_components import occupied
from sklearn_lrvb.gaussian_mixture.posterior.weight_priors import DirichletWeights

_MOST_COMPONENTS = 12  # Largest number of components for which all subsets of them are gone through.


def log_copies(counts):
    """log of the number of relabelled copies, K!/m! for K components of which m are empty: (K,) -> float."""
    return float(gammaln(len(counts) + 1) - gammaln(np.sum(~occupied(counts)) + 1))


def log_total_over_one(parameters, weights):
    """log of the evidence of all relabelled copies over that of one; None if components are too many.

    Parameters
    ----------
    parameters : DrawnParameters
    weights : (n,), of the draws from the exact posterior's mode; they sum to one

    Notes
    -----
    A Dirichlet prior is the same for all copies. Broken sticks put large weights first: in another order of
    the components the prior density is another one, and a copy has a larger or smaller evidence. With the
    tails t_k = 1 - sum_{j<k} pi_j the density is a function of the weights in any order over prod_k t_k, and
    the sum of 1/prod_k t_k over all orders is one over subsets.
    """
    posterior = parameters.posterior
    copies = log_copies(posterior.counts)
    if isinstance(posterior.prior.weights, DirichletWeights):
        return copies
    n_components = posterior.n_components
    if n_components > _MOST_COMPONENTS:
        return None
    log_left = np.cumsum(parameters.draws.log_rest, axis=1)  # of t_2, ..., t_(K + 1)
    in_this_order = -log_left[:, :-1].sum(axis=1)
    is_empty = ~occupied(posterior.counts)
    in_all_orders = _log_sum_over_orders(parameters.log_weights, log_left[:, -1], is_empty)
    return float(logsumexp(in_all_orders - in_this_order, b=weights))


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
