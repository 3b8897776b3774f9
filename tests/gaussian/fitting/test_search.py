"""Splits gain what they promise, and the search finds what merges alone cannot."""

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    WITH_LEARNED_PRIOR,
    WITH_NOISE,
    WITHOUT_NOISE,
    few_of,
    half_of,
    mixture,
    model_id,
    models_in_turn,
    prior_of,
    rows_around_mean,
    set_sizes,
    three_blobs,
)

from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates, posterior_from_responsibilities
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.e_step import e_step, expect
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.mixture.moves import Moves
from sklearn_lrvb.mixture.search import RowsOfComponents, Search, splits

PROPER = [
    model for model in (*half_of(WITHOUT_NOISE), *WITH_LEARNED_PRIOR, *WITH_NOISE) if model["prior"] != "flat"
]
catalogue = pytest.mark.parametrize("model", PROPER, ids=model_id)
# The components that four blobs start in, and how many components there are.
JOINED = {
    "one split": ([0, 1, 2, 2], 6),
    "two splits": ([0, 0, 1, 1], 6),
    "three in one": ([0, 1, 1, 1], 4),
}


def four_blobs(n_samples=400, spread=1.0):
    rng = np.random.default_rng(5)
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [7.0, 7.0]])
    return spread * centers[np.arange(n_samples) % 4] + rng.normal(size=(n_samples, 2))


def merged_start(groups):
    """Starting responsibilities that put the blobs of `four_blobs` into the given components."""

    def start(X, n_components, random_state):
        labels = np.asarray(groups)[np.arange(len(X)) % 4]
        return np.eye(n_components)[labels]

    return start


def with_missing_values(X, share):
    """The same rows with a share of their values missing."""
    return np.where(np.random.default_rng(2).random(X.shape) < share, np.nan, X)


def fit_at(model, groups, n_components, weighted=False, missing=0.0):
    """The state of a fit that has come to rest where some blobs share a component."""
    X = with_missing_values(four_blobs(spread=2.0 if missing else 1.0), missing)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X)) if weighted else None
    rows = rows_around_mean(X, None, weights)
    prior = prior_of(mixture(model, n_components), rows)
    start = posterior_from_responsibilities(rows, prior, merged_start(groups)(X, n_components, None))
    return rows, Ascent(rows, 1e-9, 400).newton(Ascent(rows, 1e-9, 400).start_at(start))


@pytest.mark.slow
@models_in_turn(
    few_of(PROPER), "kind", ("plain", "weighted", "with missing values", "weighted with missing values")
)
def test_a_split_gains_what_it_promises(model, kind):
    rows, fit = fit_at(model, [0, 1, 2, 2], 5, "weighted" in kind, 0.2 if "missing" in kind else 0.0)
    search = Search(rows, fit)
    empty = int(np.argmin(fit.next_posterior.counts))
    components = np.flatnonzero(fit.next_posterior.counts > 0.5)
    found = splits(RowsOfComponents(rows, fit.posterior), fit.next_posterior, components)
    (halves,) = (split for split in found if split.component == 2)
    promised = search.gain_of_split(halves, empty)
    assert promised > 5
    move = search.after([halves], [empty])
    assert move.posterior.label_counts.sum() == pytest.approx(rows.total_weight, rel=1e-9)
    gained = e_step(rows, Moves().in_order(move.posterior)).lower_bound - fit.lower_bound
    assert gained > promised - 1e-6


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_rows_of_a_component_are_counted_by_their_shares(covariance_type):
    model = {"covariance_type": covariance_type, "reg_covar": 0.0}
    rows, fit = fit_at(model, [0, 1, 2, 2], 4, weighted=True)
    r = expect(OwnCoordinates(fit.posterior), rows.block(slice(0, rows.n_samples))).responsibilities
    components = RowsOfComponents(rows, fit.posterior)
    for k in range(4):
        own, held = components.of(k), r[k] > 1e-3
        counted = own.sample_weight > 0
        assert own.n_samples in (held.sum(), rows.n_samples)
        np.testing.assert_array_equal(own.X[counted], rows.X[held])
        np.testing.assert_allclose(own.sample_weight[counted], (rows.sample_weight * r[k])[held], rtol=1e-12)


