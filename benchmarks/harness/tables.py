"""Markdown tables: a column is a pair of a header and a function of a row."""

from benchmarks.harness import rows


def table(columns, found):
    """A Markdown table with a line for every row; columns are pairs of a header and a function of a row."""
    lines = [[header for header, _ in columns], ["---"] * len(columns)]
    lines += [[str(cell(row)) for _, cell in columns] for row in found]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def milliseconds(name):
    """The cell of a column of seconds, in milliseconds with three digits."""
    return lambda row: "" if row.get(name) is None else f"{1e3 * row[name]:,.3g}"


def text(name, shape="{:.3g}"):
    """The cell of a column in a format, empty where nothing was measured."""
    return lambda row: "" if row.get(name) is None else shape.format(row[name])


def text_of(value):
    """The cell of a computed number, with three digits."""
    return lambda row: "" if value(row) is None else f"{value(row):.3g}"


def yes(name):
    """The cell of a truth value, in words."""
    return lambda row: {True: "yes", False: "no", None: ""}[row.get(name)]


def size(row):
    """Rows, features and components of a problem."""
    return ", ".join(f"{row[name]:,.0f}" for name in ("n_samples", "n_features", "n_components"))


SIZES = (("problem", rows.label), ("N, P, K", size))


def ratio(above, below):
    """Ratio of two columns, None where one of them was not measured."""

    def quotient(row):
        if row.get(above) is None or row.get(below) is None:
            return None
        return row[above] / row[below]

    return quotient


def spread(values, shape="{:.0f}"):
    """The least and the largest of some numbers, or the one number if both read the same."""
    low, high = shape.format(min(values)), shape.format(max(values))
    return low if low == high else f"{low} to {high}"


def grouped(found, key):
    """Rows by what a function finds in them, in order: {key: list of rows}."""
    groups = {}
    for row in found:
        groups.setdefault(key(row), []).append(row)
    return groups
