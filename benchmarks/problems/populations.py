"""Mixtures of known parameters, and the scenarios in which standard deviations are tested on them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

_DEGREES_OF_FREEDOM = 5  # of heavy tails
_SHAPE = 2  # of skew noise


def normal_noise(rng, shape):
    return rng.standard_normal(shape)


def heavy_noise(rng, shape, degrees_of_freedom=_DEGREES_OF_FREEDOM):
    """Multivariate t rows of unit covariance."""
    squares = rng.chisquare(degrees_of_freedom, size=(shape[0], 1))
    return rng.standard_normal(shape) * np.sqrt((degrees_of_freedom - 2) / squares)


def skew_noise(rng, shape):
    """Independent gamma variables, of mean zero and unit variance."""
    return (rng.standard_gamma(_SHAPE, size=shape) - _SHAPE) / np.sqrt(_SHAPE)


@dataclass(frozen=True)
class Population:
    """A mixture from which rows are drawn: x = mean_k + root_k' noise.

    Attributes
    ----------
    weights : (K,)
    means : (K, P)
    roots : (K, P, P), of the covariances root' root
    noise : callable (rng, shape) -> noise of mean zero and unit covariance
    """

    weights: np.ndarray
    means: np.ndarray
    roots: np.ndarray
    noise: Callable = normal_noise

    @property
    def covariances(self):
        return self.roots.transpose(0, 2, 1) @ self.roots

    def draw(self, rng, n_samples):
        """Rows with random labels, (n_samples, P)."""
        return self.labelled(rng, n_samples)[0]

    def labelled(self, rng, n_samples):
        """Rows (n_samples, P), and the components from which they are drawn (n_samples,)."""
        n_components, n_features = self.means.shape
        labels = rng.choice(n_components, size=n_samples, p=self.weights)
        X = self.noise(rng, (n_samples, n_features))
        for k, (mean, root) in enumerate(zip(self.means, self.roots, strict=True)):
            X[labels == k] = mean + X[labels == k] @ root
        return X, labels


@dataclass(frozen=True)
class Scenario:
    """A population, the number of rows that are drawn, and the mixture that is fitted to them.

    Attributes
    ----------
    name : str
    population : Population
    n_samples : int, rows of a data set, N
    covariance_type, prior : str, of the mixture to fit
    wrong : str, the assumption of the model that the rows violate; empty where the model is right
    copies : int, how often every row is repeated
    """

    name: str
    population: Population
    n_samples: int = 2000
    covariance_type: str = "full"
    prior: str = "flat"
    wrong: str = ""
    copies: int = 1

    @property
    def n_components(self):
        return self.population.means.shape[0]

    @property
    def n_features(self):
        return self.population.means.shape[1]

    def reported(self, matrices):
        """Matrices of the components, (K, P, P), in the shape of the mixture's attribute."""
        return {
            "full": matrices,
            "tied": matrices[0],
            "diag": matrices.diagonal(axis1=1, axis2=2),
            "spherical": matrices[:, 0, 0],
        }[self.covariance_type]

    def generator(self, data_set):
        """Random numbers of one data set; they depend on the scenario's name and this number only."""
        return np.random.default_rng([*self.name.encode(), data_set])

    def simulate(self, data_set):
        """The rows of one data set, (n_samples, P)."""
        X = self.population.draw(self.generator(data_set), self.n_samples // self.copies)
        return np.repeat(X, self.copies, axis=0)


def _plane(roots, distance, noise=normal_noise):
    """Two components in the plane, of weights 0.6 and 0.4."""
    means = np.array([[0.0, 0.0], [distance, 0.5 * distance]])
    return Population(np.array([0.6, 0.4]), means, np.array(roots), noise)


def _three_in_five_features(distance):
    """Three components of unequal weight and shape, all pairs equally far apart."""
    shapes = np.random.default_rng(0).normal(size=(3, 5, 5))
    means = distance / np.sqrt(2) * np.eye(3, 5)
    return Population(np.array([0.5, 0.3, 0.2]), means, np.eye(5) + 0.3 / np.sqrt(5) * shapes)


def equally_far(n_components, n_features, distance):
    """Two or three components of unequal weight and shape, all pairs equally far apart."""
    weights = {2: [0.6, 0.4], 3: [0.5, 0.3, 0.2]}[n_components]
    shapes = np.random.default_rng(0).normal(size=(n_components, n_features, n_features))
    means = np.zeros((n_components, n_features))
    means[:, :2] = distance * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])[:n_components]
    return Population(np.array(weights), means, np.eye(n_features) + 0.3 / np.sqrt(n_features) * shapes)


