"""Checks a built site: ``python docs/check_site.py site`` lists broken links and what a page would fetch.

Every link within the site must lead to a file, and to a place on it that exists. Scripts, styles and images
must be its own, so that it works without the network. Links to other sites are not followed. What people type
into the search must find the page that answers it first.
"""

import json
import sys
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src")}
FETCHED_LINKS = {"stylesheet", "preload", "icon", "modulepreload"}
FIRST_FOUND = {
    "number of clusters": "guide/how_many_clusters",
    "how many clusters": "guide/how_many_clusters",
    "bic": "guide/other_ways_to_choose_the_number",
    "aic": "guide/other_ways_to_choose_the_number",
    "cross-validation": "guide/other_ways_to_choose_the_number",
    "which clusters": "guide/which_clusters",
    "cluster stability": "guide/which_clusters",
    "confidence interval": "guide/how_sure",
    "credible interval": "guide/how_sure",
    "standard error": "guide/how_sure",
    "uncertainty": "guide/how_sure",
    "p-value": "guide/how_sure",
    "feature importance": "guide/how_sure",
    "missing values": "guide/missing_values",
    "nan": "guide/missing_values",
    "imputation": "guide/missing_values",
    "outliers": "guide/outliers_and_heavy_tails",
    "outlier": "guide/outliers_and_heavy_tails",
    "outlier detection": "guide/outliers_and_heavy_tails",
    "heavy tails": "guide/outliers_and_heavy_tails",
    "student's t": "guide/outliers_and_heavy_tails",
    "noise": "guide/outliers_and_heavy_tails",
    "goodness of fit": "guide/does_the_model_fit",
    "model check": "guide/does_the_model_fit",
    "residuals": "guide/does_the_model_fit",
    "posterior predictive check": "guide/does_the_model_fit",
    "covariates": "guide/what_explains_the_clusters",
    "distal outcomes": "guide/what_explains_the_clusters",
    "latent class regression": "guide/what_explains_the_clusters",
    "three-step estimation": "guide/what_explains_the_clusters",
    "bch": "guide/what_explains_the_clusters",
    "influential points": "guide/which_points",
    "clustered standard errors": "guide/rows_that_belong_together",
    "repeated measures": "guide/rows_that_belong_together",
    "groupkfold": "guide/rows_that_belong_together",
    "robustness": "guide/does_it_hang_on_few_rows",
    "prior": "guide/prior",
    "sample_weight": "guide/weights",
    "large data": "guide/rows_anywhere",
    "dask": "guide/rows_anywhere",
    "pickle": "guide/deploying",
    "compare with sklearn": "guide/from_bayesian_gaussian_mixture",
    "compare with scikit-learn": "guide/from_bayesian_gaussian_mixture",
    "mclust": "guide/from_bayesm_or_mclust",
    "latent class analysis": "guide/mixed_tables",
    "latent profile analysis": "guide/mixed_tables",
    "categorical": "guide/mixed_tables",
    "mixed data": "guide/mixed_tables",
    "k-prototypes": "guide/mixed_tables",
    "polca": "guide/from_polca_or_stepmix",
    "stepmix": "guide/from_polca_or_stepmix",
    "hierarchical model": "guide/your_own_model",
    "plot": "guide/pictures",
    "visualization": "guide/pictures",
    "scatter plot": "guide/pictures",
    "installation": "getting_started",
}


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


def first_found(index, words):
    """The pages that Sphinx's search puts first, by their entries in the index of the site.

    `searchtools.js` gives a main entry (marked by "!") a hundred times the share of it that was typed, from a
    half on, where a title or a name has at most 31: fifty is first.
    """
    scores = {
        index["docnames"][page]: len(words) / len(entry)
        for entry, places in index["indexentries"].items()
        for page, _, is_main in places
        if is_main and words in entry and 2 * len(words) >= len(entry)
    }
    best = max(scores.values(), default=0.0)
    return [page for page, score in scores.items() if score == best]


def search_faults(path):
    """Words that the search does not answer by the right page first, and the pages that it has instead."""
    text = path.read_text(encoding="utf8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    for words, page in FIRST_FOUND.items():
        found = first_found(index, words)
        if found != [page]:
            yield words, f"the search must find {page} first, and finds {found}"


def main(site):
    """Print what is wrong with a site; return how much."""
    paths = sorted(Path(site).resolve().rglob("*.html"))
    found = [(path, *wrong) for path in paths if "_static" not in path.parts for wrong in faults(path)]
    index = Path(site).resolve() / "searchindex.js"
    found += [(index, *wrong) for wrong in search_faults(index)]
    for path, target, reason in found:
        print(f"{path.name}: {target}: {reason}")
    print(f"{len(paths)} pages, {len(found)} faults")
    return len(found)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1])))
