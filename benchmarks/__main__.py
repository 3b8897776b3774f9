"""The commands: list, run and report."""

import argparse
import sys
from dataclasses import fields
from pathlib import Path

from benchmarks.harness.registry import EXPERIMENTS, PAGES, experiment
from benchmarks.harness.report import report
from benchmarks.harness.run import run
from benchmarks.harness.settings import Settings

RESULTS = Path(__file__).parent / "results"


def main(arguments=None):
    """Run a command; ``arguments`` are those of the process if None."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        chosen.command(chosen)
    except ModuleNotFoundError as error:
        parser.error(
            f"the package {error.name} is not installed. In the folder of the project, "
            f"pip install -e '.[benchmark]' brings all that the benchmarks need"
        )
    except ValueError as error:
        parser.error(str(error))


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Without a command: list the experiments."
    )
    parser.set_defaults(command=_list)
    commands = parser.add_subparsers()
    _add_run(commands)
    _add_report(commands)
    return parser


def _add_run(commands):
    command = commands.add_parser("run", help="measure experiments, and append rows to their CSV files")
    command.set_defaults(command=_run)
    command.add_argument(
        "names", nargs="+", type=_name, metavar="NAME", help="experiments, or 'all' for all of them"
    )
    command.add_argument("--quick", action="store_true", help="few rows, one repeat: does everything run?")
    command.add_argument("--threads", type=int, default=1, help="of BLAS, and of ours over blocks of rows")
    command.add_argument("--repeats", type=int, default=3, help="rounds of a comparison")
    command.add_argument(
        "--mnist", type=_file, help="npz with X_train, y_train, X_test, y_test: zeros and ones"
    )
    command.add_argument(
        "--pca", type=_file, help="npz with pixel_mean and components, the paper's projection"
    )
    command.add_argument("--published", type=_file, help="npz with the published posterior of MNIST")
    command.add_argument("--published-simulations", type=_file, help="npz with the authors' 200 simulations")
    command.add_argument(
        "--stored-chains",
        action="store_true",
        help="compare with the stored Gibbs chains even where R is installed",
    )
    _add_output(command)


def _add_report(commands):
    command = commands.add_parser("report", help="write the pages and figures of the rows")
    command.set_defaults(command=_report)
    _add_output(command)


def _add_output(command):
    command.add_argument(
        "--output", type=Path, default=RESULTS, help="folder of the results (default: %(default)s)"
    )


def _name(text):
    """An experiment's name, or "all"."""
    if text != "all":
        try:
            experiment(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _file(path):
    """The path of an existing file: a missing one is reported before hours of work."""
    if not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {path}")
    return path


def _list(chosen):
    for page in PAGES:
        print(f"{page.title}:")
        for one in page.experiments:
            print(f"  {one.name:30}{one.summary}")
    print("\npython -m benchmarks run NAME... measures, python -m benchmarks report writes the pages.")


def _run(chosen):
    settings = Settings(**{field.name: getattr(chosen, field.name) for field in fields(Settings)})
    names = EXPERIMENTS if "all" in chosen.names else dict.fromkeys(chosen.names)
    run([EXPERIMENTS[name] for name in names], settings, chosen.output)


def _report(chosen):
    for name in report(chosen.output):
        print(f"no rows of {name} in {chosen.output}: python -m benchmarks run {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
