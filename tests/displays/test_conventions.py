"""What all displays have in common: scikit-learn's conventions, features by name, and how they print."""

import copy
import functools
import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from catalogue import COVARIANCE_TYPES, fitted, mixture, overlapping, three_blobs
from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.displays import (
    ComponentDisplay,
    CovariateEffectsDisplay,
    DecidingRowsDisplay,
    InfluenceDisplay,
    ModelCheckDisplay,
    ModelChoiceDisplay,
    OutcomeDifferencesDisplay,
    PartitionDisplay,
    PosteriorIntervalDisplay,
    PosteriorStdDisplay,
)

X = overlapping()
AGE = pd.DataFrame({"age": np.random.default_rng(1).normal(size=len(X))})
SEX = pd.DataFrame({"sex": np.random.default_rng(2).choice(["f", "m"], len(X))})

# Options by which the panels of each fit on one pair of axes.
ONE_PANEL = {
    ComponentDisplay: {},
    CovariateEffectsDisplay: {},
    DecidingRowsDisplay: {"conclusion": "weight[0]", "threshold": 0.5},
    InfluenceDisplay: {},
    ModelCheckDisplay: {"max_columns": 0},
    ModelChoiceDisplay: {"n_components": [1, 2], "criteria": ["second_order"]},
    OutcomeDifferencesDisplay: {},
    PartitionDisplay: {"n_draws": 20, "method": "lrvb", "random_state": 0},
    PosteriorIntervalDisplay: {"target": "weights"},
    PosteriorStdDisplay: {},
}
SEVERAL_PANELS = {
    ComponentDisplay: {"features": ["x2", "x0", "x1"]},
    CovariateEffectsDisplay: {"covariates": AGE.join(SEX)},
    ModelCheckDisplay: {},
    ModelChoiceDisplay: {"n_components": [1, 2], "criteria": ["second_order", "leave_one_out"]},
    OutcomeDifferencesDisplay: {"outcome": AGE.join(SEX)},
    PosteriorIntervalDisplay: {},
}
TABLES = {CovariateEffectsDisplay: "covariates", OutcomeDifferencesDisplay: "outcome"}  # Beside the rows.
OF_POSTERIORS = PosteriorIntervalDisplay, PosteriorStdDisplay  # These take no rows.
each_display = pytest.mark.parametrize("display", ONE_PANEL)
each_display_of_panels = pytest.mark.parametrize("display", SEVERAL_PANELS)
each_display_of_a_fit = pytest.mark.parametrize(
    "display", [d for d in ONE_PANEL if d is not ModelChoiceDisplay]
)
each_covariance_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def draw(display, estimator, rows, **options):
    argument = TABLES.get(display)
    if argument is not None:
        options = {argument: AGE, "method": "lrvb", **options}
        options[argument] = options[argument][: len(rows)]
    return display.from_estimator(estimator, *[rows] * (display not in OF_POSTERIORS), **options)


def of_type(covariance_type):
    return fitted({"covariance_type": covariance_type})


@functools.cache
def of_three_features():
    return mixture({}).fit(three_blobs(90))


@functools.cache
def of_columns():
    return mixture({}).fit(pd.DataFrame(X, columns=["a", "b"]))


DOLLARS = ["$x^{$", "cost_in_$", r"\alpha $1 to $2"]  # The second may be drawn as it is, the others not.


@functools.cache
def of_dollars():
    return mixture({}).fit(pd.DataFrame(three_blobs(90), columns=DOLLARS))


@each_display
def test_without_matplotlib_the_error_says_so(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=rf"{display.__name__}\.from_estimator requires matplotlib"):
        draw(display, of_type("full"), X)


@each_display_of_a_fit
def test_an_unfitted_mixture_is_refused(display):
    with pytest.raises(NotFittedError):
        draw(display, LRVBGaussianMixture(), X)


