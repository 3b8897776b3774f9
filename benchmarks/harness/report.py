"""Write the pages and figures of the measured rows.

Every problem is shown as it was last measured, full measurements before quick ones.
"""

from benchmarks.harness import rows
from benchmarks.harness.registry import PAGES

_MACHINE = ("mode", "cpu", "python", "numpy", "scipy", "scikit-learn", "sklearn-lrvb", "blas")


def report(folder):
    """Write every page of which something was measured, and its figures.

    Parameters
    ----------
    folder : Path, where the CSV files are and the pages go

    Returns
    -------
    list of the names of experiments that have no rows

    Raises
    ------
    ValueError
        If there are no rows at all, or rows without the columns that a section shows.
    """
    measured = [write(page, folder) for page in PAGES]
    if not any(measured):
        raise ValueError(
            f"there are no rows in {folder}. (a) Measure some: python -m benchmarks run all --output "
            f"{folder} (or some experiments only, or with --quick). (b) Name the folder of the CSV files "
            "with --output."
        )
    shown = {experiment for found in measured for experiment in found}
    return [one.name for page in PAGES for one in page.experiments if one not in shown]


def write(page, folder):
    """Write a page and its figures if anything of it was measured, and return what: {Experiment: rows}."""
    measured = measured_rows(page, folder)
    if measured:
        (folder / page.file).write_text(text(page, measured), encoding="utf8")
    for experiment, found in measured.items():
        if experiment.draw:
            experiment.draw(found, folder / f"{experiment.name}.png")
    return measured


def measured_rows(page, folder):
    """The rows that a page shows, of every experiment that was measured: {Experiment: rows}."""
    newest = {experiment: rows.newest(folder / f"{experiment.name}.csv") for experiment in page.experiments}
    measured = {experiment: found for experiment, found in newest.items() if found}
    if not page.on_fewest_threads:
        return measured
    return {experiment: rows.on_fewest_threads(found) for experiment, found in measured.items()}


def text(page, measured):
    """The text of a page, in Markdown."""
    everything = [row for found in measured.values() for row in found]
    parts = [f"# {page.title}\n", page.introduction, _contents(measured), _measured_on(everything)]
    return "\n".join(parts + [_section(experiment, found) for experiment, found in measured.items()])


def _section(experiment, found):
    try:
        section = experiment.section(found)
    except KeyError as error:
        raise ValueError(
            f"{experiment.name}.csv has rows without {error}, which the section shows; another version "
            f"of the experiment wrote them. Measure again: python -m benchmarks run {experiment.name}"
        ) from error
    return f"## {experiment.title}\n\n{section}"


def _contents(measured):
    """A list of links to the sections."""
    lines = [f"* [{experiment.title}](#{_anchor(experiment.title)})" for experiment in measured]
    return "\n".join(lines) + "\n"


def _anchor(title):
    """The anchor that GitHub gives to a heading."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def _measured_on(found):
    """What the rows were measured on, with one line for every difference, and how to measure again."""
    lines = dict.fromkeys(", ".join(f"{name} {row[name]}" for name in _MACHINE) for row in found)
    dates = sorted(row["date"] for row in found)
    machines = "\n".join(f"* {line}" for line in lines)
    return f"""Measured from {dates[0]} to {dates[-1]} on

{machines}

`python -m benchmarks run NAME` measures an experiment again, and `python -m benchmarks report` writes this
page.
"""
