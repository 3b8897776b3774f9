"""Answers of `covariate_effects` and `outcome_differences`, beside naive ones, StepMix and bootstraps.

Tables of known effects are fitted with a known number of clusters. Their estimates, standard deviations, and
whether 95 % intervals hold the truth, are compared with those of a regression on `predict` and on
`predict_proba`, and with StepMix. On real tables, standard deviations are compared with those of refits of
both steps to resampled rows. Seconds are of the processor.
"""

import copy
import warnings
from dataclasses import replace
from time import process_time

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from benchmarks.accuracy.cluster_regression.tables import BOOTSTRAP, SIMULATED, TIMES
from benchmarks.problems.explained_clusters import (
    COVARIATES,
    DESIGN_OF_STEPMIX,
    DESIGNS,
    LatentClasses,
    many_rows,
    real_tables,
)
from benchmarks.rivals import naive_regressions
from sklearn_lrvb import LRVBGaussianMixture

_TABLES, _TABLES_OF_AUTO = 200, 100  # Of a design that is answered by "lrvb", or by "auto".
_TABLES_OF_STEPMIX, _REPETITIONS = 10, 50
_RESAMPLES = 200
_MANY_ROWS, _N_CLUSTERS = 100_000, 5
_QUICK_SEPARATIONS, _QUICK_RESAMPLES, _QUICK_REPETITIONS, _QUICK_ROWS = (0.8, 3.0), 3, 2, 1000
_QUANTILE = ndtri(0.975)
_DRAWN = "is known from"  # In the note of an answer by the exact posterior.


def measure(settings):
    """A row for every design of simulated tables, for every kind of estimate of a real one, and for times."""
    for design in DESIGNS:
        if not settings.quick:
            yield _simulated(design, _TABLES if design.method == "lrvb" else _TABLES_OF_AUTO, _REPETITIONS)
        elif design.separation in _QUICK_SEPARATIONS:
            yield _simulated(design, 1, _QUICK_REPETITIONS)
    for table in real_tables():
        yield from _resampled(table, _QUICK_RESAMPLES if settings.quick else _RESAMPLES)
    yield _timed(_QUICK_ROWS if settings.quick else _MANY_ROWS)


def _is_of_stepmix(design):
    is_of_classes = isinstance(design, LatentClasses)
    return is_of_classes and (design.n_samples, design.separation) == DESIGN_OF_STEPMIX


# Simulated tables.


def _simulated(design, n_tables, n_repetitions):
    """The row of a design: biases, coverages and times over its tables, by ours and by other ways."""
    from benchmarks.rivals.stepmix_bootstrap import is_installed

    n_of_stepmix = _TABLES_OF_STEPMIX * (_is_of_stepmix(design) and is_installed("cluster_regression"))
    tables = [_answered(design, number) for number in range(n_tables)]
    row = {
        "problem": design.problem,
        "part": SIMULATED,
        "design": design.name,
        "question": design.question,
        "n_samples": design.n_samples,
        "separation": design.separation,
        "n_components": design.n_clusters,
        "method": design.method,
        "n_tables": n_tables,
        "n_empty": sum("empty" in own for own in tables),
        "n_refused": sum("refused" in own for own in tables),
        "by_draws": sum(own.get("by_draws", False) for own in tables),
    }
    for way in ("ours", "labels", "proba"):
        row |= summed_up(way, [own[way] for own in tables if own.get(way)], design.truth)
    if n_of_stepmix:
        both = [
            (own, _of_stepmix(design, number, n_repetitions))
            for number, own in enumerate(tables[:n_of_stepmix])
            if "ours" in own
        ]
        row |= _beside_stepmix(both, design.truth) | {"stepmix_repetitions": n_repetitions}
    return row


def _answered(design, number):
    """What ours and naive answers say of a simulated table: dict of (estimates, sds, lower, upper)."""
    simulated = design.table(number)
    begin = process_time()
    mixture = _quiet(lambda: design.estimator(random_state=number).fit(simulated.X))
    between = process_time()
    if mixture.n_occupied_ < design.n_clusters:
        return {"empty": True}
    order = design.order(mixture)
    asked = process_time()
    try:
        answer, found = _asked(design, mixture, simulated, order, number)
    except ValueError:
        return {"refused": True}
    own = {
        "fit_seconds": between - begin,
        "answer_seconds": process_time() - asked,
        "by_draws": _DRAWN in answer.note,
        "ours": tuple(found[["estimate", "sd", "lower", "upper"]].to_numpy().T),
    }
    shares = mixture.predict_proba(simulated.X)[:, order]
    naive = naive_regressions.slopes if design.question == COVARIATES else naive_regressions.means
    for name, r in (("labels", naive_regressions.labels_as_shares(shares)), ("proba", shares)):
        own[name] = _of_normal(*naive(r, simulated.given.to_numpy()))
    return own


