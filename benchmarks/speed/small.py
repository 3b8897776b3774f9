"""Fits of small tables and grid searches at the defaults, ours beside scikit-learn's."""

import warnings
from functools import partial
from itertools import product

import numpy as np
from matplotlib import pyplot as plt

from benchmarks.harness.figures import BLUE, STYLE, saved
from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import grouped, table

TITLE = "Small tables"
_SEARCHED = {"n_components": [1, 2, 3, 4, 5], "covariance_type": ["full", "tied", "diag", "spherical"]}
_LIMIT = 1.5  # ratio of the times above which a fit is listed
_TO_THE_OPTIMUM = {"tol": 1e-8, "max_iter": 1000}  # so that scikit-learn's fits end about where ours do
_QUICK = {"n_components": [1, 2], "covariance_type": ["diag"]}


def measure(settings):
    """A row for every table, covariance type and number of components, and one for every grid search."""
    from benchmarks.problems.small_tables import SMALL_TABLES

    for small in SMALL_TABLES[:1] if settings.quick else SMALL_TABLES:
        X = small.rows()
        sizes = {"n_samples": X.shape[0], "n_features": X.shape[1]}
        models = {"n_components": small.components, "covariance_type": small.covariance_types}
        grid = _QUICK if settings.quick else models
        for covariance_type, n_components in product(grid["covariance_type"], grid["n_components"]):
            model = {"n_components": n_components, "covariance_type": covariance_type}
            yield {
                "problem": f"{small.name}: {covariance_type}, {n_components}",
                "kind": "fit",
                **sizes,
                **model,
                **_fits(X, model, settings),
            }
        if not small.is_searched:
            continue
        searched = _QUICK if settings.quick else _SEARCHED
        yield {
            "problem": f"{small.name}: search",
            "kind": "search",
            **sizes,
            **_searches(X, searched, settings),
        }


def _estimators():
    """Both classes, ours at its default and with scikit-learn's prior, by side."""
    from sklearn.mixture import BayesianGaussianMixture

    from sklearn_lrvb import LRVBGaussianMixture

    fixed = partial(LRVBGaussianMixture, prior="fixed")
    return {"ours": LRVBGaussianMixture, "fixed": fixed, "theirs": BayesianGaussianMixture}


def _fits(X, model, settings):
    """Times of default fits and of scikit-learn's up to an optimum, and how they end."""
    estimators = {side: kind(random_state=0, **model) for side, kind in _estimators().items()}
    estimators["optimum"] = _estimators()["theirs"](random_state=0, **_TO_THE_OPTIMUM, **model)
    times = settings.clock.interleaved(
        {side: lambda e=estimator: _quietly(lambda: e.fit(X)) for side, estimator in estimators.items()}
    )
    ends = {f"{side}_steps": mixture.n_iter_ for side, mixture in estimators.items()}
    ends |= {f"{side}_converged": mixture.converged_ for side, mixture in estimators.items()}
    return {**summary(times), **ends}


def _searches(X, grid, settings):
    """Times of cross-validated searches over components and covariance types."""
    from sklearn.model_selection import GridSearchCV

    return summary(
        settings.clock.interleaved(
            {
                side: lambda e=e: _quietly(lambda: GridSearchCV(e(random_state=0), grid).fit(X))
                for side, e in _estimators().items()
            }
        )
    )


def _quietly(call):
    """The result of a call, without warnings of fits that do not converge."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return call()


def _ratio(row, side="theirs"):
    return row["ours_seconds"] / row[f"{side}_seconds"]


def _name(row):
    return row["problem"].split(":")[0]


def section(found):
    fits = [row for row in found if row["kind"] == "fit"]
    slow = sorted((row for row in fits if _ratio(row) > _LIMIT), key=_ratio, reverse=True)
    return f"""`fit` at the defaults, on columns as they are or scaled, or on principal axes, with 1 to 10
