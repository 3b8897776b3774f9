"""Data at the edge: empty, tiny, coinciding and far-away components; too few rows; hostile units."""

import functools
import itertools
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    FACTORIZATIONS,
    WEIGHT_PRIORS,
    mixture,
    overlapping,
    three_blobs,
)
from covariance_types import TYPES
from sklearn.exceptions import ConvergenceWarning

from sklearn_lrvb import LRVBGaussianMixture

every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def given_prior(covariance_type, n_features):
    """A proper prior that owes nothing to the data."""
    scale = 0.15 * np.ones((n_features, n_features)) + np.diag(np.linspace(0.9, 0.5, n_features))
    return {
        "mean_precision_prior": 0.01,  # a strong pull would widen what lies far out
        "mean_prior": np.linspace(0.3, -0.2, n_features),
        "degrees_of_freedom_prior": n_features + 4.5,
        "covariance_prior": TYPES[covariance_type].prior(scale),
    }


@dataclass(frozen=True)
class KnownAssignments:
    """The textbook posterior of means and precisions where every row's component is known.

    Attributes
    ----------
    means, means_std : (K, P)
    covariances, precisions, precisions_std, degrees_of_freedom : in the shape of the attributes
    """

    means: np.ndarray
    means_std: np.ndarray
    covariances: np.ndarray
    precisions: np.ndarray
    precisions_std: np.ndarray
    degrees_of_freedom: np.ndarray

    @classmethod
    def of(cls, X, responsibilities, covariance_type, prior, factorization="joint", reg_covar=0.0):
        """Normal-Wishart (of matrices) or normal-gamma (of numbers) updates, written out."""
        own, n_features, counts = TYPES[covariance_type], X.shape[1], responsibilities.sum(axis=0)
        b0, m0 = prior["mean_precision_prior"], prior["mean_prior"]
        nu0, C0 = prior["degrees_of_freedom_prior"], prior["covariance_prior"]
        tau = b0 + counts
        means = (responsibilities.T @ X + b0 * m0) / tau[:, None]
        offsets = X[:, None, :] - means
        S = np.einsum("nk,nkp,nkq->kpq", responsibilities, offsets, offsets)
        S += b0 * np.einsum("kp,kq->kpq", means - m0, means - m0)
        S += reg_covar * counts[:, None, None] * np.eye(n_features)
        A = C0 + own.pooled(own.statistic(S))
        c = nu0 + own.pooled(own.power(n_features) * counts)
        covariances, precisions = A / own.over(c), own.over(c) * own.inverse(A)
        square = 2 * precisions**2
        if own.is_matrix:
            diagonal = np.einsum("...pp->...p", precisions)
            square = precisions**2 + diagonal[..., :, None] * diagonal[..., None, :]
        # jointly mu is a Student t; apart, the precision does not pay for the means
        joint, lost = factorization == "joint", own.block_size(n_features) + 1
        student = np.atleast_1d(c / (c - lost) if joint else np.ones_like(c))
        variance = np.einsum("kpp->kp", own.dense(covariances, len(counts), n_features))
        means_variance = np.broadcast_to(student[:, None] * variance / tau[:, None], means.shape)
        return cls(
            means,
            np.sqrt(means_variance),
            covariances,
            precisions,
            np.sqrt(square / own.over(c)),
            c if joint else c + own.freedom_of_means(len(counts), n_features),
        )

    def assert_equals(self, fit, rtol, components=slice(None)):
        for name in ("means", "means_std"):
            np.testing.assert_allclose(
                getattr(fit, f"{name}_")[components], getattr(self, name)[components], rtol=rtol, err_msg=name
            )
        chosen = ... if TYPES[fit.covariance_type].is_shared else components
        for name in ("covariances", "precisions", "precisions_std", "degrees_of_freedom"):
            found, expected = (
                np.asarray(values)[chosen] for values in (getattr(fit, f"{name}_"), getattr(self, name))
            )
            size = np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-3 * rtol * size, err_msg=name)


