"""Mixtures that are fitted with more components than there are clusters, and their rows.

There are three sets. `KNOWN` is a table of data sets, each with several configurations, on which the method
was developed. `random_problems` draws problems at random; they were drawn after the settings of the method
had been fixed. `COLUMNS` are single features, as CTGAN, a generator of synthetic tables, models them one at a
time.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_moons,
)
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale

from benchmarks.problems.populations import Population, heavy_noise, normal_noise, skew_noise

_WEIGHT_PRIORS = {"sticks": "dirichlet_process", "Dirichlet": "dirichlet_distribution"}
_SPREAD_OF_SHAPES = 0.3  # of the random square roots of covariances about the identity
_CANDIDATES = 50  # random sets of centers, of which the one with the largest least distance is taken


@dataclass(frozen=True)
class SurplusProblem:
    """A mixture to fit to rows that may have fewer clusters than it has components.

    Attributes
    ----------
    name : str
    data_set : str, the name of its rows, which determines their random numbers
    draw : callable (rng) -> rows, (n_samples, n_features)
    n_clusters : int or None, Gaussian clusters from which the rows are drawn; None where the model is wrong
    n_components : int, K
    covariance_type : {"full", "tied", "diag", "spherical"}
    weight_concentration_prior_type : {"dirichlet_process", "dirichlet_distribution"}
    weight_concentration_prior : float or None
    init_params : str, how a fit starts
    mean_precision_prior : float or None
    reg_covar : float, zero where the lower bounds of both libraries are to have the same optimum
    seeds : tuple of int, the ``random_state`` of every fit
    most_samples : int or None, number of rows to which larger data sets are thinned at random
    """

    name: str
    data_set: str
    draw: Callable
    n_clusters: int | None
    n_components: int
    covariance_type: str = "full"
    weight_concentration_prior_type: str = "dirichlet_process"
    weight_concentration_prior: float | None = None
    init_params: str = "kmeans"
    mean_precision_prior: float | None = None
    reg_covar: float = 0.0
    seeds: tuple = (0, 1, 2)
    most_samples: int | None = None

    @property
    def arguments(self):
        """Arguments of the constructors of both libraries."""
        names = (
            "n_components",
            "covariance_type",
            "weight_concentration_prior_type",
            "weight_concentration_prior",
            "init_params",
            "mean_precision_prior",
            "reg_covar",
        )
        return {name: getattr(self, name) for name in names}

    def scaled(self, n_samples):
        """The same mixture of at most ``n_samples`` rows, fitted from the first seed only."""
        return replace(self, most_samples=n_samples, seeds=self.seeds[:1])

    def simulate(self):
        """The rows, (n_samples, n_features)."""
        rng = np.random.default_rng([*self.data_set.encode()])
        X = np.asarray(self.draw(rng), dtype=float)
        if self.most_samples is None or self.most_samples >= len(X):
            return X
        return X[rng.choice(len(X), self.most_samples, replace=False)]


@dataclass(frozen=True)
class Clusters:
    """Clusters about random centers.

    Attributes
    ----------
    n_samples, n_features, n_clusters : int
    distance : float, between the two nearest centers, in standard deviations
    equal_weights : bool; if False, relative weights are drawn between 0.2 and 1
    shapes : {"equal", "full", "tied", "diag", "spherical"}, identity covariances, or covariances drawn at
        random of which a mixture of this covariance type is the right model
    noise : callable, see `Population`
    """

    n_samples: int
    n_features: int
    n_clusters: int
    distance: float = 0.0
    equal_weights: bool = True
    shapes: str = "full"
    noise: Callable = normal_noise

    def draw(self, rng):
        """Rows with random labels, (n_samples, n_features)."""
        return self.population(rng).draw(rng, self.n_samples)

    def population(self, rng):
        return Population(self._weights(rng), self._centers(rng), self._roots(rng), self.noise)

    def fits(self, covariance_type):
        """Whether a mixture of this covariance type is a right model of the clusters."""
        right = {"equal": covariance_type, "spherical": "diag"}.get(self.shapes, self.shapes)
        return self.noise is normal_noise and covariance_type in ("full", right, self.shapes)

    def _weights(self, rng):
        sizes = np.ones(self.n_clusters) if self.equal_weights else rng.uniform(0.2, 1.0, self.n_clusters)
        return sizes / sizes.sum()

    def _centers(self, rng):
        if self.n_clusters == 1:
            return np.zeros((1, self.n_features))
        candidates = rng.normal(size=(_CANDIDATES, self.n_clusters, self.n_features))
        nearest = [pdist(centers).min() for centers in candidates]
        best = int(np.argmax(nearest))
        return self.distance / nearest[best] * candidates[best]

    def _roots(self, rng):
        P, identities = self.n_features, np.tile(np.eye(self.n_features), (self.n_clusters, 1, 1))
        noise = rng.normal(size=identities.shape)
        sizes = np.exp(_SPREAD_OF_SHAPES * rng.normal(size=(self.n_clusters, 1, P)))
        return {
            "equal": identities,
            "full": sizes[:, :, :1] * (identities + _SPREAD_OF_SHAPES / np.sqrt(P) * noise),
            "tied": identities + _SPREAD_OF_SHAPES / np.sqrt(P) * noise[:1],
            "diag": sizes * identities,
            "spherical": sizes[:, :, :1] * identities,
        }[self.shapes]


def _scaled(load):
    return lambda rng: scale(load().data)


def _principal(load, n_features, scaled=True):
    """The first principal components of a data set."""

    def draw(rng):
        X = scale(load().data) if scaled else load().data
        return PCA(n_features, svd_solver="full").fit_transform(X)

    return draw


def _moons(rng):
    return make_moons(600, noise=0.08, random_state=int(rng.integers(2**31)))[0]


def _rings(rng):
    return make_circles(800, noise=0.05, factor=0.4, random_state=int(rng.integers(2**31)))[0]


def _square(rng):
    return rng.uniform(size=(1000, 2))


def _stacked(rng):
    """Three Gaussians above each other, from scikit-learn's example of the concentration prior."""
    sizes, heights, variances = (200, 500, 200), (-0.7, 0.0, 0.7), (0.7, 0.5, 0.5)
    layers = zip(sizes, heights, variances, strict=True)
    return np.vstack([[0, y] + rng.normal(size=(n, 2)) * np.sqrt([v, 0.1]) for n, y, v in layers])


