"""DecidingRowsDisplay: what the line, the points and the ring show."""

import numpy as np
import pytest
from catalogue import fitted, overlapping

from sklearn_lrvb.displays import DecidingRowsDisplay

X = overlapping()
APART = "mean[1,x0] - mean[0,x0]"


@pytest.mark.slow
def test_the_search_is_drawn():
    estimator = fitted({})
    threshold = estimator.means_[1, 0] - estimator.means_[0, 0] - 0.2
    drawn = DecidingRowsDisplay.from_estimator(estimator, X, APART, threshold=threshold)
    found = drawn.result
    np.testing.assert_array_equal(drawn.points_.get_xydata()[0], [0, found.value])
    np.testing.assert_array_equal(drawn.points_.get_xydata()[1:], found.path)
    np.testing.assert_array_equal(drawn.first_order_.get_ydata(), found.first_order_path)
    np.testing.assert_array_equal(drawn.threshold_.get_ydata(), [threshold, threshold])
    np.testing.assert_array_equal(drawn.ring_.get_xydata()[0], [len(found.rows), found.confirmed])
    assert drawn.ax_.get_xlabel() == "rows left out, of 240"
    assert drawn.ax_.get_ylabel() == APART
    again = DecidingRowsDisplay.from_result(found, ax=drawn.ax_)
    assert again.result is found and again.ax_ is drawn.ax_


def test_without_an_answer_nothing_is_ringed():
    drawn = DecidingRowsDisplay.from_estimator(
        fitted({}), X, APART, threshold=-9.0, groups=np.arange(240) // 4, max_share=0.03
    )
    assert drawn.ring_ is None and len(drawn.points_.get_xdata()) > 1
    assert drawn.ax_.get_xlabel() == "groups left out, of 60"


def test_a_single_row_is_one_row():
    estimator = fitted({})
    drawn = DecidingRowsDisplay.from_estimator(
        estimator, X, "weight[0]", threshold=estimator.weights_[0] - 1e-4
    )
    assert [text.get_text() for text in drawn.ax_.texts] == ["1 row"]
