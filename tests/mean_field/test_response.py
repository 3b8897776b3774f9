"""Linear response of models whose factors couple: the printed formula, refits, and bounded memory."""

import functools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from catalogue import set_sizes
from mean_field.catalogue import CATALOGUE, built, factor_analysis, fitted, mixture_terms, statistics_of
from scipy import sparse

from sklearn_lrvb.linear_response import IndefiniteInformationError
from sklearn_lrvb.mean_field import (
    Factor,
    MeanFieldModel,
    Term,
    posterior,
    response,
)
from sklearn_lrvb.mean_field.exponential_families import (
    Categorical,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    UnivariateNormal,
)


def crossed_effects(n_rows, n_columns, n_observations, seed=0, dense=False):
    """y = mu + a[row] + b[column] + noise with unknown variances."""
    rng = np.random.default_rng(seed)
    row, column = rng.integers(n_rows, size=n_observations), rng.integers(n_columns, size=n_observations)
    y = 1.0 + rng.normal(size=n_rows)[row] + 0.5 * rng.normal(size=n_columns)[column]
    y += 0.7 * rng.normal(size=n_observations)
    counts = sparse.coo_array((np.ones(n_observations), (row, column)), shape=(n_rows, n_columns))
    factors = {
        "mu": UnivariateNormal(),
        "a": Factor(UnivariateNormal(), n_rows),
        "b": Factor(UnivariateNormal(), n_columns),
        **{name: Gamma() for name in ("tau", "tau_a", "tau_b")},
    }
    at_both = {"at": {"a": row, "b": column}, "subscripts": ",n,n,"}
    terms = [
        Term(0.5 * n_observations, "tau.log"),
        Term(-0.5 * y @ y - 1.0, "tau.value"),
        Term(y.sum(), "mu.value", "tau.value"),
        Term(-0.5 * n_observations, "mu.square", "tau.value"),
        Term(-0.005, "mu.square"),
        Term(-counts.toarray() if dense else -counts, "a.value", "b.value", "tau.value", subscripts="rc,r,c,")
        if dense is not None
        else Term(-1.0, "a.value", "b.value", "tau.value", **at_both),
    ]
    for name, index, own in (("a", row, n_rows), ("b", column, n_columns)):
        terms += [
            Term(y, f"{name}.value", "tau.value", subscripts="n,n,", at={name: index}),
            Term(-0.5, f"{name}.square", "tau.value", at={name: index}),
            Term(-1.0, "mu.value", f"{name}.value", "tau.value", at={name: index}),
            Term(0.5 * own, f"tau_{name}.log"),
            Term(-0.5, f"{name}.square", f"tau_{name}.value"),
            Term(-1.0, f"tau_{name}.value"),
        ]
    return MeanFieldModel(factors, terms)


def refit_derivative(model, posterior, statistic, step=1e-3):
    """d E[T] / dt of a scalar statistic, where t T is added to the log joint."""
    means = [
        MeanFieldModel(model.factors, [*model.terms, Term(sign * step, statistic)])
        .fit(posterior, tol=1e-12, max_iter=20_000)
        .mean(statistic)
        for sign in (1, -1)
    ]
    return (means[0] - means[1]) / (2 * step)


