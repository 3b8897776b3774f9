"""Rows of which there may be any number: three overlapping clusters, made chunk by chunk in float32."""

import numpy as np

N_COMPONENTS = 3
N_FEATURES = 5
_DISTANCE = 3.0  # of the clusters' means from the origin, in standard deviations


def many_rows(n_rows, chunk_rows):
    """Yield chunks of rows (chunk_rows, N_FEATURES); the same for the same sizes."""
    for number in range(n_rows // chunk_rows):
        rng = np.random.default_rng(number)
        chunk = rng.standard_normal((chunk_rows, N_FEATURES), dtype=np.float32)
        component = rng.integers(N_COMPONENTS, size=chunk_rows)
        chunk[np.arange(chunk_rows), component] += _DISTANCE
        yield chunk
