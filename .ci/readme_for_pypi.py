"""Gives PyPI the README with addresses that work there: its links and its picture are files of a repository.

pyproject.toml runs this as the package is built. The address of the repository is that of Source under
``[project.urls]``. As long as nobody has filled it in, the README is shown as it is.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[[^\]]*\]\()(?![a-z]+:|#)([^)]+\))")


def with_addresses(text, source, version):
    """The text with every link to a file as one to that file in a version of the repository."""

    def absolute(link):
        picture, words, file = link.groups()
        folder = "raw" if picture else "blob"
        return f"{picture}{words}{source.rstrip('/')}/{folder}/v{version}/{file}"

    return _LINK.sub(absolute, text)


class ReadmeForPyPI(MetadataHookInterface):
    """What hatchling calls with the ``[project]`` table."""

    def update(self, metadata):
        root = Path(self.root)
        text = (root / "README.md").read_text(encoding="utf8")
        source = metadata.get("urls", {}).get("Source")
        if source:
            package = (root / "sklearn_lrvb" / "__init__.py").read_text(encoding="utf8")
            version = re.search(r'__version__ = "(.+)"', package)[1]
            text = with_addresses(text, source, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
