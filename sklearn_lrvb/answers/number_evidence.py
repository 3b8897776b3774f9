"""The evidence of every number of components, from fits of all of them (`posterior_sampling.occupied`)."""

import numpy as np
from scipy.special import logsumexp, softmax

from sklearn_lrvb.answers.conclusions import Optimum
from sklearn_lrvb.sampling.exact import distance_from_whole
from sklearn_lrvb.sampling.occupied import (
    N_CHAINS,
    Visits,
    evidence_by_bridge,
    joined,
    log_prior_factor,
    products_of_runs,
    run,
)
from sklearn_lrvb.sampling.sampler import PosteriorSampler

# Standard errors of log A_t in nats, beside Monte Carlo's, by importance sampling. One cluster has none if it
# is reliable (the number is above zero, to divide by). Of more clusters, or with noise or fitted degrees of
# freedom, it misses small optima and tails; where it is unreliable, it was too small by 2 nats on average.
_OF_ONE, _RELIABLE, _UNRELIABLE = 1e-6, 0.3, 2.0

# If there is no optimum, or if those found are unreliable and below it, a guess takes their place: log A_t is
# by the first number below log A_{t-1}. Its error is the second where chains decide, and else the third:
# in a dozen tables it was off by -2 to 5.
_FALL, _UNKNOWN, _GUESSED = 2.3, 5.0, 2.5
_ERROR_DRAWS = 1000  # Of log A_t, of which standard errors of probabilities are taken.
_AS_A_RULE = 0.5  # Probability that all K components hold rows.
_LITTLE = 0.01  # Share of an optimum in the evidence below which it need not be reliable.

# Chains are run up to the K where all their sweeps take about so many products, three minutes on one core.
# Where there are more rows, importance sampling is reliable as a rule.
_MOST_PRODUCTS = 2e11


