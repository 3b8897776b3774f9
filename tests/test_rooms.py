"""Imports run one way: every folder of the library imports only what CONTRIBUTING.md allows it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIBRARY = ROOT / "sklearn_lrvb"


def table():
    """Allowed imports by folder or file, as CONTRIBUTING.md lists them."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")
    rows = re.findall(r"^\| `([\w/.]+)` \| [^|]* \|([^|]*)\|$", text, flags=re.MULTILINE)
    return {room: set(re.findall(r"`([\w/.]+)`", allowed)) for room, allowed in rows}


ROOMS = table()


def room_of(path):
    """The innermost folder or file of the table that holds a module, given relative to the library."""
    inside = path.removesuffix(".py") + "/"
    holding = [room for room in ROOMS if inside.startswith(room.removesuffix(".py") + "/")]
    assert holding, f"CONTRIBUTING.md has no room for sklearn_lrvb/{path}"
    return max(holding, key=len)


def imported(file):
    """Modules of the library that a file imports, as paths."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name and name.startswith("sklearn_lrvb."):
                yield name.removeprefix("sklearn_lrvb.").replace(".", "/")


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_it_may(room):
    files = [file for file in LIBRARY.rglob("*.py") if file.parent != LIBRARY or file.name != "__init__.py"]
    inside = [file for file in files if room_of(file.relative_to(LIBRARY).as_posix()) == room]
    assert inside
    for file in inside:
        foreign = {room_of(module) for module in imported(file)} - {room} - ROOMS[room]
        assert not foreign, f"{file.relative_to(ROOT)} imports from {', '.join(sorted(foreign))}"


def test_the_rooms_stand_above_each_other():
    # a room may import only what the table lists below it, so that there are no circles
    order = list(ROOMS)
    for place, room in enumerate(order):
        assert ROOMS[room] <= set(order[place + 1 :]), room
