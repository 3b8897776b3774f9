"""LRVBLatentClassMixture keeps scikit-learn's contract, and works among its other parts."""

from unittest import SkipTest

import numpy as np
import pytest
import sklearn
from latent_class import catalogue
from latent_class.catalogue import PROBLEMS, assert_same_fit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture


def contract_models():
    """The default, and another solver, start and number of classes."""
    yield LRVBLatentClassMixture()
    yield LRVBLatentClassMixture(
        3, n_init=1, init_params="k-means++", solver="coordinate_ascent", moves=None, n_jobs=2
    )


@pytest.mark.slow
@parametrize_with_checks(list(contract_models()))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
# Of estimators that take categories, scikit-learn asks how they do with numbers that are codes of them.
@pytest.mark.filterwarnings("ignore:Columns of X with at most", "ignore:Components have shrunk")
def test_scikit_learn_contract(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        assert "SCIPY_ARRAY_API is not set" in str(reason)


def test_tags_say_what_tables_are_taken():
    tags = get_tags(LRVBLatentClassMixture())
    given = tags.input_tags
    assert given.allow_nan and given.categorical and given.string and given.two_d_array
    assert not given.sparse and not tags.non_deterministic and not tags.no_validation and tags.requires_fit
    assert tags.estimator_type == get_tags(LRVBGaussianMixture()).estimator_type == "density_estimator"
    assert not tags.target_tags.required


def test_a_clone_has_the_parameters_alone():
    columns = {make_column_selector("visits"): "count", "load": "ignore"}
    estimator = LRVBLatentClassMixture(2, columns=columns, n_init=2, random_state=0)
    estimator.fit(catalogue.mixed())
    copy = clone(estimator)
    assert copy.get_params().keys() == estimator.get_params().keys()
    assert copy.columns == columns and vars(copy).keys() == copy.get_params().keys()
    assert estimator.columns is columns and columns.keys() == copy.columns.keys()
    assert_same_fit(copy.fit(catalogue.mixed()), estimator, 0.0)


def test_parameters_are_set_by_name():
    estimator = LRVBLatentClassMixture().set_params(n_components=1, columns={"visits": "count"})
    assert estimator.set_params(n_init=1).fit(catalogue.mixed()).weights_.shape == (1,)
    with pytest.raises(ValueError, match="Invalid parameter 'column'"):
        estimator.set_params(column="auto")


def test_a_pipeline_after_a_column_transformer_keeps_names():
    X = catalogue.mixed().assign(visits=catalogue.mixed()["visits"].fillna(1.0))
    classes = LRVBLatentClassMixture(2, columns={"visits": "count"}, n_init=2, random_state=0)
    scaled = ColumnTransformer(
        [("scale", StandardScaler(), ["height"]), ("drop", "drop", ["load"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipeline = make_pipeline(scaled, classes).fit(X)
    by_hand = X.drop(columns="load")[["height", "sport", "smokes", "visits"]]
    by_hand["height"] = (X["height"] - X["height"].mean()) / X["height"].std(ddof=0)
    assert pipeline[-1].feature_names_in_.tolist() == by_hand.columns.tolist()
    assert_same_fit(pipeline[-1], clone(classes).fit(by_hand), 1e-6)
    np.testing.assert_array_equal(pipeline.predict(X), pipeline[-1].labels_)
    np.testing.assert_allclose(pipeline.score(X), pipeline[-1].score(by_hand), rtol=1e-6)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_tables_of_transformers_come_in_any_container(container):
    X = catalogue.numbers()
    pipeline = make_pipeline(StandardScaler(), LRVBLatentClassMixture(n_init=1, columns={"load": "numeric"}))
    pipeline.set_output(transform=container).fit(X)
    assert pipeline[-1].feature_names_in_.tolist() == ["height", "load"]
    np.testing.assert_array_equal(pipeline.predict(X), pipeline[-1].labels_)


@pytest.mark.slow
def test_a_grid_search_finds_the_number_of_classes():
    X = catalogue.mixed(200)
    search = GridSearchCV(
        LRVBLatentClassMixture(columns={"visits": "count"}, n_init=1, random_state=0),
        {"n_components": [1, 2], "columns": ["auto", {"visits": "count"}]},
        cv=3,
        error_score="raise",
    ).fit(X)
    assert search.best_params_["n_components"] == 2
    assert search.best_estimator_.score(X) == search.score(X)
    by_hand = []
    for train, test in KFold(3).split(X):
        fit = clone(search.best_estimator_).fit(X.iloc[train])
        by_hand.append(fit.score_samples(X.iloc[test])[X.iloc[test].notna().any(axis=1)].mean())
    np.testing.assert_allclose(search.best_score_, np.mean(by_hand), rtol=1e-12)


@pytest.mark.slow
def test_weights_are_routed_to_fit_and_score():
    problem = PROBLEMS["weights"]
    X, weights = problem.X, 1.0 + problem.sample_weight
    classes = LRVBLatentClassMixture(2, columns=problem.columns, n_init=1, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(classes).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_validate(asked, X, params={"sample_weight": weights}, cv=2, error_score="raise")
        pipeline = make_pipeline("passthrough", asked).fit(X, sample_weight=weights)
    expected = []
    for train, test in KFold(2).split(X):
        fit = clone(classes).fit(X.iloc[train], sample_weight=weights[train])
        expected.append(fit.score(X.iloc[test], sample_weight=weights[test]))
    np.testing.assert_allclose(found["test_score"], expected, rtol=1e-12)
    assert_same_fit(pipeline[-1], classes.fit(X, sample_weight=weights), 0.0)
    assert not np.allclose(clone(classes).fit(X).weights_, classes.weights_)


def test_rows_of_a_frame_are_told_by_the_names_of_its_columns():
    fit = catalogue.fitted("mixed")
    X = PROBLEMS["mixed"].X
    with pytest.raises(ValueError, match="feature names should match"):
        fit.predict(X.rename(columns={"load": "weight"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        labels = fit.predict(X.to_numpy(object))
    np.testing.assert_array_equal(labels, fit.labels_)


def test_fit_predict_is_fit_and_predict():
    problem = PROBLEMS["mixed"]
    estimator = catalogue.mixture(problem)
    np.testing.assert_array_equal(estimator.fit_predict(problem.X), catalogue.fitted("mixed").labels_)
