"""The frame where two components are diagonal shows what each sees alone, and knows where it does not."""

import numpy as np
import pytest
from catalogue import mixture

from sklearn_lrvb.gaussian_mixture.e_step.e_step import e_step
from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.e_step.pair_frame import PairFrame
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect
from sklearn_lrvb.row_blocks import ArrayRows

N_FEATURES = 12  # from 11 on, monomials of degree two cost more than the frame


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def two_clusters(rng, share=0.5, distance=3.0, scale=1.0, n_samples=1000):
    """A round cluster at the origin, and one of another shape, ``scale`` times as wide; and their start."""
    n_second = int(share * n_samples)
    first = rng.normal(size=(n_samples - n_second, N_FEATURES))
    shape = scale * (np.eye(N_FEATURES) + 0.2 * rng.normal(size=(N_FEATURES, N_FEATURES)))
    second = distance * np.eye(1, N_FEATURES) + rng.normal(size=(n_second, N_FEATURES)) @ shape
    return np.concatenate([first, second]), np.repeat(np.eye(2), [n_samples - n_second, n_second], axis=0)


def state(X, start, weights=None, **parameters):
    """A posterior before its optimum, and the rows as it sees them."""
    estimator = mixture({}, 2, init_params=start, max_iter=2, solver="coordinate_ascent", **parameters)
    with pytest.warns(UserWarning, match="did not converge"):
        estimator.set_params(tol=0.0).fit(X, sample_weight=weights)
    fitted_state = estimator._fitted
    return fitted_state.posterior, ArrayRows(X, fitted_state.origin, sample_weight=weights)


def swept_by(frames, rows, posterior):
    """Log densities of all rows, and the moments of their responsibilities, in the components' own frames."""
    block = rows.block(slice(0, rows.n_samples))
    expectation = expect(frames, block, keep_log_densities=True)
    moments = frames.moments(expectation.whitened, block.weighted(expectation.responsibilities))
    return expectation.log_densities, frames.in_own_frames(moments)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_sees_what_each_component_sees_alone(share, scale, weighted, rng):
    X, start = two_clusters(rng, share, scale=scale)
    weights = rng.uniform(0.1, 3.0, size=len(X)) if weighted else None
    posterior, rows = state(X, start, weights, reg_covar=0.01)
    frame = PairFrame.if_accurate(rows, posterior)
    assert frame is not None
    densities, moments = swept_by(frame, rows, posterior)
    known, expected = swept_by(OwnFrames(posterior), rows, posterior)
    np.testing.assert_allclose(densities, known, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(moments.counts, expected.counts, rtol=1e-11)
    for name in ("first", "second"):
        one, other = getattr(moments, name), getattr(expected, name)
        np.testing.assert_allclose(one, other, atol=1e-11 * np.abs(other).max())
    np.testing.assert_array_equal(moments.second, moments.second.swapaxes(1, 2))


def test_it_serves_sweeps_of_two_components_alone(rng):
    posterior, rows = state(*two_clusters(rng))
    whole = e_step(rows, posterior)
    assert PairFrame.if_accurate(rows, posterior) is not None
    small = ArrayRows(X=rows.X, origin=rows.origin, n_jobs=2)
    assert e_step(small, posterior).lower_bound == pytest.approx(whole.lower_bound, rel=1e-13)
    few = ArrayRows(X=rows.X[: 10 * N_FEATURES], origin=rows.origin)  # the decomposition would cost more
    assert PairFrame.if_accurate(few, posterior) is None


@pytest.mark.filterwarnings("ignore:reg_covar=1e-06.*large for these data")
@pytest.mark.parametrize(
    "clusters",
    [{"distance": 1e3}, {"scale": np.geomspace(1e-4, 1e4, N_FEATURES)}],
    ids=["far apart", "a pancake in a ball"],
)
def test_it_is_left_where_it_would_lose_digits(clusters, rng):
    posterior, rows = state(*two_clusters(rng, **clusters), prior="flat")
    assert PairFrame.if_accurate(rows, posterior) is None


def test_nearly_dependent_columns_keep_the_digits_that_each_component_sees(rng):
    X, start = two_clusters(rng)
    X[:, -1] = X[:, 0] + 1e-4 * X[:, -1]
    posterior, rows = state(X, start, reg_covar=0.0)
    moments, expected = (
        swept_by(way, rows, posterior)[1]
        for way in (PairFrame.if_accurate(rows, posterior), OwnFrames(posterior))
    )
    for name in ("first", "second"):
        one, other = getattr(moments, name), getattr(expected, name)
        np.testing.assert_allclose(one, other, atol=1e-9 * np.abs(other).max())
    X[:, -1] = X[:, 0]
    assert ArrayRows(X, X.mean(axis=0)).total_scatter is None


def test_an_empty_component_is_no_obstacle(rng):
    X, start = two_clusters(rng)
    posterior, rows = state(X, np.full_like(start, 0.5) * [2, 0])
    frame = PairFrame.if_accurate(rows, posterior)
    moments, expected = (swept_by(way, rows, posterior)[1] for way in (frame, OwnFrames(posterior)))
    np.testing.assert_allclose(moments.second, expected.second, atol=1e-10 * np.abs(expected.second).max())


@pytest.mark.parametrize("weighted", [False, True])
def test_the_total_scatter_is_the_sum_over_all_rows(weighted, rng):
    X, _ = two_clusters(rng)
    weights = rng.uniform(size=len(X)) if weighted else np.ones(len(X))
    rows = ArrayRows(X, np.full(N_FEATURES, 0.3), sample_weight=weights if weighted else None)
    whitener, center = rng.normal(size=(N_FEATURES, N_FEATURES)), rng.normal(size=N_FEATURES)
    seen = (X - 0.3 - center) @ whitener.T
    expected = (weights[:, None] * seen).T @ seen
    found = rows.total_scatter.whitened(whitener, center)
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.filterwarnings("ignore:reg_covar=1e-06.*large for these data")
def test_a_needle_is_summed_and_the_haystack_gets_the_rest(rng):
    posterior, rows = state(*two_clusters(rng, share=0.1, distance=1.0, scale=1e-3), prior="flat")
    frame = PairFrame.if_accurate(rows, posterior)
    assert frame._order == (1, 0)
    moments, expected = (swept_by(way, rows, posterior)[1] for way in (frame, OwnFrames(posterior)))
    np.testing.assert_allclose(moments.second, expected.second, atol=1e-10 * np.abs(expected.second).max())
