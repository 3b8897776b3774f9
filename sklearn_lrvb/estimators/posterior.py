"""Posterior: what is known about the parameters of a fit. It checks arguments, and asks `answers`."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_lrvb.answers.error_bars import PROBABILITIES, SCORES
from sklearn_lrvb.answers.prior_sensitivity import prior_reading
from sklearn_lrvb.answers.targets import NoCovarianceError, named_entries
from sklearn_lrvb.estimators.arguments import checked_number, checked_targets, holding
from sklearn_lrvb.estimators.attributes import tables_by_column
from sklearn_lrvb.estimators.model_checking import departure_in_a_line
from sklearn_lrvb.reports import datasets_of_rows, in_arviz, require_arviz, require_interval, required_pandas
from sklearn_lrvb.sampling.sampler import PosteriorSampler

if TYPE_CHECKING:
    import arviz
    import pandas as pd
    import xarray as xr

_WIDTH = 88  # Columns of the display.


class Posterior:
    """What is known about the parameters of a fitted mixture: the result of ``posterior``.

    The method, the seed and the rows are chosen once, where it is made. So its tables, draws and pictures
    agree, and the same question has the same answer each time. A later fit does not change it.

    Attributes
    ----------
    method : {'lrvb', 'exact', 'mean_field', 'sandwich', 'bootstrap'}
        How it is computed; it is never 'auto'.
    note : str
        What it is and how far to trust it, as below its tables.

    Notes
    -----
    A `target` is one of 'log_weights', 'weights', 'means', 'precisions', 'standard_deviations',
    'correlations', 'covariances', 'scales', 'tails', 'log_tails', 'mean_precision_prior' and
    'covariance_prior', of latent classes 'log_weights', 'weights' and 'tables'; 'all', the parameters that
    `posterior_names_` lists; the name of an entry, such as "mean[0,x1]", or of a difference,
    "mean[0,x1] - mean[1,x1]"; or a list of these. Of matrices there are the unique entries.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> X = load_iris().data[:, 2:3]  # centimetres
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> posterior = mixture.posterior()
    >>> posterior
    Posterior: 150 rows, 2 components. The fit converged after 5 iterations, lower bound
      -227.22. Error bars by method='lrvb'. Linear response is good: sds within 10 %, means
      within 0.2 sd.
    >>> posterior.std("means").round(2)
    array([[0.08],
           [0.03]])
    """

    def __init__(self, answer, given, seed):
        self._answer, self._given, self._seed = answer, given, seed
        self._mixture, self._uncertainty = answer.mixture, answer.uncertainty
        self.method = answer.name

    @property
    def note(self) -> str:
        """What it is and how far to trust it."""
        return self._answer.note

    def __repr__(self) -> str:
        said = f"{type(self).__name__}: {self._fit_in_a_line(0.5)} {self.note}"
        return textwrap.fill(said, _WIDTH, subsequent_indent="  ")

    def _fit_in_a_line(self, min_count):
        """The fit in a line: rows, components and whether they are left out, convergence and bound; str."""
        mixture, posterior = self._mixture, self._uncertainty.fitted.posterior
        held, n_components = np.count_nonzero(posterior.counts >= min_count), len(posterior.counts)
        components = f"{n_components} component{'s' * (n_components > 1)}"
        if held < n_components:
            others = "no rows" if min_count <= 0.5 else f"fewer than {min_count:g} rows"
            components = f"{held} of {components} (the others hold {others}; min_count=0 shows them)"
        end = "converged after" if mixture.converged_ else "did not converge in"
        steps = f"{mixture.n_iter_} iteration{'s' * (mixture.n_iter_ != 1)}"
        return (
            f"{posterior.label_counts.sum():.10g} rows, {components}. The fit {end} {steps}, lower bound "
            f"{mixture.lower_bound_:.2f}. Error bars by method={self.method!r}."
        )

    def summary(
        self,
        target: str | Sequence[str] | None = None,
        *,
        interval: float = 0.95,
        min_count: float = 0.5,
    ) -> pd.DataFrame:
        """Means, standard deviations and credible intervals of the parameters, as a table.

        Parameters
        ----------
        target : str or list of str, default=None
            Which parameters, in this order (notes of :class:`Posterior`); None is weights, means, standard
            deviations, fitted tails and tables.

        interval : float, default=0.95
            Probability of the central credible interval, above 0 and below 1. By 'sandwich' and 'bootstrap'
            it is a confidence interval, by Student's t with as many degrees of freedom as groups, less one
            for every stratum.

        min_count : float, default=0.5
            Components with fewer expected rows are left out; 0 shows all.

        Returns
        -------
        summary : pandas.DataFrame
            A row for every parameter, by names such as "weight[0]" and "covariance[0,x0,x1]", and the
            columns, all but the ratio in units of the parameter:

            * mean, sd: posterior mean and standard deviation (with few rows the mean of a covariance is above
              `covariances_`); by 'sandwich' and 'bootstrap', the estimate and its standard error.
            * mean_field_sd: the standard deviation under q itself; ratio: sd over this one.
            * lower, upper: limits of the central interval, within the parameter's range.

            It is displayed rounded; its numbers have all digits. ``summary.attrs`` has what is said above and
            below: "fit" describes the fit, "note" says how good the table is, "prior" whether the prior
            matters, "columns" which columns mislead, and a gross departure from the model. (Theory page
            "Error bars of the mixture".) With too few rows sd is inf, a mean that does not exist inf or NaN,
            and "median" a column. Student's t with two degrees of freedom or fewer has no sds; by 'lrvb'
            intervals then have no upper end.

        Raises
        ------
        ImportError
            pandas is not installed.
        ValueError
            Unknown target, number outside its range, covariances that do not exist, or a fit that is no
            strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        Examples
        --------
        Mean lengths of the petals of two kinds of irises:

        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris().data[:, 2:3]  # centimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> summary = mixture.posterior().summary("means")
        >>> summary["mean"].round(1).tolist(), summary["sd"].round(2).tolist()
        ([4.9, 1.5], [0.08, 0.03])
        >>> print(summary.attrs["note"])
        Linear response is good: sds within 10 %, means within 0.2 sd.
        """
        uncertainty, known = self._uncertainty, self._uncertainty.targets
        targets = self._checked_targets(known.reported if target is None else target)
        require_interval(interval)
        holding(uncertainty.fitted.posterior.counts, min_count)
        pd = required_pandas("summary")
        from sklearn_lrvb.reports import posterior_summary as report

        targets, left_out = _of_possible_size(uncertainty, targets, target is None)
        margins_of, feature_names = self._answer.margins_of(targets), self._mixture._feature_names
        mean_field_information, tables, reported = uncertainty.of_mean_field, {}, []
        for name in targets:
            try:
                margins = margins_of(name)
                mean_field = uncertainty.margins(name, mean_field_information)
            except NoCovarianceError as error:
                if target is not None:
                    raise
                left_out += f" Standard deviations are left out. {error}"
                continue
            labels, limits = known[name].labels(feature_names), margins.interval(interval)
            rows = report.summary_rows(labels, margins.mean, margins.deviation, mean_field.deviation, limits)
            kept = known[name].is_reported(min_count)
            tables[name] = rows[kept]
            reported.append((margins, kept))
        summary = report.PosteriorSummary(pd.concat(tables.values()))
        if not np.isfinite(summary["sd"]).all():
            medians = [margins.interval(0.0)[0][kept] for margins, kept in reported]
            summary[report.MEDIAN] = np.concatenate(medians)
        summary.attrs["fit"] = self._fit_in_a_line(min_count)
        summary.attrs["note"] = self.note + left_out + report.without_moments(summary)
        sds = np.concatenate([margins.deviation for margins, _ in reported])
        summary.attrs["prior"] = prior_reading(uncertainty, feature_names, list(tables), sds)
        rows = self._answer.rows or uncertainty.source.training_rows()
        notes = [note.text for note in self._mixture._column_notes]
        notes.append(departure_in_a_line(self._mixture, rows))
        summary.attrs["columns"] = " ".join(filter(None, notes))
        return summary

    def _checked_targets(self, target):
        """What a user's target stands for: list of str, and of Entries."""
        known = self._uncertainty.targets
        entries = functools.partial(named_entries, targets=known, feature_names=self._mixture._feature_names)
        return checked_targets(target, known.table, known.parameters, entries)

    def covariance(self, target: str | Sequence[str] = "all") -> NDArray[np.float64]:
        """Covariance of some of the parameters.

        Parameters
        ----------
        target : str or list of str, default='all'
            Which parameters, in this order (notes of :class:`Posterior`).

        Returns
        -------
        covariance : ndarray of shape (d, d)
            Symmetric, in products of the targets' units. Where there is no variance, inf on the diagonal and
            NaN beside it, but by 'sandwich' and 'bootstrap'.

        Raises
        ------
        ValueError
            Unknown target, covariances that do not exist, or a fit that is no strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        Examples
        --------
        Covariance of the mean widths of the petals of two kinds of irises, in squared millimetres. Mean field
        takes the kind of every petal as known; linear response adds what the doubtful ones contribute:

        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = 10.0 * load_iris().data[50:, 3:]  # millimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.posterior(method="lrvb").covariance("means").round(2)
        array([[0.46, 0.19],
               [0.19, 0.25]])
        >>> mixture.posterior(method="mean_field").covariance("means").round(2)
        array([[0.15, 0.  ],
               [0.  , 0.09]])
        """
        return self._answer.covariance(self._checked_targets(target))

    def std(self, target: str) -> Any:
        """Standard deviations of a parameter, in the shape of its attribute.

        Parameters
        ----------
        target : str
            Which parameter, one (notes of :class:`Posterior`).

        Returns
        -------
        std : ndarray, float, or dict of pandas.DataFrame
            In the parameter's units: of 'means' in the shape of `means_`, of 'tables' as `tables_std_`; of
            'weights' with noise one more, the last; of an entry or a difference of shape (1,). It is inf
            where there is no variance.

        Raises
        ------
        ValueError
            Unknown target, or a fit that is no strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.posterior().std("weights").round(2)
        array([0.13, 0.13])
        """
        name, *others = self._checked_targets(target)
        if others:
            raise ValueError(f"std takes one target, got {target!r}: call it once for each.")
        part, fitted = self._uncertainty.targets[name], self._uncertainty.fitted
        std = part.shaped(self._answer.margins_of([name])(name).deviation)
        return tables_by_column(fitted.columns, part, std) if name == "tables" else std

    def sample(
        self, n_draws: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> dict[str, NDArray[np.float64]]:
        """Draws of the parameters.

        Parameters
        ----------
        n_draws : int, default=1
            Number of draws, at least one. Chains of the exact posterior go on where there are fewer. By
            'bootstrap' there are at most as many as resamples; those that could not be used are left out,
            with a warning.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None takes the posterior's own, so that the same question has the same answer.
            By 'exact' it chooses among the draws of the chains, whose seed is that of the posterior.

        Returns
        -------
        draws : dict of ndarray
            "weights", which sum to one, that of noise last; "means", in units of X; "precisions" and
            "covariances", each other's inverses; with a first axis of n_draws. Of Student's t these inverses
            are "scales", "covariances" nu/(nu - 2) times as large, and fitted nu are "tails". Of latent
            classes "weights", and the parameters of every column.

        Raises
        ------
        ValueError
            Bad arguments, more draws than resamples, or a method without draws: 'mean_field', and 'sandwich'
            without groups.
        MemoryError
            The system is too large; the message names the size and the way out.

        See Also
        --------
        LRVBGaussianMixture.sample : Draws of rows rather than of parameters.

        Notes
        -----
        By linear response, weights and precisions come from the families of q, with its variances and
        correlations, and means from normal distributions given the precisions.

        Examples
        --------
        By how many minutes are long waits for a geyser longer than short ones? Any function of the
        parameters has a posterior:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> means = mixture.posterior(method="lrvb").sample(4000)["means"]
        >>> longer = means[:, 1, 0] - means[:, 0, 0]
        >>> print(f"{longer.mean():.0f} +- {longer.std():.0f}")
        27 +- 2
        """
        return self._parameters(n_draws, random_state).reported()

    def _parameters(self, n_draws, random_state):
        """Draws: DrawnParameters."""
        generator = check_random_state(self._seed if random_state is None else random_state)
        return self._answer.parameters(checked_number(n_draws), generator)

    def predict_proba(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probabilities of the components for every row, and their posterior standard deviations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows.

        Returns
        -------
        responsibilities, std : ndarray or Dask array of shape (n_samples, n_components), or with noise one \
                more
            The first are those of the fit, as of the mixture's `predict_proba`.

        Raises
        ------
        ValueError
            On bad input; or `method` is neither 'lrvb' nor 'exact'.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris().data[:, 2:3]  # centimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> responsibilities, std = mixture.posterior(method="lrvb").predict_proba([[3.0], [2.2]])
        >>> print(responsibilities[:, 0].round(2), "+-", std[:, 0].round(2))
        [1.   0.77] +- [0.   0.32]
        """
        return self._of_rows(PROBABILITIES, X)

    def score_samples(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-likelihood of every row, and its posterior standard deviation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows.

        Returns
        -------
        log_likelihood, std : ndarray or Dask array of shape (n_samples,)
            In nats. The first is that of the fit, as of the mixture's `score_samples`.

        Raises
        ------
        ValueError
            On bad input; or `method` is neither 'lrvb' nor 'exact'.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris().data[:, 2:3]  # centimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> log_likelihood, std = mixture.posterior(method="lrvb").score_samples([[5.0], [9.0]])
        >>> print(log_likelihood.round(1), "+-", std.round(1))
        [ -1.1 -14.1] +- [0.1 1.8]
        """
        return self._of_rows(SCORES, X)

    def _of_rows(self, quantity, X):
        return self._answer.of_rows(self._mixture._given_rows(X, None, self._uncertainty.fitted), quantity)

    def to_arviz(
        self, n_draws: int = 1000, random_state: int | np.random.RandomState | None = None
    ) -> xr.DataTree | arviz.InferenceData:
        """Draws, and the log likelihood of every training row, for ArviZ.

        Its plots, tables and comparisons of models then work as for a model that was sampled.

        Parameters
        ----------
        n_draws : int, default=1000
            Number of draws, those of :meth:`sample`, in one chain: r_hat of ArviZ means nothing here.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws, as in :meth:`sample`.

        Returns
        -------
        data : xarray.DataTree or arviz.InferenceData
            A DataTree for ArviZ 1.0 and later, where arviz-base is installed; otherwise the InferenceData of
            arviz 0.x. The groups, each variable with the dimensions chain (of length one) and draw in front:

            * posterior: "weights" (component; with noise label, which has "0", "1", ..., "noise"); "means"
              (component, feature); "precisions", "covariances" and, of heavy tails, "scales" with the axes of
              the attribute, named component, feature and other_feature; fitted "tails" (component where each
              has its own).
            * where rows X in memory were passed to ``posterior``, log_likelihood: "X" (row), in nats, without
              rows of weight zero; observed_data: "X" (row, feature); and constant_data: "sample_weight"
              (row), where it was given.

        Raises
        ------
        ImportError
            No ArviZ is installed.
        ValueError
            As :meth:`sample`.
        MemoryError
            The system is too large, or the log likelihood takes more than 4 GiB; the message names the size
            and the way out.

        Notes
        -----
        A row of weight w counts as w rows, which ``loo`` of ArviZ leaves out together. It differs from
        `loo_score_samples` by the order of ``leverage(X)``: the logarithm of an average over draws, in place
        of a density at averages. (Theory page "Influence", leave-one-out scores.) Leave components without
        rows, whose draws are the prior's, out of plots:
        ``data.posterior.sel(component=mixture.weights_.argsort()[::-1][:mixture.n_occupied_])``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris(as_frame=True).data
        >>> mixture = LRVBGaussianMixture(n_components=3, random_state=0).fit(X)
        >>> data = mixture.posterior(X).to_arviz()  # doctest: +SKIP
        >>> dict(data.posterior["means"].sizes)  # doctest: +SKIP
        {'chain': 1, 'draw': 1000, 'component': 3, 'feature': 4}
        >>> means = data.posterior["means"].sel(component=0, feature="petal width (cm)")  # doctest: +SKIP
        """
        require_arviz()
        sampler, given, rows = PosteriorSampler(self._uncertainty), self._given, None
        if given is not None and given.is_in_memory:
            rows, numbers = given.counted(), np.flatnonzero(given.which_count())
            sampler.require_log_likelihood(checked_number(n_draws), rows)
        parameters = self._parameters(n_draws, random_state)
        datasets = {"posterior": self._mixture._posterior_dataset(parameters.reported())}
        if rows is not None:
            log_likelihood = sampler.log_likelihood(rows, parameters)
            names = self._mixture._feature_names
            datasets |= datasets_of_rows(log_likelihood, rows.X, rows.sample_weight, numbers, names)
        return in_arviz(datasets)

    def plot(self, **kwargs: Any) -> Any:
        """Credible intervals of the parameters, and beneath them those by mean field.

        Parameters
        ----------
        **kwargs : dict
            Keyword arguments of `PosteriorIntervalDisplay.from_estimator`, such as ``target="weights"``; of
            latent classes of `ClassProfilesDisplay.from_estimator`.

        Returns
        -------
        display : PosteriorIntervalDisplay or ClassProfilesDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            matplotlib is not installed.
        ValueError
            On a bad argument.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(load_iris().data[:, 2:3])
        >>> mixture.posterior().plot(target="weights")
        PosteriorIntervalDisplay: 95 % intervals of weights by LRVB and mean field; 1 panel, 2 parameters. \
Linear response is good: sds within 10 %, means within 0.2 sd.
        """
        from sklearn_lrvb import displays

        display = getattr(displays, self._mixture._display_of_intervals)
        return display.from_estimator(self._mixture, self, **kwargs)


def _of_possible_size(uncertainty, targets, is_default):
    """The targets, without those of the default table that need too large a matrix; and a note, str."""
    try:
        uncertainty.require_sizes(targets)
    except MemoryError as error:
        kept = [name for name in targets if name in ("weights", "means")]
        if not is_default or kept == targets:
            raise
        uncertainty.require_sizes(kept)
        left_out = " and ".join(name.replace("_", " ") for name in targets if name not in kept)
        return kept, f" Left out: {left_out}. {error}"
    return targets, ""
