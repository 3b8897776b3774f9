"""Zeros and ones of MNIST told apart without their labels (Section 6.2 of the paper)."""

from benchmarks.paper.paper_mnist.figure import draw
from benchmarks.paper.paper_mnist.tables import section

__all__ = ["TITLE", "draw", "measure", "section"]

TITLE = "Zeros and ones of MNIST (Section 6.2)"


def measure(settings):
    """A row for every set of features and model, and for every group of the published posterior."""
    from benchmarks.paper.paper_mnist import fits

    return fits.measure(settings)
