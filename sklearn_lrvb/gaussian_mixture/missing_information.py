"""G, what not knowing the assignments loses: as a product, as a matrix, and as a factor.

    G = sum_n [(r_nk delta_kl - r_nk r_nl) h_nk h_nl']_kl = sum_n B_n B_n'

Rows whose assignment is certain carry none of it. Three passes over the rows give what the three solvers of
`sklearn_lrvb.linear_response` need:

* `missing_information_product`: G v, the price of a sweep and a half, memory O(1) in the rows;
* `missing_information`: the matrix, one Gram matrix of weight r_k r_l >= 0 for every pair of components,
  because diag(r) - r r' = sum_{k<l} r_k r_l (e_k - e_l)(e_k - e_l)'. It is accumulated in the frame of the
  product of the two Gaussians, at least as tight as either in every direction, so that taking it over into
  theirs loses no digits;
* `UncertainColumns`: the columns of B, few where few rows are uncertain, with their kernels.
"""

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.gaussian_mixture.quartic_moments import quartic_moments
from sklearn_lrvb.gaussian_mixture.sweep import centred_on_average, expect, sums_over_blocks
from sklearn_lrvb.gaussian_mixture.variational_posterior import Moments

# What is left out as certain has a trace below this in units of the complete information.
_NEGLIGIBLE_INFORMATION = 1e-12

_COMPACTED = 0.6  # share of a block's rows above which picking them costs more than it saves
_SLAB = 512  # columns of the kernel at once


def feature_products(posterior, coefficients, whitened):
    """beta_k . h_nk: (K F,), (K, P, n) -> (K, n)."""
    constant, linear, quadratic = posterior.structure.polynomials(
        coefficients.reshape(posterior.n_components, -1), posterior.second_moment_origin
    )
    products = np.einsum("kpn,kpn->kn", np.matmul(quadratic, whitened), whitened)
    products += np.einsum("kp,kpn->kn", linear, whitened)
    products += constant[:, None]
    return products


def weighted_moments(posterior, whitened, weights):
    """Sums of weight (1, y, y y') where weights may be negative: (K, P, n), (K, n) -> Moments."""
    return Moments(
        weights.sum(axis=1),
        np.einsum("kpn,kn->kp", whitened, weights),
        posterior.structure.signed_second_moments(whitened, weights),
    )


def features_of(posterior, moments):
    """Sums of weight h from those of (1, y, y y'): (K F,). The transpose of `feature_products`."""
    return posterior.structure.feature_moments(
        moments.counts, moments.first, moments.second, posterior.second_moment_origin
    ).ravel()


def missing_information_product(rows, posterior, coefficients):
    """G times the columns of ``coefficients``, (K F, m) -> (K F, m): one pass over the rows."""

    def one_block(_, block):
        expectation = expect(posterior, block)
        y, r = expectation.whitened, expectation.responsibilities
        moments = []
        for column in coefficients.T:
            # d rho = beta . h, d r = V_z d rho, then the moments of d r
            moved = centred_on_average(feature_products(posterior, column, y), r)
            moved *= r
            moments.append(weighted_moments(posterior, y, moved))
        return moments

    totals = sums_over_blocks(rows.map(one_block))
    return np.stack([features_of(posterior, moments) for moments in totals], axis=1)


def _information_of_rows(posterior, whitened):
    """|T' h_nk|^2 from above: a row's features in units of the complete information, (K, n)."""
    origin_norm = np.sqrt(np.einsum("kpq,kpq->k", *2 * [posterior.second_moment_origin]))[:, None]
    intercepts = np.square(posterior.intercept_root).sum(axis=1)[:, None]
    squared = np.einsum("kpn,kpn->kn", whitened, whitened)
    return (
        intercepts
        + squared / posterior.mean_precision[:, None]
        + 0.5 * (squared + origin_norm) ** 2 / posterior.information[:, None]
    )


def missing_information(rows, posterior):
    """G, (K F, K F): one pass over the rows, memory independent of their number.

    For every pair of components and every row that is uncertain between them about 2 C(P + 4, 4) flops, or
    F^2 with few features (`quartic_moments`).
    """
    n_components = posterior.n_components
    missing = np.zeros((n_components, posterior.structure.n_coefficients) * 2)
    quartic = quartic_moments(posterior.n_features)
    pairs = [_Pair(posterior, k, l) for k in range(n_components) for l in range(k + 1, n_components)]
    for pair, moments in zip(pairs, _pair_moments(rows, posterior, pairs, quartic), strict=True):
        if moments is None:
            continue
        gram, k, l = quartic.gram(moments), pair.k, pair.l
        in_k, in_l = pair.features(k, gram), pair.features(l, gram)  # (features, monomials)
        own, other = pair.features(k, in_k.T), pair.features(l, in_l.T)
        mixed = pair.features(l, in_k.T).T
        missing[k, :, k] += 0.5 * (own + own.T)
        missing[l, :, l] += 0.5 * (other + other.T)
        missing[k, :, l] = -mixed
        missing[l, :, k] = -mixed.T
    return missing.reshape(2 * [missing.shape[0] * missing.shape[1]])


