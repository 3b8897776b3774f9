"""Standard deviations of predictions take the way of the table, and are those of the exact posterior."""

import pickle
import warnings

import dask
import dask.array as da
import numpy as np
import pytest
from catalogue import assert_equal_to_rounding, set_sizes
from scipy import stats
from scipy.special import logsumexp

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture

PLACES = np.linspace(-1.0, 4.0, 11)[:, None]


def noisy(seed):
    """A cluster and noise of a known density in one dimension, where linear response is not good."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=18), rng.uniform(-6, 6, size=6)])[:, None]
    prior = {"degrees_of_freedom_prior": 4.0, "covariance_prior": [[2.0]], "mean_precision_prior": 1.0}
    prior["weight_concentration_prior_type"] = "dirichlet_distribution"  # A stick would leave some weight.
    mixture = LRVBGaussianMixture(noise=-2.5, reg_covar=0.0, mean_prior=[0.0], random_state=0, **prior)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "noise=-2.5 is .* above the log density")
        return mixture.fit(X), X


def heavy_tailed():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.standard_t(4, size=(40, 1)), 4 + rng.standard_t(4, size=(30, 1))])
    return LRVBGaussianMixture(n_components=2, tails=5.0, noise=-6.0, random_state=0).fit(X), X


def good():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 1)), 5 + rng.normal(size=(300, 1))])
    return LRVBGaussianMixture(n_components=2, random_state=0).fit(X), X


def both(mixture, X, method=None):
    """Standard deviations of probabilities and scores."""
    if method is None:
        return tuple(ask(X, return_std=True)[1] for ask in (mixture.predict_proba, mixture.score_samples))
    posterior = mixture.posterior(method=method)
    return tuple(ask(X)[1] for ask in (posterior.predict_proba, posterior.score_samples))


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert_equal_to_rounding(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_deviations_are_those_of_the_posterior_by_quadrature(seed):
    mixture, X = noisy(seed)
    n = 80
    w, mean = (np.arange(n) + 0.5) / n, np.linspace(-2.5, 2.5, n)
    precision = np.exp(np.linspace(np.log(0.05), np.log(8), n))
    w, mean, precision = np.meshgrid(w, mean, precision, indexing="ij")
    alpha = mixture.weight_concentration_prior_
    log_posterior = stats.beta.logpdf(w, alpha, alpha) + stats.norm.logpdf(mean, 0, precision**-0.5)
    log_posterior += stats.gamma.logpdf(precision, 2.0) + np.log(precision)  # The grid is one of its log.

    def log_densities(x):
        return np.log1p(-w) + stats.norm.logpdf(x, mean, precision**-0.5), np.log(w) - 2.5

    for x in X[:, 0]:
        log_posterior += np.logaddexp(*log_densities(x))
    posterior = np.exp(log_posterior - logsumexp(log_posterior))
    expected = []
    for x in PLACES[:, 0]:
        of_cluster, of_noise = log_densities(x)
        score = np.logaddexp(of_cluster, of_noise)
        of_both = np.stack([np.exp(of_noise - score), score])
        centred = of_both - (posterior * of_both).sum(axis=(1, 2, 3), keepdims=True)
        expected.append(np.sqrt((posterior * centred**2).sum(axis=(1, 2, 3))))
    of_noise, of_scores = np.transpose(expected)
    found, found_scores = both(mixture, PLACES)
    matters = of_noise > 0.1
    assert matters.sum() > 4
    np.testing.assert_allclose(found[matters, 1], of_noise[matters], rtol=0.12)
    np.testing.assert_allclose(found_scores, of_scores, rtol=0.12)
    by_response = both(mixture, PLACES, method="lrvb")[0][:, 1]
    assert np.abs(by_response / of_noise - 1)[matters].max() > 0.4


@pytest.mark.slow
def test_deviations_are_those_of_the_draws():
    mixture, X = heavy_tailed()
    probabilities, scores = both(mixture, X)
    draws = mixture.posterior(method="exact").sample(2048)
    weights, means, scales = (draws[name][:, None] for name in ("weights", "means", "scales"))
    of_components = stats.t.logpdf(X, 5.0, means[..., 0], np.sqrt(scales[..., 0, 0]))
    of_noise = np.full((*of_components.shape[:2], 1), -6.0)
    log_densities = np.log(weights) + np.concatenate([of_components, of_noise], axis=2)
    by_draw = logsumexp(log_densities, axis=2)
    np.testing.assert_allclose(scores, by_draw.std(axis=0), rtol=1e-4)
    np.testing.assert_allclose(
        probabilities, np.exp(log_densities - by_draw[..., None]).std(axis=0), rtol=1e-3, atol=1e-8
    )


@pytest.mark.slow
def test_deviations_of_latent_classes_are_those_of_the_draws():
    rng = np.random.default_rng(0)
    likely = np.array([[0.8, 0.75, 0.7, 0.8], [0.25, 0.2, 0.3, 0.2]])
    X = np.where(rng.random((60, 4)) < likely[rng.integers(2, size=60)], "yes", "no")
    mixture = LRVBLatentClassMixture(n_components=2, random_state=0).fit(X)
    probabilities, scores = both(mixture, X)
    assert not np.allclose(probabilities, both(mixture, X, method="lrvb")[0], rtol=0.2)
    draws = mixture.posterior(method="exact").sample(2048)
    log_densities = np.log(draws["weights"])[:, None]
    for column, values in enumerate(X.T):
        places = np.searchsorted(["no", "yes"], values)
        log_densities = log_densities + np.log(draws[f"x{column}"])[:, :, places].swapaxes(1, 2)
    by_draw = logsumexp(log_densities, axis=2)
    np.testing.assert_allclose(scores, by_draw.std(axis=0), rtol=1e-8)
    expected = np.exp(log_densities - by_draw[..., None]).std(axis=0)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-8)


@pytest.mark.slow
def test_predictions_take_the_way_of_the_table(monkeypatch):
    mixture, X = good()
    assert_same(both(mixture, X[:9]), both(mixture, X[:9], method="lrvb"))
    mixture, X = noisy(0)
    assert mixture.posterior(X).note.startswith("Exact posterior:")
    assert_same(both(mixture, PLACES), both(mixture, PLACES, method="exact"))
    mixture, X = noisy(0)
    monkeypatch.setattr("sklearn_lrvb.answers.error_bars._MOST_SECONDS", 0.0)
    with pytest.warns(UserWarning, match="predict_proba: .* by linear response.* would take [0-9]+ seconds"):
        found = mixture.predict_proba(PLACES, return_std=True)[1]
    np.testing.assert_array_equal(found, both(mixture, PLACES, method="lrvb")[0])


@pytest.mark.slow
def test_a_fit_without_its_rows_says_that_it_cannot_check():
    mixture, X = noisy(0)
    expected = both(mixture, PLACES)
    of_pickle = pickle.loads(pickle.dumps(noisy(0)[0]))
    with pytest.warns(UserWarning, match=r"not checked: posterior_check\(X\)"):
        found = of_pickle.score_samples(PLACES, return_std=True)[1]
    np.testing.assert_allclose(found, both(mixture, PLACES, method="lrvb")[1])
    with pytest.raises(ValueError, match=r"Predictions, .* are those of posterior\(X\) "):
        of_pickle.posterior(method="exact")
    of_pickle.posterior_check(X)
    with pytest.warns(UserWarning, match=r"may be wrong.* posterior\(X\)"):
        of_pickle.score_samples(PLACES, return_std=True)
    of_pickle.posterior(X)  # It makes draws, which are kept, though fewer.
    for found, of_more in zip(both(of_pickle, PLACES), expected, strict=True):
        np.testing.assert_allclose(found, of_more, rtol=0.3)
    with pytest.raises(ValueError, match="draws of the exact posterior are kept, and 9999 need"):
        of_pickle.posterior().sample(9999)


def test_a_good_check_is_remembered():
    mixture, X = good()
    of_pickle = pickle.loads(pickle.dumps(mixture))
    of_pickle.posterior_check(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(both(of_pickle, X[:9]), both(mixture, X[:9]))
        again = pickle.loads(pickle.dumps(mixture))  # Now it has been checked, and a pickle says so.
        assert_same(both(again, X[:9]), both(mixture, X[:9]))


@pytest.mark.slow
def test_the_same_question_has_the_same_answer_whatever_was_asked_in_between():
    mixture, X = noisy(0)
    first = both(mixture, PLACES)
    mixture.posterior(X, random_state=5)
    assert_same(both(mixture, PLACES), first)
    again, _ = noisy(0)
    again.posterior(X)  # In another session, and another order.
    assert_same(both(again, PLACES), first)


@pytest.mark.slow
def test_rows_may_be_anywhere(monkeypatch):
    mixture, X = heavy_tailed()
    expected = both(mixture, X)
    parts = [X[:20], X[20:21], X[21:]]
    assert_same(both(mixture, parts), expected)
    on_dask = both(mixture, da.from_array(X, chunks=(30, 1)))
    assert all(map(dask.is_dask_collection, on_dask))
    assert_same(dask.compute(*on_dask), expected)
    set_sizes(monkeypatch, most_rows=17)
    assert_same(both(mixture.set_params(n_jobs=2), X), expected)
    with_missing_value = both(mixture, np.full((1, 1), np.nan))
    assert with_missing_value[1] == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match=r"Row 1 of X is .* away"):
        mixture.predict_proba([[1.0], [1e300]], return_std=True)
