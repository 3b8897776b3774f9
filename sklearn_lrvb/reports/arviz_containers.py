"""Containers of ArviZ.

xarray, which every ArviZ brings, is imported where it is used: it is not among the library's dependencies.
"""

import importlib.util

import numpy as np


def require_arviz():
    """Raise ImportError where no ArviZ is installed."""
    if not _is_installed("arviz_base") and not _is_installed("arviz"):
        raise ImportError('to_arviz needs ArviZ: pip install "sklearn-lrvb[arviz]"')


def _is_installed(name):
    return importlib.util.find_spec(name) is not None


def in_arviz(groups):
    """Groups in the container of the installed ArviZ.

    Parameters
    ----------
    groups : dict of xarray.Dataset, by name

    Returns
    -------
    data : xarray.DataTree where arviz-base is installed; otherwise arviz.InferenceData
    """
    if _is_installed("arviz_base"):
        import xarray as xr

        return xr.DataTree.from_dict(groups)
    import arviz

    return arviz.InferenceData(**groups)


def dataset(variables, coords, is_drawn=False):
    """xarray.Dataset of variables (axes, values); drawn ones are those of one chain."""
    import xarray as xr

    from sklearn_lrvb import __version__

    if is_drawn:
        n_draws = len(next(iter(variables.values()))[1])
        coords = {"chain": [0], "draw": np.arange(n_draws), **coords}
        variables = {
            name: (("chain", "draw", *axes), values[None]) for name, (axes, values) in variables.items()
        }
    attributes = {"inference_library": "sklearn-lrvb", "inference_library_version": __version__}
    return xr.Dataset(variables, coords, attributes)
