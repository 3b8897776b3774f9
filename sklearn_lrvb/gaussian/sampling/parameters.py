"""The parameters that draws stand for: their values, joint density, and what Gibbs sampling makes of them."""

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.answers.targets import NoCovarianceError
from sklearn_lrvb.gaussian.answers.targets import TARGETS, FunctionOfCovariances
from sklearn_lrvb.gaussian.posterior.tails import log_prior_of, log_rise
from sklearn_lrvb.gaussian.sampling.copula import ParameterDraws
from sklearn_lrvb.gaussian.sampling.likelihood import (
    GaussianLikelihood,
    complete_moments,
    log_derivative_of_precisions,
)
from sklearn_lrvb.gaussian.sampling.sticks import drawn_sticks, log_prior_of_sticks, slopes_of_sticks
from sklearn_lrvb.sampling.draws import DrawnParameters
from sklearn_lrvb.sampling.likelihood import (
    log_likelihood,
    log_likelihood_and_moments,
    moments_of_random_assignments,
)

_LOG_2_PI = math.log(2.0 * math.pi)
_STEP = 1e-5  # Of the logarithm of a hyperparameter, for a difference quotient.

# Standard deviations of proposed steps of log nu. Every proposal has one between them, at random: the
# posterior's is one of a few hundredths with many rows of heavy tails, and near one with few or normal rows.
_LEAST_STEP, _LARGEST_STEP = 0.05, 1.0


