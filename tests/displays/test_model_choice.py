"""The display of numbers of clusters: what it draws are the numbers of the result."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import mixture, overlapping

from sklearn_lrvb import number_of_clusters
from sklearn_lrvb.displays import ModelChoiceDisplay

X = overlapping(120)
DIRICHLET = {"weight_concentration_prior_type": "dirichlet_distribution"}


@pytest.fixture(scope="module")
def drawn():
    """A display of all criteria, with empty components; shared, so not to be changed."""
    result = number_of_clusters(
        mixture(DIRICHLET),
        X,
        n_components=[4, 1, 3, 2],
        criteria=["leave_one_out", "second_order", "probability"],
        n_init=2,
        n_draws=200,
        random_state=0,
    )
    return ModelChoiceDisplay.from_result(result)


@pytest.mark.slow
def test_a_panel_for_each_criterion(drawn):
    assert drawn.result.criteria == ("probability", "second_order", "leave_one_out")
    assert drawn.axes_.shape == (3, 1)
    labels = [panel.get_ylabel().partition("\n")[0] for panel in drawn.axes_[:, 0]]
    assert labels == ["P(K | X)", "second order", "leave-one-out"]


@pytest.mark.slow
def test_bars_and_lines_carry_the_numbers(drawn):
    result = drawn.result
    for bars, shown in ((drawn.bars_, result), (drawn.other_bars_, result.another_prior)):
        assert [bar.get_height() for bar in bars] == shown.scores["probability"].tolist()
        ends = np.array(bars.errorbar.lines[2][0].get_segments())[:, :, 1]
        assert ends.min() >= 0.0
        assert ends.max() <= 1.0
        half = np.abs(ends - shown.scores["probability"][:, None]).max(axis=1)
        assert np.all(half <= shown.probability_errors + 1e-12)
    for criterion, line in drawn.lines_.items():
        np.testing.assert_array_equal(line.get_data(), [result.n_components, result.scores[criterion]])
    half = 0.5 * np.diff(np.array(drawn.error_bars_.get_segments())[:, :, 1], axis=1)[:, 0]
    np.testing.assert_allclose(half, result.leave_one_out_std_error, atol=1e-9)
    scores = result.scores["leave_one_out"]
    written = {text.get_text() for text in drawn.axes_[2, 0].texts}
    assert written == {
        f"\N{MINUS SIGN}{scores.max() - score:.1f}" for score in scores if score < scores.max()
    }


@pytest.mark.slow
def test_ticks_tell_the_components_that_hold_rows(drawn):
    result = replace(drawn.result, n_occupied=np.array([1, 2, 2, 0]))
    panel = ModelChoiceDisplay.from_result(result).axes_[-1, 0]
    labels = [text.get_text() for text in panel.get_xticklabels()]
    assert labels == ["1", "2", "3\n(2)", "4\n(failed)"]


@pytest.mark.slow
def test_another_drawing_takes_options_of_bars(drawn):
    again = drawn.plot(bar_kw={"fc": "red"}, lw=3.0)
    assert again is drawn
    assert all(bar.get_facecolor()[:3] == (1.0, 0.0, 0.0) for bar in again.bars_)
    assert all(line.get_linewidth() == 3.0 for line in again.lines_.values())


@pytest.mark.slow
def test_without_another_prior_bars_are_alone():
    display = ModelChoiceDisplay.from_estimator(
        mixture(DIRICHLET), X, n_components=[1, 2], another_prior=False, n_init=1, random_state=0
    )
    assert display.other_bars_ is None
    assert [bar.get_x() + 0.5 * bar.get_width() for bar in display.bars_] == pytest.approx([1.0, 2.0])
    assert repr(display) == f"ModelChoiceDisplay: {display.result.verdict}"


def test_fits_that_end_below_a_smaller_one_are_marked():
    def start(X, n_components, random_state):  # of three components it is left before it has got anywhere
        right = np.eye(n_components)[(X[:, 0] > 20.0).astype(int) % n_components]
        return right if n_components < 3 else random_state.dirichlet(np.ones(3), len(X))

    display = ModelChoiceDisplay.from_estimator(
        mixture({**DIRICHLET, "init_params": start, "moves": None, "max_iter": 2}),
        np.concatenate([X, X + 40.0]),
        n_components=[1, 2, 3],
        criteria=["second_order"],
        n_init=1,
    )
    (arrow,) = [line for line in display.axes_[0, 0].lines if line.get_marker() == "^"]
    assert arrow.get_xdata().tolist() == list(display.result.missed) == [3]
    assert [text.get_text() for text in display.legend_.get_texts()][-1] == "better one missed"


@pytest.mark.slow
def test_fits_in_trouble_are_marked():
    def start(X, n_components, random_state):
        if n_components == 2:  # components that coincide: a saddle, which coordinate ascent does not leave
            return np.full((len(X), 2), 0.5)
        return random_state.dirichlet(np.ones(n_components), len(X))

    estimator = mixture({**DIRICHLET, "init_params": start, "solver": "coordinate_ascent", "max_iter": 12})
    display = ModelChoiceDisplay.from_estimator(
        estimator, X, n_components=[1, 2, 3], criteria=["second_order", "leave_one_out"], n_init=1
    )
    result = display.result
    for panel in display.axes_.flat:
        (cross,) = [line for line in panel.lines if line.get_marker() == "x"]
        assert cross.get_xdata().tolist() == result.n_components[~result.strict_optimum].tolist()
        hollow = [line for line in panel.lines if line.get_markerfacecolor() == "white"]
        assert hollow
        assert all(line.get_xdata().tolist() == [3] for line in hollow)
    legend = [text.get_text() for text in display.legend_.get_texts()]
    assert {"not converged", "no strict optimum"} <= set(legend)


@pytest.mark.slow
def test_bars_have_no_marks_and_failed_fits_are_named(drawn):
    result = drawn.result
    failed = {k: fit for k, fit in result.estimators_.items() if k != 3}
    fails = result.n_components == 3
    display = ModelChoiceDisplay.from_result(
        replace(
            result,
            criteria=("probability",),
            estimators_=failed,
            n_occupied=np.where(fails, 0, result.n_occupied),
            converged=~fails,
            strict_optimum=~fails,
        )
    )
    assert display.axes_[0, 0].get_xticklabels()[2].get_text() == "3\n(failed)"
    assert len(display.legend_.get_texts()) == 2  # Of the two priors.
