"""Questions to a fitted mixture."""

from tables import SIZES, milliseconds, table


def section(found):
    questions = {
        "one pass": "score_samples",
        "weight influence on the means": "weight_influence",
        "leverage": "leverage",
        "probabilities with sds": "spread",
        "leave-one-out scores": "leave_one_out",
        "sandwich of the means": "sandwich",
        "prior sensitivity": "prior_sensitivity",
        "1000 draws": "draws",
    }
    columns = [(header, milliseconds(f"{name}_seconds")) for header, name in questions.items()]
    return f"""## Diagnostics

Questions to a fitted mixture whose information is factored, of all rows, in milliseconds.

{table([*SIZES, *columns], found)}
"""
