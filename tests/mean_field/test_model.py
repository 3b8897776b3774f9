"""Terms and models: errors and their messages; starts and convergence of coordinate ascent."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from catalogue import set_sizes
from mean_field.catalogue import CATALOGUE, built, fitted
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sklearn_lrvb.linear_response import IndefiniteInformationError
from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term
from sklearn_lrvb.mean_field import posterior as posterior_module
from sklearn_lrvb.mean_field.exponential_families import (
    Categorical,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    UnivariateNormal,
    Wishart,
)

FACTORS = {
    "mu": MultivariateNormal(2),
    "tau": Gamma(),
    "z": Factor(Categorical(2), copies=5),
    "pi": Dirichlet(2),
}


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (Term(1.0, "nu.value"), "there is no factor 'nu'; the factors are mu, tau, z, pi."),
        (
            Term(1.0, "mu.valu"),
            "'mu.valu' names no statistic of MultivariateNormal; it has mu.value, mu.outer.",
        ),
        (Term(1.0, "mu"), "'mu' names no statistic of MultivariateNormal; it has mu.value, mu.outer."),
        (
            Term(np.eye(2), "mu.value", "mu.value"),
            "linear in each factor's statistics, but factor 'mu' occurs twice",
        ),
        (
            Term(np.ones((2, 3)), "mu.value", "tau.value"),
            "has shape (2, 3), expected axes (a=2) from the statistics mu.value (2,), tau.value ().",
        ),
        (Term(np.ones((2, 5)), "z", subscripts="kn,nk"), None),
        (Term(np.ones((5, 2)), "z", subscripts="kn,nk"), "has shape (5, 2), expected axes (k=2, n=5)"),
        (Term(np.ones(2), "mu.value", subscripts="ab,b"), "expected axes (a=any, b=2)"),
        (Term(1.0, "z", "pi", subscripts=",nk,n"), "axis 'n' has size 5, but 2 in pi (2,)."),
        (Term(1.0, "z", subscripts=",k"), "subscripts 'k' name 1 axes, but z has shape (5, 2)."),
        (Term(1.0, "z", "pi", subscripts="i,nk,k"), "the scalar coefficient gives the axis 'i' no size"),
        (Term(1.0, "z", "pi", subscripts=",nk"), "the subscripts have 2 groups, expected 3"),
        (Term(1.0, "pi", subscripts=",1"), "subscripts are letters and commas, got '1'."),
        (Term([1.0, np.nan], "pi"), "1 of 2 coefficients are nan or infinite."),
        (Term(-np.inf), "1 of 1 coefficients are nan or infinite."),
        (3.0, "terms[4] = 3.0: it is not a Term"),
        (Term(1.0, "z."), "'z.' names no statistic of Categorical; it has z.indicator."),
        (Term(1.0, "z.typo"), "'z.typo' names no statistic of Categorical; it has z.indicator."),
        (Term(1.0, 3), "a statistic is named by a string, such as 'factor.statistic'; got 3."),
        (Term(1.0, "pi", subscripts=2), "subscripts are a string such as ',nk,k'; got 2."),
        (
            Term(np.ones((2, 3)), "tau.value", subscripts="ii,"),
            "axis 'i' of the coefficient has size 2, but also 3: (2, 3).",
        ),
        (Term(np.ones((2, 2)), "tau.value", subscripts="ii,"), None),
        (Term(np.ones((5, 2)), "z", subscripts=" nk, n k"), None),
    ],
)
def test_terms_that_do_not_fit(term, message):
    terms = [Term(np.ones(2), "mu.value"), Term(1.0, "tau.log"), Term(1.0, "z"), Term(1.0, "pi"), term]
    if message is None:
        MeanFieldModel(FACTORS, terms)
        return
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        MeanFieldModel(FACTORS, terms)
    assert str(raised.value).startswith("terms[4] = ")


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"a.b": Gamma()}, "A factor's name must be a string without a dot, and not empty; got 'a.b'."),
        ({"": Gamma()}, "A factor's name must be a string without a dot, and not empty; got ''."),
        ({3: Gamma()}, "A factor's name must be a string without a dot, and not empty; got 3."),
        ({}, "factors must be a dict, name -> Factor or family, with at least one; got {}."),
        ([Gamma()], "factors must be a dict, name -> Factor or family, with at least one; got [Gamma()]."),
        ({"a": 3.0}, "A factor's family is an ExponentialFamily, such as Gamma(); got 3.0."),
        ({"a": Gamma(), "b": Gamma()}, "Factor 'b' occurs in no term"),
    ],
)
def test_factors_that_do_not_fit(factors, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MeanFieldModel(factors, [Term(-1.0, "a.value")])


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([], "terms must be a list of at least one Term; got none."),
        (
            Term(-1.0, "a.value"),
            "terms must be a list of Term, [Term(...)] for a single one; got Term(a.value, ",
        ),
        (None, "terms must be a list of Term, [Term(...)] for a single one; got None."),
    ],
)
def test_lists_of_terms_that_are_none(terms, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MeanFieldModel({"a": Gamma()}, terms)


@pytest.mark.parametrize("copies", [0, -1, 2.0, True, "2", (3, 0), (2.0,)])
def test_copies(copies):
    wrong = copies[-1] if isinstance(copies, tuple) else copies
    message = f"A factor's copies must be a whole number of at least 1; got {wrong!r}."
    with pytest.raises(ValueError, match=re.escape(message)):
        Factor(Gamma(), copies)


@pytest.mark.parametrize(
    ("coefficient", "message"),
    [
        ("x.value", "A term's coefficient comes first, as in Term(1.0, 'x.value'); it is missing."),
        (
            [[1.0], [2.0, 3.0]],
            "A term's coefficient must be real numbers; got [[1.0], [2.0, 3.0",
        ),
        (["a"], "A term's coefficient must be real numbers; got ['a']."),
        (sparse.coo_array([[1j]]), "A term's coefficient must be real numbers; got array([0.+1.j])."),
        (
            np.ma.masked_equal([[1.0, 1e6], [1e6, 1.0]], 1e6),
            "A term's coefficient is masked at 0, 1 (2 of 4 entries).",
        ),
    ],
)
def test_coefficients_that_are_no_numbers(coefficient, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Term(coefficient)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"at": [0, 1]}, "at is a dict, name of a factor -> positions of its copies; got [0, 1]."),
        ({"at": {"z": [0.0, 1.0]}}, "at['z'] must be a vector of whole numbers"),
        ({"at": {"z": [[0, 1]]}}, "at['z'] must be a vector of whole numbers"),
        ({"at": {"z": [[0], [0, 1]]}}, "at['z'] must be a vector of whole numbers"),
        ({"at": {"z": np.ma.masked_equal([0, 1], 1)}}, "at['z'] must be a vector of whole numbers"),
        ({"at": {"z": "01"}}, "at['z'] must be a vector of whole numbers"),
    ],
)
def test_positions_that_are_none(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Term(1.0, "z", **arguments)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (Term(1.0, "z", at={"x": [0]}), "at names 'x', which is no factor of this term."),
        (Term(1.0, "tau.value", at={"tau": [0]}), "but 'tau' has 0; Factor(family, copies=n) has copies."),
        (Term(1.0, "z", at={"z": ([0], [0])}), "has positions along 2 axes of copies, but 'z' has 1"),
        (Term(1.0, "z", at={"z": [0, 5]}), "at['z'] has position 5, but the copies of 'z' are 0 to 4."),
        (Term(1.0, "z", at={"z": [-1]}), "at['z'] has position -1, but the copies of 'z' are 0 to 4."),
        (Term(1.0, "w.log", at={"w": ([0], [0, 1])}), "at['w'] has arrays of different lengths, [1, 2]."),
        (
            Term(np.ones((5, 2)), "z", at={"z": [0, 1]}),
            "the coefficient has shape (5, 2), expected axes (a=2, b=2)",
        ),
        (Term(sparse.coo_array([[np.inf, 0.0]]), "pi", subscripts="ik,k"), "1 of 1 coefficients are nan"),
        (Term(sparse.coo_array(np.ones((2, 3))), "z"), "has shape (2, 3), expected axes (a=5, b=2)"),
    ],
)
def test_positions_and_sparse_coefficients_that_do_not_fit(term, message):
    factors = {**FACTORS, "w": Factor(Gamma(), (2, 3))}
    with pytest.raises(ValueError, match=re.escape(message)):
        MeanFieldModel(factors, [term])


def test_representation_of_terms():
    assert repr(Term([1.0, 2.0], "a", subscripts="n,nk", at={"a": [3, 3]})) == (
        "Term(a [n,nk], coefficient of shape (2,), at a)"
    )
    assert repr(Term(sparse.eye_array(3), "a")) == "Term(a, 3 entries of shape (3, 3))"


@pytest.mark.slow
def test_sparse_coefficients_and_positions_are_those_of_dense_indicators():
    """Every way of writing the same sum, with repeated positions, two axes of copies, and a diagonal."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(2, size=7), rng.integers(3, size=7)
    weights = rng.random(7)
    factors = {"w": Factor(Gamma(), (2, 3)), "v": Factor(Gamma(), 2), "L": Wishart(3), "s": Gamma()}
    onehot = np.zeros((7, 2, 3))
    onehot[np.arange(7), first, second] = 1.0
    row = np.eye(2)[first]
    table = np.einsum("n,nij->ij", weights, onehot)
    square = sparse.coo_array(rng.random((3, 3)))
    both = {"w": (first, second), "v": first}
    pairs = [
        (
            Term(-weights, "w.value", "v.value", "s.value", subscripts="n,n,n,", at=both),
            Term(-np.einsum("n,nij,nk->ijk", weights, onehot, row), "w.value", "v.value", "s.value",
                 subscripts="ijk,ij,k,"),
        ),
        (Term(-sparse.coo_array(table), "w.value", "v.value", subscripts="ij,ij,i"),
         Term(-table, "w.value", "v.value", subscripts="ij,ij,i")),
        (
            Term(-sparse.coo_array(row * weights[:, None]), "w.value", "v.value", subscripts="ni,n,i",
                 at={"w": (first, second)}),
            Term(-np.einsum("n,nij,nk->ijk", weights, onehot, row), "w.value", "v.value",
                 subscripts="ijk,ij,k"),
        ),
        (Term(-square, "L.value", "s.value", subscripts="pq,pq,"),
         Term(-square.toarray(), "L.value", "s.value", subscripts="pq,pq,")),
        (Term(-square, "L.value", "s.value", subscripts="pp,pp,"),
         Term(-np.diag(square.toarray()), "L.value", "s.value", subscripts="p,pp,")),
    ]  # fmt: skip
    proper = [Term(-1.0, f"{name}.value") for name in ("w", "v", "s")]
    proper += [Term(-np.eye(3), "L.value"), Term(1.0, "L.log_det")]
    for found, expected in pairs:
        fits = [MeanFieldModel(factors, [*proper, term]).fit(tol=1e-11) for term in (found, expected)]
        assert fits[0].lower_bound == pytest.approx(fits[1].lower_bound, rel=1e-12)
        np.testing.assert_allclose(*(fit.expected_hessian() for fit in fits), atol=1e-12)
        np.testing.assert_allclose(*(fit.std("s.value") for fit in fits), rtol=1e-10)


