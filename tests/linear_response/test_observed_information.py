"""Complete minus missing information: all answers of all solvers against dense linear algebra."""

import pickle

import numpy as np
import pytest

from sklearn_lrvb.linear_response import IndefiniteInformationError
from sklearn_lrvb.linear_response import solvers as solvers_module
from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.linear_response.observed_information import Definiteness, ObservedInformation
from sklearn_lrvb.linear_response.solvers import (
    DualInformation,
    MatrixFreeInformation,
    PrimalInformation,
    information_from_arrays,
    sums_of_iterations,
)

SIZE = 12
DENSE = np.array([0, 4, 8])
SOLVERS = ("primal", "dual", "dual_low_rank", "dual_and_diagonal", "matrix_free")
N_LOW = 4  # Columns of a factor of low rank.

solvers = pytest.mark.parametrize("solver", SOLVERS)


@pytest.fixture
def complete():
    rng = np.random.default_rng(0)
    block = rng.normal(size=(3, 3))
    root = rng.uniform(0.05, 0.2, size=SIZE)
    dense_root = np.linalg.cholesky(block @ block.T + np.eye(3))
    alone = np.setdiff1d(np.arange(SIZE), DENSE)
    return CompleteInformation([(DENSE, dense_root[None]), *diagonal(root[alone], alone).blocks])


def diagonal(root, index=None):
    """R^-1 of coordinates that are independent, with these standard deviations."""
    index = np.arange(len(root)) if index is None else index
    return CompleteInformation([(index, root[:, None, None])])


class MatrixFactor:
    """A root of the missing information that is given as a matrix B, (D, m), with G = B B'."""

    def __init__(self, complete, root):
        self._complete = complete
        self._root = root

    def __len__(self):
        return self._root.shape[1]

    def to_arrays(self):
        return {"root": self._root}

    def kernel(self):
        half = self._complete.times_root_transposed(self._root)
        return half.T @ half

    def responses(self, index):
        return self.transposed_product(self._complete.times_root(self._complete.root_rows(index)))

    def product(self, weights):
        return self._root @ weights

    def transposed_product(self, array):
        return self._root.T @ array


def dense_covariance(complete):
    """R as one matrix."""
    (_, (dense_root,)), (alone, roots) = complete.blocks
    covariance = np.zeros((SIZE, SIZE))
    covariance[np.ix_(DENSE, DENSE)] = dense_root @ dense_root.T
    covariance[alone, alone] = roots[:, 0, 0] ** 2
    return covariance


def test_the_complete_information_is_the_inverse_of_its_covariance(complete):
    np.testing.assert_allclose(complete.solve(dense_covariance(complete)), np.eye(len(complete)), atol=1e-12)


def missing_root(complete, solver, largest):
    """B for which the largest fraction of missing information, an eigenvalue of T' B B' T, is ``largest``."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(SIZE, N_LOW if solver in ("dual_low_rank", "dual_and_diagonal") else SIZE))
    if solver == "dual_and_diagonal":
        alone = np.setdiff1d(np.arange(SIZE), DENSE)
        shares = rng.uniform(0.2, 0.8, size=SIZE) / max(1.0, largest)
        root = np.concatenate([0.2 * root, np.diag(np.sqrt(shares) / complete.deviations)[:, alone]], axis=1)
    half = np.linalg.cholesky(dense_covariance(complete)).T @ root
    return root * np.sqrt(largest) / np.linalg.norm(half, 2)


def information_of(complete, solver, root):
    """M with G = root root', by one of the solvers."""
    if solver == "primal":
        return PrimalInformation(complete, root @ root.T)
    if solver == "matrix_free":
        return MatrixFreeInformation(complete, lambda array: root @ (root.T @ array))
    if solver == "dual_and_diagonal":
        root, shares = split_root(complete, root)
        return DualInformation(complete, MatrixFactor(complete.remaining(shares), root), shares)
    return DualInformation(complete, MatrixFactor(complete, root))


def split_root(complete, root):
    """The columns of low rank of a root, and the shares of R^-1 that its diagonal columns leave."""
    if root.shape[1] <= SIZE:
        return root, np.ones(len(root))
    return root[:, :N_LOW], 1.0 - complete.deviations**2 * np.square(root[:, N_LOW:]).sum(axis=1)


