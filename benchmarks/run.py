"""Measure, append rows of results, and stop; `report.py` reads them.

    python benchmarks/run.py all --quick
    python benchmarks/run.py fit --threads 1 --repeats 3
    python benchmarks/run.py information --mnist mnist01.npz --pca mnist_author_pca.npz

Both sides of a comparison run in turn in one process, with the same number of threads (of BLAS and of
OpenMP); the least and the median time are kept.
"""

import argparse
import warnings
from dataclasses import fields
from pathlib import Path

import rows
from experiments import (
    coverage,
    diagnostics,
    fit,
    growth,
    influence,
    information,
    leave_one_out,
    paper_covariance,
    paper_influence_distribution,
    paper_influence_landscape,
    paper_influence_refits,
    paper_mnist,
    paper_scaling,
    peers,
    profile,
    start,
    surplus,
    sweep,
)
from measuring import Settings, machine
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

EXPERIMENTS = {
    "sweep": sweep,
    "fit": fit,
    "start": start,
    "information": information,
    "influence": influence,
    "diagnostics": diagnostics,
    "leave_one_out": leave_one_out,
    "surplus": surplus,
    "growth": growth,
    "profile": profile,
    "coverage": coverage,
    "paper_mnist": paper_mnist,
    "paper_covariance": paper_covariance,
    "paper_scaling": paper_scaling,
    "paper_influence_refits": paper_influence_refits,
    "paper_influence_landscape": paper_influence_landscape,
    "paper_influence_distribution": paper_influence_distribution,
    "peers": peers,
}
RESULTS = Path(__file__).parent / "results"


def run(name, settings, folder):
    """Measure one experiment; every row is written as soon as it is there."""
    common = {"mode": "quick" if settings.quick else "full", "threads": settings.threads}
    for row in EXPERIMENTS[name].measure(settings):
        rows.append(folder / f"{name}.csv", row | common | machine())
        print(f"{name}: {_shown(row)}", flush=True)


def _shown(row):
    row = {name: value for name, value in row.items() if name != "points"}
    cells = (f"{value:.4g}" if isinstance(value, float) else value for value in row.values())
    return ", ".join(f"{name} {cell}" for name, cell in zip(row, cells, strict=True) if cell is not None)


def _file(path):
    """A path that is there: what is missing is to be known before hours of work."""
    if not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {path}")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--quick", action="store_true", help="few rows, one repeat: does everything run?")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument(
        "--mnist", type=_file, help="npz with X_train, y_train, X_test, y_test, zeros and ones of MNIST"
    )
    parser.add_argument(
        "--pca", type=_file, help="npz with pixel_mean and components, the paper's projection"
    )
    parser.add_argument("--published", type=_file, help="npz with the published posterior of MNIST")
    parser.add_argument("--published-simulations", type=_file, help="npz with the authors' 200 simulations")
    parser.add_argument(
        "--stored-chains",
        action="store_true",
        help="compare with the stored Gibbs chains even where R is there",
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    arguments.output.mkdir(parents=True, exist_ok=True)
    settings = Settings(**{field.name: getattr(arguments, field.name) for field in fields(Settings)})
    chosen = EXPERIMENTS if arguments.experiment == "all" else [arguments.experiment]
    with threadpool_limits(arguments.threads):
        for name in chosen:
            run(name, settings, arguments.output)


if __name__ == "__main__":
    main()
