"""A Gibbs sampler of the latent class model, from its formulas alone, by which the library is judged.

Row n has a latent class z_n ~ pi. Given the class, the columns are independent:

* weights: pi ~ Dirichlet(a, ..., a), a = 1 / K by default;
* categorical or binary: p ~ Dirichlet(1, ..., 1);
* count: y ~ Poisson(rate), rate ~ Gamma(1, rate 1 / mean of the column);
* numeric, (y - mean of the column) / its standard deviation (with divisor N): N(mu, 1 / tau), mu | tau ~
  N(0, 1 / (0.1 tau)), tau ~ Gamma(1, rate 0.5).

A number u of all columns of categories, and one of all columns of counts, may be unknown too, with the prior
Gamma(1, rate 1):

* categorical: p ~ Dirichlet(u r), r being 0.2 and 0.8 times the shares of the categories over their mean;
* count: rate ~ Gamma(u, rate u / mean of the column).

A missing value has no part in the likelihood. Many chains run at once; equal rows are drawn together.

Conventions: S chains, K classes, n different rows, W features of all columns together. The parameters of a
column are of shape (..., K, C): C probabilities, one rate, or a mean and a standard deviation.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln, softmax

SMALLEST = 1e-300  # Weights of empty classes may underflow; their logarithms must remain numbers.


class Categories:
    """A column of categories: those of its dtype, or those that occur, sorted."""

    def __init__(self, column, learns):
        self.names = list(pd.Categorical(column).categories)
        numbers = self.features(column).sum(axis=0)
        self.relative = 0.8 * numbers / numbers.mean() + 0.2 if learns else np.ones(len(numbers))

    def features(self, column):
        """Indicators, of shape (N, C)."""
        return np.stack([(column == name).fillna(False).to_numpy(float) for name in self.names], axis=1)

    def draw(self, sums, rng, u):
        """Probabilities given the sums of the features of each class, of shape (S, K, C), and u, (S, 1)."""
        return _dirichlet(u[..., None] * self.relative + sums, rng)

    def log_prior(self, probabilities, u):
        """Log prior density given u, up to a constant, of shape (S, K)."""
        concentration = u[..., None] * self.relative
        constant = gammaln(concentration.sum(axis=-1)) - gammaln(concentration).sum(axis=-1)
        return constant + (concentration * self.coefficients(probabilities)).sum(axis=-1)

    def coefficients(self, probabilities):
        """The log density's coefficients of the features, of shape (..., K, C)."""
        return np.log(np.maximum(probabilities, SMALLEST))

    def coordinates(self, probabilities):
        """Numbers in which classes are compared: half the squared distance is about that of Hellinger."""
        return np.sqrt(probabilities)


class Counts:
    """A column of counts; its parameter is the rate."""

    def __init__(self, column, learns):
        self.mean = column.mean()

    def features(self, column):
        """The count, and whether it is seen, of shape (N, 2)."""
        return np.stack([column.fillna(0).to_numpy(float), column.notna().to_numpy(float)], axis=1)

    def draw(self, sums, rng, u):
        """Rates given the sums of the features."""
        total, seen = sums[..., 0], sums[..., 1]
        return (rng.gamma(u + total) / (u / self.mean + seen))[..., None]

    def log_prior(self, rates, u):
        return u * np.log(u / self.mean) - gammaln(u) + u * (np.log(rates) - rates / self.mean)[..., 0]

    def coefficients(self, rates):
        return np.concatenate([np.log(np.maximum(rates, SMALLEST)), -rates], axis=-1)

    def coordinates(self, rates):
        return np.sqrt(rates)


class Numbers:
    """A column of numbers; its parameters are a mean and a standard deviation, in the units of the column."""

    def __init__(self, column, learns):
        self.mean, self.sd = column.mean(), column.std(ddof=0)

    def features(self, column):
        """Whether the number is seen, the standardised number, and its square, of shape (N, 3)."""
        y = ((column - self.mean) / self.sd).fillna(0).to_numpy(float)
        return np.stack([column.notna().to_numpy(float), y, y * y], axis=1)

    def draw(self, sums, rng, u):
        """Means and standard deviations given the sums of the features."""
        number, total, squares = np.moveaxis(sums, -1, 0)
        mean = total / (0.1 + number)
        precision = rng.gamma(1.0 + number / 2) / (0.5 + 0.5 * (squares - (0.1 + number) * mean**2))
        mean = mean + rng.normal(size=mean.shape) / np.sqrt((0.1 + number) * precision)
        return np.stack([self.mean + self.sd * mean, self.sd / np.sqrt(precision)], axis=-1)

    def coefficients(self, parameters):
        mean, sd = (parameters[..., 0] - self.mean) / self.sd, parameters[..., 1] / self.sd
        return np.stack([-np.log(sd) - 0.5 * (mean / sd) ** 2, mean / sd**2, -0.5 / sd**2], axis=-1)

    def coordinates(self, parameters):
        return np.stack(
            [(parameters[..., 0] - self.mean) / self.sd, np.log(parameters[..., 1] / self.sd)], axis=-1
        )


