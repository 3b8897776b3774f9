"""Fits to incomplete rows: densities, error bars and influence are those of the values seen."""

import pickle

import numpy as np
import pandas as pd
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    MOST_MODELS,
    covariance_by,
    few_of,
    formed_information,
    mixture,
    model_id,
    models_in_turn,
    newton_decrement,
    peak_memory,
    posterior_of,
    rows_of,
    set_sizes,
    solvers_of,
    three_blobs,
    type_of,
    use_information,
    values_of,
)
from covariance_types import TYPES
from incomplete_rows import fitted, held_prior, incomplete, refitted
from scipy.stats import invwishart, multivariate_normal, multivariate_t
from sklearn.base import clone

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.information.missing_information import (
    by_pairs,
    from_own_coordinates,
    missing_information,
    missing_information_product,
)

some_models = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
CONJUGATE = [model for model in MOST_MODELS if model["prior"] == "fixed"]
HYPERPARAMETERS = (
    "mean_precision_prior",
    "degrees_of_freedom_prior",
    "mean_prior",
    "weight_concentration_prior",
)


def log_densities(estimator, X):
    """rho by marginal densities of what is seen, (n, L)."""
    posterior = posterior_of(estimator)
    n_components, n_features = estimator.means_.shape
    precisions = TYPES[estimator.covariance_type].dense(estimator.precisions_, n_components, n_features)
    log_determinants = posterior.structure.layout.per_component(posterior.expectations.log_det_precisions)
    found = np.empty((len(X), n_components))
    for k, (mean, precision) in enumerate(zip(estimator.means_, precisions, strict=True)):
        constant = posterior.expectations.log_weights[k] - 0.5 * n_features / posterior.mean_precision[k]
        constant += 0.5 * (log_determinants[k] - np.linalg.slogdet(precision)[1])
        covariance = np.linalg.inv(precision)
        for n, row in enumerate(X):
            seen = np.flatnonzero(~np.isnan(row))
            noise = 0.5 * estimator.reg_covar * precision[seen, seen].sum()
            of_seen = mean[seen], covariance[np.ix_(seen, seen)]
            log_density = constant + multivariate_normal.logpdf(row[seen], *of_seen) - noise
            if posterior.tails is not None:
                nu, mode = posterior.tails.nu[k], multivariate_normal.logpdf(mean[seen], *of_seen)
                distance = 2 * (mode - (log_density - constant)) + n_features / posterior.mean_precision[k]
                # Student's t in place of exp(-distance/2)
                log_density += 0.5 * distance - mode + multivariate_t.logpdf(mean[seen], *of_seen, df=nu)
                log_density -= 0.5 * (nu + len(seen)) * np.log1p(distance / nu)
            found[n, k] = log_density
    if estimator.noise:
        found = np.column_stack([found, log_densities_of_noise(estimator, X)])
    return found


def log_densities_of_noise(estimator, X):
    """rho of noise: its volume in some features is measured in units of the prior's covariance."""
    posterior = posterior_of(estimator)
    expected, covariance = posterior.expectations.log_weights[-1], estimator.covariance_prior_
    if posterior.prior.learned is not None:
        covariance = posterior.prior.learned.covariance
    matrix = covariance if np.ndim(covariance) == 2 else np.eye(X.shape[1]) * covariance
    whole = estimator.noise_log_density_ + 0.5 * np.linalg.slogdet(matrix)[1]
    seen = [np.flatnonzero(~np.isnan(row)) for row in X]
    roots = [0.5 * np.linalg.slogdet(matrix[np.ix_(some, some)])[1] for some in seen]
    return [expected + len(some) / X.shape[1] * whole - root for some, root in zip(seen, roots, strict=True)]