class GaussianParameters(DrawnParameters):
    """The parameters that draws stand for.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose frames the draws are
    origin : (P,), from where the posterior's positions are measured
    draws : ParameterDraws
    """

    def __init__(self, posterior, origin, draws):
        super().__init__(posterior, origin, draws)
        self._structure = posterior.structure

    @staticmethod
    def draws_at(posterior, other):
        structure, weights = posterior.structure, posterior.prior.weights
        log_weights = np.log(weights.mean(other.label_counts))[None]
        # What no component of a broken stick has is part of the last one's weight.
        log_stick, log_rest = weights.log_sticks(log_weights, np.full(1, -np.inf))
        roots = structure.composed(other.whiteners, posterior.covariance_cholesky)
        factors = structure.transposed(roots)
        shifts = structure.transformed(posterior.whiteners, other.centred_means - posterior.centred_means)
        scaled_means = structure.transformed(roots, shifts)
        log_tails = np.zeros((1, 0)) if other.tails is None else np.log(other.tails.fitted)[None]
        return ParameterDraws(log_stick, log_rest, factors[None], scaled_means[None], log_tails)

    @cached_property
    def _inverse_factors(self):
        factors = self._structure.transposed(self.draws.factors)
        return self._structure.whiteners(factors.reshape(-1, *factors.shape[2:])).reshape(factors.shape)

    @property
    def means(self):
        """mu = m + W^-1 L^-T u, (n, K, P)."""
        structure, posterior = self._structure, self.posterior
        in_frames = structure.transformed(self._inverse_factors, self.draws.scaled_means)
        return (
            self.origin
            + posterior.centred_means
            + structure.transformed(posterior.covariance_cholesky, in_frames)
        )

    @property
    def precisions(self):
        """Lambda = W' T W, in the shape of the attribute."""
        structure = self._structure
        return self._squared(
            structure.composed(structure.transposed(self.posterior.whiteners), self.draws.factors)
        )

    @property
    def scales(self):
        """Lambda^-1, in the shape of the attribute."""
        structure = self._structure
        return self._squared(structure.composed(self.posterior.covariance_cholesky, self._inverse_factors))

    @property
    def covariances(self):
        """The same, times nu/(nu - 2) where nu is finite; infinite where it is at most two."""
        scales, structure = self.scales, self._structure
        if self.posterior.tails is None:
            return scales
        nu = self.degrees_of_freedom[:, : structure.n_groups]
        factors = np.divide(nu, nu - 2.0, out=np.full(nu.shape, np.inf), where=nu > 2.0)
        return structure.reported(factors[structure.statistic_axes] * structure.by_group(scales))

    @property
    def degrees_of_freedom(self):
        """nu of all components, where they have Student's t distribution: (n, K)."""
        return self.posterior.tails.by_component(np.exp(self.draws.log_tails))

    @property
    def log_tails(self):
        """log nu, in the shape of the attribute."""
        log_tails = self.draws.log_tails
        return log_tails if self._structure.tails_shape else log_tails[:, 0]

    @property
    def tails(self):
        """nu, in the shape of the attribute."""
        return np.exp(self.log_tails)

    def _squared(self, factors):
        """The matrices L L' of factors L, exactly symmetric: (n, S, ...) -> (n, *shape of the attribute)."""
        structure = self._structure
        squares = structure.gram(factors)
        return structure.reported(structure.from_unique_entries(structure.unique_entries(squares)))

    def reported(self):
        """Draws in the shapes of the estimator's attributes, by target: dict of ndarray.

        Covariances are left out where known degrees of freedom are at most two, so that none is finite.
        """
        structure, names = self._structure, ["weights", "means", "precisions"]
        tails = self.posterior.tails
        if tails is None or tails.n_fitted or tails.nu.min() > 2.0:
            names.append("covariances")
        names += ["scales"] * structure.has_scales + ["tails"] * (structure.n_tails > 0)
        return {name: getattr(self, name) for name in names}

    def flat(self, target):
        """A target, by its name (`targets`), with every entry once: (n, d)."""
        if issubclass(TARGETS[target], FunctionOfCovariances):
            function = TARGETS[target](self.posterior, self.origin)
            return function.of_flat(self.flat(function.source.name))
        values = self.log_shares if target == "log_weights" else getattr(self, target)
        if target not in ("precisions", "covariances", "scales"):
            return values.reshape(len(values), -1)
        structure = self._structure
        return structure.unique_entries(structure.by_group(values))

    def require_moments(self, target, values):
        """Raise an error where a component has no covariance in some draws, which are not finite then."""
        if target in ("covariances", "standard_deviations"):
            n_without = len(values) - np.count_nonzero(np.isfinite(values).all(axis=1))
            if n_without:
                which = f"In {n_without} of {len(values)} draws of the exact posterior a component"
                raise NoCovarianceError.of(which, "at most two")

    # The joint density with the rows, and its slopes.

    def likelihood(self, log_weights):
        """The log densities of rows under the draws, given log weights (n, L): GaussianLikelihood."""
        return GaussianLikelihood(self.posterior, self.draws, log_weights)

    def log_joint(self, rows):
        """log p(X, theta), (n,)."""
        return log_likelihood(rows, self) + self.log_prior()

    def log_joint_and_slopes(self, rows):
        """log p(X, theta), and its derivatives.

        Returns
        -------
        values : (n,)
        slopes : ParameterDraws
            Derivatives in log v and log(1 - v), L, u and log nu; entries where L is zero have no meaning.
        """
        sums, monomial_sums = log_likelihood_and_moments(rows, self)
        posterior, draws, structure = self.posterior, self.draws, self._structure
        moments = complete_moments(posterior, monomial_sums)
        counts = moments.counts[:, : structure.n_components]
        group_counts = structure.power * structure.per_group(counts)
        exponent = (group_counts + _prior_exponent(posterior.prior))[structure.statistic_axes]
        of_factors = structure.outer_products(moments.first, draws.scaled_means)
        of_factors -= structure.composed(moments.second, draws.factors)
        structure.diagonal(of_factors)[...] += _over_diagonal(structure, exponent, draws.factors)
        of_scaled_means = structure.transformed(structure.transposed(draws.factors), moments.first)
        mean_precision = posterior.prior.mean_precision + moments.mean_counts(structure.n_components)
        of_scaled_means -= mean_precision[..., None] * draws.scaled_means
        of_log_tails = draws.log_tails
        if structure.n_tails:
            nu = self.degrees_of_freedom
            of_rows = 0.5 * nu * (counts * log_rise(nu) + moments.log_scale_sums)
            of_log_tails = posterior.tails.by_tail(of_rows) + log_prior_of(draws.log_tails)[1]
        of_sticks = slopes_of_sticks(posterior, moments.counts)
        slopes = ParameterDraws(*of_sticks, of_factors, of_scaled_means, of_log_tails)
        return sums + self.log_prior(), slopes

    def log_prior(self):
        """log p(theta), (n,); a flat prior's density of means and precisions is 1."""
        posterior, draws, structure = self.posterior, self.draws, self._structure
        prior, n_components = posterior.prior, structure.n_components
        of_weights_and_tails = log_prior_of_sticks(self) + log_prior_of(draws.log_tails)[0]
        log_determinants = structure.log_determinants(draws.factors)  # of T
        of_frames = structure.log_determinants(posterior.covariance_cholesky)  # of (W' W)^-1
        if prior.flat:
            change = structure.per_group(np.ones(n_components)) * (of_frames - log_determinants)
            of_precisions = (0.5 * change).sum(axis=1) + log_derivative_of_precisions(posterior)
            return of_weights_and_tails + of_precisions
        origins = structure.transformed(structure.transposed(draws.factors), posterior.whitened_prior_mean)
        squares = np.square(draws.scaled_means - origins).sum(axis=(1, 2))
        of_means = 0.5 * n_components * structure.n_features * (math.log(prior.mean_precision) - _LOG_2_PI)
        of_means = of_means - 0.5 * prior.mean_precision * squares
        axes = tuple(range(-structure.identity.ndim, 0))
        scatter = structure.gram(posterior.whitened_prior_root)
        of_precisions = structure.wisharts.log_density(
            prior.degrees_of_freedom,
            (structure.log_determinants(prior.covariance_cholesky) - of_frames) / structure.power,
            log_determinants,
            (structure.gram(draws.factors) * scatter).sum(axis=axes),
        )
        return of_weights_and_tails + of_means + of_precisions.sum(axis=1)

    def prior_slopes(self):
        """Derivatives of the log prior density in the logarithms of the prior's hyperparameters: (n, 4)."""
        prior, factor = self.posterior.prior, np.exp(_STEP)
        weights = prior.weights.with_concentration(factor * prior.weights.prior_concentration)
        changed = [
            replace(prior, weights=weights),
            replace(prior, mean_precision=factor * prior.mean_precision),
            replace(prior, degrees_of_freedom=factor * prior.degrees_of_freedom),
            replace(prior, covariance=factor * prior.covariance),
        ]
        posteriors = [replace(self.posterior, prior=own) for own in changed]
        moved = [GaussianParameters(own, self.origin, self.draws).log_prior() for own in posteriors]
        return (np.transpose(moved) - self.log_prior()[:, None]) / _STEP

    # An iteration of Gibbs sampling.

    def given_random_assignments(self, rows, seed, generator):
        moments = complete_moments(self.posterior, moments_of_random_assignments(rows, self, seed))
        draws = conditional_draws(self.posterior, moments, self.draws.log_tails, generator)
        return draws, moments.counts

    def with_moved_rest(self, rows, generator):
        """Draws after a step of Metropolis' algorithm in log nu, given the other parameters."""
        draws = self.draws
        if not draws.log_tails.shape[1]:
            return draws
        sizes = np.exp(generator.uniform(np.log(_LEAST_STEP), np.log(_LARGEST_STEP), (len(draws), 1)))
        steps = sizes * generator.standard_normal(draws.log_tails.shape)
        proposed = replace(draws, log_tails=draws.log_tails + steps)
        both = self.with_draws(ParameterDraws.concatenated([draws, proposed]))
        log_joints = log_likelihood(rows, both) + log_prior_of(both.draws.log_tails)[0]
        now, then = np.split(log_joints, 2)
        accepted = np.flatnonzero(np.log1p(-generator.random(len(now))) < then - now)
        return draws.replaced(accepted, proposed[accepted])

    # The order of the components, and how far they are from those of a fit.

    def divergences_from(self, posterior):
        """As of all parameters. Components with tails have those of normal ones with their scales."""
        structure, roots = posterior.structure, self._roots()
        axes = tuple(range(-structure.identity.ndim, 0))
        divergences = np.empty((len(roots), structure.n_components, structure.n_components))
        own = structure.log_determinants(self.posterior.covariance_cholesky)
        own = own - structure.log_determinants(self.draws.factors)
        of_fit = np.broadcast_to(
            structure.log_determinants(posterior.covariance_cholesky), structure.n_components
        )
        for k in range(structure.n_components):
            traces = np.square(_roots_in_frame(posterior, roots, k)).sum(axis=axes)
            gaps = structure.transformed(roots, self.means - self.origin - posterior.centred_means[k])
            divergences[:, k] = structure.power * traces + own + np.square(gaps).sum(axis=-1)
            divergences[:, k] -= of_fit[k] + structure.n_features
        return divergences

    def _roots(self):
        """V with V' V = Lambda, (n, S, ...)."""
        structure = self._structure
        return structure.composed(structure.transposed(self.draws.factors), self.posterior.whiteners)

    def reordered(self, orders):
        posterior, structure = self.posterior, self._structure
        roots, factors = self._roots(), self.draws.factors.copy()
        for k in range(structure.n_groups):
            if structure.has_own_precisions:
                own = _roots_in_frame(posterior, roots, k)[np.arange(len(orders)), orders[:, k]]
                factors[:, k] = structure.transposed(own)
        means = np.take_along_axis(self.means - self.origin, orders[:, :, None], axis=1)
        in_frames = structure.transformed(posterior.whiteners, means - posterior.centred_means)
        log_weights = self.log_weights.copy()
        of_components = log_weights[:, : structure.n_components]
        of_components[...] = np.take_along_axis(of_components, orders, axis=1)
        log_left = self.draws.log_rest.sum(axis=1)
        log_stick, log_rest = posterior.prior.weights.log_sticks(log_weights, log_left)
        scaled_means = structure.transformed(structure.transposed(factors), in_frames)
        log_tails = self.draws.log_tails
        if log_tails.shape[1] > 1:
            log_tails = np.take_along_axis(log_tails, orders, axis=1)
        return ParameterDraws(log_stick, log_rest, factors, scaled_means, log_tails)


