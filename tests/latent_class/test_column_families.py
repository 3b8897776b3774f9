"""Every family of columns obeys the identities that the mixture uses."""

import numpy as np
import pytest
from column_family_check import check_column_family

from sklearn_lrvb.families import (
    CategoricalColumns,
    CountColumns,
    NumericColumns,
    RateColumns,
)


class WaitingTimes(RateColumns):
    """Exponential columns: a family of one's own."""

    def features(self, values):
        seen = ~np.isnan(values)
        return np.stack([seen.astype(float), np.where(seen, values, 0.0)], axis=1)

    def mean_features(self, sums):
        rates = self.values(sums)
        return np.concatenate([np.ones_like(rates), 1.0 / rates], axis=-1)

    def drawn(self, generator, values, n_rows):
        return generator.standard_exponential((len(values), n_rows)) / values


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
        "of one's own": (WaitingTimes([0, 1], [1.0, 2.0], 1.0), rng.exponential(1.0, (2, 30))),
    }


@pytest.mark.parametrize("name", families())
def test_a_family_is_consistent(name):
    family, values = families()[name]
    check_column_family(family, values, np.random.RandomState(1))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda number: CategoricalColumns([0, 1], 3, number), "category_concentration_prior"),
        (lambda number: CountColumns([0, 1], [2.0, 5.0], number), "count_shape_prior"),
        (lambda number: NumericColumns([0], [1.0], [2.0], number, 2.0, 1.0), "mean_precision_prior"),
        (lambda number: NumericColumns([0], [1.0], [2.0], 0.1, number, 1.0), "degrees_of_freedom_prior"),
        (lambda number: NumericColumns([0], [1.0], [2.0], 0.1, 2.0, number), "variance_prior"),
    ],
)
def test_direct_effects_of_the_prior_are_derivatives(make, name):
    rng, number, step = np.random.RandomState(0), 0.9, 1e-5
    family, up, down = make(number), make(number + step), make(number - step)
    values = rng.randint(3, size=(family.n_columns, 25)).astype(float)
    sums = np.einsum("nk,cbn->kcb", rng.dirichlet(np.ones(2), 25), family.features(values))
    of_statistics, of_values = family.effects_of_prior(sums, name)
    for found, method in ((of_statistics, "expected"), (of_values, "values")):
        expected = (getattr(up, method)(sums) - getattr(down, method)(sums)) / (2 * step)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


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
