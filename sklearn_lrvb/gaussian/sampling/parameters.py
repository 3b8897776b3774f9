"""The parameters that draws stand for: their values, the density of the prior, and draws given assigned rows.

*The joint density* of rows and parameters is the exact posterior's up to the evidence. It is a density of the
logits of the breaks of the stick, the scaled means and the precisions in the whitened coordinates of the
fitted components, theta = (logit v; u; unique entries of T = L L'), as is that of the copula (`copula`). The
density of a break itself would lose digits next to zero. With tau and the complete moments M1 and M2 (prior
included) of the rows, weighted by their responsibilities under a draw, its derivatives are

    in u      L' M1 - tau u
    in L      M1 u' - M2 L + kappa diag(1/L_ii),        kappa the exponent of |L|.
"""

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.answers.targets import NoCovarianceError
from sklearn_lrvb.distributions.dirichlet import log_density_of_logit
from sklearn_lrvb.gaussian.answers.targets import TARGETS, FunctionOfCovariances
from sklearn_lrvb.gaussian.posterior.tails import log_prior_of, log_rise
from sklearn_lrvb.gaussian.sampling.copula import ParameterDraws
from sklearn_lrvb.gaussian.sampling.hyperparameters import HyperparametersOfDraws, without_rows
from sklearn_lrvb.gaussian.sampling.likelihood import GaussianLikelihood, moments_of_sums
from sklearn_lrvb.sampling.draws import DrawnParameters
from sklearn_lrvb.sampling.likelihood import log_likelihood

_LOG_2_PI = math.log(2.0 * math.pi)
_STEP = 1e-5  # Of the logarithm of a hyperparameter, for a difference quotient.
_SEEDS = 0, 1  # Of the random numbers by which hyperparameters are drawn given the other parameters.

# Standard deviations of proposed steps of log nu. Every proposal has one between them, at random: the
# posterior's is one of a few hundredths with many rows of heavy tails, and near one with few or normal rows.
_LEAST_STEP, _LARGEST_STEP = 0.05, 1.0


