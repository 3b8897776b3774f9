"""Class profiles: what is drawn is the posterior summary, panel by panel."""

import pickle

import numpy as np
import pandas as pd
import pytest
from latent_class.catalogue import PROBLEMS, fitted, mixture, refitted
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError

from sklearn_lrvb import LRVBLatentClassMixture
from sklearn_lrvb.displays import ClassProfilesDisplay


def display_of(name="mixed", **options):
    return ClassProfilesDisplay.from_estimator(fitted(name), **{"method": "lrvb", **options})


def drawn_numbers(bars):
    """Means, lower and upper ends of one class in one panel, as drawn: (3, values)."""
    points, _, (lines,) = bars
    segments = np.array(lines.get_segments())
    np.testing.assert_allclose(segments[:, 0, 0], points.get_xdata())
    np.testing.assert_array_equal(segments[:, 0, 0], segments[:, 1, 0])
    return np.array([points.get_ydata(), segments[:, 0, 1], segments[:, 1, 1]])


@pytest.mark.parametrize("name", ["mixed", "categories", "surplus", "one class"])
def test_what_is_drawn_is_the_summary(name):
    fit, display = fitted(name), display_of(name, interval=0.8)
    summary = fit.posterior_summary(interval=0.8, target="tables", method="lrvb")
    assert [panel for panel, _, _ in display.panels] == list(PROBLEMS[name].X)
    assert len(display.classes) == fit.n_occupied_
    for (column, values, _), bars in zip(display.panels, display.errorbars_, strict=True):
        kind = fit.columns_.loc[column, "kind"]
        # Of two categories the second alone; of a number the mean, and no standard deviation.
        categories = list(map(str, fit.columns_.loc[column, "categories"]))
        shown = {"numeric": ["mean"], "count": ["rate"], "binary": categories[1:]}.get(kind, categories)
        assert values == shown
        assert len(bars) == fit.n_occupied_
        for k, of_class in enumerate(bars):
            if kind in ("numeric", "count"):
                names = [f"{shown[0]}[{k},{column}]"]
            else:
                names = [f"probability[{k},{column}={value}]" for value in shown]
            expected = summary.loc[names, ["mean", "lower", "upper"]].to_numpy(float).T
            np.testing.assert_allclose(drawn_numbers(of_class), expected, rtol=1e-12)


def test_panels_are_named_and_classes_stand_side_by_side():
    display = display_of()
    display.figure_.canvas.draw()
    panels = display.axes_.ravel()
    assert display.axes_.shape == (2, 4)
    assert [panel.get_title() for panel in panels[:5]] == list(PROBLEMS["mixed"].X)
    assert not any(panel.axison for panel in panels[5:])
    labels = [[text.get_text() for text in panel.get_xticklabels()] for panel in panels[:5]]
    assert labels == [["much", "none", "some"], ["mean"], ["yes"], ["rate"], ["mean"]]
    places = [bars[0].get_xdata() for bars in display.errorbars_[0]]
    assert (places[0] < places[1]).all()
    np.testing.assert_array_equal(np.round(places), [[0, 1, 2], [0, 1, 2]])
    (legend,) = [ax.get_legend() for ax in display.figure_.axes if ax.get_legend()]
    shares = [f"class {k} ({100 * share:.0f} %)" for k, share in enumerate(fitted("mixed").weights_)]
    assert [text.get_text() for text in legend.get_texts()] == display.classes == shares
    assert repr(display) == "ClassProfilesDisplay: 2 classes, 5 columns"


def test_columns_are_chosen_by_name():
    whole = {name: numbers for name, _, numbers in display_of().panels}
    for listed in (list, tuple, pd.Index, np.array):
        display = display_of(columns=listed(["load", "sport"]))
        assert [name for name, _, _ in display.panels] == ["load", "sport"]
        for name, _, numbers in display.panels:
            np.testing.assert_array_equal(numbers, whole[name])
        assert [panel.get_title() for panel in display.axes_.flat] == ["load", "sport"]


def test_one_panel_is_the_axes_themselves():
    left, right = plt.figure().subplots(1, 2)
    display = display_of(columns=["sport"], ax=right)
    assert display.ax_ is display.axes_[0, 0] is right
    assert display.figure_ is right.figure
    assert right.get_title() == "sport" and not left.has_data()
    assert [text.get_text() for text in right.get_legend().get_texts()] == display.classes


def test_many_panels_take_the_place_of_the_axes():
    left, right = plt.figure(figsize=(12, 6)).subplots(1, 2)
    display = display_of(ax=right)
    place = right.get_position()
    for panel in display.axes_.flat:
        inside = panel.get_position()
        assert place.x0 - 1e-9 <= inside.x0 < inside.x1 <= place.x1 + 1e-9
    assert display.ax_ is right and not right.axison and not left.has_data()
    with pytest.raises(ValueError, match=r"ax was placed by hand.*\(b\) Leave ax out"):
        display.plot(ax=plt.figure().add_axes((0.1, 0.1, 0.8, 0.8)))


def test_a_display_can_be_kept_and_drawn_again():
    display = display_of()
    again = pickle.loads(pickle.dumps(display))
    assert again.plot() is again and again.figure_ is not display.figure_
    for bars, others in zip(display.errorbars_, again.errorbars_, strict=True):
        for one, other in zip(bars, others, strict=True):
            np.testing.assert_array_equal(drawn_numbers(one), drawn_numbers(other))


def test_options_reach_the_markers():
    for options in ({"ms": 9.0, "c": "k"}, {"markersize": 9.0, "color": "k"}):
        points = display_of(columns=["load"], **options).errorbars_[0][0][0]
        assert (points.get_markersize(), points.get_color()) == (9.0, "k")


def test_names_with_dollar_signs_are_no_formulas():
    names = {"sport": "$x^{$", "smokes": "cost_in_$", "height": r"\alpha $1 to $2"}
    X = PROBLEMS["mixed"].X.rename(columns=names).replace({"much": "$^", "none": r"$\frac$"})
    fit = mixture(PROBLEMS["mixed"]).fit(X)
    display = ClassProfilesDisplay.from_estimator(fit, method="lrvb")
    display.figure_.canvas.draw()  # Here matplotlib would read formulas.


def test_too_many_panels_are_refused():
    X = pd.DataFrame(np.random.default_rng(0).random((30, 101)) < 0.5)
    fit = LRVBLatentClassMixture(1).fit(X)
    with pytest.raises(ValueError, match=r"would have 101 panels.*choose some by columns"):
        ClassProfilesDisplay.from_estimator(fit, method="lrvb")
    columns = fit.columns_.index[:2].tolist()
    display = ClassProfilesDisplay.from_estimator(fit, columns=columns, method="lrvb")
    assert display.axes_.shape == (1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["sport", "age"]}, "There is no column 'age'; the columns are sport, height, smokes"),
        ({"columns": "sport"}, "columns must be a list of names of columns, or None for all, got 'sport'"),
        ({"columns": []}, "columns must be a list"),
        ({"interval": 95}, "interval must be a probability above 0 and below 1"),
        ({"method": "hmc"}, "method must be"),
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
        ClassProfilesDisplay.from_estimator(refitted(PROBLEMS["mixed"], **start), method="lrvb")
    assert not plt.get_fignums()