@models_in_turn(few_of(PROPER), "joined", [*JOINED, "one split"])
def test_the_search_parts_what_a_start_had_joined(model, joined):
    groups, n_components = JOINED[joined]
    settings = {"init_params": merged_start(groups), "tol": 1e-3}
    found = mixture(model, n_components, moves="search", **settings).fit(four_blobs())
    truth = mixture(model, n_components, moves=None, init_params=merged_start(range(4)), tol=1e-3)
    truth.fit(four_blobs())
    assert found.converged_
    assert found.n_occupied_ == 4
    assert found.lower_bound_ == pytest.approx(truth.lower_bound_, abs=0.1)
    assert np.diff(found.lower_bounds_).min() > -1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("covariance_type", "n_sampled", "missing"),
    [
        (covariance_type, *sample)
        for i, covariance_type in enumerate(COVARIANCE_TYPES)
        for sample in (((10**6, 0.01), (170, 0.2)), ((10**6, 0.2), (170, 0.0)))[i % 2]
    ],
)
def test_the_search_parts_clusters_of_rows_with_missing_values_and_of_a_sample(
    covariance_type, n_sampled, missing, monkeypatch
):
    set_sizes(monkeypatch, sample_rows=n_sampled)
    X = with_missing_values(four_blobs(spread=3.0), missing)
    model = {"covariance_type": covariance_type, "init_params": merged_start([0, 0, 0, 0])}
    found = mixture(model, 6, moves="search").fit(X)
    assert found.n_occupied_ == 4


