"""G, the information that is lost because assignments are not observed: as a product and as a matrix.

    G = sum_n w_n [(r_nk delta_kl - r_nk r_nl) h_nk h_nl']_kl = sum_n B_n B_n'

with w_n the sample weight of row n and h_nk its features in component k (`covariance_structures`). Rows of
certain assignment add nothing to it. Rows with holes add the information that these hide as well
(`hidden_information`). G is computed in the forms that the three solvers of `sklearn_lrvb.linear_response`
need:

* `missing_information_product`: G v, at the price of a sweep and a half, in memory that does not depend on
  the number of rows;
* `missing_information`: the matrix, one Gram matrix of weight r_k r_l >= 0 for every pair of components
  (`covariance_structures.full_pair`); or, for few rows or few features,
  `missing_information_from_features`, one product of the features of all components;
* `RowColumns` in `columns`: the columns of B, few where few rows are ambiguous.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import MAX_AMPLIFICATION, CommonFrame, OwnFrames, frames_of
from sklearn_lrvb.gaussian_mixture.e_step.hidden_directions import numbers_of_pattern
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import (
    NEGLIGIBLE_INFORMATION,
    centred_on_average,
    complements,
    expect,
)
from sklearn_lrvb.gaussian_mixture.information.hidden_information import (
    HiddenMatrixInformation,
    HiddenScaleInformation,
    LabelInformation,
)
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import VariationalPosterior
from sklearn_lrvb.row_blocks import RowNumbers

_COMPACTED_BELOW = 0.6  # Share of a block's rows above which selecting them costs more than it saves.
_SAMPLED_ROWS = 500  # Number of rows from which the mean number of pairs of an ambiguous row is estimated.


def change_of_log_densities(frames, posterior, coefficients):
    """beta_k . h_nk as coefficients in the frames: (D,)."""
    polynomials = posterior.structure.polynomials(coefficients, posterior.second_moment_origin)
    return frames.polynomials(*polynomials)


def features_of(posterior, moments):
    """Sums of weight h from sums of weight (1, y, s(y)): (D,). Transpose of `change_of_log_densities`."""
    return posterior.structure.feature_moments(
        moments.counts, moments.first, moments.second, posterior.second_moment_origin
    )


# As a product.


def missing_information_product(rows, posterior, coefficients, hidden_values=True):
    """G times the columns of ``coefficients``, (D, m) -> (D, m): one pass over the rows.

    Without ``hidden_values`` it is that of unknown labels alone.
    """
    frames = frames_of(posterior, rows)
    changes = [change_of_log_densities(frames, posterior, column) for column in coefficients.T]
    function = functools.partial(_products_of_block, frames, changes, hidden_values)
    totals = rows.total(function, frames.numbers_per_row)
    products = [features_of(posterior, frames.in_own_frames(moments)) for moments in totals]
    return np.stack(products, axis=1)


def _products_of_block(frames, changes, hidden_values, block):
    """Moments of the responsibilities' changes, one for each change of the log densities."""
    expectation = expect(frames, block)
    r, counted = expectation.responsibilities, block.weighted(expectation.responsibilities)
    moments = []
    for change in changes:
        # With d rho = beta . h, the responsibilities change by d r = V_z d rho; its moments are returned.
        changed = centred_on_average(frames.changes(expectation.whitened, change), r)
        changed *= counted
        own = frames.moments(expectation.whitened, changed)
        if hidden_values and block.holes is not None:
            own = own + frames.hidden_moments(expectation.whitened, change, counted)
        moments.append(own)
    return moments


# As a matrix, from pairs of components.


def missing_information(rows, posterior, hidden_values=True):
    """G, (D, D): one pass over the rows, memory independent of their number.

    Without ``hidden_values`` it is that of unknown labels alone.

    The flops for every pair of components and every row that is ambiguous between them are the structure's
    ``pair_type.flops``.
    """
    structure = posterior.structure
    ambiguity = Ambiguity.among(rows, posterior)
    pairs = structure.pairs(posterior, functools.partial(_pairs_of_a_row, rows, ambiguity))
    # A product for all pairs at once is worth its overhead for rows that stay in cache. One for each pair
    # needs more rows, since only some of them are ambiguous between the two components.
    numbers_per_row = ambiguity.frames.numbers_per_row if len(pairs) == 1 else None
    of_pairs = functools.partial(_pair_moments_of_block, ambiguity, pairs)
    if rows.has_holes:
        hidden = HiddenInformation(posterior, ambiguity)
        totals, sums = rows.total(ByHoles(of_pairs, hidden.of_block), hidden.numbers_per_row)
        missing = hidden.summed(sums, hidden_values)
    else:
        totals = rows.total(of_pairs, numbers_per_row)
        missing = np.zeros(2 * (structure.n_coefficients,))
    for pair, moments in zip(pairs, totals or [None] * len(pairs), strict=True):
        if moments is not None:
            pair.add_to(missing, moments)
    return missing


