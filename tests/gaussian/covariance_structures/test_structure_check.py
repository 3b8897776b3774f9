"""The compliance test of covariance structures: ours pass, broken ones fail, a new one is one class."""

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, covariance_by, overlapping
from structure_check import check_covariance_structure

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.covariance_structures import (
    COVARIANCE_STRUCTURES,
    CovarianceStructure,
)
from sklearn_lrvb.gaussian.covariance_structures.structures import DiagonalCovariance

CALLED = sorted(CovarianceStructure.__abstractmethods__ - {"random_factors_type", "entry_names"})
WRITES_INTO = {"write_entries": 1, "whiten_into": 3}  # which argument is written to


class TiedDiagonal(DiagonalCovariance):
    """One variance for every feature, shared by all components."""

    shares_precision = True

    def second_moments(self, whitened, weights):
        return super().second_moments(whitened, weights).sum(axis=0, keepdims=True)

    def diagonal_factors(self, scale):
        return scale[None]


def spoilt(structure_class, name):
    """The class with one method whose results are off by a tenth."""

    def off(self, *arguments):
        result = getattr(super(with_fault, self), name)(*arguments)
        if name == "gradients":

            def write(weights, whitened, out):
                result(weights, whitened, out)
                out *= 1.1

            return write
        if name in WRITES_INTO:
            arguments[WRITES_INTO[name]][...] *= 1.1
            return None
        return 1.1 * result

    with_fault = type("Spoilt", (structure_class,), {name: off})
    return with_fault


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize(("n_components", "n_features"), [(2, 1), (3, 3), (2, 4)])
def test_our_structures_comply(covariance_type, n_components, n_features):
    check_covariance_structure(
        COVARIANCE_STRUCTURES[covariance_type], n_components=n_components, n_features=n_features
    )


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("name", CALLED)
def test_a_method_that_is_off_is_named_as_an_identity_that_fails(covariance_type, name):
    with pytest.raises(AssertionError, match=r"^Spoilt: "):
        check_covariance_structure(spoilt(COVARIANCE_STRUCTURES[covariance_type], name))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("name", ["factors", "wishart"])
def test_random_factors_that_are_off_are_found(covariance_type, name):
    structure = COVARIANCE_STRUCTURES[covariance_type]
    factors = spoilt(structure.random_factors_type, name)
    if name == "wishart":
        factors.wishart = staticmethod(
            lambda *arguments: 1.1 * structure.random_factors_type.wishart(*arguments)
        )
    with pytest.raises(AssertionError, match=rf"^Spoilt: {'random_factors' if name == 'factors' else name}"):
        check_covariance_structure(type("Spoilt", (structure,), {"random_factors_type": factors}))


def test_constants_that_do_not_fit_are_found():
    class WrongPower(COVARIANCE_STRUCTURES["spherical"]):
        def __init__(self, n_components, n_features):
            super().__init__(n_components, n_features)
            self.power = 1

    with pytest.raises(AssertionError, match="WrongPower: "):
        check_covariance_structure(WrongPower)


def test_another_class_or_an_incomplete_one_is_refused():
    for other in (lambda n_components, n_features: object(), int, COVARIANCE_STRUCTURES["full"](2, 2)):
        with pytest.raises(TypeError, match="must be a subclass of CovarianceStructure"):
            check_covariance_structure(other)
    incomplete = type("Incomplete", (CovarianceStructure,), {})
    with pytest.raises(TypeError, match="abstract"):
        check_covariance_structure(incomplete)


@pytest.mark.parametrize("sizes", [{"n_components": 1}, {"n_features": 0}])
def test_too_few_components_or_features_are_refused(sizes):
    with pytest.raises(ValueError, match="at least two components and one feature"):
        check_covariance_structure(COVARIANCE_STRUCTURES["diag"], **sizes)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
def test_names_of_other_entries_are_found(covariance_type):
    structure = COVARIANCE_STRUCTURES[covariance_type]
    reversed_names = {"entry_names": lambda self, names: structure.entry_names(self, names)[::-1]}
    with pytest.raises(AssertionError, match="entry_names name features"):
        check_covariance_structure(type("Renamed", (structure,), reversed_names))


def test_the_interface_stays_small():
    assert len(CovarianceStructure.__abstractmethods__) <= 25


@pytest.fixture
def _with_tied_diagonal(monkeypatch):
    monkeypatch.setitem(COVARIANCE_STRUCTURES, "tied_diag", TiedDiagonal)
    constraints = LRVBGaussianMixture._parameter_constraints | {"covariance_type": [str]}
    monkeypatch.setattr(LRVBGaussianMixture, "_parameter_constraints", constraints)


def fitted(covariance_type, n_components, X, **parameters):
    mixture = LRVBGaussianMixture(
        n_components=n_components, covariance_type=covariance_type, random_state=0, tol=1e-10, max_iter=2000
    )
    return mixture.set_params(**parameters).fit(X)


@pytest.mark.usefixtures("_with_tied_diagonal")
def test_a_new_structure_is_one_class():
    X = overlapping()
    check_covariance_structure(TiedDiagonal)
    alone, diagonal = (fitted(kind, 1, X) for kind in ("tied_diag", "diag"))
    assert alone.lower_bound_ == pytest.approx(diagonal.lower_bound_, rel=1e-12)
    np.testing.assert_allclose(alone.posterior_covariance_, diagonal.posterior_covariance_, rtol=1e-9)

    mixture = fitted("tied_diag", 2, X)
    sweeps = fitted("tied_diag", 2, X, solver="coordinate_ascent", tol=1e-11)
    assert mixture.lower_bound_ == pytest.approx(sweeps.lower_bound_, abs=1e-8)
    assert mixture.precisions_.shape == (2,)
    for solver in ("dual", "matrix_free"):
        covariance = covariance_by(solver, mixture, X=X)
        scale = np.outer(mixture.posterior_std_, mixture.posterior_std_)
        np.testing.assert_allclose(covariance / scale, mixture.posterior_covariance_ / scale, atol=1e-7)
    step = 1e-4 * np.eye(len(X), dtype=float)[[100]].T @ [[1.0, 0.0]]
    moved = [
        fitted(
            "tied_diag",
            2,
            X + sign * step,
            mean_prior=mixture.mean_prior_,
            covariance_prior=mixture.covariance_prior_,
        )
        for sign in (1.0, -1.0)
    ]
    derivative = (moved[0].precisions_ - moved[1].precisions_) / 2e-4
    np.testing.assert_allclose(mixture.influence(X, target="precisions")[100, :, 0], derivative, rtol=1e-4)
