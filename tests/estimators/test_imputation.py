"""Missing values filled: means, standard deviations and draws, and scikit-learn's claims on imputers."""

import importlib.util
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import sklearn.impute
import sklearn.impute.tests
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    few_of,
    information_of,
    mixture,
    model_id,
    models_in_turn,
    posterior_of,
    rows_of,
    three_blobs,
)
from incomplete_rows import fitted, incomplete, refitted
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_lrvb import LRVBGaussianMixture, MixtureImputer
from sklearn_lrvb.answers.influence import sources_of_weights
from sklearn_lrvb.gaussian.answers.imputation import variances_and_sources
from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates

IS_MISSING = np.isnan(incomplete())


@pytest.mark.parametrize("model", MODELS[::5], ids=model_id)
def test_means_and_deviations_are_those_of_draws(model):
    estimator = fitted(model)
    imputed, std = estimator.impute(incomplete(), return_std=True)
    np.testing.assert_array_equal(imputed[~IS_MISSING], incomplete()[~IS_MISSING])
    assert not std[~IS_MISSING].any()
    copies = estimator.sample_imputations(incomplete(), n_imputations=200, random_state=0)
    np.testing.assert_array_equal(
        copies[:, ~IS_MISSING], np.broadcast_to(incomplete()[~IS_MISSING], (200, (~IS_MISSING).sum()))
    )
    drawn = copies[:, IS_MISSING]
    assert np.abs((drawn.mean(axis=0) - imputed[IS_MISSING]) / std[IS_MISSING]).max() < 0.3
    ratios = std[IS_MISSING] / drawn.std(axis=0)
    assert 0.95 < np.median(ratios) < 1.05
    assert ratios.min() > 0.7
    assert ratios.max() < 1.3


@pytest.mark.slow
@models_in_turn(few_of(MODELS), "row", 2 * [2, 30])
def test_means_respond_to_the_parameters_as_their_deviations_say(model, row):
    """The derivative of a filled value in the weight of another row is J M^-1 g, by refits."""
    estimator, step = fitted(model), 1e-4
    posterior, weights = posterior_of(estimator), np.ones((2, len(incomplete())))
    weights[:, row] += [step, -step]
    up, down = (refitted(estimator, sample_weight=own).impute(incomplete()) for own in weights)
    rows = rows_of(estimator, incomplete())
    information, coordinates = information_of(estimator), OwnCoordinates(posterior)
    all_blocks = list(rows.map(lambda block: block))
    own_block = next(block for block in all_blocks if row in block.numbers)
    source = sources_of_weights(coordinates, own_block)[:, own_block.numbers == row]
    solved = information.solve(source)[:, 0]
    for block in all_blocks:
        if block.missing is not None:
            place, feature = np.nonzero(block.seen.T == 0)
            _, sources = variances_and_sources(coordinates, block, place, feature)
            numbers = block.numbers[place]
            differences = (up - down)[numbers, feature] / (2 * step)
            np.testing.assert_allclose(
                sources.T @ solved, differences, atol=1e-5 * np.abs(differences).max(), err_msg=str(row)
            )


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_missing_values_lie_within_their_intervals(covariance_type):
    truth = three_blobs(3000, 3)
    is_missing = np.random.default_rng(0).random(truth.shape) < 0.2
    is_missing[is_missing.all(axis=1), 0] = False
    X = np.where(is_missing, np.nan, truth)
    estimator = mixture({"covariance_type": covariance_type}, 3, tol=1e-3, max_iter=300).fit(X)
    imputed, std = estimator.impute(X, return_std=True)
    within = np.abs(imputed - truth)[is_missing] < 1.96 * std[is_missing]
    assert 0.92 < within.mean() < 0.98


def test_frames_give_frames():
    frame = pd.DataFrame(incomplete(), columns=list("abc"), index=np.arange(len(incomplete())) + 5)
    estimator = mixture({}, 2).fit(frame)
    imputed, std = estimator.impute(frame, return_std=True)
    for table in (imputed, std, *estimator.sample_imputations(frame, n_imputations=2, random_state=0)):
        assert list(table.columns) == list("abc")
        assert table.index.equals(frame.index)
        assert not table.isna().any(axis=None)
    np.testing.assert_allclose(imputed, estimator.impute(frame.set_axis(list("abc"), axis=1)))


def test_frames_of_polars_give_frames_of_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(incomplete(), schema=list("abc"))
    estimator = mixture({}, 2).fit(frame)
    assert list(estimator.impute(frame).columns) == list("abc")


