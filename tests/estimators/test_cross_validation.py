"""The smallest number of components on the plateau, by tables of scores and in scikit-learn's searches."""

import functools

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_lrvb import LRVBGaussianMixture, one_standard_error

X = np.concatenate([np.random.default_rng(0).normal(size=(60, 2)) + shift for shift in (0, 8)])
FOLDS = KFold(4, shuffle=True, random_state=0)
MIXTURE = LRVBGaussianMixture(random_state=0)


def results(scores, numbers=None, metric="score", name="n_components"):
    """cv_results_ of candidates with these scores, (n_candidates, n_folds)."""
    scores = np.asarray(scores, dtype=float)
    numbers = np.arange(1, len(scores) + 1) if numbers is None else numbers
    return {
        f"param_{name}": np.ma.masked_array(numbers, mask=False, dtype=object),
        "params": [{name: number} for number in numbers],
        f"mean_test_{metric}": scores.mean(axis=1),
        **{f"split{fold}_test_{metric}": column for fold, column in enumerate(scores.T)},
    }


HARD_FOLDS = np.array([-3.0, -2.5, -2.0, -3.5])


def test_a_small_gain_that_is_the_same_in_all_folds_does_not_count():
    gains = np.array([0.0, 1.0, 1.002, 1.004])
    assert one_standard_error(results(HARD_FOLDS + gains[:, None])) == 1


def test_what_makes_a_fold_hard_for_all_candidates_cancels():
    # 0.25 is less than the standard error of the best score, 0.32, and more than that of the difference
    scores = HARD_FOLDS + np.array([[0.0], [0.75], [1.0]])
    assert scores[2].std(ddof=1) / 2 > 0.25
    assert one_standard_error(results(scores)) == 2


@pytest.mark.parametrize(("excess", "chosen"), [(-1e-6, 0), (1e-6, 1)])
def test_the_plateau_ends_one_standard_error_below_the_best(excess, chosen):
    best, noise = HARD_FOLDS, np.array([0.3, -0.1, -0.3, 0.1])
    error = np.sqrt(np.var(noise, ddof=1) + 0.04 * np.var(best, ddof=1)) / 2
    assert one_standard_error(results([best - noise - error - excess, best])) == chosen


def test_units_of_the_scores_and_order_of_the_candidates_do_not_matter():
    rng = np.random.default_rng(1)
    chosen = set()
    for _ in range(50):
        numbers, scores = rng.permutation(6) + 1, rng.normal(size=(6, 5))
        order = rng.permutation(6)
        index = one_standard_error(results(scores, numbers))
        chosen.add(numbers[index])
        assert one_standard_error(results(7 * scores - 3, numbers)) == index
        assert order[one_standard_error(results(scores[order], numbers[order]))] == index
    assert len(chosen) > 1


def test_of_several_candidates_with_the_smallest_number_the_best_score_is_taken():
    scores = HARD_FOLDS + np.array([[-5.0], [0.0], [0.01], [0.02]])
    assert one_standard_error(results(scores, [1, 2, 2, 3])) == 2


def test_failed_fits_are_not_chosen():
    scores = np.tile(HARD_FOLDS, (4, 1))
    scores[0, 1], scores[3, 0] = np.nan, -np.inf
    assert one_standard_error(results(scores, [1, 3, 2, 1])) == 2
    with pytest.raises(ValueError, match="None of the 4 candidates has finite scores"):
        one_standard_error(results(np.full((4, 3), np.nan)))


@pytest.mark.slow
def test_a_search_refits_the_smallest_number_on_the_plateau():
    grid = {"n_components": [1, 2, 3, 4, 5]}
    plain = GridSearchCV(MIXTURE, grid, cv=FOLDS).fit(X)
    search = GridSearchCV(MIXTURE, grid, cv=FOLDS, refit=one_standard_error).fit(X)
    assert search.best_params_ == {"n_components": 2}
    assert search.best_estimator_.n_components == 2
    assert plain.best_params_["n_components"] > 2  # or the test shows nothing


@pytest.mark.slow
def test_pipelines_and_random_searches():
    pipeline = make_pipeline(StandardScaler(), MIXTURE)
    grid = {"lrvbgaussianmixture__n_components": [3, 1, 2], "standardscaler__with_std": [True]}
    search = GridSearchCV(pipeline, grid, cv=FOLDS, refit=one_standard_error).fit(X)
    assert search.best_params_["lrvbgaussianmixture__n_components"] == 2
    search = RandomizedSearchCV(pipeline, grid, n_iter=3, cv=FOLDS, refit=one_standard_error).fit(X)
    assert search.best_params_["lrvbgaussianmixture__n_components"] == 2


@pytest.mark.slow
def test_of_two_parameters_named_alike_one_is_to_be_named():
    pipeline = make_pipeline(PCA(), MIXTURE)
    grid = {"lrvbgaussianmixture__n_components": [1, 2, 3], "pca__n_components": [1]}
    with pytest.raises(ValueError, match="several parameters named 'n_components'"):
        GridSearchCV(pipeline, grid, cv=FOLDS, refit=one_standard_error).fit(X)
    named = functools.partial(one_standard_error, parameter="lrvbgaussianmixture__n_components")
    search = GridSearchCV(pipeline, grid, cv=FOLDS, refit=named).fit(X)
    assert search.best_params_["lrvbgaussianmixture__n_components"] == 2


def test_of_several_metrics_one_is_to_be_named():
    found = results(np.tile(HARD_FOLDS, (2, 1)), metric="density")
    with pytest.raises(
        ValueError, match=r"no scores by the metric 'score', only by density.*metric='density'"
    ):
        one_standard_error(found)
    assert one_standard_error(found, metric="density") == 0


def test_what_a_search_lacks_is_said_by_name():
    scores = np.tile(HARD_FOLDS, (2, 1))
    with pytest.raises(ValueError, match="no parameter named 'n_components': it is over n_init"):
        one_standard_error(results(scores, name="n_init"))
    with pytest.raises(ValueError, match="two or more folds, not of 1"):
        one_standard_error(results(scores[:, :1]))
    with pytest.raises(ValueError, match="cv_results has no scores"):
        one_standard_error({"param_n_components": np.ma.array([1, 2])})
    found = results(scores)
    found["param_n_components"].mask = [False, True]
    with pytest.raises(ValueError, match="1 of 2 candidates do not set 'n_components'"):
        one_standard_error(found)
