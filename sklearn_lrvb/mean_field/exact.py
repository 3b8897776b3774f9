"""Draws from the exact posterior: Gibbs sampling of all factors, from draws by linear response."""

import numpy as np

from sklearn_lrvb.mean_field.drawn_joint import DrawnLogJoint
from sklearn_lrvb.mean_field.exponential_families import Categorical

N_CHAINS = 128
_FIRST_CHECK, _LAST_CHECK = 8, 2048  # Number of sweeps at the first check, and at the last one.
_LEAST_DRAWS = 5  # Independent draws of a chain: enough for the discarded half to have forgotten the start.


def exact_draws(log_joint, start, n_draws, rng):
    """Draws by Gibbs sampling, of S chains at once.

    The second half of the sweeps is checked after 8, 16, 32, ... sweeps. The draws of an entry in that half
    are worth S (variance of all draws) / (variance of the means of the chains) independent ones. Sampling is
    long enough where that is 5 S for the slowest entry: draws that are a tenth of all sweeps apart are then
    as good as independent.

    Parameters
    ----------
    log_joint : LogJoint
    start : dict, name -> ndarray of shape (S, copies..., shape of the variable)
    n_draws : int
    rng : RandomState

    Returns
    -------
    draws : dict, name -> ndarray of shape (n_draws, copies..., shape of the variable)
    effective : float
        Number of independent draws of the slowest entry at the last check.
    is_enough : bool
        Whether it is at least 5 S.
    """
    joint, draws = DrawnLogJoint(log_joint), dict(start)
    statistics = {name: of.family.statistics_of(draws[name]) for name, of in joint.factors.items()}
    n_chains, done = len(next(iter(draws.values()))), _FIRST_CHECK // 2
    for _ in range(done):
        joint.sweep(draws, statistics, rng)
    while True:
        effective = _effective_draws(joint, draws, statistics, done, rng)
        done *= 2
        is_enough = effective >= _LEAST_DRAWS * n_chains
        if is_enough or done >= _LAST_CHECK:
            break
    kept = [dict(draws)]
    for _ in range(-(-n_draws // n_chains) - 1):
        for _ in range(-(-done // (2 * _LEAST_DRAWS))):
            joint.sweep(draws, statistics, rng)
        kept.append(dict(draws))
    drawn = {name: np.concatenate([some[name] for some in kept])[:n_draws] for name in draws}
    return drawn, effective, is_enough


def _effective_draws(joint, draws, statistics, n_sweeps, rng):
    """Make sweeps in place. Returns the number of independent draws of the slowest entry in them."""
    names = [name for name, of in joint.factors.items() if not isinstance(of.family, Categorical)]
    first, total, squares = None, 0.0, 0.0
    for _ in range(n_sweeps):
        joint.sweep(draws, statistics, rng)
        values = np.concatenate([draws[name].reshape(len(draws[name]), -1) for name in names], axis=1)
        first = values.mean(axis=0) if first is None else first  # What is far from zero keeps its digits.
        total, squares = total + (values - first), squares + np.mean((values - first) ** 2, axis=0)
    means = total / n_sweeps
    variance, between = squares / n_sweeps - means.mean(axis=0) ** 2, means.var(axis=0, ddof=1)
    return float(np.min(len(means) * variance / between, initial=np.inf, where=between > 0))
