"""Draws of the posterior of latent classes, the check of linear response, and what is kept of a fit."""

import copy
import json
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from callback_recorder import Recorder
from catalogue import assert_equal_to_rounding, require_arviz, set_sizes
from latent_class import gibbs_references
from latent_class.catalogue import PROBLEMS, fitted, mixture, refitted
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from sklearn_lrvb import LRVBLatentClassMixture, number_of_clusters

GIBBS = json.loads(gibbs_references.PATH.read_text(encoding="utf8"))["tables"]


def flat_draws(draws):
    """Log weights and tables, by class and column, as `posterior_names_` has them: (n_draws, D)."""
    weights, *tables = draws.values()
    by_class = [table[:, k] for k in range(weights.shape[1]) for table in tables]
    return np.concatenate([np.log(weights), *by_class], axis=1)


# By linear response.


@pytest.mark.slow
@pytest.mark.parametrize("name", ["categories", "durations", "mixed", "weights"])
def test_draws_have_the_means_and_covariances_of_linear_response(name):
    fit = fitted(name)
    draws = flat_draws(fit.posterior(random_state=0, method="lrvb").sample(10_000))
    mean, sd, covariance = fit.posterior_mean_, fit.posterior_std_, fit.posterior_covariance_
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / sd, 0.0, atol=0.06)
    units = np.outer(sd, sd)
    np.testing.assert_allclose(np.cov(draws.T) / units, covariance / units, atol=0.1)
    weights = fit.posterior(method="lrvb").summary("weights")
    np.testing.assert_allclose(np.exp(draws[:, :2]).mean(axis=0), weights["mean"], atol=0.003)
    np.testing.assert_allclose(np.exp(draws[:, :2]).std(axis=0), weights["sd"], rtol=0.05)


@pytest.mark.parametrize("name", ["categories", "numbers", "durations", "mixed", "one class"])
def test_draws_do_not_depend_on_the_order_of_rows(name):
    problem, fit = PROBLEMS[name], fitted(name)
    shuffled, start = problem.take(np.random.default_rng(1).permutation(len(problem.X)))
    other = refitted(shuffled, init_params=start)
    draws, others = (one.posterior(random_state=0, method="lrvb").sample(50) for one in (fit, other))
    for column, values in draws.items():
        np.testing.assert_allclose(others[column], values, rtol=1e-6, err_msg=column)


@pytest.mark.slow
def test_draws_of_sparse_categories_are_numbers():
    # The classes are alike and probabilities underflow: draws are put into the order of the fit.
    rng = np.random.default_rng(0)
    codes = rng.choice(5, p=[0.6, 0.3, 0.06, 0.03, 0.01], size=(55, 3))
    X = pd.DataFrame(np.array(list("abcde"), dtype=object)[codes]).assign(x=rng.normal(size=55))
    X.columns = ["a", "b", "c", "x"]
    given = {"n_init": 1, "moves": "merge", "random_state": 0, "category_concentration_prior": 0.003}
    fit = LRVBLatentClassMixture(4, degrees_of_freedom_prior=0.05, **given).fit(X)
    draws = fit.posterior(X, method="exact", random_state=0).sample(500)
    assert not any(np.isnan(values).any() for values in draws.values())
    assert all(np.allclose(draws[name].sum(axis=2), 1.0) for name in "abc")
    assert (draws["a"] == 0.0).any()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:(?s).*Columns of X with one value")
def test_one_class_of_constant_columns_is_known():
    X = pd.DataFrame({"colour": ["red"] * 10, "shape": ["round"] * 10})
    fit = LRVBLatentClassMixture(1, random_state=0).fit(X)
    summary = fit.posterior().summary()
    assert (summary["sd"] == 0.0).all()
    for name in ("weight[0]", "probability[0,colour=red]"):
        assert (summary.loc[name, ["mean", "lower", "upper"]] == 1.0).all()
    for method in ("lrvb", "exact"):
        draws = fit.posterior(X, method=method, random_state=0).sample(3)
        assert all((values == 1.0).all() for values in draws.values())
    assert fit.posterior_check(X, random_state=0).verdict.startswith("Linear response is good")
    assert fit.partition_posterior(X, n_draws=5, random_state=0).labels.tolist() == [0] * 10
    found = number_of_clusters(fit, X, n_components=[1, 2], random_state=0)
    assert abs(found.log_evidence[0]) < 1e-9