@dataclass(frozen=True)
class Ambiguity:
    """Which rows are ambiguous between which components, by their contribution to G.

    Attributes
    ----------
    posterior : VariationalPosterior
    frames : CommonFrame or OwnFrames, of the posterior
    negligible : float, information below which a row may be left out of a pair of components
    """

    posterior: VariationalPosterior
    frames: object
    negligible: float

    @classmethod
    def among(cls, rows, posterior, frames=None):
        """The rule by which everything that is left out is negligible together; by default in `frames_of`."""
        n_numbers = rows.n_samples * posterior.n_components**2
        return cls(posterior, frames or frames_of(posterior, rows), NEGLIGIBLE_INFORMATION / n_numbers)

    def of_block(self, block):
        """Responsibilities and information of a block's rows, (K, n) each."""
        if block.holes is not None:
            return self.of_own_rows(block)[1:]
        expectation = expect(self.frames, block)
        squared = 2.0 * (self.posterior.expectations.density_constants[:, None] - expectation.log_densities)
        return expectation.responsibilities, information_of_rows(self.posterior, squared)

    def of_own_rows(self, block):
        """`OwnRows` of a block in `OwnFrames`, and their responsibilities and information, (K, n) each."""
        expectation = expect(self.frames, block)
        squared = expectation.whitened.squares()
        return (
            expectation.whitened,
            expectation.responsibilities,
            information_of_rows(self.posterior, squared),
        )

    def counting(self, weights, information, k, l):
        """Whether rows count, given their weights in one pair of components (n,) or in several (m, n)."""
        return weights * (information[k] + information[l]) > self.negligible


def information_of_rows(posterior, squared):
    """An upper bound of |T' h_nk|^2, a row's features in units of the complete information: (K, n).

    Parameters
    ----------
    squared : (K, n), |y_nk|^2
    """
    structure = posterior.structure
    origin_norm = structure.norm(posterior.second_moment_origin)[:, None]
    intercepts = np.square(posterior.intercept_root).sum(axis=1)[:, None]
    return (
        intercepts
        + squared / posterior.mean_precision[:, None]
        + 0.5 * (squared + origin_norm) ** 2 / posterior.effective_degrees_of_freedom[:, None]
    )


def _pairs_of_a_row(rows, ambiguity):
    """Mean number of pairs of components that an ambiguous row is ambiguous between, over some rows."""
    some = rows.thinned(min(rows.n_samples, _SAMPLED_ROWS))
    function = functools.partial(_ambiguous_pairs_of_block, ambiguity)
    n_pairs = some.concatenated(function, ambiguity.frames.numbers_per_row)
    return n_pairs.sum() / max(1, np.count_nonzero(n_pairs))


def _ambiguous_pairs_of_block(ambiguity, block):
    """Number of pairs of components that each row is ambiguous between, (n,)."""
    r, information = ambiguity.of_block(block)
    n_pairs = np.zeros(block.n_rows, dtype=int)
    for k in range(len(r) - 1):
        others = slice(k + 1, None)
        n_pairs += np.count_nonzero(ambiguity.counting(r[k] * r[others], information, k, others), axis=0)
    return n_pairs


def _pair_moments_of_block(ambiguity, pairs, block):
    """Moments of weight r_k r_l of the pairs; None where no row is ambiguous between any of them."""
    r, information = ambiguity.of_block(block)
    counted = block.weighted(r)
    moments = []
    for pair in pairs:
        weights = counted[pair.k] * r[pair.l]
        counting = ambiguity.counting(weights, information, pair.k, pair.l)
        weights *= counting
        some = np.flatnonzero(counting if counting.ndim == 1 else counting.any(axis=0))
        if some.size > _COMPACTED_BELOW * block.n_rows:
            moments.append(pair.moments(block.rows, weights))
        elif some.size:
            picked = np.take(block.rows, some, axis=1)
            moments.append(pair.moments(picked, np.take(weights, some, axis=-1)))
        else:
            moments.append(None)
    return moments