@pytest.mark.slow
@each_display
def test_axes_given_are_drawn_on_and_others_are_new(display):
    ax = plt.figure().subfigures(1, 2)[0].subplots()
    given = draw(display, of_type("full"), X, ax=ax, **ONE_PANEL[display])
    assert given.ax_ is ax
    assert given.figure_ is ax.figure
    assert ax.has_data()
    assert given.plot() is given
    assert given.ax_ is not ax
    assert given.figure_ is given.ax_.figure is not ax.figure
    assert given.ax_.has_data()
    given.figure_.canvas.draw()


@pytest.mark.slow
@each_display_of_panels
def test_panels_take_the_place_of_the_axes(display):
    left, right = plt.figure(figsize=(12, 6)).subplots(1, 2)
    estimator = of_three_features()
    drawn = draw(display, estimator, three_blobs(90), ax=right, **SEVERAL_PANELS[display])
    assert drawn.ax_ is right
    panels = [panel for panel in drawn.axes_.flat if panel is not None]
    assert len(panels) > 1
    place = right.get_position()
    for panel in panels:
        inside = panel.get_position()
        assert panel.has_data()
        assert place.x0 - 1e-9 <= inside.x0 < inside.x1 <= place.x1 + 1e-9
        assert place.y0 - 1e-9 <= inside.y0 < inside.y1 <= place.y1 + 1e-9
    assert not left.has_data()
    assert not right.axison
    with pytest.raises(ValueError, match=r"ax was placed by hand.*\(b\) Leave ax out"):
        drawn.plot(ax=plt.figure().add_axes((0.1, 0.1, 0.8, 0.8)))
    assert drawn.plot().figure_ is not right.figure
    drawn.figure_.canvas.draw()


@each_display
@each_covariance_type
def test_every_covariance_type_is_drawn(display, covariance_type):
    drawn = draw(display, of_type(covariance_type), X, **ONE_PANEL[display])
    assert drawn.ax_.has_data()
    assert drawn.ax_.get_xlabel()
    assert drawn.ax_.get_ylabel()


@pytest.mark.slow
def test_reprs_say_what_is_drawn():
    estimator = copy.deepcopy(clone(of_type("full")).fit(X))  # which nobody has checked, and has no rows
    reprs = {
        "ComponentDisplay: 2 of 2 components (0, 1) over x0 and x1; no rows": ComponentDisplay.from_estimator(
            estimator
        ),
        "DecidingRowsDisplay: 8 of 240 rows (3.3 %) decide whether weight[0] is below 0.69: without them it "
        "is 0.6912, with all rows 0.647.": DecidingRowsDisplay.from_estimator(
            estimator, X, "weight[0]", threshold=0.69
        ),
        "InfluenceDisplay: change of weight[0] per copy of the row; 240 points over x0 and x1": (
            InfluenceDisplay.from_estimator(estimator, X, target="weights", perturb="weight")
        ),
        "PosteriorIntervalDisplay: 90 % intervals of weights by LRVB and mean field; 1 panel, 2 parameters. "
        "Linear response; posterior_check says how good it is.": (
            estimator.posterior(method="lrvb").plot(target="weights", interval=0.9)
        ),
        "PosteriorStdDisplay: standard deviations of 2 weights by LRVB, mean field and a reference. "
        "Linear response; posterior_check says how good it is.": (
            PosteriorStdDisplay.from_estimator(
                estimator, estimator.posterior(method="lrvb"), target="weights", reference=[1.0, 1.0]
            )
        ),
    }
    for expected, display in reprs.items():
        assert repr(display) == expected


