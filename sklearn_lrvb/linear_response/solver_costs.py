"""Which solver of the observed information is cheapest: a cost model, to be overridden at will."""

from dataclasses import dataclass

# Largest matrix that is formed and factored: 1.6 GB, three or four such at work at once, and a minute.
MAX_DENSE_SIZE = 14_000
_PRODUCTS_PER_SOLUTION = 20  # that conjugate gradients take, or a little more than they do
_MOST_PRODUCTS = 50  # that are worth trying
_SPECTRAL = 30  # flops of a matrix product for every size^3 of all eigenvalues and vectors


@dataclass(frozen=True)
class SolverCosts:
    """What a model knows of its observed information, in flops or any other unit of time.

    Attributes
    ----------
    n_coefficients : int, D, size of the primal matrix
    n_columns : int, m, columns of the missing information's root, size of the dual matrix
    gram : float, to accumulate G
    kernel : float, to form B' R B
    product : float, one product G v
    """

    n_coefficients: int
    n_columns: int
    gram: float
    kernel: float
    product: float

    def costs(self, n_targets):
        """Cost of ``n_targets`` solutions by every solver that fits into memory.

        * primal: gram + D^3/3 + D^2 a target, D up to ``MAX_DENSE_SIZE``
        * dual: kernel + m^3/3 + m^2 a target, m up to ``MAX_DENSE_SIZE``
        * matrix_free: 20 products a target
        """
        size, columns = self.n_coefficients, self.n_columns
        costs = {"matrix_free": n_targets * _PRODUCTS_PER_SOLUTION * self.product}
        if size <= MAX_DENSE_SIZE:
            costs["primal"] = self.gram + size**3 / 3 + n_targets * size**2
        if columns <= MAX_DENSE_SIZE:
            costs["dual"] = self.kernel + columns**3 / 3 + n_targets * columns**2
        return costs

    def products_for_a_matrix(self):
        """How many products G v, at most 50, cost no more than the cheapest matrix and its factor."""
        costs = self.costs(n_targets=1)
        matrices = [cost for solver, cost in costs.items() if solver != "matrix_free"]
        return int(min([_MOST_PRODUCTS * self.product, *matrices]) / self.product)

    def newton_costs(self):
        """Cost of a Newton step by every solver where the information may be indefinite.

        Those that form a matrix then take its eigenvalues: 30 D^3 (primal), 30 m^3 (dual) more.
        """
        costs, sizes = self.costs(n_targets=1), {"primal": self.n_coefficients, "dual": self.n_columns}
        return {solver: cost + _SPECTRAL * sizes.get(solver, 0) ** 3 for solver, cost in costs.items()}

    def cheapest(self, n_targets):
        """Name of the cheapest solver."""
        costs = self.costs(n_targets)
        return min(costs, key=costs.get)
