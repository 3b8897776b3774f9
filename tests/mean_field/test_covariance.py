"""Eq. lrvb_est, nuisance_lrvb_est and influence_score against the whole (I - V H)^-1 V by dense algebra."""

import tracemalloc

import numpy as np
import pytest
from catalogue import set_sizes
from scipy import sparse
from scipy.linalg import block_diag

from sklearn_lrvb.linear_response import IndefiniteInformationError
from sklearn_lrvb.mean_field.linear_response import linear_response_covariance, linear_response_influence

N_ALPHA, N_BLOCKS, BLOCK = 4, 6, 3
N_Z = N_BLOCKS * BLOCK


def written_out(V, H):
    return np.linalg.solve(np.eye(len(V)) - V @ H, V)


def categorical_blocks(n_blocks=N_BLOCKS):
    """diag(p) - p p' of random probabilities: singular, (n_blocks, BLOCK, BLOCK)."""
    p = np.random.default_rng(0).dirichlet(np.ones(BLOCK), size=n_blocks)
    return np.einsum("ni,ij->nij", p, np.eye(BLOCK)) - p[:, :, None] * p[:, None, :]


@pytest.fixture
def model():
    """V_alpha, H_alpha, H_alpha_z, V_z (a stack) and H_z of a stable fixed point."""
    rng = np.random.default_rng(1)
    V_alpha = np.cov(rng.normal(size=(N_ALPHA, 40)) * np.array([1e-3, 1.0, 10.0, 1e4])[:, None])
    sd = np.sqrt(np.diag(V_alpha))
    H_alpha = 0.05 * rng.normal(size=(N_ALPHA, N_ALPHA)) / np.outer(sd, sd)
    H_z = 0.2 * rng.normal(size=(N_Z, N_Z)) * (rng.random((N_Z, N_Z)) < 0.15)
    H_alpha_z = 0.2 * rng.normal(size=(N_ALPHA, N_Z)) / sd[:, None]
    return V_alpha, H_alpha + H_alpha.T, H_alpha_z, categorical_blocks(), H_z + H_z.T


def whole(V_alpha, H_alpha, H_alpha_z, V_z, H_z=None):
    """V and H of all statistics, with none eliminated."""
    H_z = np.zeros((N_Z, N_Z)) if H_z is None else H_z
    return block_diag(V_alpha, *V_z), np.block([[H_alpha, H_alpha_z], [H_alpha_z.T, H_z]])


def test_is_the_papers_formula_with_a_singular_V(model):
    V, H = whole(*model)
    assert np.linalg.matrix_rank(V) == N_ALPHA + N_BLOCKS * (BLOCK - 1)
    covariance, expected = linear_response_covariance(V, H), written_out(V, H)
    sd = np.sqrt(np.diag(expected))
    assert (np.abs(covariance - expected) / np.outer(sd, sd)).max() < 1e-12
    np.testing.assert_array_equal(covariance, covariance.T)


def test_no_curvature_is_the_mean_field_answer(model):
    V, _ = whole(*model)
    np.testing.assert_allclose(linear_response_covariance(V, 0 * V), V, atol=1e-14 * np.abs(V).max())


def test_exact_for_a_multivariate_normal():
    # Prop. lrvb_mvn: V has the inverses of the diagonal blocks of the precision, H minus its other blocks.
    precision = np.linalg.inv(np.cov(np.random.default_rng(0).normal(size=(5, 9))))
    blocks = block_diag(precision[:2, :2], precision[2:3, 2:3], precision[3:, 3:])
    covariance = linear_response_covariance(np.linalg.inv(blocks), blocks - precision)
    np.testing.assert_allclose(covariance, np.linalg.inv(precision), rtol=1e-12)


CONTAINERS = {
    "dense": np.asarray,
    "csr": sparse.csr_array,
    "csc_matrix": sparse.csc_matrix,
    "coo": sparse.coo_array,
}
ALPHA = np.arange(N_ALPHA)


