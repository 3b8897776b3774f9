"""Which components hold rows, for everything that treats the others apart."""

# A component with fewer expected rows than half a one counts as empty.
_LEAST_COUNT = 0.5


def occupied(counts):
    """Which components hold rows: expected counts (...) -> bool (...)."""
    return counts >= _LEAST_COUNT
