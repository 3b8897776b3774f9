"""Fits in the span of the rows are those in all dimensions, to round-off."""

import itertools

import numpy as np
import pytest
from catalogue import (
    FACTORIZATIONS,
    INFORMATION,
    WEIGHT_PRIORS,
    newton_decrement,
    rows_around_mean,
    use_information,
)
from sklearn.mixture import BayesianGaussianMixture

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.estimators.gaussian_arguments import resolve_prior
from sklearn_lrvb.gaussian.e_step.coordinates import posterior_from_responsibilities
from sklearn_lrvb.gaussian.fitting.component_statistics import ComponentStatistics
from sklearn_lrvb.gaussian.fitting.row_span import AscentInSpan, RowSpan
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.prediction import responsibilities_of_rows

# Rows are fewer than columns, and noise is more than the variance of some, so that assignments are ambiguous.
pytestmark = [pytest.mark.filterwarnings("ignore:reg_covar=", "ignore:A covariance matrix of")]

N_SAMPLES, N_FEATURES = 14, 18
ARRAYS = (
    "weights_",
    "means_",
    "covariances_",
    "precisions_",
    "precisions_cholesky_",
    "mean_precision_",
    "degrees_of_freedom_",
    "covariance_prior_",
    "mean_prior_",
    "lower_bound_",
    "n_occupied_",
)

# A vague prior and much noise leave assignments ambiguous, even where there are fewer rows than features.
PRIORS = {
    "default": {"reg_covar": 2.0},
    "mean": {"reg_covar": 2.0, "mean_prior": np.linspace(-1.0, 2.0, N_FEATURES)},
    "multiple of the identity": {"reg_covar": 0.5, "covariance_prior": 20.0 * np.eye(N_FEATURES)},
    "no noise": {"reg_covar": 0.0, "covariance_prior": 20.0 * np.eye(N_FEATURES)},
}
KINDS = list(itertools.product(("full", "tied"), FACTORIZATIONS, PRIORS))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def X(rng):
    return rows_of(rng)


def rows_of(rng):
    rows = rng.normal(size=(N_SAMPLES, N_FEATURES)) * np.linspace(0.5, 3.0, N_FEATURES) + 7.0
    rows[: N_SAMPLES // 2, :3] += 2.5
    return rows


def model(covariance_type, factorization, kind_of_prior, **parameters):
    given = {"n_components": 3, "random_state": 0, "init_params": "random", "tol": 1e-9, "max_iter": 500}
    kind = {"covariance_type": covariance_type, "factorization": factorization, **PRIORS[kind_of_prior]}
    return LRVBGaussianMixture(**given | kind | parameters)


def spanned_and_whole(fit, monkeypatch):
    """What ``fit()`` returns where fits are made in the span, and where they are not."""
    made = []
    if_smaller = RowSpan.if_smaller

    def recorded(*arguments):
        made.append(if_smaller(*arguments))
        return made[-1]

    with monkeypatch.context() as patch:
        patch.setattr(RowSpan, "if_smaller", recorded)
        spanned = fit()
    assert made
    assert None not in made
    with monkeypatch.context() as patch:
        patch.setattr(RowSpan, "if_smaller", lambda *_: None)
        return spanned, fit()


def assert_same_fit(one, other, rtol=1e-9):
    for name in ARRAYS:
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=rtol, atol=rtol, err_msg=name
        )
    np.testing.assert_allclose(one.lower_bounds_, other.lower_bounds_, rtol=1e-12)
    assert (one.converged_, one.n_iter_) == (other.converged_, other.n_iter_)


@pytest.mark.parametrize(("covariance_type", "factorization", "prior"), KINDS)
@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
def test_iterations_in_the_span_are_those_in_all_dimensions(
    covariance_type, factorization, prior, weights, X, monkeypatch
):
    mixture = model(
        covariance_type,
        factorization,
        prior,
        weight_concentration_prior_type=weights,
        solver="coordinate_ascent",
        max_iter=12,
        tol=0.0,
    )
    with pytest.warns(match="did not converge"):
        one, other = spanned_and_whole(lambda: mixture.fit(X).__copy__(), monkeypatch)
    assert_same_fit(one, other)
    assert one.lower_bounds_[-1] - one.lower_bounds_[0] > 0.1


