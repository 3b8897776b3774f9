"""The Gram matrix of quadratic monomials, by its definition."""

from math import comb

import numpy as np
import pytest

from sklearn_lrvb.gaussian_mixture.covariance_structures.full_pair import (
    DistinctMoments,
    GramOfMonomials,
    MomentsOfManyWeights,
    monomials,
    quartic_moments,
)


def by_definition(rows, weights):
    row, column = np.triu_indices(len(rows) + 1)
    extended = np.vstack([np.ones(rows.shape[1]), rows])
    products = extended[row] * extended[column]
    return products, (products * weights) @ products.T


@pytest.mark.parametrize("n_features", [1, 2, 5, 13, 16])
@pytest.mark.parametrize("kind", [GramOfMonomials, DistinctMoments])
def test_gram_is_its_definition(kind, n_features):
    rng = np.random.default_rng(n_features)
    rows, weights = rng.normal(size=(n_features, 90)), rng.random(90)
    weights[::3] = 0.0
    products, gram = by_definition(rows, weights)
    np.testing.assert_array_equal(monomials(rows), products)
    quartic = kind(n_features)
    whole = quartic.moments(rows, weights)
    np.testing.assert_allclose(quartic.gram(whole), gram, atol=1e-13 * np.abs(gram).max())
    blocks = quartic.moments(rows[:, :17], weights[:17]) + quartic.moments(rows[:, 17:], weights[17:])
    np.testing.assert_allclose(blocks, whole, atol=1e-13 * np.abs(gram).max())
    symmetric = quartic.gram(whole)
    np.testing.assert_array_equal(symmetric, symmetric.T)


@pytest.mark.parametrize("n_features", [1, 2, 5, 16])
def test_many_weights_share_their_monomials(n_features):
    rng = np.random.default_rng(n_features)
    rows, weights = rng.normal(size=(n_features, 1200)), rng.random((3, 1200))
    weights[1, 300:] = 0.0  # absent from most of the rows that are taken at once
    many = MomentsOfManyWeights(n_features, 3)
    moments = many.moments(rows[:, :700], weights[:, :700]) + many.moments(rows[:, 700:], weights[:, 700:])
    for number, own in enumerate(weights):
        _, gram = by_definition(rows, own)
        found = many.gram(moments, number)
        np.testing.assert_allclose(found, gram, atol=1e-13 * np.abs(gram).max())
        np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("n_features", [2, 17, 18, 25, 60])
def test_the_one_with_fewer_flops_is_taken_where_products_are_large(n_features):
    chosen = quartic_moments(n_features)
    distinct = comb(n_features + 4, 4)
    if isinstance(chosen, DistinctMoments):
        assert 2 * distinct <= chosen.flops_per_row < 0.65 * GramOfMonomials(n_features).flops_per_row
    else:
        assert n_features < 18
        assert chosen.flops_per_row == comb(n_features + 2, 2) ** 2
