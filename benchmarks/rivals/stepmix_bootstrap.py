"""StepMix, latent classes by maximum likelihood, and its bootstrap; optional (pip install stepmix)."""

import importlib.util
import warnings

import numpy as np


def is_installed(experiment):
    """Whether StepMix is there; where not, a line says that an experiment leaves it out."""
    found = importlib.util.find_spec("stepmix") is not None
    if not found:
        print(f"{experiment}: StepMix is left out, which is not installed: pip install stepmix", flush=True)
    return found


def fitted(X, n_classes, measurement, n_init=1):
    """A fit: StepMix."""
    from stepmix import StepMix

    quiet = {"verbose": 0, "progress_bar": 0}
    model = StepMix(n_classes, measurement=measurement, n_init=n_init, random_state=0, **quiet)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def bootstrapped(model, X, n_repetitions):
    """Means and standard deviations of the weights and of every column: two dicts of (K, values)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.bootstrap_stats(X, n_repetitions=n_repetitions, progress_bar=False)
    return tuple(_by_column(found, of) for of in ("mean", "std"))


def _by_column(found, of):
    columns = {"weights": [np.ravel(found[f"cw_{of}"].to_numpy())]}
    for (_, _, variable), values in found[f"mm_{of}"].iterrows():
        columns.setdefault(variable.rsplit("_", 1)[0], []).append(values.to_numpy())
    return {name: np.squeeze(np.stack(values, axis=-1)) for name, values in columns.items()}


def descriptor(X, numeric, categorical):
    """The table and the measurement of one with columns of both kinds, with missing values."""
    from stepmix.utils import get_mixed_descriptor

    return get_mixed_descriptor(X, continuous_nan=numeric, categorical_nan=categorical)
