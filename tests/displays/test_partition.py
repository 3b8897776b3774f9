"""PartitionDisplay: what the matrix and its lines show."""

import numpy as np
import pytest
from catalogue import fitted, mixture, overlapping

from sklearn_lrvb.displays import PartitionDisplay

X = overlapping()
OPTIONS = {"n_draws": 40, "method": "lrvb", "random_state": 0}


@pytest.mark.slow
def test_rows_are_in_clusters_the_most_certain_first():
    drawn = PartitionDisplay.from_estimator(fitted({}), X, **OPTIONS)
    result, rows = drawn.result, drawn.rows_
    assert sorted(rows) == list(range(240))
    labels, certainty = result.labels[rows], result.certainty[rows]
    assert np.all(np.diff(labels) >= 0)
    assert np.all(np.diff(certainty)[np.diff(labels) == 0] <= 0)
    np.testing.assert_array_equal(drawn.image_.get_array(), result.coclustering(rows))
    edge = np.sum(labels == 0) - 0.5
    vertical, horizontal = drawn.boundaries_
    assert vertical.get_xdata() == [edge, edge] and horizontal.get_ydata() == [edge, edge]
    assert [tick.get_text() for tick in drawn.ax_.get_xticklabels()] == ["0", "1"]
    assert drawn.ax_.get_xlabel() == "rows by cluster, 240 of 240"
    again = PartitionDisplay.from_result(result, ax=drawn.ax_, cmap="Greys", vmax=0.5)
    assert again.image_.get_cmap().name == "Greys" and again.image_.get_clim() == (0.0, 0.5)


@pytest.mark.slow
def test_of_many_rows_some_are_drawn_and_small_clusters_have_no_number():
    rows = np.concatenate([overlapping(900), 100.0 + overlapping(12)])
    drawn = PartitionDisplay.from_estimator(mixture({}, 2).fit(rows), rows, max_rows=800, **OPTIONS)
    assert drawn.result.cluster_sizes[1] < 20
    assert 200 <= len(drawn.rows_) <= 300 and np.isin(drawn.rows_, drawn.result.sampled_rows).all()
    assert drawn.image_.get_array().shape == (len(drawn.rows_),) * 2
    assert len(drawn.boundaries_) == 2
    assert [tick.get_text() for tick in drawn.ax_.get_yticklabels()] == ["0"]
