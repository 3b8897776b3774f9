"""The linear response of a mean-field posterior, for any factors asked for, from one factorization.

*Conventions.* The factors fall into two sets. No two *separate* factors share a term; the others are *joint*.
With V_j and H_j,r of a separate factor j and the joint factors r, and a root R of their V (R R' = V_r),

    S = I - R' (H_r + sum_j H_r,j V_j H_j,r) R

is the observed information of the joint factors in units of the complete one (paper, Equation 11), where
members with a weight w count w times in the sum over j (such factors are separate), and
Sigma_r = R S^-1 R' their linear response covariance. Any statistics a have a block of rows Y_a over the joint
statistics: unit rows for joint ones, V_j H_j,r restricted to them for separate ones. The linear response
covariance of a and b is then

    C_ab + Y_a Sigma_r Y_b',

where C_ab is V_j restricted to them if both belong to one separate factor, and zero otherwise.
"""

import os
from functools import cached_property

import numpy as np
from scipy import sparse

from sklearn_lrvb.linear_response.definite_system import BlockRoot, ResponseSystem
from sklearn_lrvb.mean_field.coupling import BYTES_PER_ENTRY
from sklearn_lrvb.mean_field.factor import covariance_form, covariance_product, with_copies
from sklearn_lrvb.mean_field.quantities import own_covariances
from sklearn_lrvb.row_blocks import batches

_ROOT_MATRICES = 4.0  # Number of arrays of the size of the joint members' covariance blocks.
_BYTES_PER_PAIR = 65.0  # Memory for each entry of H_r,j V_j H_j,r while S is computed.
_DENSE_MATRICES = 3.5  # Number of dense matrices over the rows of S that are eliminated last.
_PAIRS_BYTES = 2**26  # Memory for pairs of entries of some rows.
_DENSE_FROM = 0.2  # Share of entries that are not zero from which quadratic forms are computed densely.

# Part of a statistic along a flat direction, in its standard deviations, from which it is not identified.
UNIDENTIFIED_FROM = 1e-4

# A factor is separate if it has at least this share of the statistics that it shares terms with: a small one
# would couple all of these to each other.
_LEAST_SHARE = 0.25


