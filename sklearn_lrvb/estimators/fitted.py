"""What a fit leaves: the arrays that it reports, and the mixture that they describe.

As in scikit-learn the public arrays decide. Those of a fit are read-only, so that a change is a replacement,
and *is* tells whether there was one. Error bars, which are about the fit, refuse then. Predictions of a
Gaussian mixture follow arrays that were set by hand.
"""

import math
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_lrvb.answers.uncertainty import read_only
from sklearn_lrvb.estimators.base import Fitted
from sklearn_lrvb.estimators.gaussian_arguments import PRIOR_ARGUMENTS, has_noise, optional_parts
from sklearn_lrvb.family_mixture.targets import ClassTargets
from sklearn_lrvb.gaussian.answers.targets import GaussianTargets
from sklearn_lrvb.gaussian.covariance_structures import COVARIANCE_STRUCTURES
from sklearn_lrvb.gaussian.model import GAUSSIAN
from sklearn_lrvb.gaussian.posterior.hand_set_densities import HandSetDensities
from sklearn_lrvb.gaussian.posterior.learned_prior import LearnedPrior
from sklearn_lrvb.gaussian.posterior.mixture_prior import MixturePrior
from sklearn_lrvb.gaussian.posterior.noise_component import NoiseComponent
from sklearn_lrvb.gaussian.posterior.tails import StudentTails
from sklearn_lrvb.gaussian.posterior.variational_posterior import VariationalPosterior
from sklearn_lrvb.mixture.weight_priors import WEIGHT_PRIORS, DirichletWeights, WeightsWithNoise
from sklearn_lrvb.symmetric_matrices import round_off, scaled_to_unit_diagonal, symmetrized

# The constructor's parameters on which the meaning of the arrays depends. Their values at the fit hold until
# the next fit, even if others are set in between.
MODEL_PARAMETERS = (
    "covariance_type",
    "weight_concentration_prior_type",
    "prior",
    "factorization",
    "reg_covar",
    "noise",
    "tails",
)

# The arrays from which the log densities of rows are computed, in scikit-learn as here.
DENSITY_ARRAYS = (
    "weight_concentration_",
    "mean_precision_",
    "means_",
    "degrees_of_freedom_",
    "precisions_cholesky_",
)

# Those that describe the noise component besides, where there is one.
NOISE_ARRAYS = ("noise_concentration_", "noise_log_density_", "covariance_prior_")

# All arrays that belong to a fit.
FIT_ARRAYS = (
    "weights_",
    "noise_weight_",
    "covariances_",
    "scales_",
    "precisions_",
    *DENSITY_ARRAYS,
    *NOISE_ARRAYS[:2],
    "tails_",
    *(f"{name}_" for name in PRIOR_ARGUMENTS),
)


def density_arrays(model):
    """Names of the arrays from which the log densities of rows are computed, given `MODEL_PARAMETERS`."""
    return (
        DENSITY_ARRAYS + NOISE_ARRAYS * has_noise(model["noise"]) + ("tails_",) * (model["tails"] != "normal")
    )


# What a `VariationalPosterior` is made of, between its prior and its tails.
_POSTERIOR_FIELDS = ("counts", "centred_means", "covariance_cholesky", "noise_component_counts", "scale_sums")

_ROUNDING_OF_WEIGHTS = 1e-5  # Largest error of the sum of weights that were set by hand, in float32.


def model_of(estimator):
    """The values of `MODEL_PARAMETERS`: dict by name."""
    return {name: getattr(estimator, name) for name in MODEL_PARAMETERS}


