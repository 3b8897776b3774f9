"""Posterior covariances, standard deviations and influence coefficients at one fitted posterior."""

import contextlib
import warnings
from dataclasses import replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.newton import MAX_DENSE_SIZE
from sklearn_lrvb.gaussian_mixture.parameters import PARAMETERS, ParameterMap
from sklearn_lrvb.gaussian_mixture.response import matrix_free_information, observed_information
from sklearn_lrvb.gaussian_mixture.sweep import sweep
from sklearn_lrvb.linear_response.observed_information import (
    IndefiniteInformationError,
    ObservedInformation,
)
from sklearn_lrvb.row_blocks import blas_threads

_FAR_FROM_OPTIMUM = 0.1  # posterior standard deviations
_PICKLED_BYTES = 2**26  # a larger matrix is not formed just to be pickled


def _read_only(array):
    """What is cached must not be written to by the user."""
    array.setflags(write=False)
    return array


class PosteriorUncertainty:
    """What linear response says at a fitted posterior; results are cached at first use.

    Where the fit did not need the information matrix it is formed at first need. Until then the training
    rows are kept, by reference; pickling forms it and leaves the rows behind.

    Parameters
    ----------
    fit : Fit
    rows : CentredRows, the training rows
    iterations : str, how far the fit went, for error messages
    """

    def __init__(self, fit, rows, iterations):
        self.map = ParameterMap(fit.posterior, rows.origin)
        # without the information, whose products hold on to the rows
        self._fit = replace(fit, information=None, direction=None)
        self._rows = rows
        self._n_jobs = rows.n_jobs
        self._iterations = iterations
        if isinstance(fit.information, ObservedInformation):
            self._information = fit.information
            self._rows = None

    def __getstate__(self):
        if self._rows is not None and 8 * self._size**2 <= _PICKLED_BYTES:
            with contextlib.suppress(ValueError, MemoryError):  # said at first use instead
                self._information  # noqa: B018, formed while the rows are here
        cached = {"_lrvb_root", "_mean_field_root", "parameter_covariance", "parameter_std"}
        state = {name: value for name, value in vars(self).items() if name not in cached}
        return {**state, "_rows": None}

    @property
    def _size(self):
        posterior = self.map.posterior
        return posterior.n_components * posterior.structure.n_coefficients

    def _training_rows(self):
        """The rows of the fit, if they are still what they were."""
        if self._rows is None:
            raise ValueError(
                "This needs the training rows, which do not travel with a pickled or copied estimator. "
                "Use it before, or fit again."
            )
        now = sweep(self._rows, self.map.posterior).lower_bound
        if not np.isclose(now, self._fit.lower_bound, rtol=1e-9, atol=1e-9):
            raise ValueError(
                "X was changed in place after fit: the lower bound at the fitted posterior was "
                f"{self._fit.lower_bound:.6f} and is now {now:.6f}. Fit again."
            )
        return self._rows

    @cached_property
    def _information(self):
        if self._size > MAX_DENSE_SIZE:
            posterior = self.map.posterior
            raise MemoryError(
                f"The linear response of {posterior.n_components} components in "
                f"{posterior.n_features} features has {self._size} unknowns, a matrix of "
                f"{8 * self._size**2 / 2**30:.1f} GiB; up to {MAX_DENSE_SIZE} are solved. (a) Reduce the "
                "features first, for example with PCA in a pipeline. (b) Lower n_components."
            )
        with blas_threads(self._n_jobs):
            information = observed_information(self._training_rows(), self.map.posterior)
        self._rows = None
        return information

    @cached_property
    def decrement(self):
        """Distance of the fit from its optimum in posterior standard deviations."""
        if not np.isnan(self._fit.decrement):
            return self._fit.decrement
        formed = vars(self).get("_information")
        information = formed or matrix_free_information(self._training_rows(), self.map.posterior)
        return information.newton_step(self._fit.residual)[1]

    @cached_property
    def _lrvb_root(self):
        if not self._information.is_positive_definite:
            raise IndefiniteInformationError(self._indefinite_message())
        if self.decrement > _FAR_FROM_OPTIMUM:
            warnings.warn(
                f"The fit is {self.decrement:.2g} posterior standard deviations away from its "
                f"optimum ({self._iterations}), so the linear response at it is rough. Use "
                "solver='newton', lower tol, or raise max_iter.",
                UserWarning,
                stacklevel=4,
            )
        with blas_threads(self._n_jobs):
            return self._information.covariance_root()

    def _indefinite_message(self):
        posterior = self.map.posterior
        value, vector = self._information.smallest_eigenvalue()
        share = np.square(vector.reshape(posterior.n_components, -1))
        most = np.sort(np.argsort(share.sum(axis=1))[::-1][:2])
        pair = " and ".join(str(k) for k in most)
        edges = [0, 1, 1 + posterior.n_features]
        kind = PARAMETERS[np.add.reduceat(share.sum(axis=0), edges).argmax()].replace("_", " ")
        return (
            "The posterior covariance is undefined at this fit, which is no strict local optimum: the "
            f"smallest eigenvalue of the observed information is {value:.1e} of the complete "
            f"information (mostly in the {kind} of component{'s' * (len(most) > 1)} {pair}). (a) The fit "
            f"stopped early ({self._iterations}; {self.decrement:.2g} posterior standard deviations from the "
            "optimum): raise max_iter, or use solver='newton'. (b) Components "
            f"{pair} coincide or share one cluster: lower n_components, raise n_init, or change "
            "random_state."
        )

    @cached_property
    def _mean_field_root(self):
        return self.map.mean_field_root()

    def covariance(self, targets, method):
        """Posterior covariance of the flat targets, (d, d)."""
        root = self._lrvb_root if method == "lrvb" else self._mean_field_root
        return self.map.covariance(targets, root)

    @cached_property
    def parameter_covariance(self):
        """Covariance of theta, (D, D)."""
        return _read_only(self.covariance(PARAMETERS, "lrvb"))

    def std(self, target):
        """LRVB standard deviations, in the shape of the attribute."""
        return self.map.shaped(target, self._flat_std(target))

    def _flat_std(self, target):
        return np.sqrt(self.map.variance(target, self._lrvb_root))

    @cached_property
    def parameter_std(self):
        """Standard deviations of theta, (D,)."""
        return _read_only(np.concatenate([self._flat_std(target) for target in PARAMETERS]))

    def coefficients(self, target):
        """Rows of J M^-1 of the flat target, (d, K, F): its influence functions."""
        root = self._lrvb_root
        rows = 0.0
        for part, responses in self.map.responses([target], root):
            rows = rows + responses.T @ root[part]
        return rows.reshape(len(rows), self.map.posterior.n_components, -1)
