"""What explains clusters, and what they explain: do intervals of both steps hold the truth?"""

from benchmarks.accuracy.cluster_regression.tables import section

__all__ = ["TITLE", "measure", "section"]

TITLE = "What explains clusters, and what they explain"


def measure(settings):
    """A row for every design of simulated tables, for every kind of estimate of a real one, and for times."""
    from benchmarks.accuracy.cluster_regression import fits

    return fits.measure(settings)
