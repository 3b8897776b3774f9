"""Experiments on speed: they run, are reported, and measure what they say."""

import pytest


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* move the fit further than one step")
def test_every_experiment_is_on_the_page_with_its_figure(check_page):
    check_page("speed")


@pytest.mark.slow
def test_both_sides_of_a_fit_are_on_one_path(measured):
    rows = [row for row in measured("fit") if row["covariance_type"] == "full"]
    assert rows
    for row in rows:
        assert row["plain_sweeps"] == row["theirs_sweeps"], row["problem"]
        assert row["newton_distance"] < 1e-3
