"""G, the information that unknown labels, scales and missing values take away: as a product and as a matrix.

    G = sum_n w_n [(r_nk delta_kl - r_nk r_nl) h_nk h_nl' + delta_kl r_nk C_nk]_kl,

with w_n the sample weight of row n, h_nk its expected features in component k (`covariance_structures`), each
in its places in the vector of all coefficients, and C_nk the covariance of the features given the component.
The first part, of unknown labels, is

    sum_n w_n sum_{k<l} r_nk r_nl (h_nk - h_nl)(h_nk - h_nl)',

to which rows of certain assignment add nothing. The second part is zero for complete rows of normal
components. Where rows have scales, all of them add to it, however certain their labels are
(`scale_directions`); missing values add what `missing_value_information` says.

G is computed in the forms that the three solvers of `sklearn_lrvb.linear_response` need:

* `missing_information_product`: G v, at the price of one and a half iterations, in memory that does not
  depend on the number of rows;
* `missing_information`: the matrix, in one pass over the rows;
* `RowColumns` in `columns`: a root of G, with few columns where few rows are ambiguous.

*Conventions.* K components, L labels (the components and the noise component), F features of a component, J
monomials in the common coordinates, D coefficients in all.
"""

import functools
import itertools

import numpy as np

from sklearn_lrvb.gaussian.covariance_structures.full_pair import FullPair, QuarticMoments
from sklearn_lrvb.gaussian.e_step.coordinates import (
    MAX_AMPLIFICATION,
    CommonCoordinates,
    OwnCoordinates,
    OwnRows,
    coordinates_of,
    scale_directions,
)
from sklearn_lrvb.gaussian.information.missing_value_information import (
    MissingValueMatrixInformation,
    MissingValueScaleInformation,
)
from sklearn_lrvb.gaussian.posterior.tails import ScaledWeights
from sklearn_lrvb.mixture.e_step import NEGLIGIBLE_INFORMATION, centred_on_average, expect
from sklearn_lrvb.rows import Workload

# As a product.


def missing_information_product(rows, posterior, coefficients, missing_values=True):
    """G times the columns of ``coefficients``, (D, m) -> (D, m): one pass over the rows.

    Without ``missing_values`` it is that of unknown labels and scales.
    """
    coordinates = coordinates_of(posterior, rows)
    kind = ChangesOfRows if posterior.tails is None else ChangesOfScaledRows
    changes = [kind(coordinates, posterior, column) for column in coefficients.T]
    function = functools.partial(_products_of_block, coordinates, changes, missing_values)
    products = rows.total(function, coordinates.workload)
    return np.stack(
        [posterior.feature_moments(coordinates.in_own_coordinates(own)) for own in products], axis=1
    )


def _products_of_block(coordinates, changes, missing_values, block):
    """Changes of the moments of a block's rows, for each of the ``changes``."""
    expectation = expect(coordinates, block)
    counted = block.weighted(expectation.responsibilities)
    return [change.moments(expectation, counted, missing_values) for change in changes]


class ChangesOfRows:
    """What a change beta of the coefficients does to rows.

    Parameters
    ----------
    coordinates : OwnCoordinates or CommonCoordinates
    posterior : VariationalPosterior
    coefficients : (D,), beta
    """

    def __init__(self, coordinates, posterior, coefficients):
        polynomials = posterior.structure.features.polynomials(coefficients, posterior.second_moment_origin)
        self._coordinates, self._polynomials = coordinates, coordinates.polynomials(*polynomials)

    def moments(self, expectation, counted, missing_values):
        """Changes of the moments of a block's rows.

        Parameters
        ----------
        expectation : Expectation, of the block
        counted : (L, n), its weighted responsibilities
        missing_values : bool, whether the distributions of missing values change too
        """
        whitened = expectation.represented
        moments = self._coordinates.moments(whitened, self._changes_of_weights(expectation, counted))
        if not (missing_values and _have_missing_values(whitened)):
            return moments
        weights = expectation.weights(counted)
        return moments + self._coordinates.moments_by_missing_values(whitened, self._polynomials, weights)

    def _changes_of_weights(self, expectation, counted):
        """Changes of the weighted responsibilities, (L, n): d r = V_z d rho with d rho = beta . h."""
        changes = self._coordinates.changes(expectation.represented, self._polynomials)
        changed = centred_on_average(changes, expectation.responsibilities)
        changed *= counted
        return changed