def assert_positive_definite(fit):
    sd = fit.posterior_std_
    proper = sd > 0  # one component's log weight has no variance
    assert np.all(proper[fit.n_components if fit.n_components == 1 else 0 :])
    correlation = fit.posterior_covariance_[np.ix_(proper, proper)] / np.outer(sd[proper], sd[proper])
    assert np.linalg.eigvalsh(correlation)[0] > 0


# More components than clusters.


def with_empty_components(covariance_type, weights, concentration, n_components, solver="newton"):
    """Two components on `overlapping()`; the others start, and stay, without rows."""
    model = {
        "covariance_type": covariance_type,
        "weight_concentration_prior_type": weights,
        "weight_concentration_prior": concentration,
        "solver": solver,
        **given_prior(covariance_type, 2),
    }
    X = overlapping()
    start = np.zeros((len(X), n_components))
    start[np.arange(len(X)), (np.arange(len(X)) >= 160).astype(int)] = 1.0
    return mixture(model, n_components, init_params=start).fit(X)


@every_type
@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize(("concentration", "rtol"), [(1e-3, 1e-7), (0.1, 0.02)])
def test_empty_components_fall_back_to_the_prior(covariance_type, weights, concentration, rtol):
    fit = with_empty_components(covariance_type, weights, concentration, 4)
    prior = given_prior(covariance_type, 2)
    assert fit.weights_[2:].max() < 0.01
    expected = KnownAssignments.of(overlapping(), fit.predict_proba(overlapping()), covariance_type, prior)
    nothing = KnownAssignments.of(np.zeros((1, 2)), np.zeros((1, 4)), covariance_type, prior)
    if TYPES[covariance_type].is_shared:  # one precision, that of the rows
        np.testing.assert_allclose(fit.means_[2:], nothing.means[2:], rtol=rtol)
        np.testing.assert_allclose(fit.means_std_[2:], expected.means_std[2:], rtol=10 * rtol)
        assert np.all(fit.means_std_[2:] > 5 * fit.means_std_[:2])
    else:
        nothing.assert_equals(fit, rtol, components=slice(2, None))
        np.testing.assert_allclose(fit.degrees_of_freedom_[2:], prior["degrees_of_freedom_prior"], rtol=rtol)
    np.testing.assert_allclose(fit.mean_precision_[2:], prior["mean_precision_prior"], rtol=rtol)
    assert_positive_definite(fit)


@every_type
@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
def test_empty_components_do_not_disturb_the_others(covariance_type, weights):
    four, two = (
        with_empty_components(covariance_type, weights, 1e-3, n_components) for n_components in (4, 2)
    )
    for name in ("means_", "means_std_", "mean_precision_"):
        np.testing.assert_allclose(getattr(four, name)[:2], getattr(two, name), rtol=1e-7)
    chosen = slice(None) if TYPES[covariance_type].is_shared else slice(2)
    for name in ("precisions_", "precisions_std_", "covariances_std_"):
        np.testing.assert_allclose(getattr(four, name)[chosen], getattr(two, name), rtol=1e-7)
    X = overlapping()
    np.testing.assert_allclose(four.predict_proba(X)[:, :2], two.predict_proba(X), atol=1e-9)
    # with sticks also a row's score: what is never opened costs nothing
    if weights == "dirichlet_process":
        np.testing.assert_allclose(four.score_samples(X), two.score_samples(X), rtol=1e-9)


