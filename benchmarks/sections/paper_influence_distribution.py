"""Scores of digits on both components' means."""

from tables import table, text


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
    return f"""## Influence of digits

The paper's score of a digit on a component's mean: the largest directional derivative of the mean's squared
norm. {found[0]["digits"]:.0f} digits drawn at random; medians over all of them stand beside.

{shown}

![Influence of digits](paper_influence_distribution.png)

{_reading(found)}
"""


def _component(row):
    return f"{row['component']:.0f} ({('zeros', 'ones')[int(row['component'])]})"


def _reading(found):
    """What the paper says of its features, and what is seen on each that has both components' rows."""
    by_features = {}
    for row in found:
        by_features.setdefault(row["features"], []).append(row)
    lines = [_compared(features, *pair) for features, pair in by_features.items() if len(pair) == 2]
    if not lines:
        return ""
    return (
        "The paper, on its features: component 0 has much higher influence amongst points that are "
        "classified within it than component 1.\n\n"
    ) + "\n".join(lines)


def _compared(features, zeros, ones):
    """Medians of both components' own digits, and of these over the others'."""
    contrasts = (row["own_median"] / row["other_median"] for row in (zeros, ones))
    return (
        f"* {features}: digits of component 0 have {zeros['own_median'] / ones['own_median']:.2f} times as "
        "much influence on their mean as digits of component 1 on theirs. On the mean of component 0 its own "
        "digits have {:.2g} times as much as the others, on that of component 1 {:.2g} times.".format(
            *contrasts
        )
    )
