"""Small tables as people cluster them: as they are measured, scaled, or on their first principal axes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import Bunch

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")
COMPONENTS = (1, 2, 3, 5, 7, 10)


@dataclass(frozen=True)
class SmallTable:
    """A table that scikit-learn brings along, or one that is drawn.

    Attributes
    ----------
    name : str
    load : callable, () -> Bunch with ``data``
    n_axes : int or None, number of principal axes on which the rows are projected; None for all columns
    is_scaled : bool, whether columns are scaled to unit variance
    components : tuple of int, numbers of components to fit
    covariance_types : tuple of str, covariance types to fit
    """

    name: str
    load: Callable
    n_axes: int | None = None
    is_scaled: bool = True
    components: tuple = COMPONENTS
    covariance_types: tuple = COVARIANCE_TYPES

    @property
    def is_searched(self):
        """Whether components and covariance types are searched as well: where all of them are fitted."""
        return self.covariance_types == COVARIANCE_TYPES

    def rows(self):
        """The rows, (n_samples, n_features)."""
        scaler = StandardScaler() if self.is_scaled else FunctionTransformer()
        steps = [scaler] + ([] if self.n_axes is None else [PCA(self.n_axes, random_state=0)])
        return make_pipeline(*steps).fit_transform(self.load().data)


def eruptions():
    """272 waiting times and durations like those of Old Faithful: Bunch."""
    rng = np.random.default_rng(0)
    short = rng.random(272) < 0.36
    durations = np.where(short, rng.normal(2.04, 0.27, 272), rng.normal(4.29, 0.41, 272))
    waiting = np.where(short, 38.2, 50.0) + np.where(short, 8.0, 7.0) * durations + 5.2 * rng.normal(size=272)
    return Bunch(data=np.column_stack([durations, waiting]))


def wide(n_samples, n_features):
    """Three overlapping clusters in many features, as a function () -> Bunch."""

    def drawn():
        rng = np.random.default_rng(0)
        centers = rng.normal(size=(3, n_features))
        noise = rng.normal(size=(n_samples, n_features))
        return Bunch(data=centers[rng.integers(3, size=n_samples)] + noise)

    return drawn


def _surplus(n_samples, n_features, n_components):
    """A wide table, with more components than it has clusters."""
    return SmallTable(
        f"{n_samples} x {n_features}",
        wide(n_samples, n_features),
        is_scaled=False,
        components=(n_components,),
        covariance_types=("diag", "spherical"),
    )


SMALL_TABLES = (
    SmallTable("iris", load_iris),
    SmallTable("iris, 2 axes", load_iris, 2),
    SmallTable("wine", load_wine),
    SmallTable("wine, 3 axes", load_wine, 3),
    SmallTable("diabetes", load_diabetes),
    SmallTable("breast cancer, 5 axes", load_breast_cancer, 5),
    SmallTable("digits, 8 axes", load_digits, 8),
    SmallTable("iris, as measured", load_iris, is_scaled=False),
    SmallTable("wine, as measured", load_wine, is_scaled=False),
    SmallTable("breast cancer, as measured", load_breast_cancer, is_scaled=False),
    SmallTable("eruptions", eruptions, is_scaled=False),
    _surplus(1000, 50, 8),
    _surplus(300, 300, 10),
    _surplus(2000, 200, 6),
)
