"""The expected log joint, a multilinear function of the factors' mean parameters, and its derivatives.

*Conventions.* ``means`` is a dict, name of the factor -> mean parameters in the factor's shape. Derivatives
loop over the terms, never over copies.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LogJoint:
    """E_q log p(x, theta) of independent factors.

    Attributes
    ----------
    factors : dict, name -> Factor
    terms : tuple of BoundTerm
        The log joint is their sum.
    """

    factors: dict
    terms: tuple

    def _reader(self, means):
        """Function from an argument of a term to the mean of its statistic."""
        return lambda argument: self.factors[argument.factor].entries(
            means[argument.factor], argument.statistic
        )

    def value(self, means):
        """E_q log p(x, theta) in nats, a float."""
        total = np.zeros(())
        for term in self.terms:
            term.add_derivative(self._reader(means), (), total)
        return float(total)

    def natural_parameters(self, means, name):
        """eta_j = d E_q log p / d m_j (Eq. nat_param_sum_of_theta_prods), in the factor's shape."""
        factor = self.factors[name]
        natural = np.zeros(factor.shape)
        for term in self.terms:
            argument = term.find(name)
            if argument is not None:
                entries = factor.entries(natural, argument.statistic)
                term.add_derivative(self._reader(means), (argument,), entries)
        return natural

    def hessian(self, means, row_name, column_name):
        """H between two factors (Eq. h_definition), (size, size); it is zero within one factor."""
        row, column = self.factors[row_name], self.factors[column_name]
        hessian = np.zeros((*row.shape, *column.shape))
        for term in self.terms:
            arguments = term.find(row_name), term.find(column_name)
            if row_name != column_name and None not in arguments:
                first, second = arguments
                entries = hessian[row.index(first.statistic) + column.index(second.statistic)].reshape(
                    row.statistic_shape(first.statistic) + column.statistic_shape(second.statistic)
                )
                term.add_derivative(self._reader(means), arguments, entries)
        return hessian.reshape(row.size, column.size)