def test_types_and_complete_rows_are_kept():
    estimator = fitted({"covariance_type": "full"})
    single = incomplete().astype(np.float32)
    assert estimator.impute(single).dtype == np.float32
    assert estimator.sample_imputations(single, n_imputations=2, random_state=0).dtype == np.float32
    complete = three_blobs(20, 3)
    np.testing.assert_array_equal(estimator.impute(complete), complete)
    np.testing.assert_array_equal(estimator.sample_imputations(complete, n_imputations=2)[1], complete)
    batches = [incomplete()[:50], incomplete()[50:]]
    imputed, std = estimator.impute(batches, return_std=True)
    expected, expected_std = estimator.impute(incomplete(), return_std=True)
    np.testing.assert_allclose(imputed, expected, rtol=1e-10)
    np.testing.assert_allclose(std, expected_std, rtol=1e-8)


def test_dask_rows_are_imputed_lazily():
    da = pytest.importorskip("dask.array")
    estimator = fitted({"covariance_type": "full"})
    imputed, std = estimator.impute(da.from_array(incomplete(), chunks=(50, 3)), return_std=True)
    assert isinstance(imputed, da.Array)
    expected, expected_std = estimator.impute(incomplete(), return_std=True)
    np.testing.assert_allclose(imputed.compute(), expected, rtol=1e-10)
    np.testing.assert_allclose(std.compute(), expected_std, rtol=1e-8)


def test_bad_arguments_are_refused():
    estimator = fitted({"covariance_type": "full"})
    with pytest.raises(ValueError, match=r"n_imputations.*at least one imputation"):
        estimator.sample_imputations(incomplete(), n_imputations=0)
    with pytest.raises(ValueError, match="takes rows in memory, but X is a source of batches"):
        estimator.sample_imputations([incomplete()[:50], incomplete()[50:]])
    with pytest.raises(ValueError, match="3 features"):
        estimator.impute(incomplete()[:, :2])


# The transformer.

not_converged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def their_tests():
    """scikit-learn's tests of all imputers, with ours in the place of the iterative one."""
    spec = importlib.util.find_spec(f"{sklearn.impute.tests.__name__}.test_common")
    module = importlib.util.module_from_spec(spec)

    def ours(tol):
        return MixtureImputer(random_state=0)

    with mock.patch.object(sklearn.impute, "IterativeImputer", ours):
        spec.loader.exec_module(module)
    return {
        f"{name}_of_imputers": pytest.mark.slow(pytest.mark.filterwarnings("ignore")(function))
        for name, function in vars(module).items()
        if name.startswith("test_") and "sparse" not in name
    }


globals().update(their_tests())


@pytest.mark.slow
@not_converged
@parametrize_with_checks(
    [
        MixtureImputer(random_state=0),
        MixtureImputer(LRVBGaussianMixture(), random_state=0, add_indicator=True),
    ]
)
def test_scikit_learns_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.slow
def test_the_imputer_is_the_mixture():
    given = LRVBGaussianMixture(n_components=2, random_state=0)
    imputer = MixtureImputer(given).fit(incomplete())
    assert imputer.mixture_ is not given
    expected = clone(given).fit(incomplete()).impute(incomplete())
    np.testing.assert_allclose(imputer.transform(incomplete()), expected, rtol=1e-12)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(incomplete()))
    weighted = MixtureImputer(given).fit(incomplete(), sample_weight=weights)
    expected = clone(given).fit(incomplete(), sample_weight=weights).impute(incomplete())
    np.testing.assert_allclose(weighted.transform(incomplete()), expected, rtol=1e-12)


@pytest.mark.slow
def test_draws_go_on_from_one_transform_to_the_next():
    imputer = MixtureImputer(sample_posterior=True, random_state=0).fit(incomplete())
    first, second = imputer.transform(incomplete()), imputer.transform(incomplete())
    assert np.abs(first - second)[IS_MISSING].min() > 0
    again = MixtureImputer(sample_posterior=True, random_state=0).fit(incomplete())
    np.testing.assert_array_equal(again.transform(incomplete()), first)


@pytest.mark.slow
def test_frames_pipelines_and_names():
    frame = pd.DataFrame(incomplete(), columns=list("abc"))
    imputer = MixtureImputer(random_state=0, add_indicator=True).set_output(transform="pandas")
    filled = imputer.fit_transform(frame)
    assert list(filled.columns) == ["a", "b", "c", *(f"missingindicator_{name}" for name in "abc")]
    np.testing.assert_array_equal(filled.iloc[:, 3:], IS_MISSING)
    model = LRVBGaussianMixture(n_components=3, random_state=0)
    assert len(np.unique(make_pipeline(MixtureImputer(random_state=0), model).fit_predict(frame))) > 1


