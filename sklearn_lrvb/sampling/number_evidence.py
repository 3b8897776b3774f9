"""The evidence of every number of components, from mixtures all of whose components hold rows.

Let E_t be the evidence of t components, counting only the assignments of the N rows X that leave none of them
empty. With Dirichlet weights of concentration a, a partition of the rows into t clusters of n_1, ..., n_t
rows has in a mixture of K components the prior probability W(K, t) prod_j Gamma(n_j + a)/Gamma(a),

    W(K, t) = K!/(K - t)! Gamma(K a)/Gamma(K a + N).

K enters through W alone. With A_t = E_t/W(t, t) the evidence of K components is therefore

    p(X | K) = sum over t <= K of A_t W(K, t),

and fits whose components all hold rows are enough. Each optimum's part of E_t is estimated apart
(`optimum_evidence`).

*Learned hyperparameters* have a prior of their own, which does not depend on K. All this holds given them,
and so on average: components without rows have no part in A_t.

*Noise.* With noise the weights are Dirichlet over K + 1 labels: K a becomes (K + 1) a in W. The factor
Gamma(n_0 + a)/Gamma(a) of the n_0 rows that are noise does not depend on K, and is part of A_t. That all rows
are noise, t = 0, is left out.

*Chains.* How often chains of Gibbs sampling at a K above 1 visit each t, which is in proportion to A_t
W(K, t), tells the ratios of the A_t. It does so also where importance sampling is not reliable, and where no
optimum has t components that all hold rows. `joined` combines the visits with importance sampling, whose
results (the anchors) are treated as normal measurements of log A_t: the maximum of a concave function. Where
importance sampling is unreliable, a bridge between its draws and those of the chains takes its place.

`NumberEvidence` does this for K = 1, 2, ... in turn.

*The prior on K*, `log_number_prior`, is a Poisson distribution of mean 1, given that there is a cluster: P(K)
is in proportion to 1/K! (Nobile 2005). The evidence adds up the K! labellings of the same K clusters,
which then count once.
"""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from scipy.special import gammaln, logsumexp, softmax

from sklearn_lrvb.sampling.chains import N_CHAINS
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.sampling.optimum_evidence import evidence_by_bridge
from sklearn_lrvb.sampling.random_assignments import can_be_assigned


def log_number_prior(n_components):
    """log P(K) up to a constant."""
    return -gammaln(n_components + 1.0)


def log_prior_factor(n_components, n_clusters, concentration, n_rows, has_noise=False):
    """log W(K, t), -inf where t is above K; arguments broadcast."""
    n_empty, n_labels = np.maximum(n_components - n_clusters, 0), n_components + has_noise
    total = n_labels * concentration
    log_orders = gammaln(n_components + 1.0) - gammaln(n_empty + 1.0)
    log_factor = log_orders + gammaln(total) - gammaln(total + n_rows)
    return np.where(n_components >= n_clusters, log_factor, -np.inf)


# Iterations are _ROWS_IN_ALL over the number of rows, within these limits. The first third is left out. Of
# the others twenty are kept, at equal distances.
_LEAST_ITERATIONS, _MOST_ITERATIONS, _ROWS_IN_ALL = 120, 480, 120_000
_KEPT = 20


def run(posterior, origin, rows, starts, seed):
    """Chains of Gibbs iterations: how many components hold rows along them, and draws.

    Parameters
    ----------
    posterior : posterior of K components, in whose coordinates the chains run
    origin : (P,)
    rows : Rows, each of which counts a whole number of times
    starts : list of posteriors of up to K components, at whose means the chains start
    seed : int

    Returns
    -------
    counts : (iterations, chains, K), how many rows the components hold, after the first third of these
    parameters : DrawnParameters, of twenty iterations
    n_occupied : int array (n,), components that hold rows in the assignments from which the draws were made
    """
    parameters_of, generator = posterior.model.parameters, np.random.default_rng(seed)
    draws = [parameters_of.draws_at(posterior, start.padded(posterior.prior)) for start in starts]
    parameters = parameters_of(posterior, origin, DrawArrays.concatenated(draws))
    n_iterations, counts, kept = n_iterations_of(rows.n_samples), [], []
    first = n_iterations // 3
    stride = (n_iterations - first) // _KEPT
    for number in range(n_iterations):
        draws, label_counts = parameters.after_gibbs(rows, generator)
        parameters = parameters.with_draws(draws)
        counts.append(label_counts[:, : posterior.n_components])
        if number >= first and not (number - first) % stride:
            kept.append(draws)
    counts = np.array(counts[first:])
    parameters = parameters.with_draws(DrawArrays.concatenated(kept))
    return counts, parameters, (counts[::stride] > 0).sum(axis=2).ravel()


