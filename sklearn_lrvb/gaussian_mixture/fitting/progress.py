"""The messages that ``verbose`` prints while a mixture is fitted, called by `ascent` and `restarts`."""

from time import perf_counter


class Progress:
    """Prints the messages of a fit, worded as scikit-learn's.

    Parameters
    ----------
    verbose : int, 0 for nothing, 1 for the steps, more for their times and gains too
    interval : int, steps between prints
    """

    def __init__(self, verbose, interval):
        self._verbose = verbose
        self._interval = interval
        self._started = self._last = perf_counter()

    def start(self, name):
        """Report that a start begins, given its number or a name."""
        if self._verbose:
            print(f"Initialization {name}")
            self._started = self._last = perf_counter()

    def step(self, n_iter, gain):
        """Report a step and its gain in the lower bound."""
        if not self._verbose or n_iter % self._interval:
            return
        now = perf_counter()
        detail = f"\t time lapse {now - self._last:.5f}s\t ll change {gain:.5f}"
        print(f"  Iteration {n_iter}{detail if self._verbose > 1 else ''}")
        self._last = now

    def move(self, n_iter, name):
        """Report a move between optima, which counts as a step."""
        if self._verbose:
            print(f"  Iteration {n_iter}\t {name}")

    def fail(self, error):
        """Report that a start ended in an error."""
        if self._verbose:
            print(f"Initialization failed: {error}")

    def pause(self, fit):
        """Report that a start was tried; it may be continued once all others were."""
        self._report_end(fit, "tried")

    def end(self, fit):
        """Report the end of a start that was run to its end."""
        self._report_end(fit, "converged" if fit.converged else "did not converge")

    def _report_end(self, fit, outcome):
        if not self._verbose:
            return
        lapse = perf_counter() - self._started
        detail = f" time lapse {lapse:.5f}s\t lower bound {fit.lower_bound:.5f}."
        print(f"Initialization {outcome}.{detail if self._verbose > 1 else ''}")
