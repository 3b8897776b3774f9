"""The rule by which a component counts as occupied rather than empty."""

# Expected number of rows below which a component counts as empty.
_LEAST_COUNT = 0.5


def occupied(counts):
    """Which components hold rows: expected counts (...) -> bool (...)."""
    return counts >= _LEAST_COUNT
