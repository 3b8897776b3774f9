"""How the rows move a number that a fit yields, and the rows that move it most.

`RowEffects` are the derivatives of such a number in the weights of rows, as a function of a block.
`RankedRows` are the rows that move it most. Each block keeps no more of its rows than could be needed if all
other blocks had none, and sums of these keep no more either: so rows can be ranked wherever they are, and the
result does not depend on how they are divided.
"""

import functools
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.mixture.e_step import expect_in_range

# Effects that agree up to this share of the distance to the threshold are ordered by the numbers of their
# rows, because those of identical rows may differ by rounding, from one size of the blocks to another.
_DECIMALS_OF_EFFECTS = 10


@dataclass(eq=False)
class RowEffects:
    """d number / d weight of the rows: ``f + bend f^2 + offset``, and sums of slopes times scores.

    Attributes
    ----------
    functions : influence functions (`MixtureModel.influence_functions`) with one function f, or None where f
        is zero
    bend, offset : float
    scores : sequence of pairs (slope, posterior of a mixture), all measured from the same origin
    """

    functions: object = None
    bend: float = 0.0
    offset: float = 0.0
    scores: tuple = ()

    @property
    def workload(self):
        if self.functions is not None:
            return self.functions.workload
        posterior = self.scores[0][1]
        return posterior.model.coordinates(posterior).workload

    def __call__(self, block):
        """The effects of a block's rows with all their weight, (n,)."""
        f = np.zeros((block.n_rows, 1))
        if self.functions is not None:
            self.functions.values(block, f)
        effects = f[:, 0] + self.bend * np.square(f[:, 0]) + self.offset
        for slope, posterior in self.scores:
            coordinates = posterior.model.coordinates(posterior)
            effects += slope * expect_in_range(coordinates, block).log_normalizer
        return block.weighted(effects)


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows, or groups of rows, by falling effect.

    Attributes
    ----------
    numbers : int array (n,)
    effects : float array (n,), falling
    weights : float array (n,)
    enough : float, sum of effects at which no more are needed
    most_weight : float, sum of weights at which no more are allowed; the last one may exceed it
    """

    numbers: np.ndarray
    effects: np.ndarray
    weights: np.ndarray
    enough: float
    most_weight: float

    @classmethod
    def of(cls, numbers, effects, weights, enough=np.inf, most_weight=np.inf):
        """The first of some rows, as many as are needed and allowed."""
        effects = np.round(effects, _DECIMALS_OF_EFFECTS)
        order = np.lexsort((numbers, -effects))
        numbers, effects, weights = numbers[order], effects[order], weights[order]
        # By sums of those before it a row is kept in a part wherever it is kept in the whole.
        before, weight_before = (
            np.concatenate([[0.0], np.cumsum(values)])[:-1] for values in (effects, weights)
        )
        is_kept = (before < enough) & (weight_before < most_weight)
        return cls(numbers[is_kept], effects[is_kept], weights[is_kept], enough, most_weight)

    def allowed(self):
        """Without the last one, where it exceeds the weight that is allowed."""
        n = np.count_nonzero(np.cumsum(self.weights) <= self.most_weight)
        kept = self.numbers[:n], self.effects[:n], self.weights[:n]
        return RankedRows(*kept, self.enough, self.most_weight)

    def __len__(self):
        return len(self.numbers)

    def __add__(self, other):
        numbers = np.concatenate([self.numbers, other.numbers])
        effects = np.concatenate([self.effects, other.effects])
        weights = np.concatenate([self.weights, other.weights])
        return RankedRows.of(numbers, effects, weights, self.enough, self.most_weight)

    @property
    def are_enough(self):
        """Whether their effects sum to what was wanted."""
        return bool(np.any(np.cumsum(self.effects) >= self.enough))


class SingleRows:
    """What is left out as a whole: every row for itself.

    Rows are numbered among those of positive weight.

    Parameters
    ----------
    rows : Rows, those of positive weight
    which : int array (n_samples,), their numbers among the rows that the user has passed
    """

    n_groups = None

    def __init__(self, rows, which):
        self.rows, self._which = rows, which

    def factors(self, left_out):
        """How often the rows count where some are left out, 0 or 1: (n_given,)."""
        factors = np.ones(self.rows.n_given)
        # Rows of an array are those of positive weight; rows in parts are all.
        factors[left_out if self.rows.is_in_memory else self._which[left_out]] = 0.0
        return factors

    def ranked(self, effects, scale, left_out, enough, most_weight):
        """Those to leave out first: `RankedRows`.

        Parameters
        ----------
        effects : RowEffects
        scale : float, by which effects are multiplied; to leave out what has a positive one is a step forward
        left_out : int array, ascending, what is left out already
        enough, most_weight : as in `RankedRows`
        """
        chosen = functools.partial(_can_be_left_out, left_out, most_weight)
        return self._by_effect(effects, scale, chosen, enough, most_weight).allowed()

    def some(self, effects, scale, numbers):
        """All of some, int array, ascending: `RankedRows`."""
        return self._by_effect(effects, scale, functools.partial(_are_among, numbers))

    def _by_effect(self, effects, scale, chosen, *limits):
        """The first of those that a function of numbers, effects and weights chooses: `RankedRows`."""
        function = functools.partial(_ranked_of_block, effects, scale, chosen, limits)
        return self.rows.total(function, effects.workload)

    def named(self, numbers):
        """The rows' numbers for the user, and the names of groups or None."""
        return self._which[numbers], None


def _ranked_of_block(effects, scale, chosen, limits, block):
    return _ranked(block.numbers, scale * effects(block), block.counts, chosen, limits)


def _ranked(numbers, effects, weights, chosen, limits):
    is_chosen = chosen(numbers, effects, weights)
    return RankedRows.of(numbers[is_chosen], effects[is_chosen], weights[is_chosen], *limits)


def _can_be_left_out(left_out, most_weight, numbers, effects, weights):
    """Which rows or groups can be left out, and lead forward, bool array."""
    leads_forward = np.round(effects, _DECIMALS_OF_EFFECTS) > 0
    return leads_forward & (weights <= most_weight) & ~_are_among(left_out, numbers)


def _are_among(some, numbers, *_):
    """Which numbers are among some ascending ones, bool array."""
    if not len(some):
        return np.zeros(len(numbers), dtype=bool)
    return some[np.minimum(np.searchsorted(some, numbers), len(some) - 1)] == numbers


class WholeGroups(SingleRows):
    """What is left out as a whole: groups of rows, which are numbered in the order of their names.

    Parameters
    ----------
    rows, which : as in `SingleRows`
    groups : RowGroups of the rows that the user has passed
    """

    def __init__(self, rows, which, groups):
        super().__init__(rows, which)
        self._names, self.n_groups = groups.names, len(groups)
        codes = np.asarray(groups.codes)
        self._codes_that_count = codes[which]
        self._codes = self._codes_that_count if rows.is_in_memory else codes

    def factors(self, left_out):
        return np.where(np.isin(self._codes, left_out), 0.0, 1.0)

    def _by_effect(self, effects, scale, chosen, *limits):
        function = functools.partial(_sums_of_groups, effects, len(self._names))
        sums, weights = self.rows.total(function, effects.workload, self._codes)
        return _ranked(np.arange(len(sums)), scale * sums, weights, chosen, limits)

    def named(self, numbers):
        is_out = np.isin(self._codes_that_count, numbers)
        return self._which[is_out], self._names[numbers]


def _sums_of_groups(effects, n_groups, block, codes):
    values = effects(block), block.counts
    return np.array([np.bincount(codes, value, n_groups) for value in values])