@every_type
@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize("kind", ["learned", "fixed"])
def test_superfluous_components_of_a_default_fit_fall_back_to_the_prior(covariance_type, weights, kind):
    # from k-means, which gives rows to all of them
    X = np.random.default_rng(0).normal(size=(250, 2)) + 9 * np.outer(np.arange(250) >= 150, [1, 0])
    fit = LRVBGaussianMixture(
        n_components=5,
        covariance_type=covariance_type,
        weight_concentration_prior_type=weights,
        prior=kind,
        degrees_of_freedom_prior=8,  # of the prior's own standard deviations, finite ones
        max_iter=1000,
        random_state=0,
    ).fit(X)
    counts = fit.mean_precision_ - fit.mean_precision_prior_
    assert counts.sum() == pytest.approx(250, rel=1e-9)
    assert np.count_nonzero(counts > 90) == 2
    empty = np.flatnonzero(counts < 0.01)
    assert len(empty) == 3
    names = ("mean_precision_prior", "mean_prior", "degrees_of_freedom_prior", "covariance_prior")
    prior = {name: getattr(fit, f"{name}_") for name in names}
    shares = fit.predict_proba(X)
    if not TYPES[covariance_type].is_shared:  # there the empty ones share the others' precision
        shares[:, empty] = 0.0
    known = KnownAssignments.of(X, shares, covariance_type, prior)
    gap = np.abs(fit.means_[empty] - prior["mean_prior"])
    np.testing.assert_array_less(gap, 0.02 * known.means_std[empty])
    np.testing.assert_allclose(fit.means_std_[empty], known.means_std[empty], rtol=0.02)
    if not TYPES[covariance_type].is_shared:
        np.testing.assert_allclose(fit.precisions_[empty], known.precisions[empty], rtol=0.02, atol=1e-3)
        # What is learned of C0 is uncertain too: E Lambda = nu0 C0^-1 has the sd of C0^-1 besides.
        found, expected = fit.precisions_std_[empty], known.precisions_std[empty]
        if kind == "fixed":
            np.testing.assert_allclose(found, expected, rtol=0.02, atol=1e-3)
        else:
            assert np.all(found > 1.1 * expected)
    assert_positive_definite(fit)


# Assignments beyond doubt: the posterior is the textbook's, however few or odd a component's rows.


def blob(n_samples, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_samples, n_features)) @ (np.eye(n_features) + 0.2 * np.eye(n_features, k=1))


def rows_and_labels(*groups):
    return np.concatenate(groups), np.repeat(np.arange(len(groups)), [len(group) for group in groups])


CERTAIN = {
    "two rows far away": rows_and_labels(blob(60), [[1e3, 1e3], [1e3 + 1, 1e3 - 0.5]]),
    "one row at a million deviations": rows_and_labels(blob(60), [[-1e6, 0.0]]),
    "one row many times": rows_and_labels(blob(60), np.tile([[40.0, 30.0]], (25, 1))),
    "every row many times": rows_and_labels(
        np.repeat(blob(4), 10, axis=0), np.repeat(blob(3) + 50, 10, axis=0)
    ),
    "as many rows as components": rows_and_labels([[0.0, 1.0]], [[90.0, -70.0]], [[-80.0, -100.0]]),
    "fewer rows than features": rows_and_labels(blob(3, 8), 60 + blob(3, 8, seed=1)),
    "one component, fewer rows than features": rows_and_labels(blob(4, 7)),
    "one component, one row more than features": rows_and_labels(blob(5, 4)),
    "one component, all rows equal": rows_and_labels(np.tile([[2.0, -1.0]], (10, 1))),
    "one component and an outlier": rows_and_labels(np.concatenate([blob(60), [[1e6, 0.0]]])),
}


VARIANTS = list(itertools.product(FACTORIZATIONS, (0.0, 0.05)))


@pytest.mark.parametrize(  # every two of the options together
    ("name", "covariance_type", "factorization", "reg_covar"),
    [
        (name, covariance_type, *VARIANTS[(i + j) % 4])
        for i, name in enumerate(CERTAIN)
        for j, covariance_type in enumerate(COVARIANCE_TYPES)
    ],
)
@pytest.mark.filterwarnings(
    "ignore:Columns of X", "ignore:Components have shrunk", "ignore:A covariance matrix of"
)
def test_certain_assignments_give_the_textbook_posterior(covariance_type, factorization, reg_covar, name):
    X, labels = CERTAIN[name]
    responsibilities = np.eye(labels.max() + 1)[labels]
    prior = given_prior(covariance_type, X.shape[1])
    model = {
        "covariance_type": covariance_type,
        "factorization": factorization,
        "reg_covar": reg_covar,
        "init_params": responsibilities,
        **prior,
    }
    fit = mixture(model, labels.max() + 1).fit(X)
    assert fit.converged_
    np.testing.assert_allclose(fit.predict_proba(X), responsibilities, atol=1e-9)
    expected = KnownAssignments.of(X, responsibilities, covariance_type, prior, factorization, reg_covar)
    expected.assert_equals(fit, rtol=1e-6)
    assert_positive_definite(fit)


