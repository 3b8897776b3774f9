"""What callbacks (scikit-learn 1.9 and newer) and the reader of ``verbose`` are told of fits and questions.

A fit is a tree of tasks: "fit", an "initialization" for every start, and an "iteration" for every step;
`Progress` tells of them. A question that takes long is a task of its own name, with a "block" for every
part of it: a method goes through its loops by the ``tracked`` of ``with self._tracked(name) as tracked``.
Without callbacks, and with an older scikit-learn, all tasks are `NO_TASK`, which costs nothing. `Lines` are
what is printed.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

from sklearn.base import clone

from sklearn_lrvb.rows import Tracked

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn 1.8 and older

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's mixin, and has no `set_callbacks`."""

    def with_callbacks(method):
        """Stands for scikit-learn's decorator, and changes nothing."""
        return method


_Item = TypeVar("_Item")


class Task:
    """A task that callbacks are told of: of its beginning when it is made, and at most once of its end.

    As a context it ends when it is left, by an error or an interrupt too; its open subtasks end before it.
    (An interrupt while callbacks are told of the end may keep it from them.)

    Parameters
    ----------
    context : sklearn.callback.CallbackContext or None, for nobody to be told
    told : dict of the arguments of every hook: estimator, X, y, metadata
    attributes : callable () -> dict, or None
        Fitted attributes at the beginning, by name: called only if a callback asks for the fitted estimator.
    """

    def __init__(self, context, told=None, attributes=None):
        self._context, self._told = context, told
        self._open = []  # Subtasks that have begun and not ended.
        self._has_ended = context is None
        if context is not None:
            context.call_on_fit_task_begin(**told, reconstruction_attributes=attributes)

    def subtask(self, name, max_subtasks=0, attributes=None):
        """Begin a subtask.

        Parameters
        ----------
        name : str
        max_subtasks : int or None
            Largest number of its own subtasks; None where it is not known.
        attributes : as in the constructor
        """
        if self._context is None:
            return self
        context = self._context.subcontext(task_name=name, max_subtasks=max_subtasks)
        subtask = Task(context, self._told, attributes)
        self._open = [*(other for other in self._open if not other._has_ended), subtask]
        return subtask

    def end(self, attributes=None):
        """End the task, unless it has ended before; return whether a callback asks to stop its siblings."""
        if self._has_ended:
            return False
        self._has_ended = True
        for subtask in reversed(self._open):
            subtask.end()
        return self._context.call_on_fit_task_end(**self._told, reconstruction_attributes=attributes)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.end()


NO_TASK = Task(None)


@dataclass
class Lines:
    """Prints lines, worded as scikit-learn does.

    Attributes
    ----------
    verbose : int or None, 0 for nothing, 1 for lines, more for times and other details at their ends
    interval : int, turns of a loop between prints
    started, last : float, seconds at the beginning, and at the line of the last turn
    """

    verbose: int | None
    interval: int
    started: float = field(default_factory=perf_counter)
    last: float = field(default_factory=perf_counter)

    def write(self, text, detail=""):
        """Print a line, with the detail if details are asked for."""
        if self.verbose:
            print(f"{text}{detail if self.verbose > 1 else ''}")

    def begin(self, text):
        """Print the line of a beginning, from which on time is taken."""
        self.started = self.last = perf_counter()
        self.write(text)

    def turn(self, number, text, detail=""):
        """Print the line of a turn where it is due, with the time since the last one."""
        if number % self.interval == 0:
            now = perf_counter()
            self.write(f"  {text}", f"\t time lapse {now - self.last:.5f}s{detail}")
            self.last = now

    def block(self, number, n_blocks):
        """Print the line of a block of a question where it is due."""
        self.turn(number, f"Block {number} of {n_blocks}")

    def end(self, text, detail=""):
        """Print the line of an end, with the time since the beginning."""
        self.write(text, f" time lapse {perf_counter() - self.started:.5f}s{detail}")

    def close(self):
        """Called where a question ends, by an error too."""


# Seconds after which somebody who waits is told, and seconds between the changes of the line.
_PATIENCE, _PAUSE = 2.0, 0.5


class WaitingLine(Lines):
    """One line for somebody who waits for an answer at a terminal or in a notebook.

    It says what runs, how far it is, and how long it may take. It appears after two seconds, changes in its
    place, and goes when the answer is there.
    """

    def __init__(self):
        super().__init__(verbose=0, interval=1)
        self._name, self._width = "", 0

    def begin(self, text):
        self._name = text.replace("_", " ")
        self.started = self.last = perf_counter()

    def block(self, number, n_blocks):
        now = perf_counter()
        if now - self.started < _PATIENCE or now - self.last < _PAUSE:
            return
        self.last, left = now, (now - self.started) * (n_blocks - number) / number
        progress = f"{number} of at most {n_blocks} steps, about {left:.0f} s more"
        self._show(f"{self._name}: {progress} (verbose=0: no line)")

    def end(self, text, detail=""):
        self.close()

    def close(self):
        if self._width:
            self._show("")
            self._width = 0

    def _show(self, text):
        sys.stderr.write(f"\r{text.ljust(self._width)}{'' if text else chr(13)}")
        sys.stderr.flush()
        self._width = len(text)


def somebody_waits():
    """Whether stderr is a terminal or a notebook's, unless the environment has SKLEARN_LRVB_PROGRESS=0."""
    if os.environ.get("SKLEARN_LRVB_PROGRESS") == "0":
        return False
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")


@dataclass
class _Start:
    """A start: its task, the number of its steps so far, and the task of the step that has begun."""

    task: Task
    n_steps: int = 0
    step: Task = NO_TASK


