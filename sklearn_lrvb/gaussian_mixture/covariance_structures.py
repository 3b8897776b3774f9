"""What the shape of the components' covariance matrices decides: one class a structure.

*Conventions.* Component k is seen in its own frame, y = W_k (x - m_k) with W_k' W_k = E Lambda_k,
where E Lambda is the identity. Rows come feature-major: a block is (P, n), whitened (K, P, n). The
features of a row in component k are the Hermite polynomials of degree <= 2 (mathematics in
`response`),

    h = (1, y, svec(y y' - O_k)/sqrt 2),        O_k = I - reg_covar W_k W_k',

F of them, and a coefficient array beta (..., K, F) stands for the change d rho_k = beta_k . h_k of the
log responsibilities. O_k is the identity less the known noise on x, which enters every y y'.
"""

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.exponential_families import wishart
from sklearn_lrvb.exponential_families.symmetric import (
    from_unique_entries,
    smat,
    svec,
    unique_entries,
    upper_triangle,
)

_MATRIX_BYTES = 2**21  # of P x P matrices at once: in cache


class FullCovariance:
    """Every component has a precision matrix (P, P) of its own, with a Wishart factor.

    Parameters
    ----------
    n_features : int, P
    """

    def __init__(self, n_features):
        self.n_features = n_features
        self.n_coefficients = 1 + n_features + n_features * (n_features + 1) // 2

    # The posterior, given counts (K,).

    def information(self, counts, prior_degrees_of_freedom):
        """c_k, with E Lambda_k = c_k A_k^-1, (K,)."""
        return prior_degrees_of_freedom + counts

    def degrees_of_freedom(self, information, independent):
        """Wishart degrees of freedom nu_k, (K,)."""
        return information + 1.0 if independent else information

    def log_determinant_excess_variance(self, degrees_of_freedom):
        """Var log|Lambda_k| that Lambda_k does not explain, (K,)."""
        return wishart.log_determinant_excess_variance(degrees_of_freedom, self.n_features)

    def mean_excess_factor(self, information):
        """Student-t excess of Cov(mu_k) under joint factors over E Sigma_k/tau_k, (K,).

        Left out, as zero, where the variance is infinite (c_k <= P + 1).
        """
        finite = information > self.n_features + 1
        return np.where(
            finite,
            (self.n_features + 1) / np.where(finite, information - self.n_features - 1, 1),
            0,
        )

    # Frames.

    def whiteners(self, roots):
        """W_k with W_k roots_k = I, where roots_k is the Cholesky factor of E(Lambda_k)^-1."""
        identity = np.eye(self.n_features)
        return np.stack([solve_triangular(root, identity, lower=True) for root in roots])

    def log_determinants(self, roots):
        """log|E(Lambda_k)^-1|, (K,)."""
        return 2.0 * np.log(np.einsum("kpp->kp", roots)).sum(axis=1)

    def whiten(self, whiteners, offsets, block):
        """Rows in every component's frame: (P, n) -> (K, P, n)."""
        return np.matmul(whiteners, block - offsets[:, :, None])

    def second_moments(self, whitened, weights):
        """Sums of weight y y', exactly symmetric: (K, P, n), (K, n) -> (K, P, P)."""
        moments = np.empty((len(whitened), self.n_features, self.n_features))
        for k, scaled in enumerate(np.sqrt(weights)[:, None, :] * whitened):
            np.matmul(scaled, scaled.T, out=moments[k])  # one array twice: half the flops
        return moments

    def signed_second_moments(self, whitened, weights):
        """`second_moments` where weights may be negative."""
        moments = np.matmul(weights[:, None, :] * whitened, whitened.transpose(0, 2, 1))
        return 0.5 * (moments + moments.transpose(0, 2, 1))

    # Features and their coefficients.

    def second_moment_origin(self, whiteners, reg_covar):
        """O_k = I - reg_covar W_k W_k', (K, P, P)."""
        return np.eye(self.n_features) - reg_covar * whiteners @ whiteners.transpose(0, 2, 1)

    def feature_entries(self, whitened, origin, entries):
        """Some of h of one component: (P, n), (P, P), int array (m,) -> (m, n)."""
        selected = np.empty((len(entries), whitened.shape[1]))
        linear = entries <= self.n_features
        selected[linear] = np.where(entries[linear, None] == 0, 1.0, whitened[entries[linear] - 1])
        row, column = (
            part[entries[~linear] - 1 - self.n_features] for part in upper_triangle(self.n_features)
        )
        products = whitened[row] * whitened[column] - origin[row, column, None]
        selected[~linear] = products * np.where(row == column, np.sqrt(0.5), 1.0)[:, None]
        return selected

    def feature_kernel(self, whitened, others, origin, mean_precision, information):
        """h' R h without the intercept, from inner products: (P, n), (P, m) -> (n, m)."""
        kernel = whitened.T @ others
        quadratic = np.square(kernel)
        quadratic -= np.einsum("pn,pn->n", whitened, origin @ whitened)[:, None]
        quadratic -= np.einsum("pn,pn->n", others, origin @ others)
        quadratic += np.einsum("pq,pq->", origin, origin)
        quadratic *= 0.5 / information
        kernel /= mean_precision
        kernel += quadratic
        return kernel

    def features_from_monomials(self, monomials, turn, shift, origin):
        """Sums of h of y = turn z + shift from those of z's monomials (1, z, z_p z_q): (F, m) -> (F, m)."""
        start = 1 + self.n_features
        counts, turned = monomials[0], turn @ monomials[1:start]
        first = (turned + counts * shift[:, None]).T
        features = np.empty_like(monomials)
        at_once = max(1, _MATRIX_BYTES // (8 * self.n_features**2))
        for chunk in range(0, monomials.shape[1], at_once):
            columns = slice(chunk, chunk + at_once)
            half = np.einsum("pm,q->mpq", turned[:, columns] + 0.5 * counts[columns] * shift[:, None], shift)
            second = turn @ from_unique_entries(monomials[start:, columns].T, self.n_features) @ turn.T
            second += half
            second += half.transpose(0, 2, 1)
            features[:, columns] = self.feature_moments(counts[columns], first[columns], second, origin).T
        return features

    def feature_moments(self, counts, first, second, origin):
        """Sums of h: moments about the frame -> (K, F). The transpose of `polynomials`."""
        quadratic = svec(second - counts[:, None, None] * origin) * np.sqrt(0.5)
        return np.concatenate([counts[:, None], first, quadratic], axis=1)

    def moments(self, coefficients):
        """Inverse of `feature_moments` for O = I: (K, F) -> counts, first, second."""
        counts, linear = coefficients[:, 0], coefficients[:, 1 : 1 + self.n_features]
        quadratic = smat(coefficients[:, 1 + self.n_features :], self.n_features)
        return (
            counts,
            linear,
            np.sqrt(2.0) * quadratic + counts[:, None, None] * np.eye(self.n_features),
        )

    def polynomials(self, coefficients, origin):
        """beta . h as a + b.y + y'B y: (..., K, F) -> (..., K), (..., K, P), (..., K, P, P)."""
        linear = coefficients[..., 1 : 1 + self.n_features]
        quadratic = smat(coefficients[..., 1 + self.n_features :], self.n_features)
        quadratic = quadratic * np.sqrt(0.5)
        constant = coefficients[..., 0] - np.einsum("...pq,...pq->...", quadratic, origin)
        return constant, linear, quadratic

    def complete_information(self, mean_precision, information):
        """Diagonal of R^-1 behind the intercept: tau_k on y, c_k on svec, (K, F - 1)."""
        n_quadratic = self.n_coefficients - 1 - self.n_features
        return np.concatenate(
            [
                np.repeat(mean_precision[:, None], self.n_features, axis=1),
                np.repeat(information[:, None], n_quadratic, axis=1),
            ],
            axis=1,
        )

    # What coefficients say of the parameters: weights depend on the intercepts alone, means on the linear
    # part, precisions and covariances on the quadratic one.

    def parts(self):
        """Where the parts of a component's coefficients stand: name -> slice of F."""
        start = 1 + self.n_features
        return {
            "intercept": slice(0, 1),
            "linear": slice(1, start),
            "quadratic": slice(start, self.n_coefficients),
        }

    def mean_response(self, linear, roots):
        """d mu = W^-1 b: (..., K, P) -> (..., K, P)."""
        return np.einsum("kpq,...kq->...kp", roots, linear)

    def precision_response(self, quadratic, whiteners):
        """d Lambda = -sqrt 2 W' B W: (..., K, F - 1 - P) -> (..., K, P, P)."""
        matrices = smat(quadratic, self.n_features)
        return -np.sqrt(2.0) * (whiteners.transpose(0, 2, 1) @ matrices @ whiteners)

    def covariance_response(self, quadratic, roots):
        """d Lambda^-1 = sqrt 2 W^-1 B W^-T: (..., K, F - 1 - P) -> (..., K, P, P)."""
        matrices = smat(quadratic, self.n_features)
        return np.sqrt(2.0) * (roots @ matrices @ roots.transpose(0, 2, 1))

    def unique_entries(self, matrices):
        """What of a precision array is reported once: (..., K, P, P) -> (..., K, P(P+1)/2)."""
        return unique_entries(matrices)

    def from_unique_entries(self, entries):
        """Inverse of `unique_entries`."""
        return from_unique_entries(entries, self.n_features)

    def entry_labels(self, n_components, feature_names):
        """Labels of the unique entries, component by component: "0,x1,x2"."""
        rows, columns = upper_triangle(self.n_features)
        return [
            f"{k},{feature_names[p]},{feature_names[q]}"
            for k in range(n_components)
            for p, q in zip(rows, columns, strict=True)
        ]


COVARIANCE_STRUCTURES = {"full": FullCovariance}
