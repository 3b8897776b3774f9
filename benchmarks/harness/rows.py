"""Rows of results: one CSV file per experiment.

A row may have "points", a list of flat dicts for a figure. They are kept in a file of their own,
NAME_points.csv, which has the last points of every problem; `newest` gives them back with their row.
"""

import csv

_OF_POINTS = ("problem", "threads", "mode")  # columns that tell to which row points belong


def append(path, row):
    """Add one row to a file, and the columns that the file lacks."""
    points = row.get("points")
    _write(path, [*_text(path), {name: value for name, value in row.items() if name != "points"}])
    if points is not None:
        beside, whose = _beside(path), {name: str(row[name]) for name in _OF_POINTS}
        others = [point for point in _text(beside) if {name: point[name] for name in whose} != whose]
        _write(beside, [*others, *(whose | point for point in points)])


def newest(path):
    """The last row of every problem and number of threads; quick rows only where there are no full ones."""
    rows = [_parsed(row) for row in _text(path)]
    full = [row for row in rows if row["mode"] == "full"]
    found = {(row["problem"], row["threads"]): row for row in full or rows}
    for point in map(_parsed, _text(_beside(path))):
        row = found.get((point["problem"], point["threads"]))
        if row is not None and row["mode"] == point["mode"]:
            row.setdefault("points", []).append(point)
    return list(found.values())


def label(row):
    """The problem, and the number of threads unless it is one."""
    return row["problem"] if row["threads"] == 1 else f"{row['problem']} ({row['threads']:.0f} threads)"


def _beside(path):
    """The file of the points."""
    return path.with_stem(f"{path.stem}_points")


def _write(path, rows):
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def _text(path):
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


def _parsed(row):
    """The same row with numbers, truth values and None in place of their texts."""
    named = {"": None, "True": True, "False": False}
    parsed = {}
    for name, value in row.items():
        try:
            parsed[name] = named[value] if value in named else float(value)
        except ValueError:
            parsed[name] = value
    return parsed
