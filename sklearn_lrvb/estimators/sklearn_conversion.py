"""Conversion from and to scikit-learn's BayesianGaussianMixture."""

import copy

import numpy as np
from scipy.optimize import brentq
from sklearn.exceptions import NotFittedError
from sklearn.mixture import BayesianGaussianMixture

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.distributions import wishart
from sklearn_lrvb.estimators.fitted import FIT_ARRAYS
from sklearn_lrvb.gaussian.posterior.variational_posterior import VariationalPosterior

# Fitted attributes that both classes have.
_SHARED_ATTRIBUTES = (
    *FIT_ARRAYS,
    "converged_",
    "n_iter_",
    "lower_bound_",
    "lower_bounds_",
    "n_features_in_",
    "feature_names_in_",
)

# Fitted attributes of a BayesianGaussianMixture that a fit starts from.
_START_ATTRIBUTES = (
    "means_",
    "covariances_",
    "degrees_of_freedom_",
    "weight_concentration_",
    "weight_concentration_prior_",
    "mean_precision_prior_",
    "mean_prior_",
)

# How far the rows and what a fit says of its rows may be apart: relative error of their number, and errors of
# their means, in standard deviations and in rounding errors of the means.
_SAME_NUMBER, _SAME_MEAN, _ROUNDING_ERRORS = 1e-7, 1e-5, 16


def parameters_of(mixture):
    """The parameters of BayesianGaussianMixture by which a mixture was or would be fitted: dict by name.

    They are read from its attributes, because the constructor of a subclass may take fewer parameters, which
    are then all that `get_params` knows, and others of its own.

    Parameters
    ----------
    mixture : BayesianGaussianMixture or LRVBGaussianMixture, or an instance of a subclass
    """
    return {name: getattr(mixture, name) for name in BayesianGaussianMixture().get_params()}


def require_fitted(bgm):
    """Check that a BayesianGaussianMixture has the attributes of a fit, and that they are finite numbers.

    Raises
    ------
    NotFittedError
        An attribute is missing.
    ValueError
        An attribute is broken.
    """
    missing = [name for name in _START_ATTRIBUTES if not hasattr(bgm, name)]
    if missing:
        raise NotFittedError(
            f"bgm (a {type(bgm).__name__}) is not fitted: it has no {', '.join(missing)}. Call its fit first."
        )
    for name in _START_ATTRIBUTES:
        try:
            is_finite = np.isfinite(np.asarray(getattr(bgm, name), dtype=float))
        except (TypeError, ValueError):
            is_finite = np.array([False])
        if not is_finite.all():
            raise ValueError(f"bgm.{name} must be finite numbers, as after a fit. Fit bgm again.")


def posterior_of(mixture, rows, prior):
    """The posterior to start from, at the fitted attributes of a BayesianGaussianMixture.

    Parameters
    ----------
    mixture : BayesianGaussianMixture, fitted
    rows : Rows, the training rows
    prior : MixturePrior

    Returns
    -------
    posterior : VariationalPosterior

    Raises
    ------
    ValueError
        Where the shapes of the attributes do not fit its parameters.

    Warns
    -----
    UserWarning
        Where the rows are not those of its fit.
    """
    structure, concentration = prior.structure, mixture.weight_concentration_
    sticks = isinstance(concentration, tuple)  # the two beta parameters of every stick
    least = 1.0 if sticks else mixture.weight_concentration_prior_
    counts = np.subtract(concentration[0] if sticks else concentration, least)
    means, covariances = (np.asarray(array, dtype=float) for array in (mixture.means_, mixture.covariances_))
    shape = structure.n_components, structure.n_features
    by_group = () if structure.shares_precision else shape[:1]
    wanted = shape[:1], shape, (*by_group, *structure.prior_shape), by_group
    found = counts.shape, means.shape, covariances.shape, np.shape(mixture.degrees_of_freedom_)
    if found != wanted:
        raise ValueError(
            f"The parameters of bgm are not those of its fit: n_components={structure.n_components}, its "
            f"covariance_type and X ask for covariances_ of shape {wanted[2]} and means_ of shape {shape}, "
            f"but it has weights for {counts.size} components, covariances_ of shape {found[2]} and means_ "
            f"of shape {found[1]}. Fit it again."
        )
    covariance_cholesky = structure.cholesky(structure.by_group(covariances))
    if not np.isfinite(covariance_cholesky).all():
        raise ValueError("bgm.covariances_ must be positive definite, as after a fit. Fit bgm again.")
    _warn_of_other_rows(mixture, rows, counts, means)
    return VariationalPosterior(prior, np.maximum(counts, 0.0), means - rows.origin, covariance_cholesky)


