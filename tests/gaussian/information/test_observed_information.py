"""The linear response against the paper's dense formula and against refits."""

import pickle
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    INFORMATION,
    MODELS,
    MOST_MODELS,
    WITH_NOISE,
    WITHOUT_NOISE,
    complete_rows,
    covariance_by,
    dense,
    expected_covariance,
    few_of,
    fitted,
    formed_information,
    log_share_map,
    mixture,
    model_id,
    models_in_turn,
    n_labels,
    newton_decrement,
    overlapping,
    posterior_of,
    rows_of,
    scales_of,
    set_sizes,
    solvers_of,
    targets_of,
    three_blobs,
    type_of,
    uncertainty_of,
    unique,
    use_information,
    values_of,
    with_fixed_noise,
)
from covariance_types import TYPES
from dense_reference import DenseReference
from robust_reference import RobustReference
from sklearn.base import clone

from sklearn_lrvb.gaussian.covariance_structures import (
    DiagonalCovariance,
    FullCovariance,
    SphericalCovariance,
)
from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates
from sklearn_lrvb.gaussian.information import learned_prior_information as learned_module
from sklearn_lrvb.gaussian.information import observed_information as information_module
from sklearn_lrvb.gaussian.information.columns import RowColumns
from sklearn_lrvb.gaussian.information.missing_information import (
    by_pairs,
    from_monomials,
    from_own_coordinates,
    missing_information,
    missing_information_product,
)
from sklearn_lrvb.gaussian.information.observed_information import GaussianInformation
from sklearn_lrvb.linear_response.solvers import DualInformation
from sklearn_lrvb.mixture.e_step import e_step, expect
from sklearn_lrvb.rows import ArrayRows, RowBlock
from sklearn_lrvb.symmetric_matrices import svec

catalogue = pytest.mark.parametrize("model", MOST_MODELS, ids=model_id)


@pytest.mark.parametrize(
    "model",
    [m for m in WITHOUT_NOISE if m["factorization"] == "independent" and m["covariance_type"] == "full"],
    ids=model_id,
)
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_equals_the_papers_dense_formula(model, n_components):
    X = three_blobs(90, n_features=2)
    estimator = mixture(model, n_components).fit(X)
    _, jacobian = log_share_map(estimator)
    expected = jacobian @ DenseReference(estimator, X).covariance() @ jacobian.T
    sd = np.sqrt(np.abs(np.diag(expected)))
    scale = np.outer(sd, sd) + (n_components == 1) * 1e-12  # one log weight has variance zero
    error = np.abs(estimator.posterior_covariance_ - expected) / scale
    assert error.max() < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("model", WITH_NOISE, ids=model_id)
def test_with_noise_it_is_that_of_independent_refits(model):
    X = overlapping(60)
    estimator = mixture(model, noise=-5.0).fit(X)
    alpha = estimator.weight_concentration_prior_
    reference = RobustReference.like(
        estimator, X, covariance=expected_covariance(estimator), noise=-5.0, noise_prior=(alpha, 2 * alpha)
    )
    fit = reference.fit(estimator.predict_proba(X))
    order = np.append(np.delete(np.arange(reference.size), 2), 2)  # there the weight of noise comes last
    expected = np.empty((reference.size, reference.size))
    expected[np.ix_(order, order)] = reference.covariance(fit)
    _, jacobian = log_share_map(estimator)
    expected = jacobian @ expected @ jacobian.T
    sd = np.sqrt(np.diag(expected))
    assert (np.abs(estimator.posterior_covariance_ - expected) / np.outer(sd, sd)).max() < 1e-5


@catalogue
def test_mean_field_covariance_is_that_of_q(model):
    estimator = fitted(model)
    sd = np.sqrt(np.diag(estimator.posterior(method="mean_field").covariance()))
    matrices, precision = type_of(model).is_matrix, estimator.precisions_
    nu = np.broadcast_to(estimator.degrees_of_freedom_, 2)
    if matrices:
        diagonal = np.einsum("...pp->...p", precision)
        wishart = precision**2 + diagonal[..., :, None] * diagonal[..., None, :]
    else:
        wishart = 2 * precision**2  # a gamma variable with shape nu/2
    wishart = wishart / type_of(model).over(estimator.degrees_of_freedom_)
    student = nu / (nu - (3 if matrices else 2)) if model["factorization"] == "joint" else np.ones(2)
    variances = np.einsum("kpp->kp", dense(model, scales_of(estimator)))
    means = variances * (student / estimator.mean_precision_)[:, None]
    expected = np.concatenate([means.ravel(), unique(model, wishart)])
    of_both = sd[n_labels(model) :][: len(expected)]  # Of log weights, and of fitted degrees of freedom, not.
    np.testing.assert_allclose(of_both**2, expected, rtol=1e-10)