def _tight_in_broad(rng):
    return np.vstack([rng.normal(size=(800, 2)), [0.5, 0.0] + 0.1 * rng.normal(size=(200, 2))])


def _unscaled(rng):
    """Three clusters whose columns have scales of 1e-3, 1 and 1e4."""
    return Clusters(800, 3, 3, 5.0).draw(rng) * [1e-3, 1.0, 1e4]


def _integers(rng):
    """Counts and categories with a little noise added."""
    groups = rng.integers(3, size=1000)
    counts = np.column_stack([rng.poisson([2, 8, 20][k], len(groups)) for k in range(3)])
    columns = [counts[np.arange(len(groups)), groups], groups, rng.integers(5, size=len(groups))]
    return np.column_stack(columns) + 0.1 * rng.normal(size=(len(groups), 3))


@dataclass(frozen=True)
class _DataSet:
    """Rows, and the number of their Gaussian clusters where it is known."""

    name: str
    draw: Callable
    n_clusters: int | None = None
    clusters: Clusters | None = None

    def problem(self, n_components, weights, covariance_type="full", concentration=None, **others):
        """A mixture of these rows; ``weights`` is "sticks" or "Dirichlet"."""
        words = [self.name, f"K={n_components}", weights, covariance_type]
        words += [] if concentration is None else [f"concentration {concentration:.3g}"]
        right = self.clusters.fits(covariance_type) if self.clusters else covariance_type == "full"
        return SurplusProblem(
            name=", ".join(words),
            data_set=self.name,
            draw=self.draw,
            n_clusters=self.n_clusters if right else None,
            n_components=n_components,
            covariance_type=covariance_type,
            weight_concentration_prior_type=_WEIGHT_PRIORS[weights],
            weight_concentration_prior=concentration,
            **others,
        )

    def problems(self, *configurations, **others):
        """One mixture for each configuration (K, weights, covariance type, concentration)."""
        return tuple(self.problem(*configuration, **others) for configuration in configurations)