@some_models
def test_scores_are_marginal_densities_of_what_is_seen(model):
    estimator = fitted(model)
    scores, some = estimator.score_samples(incomplete()), slice(None, None, 3)
    expected = log_densities(estimator, incomplete()[some])
    np.testing.assert_allclose(scores[some], np.logaddexp.reduce(expected, axis=1), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        estimator.predict_proba(incomplete())[some],
        np.exp(expected - scores[some, None]),
        rtol=1e-8,
        atol=1e-11,
    )
    divergence = posterior_of(estimator).divergences.total
    np.testing.assert_allclose(estimator.lower_bound_, scores.sum() - divergence, rtol=1e-11)


@pytest.mark.slow
@some_models
def test_the_bound_never_falls_to_an_optimum(model):
    estimator = fitted(model)
    assert estimator.converged_
    assert np.all(np.diff(estimator.lower_bounds_) >= -1e-9)
    assert newton_decrement(estimator) < 1e-6
    near = estimator.predict_proba(
        incomplete()
    )  # With sticks, another order of the components is another optimum.
    near = 0.8 * near + 0.2 / near.shape[1]
    model = {**model, "solver": "coordinate_ascent", "moves": None, "init_params": near}
    iterations = mixture(model, 2).fit(incomplete())
    np.testing.assert_allclose(iterations.lower_bound_, estimator.lower_bound_, rtol=1e-9)
    assert np.all(np.diff(iterations.lower_bounds_) >= -1e-9)


def has_dual_solver(model):
    """Whether a mixture has one for rows with missing values."""
    has_numbers = not type_of(model).is_matrix and model.get("prior", "learned") != "learned"
    return has_numbers and "dual" in solvers_of(model)


@pytest.mark.parametrize("model", MODELS[::5], ids=model_id)
def test_all_solvers_give_the_same_covariance(model):
    estimator = fitted(model)
    solvers = ["primal", "matrix_free"]
    if has_dual_solver(model):
        solvers.append("dual")
    expected, *others = (covariance_by(solver, estimator, X=incomplete()) for solver in solvers)
    scale = np.sqrt(np.diag(expected))
    for covariance in others:
        assert np.abs((covariance - expected) / np.outer(scale, scale)).max() < 1e-9


def answers(estimator):
    """What else follows from the information, by name."""
    X = incomplete()
    has_prior = estimator.prior != "flat"
    return {
        **(estimator.prior_sensitivity("means") if has_prior else {}),
        "influence": estimator.influence(X, target="means"),
        "leverage": estimator.leverage(X),
        "left out": estimator.loo_score_samples(X),
        "imputed": estimator.impute(X, return_std=True)[1],
        "lost": estimator.missing_information(X).to_numpy(),
        "evidence": estimator.log_evidence_,
        "draws": estimator.posterior(random_state=0, method="lrvb").sample(5)["means"],
        "copy": pickle.loads(pickle.dumps(estimator)).posterior_covariance_,
    }


@pytest.mark.slow
@models_in_turn(
    list(filter(has_dual_solver, MODELS[::5])),
    "n",
    [2, 2, 3],
)
def test_the_dual_solver_gives_the_same_answers(model, n, monkeypatch):
    """Where precisions are numbers, missing values take a diagonal from the complete information."""
    expected, found = [], []
    for solver, kept in (("primal", expected), ("dual", found)):
        with monkeypatch.context() as patch:
            use_information(solver, patch)
            set_sizes(patch, rows_of_refits=0)
            estimator = mixture(model, n).fit(incomplete())
            kept.append(answers(estimator))
            assert formed_information(estimator).name == solver
    for name, values in expected[0].items():
        atol = 1e-7 * np.nanmax(np.abs(values))
        np.testing.assert_allclose(found[0][name], values, atol=atol, err_msg=name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["primal", "dual", "matrix_free"])
def test_a_column_that_a_component_never_shows_has_no_error_bar_under_the_flat_prior(solver):
    X = np.random.default_rng(0).normal(size=(80, 3)) + np.repeat([[0.0], [30.0]], 40, axis=0)
    X[:40, 1] = np.nan
    estimator = mixture({"covariance_type": "diag", "prior": "flat", "init_params": "kmeans"}, 2, max_iter=3)
    estimator.fit(X)
    with pytest.raises(ValueError, match="is no strict local optimum"):
        covariance_by(solver, estimator, X=X)


