"""Whether a mixture fits its rows: what `model_check` does, and the line below tables."""

import warnings

import numpy as np

from sklearn_lrvb.answers.model_check import SURE, ModelCheck
from sklearn_lrvb.answers.model_tests import N_DRAWS, drawn_parameters, examined
from sklearn_lrvb.estimators.remedies import remedies
from sklearn_lrvb.rows import row_groups
from sklearn_lrvb.rows.array_rows import rows_of_array

_MOST_ROWS, _LEAST_SAMPLE = 5000, 1000  # That are examined: at most, and of wide tables at least.
_MOST_NUMBERS = 5e6  # Values times components, of which scores are computed at a time.
_ROWS_OF_LINE = 2048  # Rows that are examined for the line below tables.
_SKEW_INSIDE = 0.15  # Skewness between deciles, from -1 to 1, from which on the line calls a column skew.


def checked_model(mixture, given, groups, random_state):
    """Whether a mixture fits, and what to do if not: ModelCheck.

    Parameters
    ----------
    mixture : estimator of a mixture, fitted
    given : Rows, the training rows as the user has passed them
    groups : array-like or None, labels of rows that belong together
    random_state : numpy.random.RandomState
    """
    uncertainty, names = mixture._uncertainty, mixture._feature_names
    counted = given.counted()
    training_rows = mixture._counted_rows(given, uncertainty.fitted)
    uncertainty.source.check_training_rows(training_rows)
    n_components = uncertainty.fitted.posterior.n_components
    # A generator of its own, so that the draws do not depend on whether rows are sampled.
    of_sample = np.random.RandomState(random_state.randint(2**31))
    index, sample = _examined_rows(counted, n_components, _MOST_ROWS, of_sample)
    codes = None
    if groups is not None:
        along = row_groups(given, groups).along_counted(given, counted)
        codes = np.asarray(along.codes)[index]

    def examine(uncertainty, own_rows):
        parameters = drawn_parameters(uncertainty, own_rows, N_DRAWS, random_state)
        rows = rows_of_array(sample.X, uncertainty.fitted.origin)
        return examined(parameters, rows, codes, random_state)

    examination = examine(uncertainty, training_rows)
    are_all = len(index) == counted.total_weight and np.all(np.diff(index) == 1) and examination.chosen.all()
    found = []
    if examination.departures or examination.gross:
        with (
            mixture._tracked("model_check") as tracked,
            uncertainty.source.threads(),
            warnings.catch_warnings(action="ignore"),  # Of fits that are not the user's.
        ):
            kind = mixture._kind_of_mixture(mixture, counted.ranges())
            found = remedies(kind, sample.X, are_all, examination, examine, tracked)
    numbers = np.flatnonzero(given.which_count())[index]
    return ModelCheck(
        examination=examination,
        remedies=tuple(found),
        outlying_rows=np.unique(numbers[examination.outlying]),
        n_rows=int(examination.chosen.sum()),
        n_given=counted.total_weight,
        names=list(names),
    )


def departure_in_a_line(mixture, rows):
    """A sentence on the worst departure from the model, if one is gross; else an empty one.

    It is looked for once in a fit, in some of its rows, with the parameters of the fit in place of draws.

    Parameters
    ----------
    mixture : estimator of a mixture, fitted
    rows : Rows of positive weight, the training rows; or None, where they are not known
    """
    uncertainty = mixture._uncertainty
    if uncertainty.departure is None and rows is not None:
        uncertainty.departure = _departure(mixture, rows)
    return uncertainty.departure or ""


def _departure(mixture, rows):
    generator, names = np.random.RandomState(0), mixture._feature_names
    n_components = mixture._uncertainty.fitted.posterior.n_components
    _, sample = _examined_rows(rows, n_components, _ROWS_OF_LINE, generator)
    examination = examined(
        drawn_parameters(mixture._uncertainty, None, 1, generator), sample, None, generator
    )
    told = {column for note in mixture._column_notes for column in note.columns}
    found = [own for own in examination.gross if own.column not in told]
    doubt = mixture._kind_of_mixture.doubt(mixture._uncertainty.fitted, rows.total_weight)
    if not found and doubt is None:
        sure = [own for own in examination.departures if examination.p_adjusted(own) < SURE and own.is_gross]
        found = [own for own in sure if told.isdisjoint(own.columns)]
        found = [own for own in found if own.kind != "skewness" or _is_skew_inside(own, examination)]
    if not found:
        return ""
    return f"The model does not fit: {found[0].sentence(names)} model_check(X) says what to do."


def _is_skew_inside(test, examination):
    """Whether a column is skew between its deciles too: a few rows far out make skewness of heavy tails."""
    scores, (column,) = examination.scores, test.columns
    values = scores.overall[:, column]
    if test.component is not None:
        values = scores.in_component[examination.labels == test.component, column]
    low, middle, high = np.nanquantile(values, [0.1, 0.5, 0.9])
    return (high + low - 2.0 * middle) * np.sign(test.size) > _SKEW_INSIDE * (high - low)


def _examined_rows(rows, n_components, most, random_state):
    """Some rows, `most` at most, each of which counts once: int array of their numbers, and ArrayRows.

    The total weight is cut into as many equal parts as rows are wanted; of each one is taken at random.
    Weights that are whole numbers say how often a row counts. Of others there are as many rows as the weights
    are worth, the square of their sum over the sum of their squares, and no more than their sum.
    """
    most = min(most, max(_LEAST_SAMPLE, int(_MOST_NUMBERS / (rows.n_features * n_components))))
    if rows.is_in_memory and rows.sample_weight is None and rows.n_samples <= most:
        return np.arange(rows.n_samples), rows
    weight, squares, fractions = rows.total(_weight_sums)
    n_rows = round(max(1.0, min(most, weight, np.inf if fractions == 0 else weight**2 / squares)))
    return rows.at(weight / n_rows * (np.arange(n_rows) + random_state.random_sample(n_rows)))


def _weight_sums(block):
    """Sums over a block of the weights, of their squares and of their distances from whole numbers: (3,)."""
    weights = np.ones(block.n_rows) if block.sample_weight is None else block.sample_weight
    return np.array([weights.sum(), np.square(weights).sum(), np.abs(weights - np.rint(weights)).sum()])