@catalogue
def test_lrvb_exceeds_mean_field_where_components_overlap(model):
    estimator = fitted(model)
    lrvb = estimator.posterior(method="lrvb").covariance()
    mean_field = estimator.posterior(method="mean_field").covariance()
    slack = 1.0 + 2 * (model["factorization"] == "independent") / np.min(estimator.degrees_of_freedom_)
    assert np.linalg.eigvalsh(slack * lrvb - mean_field)[0] > -1e-9
    assert np.all(np.diag(lrvb) > 1.01 * np.diag(mean_field))


@catalogue
def test_covariance_is_symmetric_positive_and_agrees_with_its_parts(model):
    estimator = fitted(model)
    covariance = estimator.posterior_covariance_
    np.testing.assert_array_equal(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance / np.outer(*[estimator.posterior_std_] * 2))[0] > 0
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), estimator.posterior_std_, rtol=1e-12)
    reordered = estimator.posterior(method="lrvb").covariance(["means", "log_weights"])
    sizes = n_labels(model), 4, len(unique(model, estimator.precisions_))
    of_weights, of_means, of_precisions, _ = np.split(np.arange(len(covariance)), np.cumsum(sizes))
    order, sd = np.r_[of_means, of_weights], estimator.posterior_std_
    np.testing.assert_allclose(reordered, covariance[np.ix_(order, order)], rtol=1e-12)
    np.testing.assert_allclose(estimator.means_std_.ravel(), sd[of_means], rtol=1e-12)
    np.testing.assert_allclose(unique(model, estimator.precisions_std_), sd[of_precisions], rtol=1e-12)
    for values in (estimator.precisions_std_, estimator.covariances_std_):
        assert values.shape == estimator.precisions_.shape
        if type_of(model).is_matrix:
            np.testing.assert_array_equal(values, values.swapaxes(-1, -2))


@catalogue
def test_covariances_and_weights_follow_by_the_delta_method(model):
    estimator = fitted(model)
    inverses = "scales" if "tails" in model else "covariances"
    lrvb = estimator.posterior(method="lrvb").covariance(["precisions", inverses, "log_weights", "weights"])
    step = 1e-6
    inverse = type_of(model).inverse
    jacobian = []
    for place in np.ndindex(estimator.precisions_.shape):
        moved = estimator.precisions_.copy()
        moved[place] += step
        if type_of(model).is_matrix:
            if place[-2] > place[-1]:
                continue
            moved[(*place[:-2], place[-1], place[-2])] = moved[place]
        jacobian.append(unique(model, inverse(moved) - inverse(estimator.precisions_)) / step)
    delta = np.transpose(jacobian)
    n = len(delta)
    precisions, covariances = lrvb[:n, :n], lrvb[n : 2 * n, n : 2 * n]
    expected = delta @ precisions @ delta.T
    np.testing.assert_allclose(covariances, expected, rtol=1e-4, atol=1e-4 * covariances.max())
    of_logs, of_weights = np.split(np.arange(2 * n, len(lrvb)), 2)
    of_weights, of_logs = lrvb[np.ix_(of_weights, of_weights)], lrvb[np.ix_(of_logs, of_logs)]
    np.testing.assert_allclose(of_weights.sum(axis=0), 0, atol=1e-12)  # weights sum to one
    # pi_0 as a function of log pi; log pi itself is no function of pi alone, hence the tolerance
    weights = values_of(estimator, "weights")
    contrast = weights[0] * (np.arange(len(weights)) == 0) - weights[0] * weights
    assert estimator.weights_std_[0] == pytest.approx(np.sqrt(contrast @ of_logs @ contrast), rel=0.03)


@pytest.mark.parametrize(
    "model",
    [model for model in MOST_MODELS if model["prior"] != "flat" and not model["reg_covar"]],
    ids=model_id,
)
def test_covariance_with_the_precisions_is_the_response_to_the_covariance_prior(model):
    # log p gains -trace(dC Lambda)/2 for every precision: an identity of E_q theta for either factorization
    X, step = overlapping(), 1e-3
    prior = np.asarray(type_of(model).prior(np.cov(X.T)))
    model = with_fixed_noise(model, X)
    estimator = mixture(model, covariance_prior=prior[()]).fit(X)
    to_precisions = estimator.posterior_covariance_[:, n_labels(model) + 4 :]
    to_precisions = to_precisions[:, : len(unique(model, estimator.precisions_))]
    nearby = mixture(model, init_params=estimator.predict_proba(X))  # of the same optimum
    for place in np.ndindex(prior.shape):
        change = np.zeros_like(prior)
        change[place] = change[place[::-1]] = step
        above, below = (
            clone(nearby).set_params(covariance_prior=(prior + s * change)[()]).fit(X).posterior_mean_
            for s in (1, -1)
        )
        refit = (above - below) / (2 * step)
        pull = unique(model, change / step)  # an off-diagonal entry stands for two
        pull = pull * (0.5 if place[:1] == place[-1:] else 1.0)
        n_precision_groups = to_precisions.shape[1] // len(pull)
        predicted = -to_precisions @ np.tile(pull, n_precision_groups)
        np.testing.assert_array_less(np.abs(refit - predicted), 1e-5 * estimator.posterior_std_)


