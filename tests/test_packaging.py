"""What is packaged agrees: the versions, the bounds that are tested, the marker of types, and the extras."""

import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

import sklearn_lrvb

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]


def requirements(*extras):
    """Lower bounds by package, of the dependencies and of some extras."""
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in extras)]
    return dict(re.sub(r"\[.*\]", "", line).split(">=") for lines in lists for line in lines)


def pinned(file):
    """Exact versions by package, of a requirements file."""
    lines = [line.split("#")[0].strip() for line in (ROOT / file).read_text(encoding="utf8").splitlines()]
    return dict(line.split("==") for line in lines if line)


def numbers(version):
    """Numbers of a version without trailing zeros, so that 2.1 equals 2.1.0."""
    return tuple(map(int, re.sub(r"(\.0)+$", "", version).split(".")))


@pytest.mark.parametrize(
    ("package", "bound"), requirements("test", "plot", "pandas", "arviz", "dask").items()
)
def test_the_oldest_supported_versions_are_those_that_are_tested(package, bound):
    assert numbers(pinned(".ci/oldest.txt")[package]) == numbers(bound)


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf8")
    assert f"\nversion: {sklearn_lrvb.__version__}\n" in citation


def test_the_package_says_that_it_has_types():
    assert files("sklearn_lrvb").joinpath("py.typed").is_file()


def test_the_public_checks_use_the_pythons_that_are_declared():
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf8")
    assert re.search(r"python: \[(.*)\]", workflow)[1] == ", ".join(f'"{version}"' for version in declared)
    assert PROJECT["requires-python"] == f">={declared[0]}"


def test_what_only_an_extra_installs_is_imported_by_none_who_does_not_use_it():
    code = """if True:
        import sys
        import numpy as np
        import sklearn_lrvb.displays
        from sklearn_lrvb import LRVBGaussianMixture

        X = np.random.default_rng(0).normal(size=(100, 2))
        LRVBGaussianMixture().fit(X).predict(X)
        LRVBGaussianMixture().fit([X[:50], X[50:]]).predict([X])
        imported = {"arviz_base", "dask", "matplotlib"} & sys.modules.keys()
        sys.exit(", ".join(imported) or None)
    """
    subprocess.run([sys.executable, "-c", code], check=True)
