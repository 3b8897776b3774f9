"""The compliance test of covariance structures: ours pass, broken ones fail."""

import pytest
from catalogue import COVARIANCE_TYPES
from structure_check import check_covariance_structure

from sklearn_lrvb.gaussian.covariance_structures import (
    COVARIANCE_STRUCTURES,
    CovarianceStructure,
)

CALLED = sorted(CovarianceStructure.__abstractmethods__ - {"random_factors_type", "entry_names"})
FEATURES = ["gradients", "kernel", "of_component", "products_by_row", "values"]
WRITES_INTO = {"write_entries": 1, "whiten_into": 3}  # which argument is written to


def spoilt(structure_class, name):
    """The class with one method whose results are off by a tenth."""

    def off(self, *arguments):
        result = getattr(super(with_fault, self), name)(*arguments)
        if name == "gradients":

            def write(weights, whitened, out):
                result(weights, whitened, out)
                out *= 1.1

            return write
        if name == "values":
            return lambda *given: 1.1 * result(*given)
        if name in WRITES_INTO:
            arguments[WRITES_INTO[name]][...] *= 1.1
            return None
        return 1.1 * result

    with_fault = type("Spoilt", (structure_class,), {name: off})
    return with_fault


@pytest.mark.all_cases
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
@pytest.mark.parametrize("name", FEATURES)
def test_features_that_are_off_are_found(covariance_type, name):
    structure = COVARIANCE_STRUCTURES[covariance_type]
    features = spoilt(structure.features_type, name)
    with pytest.raises(AssertionError, match=r"^Spoilt: "):
        check_covariance_structure(type("Spoilt", (structure,), {"features_type": features}))


@pytest.mark.slow
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
