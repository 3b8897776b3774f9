"""What all tests share: one BLAS thread, and one seed."""

import gc
import zlib
from collections import defaultdict

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sklearn_lrvb.rows import array_rows


def pytest_configure(config):
    # files in the order of their folders: of those with few tests, some are slow, and would keep one worker
    # busy at the end
    config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    # A test that runs over models or covariance types is fast for two cases, which the names of the cases
    # decide: hundreds of such tests then meet all pairs of options, and the same ones in every run. A test
    # marked `all_cases` is fast for all.
    cases = defaultdict(list)
    for item in items:
        arguments = item.callspec.params if hasattr(item, "callspec") else ()
        is_over_models = "model" in arguments or "covariance_type" in arguments
        if is_over_models and not item.get_closest_marker("all_cases"):
            cases[item.path, item.originalname].append(item)
    for of_test in cases.values():
        for item in sorted(of_test, key=lambda item: zlib.crc32(item.name.encode()))[2:]:
            item.add_marker(pytest.mark.slow)


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