@pytest.mark.slow
@each_display
def test_a_drawn_display_can_be_pickled_and_drawn_again(display):
    drawn = draw(display, of_type("full"), X, **ONE_PANEL[display])
    again = pickle.loads(pickle.dumps(drawn)).plot()
    assert repr(again) == repr(drawn)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("display", "short", "full"),
    [
        (
            ComponentDisplay,
            {"scatter_kw": {"lw": 2.0, "c": "k"}},
            {"scatter_kw": {"linewidth": 2.0, "color": "k"}},
        ),
        (
            DecidingRowsDisplay,
            {"ms": 9.0, "c": "k", "lw": 2.0},
            {"markersize": 9.0, "color": "k", "linewidth": 2.0},
        ),
        (
            InfluenceDisplay,
            {"scatter_kw": {"linewidths": 2.0, "ec": "r"}},
            {"scatter_kw": {"linewidth": 2.0, "edgecolor": "r"}},
        ),
        (ModelChoiceDisplay, {"lw": 2.0, "c": "k"}, {"linewidth": 2.0, "color": "k"}),
        (PosteriorIntervalDisplay, {"lw": 2.0, "colors": "k"}, {"linewidth": 2.0, "color": "k"}),
        (PosteriorStdDisplay, {"linewidths": 2.0, "c": "k"}, {"linewidth": 2.0, "color": "k"}),
    ],
)
def test_options_go_by_matplotlibs_other_names_too(display, short, full):
    by_short, by_full, by_none = (
        styles(draw(display, of_type("full"), X, **ONE_PANEL[display], **options))
        for options in (short, full, {})
    )
    assert by_short == by_full != by_none


def styles(display):
    """Line widths and colours of all that a display has drawn on one panel, and of its legend."""
    legend = display.ax_.get_legend()
    in_legend = [] if legend is None else legend.get_lines()
    lines = [(line.get_linewidth(), line.get_color()) for line in [*display.ax_.lines, *in_legend]]
    return lines, [
        [np.asarray(part).tolist() for part in (c.get_linewidth(), c.get_edgecolor(), c.get_facecolor())]
        for c in display.ax_.collections
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("display", "options"),
    [
        (ComponentDisplay, {"features": ["b", "a"], "components": [1]}),
        (InfluenceDisplay, {"features": ["b", "a"]}),
        (InfluenceDisplay, {"target": "covariances", "feature": ["b", "a"]}),
        (PosteriorIntervalDisplay, {"features": ["b", "a"], "components": [1]}),
    ],
)
@pytest.mark.parametrize(
    "listed", [pd.Index, pl.Series, lambda values: pd.Series(values, [7, 8][: len(values)])]
)
def test_columns_of_data_frames_list_features(display, options, listed):
    frame = pd.DataFrame(X, columns=["a", "b"])
    estimator = of_columns()
    drawn = draw(
        display,
        estimator,
        frame,
        **{name: listed(v) if isinstance(v, list) else v for name, v in options.items()},
    )
    expected = draw(display, estimator, frame, **options)
    assert repr(drawn) == repr(expected)
    assert drawn.ax_.get_xlabel() == expected.ax_.get_xlabel()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("display", "options", "n_names"),
    [
        (ComponentDisplay, {}, 2),
        (ComponentDisplay, {"features": [1]}, 1),
        (ComponentDisplay, {"features": [0, 1, 2]}, 5),
        (DecidingRowsDisplay, {"conclusion": f"mean[0,{DOLLARS[0]}] - mean[1,{DOLLARS[1]}]"}, 1),
        (InfluenceDisplay, {"along": 1, "feature": 1, "kind": "points"}, 3),
        (InfluenceDisplay, {"features": [0], "kind": "points"}, 2),
        (ModelChoiceDisplay, {"n_components": [1, 2], "criteria": ["leave_one_out"]}, 0),
        (PartitionDisplay, {"n_draws": 20, "method": "lrvb"}, 0),
        (PosteriorIntervalDisplay, {}, 3),
        (PosteriorIntervalDisplay, {"target": "means", "features": [0]}, 1),
        (PosteriorIntervalDisplay, {"target": "covariances"}, 6),
        (PosteriorStdDisplay, {}, 0),
    ],
)
def test_names_with_dollar_signs_are_no_formulas(display, options, n_names):
    rows = pd.DataFrame(three_blobs(90), columns=DOLLARS)
    drawn = draw(display, of_dollars(), rows, **options)
    drawn.figure_.canvas.draw()  # Here matplotlib would read formulas.
    labels = [text for ax in drawn.figure_.axes for text in (ax.get_xlabel(), ax.get_ylabel())]
    of_names = [label for label in labels if r"\$" in label]
    assert len(of_names) == n_names
    assert not any("$" in label.replace(r"\$", "") for label in of_names)
