"""The commands: list, run and report."""

import argparse
import sys
from pathlib import Path

from benchmarks.harness import experiments
from benchmarks.harness.report import report

RESULTS = Path(__file__).parent / "results"


def main(arguments=None):
    """Run a command; ``arguments`` are those of the process if None."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Without a command: a list.")
    parser.set_defaults(command=_list)
    commands = parser.add_subparsers()
    run = commands.add_parser("run", help="measure experiments, and append rows to their CSV files")
    run.add_argument("names", nargs="+", choices=[*experiments.PAGE_OF, "all"], metavar="NAME")
    run.add_argument("--quick", action="store_true", help="few rows, one repeat: does everything run?")
    run.add_argument("--threads", type=int, default=1, help="of BLAS, and of ours over blocks of rows")
    run.add_argument("--repeats", type=int, default=3, help="rounds of a comparison")
    run.add_argument("--mnist", type=_file, help="npz with X_train, y_train, X_test, y_test: zeros and ones")
    run.add_argument("--pca", type=_file, help="npz with pixel_mean and components, the paper's projection")
    run.add_argument("--published", type=_file, help="npz with the published posterior of MNIST")
    run.add_argument("--published-simulations", type=_file, help="npz with the authors' 200 simulations")
    run.add_argument("--stored-chains", action="store_true", help="no new Gibbs chains where R is installed")
    run.set_defaults(command=_run)
    of_rows = commands.add_parser("report", help="write the pages and figures of the rows")
    of_rows.set_defaults(command=_report)
    for command in (run, of_rows):
        command.add_argument("--output", type=Path, default=RESULTS, help="folder (default: %(default)s)")
    chosen = vars(parser.parse_args(arguments))
    try:
        chosen.pop("command")(**chosen)
    except ModuleNotFoundError as error:
        parser.error(f"the package {error.name} is not installed: pip install -e '.[benchmark]' brings it")
    except ValueError as error:
        parser.error(str(error))


def _file(path):
    """The path of an existing file: a missing one is reported before hours of work."""
    if not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {path}")
    return path


def _list():
    for name, page in experiments.PAGE_OF.items():
        print(f"{page:10}{name:30}{experiments.module(name).__doc__.splitlines()[0]}")
    print("\npython -m benchmarks run NAME... measures, python -m benchmarks report writes the pages.")


def _run(names, output, **settings):
    from benchmarks.harness.measuring import Settings, run

    run(experiments.PAGE_OF if "all" in names else dict.fromkeys(names), Settings(**settings), output)


def _report(output):
    for name in report(output):
        print(f"no rows of {name} in {output}: python -m benchmarks run {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
