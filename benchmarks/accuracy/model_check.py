"""Does a check of the model accuse mixtures that fit, and name what is wrong with those that do not?

`problems.model_departures` has tables of mixtures that fit, and tables with one known departure each.
`model_check` is asked about the fit to each of them. For tables that fit, the share with a p-value below the
level is reported, and how often p-values of single tests are small. For the others, it is the first remedy,
another start of the same model left out. Times are of the processor.
"""

import time
import warnings
from collections import Counter

import numpy as np

from benchmarks.harness.tables import grouped, table
from benchmarks.problems.model_departures import DEPARTURES, N_DEPARTING, class_table, gaussian_table

TITLE = "Does the model fit?"
_FIVE_STARTS, _ONE_START, _CLASSES = "Gaussian, 5 starts", "Gaussian, 1 start", "latent classes"
# Name: tables that fit, and arguments of the estimator beside those of the table.
FITTING = {
    _FIVE_STARTS: (gaussian_table, {"n_init": 5}),
    _ONE_START: (gaussian_table, {}),
    _CLASSES: (class_table, {}),
}
_TABLES, _DEPARTING_TABLES = 250, 50  # Of each setting; 250 show a share of 5 % to within 1.4 %.
_QUICK_TABLES, _QUICK_DEPARTING_TABLES = 4, 1
_LEVEL = 0.05  # Of all tests together, at which a mixture is accused.
_SINGLE_LEVELS = (0.05, 0.01, 0.001)
_ROWS = ((60, 200), (200, 1000), (1000, 5000))
# Kinds of tests, in the words of the page.
_TESTS = {
    "skewness": "skewness of a column",
    "tails": "tails of a column",
    "variance": "variance of a column",
    "distances": "distances from a center",
    "outliers": "the farthest row",
    "dependence": "dependence of two columns",
}


def measure(settings):
    """A row for every table and fit."""
    n_tables = _QUICK_TABLES if settings.quick else _TABLES
    for setting, (make, arguments) in FITTING.items():
        for number in range(n_tables):
            row, check = _checked(setting, make(number), number, arguments)
            yield row | _small_p_values(check.summary())
    n_tables = _QUICK_DEPARTING_TABLES if settings.quick else _DEPARTING_TABLES
    for setting, departure in DEPARTURES.items():
        for number in range(n_tables):
            row, _ = _checked(setting, departure.table(number), number, {})
            yield row | {"right": departure.kind}


def _checked(setting, checked_table, number, arguments):
    """Columns of a row, and the ModelCheck."""
    before = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The fit itself warns of some departures.
        # Seeds differ between tables, so that the draws of their checks are independent.
        mixture = checked_table.estimator(random_state=number, **arguments).fit(checked_table.X)
    between = time.process_time()
    check = mixture.model_check(checked_table.X, random_state=number)
    after = time.process_time()
    start = [remedy for remedy in check.remedies if remedy.kind == "start"]
    others = [remedy for remedy in check.remedies if remedy.kind != "start"]
    n_samples, n_features = checked_table.X.shape
    row = {
        "problem": f"{setting}: table {number}",
        "setting": setting,
        "n_samples": n_samples,
        "n_features": n_features,
        "n_components": mixture.n_components,
        "covariance_type": checked_table.arguments.get("covariance_type"),
        "p_value": check.p_value,
        "fits": check.fits,
        "n_occupied": mixture.n_occupied_,
        "has_better_start": any(remedy.is_better for remedy in start),
        "named": others[0].kind if others else None,
        "has_better_model": any(remedy.is_better for remedy in others),
        "fit_seconds": between - before,
        "check_seconds": after - between,
    }
    return row, check


def _small_p_values(summary):
    """Columns of a row: how many tests there are of every kind, and how many have small p-values."""
    row = {}
    for kind in _TESTS:
        p_values = summary["p_value"][summary["kind"] == kind]
        row[f"{kind}_tests"] = len(p_values)
        row |= {f"{kind}_{level}": int((p_values < level).sum()) for level in _SINGLE_LEVELS}
    return row


