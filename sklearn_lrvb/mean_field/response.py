"""The linear response of a mean-field posterior, for any factors asked for, from one factorization.

*Conventions.* The factors fall into two sets. No two *separate* factors share a term; the others are *joint*.
With V_j and H_j,r of a separate factor j and the joint factors r, the information that the joint factors miss
is H_r + sum_j H_r,j V_j H_j,r (paper, Equation 11), where members with a weight w count w times in the sum
over j (such factors are separate), and Sigma_r the response to it, a `ResponseSystem`. Any statistics a have
a block of rows Y_a over the joint statistics: unit rows for joint ones, V_j H_j,r restricted to them for
separate ones. The linear response covariance of a and b is then

    C_ab + Y_a Sigma_r Y_b',

where C_ab is V_j restricted to them if both belong to one separate factor, and zero otherwise.
"""

import os
from functools import cached_property

import numpy as np
from scipy import sparse

from sklearn_lrvb.linear_response.observed_information import indefinite_information_error
from sklearn_lrvb.mean_field.coupling import BYTES_PER_ENTRY
from sklearn_lrvb.mean_field.factor import covariance_form, covariance_product, with_copies
from sklearn_lrvb.mean_field.linear_response.definite_system import (
    BlockRoot,
    NotPositiveDefiniteError,
    ResponseSystem,
)
from sklearn_lrvb.mean_field.quantities import own_covariances
from sklearn_lrvb.rows import batches

_ROOT_MATRICES = 4.0  # Number of arrays of the size of the joint members' covariance blocks.
_BYTES_PER_PAIR = 65.0  # Memory for each entry of H_r,j V_j H_j,r while S is computed.
_DENSE_MATRICES = 3.5  # Number of dense matrices over the rows of S that are eliminated last.
_DENSE_FROM = 0.2  # Share of entries that are not zero from which products are computed densely.
_LEAST_LIMIT = 2e9  # Bytes that an answer may take on any machine,
_SHARE_OF_MACHINE = 0.5  # and the share of the machine's memory.

# Part of a statistic along a flat direction, in its standard deviations, from which it is not identified.
_UNIDENTIFIED_FROM = 1e-4

# A factor is separate if it has at least this share of the statistics that it shares terms with: a small one
# would couple all of these to each other.
_LEAST_SHARE = 0.25

_REMEDIES = [
    "Give indicators and tables with many zeros as sparse coefficients, or index copies by `at`.",
    "std(..., method='mean_field') needs none of them.",
]


