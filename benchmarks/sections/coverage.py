"""Do intervals hold the truth as often as they say?"""

from experiments import coverage
from tables import size, table, text

METHODS = {"lrvb": "LRVB", "mean_field": "mean field", "sandwich": "sandwich"}


def section(found):
    settings = table(
        [
            ("setting", text("setting", "{}")),
            ("N, P, K", size),
            ("fit", lambda row: f"{row['covariance_type']}, {row['prior']}"),
            ("what is wrong", text("misspecified", "{}")),
            ("data sets", text("n_data_sets", "{:.0f}")),
            ("left out", text("left_out", "{:.0f}")),
            *((reason.replace("_", " "), text(reason, "{:.0f}")) for reason in coverage.REASONS),
        ],
        list({row["setting"]: row for row in found}.values()),
    )
    shown = table(
        [
            ("setting", text("setting", "{}")),
            ("of", lambda row: row["group"].replace("_", " ")),
            *((f"{name}, %", _percent(f"{method}_coverage")) for method, name in METHODS.items()),
            *((f"{name}: sd", _over_truth(f"{method}_sd_over_truth")) for method, name in METHODS.items()),
            ("bias", text("bias", "{:.2f}")),
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
