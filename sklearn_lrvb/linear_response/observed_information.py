"""Observed = complete - missing information, M = R^-1 - G: the interface of all its solvers.

*Conventions.* R = T T' is the covariance that the parameters would have if the latent variables were known
(the mean-field answer, `CompleteInformation`). G is the information that is lost by not knowing them. All
work is done on the scaled system

    S = I - T' G T,        M = T^-T S T^-1,        M^-1 = T S^-1 T',

whose eigenvalues lie in (0, 1] at a strict local optimum: one minus the fractions of missing information,
which are the linear rates of coordinate ascent. M^-1 is the linear response covariance (Equation 11 of the
paper; Louis' formula). An array "in the scaled coordinates" is one that S applies to.

Three `solvers` implement the interface from different forms of G:

* `PrimalInformation`: G itself, (D, D); Cholesky factor of S.
* `DualInformation`: a factor B with m columns and G = B B', through products and m x m kernels;
  S^-1 = I + T' B (I - B' R B)^-1 B' T; Cholesky factor of I - B' R B. B need not be formed.
* `MatrixFreeInformation`: products G v; conjugate gradients on S, which is M preconditioned by R.

`SolverCosts` estimates which is cheapest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.rows import slices
from sklearn_lrvb.symmetric_matrices import packed_triangle

PACKED_SYSTEM = "scaled_triangle"  # key of S in the arrays of an information in primal form
_DEVIATIONS_AT_ONCE = 512  # Number of columns of a root from which `deviations` are computed at once.
_N_NAMED = 4  # Largest number of entries of a direction that an error message lists.
_LEAST_NAMED = 0.1  # Least size of an entry that is listed, relative to the largest one.
# Largest matrix that is formed and factored: 1.6 GB, up to six of which are in memory at once, and about a
# minute of work.
MAX_DENSE_SIZE = 14_000
_PRODUCTS_PER_SOLUTION = 20  # Number of products of a solution by conjugate gradients, or a few less.
_MAX_PRODUCTS = 50  # Number of products after which a check of definiteness is stopped.
# Cost of the products of a step from a saddle, in units of D^2: 25 of them, each of 2 D^2 flops at the speed
# of memory. Measured for D from 100 to 300, with the factor that fails before them.
_SADDLE_FLOPS = 600
_REMEDIES = (
    "The fixed point was not iterated to convergence: iterate further.",
    "It is a saddle point, for example two components that coincide: start elsewhere.",
)


class IndefiniteInformationError(ValueError):
    """The observed information is not positive definite: there is no strict local optimum, and no covariance.

    Parameters
    ----------
    message : str
        What is wrong, and what to do about it.
    smallest_eigenvalue : float, default=None
        The smallest eigenvalue of S, that is of the observed information in units of the complete one.
    direction : ndarray of shape (D,), default=None
        Its direction in units of the mean-field standard deviations: the way in which q leaves the fixed
        point.
    names : sequence of str of length D, default=None
        Labels of the entries of `direction`, where the caller knows them.

    Attributes
    ----------
    smallest_eigenvalue, direction, names
        As given.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb.linear_response import IndefiniteInformationError
    >>> from sklearn_lrvb.mean_field.linear_response import linear_response_covariance
    >>> try:
    ...     linear_response_covariance(np.eye(2), np.diag([0.5, 2.0]))
    ... except IndefiniteInformationError as error:
    ...     print(error.smallest_eigenvalue)
    -1.0
    """

    def __init__(
        self,
        message: str,
        smallest_eigenvalue: float | None = None,
        direction: NDArray[np.float64] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(message)
        self.smallest_eigenvalue = smallest_eigenvalue
        self.direction = direction
        self.names = names


def indefinite_information_error(
    smallest_eigenvalue: float,
    direction: NDArray[np.float64],
    *,
    subject: str = "The fixed point",
    where: str | None = None,
    remedies: Sequence[str] = _REMEDIES,
    names: Sequence[str] | None = None,
) -> IndefiniteInformationError:
    """The error for a fixed point that is no strict local optimum, with the one message for all callers.

    Parameters
    ----------
    smallest_eigenvalue, direction, names
        As in `IndefiniteInformationError`. Without names the message shows positions.
    subject : str, default="The fixed point"
        What is no strict local optimum.
    where : str, default=None
        A description of the parameters in the direction. None lists its largest entries, as in
        "mu.value[0] (+0.71), tau.log (-0.20)".
    remedies : sequence of str
        Possible causes, each with a remedy. The message letters them (a), (b), and so on. By default they are
        those that apply to any fixed point.
    """
    if where is None:
        size = np.abs(direction)
        entries = ", ".join(
            f"{f'[{i}]' if names is None else names[i]} ({direction[i]:+.2g})"
            for i in np.argsort(-size, kind="stable")[:_N_NAMED]
            if size[i] > _LEAST_NAMED * size.max()
        )
        where = f"in a direction with the largest entries {entries} (mean-field standard deviations)"
    lettered = " ".join(f"({letter}) {remedy}" for letter, remedy in zip("abcdef", remedies, strict=False))
    return IndefiniteInformationError(
        f"{subject} is no strict local optimum: the smallest eigenvalue of the observed information is "
        f"{smallest_eigenvalue:.2g} of the complete information (it must be above round-off), "
        f"{where}. {lettered}",
        float(smallest_eigenvalue),
        direction,
        names,
    )


class Definiteness(Enum):
    """Whether the observed information is positive definite, that is the fixed point a strict local optimum.

    INDEFINITE: an eigenvalue is negative, or zero to working precision. UNDECIDED: the effort allowed did not
    suffice to decide.
    """

    POSITIVE_DEFINITE = "positive definite"
    INDEFINITE = "indefinite"
    UNDECIDED = "undecided"


class NewtonStep(NamedTuple):
    """Newton's step for the sufficient statistics, as `ObservedInformation.newton_step` returns it.

    Attributes
    ----------
    step : ndarray of shape (D,)
        R^-1 M^-1 gradient, or another direction of ascent where M is not positive definite.
    decrement : float
        sqrt(gradient' M^-1 gradient): distance to the optimum in posterior standard deviations.
    definiteness : Definiteness
        The definiteness of M, as far as the computation of the step has determined it.
    """

    step: NDArray[np.float64]
    decrement: float
    definiteness: Definiteness


class ObservedInformation(ABC):
    """M = R^-1 - G and functions of its inverse: the interface of the three solvers.

    A solver defines the abstract members; all other methods follow from them. It is immutable: no method
    changes the result of another. Factors and eigenvalues are computed at first need and kept. Answers that
    need the inverse raise an `IndefiniteInformationError` where M is not positive definite, and a
    `numpy.linalg.LinAlgError` where the matrix-free solver cannot decide, as M is close to singular.

    Parameters
    ----------
    complete : CompleteInformation
        R^-1, of size D.

    Attributes
    ----------
    complete : CompleteInformation
    name : {"primal", "dual", "matrix_free"}
        Name of the solver, as in `SolverCosts`.
    holds_rows : bool
        Whether results need products with data that the solver was given, such as training rows, so that
        these must stay in memory. False where the solver's own arrays suffice.
    has_determinant : bool
        Whether ``log_determinant`` is there.
    has_kernels : bool
        Whether covariances follow from products with the columns of B alone (`DualInformation.half_of_rows`).

    Examples
    --------
    Half of the information about the first of two coordinates is missing, so that its variance doubles:

    >>> import numpy as np
    >>> from sklearn_lrvb.linear_response.complete_information import CompleteInformation
    >>> from sklearn_lrvb.linear_response.solvers import PrimalInformation
    >>> complete = CompleteInformation([(slice(2), np.eye(2)[None])])  # R = I
    >>> information = PrimalInformation(complete, np.diag([0.5, 0.0]))
    >>> information.covariance().round(12)
    array([[2., 0.],
           [0., 1.]])
    >>> information.newton_step(np.array([1.0, 1.0])).step  # an iteration of CAVI moves by (1, 1)
    array([2., 1.])
    """

    name: ClassVar[str]
    holds_rows: ClassVar[bool]
    has_determinant = True
    has_kernels = False

    def __init__(self, complete: CompleteInformation) -> None:
        self.complete = complete

    def __len__(self) -> int:
        return len(self.complete)

    @abstractmethod
    def definiteness(self, effort: Literal["probe", "proof"] | int = "proof") -> Definiteness:
        """Whether M is positive definite, that is whether the fixed point is a strict local optimum.

        Parameters
        ----------
        effort : {"probe", "proof"} or int, default="proof"
            Limit of the cost. "proof" sets none, and never leaves it UNDECIDED. An integer is a number of
            products with S, for a solver that uses products alone; "probe" is such a number of the solver's
            own choice. Solvers that factor a matrix always decide by the factor.
        """

    @abstractmethod
    def newton_step(self, gradient: NDArray[np.float64]) -> NewtonStep:
        """Newton's step in the sufficient statistics, R^-1 M^-1 gradient, with its decrement.

        Where M is not positive definite the step is another direction of ascent.

        Parameters
        ----------
        gradient : ndarray of shape (D,)
            Change of the sufficient statistics by one iteration of coordinate ascent.
        """

    @abstractmethod
    def smallest_eigenvalue(self) -> tuple[float, NDArray[np.float64]]:
        """The smallest eigenvalue of S and its unit eigenvector v, (D,); in the coordinates of M, T v.

        The eigenvalue is one less the largest fraction of missing information.
        """

    def inverse_for(self, n_targets: int) -> NDArray[np.float64] | None:
        """M^-1, (D, D), where it is the cheapest way to the responses to so many targets.

        It is not to be written to. None where a `solve` for every target is cheaper, or where the solver does
        not form the inverse.
        """
        return None

    @abstractmethod
    def _scaled_system(self) -> NDArray[np.float64]:
        """S, (D, D); only its lower triangle is used."""

    @abstractmethod
    def _solve_scaled(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """S^-1 scaled, (D, m)."""

    @abstractmethod
    def _inverse_root_times(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """A scaled with A A' = S^-1, (D, m)."""

    @abstractmethod
    def _covariance_root(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """Y with Y' Y = M^-1[index, index]."""

    def require_positive_definite(self) -> None:
        """Raise the error that names the smallest eigenvalue of S, unless M is positive definite."""
        if self.definiteness("proof") is not Definiteness.POSITIVE_DEFINITE:
            self._refuse()

    def _refuse(self) -> NoReturn:
        value, vector = self.smallest_eigenvalue()
        direction = self.complete.times_root(vector[:, None])[:, 0]
        deviations = self.complete.deviations
        raise indefinite_information_error(value, direction / np.where(deviations > 0, deviations, 1.0))

    def solve(self, sources: NDArray[np.float64]) -> NDArray[np.float64]:
        """M^-1 sources, the changes of the means by perturbations of the natural parameters: (D, m)."""
        self.require_positive_definite()
        scaled = self.complete.times_root_transposed(sources)
        return self.complete.times_root(self._solve_scaled(scaled))

    def covariance_root(self, index: ArrayLike | None = None) -> NDArray[np.float64]:
        """Y with Y' Y = M^-1[index, index]. A linear map of the coordinates maps the rows of Y.

        Parameters
        ----------
        index : int array-like of shape (m,), default=None
            Some of the coordinates; None is all of them, in order.
        """
        self.require_positive_definite()
        return self._covariance_root(np.arange(len(self)) if index is None else np.asarray(index))

    def covariance(self, index: ArrayLike | None = None) -> NDArray[np.float64]:
        """M^-1[index, index], the linear response covariance, exactly symmetric: (m, m)."""
        root = self.covariance_root(index)
        return root.T @ root

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviations by linear response: roots of the diagonal of M^-1, (D,)."""
        index = np.arange(len(self))
        roots = (self.covariance_root(index[some]) for some in slices(len(self), _DEVIATIONS_AT_ONCE))
        return np.concatenate([np.linalg.norm(root, axis=0) for root in roots])

    @property
    def root(self) -> NDArray[np.float64]:
        """A with A A' = M^-1, that of `correlated`: (D, D)."""
        return self.correlated(np.eye(len(self)))

    def correlated(self, normals: NDArray[np.float64]) -> NDArray[np.float64]:
        """A normals with A A' = M^-1: standard normal columns (D, m) become draws with that covariance.

        A = T L^-T, with L the lower Cholesky factor of S, is that of the primal and of the dual solver. The
        matrix-free solver, which never has a factor, takes the symmetric root T S^-1/2.
        """
        self.require_positive_definite()
        return self.complete.times_root(self._inverse_root_times(normals))

    def to_arrays(self) -> dict[str, NDArray]:
        """The smallest set of arrays from which `information_from_arrays` rebuilds the information.

        In primal form it is the lower triangle of S, row by row: D(D+1)/2 numbers under the key
        "scaled_triangle". The dual solver returns the arrays of its factor where these are fewer bytes.
        The matrix-free solver forms S by D products with G. R^-1 is not among the arrays, which may be the
        solver's own: do not change them in place.
        """
        return {PACKED_SYSTEM: packed_triangle(self._scaled_system())}

    def _as_newton_step(self, scaled_gradient, scaled_step, definiteness):
        """The step and the decrement from those in the scaled coordinates, (D, 1)."""
        decrement = np.sqrt(max(np.vdot(scaled_gradient, scaled_step), 0.0))
        step = self.complete.solve_root_transposed(scaled_step)[:, 0]
        return NewtonStep(step, float(decrement), definiteness)


@dataclass(frozen=True)
class SolverCosts:
    """The cost model that chooses the cheapest solver, which the caller may overrule.

    Parameters
    ----------
    n_coefficients : int
        D, size of the primal matrix.
    n_columns : int
        Number m of columns of B with G = B B': size of the dual matrix.
    gram, kernel, product : float
        Costs to form G, to form B' R B, and of one product G v, in flops or any other unit of time.
    iteration : float, default=1.0
        Cost of an iteration of coordinate ascent, in the same unit.
    n_numbers_per_column : int, default=0
        Numbers that are stored for a column of B.
    dual_solution : float, default=0.0
        Cost of a solution by the dual solver besides m^2, in the same unit.

    Examples
    --------
    Many targets pay for a matrix, one does not:

    >>> from sklearn_lrvb.linear_response.observed_information import SolverCosts
    >>> costs = SolverCosts(
    ...     n_coefficients=1000, n_columns=50_000, gram=1e9, kernel=1e12, product=1e6
    ... )
    >>> costs.cheapest(n_targets=1), costs.cheapest(n_targets=1000)
    ('matrix_free', 'primal')
    """

    n_coefficients: int
    n_columns: int
    gram: float
    kernel: float
    product: float
    iteration: float = 1.0
    n_numbers_per_column: int = 0
    dual_solution: float = 0.0

    def costs(self, n_targets: int) -> dict[str, float]:
        """Cost of a number of solutions by every solver whose matrix fits into memory.

        * primal: gram + D^3/3 + D^2 a target, for D up to ``MAX_DENSE_SIZE``
        * dual: kernel + m^3/3 + (m^2 + dual_solution) a target, for m up to ``MAX_DENSE_SIZE``
        * matrix_free: 20 products a target
        """
        size, columns = self.n_coefficients, self.n_columns
        costs = {"matrix_free": n_targets * _PRODUCTS_PER_SOLUTION * self.product}
        if size <= MAX_DENSE_SIZE:
            costs["primal"] = self.gram + size**3 / 3 + n_targets * size**2
        if columns <= MAX_DENSE_SIZE:
            of_target = columns**2 + self.dual_solution
            costs["dual"] = self.kernel + columns**3 / 3 + n_targets * of_target
        return costs

    def products_for_a_matrix(self) -> int:
        """Number of products G v, at most 50, that cost no more than the cheapest matrix and its factor."""
        costs = self.costs(n_targets=1)
        matrices = [cost for solver, cost in costs.items() if solver != "matrix_free"]
        return int(min([_MAX_PRODUCTS * self.product, *matrices]) / self.product)

    def newton_price(self) -> tuple[str, float]:
        """The cheapest solver for a Newton step, and what the step costs with it in iterations.

        The information may be indefinite: the solvers that form a matrix then need products with it, 600 D^2
        (primal) or 600 m^2 (dual) more.
        """
        costs = self.costs(n_targets=1)
        for solver, size in ("primal", self.n_coefficients), ("dual", self.n_columns):
            if solver in costs:
                costs[solver] += _SADDLE_FLOPS * size**2
        solver = min(costs, key=costs.__getitem__)
        return solver, costs[solver] / self.iteration

    def cheapest(self, n_targets: int) -> str:
        """Name of the cheapest solver for a number of solutions: "primal", "dual" or "matrix_free"."""
        costs = self.costs(n_targets)
        return min(costs, key=costs.__getitem__)
