"""Rows on a Dask cluster of two processes: the same fit, whatever is lost on the way."""

import os
import signal

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, wait
from sklearn.base import clone

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.rows import dask_rows
from sklearn_lrvb.rows.dask_rows import DaskRows

N_ROWS, CHUNK_ROWS = 3000, 700
MIXTURE = LRVBGaussianMixture(n_components=3, random_state=0, tol=1e-9)


def cluster_of(n_workers, processes=True):
    return LocalCluster(
        n_workers=n_workers, processes=processes, threads_per_worker=1, dashboard_address=":0"
    )


@pytest.fixture(scope="module")
def without_a_cluster():
    """The fit to the same chunks in this process, and the fit to an array."""
    X = three_clusters()
    with dask.config.set(scheduler="synchronous"):
        return fitted_to(X), fitted_to(X.compute())


@pytest.fixture(scope="module")
def client(without_a_cluster):
    with cluster_of(2) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def on_workers(client):
    """Rows on the workers, and the fit to them; not to be changed."""
    X = persisted(three_clusters())
    return X, fitted_to(X)


@pytest.fixture(scope="module", autouse=True)
def one_task_a_chunk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_rows, "_GROUP_BYTES", 1)
        yield


@pytest.fixture
def after_pass(monkeypatch):
    """Function that has a callable called once, after a pass of some number."""

    def do(number, call):
        passed, left = DaskRows._passed, [number]

        def passed_and_called(rows):
            passed(rows)
            left[0] -= 1
            if left[0] == 0:
                call()

        monkeypatch.setattr(DaskRows, "_passed", passed_and_called)

    return do


def three_clusters(n_rows=N_ROWS):
    """Rows that are made where they are needed."""
    rng = da.random.default_rng(0)
    label = rng.integers(3, size=(n_rows, 1), chunks=(CHUNK_ROWS, 1))
    return rng.normal(size=(n_rows, 2), chunks=(CHUNK_ROWS, 2)) + label * np.array([2.5, -1.5])


def persisted(X):
    X = X.persist()
    wait(X)
    return X


def fitted_to(X, **parameters):
    return clone(MIXTURE).set_params(**parameters).fit(X)


def assert_same_bits(fit, other):
    for name in ("means_", "weights_", "covariances_", "posterior_covariance_", "lower_bounds_"):
        np.testing.assert_array_equal(getattr(fit, name), getattr(other, name), err_msg=name)


@pytest.mark.slow
def test_the_fit_is_that_of_one_process_and_of_one_array(on_workers, without_a_cluster):
    (local, array), (_, fit) = without_a_cluster, on_workers
    assert_same_bits(fit, local)
    assert np.all(np.abs(fit.posterior_mean_ - array.posterior_mean_) <= 1e-9 * array.posterior_std_)
    np.testing.assert_allclose(fit.posterior_std_, array.posterior_std_, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["predict_proba", "score_samples", "leverage", "influence"])
def test_results_for_rows_stay_on_the_workers(on_workers, method):
    X, mixture = on_workers
    found = getattr(mixture, method)(X)
    assert isinstance(found, da.Array)
    assert found.chunks[0] == X.chunks[0]
    on_workers = persisted(found)
    expected = getattr(mixture, method)(X.compute())
    np.testing.assert_allclose(on_workers.compute(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_clusters_of_rows_stay_on_the_workers(on_workers):
    (X, mixture), options = on_workers, {"n_draws": 20, "method": "lrvb", "random_state": 0}
    found, expected = (mixture.partition_posterior(rows, **options) for rows in (X, X.compute()))
    assert found.labels.chunks[0] == found.affinity.chunks[0] == X.chunks[0]
    np.testing.assert_array_equal(persisted(found.labels).compute(), expected.labels)
    np.testing.assert_allclose(found.affinity.compute(), expected.affinity, atol=1e-10)


@pytest.mark.slow
def test_a_killed_worker_costs_time_only(client, on_workers, after_pass):
    X, expected = on_workers
    processes = set(client.run(os.getpid).values())
    killed = min(processes)
    # Windows has no SIGKILL, and its SIGTERM asks no questions.
    after_pass(5, lambda: os.kill(killed, getattr(signal, "SIGKILL", signal.SIGTERM)))
    assert_same_bits(fitted_to(X), expected)
    client.wait_for_workers(2)
    assert killed not in client.run(os.getpid).values()


@pytest.mark.slow
def test_a_lost_cluster_is_an_error_that_leaves_the_estimator_as_it_was(after_pass):
    mixture = fitted_to(np.random.default_rng(0).normal(size=(50, 3)))
    before = dict(vars(mixture))
    with cluster_of(1, processes=False) as cluster, Client(cluster):
        X = persisted(three_clusters())
        after_pass(4, cluster.close)
        with pytest.raises(RuntimeError, match="The Dask cluster was lost in a pass over X"):
            mixture.fit(X)
    assert vars(mixture).keys() == before.keys()
    assert all(vars(mixture)[name] is value for name, value in before.items())
