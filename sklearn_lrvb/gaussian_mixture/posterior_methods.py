"""What a fitted mixture says of its posterior: the estimator's methods and attributes. No formula here."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_lrvb.gaussian_mixture.parameters import PARAMETERS, TARGETS
from sklearn_lrvb.gaussian_mixture.validation import check_target

_COMPUTED_ON_ACCESS = {
    "newton_decrement_",
    "posterior_covariance_",
    "posterior_std_",
    "weights_std_",
    "means_std_",
    "covariances_std_",
    "precisions_std_",
}


class PosteriorMethods:
    """Uncertainty of `LRVBGaussianMixture`."""

    def __dir__(self):
        # scikit-learn's HTML display evaluates all that dir() lists, and BaseEstimator's dir() all there is
        names = (name for name in object.__dir__(self) if name not in _COMPUTED_ON_ACCESS)
        return [name for name in names if hasattr(self, name)]

    @property
    def newton_decrement_(self):
        check_is_fitted(self)
        return self._uncertainty.decrement

    @property
    def posterior_mean_(self):
        check_is_fitted(self)
        parameters = self._uncertainty.map
        return np.concatenate([parameters.flat(t, parameters.value(t)) for t in PARAMETERS])

    @property
    def posterior_covariance_(self):
        check_is_fitted(self)
        return self._uncertainty.parameter_covariance

    @property
    def posterior_std_(self):
        check_is_fitted(self)
        return self._uncertainty.parameter_std

    @property
    def posterior_names_(self):
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", [f"x{p}" for p in range(self.n_features_in_)])
        labels = self._uncertainty.map.labels
        return np.array([label for target in PARAMETERS for label in labels(target, names)])

    @property
    def weights_std_(self):
        check_is_fitted(self)
        return self._uncertainty.std("weights")

    @property
    def means_std_(self):
        check_is_fitted(self)
        return self._uncertainty.std("means")

    @property
    def covariances_std_(self):
        check_is_fitted(self)
        return self._uncertainty.std("covariances")

    @property
    def precisions_std_(self):
        check_is_fitted(self)
        return self._uncertainty.std("precisions")

    def get_posterior_covariance(
        self, target="all", method="lrvb", X=None, sample_weight=None, solver="auto"
    ):
        """Posterior covariance of some of the parameters.

        Parameters
        ----------
        target : {'log_weights', 'weights', 'means', 'precisions', 'covariances', 'all'} or a list of \
                them, default='all'
            'all' is log weights, means and precisions. Of matrices the unique entries are
            reported, in the order of `posterior_names_`; weights and covariances by the delta method.

        method : {'lrvb', 'mean_field', 'sandwich'}, default='lrvb'
            'lrvb': linear response (Eq. nuisance_lrvb_est). 'mean_field': the covariance of q itself, in
            which components and kinds of parameters are independent. Under joint factors the variance of a
            mean is that of its Student t, without the excess over the normal where it is infinite
            (``degrees_of_freedom_ <= n_features + 1``). 'sandwich': how much the posterior mean itself would
            vary from one sample of rows to another, whatever these are distributed like; the sum over rows
            of squared weight influences (the infinitesimal jackknife). Where the mixture is the true
            model it agrees with 'lrvb', up to the prior and to noise; where it is not, it is the one to
            trust.

        X : array-like of shape (n_samples, n_features), default=None
            The training rows, for 'sandwich', and where they are needed and did not stay with the estimator:
            after a pickle that was too large to carry the matrix, or for another `solver` than the one in
            use.

        sample_weight : array-like of shape (n_samples,), default=None
            The weights of X in the fit, where there were any.

        solver : {'auto', 'primal', 'dual', 'matrix_free'}, default='auto'
            How the observed information is solved with. 'primal' forms its matrix, 'dual' one
            of the size of the uncertain rows, 'matrix_free' none: it passes over the rows some
            twenty times for every parameter asked for. 'auto' takes what was formed before, else the
            cheapest by a count of flops that fits into memory. All agree to 1e-8 standard deviations.

        Returns
        -------
        covariance : ndarray of shape (d, d)
            Symmetric, in products of the targets' units.

        Raises
        ------
        ValueError
            Unknown target, method or solver; or (but for "mean_field") the fit is no strict local optimum,
            or X is missing or not what was fitted.
        MemoryError
            The system is too large; the message names the size and the way out.
        """
        check_is_fitted(self)
        if method not in ("lrvb", "mean_field", "sandwich"):
            raise ValueError(f"method must be 'lrvb', 'mean_field' or 'sandwich', got {method!r}.")
        if method == "sandwich" and X is None:
            raise ValueError("method='sandwich' needs the training rows: pass X.")
        if solver not in ("auto", "primal", "dual", "matrix_free"):
            raise ValueError(f"solver must be 'auto', 'primal', 'dual' or 'matrix_free', got {solver!r}.")
        named = list(target) if isinstance(target, (list, tuple)) else [target]
        if not named:
            raise ValueError(f"target is empty: name one or more of {', '.join(TARGETS)}.")
        for name in named:
            check_target(name, (*TARGETS, "all"))
        targets = [name for t in named for name in (PARAMETERS if t == "all" else (t,))]
        if X is None and sample_weight is not None:
            raise ValueError("sample_weight goes with X: pass the training rows too.")
        rows = None if X is None else self._counted_rows(X, sample_weight)
        return self._uncertainty.covariance(targets, method, None if solver == "auto" else solver, rows)
