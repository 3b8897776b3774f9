"""Posteriors of the mixture weights pi, given the expected counts N_k.

A weight prior gives E log pi; its covariance V_pi, which is the mean-field covariance of log pi and also the
derivative of E log pi in the counts; the posterior means of pi and of log pi, scaled so that weights sum to
one, and their derivatives; the sensitivities of the means, which are derivatives in the prior's concentration
at fixed counts; the Kullback-Leibler divergence; the log evidence of given counts; and the order of the
components in which that evidence is largest.

All weights have a stick-breaking form: component k gets a share v_k of the remaining stick. The v_k are
independent beta variables, K - 1 of them where the last component gets the rest (Dirichlet), else K. Where
there is a noise component, its weight comes last, and its break is the first one (`WeightsWithNoise`).

*Conventions.* K components, L labels: the components and the noise component; B breaks.
"""

import functools
import itertools
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, zeta

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.distributions import dirichlet
from sklearn_lrvb.distributions.special_functions import log_gamma_draws

# Largest sum of weights. The mean-field variances of log weights are one over the counts, but one over their
# squares in the direction in which all counts change together: a relative one over the sum of the weights.
LARGEST_TOTAL_WEIGHT = 1e15

# Largest number of components over all of whose orders a broken stick is averaged: 120 orders of five. More
# take longer than all else; `labels` has the sum over the orders of up to twelve, by their subsets, which is
# slower for few.
_MOST_IN_ALL_ORDERS = 5

# Smallest sum of weights: as without weights, a fit needs two rows. Weights that sum to one are less,
# whatever rounding adds to their sum.
_LEAST_TOTAL_WEIGHT = 2.0

# Weight of a typical row below which the user is warned. Error bars are then three times too wide, if the
# weights have been normalised.
_LEAST_TYPICAL_WEIGHT = 0.1

_LEAST_LOG_LEFT = -80.0  # Log of the mean of what broken sticks leave, below which they leave nothing.


def require_countable(rows):
    """Raise ValueError where the weights of rows sum to more than can be counted, or to less than two rows.

    It warns where a typical row counts for next to nothing: where there are far more rows than the weights
    sum to, and they are not just rows of other clusters, whose weights are small beside those of a few.
    """
    total, n_rows = rows.total_weight, rows.n_samples
    if total > LARGEST_TOTAL_WEIGHT:
        raise ValueError(
            f"sample_weight sums to {total:.3g} rows, beyond {LARGEST_TOTAL_WEIGHT:g}: float64 "
            "cannot tell one row more or less. Divide the weights by a constant, so that they count rows."
        )
    is_refused = total < _LEAST_TOTAL_WEIGHT
    if not is_refused and total >= _LEAST_TYPICAL_WEIGHT * n_rows:
        return
    typical_weight = rows.total(_squared_weights) / total
    if not is_refused and typical_weight >= _LEAST_TYPICAL_WEIGHT:
        return
    message = (
        f"sample_weight sums to {total:.3g} over {n_rows} rows. A weight says how often a row counts, so "
        f"that the fit sees {total:.3g} row(s): if the weights were normalised, error bars come out "
        f"{np.sqrt(1.0 / typical_weight):.2g} times too wide. (a) Scale weights that are no counts, such as "
        "those of a survey, to the number of rows: weight * len(weight) / weight.sum(). (b) Where weights "
        "are counts, undo what has divided them."
    )
    if is_refused:
        raise ValueError(f"{message} A fit needs {_LEAST_TOTAL_WEIGHT:g} rows at least.")
    warn_caller(message)


def _squared_weights(block):
    """Sum of the squares of the rows' weights."""
    return np.square(block.counts).sum()


