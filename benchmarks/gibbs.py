"""A Gibbs sampler for the mixture under the flat prior: ground truth for posterior standard deviations.

Flat in mu, Lambda and log pi, as ``prior="flat"``. One sweep draws z | pi, mu, Lambda, then pi | z, then per
component Lambda | z (mu integrated out) and mu | Lambda, z.
"""

import numpy as np
from scipy.stats import wishart


def _assign(rng, X, log_weights, means, precisions):
    """Draw z for every row: (n_samples,)."""
    scores = np.empty((len(log_weights), len(X)))
    for k, (mean, precision) in enumerate(zip(means, precisions, strict=True)):
        root = np.linalg.cholesky(precision)
        whitened = root.T @ (X.T - mean[:, None])
        scores[k] = log_weights[k] + np.log(np.diag(root)).sum() - 0.5 * np.square(whitened).sum(axis=0)
    scores = np.exp(scores - scores.max(axis=0))
    heights = np.cumsum(scores, axis=0)
    return (rng.uniform(size=len(X)) * heights[-1] > heights[:-1]).sum(axis=0)


def sample(X, weights, means, precisions, n_draws, burn_in, seed):
    """Draws of (log pi, mu, unique precision entries), in the order of ``posterior_names_``.

    Parameters
    ----------
    X : (n_samples, n_features)
    weights, means, precisions : where to start
    n_draws, burn_in : int, kept and thrown away

    Returns
    -------
    draws : (n_draws, D)
    """
    rng = np.random.default_rng(seed)
    n_components, n_features = means.shape
    upper = np.triu_indices(n_features)
    log_weights, means, precisions = np.log(weights), means.copy(), precisions.copy()
    draws = []
    for iteration in range(burn_in + n_draws):
        z = _assign(rng, X, log_weights, means, precisions)
        counts = np.bincount(z, minlength=n_components)
        log_weights = np.log(rng.dirichlet(counts))
        for k in range(n_components):
            rows = X[z == k]
            center = rows.mean(axis=0)
            scatter = (rows - center).T @ (rows - center)
            # flat in Lambda and mu: nu = N_k + P + 1, less one for the mean that is integrated out
            scale = np.linalg.inv(scatter)
            degrees_of_freedom = counts[k] + n_features
            precisions[k] = wishart.rvs(degrees_of_freedom, 0.5 * (scale + scale.T), random_state=rng)
            root = np.linalg.cholesky(counts[k] * precisions[k])
            means[k] = center + np.linalg.solve(root.T, rng.standard_normal(n_features))
        if iteration >= burn_in:
            draws.append(np.concatenate([log_weights, means.ravel(), *(p[upper] for p in precisions)]))
    return np.array(draws)


def effective_size(draws):
    """Effective sample size of every column, by batch means: (D,)."""
    n_batches = int(np.sqrt(len(draws)))
    length = len(draws) // n_batches
    batches = draws[: n_batches * length].reshape(n_batches, length, -1).mean(axis=1)
    return len(draws) * draws.var(axis=0) / (length * batches.var(axis=0, ddof=1))
