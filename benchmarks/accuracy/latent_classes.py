"""Standard deviations of latent classes by everything that a user would otherwise take, beside long chains.

The chains are the tests' own, with which each way's standard deviations are compared: the root mean square of
relative errors, of the weights, and of all that describes the columns, without probabilities below 0.05 and
above 0.95, where the distribution is no bell curve and the bootstrap and poLCA are at zero.
"""

import numpy as np

from benchmarks.harness.tables import table

TITLE = "Error bars of latent classes"
_N_BOOTSTRAPS, _EDGE = 50, 0.05
_WAYS = {
    "mean_field": "mean field",
    "lrvb": "linear response",
    "exact": "exact posterior",
    "stepmix": "StepMix, bootstrap",
    "polca": "poLCA",
}


def measure(settings):
    """A row for every table with stored chains."""
    from benchmarks.problems.mixed_tables import references
    from benchmarks.rivals.stepmix_bootstrap import is_installed

    with_stepmix, chains = is_installed("latent_classes"), references("gibbs")["tables"]
    for name in ["values"] if settings.quick else chains:
        yield _row(name, chains[name], with_stepmix, 3 if settings.quick else _N_BOOTSTRAPS)


def _row(name, chain, with_stepmix, n_bootstraps):
    from benchmarks.problems.mixed_tables import references, small_table
    from sklearn_lrvb import LRVBLatentClassMixture

    X, kinds, n_classes = small_table(name)
    mixture = LRVBLatentClassMixture(n_classes, columns=kinds, prior="fixed", random_state=0).fit(X)
    row = {
        "problem": f"{name.removesuffix('_3')}, {n_classes} classes",
        "n_samples": len(X),
        "n_features": X.shape[1],
        "n_components": n_classes,
        "verdict": mixture.posterior_check(X, random_state=0).state,
    }
    truth = {column: np.array(values) for column, values in chain["sd"].items()}
    means = {column: np.array(values) for column, values in chain["mean"].items()}
    found = {way: _ours(mixture, way, means) for way in ("mean_field", "lrvb", "exact")}
    if with_stepmix and set(kinds.values()) == {"categorical"}:
        found["stepmix"] = _of_stepmix(X, n_classes, means, n_bootstraps)
    stored = references("polca")["models"].get(f"{name.removesuffix('_3')} {n_classes}")
    if stored is not None:
        stored = stored["computed"]
        of_columns = [
            {"weights": stored[f"weights{end}"]} | stored[f"probabilities{end}"] for end in ("", "_std")
        ]
        found["polca"] = _matched(*of_columns, means)
    for way, sds in found.items():
        row |= _errors(way, sds, truth, means, kinds)
    return row


def _ours(mixture, way, means):
    """Standard deviations by column, in the shape of the chain's."""
    covariance = mixture.posterior(method=way, random_state=0).covariance(["weights", "tables"])
    sds = np.sqrt(np.diag(covariance))
    n_classes = len(mixture.weights_)
    stops = np.cumsum([means[column].shape[1] for column in means if column != "weights"])
    by_class = np.split(sds[n_classes:].reshape(n_classes, -1), stops[:-1], axis=1)
    columns = [column for column in means if column != "weights"]
    return {"weights": sds[:n_classes]} | dict(zip(columns, by_class, strict=True))


def _of_stepmix(X, n_classes, means, n_bootstraps):
    from benchmarks.rivals import stepmix_bootstrap

    codes = X.apply(lambda column: column.astype("category").cat.codes.astype(float))
    model = stepmix_bootstrap.fitted(codes, n_classes, "categorical", n_init=10)
    model.set_params(n_init=1)  # Of refits.
    return _matched(*stepmix_bootstrap.bootstrapped(model, codes, n_bootstraps), means)


def _matched(estimates, sds, means):
    """Standard deviations whose classes are those of some means, by the nearest estimates."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    flat = [
        np.concatenate([np.array(one[column]).reshape(len(one["weights"]), -1) for column in means], axis=1)
        for one in (means, estimates)
    ]
    _, order = linear_sum_assignment(cdist(*flat, "sqeuclidean"))
    return {column: np.array(sds[column])[order] for column in means}


def _errors(way, sds, truth, means, kinds):
    """Columns of a row: root mean squares of the relative errors of weights and of columns."""
    of_columns = []
    for column, kind in kinds.items():
        relative = sds[column] / truth[column] - 1.0
        inside = np.abs(means[column] - 0.5) <= 0.5 - _EDGE
        is_kept = inside if kind in ("categorical", "binary") else np.full_like(inside, True)
        of_columns.append(relative[is_kept])
    parts = {"weights": sds["weights"] / truth["weights"] - 1.0, "columns": np.concatenate(of_columns)}
    return {f"{way}_{name}": float(np.sqrt(np.mean(np.square(part)))) for name, part in parts.items()}


def section(found):
    def cell(way):
        def both(row):
            if row.get(f"{way}_weights") is None:
                return ""
            return f"{100 * row[f'{way}_weights']:.0f}, {100 * row[f'{way}_columns']:.0f}"

        return both

    shown = table(
        [
            ("problem", lambda row: row["problem"]),
            ("N, P", lambda row: f"{row['n_samples']:.0f}, {row['n_features']:.0f}"),
            ("`posterior_check`", lambda row: row["verdict"]),
            *((f"{name}, %", cell(way)) for way, name in _WAYS.items()),
        ],
        found,
    )
    return f"""Errors of posterior standard deviations in per cent, beside long Gibbs chains: of weights, and
of the probabilities between {_EDGE} and {1 - _EDGE}, means, standard deviations and rates.

{shown}

poLCA and StepMix estimate by maximum likelihood. Their standard errors are about the variation from sample to
sample of rows, which is near the posterior where rows are many. poLCA's are computed from the outer products
of the scores; StepMix' are those of {_N_BOOTSTRAPS} bootstrap refits of one start each, of tables of
complete categories. Where a refit ends at another optimum, the bootstrap is far too large. The check
judges the worst of all parameters, those at the edges of 0 and 1 included, and so it is stricter than these
averages. `posterior()` draws from the exact posterior where it says "rough" or "wrong".
"""
