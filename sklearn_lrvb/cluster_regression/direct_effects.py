"""Direct effects: whether a covariate or an outcome goes with a column of X within clusters.

The two steps assume that covariates and outcomes tell about the columns of X only through the cluster. Where
they do not, slopes and differences are biased, and nothing in them says so. With h a column of X, or the
indicator of one of its categories, z a column of the design or an outcome, r_nk the probabilities of the
clusters given all that is known of the row, and m_k and o_k the means of h and z in cluster k,

    S = sum_n v_n phi_n,    phi_n = sum_k r_nk u_nk,    u_nk = (h_n - m_k)(z_n - o_k),

is the covariance of h and z within clusters. It is zero on average if the assumption holds. It depends on
both steps through r alone, as the score of a parameter with the gradients u does (`structural_model`). So the
influence of a row on S is

    phi_n + B I^-1 s_n + (C_phi + B I^-1 C) M^-1 g_n,    B = sum_n v_n Cov_r(u_n, d_n),

with C_phi the response of S to the coefficients of the fit, as C is that of the score; and the sum of its
squares is the variance of S. The test is chi-squared for all categories of two columns together. Of many
rows, S is of a sample; rows that are not in it vary S through both steps alone.

Where rows belong together in groups, squares are of sums over groups. If clusters have another shape than the
model says, S need not be zero either.

*Conventions.* n rows of the sample, m pairs of h and z, L labels, D parameters of the second step.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtrc

from sklearn_lrvb.answers.groups import summed_by_group
from sklearn_lrvb.cluster_regression.estimation import influence_of_all, response_to_clusters
from sklearn_lrvb.reports.rounding import p_in_words

_MOST_ROWS, _LEAST_ROWS, _NUMBERS = 5000, 500, 3e7  # Of the sample; and numbers that are made of it.
# Pairs of h and z: of more, evenly spaced columns of X are tested; and pairs times unknowns of the fit, as
# each pair takes a linear system.
_MOST_PAIRS, _LEAST_PAIRS, _UNKNOWNS = 200, 10, 2e5
_LEAST_PAIRS_SEEN = 20  # Rows that have values of both, at least.
_LEAST_EIGENVALUE = 1e-8  # Of a correlation matrix, below which it is zero.
_LEAST_VARIANCE = 1e-10  # Share of the variance of h and z that a pair must have within clusters.


@dataclass(frozen=True)
class DirectEffect:
    """The dependence of a covariate or outcome and a column of X within clusters.

    Attributes
    ----------
    column, other : str, names of the column of X, and of the covariate or outcome
    size : float, their correlation within clusters; of categories the largest size of one of theirs
    p_value : float, times the number of tests (Bonferroni)
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


@dataclass(frozen=True)
class _Columns:
    """Some columns as numbers and indicators of categories.

    Attributes
    ----------
    values : (n, h), NaN where missing
    owners : int array (h,), of which column each is
    """

    values: np.ndarray
    owners: np.ndarray

    @classmethod
    def of(cls, values, n_categories):
        """Of columns (n, c), given numbers of categories, int array (c,), zero of numbers."""
        parts, owners = [], []
        for number, (own, size) in enumerate(zip(values.T, n_categories, strict=True)):
            levels = np.unique(own[~np.isnan(own)])[1:] if size else [None]
            for level in levels:
                parts.append(own if level is None else np.where(np.isnan(own), np.nan, own == level))
                owners.append(number)
        return cls(np.stack(parts, axis=1), np.array(owners))


def direct_effects(rows, step, tables, groups, random_state):
    """The direct effects of all pairs of columns, as if each was tested alone: list of DirectEffect.

    Parameters
    ----------
    rows : pair of PosteriorUncertainty and Rows, all that were given
    step : SecondStep
    tables : pair of list of str, names of the columns of X, and GivenTable, covariates and outcomes along the
        rows that count
    groups : int array (n,), the group of every row that counts, or None
    random_state : numpy.random.RandomState
    """
    (uncertainty, given), (names, table) = rows, tables
    sizes_of_others = np.array(
        [0 if column.holds_numbers else len(column.categories) for column in table.columns]
    )
    others = _Columns.of(table.values[step.data.numbers], sizes_of_others)
    n_categories = uncertainty.fitted.n_categories
    n_pairs = np.clip(_UNKNOWNS / uncertainty.source.size, _LEAST_PAIRS, _MOST_PAIRS)
    n_tested = max(1, int(n_pairs / max(1, len(others.owners) * np.maximum(n_categories - 1, 1).mean())))
    tested = np.unique(np.linspace(0, len(names) - 1, min(n_tested, len(names))).astype(np.intp))
    most = _NUMBERS / (_MOST_PAIRS * step.model.n_labels)
    n_rows = int(min(len(step.data.numbers), _MOST_ROWS, max(_LEAST_ROWS, most)))
    places = np.sort(random_state.permutation(len(step.data.numbers))[:n_rows])
    numbers = step.data.numbers[places]
    sample = given.chosen(np.flatnonzero(given.which_count())[numbers])
    own = _Columns.of(np.asarray(sample.X, dtype=np.float64)[:, tested], n_categories[tested])
    pairs = _Pairs.of(own, _Columns(others.values[places], others.owners), step.on(sample, numbers))
    covariance = pairs.covariance(uncertainty, step, None if groups is None else groups[numbers])
    found = []
    for a, b in np.unique(np.stack([pairs.owners, pairs.other_owners], axis=1), axis=0):
        which = (pairs.owners == a) & (pairs.other_owners == b) & pairs.varies
        if which.any():
            square, rank = _square_and_rank(pairs.sums[which], covariance[np.ix_(which, which)])
            sizes = pairs.correlations[which]
            is_of_numbers = not n_categories[tested[a]] and not sizes_of_others[b]
            size = float(sizes[0] if is_of_numbers else np.abs(sizes).max())
            p = float(chdtrc(rank, square))
            found.append(DirectEffect(names[tested[a]], table.columns[b].name, size, p))
    return found


