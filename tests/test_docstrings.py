"""Public docstrings name every parameter in its order, hold an example, which pytest runs, and are short."""

import inspect
import pydoc
import re
from functools import cached_property

import pytest

import sklearn_lrvb
from sklearn_lrvb import linear_response, mean_field
from sklearn_lrvb.estimators.posterior import Posterior
from sklearn_lrvb.mean_field import exponential_families
from sklearn_lrvb.mean_field import linear_response as general_linear_response


def _own_members(cls):
    """Public methods and properties by name; overrides are documented where they are declared first."""
    for base in filter(lambda base: base.__module__.startswith("sklearn_lrvb"), cls.__mro__):
        for name, member in vars(base).items():
            is_documented = callable(member) or isinstance(member, (property, cached_property, classmethod))
            is_override = any(name in vars(other) for other in base.__mro__[1:])
            if (
                is_documented
                and not name.startswith("_")
                and (name == "natural_parameters" or not is_override)
            ):
                yield f"{base.__name__}.{name}", getattr(member, "__func__", member)


_ROOMS = (sklearn_lrvb, linear_response, mean_field, exponential_families, general_linear_response)
_EXPORTED = [getattr(room, name) for room in _ROOMS for name in room.__all__]
_PUBLIC = {thing.__name__: thing for thing in _EXPORTED if callable(thing)}
_CLASSES = [*filter(inspect.isclass, _PUBLIC.values()), Posterior]
_PUBLIC |= {name: member for cls in _CLASSES for name, member in _own_members(cls)}


def _entries(doc, section):
    """Names in a section of a docstring, in order."""
    body = re.search(rf"(?ms)^{section}\n-+\n(.*?)(?=^[^\n]+\n---+\n|\Z)", doc)
    names = re.findall(r"(?m)^(\*?\w+(?:, \w+)*)(?= : |$)", body[1]) if body else []
    return [name.lstrip("*") for listed in names for name in listed.split(", ")]


@pytest.mark.parametrize("name", _PUBLIC)
def test_docstring_is_short_and_names_equations_by_number(name):
    """What takes longer to explain is on a page of the guide or of the theory."""
    doc = inspect.getdoc(_PUBLIC[name])
    assert len(doc.splitlines()) <= (200 if name in ("LRVBGaussianMixture", "LRVBLatentClassMixture") else 75)
    assert not re.search(r"\b(Eq|Prop)\.", doc), "write 'paper, Equation 12'"


@pytest.mark.parametrize("name", _PUBLIC)
def test_docstring_names_every_parameter_and_has_an_example(name):
    thing = _PUBLIC[name]
    doc = inspect.getdoc(thing)
    assert doc and doc.splitlines()[0].endswith((".", "?")), "a docstring opens with one sentence"
    if isinstance(thing, (property, cached_property)):
        return
    parameters = [
        p for p in inspect.signature(thing).parameters if p not in ("self", "cls", "args", "kwargs")
    ]
    section = "Parameters" if "\nParameters\n---" in doc else "Attributes"  # Results list attributes alone.
    assert _entries(doc, section)[: len(parameters)] == parameters
    assert re.search(r"(?s)^Examples\n--------\n.*^>>> ", doc, re.M), "no example"


_BESIDE_ROWS = "covariates", "outcome"  # These go with the rows, as y does elsewhere.

# Those have the order of scikit-learn.
_SCIKIT_LEARNS = {"fit", "fit_predict", "score", "from_sklearn"}


@pytest.mark.parametrize("estimator", [sklearn_lrvb.LRVBGaussianMixture, sklearn_lrvb.LRVBLatentClassMixture])
def test_rows_come_first_and_all_else_by_name(estimator):
    methods = {
        name: list(inspect.signature(method).parameters.values())[1:]
        for name, method in inspect.getmembers(estimator, inspect.isfunction)
        if not name.startswith("_") and name not in _SCIKIT_LEARNS
    }
    of_rows = {name: own for name, own in methods.items() if any(p.name == "X" for p in own)}
    assert {"posterior", "posterior_check", "influence", "deciding_rows"} < set(of_rows)
    for name, own in of_rows.items():
        assert own[0].name == "X", name
        others = [p for p in own[1:] if p.name not in _BESIDE_ROWS]
        assert all(p.kind is p.KEYWORD_ONLY for p in others), name


@pytest.mark.parametrize("estimator", [sklearn_lrvb.LRVBGaussianMixture, sklearn_lrvb.LRVBLatentClassMixture])
def test_help_names_types_as_the_code_does(estimator):
    text = pydoc.plain(pydoc.render_doc(estimator))
    assert "X: 'ArrayLike" in text
    assert "numpy._typing" not in text and "numpy.dtype" not in text