class BrokenStick:
    """Weights in stick-breaking form: a product of shares v_b or 1 - v_b of B breaks for every label.

    The shares are independent beta variables, whose two parameters are linear in the counts and in the
    concentration of the prior. A subclass says how, by `_set_breaks`.
    """

    def _set_breaks(self, takes, passes, constant, slope):
        """Set of which shares the weights are products, and the parameters of these shares under the prior.

        Parameters
        ----------
        takes, passes : (L, B), ones where the weight of a label has v_b, or 1 - v_b; zeros elsewhere
        constant, slope : (2, B), the parameters are constant + slope * concentration of the prior
        """
        self._takes, self._passes = takes, passes
        self._constant, self._slope = np.asarray(constant, dtype=float), np.asarray(slope, dtype=float)
        self._breaks_of_prior = self._constant + self.prior_concentration * self._slope

    def sticks(self, counts):
        """The two beta parameters of every break: (..., L) -> a pair of (..., B)."""
        stick, rest = self._breaks_of_prior
        return stick + np.dot(counts, self._takes), rest + np.dot(counts, self._passes)

    def drawn(self, counts, generator):
        """log v and log(1 - v) of draws of all breaks, given counts (n, L): a pair of (n, B)."""
        log_gammas = log_gamma_draws(np.stack(self.sticks(counts)), generator)
        return log_gammas - np.logaddexp(*log_gammas)

    def log_symmetry(self, log_stick, log_rest):
        """log of the prior density that `drawn` has, over that of the breaks, up to a constant: (n,)."""
        return np.zeros(len(log_stick))

    @property
    def of_components(self):
        """The weights of the components alone: these themselves, unless there is a noise component."""
        return self

    def with_concentration(self, concentration):
        """The same prior with another concentration, alpha_0 or gamma."""
        return replace(self, prior_concentration=concentration)

    # Moments of log pi, from the trigamma functions of the beta parameters, zeta(2, x).

    def _trigammas(self, counts):
        """Of both parameters of every break, and of their sum: (3, B)."""
        stick, rest = self.sticks(counts)
        return zeta(2.0, np.array([stick, rest, stick + rest]))

    def covariance_of_log(self, counts):
        """V_pi = Cov(log pi) = d E log pi / d counts, (L, L)."""
        (stick, rest, total), both = self._trigammas(counts), self._takes + self._passes
        covariance = (self._takes * stick) @ self._takes.T + (self._passes * rest) @ self._passes.T
        return covariance - (both * total) @ both.T

    def variance_of_log(self, counts, combination):
        """Variance of a linear combination, (L,), of log pi: a float."""
        stick, rest, total = self._trigammas(counts)
        taken, passed = combination.dot(self._takes), combination.dot(self._passes)
        of_both = np.square(taken + passed).dot(total)
        return np.square(taken).dot(stick) + np.square(passed).dot(rest) - of_both

    def expected_log_sensitivity(self, counts):
        """d E log pi / d concentration of the prior, (L,)."""
        (stick, rest, total), (stick_slope, rest_slope) = self._trigammas(counts), self._slope
        shared = total * (stick_slope + rest_slope)
        return self._takes @ (stick * stick_slope - shared) + self._passes @ (rest * rest_slope - shared)

    def logit_variance(self, counts):
        """Var log(v/(1 - v)), a number for every break."""
        stick, rest, _ = self._trigammas(counts)
        return stick + rest

    def logit_covariance_with_log(self, counts):
        """Cov(log(v/(1 - v)), log pi), (B, L)."""
        stick, rest, _ = self._trigammas(counts)
        return (self._takes * stick - self._passes * rest).T

    def expected_log(self, counts):
        """E log pi, (..., L)."""
        return self.expected_log_at(*self._concentrations(counts))

    def _concentrations(self, counts):
        """The arguments of `expected_log_at`, given counts."""
        return (self.concentration(counts),)

    # Weights that are scaled to sum to one; they do in any case where the last component gets the rest.

    def expected_log_shares(self, counts):
        """E log pi of weights that are scaled to sum to one, (L,)."""
        return self.expected_log_shares_at(*self._concentrations(counts))

    def expected_log_shares_at(self, concentration):
        """The same at a posterior concentration."""
        return self.expected_log_at(concentration)

    def log_shares_jacobian(self, counts):
        """d `expected_log_shares` / d counts, which is Cov(log shares, log pi): (L, L)."""
        return self.covariance_of_log(counts)

    def log_shares_sensitivity(self, counts):
        """d `expected_log_shares` / d concentration of the prior, (L,)."""
        return self.expected_log_sensitivity(counts)

    def mean_jacobian(self, counts):
        """d mean / d counts, (L, L)."""
        return self._mean_changes(counts, self._takes.T, self._passes.T)

    def mean_sensitivity(self, counts):
        """d mean / d concentration of the prior, (L,)."""
        return self._mean_changes(counts, *self._slope[:, :, None])[:, 0]

    def _mean_changes(self, counts, stick_changes, rest_changes):
        """Changes of the mean, given those of the beta parameters of all breaks: (B, n) twice -> (L, n)."""
        stick, rest = (parameters[:, None] for parameters in self.sticks(counts))
        shared = (stick_changes + rest_changes) / (stick + rest)
        log_change = self._takes @ (stick_changes / stick - shared)
        log_change += self._passes @ (rest_changes / rest - shared)
        mean = self.mean(counts)
        return mean[:, None] * (log_change - mean @ log_change)

    # Draws.

    def log_weights(self, log_stick, log_rest):
        """log pi from log v and log(1 - v): (..., number of breaks) twice -> (..., K).

        Where the last stick is a beta variable too, the weights sum to less than one.
        """
        n_breaks = log_stick.shape[-1]
        log_weights = np.zeros((*log_stick.shape[:-1], self.n_components))
        log_weights[..., :n_breaks] = log_stick
        log_weights[..., 1:] += np.cumsum(log_rest[..., : self.n_components - 1], axis=-1)
        return log_weights

    def log_shares(self, log_stick, log_rest):
        """log pi as in `log_weights`, of weights that are scaled to sum to one."""
        log_weights = self.log_weights(log_stick, log_rest)
        return log_weights - logsumexp(log_weights, axis=-1, keepdims=True)

    def log_sticks(self, log_weights, log_left):
        """log v and log(1 - v) from log pi: the inverse of `log_weights`.

        Parameters
        ----------
        log_weights : (n, K)
        log_left : (n,), log of what no component has; not used where the last component gets the rest

        Returns
        -------
        log_stick, log_rest : (n, number of breaks)
        """
        n_breaks = self._takes.shape[1]
        after = log_left if n_breaks == self.n_components else np.full(len(log_weights), -np.inf)
        # log of 1 - sum_{j<k} pi_j, from the last to the first, and what is left before them.
        reversed_weights = np.column_stack([after, log_weights[:, ::-1]])
        tails = np.logaddexp.accumulate(reversed_weights, axis=1)[:, ::-1]
        return (log_weights - tails[:, :-1])[:, :n_breaks], np.diff(tails, axis=1)[:, :n_breaks]


