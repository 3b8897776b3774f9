"""Write tables and figures of the measured rows.

    python benchmarks/report.py

Every problem is shown as it was last measured, full measurements before quick ones. Times are the least of
the rounds; ratios are of times from one run.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import figures
import numpy as np
import rows
import targets
from experiments import coverage, profile

RESULTS = Path(__file__).parent / "results"
GROWING = {"n_samples": "rows N", "n_features": "features P", "n_components": "components K"}
# what grows: the column of seconds, and that of flops where they are known
PASSES = {
    "one sweep": ("sweep_seconds", "sweep_flops"),
    "a fit, by iteration": ("iteration_seconds", None),
    "information (primal)": ("information_seconds", "information_flops"),
}


def table(columns, found):
    """A markdown table over rows; columns are pairs of a header and a function of a row."""
    lines = [[header for header, _ in columns], ["---"] * len(columns)]
    lines += [[str(cell(row)) for _, cell in columns] for row in found]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _milliseconds(name):
    return lambda row: "" if row.get(name) is None else f"{1e3 * row[name]:,.3g}"


def _text(name, shape="{:.3g}"):
    return lambda row: "" if row.get(name) is None else shape.format(row[name])


def _text_of(value):
    """A computed number in three digits."""
    return lambda row: "" if value(row) is None else f"{value(row):.3g}"


def _yes(name):
    return lambda row: {True: "yes", False: "no", None: ""}[row.get(name)]


def _size(row):
    return ", ".join(f"{row[name]:,.0f}" for name in ("n_samples", "n_features", "n_components"))


def _ratio(above, below):
    """Ratio of two columns, None where one is missing."""

    def ratio(row):
        if row.get(above) is None or row.get(below) is None:
            return None
        return row[above] / row[below]

    return ratio


_SIZES = (("problem", rows.label), ("N, P, K", _size))


def _judged(header, value, target_of):
    """Three columns: a number, its target and whether it is met."""

    def cell(row):
        number = value(row)
        return "" if number is None else f"{number:.3g}"

    def wanted(row):
        return target_of(row) or ""

    def verdict(row):
        number, target = value(row), target_of(row)
        if number is None or target is None:
            return ""
        return "too few rows" if row["mode"] == "quick" else target.reached_by(number)

    return (header, cell), ("solid, aim", wanted), ("reached", verdict)


def sweep_section(found):
    speed = table(
        [
            *_SIZES,
            ("ours, ms", _milliseconds("ours_seconds")),
            ("scikit-learn, ms", _milliseconds("theirs_seconds")),
            *_judged("times faster", _ratio("theirs_seconds", "ours_seconds"), _by_name(targets.SWEEP)),
            ("ours, Gflop/s", _text("gflops")),
            ("share of the flop limit", _text("share_of_limit", "{:.2%}")),
            ("ours on float32 rows, ms", _milliseconds("ours_float32_seconds")),
        ],
        found,
    )
    memory = table(
        [
            *_SIZES,
            ("X, MB", _text("megabytes")),
            *_judged("sweep, ours", lambda row: row.get("ours_sweep_memory"), _memory_target),
            ("sweep, ours, float32", _text("ours_float32_sweep_memory")),
            ("sweep, scikit-learn", _text("theirs_sweep_memory")),
            ("fit, ours", _text("ours_fit_memory")),
            ("fit, ours, float32", _text("ours_float32_fit_memory")),
            ("fit, scikit-learn", _text("theirs_fit_memory")),
        ],
        [row for row in found if row.get("megabytes") is not None],
    )
    return f"""## One sweep

E-step, M-step and lower bound at the same state. The flop limit is 4 N K P^2 at the speed of a large matrix
product.

{speed}

![Speed of one sweep](sweep.png)

Peak memory beyond X, in multiples of X (of the float32 X in its columns): one sweep, and a fit of two
iterations from k-means, each side in a process of its own on one thread. The target is
{targets.MEMORY_SHARE} X and {targets.BLOCKS_MEGABYTES} MB for blocks of rows.

