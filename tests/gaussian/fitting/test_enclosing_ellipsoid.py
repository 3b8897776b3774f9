"""The smallest enclosing ellipsoid: exact cases, invariance, and its bounds."""

import itertools

import numpy as np
import pytest

from sklearn_lrvb.gaussian.fitting.enclosing_ellipsoid import (
    log_volume_of_ball,
    log_volume_of_enclosing_ellipsoid,
)

DIMENSIONS = [1, 2, 3, 6]


def on_sphere(n_points, n_dimensions):
    points = np.random.default_rng(0).normal(size=(n_points, n_dimensions))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.concatenate([points, -points])


def cube(n_dimensions):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=n_dimensions)))


@pytest.mark.parametrize("n_dimensions", DIMENSIONS)
def test_cube_and_simplex_are_enclosed_by_a_ball(n_dimensions):
    ball = log_volume_of_ball(n_dimensions)
    of_cube = log_volume_of_enclosing_ellipsoid(cube(n_dimensions))
    np.testing.assert_allclose(of_cube, ball + 0.5 * n_dimensions * np.log(n_dimensions), atol=1e-9)
    # The simplex of volume sqrt(n + 1) / n! that the unit vectors of n + 1 dimensions make.
    vertices = np.linalg.svd(np.eye(n_dimensions + 1) - 1.0 / (n_dimensions + 1))[2][:n_dimensions].T
    radius = np.sqrt(n_dimensions / (n_dimensions + 1))
    of_simplex = log_volume_of_enclosing_ellipsoid(vertices)
    np.testing.assert_allclose(of_simplex, ball + n_dimensions * np.log(radius), atol=1e-9)


def test_volume_of_a_ball():
    expected = np.log([2.0, np.pi, 4 * np.pi / 3])
    np.testing.assert_allclose([log_volume_of_ball(n) for n in (1, 2, 3)], expected, rtol=1e-14)


@pytest.mark.parametrize("n_dimensions", DIMENSIONS)
def test_an_ellipsoid_is_found_from_points_on_it_whatever_is_inside(n_dimensions):
    rng = np.random.default_rng(1)
    axes = np.eye(n_dimensions) + 0.3 * rng.normal(size=(n_dimensions, n_dimensions))
    surface = np.concatenate([on_sphere(500, n_dimensions), np.eye(n_dimensions), -np.eye(n_dimensions)])
    points = np.concatenate([surface, 0.9 * surface[::-1], np.repeat(surface[:1], 300, axis=0)])
    expected = log_volume_of_ball(n_dimensions) + np.linalg.slogdet(axes)[1]
    volume = log_volume_of_enclosing_ellipsoid(points @ axes.T + rng.normal(size=n_dimensions))
    np.testing.assert_allclose(volume, expected, atol=1e-9)


def test_points_of_any_kind_agree_in_other_coordinates():
    for seed, n_dimensions in enumerate((2, 5, 12)):
        rng = np.random.default_rng(seed)
        points, map_ = rng.standard_t(5, size=(400, n_dimensions)), rng.normal(size=(n_dimensions,) * 2)
        volume = log_volume_of_enclosing_ellipsoid(points)
        moved = log_volume_of_enclosing_ellipsoid((points @ map_.T)[::-1])
        np.testing.assert_allclose(moved, volume + np.linalg.slogdet(map_)[1], atol=1e-9)
        # It is smaller than the ellipsoid of their covariance that encloses them.
        centred = points - points.mean(axis=0)
        covariance = np.cov(centred.T)
        largest = np.einsum("np,pq,nq->n", centred, np.linalg.inv(covariance), centred).max()
        half = 0.5 * np.linalg.slogdet(covariance)[1] + log_volume_of_ball(n_dimensions)
        assert volume < half + 0.5 * n_dimensions * np.log(largest)


def test_a_lower_bound_is_enough_where_asked_for():
    points = np.random.default_rng(0).normal(size=(300, 8))
    volume = log_volume_of_enclosing_ellipsoid(points)
    bound = log_volume_of_enclosing_ellipsoid(points, volume - 1.0)
    assert volume - 1.0 < bound < volume - 1e-3
    assert log_volume_of_enclosing_ellipsoid(points, volume + 1e-3) == volume


def test_three_points_make_steiners_ellipse():
    triangle = np.array([[0.0, 0.0], [5.0, 1.0], [2.0, 3.0]])
    area = 0.5 * (5.0 * 3.0 - 1.0 * 2.0)
    expected = np.log(4 * np.pi / (3 * np.sqrt(3)) * area)
    np.testing.assert_allclose(log_volume_of_enclosing_ellipsoid(triangle), expected, atol=1e-9)
