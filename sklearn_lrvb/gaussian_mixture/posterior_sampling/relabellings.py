"""The evidence of all labellings, from draws of one of them.

The likelihood does not depend on which component has which number, so that every mode of the posterior has
copies. Where components overlap, draws of one copy also reach the others. Each draw is therefore counted only
if its components are closer to those of the fit in their own order than in any other: the draws that are
counted make up one copy exactly, and the evidence is theirs times the number of copies. Copies that differ in
the numbers of empty components alone are the same.
"""

import numpy as np
from scipy.special import gammaln, logsumexp

from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import occupied
from sklearn_lrvb.gaussian_mixture.posterior.weight_priors import DirichletWeights
from sklearn_lrvb.gaussian_mixture.posterior_sampling.label_switching import closest_orders
from sklearn_lrvb.row_blocks import batches

_MOST_COMPONENTS = 12  # Largest number of components for which all subsets of them are gone through.


def log_copies(counts):
    """log of the number of relabelled copies, K!/m! for K components of which m are empty: (K,) -> float."""
    return float(gammaln(len(counts) + 1) - gammaln(np.sum(~occupied(counts)) + 1))


def evidence_of_all_copies(parameters, sampled):
    """log of the evidence of all relabelled copies, and its Monte Carlo standard error: a pair of float.

    The pair is (None, None) if components are too many, or overlap so much that no draw is counted.

    Parameters
    ----------
    parameters : DrawnParameters, of n draws
    sampled : ImportanceWeights, of these draws

    Notes
    -----
    A Dirichlet prior is the same for all copies. Broken sticks put large weights first: in another order of
    the components the prior density is another one, and a copy has a larger or smaller evidence. With the
    tails t_k = 1 - sum_{j<k} pi_j the density is a function of the weights in any order over prod_k t_k, and
    the sum of 1/prod_k t_k over all orders is one over subsets.
    """
    posterior = parameters.posterior
    if isinstance(posterior.prior.weights, DirichletWeights):
        log_copies_by_draw = np.full(len(parameters.draws), log_copies(posterior.counts))
    elif posterior.n_components > _MOST_COMPONENTS:
        return None, None
    else:
        log_left = np.cumsum(parameters.draws.log_rest, axis=1)  # of t_2, ..., t_(K + 1)
        log_copies_by_draw = log_left[:, :-1].sum(axis=1)
        is_empty = ~occupied(posterior.counts)
        for some in batches(len(log_left), 16 * 2**posterior.n_components):
            log_copies_by_draw[some] += _log_sum_over_orders(
                parameters.log_weights[some], log_left[some, -1], is_empty
            )
    is_occupied = occupied(posterior.counts)
    is_counted = np.all(closest_orders(parameters, is_occupied) == np.flatnonzero(is_occupied), axis=1)
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
