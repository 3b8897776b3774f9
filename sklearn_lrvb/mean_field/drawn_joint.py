"""The log joint at draws: full conditionals, marginal densities and a Gibbs sampler, for all draws at once.

*Conventions.* ``statistics`` is a dict, name of the factor -> T of draws of its variable, (S, copies..., D).
The log joint is linear in the statistics of each factor. Given all others a factor therefore has the natural
parameters d log p / d T, and is integrated out by its log partition function of these.
"""

import string
from math import prod

import numpy as np
from scipy import sparse

from sklearn_lrvb.mean_field.bound_term import axes_of


class DrawnLogJoint:
    """log p(x, theta) at draws of theta.

    Parameters
    ----------
    log_joint : LogJoint

    Attributes
    ----------
    factors : dict, name -> Factor
    bytes_each : int
        Temporary memory for one draw.
    """

    def __init__(self, log_joint):
        self.factors, self._terms = log_joint.factors, []
        self._terms_of = {name: [] for name in self.factors}  # With the argument, and where its entries are.
        self.bytes_each = 32 * max(prod(axes_of(term.arguments).values()) for term in log_joint.terms)
        for term in log_joint.terms:
            used = set("".join([term.letters, *(argument.letters for argument in term.arguments)]))
            over = next(letter for letter in string.ascii_letters if letter not in used)
            self._terms.append((term, over))
            for argument in term.arguments:
                self._terms_of[argument.factor].append((term, over, argument, self._placing(argument)))

    def _placing(self, argument):
        """A sparse matrix (size, n) that sums what is given for the entries of an argument."""
        factor = self.factors[argument.factor]
        positions = argument.flat_positions(factor).ravel()
        entries = np.ones(len(positions)), (positions, np.arange(len(positions)))
        return sparse.csr_array(entries, shape=(factor.size, len(positions)))

    def _read(self, statistics, argument):
        values = statistics[argument.factor]
        positions = argument.flat_positions(self.factors[argument.factor])
        return values.reshape(len(values), -1)[:, positions]

    def natural_parameters(self, statistics, name):
        """Natural parameters of a factor given all others, draw by draw: (S, copies..., D)."""
        factor, n_draws = self.factors[name], _n_draws(statistics)
        natural = np.zeros((factor.size, n_draws))
        for term, over, argument, placing in self._terms_of[name]:
            _, values = term.derivative(lambda of: self._read(statistics, of), (argument,), over)
            values = np.broadcast_to(values, (n_draws, *argument.shape))
            natural += placing @ values.reshape(n_draws, -1).T
        return natural.T.reshape(n_draws, *factor.shape)

    def log_marginal(self, statistics, integrated):
        """log p(x, theta) with some factors, no two of which share a term, integrated out: (S,)."""
        total = np.zeros(_n_draws(statistics))
        for term, over in self._terms:
            if not any(argument.factor in integrated for argument in term.arguments):
                total = total + term.derivative(lambda of: self._read(statistics, of), (), over)[1]
        for name in integrated:
            factor = self.factors[name]
            log_partition = factor.family.log_partition(self.natural_parameters(statistics, name))
            weights = 1.0 if factor.weights is None else factor.weights
            total = total + (weights * log_partition).reshape(len(total), -1).sum(axis=1)
        return total

    def sweep(self, draws, statistics, rng):
        """Draw every factor given all others, in place (a step of Gibbs)."""
        for name, factor in self.factors.items():
            natural = self.natural_parameters(statistics, name)
            draws[name] = factor.family.sample(natural, 1, rng)[0]
            statistics[name] = factor.family.statistics_of(draws[name]).reshape(natural.shape)


def _n_draws(statistics):
    return len(next(iter(statistics.values())))
