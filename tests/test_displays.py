"""What the displays draw is what the estimator says: values on the artists, geometry of ellipses, errors."""

import subprocess
import sys

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    assert_equal_to_rounding,
    dense,
    fitted,
    mixture,
    overlapping,
    three_blobs,
    unique,
)
from matplotlib import pyplot as plt
from matplotlib.path import Path
from sklearn.exceptions import NotFittedError

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.displays import ComponentDisplay, InfluenceDisplay, PosteriorStdDisplay
from sklearn_lrvb.displays.parameter_entries import parameter_entry
from sklearn_lrvb.gaussian_mixture.uncertainty.targets import PARAMETERS, TARGETS

DISPLAYS = (PosteriorStdDisplay, ComponentDisplay, InfluenceDisplay)
each_display = pytest.mark.parametrize("display", DISPLAYS)
each_covariance_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
X = overlapping()


@pytest.fixture(autouse=True)
def _no_window():
    """Draw in memory, and leave no figure behind."""
    matplotlib.use("Agg")
    yield
    plt.close("all")


def of_type(covariance_type):
    return fitted({"covariance_type": covariance_type})


# What all displays have in common.


def test_matplotlib_is_not_imported_with_the_module():
    code = "import sys, sklearn_lrvb.displays; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@each_display
def test_without_matplotlib_the_error_says_so(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=rf"{display.__name__}\.from_estimator requires matplotlib"):
        display.from_estimator(of_type("full"), X)