def _clusters(name, *sizes, **others):
    """A data set of simulated clusters."""
    clusters = Clusters(*sizes, **others)
    return _DataSet(name, clusters.draw, clusters.n_clusters, clusters)


_S, _D = "sticks", "Dirichlet"
_CONCENTRATIONS = (
    (_S, 1.0),
    (_S, 1e3),
    (_S, 1e5),
    (_D, 1e-3),
    (_D, 1.0),
    (_D, 1e3),
)  # of scikit-learn's example

KNOWN = (
    # Real data, whose number of Gaussian clusters is unknown.
    *_DataSet("iris", lambda rng: load_iris().data).problems((10, _S), (10, _D), (6, _S, "tied"), (3, _S)),
    *_DataSet("wine, 3 features", _principal(load_wine, 3)).problems((10, _S), (20, _D)),
    *_DataSet("wine, 13 features", _scaled(load_wine)).problems((6, _S), (10, _D, "diag")),
    *_DataSet("cancer", _principal(load_breast_cancer, 5)).problems((10, _S), (15, _D), (10, _S, "diag")),
    *_DataSet("digits, 5 features", _principal(load_digits, 5, False)).problems((20, _S), (30, _D)),
    *_DataSet("digits, 10 features", _principal(load_digits, 10, False)).problems((15, _S)),
    *_DataSet("diabetes", _principal(load_diabetes, 4)).problems((8, _S), (12, _D)),
    # Gaussian clusters. The arguments are rows, features, clusters, and distance in standard deviations.
    *_clusters("line, one", 300, 1, 1).problems((5, _S), (10, _D)),
    *_clusters("line, two", 500, 1, 2, 2.0).problems((4, _S), (10, _D)),
    *_clusters("line, three", 1000, 1, 3, 4.0, equal_weights=False).problems((10, _S), (10, _D)),
    *_clusters("line, five", 2000, 1, 5, 6.0).problems((10, _S), (20, _D)),
    *_clusters("plane, one", 500, 2, 1, shapes="equal").problems(
        (2, _S), (10, _S), (10, _D), (10, _S, "tied")
    ),
    *_clusters("plane, two", 400, 2, 2, 2.0).problems((6, _S), (6, _D)),
    *_clusters("plane, three", 1000, 2, 3, 3.0, equal_weights=False).problems((10, _S), (10, _D)),
    *_clusters("plane, three separated", 150, 2, 3, 8.0, shapes="equal").problems(
        (10, _S), (10, _D, "spherical")
    ),
    *_clusters("plane, five", 1500, 2, 5, 5.0, equal_weights=False).problems((20, _S), (20, _D)),
    *_clusters("plane, ten", 5000, 2, 10, 6.0).problems((20, _S), (30, _S)),
    *_clusters("five features, two", 600, 5, 2, 2.0).problems((8, _S), (8, _D)),
    *_clusters("five features, three", 1000, 5, 3, 4.0, equal_weights=False).problems((10, _S), (10, _D)),
    *_clusters("five features, six diagonal", 3000, 5, 6, 5.0, shapes="diag").problems(
        (12, _S), (20, _D, "diag")
    ),
    *_clusters("ten features, one", 600, 10, 1).problems((10, _S), (5, _D)),
    *_clusters("ten features, three", 1500, 10, 3, 3.0).problems((10, _S), (10, _D)),
    *_clusters("ten features, five", 2000, 10, 5, 6.0, shapes="tied").problems((10, _S), (15, _D, "tied")),
    *_clusters("25 features, two", 1000, 25, 2, 4.0, shapes="equal").problems((10, _S), (10, _D, "diag")),
    *_clusters("25 features, five", 2000, 25, 5, 8.0, shapes="equal").problems(
        (10, _S), (15, _D, "spherical")
    ),
    *_clusters("wide", 150, 20, 3, 6.0, shapes="equal").problems((6, _S), (10, _S, "diag")),
    *_DataSet("tight in broad", _tight_in_broad, 2).problems((8, _S), (8, _D)),
    *_DataSet("unscaled", _unscaled, 3).problems((10, _S), (10, _D)),
    *(
        _DataSet("stacked", _stacked, 3).problem(
            6, weights, "full", concentration, init_params="random", mean_precision_prior=0.8
        )
        for weights, concentration in _CONCENTRATIONS
    ),
    # Rows for which no mixture of few Gaussians is the right model.
    *_clusters("heavy tails, plane", 1000, 2, 3, 6.0, noise=heavy_noise).problems((10, _S), (10, _D)),
    *_clusters("heavy tails, five features", 1000, 5, 2, 5.0, noise=heavy_noise).problems((10, _S)),
    *_clusters("skew, plane", 1000, 2, 3, 6.0, noise=skew_noise).problems((10, _S), (20, _D)),
    *_clusters("skew, five features", 1500, 5, 2, 5.0, noise=skew_noise).problems((10, _S)),
    *_DataSet("moons", _moons).problems((10, _S), (20, _D)),
    *_DataSet("rings", _rings).problems((12, _S), (20, _S)),
    *_DataSet("square", _square).problems((10, _S), (10, _D), (30, _S)),
    *_DataSet("integers", _integers).problems((20, _S), (15, _D)),
)

