"""The choice of a number of components: scores are those of the fits, and no fit's trouble is hidden."""

import itertools
import re
import xml.etree.ElementTree as ET
from math import log

import numpy as np
import pandas as pd
import pytest
from catalogue import mixture, overlapping

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.displays import ModelChoiceDisplay

X = overlapping(120)
DIRICHLET = {"weight_concentration_prior_type": "dirichlet_distribution"}
MERGING = {**DIRICHLET, "moves": "merge"}  # leaves components empty


def coincident(X, n_components, random_state):
    """Responsibilities of components that coincide: a saddle, which coordinate ascent does not leave."""
    return np.full((len(X), n_components), 1.0 / n_components)


@pytest.fixture(scope="module")
def compared():
    """A comparison with empty components; shared, so not to be changed."""
    weights = np.random.default_rng(0).integers(1, 3, len(X)).astype(float)
    estimator = mixture(MERGING)
    display = ModelChoiceDisplay.from_estimator(
        estimator, X, n_components=[4, 1, 3, 2], sample_weight=weights
    )
    return estimator, weights, display


def test_scores_are_those_of_the_fits(compared):
    estimator, weights, display = compared
    assert not hasattr(estimator, "means_")
    assert list(display.estimators_) == display.n_components.tolist() == [1, 2, 3, 4]
    for i, (k, fit) in enumerate(display.estimators_.items()):
        again = mixture(MERGING, n_components=k).fit(X, sample_weight=weights)
        assert display.scores["lower_bound"][i] == fit.lower_bound_ == again.lower_bound_
        scores = again.loo_score_samples(X, weights)
        assert display.scores["leave_one_out"][i] == pytest.approx(weights @ scores, rel=1e-12)
        assert display.n_occupied[i] == again.n_occupied_
    assert np.any(display.n_occupied < display.n_components)


def test_all_labellings_are_the_copies_of_an_optimum(compared):
    _, _, display = compared
    gained = display.scores["all_labellings"] - display.scores["lower_bound"]
    for k, n_occupied, log_copies in zip(display.n_components, display.n_occupied, gained, strict=True):
        # empty components are all alike: exchanging them leaves the posterior as it is
        components = [*range(n_occupied), *["empty"] * (k - n_occupied)]
        assert log_copies == pytest.approx(log(len(set(itertools.permutations(components)))), abs=1e-9)


def test_the_standard_error_is_that_of_a_sum_over_rows(compared):
    _, weights, display = compared
    rows = {k: fit.loo_score_samples(X, weights) for k, fit in display.estimators_.items()}
    best = display.best_["leave_one_out"]
    for k, found in zip(display.n_components.tolist(), display.leave_one_out_std_error, strict=True):
        differences = np.repeat(rows[k] - rows[best], weights.astype(int))
        expected = np.sqrt(len(differences)) * np.std(differences, ddof=1)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    segments = np.array(display.error_bars_.get_segments())
    half = 0.5 * np.diff(segments[:, :, 1], axis=1)[:, 0]
    np.testing.assert_allclose(half, display.leave_one_out_std_error, atol=1e-9)


def test_lines_and_ticks_carry_the_numbers(compared):
    _, _, display = compared
    display.plot()
    for criterion, scores in display.scores.items():
        np.testing.assert_array_equal(display.lines_[criterion].get_data(), [display.n_components, scores])
    labels = [text.get_text() for text in display.axes_[-1, 0].get_xticklabels()]
    occupied = dict(zip(display.n_components.tolist(), display.n_occupied.tolist(), strict=True))
    assert labels == [f"{k}" if k == n else f"{k}\n({n})" for k, n in occupied.items()]
    written = {text.get_text() for text in display.axes_[1, 0].texts}
    below = display.scores["leave_one_out"] - display.scores["leave_one_out"].max()
    expected = {f"\N{MINUS SIGN}{-b:.{1 if b > -100 else 0}f}" for b in below if b < 0}
    assert written == expected


def test_the_tables_carry_the_numbers(compared):
    _, _, display = compared
    header, *lines = repr(display).split("\n")[1:]
    assert re.split(r"\s{2,}", header.strip()) == [
        "K",
        "occupied",
        "lower bound",
        "all labellings",
        "leave-one-out",
        "difference",
    ]
    table = ET.fromstring(display._repr_html_()).find("table")
    rows = [["".join(cell.itertext()) for cell in row] for row in table.find("tbody")]
    assert [re.split(r"\s{2,}", line.strip().replace("*", "")) for line in lines] == rows
    expected = np.column_stack([display.n_components, display.n_occupied, *display.scores.values()])
    np.testing.assert_allclose(np.array([row[:5] for row in rows], dtype=float), expected, atol=0.051)
    for i, row in enumerate(table.find("tbody")):
        bold = [bool(cell.findall("b")) for cell in row][2:5]
        assert bold == [best == display.n_components[i] for best in display.best_.values()]


