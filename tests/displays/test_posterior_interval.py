"""Intervals: the ends are those of the posterior summary, and each is in its panel and row."""

import numpy as np
import pandas as pd
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    TARGETS,
    assert_equal_to_rounding,
    fitted,
    mixture,
    overlapping,
    three_blobs,
)
from matplotlib import pyplot as plt
from scipy.special import ndtri

from sklearn_lrvb.displays import PosteriorIntervalDisplay

each_covariance_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
X = overlapping()
COINCIDENT = {
    "weight_concentration_prior_type": "dirichlet_distribution",
    "solver": "coordinate_ascent",
    "init_params": lambda X, n_components, _: np.full((len(X), n_components), 1.0 / n_components),
}


def of_type(covariance_type):
    return fitted({"covariance_type": covariance_type})


def drawn_segments(display, method):
    """Ends and heights of the intervals of each panel, (panels, rows, 3): left, right, height."""
    found = []
    for lines in display.intervals_[method]:
        segments = np.array(lines.get_segments())
        np.testing.assert_array_equal(segments[:, 0, 1], segments[:, 1, 1])
        found.append(np.column_stack([segments[:, :, 0], segments[:, 0, 1]]))
    return np.array(found)


def both(estimator):
    return [estimator.posterior(method=method) for method in ("lrvb", "mean_field")]


@pytest.mark.slow
@each_covariance_type
@pytest.mark.parametrize("target", TARGETS)
def test_the_ends_are_those_of_the_summary(covariance_type, target):
    estimator = of_type(covariance_type)
    summary = estimator.posterior(method="lrvb").summary(target, interval=0.8)
    display = PosteriorIntervalDisplay.from_estimator(estimator, both(estimator), target=target, interval=0.8)
    assert sorted(display.names) == sorted(summary.index)
    own = summary.loc[display.names]
    np.testing.assert_array_equal(display.lower["lrvb"], own["lower"])
    np.testing.assert_array_equal(display.upper["lrvb"], own["upper"])
    np.testing.assert_array_equal(display.mean["lrvb"], own["mean"])
    for method, side in (("lrvb", -1), ("mean_field", 1)):
        drawn = drawn_segments(display, method).reshape(-1, 3)
        expected = np.column_stack([display.lower[method], display.upper[method]])
        np.testing.assert_array_equal(drawn[:, :2], expected)
        assert np.all(side * (drawn[:, 2] - np.round(drawn[:, 2])) > 0)  # the one above, the other beneath
        means = np.concatenate([points.get_xdata() for points in display.points_[method]])
        np.testing.assert_array_equal(means, display.mean[method])


@pytest.mark.slow
def test_mean_field_intervals_are_those_of_q():
    estimator = of_type("full")
    display = estimator.posterior(method="lrvb").plot(target="means", interval=0.5)
    variances = np.diag(estimator.posterior(method="mean_field").covariance("means"))
    half = ndtri(0.75) * np.sqrt(variances).reshape(2, 2).T.ravel()  # by feature, then by component
    means = estimator.means_.T.ravel()
    np.testing.assert_allclose(display.lower["mean_field"], means - half, rtol=1e-9)
    np.testing.assert_allclose(display.upper["mean_field"], means + half, rtol=1e-9)


@pytest.mark.slow
def test_there_is_a_panel_for_each_feature_and_a_row_for_each_component():
    names = ["length", "width_of_the_very_long_kind", "height"]
    rows = pd.DataFrame(three_blobs(), columns=names)
    estimator = mixture({}, n_components=3).fit(rows)
    display = PosteriorIntervalDisplay.from_estimator(
        estimator,
        both(estimator),
        components=[2, 0],
        features=["height", 0, "width_of_the_very_long_kind"],
    )
    labels = [panel.get_xlabel().replace("\n", "") for panel in display.axes_.flat]
    assert labels == ["height", "length", "width_of_the_very_long_kind"]
    assert display.names.tolist() == [f"mean[{k},{name}]" for name in labels for k in (2, 0)]
    leading = display.axes_[0, 0]
    assert [text.get_text() for text in leading.get_yticklabels()] == ["2", "0"]
    assert leading.get_ylim()[0] > leading.get_ylim()[1]  # from top to bottom
    summary = estimator.posterior(method="lrvb").summary("means")
    segments = drawn_segments(display, "lrvb")
    for panel, name in enumerate(labels):
        for row, k in enumerate((2, 0)):
            low, high, height = segments[panel, row]
            assert (low, high) == tuple(summary.loc[f"mean[{k},{name}]", ["lower", "upper"]])
            assert round(height) == row