class NumberEvidence:
    """The evidence of every number of components.

    Parameters
    ----------
    fits : dict of the fits of 1, 2, ..., T components
        Each has attributes `estimator`, `optima`, `evidences` and `rows`, which is None where a fit failed.
    """

    def __init__(self, fits):
        posterior, rows = fits[1].estimator._uncertainty.fitted.posterior, fits[1].rows
        concentration, has_background = posterior.prior.weights.prior_concentration, posterior.n_labels > 1
        self._of_labels = concentration, rows.total_weight, has_background  # What W(K, t) depends on besides.
        self._model = posterior.model
        self._is_one_known = self._model.is_exact_alone(posterior)
        self._prior_numbers = self._model.prior_numbers(posterior.prior)
        self._products_of_one = products_of_runs(posterior, rows.n_samples)
        self._are_whole = not rows.total(distance_from_whole)
        self._fits, self._clusters = {}, np.empty(0, dtype=int)
        self._parts = {}  # log A_t by draws, its standard error, and whether it is reliable.
        self._visits = {}  # Of every K with chains.
        self._chains = {}  # Their draws, and how many components hold rows in each.
        self.add(fits)

    def add(self, fits):
        """Add the fits of the next numbers of components: dict."""
        self._clusters = np.arange(1, max(fits) + 1)
        self._fits |= {k: fit for k, fit in fits.items() if fit.rows is not None}
        self._parts |= {t: self._by_importance(t) for t in fits}

    def _has_runs(self, k):
        """Whether chains of K components are run: of one only where its evidence is unreliable."""
        n_products = self._products_of_one * np.arange(1, k + 1).sum()
        is_asked = k in self._fits and (k > 1 or not self._parts[1][2])
        return is_asked and self._are_whole and n_products <= _MOST_PRODUCTS

    def _by_importance(self, t):
        """log A_t by importance sampling, its standard error, and whether it is reliable."""
        found, shares = self._evidences(t)
        is_reliable, least = _are_reliable(found, shares), _UNRELIABLE
        if is_reliable:
            least = _OF_ONE if t == 1 and self._is_one_known else _RELIABLE
        log_part = logsumexp([own.log_evidence for own in found]) if found else -np.inf
        log_part -= log_prior_factor(t, t, *self._of_labels)
        return log_part, np.hypot(least, np.linalg.norm(shares * [own.error for own in found])), is_reliable

    def _anchors(self):
        """log A_t without the visits of chains, or a guess, and standard errors: (T,) each."""
        anchors, errors = np.empty((2, len(self._clusters)))
        for place, t in enumerate(self._clusters.tolist()):
            anchors[place], errors[place], is_reliable = self._parts[t]
            if t > 1 and not is_reliable and anchors[place] < anchors[place - 1] - _FALL:
                anchors[place] = anchors[place - 1] - _FALL
                errors[place] = _UNKNOWN if self._has_runs(t) else _GUESSED
        return anchors, errors

    def _evidences(self, t):
        """The evidences of optima of t components, and their shares."""
        found = self._fits[t].evidences if t in self._fits else []
        log_evidences = np.array([own.log_evidence for own in found])
        return found, softmax(log_evidences) if found else np.empty(0)

    def _shares(self, k, log_parts):
        """P(t | K) of t = 1, ..., K clusters that hold rows: (K,)."""
        return softmax(log_parts[:k] + log_prior_factor(k, self._clusters[:k], *self._of_labels))

    def run(self, k, seed):
        """Run chains of K components, from probable optima of as many or fewer.

        There are none where rows are too many, or do not count a whole number of times.
        """
        if not self._has_runs(k):
            return
        shares, fit = self._shares(k, self._anchors()[0]), self._fits[k]
        smaller = [t for t in range(1, k + 1) if t in self._fits]
        starts = [optimum.posterior for t in smaller for optimum in self._fits[t].optima]
        probable = np.concatenate([shares[t - 1] * self._evidences(t)[1] for t in smaller])
        generator = np.random.default_rng([seed, k])
        chosen = generator.choice(len(starts), N_CHAINS, p=probable / probable.sum())
        found, own_shares = self._evidences(k)
        best = own_shares.argmax() if found else None
        fitted = fit.estimator._uncertainty.fitted
        posterior = fitted.posterior if best is None else fit.optima[best].posterior
        counts, parameters, n_occupied = run(
            posterior, fitted.origin, fit.rows, [starts[i] for i in chosen], seed + k
        )
        self._visits[k] = Visits.of(counts)
        self._chains[k] = parameters, n_occupied
        if best is not None and not self._parts[k][2]:
            self._add_bridge(k, best)

    def _add_bridge(self, k, best):
        """Take log A_t from draws of the chains and at the best optimum, if its error is smaller."""
        fit, (parameters, n_occupied) = self._fits[k], self._chains[k]
        held = np.flatnonzero(n_occupied == k)
        held = held[held // N_CHAINS % 2 == 0]  # Every other sweep: those between tell little more.
        if not len(held):
            return
        optimum = Optimum(fit.estimator, fit.rows, fit.optima[best], fit.rows).as_estimator()
        sampler = PosteriorSampler(optimum._uncertainty, fit.rows)
        log_evidence, error = evidence_by_bridge(
            sampler,
            fit.rows,
            fit.evidences[best],
            parameters.with_draws(parameters.draws[held]),
            held % N_CHAINS,
        )
        if error < self._parts[k][1]:
            self._parts[k] = log_evidence - log_prior_factor(k, k, *self._of_labels), error, True

    def _joined(self):
        """log A_t of all draws and visits, and its covariance: (T,), (T, T)."""
        return joined(*self._anchors(), self._visits, *self._of_labels)

    def optimum_of(self, k):
        """The most probable optimum with rows in all K components, where they all hold rows as a rule: Fit.

        None where that is not so, or no optimum has rows in all of them.
        """
        found, shares = self._evidences(k)
        if not found or self._shares(k, self._joined()[0])[-1] < _AS_A_RULE:
            return None
        return self._fits[k].optima[shares.argmax()]

    def of(self, numbers):
        """Evidences and probabilities of some numbers, after all runs: dict of attributes of the result.

        Parameters
        ----------
        numbers : int array, rising; those whose fits failed have NaN
        """
        is_fitted = np.isin(numbers, [*self._fits])
        numbers = numbers[is_fitted]
        log_parts, covariance = self._joined()
        ways = log_prior_factor(numbers[:, None], self._clusters, *self._of_labels)
        log_evidence, shares = logsumexp(log_parts + ways, axis=1), softmax(log_parts + ways, axis=1)
        probability = softmax(log_evidence)
        # Some log A_t are uncertain by several nats, so that errors to first order would be wrong.
        noise = np.random.default_rng(0).standard_normal((_ERROR_DRAWS, len(log_parts)))
        drawn = log_parts + noise @ np.linalg.cholesky(covariance).T
        drawn = logsumexp(drawn[:, None] + ways, axis=2)
        draws = {k: self._weighted_draws(k, log_parts) for k in numbers.tolist()}
        of_prior = np.array([self._mean_slopes(*draws[k]) for k in numbers.tolist()])
        found = {
            "probability": probability,
            "probability_errors": _root_mean_square(softmax(drawn, axis=1) - probability),
            "log_evidence": log_evidence,
            "log_evidence_error": _root_mean_square(drawn - log_evidence),
            "k_hat": np.array([self._k_hat(k) for k in numbers.tolist()]),
        }
        return {
            **{name: _placed(values, is_fitted) for name, values in found.items()},
            "occupied": probability @ shares,
            "prior_slopes": dict(zip(self._prior_numbers, _placed(of_prior, is_fitted).T, strict=True)),
            "_draws": draws,
        }

    def _mean_slopes(self, parameters, weights):
        """Derivatives of the log evidence in logarithms of the prior's numbers, (m,); NaN without draws."""
        if parameters is None:
            return np.full(len(self._prior_numbers), np.nan)
        return weights @ self._model.prior_slopes(parameters)

    def _k_hat(self, k):
        """The largest k hat of the optima of K components that matter."""
        found, shares = self._evidences(k)
        return max(
            (own.k_hat for own, share in zip(found, shares, strict=True) if share > _LITTLE), default=np.inf
        )

    def _weighted_draws(self, k, log_parts):
        """Draws of K components, DrawnParameters, and their weights (n,), of sum one; or a pair of None.

        They are those of the chains, weighted such that each number of occupied components has its
        probability. Without chains they are those of the best optimum alone, all of whose components hold
        rows.
        """
        if k not in self._chains:
            found, shares = self._evidences(k)
            best = found[shares.argmax()] if found else None
            return (None, None) if best is None else (best.parameters, best.weights)
        parameters, n_occupied = self._chains[k]
        visited = np.bincount(n_occupied, minlength=k + 1)[n_occupied]
        # Draws in which all rows are noise have no weight.
        weights = np.append(0.0, self._shares(k, log_parts))[n_occupied] / visited
        return parameters, weights / weights.sum()


def _are_reliable(found, shares):
    """Whether there are optima, and importance sampling of all that matter can be relied on."""
    return bool(found) and all(
        own.is_reliable for own, share in zip(found, shares, strict=True) if share > _LITTLE
    )


def _placed(values, is_known):
    """Values of some numbers in the places of all: NaN elsewhere."""
    placed = np.full((len(is_known), *values.shape[1:]), np.nan)
    placed[is_known] = values
    return placed


def _root_mean_square(gaps):
    return np.sqrt(np.mean(np.square(gaps), axis=0))
