"""The public arrays are the model: what happens where they are set, reordered or copied by hand."""

import copy
import itertools
import pickle

import joblib
import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    SKLEARN_TYPES,
    WEIGHT_PRIORS,
    few_of,
    fitted,
    mixture,
    model_id,
    three_blobs,
    type_of,
)
from covariance_types import TYPES
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import BayesianGaussianMixture

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.estimators.fitted import FIT_ARRAYS, density_arrays, model_of

X = three_blobs(150)
OF_A_FIT = [name for name in FIT_ARRAYS if "noise" not in name and name not in ("scales_", "tails_")]
every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
every_weights = pytest.mark.parametrize("weights", WEIGHT_PRIORS)
every_model = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)

# What scikit-learn's `_get_parameters` returns and `_set_parameters` takes, in order.
PARAMETERS = (
    "weight_concentration_",
    "mean_precision_",
    "means_",
    "degrees_of_freedom_",
    "covariances_",
    "precisions_cholesky_",
)


def three_components(covariance_type="full", weights="dirichlet_process", **parameters):
    model = {"covariance_type": covariance_type, "weight_concentration_prior_type": weights}
    return mixture({**model, **parameters}, 3).fit(X)


def reorder(estimator, order):
    """Put the components into another order, in every array that has one row for each."""
    is_shared = TYPES[estimator.covariance_type].is_shared
    for name in (*PARAMETERS, "weights_", "precisions_"):
        value = getattr(estimator, name)
        if isinstance(value, tuple):
            setattr(estimator, name, tuple(part[order] for part in value))
        elif np.ndim(value) and not (is_shared and name[:4] in ("cova", "prec")):
            setattr(estimator, name, value[order])


def answers(estimator):
    return estimator.predict_proba(X), estimator.score_samples(X)


def assert_same_answers(one, other, **tolerance):
    for mine, theirs in zip(answers(one), answers(other), strict=True):
        np.testing.assert_allclose(mine, theirs, **tolerance)


# Setting arrays.


@every_type
def test_reordered_components_permute_predictions(covariance_type):
    estimator = three_components(covariance_type, "dirichlet_distribution")
    order = np.array([2, 0, 1])
    proba, labels, scores = estimator.predict_proba(X), estimator.predict(X), estimator.score_samples(X)
    reorder(estimator, order)
    np.testing.assert_allclose(estimator.predict_proba(X), proba[:, order], rtol=1e-9, atol=1e-13)
    np.testing.assert_array_equal(order[estimator.predict(X)], labels)
    np.testing.assert_allclose(estimator.score_samples(X), scores, rtol=1e-11)
    assert estimator.score(X) == pytest.approx(scores.mean(), rel=1e-11)
    np.testing.assert_array_equal(estimator.posterior_mean_[3:12].reshape(3, 3), estimator.means_)


@every_type
@pytest.mark.parametrize("noise", [None, True])
@pytest.mark.parametrize("prior", ["learned", "fixed"])
def test_an_array_of_the_same_values_changes_no_prediction(covariance_type, noise, prior):
    # with known errors of rounding, and missing values, in which noise has the shape of the rows
    rows = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.1, np.nan, X.round(1))
    estimator = mixture({"covariance_type": covariance_type, "noise": noise, "prior": prior}).fit(rows)
    before = estimator.score_samples(rows)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimator)).score_samples(rows), before)
    estimator.means_ = estimator.means_.copy()
    np.testing.assert_allclose(estimator.score_samples(rows), before, rtol=1e-12)


CHANGES = {
    "reordered": lambda m: reorder(m, np.array([1, 2, 0])),
    "means_": lambda m: setattr(m, "means_", m.means_ + [0.5, 0.0, -0.2]),
    "precisions_cholesky_": lambda m: setattr(m, "precisions_cholesky_", 1.3 * m.precisions_cholesky_),
    "degrees_of_freedom_": lambda m: setattr(m, "degrees_of_freedom_", m.degrees_of_freedom_ / 8),
    "mean_precision_": lambda m: setattr(m, "mean_precision_", np.array([0.5, 2.0, 90.0])),
}


