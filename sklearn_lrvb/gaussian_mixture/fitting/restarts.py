"""Several starts of one fit: all are tried for a few steps, and the promising ones are run to the end.

`initialization` makes the starting responsibilities, and `ascent` takes the steps.
"""

from dataclasses import dataclass
from math import ceil

from sklearn_lrvb.gaussian_mixture.fitting.ascent import ClimbStopped
from sklearn_lrvb.gaussian_mixture.posterior.degenerate_components import DegenerateComponentError

_SHARE_FINISHED = 1 / 2  # Share of the starts after the first that are run to the end.


@dataclass(frozen=True)
class Starts:
    """Runs a fit from several starts.

    Attributes
    ----------
    ascent : Ascent
    accelerated : bool, whether Newton's method and acceleration are used, or plain sweeps alone
    progress : Progress
    """

    ascent: object
    accelerated: bool
    progress: object

    def best(self, starts):
        """The state with the highest lower bound.

        The first start is run to the end, as it would be alone. The others are tried for a few steps, and
        the better half of them is run to the end; with plain sweeps all of them are, as in scikit-learn. So
        the result is never worse than that of the first.

        Parameters
        ----------
        starts : sequence of callables (Ascent) -> Fit, the state before the first step

        Returns
        -------
        fit : Fit

        Raises
        ------
        DegenerateComponentError
            Where all starts fail: the error of the last one.
        """
        failures = []

        def attempted(number, run):
            self.progress.start(number)
            try:
                return run()
            except DegenerateComponentError as error:
                self.progress.fail(error)
                failures.append(error)
                return None

        first, *others = enumerate(starts)
        ends, tried = [attempted(first[0], lambda: self._finished(first[1]))], []
        for number, start in others:
            if self.progress.is_stopped:
                break
            if self.accelerated:
                fit = attempted(number, lambda start=start: self._tried(start))
                tried += [(number, fit)] if fit is not None else []
            else:
                ends.append(attempted(number, lambda start=start: self._finished(start)))
        n_ends = 1 + ceil(_SHARE_FINISHED * len(others))
        for number, fit in sorted(tried, key=lambda one: -one[1].lower_bound):
            if self.progress.is_stopped or sum(end is not None for end in ends) == n_ends:
                self.progress.drop(number, fit)
            else:
                ends.append(attempted(number, lambda fit=fit: self._finished(lambda ascent: fit)))
        ends = [end for end in ends if end is not None]
        if not ends:
            raise failures[-1]
        return max(ends, key=lambda fit: fit.lower_bound)

    def better_of(self, best, start, name):
        """The better of a finished state and of one more start.

        The start is tried, and run to the end if its lower bound is the higher one by then; with plain sweeps
        it is run to the end in any case.

        Parameters
        ----------
        best : Fit
        start : callable (Ascent) -> Fit, the state before the first step
        name : str, how the start is reported

        Returns
        -------
        fit : Fit
        """
        if self.progress.is_stopped:
            return best
        self.progress.start(name)
        try:
            if self.accelerated:
                other = self._tried(start)
                if other.lower_bound <= best.lower_bound:
                    self.progress.drop(name, other)
                    return best
                other = self._finished(lambda ascent: other)
            else:
                other = self._finished(start)
        except DegenerateComponentError as error:
            self.progress.fail(error)
            return best
        return max(best, other, key=lambda fit: fit.lower_bound)

    def _tried(self, start):
        """The state after a few steps from a start."""
        fit = self._climbed(start, self.ascent.trial)
        self.progress.pause(fit)
        return fit

    def _finished(self, start):
        """The state at the end of the climb from a start."""
        to_end = self.ascent.newton if self.accelerated else self.ascent.coordinate_ascent
        fit = self._climbed(start, to_end)
        self.progress.end(fit)
        return fit

    def _climbed(self, start, climb):
        """The state at the end of a climb, or where a callback stopped it."""
        try:
            fit = start(self.ascent)
            return fit if fit.stopped else climb(fit)
        except ClimbStopped as stop:
            return stop.fit