_UNEQUAL = [[1.0, 0.3], [0.0, 0.9]], [[0.7, 0.0], [-0.2, 0.8]]
_CORRELATED = [[1.0, 0.7], [0.0, 0.7]], [[0.8, -0.5], [0.0, 0.7]]
_ONE_SHAPE = [[0.9, 0.3], [0.0, 0.8]], [[0.9, 0.3], [0.0, 0.8]]
_ALONG_AXES = [[1.0, 0.0], [0.0, 0.7]], [[0.7, 0.0], [0.0, 1.1]]
_ROUND = [[1.0, 0.0], [0.0, 1.0]], [[0.7, 0.0], [0.0, 0.7]]

# The simulations of the paper's Section 6.3, with the parameters of its authors' program.
PAPER = Scenario(
    "paper",
    Population(
        weights=np.array([3, 4]) / 7,
        means=np.array([[0.0, 0.0], [1.0, 1.0]]),
        roots=np.array([np.diag([1 / 3, 1 / 2]), np.diag([40.5**-0.25, 8**-0.25])]),
    ),
    10_000,
)

# Where LRVB is compared with sampling, from many rows to so few that its standard deviations fail.
ACCURACY = (
    *(Scenario(f"5000 rows, {d} sd", _plane(_UNEQUAL, d), 5000) for d in (2.0, 2.6, 3.5)),
    Scenario("five features", _three_in_five_features(3.0)),
    Scenario("500 rows, 3.5 sd", _plane(_UNEQUAL, 3.5), 500),
    Scenario("200 rows, 3.5 sd", _plane(_UNEQUAL, 3.5), 200),
    Scenario("200 rows, 2.9 sd", _plane(_UNEQUAL, 2.9), 200),
)

SCENARIOS = (
    Scenario("2.0 sd", _plane(_UNEQUAL, 2.0)),
    Scenario("2.6 sd", _plane(_UNEQUAL, 2.6)),
    Scenario("3.5 sd", _plane(_UNEQUAL, 3.5)),
    Scenario("2.6 sd, fixed prior", _plane(_UNEQUAL, 2.6), prior="fixed"),
    Scenario("five features", _three_in_five_features(3.0)),
    Scenario("tied", _plane(_ONE_SHAPE, 2.6), covariance_type="tied"),
    Scenario("diagonal", _plane(_ALONG_AXES, 2.6), covariance_type="diag"),
    Scenario("spherical", _plane(_ROUND, 2.6), covariance_type="spherical"),
    Scenario("200 rows, 3.5 sd", _plane(_UNEQUAL, 3.5), 200),
    Scenario("200 rows, 2.6 sd", _plane(_UNEQUAL, 2.6), 200),
    Scenario("200 rows, 2.0 sd", _plane(_UNEQUAL, 2.0), 200),
    Scenario("200 rows, 2.6 sd, fixed prior", _plane(_UNEQUAL, 2.6), 200, prior="fixed"),
    Scenario("heavy tails", _plane(_UNEQUAL, 3.5, heavy_noise), wrong="t components"),
    Scenario("skew", _plane(_UNEQUAL, 3.5, skew_noise), wrong="gamma components"),
    Scenario(
        "correlated, spherical fit", _plane(_CORRELATED, 2.6), covariance_type="spherical", wrong="shape"
    ),
    Scenario("correlated, diagonal fit", _plane(_CORRELATED, 2.6), covariance_type="diag", wrong="shape"),
    Scenario("every row twice", _plane(_UNEQUAL, 2.6), wrong="dependent rows", copies=2),
)

# Where standard deviations of linear response are too small.
PLACES_OF_FAILURE = (
    Scenario("200 rows, 2.6 sd, fixed prior", _plane(_UNEQUAL, 2.6), 200, prior="fixed"),
    Scenario("200 rows, 2.0 sd, fixed prior", _plane(_UNEQUAL, 2.0), 200, prior="fixed"),
    Scenario("five features, fixed prior", _three_in_five_features(3.0), prior="fixed"),
)

_SHAPES = {"full": _UNEQUAL, "tied": _ONE_SHAPE, "diag": _ALONG_AXES, "spherical": _ROUND}


def planes(covariance_type, distance, n_samples, data_set=3):
    """Callable that simulates rows of two components in the plane, () -> (n_samples, 2)."""
    name = f"plane, {covariance_type}, {distance} sd, {n_samples} rows"
    scenario = Scenario(name, _plane(_SHAPES[covariance_type], distance), n_samples)
    return partial(scenario.simulate, data_set)


def three_in_five_features(distance, n_samples, data_set=3):
    """Callable that simulates rows of three components in five features, () -> (n_samples, 5)."""
    name = f"five features, {distance} sd, {n_samples} rows"
    return partial(Scenario(name, _three_in_five_features(distance), n_samples).simulate, data_set)
