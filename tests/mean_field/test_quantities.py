"""Derived functions, the delta method and the table of a posterior."""

import re

import numpy as np
import pandas as pd
import pytest
from catalogue import set_sizes
from mean_field.catalogue import CATALOGUE, built, factor_analysis, fitted
from scipy.stats import beta, gamma, invgamma

from sklearn_lrvb.mean_field import Factor, FunctionOfParameters, MeanFieldModel, Term
from sklearn_lrvb.mean_field.exponential_families import (
    Beta,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    UnivariateNormal,
    Wishart,
)

DERIVED = {
    name: [f"{factor}.{own}" for factor, of in built(name)[0].factors.items() for own in of.family.derived]
    for name in CATALOGUE
}
WITH_DERIVED = [name for name, labels in DERIVED.items() if labels]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_DERIVED)
def test_derived_means_respond_as_refits_do(name):
    """Cov(g, T) = d E[g] / dt of the log joint plus t T, for a statistic T of every factor."""
    model, posterior = built(name)[0], fitted(name)
    for factor, own in model.factors.items():
        statistic = f"{factor}.{next(iter(own.family.statistics))}"
        shape = np.shape(posterior.mean(statistic))
        direction = np.random.default_rng(0).normal(size=shape)
        direction /= np.maximum(posterior.std(statistic), 1e-3)
        refits = [
            MeanFieldModel(model.factors, [*model.terms, Term(sign * 1e-4 * direction, statistic)]).fit(
                posterior.natural_parameters, tol=1e-12, max_iter=20_000
            )
            for sign in (1, -1)
        ]
        for label in DERIVED[name]:
            if not np.all(np.isfinite(posterior.mean(label))):
                continue
            n = np.size(posterior.mean(label))
            response = posterior.covariance(label, statistic)[:n, n:] @ direction.ravel()
            expected = np.ravel(refits[0].mean(label) - refits[1].mean(label)) / 2e-4
            scale = np.abs(expected).max() + np.abs(posterior.mean(label)).max()
            np.testing.assert_allclose(response, expected, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize("name", WITH_DERIVED)
def test_derived_functions_of_separate_and_joint_factors_agree(name, monkeypatch):
    """One way uses their covariance under q, the other what the statistics do not explain of it."""
    labels = [label for label in DERIVED[name] if np.all(np.isfinite(fitted(name).std(label)))]
    if not labels:
        return
    together = [*labels, *fitted(name).factors]
    found = fitted(name).covariance(*together)
    single = [fitted(name).std(label) for label in labels]
    set_sizes(monkeypatch, share_of_separate_factors=np.inf)
    other = built(name)[0].fit(fitted(name), tol=1e-11)
    scale = np.sqrt(np.diag(found))
    error = np.abs(other.covariance(*together) - found)
    np.testing.assert_array_less(error, 1e-6 * np.outer(scale, scale) + 1e-13)
    np.testing.assert_allclose(
        np.concatenate([np.ravel(sd) for sd in single]), scale[: sum(map(np.size, single))]
    )
    for label, sd in zip(labels, single, strict=True):
        np.testing.assert_allclose(other.std(label), sd, rtol=1e-6)
        assert np.shape(sd) == np.shape(fitted(name).mean(label))


def alone(family, natural):
    """The posterior of one factor, which is exact."""
    terms = [
        Term(natural[part].reshape(family.statistics[name]), f"x.{name}")
        for name, part in family.slices.items()
    ]
    return MeanFieldModel({"x": family}, terms).fit()


@pytest.mark.parametrize(
    ("family", "natural", "label", "exact"),
    [
        (Beta(), Beta().natural_parameters(2.0, 5.0), "x.probability", beta(2.0, 5.0)),
        (Gamma(), Gamma().natural_parameters(6.0, 3.0), "x.value", gamma(6.0, scale=1 / 3.0)),
        (Gamma(), Gamma().natural_parameters(6.0, 3.0), "x.variance", invgamma(6.0, scale=3.0)),
        (Wishart(1), Wishart(1).natural_parameters(12.0, [[6.0]]), "x.covariance", invgamma(6.0, scale=3.0)),
        (Dirichlet(3), Dirichlet(3).natural_parameters([1.0, 2.0, 3.0]), "x.probability", beta(1.0, 5.0)),
    ],
)
def test_moments_and_intervals_of_one_variable_are_exact(family, natural, label, exact):
    row = alone(family, natural).summary(label, interval=0.9).iloc[0]
    assert row["mean"] == pytest.approx(exact.mean())
    assert row["sd"] == pytest.approx(exact.std())
    assert row["mean_field_sd"] == pytest.approx(exact.std())
    if label != "x.covariance":  # Its matrices have no quantile function of their own.
        np.testing.assert_allclose(row[["lower", "upper"]].to_numpy(), exact.ppf([0.05, 0.95]), rtol=1e-6)


@pytest.mark.parametrize("shape", [1.5, 4.0, 60.0])
def test_intervals_of_standard_deviations(shape):
    row = alone(Gamma(), Gamma().natural_parameters(shape, 2.0)).summary("x.standard_deviation").iloc[0]
    exact = np.sqrt(invgamma(shape, scale=2.0).ppf([0.025, 0.975]))
    np.testing.assert_allclose(row[["lower", "upper"]].to_numpy(), exact, rtol=0.05)


def test_moments_that_do_not_exist_are_infinite():
    posterior = alone(Gamma(), Gamma().natural_parameters(0.8, 2.0))
    assert posterior.mean("x.variance") == np.inf
    assert np.isfinite(posterior.mean("x.standard_deviation"))
    assert posterior.std("x.standard_deviation") == np.inf
    assert np.isnan(posterior.summary("x.standard_deviation")["lower"].iloc[0])
    with pytest.raises(ValueError, match=r"The mean or the variance of 'x.variance' is infinite under q"):
        posterior.function(np.log, "x.variance")


# The delta method.


@pytest.mark.parametrize("method", ["lrvb", "mean_field"])
def test_linear_functions_are_exact(method):
    posterior = fitted("group means")
    weights = np.arange(5.0)
    result = posterior.function(
        lambda group, grand: np.append(group @ weights, grand - group[0]),
        "group.value",
        "grand.value",
        method=method,
    )
    covariance = posterior.covariance("group.value", "grand.value", method=method)
    jacobian = np.vstack([np.append(weights, 0.0), [-1.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    np.testing.assert_allclose(result.covariance, jacobian @ covariance @ jacobian.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.std, np.sqrt(np.diag(result.covariance)))
    assert result.value[0] == pytest.approx(posterior.mean("group.value") @ weights)


def test_derivatives_of_functions():
    """A smooth function of a vector and of a number, against its derivatives by hand."""
    posterior = fitted("regression")
    result = posterior.function(lambda w, tau: w**2 / np.sqrt(tau), "w0.value", "tau.value")
    w, tau = posterior.mean("w0.value"), posterior.mean("tau.value")
    jacobian = np.column_stack([np.diag(2 * w / np.sqrt(tau)), -0.5 * w**2 * tau**-1.5])
    covariance = posterior.covariance("w0.value", "tau.value")
    np.testing.assert_allclose(result.covariance, jacobian @ covariance @ jacobian.T, rtol=1e-8)
    assert result.std.shape == (3,)


@pytest.mark.slow
def test_functions_that_do_not_change_along_a_rotation():
    """W W' of a factor analysis has error bars where W has none."""
    posterior = factor_analysis().fit(n_init=3, random_state=0, max_iter=5000)
    gram = posterior.function(lambda W: W @ W.T, "W.value")
    assert gram.value.shape == (5, 5)
    assert np.all(gram.std > 0)
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(2, 2)))[0]
    natural = dict(posterior.natural_parameters)
    for name in ("W", "x"):
        family = MultivariateNormal(2)
        moments = [posterior.factors[name].entries(natural[name], part) for part in ("value", "outer")]
        turned = moments[0] @ rotation, rotation.T @ moments[1] @ rotation
        natural[name] = family.pack(*turned)
    again = factor_analysis().fit(natural, max_iter=5000)
    np.testing.assert_allclose(again.function(lambda W: W @ W.T, "W.value").std, gram.std, rtol=1e-5)
    with pytest.warns(UserWarning, match="flat along 1 direction"):
        assert np.isnan(posterior.function(lambda W: W[0, 0], "W.value").std)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.function(np.log), "Name the function's arguments; all are rates.value, rates.log"),
        (lambda p: p.function(lambda x: np.inf, "beta.value"), "not finite at the posterior means"),
        (
            lambda p: p.function(lambda x: x if x == p.mean("beta.value") else np.nan, "beta.value"),
            "not finite near the posterior means",
        ),
        (
            lambda p: p.function(lambda x: x if x == p.mean("beta.value") else [x, x], "beta.value"),
            r"returns the shapes \(\) and \(2,\) for similar arguments",
        ),
        (lambda p: p.function(np.log, "beta.value", method="exact"), "method='exact' is neither"),
        (
            lambda p: p.function(np.log, "beta"),
            "'beta' names no statistic of Gamma; it has beta.value, beta.log",
        ),
        (lambda p: p.summary("beta.value", interval=1.0), "interval must be a probability above 0"),
        (lambda p: p.summary("gamma"), "there is no factor 'gamma'"),
        (
            lambda p: p.std("beta.probability"),
            "it has beta.value, beta.log, beta.variance, beta.standard_dev",
        ),
    ],
)
def test_questions_that_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(fitted("pumps"))


