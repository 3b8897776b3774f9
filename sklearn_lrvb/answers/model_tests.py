"""Tests of a mixture on some rows: shape of columns, distances, dependence of columns, repeated values.

`normal_scores` has the statistics and what makes their p-values valid. Here they are computed for every draw,
and become `ModelTest`s, each with its p-value and a sentence.

*Conventions.* K components, P columns, n rows, M draws.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from sklearn_lrvb.answers.column_dependence import dependence, tested_columns
from sklearn_lrvb.answers.normal_scores import (
    LEAST_ROWS,
    RowScores,
    moments_of_columns,
    p_values,
    z_of_kurtosis,
    z_of_largest,
    z_of_skewness,
    z_of_variance,
)
from sklearn_lrvb.answers.repeated_values import repeated_values
from sklearn_lrvb.linear_response import IndefiniteInformationError
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.sampling.random_assignments import label_draws
from sklearn_lrvb.sampling.sampler import PosteriorSampler

N_DRAWS = 20
_COPIES = 4  # Of the fit, in place of draws: labels alone differ between them.
MOST_UNKNOWNS = 3000  # Of a posterior with draws, or an evidence: for more, they take longer than the fit.
LEVEL = 0.05  # Of all tests together.
# A size outside is gross: large enough to be told without being asked for. By the kind of test.
_GROSS = {
    "skewness": (-1.0, 1.0),
    "tails": (1.7, 6.0),
    "variance": (0.5, 2.0),
    "distances": (0.0, 2.0),
    "outliers": (-1.0, np.inf),
    "dependence": (-0.4, 0.4),
}


@dataclass(frozen=True)
class ModelTest:
    """One test of a mixture.

    Attributes
    ----------
    kind : {'skewness', 'tails', 'variance', 'distances', 'outliers', 'dependence'}
    component : int or None
        The component whose rows are tested; None for all rows. A test of dependence is of all components
        together: `component` is the one where dependence is surest, and `size` is measured there.
    columns : tuple of int, one column, two, or none
    size : float
        What was found. Of the normal scores of the column: skewness, 0 if the model holds; kurtosis, 3;
        variance, 1. Variance of the normal scores of squared distances, 1. Number of rows that are too far
        out, 0. Correlation less that of the model, or Cramer's V of categories, 0.
    p_value : float, as if it was the only test
    """

    kind: str
    component: int | None
    columns: tuple
    size: float
    p_value: float

    @property
    def is_gross(self):
        """Whether the size is large; that of outliers never is."""
        lower, upper = _GROSS[self.kind]
        return not lower < self.size < upper

    def sentence(self, names):
        """What was found, str, given the names of the columns."""
        where = " over all components" if self.component is None else f" in component {self.component}"
        which = " and ".join(repr(names[column]) for column in self.columns)
        size, tails = f"{self.size:.2g}", "long" if self.size > 3 else "short"
        return {
            "skewness": f"Column {which} is skew{where} (skewness {self.size:+.1f}, 0 if the model holds).",
            "tails": f"Column {which} has {tails} tails{where} (kurtosis {size}, 3 if the model holds).",
            "variance": (
                f"Column {which} varies {'more' if self.size > 1 else 'less'}{where} than the model says "
                f"(variance of scores {size}, 1 if the model holds)."
            ),
            "distances": (
                f"Distances from the centre of component {self.component} vary more than the model says "
                f"(variance of scores {size}, 1 if the model holds)."
            ),
            "outliers": f"Rows that are too far from their component: {self.size:.0f}.",
            "dependence": (
                f"Columns {which} depend on each other{where} otherwise than the model says (strength "
                f"{size}, 0 if the model holds)."
            ),
        }[self.kind]


@dataclass(frozen=True)
class Examination:
    """All tests of a mixture on some rows.

    Attributes
    ----------
    tests : list of ModelTest, the smallest p-value first
    outlying : int array, numbers of the rows that are too far from their component
    chosen : bool (n,), the rows of the first draw: all, or of every group one
    labels : int array (n,), components of these rows in the first draw, -1 for noise and for other rows
    scores : RowScores, in the first draw
    is_normal : bool (P,), which columns have a normal density, or Student's t, in a component
    repeated : list of RepeatedValue, which no density can hold
    """

    tests: list
    outlying: np.ndarray
    chosen: np.ndarray
    labels: np.ndarray
    scores: RowScores
    is_normal: np.ndarray
    repeated: list

    def p_adjusted(self, test):
        """The p-value of one of the tests, as the first of all of them (Bonferroni): float."""
        return min(1.0, test.p_value * len(self.tests))

    @property
    def p_value(self):
        """That of all tests together: float, 1 without a test."""
        return self.p_adjusted(self.tests[0]) if self.tests else 1.0

    @property
    def departures(self):
        """The tests that the model fails: list of ModelTest."""
        return [test for test in self.tests if self.p_adjusted(test) < LEVEL]

    def by_column(self, kind, is_meant):
        """The surest departure of a kind by column, the surest first: dict of int to ModelTest.

        `is_meant` says of a test whether it counts.
        """
        found = {}
        for test in self.departures:
            if test.kind == kind and is_meant(test):
                found.setdefault(test.columns[0], test)
        return found

    @property
    def gross(self):
        """Repeated values that are too many for any density: list of RepeatedValue."""
        return [own for own in self.repeated if own.is_gross]


def drawn_parameters(uncertainty, training_rows, n_draws, random_state):
    """Draws of the posterior by linear response, or copies of the fit where there are none: DrawnParameters.

    Copies of the fit in place of draws make p-values too large.

    Parameters
    ----------
    uncertainty : PosteriorUncertainty
    training_rows : Rows or None
    n_draws : int
    random_state : numpy.random.RandomState
    """
    fitted, posterior = uncertainty.fitted, uncertainty.fitted.posterior
    if n_draws > 1 and posterior.n_coefficients <= MOST_UNKNOWNS:
        try:
            return PosteriorSampler(uncertainty, training_rows).draws(n_draws, random_state)
        except (IndefiniteInformationError, MemoryError):
            pass  # The fit is no strict optimum, or the matrix does not fit in memory.
    parameters = posterior.model.parameters
    n_copies = min(n_draws, _COPIES)
    draws = parameters.draws_at(posterior, posterior)[np.zeros(n_copies, dtype=np.intp)]
    return parameters(posterior, fitted.origin, draws)


def examined(parameters, rows, groups, random_state):
    """All tests under some draws: Examination.

    Parameters
    ----------
    parameters : DrawnParameters, of M draws
    rows : ArrayRows, each of which counts once
    groups : int array (n,) or None
        Numbers of groups of rows that belong together: of each a row is taken at random for every draw.
    random_state : numpy.random.RandomState
    """
    labels = label_draws(rows, [parameters], int(random_state.randint(2**31))).astype(np.intp)
    scorer = parameters.posterior.model.row_scores(parameters, rows)
    held = np.flatnonzero(occupied(parameters.posterior.counts))
    chosen = np.ones(labels.shape, dtype=bool)
    if groups is not None:
        chosen = np.stack([_one_of_each(groups, random_state) for _ in labels])
        labels[~chosen] = -1
    with np.errstate(all="ignore"):  # Rows may be so far out that their squares overflow.
        made = [
            _DrawTests.of(scorer.at(draw, own, random_state), scorer, own, held, rows.X)
            for draw, own in enumerate(labels)
        ]
        tests = _tests(made, held, rows.n_features)
    distances = _mean([own.scores.distances for own in made])
    outlying = np.flatnonzero(distances > -ndtri(LEVEL / len(distances)))
    tests = [
        replace(test, size=float(len(outlying))) if test.kind == "outliers" else test
        for test in sorted(tests, key=lambda test: test.p_value)
    ]
    own = rows.X[chosen[0]], labels[0, chosen[0]]
    repeated = repeated_values(*own, scorer.is_normal, parameters.posterior.n_components)
    return Examination(tests, outlying, chosen[0], labels[0], made[0].scores, scorer.is_normal, repeated)


def _one_of_each(groups, random_state):
    """Which rows are the ones that are taken of every group: bool (n,)."""
    order = random_state.permutation(len(groups))
    _, first = np.unique(groups[order], return_index=True)
    chosen = np.zeros(len(groups), dtype=bool)
    chosen[order[first]] = True
    return chosen


@dataclass(frozen=True)
class _DrawTests:
    """The z of all tests under one draw, and what was found; H of the K components hold rows.

    Attributes
    ----------
    scores : RowScores
    shape_z, shape : (3, H + 1, P), of skewness, kurtosis and variance; the last component is all rows
    distance_z, distance : (H + 1,), of distances in every component, and of the largest one
    pair_z : (p, p), and pair : (2, H, p, p), of `dependence` between p of the columns
    """

    scores: RowScores
    shape_z: np.ndarray
    shape: np.ndarray
    distance_z: np.ndarray
    distance: np.ndarray
    pair_z: np.ndarray
    pair: np.ndarray

    @classmethod
    def of(cls, scores, scorer, labels, held, X):
        shape_z, shape = np.full((2, 3, len(held) + 1, X.shape[1]), np.nan)
        distance_z, distance = np.full((2, len(held) + 1), np.nan)
        for place, k in enumerate(held):
            own = labels == k
            shape_z[:, place], shape[:, place] = _shape(scores.in_component[own], scorer.n_categories)
            if X.shape[1] > 1:
                n, variance, *_ = moments_of_columns(scores.distances[own, None])
                if n[0] >= LEAST_ROWS:
                    distance_z[place], distance[place] = z_of_variance(variance[0], n[0]), variance[0]
        if len(held) > 1:  # One component is the whole.
            shape_z[:, -1], shape[:, -1] = _shape(scores.overall, scorer.n_categories)
        shape_z[2, -1] = np.nan
        shape_z[2, :, scorer.has_free_variances] = np.nan
        distance_z[-1] = z_of_largest(scores.distances)
        return cls(
            scores,
            shape_z,
            shape,
            distance_z,
            distance,
            *dependence(scores, labels, held, X, scorer.n_categories),
        )


def _shape(scores, n_categories):
    """z of skewness, kurtosis and variance of columns, NaN if not tested, and their sizes: two of (3, P)."""
    n, variance, skewness, kurtosis = moments_of_columns(scores)
    z = np.stack([z_of_skewness(skewness, n), z_of_kurtosis(kurtosis, n), z_of_variance(variance, n)])
    z[:, (n < LEAST_ROWS) | (n_categories > 0)] = np.nan
    return z, np.stack([skewness, kurtosis, variance])


def _tests(made, held, n_columns):
    """The tests, from what was made of every draw: list of ModelTest, without those that were not made."""
    tests, components = [], [*map(int, held), None]
    shape_p = p_values(np.stack([own.shape_z for own in made]))
    distance_p, pair_p = (
        p_values(np.stack([getattr(own, name) for own in made]), is_one_sided=True)
        for name in ("distance_z", "pair_z")
    )
    shape, distance, pair = (
        _mean([getattr(own, name) for own in made]) for name in ("shape", "distance", "pair")
    )
    for number, kind in enumerate(("skewness", "tails", "variance")):
        for place, column in np.argwhere(~np.isnan(shape_p[number])):
            found = float(shape[number, place, column]), float(shape_p[number, place, column])
            tests.append(ModelTest(kind, components[place], (int(column),), *found))
    for place in np.flatnonzero(~np.isnan(distance_p)):
        kind = "outliers" if components[place] is None else "distances"
        tests.append(ModelTest(kind, components[place], (), float(distance[place]), float(distance_p[place])))
    columns = tested_columns(n_columns)
    for a, b in np.argwhere(~np.isnan(pair_p)):
        statistics, sizes = np.nan_to_num(pair[:, :, a, b])
        place, both = int(statistics.argmax()), (int(columns[a]), int(columns[b]))
        tests.append(
            ModelTest("dependence", components[place], both, float(sizes[place]), float(pair_p[a, b]))
        )
    return tests


def _mean(values):
    """Mean over draws, NaN left out: list of (...) -> (...)."""
    values = np.stack(values)
    n_made = (~np.isnan(values)).sum(axis=0)
    return np.where(n_made > 0, np.nansum(values, axis=0) / np.maximum(n_made, 1), np.nan)
