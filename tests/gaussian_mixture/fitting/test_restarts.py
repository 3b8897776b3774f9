"""Several starts: the first as it would be alone, the better half of the others, and failures made up for."""

from dataclasses import dataclass, field
from math import ceil

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, mixture, three_blobs

from sklearn_lrvb.gaussian_mixture.callbacks import NO_TASK, Lines, Progress
from sklearn_lrvb.gaussian_mixture.fitting.ascent import Race
from sklearn_lrvb.gaussian_mixture.posterior.degenerate_components import DegenerateComponentError


@dataclass(frozen=True)
class Bound:
    """All that the race knows of a fit."""

    number: int
    lower_bound: float
    converged: bool = True
    stopped: bool = False


@dataclass
class FakeAscent:
    """Fits whose bounds are given: when tried, and at the end; None fails."""

    tried: list
    ends: list
    finished: list = field(default_factory=list)

    def start_at(self, number):
        return Bound(number, -np.inf)

    def trial(self, fit):
        return self._at(fit.number, self.tried[fit.number])

    def coordinate_ascent(self, fit):
        return self.newton(fit)

    def newton(self, fit):
        self.finished.append(fit.number)
        return self._at(fit.number, self.ends[fit.number])

    def _at(self, number, bound):
        if bound is None:
            raise DegenerateComponentError(f"start {number}")
        return Bound(number, bound)


def race(tried, ends, accelerated=True):
    ascent = FakeAscent(tried, ends)
    starts = [lambda ascent, number=number: ascent.start_at(number) for number in range(len(ends))]
    return ascent, Race(ascent, accelerated, Progress(Lines(0, 1), NO_TASK)).best(starts)


def test_the_first_and_the_better_half_of_the_others_are_finished():
    ascent, best = race(tried=[None, 1.0, 5.0, 3.0, 2.0, 4.0], ends=[0.0, 9.0, 6.0, 7.0, 8.0, 5.0])
    assert ascent.finished == [0, 2, 5, 3]
    assert best == Bound(3, 7.0)


def test_one_start_is_not_tried():
    ascent, best = race(tried=[None], ends=[1.0])
    assert (ascent.finished, best) == ([0], Bound(0, 1.0))


def test_all_starts_of_plain_sweeps_are_finished():
    ascent, best = race(tried=[None] * 4, ends=[1.0, 2.0, 4.0, 3.0], accelerated=False)
    assert sorted(ascent.finished) == [0, 1, 2, 3]
    assert best == Bound(2, 4.0)


def test_failures_are_made_up_for():
    ascent, best = race(tried=[None, 3.0, None, 2.0, 1.0], ends=[None, None, 0.0, 5.0, 6.0])
    assert ascent.finished == [0, 1, 3, 4]
    assert best == Bound(4, 6.0)
    with pytest.raises(DegenerateComponentError, match="start 1"):
        race(tried=[None, 3.0, None], ends=[None, None, None])


@pytest.mark.parametrize(
    ("covariance_type", "init_params"), list(zip(COVARIANCE_TYPES, 2 * ("kmeans", "random"), strict=True))
)
@pytest.mark.parametrize(
    ("solver", "moves"),
    [("newton", "auto"), ("newton", None), ("coordinate_ascent", "auto")],  # Sweeps alone make no moves.
)
def test_several_starts_are_never_worse_than_one(covariance_type, solver, init_params, moves):
    X = three_blobs(200)
    model = {"covariance_type": covariance_type, "solver": solver, "init_params": init_params, "tol": 1e-5}
    model["moves"] = moves
    gains = []
    for seed in (1, 2):
        one, four = (
            mixture(model, 5, max_iter=3000, n_init=n_init).set_params(random_state=seed).fit(X)
            for n_init in (1, 4)
        )
        assert four.converged_
        gains.append(four.lower_bound_ - one.lower_bound_)
    assert min(gains) > -1e-9
    if init_params == "random" and covariance_type == "full" and (solver, moves) != ("newton", "auto"):
        assert max(gains) > 0.1


def test_the_number_of_ends_said_in_the_documentation(capsys):
    mixture({"init_params": "random"}, 2, n_init=6, verbose=1, verbose_interval=1000).fit(three_blobs(200))
    said = capsys.readouterr().out
    assert said.count("Initialization tried.") == 5
    assert said.count("Initialization converged.") == 1 + ceil(5 / 2)
