"""Draws of the posterior, by linear response and exact: methods of `LRVBGaussianMixture`.

They check their arguments here (`arguments`) and compute in `posterior_sampling`.
"""

import functools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_lrvb.gaussian_mixture.arguments import CORRECTIONS, check_method, checked_number
from sklearn_lrvb.gaussian_mixture.fitted import FittedAttributes
from sklearn_lrvb.gaussian_mixture.posterior_check import LEAST_DRAWS, PosteriorCheck, checked_posterior
from sklearn_lrvb.gaussian_mixture.posterior_sampling.sampler import PosteriorSampler
from sklearn_lrvb.reports import dataset, in_arviz, require_arviz
from sklearn_lrvb.row_blocks import given_rows, require_table

if TYPE_CHECKING:
    import arviz
    import xarray as xr


class SamplingMethods(FittedAttributes):
    """Methods of `LRVBGaussianMixture` about draws of its posterior."""

    def sample_posterior(
        self,
        n_draws: int = 1,
        random_state: int | np.random.RandomState | None = None,
        method: str = "lrvb",
        X: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Draws of the parameters by linear response, or corrected towards the exact posterior.

        Parameters
        ----------
        n_draws : int, default=1
            Number of draws, at least one.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws, not the estimator's own; the same seed and fit give the same draws.

        method : {'lrvb', 'importance', 'gibbs'}, default='lrvb'
            'lrvb': linear response. 'importance': these draws are weighed by the exact posterior, and
            resampled. 'gibbs': these draws are moved by steps of a Gibbs sampler; the slowest, and exact in
            the limit of many steps. A rule chooses their number, and convergence is not checked.
            :meth:`posterior_check` recommends one, and the guide "Can I trust these error bars?" compares
            them.

        X : array-like of shape (n_samples, n_features), Dask collection or source of batches, default=None
            The training rows, which 'importance' and 'gibbs' need.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any. 'gibbs' takes whole numbers only.

        Returns
        -------
        draws : dict of ndarray
            "weights" of shape (n_draws, n_components), which sum to one; "means" of shape (n_draws,
            n_components, n_features), in units of X; "precisions" and "covariances", each other's inverses,
            with a first axis of n_draws before those of the attribute.

        Raises
        ------
        ValueError
            Unknown method, `n_draws` is not a positive integer, X is not what the mixture was fitted to,
            fitted arrays were changed since the fit, or the fit is no strict local optimum. With 'importance'
            and 'gibbs' also: X is missing, or there is no exact posterior (``prior="flat"`` with several
            components).
        MemoryError
            The system is too large; the message names the size and the way out.

        Warns
        -----
        UserWarning
            Importance weights are too uneven to be relied on, or draws left for another mode.

        See Also
        --------
        posterior_check : Which method is needed.
        posterior_summary : Intervals of every parameter.
        sample : Draws of rows rather than of parameters.

        Notes
        -----
        Weights and precisions come from the families of q, with the variances and correlations of linear
        response, and means from normal distributions given the precisions. Where no row is ambiguous, as with
        one component, these are draws of the exact posterior. The exact posterior has other modes, at least
        one for every order of the components: 'importance' never sees those, and 'gibbs' warns where its
        draws have left for one. (Theory page "Error bars of the mixture", draws.)

        Examples
        --------
        By how many minutes are long waits for a geyser longer than short ones? Any function of the
        parameters has a posterior:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> means = mixture.sample_posterior(4000, random_state=0)["means"]
        >>> longer = means[:, 1, 0] - means[:, 0, 0]
        >>> print(f"{longer.mean():.0f} +- {longer.std():.0f}")
        25 +- 4
        """
        return self._drawn(n_draws, random_state, method, X, sample_weight).reported()

    def _drawn(self, n_draws, random_state, method="lrvb", X=None, sample_weight=None):
        """Draws of the posterior: DrawnParameters."""
        sampler, rows = self._sampler_for(method, X, sample_weight)
        n_draws, random_state = checked_number(n_draws), check_random_state(random_state)
        draw = sampler.draws
        if method != "lrvb":
            draw = functools.partial(sampler.gibbs if method == "gibbs" else sampler.resampled, rows)
        return self._tracked("sample_posterior", lambda tracked: draw(n_draws, random_state, tracked))

    def _sampler_for(self, method, X, sample_weight):
        """`PosteriorSampler`, and the training rows, which linear response does without."""
        sampler = PosteriorSampler(self._uncertainty)
        check_method(method)
        rows = self._training_rows(X, sample_weight, sampler.fitted)
        if method == "lrvb":
            if rows is not None:
                self._uncertainty.source.check_training_rows(rows)
            return sampler, rows
        if rows is None:
            raise ValueError(f"method={method!r} needs the training rows: pass X.")
        return sampler, sampler.checked_rows(rows)

    def _corrected(self, method, X, sample_weight, n_draws, random_state):
        """Draws of the exact posterior for moments of it: WeightedDraws."""
        sampler, rows = self._sampler_for(method, X, sample_weight)
        if checked_number(n_draws) < 2:
            raise ValueError(
                "n_draws=1: one draw has neither a standard deviation nor a covariance. Ask for two draws or "
                "more; 4000 are enough for 95 % intervals."
            )
        n_draws, random_state = int(n_draws), check_random_state(random_state)
        return self._tracked(
            "posterior_summary",
            lambda tracked: sampler.weighted(method, rows, n_draws, random_state, tracked),
        )

    def _margins(self, targets, method, X, sample_weight, n_draws, random_state):
        """The function from the name of one of some targets to its means, deviations and intervals."""
        if method in CORRECTIONS:
            return self._corrected(method, X, sample_weight, n_draws, random_state).margins
        uncertainty, information = self._uncertainty, None
        rows = self._training_rows(X, sample_weight, uncertainty.fitted)
        if method == "mean_field":
            information = uncertainty.of_mean_field
        elif rows is not None:
            information = uncertainty.information(targets, rows)
        return lambda name: uncertainty.margins(name, information)

    def posterior_check(
        self,
        X: ArrayLike,
        sample_weight: ArrayLike | None = None,
        n_draws: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> PosteriorCheck:
        """Whether the error bars of linear response can be trusted, and what to use where they cannot.

        Linear response is a quadratic approximation of the log posterior. Where few rows or much overlap make
        the posterior skew, its error bars are too small. This looks at the exact posterior, for the price of
        a few passes over the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        n_draws : int, default=0
            Number of draws of importance sampling; 0 does without. From 100 on there are a closer bound on
            the evidence and its estimate, and corrected means, standard deviations and intervals; 4000 are
            enough for the verdict on them.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws, as in :meth:`sample_posterior`.

        Returns
        -------
        check : PosteriorCheck
            Its display is a sentence and the numbers behind it. Its attributes are `verdict`,
            `recommendation`, `asymmetry`, `mean_shift`, `mean_shift_error`, `effective_share`, `names`; with
            draws `log_evidence_bound`, `log_evidence`, `log_evidence_error`, `k_hat`, `effective_draws`,
            `reliable`, `mean`, `std`, `lower` and `upper`.

        Raises
        ------
        ValueError
            X is not what the mixture was fitted to; `n_draws` is neither 0 nor an integer of at least 100;
            there is no exact posterior (``prior="flat"`` with several components); fitted arrays were changed
            since the fit, or the fit is no strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        See Also
        --------
        sample_posterior : Corrected draws.
        posterior_summary : A table of corrected error bars.

        Notes
        -----
        The modes of the exact posterior that linear response does not reach are not seen. Where 'gibbs' is
        recommended, its draws are exact in the limit of many steps, and their convergence is not checked.
        (Theory page "The exact posterior".)

        Examples
        --------
        Twenty waits for a geyser do not say much: the posterior is skew.

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.posterior_check(X, random_state=0).recommendation
        'importance'
        """
        if X is None:
            raise ValueError("posterior_check needs the training rows: pass X.")
        sampler, rows = self._sampler_for("importance", X, sample_weight)
        if n_draws != 0 and checked_number(n_draws) < LEAST_DRAWS:
            raise ValueError(
                f"n_draws={n_draws} are too few for importance sampling, whose diagnostics need "
                f"{LEAST_DRAWS} or more. (a) Ask for 4000. (b) n_draws=0 checks without."
            )
        random_state = check_random_state(random_state)
        return self._tracked(
            "posterior_check",
            lambda tracked: checked_posterior(
                sampler, rows, int(n_draws), random_state, self.posterior_names_, tracked
            ),
        )

    def to_arviz(
        self,
        X: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        n_draws: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        method: str = "lrvb",
    ) -> "xr.DataTree | arviz.InferenceData":
        """Draws of the posterior, and the log likelihood of every training row, for ArviZ.

        Its plots, tables and comparisons of models then work as for a model that was sampled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The training rows, for the log likelihood by row that ``loo`` of ArviZ needs. None leaves the
            groups about rows out.

        sample_weight : array-like of shape (n_samples,), default=None
            The weights of X in the fit, where there were any.

        n_draws : int, default=1000
            Number of draws, those of :meth:`sample_posterior`, in one chain.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws, as in :meth:`sample_posterior`.

        method : {'lrvb', 'importance', 'gibbs'}, default='lrvb'
            Draws by linear response, or corrected ones, which need X, as in :meth:`sample_posterior`.

        Returns
        -------
        data : xarray.DataTree or arviz.InferenceData
            A DataTree for ArviZ 1.0 and later, where arviz-base is installed; otherwise the InferenceData of
            arviz 0.x. The groups, each variable with the dimensions chain (of length one) and draw in front:

            * posterior: "weights" (component); "means" (component, feature); "precisions" and "covariances"
              with the axes of the attribute, named component, feature and other_feature.
            * log_likelihood: "X" (row), in nats. Rows of weight zero are left out.
            * observed_data: "X" (row, feature); constant_data: "sample_weight" (row), where it was given.

        Raises
        ------
        ImportError
            No ArviZ is installed.
        ValueError
            `n_draws` is not a positive integer, X is not what the mixture was fitted to, fitted arrays were
            changed since the fit, or the fit is no strict local optimum.
        MemoryError
            The system is too large, or the log likelihood takes more than 4 GiB; the message names the size
            and the way out.

        See Also
        --------
        sample_posterior : The same draws as arrays.
        loo_score_samples : Leave-one-out scores without draws.

        Notes
        -----
        A row of weight w counts as w rows, which ``loo`` leaves out together. It differs from
        :meth:`loo_score_samples` by the order of ``leverage(X)``: the logarithm of an average over draws, in
        place of a density at averages. (Theory page "Influence", leave-one-out scores.) Leave components
        without rows, whose draws are the prior's, out of plots:
        ``data.posterior.sel(component=mixture.weights_.argsort()[::-1][:mixture.n_occupied_])``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris(as_frame=True).data
        >>> mixture = LRVBGaussianMixture(n_components=3, random_state=0).fit(X)
        >>> data = mixture.to_arviz(X, random_state=0)  # doctest: +SKIP
        >>> dict(data.posterior["means"].sizes)  # doctest: +SKIP
        {'chain': 1, 'draw': 1000, 'component': 3, 'feature': 4}
        >>> means = data.posterior["means"].sel(component=0, feature="petal width (cm)")  # doctest: +SKIP
        """
        sampler = PosteriorSampler(self._uncertainty)
        n_draws = checked_number(n_draws)
        check_method(method)
        require_arviz()
        fitted = sampler.fitted
        if X is not None:
            require_table(X, "to_arviz, which gives the log likelihood of every row under every draw,")
            given = given_rows(self, X, sample_weight, fitted.origin)
            rows, numbers = given.counted(), np.flatnonzero(given.which_count())
            sampler.require_log_likelihood(n_draws, rows)
        parameters = self._drawn(n_draws, random_state, method, X, sample_weight)
        groups = _posterior_groups(parameters.reported(), fitted.structure, self._feature_names)
        if X is not None:
            log_likelihood = sampler.log_likelihood(rows, parameters)
            groups |= _row_groups(log_likelihood, rows.X, rows.sample_weight, numbers, self._feature_names)
        return in_arviz(groups)


def _posterior_groups(draws, structure, feature_names):
    """The group of the posterior for ArviZ: dict of xarray.Dataset.

    Parameters
    ----------
    draws : dict of ndarray (n_draws, *shape of the attribute)
    structure : CovarianceStructure
    feature_names : sequence of str
    """
    by_component = () if structure.shares_precision else ("component",)
    of_precisions = (*by_component, *("feature", "other_feature")[: len(structure.prior_shape)])
    axes = {
        "weights": ("component",),
        "means": ("component", "feature"),
        "precisions": of_precisions,
        "covariances": of_precisions,
    }
    coords = {"component": np.arange(structure.n_components), "feature": feature_names}
    if "other_feature" in of_precisions:
        coords["other_feature"] = feature_names
    return {
        "posterior": dataset({name: (axes[name], values) for name, values in draws.items()}, coords, True)
    }


def _row_groups(log_likelihood, X, sample_weight, row_numbers, feature_names):
    """The groups about rows for ArviZ: dict of xarray.Dataset.

    Parameters
    ----------
    log_likelihood : (n_draws, n_rows)
    X : (n_rows, n_features)
    sample_weight : (n_rows,) or None
    row_numbers : int array (n_rows,), their places in the user's X
    feature_names : sequence of str
    """
    of_rows = {"row": row_numbers}
    groups = {
        "log_likelihood": dataset({"X": (("row",), log_likelihood)}, of_rows, True),
        "observed_data": dataset({"X": (("row", "feature"), X)}, {**of_rows, "feature": feature_names}),
    }
    if sample_weight is not None:
        groups["constant_data"] = dataset({"sample_weight": (("row",), sample_weight)}, of_rows)
    return groups
