"""Maximum likelihood of latent classes of categories: plain EM from many starts, and poLCA's standard errors.

Conventions: K classes, n patterns (different rows), W categories of all columns together. A missing value
is a row of zeros in the indicators of its column, and so has no part in the likelihood.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

SMALLEST = 1e-300  # Probabilities on the boundary are zero; their logarithms must remain numbers.


@dataclass
class Estimate:
    """A maximum of the likelihood, with the classes in falling order of their weights.

    Attributes
    ----------
    log_likelihood : float
    weights, weights_std : array of shape (K,)
    probabilities, probabilities_std : dict from columns to arrays of shape (K, n_categories)
        The categories are those that occur, sorted.
    """

    log_likelihood: float
    weights: np.ndarray
    weights_std: np.ndarray
    probabilities: dict
    probabilities_std: dict


class Patterns:
    """The different rows of a table as indicators, of shape (n, W), and the number of each, of shape (n,)."""

    def __init__(self, table):
        different = table.groupby(list(table.columns), dropna=False, sort=False).size().reset_index(name="")
        self.counts = different.pop("").to_numpy(float)
        blocks = [pd.get_dummies(different[column], dtype=float).to_numpy() for column in table]
        self.indicators = np.hstack(blocks)
        ends = np.cumsum([block.shape[1] for block in blocks])
        self.slices = {
            column: slice(end - block.shape[1], end)
            for column, end, block in zip(table, ends, blocks, strict=True)
        }


def fit(table, n_classes, n_starts=20, n_short=100, tol=1e-13, seed=0):
    """The best maximum that EM finds from random starts, with poLCA's standard errors.

    All starts make `n_short` steps together; the best goes on until each of a hundred steps gains less than
    `tol` of the log likelihood.
    """
    patterns = Patterns(table)
    rng = np.random.default_rng(seed)
    weights = np.full((n_starts, n_classes), 1 / n_classes)
    probabilities = rng.dirichlet(np.ones(n_classes), (n_starts, patterns.indicators.shape[1])).transpose(
        0, 2, 1
    )
    probabilities = _normalized(patterns, probabilities + 0.1)
    for _ in range(n_short):
        log_likelihoods, responsibilities = _e_step(patterns, weights, probabilities)
        weights, probabilities = _m_step(patterns, responsibilities)
    best = np.argmax(log_likelihoods)
    weights, probabilities = weights[best], probabilities[best]
    gains = np.full(100, np.inf)
    log_likelihood, responsibilities = _e_step(patterns, weights, probabilities)
    while gains.max() > tol * abs(log_likelihood):
        weights, probabilities = _m_step(patterns, responsibilities)
        before = log_likelihood
        log_likelihood, responsibilities = _e_step(patterns, weights, probabilities)
        gains = np.append(gains[1:], log_likelihood - before)
    return _estimate(patterns, weights, probabilities)


def _estimate(patterns, weights, probabilities):
    """What is reported of a maximum, in falling order of the weights."""
    order = np.argsort(-weights, kind="stable")
    weights, probabilities = weights[order], probabilities[order]
    weights_std, probabilities_std = standard_errors(patterns, weights, probabilities)
    return Estimate(
        float(_e_step(patterns, weights, probabilities)[0]),
        weights,
        weights_std,
        {column: probabilities[:, where] for column, where in patterns.slices.items()},
        {column: probabilities_std[:, where] for column, where in patterns.slices.items()},
    )


def _e_step(patterns, weights, probabilities):
    """The log likelihood, of shape (...), and the responsibilities, of shape (..., n, K)."""
    log_probabilities = np.log(np.maximum(probabilities, SMALLEST))
    joint = np.log(np.maximum(weights, SMALLEST))[..., None, :] + patterns.indicators @ np.swapaxes(
        log_probabilities, -1, -2
    )
    largest = joint.max(axis=-1, keepdims=True)
    shares = np.exp(joint - largest)
    sums = shares.sum(axis=-1, keepdims=True)
    return (largest + np.log(sums))[..., 0] @ patterns.counts, shares / sums


def _m_step(patterns, responsibilities):
    """Weights (..., K) and probabilities (..., K, W) of the largest expected log likelihood."""
    numbers = np.swapaxes(patterns.counts[:, None] * responsibilities, -1, -2)
    weights = numbers.sum(axis=-1) / patterns.counts.sum()
    return weights, _normalized(patterns, numbers @ patterns.indicators)


def _normalized(patterns, numbers):
    """Numbers of shape (..., K, W), divided by their sums in each column."""
    sums = [
        np.repeat(numbers[..., where].sum(axis=-1, keepdims=True), where.stop - where.start, axis=-1)
        for where in patterns.slices.values()
    ]
    return numbers / np.maximum(np.concatenate(sums, axis=-1), SMALLEST)


def standard_errors(patterns, weights, probabilities):
    """poLCA's standard errors of the weights, of shape (K,), and of the probabilities, of shape (K, W).

    The information is the sum of the outer products of the rows' scores with respect to log odds against the
    first category, or the first class (Linzer and Lewis 2011, Journal of Statistical Software 42(10)):
    r_k (y_w - p_kw) and r_k - pi_k. Its pseudo-inverse, between the derivatives of the probabilities, is
    their covariance. As in poLCA, a probability of 0 or 1 has a standard error of 0.
    """
    n_classes, n_categories = probabilities.shape
    _, responsibilities = _e_step(patterns, weights, probabilities)
    residuals = np.empty((len(patterns.counts), n_classes, n_categories))
    jacobian = np.zeros((n_classes * (n_categories + 1),) * 2)
    first = [n_classes * n_categories]
    for where in patterns.slices.values():
        answers = patterns.indicators[:, None, where]
        residuals[:, :, where] = answers - answers.sum(axis=2, keepdims=True) * probabilities[:, where]
        for k in range(n_classes):
            at = slice(k * n_categories + where.start, k * n_categories + where.stop)
            jacobian[at, at] = _derivative(probabilities[k, where])
            first.append(at.start)
    jacobian[-n_classes:, -n_classes:] = _derivative(weights)
    scores = (responsibilities[:, :, None] * residuals).reshape(len(patterns.counts), -1)
    scores = np.delete(np.hstack([scores, responsibilities - weights]), first, axis=1)
    jacobian = np.delete(jacobian, first, axis=1)
    # The tolerance is that of MASS::ginv, which poLCA uses.
    covariance = np.linalg.pinv((patterns.counts[:, None] * scores).T @ scores, rcond=1.5e-8, hermitian=True)
    std = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian), 0.0))
    return std[-n_classes:], std[:-n_classes].reshape(n_classes, n_categories)


def _derivative(probabilities):
    """The derivative of probabilities in their unnormalized logarithms, of shape (C, C)."""
    return np.diag(probabilities) - np.outer(probabilities, probabilities)
