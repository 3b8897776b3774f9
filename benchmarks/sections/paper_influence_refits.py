"""Influence by linear response beside derivatives by refits."""

import targets
from tables import milliseconds, size, table, text

_EQUAL = 1e-4  # of a root mean square, below which a figure shows no difference


def section(found):
    agreement = table(
        [
            ("problem", _dataset),
            ("N, P, K", size),
            ("points moved", text("moved", "{:,.0f}")),
            ("influence on", lambda row: row["group"].replace("_", " ")),
            ("root mean square", text("root_mean_square")),
            ("1 - correlation", text("lack_of_correlation", "{:.0e}")),
            ("slope - 1", lambda row: f"{row['slope'] - 1:.0e}"),
            ("largest difference", text("largest_difference", "{:.1e}")),
            ("median difference", text("median_difference", "{:.1e}")),
        ],
        found,
    )
    times = table(
        [
            ("problem", _dataset),
            ("log odds of the points", text("log_odds", "{}")),
            ("influence of all points, ms", milliseconds("influence_seconds")),
            ("on the means alone, ms", milliseconds("means_seconds")),
            ("one refit by `fit`, ms", milliseconds("fit_seconds")),
            ("one of ours here, ms", milliseconds("refit_seconds")),
            ("refits done", text("refits", "{:,.0f}")),
            ("took, s", text("refits_seconds", "{:,.0f}")),
            ("the paper's, s", lambda row: f"{targets.PAPER_REFIT_SECONDS:,.0f}" if _is_mnist(row) else ""),
            ("two refits by `fit` of every number in X over the influence", _all_refits_over_influence),
            ("times faster than the paper's 37 s", _beside_the_paper),
        ],
        _by_dataset(found),
    )
    return f"""## Influence against refits

The paper's Section 6.5. Points are moved in every coordinate, a little and twice as much, to both sides, and
the mixture is fitted again from its optimum until nothing moves; central differences of fourth order then are
the derivatives. These refits take Newton's steps with the matrix of the first fit, which decides how soon
they arrive and not where: one of them and an ordinary warm-started `fit` to the same rows differ by
{_largest(found, "distance_from_fit"):.0e} posterior standard deviations at most. Differences from linear
response are in units of the root mean square influence on the group, over the points moved. On the simulation
these are all points; the digits are chosen by their log odds, some of them certain, some in doubt.

{agreement}

{_reading(_largest(found, "largest_difference"))}

Times of the influence are of all points on all log weights, means and precisions, the information being
factored; single refits are the least of the rounds, and what all took includes whatever else the machine did
meanwhile. On MNIST the paper takes 37 s for the influence, it does not say of how many points, and 20.7
minutes for moving five digits and fitting again.

{times}

![Influence against refits](paper_influence_refits.png)
"""


def _reading(largest):
    """What the largest of all differences says."""
    size = f"the largest of all differences is {largest:.0e} of a root mean square."
    if largest < _EQUAL:
        return f"As in the paper, the two cannot be told apart: {size}"
    return f"Other than in the paper, the two differ: {size}"


def _dataset(row):
    return row["problem"].split(":")[0]


def _largest(found, name):
    return max(row[name] for row in found)


def _by_dataset(found):
    """One row a data set: the influence on all groups, and on each of them."""
    merged = {}
    for row in found:
        total = merged.setdefault(_dataset(row), dict(row, influence_seconds=0.0))
        total["influence_seconds"] += row["influence_seconds"]
        total[f"{row['group']}_seconds"] = row["influence_seconds"]
    return list(merged.values())


def _all_refits_over_influence(row):
    n_refits = 2 * row["n_samples"] * row["n_features"]
    return f"{n_refits * row['fit_seconds'] / row['influence_seconds']:,.0f}"


def _beside_the_paper(row):
    return f"{targets.PAPER_INFLUENCE_SECONDS / row['influence_seconds']:,.1f}" if _is_mnist(row) else ""


def _is_mnist(row):
    return row["mode"] == "full" and row["problem"].startswith("MNIST")
