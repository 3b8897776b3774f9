"""Says what a release contains, or why it cannot be: ``python .ci/release_notes.py v0.2.0``.

Prints the section of CHANGELOG.md about this version. Fails, before anything is published, where the tag
is not the version of the package, where the section has no date, and where an address is missing that only a
person knows.
"""

import re
import sys

from repository_links import read, version, with_addresses

WITH_ADDRESSES = ("pyproject.toml", "CODE_OF_CONDUCT.md")


def faults(tag, newest, date):
    """What keeps a tag from being released."""
    if newest != version():
        yield f"CHANGELOG.md begins with {newest} and not with {version()}, the version of the package"
    if tag != f"v{version()}":
        yield f"the tag {tag} is not v{version()}, the version of the package"
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
        yield f"CHANGELOG.md dates {newest} with ({date}); write the day of the release, as in (2026-12-31)"
    for name in WITH_ADDRESSES:
        if "FILL-IN" in read(name):
            yield f"{name} still has a FILL-IN, which only a person can replace"


def main(tag):
    """Print the notes of a release; return the reasons against it."""
    _, heading, notes = re.split(r"^## (.*)\n", read("CHANGELOG.md"), maxsplit=2, flags=re.MULTILINE)[:3]
    newest, date = re.fullmatch(r"(\S+) \((.+)\)", heading).groups()
    print(with_addresses(notes.strip()))
    return "\n".join(faults(tag, newest, date))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) or None)
