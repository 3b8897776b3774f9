"""Every family of columns obeys the identities that the mixture uses."""

import numpy as np
import pytest
from column_family_check import check_column_family
from scipy import stats

from sklearn_lrvb.families import (
    CategoricalColumns,
    CountColumns,
    DurationColumns,
    NumericColumns,
    RateColumns,
)


class ServiceTimes(RateColumns):
    """Gamma columns of shape 3, which three steps take together: a family of one's own."""

    @staticmethod
    def terms(y):
        return 3.0, y

    def distribution(self, values):
        return stats.gamma(3.0, scale=1.0 / values[..., 0])

    def log_base(self, values):
        return np.nansum(2.0 * np.log(values) - np.log(2.0), axis=0)


def families():
    rng = np.random.RandomState(0)
    return {
        "binary": (CategoricalColumns([0, 2], 2, 0.5), rng.randint(2, size=(2, 30)).astype(float)),
        "categorical": (CategoricalColumns([0, 1], 4, 1.0), rng.randint(4, size=(2, 30)).astype(float)),
        "count": (CountColumns([0, 1], [2.0, 5.0], 1.3), rng.poisson(3.0, (2, 30)).astype(float)),
        "numeric": (
            NumericColumns([0, 1], [1.0, -2.0], [2.0, 0.3], 0.1, 2.5, 0.8),
            rng.normal([[1.0], [-2.0]], [[2.0], [0.3]], (2, 30)),
        ),
        "duration": (DurationColumns([0, 1], [1.0, 2.0], 1.0), rng.exponential(1.0, (2, 30))),
        "of one's own": (ServiceTimes([0, 1], [1.0, 2.0], 1.0), rng.gamma(3.0, 1.0, (2, 30))),
    }


@pytest.mark.parametrize("name", families())
def test_a_family_is_consistent(name):
    family, values = families()[name]
    check_column_family(family, values, np.random.RandomState(1))


@pytest.mark.parametrize("shape", [0.3, 5.0, 999.0, 1001.0, 1e7])
def test_a_numeric_column_keeps_its_digits_with_many_rows(shape):
    # The root of R stays a root of it where log tau is nearly a linear function of tau.
    family = NumericColumns([0], [0.0], [1.0], 0.1, 2.0 * shape, 2.0 * shape)
    sums = np.array([[[3.0, 1.0, 4.0]]])
    root = family.covariance_root(sums)[0, 0]
    assert np.linalg.svd(root, compute_uv=False).min() > 0
    covariance = root @ root.T
    about = np.array([[1.0, 0.0, 0.0], [1.0 / 3.1, 1.0, 0.0], [1.0 / 3.1**2, 2.0 / 3.1, 1.0]]).T
    own = about @ covariance @ about.T  # of the statistics about the mean of q
    np.testing.assert_allclose(own[0, 1], 0.0, atol=1e-12 * np.abs(covariance).max())
