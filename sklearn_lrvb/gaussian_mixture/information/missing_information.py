"""G, the information that is lost because assignments are not observed: as a product and as a matrix.

    G = sum_n w_n [(r_nk delta_kl - r_nk r_nl) h_nk h_nl']_kl
      = sum_n w_n sum_{k<l} r_nk r_nl (h_nk - h_nl)(h_nk - h_nl)',

with w_n the sample weight of row n and h_nk its features in component k (`covariance_structures`), each in
its places in the vector of all coefficients. Rows of certain assignment add nothing to it. Rows with holes
have what is expected of their features, and add the information that holes hide as well
(`hidden_information`).
G is computed in the forms that the three solvers of `sklearn_lrvb.linear_response` need:

* `missing_information_product`: G v, at the price of a sweep and a half, in memory that does not depend on
  the number of rows;
* `missing_information`: the matrix, in one pass over the rows;
* `RowColumns` in `columns`: a root of G, with few columns where few rows are ambiguous.
"""

import functools
import itertools

import numpy as np

from sklearn_lrvb.gaussian_mixture.covariance_structures.full_pair import FullPair, QuarticMoments
from sklearn_lrvb.gaussian_mixture.e_step.frames import (
    MAX_AMPLIFICATION,
    CommonFrame,
    OwnFrames,
    ScaledWeights,
    expected_features,
    frames_of,
    has_common_terms,
    scale_directions,
)
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import (
    NEGLIGIBLE_INFORMATION,
    centred_on_average,
    expect,
)
from sklearn_lrvb.gaussian_mixture.information.hidden_information import (
    HiddenMatrixInformation,
    HiddenScaleInformation,
)
from sklearn_lrvb.row_blocks import Workload


def change_of_log_densities(frames, posterior, coefficients):
    """beta_k . h_nk as coefficients in the frames, given beta (..., D); without fitted nu."""
    polynomials = posterior.structure.polynomials(coefficients, posterior.second_moment_origin)
    return frames.polynomials(*polynomials)


class ChangesOfScaledRows:
    """What a change beta of the coefficients does to rows that have scales u.

    Parameters
    ----------
    frames : OwnFrames or CommonFrame
    posterior : VariationalPosterior, with tails
    coefficients : (D,), beta
    """

    def __init__(self, frames, posterior, coefficients):
        structure = posterior.structure
        self._frames, self._tails = frames, posterior.tails
        self._polynomials = change_of_log_densities(frames, posterior, coefficients)
        of_tails = coefficients[structure.coefficient_blocks["tail"]]
        self._of_tails = np.broadcast_to(of_tails, structure.n_components)[:, None] if of_tails.size else None

    def moments(self, expectation, counted, hidden_values):
        """Changes of the moments of a block's rows, given their weighted responsibilities (L, n)."""
        frames, tails, framed, scales = self._frames, self._tails, expectation.framed, expectation.scales
        slopes = frames.derivatives_by_scale(framed, self._polynomials)
        changes = np.repeat(self._polynomials[0][:, None], slopes.shape[1], axis=1)
        changes[: len(slopes)] += scales.mean * slopes
        has_holes = isinstance(frames, OwnFrames) and framed.hidden is not None
        if has_holes:
            changes[: len(slopes)] += frames.hidden_changes(framed, self._polynomials)
        of_components = counted[: len(slopes)]
        # Scales respond to the changes given the component, as u and log u - u vary together with h.
        of_scales, of_logs = scales.variance * slopes, np.zeros_like(slopes)
        if self._of_tails is not None:
            changes[: len(slopes)] += self._of_tails * tails.expected_feature(scales)
            with_scale, variance = tails.covariances_with_scale(scales)
            of_scales += self._of_tails * with_scale
            of_logs = (with_scale * slopes + self._of_tails * variance) * (2.0 / tails.nu[:, None])
        moved = centred_on_average(changes, expectation.responsibilities) * counted
        weights = expectation.weights(moved)
        log_scale_sums = weights.log_scale_sums + (of_components * of_logs).sum(axis=1)
        weights = ScaledWeights(moved, weights.scaled + of_components * of_scales, log_scale_sums)
        moments = frames.moments(framed, weights)
        if not (hidden_values and has_holes):
            return moments
        return moments + frames.hidden_moments(framed, self._polynomials, expectation.weights(counted))


# As a product.


