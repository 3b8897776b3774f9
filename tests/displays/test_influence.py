"""Influence: which entry it is of, colours, landscapes and their scale."""

import numpy as np
import pandas as pd
import polars as pl
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
from covariance_types import TYPES

from sklearn_lrvb.displays import ComponentDisplay, InfluenceDisplay, PosteriorStdDisplay
from sklearn_lrvb.displays.selection import parameter_entry

each_covariance_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
X = overlapping()


def of_type(covariance_type):
    return fitted({"covariance_type": covariance_type})


# Influence: which entry.


@each_covariance_type
def test_names_and_places_of_entries_are_those_of_the_posterior(covariance_type):
    estimator = of_type(covariance_type)
    attributes = {
        "log_weights": estimator.posterior_mean_[:2],
        "means": estimator.means_,
        "precisions": estimator.precisions_,
    }
    mean = dict(zip(estimator.posterior_names_, estimator.posterior_mean_, strict=True))
    names = set()
    off_diagonal = [(0, 1), (1, 0)] if TYPES[covariance_type].is_matrix else []
    for target, attribute in attributes.items():
        for component in range(2):
            for feature in [0, 1, *(off_diagonal if target == "precisions" else [])]:
                index, name = parameter_entry(estimator, target, component, feature)
                assert attribute[index] == mean[name]
                names.add(name)
    assert names == set(mean)
    for feature in [(0, 0), *off_diagonal, 1]:
        of_precision = parameter_entry(estimator, "precisions", 1, feature)
        index, name = parameter_entry(estimator, "covariances", 1, feature)
        assert (index, name.replace("covariance", "precision")) == of_precision
    assert parameter_entry(estimator, "weights", 1, 0) == ((1,), "weight[1]")


@pytest.mark.parametrize(
    ("covariance_type", "options", "message"),
    [
        ("full", {"target": "mean"}, "target must be one of log_weights, means"),
        ("full", {"component": 2}, "component must be an integer from 0 to 1, got 2"),
        ("full", {"component": -1}, "component must be an integer from 0 to 1, got -1"),
        ("full", {"component": 0.0}, "component must be an integer"),
        ("full", {"feature": 2}, "feature must be an integer from 0 to 1 or a name .*, got 2"),
        ("full", {"feature": "x2"}, r"from 0 to 1 or a name \(x0, x1\), got 'x2'"),
        ("full", {"feature": (0, 1)}, "feature must be one feature for target='means'"),
        ("full", {"target": "weights", "feature": (0, 1)}, "one feature for target='weights'"),
        ("full", {"target": "precisions", "feature": (0, 2)}, r", or a pair of such, got \(0, 2\)"),
        ("tied", {"target": "precisions", "feature": (0,)}, r", or a pair of such, got \(0,\)"),
        ("diag", {"target": "covariances", "feature": (0, 1)}, "no entries off the diagonal"),
        ("spherical", {"target": "precisions", "feature": (1, 0)}, "no entries off the diagonal"),
        ("full", {"along": 2}, "along must be an integer from 0 to 1 or a name .*, got 2"),
        ("full", {"kind": "surface"}, "kind must be 'points' or 'landscape', got 'surface'"),
        ("full", {"perturb": "label"}, "perturb must be 'location' or 'weight', got 'label'"),
        ("full", {"perturb": "weight", "along": 0}, "leave it out with perturb='weight'"),
        (
            "full",
            {"kind": "landscape", "grid_resolution": 1},
            "grid_resolution must be an integer, at least 2",
        ),
        ("full", {"kind": "landscape", "grid_resolution": 9.5}, "at least 2, got 9.5"),
        ("full", {"vmax": 0.0}, "vmax must be positive and finite, got 0.0"),
        ("full", {"vmax": np.inf}, "vmax must be positive and finite, got inf"),
        ("full", {"vmax": "1"}, "vmax must be positive and finite, got '1'"),
    ],
)
def test_bad_options_are_refused(covariance_type, options, message):
    with pytest.raises(ValueError, match=message):
        InfluenceDisplay.from_estimator(of_type(covariance_type), X, **options)


def test_a_landscape_is_over_all_features():
    rows = three_blobs()
    estimator = mixture({}, n_components=2).fit(rows)
    with pytest.raises(ValueError, match="but the mixture has 3 features and 2 of them span the plot"):
        InfluenceDisplay.from_estimator(estimator, rows, kind="landscape")
    with pytest.raises(ValueError, match="but the mixture has 2 features and 1 of them span the plot"):
        InfluenceDisplay.from_estimator(of_type("full"), X, kind="landscape", features=[0])


