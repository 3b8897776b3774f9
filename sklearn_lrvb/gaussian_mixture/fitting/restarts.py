"""Several starts of one fit: all are tried for a few steps, and the promising ones are run to the end.

`initialization` makes the starting responsibilities, and `ascent` takes the steps.
"""

from dataclasses import dataclass
from math import ceil

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
                fit = run()
            except DegenerateComponentError as error:
                self.progress.fail(error)
                failures.append(error)
                return None
            return fit

        def finished(fit):
            fit = self._finished(fit)
            self.progress.end(fit)
            return fit

        first, *others = starts
        ends = [attempted(0, lambda: finished(first(self.ascent)))]
        tried = [
            (number, attempted(number, lambda start=start: self._tried(start)))
            for number, start in enumerate(others, 1)
        ]
        promising = sorted((t for t in tried if t[1] is not None), key=lambda t: -t[1].lower_bound)
        n_ends = 1 + (ceil(_SHARE_FINISHED * len(others)) if self.accelerated else len(others))
        for number, fit in promising:
            if sum(end is not None for end in ends) == n_ends:
                break
            ends.append(attempted(number, lambda fit=fit: finished(fit)))
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
        self.progress.start(name)
        try:
            other = self._tried(start)
            if self.accelerated and other.lower_bound <= best.lower_bound:
                return best
            other = self._finished(other)
        except DegenerateComponentError as error:
            self.progress.fail(error)
            return best
        self.progress.end(other)
        return max(best, other, key=lambda fit: fit.lower_bound)

    def _tried(self, start):
        fit = start(self.ascent)
        if self.accelerated:
            fit = self.ascent.trial(fit)
        self.progress.pause(fit)
        return fit

    def _finished(self, fit):
        return self.ascent.newton(fit) if self.accelerated else self.ascent.coordinate_ascent(fit)
