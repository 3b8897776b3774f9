"""The parameters reported to users, one class each: their estimates, responses to perturbations, covariances.

A perturbation of the posterior moves its coefficients beta, (..., D) (`information.observed_information`).
Every target depends on one block of them: log weights and weights on the intercepts, means on the linear
coefficients, precisions and covariances on the quadratic ones, degrees of freedom of Student's t components
on the coefficients of their logarithms; the covariances of these components on the last two. With J the
derivative of targets in beta, their LRVB covariance is J M^-1 J' plus an excess, Cov_q - J R J': the part of
q's own covariance that is not a linear function of the coefficients. Only functions of the weights and, under
joint factors, the means (whose distribution is then a Student t) have an excess.

The functions at the end, such as `covariance`, compute it. They take as M any object with
``covariance_root(coordinates)``, an array Y of shape (n, m) with Y' Y = M^-1 at these coordinates: the
observed information for linear response, the complete information with q's own degrees of freedom for
mean-field theory.

A new target is one class derived from `Target`, and one line in `TARGETS`.
"""

import itertools
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag, lstsq

from sklearn_lrvb.exponential_families.special_functions import (
    beta_quantile,
    gamma_quantile,
    log_normal_quantile,
    negative_gamma_quantile,
    normal_quantile,
    reciprocal_gamma_quantile,
)
from sklearn_lrvb.row_blocks import batches, slices
from sklearn_lrvb.symmetric_matrices import symmetrized

_JACOBIAN_SIZE = 256  # Number of coefficients up to which one matrix for several units is faster.
_COORDINATES_AT_ONCE = 4096  # Those of the root that `variance` holds in memory: 128 MB if it is square.