def _warn_of_other_rows(mixture, rows, counts, means):
    """Warn where rows are not those to which a BayesianGaussianMixture was fitted.

    After every M-step, converged or not, the counts of the components sum to the number of the rows, and
    their means, with the prior's part taken out, to the sum of the rows. (Of rows with missing values, which
    only a twin of ours can have been fitted to, the second is not known.)

    Parameters
    ----------
    mixture : BayesianGaussianMixture, fitted
    rows : Rows, measured from their mean
    counts, means : (K,) and (K, P), its expected counts and its means
    """
    n_rows, n_fitted = rows.total_weight, counts.sum()
    differs = ""
    if abs(n_fitted - n_rows) > _SAME_NUMBER * n_rows:
        differs = f"it counts {n_rows:.6g} rows, and bgm was fitted to {n_fitted:.6g}"
    elif not rows.has_missing:
        of_prior = mixture.mean_precision_prior_
        centred = means - rows.origin
        shift = (of_prior + counts) @ centred - of_prior * len(counts) * (mixture.mean_prior_ - rows.origin)
        shift = np.abs(shift) / n_rows
        eps = max(np.finfo(rows.dtype).eps, np.finfo(np.asarray(mixture.means_).dtype).eps)
        deviations = np.sqrt(rows.variances)
        allowed = _SAME_MEAN * deviations + _ROUNDING_ERRORS * eps * np.abs(rows.origin)
        column = int((shift - allowed).argmax())
        if shift[column] > allowed[column]:
            name = getattr(mixture, "feature_names_in_", range(len(shift)))[column]
            differs = (
                f"the mean of column {name!r} is {shift[column] / deviations[column]:.2g} standard "
                "deviations from that of the rows that bgm was fitted to"
                if deviations[column] > 0
                else f"column {name!r} is constant, and not at the mean of the rows that bgm was fitted to"
            )
    if differs:
        warn_caller(
            f"X is not what bgm was fitted to: {differs}. The result is a fit to X that starts where bgm "
            "ended, and its numbers are not those of bgm. (a) Pass the rows that bgm was fitted to, scaled "
            "as they were then, and as often as they were there. (b) If a new fit is what you want, pass "
            "init_params=bgm.predict_proba(X) to LRVBGaussianMixture, and call fit."
        )