{memory}
"""


def _by_name(by_problem):
    return lambda row: by_problem.get(row["problem"])


def _memory_target(row):
    solid = targets.MEMORY_SHARE + targets.BLOCKS_MEGABYTES / row["megabytes"]
    return targets.Target(solid, at_most=True)


def fit_section(found):
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
            *_SIZES,
            ("ours, ms", _milliseconds("newton_near_seconds")),
            ("steps", _text("newton_near_steps", "{:.0f}")),
            ("our sweeps alone, ms", _milliseconds("plain_seconds")),
            ("sweeps", _sweeps("plain")),
            ("scikit-learn, ms", _milliseconds("theirs_seconds")),
            ("its sweeps", _sweeps("theirs")),
            *_judged("times faster", _ratio("theirs_seconds", "newton_near_seconds"), _by_name(targets.FIT)),
            ("over sweeps alone", _text_of(_ratio("newton_near_seconds", "plain_seconds"))),
            ("same optimum", _text("same_optimum", "{}")),
        ],
        solved,
    )


def _to_convergence(solved):
    return table(
        [
            *_SIZES,
            ("ours, ms", _milliseconds("newton_seconds")),
            ("steps", _text("newton_iterations", "{:.0f}")),
            ("with all sds, ms", _milliseconds("newton_and_stds_seconds")),
            ("our sweeps alone, ms", _milliseconds("converged_seconds")),
            ("sweeps", _sweeps("converged")),
            *_judged(
                "over sweeps alone",
                _ratio("newton_seconds", "converged_seconds"),
                lambda row: targets.FIT_BESIDE_SWEEPS,
            ),
            ("times faster than scikit-learn to 1e-3", _text_of(_ratio("theirs_seconds", "newton_seconds"))),
            ("bound: sweeps", _text("plain_bound_beyond_newton", "{:+.1g}")),
            ("bound: scikit-learn", _text("theirs_bound_beyond_newton", "{:+.1g}")),
        ],
        solved,
    )


def _where_defaults_stop(solved):
    return table(
        [
            *_SIZES,
            ("ours: off by, sd", _text("newton_distance", "{:.1g}")),
            ("says (decrement)", _text("newton_decrement", "{:.1g}")),
            ("converged", _yes("newton_converged")),
            ("scikit-learn: sweeps", _text("default_sweeps", "{:.0f}")),
            ("ms", _milliseconds("default_seconds")),
            ("off by, sd", _text("default_distance", "{:.2g}")),
            ("says converged", _yes("default_converged")),
        ],
        solved,
    )


def _sweeps(side):
    def cell(row):
        number = f"{row[f'{side}_sweeps']:,.0f}"
        return number if row[f"{side}_reached"] else f"more than {number}"

    return cell


def start_section(found):
    shown = table(
        [
            *_SIZES,
            ("start, ms", _milliseconds("start_seconds")),
            ("scikit-learn's, ms", _milliseconds("their_start_seconds")),
            ("one sweep, ms", _milliseconds("sweep_seconds")),
            ("whole fit, ms", _milliseconds("fit_seconds")),
            ("steps", _text("iterations", "{:.0f}")),
            ("start, in sweeps", lambda row: f"{_ratio('start_seconds', 'sweep_seconds')(row):.3g}"),
            ("start, of the fit", lambda row: f"{_ratio('start_seconds', 'fit_seconds')(row):.0%}"),
        ],
        found,
    )
    return f"""## Start

k-means and the first M-step, at the defaults.