WAYS = {
    "sparse": {"dense_system": 0},
    "all rows first": {"dense_system": 0, "entries_eliminated_first": 10**6},
    "no row first": {
        "dense_system": 0,
        "entries_eliminated_first": 0,
        "rows_eliminated_last": 10**6,
    },
    "products": {"stored_statistics": 0},
    "no monomials": {"entries_of_monomials": 0},
    "all monomials": {"entries_of_monomials": np.inf},
    "nothing separate": {"share_of_separate_factors": np.inf},
    "small ones separate": {"share_of_separate_factors": 0.0},
    "copy by copy": {"bytes_per_entry": 1e9, "entries_of_monomials": 0},
    "dense blocks": {"dense_blocks_from": 0.0, "entries_of_monomials": 0},
    "sparse blocks": {"dense_blocks_from": 1e9},
    "small dense blocks of products": {
        "bytes_per_entry": 1e6,
        "dense_blocks_from": 0.0,
        "stored_statistics": 0,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "way"),
    [(name, way) for i, name in enumerate(CATALOGUE) for j, way in enumerate(WAYS) if (i + j) % 2 == 0],
)
def test_all_ways_of_computing_agree(name, way, monkeypatch):
    """Sparse or dense, by stored blocks or products, with any set of separate factors."""
    expected = fitted(name).covariance(*fitted(name).factors)
    set_sizes(monkeypatch, **WAYS[way])
    model = built(name)[0]
    found = MeanFieldModel(model.factors, model.terms).fit(fitted(name), tol=1e-11)
    scale = np.sqrt(np.diag(expected))
    error = np.abs(found.covariance(*found.factors) - expected)
    np.testing.assert_array_less(error, 1e-7 * np.outer(scale, scale) + 1e-14)
    for label in statistics_of(found):
        np.testing.assert_allclose(found.std(label), fitted(name).std(label), rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("block_size", ["one block", "copy by copy"])
@pytest.mark.parametrize("dense", [True, False, None])
def test_crossed_effects_are_those_of_the_formula(dense, block_size, monkeypatch):
    """The table of counts as a matrix, as a sparse one, and by the positions of every observation."""
    if block_size == "copy by copy":
        set_sizes(monkeypatch, bytes_per_entry=1e9)
    posterior = crossed_effects(7, 5, 20, dense=dense).fit(tol=1e-11)
    V, H = posterior.mean_field_covariance(), posterior.expected_hessian()
    Sigma = np.linalg.solve(np.eye(len(V)) - V @ H, V)
    scale = np.sqrt(np.diag(Sigma))
    found = posterior.covariance(*posterior.factors)
    np.testing.assert_array_less(np.abs(found - Sigma), 1e-9 * np.outer(scale, scale))
    expected = crossed_effects(7, 5, 20, dense=True).fit(tol=1e-11)
    assert posterior.lower_bound == pytest.approx(expected.lower_bound, rel=1e-12)
    np.testing.assert_allclose(posterior.std("a.value"), expected.std("a.value"), rtol=1e-9)


@pytest.mark.slow
def test_many_crossed_effects_take_no_matrix_of_all():
    """4,400 statistics with 1,100 in a dense matrix, as 2,200 couple to few others."""
    posterior = crossed_effects(1100, 1100, 4000).fit()
    with pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, dense_system=1000, rows_eliminated_last=1000)
        posterior = replace(posterior)  # with nothing computed yet
        sd = posterior.std("a.value")
    assert posterior._linear_response._system.n_dense_rows < 1110
    again = crossed_effects(1100, 1100, 4000).fit(posterior)
    np.testing.assert_allclose(again.std("a.value"), sd, rtol=1e-9)
    assert np.all(sd > (1 - 1e-9) * posterior.std("a.value", method="mean_field"))


def regression(n_features, ard):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * n_features, n_features))
    y = X @ rng.normal(size=n_features) + rng.normal(size=len(X))
    factors = {"beta": MultivariateNormal(n_features), "tau": Gamma()}
    terms = [
        Term(0.5 * len(y) + 1.0, "tau.log"),
        Term(-0.5 * y @ y - 1.0, "tau.value"),
        Term(X.T @ y, "beta.value", "tau.value", subscripts="p,p,"),
        Term(-0.5 * X.T @ X, "beta.outer", "tau.value", subscripts="pq,pq,"),
    ]
    if ard:
        factors["alpha"] = Factor(Gamma(), n_features)
        terms += [
            Term(-0.5, "beta.outer", "alpha.value", subscripts=",pp,p"),
            Term(1.5, "alpha.log"),
            Term(-1.0, "alpha.value"),
        ]
    else:
        terms += [Term(-0.05, "beta.outer", subscripts=",pp")]
    return MeanFieldModel(factors, terms)


@pytest.mark.parametrize("ard", [False, True])
def test_large_regressions_are_those_of_stored_matrices(ard, monkeypatch):
    fast = regression(9, ard).fit(tol=1e-11)
    found = {label: fast.std(label) for label in statistics_of(fast)}
    covariance = fast.covariance("beta.value", "tau")
    set_sizes(monkeypatch, stored_statistics=1000)
    slow = regression(9, ard).fit(tol=1e-11)
    for label, sd in found.items():
        np.testing.assert_allclose(sd, slow.std(label), rtol=1e-8)
    np.testing.assert_allclose(covariance, slow.covariance("beta.value", "tau"), rtol=1e-7, atol=1e-12)