class ChangesOfScaledRows(ChangesOfRows):
    """The same of rows that have scales u."""

    def __init__(self, coordinates, posterior, coefficients):
        super().__init__(coordinates, posterior, coefficients)
        structure, self._tails = posterior.structure, posterior.tails
        of_tails = coefficients[structure.layout.blocks["tail"]]
        self._of_tails = np.broadcast_to(of_tails, structure.n_components)[:, None] if of_tails.size else None

    def _changes_of_weights(self, expectation, counted):
        """Changes of the weighted responsibilities, and of the scales given the component: ScaledWeights."""
        whitened, scales = expectation.represented, expectation.scales
        slopes = self._coordinates.derivatives_by_scale(whitened, self._polynomials)
        # beta . h, and the changes of E u and E(log u - u) given the component, its covariances with these.
        changes = np.repeat(self._polynomials[0][:, None], slopes.shape[1], axis=1)
        of_components = changes[: len(slopes)]
        of_components += scales.mean * slopes
        of_scales, of_logs = scales.variance * slopes, np.zeros_like(slopes)
        if _have_missing_values(whitened):
            of_components += self._coordinates.changes_by_missing_values(whitened, self._polynomials)
        if self._of_tails is not None:
            of_components += self._of_tails * self._tails.expected_feature(scales)
            with_scale, variance = self._tails.covariances_with_scale(scales)
            of_scales += self._of_tails * with_scale
            of_logs = (with_scale * slopes + self._of_tails * variance) * (2.0 / self._tails.nu[:, None])
        moved = centred_on_average(changes, expectation.responsibilities) * counted
        weights, counted = expectation.weights(moved), counted[: len(slopes)]
        log_scale_sums = weights.log_scale_sums + (counted * of_logs).sum(axis=1)
        return ScaledWeights(moved, weights.scaled + counted * of_scales, log_scale_sums)


def _have_missing_values(whitened):
    """Whether whitened rows have missing values."""
    return isinstance(whitened, OwnRows) and whitened.directions is not None


# As a matrix.


def missing_information(rows, posterior, ways, missing_values=True):
    """G, (D, D): one pass over the rows, in memory that does not depend on their number.

    Parameters
    ----------
    rows : Rows
    posterior : VariationalPosterior
    ways : sequence of `from_monomials`, `from_own_coordinates` and `by_pairs`
        The first one that keeps the digits is taken. The last two always do.
    missing_values : bool, default=True
        Whether G has the information that missing values take away, besides that of unknown labels and
        scales.
    """
    for way in ways:
        if (missing := way(rows, posterior, missing_values)) is not None:
            return missing
    return None


def from_monomials(rows, posterior, missing_values=True):
    """G from the monomials m of complete rows in common coordinates; None if digits get lost.

    The features h_k of a component are linear in m, so that G is made of the sums of r_k r_l m m'. Only sums
    with k != l are used; r_k (1 - r_k) is the sum of r_k r_l over the others.
    """
    structure, n_labels = posterior.structure, posterior.n_labels
    if rows.has_missing or structure.has_scales or not structure.has_common_terms:
        return None
    coordinates = CommonCoordinates(posterior)
    # Products of features have up to twice the degree of log densities, and amplify rounding as much more.
    # With one shared precision, differences of features are linear: degree one.
    if coordinates.amplification ** (1 if structure.shares_precision else 2) >= MAX_AMPLIFICATION:
        return None
    size = n_labels * structure.n_monomials
    workload = Workload(2 * size, product=size)
    products = rows.total(functools.partial(_products_of_monomials, coordinates), workload)
    missing, each = np.negative(products, out=products), np.arange(n_labels)
    by_label = missing.reshape(n_labels, structure.n_monomials, n_labels, structure.n_monomials)
    by_label[each, :, each] = 0.0
    by_label[each, :, each] = -by_label.sum(axis=2)
    to_coefficients = _maps_from_monomials(coordinates, posterior)
    return to_coefficients @ missing @ to_coefficients.T