KINDS = {"categorical": Categories, "binary": Categories, "count": Counts, "numeric": Numbers}


def _dirichlet(concentrations, rng):
    """Draws from Dirichlet distributions along the last axis."""
    draws = np.maximum(rng.gamma(concentrations), SMALLEST)
    return draws / draws.sum(axis=-1, keepdims=True)


@dataclass
class Draws:
    """Draws of a posterior, with the classes in the order of the estimate.

    Attributes
    ----------
    weights : array of shape (S, n_draws, K)
    parameters : dict from columns to arrays of shape (S, n_draws, K, C)
    learned : dict from classes of columns to arrays of shape (S, n_draws), u where it is unknown
    """

    weights: np.ndarray
    parameters: dict
    learned: dict

    def quantities(self):
        """The weights under "weights" and every column's parameters, in one dict."""
        return {"weights": self.weights, **self.parameters}

    def mean(self):
        """The posterior means, a dict like `quantities` without the axes of the draws."""
        return {name: draws.mean(axis=(0, 1)) for name, draws in self.quantities().items()}

    def std(self):
        """The posterior standard deviations."""
        return {name: draws.std(axis=(0, 1)) for name, draws in self.quantities().items()}

    def effective_sizes(self):
        """The effective sample sizes."""
        return {name: effective_sizes(draws) for name, draws in self.quantities().items()}


def sample(
    table,
    kinds,
    estimate,
    *,
    n_chains=50,
    n_draws=1000,
    n_warmup=200,
    concentration=None,
    dispersed=False,
    learns=False,
    seed=0,
):
    """Draws of the posterior of a table.

    Parameters
    ----------
    table : DataFrame of N rows
    kinds : dict from its columns to "categorical", "binary", "count" or "numeric"
    estimate : (weights, parameters)
        The classes after which those of the draws are ordered, and from which all chains start: an array of
        shape (K,), and a dict from the columns to arrays of shape (K, C).
    concentration : float, default 1 / K
        Of the Dirichlet prior of the weights.
    dispersed : bool
        Every chain starts at classes drawn at random instead.
    learns : bool
        Whether every u is unknown.

    Returns
    -------
    Draws
    """
    weights = np.asarray(estimate[0], float)
    parameters = {column: np.asarray(estimate[1][column], float) for column in kinds}
    n_classes = len(weights)
    sampler = _Sampler(table, kinds, 1 / n_classes if concentration is None else concentration, learns, seed)
    if dispersed:
        equal, shape = np.full(n_classes, 1 / n_classes), (n_chains, len(sampler.counts))
        state = sampler.parameters(sampler.rng.multinomial(sampler.counts, equal, shape))
    else:
        copies = {column: np.tile(one, (n_chains, 1, 1)) for column, one in parameters.items()}
        state = np.tile(weights, (n_chains, 1)), copies
    kept, us = [], []
    for step in range(n_warmup + n_draws):
        sampler.learn(state[1])
        state = sampler.parameters(sampler.classes(*state))
        if step >= n_warmup:
            kept.append(state)
            us.append(dict(sampler.u))
    draws = Draws(
        np.stack([w for w, _ in kept], axis=1),
        {c: np.stack([p[c] for _, p in kept], axis=1) for c in kinds},
        {name: np.concatenate([u[name] for u in us], axis=1) for name in sampler.learned},
    )
    return _aligned(draws, weights, parameters, sampler.columns)


