"""Influence beside its matrix product."""

import targets
from tables import SIZES, judged, milliseconds, ratio, table


def section(found):
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
        ],
        found,
    )
    return f"""## Influence

Of all points on all means and log weights, d targets, with the information factored. The matrix product takes
2 N K (1 + P) d P flops.

{shown}
"""
