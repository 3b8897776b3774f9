"""Labels of rows given draws of the parameters: how often each is drawn, against densities by scipy."""

import numpy as np
import pytest
from catalogue import fitted, overlapping, posterior_of, rows_of, set_sizes
from incomplete_rows import fitted as fitted_to_missing_values
from incomplete_rows import incomplete
from scipy.special import softmax
from scipy.stats import multivariate_normal

from sklearn_lrvb.gaussian.sampling.parameters import GaussianParameters
from sklearn_lrvb.sampling.random_assignments import RandomLabels, label_draws


def repeated(estimator, n_draws):
    """Draws of the parameters that all are the estimates: GaussianParameters."""
    posterior = posterior_of(estimator)
    draws = GaussianParameters.draws_at(posterior, posterior)[np.zeros(n_draws, dtype=int)]
    return GaussianParameters(posterior, estimator._fitted.origin, draws)


def probabilities(estimator, X):
    """Probabilities of the components at the estimates, of what is seen of every row: (n, K)."""
    covariances = np.linalg.inv(estimator.precisions_)
    log_densities = np.log(np.tile(estimator.weights_, (len(X), 1)))
    for n, row in enumerate(X):
        seen = ~np.isnan(row)
        for k, (mean, covariance) in enumerate(zip(estimator.means_, covariances, strict=True)):
            if seen.any():
                own = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
                log_densities[n, k] += own.logpdf(row[seen])
    return softmax(log_densities, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("has_missing", [False, True])
def test_labels_are_drawn_as_often_as_they_are_probable(has_missing):
    X = (incomplete() if has_missing else overlapping(60)).copy()
    X[0] = np.where(has_missing, np.nan, X[0])  # A row without any value has the components' weights.
    estimator = (fitted_to_missing_values if has_missing else fitted)({"reg_covar": 0.0}, 3)
    labels = label_draws(rows_of(estimator, X), [repeated(estimator, 2000)], seed=0)
    frequencies = np.array([(labels == k).mean(axis=0) for k in range(3)]).T
    expected = probabilities(estimator, X)
    errors = np.sqrt(expected * (1.0 - expected) / 2000) + 1e-3
    assert np.abs((frequencies - expected) / errors).max() < 5.0
    # Rows are independent of one another, given the parameters.
    correlations = np.corrcoef(labels[:, expected.max(axis=1) < 0.9].T)
    assert np.abs(np.triu(correlations, 1)).max() < 5.0 / np.sqrt(2000)


@pytest.mark.parametrize("has_missing", [False, True])
def test_labels_depend_on_the_row_and_the_draw_alone(has_missing, monkeypatch):
    X = incomplete() if has_missing else overlapping(60)
    estimator = (fitted_to_missing_values if has_missing else fitted)({}, 2)
    rows, sources = rows_of(estimator, X), [repeated(estimator, 50), repeated(estimator, 7)]
    labels = label_draws(rows, sources, seed=3)
    assert labels.shape == (57, len(X)) and labels.dtype == np.int8
    np.testing.assert_array_equal(label_draws(rows, sources[:1], 3), labels[:50])
    assert np.any(labels[:7] != labels[50:])
    again = RandomLabels(sources, 3, repetition=1)
    assert np.any(labels != rows.each(again.labels, (57,), np.int8).T)
    set_sizes(monkeypatch, most_rows=9, least_rows=1, block_bytes=1, batch_bytes=2**14, numbers_per_row=1)
    np.testing.assert_array_equal(label_draws(rows, sources, 3), labels)
    part = rows_of(estimator, X[20:40])
    part.first = 20
    np.testing.assert_array_equal(label_draws(part, sources, 3), labels[:, 20:40])
