"""Draws of the parameters of latent classes whose means and covariances are those of linear response.

All parameters of q are functions of scalars that are independent under q: logits of beta variables (the
sticks of the weights and of the probabilities of categories), logarithms of gamma variables (rates and
precisions), and normal variables (means given the precisions). By linear response the scalars g have the
covariance

    Sigma = J_S R^-1 M^-1 R^-1 J_S' + excess,        excess = Cov_q(g) - J_S R^-1 J_S',        J_S = d E_q g /
    d S.

Draws are a Gaussian copula: normal variables with this covariance, each of which becomes the quantile of the
family that its scalar has under q, with parameters that give it its variance in Sigma.

*Conventions.* n draws; a draw has Q scalars: K - 1 of the weights first, then family by family those of every
class and column.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag
from scipy.special import betaln, expit, gammaln, polygamma

from sklearn_lrvb.distributions.special_functions import (
    beta_size,
    gamma_quantile,
    log_beta_quantile_pair,
    normal_of_gamma,
    normal_of_log_beta,
)
from sklearn_lrvb.families.scalars import (
    along_sticks,
    drawn_logits,
    log_logit_density,
    log_probabilities,
    stick_logits,
    stick_slopes,
    sticks,
)
from sklearn_lrvb.family_mixture.prior import WEIGHT_CONCENTRATION
from sklearn_lrvb.family_mixture.targets import changes_of
from sklearn_lrvb.sampling.copula import CopulaDensity
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.symmetric_matrices import gram_root

_LOG_2_PI = np.log(2.0 * np.pi)
_LEAST_DEVIATION = 1e-8  # Of a scalar; posteriors have larger ones.
_NEWTON_STEPS = 30


@dataclass(frozen=True)
class ClassDraws(DrawArrays):
    """Draws of all scalars, (n, Q)."""

    scalars: np.ndarray


class Scalars:
    """The scalars of a posterior: where they are, and how they depend on sums and statistics.

    Parameters
    ----------
    posterior : ClassPosterior

    Attributes
    ----------
    size : int, Q
    """

    def __init__(self, posterior):
        self.posterior = posterior
        self._shapes = [
            (posterior.n_components, family.n_columns, len(family.scalar_kinds))
            for family in posterior.prior.families
        ]
        stops = posterior.n_components - 1 + np.cumsum([0, *map(np.prod, self._shapes)])
        self._places = list(map(slice, stops[:-1], stops[1:]))
        self.size = int(stops[-1])

    def split(self, scalars):
        """Those of the weights, (..., K - 1), and of every family, list of (..., K, c, s): from (..., Q)."""
        parts = [
            scalars[..., place].reshape(*scalars.shape[:-1], *shape)
            for place, shape in zip(self._places, self._shapes, strict=True)
        ]
        return scalars[..., : self.posterior.n_components - 1], parts

    def joined(self, of_weights, parts):
        """Inverse of `split`."""
        n_axes = of_weights.ndim - 1
        flat = [part.reshape(*part.shape[:n_axes], -1) for part in parts]
        return np.concatenate([of_weights, *flat], axis=-1)

    def by_family(self):
        """Triples of a family, its sums and its slice of the features."""
        prior = self.posterior.prior
        return zip(prior.families, self.posterior.parts, prior.places, strict=True)

    @cached_property
    def kinds(self):
        """What each is: "logit", "log_gamma" or "normal", (Q,) of str."""
        parts = [
            np.tile(family.scalar_kinds, part.shape[0] * part.shape[1])
            for family, part, _ in self.by_family()
        ]
        return np.concatenate([np.repeat("logit", self.posterior.n_components - 1), *parts])

    @cached_property
    def parameters(self):
        """Parameters under q, (Q, 2)."""
        of_weights = np.stack(self.posterior.prior.weights.sticks(self.posterior.counts), axis=-1)
        parts = [family.scalar_parameters(part).reshape(-1, 2) for family, part, _ in self.by_family()]
        return np.concatenate([of_weights, *parts])

    @cached_property
    def _over_roots(self):
        """J_S Q^-T and J_S R^-1 with R = Q Q': of the weights (K - 1, K), and by family (K, c, s, b)."""
        posterior = self.posterior
        jacobians = [posterior.prior.weights.logit_covariance_with_log(posterior.counts)]
        jacobians += [family.scalar_jacobian(part) for family, part, _ in self.by_family()]
        _, (root,) = posterior.complete_information.blocks[0]
        roots = [root, *(family.covariance_root(part) for family, part, _ in self.by_family())]
        found = []
        for jacobian, root in zip(jacobians, roots, strict=True):
            half = np.linalg.solve(root, jacobian.swapaxes(-1, -2))
            whole = np.linalg.solve(root.swapaxes(-1, -2), half)
            found.append((half.swapaxes(-1, -2), whole.swapaxes(-1, -2)))
        return found

    def responses(self, coefficients):
        """J_S R^-1 beta of some beta: (D, m) -> (Q, m)."""
        posterior = self.posterior
        (_, of_weights), *others = self._over_roots
        parts = [of_weights @ coefficients[: posterior.n_components]]
        for (family, _, place), (_, whole) in zip(self.by_family(), others, strict=True):
            own = coefficients[posterior.coordinates(place, family)]  # (K, c, b, m)
            parts.append((whole @ own).reshape(-1, coefficients.shape[1]))
        return np.concatenate(parts)

    @cached_property
    def excess_root(self):
        """Block diagonal Y with Y Y' = Cov_q(g) - J_S R^-1 J_S': (Q, Q)."""
        variances = [_variances(self.kinds, self.parameters)]
        of_weights, parts = self.split(variances[0])
        blocks = [_root_of_excess(of_weights, self._over_roots[0][0])]
        for variance, (half, _) in zip(parts, self._over_roots[1:], strict=True):
            found = _root_of_excess(variance, half)
            blocks += [block for of_class in found for block in of_class]
        # Without blocks, as of one class of constant columns, block_diag would have a row.
        return block_diag(np.zeros((0, 0)), *blocks)

    # Functions of drawn scalars.

    def statistics(self, scalars):
        """T, (n, Q) -> (n, K, W)."""
        of_weights, parts = self.split(scalars)
        own = [
            family.statistics_of(part, sums)
            for part, (family, sums, _) in zip(parts, self.by_family(), strict=True)
        ]
        return self.posterior.prior.joined(log_probabilities(of_weights), own)

    def pulled_back(self, scalars, slopes):
        """Slopes in T, (n, K, W), as slopes in the scalars, (n, Q)."""
        of_weights, parts = self.split(scalars)
        of_statistics = self.posterior.prior.split(slopes)
        own = [
            family.pulled_back(part, sums, slope)
            for part, slope, (family, sums, _) in zip(parts, of_statistics, self.by_family(), strict=True)
        ]
        return self.joined(stick_slopes(of_weights, slopes[..., 0]), own)

    def log_prior(self, scalars):
        """Log prior density, (n,), and its slopes, (n, Q)."""
        of_weights, parts = self.split(scalars)
        weights = self.posterior.prior.weights
        prior = sticks(weights.concentration(np.zeros(self.posterior.n_components)))
        log_density, of_weights = log_logit_density(of_weights, prior)
        slopes = []
        for part, (family, sums, _) in zip(parts, self.by_family(), strict=True):
            own, slope = family.log_prior(part, sums)
            log_density = log_density + own
            slopes.append(slope)
        return log_density, self.joined(of_weights, slopes)

    def prior_score(self, scalars, name):
        """Derivative of the log prior density in a number of the prior, by its name: (n,)."""
        of_weights, parts = self.split(scalars)
        score, weights = np.zeros(len(scalars)), self.posterior.prior.weights
        if name == WEIGHT_CONCENTRATION:
            expected, _ = weights.expectations(np.zeros(self.posterior.n_components))
            score = (log_probabilities(of_weights) - expected).sum(axis=1)
        for part, (family, sums, _) in zip(parts, self.by_family(), strict=True):
            if name in family.hyperparameters:
                score = score + family.prior_score(part, sums, name)
        return score

    def given(self, sums, generator):
        """Scalars drawn given sums over the rows, (n, K, W): (n, Q)."""
        prior = self.posterior.prior
        of_weights = np.stack(prior.weights.sticks(sums[..., 0]), axis=-1)
        of_weights = drawn_logits(of_weights, generator)
        parts = [
            family.scalars_given(part, own, generator)
            for part, (family, own, _) in zip(prior.split(sums), self.by_family(), strict=True)
        ]
        return self.joined(of_weights, parts)

    def values(self, scalars):
        """What is reported of the columns, by family: list of (n, K, c, q)."""
        parts = self.split(scalars)[1]
        triples = zip(parts, self.by_family(), strict=True)
        return [family.values_of(part, sums) for part, (family, sums, _) in triples]

    def reordered(self, scalars, orders):
        """Scalars whose class k is class ``orders[:, k]`` of given ones, int array (n, K)."""
        of_weights, parts = self.split(scalars)
        log_weights = np.take_along_axis(log_probabilities(of_weights), orders, axis=1)
        triples = zip(parts, self.by_family(), strict=True)
        own = [family.reordered(part, orders, sums) for part, (family, sums, _) in triples]
        return self.joined(stick_logits(log_weights), own)

    def first_order(self, changes):
        """Changes of log weights, (n, K), and of what is reported, by family, by small ones of scalars."""
        of_weights, parts = self.split(changes)
        share = self.parameters[: of_weights.shape[1]]
        share = share[:, 0] / share.sum(axis=1)
        of_weights = along_sticks(of_weights * (1.0 - share), -of_weights * share)
        triples = zip(parts, self.by_family(), strict=True)
        return of_weights, [family.first_order(part, sums) for part, (family, sums, _) in triples]