@dataclass(frozen=True)
class ByHoles:
    """A function of a block by another for complete rows, or by one for rows with holes: a pair with None."""

    complete: Callable
    incomplete: Callable

    def __call__(self, block):
        if block.holes is None:
            return self.complete(block), None
        return None, self.incomplete(block)


class HiddenInformation:
    """The share of rows with holes in the missing information.

    Parameters
    ----------
    posterior : VariationalPosterior
    ambiguity : Ambiguity
    """

    def __init__(self, posterior, ambiguity):
        self._ambiguity, structure = ambiguity, posterior.structure
        self._labels = LabelInformation(posterior)
        kind = HiddenMatrixInformation if structure.is_matrix else HiddenScaleInformation
        self._hidden = kind(structure)
        # Some of a block's rows are ambiguous between two components: products of them want large blocks.
        self.numbers_per_row = RowNumbers(posterior.centred_means.size, numbers_of_pattern(posterior))

    def of_block(self, block):
        """The share that unknown labels have, (D, D), and sums for that of hidden values."""
        whitened, r, information = self._ambiguity.of_own_rows(block)
        counted = block.weighted(r)
        counting = functools.partial(self._counting, information)
        of_hidden_values = None if block.holes is None else self._hidden.of_block(whitened, counted)
        return self._labels.of_block(whitened, counted, r, counting), of_hidden_values

    def _counting(self, information, weights, k, l):
        return self._ambiguity.counting(weights, information, k, l)

    def summed(self, sums, hidden_values):
        """The matrix, (D, D), from the sums over all blocks."""
        of_labels, of_hidden_values = sums
        missing = self._labels.in_coefficients(of_labels)
        if hidden_values:
            self._hidden.add_to(missing, of_hidden_values)
        return missing


# As a matrix, from the features of all components.


def missing_information_from_features(rows, posterior, hidden_values=True):
    """G, (D, D), by its definition: one Gram matrix of the features of all components.

    It takes 2 (K f)^2 flops a row and a few calls a block of rows, where `missing_information` takes many
    calls for every pair of components. Components of their own precisions have f = F features each. Those
    that share one differ by features that are linear in y: they have f = 1 + P.
    Where these lose digits, `missing_information` is used. Many rows are taken in a frame that all components
    share, if it loses none. Where rows have holes, complete ones are treated as if they had some, too.
    """
    structure = posterior.structure
    if rows.has_holes:
        hidden = HiddenInformation(posterior, Ambiguity.among(rows, posterior, OwnFrames(posterior)))
        return hidden.summed(rows.total(hidden.of_block, hidden.numbers_per_row), hidden_values)
    frame = frames_of(posterior, rows)
    # Products of features have up to twice the degree of log densities, and amplify rounding as much more.
    degree = 1 if structure.shares_precision else 2
    if isinstance(frame, CommonFrame) and frame.amplification**degree < MAX_AMPLIFICATION:
        return _missing_information_in_frame(rows, posterior, frame)
    features = _LinearFeatures(posterior) if structure.shares_precision else _AllFeatures(posterior)
    if features.amplification > MAX_AMPLIFICATION:
        return missing_information(rows, posterior, hidden_values)
    function = functools.partial(_feature_products_of_block, features, OwnFrames(posterior))
    n_columns = structure.n_components * features.n_features
    within, between = rows.total(function, RowNumbers(3 * n_columns, of_product=n_columns))
    missing = np.negative(between, out=between)
    n_features, each = features.n_features, np.arange(structure.n_components)
    by_component = missing.reshape(len(each), n_features, len(each), n_features)
    by_component[each, :, each] = within  # Computed from r (1 - r), since r - r^2 would cancel.
    return features.in_coefficients(missing)


def _missing_information_in_frame(rows, posterior, frame):
    """G, (D, D), from the monomials m of rows in a frame that all components share.

    The features of a component are linear in m, h_k = T_k m, so that G is made of the sums of r_k r_l m m'.
    These are all that is needed: r_k (1 - r_k) is the sum of r_k r_l over the other components.
    """
    n_components = posterior.n_components
    size = n_components * frame.n_monomials
    numbers = RowNumbers(2 * size, of_product=size)
    products = rows.total(functools.partial(_monomial_products_of_block, frame), numbers)
    missing, each = np.negative(products, out=products), np.arange(n_components)
    by_component = missing.reshape(n_components, frame.n_monomials, n_components, frame.n_monomials)
    by_component[each, :, each] = 0.0
    by_component[each, :, each] = -by_component.sum(axis=2)
    to_coefficients = _features_of_monomials(posterior, frame)
    return to_coefficients @ missing @ to_coefficients.T


