"""Small tables of real measurements, as people cluster them: scaled, or on their first principal axes."""

from collections.abc import Callable
from dataclasses import dataclass

from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


@dataclass(frozen=True)
class SmallTable:
    """A table that scikit-learn brings along.

    Attributes
    ----------
    name : str
    load : callable, () -> Bunch with ``data``
    n_axes : int or None, number of principal axes on which the rows are projected; None for all columns
    """

    name: str
    load: Callable
    n_axes: int | None = None

    def rows(self):
        """The scaled rows, (n_samples, n_features)."""
        steps = [StandardScaler()] + ([] if self.n_axes is None else [PCA(self.n_axes, random_state=0)])
        return make_pipeline(*steps).fit_transform(self.load().data)


SMALL_TABLES = (
    SmallTable("iris", load_iris),
    SmallTable("iris, 2 axes", load_iris, 2),
    SmallTable("wine", load_wine),
    SmallTable("wine, 3 axes", load_wine, 3),
    SmallTable("diabetes", load_diabetes),
    SmallTable("breast cancer, 5 axes", load_breast_cancer, 5),
    SmallTable("digits, 8 axes", load_digits, 8),
)
