"""A callback that records what it is told."""


class Recorder:
    """Records the hooks as (event, task, number), and asks to stop where `stops` is true of a task."""

    max_propagation_depth = None  # Meta-estimators pass it on to their parts.

    def __init__(self, stops=lambda context: False):
        self.events = []
        self.fitted = []
        self.stops = stops

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name, context.task_id))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.events.append(("end", context.task_name, context.task_id))
        if fitted_estimator is not None:
            self.fitted.append((context.task_name, fitted_estimator))
        return self.stops(context)

    def count(self, event, task):
        return sum(e == (event, task) for e in (e[:2] for e in self.events))

    def assert_balanced(self):
        """Every task that begins ends once, in between setup and teardown."""
        events = [event for event, _, _ in self.events]
        assert (events[0], events[-1], events.count("setup"), events.count("teardown")) == (
            "setup",
            "teardown",
            1,
            1,
        )
        begun, ended = ([e[1:] for e in self.events if e[0] == event] for event in ("begin", "end"))
        assert sorted(begun) == sorted(ended)
