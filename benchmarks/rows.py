"""Rows of results: one CSV file per experiment."""

import csv


def append(path, row):
    """Add one row to a file, which gets the columns that it lacks."""
    rows = [*_text(path), row]
    columns = list(dict.fromkeys(name for r in rows for name in r))
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def newest(path):
    """The last row of every problem and number of threads; quick ones only where there are no others."""
    rows = [{name: _parsed(value) for name, value in row.items()} for row in _text(path)]
    full = [row for row in rows if row["mode"] == "full"]
    return list({(row["problem"], row["threads"]): row for row in full or rows}.values())


def label(row):
    """The problem, and on how many threads if not one."""
    return row["problem"] if row["threads"] == 1 else f"{row['problem']} ({row['threads']:.0f} threads)"


def _text(path):
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


def _parsed(value):
    """A number, a truth value, None for nothing, or the text itself."""
    named = {"": None, "True": True, "False": False}
    if value in named:
        return named[value]
    try:
        return float(value)
    except ValueError:
        return value
