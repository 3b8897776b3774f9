"""What is often done with clusters: regressions and means that take labels, or probabilities, as observed.

*Conventions.* r (N, K) has the probabilities of the clusters, or ones and zeros at the labels.
"""

import numpy as np


def labels_as_shares(r):
    """Ones at the most probable cluster of every row, and zeros: (N, K)."""
    return np.eye(r.shape[1])[r.argmax(axis=1)]


def slopes(r, w):
    """Multinomial logistic regression of the clusters on a covariate, by scikit-learn.

    Rows count in every cluster by their probabilities. Standard deviations are those of so many observed
    clusters, from the inverse information.

    Parameters
    ----------
    r : (N, K)
    w : (N,)

    Returns
    -------
    estimates, sds : (K - 1,), slopes against the first cluster; None, None where a cluster has no rows
    """
    from sklearn.linear_model import LogisticRegression

    if not (r.sum(axis=0) > 0).all():
        return None, None
    n_samples, n_clusters = r.shape
    clusters, rows = np.tile(np.arange(n_clusters), n_samples), np.repeat(w, n_clusters)
    is_used = r.ravel() > 0
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000)
    model.fit(rows[is_used, None], clusters[is_used], sample_weight=r.ravel()[is_used])
    # Two clusters have one slope, that of the second against the first; more have one each.
    estimates = model.coef_[:, 0] if n_clusters == 2 else model.coef_[1:, 0] - model.coef_[0, 0]
    shares = model.predict_proba(w[:, None])[:, 1:]
    design = np.column_stack([np.ones(n_samples), w])
    variances = shares[:, :, None] * (np.eye(n_clusters - 1) - shares[:, None])
    information = np.einsum("njk,np,nq->jpkq", variances, design, design, optimize=True)
    size = 2 * (n_clusters - 1)
    covariance = np.linalg.inv(information.reshape(size, size))
    return estimates, np.sqrt(np.diag(covariance))[1::2]


def means(r, y):
    """Means of an outcome in every cluster, weighted by r, and their standard errors.

    Returns
    -------
    estimates, sds : (K,); None, None where a cluster has fewer than two rows
    """
    counts = r.sum(axis=0)
    if counts.min() < 2:
        return None, None
    estimates = r.T @ y / counts
    variances = np.einsum("nk,nk->k", r, np.square(y[:, None] - estimates)) / (counts - 1.0)
    return estimates, np.sqrt(variances / counts)