def _products_of_monomials(coordinates, block):
    """Sums of r_k r_l m m' over a block, (L J, L J)."""
    expectation = expect(coordinates, block)
    monomials, r = expectation.represented, expectation.responsibilities * np.sqrt(block.counts)
    products = (r[:, None] * monomials).reshape(-1, monomials.shape[1])
    return products @ products.T


def _maps_from_monomials(coordinates, posterior):
    """The maps from the monomials of every label to the features, (D, L J)."""
    structure = posterior.structure
    # The rows of the maps, one of the F coefficients at a time, set to one in all components at once.
    index, components = structure.layout.places_of_components.T, np.arange(structure.n_components)
    units = np.zeros((len(index), structure.layout.n_coefficients))
    units[np.arange(len(index))[:, None], index] = 1.0
    features = coordinates.polynomials(*structure.features.polynomials(units, posterior.second_moment_origin))
    maps = np.zeros((structure.layout.n_coefficients, structure.n_labels, structure.n_monomials))
    maps[index, components] = features[:, components]
    # The feature of the noise component is 1, the first monomial, and its coefficient has the label's number.
    noise_component = np.arange(structure.n_components, structure.n_labels)
    maps[noise_component, noise_component, 0] = 1.0
    return maps.reshape(len(maps), -1)


def from_own_coordinates(rows, posterior, missing_values=True, pairs=()):
    """G from rows in the components' own coordinates; of complete rows by ``pairs``, if there are any."""
    structure, sums = posterior.structure, _SumsInOwnCoordinates(posterior, rows.n_samples, pairs)
    # Products over few ambiguous rows are fast only if blocks are large.
    large = (
        None if not rows.has_missing else Workload(posterior.centred_means.size, structure.size_of_pattern)
    )
    labels, of_pairs, noise_component, scales, of_missing_values = rows.total(sums.of_block, large)
    missing = np.zeros(2 * (structure.layout.n_coefficients,))
    if labels is not None:
        if structure.has_own_precisions:
            _add_blocks(missing, structure, labels)
        else:
            missing += labels
    if scales is not None:
        for index, own in zip(structure.layout.places_of_components, scales, strict=True):
            missing[np.ix_(index, index)] += own
    if noise_component is not None:
        _add_noise_component(missing, structure, noise_component)
    if of_pairs is not None:
        for pair, moments in zip(pairs, of_pairs, strict=True):
            if moments is not None:
                pair.add_to(missing, moments)
    if missing_values and of_missing_values is not None:
        sums.missing_value_information.add_to(missing, of_missing_values)
    return missing


def _add_blocks(missing, structure, blocks):
    """Write the blocks of components into G where it is zero: (K, K, F, F)."""
    by_feature = blocks.swapaxes(1, 2)  # (K, F, K, F)
    places = structure.layout.feature_places
    for own, rows in places:
        for other, columns in places:
            size = rows.stop - rows.start, columns.stop - columns.start
            missing[rows, columns] = by_feature[:, own, :, other].reshape(size)
    if structure.n_tails == 1:  # All components share this coefficient.
        index, tail = structure.layout.places_of_components, structure.layout.blocks["tail"].start
        of_tail = blocks[..., -1].sum(axis=1)
        missing[index, tail] = missing[tail, index] = of_tail
        missing[tail, tail] = of_tail[:, -1].sum()


def _add_noise_component(missing, structure, sums):
    """Add to G what is lost because rows may be of the noise component: (K, F, F), of products h_k h_k'."""
    noise_component = structure.n_components
    for index, own in zip(structure.layout.places_of_components, sums, strict=True):
        # The features of component k less the only one of the noise component, which is 1.
        missing[np.ix_(index, index)] += own
        missing[index, noise_component] -= own[0]
        missing[noise_component, index] -= own[0]
        missing[noise_component, noise_component] += own[0, 0]


