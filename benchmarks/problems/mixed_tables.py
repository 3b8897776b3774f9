"""Tables of latent classes: small ones that the tests have long chains of, and drawn ones with many rows."""

import importlib.util
import json
from pathlib import Path

import numpy as np

_OF_TESTS = Path(__file__).parents[2] / "tests" / "latent_class"  # One copy of tables and references.
N_COLUMNS = 10


def references(name):
    """What a file of the tests has stored: "gibbs" or "polca"."""
    return json.loads((_OF_TESTS / f"{name}_references.json").read_text(encoding="utf8"))


def small_table(name):
    """The table of a stored chain, kinds of its columns, and the number of classes.

    Parameters
    ----------
    name : str, that of a table of the tests, with "_3" for three classes of one that also has two
    """
    spec = importlib.util.spec_from_file_location("real_tables", _OF_TESTS / "real_tables.py")
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    table = getattr(tables, name.removesuffix("_3"))()
    generated = {"penguins_like": tables.PENGUIN_KINDS, "survey_like": tables.SURVEY_KINDS}
    kinds = generated.get(name, dict.fromkeys(table, "categorical"))
    return table, kinds, 3 if name.endswith("_3") or name == "penguins_like" else 2


def many_rows(n_rows, n_classes=5, missing=0.05, seed=0):
    """Four columns of numbers, four of three to six categories and two of counts, with missing values.

    Returns
    -------
    X : (n_rows, 10), categories by their codes, NaN where missing
    kinds : dict, number of the column -> kind
    """
    rng = np.random.default_rng(seed)
    z = rng.integers(0, n_classes, n_rows)
    X = np.empty((n_rows, N_COLUMNS))
    for column in range(4):
        means, sds = rng.normal(0.0, 1.5, n_classes), rng.uniform(0.7, 1.3, n_classes)
        X[:, column] = rng.normal(means[z], sds[z])
    for column in range(4, 8):
        stops = np.cumsum(rng.dirichlet(np.ones(column - 1), n_classes), axis=1)[:, :-1]
        X[:, column] = (rng.random((n_rows, 1)) > stops[z]).sum(axis=1)
    for column in range(8, N_COLUMNS):
        X[:, column] = rng.poisson(rng.gamma(2.0, 2.0, n_classes)[z])
    X[rng.random(X.shape) < missing] = np.nan
    return X, dict.fromkeys(range(4, 8), "categorical") | dict.fromkeys(range(8, N_COLUMNS), "count")