@pytest.mark.slow
def test_a_regression_with_hundreds_of_coefficients():
    """Its 45,450 raw moments would have a covariance matrix of 16 GB."""
    posterior = regression(300, ard=False).fit()
    sd, mean_field = posterior.std("beta.value"), posterior.std("beta.value", method="mean_field")
    assert sd.shape == (300,)
    assert np.all(sd > mean_field)
    covariance = posterior.covariance("beta.value", "tau.value")
    np.testing.assert_allclose(np.sqrt(np.diag(covariance))[:300], sd, rtol=1e-9)


# Flat directions.


@pytest.mark.slow
def test_what_a_rotation_does_not_change_has_error_bars():
    model = factor_analysis()
    posterior = model.fit(n_init=3, random_state=0, max_iter=5000)
    assert posterior.flat_directions.shape == (1, len(posterior.names))
    sd = posterior.std("tau.value")
    assert sd**2 == pytest.approx(refit_derivative(model, posterior, "tau.value"), rel=1e-5)
    assert sd > 1.05 * posterior.std("tau.value", method="mean_field")
    assert posterior.newton_decrement < 1e-6
    with pytest.warns(UserWarning, match=r"flat along 1 direction of q.*10 of the 10 variances") as caught:
        loadings = posterior.std("W.value")
    assert caught[0].filename == __file__
    assert np.all(np.isnan(loadings))
    with pytest.warns(UserWarning, match="10 of the 12 variances"):
        covariance = posterior.covariance("W.value", "tau")
    assert np.isnan(covariance[:10]).all()
    assert np.isnan(covariance[:, :10]).all()
    assert np.sqrt(covariance[10, 10]) == pytest.approx(sd)


@pytest.mark.parametrize("way", ["dense", "sparse"])
def test_flat_directions_are_left_out_sparsely_too(way, monkeypatch):
    """Group effects and their mean under flat priors: differences alone are identified."""
    if way == "sparse":
        set_sizes(monkeypatch, dense_system=0)
    n = 6
    factors = {
        "a": Factor(UnivariateNormal(), n),
        "b": Factor(UnivariateNormal(), n),
        "s": UnivariateNormal(),
    }
    difference = np.ones(n)
    terms = [
        Term(-0.5 * difference, "a.square"),
        Term(-0.5 * difference - 0.5, "b.square"),
        Term(difference, "a.value", "b.value", subscripts="n,n,n"),
        Term(-0.5 * n, "s.square"),
        Term(1.0, "b.value", "s.value"),
        Term(2.0 * n, "s.value"),
        Term(-2.0, "b.value"),
    ]
    posterior = MeanFieldModel(factors, terms).fit(max_iter=20_000)
    assert posterior.flat_directions.shape[0] == 1
    with pytest.warns(UserWarning, match="flat along 1 direction"):
        assert np.isnan(posterior.std("s.value"))


def test_a_weak_prior_is_not_flat():
    """A direction with a posterior sd 30,000 times that under q keeps it."""
    weak = 1e-9
    terms = [
        Term(-0.5 - 0.5 * weak, "x.square"),
        Term(-0.5 - 0.5 * weak, "y.square"),
        Term(1.0, "x.value", "y.value"),
    ]
    posterior = MeanFieldModel({"x": UnivariateNormal(), "y": UnivariateNormal()}, terms).fit()
    assert posterior.std("x.value") == pytest.approx((2 * weak) ** -0.5, rel=1e-5)


# Memory.


def mixture(n):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) + 4.0])
    factors, terms = mixture_terms(X)
    start = {"z.indicator": np.repeat([[0.9, 0.1], [0.1, 0.9]], n, axis=0)}
    return MeanFieldModel(factors, terms), start


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "ask"),
    [
        (lambda: (crossed_effects(500, 500, 2000), None), lambda p: p.std("mu.value")),
        (lambda: (crossed_effects(500, 500, 3000, dense=True), None), lambda p: p.std("mu.value")),
        (lambda: mixture(1300), lambda p: p.covariance("z")),
        (lambda: mixture(1300), lambda p: p.mean_field_covariance()),
        (lambda: mixture(1300), lambda p: p.expected_hessian()),
    ],
)
def test_the_memory_that_is_said_is_the_memory_that_is_taken(model, ask, monkeypatch):
    said = []
    for module in (response, posterior):
        monkeypatch.setattr(module, "require_memory", lambda n_bytes, *_: said.append(n_bytes))
    model, start = model()
    fit = replace(model.fit(start))  # with nothing computed yet
    tracemalloc.start()
    ask(fit)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(said) / 1.5 < taken < 1.5 * max(said)


