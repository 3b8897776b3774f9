"""Class profiles: what is drawn is the posterior summary, panel by panel."""

import pickle

import numpy as np
import pandas as pd
import pytest
from latent_class.catalogue import PROBLEMS, fitted, mixture, refitted
from matplotlib import pyplot as plt
from scipy.stats import entropy, norm, poisson
from sklearn.exceptions import NotFittedError

from sklearn_lrvb import LRVBLatentClassMixture
from sklearn_lrvb.displays import ClassProfilesDisplay


def display_of(name="mixed", **options):
    return fitted(name).posterior(method="lrvb").plot(**options)


def drawn_numbers(display):
    """Means, lower and upper ends of the classes in every panel, as drawn: lists of (3, values)."""
    both = zip(display.points_, display.intervals_, strict=True)
    return [[numbers_of(*pair) for pair in zip(*panel, strict=True)] for panel in both]


def numbers_of(points, lines):
    segments = np.array(lines.get_segments())
    np.testing.assert_allclose(segments[:, 0, 1], points.get_ydata())
    np.testing.assert_array_equal(segments[:, 0, 1], segments[:, 1, 1])
    return np.array([points.get_xdata(), segments[:, 0, 0], segments[:, 1, 0]])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed", "categories", "durations", "surplus", "one class"])
def test_what_is_drawn_is_the_summary(name):
    fit, display = fitted(name), display_of(name, interval=0.8)
    summary = fit.posterior(method="lrvb").summary("tables", interval=0.8)
    assert sorted(panel.name for panel in display.panels) == sorted(PROBLEMS[name].X)
    assert len(display.classes) == fit.n_occupied_
    for panel, classes in zip(display.panels, drawn_numbers(display), strict=True):
        column, kind = panel.name, fit.columns_.loc[panel.name, "kind"]
        # Of two categories the second alone; of a number the mean, and no standard deviation.
        categories = list(map(str, fit.columns_.loc[column, "categories"]))
        quantity = {"numeric": "mean", "count": "rate", "duration": "rate"}.get(kind, "probability")
        shown = categories[kind == "binary" :] if quantity == "probability" else [""]
        assert (panel.quantity, panel.values) == (quantity, shown)
        assert len(classes) == fit.n_occupied_
        for k, of_class in enumerate(classes):
            names = [f"{panel.quantity}[{k},{column}{'=' * bool(value)}{value}]" for value in shown]
            expected = summary.loc[names, ["mean", "lower", "upper"]].to_numpy(float).T
            np.testing.assert_allclose(of_class, expected, rtol=1e-12)


@pytest.mark.slow
def test_panels_and_axes_are_named_and_classes_stand_side_by_side():
    display = display_of(columns=list(PROBLEMS["mixed"].X))
    display.figure_.canvas.draw()
    panels = display.axes_.ravel()
    assert display.axes_.shape == (2, 3)
    for panel, profile in zip(panels, display.panels, strict=False):
        assert panel.get_title(loc="left") == f"{profile.name} ({100 * profile.separation:.0f} %)"
    assert panels[5] is None
    labels = [[text.get_text() for text in panel.get_yticklabels()] for panel in panels[:5]]
    assert labels == [["much", "none", "some"], [""], ["yes"], [""], [""]]
    quantities = ["probability", "mean", "probability", "rate", "mean"]
    assert [panel.get_xlabel() for panel in panels[:5]] == quantities
    places = [points.get_ydata() for points in display.points_[0]]
    assert (places[0] < places[1]).all()
    np.testing.assert_array_equal(np.round(places), [[0, 1, 2], [0, 1, 2]])
    (legend,) = [ax.get_legend() for ax in display.figure_.axes if ax.get_legend()]
    shares = [f"class {k} ({100 * share:.0f} %)" for k, share in enumerate(fitted("mixed").weights_)]
    assert [text.get_text() for text in legend.get_texts()] == display.classes == shares
    assert legend.get_title().get_text().startswith("95 % intervals. Linear response")
    assert repr(display) == "ClassProfilesDisplay: 2 classes, 5 columns"