def test_draws_are_tables_of_the_columns():
    fit = fitted("mixed")
    draws = fit.posterior(random_state=3, method="lrvb").sample(7)
    shapes = {name: (7, *table.shape) for name, table in fit.tables_.items()}
    assert {name: values.shape for name, values in draws.items()} == {"weights": (7, 2), **shapes}
    for name in ("weights", "sport", "smokes"):
        np.testing.assert_allclose(draws[name].sum(axis=-1), 1.0, rtol=1e-12)
    again = fit.posterior(random_state=3, method="lrvb").sample(7)
    assert all(np.array_equal(values, again[name]) for name, values in draws.items())


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lrvb", "exact"])
def test_draws_of_one_class_are_those_of_the_closed_form(method):
    fit, X = fitted("one class"), PROBLEMS["one class"].X
    draws = fit.posterior(random_state=0, method=method).sample(2000)
    np.testing.assert_array_equal(draws["weights"], 1.0)
    number = 1.0 + X["sport"].value_counts().sort_index()
    visits, height = X["visits"].dropna(), X["height"].dropna()
    n, kappa = len(height), 0.1 + len(height)
    shape, rate = 1.0 + 0.5 * n, 0.5 * height.var(ddof=0) * (1 + n)
    sport, rates, (means, sds) = draws["sport"][:, 0].T, draws["visits"][:, 0, 0], draws["height"][:, 0].T
    pairs = [
        *((drawn, stats.beta(a, number.sum() - a)) for drawn, a in zip(sport, number, strict=True)),
        (rates, stats.gamma(1.0 + visits.sum(), scale=1.0 / (1.0 / visits.mean() + len(visits)))),
        (means, stats.t(2 * shape, height.mean(), np.sqrt(rate / shape / kappa))),
        (sds**-2, stats.gamma(shape, scale=1.0 / rate)),
    ]
    for drawn, distribution in pairs:
        assert stats.kstest(drawn, distribution.cdf).pvalue > 1e-3


# Exact.


def gibbs_of(name):
    """Standard deviations by long chains: of the weights (K,), and of the tables, flat as in `flat_draws`."""
    sd = GIBBS[name]["sd"]
    tables = [np.array(values) for column, values in sd.items() if column != "weights"]
    n_components = len(sd["weights"])
    return np.array(sd["weights"]), np.concatenate([t[k] for k in range(n_components) for t in tables])


def error(found, expected):
    """Root mean square of the relative error."""
    return np.sqrt(np.mean((np.asarray(found) / expected - 1.0) ** 2))


def test_long_chains_are_long_enough():
    # Standard deviations are then known to a hundredth.
    assert min(reference["least_effective_size"] for reference in GIBBS.values()) > 5000


@pytest.mark.parametrize(
    "name", ["carcinoma", *(pytest.param(name, marks=pytest.mark.slow) for name in ("values", "gss82_3"))]
)
def test_exact_error_bars_are_those_of_long_chains(name):
    fit, _ = gibbs_references.fit(name)
    of_weights, of_tables = gibbs_of(name)
    summary = fit.posterior(method="exact", random_state=0).summary(["weights", "tables"])
    assert summary.attrs["note"].startswith("Exact posterior:")  # The chains have converged.
    assert error(summary["sd"], np.concatenate([of_weights, of_tables])) < 0.05
    # The draws that were kept answer other questions.
    covariance = fit.posterior(method="exact").covariance("tables")
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), summary["sd"][len(of_weights) :], rtol=1e-9)
    draws = fit.posterior(method="exact").sample(100)
    assert {name: one.shape[1:] for name, one in draws.items() if name != "weights"} == {
        name: table.shape for name, table in fit.tables_.items()
    }