@dataclass(frozen=True, eq=False)
class _Pairs:
    """S of m pairs of columns, on the rows of a sample.

    Attributes
    ----------
    step : SecondStep on the sample
    owners, other_owners : int arrays (m,)
    u : (n, m, L)
    terms : RowTerms of the sample
    scales : (m,), of h times z within clusters
    """

    step: object
    owners: np.ndarray
    other_owners: np.ndarray
    u: np.ndarray
    terms: object
    scales: np.ndarray

    @classmethod
    def of(cls, columns, others, step):
        """Of the columns of X and of others, and the second step on the same rows."""
        data, K = step.data, step.labels.n_clusters
        terms = step.model.row_terms(step.maximum.parameters, data.log_densities, data.matrix, data.y)
        r = terms.probabilities[:K].T * data.weights[:, None]
        (h, h_scale), (z, z_scale) = (_centred(own.values, r) for own in (columns, others))
        u = np.zeros((len(r), h.shape[1], z.shape[1], step.model.n_labels))
        u[..., :K] = h[:, :, None] * z[:, None]
        seen = [(~np.isnan(own.values)).astype(float) for own in (columns, others)]
        has_rows = (seen[0].T @ seen[1]).ravel() >= _LEAST_PAIRS_SEEN
        owners = np.repeat(columns.owners, z.shape[1]), np.tile(others.owners, h.shape[1])
        return cls(
            step,
            *owners,
            u.reshape(len(r), -1, step.model.n_labels),
            terms,
            has_rows * np.outer(h_scale, z_scale).ravel(),
        )

    @cached_property
    def phi(self):
        """(n, m)"""
        return np.einsum("nmk,kn->nm", self.u, self.terms.probabilities)

    @cached_property
    def sums(self):
        """S, (m,)"""
        return self.step.data.weights @ self.phi

    @property
    def correlations(self):
        """S in units of h and z within clusters, (m,)."""
        total = self.step.data.weights.sum() * np.where(self.varies, self.scales, 1.0)
        return self.sums / total

    @property
    def varies(self):
        """Which pairs vary within clusters, bool array (m,)."""
        return self.scales > 0.0

    def covariance(self, uncertainty, step, codes=None):
        """Covariance of S, (m, m), given the second step on all rows; codes (n,) of groups, or None."""
        data, model = self.step.data, self.step.model
        phi, r = self.phi, self.terms.probabilities.T
        responses = r[:, None] * (self.u - phi[..., None]) * data.weights[:, None, None]
        slopes = np.einsum("nmk,qkn->nmq", responses, self.terms.gradients, optimize=True)
        in_predictors = slopes.reshape(len(r), -1).T @ data.matrix
        in_predictors = in_predictors.reshape(phi.shape[1], model.n_predictors, -1)
        change = model.in_parameters(in_predictors) @ step.maximum.covariance
        targets, source = uncertainty.targets, uncertainty.source
        of_clusters = response_to_clusters(self.step, targets, responses) + change @ step.sensitivity(targets)
        information = source.information(len(change))
        functions = self.step.posterior.model.influence_functions(
            self.step.posterior, information.solve(of_clusters.T).T
        )
        through_steps = influence_of_all(self.step.rows.rows, functions)
        through_steps += model.score_of_rows(self.terms, data.matrix) @ change.T
        rest = max(step.data.weights.sum() / data.weights.sum() - 1.0, 0.0)
        influence = phi + through_steps
        return _squares(data.weights, influence, codes) + rest * _squares(data.weights, through_steps, codes)


def _square_and_rank(values, covariance):
    """values' covariance^-1 values, and the rank of the covariance: float, int."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    sizes, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = sizes > _LEAST_EIGENVALUE
    return float((np.square((values / scale) @ vectors)[kept] / sizes[kept]).sum()), int(kept.sum())


def _squares(weights, influence, codes):
    """Sum over the rows, or over groups, of squares of influence: (n,), (n, m) -> (m, m)."""
    if codes is None:
        return (weights[:, None] * influence).T @ influence
    sums = summed_by_group((weights[:, None] * influence).T, codes, codes.max() + 1).of_all()
    return sums.T @ sums


def _centred(values, r):
    """Values less their means in the clusters, (n, h, K), zero where missing; and their scales, (h,)."""
    is_seen = ~np.isnan(values)
    known = np.where(is_seen, values, 0.0)
    totals = np.maximum(is_seen.T @ r, 1e-300)
    centred = (known[:, :, None] - ((known.T @ r) / totals)[None]) * is_seen[:, :, None]
    variances = np.einsum("nhk,nk->h", np.square(centred), r) / totals.sum(axis=1)
    whole = np.nanvar(values, axis=0)
    relative = variances / np.where(whole > 0, whole, 1.0)
    return centred, np.sqrt(np.where(relative > _LEAST_VARIANCE, variances, 0.0))
