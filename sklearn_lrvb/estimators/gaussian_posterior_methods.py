"""Posterior means and standard deviations of a Gaussian mixture: attributes of `LRVBGaussianMixture`."""

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sklearn_lrvb.answers.uncertainty import read_only
from sklearn_lrvb.estimators.fitted import refused_as_missing
from sklearn_lrvb.estimators.gaussian_fitted import FittedAttributes
from sklearn_lrvb.estimators.posterior_methods import PosteriorMethods
from sklearn_lrvb.mixture.model import DegenerateComponentError, occupied
from sklearn_lrvb.mixture.prediction import most_probable_components
from sklearn_lrvb.reports import dataset
from sklearn_lrvb.sampling.likelihood import log_likelihood


class GaussianPosteriorMethods(PosteriorMethods, FittedAttributes):
    """Attributes of `LRVBGaussianMixture` about its posterior uncertainty."""

    _computed_on_access = PosteriorMethods._computed_on_access | {
        "labels_": "posterior_mean_",
        "noise_weight_std_": "noise_weight_",
        "means_std_": "means_",
        "covariances_std_": "covariances_",
        "precisions_std_": "precisions_",
        "scales_std_": "scales_",
        "tails_std_": "_tails_target",
    }
    _n_given: int | None  # The number of rows of the fit, where these were in memory.

    @property
    @refused_as_missing
    def labels_(self) -> NDArray[np.intp]:
        """Most probable component of every training row, int array (n_samples,); -1 for noise.

        ``predict`` of the training rows, at first access, as long as the fit has them: up to 64 MiB of rows
        in memory, and none in a pickle. `fit_predict` returns them in any case.

        Raises
        ------
        ValueError
            The estimator is not fitted, or the training rows are not there any more: call ``predict(X)``.
        """
        uncertainty = self._uncertainty
        if uncertainty.labels is None:
            rows = uncertainty.source.training_rows()
            if rows is None or rows.n_given != self._n_given:
                raise ValueError(
                    "labels_ needs all training rows. A fit keeps up to 64 MiB of them in memory, none of "
                    "weight zero or without a value, and none in a pickle: call predict(X)."
                )
            uncertainty.labels = read_only(most_probable_components(rows, uncertainty.fitted.posterior))
        return uncertainty.labels

    @property
    @refused_as_missing
    def posterior_mean_(self) -> NDArray[np.float64]:
        """Posterior mean of theta = (log weights; means; unique precision entries), shape (D,).

        Log weights, which have no unit, are of weights that sum to one, as `weights_` do. Means have the
        units of X, precisions one over their squares. The entries are named by `posterior_names_`. Like every
        fitted attribute it follows arrays that are set by hand.

        Raises
        ------
        ValueError
            The estimator is not fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> for name, mean in zip(mixture.posterior_names_, mixture.posterior_mean_):
        ...     print(name, mean.round(3))
        log_weight[0] -0.757
        log_weight[1] -0.68
        mean[0,x0] 56.241
        mean[1,x0] 81.106
        precision[0,x0,x0] 0.014
        precision[1,x0,x0] 0.021
        """
        fitted = self._fitted
        values = [fitted.posterior.log_shares, self.means_, self.precisions_]
        if fitted.structure.n_tails:
            values.append(np.log(self.tails_))
        named = zip(fitted.targets.theta, map(np.asarray, values), strict=True)
        return np.concatenate([target.flat(value) for target, value in named])

    @property
    @refused_as_missing
    def noise_weight_std_(self) -> float:
        """Posterior standard deviation of `noise_weight_`, without unit; only with noise.

        By linear response and the delta method, at first access. The density of noise is taken as known.

        Raises
        ------
        ValueError, MemoryError
            As `posterior_covariance_`.
        """
        uncertainty = self._uncertainty
        if not uncertainty.fitted.structure.has_background:
            raise AttributeError("noise_weight_std_ belongs to a fit with noise: pass noise=True, and fit.")
        return uncertainty.std("weights")[-1]

    @property
    @refused_as_missing
    def means_std_(self) -> NDArray[np.float64]:
        """Posterior standard deviations of `means_`, shape (n_components, n_features), in units of X.

        By linear response (paper, Equation 11), at first access. Under joint factors they include the
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

        By linear response (paper, Equation 11) and the delta method, at first access.

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

        By linear response (paper, Equation 11), at first access.

        Raises
        ------
        ValueError, MemoryError
            As `posterior_covariance_`.
        """
        return self._uncertainty.std("precisions")

    @property
    @refused_as_missing
    def scales_std_(self) -> NDArray[np.float64]:
        """Posterior standard deviations of `scales_`, in its shape and unit; of Student's t components.

        By linear response (paper, Equation 11) and the delta method, at first access.

        Raises
        ------
        ValueError, MemoryError
            As `posterior_covariance_`.
        """
        return self._uncertainty.std("scales")

    @property
    def _tails_target(self):
        """The target "tails", a ValueError where degrees of freedom are not fitted."""
        return self._uncertainty.targets["tails"]

    @property
    @refused_as_missing
    def tails_std_(self) -> NDArray[np.float64] | float:
        """Posterior standard deviations of `tails_`, in its shape, without unit; where they are fitted.

        By linear response and the delta method from the logarithm of the degrees of freedom, at first access.

        Raises
        ------
        ValueError, MemoryError
            As `posterior_covariance_`.
        """
        return self._uncertainty.std("tails")

    def _likelihood(self, X, sample_weight):
        """As for every mixture, at the optimum under a flat prior that is next to the fit."""
        posterior = self._without_prior(X, sample_weight)._fitted.posterior
        structure = posterior.structure
        rows = self._given_rows(X, sample_weight, self._fitted).counted()
        draw = posterior.model.draws_at(posterior, posterior)
        parameters = posterior.model.parameters(posterior, rows.origin, draw)
        n_free = posterior.n_labels - 1 + structure.n_components * structure.n_features
        n_free += structure.n_groups * structure.n_quadratic + structure.n_tails
        return float(log_likelihood(rows, parameters)[0]), n_free, rows.total_weight

    def _without_prior(self, X, sample_weight):
        """The fit of the components that hold rows under a flat prior, from where this fit ended."""
        posterior = self._fitted.posterior
        if posterior.structure.has_background:
            raise ValueError(
                "aic and bic compare maxima of the likelihood, without the prior, and with noise there is "
                "none. Compare lower_bound_, or ask number_of_clusters."
            )
        held = occupied(posterior.counts)
        responsibilities = self.predict_proba(X)[:, held]
        responsibilities /= responsibilities.sum(axis=1, keepdims=True)
        flat = clone(self).set_params(
            **{name: None for name in self.get_params() if name.endswith("_prior")},
            prior="flat",
            n_components=int(np.count_nonzero(held)),
            init_params=responsibilities,
            moves=None,
            warm_start=False,
            verbose=0,
        )
        try:
            flat._fit(X, sample_weight)
        except DegenerateComponentError as error:
            raise ValueError(
                "aic and bic compare maxima of the likelihood, without the prior, and next to this fit there "
                "is none: a component is left with too few rows. (a) Lower n_components. (b) Compare "
                "lower_bound_, or ask number_of_clusters."
            ) from error
        return flat

    def _posterior_dataset(self, draws):
        structure = self._fitted.structure
        by_component = () if structure.shares_precision else ("component",)
        of_precisions = (*by_component, *("feature", "other_feature")[: len(structure.prior_shape)])
        axes = {
            "weights": ("label",) if structure.has_background else ("component",),
            "means": ("component", "feature"),
            "precisions": of_precisions,
            "covariances": of_precisions,
            "scales": of_precisions,
            "tails": ("component",) * len(structure.tails_shape),
        }
        coords = {"component": np.arange(structure.n_components), "feature": self._feature_names}
        if structure.has_background:
            coords["label"] = [*map(str, coords["component"]), "noise"]
        if "other_feature" in of_precisions:
            coords["other_feature"] = self._feature_names
        return dataset({name: (axes[name], values) for name, values in draws.items()}, coords, True)
