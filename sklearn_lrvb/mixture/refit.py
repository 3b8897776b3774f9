"""Optima from the optimum that is there: of the rows with other weights, and of one component more.

Questions about rows that are left out, or drawn again, start here: few steps lead from one to the other.
"""

import contextlib
from operator import attrgetter

import numpy as np

from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.model import DegenerateComponentError, occupied
from sklearn_lrvb.mixture.search import Search

# Largest number of steps, and lower bound in nats that may be left to gain: a refit is compared with others.
_MOST_STEPS, _TOLERANCE = 1000, 1e-6


def refitted(rows, posterior, prior=None):
    """The optimum for some rows, or under another prior, reached from a posterior nearby: Fit.

    Parameters
    ----------
    rows : Rows, with the weights that are asked about
    posterior : posterior of a mixture, measured from the origin of the rows
    prior : prior of a mixture of as many components; None is that of the posterior

    Raises
    ------
    DegenerateComponentError
        Where a component is left without a proper posterior.
    """
    ascent = Ascent(rows, _TOLERANCE, _MOST_STEPS)
    return ascent.newton(ascent.start_at(posterior.padded(prior or posterior.prior)))


def with_one_more(rows, posterior, prior, n_splits=None):
    """Yield the optima that an optimum leads to with one component more: empty, or half of another one.

    Parameters
    ----------
    rows : Rows, the training rows
    posterior : posterior of a mixture, the optimum, measured from the origin of the rows
    prior : prior of a mixture of one component more
    n_splits : int or None, of how many components a split is tried, the most promising first; None: of all

    Yields
    ------
    Fit
    """
    ascent = Ascent(rows, _TOLERANCE, _MOST_STEPS)
    padded = ascent.start_at(posterior.padded(prior))
    yield ascent.newton(padded)
    search = Search(rows, padded)
    empty = np.flatnonzero(~occupied(padded.next_posterior.counts))[:1]
    for split in sorted(search.candidates(), key=attrgetter("gain"), reverse=True)[:n_splits]:
        with contextlib.suppress(DegenerateComponentError):
            yield ascent.newton(ascent.start_at(search.after([split], empty).posterior))