@pytest.mark.parametrize(("covariance_type", "factorization", "prior"), KINDS)
def test_optima_and_error_bars_are_the_same(covariance_type, factorization, prior, X, monkeypatch):
    mixture = model(covariance_type, factorization, prior, moves=None)
    one, other = spanned_and_whole(lambda: mixture.fit(X).__copy__(), monkeypatch)
    for name in (*ARRAYS, "mean_precision_prior_", "weights_std_", "means_std_"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-7, err_msg=name
        )
    for target in ("log_weights", "means"):
        influence = other.influence(X, target=target)
        atol = 1e-12 + 1e-6 * np.abs(influence).max()
        np.testing.assert_allclose(one.influence(X, target=target), influence, atol=atol)
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X), rtol=1e-8)
    assert newton_decrement(one) < 1e-6


def states(covariance_type, factorization, kind_of_prior, X, rng, responsibilities=None, **parameters):
    """The state of a fit after one iteration from given responsibilities, in the span and outside."""
    mixture = model(covariance_type, factorization, kind_of_prior, **parameters)
    rows = rows_around_mean(X)
    whole_prior = resolve_prior(mixture, rows)
    span = RowSpan.if_smaller(rows, whole_prior)
    if responsibilities is None:
        responsibilities = rng.dirichlet(np.ones(3), size=len(X))
    ascents = AscentInSpan(span.rows, 1e-9, 1, span=span), Ascent(rows, 1e-9, 1)
    fits = [ascent.coordinate_ascent(ascent.start_from(responsibilities, whole_prior)) for ascent in ascents]
    return span, ascents, fits


@pytest.mark.parametrize(("covariance_type", "factorization", "prior"), KINDS)
def test_newton_steps_are_the_same(covariance_type, factorization, prior, X, rng):
    """Intercepts vary as much as in all dimensions, where quadratic features outside the span contribute."""
    span, ascents, fits = states(covariance_type, factorization, prior, X, rng, prior="fixed")
    np.testing.assert_allclose(fits[0].distance, fits[1].distance, rtol=1e-9)
    for solver in INFORMATION:
        inside, outside = (
            fit.with_information(ascent.rows, solver) for ascent, fit in zip(ascents, fits, strict=True)
        )
        smallest = [fit.information.smallest_eigenvalue()[0] for fit in (inside, outside)]
        np.testing.assert_allclose(*smallest, rtol=1e-6)
        assert_same_step(span, inside, outside)


