"""The pages of docs/theory give a formula for every public number, and name code that exists."""

import re
from pathlib import Path

import numpy as np
import pytest

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))
PACKAGE = ROOT / "sklearn_lrvb"

# Members that report no computed number.
WITHOUT_A_FORMULA = {
    "columns_",
    "feature_names_in_",
    "fit",
    "fit_predict",
    "from_sklearn",
    "get_metadata_routing",
    "get_params",
    "labels_",
    "n_features_in_",
    "posterior_names_",
    "set_callbacks",
    "set_params",
    "to_sklearn",
}


def code_in(page):
    """What a page sets in backticks, outside its blocks of code."""
    prose = re.sub(r"^```\{code-cell\}.*?^```$", "", page.read_text("utf8"), flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose))


def public_members(estimator):
    """Public attributes and methods of a fitted mixture, without those that scikit-learn adds for routing."""
    fitted = estimator(n_components=1).fit(np.array([[0.0], [1.0], [3.0]]))
    arguments = fitted.get_params()
    names = {name for name in (*dir(type(fitted)), *vars(fitted)) if not name.startswith("_")}
    return {name for name in names if not re.fullmatch(r"set_\w+_request|callback\w*", name)} - {*arguments}


@pytest.mark.parametrize(
    ("estimator", "part"),
    [(LRVBGaussianMixture, 0), (LRVBLatentClassMixture, 1)],
    ids=["GaussianMixture", "LatentClassMixture"],
)
def test_every_public_number_has_a_formula(estimator, part):
    text = (ROOT / "docs" / "theory" / "index.md").read_text("utf8")
    table = text.partition("## Where every number comes from")[2].partition("## Notation")[0]
    table = table.split("\nOf `LRVBLatentClassMixture`:\n")[part]
    named = {re.match(r"\w*", code)[0] for code in re.findall(r"`([^`]+)`", table)}
    assert part or "`*_prior_`" in table
    members = {name for name in public_members(estimator) if not name.endswith("_prior_")}
    assert not members - named - WITHOUT_A_FORMULA


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_files_exist(page):
    files = {code for code in code_in(page) if re.fullmatch(r"[\w/]+(\.py|/)", code)}
    known = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    known |= {f"{Path(name).parent.as_posix()}/" for name in known}
    unknown = {name for name in files if not any(f"/{path}".endswith(f"/{name}") for path in known)}
    assert not unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_members_exist(page):
    """`Class.member` and `module.function` are in one file of the package."""
    members = {code for code in code_in(page) if re.fullmatch(r"[A-Za-z_]+\.(?!py\b)\w+", code)}
    sources = {path: path.read_text("utf8") for path in PACKAGE.rglob("*.py")}
    for owner, _, member in (code.partition(".") for code in members):
        own = [text for path, text in sources.items() if path.stem == owner or f"class {owner}" in text]
        assert own, owner
        bases = [text for text in sources.values() if f"def {member}(" in text or f"{member} =" in text]
        assert bases, f"{owner}.{member}"
