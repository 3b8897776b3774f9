"""Distributions of an outcome in a cluster, with linear predictors: normal, categorical and Poisson.

Q predictors belong to a cluster: of a normal outcome the mean and the log standard deviation; of M categories
the log odds of each against the first; of a count the log mean. Covariates may act on some of them, in all
clusters alike.

*Conventions.* n rows, L labels (clusters, and noise), Q predictors of each, m means; y is in scaled units.
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import gammaln


class Outcome(ABC):
    """A distribution of an outcome.

    Attributes
    ----------
    n_predictors : int, Q
    is_adjusted : bool array (Q,), on which of them covariates act
    contrast : (Q, Q), precision of the weak prior of differences, before a factor
    means, predictors : list of str
        What its means, and the predictors on which covariates act, are called after the name of the column:
        "" or "=yes".
    link : {"identity", "logit", "log"}, of means and predictors
    dtype : of scaled values
    centre, scale : float, of the predictors on which covariates act, in the user's units
    """

    link = "identity"
    centre, scale = 0.0, 1.0
    dtype: type = np.float64

    def __init__(self, n_predictors, is_adjusted, contrast, means, predictors):
        self.n_predictors, self.is_adjusted = n_predictors, is_adjusted
        self.contrast, self.means, self.predictors = contrast, means, predictors

    @abstractmethod
    def scaled(self, y):
        """Values as the density takes them, (n,)."""

    is_checked = True  # Whether the distribution may be wrong: that of categories cannot.

    def values(self, y):
        """Scaled values whose means are looked at, (n, q)."""
        return y[:, None]

    @abstractmethod
    def start(self, y, weights):
        """Predictors (L, Q) at which a search starts, from values (n,) and weights of labels (L, n)."""

    @abstractmethod
    def log_density(self, y, predictors):
        """Log density, and its gradient in the predictors: (n,), (L, Q, n) -> (L, n), (L, Q, n)."""

    @abstractmethod
    def information(self, y, predictors):
        """Minus its second derivatives, and their expectation, positive definite: two of (L, Q, Q, n)."""

    @abstractmethod
    def mean(self, predictors):
        """Means in the user's units, and derivatives: (L, Q, n) -> (L, m, n), (L, m, Q, n)."""

    def log_prior(self, predictors):
        """What a proper posterior needs besides: (L, Q) -> value, gradient (L, Q), information (L, Q, Q)."""
        zero = np.zeros_like(predictors)
        return 0.0, zero, np.zeros((*predictors.shape, self.n_predictors))


class Normal(Outcome):
    """A normal outcome, whose variance may differ between clusters.

    A variance has the weak prior of one row more, a standard deviation of all rows away from the mean.
    """

    def __init__(self, y, weights):
        super().__init__(2, np.array([True, False]), np.diag([1.0, 0.0]), [""], [""])
        self.centre = float(np.average(y, weights=weights))
        self.scale = float(np.sqrt(np.average(np.square(y - self.centre), weights=weights)))

    def scaled(self, y):
        return (y - self.centre) / self.scale

    def start(self, y, weights):
        total = weights.sum(axis=1) + 1.0
        means = weights @ y / total
        squares = np.einsum("kn,kn->k", weights, np.square(y - means[:, None])) + 1.0
        return np.stack([means, 0.5 * np.log(squares / total)], axis=1)

    def log_density(self, y, predictors):
        residual, precision = y - predictors[:, 0], np.exp(-2.0 * predictors[:, 1])
        square = np.square(residual) * precision
        values = -0.5 * np.log(2.0 * np.pi) - predictors[:, 1] - 0.5 * square
        return values, np.stack([residual * precision, square - 1.0], axis=1)

    def information(self, y, predictors):
        residual, precision = y - predictors[:, 0], np.exp(-2.0 * predictors[:, 1])
        observed, expected = np.zeros((2, len(precision), 2, 2, residual.shape[1]))
        observed[:, 0, 0] = expected[:, 0, 0] = precision
        observed[:, 0, 1] = observed[:, 1, 0] = 2.0 * residual * precision
        observed[:, 1, 1], expected[:, 1, 1] = 2.0 * np.square(residual) * precision, 2.0
        return observed, expected

    def mean(self, predictors):
        means = self.centre + self.scale * predictors[:, :1]
        slopes = np.zeros((len(means), 1, 2, means.shape[2]))
        slopes[:, 0, 0] = self.scale
        return means, slopes

    def log_prior(self, predictors):
        precision = np.exp(-2.0 * predictors[..., 1])
        value = -np.sum(predictors[..., 1] + 0.5 * precision)
        gradient = np.stack([np.zeros_like(precision), precision - 1.0], axis=-1)
        information = np.zeros((*precision.shape, 2, 2))
        information[..., 1, 1] = 2.0 * precision
        return value, gradient, information


