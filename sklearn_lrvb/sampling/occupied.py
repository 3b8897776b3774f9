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

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp, softmax

from sklearn_lrvb.sampling.draws import DrawArrays, DrawnParameters
from sklearn_lrvb.sampling.labels import closest_orders, evidence_of_all_copies
from sklearn_lrvb.sampling.likelihood import moments_of_random_assignments


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
    log_ratios : (n,)
        log p(X, theta) less the log density of the draw; -inf where its components are in another order, or
        one of them holds no rows. Draws that are closer to another optimum count here.
    """

    log_evidence: float
    error: float
    k_hat: float
    is_reliable: bool
    parameters: DrawnParameters
    weights: np.ndarray
    log_ratios: np.ndarray


def optimum_evidence(sampler, rows, others, n_draws, random_state, is_whole):
    """The evidence that belongs to an optimum: OptimumEvidence, or None where no draw counts.

    Parameters
    ----------
    sampler : PosteriorSampler at the optimum
    rows : Rows, the training rows
    others : list of posteriors, the other optima of as many components
    n_draws : int
    random_state : numpy.random.RandomState
    is_whole : bool
        Whether all weights are whole numbers. If not, rows cannot be assigned at random, and draws with empty
        components count too: the evidence is then somewhat too large.
    """
    parameters, sampled = sampler.importance(rows, n_draws, random_state)
    all_components = np.ones(sampler.posterior.n_components, dtype=bool)
    orders, divergences = closest_orders(parameters, sampler.posterior, all_components)
    is_held = (orders == np.arange(len(all_components))).all(axis=1)
    if is_whole:
        seed = int(random_state.randint(2**63, dtype=np.uint64))
        firsts = moments_of_random_assignments(rows, parameters, seed)[:, : len(all_components), 0]
        is_held &= (firsts > 0).all(axis=1)  # They are zero where a component has no rows.
    is_counted = is_held.copy()
    for other in others:
        is_counted &= divergences <= closest_orders(parameters, other, all_components)[1]
    log_evidence, error = evidence_of_all_copies(parameters, sampled, is_counted)
    if log_evidence is None:
        return None
    weights = sampled.weights * is_counted
    weights = weights / weights.sum()
    log_ratios = np.where(is_held, sampled.log_ratios, -np.inf)
    return OptimumEvidence(
        log_evidence, error, sampled.k_hat, sampled.are_reliable, parameters, weights, log_ratios
    )


def evidence_by_bridge(sampler, rows, found, parameters, chains):
    """The evidence of t components that all hold rows, from draws at one optimum and those of chains.

    Chains reach all optima and the tails, where importance sampling of draws at one optimum has too few.

    Parameters
    ----------
    sampler : PosteriorSampler at the optimum
    rows : Rows, the training rows
    found : OptimumEvidence, of this optimum
    parameters : DrawnParameters
        Of chains of t components, in the optimum's coordinates; they hold rows in all of the draws.
    chains : int array (n,), the chain of each draw

    Returns
    -------
    log_evidence, error : float
        With all orders of the components; the error in nats, by the spread of the chains.
    """
    posterior = sampler.posterior
    orders, _ = closest_orders(parameters, posterior, np.ones(posterior.n_components, dtype=bool))
    draws = posterior.model.reordered_draws(parameters, orders)
    log_ratio, error = bridged(found.log_ratios, sampler.log_ratios_of(rows, draws), chains)
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
        of_first, of_second = (
            np.logaddexp(log_share + own, log_rest + log_constant) for own in (of_proposal, of_target)
        )
        firsts, seconds = np.exp(of_proposal - of_first), np.exp(log_constant - of_second)
        step = np.log(firsts.mean() / seconds.mean())
        log_constant += step
        if abs(step) < _TOLERANCE_OF_BRIDGE:
            break
    own, sizes = np.unique(chains, return_inverse=True, return_counts=True)[1:]
    sums = np.bincount(own, seconds - seconds.mean())
    by_chains = np.square(sums).sum() * len(sizes) / max(len(sizes) - 1, 1) / np.square(seconds.sum())
    by_draws = firsts.var() / (len(firsts) * np.square(firsts.mean()))
    return log_constant, float(np.sqrt(by_chains + by_draws)) if len(sizes) > 1 else np.inf


_MOST_STEPS_OF_BRIDGE, _TOLERANCE_OF_BRIDGE = 100, 1e-6

N_CHAINS = 32
# Sweeps are _ROWS_IN_ALL over the number of rows, within these limits. The first third is left out. Of the
# others twenty are kept, at equal distances.
_LEAST_SWEEPS, _MOST_SWEEPS, _ROWS_IN_ALL = 120, 240, 120_000
_KEPT = 20


def run(posterior, origin, rows, starts, seed):
    """Chains of Gibbs sweeps: how many components hold rows along them, and draws.

    Parameters
    ----------
    posterior : posterior of K components, in whose coordinates the chains run
    origin : (P,)
    rows : Rows, each of which counts a whole number of times
    starts : list of posteriors of up to K components, at whose means the chains start
    seed : int

    Returns
    -------
    counts : (sweeps, chains, K), how many rows the components hold, after the first third of the sweeps
    parameters : DrawnParameters, of twenty sweeps
    n_occupied : int array (n,), components that hold rows in the assignments from which the draws were made
    """
    model, generator = posterior.model, np.random.default_rng(seed)
    draws = DrawArrays.concatenated(
        [model.draws_at(posterior, start.padded(posterior.prior)) for start in starts]
    )
    parameters = model.parameters(posterior, origin, draws)
    n_sweeps, counts, kept = n_sweeps_of(rows.n_samples), [], []
    first = n_sweeps // 3
    stride = (n_sweeps - first) // _KEPT
    for number in range(n_sweeps):
        moved = parameters.with_draws(model.draws_with_moved_rest(rows, parameters, generator))
        own_seed = int(generator.integers(2**63))
        draws, of_labels = model.draws_given_random_assignments(rows, moved, own_seed, generator)
        parameters = parameters.with_draws(draws)
        counts.append(of_labels[:, : posterior.n_components])
        if number >= first and not (number - first) % stride:
            kept.append(draws)
    counts = np.array(counts[first:])
    parameters = parameters.with_draws(DrawArrays.concatenated(kept))
    return counts, parameters, (counts[::stride] > 0).sum(axis=2).ravel()


def n_sweeps_of(n_rows):
    """Number of sweeps of a run over so many rows."""
    return int(np.clip(_ROWS_IN_ALL // n_rows, _LEAST_SWEEPS, _MOST_SWEEPS))


_PRODUCTS = 4.0  # That a sweep takes for each of `MixtureModel.products_per_row` and each chain, about.


def products_of_runs(posterior, n_rows):
    """About how many multiplications `run` takes for every component, float."""
    per_component = posterior.model.products_per_row(posterior) / posterior.n_components
    return _PRODUCTS * N_CHAINS * n_sweeps_of(n_rows) * per_component * n_rows


_LEAST_GAP = 1e-6  # Of squares of counts, which are whole numbers: less is rounding.


@dataclass(frozen=True)
class Visits:
    """How often chains visit some numbers of occupied components, between which they move freely.

    Attributes
    ----------
    numbers : int array (m,), the numbers, one after another
    shares : (m,), of the visits to any of them
    n_effective : float
        Effective sample size: how many independent visits the correlated ones are worth. Where chains stay in
        different modes it is small, although they may change their numbers often.
    """

    numbers: np.ndarray
    shares: np.ndarray
    n_effective: float

    @classmethod
    def of(cls, counts):
        """From how many rows the components hold along chains, (sweeps, chains, K): list of Visits.

        Chains start where the anchors say. What they tell of numbers between which they hardly move, or never
        do, is no more than that, so that such numbers are not in the same set.
        """
        numbers = (counts > 0).sum(axis=2)
        n_chains, n_components = counts.shape[1:]
        passages = [_n_effective(numbers <= number) for number in range(1, n_components)]
        barriers = [number for number, passage in enumerate(passages, 1) if passage < n_chains]
        spreads, found = np.square(counts).sum(axis=2), []  # The order of the components does not matter.
        for own in np.split(np.arange(1, n_components + 1), barriers):
            if len(own) > 1:
                visits = (numbers[..., None] == own).astype(float)
                frequencies = visits.mean(axis=(0, 1))
                means = (visits * spreads[..., None]).mean(axis=(0, 1)) / frequencies
                gaps = (visits * (spreads[..., None] - means)).sum(axis=2)
                least = min(passages[own[0] - 1 : own[-1] - 1])
                if np.ptp(gaps) > _LEAST_GAP:
                    least = min(least, _n_effective(gaps))
                total = frequencies.sum()
                found.append(cls(own, frequencies / total, least * total))
        return found


def _n_effective(values):
    """Effective sample size of values along chains (sweeps, chains), without the starts: float."""
    variance, between = values.var(), values.mean(axis=0).var()
    if not variance > 0.0:
        return 0.0  # All are the same, and there is no spread to judge by.
    return float(min(values.shape[1] * (variance / between - 1.0) if between > 0.0 else np.inf, values.size))


def joined(anchors, errors, visits, concentration, n_rows, has_background=False):
    """log A_t of all numbers of clusters, from evidences and from the visits of chains, and its covariance.

    The log likelihood of the visits is concave in log A_t, and that of the normal anchors is too. Where they
    contradict each other by more than their errors, all errors are larger by the same factor (Birge's ratio):
    chains of some K may have found what fits and chains of others have missed.

    Parameters
    ----------
    anchors, errors : (T,), log A_t by importance sampling, and their standard errors
    visits : dict of int to list of Visits, by the number of components
    concentration : float
    n_rows : float
    has_background : bool, default=False

    Returns
    -------
    log_parts : (T,)
    covariance : (T, T)
    """
    clusters, log_parts = np.arange(1, len(anchors) + 1), anchors.copy()
    precision, sets = 1.0 / np.square(errors), []  # Of visits: places of the numbers, log W, visits.
    for k, found in visits.items():
        ways = log_prior_factor(k, clusters, concentration, n_rows, has_background)
        sets += [(own.numbers - 1, ways[own.numbers - 1], own) for own in found]
    for _ in range(100):
        slope, curvature = precision * (anchors - log_parts), np.diag(precision)
        for own, ways, found in sets:
            shares = softmax(log_parts[own] + ways)
            slope[own] += found.n_effective * (found.shares - shares)
            curvature[np.ix_(own, own)] += found.n_effective * (np.diag(shares) - np.outer(shares, shares))
        step = np.linalg.solve(curvature, slope)
        log_parts = log_parts + step / max(1.0, 0.5 * np.abs(step).max())  # At most 2 nats.
        if np.abs(step).max() < 1e-8:
            break
    # Squares of the distances in standard errors, and how many there are beside those that were fitted.
    squares, n_free = float(precision @ np.square(anchors - log_parts)), 0
    for own, ways, found in sets:
        shares = softmax(log_parts[own] + ways)
        squares += found.n_effective * float(np.sum(np.square(found.shares - shares) / shares))
        n_free += len(own) - 1
    return log_parts, np.linalg.inv(curvature) * max(1.0, squares / max(n_free, 1))
