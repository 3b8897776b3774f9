"""What a pickle carries: parameters, public arrays, and of the information its smallest form."""

import copy
import io
import pickle
import warnings

import joblib
import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    assert_equal_to_rounding,
    few_of,
    information_of,
    mixture,
    model_id,
    models_in_turn,
    overlapping,
    posterior_of,
    rows_of,
    set_sizes,
    solvers_of,
    three_blobs,
    use_information,
)
from sklearn.datasets import load_iris

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.information.observed_information import GaussianInformation
from sklearn_lrvb.linear_response.solvers import DualInformation, PrimalInformation

KILOBYTE = 1024


def iris_fit(**parameters):
    return LRVBGaussianMixture(n_components=3, random_state=0, **parameters).fit(load_iris().data)


@pytest.mark.parametrize("asked", [False, True])
def test_an_iris_fit_with_its_error_bars_is_small(asked):
    estimator = iris_fit()
    if asked:
        estimator.posterior_covariance_
    pickled = pickle.dumps(estimator)
    assert len(pickled) < 20 * KILOBYTE
    twin = pickle.loads(pickled)
    assert_equal_to_rounding(twin.posterior_covariance_, iris_fit().posterior_covariance_)


class NamesOfClasses(pickle.Unpickler):
    """Loads a pickle and notes what it asks for by name."""

    def __init__(self, pickled):
        super().__init__(io.BytesIO(pickled))
        self.names = set()

    def find_class(self, module, name):
        self.names.add((module.split(".")[0], name))
        return super().find_class(module, name)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("prior", ["learned", "flat"])
def test_pickles_hold_builtins_and_arrays_alone(covariance_type, prior):
    model = {"covariance_type": covariance_type, "prior": prior}
    estimator = mixture(model).fit(overlapping())
    estimator.posterior_std_
    assert of_plain_types(estimator.__getstate__())
    unpickler = NamesOfClasses(pickle.dumps(estimator))
    unpickler.load()
    assert {name for module, name in unpickler.names if module == "sklearn_lrvb"} == {"LRVBGaussianMixture"}
    assert {module for module, _ in unpickler.names} == {"sklearn_lrvb", "numpy"}


