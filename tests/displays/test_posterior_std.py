"""Standard deviations: what is drawn is what the estimator says, and axes are readable."""

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, assert_equal_to_rounding, fitted, overlapping

from sklearn_lrvb.displays import PosteriorStdDisplay
from sklearn_lrvb.gaussian.answers.targets import PARAMETERS

each_covariance_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
X = overlapping()


def of_type(covariance_type):
    return fitted({"covariance_type": covariance_type})


@each_covariance_type
def test_standard_deviations_are_the_estimators(covariance_type):
    estimator = of_type(covariance_type)
    posterior = estimator.posterior(method="lrvb")
    display = PosteriorStdDisplay.from_estimator(estimator, posterior)
    mean_field = np.sqrt(np.diag(estimator.posterior(method="mean_field").covariance()))
    np.testing.assert_allclose(display.std, estimator.posterior_std_, rtol=1e-9)
    np.testing.assert_allclose(display.mean_field_std, mean_field, rtol=1e-12)
    assert list(display.mean_field_points_) == list(PARAMETERS)
    for target, points in display.mean_field_points_.items():
        own = np.char.startswith(estimator.posterior_names_, target[:-1])
        expected = np.column_stack([display.std[own], mean_field[own]])
        assert_equal_to_rounding(points.get_offsets(), expected)
    for target in ("weights", "covariances"):
        display = PosteriorStdDisplay.from_estimator(estimator, posterior, target=target)
        table = posterior.summary(target)
        np.testing.assert_allclose(display.std, table["sd"], rtol=1e-12)
        np.testing.assert_allclose(display.mean_field_std, table["mean_field_sd"], rtol=1e-12)


def test_both_are_drawn_over_a_reference():
    estimator = of_type("full")
    posterior = estimator.posterior(method="lrvb")
    reference = 1.1 * np.sqrt(np.diag(posterior.covariance(["precisions", "means"])))
    display = PosteriorStdDisplay.from_estimator(
        estimator, posterior, target=["precisions", "means"], reference=reference.tolist()
    )
    assert display.ax_.get_xlabel() == "reference standard deviation"
    assert list(display.points_) == list(display.mean_field_points_) == ["precisions", "means"]
    for target, own in (("precisions", slice(0, 6)), ("means", slice(6, 10))):
        filled, hollow = display.points_[target], display.mean_field_points_[target]
        np.testing.assert_array_equal(filled.get_offsets().T, [reference[own], display.std[own]])
        np.testing.assert_array_equal(hollow.get_offsets().T, [reference[own], display.mean_field_std[own]])
        assert len(filled.get_facecolors()) == 1
        assert len(hollow.get_facecolors()) == 0
        np.testing.assert_array_equal(hollow.get_edgecolors(), filled.get_edgecolors())


def test_one_component_lies_on_the_diagonal_but_for_what_does_not_vary():
    # mean-field theory is exact there under a fixed prior, and the one log weight is zero
    model = {"weight_concentration_prior_type": "dirichlet_distribution", "reg_covar": 0.0, "prior": "fixed"}
    display = PosteriorStdDisplay.from_estimator(fitted(model, n_components=1))
    assert list(display.mean_field_points_) == ["means", "precisions"]
    for points in display.mean_field_points_.values():
        lrvb, mean_field = np.asarray(points.get_offsets()).T
        np.testing.assert_allclose(mean_field, lrvb, rtol=1e-9)
    low, high = display.diagonal_.get_data()
    np.testing.assert_array_equal(low, high)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.0, 30.0, 1e6])
def test_logarithmic_axes_have_a_few_readable_ticks(factor):
    std = np.geomspace(0.043, 0.043 * factor, 4)
    display = PosteriorStdDisplay(std=std, mean_field_std=std, targets=np.repeat(["means"], 4)).plot()
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


def test_ratios_are_those_to_the_x_axis():
    estimator = of_type("full")
    display = PosteriorStdDisplay.from_estimator(estimator, target="means", ratio=True)
    x, y = np.asarray(display.mean_field_points_["means"].get_offsets()).T
    np.testing.assert_array_equal(x, display.std)
    np.testing.assert_allclose(y, display.mean_field_std / display.std, rtol=1e-15)
    assert display.diagonal_.get_ydata() == [1.0, 1.0]
    assert display.ax_.get_ylabel() == "mean-field standard deviation / LRVB"
    reference = 2.0 * display.std
    both = PosteriorStdDisplay.from_estimator(estimator, target="means", reference=reference, ratio=True)
    np.testing.assert_allclose(both.points_["means"].get_offsets()[:, 1], 0.5, rtol=1e-15)


@pytest.mark.parametrize("ratio", [False, True])
def test_the_weight_of_a_single_component_leaves_nothing_to_draw(ratio):
    model = fitted({}, n_components=1)
    display = PosteriorStdDisplay.from_estimator(model, target="weights", ratio=ratio)
    assert display.mean_field_points_ == {}
    assert display.legend_.get_texts() == []


@pytest.mark.parametrize("ratio", [False, True])
def test_what_is_not_finite_is_left_out(ratio):
    estimator = of_type("full")
    reference = np.array([np.inf, np.nan, 1.0, 2.0])
    display = PosteriorStdDisplay.from_estimator(estimator, target="means", reference=reference, ratio=ratio)
    np.testing.assert_array_equal(display.points_["means"].get_offsets()[:, 0], [1.0, 2.0])
