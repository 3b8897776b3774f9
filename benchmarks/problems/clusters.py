"""Gaussian clusters: one table of problems for benchmarks and tests, and how their rows are simulated."""

from dataclasses import dataclass, replace

import numpy as np

_SPREAD_OF_SHAPES = 0.3  # of the random square roots of covariances about the identity


@dataclass(frozen=True)
class Problem:
    """Gaussian clusters of about unit variance, equally likely.

    Attributes
    ----------
    name : str
    n_samples, n_features, n_components : int, N, P and K
    distance : float or None, between the two nearest centers, in standard deviations
    spread : float or None, standard deviation of the centers' coordinates where no distance is set
    shapes : {"unequal", "equal"}, random covariances about the identity, or the identity
    covariance_type : {"full", "diag"}, of the mixture to fit
    seed : int
    """

    name: str
    n_samples: int
    n_features: int
    n_components: int
    distance: float | None = None
    spread: float | None = None
    shapes: str = "unequal"
    covariance_type: str = "full"
    seed: int = 0

    @property
    def n_unknowns(self):
        """Number of weights, means and precisions, D."""
        n_precisions = {"full": (self.n_features + 1) / 2, "diag": 1}[self.covariance_type]
        return int(self.n_components * (1 + self.n_features * (1 + n_precisions)))

    def scaled(self, n_samples):
        """The same clusters with at most ``n_samples`` rows."""
        return replace(self, n_samples=min(n_samples, self.n_samples))

    def simulate(self):
        """The rows, (n_samples, n_features)."""
        rng = np.random.default_rng(self.seed)
        centers = self._centers(rng)
        shapes = self._shapes(rng)
        labels = rng.integers(self.n_components, size=self.n_samples)
        X = rng.normal(size=(self.n_samples, self.n_features))
        for k, (center, shape) in enumerate(zip(centers, shapes, strict=True)):
            X[labels == k] = center + X[labels == k] @ shape
        return X

    def _centers(self, rng):
        centers = rng.normal(size=(self.n_components, self.n_features))
        if self.distance is None:
            return self.spread * centers
        gaps = np.linalg.norm(centers[:, None] - centers[None], axis=2)
        return self.distance / gaps[gaps > 0].min() * centers

    def _shapes(self, rng):
        shapes = np.tile(np.eye(self.n_features), (self.n_components, 1, 1))
        if self.shapes == "equal":
            return shapes
        return shapes + _SPREAD_OF_SHAPES / np.sqrt(self.n_features) * rng.normal(size=shapes.shape)


PROBLEMS = {
    problem.name: problem
    for problem in (
        # name, rows N, features P, components K, distance in standard deviations
        Problem("few-plane", 300, 2, 2, 2.5),
        Problem("few-five", 600, 5, 3, 3.0),
        Problem("plane-equal", 10_000, 2, 2, 1.5, shapes="equal"),
        Problem("plane-unequal", 10_000, 2, 2, 1.5),
        Problem("plane", 10_000, 2, 2, 2.5),
        Problem("plane-separated", 10_000, 2, 2, 6.0),
        Problem("plane-five", 100_000, 2, 5, 4.0),
        Problem("digits", 12_665, 25, 2, 3.0),  # the size of the zeros and ones of MNIST in 25 features
        Problem("digits-separated", 12_665, 25, 2, 8.0),
        Problem("five", 50_000, 10, 5, 3.0),
        Problem("five-separated", 50_000, 10, 5, 8.0),
        Problem("ten", 20_000, 25, 10, 4.0),
        Problem("twenty-diagonal", 3_000, 30, 20, spread=1.0, shapes="equal", covariance_type="diag"),
        Problem("many-rows-five", 100_000, 10, 5, 3.0),
        Problem("many-rows-ten", 100_000, 10, 10, 3.0),
        Problem("many-rows-wide", 100_000, 25, 10, 4.0),
        Problem("million-five", 1_000_000, 10, 5, 3.0),
        Problem("million-ten", 1_000_000, 10, 10, 4.0),
        Problem("fifty-axes", 5_000, 50, 5, spread=0.7),  # as many as people keep of a PCA
        Problem("embeddings", 2_000, 384, 10, spread=0.5, shapes="equal", covariance_type="diag"),
        Problem("fifty-features", 100_000, 50, 3, 3.0),
        Problem("hundred-features", 20_000, 100, 2, 4.0),
        Problem("hundred-features-five", 20_000, 100, 5, 4.0),
    )
}

# The problems that an experiment measures.
ITERATION = ("plane", "plane-five", "digits", "many-rows-wide", "million-ten", "hundred-features-five")
FIT = (
    "plane-equal",
    "plane-unequal",
    "plane",
    "plane-separated",
    "plane-five",
    "five",
    "five-separated",
    "digits",
    "digits-separated",
    "ten",
    "twenty-diagonal",
)
INFORMATION = ("plane", "digits", "many-rows-ten", "million-five", "fifty-features", "hundred-features")
INFLUENCE = ("plane", "digits", "many-rows-five")
DIAGNOSTICS = (
    "plane",
    "digits",
    "digits-separated",
    "twenty-diagonal",
    "many-rows-five",
    "fifty-axes",
    "embeddings",
)
LEAVE_ONE_OUT = ("few-plane", "few-five", "digits", "plane")
PEERS = ("plane", "digits")


def _growing(size, values, **others):
    sizes = [{**others, size: value} for value in values]
    return tuple(Problem(f"{size}={s[size]}", distance=4.0, **s) for s in sizes)


# The size that grows, and the problems along it.
GROWTH = {
    "n_samples": _growing("n_samples", (1_000, 10_000, 100_000, 1_000_000), n_features=5, n_components=3),
    "n_features": _growing("n_features", (2, 4, 8, 16, 32, 64, 100), n_samples=10_000, n_components=3),
    "n_components": _growing("n_components", (2, 4, 8, 16, 32), n_samples=20_000, n_features=5),
}

# Fewer rows than features, up to 50 times as few; the last has more rows.
WIDE = tuple(
    Problem(f"{n_samples} x {n_features}", n_samples, n_features, n_components, spread=1.0, shapes="equal")
    for n_samples, n_features in (
        (40, 40),
        (40, 1_000),
        (20, 1_000),
        (60, 400),
        (100, 200),
        (300, 300),
        (400, 500),
        (500, 300),
    )
    for n_components in (1, 3, 5)
)

# The same for the comparison with Gibbs sampling, whose cost allows smaller sizes only.
SCALING = {
    "n_samples": _growing("n_samples", (1_000, 10_000, 100_000, 1_000_000), n_features=5, n_components=3),
    "n_features": _growing("n_features", (2, 4, 8, 16, 32), n_samples=10_000, n_components=3),
    "n_components": _growing("n_components", (2, 4, 8, 16), n_samples=20_000, n_features=5),
}