class LinearResponse:
    """Linear response covariances of a posterior.

    Parameters
    ----------
    log_joint : LogJoint
    natural_parameters, mean_parameters : dict, name -> ndarray
    flat_below : float, or None
        Eigenvalues of the observed information up to this size belong to flat directions, which are left out.
    remedies : list of str
        What to do where q is no local optimum.

    Attributes
    ----------
    n_flat : int
        Number of flat directions.

    Raises
    ------
    IndefiniteInformationError
        q is no local optimum.
    MemoryError
        It would take too much memory.
    """

    def __init__(self, log_joint, natural_parameters, mean_parameters, flat_below, remedies):
        self._factors, self._natural = log_joint.factors, natural_parameters
        separate = separate_factors(log_joint)
        self._joint = [name for name in self._factors if name not in separate]
        self._starts = log_joint.starts_among(self._joint)
        joint = ", ".join(map(repr, self._joint))
        n_entries = sum(self._factors[name].size * self._factors[name].shape[-1] for name in self._joint)
        require_memory(
            _ROOT_MATRICES * 8.0 * n_entries,
            f"The covariance matrices of the members of {joint}",
            ["std(..., method='mean_field') needs none of them."],
        )
        root = BlockRoot(
            (f"V of {name!r}", self._factors[name].covariance_blocks(self._natural[name]), None)
            for name in self._joint
        )
        _require_memory_for_derivatives(log_joint.n_hessian_entries(self._joint), joint)
        missing = log_joint.hessian(mean_parameters, self._joint)
        self._couplings = log_joint.couplings(mean_parameters, separate, self._joint)
        for name, coupling in self._couplings.items():
            _require_memory_for_derivatives(coupling.n_block_entries, repr(name))
            for active, form in self._forms(name, coupling):
                missing = missing + _placed(form, active, missing.shape[0])
        self._system = ResponseSystem(root, missing)
        n_dense = self._system.n_dense_rows
        require_memory(
            _DENSE_MATRICES * 8.0 * n_dense**2,
            f"Linear response leaves {n_dense} statistics of {joint} coupled to most others: they",
            [
                "If few pairs of their copies meet in a term, say so by sparse coefficients or `at`.",
                "std(..., method='mean_field') needs no such matrix.",
            ],
        )
        try:
            self._system.factor(flat_below)
        except NotPositiveDefiniteError as error:
            labels = np.concatenate([self._factors[name].labels(name) for name in self._joint])
            raise indefinite_information_error(
                error.smallest_eigenvalue,
                error.direction,
                subject="q",
                remedies=remedies,
                names=tuple(labels),
            ) from None
        self._flat = self._system.flat()
        self.n_flat = self._flat.shape[1]

    def _forms(self, name, coupling):
        """Yield joint statistics, and H_r,j V_j H_j,r over these, a sum over blocks."""
        total, of_total = None, None
        for block in coupling.blocks():
            if not sparse.issparse(block.matrix):
                _require_memory_for_form(len(block.active) ** 2, name)
            factor, natural = self._of_copies(name, block.copies)
            matrix = block.matrix
            if factor.weights is not None:
                scale = np.sqrt(factor.counted(np.ones(factor.shape))).ravel()
                matrix = sparse.diags_array(scale) @ matrix
            form = covariance_form(factor, natural, matrix)
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
        return (factor, natural) if copies == slice(None) else (with_copies(factor, copies), natural[copies])

    def along_flat(self, quantities):
        """Changes of quantities along the flat directions, in mean-field standard deviations: (n, n_flat)."""
        along = []
        for quantity in quantities:
            variances = quantity.variances(self._natural[quantity.name])
            scale = np.sqrt(np.where(variances > 0, variances, 1.0))
            along.append(self._rows(quantity) @ self._flat / scale[:, None])
        return np.concatenate(along)

    def is_flat(self, quantities, jacobian=None):
        """Which entries of quantities, or linear functions of them, change along a flat direction: bool (m,).

        Parameters
        ----------
        jacobian : ndarray of shape (m, n), default=None
            The functions, of entries in mean-field standard deviations; None is each entry.
        """
        if not self.n_flat:
            n_entries = sum(len(quantity.positions) for quantity in quantities)
            return np.zeros(n_entries if jacobian is None else len(jacobian), dtype=bool)
        along, scale = self.along_flat(quantities), 1.0
        if jacobian is not None:
            along, scale = jacobian @ along, np.linalg.norm(jacobian, axis=1)
        return np.linalg.norm(along, axis=1) > _UNIDENTIFIED_FROM * scale

    def _rows(self, quantity):
        """Y of a quantity: sparse array of shape (n, number of joint statistics)."""
        indices, parts = zip(*self._parts_of_rows(quantity), strict=True)
        rows, order = sparse.vstack(parts, format="csr"), np.concatenate(indices)
        return rows if np.all(np.diff(order) > 0) else rows[np.argsort(order)]

    def _parts_of_rows(self, quantity):
        """Yield indices of some entries of a quantity, (n,), and their Y, (n, number of joint statistics)."""
        name, n_joint = quantity.name, self._system.size
        if name not in self._couplings:
            unit_rows = sparse.coo_array(quantity.coefficients(self._natural[name]))
            entries = unit_rows.data, (unit_rows.row, self._starts[name] + unit_rows.col)
            shape = unit_rows.shape[0], n_joint
            yield np.arange(shape[0]), sparse.csr_array(entries, shape=shape)
            return
        for block in self._couplings[name].blocks():
            indices, part = quantity.of_copies(block.copies)
            _, natural = self._of_copies(name, block.copies)
            product = sparse.coo_array(part.product(natural, block.matrix))
            entries = product.data, (product.row, block.active[product.col])
            yield indices, sparse.csr_array(entries, shape=(len(indices), n_joint))

    def covariance(self, quantities):
        """Covariance of quantities, one after the other: (d, d)."""
        rows = sparse.vstack([self._rows(quantity) for quantity in quantities], format="csr")
        covariance = np.empty(2 * (rows.shape[0],))
        for chunk in batches(rows.shape[0], 8 * max(rows.shape)):
            covariance[:, chunk] = rows @ self._system.solve(rows[chunk].toarray().T)
        for part, other, block in own_covariances(quantities, self._natural, self._own_covariance):
            covariance[part, other] += block
        for chunk in batches(len(covariance), 8 * len(covariance)):  # It becomes symmetric in place.
            rest = slice(chunk.start, None)
            average = 0.5 * (covariance[chunk, rest] + covariance[rest, chunk].T)
            covariance[chunk, rest], covariance[rest, chunk] = average, average.T
        return covariance

    def _own_covariance(self, quantity, natural, other):
        """What does not depend on the response of the joint statistics, between quantities of a factor."""
        if quantity.name in self._couplings:
            return quantity.covariance(natural, other)
        return quantity.unexplained_covariance(natural, other)

    def variances(self, quantity):
        """Variances of the entries of a quantity: (n,)."""
        n_rows, n_joint = len(quantity.positions), self._system.size
        by_covariance = n_rows > n_joint and self._system.is_dense
        variances, natural = np.empty(n_rows), self._natural[quantity.name]
        for indices, rows in self._parts_of_rows(quantity):
            is_dense = rows.nnz > _DENSE_FROM * len(indices) * n_joint
            for chunk in batches(len(indices), 16 * max(n_joint, 1)):
                some = rows[chunk]
                if by_covariance:
                    product = (some.toarray() if is_dense else some) @ self._joint_covariance
                    variances[indices[chunk]] = some.multiply(product).sum(axis=1)
                else:
                    variances[indices[chunk]] = self._system.quadratic_forms(some.toarray().T)
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
        of_separate = 0.0
        right = np.concatenate([np.zeros(0), *(residuals[name].ravel() for name in self._joint)])
        for name, coupling in self._couplings.items():
            for block in coupling.blocks():
                factor, natural = self._of_copies(name, block.copies)
                residual = residuals[name][block.copies]
                response = covariance_product(factor, natural, residual.reshape(-1, 1))
                response = factor.counted(response.reshape(residual.shape)).reshape(-1, 1)
                of_separate += np.vdot(residual, response)
                right[block.active] += (block.matrix.T @ response)[:, 0]
        return float(np.sqrt(max(of_separate + self._system.quadratic_forms(right[:, None])[0], 0.0)))


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


def _placed(form, active, size):
    """A dense or sparse matrix over some statistics as a sparse one over all."""
    if sparse.issparse(form):
        form = sparse.coo_array(form)
        return sparse.csr_array((form.data, (active[form.row], active[form.col])), shape=(size, size))
    counts = np.zeros(size + 1, dtype=np.int64)
    counts[1 + active] = len(active)
    columns = np.tile(active.astype(np.int32), len(active))
    return sparse.csr_array((form.ravel(), columns, np.cumsum(counts)), shape=(size, size))


def _require_memory_for_derivatives(n_entries, names):
    """Refuse entries of H that would not fit into memory."""
    what = f"The {n_entries} second derivatives of the log joint in {names}"
    require_memory(BYTES_PER_ENTRY * n_entries, what, _REMEDIES)


def _require_memory_for_form(n_entries, name):
    """Refuse entries of H_r,j V_j H_j,r that would not fit into memory."""
    what = f"The {n_entries} pairs of statistics that {name!r} makes depend on each other"
    require_memory(_BYTES_PER_PAIR * n_entries, what, _REMEDIES)


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