@pytest.mark.all_cases
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("missing_values", [True, False])
@every_type
def test_the_matrix_is_that_of_the_products(covariance_type, missing_values):
    """Also where many rows share a pattern, so that each is projected by a product of its own."""
    X = np.tile(incomplete(60), (8, 1)) + np.random.default_rng(0).normal(size=(480, 3))
    estimator = mixture({"covariance_type": covariance_type, "reg_covar": 0.05}, 3, max_iter=5, tol=1e3).fit(
        X
    )
    posterior = posterior_of(estimator)
    rows = rows_of(estimator, X, np.random.default_rng(0).uniform(0.5, 2.0, 480))
    for way in [from_own_coordinates] + [by_pairs] * (covariance_type == "full"):
        matrix = missing_information(rows, posterior, [way], missing_values)
        products = missing_information_product(rows, posterior, np.eye(len(matrix)), missing_values)
        np.testing.assert_allclose(matrix, products, atol=1e-10 * np.abs(matrix).max())


TARGETS = ("weights", "means", "precisions", "covariances")


def values_of_all(estimator):
    return [values_of(estimator, target) for target in TARGETS]


# Whether a value of the row is missing, and what is perturbed.
PERTURBATIONS = [(kind, perturb) for kind in ("complete", "incomplete") for perturb in ("weight", "location")]


@pytest.mark.all_cases
@models_in_turn(few_of(MODELS), "perturbation", PERTURBATIONS)
def test_influence_is_the_derivative_of_refits(model, perturbation):
    kind, perturb = perturbation
    estimator, X, step = fitted(model), incomplete(), 1e-4
    row = np.flatnonzero(np.isnan(X).any(axis=1) == (kind == "incomplete"))[5]
    seen = np.flatnonzero(~np.isnan(X[row]))[0]
    weights, moved = np.ones((2, len(X))), np.stack([X, X])
    if perturb == "weight":
        weights[:, row] += [step, -step]
    else:
        moved[:, row, seen] += [step, -step]
    up, down = (values_of_all(refitted(estimator, *changed)) for changed in zip(moved, weights, strict=True))
    for target, above, below in zip(TARGETS, up, down, strict=True):
        influence = estimator.influence(X, target=target, perturb=perturb)[row]
        if perturb == "location":
            assert np.array_equal(np.isnan(influence), np.broadcast_to(np.isnan(X[row]), influence.shape))
            influence = influence[..., seen]
        differences = (above - below) / (2 * step)
        np.testing.assert_allclose(influence, differences, atol=1e-6 * np.abs(influence).max())


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_influence_of_few_rows_is_that_of_many(covariance_type):
    estimator, rows = fitted({"covariance_type": covariance_type}), incomplete()
    expected = estimator.influence(rows, perturb="weight")
    for few in (rows[[7]], rows[5:8]):
        start = 7 if len(few) == 1 else 5
        found = estimator.influence(few, perturb="weight")
        np.testing.assert_allclose(found, expected[start : start + len(few)], rtol=1e-7, atol=1e-10)


@models_in_turn(few_of(CONJUGATE), "name", HYPERPARAMETERS)
def test_prior_sensitivity_is_the_derivative_of_refits(model, name):
    estimator, step = fitted(model), 1e-4
    value = np.asarray(getattr(estimator, f"{name}_"), dtype=float)
    direction = np.ones_like(value)
    up, down = (refitted(estimator, **{name: value + sign * step * direction}).means_ for sign in (1.0, -1.0))
    derivative = estimator.prior_sensitivity("means")[name]
    derivative = derivative.sum(axis=-1) if value.ndim else derivative
    np.testing.assert_allclose(derivative, (up - down) / (2 * step), atol=1e-6 * np.abs(derivative).max())