@pytest.mark.parametrize("factorization", ["joint", "independent"])
def test_covariance_with_the_log_weights_is_the_response_to_the_concentration(factorization):
    X, step = overlapping(), 1e-3
    model = {"factorization": factorization, "weight_concentration_prior_type": "dirichlet_distribution"}
    estimator = mixture(model, weight_concentration_prior=1.0).fit(X)
    above, below = (
        mixture(model, weight_concentration_prior=1.0 + s).fit(X).posterior_mean_ for s in (step, -step)
    )
    predicted = estimator.posterior_covariance_[:, :2].sum(axis=1)
    np.testing.assert_array_less(
        np.abs((above - below) / (2 * step) - predicted), 1e-5 * estimator.posterior_std_
    )


def quadratic_features(structure, y, y_noise):
    """The quadratic features of one whitened row, given the noise on it, by mathematics.md's table."""
    n_features = len(y)
    square = np.outer(y, y) - np.eye(n_features) + y_noise
    if isinstance(structure, DiagonalCovariance):
        return np.diag(square) / np.sqrt(2)
    if isinstance(structure, SphericalCovariance):
        return np.array([np.trace(square)]) / np.sqrt(2 * n_features)
    return svec(square) / np.sqrt(2)


def ways(posterior):
    """Ways in which the missing information can be formed."""
    structure = posterior.structure
    formed = [(from_monomials, from_own_coordinates), (from_own_coordinates,)]
    return [*formed, (by_pairs,)] if structure.has_own_matrices else formed


def missing_by_definition(posterior, rows, responsibilities):
    """sum_n w_n [(r_k delta_kl - r_k r_l) h_k h_l'], row by row, (D, D).

    No row has a feature for a hyperparameter that is learned, the last coefficient.
    """
    structure = posterior.structure
    whiteners = structure.dense(posterior.whiteners)
    n_components, n_features = posterior.centred_means.shape
    n_quadratic = len(quadratic_features(structure, np.ones(n_features), 0))
    is_shared = structure.shares_precision
    size = n_components * (1 + n_features) + (1 if is_shared else n_components) * n_quadratic
    size += posterior.prior.learned is not None
    missing = np.zeros((size, size))
    block = rows.block(slice(0, rows.n_samples))
    for x, r, weight in zip(block.rows.T, responsibilities, block.counts, strict=True):
        features = np.zeros((n_components, size))
        for k, W in enumerate(whiteners):
            y, linear = W @ (x - posterior.centred_means[k]), n_components + k * n_features
            quadratic = n_components * (1 + n_features) + (0 if is_shared else k) * n_quadratic
            features[k, k] = 1.0
            features[k, linear : linear + n_features] = y
            noise = posterior.prior.reg_covar * W @ W.T
            features[k, quadratic : quadratic + n_quadratic] = quadratic_features(structure, y, noise)
        missing += weight * features.T @ (np.diag(r) - np.outer(r, r)) @ features
    return missing