@dataclass
class DirichletWeights(BrokenStick):
    """pi ~ Dirichlet(alpha_0, ..., alpha_0); alpha_0 = 0 is the flat prior on log pi."""

    prior_concentration: float
    n_components: int

    def __post_init__(self):
        n, passes = self.n_components, np.tri(self.n_components, self.n_components - 1, k=-1)
        slope = [np.ones(n - 1), passes.sum(axis=0)]
        self._set_breaks(np.eye(n, n - 1), passes, np.zeros((2, n - 1)), slope)
        self._prior = np.full(n, float(self.prior_concentration))
        self._prior_log_partition = dirichlet.prior_log_partition(self._prior)

    def concentration(self, counts):
        """Posterior concentration alpha, (K,)."""
        return self.prior_concentration + counts

    def expected_log_at(self, concentration):
        """E log pi at a posterior concentration, (..., K)."""
        return dirichlet.expected_log(concentration)

    def covariance_of_log(self, counts):
        return dirichlet.covariance_of_log(self.concentration(counts))

    def mean(self, counts):
        """E pi, (K,)."""
        concentration = self.concentration(counts)
        return concentration / concentration.sum()

    def log_evidence(self, counts):
        """log of the integral of p(pi) prod_k pi_k^N_k: (..., K) -> (...)."""
        return dirichlet.log_partition(self.concentration(counts)) - self._prior_log_partition

    def best_order(self, counts):
        """The components in their present order, because the evidence is the same in all: (..., K) of int."""
        return np.broadcast_to(np.arange(self.n_components), np.shape(counts))

    def expectations(self, counts):
        """E log pi (K,), and KL(q(pi) || p(pi)); a flat prior's density counts as 1."""
        return dirichlet.expectations(self.concentration(counts), self._prior, self._prior_log_partition)