def _pair_moments(rows, posterior, pairs, quartic):
    """Moments of weight r_k r_l in every pair's frame; None where no row is uncertain between the two."""
    negligible = _NEGLIGIBLE_INFORMATION / (rows.n_samples * max(1, len(pairs)))

    def one_block(_, block):
        expectation = expect(posterior, block)
        r, information = expectation.responsibilities, _information_of_rows(posterior, expectation.whitened)
        moments = []
        for pair in pairs:
            weights = r[pair.k] * r[pair.l]
            share = weights * (information[pair.k] + information[pair.l])
            counting = np.flatnonzero(share > 0.5 * negligible)
            if counting.size > _COMPACTED * weights.size:
                moments.append(quartic.moments(pair.rows(block), weights))
            elif counting.size:
                moments.append(quartic.moments(pair.rows(block[:, counting]), weights[counting]))
            else:
                moments.append(None)
        return moments

    totals = [None] * len(pairs)
    for parts in rows.map(one_block):
        for number, part in enumerate(parts):
            if totals[number] is None:
                totals[number] = part
            elif part is not None:
                totals[number] += part
    return totals


class _Pair:
    """Two components, and the frame of the product of their Gaussians: z = R (x - c).

    With Q R the factorization of their whiteners, one above the other, R' R = E Lambda_k + E Lambda_l, and
    y_k = Q_k z + W_k (c - m_k), where the rows Q_k of Q are a contraction.
    """

    def __init__(self, posterior, k, l):
        self.k, self.l = k, l
        self._posterior = posterior
        n_features = posterior.n_features
        whiteners, offsets = posterior.whiteners[[k, l]], posterior.offsets[[k, l]]
        Q, self._whitener = np.linalg.qr(whiteners.reshape(2 * n_features, n_features))
        gap = offsets[1] - offsets[0]
        # c minimises the sum of both squared distances
        step = solve_triangular(self._whitener, Q[n_features:].T @ (whiteners[1] @ gap))
        self._center = offsets[0] + step
        self._turns = {k: Q[:n_features], l: Q[n_features:]}
        self._shifts = {k: whiteners[0] @ step, l: whiteners[1] @ (step - gap)}

    def rows(self, block):
        """z of a centred block, (P, n)."""
        return self._whitener @ (block - self._center[:, None])

    def features(self, component, monomials):
        """Sums of a component's h from those of z's monomials, along the first axis: (F, m) -> (F, m)."""
        return self._posterior.structure.features_from_monomials(
            monomials,
            self._turns[component],
            self._shifts[component],
            self._posterior.second_moment_origin[component],
        )