@pytest.mark.parametrize("covariance_type", SKLEARN_TYPES)
@every_weights
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_scores_follow_the_arrays_as_in_scikit_learn(covariance_type, weights, change):
    """The same change moves our log densities as it moves those of scikit-learn's class.

    The two differ by a constant for each component where E log|Lambda| is that of gamma variables ('diag',
    'spherical'); where the degrees of freedom are halved, that constant moves too.
    """
    ours = three_components(covariance_type, weights, reg_covar=0.0)
    theirs = BayesianGaussianMixture(
        n_components=3, covariance_type=covariance_type, weight_concentration_prior_type=weights
    )
    theirs._set_parameters([copy.deepcopy(getattr(ours, name)) for name in PARAMETERS])
    theirs.n_features_in_ = 3
    if TYPES[covariance_type].is_matrix:
        assert_same_answers(ours, theirs, rtol=1e-9, atol=1e-12)
    before = log_odds(ours) - log_odds(theirs)
    change(ours)
    change(theirs)
    after = log_odds(ours) - log_odds(theirs)
    if TYPES[covariance_type].is_matrix:
        np.testing.assert_allclose(after, 0, atol=1e-8)
        assert_same_answers(ours, theirs, rtol=1e-8, atol=1e-12)
    elif change not in (CHANGES["degrees_of_freedom_"], CHANGES["reordered"]):
        np.testing.assert_allclose(after, before, atol=1e-8)
    assert np.ptp(after, axis=0).max() < 1e-8


def log_odds(estimator):
    """Log odds of the components against the first, of rows between them: (n, K - 1)."""
    between = estimator_free_rows()
    log_proba = np.log(estimator.predict_proba(between))
    return log_proba[:, 1:] - log_proba[:, :1]


def estimator_free_rows():
    """Rows on which no responsibility comes near underflow."""
    return 0.3 * X[:40]


def test_weights_follow_weight_concentration():
    for weights in WEIGHT_PRIORS:
        estimator = three_components(weights=weights)
        before = log_odds(estimator)
        concentration = np.asarray(estimator.weight_concentration_)
        theirs = BayesianGaussianMixture(weight_concentration_prior_type=weights)
        expected = []
        for factor in (1.0, np.array([1.0, 3.0, 0.2])):
            theirs.weight_concentration_ = concentration * factor
            expected.append(theirs._estimate_log_weights())
        estimator.weight_concentration_ = (
            tuple(concentration * factor) if weights[-1] == "s" else (concentration * factor)
        )
        moved = expected[1] - expected[0]
        np.testing.assert_allclose(
            log_odds(estimator) - before, np.broadcast_to(moved[1:] - moved[0], before.shape), atol=1e-9
        )


@every_type
def test_sample_follows_weights_means_and_covariances_alone(covariance_type):
    estimator = three_components(covariance_type)
    expected, labels = estimator.sample(50)
    estimator.means_ = estimator.means_ + 5.0
    estimator.precisions_cholesky_ = 2.0 * estimator.precisions_cholesky_
    moved, same = estimator.sample(50)
    np.testing.assert_allclose(moved, expected + 5.0, rtol=1e-12)
    np.testing.assert_array_equal(same, labels)
    estimator.covariances_ = 0.0 * estimator.covariances_
    estimator.weights_ = np.array([0.0, 1.0, 0.0])
    drawn, labels = estimator.sample(4)
    np.testing.assert_array_equal(labels, [1] * 4)
    np.testing.assert_allclose(drawn, np.repeat(estimator.means_[1:2], 4, axis=0), rtol=1e-12)


@every_model
def test_arrays_copied_into_a_clone_predict_the_same(model):
    estimator = fitted(model)
    rows = np.linspace(-2, 4, 30).reshape(15, 2)
    twin = clone(estimator)
    for name in density_arrays(model_of(estimator)):
        setattr(twin, name, copy.deepcopy(getattr(estimator, name)))
    twin.n_features_in_ = 2
    np.testing.assert_allclose(twin.predict_proba(rows), estimator.predict_proba(rows), rtol=1e-9, atol=1e-99)
    np.testing.assert_allclose(twin.score_samples(rows), estimator.score_samples(rows), rtol=1e-10)
    np.testing.assert_array_equal(twin.predict(rows), estimator.predict(rows))
    if type_of(model).is_in_scikit_learn and not estimator.noise and "tails" not in model:
        twin.covariances_ = estimator.covariances_
        converted = twin.to_sklearn()
        np.testing.assert_allclose(converted.score_samples(rows), estimator.score_samples(rows), rtol=1e-8)
    with pytest.raises(NotFittedError, match=r"set by hand\. \(a\) Call fit"):
        twin.means_std_


