"""What all tests share: one BLAS thread, and one seed."""

import gc

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sklearn_lrvb.rows import array_rows


def pytest_configure(config):
    # files in the order of their folders: of those with few tests, some are slow, and would keep one worker
    # busy at the end
    config.option.loadscopereorder = False


def pytest_collection_finish():
    # ten thousand tests are many objects, which the garbage collector would go through again and again
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread():
    # small products on a busy machine are far slower with more
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="session", autouse=True)
def _threads_where_asked_for():
    # products of the data of tests are too small for threads to pay
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_rows, "_LEAST_PRODUCT_FOR_THREADS", 0)
        yield


@pytest.fixture(autouse=True)
def _seeded():
    # estimators with random_state=None draw from this generator: no test is one run in a thousand
    np.random.seed(0)