def test_copies_of_two_axes_are_those_of_one():
    rng = np.random.default_rng(0)
    rates = rng.random((2, 3)) + 1.0
    together = {"w": Factor(Gamma(), (2, 3)), "s": Gamma()}, Term(-rates, "w.value", "s.value")
    in_a_row = {"w": Factor(Gamma(), 6), "s": Gamma()}, Term(-rates.ravel(), "w.value", "s.value")
    fits = [
        MeanFieldModel(
            factors, [term, *(Term(c, f"{n}.{t}") for c, t in ((-1.0, "value"), (1.0, "log")) for n in "ws")]
        ).fit(tol=1e-11)
        for factors, term in (together, in_a_row)
    ]
    np.testing.assert_allclose(fits[0].std("w.value").ravel(), fits[1].std("w.value"), rtol=1e-12)
    np.testing.assert_allclose(fits[0].mean("w.log").ravel(), fits[1].mean("w.log"), rtol=1e-12)
    assert fits[0].names[5] == "w.log[0,2]"
    assert fits[0].sample(4, random_state=0)["w"].shape == (4, 2, 3)


# Which axes of a scalar's statistics belong together.

AMBIGUOUS = {
    "x": Factor(UnivariateNormal(), 3),
    "y": Factor(Gamma(), 3),
    "w": MultivariateNormal(1),
    "Lambda": Wishart(2),
    "pi": Dirichlet(2),
    "z": Factor(Categorical(2), 3),
    "tau": Gamma(),
}
PROPER = [
    Term(-1.0, "x.square"),
    Term(-1.0, "y.value"),
    Term(-1.0, "tau.value"),
    Term(-np.eye(1), "w.outer"),
    Term(-np.eye(2), "Lambda.value"),
    Term(1.0, "z"),
    Term(1.0, "pi"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistics", "everything"),
    [
        (("x.square", "y.value"), ",a,b"),
        (("z", "x.value"), ",ab,c"),
        (("z", "pi"), ",ab,c"),
        (("w.outer",), ",ab"),
        (("w.outer", "tau.value"), ",ab,"),
        (("Lambda.value",), ",ab"),
    ],
)
def test_ambiguous_axes_of_a_scalar_are_refused(statistics, everything):
    with pytest.raises(ValueError, match="a scalar coefficient does not fix which axes of") as raised:
        MeanFieldModel(AMBIGUOUS, [*PROPER, Term(-0.1, *statistics)])
    message = str(raised.value)
    assert f"{everything!r} sums over all combinations" in message
    assert all(advice in message for advice in ("',n,n'", "',n,m'", "',pp' (a trace)"))
    # The subscripts that the error suggests are accepted, and equal an array of that value without any.
    model = MeanFieldModel(AMBIGUOUS, [*PROPER, Term(-0.1, *statistics, subscripts=everything)])
    shape = sum((np.shape(model.fit().mean(s)) for s in statistics), ())
    written = MeanFieldModel(AMBIGUOUS, [*PROPER, Term(np.full(shape, -0.1), *statistics)])
    assert model.fit().lower_bound == pytest.approx(written.fit().lower_bound, rel=1e-13)


@pytest.mark.parametrize("statistics", [("x.square",), ("z",), ("x.square", "tau.value"), ("tau.value",)])
def test_axes_of_a_scalar_that_are_clear(statistics):
    posterior = MeanFieldModel(AMBIGUOUS, [*PROPER, Term(-0.1, *statistics)]).fit()
    shape = sum((np.shape(posterior.mean(s)) for s in statistics), ())
    written = MeanFieldModel(AMBIGUOUS, [*PROPER, Term(np.full(shape, -0.1), *statistics)])
    assert posterior.lower_bound == pytest.approx(written.fit().lower_bound, rel=1e-13)


def test_a_ridge_prior_is_a_trace():
    ridge = [Term(-0.5 * 4.0, "w.outer", subscripts=",pp"), Term(np.array([2.0, -4.0]), "w.value")]
    posterior = MeanFieldModel({"w": MultivariateNormal(2)}, ridge).fit()
    np.testing.assert_allclose(posterior.mean("w.value"), [0.5, -1.0], rtol=1e-14)


def test_more_axes_than_letters():
    factors = {f"x{i}": MultivariateNormal(1) for i in range(27)}
    term = Term(np.ones((1, 1)), *(f"{name}.outer" for name in factors))
    with pytest.raises(ValueError, match="the statistics have 54 axes, more than the 52 letters"):
        MeanFieldModel(factors, [term])


@pytest.mark.parametrize(
    ("family", "terms", "message"),
    [
        (
            Gamma(),
            [Term(1.0, "x.log")],
            "The update of factor 'x' leaves the Gamma family: the rate 0 is not positive. "
            "The natural parameter of 'x.value' is 0. No term has 'x.value': its prior is missing.",
        ),
        (
            Gamma(),
            [Term(-1.0, "x.value"), Term(-2.0, "x.log")],
            "the shape -1 is not positive. The natural parameter of 'x.log' is -2. The terms in 'x.log' do "
            "not keep it proper. (a) Add its prior term, if that is missing. (b) Check the signs",
        ),
        (
            Factor(UnivariateNormal(), 3),
            [Term([-0.5, 0.5, -0.5], "x.square")],
            "the precision is not positive definite: its diagonal holds -1 (copy 1). The natural parameter "
            "of 'x.square' is 0.5.",
        ),
    ],
)
def test_improper_updates(family, terms, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MeanFieldModel({"x": family}, terms).fit()


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"nu": [0.0]}, "start names 'nu', which is no factor; the factors are x."),
        (
            {"x": [-1.0, 0.0]},
            "start['x'] has shape (2,), expected (3, 2): natural parameters, flat in the order",
        ),
        ({"x": "abc"}, "start['x'] must be real numbers; got 'abc'."),
        ({"x": [[-1.0, 1.0], [-1.0, np.nan], [-1.0, 1.0]]}, "start['x'] must be finite; got nan at 1, 1 (1"),
        ({"x": np.ma.masked_equal(-np.ones((3, 2)), -1.0)}, "start['x'] is masked at 0, 0 (6 of 6 entries)."),
        ({"x": -np.ones((3, 2))}, "start['x']: the shape 0 is not positive (copy 0)."),
    ],
)
def test_starts_that_do_not_fit(start, message):
    model = MeanFieldModel({"x": Factor(Gamma(), 3)}, [Term(-1.0, "x.value")])
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(start)


