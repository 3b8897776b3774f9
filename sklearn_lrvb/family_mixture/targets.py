"""What is reported of a mixture of latent classes, and how it responds to perturbations of the posterior.

A perturbation moves the expected statistics m by coefficients beta, (..., D) (`posterior`). E log pi is among
them. Everything else that is reported is a function g of one class's parameters in one column, or of the
weights: with J_S = d E g / d S its response is J_S R^-1 beta, and its LRVB covariance

    Cov(g) = J_S R^-1 M^-1 R^-1 J_S' + excess,        excess = Cov_q(g) - J_S R^-1 J_S',

the excess being the part of q's own covariance that is not linear in the statistics.
"""

import math
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from sklearn_lrvb.answers.targets import LogWeights, Target, Targets, Weights, distinct
from sklearn_lrvb.distributions.special_functions import normal_quantile


class Tables(Target):
    """What describes the columns in every class: probabilities, means and standard deviations, rates.

    A class has its entries in the order of the columns of the table.
    """

    name, entry_name, block = "tables", "", "columns"

    def __init__(self, posterior, origin=None):
        super().__init__(posterior, origin)
        families = posterior.prior.families
        self._quantiles = {name: quantile for f in families for name, quantile in f.estimates.items()}
        self._n_values = [len(f.estimates) if f.holds_numbers else f.n_features for f in families]
        columns = np.concatenate(
            [np.repeat(f.places, n) for f, n in zip(families, self._n_values, strict=True)]
        )
        self._order = np.argsort(columns, kind="stable")

    @property
    def size(self):
        return self.n_units * len(self._order)

    def coordinates(self, units=slice(None)):
        block = self.posterior.coefficient_blocks[self.block]
        # Coordinates have all classes of a feature together.
        return np.arange(block.start, block.stop).reshape(self.width, self.n_units).T[units].ravel()

    def flat(self, values):
        return values.reshape(*values.shape[:-2], -1)

    def shaped(self, flat):
        return flat.reshape(*flat.shape[:-1], self.n_units, -1)

    def flat_index(self, component, row, column):
        return component * len(self._order) + row

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
        pairs = zip(self._by_family("jacobian"), self._by_family("covariance_root"), strict=True)
        found = []
        for jacobian, root in pairs:
            half = np.linalg.solve(root, jacobian.swapaxes(-1, -2))
            whole = np.linalg.solve(root.swapaxes(-1, -2), half)
            found.append((half.swapaxes(-1, -2), whole.swapaxes(-1, -2)))
        return found

    def response(self, coefficients, units=slice(None)):
        ones = np.empty(coefficients.shape[:-1])
        changes = self.posterior.prior.split(np.concatenate([ones[..., None], coefficients], axis=-1))
        moved = [
            np.einsum("kcqb,...kcb->...kcq", whole[units], change)
            for (_, whole), change in zip(self._over_roots, changes, strict=True)
        ]
        return self.joined(moved, coefficients.ndim - 1).reshape(*coefficients.shape[:-2], -1)

    def subscripts(self, feature_names, word=str):
        """Class, column and category of every flat entry, such as "0,smokes=yes", by a function of these."""
        columns, ends = self.posterior.prior.columns, []
        for (place, _), label in zip(self.columns_of_entries(), self.labels_of_entries(), strict=True):
            of_category = f"={word(label)}" if columns[place].categories else ""
            ends.append(f"{columns[place].name}{of_category}")
        return [f"{k},{end}" for k in range(self.n_units) for end in ends]

    def labels(self, feature_names):
        def named(word):
            ends = self.subscripts(feature_names, word)
            return [f"{kind}[{end}]" for kind, end in zip(self.kinds, ends, strict=True)]

        # "a=b=c" is "b=c" of column "a", or "c" of column "a=b"; 1 and "1" may be in one column.
        return distinct(named(str), lambda: named(repr))

    def labels_of_entries(self):
        """What the entries of a class are called within their columns: categories, "mean", "sd" or "rate"."""
        parts, columns = [], self.posterior.prior.columns
        for family in self.posterior.prior.families:
            for place in family.places:
                parts += family.estimates if family.holds_numbers else columns[place].categories
        found = np.empty(len(parts), dtype=object)
        found[:] = parts
        return found[self._order].tolist()

    def columns_of_entries(self):
        """Number of the column, and of the value within it, of every entry of a class: int array (e, 2)."""
        pairs = []
        for family, n_values in zip(self.posterior.prior.families, self._n_values, strict=True):
            pairs += [(place, number) for place in family.places for number in range(n_values)]
        return np.array(pairs)[self._order]

    @property
    def kinds(self):
        """What every flat entry is: "probability", "mean", "sd", "rate" or another one."""
        kinds = []
        for family, n_values in zip(self.posterior.prior.families, self._n_values, strict=True):
            n_times = n_values // len(family.estimates)  # Every category has the same.
            kinds += list(family.estimates) * n_times * family.n_columns
        return np.tile(np.array(kinds)[self._order], self.n_units)

    def families(self):
        kinds = self.kinds
        return [(kinds == kind, quantile) for kind, quantile in sorted(self._quantiles.items())]

    def has_moments(self, counts):
        exist, kinds = super().has_moments(counts), self.kinds
        for family in self.posterior.prior.families:
            freedom = family.degrees_of_freedom(counts.min(axis=0))
            by_class = np.stack([freedom > 1.0, freedom > 2.0])
            by_entry = np.repeat(by_class, self.size // self.n_units, axis=1)
            exist &= by_entry | ~np.isin(kinds, list(family.estimates))
        return exist

    def is_positive(self):
        return np.array([self._quantiles[kind] is not normal_quantile for kind in self.kinds])

    def _excesses(self):
        """By family, (K, c, q, q)."""
        of_q = self._by_family("covariance")
        pairs = zip(of_q, self._over_roots, strict=True)
        return [whole - half @ half.swapaxes(-1, -2) for whole, (half, _) in pairs]

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

    def parts_of_direction(self, direction):
        squares = np.square(self.posterior.array(direction))
        is_of_weights = squares[:, 0].sum() > squares[:, 1:].sum()
        return LogWeights.name if is_of_weights else Tables.name, squares.sum(axis=1)


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
