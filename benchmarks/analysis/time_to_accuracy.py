"""After how many iterations or steps is a fit within some posterior standard deviations of an optimum?"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

PARAMETERS = ("weights", "means", "precisions")
# posterior standard deviations by which half of all iterations may move a state that is at rest
_AT_REST = 1e-6
_LEAST_ITERATIONS_TO_REST = 64


def parameters(mixture):
    """Posterior means of weights, means and precisions, by name."""
    return {name: getattr(mixture, name + "_") for name in PARAMETERS}


@dataclass(frozen=True)
class Goal:
    """Where a fit should end.

    Attributes
    ----------
    values, stds : dict, parameters and their posterior standard deviations by name
    accuracy : float, distance from the values in posterior standard deviations that is near enough
    """

    values: dict
    stds: dict
    accuracy: float

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
    """A mixture after a number of iterations."""

    n_iterations: int
    mixture: object


@dataclass(frozen=True)
class Arrival:
    """The first state near a goal, or the last one tried."""

    state: State
    reached: bool


def iterations_to(rival, X, start, goal, most_iterations):
    """The first state near the goal, or near where the iterations come to rest if that is elsewhere.

    At least one iteration is done. As distances fall, the state is found by doubling the number of
    iterations, and then by bisection.

    Parameters
    ----------
    rival : `benchmarks.rivals.libraries.Rival`
    X : (n_samples, n_features)
    start : mixture, the state before the first iteration
    goal : Goal
    most_iterations : int

    Returns
    -------
    Arrival
    """
    states = [State(0, start), State(1, rival.advanced(start, X, 1))]
    while not goal.is_near(states[-1].mixture):
        last = states[-1]
        if last.n_iterations >= most_iterations:
            return Arrival(last, False)
        states.append(_further(rival, X, last, min(last.n_iterations, most_iterations - last.n_iterations)))
        here = goal.moved_to(states[-1].mixture)
        if states[-1].n_iterations >= _LEAST_ITERATIONS_TO_REST and here.distance(last.mixture) < _AT_REST:
            goal = here
    return Arrival(_first_near(rival, X, states, goal), True)


def _further(rival, X, state, n_iterations):
    return State(state.n_iterations + n_iterations, rival.advanced(state.mixture, X, n_iterations))


def _first_near(rival, X, states, goal):
    """Bisection between the last state that is not near the goal and the first one that is."""
    low, high = next(pair for pair in pairwise(states) if goal.is_near(pair[1].mixture))
    while high.n_iterations - low.n_iterations > 1:
        middle = _further(rival, X, low, (high.n_iterations - low.n_iterations) // 2)
        if goal.is_near(middle.mixture):
            high = middle
        else:
            low = middle
    return high


def steps_to(ours, X, responsibilities, goal, most_steps):
    """Number of steps of our default fit after which it is near the goal, at most ``most_steps``."""
    for n_steps in range(1, most_steps):
        if goal.is_near(ours.fit(X, responsibilities, max_iter=n_steps)):
            return n_steps
    return most_steps
