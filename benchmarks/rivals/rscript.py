"""R scripts of the folder `r`: arrays in, arrays out."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

_SCRIPTS = Path(__file__).parent / "r"


def missing(*packages):
    """What a machine lacks of R and its packages, and how to get it; empty if nothing is missing."""
    needed = " ".join(["r-base-core", *(f"r-cran-{package}" for package in packages)])
    advice = f"on Debian or Ubuntu: apt-get install {needed}"
    if shutil.which("Rscript") is None:
        return f"R is not installed ({advice})"
    absent = [package for package in packages if not versions(package)]
    return f"R lacks {', '.join(absent)} ({advice})" if absent else ""


def versions(*packages):
    """Versions of R's packages, {name: version}, without those that are not installed."""
    found = {}
    for package in packages:
        command = f"cat(as.character(packageVersion('{package}')))"
        finished = subprocess.run(["Rscript", "-e", command], capture_output=True, text=True)
        if finished.returncode == 0:
            found[package] = finished.stdout
    return found


def blas():
    """File name of the library with which R multiplies matrices."""
    command = "cat(basename(extSoftVersion()['BLAS']))"
    return subprocess.run(["Rscript", "-e", command], capture_output=True, text=True).stdout


def run(script, arrays, arguments):
    """Run a script on arrays, and return the arrays that it writes.

    Parameters
    ----------
    script : str, its name in the folder `r`
    arrays : {name: array}, written to NAME.bin as doubles by columns
    arguments : numbers, after the folder on the command line

    Returns
    -------
    {name: (n,) array} of all other NAME.bin that the script leaves in the folder
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