def _variances(kinds, parameters):
    """Variances of scalars under q, (Q,)."""
    first, second = parameters.T
    with np.errstate(divide="ignore"):
        of_logits = polygamma(1, first) + polygamma(1, np.where(second > 0, second, 1.0))
    return np.select([kinds == "logit", kinds == "log_gamma"], [of_logits, polygamma(1, first)], first)


def _root_of_excess(variances, half):
    """Y with Y Y' = diag(variances) - half half': (..., s), (..., s, b) -> (..., s, s)."""
    excess = variances[..., None] * np.eye(variances.shape[-1]) - half @ half.swapaxes(-1, -2)
    return gram_root(excess).swapaxes(-1, -2)


class ClassCopula:
    """The distribution of the parameters that linear response describes.

    Parameters
    ----------
    targets : Targets
    information : ObservedInformation, positive definite
    with_excess : bool, default=True
        Whether scalars have their excess: not those of estimates.
    """

    def __init__(self, targets, information, with_excess=True):
        self.targets, self.scalars = targets, Scalars(targets.posterior)
        self._information, self._with_excess = information, with_excess
        self._n_coefficients = targets.posterior.n_coefficients
        self.n_normals = self._n_coefficients + self.scalars.size

    @cached_property
    def excess_root(self):
        """(Q, Q)"""
        return self.scalars.excess_root * self._with_excess

    @cached_property
    def deviations(self):
        """Standard deviations of the scalars by linear response, (Q,)."""
        root = self.scalars.responses(self._information.covariance_root(np.arange(self._n_coefficients)).T)
        squares = np.square(root).sum(axis=1) + np.square(self.excess_root).sum(axis=1)
        return np.maximum(np.sqrt(squares), _LEAST_DEVIATION)

    @cached_property
    def marginals(self):
        """`Marginals` of the scalars."""
        return Marginals(self.scalars.kinds, self.scalars.parameters, self.deviations)

    def responses(self, normals):
        """Responses of standard normal variables: (n, n_normals) -> (n, Q)."""
        for_coefficients, for_excess = np.split(normals, [self._n_coefficients], axis=1)
        coefficients = self._information.correlated(for_coefficients.T)
        return self.scalars.responses(coefficients).T + for_excess @ self.excess_root.T

    def draws(self, responses):
        """The draws of some responses, (n, Q): ClassDraws."""
        return ClassDraws(self.marginals.quantiles(responses))

    def draws_of_estimates(self, responses):
        """Draws of estimates, which vary as those of parameters: ClassDraws."""
        return self.draws(responses)

    def responses_of(self, draws):
        """Inverse of `draws`: (n, Q)."""
        return self.marginals.inverse(draws.scalars)


