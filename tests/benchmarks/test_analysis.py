"""Statistics of the benchmarks: exponents of growth, and calibration of standard deviations."""

import dataclasses

import numpy as np
from matplotlib import pyplot as plt
from scipy.special import ndtr

from benchmarks.analysis import growth_curves
from benchmarks.analysis.calibration import bias, coverage, largest_share, sd_ratio
from benchmarks.analysis.growth_curves import curves, draw


def _growing_rows():
    """Two passes that follow power laws after a fixed cost, the slow one at fewer sizes."""
    for n_samples in (10.0, 100.0, 1e3, 1e4):
        row = {"grows": "n_samples", "n_samples": n_samples, "threads": 1.0, "flops": 3 * n_samples**2}
        row["fast"] = 1e-6 * max(n_samples, 100.0) ** 1.5
        row["slow"] = 1e-6 * n_samples**2 if n_samples < 1e3 else None
        row["once"] = 1.0 if n_samples == 10 else None
        yield row
        yield row | {"threads": 2.0, "fast": 5.0}


GROWING_PASSES = {"fast pass": ("fast", "flops"), "slow pass": ("slow", None), "one point": ("once", None)}


def test_curves_find_the_exponents_of_power_laws_on_the_fewest_threads():
    found = curves(list(_growing_rows())[::-1], ("n_samples", "n_features"), GROWING_PASSES)
    fast, slow = found
    assert (fast.what, slow.what) == ("fast pass", "slow pass")
    np.testing.assert_array_equal(fast.sizes, [10, 100, 1e3, 1e4])
    np.testing.assert_array_equal(slow.sizes, [10, 100])
    np.testing.assert_allclose([fast.exponent, fast.flops_exponent, slow.exponent], [1.5, 2.0, 2.0])
    assert slow.flops_exponent is None
    np.testing.assert_allclose(slow.fitted, [slow.sizes, slow.seconds])


def test_a_figure_tells_any_number_of_curves_apart(monkeypatch, tmp_path):
    fast, slow = curves(list(_growing_rows()), ("n_samples",), GROWING_PASSES)
    many = [dataclasses.replace((fast, slow)[i % 2], what=f"pass {i}") for i in range(12)]
    drawn = []
    monkeypatch.setattr(growth_curves, "saved", lambda figure, path: drawn.append(figure))
    draw(many, {"n_samples": "rows N", "n_features": "features P"}, tmp_path / "many.png")
    panel, empty = drawn[0].axes
    lines = [line for line in panel.lines if line.get_label().startswith("pass ")]
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(many)
    for line, curve in zip(lines, many, strict=True):
        np.testing.assert_array_equal(line.get_xydata().T, [curve.sizes, curve.seconds])
    assert not empty.lines
    assert "fewer than two sizes" in empty.texts[0].get_text()
    plt.close(drawn[0])


def test_intervals_of_a_normal_mean_hold_it_as_often_as_the_normal_distribution_says():
    rng = np.random.default_rng(0)
    errors = rng.normal(scale=[1.0, 0.01, 100.0], size=(20_000, 3))
    claimed = np.broadcast_to([1.0, 0.01, 100.0], errors.shape)
    for factor in (1.0, 0.7, 1.3):
        share, se = coverage(errors, factor * claimed)
        expected = 2 * ndtr(1.959964 * factor) - 1
        assert abs(share - expected) < 4 * se
        np.testing.assert_allclose(se, np.sqrt(expected * (1 - expected) / errors.size), rtol=0.05)
        ratio, se = sd_ratio(errors, factor * claimed)
        assert abs(ratio - factor) < 4 * se
        np.testing.assert_allclose(se, factor / np.sqrt(2 * errors.size), rtol=0.05)


def test_statistics_of_coverage_know_that_parameters_of_a_data_set_depend_on_each_other():
    rng = np.random.default_rng(0)
    errors, sds = rng.normal(size=(300, 1)), rng.uniform(0.5, 1.5, size=(300, 1))
    for statistic in (coverage, sd_ratio):
        repeated = statistic(np.repeat(errors, 7, axis=1), np.repeat(sds, 7, axis=1))
        np.testing.assert_allclose(repeated, statistic(errors, sds), rtol=1e-12)


def test_the_error_of_a_ratio_of_sds_is_that_of_the_ratio_over_many_studies():
    rng = np.random.default_rng(0)
    errors = 1.0 + rng.normal(size=(1000, 400, 1))
    sds = np.exp(0.3 * rng.normal(size=errors.shape) - 0.2 * errors)  # varying with the estimate
    found = np.array([sd_ratio(*study) for study in zip(errors, sds, strict=True)])
    np.testing.assert_allclose(found[:, 1].mean(), found[:, 0].std(ddof=1), rtol=0.1)


def test_bias_is_in_sds_of_the_estimates():
    errors = np.array([[1.0, 10.0], [-1.0, -10.0], [1.0, 10.0], [-1.0, -10.0]])
    sds = errors.std(axis=0, ddof=1)
    np.testing.assert_allclose(bias(errors + 0.3 * sds), 0.3, rtol=1e-12)


def test_the_largest_share_is_that_of_the_data_set_that_is_off():
    errors = np.zeros((50, 2))
    errors[:, 0] = np.resize([1.0, -1.0], 50)
    np.testing.assert_allclose(largest_share(errors[:, :1]), 1 / 50, rtol=1e-12)
    errors[7, 1] = -3.0
    np.testing.assert_allclose(largest_share(errors), 1 - 1 / 50, rtol=1e-12)
