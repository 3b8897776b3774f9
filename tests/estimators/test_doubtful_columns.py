"""Warnings of columns: of one value, given by others, of two values, and of components at single values."""

import pickle
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
from catalogue import COVARIANCE_TYPES
from covariance_types import TYPES
from sklearn.datasets import load_iris, load_wine
from sklearn.mixture import BayesianGaussianMixture

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture, MixtureImputer, number_of_clusters

N = 240
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"smoker": RNG.integers(0, 2, N), "age": RNG.normal(50, 10, N), "bmi": RNG.normal(25, 3, N)}, dtype=float
)
SHRUNK = r"shrunk onto single values of 'smoker' \(component \d at [01], component \d at [01]\)"
BINARY = {"n_components": 2, "init_params": np.eye(2)[TABLE["smoker"].astype(int)]}


def notes_of(X, n_components=1, sample_weight=None, **settings):
    """What a fit warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LRVBGaussianMixture(n_components=n_components, random_state=0, **settings).fit(
            X, sample_weight=sample_weight
        )
    return " ".join(str(warning.message) for warning in caught)


# Components at single values.


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
def test_clusters_that_a_binary_column_makes_are_told(covariance_type):
    mixture = LRVBGaussianMixture(covariance_type=covariance_type, **BINARY)
    with pytest.warns(UserWarning, match=rf"{SHRUNK}.*columns={{'smoker': 'categorical'}}") as caught:
        mixture.fit(TABLE)
    assert len(caught) == 1 and caught[0].filename == __file__
    again = pickle.loads(pickle.dumps(mixture))
    for fit in (mixture, again):
        summary = fit.posterior(method="lrvb").summary()
        assert summary.attrs["columns"] == str(caught[0].message)
        assert "Components have shrunk" in repr(summary) and "Components have shrunk" in summary._repr_html_()


@pytest.mark.slow
def test_verdicts_and_refits_tell_it_without_another_warning():
    mixture = LRVBGaussianMixture(weight_concentration_prior_type="dirichlet_distribution", random_state=0)
    found = number_of_clusters(
        mixture, TABLE, n_components=[1, 2], n_init=1, n_draws=200, another_prior=False, random_state=0
    )
    assert found.best == 2 and "shrunk onto single values of 'smoker'" in found.verdict
    with pytest.warns(UserWarning, match=SHRUNK):
        fit = LRVBGaussianMixture(**BINARY).fit(TABLE)
    fit.posterior(method="bootstrap", groups=np.arange(N), n_draws=3, random_state=0).summary()
    fit.deciding_rows(TABLE, conclusion="weight[0]", threshold=0.2, max_share=0.02)


@pytest.mark.parametrize(("share", "is_told"), [(0.97, True), (0.7, False)])
@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_a_component_is_at_a_value_that_most_of_its_rows_have(share, is_told, weight):
    # as amounts of rain are: most are nothing, in one of two clusters that others tell apart
    first = np.arange(N) < N / 2
    rain = np.where(RNG.random(N) < share, 0.0, RNG.exponential(0.05, N))
    X = np.column_stack([np.where(first, rain, RNG.normal(4, 1, N)), RNG.normal(9.0 * first, 1)])
    assert ("'x0' (component" in notes_of(X, 2, np.full(N, weight))) == is_told


@pytest.mark.parametrize(("step", "is_told"), [(0.1, False), (1.0, False), (6.0, True)])
def test_rounded_measurements_are_told_where_clusters_are_the_rounding(step, is_told):
    X = RNG.normal([0, 10], 1, size=(N, 2))
    X[: N // 2] += 12.0
    assert ("single values" in notes_of(step * np.rint(X / step), 2)) == is_told


@pytest.mark.slow
@pytest.mark.parametrize("n_components", [2, 3, 6])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_measurements_are_taken_in_silence(load, n_components):
    assert not notes_of(load().data, n_components, reg_covar=1e-9)


def test_few_rows_have_few_values():
    assert not notes_of(TABLE[:18], 2)
    assert "'smoker'" in notes_of(TABLE[:18], 2, np.full(18, 2.0))  # They are 36 rows.


# Columns.

DEPENDENT = TABLE.assign(one=1e6, twice=1 - 2 * TABLE["age"], total=TABLE["age"] + TABLE["bmi"])
INCOMPLETE = DEPENDENT.mask(RNG.random(DEPENDENT.shape) < 0.1)
ARRAY = DEPENDENT.to_numpy()
CONTAINERS = {
    "pandas": DEPENDENT,
    "polars": pl.from_pandas(DEPENDENT),
    "array": ARRAY,
    "float32": ARRAY.astype(np.float32),
    "batches": [DEPENDENT[:100], DEPENDENT[100:]],
    "dask": da.from_array(ARRAY, chunks=(100, 6)),
    "missing": INCOMPLETE,
    "incomplete batches": [INCOMPLETE[:100], INCOMPLETE[100:]],
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_columns_that_say_nothing_new_are_named(container, covariance_type):
    X = CONTAINERS[container]
    notes = notes_of(X, 2, covariance_type=covariance_type)
    for name in () if isinstance(X, (np.ndarray, da.Array)) else DEPENDENT.columns:
        notes = notes.replace(f"'{name}'", f"'x{DEPENDENT.columns.get_loc(name)}'")
    assert "Columns of X with one value: 'x3'." in notes
    _, _, told = notes.partition("linear functions of others: ")
    told = told.partition(". They say")[0]
    # Two of four columns follow from the other two.
    assert told.count("(of") == 2 and all(f"'x{k}'" in told for k in (1, 2, 4, 5)) and "'x0'" not in told
    at_value = "shrunk onto single values of 'x0'" in notes or "with two values: 'x0'" in notes
    assert at_value or TYPES[covariance_type].n_axes == 0


def test_columns_are_told_whatever_their_units():
    moved = ARRAY * [1e-9, 1e8, 1.0, 1e3, 1e-6, 1.0] + [0.0, 1e9, 0.0, 0.0, 0.0, 1e3]
    notes = notes_of(moved, covariance_type="diag", reg_covar=1e-12)
    assert "one value: 'x3'" in notes and notes.count("(of") == 2


def test_columns_that_are_nearly_the_same_are_not_the_same():
    near = np.column_stack([TABLE["age"], TABLE["age"] + 1e-2 * TABLE["bmi"], TABLE["bmi"] ** 2])
    assert not notes_of(near, reg_covar=1e-9)
    assert "linear functions" not in notes_of(RNG.normal(size=(6, 9)))  # Six rows lie in five directions.


def test_covariance_matrices_of_more_columns_than_rows_are_named_with_what_to_do():
    X = np.concatenate([RNG.normal(size=(8, 9)), 50.0 + RNG.normal(size=(8, 9))])
    notes = {kind: notes_of(X, 2, covariance_type=kind) for kind in ("full", "tied", "diag", "spherical")}
    assert "A covariance matrix of 9 columns has 8 rows on average" in notes["full"]
    assert "covariance_type='tied' or 'diag'" in notes["full"]
    assert notes["tied"] == notes["diag"] == notes["spherical"] == ""
    assert "Use covariance_type='diag', or fewer columns" in notes_of(X[:8], covariance_type="tied")
    assert "has 8 rows" in notes_of(X[:4], sample_weight=np.full(4, 2.0))


def test_what_a_sample_suspects_is_asked_of_all_rows():
    X = np.column_stack([np.arange(9000) % 2, RNG.normal(size=9000)])
    X = np.column_stack([X, X[:, 1]])
    kinds = {
        "covariance_type": "diag",
        "n_components": 2,
        "max_iter": 1,
        "init_params": np.full((9000, 2), 0.5),
    }

    def told(rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return " ".join(note.text for note in LRVBGaussianMixture(**kinds).fit(rows)._column_notes)

    assert "two values: 'x0'" in told(X) and "others: 'x" in told(X)
    changed = X.copy()
    changed[4, [0, 2]] = 0.5, 7.0  # This row is not in the sample, of one row in four or so.
    for rows in (changed, [changed[:5000], changed[5000:]]):
        assert not told(rows)


# What else fits mixtures.


def test_a_fit_of_scikit_learns_is_told():
    bgm = BayesianGaussianMixture(random_state=0).fit(TABLE.assign(one=1.0))
    with pytest.warns(UserWarning, match="Columns of X with one value: 'one'"):
        LRVBGaussianMixture.from_sklearn(bgm, TABLE.assign(one=1.0))


@pytest.mark.slow
def test_an_imputer_finds_no_clusters():
    for mixture in (None, LRVBGaussianMixture(**BINARY)):
        MixtureImputer(mixture, random_state=0).fit(TABLE.mask(RNG.random(TABLE.shape) < 0.1))


@pytest.mark.slow
def test_latent_classes_tell_it_of_numeric_columns():
    # By default the column is one of categories, and there is nothing to tell.
    LRVBLatentClassMixture(random_state=0, n_init=2).fit(TABLE)
    classes = LRVBLatentClassMixture(columns={"smoker": "numeric"}, random_state=0, n_init=2)
    with pytest.warns(
        UserWarning, match=rf"{SHRUNK}.*Say what such columns are: columns={{'smoker'"
    ) as caught:
        classes.fit(TABLE)
    assert len(caught) == 1
    assert classes.posterior(method="lrvb").summary().attrs["columns"] == str(caught[0].message)
    with pytest.warns(UserWarning, match=SHRUNK):
        classes.fit([TABLE[:100], TABLE[100:]])
    found = number_of_clusters(
        classes, TABLE, n_components=[1, 2], n_init=2, n_draws=200, another_prior=False, random_state=0
    )
    assert "shrunk onto single values of 'smoker'" in found.verdict
