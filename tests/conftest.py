"""What all tests share: one BLAS thread, and one seed."""

import gc

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sklearn_lrvb.row_blocks import array_rows


def pytest_collection_finish():
    # ten thousand tests are many objects, which the garbage collector would go through again and again
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread():
    # small products on a busy machine are far slower with more
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(autouse=True)
def _seeded():
    # estimators with random_state=None draw from this generator: no test is one run in a thousand
    np.random.seed(0)


@pytest.fixture(autouse=True)
def _threads_where_asked_for(monkeypatch):
    # products of the data of tests are too small for threads to pay
    monkeypatch.setattr(array_rows, "_LEAST_PRODUCT_FOR_THREADS", 0)