# Influence: what is drawn.


@each_covariance_type
@pytest.mark.parametrize("target", TARGETS)
def test_points_have_the_colours_of_their_influence(covariance_type, target):
    estimator = of_type(covariance_type)
    display = InfluenceDisplay.from_estimator(
        estimator, X, target=target, component=1, feature=1, along=0, features=(1, 0)
    )
    index, name = parameter_entry(estimator, target, 1, 1)
    expected = estimator.influence(X, target=target)[:, *index, 0]
    assert_equal_to_rounding(display.influence, expected)
    assert display.label == f"change of {name} per unit of x0"
    assert display.colorbar_.ax.get_ylabel() == display.label
    colours = display.points_.get_array()
    assert np.all(np.diff(np.abs(colours)) >= 0)  # the largest on top
    drawn = np.column_stack([display.points_.get_offsets(), colours])
    expected = np.column_stack([X[:, ::-1], expected])
    assert_equal_to_rounding(drawn[np.lexsort(drawn.T)], expected[np.lexsort(expected.T)])


def test_points_move_in_their_own_feature_if_none_is_named():
    estimator = of_type("full")
    display = InfluenceDisplay.from_estimator(estimator, X, component=1, feature=1)
    assert_equal_to_rounding(display.influence, estimator.influence(X)[:, 1, 1, 1])
    display = InfluenceDisplay.from_estimator(estimator, X, target="covariances", feature=(1, 0))
    assert_equal_to_rounding(display.influence, estimator.influence(X, target="covariances")[:, 0, 0, 1, 1])
    assert display.label == "change of covariance[0,x0,x1] per unit of x1"


@each_covariance_type
@pytest.mark.parametrize("features", [(0, 1), (1, 0)])
def test_a_landscape_is_the_influence_at_its_grid(covariance_type, features):
    estimator = of_type(covariance_type)
    display = InfluenceDisplay.from_estimator(
        estimator, X, kind="landscape", along=1, features=features, grid_resolution=30
    )
    assert display.landscape.shape == display.xx0.shape == display.xx1.shape == (30, 30)
    grid = dict(zip(features, (display.xx0, display.xx1), strict=True))
    for i, j in ((0, 0), (3, 20), (29, 5), (15, 15)):
        at = estimator.influence([[grid[0][i, j], grid[1][i, j]]])[0, 0, 0, 1]
        assert display.landscape[i, j] == pytest.approx(at, rel=1e-9)
    low, high = display.ax_.dataLim.min, display.ax_.dataLim.max
    assert np.all(low < X[:, features].min(axis=0))
    assert np.all(X[:, features].max(axis=0) < high)
    order = np.argsort(np.abs(display.influence), kind="stable")
    np.testing.assert_array_equal(display.points_.get_offsets(), X[order][:, features])
    assert display.landscape.min() < 0 < display.landscape.max()
    np.testing.assert_array_equal(display.zero_line_.levels, [0.0])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1e-7, 3e5])
def test_the_scale_is_symmetric_and_shows_all_but_the_tails(scale):
    estimator = mixture({"reg_covar": 0.0}).fit(scale * X)
    points = InfluenceDisplay.from_estimator(estimator, scale * X)
    landscape = InfluenceDisplay.from_estimator(estimator, scale * X, kind="landscape", grid_resolution=20)
    size = np.abs(points.influence)
    low, high = points.points_.get_clim()
    assert low == -high
    assert np.quantile(size, 0.95) < high < min(size.max(), 1.5 * np.quantile(size, 0.95))
    levels = landscape.landscape_.levels
    np.testing.assert_allclose(levels, -levels[::-1], rtol=1e-12)
    # zero is in the middle of a band, and the outermost bands are around the ends of the points' scale
    step = levels[1] - levels[0]
    assert np.abs(levels).min() == pytest.approx(step / 2, rel=1e-9, abs=0)
    assert levels[-1] - step / 2 == pytest.approx(high, rel=1e-9, abs=0)
    given = points.plot(vmax=0.9 * size.max())
    assert 0.9 * size.max() <= given.points_.get_clim()[1] < 1.3 * size.max()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outliers", "extend"),
    [((0.0, 0.0), "neither"), ((-9.0, 0.0), "min"), ((0.0, 9.0), "max"), ((-9.0, 9.0), "both")],
)
def test_the_colour_bars_arrows_are_where_there_is_more(outliers, extend):
    grid = np.linspace(-1.0, 1.0, 20)
    xx0, xx1 = np.meshgrid(grid, grid)
    influence = np.linspace(-1.0, 1.0, len(X))
    landscape = xx0.copy()
    influence[:2] = landscape[0, :2] = outliers
    points = InfluenceDisplay(points=X, influence=influence, label="influence").plot()
    assert points.colorbar_.extend == extend
    plane = InfluenceDisplay(
        points=X,
        influence=np.linspace(-1.0, 1.0, len(X)),
        label="influence",
        xx0=xx0,
        xx1=xx1,
        landscape=landscape,
    ).plot()
    assert plane.colorbar_.extend == extend


