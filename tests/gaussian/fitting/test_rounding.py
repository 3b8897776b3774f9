"""Columns of few values are known up to a part of their rounding, where the covariances are learned."""

import numpy as np
import pytest
from covariance_types import TYPES

from sklearn_lrvb import LRVBGaussianMixture

GENERATOR = np.random.default_rng(0)
CENTERS = np.repeat([[10.0, 20.0], [40.0, 45.0]], [120, 80], axis=0)
STEP = 0.5
ROUNDED = STEP * np.round((CENTERS + GENERATOR.normal(scale=4.0, size=(200, 2))) / STEP)


def fitted(rows, covariance_type, **arguments):
    model = LRVBGaussianMixture(n_components=2, covariance_type=covariance_type, tol=1e-12, random_state=0)
    return model.set_params(**arguments).fit(rows)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_rounding_is_known_noise_of_a_tenth_of_its_standard_deviation(covariance_type):
    apart = ROUNDED + 1e-9 * GENERATOR.normal(size=ROUNDED.shape)  # No two values are the same.
    rounded = fitted(ROUNDED, covariance_type, reg_covar=0.0)
    noisy = fitted(apart, covariance_type, reg_covar=STEP**2 / 1200.0)
    for name in ("weights_", "means_", "covariances_", "covariance_prior_", "mean_precision_prior_"):
        np.testing.assert_allclose(getattr(rounded, name), getattr(noisy, name), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Columns of X", "ignore:Components have shrunk")
def test_a_value_that_many_rows_have_does_not_shrink_the_typical_covariance():
    rows = np.where(GENERATOR.random((300, 2)) < 0.5, 0.0, GENERATOR.gamma(2.0, size=(300, 2)))
    mixture = fitted(rows, "full", n_components=3)
    variances = np.diagonal(mixture.covariances_, axis1=1, axis2=2)
    # Beside the noise a component has what the others say of it.
    assert np.all(variances > np.square(0.01) * rows.var(axis=0))
    assert mixture.mean_precision_prior_ > 1e-4


def test_two_equal_rows_of_a_small_table_are_chance():
    rows = GENERATOR.normal(size=(30, 1))
    tied, apart = np.vstack([rows, rows[:1]]), np.vstack([rows, rows[:1] + 1e-9])
    bounds = [fitted(some, "full", n_components=1, reg_covar=0.0).lower_bound_ for some in (tied, apart)]
    np.testing.assert_allclose(*bounds, rtol=1e-8)
    tied, apart = np.vstack([tied, rows[:1]]), np.vstack([apart, rows[:1] - 1e-9])  # but three are not
    deviation = 0.01 * tied.std()
    known = fitted(apart, "full", n_components=1, reg_covar=deviation**2)
    atom = fitted(tied, "full", n_components=1, reg_covar=0.0)
    np.testing.assert_allclose(atom.covariances_, known.covariances_, rtol=1e-7)


# More rows than are told by a sample of them: odd ones are rounded, and a twentieth of a column is zero.
LONG = np.repeat(CENTERS, 25, axis=0) + GENERATOR.normal(scale=4.0, size=(5000, 2))
LONG[::2] = STEP * np.round(LONG[::2] / STEP)
LONG[::2, 1][GENERATOR.permutation(2500)[:250]] = 0.0
LONG[1::2, 0] = STEP * np.round(LONG[1::2, 0] / STEP)


@pytest.mark.parametrize("make", ["sorted", "batches", "random"])
def test_rounding_does_not_depend_on_the_order_of_the_rows_nor_on_blocks(make):
    start = np.eye(2)[np.repeat([0, 1], [3000, 2000])]
    order = np.argsort(LONG[:, 1]) if make == "sorted" else GENERATOR.permutation(5000)
    rows = np.split(LONG[order], [7, 1200]) if make == "batches" else LONG[order]
    whole, other = fitted(LONG, "full", init_params=start), fitted(rows, "full", init_params=start[order])
    for name in ("lower_bound_", "covariances_", "covariance_prior_", "mean_precision_prior_"):
        np.testing.assert_allclose(getattr(other, name), getattr(whole, name), rtol=1e-9)


def test_a_value_of_a_twentieth_of_many_rows_is_an_atom():
    rows = LONG[:, 1:]
    assert np.sum(rows == 0.0) == 250
    apart = rows + 1e-9 * GENERATOR.normal(size=rows.shape)
    known = fitted(apart, "full", reg_covar=1e-4 * rows.var())
    atom = fitted(rows, "full", reg_covar=0.0)
    np.testing.assert_allclose(atom.covariances_, known.covariances_, rtol=1e-6)
