"""The paper's formula with nothing eliminated: every statistic and every z in one dense system.

Sigma = (I - V H)^-1 V (Eq. lrvb_est) for q(mu_k) q(Lambda_k) q(pi) q(z_n), with the statistics
(mu, mu mu', Lambda, log|Lambda|) of every component, (log pi) or the sticks' (log v, log(1 - v)), and z.
Matrices are kept whole, P^2 entries each: V is then singular, which the formula allows. Slow, and
written from Appendix C alone (with its errata), so that it shares no code with the library.
"""

import numpy as np
from scipy.special import polygamma


class DenseReference:
    """Covariance of (log pi, mu, unique Lambda) at a fitted mixture with independent factors."""

    def __init__(self, mixture, X):
        assert mixture.factorization == "independent"
        self.mixture, self.X = mixture, X
        self.n, self.p = X.shape
        self.k = mixture.n_components
        self.per_component = self.p + 2 * self.p**2 + 1
        self.sticks = mixture.prior == "fixed" and (
            mixture.weight_concentration_prior_type == "dirichlet_process"
        )
        self.n_weights = self.k * (2 if self.sticks else 1)
        self.first_z = self.k * self.per_component + self.n_weights
        self.size = self.first_z + self.n * self.k

    def positions(self, k):
        """Positions of mu_k, mu_k mu_k', Lambda_k and log|Lambda_k|."""
        p, start = self.p, k * self.per_component
        edges = start + np.cumsum([0, p, p * p, p * p, 1])
        return [np.arange(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)]

    def weight_positions(self):
        return np.arange(self.k * self.per_component, self.first_z)

    def log_weight_map(self):
        """log pi = map @ weight statistics."""
        eye = np.eye(self.k)
        return np.hstack([eye, np.tri(self.k, k=-1)]) if self.sticks else eye

    def mean_field_covariance(self):
        """V of all statistics, (size, size)."""
        mixture, p = self.mixture, self.p
        V = np.zeros((self.size, self.size))
        for k in range(self.k):
            mu, square, precision, log_det = self.positions(k)
            m, nu = mixture.means_[k], mixture.degrees_of_freedom_[k]
            S = mixture.covariances_[k] / mixture.mean_precision_[k]
            W = mixture.precisions_[k] / nu
            cross = np.einsum("j,ik->ijk", m, S) + np.einsum("k,ij->ijk", m, S)
            fourth = (
                np.einsum("ik,jl->ijkl", S, S)
                + np.einsum("il,jk->ijkl", S, S)
                + np.einsum("i,k,jl->ijkl", m, m, S)
                + np.einsum("i,l,jk->ijkl", m, m, S)
                + np.einsum("j,k,il->ijkl", m, m, S)
                + np.einsum("j,l,ik->ijkl", m, m, S)
            )
            wishart = nu * (np.einsum("ik,jl->ijkl", W, W) + np.einsum("il,jk->ijkl", W, W))
            V[np.ix_(mu, mu)] = S
            V[np.ix_(mu, square)] = cross.reshape(p, -1)
            V[np.ix_(square, mu)] = cross.reshape(p, -1).T
            V[np.ix_(square, square)] = fourth.reshape(p * p, -1)
            V[np.ix_(precision, precision)] = wishart.reshape(p * p, -1)
            V[np.ix_(precision, log_det)] = 2 * W.reshape(-1, 1)
            V[np.ix_(log_det, precision)] = 2 * W.reshape(1, -1)
            V[np.ix_(log_det, log_det)] = polygamma(1, 0.5 * (nu - np.arange(p))).sum()
        weights = self.weight_positions()
        concentration = mixture.weight_concentration_
        if self.sticks:
            a, b = concentration
            shared = -polygamma(1, a + b)
            V[np.ix_(weights, weights)] = np.block(
                [
                    [np.diag(polygamma(1, a) + shared), np.diag(shared)],
                    [np.diag(shared), np.diag(polygamma(1, b) + shared)],
                ]
            )
        else:
            V[np.ix_(weights, weights)] = np.diag(polygamma(1, concentration)) - polygamma(
                1, concentration.sum()
            )
        for n, r in enumerate(mixture.predict_proba(self.X)):
            z = self.first_z + n * self.k + np.arange(self.k)
            V[np.ix_(z, z)] = np.diag(r) - np.outer(r, r)
        return V

    def expected_hessian(self):
        """H of all statistics, (size, size)."""
        mixture, p = self.mixture, self.p
        r = mixture.predict_proba(self.X)
        H = np.zeros((self.size, self.size))
        for k in range(self.k):
            mu, square, precision, log_det = self.positions(k)
            z = self.first_z + np.arange(self.n) * self.k + k
            m, Lambda = mixture.means_[k], mixture.precisions_[k]
            second = np.outer(m, m) + mixture.covariances_[k] / mixture.mean_precision_[k]
            b0, m0 = mixture.mean_precision_prior_, mixture.mean_prior_
            pull = r[:, k] @ self.X + b0 * m0
            # mu' Lambda x for every row and for the prior's b0 rows at m0
            H[np.ix_(mu, precision)] = np.einsum("ia,b->iab", np.eye(p), pull).reshape(p, -1)
            H[square, precision] = -0.5 * (r[:, k].sum() + b0)
            H[np.ix_(mu, z)] = Lambda @ self.X.T
            H[np.ix_(square, z)] = -0.5 * Lambda.reshape(-1, 1)
            noisy = np.einsum("na,nb->nab", self.X, self.X) + mixture.reg_covar * np.eye(p)
            H[np.ix_(precision, z)] = (
                -0.5 * (noisy - 2 * np.einsum("a,nb->nab", m, self.X) + second).reshape(self.n, -1).T
            )
            H[np.ix_(log_det, z)] = 0.5
            H[np.ix_(self.weight_positions(), z)] = self.log_weight_map()[k][:, None]
        return H + H.T

    def covariance(self):
        """LRVB covariance of (log pi, mu, unique Lambda), in the order of `posterior_names_`."""
        V, H = self.mean_field_covariance(), self.expected_hessian()
        Sigma = np.linalg.solve(np.eye(self.size) - V @ H, V)
        upper = np.flatnonzero(np.triu(np.ones((self.p, self.p))).ravel())
        rows = [np.zeros((self.k, self.size))]
        rows[0][:, self.weight_positions()] = self.log_weight_map()
        positions = [self.positions(k)[0] for k in range(self.k)]
        positions += [self.positions(k)[2][upper] for k in range(self.k)]
        rows.append(np.eye(self.size)[np.concatenate(positions)])
        J = np.concatenate(rows)
        return J @ Sigma @ J.T