class LinearResponse:
    """Linear response covariances of a posterior.

    Parameters
    ----------
    log_joint : LogJoint
    natural_parameters, mean_parameters : dict, name -> ndarray
    """

    def __init__(self, log_joint, natural_parameters, mean_parameters):
        self._factors, self._natural = log_joint.factors, natural_parameters
        separate = separate_factors(log_joint)
        self.joint = [name for name in self._factors if name not in separate]
        self._starts = log_joint.starts_among(self.joint)
        root = self._root_of_joint()
        missing, self._couplings = self._eliminate(separate, log_joint, mean_parameters)
        self._system = ResponseSystem(root, missing)

    def _root_of_joint(self):
        n_bytes = sum(8.0 * self._factors[name].size * self._factors[name].shape[-1] for name in self.joint)
        require_memory(
            _ROOT_MATRICES * n_bytes,
            f"The covariance matrices of the members of {', '.join(map(repr, self.joint))}",
            ["std(..., method='mean_field') needs none of them."],
        )
        return BlockRoot(
            (f"V of {name!r}", self._factors[name].covariance_blocks(self._natural[name]), None)
            for name in self.joint
        )

    def _eliminate(self, separate, log_joint, means):
        """The information that the joint factors miss, in their mean parameters, and H_j,r: dict."""
        n_entries = log_joint.n_hessian_entries(self.joint, self.joint)
        _require_memory_for_derivatives(n_entries, self.joint)
        missing = log_joint.hessian(means, self.joint)
        couplings = log_joint.couplings(means, separate, self.joint)
        for name, coupling in couplings.items():
            _require_memory_for_derivatives(coupling.n_block_entries, [name])
            for active, form in self._forms(name, coupling):
                missing = missing + _spread(form, active, missing.shape[0])
        return missing, couplings

    def _forms(self, name, coupling):
        """Yield joint statistics, and H_r,j V_j H_j,r over these, a sum over blocks."""
        total, of_total = None, None
        for block in coupling.blocks():
            if not sparse.issparse(block.matrix):
                _require_memory_for_form(len(block.active) ** 2, name)
            factor, natural = self._of_copies(name, block.copies)
            form = covariance_form(factor, natural, _counted(factor, block.matrix))
            if sparse.issparse(form):
                _require_memory_for_form(form.nnz, name)
            if total is not None and np.array_equal(of_total, block.active):
                total = total + form
                continue
            if total is not None:
                yield of_total, total
            total, of_total = form, block.active
        yield of_total, total

    def _of_copies(self, name, copies):
        """A factor with some of its copies alone, and their natural parameters."""
        factor, natural = self._factors[name], self._natural[name]
        if copies == slice(None):
            return factor, natural
        return with_copies(factor, copies), natural[copies]

    def factor(self, flat_below):
        """Factor S. Eigenvalues up to ``flat_below`` belong to flat directions, which are left out.

        Raises
        ------
        NotPositiveDefiniteError
            q is no local optimum.
        """
        n_dense = self._system.n_dense_rows
        joint = ", ".join(map(repr, self.joint))
        require_memory(
            _DENSE_MATRICES * 8.0 * n_dense**2,
            f"Linear response leaves {n_dense} statistics of {joint} coupled to most others: they",
            [
                "If few pairs of their copies meet in a term, say so by sparse coefficients or `at`.",
                "std(..., method='mean_field') needs no such matrix.",
            ],
        )
        self._system.factor(flat_below)
        self._flat = self._system.flat()

    @property
    def n_flat(self):
        """Number of flat directions."""
        return self._flat.shape[1]

    def along_flat(self, quantity):
        """Changes of a quantity along the flat directions, in mean-field standard deviations: (n, n_flat)."""
        along = self.rows(quantity) @ self._flat
        variances = quantity.variances(self._natural[quantity.name])
        return along / np.sqrt(np.where(variances > 0, variances, 1.0))[:, None]

    def is_identified(self, quantity):
        """Whether the entries of a quantity do not change along a flat direction: bool (n,)."""
        return np.linalg.norm(self.along_flat(quantity), axis=1) <= UNIDENTIFIED_FROM

    def rows(self, quantity):
        """Y of a quantity: sparse array of shape (n, number of joint statistics)."""
        indices, parts = zip(*self._parts_of_rows(quantity), strict=True)
        rows, order = sparse.vstack(parts, format="csr"), np.concatenate(indices)
        return rows if np.all(np.diff(order) > 0) else rows[np.argsort(order)]

    def _parts_of_rows(self, quantity):
        """Yield indices of some entries of a quantity, (n,), and their Y, (n, number of joint statistics)."""
        name, n_joint = quantity.name, self._system.size
        if name not in self._couplings:
            own = sparse.coo_array(quantity.coefficients(self._natural[name]))
            entries = own.data, (own.row, self._starts[name] + own.col)
            yield np.arange(own.shape[0]), sparse.csr_array(entries, shape=(own.shape[0], n_joint))
            return
        for block in self._couplings[name].blocks():
            indices, part = quantity.of_copies(block.copies)
            _, natural = self._of_copies(name, block.copies)
            product = sparse.coo_array(part.product(natural, block.matrix))
            entries = product.data, (product.row, block.active[product.col])
            yield indices, sparse.csr_array(entries, shape=(len(indices), n_joint))

    def _own_covariance(self, quantity, natural, other):
        """What does not depend on the response of the joint statistics, between quantities of a factor."""
        if quantity.name in self._couplings:
            return quantity.covariance(natural, other)
        return quantity.unexplained_covariance(natural, other)

    def covariance(self, quantities):
        """Covariance of quantities, one after the other: (d, d)."""
        rows = sparse.vstack([self.rows(quantity) for quantity in quantities], format="csr")
        covariance = np.empty(2 * (rows.shape[0],))
        for chunk in batches(rows.shape[0], 8 * max(rows.shape)):
            covariance[:, chunk] = rows @ self._system.solve(rows[chunk].toarray().T)
        for part, other, block in own_covariances(quantities, self._natural, self._own_covariance):
            covariance[part, other] += block
        return _symmetrized_in_place(covariance)

    def variances(self, quantity):
        """Variances of the entries of a quantity: (n,)."""
        n_rows, n_joint = len(quantity.positions), self._system.size
        by_covariance = n_rows > n_joint and self._system.is_dense
        variances = np.empty(n_rows)
        for indices, rows in self._parts_of_rows(quantity):
            if by_covariance:
                variances[indices] = _quadratic_forms(rows, self._joint_covariance)
                continue
            for chunk in batches(len(indices), 8 * max(n_joint, 1)):
                variances[indices[chunk]] = self._system.quadratic_forms(rows[chunk].toarray().T)
        natural = self._natural[quantity.name]
        if quantity.name in self._couplings:
            variances += quantity.variances(natural)
        elif quantity.is_derived:
            variances += np.diag(quantity.unexplained_covariance(natural, quantity))
        return variances

    @cached_property
    def _joint_covariance(self):
        """Sigma_r, a dense array."""
        return self._system.solve(np.eye(self._system.size))

    def decrement(self, residuals):
        """sqrt(r' Sigma r) of residuals r of the natural parameters: dict, name -> ndarray."""
        own = 0.0
        right = np.concatenate([np.zeros(0), *(residuals[name].ravel() for name in self.joint)])
        for name, coupling in self._couplings.items():
            for block in coupling.blocks():
                residual, (factor, natural) = (
                    residuals[name][block.copies],
                    self._of_copies(name, block.copies),
                )
                response = covariance_product(factor, natural, residual.reshape(-1, 1))
                response = factor.counted(response.reshape(residual.shape)).reshape(-1, 1)
                own += np.vdot(residual, response)
                right[block.active] += (block.matrix.T @ response)[:, 0]
        return float(np.sqrt(max(own + self._system.quadratic_forms(right[:, None])[0], 0.0)))


