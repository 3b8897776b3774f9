"""Which digits move a mean? Scores of 100 digits on both means (Section 6.5 of the paper).

A score is the largest directional derivative of the mean's squared norm. Component 0 is that of most zeros.
"""

import numpy as np
from matplotlib import pyplot as plt

from benchmarks.harness.figures import BLUE, ORANGE, STYLE, saved
from benchmarks.harness.tables import grouped, table, text

TITLE = "Influence of digits (Section 6.5)"
_DIGITS = 100
_LARGEST_LOG_ODDS = 15.0  # at which the paper caps them
_COMPONENTS = (("component 0, zeros", BLUE), ("component 1, ones", ORANGE))


def measure(settings):
    """A row for every set of features and component."""
    from benchmarks.problems.paper_mixtures import digits

    for fitted in digits(settings):
        n_shown = min(_DIGITS, len(fitted.X))
        chosen = np.random.default_rng(0).choice(len(fitted.X), n_shown, replace=False)
        scores = _scores(fitted.mixture, fitted.X)[:, fitted.order]
        for k in (0, 1):
            log_odds = fitted.log_odds * (1 if k else -1)
            yield _row(fitted, k, scores[:, k], log_odds, chosen)


def _scores(mixture, X):
    """The paper's scores, (n_samples, n_components): norms of the gradients of |mu_k|^2 in every row."""
    gradients = (
        np.einsum("kp,nkpq->nkq", 2 * mixture.means_, mixture.influence(rows))
        for rows in np.array_split(X, 1 + len(X) // 1000)  # All at once would take gigabytes.
    )
    return np.linalg.norm(np.concatenate(list(gradients)), axis=2)


def _row(fitted, k, scores, log_odds, chosen):
    """A row about the scores of the component's digits and of the others: of all, and of those shown."""
    from benchmarks.problems.paper_mixtures import rounded

    own, capped = log_odds > 0, np.clip(log_odds, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
    return {
        "problem": f"{fitted.name}: component {k}",
        "features": fitted.name,
        "component": k,
        **fitted.sizes,
        "digits": len(chosen),
        "own_digits": int(own[chosen].sum()),
        "own_median_shown": np.median(scores[chosen][own[chosen]]),
        "own_median": np.median(scores[own]),
        "other_median": np.median(scores[~own]),
        "largest": scores.max(),
        "log_odds_of_largest": log_odds[scores.argmax()],
        "norm_of_mean": np.linalg.norm(fitted.mixture.means_[fitted.order[k]]),
        "points": [{"log_odds": rounded(capped[i]), "score": rounded(scores[i])} for i in chosen],
    }


def section(found):
    shown = table(
        [
            ("features", lambda row: row["features"]),
            ("component", _component),
            ("its digits, of those shown", lambda row: f"{row['own_digits']:.0f} of {row['digits']:.0f}"),
            ("median score of these", text("own_median_shown")),
            ("of all its digits", text("own_median")),
            ("of all others", text("other_median")),
            ("its own over the others'", lambda row: f"{row['own_median'] / row['other_median']:.3g}"),
            ("largest score", text("largest")),
            ("log odds there", text("log_odds_of_largest", "{:.1f}")),
            ("norm of the mean", text("norm_of_mean")),
        ],
        found,
    )
    return f"""The paper's score of a digit on a component's mean is the largest directional derivative of the
mean's squared norm. The figure shows {found[0]["digits"]:.0f} digits drawn at random; the table also has
medians over all digits.

{shown}

![Influence of digits](paper_influence_distribution.png)

{_reading(found)}
"""


def _component(row):
    return f"{row['component']:.0f} ({('zeros', 'ones')[int(row['component'])]})"


def _reading(found):
    """What the paper says about its features, and what is found here on each set of features."""
    by_features = grouped(found, lambda row: row["features"])
    lines = [_compared(features, *pair) for features, pair in by_features.items() if len(pair) == 2]
    if not lines:
        return ""
    return (
        "The paper says about its features that component 0 has much higher influence amongst points that "
        "are classified within it than component 1. Here:\n\n"
    ) + "\n".join(lines)


def _compared(features, zeros, ones):
    """A sentence about medians of both components' own digits, and about these over those of other digits."""
    contrasts = (row["own_median"] / row["other_median"] for row in (zeros, ones))
    return (
        f"* {features}: digits of component 0 have {zeros['own_median'] / ones['own_median']:.2f} times as "
        "much influence on their mean as digits of component 1 on theirs. On the mean of component 0 its own "
        "digits have {:.2g} times as much as the others, on that of component 1 {:.2g} times.".format(
            *contrasts
        )
    )


def draw(found, path):
    """A panel for every component, a row of panels for every kind of features."""
    by_features = grouped(found, lambda row: row["features"])
    size = (8.5, 0.6 + 2.6 * len(by_features))
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(by_features), 2, figsize=size, layout="constrained", squeeze=False, sharex=True, sharey="row"
        )
        for line, (features, rows) in zip(panels, by_features.items(), strict=True):
            for row in rows:
                component, colour = _COMPONENTS[int(row["component"])]
                axes = line[int(row["component"])]
                _panel(axes, row["points"], colour)
                axes.set_title(f"{features}: {component}", size=9)
        figure.supxlabel("log odds that the digit is the component's, capped at ± 15", size=9)
        figure.supylabel("largest directional derivative of the mean's squared norm", size=9)
        saved(figure, path)


def _panel(axes, points, colour):
    log_odds, scores = ([point[name] for point in points] for name in ("log_odds", "score"))
    axes.plot(log_odds, scores, "o", color=colour, alpha=0.6, markersize=5)
    axes.set_yscale("log")