class FittedGaussian(Fitted):
    """A mixture that predicts: the q in which a fit ended, or arrays that were set by hand.

    Parameters
    ----------
    posterior : VariationalPosterior or HandSetDensities
    origin : (P,), from where the posterior's positions are measured
    model : dict, values of `MODEL_PARAMETERS`
    path : sequence of float, default=()
        Lower bounds of the fit, at its start and after every step.
    arrays : dict or None, default=None
        The read-only arrays that the fit reports, by name; None computes them.

    Attributes
    ----------
    targets : Targets at the posterior; of arrays set by hand, only their shapes and names are valid
    """

    described_by = "weights_", "means_", "covariances_", "precisions_"

    def __init__(self, posterior, origin, model, path=(), arrays=None):
        self.posterior, self.structure = posterior, posterior.structure
        self.origin = origin
        self.model = model
        self.path = tuple(path)
        self.targets = GaussianTargets(posterior, origin)
        self.arrays = self._arrays_to_report() if arrays is None else arrays

    def _arrays_to_report(self):
        posterior, prior, structure = self.posterior, self.posterior.prior, self.structure
        targets = self.targets
        weights, noise_weight = np.split(targets["weights"].value(), [posterior.n_components])
        arrays = {
            "weights_": weights,
            "means_": targets["means"].value(),
            "precisions_": targets["precisions"].value(),
            "precisions_cholesky_": structure.reported(structure.transposed(posterior.whiteners)).copy(),
            "weight_concentration_": prior.weights.concentration(posterior.label_counts),
            "mean_precision_": posterior.mean_precision,
            "degrees_of_freedom_": structure.layout.reported_numbers(posterior.degrees_of_freedom),
            "weight_concentration_prior_": prior.weights.prior_concentration,
            "mean_precision_prior_": prior.mean_precision,
            "mean_prior_": np.zeros_like(self.origin) if prior.flat else self.origin + prior.mean,
            "degrees_of_freedom_prior_": prior.degrees_of_freedom,
            "covariance_prior_": prior.covariance.reshape(structure.prior_shape)[()],
        }
        if posterior.tails is not None:
            arrays["scales_"] = targets["scales"].value()
            arrays["tails_"] = posterior.tails.nu if structure.tails_shape else posterior.tails.nu[0]
        if posterior.tails is None or posterior.tails.nu.min() > 2.0:  # Otherwise there are none.
            arrays["covariances_"] = targets["covariances"].value()
        if structure.has_noise_component:
            arrays["noise_weight_"] = noise_weight[0]
            arrays["noise_concentration_"] = prior.weights.of_noise_component(posterior.label_counts)
            arrays["noise_log_density_"] = posterior.noise_component.log_density
        return {name: read_only(arrays[name]) for name in FIT_ARRAYS if name in arrays}

    def at(self, posterior, path):
        return FittedGaussian(posterior, self.origin, self.model, path)

    @property
    def hyperparameters(self):
        given = {name: np.asarray(self.arrays[f"{name}_"]) for name in PRIOR_ARGUMENTS}
        return given | self.learned

    @property
    def learned(self):
        learned = self.posterior.prior.learned
        return {} if learned is None else learned.expectations

    @property
    def least_prior_factors(self):
        prior = self.posterior.prior  # Its degrees of freedom are above the size of a block less one.
        least = self.structure.wisharts.block_size - 1
        return {"degrees_of_freedom_prior": least / prior.degrees_of_freedom}

    def to_state(self):
        """Builtins and arrays from which, with the arrays of the fit, `from_state` rebuilds this."""
        posterior = self.posterior
        return {
            "model": self.model,
            "origin": self.origin,
            "nu": None if posterior.tails is None else posterior.tails.nu,
            "resolution": posterior.prior.resolution,
            "rounding": posterior.prior.rounding,
            "learned": None if posterior.prior.learned is None else posterior.prior.learned.to_state(),
            "path": np.array(self.path),
            **{name: getattr(posterior, name) for name in _POSTERIOR_FIELDS},
        }

    @classmethod
    def from_state(cls, state, arrays):
        model, origin = state["model"], state["origin"]
        learned = state["learned"]
        structure, weights = _structure_and_weights(
            model, *state["centred_means"].shape, arrays["weight_concentration_prior_"], learned
        )
        prior = MixturePrior(
            model=GAUSSIAN,
            weights=weights,
            structure=structure,
            mean_precision=arrays["mean_precision_prior_"],
            mean=np.zeros_like(origin) if model["prior"] == "flat" else arrays["mean_prior_"] - origin,
            degrees_of_freedom=arrays["degrees_of_freedom_prior_"],
            covariance=np.reshape(arrays["covariance_prior_"], structure.identity.shape),
            independent=model["factorization"] == "independent",
            reg_covar=float(model["reg_covar"]),
            resolution=state["resolution"],
            rounding=state["rounding"],
            noise_component=_noise_component(arrays, structure, learned and learned["covariance"]),
            tails=_tails(state["nu"], structure),
            learned=None if learned is None else LearnedPrior(structure, **learned),
        )
        posterior = VariationalPosterior(prior, *(state[name] for name in _POSTERIOR_FIELDS), prior.tails)
        return cls(posterior, origin, model, state["path"].tolist(), arrays)


def _structure_and_weights(model, n_components, n_features, prior_concentration, learned=None):
    """The covariance structure and the prior of the weights.

    A flat one is a Dirichlet prior, whichever kind the parameters name.
    """
    is_flat = model["prior"] == "flat"
    kind = DirichletWeights if is_flat else WEIGHT_PRIORS[model["weight_concentration_prior_type"]]
    weights, parts = kind(prior_concentration, n_components), optional_parts(model, n_components)
    if learned is not None:
        of_means, of_covariances = learned["shape"] > 0, learned["freedom"] > 0
        parts = replace(parts, learns_mean_precision=of_means, learns_covariance=of_covariances)
    structure = COVARIANCE_STRUCTURES[model["covariance_type"]](n_components, n_features, parts)
    return structure, WeightsWithNoise(weights) if parts.has_noise_component else weights