def test_fits_in_trouble_are_marked_and_noted():
    def start(X, n_components, random_state):
        two = n_components == 2
        return coincident(X, 2, None) if two else random_state.dirichlet(np.ones(n_components), len(X))

    estimator = mixture({**DIRICHLET, "init_params": start, "solver": "coordinate_ascent", "max_iter": 2})
    display = ModelChoiceDisplay.from_estimator(estimator, X, n_components=[1, 2, 3])
    assert display.converged.tolist() == [True, True, False]
    assert display.strict_optimum[:2].tolist() == [True, False]
    np.testing.assert_array_equal(np.isnan(display.scores["leave_one_out"]), ~display.strict_optimum)
    assert not np.isnan(display.scores["lower_bound"]).any()
    assert any("no strict local optimum" in note for note in display.notes[2])
    assert any("did not converge" in note for note in display.notes[3])
    page = ET.fromstring(display._repr_html_())
    shown = [item.text for item in page.iter("li")]
    assert shown == [f"K = {k}: {note}" for k, notes in display.notes.items() for note in notes]
    for table in (repr(display), ET.tostring(page.find("table"), encoding="unicode")):
        assert table.count("no strict optimum") == np.sum(~display.strict_optimum)
        assert table.count("not converged") == 1
    for panel in display.axes_.flat:
        (cross,) = [line for line in panel.lines if line.get_marker() == "x"]
        assert cross.get_xdata().tolist() == display.n_components[~display.strict_optimum].tolist()
        hollow = [line for line in panel.lines if line.get_markerfacecolor() == "white"]
        assert hollow
        assert all(line.get_xdata().tolist() == [3] for line in hollow)
    legend = [text.get_text() for text in display.legend_.get_texts()]
    assert legend[-2:] == ["not converged", "no strict optimum"]
    # also where no leave-one-out score is asked for
    bounds = ModelChoiceDisplay.from_estimator(estimator, X, n_components=[1, 2], criteria=["lower_bound"])
    assert bounds.strict_optimum.tolist() == [True, False]
    assert bounds.best_ == {"lower_bound": 1}


def test_a_fit_that_fails_is_missing_unless_all_do():
    def start(X, n_components, random_state):
        if n_components == 2:
            raise ValueError("There is no start for two.")
        return np.eye(n_components)[np.arange(len(X)) % n_components]

    estimator = LRVBGaussianMixture(init_params=start)
    display = ModelChoiceDisplay.from_estimator(
        estimator, X, n_components=[1, 2, 3], criteria=["lower_bound"]
    )
    assert list(display.estimators_) == [1, 3]
    assert np.isnan(display.scores["lower_bound"]).tolist() == [False, True, False]
    assert display.notes == {2: ["There is no start for two."]}
    assert repr(display).split("\n")[3].endswith("failed")
    with pytest.raises(ValueError, match="There is no start for two"):
        ModelChoiceDisplay.from_estimator(estimator, X, n_components=[2])


def test_warnings_of_converged_fits_are_gathered_into_one():
    with pytest.warns(UserWarning, match="n_components = 1, 2 warned") as caught:
        display = ModelChoiceDisplay.from_estimator(
            LRVBGaussianMixture(random_state=0), 1e-4 * X, n_components=[1, 2], criteria=["lower_bound"]
        )
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert display.notes[1][0] in str(caught[0].message)
    assert "see notes" in repr(display)


def test_criteria_are_those_that_apply():
    options = {"n_components": [1, 2]}
    sticks = ModelChoiceDisplay.from_estimator(mixture({}), pd.DataFrame(X, columns=["a", "b"]), **options)
    assert list(sticks.scores) == ["lower_bound", "leave_one_out"]
    assert sticks.estimators_[1].feature_names_in_.tolist() == ["a", "b"]
    flat = ModelChoiceDisplay.from_estimator(mixture({"prior": "flat"}), X, **options)
    assert list(flat.scores) == ["leave_one_out"]
    assert flat.axes_.shape == (1, 1)
    with pytest.raises(
        ValueError, match=r"'all_labellings' is undefined, since components are not exchangeable"
    ):
        ModelChoiceDisplay.from_estimator(mixture({}), X, criteria=["all_labellings"], **options)
    for criterion in ("all_labellings", "lower_bound"):
        with pytest.raises(ValueError, match=f"'{criterion}' is undefined, since prior='flat'"):
            ModelChoiceDisplay.from_estimator(mixture({"prior": "flat"}), X, criteria=[criterion], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_components": 3},
            r"n_components must list one or more positive integers, as range\(1, 9\), got 3",
        ),
        ({"n_components": []}, "n_components must list"),
        ({"n_components": [0, 1]}, "n_components must list"),
        ({"n_components": [True]}, "n_components must list"),
        ({"n_components": [121]}, "n_components goes up to 121, more than the 120 rows of X"),
        (
            {"criteria": ["bic"]},
            "criteria must list one or more of lower_bound, all_labellings, leave_one_out",
        ),
        ({"criteria": "all_labellings"}, "criteria must list"),
        ({"criteria": []}, "criteria must list"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ModelChoiceDisplay.from_estimator(mixture({}), X, **options)


def test_numbers_of_components_come_from_any_iterable():
    display = ModelChoiceDisplay.from_estimator(
        mixture({}), X, n_components=(k for k in (2, 1, 2)), criteria=["lower_bound"]
    )
    assert display.n_components.tolist() == [1, 2]


def test_starts_for_one_number_of_components_are_refused():
    with pytest.raises(ValueError, match="init_params is an array"):
        ModelChoiceDisplay.from_estimator(mixture({"init_params": coincident(X, 2, None)}), X)


def test_rows_of_weight_zero_have_no_part_in_leave_one_out():
    rows, weights = np.vstack([X, [1e300, 0.0]]), np.append(np.ones(len(X)), 0.0)
    display = ModelChoiceDisplay.from_estimator(
        mixture({}), rows, n_components=[1, 2], sample_weight=weights, criteria=["leave_one_out"]
    )
    without = ModelChoiceDisplay.from_estimator(
        mixture({}), X, n_components=[1, 2], criteria=["leave_one_out"]
    )
    np.testing.assert_allclose(display.scores["leave_one_out"], without.scores["leave_one_out"], rtol=1e-12)
    np.testing.assert_allclose(display.leave_one_out_std_error, without.leave_one_out_std_error, rtol=1e-9)
