"""Markdown tables of rows: a column is a pair of a header and a function of a row."""

import rows


def table(columns, found):
    """A markdown table over rows; columns are pairs of a header and a function of a row."""
    lines = [[header for header, _ in columns], ["---"] * len(columns)]
    lines += [[str(cell(row)) for _, cell in columns] for row in found]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def milliseconds(name):
    """A column of seconds in milliseconds, three digits."""
    return lambda row: "" if row.get(name) is None else f"{1e3 * row[name]:,.3g}"


def text(name, shape="{:.3g}"):
    """A column in a format, empty where there is nothing."""
    return lambda row: "" if row.get(name) is None else shape.format(row[name])


def text_of(value):
    """A computed number in three digits."""
    return lambda row: "" if value(row) is None else f"{value(row):.3g}"


def yes(name):
    """A truth value in words."""
    return lambda row: {True: "yes", False: "no", None: ""}[row.get(name)]


def size(row):
    """Rows, features and components."""
    return ", ".join(f"{row[name]:,.0f}" for name in ("n_samples", "n_features", "n_components"))


SIZES = (("problem", rows.label), ("N, P, K", size))


def ratio(above, below):
    """Ratio of two columns, None where one is missing."""

    def quotient(row):
        if row.get(above) is None or row.get(below) is None:
            return None
        return row[above] / row[below]

    return quotient


def judged(header, value, target_of):
    """Three columns: a number, its target and whether it is met."""

    def cell(row):
        number = value(row)
        return "" if number is None else f"{number:.3g}"

    def wanted(row):
        return target_of(row) or ""

    def verdict(row):
        number, target = value(row), target_of(row)
        if number is None or target is None:
            return ""
        return "too few rows" if row["mode"] == "quick" else target.reached_by(number)

    return (header, cell), ("solid, aim", wanted), ("reached", verdict)


def by_name(by_problem):
    """The target of a row, by its problem: {name: Target}; None where it has none."""
    return lambda row: by_problem.get(row["problem"])