@pytest.mark.slow
def test_entries_off_the_diagonal_are_named():
    estimator = of_type("full")
    display = PosteriorIntervalDisplay.from_estimator(
        estimator, target="covariances", features=[("x1", 0), "x1"]
    )
    assert [panel.get_xlabel() for panel in display.axes_.flat] == ["x0, x1", "x1"]
    assert display.names.tolist() == [
        f"covariance[{k},{entry}]" for entry in ("x0,x1", "x1,x1") for k in range(2)
    ]
    tied = PosteriorIntervalDisplay.from_estimator(of_type("tied"), target="precisions")
    assert tied.names.tolist() == ["precision[x0,x0]", "precision[x0,x1]", "precision[x1,x1]"]
    assert set(tied.components) == {"all"}
    spherical = PosteriorIntervalDisplay.from_estimator(
        of_type("spherical"), target="precisions", features=[1]
    )
    assert spherical.ax_.get_xlabel() == "precision"
    assert spherical.names.tolist() == ["precision[0]", "precision[1]"]


@pytest.mark.slow
def test_panels_of_several_targets_name_them():
    display = PosteriorIntervalDisplay.from_estimator(
        of_type("full"), target=["weights", "means"], features=[1]
    )
    assert [panel.get_xlabel() for panel in display.axes_.flat] == ["weight", "mean of x1"]
    title = display.legend_.get_title().get_text().replace("\n", " ")
    assert title == f"95 % intervals of weights, means. {display.note}"
    assert display.note.startswith("Linear response is good")


@pytest.mark.slow
def test_panels_have_their_own_scales():
    units = np.array([1e-4, 1e5])
    display = mixture({"reg_covar": 0.0}).fit(X * units).posterior(method="lrvb").plot()
    for panel, segments in zip(display.axes_.flat, drawn_segments(display, "lrvb"), strict=True):
        extent = segments[:, 1].max() - segments[:, 0].min()
        assert 1.0 < np.ptp(panel.get_xlim()) / extent < 1.5


@pytest.mark.slow
def test_empty_components_are_left_out_unless_they_are_named():
    estimator = mixture({}, n_components=5).fit(X)
    holding = [str(k) for k in np.flatnonzero(estimator.weights_ * len(X) > 1.0)]
    assert 2 <= len(holding) < 5
    empty, draw = min(set("01234") - set(holding)), estimator.posterior(method="lrvb").plot
    assert draw(target="weights").components.tolist() == holding
    assert draw(target="weights", min_count=0.0).components.tolist() == list("01234")
    named = draw(target="weights", components=[int(empty)])
    assert named.components.tolist() == [empty]


def test_a_reference_is_drawn_beneath():
    estimator = of_type("full")
    ends = np.array([[-1.0, 1.0], [-2.0, 2.0], [-3.0, 3.0], [-4.0, 4.0]])  # of mean[0,x0], mean[0,x1], ...
    display = estimator.posterior(method="lrvb").plot(features=[1], reference=ends)
    (drawn,) = drawn_segments(display, "reference")
    np.testing.assert_array_equal(drawn[:, :2], ends[[1, 3]])
    assert np.all(drawn[:, 2] > drawn_segments(display, "mean_field")[0, :, 2])
    assert [text.get_text() for text in display.legend_.get_texts()] == ["LRVB", "mean field", "reference"]


@pytest.mark.slow
def test_the_training_rows_may_be_passed():
    ask = of_type("full").posterior
    with_rows, without = (
        ask(rows, method="lrvb").plot(target=["means", "covariances"]) for rows in (X, None)
    )
    for method in ("lrvb", "mean_field"):
        assert_equal_to_rounding(with_rows.lower[method], without.lower[method])
    for rows, weights in ((X + 1.0, None), (X, np.full(len(X), 2.0))):
        with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
            ask(rows, sample_weight=weights)


