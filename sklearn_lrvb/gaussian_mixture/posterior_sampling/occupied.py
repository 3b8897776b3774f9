"""The evidence of mixtures all of whose components hold rows, and from it that of every number of components.

Let E_t be the evidence of t components, counting only the assignments of the N rows X that leave none of them
empty. With Dirichlet weights of concentration a, a partition of the rows into t clusters of n_1, ..., n_t
rows has in a mixture of K components the prior probability W(K, t) prod_j Gamma(n_j + a)/Gamma(a),

    W(K, t) = K!/(K - t)! Gamma(K a)/Gamma(K a + N).

K enters through W alone. With A_t = E_t/W(t, t) the evidence of K components is therefore

    p(X | K) = sum over t <= K of A_t W(K, t),

and fits whose components all hold rows are enough. Each optimum's part of E_t is estimated by importance
sampling. A draw counts if no other optimum is closer to it, if its components are in the order of this
optimum, and if rows that are assigned at random by it leave no component empty. The result is multiplied by
t!, the number of orders.

*Noise.* With noise the weights are Dirichlet over K + 1 labels: K a becomes (K + 1) a in W. The factor
Gamma(n_0 + a)/Gamma(a) of the n_0 rows that are noise does not depend on K, and is part of A_t. That all rows
are noise, t = 0, is left out.

*Runs.* How often chains of Gibbs sweeps at a K above 1 visit each t, which is in proportion to A_t W(K, t),
tells the ratios of the A_t. It does so also where importance sampling is not reliable, and where no optimum
has t components that all hold rows. `joined` combines the visits with importance sampling, whose results (the
anchors) are treated as normal measurements of log A_t: the maximum of a concave function.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, softmax

from sklearn_lrvb.gaussian_mixture.posterior.tails import log_prior_of
from sklearn_lrvb.gaussian_mixture.posterior_sampling.chains import conditional_draws
from sklearn_lrvb.gaussian_mixture.posterior_sampling.copula import DrawnParameters, ParameterDraws, draws_at
from sklearn_lrvb.gaussian_mixture.posterior_sampling.labels import closest_orders, evidence_of_all_copies
from sklearn_lrvb.gaussian_mixture.posterior_sampling.likelihood import (
    complete_moments,
    log_likelihood,
    log_prior,
    moments_of_random_assignments,
)


def log_prior_factor(n_components, n_clusters, concentration, n_rows, has_background=False):
    """log W(K, t), -inf where t is above K; arguments broadcast."""
    n_empty, n_labels = np.maximum(n_components - n_clusters, 0), n_components + has_background
    total = n_labels * concentration
    log_orders = gammaln(n_components + 1.0) - gammaln(n_empty + 1.0)
    log_factor = log_orders + gammaln(total) - gammaln(total + n_rows)
    return np.where(n_components >= n_clusters, log_factor, -np.inf)


@dataclass(frozen=True)
class OptimumEvidence:
    """What one optimum adds to the evidence of as many components, all of which hold rows.

    Attributes
    ----------
    log_evidence : float, with all orders of its components
    error : float, its Monte Carlo standard error in nats
    k_hat : float, shape of the tail of the importance weights
    is_reliable : bool, whether importance sampling can be relied on
    parameters : DrawnParameters
    weights : (n,), which sum to one; zero for draws that do not count
    """

    log_evidence: float
    error: float
    k_hat: float
    is_reliable: bool
    parameters: DrawnParameters
    weights: np.ndarray


def optimum_evidence(sampler, rows, others, n_draws, random_state, is_whole):
    """The evidence that belongs to an optimum: OptimumEvidence, or None where no draw counts.

    Parameters
    ----------
    sampler : PosteriorSampler at the optimum
    rows : Rows, the training rows
    others : list of VariationalPosterior, the other optima of as many components
    n_draws : int
    random_state : numpy.random.RandomState
    is_whole : bool
        Whether all weights are whole numbers. If not, rows cannot be assigned at random, and draws with empty
        components count too: the evidence is then somewhat too large.
    """
    parameters, sampled = sampler.importance(rows, n_draws, random_state)
    all_components = np.ones(sampler.posterior.n_components, dtype=bool)
    orders, divergences = closest_orders(parameters, sampler.posterior, all_components)
    is_counted = (orders == np.arange(len(all_components))).all(axis=1)
    for other in others:
        is_counted &= divergences <= closest_orders(parameters, other, all_components)[1]
    if is_whole:
        seed = int(random_state.randint(2**63, dtype=np.uint64))
        counts = moments_of_random_assignments(rows, parameters, seed)[:, : len(all_components), 0]
        is_counted &= (counts > 0).all(axis=1)
    log_evidence, error = evidence_of_all_copies(parameters, sampled, is_counted)
    if log_evidence is None:
        return None
    weights = sampled.weights * is_counted
    weights = weights / weights.sum()
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
        replace(prior, weights=prior.weights.with_concentration(factor * prior.weights.prior_concentration)),
        replace(prior, mean_precision=factor * prior.mean_precision),
        replace(prior, degrees_of_freedom=factor * prior.degrees_of_freedom),
        replace(prior, covariance=factor * prior.covariance),
    ]
    moved = [
        log_prior(DrawnParameters(replace(posterior, prior=own), parameters.origin, parameters.draws))
        for own in changed
    ]
    return (np.transpose(moved) - log_prior(parameters)[:, None]) / _STEP


N_CHAINS = 32
# Sweeps are _ROWS_IN_ALL over the number of rows, within these limits. The first third is left out. Of the
# others twenty are kept, at equal distances.
_LEAST_SWEEPS, _MOST_SWEEPS, _ROWS_IN_ALL = 120, 240, 120_000
_KEPT = 20
# Standard deviations of proposed steps of log nu. Every proposal has one between them, at random: the
# posterior's is one of a few hundredths with many rows of heavy tails, and near one with few or normal rows.
_LEAST_STEP, _LARGEST_STEP = 0.05, 1.0


def run(posterior, origin, rows, starts, seed):
    """Chains of Gibbs sweeps: how many components hold rows along them, and draws.

    Parameters
    ----------
    posterior : VariationalPosterior of K components, in whose frames the chains run
    origin : (P,)
    rows : Rows, each of which counts a whole number of times
    starts : list of VariationalPosterior of up to K components, at whose means the chains start
    seed : int

    Returns
    -------
    counts : (sweeps, chains, K), how many rows the components hold, after the first third of the sweeps
    parameters : DrawnParameters, of twenty sweeps
    n_occupied : int array (n,), components that hold rows in the assignments from which the draws were made
    """
    starts = [draws_at(posterior, start.padded(posterior.prior)) for start in starts]
    draws, generator = ParameterDraws.concatenated(starts), np.random.default_rng(seed)
    n_sweeps, counts, kept = n_sweeps_of(rows.n_samples), [], []
    first = n_sweeps // 3
    stride = (n_sweeps - first) // _KEPT
    for number in range(n_sweeps):
        if posterior.structure.n_tails:
            draws = _with_moved_tails(rows, DrawnParameters(posterior, origin, draws), generator)
        parameters = DrawnParameters(posterior, origin, draws)
        sums = moments_of_random_assignments(rows, parameters, int(generator.integers(2**63)))
        moments = complete_moments(posterior, sums)
        draws = conditional_draws(posterior, moments, draws.log_tails, generator)
        counts.append(moments.counts[:, : posterior.n_components])
        if number >= first and not (number - first) % stride:
            kept.append(draws)
    counts = np.array(counts[first:])
    parameters = DrawnParameters(posterior, origin, ParameterDraws.concatenated(kept))
    return counts, parameters, (counts[::stride] > 0).sum(axis=2).ravel()


def _with_moved_tails(rows, parameters, generator):
    """Draws after a step of Metropolis' algorithm in log nu, given the other parameters: ParameterDraws."""
    draws = parameters.draws
    sizes = np.exp(generator.uniform(np.log(_LEAST_STEP), np.log(_LARGEST_STEP), (len(draws), 1)))
    steps = sizes * generator.standard_normal(draws.log_tails.shape)
    proposed = replace(draws, log_tails=draws.log_tails + steps)
    both = ParameterDraws.concatenated([draws, proposed])
    log_joints = log_likelihood(rows, DrawnParameters(parameters.posterior, parameters.origin, both))
    log_joints = log_joints + log_prior_of(both.log_tails)[0]
    now, then = np.split(log_joints, 2)
    accepted = np.flatnonzero(np.log1p(-generator.random(len(now))) < then - now)
    return draws.replaced(accepted, proposed[accepted])