def conditional_draws(posterior, moments, log_tails, generator):
    """Draws of the parameters given the assignments of all rows, their scales, and log nu: ParameterDraws.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose frames the moments and the draws are
    moments : Moments of n draws; first and second moments include the prior, counts (n, L) do not
    log_tails : (n, number of fitted degrees of freedom), which stay
    generator : numpy.random.Generator
    """
    structure, prior = posterior.structure, posterior.prior
    sticks = drawn_sticks(posterior, moments.counts, generator)
    counts = moments.counts[:, : structure.n_components]
    mean_counts = counts if moments.scale_sums is None else moments.scale_sums
    mean_precision = prior.mean_precision + mean_counts
    means = moments.first / mean_precision[..., None]
    scatter = moments.second - structure.outer_products(moments.first, means)
    freedom = prior.degrees_of_freedom + structure.power * structure.per_group(counts)
    factors = structure.random_factors_type.wishart(generator, freedom, scatter)
    scaled_means = structure.transformed(structure.transposed(factors), means)
    scaled_means += generator.standard_normal(means.shape) / np.sqrt(mean_precision)[..., None]
    return ParameterDraws(*sticks, factors, scaled_means, log_tails)


def _roots_in_frame(posterior, roots, k):
    """V W_k^-1, (n, S, ...)."""
    group = posterior.structure.precision_group(k)
    return posterior.structure.composed(roots, posterior.covariance_cholesky[[group]])


def _prior_exponent(prior):
    """Exponent of |L| in the prior, and in the derivative of the means in u."""
    factors = prior.structure.wisharts
    if prior.flat:
        return -prior.structure.power * factors.n_means
    return prior.degrees_of_freedom - factors.block_size - 1.0


def _over_diagonal(structure, exponent, factors):
    """The exponent over the diagonal of the factors, (n, S, P) or (n, S, Q)."""
    diagonal = structure.diagonal(factors)
    return np.broadcast_to(exponent.reshape(*exponent.shape[:2], 1), diagonal.shape) / diagonal
