"""Terms and models: what is refused, and in which words; starting and stopping."""

import re

import numpy as np
import pytest
from mean_field_catalogue import built, fitted
from sklearn.exceptions import ConvergenceWarning

from sklearn_lrvb.exponential_families import (
    Categorical,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    UnivariateNormal,
)
from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term

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
        (3.0, "terms[4] = 3.0: not a Term"),
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
        ({"a.b": Gamma()}, "A factor's name is a string without a dot, got 'a.b'."),
        ({"a": 3.0}, "A factor's family is an ExponentialFamily, such as Gamma(); got 3.0."),
        ({"a": Gamma(), "b": Gamma()}, "Factor 'b' occurs in no term"),
    ],
)
def test_factors_that_do_not_fit(factors, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MeanFieldModel(factors, [Term(-1.0, "a.value")])


@pytest.mark.parametrize("copies", [0, -1])
def test_copies(copies):
    with pytest.raises(ValueError, match=f"copies are a positive number or None; got {copies}"):
        Factor(Gamma(), copies)


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
            "not keep it proper: is a prior term missing, or a sign wrong?",
        ),
        (
            Factor(UnivariateNormal(), 3),
            [Term([-0.5, 0.5, -0.5], "x.square")],
            "the precision is not positive definite: smallest eigenvalue -1 (copy 1). The natural parameter "
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
        ({"x": -np.ones((3, 2))}, "start['x']: the shape 0 is not positive (copy 0)."),
    ],
)
def test_starts_that_do_not_fit(start, message):
    model = MeanFieldModel({"x": Factor(Gamma(), 3)}, [Term(-1.0, "x.value")])
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(start)


def test_max_iter_must_be_positive():
    with pytest.raises(ValueError, match="max_iter=0 is not a positive number of sweeps"):
        built("pumps")[0].fit(max_iter=0)


def test_default_axes_and_subscripts_agree():
    """A shared letter is the Kronecker delta that the default axes need written out."""
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
    again = built("group means")[0].fit(posterior.natural_parameters)
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


def test_terms_keep_their_coefficients():
    coefficient = np.array([-1.0, -2.0])
    model = MeanFieldModel({"x": Factor(Gamma(), 2)}, [Term(coefficient, "x.value")])
    coefficient[:] = 1.0
    np.testing.assert_allclose(model.fit().mean("x.value"), [1.0, 0.5])


def test_convergence_warning():
    model, start = built("latent classes")
    with pytest.warns(ConvergenceWarning, match=r"sweep 3 \(= max_iter\) still moved q by .*tol=1e-08"):
        posterior = model.fit(start, max_iter=3)
    assert not posterior.converged
    assert posterior.n_iter == 3
    with pytest.warns(
        UserWarning, match=r"posterior standard deviations from the optimum \(newton_decrement\)"
    ):
        posterior.covariance("classes")


def test_stops_where_the_sweep_moves_little():
    model, _ = built("split regression")
    posteriors = [model.fit(tol=tol) for tol in (1e-2, 1e-6, 1e-10)]
    decrements = [posterior.newton_decrement for posterior in posteriors]
    assert decrements[0] > 1e3 * decrements[1] > 1e6 * decrements[2]
    assert decrements[1] < 1e-5


def test_components_that_coincide_are_a_saddle():
    model, _ = built("normal mixture")
    from sklearn_lrvb.linear_response import IndefiniteInformationError

    symmetric = MeanFieldModel(
        model.factors,
        [t for t in model.terms if "sticks" not in repr(t)]
        + [
            Term(1.0, "z", "sticks.log", subscripts=",nk,k"),
            Term(1.0, "sticks.log_complement"),
        ],
    ).fit()
    np.testing.assert_allclose(*symmetric.mean("mu.value"), rtol=1e-12)
    assert symmetric.newton_decrement == np.inf
    with pytest.raises(
        IndefiniteInformationError, match=r"not a strict local optimum.*-\d.*\(a\).*\(b\)"
    ) as raised:
        symmetric.covariance("mu")
    named = re.findall(r"([\w.]+)\[\d[\d,]*\] \([+-]\d", str(raised.value))
    assert named
    assert {name.split(".")[0] for name in named} <= set(model.factors)
    assert raised.value.smallest_eigenvalue < 0
