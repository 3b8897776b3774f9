"""Influence beside its matrix product."""

import targets
from tables import SIZES, judged, milliseconds, ratio, table


def section(found):
    def beside_the_paper(row):
        if row["problem"] != "digits" or row["mode"] == "quick":
            return ""
        return f"{targets.PAPER_INFLUENCE_SECONDS / row['influence_seconds']:,.0f}"

    shown = table(
        [
            *SIZES,
            ("influence, ms", milliseconds("influence_seconds")),
            ("matrix product, ms", milliseconds("limit_seconds")),
            *judged(
                "over the product",
                ratio("influence_seconds", "limit_seconds"),
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
