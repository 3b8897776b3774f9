"""The Gram matrix of two components' monomials, by its definition."""

import numpy as np
import pytest
from catalogue import MODELS, mixture, posterior_of, rows_of

from sklearn_lrvb.gaussian.covariance_structures.full_pair import FullPair, QuarticMoments
from sklearn_lrvb.rows import added


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [1, 2, 5, 19, 20, 44])
def test_moments_add_over_blocks_to_what_the_features_give(n_features):
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(120, n_features)) + np.arange(120)[:, None] % 2
    estimator = mixture({**MODELS[0], "solver": "coordinate_ascent", "tol": 1e9}).fit(X)
    posterior = posterior_of(estimator)
    rows, weights = (X - rows_of(estimator, X).origin).T, rng.random(120)
    weights[::3] = 0.0
    pair = FullPair(posterior, 0, 1, QuarticMoments(1 + n_features))
    whole = pair.moments(rows, weights)
    blocks = added(pair.moments(rows[:, :17], weights[:17]), pair.moments(rows[:, 17:], weights[17:]))

    structure = posterior.structure
    difference = np.zeros((structure.layout.n_coefficients, 120))
    with_one = np.concatenate([np.ones((1, 120)), rows])
    whitened = structure.whiten(posterior.whiteners, posterior.centred_means, with_one)
    for k, sign in enumerate([1.0, -1.0]):
        features = structure.features.of_component(whitened[k], posterior.second_moment_origin[k])
        difference[structure.layout.places_of_components[k]] = sign * features
    expected = (weights * difference) @ difference.T
    for moments in (whole, blocks):
        found = np.zeros_like(expected)
        pair.add_to(found, moments)
        np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())
        np.testing.assert_array_equal(found, found.T)