class UncertainColumns:
    """B with G = B B': for every row up to K - 1 columns, those that are not negligible.

    Column (n, j) is a_nj,k h_nk in component k, where a_nj is column j of the Cholesky factor of diag(r) -
    r r': the change of the assignment when component j is decided, those before it being refused.

    Parameters
    ----------
    posterior : VariationalPosterior
    whitened : (K, P, n), uncertain rows in every component's frame
    row : int array (m,), the row of every column
    weights : (K, m), a of every column
    """

    def __init__(self, posterior, whitened, row, weights):
        self._posterior = posterior
        self._whitened = whitened
        self._row = row
        self._weights = weights

    @classmethod
    def of_rows(cls, rows, posterior):
        """One pass over the rows; memory K P for every uncertain one."""
        n_columns = max(1, posterior.n_components - 1)
        negligible = _NEGLIGIBLE_INFORMATION / (rows.n_samples * n_columns)

        def one_block(_, block):
            expectation = expect(posterior, block)
            y, r = expectation.whitened, expectation.responsibilities
            information = _information_of_rows(posterior, y)
            # intercepts are correlated: the norms of their parts bound that of the whole K times
            share = posterior.n_components * np.einsum("kn,kn->n", r * _others(r), information)
            uncertain = np.flatnonzero(share > negligible)
            weights = _assignment_root(r[:, uncertain])
            trace = np.einsum("kjn,kn->jn", np.square(weights), information[:, uncertain])
            column, row = np.nonzero(posterior.n_components * trace > negligible)
            kept, row = np.unique(row, return_inverse=True)
            return y[:, :, uncertain[kept]], row, weights[:, column, kept[row]]

        whitened, row, weights = zip(*rows.map(one_block), strict=True)
        first = np.cumsum([0] + [part.shape[2] for part in whitened[:-1]])
        return cls(
            posterior,
            np.concatenate(whitened, axis=2),
            np.concatenate([part + start for part, start in zip(row, first, strict=True)]),
            np.concatenate(weights, axis=1),
        )

    def __len__(self):
        return len(self._row)

    def kernel(self):
        """B' R B, (m, m), from inner products of rows alone."""
        posterior, structure = self._posterior, self._posterior.structure
        half = posterior.intercept_root.T @ self._weights
        kernel = half.T @ half
        for k, weights in enumerate(self._weights):
            used = np.flatnonzero(weights)
            rows, origin = self._whitened[k][:, self._row[used]], posterior.second_moment_origin[k]
            for start in range(0, used.size, _SLAB):
                slab = slice(start, start + _SLAB)
                products = structure.feature_kernel(
                    rows[:, slab], rows, origin, posterior.mean_precision[k], posterior.information[k]
                )
                products *= weights[used[slab], None]
                products *= weights[used]
                kernel[np.ix_(used[slab], used)] += products
        return 0.5 * (kernel + kernel.T)

    def responses(self, index):
        """B' R[:, index], (m, len(index))."""
        posterior, structure = self._posterior, self._posterior.structure
        component, feature = np.divmod(np.asarray(index), structure.n_coefficients)
        responses = np.empty((len(self), len(component)))
        counts = posterior.intercept_root @ (posterior.intercept_root.T @ self._weights)
        for k in np.unique(component):
            chosen = np.flatnonzero((component == k) & (feature > 0))
            rows = self._whitened[k][:, self._row]
            entries = structure.feature_entries(rows, posterior.second_moment_origin[k], feature[chosen])
            variance = 1.0 / structure.complete_information(
                posterior.mean_precision[k : k + 1], posterior.information[k : k + 1]
            )
            entries *= self._weights[k]
            responses[:, chosen] = entries.T * variance[0, feature[chosen] - 1]
            intercept = np.flatnonzero((component == k) & (feature == 0))
            responses[:, intercept] = counts[k][:, None]
        return responses

    def product(self, weights):
        """B weights: (m, c) -> (K F, c)."""
        posterior = self._posterior
        n_components, _, n_rows = self._whitened.shape
        columns = []
        for column in weights.T:
            by_row = np.stack(
                [np.bincount(self._row, a * column, minlength=n_rows) for a in self._weights]
            ).reshape(n_components, n_rows)
            columns.append(features_of(posterior, weighted_moments(posterior, self._whitened, by_row)))
        return np.stack(columns, axis=1)

    def transposed_product(self, array):
        """B' array: (K F, c) -> (m, c)."""
        columns = []
        for column in array.T:
            products = feature_products(self._posterior, column, self._whitened)
            columns.append(np.einsum("km,km->m", self._weights, products[:, self._row]))
        return np.stack(columns, axis=1)


def _others(responsibilities):
    """1 - r_k to the last digit, also where r_k is almost 1: (K, n) -> (K, n)."""
    others = np.zeros_like(responsibilities)
    others[1:] = np.cumsum(responsibilities[:-1], axis=0)
    others[:-1] += np.cumsum(responsibilities[:0:-1], axis=0)[::-1]
    return others


def _assignment_root(responsibilities):
    """Cholesky factor of diag(r) - r r', without its last column of zeros: (K, n) -> (K, K - 1, n)."""
    n_components, n_rows = responsibilities.shape
    # sums from the end: 1 - sums from the start would lose the digits of rows that are all but certain
    tails = np.cumsum(responsibilities[::-1], axis=0)[::-1]
    root = np.zeros((n_components, n_components - 1, n_rows))
    for j in range(n_components - 1):
        here, after, from_here = responsibilities[j], tails[j + 1], tails[j]
        alive = (after > 0) & (from_here > 0)
        scale = np.sqrt(np.divide(here * after, from_here, out=np.zeros(n_rows), where=alive))
        root[j, j] = scale
        share = np.divide(scale, after, out=np.zeros(n_rows), where=alive)
        root[j + 1 :, j] = -share * responsibilities[j + 1 :]
    return root
