"""To and from BayesianGaussianMixture: the same predictions there, error bars here."""

import copy
import functools
import inspect
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from catalogue import (
    SKLEARN_TYPES,
    WITH_NOISE,
    WITHOUT_NOISE,
    assert_equal_to_rounding,
    half_of,
    mixture,
    model_id,
    newton_decrement,
    overlapping,
    three_blobs,
)
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.utils.validation import check_is_fitted

from sklearn_lrvb import LRVBGaussianMixture

every_type = pytest.mark.parametrize("covariance_type", SKLEARN_TYPES)
OURS_AND_THEIRS = [model for model in WITHOUT_NOISE if model["covariance_type"] in SKLEARN_TYPES]
every_model = pytest.mark.parametrize("model", half_of(OURS_AND_THEIRS), ids=model_id)
every_weights = pytest.mark.parametrize("weights", ["dirichlet_process", "dirichlet_distribution"])

X = three_blobs(120, n_features=3)
SHARED = set(BayesianGaussianMixture().get_params())
LEARNED = {"mean_precision_prior", "degrees_of_freedom_prior", "covariance_prior"}
# around the rows, and where all but one component have vanished
ANYWHERE = np.concatenate([X, 3 * X, 50 * X[:20]])


@functools.cache
def _fitted(number):
    return mixture(WITHOUT_NOISE[number], 3, init_params=np.eye(3)[np.arange(120) % 3]).fit(X)


def fitted(model):
    """Fitted to X; shared between tests, so not to be changed."""
    return _fitted(WITHOUT_NOISE.index(model))


def assert_predicts_the_same(one, other, rows=ANYWHERE):
    np.testing.assert_array_equal(one.predict(rows), other.predict(rows))
    np.testing.assert_allclose(one.predict_proba(rows), other.predict_proba(rows), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.score_samples(rows), other.score_samples(rows), rtol=1e-10, atol=1e-10)
    assert one.score(rows) == pytest.approx(other.score(rows), rel=1e-10)


def assert_same_posterior(one, other, rtol=1e-7):
    """Equal to ``rtol`` posterior standard deviations."""
    sd = other.posterior_std_
    np.testing.assert_array_less(np.abs(one.posterior_mean_ - other.posterior_mean_) / sd, rtol)
    error = np.abs(one.posterior_covariance_ - other.posterior_covariance_)
    np.testing.assert_array_less(error / np.outer(sd, sd), rtol)


