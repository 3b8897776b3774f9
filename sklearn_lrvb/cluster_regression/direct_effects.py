"""Direct effects: whether a covariate or an outcome goes with a column of X within clusters.

The two steps assume that covariates and outcomes tell about the columns of X only through the cluster. Where
they do not, slopes and differences are biased, and nothing in them says so. With y an outcome, or a column of
the design of covariates (which is then an outcome, too), its residuals e_n of least squares on the
probabilities r of the clusters have the mean zero whatever the values of X (`outcome_step`). So has, for a
column x_j of X, or the indicator of one of its categories, with its means m_k in the clusters,

    T = sum_n v_n phi_n,    phi_n = f_n e_n,    f_n = x_nj - sum_k r_nk m_k,

with f less its own projection on the regressors. It depends on both steps through r, as the score of least
squares does. So with B and C of T in place of those of the score, the influence of a row on T is

    phi_n + B I_gamma^-1 s_n,gamma + (C + B I_gamma^-1 C_gamma) M^-1 g_n,

and the sum of its squares is the variance of T. (What T depends on by way of f is near zero, as sums of e
times functions of x are.) If y is a category and rows do not belong together, products of residuals have
their expectation in place, as squares of few rows are too small. Then the test is chi-squared for all
categories of two columns together, and else Hotelling's. C takes a linear system for every pair of columns.
So of many columns of X those are tested that look surest as if clusters were certain, and p-values count all
of them.

Of many rows, T and both second steps are of a sample. Other rows vary T through the fit alone. If rows belong
together in groups, squares are of sums over groups: then some groups are sampled, and a part of their rows
where these are many. The sum over a group of what goes through the fit is that of the part, by its share.

If clusters have another shape than the model says, T need not be zero either.

*Conventions.* n rows of the sample, h columns of X and q of y (m = h q pairs), L labels.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sklearn_lrvb.answers.groups import summed_by_group
from sklearn_lrvb.cluster_regression.estimation import (
    influence_of_all,
    p_value_of_square,
    response_to_clusters,
    square_and_rank,
)
from sklearn_lrvb.reports.rounding import p_in_words

_MOST_ROWS, _LEAST_ROWS, _NUMBERS = 5000, 500, 3e7  # Of the sample; and numbers that are made of it.
_MOST_PAIRS, _LEAST_PAIRS, _UNKNOWNS = 200, 3, 5e4  # Of all outcomes; and pairs times unknowns of the fit.
_LEAST_GROUPS = 100  # That are sampled, if there are as many.
_LEAST_ROWS_SEEN = 20  # Rows that have a value of a column of X, at least.
_LEAST_VARIANCE = 1e-10  # Share of the variance of columns that clusters leave, at least.


@dataclass(frozen=True)
class DirectEffect:
    """The dependence of a covariate or outcome and a column of X within clusters.

    Attributes
    ----------
    column, other : str, names of the column of X, and of the covariate or outcome
    size : float, their correlation within clusters; of categories the largest size of one of theirs
    p_value : float, times the number of pairs of columns (Bonferroni)
    """

    column: str
    other: str
    size: float
    p_value: float

    @property
    def sentence(self):
        """What it means."""
        return (
            f"{self.other!r} and column {self.column!r} of X go together within clusters too (correlation "
            f"{self.size:.2f}, {p_in_words(self.p_value)}): part of what is said of {self.other!r} may be "
            "this direct effect, or clusters have another shape than the model says (model_check). See what "
            f"changes without {self.column!r} in X, if other columns tell the clusters apart."
        )


def direct_effects(uncertainty, rows, names, steps, groups, random_state):
    """The direct effects of outcomes, or covariates, and the columns of X, the surest first.

    Parameters
    ----------
    uncertainty : PosteriorUncertainty of the fit
    rows : Rows, all that were given
    names : list of str, of the columns of X
    steps : list of OutcomeStep, which see the rows that count
    groups : int array (n,), the group of every row that counts, or None
    random_state : numpy.random.RandomState

    Returns
    -------
    effects : tuple of DirectEffect
    """
    found, n_categories = [], uncertainty.fitted.n_categories
    counted = np.flatnonzero(rows.which_count())
    n_made = np.maximum(n_categories - 1, 1).sum() * max(own.outcome.n_columns for own in steps)
    n_rows = min(_MOST_ROWS, max(_LEAST_ROWS, int(_NUMBERS / n_made)))
    n_pairs = np.clip(_UNKNOWNS / uncertainty.source.size, _LEAST_PAIRS, _MOST_PAIRS) / len(steps)
    for step in steps:
        numbers, share = _sampled(step.data.numbers, groups, n_rows, random_state)
        sample = rows.chosen(counted[numbers])
        columns, owners = _as_numbers(np.asarray(sample.X, dtype=np.float64), n_categories)
        dependence = _Dependence.of(step.on(sample, numbers), columns, owners).surest(n_pairs)
        if not len(dependence.pairs):
            continue
        rest = max(step.clusters.n_rows_of_fit * share / dependence.rows.weights.sum() - 1.0, 0.0)
        own_groups, n_units = None, len(numbers)
        if groups is not None:
            codes, own_groups = np.unique(groups[numbers], return_inverse=True)
            n_units = len(codes)
        covariance = dependence.covariance(uncertainty, share, rest, own_groups)
        freedom = np.inf if groups is None and step.outcome.levels else n_units - 1.0
        owners = dependence.owners_of_pairs
        for place in np.unique(owners):
            which = owners == place
            square, rank = square_and_rank(dependence.sums[which], covariance[np.ix_(which, which)])
            sizes = dependence.correlations[which]
            is_of_numbers = not n_categories[place] and not step.outcome.levels
            size = float(sizes[0] if is_of_numbers else np.abs(sizes).max())
            p_value = p_value_of_square(square, rank, freedom)
            if not np.isnan(p_value):
                p_value = min(1.0, len(steps) * len(names) * p_value)
                found.append(DirectEffect(names[place], step.outcome.name, size, p_value))
    return tuple(sorted(found, key=lambda own: own.p_value))


def _sampled(numbers, groups, n_rows, random_state):
    """About as many rows as wanted, in order, and their share of the rows of their groups (1 without any).

    Parameters
    ----------
    numbers : int array, places of rows among those that count
    groups : int array, the group of every row that counts, or None
    n_rows : int
    random_state : numpy.random.RandomState
    """
    kept, share = numbers, 1.0
    if groups is not None:
        codes = np.unique(groups[numbers])
        n_groups = min(len(codes), max(_LEAST_GROUPS, int(n_rows * len(codes) / len(numbers))))
        kept = numbers[np.isin(groups[numbers], random_state.permutation(codes)[:n_groups])]
        share = min(1.0, n_rows / len(kept))
    return np.sort(random_state.permutation(kept)[:n_rows]), share


def _as_numbers(values, n_categories):
    """Columns of X as numbers and indicators of categories, (n, h), and of which column each is, (h,).

    Parameters
    ----------
    values : (n, c), NaN where missing
    n_categories : int array (c,), zero of numbers
    """
    parts, owners = [], []
    for number, (own, size) in enumerate(zip(values.T, n_categories, strict=True)):
        levels = np.unique(own[~np.isnan(own)])[1:] if size else [None]
        for level in levels:
            parts.append(own if level is None else np.where(np.isnan(own), np.nan, own == level))
            owners.append(number)
    parts = parts or [np.empty((len(values), 0))]
    return np.column_stack(parts), np.array(owners, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class _Dependence:
    """T of an outcome and columns of X, on the rows of a sample.

    Attributes
    ----------
    step : OutcomeStep on the sample
    rows : RowsOfOutcome
    f : (n, h)
    owners : int array (h,), of which column of X each is
    pairs : int array (m,), which of the h q pairs of f and columns of the outcome are looked at
    """

    step: object
    rows: object
    f: np.ndarray
    owners: np.ndarray
    pairs: np.ndarray

    @classmethod
    def of(cls, step, columns, owners):
        """Of columns (n, h), NaN where missing; pairs are of those that vary within clusters."""
        rows = step.on_rows(np.arange(len(columns)))
        r, weights = rows.terms.probabilities, rows.weights
        is_seen = ~np.isnan(columns)
        known = np.where(is_seen, columns, 0.0)
        known -= (known.sum(axis=0) / np.maximum(is_seen.sum(axis=0), 1)) * is_seen
        means = ((r * weights) @ known) / np.maximum((r * weights) @ is_seen, 1e-300)
        f = (known - r.T @ means) * is_seen
        weighted = rows.z * weights[:, None]
        f -= rows.z @ (np.linalg.pinv(weighted.T @ rows.z, hermitian=True) @ (weighted.T @ f))
        varies = weights @ np.square(f) > _LEAST_VARIANCE * (weights @ np.square(known))
        varies &= is_seen.sum(axis=0) >= _LEAST_ROWS_SEEN
        left = weights @ np.square(rows.e)
        kept = np.outer(varies, left > _LEAST_VARIANCE * (weights @ np.square(step.outcome.values)))
        return cls(step, rows, f, owners, np.flatnonzero(kept))

    @property
    def owners_of_pairs(self):
        """Of which column of X each pair is, int array (m,)."""
        return np.repeat(self.owners, self.rows.e.shape[1])[self.pairs]

    def surest(self, n_pairs):
        """Those columns of X, at least one, that look surest as if clusters were certain: _Dependence."""
        squares = np.square(self.sums) / np.maximum(self.rows.weights @ np.square(self._phi), 1e-300)
        owners, q = self.owners_of_pairs, self.rows.e.shape[1]
        largest = np.zeros(self.owners.max(initial=-1) + 1)
        np.maximum.at(largest, owners, squares)
        order = np.argsort(-largest, kind="stable")
        sizes = np.cumsum(np.bincount(owners, minlength=len(largest))[order])
        chosen = order[: max(1, np.searchsorted(sizes, n_pairs, side="right"))]
        pairs = self.pairs[np.isin(owners, chosen)]
        columns, places = np.unique(pairs // q, return_inverse=True)
        return _Dependence(
            self.step, self.rows, self.f[:, columns], self.owners[columns], places * q + pairs % q
        )

    @cached_property
    def _phi(self):
        """(n, m)"""
        q = self.rows.e.shape[1]
        return self.f[:, self.pairs // q] * self.rows.e[:, self.pairs % q]

    @cached_property
    def sums(self):
        """T, (m,)"""
        return self.rows.weights @ self._phi

    @property
    def correlations(self):
        """Of f and e, (m,)."""
        sizes = (self.rows.weights @ np.square(own) for own in (self.f, self.rows.e))
        return self.sums / np.sqrt(np.outer(*sizes)).ravel()[self.pairs]

    @property
    def n_of_row(self):
        """Numbers that are made of a row: int."""
        return self.step.n_of_row + len(self.sums) * self.step.clusters.model.n_labels

    def responses(self, numbers):
        """How T responds to log densities of some rows: (m, L, n)."""
        responses = self.step.on_rows(numbers).responses(self.f[numbers])
        return responses.reshape(-1, *responses.shape[2:])[self.pairs]

    def covariance(self, uncertainty, share, rest, groups):
        """Covariance of T, (m, m).

        Parameters
        ----------
        uncertainty : PosteriorUncertainty of the fit
        share : float, of the rows of the groups that are in the sample
        rest : float, rows of the fit that these do not stand for, by those that they do
        groups : int array (n,), or None
        """
        clusters, weights = self.step.clusters, self.rows.weights
        change = self.rows.in_clusters(self.f)[self.pairs, : clusters.model.size] @ clusters.inverse
        of_fit = response_to_clusters(self, clusters, uncertainty.targets)
        of_fit = of_fit + change @ clusters.response(uncertainty.targets)
        solved = uncertainty.source.information(len(of_fit)).solve(of_fit.T).T
        functions = clusters.posterior.model.influence_functions(clusters.posterior, solved)
        through_fit = influence_of_all(clusters.rows.rows, functions) / share
        through_steps = through_fit + clusters.score_of_rows(np.arange(len(weights))) @ change.T
        if groups is None and self.step.outcome.levels:
            whole = self._of_shares() + _squares(weights, through_steps, None)
        else:
            whole = _squares(weights, self._phi + through_steps, groups)
        return whole + rest * _squares(weights, through_fit, groups)

    def _of_shares(self):
        """Covariance of T where outcomes of rows are drawn from their shares, which few rows do not bend."""
        outcome, q = self.step.outcome, self.rows.e.shape[1]
        shares = np.clip(outcome.values - self.rows.e + outcome.centre, 0.0, 1.0)
        own, other = self.f[:, self.pairs // q], shares[:, self.pairs % q]
        weighted = own * other * self.rows.weights[:, None]
        are_same = np.equal.outer(self.pairs % q, self.pairs % q)
        return are_same * (weighted.T @ own) - weighted.T @ (own * other)


def _squares(weights, influence, groups):
    """Sum over the rows, or over groups, of squares of influence: (n,), (n, m) -> (m, m)."""
    if groups is None:
        return (weights[:, None] * influence).T @ influence
    sums = summed_by_group((weights[:, None] * influence).T, groups, groups.max() + 1).of_all()
    return sums.T @ sums
