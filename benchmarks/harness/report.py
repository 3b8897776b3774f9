"""Pages and figures of the measured rows: every problem as it was last measured."""

from importlib import import_module

from benchmarks.harness import experiments, rows

_MACHINE = ("mode", "cpu", "python", "numpy", "scipy", "scikit-learn", "sklearn-lrvb", "blas")


def report(folder, draw=True):
    """Write every page of which something was measured into the folder of the CSV files, with its figures.

    Returns the names of the experiments without rows. Rows of another version of an experiment, which lack a
    column, are a ValueError.
    """
    missing = []
    for page, (title, names) in experiments.PAGES.items():
        newest = {name: rows.newest(folder / f"{name}.csv") for name in names.split()}
        missing += [name for name, found in newest.items() if not found]
        measured = {name: found for name, found in newest.items() if found}
        if measured:
            (folder / f"{page}.md").write_text(_text(page, title, measured), encoding="utf8")
        for name, found in measured.items():
            if draw and hasattr(experiments.module(name), "draw"):
                experiments.module(name).draw(found, folder / f"{name}.png")
    return missing


def _text(page, title, measured):
    """The text of a page, in Markdown; ``measured`` has the rows of every experiment by name."""
    contents, sections = "", ""
    for name, found in measured.items():
        heading = experiments.module(name).TITLE
        anchor = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in " -_")
        contents += f"* [{heading}](#{anchor.replace(' ', '-')})\n"
        try:
            sections += f"\n## {heading}\n\n{experiments.module(name).section(found)}"
        except KeyError as error:
            raise ValueError(
                f"{name}.csv has rows without {error}, which the section shows. Measure again: "
                f"python -m benchmarks run {name}"
            ) from error
    everything = [row for found in measured.values() for row in found]
    machines = dict.fromkeys(", ".join(f"{name} {row[name]}" for name in _MACHINE) for row in everything)
    dates = sorted(row["date"] for row in everything)
    return f"""# {title}

{import_module(f"benchmarks.{page}").__doc__}
{contents}
Measured from {dates[0]} to {dates[-1]} on

{chr(10).join(f"* {line}" for line in machines)}

`python -m benchmarks run NAME` measures an experiment again, and `python -m benchmarks report` writes this
page.
{sections}"""
