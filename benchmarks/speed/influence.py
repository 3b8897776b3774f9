"""Influence of all points on all means and log weights, beside its matrix product.

The gradient of d targets in a row is a row of K(1 + P) responsibilities and weighted coordinates, times a
matrix of size K(1 + P) x d P. N rows take 2 N K (1 + P) d P flops.
"""

from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import SIZES, milliseconds, ratio, table, text_of
from benchmarks.problems.clusters import INFLUENCE

TITLE = "Influence"
_GROUPS = ("means", "log_weights")


def flops(n_samples, n_features, n_components):
    """Flops of the products for all d = K P + K targets."""
    n_targets = n_components * (n_features + 1)
    return 2 * n_samples * n_components * (1 + n_features) * n_targets * n_features


def measure(settings):
    """A row for every problem."""
    return settings.rows(INFLUENCE, _row)


def _row(problem, settings):
    from benchmarks.rivals.libraries import Ours, kmeans_responsibilities

    X = problem.simulate()
    start = kmeans_responsibilities(X, problem.n_components)
    mixture = Ours(problem.n_components, n_jobs=settings.threads).fit(X, start, max_iter=300)
    _ = mixture.means_std_  # factors the information, which a user of influence will have
    times = settings.clock.interleaved(
        {"influence": lambda: [mixture.influence(X, target=group) for group in _GROUPS]}
    )
    work = flops(*X.shape, problem.n_components)
    return {
        **summary(times),
        "limit_seconds": work / settings.product_rate,
        "product_gflops": settings.product_rate / 1e9,
    }


def section(found):
    shown = table(
        [
            *SIZES,
            ("influence, ms", milliseconds("influence_seconds")),
            ("matrix product, ms", milliseconds("limit_seconds")),
            ("over the product", text_of(ratio("influence_seconds", "limit_seconds"))),
        ],
        found,
    )
    return f"""The influence of all points on all d means and log weights is measured after the information
has been factored. Its matrix product takes 2 N K (1 + P) d P flops.

{shown}
"""
