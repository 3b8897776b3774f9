"""Tables whose clusters have causes and consequences: of known effects, real ones, and a large one.

Three latent classes are those of Z. Bakk, D. L. Oberski and J. K. Vermunt, "Relating latent class
assignments to external variables", Political Analysis 22 (2014), 520-540, and of Z. Bakk and J. Kuha,
"Two-step estimation of models between latent classes and external variables", Psychometrika 83 (2018),
871-892. Class A comes first.
"""

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

COVARIATES, OUTCOME, SKEWED = "covariate", "outcome", "skewed outcome"
N_ITEMS = 6
_INTERCEPTS = (0.0, 2.34459467, -3.65540533)  # Classes are then equally large on average.
_SLOPES = (0.0, -1.0, 1.0)
_MEANS = (-1.0, 1.0, 0.0)
FEW_ROWS = 500  # Up to which the library is asked for its own choice, and beyond for linear response.


@dataclass(frozen=True)
class SimulatedTable:
    """Rows, and a column that goes with their clusters.

    Attributes
    ----------
    X : (N, P) array; a DataFrame of latent classes
    given : Series, the covariate "w" or the outcome "y"
    labels : int array (N,), the true clusters
    """

    X: Any
    given: Any
    labels: np.ndarray


@dataclass(frozen=True)
class Design:
    """How tables are simulated, and what is true of them.

    Attributes
    ----------
    question : {"covariate", "outcome", "skewed outcome"}
    n_samples : int
    separation : float
    """

    question: str
    n_samples: int
    separation: float

    @property
    def problem(self):
        return f"{self.name}: {self.question}, {self.n_samples} rows, separation {self.separation}"

    @property
    def method(self):
        """How the library is asked to answer."""
        return "auto" if self.n_samples <= FEW_ROWS else "lrvb"

    def table(self, number):
        """The table of this number; the same every time: SimulatedTable."""
        import pandas as pd

        rng = np.random.default_rng([*self.problem.encode(), number])
        if self.question == COVARIATES:
            given, labels = self._caused(rng)
            named = pd.Series(given, name="w")
        else:
            labels = rng.integers(self.n_clusters, size=self.n_samples)
            N = self.n_samples
            noise = rng.exponential(size=N) - 1.0 if self.question == SKEWED else rng.normal(size=N)
            named = pd.Series(np.array(self.means)[labels] + noise, name="y")
        return SimulatedTable(self._rows(rng, labels), named, labels)

    @property
    def truth(self):
        """Slopes of the clusters but the first, or means of all: array."""
        return np.array(self.slopes[1:] if self.question == COVARIATES else self.means)