def test_a_plateau_lies_within_the_scale_and_has_no_zero_line():
    # one component's mean moves by 1 / tau with every point
    estimator = fitted({}, n_components=1)
    display = InfluenceDisplay.from_estimator(estimator, X, kind="landscape", grid_resolution=10)
    np.testing.assert_allclose(display.landscape, 1 / estimator.mean_precision_[0], rtol=1e-9)
    assert display.zero_line_ is None
    assert display.colorbar_.extend == "neither"


def test_no_influence_is_drawn_as_such():
    nothing = InfluenceDisplay(points=X[:5], influence=np.zeros(5), label="nothing").plot()
    low, high = nothing.points_.get_clim()
    assert low == -high < 0
    assert nothing.colorbar_.extend == "neither"
    rare = InfluenceDisplay(
        points=X, influence=np.where(np.arange(len(X)) == 0, 3.0, 0.0), label="rare"
    ).plot()
    assert 3.0 <= rare.points_.get_clim()[1] <= 5.0


@pytest.mark.slow
@pytest.mark.parametrize("frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)])
def test_data_frames_bring_their_names(frame):
    rows = frame(X, columns=["a rather long name", "b"])
    estimator = mixture({}).fit(rows)
    display = InfluenceDisplay.from_estimator(
        estimator, rows, target="precisions", kind="landscape", features=(1, 0), grid_resolution=7
    )
    assert (
        display.label
        == "change of precision[0,a rather long name,a rather long name] per unit of a rather long name"
    )
    assert display.colorbar_.ax.get_ylabel().replace("\n", " ") == display.label  # it is long
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("b", "a rather long name")
    plain = InfluenceDisplay.from_estimator(
        mixture({}).fit(X), X, target="precisions", kind="landscape", features=(1, 0), grid_resolution=7
    )
    np.testing.assert_allclose(display.landscape, plain.landscape, rtol=1e-12)
    display = ComponentDisplay.from_estimator(estimator, rows)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("a rather long name", "b")
    np.testing.assert_array_equal(display.points, X)


def test_options_reach_the_artists():
    display = InfluenceDisplay.from_estimator(
        of_type("full"),
        X,
        kind="landscape",
        grid_resolution=10,
        cmap="PuOr",
        scatter_kw={"s": 3.0},
        contour_kw={"alpha": 0.5},
    )
    assert display.landscape_.get_cmap().name == "PuOr"
    assert display.landscape_.get_alpha() == 0.5
    np.testing.assert_array_equal(display.points_.get_sizes(), [3.0])
    std = PosteriorStdDisplay.from_estimator(of_type("full"), target="means", s=3.0)
    np.testing.assert_array_equal(std.mean_field_points_["means"].get_sizes(), [3.0])


# Influence of weights.


@each_covariance_type
@pytest.mark.parametrize("target", TARGETS)
def test_weight_influence_at_points(covariance_type, target):
    estimator = of_type(covariance_type)
    display = InfluenceDisplay.from_estimator(
        estimator, X, target=target, component=1, feature=1, perturb="weight"
    )
    index, name = parameter_entry(estimator, target, 1, 1)
    expected = estimator.influence(X, target=target, perturb="weight")[:, *index]
    assert_equal_to_rounding(display.influence, expected)
    assert display.label == f"change of {name} per copy of the row"


@pytest.mark.slow
@each_covariance_type
def test_the_slope_of_the_weights_landscape_is_the_locations(covariance_type):
    estimator = of_type(covariance_type)
    step = 1e-4
    shifts = step * np.array([[0.0, 1.0], [0.0, -1.0]])
    up, down = (
        InfluenceDisplay.from_estimator(estimator, X + shift, target="covariances", perturb="weight")
        for shift in shifts
    )
    along = InfluenceDisplay.from_estimator(estimator, X, target="covariances", along=1)
    slope = (up.influence - down.influence) / (2 * step)
    np.testing.assert_allclose(slope, along.influence, atol=1e-6 * np.abs(along.influence).max())
    landscape = InfluenceDisplay.from_estimator(
        estimator, X, target="covariances", perturb="weight", kind="landscape", grid_resolution=9
    )
    rows = np.column_stack([landscape.xx0.ravel(), landscape.xx1.ravel()])
    expected = estimator.influence(rows, target="covariances", perturb="weight").reshape(81, -1)[:, 0]
    np.testing.assert_allclose(landscape.landscape.ravel(), expected, rtol=1e-12)


# Legible without colours.


def test_markers_point_up_or_down_with_the_sign():
    display = InfluenceDisplay.from_estimator(of_type("full"), X)
    influence = display.points_.get_array()
    assert (influence < 0).any()
    assert (influence > 0).any()
    for value, path in zip(influence, display.points_.get_paths(), strict=True):
        tip = path.vertices[0, 1]
        assert tip == pytest.approx(-0.5 if value < 0 else 0.5)
    assert "negative" in display.colorbar_.ax.get_xlabel()
    round_ones = display.plot(scatter_kw={"marker": "o"})
    assert len(round_ones.points_.get_paths()) == 1
    assert not round_ones.colorbar_.ax.get_xlabel()


def test_the_features_span_a_plane():
    for features in [(0, 2), (0, 0), (0, -1), 0, (0, 1, 1), ("x0", "x2"), (True, 0)]:
        with pytest.raises(ValueError, match="features must be one or two different columns of the 2"):
            InfluenceDisplay.from_estimator(of_type("full"), X, features=features)


def test_features_by_name_are_those_by_number():
    rows = pd.DataFrame(three_blobs(), columns=["a", "b", "c"])
    estimator = mixture({}, n_components=3).fit(rows)
    by_name = InfluenceDisplay.from_estimator(
        estimator, rows, target="precisions", feature=("c", "a"), along="b", features=("b", "c")
    )
    by_number = InfluenceDisplay.from_estimator(
        estimator, rows, target="precisions", feature=(2, 0), along=1, features=(1, 2)
    )
    assert by_name.label == by_number.label == "change of precision[0,a,c] per unit of b"
    np.testing.assert_array_equal(by_name.influence, by_number.influence)
    np.testing.assert_array_equal(by_name.points, by_number.points)
    assert by_name.xlabel == "b"


@pytest.mark.slow
def test_long_names_are_broken_between_words_and_fit_beside_their_axes():
    long = "average_monthly_electricity_consumption_per_household_in_euros per square metre"
    rows = pd.DataFrame(X, columns=[long, f"{long} (b)"])
    estimator = mixture({}).fit(rows)
    for display in (
        ComponentDisplay.from_estimator(estimator, rows),
        InfluenceDisplay.from_estimator(estimator, rows),
        InfluenceDisplay.from_estimator(estimator, rows, features=[long]),
    ):
        display.figure_.draw_without_rendering()
        for axis in (display.ax_.xaxis, display.ax_.yaxis):
            label, whole = axis.label.get_window_extent(), display.figure_.bbox
            assert whole.x0 <= label.x0 <= label.x1 <= whole.x1
            assert whole.y0 <= label.y0 <= label.y1 <= whole.y1
        assert "_\n" in display.ax_.get_xlabel()


# Over one feature.


def test_over_one_feature_the_influence_is_the_y_axis():
    estimator = of_type("full")
    display = InfluenceDisplay.from_estimator(estimator, X, features=["x1"], component=1)
    drawn = np.asarray(display.points_.get_offsets())
    expected = np.column_stack([X[:, 1], estimator.influence(X)[:, 1, 0, 0]])
    assert_equal_to_rounding(drawn[np.argsort(drawn[:, 0])], expected[np.argsort(X[:, 1])])
    assert display.colorbar_ is None
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x1", display.label)
    assert repr(display) == "InfluenceDisplay: change of mean[1,x0] per unit of x0; 240 points over x1"


@pytest.mark.parametrize("perturb", ["location", "weight"])
def test_a_landscape_of_one_feature_is_a_line(perturb):
    estimator = mixture({}).fit(X[:, :1])
    display = InfluenceDisplay.from_estimator(
        estimator, X[:, :1], kind="landscape", perturb=perturb, grid_resolution=50
    )
    places, drawn = display.landscape_.get_data()
    expected = estimator.influence(places[:, None], perturb=perturb).reshape(50, 2, -1)[:, 0, 0]
    assert_equal_to_rounding(drawn, expected)
    assert places[0] < X[:, 0].min() < X[:, 0].max() < places[-1]
    assert display.zero_line_.get_ydata() == [0.0, 0.0]


@pytest.mark.slow
def test_the_weight_of_noise_is_named():
    estimator = mixture({}, noise=True).fit(overlapping())
    display = InfluenceDisplay.from_estimator(
        estimator, overlapping(), target="weights", component="noise", perturb="weight"
    )
    expected = estimator.influence(overlapping(), target="weights", perturb="weight")[:, -1]
    np.testing.assert_allclose(display.influence, expected, rtol=1e-12)
    assert display.label == "change of weight[noise] per copy of the row"
    with pytest.raises(ValueError, match="component='noise' is for target='weights'"):
        InfluenceDisplay.from_estimator(estimator, overlapping(), component="noise")
    with pytest.raises(ValueError, match=r"component='noise' is for .* of a fit with noise"):
        InfluenceDisplay.from_estimator(
            mixture({}).fit(overlapping()), overlapping(), target="weights", component="noise"
        )


# Rows by name, and rows with missing values.


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["points", "landscape"])
def test_the_rows_that_lead_are_named_by_the_index_or_by_number(kind):
    labels = [f"mid-village ${i}$" for i in range(len(X))]
    rows = pd.DataFrame(X, columns=["a", "b"], index=labels)
    influence = mixture({}).fit(X).influence(X)[:, 0, 0, 0]
    first = np.argsort(-np.abs(influence))[:5]
    for table, names in ((rows, [labels[i] for i in first]), (X, [str(i) for i in first])):
        estimator = mixture({}).fit(table)
        display = InfluenceDisplay.from_estimator(estimator, table, kind=kind, grid_resolution=5)
        display.figure_.canvas.draw()
        title = (
            display.ax_.get_title().replace("\n", " ").replace(r"\$", "$").replace("(\N{MINUS SIGN}", "(-")
        )
        listed = ", ".join(f"{name} ({influence[i]:.2g})" for name, i in zip(names, first, strict=True))
        assert title == f"largest influence: {listed}"
        assert list(display.names_) == [name for name in names if name in display.names_]
        assert len(display.names_) >= 3
        for name, text in display.names_.items():
            np.testing.assert_allclose(text.xy, X[first[names.index(name)]])
        boxes = [text.get_window_extent() for text in display.names_.values()]
        assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_rows_without_influence_are_not_named():
    nothing = InfluenceDisplay(points=X[:5], influence=np.zeros(5), label="nothing").plot()
    assert not nothing.names_ and not nothing.ax_.get_title()


