"""The evidence of every number of components, from fits of all of them (`posterior_sampling.occupied`)."""

from functools import cached_property

import numpy as np
from scipy.special import logsumexp, softmax

from sklearn_lrvb.mixtures.posterior_sampling.exact import distance_from_whole
from sklearn_lrvb.mixtures.posterior_sampling.occupied import (
    N_CHAINS,
    Visits,
    joined,
    log_prior_factor,
    products_of_runs,
    run,
)

# Standard errors of log A_t in nats, beside Monte Carlo's, by importance sampling. One cluster has none if it
# is reliable (the number is above zero, to divide by). Of more clusters, or with noise or fitted degrees of
# freedom, it misses small optima and tails.
_OF_ONE, _RELIABLE, _UNRELIABLE = 1e-6, 0.3, 1.0

# If there is no optimum, or if those found are unreliable and below it, a guess takes their place: log A_t is
# by the first number below log A_{t-1}. Its error is the second where chains will decide, and else the third:
# in a dozen tables it was off by -2 to 5.
_FALL, _UNKNOWN, _GUESSED = 2.3, 5.0, 2.5
_ERROR_DRAWS = 1000  # Of log A_t, of which standard errors are taken where no chains were run.
_LITTLE = 0.01  # Share of an optimum in the evidence below which it need not be reliable.

# Chains are run where all their sweeps take less than about so many products, three minutes on one core.
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
        self._fits = {k: fit for k, fit in fits.items() if fit.rows is not None}
        posterior = fits[1].estimator._uncertainty.fitted.posterior
        concentration, has_background = posterior.prior.weights.prior_concentration, posterior.n_labels > 1
        # What W(K, t) depends on besides.
        self._of_labels = concentration, fits[1].rows.total_weight, has_background
        self._clusters = np.arange(1, max(fits) + 1)
        rows, self._model = fits[1].rows, posterior.model
        self._is_one_known = self._model.is_exact_alone(posterior)
        self._prior_numbers = self._model.prior_numbers(posterior.prior)
        n_products = products_of_runs(posterior, rows.n_samples) * self._clusters.sum()
        self._has_runs = n_products <= _MOST_PRODUCTS and not rows.total(distance_from_whole)
        self._anchors, self._errors = self._by_importance()
        self._visits = {}  # Of every K with chains.
        self._chains = {}  # Their draws, and how many components hold rows in each.

    @cached_property
    def _joined(self):
        """log A_t, (T,), and its covariance (T, T)."""
        return joined(self._anchors, self._errors, self._visits, *self._of_labels)

    def _by_importance(self):
        """log A_t by importance sampling, and standard errors: (T,) each."""
        anchors, errors = np.empty((2, len(self._clusters)))
        for place, t in enumerate(self._clusters.tolist()):
            found, shares = self._evidences(t)
            is_reliable = _are_reliable(found, shares)
            least = _UNRELIABLE
            if is_reliable:
                least = _OF_ONE if t == 1 and self._is_one_known else _RELIABLE
            anchors[place] = logsumexp([own.log_evidence for own in found]) if found else -np.inf
            anchors[place] -= log_prior_factor(t, t, *self._of_labels)
            errors[place] = np.hypot(least, np.linalg.norm(shares * [own.error for own in found]))
            if t > 1 and not is_reliable and anchors[place] < anchors[place - 1] - _FALL:
                anchors[place] = anchors[place - 1] - _FALL
                errors[place] = _UNKNOWN if self._has_runs else _GUESSED
        return anchors, errors

    def _evidences(self, t):
        """The evidences of optima of t components, and their shares."""
        found = self._fits[t].evidences if t in self._fits else []
        log_evidences = np.array([own.log_evidence for own in found])
        return found, softmax(log_evidences) if found else np.empty(0)

    def _shares(self, k, log_parts):
        """P(t | K) of t = 1, ..., K clusters that hold rows: (K,)."""
        return softmax(log_parts[:k] + log_prior_factor(k, self._clusters[:k], *self._of_labels))

    def runs(self, seed):
        """Run chains at every K above 1, from probable optima; yield after each.

        There are none where rows are too many, or do not count a whole number of times.
        """
        if not self._has_runs:
            return
        generator = np.random.default_rng(seed)
        for k, fit in self._fits.items():
            if k == 1:  # It holds rows.
                continue
            shares = self._shares(k, self._anchors)
            smaller = [t for t in range(1, k + 1) if t in self._fits]
            optima = [optimum for t in smaller for optimum in self._fits[t].optima]
            probable = np.concatenate([shares[t - 1] * self._evidences(t)[1] for t in smaller])
            chosen = generator.choice(len(optima), N_CHAINS, p=probable / probable.sum())
            fitted, starts = fit.estimator._uncertainty.fitted, [optima[i] for i in chosen]
            counts, parameters, n_occupied = run(fitted.posterior, fitted.origin, fit.rows, starts, seed + k)
            self._visits[k] = Visits.of(counts)
            self._chains[k] = parameters, n_occupied
            yield

    def of(self, numbers):
        """Evidences and probabilities of some numbers, after all runs: dict of attributes of the result.

        Parameters
        ----------
        numbers : int array, rising; those whose fits failed have NaN
        """
        is_fitted = np.isin(numbers, [*self._fits])
        numbers = numbers[is_fitted]
        log_parts, covariance = self._joined
        ways = log_prior_factor(numbers[:, None], self._clusters, *self._of_labels)
        log_evidence, shares = logsumexp(log_parts + ways, axis=1), softmax(log_parts + ways, axis=1)
        probability = softmax(log_evidence)
        if self._has_runs:
            evidence_errors = _deviations(shares, covariance)
            errors = _deviations(probability[:, None] * (shares - probability @ shares), covariance)
        else:  # Some log A_t are uncertain by several nats, so that errors to first order would be wrong.
            noise = np.random.default_rng(0).standard_normal((_ERROR_DRAWS, 1, len(log_parts)))
            drawn = logsumexp(log_parts + noise * self._errors + ways, axis=2)
            evidence_errors = _root_mean_square(drawn - log_evidence)
            errors = _root_mean_square(softmax(drawn, axis=1) - probability)
        draws = {k: self._weighted_draws(k) for k in numbers.tolist()}
        of_prior = np.array([self._mean_slopes(*draws[k]) for k in numbers.tolist()])
        found = {
            "probability": probability,
            "probability_errors": errors,
            "log_evidence": log_evidence,
            "log_evidence_error": evidence_errors,
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

    def _weighted_draws(self, k):
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
        weights = np.append(0.0, self._shares(k, self._joined[0]))[n_occupied] / visited
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


def _deviations(rows, covariance):
    """Standard deviations of linear combinations, (m, T) and (T, T) -> (m,)."""
    return np.sqrt(np.einsum("mt,ts,ms->m", rows, covariance, rows))


def _root_mean_square(gaps):
    return np.sqrt(np.mean(np.square(gaps), axis=0))
