"""Effects of rows and of the prior on the posterior: methods of `LRVBGaussianMixture` alone.

They check their arguments here (`arguments`) and compute in `uncertainty`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_lrvb.estimators.gaussian_fitted import FittedAttributes
from sklearn_lrvb.estimators.influence_methods import InfluenceMethods
from sklearn_lrvb.gaussian.answers.prior_sensitivity import prior_sensitivity


class GaussianInfluenceMethods(InfluenceMethods, FittedAttributes):
    """Methods of `LRVBGaussianMixture` about the influence of rows and of the prior."""

    def prior_sensitivity(
        self, target: str = "means", per_std: bool = False
    ) -> dict[str, NDArray[np.float64]]:
        """How much each hyperparameter moves each posterior mean: d E[target] / d hyperparameter.

        Parameters
        ----------
        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', \
                'correlations', 'covariances', 'scales', 'tails', 'log_tails'}, default='means'
            Which parameters are moved; for 'covariances' the attribute `covariances_`. With `tails` also
            'scales', and 'tails' and 'log_tails' where they are fitted.

        per_std : bool, default=False
            Whether to divide by the posterior standard deviation of the entry. Where that is zero, as for the
            weight of a single component, the derivative is zero too, and zero is reported.

        Returns
        -------
        sensitivity : dict of ndarray
            In units of the target (or of its standard deviation) per unit of the hyperparameter:

            * 'weight_concentration_prior', 'mean_precision_prior', 'degrees_of_freedom_prior', each of the
              shape of the attribute, of weights and log weights (n_components,), with `noise` one more, whose
              last entry is for noise;
            * 'mean_prior', with one more axis of length n_features;
            * 'covariance_prior', with the axes of `covariance_prior_` after those of the attribute: for
              matrices the symmetric gradient, so that a small symmetric change of `covariance_prior` moves
              an entry by the sum of the gradient times the change.

            Exact derivatives of the fit, the response of the responsibilities included, without refitting. X,
            the densities of noise (also of rows with holes, whose ratios follow from `covariance_prior`)
            and the other hyperparameters are held fixed, also where their defaults came from X;
            'weight_concentration_prior' sets the prior of the weight of noise too. (Theory page "Influence",
            sensitivity to the prior.)

        Raises
        ------
        ValueError
            Unknown target, ``prior="flat"``, fitted arrays that were changed since the fit, or a fit that is
            no strict local optimum.
        MemoryError
            The derivatives in `covariance_prior` would take more than 1.6 GB.

        See Also
        --------
        influence : The same question about rows.
        posterior_summary : A sentence on whether the prior matters.

        Examples
        --------
        If the prior expected waits for a geyser to be a minute longer, the means of the short and the long
        ones would be 0.20 and 0.12 minutes longer, 0.06 standard deviations each:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.prior_sensitivity()["mean_prior"].ravel().round(2)
        array([0.2 , 0.12])
        >>> mixture.prior_sensitivity(per_std=True)["mean_prior"].ravel().round(2)
        array([0.06, 0.06])
        """
        return prior_sensitivity(self._uncertainty, target, per_std)
