"""What the measurements were taken on: versions, processor and date."""

import datetime
import platform
import re
from pathlib import Path

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

import sklearn_lrvb


def machine():
    """Columns of a row: versions, processor and date."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": cpu(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "sklearn-lrvb": sklearn_lrvb.__version__,
        "blas": _blas(),
    }


def _blas():
    """The BLAS libraries that are loaded, of which numpy and scipy may each bring one."""
    pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return ", ".join(sorted({f"{pool['internal_api']} {pool['version']}" for pool in pools}))


def cpu():
    """The processor's name."""
    information = Path("/proc/cpuinfo")
    found = information.exists() and re.search(r"model name\s*: (.*)", information.read_text())
    return found[1] if found else platform.processor()