def test_arrays_may_be_changed_again_and_again_in_any_way():
    estimator = three_components(weights="dirichlet_distribution")
    reference = clone(estimator)
    estimator.means_ = estimator.means_.copy()
    for step in range(4):
        estimator.means_[step % 3] += 0.5  # in place: an array of the user's own
        if step == 2:
            estimator.means_ = estimator.means_.tolist()
        for name in PARAMETERS:
            setattr(reference, name, copy.deepcopy(getattr(estimator, name)))
        assert_same_answers(estimator, reference, rtol=1e-12, atol=1e-99)
        if step == 2:
            estimator.means_ = np.array(estimator.means_)
    fresh = clone(estimator).fit(X)
    assert_same_answers(estimator.fit(X), fresh, rtol=1e-12, atol=1e-99)
    reference.set_params(reg_covar=10.0)
    assert np.abs(reference.score_samples(X) - estimator.score_samples(X)).min() > 1.0


def test_some_components_alone_are_a_mixture():
    estimator = three_components(weights="dirichlet_distribution")
    proba = estimator.predict_proba(X)
    reorder(estimator, np.array([0, 2]))
    two = proba[:, [0, 2]]
    np.testing.assert_allclose(estimator.predict_proba(X), two / two.sum(axis=1, keepdims=True), rtol=1e-9)


def in_batches(rows):
    return [rows[:4], rows[4:]]


def on_dask(rows):
    return pytest.importorskip("dask.array").from_array(rows, chunks=(4, rows.shape[1]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist, in_batches, on_dask])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "score_samples", "score", "impute"])
def test_rows_of_another_width_than_arrays_set_by_hand_are_refused(method, kind):
    twin = LRVBGaussianMixture(n_components=3)
    for name in PARAMETERS:
        setattr(twin, name, getattr(three_components(), name))
    getattr(twin, method)(kind(X[:10]))
    for width in (1, 4):
        message = (
            f"X has {width} (features|columns), but (LRVBGaussianMixture is expecting|the mixture has) 3"
        )
        with pytest.raises(ValueError, match=message):
            getattr(twin, method)(kind(np.ones((10, width))))


def test_arrays_that_do_not_go_together_are_refused():
    estimator = three_components()
    estimator.means_ = estimator.means_[:2]
    with pytest.raises(ValueError, match=r"weight_concentration_ has shape \(2, 3\).*ask for \(2, 2\)"):
        estimator.predict(X)
    assert "means_" in dir(estimator)
    estimator.means_ = estimator.means_[0]
    with pytest.raises(ValueError, match=r"means_ has shape .* must have one row for every component"):
        estimator.predict(X)
    del estimator.means_
    with pytest.raises(NotFittedError):
        estimator.predict(X)


def test_parameters_set_after_fit_count_from_the_next_fit_on():
    estimator = three_components()
    expected = answers(estimator)
    estimator.set_params(covariance_type="tied", reg_covar=1.0, n_components=2, prior="flat")
    for mine, known in zip(answers(estimator), expected, strict=True):
        np.testing.assert_array_equal(mine, known)
    twin = pickle.loads(pickle.dumps(estimator))
    for mine, known in zip(answers(twin), expected, strict=True):
        np.testing.assert_array_equal(mine, known)
    np.testing.assert_allclose(twin.means_std_, estimator.means_std_, rtol=1e-9)


@every_model
def test_one_row_alone_is_seen_as_in_a_block(model):
    estimator = fitted(model)
    rows = np.linspace(-2, 4, 30).reshape(15, 2)
    together = estimator.predict_proba(rows), estimator.score_samples(rows)
    alone = [
        np.concatenate([f(row[None]) for row in rows])
        for f in (estimator.predict_proba, estimator.score_samples)
    ]
    for one, block in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, block, rtol=1e-11, atol=1e-99)


# Continuing from arrays.


@every_type
@every_weights
def test_a_warm_start_begins_at_the_arrays_that_were_set(covariance_type, weights):
    estimator = three_components(covariance_type, weights, warm_start=True)
    estimator.means_ = estimator.means_[::-1] + 0.1
    start = estimator.predict_proba(X)
    expected = mixture(
        {"covariance_type": covariance_type, "weight_concentration_prior_type": weights},
        3,
        init_params=start / start.sum(axis=1, keepdims=True),
        max_iter=0,
    ).fit(X)
    estimator.set_params(max_iter=0).fit(X)
    np.testing.assert_allclose(estimator.means_, expected.means_, rtol=1e-9, atol=1e-10)
    assert estimator.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-11)


