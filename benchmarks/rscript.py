"""R, where it is there: a script of `benchmarks/r`, arrays in, arrays out."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

_SCRIPTS = Path(__file__).parent / "r"


def missing(*packages):
    """What a machine lacks of R and its packages, and how to get it; empty where all is there."""
    needed = " ".join(["r-base-core", *(f"r-cran-{package}" for package in packages)])
    advice = f"on Debian or Ubuntu: apt-get install {needed}"
    if shutil.which("Rscript") is None:
        return f"R is not there ({advice})"
    absent = [package for package in packages if not versions(package)]
    return f"R lacks {', '.join(absent)} ({advice})" if absent else ""


def versions(*packages):
    """Versions of R's packages, {name: version}, of those that are there."""
    found = {}
    for package in packages:
        command = f"cat(as.character(packageVersion('{package}')))"
        finished = subprocess.run(["Rscript", "-e", command], capture_output=True, text=True)
        if finished.returncode == 0:
            found[package] = finished.stdout
    return found


def blas():
    """The library that R multiplies matrices by: its file."""
    command = "cat(basename(extSoftVersion()['BLAS']))"
    return subprocess.run(["Rscript", "-e", command], capture_output=True, text=True).stdout


def run(script, arrays, arguments):
    """Run a script on arrays, and return those that it leaves.

    Parameters
    ----------
    script : str, its name in `benchmarks/r`
    arrays : {name: array}, handed over as NAME.bin, doubles by columns
    arguments : numbers, after the folder on its command line

    Returns
    -------
    {name: (n,) array} of all NAME.bin in the folder that were not handed over
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for array, values in arrays.items():
            np.asarray(values, dtype=float).ravel(order="F").tofile(folder / f"{array}.bin")
        command = ["Rscript", _SCRIPTS / script, folder, *(repr(number) for number in arguments)]
        finished = subprocess.run(command, capture_output=True, text=True)
        if finished.returncode != 0:
            raise RuntimeError(f"{script} failed: {finished.stderr.strip()}")
        left = [path for path in folder.glob("*.bin") if path.stem not in arrays]
        return {path.stem: np.fromfile(path) for path in left}
