"""Time to within 1e-3 posterior standard deviations of the optimum, from the same start."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from measuring import summary
from problems import FIT
from rivals import PARAMETERS, Ours, Theirs, kmeans_responsibilities, parameters

ACCURACY = 1e-3  # posterior standard deviations, of every weight, mean and precision
MOST_SWEEPS = 20_000
_TIMED_SWEEPS = 200
_AT_REST = 1e-6  # posterior standard deviations by which half of all sweeps moved a state at rest
_LEAST_SWEEPS_TO_REST = 64
_SAME_BOUND = 0.1  # nats


@dataclass(frozen=True)
class Goal:
    """Where a fit should end: parameters and their posterior standard deviations, by name."""

    values: dict
    stds: dict

    def distance(self, mixture):
        """Largest distance of a mixture's parameters, in posterior standard deviations."""
        found = parameters(mixture)
        return max(np.max(np.abs(found[n] - self.values[n]) / self.stds[n]) for n in PARAMETERS)

    def moved_to(self, mixture):
        """A goal at the mixture, measured by the same standard deviations."""
        return Goal(parameters(mixture), self.stds)


@dataclass(frozen=True)
class State:
    """A mixture after a number of sweeps."""

    n_sweeps: int
    mixture: object


@dataclass(frozen=True)
class Arrival:
    """The first state within reach of a goal, or the last one tried."""

    state: State
    reached: bool


def sweeps_to(rival, X, start, goal, most_sweeps):
    """The first state within `ACCURACY` of the goal, or else of where the sweeps come to rest.

    After one sweep at least; found by doubling and bisection, as distances fall.
    """
    states = [State(0, start), State(1, rival.advanced(start, X, 1))]
    while goal.distance(states[-1].mixture) > ACCURACY:
        last = states[-1]
        if last.n_sweeps >= most_sweeps:
            return Arrival(last, False)
        states.append(_further(rival, X, last, min(last.n_sweeps, most_sweeps - last.n_sweeps)))
        here = goal.moved_to(states[-1].mixture)
        if states[-1].n_sweeps >= _LEAST_SWEEPS_TO_REST and here.distance(last.mixture) < _AT_REST:
            goal = here
    return Arrival(_first_within(rival, X, states, goal), True)


def _further(rival, X, state, n_sweeps):
    return State(state.n_sweeps + n_sweeps, rival.advanced(state.mixture, X, n_sweeps))


def _first_within(rival, X, states, goal):
    """Bisection between the last state out of reach and the first within."""
    low, high = next(pair for pair in pairwise(states) if goal.distance(pair[1].mixture) <= ACCURACY)
    while high.n_sweeps - low.n_sweeps > 1:
        middle = _further(rival, X, low, (high.n_sweeps - low.n_sweeps) // 2)
        if goal.distance(middle.mixture) <= ACCURACY:
            high = middle
        else:
            low = middle
    return high


def measure(settings):
    return settings.rows(FIT, _row)


def _row(problem, settings):
    X = problem.simulate()
    responsibilities = kmeans_responsibilities(X, problem.n_components)
    ours = Ours(problem.n_components, problem.covariance_type, settings.threads)
    optimum = ours.fit(X, responsibilities, tol=1e-12, max_iter=1000)
    try:
        stds = {name: getattr(optimum, name + "_std_") for name in PARAMETERS}
    except ValueError as error:
        return {"note": str(error)}
    goal = Goal(parameters(optimum), stds)
    most_sweeps = 200 if settings.quick else MOST_SWEEPS
    theirs = Theirs(problem.n_components, problem.covariance_type)
    arrivals = {
        rival: sweeps_to(rival, X, rival.start(X, responsibilities), goal, most_sweeps)
        for rival in (ours, theirs)
    }
    newton = ours.fit(X, responsibilities)
    default = theirs.fit(X, responsibilities)
    bounds = {
        "newton": newton.lower_bound_,
        "plain": ours.lower_bound(arrivals[ours].state.mixture, X),
        "theirs": theirs.lower_bound(arrivals[theirs].state.mixture, X),
    }
    return {
        **_times(X, responsibilities, ours, theirs, arrivals, settings),
        "newton_iterations": newton.n_iter_,
        "newton_converged": newton.converged_,
        "newton_decrement": newton.newton_decrement_,
        "newton_distance": goal.distance(newton),
        "plain_sweeps": arrivals[ours].state.n_sweeps,
        "plain_reached": arrivals[ours].reached,
        "theirs_sweeps": arrivals[theirs].state.n_sweeps,
        "theirs_reached": arrivals[theirs].reached,
        "default_sweeps": default.n_iter_,
        "default_distance": goal.distance(default),
        "default_converged": default.converged_,
        "same_optimum": _same_optimum(bounds, [arrival.reached for arrival in arrivals.values()]),
        **_elsewhere(bounds, "plain"),
        **_elsewhere(bounds, "theirs"),
    }


def _times(X, responsibilities, ours, theirs, arrivals, settings):
    """Columns of seconds; theirs from the time of a sweep, over `_TIMED_SWEEPS` of them at most."""
    plain_sweeps, their_sweeps = arrivals[ours].state.n_sweeps, arrivals[theirs].state.n_sweeps
    timed = min(their_sweeps, _TIMED_SWEEPS)
    plain = {"solver": "coordinate_ascent", "max_iter": plain_sweeps, "tol": 0.0}
    begin = theirs.start(X, responsibilities)
    times = settings.clock.interleaved(
        {
            "newton": lambda: ours.fit(X, responsibilities),
            "newton_and_stds": lambda: ours.fit(X, responsibilities).posterior_std_,
            "plain": lambda: ours.fit(X, responsibilities, **plain),
            "their_start": lambda: theirs.start(X, responsibilities),
            "their_timed_sweeps": lambda: theirs.advanced(begin, X, timed),
            "default": lambda: theirs.fit(X, responsibilities),
        }
    )
    rounds = zip(times["their_start"], times.pop("their_timed_sweeps"), strict=True)
    times["theirs"] = [start + sweeps * their_sweeps / timed for start, sweeps in rounds]
    return summary(times)


def _elsewhere(bounds, side):
    """Columns of a row: how a side's lower bound differs from that of our default fit."""
    beyond = bounds[side] - bounds["newton"]
    return {f"{side}_bound_beyond_newton": beyond, f"{side}_elsewhere": abs(beyond) >= _SAME_BOUND}


def _same_optimum(bounds, reached):
    if not all(reached):
        return "not all there"
    return "yes" if np.ptp(list(bounds.values())) < _SAME_BOUND else "no"
