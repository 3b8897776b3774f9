"""Posteriors of the mixture weights pi, given the expected counts N_k.

A weight prior gives E log pi; its covariance V_pi, which is the mean-field covariance of log pi and also the
derivative of E log pi in the counts; the posterior means of pi and of log pi, scaled so that weights sum to
one, and their derivatives; the sensitivities of the means, which are derivatives in the prior's concentration
at fixed counts; the Kullback-Leibler divergence; the log evidence of given counts; and the order of the
components in which that evidence is largest.

Both kinds of weights have a stick-breaking form: component k gets a share v_k of the remaining stick. The v_k
are independent beta variables, K - 1 of them where the last component gets the rest (Dirichlet), else K.
Arrays have a number for every component, (K,), or for every break of the stick. Where there is a background,
its weight comes last, and its break is the first one (`WeightsWithBackground`).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, zeta

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.distributions import dirichlet

# Largest sum of weights. The mean-field variances of log weights are one over the counts, but one over their
# squares in the direction in which all counts change together: a relative one over the sum of the weights.
LARGEST_TOTAL_WEIGHT = 1e15

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
    """Weights in stick-breaking form; a subclass defines `sticks`, the beta parameters of its breaks."""

    @property
    def of_components(self):
        """The weights of the components alone: these themselves, unless there is a background."""
        return self

    def with_concentration(self, concentration):
        """The same prior with another concentration, alpha_0 or gamma."""
        return replace(self, prior_concentration=concentration)

    def variance_of_log(self, counts, combination):
        """Variance of a linear combination, (K,), of log pi: a float."""
        return combination @ self.covariance_of_log(counts) @ combination

    def expected_log(self, counts):
        """E log pi, (..., K)."""
        return self.expected_log_at(self.concentration(counts))

    def expected_log_shares(self, counts):
        """E log pi of weights that are scaled to sum to one, (K,)."""
        return self.expected_log_shares_at(self.concentration(counts))

    def expected_log_shares_at(self, concentration):
        """The same at a posterior concentration: of weights that sum to one in any case, E log pi."""
        return self.expected_log_at(concentration)

    def log_shares_jacobian(self, counts):
        """d `expected_log_shares` / d counts, which is Cov(log shares, log pi): (K, K)."""
        return self.covariance_of_log(counts)

    def log_shares_sensitivity(self, counts):
        """d `expected_log_shares` / d concentration of the prior, (K,)."""
        return self.expected_log_sensitivity(counts)

    def logit_variance(self, counts):
        """Var log(v/(1 - v)), a number for every break; the trigamma function is zeta(2, x)."""
        stick, rest = self.sticks(counts)
        return zeta(2.0, stick) + zeta(2.0, rest)

    def logit_covariance_with_log(self, counts):
        """Cov(log(v/(1 - v)), log pi), (number of breaks, K)."""
        stick, rest = self.sticks(counts)
        first, later = np.eye(len(stick), len(counts)), np.tri(len(counts), len(stick), k=-1).T
        return first * zeta(2.0, stick)[:, None] - later * zeta(2.0, rest)[:, None]

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
        n_breaks = len(self.sticks(np.zeros(self.n_components))[0])
        after = log_left if n_breaks == self.n_components else np.full(len(log_weights), -np.inf)
        # log of 1 - sum_{j<k} pi_j, from the last to the first, and what is left before them.
        reversed_weights = np.column_stack([after, log_weights[:, ::-1]])
        tails = np.logaddexp.accumulate(reversed_weights, axis=1)[:, ::-1]
        return (
            (log_weights - tails[:, :-1])[:, :n_breaks],
            np.diff(tails, axis=1)[:, :n_breaks],
        )


@dataclass
class DirichletWeights(BrokenStick):
    """pi ~ Dirichlet(alpha_0, ..., alpha_0); alpha_0 = 0 is the flat prior on log pi."""

    prior_concentration: float
    n_components: int

    def __post_init__(self):
        self._of_prior = np.full(self.n_components, float(self.prior_concentration))
        self._prior_log_partition = dirichlet.prior_log_partition(self._of_prior)

    def concentration(self, counts):
        """Posterior concentration alpha, (K,)."""
        return self.prior_concentration + counts

    def sticks(self, counts):
        """The two beta parameters of every break: (..., K) -> a pair of (..., K - 1)."""
        concentration = self.concentration(counts)
        after = np.cumsum(concentration[..., ::-1], axis=-1)[..., ::-1]
        return concentration[..., :-1], after[..., 1:]

    def expected_log_at(self, concentration):
        """E log pi at a posterior concentration, (..., K)."""
        return dirichlet.expected_log(concentration)

    def covariance_of_log(self, counts):
        """V_pi = Cov(log pi) = d E log pi / d counts, (K, K)."""
        return dirichlet.covariance_of_log(self.concentration(counts))

    def mean(self, counts):
        """E pi, (K,)."""
        concentration = self.concentration(counts)
        return concentration / concentration.sum()

    def mean_jacobian(self, counts):
        """d E pi / d counts, (K, K)."""
        total = self.concentration(counts).sum()
        return (np.eye(self.n_components) - self.mean(counts)[:, None]) / total

    def expected_log_sensitivity(self, counts):
        """d E log pi / d alpha_0, (K,)."""
        return self.covariance_of_log(counts).sum(axis=1)

    def mean_sensitivity(self, counts):
        """d E pi / d alpha_0, (K,)."""
        return self.mean_jacobian(counts).sum(axis=1)

    def log_evidence(self, counts):
        """log of the integral of p(pi) prod_k pi_k^N_k: (..., K) -> (...)."""
        return dirichlet.log_partition(self.concentration(counts)) - self._prior_log_partition

    def best_order(self, counts):
        """The components in their present order, because the evidence is the same in all: (..., K) of int."""
        return np.broadcast_to(np.arange(self.n_components), np.shape(counts))

    def expectations(self, counts):
        """E log pi (K,), and KL(q(pi) || p(pi)); a flat prior's density counts as 1."""
        concentration = self.concentration(counts)
        expected_log = dirichlet.expected_log(concentration)
        return expected_log, dirichlet.kl_divergence(
            concentration, expected_log, self._of_prior, self._prior_log_partition
        )


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
        # Ones at j < k in row k, so that log pi = log v + earlier @ log(1 - v): (K, K).
        self._earlier = np.tri(self.n_components, k=-1)
        self._of_prior = np.array([1.0, self.prior_concentration])  # of a stick
        self._prior_log_partition = dirichlet.prior_log_partition(self._of_prior)

    def concentration(self, counts):
        """The two beta parameters of every stick, a pair of (K,)."""
        return 1.0 + counts, self.prior_concentration + counts @ self._earlier

    def sticks(self, counts):
        """The two beta parameters of every break: (..., K) -> a pair of (..., K)."""
        return self.concentration(counts)

    def expected_log_at(self, concentration):
        """E log pi at the two beta parameters of every stick, a pair of (..., K)."""
        log_sticks = dirichlet.expected_log(np.stack(concentration, axis=-1))
        return self.log_weights(log_sticks[..., 0], log_sticks[..., 1])

    def expected_log_shares_at(self, concentration):
        log_total, _, _ = self._log_total(*concentration)
        return self.expected_log_at(concentration) - log_total

    def log_shares_jacobian(self, counts):
        _, of_stick, of_rest = self._log_total(*self.concentration(counts))
        return self.covariance_of_log(counts) - (of_stick + self._earlier @ of_rest)

    def log_shares_sensitivity(self, counts):
        _, _, of_rest = self._log_total(*self.concentration(counts))
        return self.expected_log_sensitivity(counts) - of_rest.sum()

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
        of_taken, of_left = dirichlet.covariance_of_log(np.array([taken, left]))[0]
        slopes = []
        for mean, following, spreads in (
            (-1.0 / total, -1.0 / (total + 1.0), 1.0 / (total * (total + 1.0))),
            (
                stick / (rest * total),
                stick / ((rest + 1.0) * (total + 1.0)),
                -stick * (rest + total + 1.0) / (rest * total * (rest + 1.0) * (total + 1.0)),
            ),
        ):
            change = -(np.exp(log_next) * following + left * np.exp(log_spread) * spreads) / spread
            change_of_taken = change * np.expm1(-log_mean) - left * np.exp(-log_mean) * mean
            slopes.append(of_taken * change_of_taken + of_left * change)
        return value, *slopes

    def covariance_of_log(self, counts):
        """V_pi = Cov(log pi) = d E log pi / d counts, (K, K)."""
        stick, rest = self.concentration(counts)
        own, of_rest, of_both = zeta(2.0, np.array([stick, rest, stick + rest]))  # trigamma functions
        cross = self._earlier * of_both
        covariance = (self._earlier * of_rest - cross) @ self._earlier.T - cross - cross.T
        covariance.flat[:: len(own) + 1] += own - of_both
        return covariance

    def variance_of_log(self, counts, combination):
        # It is one of log v, log(1 - v) and of the sum that both share.
        stick, rest = self.concentration(counts)
        later = combination @ self._earlier
        squares = np.square(np.array([combination, later, combination + later]))
        own, of_rest, of_both = squares * zeta(2.0, np.array([stick, rest, stick + rest]))
        return (own + of_rest - of_both).sum()

    def mean(self, counts):
        """E pi, scaled to sum to one as scikit-learn does, (K,)."""
        stick, rest = self.concentration(counts)
        total = stick + rest
        mean = stick / total * np.concatenate([[1.0], np.cumprod((rest / total)[:-1])])
        return mean / mean.sum()

    def mean_jacobian(self, counts):
        """d mean / d counts, (K, K)."""
        stick, rest = self.concentration(counts)
        earlier, total = self._earlier, stick + rest
        total_change = (np.eye(self.n_components) + earlier.T) / total[:, None]
        stick_change = np.diag(1.0 / stick) - total_change
        rest_change = earlier.T / rest[:, None] - total_change
        log_change = stick_change + earlier @ rest_change
        mean = self.mean(counts)
        return mean[:, None] * (log_change - mean @ log_change)

    def expected_log_sensitivity(self, counts):
        """d E log pi / d gamma, (K,)."""
        sticks = np.stack(self.concentration(counts), axis=-1)
        log_stick, log_rest = dirichlet.covariance_of_log(sticks)[..., 1].T
        return log_stick + self._earlier @ log_rest

    def mean_sensitivity(self, counts):
        """d mean / d gamma, (K,)."""
        stick, rest = self.concentration(counts)
        total = stick + rest
        log_change = self._earlier @ (stick / rest / total) - 1.0 / total
        mean = self.mean(counts)
        return mean * (log_change - mean @ log_change)

    def log_evidence(self, counts):
        """log of the integral of p(v) prod_k pi_k^N_k: (..., K) -> (...)."""
        sticks = np.stack(self.concentration(counts), axis=-1)
        return (dirichlet.log_partition(sticks) - self._prior_log_partition).sum(axis=-1)

    def best_order(self, counts):
        """Components in the order of falling counts, which has the largest `log_evidence`: (..., K) of int.

        Exchanging two neighbours changes it by log(gamma + R + N_later) - log(gamma + R + N_earlier), where R
        is the sum of the counts behind both: a gain exactly where the later count is the larger one.
        """
        return np.argsort(-np.asarray(counts), axis=-1, kind="stable")

    def expectations(self, counts):
        """E log pi (K,), and the sum over sticks of KL(q(v_k) || p(v_k))."""
        sticks = np.array(self.concentration(counts)).T
        log_sticks = dirichlet.expected_log(sticks)
        divergences = dirichlet.kl_divergence(sticks, log_sticks, self._of_prior, self._prior_log_partition)
        return log_sticks[:, 0] + self._earlier @ log_sticks[:, 1], divergences.sum()