@pytest.mark.all_cases
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize(("n_features", "n_components"), [(1, 2), (2, 2), (3, 3), (4, 1), (14, 2)])
@pytest.mark.parametrize(  # every two choices of different options together
    ("reg_covar", "weighted", "n_jobs"), [(0.0, False, 1), (0.0, True, 2), (0.05, False, 2), (0.05, True, 1)]
)
def test_missing_information_is_its_definition(
    covariance_type, n_features, n_components, reg_covar, weighted, n_jobs
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, n_features)) + np.eye(3, n_features)[np.arange(150) % 3]
    weights = rng.uniform(0.1, 3.0, size=150) if weighted else None
    model = {"reg_covar": reg_covar, "solver": "coordinate_ascent", "tol": 1e9}
    estimator = mixture({**model, "covariance_type": covariance_type}, n_components, n_jobs=n_jobs)
    estimator.fit(X, sample_weight=weights)
    posterior = posterior_of(estimator)
    rows = rows_of(estimator, X, weights, n_jobs)
    missing = missing_by_definition(posterior, rows, estimator.predict_proba(X))
    scale = max(np.abs(missing).max(), 1e-3)
    for chosen in ways(posterior):
        np.testing.assert_allclose(missing_information(rows, posterior, chosen), missing, atol=1e-12 * scale)

    vectors = np.random.default_rng(0).normal(size=(len(missing), 3))
    product = missing_information_product(rows, posterior, vectors)
    np.testing.assert_allclose(product, missing @ vectors, atol=1e-11 * scale)

    columns = RowColumns.of_rows(rows, posterior)
    assert len(columns) <= 150 * (n_components - 1)
    root = columns.transposed_product(np.eye(len(missing))).T
    np.testing.assert_allclose(root @ root.T, missing, atol=1e-12 * scale)
    combinations = rng.normal(size=(len(columns), 2))
    np.testing.assert_allclose(columns.product(combinations), root @ combinations, atol=1e-11 * scale)
    scaled = GaussianInformation(posterior).complete.times_root_transposed(root)
    np.testing.assert_allclose(columns.kernel(), scaled.T @ scaled, atol=1e-13 * scale)
    index = np.random.default_rng(2).permutation(len(missing))[:7]
    covariance = GaussianInformation(posterior).complete.times_root(scaled)
    np.testing.assert_allclose(columns.responses(index), covariance[index].T, atol=1e-13 * scale)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize(("n_features", "n_components"), [(1, 1), (1, 5), (3, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_missing_information_of_many_rows_is_its_definition(
    covariance_type, n_features, n_components, weighted, monkeypatch
):
    set_sizes(monkeypatch, numbers_in_own_coordinates=0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, n_features)) + 2.0 * np.eye(3, n_features)[np.arange(150) % 3]
    weights = rng.uniform(0.1, 3.0, size=150) if weighted else None
    model = {"covariance_type": covariance_type, "reg_covar": 0.05, "solver": "coordinate_ascent", "tol": 1e9}
    estimator = mixture(model, n_components).fit(X, sample_weight=weights)
    posterior = posterior_of(estimator)
    rows = rows_of(estimator, X, weights)
    missing = missing_by_definition(posterior, rows, estimator.predict_proba(X))
    T = GaussianInformation(posterior).complete.times_root_transposed(np.eye(len(missing)))
    formed = missing_information(rows, posterior, (from_monomials, from_own_coordinates))
    assert np.abs(T @ (formed - missing) @ T.T).max() < 1e-12


@pytest.mark.parametrize("ratio", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("crossed", [False, True])
def test_coordinates_of_any_shape_lose_nothing(ratio, crossed):
    # two needles that cross one standard deviation from both centers, or a tight Gaussian in a wide one
    rng = np.random.default_rng(0)
    shapes = np.array([[1.0, ratio], [ratio, 1.0] if crossed else [ratio, 0.3 * ratio]])
    centers = np.array([[1.0, 0.0], [0.0, 1.0]]) * shapes
    posterior = replace(
        posterior_of(mixture(MODELS[0]).fit(overlapping())),
        counts=np.array([240.0, 200.0]),
        centred_means=centers,
        covariance_cholesky=np.array([np.diag(shape) for shape in shapes]),
    )
    X = np.concatenate(
        [center + shape * rng.normal(size=(60, 2)) for center, shape in zip(centers, shapes, strict=True)]
    )
    X[:20] = ratio * rng.normal(size=(20, 2))  # near both
    rows = ArrayRows(X, np.zeros(2))
    responsibilities = expect(OwnCoordinates(posterior), RowBlock(X.T.copy())).responsibilities
    assert np.count_nonzero(responsibilities.max(axis=0) < 0.99) > 1
    missing = missing_by_definition(posterior, rows, responsibilities.T)
    T = GaussianInformation(posterior).complete.times_root_transposed(np.eye(len(missing)))
    columns = RowColumns.of_rows(rows, posterior)
    root = columns.transposed_product(np.eye(len(missing))).T
    formed = [missing_information(rows, posterior, chosen) for chosen in ways(posterior)]
    for found in (*formed, root @ root.T):
        assert np.abs(T @ (found - missing) @ T.T).max() < 1e-11


def test_components_far_apart_lose_nothing_to_common_coordinates():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 2)), 0.01 * rng.normal(size=(50, 2)) + 0.5])
    X = np.concatenate([X, [4.0, 0.0] + rng.normal(size=(200, 2)) * [0.1, 10.0]])
    estimator = mixture(MODELS[0], 3).fit(X)
    posterior = posterior_of(estimator)
    rows = rows_of(estimator, X)
    missing = missing_by_definition(posterior, rows, estimator.predict_proba(X))
    T = GaussianInformation(posterior).complete.times_root_transposed(np.eye(len(missing)))
    for chosen in ways(posterior):
        error = T @ (missing_information(rows, posterior, chosen) - missing) @ T.T
        assert np.abs(error).max() < 1e-12


def test_pairs_far_from_others_lose_nothing_to_a_shared_precision():
    centers = np.array([[0.0, 0.0], [1.5, 0.0], [3e4, 0.0], [3e4, 1.5]])
    X = (np.random.default_rng(0).normal(size=(100, 4, 2)) + centers).reshape(-1, 2)
    model = {"covariance_type": "tied", "prior": "fixed", "init_params": np.tile(np.eye(4), (100, 1))}
    estimator = mixture(model, 4, solver="coordinate_ascent", tol=1e9).fit(X)
    posterior = posterior_of(estimator)
    rows = rows_of(estimator, X)
    responsibilities = expect(OwnCoordinates(posterior), rows.block(slice(0, 400))).responsibilities
    missing = missing_by_definition(posterior, rows, responsibilities.T)
    T = GaussianInformation(posterior).complete.times_root_transposed(np.eye(len(missing)))
    assert (
        np.abs(
            T @ (missing_information(rows, posterior, (from_monomials, from_own_coordinates)) - missing) @ T.T
        ).max()
        < 1e-11
    )