@every_type
@pytest.mark.parametrize("n_samples", [5, 6, 9])
@pytest.mark.parametrize("factorization", FACTORIZATIONS)
def test_a_few_rows_under_the_flat_prior(covariance_type, n_samples, factorization):
    X = blob(n_samples, 4)
    fit = mixture({"covariance_type": covariance_type, "prior": "flat", "factorization": factorization}, 1)
    fit.set_params(reg_covar=0.0).fit(X)
    prior = {
        "mean_precision_prior": 0.0,
        "mean_prior": np.zeros(4),
        "degrees_of_freedom_prior": TYPES[covariance_type].flat_freedom(1, 4),
        "covariance_prior": 0.0,
    }
    everything = np.ones((n_samples, 1))
    KnownAssignments.of(X, everything, covariance_type, prior, factorization).assert_equals(fit, rtol=1e-8)
    np.testing.assert_allclose(fit.means_[0], X.mean(axis=0), rtol=1e-10)


@pytest.mark.filterwarnings("ignore:A covariance matrix of")
@every_type
def test_fixed_default_priors_with_fewer_rows_than_features(covariance_type):
    X = blob(4, 7)
    fit = mixture({"covariance_type": covariance_type, "prior": "fixed", "reg_covar": 1e-3}, 1).fit(X)
    # Of numbers it is that of the rows; the matrix would be singular without the noise.
    noise = 1e-3 * TYPES[covariance_type].is_matrix
    prior = {
        "mean_precision_prior": 1.0,
        "mean_prior": X.mean(axis=0),
        "degrees_of_freedom_prior": 7,
        "covariance_prior": TYPES[covariance_type].prior(np.cov(X.T) + noise * np.eye(7)),
    }
    np.testing.assert_allclose(fit.covariance_prior_, prior["covariance_prior"], rtol=1e-10)
    expected = KnownAssignments.of(X, np.ones((4, 1)), covariance_type, prior, reg_covar=1e-3)
    expected.assert_equals(fit, rtol=1e-7)
    assert_positive_definite(fit)


@pytest.mark.slow
def test_the_textbook_is_monte_carlos():
    # the expectations above against draws from the posterior of scipy's distributions
    from scipy import stats

    rng = np.random.default_rng(0)
    X, prior = blob(9), given_prior("full", 2)
    known = KnownAssignments.of(X, np.ones((9, 1)), "full", prior)
    c = prior["degrees_of_freedom_prior"] + 9
    draws = stats.wishart(c, known.precisions[0] / c).rvs(200_000, random_state=rng)
    np.testing.assert_allclose(draws.mean(axis=0), known.precisions[0], rtol=0.01)
    np.testing.assert_allclose(draws.std(axis=0), known.precisions_std[0], rtol=0.01)
    spread = np.linalg.cholesky(np.linalg.inv(draws) / 9.01)
    means = known.means[0] + np.einsum("npq,nq->np", spread, rng.normal(size=(200_000, 2)))
    np.testing.assert_allclose(means.std(axis=0), known.means_std[0], rtol=0.01)


# Coinciding components.


@functools.cache
def coinciding(covariance_type, prior, solver):
    """Components 0 and 1 share every row of the first cluster alike: a saddle that no step leaves."""
    X = overlapping()
    model = {
        "covariance_type": covariance_type,
        "prior": prior,
        "solver": solver,
        "weight_concentration_prior_type": "dirichlet_distribution",
        "weight_concentration_prior": None if prior == "flat" else 0.1,
    }
    first = (np.arange(len(X)) < 160).astype(float)
    start = np.column_stack([0.5 * first, 0.5 * first, 1 - first])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it may be said already here
        return mixture(model, 3, init_params=start).fit(X)