@pytest.mark.slow
def test_panels_share_scales_that_can_be_compared():
    fit, display = fitted("mixed"), display_of()
    shares = fit.weights_
    for panel, profile in zip(display.axes_.flat, display.panels, strict=False):
        low, high = panel.get_xlim()
        if profile.quantity == "probability":
            assert (low, high) == pytest.approx((0.0, 1.0), abs=0.05)
            continue
        # Two standard deviations of the column to both sides of its mean, by moments of the mixture.
        table = fit.tables_[profile.name].to_numpy(float)
        means, variances = table[:, 0], table[:, 1] ** 2 if profile.quantity == "mean" else table[:, 0]
        mean = shares @ means
        reach = 2.0 * np.sqrt(shares @ (variances + means**2) - mean**2)
        expected = mean - reach, mean + reach
        if profile.quantity == "rate":
            expected = max(expected[0], 0.0), expected[1]
        intervals = profile.numbers[1:]
        expected = min(expected[0], intervals.min()), max(expected[1], intervals.max())
        np.testing.assert_allclose((low, high), expected, rtol=1e-9)


def test_rates_of_durations_have_an_axis_of_their_own():
    # That of the values would be in other units.
    display = display_of("durations")
    for panel, profile in zip(display.axes_.flat, display.panels, strict=False):
        np.testing.assert_allclose(panel.get_xlim(), (0.0, profile.numbers.max()), rtol=1e-9)
        assert 0.1 < profile.separation < 0.9


def test_columns_come_in_the_order_in_which_they_separate_the_classes():
    # Mutual information in units of the entropy of the class, by integrals and sums of its definition.
    fit, display = fitted("mixed"), display_of()
    shares, found = fit.weights_, {}
    for profile in display.panels:
        table = fit.tables_[profile.name].to_numpy(float)
        if profile.quantity == "probability":
            densities, steps = table, 1.0
        elif profile.quantity == "rate":
            densities, steps = poisson.pmf(np.arange(200), table[:, :1]), 1.0
        else:
            ends = np.array([-9.0, 9.0]) * table[:, 1].max() + [table[:, 0].min(), table[:, 0].max()]
            grid = np.linspace(*ends, 20_001)
            densities, steps = norm.pdf(grid, table[:, :1], table[:, 1:]), grid[1] - grid[0]
        terms = shares[:, None] * densities * np.log(densities / (shares @ densities) + 1e-300)
        found[profile.name] = np.nansum(terms) * steps / entropy(shares)
        assert profile.separation == pytest.approx(found[profile.name], rel=2e-3, abs=1e-9)
    assert [profile.name for profile in display.panels] == sorted(found, key=found.get, reverse=True)
    assert 0.0 < min(found.values()) < max(found.values()) < 1.0


@pytest.mark.slow
def test_a_column_that_tells_every_class_separates_fully_and_one_that_tells_nothing_not_at_all():
    rng = np.random.default_rng(0)
    second = np.arange(200) < 80
    X = pd.DataFrame(
        {
            "nothing": np.where(rng.random(200) < 0.5, "no", "yes"),
            "all": np.where(second, 100.0, 0.0) + rng.normal(size=200),
            "units": np.where(second, 1.0, -1.0) + rng.normal(size=200),
        }
    )
    separation = {
        profile.name: profile.separation
        for profile in mixture_of_two(X).posterior(method="lrvb").plot().panels
    }
    assert list(separation) == ["all", "units", "nothing"]
    assert separation["all"] == pytest.approx(1.0, abs=1e-6)
    assert separation["nothing"] < 0.03
    scaled = mixture_of_two(X.assign(units=1e6 * X["units"] - 5e6))
    (profile,) = scaled.posterior(method="lrvb").plot(columns=["units"]).panels
    assert profile.separation == pytest.approx(separation["units"], rel=1e-4)


def mixture_of_two(X):
    return LRVBLatentClassMixture(2, random_state=0).fit(X)


@pytest.mark.slow
def test_long_names_and_many_columns_leave_room_for_panels():
    rng = np.random.default_rng(1)
    name = "How often during the last twelve months did you take part in activity number"
    answers = ["strongly disagree", "neither agree nor disagree", "strongly agree with all of it"]
    second = rng.random(60) < 0.5
    X = pd.DataFrame(
        {
            f"{name} {j}": rng.choice(answers, 60)
            if j % 2
            else np.where(second, 2.0, 0.0) + rng.normal(size=60)
            for j in range(12)
        }
    )
    display = mixture_of_two(X).posterior(method="lrvb").plot()
    display.figure_.canvas.draw()
    renderer = display.figure_.canvas.get_renderer()
    boxes = [panel.get_tightbbox(renderer) for panel in display.axes_.flat]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    for panel, box in zip(display.axes_.flat, boxes, strict=True):
        inches = panel.get_window_extent().size / display.figure_.dpi
        assert inches[0] > 1.2 and inches[1] > 0.25
        assert box.x0 >= -1 and box.x1 <= display.figure_.bbox.x1 + 1


