"""Checks a built site: ``python docs/check_site.py site`` lists broken links and what a page would fetch.

Every link within the site must lead to a file, and to a place on it that exists. Scripts, styles and images
must be its own, so that it works without the network. Links to other sites are not followed.
"""

import sys
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src")}
FETCHED_LINKS = {"stylesheet", "preload", "icon", "modulepreload"}


@dataclass
class Page(HTMLParser):
    """What an HTML file refers to, and the places in it that others may refer to."""

    links: list = field(default_factory=list)
    fetched: list = field(default_factory=list)
    places: set = field(default_factory=set)

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places.update(given[name] for name in ("id", "name") if given.get(name))
        self.fetched += [given[name] for own, name in FETCHED if own == tag and given.get(name)]
        if tag == "link" and FETCHED_LINKS & set((given.get("rel") or "").split()):
            self.fetched.append(given["href"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])


@cache
def read(path):
    """The page in an HTML file."""
    page = Page()
    page.feed(path.read_text(encoding="utf8"))
    return page


def fault(path, target):
    """What is wrong with a reference from a page to a target on the site, or None."""
    parts = urlsplit(target)
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not file.is_file():
        return "no such file"
    if parts.fragment and file.suffix == ".html" and unquote(parts.fragment) not in read(file).places:
        return "no such place on that page"
    return None


def faults(path):
    """All that is wrong with a page: pairs of a target and the reason."""
    page = read(path)
    for target in page.fetched:
        if urlsplit(target).netloc:
            yield target, "fetched from another site"
    for target in [*page.links, *page.fetched]:
        parts = urlsplit(target)
        reason = None if parts.scheme or parts.netloc else fault(path, target)
        if reason is not None:
            yield target, reason


def main(site):
    """Print what is wrong with a site; return how much."""
    paths = sorted(Path(site).resolve().rglob("*.html"))
    found = [(path, *wrong) for path in paths if "_static" not in path.parts for wrong in faults(path)]
    for path, target, reason in found:
        print(f"{path.name}: {target}: {reason}")
    print(f"{len(paths)} pages, {len(found)} faults")
    return len(found)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1])))