# Tables and representations.


def test_summary_holds_what_the_methods_return():
    posterior = fitted("pumps")
    table = posterior.summary()
    assert isinstance(table, pd.DataFrame)
    assert list(table.index) == [*(f"rates.value[{i}]" for i in range(10)), "beta.value"]
    np.testing.assert_array_equal(
        table["sd"], np.append(posterior.std("rates.value"), posterior.std("beta.value"))
    )
    np.testing.assert_allclose(table["ratio"], table["sd"] / table["mean_field_sd"])
    assert np.all((table["lower"] > 0) & (table["lower"] < table["mean"]) & (table["mean"] < table["upper"]))
    assert list(fitted("latent classes").summary().index)[:3] == [
        "classes.probability[0]", "classes.probability[1]", "answers.probability[0,0]",
    ]  # fmt: skip


def test_representations():
    model, _ = built("crossed groups")
    assert repr(model) == "MeanFieldModel(row: 3 Gamma(), column: 2 Gamma(), cell: 3 x 2 Gamma(); 11 terms)"
    posterior = fitted("crossed groups")
    assert re.fullmatch(
        r"MeanFieldPosterior\(row: 3 Gamma\(\), .*; converged after \d+ sweeps, lower bound -?[\d.]+\)",
        repr(posterior),
    )
    with pytest.warns(UserWarning, match="has not converged"):
        assert "not converged after 1 sweeps" in repr(model.fit(max_iter=1))
    assert repr(posterior.function(lambda x: x[0], "row.value")).count("+-") == 1
    assert repr(FunctionOfParameters(np.array(3.2012), np.array(7.21), np.eye(1))) == "3.2 +- 7.2"
    assert repr(FunctionOfParameters(np.array(1e-7), np.array(2.5e-9), np.eye(1))) == "1e-07 +- 2.5e-09"
    assert repr(FunctionOfParameters(np.array(5.0), np.array(np.nan), np.eye(1))) == "5 +- nan"
    assert "value=[" in repr(posterior.function(lambda x: x, "row.value"))


def test_variables_of_single_copies_have_plain_labels():
    model = MeanFieldModel(
        {"x": UnivariateNormal(), "y": Factor(Gamma(), 1)}, [Term(-1.0, "x.square"), Term(-1.0, "y.value")]
    )
    assert list(model.fit().summary().index) == ["x.value", "y.value[0]"]