@functools.cache
def fit_to_many_rows():
    model, start = mixture(25_000)
    return model.fit(start)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["mu.value", "z.indicator"])
def test_error_bars_of_a_mixture_take_no_memory_for_all_of_its_rows(statistic):
    """So many rows have 2.2 million second derivatives, 165 MB, of which 32 MiB are in memory at a time."""
    fit = replace(fit_to_many_rows())  # with nothing computed yet
    tracemalloc.start()
    fit.std(statistic)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 7e7


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (3e3, "The covariance matrices of the members of 'mu', 'b', 'tau'.* needs none of them"),
        (1e4, "second derivatives of the log joint in .* would need .*(a) Give indicators"),
        (5.5e4, "statistics of 'mu', 'b', 'tau'.* to most others: they would need .*(a) If few pairs"),
    ],
)
def test_memory_errors_say_what_helps(limit, message, monkeypatch):
    monkeypatch.setattr(response, "memory_limit", lambda: limit)
    posterior = crossed_effects(20, 20, 60).fit()
    assert posterior.saddle is None
    with pytest.raises(MemoryError, match=message.replace("(a)", r"\(a\)")):
        posterior.std("mu.value")
    assert posterior.std("mu.value", method="mean_field") > 0


def test_a_saddle_is_named_in_the_sparse_way_too(monkeypatch):
    set_sizes(monkeypatch, dense_system=0)
    terms = [Term(-0.5, f"{name}.square") for name in "xy"]
    factors = {name: Factor(UnivariateNormal(), 40) for name in "xy"}
    coupling = sparse.eye_array(40) * np.linspace(0.1, 1.2, 40)
    model = MeanFieldModel(factors, [*terms, Term(sparse.coo_array(coupling), "x.value", "y.value")])
    with pytest.warns(UserWarning, match="not ended at a maximum"):
        posterior = model.fit()
    with pytest.raises(IndefiniteInformationError, match=r"y.value\[39\] \([+-]1\)") as raised:
        posterior.std("x.value")
    assert raised.value.smallest_eigenvalue == pytest.approx(1 - 1.2**2)


def test_a_topic_model_by_words_and_positions():
    """Tokens z with documents by position and words by a sparse indicator: as with dense indicators."""
    rng = np.random.default_rng(1)
    n, n_documents, n_words, n_topics = 60, 4, 6, 2
    document, word = rng.integers(n_documents, size=n), rng.integers(n_words, size=n)
    indicator = sparse.coo_array((np.ones(n), (np.arange(n), word)), shape=(n, n_words))
    factors = {
        "theta": Factor(Dirichlet(n_topics), n_documents),
        "topics": Factor(Dirichlet(n_words), n_topics),
        "z": Factor(Categorical(n_topics), n),
    }
    priors = [Term(0.5, "theta"), Term(0.5, "topics")]
    by_position = [
        Term(1.0, "z", "theta", subscripts=",nk,nk", at={"theta": document}),
        Term(indicator, "z", "topics", subscripts="nw,nk,kw"),
    ]
    dense = [
        Term(np.eye(n_documents)[document], "z", "theta", subscripts="nd,nk,dk"),
        Term(indicator.toarray(), "z", "topics", subscripts="nw,nk,kw"),
    ]
    start = {"z.indicator": rng.dirichlet(np.ones(n_topics), size=n)}
    found, expected = (
        MeanFieldModel(factors, [*priors, *terms]).fit(start, tol=1e-10, max_iter=5000)
        for terms in (by_position, dense)
    )
    assert found.lower_bound == pytest.approx(expected.lower_bound, rel=1e-12)
    np.testing.assert_allclose(found.expected_hessian(), expected.expected_hessian(), atol=1e-12)
    for label in ("theta.log", "topics.log", "z.indicator"):
        np.testing.assert_allclose(found.std(label), expected.std(label), rtol=1e-6)