def section(found):
    by_setting = grouped(found, lambda row: row["setting"])
    fitting = {name: by_setting[name] for name in FITTING if name in by_setting}
    departing = {name: by_setting[name] for name in DEPARTURES if name in by_setting}
    wrong = [row for rows in departing.values() for row in rows]
    rightly = {name: np.mean([_is_named_rightly(row) for row in rows]) for name, rows in departing.items()}
    worst = min(rightly, key=rightly.get)
    return f"""`model_check` tests whether a fitted mixture describes its rows. If it does not, other
models are fitted, and the best comes first. Of mixtures that fit, it should accuse 5 % or fewer. It accuses
{_share(fitting[_FIVE_STARTS], _is_accused)} of Gaussian mixtures with five starts,
{_share(fitting[_ONE_START], _is_accused)} with one start, whose fit may not be the best one, and
{_share(fitting[_CLASSES], _is_accused)} of latent classes. Of {len(wrong)} tables with one known departure,
it accuses {sum(map(_is_told, wrong))}, and names the departure rightly in
{sum(map(_is_named_rightly, wrong))}; least often this one: {worst} ({100 * rightly[worst]:.0f} %).

### Mixtures that fit

How the tables were made: random clusters were drawn, from {_ROWS[0][0]} to {_ROWS[-1][1]:,} rows. A mixture
was fitted to them, and new rows were drawn from this mixture. A mixture of the same kind was fitted to the
new rows, and checked. So the model is right. Gaussian mixtures have 1 to 12 columns, 1 to 4 components, and
covariances that are full, tied, diagonal or spherical. Latent classes have 2 to 8 columns of numbers,
categories, counts and durations, and 1 to 4 classes.

A mixture is accused if the p-value of all tests together is below {_LEVEL}. Shares have standard errors.

{_of_sizes(fitting)}

The same accused mixtures, in numbers. If another start is better, the model is right, but the fit is not the
best one. If a component is empty, the fit may have fewer than the table has. The last column counts those to
which `model_check` prefers another model.

{_of_accused(fitting)}

A check makes many tests. If the model is right, a p-value should be below 0.05 in 5 % of the tests, and so
on. If there are more, mixtures that fit are accused too often; if there are fewer, others too seldom. Shares
are of all tests of a kind, in all tables.

{_of_single_tests(fitting)}

### Mixtures that do not fit

How the tables were made: {N_DEPARTING} rows in two or three clusters, with one thing wrong. Clusters of
Gaussian mixtures are in two to four columns, and far enough apart to be told from each other. Tables of
latent classes have two columns of numbers, two of categories, two binary ones and a count. Fits have the
default number of starts.

A departure is named rightly if the first remedy is of the right kind, another start of the same model left
out. `model_check` may also say that none of the other models is better; one column has how often it finds a
better one. The last column has the other first remedies, with the number of tables.

{_of_departures(departing)}

### Times

Median seconds of the processor, of a fit and of its check. Mixtures that are not accused are
those of the tables that fit. Accused ones are those of the tables with a departure: for them, the check also
fits other models.

{_of_times(fitting, departing)}
"""


def _is_accused(row):
    return row["p_value"] < _LEVEL


def _is_told(row):
    """Whether the verdict is that something departs from the model; spikes have no p-value."""
    return not row["fits"]


def _is_named_rightly(row):
    return row["named"] == row["right"]


def _percent(rows, is_so):
    return f"{100 * np.mean([is_so(row) for row in rows]):.0f}"


def _share(rows, is_so):
    """A share in percent with its standard error, in words; empty without rows."""
    if not rows:
        return ""
    count, n_rows = sum(is_so(row) for row in rows), len(rows)
    near = (count + 1) / (n_rows + 2)  # The share itself would have no error where it is none or all.
    return f"{100 * count / n_rows:.1f} +- {100 * np.sqrt(near * (1.0 - near) / n_rows):.1f} %"