def _tails(nu, structure):
    """The StudentTails of degrees of freedom, a number or (K,); or None."""
    if not structure.has_scales:
        return None
    return StudentTails(np.array(np.broadcast_to(nu, structure.n_components)), structure.n_tails)


def _noise_component(arrays, structure, covariance=None):
    """The NoiseComponent that arrays describe, dict by name; or None.

    Its covariance is that of the fit, where it is known, because ``covariance_prior_`` may be learned.
    """
    if not structure.has_noise_component:
        return None
    if covariance is None:
        covariance = np.reshape(arrays["covariance_prior_"], structure.identity.shape)
    return NoiseComponent(float(arrays["noise_log_density_"]), covariance)


def mixture_of_arrays(estimator, model, last=None):
    """The mixture of an estimator's `DENSITY_ARRAYS`, each used as it is: FittedGaussian.

    Parameters
    ----------
    estimator : LRVBGaussianMixture, some of whose arrays were set by hand
    model : dict, values of `MODEL_PARAMETERS`
    last : FittedGaussian or None
        The last fit, whose known noise is that of the columns.

    Raises
    ------
    NotFittedError
        Where an array is missing.
    ValueError
        Where the arrays are not finite, are outside their domain, or have shapes that do not go together.
    """
    names = density_arrays(model)
    check_is_fitted(estimator, names)
    arrays = {name: checked_array(estimator, name) for name in names}
    means = arrays["means_"]
    n_features = getattr(estimator, "n_features_in_", means.shape[-1] if means.ndim else 0)
    if means.ndim != 2 or means.shape[1] != n_features:
        raise ValueError(
            f"means_ has shape {means.shape}, but must have one row for every component and "
            f"n_features_in_ = {n_features} columns."
        )
    structure, weights = _structure_and_weights(model, *means.shape, np.nan)
    _require_mixture(arrays, structure, weights, model["covariance_type"])
    origin = means.mean(axis=0)
    deviations, covariance = math.sqrt(model["reg_covar"]), None
    if last is not None:
        deviations = last.posterior.prior.noise_deviations
        if structure.has_noise_component and "covariance_prior_" not in last.replaced_in(estimator):
            covariance = last.posterior.noise_component.covariance
    densities = HandSetDensities(
        GAUSSIAN,
        structure,
        deviations,
        means - origin,
        structure.transposed(structure.by_group(arrays["precisions_cholesky_"])),
        arrays["mean_precision_"],
        np.atleast_1d(arrays["degrees_of_freedom_"]),
        *(
            expected(*(arrays[name] for name in names if "concentration" in name))
            for expected in (weights.expected_log_at, weights.expected_log_shares_at)
        ),
        _noise_component(arrays, structure, covariance),
        _tails(arrays.get("tails_"), structure),
    )
    return FittedGaussian(densities, origin, model, arrays={})


def _require_mixture(arrays, structure, weights, covariance_type):
    """Raise ValueError unless the arrays have the shapes that fit ``means_``, and values in their domains."""
    by_group = () if structure.shares_precision else (structure.n_components,)
    wanted = {  # Shapes, and what is less than every number, or every one on the diagonal.
        "weight_concentration_": (np.shape(weights.concentration(np.ones(structure.n_labels))), 0.0),
        "mean_precision_": ((structure.n_components,), 0.0),
        "degrees_of_freedom_": (by_group, structure.wisharts.block_size - 1),
        "precisions_cholesky_": ((*by_group, *structure.prior_shape), 0.0),
    }
    if structure.has_noise_component:
        wanted |= {
            "noise_concentration_": ((2,), 0.0),
            "noise_log_density_": ((), -np.inf),
            "covariance_prior_": (structure.prior_shape, 0.0),
        }
    if structure.has_scales:
        wanted["tails_"] = (structure.tails_shape, 0.0)
    for name, (shape, bound) in wanted.items():
        values, which = arrays[name], "it"
        if values.shape != shape:
            raise ValueError(
                f"{name} has shape {values.shape}, but means_ of shape {arrays['means_'].shape} and "
                f"covariance_type={covariance_type!r} ask for {shape}. Set all of "
                f"{', '.join(arrays)} for the same components."
            )
        if name == "precisions_cholesky_" and structure.is_matrix:
            roots = structure.by_group(values)
            values, which = structure.diagonal(roots), "its diagonal"
        if name == "covariance_prior_" and structure.is_matrix:
            values, which = np.diag(values), "its diagonal"
        if not np.all(values > bound):
            place = ", ".join(map(str, np.unravel_index(np.argmin(values), np.shape(values))))
            raise ValueError(
                f"{name}: {which} must be above {bound:g}, but has {np.min(values):g} at [{place}]."
            )
    if structure.is_matrix and np.any(np.tril(roots, -1)):
        raise ValueError(
            "precisions_cholesky_ must be upper triangular, U with precisions_ = U @ U.T, but some entries "
            "below the diagonal are not zero."
        )