@dataclass
class StickBreakingWeights(BrokenStick):
    """pi_k = v_k prod_{j<k} (1 - v_j) with v_k ~ Beta(1, gamma): a truncated Dirichlet process.

    As in scikit-learn the last stick is a beta variable too, so that the weights sum to less than one: the
    remaining weight belongs to components beyond K. The lower bound is one on the evidence of the untruncated
    process. log pi is linear in (log v, log(1 - v)).
    """

    prior_concentration: float
    n_components: int

    def __post_init__(self):
        n, ones, zeros = self.n_components, np.ones(self.n_components), np.zeros(self.n_components)
        self._set_breaks(np.eye(n), np.tri(n, k=-1), [ones, zeros], [zeros, ones])
        self._prior = np.array([1.0, self.prior_concentration])  # of a stick
        self._prior_log_partition = dirichlet.prior_log_partition(self._prior)

    def concentration(self, counts):
        """The two beta parameters of every stick, a pair of (K,)."""
        return self.sticks(counts)

    def mean(self, counts):
        """E pi, scaled to sum to one as scikit-learn does, (K,)."""
        stick, rest = self.sticks(counts)
        total = stick + rest
        mean = np.exp(self._takes @ np.log(stick / total) + self._passes @ np.log(rest / total))
        return mean / mean.sum()

    def expected_log_at(self, concentration):
        """E log pi at the two beta parameters of every stick, a pair of (..., K)."""
        log_sticks = dirichlet.expected_log(np.stack(concentration, axis=-1))
        return self.log_weights(log_sticks[..., 0], log_sticks[..., 1])

    def expected_log_shares_at(self, concentration):
        log_total, _, _ = self._log_total(*concentration)
        return self.expected_log_at(concentration) - log_total

    def log_shares_jacobian(self, counts):
        _, stick_slope, rest_slope = self._log_total(*self.sticks(counts))
        return self.covariance_of_log(counts) - (self._takes @ stick_slope + self._passes @ rest_slope)

    def log_shares_sensitivity(self, counts):
        _, _, rest_slope = self._log_total(*self.sticks(counts))
        return self.expected_log_sensitivity(counts) - rest_slope.sum()

    def _log_total(self, stick, rest):
        """E log of the sum of the weights, and its derivatives in both parameters of every break, (K,) each.

        The sum is 1 - R, where R = prod_j (1 - v_j) is left. R is taken for the beta variable with the same
        first and second moments, which it is where there is one component.
        """
        if self.n_components == 1:  # The same numbers as those of log pi, whose share is one.
            covariance = dirichlet.covariance_of_log(np.append(stick, rest))
            return dirichlet.expected_log(np.append(stick, rest))[0], covariance[:1, 0], covariance[:1, 1]
        total = stick + rest
        log_mean = -np.log1p(stick / rest).sum()  # Of R. The next is E R^2 / E R.
        if log_mean < _LEAST_LOG_LEFT:
            return 0.0, np.zeros_like(stick), np.zeros_like(stick)
        log_next = -np.log1p(stick / (rest + 1.0)).sum()
        log_spread = np.log1p(stick / (rest * (total + 1.0))).sum()  # log_next - log_mean
        spread = np.expm1(log_spread)
        left = -np.expm1(log_next) / spread  # R ~ Beta(left, taken)
        taken = left * np.expm1(-log_mean)
        value = dirichlet.expected_log(np.array([taken, left]))[0]
        taken_slope, left_slope = dirichlet.covariance_of_log(np.array([taken, left]))[0]
        # Slopes in both parameters, (2, K): of log_mean, log_next and log_spread.
        mean = np.array([-1.0 / total, stick / (rest * total)])
        following = np.array([-1.0 / (total + 1.0), stick / ((rest + 1.0) * (total + 1.0))])
        of_rest = -stick * (rest + total + 1.0) / (rest * total * (rest + 1.0) * (total + 1.0))
        spreads = np.array([1.0 / (total * (total + 1.0)), of_rest])
        change = -(np.exp(log_next) * following + left * np.exp(log_spread) * spreads) / spread
        change_of_taken = change * np.expm1(-log_mean) - left * np.exp(-log_mean) * mean
        stick_slope, rest_slope = taken_slope * change_of_taken + left_slope * change
        return value, stick_slope, rest_slope

    def drawn(self, counts, generator):
        """As for every stick, but broken in a random order of the components, given the counts.

        The numbers of the components mean nothing: so the prior is its average over all orders. With more
        than five components the stick is broken in their own.
        """
        if self.n_components > _MOST_IN_ALL_ORDERS:
            return super().drawn(counts, generator)
        log_shares = _log_shares_of_orders(np.full(len(counts), self.prior_concentration), counts)
        order = _orders(self.n_components)[(log_shares + generator.gumbel(size=log_shares.shape)).argmax(1)]
        log_stick, log_rest = super().drawn(np.take_along_axis(counts, order, axis=1), generator)
        log_weights = np.empty_like(log_stick)
        np.put_along_axis(log_weights, order, self.log_weights(log_stick, log_rest), axis=1)
        return self.log_sticks(log_weights, log_rest.sum(axis=1))

    def log_symmetry(self, log_stick, log_rest):
        if self.n_components > _MOST_IN_ALL_ORDERS:
            return super().log_symmetry(log_stick, log_rest)
        weights, left = np.exp(self.log_weights(log_stick, log_rest)), np.exp(log_rest.sum(axis=1))
        log_shares = _log_shares_of_orders(left, weights)
        return logsumexp(log_shares, axis=1) - log_shares[:, 0]

    def log_evidence(self, counts):
        """log of the integral of p(v) prod_k pi_k^N_k: (..., K) -> (...)."""
        sticks = np.stack(self.sticks(counts), axis=-1)
        return (dirichlet.log_partition(sticks) - self._prior_log_partition).sum(axis=-1)

    def best_order(self, counts):
        """Components in the order of falling counts, which has the largest `log_evidence`: (..., K) of int.

        Exchanging two neighbours changes it by log(gamma + R + N_later) - log(gamma + R + N_earlier), where R
        is the sum of the counts behind both: a gain exactly where the later count is the larger one.
        """
        return np.argsort(-np.asarray(counts), axis=-1, kind="stable")

    def expectations(self, counts):
        """E log pi (K,), and the sum over sticks of KL(q(v_k) || p(v_k))."""
        sticks = np.array(self.sticks(counts)).T
        log_sticks, divergences = dirichlet.expectations(sticks, self._prior, self._prior_log_partition)
        return log_sticks[:, 0] + self._passes.dot(log_sticks[:, 1]), divergences.sum()


