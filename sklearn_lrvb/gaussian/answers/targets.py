"""The parameters of normal components that are reported to users, one class each (`mixtures`).

Every target depends on one block of the coefficients beta: weights on the intercepts, means on the linear
coefficients, precisions and covariances on the quadratic ones, degrees of freedom of Student's t components
on the coefficients of their logarithms; the covariances of these components on the last two. Only functions
of the weights and, under joint factors, the means (whose distribution is then a Student t) have an excess
over J M^-1 J'.

A new target is one class derived from `GaussianTarget`, and one line in `TARGETS`.
"""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from scipy.linalg import block_diag

from sklearn_lrvb.answers.targets import (
    LogWeights,
    NoCovarianceError,
    Target,
    Targets,
    Weights,
)
from sklearn_lrvb.distributions.special_functions import (
    correlation_quantile,
    gamma_quantile,
    log_normal_quantile,
    reciprocal_gamma_quantile,
)
from sklearn_lrvb.rows import slices
from sklearn_lrvb.symmetric_matrices import upper_triangle


class GaussianTarget(Target):
    """A target of normal components, which depends on one block of the coefficients.

    A unit is a component, or a precision group for targets that depend on quadratic coefficients.

    Parameters are those of `Target`; ``block`` is one of {"linear", "quadratic", "tail"}.

    Attributes
    ----------
    freedom_needed : tuple of two int, or None where moments always exist
        The degrees of freedom of a Wishart matrix beyond its size, of which an entry needs more for its mean
        and for its variance.
    """

    freedom_needed: tuple[int, int] | None = None

    def has_moments(self, counts):
        if self.freedom_needed is None:
            return super().has_moments(counts)
        structure, prior = self.posterior.structure, self.posterior.prior
        rows = counts.sum(axis=1, keepdims=True) if structure.shares_precision else counts
        freedom = prior.degrees_of_freedom + structure.power * rows.min(axis=0)
        beyond = freedom - structure.wisharts.block_size
        by_group = np.stack([beyond > needed for needed in self.freedom_needed])
        return np.repeat(by_group, self.size // len(freedom), axis=1)

    def counts(self):
        counts = self.posterior.counts
        if self.block == "quadratic":
            counts = self.posterior.structure.per_group(counts)
        if self.block == "tail":
            counts = self.posterior.tails.by_tail(counts)
        return np.repeat(counts, self.size // self.n_units)

    @property
    def numbers_per_unit(self):
        return (self.posterior.n_features + 1) ** 2


class Means(GaussianTarget):
    """E mu."""

    name = "means"
    entry_name = "mean"
    freedom_needed = 0, 1
    block = "linear"
    n_feature_axes = 1

    def value(self):
        return self.origin + self.posterior.centred_means

    def response(self, coefficients, units=slice(None)):
        covariance_cholesky = self.posterior.structure.per_component(self.posterior.covariance_cholesky)[
            units
        ]
        return self.flat(self.posterior.structure.transformed(covariance_cholesky, coefficients))

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
        posterior, structure = self.posterior, self.posterior.structure
        if posterior.prior.independent:
            return np.zeros((self.n_units, self.width, self.width))
        factor = structure.wisharts.mean_excess_factor(posterior.effective_degrees_of_freedom)
        covariances = structure.dense(structure.gram(posterior.covariance_cholesky))
        return (factor / posterior.mean_precision)[:, None, None] * covariances

    def covariances_of_components(self, information):
        """LRVB covariance of each component's mean by itself, (K, P, P)."""
        covariances = self.excess_of_components()
        for k, units in enumerate(slices(self.n_units, 1)):
            root = information.covariance_root(self.coordinates(units))
            responses = self.unit_responses(root, units)
            covariances[k] += responses.T @ responses
        return covariances

    def excess_with(self, other):
        return block_diag(*self.excess_of_components()) if isinstance(other, Means) else 0.0

    def excess_variance(self):
        return np.einsum("kpp->kp", self.excess_of_components()).ravel()


class MatrixTarget(GaussianTarget):
    """A symmetric matrix, or its diagonal alone, for every precision group."""

    block = "quadratic"
    n_feature_axes = 2

    def flat(self, values):
        return self.posterior.structure.unique_entries(self.posterior.structure.by_group(values))

    def shaped(self, flat):
        return self.posterior.structure.reported(self.posterior.structure.from_unique_entries(flat))

    def subscripts(self, feature_names):
        return self.posterior.structure.entry_labels(feature_names)

    def flat_index(self, component, row, column):
        structure = self.posterior.structure
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

    def flat_positions(self):
        """Row times P plus column of the unique entries of a group: int array (Q,)."""
        n_features = self.posterior.n_features
        if self.posterior.structure.is_matrix:
            row, column = upper_triangle(n_features)
            return row * n_features + column
        return np.arange(self.posterior.structure.n_quadratic) * (n_features + 1)

    def on_diagonal(self):
        structure = self.posterior.structure
        identities = np.broadcast_to(structure.identity, (self.n_units, *structure.identity.shape))
        return structure.unique_entries(identities) > 0


class Precisions(MatrixTarget):
    """E Lambda."""

    name = "precisions"
    entry_name = "precision"
    quantile = staticmethod(gamma_quantile)

    def value(self):
        structure = self.posterior.structure
        maps = structure.transposed(self.posterior.whiteners)
        return structure.reported(structure.gram(maps))

    def response(self, coefficients, units=slice(None)):
        changes = self.posterior.structure.precision_response(coefficients, self.posterior.whiteners[units])
        return self.posterior.structure.unique_entries(changes)


class Scales(MatrixTarget):
    """(E Lambda)^-1, with the variance of the delta method; credible intervals are those of `margins`.

    They are the scale matrices of Student's t components, and the covariances of normal ones.
    """

    name = "scales"
    entry_name = "scale"
    has_own_margins = True
    freedom_needed = 1, 3
    quantile = staticmethod(reciprocal_gamma_quantile)

    def is_positive(self):
        return self.on_diagonal()

    def value(self):
        return self.posterior.structure.reported(
            self.posterior.structure.gram(self.posterior.covariance_cholesky)
        )

    def response(self, coefficients, units=slice(None)):
        changes = self.posterior.structure.covariance_response(
            coefficients, self.posterior.covariance_cholesky[units]
        )
        return self.posterior.structure.unique_entries(changes)


class Covariances(Scales):
    """(E Lambda)^-1; of Student's t components times nu/(nu - 2), and none where nu is at most two."""

    name = "covariances"
    entry_name = "covariance"

    def __init__(self, posterior, origin):
        super().__init__(posterior, origin)
        self.follows_tails = self.posterior.structure.n_tails > 0
        self.width += self.follows_tails

    @property
    def size(self):
        return self.n_units * self.posterior.structure.n_quadratic

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
        factors = self.factors()[self.posterior.structure.statistic_axes]
        return self.posterior.structure.reported(
            factors * self.posterior.structure.gram(self.posterior.covariance_cholesky)
        )

    def response(self, coefficients, units=slice(None)):
        factors = np.repeat(self.factors()[units], self.posterior.structure.n_quadratic)
        if not self.follows_tails:
            return factors * super().response(coefficients, units)
        of_scales = super().response(coefficients[..., :-1], units)
        # d log(nu/(nu - 2)) / d log nu
        slopes = -2.0 / (self.posterior.tails.nu[: self.n_units][units] - 2.0)
        values = self.posterior.structure.gram(self.posterior.covariance_cholesky)[units]
        of_tails = (coefficients[..., -1] * slopes)[..., None] * self.posterior.structure.entries(values)
        return factors * (of_scales + of_tails.reshape(of_scales.shape))

    def coordinates(self, units=slice(None)):
        own = super().coordinates
        if not self.follows_tails:
            return own(units)
        blocks = self.posterior.structure.coefficient_blocks
        quadratic = np.arange(blocks["quadratic"].start, blocks["quadratic"].stop)
        tails = np.resize(np.arange(blocks["tail"].start, blocks["tail"].stop), self.n_units)
        return np.column_stack([quadratic.reshape(self.n_units, -1), tails])[units].ravel()


class FunctionOfCovariances(GaussianTarget):
    """A function of every precision group's covariance matrix, by the delta method.

    A subclass defines `of_entries`, `changes_of` and the target's shape.

    Attributes
    ----------
    of : Covariances or Scales, of which it is a function
    n_per_unit : int, number of entries of a group
    """

    block = "quadratic"
    source: ClassVar[type[Scales]] = Covariances

    def __init__(self, posterior, origin):
        super().__init__(posterior, origin)
        self.of = self.source(posterior, origin)
        self.width = self.of.width
        self._row, self._column = np.divmod(self.of.flat_positions(), posterior.n_features)

    @abstractmethod
    def of_entries(self, entries):
        """Its values, given unique entries of the matrices: (..., units, Q) -> (..., units, n_per_unit)."""

    @abstractmethod
    def changes_of(self, changes, entries):
        """First-order changes of `of_entries` by those of the entries, both (..., units, Q)."""

    @property
    def size(self):
        return self.n_units * self.n_per_unit

    def coordinates(self, units=slice(None)):
        return self.of.coordinates(units)

    def of_flat(self, flat):
        """Its flat values, given those of what it is a function of: (n, d) -> (n, size)."""
        return self.of_entries(flat.reshape(len(flat), self.n_units, -1)).reshape(len(flat), -1)

    def value(self):
        return self.shaped(self.of_flat(self.of.flat_value()[None])[0])

    def response(self, coefficients, units=slice(None)):
        entries = self.of.flat_value().reshape(self.n_units, -1)[units]
        changes = self.of.response(coefficients, units)
        found = self.changes_of(changes.reshape(*changes.shape[:-1], *entries.shape), entries)
        return found.reshape(*changes.shape[:-1], -1)

    def flat(self, values):
        return values.reshape(*values.shape[: values.ndim - len(self._shape)], -1)

    def shaped(self, flat):
        return flat.reshape((*flat.shape[:-1], *self._shape))

    def _of_groups(self, names):
        """Labels of the entries, given the names of those of one group."""
        if self.posterior.structure.shares_precision:
            return names
        return [f"{k},{name}" if name else f"{k}" for k in range(self.n_units) for name in names]


class StandardDeviations(FunctionOfCovariances):
    """Roots of the variances of all features; one for each component where these are spherical."""

    name = "standard_deviations"
    entry_name = "sd"
    freedom_needed = 0, 1
    n_feature_axes = 1
    has_own_margins = True
    quantile = staticmethod(log_normal_quantile)

    def __init__(self, posterior, origin):
        super().__init__(posterior, origin)
        self.variances = np.flatnonzero(self._row == self._column)
        self.n_per_unit = len(self.variances)
        structure = posterior.structure
        groups = () if structure.shares_precision else (self.n_units,)
        self._shape = (*groups, *structure.prior_shape[:1])

    def is_positive(self):
        return np.ones(self.size, dtype=bool)

    def of_entries(self, entries):
        return np.sqrt(entries[..., self.variances])

    def changes_of(self, changes, entries):
        return changes[..., self.variances] / (2.0 * self.of_entries(entries))

    def subscripts(self, feature_names):
        return self._of_groups(list(feature_names) if self.posterior.structure.prior_shape else [""])

    def flat_index(self, component, row, column):
        group = self.posterior.structure.precision_group(component)
        return self.n_per_unit * group + row % self.n_per_unit


class Correlations(FunctionOfCovariances):
    """Correlations of pairs of features within components, in the order of ``numpy.triu_indices(P, 1)``."""

    name = "correlations"
    entry_name = "correlation"
    source = Scales
    n_feature_axes = 2
    has_diagonal = False
    quantile = staticmethod(correlation_quantile)

    def __init__(self, posterior, origin):
        super().__init__(posterior, origin)
        n_features = posterior.n_features
        of_feature = np.flatnonzero(self._row == self._column)
        self._pairs = np.flatnonzero(self._row != self._column)
        self._first, self._second = (of_feature[part[self._pairs]] for part in (self._row, self._column))
        self.n_per_unit = n_features * (n_features - 1) // 2
        groups = () if posterior.structure.shares_precision else (self.n_units,)
        self._shape = (*groups, self.n_per_unit)

    def of_entries(self, entries):
        scale = np.sqrt(entries[..., self._first] * entries[..., self._second])
        return entries[..., self._pairs] / scale

    def changes_of(self, changes, entries):
        first, second = entries[..., self._first], entries[..., self._second]
        of_scale = changes[..., self._first] / first + changes[..., self._second] / second
        return changes[..., self._pairs] / np.sqrt(first * second) - 0.5 * self.of_entries(entries) * of_scale

    def on_diagonal(self):
        return np.zeros(self.size, dtype=bool)

    def families(self):
        return [(np.ones(self.size, dtype=bool), self.quantile)]

    def subscripts(self, feature_names):
        rows, columns = np.triu_indices(self.posterior.n_features, 1)
        return self._of_groups(
            [f"{feature_names[p]},{feature_names[q]}" for p, q in zip(rows, columns, strict=True)]
        )

    def flat_index(self, component, row, column):
        if row == column:
            raise ValueError(
                "target='correlations' has no entries on the diagonal: feature must be a pair of different "
                f"features, got {(row, column)!r}."
            )
        places = np.flatnonzero((self._row[self._pairs] == row) & (self._column[self._pairs] == column))
        return self.n_per_unit * self.posterior.structure.precision_group(component) + int(places[0])


class LogTails(GaussianTarget):
    """log nu of Student's t components, where nu is fitted."""

    name = "log_tails"
    entry_name = "log_tail"
    block = "tail"

    def value(self):
        return self.shaped(np.log(self.posterior.tails.fitted))

    def response(self, coefficients, units=slice(None)):
        return coefficients[..., 0]

    def flat(self, values):
        n_draw_axes = np.ndim(values) - len(self.posterior.structure.tails_shape)
        return np.reshape(values, (*np.shape(values)[:n_draw_axes], -1))

    def shaped(self, flat):
        return flat if self.posterior.structure.tails_shape else flat[..., 0]

    def subscripts(self, feature_names):
        return [f"{k}" for k in range(self.n_units)] if self.posterior.structure.tails_shape else ["all"]

    def flat_index(self, component, row, column):
        return component if self.posterior.structure.tails_shape else 0


class Tails(LogTails):
    """nu, with the variance of the delta method."""

    name = "tails"
    entry_name = "tail"
    quantile = staticmethod(log_normal_quantile)

    def value(self):
        return self.shaped(self.posterior.tails.fitted)

    def response(self, coefficients, units=slice(None)):
        return self.posterior.tails.fitted[units] * coefficients[..., 0]


# theta, the parameters of the model, in the order of `posterior_names_` and of every covariance of theta.
# Mixtures with fitted degrees of freedom have those of the tails besides.
PARAMETERS = tuple(target.name for target in (LogWeights, Means, Precisions))

TARGETS = {
    target.name: target
    for target in (
        *(LogWeights, Means, Precisions, Weights, StandardDeviations, Correlations, Covariances, Scales),
        *(LogTails, Tails),
    )
}


class GaussianTargets(Targets):
    """The targets at one posterior of a Gaussian mixture."""

    table = TARGETS
    needs = {
        "correlations": "covariance_type='full' or 'tied', and two columns or more",
        "scales": "tails=a number or 'student'",
        "log_tails": "tails='student'",
        "tails": "tails='student'",
    }
    reported_names = ("weights", "means", "standard_deviations", "tails")

    def has(self, name):
        structure = self.posterior.structure
        if name == "correlations":
            return structure.is_matrix and self.posterior.n_features > 1
        return name not in self.needs or bool(structure.has_scales if name == "scales" else structure.n_tails)

    @property
    def parameters(self):
        return PARAMETERS + (LogTails.name,) * (self.posterior.structure.n_tails > 0)

    def parts_of_direction(self, direction):
        structure = self.posterior.structure
        intercepts, linear, quadratic = (np.square(block) for block in structure.split(direction))
        totals = {"intercept": intercepts.sum(), "linear": linear.sum(), "quadratic": quadratic.sum()}
        name = next(target.name for target in self.theta if target.block == max(totals, key=totals.get))
        shares = intercepts + linear.sum(axis=1)
        if structure.has_own_precisions:
            shares += quadratic.sum(axis=1)
        return name, shares
