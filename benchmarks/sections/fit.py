"""A fit: time to the same accuracy, and where the defaults stop."""

import targets
from tables import SIZES, by_name, judged, milliseconds, ratio, table, text, text_of, yes


def section(found):
    solved = [row for row in found if not row.get("note")]
    notes = "".join(f"\n* {row['problem']}: {row['note']}\n" for row in found if row.get("note"))
    return f"""## Fit

Time from the same responsibilities to within 1e-3 posterior standard deviations of the optimum, in every
weight, mean and precision: every side is stopped at the first step that is there.

{_times_to_accuracy(solved)}
{notes}
Our fit at its defaults, which goes on to convergence and shows that it is an optimum, beside our own sweeps
to within 1e-6 standard deviations, what a converged fit promises. Where sweeps come to rest elsewhere their
time is to that optimum; the lower bounds, in nats beyond that of our fit, tell which one is higher.

{_to_convergence(solved)}

![Time to accuracy](fit.png)

Where the defaults stop, in posterior standard deviations from our optimum:

{_where_defaults_stop(solved)}
"""


def _times_to_accuracy(solved):
    return table(
        [
            *SIZES,
            ("ours, ms", milliseconds("newton_near_seconds")),
            ("steps", text("newton_near_steps", "{:.0f}")),
            ("our sweeps alone, ms", milliseconds("plain_seconds")),
            ("sweeps", _sweeps("plain")),
            ("scikit-learn, ms", milliseconds("theirs_seconds")),
            ("its sweeps", _sweeps("theirs")),
            *judged("times faster", ratio("theirs_seconds", "newton_near_seconds"), by_name(targets.FIT)),
            ("over sweeps alone", text_of(ratio("newton_near_seconds", "plain_seconds"))),
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
            ("our sweeps alone, ms", milliseconds("converged_seconds")),
            ("sweeps", _sweeps("converged")),
            *judged(
                "over sweeps alone",
                ratio("newton_seconds", "converged_seconds"),
                lambda row: targets.FIT_BESIDE_SWEEPS,
            ),
            ("times faster than scikit-learn to 1e-3", text_of(ratio("theirs_seconds", "newton_seconds"))),
            ("bound: sweeps", text("plain_bound_beyond_newton", "{:+.1g}")),
            ("bound: scikit-learn", text("theirs_bound_beyond_newton", "{:+.1g}")),
        ],
        solved,
    )


def _where_defaults_stop(solved):
    return table(
        [
            *SIZES,
            ("ours: off by, sd", text("newton_distance", "{:.1g}")),
            ("says (decrement)", text("newton_decrement", "{:.1g}")),
            ("converged", yes("newton_converged")),
            ("scikit-learn: sweeps", text("default_sweeps", "{:.0f}")),
            ("ms", milliseconds("default_seconds")),
            ("off by, sd", text("default_distance", "{:.2g}")),
            ("says converged", yes("default_converged")),
        ],
        solved,
    )


def _sweeps(side):
    def cell(row):
        number = f"{row[f'{side}_sweeps']:,.0f}"
        return number if row[f"{side}_reached"] else f"more than {number}"

    return cell
