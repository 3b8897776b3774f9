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