class WeightsWithNoise(BrokenStick):
    """The weights of the components, and the one of the noise component, pi_0, which comes last.

    pi_0 ~ Beta(alpha_0, K alpha_0), and the components share the rest as without noise. So a Dirichlet prior
    remains one, over K + 1 labels; and the noise component takes no part in the order of the sticks.

    Parameters
    ----------
    of_components : DirichletWeights or StickBreakingWeights
    """

    of_components = None

    def __init__(self, of_components):
        self.of_components, self.n_components = of_components, of_components.n_components
        self.prior_concentration = of_components.prior_concentration
        takes, passes = (np.pad(of, ((0, 1), (1, 0))) for of in (of_components._takes, of_components._passes))
        takes[-1, 0] = passes[:-1, 0] = 1.0  # The first break is that of the noise component.
        slope = np.hstack([[[1.0], [self.n_components]], of_components._slope])
        self._set_breaks(takes, passes, np.pad(of_components._constant, ((0, 0), (1, 0))), slope)
        self._prior = self.prior_concentration * slope[:, 0]
        self._prior_log_partition = dirichlet.prior_log_partition(self._prior)

    def with_concentration(self, concentration):
        return type(self)(self.of_components.with_concentration(concentration))

    def of_noise_component(self, counts):
        """The two beta parameters of pi_0, given the counts of all labels: (..., K + 1) -> (..., 2)."""
        return _first_break(*self.sticks(counts))

    def concentration(self, counts):
        """That of the components' weights, given pi_0."""
        return self.of_components.concentration(counts[..., : self.n_components])

    def _concentrations(self, counts):
        return self.concentration(counts), self.of_noise_component(counts)

    def expected_log_at(self, concentration, of_noise_component):
        """E log pi at given parameters of the components' weights, and of pi_0, (2,): (K + 1,)."""
        log_weights = self.of_components.expected_log_at(concentration)
        return _with_noise_component(log_weights, dirichlet.expected_log(of_noise_component))

    def expected_log_shares_at(self, concentration, of_noise_component):
        log_shares = self.of_components.expected_log_shares_at(concentration)
        return _with_noise_component(log_shares, dirichlet.expected_log(of_noise_component))

    def log_shares_jacobian(self, counts):
        jacobian, components, own = self.covariance_of_log(counts), self.of_components, counts[:-1]
        jacobian[:-1, :-1] += components.log_shares_jacobian(own) - components.covariance_of_log(own)
        return jacobian

    def log_shares_sensitivity(self, counts):
        sensitivity, components, own = self.expected_log_sensitivity(counts), self.of_components, counts[:-1]
        sensitivity[:-1] += components.log_shares_sensitivity(own) - components.expected_log_sensitivity(own)
        return sensitivity

    def mean(self, counts):
        """E pi, (K + 1,)."""
        stick, rest = self.of_noise_component(counts)
        components = rest / (stick + rest) * self.of_components.mean(counts[:-1])
        return np.append(components, stick / (stick + rest))

    def _mean_changes(self, counts, stick_changes, rest_changes):
        stick, rest = self.of_noise_component(counts)
        share_changes = (rest * stick_changes[0] - stick * rest_changes[0]) / (stick + rest) ** 2
        changes = self.of_components._mean_changes(counts[:-1], stick_changes[1:], rest_changes[1:])
        changes *= rest / (stick + rest)
        changes -= np.outer(self.of_components.mean(counts[:-1]), share_changes)
        return np.vstack([changes, share_changes])

    def log_weights(self, log_stick, log_rest):
        log_weights = self.of_components.log_weights(log_stick[..., 1:], log_rest[..., 1:])
        return _with_noise_component(log_weights, _first_break(log_stick, log_rest))

    def log_shares(self, log_stick, log_rest):
        log_shares = self.of_components.log_shares(log_stick[..., 1:], log_rest[..., 1:])
        return _with_noise_component(log_shares, _first_break(log_stick, log_rest))

    def log_sticks(self, log_weights, log_left):
        own, noise_component = np.split(log_weights, [self.n_components], axis=1)
        is_all = isinstance(self.of_components, DirichletWeights)
        left = np.full(len(log_weights), -np.inf) if is_all else log_left
        rest = np.logaddexp.reduce(np.column_stack([own, left]), axis=1)[:, None]
        sticks = self.of_components.log_sticks(own - rest, left - rest[:, 0])
        return tuple(np.hstack(pair) for pair in zip((noise_component, rest), sticks, strict=True))

    def drawn(self, counts, generator):
        of_noise = log_gamma_draws(self.of_noise_component(counts).T[..., None], generator)
        of_noise -= np.logaddexp(*of_noise)
        of_components = self.of_components.drawn(counts[:, : self.n_components], generator)
        return tuple(map(np.hstack, zip(of_noise, of_components, strict=True)))

    def log_symmetry(self, log_stick, log_rest):
        return self.of_components.log_symmetry(log_stick[:, 1:], log_rest[:, 1:])

    def log_evidence(self, counts):
        of_noise = dirichlet.log_partition(self.of_noise_component(counts)) - self._prior_log_partition
        return of_noise + self.of_components.log_evidence(counts[..., : self.n_components])

    def best_order(self, counts):
        """The best order of the components, with the noise component in the end: (..., K + 1) of int."""
        order = self.of_components.best_order(counts[..., : self.n_components])
        return np.concatenate([order, np.full((*order.shape[:-1], 1), self.n_components)], axis=-1)

    def expectations(self, counts):
        parameters = self.of_noise_component(counts)
        log_break, divergence = dirichlet.expectations(parameters, self._prior, self._prior_log_partition)
        log_weights, other = self.of_components.expectations(counts[:-1])
        return _with_noise_component(log_weights, log_break), divergence + other


