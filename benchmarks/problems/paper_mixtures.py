"""The mixtures on which the paper shows influence: its simulations, and the zeros and ones of MNIST."""

from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA

from benchmarks.problems.digits import paper_features, zeros_and_ones
from sklearn_lrvb import LRVBGaussianMixture

_SAMPLES = 10_000
_FEATURES = 25
_FEATURES_IN_QUICK_MODE = 4
_MOST_STEPS = 1000
_DIGITS = 5


@dataclass(frozen=True)
class Fitted:
    """Two components fitted to rows under the paper's flat prior and independent factors.

    Attributes
    ----------
    name : str
    X : (n_samples, n_features)
    mixture : LRVBGaussianMixture
    order : (2,) of int, our components in the paper's order: the lower left first, or the zeros first
    """

    name: str
    X: np.ndarray
    mixture: LRVBGaussianMixture
    order: np.ndarray

    @property
    def sizes(self):
        """Columns of a row."""
        n_samples, n_features = self.X.shape
        return {"n_samples": n_samples, "n_features": n_features, "n_components": len(self.order)}

    @property
    def responsibilities(self):
        """Responsibilities of the components in the paper's order, (n_samples, 2)."""
        return self.mixture.predict_proba(self.X)[:, self.order]

    @property
    def log_odds(self):
        """Log odds of the paper's second component against its first, (n_samples,)."""
        first, second = np.log(self.responsibilities).T
        return second - first


def rounded(value):
    """A coordinate of a point in a figure, to the digits that are visible."""
    return float(f"{value:.{_DIGITS}g}")


def simulated(name, population, settings, in_quick_mode):
    """The mixture of rows in the plane, with its components from the lower left to the upper right."""
    n_samples = in_quick_mode if settings.quick else _SAMPLES
    X = population.draw(np.random.default_rng(0), n_samples)
    mixture = _fitted(X, settings)
    return Fitted(name, X, mixture, np.argsort(mixture.means_.sum(axis=1)))


def digits(settings):
    """Yield mixtures of the zeros and ones: of the paper's features where they are given, and of a PCA's."""
    loaded = zeros_and_ones(settings.mnist, settings.quick)
    if loaded.of_mnist and settings.pca:
        yield _of_digits(
            "MNIST, the paper's features", paper_features(loaded, settings.pca)[0], loaded, settings
        )
    else:
        lacking = "--pca" if loaded.of_mnist else "--mnist and --pca"
        print(f"The paper's features of MNIST are left out; give {lacking} to include them.", flush=True)
    n_features = _FEATURES_IN_QUICK_MODE if settings.quick else _FEATURES
    X = PCA(n_features, random_state=0).fit_transform(loaded.train)
    dataset = "MNIST" if loaded.of_mnist else "small digits"
    yield _of_digits(f"{dataset}, {n_features} principal components", X, loaded, settings)


def _of_digits(name, X, loaded, settings):
    mixture = _fitted(X, settings)
    responsibilities = mixture.predict_proba(X)
    share_of_ones = loaded.train_labels @ responsibilities / responsibilities.sum(axis=0)
    return Fitted(name, X, mixture, np.argsort(share_of_ones))


def _fitted(X, settings):
    return LRVBGaussianMixture(
        n_components=2,
        prior="flat",
        factorization="independent",
        reg_covar=0.0,
        max_iter=_MOST_STEPS,
        random_state=0,
        n_jobs=settings.threads,
    ).fit(X)
