"""How long the way through the code is: what a reader passes who follows a call with a finger.

Each call is traced. It is counted how many files and functions of the library it goes through, how often the
way leads from one file into another, and how many calls stand within each other at most. The limits keep the
way as short as it is. Who needs a longer one changes the limit here, and says why in the commit.
"""

import io
import sys
import tokenize
from ast import AnnAssign, AsyncFunctionDef, ClassDef, Constant, Expr, FunctionDef, Module, dump, parse, walk
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import sklearn_lrvb
from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture

LIBRARY = Path(sklearn_lrvb.__file__).parent

# Files, functions, changes of file, depth.
LIMITS = {
    "fit": (45, 341, 955, 22),  # Columns are looked at for rounding, and components follow what is learned.
    "posterior_covariance_": (25, 170, 149, 18),  # Fits may leave the matrix to the first question.
    "influence": (20, 99, 72, 10),
    "predict": (10, 38, 19, 9),
    "fit classes": (47, 440, 12_700, 23),
    "error bars of classes": (27, 169, 130, 15),
    "influence on classes": (28, 115, 82, 13),
    "predict classes": (18, 68, 45, 11),
}
MOST_FILES, MOST_LINES = 239, 30_060
# Steps of the fits that are traced: the changes of file grow with them.
STEPS, STEPS_OF_CLASSES = 8, 12
# Own classes in the method resolution order of an estimator, one for an old scikit-learn; methods of a class.
MOST_CLASSES, MOST_METHODS = 3, 40


def way_of(call):
    """Files, functions, changes of file and depth of a call, counted in the library alone."""
    stack, files, functions, n_changes, depth = [], set(), set(), 0, 0

    def follow(frame, event, _):
        nonlocal n_changes, depth
        code = frame.f_code
        if not code.co_filename.startswith(str(LIBRARY)):
            return
        if event == "call":
            n_changes += not stack or stack[-1] != code.co_filename
            stack.append(code.co_filename)
            depth = max(depth, len(stack))
            files.add(code.co_filename)
            functions.add((code.co_filename, code.co_qualname))
        elif event == "return":
            stack.pop()

    before = sys.getprofile()
    sys.setprofile(follow)
    try:
        call()
    finally:
        sys.setprofile(before)
    return len(files), len(functions), n_changes, depth


def ways_of(mixture, X, names, steps):
    """The ways of a fit, of error bars, of influence and of predictions, in this order, by some names."""
    clone(mixture).fit(X).influence(X)  # What is made once in a process is no part of the way.
    calls = (
        lambda: mixture.fit(X),
        lambda: mixture.posterior_covariance_,
        lambda: mixture.influence(X),
        lambda: mixture.predict(X),
    )
    ways = {name: way_of(call) for name, call in zip(names, calls, strict=True)}
    assert mixture.n_iter_ <= steps
    return ways


@pytest.fixture(scope="module")
def calls():
    """The calls that are traced, by name."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    X[::2, 0] += 3.5
    mixture = LRVBGaussianMixture(n_components=2, random_state=0)
    table = pd.DataFrame(
        {
            "age": rng.normal(size=300) + 3.5 * (np.arange(300) % 2),
            "wait": rng.normal(size=300),
            "visits": rng.poisson(2.0 + 6.0 * (np.arange(300) % 2)),
            "answer": rng.choice(["yes", "no", "maybe"], 300),
        }
    )
    classes = LRVBLatentClassMixture(columns={"visits": "count"}, random_state=0)
    names = list(LIMITS)
    return ways_of(mixture, X, names[:4], STEPS) | ways_of(classes, table, names[4:], STEPS_OF_CLASSES)


@pytest.mark.parametrize("call", LIMITS)
def test_the_way_of_a_call_is_short(calls, call):
    assert np.all(np.array(calls[call]) <= LIMITS[call]), f"{call}: {calls[call]}, limits {LIMITS[call]}"


def lines_of_code(text):
    """Number of lines that hold code: without docstrings, comments and blank lines."""
    documented = set()
    for node in walk(parse(text)):
        if isinstance(node, (Module, ClassDef, FunctionDef, AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, Expr) and isinstance(first.value, Constant):
                documented.update(range(first.lineno, first.end_lineno + 1))
    shape = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in shape:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def test_the_library_stays_small():
    texts = [file.read_text(encoding="utf8") for file in LIBRARY.rglob("*.py")]
    assert len(texts) <= MOST_FILES
    assert sum(map(lines_of_code, texts)) <= MOST_LINES


# Interfaces of scikit-learn, and tables whose fields and options are what users read and choose.
WIDE = {
    "BayesianMixture": 16,
    "LRVBGaussianMixture": 24,
    "LRVBLatentClassMixture": 20,
    "MixturePrior": 16,
    "MixtureModel": 18,  # A table of classes.
    "from_estimator": 15,
    "ComponentDisplay": 13,
    "PosteriorCheck": 21,
    "covariate_effects": 11,
    "outcome_differences": 11,
    "deciding_rows": 9,
    "DecidingRows": 19,
    "NumberOfClusters": 21,
    "number_of_clusters": 10,
    "PartitionPosterior": 18,
    "posterior": 8,
    "numbers": 7,  # one for each thing that can be wrong with them
}


def n_parameters(function):
    """Number of a function's parameters, without `self` or `cls`."""
    arguments = function.args
    names = [argument.arg for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    return len([name for name in names if name not in ("self", "cls")])


def n_fields(node):
    """Number of what a class is made of: its annotated fields, or the parameters of its constructor."""
    made = [
        n_parameters(part) for part in node.body if isinstance(part, FunctionDef) and part.name == "__init__"
    ]
    fields = [part for part in node.body if isinstance(part, AnnAssign) and "ClassVar" not in dump(part)]
    return max([len(fields), *made])


@pytest.mark.slow
def test_functions_take_six_parameters_and_classes_twelve():
    for file in LIBRARY.rglob("*.py"):
        for node in walk(parse(file.read_text(encoding="utf8"))):
            if isinstance(node, FunctionDef) and node.name != "__init__":
                assert n_parameters(node) <= WIDE.get(node.name, 6), f"{file.name}: {node.name}"
            if isinstance(node, ClassDef):
                assert n_fields(node) <= WIDE.get(node.name, 12), f"{file.name}: {node.name}"


@pytest.mark.parametrize("estimator", [LRVBGaussianMixture, LRVBLatentClassMixture])
def test_an_estimator_is_made_of_few_classes(estimator):
    own = [base for base in estimator.__mro__ if base.__module__.startswith("sklearn_lrvb.")]
    assert len(own) <= MOST_CLASSES


def test_classes_have_at_most_forty_methods():
    for file in LIBRARY.rglob("*.py"):
        for node in walk(parse(file.read_text(encoding="utf8"))):
            if isinstance(node, ClassDef):
                n_methods = sum(isinstance(part, (FunctionDef, AsyncFunctionDef)) for part in node.body)
                assert n_methods <= MOST_METHODS, f"{file.name}: {node.name} has {n_methods}"
