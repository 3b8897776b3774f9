"""Draws of the weights of normal components, by the breaks of a stick.

*Conventions.* n draws, L labels, B breaks of the stick (`weight_priors`). The densities are those of the
logits of the breaks, given as log v and log(1 - v).
"""

import numpy as np

from sklearn_lrvb.distributions.dirichlet import log_partition


def log_prior_of_sticks(parameters):
    """log p of the breaks of draws, (n,)."""
    draws, (stick, rest) = parameters.draws, _prior_sticks(parameters.posterior)
    of_weights = stick * draws.log_stick + rest * draws.log_rest
    of_weights -= log_partition(np.stack([stick, rest], axis=-1))
    return of_weights.sum(axis=1)


def slopes_of_sticks(posterior, counts):
    """Derivatives of log p(X, theta) in log v and log(1 - v), a pair of (n, B), from counts (n, L)."""
    # Sums over rows of the labels at a break, and of those behind it, besides the prior's exponents. The
    # break of the background, the last label, is the first one.
    stick, rest = _prior_sticks(posterior)
    in_order = np.roll(counts, posterior.n_labels - posterior.n_components, axis=1)
    behind = np.cumsum(in_order[:, ::-1], axis=1)[:, ::-1] - in_order
    return in_order[:, : len(stick)] + stick, behind[:, : len(rest)] + rest


def drawn_sticks(posterior, counts, generator):
    """log v and log(1 - v) drawn given counts (n, L) of rows: a pair of (n, B)."""
    log_stick, log_rest = _log_gammas(np.stack(posterior.prior.weights.sticks(counts)), generator)
    log_total = np.logaddexp(log_stick, log_rest)
    return log_stick - log_total, log_rest - log_total


def _prior_sticks(posterior):
    """Beta parameters of every break of the stick under the prior, a pair of (B,)."""
    return posterior.prior.weights.sticks(np.zeros(posterior.n_labels))


def _log_gammas(shapes, generator):
    """Logarithms of gamma variables, also where these underflow: (...) -> (...)."""
    log_gammas = np.log(generator.standard_gamma(shapes + 1.0))
    return log_gammas + np.log1p(-generator.random(shapes.shape)) / shapes
