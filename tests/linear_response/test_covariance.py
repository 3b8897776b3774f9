"""Eq. lrvb_est, nuisance_lrvb_est and influence_score against the whole (I - V H)^-1 V by dense algebra."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import block_diag

from sklearn_lrvb.linear_response import (
    IndefiniteInformationError,
    linear_response_covariance,
    linear_response_influence,
    schur_linear_response_covariance,
)

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


def containers(stack):
    """The same block diagonal matrix in every container that is accepted."""
    dense = block_diag(*stack)
    return {
        "stack": stack,
        "dense": dense,
        "csr": sparse.csr_array(dense),
        "csc_matrix": sparse.csc_matrix(dense),
        "bsr": sparse.bsr_array(dense, blocksize=stack.shape[1:]),
    }


@pytest.mark.parametrize("container", list(containers(categorical_blocks())))
@pytest.mark.parametrize("coupling", [np.asarray, sparse.csr_array, sparse.coo_matrix])
@pytest.mark.parametrize("curvature", [None, np.asarray, sparse.csr_array])
def test_schur_complement_is_the_block_of_the_whole(model, container, coupling, curvature):
    V_alpha, H_alpha, H_alpha_z, V_z, H_z = model
    expected = written_out(*whole(V_alpha, H_alpha, H_alpha_z, V_z, None if curvature is None else H_z))
    covariance = schur_linear_response_covariance(
        V_alpha,
        H_alpha,
        coupling(H_alpha_z),
        containers(V_z)[container],
        None if curvature is None else curvature(H_z),
    )
    sd = np.sqrt(np.diag(expected)[:N_ALPHA])
    error = np.abs(covariance - expected[:N_ALPHA, :N_ALPHA]) / np.outer(sd, sd)
    assert error.max() < 1e-12
    np.testing.assert_array_equal(covariance, covariance.T)


def test_blocks_of_curvature_beside_blocks_of_covariance(model):
    V_alpha, H_alpha, H_alpha_z, V_z, _ = model
    H_z = 0.3 * np.random.default_rng(2).normal(size=V_z.shape)
    H_z = H_z + H_z.transpose(0, 2, 1)
    expected = schur_linear_response_covariance(V_alpha, H_alpha, H_alpha_z, V_z, block_diag(*H_z))
    np.testing.assert_allclose(
        schur_linear_response_covariance(V_alpha, H_alpha, H_alpha_z, V_z, H_z), expected, rtol=1e-11
    )


def test_permuted_nuisance_variables_change_nothing(model):
    V_alpha, H_alpha, H_alpha_z, V_z, H_z = model
    expected = schur_linear_response_covariance(V_alpha, H_alpha, H_alpha_z, V_z, H_z)
    order = np.random.default_rng(3).permutation(N_Z)
    V_z = sparse.csr_array(block_diag(*V_z)[np.ix_(order, order)])
    H_z = sparse.csr_array(H_z[np.ix_(order, order)])
    permuted = schur_linear_response_covariance(V_alpha, H_alpha, H_alpha_z[:, order], V_z, H_z)
    np.testing.assert_allclose(permuted, expected, rtol=1e-11)


def test_repeated_and_explicit_zero_entries_of_sparse_matrices():
    # 0.5 + 0.5 at [0, 0], and a stored zero that would connect the two variables.
    V_z = sparse.csr_array(([0.5, 0.5, 0.0, 1.0], [0, 0, 1, 1], [0, 3, 4]), shape=(2, 2))
    before = V_z.data.copy()
    for H_z in (None, -np.eye(2), sparse.csr_array(-np.eye(2))):
        dense = None if H_z is None else -np.eye(2)
        expected = schur_linear_response_covariance([[1.0]], [[-0.1]], [[0.3, 0.2]], np.eye(2), dense)
        found = schur_linear_response_covariance([[1.0]], [[-0.1]], [[0.3, 0.2]], V_z, H_z)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_array_equal(V_z.data, before)


def test_no_nuisance_variables_and_no_variables():
    V, H = np.eye(3), -0.1 * np.ones((3, 3))
    expected = linear_response_covariance(V, H)
    for V_z in (np.zeros((0, 0)), np.zeros((0, 2, 2)), np.zeros((3, 0, 0)), sparse.csr_array((0, 0))):
        for H_z in (None, np.zeros((0, 0))):
            found = schur_linear_response_covariance(V, H, np.zeros((3, 0)), V_z, H_z)
            np.testing.assert_array_equal(found, expected)
    assert linear_response_covariance(np.zeros((0, 0)), np.zeros((0, 0))).shape == (0, 0)
    assert linear_response_covariance(np.zeros((2, 2)), np.ones((2, 2))).tolist() == [[0, 0], [0, 0]]


def test_sparse_arguments_where_dense_ones_are_usual_and_complex_ones():
    V, H = np.eye(3), -0.1 * np.ones((3, 3))
    expected = linear_response_covariance(V, H)
    np.testing.assert_array_equal(
        linear_response_covariance(sparse.eye_array(3), sparse.csr_array(H)), expected
    )
    with pytest.raises(ValueError, match=r"^H must be real"):
        linear_response_covariance(V, H + 0j)


@pytest.mark.parametrize("with_curvature", [False, True])
def test_memory_does_not_grow_with_the_square_of_the_nuisance_variables(with_curvature):
    n_blocks = 20_000
    V_z = categorical_blocks(n_blocks)
    H_alpha_z = 1e-3 * np.random.default_rng(0).normal(size=(2, 3 * n_blocks))
    H_z = 0.1 * np.ones_like(V_z) if with_curvature else None
    tracemalloc.start()
    schur_linear_response_covariance(np.eye(2), np.zeros((2, 2)), H_alpha_z, V_z, H_z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * V_z.nbytes  # the matrix would take 20,000 times as much


# Influence.


@pytest.mark.parametrize("curvature", [False, True])
@pytest.mark.parametrize("container", ["stack", "dense", "csr"])
def test_influence_is_the_covariance_with_infinitesimal_noise(model, curvature, container):
    # x is one more factor with V_x = epsilon S_x, and the influence is the limit of Sigma_alpha,x / epsilon.
    V_alpha, H_alpha, H_alpha_z, V_z, H_z = model
    H_z = H_z if curvature else None
    rng = np.random.default_rng(4)
    n_x = 3
    H_alpha_x = rng.normal(size=(N_ALPHA, n_x)) / np.sqrt(np.diag(V_alpha))[:, None]
    H_z_x = rng.normal(size=(N_Z, n_x))
    S_x = np.cov(rng.normal(size=(n_x, 2)))
    Sigma = schur_linear_response_covariance(V_alpha, H_alpha, H_alpha_z, V_z, H_z)
    influence = linear_response_influence(
        Sigma, H_alpha_x, H_alpha_z, containers(V_z)[container], H_z_x, S_x, H_z
    )
    V, H = whole(V_alpha, H_alpha, H_alpha_z, V_z, H_z)
    epsilon = 1e-8
    V = block_diag(V, epsilon * S_x)
    coupling = np.concatenate([H_alpha_x, H_z_x])
    H = np.block([[H, coupling], [coupling.T, np.zeros((n_x, n_x))]])
    limit = written_out(V, H)[:N_ALPHA, N_ALPHA + N_Z :] / epsilon
    np.testing.assert_allclose(influence, limit, rtol=1e-5, atol=1e-6 * np.abs(limit).max(axis=1).min())


def test_influence_of_observations_on_a_normal_mean():
    # x_n ~ N(mu, 1) with the prior N(0, 1/b): E mu = sum x / (N + b), and each row moves it by 1/(N + b).
    n, b = 5, 2.0
    influence = linear_response_influence(
        [[1.0 / (n + b)]], np.ones((1, n)), np.zeros((1, 1)), [[1.0]], np.zeros((1, n)), np.eye(n)
    )
    np.testing.assert_allclose(influence, np.full((1, n), 1.0 / (n + b)), rtol=1e-15)


# Errors.


def test_unstable_fixed_points_are_refused(model):
    V_alpha, H_alpha, H_alpha_z, V_z, H_z = model
    pull = np.diag([0.0, 2.0, 0.0, 0.0]) / np.diag(V_alpha)
    with pytest.raises(IndefiniteInformationError, match=r"smallest eigenvalue .* is -.*entries \[1\]"):
        schur_linear_response_covariance(V_alpha, H_alpha + pull, H_alpha_z, V_z)
    with pytest.raises(IndefiniteInformationError, match="no strict local optimum") as error:
        linear_response_covariance(np.diag([1.0, 4.0, 0.0]), np.diag([0.5, 0.5, 9.0]))
    assert error.value.smallest_eigenvalue == pytest.approx(-1.0)
    np.testing.assert_allclose(np.abs(error.value.direction), [0, 1, 0], atol=1e-12)
    directions = []
    for container in ("stack", "dense"):
        curvature = 20 * H_z if container == "dense" else sparse.csr_array(20 * H_z)
        with pytest.raises(IndefiniteInformationError, match=r"in z alone, .* eigenvalue .* is -") as error:
            schur_linear_response_covariance(
                V_alpha, H_alpha, H_alpha_z, containers(V_z)[container], curvature
            )
        directions.append(error.value.direction)
    np.testing.assert_allclose(np.abs(directions[0]), np.abs(directions[1]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("sparsely", [False, True])
def test_marginally_unstable_nuisance_variables_are_refused(sparsely):
    # I - V_z H_z is exactly singular.
    V_z, H_z = np.diag([1.0, 0.5]), np.diag([1.0, 0.0])
    if sparsely:
        V_z, H_z = sparse.csr_array(V_z), sparse.csr_array(H_z)
    with pytest.raises(IndefiniteInformationError, match="in z alone"):
        schur_linear_response_covariance(np.eye(1), np.zeros((1, 1)), np.ones((1, 2)), V_z, H_z)


def test_shapes_that_do_not_fit_say_which_block(model):
    V_alpha, H_alpha, H_alpha_z, V_z, _ = model

    def refused(message, function, *arguments):
        with pytest.raises(ValueError, match=message):
            function(*arguments)

    schur, influence = schur_linear_response_covariance, linear_response_influence
    refused(r"^V must be a matrix, but has 1 dim", linear_response_covariance, [1.0], [[1.0]])
    refused(r"^V has shape \(4, 3\).*expected \(4, 4\)", linear_response_covariance, V_alpha[:, :3], H_alpha)
    refused(r"^H has shape \(3, 3\).*expected \(4, 4\)", linear_response_covariance, V_alpha, H_alpha[:3, :3])
    refused(
        r"^H_alpha has shape \(4, 4\).*V_alpha has .*\(3, 3\)",
        schur,
        V_alpha[:3, :3],
        H_alpha,
        H_alpha_z,
        V_z,
    )
    refused(r"^V_alpha has shape \(4, 3\).*square", schur, V_alpha[:, :3], H_alpha, H_alpha_z, V_z)
    refused(
        r"^H_alpha_z has shape \(4, 17\).*expected \(4, 18\)", schur, V_alpha, H_alpha, H_alpha_z[:, :17], V_z
    )
    refused(r"^H_alpha_z has shape \(18, 4\)", schur, V_alpha, H_alpha, sparse.csr_array(H_alpha_z.T), V_z)
    refused(r"^V_z has shape \(6, 2, 3\)", schur, V_alpha, H_alpha, H_alpha_z, V_z[:, :2])
    refused(r"^V_z has shape \(2, 3\)", schur, V_alpha, H_alpha, H_alpha_z, V_z[0, :2])
    refused(r"^V_z has shape \(17, 18\)", schur, V_alpha, H_alpha, H_alpha_z, sparse.csr_array((17, 18)))
    refused(
        r"^H_z has shape \(3, 3\).*expected \(18, 18\)", schur, V_alpha, H_alpha, H_alpha_z, V_z, np.eye(3)
    )
    S, H_alpha_x, H_z_x = np.eye(2), np.ones((4, 2)), np.ones((18, 2))
    refused(
        r"^Sigma_alpha has shape \(4, 3\)", influence, V_alpha[:, :3], H_alpha_x, H_alpha_z, V_z, H_z_x, S
    )
    refused(r"^H_alpha_x has shape \(4, 2\)", influence, V_alpha, H_alpha_x, H_alpha_z, V_z, H_z_x, np.eye(3))
    refused(r"^H_z_x has shape \(4, 2\)", influence, V_alpha, H_alpha_x, H_alpha_z, V_z, H_z_x[:4], S)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(model, value):
    for position, name in enumerate(["V_alpha", "H_alpha", "H_alpha_z", "V_z", "H_z"]):
        for container in (np.asarray, sparse.csr_array):
            if container is sparse.csr_array and name in ("V_alpha", "H_alpha"):
                continue
            arguments = [np.array(part) for part in model]
            arguments[3] = block_diag(*arguments[3])
            arguments[position][0, 1] = value
            arguments[position] = container(arguments[position])
            with pytest.raises(ValueError, match=f"^{name} must be finite"):
                schur_linear_response_covariance(*arguments)


def test_matrices_that_are_not_what_they_must_be_are_refused(model):
    V_alpha, H_alpha, H_alpha_z, V_z, H_z = model
    crooked = H_alpha.copy()
    crooked[0, 2] *= 1.01
    with pytest.raises(ValueError, match=r"H must be symmetric.*H\[(0, 2|2, 0)\]"):
        linear_response_covariance(V_alpha, crooked)
    for container in (np.asarray, sparse.csr_array):
        crooked = H_z.copy()
        crooked[np.nonzero(H_z)[0][0], np.nonzero(H_z)[1][0]] += 0.1
        with pytest.raises(ValueError, match="H_z must be symmetric"):
            schur_linear_response_covariance(V_alpha, H_alpha, H_alpha_z, V_z, container(crooked))
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    for bad in (indefinite, -np.eye(2), np.diag([1.0, -1e-9]), np.array([[0.0, 1.0], [1.0, 1.0]])):
        with pytest.raises(ValueError, match=r"^V must be a covariance.*(eigenvalue is -|variance -)"):
            linear_response_covariance(bad, np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"^V must be a covariance.*asymmetry"):
        linear_response_covariance(np.array([[1.0, 0.5], [0.4, 1.0]]), np.zeros((2, 2)))
    V_z[4] = -V_z[4]
    with pytest.raises(ValueError, match=r"^V_z \(statistics 12, 13, 14\) must be a covariance"):
        schur_linear_response_covariance(V_alpha, H_alpha, H_alpha_z, V_z)


def test_round_off_in_symmetry_is_forgiven_in_any_units():
    V = np.diag([1e-16, 1e16])
    H = np.array([[-1e16, 0.3], [0.3 + 1e-10, -1e-16]])
    covariance = linear_response_covariance(V, H)
    np.testing.assert_array_equal(covariance, covariance.T)
    np.testing.assert_allclose(covariance, written_out(V, 0.5 * (H + H.T)), rtol=1e-12)