@pytest.mark.slow
@pytest.mark.parametrize("shift", [30.0, 6.0])
def test_certain_rows_are_skipped_without_a_trace(shift):
    X = np.concatenate([overlapping(2400), overlapping(2400) + [shift, 0.0]])
    estimator = mixture(MODELS[0], 4).fit(X)
    posterior = posterior_of(estimator)
    rows = rows_of(estimator, X)
    missing = missing_by_definition(posterior, rows, estimator.predict_proba(X))
    complete = GaussianInformation(posterior).complete
    T = complete.times_root_transposed(np.eye(len(missing)))
    columns = RowColumns.of_rows(rows, posterior)
    assert len(columns) < 3 * len(X) - 1000
    root = columns.transposed_product(np.eye(len(missing))).T
    formed = [missing_information(rows, posterior, chosen) for chosen in ways(posterior)]
    for kept in (*formed, root @ root.T):
        assert np.abs(T @ (kept - missing) @ T.T).max() < 1e-12


def test_outliers_count_by_their_features():
    # an outlier that is all but certain (r = 1e-13) and 1000 sd away, among rows of which most are certain
    X = np.concatenate([overlapping(), overlapping() + [-60.0, 0.0], [[-8.5, 1000.0]]])
    two_disks = replace(
        posterior_of(mixture(MODELS[0]).fit(overlapping())),
        counts=np.array([240.0, 241.0]),
        centred_means=np.array([[0.0, 0.0], [3.0, 0.0]]),
        covariance_cholesky=np.array([np.eye(2)] * 2),
    )
    rows = ArrayRows(X, np.zeros(2))
    vector = np.random.default_rng(0).normal(size=(12, 1))
    product = missing_information_product(rows, two_disks, vector)
    scale = 240 * np.abs(vector).max()
    for chosen in ways(two_disks):
        np.testing.assert_allclose(
            missing_information(rows, two_disks, chosen) @ vector, product, atol=1e-9 * scale
        )
    columns = RowColumns.of_rows(rows, two_disks)
    dual = columns.product(columns.transposed_product(vector))
    np.testing.assert_allclose(dual, product, atol=1e-9 * scale)


def units_of(covariance):
    """Standard deviations and their products; one where there are none, as a fixed prior may leave them."""
    variances = np.diag(covariance)
    sd = np.sqrt(np.maximum(np.where(np.isfinite(variances), variances, 1.0), 1e-24))
    return sd, np.outer(sd, sd)


@models_in_turn(few_of(MODELS), "n_components", [1, 2, 3])
def test_every_solver_gives_the_same_covariance(model, n_components):
    X = three_blobs(90, n_features=2)
    estimator = mixture(model, n_components).fit(X)
    expected = covariance_by("primal", estimator, targets_of(estimator), X=X)
    sd, units = units_of(expected)
    for solver in solvers_of(model)[1:]:
        covariance = covariance_by(solver, estimator, targets_of(estimator), X=X)
        np.testing.assert_array_equal(covariance, covariance.T)
        np.testing.assert_allclose(covariance / units, expected / units, rtol=0, atol=1e-8)
        means = covariance_by(solver, estimator, ["means"], X=X)
        here = slice(n_labels(model, n_components), n_labels(model, n_components) + means.shape[0])
        np.testing.assert_allclose(means, expected[here, here], atol=1e-8 * sd[here].max() ** 2)


@pytest.mark.parametrize("information", INFORMATION)
def test_every_solver_gives_the_same_influence(information, monkeypatch):
    X = overlapping()
    expected = fitted(MODELS[0])
    use_information(information, monkeypatch)
    estimator = mixture(MODELS[0]).fit(X)
    for target in targets_of(estimator):
        influence = expected.influence(X, target=target)
        np.testing.assert_allclose(
            estimator.influence(X, target=target), influence, atol=1e-6 * np.abs(influence).max()
        )


def test_matrix_free_covariances_need_the_training_rows(monkeypatch):
    use_information("matrix_free", monkeypatch)
    set_sizes(monkeypatch, pickled_bytes=0)
    X = overlapping()
    estimator = mixture(MODELS[0]).fit(X)
    means_std = estimator.means_std_
    twin = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(twin.means_std_, means_std)  # computed before, it travels
    with pytest.raises(ValueError, match=r"needs the training rows.*posterior\(X"):
        twin.precisions_std_
    given = twin.posterior(X, method="lrvb").covariance("means")
    np.testing.assert_allclose(np.sqrt(np.diag(given)), means_std.ravel(), rtol=1e-12)
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        twin.posterior(X + 0.01, method="lrvb").covariance("means")