@pytest.mark.parametrize("rows", [1, 4, 9])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_flat_prior_needs_as_many_rows_as_features(rows, scale):
    """With P - 1 rows the precision is singular up to round-off, in any units."""
    X = np.random.default_rng(rows).normal(size=(rows, rows + 1)) * scale ** np.linspace(0, 1, rows + 1)
    factors = {"w": MultivariateNormal(rows + 1), "tau": Gamma()}
    terms = [
        Term(X.T @ np.ones(rows), "w.value", "tau.value", subscripts="p,p,"),
        Term(-0.5 * X.T @ X, "w.outer", "tau.value", subscripts="pq,pq,"),
        Term(-1.0 - rows, "tau.value"),
        Term(1.0, "tau.log"),
    ]
    with pytest.raises(
        ValueError, match=r"(?s)not positive definite to working precision: .*Add its prior term"
    ):
        MeanFieldModel(factors, terms).fit()
    prior = Term(-0.5 * np.diag(1e-9 * np.diag(X.T @ X)), "w.outer")
    with pytest.warns(ConvergenceWarning):
        MeanFieldModel(factors, [*terms, prior]).fit(max_iter=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1; got 0."),
        ({"max_iter": 10.0}, "max_iter must be a whole number of at least 1; got 10.0."),
        ({"max_iter": True}, "max_iter must be a whole number of at least 1; got True."),
        ({"tol": np.nan}, "tol=nan must be a number of at least 0."),
        ({"tol": -1e-3}, "tol=-0.001 must be a number of at least 0."),
        ({"tol": None}, "tol=None must be a number of at least 0."),
        (
            {"start": [1.0]},
            "start must be a dict, factor -> natural parameters, or a MeanFieldPosterior; got [1.0].",
        ),
    ],
)
def test_arguments_of_fit_that_are_refused(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        built("pumps")[0].fit(**arguments)


def test_means_that_overflow_are_refused_at_once():
    @dataclass(frozen=True)
    class Overflowing(Gamma):
        def mean_parameters(self, natural):
            return np.where(natural[..., :1] < -5, np.inf, Gamma.mean_parameters(self, natural))

    factors = {"x": Factor(Overflowing(), 2)}
    message = r"The mean of x.value\[1\] is inf, where the natural parameters of its member are \[-9"
    with pytest.raises(ValueError, match=message):
        MeanFieldModel(factors, [Term([-1.0, -9.0], "x.value")]).fit()
    with pytest.raises(ValueError, match=message):
        MeanFieldModel(factors, [Term(-1.0, "x.value")]).fit({"x": [[-1.0, 0.0], [-9.0, 0.0]]})


def test_starts_of_integers_and_of_single_precision():
    model, _ = built("pumps")
    posterior = model.fit({"beta": np.array([-2.0, 1.0])})
    for start in ([-2, 1], np.array([-2, 1]), np.array([-2, 1], dtype=np.float32)):
        again = model.fit({"beta": start})
        np.testing.assert_array_equal(
            again.natural_parameters["rates"], posterior.natural_parameters["rates"]
        )
        assert again.natural_parameters["beta"].dtype == float


def test_a_start_is_not_forgotten_where_its_factor_comes_first():
    """The other factors are updated before the indicators, whatever the order of ``factors``."""
    model, start = built("normal mixture")
    others = [name for name in model.factors if name != "z"]
    first = MeanFieldModel({name: model.factors[name] for name in ("z", *others)}, model.terms)
    posterior, expected = first.fit(start), model.fit(start)
    np.testing.assert_array_equal(posterior.lower_bounds, expected.lower_bounds)
    np.testing.assert_array_equal(posterior.mean("z"), expected.mean("z"))
    assert abs(posterior.mean("mu.value")[0] - posterior.mean("mu.value")[1]).max() > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_acceleration_changes_the_number_of_sweeps_alone(name):
    model, start = built(name)
    plain = model.fit(start, tol=1e-11, max_iter=20_000, accelerate=False)
    assert fitted(name).lower_bound == pytest.approx(plain.lower_bound, rel=1e-13)
    assert fitted(name).n_iter <= plain.n_iter
    for factor, natural in plain.natural_parameters.items():
        np.testing.assert_allclose(fitted(name).natural_parameters[factor], natural, rtol=1e-5, atol=1e-6)


def poisson_mixture(rates=(3.0, 6.0, 10.0), n=200):
    rng = np.random.default_rng(0)
    k = len(rates)
    x = rng.poisson(np.array(rates)[rng.integers(k, size=n)]).astype(float)
    model = MeanFieldModel(
        {"rate": Factor(Gamma(), k), "pi": Dirichlet(k), "z": Factor(Categorical(k), n)},
        [
            Term(x, "z", "rate.log", subscripts="n,nk,k"),
            Term(-1.0, "z", "rate.value", subscripts=",nk,k"),
            Term(1.0, "z", "pi", subscripts=",nk,k"),
            Term(1.0, "rate.log"),
            Term(-0.2, "rate.value"),
        ],
    )
    side = np.digitize(x, np.quantile(x, np.arange(1, k) / k))
    return model, {"z.indicator": np.eye(k)[side] + 0.1}


@pytest.mark.slow
def test_slow_ascents_are_accelerated():
    model, start = poisson_mixture()
    plain, fast = (model.fit(start, max_iter=5000, accelerate=accelerate) for accelerate in (False, True))
    assert 15 * fast.n_iter < plain.n_iter
    assert fast.lower_bound == pytest.approx(plain.lower_bound, abs=1e-8)
    assert np.all(np.diff(fast.lower_bounds) >= -1e-11 * abs(fast.lower_bound))


def test_random_starts():
    """Components that coincide without a start; the best of several random ones tells them apart."""
    model, _ = poisson_mixture(rates=(2.0, 20.0))
    with pytest.warns(ConvergenceWarning, match="not ended at a maximum"):
        symmetric = model.fit()
    posterior = model.fit(n_init=3, random_state=0)
    assert posterior.lower_bound > symmetric.lower_bound + 10
    np.testing.assert_allclose(sorted(posterior.mean("rate.value")), [2.0, 20.0], rtol=0.15)
    again = model.fit(n_init=3, random_state=0)
    np.testing.assert_array_equal(again.natural_parameters["z"], posterior.natural_parameters["z"])
    given = model.fit({"rate.value": [2.0, 20.0]}, n_init=2, random_state=0)
    assert given.lower_bound >= posterior.lower_bound - 1e-8
    with pytest.raises(ValueError, match="n_init must be a whole number of at least 1; got 0"):
        model.fit(n_init=0)


def test_guesses_of_the_variables():
    """A guess of one factor is followed by the others, before it is updated itself."""
    model, _ = built("pumps")
    near = model.fit()
    with pytest.warns(ConvergenceWarning):
        swept = model.fit({"rates.value": near.mean("rates.value")}, max_iter=1)
    update = model.log_joint.natural_parameters
    means = {"rates": Gamma().statistics_of(near.mean("rates.value"))}
    np.testing.assert_array_equal(swept.natural_parameters["beta"], update(means, "beta"))
    assert model.fit({"rates.value": near.mean("rates.value")}).n_iter > 1
    mixture, start = built("normal mixture")
    probabilities = Categorical(2).mean_parameters(start["z"])
    by_guess, by_natural = mixture.fit({"z.indicator": 3.0 * probabilities}), mixture.fit(start)
    np.testing.assert_allclose(by_guess.lower_bounds, by_natural.lower_bounds, rtol=1e-10)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"rates.log": np.ones(10)}, "start['rates.log']: a guess of 'rates' is given as 'rates.value'"),
        ({"rates.value": np.ones(9)}, "start['rates.value'] has shape (9,), which does not fit"),
        ({"rates.value": np.zeros(10)}, "start['rates.value'] is outside the range of Gamma variables"),
        ({"beta.value": 1j}, "start['beta.value'] must be real numbers; got 1j."),
        ({"beta.value": np.ma.masked}, "start['beta.value'] is masked."),
        ({"beta.value": 1.0, "beta": [-1.0, 0.0]}, "start has two entries for the factor 'beta'."),
        ({"x.value": 1.0}, "start names 'x.value', which is no factor; the factors are rates, beta."),
        ({3: 1.0}, "start names 3, which is no factor; the factors are rates, beta."),
    ],
)
def test_guesses_that_do_not_fit(start, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        built("pumps")[0].fit(start)


def test_order_of_updates():
    """After one sweep the starts of the later factors matter, and the default of the first does not."""
    model, _ = built("pumps")
    near = model.fit().natural_parameters

    def one_sweep(start):
        with pytest.warns(ConvergenceWarning):
            return model.fit(start, max_iter=1, tol=0.0)

    for factor in model.factors:
        update = model.log_joint.natural_parameters
        other = next(name for name in model.factors if name != factor)
        swept = one_sweep({factor: 1.1 * near[factor]})
        means = {factor: model.factors[factor].family.mean_parameters(1.1 * near[factor])}
        np.testing.assert_array_equal(swept.natural_parameters[other], update(means, other))
        np.testing.assert_array_equal(swept.natural_parameters[factor], update(swept.mean_parameters, factor))
    # Where all factors have a start, their order counts.
    swept = one_sweep(dict(reversed(near.items())))
    last = list(model.factors)[-1]
    np.testing.assert_array_equal(swept.natural_parameters[last], update(swept.mean_parameters, last))


def shifted_normal(shift):
    """Fifty observations with mean ``shift`` and standard deviation 1."""
    x = np.linspace(-1.7, 1.7, 50) + shift
    return MeanFieldModel(
        {"mu": Factor(UnivariateNormal(), 2), "v": MultivariateNormal(2), "tau": Gamma()},
        [
            Term(25.0, "tau.log"),
            Term(-0.5 * np.sum(x**2), "tau.value"),
            Term([0.0, x.sum()], "mu.value", "tau.value"),
            Term([0.0, -25.0], "mu.square", "tau.value"),
            Term([-0.5, 0.0], "mu.square"),
            Term(-0.5, "v.outer", subscripts=",pp"),
            Term(-1.0, "tau.value"),
        ],
    )


def test_data_far_from_zero():
    near = shifted_normal(0.0).fit()
    # The mean is 7 times the shift in standard deviations; the warning starts at 67,000.
    posterior = shifted_normal(5e3).fit(tol=1e-6)
    assert posterior.lost_precision is None
    np.testing.assert_allclose(posterior.std("mu.value"), near.std("mu.value"), rtol=1e-6)
    message = (
        r"mu.value\[1\] has mean 30000 and standard deviation 0.14: .* relative errors up to 1e-05. "
        "Centre the data."
    )
    with pytest.warns(UserWarning, match=message) as caught:
        posterior = shifted_normal(3e4).fit(tol=1e-4)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(posterior.std("mu.value"), near.std("mu.value"), rtol=1e-5)


def test_statistics_without_an_origin_cause_no_warning():
    """Certain indicators, large counts and small probabilities are many standard deviations from zero."""
    factors = {
        "z": Factor(Categorical(2), 2),
        "pi": Dirichlet(2),
        "tau": Gamma(),
        "Lambda": Wishart(2),
    }
    terms = [
        Term([[40.0, 0.0], [0.0, 700.0]], "z"),
        Term([1e12, 1.0], "pi"),
        Term(-1e12, "tau.value"),
        Term(1e12, "tau.log"),
        Term(-1e12 * np.eye(2), "Lambda.value"),
        Term(1e12, "Lambda.log_det"),
    ]
    assert MeanFieldModel(factors, terms).fit().lost_precision is None


def test_default_axes_and_subscripts_agree():
    """A shared letter equals an explicit Kronecker delta with the default axes."""
    K = 3
    factors = {"x": Factor(UnivariateNormal(), K), "tau": Factor(Gamma(), K)}
    prior = [Term(-0.5, "x.square"), Term(-1.0, "tau.value"), Term(1.0, "tau.log")]
    pull = np.array([0.3, -0.2, 0.7])
    short = MeanFieldModel(
        factors, [*prior, Term(-(pull**2), "x.square", "tau.value", subscripts="k,k,k")]
    ).fit()
    long = MeanFieldModel(factors, [*prior, Term(np.diag(-(pull**2)), "x.square", "tau.value")]).fit()
    assert short.lower_bound == pytest.approx(long.lower_bound, rel=1e-13)
    np.testing.assert_allclose(short.expected_hessian(), long.expected_hessian(), rtol=1e-12)


def test_scalar_coefficients_broadcast():
    factors = {"x": Factor(UnivariateNormal(), 3), "y": UnivariateNormal()}
    prior = [Term(-2.0, "x.square"), Term(-2.0, "y.square"), Term(1.0, "y.value")]
    scalar = MeanFieldModel(factors, [*prior, Term(0.3, "x.value", "y.value")]).fit()
    array = MeanFieldModel(factors, [*prior, Term([0.3, 0.3, 0.3], "x.value", "y.value")]).fit()
    np.testing.assert_array_equal(scalar.expected_hessian(), array.expected_hessian())
    assert scalar.mean("x.value")[1] != 0


def test_repeated_letters_take_the_trace():
    factors = {"x": MultivariateNormal(2), "tau": Gamma()}
    prior = [Term(-np.eye(2), "x.outer"), Term(np.ones(2), "x.value"), Term(-1.0, "tau.value")]
    trace = MeanFieldModel(factors, [*prior, Term(-0.5, "x.outer", "tau.value", subscripts=",pp,")]).fit()
    written = MeanFieldModel(factors, [*prior, Term(-0.5 * np.eye(2), "x.outer", "tau.value")]).fit()
    assert trace.lower_bound == pytest.approx(written.lower_bound, rel=1e-13)
    np.testing.assert_allclose(trace.expected_hessian(), written.expected_hessian(), rtol=1e-12)


def test_a_letter_of_the_coefficient_alone_is_summed():
    factors = {"tau": Gamma()}
    data = np.array([[1.0, 2.0], [3.0, 4.0]])
    model = MeanFieldModel(factors, [Term(-data, "tau.value", subscripts="ij,")])
    assert model.fit().mean("tau.value") == pytest.approx(0.1)


def test_constants_shift_the_lower_bound_alone():
    model, start = built("normal mixture")
    shifted = MeanFieldModel(model.factors, [*model.terms, Term(-12.5)]).fit(start)
    plain = model.fit(start)
    assert shifted.lower_bound == pytest.approx(plain.lower_bound - 12.5, rel=1e-13)
    np.testing.assert_array_equal(shifted.covariance("mu"), plain.covariance("mu"))


def test_warm_start_is_converged_at_once():
    posterior = fitted("group means")
    for start in (posterior.natural_parameters, posterior):
        again = built("group means")[0].fit(start)
        assert again.converged
        assert again.n_iter == 1
        np.testing.assert_allclose(again.lower_bound, posterior.lower_bound, rtol=1e-13)


def test_fit_leaves_the_start_alone_and_the_posterior_is_read_only():
    start = {"z": np.array(built("normal mixture")[1]["z"])}
    kept = start["z"].copy()
    posterior = built("normal mixture")[0].fit(start)
    np.testing.assert_array_equal(start["z"], kept)
    with pytest.raises(ValueError, match="read-only"):
        posterior.natural_parameters["z"][0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        posterior.mean("mu.value")[0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        posterior.lower_bounds[0] = 0.0


def test_terms_keep_their_coefficients():
    coefficient = np.array([-1.0, -2.0])
    model = MeanFieldModel({"x": Factor(Gamma(), 2)}, [Term(coefficient, "x.value")])
    coefficient[:] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        model.terms[0].coefficient[0] = 1.0
    np.testing.assert_allclose(model.fit().mean("x.value"), [1.0, 0.5])


def test_convergence_warning():
    model, start = built("latent classes")
    message = r"sweep 3 \(= max_iter\) still moved q by .*tol=1e-08"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        posterior = model.fit(start, max_iter=3)
    assert caught[0].filename == __file__
    assert not posterior.converged
    assert posterior.n_iter == 3
    far = r"posterior standard deviations from the optimum \(newton_decrement\)"
    for report in (posterior.covariance, posterior.std):
        with pytest.warns(UserWarning, match=far) as caught:
            report("classes")
        assert [warning.filename for warning in caught] == [__file__]


def test_stops_where_the_sweep_moves_little():
    model, _ = built("split regression")
    posteriors = [model.fit(tol=tol) for tol in (1e-2, 1e-6, 1e-10)]
    decrements = [posterior.newton_decrement for posterior in posteriors]
    assert decrements[0] > 1e3 * decrements[1] > 1e6 * decrements[2]
    assert decrements[1] < 1e-5


def test_components_that_coincide_are_a_saddle():
    model, _ = built("normal mixture")
    terms = [t for t in model.terms if "sticks" not in repr(t)]
    terms += [Term(1.0, "z", "sticks.log", subscripts=",nk,k"), Term(1.0, "sticks.log_complement")]
    with pytest.warns(
        ConvergenceWarning, match=r"not ended at a maximum of the lower bound: q is no.*n_init"
    ):
        symmetric = MeanFieldModel(model.factors, terms).fit()
    np.testing.assert_allclose(*symmetric.mean("mu.value"), rtol=1e-12)
    assert symmetric.newton_decrement == np.inf
    with pytest.raises(
        IndefiniteInformationError, match=r"q is no strict local optimum.*-\d.*\(a\) q is a saddle.*\(b\)"
    ) as raised:
        symmetric.covariance("mu")
    named = re.findall(r"([\w.]+)\[\d[\d,]*\] \([+-]\d", str(raised.value))
    assert named
    assert {name.split(".")[0] for name in named} <= set(model.factors)
    assert raised.value.smallest_eigenvalue < 0
    joint = [name for name in model.factors if name != "z"]
    assert raised.value.names == tuple(np.concatenate([model.factors[name].labels(name) for name in joint]))
    assert raised.value.direction.shape == (len(raised.value.names),)


def test_causes_of_an_unstable_fixed_point():
    """An indefinite normal precision of which every update is proper."""
    terms = [Term(-0.5, "x.square"), Term(-0.5, "y.square")]
    factors = {"x": UnivariateNormal(), "y": UnivariateNormal()}
    with pytest.warns(ConvergenceWarning, match="not ended at a maximum"):
        improper = MeanFieldModel(factors, [*terms, Term(1.5, "x.value", "y.value")]).fit()
    with pytest.raises(IndefiniteInformationError) as raised:
        improper.covariance("x.value")
    message = str(raised.value)
    assert "(a) q is a saddle" in message
    assert "(b) The log joint is flat or improper along this direction: add the missing prior" in message
    assert "max_iter" not in message
    with pytest.warns(ConvergenceWarning):
        stopped = MeanFieldModel(
            factors, [*terms, Term(1.5, "x.value", "y.value"), Term(1.0, "x.value")]
        ).fit(max_iter=3)
    with pytest.raises(IndefiniteInformationError, match=r"\(a\) Coordinate ascent stopped early \(3 sweeps"):
        stopped.std("x.value")
    pull = [Term(1e6, "x.value"), Term(1.5, "x.value", "y.value")]
    with (
        pytest.warns(ConvergenceWarning),
        pytest.warns(UserWarning, match=r".\.value has mean \S+ and standard deviation 1:"),
    ):
        far = MeanFieldModel(factors, [*terms, *pull]).fit(max_iter=3)
    with pytest.raises(
        IndefiniteInformationError, match=r"\(d\) .\.value has mean \S+ and standard deviation 1:"
    ):
        far.std("x.value")


def test_large_fits_leave_saddles_to_the_error_bars(monkeypatch):
    model, _ = poisson_mixture(rates=(2.0, 20.0))
    assert f"more than {posterior_module._CHECKED_UP_TO:,} entries" in MeanFieldModel.fit.__doc__
    set_sizes(monkeypatch, entries_checked_for_saddles=100)
    symmetric = model.fit()
    assert symmetric.saddle is None
    with pytest.raises(IndefiniteInformationError, match="q is no strict local optimum"):
        symmetric.std("rate.value")
