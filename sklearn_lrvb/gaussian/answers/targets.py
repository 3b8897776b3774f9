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

from sklearn_lrvb.answers.targets import LogWeights, NoCovarianceError, Target, Targets, Weights
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

    A unit is a component; or, of quadratic coefficients, what shares a precision: one component or all.

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

    def unit_names(self):
        is_shared = self.block == "quadratic" and self.posterior.structure.shares_precision
        return [""] if is_shared else super().unit_names()


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
        structure = self.posterior.structure
        covariance_cholesky = structure.layout.per_component(self.posterior.covariance_cholesky)[units]
        changes = structure.transformed(covariance_cholesky, coefficients)
        return changes.reshape(*changes.shape[:-2], -1)

    def entry_names(self, feature_names):
        return feature_names

    def entry_index(self, row, column):
        return row

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

    def entry_names(self, feature_names):
        return self.posterior.structure.entry_names(feature_names)

    def entry_index(self, row, column):
        structure = self.posterior.structure
        positions = structure.from_entries(np.arange(self.n_entries)).astype(np.intp)
        if positions.ndim == 2:
            return int(positions[row, column])
        if row != column:
            raise ValueError(
                f"target={self.name!r} has no entries off the diagonal under this covariance_type: feature "
                f"must be one integer, got {(row, column)!r}."
            )
        return row % self.n_entries

    def on_diagonal(self):
        structure = self.posterior.structure
        return np.tile(structure.entries(structure.identity) > 0, self.n_units)


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
        features = self.posterior.structure.features
        changes = features.precision_response(coefficients, self.posterior.whiteners[units])
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

    def value(self):
        return self.posterior.structure.reported(
            self.posterior.structure.gram(self.posterior.covariance_cholesky)
        )

    def response(self, coefficients, units=slice(None)):
        changes = self.posterior.structure.features.covariance_response(
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
        changes = super().response(coefficients[..., : self.n_entries], units)
        if self.follows_tails:
            # d log(nu/(nu - 2)) / d log nu
            slopes = -2.0 / (self.posterior.tails.nu[: self.n_units][units] - 2.0)
            scales = self.posterior.structure.gram(self.posterior.covariance_cholesky)[units]
            by_tails = (coefficients[..., -1] * slopes)[..., None] * self.posterior.structure.entries(scales)
            changes = changes + by_tails.reshape(changes.shape)
        return np.repeat(self.factors()[units], self.n_entries) * changes

    def coordinates(self, units=slice(None)):
        if not self.follows_tails:
            return super().coordinates(units)
        blocks = self.posterior.structure.layout.blocks
        quadratic = np.arange(blocks["quadratic"].start, blocks["quadratic"].stop)
        tails = np.resize(np.arange(blocks["tail"].start, blocks["tail"].stop), self.n_units)
        return np.column_stack([quadratic.reshape(self.n_units, -1), tails])[units].ravel()


class FunctionOfCovariances(GaussianTarget):
    """A function of the entries of every covariance matrix, by the delta method.

    Attributes
    ----------
    matrices : Covariances or Scales, of which it is a function
    """

    block = "quadratic"
    source: ClassVar[type[Scales]] = Covariances

    def __init__(self, posterior, origin):
        super().__init__(posterior, origin)
        self.matrices = self.source(posterior, origin)
        self.width = self.matrices.width

    @abstractmethod
    def function(self, entries):
        """Its values, given unique entries of the matrices: (..., units, Q) -> (..., units, n_entries)."""

    @abstractmethod
    def derivative(self, changes, entries):
        """First-order changes of `function` by those of the entries, both (..., units, Q)."""

    @property
    def shape(self):
        return super().shape[1:] if self.posterior.structure.shares_precision else super().shape

    def coordinates(self, units=slice(None)):
        return self.matrices.coordinates(units)

    def of_flat(self, flat):
        """Its flat values, given those of the matrices: (n, d) -> (n, size)."""
        return self.function(flat.reshape(len(flat), self.n_units, -1)).reshape(len(flat), -1)

    def value(self):
        return self.shaped(self.of_flat(self.matrices.flat_value()[None])[0])

    def response(self, coefficients, units=slice(None)):
        entries = self.matrices.flat_value().reshape(self.n_units, -1)[units]
        changes = self.matrices.response(coefficients, units)
        derivative = self.derivative(changes.reshape(*changes.shape[:-1], *entries.shape), entries)
        return derivative.reshape(*changes.shape[:-1], -1)


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
        self._variances = np.flatnonzero(posterior.structure.entries(posterior.structure.identity))
        self.n_entries = len(self._variances)

    def function(self, entries):
        return np.sqrt(entries[..., self._variances])

    def derivative(self, changes, entries):
        return changes[..., self._variances] / (2.0 * self.function(entries))

    @property
    def shape(self):
        return super().shape if self.posterior.structure.prior_shape else (self.n_units,)

    def entry_names(self, feature_names):
        return feature_names if self.posterior.structure.prior_shape else [""]

    def entry_index(self, row, column):
        return row % self.n_entries


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
        row, column = upper_triangle(posterior.n_features)
        variances, self._pairs = np.flatnonzero(row == column), np.flatnonzero(row != column)
        self._row, self._column = row[self._pairs], column[self._pairs]
        self._first, self._second = variances[self._row], variances[self._column]
        self.n_entries = len(self._pairs)

    def function(self, entries):
        scale = np.sqrt(entries[..., self._first] * entries[..., self._second])
        return entries[..., self._pairs] / scale

    def derivative(self, changes, entries):
        first, second = entries[..., self._first], entries[..., self._second]
        relative = changes[..., self._first] / first + changes[..., self._second] / second
        own = changes[..., self._pairs] / np.sqrt(first * second)
        return own - 0.5 * self.function(entries) * relative

    def on_diagonal(self):
        return np.zeros(self.size, dtype=bool)

    def families(self):
        return [(np.ones(self.size, dtype=bool), self.quantile)]

    def entry_names(self, feature_names):
        pairs = zip(self._row, self._column, strict=True)
        return [f"{feature_names[p]},{feature_names[q]}" for p, q in pairs]

    def entry_index(self, row, column):
        if row == column:
            raise ValueError(
                "target='correlations' has no entries on the diagonal: feature must be a pair of different "
                f"features, got {(row, column)!r}."
            )
        return int(np.flatnonzero((self._row == row) & (self._column == column))[0])


class LogTails(GaussianTarget):
    """log nu of Student's t components, where nu is fitted."""

    name = "log_tails"
    entry_name = "log_tail"
    block = "tail"

    def value(self):
        return self.shaped(np.log(self.posterior.tails.fitted))

    def response(self, coefficients, units=slice(None)):
        return coefficients[..., 0]

    @property
    def shape(self):
        return self.posterior.structure.tails_shape

    def unit_names(self):
        return super().unit_names() if self.shape else ["all"]


class Tails(LogTails):
    """nu, with the variance of the delta method."""

    name = "tails"
    entry_name = "tail"
    quantile = staticmethod(log_normal_quantile)

    def value(self):
        return self.shaped(self.posterior.tails.fitted)

    def response(self, coefficients, units=slice(None)):
        return self.posterior.tails.fitted[units] * coefficients[..., 0]


class MeanPrecisionPrior(GaussianTarget):
    """E b0, where it is learned."""

    name = entry_name = "mean_precision_prior"
    block = "mean_precision"
    quantile = staticmethod(gamma_quantile)

    def value(self):
        return self.shaped(np.full(1, self.posterior.prior.mean_precision))

    def response(self, coefficients, units=slice(None)):
        return self.posterior.prior.mean_precision * coefficients[..., 0]

    @property
    def shape(self):
        return ()

    def unit_names(self):
        return [""]


class CovariancePrior(MatrixTarget):
    """E C0, where it is learned: a function of all precisions.

    Under q it is a Wishart matrix of g' degrees of freedom given them, which is its excess.
    """

    name = entry_name = "covariance_prior"
    quantile = staticmethod(gamma_quantile)

    def __init__(self, posterior, origin):
        super().__init__(posterior, origin)
        structure, prior = posterior.structure, posterior.prior
        self.n_units, self.width = 1, self.n_units * self.width
        self._half_freedom = 0.5 * prior.learned.own_freedom(structure.n_groups, prior.degrees_of_freedom)

    def flat(self, values):
        return self.posterior.structure.entries(np.reshape(values, self.posterior.structure.identity.shape))

    def shaped(self, flat):
        structure = self.posterior.structure
        return structure.from_entries(flat).reshape((*flat.shape[:-1], *structure.prior_shape))[()]

    def unit_names(self):
        return [""]

    def value(self):
        return self.shaped(self.flat(self.posterior.prior.covariance))

    def response(self, coefficients, units=slice(None)):
        posterior, structure = self.posterior, self.posterior.structure
        quadratic = coefficients.reshape(*coefficients.shape[:-2], structure.n_groups, self.n_entries)
        sums = structure.features.to_sums(quadratic) / (2.0 * structure.power)
        maps = structure.composed(posterior.prior.covariance[None], structure.transposed(posterior.whiteners))
        by_group = structure.entries(structure.congruence(maps, sums))
        return by_group.sum(axis=-2) / self._half_freedom

    def excess_with(self, other):
        if not isinstance(other, CovariancePrior):
            return 0.0
        structure, covariance = self.posterior.structure, self.posterior.prior.covariance[None]
        images = structure.congruence(covariance, self.covariance_gradient[:, None])[:, 0]
        return structure.entries(images) / self._half_freedom

    def beyond_coefficients(self, changes, some):
        return self.posterior.structure.entries(changes.covariance[some])

    @property
    def covariance_gradient(self):
        structure = self.posterior.structure
        return structure.from_entries(np.diag(1.0 / structure.entry_counts))


# theta, the parameters of the model, in the order of `posterior_names_` and of every covariance of theta.
# Mixtures with fitted degrees of freedom have those of the tails besides.
PARAMETERS = tuple(target.name for target in (LogWeights, Means, Precisions))

_OF_NORMAL_COMPONENTS = LogWeights, Means, Precisions, Weights, StandardDeviations, Correlations, Covariances
_OF_SOME = Scales, LogTails, Tails, MeanPrecisionPrior, CovariancePrior
TARGETS = {target.name: target for target in (*_OF_NORMAL_COMPONENTS, *_OF_SOME)}


class GaussianTargets(Targets):
    """The targets at one posterior of a Gaussian mixture."""

    table = TARGETS
    needs = {
        "correlations": "covariance_type='full' or 'tied', and two columns or more",
        "scales": "tails=a number or 'student'",
        "log_tails": "tails='student'",
        "tails": "tails='student'",
        "mean_precision_prior": "prior='learned' and mean_precision_prior=None",
        "covariance_prior": "prior='learned' and covariance_prior=None",
    }
    reported_names = ("weights", "means", "standard_deviations", "tails")

    def has(self, name):
        structure, parts = self.posterior.structure, self.posterior.structure.parts
        exists = {
            "correlations": structure.is_matrix and self.posterior.n_features > 1,
            "scales": structure.has_scales,
            "log_tails": structure.n_tails > 0,
            "tails": structure.n_tails > 0,
            "mean_precision_prior": parts.learns_mean_precision,
            "covariance_prior": parts.learns_covariance,
        }
        return exists.get(name, True)

    @property
    def parameters(self):
        return PARAMETERS + (LogTails.name,) * (self.posterior.structure.n_tails > 0)
