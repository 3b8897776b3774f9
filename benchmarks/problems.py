"""What the benchmarks share: simulated problems, and a clock."""

from time import perf_counter

import numpy as np


def simulate(n_samples, n_features, n_components, distance, seed=0):
    """Gaussians of random shapes around centers about ``distance`` apart."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_components, n_features))
    gaps = np.linalg.norm(centers[:, None] - centers[None], axis=2)
    centers *= distance / gaps[gaps > 0].min()
    shapes = np.eye(n_features) + 0.3 / np.sqrt(n_features) * rng.normal(
        size=(n_components, n_features, n_features)
    )
    labels = rng.integers(n_components, size=n_samples)
    noise = rng.normal(size=(n_samples, n_features))
    return centers[labels] + np.einsum("npq,nq->np", shapes[labels], noise)


def seconds(call, *arguments):
    """Time of one call, and what it returned."""
    start = perf_counter()
    result = call(*arguments)
    return perf_counter() - start, result
