"""The registry of experiments, which the commands and the tests read.

A new experiment is one new module in the folder of its page, and its name in `PAGES`.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module


@dataclass(frozen=True)
class Experiment:
    """One experiment, whose module is imported when it is first asked for.

    Attributes
    ----------
    name : str, of the module, the CSV file and the figure
    page : str, name of the page and of the folder of the module
    """

    name: str
    page: str

    @cached_property
    def module(self):
        return import_module(f"benchmarks.{self.page}.{self.name}")

    @property
    def title(self):
        """Heading of the section."""
        return self.module.TITLE

    @property
    def summary(self):
        """First line of the module's docstring."""
        return self.module.__doc__.splitlines()[0]

    @property
    def measure(self):
        """Function (settings) -> rows."""
        return self.module.measure

    @property
    def section(self):
        """Function (rows) -> Markdown text."""
        return self.module.section

    @property
    def draw(self):
        """Function (rows, path), or None where there is no figure."""
        return getattr(self.module, "draw", None)


@dataclass(frozen=True)
class Page:
    """A page of the report: the experiments of one folder.

    Attributes
    ----------
    name : str, of the folder
    title : str
    experiments : tuple of Experiment, in the order of their sections
    on_fewest_threads : bool, whether rows are left out that were measured on more threads than others
    """

    name: str
    title: str
    experiments: tuple
    on_fewest_threads: bool = True

    @property
    def file(self):
        return f"{self.name}.md"

    @property
    def introduction(self):
        """Docstring of the folder's package."""
        return import_module(f"benchmarks.{self.name}").__doc__


def _page(name, title, experiments, **others):
    return Page(name, title, tuple(Experiment(experiment, name) for experiment in experiments), **others)


PAGES = (
    _page(
        "speed",
        "Speed",
        (
            "sweep",
            "holes",
            "threads",
            "rows_anywhere",
            "fit",
            "small",
            "wide",
            "start",
            "information",
            "influence",
            "diagnostics",
            "growth",
            "profile",
        ),
        on_fewest_threads=False,
    ),
    _page(
        "accuracy",
        "Accuracy",
        (
            "coverage",
            "trust",
            "exactness",
            "corrected_coverage",
            "missing_values",
            "missing_exactness",
            "imputation",
            "leave_one_out",
            "surplus",
            "peers",
        ),
    ),
    _page(
        "paper",
        "The paper's experiments",
        (
            "paper_mnist",
            "paper_covariance",
            "paper_scaling",
            "paper_influence_refits",
            "paper_influence_landscape",
            "paper_influence_distribution",
        ),
    ),
)
EXPERIMENTS = {experiment.name: experiment for page in PAGES for experiment in page.experiments}


def experiment(name):
    """The experiment of a name.

    Raises
    ------
    ValueError
        If there is none, with the nearest names that there are.
    """
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    near = get_close_matches(name, EXPERIMENTS)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    raise ValueError(f"unknown experiment '{name}'. {meant}`python -m benchmarks` lists all experiments.")
