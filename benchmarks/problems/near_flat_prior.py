"""The nearly flat prior of the comparisons with sampling, which is exactly the same on all sides."""

from dataclasses import dataclass

import numpy as np

CONCENTRATION = 1.0  # of the Dirichlet prior
MEAN_PRECISION = 1e-6  # number of rows that the prior of a mean is worth
SCALE = 1e-4  # factor of the variances of X in V
_MOST_STEPS = 1000


@dataclass(frozen=True)
class NearFlatPrior:
    """Lambda_k ~ Wishart(P, V^-1), mu_k | Lambda_k ~ N(m, (kappa Lambda_k)^-1), pi ~ Dirichlet(1, ..., 1).

    With P degrees of freedom the Wishart's |Lambda_k|^(-1/2) and the |Lambda_k|^(1/2) of the mean's density
    cancel, so that the prior differs from ``prior="flat"`` by terms of the size of V and kappa only.

    Attributes
    ----------
    n_components : int, K
    mean : (P,), m, the mean of X
    mean_precision : float, kappa
    scale : (P, P), V, diagonal
    concentration : float, of the Dirichlet
    """

    n_components: int
    mean: np.ndarray
    mean_precision: float
    scale: np.ndarray
    concentration: float = CONCENTRATION

    @classmethod
    def around(cls, X, n_components):
        """The prior for rows X, (n_samples, P)."""
        return cls(n_components, X.mean(axis=0), MEAN_PRECISION, SCALE * np.diag(X.var(axis=0)))

    @property
    def degrees_of_freedom(self):
        return len(self.mean)

    @property
    def parameters(self):
        """Arguments of `LRVBGaussianMixture`."""
        return {
            "prior": "fixed",
            "weight_concentration_prior_type": "dirichlet_distribution",
            "weight_concentration_prior": self.concentration,
            "mean_prior": self.mean,
            "mean_precision_prior": self.mean_precision,
            "degrees_of_freedom_prior": self.degrees_of_freedom,
            "covariance_prior": self.scale,
            "reg_covar": 0.0,
        }

    def fitted(self, X, factorization="joint"):
        """Our fit under this prior, from the default start."""
        from sklearn_lrvb import LRVBGaussianMixture

        mixture = LRVBGaussianMixture(
            n_components=self.n_components,
            factorization=factorization,
            max_iter=_MOST_STEPS,
            random_state=0,
            **self.parameters,
        )
        return mixture.fit(X)
