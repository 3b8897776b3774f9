"""Splits gain what they promise, and the search parts and joins what a start has put wrong."""

import functools

import numpy as np
import pandas as pd
import pytest
from latent_class.catalogue import assert_same_fit, posterior_of

from sklearn_lrvb import LRVBLatentClassMixture
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.refit import with_one_more
from sklearn_lrvb.mixture.search import Search

# Classes that hold several clusters have overdispersed counts.
pytestmark = pytest.mark.filterwarnings("ignore:The variance of column:UserWarning")

CLUSTER = np.random.default_rng(0).permutation(np.repeat(range(4), [45, 55, 65, 75]))
# The columns of a table: of one kind, or of all with missing values.
COLUMNS = {
    "categories": ["town", "sport", "diet", "music", "pet"],
    "numbers": ["height", "load", "speed"],
    "counts": ["visits", "calls"],
    "mixed": ["town", "sport", "pet", "height", "load", "visits"],
}


@functools.cache
def clusters(name):
    """Four clusters far apart."""
    rng = np.random.default_rng(7)
    table = {}
    for column in ("town", "sport", "diet", "music", "pet"):
        own = rng.permutation(4)[CLUSTER]
        table[column] = np.array(list("abcd"))[
            np.where(rng.random(240) < 0.9, own, rng.integers(4, size=240))
        ]
    for column in ("height", "load", "speed"):
        table[column] = rng.normal(8.0 * rng.permutation(4)[CLUSTER], 1.0)
    for column, rates in (("visits", [1.0, 40.0, 1.0, 40.0]), ("calls", [1.0, 1.0, 60.0, 60.0])):
        table[column] = rng.poisson(np.array(rates)[CLUSTER]).astype(float)
    X = pd.DataFrame(table)[COLUMNS[name]]
    return X.mask(rng.random(X.shape) < 0.1) if name == "mixed" else X


def started(groups, n_components, name, X=None, cluster=CLUSTER, sample_weight=None, **parameters):
    """The fit from a start that puts the four clusters into given classes."""
    X = clusters(name) if X is None else X
    columns = {key: "count" for key in ("visits", "calls") if key in COLUMNS[name]}
    start = np.eye(n_components)[np.asarray(groups)[cluster]]
    settings = {"columns": columns, "init_params": start, "tol": 1e-9, **parameters}
    return LRVBLatentClassMixture(n_components, **settings).fit(X, sample_weight=sample_weight)


def state_of(fit, X):
    """The training rows and the state at the end of a fit."""
    rows = fit._given_rows(X, None, fit._fitted).counted()
    return rows, Ascent(rows, 1e-9, 100).start_at(posterior_of(fit))


@pytest.mark.parametrize("name", COLUMNS)
def test_a_split_gains_what_it_promises(name):
    rows, state = state_of(started([0, 1, 2, 2], 4, name, moves=None), clusters(name))
    search = Search(rows, state)
    (empty,) = np.flatnonzero(~occupied(state.next_posterior.counts))
    best = max(search.candidates(), key=lambda split: search.gain_of_split(split, empty))
    promised = search.gain_of_split(best, empty)
    assert promised > 5
    after = search.after([best], [empty]).posterior
    # Rows of small responsibility take no part.
    assert after.counts.sum() == pytest.approx(rows.total_weight, rel=1e-4)
    assert e_step(rows, after).lower_bound - state.lower_bound > promised - 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(
    ("groups", "n_components"), [([0, 1, 2, 2], 5), ([0, 0, 1, 1], 6), ([0, 0, 0, 0], 5), ([0, 1, 2, 2], 4)]
)
def test_the_search_parts_what_a_start_had_joined(name, groups, n_components):
    joined, found, truth = (
        started(classes, n_components, name, moves=moves)
        for classes, moves in ((groups, None), (groups, "search"), (range(4), "search"))
    )
    assert found.converged_ and found.n_occupied_ == 4
    assert found.lower_bound_ > joined.lower_bound_ + 5
    assert np.diff(found.lower_bounds_).min() > -1e-9
    assert_same_fit(found, truth, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", COLUMNS)
def test_a_swap_where_no_class_is_empty(name):
    X = clusters(name)
    half = np.where(np.arange(240) < 120, CLUSTER, np.where(CLUSTER == 0, 4, CLUSTER))
    found = started([0, 1, 2, 2, 3], 4, name, X=X, cluster=half)
    assert found.n_occupied_ == 4
    assert_same_fit(found, started(range(4), 4, name), 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["categories", "mixed"])
def test_copies_weights_order_and_parts_do_not_change_the_search(name):
    X, groups = clusters(name), [0, 1, 2, 2]
    weights = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    weighted = started(groups, 5, name, sample_weight=weights)
    assert weighted.n_occupied_ == 4
    copies = np.random.default_rng(2).permutation(np.repeat(np.arange(len(X)), weights.astype(int)))
    copied = started(groups, 5, name, X=X.iloc[copies].reset_index(drop=True), cluster=CLUSTER[copies])
    assert_same_fit(weighted, copied, 1e-6)
    columns = {"visits": "count"} if name == "mixed" else "auto"
    drawn = LRVBLatentClassMixture(5, columns=columns, n_init=2, tol=1e-9, random_state=3)
    in_memory = drawn.fit(X, sample_weight=weights)
    parts = [(X[part::3], weights[part::3]) for part in range(3)]
    in_parts = LRVBLatentClassMixture(**drawn.get_params()).fit(parts)
    assert_same_fit(in_memory, in_parts, 1e-6)


@pytest.mark.parametrize("name", COLUMNS)
def test_splits_are_found_in_a_sample(name, monkeypatch):
    monkeypatch.setattr("sklearn_lrvb.family_mixture.model.FAMILY_MIXTURE.sample_rows", 70)
    found = started([0, 0, 1, 1], 6, name)
    assert_same_fit(found, started(range(4), 6, name), 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", COLUMNS)
def test_one_class_more_is_found_from_the_optimum(name):
    fit = started([0, 1, 2, 2], 3, name, moves=None)
    truth = started(range(4), 4, name)
    rows, _ = state_of(fit, clusters(name))
    prior = posterior_of(truth).prior
    bounds = [end.lower_bound for end in with_one_more(rows, posterior_of(fit), prior)]
    assert len(bounds) > 1
    assert max(bounds) == pytest.approx(truth.lower_bound_, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": ["x"] * 6, "b": [True] * 6}),
        pd.DataFrame({"a": ["x", "y"] * 4, "b": [1.0, 3.0] * 4}),
        pd.DataFrame({"a": ["x", None, "y", "x", None, "y"], "b": [1.0, 2.0, np.nan, np.nan, 5.0, 4.0]}),
    ],
    ids=["equal", "two", "missing"],
)
@pytest.mark.parametrize("n_components", [1, 2, 5])
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_tables_of_few_different_rows(X, n_components):
    """The search ends, and is never worse than none."""
    fits = [
        LRVBLatentClassMixture(n_components, moves=moves, random_state=0).fit(X)
        for moves in ("auto", "search")
    ]
    assert fits[1].converged_
    assert fits[1].lower_bound_ >= fits[0].lower_bound_ - 1e-9