@pytest.mark.all_cases
@pytest.mark.parametrize("most_factored", [0, 5050])  # By conjugate gradients, and by a factor.
@pytest.mark.parametrize("learned", ["both", "b0", "C0"])
@pytest.mark.parametrize("covariance_type", sorted(TYPES))
def test_the_dual_solver_of_a_learned_prior_is_the_primal_one(
    covariance_type, learned, most_factored, monkeypatch
):
    X = overlapping()[::3]
    given = {
        "b0": {"covariance_prior": TYPES[covariance_type].prior(np.cov(X.T))},
        "C0": {"mean_precision_prior": 0.5},
    }
    weights = ("dirichlet_process", "dirichlet_distribution")[len(covariance_type + learned) % 2]
    model = {"covariance_type": covariance_type, "weight_concentration_prior_type": weights}
    if learned == "both":
        model["noise"] = True
    monkeypatch.setattr(learned_module, "_PRIMAL_FROM_SHARE", 2.0)
    monkeypatch.setattr(learned_module, "MOST_FACTORED", most_factored)
    expected, found, scores = [], [], {}
    for solver, kept in (("primal", expected), ("dual", found)):
        with monkeypatch.context() as patch:
            use_information(solver, patch)
            set_sizes(patch, rows_of_refits=0)
            estimator = mixture(model, 3, **given.get(learned, {})).fit(X)
            covariance = estimator.posterior(method="lrvb").covariance()
            sd = np.sqrt(np.diag(covariance))
            kept += [
                covariance / np.outer(sd, sd),
                *(estimator.influence(X[:9], target=target) for target in ("weights", "means", "precisions")),
                estimator.leverage(X),
                estimator.log_evidence_,
                estimator.posterior(random_state=0, method="lrvb").sample(3)["covariances"],
            ]
            assert formed_information(estimator).name == solver
            scores[solver] = estimator.loo_score_samples(X)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8 * np.abs(theirs).max() + 1e-14)
    # They are those of steps that end before round-off.
    np.testing.assert_allclose(scores["dual"], scores["primal"], rtol=1e-5)


def test_far_from_the_optimum_of_its_prior_a_fit_is_left_to_the_other_solvers():
    """The precisions of empty components hold a typical covariance that has become too small."""
    X = overlapping()
    estimator = mixture({}).fit(X)
    rows, posterior = rows_of(estimator, X), posterior_of(estimator)
    small = 1e-2 * posterior.covariance_cholesky
    posterior = replace(posterior, counts=1e-3 * posterior.counts, covariance_cholesky=small)
    dual, primal = (
        GaussianInformation(posterior).observed(rows, e_step(rows, posterior), solver=solver)
        for solver in ("dual", "primal")
    )
    assert dual.name == "primal"
    assert dual.smallest_eigenvalue()[0] == pytest.approx(primal.smallest_eigenvalue()[0], rel=1e-9)


def test_a_learned_prior_has_no_dual_solver_of_missing_values():
    X = overlapping()
    X[0, 0] = np.nan
    estimator = mixture({"covariance_type": "diag"}).fit(X)
    with pytest.raises(ValueError, match=r"prior='learned' has no dual solver where.*Use solver='primal' or"):
        covariance_by("dual", estimator, X=X)


@pytest.mark.parametrize("solver", ["primal", "dual", "matrix_free"])
def test_every_solver_refuses_a_saddle(solver):
    X = np.random.default_rng(0).normal(size=(200, 2))
    estimator = mixture({"prior": "flat"}, max_iter=1, init_params="random", solver="coordinate_ascent")
    with pytest.warns(UserWarning, match="did not converge"):
        estimator.fit(X)
    with pytest.raises(ValueError, match=r"smallest eigenvalue .* is -.* components 0 and 1.*raise max_iter"):
        covariance_by(solver, estimator, X=X)


def test_refuses_a_saddle():
    X = np.random.default_rng(0).normal(size=(200, 2))
    # one iteration from random responsibilities: two components on one cloud, not an optimum
    estimator = mixture({"prior": "flat"}, max_iter=1, init_params="random", solver="coordinate_ascent")
    with pytest.warns(UserWarning, match="did not converge"):
        estimator.fit(X)
    with pytest.raises(ValueError, match=r"smallest eigenvalue .* components 0 and 1.*raise max_iter"):
        estimator.posterior_covariance_
    with pytest.raises(ValueError, match="no strict local optimum"):
        estimator.means_std_
    with pytest.raises(ValueError, match="no strict local optimum"):
        estimator.influence(X)
    assert estimator.means_.shape == (2, 2)


def test_warns_far_from_the_optimum():
    estimator = mixture(MODELS[0], tol=1.0, solver="coordinate_ascent").fit(overlapping())
    assert newton_decrement(estimator) > 0.1
    with pytest.warns(UserWarning, match="posterior standard deviations away from its optimum"):
        estimator.posterior_std_


