"""Are influences right? Linear response beside derivatives by refits, as in the paper's Section 6.5.

On the paper's simulation every row is moved in every coordinate, on the digits five rows are: some that
belong to one component for certain, and some that are in doubt. Differences are in units of the root mean
square influence on the group of parameters.
"""

from time import perf_counter

import numpy as np
from measuring import summary
from paper_mixtures import digits, rounded, simulated
from populations import PAPER
from refits import GROUPS, Refits, influences

from sklearn_lrvb.row_blocks import slices

_SAMPLES_IN_QUICK_MODE, _MOVED_IN_QUICK_MODE = 200, 10
_LOG_ODDS = (-15.0, -2.0, 0.0, 2.0, 15.0)  # near which the digits are chosen
_ROWS_AT_ONCE = 1000  # whose influences are held in memory
_SHOWN = 600  # points of a figure, of a problem and group


def measure(settings):
    fitted = simulated("the paper's simulation", PAPER.population, settings, _SAMPLES_IN_QUICK_MODE)
    n_moved = _MOVED_IN_QUICK_MODE if settings.quick else len(fitted.X)
    yield from _compared(fitted, np.arange(n_moved), settings)
    for fitted in digits(settings):
        moved = representatives(fitted.log_odds)
        odds = ", ".join(f"{value:.1f}" for value in fitted.log_odds[moved])
        yield from _compared(fitted, moved, settings, log_odds=odds)


def representatives(log_odds):
    """Distinct rows whose log odds are nearest to the wanted ones, (5,)."""
    chosen = []
    for wanted in sorted(_LOG_ODDS, key=abs):
        distance = np.abs(log_odds - wanted)
        distance[chosen] = np.inf
        chosen.append(int(distance.argmin()))
    return np.array(sorted(chosen, key=lambda row: log_odds[row]))


def _compared(fitted, moved, settings, **known):
    """Yield a row for every group of parameters, the points of the figure with it."""
    X, mixture = fitted.X, fitted.mixture
    refits = Refits(mixture, X)
    begin = perf_counter()
    by_refits = refits.derivatives(moved)
    common = known | {
        "moved": len(moved),
        "refits": refits.count,
        "refits_seconds": perf_counter() - begin,
        "largest_last_step": refits.largest_last_step,
        "distance_from_fit": refits.distance_from_fit(moved[0]),
    }
    times = settings.clock.interleaved(
        {"refit": lambda: refits.refit(moved[0]), "fit": lambda: refits.fit(moved[0])}
        | {group: lambda group=group: _of_all_rows(mixture, X, group) for group in GROUPS}
    )
    seconds = {group: summary({"influence": times.pop(group)}) for group in GROUPS}
    common |= summary(times)
    for group in GROUPS:
        ours, theirs = influences(mixture, X[moved], group).ravel(), by_refits[group].ravel()
        unit = np.sqrt(np.mean(ours**2))
        yield {
            "problem": f"{fitted.name}: {group}",
            "group": group,
            **fitted.sizes,
            **common,
            **seconds[group],
            "root_mean_square": unit,
            **_agreement(ours / unit, theirs / unit),
            "points": _shown(ours / unit, theirs / unit),
        }


def _of_all_rows(mixture, X, group):
    """Influence of all rows, some of them in memory at a time."""
    written = np.empty((_ROWS_AT_ONCE, *mixture.influence(X[:1], target=group).shape[1:]))
    for some in slices(len(X), _ROWS_AT_ONCE):
        mixture.influence(X[some], target=group, out=written[: some.stop - some.start])


def _agreement(ours, theirs):
    """Of derivatives in units of the root mean square."""
    differences = np.abs(ours - theirs)
    return {
        "lack_of_correlation": 1.0 - np.corrcoef(ours, theirs)[0, 1],
        "slope": (ours @ theirs) / (ours @ ours),
        "largest_difference": differences.max(),
        "median_difference": np.median(differences),
    }


def _shown(ours, theirs):
    """Some of the derivatives by both ways, the largest among them."""
    by_size = np.argsort(-np.abs(ours))
    largest, others = np.split(by_size, [_SHOWN // 4])
    n_others = min(len(others), _SHOWN - len(largest))
    some = [*largest, *np.random.default_rng(0).choice(others, n_others, replace=False)]
    return [{"lrvb": rounded(ours[i]), "refitted": rounded(theirs[i])} for i in some]
