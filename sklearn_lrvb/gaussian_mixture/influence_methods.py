"""How much rows and priors move the posterior: the estimator's methods. No formula here."""

import numpy as np

from sklearn_lrvb.gaussian_mixture.influence import influence_norms, location_influence
from sklearn_lrvb.gaussian_mixture.validation import check_target


class InfluenceMethods:
    """Influence of `LRVBGaussianMixture`."""

    def influence(self, X, target="means", perturb="location"):
        """How much each row moves each posterior mean: d E[target] / d x_n.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Any rows; each is treated as a training point of weight 1 that sits there.

        target : {'log_weights', 'weights', 'means', 'precisions', 'covariances'}, default='means'
            Of what; of 'covariances' it is the attribute `covariances_`.

        perturb : {'location'}, default='location'
            What moves: the row.

        Returns
        -------
        influence : ndarray of shape (n_samples, *shape of the attribute, n_features)
            In units of the target per unit of X; exact derivatives of the fit (Eq. influence_score as
            corrected), no refitting. The prior is held fixed, also where its defaults came from X.
        """
        rows = self._rows(X)
        check_target(target)
        if perturb != "location":
            raise ValueError(f"perturb must be 'location', got {perturb!r}.")
        uncertainty = self._uncertainty
        parameters = uncertainty.map
        flat = location_influence(
            rows,
            parameters.posterior,
            uncertainty.coefficients(target),
            len(parameters.coordinates(target)),
        )
        by_feature = flat.transpose(0, 2, 1)
        return np.moveaxis(parameters.shaped(target, by_feature), 1, -1)

    def influence_scores(self, X):
        """The paper's scores: the largest directional derivative of |mu_k|^2 in each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Any rows; each is treated as a training point of weight 1 that sits there.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
            Norm of 2 mu_k' d mu_k / d x_n, in units of X (Section 6.5 of the paper). Depends on
            where the origin of X is.
        """
        rows = self._rows(X)
        uncertainty = self._uncertainty
        n_components, n_features = self.means_.shape
        squared_norms = np.zeros((n_components, n_components, n_features))
        squared_norms[np.arange(n_components), np.arange(n_components)] = 2.0 * self.means_
        batches = uncertainty.coefficients("means", squared_norms.reshape(n_components, -1))
        return influence_norms(rows, uncertainty.map.posterior, batches, n_components)
