"""Components: geometry of ellipses and densities, rows, legends, corner plots."""

import numpy as np
import pandas as pd
import pytest
from catalogue import COVARIANCE_TYPES, dense, fitted, mixture, overlapping, three_blobs
from covariance_types import TYPES
from matplotlib import pyplot as plt
from matplotlib.path import Path
from scipy.integrate import trapezoid
from scipy.stats import norm, t

from sklearn_lrvb.displays import ComponentDisplay

each_covariance_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
X = overlapping()


def of_type(covariance_type):
    return fitted({"covariance_type": covariance_type})


def drawn_ellipse(patch):
    """Center m and C of the ellipse (x - m)' C^-1 (x - m) = 1 that is drawn."""
    circle = Path.unit_circle().vertices
    vertices = patch.get_path().transformed(patch.get_patch_transform()).vertices
    from_circle = np.linalg.lstsq(np.column_stack([circle, np.ones(len(circle))]), vertices, rcond=None)[0]
    return from_circle[2], from_circle[:2].T @ from_circle[:2]


def assert_ellipse(patch, mean, covariance):
    """To the precision of each feature's own standard deviation."""
    std = np.sqrt(np.diag(covariance))
    center, drawn = drawn_ellipse(patch)
    np.testing.assert_allclose(center / std, mean / std, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(drawn / np.outer(std, std), covariance / np.outer(std, std), atol=1e-9)


@each_covariance_type
@pytest.mark.parametrize("features", [(0, 1), (1, 0)])
def test_ellipses_are_the_covariances(covariance_type, features):
    estimator = of_type(covariance_type)
    posterior = estimator.posterior(method="lrvb")
    display = ComponentDisplay.from_estimator(
        estimator, X, features=features, interval=0.8, posterior=posterior
    )
    plane = np.ix_(features, features)
    components = dense({"covariance_type": covariance_type}, estimator.covariances_)
    means = posterior.covariance("means").reshape(2, 2, 2, 2)
    squared_radius = -2 * np.log(0.2)  # chi2 with two degrees of freedom is exponential
    for k in range(2):
        center = estimator.means_[k, list(features)]
        assert_ellipse(display.components_[k], center, 4 * components[k][plane])
        assert_ellipse(display.credible_regions_[k], center, squared_radius * means[k, :, k][plane])


def test_a_credible_region_holds_its_probability_of_the_posterior():
    estimator = of_type("full")
    display = ComponentDisplay.from_estimator(
        estimator, interval=0.9, posterior=estimator.posterior(method="lrvb")
    )
    draws = np.random.default_rng(0).multivariate_normal(
        estimator.means_.ravel(),
        estimator.posterior(method="lrvb").covariance("means"),
        size=20_000,
    )
    for k, region in display.credible_regions_.items():
        inside = region.get_path().contains_points(draws[:, 2 * k : 2 * k + 2])
        assert inside.mean() == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 20_000))


def test_ellipses_do_not_depend_on_units():
    units = np.array([1e7, 1e-9])
    display = ComponentDisplay.from_estimator(mixture({"reg_covar": 0.0}).fit(X))
    scaled = ComponentDisplay.from_estimator(mixture({"reg_covar": 0.0}).fit(X * units))
    for k in range(2):
        for kind in ("components_", "credible_regions_"):
            center, drawn = drawn_ellipse(getattr(display, kind)[k])
            assert_ellipse(getattr(scaled, kind)[k], center * units, drawn * np.outer(units, units))
    scaled.figure_.canvas.draw()


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_of_more_features_the_marginals_are_drawn(covariance_type):
    rows = three_blobs()
    estimator = mixture({"covariance_type": covariance_type}, n_components=3).fit(rows)
    display = ComponentDisplay.from_estimator(estimator, rows, features=(2, 0))
    std = estimator.posterior().std("means")[:, [2, 0]]
    np.testing.assert_allclose(np.sqrt(np.einsum("kpp->kp", display.mean_covariances)), std, rtol=1e-9)
    drawn, labels = estimator.sample(60_000)
    for k in range(3):
        expected = np.cov(drawn[labels == k][:, [2, 0]].T)
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        np.testing.assert_array_less(np.abs(display.covariances[k] - expected) / scale, 0.05)


