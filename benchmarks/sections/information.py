"""The covariance, by its solvers."""

import targets
from tables import SIZES, by_name, judged, milliseconds, ratio, table, text


def section(found):
    solvers = ("primal", "dual", "matrix_free")

    def solver_cell(solver):
        def cell(row):
            shown = milliseconds(f"{solver}_seconds")(row)
            return f"**{shown}**" if row["cheapest"] == solver and shown else shown

        return cell

    def over_naive(row):
        return ratio(f"{row['cheapest']}_seconds", "naive_seconds")(row)

    shown = table(
        [
            *SIZES,
            ("unknowns", text("n_unknowns", "{:,.0f}")),
            ("doubtful", text("n_alternatives", "{:,.0f}")),
            ("one sweep, ms", milliseconds("sweep_seconds")),
            ("naive, ms", milliseconds("naive_seconds")),
            *((f"{solver.replace('_', '-')}, ms", solver_cell(solver)) for solver in solvers),
            *judged("over naive", over_naive, by_name(targets.INFORMATION)),
        ],
        found,
    )
    return f"""## Covariance

From the rows to a factored matrix and one standard deviation. "Naive" is the product of the whole feature
matrix with itself at the speed of a large product; bold, what the cost model takes for the standard
deviations of all means; "doubtful", components that rows may belong to beside their most probable one.

{shown}
"""
