"""Section on mixtures with more components than clusters."""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from benchmarks.harness.tables import milliseconds, table, text, yes

DEFAULT_STEPS = 100  # max_iter of both libraries at their defaults
AT_DEFAULTS = ("plain", "auto", "learned")  # sides that are also fitted within the default number of steps
SAME_BOUND = 0.01  # nats; converged fits are within 1e-3 of their optimum
NAMES = {
    "plain": "moves=None",
    "auto": 'moves="auto"',
    "merge": 'moves="merge"',
    "search": 'moves="search"',
    "learned_plain": "learned prior, moves=None",
    "learned": "learned prior, the default",
    "restarts": "moves=None, n_init=10",
    "theirs": "scikit-learn, tol=1e-8",
}
_LEARNED = ("learned_plain", "learned")
_SETS = ("known", "fresh", "ctgan")


def section(found):
    return f"""These fits have more components than there are clusters. The tables show how many steps they
take and where they end, with and without the moves that merge, delete, sort or split components. Three sets
of problems:

* *known*: real and simulated data sets with 2 to 30 components, each fitted from three starts;
* *fresh*: problems that were drawn at random after the settings of the method had been fixed;
* *ctgan*: single features of varied shape with ten components each, with the arguments with which CTGAN
  models a continuous column.

Fits are run to convergence, in at most 2,000 steps. Seconds are of the processor, in sum, and over those of
`moves=None` in the same fits. A component is occupied if it holds at least half an expected row. The number
of occupied components is compared with that of the clusters where the rows come from a Gaussian mixture of
this covariance type. Restarts and scikit-learn are run from the first start of each problem only, and
scikit-learn only where both have the same model (full covariances).

{_steps(found)}

Hundreds of iterations are needed until surplus components are empty, and none ever joins two that share one
cluster. The fits with `moves="auto"` that still take over {DEFAULT_STEPS} steps are mostly those in 10 or 25
features whose every component has more than `n_features + 1` rows, so that nothing is moved. All this is
under the fixed prior, but for the rows that are called learned. The default is the learned prior with
`moves="auto"`, which then looks for merges from the start where a component has few rows. If `n_components`
is surely too many, use `moves="merge"`.

The next table compares lower bounds with those of other fits of the same rows. It has the numbers of fits
that end higher, equal (within {SAME_BOUND} nats) and lower, and the largest deficit in nats. The bound of
scikit-learn's fit is that of our model at its posterior; in the next column our fit without moves has
continued from that posterior.

{_bounds(found)}

The next table is about fits at the default of `max_iter={DEFAULT_STEPS}`. A fit has no error bars where the
covariance is refused because it did not end at a strict optimum. The deficit is that of the fits that did not
converge, against the same fits run to convergence.

{_defaults(found)}

One CTGAN column at a time, ours and scikit-learn's both at their defaults:

{_columns(found)}

![Fits with more components than clusters](surplus.png)
"""


def having(found, *names):
    """The rows in which all of these columns were measured."""
    return [row for row in found if all(row.get(name) is not None for name in names)]


def values(found, name):
    """A column as an array."""
    return np.array([row[name] for row in found], dtype=float)


def gains(found, side, other):
    """Lower bounds of a side beyond those of another, in the rows that have both."""
    both = having(found, f"{side}_bound", f"{other}_bound")
    return values(both, f"{side}_bound") - values(both, f"{other}_bound")


def surplus(found, side):
    """Occupied components beyond the number of clusters, where that is known."""
    known = having(found, "n_clusters", f"{side}_occupied")
    return values(known, f"{side}_occupied") - values(known, "n_clusters")


def share_over(found, side):
    """Share of fits that take more steps than the default allows."""
    return float(np.mean(values(found, f"{side}_steps") > DEFAULT_STEPS))


def time_over(found, side, other):
    """Seconds of a side in all over those of another in the same fits."""
    both = having(found, f"{side}_seconds", f"{other}_seconds")
    return values(both, f"{side}_seconds").sum() / values(both, f"{other}_seconds").sum()


