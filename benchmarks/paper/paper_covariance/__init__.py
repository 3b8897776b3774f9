"""Posterior covariances by LRVB and by mean field against Gibbs sampling (Section 6.3 of the paper)."""

from benchmarks.paper.paper_covariance.figure import draw
from benchmarks.paper.paper_covariance.tables import section

__all__ = ["TITLE", "draw", "measure", "section"]

TITLE = "Covariance (Section 6.3)"


def measure(settings):
    """A row for every posterior that was sampled."""
    from benchmarks.paper.paper_covariance import fits

    return fits.measure(settings)
