"""Complete minus missing information: every answer against dense linear algebra."""

import numpy as np
import pytest

from sklearn_lrvb.linear_response.observed_information import (
    CompleteInformation,
    IndefiniteInformationError,
    MatrixFreeInformation,
    ObservedInformation,
)

SIZE = 12
DENSE = np.array([0, 4, 8])


@pytest.fixture
def complete():
    rng = np.random.default_rng(0)
    block = rng.normal(size=(3, 3))
    root = rng.uniform(0.05, 0.2, size=SIZE)
    return CompleteInformation(DENSE, np.linalg.cholesky(block @ block.T + np.eye(3)), root)


def dense_covariance(complete):
    """R as one matrix."""
    covariance = np.diag(complete.root**2)
    covariance[np.ix_(DENSE, DENSE)] = complete.dense_root @ complete.dense_root.T
    return covariance


def missing(complete, largest):
    """G whose largest eigenvalue is a given fraction of the complete information."""
    square = np.random.default_rng(1).normal(size=(SIZE, SIZE))
    gram = square @ square.T
    root = np.linalg.cholesky(dense_covariance(complete))
    fraction = np.linalg.eigvalsh(root.T @ gram @ root)[-1]
    return gram * largest / fraction


def test_roots_multiply_to_the_covariance(complete):
    root = complete.times_root(np.eye(SIZE))
    np.testing.assert_allclose(root @ root.T, dense_covariance(complete), rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(complete.times_root_transposed(np.eye(SIZE)), root.T, atol=1e-16)
    array = np.random.default_rng(2).normal(size=(SIZE, 3))
    solved = complete.solve_root_transposed(array)
    np.testing.assert_allclose(complete.times_root_transposed(solved), array, rtol=1e-10)


def test_covariance_is_the_inverse(complete):
    gram = missing(complete, 0.9)
    covariance = np.linalg.inv(np.linalg.inv(dense_covariance(complete)) - gram)
    information = ObservedInformation(complete, gram.copy())
    root = information.covariance_root()
    np.testing.assert_allclose(root.T @ root, covariance, rtol=1e-9)


def test_no_missing_information_is_the_complete_answer(complete):
    root = ObservedInformation(complete, np.zeros((SIZE, SIZE))).covariance_root()
    np.testing.assert_allclose(root.T @ root, dense_covariance(complete), rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("largest", [0.9, 1.0 + 1e-3, 30.0])
def test_smallest_eigenvalue(complete, largest):
    gram = missing(complete, largest)
    value, vector = ObservedInformation(complete, gram.copy()).smallest_eigenvalue()
    assert value == pytest.approx(1.0 - largest, rel=1e-9, abs=1e-12)
    direction = complete.times_root(vector[:, None])[:, 0]
    complete_information = np.linalg.inv(dense_covariance(complete))
    assert direction @ complete_information @ direction == pytest.approx(1.0)
    assert direction @ (complete_information - gram) @ direction == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("largest", [1.0, 1.0 + 1e-3, 30.0])
def test_indefinite_information_is_refused(complete, largest):
    information = ObservedInformation(complete, missing(complete, largest))
    assert not information.is_positive_definite
    with pytest.raises(IndefiniteInformationError, match="smallest eigenvalue"):
        information.covariance_root()


def test_newton_step_solves_the_system(complete):
    gram, gradient = missing(complete, 0.9), np.random.default_rng(3).normal(size=SIZE)
    complete_matrix = np.linalg.inv(dense_covariance(complete))
    beta = np.linalg.solve(complete_matrix - gram, gradient)
    step, decrement = ObservedInformation(complete, gram.copy()).newton_step(gradient)
    np.testing.assert_allclose(step, complete_matrix @ beta, rtol=1e-9, atol=1e-9)
    assert decrement == pytest.approx(np.sqrt(gradient @ beta), rel=1e-10)


def test_newton_step_ascends_where_the_information_is_indefinite(complete):
    gram = missing(complete, 30.0)
    rng = np.random.default_rng(3)
    for solver in (
        ObservedInformation(complete, gram.copy()),
        MatrixFreeInformation(complete, gram.__matmul__),
    ):
        for gradient in rng.normal(size=(20, SIZE)):
            step, decrement = solver.newton_step(gradient)
            assert gradient @ dense_covariance(complete) @ step > 0
            assert decrement > 0
        assert not solver.is_positive_definite


def test_indefinite_newton_step_takes_eigenvalues_by_magnitude(complete):
    gram, gradient = missing(complete, 30.0), np.random.default_rng(3).normal(size=SIZE)
    root = complete.times_root(np.eye(SIZE))
    values, vectors = np.linalg.eigh(np.eye(SIZE) - root.T @ gram @ root)
    assert values[0] < -20
    assert np.abs(values).min() > 1e-3  # none at the floor
    scaled = vectors @ ((vectors.T @ root.T @ gradient) / np.abs(values))
    step, decrement = ObservedInformation(complete, gram).newton_step(gradient)
    np.testing.assert_allclose(step, np.linalg.solve(root.T, scaled), rtol=1e-9)
    assert decrement == pytest.approx(np.sqrt(gradient @ root @ scaled))


def test_matrix_free_equals_dense(complete):
    gram, gradient = missing(complete, 0.95), np.random.default_rng(3).normal(size=SIZE)
    expected, decrement = ObservedInformation(complete, gram.copy()).newton_step(gradient)
    solver = MatrixFreeInformation(complete, gram.__matmul__)
    step, approximate = solver.newton_step(gradient, tolerance=1e-12)
    np.testing.assert_allclose(step, expected, rtol=1e-8, atol=1e-8)
    assert approximate == pytest.approx(decrement, rel=1e-10)
    assert solver.is_positive_definite


def test_matrix_free_stops_short_but_ascends(complete):
    gram, gradient = missing(complete, 0.95), np.random.default_rng(3).normal(size=SIZE)
    _, decrement = ObservedInformation(complete, gram.copy()).newton_step(gradient)
    products = []

    def product(vector):
        products.append(vector)
        return gram @ vector

    step, approximate = MatrixFreeInformation(complete, product, max_products=2).newton_step(gradient)
    assert len(products) == 2
    assert 0 < approximate < decrement
    assert gradient @ dense_covariance(complete) @ step > 0
    np.testing.assert_array_equal(MatrixFreeInformation(complete, product).newton_step(0 * gradient)[0], 0)