COINCIDING = list(itertools.product(COVARIANCE_TYPES, ("fixed", "flat")))


@pytest.mark.parametrize(("covariance_type", "prior"), COINCIDING)
def test_coinciding_components_are_named(covariance_type, prior):
    fit = coinciding(covariance_type, prior, "coordinate_ascent")
    for ask in (
        lambda: fit.posterior_covariance_,
        lambda: fit.means_std_,
        lambda: fit.influence(overlapping()),
        lambda: fit.posterior(method="lrvb").covariance("weights"),
    ):
        with pytest.raises(ValueError, match=r"no strict local optimum.*[Cc]omponents 0 and 1 coincide"):
            ask()


@pytest.mark.parametrize(("covariance_type", "prior"), COINCIDING)
def test_what_needs_no_covariance_stays_usable(covariance_type, prior):
    X, fit = overlapping(), coinciding(covariance_type, prior, "coordinate_ascent")
    for name in ("weights_", "means_", "mean_precision_"):
        found = getattr(fit, name)
        np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    assert np.abs(fit.means_[0] - fit.means_[2]).max() > 1
    shares = fit.predict_proba(X)
    np.testing.assert_allclose(shares[:, 0], shares[:, 1], rtol=1e-5, atol=1e-12)
    assert fit.score(X) == pytest.approx(fit.score_samples(X).mean(), rel=1e-12)
    # the fixed point of an iteration
    counts = shares.sum(axis=0)
    b0, m0 = fit.mean_precision_prior_, fit.mean_prior_
    expected = (shares.T @ X + b0 * m0) / (counts + b0)[:, None]
    np.testing.assert_allclose(fit.means_, expected, rtol=1e-3)
    mean_field = fit.posterior(method="mean_field").covariance()
    assert np.linalg.eigvalsh(mean_field)[0] > 0
    rows, _ = fit.sample(4000)
    np.testing.assert_allclose(rows.mean(axis=0), fit.weights_ @ fit.means_, atol=0.15)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_newton_parts_coinciding_components(covariance_type):
    together = coinciding(covariance_type, "fixed", "coordinate_ascent")
    apart = coinciding(covariance_type, "fixed", "newton")
    assert apart.converged_
    assert apart.lower_bound_ > together.lower_bound_ + 0.01
    assert np.abs(apart.weights_[0] - apart.weights_[1]) > 0.01
    assert_positive_definite(apart)


# Far from the origin, and in hostile units.


def start(n_samples):
    return 0.8 * np.eye(3)[np.arange(n_samples) % 3] + 0.2 / 3


UNITS = list(itertools.product(COVARIANCE_TYPES, ("fixed", "flat"), FACTORIZATIONS))


@pytest.mark.parametrize(("covariance_type", "prior", "factorization"), UNITS)
@pytest.mark.parametrize("shift", [1e8, -3e8])
def test_data_far_from_the_origin(covariance_type, prior, factorization, shift):
    model = {"covariance_type": covariance_type, "prior": prior, "factorization": factorization}
    moved_rows = three_blobs(150, n_features=2) + shift
    X = moved_rows - shift  # what float64 leaves of the rows
    here, there = (mixture(model, 3, init_params=start(150)).fit(rows) for rows in (X, moved_rows))
    np.testing.assert_allclose(there.posterior_std_, here.posterior_std_, rtol=1e-7)
    np.testing.assert_allclose(there.means_ - shift, here.means_, atol=4e-16 * abs(shift))
    np.testing.assert_allclose(there.precisions_, here.precisions_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(there.predict_proba(moved_rows), here.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(there.influence(moved_rows), here.influence(X), rtol=1e-6, atol=1e-9)
    # the default mean_prior is a number of float64, too
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-9)
    assert_positive_definite(there)


@pytest.mark.parametrize(
    ("covariance_type", "prior", "factorization"), [units for units in UNITS if TYPES[units[0]].n_axes]
)
def test_columns_of_hostile_units(covariance_type, prior, factorization):
    model = {
        "covariance_type": covariance_type,
        "prior": prior,
        "factorization": factorization,
        "reg_covar": 0.0,
        "init_params": start(150),
    }
    X, units = three_blobs(150, n_features=2), np.array([1e-8, 1e8])
    here, there = mixture(model, 3).fit(X), mixture(model, 3).fit(X * units)
    squared = TYPES[covariance_type].statistic(np.outer(units, units))
    np.testing.assert_allclose(there.means_, here.means_ * units, rtol=1e-8)
    np.testing.assert_allclose(there.means_std_, here.means_std_ * units, rtol=1e-8)
    np.testing.assert_allclose(there.weights_std_, here.weights_std_, rtol=1e-8)
    np.testing.assert_allclose(there.covariances_std_, here.covariances_std_ * squared, rtol=1e-8)
    np.testing.assert_allclose(there.precisions_std_, here.precisions_std_ / squared, rtol=1e-8)
    np.testing.assert_allclose(there.predict_proba(X * units), here.predict_proba(X), atol=1e-9)
    lift = units[:, None] / units  # d mean_p / d x_q
    np.testing.assert_allclose(there.influence(X * units) / lift, here.influence(X), rtol=1e-6, atol=1e-8)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-9)  # the units cancel
    assert_positive_definite(there)