def of_plain_types(value):
    """Whether a value is made of builtins and numpy arrays."""
    if isinstance(value, dict):
        return all(map(of_plain_types, [*value, *value.values()]))
    if isinstance(value, (list, tuple)):
        return all(map(of_plain_types, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiu"
    return value is None or isinstance(value, (bool, int, float, str))


def contents(estimator):
    """All that an estimator and what it refers to hold, by reference."""
    source = estimator._last_uncertainty.source
    return {
        **vars(estimator),
        **{f"source.{name}": value for name, value in vars(source).items()},
        **{f"answers.{name}": value for name, value in vars(estimator._last_uncertainty).items()},
    }


@pytest.mark.parametrize("solver", ["newton", "coordinate_ascent"])
@pytest.mark.parametrize("bytes_formed", [2**26, 0])
def test_pickling_changes_nothing(solver, bytes_formed, monkeypatch):
    set_sizes(monkeypatch, pickled_bytes=bytes_formed)
    estimator = mixture({"solver": solver, "tol": 1e-6}).fit(overlapping())
    before = contents(estimator)
    for duplicate in (pickle.dumps, copy.deepcopy, joblib.hash):
        duplicate(estimator)
        after = contents(estimator)
        assert after.keys() == before.keys()
        assert all(after[name] is value for name, value in before.items())
    assert estimator.means_std_.shape == (2, 2)


@pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
def test_a_pickle_of_a_pickle_is_the_same(model):
    X = overlapping()
    first = pickle.dumps(mixture(model).fit(X))
    second = pickle.dumps(pickle.loads(first))
    third = pickle.loads(second)
    covariance = third.posterior_covariance_
    assert pickle.dumps(pickle.loads(second)) == second
    assert_equal_to_rounding(covariance, pickle.loads(pickle.dumps(third)).posterior_covariance_)
    np.testing.assert_array_equal(third.predict_proba(X), pickle.loads(first).predict_proba(X))


@models_in_turn(few_of(MODELS), "solver", ["primal", "dual"])
def test_packed_information_solves_the_same(model, solver, monkeypatch):
    solver = solver if solver in solvers_of(model) else "primal"
    use_information(solver, monkeypatch)
    estimator = mixture(model, 3).fit(three_blobs(60))
    information = information_of(estimator)
    assert information.name == solver
    arrays = information.to_arrays()
    unpacked = GaussianInformation(posterior_of(estimator)).from_arrays(arrays)
    sources = np.random.default_rng(0).normal(size=(len(information), 4))
    expected = information.solve(sources)
    np.testing.assert_allclose(unpacked.solve(sources), expected, atol=1e-10 * np.abs(expected).max())
    n_numbers = sum(array.size for array in arrays.values())
    assert n_numbers <= len(information) * (len(information) + 1) // 2
    assert solver == "dual" or isinstance(unpacked, PrimalInformation)


def test_few_ambiguous_rows_are_packed_rather_than_the_triangle():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    X[:150, 0] += 8.0
    X[:3, 0] = 4.0
    estimator = mixture({"prior": "fixed"}, 2).fit(X)
    information = information_of(estimator, "dual", rows_of(estimator, X))
    arrays = information.to_arrays()
    assert "triangle" not in arrays
    assert isinstance(GaussianInformation(posterior_of(estimator)).from_arrays(arrays), DualInformation)
    pickled = len(pickle.dumps(estimator))
    assert pickled < 8 * len(information) ** 2 / 4
    expected = mixture({"prior": "fixed"}, 2).fit(X).means_std_
    assert_equal_to_rounding(pickle.loads(pickle.dumps(estimator)).means_std_, expected)


def test_standard_deviations_travel_where_the_information_does_not(monkeypatch):
    use_information("matrix_free", monkeypatch)
    set_sizes(monkeypatch, pickled_bytes=0)
    estimator = mixture({}).fit(overlapping())
    known = estimator.means_std_
    twin = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(twin.means_std_, known)
    with pytest.raises(ValueError, match="read-only"):
        twin.means_std_[0, 0] = 1.0


def test_joblib_round_trip(tmp_path):
    estimator = iris_fit()
    joblib.dump(estimator, tmp_path / "mixture.joblib")
    twin = joblib.load(tmp_path / "mixture.joblib")
    X = load_iris().data
    np.testing.assert_array_equal(twin.predict_proba(X), estimator.predict_proba(X))
    assert_equal_to_rounding(twin.posterior_std_, estimator.posterior_std_)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_skops_has_to_trust_one_type_of_ours(covariance_type):
    skops = pytest.importorskip("skops.io")
    X = load_iris().data
    estimator = iris_fit(covariance_type=covariance_type)
    dumped = skops.dumps(estimator)
    trusted = "sklearn_lrvb.estimators.gaussian_mixture.LRVBGaussianMixture"
    assert skops.get_untrusted_types(data=dumped) == [trusted]
    twin = skops.loads(dumped, trusted=[trusted])
    np.testing.assert_array_equal(twin.predict_proba(X), estimator.predict_proba(X))
    assert_equal_to_rounding(twin.posterior_covariance_, estimator.posterior_covariance_)
    assert_equal_to_rounding(twin.influence(X[:5]), estimator.influence(X[:5]))
    assert twin.lower_bounds_ == estimator.lower_bounds_


def test_an_unfitted_estimator_has_only_parameters_to_pickle():
    estimator = LRVBGaussianMixture(n_components=2)
    assert pickle.loads(pickle.dumps(estimator)).get_params() == estimator.get_params()
    assert set(estimator.__getstate__()) == set(estimator.get_params())


# What messages advise.


def advice(estimator, X):
    """What the error of an undefined covariance, or the warning of a fit far from its optimum, advises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X)
        try:
            estimator.means_std_
        except ValueError as error:
            return str(error)
    return next(str(warning.message) for warning in caught if "rough" in str(warning.message))


STOPPED = {
    "few iterations": ({"solver": "coordinate_ascent", "max_iter": 3}, {"max_iter", "solver"}),
    "rough iterations": ({"solver": "coordinate_ascent", "tol": 0.1}, {"tol", "solver"}),
    "few Newton steps": ({"max_iter": 2}, {"max_iter"}),
}


@pytest.mark.parametrize(("parameters", "expected"), STOPPED.values(), ids=STOPPED)
@pytest.mark.parametrize("start", ["drawn", "given"])
def test_advice_is_what_was_not_done(parameters, expected, start):
    X = np.random.default_rng(0).normal(size=(200, 2))
    leaning = 0.5 + np.multiply.outer(0.3 * np.sign(X[:, 0]), [1, -1])
    given = {"init_params": leaning} if start == "given" else {}
    text = advice(LRVBGaussianMixture(n_components=2, random_state=0, **parameters, **given), X)
    advised = {
        "max_iter": "raise max_iter" in text,
        "tol": "lower tol" in text,
        "solver": "solver='newton'" in text,
    }
    assert {name for name, is_advised in advised.items() if is_advised} == expected
    if "is no strict local optimum" in text:
        assert ("n_init" in text) == (start == "drawn")
        assert ("init_params" in text) == (start == "given")
        assert "n_components" in text


def test_advice_stays_with_a_pickle():
    X = np.random.default_rng(0).normal(size=(200, 2))
    estimator = LRVBGaussianMixture(n_components=2, random_state=0, solver="coordinate_ascent", tol=0.01)
    text = advice(estimator, X)
    with pytest.raises(ValueError, match="no strict local optimum") as caught:
        pickle.loads(pickle.dumps(estimator)).means_std_
    assert str(caught.value) == text
