"""Draws of the posterior, by linear response and exact: methods of `LRVBGaussianMixture`.

They check their arguments here (`validation`) and compute in `posterior_sampling`.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_lrvb.gaussian_mixture.arviz_conversion import posterior_groups, row_groups
from sklearn_lrvb.gaussian_mixture.fitted_attributes import FittedAttributes
from sklearn_lrvb.gaussian_mixture.given_rows import given_rows, require_table
from sklearn_lrvb.gaussian_mixture.posterior_check import LEAST_DRAWS, PosteriorCheck, checked_posterior
from sklearn_lrvb.gaussian_mixture.posterior_sampling.sampler import PosteriorSampler
from sklearn_lrvb.gaussian_mixture.validation import check_correction, checked_number
from sklearn_lrvb.reports import in_arviz, require_arviz

if TYPE_CHECKING:
    import arviz
    import xarray as xr


class SamplingMethods(FittedAttributes):
    """Methods of `LRVBGaussianMixture` about draws of its posterior."""

    def sample_posterior(
        self,
        n_draws: int = 1,
        random_state: int | np.random.RandomState | None = None,
        correction: str | None = None,
        X: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Draws of the parameters by linear response, or corrected towards the exact posterior.

        Parameters
        ----------
        n_draws : int, default=1
            Number of draws, at least one.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None uses numpy's global generator. The estimator's own `random_state` is not
            used.

        correction : {None, 'importance', 'gibbs'}, default=None
            None: linear response. 'importance': draws by linear response are weighed by the exact posterior,
            and resampled by their Pareto-smoothed weights. 'gibbs': these are moved by steps of a Gibbs
            sampler, all at once; the slowest, and exact in the limit of many steps. A rule chooses their
            number, and convergence is not checked (Notes). :meth:`posterior_check` says which of them is
            needed.

        X : array-like of shape (n_samples, n_features), Dask collection or source of batches, default=None
            The training rows, which a correction needs.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any. 'gibbs' takes whole numbers only.

        Returns
        -------
        draws : dict of ndarray
            "weights" of shape (n_draws, n_components), on the simplex; "means" of shape (n_draws,
            n_components, n_features), in units of X; "precisions" and "covariances" with a first axis of
            n_draws before those of the attribute, positive definite and each other's inverses.

        Raises
        ------
        ValueError
            `n_draws` is not a positive integer, fitted arrays were changed since the fit, or the fit is no
            strict local optimum. With a correction also: X is missing or is not what the mixture was fitted
            to, or there is no exact posterior (``prior="flat"`` with several components).
        MemoryError
            The system is too large; the message names the size and the way out.

        Warns
        -----
        UserWarning
            Importance weights are too uneven to be relied on, or draws left for another mode.

        See Also
        --------
        posterior_check : Whether a correction is needed.
        get_posterior_covariance : The covariance of these draws.
        posterior_summary : Intervals of every parameter.
        sample : Draws of rows rather than of parameters.

        Notes
        -----
        Weights (through the beta variables of their stick-breaking form) and precisions (Wishart or gamma)
        come from q's own families, with the variances and correlations of linear response (a Gaussian
        copula). Means are drawn given the precisions, so that they have the tails of Student's t, under both
        factorizations. Means and covariances of the draws are those reported up to relative errors of one
        over the number of points in a component. Where no point is ambiguous, as with one component, draws by
        linear response are draws of the exact posterior.

        Under 'importance', at least 4000 draws are weighed, so that some of `n_draws` repeat each other where
        the weights are uneven. The draws of 'gibbs' all differ; each costs as many passes over the rows as
        five times the largest inflation of a variance by missing information (three times where importance
        sampling is reliable, and half of it where that is nearly exact). This rule does not check
        convergence, and is too few steps where the start is far off: for three components on the petals of
        the irises it makes some 30, and the draws still move until step 300.

        The exact posterior has other modes, at least one for every relabelling of the components:
        'importance' never sees those that linear response does not reach, and 'gibbs' says where its draws
        have left for one.

        The theory page "Error bars of the mixture" has the formulas, under draws.

        The same seed and the same fit give the same draws, whatever was asked before and whichever solver is
        in use.

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
        return self._drawn(n_draws, random_state, correction, X, sample_weight).reported()

    def _drawn(self, n_draws, random_state, correction=None, X=None, sample_weight=None):
        """Draws of the posterior: DrawnParameters."""
        sampler, rows = self._sampler_for(correction, X, sample_weight)
        n_draws, random_state = checked_number(n_draws), check_random_state(random_state)
        draw = {None: sampler.draws, "importance": sampler.resampled, "gibbs": sampler.gibbs}[correction]
        arguments = (n_draws, random_state) if correction is None else (rows, n_draws, random_state)
        return self._reported("sample_posterior", lambda tracked: draw(*arguments, tracked))

    def _sampler_for(self, correction, X, sample_weight):
        """`PosteriorSampler`, and the training rows if a correction needs them."""
        sampler = PosteriorSampler(self._uncertainty)
        check_correction(correction)
        if correction is None:
            if X is not None or sample_weight is not None:
                raise ValueError("X goes with a correction: without one, draws need no training rows.")
            return sampler, None
        if X is None:
            raise ValueError(f"correction={correction!r} needs the training rows: pass X.")
        return sampler, sampler.checked_rows(self._counted_rows(X, sample_weight, sampler.fitted))

    def _corrected(self, correction, X, sample_weight, n_draws, random_state):
        """Draws of the exact posterior for moments of it: WeightedDraws."""
        sampler, rows = self._sampler_for(correction, X, sample_weight)
        if checked_number(n_draws) < 2:
            raise ValueError(
                "n_draws=1: one draw has neither a standard deviation nor a covariance. Ask for two draws or "
                "more; 4000 are enough for 95 % intervals."
            )
        n_draws, random_state = int(n_draws), check_random_state(random_state)
        return self._reported(
            "posterior_summary",
            lambda tracked: sampler.weighted(correction, rows, n_draws, random_state, tracked),
        )

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
            `recommendation`, `asymmetry`, `mean_shift`, `mean_shift_error`, `names`, `is_of_occupied`; with
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
        return self._reported(
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
        correction: str | None = None,
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
            Number of draws, at least one. They are those of :meth:`sample_posterior`, independent of each
            other, and form one chain.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws, as in :meth:`sample_posterior`.

        correction : {None, 'importance', 'gibbs'}, default=None
            Draws by linear response, or corrected ones with the limits named in :meth:`sample_posterior`,
            which need X.

        Returns
        -------
        data : xarray.DataTree or arviz.InferenceData
            A DataTree, as ArviZ 1.0 and later use it, where arviz-base is installed; otherwise the
            InferenceData of arviz 0.x. (``arviz.from_datatree`` makes the one of the other.) The groups:

            * posterior: "weights" with the dimension component; "means" (component, feature); "precisions"
              and "covariances" (component, feature, other_feature), without component for 'tied', without
              other_feature for 'diag', and (component,) for 'spherical'. Each has the dimensions chain, of
              length one, and draw in front. Features go by their names, components by their numbers.
            * log_likelihood: "X" (chain, draw, row), in nats; see Notes.
            * observed_data: "X" (row, feature).
            * constant_data: "sample_weight" (row,), where it was given.

            The coordinate row counts the rows of X from 0. Rows of weight zero are left out.

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
        The log likelihood of row n under a draw of the parameters is ``w_n log sum_k pi_k N(x_n; mu_k,
        Lambda_k^-1) exp(-reg_covar trace(Lambda_k) / 2)``: what the row adds to the objective of the fit. The
        last factor is the known noise on X, and 1 where `reg_covar` is small against every covariance. A row
        of weight w_n counts as w_n rows. ``loo`` then leaves out all of them, and its value for the row is
        the log predictive density of all of them together.

        ``loo`` takes the logarithm of a density averaged over the posterior; :meth:`loo_score_samples`, like
        every score of this estimator, adds up components of which each has the average of its logarithm under
        q. The difference is of the order of ``leverage(X)``: half the posterior variance of the row's score,
        which is ``leverage(X) / 2``, and the average of the score over the draws less the score at q.

        A component that holds no rows has draws from its prior, which would dominate a plot. Those that hold
        rows are ``data.posterior.sel(component=mixture.weights_.argsort()[::-1][:mixture.n_occupied_])``.

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
        check_correction(correction)
        require_arviz()
        if X is None and sample_weight is not None:
            raise ValueError("sample_weight goes with X: pass the training rows too.")
        fitted = self._fitted
        if X is not None:
            require_table(X, "to_arviz, which gives the log likelihood of every row under every draw,")
            given = given_rows(self, X, sample_weight)
            rows, numbers = given.counted_around(fitted.origin), given.numbers()
            sampler.require_log_likelihood(n_draws, rows)
        exact = (
            {} if correction is None else {"correction": correction, "X": X, "sample_weight": sample_weight}
        )
        parameters = self._drawn(n_draws, random_state, **exact)
        groups = posterior_groups(parameters.reported(), fitted.structure, self._feature_names)
        if X is not None:
            log_likelihood = sampler.log_likelihood(rows, parameters)
            groups |= row_groups(log_likelihood, rows.X, rows.sample_weight, numbers, self._feature_names)
        return in_arviz(groups)
