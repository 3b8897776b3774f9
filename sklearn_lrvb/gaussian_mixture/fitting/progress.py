"""What callbacks are told, and what is printed, while a fit runs; called by `ascent` and `restarts`."""

from time import perf_counter


class Progress:
    """Tells callbacks of the starts and steps of a fit, and prints them, worded as scikit-learn does.

    Parameters
    ----------
    verbose : int, 0 for nothing, 1 for the steps, more for their times and gains too
    interval : int, steps between prints
    task : Task or NoTask
        The fit; starts become its subtasks, and steps theirs.
    max_steps : int or None
        Largest number of steps of a start, None where it is not known.
    attributes_of : callable (Fit) -> dict
        Fitted attributes of an estimator whose fit stops at a state.

    Attributes
    ----------
    is_stopped : bool, whether a callback asked for no further starts
    """

    def __init__(self, verbose, interval, task, max_steps=None, attributes_of=None):
        self._verbose = verbose
        self._interval = interval
        self._started = self._last = perf_counter()
        self._fit_task = task
        self._max_steps = max_steps
        self._attributes_of = attributes_of
        self._told = {}  # By the names of the starts.
        self._current = None
        self.is_stopped = False

    def start(self, name):
        """Report that a start begins, or is continued, given its number or a name."""
        if self._verbose:
            print(f"Initialization {name}")
            self._started = self._last = perf_counter()
        if name not in self._told:
            task_name = "initialization" if isinstance(name, int) else f"initialization {name}"
            self._told[name] = _StartTask(self._fit_task, task_name, self._max_steps)
        self._current = self._told[name]

    def step(self, fit):
        """Report the state after a step; return whether a callback asks to end this start."""
        if self._verbose and fit.n_iter % self._interval == 0:
            now = perf_counter()
            detail = f"\t time lapse {now - self._last:.5f}s\t ll change {fit.gain:.5f}"
            print(f"  Iteration {fit.n_iter}{detail if self._verbose > 1 else ''}")
            self._last = now
        return self._current.step(fit.n_iter, lambda: self._attributes_of(fit))

    def move(self, n_iter, name):
        """Report a move between optima, which counts as a step."""
        if self._verbose:
            print(f"  Iteration {n_iter}\t {name}")

    def fail(self, error):
        """Report that a start ended in an error."""
        if self._verbose:
            print(f"Initialization failed: {error}")
        self._end_task()

    def pause(self, fit):
        """Report that a start was tried; it may be continued once all others were."""
        self._report_end(fit, "tried")

    def drop(self, name, fit):
        """Report that a start that was tried is not continued."""
        self._current = self._told[name]
        self._end_task(fit)

    def end(self, fit):
        """Report the end of a start that was run to its end."""
        self._report_end(fit, "converged" if fit.converged else "did not converge")
        self._end_task(fit)

    def _end_task(self, fit=None):
        attributes = None if fit is None else lambda: self._attributes_of(fit)
        self.is_stopped |= self._current.task.end(attributes)

    def _report_end(self, fit, outcome):
        if not self._verbose:
            return
        lapse = perf_counter() - self._started
        detail = f" time lapse {lapse:.5f}s\t lower bound {fit.lower_bound:.5f}."
        print(f"Initialization {outcome}.{detail if self._verbose > 1 else ''}")


class _StartTask:
    """The task of a start, whose steps are its subtasks: one begins where the last one ends.

    The last one may end without a step, where the start has converged before.
    """

    def __init__(self, fit_task, name, max_steps):
        self._max_steps = max_steps
        self._n_steps = 0
        self.task = fit_task.subtask(name, max_steps)
        self._begin_step()

    def _begin_step(self, attributes=None):
        if self._max_steps is None or self._n_steps < self._max_steps:
            self._step = self.task.subtask("iteration", attributes=attributes)

    def step(self, n_iter, attributes):
        """Report the step with a number; return whether a callback asks to end the start."""
        # A step that is taken back is followed by others with the same numbers.
        if n_iter <= self._n_steps:
            return False
        self._n_steps = n_iter
        is_stopped = self._step.end(attributes)
        self._begin_step(attributes)
        return is_stopped


class PassReport:
    """Counts passes over rows that are in parts, and prints each: such a pass may take minutes."""

    def __init__(self):
        self._number, self._last = 0, perf_counter()

    def __call__(self):
        now = perf_counter()
        self._number += 1
        print(f"  Pass {self._number} over X\t time lapse {now - self._last:.5f}s")
        self._last = now