@models_in_turn(few_of(MODELS), "row", [3, 20, 77, 40])
def test_leaving_a_row_out_is_close_to_a_refit(model, row, monkeypatch):
    # only the rows that move the fit the farthest are refitted
    set_sizes(monkeypatch, rows_of_refits=0)
    estimator, X = fitted(model), incomplete()
    refit = refitted(estimator, sample_weight=np.where(np.arange(len(X)) == row, 0.0, 1.0))
    exact = refit.score_samples(X[[row]])[0]
    change = exact - estimator.score_samples(X[[row]])[0]
    assert abs(estimator.loo_score_samples(X)[row] - exact) < 0.06 * abs(change) + 1e-4


@some_models
def test_moving_a_whole_column_moves_the_means_with_it(model):
    estimator, X = fitted(model), incomplete()
    if estimator.prior != "flat":
        estimator = refitted(estimator, mean_precision_prior=1e-7)
    influence = np.nansum(estimator.influence(X, target="means"), axis=0)
    np.testing.assert_allclose(influence, np.broadcast_to(np.eye(3), influence.shape), atol=1e-5)


@models_in_turn(few_of(MODELS), "unit", 2 * [1e-6, 1e6])
def test_units_and_origins_do_not_matter(model, unit):
    estimator, X = fitted(model), incomplete()
    units = np.full(3, unit) if type_of(model).n_axes == 0 else np.array([1.0, unit, 3.0])
    if model["reg_covar"]:
        units = np.ones(3)  # Noise is in the units of X.
    start = estimator.predict_proba(X)  # k-means looks at the largest column.
    other = clone(estimator).set_params(init_params=start / start.sum(axis=1, keepdims=True))
    other.fit(X * units + [0.0, 5.0, -2.0])
    np.testing.assert_allclose(
        (other.means_ - [0.0, 5.0, -2.0]) / units, estimator.means_, rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(other.means_std_ / units, estimator.means_std_, rtol=1e-6)
    jacobian = np.count_nonzero(~np.isnan(X), axis=0) @ np.log(units)
    if model["prior"] == "fixed":
        np.testing.assert_allclose(other.lower_bound_ + jacobian, estimator.lower_bound_, rtol=1e-7)


@every_type
def test_weights_count_rows_and_the_order_of_rows_does_not_matter(covariance_type):
    X, rng = incomplete(), np.random.default_rng(0)
    weights = rng.integers(0, 3, len(X))
    start = fitted({"covariance_type": covariance_type}).predict_proba(X)
    repeated, order = np.repeat(np.arange(len(X)), weights), rng.permutation(len(X))
    model = mixture({"covariance_type": covariance_type}, 2)
    counted = clone(model).set_params(init_params=start).fit(X, sample_weight=weights)
    for index in (repeated, rng.permutation(repeated)):
        other = clone(model).set_params(init_params=start[index]).fit(X[index])
        np.testing.assert_allclose(other.lower_bound_, counted.lower_bound_, rtol=1e-9)
        np.testing.assert_allclose(other.posterior_std_, counted.posterior_std_, rtol=1e-6)
    np.testing.assert_allclose(counted.predict_proba(X)[order], counted.predict_proba(X[order]), rtol=1e-9)


@every_type
def test_a_row_with_a_missing_value_that_hardly_counts_changes_nothing(covariance_type):
    """The code for complete rows and that for rows with missing values agree."""
    X = three_blobs(120, 3)
    start = np.eye(3)[np.arange(120) % 3]
    model = mixture({"covariance_type": covariance_type, "init_params": start}, 3)
    complete = model.fit(X)
    extra = np.concatenate([X, [[0.3, np.nan, 0.1]]])
    prior = held_prior(complete)
    other = clone(model).set_params(init_params=np.concatenate([start, [[0.2, 0.3, 0.5]]]), **prior)
    other.fit(extra, sample_weight=np.concatenate([np.ones(120), [1e-11]]))
    np.testing.assert_allclose(other.lower_bound_, complete.lower_bound_, rtol=1e-9)
    np.testing.assert_allclose(other.posterior_std_, complete.posterior_std_, rtol=1e-6)
    np.testing.assert_allclose(other.log_evidence_, complete.log_evidence_, rtol=1e-8)


# Exact special cases of one component.


@pytest.mark.parametrize("factorization", ["joint"])
def test_one_component_of_independent_features_is_exact(factorization):
    """Every feature has the conjugate posterior of its own values."""
    X = incomplete(40)
    prior = {"mean_prior": np.zeros(3), "covariance_prior": np.ones(3), "degrees_of_freedom_prior": 5.0}
    model = {"covariance_type": "diag", "reg_covar": 0.0, "prior": "fixed"}
    estimator = mixture({**model, "factorization": factorization}, 1, **prior).fit(X)
    for p, column in enumerate(X.T):
        values = column[~np.isnan(column)]
        alone = mixture(
            model,
            1,
            mean_prior=[0.0],
            covariance_prior=[1.0],
            degrees_of_freedom_prior=5.0,
        ).fit(values[:, None])
        np.testing.assert_allclose(estimator.means_[0, p], alone.means_[0, 0], rtol=1e-7)
        np.testing.assert_allclose(estimator.precisions_[0, p], alone.precisions_[0, 0], rtol=1e-7)
        np.testing.assert_allclose(estimator.precisions_std_[0, p], alone.precisions_std_[0, 0], rtol=1e-6)


@pytest.mark.parametrize("n_rows", [12, 40])
def test_evidence_of_monotone_missing_values(n_rows):
    """Rows that show the first feature, of which some show the second: the evidence is a product of three."""
    X = three_blobs(n_rows, 2)
    shows_both = np.arange(n_rows) % 3 > 0
    incomplete_rows = np.where(shows_both[:, None] | [True, False], X, np.nan)
    covariance, mean = np.array([[2.0, 0.4], [0.4, 1.0]]), np.array([0.1, -0.2])

    def evidence(rows, features):
        one = LRVBGaussianMixture(
            prior="fixed",
            mean_prior=mean[:features],
            covariance_prior=covariance[:features, :features],
            degrees_of_freedom_prior=5.0 - (2 - features),
            weight_concentration_prior_type="dirichlet_distribution",
            reg_covar=0.0,
            max_iter=2000,
            tol=1e-12,
        )
        return one.fit(rows)

    exact = evidence(X[:, :1], 1).lower_bound_ + evidence(X[shows_both], 2).lower_bound_
    exact -= evidence(X[shows_both, :1], 1).lower_bound_
    estimator = evidence(incomplete_rows, 2)
    assert 0.5 < exact - estimator.lower_bound_ < 1.5
    assert abs(exact - estimator.log_evidence_) < 0.01
    check = estimator.posterior_check(incomplete_rows, n_draws=4000, random_state=0)
    assert abs(check.log_evidence - exact) < 4 * check.log_evidence_error + 1e-3


def test_scale_of_the_inverse_wishart_marginal():
    """The identity that the test above rests on: a block of an inverse Wishart matrix is one."""
    covariance = np.array([[2.0, 0.4], [0.4, 1.0]])
    blocks = invwishart(5.0, covariance).rvs(20000, random_state=0)[:, 0, 0]
    assert abs(blocks.mean() - 2.0 / (5.0 - 1 - 2)) < 4 * blocks.std() / np.sqrt(20000)


# Missing information.


@models_in_turn(few_of(MODELS), "target", [*TARGETS, "log_weights"])
def test_shares_of_missing_information(model, target):
    estimator, X = fitted(model), incomplete()
    shares = estimator.missing_information(X, target=target)
    assert list(shares.columns) == ["missing", "to_labels", "to_holes"]
    np.testing.assert_allclose(shares["to_labels"] + shares["to_holes"], shares["missing"], atol=1e-12)
    assert shares["to_holes"].between(-1e-9, 1.0).all()
    assert shares["to_labels"].between(-1e-9, 1.0).all()
    complete = mixture(model, 2).fit(three_blobs(120, 3))
    of_labels = complete.missing_information(three_blobs(120, 3), target=target)
    np.testing.assert_allclose(of_labels["to_holes"], 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="No component has"):
        estimator.missing_information(X, min_count=1e6)


@every_type
def test_one_component_loses_nothing_to_labels(covariance_type):
    estimator = mixture({"covariance_type": covariance_type}, 1).fit(incomplete())
    shares = estimator.missing_information(incomplete(), target="means")
    assert np.abs(shares["to_labels"]).max() < 1e-9
    is_missing = np.isnan(incomplete()).mean(axis=0)
    if (
        TYPES[covariance_type].n_axes == 1
    ):  # Up to the tails, the share of the rows that do not show the feature.
        seen = 120 * (1.0 - is_missing)
        np.testing.assert_allclose(shares["missing"], 1.0 - (1.0 + seen) / 121.0, rtol=0.03)
    else:
        assert np.all(shares["missing"] < 1.01 * is_missing.max())


# Inputs.


@pytest.mark.slow
def test_tables_of_all_kinds_give_the_same_fit():
    X = incomplete()
    expected = mixture({}, 2).fit(X)
    frame = pd.DataFrame(X, columns=list("abc"))
    for table in (frame, frame.astype("Float64"), np.asfortranarray(X), [X[:50], X[50:]]):
        estimator = mixture({}, 2).fit(table)
        np.testing.assert_allclose(estimator.means_, expected.means_, rtol=1e-8)
        np.testing.assert_allclose(
            estimator.predict_proba(table), expected.predict_proba(X), rtol=1e-6, atol=1e-9
        )
    single = mixture({}, 2).fit(X.astype(np.float32))
    np.testing.assert_allclose(single.means_, expected.means_, atol=1e-4)


def test_copies_and_pickles_answer_as_the_fit_does():
    estimator = fitted({"covariance_type": "full"})
    copy = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(copy.score_samples(incomplete()), estimator.score_samples(incomplete()))
    np.testing.assert_allclose(copy.means_std_, estimator.means_std_, rtol=1e-9)
    imputed, std = copy.impute(incomplete(), return_std=True)
    expected, expected_std = estimator.impute(incomplete(), return_std=True)
    np.testing.assert_allclose(imputed, expected)
    np.testing.assert_allclose(std, expected_std, rtol=1e-7)


@pytest.mark.slow
@every_type
def test_a_row_without_any_value_counts_nothing(covariance_type):
    X = incomplete()
    model = mixture({"covariance_type": covariance_type}, 2)
    expected, extra = clone(model).fit(X), np.concatenate([[[np.nan] * 3], X, [[np.nan] * 3]])
    estimator = clone(model).fit(extra)
    np.testing.assert_allclose(estimator.lower_bound_, expected.lower_bound_, rtol=1e-12)
    np.testing.assert_array_equal(clone(model).fit_predict(extra)[1:-1], expected.predict(X))
    empty = estimator.predict_proba(extra)[[0, -1]]
    np.testing.assert_allclose(empty[0], estimator.weights_, atol=0.1)
    np.testing.assert_array_equal(empty[0], empty[1])
    np.testing.assert_allclose(estimator.means_std_, expected.means_std_, rtol=1e-9)
    estimator.loo_score_samples(X)
    np.testing.assert_allclose(estimator.score(extra), estimator.score(X))
    np.testing.assert_allclose(
        estimator.impute(extra)[0], estimator.predict_proba(extra)[0] @ estimator.means_, rtol=1e-9
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_starts_see_completed_rows():
    seen = []

    def start(X, n_components, random_state):
        seen.append(X)
        return np.full((len(X), n_components), 1.0 / n_components) + 0.01 * np.sign(X[:, :1]) * [1, -1]

    mixture({"init_params": start}, 2, max_iter=3, tol=1e3).fit(incomplete())
    is_seen = ~np.isnan(incomplete())
    assert np.isfinite(seen[0]).all()
    np.testing.assert_allclose(seen[0][is_seen], incomplete()[is_seen], rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("prior", ["fixed", "flat"])
def test_all_starts_take_missing_values(init_params, prior):
    estimator = LRVBGaussianMixture(
        n_components=2, init_params=init_params, prior=prior, random_state=0, n_init=2, max_iter=300
    ).fit(incomplete(300))
    assert estimator.means_std_.min() > 0


def test_the_default_prior_is_that_of_estimates_by_em():
    """Values that are missing by what another column says do not bias the prior."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([1.0, -1.0], [[2.0, 1.6], [1.6, 2.0]], size=4000)
    incomplete_rows = X.copy()
    incomplete_rows[X[:, 0] > 1.0, 1] = np.nan
    estimator = LRVBGaussianMixture(max_iter=1, tol=1e9, prior="fixed").fit(incomplete_rows)
    np.testing.assert_allclose(estimator.mean_prior_, X.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(estimator.covariance_prior_, np.cov(X.T), atol=0.2)
    assert abs(np.nanmean(incomplete_rows[:, 1]) + 1.0) > 0.5  # so it would have been biased


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:A covariance matrix of")
@pytest.mark.parametrize("n_features", [3, 201])
@pytest.mark.parametrize("prior", ["learned", "fixed"])
@every_type
def test_the_default_prior_nears_that_of_complete_rows_as_missing_values_count_less(
    covariance_type, prior, n_features
):
    X = three_blobs(60, 3) @ np.random.default_rng(0).normal(size=(3, n_features))
    X += np.random.default_rng(1).normal(size=X.shape)
    incomplete_row = np.where(np.arange(n_features) % 2, np.nan, 0.1)
    # A learned prior follows the fit, which must have converged.
    steps = {"learned": {"max_iter": 100, "tol": 1e-9}, "fixed": {"max_iter": 1, "tol": 1e9}}
    model = {"covariance_type": covariance_type, "prior": prior, "init_params": np.ones((61, 1))}
    model = mixture({**model, **steps[prior]}, 1)
    found = clone(model)
    found.fit(np.vstack([X, incomplete_row]), sample_weight=np.append(np.ones(60), 1e-11))
    expected = clone(model).set_params(init_params=np.ones((60, 1))).fit(X)
    np.testing.assert_allclose(found.mean_prior_, expected.mean_prior_, atol=1e-9)
    np.testing.assert_allclose(found.covariance_prior_, expected.covariance_prior_, rtol=1e-8, atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:A covariance matrix of")
@pytest.mark.parametrize("n_features", [3, 201])
@every_type
def test_the_default_prior_is_in_the_units_of_the_columns(covariance_type, n_features):
    X = three_blobs(300, 3) @ np.random.default_rng(0).normal(size=(3, n_features))
    X += np.random.default_rng(1).normal(size=X.shape)
    X[::5, :2], X[1::5, 1] = np.nan, np.nan
    units = np.full(n_features, 8.0)
    if TYPES[covariance_type].n_axes > 0:
        units[1::2] = 1e-3
    model = mixture({"covariance_type": covariance_type, "reg_covar": 0.0}, 1, max_iter=1, tol=1e9)
    expected, found = clone(model).fit(X), clone(model).fit(X * units + 5.0 * units)
    np.testing.assert_allclose(found.mean_prior_, (expected.mean_prior_ + 5.0) * units, rtol=1e-7)
    squares = TYPES[covariance_type].prior(np.outer(units, units))
    np.testing.assert_allclose(found.covariance_prior_ / squares, expected.covariance_prior_, atol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("covariance_type", ["diag", "spherical", "tied_diag"])
def test_wide_tables_with_missing_values_need_no_matrix_of_their_columns(covariance_type):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 2000)) * rng.uniform(0.5, 2.0, 2000)
    X[1::2, ::7] = np.nan
    model = {"covariance_type": covariance_type, "reg_covar": 0.0, "max_iter": 1, "tol": 1e9}
    learned, fixed = (mixture({**model, "prior": prior}) for prior in ("learned", "fixed"))
    for estimator in (learned, fixed):
        assert peak_memory(lambda estimator=estimator: estimator.fit(X)) < 8 * 2000**2 / 4
    expected = TYPES[covariance_type].prior(np.diag(np.nanvar(X, axis=0) * 10 / 9))
    np.testing.assert_allclose(fixed.covariance_prior_, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("moves", ["merge", "search"])
def test_surplus_components_are_emptied(moves):
    X = incomplete(400)
    estimator = LRVBGaussianMixture(n_components=8, random_state=0, moves=moves).fit(X)
    assert estimator.converged_
    assert estimator.n_occupied_ < 8
    assert estimator.means_std_.min() > 0


# Refusals.


def test_refusals_name_the_reason_and_the_way_out():
    X = incomplete()
    estimator = fitted({"covariance_type": "full"})
    infinite = np.where(np.arange(120)[:, None] == 5, np.inf, X)
    for ask in (clone(estimator).fit, estimator.predict, estimator.impute):
        with pytest.raises(ValueError, match="Input X contains infinity"):
            ask(infinite)
    weights = np.ones(120)
    weights[3] = np.nan
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        clone(estimator).fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match="is not what the mixture was fitted to"):
        estimator.missing_information(np.nan_to_num(X))


def test_a_column_without_any_value_is_named():
    frame = pd.DataFrame(incomplete(), columns=["height", "width", "depth"])
    frame["width"] = np.nan
    with pytest.raises(ValueError, match=r"1 column\(s\) without any value .*: 1 \('width'\)\. Drop them"):
        mixture({}, 2).fit(frame)
    with pytest.raises(ValueError, match=r"1 column\(s\) without any value .*: 1\. Drop them"):
        mixture({}, 2).fit([frame.to_numpy()[:50], frame.to_numpy()[50:]])


@every_type
@pytest.mark.filterwarnings("ignore:Columns of X with one value")
def test_constant_columns_are_refused_without_noise_as_they_are_of_complete_rows(covariance_type):
    X = np.column_stack([incomplete(), np.where(np.isnan(incomplete()[:, 1]), np.nan, 3.0)])
    model = mixture({"covariance_type": covariance_type}, 2)
    assert clone(model).set_params(reg_covar=1e-4).fit(X).means_std_.min() >= 0
    if TYPES[covariance_type].n_axes > 0:
        with pytest.raises(ValueError, match="column 3 constant"):
            clone(model).set_params(reg_covar=0.0).fit(X)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_columns_that_are_never_seen_together(covariance_type):
    X = three_blobs(120, 3)
    X[:60, 0] = np.nan
    X[60:, 2] = np.nan
    model = {"covariance_type": covariance_type, "prior": "flat"}
    if TYPES[covariance_type].is_matrix:
        with pytest.raises(ValueError, match="Columns 0 and 2 of X never have values in the same row"):
            mixture(model, 2).fit(X)
    else:
        assert mixture(model, 2).fit(X).means_std_.min() > 0
    assert mixture({"covariance_type": covariance_type}, 2).fit(X).means_std_.min() > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_features", [190, 210])
def test_the_default_prior_knows_pairs_of_columns(n_features):
    rng = np.random.default_rng(0)
    complete = rng.normal(size=(250, n_features))
    complete[:, 1] = 0.95 * complete[:, 0] + 0.3 * complete[:, 1]
    rows = np.where(rng.random(complete.shape) < 0.05, np.nan, complete)
    prior = mixture({"max_iter": 1, "prior": "fixed"}, n_components=1).fit(rows).covariance_prior_
    np.testing.assert_allclose(prior, np.cov(complete.T, bias=True), atol=0.15)
    assert prior[0, 1] > 0.8
