"""Draws of the parameters, in the frames of the fitted components.

*Conventions.* n draws, K components, P features, S precision groups, B breaks of the stick (`weight_priors`).
In the frame y = W_k (x - m_k) of the fitted component, a draw's precision is T_k = L_k L_k', and its mean is
d_k, given as u_k = L_k' d_k. Under a vague precision d_k is large and L_k' d_k of order one: a product of the
two would lose digits.
"""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from scipy.special import logsumexp


@dataclass(frozen=True)
class ParameterDraws:
    """Draws of weights, means and precisions.

    Attributes
    ----------
    log_stick, log_rest : (n, B), log v and log(1 - v)
    factors : (n, S, ...), L, lower triangular or the square roots of numbers
    scaled_means : (n, K, P), u
    """

    log_stick: np.ndarray
    log_rest: np.ndarray
    factors: np.ndarray
    scaled_means: np.ndarray

    def __len__(self):
        return len(self.factors)

    def __getitem__(self, index):
        return ParameterDraws(*(getattr(self, field.name)[index] for field in fields(self)))

    def replaced(self, index, others):
        """The draws with others at some places, an int array."""
        parts = [getattr(self, field.name).copy() for field in fields(self)]
        for part, field in zip(parts, fields(self), strict=True):
            part[index] = getattr(others, field.name)
        return ParameterDraws(*parts)

    @classmethod
    def concatenated(cls, parts):
        """All draws of some parts."""
        return cls(*(np.concatenate([getattr(own, field.name) for own in parts]) for field in fields(cls)))


class DrawnParameters:
    """The parameters that draws stand for.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose frames the draws are
    origin : (P,), from where the posterior's positions are measured
    draws : ParameterDraws
    """

    def __init__(self, posterior, origin, draws):
        self.posterior = posterior
        self.origin = origin
        self.draws = draws
        self._structure = posterior.structure

    @cached_property
    def log_weights(self):
        """log pi, of weights that need not sum to one: (n, K)."""
        return self.posterior.prior.weights.log_weights(self.draws.log_stick, self.draws.log_rest)

    @property
    def log_shares(self):
        """log pi of weights that are scaled to sum to one: (n, K)."""
        return self.log_weights - logsumexp(self.log_weights, axis=1, keepdims=True)

    @property
    def weights(self):
        """pi, scaled to sum to one: (n, K)."""
        return np.exp(self.log_shares)

    @cached_property
    def _inverse_factors(self):
        factors = self.draws.factors
        return self._structure.whiteners(factors.reshape(-1, *factors.shape[2:])).reshape(factors.shape)

    @property
    def means(self):
        """mu = m + W^-1 L^-T u, (n, K, P)."""
        structure, posterior = self._structure, self.posterior
        back = structure.transposed(self._inverse_factors)
        in_frames = structure.transformed(back, self.draws.scaled_means)
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
    def covariances(self):
        """Lambda^-1, in the shape of the attribute."""
        structure = self._structure
        back = structure.transposed(self._inverse_factors)
        return self._squared(structure.composed(self.posterior.covariance_cholesky, back))

    def _squared(self, factors):
        """The matrices L L' of factors L, exactly symmetric: (n, S, ...) -> (n, *shape of the attribute)."""
        structure = self._structure
        squares = structure.gram(factors)
        return structure.reporting.reported(structure.from_unique_entries(structure.unique_entries(squares)))

    def reported(self):
        """Draws in the shapes of the estimator's attributes, by target: dict of ndarray."""
        return {name: getattr(self, name) for name in ("weights", "means", "precisions", "covariances")}

    def flat(self, target):
        """A target, by its name (`targets`), with every entry once: (n, d)."""
        values = self.log_weights if target == "log_weights" else getattr(self, target)
        if target not in ("precisions", "covariances"):
            return values.reshape(len(values), -1)
        structure = self._structure
        return structure.unique_entries(structure.reporting.by_group(values))