{shown}
"""


def information_section(found):
    solvers = ("primal", "dual", "matrix_free")

    def solver_cell(solver):
        def cell(row):
            shown = _milliseconds(f"{solver}_seconds")(row)
            return f"**{shown}**" if row["cheapest"] == solver and shown else shown

        return cell

    def over_naive(row):
        return _ratio(f"{row['cheapest']}_seconds", "naive_seconds")(row)

    shown = table(
        [
            *_SIZES,
            ("unknowns", _text("n_unknowns", "{:,.0f}")),
            ("doubtful", _text("n_alternatives", "{:,.0f}")),
            ("one sweep, ms", _milliseconds("sweep_seconds")),
            ("naive, ms", _milliseconds("naive_seconds")),
            *((f"{solver.replace('_', '-')}, ms", solver_cell(solver)) for solver in solvers),
            *_judged("over naive", over_naive, _by_name(targets.INFORMATION)),
        ],
        found,
    )
    return f"""## Covariance

From the rows to a factored matrix and one standard deviation. "Naive" is the product of the whole feature
matrix with itself at the speed of a large product; bold, what the cost model takes for the standard
deviations of all means; "doubtful", components that rows may belong to beside their most probable one.

{shown}
"""


def influence_section(found):
    def beside_the_paper(row):
        if row["problem"] != "digits" or row["mode"] == "quick":
            return ""
        return f"{targets.PAPER_INFLUENCE_SECONDS / row['influence_seconds']:,.0f}"

    shown = table(
        [
            *_SIZES,
            ("influence, ms", _milliseconds("influence_seconds")),
            ("matrix product, ms", _milliseconds("limit_seconds")),
            *_judged(
                "over the product",
                _ratio("influence_seconds", "limit_seconds"),
                lambda row: targets.INFLUENCE,
            ),
            ("times faster than the paper's 37 s", beside_the_paper),
        ],
        found,
    )
    return f"""## Influence

Of all points on all means and log weights, d targets, with the information factored. The matrix product takes
2 N K (1 + P) d P flops.

{shown}
"""


def diagnostics_section(found):
    questions = {
        "one pass": "score_samples",
        "weight influence on the means": "weight_influence",
        "leverage": "leverage",
        "probabilities with sds": "spread",
        "leave-one-out scores": "leave_one_out",
        "sandwich of the means": "sandwich",
        "prior sensitivity": "prior_sensitivity",
        "1000 draws": "draws",
    }
    columns = [(header, _milliseconds(f"{name}_seconds")) for header, name in questions.items()]
    return f"""## Diagnostics

Questions to a fitted mixture whose information is factored, of all rows, in milliseconds.

{table([*_SIZES, *columns], found)}
"""


def leave_one_out_section(found):
    def errors(name):
        numbers = (f"{name}_mean_error", f"{name}_largest_error", f"{name}_error_of_sum")
        return lambda row: "{:.1e}, {:.1e}, {:.2%}".format(*(row[number] for number in numbers))

    def all_refits_over_ours(row):
        return f"{row['refit_seconds'] * row['n_samples'] / row['loo_seconds']:,.0f}"

    shown = table(
        [
            *_SIZES,
            ("rows refitted without", _text("left_out", "{:.0f}")),
            ("score, the row seen", errors("seen")),
            ("score - leverage", errors("first_order")),
            ("loo_score_samples", errors("loo")),
            ("loo_score_samples of all rows, ms", _milliseconds("loo_seconds")),
            ("one refit, ms", _milliseconds("refit_seconds")),
            ("refits of all rows over ours", all_refits_over_ours),
        ],
        found,
    )
    return f"""## Leave one out

Scores of rows in fits to all other rows, against refits: mean and largest error in nats, and the error of the
sum as a share of what the scores of rows that the fit has seen are too high by. The information is factored;
refits start from the fit to all rows, under the same prior.