def missing_information_product(rows, posterior, coefficients, hidden_values=True):
    """G times the columns of ``coefficients``, (D, m) -> (D, m): one pass over the rows.

    Without ``hidden_values`` it is that of unknown labels alone.
    """
    frames = frames_of(posterior, rows)
    kind = change_of_log_densities if posterior.tails is None else ChangesOfScaledRows
    changes = [kind(frames, posterior, column) for column in coefficients.T]
    function = functools.partial(_products_of_block, frames, changes, hidden_values)
    products = rows.total(function, frames.workload)
    return np.stack([posterior.feature_moments(frames.in_own_frames(own)) for own in products], axis=1)


def _products_of_block(frames, changes, hidden_values, block):
    """Moments of the responsibilities' changes, one for each change of the log densities."""
    expectation = expect(frames, block)
    r, counted = expectation.responsibilities, block.weighted(expectation.responsibilities)
    if expectation.scales is not None:
        return [change.moments(expectation, counted, hidden_values) for change in changes]
    moments = []
    for change in changes:
        # With d rho = beta . h, the responsibilities change by d r = V_z d rho; its moments are returned.
        changed = centred_on_average(frames.changes(expectation.framed, change), r)
        changed *= counted
        own = frames.moments(expectation.framed, changed)
        if hidden_values and block.holes is not None:
            own = own + frames.hidden_moments(expectation.framed, change, counted)
        moments.append(own)
    return moments


# As a matrix.


def missing_information(rows, posterior, ways, hidden_values=True):
    """G, (D, D): one pass over the rows, in memory that does not depend on their number.

    Parameters
    ----------
    rows : Rows
    posterior : VariationalPosterior
    ways : sequence of `from_monomials`, `in_own_frames` and `by_pairs`
        The first one is taken, unless it would lose digits.
    hidden_values : bool, default=True
        Whether G has the information that holes hide, besides that of unknown labels.
    """
    for way in ways:
        missing = way(rows, posterior, hidden_values)
        if missing is not None:
            break
    return missing


def from_monomials(rows, posterior, hidden_values=True):
    """G from the monomials m of complete rows in a frame that all components share; None if digits get lost.

    The features h_k of a component are linear in m, so that G is made of the sums of r_k r_l m m'. These are
    all that is needed: r_k (1 - r_k) is the sum of r_k r_l over the other components.
    """
    frame = CommonFrame(posterior)
    # Products of features have up to twice the degree of log densities, and amplify rounding as much more.
    # Components that share a precision differ by features that are linear.
    degree = 1 if posterior.structure.shares_precision else 2
    if (
        rows.has_holes
        or posterior.tails is not None
        or not has_common_terms(posterior.structure)
        or frame.amplification**degree >= MAX_AMPLIFICATION
    ):
        return None
    structure, n_components, n_labels = posterior.structure, posterior.n_components, posterior.n_labels
    n_monomials = structure.n_monomials
    size = n_labels * n_monomials
    workload = Workload(2 * size, product=size)
    products = rows.total(functools.partial(_products_of_monomials, frame), workload)
    missing, each = np.negative(products, out=products), np.arange(n_labels)
    by_label = missing.reshape(n_labels, n_monomials, n_labels, n_monomials)
    by_label[each, :, each] = 0.0
    by_label[each, :, each] = -by_label.sum(axis=2)
    # The maps from m to the h_k, (D, L, F), by coefficients one at a time: the same one of every component.
    index = structure.coefficient_index.T
    units = np.zeros((len(index), structure.n_coefficients))
    units[np.arange(len(index))[:, None], index] = 1.0
    maps = np.zeros((structure.n_coefficients, n_labels, n_monomials))
    changes = change_of_log_densities(frame, posterior, units)
    maps[index, each[:n_components]] = changes[:, :n_components]
    background = each[n_components:]
    maps[background, background, 0] = 1.0
    to_coefficients = maps.reshape(len(maps), -1)
    return to_coefficients @ missing @ to_coefficients.T


def _products_of_monomials(frame, block):
    """Sums of r_k r_l m m' over a block, (K F, K F)."""
    expectation = expect(frame, block)
    monomials, r = expectation.framed, expectation.responsibilities * np.sqrt(block.counts)
    products = (r[:, None] * monomials).reshape(-1, monomials.shape[1])
    return products @ products.T


