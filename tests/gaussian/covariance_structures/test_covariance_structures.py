"""What every covariance structure promises the formulas that use it."""

from types import SimpleNamespace

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, complete_rows, mixture, posterior_of, rows_of

from sklearn_lrvb.gaussian.covariance_structures import COVARIANCE_STRUCTURES
from sklearn_lrvb.gaussian.information.observed_information import GaussianInformation
from sklearn_lrvb.mixture.e_step import e_step

K, P = 3, 4
every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def structure_of(covariance_type, n_components=K, n_features=P):
    return COVARIANCE_STRUCTURES[covariance_type](n_components, n_features)


@every_type
def test_moments_undo_feature_moments(covariance_type, rng):
    structure = structure_of(covariance_type)
    beta = rng.normal(size=structure.layout.n_coefficients)
    np.testing.assert_allclose(
        structure.features.from_moments(
            *structure.features.to_moments(beta)[:3], structure.identity_statistic
        ),
        beta,
        rtol=1e-13,
        atol=1e-14,
    )


@every_type
def test_polynomials_and_feature_moments_are_transposes(covariance_type, rng):
    # beta . (sum of weight h) = sum of weight (a + b.y + B.s(y)), whatever the origin
    structure = structure_of(covariance_type)
    whitened, weights = rng.normal(size=(K, P, 20)), rng.normal(size=(K, 20))
    factors = structure.diagonal_factors(rng.uniform(0.5, 2.0, size=P))
    origin = structure.identity_statistic - 0.07 * structure.power * structure.gram(factors)
    beta = rng.normal(size=structure.layout.n_coefficients)
    constant, linear, curvature = structure.features.polynomials(beta, origin)
    values = constant[:, None] + np.einsum("kp,kpn->kn", linear, whitened)
    values += structure.curvature_products(curvature, whitened)
    first = np.einsum("kpn,kn->kp", whitened, weights)
    second = structure.second_moments(whitened, weights)
    features = structure.features.from_moments(weights.sum(axis=1), first, second, origin)
    assert beta @ features == pytest.approx((values * weights).sum(), rel=1e-12)


@pytest.mark.all_cases
@every_type
def test_rows_far_from_the_origin_keep_their_digits_in_whitened_coordinates(covariance_type, rng):
    # distances that are binary fractions, so that they are exact beside the means
    structure, shifts = structure_of(covariance_type), rng.integers(-20, 20, size=(P, 20)) / 8
    centred_means = np.full((K, P), 2.0**24)
    whiteners = structure.whiteners(structure.diagonal_factors(rng.uniform(0.5, 2.0, size=P)))
    ones = np.ones((1, 20))
    whitened = structure.whiten(whiteners, centred_means, np.concatenate([ones, 2.0**24 + shifts]))
    near = structure.whiten(whiteners, np.zeros((K, P)), np.concatenate([ones, shifts]))
    np.testing.assert_allclose(whitened, near, rtol=1e-13, atol=1e-15)


@every_type
def test_few_functions_have_the_values_of_many(covariance_type, rng):
    structure = structure_of(covariance_type)
    rows = rng.normal(size=(P, 20))
    constant, linear, curvature = structure.features.polynomials(
        rng.normal(size=(5, structure.layout.n_coefficients)), structure.identity_statistic
    )
    values = np.stack(
        [structure.curvature_products(own, rows[None].repeat(K, axis=0))[0] for own in curvature]
    )
    values += linear[:, 0] @ rows + constant[:, :1]
    for n_functions in (1, 5):
        of_rows = structure.features.values(
            constant[:n_functions, 0], linear[:n_functions, 0], curvature[:n_functions, 0]
        )
        np.testing.assert_allclose(of_rows(rows), values[:n_functions], rtol=1e-12, atol=1e-13)


