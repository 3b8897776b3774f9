"""Posterior uncertainty of a fitted mixture: methods and attributes of `LRVBGaussianMixture`.

They check their arguments here (`validation`) and compute in `uncertainty`.
"""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_lrvb.gaussian_mixture.computed_attributes import refused_as_missing
from sklearn_lrvb.gaussian_mixture.fitted_attributes import FittedAttributes
from sklearn_lrvb.gaussian_mixture.uncertainty.prior_reading import prior_reading
from sklearn_lrvb.gaussian_mixture.validation import checked_targets

if TYPE_CHECKING:
    import pandas as pd

# Attributes that `dir` must not evaluate, because computing them may take long.
_COMPUTED_ON_ACCESS = {
    "_fitted",
    "_uncertainty",
    "newton_decrement_",
    "posterior_covariance_",
    "posterior_std_",
    "weights_std_",
    "means_std_",
    "covariances_std_",
    "precisions_std_",
}


class PosteriorMethods(FittedAttributes):
    """Methods of `LRVBGaussianMixture` about its posterior uncertainty."""

    def __dir__(self):
        # scikit-learn's HTML display evaluates all names of dir(), and BaseEstimator's dir() all attributes.
        names = (name for name in object.__dir__(self) if name not in _COMPUTED_ON_ACCESS)
        return [name for name in names if self._is_readable(name)]

    def _is_readable(self, name):
        """Whether an attribute can be read; some cannot without a fit, or with arrays of wrong shapes."""
        try:
            getattr(self, name)
        except (AttributeError, ValueError):
            return False
        return True

    @property
    @refused_as_missing
    def newton_decrement_(self) -> float:
        """Distance of the fit from its optimum, in posterior standard deviations.

        Below 0.01, error bars are those of the optimum for every purpose. Half the square is the lower bound
        still to be gained, in nats. It is computed at first access, by passes over the rows, where the fit
        did not compute it.

        Raises
        ------
        ValueError
            The estimator is not fitted, fitted arrays were changed since, or the training rows are needed and
            were left behind by a pickle.
        """
        return float(self._uncertainty.source.decrement)

    @property
    @refused_as_missing
    def posterior_mean_(self) -> NDArray[np.float64]:
        """Posterior mean of theta = (log weights; means; unique precision entries), shape (D,).

        Log weights have no unit, means those of X, precisions one over its square. The entries are named by
        `posterior_names_`. Like every fitted attribute it follows arrays that are set by hand.

        Raises
        ------
        ValueError
            The estimator is not fitted.
        """
        fitted = self._fitted
        values = (fitted.posterior.expected_log_weights, self.means_, self.precisions_)
        named = zip(fitted.parameters.theta, map(np.asarray, values), strict=True)
        return np.concatenate([target.flat(value) for target, value in named])

    @property
    @refused_as_missing
    def posterior_covariance_(self) -> NDArray[np.float64]:
        """Posterior covariance of theta by linear response, shape (D, D), in products of the units of theta.

        Eq. nuisance_lrvb_est of the paper. Under joint factors the variance of a mean includes the excess of
        its Student t over the normal, where that is finite (``degrees_of_freedom_ > n_features + 1``).
        Computed at first access and kept: the array is read-only.

        Raises
        ------
        ValueError
            The estimator is not fitted, fitted arrays were changed since, the fit is no strict local optimum,
            or the training rows are needed and were left behind by a pickle.
        MemoryError
            More than 14,000 unknowns; the message says what to ask for instead.
        """
        return self._uncertainty.parameter_covariance

    @property
    @refused_as_missing
    def posterior_std_(self) -> NDArray[np.float64]:
        """Posterior standard deviations of theta by linear response, shape (D,), in units of theta.

        Square roots of the diagonal of `posterior_covariance_`, computed without that matrix. They are
        computed at first access and kept: the array is read-only.

        Raises
        ------
        ValueError, MemoryError
            As `posterior_covariance_`.
        """
        return self._uncertainty.parameter_std

    @property
    @refused_as_missing
    def posterior_names_(self) -> NDArray[np.str_]:
        """Names of the entries of theta, array of str of shape (D,).

        "log_weight[0]", "mean[0,x1]" and "precision[0,x1,x2]" ("precision[x1,x2]" for 'tied',
        "precision[0,x1]" for 'diag', "precision[0]" for 'spherical'), with the feature names of the fit if
        it had any.

        Raises
        ------
        ValueError
            The estimator is not fitted.
        """
        theta = self._fitted.parameters.theta
        return np.concatenate([target.labels(self._feature_names) for target in theta])

    @property
    def _feature_names(self):
        return getattr(self, "feature_names_in_", [f"x{p}" for p in range(self.n_features_in_)])

    @property
    @refused_as_missing
    def weights_std_(self) -> NDArray[np.float64]:
        """Posterior standard deviations of `weights_`, shape (n_components,), without unit.

        By linear response and the delta method, at first access; kept and read-only.

        Raises
        ------
        ValueError, MemoryError
            As `posterior_covariance_`.
        """
        return self._uncertainty.std("weights")

    @property
    @refused_as_missing
    def means_std_(self) -> NDArray[np.float64]:
        """Posterior standard deviations of `means_`, shape (n_components, n_features), in units of X.

        By linear response (Eq. nuisance_lrvb_est), at first access. Under joint factors they include the
        excess of the Student t over the normal, where it is finite.

        Raises
        ------
        ValueError, MemoryError
            As `posterior_covariance_`.
        """
        return self._uncertainty.std("means")

    @property
    @refused_as_missing
    def covariances_std_(self) -> NDArray[np.float64]:
        """Posterior standard deviations of `covariances_`, in its shape and unit, that of X squared.

        By linear response and the delta method, at first access.

        Raises
        ------
        ValueError, MemoryError
            As `posterior_covariance_`.
        """
        return self._uncertainty.std("covariances")

    @property
    @refused_as_missing
    def precisions_std_(self) -> NDArray[np.float64]:
        """Posterior standard deviations of `precisions_`, in its shape and unit, one over that of X squared.

        By linear response (Eq. nuisance_lrvb_est), at first access.

        Raises
        ------
        ValueError, MemoryError
            As `posterior_covariance_`.
        """
        return self._uncertainty.std("precisions")

    def get_posterior_covariance(
        self,
        target: str | Sequence[str] = "all",
        method: str = "lrvb",
        X: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        information_solver: str = "auto",
    ) -> NDArray[np.float64]:
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
            vary from one sample of rows to another, whatever distribution these come from; the sum over rows
            of squared weight influences (the infinitesimal jackknife). Where the mixture is the true model
            it agrees with 'lrvb', up to the prior and to noise; where it is not, it is the one to trust.

        X : array-like of shape (n_samples, n_features), default=None
            The training rows, for 'sandwich', and where they are needed and did not stay with the estimator:
            after a pickle that was too large to carry the matrix, or for another `information_solver` than
            the one in use.

        sample_weight : array-like of shape (n_samples,), default=None
            The weights of X in the fit, where there were any.

        information_solver : {'auto', 'primal', 'dual', 'matrix_free'}, default='auto'
            How systems with the observed information are solved. 'primal' forms its matrix; 'dual' forms
            one of the size of the rows whose component is ambiguous; 'matrix_free' forms none, and passes
            over the rows some twenty times for every parameter asked for. 'auto' takes what was formed
            before, else the cheapest by a count of flops that fits into memory. All agree to 1e-8 standard
            deviations.

        Returns
        -------
        covariance : ndarray of shape (d, d)
            Symmetric, in products of the targets' units.

        Raises
        ------
        ValueError
            Unknown target, method or information_solver; fitted arrays that were changed since the fit; X
            that is needed and missing, or not what was fitted; or, except for 'mean_field', a fit that is no
            strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.
        """
        uncertainty = self._uncertainty
        if method not in ("lrvb", "mean_field", "sandwich"):
            raise ValueError(f"method must be 'lrvb', 'mean_field' or 'sandwich', got {method!r}.")
        if method == "sandwich" and X is None:
            raise ValueError("method='sandwich' needs the training rows: pass X.")
        if information_solver not in ("auto", "primal", "dual", "matrix_free"):
            raise ValueError(
                "information_solver must be 'auto', 'primal', 'dual' or 'matrix_free', got "
                f"{information_solver!r}."
            )
        targets = checked_targets(target)
        rows = self._training_rows(X, sample_weight, uncertainty.fitted)
        solver = None if information_solver == "auto" else information_solver
        return uncertainty.covariance(targets, method, solver, rows)

    def sample_posterior(
        self, n_draws: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> dict[str, NDArray[np.float64]]:
        """Draws of the parameters from the posterior that linear response describes.

        Parameters
        ----------
        n_draws : int, default=1
            Number of draws, at least one.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None uses numpy's global generator. The estimator's own `random_state` is not
            used.

        Returns
        -------
        draws : dict of ndarray
            "weights" of shape (n_draws, n_components), on the simplex; "means" of shape (n_draws,
            n_components, n_features), in units of X; "precisions" and "covariances" of shape (n_draws, *shape
            of the attribute), positive definite and each other's inverses.

        Raises
        ------
        ValueError
            `n_draws` is not a positive integer, fitted arrays were changed since the fit, or the fit is no
            strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        Notes
        -----
        Means are normal, with exactly the covariance of `get_posterior_covariance`. Weights (through the beta
        variables of their stick-breaking form) and precisions (Wishart or gamma) come from q's own families,
        with the variances and correlations of linear response (a Gaussian copula). Their means and
        covariances are those reported up to relative errors of one over the number of points in a component.
        Where no point is ambiguous, weights, and under joint factors precisions,
        are draws of q. The heavier tails of means whose precision is vague are not drawn.

        The same seed and the same fit give the same draws, whatever was asked before and whichever solver is
        in use.
        """
        uncertainty = self._uncertainty
        if not isinstance(n_draws, Integral) or n_draws < 1:
            raise ValueError(
                f"Invalid value for 'n_draws': {n_draws!r}. It must be an integer, and at least one draw."
            )
        return uncertainty.draws(int(n_draws), check_random_state(random_state))

    def posterior_summary(
        self,
        interval: float = 0.95,
        target: str | Sequence[str] = ("weights", "log_weights", "means", "precisions", "covariances"),
    ) -> "pd.DataFrame":
        """Means, standard deviations and credible intervals of the parameters, as a table.

        Parameters
        ----------
        interval : float, default=0.95
            Probability of the central credible interval, above 0 and below 1.

        target : {'log_weights', 'weights', 'means', 'precisions', 'covariances', 'all'} or a list of \
                them, default=('weights', 'log_weights', 'means', 'precisions', 'covariances')
            Which parameters, in this order; of matrices the unique entries. 'all' is log weights, means and
            precisions, as in `posterior_names_`. Precisions and covariances of very many features may be too
            large; means and weights alone never form a matrix of all parameters.

        Returns
        -------
        summary : pandas.DataFrame
            A row for every parameter, by names as in `posterior_names_` ("weight[0]",
            "covariance[0,x0,x1]"), and the columns, all but the ratio in units of the parameter:

            * mean: its posterior mean. Of a covariance that is above `covariances_`, which is the inverse of
              the mean precision, by a relative P + 1 over the rows of its component.
            * sd: its standard deviation by linear response; of weights by the delta method.
            * mean_field_sd: the same under q itself.
            * ratio: sd / mean_field_sd; 1 where both are 0, or the latter is infinite.
            * lower, upper: ends of the central interval, within the parameter's range.

            The ends are quantiles. Of weights, log weights, means and precisions they are those of the
            distribution with this mean and sd: beta for weights, minus a gamma variable for log weights,
            normal for means and for precisions off the diagonal, gamma for precisions on it. Mean and sd are
            those of the attributes and of :meth:`get_posterior_covariance`.

            Covariances are nonlinear functions of the precisions, and their mean, sd and ends come from the
            distribution of these: under q a precision is a Wishart matrix or a gamma variable, and every
            variance therefore an inverse gamma variable, here with the moments of linear response. A
            covariance off the diagonal is the difference of two such. With the fewest rows (an inverse gamma
            shape of at most 1 or 2, as for components that hold no rows) mean and sd are infinite, and means
            off the diagonal NaN; the ends are finite. `covariances_` and `covariances_std_`, as
            ``get_posterior_covariance``, keep the value at the mean precision and the delta method.

            ``summary.attrs["prior"]`` is a sentence on whether the prior matters: how far, to first order,
            doubling a hyperparameter would move any of these means (:meth:`prior_sensitivity`).

        Raises
        ------
        ImportError
            pandas is not installed.
        ValueError
            Unknown target, `interval` outside its range, fitted arrays that were changed since the fit, or a
            fit that is no strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.
        """
        uncertainty = self._uncertainty
        targets = checked_targets(target)
        if not isinstance(interval, Real) or not 0.0 < interval < 1.0:
            raise ValueError(
                f"interval must be a probability above 0 and below 1, such as 0.95, got {interval!r}."
            )
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "posterior_summary returns a pandas DataFrame and needs pandas: pip install pandas"
            ) from None
        uncertainty.require_sizes(targets)
        summary = pd.concat([pd.DataFrame(*self._summary_of(uncertainty, t, interval)) for t in targets])
        summary.attrs["prior"] = prior_reading(uncertainty, self._feature_names, targets)
        return summary

    def _summary_of(self, uncertainty, name, interval):
        """Columns and row names of the summary of one target."""
        lrvb, mean_field = (uncertainty.margins(name, method) for method in ("lrvb", "mean_field"))
        sd, mean_field_sd = lrvb.deviation, mean_field.deviation
        lower, upper = lrvb.interval(interval)
        comparable = (mean_field_sd > 0) & np.isfinite(mean_field_sd)
        columns = {
            "mean": lrvb.mean,
            "sd": sd,
            "mean_field_sd": mean_field_sd,
            "ratio": np.divide(sd, mean_field_sd, out=np.ones_like(sd), where=comparable),
            "lower": lower,
            "upper": upper,
        }
        return columns, uncertainty.map[name].labels(self._feature_names)
