"""A plain Gibbs sampler of a Gaussian mixture that learns b0 and C0, many chains at once.

It is written from the model alone (`learned_prior.py`), and draws in turn weights, means and precisions; b0
and C0; and labels. With broken sticks it also draws the order of the labels, given which rows are together:
the prior depends on it. Arrays have the chains (C) as their first axis. Means are measured from the prior's.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from covariance_types import CovarianceType
from scipy.special import betaln, xlogy


@dataclass(frozen=True)
class Model:
    """The model: rows, and everything that is given.

    `covariance` is S, in the shape of one precision, and `known_noise` the variances (P,) of known noise.
    """

    X: np.ndarray
    n_components: int
    covariance_type: CovarianceType
    sticks: bool
    concentration: float
    mean_prior: np.ndarray
    degrees_of_freedom: float
    covariance: np.ndarray
    known_noise: np.ndarray

    @property
    def n_features(self):
        return self.X.shape[1]

    @property
    def block_size(self):
        return self.covariance_type.block_size(self.n_features)

    @property
    def expected_scale(self):
        """C0 = nu0 S, (1, blocks of a group, d, d)."""
        return self.degrees_of_freedom * self.covariance.reshape(1, -1, self.block_size, self.block_size)

    @property
    def inverse_scale(self):
        """A = (g/nu0) S^-1 with g = d, in the same shape."""
        return self.block_size * np.linalg.inv(self.expected_scale)

    def matrices(self, blocks):
        """Every component's precision from all Wishart blocks: (C, B, d, d) -> (C, K, P, P)."""
        n_chains, n_features = len(blocks), self.n_features
        if self.covariance_type.is_matrix:
            found = blocks
        else:
            values = blocks.reshape(n_chains, -1, self.covariance_type.n_blocks(n_features))
            found = values[..., None] * np.eye(n_features)
        return np.broadcast_to(found, (n_chains, self.n_components, n_features, n_features))

    def per_group(self, blocks):
        """Wishart blocks by precision group: (C, B, d, d) -> (C, S, blocks of a group, d, d)."""
        n_blocks = self.covariance_type.n_blocks(self.n_features)
        return blocks.reshape(len(blocks), -1, n_blocks, *blocks.shape[2:])


def random_wisharts(rng, degrees_of_freedom, inverse_scale):
    """Wishart matrices, or gamma variables: (C, B) or a number, (C, B, d, d) -> (C, B, d, d)."""
    size = inverse_scale.shape[-1]
    triangle = np.tril(rng.standard_normal(inverse_scale.shape), -1)
    freedom = np.broadcast_to(degrees_of_freedom, inverse_scale.shape[:-2])[..., None] - np.arange(size)
    np.einsum("cbii->cbi", triangle)[...] = np.sqrt(rng.chisquare(freedom))
    root = np.linalg.inv(np.linalg.cholesky(inverse_scale)).swapaxes(-1, -2) @ triangle
    return root @ root.swapaxes(-1, -2)


def random_weights(rng, model, counts):
    """log weights given the counts of the components, (C, K)."""
    if not model.sticks:
        return np.log(np.maximum(rng.standard_gamma(model.concentration + counts), 1e-300))
    later = counts[:, ::-1].cumsum(axis=1)[:, ::-1] - counts
    sticks = np.clip(rng.beta(1.0 + counts, model.concentration + later), 1e-300, 1.0 - 1e-16)
    rests = np.cumsum(np.log1p(-sticks), axis=1)
    return np.log(sticks) + rests - np.log1p(-sticks)


