"""The evidence of mixtures all of whose components hold rows, and from it that of every number of components.

Let E_t be the evidence of a mixture of t components, less what assignments contribute that leave one of them
empty. With Dirichlet weights of concentration a, a partition of N rows into t clusters has the prior
probability W(K, t) prod_j Gamma(n_j + a)/Gamma(a) in a mixture of K components,

    W(K, t) = K!/(K - t)! Gamma(K a)/Gamma(K a + N),

which depends on K through W alone. So the evidence of K components is

    p(X | K) = sum over t <= K of A_t W(K, t),        A_t = E_t/W(t, t),

and fits whose components all hold rows are enough. Each optimum of the lower bound adds its own part to E_t,
by importance sampling: of draws that are closer to it than to any other, with their components in its order
(times t! orders), and whose own assignment of the rows leaves no component empty.

*Runs.* Chains of Gibbs sweeps at every K visit t with probabilities proportional to A_t W(K, t), and so tell
the ratios of the A_t. They do so also where importance sampling is not reliable, and where no optimum has t
components that all hold rows. One concave likelihood joins the chains of all K and the evidences.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, logsumexp

from sklearn_lrvb.gaussian_mixture.posterior_sampling.chains import conditional_draws
from sklearn_lrvb.gaussian_mixture.posterior_sampling.copula import DrawnParameters, ParameterDraws, draws_at
from sklearn_lrvb.gaussian_mixture.posterior_sampling.labels import closest_orders, evidence_of_all_copies
from sklearn_lrvb.gaussian_mixture.posterior_sampling.likelihood import (
    complete_moments,
    log_prior,
    moments_of_random_assignments,
)
from sklearn_lrvb.row_blocks import untracked


def log_ways(n_components, n_clusters, concentration, n_rows):
    """log W(K, t), -inf where t is above K; arguments broadcast."""
    fewer = np.maximum(n_components - n_clusters, 0)
    log_ways = gammaln(n_components + 1.0) - gammaln(fewer + 1.0)
    log_ways = (
        log_ways + gammaln(n_components * concentration) - gammaln(n_components * concentration + n_rows)
    )
    return np.where(n_components >= n_clusters, log_ways, -np.inf)


@dataclass(frozen=True)
class OptimumEvidence:
    """What one optimum adds to the evidence of as many components, all of which hold rows.

    Attributes
    ----------
    log_evidence : float, with all orders of its components; -inf where no draw counts
    error : float, its Monte Carlo standard error in nats
    k_hat : float, shape of the tail of the importance weights
    is_reliable : bool, whether importance sampling can be relied on
    parameters : DrawnParameters
    weights : (n,), of the draws that count; they sum to one
    """

    log_evidence: float
    error: float
    k_hat: float
    is_reliable: bool
    parameters: DrawnParameters
    weights: np.ndarray


def optimum_evidence(sampler, rows, others, n_draws, random_state, is_whole):
    """The evidence that belongs to an optimum: OptimumEvidence.

    Parameters
    ----------
    sampler : PosteriorSampler at the optimum
    rows : Rows, the training rows
    others : list of VariationalPosterior, the other optima of as many components
    n_draws : int
    random_state : numpy.random.RandomState
    is_whole : bool, whether rows count a whole number of times, so that they can be assigned at random
    """
    parameters, sampled = sampler.importance(rows, n_draws, random_state)
    everything = np.ones(sampler.posterior.n_components, dtype=bool)
    is_counted = np.ones(n_draws, dtype=bool)
    if others:
        own = closest_orders(parameters, sampler.posterior, everything)[1]
        foreign = [closest_orders(parameters, other, everything)[1] for other in others]
        is_counted = own <= np.min(foreign, axis=0)
    if is_whole:
        seed = int(random_state.randint(2**63, dtype=np.uint64))
        counts = moments_of_random_assignments(rows, parameters, seed)[:, :, 0]
        is_counted &= (counts > 0).all(axis=1)
    log_evidence, error = evidence_of_all_copies(parameters, sampled, is_counted)
    if log_evidence is None:
        log_evidence = -np.inf
    weights = sampled.weights * is_counted
    weights = weights / max(weights.sum(), np.finfo(float).tiny)
    return OptimumEvidence(log_evidence, error, sampled.k_hat, sampled.are_reliable, parameters, weights)


_STEP = 1e-5  # Of the logarithm of a number of the prior, for a difference quotient.
PRIOR_NUMBERS = (
    "weight_concentration_prior",
    "mean_precision_prior",
    "degrees_of_freedom_prior",
    "covariance_prior",
)


def prior_slopes(parameters):
    """Derivatives of the log prior density of draws in the logarithms of `PRIOR_NUMBERS`: (n, 4)."""
    posterior = parameters.posterior
    prior, factor = posterior.prior, np.exp(_STEP)
    changed = [
        replace(
            prior,
            weights=replace(prior.weights, prior_concentration=factor * prior.weights.prior_concentration),
        ),
        replace(prior, mean_precision=factor * prior.mean_precision),
        replace(prior, degrees_of_freedom=factor * prior.degrees_of_freedom),
        replace(prior, covariance=factor * prior.covariance),
    ]
    moved = [
        log_prior(DrawnParameters(replace(posterior, prior=own), parameters.origin, parameters.draws))
        for own in changed
    ]
    return (np.transpose(moved) - log_prior(parameters)[:, None]) / _STEP


# Chains of a run, and their sweeps: more of few rows, which take little time, and need them most. The first
# third is left out, and of the others some twenty sweeps are kept.
N_RUNS, _LEAST_SWEEPS, _MOST_SWEEPS, _ROWS_IN_ALL = 32, 120, 240, 120_000
_KEPT_OF_ALL = 30


def run(posterior, origin, rows, starts, seed, tracked=untracked):
    """Chains of Gibbs sweeps: how many components hold rows along them, and draws.

    Parameters
    ----------
    posterior : VariationalPosterior of K components, in whose frames the chains run
    origin : (P,)
    rows : Rows, each of which counts a whole number of times
    starts : list of VariationalPosterior of up to K components, at whose means the chains start
    seed : int
    tracked : Tracked, through which the sweeps are gone

    Returns
    -------
    counts : (sweeps, chains, K), how many rows the components hold
    parameters : DrawnParameters, of some twenty sweeps
    n_occupied : int array (n,), components that hold rows in these draws
    """
    starts = [draws_at(posterior, start.padded(posterior.prior)) for start in starts]
    draws, generator = ParameterDraws.concatenated(starts), np.random.default_rng(seed)
    n_sweeps, counts, kept = n_sweeps_of(rows.n_samples), [], []
    first, stride = n_sweeps // 3, n_sweeps // _KEPT_OF_ALL
    for number in tracked(range(n_sweeps), n_sweeps):
        parameters = DrawnParameters(posterior, origin, draws)
        sums = moments_of_random_assignments(rows, parameters, int(generator.integers(2**63)))
        draws = conditional_draws(posterior, complete_moments(posterior, sums), generator)
        counts.append(sums[:, :, 0])
        if number >= first and not (number - first) % stride:
            kept.append(draws)
    counts = np.array(counts[first:])
    parameters = DrawnParameters(posterior, origin, ParameterDraws.concatenated(kept))
    return counts, parameters, (counts[::stride] > 0).sum(axis=2).ravel()


def n_sweeps_of(n_rows):
    """Number of sweeps of a run over so many rows."""
    return int(np.clip(_ROWS_IN_ALL // n_rows, _LEAST_SWEEPS, _MOST_SWEEPS))


def products_of_runs(structure, n_rows):
    """About how many products `run` takes for every component, float."""
    return 4.0 * N_RUNS * n_sweeps_of(n_rows) * structure.n_component_features * n_rows


@dataclass(frozen=True)
class Visits:
    """Numbers of occupied components along chains of K components.

    Attributes
    ----------
    shares : (K,), how often 1, 2, ..., K of them held rows
    n_effective : float
        Independent numbers that those of the chains are worth. Where chains stay in different modes, it is
        small, although they may change their numbers often.
    """

    shares: np.ndarray
    n_effective: float

    @classmethod
    def of(cls, counts):
        """From how many rows the components hold along chains, (sweeps, chains, K)."""
        numbers = (counts > 0).sum(axis=2)
        shares = np.bincount(numbers.ravel(), minlength=counts.shape[2] + 1)[1:] / numbers.size
        if not numbers.var():
            return cls(shares, 1.0)
        sizes = np.square(counts).sum(axis=2)  # They do not depend on the order of the components.
        return cls(shares, min(_n_effective(numbers), _n_effective(sizes)))


def _n_effective(values):
    """Independent values that those along chains (sweeps, chains) are worth."""
    between = values.mean(axis=0).var()
    return float(min(values.shape[1] * values.var() / between, values.size)) if between > 0 else values.size


def joined(anchors, errors, visits, concentration, n_rows):
    """log A_t of all numbers of clusters, from evidences and from the visits of chains, and its covariance.

    The log likelihood of the visits is concave in log A_t, and the anchors are normal.

    Parameters
    ----------
    anchors, errors : (T,), log A_t by importance sampling, and standard errors
    visits : dict of int to Visits, by the number of components
    concentration : float
    n_rows : float

    Returns
    -------
    log_parts : (T,)
    covariance : (T, T)
    """
    clusters, log_parts = np.arange(1, len(anchors) + 1), anchors.copy()
    ways = {k: log_ways(k, clusters, concentration, n_rows) for k in visits}
    precision = 1.0 / np.square(errors)
    for _ in range(100):
        slope, curvature = precision * (anchors - log_parts), np.diag(precision)
        for k, found in visits.items():
            log_shares = log_parts + ways[k]
            shares = np.exp(log_shares - logsumexp(log_shares))
            slope[:k] += found.n_effective * (found.shares - shares[:k])
            curvature = curvature + found.n_effective * (np.diag(shares) - np.outer(shares, shares))
        step = np.linalg.solve(curvature, slope)
        log_parts = log_parts + step / max(1.0, 0.5 * np.abs(step).max())  # At most 2 nats.
        if np.abs(step).max() < 1e-8:
            break
    return log_parts, np.linalg.inv(curvature)