# The check.


@pytest.mark.slow
def test_the_check_finds_where_linear_response_is_wrong():
    carcinoma, table = gibbs_references.fit("carcinoma")
    check = carcinoma.posterior_check(table, random_state=0)
    assert (check.state, check.recommendation) == ("wrong", "exact")
    np.testing.assert_array_equal(check.names, carcinoma.posterior_names_)
    of_tables = carcinoma.posterior(method="lrvb").summary("tables")["sd"]
    assert error(of_tables, gibbs_of("carcinoma")[1]) > 0.2  # It is wrong.
    gss82, table = gibbs_references.fit("gss82_3")
    assert gss82.posterior_check(table, random_state=0).state == "wrong"


@pytest.mark.slow
def test_the_check_finds_where_linear_response_is_good():
    fit, table = gibbs_references.fit("penguins_like")
    of_weights, of_tables = gibbs_of("penguins_like")
    assert fit.posterior_check(table, random_state=0).state == "good"
    summary = fit.posterior().summary(["weights", "tables"])  # By itself it takes linear response.
    assert "Linear response is good" in summary.attrs["note"]
    assert error(summary["sd"][:3], of_weights) < 0.05
    assert error(summary["sd"][3:], of_tables) < 0.05
    mean = [np.array(values) for column, values in GIBBS["penguins_like"]["mean"].items()]
    np.testing.assert_allclose((summary["mean"][:3] - mean[0]) / of_weights, 0.0, atol=0.1)
    means = np.concatenate([table[k] for k in range(3) for table in mean[1:]])
    np.testing.assert_allclose((summary["mean"][3:] - means) / of_tables, 0.0, atol=0.2)


def test_the_evidence_of_one_class_is_the_closed_form():
    # The bound of one class is the evidence (test_fit_identities).
    fit, problem = fitted("one class"), PROBLEMS["one class"]
    check = fit.posterior_check(problem.X, n_draws=200, random_state=0)
    assert check.reliable and check.state == "good"
    for found in (check.log_evidence, check.log_evidence_bound, fit.log_evidence_):
        assert found == pytest.approx(fit.lower_bound_, rel=1e-11)


def test_the_check_needs_the_rows_of_the_fit():
    fit, problem = fitted("mixed"), PROBLEMS["mixed"]
    with pytest.raises(ValueError, match="pass X"):
        fit.posterior_check(None)
    with pytest.raises(ValueError, match="counts 49 rows"):
        fit.posterior_check(problem.X.iloc[:50])
    with pytest.raises(ValueError, match="100 or more"):
        fit.posterior_check(problem.X, n_draws=5)


# ArviZ.


def log_densities(fit, draws, X):
    """Log likelihood of rows under draws, by scipy: (n_draws, n)."""
    total = np.log(draws["weights"])[:, :, None] + np.zeros(len(X))
    for name, table in fit.tables_.items():
        kind, y = fit.columns_.loc[name, "kind"], X[name]
        parameters = np.moveaxis(draws[name], -1, 0)[..., None]
        if kind == "numeric":
            values = stats.norm.logpdf(y.to_numpy(), *parameters)
        elif kind == "count":
            values = stats.poisson.logpmf(y.fillna(0.0).to_numpy(), parameters[0])
        else:
            place = table.columns.get_indexer(y)
            values = np.log(np.moveaxis(draws[name], -1, 0)[place]).transpose(1, 2, 0)
        total += np.where(y.notna(), values, 0.0)
    return logsumexp(total, axis=1)


