"""The table of the posterior: its columns against what they sum up, its intervals against draws."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    MOST_MODELS,
    WEIGHT_PRIORS,
    few_of,
    fitted,
    mixture,
    model_id,
    overlapping,
    set_sizes,
    types_in_turn,
    uncertainty_of,
    unique,
    unique_of_draws,
    values_of,
)
from covariance_types import TYPES
from scipy import special, stats
from sklearn.exceptions import NotFittedError

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.answers.margins import FamilyMargins
from sklearn_lrvb.answers.targets import target_class
from sklearn_lrvb.gaussian.answers.margins import CovarianceMargins, InverseGamma
from sklearn_lrvb.gaussian.answers.targets import TARGETS as GAUSSIAN_TARGETS

catalogue = pytest.mark.parametrize("model", MOST_MODELS, ids=model_id)
some_models = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
TARGETS = ["weights", "log_weights", "means", "precisions"]
KINDS = ["weights", "log_weights", "means", "precisions", "scales", "covariances", "tails"]
NAME = re.compile(r"(\w+)\[(.*)\]")


def on_diagonal(name):
    """Whether a row is of a variance, its reciprocal or degrees of freedom, by its name."""
    kind, place = NAME.fullmatch(name).groups()
    features = [part for part in place.split(",") if not part.isdigit()]
    return kind in ("precision", "covariance", "scale", "tail") and len(set(features)) <= 1


def rows(summary, kind):
    return summary[summary.index.str.startswith(f"{kind}[")]


def table(estimator, **asked):
    """The table of everything that is a parameter or a covariance, of empty components too."""
    has = uncertainty_of(estimator).targets.has
    asked = {"target": [kind for kind in KINDS if has(kind)], "min_count": 0.0, **asked}
    return estimator.posterior(method="lrvb").summary(**asked)


@catalogue
def test_columns_are_what_they_sum_up(model):
    estimator = fitted(model)
    summary = table(estimator)
    assert list(summary.columns) == ["mean", "sd", "mean_field_sd", "ratio", "lower", "upper"]
    attributes = summary[~summary.index.str.match(r"covariance\[|scale\[|tail\[")]
    weights = values_of(estimator, "weights")
    flat_targets = [uncertainty_of(estimator).targets[name] for name in TARGETS[1:]]
    parameters = slice(sum(target.size for target in flat_targets))
    means = np.concatenate([weights, estimator.posterior_mean_[parameters]])
    np.testing.assert_allclose(attributes["mean"], means, rtol=1e-13)
    for column, method in (("sd", "lrvb"), ("mean_field_sd", "mean_field")):
        variances = np.diag(estimator.posterior(method=method).covariance(TARGETS))
        np.testing.assert_allclose(attributes[column], np.sqrt(variances), rtol=1e-9)
    assert np.all(summary["ratio"] >= 1 - 1e-9)
    np.testing.assert_allclose(summary["ratio"] * summary["mean_field_sd"], summary["sd"], rtol=1e-14)
    np.testing.assert_array_equal(attributes.index[len(weights) :], estimator.posterior_names_[parameters])
    names = ["weight[0]", "weight[1]", "weight[noise]"]
    assert list(summary.index[: len(weights)]) == names[: len(weights)]
    assert [name.replace("covariance", "precision") for name in rows(summary, "covariance").index] == list(
        rows(summary, "precision").index
    )


@some_models
def test_intervals_stay_in_their_ranges(model):
    lower_noise = {**model, "noise": -6.0} if model.get("noise") else model
    few = overlapping(12, seed=4 if "tails" in model else 3)
    for estimator in (fitted(model), mixture(lower_noise).fit(few)):
        for interval in (0.5, 0.999999):
            summary = table(estimator, interval=interval)
            ends_exist = np.isfinite(summary[["lower", "upper"]])
            if "tails" in model:  # Of covariances some may be infinite.
                ends_exist = ends_exist[~summary.index.str.startswith("covariance")]
            assert np.all(ends_exist)
            assert np.all(summary["sd"] > 0)
            assert np.all(summary["lower"] < summary["upper"])
            for kind, low, high in (("weight", 0, 1), ("log_weight", -np.inf, 0)):
                ends = rows(summary, kind)[["lower", "upper"]].to_numpy()
                assert np.all((ends >= low) & (ends <= high))
            positive = summary[[on_diagonal(name) for name in summary.index]]
            assert len(positive) >= 2
            assert np.all(positive["lower"] > 0)


@catalogue
def test_a_wider_interval_holds_a_narrower_one(model):
    inner, outer = (
        fitted(model).posterior(method="lrvb").summary(interval=interval) for interval in (0.6, 0.9)
    )
    assert np.all(outer["lower"] < inner["lower"])
    assert np.all(outer["upper"] > inner["upper"])


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [120, 3000])
@pytest.mark.parametrize("covariance_type, weights", types_in_turn(WEIGHT_PRIORS))
def test_intervals_are_those_of_draws(covariance_type, weights, n_samples):
    model = {"covariance_type": covariance_type, "weight_concentration_prior_type": weights}
    estimator = mixture(model).fit(overlapping(n_samples))
    draws = estimator.posterior(random_state=0, method="lrvb").sample(8000)
    flat = [draws["weights"], np.log(draws["weights"]), draws["means"].reshape(8000, -1)]
    flat += [unique_of_draws(model, draws[name]) for name in ("precisions", "covariances")]
    summary = table(estimator, interval=0.8)
    flat = np.hstack(flat)
    # The standard errors of quantiles are 0.02 sd. Draws of means are correlated with their precisions, which
    # moves their mean and standard deviation by the order of one over the rows of a component.
    order = 15 / n_samples
    for end, probability in (("lower", 0.1), ("upper", 0.9)):
        error = (np.quantile(flat, probability, axis=0) - summary[end]) / summary["sd"]
        assert np.abs(error).max() < 0.1 + order
    assert np.abs((flat.mean(axis=0) - summary["mean"]) / summary["sd"]).max() < 0.04 + order
    np.testing.assert_allclose(flat.std(axis=0), summary["sd"], rtol=0.06 + order)


def test_one_component_of_diagonal_covariance_has_exactly_qs_intervals():
    estimator = mixture({"covariance_type": "diag", "prior": "fixed"}, n_components=1).fit(overlapping(20))
    summary = table(estimator, interval=0.9)
    shape = 0.5 * estimator.degrees_of_freedom_[0]
    q = stats.gamma(shape, scale=estimator.precisions_[0] / shape)
    np.testing.assert_allclose(rows(summary, "precision")["lower"], q.ppf(0.05), rtol=1e-10)
    np.testing.assert_allclose(rows(summary, "precision")["upper"], q.isf(0.05), rtol=1e-10)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_one_component_has_exactly_qs_covariances(covariance_type, scale):
    X = overlapping(12) * [1.0, scale]
    model = {"covariance_type": covariance_type, "prior": "fixed", "reg_covar": 0.0}
    estimator = mixture(model, n_components=1).fit(X)
    summary = estimator.posterior(method="lrvb").summary("covariances", interval=0.9)
    freedom = np.ravel(estimator.degrees_of_freedom_)[0]
    values = unique({"covariance_type": covariance_type}, estimator.covariances_)
    is_matrix = TYPES[covariance_type].is_matrix
    # The variances of an inverse Wishart matrix are inverse gamma variables with this shape.
    shape = 0.5 * (freedom - 1.0) if is_matrix else 0.5 * freedom
    variances = np.array([on_diagonal(name) for name in summary.index])
    q = stats.invgamma(shape, scale=0.5 * freedom * values[variances])
    for column, expected in (
        ("mean", q.mean()),
        ("sd", q.std()),
        ("lower", q.ppf(0.05)),
        ("upper", q.isf(0.05)),
    ):
        np.testing.assert_allclose(summary[column][variances], expected, rtol=1e-9)
    np.testing.assert_allclose(summary["ratio"], 1, rtol=1e-9)
    if is_matrix:
        full = np.reshape(estimator.covariances_, (2, 2))
        q = stats.invwishart(freedom, freedom * full)
        np.testing.assert_allclose(summary["mean"].iloc[1], q.mean()[0, 1], rtol=1e-9)
        np.testing.assert_allclose(summary["sd"].iloc[1], np.sqrt(q.var()[0, 1]), rtol=0.03)
        draws = q.rvs(20_000, random_state=0)[:, 0, 1]
        for end, probability in (("lower", 0.05), ("upper", 0.95)):
            assert np.mean(draws < summary[end].iloc[1]) == pytest.approx(probability, abs=0.01)


def test_summaries_of_covariances_follow_units():
    units, X = np.array([1e-3, 1e5]), overlapping(60)
    model = {"init_params": np.eye(2)[(X[:, 0] > 1.5).astype(int)], "reg_covar": 0.0}
    own, scaled = (
        mixture(model).fit(rows).posterior(method="lrvb").summary("covariances") for rows in (X, X * units)
    )
    row, column = np.triu_indices(2)
    factors = np.tile(units[row] * units[column], 2)
    for name in ("mean", "sd", "lower", "upper"):
        np.testing.assert_allclose(scaled[name], own[name] * factors, rtol=1e-5)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_moments_that_do_not_exist_are_infinite(covariance_type):
    X = np.concatenate([overlapping(60), [[40.0, 40.0], [40.1, 40.3]]])
    prior = "fixed" if covariance_type == "full" else "learned"
    estimator = mixture({"covariance_type": covariance_type, "prior": prior}, n_components=4).fit(X)
    assert estimator.n_occupied_ < 4
    summary = table(estimator, target="covariances")
    assert np.all(np.isfinite(summary[["lower", "upper"]]))
    assert np.all(summary["lower"] < summary["upper"])
    has_variance = np.isfinite(summary["sd"]) & np.isfinite(summary["mean_field_sd"])
    assert np.all(summary["ratio"][has_variance] > 0.99)
    assert summary["ratio"][~has_variance].isna().all()
    assert not summary["sd"].isna().any()
    variances = summary[[on_diagonal(name) for name in summary.index]]
    assert not variances["mean"].isna().any()
    assert np.all(variances["mean"] > 0)
    if prior == "fixed":  # An empty component has the prior's two degrees of freedom.
        last = summary.iloc[-3:]
        assert np.isinf(last["mean"].iloc[[0, 2]]).all()
        assert np.isnan(last["mean"].iloc[1])
        assert np.isinf(last["sd"]).all()


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
def test_nearly_improper_priors_of_empty_components_have_intervals(covariance_type):
    X = overlapping(40)[:, :1]
    prior = {"prior": "fixed", "degrees_of_freedom_prior": 0.03, "covariance_type": covariance_type}
    estimator = mixture(prior, n_components=3).fit(X)
    summary = table(estimator, interval=0.9, target="covariances")
    assert np.all(summary["lower"] > 0)
    assert np.all(np.isfinite(summary["upper"]))
    assert np.all(summary["lower"] < summary["upper"])
    # Of one feature every variance is exactly inverse gamma.
    freedom, values = np.ravel(estimator.degrees_of_freedom_), np.ravel(estimator.covariances_)
    ratio = summary["ratio"].to_numpy()
    q = stats.invgamma(freedom / 2, scale=values * freedom / 2)
    unaffected = np.isclose(ratio, 1)  # as those of empty components
    assert unaffected.any()
    np.testing.assert_allclose(summary["lower"][unaffected], q.ppf(0.05)[unaffected], rtol=1e-6)


def test_collinear_features_have_intervals():
    rng = np.random.default_rng(0)
    for noise in (1e-1, 1e-3, 1e-5):
        x = rng.normal(size=(50, 1))
        X = np.hstack([x, x + noise * rng.normal(size=(50, 1)), -x + noise * rng.normal(size=(50, 1))])
        summary = (
            mixture({"reg_covar": 0.0}, n_components=1).fit(X).posterior(method="lrvb").summary("covariances")
        )
        variance = summary.iloc[0]
        for k, sign in ((1, 1.0), (2, -1.0)):  # Both covariances are plus or minus the first variance.
            ends = np.sort(sign * summary.iloc[k][["lower", "upper"]].to_numpy(dtype=float))
            np.testing.assert_allclose(ends, variance[["lower", "upper"]].to_numpy(dtype=float), rtol=noise)
            assert summary["sd"].iloc[k] == pytest.approx(variance["sd"], rel=noise)


def family(target, mean, deviation):
    """Margins of a target's family."""
    quantile = target_class(GAUSSIAN_TARGETS, target).quantile
    return FamilyMargins(mean, deviation, [(np.ones(len(mean), dtype=bool), quantile)])