def _counted(factor, matrix):
    """Rows of a dense or sparse matrix over a factor's statistics, times the roots of its weights."""
    if factor.weights is None:
        return matrix
    scale = np.sqrt(factor.counted(np.ones(factor.shape))).reshape(-1, 1)
    return sparse.csr_array(matrix.multiply(scale)) if sparse.issparse(matrix) else scale * matrix


def _spread(form, active, size):
    """A dense or sparse matrix over some statistics as a sparse one over all."""
    if sparse.issparse(form):
        form = sparse.coo_array(form)
        return sparse.csr_array((form.data, (active[form.row], active[form.col])), shape=(size, size))
    counts = np.zeros(size + 1, dtype=np.int64)
    counts[1 + active] = len(active)
    columns = np.tile(active.astype(np.int32), len(active))
    return sparse.csr_array((form.ravel(), columns, np.cumsum(counts)), shape=(size, size))


_REMEDIES = [
    "Give indicators and tables with many zeros as sparse coefficients, or index copies by `at`.",
    "std(..., method='mean_field') needs none of them.",
]


def _require_memory_for_derivatives(n_entries, names):
    """Refuse entries of H that would not fit into memory."""
    what = f"The {n_entries} second derivatives of the log joint in {', '.join(map(repr, names))}"
    require_memory(BYTES_PER_ENTRY * n_entries, what, _REMEDIES)


def _require_memory_for_form(n_entries, name):
    """Refuse entries of H_r,j V_j H_j,r that would not fit into memory."""
    what = f"The {n_entries} pairs of statistics that {name!r} makes depend on each other"
    require_memory(_BYTES_PER_PAIR * n_entries, what, _REMEDIES)


def separate_factors(log_joint):
    """Names of factors no two of which share a term, those with weights and the largest first."""
    chosen, factors = [], log_joint.factors
    for name in sorted(factors, key=lambda name: (factors[name].weights is None, -factors[name].size)):
        others = log_joint.coupled[name]
        n_others = sum(factors[other].size for other in others)
        is_large = factors[name].weights is not None or factors[name].size >= _LEAST_SHARE * n_others
        if is_large and not others & set(chosen):
            chosen.append(name)
    return chosen


def _quadratic_forms(rows, covariance):
    """y' Sigma y of every row of a sparse array: (m, n), (n, n) -> (m,).

    Where rows have few entries, only those of Sigma are read that they need.
    """
    if rows.nnz > _DENSE_FROM * rows.shape[0] * rows.shape[1]:
        forms = np.empty(rows.shape[0])
        for chunk in batches(rows.shape[0], 16 * rows.shape[1]):
            dense = rows[chunk].toarray()
            forms[chunk] = np.einsum("ij,ij->i", dense @ covariance, dense)
        return forms
    counts = np.diff(rows.indptr)
    forms = np.zeros(rows.shape[0])
    batch = np.cumsum(40.0 * counts**2) // _PAIRS_BYTES
    ends = [0, *(1 + np.flatnonzero(np.diff(batch))), len(counts)]
    for chunk in map(slice, ends[:-1], ends[1:]):
        own = rows[chunk]
        number = counts[chunk]
        partners = np.repeat(number, number)  # number of entries in the row of every entry
        first = np.repeat(np.arange(len(own.data)), partners)
        starts = np.repeat(np.repeat(own.indptr[:-1], number), partners)
        within = np.arange(len(first)) - np.repeat(np.cumsum(partners) - partners, partners)
        second = starts + within
        products = own.data[first] * own.data[second] * covariance[own.indices[first], own.indices[second]]
        forms[chunk] = np.bincount(np.repeat(np.arange(len(number)), number**2), products, len(number))
    return forms


def _symmetrized_in_place(matrix):
    """The symmetric part of a matrix, which it replaces."""
    for chunk in batches(len(matrix), 8 * len(matrix)):
        rest = slice(chunk.start, None)
        part = 0.5 * (matrix[chunk, rest] + matrix[rest, chunk].T)
        matrix[chunk, rest] = part
        matrix[rest, chunk] = part.T
    return matrix


_LEAST_LIMIT = 2e9  # Bytes that may be taken on any machine.
_SHARE_OF_MACHINE = 0.5


def memory_limit():
    """Bytes that one answer may take: half of the machine's memory, or 2 GB if that is more or unknown."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Not every system says.
        machine = 0.0
    return max(_LEAST_LIMIT, _SHARE_OF_MACHINE * machine)


def require_memory(n_bytes, what, remedies):
    """Raise a MemoryError where ``what`` would take more bytes than the limit.

    Parameters
    ----------
    n_bytes : float
    what : str
        Subject of the error's sentence.
    remedies : list of str
        What to ask for instead; lettered if there are several.
    """
    limit = memory_limit()
    if n_bytes <= limit:
        return
    if len(remedies) > 1:
        remedies = [f"({letter}) {remedy}" for letter, remedy in zip("abcdef", remedies, strict=False)]
    raise MemoryError(
        f"{what} would need {n_bytes / 1e9:.1f} GB, more than {limit / 1e9:.0f} GB (half of this machine's "
        f"memory, or 2 GB). {' '.join(remedies)}"
    )
