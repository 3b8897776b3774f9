"""Data of any scale either fit like data of scale one, or are refused with an error that names the column."""

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, assert_equal_to_rounding, three_blobs

from sklearn_lrvb import LRVBGaussianMixture

every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
X = three_blobs(60)


def mixture(**parameters):
    return LRVBGaussianMixture(**{"n_components": 2, "reg_covar": 0.0, "random_state": 0, **parameters})


@every_type
@pytest.mark.parametrize("exponent", [-225, 225])
@pytest.mark.parametrize("prior", ["learned", "flat"])
def test_a_scale_within_the_range_changes_nothing_but_units(covariance_type, exponent, prior):
    # Powers of two scale without rounding; 2^225 is 5e67.
    unit = 2.0**exponent
    parameters = {"covariance_type": covariance_type, "prior": prior}
    here, there = mixture(**parameters).fit(X), mixture(**parameters).fit(unit * X)
    assert there.converged_
    assert_equal_to_rounding(there.predict_proba(unit * X), here.predict_proba(X))
    for name in ("means_", "means_std_"):
        np.testing.assert_allclose(getattr(there, name) / unit, getattr(here, name), rtol=1e-9, atol=1e-9)
    for name in ("covariances_", "covariances_std_"):
        np.testing.assert_allclose(
            getattr(there, name) / unit / unit, getattr(here, name), rtol=1e-8, atol=1e-9
        )
    assert np.isfinite(there.posterior_covariance_).all()
    shift = X.size * exponent * np.log(2.0)
    if prior != "flat":
        assert there.lower_bound_ == pytest.approx(here.lower_bound_ - shift, rel=1e-12)


@every_type
@pytest.mark.parametrize("prior", ["learned", "flat"])
@pytest.mark.parametrize("largest", [1e71, 1e160, 1e300])
@pytest.mark.parametrize("init_params", ["kmeans", "random"])
def test_values_whose_powers_overflow_are_refused(covariance_type, prior, largest, init_params):
    scaled = X * [1.0, largest, 1.0]
    estimator = mixture(covariance_type=covariance_type, prior=prior, init_params=init_params)
    with pytest.raises(
        ValueError, match=r"Column 1 of X has values of up to .*e\+\d+ in size, beyond 1e\+70"
    ):
        estimator.fit(scaled)
    assert not hasattr(estimator, "means_")


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
@pytest.mark.parametrize("prior", ["learned", "flat"])
@pytest.mark.parametrize("smallest", [1e-72, 1e-160, 1e-300, 1e-320])
@pytest.mark.parametrize("reg_covar", [0.0, 1e-6])
def test_columns_whose_precision_overflows_are_refused(covariance_type, prior, smallest, reg_covar):
    estimator = mixture(covariance_type=covariance_type, prior=prior, reg_covar=reg_covar)
    with pytest.raises(ValueError, match=r"Column 2 of X varies by .*e-\d+ only, less than 1e-70"):
        estimator.fit(X * [1.0, 1.0, smallest])


def test_spherical_variances_refuse_tiny_columns_only_together():
    estimator = mixture(covariance_type="spherical")
    assert estimator.fit(X * [1.0, 1.0, 1e-160]).converged_
    with pytest.raises(ValueError, match="Column 2 of X varies by"):
        estimator.fit(X * [1e-150, 1e-150, 1e-160])


@pytest.mark.filterwarnings("ignore:Columns of X with one value")
def test_constant_columns_are_judged_by_their_value_alone():
    constant = np.c_[X, np.full(len(X), 1e65)]
    with pytest.raises(ValueError, match="column 3 constant"):
        mixture().fit(constant)
    assert mixture(reg_covar=1e-6, tol=1e-2).fit(np.c_[X, np.zeros(len(X))]).converged_
    with pytest.raises(ValueError, match=r"Column 3 .* \(b\) Drop it where it is constant"):
        mixture().fit(np.c_[X, np.full(len(X), 1e200)])
    with pytest.raises(ValueError, match="Column 0 of X has values"):
        mixture().fit(X + 1e200)


def test_rows_of_weight_zero_are_not_refused():
    weights = np.r_[np.zeros(2), np.ones(len(X) - 2)]
    outside = X.copy()
    outside[:2] = 1e200
    fitted, expected = (mixture().fit(rows, sample_weight=weights) for rows in (outside, X))
    np.testing.assert_array_equal(fitted.means_, expected.means_)