def assert_same_values(one, other):
    """Equal dictionaries, arrays included."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_equal(other[name], value, err_msg=name)


# To scikit-learn.


def test_scikit_learn_has_no_noise():
    with pytest.raises(ValueError, match=r"no noise component, .* noise=True\. \(a\).*noise=None.*\(b\)"):
        mixture(WITH_NOISE[0]).fit(overlapping()).to_sklearn()


@every_model
def test_scikit_learn_predicts_the_same(model):
    ours = fitted(model)
    theirs = ours.to_sklearn()
    assert type(theirs) is BayesianGaussianMixture
    check_is_fitted(theirs)
    assert_predicts_the_same(theirs, ours)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        np.testing.assert_allclose(getattr(theirs, name), getattr(ours, name), rtol=1e-12, atol=1e-14)
        assert np.shape(getattr(theirs, name)) == np.shape(getattr(ours, name))
    for name in ("converged_", "n_iter_", "n_features_in_"):
        assert getattr(theirs, name) == getattr(ours, name)
    plain = BayesianGaussianMixture(n_components=3, max_iter=500, tol=1.0).fit(X)
    assert set(vars(plain)) <= set(vars(theirs))
    arrays = [value for value in vars(theirs).values() if isinstance(value, np.ndarray)]
    assert all(array.flags.writeable for array in arrays)  # Those of the fit are not.


@every_model
def test_hyperparameters_are_carried(model):
    ours = fitted(model)
    theirs = ours.to_sklearn()
    given, carried = ours.get_params(), theirs.get_params()
    own_start = {"init_params", "weight_concentration_prior_type"}  # no array there, no flat prior
    assert_same_values(
        {name: carried[name] for name in SHARED - own_start},
        {name: given[name] or 0 if name == "verbose" else given[name] for name in SHARED - own_start},
    )
    kind = carried["weight_concentration_prior_type"]
    assert kind == (
        "dirichlet_distribution" if model["prior"] == "flat" else given["weight_concentration_prior_type"]
    )
    refit = clone(theirs).set_params(max_iter=1000, tol=1e-3).fit(X)  # its parameters are valid there
    assert refit.means_.shape == (3, 3)


@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
def test_scikit_learns_starts_are_carried(init_params):
    ours = LRVBGaussianMixture(
        n_components=2, init_params=init_params, random_state=3, max_iter=500, verbose=0
    ).fit(X)
    theirs = ours.to_sklearn()
    given, carried = ours.get_params(), theirs.get_params()
    assert_same_values(*({name: each[name] for name in SHARED - LEARNED} for each in (given, carried)))


@every_type
@pytest.mark.parametrize("n_features", [3, 8])
def test_learned_hyperparameters_are_carried_as_given_ones(covariance_type, n_features):
    # Scikit-learn takes no fewer degrees of freedom than features for variances: then C0 / nu0 is kept.
    rows = three_blobs(120, n_features)
    ours = mixture({"covariance_type": covariance_type}, 3).fit(rows)
    theirs = ours.to_sklearn()
    assert theirs.mean_precision_prior == ours.mean_precision_prior_
    nu, found = theirs.degrees_of_freedom_prior, ours.degrees_of_freedom_prior_
    assert nu == (found if found > n_features - 1 else n_features)
    np.testing.assert_allclose(theirs.covariance_prior / nu, ours.covariance_prior_ / found, rtol=1e-14)
    refit = clone(theirs).set_params(max_iter=1000).fit(rows)
    assert refit.means_.shape == (3, n_features)


def test_given_priors_are_carried():
    priors = {
        "weight_concentration_prior": 0.3,
        "mean_precision_prior": 2.0,
        "mean_prior": np.array([0.1, 0.2, 0.3]),
        "degrees_of_freedom_prior": 7.5,
        "covariance_prior": np.diag([1.0, 2.0, 3.0]),
    }
    ours = mixture(priors, 2).fit(X)
    theirs = ours.to_sklearn()
    for name, value in priors.items():
        np.testing.assert_array_equal(getattr(theirs, name), value)
        np.testing.assert_array_equal(getattr(theirs, f"{name}_"), value)
    assert_predicts_the_same(theirs, ours)


@every_type
def test_scikit_learns_mixture_lives_on_its_own(covariance_type, tmp_path):
    ours = mixture({"covariance_type": covariance_type}).fit(X)
    theirs = ours.to_sklearn()
    stored = pickle.dumps(theirs)
    assert b"sklearn_lrvb" not in stored
    joblib.dump(theirs, tmp_path / "theirs.joblib")
    for twin in (pickle.loads(stored), copy.deepcopy(theirs), joblib.load(tmp_path / "theirs.joblib")):
        assert_predicts_the_same(twin, ours)
    with pytest.raises(NotFittedError):
        clone(theirs).predict(X)
    expected = ours.predict_proba(X)
    for value in vars(theirs).values():
        for array in value if isinstance(value, tuple) else (value,):
            if isinstance(array, np.ndarray):
                array[...] = np.nan
    np.testing.assert_array_equal(ours.predict_proba(X), expected)
    assert np.all(np.isfinite(ours.means_))


@every_model
def test_samples_are_the_same(model):
    ours = fitted(model)
    for n_samples in (1, 40):
        drawn, labels = ours.sample(n_samples)
        rows, components = ours.to_sklearn().sample(n_samples)
        np.testing.assert_array_equal(labels, components)
        np.testing.assert_allclose(drawn, rows, rtol=1e-7, atol=1e-9)


@every_model
def test_scikit_learn_continues_from_here(model):
    # its first iteration starts at our responsibilities
    ours = fitted(model)
    theirs = ours.to_sklearn().set_params(warm_start=True, max_iter=1)
    shares = ours.predict_proba(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(X)
    assert theirs.n_iter_ == 1
    expected = (shares.T @ X + X.mean(axis=0)) / (shares.sum(axis=0) + 1)[:, None]
    np.testing.assert_allclose(theirs.means_, expected, rtol=1e-9, atol=1e-10)


@every_weights
def test_scikit_learn_stays_where_both_posteriors_are_one(weights):
    ours = mixture({"weight_concentration_prior_type": weights, "reg_covar": 0.0}, 3).fit(X)
    theirs = ours.to_sklearn().set_params(warm_start=True, tol=1e-7, max_iter=500).fit(X)
    assert theirs.n_iter_ <= 3
    np.testing.assert_allclose(theirs.means_, ours.means_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(theirs.covariances_, ours.covariances_, rtol=1e-6, atol=1e-7)


def test_weights_of_rows_reach_scikit_learn():
    weights = np.random.default_rng(0).uniform(0, 3, size=120)
    ours = mixture({"covariance_type": "tied"}, 3).fit(X, sample_weight=weights)
    assert_predicts_the_same(ours.to_sklearn(), ours)


# From scikit-learn.


@functools.cache
def theirs_fitted(covariance_type, weights, **parameters):
    """Shared between tests, so not to be changed."""
    return BayesianGaussianMixture(
        n_components=3,
        covariance_type=covariance_type,
        weight_concentration_prior_type=weights,
        random_state=1,
        tol=1e-4,
        max_iter=1000,
        **parameters,
    ).fit(X)


@every_type
@every_weights
@pytest.mark.parametrize("reg_covar", [0.0, 1e-3])
def test_a_fit_of_scikit_learns_is_where_ours_starts(covariance_type, weights, reg_covar):
    bgm = theirs_fitted(covariance_type, weights, reg_covar=reg_covar)
    ours = LRVBGaussianMixture.from_sklearn(bgm, X)
    assert type(ours) is LRVBGaussianMixture
    assert_same_values({name: ours.get_params()[name] for name in SHARED}, bgm.get_params())
    assert ours.converged_
    assert newton_decrement(ours) < 1e-3
    expected = clone(ours).set_params(init_params=bgm.predict_proba(X), tol=1e-9).fit(X)
    assert_same_posterior(ours, expected, rtol=1e-4)
    assert ours.lower_bound_ == pytest.approx(expected.lower_bound_, abs=1e-6)
    # components keep their numbers, and lie where theirs do
    assert np.mean(ours.predict(X) == bgm.predict(X)) > 0.95
    assert np.all(np.abs(ours.means_ - bgm.means_) < 2 * ours.means_std_)
    np.testing.assert_allclose(ours.mean_prior_, bgm.mean_prior_, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.covariance_prior_, bgm.covariance_prior_, rtol=1e-10)


@pytest.mark.slow
@every_weights
def test_a_converged_fit_of_scikit_learns_is_kept(weights):
    bgm = BayesianGaussianMixture(
        n_components=3, weight_concentration_prior_type=weights, reg_covar=0, tol=1e-13, max_iter=20_000
    ).fit(X)
    ours = LRVBGaussianMixture.from_sklearn(bgm, X)
    assert ours.n_iter_ <= 4
    for name in ("weights_", "means_", "covariances_", "mean_precision_", "degrees_of_freedom_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(bgm, name), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), bgm.predict_proba(X), atol=1e-5)


@every_type
def test_scikit_learns_mixture_is_left_alone(covariance_type):
    bgm = theirs_fitted(covariance_type, "dirichlet_process")
    before = copy.deepcopy(vars(bgm))
    LRVBGaussianMixture.from_sklearn(bgm, X)
    assert_same_values(vars(bgm), before)


@every_type
def test_weights_of_rows_are_repetitions_on_the_way_here(covariance_type):
    weights = np.random.default_rng(0).integers(0, 4, size=120)
    bgm = theirs_fitted(covariance_type, "dirichlet_distribution")
    bgm = copy.deepcopy(bgm).fit(np.repeat(X, weights, axis=0))
    counted = LRVBGaussianMixture.from_sklearn(bgm, X, sample_weight=weights)
    repeated = LRVBGaussianMixture.from_sklearn(bgm, np.repeat(X, weights, axis=0))
    assert_same_posterior(counted, repeated, rtol=1e-6)
    with pytest.warns(UserWarning, match="it counts 120 rows, and bgm was fitted to"):
        other = LRVBGaussianMixture.from_sklearn(bgm, X)
    assert not np.allclose(counted.means_, other.means_)


@pytest.mark.parametrize("max_iter", [1, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_type
@every_weights
def test_the_rows_of_the_fit_are_known_again(covariance_type, weights, dtype, max_iter):
    rows = (X + [1e3, 0.0, 0.0]).astype(dtype)
    bgm = BayesianGaussianMixture(
        n_components=3, covariance_type=covariance_type, weight_concentration_prior_type=weights
    ).set_params(mean_precision_prior=0.3, mean_prior=[1e3, 0.4, -2.0], max_iter=max_iter, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        bgm.fit(rows).set_params(max_iter=100)
    LRVBGaussianMixture.from_sklearn(bgm, rows[::-1])
    LRVBGaussianMixture.from_sklearn(bgm, [rows[:50], rows[50:]])
    moved = rows.copy()
    moved[7, 2] += 1.0
    with pytest.warns(UserWarning, match=r"the mean of column 2 is 0\.0\d+ standard deviations from"):
        LRVBGaussianMixture.from_sklearn(bgm, moved)
    with pytest.warns(UserWarning, match="it counts 119 rows, and bgm was fitted to 120"):
        LRVBGaussianMixture.from_sklearn(bgm, rows[1:])


def test_other_rows_are_told_by_the_names_of_columns():
    rows = pd.DataFrame(X, columns=["a", "b", "c"])
    bgm = BayesianGaussianMixture(n_components=2, random_state=0).fit(rows)
    with pytest.warns(UserWarning, match="the mean of column 'b' is"):
        LRVBGaussianMixture.from_sklearn(bgm, rows.assign(b=rows["b"] + 1.0))


def test_other_rows_may_be_fitted():
    # as with warm_start: the start is a posterior, not assignments of rows
    bgm = theirs_fitted("full", "dirichlet_distribution")
    more = three_blobs(300, n_features=3, seed=1)
    with pytest.warns(UserWarning, match=r"X is not what bgm was fitted to.*\(a\).*\(b\) .*init_params"):
        ours = LRVBGaussianMixture.from_sklearn(bgm, more)
    assert_same_posterior(
        ours, clone(ours).set_params(init_params=bgm.predict_proba(more), tol=1e-9).fit(more), rtol=1e-4
    )


# There and back.

PROPER = [
    model for model in OURS_AND_THEIRS if model["prior"] == "fixed" and model["factorization"] == "joint"
]


@pytest.mark.parametrize("model", PROPER, ids=model_id)
def test_there_and_back(model):
    ours = fitted(model)
    back = LRVBGaussianMixture.from_sklearn(ours.to_sklearn(), X)
    assert_same_posterior(back, ours, rtol=1e-6)
    assert back.lower_bound_ == pytest.approx(ours.lower_bound_, rel=1e-11)
    assert back.n_iter_ <= 6
    assert_predicts_the_same(back.to_sklearn(), back)


@every_type
def test_a_fit_with_a_learned_prior_stays_where_it_is_on_the_way_back(covariance_type):
    # A fit under the numbers that were learned has the same optimum, and error bars that take them as known.
    ours = mixture({"covariance_type": covariance_type}, 3).fit(X)
    back = LRVBGaussianMixture.from_sklearn(ours.to_sklearn(), X)
    assert back.prior == "fixed" and back.n_iter_ <= 6
    shift = np.abs(back.posterior_mean_ - ours.posterior_mean_) / ours.posterior_std_
    np.testing.assert_array_less(shift, 1e-6)
    np.testing.assert_array_less(back.posterior_std_, (1 + 1e-9) * ours.posterior_std_)
    assert_predicts_the_same(back.to_sklearn(), back)


def test_there_and_back_with_weights():
    weights = np.random.default_rng(0).uniform(0, 3, size=120)
    ours = mixture({"prior": "fixed"}, 3).fit(X, sample_weight=weights)
    back = LRVBGaussianMixture.from_sklearn(ours.to_sklearn(), X, sample_weight=weights)
    assert_same_posterior(back, ours, rtol=1e-6)


@every_type
def test_a_mixture_that_came_is_a_mixture(covariance_type):
    ours = LRVBGaussianMixture.from_sklearn(theirs_fitted(covariance_type, "dirichlet_process"), X)
    again = clone(ours).set_params(tol=1e-9).fit(X)
    arguments = theirs_fitted(covariance_type, "dirichlet_process").get_params()
    fresh = LRVBGaussianMixture(prior="fixed", **arguments)
    np.testing.assert_array_equal(again.means_, fresh.set_params(tol=1e-9).fit(X).means_)
    assert_equal_to_rounding(
        pickle.loads(pickle.dumps(ours)).posterior_covariance_, ours.posterior_covariance_
    )
    assert ours.influence(X).shape == (120, 3, 3, 3)
    warm = copy.deepcopy(ours).set_params(warm_start=True).fit(X)
    assert warm.n_iter_ <= 6
    np.testing.assert_allclose(warm.means_, ours.means_, rtol=1e-6, atol=1e-7)


# Names and classes.

NAMES = ["length", "width", "depth"]


def test_names_travel_both_ways():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=NAMES)
    bgm = BayesianGaussianMixture(n_components=2, random_state=0, max_iter=500).fit(frame)
    ours = LRVBGaussianMixture.from_sklearn(bgm, frame)
    assert list(ours.feature_names_in_) == NAMES
    assert ours.posterior_names_[2] == "mean[0,length]"
    theirs = ours.to_sklearn()
    assert list(theirs.feature_names_in_) == NAMES
    np.testing.assert_array_equal(theirs.predict(frame), ours.predict(frame))
    turned = frame[NAMES[::-1]]
    for refuse in (
        lambda: LRVBGaussianMixture.from_sklearn(bgm, turned),
        lambda: ours.predict(turned),
        lambda: theirs.predict(turned),
    ):
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            refuse()
    assert not hasattr(fitted(WITHOUT_NOISE[0]).to_sklearn(), "feature_names_in_")


def test_subclasses_travel():
    class Theirs(BayesianGaussianMixture):
        pass

    class Ours(LRVBGaussianMixture):
        pass

    bgm = Theirs(n_components=2, random_state=0, max_iter=500).fit(X)
    ours = Ours.from_sklearn(bgm, X)
    assert type(ours) is Ours
    assert type(ours.to_sklearn()) is BayesianGaussianMixture


class WithOwnInit(BayesianGaussianMixture):
    """A subclass as projects write them: some parameters fixed, one added, the others out of reach."""

    def __init__(self, n_components=3, sharpness=1.0):
        super().__init__(
            n_components=n_components, reg_covar=0.07, random_state=5, max_iter=500, covariance_type="diag"
        )
        self.sharpness = sharpness


class OursWithOwnInit(LRVBGaussianMixture):
    """The same of ours."""

    def __init__(self, n_components=3, sharpness=1.0):
        super().__init__(n_components=n_components, reg_covar=0.07, random_state=5, covariance_type="diag")
        self.sharpness = sharpness


@pytest.mark.parametrize("kind", [LRVBGaussianMixture, OursWithOwnInit])
def test_parameters_that_a_subclass_fixes_are_taken_over(kind):
    bgm = WithOwnInit(sharpness=2.0).fit(X)
    ours = kind.from_sklearn(bgm, X)
    for name in SHARED:
        assert getattr(ours, name) == getattr(bgm, name), name
    plain = BayesianGaussianMixture(**{name: getattr(bgm, name) for name in SHARED}).fit(X)
    expected = LRVBGaussianMixture.from_sklearn(plain, X)
    np.testing.assert_array_equal(ours.means_, expected.means_)
    assert ours.lower_bound_ == expected.lower_bound_


def test_parameters_that_our_subclass_fixes_are_handed_on():
    ours = OursWithOwnInit().fit(X)
    theirs = ours.to_sklearn()
    for name in SHARED - LEARNED - {"verbose"}:
        assert getattr(theirs, name) == getattr(ours, name), name
    assert_predicts_the_same(theirs, ours)


# In scikit-learn's place.


def test_it_counts_as_scikit_learns_class():
    class Derived(LRVBGaussianMixture):
        pass

    ours = fitted(WITHOUT_NOISE[0])
    for own in (ours, Derived(), pickle.loads(pickle.dumps(ours)), copy.copy(ours), clone(ours)):
        assert isinstance(own, BayesianGaussianMixture)
        assert not isinstance(own, GaussianMixture)
    assert issubclass(LRVBGaussianMixture, BayesianGaussianMixture)
    assert not issubclass(BayesianGaussianMixture, LRVBGaussianMixture)
    described = functools.singledispatch(lambda mixture: "any")
    described.register(BayesianGaussianMixture, lambda mixture: "Bayesian mixture")
    assert described(ours) == "Bayesian mixture"


def test_it_has_all_that_is_public_there():
    plain = BayesianGaussianMixture(n_components=2, random_state=0, max_iter=500).fit(X)
    ours = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    public = {name for name in dir(plain) if not name.startswith("_")}
    assert public - set(dir(ours)) == set()
    for name in public:
        theirs = getattr(plain, name)
        if inspect.ismethod(theirs):
            given = inspect.signature(getattr(ours, name)).parameters
            assert set(inspect.signature(theirs).parameters) <= set(given), name


@every_type
def test_its_numbers_have_the_methods_of_theirs(covariance_type):
    # Where scikit-learn's are NumPy's, code may call `round` and other methods of them.
    plain = theirs_fitted(covariance_type, "dirichlet_process")
    ours = LRVBGaussianMixture(n_components=3, covariance_type=covariance_type, random_state=1).fit(X)
    for name in ("lower_bound_", "degrees_of_freedom_"):
        assert isinstance(getattr(ours, name), (np.float64, np.ndarray))
    assert ours.lower_bound_.round(2) == pytest.approx(ours.lower_bound_, abs=0.01)
    assert ours.score(X).round(2) == pytest.approx(ours.score(X), abs=0.01)
    assert {type(bound) for bound in ours.lower_bounds_} == {np.float64}
    for name in ("weights_", "means_", "covariances_", "precisions_", "mean_precision_", "covariance_prior_"):
        assert np.asarray(getattr(ours, name)).dtype == np.asarray(getattr(plain, name)).dtype
        assert np.shape(getattr(ours, name)) == np.shape(getattr(plain, name))


# What cannot travel.


@pytest.mark.parametrize("estimator", [LRVBGaussianMixture(), LRVBGaussianMixture(covariance_type="diag")])
def test_an_unfitted_mixture_stays(estimator):
    with pytest.raises(NotFittedError):
        estimator.to_sklearn()


def test_an_unfitted_mixture_of_scikit_learns_stays():
    with pytest.raises(NotFittedError, match="BayesianGaussianMixture"):
        LRVBGaussianMixture.from_sklearn(BayesianGaussianMixture(), X)


@pytest.mark.parametrize("concentration", ["dirichlet_process", "dirichlet_distribution"])
@pytest.mark.parametrize("name", ["means_", "covariances_", "degrees_of_freedom_", "weight_concentration_"])
def test_a_mixture_with_broken_attributes_stays(name, concentration):
    bgm = copy.deepcopy(theirs_fitted("full", concentration))
    for broken in (np.nan * np.asarray(getattr(bgm, name)), None, "text"):
        setattr(bgm, name, broken)
        with pytest.raises(ValueError, match=rf"^bgm\.{name} must be finite numbers, as after a fit"):
            LRVBGaussianMixture.from_sklearn(bgm, X)
    setattr(bgm, name, 1.0)
    with pytest.raises(ValueError, match=r"^The parameters of bgm are not those of its fit"):
        LRVBGaussianMixture.from_sklearn(bgm, X)
    delattr(bgm, name)
    with pytest.raises(NotFittedError, match=rf"^bgm .* is not fitted: it has no {name}\. Call its fit"):
        LRVBGaussianMixture.from_sklearn(bgm, X)


@pytest.mark.parametrize(
    "other",
    [GaussianMixture(), LRVBGaussianMixture(), KMeans(n_clusters=2), None, X, BayesianGaussianMixture],
    ids=["GaussianMixture", "ours", "KMeans", "None", "array", "class"],
)
def test_other_estimators_stay(other):
    if hasattr(other, "fit") and not isinstance(other, type):
        other = clone(other).fit(X)
    with pytest.raises(TypeError, match=rf"BayesianGaussianMixture, got {type(other).__name__}") as caught:
        LRVBGaussianMixture.from_sklearn(other, X)
    assert ("warm_start=True" in str(caught.value)) == isinstance(other, LRVBGaussianMixture)


BAD_ROWS = {
    "fewer features": (X[:, :2], r"2 features.*3 features"),
    "more features": (np.column_stack([X, X]), r"6 features.*3 features"),
    "one row": (X[:1], r"minimum of 2"),
    "fewer rows than components": (X[:2], r"n_components = 3, n_samples = 2"),
    "NaN": (np.where(-np.inf < X, np.nan, X), r"NaN"),
    "1-D": (X[:, 0], r"Expected 2D array"),
}


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        LRVBGaussianMixture.from_sklearn(theirs_fitted("full", "dirichlet_process"), rows)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(120, -1.0), r"Negative values in data passed to `sample_weight`"),
        (np.zeros(120), r"at least one non-zero"),
        (np.ones(7), r"sample_weight\.shape == \(7,\)"),
    ],
    ids=["negative", "zeros", "short"],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        LRVBGaussianMixture.from_sklearn(theirs_fitted("full", "dirichlet_process"), X, sample_weight=weights)


def test_changed_hyperparameters_are_refused():
    for change, message in (
        ({"n_components": 2}, r"n_components"),
        ({"covariance_type": "diag"}, r"covariance_type|covariances_|diag"),
    ):
        bgm = copy.deepcopy(theirs_fitted("full", "dirichlet_process")).set_params(**change)
        with pytest.raises(ValueError, match=message):
            LRVBGaussianMixture.from_sklearn(bgm, X)
