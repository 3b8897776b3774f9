"""Student's t components, as users meet them: the normal limit, refits, sums of scales, units, bad input."""

import copy
import pickle
import re

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    TARGETS,
    WITH_TAILS,
    WITHOUT_NOISE,
    dense,
    deviations_of,
    expected_covariance,
    fitted,
    log_share_map,
    mixture,
    model_id,
    n_labels,
    overlapping,
    posterior_of,
    targets_of,
    type_of,
    unique,
    values_of,
)
from incomplete_rows import incomplete
from robust_reference import RobustReference
from scipy import stats
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from sklearn_lrvb import LRVBGaussianMixture

every_model = pytest.mark.parametrize("model", WITH_TAILS, ids=model_id)
WITH_BOTH = tuple({**model, "noise": -6.0} for model in WITH_TAILS[::2])
FITTED = {"student": "shared", "student_by_component": "each"}


X = overlapping(80)
X[:20] *= 3.0  # Rows far out.


def reference(model, estimator, rows):
    """The same model by refits, and its fit; its log weights come with that of the noise as the last."""
    alpha = estimator.weight_concentration_prior_
    noise = {"noise": model["noise"], "noise_prior": (alpha, 2 * alpha)} if "noise" in model else {}
    nu = np.broadcast_to(estimator.tails_, 2)
    noise["covariance"] = expected_covariance(estimator)
    found = RobustReference.like(estimator, rows, nu=nu, fit_nu=FITTED.get(model["tails"]), **noise)
    return found, found.fit(estimator.predict_proba(rows))


def order_of(model, size):
    """Where our parameters are among those of the reference."""
    places = np.arange(size)
    if "noise" not in model:
        return places
    n_tails = {"student": 1, "student_by_component": 2}.get(model["tails"], 0)
    noise = size - n_tails - 1
    return np.concatenate([places[:2], [noise], places[2:noise], places[noise + 1 :]])


def flat_influence(model, estimator, row, perturb):
    """Of all parameters, (D, ...)."""
    found = []
    for target in estimator._uncertainty.targets.parameters:
        values = np.moveaxis(
            estimator.influence(row, target=target, perturb=perturb), 0, -1
        )  # (..., 1) or (..., P, 1)
        values = np.moveaxis(values[..., 0], -1, 0) if perturb == "location" else values[None, ..., 0]
        flat = [unique(model, one) if target == "precisions" else np.ravel(one) for one in values]
        found.append(np.stack(flat, axis=1))
    return np.concatenate(found)


@pytest.mark.all_cases
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, marks=() if model["prior"] == "learned" else pytest.mark.slow)
        for model in WITH_TAILS + WITH_BOTH
    ],
    ids=model_id,
)
def test_covariance_and_influence_are_those_of_independent_refits(model):
    estimator = mixture(model).fit(X)
    refits, fit = reference(model, estimator, X)
    order, sd = order_of(model, refits.size), estimator.posterior_std_
    shift, jacobian = log_share_map(estimator)
    np.testing.assert_allclose(refits.means(fit.factors)[order] - shift, estimator.posterior_mean_, atol=1e-7)
    n_weights = n_labels(model)
    some = np.append(np.arange(n_weights), np.random.default_rng(1).integers(n_weights, refits.size))
    covariance = jacobian @ refits.covariance(fit, order[some])[order] @ jacobian[np.ix_(some, some)].T
    error = np.abs(covariance - estimator.posterior_covariance_[:, some]) / np.outer(sd, sd[some])
    assert error.max() < 1e-6
    row = int(np.argmax(np.abs(X).sum(axis=1)))  # the farthest, whose scale is smallest
    for perturb, of_refits in (("weight", refits.weight_influence), ("location", refits.place_influence)):
        expected = jacobian @ of_refits(fit, row)[order].reshape(len(sd), -1)
        error = np.abs(flat_influence(model, estimator, X[[row]], perturb) - expected) / sd[:, None]
        assert error.max() < 1e-6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* move the fit further than one step")