def test_rows_are_drawn_with_their_components():
    estimator = of_type("full")
    display = ComponentDisplay.from_estimator(estimator, X, features=(1, 0), scatter_kw={"alpha": 0.2})
    labels = estimator.predict(X)
    assert len(display.points_) == 2
    for k, points in enumerate(display.points_):
        np.testing.assert_array_equal(points.get_offsets(), X[labels == k][:, ::-1])
        assert points.get_alpha() == 0.2
        np.testing.assert_array_equal(
            points.get_facecolors()[0, :3], display.components_[k].get_edgecolor()[:3]
        )
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x1", "x0")
    assert ComponentDisplay.from_estimator(estimator).points_ == []


@pytest.mark.slow
def test_empty_components_are_left_out():
    estimator = mixture({}, n_components=6).fit(X)
    display = ComponentDisplay.from_estimator(estimator)
    assert display.counts.sum() == pytest.approx(len(X))
    shown = np.flatnonzero(display.counts >= 0.5).tolist()
    assert 2 <= len(shown) < 6
    assert list(display.components_) == list(display.credible_regions_) == shown
    weights = [text.get_text() for text in display.legend_.get_texts()][: len(shown)]
    table = estimator.posterior().summary("weights")
    assert weights == [
        f"{k}: weight {row.mean:.3f} ± {row.sd:.3f}" for k, row in zip(shown, table.itertuples(), strict=True)
    ]
    looks = {(tuple(display.components_[k].get_edgecolor())) for k in shown}
    assert len(looks) == len(shown)  # numbers left out cost no colour
    assert list(display.plot(min_count=0.0).components_) == list(range(6))
    assert list(display.plot(components=[5, 0]).components_) == [5, 0]


@pytest.mark.slow
def test_the_legend_is_beside_the_axes_where_there_is_room():
    ax = plt.figure().subplots()
    for display in (
        ComponentDisplay.from_estimator(of_type("full"), X),
        ComponentDisplay.from_estimator(of_type("full"), X, ax=ax),
    ):
        display.figure_.canvas.draw()
        legend, axes = display.legend_.get_window_extent(), display.ax_.get_window_extent()
        if display.ax_ is ax:
            assert axes.x0 <= legend.x0 < legend.x1 <= axes.x1
        else:
            assert axes.x1 <= legend.x0 < legend.x1 <= display.figure_.bbox.x1


def test_bad_levels_components_and_rows_are_refused():
    for options, message in (
        ({"components": [2]}, "components must be a list of different integers from 0 to 1"),
        ({"min_count": 1e6}, "No component has 1e\\+06 expected rows"),
    ):
        with pytest.raises(ValueError, match=message):
            ComponentDisplay.from_estimator(of_type("full"), **options)
    for interval in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="interval must be a probability above 0 and below 1"):
            ComponentDisplay.from_estimator(of_type("full"), interval=interval)
    with pytest.raises(ValueError, match="X has 3 features"):
        ComponentDisplay.from_estimator(of_type("full"), np.ones((4, 3)))


# One feature, and corner plots.


def drawn_curve(line):
    """The density that a line draws."""
    return np.array(line.get_data())


@each_covariance_type
def test_over_one_feature_lines_are_densities(covariance_type):
    estimator = of_type(covariance_type)
    display = ComponentDisplay.from_estimator(
        estimator, X, features=["x1"], interval=0.8, posterior=estimator.posterior(method="lrvb")
    )
    variances = np.einsum("kpp->kp", dense({"covariance_type": covariance_type}, estimator.covariances_))[
        :, 1
    ]
    total = 0.0
    for k in range(2):
        grid, density = drawn_curve(display.components_[k])
        mean, deviation = estimator.means_[k, 1], np.sqrt(variances[k])
        expected = estimator.weights_[k] * norm.pdf(grid, mean, deviation)
        np.testing.assert_allclose(density, expected, rtol=1e-9)
        assert trapezoid(density, grid) == pytest.approx(estimator.weights_[k], rel=2e-3)
        total = total + density
        region = display.credible_regions_[k].get_xy()[:, 0]
        half = norm.ppf(0.9) * estimator.means_std_[k, 1]
        np.testing.assert_allclose([region.min(), region.max()], [mean - half, mean + half], rtol=1e-9)
    np.testing.assert_allclose(drawn_curve(display.mixture_densities_[0])[1], total, rtol=1e-12)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x1", "density")


each_kind_of_tails = pytest.mark.parametrize("tails", [1.5, "student", "student_by_component"])


