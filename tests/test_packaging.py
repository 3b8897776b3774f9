"""What is packaged agrees: the versions, the tested bounds, the marker of types, the extras, the release."""

import ast
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import sklearn_lrvb

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
PROJECT = PYPROJECT["project"]


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


def test_conda_forge_installs_what_pypi_does():
    recipe = yaml.safe_load((ROOT / ".conda" / "recipe" / "recipe.yaml").read_text(encoding="utf8"))
    python, *packages = recipe["requirements"]["run"]
    assert dict(line.split(" >=") for line in packages) == requirements()
    assert (
        python.replace("${{ python_min }}", recipe["context"]["python_min"])
        == f"python {PROJECT['requires-python']}"
    )
    assert recipe["context"]["version"] == sklearn_lrvb.__version__
    assert {"homepage", "repository", "documentation", "summary", "description"} <= recipe["about"].keys()


def test_commits_are_checked_by_the_ruff_of_the_public_checks():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf8"))
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert len(hooks) == 2
    for hook in hooks:
        assert hook["additional_dependencies"] == [f"ruff=={pinned('.ci/tools.txt')['ruff']}"]


@pytest.mark.parametrize("source", ["", "https://example.org/somebody/sklearn-lrvb/"])
def test_pypi_shows_the_readme_with_addresses_once_there_is_one(source, tmp_path, monkeypatch):
    # hatchling runs this file as the package is built; the tests do not install it
    interface = SimpleNamespace(MetadataHookInterface=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "repository_links", raising=False)
    hook = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]
    for name in ("README.md", "sklearn_lrvb/__init__.py", hook, ".ci/repository_links.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    urls = f'[project.urls]\nSource = "{source}"\n' if source else ""
    (tmp_path / "pyproject.toml").write_text(urls, encoding="utf8")
    metadata = {}
    runpy.run_path(str(tmp_path / hook))["ReadmeForPyPI"]().update(metadata)

    here = (ROOT / "README.md").read_text(encoding="utf8")
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", here)
    of_version = f"{source.rstrip('/')}/{{}}/v{sklearn_lrvb.__version__}/" if source else ""
    expected = [
        file if file.startswith("https://") else of_version.format("raw" if picture else "blob") + file
        for picture, file in links
    ]
    there = metadata["readme"]["text"]
    assert len(links) >= 15 and re.findall(r"\]\(([^)]+)\)", there) == expected
    assert re.sub(r"\]\([^)]+\)", "", there) == re.sub(r"\]\([^)]+\)", "", here)


@pytest.mark.parametrize("page", ["README.md", "docs/getting_started.md"])
def test_one_extra_installs_all_that_a_first_page_uses(page):
    text = (ROOT / page).read_text(encoding="utf8")
    (extra,) = set(re.findall(r'pip install .*"\.\[(.+?)\]"', text)) - {"test", "docs"}
    installed = {"sklearn" if name == "scikit-learn" else name for name in requirements(extra)}
    code = "\n".join(re.findall(r"```(?:python|{code-cell})\n(.*?)```", text, flags=re.DOTALL))
    nodes = list(ast.walk(ast.parse(code)))
    names = [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    drawn = {"matplotlib", "pandas"}  # by displays, and by `summary`
    assert {name.split(".")[0] for name in names} - {"sklearn_lrvb"} | drawn <= installed


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf8")
    assert f"\nversion: {sklearn_lrvb.__version__}\n" in citation


def test_the_changelog_begins_with_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
    assert re.search(r"^## (\S+)", changelog, flags=re.MULTILINE)[1] == sklearn_lrvb.__version__


def test_the_package_says_that_it_has_types():
    assert files("sklearn_lrvb").joinpath("py.typed").is_file()


def test_the_public_checks_use_the_pythons_that_are_declared():
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf8")
    assert re.search(r"python: \[(.*)\]", workflow)[1] == ", ".join(f'"{version}"' for version in declared)
    assert PROJECT["requires-python"] == f">={declared[0]}"


@pytest.mark.slow
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


READY = {
    "sklearn_lrvb/__init__.py": '__version__ = "1.2.0"',
    "CHANGELOG.md": "## 1.2.0 (2030-01-31)\n\n### Fits\n\n* [New](docs/new.md).\n\n## 1.1.0 (2029-01-31)\n",
    "pyproject.toml": '[project.urls]\nSource = "https://example.org"\n',
    "CODE_OF_CONDUCT.md": "",
}


def release_notes(folder, files, tag):
    """The run of .ci/release_notes.py in a folder with these files."""
    script = folder / ".ci" / "release_notes.py"
    script.parent.mkdir()
    for name in ("release_notes.py", "repository_links.py"):
        shutil.copy(ROOT / ".ci" / name, script.parent)
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf8")
    return subprocess.run([sys.executable, str(script), tag], capture_output=True, encoding="utf8")


def test_the_notes_of_a_release_are_its_section_of_the_changelog(tmp_path):
    run = release_notes(tmp_path, READY, "v1.2.0")
    shown = ["### Fits", "", "* [New](https://example.org/blob/v1.2.0/docs/new.md)."]
    assert (run.returncode, run.stdout.splitlines()) == (0, shown)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tag", "changed", "reason"),
    [
        ("v1.1.0", {}, "the tag v1.1.0 is not v1.2.0"),
        ("v1.2.0", {"CHANGELOG.md": "## 1.2.0 (unreleased)\n"}, "write the day of the release"),
        ("v1.2.0", {"CHANGELOG.md": "## 1.1.0 (2029-01-31)\n"}, "begins with 1.1.0 and not with 1.2.0"),
        ("v1.2.0", {"pyproject.toml": "# FILL-IN"}, "pyproject.toml still has a FILL-IN"),
        ("v1.2.0", {"CODE_OF_CONDUCT.md": "FILL-IN"}, "CODE_OF_CONDUCT.md still has a FILL-IN"),
    ],
)
def test_a_version_that_is_not_ready_is_not_released(tag, changed, reason, tmp_path):
    run = release_notes(tmp_path, READY | changed, tag)
    assert run.returncode == 1
    assert reason in run.stderr and len(run.stderr.splitlines()) == 1