def _of_normal(estimates, sds):
    """Estimates, standard deviations and limits of normal intervals; None where there are none."""
    if estimates is None:
        return None
    return estimates, sds, estimates - _QUANTILE * sds, estimates + _QUANTILE * sds


def summed_up(way, answers, truth):
    """Columns of a row: of every quantity bias, coverage, and mean sd over the sd of estimates."""
    row = {f"{way}_tables": len(answers)}
    if not answers:
        return row
    estimates, sds, lower, upper = np.array(answers).swapaxes(0, 1)
    covers = (lower < truth) & (truth < upper)
    for place, bias in enumerate(estimates.mean(axis=0) - truth):
        row[f"{way}_bias_{place}"] = _short(bias)
        row[f"{way}_coverage_{place}"] = _short(covers[:, place].mean())
        if way == "ours" and len(answers) > 1:
            ratio = sds[:, place].mean() / estimates[:, place].std(ddof=1)
            row[f"{way}_sd_ratio_{place}"] = _short(ratio)
    return row


def _quiet(call):
    """What a call returns; it may warn of what rows say anyway."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def _asked(design, mixture, simulated, order, number):
    """The answer, and its table: slopes against the first cluster of an order, or means in this order."""
    X, given = simulated.X, simulated.given
    how = {"method": design.method, "random_state": number}
    if design.question == COVARIATES:
        answer = _quiet(lambda: mixture.covariate_effects(X, given, reference=order[0], **how))
        return answer, answer.summary("coefficients").loc[[f"slope[{k},w]" for k in order[1:]]]
    answer = _quiet(lambda: mixture.outcome_differences(X, given, **how))
    return answer, answer.summary("means").loc[[f"mean[{k},y]" for k in order]]


def _short(value):
    """A number with five digits."""
    return float(f"{value:.5g}")


def _of_stepmix(design, number, n_repetitions):
    """StepMix' answer to a table, and its times."""
    from benchmarks.rivals.stepmix_two_steps import TwoSteps

    simulated = design.table(number)
    items, given = simulated.X.astype(float).to_numpy(), simulated.given.to_numpy()
    begin = process_time()
    model = TwoSteps(items, given, design.question, design.n_clusters)
    between = process_time()
    order = design.order_of(model.probabilities)
    estimates, sds = model.estimates(order), model.deviations(order, n_repetitions)
    seconds = {"fit_seconds": between - begin, "answer_seconds": process_time() - between}
    return seconds | {"stepmix": _of_normal(estimates, sds)}


def _beside_stepmix(both, truth):
    """Columns of a row: ours and StepMix on the same tables, by medians and numbers of intervals."""
    row = {"beside_tables": len(both)}
    sds = []
    for place, way in enumerate(("ours", "stepmix")):
        answers = [own[place] for own in both]
        _, own_sds, lower, upper = np.array([own[way] for own in answers]).swapaxes(0, 1)
        sds.append(own_sds)
        for what in ("fit_seconds", "answer_seconds"):
            row[f"{way}_{what}"] = _short(np.median([own[what] for own in answers]))
        row[f"{way}_held"] = int(((lower < truth) & (truth < upper)).sum())
    return row | {"beside_intervals": sds[0].size, "sds_over_ours": _short(np.median(sds[1] / sds[0]))}


# Real tables.