def test_names():
    names = fitted(MODELS[0]).posterior_names_
    assert list(names[:4]) == ["log_weight[0]", "log_weight[1]", "mean[0,x0]", "mean[0,x1]"]
    assert list(names[6:9]) == ["precision[0,x0,x0]", "precision[0,x0,x1]", "precision[0,x1,x1]"]
    assert len(names) == 12


@pytest.mark.slow
def test_many_features_are_for_the_solver_of_few_ambiguous_rows():
    # 40,602 unknowns, a matrix of 12 GB, but a handful of rows between the components
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 200))
    X[:300, 0] += 6.0
    X[300:330, 0] += 3.0
    prior = {"prior": "fixed", "covariance_prior": 5000 * np.eye(200), "degrees_of_freedom_prior": 5000}
    estimator = mixture({"tol": 1e-3}, **prior).fit(X)
    tracemalloc.start()
    means_std, weights_std = estimator.means_std_, estimator.weights_std_
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(formed_information(estimator), DualInformation)
    assert peak < 30 * X.nbytes  # mostly two columns of 40,602 and scratch
    with pytest.raises(MemoryError, match=r"in 200 features has 20100 unknowns.*Ask for means and weights"):
        estimator.precisions_std_
    mean_field = np.sqrt(np.diag(estimator.posterior(method="mean_field").covariance("means")))
    assert (means_std.ravel() / mean_field).max() > 1.001
    matrix_free = covariance_by("matrix_free", estimator, ["log_weights"], X=X)
    dual = estimator.posterior(method="lrvb").covariance(["log_weights"])
    np.testing.assert_allclose(matrix_free, dual, rtol=1e-8)
    assert weights_std.shape == (2,)
    one = estimator.influence(X[:2], target="log_weights")
    assert one.shape == (2, 2, 200)


@pytest.mark.slow
@pytest.mark.parametrize("information", INFORMATION)
def test_influence_in_batches_of_targets_is_the_same(information, monkeypatch):
    use_information(information, monkeypatch)
    X = overlapping()
    estimator = mixture(MODELS[0]).fit(X)
    whole = {target: estimator.influence(X[:7], target=target) for target in targets_of(estimator)}
    set_sizes(monkeypatch, batch_bytes=1, jacobian_size=1)
    for target, influence in whole.items():
        scale = np.abs(influence).max()
        np.testing.assert_allclose(estimator.influence(X[:7], target=target), influence, atol=1e-8 * scale)
    again = mixture(MODELS[0]).fit(X)
    np.testing.assert_allclose(again.posterior_std_, estimator.posterior_std_, rtol=1e-8)


