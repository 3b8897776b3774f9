"""aic and bic are those of maximum likelihood, as poLCA has them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from latent_class import catalogue, real_tables
from scipy import stats

from sklearn_lrvb import LRVBLatentClassMixture

POLCA = json.loads((Path(__file__).parent / "polca_references.json").read_text(encoding="utf8"))["models"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["carcinoma 2", "carcinoma 3", "gss82 2", "cheating 2", "values 2"])
def test_criteria_are_those_of_polca(name):
    K, table = POLCA[name]["n_classes"], getattr(real_tables, POLCA[name]["table"])()
    fit = LRVBLatentClassMixture(K, columns=dict.fromkeys(table, "categorical"), random_state=0).fit(table)
    n_free = K * (1 + (table.nunique() - 1).sum()) - 1
    log_likelihood = POLCA[name]["computed"]["log_likelihood"]
    assert fit.aic(table) == pytest.approx(2 * n_free - 2 * log_likelihood, abs=1e-3)
    assert fit.bic(table) == pytest.approx(np.log(len(table)) * n_free - 2 * log_likelihood, abs=1e-3)


def test_criteria_of_one_class_are_a_closed_form():
    fit, X = catalogue.fitted("one class"), catalogue.mixed()
    log_likelihood = 0.0
    for column in X:
        y = X[column].dropna()
        if column == "visits":
            log_likelihood += stats.poisson.logpmf(y, y.mean()).sum()
        elif y.dtype.kind == "f":
            log_likelihood += stats.norm.logpdf(y, y.mean(), y.std(ddof=0)).sum()
        else:
            number = y.value_counts()
            log_likelihood += number @ np.log(number / number.sum())
    assert fit.aic(X) == pytest.approx(2 * 8 - 2 * log_likelihood, abs=1e-8)


@pytest.mark.slow
def test_classes_without_rows_take_no_part():
    table = real_tables.values()
    columns = dict.fromkeys(table, "categorical")
    two, five = (LRVBLatentClassMixture(k, columns=columns, random_state=0).fit(table) for k in (2, 5))
    assert five.n_occupied_ == 2
    assert five.bic(table) == pytest.approx(two.bic(table), abs=1e-3)


@pytest.mark.filterwarnings("ignore:Components have shrunk")
def test_criteria_refuse_a_likelihood_without_bound():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": np.r_[np.zeros(50), rng.normal(5, 1, 50)], "b": np.r_[np.zeros(50), np.ones(50)]}
    )
    fit = LRVBLatentClassMixture(2, columns={"b": "binary"}, random_state=0).fit(table)
    with pytest.raises(ValueError, match=r"(?s)standard deviation of column 'a' falls to zero in class \d"):
        fit.aic(table)


def test_rows_of_another_fit_are_refused():
    table = real_tables.values()
    fit = LRVBLatentClassMixture(2, columns=dict.fromkeys(table, "categorical"), random_state=0).fit(table)
    for criterion in (fit.aic, fit.bic):
        with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
            criterion(table[:100])