def random_parameters(rng, model, assigned, b0, C0):
    """log weights, means from m0 and Wishart blocks, given indicators (C, N, K), b0 (C,), C0 (C, ., d, d)."""
    X, counts = model.X - model.mean_prior, assigned.sum(axis=1)
    tau = b0[:, None] + counts
    centres = np.einsum("cnk,np->ckp", assigned, X) / tau[..., None]
    scatter = np.einsum("cnk,np,nq->ckpq", assigned, X, X, optimize=True)
    scatter -= np.einsum("ck,ckp,ckq->ckpq", tau, centres, centres)
    scatter += counts[..., None, None] * np.diag(model.known_noise)
    own_counts, own_scatter = model.covariance_type.blocks_of(counts, scatter)
    inverse_scale = own_scatter + np.tile(C0, (1, own_scatter.shape[1] // C0.shape[1], 1, 1))
    blocks = random_wisharts(rng, model.degrees_of_freedom + own_counts, inverse_scale)
    roots = np.linalg.cholesky(tau[..., None, None] * model.matrices(blocks))
    noise = rng.standard_normal(centres.shape)[..., None]
    means = centres + np.linalg.solve(roots.swapaxes(-1, -2), noise)[..., 0]
    return random_weights(rng, model, counts), means, blocks


def random_hyperparameters(rng, model, means, blocks):
    """b0 (C,) and C0 (C, ., d, d) given means from m0 and precisions."""
    n_means, half = means[0].size, 0.5 * model.n_features
    squares = np.einsum("ckp,ckpq,ckq->c", means, model.matrices(blocks), means)
    b0 = rng.standard_gamma(half + 0.5 * n_means, len(means)) / (half + 0.5 * squares)
    by_group = model.per_group(blocks)
    freedom = model.block_size + by_group.shape[1] * model.degrees_of_freedom
    return b0, random_wisharts(rng, freedom, model.inverse_scale + by_group.sum(axis=1))


def random_labels(rng, model, log_weights, means, blocks):
    """Indicators of the components of the rows, (C, N, K)."""
    Lambda = model.matrices(blocks)
    scores = log_weights + 0.5 * np.linalg.slogdet(Lambda)[1]
    scores -= 0.5 * np.einsum("ckpp,p->ck", Lambda, model.known_noise)
    gaps = (model.X - model.mean_prior) - means[:, :, None]  # (C, K, N, P)
    squares = (gaps @ Lambda * gaps).sum(axis=-1)
    scores = (scores[..., None] - 0.5 * squares).swapaxes(1, 2)
    return np.eye(model.n_components)[(scores + rng.gumbel(size=scores.shape)).argmax(axis=2)]


def in_random_order(rng, model, assigned):
    """Indicators with the labels in an order drawn given the partition; the weights are integrated out."""
    order = orders(model)
    own = assigned.sum(axis=1)[:, order]  # (C, orders, K)
    later = own[..., ::-1].cumsum(axis=-1)[..., ::-1] - own
    log_shares = betaln(1.0 + own, model.concentration + later).sum(axis=-1)
    drawn = order[(log_shares + rng.gumbel(size=log_shares.shape)).argmax(axis=1)]
    return np.take_along_axis(assigned, drawn[:, None, :], axis=2)


def orders(model):
    """All orders of the components, (K!, K)."""
    return np.array(list(itertools.permutations(range(model.n_components))))


def sampled(model, starts, closest_to, n_scans, n_warmup, thinning=1, seed=0):
    """Draws of theta and b0: log weights, means, unique precisions, b0; (n_scans / thinning, C, D + 1).

    Chains start from labels (C, N). Components are numbered as those of a `Mixture` that they are closest to.
    """
    rng, assigned = np.random.default_rng(seed), np.eye(model.n_components)[starts]
    b0 = np.ones(len(starts))
    C0 = np.broadcast_to(model.expected_scale, (len(starts), *model.expected_scale.shape[1:]))
    draws = []
    for scan in range(n_warmup + n_scans):
        if model.sticks:
            assigned = in_random_order(rng, model, assigned)
        parameters = random_parameters(rng, model, assigned, b0, C0)
        b0, C0 = random_hyperparameters(rng, model, *parameters[1:])
        assigned = random_labels(rng, model, *parameters)
        if scan >= n_warmup and scan % thinning == 0:
            draws.append(numbered(model, closest_to, *parameters, b0))
    return np.array(draws)


@dataclass(frozen=True)
class Mixture:
    """Shares of the rows (K,), means (K, P) and covariances (K, P, P) of components."""

    shares: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def divergences(self, log_weights, means, precisions):
        """Of draws' components (columns) from these (rows), doubled, of label and row together: (C, K, K)."""
        shares, n_features = self.shares[:, None], self.means.shape[1]
        gaps = means[:, None] - self.means[:, None]
        squares = np.einsum("cklp,clpq,cklq->ckl", gaps, precisions, gaps)
        traces = np.einsum("clpq,kpq->ckl", precisions, self.covariances)
        log_ratios = (
            np.linalg.slogdet(precisions)[1][:, None] + np.linalg.slogdet(self.covariances)[1][:, None]
        )
        of_rows = traces + squares - log_ratios - n_features
        return shares * (of_rows - 2.0 * log_weights[:, None]) + 2.0 * xlogy(shares, shares)


def numbered(model, closest_to, log_weights, means, blocks, b0):
    """Parameters with the numbers of the components of a `Mixture` that are closest, (C, D + 1)."""
    log_weights = log_weights - np.logaddexp.reduce(log_weights, axis=1, keepdims=True)
    means = means + model.mean_prior
    divergences = closest_to.divergences(log_weights, means, model.matrices(blocks))
    order = orders(model)
    best = order[divergences[:, np.arange(model.n_components), order].sum(axis=-1).argmin(axis=1)]  # (C, K)
    log_weights = np.take_along_axis(log_weights, best, axis=1)
    means = np.take_along_axis(means, best[..., None], axis=1)
    groups = model.per_group(blocks)
    if not model.covariance_type.is_shared:
        groups = np.take_along_axis(groups, best[..., None, None, None], axis=1)
    rows, columns = np.triu_indices(model.block_size)
    parts = log_weights, means, groups[..., rows, columns], b0
    return np.concatenate([np.reshape(part, (len(b0), -1)) for part in parts], axis=1)
