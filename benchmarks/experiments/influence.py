"""Influence of all points on all means and log weights, beside its matrix product.

The gradient of d targets in a row is the row of K(1 + P) responsibilities and weighted coordinates times a
matrix of size K(1 + P) x d P, so that N rows take 2 N K (1 + P) d P flops.
"""

from measuring import summary
from problems import INFLUENCE
from rivals import Ours, kmeans_responsibilities

TARGETS = ("means", "log_weights")


def flops(n_samples, n_features, n_components):
    """Of the products for all targets, d = K P + K."""
    n_targets = n_components * (n_features + 1)
    return 2 * n_samples * n_components * (1 + n_features) * n_targets * n_features


def measure(settings):
    return settings.rows(INFLUENCE, _row)


def _row(problem, settings):
    X = problem.simulate()
    start = kmeans_responsibilities(X, problem.n_components)
    mixture = Ours(problem.n_components, n_jobs=settings.threads).fit(X, start, max_iter=300)
    _ = mixture.means_std_  # the factored information, which a user of influence will have
    times = settings.clock.interleaved(
        {"influence": lambda: [mixture.influence(X, target=target) for target in TARGETS]}
    )
    work = flops(*X.shape, problem.n_components)
    return {
        **summary(times),
        "limit_seconds": work / settings.product_rate,
        "product_gflops": settings.product_rate / 1e9,
    }