@pytest.mark.slow
def test_markers_that_are_numbers():
    marked = np.where(IS_MISSING, -999.0, incomplete())
    filled = MixtureImputer(missing_values=-999.0, random_state=0).fit_transform(marked)
    np.testing.assert_allclose(filled, MixtureImputer(random_state=0).fit_transform(incomplete()))
    assert marked[IS_MISSING].max() == -999.0  # The user's table is as it was.
    with pytest.raises(ValueError, match="Input X contains NaN"):
        MixtureImputer(missing_values=-999.0).fit(incomplete())
    with pytest.raises(ValueError, match="'missing_values' parameter"):
        MixtureImputer(missing_values="?").fit(incomplete())


@pytest.mark.slow
def test_a_column_without_any_value_is_dropped_or_filled():
    X = np.column_stack([incomplete(), np.full(len(incomplete()), np.nan)])
    dropped = MixtureImputer(random_state=0).fit(X)
    assert dropped.transform(X).shape == (len(X), 3)
    assert list(dropped.get_feature_names_out()) == ["x0", "x1", "x2"]
    kept = MixtureImputer(random_state=0, keep_empty_features=True).fit_transform(X)
    assert not kept[:, 3].any()
    np.testing.assert_array_equal(kept[:, :3], dropped.transform(X))


@pytest.mark.slow
def test_filled_values_are_closer_than_those_of_a_mean():
    truth = three_blobs(600, 3)
    X = np.where(np.random.default_rng(0).random(truth.shape) < 0.15, np.nan, truth)
    errors = [
        np.square((imputer.fit_transform(X) - truth)[np.isnan(X)]).mean()
        for imputer in (MixtureImputer(random_state=0), sklearn.impute.SimpleImputer())
    ]
    assert errors[0] < 0.9 * errors[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_wide_tables_are_drawn_towards_uncorrelated_columns():
    """Regressions on more columns than their rows can tell apart must not be worse than a mean."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 60)) + 3.0 * rng.normal(size=(80, 60))
    is_missing = rng.random(X.shape) < 0.1
    table = np.where(is_missing, np.nan, X)
    errors = {
        imputer: np.square(imputer.fit_transform(table) - X)[is_missing].mean()
        for imputer in (
            MixtureImputer(random_state=0),
            sklearn.impute.SimpleImputer(),
            MixtureImputer(LRVBGaussianMixture(covariance_type="tied")),
        )
    }
    ours, by_mean, by_its_own_covariance = errors.values()
    assert ours < 0.95 * by_mean < by_its_own_covariance


@pytest.mark.slow
def test_constant_columns_are_filled_with_their_value():
    X = np.column_stack([incomplete(), np.full(120, 7.0), np.zeros(120)])
    X[::4, 3:] = np.nan
    for imputer in (MixtureImputer(random_state=0), MixtureImputer(sample_posterior=True, random_state=0)):
        filled = imputer.fit_transform(X)
        np.testing.assert_allclose(filled[:, 3:], np.broadcast_to([7.0, 0.0], (120, 2)), atol=1e-12)


@pytest.mark.slow
def test_weights_of_the_imputer_are_repetitions():
    weights = np.random.default_rng(0).integers(0, 3, size=120)
    weighted = MixtureImputer(random_state=0).fit(incomplete(), sample_weight=weights)
    repeated = MixtureImputer(random_state=0).fit(np.repeat(incomplete(), weights, axis=0))
    np.testing.assert_allclose(weighted.transform(incomplete()), repeated.transform(incomplete()), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-40, 1e40])
def test_filled_values_have_the_unit_of_the_rows(unit):
    ours = MixtureImputer(random_state=0)
    np.testing.assert_allclose(
        ours.fit_transform(unit * incomplete()) / unit, ours.fit_transform(incomplete()), rtol=1e-6
    )


@pytest.mark.slow
def test_fewer_rows_that_count_than_components():
    weights = np.zeros(120)
    weights[:3] = 1.0
    weighted = MixtureImputer(random_state=0).fit(incomplete(), sample_weight=weights)
    assert weighted.mixture_.n_components == 3
    assert not np.isnan(weighted.transform(incomplete())).any()


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [(np.full(120, np.nan), "contains NaN"), (np.ones(119), "expected"), (np.zeros(120), "non-zero")],
)
def test_bad_weights_of_the_imputer(sample_weight, message):
    with pytest.raises(ValueError, match=message):
        MixtureImputer().fit(incomplete(), sample_weight=sample_weight)