@pytest.mark.slow
def test_mean_field_alone_needs_no_strict_optimum():
    estimator = mixture(COINCIDENT).fit(X)
    with pytest.raises(ValueError, match="no strict local optimum"):
        PosteriorIntervalDisplay.from_estimator(estimator)
    display = estimator.posterior(method="mean_field").plot()
    assert list(display.intervals_) == ["mean_field"]


def test_means_that_do_not_exist_are_not_drawn():
    ends = {"lrvb": np.array([1.0, 2.0])}, {"lrvb": np.array([3.0, 4.0])}
    display = PosteriorIntervalDisplay(
        lower=ends[0],
        upper=ends[1],
        mean={"lrvb": np.array([np.inf, 3.0])},
        names=np.array(["a", "b"]),
        panels=np.array(["x", "x"]),
        components=np.array(["0", "1"]),
    ).plot()
    display.figure_.canvas.draw()
    assert display.ax_.get_xlim()[1] < 5.0


def test_intervals_without_end_reach_the_edge_of_their_panel():
    display = PosteriorIntervalDisplay(
        lower={"lrvb": np.array([1.0, -np.inf, 2.0])},
        upper={"lrvb": np.array([np.inf, np.inf, 4.0])},
        mean={"lrvb": np.array([3.0, 0.5, 3.0])},
        names=np.array(["a", "b", "c"]),
        panels=np.array(["x", "y", "z"]),
        components=np.array(["0", "0", "0"]),
    ).plot()
    segments = [lines.get_segments()[0][:, 0] for lines in display.intervals_["lrvb"]]
    edges = [panel.get_xlim() for panel in display.axes_.flat]
    assert segments[0][0] == 1.0 and segments[0][1] == edges[0][1] > 3.0
    np.testing.assert_array_equal(segments[1], edges[1])
    np.testing.assert_array_equal(segments[2], [2.0, 4.0])
    assert edges[2][0] < 2.0 and edges[2][1] > 4.0


def test_options_reach_the_intervals():
    display = PosteriorIntervalDisplay.from_estimator(of_type("full"), target="weights", linewidth=7.0)
    for lines in display.intervals_.values():
        np.testing.assert_array_equal(lines[0].get_linewidths(), [7.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "mean"}, "target must be one of log_weights, means"),
        ({"interval": 95}, "interval must be a probability above 0 and below 1, such as 0.95, got 95"),
        ({"posterior": "lrvb"}, r"posterior must be what the estimator's posterior\(\) returns, .* got str"),
        ({"posterior": X}, r"with rows X posterior\(X\), got ndarray"),
        ({"posterior": []}, "posterior must list one or more"),
        ({"posterior": [None, None]}, "posteriors by different methods, got "),
        ({"components": [2]}, r"different integers from 0 to 1, got \[2\]"),
        ({"components": 1}, "components must be a list"),
        ({"components": [1, 1]}, "components must be a list of different"),
        ({"features": "x0"}, "features must be a list of features, or None for all, got 'x0'"),
        ({"features": []}, "features must be a list"),
        ({"features": ["x2"]}, r"from 0 to 1 or a name \(x0, x1\), got 'x2'"),
        ({"features": [(0, 1)]}, "feature must be one feature for target='means'"),
        ({"min_count": -1.0}, "min_count must be a number of rows, at least 0"),
        ({"min_count": 1000.0}, "No component has 1000 expected rows, the largest has 1"),
        (
            {"reference": np.ones((5, 2))},
            r"of target='means', shape \(4, 2\), got an array of shape \(5, 2\)",
        ),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PosteriorIntervalDisplay.from_estimator(of_type("full"), **options)
    assert not plt.get_fignums()


@pytest.mark.slow
def test_too_many_panels_are_refused():
    rows = np.random.default_rng(0).normal(size=(130, 101))
    estimator = mixture({"covariance_type": "diag"}, n_components=1).fit(rows)
    with pytest.raises(ValueError, match=r"would have 101 panels.*\(a\) Choose some by features"):
        PosteriorIntervalDisplay.from_estimator(estimator)
    display = PosteriorIntervalDisplay.from_estimator(estimator, features=range(98, 101))
    assert display.axes_.shape == (1, 3)


