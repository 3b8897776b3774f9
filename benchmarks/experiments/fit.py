"""Time to within 1e-3 posterior standard deviations of the optimum, and to convergence, from one start."""

import functools
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from measuring import summary
from problems import FIT
from rivals import PARAMETERS, Ours, Theirs, kmeans_responsibilities, parameters

ACCURACY = 1e-3  # posterior standard deviations, of every weight, mean and precision
CONVERGED = 1e-6  # that our fit promises to have reached when it says so
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

    accuracy: float = ACCURACY

    def distance(self, mixture):
        """Largest distance of a mixture's parameters, in posterior standard deviations."""
        found = parameters(mixture)
        return max(np.max(np.abs(found[n] - self.values[n]) / self.stds[n]) for n in PARAMETERS)

    def is_near(self, mixture):
        """Whether a mixture is within the accuracy."""
        return self.distance(mixture) <= self.accuracy

    def moved_to(self, mixture):
        """A goal at the mixture, with the same accuracy in the same standard deviations."""
        return replace(self, values=parameters(mixture))


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
    """The first state near the goal, or else near where the sweeps come to rest.

    After one sweep at least; found by doubling and bisection, as distances fall.
    """
    states = [State(0, start), State(1, rival.advanced(start, X, 1))]
    while not goal.is_near(states[-1].mixture):
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
    low, high = next(pair for pair in pairwise(states) if goal.is_near(pair[1].mixture))
    while high.n_sweeps - low.n_sweeps > 1:
        middle = _further(rival, X, low, (high.n_sweeps - low.n_sweeps) // 2)
        if goal.is_near(middle.mixture):
            high = middle
        else:
            low = middle
    return high


def steps_to(ours, X, responsibilities, goal, most_steps):
    """Steps of our default fit until it is near the goal."""
    for n_steps in range(1, most_steps):
        if goal.is_near(ours.fit(X, responsibilities, max_iter=n_steps)):
            return n_steps
    return most_steps


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
    starts = {rival: rival.start(X, responsibilities) for rival in (ours, theirs)}
    arrivals = {rival: sweeps_to(rival, X, start, goal, most_sweeps) for rival, start in starts.items()}
    converged = sweeps_to(ours, X, starts[ours], replace(goal, accuracy=CONVERGED), most_sweeps)
    newton = ours.fit(X, responsibilities)
    steps = steps_to(ours, X, responsibilities, goal, newton.n_iter_)
    default = theirs.fit(X, responsibilities)
    bounds = {
        "newton": newton.lower_bound_,
        "plain": ours.lower_bound(arrivals[ours].state.mixture, X),
        "theirs": theirs.lower_bound(arrivals[theirs].state.mixture, X),
    }
    return {
        **_times(X, responsibilities, ours, theirs, steps, arrivals, converged, settings),
        "newton_near_steps": steps,
        "newton_iterations": newton.n_iter_,
        "newton_converged": newton.converged_,
        "newton_decrement": newton.newton_decrement_,
        "newton_distance": goal.distance(newton),
        "plain_sweeps": arrivals[ours].state.n_sweeps,
        "plain_reached": arrivals[ours].reached,
        "converged_sweeps": converged.state.n_sweeps,
        "converged_reached": converged.reached,
        "theirs_sweeps": arrivals[theirs].state.n_sweeps,
        "theirs_reached": arrivals[theirs].reached,
        "default_sweeps": default.n_iter_,
        "default_distance": goal.distance(default),
        "default_converged": default.converged_,
        "same_optimum": _same_optimum(bounds, [arrival.reached for arrival in arrivals.values()]),
        **_elsewhere(bounds, "plain"),
        **_elsewhere(bounds, "theirs"),
    }


def _times(X, responsibilities, ours, theirs, steps, arrivals, converged, settings):
    """Columns of seconds; of sweeps from the time of one, over `_TIMED_SWEEPS` of them at most."""
    sides = {
        "plain": (ours, arrivals[ours].state.n_sweeps),
        "converged": (ours, converged.state.n_sweeps),
        "theirs": (theirs, arrivals[theirs].state.n_sweeps),
    }

    def swept(rival, n_sweeps):
        return rival.advanced(rival.start(X, responsibilities), X, min(n_sweeps, _TIMED_SWEEPS))

    times = settings.clock.interleaved(
        {
            "newton_near": lambda: ours.fit(X, responsibilities, max_iter=steps),
            "newton": lambda: ours.fit(X, responsibilities),
            "newton_and_stds": lambda: ours.fit(X, responsibilities).posterior_std_,
            "default": lambda: theirs.fit(X, responsibilities),
            **{side: functools.partial(swept, *sweeps) for side, sweeps in sides.items()},
        }
    )
    for side, (_, n_sweeps) in sides.items():
        times[side] = [seconds * max(1, n_sweeps / _TIMED_SWEEPS) for seconds in times[side]]
    return summary(times)


def _elsewhere(bounds, side):
    """Columns of a row: how a side's lower bound differs from that of our default fit."""
    beyond = bounds[side] - bounds["newton"]
    return {f"{side}_bound_beyond_newton": beyond, f"{side}_elsewhere": abs(beyond) >= _SAME_BOUND}


def _same_optimum(bounds, reached):
    if not all(reached):
        return "not all there"
    return "yes" if np.ptp(list(bounds.values())) < _SAME_BOUND else "no"
