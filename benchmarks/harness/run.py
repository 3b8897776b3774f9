"""Measure experiments, and append their rows to the CSV files of a folder."""

import warnings

from threadpoolctl import threadpool_limits

from benchmarks.harness import rows


def run(experiments, settings, folder):
    """Measure experiments one by one; every row is written as soon as it is measured.

    Parameters
    ----------
    experiments : iterable of Experiment
    settings : Settings
    folder : Path, made if it does not exist
    """
    from sklearn.exceptions import ConvergenceWarning

    folder.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(settings.threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the rows say whether a fit converged
        for experiment in experiments:
            _measure(experiment, settings, folder)


def _measure(experiment, settings, folder):
    from benchmarks.harness.machine import machine

    common = {"mode": settings.mode, "threads": settings.threads}
    for row in experiment.measure(settings):
        rows.append(folder / f"{experiment.name}.csv", row | common | machine())
        print(f"{experiment.name}: {_shown(row)}", flush=True)


def _shown(row):
    """The cells of a row in one line."""
    row = {name: value for name, value in row.items() if name != "points"}
    cells = (f"{value:.4g}" if isinstance(value, float) else value for value in row.values())
    return ", ".join(f"{name} {cell}" for name, cell in zip(row, cells, strict=True) if cell is not None)
