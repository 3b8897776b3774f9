"""Leave-one-out scores beside refits."""

from tables import SIZES, milliseconds, table, text


def section(found):
    def errors(name):
        numbers = (f"{name}_mean_error", f"{name}_largest_error", f"{name}_error_of_sum")
        return lambda row: "{:.1e}, {:.1e}, {:.2%}".format(*(row[number] for number in numbers))

    def all_refits_over_ours(row):
        return f"{row['refit_seconds'] * row['n_samples'] / row['loo_seconds']:,.0f}"

    shown = table(
        [
            *SIZES,
            ("rows refitted without", text("left_out", "{:.0f}")),
            ("score, the row seen", errors("seen")),
            ("score - leverage", errors("first_order")),
            ("loo_score_samples", errors("loo")),
            ("loo_score_samples of all rows, ms", milliseconds("loo_seconds")),
            ("one refit, ms", milliseconds("refit_seconds")),
            ("refits of all rows over ours", all_refits_over_ours),
        ],
        found,
    )
    return f"""## Leave one out

Scores of rows in fits to all other rows, against refits: mean and largest error in nats, and the error of the
sum as a share of what the scores of rows that the fit has seen are too high by. The information is factored;
refits start from the fit to all rows, under the same prior.

{shown}
"""