@pytest.fixture(params=["dense system", "sparse system"])
def way(request, monkeypatch):
    """Sparse arguments are computed with as dense arrays where they are small."""
    if request.param == "sparse system":
        set_sizes(monkeypatch, dense_system=0)


@pytest.mark.parametrize("of_covariance", CONTAINERS)
@pytest.mark.parametrize("of_curvature", CONTAINERS)
@pytest.mark.parametrize("with_nuisance_curvature", [False, True])
def test_nuisance_variables_are_eliminated_in_any_container(
    model, of_covariance, of_curvature, with_nuisance_curvature, way
):
    V, H = whole(*model[:4], model[4] if with_nuisance_curvature else None)
    expected = written_out(V, H)[:N_ALPHA, :N_ALPHA]
    covariance = linear_response_covariance(
        CONTAINERS[of_covariance](V), CONTAINERS[of_curvature](H), index=ALPHA
    )
    sd = np.sqrt(np.diag(expected))
    assert (np.abs(covariance - expected) / np.outer(sd, sd)).max() < 1e-12
    np.testing.assert_array_equal(covariance, covariance.T)


def test_an_index_is_a_part_of_the_whole(model):
    V, H = whole(*model)
    covariance, is_asked = linear_response_covariance(V, H), np.arange(len(V)) % 3 == 1
    for index in ([7, 0, 5], np.flatnonzero(is_asked), is_asked):
        part = linear_response_covariance(sparse.csr_array(V), sparse.csr_array(H), index)
        numbers = np.arange(len(V))[index]
        np.testing.assert_allclose(part, covariance[np.ix_(numbers, numbers)], rtol=1e-9, atol=1e-12)


def test_permuted_nuisance_variables_change_nothing(model, way):
    V, H = whole(*model)
    expected = linear_response_covariance(sparse.csr_array(V), sparse.csr_array(H), ALPHA)
    order = np.concatenate([ALPHA, N_ALPHA + np.random.default_rng(3).permutation(N_Z)])
    permuted = (sparse.csr_array(matrix[np.ix_(order, order)]) for matrix in (V, H))
    np.testing.assert_allclose(linear_response_covariance(*permuted, ALPHA), expected, rtol=1e-11)


def test_repeated_and_explicit_zero_entries_of_sparse_matrices(way):
    # 0.5 + 0.5 at [0, 0], and a stored zero that would connect the two variables.
    V = sparse.csr_array(([0.5, 0.5, 0.0, 1.0], [0, 0, 1, 1], [0, 3, 4]), shape=(2, 2))
    H, before = np.array([[-0.1, 0.3], [0.3, -1.0]]), V.data.copy()
    expected = linear_response_covariance(np.eye(2), H)
    for container in (np.asarray, sparse.csr_array):
        np.testing.assert_allclose(linear_response_covariance(V, container(H)), expected, rtol=1e-14)
    np.testing.assert_array_equal(V.data, before)


def test_no_variables_and_variables_without_variance():
    for container in (np.asarray, sparse.csr_array):
        empty = container(np.zeros((0, 0)))
        assert linear_response_covariance(empty, empty).shape == (0, 0)
        found = linear_response_covariance(container(np.zeros((2, 2))), container(np.ones((2, 2))))
        assert found.tolist() == [[0, 0], [0, 0]]


def test_complex_arguments_are_refused():
    for container in (np.asarray, sparse.csr_array):
        with pytest.raises(ValueError, match=r"^H must be real"):
            linear_response_covariance(np.eye(3), container(-0.1 * np.ones((3, 3)) + 0j))