@pytest.mark.parametrize("model", WITH_TAILS[::2], ids=model_id)
def test_scores_without_a_row_are_those_of_independent_refits(model):
    estimator = mixture(model).fit(X)
    refits, fit = reference(model, estimator, X)
    found, scores = estimator.loo_score_samples(X), estimator.score_samples(X)
    rows = [20, int(np.argmin(found - scores))]  # without row 60 a fit goes to another optimum
    expected = np.array([refits.left_out_scores(fit, [row])[0] for row in rows])
    error, change = np.abs(found[rows] - expected), np.abs(scores[rows] - expected)
    np.testing.assert_array_less(error, 0.01 + 0.02 * change)


# The normal distribution is the limit.


@pytest.mark.slow
@pytest.mark.parametrize("model", WITHOUT_NOISE[::7], ids=model_id)
def test_many_degrees_of_freedom_are_normal(model):
    normal, student = fitted(model), mixture({**model, "tails": 1e8}).fit(overlapping())
    rows, sd = overlapping(), normal.posterior_std_
    assert (np.abs(student.posterior_mean_ - normal.posterior_mean_) / sd).max() < 1e-6
    np.testing.assert_allclose(student.posterior_std_, sd, rtol=1e-6)
    for target in TARGETS:
        error = student.influence(rows, target=target) - normal.influence(rows, target=target)
        assert (np.abs(error) / deviations_of(normal, target)[..., None]).max() < 1e-6
    np.testing.assert_allclose(student.leverage(rows), normal.leverage(rows), rtol=1e-6)
    left_out = [estimator.loo_score_samples(rows) for estimator in (normal, student)]
    np.testing.assert_allclose(*left_out, atol=1e-5)
    table = [estimator.posterior(method="lrvb").summary(TARGETS) for estimator in (normal, student)]
    np.testing.assert_allclose(*table, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model", WITHOUT_NOISE[::9], ids=model_id)
def test_many_degrees_of_freedom_are_normal_where_values_are_missing(model):
    rows = incomplete(60)
    normal, student = (mixture({**model, "tails": tails}).fit(rows) for tails in ("normal", 1e8))
    found, expected = (estimator.impute(rows, return_std=True) for estimator in (student, normal))
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
    np.testing.assert_allclose(student.posterior_std_, normal.posterior_std_, rtol=1e-6)
    np.testing.assert_allclose(student.missing_information(rows), normal.missing_information(rows), atol=1e-5)


# Sums of scales.


@pytest.mark.parametrize("model", [m for m in WITH_TAILS if m["prior"] == "flat"], ids=model_id)
def test_sums_of_scales_follow_from_counts(model):
    # Each component's E u (nu + distance) = nu + P, and the distances sum to what the precisions are made of.
    estimator = fitted(model)
    posterior, nu = posterior_of(estimator), np.broadcast_to(estimator.tails_, 2)
    power = posterior.structure.power
    total = np.sum(posterior.effective_degrees_of_freedom) * 2 / power + 2 * 2
    left = nu @ estimator.mean_precision_ + total
    assert left == pytest.approx((nu + 2) @ posterior.counts, rel=1e-9)


@every_model
def test_the_influence_of_far_rows_is_bounded(model):
    # up to the logarithm of the distance, where degrees of freedom respond; that of normal rows is its square
    rows = np.array([[4e3, 3e3], [4e5, 3e5]])
    for target in TARGETS:
        near, far = (
            np.abs(fitted(model).influence(rows, target=target, perturb="weight")).reshape(2, -1).max(axis=1)
        )
        assert far < 2.0 * near


@every_model
def test_units_and_place_of_the_columns_do_not_matter(model):
    maps = np.diag([7.0, 7.0]), np.diag([30.0, 0.2]), np.array([[2.0, 0.7], [-0.3, 0.5]])
    A = maps[type_of(model).n_axes]
    model = {**model, "reg_covar": 0.0, "init_params": mixture(model).fit(X).predict_proba(X)}
    one, other = mixture(model).fit(X), mixture(model).fit(X @ A.T + [5.0, -3.0])
    moved = X @ A.T + [5.0, -3.0]
    np.testing.assert_allclose(other.predict_proba(moved), one.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(other.means_, one.means_ @ A.T + [5.0, -3.0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.tails_, one.tails_, rtol=1e-7)
    np.testing.assert_allclose(dense(model, other.scales_), A @ dense(model, one.scales_) @ A.T, rtol=1e-7)
    np.testing.assert_allclose(other.leverage(moved), one.leverage(X), rtol=1e-7)
    np.testing.assert_allclose(
        other.influence(moved, perturb="weight"), one.influence(X, perturb="weight") @ A.T, atol=1e-7
    )
    if model["tails"] in FITTED:
        np.testing.assert_allclose(other.tails_std_, one.tails_std_, rtol=1e-7)


# Attributes, tables and draws of rows.


@every_model
def test_attributes_and_the_table_tell_scales_and_covariances_apart(model):
    estimator, P = fitted(model), 2
    nu = np.broadcast_to(estimator.tails_, 2)
    by_component = (nu / (nu - 2)).reshape(2, *[1] * (estimator.scales_.ndim - 1))
    factor = by_component[0] if type_of(model).is_shared else by_component
    np.testing.assert_allclose(estimator.covariances_, factor * estimator.scales_, rtol=1e-12)
    kinds = ["scales", "covariances", *["tails"] * (model["tails"] in FITTED)]
    summary = estimator.posterior(method="lrvb").summary(kinds)
    kinds = summary.index.str.extract(r"(\w+)\[")[0].unique().tolist()
    expected = ["scale", "covariance"]
    assert kinds == [*expected, "tail"] if model["tails"] in FITTED else expected
    if model["tails"] in FITTED:
        tails = summary[summary.index.str.startswith("tail[")]
        np.testing.assert_allclose(tails["mean"], np.ravel(estimator.tails_))
        np.testing.assert_allclose(tails["sd"], np.ravel(estimator.tails_std_))
        assert np.shape(estimator.tails_) == np.shape(estimator.tails_std_)
        # with degrees of freedom uncertain, so are covariances, more than scales are
        relative = (
            estimator.covariances_std_ / estimator.covariances_,
            estimator.scales_std_ / estimator.scales_,
        )
        with np.errstate(invalid="ignore"):
            assert np.all(np.abs(relative[0]) != np.abs(relative[1]))
    else:
        assert np.ndim(estimator.tails_) == 0
        assert not hasattr(estimator, "tails_std_")
        np.testing.assert_allclose(estimator.covariances_std_, factor * estimator.scales_std_, rtol=1e-12)
    assert len(estimator.posterior_names_) == len(estimator.posterior_std_) == len(estimator.posterior_mean_)
    assert P * n_labels(model) == estimator.means_.size


@pytest.mark.parametrize("tails", [2.0, 1.0])
def test_two_degrees_of_freedom_have_no_covariances(tails):
    estimator = mixture({"tails": tails}).fit(X)
    assert estimator.scales_.shape == (2, 2, 2)
    message = rf"Component 0 has no covariance: it has {tails:g} degrees of freedom.*scales_"
    for name in ("covariances_", "covariances_std_"):
        assert not hasattr(estimator, name)
        with pytest.raises(AttributeError, match=message):
            getattr(estimator, name)
    summary = estimator.posterior(method="lrvb").summary()
    assert not summary.index.str.startswith("sd[").any()
    left_out = f"Standard deviations are left out. Component 0 has no covariance: it has {tails:g}"
    assert left_out in summary.attrs["note"]
    assert "Ask for target='scales'" in summary.attrs["note"]
    assert len(estimator.posterior(method="lrvb").summary("scales")) == 6
    with pytest.raises(ValueError, match="Component 0 has no covariance"):
        estimator.posterior(method="lrvb").summary("covariances")
    rows, _ = estimator.sample(10)
    assert np.isfinite(rows).all()
    with pytest.raises(AttributeError, match="has no attribute 'covariances_'"):
        mixture({"tails": tails}).covariances_


def nearly_without_covariances():
    """A fit of one component whose degrees of freedom are a little more than two, and not known well."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2)) / np.sqrt(rng.chisquare(1.8, size=(200, 1)) / 1.8)
    return mixture({"tails": "student"}, 1).fit(rows)


@pytest.mark.slow
def test_covariances_are_left_out_of_tables_where_draws_or_resamples_have_none():
    estimator = nearly_without_covariances()
    assert estimator.tails_ > 2.0
    for method, n_draws, where in (
        ("exact", None, r"In \d+ of \d+ draws of the exact posterior"),
        ("bootstrap", 20, "In one or more refits to resamples"),
    ):
        asked = {"method": method, "n_draws": n_draws, "random_state": 0}
        summary = estimator.posterior(**asked).summary()
        kinds = {name.partition("[")[0] for name in summary.index}
        assert kinds == {"weight", "mean", "tail"}
        reason = f"{where} a component has no covariance: it has at most two degrees of freedom"
        assert re.search(rf"Standard deviations are left out. {reason}", summary.attrs["note"])
        with pytest.raises(ValueError, match=rf"{reason}.*target='scales'"):
            estimator.posterior(**asked).summary("covariances")
        with pytest.raises(ValueError, match=reason):
            estimator.posterior(**asked).covariance(["means", "covariances"])


@pytest.mark.parametrize("tails", ["student", "student_by_component"])
def test_intervals_of_covariances_have_no_end_where_those_of_tails_reach_two(tails):
    estimator = fitted({"tails": tails})
    nu, deviations = np.broadcast_to(estimator.tails_, 2), np.broadcast_to(estimator.tails_std_, 2)
    # Tails are log-normal.
    levels = 1.0 - 2.0 * stats.norm.cdf(-np.log(nu / 2.0) * nu / deviations)
    for k, level in enumerate(levels):
        for interval, is_beyond in ((level - 1e-6, False), (0.5 * (1.0 + level), True)):
            summary = estimator.posterior(method="lrvb").summary(["tails", "covariances"], interval=interval)
            of_tail = summary.loc["tail[all]" if tails == "student" else f"tail[{k}]"]
            of_variance = summary.loc[f"covariance[{k},x0,x0]"]
            assert (of_tail["lower"] < 2.0) == np.isinf(of_variance["upper"]) == is_beyond
            assert 0.0 < of_variance["lower"] < of_variance["mean"]


@every_model
def test_rows_are_drawn_from_the_mixture(model):
    estimator = copy.deepcopy(fitted(model)).set_params(random_state=3)
    rows, labels = estimator.sample(4000)
    assert np.bincount(labels).sum() == 4000
    nu, scales = np.broadcast_to(estimator.tails_, 2), dense(model, estimator.scales_)
    for k in range(2):
        away = rows[labels == k] - estimator.means_[k]
        distances = np.einsum("np,pq,nq->n", away, np.linalg.inv(scales[k]), away)
        assert stats.kstest(distances / 2, stats.f(2, nu[k]).cdf).pvalue > 1e-3
    moved = copy.deepcopy(estimator)
    moved.scales_ = 4.0 * moved.scales_
    np.testing.assert_allclose(moved.set_params(random_state=3).sample(4000)[0].std(), rows.std(), rtol=2.0)


def test_missing_values_have_the_spread_of_students_t():
    # with so many rows that the parameters are known, that of the conditional distribution
    rng = np.random.default_rng(0)
    rows = rng.standard_t(5, size=(60, 3)) @ (np.eye(3) + 0.4)
    estimator = mixture({"tails": 5.0}, 1).fit(rows, sample_weight=np.full(60, 1e7))
    asked = rows[:6].copy()
    asked[:3, 0] = asked[3:, 1:] = np.nan
    _, deviations = estimator.impute(asked, return_std=True)
    for row, deviation in zip(asked, deviations, strict=True):
        is_missing = np.isnan(row)
        seen, scale, away = ~is_missing, estimator.scales_[0], (row - estimator.means_[0])[~is_missing]
        of_seen = np.linalg.inv(scale[np.ix_(seen, seen)])
        across = scale[np.ix_(is_missing, seen)]
        conditional = scale[np.ix_(is_missing, is_missing)] - across @ of_seen @ across.T
        factor = (5.0 + away @ of_seen @ away) / (5.0 + seen.sum() - 2.0)
        np.testing.assert_allclose(deviation[is_missing] ** 2, factor * np.diag(conditional), rtol=1e-4)


def test_spreads_that_do_not_exist_are_infinite():
    rows = incomplete(60)
    asked = np.array([[0.3, np.nan, np.nan], [0.3, 1.0, np.nan]])[:, : rows.shape[1]]
    _, deviations = mixture({"tails": 1.0}).fit(rows).impute(asked, return_std=True)
    assert np.isinf(deviations[0, 1]) and np.isfinite(deviations[1, 2])


# Copies, arrays set by hand, continued fits, and what is refused.


@pytest.mark.parametrize("model", WITH_TAILS[::3] + WITH_BOTH[:1], ids=model_id)
def test_copies_answer_the_same(model):
    estimator = mixture(model).fit(X)
    for twin in (pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
        for target in targets_of(estimator):
            np.testing.assert_array_equal(values_of(twin, target), values_of(estimator, target))
            np.testing.assert_array_equal(deviations_of(twin, target), deviations_of(estimator, target))
        np.testing.assert_array_equal(twin.score_samples(X), estimator.score_samples(X))
        np.testing.assert_allclose(twin.influence(X), estimator.influence(X), rtol=1e-12)


@every_model
def test_predictions_follow_tails_that_are_set_by_hand(model):
    estimator = copy.deepcopy(fitted(model))
    before = estimator.score_samples([[90.0, 0.0]])
    known = estimator.tails_
    estimator.tails_ = known / 2  # Rows far out are more likely.
    assert estimator.score_samples([[90.0, 0.0]]) > before + 1.0
    with pytest.raises(ValueError, match="Changed since the fit: tails_"):
        estimator.means_std_
    for wrong, message in ((0.0 * known, "tails_: it must be above 0"), (np.ones(3), "tails_ has shape")):
        estimator.tails_ = wrong
        with pytest.raises(ValueError, match=message):
            estimator.score_samples(X)


def test_a_continued_fit_may_have_another_number_of_degrees_of_freedom():
    fresh, continued = (mixture({"tails": tails, "moves": None}).fit(X) for tails in (5.0, 4.0))
    continued.set_params(tails=5.0, warm_start=True).fit(X)
    assert (np.abs(continued.posterior_mean_ - fresh.posterior_mean_) / fresh.posterior_std_).max() < 1e-5
    assert continued.tails_ == 5.0
    for tails in ("student", "normal"):
        with pytest.raises(ValueError, match=rf"tails=5\.0; now noise=None and tails='{tails}'"):
            continued.set_params(tails=tails).fit(X)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tails", "shape", "name"), [("student", (), "tail[all]"), ("student_by_component", (1,), "tail[0]")]
)
def test_the_shape_of_the_tails_does_not_depend_on_the_number_of_components(tails, shape, name):
    estimator = mixture({"tails": tails}, 1).fit(X)
    assert np.shape(estimator.tails_) == np.shape(estimator.tails_std_) == shape
    assert estimator.posterior_names_[-1] == f"log_{name}"
    assert estimator.posterior(random_state=0).summary("tails").index.tolist() == [name]
    drawn = estimator.posterior(random_state=0, method="lrvb").sample(4)["tails"]
    assert drawn.shape == (4, *shape)
    copy = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(copy.tails_, estimator.tails_)
    np.testing.assert_array_equal(copy.predict_proba(X), estimator.predict_proba(X))


def test_scikit_learns_class_is_refused_by_name():
    estimator = mixture({"tails": 4.0}).fit(X)
    with pytest.raises(ValueError, match=r"no Student's t components, and this fit has tails=4\.0\. \(a\)"):
        estimator.to_sklearn()


@pytest.mark.parametrize("tails", [0, -1.0, 0.099, 1e-300, 1e16, np.nan, np.inf, "cauchy", None, [4.0, 4.0]])
def test_tails_that_are_none_are_refused(tails):
    with pytest.raises(ValueError, match="The 'tails' parameter of LRVBGaussianMixture must be"):
        mixture({"tails": tails}).fit(X)


def test_with_the_heaviest_tails_rows_that_are_drawn_are_numbers():
    estimator = mixture({"tails": 0.1}).fit(X)
    rows, _ = estimator.sample(100_000)
    assert np.isfinite(rows).all() and np.isfinite(estimator.score_samples(rows)).all()


def test_tails_that_are_true_are_refused():
    with pytest.raises(ValueError, match="tails=True does not say how heavy tails are"):
        mixture({"tails": True}).fit(X)


def test_parts_that_a_fit_does_not_have_are_refused_by_name():
    with pytest.raises(ValueError, match=r"student_by_component.*\(a\) Use tails='student'"):
        mixture({"tails": "student_by_component", "covariance_type": "tied"}).fit(X)
    normal, fixed = mixture({}).fit(X), mixture({"tails": 4.0}).fit(X)
    for estimator, name in ((normal, "scales"), (normal, "tails"), (fixed, "tails"), (fixed, "log_tails")):
        with pytest.raises(ValueError, match=f"target='{name}' belongs to fits with tails="):
            estimator.influence(X, target=name)
        assert not hasattr(estimator, f"{name}_std_")
    with pytest.raises(ValueError, match=r"no dual solver.*primal"):
        estimator._uncertainty.source.information(1, "dual")


# The default prior, and starts.


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize(("tails", "nu"), [(4.0, 4.0), ("student", 3.0), (1e9, 1e9)])
def test_the_default_prior_expects_wider_clusters(covariance_type, tails, nu):
    rows = np.random.default_rng(0).standard_t(5, size=(60, 7)) * np.arange(1, 8)
    model = {"covariance_type": covariance_type, "max_iter": 0, "prior": "fixed"}
    for far in (False, True):
        rows[0] *= 1e3 if far else 1.0
        # Gross outliers leave it to the core, as with noise, unless tails are nearly normal.
        same = mixture({**model, "noise": True if far and nu < 100 else None}).fit(rows)
        found = mixture({**model, "tails": tails}).fit(rows)
        np.testing.assert_array_equal(found.mean_prior_, same.mean_prior_)
        expected = (1.0 + 2.5 * 7 / (nu + 7)) * same.covariance_prior_
        np.testing.assert_allclose(found.covariance_prior_, expected, rtol=1e-12)


@pytest.mark.parametrize("tails", [3.0, "student"])
def test_a_row_at_any_distance_does_no_more_harm_than_a_near_one(tails):
    rows = np.random.default_rng(0).normal(size=(201, 2))
    found = []
    for distance in (30.0, 1e3, 1e6):
        rows[200] = [distance, 0.0]
        found.append(mixture({"tails": tails}, 1).fit(rows.copy()))
    for far in found[1:]:
        np.testing.assert_allclose(far.means_, found[0].means_, atol=0.5 * found[0].means_std_.max())
        np.testing.assert_allclose(far.scales_, found[0].scales_, rtol=0.05, atol=0.15)


def test_in_many_columns_the_prior_does_not_decide_the_tails():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 40)) / np.sqrt(rng.chisquare(5, size=400) / 5)[:, None]
    estimator = mixture({"tails": "student"}, 1).fit(rows)
    assert abs(np.log(estimator.tails_ / 5.0)) < 0.25
    assert abs(np.linalg.slogdet(estimator.scales_[0])[1] / 40) < 0.4


@pytest.mark.parametrize("tails", [4.0, "student"])
def test_starts_give_no_component_to_a_few_rows_far_out(tails):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [66, 66])
    rows = rng.standard_t(5, size=(132, 3))
    rows[66:, 0] += 6.0
    rows[[60, 61, 62, 63, 64, 65, 126, 127, 128, 129, 130, 131]] = rng.uniform(-8.0, 14.0, size=(12, 3))
    start_at = {
        "k-means": np.eye(2)[KMeans(2, n_init=1, random_state=0).fit_predict(rows)],
        "the truth": np.eye(2)[labels],
        "default": "kmeans",
    }
    bounds = {
        name: mixture({"tails": tails, "init_params": start}).fit(rows).lower_bound_
        for name, start in start_at.items()
    }
    assert bounds["default"] > bounds["the truth"] - 0.1 > bounds["k-means"] + 1.0


def test_as_many_components_as_rows_start_from_all_of_them():
    estimator = mixture({"tails": 4.0}, 10, moves=None).fit(X[:10])
    assert estimator.converged_


# Which rows decide.


def test_rows_that_decide_the_degrees_of_freedom_are_found():
    estimator = mixture({"tails": "student"}, 1).fit(X[:53])
    named = estimator.deciding_rows(
        X[:53], conclusion="tail[all]", threshold=1.5 * estimator.tails_, max_share=0.3
    )
    assert named.found and named.confirmed > 1.5 * estimator.tails_
    by_function = estimator.deciding_rows(
        X[:53], conclusion=lambda m: float(m.tails_), threshold=1.5 * estimator.tails_, max_share=0.3
    )
    np.testing.assert_array_equal(by_function.rows, named.rows)
    np.testing.assert_allclose(by_function.first_order_path, named.first_order_path, rtol=1e-4)


@pytest.mark.slow
def test_noise_leaves_the_tails_to_the_clusters_where_rows_are_few():
    # with the prior Gamma(2, 1/10) intervals of the tails hold the truth in 24 of these 40 tables
    nu, is_in = 4.0, []
    for seed in range(40):
        rng = np.random.default_rng([130, seed])
        rows = rng.normal(size=(130, 2)) / np.sqrt(rng.gamma(0.5 * nu, 2.0 / nu, size=(130, 1)))
        rows[78:, 0] += 6.0
        is_noise = rng.random(130) < 0.05
        rows[is_noise] = rng.uniform([-8.0, -8.0], [14.0, 8.0], size=(is_noise.sum(), 2))
        fit = LRVBGaussianMixture(n_components=2, noise=True, tails="student", random_state=0).fit(rows)
        tails = fit.posterior(method="lrvb").summary("tails").loc["tail[all]"]
        is_in.append(tails["lower"] < nu < tails["upper"])
    assert np.mean(is_in) > 0.8


# Refits, and the evidence.


def test_a_refit_leaves_nothing_of_the_last_fit():
    estimator = mixture({"tails": 4.0, "noise": True}).fit(X)
    estimator.set_params(tails="normal", noise=None).fit(X)
    assert vars(estimator).keys() == vars(mixture({}).fit(X)).keys()
    heavier = mixture({"tails": 4.0}).fit(X).set_params(tails=1.5).fit(X)
    assert not hasattr(heavier, "covariances_")


def test_the_evidence_is_the_integral_over_the_degrees_of_freedom():
    rows = np.random.default_rng(1).standard_t(5, size=(300, 1))
    model = {"reg_covar": 0.0, "weight_concentration_prior_type": "dirichlet_distribution", "moves": None}
    fit = mixture({**model, "tails": "student"}, 1).fit(rows)
    prior = {"mean_prior": fit.mean_prior_}
    log_nu, step = np.linspace(-5.0, 6.0, 34, retstep=True)
    log_nu, step = np.log(fit.tails_) + log_nu * fit.posterior_std_[-1], step * fit.posterior_std_[-1]
    given = [
        mixture({**model, **prior, "tails": nu}, 1).fit(rows).log_evidence_ for nu in np.exp(log_nu).tolist()
    ]
    log_prior = stats.expon.logpdf(np.exp(log_nu), scale=10) + log_nu
    expected = logsumexp(np.array(given) + log_prior) + np.log(step)
    assert fit.log_evidence_ == pytest.approx(expected, abs=0.02)