components: our time over scikit-learn's. In the columns "over fixed" it is over ours with `prior="fixed"`,
scikit-learn's prior. Ours ends at an optimum up to round-off in {_share(fits, "ours")} of {len(fits)} fits.
scikit-learn's stops where an iteration gains less than 1e-3 nats a row, which it reaches
within 100 iterations in {_share(fits, "theirs")}. In the columns "to the optimum" it goes on, with `tol=1e-8`
and up to 1000 iterations, which suffice in {_share(fits, "optimum")}.

{_summaries(fits, "table", _name)}

{_summaries(fits, "covariance type", lambda row: row["covariance_type"])}

{_summaries(fits, "components", lambda row: f"{row['n_components']:.0f}")}

{_listed(slow)}

`GridSearchCV` over components and covariance types, with five folds, the refit included:

{_searched([row for row in found if row["kind"] == "search"])}

![Small tables](small.png)
"""


def _share(fits, side):
    return sum(bool(row[f"{side}_converged"]) for row in fits)


def _summaries(fits, header, key):
    """A table of the ratios of some groups of fits."""
    groups = list(grouped(fits, key).items())
    groups.append(("all", fits))

    def quantile(share, side="theirs"):
        return lambda group: f"{np.quantile([_ratio(row, side) for row in group[1]], share):.2f}"

    return table(
        [
            (header, lambda group: group[0]),
            ("fits", lambda group: len(group[1])),
            ("median ratio", quantile(0.5)),
            ("90 % below", quantile(0.9)),
            ("largest", quantile(1.0)),
            ("over fixed: median", quantile(0.5, "fixed")),
            ("90 % below", quantile(0.9, "fixed")),
            ("to the optimum: median", quantile(0.5, "optimum")),
            ("largest", quantile(1.0, "optimum")),
        ],
        groups,
    )


def _listed(slow):
    if not slow:
        return f"No fit takes more than {_LIMIT} times as long."
    shown = table(
        [
            ("table", _name),
            ("covariance type", lambda row: row["covariance_type"]),
            ("components", lambda row: f"{row['n_components']:.0f}"),
            ("ours, ms", lambda row: f"{1e3 * row['ours_seconds']:.3g}"),
            ("steps", lambda row: f"{row['ours_steps']:.0f}"),
            ("scikit-learn, ms", lambda row: f"{1e3 * row['theirs_seconds']:.3g}"),
            ("iterations", lambda row: f"{row['theirs_steps']:.0f}"),
            ("ratio", lambda row: f"{_ratio(row):.2f}"),
        ],
        slow,
    )
    return f"These take more than {_LIMIT} times as long:\n\n{shown}"


def _searched(searches):
    return table(
        [
            ("table", _name),
            ("ours, s", lambda row: f"{row['ours_seconds']:.2f}"),
            ("scikit-learn, s", lambda row: f"{row['theirs_seconds']:.2f}"),
            ("ratio", lambda row: f"{_ratio(row):.2f}"),
            ("over fixed", lambda row: f"{_ratio(row, 'fixed'):.2f}"),
        ],
        searches,
    )


def draw(found, path):
    """Our time over scikit-learn's for every fit, by covariance type and number of components."""
    fits = [row for row in found if row["kind"] == "fit"]
    by_type = grouped(fits, lambda row: row["covariance_type"])
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(by_type), figsize=(8, 3), sharex=True, sharey=True, layout="constrained", squeeze=False
        )
        for panel, (covariance_type, rows) in zip(axes[0], by_type.items(), strict=True):
            panel.axhline(1.0, color="#888888", linewidth=1)
            panel.plot(
                [row["n_components"] for row in rows],
                [_ratio(row) for row in rows],
                "o",
                color=BLUE,
                alpha=0.6,
            )
            panel.set_yscale("log", base=2)
            panel.yaxis.set_major_formatter("{x:g}")
            panel.set_title(covariance_type)
            panel.set_xticks(sorted({int(row["n_components"]) for row in rows}))
            panel.set_xlabel("components")
        axes[0, 0].set_ylabel("our time / scikit-learn's")
        saved(figure, path)