def test_arviz_gets_draws_by_column_and_log_likelihoods():
    require_arviz()
    fit, problem = fitted("weights"), PROBLEMS["weights"]
    given = {"random_state": 3, "method": "lrvb"}
    data = fit.posterior(problem.X, sample_weight=problem.sample_weight, **given).to_arviz(6)
    draws = fit.posterior(**given).sample(6)
    for name, values in draws.items():
        assert data.posterior[name].dims[:3] == ("chain", "draw", "component")
        np.testing.assert_array_equal(data.posterior[name].to_numpy()[0], values)
    np.testing.assert_array_equal(
        data.posterior["sport"].sel(component=1, sport_value="none").to_numpy()[0],
        draws["sport"][:, 1, fit.tables_["sport"].columns.get_loc("none")],
    )
    counted = np.flatnonzero((problem.sample_weight > 0) & problem.X.notna().any(axis=1))
    np.testing.assert_array_equal(data.log_likelihood["row"], counted)
    expected = problem.sample_weight * log_densities(fit, draws, problem.X)
    np.testing.assert_allclose(data.log_likelihood["X"].to_numpy()[0], expected[:, counted], rtol=1e-9)
    np.testing.assert_array_equal(data.constant_data["sample_weight"], problem.sample_weight[counted])
    assert not hasattr(fit.posterior(**given).to_arviz(2), "log_likelihood")


@pytest.mark.slow
def test_columns_that_are_ignored_change_no_answer():
    require_arviz()
    problem, expected = PROBLEMS["mixed"], fitted("mixed")
    X = problem.X.copy()
    X.insert(1, "id", np.arange(100.0))
    fit = mixture(problem, columns={**problem.columns, "id": "ignore"}).fit(X)
    np.testing.assert_array_equal(fit.posterior_names_, expected.posterior_names_)
    assert_equal_to_rounding(fit.influence(X), expected.influence(problem.X))
    assert_equal_to_rounding(fit.loo_score_samples(X), expected.loo_score_samples(problem.X))
    observed = fit.posterior(X, random_state=0, method="lrvb").to_arviz(2).observed_data["X"]
    assert observed["feature"].to_numpy().tolist() == list(problem.X)


# Copies, and callbacks.


def test_copies_and_pickles_keep_the_error_bars(tmp_path):
    problem, fit = PROBLEMS["mixed"], fitted("mixed")
    joblib.dump(fit, tmp_path / "fit.joblib")
    mapped = joblib.load(tmp_path / "fit.joblib", mmap_mode="r")
    for twin in (pickle.loads(pickle.dumps(fit)), copy.deepcopy(fit), copy.copy(fit), mapped):
        assert_equal_to_rounding(twin.posterior_covariance_, fit.posterior_covariance_)
        assert_equal_to_rounding(twin.influence(problem.X), fit.influence(problem.X))
        assert_equal_to_rounding(twin.leverage(problem.X), fit.leverage(problem.X))
        check, expected = (one.posterior_check(problem.X, random_state=0) for one in (twin, fit))
        np.testing.assert_allclose(check.mean_shift, expected.mean_shift, rtol=1e-9, atol=1e-9)
        for name, table in fit.tables_std_.items():
            np.testing.assert_allclose(twin.tables_std_[name], table, rtol=1e-10)


def test_a_pickle_takes_the_rows_again(monkeypatch):
    problem = PROBLEMS["categories"]
    fit = refitted(problem, solver="coordinate_ascent", max_iter=5000)  # It needs no matrix on its way.
    set_sizes(monkeypatch, pickled_bytes=0)
    twin = pickle.loads(pickle.dumps(fit))
    with pytest.raises(ValueError, match="are not part of a pickled"):
        twin.posterior(method="lrvb").covariance()
    with pytest.raises(ValueError, match="pass X"):
        twin.posterior(method="exact").summary()
    found = twin.posterior(problem.X, method="lrvb").covariance()
    assert_equal_to_rounding(found, fit.posterior_covariance_)
    assert_equal_to_rounding(twin.posterior_covariance_, found)


