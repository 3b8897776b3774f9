"""The covariance types by their definition, for references and tests that must not ask the library.

The precision of a component is a matrix, one number for every feature, or one number for all features, and
every component has its own or all share one. The rest follows from these two facts. K components and P
features; arrays of precisions or covariances have the shape of the fitted attributes, (K, P, P), (K, P) or
(K,), without K where the components share. The prior of a precision is of Wishart blocks (d, d): one matrix,
d = P, or numbers, d = 1.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CovarianceType:
    """What a covariance type says of the precisions.

    Attributes
    ----------
    name : str
    n_axes : {0, 1, 2}, of the array of one precision: one number, a number for every feature, a matrix
    is_shared : bool, whether all components have the same precision
    is_in_scikit_learn : bool
    """

    name: str
    n_axes: int
    is_shared: bool = False
    is_in_scikit_learn: bool = True

    @property
    def is_matrix(self):
        return self.n_axes == 2

    def shape(self, n_components, n_features):
        """Shape of the attributes."""
        return (*[n_components] * (not self.is_shared), *[n_features] * self.n_axes)

    def block_size(self, n_features):
        """d, the size of a Wishart block."""
        return n_features if self.is_matrix else 1

    def n_blocks(self, n_features):
        """Number of Wishart blocks of a precision."""
        return n_features if self.n_axes == 1 else 1

    def power(self, n_features):
        """|Lambda| is the product of the determinants of its blocks, to this power."""
        return n_features if self.n_axes == 0 else 1

    def freedom_of_means(self, n_components, n_features):
        """Degrees of freedom that a precision has more where q(mu) q(Lambda) is not joint, from the means."""
        return self.power(n_features) * (n_components if self.is_shared else 1)

    def flat_freedom(self, n_components, n_features):
        """Degrees of freedom nu0 at which the joint prior of means and precisions is constant."""
        return self.block_size(n_features) + 1 - self.freedom_of_means(n_components, n_features)

    def statistic(self, matrices):
        """What meets a precision in trace(matrix Lambda): (..., P, P), its diagonal, or its trace."""
        if self.is_matrix:
            return matrices
        diagonal = np.diagonal(matrices, axis1=-2, axis2=-1)
        return diagonal if self.n_axes else diagonal.sum(axis=-1)

    def prior(self, matrix):
        """The prior of a covariance that follows from a matrix: it, its diagonal, or the mean of that."""
        return self.statistic(matrix) / self.power(len(matrix))

    def pooled(self, values, axis=0, keepdims=False):
        """Sums over components of what a precision adds up: over all along the axis, or values unchanged."""
        return values.sum(axis=axis, keepdims=keepdims) if self.is_shared else values

    def blocks_of(self, counts, scatter):
        """Counts and scatter of every block, from those of components: (..., K), (..., K, P, P).

        Returns
        -------
        counts : (..., B)
        scatter : (..., B, d, d)
        """
        n_features, axis = scatter.shape[-1], counts.ndim - 1
        size = self.block_size(n_features)
        counts = self.pooled(self.power(n_features) * counts, axis, keepdims=True)
        scatter = self.pooled(self.statistic(scatter), axis, keepdims=True)
        return (
            np.repeat(counts, self.n_blocks(n_features), axis=-1),
            scatter.reshape(*counts.shape[:-1], -1, size, size),
        )

    def dense(self, values, n_components, n_features):
        """Every component's matrix: (K, P, P)."""
        values = np.broadcast_to(values, (n_components, *[n_features] * self.n_axes))
        return values if self.is_matrix else values.reshape(n_components, -1, 1) * np.eye(n_features)

    def over(self, numbers):
        """Numbers of the precisions, with the axes by which they multiply the precisions."""
        return np.asarray(numbers)[(..., *[None] * self.n_axes)]

    def inverse(self, values):
        """Covariances of precisions, or the other way round."""
        return np.linalg.inv(values) if self.is_matrix else 1.0 / values

    def entries(self, values):
        """The entries of matrices in the upper triangle, (..., P (P + 1) / 2); numbers are unchanged."""
        return values[..., *np.triu_indices(values.shape[-1])] if self.is_matrix else values


TYPES = {
    one.name: one
    for one in (
        CovarianceType("full", 2),
        CovarianceType("tied", 2, is_shared=True),
        CovarianceType("diag", 1),
        CovarianceType("spherical", 0),
        CovarianceType("tied_diag", 1, is_shared=True, is_in_scikit_learn=False),
    )
}
