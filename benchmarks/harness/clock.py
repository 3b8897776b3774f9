"""Times of calls that are compared, measured in turn."""

import math
import statistics
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Clock:
    """Times calls in turn, so that a change in the machine's load meets all of them.

    Attributes
    ----------
    repeats : int, number of rounds
    shortest : float, least duration of one measurement in seconds: a shorter call is repeated within it
    longest : float, seconds after which no further round begins
    """

    repeats: int
    shortest: float = 0.05
    longest: float = 60.0

    def interleaved(self, calls):
        """Seconds of every call in every round: {name: callable} -> {name: list}."""
        times = {name: [] for name in calls}
        begin = perf_counter()
        for _ in range(self.repeats):
            for name, call in calls.items():
                times[name].append(self._seconds(call))
            if perf_counter() - begin > self.longest:
                break
        return times

    def once(self, calls):
        """Seconds of every call, each made once: {name: callable} -> {name: list of one}."""
        return {name: [_elapsed(call, 1)] for name, call in calls.items()}

    def _seconds(self, call):
        elapsed = _elapsed(call, 1)
        if elapsed >= self.shortest:
            return elapsed
        return _elapsed(call, math.ceil(self.shortest / elapsed))


def _elapsed(call, number):
    begin = perf_counter()
    for _ in range(number):
        call()
    return (perf_counter() - begin) / number


def summary(times):
    """Columns of a row: the least and the median of every call's seconds."""
    row = {}
    for name, seconds in times.items():
        row[f"{name}_seconds"] = min(seconds)
        row[f"{name}_median"] = statistics.median(seconds)
    return row