{shown}
"""


@dataclass(frozen=True)
class Curve:
    """Time of one pass as one size grows; exponents are of its upper half, where fixed costs matter less.

    Attributes
    ----------
    grows : str, column of the size
    what : str, the pass
    sizes, seconds : arrays
    flops : array, or None where nobody counts them
    """

    grows: str
    what: str
    sizes: np.ndarray
    seconds: np.ndarray
    flops: np.ndarray | None

    @property
    def upper_half(self):
        return slice(min(len(self.sizes) // 2, len(self.sizes) - 2), None)

    def _power_law(self, values):
        """Exponent, and logarithm of the factor."""
        return np.polyfit(np.log(self.sizes[self.upper_half]), np.log(values[self.upper_half]), 1)

    @property
    def exponent(self):
        return self._power_law(self.seconds)[0]

    @property
    def flops_exponent(self):
        return None if self.flops is None else self._power_law(self.flops)[0]

    @property
    def fitted(self):
        """Sizes and seconds of the fitted line."""
        sizes = self.sizes[self.upper_half]
        return sizes, np.exp(np.polyval(self._power_law(self.seconds), np.log(sizes)))


def growth_curves(found):
    """Yield a curve for every size and pass that was measured, on the fewest threads."""
    fewest = min(row["threads"] for row in found)
    found = [row for row in found if row["threads"] == fewest]
    for grows in GROWING:
        for what, (seconds, flops) in PASSES.items():
            along = [row for row in found if row["grows"] == grows and row.get(seconds) is not None]
            along.sort(key=lambda row: row[grows])
            if len(along) < 2:
                continue
            sizes, times = (np.array([row[column] for row in along]) for column in (grows, seconds))
            yield Curve(grows, what, sizes, times, flops and np.array([row[flops] for row in along]))


def growth_section(found):
    exponents = [
        {
            "grows": curve.grows,
            "pass": curve.what,
            "exponent": curve.exponent,
            "flops": curve.flops_exponent,
            "mode": found[0]["mode"],
        }
        for curve in growth_curves(found)
    ]

    def target(row):
        expected = 1.0 if row["grows"] == "n_samples" else row["flops"]
        return None if expected is None else targets.Target(expected + targets.GROWTH_TOLERANCE, at_most=True)

    shown = table(
        [
            ("what grows", lambda row: GROWING[row["grows"]]),
            ("time of", _text("pass", "{}")),
            ("exponent of the flops", _text("flops")),
            *_judged("exponent", lambda row: row["exponent"], target),
        ],
        exponents,
    )
    return f"""## Growth

Exponents on the upper half of the range. The target in N is linear, in P and K that of the flop count, to
{targets.GROWTH_TOLERANCE}. The flops of a sweep are 4 N K P^2, those of the information the naive product's
and D^3/3.

{shown}

![Growth of the cost](growth.png)
"""


def profile_section(found):
    shown = "\n".join(f"{_title(name)}:\n\n{_profile(name, found)}\n" for name in profile.PASSES)
    return f"""## Profile

Shares of the time of a pass on one thread, as a profiler sees it; the rest, which no part names, is the
Python around them and work of the size of the parameters.

{shown}"""


def _title(name):
    return name[0].upper() + name[1:]


def _profile(name, found):
    parts = [*profile.PASSES[name].parts, "rest"]
    return table(
        [
            ("problem", lambda row: row["problem"].split(":")[0]),
            ("N, P, K", _size),
            ("ms", _milliseconds("seconds")),
            *((part, _text(part, "{:.0%}")) for part in parts),
        ],
        [row for row in found if row["pass"] == name],
    )


METHODS = {"lrvb": "LRVB", "mean_field": "mean field", "sandwich": "sandwich"}


def coverage_section(found):
    settings = table(
        [
            ("setting", _text("setting", "{}")),
            ("N, P, K", _size),
            ("fit", lambda row: f"{row['covariance_type']}, {row['prior']}"),
            ("what is wrong", _text("misspecified", "{}")),
            ("data sets", _text("n_data_sets", "{:.0f}")),
            ("left out", _text("left_out", "{:.0f}")),
            *((reason.replace("_", " "), _text(reason, "{:.0f}")) for reason in coverage.REASONS),
        ],
        list({row["setting"]: row for row in found}.values()),
    )
    shown = table(
        [
            ("setting", _text("setting", "{}")),
            ("of", lambda row: row["group"].replace("_", " ")),
            *((f"{name}, %", _percent(f"{method}_coverage")) for method, name in METHODS.items()),
            *((f"{name}: sd", _over_truth(f"{method}_sd_over_truth")) for method, name in METHODS.items()),
            ("bias", _text("bias", "{:.2f}")),
        ],
        _methods_beside_each_other(found),
    )
    return f"""## Coverage

