"""Responsibilities keep their digits, whatever their size, and are the same however they are asked for."""

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, mixture, posterior_of, rows_of, three_blobs

from sklearn_lrvb.gaussian.e_step.coordinates import CommonCoordinates, OwnCoordinates
from sklearn_lrvb.mixture.e_step import centred_on_average, complements, expect, normalized
from sklearn_lrvb.mixture.prediction import (
    most_probable_components,
    responsibilities_of_rows,
    scores_of_rows,
)


@pytest.mark.parametrize("least", [-1e34, -1e36, -1e300, -np.inf])
def test_responsibilities_of_far_components_are_tiny_normal_numbers_or_zero(least):
    # Numbers that underflow take the processor many times as long. A squared distance of 1e34, squared
    # and times 1e-100, is below round-off, but one of 1e300 is not.
    densities = np.array([[0.0, -5.0, least], [-1.0, -745.0, 0.0], [-1e4, -2e4, -1e30]])
    responsibilities, log_normalizer = normalized(densities)
    np.testing.assert_allclose(log_normalizer, [np.log(1 + np.exp(-1.0)), -5.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(responsibilities.sum(axis=0), 1.0, rtol=1e-15)
    assert np.square(responsibilities[responsibilities > 0]).min() > np.finfo(float).tiny
    assert responsibilities[densities < -700].max() < 1e-99
    assert responsibilities[0, 2] * min(-least, 1e150) ** 2 < 1e-18


def test_complements_keep_their_digits_where_a_row_is_almost_certain():
    responsibilities = np.array([[1.0, 0.2, 1e-20], [3e-20, 0.3, 1.0], [1e-30, 0.5, 2e-20]])
    expected = [[3e-20 + 1e-30, 0.8, 1.0], [1.0, 0.7, 3e-20], [1.0, 0.5, 1.0]]
    np.testing.assert_allclose(complements(responsibilities), expected, rtol=1e-15)


def test_changes_centred_on_their_average_have_none_left():
    rng = np.random.default_rng(0)
    responsibilities = rng.dirichlet([0.1] * 4, 50).T
    changes = rng.normal(size=(4, 50, 2))
    expected = changes - np.einsum("kn,knp->np", responsibilities, changes)
    centred = centred_on_average(changes, responsibilities)
    np.testing.assert_allclose(centred, expected, atol=1e-14)
    certain = np.zeros((4, 50))
    certain[2] = 1.0
    assert not centred_on_average(changes, certain)[2].any()
    assert np.abs(np.einsum("kn,knp->np", responsibilities, centred)).max() < 1e-15


@pytest.mark.parametrize("size", [1e-8, 1e-12, 1e-15])
def test_centred_changes_keep_their_digits_where_a_row_is_almost_certain(size):
    rng = np.random.default_rng(0)
    others = size * rng.random((2, 200))
    responsibilities = np.vstack([1.0 - others.sum(axis=0), others])
    changes = 5.0 * rng.normal(size=(3, 200))
    expected = (others * (changes[0] - changes[1:])).sum(axis=0)
    np.testing.assert_allclose(centred_on_average(changes, responsibilities)[0], expected, rtol=1e-14)


@pytest.mark.parametrize("coordinates", [OwnCoordinates, CommonCoordinates])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_e_step_of_a_block_in_any_coordinates(covariance_type, coordinates):
    X = three_blobs()
    estimator = mixture({"covariance_type": covariance_type}, 3).fit(X)
    rows, posterior = rows_of(estimator, X), posterior_of(estimator)
    block = rows.block(slice(0, 300))
    whole = expect(coordinates(posterior), block)
    log_densities = whole.log_densities
    np.testing.assert_allclose(whole.log_normalizer, np.log(np.exp(log_densities).sum(axis=0)), rtol=1e-12)
    np.testing.assert_allclose(
        whole.responsibilities, np.exp(log_densities - whole.log_normalizer), rtol=1e-12, atol=1e-99
    )

    without = expect(coordinates(posterior), block, without=1)
    others = np.exp(log_densities[[0, 2]])
    np.testing.assert_allclose(without.responsibilities[[0, 2]], others / others.sum(axis=0), rtol=1e-12)
    assert without.responsibilities[1].max() < 1e-99

    np.testing.assert_allclose(
        responsibilities_of_rows(rows, posterior), whole.responsibilities.T, atol=1e-12
    )
    np.testing.assert_allclose(scores_of_rows(rows, posterior), whole.log_normalizer, rtol=1e-11)
    np.testing.assert_array_equal(
        most_probable_components(rows, posterior), whole.responsibilities.argmax(axis=0)
    )
