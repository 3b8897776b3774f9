"""Symmetric matrices as vectors, their factors, and the rule of numerical rank."""

import numpy as np
import pytest

from sklearn_lrvb.symmetric_matrices import (
    cholesky_equilibrated,
    cholesky_factors,
    from_packed_triangle,
    from_unique_entries,
    gram_root,
    packed_triangle,
    svec,
    unique_entries,
)


@pytest.fixture
def matrices():
    square = np.random.default_rng(0).normal(size=(2, 5, 4, 4))
    return square + square.swapaxes(-1, -2)


def test_svec_is_an_isometry(matrices):
    first, second = matrices
    inner = np.einsum("npq,npq->n", first, second)
    np.testing.assert_allclose((svec(first) * svec(second)).sum(axis=1), inner, rtol=1e-12)


def test_vectors_are_inverted(matrices):
    unique = unique_entries(matrices)
    np.testing.assert_array_equal(from_unique_entries(unique, 4), matrices)


def test_unique_entries_run_over_the_upper_triangle():
    matrix = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(unique_entries(matrix), matrix[np.triu_indices(3)])


@pytest.mark.parametrize("units", [1.0, 1e-8, 1e8])
def test_cholesky_factor_does_not_depend_on_units(units):
    scale = np.array([units, 1.0, 1 / units])
    matrix = np.outer(scale, scale) * [[2.0, 0.5, 0.3], [0.5, 1.0, -0.2], [0.3, -0.2, 3.0]]
    factor = cholesky_factors(matrix[None])[0]
    np.testing.assert_allclose(factor @ factor.T, matrix, rtol=1e-14)
    np.testing.assert_array_equal(factor, np.tril(factor))


@pytest.mark.parametrize("units", [1.0, 1e-8, 1e8])
@pytest.mark.parametrize(
    "matrix",
    [
        [[1.0, 1.0], [1.0, 1.0]],
        [[1.0, 0.0], [0.0, 0.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, np.nan], [np.nan, 1.0]],
        [[1.0, 1.0], [1.0, 1.0 + 4e-16]],
    ],
    ids=["collinear", "constant", "indefinite", "nan", "round-off"],
)
def test_cholesky_factor_refuses_singular_matrices(matrix, units):
    scale = np.array([1.0, units])
    assert np.isnan(cholesky_factors((np.outer(scale, scale) * matrix)[None])).all()


def test_nearly_singular_matrices_have_an_equilibrated_factor():
    matrix = np.array([[1.0, 1.0], [1.0, 1.0 + 4e-16]])
    factor = cholesky_equilibrated(matrix)
    np.testing.assert_allclose(factor @ factor.T, matrix, rtol=1e-15)
    assert cholesky_equilibrated(np.array([[1.0, 2.0], [2.0, 1.0]])) is None


def test_factors_of_a_stack_are_those_of_its_matrices():
    rng = np.random.default_rng(0)
    stack = rng.normal(size=(5, 3, 8)) * np.array([1e-6, 1.0, 1e6])[:, None]
    stack = stack @ stack.swapaxes(1, 2)
    for factor, matrix in zip(cholesky_factors(stack), stack, strict=True):
        np.testing.assert_allclose(factor, cholesky_factors(matrix[None])[0], rtol=1e-13)
    stack[2, :, 0] = stack[2, 0] = stack[2, :, 1]
    stack[2, 0, 0] = stack[2, 1, 1]
    factors = cholesky_factors(stack)
    assert np.isnan(factors).all(axis=(1, 2)).tolist() == [False, False, True, False, False]
    assert not np.isnan(np.delete(factors, 2, axis=0)).any()


def test_packed_triangles_are_unpacked():
    square = np.random.default_rng(0).normal(size=(7, 7))
    matrix = square + square.T
    packed = packed_triangle(np.tril(matrix))
    assert packed.shape == (28,)
    np.testing.assert_array_equal(from_packed_triangle(packed), matrix)


def test_gram_root_is_a_root_in_any_units():
    half = np.random.default_rng(0).normal(size=(3, 6)) * np.logspace(-8, 8, 6)
    gram = half.T @ half  # of rank 3
    root = gram_root(gram)
    scale = np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    np.testing.assert_allclose(root.T @ root / scale, gram / scale, atol=1e-14)
    assert not gram_root(np.zeros((2, 2))).any()
    np.testing.assert_allclose(gram_root(np.stack([gram, gram]))[1], root)
    assert gram_root(np.zeros((3, 0, 0))).shape == (3, 0, 0)


def test_gram_root_is_continuous_where_eigenvectors_are_not():
    # Two eigenvalues are equal: the least change of the matrix turns their eigenvectors.
    change = np.array([[0.0, 1e-9, 0.0], [1e-9, 0.0, 1e-9], [0.0, 1e-9, 0.0]])
    gram = np.diag([4.0, 4.0, 9.0])
    np.testing.assert_allclose(gram_root(gram + change), gram_root(gram - change), atol=1e-8)