def n_iterations_of(n_rows):
    """Number of iterations of a run over so many rows."""
    return int(np.clip(_ROWS_IN_ALL // n_rows, _LEAST_ITERATIONS, _MOST_ITERATIONS))


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
        """From how many rows the components hold along chains, (iterations, chains, K): list of Visits.

        Chains start where the anchors say. What they tell of numbers between which they hardly move, or never
        do, is no more than that, so that such numbers are not in the same set.
        """
        numbers = (counts > 0).sum(axis=2)
        n_chains, n_components = counts.shape[1:]
        passages = [_n_effective(numbers <= number) for number in range(1, n_components)]
        barriers = [number for number, passage in enumerate(passages, 1) if passage < n_chains]
        spreads, sets = np.square(counts).sum(axis=2), []  # The order of the components does not matter.
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
                sets.append(cls(own, frequencies / total, least * total))
        return sets


def _n_effective(values):
    """Effective sample size of values along chains (iterations, chains), without the starts: float."""
    variance, between = values.var(), values.mean(axis=0).var()
    if not variance > 0.0:
        return 0.0  # All are the same, and there is no spread to judge by.
    return float(min(values.shape[1] * (variance / between - 1.0) if between > 0.0 else np.inf, values.size))


def joined(anchors, errors, visits, concentration, n_rows, has_noise=False):
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
    has_noise : bool, default=False

    Returns
    -------
    log_parts : (T,)
    covariance : (T, T)
    """
    sets = [  # Of visits: places of their numbers, log W of these, visits.
        (own.numbers - 1, log_prior_factor(k, own.numbers, concentration, n_rows, has_noise), own)
        for k, visits_of_k in visits.items()
        for own in visits_of_k
    ]
    log_parts, precision = anchors.copy(), 1.0 / np.square(errors)
    for _ in range(100):
        slope, curvature = precision * (anchors - log_parts), np.diag(precision)
        for places, ways, own in sets:
            shares = softmax(log_parts[places] + ways)
            slope[places] += own.n_effective * (own.shares - shares)
            covariance = np.diag(shares) - np.outer(shares, shares)
            curvature[np.ix_(places, places)] += own.n_effective * covariance
        step = np.linalg.solve(curvature, slope)
        log_parts = log_parts + step / max(1.0, 0.5 * np.abs(step).max())  # At most 2 nats.
        if np.abs(step).max() < 1e-8:
            break
    # Squares of the distances in standard errors, and how many there are beside those that were fitted.
    squares, n_free = float(precision @ np.square(anchors - log_parts)), 0
    for places, ways, own in sets:
        shares = softmax(log_parts[places] + ways)
        squares += own.n_effective * float(np.sum(np.square(own.shares - shares) / shares))
        n_free += len(places) - 1
    return log_parts, np.linalg.inv(curvature) * max(1.0, squares / max(n_free, 1))


# Standard errors of log A_t in nats, beside Monte Carlo's, by importance sampling. One cluster has none if it
# is reliable (the number is above zero, to divide by). Of more clusters, or with noise or fitted degrees of
# freedom, it misses small optima and tails; where it is unreliable, it was too small by 2 nats on average.
_OF_ONE, _RELIABLE, _UNRELIABLE = 1e-6, 0.3, 2.0

# If there is no optimum, or if the optima are unreliable and below it, a guess takes their place: log A_t is
# by the first number below log A_{t-1}. Its error is the second where chains decide, and else the third:
# in a dozen tables it was off by -2 to 5.
_FALL, _UNKNOWN, _GUESSED = 2.3, 5.0, 2.5
_ERROR_DRAWS = 1000  # Of log A_t, of which standard errors of probabilities are taken.
_AS_A_RULE = 0.5  # Probability that all K components hold rows.
_LITTLE = 0.01  # Share of an optimum in the evidence below which it need not be reliable.
_MANY_ERRORS = 3.0  # Standard errors that nothing is further off than.

# Chains are run up to the K where all their iterations take about so many products, three minutes on one
# core. An iteration takes the second number for each of the posterior's ``products_per_row`` and each chain.
# Where there are more rows, importance sampling is reliable as a rule.
_MOST_PRODUCTS, _PRODUCTS = 2e11, 4.0


class NumberEvidence:
    """The evidence of every number of components, to which they are added one after another.

    Parameters
    ----------
    posterior : posterior of one component
    rows : Rows, the training rows
    seed : int, of the chains
    """

    def __init__(self, posterior, rows, seed):
        prior = posterior.prior
        self._rows, self._seed = rows, seed
        # What W(K, t) depends on besides.
        self._weights = prior.weights.prior_concentration, rows.total_weight, posterior.n_labels > 1
        self._is_one_known = posterior.is_known_alone
        self._prior_names = prior.hyperparameters
        self._are_whole = can_be_assigned(rows)
        # Multiplications that chains of one component take, about.
        n_row_visits = N_CHAINS * n_iterations_of(rows.n_samples) * rows.n_samples
        self._products_of_one = _PRODUCTS * n_row_visits * posterior.products_per_row
        self._fitted = []  # Numbers that have a fit.
        self._optima, self._optimum_shares = [], []  # By t: OptimumEvidence, and shares in the evidence.
        self._parts = []  # By t: log A_t without visits, and its standard error.
        self._visits = {}  # Of every K with chains.
        self._chains = {}  # Their draws, and how many components hold rows in each.

    def add(self, posterior, optima, sampler_at):
        """Add the next number of components: importance sampling, and chains where these can be run.

        Parameters
        ----------
        posterior : posterior of the best fit, or None where every fit failed
        optima : list of OptimumEvidence
        sampler_at : callable (Fit, Rows) -> PosteriorSampler
        """
        k, log_evidences = len(self._optima) + 1, np.array([optimum.log_evidence for optimum in optima])
        shares = softmax(log_evidences) if optima else np.empty(0)
        self._optima.append(optima)
        self._optimum_shares.append(shares)
        if posterior is not None:
            self._fitted.append(k)
        log_part = (logsumexp(log_evidences) if optima else -np.inf) - self._log_ways(k, k)
        is_reliable = bool(optima) and all(
            optimum.sampled.are_reliable for optimum in self._optima_that_matter(k)
        )
        least = _UNRELIABLE
        if is_reliable:
            least = _OF_ONE if k == 1 and self._is_one_known else _RELIABLE
        error = np.hypot(least, np.linalg.norm(shares * [optimum.error for optimum in optima]))
        self._parts.append((log_part, error))
        has_chains = posterior is not None and self._are_few_rows(k)
        has_chains = has_chains and not (is_reliable and self._is_one_optimum(k))
        if k > 1 and not is_reliable and log_part < self._parts[-2][0] - _FALL:
            self._parts[-1] = self._parts[-2][0] - _FALL, _UNKNOWN if has_chains else _GUESSED
        if has_chains:
            best = self._best(k)
            self._run_chains(k, posterior if best is None else best.optimum.posterior)
            if best is not None and not is_reliable:
                log_evidence, error_of_bridge = self._by_bridge(k, best, sampler_at)
                if error_of_bridge < error:
                    self._parts[-1] = log_evidence - self._log_ways(k, k), error_of_bridge

    def _log_ways(self, n_components, n_clusters):
        return log_prior_factor(n_components, n_clusters, *self._weights)

    def _are_few_rows(self, k):
        """Whether chains of K components can be run, and end in time."""
        return self._are_whole and self._products_of_one * np.arange(1, k + 1).sum() <= _MOST_PRODUCTS

    def _is_one_optimum(self, k):
        """Whether one optimum with rows in all K components is nearly all: chains would tell nothing more.

        Numbers of fewer components count with as much as their errors allow.
        """
        log_parts, errors = np.transpose(self._parts)
        log_parts[:-1] += _MANY_ERRORS * errors[:-1]
        share = self._occupied_shares(k, log_parts)[-1] * self._optimum_shares[-1].max()
        return bool(share > 1.0 - _LITTLE)

    def _best(self, k):
        """The most probable optimum of K components, all of which hold rows, or None."""
        return max(self._optima[k - 1], key=attrgetter("log_evidence"), default=None)

    def _optima_that_matter(self, k):
        """Those of K components that have more than a little share in the evidence: list."""
        pairs = zip(self._optima[k - 1], self._optimum_shares[k - 1], strict=True)
        return [optimum for optimum, share in pairs if share > _LITTLE]

    def _occupied_shares(self, k, log_parts):
        """P(t | K) of t = 1, ..., K clusters that hold rows: (K,)."""
        return softmax(log_parts[:k] + self._log_ways(k, np.arange(1, k + 1)))

    def _run_chains(self, k, posterior):
        """Run chains of K components, from probable optima of as many or fewer."""
        starts = [evidence.optimum.posterior for evidences in self._optima for evidence in evidences]
        number_shares = self._occupied_shares(k, np.array(self._parts)[:, 0])
        pairs = zip(number_shares, self._optimum_shares, strict=True)
        probable = np.concatenate([share * shares_of_number for share, shares_of_number in pairs])
        generator = np.random.default_rng([self._seed, k])
        chosen = generator.choice(len(starts), N_CHAINS, p=probable / probable.sum())
        counts, parameters, n_occupied = run(
            posterior, self._rows.origin, self._rows, [starts[i] for i in chosen], self._seed + k
        )
        self._visits[k] = Visits.of(counts)
        self._chains[k] = parameters, n_occupied

    def _by_bridge(self, k, best, sampler_at):
        """log E_k and its standard error, from draws of the chains and at the best optimum."""
        parameters, n_occupied = self._chains[k]
        held = np.flatnonzero(n_occupied == k)
        held = held[held // N_CHAINS % 2 == 0]  # Every other iteration: those between tell little more.
        if not len(held):
            return best.log_evidence, np.inf
        parameters = parameters.with_draws(parameters.draws[held])
        sampler = sampler_at(best.optimum, self._rows)
        return evidence_by_bridge(sampler, self._rows, best, parameters, held % N_CHAINS)

    def _joined(self):
        """log A_t of all draws and visits, and its covariance: (T,), (T, T)."""
        return joined(*np.transpose(self._parts), self._visits, *self._weights)

    def optimum_of(self, k):
        """The most probable optimum with rows in all K components, where they all hold rows as a rule: Fit.

        None where that is not so, or no optimum has rows in all of them.
        """
        best = self._best(k)
        if best is None or self._occupied_shares(k, self._joined()[0])[-1] < _AS_A_RULE:
            return None
        return best.optimum

    def of(self, numbers):
        """Evidences and probabilities of some numbers: dict of attributes of the result.

        Parameters
        ----------
        numbers : int array, rising; those without a fit have NaN
        """
        have_fits = np.isin(numbers, self._fitted)
        log_parts, covariance = self._joined()
        ways = self._log_ways(numbers[:, None], np.arange(1, len(log_parts) + 1))
        ways[~have_fits] = -np.inf
        log_evidence = logsumexp(log_parts + ways, axis=1)
        log_prior = log_number_prior(numbers)
        probability = softmax(log_evidence + log_prior)
        # Some log A_t are uncertain by several nats, so that errors to first order would be wrong.
        noise = np.random.default_rng(0).standard_normal((_ERROR_DRAWS, len(log_parts)))
        drawn = log_parts + noise @ np.linalg.cholesky(covariance).T
        drawn = logsumexp(drawn[:, None] + ways, axis=2)
        with np.errstate(invalid="ignore"):  # Numbers without a fit.
            gaps = np.array([softmax(drawn + log_prior, axis=1) - probability, drawn - log_evidence])
        errors = np.sqrt(np.mean(np.square(gaps), axis=1))
        k_hats = [
            max((optimum.sampled.k_hat for optimum in self._optima_that_matter(k)), default=np.inf)
            for k in numbers.tolist()
        ]
        draws = {k: self._weighted_draws(k, log_parts) for k in numbers.tolist()}
        slopes = np.full((len(numbers), len(self._prior_names)), np.nan)
        for slopes_of_number, (parameters, weights) in zip(slopes, draws.values(), strict=True):
            if parameters is not None:
                slopes_of_number[:] = weights @ parameters.prior_slopes()
        names = "probability", "probability_errors", "log_evidence", "log_evidence_error", "k_hat"
        values = np.array([probability, errors[0], log_evidence, errors[1], k_hats])
        return {
            **dict(zip(names, np.where(have_fits, values, np.nan), strict=True)),
            "occupied": probability[have_fits] @ softmax(log_parts + ways[have_fits], axis=1),
            "prior_slopes": dict(zip(self._prior_names, slopes.T, strict=True)),
            "_draws": draws,
        }

    def _weighted_draws(self, k, log_parts):
        """Draws of K components, DrawnParameters, and their weights (n,), of sum one; or a pair of None.

        They are those of the chains, weighted such that each number of occupied components has its
        probability. Without chains they are those of the best optimum alone, all of whose components hold
        rows.
        """
        if k in self._chains:
            parameters, n_occupied = self._chains[k]
            visited = np.bincount(n_occupied, minlength=k + 1)[n_occupied]
            # Draws in which all rows are noise have no weight.
            weights = np.append(0.0, self._occupied_shares(k, log_parts))[n_occupied] / visited
            return parameters, weights / weights.sum()
        best = self._best(k)
        return (None, None) if best is None else (best.parameters, best.weights)
