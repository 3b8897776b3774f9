"""Links to files of the repository that work elsewhere: on PyPI, and in the notes of a release.

The address of the repository is that of Source under ``[project.urls]`` in pyproject.toml. As long as nobody
has filled it in, links stay as they are.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
_LINK = re.compile(r"(!?)(\[[^\]]*\]\()(?![a-z]+:|#)([^)]+\))")


def read(name):
    return (ROOT / name).read_text(encoding="utf8")


def version():
    """The version of the package."""
    return re.search(r'__version__ = "(.+)"', read("sklearn_lrvb/__init__.py"))[1]


def with_addresses(text):
    """The text with every link to a file as one to that file in this version of the repository."""
    source = tomllib.loads(read("pyproject.toml")).get("project", {}).get("urls", {}).get("Source")
    if not source:
        return text

    def absolute(link):
        picture, words, file = link.groups()
        folder = "raw" if picture else "blob"
        return f"{picture}{words}{source.rstrip('/')}/{folder}/v{version()}/{file}"

    return _LINK.sub(absolute, text)
