"""Counts that vary more than Poisson's within a class are told."""

import re

import numpy as np
import pytest

from sklearn_lrvb import LRVBLatentClassMixture


def two_classes(counts):
    """Counts, some of them missing, beside a number that tells two classes apart."""
    rng = np.random.default_rng(1)
    X = np.column_stack([counts, rng.normal(size=len(counts))])
    X[: len(counts) // 3, 1] += 30.0
    X[1::5, 0] = np.nan
    return X


def fitted(X):
    return LRVBLatentClassMixture(2, columns={0: "count"}, n_init=1, random_state=0).fit(X)


@pytest.mark.parametrize("batches", [1, 3])
def test_a_warning_names_the_column_the_class_and_the_ratio(batches):
    X = two_classes(np.random.default_rng(0).negative_binomial(1.0, 0.125, 3000).astype(float))
    with pytest.warns(UserWarning, match="'x0' in class") as found:
        fitted(X if batches == 1 else np.array_split(np.random.default_rng(2).permutation(X), batches))
    assert len(found) == 1
    ratio = float(re.search(r"column 'x0' in class . is (.*) times", str(found[0].message))[1])
    ratios = [np.nanvar(own) / np.nanmean(own) for own in (X[1000:, 0], X[:1000, 0])]
    assert ratio == pytest.approx(max(ratios), abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.02, 0.5, 7.0, 300.0])
def test_counts_of_poisson_are_not_told(rate):  # Warnings are errors.
    rng = np.random.default_rng(0)
    for n_rows in (12, 40, 400):
        counts = rng.poisson(rate, n_rows).astype(float)
        counts[[0, 2]] = np.ceil(rate), np.floor(rate)
        fitted(two_classes(counts))