@pytest.mark.slow
def test_columns_are_chosen_by_name():
    whole = {profile.name: profile.numbers for profile in display_of().panels}
    for listed in (list, tuple, pd.Index, np.array):
        display = display_of(columns=listed(["load", "sport"]))
        assert [profile.name for profile in display.panels] == ["load", "sport"]
        for profile in display.panels:
            np.testing.assert_array_equal(profile.numbers, whole[profile.name])


def test_one_panel_is_the_axes_themselves():
    left, right = plt.figure().subplots(1, 2)
    display = display_of(columns=["sport"], ax=right)
    assert display.ax_ is display.axes_[0, 0] is right
    assert display.figure_ is right.figure
    assert right.get_title(loc="left").startswith("sport (") and not left.has_data()
    assert [text.get_text() for text in right.get_legend().get_texts()] == display.classes


@pytest.mark.slow
def test_many_panels_take_the_place_of_the_axes():
    left, right = plt.figure(figsize=(12, 6)).subplots(1, 2)
    display = display_of(ax=right)
    place = right.get_position()
    for panel in filter(None, display.axes_.flat):
        inside = panel.get_position()
        assert place.x0 - 1e-9 <= inside.x0 < inside.x1 <= place.x1 + 1e-9
    assert display.ax_ is right and not right.axison and not left.has_data()
    with pytest.raises(ValueError, match=r"ax was placed by hand.*\(b\) Leave ax out"):
        display.plot(ax=plt.figure().add_axes((0.1, 0.1, 0.8, 0.8)))


@pytest.mark.slow
def test_a_display_can_be_kept_and_drawn_again():
    display = display_of()
    again = pickle.loads(pickle.dumps(display))
    assert again.plot() is again and again.figure_ is not display.figure_
    for panel, other in zip(drawn_numbers(display), drawn_numbers(again), strict=True):
        np.testing.assert_array_equal(panel, other)


def test_options_reach_the_intervals():
    for options in ({"lw": 9.0, "colors": "k"}, {"linewidth": 9.0, "color": "k"}):
        lines = display_of(columns=["load"], **options).intervals_[0][0]
        assert lines.get_linewidths() == [9.0]
        np.testing.assert_array_equal(lines.get_colors(), [[0.0, 0.0, 0.0, 1.0]])


@pytest.mark.slow
def test_names_with_dollar_signs_are_no_formulas():
    names = {"sport": "$x^{$", "smokes": "cost_in_$", "height": r"\alpha $1 to $2"}
    X = PROBLEMS["mixed"].X.rename(columns=names).replace({"much": "$^", "none": r"$\frac$"})
    fit = mixture(PROBLEMS["mixed"]).fit(X)
    display = fit.posterior(method="lrvb").plot()
    display.figure_.canvas.draw()  # Here matplotlib would read formulas.


@pytest.mark.slow
def test_too_many_panels_are_refused():
    X = pd.DataFrame(np.random.default_rng(0).random((30, 101)) < 0.5)
    fit = LRVBLatentClassMixture(1).fit(X)
    with pytest.raises(ValueError, match=r"would have 101 panels.*Choose some by columns"):
        fit.posterior(method="lrvb").plot()
    columns = fit.columns_.index[:2].tolist()
    display = fit.posterior(method="lrvb").plot(columns=columns)
    assert display.axes_.shape == (1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["sport", "age"]}, "There is no column 'age'; the columns are sport, height, smokes"),
        ({"columns": "sport"}, "columns must be a list of names of columns, or None for all, got 'sport'"),
        ({"columns": []}, "columns must be a list"),
        ({"interval": 95}, "interval must be a probability above 0 and below 1"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        display_of(**options)
    assert not plt.get_fignums()


def test_a_fit_without_error_bars_is_refused():
    with pytest.raises(NotFittedError):
        ClassProfilesDisplay.from_estimator(LRVBLatentClassMixture())
    start = {"solver": "coordinate_ascent", "init_params": np.full((100, 2), 0.5)}
    with pytest.raises(ValueError, match="no strict local optimum"):
        refitted(PROBLEMS["mixed"], **start).posterior(method="lrvb").plot()
    assert not plt.get_fignums()