@pytest.mark.slow
@pytest.mark.parametrize("with_curvature", [False, True])
def test_memory_does_not_grow_with_the_square_of_the_nuisance_variables(with_curvature):
    n_blocks = 20_000
    stack = categorical_blocks(n_blocks)
    V = sparse.block_diag([np.eye(2), *stack], format="csr")
    coupling = 1e-3 * np.random.default_rng(0).normal(size=(2, 3 * n_blocks))
    curvature = 0.1 * np.ones((3, 3)) if with_curvature else np.zeros((3, 3))
    of_nuisance = sparse.kron(sparse.eye_array(n_blocks), curvature)
    H = sparse.block_array([[None, sparse.csr_array(coupling)], [sparse.csr_array(coupling.T), of_nuisance]])
    tracemalloc.start()
    covariance = linear_response_covariance(V, H, [0, 1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80 * stack.nbytes  # the matrix would take 20,000 times as much
    # A categorical variable's probabilities sum to one, so that a constant curvature changes nothing.
    expected = written_out(np.eye(2), coupling @ V[2:, 2:] @ coupling.T)
    np.testing.assert_allclose(covariance, expected, rtol=1e-10)


# Influence.


@pytest.mark.parametrize("curvature", [False, True])
@pytest.mark.parametrize("container", CONTAINERS)
def test_influence_is_the_covariance_with_infinitesimal_noise(model, curvature, container):
    # x is one more factor with V_x = epsilon S_x, and the influence is the limit of Sigma_alpha,x / epsilon.
    V, H = whole(*model[:4], model[4] if curvature else None)
    rng = np.random.default_rng(4)
    n_x = 3
    H_x = rng.normal(size=(len(V), n_x))
    H_x[:N_ALPHA] /= np.sqrt(np.diag(V)[:N_ALPHA, None])
    S_x = np.cov(rng.normal(size=(n_x, 2)))
    influence = linear_response_influence(*map(CONTAINERS[container], (V, H, H_x)), S_x, ALPHA)
    epsilon = 1e-8
    beside = block_diag(V, epsilon * S_x)
    with_x = np.block([[H, H_x], [H_x.T, np.zeros((n_x, n_x))]])
    limit = written_out(beside, with_x)[:N_ALPHA, len(V) :] / epsilon
    np.testing.assert_allclose(influence, limit, rtol=1e-5, atol=1e-6 * np.abs(limit).max(axis=1).min())
    np.testing.assert_allclose(influence, linear_response_influence(V, H, H_x, S_x)[:N_ALPHA], rtol=1e-9)


def test_influence_is_the_corrected_equation_of_the_paper(model):
    _, _, H_alpha_z, V_z, H_z = model
    V, H = whole(*model)
    rng = np.random.default_rng(4)
    H_x, S_x = rng.normal(size=(len(V), 3)), rng.normal(size=(3, 2))
    Sigma_alpha = written_out(V, H)[:N_ALPHA, :N_ALPHA]
    of_nuisance = written_out(block_diag(*V_z), H_z)
    expected = Sigma_alpha @ (H_x[:N_ALPHA] + H_alpha_z @ of_nuisance @ H_x[N_ALPHA:]) @ S_x
    found = linear_response_influence(V, H, H_x, S_x, ALPHA)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())


def test_influence_of_observations_on_a_normal_mean():
    # x_n ~ N(mu, 1) with the prior N(0, 1/b): E mu = sum x / (N + b), and each row moves it by 1/(N + b).
    n, b = 5, 2.0
    influence = linear_response_influence([[1.0 / (n + b)]], [[0.0]], np.ones((1, n)), np.eye(n))
    np.testing.assert_allclose(influence, np.full((1, n), 1.0 / (n + b)), rtol=1e-15)


# Errors.


def test_unstable_fixed_points_are_refused(model, way):
    V, H = whole(*model)
    H[1, 1] += 2.0 / V[1, 1]
    directions = []
    for container in (np.asarray, sparse.csr_array):
        with pytest.raises(
            IndefiniteInformationError, match=r"smallest eigenvalue .* is -.*entries \[1\]"
        ) as e:
            linear_response_covariance(container(V), container(H), ALPHA)
        directions.append(e.value.direction)
    np.testing.assert_allclose(np.abs(directions[0]), np.abs(directions[1]), rtol=1e-6, atol=1e-9)
    with pytest.raises(IndefiniteInformationError, match="no strict local optimum") as error:
        linear_response_covariance(np.diag([1.0, 4.0, 0.0]), np.diag([0.5, 0.5, 9.0]))
    assert error.value.smallest_eigenvalue == pytest.approx(-1.0)
    np.testing.assert_allclose(np.abs(error.value.direction), [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_marginally_unstable_nuisance_variables_are_refused(container, way):
    # I - V_z H_z is exactly singular, and no other statistic depends on z.
    V, H = np.diag([1.0, 1.0, 0.5]), np.diag([0.0, 1.0, 0.0])
    with pytest.raises(IndefiniteInformationError, match=r"largest entries \[1\]"):
        linear_response_covariance(container(V), container(H), [0])


def test_shapes_that_do_not_fit_say_which_argument(model):
    V, H = whole(*model)
    for message, arguments in {
        r"^V must be a matrix, but has 1 dim": ([1.0], [[1.0]]),
        r"^V has shape \(22, 3\).*expected \(22, 22\)": (V[:, :3], H),
        r"^V has shape \(17, 18\).*square": (sparse.csr_array((17, 18)), H),
        r"^H has shape \(3, 3\).*V has .*expected \(22, 22\)": (V, H[:3, :3]),
        r"^H has shape \(3, 22\)": (V, sparse.csr_array(H[:3])),
    }.items():
        with pytest.raises(ValueError, match=message):
            linear_response_covariance(*arguments)
    with pytest.raises(ValueError, match=r"^H_x has shape \(22, 2\).*S_x has 3 rows"):
        linear_response_influence(V, H, np.ones((22, 2)), np.eye(3))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_numbers_that_are_not_finite_are_refused(model, value, container):
    for position, name in enumerate(["V", "H", "H_x", "S_x"]):
        arguments = [*map(np.array, whole(*model)), np.ones((N_ALPHA + N_Z, 2)), np.eye(2)]
        arguments[position][0, 1] = value
        arguments[position] = container(arguments[position])
        with pytest.raises(ValueError, match=f"^{name} must be finite"):
            linear_response_influence(*arguments)


def test_matrices_that_are_not_what_they_must_be_are_refused(model):
    V, H = whole(*model)
    V_z = model[3]
    crooked = H.copy()
    crooked[0, 2] *= 1.01
    for container in (np.asarray, sparse.csr_array):
        with pytest.raises(ValueError, match=r"H must be symmetric.*H\[(0, 2|2, 0)\]"):
            linear_response_covariance(V, container(crooked))
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    for bad in (indefinite, -np.eye(2), np.diag([1.0, -1e-9]), np.array([[0.0, 1.0], [1.0, 1.0]])):
        with pytest.raises(ValueError, match=r"^V must be a covariance.*(eigenvalue is -|variance -)"):
            linear_response_covariance(bad, np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"^V must be a covariance.*asymmetry"):
        linear_response_covariance(np.array([[1.0, 0.5], [0.4, 1.0]]), np.zeros((2, 2)))
    V_z[4] = -V_z[4]
    with pytest.raises(ValueError, match=r"^V \(statistics 16, 17, 18\) must be a covariance"):
        linear_response_covariance(sparse.csr_array(block_diag(model[0], *V_z)), H)


def test_round_off_in_symmetry_is_forgiven_in_any_units():
    V = np.diag([1e-16, 1e16])
    H = np.array([[-1e16, 0.3], [0.3 + 1e-10, -1e-16]])
    covariance = linear_response_covariance(V, H)
    np.testing.assert_array_equal(covariance, covariance.T)
    np.testing.assert_allclose(covariance, written_out(V, 0.5 * (H + H.T)), rtol=1e-12)
