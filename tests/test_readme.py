"""What the README shows runs, and its two commands name what exists."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf8")


def test_the_examples_run(capsys):
    codes = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(codes) == 4
    for code in codes:
        exec(compile(code, "README.md", "exec"), {})
        assert "+-" in capsys.readouterr().out
    assert len(codes[0].strip().splitlines()) <= 12


def test_files_it_names_exist():
    named = re.findall(r"(?:examples|benchmarks)/\w+\.(?:py|png)", README)
    assert len(set(named)) >= 4
    for name in named:
        assert (ROOT / name).is_file(), name
