"""Densities of components whose arrays were set by hand, for predictions."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sklearn_lrvb.gaussian.posterior.variational_posterior import Expectations


@dataclass
class HandSetDensities:
    """Expected log densities from arrays that were set by hand, each used as it is.

    They take the place of a `VariationalPosterior` where rows are predicted and scored, and have the
    attributes that `OwnCoordinates` and `prediction` read. There are no counts, because the arrays need not
    be those of any posterior.

    Parameters
    ----------
    model : MixtureModel
    structure : CovarianceStructure
    noise_deviations : float, (P,) or (1,), standard deviations of the known noise
    centred_means : (K, P), measured from the mixture's origin
    whiteners : (S, ...), W with W' W = E Lambda
    mean_precision : (K,), tau
    degrees_of_freedom : (S,), nu
    log_weights, log_shares : (L,), E log pi, and that of weights that are scaled to sum to one
    noise_component : NoiseComponent or None
    tails : StudentTails or None

    Attributes
    ----------
    counts : None
    expectations : Expectations of the weights and of the log densities
    """

    counts: ClassVar[None] = None

    model: Any
    structure: Any
    noise_deviations: Any
    centred_means: np.ndarray
    whiteners: np.ndarray
    mean_precision: np.ndarray
    degrees_of_freedom: np.ndarray
    log_weights: np.ndarray
    log_shares: np.ndarray
    noise_component: Any
    tails: Any

    def __post_init__(self):
        structure, whiteners = self.structure, self.whiteners
        self.noise_maps = whiteners * self.noise_deviations
        self.n_components, self.n_features = self.centred_means.shape
        self.n_labels, self.block_shapes = structure.n_labels, structure.layout.block_shapes
        self.expectations = Expectations.of(
            self,
            self.log_weights,
            -structure.log_determinants(whiteners),
            structure.precision_trace(self.noise_maps),
        )