def covariance_of(complete, root):
    return np.linalg.inv(np.linalg.inv(dense_covariance(complete)) - root @ root.T)


def test_roots_multiply_to_the_covariance(complete):
    root = complete.times_root(np.eye(SIZE))
    np.testing.assert_allclose(root @ root.T, dense_covariance(complete), rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(complete.times_root_transposed(np.eye(SIZE)), root.T, atol=1e-16)
    array = np.random.default_rng(2).normal(size=(SIZE, 3))
    solved = complete.solve_root_transposed(array)
    np.testing.assert_allclose(complete.times_root_transposed(solved), array, rtol=1e-10)
    index = np.array([5, 8, 0, 11])
    for part in (complete.root_rows(index), complete.covariance_root(index)):
        np.testing.assert_allclose(
            part.T @ part, dense_covariance(complete)[np.ix_(index, index)], atol=1e-16
        )
    variances = np.diag(dense_covariance(complete))
    np.testing.assert_allclose(complete.deviations, np.sqrt(variances), rtol=1e-14)


@solvers
def test_covariance_is_the_inverse(complete, solver):
    root = missing_root(complete, solver, 0.9)
    covariance, information = covariance_of(complete, root), information_of(complete, solver, root)
    atol = 1e-9 * np.abs(covariance).max()
    np.testing.assert_allclose(information.covariance(), covariance, atol=atol)
    for index in (np.array([2]), np.array([8, 1, 4]), np.arange(SIZE)[::-1]):
        part = information.covariance(index)
        np.testing.assert_allclose(part, covariance[np.ix_(index, index)], atol=atol)
        np.testing.assert_array_equal(part, part.T)


@solvers
def test_solutions_are_the_inverse_times_the_sources(complete, solver):
    root = missing_root(complete, solver, 0.97)
    covariance, information = covariance_of(complete, root), information_of(complete, solver, root)
    targets = np.random.default_rng(4).normal(size=(SIZE, 5))
    targets[:, 2] = 0.0
    np.testing.assert_allclose(information.solve(targets), covariance @ targets, rtol=1e-8, atol=1e-9)


@solvers
def test_square_root_correlates_normals(complete, solver):
    root = missing_root(complete, solver, 0.97)
    half = information_of(complete, solver, root).correlated(np.eye(SIZE))
    covariance = covariance_of(complete, root)
    np.testing.assert_allclose(half @ half.T, covariance, atol=1e-8 * np.abs(covariance).max())


@pytest.mark.parametrize("solver", [solver for solver in SOLVERS if solver != "matrix_free"])
def test_solvers_that_factor_share_the_root(complete, solver):
    root, T = missing_root(complete, solver, 0.97), complete.times_root(np.eye(SIZE))
    factor = np.linalg.cholesky(np.eye(SIZE) - T.T @ root @ root.T @ T)
    half = information_of(complete, solver, root).correlated(np.eye(SIZE))
    np.testing.assert_allclose(half, T @ np.linalg.inv(factor).T, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("share", [1.0, 0.7])
def test_a_root_of_many_blocks_is_that_of_the_whole(share):
    size, n_columns = 300, 3  # the dual solver eliminates 128 coordinates at once
    shares = np.full(size, share)
    complete = diagonal(np.linspace(1.0, 2.0, size))
    root = np.random.default_rng(5).normal(size=(size, n_columns)) / (2.0 * np.sqrt(size))
    missing = root @ root.T + np.diag((1.0 - shares) / complete.deviations**2)
    normals = np.random.default_rng(6).normal(size=(size, 4))
    dual = DualInformation(complete, MatrixFactor(complete.remaining(shares), root), shares)
    expected = PrimalInformation(complete, missing).correlated(normals)
    np.testing.assert_allclose(dual.correlated(normals), expected, rtol=1e-10, atol=1e-12)


@solvers
def test_deviations_are_roots_of_the_diagonal(complete, solver):
    root = missing_root(complete, solver, 0.9)
    expected = np.sqrt(np.diag(covariance_of(complete, root)))
    np.testing.assert_allclose(information_of(complete, solver, root).deviations, expected, rtol=1e-9)


class CountingComplete(CompleteInformation):
    """R^-1 that notes how many columns every product with its root had."""

    def times_root_in_place(self, array, transposed=False):
        self.__dict__.setdefault("widths", []).append(array.shape[1])
        super().times_root_in_place(array, transposed)


def test_the_inverse_and_its_root_are_formed_once(complete):
    counting = CountingComplete(complete.blocks)
    information = information_of(counting, "primal", missing_root(complete, "primal", 0.9))
    packed = len(pickle.dumps(information))
    counting.widths.clear()
    index = np.arange(2, SIZE)
    first = [information.covariance(), information.covariance_root(), information.deviations]
    inverse = information.inverse_for(SIZE)
    assert counting.widths == [SIZE] * 3  # two for the inverse, one for its root
    again = [information.covariance(), information.covariance_root(), information.deviations]
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
        one[:] = np.nan  # Answers belong to the caller.
    np.testing.assert_array_equal(information.covariance(index), inverse[np.ix_(index, index)])
    np.testing.assert_array_equal(information.covariance_root(index), again[1][:, index])
    assert information.inverse_for(SIZE) is inverse
    np.testing.assert_array_equal(inverse, again[0])
    assert counting.widths == [SIZE] * 3
    counting.widths.clear()
    assert len(pickle.dumps(information)) < packed + 8 * SIZE


@solvers
def test_no_missing_information_is_the_complete_answer(complete, solver):
    nothing = np.zeros((SIZE, 0 if solver.startswith("dual") else SIZE))
    information = information_of(complete, solver, nothing)
    expected = dense_covariance(complete)
    np.testing.assert_allclose(information.covariance(), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(information.solve(np.eye(SIZE)), expected, rtol=1e-12, atol=1e-15)
    half = information.correlated(np.eye(SIZE))
    np.testing.assert_allclose(half @ half.T, expected, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(information.newton_step(np.ones(SIZE)).step, 1.0, rtol=1e-10)
    assert information.smallest_eigenvalue()[0] == pytest.approx(1.0)


@solvers
@pytest.mark.parametrize("largest", [0.9, 1.0 + 1e-3, 30.0])
def test_smallest_eigenvalue(complete, solver, largest):
    root = missing_root(complete, solver, largest)
    value, vector = information_of(complete, solver, root).smallest_eigenvalue()
    tolerance = 1e-3 if solver == "matrix_free" else 1e-9
    assert value == pytest.approx(1.0 - largest, rel=tolerance, abs=tolerance)
    direction = complete.times_root(vector[:, None])[:, 0]
    complete_information = np.linalg.inv(dense_covariance(complete))
    assert direction @ complete_information @ direction == pytest.approx(1.0)
    observed = complete_information - root @ root.T
    assert direction @ observed @ direction == pytest.approx(1.0 - largest, abs=tolerance)


@solvers
@pytest.mark.parametrize("largest", [1.0 + 1e-3, 30.0])
def test_indefinite_information_is_refused(complete, solver, largest):
    information = information_of(complete, solver, missing_root(complete, solver, largest))
    for answer in (
        information.covariance,
        lambda: information.solve(np.eye(SIZE)),
        lambda: information.correlated(np.eye(SIZE)),
    ):
        with pytest.raises(
            IndefiniteInformationError, match=r"smallest eigenvalue .* largest entries \["
        ) as e:
            answer()
        assert e.value.smallest_eigenvalue == pytest.approx(1.0 - largest, rel=1e-3, abs=1e-3)
        assert e.value.direction.shape == (SIZE,)
    assert information.definiteness() is Definiteness.INDEFINITE
    twin = pickle.loads(pickle.dumps(e.value))
    assert str(twin) == str(e.value)
    assert twin.smallest_eigenvalue == e.value.smallest_eigenvalue


def test_singular_information_is_refused(complete):
    root = missing_root(complete, "primal", 1.0)
    for solver in ("primal", "dual"):
        information = information_of(complete, solver, root)
        assert information.definiteness() is Definiteness.INDEFINITE
        with pytest.raises(IndefiniteInformationError):
            information.covariance()


@solvers
def test_newton_step_solves_the_system(complete, solver):
    root, gradient = missing_root(complete, solver, 0.9), np.random.default_rng(3).normal(size=SIZE)
    beta = covariance_of(complete, root) @ gradient
    information = information_of(complete, solver, root)
    step, decrement, definiteness = information.newton_step(gradient)
    expected = np.linalg.solve(dense_covariance(complete), beta)
    tolerance = 5e-2 if solver == "matrix_free" else 1e-9
    np.testing.assert_allclose(step, expected, rtol=0.0, atol=tolerance * np.abs(expected).max())
    assert decrement == pytest.approx(np.sqrt(gradient @ beta), rel=tolerance / 10)
    shown = Definiteness.UNDECIDED if solver == "matrix_free" else Definiteness.POSITIVE_DEFINITE
    assert definiteness is shown


@solvers
def test_newton_step_ascends_where_the_information_is_indefinite(complete, solver):
    root = missing_root(complete, solver, 30.0)
    for gradient in np.random.default_rng(3).normal(size=(20, SIZE)):
        information = information_of(complete, solver, root)
        step, decrement, definiteness = information.newton_step(gradient)
        assert gradient @ dense_covariance(complete) @ step > 0
        assert decrement > 0
        assert definiteness is Definiteness.INDEFINITE


@pytest.mark.parametrize("solver", ["primal", "dual", "dual_low_rank", "dual_and_diagonal"])
@pytest.mark.parametrize("share", [1.5, 30.0])
def test_an_indefinite_newton_step_goes_where_iterations_go(complete, solver, share):
    missing, gradient = missing_root(complete, solver, share), np.random.default_rng(3).normal(size=SIZE)
    root = complete.times_root(np.eye(SIZE))
    values, vectors = np.linalg.eigh(np.eye(SIZE) - root.T @ missing @ missing.T @ root)
    assert values[0] < 0
    scaled = vectors @ (sums_of_iterations(values) * (vectors.T @ root.T @ gradient))
    step, decrement, _ = information_of(complete, solver, missing).newton_step(gradient)
    np.testing.assert_allclose(step, np.linalg.solve(root.T, scaled), rtol=1e-9)
    assert decrement == pytest.approx(np.sqrt(gradient @ root @ scaled))


def test_sums_of_iterations_are_sums_over_iterations():
    # With this eigenvalue two iterations let the fastest direction grow threefold.
    smallest = 1.0 - np.sqrt(3.0)
    eigenvalues = np.array([smallest, -0.3, -1e-17, 0.0, 0.4, 1.0])
    np.testing.assert_allclose(sums_of_iterations(eigenvalues), 1.0 + (1.0 - eigenvalues), rtol=1e-12)
    # Where one iteration lets it grow by more, the sum has one term.
    np.testing.assert_allclose(sums_of_iterations(np.array([-30.0, 0.2, 1.0])), 1.0, rtol=1e-12)
    # Where the approximations of the eigenvalues miss the negative one, there are some 1,000 iterations.
    sums = sums_of_iterations(np.array([1e-12, 0.25, 1.0]))
    np.testing.assert_allclose(sums, [np.log(3.0) / np.log1p(1e-3), 4.0, 1.0], rtol=1e-9)


@pytest.mark.parametrize("solver", ["primal", "dual", "dual_and_diagonal"])
def test_solvers_pickle(complete, solver):
    information = information_of(complete, solver, missing_root(complete, solver, 0.9))
    covariance = information.covariance()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(information)).covariance(), covariance)


@solvers
def test_arrays_rebuild_the_information(complete, solver):
    root = missing_root(complete, solver, 0.9)
    information = information_of(complete, solver, root)
    arrays = information.to_arrays()

    def factor(own):
        return MatrixFactor(complete.remaining(own.get("remaining", np.ones(SIZE))), own["root"])

    twin = information_from_arrays(complete, arrays, factor)
    # The smaller form is S's triangle with 78 numbers, or the factor with 12 numbers a column.
    if solver in ("dual_low_rank", "dual_and_diagonal"):
        of_shares = {} if solver == "dual_low_rank" else {"remaining": SIZE}
        assert {key: array.size for key, array in arrays.items()} == {"root": 48} | of_shares
        assert twin.name == "dual"
    else:
        assert {key: array.size for key, array in arrays.items()} == {"scaled_triangle": 78}
        assert twin.name == "primal"
    covariance = covariance_of(complete, root)
    np.testing.assert_allclose(twin.covariance(), covariance, atol=1e-9 * np.abs(covariance).max())
    if solver != "matrix_free" and solver != "dual":
        np.testing.assert_array_equal(twin.covariance(), information.covariance())


@solvers
def test_solvers_answer_for_themselves(complete, solver):
    information = information_of(complete, solver, missing_root(complete, solver, 0.9))
    assert isinstance(information, ObservedInformation)
    assert information.holds_rows == (solver == "matrix_free")


@solvers
def test_the_inverse_is_for_many_targets(complete, solver):
    root = missing_root(complete, solver, 0.9)
    information = information_of(complete, solver, root)
    few, many = (information.inverse_for(n) for n in (SIZE - 1, SIZE))
    assert few is None
    if solver == "primal":
        np.testing.assert_allclose(many, covariance_of(complete, root), atol=1e-9)
    else:
        assert many is None
    assert information.has_kernels == (solver in ("dual", "dual_low_rank"))


@pytest.mark.parametrize(
    ("largest", "effort", "expected"),
    [
        (0.9, "proof", Definiteness.POSITIVE_DEFINITE),
        (0.9, "probe", Definiteness.POSITIVE_DEFINITE),
        (0.9999, 1, Definiteness.UNDECIDED),
        (1.5, "probe", Definiteness.INDEFINITE),
        (1.5, "proof", Definiteness.INDEFINITE),
    ],
)
def test_definiteness_by_products(complete, largest, effort, expected):
    information = information_of(complete, "matrix_free", missing_root(complete, "primal", largest))
    assert information.definiteness(effort) is expected


def test_no_question_changes_the_answer_to_another(complete):
    information = information_of(complete, "matrix_free", missing_root(complete, "primal", 1.5))
    before = information.definiteness(0)
    assert information.newton_step(np.ones(SIZE)).definiteness is Definiteness.INDEFINITE
    with pytest.raises(IndefiniteInformationError):
        information.solve(np.eye(SIZE))
    assert information.definiteness(0) is before is Definiteness.UNDECIDED


def test_unknown_effort_is_refused(complete):
    information = information_of(complete, "matrix_free", missing_root(complete, "primal", 0.5))
    with pytest.raises(ValueError, match="effort='little' is neither 'probe', 'proof' nor a number"):
        information.definiteness("little")


def test_matrix_free_stops_short_but_ascends(complete, monkeypatch):
    root, gradient = missing_root(complete, "primal", 0.95), np.random.default_rng(3).normal(size=SIZE)
    decrement = information_of(complete, "primal", root).newton_step(gradient).decrement
    products = []

    def product(array):
        products.append(array)
        return root @ (root.T @ array)

    monkeypatch.setattr(solvers_module, "_MAX_STEP_PRODUCTS", 2)
    information = MatrixFreeInformation(complete, product)
    step, approximate, _ = information.newton_step(gradient)
    assert len(products) == 2
    assert 0 < approximate < decrement
    assert gradient @ dense_covariance(complete) @ step > 0
    np.testing.assert_array_equal(MatrixFreeInformation(complete, product).newton_step(0 * gradient)[0], 0)


def test_matrix_free_columns_share_their_products(complete):
    root = missing_root(complete, "primal", 0.95)
    widths = []

    def product(array):
        widths.append(array.shape[1])
        return root @ (root.T @ array)

    information = MatrixFreeInformation(complete, product)
    information.require_positive_definite()
    widths.clear()
    information.solve(np.eye(SIZE))
    assert widths[0] == SIZE
    assert len(widths) <= 2 * SIZE
    assert sorted(widths, reverse=True) == widths


def test_matrix_free_says_when_it_does_not_converge(complete, monkeypatch):
    root = missing_root(complete, "primal", 0.95)
    monkeypatch.setattr(solvers_module, "_MAX_PRODUCTS", 3)
    information = information_of(complete, "matrix_free", root)
    with pytest.raises(np.linalg.LinAlgError, match=r"relative residual of .* after 3 products"):
        information.covariance()
    with pytest.raises(np.linalg.LinAlgError, match="after 3 products"):
        information.correlated(np.eye(SIZE))


@solvers
def test_answers_keep_their_digits_in_any_units(solver):
    # Standard deviations run from 1e-6 to 1e6.
    root = np.logspace(-6, 6, SIZE)
    complete = diagonal(root)
    half = np.random.default_rng(1).normal(size=(SIZE, SIZE))
    half *= np.sqrt(0.9) / np.linalg.norm(half, 2)
    information = information_of(complete, solver, half / root[:, None])
    expected = np.linalg.inv(np.eye(SIZE) - half @ half.T)
    covariance = information.covariance() / np.outer(root, root)
    np.testing.assert_allclose(covariance, expected, rtol=1e-8, atol=1e-9)


@solvers
def test_no_positive_eigenvalue_is_no_optimum(complete, solver):
    """S has the eigenvalues 0 and 0.1 to 1: the zero is found."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
    eigenvalues = np.concatenate([[0.0], np.linspace(0.1, 1.0, SIZE - 1)])
    half = rotation * np.sqrt(1.0 - eigenvalues)
    root = complete.solve_root_transposed(half)
    information = information_of(complete, "primal" if solver == "primal" else solver, root)
    with pytest.raises(IndefiniteInformationError):
        information.covariance()
    assert abs(information.smallest_eigenvalue()[0]) < 1e-6


@solvers
def test_nearly_singular_information_is_solved(complete, solver):
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
    eigenvalues = np.logspace(-4, -0.01, SIZE)
    root = complete.solve_root_transposed(rotation * np.sqrt(1.0 - eigenvalues))
    information = information_of(complete, solver, root)
    T = complete.times_root(np.eye(SIZE))
    expected = T @ (rotation / eigenvalues) @ rotation.T @ T.T
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert (np.abs(information.covariance() - expected) / scale).max() < 1e-8
    assert information.smallest_eigenvalue()[0] == pytest.approx(1e-4, rel=1e-2)


@solvers
def test_one_unknown(solver):
    complete = diagonal(np.array([2.0]))
    information = information_of(complete, solver if solver != "dual_low_rank" else "dual", np.array([[0.4]]))
    np.testing.assert_allclose(information.covariance(), 4.0 / (1.0 - 0.64), rtol=1e-12)


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_pivots_of_round_off_size_are_no_optimum(complete, solver):
    for smallest, expected in ((1e-15, False), (1e-10, True)):
        eigenvalues = np.concatenate([np.full(SIZE - 1, 0.5), [smallest]])
        root = complete.solve_root_transposed(np.diag(np.sqrt(1.0 - eigenvalues)))
        definiteness = information_of(complete, solver, root).definiteness()
        assert (definiteness is Definiteness.POSITIVE_DEFINITE) == expected


@pytest.mark.parametrize("smallest", [-0.5, -1e-9])
def test_indefinite_steps_are_bounded(complete, smallest):
    # Neither a curvature of 1e-12 nor one of -1e-9 may make the step huge.
    for solver in ("primal", "dual"):
        rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(SIZE, SIZE)))[0]
        eigenvalues = np.concatenate([[smallest, 1e-12], np.linspace(0.1, 1.0, SIZE - 2)])
        root = complete.solve_root_transposed(rotation * np.sqrt(1.0 - eigenvalues))
        information = information_of(complete, solver, root)
        directions = rotation[:, :2]
        gradient = complete.solve_root_transposed(directions.sum(axis=1, keepdims=True))[:, 0]
        step, decrement, _ = information.newton_step(gradient)
        n_iterations = np.log(3.0) / np.log1p(max(-smallest, 1e-3))
        growth = np.expm1(n_iterations * np.log1p(-smallest)) / -smallest
        lengths = directions @ np.array([[growth], [n_iterations]])
        np.testing.assert_allclose(step, complete.solve_root_transposed(lengths)[:, 0], rtol=1e-4)
        assert decrement == pytest.approx(np.sqrt(n_iterations + growth), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("smallest", [-0.3, 0.01])
def test_smallest_eigenvalue_of_a_large_matrix(smallest):
    size = 1200  # Lanczos' method finds it.
    axis = np.random.default_rng(0).normal(size=size)
    reflection = np.eye(size) - 2.0 * np.outer(axis, axis) / (axis @ axis)
    missing = (reflection * np.concatenate([[1.0 - smallest], np.linspace(0.0, 0.9, size - 1)])) @ reflection
    complete = diagonal(np.ones(size))
    value, vector = PrimalInformation(complete, missing).smallest_eigenvalue()
    assert value == pytest.approx(smallest, abs=1e-9)
    assert abs(vector @ reflection[0]) == pytest.approx(1.0, abs=1e-9)