class Marginals:
    """The families of the scalars, with the standard deviations of linear response.

    Parameters
    ----------
    kinds : (Q,)
    parameters : (Q, 2), under q
    deviations : (Q,)
    """

    def __init__(self, kinds, parameters, deviations):
        self._deviations = deviations
        self._logits, self._gammas = np.flatnonzero(kinds == "logit"), np.flatnonzero(kinds == "log_gamma")
        a, b = parameters[self._logits].T
        size = beta_size(a, b, np.square(deviations[self._logits]))
        self._beta = size * a, size * b
        shape, rate = parameters[self._gammas].T
        own = _shape_of_log_variance(np.square(deviations[self._gammas]))
        self._gamma_mean, self._gamma_shape = shape / rate, own

    def quantiles(self, responses):
        """Scalars of normal responses, (n, Q)."""
        scalars, z = responses.copy(), responses / self._deviations
        log_stick, log_rest = log_beta_quantile_pair(z[:, self._logits], *self._beta)
        scalars[:, self._logits] = log_stick - log_rest
        deviation = self._gamma_mean / np.sqrt(self._gamma_shape)
        scalars[:, self._gammas] = np.log(gamma_quantile(z[:, self._gammas], self._gamma_mean, deviation))
        return scalars

    def inverse(self, scalars):
        """Normal responses of scalars, (n, Q)."""
        responses = scalars.copy()
        logits = scalars[:, self._logits]
        z = normal_of_log_beta(-np.logaddexp(0.0, -logits), -np.logaddexp(0.0, logits), *self._beta)
        responses[:, self._logits] = z * self._deviations[self._logits]
        deviation = self._gamma_mean / np.sqrt(self._gamma_shape)
        z = normal_of_gamma(np.exp(scalars[:, self._gammas]), self._gamma_mean, deviation)
        responses[:, self._gammas] = z * self._deviations[self._gammas]
        return responses

    def log_derivatives(self, responses, scalars):
        """log of d scalar / d response (n, Q), and the slopes of the scalars' log densities, (n, Q)."""
        logs, slopes = np.zeros_like(responses), np.zeros_like(responses)
        normal = -0.5 * (np.square(responses / self._deviations) + _LOG_2_PI) - np.log(self._deviations)
        (a, b), logits = self._beta, scalars[:, self._logits]
        density = -a * np.logaddexp(0.0, -logits) - b * np.logaddexp(0.0, logits) - betaln(a, b)
        logs[:, self._logits] = normal[:, self._logits] - density
        slopes[:, self._logits] = a * expit(-logits) - b * expit(logits)
        shape, rate = self._gamma_shape, self._gamma_shape / self._gamma_mean
        own = scalars[:, self._gammas]
        density = shape * (np.log(rate) + own) - rate * np.exp(own) - gammaln(shape)
        logs[:, self._gammas] = normal[:, self._gammas] - density
        slopes[:, self._gammas] = shape - rate * np.exp(own)
        return logs, slopes

    def slopes(self, responses, scalars, slopes):
        """Slopes in the responses of a function less the log density of the scalars, apart from the normal's.

        Parameters
        ----------
        responses, scalars : (n, Q)
        slopes : (n, Q), of the function in the scalars
        """
        logs, own = self.log_derivatives(responses, scalars)
        found = slopes.copy()
        for place in (self._logits, self._gammas):
            found[:, place] = (slopes[:, place] - own[:, place]) * np.exp(logs[:, place])
            found[:, place] -= responses[:, place] / np.square(self._deviations[place])
        return found


