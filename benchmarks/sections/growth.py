"""How the cost grows with each size."""

import targets
from growth_curves import curves
from tables import judged, table, text

GROWING = {"n_samples": "rows N", "n_features": "features P", "n_components": "components K"}
# the column of seconds of a pass, and that of flops where they are known
PASSES = {
    "one sweep": ("sweep_seconds", "sweep_flops"),
    "a fit, by iteration": ("iteration_seconds", None),
    "information (primal)": ("information_seconds", "information_flops"),
}


def section(found):
    exponents = [
        {
            "grows": curve.grows,
            "pass": curve.what,
            "exponent": curve.exponent,
            "flops": curve.flops_exponent,
            "mode": found[0]["mode"],
        }
        for curve in curves(found, GROWING, PASSES)
    ]

    def target(row):
        expected = 1.0 if row["grows"] == "n_samples" else row["flops"]
        return None if expected is None else targets.Target(expected + targets.GROWTH_TOLERANCE, at_most=True)

    shown = table(
        [
            ("what grows", lambda row: GROWING[row["grows"]]),
            ("time of", text("pass", "{}")),
            ("exponent of the flops", text("flops")),
            *judged("exponent", lambda row: row["exponent"], target),
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
