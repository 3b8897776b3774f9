"""One sweep: its speed and its memory."""

import targets
from tables import SIZES, by_name, judged, milliseconds, ratio, table, text


def section(found):
    speed = table(
        [
            *SIZES,
            ("ours, ms", milliseconds("ours_seconds")),
            ("scikit-learn, ms", milliseconds("theirs_seconds")),
            *judged("times faster", ratio("theirs_seconds", "ours_seconds"), by_name(targets.SWEEP)),
            ("ours, Gflop/s", text("gflops")),
            ("share of the flop limit", text("share_of_limit", "{:.2%}")),
            ("ours on float32 rows, ms", milliseconds("ours_float32_seconds")),
        ],
        found,
    )
    memory = table(
        [
            *SIZES,
            ("X, MB", text("megabytes")),
            *judged("sweep, ours", lambda row: row.get("ours_sweep_memory"), _memory_target),
            ("sweep, ours, float32", text("ours_float32_sweep_memory")),
            ("sweep, scikit-learn", text("theirs_sweep_memory")),
            ("fit, ours", text("ours_fit_memory")),
            ("fit, ours, float32", text("ours_float32_fit_memory")),
            ("fit, scikit-learn", text("theirs_fit_memory")),
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


def _memory_target(row):
    solid = targets.MEMORY_SHARE + targets.BLOCKS_MEGABYTES / row["megabytes"]
    return targets.Target(solid, at_most=True)
