"""The three states of a verdict, at the edges between them."""

import numpy as np
import pytest

from sklearn_lrvb.verdict import Verdict


@pytest.mark.parametrize(
    ("shift", "variance", "state"),
    [
        (0.0, 0.0, "good"),
        (0.08, 0.07, "good"),
        (0.09, 0.0, "rough"),
        (0.0, 0.08, "rough"),
        (0.2, 0.3, "rough"),
        (0.21, 0.0, "wrong"),
        (0.0, 0.31, "wrong"),
        (np.nan, 0.0, "wrong"),
        (0.0, np.nan, "wrong"),
    ],
)
def test_states(shift, variance, state):
    verdict = Verdict(shift, variance)
    assert verdict.state == state
    assert state in verdict.sentence
