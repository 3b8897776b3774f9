"""Mixtures with more components than clusters: how many steps their fits take, and where they end."""

from benchmarks.accuracy.surplus.figure import draw
from benchmarks.accuracy.surplus.tables import section

__all__ = ["TITLE", "draw", "measure", "section"]

TITLE = "More components than clusters"


def measure(settings):
    """A row for every problem and start."""
    from benchmarks.accuracy.surplus import fits

    return fits.measure(settings)
