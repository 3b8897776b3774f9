"""The parameters reported to users, one class each: their estimates, responses to perturbations, covariances.

A perturbation of the posterior moves its coefficients beta, (..., D) (`MixtureInformation.observed`).
Every target depends on some of them. With J the derivative of targets in beta, their LRVB covariance is
J M^-1 J' plus an excess, Cov_q - J R J': the part of q's own covariance that is not a linear function of the
coefficients.

Weights are here, since all mixtures have them: they depend on the L intercepts, which come first. A model
adds its own targets, and its `Targets`.

The functions at the end, such as `covariance`, compute it. They take as M any object with
``covariance_root(coordinates)``, an array Y of shape (n, m) with Y' Y = M^-1 at these coordinates: the
observed information for linear response, the complete information of q itself for mean-field theory.
"""

import difflib
import functools
import itertools
from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import lstsq

from sklearn_lrvb.distributions.special_functions import (
    beta_quantile,
    negative_gamma_quantile,
    normal_quantile,
)
from sklearn_lrvb.rows import batches, slices
from sklearn_lrvb.sampling.draws import Entries
from sklearn_lrvb.symmetric_matrices import symmetrized

_JACOBIAN_SIZE = 256  # Number of coefficients up to which one matrix for several units is faster.
_COORDINATES_AT_ONCE = 1024  # Those of the root that `variance` holds in memory, of one unit at least.


