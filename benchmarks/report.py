"""Write tables and figures of the measured rows.

    python benchmarks/report.py

Every problem is shown as it was last measured, full measurements before quick ones. Times are the least of
the rounds; ratios are of times from one run.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import figures.coverage
import figures.fit
import figures.growth
import figures.paper_covariance
import figures.paper_influence_distribution
import figures.paper_influence_landscape
import figures.paper_influence_refits
import figures.paper_mnist
import figures.paper_scaling
import figures.peers
import figures.surplus
import figures.sweep
import rows
import sections.coverage
import sections.diagnostics
import sections.fit
import sections.growth
import sections.influence
import sections.information
import sections.leave_one_out
import sections.paper_covariance
import sections.paper_influence_distribution
import sections.paper_influence_landscape
import sections.paper_influence_refits
import sections.paper_mnist
import sections.paper_scaling
import sections.peers
import sections.profile
import sections.start
import sections.surplus
import sections.sweep

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Page:
    """A file of the report, written once any of its experiments has rows.

    Attributes
    ----------
    file, title : str
    experiments : dict, the section of each: {name: function of its rows}
    on_fewest_threads : bool, whether rows of more threads are left out
    """

    file: str
    title: str
    experiments: dict
    on_fewest_threads: bool = False


PAGES = (
    Page(
        "report.md",
        "Benchmarks",
        {
            "sweep": sections.sweep.section,
            "fit": sections.fit.section,
            "start": sections.start.section,
            "information": sections.information.section,
            "influence": sections.influence.section,
            "diagnostics": sections.diagnostics.section,
            "leave_one_out": sections.leave_one_out.section,
            "surplus": sections.surplus.section,
            "growth": sections.growth.section,
            "profile": sections.profile.section,
            "coverage": sections.coverage.section,
        },
    ),
    Page(
        "paper.md",
        "The paper's experiments, and peers",
        {
            "paper_mnist": sections.paper_mnist.section,
            "paper_covariance": sections.paper_covariance.section,
            "paper_scaling": sections.paper_scaling.section,
            "paper_influence_refits": sections.paper_influence_refits.section,
            "paper_influence_landscape": sections.paper_influence_landscape.section,
            "paper_influence_distribution": sections.paper_influence_distribution.section,
            "peers": sections.peers.section,
        },
        on_fewest_threads=True,
    ),
)
# NAME.png: the experiment, and what draws its rows
FIGURES = {
    "sweep": ("sweep", figures.sweep.draw),
    "fit": ("fit", figures.fit.draw),
    "surplus": ("surplus", figures.surplus.draw),
    "growth": ("growth", figures.growth.draw),
    "coverage": ("coverage", figures.coverage.draw),
    "paper_mnist": ("paper_mnist", figures.paper_mnist.draw),
    "paper_covariance": ("paper_covariance", figures.paper_covariance.draw),
    "paper_scaling": ("paper_scaling", figures.paper_scaling.draw),
    "paper_influence_refits": ("paper_influence_refits", figures.paper_influence_refits.draw),
    "paper_influence_landscape": ("paper_influence_landscape", figures.paper_influence_landscape.draw),
    "paper_influence_distribution": (
        "paper_influence_distribution",
        figures.paper_influence_distribution.draw,
    ),
    "peers": ("peers", figures.peers.draw),
}


def write(page, folder):
    """Write a page and its figures, if there are rows for it; returns whether there are."""
    newest = {name: rows.newest(folder / f"{name}.csv") for name in page.experiments}
    measured = {name: found for name, found in newest.items() if found}
    if page.on_fewest_threads:
        measured = {name: rows.on_fewest_threads(found) for name, found in measured.items()}
    if not measured:
        return False
    everything = [row for found in measured.values() for row in found]
    parts = [f"# {page.title}\n", _measured_on(everything) + "\n"]
    parts += [page.experiments[name](found) for name, found in measured.items()]
    (folder / page.file).write_text("\n".join(parts), encoding="utf8")
    for name, (experiment, draw) in FIGURES.items():
        if experiment in measured:
            draw(measured[experiment], folder / f"{name}.png")
    return True


def _measured_on(found):
    """What the rows were taken on; one line for every difference."""
    kept = ("mode", "cpu", "python", "numpy", "scipy", "scikit-learn", "sklearn-lrvb", "blas")
    lines = dict.fromkeys(", ".join(f"{name} {row[name]}" for name in kept) for row in found)
    dates = sorted(row["date"] for row in found)
    return "\n".join(f"* {line}" for line in lines) + f"\n\nFrom {dates[0]} to {dates[-1]}."


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    folder = parser.parse_args().output
    written = [page.file for page in PAGES if write(page, folder)]
    if not written:
        parser.error(f"no rows in {folder}: measure some with benchmarks/run.py all --output {folder}")


if __name__ == "__main__":
    main()