def _shape_of_log_variance(variance):
    """Shape of gamma variables whose logarithms have a given variance, by Newton's method: (m,) -> (m,)."""
    log_shape = -np.log(variance) + np.log1p(0.5 * variance)
    for _ in range(_NEWTON_STEPS):
        shape = np.exp(log_shape)
        own = polygamma(1, shape)
        log_shape -= np.log(own / variance) * own / (shape * polygamma(2, shape))
    return np.exp(log_shape)


class ClassCopulaDensity(CopulaDensity):
    """Density of the draws of a `ClassCopula`.

    Parameters
    ----------
    copula : ClassCopula
    posterior : ClassPosterior
    root_of_coefficients : (D, D), `ObservedInformation.root`

    Attributes
    ----------
    root : (Q, Q), lower triangular, with Root Root' = Sigma
    """

    def __init__(self, copula, posterior, root_of_coefficients):
        rows = np.hstack([copula.scalars.responses(root_of_coefficients), copula.excess_root])
        root = np.linalg.qr(rows.T, mode="r").T
        super().__init__(copula, np.where(np.diag(root) < 0.0, -root, root), is_lower=True)

    def _log_derivatives(self, responses, draws):
        return self._copula.marginals.log_derivatives(responses, draws.scalars)[0].sum(axis=1)

    def _slopes(self, responses, draws, slopes):
        return self._copula.marginals.slopes(responses, draws.scalars, slopes.scalars)

    def _changes(self, name, responses):
        of_weights, parts = self._copula.scalars.first_order(responses)
        return changes_of(self._copula.targets[name], of_weights, parts)
