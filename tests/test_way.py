"""How long the way through the code is: what a reader passes who follows a call with a finger.

Each call is traced. It is counted how many files and functions of the library it goes through, how often the
way leads from one file into another, and how many calls stand within each other at most. The limits keep the
way as short as it is. Who needs a longer one changes the limit here, and says why in the commit.
"""

import io
import sys
import tokenize
from ast import AnnAssign, AsyncFunctionDef, ClassDef, Constant, Expr, FunctionDef, Module, parse, walk
from pathlib import Path

import numpy as np
import pytest

import sklearn_lrvb
from sklearn_lrvb import LRVBGaussianMixture

LIBRARY = Path(sklearn_lrvb.__file__).parent

# Files, functions, changes of file, depth.
LIMITS = {
    "fit": (44, 322, 904, 19),
    "posterior_covariance_": (16, 77, 49, 14),
    "influence": (22, 100, 72, 12),
    "predict": (13, 40, 23, 10),
}
MOST_FILES, MOST_LINES = 220, 26_330
# Steps of the fit that is traced: the changes of file grow with them.
STEPS = 8


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


@pytest.fixture(scope="module")
def calls():
    """The calls that are traced, in this order, by name."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    X[::2, 0] += 3.5
    mixture = LRVBGaussianMixture(n_components=2, random_state=0)
    mixture.fit(X).influence(X)  # what is made once in a process is no part of the way
    mixture = LRVBGaussianMixture(n_components=2, random_state=0)
    ways = {
        "fit": way_of(lambda: mixture.fit(X)),
        "posterior_covariance_": way_of(lambda: mixture.posterior_covariance_),
        "influence": way_of(lambda: mixture.influence(X)),
        "predict": way_of(lambda: mixture.predict(X)),
    }
    assert mixture.n_iter_ <= STEPS
    return ways


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
    "LRVBGaussianMixture": 24,
    "LRVBLatentClassMixture": 19,
    "MixturePrior": 13,
    "from_estimator": 18,
    "ComponentDisplay": 13,
    "PosteriorCheck": 21,
    "deciding_rows": 8,
    "DecidingRows": 19,
    "NumberOfClusters": 20,
    "number_of_clusters": 10,
    "PartitionPosterior": 18,
    "get_posterior_covariance": 9,
    "posterior_summary": 11,
    "sample_posterior": 8,
    "to_arviz": 8,
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
    return max([sum(isinstance(part, AnnAssign) for part in node.body), *made])


def test_functions_take_six_parameters_and_classes_twelve():
    for file in LIBRARY.rglob("*.py"):
        for node in walk(parse(file.read_text(encoding="utf8"))):
            if isinstance(node, FunctionDef) and node.name != "__init__":
                assert n_parameters(node) <= WIDE.get(node.name, 6), f"{file.name}: {node.name}"
            if isinstance(node, ClassDef) and node.name != "FittedAttributes":
                assert n_fields(node) <= WIDE.get(node.name, 12), f"{file.name}: {node.name}"