@pytest.mark.slow
@every_type
def test_unit_is_the_statistic_of_a_standard_normal(covariance_type, rng):
    structure = structure_of(covariance_type)
    whitened = rng.normal(size=(K, P, 200_000))
    shares = np.full((K, 200_000), 1 / (200_000 * K // structure.n_groups))
    np.testing.assert_allclose(
        structure.second_moments(whitened, shares),
        np.broadcast_to(
            structure.identity_statistic,
            (structure.n_groups, *structure.identity_statistic.shape),
        ),
        atol=0.03,
    )


@every_type
def test_what_is_reported_can_be_read_back(covariance_type, rng):
    structure = structure_of(covariance_type)
    entries = rng.normal(size=(2, structure.n_groups * structure.n_quadratic))
    by_group = structure.from_unique_entries(entries)
    np.testing.assert_array_equal(structure.unique_entries(by_group), entries)
    np.testing.assert_array_equal(structure.by_group(structure.reported(by_group[0])), by_group[0])
    assert len(structure.entry_names(list("abcd"))) == structure.n_quadratic
    counts = np.arange(1.0, 1.0 + structure.n_groups)
    number = structure.layout.reported_numbers(counts)
    counts[:] = np.nan
    assert np.all(np.isfinite(number))  # no view of what it was made from


@every_type
def test_vectors_have_the_norm_of_statistics_and_the_kernel_is_one_of_features(covariance_type, rng):
    structure = structure_of(covariance_type)
    factors = structure.diagonal_factors(np.full(P, 0.6))
    origin = structure.identity_statistic - 0.3 * structure.power * structure.gram(factors)
    np.testing.assert_allclose(
        np.linalg.norm(structure.flattened(origin), axis=-1),
        np.sqrt(np.square(origin).sum(axis=tuple(range(1, origin.ndim)))),
    )
    rows, others = rng.normal(size=(2, P, 6))
    entries = np.arange(structure.n_quadratic)
    features, other_features = (
        structure.features.some_quadratic(y, origin[0], entries) for y in (rows, others)
    )
    kernel = structure.features.kernel(rows, others, rows.T @ others, origin[0])
    np.testing.assert_allclose(kernel, features.T @ other_features, rtol=1e-11, atol=1e-12)


@every_type
def test_newtons_step_adds_to_the_sufficient_statistics(covariance_type, rng):
    # a step by the iteration's own residual is the iteration
    model = {"covariance_type": covariance_type, "prior": "fixed"}  # With it iterations change nothing else.
    estimator = mixture(model, 2, solver="coordinate_ascent", tol=1e9)
    X = rng.normal(size=(60, 3)) + 2.0 * np.eye(2, 3)[np.arange(60) % 2]
    posterior = posterior_of(estimator.fit(X))
    result = e_step(rows_of(estimator, X), posterior)
    by_iteration, by_step = (
        posterior.m_step(result.moments),
        posterior.after_step(posterior.residual(result.moments)),
    )
    for name in ("counts", "centred_means", "covariance_cholesky"):
        np.testing.assert_allclose(
            getattr(by_step, name), getattr(by_iteration, name), rtol=1e-11, atol=1e-12
        )


@pytest.mark.parametrize(
    ("n_features", "n_components", "total", "factorization"),
    [(1, 5, 2.5, "independent"), (3, 5, 2.5, "joint"), (1, 4, 2.0, "joint")],
    ids=["information below zero", "too few degrees of freedom", "information of zero"],
)
def test_an_improper_precision_is_refused(n_features, n_components, total, factorization, rng):
    # tied and flat: nu0 = P + 1 - K, so that K means take more than a few weighted rows give
    X = rng.normal(size=(2 * n_components, n_features))
    model = {"covariance_type": "tied", "prior": "flat", "factorization": factorization, "reg_covar": 0.1}
    start = np.repeat(np.eye(n_components), 2, axis=0)
    with pytest.raises(
        ValueError, match=r"all components together .* no proper posterior under prior='flat'"
    ):
        mixture(model, n_components, init_params=start).fit(X, sample_weight=np.full(len(X), total / len(X)))


def test_costs_follow_the_structure():
    result = SimpleNamespace(n_alternatives=400, n_ambiguous_pairs=500)
    at = {kind: SimpleNamespace(structure=structure_of(kind, 2, 2)) for kind in COVARIANCE_TYPES}
    products = {
        kind: GaussianInformation(q).costs(complete_rows(10_000), result).product for kind, q in at.items()
    }
    assert products["full"] > products["diag"] > products["tied"] == products["spherical"]
    large = (SimpleNamespace(structure=structure_of(kind, 2, 30)) for kind in ("full", "tied"))
    full, tied = (GaussianInformation(q).costs(complete_rows(1000), result) for q in large)
    assert full.gram > tied.gram