@pytest.mark.parametrize("weights", ["dirichlet_process", "dirichlet_distribution"])
@pytest.mark.parametrize("prior", ["learned", "fixed"])
def test_solvers_agree_where_variances_differ_by_many_orders(weights, prior):
    # empty components: log weights with a standard deviation of thousands beside means known to 0.1
    X = overlapping()
    model = {"weight_concentration_prior": 1e-3, "weight_concentration_prior_type": weights, "prior": prior}
    estimator = mixture({**model, "tol": 1e-6}, 4).fit(X)
    expected = covariance_by("primal", estimator, targets_of(estimator), X=X)
    sd, units = units_of(expected)
    assert sd.max() > 100 * sd.min()
    for solver in solvers_of(model)[1:]:
        covariance = covariance_by(solver, estimator, targets_of(estimator), X=X)
        np.testing.assert_allclose(covariance / units, expected / units, rtol=0, atol=1e-8)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    ("n_features", "n_rows", "solver", "incomplete"),
    [(2, 300, "primal", True), (5, 1500, "primal", False), (2, 300, "dual", False)],
    ids=["primal with missing values", "primal by pairs", "dual"],
)
def test_rows_count_that_say_next_to_nothing_of_one_of_their_components(
    n_features, n_rows, solver, incomplete, first
):
    """A row of 10^10 that belong to the other component says much of one that has 40 rows."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(n_rows, n_features)), 0.5 * rng.normal(size=(40, n_features))])
    X[n_rows:, 0] += 4.0
    if incomplete:
        X[::7, 1] = np.nan
    weights = np.where(np.arange(len(X)) < n_rows, 1e10, 1.0)
    responsibilities = np.eye(2)[np.where(weights > 1.0, first, 1 - first)]
    estimator = mixture({"covariance_type": "full"}, 2, init_params=responsibilities, max_iter=300)
    estimator.fit(X, sample_weight=weights)
    asked = {"target": ["means", "precisions"], "X": X, "sample_weight": weights}
    found, expected = (covariance_by(name, estimator, **asked) for name in (solver, "matrix_free"))
    np.testing.assert_allclose(np.diag(found), np.diag(expected), rtol=1e-9)


def test_a_pickle_too_small_for_the_matrix_answers_with_the_rows(monkeypatch):
    set_sizes(monkeypatch, pickled_bytes=0)
    X = overlapping()
    estimator = mixture({**MODELS[0], "solver": "coordinate_ascent", "tol": 1e-12}).fit(X)
    before = pickle.dumps(estimator)
    expected = estimator.posterior(method="lrvb").covariance()
    found = [covariance_by(solver, pickle.loads(before), X=X) for solver in INFORMATION]
    for covariance in (pickle.loads(before).posterior(X, method="lrvb").covariance(), *found):
        np.testing.assert_allclose(covariance, expected, atol=1e-8 * np.abs(expected).max())
    assert formed_information(estimator) is not None


def test_warnings_and_errors_name_the_callers_line():
    estimator = mixture(MODELS[0], tol=1.0, solver="coordinate_ascent").fit(overlapping())
    for ask in (
        lambda: estimator.posterior_covariance_,
        lambda: estimator.means_std_,
        lambda: estimator.influence(overlapping()),
        lambda: estimator.posterior(method="lrvb").covariance("means"),
    ):
        uncertainty_of(estimator).source._has_warned = False
        uncertainty_of(estimator)._std.clear()
        with pytest.warns(UserWarning, match="away from its optimum") as caught:
            ask()
        assert caught[0].filename == __file__


def test_cost_model_on_problems_of_every_kind():
    def cheapest(n_samples, n_features, n_components, n_alternatives, n_targets=1):
        q = SimpleNamespace(structure=FullCovariance(n_components, n_features))
        result = SimpleNamespace(n_alternatives=n_alternatives, n_ambiguous_pairs=n_alternatives)
        costs = GaussianInformation(q).costs(complete_rows(n_samples), result)
        return costs.cheapest(n_targets)

    assert cheapest(10_000, 2, 2, 10_000) == "primal"
    assert cheapest(12_665, 25, 2, 11_000) == "primal"
    assert cheapest(12_665, 25, 2, 250) == "dual"
    assert cheapest(12_665, 784, 2, 5, n_targets=1568) == "dual"
    assert cheapest(12_665, 784, 2, 500_000, n_targets=1568) == "matrix_free"
    assert cheapest(20_000, 100, 2, 18_000) == "matrix_free"
    assert cheapest(20_000, 100, 2, 18_000, n_targets=200) == "primal"
    assert cheapest(1_000, 5, 1, 0) in ("primal", "dual")


def test_many_pairs_cost_more_than_their_columns():
    q = SimpleNamespace(structure=FullCovariance(10, 10))
    results = (SimpleNamespace(n_alternatives=52_000, n_ambiguous_pairs=n) for n in (65_000, 400_000))
    few, many = (GaussianInformation(q).costs(complete_rows(10_000), result).gram for result in results)
    assert many > 1.5 * few


def test_the_way_to_the_matrix_that_costs_least_comes_first(monkeypatch):
    first = []

    def noted(rows, posterior, ways, missing_values):
        first.append(ways[0])
        return missing_information(rows, posterior, ways, missing_values)

    monkeypatch.setattr(information_module, "missing_information", noted)
    for n_features, distance in ((2, 1.5), (10, 8.0)):
        X = np.random.default_rng(0).normal(size=(3000, n_features))
        X[::2, 0] += distance
        estimator = mixture(MODELS[0]).fit(X)
        rows, posterior = rows_of(estimator, X), posterior_of(estimator)
        GaussianInformation(posterior).observed(rows, e_step(rows, posterior), solver="primal")
    assert (first[0], first[-1]) == (from_monomials, by_pairs)


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_determinants_of_rows_with_missing_values_are_the_same_by_columns_and_by_a_matrix(covariance_type):
    X = overlapping(60)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    estimator = mixture({"covariance_type": covariance_type, "prior": "fixed"}).fit(X)
    rows, posterior = rows_of(estimator, X), posterior_of(estimator)
    by_matrix, by_columns = (
        GaussianInformation(posterior).observed(rows, e_step(rows, posterior), solver=solver).log_determinant
        for solver in ("primal", "dual")
    )
    assert by_columns == pytest.approx(by_matrix, rel=1e-9)


@pytest.mark.parametrize(
    ("distance", "form"), [(9.0, {"whitened", "row", "weights"}), (1.5, {"scaled_triangle"})]
)
@pytest.mark.parametrize("prior", ["fixed", "learned"])
def test_the_smaller_form_of_a_dual_information_is_stored(prior, distance, form):
    """The ambiguous rows where there are few of them, and S where there are many."""
    X = np.random.default_rng(0).normal(size=(300, 8))
    X[:150, 0] += distance
    estimator = mixture({**MODELS[0], "prior": prior}).fit(X)
    posterior = posterior_of(estimator)
    rows = rows_of(estimator, X)
    information = GaussianInformation(posterior).observed(rows, e_step(rows, posterior), solver="dual")
    arrays = information.to_arrays()
    assert set(arrays) == form
    twin = GaussianInformation(posterior).from_arrays(arrays)
    covariance = information.covariance()
    atol = 1e-10 * np.abs(covariance).max()
    np.testing.assert_allclose(twin.covariance(), covariance, rtol=1e-8, atol=atol)