def _resampled(table, n_resamples):
    """Yield a row for every kind of estimate of a real table: standard deviations beside those of refits."""
    mixture = LRVBGaussianMixture(n_components=table.n_clusters, random_state=0)
    mixture = _quiet(lambda: mixture.fit(table.X))
    clusters = np.arange(table.n_clusters)
    own = {way: _estimates(mixture, table, clusters, way) for way in ("lrvb", "sandwich")}
    rng, refits, left_out = np.random.default_rng([*table.name.encode()]), [], 0
    for _ in range(n_resamples):
        drawn = rng.integers(len(table.X), size=len(table.X))
        found = _refitted(mixture, table, drawn)
        left_out += found is None
        refits += [found] * (found is not None)
    for kind, names in own["lrvb"]["names"].items():
        columns = {
            "estimates": own["lrvb"]["estimates"][kind],
            **{way: own[way]["sds"][kind] for way in own},
            "bootstrap": np.std([found[kind] for found in refits], axis=0, ddof=1),
        }
        row = {
            "problem": f"{table.name}: {kind}",
            "part": BOOTSTRAP,
            "design": table.name,
            "question": table.question,
            "kind": kind,
            "n_samples": len(table.X),
            "n_features": table.X.shape[1],
            "n_components": table.n_clusters,
            "n_occupied": mixture.n_occupied_,
            "n_resamples": n_resamples,
            "left_out": left_out,
            "of_rows": table.of_rows,
            "of_given": table.of_given,
            "direct_p_value": own["lrvb"]["direct_p_value"],
        }
        for way, values in columns.items():
            row |= {f"{way}_{place}": float(value) for place, value in enumerate(values)}
        yield row | {f"name_{place}": name for place, name in enumerate(names)}


def _estimates(mixture, table, clusters, method):
    """What is found out about a real table, clusters in an order, by kind of estimate: dict."""
    X, given = table.X, table.given
    if table.question == COVARIATES:
        arguments = {"reference": int(clusters[0]), "method": method}
        answer = _quiet(lambda: mixture.covariate_effects(X, given, **arguments))
        level = f"{given.name}=yes"
        names = {
            "slopes": ("coefficients", [f"slope[{k},{level}]" for k in clusters[1:]]),
            "average effects": ("effects", [f"effect[{k},{level}]" for k in clusters]),
        }
    else:
        answer = _quiet(lambda: mixture.outcome_differences(X, given, method=method))
        end = "" if given.dtype.kind == "f" else "=yes"
        names = {"means": ("means", [f"mean[{k},{given.name}{end}]" for k in clusters])}
    direct = next(iter(answer.direct_effects), None)
    found = {"names": {}, "estimates": {}, "sds": {}}
    found["direct_p_value"] = None if direct is None else direct.p_value
    for kind, (shown, of_kind) in names.items():
        own = answer.summary(shown).loc[of_kind]
        found["names"][kind] = of_kind
        found["estimates"][kind], found["sds"][kind] = own["estimate"].to_numpy(), own["sd"].to_numpy()
    return found


def _refitted(mixture, table, drawn):
    """Estimates of both steps on resampled rows, by kind; None where there are fewer clusters, or no answer.

    The refit starts at the fit, and its clusters are matched to those of the fit by their means.
    """
    resampled = replace(table, X=table.X[drawn], given=table.given.iloc[drawn].reset_index(drop=True))
    again = copy.copy(mixture).set_params(warm_start=True)
    _quiet(lambda: again.fit(resampled.X))
    if again.n_occupied_ < mixture.n_occupied_:
        return None
    scale = table.X.std(axis=0)
    _, clusters = linear_sum_assignment(cdist(mixture.means_ / scale, again.means_ / scale))
    try:
        return _estimates(again, resampled, clusters, "lrvb")["estimates"]
    except ValueError:
        return None


def _timed(n_samples):
    """The row of times of many rows."""
    X, covariates, y = many_rows(n_samples, n_clusters=_N_CLUSTERS)
    row = {
        "problem": f"{_N_CLUSTERS} Gaussian clusters: times",
        "part": TIMES,
        "design": f"{_N_CLUSTERS} Gaussian clusters",
        "n_samples": n_samples,
        "n_features": X.shape[1],
        "n_components": _N_CLUSTERS,
        "n_covariates": covariates.shape[1],
    }
    questions = {
        "covariates": lambda mixture: mixture.covariate_effects(X, covariates, method="lrvb"),
        "outcome": lambda mixture: mixture.outcome_differences(X, y, method="lrvb"),
        "adjusted": lambda mixture: mixture.outcome_differences(X, y, covariates=covariates, method="lrvb"),
    }
    fits = []
    for name, ask in questions.items():
        # Each is asked of a new fit, because a fit keeps what its first error bars have computed.
        begin = process_time()
        mixture = LRVBGaussianMixture(n_components=_N_CLUSTERS, random_state=0).fit(X)
        between = process_time()
        str(ask(mixture))  # Which has the tests.
        fits.append(between - begin)
        row[f"{name}_seconds"] = process_time() - between
    return row | {"fit_seconds": min(fits), "n_iter": mixture.n_iter_, "converged": mixture.converged_}
