"""Tables drawn from the prior of a mixture: the number of clusters and the right prior are known."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, log_softmax
from scipy.stats import wishart


@dataclass(frozen=True)
class ConjugatePrior:
    """Dirichlet weights, and a normal-Wishart distribution of every component's mean and precision.

    Attributes
    ----------
    mean : (P,), m0
    covariance : (P, P), C0, the inverse scale of the Wishart distribution
    mean_precision : float, b0, in units of the component's precision
    degrees_of_freedom : float, nu0
    concentration : float, alpha, of every component
    """

    mean: np.ndarray
    covariance: np.ndarray
    mean_precision: float = 1.0
    degrees_of_freedom: float = 1.0
    concentration: float = 1.0

    @classmethod
    def default(cls, X):
        """That of scikit-learn for these rows, but with Dirichlet(1, ..., 1) weights."""
        covariance = np.atleast_2d(np.cov(X, rowvar=False))
        return cls(X.mean(axis=0), covariance, degrees_of_freedom=float(X.shape[1]))

    @property
    def arguments(self):
        """Arguments of LRVBGaussianMixture: {name: value}."""
        return {
            "weight_concentration_prior_type": "dirichlet_distribution",
            "weight_concentration_prior": self.concentration,
            "mean_precision_prior": self.mean_precision,
            "mean_prior": self.mean,
            "degrees_of_freedom_prior": self.degrees_of_freedom,
            "covariance_prior": self.covariance,
        }

    def draw(self, n_components, n_samples, rng):
        """Rows of a mixture drawn from the prior, (n_samples, P), and their components, (n_samples,)."""
        weights = rng.dirichlet(np.full(n_components, self.concentration))
        wisharts = wishart(self.degrees_of_freedom, np.linalg.inv(self.covariance))
        precisions = wisharts.rvs(n_components, random_state=rng).reshape(-1, *self.covariance.shape)
        roots = np.linalg.cholesky(np.linalg.inv(precisions))
        noise = rng.normal(size=(n_components, len(self.mean)))
        means = self.mean + np.einsum("kpq,kq->kp", roots, noise) / np.sqrt(self.mean_precision)
        labels = rng.choice(n_components, size=n_samples, p=weights)
        noise = rng.normal(size=(n_samples, len(self.mean)))
        return means[labels] + np.einsum("npq,nq->np", roots[labels], noise), labels


# Centers are some 3 sd of a cluster about the origin: pairs of clusters range from one cloud to far apart.
PRIOR = ConjugatePrior(np.zeros(2), np.eye(2), mean_precision=0.1, degrees_of_freedom=4.0)
N_SAMPLES, MOST_COMPONENTS = 100, 5
N_TABLES = 30


def log_number_prior(most):
    """log P(K) for K = 1, ..., most, in proportion to 1/K!: Poisson with mean 1, given one of them."""
    return log_softmax(-gammaln(np.arange(1, most + 1) + 1.0))


def prior_table(seed):
    """Rows of the table with this seed, (100, 2), and its number of components, by the prior on 1, ..., 5.

    Some of the components may have no row.
    """
    rng = np.random.default_rng(seed)
    n_components = 1 + int(rng.choice(MOST_COMPONENTS, p=np.exp(log_number_prior(MOST_COMPONENTS))))
    return PRIOR.draw(n_components, N_SAMPLES, rng)[0], n_components