class _Sampler:
    """The two conditional distributions of a table."""

    def __init__(self, table, kinds, concentration, learns, seed):
        self.columns = {column: KINDS[kind](table[column], learns) for column, kind in kinds.items()}
        blocks = [column.features(table[name]) for name, column in self.columns.items()]
        self.features, self.counts = np.unique(np.hstack(blocks), axis=0, return_counts=True)
        ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
        self.split = lambda sums: np.split(sums, ends, axis=-1)
        self.concentration = concentration
        self.rng = np.random.default_rng(seed)
        self.u = {type(column): np.ones((1, 1)) for column in self.columns.values()}
        self.learned = [kind for kind in self.u if learns and kind is not Numbers]

    def learn(self, parameters):
        """Draw every u given the parameters, by steps of Metropolis' algorithm in log u."""
        for kind in self.learned:
            u = np.broadcast_to(self.u[kind], (len(next(iter(parameters.values()))), 1))
            for _ in range(5):
                proposed = u * np.exp(self.rng.uniform(0.05, 2.0) * self.rng.normal(size=u.shape))
                gain = self._log_density(kind, parameters, proposed) - self._log_density(kind, parameters, u)
                u = np.where(np.log(self.rng.random(u.shape)) < gain, proposed, u)
            self.u[kind] = u

    def _log_density(self, kind, parameters, u):
        """Log density of log u, of shape (S, 1), given the parameters, up to a constant."""
        own = [(name, column) for name, column in self.columns.items() if type(column) is kind]
        of_classes = sum(column.log_prior(parameters[name], u) for name, column in own)
        return of_classes.sum(axis=1, keepdims=True) + np.log(u) - u

    def classes(self, weights, parameters):
        """How many of the equal rows are in each class, of shape (S, n, K)."""
        coefficients = [column.coefficients(parameters[name]) for name, column in self.columns.items()]
        logits = self.features @ np.swapaxes(np.concatenate(coefficients, axis=-1), 1, 2)
        probabilities = softmax(logits + np.log(np.maximum(weights, SMALLEST))[:, None], axis=2)
        return self.rng.multinomial(self.counts, probabilities)

    def parameters(self, numbers):
        """Weights and parameters given the numbers in each class."""
        weights = _dirichlet(self.concentration + numbers.sum(axis=1), self.rng)
        sums = self.split(np.swapaxes(numbers, 1, 2) @ self.features)
        return weights, {
            name: column.draw(block, self.rng, self.u[type(column)])
            for (name, column), block in zip(self.columns.items(), sums, strict=True)
        }


def _aligned(draws, weights, parameters, columns):
    """The draws, with the classes of each in the order nearest to an estimate (the Hungarian method)."""
    ours = _coordinates(draws.weights, draws.parameters, columns)
    theirs = _coordinates(weights, parameters, columns)
    distances = sum(
        (a[..., :, None] - b) ** 2
        for a, b in zip(np.moveaxis(ours, -1, 0), np.moveaxis(theirs, -1, 0), strict=True)
    )
    orders = [linear_sum_assignment(one.T)[1] for one in distances.reshape(-1, *distances.shape[2:])]
    order = np.array(orders).reshape(draws.weights.shape)
    return Draws(
        np.take_along_axis(draws.weights, order, axis=2),
        {name: np.take_along_axis(draw, order[..., None], axis=2) for name, draw in draws.parameters.items()},
        draws.learned,
    )


def _coordinates(weights, parameters, columns):
    """All numbers in which classes are compared, of shape (..., K, number)."""
    blocks = [column.coordinates(parameters[name]) for name, column in columns.items()]
    return np.concatenate([np.sqrt(weights)[..., None], *blocks], axis=-1)


def effective_sizes(draws):
    """Effective sample sizes of draws of shape (S, n_draws, ...), of shape (...).

    Autocorrelations of all chains together, with the variance between the chains, summed up to the first
    negative pair (Gelman et al. 2013, Bayesian Data Analysis, section 11.5). There must be two chains or
    more; a constant counts as independent draws.
    """
    n_chains, n_draws = draws.shape[:2]
    centred = draws - draws.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * n_draws, axis=1)
    covariances = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n_draws].mean(axis=0) / n_draws
    within = covariances[0] * n_draws / (n_draws - 1)
    total = covariances[0] + draws.mean(axis=1).var(axis=0, ddof=1)
    correlations = 1 - (within - covariances) / np.where(total > 0, total, 1.0)
    pairs = correlations[0 : n_draws - 1 : 2] + correlations[1:n_draws:2]
    pairs = np.where((total > 0) & np.cumprod(pairs > 0, axis=0, dtype=bool), pairs, 0.0)
    return n_chains * n_draws / np.maximum(2 * pairs.sum(axis=0) - 1, 1 / np.log10(n_chains * n_draws))
