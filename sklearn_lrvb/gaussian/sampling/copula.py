"""Draws of the parameters whose means and covariances are those of linear response.

All correlations of a draw are those of its coefficients beta ~ N(0, M^-1). A draw is a function of its
*responses* g = (l, u, B), which are linear in beta: logits of sticks, scaled means and changes of precisions.
Each response becomes a quantile of q's own family (a Gaussian copula):

* weights through their stick-breaking form, as in mixtures of any kind (`mixtures.posterior_sampling`);
* precisions through Bartlett's factors L or as gamma variables (`random_factors`), in the frame where they
  are the identity on average;
* means given the precisions, mu = m + W^-1 L^-T u, so that they have the tails of Student's t.

Where no information is missing, as with one component without holes, these are draws of the exact posterior.
Otherwise the means of means, and both moments of weights and precisions, have relative errors of
order 1/N_k.

*Their density* is one of the parameters theta = (logit v; u; T), smooth functions of the responses. The part
of the precisions in log|d theta / d g| is a sum over pivots (`random_factors`). `likelihood` has the exact
posterior's density of the same parameters.

*The parameters* that draws stand for are in the frames of the fitted components. *Conventions.* n draws, K
components and as many labels, or one more with a background, P features, S precision groups, B breaks of the
stick (`weight_priors`). In the frame y = W_k (x - m_k) of the fitted component, a draw's precision is T_k =
L_k L_k', and its mean is d_k, given as u_k = L_k' d_k. Under a vague precision d_k is large and L_k' d_k of
order one: a product of the two would lose digits. Arrays that hold a number for every label are (n, L).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.answers.targets import NoCovarianceError, variance
from sklearn_lrvb.gaussian.answers.targets import TARGETS, FunctionOfCovariances
from sklearn_lrvb.sampling.copula import LEAST_DEVIATION, PosteriorCopula
from sklearn_lrvb.sampling.draws import DrawArrays, DrawnParameters


@dataclass(frozen=True)
class ParameterDraws(DrawArrays):
    """Draws of weights, means and precisions.

    Attributes
    ----------
    log_stick, log_rest : (n, B), log v and log(1 - v)
    factors : (n, S, ...), L, upper triangular or the square roots of numbers
    scaled_means : (n, K, P), u
    log_tails : (n, number of fitted degrees of freedom), log nu
    """

    log_stick: np.ndarray
    log_rest: np.ndarray
    factors: np.ndarray
    scaled_means: np.ndarray
    log_tails: np.ndarray


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


def draws_at(posterior, other):
    """The parameters that another posterior reports, as one draw in the frames of the first one."""
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


class GaussianCopula(PosteriorCopula):
    """The distribution of weights, means and precisions that linear response describes.

    A draw has B + K P + S Q responses, and log nu of fitted degrees of freedom.
    """

    def __init__(self, targets, information, with_excess=True):
        super().__init__(targets, information, with_excess)
        self._structure = structure = targets.posterior.structure
        self.log_scale = np.log(structure.own_precision_scale).sum() * structure.n_groups

    @cached_property
    def drawn(self):
        """Coordinates of the coefficients that are responses: all but those of intercepts and scales."""
        blocks = self._structure.coefficient_blocks
        is_drawn = np.ones(self._posterior.n_coefficients, dtype=bool)
        is_drawn[blocks["intercept"]] = is_drawn[blocks["scale"]] = False
        return np.flatnonzero(is_drawn)

    def split(self, responses):
        """Scaled means (n, K, P) and changes of precisions (n, S, ...)."""
        structure = self._structure
        _, linear, quadratic = structure.split(self.coefficients(responses))
        return linear, structure.own_precision_response(quadratic)

    @property
    def _log_tails(self):
        """log nu of the fit, (number of fitted degrees of freedom,)."""
        tails = self._posterior.tails
        return np.zeros(0) if tails is None else np.log(tails.fitted)

    def draws(self, responses):
        """The draws of some responses, (n, n_responses) -> ParameterDraws."""
        linear, changes = self.split(responses)
        log_tails = self._log_tails + responses[:, responses.shape[1] - self._structure.n_tails :]
        return ParameterDraws(
            *self.log_sticks(responses), self.random_factors.factors(changes), linear, log_tails
        )

    def responses_of(self, draws):
        """The responses of some draws, the inverse of `draws`: (n, n_responses)."""
        structure, n_draws = self._structure, len(draws)
        quadratic = -structure.entries(self.random_factors.changes(draws.factors))
        quadratic /= structure.own_precision_scale
        log_tails = draws.log_tails - self._log_tails
        parts = (self.logits_of(draws), draws.scaled_means, quadratic, log_tails)
        return np.hstack([part.reshape(n_draws, -1) for part in parts])

    def log_derivatives(self, responses, draws):
        return self.random_factors.log_derivatives(self.split(responses)[1], draws.factors)

    def slopes(self, responses, draws, slopes):
        structure = self._structure
        of_changes = self.random_factors.slopes(self.split(responses)[1], draws.factors, slopes.factors)
        of_quadratic = -structure.own_precision_scale * structure.entries(of_changes)
        parts = (slopes.scaled_means, of_quadratic, slopes.log_tails)
        return np.hstack([part.reshape(len(responses), -1) for part in parts])

    @cached_property
    def random_factors(self):
        """`RandomFactors` of the precisions, by their standard deviations in their own frames."""
        structure = self._structure
        variances = self.targets["scales" if structure.has_scales else "covariances"]
        deviations = self._information.deviations[self.targets["precisions"].coordinates()]
        deviations = np.maximum(deviations, LEAST_DEVIATION)
        deviations = deviations.reshape(structure.n_groups, structure.n_quadratic)
        of_features = variances.on_diagonal()
        relative = np.sqrt(variance(variances, self._information)[of_features])
        relative /= variances.flat_value()[of_features]
        return structure.random_factors_type(
            np.abs(structure.own_precision_response(deviations)),
            self._posterior.effective_degrees_of_freedom,
            np.square(relative).reshape(structure.n_groups, -1),
        )


def draws_of_estimates(copula, responses):
    """Draws of estimates: means are linear in the coefficients, where the copula's depend on precisions."""
    draws, structure = copula.draws(responses), copula.targets.posterior.structure
    changes = copula.split(responses)[0]
    scaled_means = structure.transformed(structure.transposed(draws.factors), changes)
    return replace(draws, scaled_means=scaled_means)