@each_display
def test_an_unfitted_mixture_is_refused(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(LRVBGaussianMixture(), X)


@each_display
def test_axes_given_are_drawn_on_and_others_are_new(display):
    ax = plt.figure().subfigures(1, 2)[0].subplots()
    given = display.from_estimator(of_type("full"), X, ax=ax)
    assert given.ax_ is ax
    assert given.figure_ is ax.figure
    assert ax.has_data()
    assert given.plot() is given
    assert given.ax_ is not ax
    assert given.figure_ is given.ax_.figure is not ax.figure
    assert given.ax_.has_data()
    given.figure_.canvas.draw()


@each_display
@each_covariance_type
def test_every_covariance_type_is_drawn(display, covariance_type):
    drawn = display.from_estimator(of_type(covariance_type), X)
    assert drawn.ax_.has_data()
    assert drawn.ax_.get_xlabel()
    assert drawn.ax_.get_ylabel()


# Standard deviations.


@each_covariance_type
def test_standard_deviations_are_the_estimators(covariance_type):
    estimator = of_type(covariance_type)
    display = PosteriorStdDisplay.from_estimator(estimator)
    mean_field = np.sqrt(np.diag(estimator.get_posterior_covariance(method="mean_field")))
    np.testing.assert_allclose(display.lrvb_std, estimator.posterior_std_, rtol=1e-9)
    np.testing.assert_allclose(display.mean_field_std, mean_field, rtol=1e-12)
    assert list(display.mean_field_points_) == list(PARAMETERS)
    for target, points in display.mean_field_points_.items():
        own = np.char.startswith(estimator.posterior_names_, target[:-1])
        expected = np.column_stack([display.lrvb_std[own], mean_field[own]])
        assert_equal_to_rounding(points.get_offsets(), expected)
    of_covariances = unique({"covariance_type": covariance_type}, estimator.covariances_std_)
    for target, expected in (("weights", estimator.weights_std_), ("covariances", of_covariances)):
        display = PosteriorStdDisplay.from_estimator(estimator, target=target)
        np.testing.assert_allclose(display.lrvb_std, expected, rtol=1e-9)


def test_both_are_drawn_over_a_reference():
    estimator = of_type("full")
    reference = 1.1 * np.sqrt(np.diag(estimator.get_posterior_covariance(["precisions", "means"])))
    display = PosteriorStdDisplay.from_estimator(
        estimator, target=["precisions", "means"], reference=reference.tolist()
    )
    assert display.ax_.get_xlabel() == "reference standard deviation"
    assert list(display.lrvb_points_) == list(display.mean_field_points_) == ["precisions", "means"]
    for target, own in (("precisions", slice(0, 6)), ("means", slice(6, 10))):
        filled, hollow = display.lrvb_points_[target], display.mean_field_points_[target]
        np.testing.assert_array_equal(filled.get_offsets().T, [reference[own], display.lrvb_std[own]])
        np.testing.assert_array_equal(hollow.get_offsets().T, [reference[own], display.mean_field_std[own]])
        assert len(filled.get_facecolors()) == 1
        assert len(hollow.get_facecolors()) == 0
        np.testing.assert_array_equal(hollow.get_edgecolors(), filled.get_edgecolors())


def test_one_component_lies_on_the_diagonal_but_for_what_does_not_vary():
    # mean-field theory is exact there, and the one log weight is zero
    model = {"weight_concentration_prior_type": "dirichlet_distribution", "reg_covar": 0.0}
    display = PosteriorStdDisplay.from_estimator(fitted(model, n_components=1))
    assert list(display.mean_field_points_) == ["means", "precisions"]
    for points in display.mean_field_points_.values():
        lrvb, mean_field = np.asarray(points.get_offsets()).T
        np.testing.assert_allclose(mean_field, lrvb, rtol=1e-9)
    low, high = display.diagonal_.get_data()
    np.testing.assert_array_equal(low, high)


@pytest.mark.parametrize("factor", [1.0, 30.0, 1e6])
def test_logarithmic_axes_have_a_few_readable_ticks(factor):
    std = np.geomspace(0.043, 0.043 * factor, 4)
    display = PosteriorStdDisplay(lrvb_std=std, mean_field_std=std, targets=np.repeat(["means"], 4)).plot()
    display.figure_.canvas.draw()
    for axis, (low, high) in (
        (display.ax_.xaxis, display.ax_.get_xlim()),
        (display.ax_.yaxis, display.ax_.get_ylim()),
    ):
        assert low < std.min() <= std.max() < high
        labels = [t.label1.get_text() for t in axis.get_major_ticks() if low < t.get_loc() < high]
        assert 2 <= len(labels) <= 8
        assert not any(t.label1.get_text() for t in axis.get_minor_ticks())


def test_standard_deviations_of_nothing_and_references_of_other_lengths_are_refused():
    estimator = of_type("full")
    with pytest.raises(ValueError, match="target must be one of log_weights, means"):
        PosteriorStdDisplay.from_estimator(estimator, target="mean")
    with pytest.raises(ValueError, match="target is empty"):
        PosteriorStdDisplay.from_estimator(estimator, target=())
    with pytest.raises(ValueError, match=r"each of the 4 parameters of target='means', got .* shape \(5,\)"):
        PosteriorStdDisplay.from_estimator(estimator, target="means", reference=np.ones(5))
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        PosteriorStdDisplay.from_estimator(estimator, X + 1.0)
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        PosteriorStdDisplay.from_estimator(estimator, X, sample_weight=np.full(len(X), 2.0))


# Components.


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
    display = ComponentDisplay.from_estimator(estimator, X, features=features, level=0.8)
    plane = np.ix_(features, features)
    components = dense({"covariance_type": covariance_type}, estimator.covariances_)
    means = estimator.get_posterior_covariance("means").reshape(2, 2, 2, 2)
    squared_radius = -2 * np.log(0.2)  # chi2 with two degrees of freedom is exponential
    for k in range(2):
        center = estimator.means_[k, list(features)]
        assert_ellipse(display.components_[k], center, 4 * components[k][plane])
        assert_ellipse(display.credible_regions_[k], center, squared_radius * means[k, :, k][plane])


def test_a_credible_region_holds_its_probability_of_the_posterior():
    estimator = of_type("full")
    display = ComponentDisplay.from_estimator(estimator, level=0.9)
    draws = np.random.default_rng(0).multivariate_normal(
        estimator.means_.ravel(), estimator.get_posterior_covariance("means"), size=20_000
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


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_of_more_features_the_marginals_are_drawn(covariance_type):
    rows = three_blobs()
    estimator = mixture({"covariance_type": covariance_type}, n_components=3).fit(rows)
    display = ComponentDisplay.from_estimator(estimator, rows, features=(2, 0))
    std = estimator.means_std_[:, [2, 0]]
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


def test_empty_components_are_left_out():
    estimator = mixture({}, n_components=6).fit(X)
    display = ComponentDisplay.from_estimator(estimator)
    assert display.counts.sum() == pytest.approx(len(X))
    shown = np.flatnonzero(display.counts >= 0.5).tolist()
    assert 2 <= len(shown) < 6
    assert list(display.components_) == list(display.credible_regions_) == shown
    weights = [text.get_text() for text in display.legend_.get_texts()][: len(shown)]
    assert weights == [
        f"{k}: weight {estimator.weights_[k]:.3f} ± {estimator.weights_std_[k]:.3f}" for k in shown
    ]
    looks = {(tuple(display.components_[k].get_edgecolor())) for k in shown}
    assert len(looks) == len(shown)  # numbers left out cost no colour
    assert list(display.plot(min_count=0.0).components_) == list(range(6))


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


@pytest.mark.parametrize("features", [(0, 2), (0, 0), (0, -1), 0, (0, 1, 1), ("x0", "x2"), (True, 0)])
def test_a_plane_is_two_columns(features):
    for display in (ComponentDisplay, InfluenceDisplay):
        with pytest.raises(ValueError, match=r"features must be .* different columns of the 2"):
            display.from_estimator(of_type("full"), X, features=features)


def test_bad_levels_and_rows_are_refused():
    for level in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="level must lie between 0 and 1"):
            ComponentDisplay.from_estimator(of_type("full"), level=level)
    with pytest.raises(ValueError, match="X has 3 features"):
        ComponentDisplay.from_estimator(of_type("full"), np.ones((4, 3)))


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
    off_diagonal = [(0, 1), (1, 0)] if covariance_type in ("full", "tied") else []
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
        ("full", {"kind": "landscape", "grid_resolution": 1}, "grid_resolution must be at least 2"),
        ("full", {"vmax": 0.0}, "vmax must be positive, got 0.0"),
    ],
)
def test_bad_options_are_refused(covariance_type, options, message):
    with pytest.raises(ValueError, match=message):
        InfluenceDisplay.from_estimator(of_type(covariance_type), X, **options)


