"""Rows that belong together: what is said of groups, against sums over their rows, refits, other packages."""

import copy
import datetime
import json
import pickle
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    assert_equal_to_rounding,
    covariance_by,
    few_of,
    fitted,
    mixture,
    model_id,
    overlapping,
    set_sizes,
    targets_of,
    unique,
)
from incomplete_rows import fitted as fitted_to_missing_values
from incomplete_rows import incomplete
from scipy.stats import norm
from scipy.stats import t as student_t

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.displays import PosteriorIntervalDisplay

catalogue = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
X = overlapping()  # two clusters, one after the other
NAMES = np.array([f"patient {number:02d}" for number in np.random.default_rng(0).permutation(len(X)) // 5])
STRATA = np.where(NAMES < "patient 15", "north", "south")
SIZES = {"north": 20, "south": 300}
REFERENCES = json.loads((Path(__file__).parent / "clustered_references.json").read_text())


def flat_influence(model, estimator, rows=X, targets=None):
    """d E[target] / d w_n of unique entries, of all targets together: (n, d)."""
    found = []
    for target in targets or targets_of(estimator):
        influence = estimator.influence(rows, target=target, perturb="weight")
        if target in ("precisions", "covariances", "scales", "covariance_prior"):
            influence = np.stack([unique(model, one) for one in influence])
        found.append(influence.reshape(len(rows), -1))
    return np.hstack(found)


def by_group(values, groups):
    """Sums over the rows of every group, in the order of the sorted names: (n, d) -> (G, d)."""
    return pd.DataFrame(values).groupby(groups, sort=True).sum().to_numpy()


def clustered(values):
    """G/(G - 1) sum of the squares around the mean: (G, d) -> (d, d)."""
    centred = values - values.mean(axis=0)
    return centred.T @ centred * len(values) / (len(values) - 1)


def assert_close(found, expected, tolerance=1e-10):
    """Equal in units of standard deviations."""
    deviations = np.sqrt(np.diag(expected))
    scale = np.outer(deviations, deviations)
    np.testing.assert_allclose(found / scale, expected / scale, atol=tolerance)


# The sandwich.


@catalogue
def test_it_is_the_sum_of_the_squared_influences_of_groups(model):
    estimator = fitted(model)
    influence = flat_influence(model, estimator)
    for groups in (NAMES, np.arange(len(X)) % 5):  # more and fewer than there are coefficients
        found = estimator.posterior(method="sandwich", groups=groups).covariance(targets_of(estimator))
        assert_close(found, clustered(by_group(influence, groups)))
    np.testing.assert_allclose(found, found.T, rtol=1e-14)


@pytest.mark.parametrize("model", few_of(MODELS)[::3], ids=model_id)
def test_groups_of_rows_with_missing_values(model):
    estimator, groups = fitted_to_missing_values(model), np.arange(120) % 30
    targets = ("log_weights", "means")
    sums = by_group(flat_influence(model, estimator, incomplete(), targets), groups)
    assert_close(
        estimator.posterior(method="sandwich", groups=groups).covariance(list(targets)), clustered(sums)
    )


def test_strata_and_finite_populations():
    estimator = fitted(MODELS[0])
    sums = by_group(flat_influence(MODELS[0], estimator), NAMES)
    of_groups = pd.Series(STRATA).groupby(NAMES, sort=True).first().to_numpy()
    expected, corrected = 0.0, 0.0
    for stratum, size in SIZES.items():
        own = sums[of_groups == stratum]
        expected = expected + clustered(own)
        corrected = corrected + (1.0 - len(own) / size) * clustered(own)
    found = estimator.posterior(method="sandwich", groups=NAMES, strata=STRATA).covariance(
        targets_of(estimator)
    )
    assert_close(found, expected)
    found = estimator.posterior(
        method="sandwich", groups=NAMES, strata=STRATA, strata_sizes=SIZES
    ).covariance(targets_of(estimator))
    assert_close(found, corrected)
    half = estimator.posterior(method="sandwich", groups=NAMES, strata_sizes=2 * 48).covariance("means")
    assert_close(half, 0.5 * estimator.posterior(method="sandwich", groups=NAMES).covariance("means"))


def test_weights_of_a_survey_count_each_row_as_a_group():
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    estimator = mixture(MODELS[0]).fit(X, sample_weight=weights)
    influence = weights[:, None] * flat_influence(MODELS[0], estimator, targets=("means",))
    found = estimator.posterior(
        X, method="sandwich", sample_weight=weights, groups=np.arange(len(X))
    ).covariance("means")
    assert_close(found, clustered(influence))
    by_strata = estimator.posterior(X, method="sandwich", sample_weight=weights, strata=STRATA).covariance(
        "means"
    )
    assert_close(by_strata, sum(clustered(influence[name == STRATA]) for name in SIZES))


def test_a_weight_is_so_many_rows_of_the_group():
    times = np.random.default_rng(0).integers(0, 3, size=len(X))
    repeated = np.repeat(np.arange(len(X)), times)
    r = mixture(MODELS[0]).fit(X).predict_proba(X)
    weighted = mixture(MODELS[0], init_params=r).fit(X, sample_weight=times)
    plain = mixture(MODELS[0], init_params=r[repeated]).fit(X[repeated])
    expected = plain.posterior(method="sandwich", groups=NAMES[repeated]).covariance("all")
    found = weighted.posterior(X, method="sandwich", sample_weight=times, groups=NAMES).covariance("all")
    assert_close(found, expected, 1e-6)
    expected = plain.leverage(X[repeated], groups=NAMES[repeated])
    np.testing.assert_allclose(weighted.leverage(X, groups=NAMES, sample_weight=times), expected, rtol=1e-6)


def test_groups_without_rows_that_count_do_not_count():
    groups, weights = NAMES.copy(), np.ones(len(X))
    groups[:10], weights[:10] = "absent", 0.0
    estimator = mixture(MODELS[0]).fit(X, sample_weight=weights)
    kept = mixture(MODELS[0]).fit(X[10:])
    for asked in ({"method": "sandwich"}, {"method": "bootstrap", "n_draws": 10, "random_state": 0}):
        asked["strata_sizes"] = 100
        expected = kept.posterior(groups=groups[10:], **asked).covariance("means")
        for rows, given in ((X, weights), ([(X[:50], weights[:50]), (X[50:], weights[50:])], None)):
            found = estimator.posterior(rows, sample_weight=given, groups=groups, **asked)
            found = found.covariance("means")
            assert_close(found, expected, 1e-5)


# What the references are of, and what their covariance is in units of ours.
CASES = [
    ("statsmodels", "OLS corrected", ("groups",), 119 / 118),
    ("statsmodels", "OLS plain", ("groups",), 11 / 12),
    ("statsmodels", "WLS corrected", ("groups", "weights"), 119 / 118),
    ("R survey", "groups unweighted", ("groups",), 1.0),
    ("R survey", "groups", ("groups", "weights"), 1.0),
    ("R survey", "groups strata", ("groups", "strata", "weights"), 1.0),
    ("R survey", "groups strata fpc", ("groups", "strata", "strata_sizes", "weights"), 1.0),
    ("R survey", "rows strata", ("strata", "weights"), 1.0),
]


@pytest.mark.parametrize(("package", "case", "used", "factor"), CASES)
def test_one_component_agrees_with_other_packages(package, case, used, factor):
    data = REFERENCES["data"]
    rows, weights = np.array(data["X"]), np.array(data["sample_weight"])
    weights = weights if "weights" in used else None
    estimator = LRVBGaussianMixture(prior="flat", reg_covar=0.0, tol=1e-12).fit(rows, sample_weight=weights)
    given = {name: data[name] for name in used if name != "weights"}
    found = estimator.posterior(rows, method="sandwich", sample_weight=weights, **given).covariance("means")
    reference = REFERENCES[package]["covariances"][case]
    expected = np.array(reference.get("vcov", reference.get("cov_params")))
    np.testing.assert_allclose(factor * found, expected, rtol=1e-10)


# Where the rows are, and how they are gone through.


@pytest.fixture
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def everything(estimator, rows, groups):
    """All that is asked of groups."""
    return [
        estimator.posterior(rows, method="sandwich", groups=groups, strata=groups_strata(groups)).covariance(
            "all"
        ),
        estimator.influence(rows, target="covariances", perturb="weight", groups=groups),
        estimator.leverage(rows, groups=groups),
    ]


def groups_strata(groups):
    """Every other group in a stratum of its own, along the groups."""
    if hasattr(groups, "map_blocks"):
        return groups % 2
    return np.asarray(groups) % 2


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_thread")
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_rows_in_batches_and_on_dask(covariance_type):
    estimator, groups = fitted({"covariance_type": covariance_type}), np.arange(len(X)) % 37
    expected = everything(estimator, X, groups)
    on_dask = da.from_array(X, chunks=(70, 2))
    frame = dd.from_pandas(pd.DataFrame(X).assign(groups=groups), npartitions=3)
    frame.columns = ["x0", "x1", "groups"]
    for rows, labels in (
        ([X[:100], X[100:100], X[100:]], groups),
        (on_dask, groups),
        (on_dask, da.from_array(groups, chunks=50)),
        (frame[["x0", "x1"]].to_dask_array(), frame["groups"]),
    ):
        for found, one in zip(everything(estimator, rows, labels), expected, strict=True):
            assert_equal_to_rounding(found, one)


@pytest.mark.slow
def test_order_names_blocks_and_threads_do_not_matter(monkeypatch):
    estimator, groups = fitted(MODELS[0]), np.arange(len(X)) % 37
    expected = everything(estimator, X, groups)
    order = np.random.default_rng(0).permutation(len(X))
    for found, one in zip(everything(estimator, X[order], groups[order]), expected, strict=True):
        assert_equal_to_rounding(found, one)
    renamed = estimator.leverage(X, groups=[f"group {code:02d}" for code in groups])
    assert_equal_to_rounding(renamed, expected[2])
    set_sizes(monkeypatch, batch_bytes=500, most_rows=17, product_for_threads=0)
    for n_jobs in (1, 2):
        twin = copy.deepcopy(estimator).set_params(n_jobs=n_jobs)
        for found, one in zip(everything(twin, X, groups), expected, strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-9, atol=1e-12 * np.abs(one).max())


@pytest.mark.parametrize("solver", ["primal", "dual", "matrix_free"])
def test_solvers_agree(solver):
    estimator = fitted(MODELS[0])
    found = covariance_by(solver, estimator, "all", "sandwich", X=X, groups=NAMES)
    assert_close(found, estimator.posterior(method="sandwich", groups=NAMES).covariance("all"), 1e-7)


def test_units_and_origin():
    scale, shift = np.array([1e-3, 50.0]), np.array([4.0, -100.0])
    moved = mixture(MODELS[0]).fit(X * scale + shift)
    estimator = fitted(MODELS[0])
    found = moved.posterior(method="sandwich", groups=NAMES).summary("means")
    expected = estimator.posterior(method="sandwich", groups=NAMES).summary("means")
    units = np.tile(scale, 2)
    np.testing.assert_allclose(found["sd"], expected["sd"] * units, rtol=1e-6)
    np.testing.assert_allclose(found["lower"], expected["lower"] * units + np.tile(shift, 2), rtol=1e-6)


# Influence and leverage.


@catalogue
def test_influence_and_leverage_of_groups(model):
    estimator = fitted(model)
    for target in ("weights", "covariances"):
        influence = estimator.influence(X, target=target, perturb="weight")
        expected = by_group(influence.reshape(len(X), -1), NAMES)
        found = estimator.influence(X, target=target, perturb="weight", groups=NAMES)
        np.testing.assert_allclose(
            found.reshape(len(expected), -1), expected, atol=1e-11 * np.abs(expected).max()
        )
    together = estimator.influence(X[:9], target="means", perturb="weight", groups=np.zeros(9))
    expected = estimator.influence(X[:9], target="means", perturb="weight").sum(axis=0, keepdims=True)
    np.testing.assert_allclose(together, expected, atol=1e-11 * np.abs(expected).max())
    alone = estimator.leverage(X, groups=np.arange(len(X)))
    np.testing.assert_allclose(alone, estimator.leverage(X), rtol=1e-8, atol=1e-12)


def test_leverage_of_a_group_is_the_derivative_of_its_score():
    # as of a row: what the scores of its rows together gain if all of them count a little more
    model = {"covariance_type": "full", "prior": "fixed"}
    estimator, inside, step = fitted(model), NAMES[0] == NAMES, 1e-4
    held = {"mean_prior": estimator.mean_prior_, "covariance_prior": estimator.covariance_prior_}
    scores = []
    for weight in (1.0 + step, 1.0 - step):
        refit = mixture(model, init_params=estimator.predict_proba(X), **held)
        refit.fit(X, sample_weight=np.where(inside, weight, 1.0))
        scores.append(refit.score_samples(X[inside]).sum())
    found = estimator.leverage(X, groups=NAMES)[np.searchsorted(np.unique(NAMES), NAMES[0])]
    np.testing.assert_allclose(found, (scores[0] - scores[1]) / (2.0 * step), rtol=1e-4)


# Tables, draws and figures.


def test_intervals_are_by_students_t():
    estimator = fitted(MODELS[0])
    for strata, freedom in ((None, 47), (STRATA, 46)):
        summary = estimator.posterior(method="sandwich", groups=NAMES, strata=strata).summary("means")
        variances = np.diag(
            estimator.posterior(method="sandwich", groups=NAMES, strata=strata).covariance("means")
        )
        np.testing.assert_allclose(summary["sd"], np.sqrt(variances), rtol=1e-12)
        half = student_t(freedom).ppf(0.975) * summary["sd"]
        np.testing.assert_allclose(summary["upper"], summary["mean"] + half, rtol=1e-12)
        np.testing.assert_allclose(summary["mean"], estimator.means_.ravel(), rtol=1e-12)
    all_of_them = estimator.posterior(method="sandwich", groups=NAMES).summary(["weights", "covariances"])
    shares = all_of_them.filter(regex="^weight", axis=0)
    assert np.all((shares["lower"] > 0) & (shares["upper"] < 1))
    assert np.all(all_of_them.loc["covariance[0,x0,x0]"] > 0)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_draws_have_the_covariance_and_the_intervals(covariance_type):
    estimator = fitted({"covariance_type": covariance_type})
    summary = estimator.posterior(method="sandwich", groups=NAMES).summary(["weights", "means"])
    draws = estimator.posterior(method="sandwich", random_state=0, groups=NAMES).sample(20_000)
    flat = np.hstack([draws["weights"], draws["means"].reshape(20_000, -1)])
    of_t = np.sqrt(47 / 45)  # the standard deviation of Student's t
    np.testing.assert_allclose(flat.std(axis=0), of_t * summary["sd"], rtol=0.04)
    sd = summary["sd"].to_numpy()
    np.testing.assert_allclose(np.quantile(flat, 0.975, axis=0), summary["upper"], atol=0.1 * sd.max())
    expected = estimator.posterior(method="sandwich", groups=NAMES).covariance(["weights", "means"])
    np.testing.assert_allclose(
        np.corrcoef(flat.T)[0, 2:],
        expected[0, 2:] / np.sqrt(expected[0, 0] * np.diag(expected)[2:]),
        atol=0.05,
    )


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_draws_of_what_does_not_vary_are_the_estimates(covariance_type):
    rows = np.random.default_rng(0).normal(size=(160, 2))
    strata = np.arange(160) % 2
    rows[strata == 1] += 200.0
    # A learned prior would tell one stratum of the other.
    estimator = mixture({"covariance_type": covariance_type, "prior": "fixed"}).fit(rows)
    given = {"groups": np.arange(160) // 4 * 2 + strata, "strata": strata, "method": "sandwich"}
    everywhere = estimator.posterior(**given, strata_sizes={0: 40, 1: 40}).sample(9)
    for name, values in everywhere.items():
        expected = np.broadcast_to(getattr(estimator, f"{name}_"), values.shape)
        np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-7)
    in_part = estimator.posterior(**given, strata_sizes={0: 40, 1: 90}).sample(9)["means"]
    first = int(np.argmin(estimator.means_[:, 0]))
    np.testing.assert_allclose(in_part[:, first], np.tile(estimator.means_[first], (9, 1)), atol=1e-7)
    assert np.all(in_part[:, 1 - first].std(axis=0) > 0.01)


def test_the_note_says_how_many_groups_and_what_is_doubtful():
    estimator, groups = fitted(MODELS[0]), np.arange(len(X)) // 3
    ratio = estimator.leverage(X, groups=groups).sum() / estimator.leverage(X).sum()

    def effect(**given):
        note = estimator.posterior(method="sandwich", groups=groups, **given).summary("means").attrs["note"]
        found = float(note.split("design effect ")[1].split(",")[0])
        assert note.startswith("Sandwich by 80 groups: ") and f"about {np.sqrt(found):.1f} times" in note
        return found

    # to two digits; under this prior the mean of the sums is not quite zero
    np.testing.assert_allclose(effect(), ratio * 80 / 79, rtol=0.06)
    np.testing.assert_allclose(effect(strata_sizes=160), 0.5 * effect(), rtol=0.06)
    assert effect(strata_sizes=80) == 0.0
    by_cluster = groups < 53  # Groups of one cluster are alike.
    assert effect(strata=by_cluster) < 0.9 * effect()
    few = estimator.posterior(method="sandwich", groups=groups // 8).summary("means").attrs["note"]
    assert "With few groups (fewer than 50) intervals are too short" in few
    uneven = np.minimum(groups, 55)  # one of 75 rows
    uneven = estimator.posterior(method="sandwich", groups=uneven).summary("means").attrs["note"]
    assert "With few groups (worth 9 of equal size, fewer than 50)" in uneven
    separate = np.where(np.arange(len(X)) < 200, np.arange(len(X)) // 3, 70 + np.arange(len(X)) % 4)
    far = mixture(MODELS[0]).fit(np.concatenate([X[:200], X[200:] + 50.0]))
    note = far.posterior(method="sandwich", groups=separate).summary("means").attrs["note"]
    assert "are worth those of 4 groups of equal size: its intervals are too short" in note
    alone = estimator.posterior(method="sandwich").summary("means")
    expected = np.diag(estimator.posterior(method="sandwich").covariance("means"))
    np.testing.assert_allclose(alone["sd"], np.sqrt(expected), rtol=1e-12)
    np.testing.assert_allclose(alone["upper"], alone["mean"] + norm.ppf(0.975) * alone["sd"], rtol=1e-12)
    assert "independent rows" in alone.attrs["note"]


def test_the_design_effect_of_unequal_weights_does_not_depend_on_where_rows_are():
    rng = np.random.default_rng(1)
    rows, weights = rng.standard_t(3, size=(60, 2)), rng.integers(1, 9, 60).astype(float)
    estimator = LRVBGaussianMixture().fit(rows, sample_weight=weights)
    asked = {"method": "sandwich", "groups": np.arange(60)}
    expected = estimator.posterior(rows, sample_weight=weights, **asked)
    found = estimator.posterior([(rows[:20], weights[:20]), (rows[20:], weights[20:])], **asked)
    assert found.note == expected.note == expected.summary("means").attrs["note"]
    alone = LRVBGaussianMixture().fit(rows).posterior(method="sandwich").summary("log_weights")
    assert alone["sd"].iloc[0] < 1e-6  # The weight of a single component is certain.


def test_components_without_rows_are_named():
    surplus = mixture(MODELS[0], 3, init_params=np.eye(3)[np.arange(len(X)) // 160], moves=None).fit(X)
    assert surplus.n_occupied_ == 2
    (empty,) = np.flatnonzero(surplus.weights_ * len(X) < 0.5)
    for method in ("sandwich", "bootstrap"):
        posterior = surplus.posterior(groups=NAMES, method=method, n_draws=3)
        summary = posterior.summary("means", min_count=0)
        assert f" Components without rows: {empty}. Their estimates are the prior's" in summary.attrs["note"]
        own = summary.filter(regex=rf"^mean\[{empty},", axis=0)
        np.testing.assert_allclose(own["mean"], surplus.mean_prior_, atol=0.1)
        assert own["sd"].max() < 0.01 * summary["sd"].max()


@pytest.mark.slow
def test_intervals_by_groups_stand_beside_those_of_the_posterior():
    ask = fitted(MODELS[0]).posterior
    posteriors = [ask(method="lrvb")]
    posteriors += [ask(method=method, groups=NAMES, n_draws=20) for method in ("sandwich", "bootstrap")]
    display = PosteriorIntervalDisplay.from_estimator(fitted(MODELS[0]), posteriors)
    assert list(display.lower) == ["lrvb", "sandwich", "bootstrap"]
    expected = fitted(MODELS[0]).posterior(method="sandwich", groups=NAMES).summary("means")
    np.testing.assert_allclose(display.upper["sandwich"], expected.loc[display.names, "upper"], rtol=1e-12)
    assert "Sandwich by 48 groups" in display.note and "Bootstrap: 20 refits" in display.note


# The bootstrap.


@pytest.mark.slow
def test_the_bootstrap_agrees_with_the_sandwich():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(150), 4)
    rows = rng.normal(size=(600, 2)) + 0.5 * rng.normal(size=(150, 2))[groups]
    rows += np.outer(rng.integers(0, 2, 150)[groups], [5.0, 0.0])
    estimator = mixture(MODELS[0]).fit(rows)
    sandwich = estimator.posterior(method="sandwich", groups=groups).summary(["weights", "means"])
    resampled = estimator.posterior(method="bootstrap", groups=groups, n_draws=80, random_state=0)
    bootstrap = resampled.summary(["weights", "means"])
    np.testing.assert_allclose(bootstrap["sd"], sandwich["sd"], rtol=0.2)
    assert bootstrap.attrs["note"] == "Bootstrap: 80 refits to resamples of 150 groups."
    again = resampled.covariance(["weights", "means"])
    np.testing.assert_allclose(np.sqrt(np.diag(again)), bootstrap["sd"], rtol=1e-10)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_draws_of_the_bootstrap_are_refits(covariance_type):
    model = {"covariance_type": covariance_type}
    estimator = fitted(model)
    posterior = estimator.posterior(n_draws=5, random_state=0, method="bootstrap", groups=NAMES)
    draws = posterior.sample(5)
    assert {name: values.shape for name, values in draws.items()} == {
        name: (5, *np.shape(getattr(estimator, f"{name}_"))) for name in draws
    }
    covariance = posterior.covariance(["weights", "means"])
    flat = np.hstack([draws["weights"], draws["means"].reshape(5, -1)])
    np.testing.assert_allclose(covariance, np.cov(flat.T), rtol=1e-7, atol=1e-12)
    sizes = pd.Series(STRATA).groupby(NAMES).first().value_counts().to_dict()
    sampled = {"groups": NAMES, "strata": STRATA, "strata_sizes": sizes}  # All are here: nothing varies.
    same = estimator.posterior(n_draws=2, random_state=0, method="bootstrap", **sampled).sample(2)
    for name, values in same.items():
        expected = np.broadcast_to(getattr(estimator, f"{name}_"), values.shape)
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-8)


def test_resamples_have_the_variance_of_independent_groups():
    rows = np.random.default_rng(0).normal(size=(60, 1)).repeat(2, axis=0)
    groups = np.arange(120) // 2
    strata = groups // 3  # Few in each, as then the factors of resamples are large.
    estimator = LRVBGaussianMixture(prior="flat", tol=1e-9).fit(rows)
    asked = {"groups": groups, "strata": strata}
    asked["strata_sizes"] = {stratum: 4 + stratum % 3 for stratum in range(20)}
    expected = estimator.posterior(method="sandwich", **asked).covariance("means")
    found = estimator.posterior(**asked, method="bootstrap", n_draws=300, random_state=0).covariance("means")
    np.testing.assert_allclose(found, expected, rtol=0.25)


def test_resamples_that_lose_a_component_are_left_out():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(60, 1)), rng.normal(size=(6, 1)) + 30.0])
    groups = np.concatenate([np.arange(60) // 3, 20 + np.arange(6) // 3])
    r = np.eye(2)[(np.arange(66) >= 60).astype(int)]
    estimator = mixture({"prior": "flat"}, init_params=r).fit(rows)
    posterior = estimator.posterior(method="bootstrap", groups=groups, n_draws=40)
    n_refits = int(posterior.note.split()[1])
    assert 0 < n_refits < 40
    assert f"{40 - n_refits} other refits did not converge, or lost a component" in posterior.note
    with pytest.warns(UserWarning, match="other refits did not converge, or lost a component"):
        draws = posterior.sample(40)
    with pytest.raises(ValueError, match="40 resamples have no 41 draws"):
        posterior.sample(41)
    assert draws["weights"].shape == (n_refits, 2)


# Bad input.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"groups": np.zeros(240)},
            r"X has 1 group\(s\) with rows of positive weight.* \(a\) Pass the labels of several",
        ),
        ({"groups": NAMES[:-1]}, "groups has 239 labels, but X has 240 rows"),
        ({"groups": np.where(np.arange(240) == 7, np.nan, 1.0)}, "1 missing labels, the first at row 7"),
        ({"groups": [None, *NAMES[1:]]}, "1 missing labels, the first at row 0"),
        ({"groups": pd.Series(NAMES).where(NAMES > "patient 20")}, "missing labels"),
        ({"groups": np.array([3, *NAMES[1:]], dtype=object)}, "groups has labels of several types"),
        ({"groups": [datetime.date(2026, 1, 1), *range(239)]}, "groups has labels of several types"),
        ({"groups": np.ones((240, 2))}, r"one label for every row, but has the shape \(240, 2\)"),
        ({"groups": NAMES, "strata": np.arange(240) // 2}, "Group patient [0-9]* lies in several strata"),
        (
            {"groups": NAMES, "strata": np.where(NAMES[0] == NAMES, "lonely", "other")},
            r"Stratum lonely has 1 group\(s\) with rows of positive weight.* \(a\) Join similar strata",
        ),
        ({"groups": NAMES, "strata": STRATA, "strata_sizes": {"north": 20}}, "no size of stratum south"),
        ({"groups": NAMES, "strata": STRATA, "strata_sizes": 100}, "must map every stratum to its number"),
        ({"groups": NAMES, "strata_sizes": 20}, "the population has 20 groups, but 48 are here"),
        (
            {"groups": NAMES, "strata": STRATA, "strata_sizes": {"north": 1, "south": 99}},
            "stratum north has 1",
        ),
        ({"groups": NAMES, "strata_sizes": {"north": 20}}, "be one number where there are no strata; got {"),
        (
            {"groups": NAMES, "method": "bootstrap", "n_draws": 1},
            "Less than two refits to resamples have no variance",
        ),
        ({"groups": NAMES, "method": "bootstrap", "n_draws": 0}, "Invalid value for 'n_draws'"),
        ({"groups": NAMES, "method": "exact"}, "method='exact' takes rows as independent"),
        ({"groups": NAMES, "method": "mean_field"}, "method='mean_field' takes rows as independent"),
        ({"groups": NAMES, "X": X + 1.0}, "X is not what the mixture was fitted to"),
        ({"groups": NAMES, "sample_weight": np.ones(240)}, "sample_weight goes with X"),
    ],
)
def test_bad_groups_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        fitted(MODELS[0]).posterior(**given).covariance("means")


def test_other_bad_requests():
    estimator = fitted(MODELS[0])
    with pytest.raises(ValueError, match="pass X"):
        pickle.loads(pickle.dumps(estimator)).posterior(method="sandwich", groups=NAMES).summary()
    with pytest.raises(ValueError, match="groups and sample_weight go with perturb='weight'"):
        estimator.influence(X, groups=NAMES)
    with pytest.raises(ValueError, match="sample_weight goes with groups"):
        estimator.leverage(X, sample_weight=np.ones(240))
    with pytest.raises(ValueError, match=r"groups=range\(len\(X\)\) says so"):
        estimator.posterior(method="sandwich").sample()
    lonely = np.where(np.arange(240) < 200, np.arange(240) // 5, 99)
    rows = np.concatenate([X[:200], X[200:] + 50.0])
    separate = mixture(MODELS[0]).fit(rows)
    for method in ("sandwich", "bootstrap"):
        with pytest.raises(
            ValueError, match=r"Component [01] has 40 expected rows, of which all but .* group 99"
        ):
            separate.posterior(groups=lonely, method=method).summary()
    assert np.isfinite(separate.leverage(rows, groups=lonely)).all()
    with pytest.raises(ValueError, match=r"leave 2 degree\(s\) of freedom"):
        estimator.posterior(method="sandwich", groups=np.arange(240) % 3).sample(5)
    weighted = mixture(MODELS[0]).fit(X, sample_weight=np.arange(240) > 9)
    with pytest.raises(
        ValueError, match=r"has 240 labels, but X has 230 rows\. .* If X was left out, pass it"
    ):
        weighted.posterior(method="sandwich", groups=NAMES).summary()


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_thread")
def test_labels_on_dask():
    estimator, labels = fitted(MODELS[0]), pd.Series(np.arange(len(X)) % 37)
    rows, expected = da.from_array(X, chunks=(80, 2)), fitted(MODELS[0]).leverage(X, groups=labels)
    for dtype in ("Int64", "string", "category"):  # none of them of NumPy
        groups = labels.map("{:02d}".format).astype(dtype) if dtype != "Int64" else labels.astype(dtype)
        found = estimator.leverage(rows, groups=dd.from_pandas(groups, npartitions=3))
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        with pytest.raises(ValueError, match="groups has 1 missing labels in a chunk, the first at row 20"):
            estimator.leverage(rows, groups=dd.from_pandas(groups.mask(labels.index == 100), npartitions=3))
    n_read = []

    def read(chunk):
        n_read.append(len(chunk))
        return chunk

    once = da.from_array(labels.to_numpy(), chunks=80).map_blocks(read, dtype=int, meta=np.empty(0, int))
    estimator.posterior(rows, n_draws=3, random_state=0, method="bootstrap", groups=once).sample(3)
    assert n_read == 2 * [80, 80, 80]
    mixed = labels.where(labels.index < 80, labels.astype(str))  # words in all chunks but one
    with pytest.raises(ValueError, match="groups has labels of several types"):
        estimator.leverage(rows, groups=da.from_array(mixed.to_numpy(dtype=object), chunks=80))
    fewer = dd.from_pandas(labels, npartitions=3)
    with pytest.raises(ValueError, match="what runs along X, such as init_params or groups, has 77"):
        estimator.leverage(rows, groups=fewer[fewer != 5])
