"""The README is short, its code runs, and everything it links to exists."""

import re
from pathlib import Path

import sklearn_lrvb
from sklearn_lrvb import LRVBGaussianMixture

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf8")


def test_it_is_short():
    assert len(README.splitlines()) <= 160


def test_its_code_is_short_and_prints_what_is_shown_below_it(capsys):
    cells = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, flags=re.DOTALL)
    assert len(cells) == README.count("```python") == 2
    assert sum(len(code.splitlines()) for code, _ in cells) <= 12
    namespace = {}
    for code, shown in cells:
        exec(compile(code, "README.md", "exec"), namespace)
        assert capsys.readouterr().out == shown


def test_its_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)]+)\)", README)
    assert len(targets) >= 15
    for target in targets:
        assert target.startswith("https://arxiv.org/") or (ROOT / target).is_file(), target


def test_the_files_in_its_commands_exist():
    one_liners = re.findall(r"^python3 -m venv .*$", README, flags=re.MULTILINE)
    assert len(one_liners) == 2
    for name in re.findall(r"\S+\.py\b", " ".join(one_liners)):
        assert (ROOT / name).is_file(), name


def test_the_methods_it_names_exist():
    answers = re.findall(r"^\| [^|]+\| (.*`.*) \|$", README, flags=re.MULTILINE)
    named = {name for answer in answers for name in re.findall(r"`(\w+)", answer)}
    assert {"influence", "leverage", "posterior"} <= named
    fitted = LRVBGaussianMixture(n_components=2).fit([[0.0], [0.1], [0.3], [5.0], [5.2], [5.1]])
    assert [
        name for name in sorted(named) if not hasattr(fitted, name) and not hasattr(sklearn_lrvb, name)
    ] == []