def test_a_landscape_needs_two_features():
    rows = three_blobs()
    estimator = mixture({}, n_components=2).fit(rows)
    with pytest.raises(ValueError, match="but the mixture has 3 features: use kind='points'"):
        InfluenceDisplay.from_estimator(estimator, rows, kind="landscape")
    with pytest.raises(ValueError, match="takes two features, and the mixture was fitted to one"):
        InfluenceDisplay.from_estimator(mixture({}).fit(X[:, :1]), X[:, :1])


# Influence: what is drawn.


@each_covariance_type
@pytest.mark.parametrize("target", TARGETS)
def test_points_have_the_colours_of_their_influence(covariance_type, target):
    estimator = of_type(covariance_type)
    display = InfluenceDisplay.from_estimator(
        estimator, X, target=target, component=1, feature=1, along=0, features=(1, 0)
    )
    index, name = parameter_entry(estimator, target, 1, 1)
    expected = estimator.influence(X, target)[:, *index, 0]
    assert_equal_to_rounding(display.influence, expected)
    assert display.label == f"d {name} / d x0 of the point"
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
    assert_equal_to_rounding(display.influence, estimator.influence(X, "covariances")[:, 0, 0, 1, 1])
    assert display.label == "d covariance[0,x0,x1] / d x1 of the point"


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


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)])
def test_data_frames_bring_their_names(frame):
    rows = frame(X, columns=["a rather long name", "b"])
    estimator = mixture({}).fit(rows)
    display = InfluenceDisplay.from_estimator(
        estimator, rows, target="precisions", kind="landscape", features=(1, 0), grid_resolution=7
    )
    assert (
        display.label
        == "d precision[0,a rather long name,a rather long name] / d a rather long name of the point"
    )
    assert display.colorbar_.ax.get_ylabel() == display.label.replace(" / ", "\n/ ")  # it is long
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
    expected = estimator.influence(X, target, perturb="weight")[:, *index]
    assert_equal_to_rounding(display.influence, expected)
    assert display.label == f"d {name} / d weight of the point"


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
    expected = estimator.influence(rows, "covariances", perturb="weight").reshape(81, -1)[:, 0]
    np.testing.assert_allclose(landscape.landscape.ravel(), expected, rtol=1e-12)