@pytest.mark.parametrize(  # every two of the three options together
    ("covariance_type", "init_params", "exponent"),
    [
        (covariance_type, init_params, (120, 60, -60, -120)[(i + j) % 4])
        for i, covariance_type in enumerate(COVARIANCE_TYPES)
        for j, init_params in enumerate(("kmeans", "k-means++", "random_from_data", "random"))
    ],
)
def test_float32_starts_as_float64_does_near_its_own_limits(covariance_type, init_params, exponent):
    # Squares overflow in float32 beyond 2^64, but the rows are float64 within the fit.
    single = np.ldexp(X.astype(np.float32), exponent)
    parameters = {"covariance_type": covariance_type, "init_params": init_params}
    found, expected = (mixture(**parameters).fit(rows) for rows in (single, single.astype(np.float64)))
    np.testing.assert_allclose(found.predict_proba(single), expected.predict_proba(single), atol=1e-7)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"covariance_prior": 1e-320 * np.eye(3)}, "covariance_prior is .* less than 1e-70"),
        ({"covariance_prior": 1e200 * np.eye(3)}, "covariance_prior is 1e\\+100 .*, beyond 1e\\+70"),
        ({"mean_prior": [0.0, 1e200, 0.0]}, "mean_prior is 1e\\+200 .*, beyond 1e\\+70"),
        ({"reg_covar": 1e200}, "reg_covar is 1e\\+100 .*, beyond 1e\\+70"),
        ({"weight_concentration_prior": 1e-160}, "weight_concentration_prior is 1e-160; .* between 1e-70"),
        ({"weight_concentration_prior": 1e100}, "weight_concentration_prior is 1e\\+100; .* and 1e\\+70"),
        ({"mean_precision_prior": 1e-300}, "mean_precision_prior is 1e-300; .* between 1e-70"),
        ({"mean_precision_prior": 1e20}, "mean_precision_prior is 1e\\+20; .* and 1e\\+15"),
        ({"degrees_of_freedom_prior": 1e300}, "degrees_of_freedom_prior is 1e\\+300; .* and 1e\\+70"),
    ],
)
def test_arguments_out_of_range_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        mixture(**parameters).fit(X)


@pytest.mark.parametrize("prior", ["learned", "flat"])
def test_weights_beyond_the_digits_of_float64_are_refused(prior):
    with pytest.raises(ValueError, match=r"sample_weight sums to 6e\+16 rows, beyond 1e\+15"):
        mixture(prior=prior).fit(X, sample_weight=np.full(len(X), 1e15))
    often = mixture(prior=prior).fit(X, sample_weight=np.full(len(X), 1e12))
    more = mixture(prior=prior).fit(X, sample_weight=np.full(len(X), 5e12))
    np.testing.assert_allclose(often.means_std_, np.sqrt(5.0) * more.means_std_, rtol=1e-3)
    np.testing.assert_allclose(often.weights_std_, np.sqrt(5.0) * more.weights_std_, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dirichlet_process", "dirichlet_distribution"])
@pytest.mark.parametrize(("concentration", "extreme"), [(1e-40, 1e-70), (1e40, 1e70)])
def test_extreme_concentrations_act_like_their_limits(kind, concentration, extreme):
    near, far = (
        mixture(
            n_components=5,
            moves="merge",
            weight_concentration_prior_type=kind,
            weight_concentration_prior=value,
        ).fit(X)
        for value in (concentration, extreme)
    )
    np.testing.assert_allclose(far.weights_, near.weights_, atol=1e-8)
    np.testing.assert_allclose(far.means_, near.means_, atol=1e-6)
    np.testing.assert_allclose(far.weights_std_, near.weights_std_, atol=1e-5)
    for name in ("posterior_std_", "covariances_std_"):
        assert np.isfinite(getattr(far, name)).all()
    for draws in far.posterior(random_state=0, method="lrvb").sample(20).values():
        assert np.isfinite(draws).all()


@pytest.mark.parametrize("ratio", [1e6, 1e30, 1e130])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
def test_columns_far_apart_in_scale_are_fitted_and_drawn(covariance_type, ratio):
    units = np.array([np.sqrt(ratio), 1.0, 1.0 / np.sqrt(ratio)])
    estimator = mixture(covariance_type=covariance_type, init_params="random", max_iter=500).fit(X * units)
    expected = mixture(covariance_type=covariance_type, init_params="random", max_iter=500).fit(X)
    np.testing.assert_allclose(estimator.means_ / units, expected.means_, rtol=1e-6, atol=1e-8)
    drawn, _ = estimator.sample(20_000)
    np.testing.assert_allclose(drawn.std(axis=0) / units, X.std(axis=0), rtol=0.1)


def test_subnormal_rows_are_refused_without_a_warning():
    with pytest.raises(ValueError, match="varies by"):
        mixture(init_params="random").fit(X * 1e-315)
