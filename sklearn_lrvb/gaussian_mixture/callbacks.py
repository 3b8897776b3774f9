"""What callbacks are told of a fit and of long questions, by scikit-learn's callbacks (1.9 and newer).

A fit is a tree of tasks: "fit", an "initialization" for every start, and an "iteration" for every step. A
question that takes long is a task of its own name, with a "block" for every part of it: a method calls
``self._reported(name, question)``, and the question goes through its loops by the ``tracked`` that it is
given. Without callbacks, and with an older scikit-learn, all tasks are `NO_TASK`, which costs nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any, TypeVar

from sklearn_lrvb.row_blocks import Tracked, untracked

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn 1.8 and older

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's mixin, and has no `set_callbacks`."""

    def with_callbacks(method):
        """Stands for scikit-learn's decorator, and changes nothing."""
        return method


_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")


class Task:
    """A task that callbacks are told of: of its beginning when it is made, and at most once of its end.

    As a context it ends when it is left, by an error or an interrupt too; its open subtasks end before it.
    (An interrupt while callbacks are told of the end may keep it from them.)

    Parameters
    ----------
    context : sklearn.callback.CallbackContext
    told : dict of the arguments of every hook: estimator, X, y, metadata
    attributes : callable () -> dict, or None
        Fitted attributes at the beginning, by name: called only if a callback asks for the fitted estimator.
    """

    def __init__(self, context, told, attributes=None):
        self._context = context
        self._told = told
        self._open = []  # Subtasks that have begun and not ended.
        self._has_ended = False
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


class NoTask:
    """Stands for a `Task` where there are no callbacks."""

    def subtask(self, name, max_subtasks=0, attributes=None):
        """The same."""
        return self

    def end(self, attributes=None):
        """Nobody asks to stop."""
        return False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


NO_TASK = NoTask()


class CallbackMethods(CallbackSupportMixin):
    """Tells callbacks, and the reader of ``verbose``, about the estimator's tasks."""

    verbose: int
    verbose_interval: int

    def _begun_task(self, name: str, max_subtasks: int | None, **told: Any) -> Task | NoTask:
        """Begin a task of the estimator; `NO_TASK` without callbacks.

        It is called in a method that ``with_callbacks`` or ``_fit_context`` decorates: these tell the
        callbacks when the method has ended.

        Parameters
        ----------
        name : str
        max_subtasks : int or None, largest number of subtasks; None where it is not known
        **told : X, y and metadata for the hooks
        """
        if not self._has_callbacks:
            return NO_TASK
        context = self._init_callback_context(task_name=name, max_subtasks=max_subtasks)
        return Task(context, {"estimator": self, **told})

    @property
    def _has_callbacks(self):
        return bool(vars(self).get("_skl_callbacks"))

    def _reported(self, name: str, question: Callable[[Tracked], _Answer]) -> _Answer:
        """The answer to a question that may take long, whose progress is reported as that of a fit.

        A question that a callback asks during a fit is not reported to callbacks: they show the fit then.

        Parameters
        ----------
        name : str, the method that the user called
        question : callable
            It is given ``tracked(items, n_items)``, by which it goes through the items of its loops.
        """
        is_told = self._has_callbacks and "_callback_fit_ctx" not in vars(self)
        if is_told:
            return _answered_with_callbacks(self, name, question)
        if self.verbose:
            return _answered(self, name, question)
        return question(untracked)


def _answered(
    estimator: CallbackMethods,
    name: str,
    question: Callable[[Tracked], _Answer],
    begun_task: Callable = lambda name, max_subtasks: NO_TASK,
) -> _Answer:
    with _LongQuestion(estimator, name, begun_task) as long_question:
        return question(long_question.tracked)


@with_callbacks
def _answered_with_callbacks(
    estimator: CallbackMethods, name: str, question: Callable[[Tracked], _Answer]
) -> _Answer:
    return _answered(estimator, name, question, estimator._begun_task)


class _LongQuestion:
    """Reports the turns of a question's outermost loop of several turns: to callbacks, and by printing."""

    def __init__(self, estimator, name, begun_task):
        self._verbose, self._interval = estimator.verbose, estimator.verbose_interval
        self._name = name
        self._begun_task = begun_task
        self._task = None

    def tracked(self, items: Iterable[_Item], n_items: int) -> Iterator[_Item]:
        """Yield the items; each is done when the next one is asked for."""
        if n_items == 1 or self._task is not None:
            yield from items
            return
        started = last = perf_counter()
        if self._verbose:
            print(self._name)
        self._task = self._begun_task(self._name, n_items)
        block = self._task.subtask("block")
        for number, item in enumerate(items, 1):
            yield item
            block.end()
            if self._verbose and number % self._interval == 0:
                now = perf_counter()
                self._print(f"  Block {number} of {n_items}", f"\t time lapse {now - last:.5f}s")
                last = now
            if number < n_items:
                block = self._task.subtask("block")
        if self._verbose:
            self._print(f"{self._name} finished.", f" time lapse {perf_counter() - started:.5f}s")

    def _print(self, message, detail):
        print(f"{message}{detail if self._verbose > 1 else ''}")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._task is not None:
            self._task.end()