class Progress:
    """Tells callbacks of the starts and steps of a fit, and prints them.

    A step begins where the last one ends. The last one of a start may end without a step, where the start has
    converged before.

    Parameters
    ----------
    lines : Lines
    task : Task
        The fit; starts become its subtasks, and steps theirs.
    max_steps : int or None
        Largest number of steps of a start, None where it is not known.
    attributes_of : callable (Fit) -> dict
        Fitted attributes of an estimator whose fit stops at a state.

    Attributes
    ----------
    is_stopped : bool, whether a callback asked for no further starts
    """

    def __init__(self, lines, task, max_steps=None, attributes_of=None):
        self._lines = lines
        self._fit_task = task
        self._max_steps = max_steps
        self._attributes_of = attributes_of
        self._starts = {}  # By their names.
        self._current = None
        self.is_stopped = False

    def start(self, name):
        """Report that a start begins, or is continued, given its number or a name."""
        self._lines.begin(f"Initialization {name}")
        if name in self._starts:
            self._current = self._starts[name]
            return
        task_name = "initialization" if isinstance(name, int) else f"initialization {name}"
        self._current = self._starts[name] = _Start(self._fit_task.subtask(task_name, self._max_steps))
        self._begin_step()

    def step(self, fit):
        """Report the state after a step; return whether a callback asks to end this start."""
        self._lines.turn(fit.n_iter, f"Iteration {fit.n_iter}", f"\t ll change {fit.gain:.5f}")
        start = self._current
        if fit.n_iter <= start.n_steps:  # A step that is taken back is followed by others with its number.
            return False
        start.n_steps = fit.n_iter
        is_stopped = start.step.end(lambda: self._attributes_of(fit))
        self._begin_step(lambda: self._attributes_of(fit))
        return is_stopped

    def _begin_step(self, attributes=None):
        start = self._current
        if self._max_steps is None or start.n_steps < self._max_steps:
            start.step = start.task.subtask("iteration", attributes=attributes)

    def move(self, n_iter, name):
        """Report a move between optima, which counts as a step."""
        self._lines.write(f"  Iteration {n_iter}\t {name}")

    def fail(self, error):
        """Report that a start ended in an error."""
        self._lines.write(f"Initialization failed: {error}")
        self._end_task()

    def pause(self, fit):
        """Report that a start was tried; it may be continued once all others were."""
        self._lines.end("Initialization tried.", f"\t lower bound {fit.lower_bound:.5f}.")

    def drop(self, name, fit):
        """Report that a start that was tried is not continued."""
        self._current = self._starts[name]
        self._end_task(fit)

    def end(self, fit):
        """Report the end of a start that was run to its end."""
        outcome = "converged" if fit.converged else "did not converge"
        self._lines.end(f"Initialization {outcome}.", f"\t lower bound {fit.lower_bound:.5f}.")
        self._end_task(fit)

    def _end_task(self, fit=None):
        attributes = None if fit is None else lambda: self._attributes_of(fit)
        self.is_stopped |= self._current.task.end(attributes)


class PassReport:
    """Counts passes over rows that are in parts, and prints each: such a pass may take minutes."""

    def __init__(self):
        self._number, self._lines = 0, Lines(verbose=2, interval=1)

    def __call__(self):
        self._number += 1
        self._lines.turn(self._number, f"Pass {self._number} over X")


def begun_task(estimator: Any, name: str, max_subtasks: int | None, **told: Any) -> Task:
    """Begin a task of an estimator; `NO_TASK` without callbacks.

    It is called in a method that ``with_callbacks`` or ``_fit_context`` decorates: these tell the callbacks
    when the method has ended.

    Parameters
    ----------
    name : str
    max_subtasks : int or None, largest number of subtasks; None where it is not known
    **told : X, y and metadata for the hooks
    """
    if not vars(estimator).get("_skl_callbacks"):
        return NO_TASK
    context = estimator._init_callback_context(task_name=name, max_subtasks=max_subtasks)
    return Task(context, {"estimator": estimator, **told})


def untold_copy(estimator: Any, **params: Any) -> Any:
    """An unfitted copy with other parameters, whose callbacks are not told of its fit."""
    copy = clone(estimator).set_params(**params)
    vars(copy).pop("_skl_callbacks", None)
    return copy


@contextlib.contextmanager
def told_of(estimator: Any, name: str, *, are_called: bool) -> Iterator[Tracked]:
    """A `Tracked` for a question: of its outermost loop of several turns callbacks or readers are told.

    Parameters
    ----------
    are_called : bool
        Whether callbacks are told, by a task of the question's name, besides the reader of ``verbose``.
    """
    begun: list[Task] = []  # The task of the loop.
    waits = estimator.verbose is None and somebody_waits()
    lines = WaitingLine() if waits else Lines(estimator.verbose, estimator.verbose_interval)

    def tracked(items: Iterable[_Item], n_items: int | Callable[[], int]) -> Iterator[_Item]:
        """Yield the items; each is done when the next one is asked for."""
        if n_items == 1 or begun:
            yield from items
            return
        total = n_items if callable(n_items) else lambda: n_items
        n_blocks = None if callable(n_items) else n_items
        begun.append(begun_task(estimator, name, n_blocks) if are_called else NO_TASK)
        lines.begin(name)
        block = begun[0].subtask("block")
        for number, item in enumerate(items, 1):
            yield item
            block.end()
            lines.block(number, total())
            if number < total():
                block = begun[0].subtask("block")
        lines.end(f"{name} finished.")

    try:
        yield tracked
    finally:
        lines.close()
        for loop in begun:
            loop.end()
        if are_called:
            _torn_down(estimator)


@with_callbacks
def _torn_down(estimator):
    """Does nothing: scikit-learn tells callbacks, after it, that the estimator's task has ended."""