@every_type
def test_a_warm_start_may_have_another_prior(covariance_type):
    for before, after in itertools.permutations(["learned", "fixed", "flat"], 2):
        estimator = three_components(covariance_type, prior=before, moves=None, warm_start=True)
        start = {"init_params": estimator.predict_proba(X)}
        estimator.set_params(prior=after).fit(X)
        expected = three_components(covariance_type, prior=after, moves=None, **start)
        np.testing.assert_allclose(estimator.means_, expected.means_, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(estimator.means_std_, expected.means_std_, rtol=1e-6)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_duplicate_has_the_prior_of_the_original(covariance_type):
    X = three_blobs() + 100.0
    mean_prior = X.mean(axis=0) + [1.0, -2.0, 0.5]
    estimator = mixture({"covariance_type": covariance_type, "mean_prior": mean_prior}).fit(X)
    expected = estimator.prior_sensitivity("covariances")
    found = pickle.loads(pickle.dumps(estimator)).prior_sensitivity("covariances")
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, rtol=1e-7, atol=1e-9 * np.abs(gradient).max())


def test_a_warm_start_after_a_pickle_is_that_of_the_original():
    estimator = mixture({}, 3, max_iter=6, warm_start=True)
    with pytest.warns(ConvergenceWarning):
        estimator.fit(X)
    twin = pickle.loads(pickle.dumps(estimator))
    for continued in (estimator, twin):
        continued.set_params(max_iter=2000).fit(X)
    assert twin.n_iter_ == estimator.n_iter_
    assert twin.lower_bounds_ == pytest.approx(estimator.lower_bounds_, rel=1e-12)


def test_refits_after_a_pickle_notice_variances_that_collapse():
    """Without the first row, a column of its component varies by rounding alone."""
    rng, labels = np.random.default_rng(0), np.arange(20) % 2
    rows = rng.normal(size=(20, 3)) + [[3.0, 0.0, 0.0]] * (1 - labels[:, None])
    rows[labels == 0, 1] = np.spacing(1e8) * rng.integers(0, 2, 10)
    rows[0, 1] += 1.0
    model = {"prior": "flat", "reg_covar": 0.0, "moves": None}
    estimator = mixture(model, 2, init_params=np.eye(2)[labels]).fit(rows + 1e8)
    twin = pickle.loads(pickle.dumps(estimator))
    for one in (estimator, twin):
        with pytest.warns(UserWarning, match=r"1 of 20 rows move the fit .*the first is row 0"):
            one.loo_score_samples(rows + 1e8)


# Error bars are about the fit.

ASKED = {
    "posterior_covariance_": lambda m: m.posterior_covariance_,
    "posterior_std_": lambda m: m.posterior_std_,
    "weights_std_": lambda m: m.weights_std_,
    "means_std_": lambda m: m.means_std_,
    "covariances_std_": lambda m: m.covariances_std_,
    "precisions_std_": lambda m: m.precisions_std_,
    "covariance": lambda m: m.posterior(method="lrvb").covariance("means"),
    "mean_field": lambda m: m.posterior(method="mean_field").covariance("means"),
    "summary": lambda m: m.posterior(method="lrvb").summary(),
    "sample": lambda m: m.posterior(random_state=0, method="lrvb").sample(),
    "posterior_check": lambda m: m.posterior_check(X),
    "predict_proba": lambda m: m.predict_proba(X, return_std=True),
    "score_samples": lambda m: m.score_samples(X, return_std=True),
    "influence": lambda m: m.influence(X[:3]),
    "leverage": lambda m: m.leverage(X[:3]),
    "loo_score_samples": lambda m: m.loo_score_samples(X),
    "deciding_rows": lambda m: m.deciding_rows(X, conclusion="weight[0]", threshold=2.0, max_share=0.01),
    "partition_posterior": lambda m: m.partition_posterior(X, n_draws=5, method="lrvb"),
    "prior_sensitivity": lambda m: m.prior_sensitivity(),
}


def test_dir_lists_error_bars_of_tails_where_these_are_fitted():
    for tails in ("normal", 4.0, "student"):
        estimator = LRVBGaussianMixture(n_components=2, tails=tails, random_state=0).fit(X)
        assert ("tails_std_" in dir(estimator)) == hasattr(estimator, "tails_std_") == (tails == "student")