def n_sweeps_of(n_rows):
    """Number of sweeps of a run over so many rows."""
    return int(np.clip(_ROWS_IN_ALL // n_rows, _LEAST_SWEEPS, _MOST_SWEEPS))


_PRODUCTS = 4.0  # That a sweep takes for each row, monomial and chain, about.


def products_of_runs(structure, n_rows):
    """About how many multiplications `run` takes for every component, float."""
    return _PRODUCTS * N_CHAINS * n_sweeps_of(n_rows) * structure.n_component_features * n_rows


@dataclass(frozen=True)
class Visits:
    """How often chains of K components visit each number of occupied ones.

    Attributes
    ----------
    shares : (K,), how often 1, 2, ..., K of them held rows, among the times when any did
    n_effective : float
        Effective sample size: how many independent visits the correlated ones are worth. Where chains stay in
        different modes it is small, although they may change their numbers often.
    """

    shares: np.ndarray
    n_effective: float

    @classmethod
    def of(cls, counts):
        """From how many rows the components hold along chains, (sweeps, chains, K)."""
        numbers = (counts > 0).sum(axis=2)
        visits = np.bincount(numbers.ravel(), minlength=counts.shape[2] + 1)[1:]
        shares = visits / max(visits.sum(), 1)
        if not numbers.var():
            return cls(shares, 1.0)  # All are the same, and there is no spread to judge by.
        squares = np.square(counts).sum(axis=2)  # They do not depend on the order of the components.
        return cls(shares, min(_n_effective(numbers), _n_effective(squares)))


def _n_effective(values):
    """Effective sample size of values along chains (sweeps, chains), float."""
    between = values.mean(axis=0).var()
    if not between > 0:
        return float(values.size)
    return float(min(values.shape[1] * values.var() / between, values.size))


def joined(anchors, errors, visits, concentration, n_rows, has_background=False):
    """log A_t of all numbers of clusters, from evidences and from the visits of chains, and its covariance.

    The log likelihood of the visits is concave in log A_t, and that of the normal anchors is too.

    Parameters
    ----------
    anchors, errors : (T,), log A_t by importance sampling, and their standard errors
    visits : dict of int to Visits, by the number of components
    concentration : float
    n_rows : float
    has_background : bool, default=False

    Returns
    -------
    log_parts : (T,)
    covariance : (T, T)
    """
    clusters, log_parts = np.arange(1, len(anchors) + 1), anchors.copy()
    ways = {k: log_prior_factor(k, clusters, concentration, n_rows, has_background) for k in visits}
    precision = 1.0 / np.square(errors)
    for _ in range(100):
        slope, curvature = precision * (anchors - log_parts), np.diag(precision)
        for k, found in visits.items():
            log_shares = log_parts + ways[k]
            shares = softmax(log_shares)
            slope[:k] += found.n_effective * (found.shares - shares[:k])
            curvature = curvature + found.n_effective * (np.diag(shares) - np.outer(shares, shares))
        step = np.linalg.solve(curvature, slope)
        log_parts = log_parts + step / max(1.0, 0.5 * np.abs(step).max())  # At most 2 nats.
        if np.abs(step).max() < 1e-8:
            break
    return log_parts, np.linalg.inv(curvature)
