"""Error bars of latent classes: the twin model's, closed forms, and what must not change them."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import covariance_by
from latent_class import mean_field_twin
from latent_class.catalogue import (
    PROBLEMS,
    RATES,
    SEVERAL,
    codes_of,
    fitted,
    kinds_of,
    refitted,
    weights_of,
)
from scipy.linalg import block_diag
from scipy.special import digamma, gammaln, polygamma

from sklearn_lrvb.linear_response import IndefiniteInformationError


def assert_same_covariance(found, expected, tolerance=1e-8):
    """Covariances are the same, in units of standard deviations."""
    sd = np.sqrt(np.diag(expected))
    sd = np.where(sd > 0, sd, 1.0)
    np.testing.assert_allclose(found / np.outer(sd, sd), expected / np.outer(sd, sd), rtol=0, atol=tolerance)


# The same model by its densities, and closed forms.


def class_by_class(maps):
    """Maps of all entries of columns, (K, q, n) each, as one of the entries of a class after another."""
    return np.concatenate([part for maps_of_class in zip(*maps, strict=True) for part in maps_of_class])


def twins_covariance(name):
    """The covariance of log weights and tables by linear response of the twin."""
    twin, fit, problem = mean_field_twin.twin_of(name), fitted(name), PROBLEMS[name]
    K, kinds = problem.n_components, kinds_of(problem.X)
    statistics, jacobians, excesses = ["pi.log"], [], []
    for column, kind in kinds.items():
        if kind == "numeric":
            statistics += [f"{column}.{name}" for name in ("log", "precision", "product")]
            tau, product = twin.mean(statistics[-2]), twin.mean(statistics[-1])
            n = class_counts(problem, fit)[column]
            shape = 1 + n / 2
            rate = shape / tau
            sd, sd_variance = moments_of_sd(shape, rate)
            # Covariances of tau^-1/2 with log tau and tau, whose own covariance they are divided by.
            with_both = np.stack([sd * (digamma(shape - 0.5) - digamma(shape)), -0.5 * sd / rate], axis=1)
            both = np.array([[polygamma(1, shape), 1 / rate], [1 / rate, shape / rate**2]]).transpose(2, 0, 1)
            of_log, of_precision = np.linalg.solve(both, with_both[:, :, None])[..., 0].T
            of_statistics = (0 * tau, of_log), (-product / tau**2, of_precision), (1 / tau, 0 * tau)
            by_class = [
                np.moveaxis(np.eye(K)[:, :, None] * np.stack(of, axis=1)[:, None], 1, 2)
                for of in of_statistics
            ]
            jacobians.append(np.concatenate(by_class, axis=2))
            # The variance of the mean is that of a t distribution; linear is the part with shape in place of
            # shape - 1.
            excess = sd_variance - with_both[:, 0] * of_log - with_both[:, 1] * of_precision
            excesses.append(np.stack([1 / ((0.1 + n) * tau) / (0.5 * n), excess], axis=1))
            continue
        statistics.append(f"{column}.{'value' if kind in RATES else 'probability'}")
        q = 1 if kind in RATES else kind
        jacobians.append(np.eye(K * q).reshape(K, q, K * q))
        excesses.append(np.zeros((K, q)))
    ends = np.cumsum([jacobian.shape[2] for jacobian in jacobians])
    padded = [
        np.pad(jacobian, ((0, 0), (0, 0), (end - jacobian.shape[2], ends[-1] - end)))
        for jacobian, end in zip(jacobians, ends, strict=True)
    ]
    jacobian = block_diag(np.eye(K), class_by_class(padded))
    excess = np.concatenate([np.zeros(K), class_by_class(excesses)])
    return jacobian @ twin.covariance(*statistics) @ jacobian.T + np.diag(excess)


def moments_of_sd(shape, rate):
    """Mean and variance of tau^-1/2, tau being a gamma variable."""
    mean = np.sqrt(rate) * np.exp(gammaln(shape - 0.5) - gammaln(shape))
    return mean, rate / (shape - 1) - mean**2


def class_counts(problem, fit):
    """Expected numbers of values of every column in each class, by its name: dict of (K,)."""
    responsibilities = weights_of(problem)[:, None] * fit.predict_proba(problem.X)
    return {column: problem.X[column].notna().to_numpy(float) @ responsibilities for column in problem.X}


GIVEN = [name for name in SEVERAL if PROBLEMS[name].prior == "fixed"]


@pytest.mark.parametrize("name", GIVEN)
def test_error_bars_are_those_of_the_model_by_its_densities(name):
    assert_same_covariance(fitted(name).posterior_covariance_, twins_covariance(name))


def covariance_given_classes(problem, responsibilities):
    """The covariance of log weights and tables where the classes of the rows are known: that of q."""
    w, K = weights_of(problem)[:, None] * responsibilities, problem.n_components
    weights, blocks = weights_of(problem), [[] for _ in range(K)]
    for kind, y in zip(kinds_of(problem.X).values(), codes_of(problem.X).T, strict=True):
        seen, total = ~np.isnan(y), weights @ ~np.isnan(y)
        y = np.where(seen, y, 0.0)
        mean = weights @ y / total
        variance = weights @ (seen * (y - mean) ** 2) / total
        for k in range(K):
            n = w[seen, k].sum()
            if kind in RATES:
                of_log, of_rate = (seen * part for part in RATES[kind](y)[:2])
                guess = weights @ of_log / (weights @ of_rate)
                block = [[(1 + w[:, k] @ of_log) / (1 / guess + w[:, k] @ of_rate) ** 2]]
            elif kind == "numeric":
                of_class = w[:, k] @ (seen * (y - mean)) / (0.1 + n)
                squares = w[:, k] @ (seen * (y - mean) ** 2) - (0.1 + n) * of_class**2
                shape, rate = 1 + n / 2, 0.5 * (variance + squares)
                # Of a t distribution, and of tau^-1/2.
                block = np.diag([rate / (shape - 1) / (0.1 + n), moments_of_sd(shape, rate)[1]])
            else:
                a = 1 + np.bincount(y[seen].astype(int), w[seen, k], kind)
                p = a / a.sum()
                block = (np.diag(p) - np.outer(p, p)) / (a.sum() + 1)
            blocks[k].append(block)
    concentrations = 1 / K + w.sum(axis=0)
    of_weights = np.diag(polygamma(1, concentrations)) - polygamma(1, concentrations.sum())
    return block_diag(of_weights, *[block for of_class in blocks for block in of_class])


@pytest.mark.parametrize("name", GIVEN)
def test_mean_field_is_the_covariance_of_q(name):
    fit, problem = fitted(name), PROBLEMS[name]
    found = fit.posterior(method="mean_field").covariance()
    assert_same_covariance(found, covariance_given_classes(problem, fit.predict_proba(problem.X)))


def test_one_class_has_the_covariance_of_the_exact_posterior():
    expected = covariance_given_classes(PROBLEMS["one class"], np.ones((100, 1)))
    expected[0, 0] = 0.0  # The log of a weight of one.
    assert_same_covariance(fitted("one class").posterior_covariance_, expected, 1e-10)


# What must not change them.


@pytest.mark.parametrize("name", ["categories", "weights", "surplus"])
def test_all_solvers_give_the_same(name):
    rows = {"X": PROBLEMS[name].X, "sample_weight": PROBLEMS[name].sample_weight}
    primal, matrix_free = (covariance_by(by, fitted(name), **rows) for by in ("primal", "matrix_free"))
    assert_same_covariance(matrix_free, primal)
    assert_same_covariance(fitted(name).posterior_covariance_, primal, 1e-12)


@pytest.mark.parametrize("name", ["categories", "mixed", "one class"])
def test_error_bars_of_whole_weights_are_those_of_copies(name):
    problem = replace(PROBLEMS[name], sample_weight=None)
    weights = np.random.default_rng(1).integers(0, 4, len(problem.X)).astype(float)
    copies, start = problem.take(np.repeat(np.arange(len(problem.X)), weights.astype(int)))
    weighted = refitted(replace(problem, sample_weight=weights))
    copied = refitted(copies, init_params=start)
    assert_same_covariance(weighted.posterior_covariance_, copied.posterior_covariance_)
    pairs = zip(weighted.posterior_names_, copied.posterior_names_, strict=True)
    assert all(one == other for one, other in pairs)


def test_units_of_a_number_are_those_of_its_error_bars():
    problem, before = PROBLEMS["mixed"], fitted("mixed")
    X = problem.X.assign(height=-1e-5 * problem.X["height"] + 3.0, load=1e6 * problem.X["load"] - 5e6)
    fit = refitted(replace(problem, X=X))
    scale = {"mean[{},height]": -1e-5, "sd[{},height]": 1e-5, "mean[{},load]": 1e6, "sd[{},load]": 1e6}
    scales = {name.format(k): factor for name, factor in scale.items() for k in range(2)}
    factors = np.array([scales.get(name, 1.0) for name in fit.posterior_names_])
    assert np.count_nonzero(factors != 1.0) == 8
    assert_same_covariance(
        fit.posterior_covariance_, np.outer(factors, factors) * before.posterior_covariance_
    )


@pytest.mark.parametrize("name", ["categories", "mixed"])
def test_the_order_of_classes_and_of_rows_does_not_matter(name):
    problem, order = PROBLEMS[name], np.random.default_rng(0).permutation(len(PROBLEMS[name].X))
    shuffled, start = problem.take(order)
    fit = refitted(shuffled, init_params=start[:, ::-1])
    assert_same_covariance(fit.posterior_covariance_, fitted(name).posterior_covariance_)


def test_the_order_of_columns_is_that_of_the_table():
    problem, fit = PROBLEMS["mixed"], fitted("mixed")
    turned = refitted(replace(problem, X=problem.X[problem.X.columns[::-1]]))
    places = [turned.posterior_names_.tolist().index(name) for name in fit.posterior_names_]
    assert places != sorted(places)
    assert_same_covariance(turned.posterior_covariance_[np.ix_(places, places)], fit.posterior_covariance_)


# The sandwich.


@pytest.mark.slow
def test_the_sandwich_is_the_jackknife_by_refits():
    # By small changes of the weights of the different rows; the prior of categories does not depend on rows.
    whole = PROBLEMS["categories"]
    problem = replace(whole, X=whole.X[["smokes", "sport", "retired"]])
    fit = refitted(problem)
    patterns, numbers = np.unique(codes_of(problem.X), axis=0, return_inverse=True)
    start, h = fit.predict_proba(problem.X), 1e-3
    influence = np.empty((len(patterns), len(fit.posterior_names_)))
    for pattern in range(len(patterns)):
        row = np.flatnonzero(numbers == pattern)[0]
        ends = []
        for change in (h, -h):
            weights = np.ones(len(problem.X))
            weights[row] += change
            moved = refitted(replace(problem, sample_weight=weights), init_params=start, tol=1e-14)
            ends.append(moved.posterior_mean_)
        influence[pattern] = (ends[0] - ends[1]) / (2 * h)
    of_rows = influence[numbers] - influence[numbers].mean(axis=0)
    assert_same_covariance(fit.posterior(method="sandwich").covariance(), of_rows.T @ of_rows, 1e-5)


@pytest.mark.parametrize("name", ["categories", "weights"])
def test_the_sandwich_of_groups_is_the_spread_of_their_influence(name):
    problem, fit = PROBLEMS[name], fitted(name)
    groups = np.arange(len(problem.X)) // 4
    rows = {"sample_weight": problem.sample_weight, "groups": groups}
    parts = [fit.influence(problem.X, target=target, **rows) for target in ("log_weights", "tables")]
    influence = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    centred = influence - influence.mean(axis=0)
    n_groups = len(influence)
    expected = n_groups / (n_groups - 1) * centred.T @ centred
    found = fit.posterior(problem.X, method="sandwich", **rows)
    assert_same_covariance(found.covariance(), expected)


@pytest.mark.parametrize("method", ["auto", "bootstrap"])
def test_joined_rows_do_not_know_their_groups(method):
    problem = PROBLEMS["categories"]
    X = problem.X[["smokes", "sport", "retired"]]
    fit, groups = refitted(replace(problem, X=X)), np.arange(len(X)) // 4
    with pytest.raises(ValueError, match=r"If X was left out, pass it, .* latent classes join equal ones"):
        fit.posterior(groups=groups, method=method).covariance()
    assert np.isfinite(fit.posterior(X, groups=groups, method=method, n_draws=5).covariance()).all()


# Attributes and tables.


@pytest.mark.parametrize("name", ["weights", "surplus"])
def test_all_ways_to_an_error_bar_agree(name):
    fit = fitted(name)
    names, std = fit.posterior_names_.tolist(), fit.posterior_std_
    np.testing.assert_allclose(std, np.sqrt(np.diag(fit.posterior_covariance_)), rtol=1e-10)
    summary = fit.posterior(method="lrvb").summary("all", min_count=0)
    assert summary.index.tolist() == names
    np.testing.assert_allclose(summary["sd"], std, rtol=1e-10)
    np.testing.assert_allclose(summary["mean"], fit.posterior_mean_, rtol=1e-12)
    assert (summary["lower"] < summary["mean"]).all() and (summary["mean"] < summary["upper"]).all()
    mean_field = np.sqrt(np.diag(fit.posterior(method="mean_field").covariance()))
    np.testing.assert_allclose(summary["mean_field_sd"], mean_field, rtol=1e-10)
    tables, deviations = fit.tables_, fit.tables_std_
    assert list(tables) == list(deviations) == list(PROBLEMS[name].X)
    for column, table in tables.items():
        assert deviations[column].columns.equals(table.columns)
        for k, value in np.ndindex(table.shape):
            label = table.columns[value]
            kind = label if label in ("mean", "sd", "rate") else "probability"
            end = f"={label}" if kind == "probability" else ""
            place = names.index(f"{kind}[{k},{column}{end}]")
            assert deviations[column].iloc[k, value] == pytest.approx(std[place], rel=1e-10)
            assert table.iloc[k, value] == pytest.approx(fit.posterior_mean_[place], rel=1e-12)
    of_weights = fit.posterior(method="lrvb").summary("weights", min_count=0)
    np.testing.assert_allclose(of_weights["sd"], fit.weights_std_, rtol=1e-10)
    np.testing.assert_allclose(of_weights["mean"], fit.weights_, rtol=1e-12)
    few = fit.posterior(method="lrvb").summary("tables")
    assert len(few) == fit.n_occupied_ * (len(names) - len(fit.weights_)) / len(fit.weights_)


def test_summaries_stay_within_the_range_of_the_parameters():
    summary = fitted("surplus").posterior(method="lrvb").summary(interval=0.999, min_count=0)
    kinds = summary.index.str.split("[").str[0]
    shares = summary[kinds.isin(["weight", "probability"])]
    assert shares["lower"].min() >= 0.0 and shares["upper"].max() <= 1.0
    assert summary[kinds.isin(["sd", "rate"])]["lower"].min() >= 0.0


def test_classes_that_coincide_have_no_error_bars():
    problem = PROBLEMS["mixed"]
    given = {"solver": "coordinate_ascent", "init_params": np.full((100, 2), 0.5)}
    fit = refitted(problem, **given)
    np.testing.assert_allclose(fit.weights_, 0.5)
    with pytest.raises(IndefiniteInformationError, match=r"(?s)saddle.*Components 0 and 1 coincide"):
        fit.posterior(method="lrvb").covariance()
    assert not hasattr(fit, "posterior_covariance_")
    assert np.isfinite(fit.predict_proba(problem.X)).all()