class LatentClasses(Design):
    """Three classes of six binary items; a one is as likely in class A as the separation says."""

    name, n_clusters = "three latent classes", 3
    slopes, means = _SLOPES, _MEANS

    @property
    def probabilities(self):
        """Of a one in every class, (3, 6)."""
        high, low = np.full(N_ITEMS // 2, self.separation), np.full(N_ITEMS // 2, 1.0 - self.separation)
        return np.stack([np.append(*halves) for halves in ((high, high), (high, low), (low, low))])

    def _caused(self, rng):
        w = rng.integers(1, 6, self.n_samples)
        shares = np.exp(np.array(_INTERCEPTS) + w[:, None] * np.array(_SLOPES))
        stops = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        return w.astype(float), (rng.random((self.n_samples, 1)) > stops).sum(axis=1)

    def _rows(self, rng, labels):
        import pandas as pd

        items = rng.random((self.n_samples, N_ITEMS)) < self.probabilities[labels]
        return pd.DataFrame(items.astype(int).astype(str), columns=[f"a{item}" for item in range(N_ITEMS)])

    def estimator(self, **arguments):
        """The unfitted estimator."""
        from sklearn_lrvb import LRVBLatentClassMixture

        # The number of classes is known, as in the papers: none is merged away.
        return LRVBLatentClassMixture(n_components=self.n_clusters, moves=None, n_init=5, **arguments)

    def order(self, mixture):
        """Numbers of the components that are nearest to the true classes, in their order: list of int."""
        found = np.stack([mixture.tables_[f"a{item}"].to_numpy()[:, 1] for item in range(N_ITEMS)], axis=1)
        return self.order_of(found)

    def order_of(self, probabilities):
        """Numbers of rows of probabilities (3, 6), in the order of the true classes: list of int."""
        orders = [list(order) for order in permutations(range(self.n_clusters))]
        return min(orders, key=lambda order: np.abs(probabilities[order] - self.probabilities).sum())


class GaussianClusters(Design):
    """Two clusters in three columns of unit variance, apart in the first by the separation."""

    name, n_clusters = "two Gaussian clusters", 2
    slopes, means = (0.0, 1.0), (0.0, 0.5)

    def _caused(self, rng):
        w = rng.normal(size=self.n_samples)
        return w, (rng.random(self.n_samples) < 1.0 / (1.0 + np.exp(-w))).astype(int)

    def _rows(self, rng, labels):
        X = rng.normal(size=(self.n_samples, 3))
        X[:, 0] += self.separation * labels
        return X

    def estimator(self, **arguments):
        """The unfitted estimator."""
        from sklearn_lrvb import LRVBGaussianMixture

        return LRVBGaussianMixture(n_components=self.n_clusters, covariance_type="tied", **arguments)

    def order(self, mixture):
        """Numbers of the components in the order of the true clusters: list of int."""
        return mixture.means_[:, 0].argsort().tolist()


_SIZES = (
    (LatentClasses, [(n_samples, apart) for n_samples in (500, 1000, 2500) for apart in (0.7, 0.8, 0.9)]),
    (GaussianClusters, [(300, 3.0), (1000, 2.0), (1000, 3.0)]),
)
DESIGNS = tuple(
    design(question, n_samples, separation)
    for question in (COVARIATES, OUTCOME, SKEWED)
    for design, sizes in _SIZES
    for n_samples, separation in sizes
    if question != SKEWED or n_samples == 1000
)
DESIGN_OF_STEPMIX = 1000, 0.8  # Rows and separation of the classes of which StepMix is asked too.


@dataclass(frozen=True)
class RealTable:
    """A table of scikit-learn, whose clusters explain something or are explained.

    Attributes
    ----------
    name : str
    of_rows : str, what the columns of X are
    of_given : str, what the covariate or the outcome is
    question : {"covariate", "outcome"}
    n_clusters : int
    X : (N, P)
    given : Series
    """

    name: str
    of_rows: str
    of_given: str
    question: str
    n_clusters: int
    X: np.ndarray
    given: Any


def real_tables():
    """Three tables: list of RealTable."""
    import pandas as pd
    from sklearn import datasets

    iris = datasets.load_iris()
    wine = datasets.load_wine(as_frame=True).data
    cancer = datasets.load_breast_cancer(as_frame=True)
    of_wine = ["flavanoids", "color_intensity", "hue", "proline"]
    of_cancer = ["mean texture", "mean area", "mean smoothness", "mean concavity"]
    is_strong = np.where(wine["alcohol"] > wine["alcohol"].median(), "yes", "no")
    is_malignant = np.where(cancer.target == 0, "yes", "no")
    return [
        RealTable(
            "iris",
            "petal length and width",
            "sepal length",
            OUTCOME,
            3,
            iris.data[:, 2:],
            pd.Series(iris.data[:, 0], name="sepal"),
        ),
        RealTable(
            "wine",
            ", ".join(of_wine).replace("_", " "),
            "alcohol above the median",
            COVARIATES,
            3,
            wine[of_wine].to_numpy(),
            pd.Series(is_strong, name="strong"),
        ),
        RealTable(
            "breast cancer",
            ", ".join(of_cancer),
            "malignant",
            OUTCOME,
            2,
            cancer.data[of_cancer].to_numpy(),
            pd.Series(is_malignant, name="malignant"),
        ),
    ]


def many_rows(n_samples, n_features=10, n_clusters=5, n_covariates=3):
    """Clusters that overlap, with covariates and an outcome that differ between them.

    Returns
    -------
    X : (n_samples, n_features)
    covariates : (n_samples, n_covariates)
    y : (n_samples,)
    """
    rng = np.random.default_rng(0)
    labels = rng.integers(n_clusters, size=n_samples)

    def normal(n_columns, spread):
        centers = spread * rng.normal(size=(n_clusters, n_columns))
        return centers[labels] + rng.normal(size=(n_samples, n_columns))

    return normal(n_features, 0.8), normal(n_covariates, 0.5), normal(1, 1.0)[:, 0]