@models_in_turn(
    [model for model in PROPER if model["covariance_type"] in ("full", "diag")], "weighted", [False, True]
)
def test_a_swap_gains_what_it_promises(model, weighted):
    # two blobs near each other, and two far away that share a component: no row is ever uncertain, and the
    # promise is exact
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 40.0], [50.0, 50.0]])
    rng, blobs = np.random.default_rng(5), np.arange(400) % 4
    X, weights = centers[blobs] + rng.normal(size=(400, 2)), rng.uniform(0.5, 2.0, 400)
    rows = rows_around_mean(X, None, weights if weighted else None)
    ascent = Ascent(rows, 1e-9, 400)
    prior = prior_of(mixture(model, 3), rows)
    fit = ascent.newton(ascent.start_from(np.eye(3)[[1, 2, 0, 0]][blobs], prior))
    search = Search(rows, fit)
    found = splits(RowsOfComponents(rows, fit.posterior), fit.next_posterior, np.arange(3))
    promised = max(search.gains_of_swaps(halves).max() for halves in found)
    (move,) = search.splits()
    assert move.name.startswith("merged components")
    assert promised > 5
    start = e_step(rows, Moves().in_order(fit.next_posterior)).lower_bound
    gained = e_step(rows, Moves().in_order(move.posterior)).lower_bound - start
    assert gained > promised - 1e-3
    # rows that may be noise are never certain, and what is learned of the prior gains more
    if model["prior"] == "fixed":
        assert gained < promised + (0.1 if model.get("noise") else 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("model", PROPER[::3], ids=model_id)
def test_a_swap_where_no_component_is_empty(model):
    # one blob in two components, and two blobs in one
    def start(X, n_components, random_state):
        labels = np.array([0, 1, 2, 2])[np.arange(len(X)) % 4]
        labels[(labels == 0) & (X[:, 1] > 0)] = 3
        return np.eye(n_components)[labels]

    found = mixture(model, 4, moves="search", init_params=start, tol=1e-3).fit(four_blobs())
    truth = mixture(model, 4, moves=None, init_params=merged_start(range(4)), tol=1e-3).fit(four_blobs())
    assert found.lower_bound_ == pytest.approx(truth.lower_bound_, abs=0.1)
    assert found.n_occupied_ == 4


@pytest.mark.slow
@models_in_turn(PROPER[::3], "seed", range(4))
def test_the_search_is_never_worse_than_merges(model, seed):
    X = three_blobs(150)
    merge, search = (
        mixture(model, 6, moves=moves, init_params="random", tol=1e-3).set_params(random_state=seed).fit(X)
        for moves in ("merge", "search")
    )
    assert search.lower_bound_ > merge.lower_bound_ - 1e-9
    assert search.converged_


def test_every_ascent_of_a_search_has_its_own_steps():
    settings = {"init_params": merged_start([0, 0, 1, 1]), "tol": 1e-3}
    alone = mixture(PROPER[0], 6, moves="merge", **settings).fit(four_blobs())
    estimator = mixture(PROPER[0], 6, moves="search", **settings).set_params(max_iter=alone.n_iter_ + 25)
    assert estimator.fit(four_blobs()).converged_
    assert estimator.n_occupied_ == 4


def test_components_of_few_rows_are_not_split():
    X = np.random.default_rng(0).normal(size=(3, 2))
    rows = rows_around_mean(X, None, np.ones(3))
    prior = prior_of(mixture(PROPER[0], 2), rows)
    posterior = posterior_from_responsibilities(rows, prior, np.full((3, 2), 0.5))
    assert splits(RowsOfComponents(rows, posterior), posterior, np.arange(2)) == []


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [2, 5])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("seed", range(2))
def test_the_search_parts_two_clusters_that_are_white_together(n_features, covariance_type, seed):
    # in units of the default prior, the covariance of all rows, no axis has a larger variance than another
    rng = np.random.default_rng(seed)
    shift = rng.normal(size=n_features)
    shift *= 5.0 / np.linalg.norm(shift)
    X = np.concatenate([rng.normal(size=(60, n_features)) + sign * shift for sign in (1, -1)])
    together = np.eye(3)[np.zeros(120, dtype=int)]
    model = {"covariance_type": covariance_type}
    found = mixture(model, 3, moves="search", init_params=lambda *_: together, tol=1e-3).fit(X)
    truth = np.eye(3)[np.repeat([0, 1], 60)]
    parted = mixture(model, 3, moves="search", init_params=lambda *_: truth, tol=1e-3).fit(X)
    assert found.lower_bound_ == pytest.approx(parted.lower_bound_, abs=0.1)


def test_a_prior_mean_far_away_does_not_hide_a_split():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) + np.repeat([[0.0, -8.0], [0.0, 8.0]], 100, axis=0)
    model = {"mean_prior": [500.0, 0.0], "mean_precision_prior": 1.0, "init_params": "random"}
    found = mixture(model, 2, moves="search", tol=1e-3).fit(X)
    assert found.n_occupied_ == 2
    np.testing.assert_array_equal(np.bincount(found.predict(X)), [100, 100])


@pytest.mark.slow
def test_an_optimum_stands_where_the_ascent_after_it_fails(monkeypatch):
    model = {**PROPER[0], "moves": "search", "init_params": merged_start([0, 1, 2, 2]), "tol": 1e-3}
    ascend, ends = Ascent._ascended, []

    def failing_later(ascent, fit, acceleration):
        if ends:
            raise DegenerateComponentError("No posterior.")
        ends.append(ascend(ascent, fit, acceleration))
        return ends[-1]

    higher = mixture(model, 5).fit(four_blobs())
    monkeypatch.setattr(Ascent, "_ascended", failing_later)
    found = mixture(model, 5).fit(four_blobs())
    assert found.converged_
    assert found.lower_bound_ == ends[0].lower_bound < higher.lower_bound_
