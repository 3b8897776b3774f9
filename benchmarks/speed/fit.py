"""Time to within 1e-3 posterior standard deviations of the optimum, and to convergence."""

import functools
from dataclasses import replace

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter

from benchmarks.analysis.time_to_accuracy import PARAMETERS, Goal, iterations_to, parameters, steps_to
from benchmarks.harness.figures import BLUE, GREEN, ORANGE, PURPLE, STYLE, by_problem, note, saved
from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import SIZES, milliseconds, ratio, table, text, text_of, yes
from benchmarks.problems.clusters import FIT

TITLE = "Fit"
_ACCURACY = 1e-3  # posterior standard deviations, for every weight, mean and precision
_CONVERGED = 1e-6  # accuracy that our fit promises when it has converged
_MOST_ITERATIONS, _MOST_ITERATIONS_QUICKLY = 20_000, 200
_TIMED_ITERATIONS = 200
_SAME_BOUND = 0.1  # nats
_ABOVE, _BELOW = 6, -13  # points of a figure from a marker to its note


def measure(settings):
    """A row for every problem."""
    return settings.rows(FIT, _row)


def _row(problem, settings):
    from benchmarks.harness.inside import newton_decrement
    from benchmarks.rivals.libraries import Ours, Theirs, kmeans_responsibilities

    X = problem.simulate()
    responsibilities = kmeans_responsibilities(X, problem.n_components)
    ours = Ours(problem.n_components, problem.covariance_type, settings.threads)
    optimum = ours.fit(X, responsibilities, tol=1e-12, max_iter=1000)
    try:
        stds = {name: getattr(optimum, name + "_std_") for name in PARAMETERS}
    except ValueError as error:
        return {"note": str(error)}
    goal = Goal(parameters(optimum), stds, _ACCURACY)
    most_iterations = _MOST_ITERATIONS_QUICKLY if settings.quick else _MOST_ITERATIONS
    theirs = Theirs(problem.n_components, problem.covariance_type)
    starts = {rival: rival.start(X, responsibilities) for rival in (ours, theirs)}
    arrivals = {
        rival: iterations_to(rival, X, start, goal, most_iterations) for rival, start in starts.items()
    }
    converged = iterations_to(ours, X, starts[ours], replace(goal, accuracy=_CONVERGED), most_iterations)
    newton = ours.fit(X, responsibilities)
    steps = steps_to(ours, X, responsibilities, goal, newton.n_iter_)
    default = theirs.fit(X, responsibilities)
    bounds = {
        "newton": newton.lower_bound_,
        "plain": ours.lower_bound(arrivals[ours].state.mixture, X),
        "theirs": theirs.lower_bound(arrivals[theirs].state.mixture, X),
    }
    return {
        **_times(X, responsibilities, ours, theirs, steps, arrivals, converged, settings),
        "newton_near_steps": steps,
        "newton_iterations": newton.n_iter_,
        "newton_converged": newton.converged_,
        "newton_decrement": newton_decrement(newton),
        "newton_distance": goal.distance(newton),
        "plain_sweeps": arrivals[ours].state.n_iterations,
        "plain_reached": arrivals[ours].reached,
        "converged_sweeps": converged.state.n_iterations,
        "converged_reached": converged.reached,
        "theirs_sweeps": arrivals[theirs].state.n_iterations,
        "theirs_reached": arrivals[theirs].reached,
        "default_sweeps": default.n_iter_,
        "default_distance": goal.distance(default),
        "default_converged": default.converged_,
        "same_optimum": _same_optimum(bounds, [arrival.reached for arrival in arrivals.values()]),
        **_elsewhere(bounds, "plain"),
        **_elsewhere(bounds, "theirs"),
    }


def _times(X, responsibilities, ours, theirs, steps, arrivals, converged, settings):
    """Columns of seconds.

    More than `_TIMED_ITERATIONS` iterations are extrapolated from the time of so many.
    """
    sides = {
        "plain": (ours, arrivals[ours].state.n_iterations),
        "converged": (ours, converged.state.n_iterations),
        "theirs": (theirs, arrivals[theirs].state.n_iterations),
    }

    def iterated(rival, n_iterations):
        return rival.advanced(rival.start(X, responsibilities), X, min(n_iterations, _TIMED_ITERATIONS))

    times = settings.clock.interleaved(
        {
            "newton_near": lambda: ours.fit(X, responsibilities, max_iter=steps),
            "newton": lambda: ours.fit(X, responsibilities),
            "newton_and_stds": lambda: ours.fit(X, responsibilities).posterior_std_,
            "default": lambda: theirs.fit(X, responsibilities),
            **{side: functools.partial(iterated, *iterations) for side, iterations in sides.items()},
        }
    )
    for side, (_, n_iterations) in sides.items():
        times[side] = [seconds * max(1, n_iterations / _TIMED_ITERATIONS) for seconds in times[side]]
    return summary(times)


def _elsewhere(bounds, side):
    """Columns of a row: by how much a side's lower bound differs from that of our default fit."""
    beyond = bounds[side] - bounds["newton"]
    return {f"{side}_bound_beyond_newton": beyond, f"{side}_elsewhere": abs(beyond) >= _SAME_BOUND}


def _same_optimum(bounds, reached):
    if not all(reached):
        return "not all arrived"
    return "yes" if np.ptp(list(bounds.values())) < _SAME_BOUND else "no"