@dataclass(frozen=True)
class _Group:
    """The fits of one side in one set.

    Attributes
    ----------
    name : str, of the set
    side : str
    rows : list, of which each has this side
    """

    name: str
    side: str
    rows: list

    def values(self, what):
        """One column of the side."""
        return values(self.rows, f"{self.side}_{what}")

    @property
    def has_steps(self):
        """Whether the steps are those of the whole fit, and not of the best one of several starts."""
        return self.side != "restarts"


def _groups(found, sides, column):
    """Yield the sides of every set for which this column was measured."""
    for name in _SETS:
        here = [row for row in found if row["set"] == name]
        for side in sides:
            if measured := having(here, f"{side}_{column}"):
                yield _Group(name, side, measured)


_WHICH = (
    ("set", attrgetter("name")),
    ("fit", lambda group: NAMES[group.side]),
    ("fits", lambda group: len(group.rows)),
)


def _steps(found):
    def over(group):
        return f"{share_over(group.rows, group.side):.1%}" if group.has_steps else ""

    def quantiles(group):
        steps = np.quantile(group.values("steps"), [0.5, 0.9])
        return "{:.0f}, {:.0f}".format(*steps) if group.has_steps else ""

    def occupied(group):
        beyond = surplus(group.rows, group.side)
        return f"{np.mean(beyond == 0):.0%} of {len(beyond)}" if len(beyond) else ""

    return table(
        [
            *_WHICH,
            (f"over {DEFAULT_STEPS} steps", over),
            ("steps: median, 90th percentile", quantiles),
            ("seconds", lambda group: f"{group.values('seconds').sum():.3g}"),
            ("over moves=None", lambda group: f"{time_over(group.rows, group.side, 'plain'):.2f}"),
            ("as many occupied as clusters", occupied),
        ],
        list(_groups(found, NAMES, "steps")),
    )


def _bounds(found):
    def against(other):
        def cell(group):
            compared = other
            if group.side in _LEARNED:  # Bounds compare under the same prior alone.
                compared = _LEARNED[0] if other == "plain" else ""
            differences = gains(group.rows, group.side, compared)
            return _comparison(differences) if group.side != compared and len(differences) else ""

        return cell

    return table(
        [
            *_WHICH,
            ("against moves=None", against("plain")),
            ("against scikit-learn", against("theirs")),
            ("against scikit-learn, continued", against("theirs_continued")),
            ("against moves=None, n_init=10", against("restarts")),
        ],
        list(_groups(found, NAMES, "bound")),
    )


def _comparison(differences):
    """Numbers of positive, small and negative differences, and the largest deficit."""
    higher, lower = np.sum(differences > SAME_BOUND), np.sum(differences < -SAME_BOUND)
    worst = f", worst {differences.min():.3g}" if lower else ""
    return f"{higher} / {len(differences) - higher - lower} / {lower}{worst}"


def _defaults(found):
    def deficit(group):
        short = [row for row in group.rows if not row[f"{group.side}_default_converged"]]
        deficits = gains(short, group.side, f"{group.side}_default")
        return f"{np.median(deficits):.3g}" if len(deficits) else ""

    return table(
        [
            *_WHICH,
            ("not converged", lambda group: f"{1 - np.mean(group.values('default_converged')):.1%}"),
            ("without error bars", lambda group: f"{1 - np.mean(group.values('default_error_bars')):.1%}"),
            ("median deficit, nats", deficit),
        ],
        list(_groups(found, AT_DEFAULTS, "default_converged")),
    )


def _columns(found):
    sides = {"plain": "moves=None", "auto": 'moves="auto"', "theirs": "scikit-learn"}
    return table(
        [
            ("column", text("name", "{}")),
            *((f"{name}: steps", text(f"{side}_default_steps", "{:.0f}")) for side, name in sides.items()),
            *((f"{name}: converged", yes(f"{side}_default_converged")) for side, name in sides.items()),
            *((f"{name}, ms", milliseconds(f"{side}_default_seconds")) for side, name in sides.items()),
        ],
        [row for row in found if row["set"] == "ctgan"],
    )
