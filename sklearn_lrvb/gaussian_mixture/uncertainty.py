"""Posterior covariances, standard deviations and influence coefficients at one fitted posterior."""

import warnings
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.parameters import PARAMETERS, ParameterMap
from sklearn_lrvb.linear_response.observed_information import IndefiniteInformationError

# KF above which M is not formed: 1.6 GB a matrix, and its factorization takes minutes.
MAX_COEFFICIENTS = 14_000

_FAR_FROM_OPTIMUM = 0.1  # posterior standard deviations


class PosteriorUncertainty:
    """What linear response says at a fitted posterior; results are cached at first use.

    Parameters
    ----------
    posterior : VariationalPosterior
    origin : (P,)
    information : ObservedInformation, or None where it is too large to be formed
    decrement : float, distance of the fit from its optimum in posterior standard deviations
    iterations : str, how far the fit went, for error messages
    """

    def __init__(self, posterior, origin, information, decrement, iterations):
        self.map = ParameterMap(posterior, origin)
        self._information = information
        self._decrement = decrement
        self._iterations = iterations

    @cached_property
    def _lrvb_root(self):
        posterior = self.map.posterior
        if self._information is None:
            size = posterior.n_components * posterior.structure.n_coefficients
            raise MemoryError(
                f"The linear response of {posterior.n_components} components in "
                f"{posterior.n_features} features has {size} unknowns, a matrix of "
                f"{8 * size**2 / 2**30:.1f} GiB; up to {MAX_COEFFICIENTS} are solved. (a) Reduce the "
                "features first, for example with PCA in a pipeline. (b) Lower n_components."
            )
        if not self._information.is_positive_definite:
            raise IndefiniteInformationError(self._indefinite_message())
        if self._decrement > _FAR_FROM_OPTIMUM:
            warnings.warn(
                f"The fit is {self._decrement:.2g} posterior standard deviations away from its "
                f"optimum ({self._iterations}), so the linear response at it is rough. Use "
                "solver='newton', lower tol, or raise max_iter.",
                UserWarning,
                stacklevel=4,
            )
        return self._information.covariance_root()

    def _indefinite_message(self):
        posterior = self.map.posterior
        value, direction = self._information.smallest_eigenvalue()
        scaled = np.square(self._information.complete.solve_root_transposed(direction[:, None]))
        share = np.sqrt(scaled.reshape(posterior.n_components, -1).sum(axis=1))
        most = np.sort(np.argsort(share)[::-1][:2])
        pair = " and ".join(str(k) for k in most)
        return (
            "The posterior covariance is undefined at this fit, which is no strict local optimum: the "
            f"smallest eigenvalue of the observed information is {value:.1e} of the complete "
            f"information (mostly in component{'s' * (len(most) > 1)} {pair}). (a) The fit stopped "
            f"early ({self._iterations}; {self._decrement:.2g} posterior standard deviations from the "
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
        return self.covariance(PARAMETERS, "lrvb")

    def std(self, target):
        """LRVB standard deviations, in the shape of the attribute."""
        return self.map.shaped(target, np.sqrt(self.map.variance(target, self._lrvb_root)))

    @cached_property
    def parameter_std(self):
        """Standard deviations of theta, (D,)."""
        return np.concatenate(
            [np.sqrt(self.map.variance(target, self._lrvb_root)) for target in PARAMETERS]
        )

    def coefficients(self, target):
        """Rows of J M^-1 of the flat target, (d, K, F): its influence functions."""
        root = self._lrvb_root
        rows = 0.0
        for part, responses in self.map.responses([target], root):
            rows = rows + responses.T @ root[part]
        return rows.reshape(len(rows), self.map.posterior.n_components, -1)
