"""Gives PyPI the README with addresses that work there: its links and its picture are files of a repository.

pyproject.toml runs this as the package is built.
"""

import sys
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from repository_links import read, with_addresses


class ReadmeForPyPI(MetadataHookInterface):
    """What hatchling calls with the ``[project]`` table."""

    def update(self, metadata):
        metadata["readme"] = {"content-type": "text/markdown", "text": with_addresses(read("README.md"))}