@pytest.mark.slow
def test_the_legend_is_above_the_panels_and_leaves_them_alone():
    on_grid = plt.figure(figsize=(9, 5)).subplots(1, 2)[1]
    for ax in (None, on_grid):
        display = PosteriorIntervalDisplay.from_estimator(of_type("full"), ax=ax)
        display.figure_.canvas.draw()
        panels = [panel.get_window_extent() for panel in display.axes_.flat]
        assert panels[0].width == pytest.approx(panels[1].width, rel=1e-6)
        legend = display.legend_.get_window_extent()
        assert legend.y0 >= max(panel.y1 for panel in panels)
        assert legend.y1 <= display.figure_.bbox.y1


@pytest.mark.slow
def test_labels_of_ticks_have_room_in_any_units():
    # Many panels, long names, and numbers that are very small, very large, or nearly the same.
    names = ["concentration of ozone (ppm)", "price in euros", "year"]
    rows = three_blobs(90) * [1e-6, 3e7, 1.0] + [0.0, 0.0, 2000.0]
    estimator = mixture({"reg_covar": 0.0}, n_components=3).fit(pd.DataFrame(rows, columns=names))
    display = estimator.posterior(method="lrvb").plot(target="all")
    display.figure_.canvas.draw()
    assert display.axes_.size >= 10
    for row in display.axes_:
        boxes = []
        for panel in filter(None, row):
            low, high = panel.get_xlim()
            ticks = zip(panel.get_xticks(), panel.get_xticklabels(), strict=True)
            shown = [label for place, label in ticks if low <= place <= high]
            assert shown and not panel.xaxis.offsetText.get_visible()
            boxes += [label.get_window_extent() for label in [*shown, panel.xaxis.label]]
        assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    means = {panel.get_xlabel().replace("\n", " "): panel for panel in display.axes_.flat if panel}
    assert "mean of concentration of ozone (ppm) (\N{MULTIPLICATION SIGN} 1e\N{MINUS SIGN}6)" in means


@pytest.mark.slow
@each_covariance_type
def test_exact_intervals_are_those_of_the_exact_summary(covariance_type):
    rows = overlapping(400)
    estimator = mixture({"covariance_type": covariance_type}).fit(rows)
    summary = estimator.posterior(method="exact", random_state=0).summary(["means", "weights"])
    posteriors = [estimator.posterior(method=method) for method in ("lrvb", "exact")]
    display = PosteriorIntervalDisplay.from_estimator(estimator, posteriors, target=["means", "weights"])
    own = summary.loc[display.names]
    np.testing.assert_array_equal(display.lower["exact"], own["lower"])
    np.testing.assert_array_equal(display.upper["exact"], own["upper"])
    np.testing.assert_array_equal(display.mean["exact"], own["mean"])
    assert "by LRVB and exact" in repr(display)
    assert summary.attrs["note"] in repr(display)
    by_itself = PosteriorIntervalDisplay.from_estimator(estimator, target=["means", "weights"])
    state = estimator.posterior_check(rows, random_state=0).state
    assert list(by_itself.lower) == ["lrvb" if state == "good" else "exact", "mean_field"]
    plt.close("all")


@pytest.mark.slow
def test_noise_has_a_row_where_there_are_weights():
    estimator = mixture({}, noise=True).fit(overlapping())
    draw = estimator.posterior(method="lrvb").plot
    display = draw(target=["weights", "means"])
    assert [text.get_text() for text in display.axes_.flat[0].get_yticklabels()] == ["0", "1", "noise"]
    assert [text.get_text() for text in display.axes_.flat[1].get_yticklabels()] == ["0", "1"]
    place = display.names.tolist().index("weight[noise]")
    assert display.mean["lrvb"][place] == estimator.noise_weight_
    chosen = draw(target="weights", components=[1])
    assert chosen.names.tolist() == ["weight[1]"]
