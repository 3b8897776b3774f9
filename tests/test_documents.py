"""The code on the pages of docs/ runs, and what they say of sizes holds.

Code cells (`{code-cell}`) are run when the site is built. Tested here are the blocks that are only shown,
because they need packages that the site does not.
"""

import ast
import importlib
import re
import runpy
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from sklearn_lrvb.answers.uncertainty import _FORMED_TO_PICKLE_BYTES
from sklearn_lrvb.gaussian.covariance_structures import FullCovariance

ROOT = Path(__file__).parent.parent
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "```python\n" in page.read_text("utf8")]
INSTALLED_WITH_THE_TESTS = {"numpy", "scipy", "sklearn", "joblib", "pandas", "matplotlib", "sklearn_lrvb"}


def sections(page):
    """Headings of a page, with the code under each."""
    parts = re.split(r"^#+ (.*)$", page.read_text(encoding="utf8"), flags=re.MULTILINE)
    code = ["\n".join(re.findall(r"```python\n(.*?)```", part, flags=re.DOTALL)) for part in parts[2::2]]
    return {heading: own for heading, own in zip(parts[1::2], code, strict=True) if own}


def imported(code):
    """Packages that some code imports, in order."""
    for node in ast.walk(ast.parse(code)):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name.split(".")[0] for name in names)


CASES = [(page, heading) for page in PAGES for heading in sections(page)]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "heading"), CASES, ids=[f"{page.stem}-{name}" for page, name in CASES])
@pytest.mark.filterwarnings("default")  # Other packages' warnings about themselves are no errors here.
def test_the_code_of_a_section_runs(page, heading, tmp_path, monkeypatch):
    """The assertions are in the code of the pages."""
    code = sections(page)
    for package in imported(code[heading]):
        if package not in INSTALLED_WITH_THE_TESTS:
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    # A section may use what the first one on its page defines.
    blocks = dict.fromkeys([next(iter(code)), heading])
    namespace = {"__name__": "__main__"}
    for name in blocks:
        exec(compile(code[name], f"{page.name}, {name}", "exec"), namespace)


_CODE = re.compile(r"^```(?:python|\{code-cell\})\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_WIDEST = 88  # What the column of text shows on a laptop, and what the lessons keep to.


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("**/*.md")), ids=lambda page: page.stem)
def test_code_is_as_wide_as_the_column(page):
    code = "\n".join(_CODE.findall(page.read_text(encoding="utf8")))
    assert not [line for line in code.splitlines() if len(line) > _WIDEST]


_ROWS_FIRST = re.compile("posterior(_check)?|partition_posterior|influence|deciding_rows|loo_score_samples")


def _code(page):
    """What a page or a lesson shows as code, within sentences too, as far as it is complete."""
    text = page.read_text(encoding="utf8")
    shown = [text] if page.suffix == ".py" else _CODE.findall(text) + re.findall(r"`([^`\n]+\))`", text)
    for code in shown:
        with suppress(SyntaxError):  # an ellipsis, or a line of a shell
            yield ast.parse(re.sub(r"^(:|%).*$", "", code, flags=re.MULTILINE))


@pytest.mark.parametrize(
    "page",
    [*sorted((ROOT / "docs").glob("**/*.md")), *sorted((ROOT / "examples").glob("*.py")), ROOT / "README.md"],
    ids=lambda page: page.stem,
)
def test_methods_of_mixtures_take_rows_first_and_all_else_by_name(page):
    calls = [node for code in _code(page) for node in ast.walk(code) if isinstance(node, ast.Call)]
    named = [(getattr(call.func, "attr", getattr(call.func, "id", None)), call.args) for call in calls]
    wrong = [
        (name, ast.unparse(arguments[-1]))
        for name, arguments in named
        if _ROWS_FIRST.fullmatch(name or "")
        and (len(arguments) > 1 or isinstance(next(iter(arguments), None), ast.Constant | ast.List))
    ]
    assert not wrong


@pytest.mark.parametrize(
    "module",
    [
        "",
        ".displays",
        ".linear_response",
        ".mean_field",
        ".mean_field.exponential_families",
        ".mean_field.linear_response",
    ],
)
def test_the_reference_lists_every_public_name(module):
    module = importlib.import_module(f"sklearn_lrvb{module}")
    public = {name for name in module.__all__ if callable(getattr(module, name))}
    reference = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf8")
    (own,) = re.findall(
        rf"currentmodule:: {re.escape(module.__name__)}\n(.*?)```", reference, flags=re.DOTALL
    )
    assert set(re.findall(r"^   (\w+)$", own, flags=re.MULTILINE)) == public


def test_the_paper_cites_what_its_bibliography_has_at_a_length_that_joss_takes():
    _, _, text = (ROOT / "paper.md").read_text(encoding="utf8").split("---\n", maxsplit=2)
    bibliography = (ROOT / "paper.bib").read_text(encoding="utf8")
    assert set(re.findall(r"@(\w+)", text)) == set(
        re.findall(r"^@\w+{(\w+),", bibliography, flags=re.MULTILINE)
    )
    assert 750 <= len(text.split()) <= 1750


def test_models_are_small_enough_up_to_the_sizes_that_are_named():
    text = " ".join((ROOT / "docs" / "guide" / "deploying.md").read_text(encoding="utf8").split())
    assert f"at most {_FORMED_TO_PICKLE_BYTES // 2**20} MB" in text
    most = int(np.sqrt(_FORMED_TO_PICKLE_BYTES / 8))
    assert f"up to {most:,} unknowns" in text

    def n_unknowns(n_components, n_features):
        return FullCovariance(n_components, n_features).layout.n_coefficients

    named = re.search(r"one, two or five full components in up to (\d+), (\d+) or (\d+) features", text)
    for n_components, n_features in zip((1, 2, 5), map(int, named.groups()), strict=True):
        assert n_unknowns(n_components, n_features) <= most < n_unknowns(n_components, n_features + 1)


def test_every_method_is_below_a_question():
    # Building the site fails where one is missing.
    assert runpy.run_path(str(ROOT / "docs" / "method_tables.py"))["all_tables"]()