@each_kind_of_tails
@each_covariance_type
def test_students_t_has_ellipses_of_its_scales_and_its_own_densities(tails, covariance_type):
    if TYPES[covariance_type].is_shared and tails == "student_by_component":
        pytest.skip("refused")
    model = {"covariance_type": covariance_type, "tails": tails}
    estimator = fitted(model)
    scales, nu = dense(model, estimator.scales_), np.broadcast_to(estimator.tails_, 2)
    posterior = estimator.posterior(method="lrvb")
    display = ComponentDisplay.from_estimator(estimator, X, posterior=posterior)
    for k in range(2):
        assert_ellipse(display.components_[k], estimator.means_[k], 4 * scales[k])
    assert "2 scales of a t component" in [text.get_text() for text in display.legend_.get_texts()]
    np.testing.assert_allclose(display.counts, estimator.predict_proba(X).sum(axis=0), rtol=1e-6)
    over_one = ComponentDisplay.from_estimator(estimator, X, features=[1], posterior=posterior)
    total = 0.0
    for k in range(2):
        grid, density = drawn_curve(over_one.components_[k])
        own = t(nu[k], estimator.means_[k, 1], np.sqrt(scales[k, 1, 1])).pdf(grid)
        np.testing.assert_allclose(density, estimator.weights_[k] * own, rtol=1e-9)
        total = total + density
    np.testing.assert_allclose(drawn_curve(over_one.mixture_densities_[0])[1], total, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("tails", ["normal", 1.5, "student"])
def test_of_very_many_rows_the_line_of_the_mixture_is_their_likelihood(tails):
    rows = X[:, :1]
    estimator = mixture({"tails": tails}).fit(rows, sample_weight=np.full(len(rows), 1e6))
    (line,) = ComponentDisplay.from_estimator(estimator, rows).mixture_densities_
    grid, density = drawn_curve(line)
    np.testing.assert_allclose(density, np.exp(estimator.score_samples(grid[:, None])), rtol=1e-5)


def test_a_mixture_of_one_feature_has_a_picture():
    estimator = mixture({}).fit(X[:, :1])
    display = ComponentDisplay.from_estimator(estimator, X[:, :1])
    low, high = display.ax_.get_xlim()
    assert low <= X[:, 0].min() <= X[:, 0].max() <= high
    np.testing.assert_allclose(display.mean_covariances[:, 0, 0], estimator.means_std_[:, 0] ** 2, rtol=1e-9)


def test_histograms_count_rows_by_their_weights():
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    edges = {"bins": np.linspace(-4.0, 6.0, 12)}
    options = {"features": [0], "hist_kw": edges}
    weighted = ComponentDisplay.from_estimator(of_type("full"), X, sample_weight=weights, **options)
    repeated = ComponentDisplay.from_estimator(of_type("full"), np.repeat(X, weights, axis=0), **options)
    one, other = (display.histograms_[0].get_xy() for display in (weighted, repeated))
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert one[:, 1].max() > 0
    with pytest.raises(ValueError, match="sample_weight goes with X"):
        ComponentDisplay.from_estimator(of_type("full"), sample_weight=weights)


def test_histograms_of_outliers_keep_a_readable_number_of_bins():
    rows = np.append(X[:, 0], [1e10])[:, None]
    estimator = mixture({}).fit(rows)
    display = ComponentDisplay.from_estimator(estimator, rows)
    assert len(np.unique(display.histograms_[0].get_xy()[:, 0])) <= 60


@pytest.mark.slow
def test_a_corner_plot_has_the_pictures_of_its_pairs_and_features():
    names = ["a", "b", "c"]
    rows = pd.DataFrame(three_blobs(), columns=names)
    estimator = mixture({}, n_components=3).fit(rows)
    corner = ComponentDisplay.from_estimator(estimator, rows, features=["c", "a", 1], scatter_kw={"s": 3.0})
    order = ["c", "a", "b"]
    panels = [(row, column) for row in range(3) for column in range(row + 1)]
    for place, (row, column) in enumerate(panels):
        chosen = [order[column], order[row]] if row > column else [order[row]]
        alone = ComponentDisplay.from_estimator(estimator, rows, features=chosen)
        for k in range(3):
            assert corner.components_[k][place].axes is corner.axes_[row, column]
            for kind in ("components_", "credible_regions_"):
                one, other = getattr(corner, kind)[k][place], getattr(alone, kind)[k]
                np.testing.assert_array_equal(one.get_path().vertices, other.get_path().vertices)
            np.testing.assert_array_equal(corner.numbers_[k][place].xy, alone.numbers_[k].xy)
            assert corner.numbers_[k][place].get_text() == str(k)
    assert [corner.axes_[place] for place in ((0, 1), (0, 2), (1, 2))] == [None] * 3
    assert [panel.get_xlabel() for panel in corner.axes_[2]] == order
    assert [panel.get_ylabel() for panel in corner.axes_[1:, 0]] == order[1:]
    for row, column in panels:
        panel = corner.axes_[row, column]
        assert panel.get_xlim() == corner.axes_[column, column].get_xlim()
        if row > column:
            assert panel.get_ylim() == corner.axes_[row, row].get_xlim()
    assert len(corner.points_) == 3 * 3
    assert len(corner.histograms_) == len(corner.mixture_densities_) == 3
    np.testing.assert_array_equal(corner.points_[0].get_sizes(), [3.0])


@pytest.mark.slow
def test_the_legend_of_a_corner_plot_is_in_its_empty_half():
    estimator = mixture({}, n_components=3).fit(three_blobs())
    display = ComponentDisplay.from_estimator(estimator, features=range(3))
    display.figure_.canvas.draw()
    legend = display.legend_.get_window_extent()
    assert not any(legend.overlaps(panel.get_window_extent()) for panel in display.axes_.flat if panel)
    assert 0 <= legend.x0 < legend.x1 <= display.figure_.bbox.x1


def test_ten_components_look_different_without_colours():
    counts = np.full(10, 9.0)
    eye = np.broadcast_to(np.eye(2), (10, 2, 2))
    means = np.column_stack([np.arange(10.0), np.zeros(10)])
    tenth = np.full(10, 0.1)
    display = ComponentDisplay(
        means=means,
        covariances=eye,
        mean_covariances=0.01 * eye,
        weights=tenth,
        weights_std=tenth,
        counts=counts,
    ).plot()
    handles = display.legend_.legend_handles[:10]
    looks = {(handle.get_marker(), handle.get_color(), handle.get_linestyle()) for handle in handles}
    assert len(looks) == 10
    assert [display.numbers_[k].get_text() for k in range(10)] == [str(k) for k in range(10)]
    for k, number in display.numbers_.items():
        np.testing.assert_array_equal(number.xy, means[k])


@pytest.mark.parametrize(
    "features", [(0, 2), (0, 0), (0, -1), 0, (0, 1, 1), ("x0", "x2"), (True, 0), (), "x0"]
)
def test_features_are_different_columns(features):
    with pytest.raises(ValueError, match="features must be one or more different columns of the 2"):
        ComponentDisplay.from_estimator(of_type("full"), X, features=features)


def test_corner_plots_of_very_many_features_are_refused():
    rows = np.random.default_rng(0).normal(size=(60, 13))
    estimator = mixture({"covariance_type": "diag"}, n_components=1).fit(rows)
    with pytest.raises(ValueError, match="13 features has 91 panels, too small to read: choose at most 12"):
        ComponentDisplay.from_estimator(estimator, features=range(13))


@pytest.mark.slow
def test_noise_is_grey_and_has_its_weight_in_the_legend():
    rows = np.concatenate([X, np.random.default_rng(0).uniform(-20.0, 20.0, size=(30, 2))])
    estimator = mixture({}, noise=True).fit(rows)
    display = ComponentDisplay.from_estimator(estimator, rows)
    labels = estimator.predict(rows)
    assert np.any(labels == -1)
    assert len(display.points_) == 3
    np.testing.assert_array_equal(display.points_[0].get_offsets(), rows[labels == -1])
    red, green, blue = display.points_[0].get_facecolors()[0, :3]
    assert red == green == blue
    texts = [text.get_text() for text in display.legend_.get_texts()]
    expected = f"noise: weight {estimator.noise_weight_:.3f} ± {estimator.noise_weight_std_:.3f}"
    assert texts[2] == expected
    over_one = ComponentDisplay.from_estimator(estimator, rows, features=[0])
    assert "density of the components" in [text.get_text() for text in over_one.legend_.get_texts()]


# Rows with missing values.


def with_missing_values():
    """Rows of which some have a missing value, in the first, in the second or in both columns."""
    rows = X.copy()
    rows[:9, 0] = rows[6:20, 1] = np.nan
    rows[0, 1], rows[19, 0] = 55.0, -44.0  # Far out, so that the axes must make room.
    return rows


@pytest.mark.slow
def test_rows_with_a_missing_value_are_ticks_at_the_edge_and_all_are_counted():
    rows = with_missing_values()
    estimator = mixture({}).fit(rows)
    labels, (no_x, no_y) = estimator.predict(rows), np.isnan(rows).T
    for features in ([0, 1], [1, 0]):
        display = ComponentDisplay.from_estimator(estimator, rows, features=features)
        display.figure_.canvas.draw()
        low, high = np.transpose([display.ax_.get_xlim(), display.ax_.get_ylim()])
        at_points = np.concatenate([points.get_offsets() for points in display.points_])
        np.testing.assert_array_equal(
            np.sort(at_points, axis=0), np.sort(rows[:, features][~no_x & ~no_y], axis=0)
        )
        found = []
        for ticks in display.ticks_:
            places = ticks.get_offset_transform().transform(ticks.get_offsets())
            places = display.ax_.transData.inverted().transform(places)
            assert np.all(low - 1e-9 <= places) and np.all(places <= high + 1e-9)
            at_edge = np.isclose(places, low, atol=1e-9 * (high - low)).all(axis=0)
            assert at_edge.sum() == 1
            (known,) = np.flatnonzero(~at_edge)
            color = tuple(ticks.get_edgecolor()[0, :3])
            found += [(features[known], value, color) for value in places[:, known].tolist()]
        colors = [points.get_facecolor()[0, :3] for points in display.points_]
        expected = [
            (known, rows[row, known], tuple(colors[labels[row]]))
            for known, is_known, is_missing_value in ((0, ~no_x, no_y), (1, ~no_y, no_x))
            for row in np.flatnonzero(is_known & is_missing_value)
        ]
        assert len(found) == len(expected) == 17
        for one, other in zip(sorted(found), sorted(expected), strict=True):
            assert one[0] == other[0] and one[1] == pytest.approx(other[1], rel=1e-9) and one[2] == other[2]
        texts = [text.get_text() for text in display.legend_.get_texts()]
        assert texts[-3:] == [
            "220 of 240 rows have both values",
            "17 at the edge, where one\nof two values is missing",
            "3 not drawn: no value",
        ]


@pytest.mark.slow
def test_rows_with_missing_values_are_counted_over_one_feature_and_over_many():
    rows = np.column_stack([with_missing_values(), X[:, 0] + X[:, 1] ** 2])
    estimator = mixture({}).fit(rows)

    def last_of_legend(n_texts, **options):
        display = ComponentDisplay.from_estimator(estimator, rows, **options)
        return [text.get_text() for text in display.legend_.get_texts()][-n_texts:]

    assert last_of_legend(2, features=[1]) == [
        "226 of 240 rows have a value",
        "14 not drawn: no value",
    ]
    assert last_of_legend(2, features=[0, 1, 2])[0] == "220 of 240 rows have all values"
    assert last_of_legend(1, features=[0, 1, 2])[0].startswith("20 at the edge")
    assert last_of_legend(1, features=[2]) == ["95 % interval of its mean"]


# Error bars of the legend.


@pytest.mark.slow
def test_the_legend_says_how_good_its_error_bars_are_before_and_after_a_check():
    for rows, state in ((overlapping(120), "rough"), (three_blobs(300), "good")):
        estimator = mixture({}, n_components=2).fit(rows)
        before = ComponentDisplay.from_estimator(estimator)
        assert estimator.posterior_check(rows).state == state
        table = estimator.posterior().summary("weights")
        assert before.note == ComponentDisplay.from_estimator(estimator).note == table.attrs["note"]
        texts = [text.get_text().replace("\n", " ") for text in before.legend_.get_texts()]
        words = {"good": "Linear response is good", "rough": "Exact posterior"}
        assert f"± 1 sd. {words[state]}" in texts
        for k, row in enumerate(table.itertuples()):
            assert f"{k}: weight {row.mean:.3f} ± {row.sd:.3f}" in texts


@pytest.mark.slow
def test_rows_without_any_value_of_a_feature_are_drawn_over_the_others():
    estimator = mixture({}).fit(with_missing_values())
    rows = np.column_stack([X[:, 0], np.full(len(X), np.nan)])
    for features in ([0], [1], [0, 1]):
        display = ComponentDisplay.from_estimator(estimator, rows, features=features)
        display.figure_.canvas.draw()
        assert len(display.histograms_) == (features == [0])
        assert sum(len(ticks.get_offsets()) for ticks in display.ticks_) == len(X) * (len(features) == 2)
