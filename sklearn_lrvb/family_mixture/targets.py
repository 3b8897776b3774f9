"""What is reported of a mixture of latent classes, and how it responds to perturbations of the posterior.

A perturbation moves the expected statistics m by coefficients beta, (..., D) (`posterior`). E log pi is among
them. Everything else that is reported is a function g of one class's parameters in one column, or of the
weights: with J_S = d E g / d S its response is J_S R^-1 beta, and its LRVB covariance

    Cov(g) = J_S R^-1 M^-1 R^-1 J_S' + excess,        excess = Cov_q(g) - J_S R^-1 J_S',

the excess being the part of q's own covariance that is not linear in the statistics.
"""

import itertools
import math
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from sklearn_lrvb.answers.targets import LogWeights, Target, Targets, Weights, distinct


class Tables(Target):
    """What describes the columns in every class: probabilities, means and standard deviations, rates.

    A class has its entries in the order of the columns of the table.
    """

    name, entry_name, block = "tables", "", "columns"

    def __init__(self, posterior, origin=None):
        super().__init__(posterior, origin)
        # The column, the number within the column, and the kind of every entry of a class.
        places, numbers, kinds = [], [], []
        for family in posterior.prior.families:
            n_kinds = len(family.estimates)
            n_values = n_kinds if family.holds_numbers else family.n_features
            places.append(np.repeat(family.places, n_values))
            numbers.append(np.tile(np.arange(n_values), family.n_columns))
            kinds.append(np.array(list(family.estimates))[numbers[-1] % n_kinds])
        self._order = np.argsort(np.concatenate(places), kind="stable")
        self.n_entries = len(self._order)
        self._columns = np.stack([np.concatenate(places), np.concatenate(numbers)], axis=1)[self._order]
        self._kinds = np.tile(np.concatenate(kinds)[self._order], self.n_units)

    def coordinates(self, units=slice(None)):
        block = self.posterior.coefficient_blocks[self.block]
        # Coordinates have all classes of a feature together.
        return np.arange(block.start, block.stop).reshape(self.width, self.n_units).T[units].ravel()

    @property
    def shape(self):
        return self.n_units, self.n_entries

    def entry_index(self, row, column):
        return row

    def joined(self, parts, n_axes):
        """Arrays by family (..., c, q) to one in the order of the table, (..., entries of a class)."""
        flat = [part.reshape(*part.shape[:n_axes], math.prod(part.shape[n_axes:])) for part in parts]
        return np.concatenate(flat, axis=-1)[..., self._order]

    def _by_family(self, method):
        """What a method of every family says of its sums, list."""
        pairs = zip(self.posterior.prior.families, self.posterior.parts, strict=True)
        return [getattr(family, method)(part) for family, part in pairs]

    def value(self):
        return self.joined(self._by_family("values"), 1)

    @cached_property
    def _over_roots(self):
        """J_S Q^-T and J_S R^-1 for R = Q Q', by family: list of pairs of (K, c, q, b)."""
        over_roots = []
        for jacobian, root in zip(
            self._by_family("jacobian"), self._by_family("covariance_root"), strict=True
        ):
            half = np.linalg.solve(root, jacobian.swapaxes(-1, -2))
            whole = np.linalg.solve(root.swapaxes(-1, -2), half)
            over_roots.append((half.swapaxes(-1, -2), whole.swapaxes(-1, -2)))
        return over_roots

    def response(self, coefficients, units=slice(None)):
        unused = np.empty((*coefficients.shape[:-1], 1))  # In place of those of the weights.
        changes = self.posterior.prior.split(np.concatenate([unused, coefficients], axis=-1))
        moved = [
            np.einsum("kcqb,...kcb->...kcq", whole[units], change)
            for (_, whole), change in zip(self._over_roots, changes, strict=True)
        ]
        return self.joined(moved, coefficients.ndim - 1).reshape(*coefficients.shape[:-2], -1)

    def beyond_coefficients(self, changes, some):
        direct = self.joined([values[some] for values in changes.values], 2)
        return direct.reshape(len(direct), -1) - self.responses(changes.statistics[some])

    def labels(self, feature_names):
        columns = self.posterior.prior.columns
        entries = list(zip(self._columns[:, 0], self.labels_of_entries(), strict=True))

        def named(word):
            names = [
                f"{columns[place].name}={word(label)}" if columns[place].categories else columns[place].name
                for place, label in entries
            ]
            pairs = itertools.product(self.unit_names(), names)
            return [f"{kind}[{k},{name}]" for kind, (k, name) in zip(self._kinds, pairs, strict=True)]

        # "a=b=c" is "b=c" of column "a", or "c" of column "a=b"; 1 and "1" may be in one column.
        return distinct(named(str), lambda: named(repr))

    def labels_of_entries(self):
        """What the entries of a class are called within their columns: categories, "mean", "sd" or "rate"."""
        columns, kinds = self.posterior.prior.columns, self._kinds.tolist()
        return [
            columns[place].categories[number] if columns[place].categories else kind
            for (place, number), kind in zip(self._columns, kinds[: self.n_entries], strict=True)
        ]

    def columns_of_entries(self):
        """Number of the column, and of the value within it, of every entry of a class: int array (e, 2)."""
        return self._columns

    def families(self):
        families = self.posterior.prior.families
        quantiles = {kind: quantile for family in families for kind, quantile in family.estimates.items()}
        return [(self._kinds == kind, quantile) for kind, quantile in sorted(quantiles.items())]

    def has_moments(self, counts):
        exist = super().has_moments(counts)
        for family in self.posterior.prior.families:
            freedom = family.degrees_of_freedom(counts.min(axis=0))
            by_class = np.stack([freedom > 1.0, freedom > 2.0])
            by_entry = np.repeat(by_class, self.n_entries, axis=1)
            exist &= by_entry | ~np.isin(self._kinds, list(family.estimates))
        return exist

    def _excesses(self):
        """By family, (K, c, q, q)."""
        pairs = zip(self._by_family("covariance"), self._over_roots, strict=True)
        return [covariance - half @ half.swapaxes(-1, -2) for covariance, (half, _) in pairs]

    def excess_with(self, other):
        if not isinstance(other, Tables):
            return 0.0
        parts = self._excesses()
        blocks = [block_diag(*[block for part in parts for block in part[k]]) for k in range(self.n_units)]
        return block_diag(*[block[np.ix_(self._order, self._order)] for block in blocks])

    def excess_variance(self):
        return self.joined([np.einsum("kcqq->kcq", part) for part in self._excesses()], 1).ravel()


def names_in_draws(columns):
    """Names of the columns among the draws, which have those of the weights, too: list of str."""
    names, taken = [column.name for column in columns], "weights"
    while taken in ("weights", *names):
        taken = f"column {taken}"
    return [taken if name == "weights" else name for name in names]


class ClassTargets(Targets):
    """The targets of latent classes."""

    table = {target.name: target for target in (LogWeights, Tables, Weights)}
    parameters = (LogWeights.name, Tables.name)
    reported_names = ("weights", "tables")


def changes_of(target, log_weights, values):
    """First-order changes of a target by those of log weights, (n, K), and of values by family."""
    if target.name == "tables":
        return target.joined(values, 2).reshape(len(log_weights), target.size)
    if target.name == "log_weights":
        return log_weights
    shares = target.value()
    changes = shares * log_weights
    return changes - shares * changes.sum(axis=1, keepdims=True)


def values_of_draws(target, parameters):
    """A flat target of draws, (n, d)."""
    if target.name == "tables":
        return target.joined(parameters.values(), 2).reshape(len(parameters.draws), target.size)
    return parameters.log_shares if target.name == "log_weights" else parameters.weights