def _monomial_products_of_block(frame, block):
    expectation = expect(frame, block)
    return _products_of_monomials(expectation.whitened, expectation.responsibilities * np.sqrt(block.counts))


def _products_of_monomials(monomials, responsibilities):
    """Sum of r_k r_l m m': (F, n), (K, n) -> (K F, K F)."""
    products = (responsibilities[:, None] * monomials).reshape(-1, monomials.shape[1])
    return products @ products.T


def _features_of_monomials(posterior, frame):
    """T_k, the features of every component as polynomials of the frame's rows: (D, K F)."""
    structure, n_components = posterior.structure, posterior.n_components
    own = [np.r_[structure.layout.coefficient_slices(k)] for k in range(n_components)]
    maps = np.zeros((structure.n_coefficients, n_components, frame.n_monomials))
    for coefficients in np.transpose(own):  # The same coefficient of every component.
        unit = np.zeros(structure.n_coefficients)
        unit[coefficients] = 1.0
        maps[coefficients, np.arange(n_components)] = change_of_log_densities(frame, posterior, unit)
    return maps.reshape(len(maps), -1)


def _feature_products_of_block(features, frames, block):
    """Sums of r_k (1 - r_k) h_k h_k' (K, f, f), and of r_k r_l h_k h_l' (K f, K f)."""
    expectation = expect(frames, block)
    r, h = expectation.responsibilities, features.of_rows(expectation.whitened.values)
    within = np.matmul(h * block.weighted(r * complements(r))[:, None], h.transpose(0, 2, 1))
    h *= (r * np.sqrt(block.counts))[:, None]
    stacked = h.reshape(-1, h.shape[2])
    return within, stacked @ stacked.T


class _AllFeatures:
    """The features h of all components, each with a precision of its own."""

    amplification = 1.0

    def __init__(self, posterior):
        structure = self._structure = posterior.structure
        self._origins = posterior.second_moment_origin
        self.n_features = structure.layout.n_component_features

    def of_rows(self, whitened):
        """h, (K, P, n) -> (K, F, n)."""
        own_frames = zip(whitened, self._origins, strict=True)
        return np.stack([self._structure.component_features(*own) for own in own_frames])

    def in_coefficients(self, matrix):
        """A matrix of features, component by component, in the order of the coefficients: (D, D)."""
        return self._structure.layout.ordered(matrix)


class _LinearFeatures:
    """The features (1, y) of all components that share a precision.

    With u = y_k + d_k the rows in one frame, s(y_k) = s(u) - (a function that is linear in y_k), and s(u),
    which all components share, is no part of the missing information.
    """

    def __init__(self, posterior):
        structure = posterior.structure
        n_components, n_features = structure.n_components, structure.n_features
        self.n_features = 1 + n_features
        center = posterior.counts @ posterior.centred_means / posterior.counts.sum()
        shifts = structure.transformed(posterior.whiteners, posterior.centred_means - center)
        # Far from the common center, differences between components that are near each other lose digits.
        self.amplification = np.square(shifts).sum(axis=1).max()
        self._map = np.zeros((structure.n_coefficients, n_components, self.n_features))
        axes = np.eye(n_features)
        for k, shift in enumerate(shifts):
            own, linear, quadratic = structure.layout.coefficient_slices(k)
            square = structure.statistic_by_row(shift[:, None])
            mixed = (
                structure.statistic_by_row(axes + shift[:, None]) - structure.statistic_by_row(axes) - square
            )
            self._map[own, k, :1] = 1.0
            self._map[linear, k, 1:] = axes
            self._map[quadratic, k] = -structure.quadratic_features(np.concatenate([square, mixed])).T

    def of_rows(self, whitened):
        """(1, y), (K, P, n) -> (K, 1 + P, n)."""
        features = np.empty((len(whitened), self.n_features, whitened.shape[2]))
        features[:, 0], features[:, 1:] = 1.0, whitened
        return features

    def in_coefficients(self, matrix):
        """A matrix of features, component by component, as one of coefficients: (D, D)."""
        to_coefficients = self._map.reshape(len(self._map), -1)
        return to_coefficients @ matrix @ to_coefficients.T