class Categorical(Outcome):
    """An outcome of M categories; of yes and no there are two."""

    link = "logit"
    dtype = np.intp
    is_checked = False

    def values(self, y):
        return (y[:, None] == np.arange(1, len(self.codes))).astype(np.float64)

    def __init__(self, names, codes):
        self.codes = codes
        size = len(codes) - 1
        contrast = 2.0 * (np.eye(size) - 1.0 / len(codes))  # Of two categories it is one.
        # Of two categories the mean is the share of the second.
        means = [f"={name}" for name in (names[1:] if size == 1 else names)]
        predictors = [f"={name}" for name in names[1:]]
        super().__init__(size, np.ones(size, dtype=bool), contrast, means, predictors)

    def scaled(self, y):
        return np.searchsorted(self.codes, y)

    def _log_shares(self, predictors):
        """Logarithms of the shares of all categories, (L, M, n)."""
        padded = np.concatenate([np.zeros_like(predictors[:, :1]), predictors], axis=1)
        padded -= padded.max(axis=1, keepdims=True)
        return padded - np.log(np.exp(padded).sum(axis=1, keepdims=True))

    def start(self, y, weights):
        counts = np.stack([weights[:, y == code].sum(axis=1) for code in range(len(self.codes))], axis=1)
        return np.log(counts[:, 1:] + 0.5) - np.log(counts[:, :1] + 0.5)

    def log_density(self, y, predictors):
        log_shares = self._log_shares(predictors)
        values = np.take_along_axis(log_shares, y[None, None], axis=1)[:, 0]
        return values, (y == np.arange(1, len(self.codes))[:, None]) - np.exp(log_shares[:, 1:])

    def information(self, y, predictors):
        shares = np.exp(self._log_shares(predictors)[:, 1:])
        information = -shares[:, :, None] * shares[:, None]
        places = np.arange(self.n_predictors)
        information[:, places, places] += shares
        return information, information

    def mean(self, predictors):
        shares = np.exp(self._log_shares(predictors))
        slopes = -shares[:, :, None] * shares[:, None, 1:]
        places = np.arange(self.n_predictors)
        slopes[:, 1 + places, places] += shares[:, 1:]
        first = int(self.n_predictors == 1)
        return shares[:, first:], slopes[:, first:]


class Poisson(Outcome):
    """A count, whose mean is its variance."""

    link = "log"

    def __init__(self):
        super().__init__(1, np.ones(1, dtype=bool), np.ones((1, 1)), [""], [""])

    def scaled(self, y):
        return y

    def start(self, y, weights):
        return np.log((weights @ y + 0.5) / (weights.sum(axis=1) + 0.5))[:, None]

    def log_density(self, y, predictors):
        mean = np.exp(predictors)
        values = y * predictors[:, 0] - mean[:, 0] - gammaln(y + 1.0)
        return values, y - mean

    def information(self, y, predictors):
        mean = np.exp(predictors)[:, :, None]
        return mean, mean

    def mean(self, predictors):
        mean = np.exp(predictors)
        return mean, mean[:, :, None]


def outcome_of(column, values, weights):
    """The distribution of a column of outcomes: Outcome.

    Parameters
    ----------
    column : `mixed_tables.table.Column`
    values : (n,), without a missing value
    weights : (n,), how often rows count

    Raises
    ------
    ValueError
        It is said to be a duration.
    """
    if column.kind == "duration":
        raise ValueError(
            f"Outcome {column.name!r} is said to be a duration, which has no distribution here: pass its "
            "logarithm, as a column of numbers."
        )
    if not column.holds_numbers:
        codes = np.unique(values)
        return Categorical([column.categories[int(code)] for code in codes], codes)
    return Poisson() if column.kind == "count" else Normal(values, weights)