@pytest.mark.slow
def test_error_bars_do_not_need_the_batches_of_the_fit():
    problem, parts = PROBLEMS["mixed"], [PROBLEMS["mixed"].X.iloc[:40], PROBLEMS["mixed"].X.iloc[40:]]
    given = {"init_params": "kmeans", "n_init": 1}

    def batches():
        yield from parts

    fit, whole = mixture(problem, **given).fit(batches), refitted(problem, **given)
    parts.clear()  # As files that are closed.
    covariance, expected = (one.posterior(method="lrvb").covariance() for one in (fit, whole))
    sd = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(covariance / np.outer(sd, sd), expected / np.outer(sd, sd), atol=1e-8)


def test_replaced_arrays_have_no_error_bars():
    fit = copy.copy(fitted("mixed"))
    fit.weights_ = np.array([0.5, 0.5])
    with pytest.raises(ValueError, match="Changed since the fit: weights_"):
        fit.posterior().summary()
    twin = pickle.loads(pickle.dumps(fit))
    with pytest.raises(ValueError, match="Changed since the fit: weights_"):
        twin.posterior().summary()


callbacks = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on.")


def test_callbacks_are_told_of_a_fit():
    problem, recorder = PROBLEMS["mixed"], Recorder()
    given = {"init_params": "kmeans", "n_init": 3}
    fit = mixture(problem, **given).set_callbacks(recorder).fit(problem.X)
    recorder.assert_balanced()
    assert (recorder.count("end", "fit"), recorder.count("end", "initialization")) == (1, 3)
    paths = [step.lower_bounds_ for task, step in recorder.fitted if task == "iteration"]
    ends = [path[-1] for path in paths if path == fit.lower_bounds_[: len(path)]]
    assert ends == fit.lower_bounds_
    whole = recorder.fitted[-1][1]
    assert_equal_to_rounding(whole.posterior_covariance_, fit.posterior_covariance_)
    assert fit.lower_bounds_ == refitted(problem, **given).lower_bounds_


def test_a_callback_ends_a_fit():
    problem = PROBLEMS["mixed"]
    recorder = Recorder(lambda context: (context.task_name, context.task_id) == ("iteration", 2))
    with pytest.warns(ConvergenceWarning, match="A callback stopped the best start"):
        fit = mixture(problem).set_callbacks(recorder).fit(problem.X)
    recorder.assert_balanced()
    assert (fit.n_iter_, fit.converged_) == (3, False)
    assert fit.lower_bounds_ == fitted("mixed").lower_bounds_[:3]


QUESTIONS = {
    "loo_score_samples": lambda fit, X: fit.loo_score_samples(X),
    "leverage": lambda fit, X: fit.leverage(X),
    "predict_proba": lambda fit, X: fit.posterior(method="lrvb").predict_proba(X)[1],
    "influence": lambda fit, X: fit.influence(X),
    "sample": lambda fit, X: fit.posterior(random_state=0, method="lrvb").sample(300)["sport"],
    "posterior_check": lambda fit, X: (
        fit.posterior_check(X, sample_weight=None, n_draws=200, random_state=0).log_evidence
    ),
    "bootstrap": lambda fit, X: fit.posterior(
        X, method="bootstrap", n_draws=4, random_state=0, groups=np.arange(100) // 5
    ).covariance("weights"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_callbacks_are_told_of_long_questions(name, monkeypatch):
    set_sizes(monkeypatch, most_rows=16, least_rows=8, batch_bytes=2**14)
    X, recorder = PROBLEMS["mixed"].X, Recorder()
    fit = copy.copy(fitted("mixed"))
    alone = QUESTIONS[name](fit, X)
    np.testing.assert_array_equal(QUESTIONS[name](fit.set_callbacks(recorder), X), alone)
    recorder.assert_balanced()
    assert recorder.events[1] == ("begin", name, 0)
    assert recorder.count("end", "block") > 2