@pytest.mark.slow
def test_rows_with_a_missing_value_are_at_the_edge_and_those_without_influence_are_counted():
    rows = X.copy()
    rows[:9, 0] = rows[6:20, 1] = np.nan
    estimator = mixture({}).fit(rows)
    for perturb, n_ticks, n_left_out in (("weight", [11, 6], 3), ("location", [11], 9)):
        display = InfluenceDisplay.from_estimator(estimator, rows, perturb=perturb)
        display.figure_.canvas.draw()
        assert [len(ticks.get_offsets()) for ticks in display.ticks_] == n_ticks
        influence = estimator.influence(rows, perturb=perturb).reshape(len(rows), 2, 2, -1)[:, 0, 0, 0]
        at_lower_edge = display.ticks_[0]
        order = np.argsort(at_lower_edge.get_offsets()[:, 0])
        expected = np.argsort(rows[9:20, 0]) + 9
        assert_equal_to_rounding(at_lower_edge.get_array()[order], influence[expected])
        assert at_lower_edge.get_clim() == display.points_.get_clim()
        counted = f"a value is missing: {sum(n_ticks)} at the edge, {n_left_out} not drawn"
        assert display.ax_.get_title().split("\n")[-1] == counted
    over_one = InfluenceDisplay.from_estimator(estimator, rows, perturb="weight", features=[0])
    assert len(over_one.ticks_[0].get_offsets()) == 9
    with pytest.raises(ValueError, match="No row of X has values of all features that span the plot"):
        InfluenceDisplay.from_estimator(estimator, np.column_stack([X[:, 0], X[:, 0] * np.nan]))