def section(found):
    solved = [row for row in found if not row.get("note")]
    notes = "".join(f"\n* {row['problem']}: {row['note']}\n" for row in found if row.get("note"))
    return f"""All fits begin at the same responsibilities. The times are those until every weight, mean and
precision is within 1e-3 posterior standard deviations of the optimum: every side is stopped at the first step
that is there. The clusters have random covariances, except those of "plane-equal" and "twenty-diagonal",
which are equal and round; the latter is fitted with `covariance_type="diag"`. "Our iterations alone" are the
same coordinate ascent as scikit-learn's, without acceleration and Newton steps.

{_times_to_accuracy(solved)}
{notes}
The next table is about our fit at its defaults, which goes on to convergence and verifies that it is at an
optimum. It stands beside our own iterations to within 1e-6 standard deviations, the accuracy that a converged
fit promises. Where iterations come to rest elsewhere, their time is the time to that optimum; the lower
bounds, in nats beyond that of our fit, show which optimum is higher.

{_to_convergence(solved)}

![Time to accuracy](fit.png)

The more the components overlap, the more there is to gain. Where they hardly overlap, a few iterations are
all that is needed, and `solver="coordinate_ascent"`, which is scikit-learn's algorithm and stopping rule,
does no more than these. The cost of the standard deviations is paid when they are asked for.

The last table shows where the defaults stop, in posterior standard deviations from our optimum:

{_where_defaults_stop(solved)}
"""


def _times_to_accuracy(solved):
    return table(
        [
            *SIZES,
            ("clusters apart, sd", text("distance")),
            ("ours, ms", milliseconds("newton_near_seconds")),
            ("steps", text("newton_near_steps", "{:.0f}")),
            ("our iterations alone, ms", milliseconds("plain_seconds")),
            ("iterations", _iterations("plain")),
            ("scikit-learn, ms", milliseconds("theirs_seconds")),
            ("its iterations", _iterations("theirs")),
            ("times faster", text_of(ratio("theirs_seconds", "newton_near_seconds"))),
            ("over iterations alone", text_of(ratio("newton_near_seconds", "plain_seconds"))),
            ("same optimum", text("same_optimum", "{}")),
        ],
        solved,
    )


def _to_convergence(solved):
    return table(
        [
            *SIZES,
            ("ours, ms", milliseconds("newton_seconds")),
            ("steps", text("newton_iterations", "{:.0f}")),
            ("with all sds, ms", milliseconds("newton_and_stds_seconds")),
            ("our iterations alone, ms", milliseconds("converged_seconds")),
            ("iterations", _iterations("converged")),
            ("over iterations alone", text_of(ratio("newton_seconds", "converged_seconds"))),
            ("times faster than scikit-learn to 1e-3", text_of(ratio("theirs_seconds", "newton_seconds"))),
            ("bound: iterations", text("plain_bound_beyond_newton", "{:+.1g}")),
            ("bound: scikit-learn", text("theirs_bound_beyond_newton", "{:+.1g}")),
        ],
        solved,
    )


def _where_defaults_stop(solved):
    return table(
        [
            *SIZES,
            ("ours: off by, sd", text("newton_distance", "{:.1g}")),
            ("its Newton decrement", text("newton_decrement", "{:.1g}")),
            ("says converged", yes("newton_converged")),
            ("scikit-learn: iterations", text("default_sweeps", "{:.0f}")),
            ("ms", milliseconds("default_seconds")),
            ("off by, sd", text("default_distance", "{:.2g}")),
            ("says converged", yes("default_converged")),
        ],
        solved,
    )


def _iterations(side):
    def cell(row):
        number = f"{row[f'{side}_sweeps']:,.0f}"
        return number if row[f"{side}_reached"] else f"more than {number}"

    return cell


def draw(found, path):
    """Time to the same accuracy, and where scikit-learn's defaults stop."""
    found = [row for row in found if not row.get("note")]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(8, 1.2 + 0.48 * len(found)), layout="constrained")
        lines = np.arange(len(found))
        sides = {
            "theirs": ("scikit-learn, to 1e-3 sd", "D", ORANGE),
            "plain": ("our iterations alone, to 1e-3 sd", "s", GREEN),
            "newton_near": ("ours, to 1e-3 sd", "o", BLUE),
            "newton": ("ours, converged", "|", BLUE),
            "default": ("scikit-learn's defaults stop, sd away", "x", PURPLE),
        }
        seconds = {side: [row[f"{side}_seconds"] for row in found] for side in sides}
        all_seconds = list(seconds.values())
        axes.hlines(lines, np.min(all_seconds, axis=0), np.max(all_seconds, axis=0), color="#DDDDDD")
        for side, (label, marker, colour) in sides.items():
            axes.plot(
                seconds[side], lines, marker, color=colour, label=label, markersize=7, markeredgewidth=1.5
            )
        for line, row in zip(lines, found, strict=True):
            note(axes, row["default_seconds"], line, _distance(row["default_distance"]), _ABOVE)
            for side in ("theirs", "plain"):
                if not row[f"{side}_reached"]:
                    note(axes, row[f"{side}_seconds"], line, "or more", _ABOVE)
                elif row[f"{side}_elsewhere"]:
                    note(axes, row[f"{side}_seconds"], line, "another optimum", _BELOW)
        axes.set_xscale("log")
        axes.margins(x=0.08)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("seconds")
        by_problem(axes, found)
        figure.legend(loc="outside upper center", ncols=2)
        saved(figure, path)


def _distance(sds):
    if sds < 1e-3:
        return "<0.001"
    return f"{sds:.0f}" if sds >= 10 else f"{sds:.1g}"