class WeightsWithBackground(BrokenStick):
    """The weights of the components, and the one of the background, pi_0, which comes last.

    pi_0 ~ Beta(alpha_0, K alpha_0), and the components share the rest as without background. So a Dirichlet
    prior remains one, over K + 1 labels; and the background takes no part in the order of the sticks.

    Parameters
    ----------
    of_components : DirichletWeights or StickBreakingWeights
    """

    of_components = None

    def __init__(self, of_components):
        self.of_components, self.n_components = of_components, of_components.n_components
        self.prior_concentration = of_components.prior_concentration
        self._of_prior = self.prior_concentration * np.array([1.0, self.n_components])
        self._prior_log_partition = dirichlet.prior_log_partition(self._of_prior)

    def with_concentration(self, concentration):
        return type(self)(self.of_components.with_concentration(concentration))

    def of_background(self, counts):
        """The two beta parameters of pi_0, given the counts of all labels: (..., K + 1) -> (..., 2)."""
        others = counts[..., : self.n_components].sum(axis=-1)
        return self._of_prior + np.stack([counts[..., -1], others], axis=-1)

    def _with_background(self, of_components, of_background):
        """Logs of all weights, from those given pi_0 (..., K), and log pi_0 and log(1 - pi_0), (..., 2)."""
        return np.concatenate([of_components + of_background[..., 1:], of_background[..., :1]], axis=-1)

    def concentration(self, counts):
        """That of the components' weights, given pi_0."""
        return self.of_components.concentration(counts[..., : self.n_components])

    def sticks(self, counts):
        """The two beta parameters of every break, that of the background first."""
        own = self.of_background(counts)
        breaks = zip(np.split(own, 2, axis=-1), self.of_components.sticks(counts[..., :-1]), strict=True)
        return tuple(np.concatenate(parts, axis=-1) for parts in breaks)

    def logit_covariance_with_log(self, counts):
        own = dirichlet.covariance_of_log(self.of_background(counts))
        first = self._with_background(np.zeros(self.n_components), own[0] - own[1])
        others = self.of_components.logit_covariance_with_log(counts[:-1])
        return np.vstack([first, np.pad(others, ((0, 0), (0, 1)))])

    def log_weights(self, log_stick, log_rest):
        of_components = self.of_components.log_weights(log_stick[..., 1:], log_rest[..., 1:])
        return self._with_background(of_components, _first_break(log_stick, log_rest))

    def log_shares(self, log_stick, log_rest):
        of_components = self.of_components.log_shares(log_stick[..., 1:], log_rest[..., 1:])
        return self._with_background(of_components, _first_break(log_stick, log_rest))

    def log_sticks(self, log_weights, log_left):
        of_components, own = np.split(log_weights, [self.n_components], axis=1)
        is_all = isinstance(self.of_components, DirichletWeights)
        left = np.full(len(log_weights), -np.inf) if is_all else log_left
        rest = np.logaddexp.reduce(np.column_stack([of_components, left]), axis=1)[:, None]
        sticks = self.of_components.log_sticks(of_components - rest, left - rest[:, 0])
        return tuple(np.hstack(pair) for pair in zip((own, rest), sticks, strict=True))

    def expected_log_at(self, concentration, of_background):
        """E log pi at given parameters of the components' weights, and of pi_0, (2,): (K + 1,)."""
        of_components = self.of_components.expected_log_at(concentration)
        return self._with_background(of_components, dirichlet.expected_log(of_background))

    def expected_log(self, counts):
        return self.expected_log_at(self.concentration(counts), self.of_background(counts))

    def expected_log_shares_at(self, concentration, of_background):
        of_components = self.of_components.expected_log_shares_at(concentration)
        return self._with_background(of_components, dirichlet.expected_log(of_background))

    def expected_log_shares(self, counts):
        return self.expected_log_shares_at(self.concentration(counts), self.of_background(counts))

    def log_shares_jacobian(self, counts):
        return self._covariance_with(counts, self.of_components.log_shares_jacobian(counts[:-1]))

    def log_shares_sensitivity(self, counts):
        own = self._sensitivity_of_background(counts)
        return self._with_background(self.of_components.log_shares_sensitivity(counts[:-1]), own)

    def covariance_of_log(self, counts):
        """V_pi = Cov(log pi) = d E log pi / d counts, (K + 1, K + 1)."""
        return self._covariance_with(counts, self.of_components.covariance_of_log(counts[:-1]))

    def _covariance_with(self, counts, of_components):
        which = np.append(np.ones(self.n_components, dtype=np.intp), 0)
        covariance = dirichlet.covariance_of_log(self.of_background(counts))[np.ix_(which, which)]
        covariance[:-1, :-1] += of_components
        return covariance

    def mean(self, counts):
        """E pi, (K + 1,)."""
        own = self.of_background(counts)
        of_components = own[1] / own.sum() * self.of_components.mean(counts[:-1])
        return np.append(of_components, own[0] / own.sum())

    def mean_jacobian(self, counts):
        """d E pi / d counts, (K + 1, K + 1)."""
        own, of_components = self.of_background(counts), self.of_components
        share = own[0] / own.sum()
        of_share = np.append(np.full(self.n_components, -share), 1.0 - share) / own.sum()
        jacobian = -np.outer(np.append(of_components.mean(counts[:-1]), -1.0), of_share)
        jacobian[:-1, :-1] += (1.0 - share) * of_components.mean_jacobian(counts[:-1])
        return jacobian

    def expected_log_sensitivity(self, counts):
        """d E log pi / d alpha_0, of all priors that depend on it: (K + 1,)."""
        own = self._sensitivity_of_background(counts)
        return self._with_background(self.of_components.expected_log_sensitivity(counts[:-1]), own)

    def _sensitivity_of_background(self, counts):
        """d E log pi_0 and d E log(1 - pi_0) / d alpha_0, (2,)."""
        return dirichlet.covariance_of_log(self.of_background(counts)) @ [1.0, self.n_components]

    def mean_sensitivity(self, counts):
        """d E pi / d alpha_0, of all priors that depend on it: (K + 1,)."""
        own = self.of_background(counts)
        share = own[0] / own.sum()
        of_share = (1.0 - (1.0 + self.n_components) * share) / own.sum()
        sensitivity = -of_share * np.append(self.of_components.mean(counts[:-1]), -1.0)
        sensitivity[:-1] += (1.0 - share) * self.of_components.mean_sensitivity(counts[:-1])
        return sensitivity

    def log_evidence(self, counts):
        own = dirichlet.log_partition(self.of_background(counts)) - self._prior_log_partition
        return own + self.of_components.log_evidence(counts[..., : self.n_components])

    def best_order(self, counts):
        """The best order of the components, with the background in the end: (..., K + 1) of int."""
        order = self.of_components.best_order(counts[..., : self.n_components])
        return np.concatenate([order, np.full((*order.shape[:-1], 1), self.n_components)], axis=-1)

    def expectations(self, counts):
        own = self.of_background(counts)
        expected_log = dirichlet.expected_log(own)
        divergence = dirichlet.kl_divergence(own, expected_log, self._of_prior, self._prior_log_partition)
        of_components, other = self.of_components.expectations(counts[:-1])
        return self._with_background(of_components, expected_log), divergence + other


def _first_break(log_stick, log_rest):
    """log v and log(1 - v) of the first break: (..., B) twice -> (..., 2)."""
    return np.stack([log_stick[..., 0], log_rest[..., 0]], axis=-1)


WEIGHT_PRIORS = {
    "dirichlet_distribution": DirichletWeights,
    "dirichlet_process": StickBreakingWeights,
}