def checked_array(estimator, name, shape=None):
    """A fitted attribute as a finite float64 array, (...).

    Parameters
    ----------
    shape : tuple of int or None, default=None
        The shape that it must have; None takes any.

    Raises
    ------
    ValueError
        Where it is missing, no finite real array, or of another shape.
    """
    if not hasattr(estimator, name):
        raise ValueError(
            f"{name} is missing, so that the estimator describes no mixture. Set it, or call fit."
        )
    value = getattr(estimator, name)
    try:
        given = np.asarray(value)
        array = given.astype(np.float64) if given.dtype.kind in "fiu" else None
    except ValueError:
        array = None
    if array is None or not np.isfinite(array).all():
        raise ValueError(f"{name} must be an array of finite real numbers, got {value!r}.")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, but the other fitted arrays ask for {shape}.")
    return array


def arrays_to_sample(estimator, structure):
    """The weights, means and covariances that an estimator reports, where they are those of a mixture.

    Of Student's t components its covariances are those of rows whose scale is one. Singular covariances are
    those of a mixture too.

    Returns
    -------
    weights : (K,), given that a row is no noise
    means : (K, P)
    covariances : (S, ...)

    Raises
    ------
    ValueError
        Where they were set by hand to others.
    """
    means = checked_array(estimator, "means_")
    weights = checked_array(estimator, "weights_", means.shape[:1])
    noise_weight = checked_array(estimator, "noise_weight_", ()) if structure.has_noise_component else 0.0
    name = "scales_" if structure.has_scales else "covariances_"
    covariances = structure.by_group(checked_array(estimator, name, np.shape(estimator.precisions_cholesky_)))
    if weights.min() < 0.0:
        raise ValueError(
            f"weights_ must not be negative, but component {weights.argmin()} has {weights.min():g}."
        )
    if abs(weights.sum() + noise_weight - 1.0) > _ROUNDING_OF_WEIGHTS or not 0.0 <= noise_weight < 1.0:
        raise ValueError(
            f"weights_ and noise_weight_ must sum to one, but sum to {weights.sum():g} and {noise_weight:g}."
            if structure.has_noise_component
            else f"weights_ must sum to one, but sum to {weights.sum():g}."
        )
    least = covariances.min(axis=-1)
    if structure.is_matrix:
        # The fitted covariances are positive definite up to their own rounding, in any units.
        scaled, _ = scaled_to_unit_diagonal(symmetrized(covariances))
        least = np.linalg.eigvalsh(scaled).min(axis=-1) + round_off(structure.n_features)
    if least.min() < 0.0:
        owner = f"that of component {least.argmin()}" if structure.has_own_precisions else "the common one"
        raise ValueError(
            f"{name} must be positive definite, but {owner} has a negative eigenvalue. Set it to a "
            "covariance, or call fit."
        )
    # By the sum where there is noise: a weight above one by round-off is none. Else as they are, for the same
    # random numbers as scikit-learn's.
    weights = weights / weights.sum() if structure.has_noise_component else weights
    return weights, means, covariances


class FittedClasses(Fitted):
    """The mixture in which a fit ended.

    Parameters
    ----------
    posterior : ClassPosterior
    columns : TableColumns
    path : sequence of float, default=()
        Lower bounds of the fit, at its start and after every step.
    arrays : dict or None, default=None
        The read-only arrays that the fit reports, by name; None computes them.

    Attributes
    ----------
    origin : (P,), zeros: rows are measured as they are
    targets : ClassTargets
    """

    described_by = "weights_", "tables_"

    def __init__(self, posterior, columns, path=(), arrays=None):
        self.posterior, self.columns, self.path = posterior, columns, tuple(path)
        self.origin = np.zeros(len(columns.columns))
        self.targets = ClassTargets(posterior, self.origin)
        self.arrays = arrays or {"weights_": read_only(self.targets["weights"].value())}

    @property
    def n_categories(self):
        return np.array([len(column.categories) for column in self.columns.columns])

    def at(self, posterior, path):
        return FittedClasses(posterior, self.columns, path)

    @property
    def model(self):
        described = [(column.name, column.kind, column.categories) for column in self.columns.columns]
        learned = self.posterior.prior.learned
        return {"columns": described, "learned_prior": () if learned is None else learned.names}

    @property
    def hyperparameters(self):
        prior = self.posterior.prior
        return {name: prior.hyperparameter(name) for name in prior.hyperparameters}

    def to_state(self):
        return self.posterior, self.columns, self.path

    @classmethod
    def from_state(cls, state, arrays):
        return cls(*state, arrays)