@pytest.mark.parametrize(("covariance_type", "factorization", "prior"), KINDS)
def test_newton_steps_under_a_learned_prior_are_the_same(covariance_type, factorization, prior, X, rng):
    """Near an optimum: where a step is approximate, it depends on the coordinates of intercepts and of b0."""
    shares = 0.85 * np.eye(3)[np.arange(N_SAMPLES) // (N_SAMPLES // 2)] + 0.05
    span, ascents, fits = states(covariance_type, factorization, prior, X, rng, shares)
    np.testing.assert_allclose(fits[0].distance, fits[1].distance, rtol=1e-9)
    inside, outside = (
        fit.with_information(ascent.rows, "primal") for ascent, fit in zip(ascents, fits, strict=True)
    )
    assert not (inside.is_indefinite or outside.is_indefinite)
    assert_same_step(span, inside, outside)


def assert_same_step(span, inside, outside):
    """Of Newton's method, in the span and outside."""
    np.testing.assert_allclose(inside.decrement, outside.decrement, rtol=1e-7)
    moved, expected = (fit.posterior.after_step(0.05 * fit.direction) for fit in (inside, outside))
    expanded = span.expanded(moved)
    np.testing.assert_allclose(moved.prior.mean_precision, expected.prior.mean_precision, rtol=1e-7)
    np.testing.assert_allclose(moved.counts, expected.counts, rtol=1e-7, atol=1e-14)
    np.testing.assert_allclose(expanded.centred_means, expected.centred_means, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(
        expanded.covariance_cholesky, expected.covariance_cholesky, rtol=1e-7, atol=1e-7
    )


@pytest.mark.parametrize(("covariance_type", "factorization", "prior"), KINDS)
def test_merges_gain_the_same(covariance_type, factorization, prior, X, rng):
    span, _, fits = states(covariance_type, factorization, prior, X, rng)
    inside, outside = (ComponentStatistics(fit.next_posterior) for fit in fits)
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    np.testing.assert_allclose(inside.merge_gains(pairs), outside.merge_gains(pairs), rtol=1e-9, atol=1e-9)
    merged, expected = (statistics.merged_posterior(pairs[:1]) for statistics in (inside, outside))
    np.testing.assert_allclose(
        span.expanded(merged).covariance_cholesky, expected.covariance_cholesky, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(merged.divergences.total, expected.divergences.total, rtol=1e-11)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("moves", ["merge", "search"])
def test_moves_lead_to_the_same_optimum(covariance_type, moves, X, monkeypatch):
    mixture = model(covariance_type, "joint", "default", n_components=4, moves=moves, init_params="kmeans")
    one, other = spanned_and_whole(lambda: mixture.fit(X).__copy__(), monkeypatch)
    np.testing.assert_allclose(one.lower_bound_, other.lower_bound_, rtol=1e-10)
    assert one.n_occupied_ == other.n_occupied_ < 4


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("solver", INFORMATION)
def test_every_solver_of_newtons_steps_works_in_the_span(covariance_type, solver, X, monkeypatch):
    mixture = model(covariance_type, "joint", "default", moves=None, prior="learned")
    expected = mixture.fit(X).lower_bound_
    use_information(solver, monkeypatch)
    np.testing.assert_allclose(mixture.fit(X).lower_bound_, expected, rtol=1e-11)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("prior", ["default", "mean"])
def test_weighted_and_single_precision_rows(covariance_type, prior, X, monkeypatch):
    weights = np.resize([2.0, 1.0, 0.0], len(X))  # Less than features in all.
    mixture = model(
        covariance_type, "joint", prior, init_params="kmeans", solver="coordinate_ascent", n_init=2
    )
    one, other = spanned_and_whole(
        lambda: mixture.fit(X.astype(np.float32), sample_weight=weights).__copy__(), monkeypatch
    )
    assert_same_fit(one, other)
    repeated = mixture.fit(np.repeat(X.astype(np.float32), weights.astype(int), axis=0))
    np.testing.assert_allclose(one.lower_bound_, repeated.lower_bound_, rtol=1e-9)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("n_steps", [0, 2, 500])
@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_a_fit_is_continued_as_in_all_dimensions(covariance_type, n_steps, X, rng, monkeypatch):
    """A fit to other rows has means outside the span; with no step to take, it stays as it is."""
    others = rows_of(rng)

    def continued():
        mixture = model(covariance_type, "joint", "default", warm_start=True, max_iter=3)
        return mixture.fit(others).set_params(max_iter=n_steps).fit(X)

    one, other = spanned_and_whole(continued, monkeypatch)
    np.testing.assert_allclose(one.lower_bound_, other.lower_bound_, rtol=1e-11)
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-6)
    if n_steps < 500:
        assert_same_fit(one, other)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_a_converged_fit_is_continued_for_one_step(covariance_type, X, monkeypatch):
    mixture = model(covariance_type, "joint", "default", warm_start=True, moves=None)
    one, _ = spanned_and_whole(lambda: mixture.fit(X), monkeypatch)
    before = one.lower_bound_
    assert one.fit(X).n_iter_ == 1
    assert one.converged_
    np.testing.assert_allclose(one.lower_bound_, before, rtol=1e-13)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_a_converged_fit_is_verified_where_no_step_is_allowed(covariance_type, X, monkeypatch):
    mixture = model(covariance_type, "joint", "default", warm_start=True, moves=None).fit(X)
    before = mixture.lower_bound_
    one, other = spanned_and_whole(lambda: mixture.set_params(max_iter=0).fit(X).__copy__(), monkeypatch)
    assert (one.n_iter_, one.converged_) == (other.n_iter_, other.converged_) == (0, True)
    np.testing.assert_allclose(one.lower_bound_, before, rtol=1e-13)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_a_fit_of_scikit_learns_is_continued_as_in_all_dimensions(covariance_type, X, monkeypatch):
    theirs = BayesianGaussianMixture(
        n_components=2, covariance_type=covariance_type, reg_covar=2.0, random_state=0, tol=1e-9
    ).fit(X)
    one, other = spanned_and_whole(lambda: LRVBGaussianMixture.from_sklearn(theirs, X), monkeypatch)
    np.testing.assert_allclose(one.lower_bounds_[0], other.lower_bounds_[0], rtol=1e-12)
    np.testing.assert_allclose(one.lower_bound_, other.lower_bound_, rtol=1e-12)
    np.testing.assert_allclose(one.covariances_, other.covariances_, rtol=1e-6, atol=1e-7)


def test_a_covariance_prior_made_from_the_rows_is_recognized(X):
    """The rows' covariance plus a multiple of the identity; but no other matrix."""
    rows = rows_around_mean(X)
    covariance = np.cov(X.T)

    def span(covariance_prior):
        mixture = model("full", "joint", "no noise", covariance_prior=covariance_prior)
        return RowSpan.if_smaller(rows, resolve_prior(mixture, rows))

    assert span(covariance + 0.3 * np.eye(N_FEATURES)) is not None
    assert span(np.diag(np.diag(covariance))) is None
    larger_outside = np.cov(X.T) + 0.3 * np.eye(N_FEATURES)
    larger_outside[0, 0] *= 1.0 + 1e-9
    assert span(larger_outside) is None


@pytest.mark.parametrize(
    "parameters",
    [{"covariance_type": "diag"}, {"covariance_type": "spherical"}, {"prior": "flat"}],
    ids=lambda parameters: next(iter(parameters.values())),
)
def test_there_is_no_span_for_other_models(parameters, X):
    rows = rows_around_mean(X)
    mixture = LRVBGaussianMixture(n_components=2, **parameters)
    assert RowSpan.if_smaller(rows, resolve_prior(mixture, rows)) is None


def test_with_more_rows_than_features_there_is_no_span(rng):
    rows = rows_around_mean(rng.normal(size=(N_FEATURES + 1, N_FEATURES)))
    prior = resolve_prior(LRVBGaussianMixture(), rows)
    assert RowSpan.if_smaller(rows, prior) is None


@pytest.mark.parametrize("n_samples", [6, N_FEATURES])
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_the_way_back_keeps_digits(covariance_type, n_samples, rng):
    """Variances from that of the noise, 1e-6, to 1e4, with a row that is there twice."""
    X = rng.normal(size=(n_samples, N_FEATURES)) * np.logspace(-1, 2, N_FEATURES)
    X[0] = X[1]
    mixture = LRVBGaussianMixture(n_components=2, covariance_type=covariance_type)
    rows = rows_around_mean(X)
    span = RowSpan.if_smaller(rows, resolve_prior(mixture, rows))
    responsibilities = rng.dirichlet([1.0, 1.0], size=n_samples)
    inside = posterior_from_responsibilities(span.rows, span.prior, responsibilities)
    inside = inside.m_step(e_step(span.rows, inside).moments)
    outside = span.expanded(inside)
    back = span.projected(outside)
    np.testing.assert_allclose(back.centred_means, inside.centred_means, rtol=1e-12, atol=1e-12)
    # Relative to each other: the identity, in every direction.
    relative = inside.structure.composed(inside.whiteners, back.covariance_cholesky)
    np.testing.assert_allclose(
        relative, np.broadcast_to(np.eye(len(span.basis.T)), relative.shape), atol=1e-6
    )
    np.testing.assert_allclose(
        inside.expectations.log_det_precisions, outside.expectations.log_det_precisions, rtol=2e-7
    )
    np.testing.assert_allclose(
        responsibilities_of_rows(span.rows, inside), responsibilities_of_rows(rows, outside), atol=1e-6
    )


def test_one_row_more_than_one_cluster_each(rng):
    """As many components as rows, and a row twice: the smallest fits there are."""
    X = np.repeat(rng.normal(size=(2, 5)), [1, 2], axis=0)
    for covariance_type in ("full", "tied"):
        mixture = LRVBGaussianMixture(n_components=3, covariance_type=covariance_type, random_state=0)
        with pytest.warns(match="distinct clusters"):
            mixture.fit(X)
        assert np.isfinite(mixture.score_samples(X)).all()


@pytest.mark.slow
def test_what_is_too_large_of_many_features_is_refused_before_any_work():
    X = np.random.default_rng(0).normal(size=(20, 300))
    mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    with pytest.raises(
        MemoryError, match=r"The posterior covariance for the standard deviations of 2 .*\(a\) Ask for"
    ):
        mixture.posterior(method="lrvb").summary(["means", "standard_deviations"])
    summary = mixture.posterior(method="lrvb").summary()
    assert {name.split("[")[0] for name in summary.index} == {"weight", "mean"}
    assert " Left out: standard deviations. The posterior covariance for" in summary.attrs["note"]
    mixture = LRVBGaussianMixture(n_components=3, random_state=0).fit(np.tile(X, (1, 3)) + np.arange(900) % 7)
    with pytest.raises(
        MemoryError, match=r"derivatives of the means .* shape \(2700, 900, 900\), of 16.3 GiB"
    ):
        mixture.prior_sensitivity("means")