_N_COLUMN = 2000  # rows
_COLUMNS = {
    "normal": lambda rng, n: rng.normal(50.0, 10.0, n),
    "bimodal": lambda rng, n: rng.normal(np.where(rng.uniform(size=n) < 0.4, -3.0, 2.0), 1.0),
    "trimodal": lambda rng, n: rng.normal(rng.choice([0.0, 4.0, 10.0], n), 1.0),
    "lognormal": lambda rng, n: rng.lognormal(3.0, 0.8, n),
    "exponential": lambda rng, n: rng.exponential(100.0, n),
    "skewed": lambda rng, n: rng.gamma(2.0, 500.0, n),
    "integers": lambda rng, n: rng.integers(17, 91, n),
    "uniform": lambda rng, n: rng.uniform(0.0, 1.0, n),
    "zero-inflated": lambda rng, n: np.where(rng.uniform(size=n) < 0.6, 0.0, rng.gamma(2.0, 10.0, n)),
    "heavy-tailed": lambda rng, n: rng.standard_t(3, n),
}


def _column(name, draw):
    """One feature, with the arguments that CTGAN's transformer of continuous columns uses."""
    return SurplusProblem(
        name=name,
        data_set=f"column {name}",
        draw=lambda rng: draw(rng, _N_COLUMN)[:, None],
        n_clusters={"normal": 1, "bimodal": 2, "trimodal": 3}.get(name),
        n_components=10,
        weight_concentration_prior=1e-3,
        reg_covar=1e-6,  # default of both libraries
        seeds=(0,),
    )


COLUMNS = tuple(_column(name, draw) for name, draw in _COLUMNS.items())


def random_problems(seed, n_problems=60):
    """Random problems, each of which is the right model of its rows: a tuple of `SurplusProblem`."""
    rng = np.random.default_rng(seed)
    return tuple(_random_problem(rng, f"{seed}-{i}") for i in range(n_problems))


def _random_problem(rng, name):
    covariance_type = str(rng.choice(["full", "tied", "diag", "spherical"], p=[0.55, 0.15, 0.15, 0.15]))
    clusters = Clusters(
        n_samples=int(np.exp(rng.uniform(np.log(150), np.log(3000)))),
        n_features=int(rng.integers(1, 16)),
        n_clusters=int(rng.integers(1, 9)),
        distance=float(rng.uniform(2.0, 8.0)),
        equal_weights=bool(rng.integers(2)),
        shapes=str(rng.choice(["equal", covariance_type])),
    )
    surplus = int(np.exp(rng.uniform(np.log(2), np.log(30 - clusters.n_clusters + 1))))
    concentration = float(10 ** rng.uniform(-3, 2)) if rng.integers(2) else None
    data_set = _DataSet(name, clusters.draw, clusters.n_clusters, clusters)
    weights = str(rng.choice([_S, _D]))
    problem = data_set.problem(clusters.n_clusters + surplus, weights, covariance_type, concentration)
    return replace(problem, seeds=(0,))
