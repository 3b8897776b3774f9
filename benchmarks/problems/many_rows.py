"""Rows of which there may be any number: three overlapping clusters, made chunk by chunk in float32."""

import numpy as np

N_COMPONENTS = 3
N_FEATURES = 5
# Distance of a cluster's mean from the origin, in standard deviations, where there is a feature for it.
_DISTANCE = 3.0


def many_rows(n_rows, chunk_rows, n_features=N_FEATURES):
    """Yield chunks of rows (chunk_rows, n_features); the same for the same sizes."""
    centers = _DISTANCE * np.eye(N_COMPONENTS, n_features, dtype=np.float32)
    for number in range(n_rows // chunk_rows):
        rng = np.random.default_rng(number)
        chunk = rng.standard_normal((chunk_rows, n_features), dtype=np.float32)
        component = rng.integers(N_COMPONENTS, size=chunk_rows)
        chunk += centers[component]
        yield chunk
