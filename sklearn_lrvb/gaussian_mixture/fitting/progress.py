"""What ``verbose`` prints while a mixture is fitted."""

from time import perf_counter


class Progress:
    """Prints what ``verbose`` asks for, in scikit-learn's words.

    Parameters
    ----------
    verbose : int, 0 for nothing, 1 for the steps, more for their times and gains too
    interval : int, steps between prints
    """

    def __init__(self, verbose, interval):
        self._verbose = verbose
        self._interval = interval
        self._started = self._last = perf_counter()

    def start(self, number):
        """A start begins."""
        if self._verbose:
            print(f"Initialization {number}")
            self._started = self._last = perf_counter()

    def step(self, n_iter, gain):
        """A step was taken, with its gain in the lower bound."""
        if not self._verbose or n_iter % self._interval:
            return
        now = perf_counter()
        detail = f"\t time lapse {now - self._last:.5f}s\t ll change {gain:.5f}"
        print(f"  Iteration {n_iter}{detail if self._verbose > 1 else ''}")
        self._last = now

    def move(self, n_iter, name):
        """A move between optima was made, which counts as a step."""
        if self._verbose:
            print(f"  Iteration {n_iter}\t {name}")

    def fail(self, error):
        """A start ended in an error."""
        if self._verbose:
            print(f"Initialization failed: {error}")

    def pause(self, fit):
        """A start was tried, and waits until the others are."""
        self._close(fit, "tried")

    def end(self, fit):
        """A start ended in a fit."""
        self._close(fit, "converged" if fit.converged else "did not converge")

    def _close(self, fit, outcome):
        if not self._verbose:
            return
        lapse = perf_counter() - self._started
        detail = f" time lapse {lapse:.5f}s\t lower bound {fit.lower_bound:.5f}."
        print(f"Initialization {outcome}.{detail if self._verbose > 1 else ''}")