@functools.cache
def _orders(n_components):
    """All orders of the components, int (K!, K); the first is their own."""
    return np.array(list(itertools.permutations(range(n_components))))


def _log_shares_of_orders(left, amounts):
    """-sum_(k > 1) log(left + the amounts from the k-th on), of all orders of the components: (n, K!).

    It is the log density of weights with the same breaks in other orders, or given counts, with the
    concentration for what is left, the log probability of the order; both up to a constant.

    Parameters
    ----------
    left : (n,), what is behind the last component
    amounts : (n, K), weights or counts
    """
    from_each_on = np.cumsum(amounts[:, _orders(amounts.shape[1])[:, :0:-1]], axis=-1)
    return -np.log(np.maximum(left[:, None, None] + from_each_on, np.finfo(float).tiny)).sum(axis=-1)


def _with_noise_component(log_weights, log_break):
    """Logs of all weights, from those given pi_0 (..., K), and log pi_0 and log(1 - pi_0), (..., 2)."""
    return np.concatenate([log_weights + log_break[..., 1:], log_break[..., :1]], axis=-1)


def _first_break(log_stick, log_rest):
    """log v and log(1 - v) of the first break: (..., B) twice -> (..., 2)."""
    return np.stack([log_stick[..., 0], log_rest[..., 0]], axis=-1)


WEIGHT_PRIORS = {"dirichlet_distribution": DirichletWeights, "dirichlet_process": StickBreakingWeights}
