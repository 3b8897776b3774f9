"""Arrays of the npz files that are given by options."""

import numpy as np


def stored_arrays(path, names):
    """Arrays of an npz file: {name: array}. Names that it lacks are a ValueError, with those that it has."""
    with np.load(path) as stored:
        lacking = [name for name in names if name not in stored]
        if lacking:
            raise ValueError(f"{path} has no {', '.join(lacking)}; it has {', '.join(stored)}")
        return {name: stored[name] for name in names}