class Target(ABC):
    """One of the parameters reported to users, at one posterior.

    Its flat form (d,) has every entry once, component by component. Its other form is that of the estimator's
    attribute, where a symmetric matrix has the entries off its diagonal twice. A unit is what has
    coefficients of its own: a component, as a rule.

    Parameters
    ----------
    posterior : posterior of a mixture
    origin : (P,), the point from which the posterior's means are measured

    Attributes
    ----------
    name : str, the name by which users ask for the target, such as "means" for the attribute `means_`
    entry_name : str, the beginning of an entry's label, such as "mean"
    block : str, the coefficients on which the target depends; those of the weights are the "intercept"
    n_feature_axes : {0, 1, 2}, number of features that index an entry of a component
    n_units, width, n_entries : int, number of units, of the coefficients of each, and of its flat entries
    couples_units : bool, whether entries depend on the coefficients of other units than their own
    quantile : function of `special_functions`, the family of credible intervals (`margins`)
    has_own_margins : bool, whether margins are those of the model (`MixtureModel.own_margins`)
    has_diagonal : bool, whether there are entries of two features that are the same
    covariance_gradient : (d, ...) or 0.0, derivatives in C0, if it is learned, for given coefficients
    """

    name: str
    entry_name: str
    block: str
    n_feature_axes = 0
    couples_units = False
    has_own_margins = False
    has_diagonal = True
    covariance_gradient = 0.0
    quantile = staticmethod(normal_quantile)

    def __init__(self, posterior, origin):
        self.posterior = posterior
        self.origin = origin
        self.n_units, self.width = posterior.block_shapes[self.block]
        self.n_entries = self.width

    # Methods that every target defines.

    @abstractmethod
    def value(self):
        """Its estimate at q, in the shape of the attribute."""

    @abstractmethod
    def response(self, coefficients, units=slice(None)):
        """d target, given changes of some units' coefficients: (..., units, width) -> (..., flat entries)."""

    # Methods that a target may override: the flat form, and the names of its entries.

    @property
    def shape(self):
        """Shape of an attribute that has every entry once, tuple of int."""
        return (self.n_units, self.n_entries) if self.n_feature_axes else (self.size,)

    @property
    def size(self):
        """Number of flat entries, d."""
        return self.n_units * self.n_entries

    def flat(self, values):
        """Every entry once: (*shape of the attribute) -> (d,)."""
        return np.ravel(values)

    def shaped(self, flat):
        """Inverse of `flat`: (..., d) -> (..., *shape of the attribute)."""
        return flat.reshape((*flat.shape[:-1], *self.shape))[()]  # A number where there are no axes.

    def flat_value(self):
        """`value` with every entry once, (d,)."""
        return self.flat(self.value())

    def flat_indices(self):
        """Position in the flat form of every entry of the attribute, int array of its shape."""
        return self.shaped(np.arange(self.size)).astype(np.intp)

    def unit_names(self):
        """How labels name the units, list of str: empty where one unit is of all components."""
        return [str(unit) for unit in range(self.n_units)]

    def entry_names(self, feature_names):
        """How labels name the entries of a unit, list of str, such as "x0,x1"."""
        return [""]

    def entry_index(self, row, column):
        """Position among the entries of a unit of the one at features ``row`` and ``column``."""
        return 0

    def flat_index(self, component, row, column):
        """Position in the flat form of a component's entry at features ``row`` and ``column``."""
        unit = component if self.n_units > 1 else 0
        return unit * self.n_entries + self.entry_index(row, column)

    def labels(self, feature_names):
        """Names of the flat entries, such as "mean[0,x1]"; features are quoted if another is named so."""

        def named(names):
            pairs = itertools.product(self.unit_names(), self.entry_names(names))
            places = (",".join(filter(None, pair)) for pair in pairs)
            return [f"{self.entry_name}[{place}]" if place else self.entry_name for place in places]

        return distinct(named(feature_names), lambda: named([repr(name) for name in feature_names]))

    # The same, for error bars.

    def on_diagonal(self):
        """The flat entries whose family is `quantile`; those off a diagonal are normal: bool (d,)."""
        return np.ones(self.size, dtype=bool)

    def families(self):
        """The families of credible intervals (`margins`): pairs of flat entries, bool (d,), and quantiles."""
        on_diagonal = self.on_diagonal()
        return (on_diagonal, self.quantile), (~on_diagonal, normal_quantile)

    def unit_counts(self):
        """Expected number of rows of every unit, (n_units,): of all components where there is one unit."""
        counts = self.posterior.counts
        return counts if len(counts) == self.n_units else counts.sum(keepdims=True)

    def counts(self):
        """Expected number of rows of the component, or of all that share it, of each flat entry, (d,)."""
        return np.repeat(self.unit_counts(), self.n_entries)

    def is_reported(self, min_count):
        """Which entries a table has where components with fewer expected rows are left out: bool (d,)."""
        return self.counts() >= min_count

    def has_moments(self, counts):
        """Whether the flat entries have a mean, and a variance, given the components' rows: bool (2, d).

        Parameters
        ----------
        counts : (n, K), which may be less than zero; all of the n are asked to be enough
        """
        return np.ones((2, self.size), dtype=bool)

    def is_positive(self):
        """Which flat entries are positive, so that their mean is infinite where there is none: bool (d,)."""
        return np.any([where & (family is not normal_quantile) for where, family in self.families()], axis=0)

    def excess_with(self, other):
        """Cov_q - J R J' between this target and another, (d, d of the other), or the number 0."""
        return 0.0

    def excess_variance(self):
        """Diagonal of the excess of this target with itself, (d,), or the number 0."""
        excess = self.excess_with(self)
        return np.diag(excess) if np.ndim(excess) else excess

    def beyond_coefficients(self, changes, some):
        """d target under some changes of the prior, less its response to the coefficients: (n, d).

        Parameters
        ----------
        changes : what `MixtureModel.changes_of_prior` returns
        some : slice of the changes
        """
        return np.zeros((len(changes.concentration[some]), self.size))

    # The derivative J as a linear map, in batches that fit into memory.

    def coordinates(self, units=slice(None)):
        """Coordinates (of D) of the coefficients of some units, unit by unit."""
        block = self.posterior.coefficient_blocks[self.block]
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
        # The matrix behind a symmetric one's entries has twice as many numbers.
        for batch in batches(len(rows), 8 * n_units * 2 * max(self.width, self.n_entries)):
            yield self.response(rows[batch].reshape(-1, rows.shape[1] // self.width, self.width), units)

    def transposed_responses(self, combinations):
        """J' of linear combinations of the flat target: (n, d) -> (D, n)."""
        transposed = np.zeros((self.posterior.n_coefficients, len(combinations)))
        for units in self.unit_batches(_JACOBIAN_SIZE):
            some = combinations[:, units.start * self.n_entries : units.stop * self.n_entries]
            if some.any():
                coordinates = self.coordinates(units)
                responses = self.unit_responses(np.eye(len(coordinates)), units) @ some.T
                np.add.at(transposed, coordinates, responses)  # Units may share coefficients.
        return transposed


def distinct(labels, precise):
    """Labels, of which those that another thing has before are replaced: list of str.

    Parameters
    ----------
    labels : list of str
    precise : callable () -> list of str, longer labels of the same things
    """
    first = {label: place for place, label in reversed(list(enumerate(labels)))}
    if len(first) == len(labels):
        return labels
    pairs = zip(labels, precise(), strict=True)
    return [label if first[label] == place else longer for place, (label, longer) in enumerate(pairs)]


class WeightTarget(Target):
    """A function of the mixture weights, which depends on the coefficients through the expected counts.

    The weight of the noise component, if there is one, is the last entry.
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
        intercepts = self.posterior.own_intercepts(coefficients[..., 0])
        return self.posterior.count_response(intercepts) @ self.count_jacobian.T

    def coordinates(self, units=slice(None)):
        return np.append(super().coordinates(units), self.posterior.weight_coordinates[self.n_units :])

    def unit_names(self):
        names = [str(k) for k in range(self.posterior.n_components)]
        return names if len(names) == self.n_units else [*names, "noise"]

    def unit_counts(self):
        return self.posterior.label_counts

    def is_reported(self, min_count):
        """As for every target, but noise is reported whether it has rows or not."""
        is_noise = np.arange(self.size) >= self.posterior.n_components
        return (self.counts() >= min_count) | is_noise

    def beyond_coefficients(self, changes, some):
        # The prior's direct effect on the intercepts does not change the counts.
        direct = np.outer(changes.concentration[some], self.concentration_sensitivity())
        counts = self.posterior.count_response(changes.intercepts[some])
        return direct - counts @ self.count_jacobian.T

    @cached_property
    def log_weight_jacobian(self):
        """d target / d E log pi, (d, L)."""
        return self._per_log_weight(self.count_jacobian)

    def _per_log_weight(self, per_count):
        """Derivatives in E log pi, from those in the counts: (d, L)."""
        covariance = self.posterior.log_weight_covariance
        scale = np.sqrt(np.diag(covariance))
        scale = np.where(scale > 0, scale, 1.0)  # One component has V_pi = 0.
        scaled = lstsq(covariance / np.outer(scale, scale), per_count.T / scale[:, None])[0]
        return scaled.T / scale

    def excess_with(self, other):
        """A C (V_pi + C)^-1 V_pi B': the excess of log pi between the two derivatives A and B in E log pi.

        The last factors, V_pi B', are the other target's derivative in the counts.
        """
        if not isinstance(other, WeightTarget):
            return 0.0
        per_count = self.posterior.count_response(self.posterior.intercept_excess)
        return self.log_weight_jacobian @ per_count @ other.count_jacobian.T


class LogWeights(WeightTarget):
    """E log pi of weights that are scaled to sum to one, as `weights_` are.

    Those of a broken stick sum to less, and the scale varies too.
    """

    name = "log_weights"
    entry_name = "log_weight"
    quantile = staticmethod(negative_gamma_quantile)

    def value(self):
        return self.posterior.prior.weights.expected_log_shares(self.posterior.label_counts)

    @cached_property
    def count_jacobian(self):
        return self.posterior.prior.weights.log_shares_jacobian(self.posterior.label_counts)

    @cached_property
    def log_weight_jacobian(self):
        if not self.count_jacobian.any():  # One component's weight is one.
            return np.zeros((self.size, self.size))
        # The Jacobian of the scale, which is zero under a Dirichlet prior.
        scale_jacobian = self.posterior.log_weight_covariance - self.count_jacobian
        return np.eye(self.size) - self._per_log_weight(scale_jacobian)

    def concentration_sensitivity(self):
        return self.posterior.prior.weights.log_shares_sensitivity(self.posterior.label_counts)


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


class Combination(Target):
    """What `Entries` name, as a target of one entry.

    Parameters
    ----------
    targets : Targets
    entries : Entries
    """

    entry_name = block = ""

    def __init__(self, targets, entries):
        self.posterior, self.name, self.n_units, self.n_entries = targets.posterior, entries.text, 1, 1
        self._terms = [(targets[name], entry, sign) for name, entry, sign in entries.terms]
        gradient = self._sum(lambda part, entry: part.transposed_responses(np.eye(1, part.size, entry))[:, 0])
        self._coordinates = np.flatnonzero(gradient) if gradient.any() else np.zeros(1, dtype=np.intp)
        self._gradient, self.width = gradient[self._coordinates], len(self._coordinates)

    def _sum(self, function):
        """The signed sum of a function of every target and entry."""
        return sum(sign * function(part, entry) for part, entry, sign in self._terms)

    def value(self):
        return np.array([self._sum(lambda part, entry: part.flat_value()[entry])])

    def response(self, coefficients, units=slice(None)):
        return coefficients[..., 0, :] @ self._gradient[:, None]

    def coordinates(self, units=slice(None)):
        return self._coordinates

    def labels(self, feature_names):
        return [self.name]

    def families(self):
        """The family of a single entry; a difference is normal."""
        if len(self._terms) > 1:
            return [(np.ones(1, dtype=bool), normal_quantile)]
        part, entry, _ = self._terms[0]
        return [(where[[entry]], quantile) for where, quantile in part.families()]

    def counts(self):
        return np.min([part.counts()[[entry]] for part, entry, _ in self._terms], axis=0)

    def has_moments(self, counts):
        return np.all([part.has_moments(counts)[:, [entry]] for part, entry, _ in self._terms], axis=0)

    def is_reported(self, min_count):
        return np.ones(1, dtype=bool)

    def excess_with(self, other):
        def row_of_excess(part, entry):
            excess = joint_excess(part, other)
            return excess[[entry]] if np.ndim(excess) else excess

        return self._sum(row_of_excess)

    def beyond_coefficients(self, changes, some):
        return self._sum(lambda part, entry: part.beyond_coefficients(changes, some)[:, [entry]])


def joint_excess(one, other):
    """`Target.excess_with`, where the other one may be a combination too: (d, d of the other), or 0."""
    if isinstance(other, Combination) and not isinstance(one, Combination):
        return np.transpose(other.excess_with(one))
    return one.excess_with(other)


def named_entries(text, targets, feature_names):
    """The entry of the parameters, or the difference of two, that a user names: Entries.

    Parameters
    ----------
    text : str, such as "weight[0]" or "mean[1,x0] - mean[0,x0]"
    targets : Targets
    feature_names : list of str

    Raises
    ------
    ValueError
        There is no such entry; the message lists similar ones.
    """
    places = {
        label: (name, entry)
        for name in targets.names
        for entry, label in enumerate(targets[name].labels(feature_names))
    }
    # Names of features may hold a minus, too.
    parts = text.split(" - ")
    splits = [(text,), *((" - ".join(parts[:i]), " - ".join(parts[i:])) for i in range(1, len(parts)))]
    for names in splits:
        names = [name.strip() for name in names]
        if all(name in places for name in names):
            terms = tuple((*places[name], sign) for name, sign in zip(names, (1.0, -1.0), strict=False))
            return Entries(" - ".join(names), terms)
    unknown = next((part.strip() for part in parts if part.strip() not in places), text)
    close = difflib.get_close_matches(unknown, places, 3, 0.0)
    raise ValueError(
        f"{unknown!r} names no parameter. Did you mean {', '.join(close)}? Names are those of "
        "the rows of posterior().summary(...); a difference is 'mean[1,x0] - mean[0,x0]'. Those of "
        "covariate_effects and outcome_differences need effects=."
    )


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


def target_class(table, name, also=()):
    """The class of a target, by the name that users give.

    Parameters
    ----------
    table : dict of the classes by their names
    name : str
    also : tuple of str, other values that the caller accepts, for the error message

    Raises
    ------
    ValueError
        There is no target of this name.
    """
    if not isinstance(name, str) or name not in table:
        close = difflib.get_close_matches(name, table, 1) if isinstance(name, str) else []
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"target must be one of {', '.join((*table, *also))}, got {name!r}.{meant}")
    return table[name]


class Targets:
    """The targets at one posterior, by name, as in ``Targets(posterior, origin)["means"].value()``.

    A model has a subclass with its targets.

    Parameters
    ----------
    posterior : posterior of a mixture
    origin : (P,), the point from which the posterior's means are measured

    Attributes
    ----------
    table : dict, the classes of all targets by the names that users give
    needs : dict, name of a target that not every mixture has -> the argument with which it has it
    parameters : tuple of str, theta, the parameters of the model in the order of every covariance of theta
    reported_names : tuple of str, those that a summary has where they exist
    """

    table: ClassVar[dict]
    needs: ClassVar[dict] = {}
    parameters: tuple
    reported_names: ClassVar[tuple]

    def __init__(self, posterior, origin):
        self.posterior = posterior
        self.origin = origin
        self._made = {}

    def __reduce__(self):
        # A pickle contains neither the targets nor their cached values.
        return type(self), (self.posterior, self.origin)

    def __getitem__(self, name):
        if isinstance(name, Entries):
            make = functools.partial(Combination, self, name)
        else:
            make = functools.partial(target_class(self.table, name), self.posterior, self.origin)
            if not self.has(name):
                raise ValueError(f"target={name!r} belongs to fits with {self.needs[name]}.")
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def has(self, name):
        """Whether the mixture has a target of the table."""
        return True

    def parts_of_direction(self, direction):
        """Where a direction (D,) mostly points: the name of a target, and shares of the components (K,)."""
        squares, places = np.square(direction), self.posterior.coefficients_of_labels
        name = max(self.theta, key=lambda target: squares[target.coordinates()].sum()).name
        n_sharing = np.bincount(np.concatenate(places), minlength=len(squares))
        shares = [(squares[place] / n_sharing[place]).sum() for place in places]
        return name, np.array(shares[: self.posterior.n_components])

    @property
    def names(self):
        """Names of all targets that the mixture has, list of str."""
        return [name for name in self.table if self.has(name)]

    @property
    def reported(self):
        """Names of those that a summary has where they exist, list of str."""
        return [name for name in self.reported_names if self.has(name)]

    @property
    def theta(self):
        """The targets that make up theta, in its order."""
        return [self[name] for name in self.parameters]


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
    stops = np.cumsum([target.size for target in targets])
    places = [slice(stop - target.size, stop) for stop, target in zip(stops, targets, strict=True)]
    columns = [np.searchsorted(coordinates, target.coordinates()) for target in targets]
    responses = np.empty((len(root), stops[-1]))
    for some in batches(len(root), 8 * 4 * len(coordinates)):
        for target, place, own in zip(targets, places, columns, strict=True):
            responses[some, place] = target.unit_responses(root[some][:, own])
    del root
    joint = responses.T @ responses
    if not with_excess:
        return joint
    for i, j in itertools.combinations_with_replacement(range(len(targets)), 2):
        excess = joint_excess(targets[i], targets[j])
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