class Target(ABC):
    """One of the parameters reported to users, at one posterior.

    Its flat form (d,) has every entry once, component by component. Its other form is that of the estimator's
    attribute, where a symmetric matrix has the entries off its diagonal twice. A unit is a component, or a
    precision group for targets that depend on quadratic coefficients.

    Parameters
    ----------
    posterior : VariationalPosterior
    origin : (P,), the point from which the posterior's means are measured

    Attributes
    ----------
    name : str, the name by which users ask for the target, such as "means" for the attribute `means_`
    entry_name : str, the beginning of an entry's label, such as "mean"
    block : {"intercept", "linear", "quadratic", "tail"}, the coefficients on which the target depends
    n_feature_axes : {0, 1, 2}, number of features that index an entry of a component
    n_units, width : int, number of units, and of the coefficients of each
    couples_units : bool, whether entries depend on the coefficients of other units than their own
    quantile : function of `special_functions`, the family of credible intervals (`margins`)
    """

    name: str
    entry_name: str
    block: str
    n_feature_axes = 0
    couples_units = False
    quantile = staticmethod(normal_quantile)

    def __init__(self, posterior, origin):
        self.posterior = posterior
        self.origin = origin
        self.structure = structure = posterior.structure
        self.n_units, self.width = {
            "intercept": (structure.n_labels, 1),
            "linear": (structure.n_components, structure.n_features),
            "quadratic": (structure.n_groups, structure.n_quadratic),
            "tail": (structure.n_tails, 1),
        }[self.block]

    # Methods that every target defines.

    @abstractmethod
    def value(self):
        """Its estimate at q, in the shape of the attribute."""

    @abstractmethod
    def response(self, coefficients, units=slice(None)):
        """d target, given changes of some units' coefficients: (..., units, width) -> (..., flat entries)."""

    @abstractmethod
    def flat(self, values):
        """Every entry once: (*shape of the attribute) -> (d,)."""

    @abstractmethod
    def shaped(self, flat):
        """Inverse of `flat`: (..., d) -> (..., *shape of the attribute)."""

    @abstractmethod
    def subscripts(self, feature_names):
        """Component and features of every flat entry, such as "0,x1": (d,) of str."""

    @abstractmethod
    def flat_index(self, component, row, column):
        """Position in the flat form of a component's entry at features ``row`` and ``column``."""

    # Methods by those above, which a target may override.

    @property
    def size(self):
        """Number of flat entries, d."""
        return self.n_units * self.width

    def flat_value(self):
        """`value` with every entry once, (d,)."""
        return self.flat(self.value())

    def flat_indices(self):
        """Position in the flat form of every entry of the attribute, int array of its shape."""
        return self.shaped(np.arange(self.size)).astype(np.intp)

    def labels(self, feature_names):
        """Names of the flat entries, such as "mean[0,x1]"."""
        return [f"{self.entry_name}[{subscript}]" for subscript in self.subscripts(feature_names)]

    def on_diagonal(self):
        """The flat entries whose family is `quantile`; those off a diagonal are normal: bool (d,)."""
        return np.ones(self.size, dtype=bool)

    def counts(self):
        """Expected number of rows of the component, or of all that share it, of each flat entry, (d,)."""
        counts = self.posterior.label_counts if self.block == "intercept" else self.posterior.counts
        if self.block == "quadratic":
            counts = self.structure.per_group(counts)
        if self.block == "tail":
            counts = self.posterior.tails.by_tail(counts)
        return np.repeat(counts, self.size // self.n_units)

    def informing_counts(self):
        """Expected number of rows that inform each flat entry, (d,)."""
        return self.counts()

    def excess_with(self, other):
        """Cov_q - J R J' between this target and another, (d, d of the other), or the number 0."""
        return 0.0

    def excess_variance(self):
        """Diagonal of the excess of this target with itself, (d,), or the number 0."""
        return 0.0

    def beyond_coefficients(self, concentration, intercepts):
        """d target under changes of the prior, less its response to the changes of the coefficients.

        Parameters
        ----------
        concentration : (n,), changes of the weights' prior concentration
        intercepts : (n, L), direct effects of all changed hyperparameters on the intercepts

        Returns
        -------
        array (n, d)
        """
        return np.zeros((len(intercepts), self.size))

    # The derivative J as a linear map, in batches that fit into memory.

    def coordinates(self, units=slice(None)):
        """Coordinates (of D) of the coefficients of some units, unit by unit."""
        block = self.structure.coefficient_blocks[self.block]
        return np.arange(block.start, block.stop).reshape(self.n_units, self.width)[units].ravel()

    def unit_batches(self, n_coordinates=None):
        """Slices of units with at most ``n_coordinates``, or one unit; all units where they are coupled.

        None is the number for which a root of the covariance is in memory at once.
        """
        n_coordinates = n_coordinates or _COORDINATES_AT_ONCE
        at_once = self.n_units if self.couples_units else max(1, n_coordinates // self.width)
        return slices(self.n_units, at_once)

    @property
    def n_coordinates_at_once(self):
        """Largest number of coordinates of a root in `unit_batches`."""
        return self.unit_batches()[0].stop * self.width

    def responses(self, coefficients):
        """J beta of some beta: (n, D) -> (n, d)."""
        return self.unit_responses(coefficients[:, self.coordinates()])

    def unit_responses(self, rows, units=slice(None)):
        """J beta of some units, from their coefficients in the order of `coordinates`: (n, m) -> (n, d)."""
        return np.concatenate(list(self.response_batches(rows, units)))

    def response_batches(self, rows, units=slice(None)):
        """Yield `unit_responses` in batches of rows."""
        n_units = len(range(self.n_units)[units])
        bytes_per_row = 8 * n_units * (self.posterior.n_features + 1) ** 2
        for batch in batches(len(rows), bytes_per_row):
            yield self.response(rows[batch].reshape(-1, n_units, self.width), units)

    def transposed_responses(self, combinations):
        """J' of linear combinations of the flat target: (n, d) -> (D, n)."""
        found = np.zeros((self.structure.n_coefficients, len(combinations)))
        n_entries = self.size // self.n_units
        for units in self.unit_batches(_JACOBIAN_SIZE):
            some = combinations[:, units.start * n_entries : units.stop * n_entries]
            if some.any():
                coordinates = self.coordinates(units)
                responses = self.unit_responses(np.eye(len(coordinates)), units) @ some.T
                np.add.at(found, coordinates, responses)  # Units may share coefficients.
        return found


class WeightTarget(Target):
    """A function of the mixture weights, which depends on the coefficients through the expected counts.

    The weight of the background, if there is one, is the last entry.
    """

    block = "intercept"
    couples_units = True

    @property
    @abstractmethod
    def count_jacobian(self):
        """d target / d counts, (d, L)."""

    @abstractmethod
    def concentration_sensitivity(self):
        """d target / d prior concentration at fixed counts, (d,)."""

    def response(self, coefficients, units=slice(None)):
        return self.posterior.count_response(coefficients[..., 0]) @ self.count_jacobian.T

    def flat(self, values):
        return values

    def shaped(self, flat):
        return flat

    def subscripts(self, feature_names):
        names = [f"{k}" for k in range(self.posterior.n_components)]
        return [*names, "noise"] if self.structure.has_background else names

    def flat_index(self, component, row, column):
        return component

    def informing_counts(self):
        """As for every target, but rows do not inform the weight of a single component."""
        return self.counts() if self.size > 1 else np.zeros(1)

    def beyond_coefficients(self, concentration, intercepts):
        # The prior's direct effect on the intercepts does not change the counts.
        direct = np.outer(concentration, self.concentration_sensitivity())
        return direct - self.response(intercepts[..., None])

    @cached_property
    def log_weight_jacobian(self):
        """d target / d E log pi, (d, L)."""
        covariance = self.posterior.log_weight_covariance
        scale = np.sqrt(np.diag(covariance))
        scale = np.where(scale > 0, scale, 1.0)  # One component has V_pi = 0.
        scaled = lstsq(covariance / np.outer(scale, scale), self.count_jacobian.T / scale[:, None])[0]
        return scaled.T / scale

    def excess_with(self, other):
        """A C (V_pi + C)^-1 V_pi B': the excess of log pi between the two derivatives A and B in E log pi.

        The last factors, V_pi B', are the other target's derivative in the counts.
        """
        if not isinstance(other, WeightTarget):
            return 0.0
        per_count = self.posterior.count_response(self.posterior.intercept_excess)
        return self.log_weight_jacobian @ per_count @ other.count_jacobian.T

    def excess_variance(self):
        return np.diag(self.excess_with(self))


class LogWeights(WeightTarget):
    """E log pi."""

    name = "log_weights"
    entry_name = "log_weight"
    quantile = staticmethod(negative_gamma_quantile)

    def value(self):
        return self.posterior.expectations.log_weights

    @property
    def count_jacobian(self):
        return self.posterior.log_weight_covariance

    @property
    def log_weight_jacobian(self):
        return np.eye(self.size)

    def concentration_sensitivity(self):
        return self.posterior.prior.weights.expected_log_sensitivity(self.posterior.label_counts)


class Weights(WeightTarget):
    """E pi, with the variance of the delta method."""

    name = "weights"
    entry_name = "weight"
    quantile = staticmethod(beta_quantile)

    def value(self):
        return self.posterior.prior.weights.mean(self.posterior.label_counts)

    @cached_property
    def count_jacobian(self):
        return self.posterior.prior.weights.mean_jacobian(self.posterior.label_counts)

    def concentration_sensitivity(self):
        return self.posterior.prior.weights.mean_sensitivity(self.posterior.label_counts)


class Means(Target):
    """E mu."""

    name = "means"
    entry_name = "mean"
    block = "linear"
    n_feature_axes = 1

    def value(self):
        return self.origin + self.posterior.centred_means

    def response(self, coefficients, units=slice(None)):
        covariance_cholesky = self.structure.per_component(self.posterior.covariance_cholesky)[units]
        return self.flat(self.structure.transformed(covariance_cholesky, coefficients))

    def flat(self, values):
        return values.reshape(*values.shape[:-2], -1)

    def shaped(self, flat):
        return flat.reshape(*flat.shape[:-1], *self.posterior.centred_means.shape)

    def subscripts(self, feature_names):
        return [f"{k},{name}" for k in range(self.posterior.n_components) for name in feature_names]

    def flat_index(self, component, row, column):
        return component * self.posterior.n_features + row

    def excess_of_components(self):
        """Excess of every mean's Student t over the normal covariance, (K, P, P)."""
        posterior, structure = self.posterior, self.structure
        if posterior.prior.independent:
            return np.zeros((self.n_units, self.width, self.width))
        factor = structure.wisharts.mean_excess_factor(posterior.effective_degrees_of_freedom)
        covariances = structure.dense(structure.gram(posterior.covariance_cholesky))
        return (factor / posterior.mean_precision)[:, None, None] * covariances

    def excess_with(self, other):
        return block_diag(*self.excess_of_components()) if isinstance(other, Means) else 0.0

    def excess_variance(self):
        return np.einsum("kpp->kp", self.excess_of_components()).ravel()


class MatrixTarget(Target):
    """A symmetric matrix, or its diagonal alone, for every precision group."""

    block = "quadratic"
    n_feature_axes = 2

    def flat(self, values):
        return self.structure.unique_entries(self.structure.by_group(values))

    def shaped(self, flat):
        return self.structure.reported(self.structure.from_unique_entries(flat))

    def subscripts(self, feature_names):
        return self.structure.entry_labels(feature_names)

    def flat_index(self, component, row, column):
        structure = self.structure
        by_group = structure.from_unique_entries(np.arange(self.size))
        positions = by_group[structure.precision_group(component)].astype(np.intp)
        if positions.ndim == 2:
            return int(positions[row, column])
        if row != column:
            raise ValueError(
                f"target={self.name!r} has no entries off the diagonal under this covariance_type: feature "
                f"must be one integer, got {(row, column)!r}."
            )
        return int(np.broadcast_to(positions, structure.n_features)[row])

    def on_diagonal(self):
        structure = self.structure
        identities = np.broadcast_to(structure.identity, (self.n_units, *structure.identity.shape))
        return structure.unique_entries(identities) > 0


class Precisions(MatrixTarget):
    """E Lambda."""

    name = "precisions"
    entry_name = "precision"
    quantile = staticmethod(gamma_quantile)

    def value(self):
        structure = self.structure
        maps = structure.transposed(self.posterior.whiteners)
        return structure.reported(structure.gram(maps))

    def response(self, coefficients, units=slice(None)):
        changes = self.structure.precision_response(coefficients, self.posterior.whiteners[units])
        return self.structure.unique_entries(changes)


class Scales(MatrixTarget):
    """(E Lambda)^-1, with the variance of the delta method; credible intervals are those of `margins`.

    They are the scale matrices of Student's t components, and the covariances of normal ones.
    """

    name = "scales"
    entry_name = "scale"
    quantile = staticmethod(reciprocal_gamma_quantile)

    def value(self):
        return self.structure.reported(self.structure.gram(self.posterior.covariance_cholesky))

    def response(self, coefficients, units=slice(None)):
        changes = self.structure.covariance_response(coefficients, self.posterior.covariance_cholesky[units])
        return self.structure.unique_entries(changes)


class NoCovarianceError(ValueError):
    """A component has no covariance; the argument is a sentence that says which, and why."""

    @classmethod
    def of(cls, which, degrees_of_freedom):
        """The error about "Component 0", say, and its degrees of freedom in words."""
        return cls(
            f"{which} has no covariance: it has {degrees_of_freedom} degrees of freedom, and Student's t has "
            "an infinite variance with two or fewer."
        )

    def __str__(self):
        return f"{self.args[0]} Ask for target='scales', the scale matrices (scales_), which always exist."


class Covariances(Scales):
    """(E Lambda)^-1; of Student's t components times nu/(nu - 2), and none where nu is at most two."""

    name = "covariances"
    entry_name = "covariance"

    def __init__(self, posterior, origin):
        super().__init__(posterior, origin)
        self.follows_tails = self.structure.n_tails > 0
        self.width += self.follows_tails

    @property
    def size(self):
        return self.n_units * self.structure.n_quadratic

    def factors(self):
        """The covariances in units of the scales, by group: (S,).

        Raises
        ------
        NoCovarianceError
            Where a component has at most two degrees of freedom.
        """
        tails = self.posterior.tails
        if tails is None:
            return np.ones(self.n_units)
        if tails.nu.min() <= 2.0:
            raise NoCovarianceError.of(f"Component {tails.nu.argmin()}", f"{tails.nu.min():.3g}")
        return (tails.nu / (tails.nu - 2.0))[: self.n_units]

    def value(self):
        factors = self.factors()[self.structure.statistic_axes]
        return self.structure.reported(factors * self.structure.gram(self.posterior.covariance_cholesky))

    def response(self, coefficients, units=slice(None)):
        factors = np.repeat(self.factors()[units], self.structure.n_quadratic)
        if not self.follows_tails:
            return factors * super().response(coefficients, units)
        of_scales = super().response(coefficients[..., :-1], units)
        # d log(nu/(nu - 2)) / d log nu
        slopes = -2.0 / (self.posterior.tails.nu[: self.n_units][units] - 2.0)
        values = self.structure.gram(self.posterior.covariance_cholesky)[units]
        of_tails = (coefficients[..., -1] * slopes)[..., None] * self.structure.entries(values)
        return factors * (of_scales + of_tails.reshape(of_scales.shape))

    def coordinates(self, units=slice(None)):
        own = super().coordinates
        if not self.follows_tails:
            return own(units)
        blocks = self.structure.coefficient_blocks
        quadratic = np.arange(blocks["quadratic"].start, blocks["quadratic"].stop)
        tails = np.resize(np.arange(blocks["tail"].start, blocks["tail"].stop), self.n_units)
        return np.column_stack([quadratic.reshape(self.n_units, -1), tails])[units].ravel()


class LogTails(Target):
    """log nu of Student's t components, where nu is fitted."""

    name = "log_tails"
    entry_name = "log_tail"
    block = "tail"

    def value(self):
        return self.shaped(np.log(self.posterior.tails.fitted))

    def response(self, coefficients, units=slice(None)):
        return coefficients[..., 0]

    def flat(self, values):
        n_draw_axes = np.ndim(values) - len(self.structure.tails_shape)
        return np.reshape(values, (*np.shape(values)[:n_draw_axes], -1))

    def shaped(self, flat):
        return flat if self.structure.tails_shape else flat[..., 0]

    def subscripts(self, feature_names):
        return [f"{k}" for k in range(self.n_units)] if self.structure.tails_shape else ["all"]

    def flat_index(self, component, row, column):
        return component if self.structure.tails_shape else 0


class Tails(LogTails):
    """nu, with the variance of the delta method."""

    name = "tails"
    entry_name = "tail"
    quantile = staticmethod(log_normal_quantile)

    def value(self):
        return self.shaped(self.posterior.tails.fitted)

    def response(self, coefficients, units=slice(None)):
        return self.posterior.tails.fitted[units] * coefficients[..., 0]


# theta, the parameters of the model, in the order of `posterior_names_` and of every covariance of theta. The
# last ones are those of mixtures with fitted degrees of freedom alone.
PARAMETERS = tuple(target.name for target in (LogWeights, Means, Precisions))
_PARAMETERS_OF_TAILS = (LogTails.name,)

TARGETS = {
    target.name: target
    for target in (LogWeights, Means, Precisions, Weights, Covariances, Scales, LogTails, Tails)
}
_REPORTED = ("weights", "log_weights", "means", "precisions", "scales", "covariances", "tails")

# Targets that not every mixture has, and the arguments with which it has them.
_NEEDS = {"scales": "a number or 'student'", "log_tails": "'student'", "tails": "'student'"}


def target_class(name, also=()):
    """The class of a target, by the name that users give.

    Parameters
    ----------
    name : str
    also : tuple of str, other values that the caller accepts, for the error message

    Raises
    ------
    ValueError
        There is no target of this name.
    """
    if not isinstance(name, str) or name not in TARGETS:
        raise ValueError(f"target must be one of {', '.join((*TARGETS, *also))}, got {name!r}.")
    return TARGETS[name]


class Targets:
    """The targets at one posterior, by name, as in ``Targets(posterior, origin)["means"].value()``.

    Parameters
    ----------
    posterior : VariationalPosterior
    origin : (P,), the point from which the posterior's means are measured
    """

    def __init__(self, posterior, origin):
        self.posterior = posterior
        self.origin = origin
        self._found = {}

    def __reduce__(self):
        # A pickle contains neither the targets nor their cached values.
        return Targets, (self.posterior, self.origin)

    def __getitem__(self, name):
        target = target_class(name)
        if not self._has(name):
            raise ValueError(f"target={name!r} belongs to fits with tails={_NEEDS[name]}.")
        if target not in self._found:
            self._found[target] = target(self.posterior, self.origin)
        return self._found[target]

    def _has(self, name):
        structure = self.posterior.structure
        return name not in _NEEDS or bool(structure.has_scales if name == "scales" else structure.n_tails)

    @property
    def names(self):
        """Names of all targets that the mixture has, list of str."""
        return [name for name in TARGETS if self._has(name)]

    @property
    def reported(self):
        """Names of those that a table has where they exist, list of str."""
        return [name for name in _REPORTED if self._has(name)]

    @property
    def theta(self):
        """The targets that make up theta, in its order."""
        return [self[name] for name in self.parameters]

    @property
    def parameters(self):
        """Their names, tuple of str."""
        return PARAMETERS + _PARAMETERS_OF_TAILS * (self.posterior.structure.n_tails > 0)


def joint_coordinates(targets):
    """Coordinates (of D) of all coefficients on which some targets depend, ascending."""
    return np.unique(np.concatenate([target.coordinates() for target in targets]))


def covariance(targets, coordinates, information, with_excess=True):
    """Joint covariance of the flat entries of all targets, in their order: (d, d), exactly symmetric.

    Parameters
    ----------
    targets : sequence of Target
    coordinates : int array, their `joint_coordinates`
    information : ObservedInformation, CompleteInformation or SamplingVariation
    with_excess : bool, default=True
        Whether the excess is added: not where estimates vary, and not parameters.
    """
    root = information.covariance_root(coordinates)
    columns = [np.searchsorted(coordinates, target.coordinates()) for target in targets]
    parts = [target.unit_responses(root[:, some]) for target, some in zip(targets, columns, strict=True)]
    responses = np.concatenate(parts, axis=1)
    joint = responses.T @ responses
    if not with_excess:
        return joint
    stops = np.cumsum([target.size for target in targets])
    places = [slice(stop - target.size, stop) for stop, target in zip(stops, targets, strict=True)]
    for i, j in itertools.combinations_with_replacement(range(len(targets)), 2):
        excess = targets[i].excess_with(targets[j])
        if i == j and np.any(excess):
            joint[places[i], places[i]] += symmetrized(excess)
        elif np.any(excess):
            joint[places[i], places[j]] += excess
            joint[places[j], places[i]] += excess.T
    return joint


def variance(target, information, with_excess=True):
    """Diagonal of `covariance` for one target, without the matrix, (d,)."""
    variances = []
    for units in target.unit_batches():
        coordinates, place = np.unique(target.coordinates(units), return_inverse=True)
        root = information.covariance_root(coordinates)[:, place]
        variances.append(
            sum(np.square(responses).sum(axis=0) for responses in target.response_batches(root, units))
        )
    if not with_excess:
        return np.concatenate(variances)
    # The excess is a difference, which may round to less than zero where a weight is certain to all digits.
    return np.maximum(np.concatenate(variances) + target.excess_variance(), 0.0)