def by_pairs(rows, posterior, missing_values=True):
    """G by `FullPair`, for components with a precision matrix each."""
    quartic = QuarticMoments(1 + posterior.n_features)
    pairs = itertools.combinations(range(posterior.n_components), 2)
    pairs = [FullPair(posterior, k, l, quartic) for k, l in pairs]
    return from_own_coordinates(rows, posterior, missing_values, pairs)


class _SumsInOwnCoordinates:
    """Sums over the rows that are ambiguous between two labels, in the components' own coordinates.

    Where components have precisions of their own, G is summed by its blocks of components. Components with
    one precision share coefficients, whose blocks would cancel: there it is summed by pairs of components.

    Parameters
    ----------
    posterior : VariationalPosterior
    n_samples : int
    pairs : sequence of FullPair, of all pairs of components, by which complete rows are summed; or empty
    """

    def __init__(self, posterior, n_samples, pairs):
        self._posterior, self._pairs, structure = posterior, pairs, posterior.structure
        self._coordinates = OwnCoordinates(posterior)
        self._components = list(itertools.combinations(range(posterior.n_components), 2))
        # All that is left out is negligible together.
        n_pairs = posterior.n_labels * (posterior.n_labels - 1) // 2
        self._negligible = NEGLIGIBLE_INFORMATION / (n_samples * max(1, n_pairs))
        kind = MissingValueMatrixInformation if structure.is_matrix else MissingValueScaleInformation
        self.missing_value_information = kind(structure)

    def of_block(self, block):
        """Sums over a block's rows of which G is made; None for those that no row adds to.

        Returns
        -------
        labels : (D, D), or by blocks of components with a precision each, (K, K, F, F)
            For unknown labels; None for complete rows if there are ``pairs``.
        of_pairs : list of the moments of every pair instead, None if no row is ambiguous between the two
        noise_component, scales : (K, F, F), by component
        missing_values : sums of `MissingValueMatrixInformation` or `MissingValueScaleInformation`
        """
        posterior, expectation = self._posterior, expect(self._coordinates, block)
        whitened, r = expectation.represented, expectation.responsibilities
        counted, information = block.weighted(r), information_of_rows(posterior, whitened)
        labels = of_pairs = noise_component = scales = missing_values = None
        ambiguous = [(k, l, *self._ambiguous(counted, r, information, k, l)) for k, l in self._components]
        if self._pairs and block.missing is None:
            of_pairs = [
                pair.moments(np.take(block.rows, some, axis=1), weights) if some.size else None
                for pair, (_, _, some, weights) in zip(self._pairs, ambiguous, strict=True)
            ]
        elif ambiguous := [pair for pair in ambiguous if pair[2].size]:
            sums = self._by_blocks if posterior.structure.has_own_precisions else self._by_differences
            labels = sums(whitened, ambiguous)
        if posterior.structure.has_noise_component:
            noise_component = self._with_noise_component(whitened, counted, r, information)
        if whitened.scales is not None:
            scales = self._of_scales(whitened, counted)
        if block.missing is not None:
            of_components = expectation.weights(counted[: posterior.n_components])
            missing_values = self.missing_value_information.of_block(whitened, of_components)
        return labels, of_pairs, noise_component, scales, missing_values

    def _ambiguous(self, counted, r, information, k, l):
        """Rows that are ambiguous between two labels, int array (m,), and their w r_k r_l, (m,)."""
        weights = counted[k] * r[l]
        some = np.flatnonzero(weights * (information[k] + information[l]) > self._negligible)
        return some, weights[some]

    def _of_scales(self, whitened, counted):
        """What unknown scales add to G given the component, by component: (K, F, F)."""
        directions, rest = scale_directions(self._posterior, whitened)
        size = self._posterior.structure.n_component_features
        sums = np.zeros((len(directions), size, size))
        for direction, own, weights in zip(directions, sums, counted[: len(sums)], strict=True):
            direction *= np.sqrt(weights)
            np.matmul(direction, direction.T, out=own)
        if rest is not None:
            sums[:, -1, -1] += (counted[: len(sums)] * rest).sum(axis=1)
        return sums

    def _with_noise_component(self, whitened, counted, r, information):
        """Sums of w r_k r_0 h_k h_k' over some rows, 0 being the noise component: (K, F, F)."""
        posterior, n_components = self._posterior, self._posterior.n_components
        size = posterior.structure.n_component_features
        sums = np.zeros((n_components, size, size))
        for k, own in enumerate(sums):
            some, weights = self._ambiguous(counted, r, information, k, n_components)
            rooted = self._coordinates.features(whitened.selected(some), k) * np.sqrt(weights)
            np.matmul(rooted, rooted.T, out=own)
        return sums

    def _by_blocks(self, whitened, pairs):
        """G of some rows by its blocks of components, for own precisions: (K, K, F, F)."""
        n_components, size = self._posterior.n_components, self._posterior.structure.n_component_features
        blocks = np.zeros((n_components, n_components, size, size))
        is_ambiguous = np.zeros(whitened.n_rows, dtype=bool)
        for _, _, some, _ in pairs:
            is_ambiguous[some] = True
        ambiguous, number = np.flatnonzero(is_ambiguous), np.cumsum(is_ambiguous) - 1
        rows = whitened.selected(ambiguous)
        # Row by row, (n, F), so that picking some rows reads memory in order.
        features = [np.ascontiguousarray(self._coordinates.features(rows, k).T) for k in range(n_components)]
        within = np.zeros((n_components, len(ambiguous)))
        for k, l, some, weights in pairs:
            place = number[some]
            within[k, place] += weights
            within[l, place] += weights
            weighted = features[k].take(place, axis=0) * -weights[:, None]
            np.matmul(weighted.T, features[l].take(place, axis=0), out=blocks[k, l])
            blocks[l, k] = blocks[k, l].T
        for k, weights in enumerate(within):
            rooted = features[k] * np.sqrt(weights)[:, None]
            np.matmul(rooted.T, rooted, out=blocks[k, k])
        return blocks

    def _by_differences(self, whitened, pairs):
        """G, (D, D), of some rows by pairs of components, which share coefficients."""
        structure = self._posterior.structure
        index = structure.layout.places_of_components
        missing = np.zeros(2 * (structure.layout.n_coefficients,))
        is_shared = (index == index[0]).all(axis=0)
        for k, l, some, weights in pairs:
            rows = whitened.selected(some)
            own, other = (self._coordinates.features(rows, component) for component in (k, l))
            own[is_shared] -= other[is_shared]
            difference = np.concatenate([own, -other[~is_shared]])
            difference *= np.sqrt(weights)
            place = np.concatenate([index[k], index[l][~is_shared]])
            missing[np.ix_(place, place)] += difference @ difference.T
        return missing


