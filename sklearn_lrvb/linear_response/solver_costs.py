"""The cost model that chooses the cheapest solver of the observed information. The caller may overrule it."""

from dataclasses import dataclass

# Largest matrix that is formed and factored: 1.6 GB, up to six of which are in memory at once, and about a
# minute of work.
MAX_DENSE_SIZE = 14_000
_PRODUCTS_PER_SOLUTION = 20  # Number of products of a solution by conjugate gradients, or a few less.
_MAX_PRODUCTS = 50  # Number of products after which a check of definiteness is stopped.
# Cost of the products of a step from a saddle, in units of D^2: 25 of them, each of 2 D^2 flops at the speed
# of memory. Measured for D from 100 to 300, with the factor that fails before them.
_SADDLE_FLOPS = 600


@dataclass(frozen=True)
class SolverCosts:
    """Costs of the parts of the solvers for one model, in flops or any other unit of time.

    Parameters
    ----------
    n_coefficients : int
        D, size of the primal matrix.
    n_columns : int
        Number m of columns of B with G = B B': size of the dual matrix.
    gram : float
        Cost to form G.
    kernel : float
        Cost to form B' R B.
    product : float
        Cost of one product G v.

    Attributes
    ----------
    n_coefficients, n_columns, gram, kernel, product
        As given.

    Examples
    --------
    Many targets pay for a matrix, one does not:

    >>> from sklearn_lrvb.linear_response import SolverCosts
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

    def costs(self, n_targets: int) -> dict[str, float]:
        """Cost of a number of solutions by every solver whose matrix fits into memory.

        * primal: gram + D^3/3 + D^2 a target, for D up to ``MAX_DENSE_SIZE``
        * dual: kernel + m^3/3 + m^2 a target, for m up to ``MAX_DENSE_SIZE``
        * matrix_free: 20 products a target

        Parameters
        ----------
        n_targets : int
            Number of solutions.

        Returns
        -------
        costs : dict, name of the solver -> float
            In the unit of the parts. A solver whose matrix does not fit is not among them.

        Examples
        --------
        >>> from sklearn_lrvb.linear_response import SolverCosts
        >>> costs = SolverCosts(
        ...     n_coefficients=1000, n_columns=50_000, gram=1e9, kernel=1e12, product=1e6
        ... )
        >>> {solver: f"{cost:.0e}" for solver, cost in costs.costs(n_targets=1).items()}
        {'matrix_free': '2e+07', 'primal': '1e+09'}
        """
        size, columns = self.n_coefficients, self.n_columns
        costs = {"matrix_free": n_targets * _PRODUCTS_PER_SOLUTION * self.product}
        if size <= MAX_DENSE_SIZE:
            costs["primal"] = self.gram + size**3 / 3 + n_targets * size**2
        if columns <= MAX_DENSE_SIZE:
            costs["dual"] = self.kernel + columns**3 / 3 + n_targets * columns**2
        return costs

    def products_for_a_matrix(self) -> int:
        """Number of products G v, at most 50, that cost no more than the cheapest matrix and its factor.

        Returns
        -------
        n_products : int
            From 0 to 50.

        Examples
        --------
        A matrix is dear here, so that a check of definiteness may take all 50 products:

        >>> from sklearn_lrvb.linear_response import SolverCosts
        >>> costs = SolverCosts(
        ...     n_coefficients=1000, n_columns=50_000, gram=1e9, kernel=1e12, product=1e6
        ... )
        >>> costs.products_for_a_matrix()
        50
        """
        costs = self.costs(n_targets=1)
        matrices = [cost for solver, cost in costs.items() if solver != "matrix_free"]
        return int(min([_MAX_PRODUCTS * self.product, *matrices]) / self.product)

    def newton_costs(self) -> dict[str, float]:
        """Cost of a Newton step by every solver, where the information may be indefinite.

        The solvers that form a matrix then need products with it: 600 D^2 (primal) or 600 m^2 (dual) more.

        Returns
        -------
        costs : dict, name of the solver -> float
            In the unit of the parts. A solver whose matrix does not fit is not among them.

        Examples
        --------
        >>> from sklearn_lrvb.linear_response import SolverCosts
        >>> costs = SolverCosts(
        ...     n_coefficients=1000, n_columns=50_000, gram=1e9, kernel=1e12, product=1e6
        ... )
        >>> {solver: f"{cost:.0e}" for solver, cost in costs.newton_costs().items()}
        {'matrix_free': '2e+07', 'primal': '2e+09'}
        """
        costs, sizes = self.costs(n_targets=1), {"primal": self.n_coefficients, "dual": self.n_columns}
        return {solver: cost + _SADDLE_FLOPS * sizes.get(solver, 0) ** 2 for solver, cost in costs.items()}

    def cheapest(self, n_targets: int) -> str:
        """Name of the cheapest solver for a number of solutions: "primal", "dual" or "matrix_free".

        Parameters
        ----------
        n_targets : int
            Number of solutions.

        Returns
        -------
        solver : {"primal", "dual", "matrix_free"}
            The key of the smallest of the :meth:`costs`.

        Examples
        --------
        >>> from sklearn_lrvb.linear_response import SolverCosts
        >>> costs = SolverCosts(
        ...     n_coefficients=1000, n_columns=50_000, gram=1e9, kernel=1e12, product=1e6
        ... )
        >>> costs.cheapest(n_targets=1), costs.cheapest(n_targets=1000)
        ('matrix_free', 'primal')
        """
        costs = self.costs(n_targets)
        return min(costs, key=costs.__getitem__)