def fitted_twin(estimator, fitted):
    """A BayesianGaussianMixture with an estimator's fitted attributes, that predicts the same.

    In that class a component's constant depends on ``degrees_of_freedom_``, through E log|Lambda| of a
    Wishart factor, and on ``mean_precision_``, through P / tau. Two of our terms have no counterpart. The
    gamma factors of diagonal and spherical covariances are expressed by ``degrees_of_freedom_``, and the
    known noise `reg_covar` by ``mean_precision_``.

    Parameters
    ----------
    estimator : LRVBGaussianMixture
    fitted : FittedGaussian, its fitted state

    Returns
    -------
    twin : BayesianGaussianMixture

    Raises
    ------
    ValueError
        If the fit has a covariance type, a noise component or tails that that class does not know.
    """
    if not fitted.structure.is_in_scikit_learn:
        raise ValueError(
            f"scikit-learn has no covariance_type={fitted.model['covariance_type']!r}. (a) Convert a fit "
            "with covariance_type='diag', whose components have variances of their own, or with 'tied', "
            "which has correlations. (b) Use this mixture as it is: it has scikit-learn's methods."
        )
    if fitted.structure.has_noise_component:
        raise ValueError(
            "BayesianGaussianMixture has no noise component, and this fit has "
            f"noise={fitted.model['noise']!r}. (a) Convert a fit with noise=None to the rows that are no "
            "noise, X[mixture.predict(X) >= 0]. (b) Use this mixture as it is: it has scikit-learn's methods."
        )
    if fitted.structure.has_scales:
        raise ValueError(
            "BayesianGaussianMixture has no Student's t components, and this fit has "
            f"tails={fitted.model['tails']!r}. (a) Convert a fit with tails='normal'. (b) Use this mixture "
            "as it is: it has scikit-learn's methods."
        )
    parameters = parameters_of(estimator)
    parameters["verbose"] = parameters["verbose"] or 0
    # The parameters of the fit count, also where others have been set since.
    given = fitted.model | {"n_components": fitted.posterior.n_components}
    parameters |= {name: value for name, value in given.items() if name in parameters}
    if not isinstance(parameters["init_params"], str):
        parameters["init_params"] = "kmeans"
    if fitted.model["prior"] == "flat":
        parameters["weight_concentration_prior_type"] = "dirichlet_distribution"
    if fitted.model["prior"] == "learned" and fitted.arrays:  # Arrays set by hand have no prior.
        parameters |= _given_hyperparameters(fitted)
    twin = BayesianGaussianMixture(**parameters)
    for name in _SHARED_ATTRIBUTES:
        if hasattr(estimator, name):
            setattr(twin, name, copy.deepcopy(getattr(estimator, name)))
    twin.means_ = np.array(twin.means_, dtype=np.float64)
    twin.precisions_cholesky_ = np.array(twin.precisions_cholesky_, dtype=np.float64)
    posterior, structure, n_features = fitted.posterior, fitted.structure, fitted.posterior.n_features
    twin.degrees_of_freedom_ = structure.layout.reported_numbers(_wishart_degrees_of_freedom(posterior))
    noise = structure.precision_trace(posterior.noise_maps)
    twin.mean_precision_ = 1.0 / (1.0 / posterior.mean_precision + noise / n_features)
    return twin


def _given_hyperparameters(fitted):
    """The numbers that a fit has learned, as arguments of BayesianGaussianMixture: dict by name.

    That class takes no fewer than P degrees of freedom for variances either. C0 / nu0 is then kept.
    """
    prior, n_features = fitted.posterior.prior, fitted.posterior.n_features
    nu = float(prior.degrees_of_freedom)
    wanted = nu if nu > n_features - 1 else float(n_features)
    return {
        "mean_precision_prior": float(prior.mean_precision),
        "degrees_of_freedom_prior": wanted,
        "covariance_prior": (wanted / nu) * np.asarray(fitted.arrays["covariance_prior_"]),
    }


def _wishart_degrees_of_freedom(posterior):
    """nu at which a Wishart(nu, nu E(Lambda)^-1) matrix has the precision groups' E log|Lambda|, (S,)."""
    structure, n_features = posterior.structure, posterior.n_features
    if structure.wisharts.block_size == n_features:
        return posterior.degrees_of_freedom.copy()
    wanted = posterior.expectations.log_det_precisions - structure.log_determinants(posterior.whiteners)

    def excess(log_beyond, target):
        nu = n_features - 1.0 + np.exp(log_beyond)
        return wishart.expected_log_determinant(nu, n_features * np.log(nu), n_features) - target

    # The left side rises from minus infinity to zero, and the target is below zero.
    return np.array(
        [
            n_features - 1.0 + np.exp(brentq(excess, -50.0, 50.0, args=(target,), xtol=1e-14))
            for target in wanted
        ]
    )