@pytest.mark.parametrize("prior", ["fixed", "flat"])
def test_a_spherical_component_does_not_see_a_column_of_tiny_unit(prior):
    model = {"covariance_type": "spherical", "prior": prior, "reg_covar": 0.0, "init_params": start(150)}
    X = three_blobs(150, n_features=2)
    tiny, tinier = (mixture(model, 3).fit(X * [1e8, unit]) for unit in (1e-8, 1e-11))
    for name in ("covariances_", "covariances_std_", "weights_std_", "means_std_"):
        np.testing.assert_allclose(getattr(tiny, name), getattr(tinier, name), rtol=1e-7)
    np.testing.assert_allclose(tiny.means_, tinier.means_ * [1, 1e3], rtol=1e-7)
    shares = tiny.predict_proba(X * [1e8, 1e-8])
    b0, m0 = tiny.mean_precision_prior_, tiny.mean_prior_[1]
    expected = (shares.T @ (1e-8 * X[:, 1]) + b0 * m0) / (shares.sum(axis=0) + b0)
    np.testing.assert_allclose(tiny.means_[:, 1], expected, rtol=1e-6)
    assert_positive_definite(tiny)


@pytest.mark.parametrize("sample_weight", [True, False])
def test_a_variance_that_collapses_is_named_before_it_overflows(sample_weight):
    # nine times the same point under an improper prior: the bound rises for ever as the variance halves
    rows = three_blobs(300)
    weights = np.ones(300)
    start = (
        0.5 * np.random.default_rng(0).dirichlet(np.ones(3), size=300) + 0.5 * np.eye(3)[np.arange(300) % 3]
    )
    start[0] = [0.98, 0.01, 0.01]
    start[1:] = np.roll(start[1:], 1, axis=1) * [1e-3, 1.0, 1.0]
    start /= start.sum(axis=1, keepdims=True)
    if sample_weight:
        weights[0] = 9.0
    else:
        rows, start = (np.concatenate([array, array[:1].repeat(8, axis=0)]) for array in (rows, start))
        weights = None
    model = {"prior": "flat", "covariance_type": "spherical", "reg_covar": 0.0, "init_params": start}
    with pytest.raises(
        ValueError, match=r"covariance of component 0 .* repeated rows or rows of great weight"
    ):
        mixture(model, 3).fit(rows, sample_weight=weights)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_one_column_of_a_component_that_varies_by_rounding_alone_is_refused(covariance_type):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(120, 3)) + 1e8, np.arange(120) % 2
    X[labels == 0, 1] = 1e8 + np.spacing(1e8) * rng.integers(0, 2, 60)
    model = {"prior": "flat", "covariance_type": covariance_type, "reg_covar": 0.0}
    with pytest.raises(ValueError, match="covariance of component 0"):
        mixture(model, 2, init_params=np.eye(2)[labels]).fit(X)