@pytest.mark.slow
@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_error_bars_refuse_replaced_arrays_and_return_with_them(ask):
    estimator = three_components(prior="fixed")  # Chains stay in one mode.
    ask(estimator)
    known = estimator.means_
    estimator.means_ = known.copy()  # Nobody compares numbers.
    with pytest.raises(ValueError, match=r"Changed since the fit: means_\. .*\(a\) Fit again\. \(b\) Undo"):
        ask(estimator)
    assert "means_std_" not in dir(estimator)
    assert not hasattr(estimator, "means_std_")
    estimator.means_ = known
    ask(estimator)


@every_type
@every_weights
def test_every_fitted_array_is_watched(covariance_type, weights):
    estimator = three_components(covariance_type, weights)
    for name in OF_A_FIT:
        known = getattr(estimator, name)
        changed = tuple(2.0 * part for part in known) if isinstance(known, tuple) else 2.0 * known + 1.0
        setattr(estimator, name, changed)
        with pytest.raises(ValueError, match=f"Changed since the fit: {name}\\. "):
            estimator.means_std_
        setattr(estimator, name, known)
    assert estimator.means_std_.shape == (3, 3)


def test_two_changes_are_both_named():
    estimator = three_components()
    reorder(estimator, np.array([1, 0, 2]))
    with pytest.raises(
        ValueError,
        match=r"fit: weights_, covariances_, .* means_, .* precisions_cholesky_\. ",
    ):
        estimator.posterior_std_


def through_joblib(estimator, folder, mmap_mode=None):
    path = folder / f"{id(estimator)}.joblib"
    joblib.dump(estimator, path)
    return joblib.load(path, mmap_mode)


def through_a_worker(estimator, _):
    (twin,) = joblib.Parallel(2, "loky", max_nbytes=1)([joblib.delayed(copy.copy)(estimator)])
    return twin


DUPLICATES = {
    "pickle": lambda m, _: pickle.loads(pickle.dumps(m)),
    "protocol 5": lambda m, _: pickle.loads(pickle.dumps(m, protocol=5)),
    "deepcopy": lambda m, _: copy.deepcopy(m),
    "copy": lambda m, _: copy.copy(m),
    "joblib": through_joblib,
    "memory map": lambda m, folder: through_joblib(m, folder, "r"),
    "worker": through_a_worker,
}