How often intervals of 95 % (posterior mean, 1.96 sd to either side) hold the truth over simulated data sets,
by three sds of the same fit; mean sd over the true one, which is that of the posterior means from data set to
data set; and bias, the root mean square over a group of the mean error in true sds, of which one over the
root of the number of data sets is chance. ± is the Monte Carlo standard error, over data sets, as parameters
of one data set depend on each other. In parentheses: one data set makes more than half of the true variance
of an estimate. With few rows and a flat prior a component may shrink onto a few of them, and its precision
runs away; the ratio then says nothing, the coverage still does.

{shown}

Where something is wrong with the model, the truth is what the same fit makes of a million rows (flat
prior), whose own error is some 0.045 of an sd of 2,000 rows: less than 0.1 % of coverage. Distances are of
the two centers along the first axis. Left out are fits that lost a component, did not converge, are no strict
optimum (their covariance is refused), or landed elsewhere: with a mean further from its own than half of the
way between the two nearest true ones.

{settings}

![Coverage](coverage.png)
"""


def _methods_beside_each_other(found):
    """One row for every setting and group, the methods' numbers in columns of their own."""
    measured = ("coverage", "coverage_se", "sd_over_truth", "sd_over_truth_se")
    merged = {}
    for row in found:
        beside = merged.setdefault((row["setting"], row["group"]), dict(row))
        beside.update({f"{row['method']}_{name}": row[name] for name in measured})
    return list(merged.values())


def _percent(name):
    return lambda row: f"{100 * row[name]:.1f} ± {100 * row[name + '_se']:.1f}"


def _over_truth(name):
    """A ratio of sds, in parentheses where one data set makes most of the true one."""

    def cell(row):
        shown = f"{row[name]:.2f} ± {row[name + '_se']:.2f}"
        return f"({shown})" if row["largest_share"] > 0.5 else shown

    return cell


SECTIONS = {
    "sweep": sweep_section,
    "fit": fit_section,
    "start": start_section,
    "information": information_section,
    "influence": influence_section,
    "diagnostics": diagnostics_section,
    "leave_one_out": leave_one_out_section,
    "growth": growth_section,
    "profile": profile_section,
    "coverage": coverage_section,
}


def _measured_on(found):
    """What the rows were taken on; one line for every difference."""
    kept = ("mode", "cpu", "python", "numpy", "scipy", "scikit-learn", "sklearn-lrvb", "blas")
    lines = dict.fromkeys(", ".join(f"{name} {row[name]}" for name in kept) for row in found)
    dates = sorted(row["date"] for row in found)
    return "\n".join(f"* {line}" for line in lines) + f"\n\nFrom {dates[0]} to {dates[-1]}."


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    folder = parser.parse_args().output
    files = {name: folder / f"{name}.csv" for name in SECTIONS}
    measured = {name: rows.newest(path) for name, path in files.items() if path.exists()}
    everything = [row for found in measured.values() for row in found]
    parts = ["# Benchmarks\n", _measured_on(everything) + "\n"]
    parts += [SECTIONS[name](found) for name, found in measured.items()]
    (folder / "report.md").write_text("\n".join(parts), encoding="utf8")
    if "sweep" in measured:
        figures.sweep(measured["sweep"], folder / "sweep.png")
    if "fit" in measured:
        figures.fit(measured["fit"], folder / "fit.png")
    if "growth" in measured:
        figures.growth(list(growth_curves(measured["growth"])), GROWING, folder / "growth.png")
    if "coverage" in measured:
        figures.coverage(measured["coverage"], METHODS, folder / "coverage.png")


if __name__ == "__main__":
    main()