class GaussianParameters(DrawnParameters):
    """The parameters that draws stand for.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose whitened coordinates the draws are
    origin : (P,), from where the posterior's positions are measured
    draws : ParameterDraws
    components : bool (K,), default=None
        Of which means, precisions and nu have a density, those of the others being drawn from their prior
        given these; by default all.
    """

    def __init__(self, posterior, origin, draws, components=None):
        super().__init__(posterior, origin, draws)
        self._structure = posterior.structure
        self._components = np.ones(posterior.n_components, bool) if components is None else components
        self._entry_axes = tuple(range(-self._structure.identity.ndim, 0))  # Of a statistic or a map.

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
    def _roots(self):
        """V = L' W, with V' V = Lambda: (n, S, ...)."""
        structure = self._structure
        return structure.composed(structure.transposed(self.draws.factors), self.posterior.whiteners)

    @property
    def _centred_means(self):
        """mu = m + W^-1 L^-T u, measured from the origin: (n, K, P)."""
        structure, posterior = self._structure, self.posterior
        in_coordinates = structure.transformed(self._inverse_factors, self.draws.scaled_means)
        return posterior.centred_means + structure.transformed(posterior.covariance_cholesky, in_coordinates)

    @property
    def means(self):
        """mu, (n, K, P)."""
        return self.origin + self._centred_means

    @property
    def precisions(self):
        """Lambda = W' T W, in the shape of the attribute."""
        return self._squared(self._structure.transposed(self._roots))

    @property
    def scales(self):
        """Lambda^-1, in the shape of the attribute."""
        maps = self._structure.composed(self.posterior.covariance_cholesky, self._inverse_factors)
        return self._squared(maps)

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

    @cached_property
    def mean_precision_prior(self):
        """b0, drawn from its distribution given the other parameters, by the same random numbers: (n,)."""
        return self._hyperparameters.drawn_mean_precisions(np.random.default_rng(_SEEDS[0]))

    @cached_property
    def covariance_prior(self):
        """C0, drawn likewise, in the shape of the attribute."""
        roots = self._hyperparameters.drawn_covariance_roots(np.random.default_rng(_SEEDS[1]))
        covariances = self._structure.from_entries(self._structure.entries(self._structure.gram(roots)))
        return covariances.reshape(len(roots), *self._structure.prior_shape)

    def _squared(self, factors):
        """The matrices L L' of factors L, exactly symmetric: (n, S, ...) -> (n, *shape of the attribute)."""
        structure = self._structure
        squares = structure.gram(factors)
        return structure.reported(structure.from_unique_entries(structure.unique_entries(squares)))

    def reported(self):
        """Draws in the shapes of the estimator's attributes, by target: dict of ndarray.

        Covariances are left out where known degrees of freedom are at most two, so that none is finite. So
        are learned hyperparameters, as draws of estimates have none.
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
        structure = self._structure
        if target == "covariance_prior":
            return structure.entries(values.reshape(len(values), *structure.identity.shape))
        if target not in ("precisions", "covariances", "scales"):
            return values.reshape(len(values), -1)
        return structure.unique_entries(structure.by_group(values))

    def require_moments(self, target, values):
        """Raise an error where a component has no covariance in some draws, which are not finite then."""
        if target in ("covariances", "standard_deviations"):
            n_without = len(values) - np.count_nonzero(np.isfinite(values).all(axis=1))
            if n_without:
                which = f"In {n_without} of {len(values)} draws of the exact posterior a component"
                raise NoCovarianceError.of(which, "at most two")

    @property
    def log_symmetry(self):
        return self.posterior.prior.weights.log_symmetry(self.draws.log_stick, self.draws.log_rest)

    # The joint density with the rows, and its slopes.

    def likelihood(self, log_weights):
        """The log densities of rows under the draws, given log weights (n, L): GaussianLikelihood."""
        return GaussianLikelihood(self.posterior, self.draws, log_weights)

    def slopes_of_log_joint(self, sums):
        """Derivatives in log v and log(1 - v), L, u and log nu: ParameterDraws.

        Entries where L is zero have no meaning.
        """
        posterior, draws, structure = self.posterior, self.draws, self._structure
        prior, hyperparameters = posterior.prior, self._hyperparameters.expected()
        moments = hyperparameters.completed(moments_of_sums(posterior, sums))
        counts = moments.counts[:, : structure.n_components]
        # kappa, the exponent of |L|: that of the rows, and that of the prior with what a density in u adds.
        exponents = structure.power * structure.layout.per_group(counts)
        if prior.flat:
            exponents = exponents - structure.power * structure.wisharts.n_means
        else:
            exponents = exponents + prior.degrees_of_freedom - structure.wisharts.block_size - 1.0
        by_factor = structure.outer_products(moments.first, draws.scaled_means)
        by_factor -= structure.composed(moments.second, draws.factors)
        structure.diagonal(by_factor)[...] += exponents[..., None] / structure.diagonal(draws.factors)
        by_scaled_mean = structure.transformed(structure.transposed(draws.factors), moments.first)
        mean_precision = (
            hyperparameters.mean_precision + moments.mean_counts(structure.n_components)[..., None]
        )
        by_scaled_mean -= mean_precision * draws.scaled_means
        by_log_tail = draws.log_tails
        if structure.n_tails:
            nu = self.degrees_of_freedom
            by_component = 0.5 * nu * (counts * log_rise(nu) + moments.log_scale_sums)
            by_log_tail = posterior.tails.by_tail(by_component) + log_prior_of(draws.log_tails)[1]
        # Sums over rows of the labels at a break, and of those behind it, besides the prior's exponents. The
        # break of the noise component, the last label, is the first one.
        stick, rest = self._prior_sticks
        in_order = np.roll(moments.counts, structure.has_noise_component, axis=1)
        behind = np.cumsum(in_order[:, ::-1], axis=1)[:, ::-1] - in_order
        by_stick, by_rest = in_order[:, : len(stick)] + stick, behind[:, : len(rest)] + rest
        return ParameterDraws(by_stick, by_rest, by_factor, by_scaled_mean, by_log_tail)

    @property
    def _prior_sticks(self):
        """Beta parameters of every break of the stick under the prior, a pair of (B,)."""
        return self.posterior.prior.weights.sticks(np.zeros(self._structure.n_labels))

    def log_prior(self):
        """log p(theta), (n,); a flat prior's density of means and precisions is 1."""
        posterior, draws, structure = self.posterior, self.draws, self._structure
        prior, n_components = posterior.prior, structure.n_components
        by_break = log_density_of_logit(draws.log_stick, draws.log_rest, *self._prior_sticks)
        own_tails = self._components if structure.tails_shape else slice(None)
        log_density = by_break.sum(axis=1) + log_prior_of(draws.log_tails[:, own_tails])[0]
        log_determinants = structure.log_determinants(draws.factors)  # of T
        frame_determinants = structure.log_determinants(posterior.covariance_cholesky)  # of (W' W)^-1
        if prior.flat:
            n_means = structure.layout.per_group(np.ones(n_components))
            change = 0.5 * n_means * (frame_determinants - log_determinants)
            return log_density + change.sum(axis=1) + log_derivative_of_precisions(posterior)
        return log_density + self._hyperparameters.log_density()

    @cached_property
    def _hyperparameters(self):
        """Those of the prior, given the draws: HyperparametersOfDraws."""
        return HyperparametersOfDraws(self.posterior, self.draws, self._components)

    def completed(self, generator):
        given = ~without_rows(self.posterior)
        if given.all():
            return self
        hyperparameters = HyperparametersOfDraws(self.posterior, self.draws, given)
        draws = hyperparameters.with_other_components(generator)
        return GaussianParameters(self.posterior, self.origin, draws, given)

    def prior_slopes(self):
        """Derivatives of the log prior density in the logarithms of the prior's hyperparameters: (n, 4).

        Of learned ones it is the expectation that changes.
        """
        prior, learned, factor = self.posterior.prior, self.posterior.prior.learned, np.exp(_STEP)
        weights = prior.weights.with_concentration(factor * prior.weights.prior_concentration)
        changed = [
            replace(prior, weights=weights),
            replace(prior, mean_precision=factor * prior.mean_precision),
            replace(prior, degrees_of_freedom=factor * prior.degrees_of_freedom),
            replace(prior, covariance=factor * prior.covariance),
        ]
        if learned is not None and learned.shape:
            changed[1] = replace(prior, learned=replace(learned, rate=learned.rate / factor))
        if learned is not None and learned.freedom:
            changed[3] = replace(prior, learned=replace(learned, covariance=factor * learned.covariance))
        posteriors = [replace(self.posterior, prior=changed_prior) for changed_prior in changed]
        log_priors = [GaussianParameters(each, self.origin, self.draws).log_prior() for each in posteriors]
        return (np.transpose(log_priors) - self.log_prior()[:, None]) / _STEP

    # An iteration of Gibbs sampling.

    def given_sums(self, sums, generator):
        """Draws given sums over the rows with each label and their scales; log nu stays."""
        structure, prior = self._structure, self.posterior.prior
        hyperparameters = self._hyperparameters.drawn(generator)
        moments = hyperparameters.completed(moments_of_sums(self.posterior, sums))
        log_stick, log_rest = prior.weights.drawn(moments.counts, generator)
        counts = moments.counts[:, : structure.n_components]
        mean_precision = (
            hyperparameters.mean_precision + moments.mean_counts(structure.n_components)[..., None]
        )
        means = moments.first / mean_precision
        scatter = moments.second - structure.outer_products(moments.first, means)
        freedom = prior.degrees_of_freedom + structure.power * structure.layout.per_group(counts)
        factors = structure.random_factors_type.wishart(generator, freedom, scatter)
        scaled_means = structure.transformed(structure.transposed(factors), means)
        scaled_means += generator.standard_normal(means.shape) / np.sqrt(mean_precision)
        draws = ParameterDraws(log_stick, log_rest, factors, scaled_means, self.draws.log_tails)
        return draws, moments.counts

    def after_metropolis_step(self, rows, generator):
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
        structure, roots, means = posterior.structure, self._roots, self._centred_means
        divergences = np.empty((len(roots), structure.n_components, structure.n_components))
        log_determinants = structure.log_determinants(self.posterior.covariance_cholesky)  # Of covariances.
        log_determinants = log_determinants - structure.log_determinants(self.draws.factors)
        fitted = structure.layout.per_component(structure.log_determinants(posterior.covariance_cholesky))
        for k in range(structure.n_components):
            traces = np.square(_roots_in_coordinates(posterior, roots, k)).sum(axis=self._entry_axes)
            gaps = structure.transformed(roots, means - posterior.centred_means[k])
            divergences[:, k] = structure.power * traces + np.square(gaps).sum(axis=-1)
            divergences[:, k] += log_determinants - fitted[k] - structure.n_features
        return divergences

    def reordered(self, orders):
        posterior, structure = self.posterior, self._structure
        roots, factors = self._roots, self.draws.factors.copy()
        for k in range(structure.n_components if structure.has_own_precisions else 0):
            own_roots = _roots_in_coordinates(posterior, roots, k)[np.arange(len(orders)), orders[:, k]]
            factors[:, k] = structure.transposed(own_roots)
        means = np.take_along_axis(self._centred_means, orders[:, :, None], axis=1)
        in_coordinates = structure.transformed(posterior.whiteners, means - posterior.centred_means)
        labels = np.arange(structure.n_labels)[None].repeat(len(orders), axis=0)
        labels[:, : structure.n_components] = orders
        log_weights = np.take_along_axis(self.log_weights, labels, axis=1)
        log_left = self.draws.log_rest.sum(axis=1)
        log_stick, log_rest = posterior.prior.weights.log_sticks(log_weights, log_left)
        scaled_means = structure.transformed(structure.transposed(factors), in_coordinates)
        log_tails = self.draws.log_tails
        if log_tails.shape[1] > 1:
            log_tails = np.take_along_axis(log_tails, orders, axis=1)
        return ParameterDraws(log_stick, log_rest, factors, scaled_means, log_tails)


def log_derivative_of_precisions(posterior):
    """log|d Lambda / d T| of the unique entries of Lambda = W' T W, summed over the groups: float."""
    structure = posterior.structure
    log_scales = np.log(structure.diagonal(posterior.whiteners)).sum()
    return (structure.wisharts.block_size + 1) * log_scales


def _roots_in_coordinates(posterior, roots, k):
    """V W_k^-1, (n, S, ...)."""
    group = posterior.structure.layout.group_of(k)
    return posterior.structure.composed(roots, posterior.covariance_cholesky[[group]])