def in_own_frames(rows, posterior, hidden_values=True, pairs=()):
    """G from rows in the components' own frames; of complete rows by ``pairs``, if there are any."""
    structure = posterior.structure
    sums = _SumsInOwnFrames(posterior, rows.n_samples, pairs)
    # Some of a block's rows are ambiguous between two components: products of them want large blocks.
    workload = None
    if rows.has_holes:
        workload = Workload(posterior.centred_means.size, structure.size_of_pattern)
    of_labels, of_pairs, of_background, of_scales, of_hidden_values = rows.total(sums.of_block, workload)
    missing = np.zeros(2 * (structure.n_coefficients,))
    if sums.by_blocks and of_labels is not None:
        index = structure.coefficient_index.ravel()
        missing[np.ix_(index, index)] = of_labels.swapaxes(1, 2).reshape(len(index), -1)
        if structure.n_tails == 1:  # All components share this coefficient.
            index, tail = structure.coefficient_index, structure.n_coefficients - 1
            of_tail = of_labels[..., -1].sum(axis=1)
            missing[index, tail] = missing[tail, index] = of_tail
            missing[tail, tail] = of_tail[:, -1].sum()
    elif of_labels is not None:
        missing = of_labels
    for index, own in zip(structure.coefficient_index, () if of_scales is None else of_scales, strict=False):
        missing[np.ix_(index, index)] += own
    for k, own in enumerate(() if of_background is None else of_background):
        # The features of component k less the only one of the background, which is 1.
        index = structure.coefficient_index[k]
        missing[np.ix_(index, index)] += own
        missing[index, structure.n_components] -= own[0]
        missing[structure.n_components, index] -= own[0]
        missing[structure.n_components, structure.n_components] += own[0, 0]
    # There are none where no block is complete, nor of pairs that are certain in all rows.
    for pair, moments in zip(pairs, of_pairs or [None] * len(pairs), strict=True):
        if moments is not None:
            pair.add_to(missing, moments)
    if hidden_values and of_hidden_values is not None:
        sums.hidden_information.add_to(missing, of_hidden_values)
    return missing


def by_pairs(rows, posterior, hidden_values=True):
    """G by `FullPair`, for components with a precision matrix each."""
    quartic = QuarticMoments(1 + posterior.n_features)
    pairs = itertools.combinations(range(posterior.n_components), 2)
    pairs = [FullPair(posterior, k, l, quartic) for k, l in pairs]
    return in_own_frames(rows, posterior, hidden_values, pairs)