def _of_sizes(fitting):
    """Table of the shares of mixtures that are accused, by setting and number of rows."""

    def between(low, high):
        return lambda setting: _share(
            [row for row in fitting[setting] if low <= row["n_samples"] < high], _is_accused
        )

    return table(
        [
            ("mixtures that fit", str),
            ("tables", lambda setting: len(fitting[setting])),
            ("accused", lambda setting: _share(fitting[setting], _is_accused)),
            *((f"{low:,} to {high:,} rows", between(low, high)) for low, high in _ROWS),
        ],
        fitting,
    )


def _of_accused(fitting):
    """Table of the numbers of mixtures that are accused, by setting and what may be the reason."""
    accused = {setting: [row for row in rows if _is_accused(row)] for setting, rows in fitting.items()}

    def count(is_so):
        return lambda setting: sum(is_so(row) for row in accused[setting])

    return table(
        [
            ("mixtures that fit", str),
            ("accused", lambda setting: len(accused[setting])),
            ("another start is better", count(lambda row: row["has_better_start"])),
            ("a component is empty", count(lambda row: row["n_occupied"] < row["n_components"])),
            ("another model is preferred", count(lambda row: row["has_better_model"])),
        ],
        accused,
    )


def _of_single_tests(fitting):
    """Table of the shares of single p-values that are small, by setting and kind of test."""

    def total(one, column):
        setting, kind = one
        return int(sum(row[f"{kind}_{column}"] for row in fitting[setting]))

    def below(level):
        return lambda one: f"{100 * total(one, level) / total(one, 'tests'):.2f} %"

    # Fits of one start depart where they are not the best, which says nothing about the tests.
    made = [(setting, kind) for setting in fitting if setting != _ONE_START for kind in _TESTS]
    return table(
        [
            ("mixtures that fit", lambda one: one[0]),
            ("test", lambda one: _TESTS[one[1]]),
            ("tests", lambda one: f"{total(one, 'tests'):,}"),
            *((f"p < {level}", below(level)) for level in _SINGLE_LEVELS),
        ],
        [one for one in made if total(one, "tests")],
    )


def _of_departures(departing):
    """Table of the shares of mixtures that are accused and named rightly, by departure."""

    def others(setting):
        wrong = Counter(row["named"] or "none" for row in departing[setting] if not _is_named_rightly(row))
        return ", ".join(f"{kind} {count}" for kind, count in wrong.most_common())

    return table(
        [
            ("departure", str),
            ("right remedy", lambda setting: DEPARTURES[setting].kind),
            ("tables", lambda setting: len(departing[setting])),
            ("accused, %", lambda setting: _percent(departing[setting], _is_told)),
            (
                "another model is better, %",
                lambda setting: _percent(departing[setting], lambda row: row["has_better_model"]),
            ),
            ("named rightly, %", lambda setting: _percent(departing[setting], _is_named_rightly)),
            ("other first remedies", others),
        ],
        departing,
    )


def _of_times(fitting, departing):
    """Table of median times, by what was fitted and whether it was accused."""
    groups = {f"{name}, not accused": [row for row in rows if row["fits"]] for name, rows in fitting.items()}
    wrong = [row for rows in departing.values() for row in rows if not row["fits"]]
    for name, has_classes in (("Gaussian, accused", False), ("latent classes, accused", True)):
        groups[name] = [row for row in wrong if (row["covariance_type"] is None) == has_classes]

    def median(column):
        return lambda one: f"{np.median([row[column] for row in one[1]]):.2g}"

    return table(
        [
            ("mixtures", lambda one: one[0]),
            ("tables", lambda one: len(one[1])),
            ("fit, s", median("fit_seconds")),
            ("check, s", median("check_seconds")),
        ],
        [one for one in groups.items() if one[1]],
    )
