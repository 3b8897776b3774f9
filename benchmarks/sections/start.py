"""The start of a fit."""

from tables import SIZES, milliseconds, ratio, table, text


def section(found):
    shown = table(
        [
            *SIZES,
            ("start, ms", milliseconds("start_seconds")),
            ("scikit-learn's, ms", milliseconds("their_start_seconds")),
            ("one sweep, ms", milliseconds("sweep_seconds")),
            ("whole fit, ms", milliseconds("fit_seconds")),
            ("steps", text("iterations", "{:.0f}")),
            ("start, in sweeps", lambda row: f"{ratio('start_seconds', 'sweep_seconds')(row):.3g}"),
            ("start, of the fit", lambda row: f"{ratio('start_seconds', 'fit_seconds')(row):.0%}"),
        ],
        found,
    )
    return f"""## Start

k-means and the first M-step, at the defaults.

{shown}
"""