@pytest.mark.parametrize(
    ("duplicate", "covariance_type"),
    [(make, ("full", "tied", "spherical")[i % 3]) for i, make in enumerate(DUPLICATES.values())],
    ids=DUPLICATES,
)
def test_a_duplicate_knows_which_arrays_are_those_of_the_fit(duplicate, covariance_type, tmp_path):
    estimator = three_components(covariance_type)
    expected, known = estimator.means_std_, answers(estimator)
    twin = duplicate(estimator, tmp_path)
    for mine, theirs in zip(answers(twin), known, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_allclose(twin.means_std_, expected, rtol=1e-9)
    for name in OF_A_FIT:
        assert_read_only(twin, name)
    twin.means_ = twin.means_ + 1.0
    again = duplicate(twin, tmp_path)
    for mine, theirs in zip(answers(again), answers(twin), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(ValueError, match=r"Changed since the fit: means_\. "):
        again.means_std_
    np.testing.assert_array_equal(estimator.predict_proba(X), known[0])


def assert_read_only(estimator, name):
    value = getattr(estimator, name)
    for array in value if isinstance(value, tuple) else (value,):
        if np.ndim(array):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 1.0


@every_type
@every_weights
def test_fitted_arrays_cannot_be_changed_in_place(covariance_type, weights):
    estimator = three_components(covariance_type, weights)
    for name in OF_A_FIT:
        assert_read_only(estimator, name)
    with pytest.raises(ValueError, match="read-only"):
        estimator.means_ += 1.0
    assert estimator.means_std_.shape == (3, 3)
    estimator.set_params(warm_start=True).fit(X)  # A continued fit has arrays of its own, read-only as well.
    assert_read_only(estimator, "means_")


def test_a_subclass_has_the_same_rules():
    class Shifted(LRVBGaussianMixture):
        def fit(self, X, y=None, sample_weight=None):
            super().fit(X, y, sample_weight)
            self.means_ = self.means_ + 1.0
            return self

    estimator = Shifted(n_components=3, random_state=0).fit(X)
    plain = three_components()
    np.testing.assert_allclose(estimator.score_samples(X + 1.0), plain.score_samples(X), rtol=1e-9)
    with pytest.raises(ValueError, match=r"Changed since the fit: means_\. "):
        estimator.means_std_


def test_arrays_of_a_copy_are_its_own_but_a_shallow_copy_shares_them():
    estimator = three_components()
    expected = estimator.predict_proba(X)
    deep, shallow = copy.deepcopy(estimator), copy.copy(estimator)
    assert shallow.posterior_covariance_ is estimator.posterior_covariance_
    deep.means_ = 0.0 * deep.means_
    np.testing.assert_array_equal(estimator.predict_proba(X), expected)
    shallow.means_ = shallow.means_ + 1.0
    np.testing.assert_array_equal(estimator.predict_proba(X), expected)
    assert np.abs(shallow.predict_proba(X) - expected).max() > 0.1


@pytest.mark.parametrize("name", [n for n in vars(LRVBGaussianMixture) if not n.startswith("_")])
def test_public_methods_have_docstrings(name):
    assert getattr(LRVBGaussianMixture, name).__doc__


PROPERTIES = sorted(
    {
        name
        for kind in LRVBGaussianMixture.__mro__
        if kind.__module__.startswith("sklearn_lrvb")
        for name, value in vars(kind).items()
        if isinstance(value, property) and not name.startswith("_")
    }
)


def test_the_public_properties_are_those_that_are_documented():
    assert len(PROPERTIES) == 13
    for name in PROPERTIES:
        described = getattr(LRVBGaussianMixture, name).__doc__
        assert "Raises" in described, name
        assert name in LRVBGaussianMixture.__doc__


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("means_", lambda a: a[:, :1], r"means_ has shape \(3, 1\).*n_features_in_ = 2 columns"),
        ("means_", lambda a: np.hstack([a, a]), r"n_features_in_ = 2 columns"),
        ("means_", lambda a: np.nan * a, "means_ must be an array of finite real numbers"),
        ("means_", lambda a: a + 1j, "means_ must be an array of finite real numbers"),
        ("means_", lambda a: "abc", "means_ must be an array of finite real numbers"),
        ("mean_precision_", lambda a: -a, "mean_precision_: it must be above 0"),
        (
            "weight_concentration_",
            lambda a: tuple(-b for b in a),
            "weight_concentration_: it must be above 0",
        ),
        ("degrees_of_freedom_", lambda a: 0.0 * a, "degrees_of_freedom_: it must be above 1"),
        (
            "precisions_cholesky_",
            lambda a: -a,
            r"precisions_cholesky_: its diagonal must be above 0, but has .* at \[\d, \d\]",
        ),
        ("precisions_cholesky_", lambda a: a.swapaxes(1, 2), "must be upper triangular"),
    ],
)
def test_arrays_that_describe_no_mixture_are_refused_by_name(name, change, message):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) @ [[1.0, 0.4], [0.0, 1.0]] + 4.0 * np.eye(3, 2)[np.arange(90) % 3]
    estimator = LRVBGaussianMixture(n_components=3, random_state=0).fit(X)
    kept = getattr(estimator, name)
    setattr(estimator, name, change(kept))
    for method in (estimator.predict, estimator.score_samples):
        with pytest.raises(ValueError, match=message):
            method(X)
    assert "LRVBGaussianMixture" in estimator._repr_html_()
    setattr(estimator, name, kept)
    assert estimator.predict(X).shape == (90,)


def test_a_twin_has_the_parameters_of_the_fit():
    X = np.random.default_rng(0).normal(size=(60, 2))
    estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    expected = estimator.to_sklearn().score_samples(X)
    estimator.set_params(covariance_type="diag", n_components=5, reg_covar=1.0)
    twin = estimator.to_sklearn()
    np.testing.assert_array_equal(twin.score_samples(X), expected)
    assert (twin.n_components, twin.covariance_type, twin.reg_covar) == (2, "full", 1e-6)


@pytest.mark.parametrize("n_samples", [0, 1.5, "3"])
def test_numbers_of_samples_are_whole_and_positive(n_samples):
    estimator = LRVBGaussianMixture().fit(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.raises(ValueError, match="at least one sample"):
        estimator.sample(n_samples)
