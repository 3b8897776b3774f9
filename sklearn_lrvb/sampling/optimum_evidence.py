"""The part of one optimum in the evidence of as many components, all of which hold rows.

It is estimated by importance sampling. A draw counts if no other optimum is closer to it, if its components
are in the order of this optimum, and if rows that are assigned at random by it leave no component empty. The
result is multiplied by the number of orders. Where importance sampling is unreliable, a bridge between its
draws and those of chains takes its place.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from sklearn_lrvb.sampling.draws import DrawnParameters
from sklearn_lrvb.sampling.importance import ImportanceWeights
from sklearn_lrvb.sampling.labels import closest_orders, evidence_of_all_copies
from sklearn_lrvb.sampling.likelihood import moments_of_random_assignments
from sklearn_lrvb.sampling.random_assignments import can_be_assigned

# Expected rows from which on no component of a draw is left without any.
_SURELY_HELD = 100.0

_MOST_STEPS_OF_BRIDGE, _TOLERANCE_OF_BRIDGE = 100, 1e-6


@dataclass(frozen=True)
class OptimumEvidence:
    """What one optimum adds to the evidence of as many components, all of which hold rows.

    Attributes
    ----------
    optimum : Fit
    log_evidence : float, with all orders of its components
    error : float, its Monte Carlo standard error in nats
    sampled : ImportanceWeights, of all draws
    parameters : DrawnParameters
    weights : (n,), which sum to one; zero for draws that do not count
    log_ratios : (n,)
        log p(X, theta) less the log density of the draw; -inf where its components are in another order, or
        one of them holds no rows. Draws that are closer to another optimum count here.
    """

    optimum: Any
    log_evidence: float
    error: float
    sampled: ImportanceWeights
    parameters: DrawnParameters
    weights: np.ndarray
    log_ratios: np.ndarray


def optimum_evidence(optimum, sampler, rows, others, n_draws, random_state):
    """The evidence that belongs to an optimum: OptimumEvidence, or None where no draw counts.

    Where rows do not count a whole number of times, they cannot be assigned at random, and draws with empty
    components count too: the evidence is then somewhat too large.

    Parameters
    ----------
    optimum : Fit
    sampler : PosteriorSampler at the optimum
    rows : Rows, the training rows
    others : list of posteriors, the other optima of as many components
    n_draws : int
    random_state : numpy.random.RandomState
    """
    parameters, sampled = sampler.importance(rows, n_draws, random_state)
    n_components = sampler.posterior.n_components
    orders, divergences = closest_orders(parameters, sampler.posterior)
    is_held = (orders == np.arange(n_components)).all(axis=1)
    if can_be_assigned(rows) and sampler.posterior.counts.min() < _SURELY_HELD:
        seed = int(random_state.randint(2**63, dtype=np.uint64))
        firsts = moments_of_random_assignments(rows, parameters, seed)[:, :n_components, 0]
        is_held &= (firsts > 0).all(axis=1)  # They are zero where a component has no rows.
    is_counted = is_held.copy()
    for other in others:
        is_counted &= divergences <= closest_orders(parameters, other)[1]
    log_evidence, error = evidence_of_all_copies(parameters, sampled, is_counted)
    if log_evidence is None:
        return None
    weights = sampled.weights * is_counted
    log_ratios = np.where(is_held, sampled.log_ratios, -np.inf)
    return OptimumEvidence(
        optimum, log_evidence, error, sampled, parameters, weights / weights.sum(), log_ratios
    )


def evidence_by_bridge(sampler, rows, at_optimum, parameters, chains):
    """The evidence of t components that all hold rows, from draws at one optimum and those of chains.

    Chains reach all optima and the tails, where importance sampling of draws at one optimum has too few.

    Parameters
    ----------
    sampler : PosteriorSampler at the optimum
    rows : Rows, the training rows
    at_optimum : OptimumEvidence, of this optimum
    parameters : DrawnParameters
        Of chains of t components, in the optimum's coordinates; they hold rows in all of the draws.
    chains : int array (n,), the chain of each draw

    Returns
    -------
    log_evidence, error : float
        With all orders of the components; the error in nats, by the spread of the chains.
    """
    posterior = sampler.posterior
    orders, _ = closest_orders(parameters, posterior)
    draws = parameters.reordered(orders)
    log_ratio, error = bridged(at_optimum.log_ratios, sampler.log_ratios_of(rows, draws), chains)
    return log_ratio + float(gammaln(posterior.n_components + 1.0)), error


def bridged(of_proposal, of_target, chains):
    """log of a normalizing constant by bridge sampling, and its standard error.

    X.-L. Meng and W. H. Wong, "Simulating ratios of normalizing constants via a simple identity", Statistica
    Sinica 6 (1996), 831-860. With the ratios l of the unnormalized target and the proposal, the constant r
    solves r = E[l/(s l + (1 - s) r)] / E[1/(s l + (1 - s) r)], over the proposal and over the target.

    Parameters
    ----------
    of_proposal : (m,), log l of independent draws of the proposal; -inf where the target is zero
    of_target : (n,), log l of draws of the target; inf where the proposal is zero
    chains : int array (n,), the chain of each of these

    Returns
    -------
    log_constant, error : float; the error is infinite where one has no draws where the other has some
    """
    n_all = len(of_proposal) + len(of_target)
    log_share, log_rest = np.log(len(of_proposal) / n_all), np.log(len(of_target) / n_all)
    log_constant = float(logsumexp(of_proposal) - np.log(len(of_proposal)))
    if not np.isfinite(log_constant) or not np.isfinite(of_target).any():
        return log_constant, np.inf
    for _ in range(_MOST_STEPS_OF_BRIDGE):
        log_proposals, log_targets = (
            np.logaddexp(log_share + own, log_rest + log_constant) for own in (of_proposal, of_target)
        )
        firsts, seconds = np.exp(of_proposal - log_proposals), np.exp(log_constant - log_targets)
        step = np.log(firsts.mean() / seconds.mean())
        log_constant += step
        if abs(step) < _TOLERANCE_OF_BRIDGE:
            break
    chain_numbers, sizes = np.unique(chains, return_inverse=True, return_counts=True)[1:]
    sums = np.bincount(chain_numbers, seconds - seconds.mean())
    by_chains = np.square(sums).sum() * len(sizes) / max(len(sizes) - 1, 1) / np.square(seconds.sum())
    by_draws = firsts.var() / (len(firsts) * np.square(firsts.mean()))
    return log_constant, float(np.sqrt(by_chains + by_draws)) if len(sizes) > 1 else np.inf