@pytest.mark.parametrize("target", ["weights", "log_weights", "means", "precisions"])
def test_well_determined_parameters_have_normal_intervals(target):
    mean = {"weights": [0.2, 0.7], "log_weights": [-2.0, -0.1], "means": [-3.0, 5.0]}.get(
        target, [1e-3, 50.0]
    )
    mean = np.array(mean)
    for shrink in (1e-4, 1e-6, 1e-9):
        sd = shrink * np.abs(mean)
        lower, upper = family(target, mean, sd).interval(0.95)
        # up to the skewness, of the order of the relative sd, and to round-off
        atol = 20 * shrink + 1e-15 / shrink
        np.testing.assert_allclose((lower - mean) / sd, -1.959964, atol=atol)
        np.testing.assert_allclose((upper - mean) / sd, 1.959964, atol=atol)


def test_parameters_beyond_their_family_stay_in_range():
    mean, sd = np.array([0.5, 1e-9, 1 - 1e-9]), np.array([0.7, 0.2, 0.5])
    lower, upper = family("weights", mean, sd).interval(0.95)
    np.testing.assert_allclose(lower, [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(upper, [1, 0, 1], atol=1e-6)


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
def test_what_is_certain_has_no_interval(weights):
    model = {"weight_concentration_prior_type": weights}
    with np.errstate(all="raise"):
        summary = table(mixture(model, n_components=1).fit(overlapping(40)))
    assert list(summary.loc["weight[0]"]) == [1, 0, 0, 1, 1, 1]
    assert list(summary.loc["log_weight[0]"]) == [0, 0, 0, 1, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize("noise", [None, -6.0])
@pytest.mark.parametrize("n_components", [1, 2])
def test_log_weights_are_the_logarithms_of_the_weights(weights, noise, n_components):
    model = {"weight_concentration_prior_type": weights, "weight_concentration_prior": 2.0, "noise": noise}
    estimator = mixture(model, n_components).fit(overlapping(400))
    of_weights, of_logs = (
        estimator.posterior(method="lrvb").summary(target) for target in ("weights", "log_weights")
    )
    weights, logs = (table["mean"].to_numpy() for table in (of_weights, of_logs))
    # To second order E log pi = log E pi - Var(log pi) / 2.
    variances = of_logs["mean_field_sd"].to_numpy() ** 2
    np.testing.assert_allclose(np.log(weights) - logs, 0.5 * variances, rtol=0.3, atol=1e-12)
    np.testing.assert_allclose(of_logs["sd"] * weights, of_weights["sd"], rtol=0.3, atol=1e-12)
    draws = np.log(estimator.posterior(random_state=0, method="lrvb").sample(4000)["weights"])
    np.testing.assert_allclose(draws.std(axis=0), of_logs["sd"], rtol=0.3, atol=1e-12)
    assert np.all(np.abs(draws.mean(axis=0) - logs) <= 0.2 * draws.std(axis=0) + 1e-12)


@pytest.mark.parametrize("model", MODELS[::12], ids=model_id)
def test_targets_come_in_the_order_asked_for(model):
    estimator = fitted(model)
    summary = table(estimator)
    chosen = estimator.posterior(method="lrvb").summary(["covariances", "means"])
    expected = pd.concat([rows(summary, "covariance"), rows(summary, "mean")])
    pd.testing.assert_frame_equal(chosen, expected)
    np.testing.assert_array_equal(
        estimator.posterior(method="lrvb").summary("all").index, estimator.posterior_names_
    )
    pd.testing.assert_frame_equal(estimator.posterior(method="lrvb").summary("means"), rows(summary, "mean"))


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_components_with_few_rows_are_left_out_where_asked(covariance_type):
    estimator = mixture({"covariance_type": covariance_type}, n_components=6).fit(overlapping(60))
    summary, counts = table(estimator), estimator.mean_precision_ - estimator.mean_precision_prior_
    assert 0 < estimator.n_occupied_ < 6
    for min_count in (0.0, 0.5, counts.max() - 0.5):
        kept = np.flatnonzero(counts >= min_count)
        owners = summary.index.str.extract(r"\[(\w+)")[0]
        is_shared = [not owner.isdigit() for owner in owners]
        expected = summary[is_shared | owners.isin([str(k) for k in kept]).to_numpy()]
        shown = table(estimator, min_count=min_count)
        if np.isfinite(expected["sd"]).all():  # Only empty components have parameters without a variance.
            expected = expected.iloc[:, :6]
        pd.testing.assert_frame_equal(shown, expected)
        assert shown.attrs["prior"] == summary.attrs["prior"]
        rows = "no rows" if min_count <= 0.5 else f"fewer than {min_count:g} rows"
        left_out = f"{len(kept)} of 6 components (the others hold {rows}; min_count=0 shows them)"
        assert (left_out in shown.attrs["fit"]) == (len(kept) < 6)
    assert "median" not in shown


def test_the_weight_of_a_single_component_is_kept():
    summary = mixture({}, n_components=1).fit(overlapping(60)).posterior(method="lrvb").summary(min_count=0.5)
    assert list(summary.loc["weight[0]"]) == [1, 0, 0, 1, 1, 1]


def test_names_of_features_are_used():
    X = pd.DataFrame(overlapping(60), columns=["height", "width"])
    summary = table(LRVBGaussianMixture(n_components=2, random_state=0).fit(X))
    assert {"mean[1,width]", "precision[0,height,width]", "covariance[1,width,width]"} < set(summary.index)


def test_means_and_weights_need_no_matrix_of_all(monkeypatch):
    estimator = mixture(MODELS[0]).fit(overlapping(60))
    set_sizes(monkeypatch, dense_size=4)
    assert len(estimator.posterior(method="lrvb").summary(["weights", "log_weights", "means"])) == 8
    with pytest.raises(MemoryError, match="up to 4 are solved"):
        estimator.posterior(method="lrvb").summary("precisions")


@some_models
def test_the_table_is_of_shares_means_and_standard_deviations_of_components_with_rows(model):
    surplus = {"weight_concentration_prior_type": "dirichlet_process"} if "prior" not in model else {}
    estimator = mixture({**model, **surplus}).fit(overlapping(80))
    kinds = [re.split(r"\[", name)[0] for name in estimator.posterior(method="lrvb").summary().index]
    expected = ["weight", "mean", "sd"] + ["tail"] * ("tails" in values_with_tails(estimator))
    assert list(dict.fromkeys(kinds)) == expected


def values_with_tails(estimator):
    return [name for name in uncertainty_of(estimator).targets.names if name == "tails"]


def test_a_line_above_the_table_describes_the_fit():
    estimator = mixture({}, n_components=6).fit(overlapping(60))
    summary = estimator.posterior(method="lrvb").summary()
    n_occupied = estimator.n_occupied_
    owners = summary.index.str.extract(r"\[(\d+)")[0]
    assert owners.nunique() == n_occupied < 6
    assert summary.attrs["fit"] == (
        f"60 rows, {n_occupied} of 6 components (the others hold no rows; min_count=0 shows them). The fit "
        f"converged after {estimator.n_iter_} iterations, lower bound {estimator.lower_bound_:.2f}. "
        "Error bars by method='lrvb'."
    )
    with pytest.warns(UserWarning, match="did not converge"):
        short = mixture({}, max_iter=2, n_components=2, tol=1e-9).fit(overlapping(60))
    with pytest.warns(UserWarning, match="away from its optimum"):
        assert "did not converge in 2 iterations" in short.posterior(method="lrvb").summary().attrs["fit"]


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_one_component_has_exactly_qs_standard_deviations(covariance_type):
    for n_rows in (12, 3000):
        model = {"covariance_type": covariance_type, "prior": "fixed"}
        estimator = mixture(model, n_components=1).fit(overlapping(n_rows))
        own = estimator.posterior(method="lrvb").summary("standard_deviations", interval=0.9)
        freedom = np.ravel(estimator.degrees_of_freedom_)[0]
        shape = 0.5 * (freedom - 1.0 if TYPES[covariance_type].is_matrix else freedom)
        values = unique({"covariance_type": covariance_type}, estimator.covariances_)
        variances = values[[0, 2]] if TYPES[covariance_type].is_matrix else values
        for row, value in zip(own.itertuples(), variances, strict=True):
            q = stats.invgamma(shape, scale=0.5 * freedom * value)
            mean = np.sqrt(0.5 * freedom * value) * np.exp(
                special.gammaln(shape - 0.5) - special.gammaln(shape)
            )
            assert row.mean == pytest.approx(mean, rel=1e-9)
            assert row.sd == pytest.approx(np.sqrt(q.mean() - mean**2), rel=1e-6)
            np.testing.assert_allclose([row.lower, row.upper], np.sqrt(q.ppf([0.05, 0.95])), rtol=1e-9)


def test_standard_deviations_join_the_delta_method_without_a_step():
    shape = np.array([0.999e6, 1.001e6])
    plus, minus = InverseGamma(shape, shape), InverseGamma(shape, 0.0 * shape)
    margins = CovarianceMargins(np.ones(2), plus, minus, np.zeros(2))
    deviations = margins.root_moments(np.arange(2))[1] * np.sqrt(shape)
    np.testing.assert_allclose(deviations, 0.5, rtol=1e-5)


def checked_entries(estimator, rtol, **asked):
    """Entries and differences of two have the means, deviations and covariances of their targets."""
    kinds = ["weights", "means", "precisions", "standard_deviations"]
    whole = estimator.posterior(**asked).summary(kinds)
    names = [own.index[-1] for _, own in whole.groupby(whole.index.str.split("[").str[0])]
    pairs = [("mean[0,x0]", "mean[1,x0]"), ("weight[0]", "mean[0,x1]"), ("weight[0]", "weight[1]")]
    differences = [" - ".join(pair) for pair in pairs]
    found = estimator.posterior(**asked).summary([*names, *differences])
    pd.testing.assert_frame_equal(found.loc[names], whole.loc[names], rtol=1e-6)
    middle = [whole["mean"][one] - whole["mean"][other] for one, other in pairs]
    np.testing.assert_allclose(found.loc[differences, "mean"], middle, atol=rtol * whole["sd"].max())

    covariance = estimator.posterior(**asked).covariance([*names, *differences])
    joint = estimator.posterior(**asked).covariance(kinds)
    labels = all_names(estimator, kinds)
    matrix = np.zeros((len(found), len(joint)))
    for row, name in enumerate([*names, *differences]):
        for part, sign in zip(name.split(" - "), (1.0, -1.0), strict=False):
            matrix[row, labels.index(part)] = sign
    expected = matrix @ joint @ matrix.T
    scale = np.sqrt(np.diag(expected))
    products = np.outer(scale, scale)
    np.testing.assert_allclose(covariance / products, expected / products, atol=rtol)
    np.testing.assert_allclose(found.loc[differences, "sd"], scale[len(names) :], rtol=rtol)


@some_models
@pytest.mark.parametrize("method", ["lrvb", "sandwich"])
def test_entries_and_differences_are_those_of_their_targets(model, method):
    checked_entries(fitted(model), 1e-9, X=overlapping(), method=method)


@pytest.mark.slow
def test_entries_and_differences_of_draws_are_those_of_their_targets():
    # Every entry has control variates of its own.
    estimator = mixture({"covariance_type": "tied"}).fit(overlapping(400))
    checked_entries(estimator, 0.06, method="exact", n_draws=3000, random_state=0)


def all_names(estimator, kinds):
    known = uncertainty_of(estimator).targets
    return [label for kind in kinds for label in known[kind].labels(["x0", "x1"])]


def test_entries_of_empty_components_are_shown_where_they_are_named():
    estimator = mixture({}, n_components=6).fit(overlapping(60))
    summary = estimator.posterior(method="lrvb").summary(["mean[5,x0]", "weight[5]"])
    assert summary.index.tolist() == ["mean[5,x0]", "weight[5]"]


def test_names_of_entries_come_in_arrays_too():
    estimator = fitted(MODELS[0])
    table = estimator.posterior(method="lrvb").summary()
    pd.testing.assert_frame_equal(estimator.posterior(method="lrvb").summary(table.index), table)
    names = estimator.posterior_names_
    found = estimator.posterior(method="lrvb").covariance(names)
    np.testing.assert_allclose(found, estimator.posterior_covariance_, rtol=1e-9, atol=1e-15)


def test_without_pandas_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        fitted(MODELS[0]).posterior(method="lrvb").summary()


def test_bad_requests_are_refused():
    estimator = fitted(MODELS[0])
    for interval in (0, 1, 1.0, -0.5, 95, np.nan, "0.95"):
        with pytest.raises(ValueError, match="interval must be a probability above 0 and below 1"):
            estimator.posterior(method="lrvb").summary(interval=interval)
    for min_count in (-1, True, "0.5", np.nan):
        with pytest.raises(ValueError, match="min_count must be a number of rows, at least 0"):
            estimator.posterior(method="lrvb").summary(min_count=min_count)
    with pytest.raises(ValueError, match="No component has 1000 expected rows, the largest has"):
        estimator.posterior(method="lrvb").summary(min_count=1000)
    with pytest.raises(ValueError, match=r"target must be one of .* Did you mean 'means'\?"):
        estimator.posterior(method="lrvb").summary("mean")
    with pytest.raises(ValueError, match=r"'mean\[2,x0\]' names no parameter. Did you mean mean\["):
        estimator.posterior(method="lrvb").summary("mean[0,x0] - mean[2,x0]")
    with pytest.raises(ValueError, match="target is empty"):
        estimator.posterior(method="lrvb").summary([])
    for method in ("posterior", "influence"):
        for first in (1000, "means", ["weights", "means"]):
            with pytest.raises(
                ValueError, match=r"The first argument is X, the rows, got .*Others go by name"
            ):
                getattr(estimator, method)(first)
    with pytest.raises(NotFittedError):
        LRVBGaussianMixture().posterior(method="lrvb").summary()
