"""Warnings name the line of the user's code, however deep inside the package they are made."""

import functools

import numpy as np
import pytest
from catalogue import MODELS, mixture, overlapping
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.caller_warnings import warn_caller


def test_a_direct_call_is_its_own_caller():
    with pytest.warns(DeprecationWarning, match="old") as caught:
        warn_caller("old", DeprecationWarning)
    assert caught[0].filename == __file__


def test_frames_of_decorators_are_passed_over():
    class Asked:
        @functools.cached_property
        def answer(self):
            warn_caller("rough")

    with pytest.warns(UserWarning, match="rough") as caught:
        Asked().answer
    assert caught[0].filename == __file__


@pytest.mark.parametrize("method", ["fit", "fit_predict"])
def test_of_a_fit(method):
    with pytest.warns(ConvergenceWarning) as caught:
        getattr(mixture(MODELS[0], max_iter=1), method)(overlapping())
    assert caught[0].filename == __file__


def test_of_a_leave_one_out_score():
    X = np.concatenate([overlapping(), [[30.0, 30.0], [31.0, 30.0], [30.0, 31.0]]])
    start = np.repeat(np.eye(2), [len(X) - 3, 3], axis=0)
    estimator = mixture({"prior": "flat"}, init_params=start, reg_covar=0.0).fit(X)
    with pytest.warns(UserWarning, match="3 of 243 rows cannot be left out") as caught:
        estimator.loo_score_samples(X)
    assert [warning.filename for warning in caught] == [__file__]


def test_of_a_pipeline_the_caller_is_scikit_learn():
    with pytest.warns(ConvergenceWarning) as caught:
        make_pipeline(LRVBGaussianMixture(n_components=2, max_iter=1, tol=0.0)).fit(overlapping())
    assert caught[0].filename.endswith("pipeline.py")
