"""Symmetric matrices as vectors, and the one verdict on singular matrices."""

import numpy as np
import pytest

from sklearn_lrvb.symmetric_matrices import cholesky_factor, from_unique_entries, smat, svec, unique_entries


@pytest.fixture
def matrices():
    square = np.random.default_rng(0).normal(size=(2, 5, 4, 4))
    return square + square.swapaxes(-1, -2)


def test_svec_is_an_isometry(matrices):
    first, second = matrices
    inner = np.einsum("npq,npq->n", first, second)
    np.testing.assert_allclose((svec(first) * svec(second)).sum(axis=1), inner, rtol=1e-12)


def test_vectors_are_inverted(matrices):
    np.testing.assert_allclose(smat(svec(matrices), 4), matrices, rtol=1e-15)
    unique = unique_entries(matrices)
    np.testing.assert_array_equal(from_unique_entries(unique, 4), matrices)


def test_unique_entries_run_over_the_upper_triangle():
    matrix = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(unique_entries(matrix), matrix[np.triu_indices(3)])


@pytest.mark.parametrize("units", [1.0, 1e-8, 1e8])
def test_cholesky_factor_does_not_depend_on_units(units):
    scale = np.array([units, 1.0, 1 / units])
    matrix = np.outer(scale, scale) * [[2.0, 0.5, 0.3], [0.5, 1.0, -0.2], [0.3, -0.2, 3.0]]
    factor = cholesky_factor(matrix)
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
    assert cholesky_factor(np.outer(scale, scale) * matrix) is None
