"""Posterior means and standard deviations by long Gibbs chains, which are too long for a test.

``python -m latent_class.gibbs_references`` in tests/ writes them to gibbs_references.json, in some minutes.
"""

import json
from pathlib import Path

import numpy as np
from latent_class import gibbs, real_tables

from sklearn_lrvb import LRVBLatentClassMixture

PATH = Path(__file__).parent / "gibbs_references.json"
NAMES = ("survey_like", "gss82_3", "cheating", "carcinoma_3", "carcinoma", "values", "penguins_like")
CHAINS = {"n_chains": 50, "n_draws": 6000, "n_warmup": 500, "seed": 0}


def problem(name):
    """The table, kinds of its columns and number of classes of a reference."""
    table = getattr(real_tables, name.removesuffix("_3"))()
    generated = {"penguins_like": real_tables.PENGUIN_KINDS, "survey_like": real_tables.SURVEY_KINDS}
    kinds = generated.get(name, dict.fromkeys(table, "categorical"))
    return table, kinds, 3 if name.endswith("_3") or name == "penguins_like" else 2


def fit(name):
    """The mixture of a reference, and its table."""
    table, kinds, n_components = problem(name)
    mixture = LRVBLatentClassMixture(n_components, columns=kinds, prior="fixed", random_state=0)
    return mixture.fit(table), table


def reference(name):
    """What is kept of the chains of a table, whose classes are ordered as those of the fit."""
    mixture, table = fit(name)
    estimate = mixture.weights_, {column: one.to_numpy() for column, one in mixture.tables_.items()}
    # Draws of gss82 depend most on the ones before.
    chains = CHAINS | {"n_draws": 24_000} if name == "gss82_3" else CHAINS
    draws = gibbs.sample(table, problem(name)[1], estimate, **chains)
    least = min(float(np.min(sizes)) for sizes in draws.effective_sizes().values())
    return {
        "mean": {column: value.tolist() for column, value in draws.mean().items()},
        "sd": {column: value.tolist() for column, value in draws.std().items()},
        "least_effective_size": round(least),
    }


if __name__ == "__main__":
    found = {name: reference(name) for name in NAMES}
    PATH.write_text(json.dumps({"chains": CHAINS, "tables": found}, indent=1) + "\n", encoding="utf8")