def information_of_rows(posterior, whitened):
    """An upper bound of h_nk' R h_nk, the size of a row's features relative to R^-1: (L, n).

    Parameters
    ----------
    whitened : OwnRows
    """
    structure, squared = posterior.structure, whitened.squares()
    origin_norm = _norms(structure, posterior.second_moment_origin)
    intercepts = np.square(posterior.intercept_root).sum(axis=1)[:, None]
    scale, of_scales = 1.0, 0.0
    if whitened.scales is not None:
        scale = np.maximum(whitened.scales.mean, 1.0)
        origin_norm = _norms(structure, posterior.known_noise)
        origin_norm = origin_norm + _norms(structure, structure.identity_statistic[None])
        of_scales = 0.5 * structure.n_dimensions * np.square(scale / posterior.mean_precision[:, None])
        if structure.n_tails:
            of_feature = np.square(posterior.tails.expected_feature(whitened.scales))
            of_scales = of_scales + of_feature / posterior.tails.information(posterior.counts)[:, None]
    of_components = (
        intercepts[: len(squared)]
        + np.square(scale) * squared / posterior.mean_precision[:, None]
        + 0.5 * (scale * (squared + origin_norm)) ** 2 / posterior.effective_degrees_of_freedom[:, None]
        + of_scales
    )
    shape = posterior.n_labels - len(squared), squared.shape[1]
    return np.concatenate([of_components, np.broadcast_to(intercepts[len(squared) :], shape)])


def _norms(structure, statistics):
    """Frobenius norms: (S, ...) -> (S, 1)."""
    return np.linalg.norm(structure.flattened(statistics), axis=-1, keepdims=True)