class _SumsInOwnFrames:
    """Sums over the rows that are ambiguous between two components, in the components' own frames.

    Where components have precisions of their own, G is summed by its blocks of components. Those of one
    precision share coefficients, in which blocks would cancel: there it is summed by pairs of components.

    Parameters
    ----------
    posterior : VariationalPosterior
    n_samples : int
    pairs : sequence of FullPair, of all pairs of components, by which complete rows are summed; or empty
    """

    def __init__(self, posterior, n_samples, pairs):
        self._posterior, self._pairs, structure = posterior, pairs, posterior.structure
        self._frames = OwnFrames(posterior)
        self._components = list(itertools.combinations(range(posterior.n_components), 2))
        # All that is left out is negligible together.
        self._negligible = NEGLIGIBLE_INFORMATION / (n_samples * max(1, len(self._components)))
        kind = HiddenMatrixInformation if structure.is_matrix else HiddenScaleInformation
        self.hidden_information = kind(structure)
        self.by_blocks = structure.has_own_precisions

    def of_block(self, block):
        """Sums for unknown labels, moments of the pairs, and sums for background, scales and hidden values.

        Labels of complete rows are summed by the pairs, if there are any. Otherwise the sum is (D, D), or by
        blocks of components with a precision each, (K, K, F, F). What has no rows is None.
        """
        expectation = expect(self._frames, block)
        framed, r = expectation.framed, expectation.responsibilities
        counted = block.weighted(r)
        information = information_of_rows(self._posterior, framed)
        of_scales = None if framed.scales is None else self._of_scales(framed, counted)
        has_background = self._posterior.structure.has_background
        of_background = self._with_background(framed, counted, r, information) if has_background else None
        pairs = []
        for k, l in self._components:
            weights = counted[k] * r[l]
            some = np.flatnonzero(weights * (information[k] + information[l]) > self._negligible)
            pairs.append((k, l, some, weights[some]))
        if self._pairs and block.holes is None:
            moments = [
                pair.moments(np.take(block.rows, some, axis=1), weights) if some.size else None
                for pair, (_, _, some, weights) in zip(self._pairs, pairs, strict=True)
            ]
            return None, moments, of_background, None, None
        sums = self._by_blocks if self.by_blocks else self._by_differences
        pairs = [pair for pair in pairs if pair[2].size]
        of_labels = sums(framed, pairs) if pairs else None
        if block.holes is None:
            return of_labels, None, of_background, of_scales, None
        of_components = expectation.weights(counted[: self._posterior.n_components])
        of_hidden_values = self.hidden_information.of_block(framed, of_components)
        return of_labels, None, of_background, of_scales, of_hidden_values

    def _of_scales(self, framed, counted):
        """What unknown scales add to G given the component, by component: (K, F, F)."""
        directions, rest = scale_directions(self._posterior, framed)
        size = self._posterior.structure.n_component_features
        sums = np.zeros((len(directions), size, size))
        for direction, own, weights in zip(directions, sums, counted, strict=False):
            direction *= np.sqrt(weights)
            np.matmul(direction, direction.T, out=own)
        if rest is not None:
            sums[:, -1, -1] += (counted[: len(sums)] * rest).sum(axis=1)
        return sums

    def _with_background(self, framed, counted, r, information):
        """Sums of w r_k r_0 h_k h_k' over some rows, 0 being the background: (K, F, F)."""
        posterior, n_components = self._posterior, self._posterior.n_components
        size = posterior.structure.n_component_features
        sums = np.zeros((n_components, size, size))
        for k, own in enumerate(sums):
            weights = counted[k] * r[n_components]
            some = np.flatnonzero(weights * (information[k] + information[n_components]) > self._negligible)
            rooted = expected_features(posterior, framed.selected(some), k) * np.sqrt(weights[some])
            np.matmul(rooted, rooted.T, out=own)
        return sums

    def _by_blocks(self, framed, pairs):
        """G of some rows by its blocks of components, for own precisions: (K, K, F, F)."""
        n_components, size = self._posterior.n_components, self._posterior.structure.n_component_features
        blocks = np.zeros((n_components, n_components, size, size))
        ambiguous = np.unique(np.concatenate([some for _, _, some, _ in pairs]))
        rows = framed.selected(ambiguous)
        # Row by row, (n, F), so that picking some rows reads memory in order.
        features = [
            np.ascontiguousarray(expected_features(self._posterior, rows, k).T) for k in range(n_components)
        ]
        within = np.zeros((n_components, len(ambiguous)))
        for k, l, some, weights in pairs:
            place = np.searchsorted(ambiguous, some)
            within[k, place] += weights
            within[l, place] += weights
            weighted = features[k].take(place, axis=0) * -weights[:, None]
            np.matmul(weighted.T, features[l].take(place, axis=0), out=blocks[k, l])
            blocks[l, k] = blocks[k, l].T
        for k, weights in enumerate(within):
            rooted = features[k] * np.sqrt(weights)[:, None]
            np.matmul(rooted.T, rooted, out=blocks[k, k])
        return blocks

    def _by_differences(self, framed, pairs):
        """G, (D, D), of some rows by pairs of components, which share coefficients."""
        structure = self._posterior.structure
        index, missing = structure.coefficient_index, np.zeros(2 * (structure.n_coefficients,))
        is_shared = (index == index[0]).all(axis=0)
        for k, l, some, weights in pairs:
            rows = framed.selected(some)
            own, other = (expected_features(self._posterior, rows, component) for component in (k, l))
            own[is_shared] -= other[is_shared]
            difference = np.concatenate([own, -other[~is_shared]])
            difference *= np.sqrt(weights)
            place = np.concatenate([index[k], index[l][~is_shared]])
            missing[np.ix_(place, place)] += difference @ difference.T
        return missing


def information_of_rows(posterior, framed):
    """An upper bound of h_nk' R h_nk, a row's squared features in units of the complete information: (L, n).

    Parameters
    ----------
    framed : OwnRows
    """
    structure, squared = posterior.structure, framed.squares()
    origin_norm = structure.norm(posterior.second_moment_origin)[:, None]
    intercepts = np.square(posterior.intercept_root).sum(axis=1)[:, None]
    scale, of_scales = 1.0, 0.0
    if framed.scales is not None:
        scale = np.maximum(framed.scales.mean, 1.0)
        origin_norm = structure.norm(posterior.noise)[:, None] + structure.norm(structure.identity_statistic)
        of_scales = 0.5 * structure.n_dimensions * np.square(scale / posterior.mean_precision[:, None])
        if structure.n_tails:
            of_feature = np.square(posterior.tails.expected_feature(framed.scales))
            of_scales = of_scales + of_feature / posterior.tails.information(posterior.counts)[:, None]
    of_components = (
        intercepts[: len(squared)]
        + np.square(scale) * squared / posterior.mean_precision[:, None]
        + 0.5 * (scale * (squared + origin_norm)) ** 2 / posterior.effective_degrees_of_freedom[:, None]
        + of_scales
    )
    shape = posterior.n_labels - len(squared), squared.shape[1]
    return np.concatenate([of_components, np.broadcast_to(intercepts[len(squared) :], shape)])
