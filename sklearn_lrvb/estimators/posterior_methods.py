"""Posterior uncertainty of a fitted mixture: methods and attributes of mixture estimators.

They check their arguments here (`arguments`) and compute in `uncertainty`.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.answers.prior_sensitivity import prior_reading
from sklearn_lrvb.answers.targets import NoCovarianceError, named_entries
from sklearn_lrvb.estimators.arguments import checked_method, checked_targets, holding
from sklearn_lrvb.estimators.fitted import refused_as_missing
from sklearn_lrvb.estimators.sampling_methods import OF_SAMPLES, SamplingMethods, are_given
from sklearn_lrvb.reports import require_interval, required_pandas

if TYPE_CHECKING:
    import pandas as pd

# Attributes that `dir` must not evaluate, because computing them may take long, and others that exist where
# these do.
_COMPUTED_ON_ACCESS = {
    "log_evidence_": "posterior_mean_",
    "posterior_covariance_": "posterior_mean_",
    "posterior_std_": "posterior_mean_",
    "weights_std_": "weights_",
}


class PosteriorMethods(SamplingMethods):
    """Methods of a mixture estimator about its posterior uncertainty.

    Attributes
    ----------
    _computed_on_access : dict of str
        Attributes that ``dir`` must not evaluate, because they may take long; and others that exist where
        these do.
    """

    _computed_on_access = _COMPUTED_ON_ACCESS

    def __dir__(self):
        # BaseEstimator's dir() evaluates all attributes, some of which take long. Others cannot be read
        # without a fit, or with arrays of wrong shapes.
        names, are_hidden = [], "_hides_computed" in vars(self)
        for name in object.__dir__(self):
            if are_hidden and name in self._computed_on_access:
                continue
            exists_with = self._computed_on_access.get(name)
            with contextlib.suppress(AttributeError, ValueError):
                for needed in ("_uncertainty", exists_with) if exists_with else (name,):
                    getattr(self, needed)
                names.append(name)
        return names

    def _get_fitted_attr_html(self, doc_link=""):
        # The HTML display of scikit-learn shows the values of all names of dir().
        shown = copy.copy(self)
        vars(shown)["_hides_computed"] = True
        return super(PosteriorMethods, shown)._get_fitted_attr_html(doc_link)

    @property
    @refused_as_missing
    def posterior_mean_(self) -> NDArray[np.float64]:
        """Posterior means of the parameters theta, shape (D,), which are named by `posterior_names_`.

        Raises
        ------
        ValueError
            The estimator is not fitted.
        """
        return np.concatenate([target.flat_value() for target in self._fitted.targets.theta])

    @property
    @refused_as_missing
    def log_evidence_(self) -> float:
        """log p(X) to second order, in nats, of one labelling: `lower_bound_` and what it misses.

        The lower bound falls short of the evidence, by more where more is unknown: labels of rows between
        clusters, and missing values. To second order the gap is ``-log det(S) / 2``, with S the observed
        information in units of the complete one. Prefer this number to compare models that differ in how much
        is unknown, such as numbers of components for rows with holes: with 5 to 40 % of 3000 values missing,
        the bound was 1 to 8 nats below the evidence, and this number within 0.01. Prefer `lower_bound_` where
        a guarantee is needed, since this number may be above the evidence; and `log_evidence_bound` of
        :meth:`posterior_check` where rows are few or clusters overlap so much that posteriors are skew.

        Like the bound, it is that of one labelling of the components, by a formula; `log_evidence` of
        :meth:`posterior_check` is that of all labellings, by draws: under a Dirichlet prior log K! more. What
        ``factorization="independent"`` costs is not in it. Where `tails` are fitted, compare fits by this
        number: `lower_bound_` is that of one value of them, and does not count their uncertainty.

        Raises
        ------
        ValueError
            As `posterior_covariance_`.
        MemoryError
            The system is too large; the message names the size and the way out.

        Examples
        --------
        Twenty waiting times for a geyser, in minutes. The bound is 0.4 nats lower, because some labels are in
        doubt:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> print(f"{mixture.lower_bound_:.1f} {mixture.log_evidence_:.1f}")
        -88.1 -87.7
        """
        uncertainty = self._uncertainty
        source, information = uncertainty.source, uncertainty.source.factored()
        if information.holds_rows:
            source.require_size(source.size, "The log evidence")
        # log|S|, with S = I - T' G T and T T' = R. The bound has no factor q of what is taken at its mode.
        fitted = uncertainty.fitted
        return float(fitted.path[-1] + 0.5 * (fitted.posterior.log_volume - information.log_determinant))

    @property
    @refused_as_missing
    def posterior_covariance_(self) -> NDArray[np.float64]:
        """Posterior covariance of theta by linear response, shape (D, D), in products of the units of theta.

        Equation 11 of the paper. Under joint factors the variance of a mean includes the excess of
        its Student t over the normal, where that is finite (``degrees_of_freedom_ > n_features + 1``).
        Computed at first access and kept: the array is read-only.

        Raises
        ------
        ValueError
            The estimator is not fitted, fitted arrays were changed since, the fit is no strict local optimum,
            or the training rows are needed and were left behind by a pickle.
        MemoryError
            More than 14,000 unknowns; the message says what to ask for instead.

        See Also
        --------
        get_posterior_covariance : The same of some parameters, or by other methods.

        Examples
        --------
        The means of short and long waits for a geyser hardly depend on each other (correlation 0.04):

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.posterior_covariance_.shape
        (6, 6)
        >>> covariance = mixture.posterior_covariance_[2:4, 2:4]  # see posterior_names_
        >>> print(f"{covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]):.2f}")
        0.04
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

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> np.allclose(mixture.posterior_std_**2, np.diag(mixture.posterior_covariance_))
        True
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

        Examples
        --------
        Names of columns become those of parameters:

        >>> import pandas as pd
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> frame = pd.DataFrame({"wait": [79, 54, 74, 62, 85, 55, 88, 85, 51, 85]})  # minutes
        >>> LRVBGaussianMixture().fit(frame).posterior_names_.tolist()
        ['log_weight[0]', 'mean[0,wait]', 'precision[0,wait,wait]']
        """
        theta = self._fitted.targets.theta
        return np.concatenate([target.labels(self._feature_names) for target in theta])

    @property
    @refused_as_missing
    def weights_std_(self) -> NDArray[np.float64]:
        """Posterior standard deviations of `weights_`, shape (n_components,), without unit.

        By linear response (paper, Equation 11) and the delta method, at first access; kept and read-only.
        The theory page "Error bars of the mixture" has the derivatives, under reported parameters.

        Raises
        ------
        ValueError, MemoryError
            As `posterior_covariance_`.
        """
        return self._uncertainty.std("weights")[: len(self.weights_)]

    def get_posterior_covariance(
        self,
        X: ArrayLike | None = None,
        *,
        target: str | Sequence[str] = "all",
        method: str = "auto",
        sample_weight: ArrayLike | None = None,
        n_draws: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        strata_sizes: Mapping | float | None = None,
    ) -> NDArray[np.float64]:
        """Posterior covariance of some of the parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches, default=None
            The training rows, for all but 'lrvb' and 'mean_field', unless the fit still has them
            (:meth:`sample_posterior`); also where a pickle was too large to carry the matrix behind error
            bars.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', 'correlations', \
                'covariances', 'scales', 'tails', 'log_tails', 'tables', 'all'} or a list, default='all'
            'all' is those of `posterior_names_`; latent classes have 'tables' beside weights. Of matrices the
            unique entries, in that order; or names of entries and differences (:meth:`posterior_summary`).

        method : {'auto', 'lrvb', 'exact', 'mean_field', 'sandwich', 'bootstrap'}, default='auto'
            'lrvb': linear response (paper, Equation 11). 'exact': the exact posterior, by draws. 'auto': the
            first where it is good, and the second where not, as in :meth:`sample_posterior`; with `groups`
            'sandwich'. 'mean_field': the covariance of q itself, in which components and kinds of parameters
            are independent. 'sandwich': how the estimates vary from one sample of rows, or of `groups`, to
            another, whatever their distribution, by the squares of their weight influences (the infinitesimal
            jackknife; with groups the cluster-robust CR1). 'bootstrap': the same, by refits to resamples.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        n_draws : int, default=None
            Number of draws of the exact posterior, at least, or of resamples; None is as many draws as it
            takes to converge, or 200 resamples.

        random_state : int, RandomState instance or None, default=None
            Seed of these; None takes draws of the posterior that were made before, if there are any.

        groups : array-like of shape (n_samples,) or Dask collection, default=None
            Labels that say which rows belong together, such as patients: at least two groups, better fifty.
            (Guide "My rows belong together".) Without groups, a weight of 3 counts as three rows; for survey
            weights of single persons pass ``range(len(X))``.

        strata, strata_sizes : default=None
            Of a survey: the stratum of every row; and a mapping from each stratum to the number of its groups
            in the population (without `strata` one number), for the finite population correction. Without
            `groups` every row is a group of its own.

        Returns
        -------
        covariance : ndarray of shape (d, d)
            Symmetric, in products of the targets' units.

        Raises
        ------
        ValueError
            Unknown target or method; fitted arrays that were changed since the fit; X that is needed
            and missing, or not what was fitted; or a fit that is no strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        See Also
        --------
        posterior_summary : Standard deviations and intervals as a table.
        sample_posterior : Draws from this posterior.

        Examples
        --------
        Covariance of the means of short and long waits for a geyser, in squared minutes. Mean field takes the
        cluster of every row as known; linear response adds what the doubtful rows contribute:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.get_posterior_covariance(target="means", method="lrvb").round(1)
        array([[10. ,  0.3],
               [ 0.3,  5. ]])
        >>> mixture.get_posterior_covariance(target="means", method="mean_field").round(1)
        array([[8.6, 0. ],
               [0. , 4.7]])
        """
        targets = self._checked_targets(target)
        design = groups, strata, strata_sizes
        method = checked_method(method, "mean_field", *OF_SAMPLES)
        if method == "mean_field" and not are_given(design):
            rows = self._training_rows(X, sample_weight, self._uncertainty.fitted)
            return self._uncertainty.covariance(targets, "mean_field", rows)
        answer = self._answer(method, X, sample_weight, random_state, design)
        return answer.covariance(targets, n_draws)

    def posterior_summary(
        self,
        X: ArrayLike | None = None,
        *,
        target: str | Sequence[str] | None = None,
        interval: float = 0.95,
        min_count: float = 0.5,
        method: str = "auto",
        sample_weight: ArrayLike | None = None,
        n_draws: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        strata_sizes: Mapping | float | None = None,
    ) -> pd.DataFrame:
        """Means, standard deviations and credible intervals of the parameters, as a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches, default=None
            The training rows, for all but 'lrvb'. A fit to up to 64 MiB of rows in memory still has them.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', 'correlations', \
                'covariances', 'scales', 'tails', 'log_tails', 'tables', 'all'} or a list, default=None
            Which parameters, in this order; of matrices the unique entries. 'all' is `posterior_names_`; None
            is weights, means, standard deviations, fitted tails and tables. Also the name of an entry, such
            as "mean[0,x1]", or of a difference, "mean[0,x1] - mean[1,x1]".

        interval : float, default=0.95
            Probability of the central credible interval, above 0 and below 1.

        min_count : float, default=0.5
            Components with fewer expected rows are left out; 0 shows all.

        method : {'auto', 'lrvb', 'exact', 'sandwich', 'bootstrap'}, default='auto'
            'lrvb': linear response. 'exact': the exact posterior. 'auto': the first where it is good, else
            the second (:meth:`sample_posterior`). With `groups`, 'sandwich' (then also 'auto') and
            'bootstrap' give standard errors and confidence intervals, by Student's t with as many degrees of
            freedom as groups, less one for every stratum (:meth:`get_posterior_covariance`).

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        n_draws, random_state, groups, strata, strata_sizes : default=None
            Number and seed of draws or resamples; which rows go together (:meth:`get_posterior_covariance`).

        Returns
        -------
        summary : pandas.DataFrame
            A row for every parameter, by names such as "weight[0]" and "covariance[0,x0,x1]", and the
            columns, all but the ratio in units of the parameter:

            * mean, sd: posterior mean and standard deviation (with few rows the mean of a covariance is above
              `covariances_`); by 'sandwich' and 'bootstrap', the estimate and its standard error.
            * mean_field_sd: the standard deviation under q itself; ratio: sd over this one.
            * lower, upper: ends of the central interval, within the parameter's range.

            It is displayed rounded; its numbers have all digits. ``summary.attrs`` has what is said above and
            below: "fit" describes the fit, "note" says how good the table is, "prior" whether the prior
            matters, "columns" which columns mislead. (Theory page "Error bars of the mixture".) With too few
            rows sd is inf, a mean that does not exist inf or NaN, and "median" a column. Student's t with two
            degrees of freedom or fewer has no sds; by 'lrvb' intervals then have no upper end.

        Raises
        ------
        ImportError
            pandas is not installed.
        ValueError
            Unknown target or method, number outside its range, covariances that do not exist, X that is
            missing or not what was fitted, arrays changed since the fit, or a fit that is no strict optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        See Also
        --------
        get_posterior_covariance : Covariances between parameters.
        sample_posterior : Draws, for functions of the parameters.

        Examples
        --------
        Mean lengths of the petals of two kinds of irises:

        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris().data[:, 2:3]  # centimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> summary = mixture.posterior_summary(target="means")
        >>> summary["mean"].round(1).tolist(), summary["sd"].round(2).tolist()
        ([4.9, 1.5], [0.09, 0.06])
        >>> print(summary.attrs["note"])
        Linear response is good: sds within 10 %, means within 0.2 sd.
        """
        uncertainty = self._uncertainty
        known, counts = uncertainty.targets, uncertainty.fitted.posterior.counts
        targets = self._checked_targets(known.reported if target is None else target)
        require_interval(interval)
        holding(counts, min_count)
        pd = required_pandas("posterior_summary")
        from sklearn_lrvb.reports.posterior_summary import (
            MEDIAN,
            PosteriorSummary,
            summary_rows,
            without_moments,
        )

        targets, left_out = self._of_possible_size(targets, target is None)
        answer = self._answer(method, X, sample_weight, random_state, (groups, strata, strata_sizes))
        margins_of = answer.margins_of(targets, n_draws)
        of_mean_field, parts, of_all = uncertainty.of_mean_field, {}, {}
        for name in targets:
            try:
                margins, mean_field = margins_of(name), uncertainty.margins(name, of_mean_field)
            except NoCovarianceError as error:
                if target is not None:
                    raise
                left_out += f" Standard deviations are left out. {error}"
                continue
            labels, ends = known[name].labels(self._feature_names), margins.interval(interval)
            rows = summary_rows(labels, margins.mean, margins.deviation, mean_field.deviation, ends)
            kept = known[name].is_reported(min_count)
            parts[name], of_all[name] = rows[kept], (margins, kept)
        summary = PosteriorSummary(pd.concat(parts.values()))
        if not np.isfinite(summary["sd"]).all():
            medians = [margins.interval(0.0)[0][kept] for margins, kept in of_all.values()]
            summary[MEDIAN] = np.concatenate(medians)
        summary.attrs["fit"] = f"{self._in_a_line(min_count)} Error bars by method={answer.name!r}."
        summary.attrs["note"] = answer.note + left_out + without_moments(summary)
        sds = np.concatenate([margins.deviation for margins, _ in of_all.values()])
        summary.attrs["prior"] = prior_reading(uncertainty, self._feature_names, list(parts), sds)
        summary.attrs["columns"] = " ".join(self._column_notes)
        return summary

    def _checked_targets(self, target):
        """What a user's target stands for: list of str, and of Entries."""
        known = self._uncertainty.targets
        entries = functools.partial(named_entries, targets=known, feature_names=self._feature_names)
        return checked_targets(target, known.table, known.parameters, entries)

    def _of_possible_size(self, targets, is_default):
        """The targets, without those of the default table that need too large a matrix; and a note, str."""
        try:
            self._uncertainty.require_sizes(targets)
        except MemoryError as error:
            kept = [name for name in targets if name in ("weights", "means")]
            if not is_default or kept == targets:
                raise
            self._uncertainty.require_sizes(kept)
            left_out = " and ".join(name.replace("_", " ") for name in targets if name not in kept)
            return kept, f" Left out: {left_out}. {error}"
        return targets, ""

    def _in_a_line(self, min_count):
        """The fit in a line: rows, components and whether they are left out, convergence and bound; str."""
        posterior = self._uncertainty.fitted.posterior
        held = np.count_nonzero(posterior.counts >= min_count)
        components = f"{len(posterior.counts)} component{'s' * (len(posterior.counts) > 1)}"
        if held < len(posterior.counts):
            others = "no rows" if min_count <= 0.5 else f"fewer than {min_count:g} rows"
            components = f"{held} of {components} (the others hold {others}; min_count=0 shows them)"
        end = "converged after" if self.converged_ else "did not converge in"
        return (
            f"{posterior.label_counts.sum():.10g} rows, {components}. The fit {end} {self.n_iter_} "
            f"iteration{'s' * (self.n_iter_ != 1)}, lower bound {self.lower_bound_:.2f}."
        )
