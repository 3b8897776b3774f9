"""The posterior with the assignments summed out, as a function of vectors in which it is nearly standard
normal.

Component k is measured in the whitened coordinates of its optimum, mean m_k and precision U_k U_k', with n_k
rows:

    mu_k = m_k + U_k'^-1 u_k
    Lambda_k = U_k T_k T_k' U_k',    T_k lower triangular
    log pi_k - log pi_K = its value at the optimum + o_k,    k < K

In the mean-field posterior the sds of u_k, log T_ii, T_ij and o_k are nearly 1 / sqrt(n_k), 1 / sqrt(2 n_k),
1 / sqrt(n_k) and sqrt(1 / n_k + 1 / n_K).

The vector holds all o, all u, all log T_ii and all T_ij below the diagonal, each divided by this sd. The rows
are whitened beforehand, so that no evaluation of the density solves a linear system.
"""

from functools import reduce

import numpy as np

from benchmarks.analysis.parameter_vectors import flat


class UnconstrainedPosterior:
    """Log density and parameters as functions of an unconstrained vector.

    Methods take the array module, numpy or `jax.numpy`.

    Parameters
    ----------
    X : (N, P)
    prior : NearFlatPrior
    optimum : LRVBGaussianMixture, the fit whose posterior means are the origin

    Attributes
    ----------
    size : int, length of the vectors
    """

    def __init__(self, X, prior, optimum):
        self._prior = prior
        self._means = optimum.means_
        self._roots = np.linalg.cholesky(optimum.precisions_)  # U
        self._rows = [
            np.ascontiguousarray(root.T @ (X - mean).T)
            for root, mean in zip(self._roots, self._means, strict=True)
        ]
        n_components, n_features = self._means.shape
        counts = len(X) * optimum.weights_
        self._scale = 1 / np.sqrt(counts)
        self._odds = np.log(optimum.weights_[:-1] / optimum.weights_[-1])
        self._odds_scale = np.sqrt(1 / counts[:-1] + 1 / counts[-1])
        below = np.tril_indices(n_features, -1)
        n_below = len(below[0])
        self._places = np.zeros((n_below, n_features, n_features))
        self._places[(np.arange(n_below), *below)] = 1.0
        sizes = (n_components - 1, n_components * n_features, n_components * n_features)
        self._stops = np.cumsum(sizes).tolist()
        self.size = self._stops[-1] + n_components * n_below

    def _parts(self, vector, xp):
        """Log weights (K,), u (K, P), log diagonals of T (K, P) and T (K, P, P)."""
        odds, shifts, diagonals, below = xp.split(vector, self._stops)
        shape, scale = self._means.shape, self._scale[:, None]
        log_odds = xp.concatenate([self._odds + self._odds_scale * odds, xp.zeros(1)])
        log_weights = log_odds - reduce(xp.logaddexp, log_odds)
        diagonals = scale / np.sqrt(2) * diagonals.reshape(shape)
        triangles = xp.exp(diagonals)[:, :, None] * np.eye(shape[1])
        triangles = triangles + xp.tensordot(scale * below.reshape(shape[0], -1), self._places, 1)
        return log_weights, scale * shifts.reshape(shape), diagonals, triangles

    def log_density(self, vector, xp):
        """Log posterior density of the vector, up to a constant."""
        log_weights, shifts, diagonals, triangles = self._parts(vector, xp)
        joint = [
            log_weights[k]
            + np.log(np.diag(self._roots[k])).sum()
            + diagonals[k].sum()
            - 0.5 * xp.square(triangles[k].T @ (rows - shifts[k][:, None])).sum(axis=0)
            for k, rows in enumerate(self._rows)
        ]
        log_likelihood = reduce(xp.logaddexp, joint).sum()
        log_prior = self._log_prior(log_weights, shifts, diagonals, triangles)
        return log_likelihood + log_prior + self.log_jacobian(vector, xp)

    def _log_prior(self, log_weights, shifts, diagonals, triangles):
        """Log density of pi, mu and Lambda, up to a constant."""
        prior, n_features = self._prior, self._means.shape[1]
        found = (prior.concentration - 1) * log_weights.sum()
        for k, root in enumerate(self._roots):
            gap = triangles[k].T @ (shifts[k] + root.T @ (self._means[k] - prior.mean))
            scale = root.T @ prior.scale @ root
            trace = (triangles[k] * (scale @ triangles[k])).sum()
            found += (prior.degrees_of_freedom - n_features) * diagonals[
                k
            ].sum()  # the densities of mu and Lambda together
            found -= 0.5 * (prior.mean_precision * gap @ gap + trace)
        return found

    def log_jacobian(self, vector, xp):
        """Log determinant, up to a constant, of the map from the vector to pi_1 to pi_K-1, mu and Lambda.

        Lambda stands for its unique entries.
        """
        log_weights, _, diagonals, _ = self._parts(vector, xp)
        n_features = diagonals.shape[1]
        return log_weights.sum() + (diagonals @ np.arange(n_features + 1, 1, -1)).sum()

    def constrained(self, vector):
        """The parameters (D,) in the order of `posterior_names_`."""
        log_weights, shifts, _, triangles = self._parts(vector, np)
        means = self._means + np.linalg.solve(self._roots.transpose(0, 2, 1), shifts[:, :, None])[:, :, 0]
        roots = self._roots @ triangles
        return flat(log_weights, means, roots @ roots.transpose(0, 2, 1))
