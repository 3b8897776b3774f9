"""LRVBLatentClassMixture: its parameters, fitting, prediction, and scikit-learn's contract."""

from __future__ import annotations

import copy
import functools
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_lrvb.answers.prior_sensitivity import in_units_of
from sklearn_lrvb.answers.targets import distinct
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.estimators import attributes
from sklearn_lrvb.estimators.alternatives import ClassKind
from sklearn_lrvb.estimators.arguments import checked_targets, require_rows_first, require_samples
from sklearn_lrvb.estimators.base import FEATURES, BayesianMixture
from sklearn_lrvb.estimators.callbacks import NO_TASK, Lines, Progress, begun_task
from sklearn_lrvb.estimators.fitted import FittedClasses
from sklearn_lrvb.estimators.latent_class_arguments import (
    given_responsibilities,
    require_classes,
    resolve_prior,
)
from sklearn_lrvb.estimators.latent_class_rows import (
    filled_rows,
    joined_rows,
    known_of_classes,
    notes_of_columns,
    overdispersion,
    sampled_rows,
)
from sklearn_lrvb.estimators.maximum_likelihood import maximum_log_likelihood
from sklearn_lrvb.family_mixture.posterior import Sums
from sklearn_lrvb.family_mixture.prior import WEIGHT_CONCENTRATION
from sklearn_lrvb.family_mixture.prior_changes import prior_sensitivity
from sklearn_lrvb.family_mixture.starts import SAMPLE_ROWS, StartingResponsibilities, kinds_of_starts
from sklearn_lrvb.family_mixture.targets import names_in_draws
from sklearn_lrvb.mixed_tables.decoding import completed_table
from sklearn_lrvb.mixed_tables.given_tables import described_table, rows_of_table
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.moves import Moves
from sklearn_lrvb.mixture.multi_start import MOST_OPTIMA, MultiStart
from sklearn_lrvb.mixture.prediction import most_probable_components
from sklearn_lrvb.mixture.search import sampled
from sklearn_lrvb.reports import dataset
from sklearn_lrvb.rows import blas_threads, require_table

_POSITIVE = Interval(Real, 0.0, None, closed="neither")


class LRVBLatentClassMixture(BayesianMixture):
    """Latent classes of the rows of a table with numbers, categories and counts, with calibrated uncertainty.

    Latent class analysis (categories), latent profile analysis (numbers), and both at once: every row has a
    latent class, and given the class its columns are independent. The model is Bayesian, fitted by mean-field
    variational Bayes to its optimum. From the one fit it gives error bars of weights and of what describes
    each class by linear response (LRVB), and the influence of every row. Values may be missing anywhere.

    Parameters
    ----------
    n_components : int, default=2
        Number of classes, K; with surplus ones, `n_occupied_` counts those that hold rows.

    columns : 'auto' or dict, default='auto'
        What the columns are. 'auto': columns of two values are 'binary', others of floats and integers
        'numeric' (normal given the class), all others 'categorical'. A dict says otherwise of some, such as
        ``{"visits": "count", "id": "ignore"}``. Its keys are names, positions, tuples of them, or selectors
        such as :func:`sklearn.compose.make_column_selector`; its values 'numeric', 'categorical', 'binary',
        'count' (Poisson), 'duration' (exponential) or 'ignore'. Codes of categories look like numbers: a fit
        warns of columns of at most ten different whole numbers until it says what they are.

    n_init : int, default=10
        Number of starts; the best fit is kept. The first is run to its end, the others for a few steps. The
        better half of them is run to the end, and those less than 10 nats below the best. Of many rows, they
        are compared on a sample of 16,384.

    init_params : {'kmeans', 'k-means++', 'random_from_data'} or array-like, default='kmeans'
        How the first classes of the rows are made: those of the nearest of K centers, found by k-means, by
        its seeding, or at random. With 'kmeans' the starts are of the three kinds in turn. An array of shape
        (n_samples, n_components), of probabilities whose rows sum to one, is the only start.

    prior : {'learned', 'fixed'}, default='learned'
        'learned': how alike classes are is learned from the rows, as `category_concentration_prior` and
        `rate_shape_prior`, where these are None; and classes are expected to have categories as often as the
        whole table has. 'fixed': all numbers of the prior are given, or their defaults.

    weight_concentration_prior : float or None, default=None
        Concentration of the Dirichlet prior of the weights; None means ``1 / n_components``, by which surplus
        classes empty themselves.

    category_concentration_prior : float or None, default=None
        Concentration of the Dirichlet prior of the probabilities of every column with categories, for each of
        them, or on average where it is learned. None means that it is learned, or 1.

    mean_precision_prior : float or None, default=None
        Number of prior observations of the mean of a numeric column in a class; None means 0.1. The prior
        mean is that of the column.

    degrees_of_freedom_prior, variance_prior : float or None, default=None
        nu and C of a numeric column: its precision in a class is gamma with shape nu / 2 and rate C s^2 / 2,
        s being the column's standard deviation. None means 2 and 1.

    rate_shape_prior : float or None, default=None
        a of a column of counts or durations: its rate in a class is gamma with shape a, and its mean is the
        rate of the whole column. None means that it is learned, or 1.

    tol : float, default=1e-3
        The fit stops when no more than `tol` of the lower bound is still to be gained, in nats; with
        ``solver="coordinate_ascent"`` when the last iteration gained less.

    max_iter : int, default=1000
        Largest number of steps of a start.

    solver : {'newton', 'coordinate_ascent'}, default='newton'
        'newton': accelerated iterations and Newton steps, to the optimum. 'coordinate_ascent': iterations
        alone.

    moves : {'search', 'auto', 'merge'} or None, default='search'
        Moves between optima, each made only where it raises the lower bound. 'auto' merges or deletes classes
        once one is empty, 'merge' does not wait for that. 'search': as 'auto'; then, from the best three
        optima that the starts lead to, classes are merged and split until nothing raises the bound, and
        `max_iter` holds for each ascent between two moves. With ``solver="coordinate_ascent"`` there are
        none.

    unknown : {'missing', 'error'}, default='missing'
        What becomes of categories, in rows that are not the training rows, that the fit has not seen: missing
        values, with a warning, or a ValueError.

    random_state : int, RandomState instance or None, default=None
        Seeds the starts and :meth:`sample`.

    verbose, verbose_interval : int, default=None and 10
        1 prints starts, steps and the progress of methods that take long, every `verbose_interval` steps or
        blocks of rows; 2 also gains and times. None: one line at a terminal or in a notebook while a method
        takes long (not with ``SKLEARN_LRVB_PROGRESS=0`` in the environment).

    n_jobs : int or None, default=None
        Threads over blocks of rows; None is one. Results do not depend on it beyond round-off.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Posterior means of the weights, the shares of the classes, the largest first.

    tables_ : dict of pandas.DataFrame
        What describes the classes, by the name of the column: a row for every class, and a column for every
        category (its probability), for 'mean' and 'sd', or for 'rate'.

    weights_std_, tables_std_ : ndarray, and dict of pandas.DataFrame
        Error bars: posterior standard deviations, like the attribute.

    learned_prior_ : pandas.DataFrame
        The arguments of the prior that were learned: a row for each, with its 'value' and its 'sd'.

    columns_ : pandas.DataFrame
        What the columns are: a row for each with its kind and its categories. ``columns_.attrs["notes"]`` has
        what the fit has warned of, such as which columns of numbers look like codes.

    labels_ : ndarray of shape (n_samples,)
        The most probable class of every training row; only of rows in memory.

    converged_, n_iter_, n_occupied_ : bool, int and int
        Whether `tol` was reached; steps of the best start, moves included; and the number of classes that
        hold rows, those with an expected count of one half or more.

    lower_bound_, lower_bounds_ : float, and list of float
        Lower bound on log p(X), the evidence, in nats, with every constant: comparable across `n_components`.
        Of a learned prior it is that of the most probable values. The list has that after every step of the
        best start; it never falls.

    n_features_in_, feature_names_in_ : int, and ndarray of shape (`n_features_in_`,)
        Number of columns of the fit, and their names where all are strings.

    See Also
    --------
    LRVBGaussianMixture : Clusters of numbers that depend on each other within a cluster.

    Notes
    -----
    * Nothing is filled in where values are missing (at random): error bars are those of what is known.
    * Equal rows of categories are counted once, so that a survey of a million rows fits in the time of its
      patterns.
    * X may be a data frame of pandas or polars, an array, a source of batches (a list, or a function that
      returns an iterator, of tables or of pairs ``(rows, weights)``), or a Dask data frame.
    * The classes come in the order of their weights. An error or an interrupt leaves the estimator as it was.

    References
    ----------
    R. Giordano and T. Broderick, arXiv:1502.07685.

    Examples
    --------
    Answers of twelve people to three questions. What do two kinds of people say, and how sure is that?

    >>> import pandas as pd
    >>> from sklearn_lrvb import LRVBLatentClassMixture
    >>> answers = pd.DataFrame({
    ...     "smokes": ["no", "no", "yes", "no", "yes", "yes", "no", "yes", "no", "no", "yes", "no"],
    ...     "sports": ["yes", "yes", "no", "yes", "no", None, "yes", "no", "yes", "no", "no", "yes"],
    ...     "age": [23, 31, 58, 27, 49, 61, 35, 55, 29, 33, None, 26],  # years
    ... })
    >>> classes = LRVBLatentClassMixture(n_components=2, random_state=0).fit(answers)
    >>> classes.tables_["smokes"].round(2)
    smokes    no   yes
    class
    0       0.97  0.03
    1       0.06  0.94
    >>> print(classes.tables_["age"]["mean"].to_numpy().round(), "+-",
    ...       classes.tables_std_["age"]["mean"].to_numpy().round())
    [29. 55.] +- [2. 4.]
    """

    _parameter_constraints: dict = {
        **BayesianMixture._parameter_constraints,
        "columns": [StrOptions({"auto"}), dict],
        "init_params": [StrOptions({"kmeans", "k-means++", "random_from_data"}), "array-like"],
        "prior": [StrOptions({"learned", "fixed"})],
        "weight_concentration_prior": [None, _POSITIVE],
        "category_concentration_prior": [None, _POSITIVE],
        "mean_precision_prior": [None, _POSITIVE],
        "degrees_of_freedom_prior": [None, _POSITIVE],
        "variance_prior": [None, _POSITIVE],
        "rate_shape_prior": [None, _POSITIVE],
        "unknown": [StrOptions({"missing", "error"})],
    }

    def __init__(
        self,
        n_components=2,
        *,
        columns="auto",
        n_init=10,
        init_params="kmeans",
        prior="learned",
        weight_concentration_prior=None,
        category_concentration_prior=None,
        mean_precision_prior=None,
        degrees_of_freedom_prior=None,
        variance_prior=None,
        rate_shape_prior=None,
        tol=1e-3,
        max_iter=1000,
        solver="newton",
        moves="search",
        unknown="missing",
        random_state=None,
        verbose=None,
        verbose_interval=10,
        n_jobs=None,
    ):
        self.n_components = n_components
        self.columns = columns
        self.n_init = n_init
        self.init_params = init_params
        self.prior = prior
        self.weight_concentration_prior = weight_concentration_prior
        self.category_concentration_prior = category_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.variance_prior = variance_prior
        self.rate_shape_prior = rate_shape_prior
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.moves = moves
        self.unknown = unknown
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.n_jobs = n_jobs

    _fitted_class = FittedClasses
    _kind_of_mixture = ClassKind
    _display_of_intervals = "ClassProfilesDisplay"

    # Fitted attributes that are computed where they are read.
    tables_ = attributes.tables_
    tables_std_ = attributes.tables_std_
    columns_ = attributes.columns_
    learned_prior_ = attributes.learned_prior_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), Dask data frame or source of batches
            Training rows. NaN, None or NA where a value is missing.

        y : Ignored
            Present for API consistency by convention.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts, non-negative.

        Returns
        -------
        self : LRVBLatentClassMixture

        Raises
        ------
        ValueError
            On bad input; it names the column, what is wrong, how much, where, and what to do.

        Examples
        --------
        Answers of twelve people. How many are in each of two classes, and how sure is that?

        >>> import pandas as pd
        >>> from sklearn_lrvb import LRVBLatentClassMixture
        >>> answers = pd.DataFrame({
        ...     "smokes": ["no", "no", "yes", "no", "yes", "yes", "no", "yes", "no", "no", "yes", "no"],
        ...     "sports": ["yes", "yes", "no", "yes", "no", None, "yes", "no", "yes", "no", "no", "yes"],
        ...     "age": [23, 31, 58, 27, 49, 61, 35, 55, 29, 33, None, 26],  # years
        ... })
        >>> classes = LRVBLatentClassMixture(n_components=2, random_state=0).fit(answers)
        >>> print((12 * classes.weights_).round(1), "+-", (12 * classes.weights_std_).round(1))
        [6.9 5.1] +- [1.6 1.6]
        """
        self._fit(X, sample_weight, y)
        self._warn_of_columns()
        return self

    def _fit(self, X, sample_weight, y=None, *, optima=None):
        """Fit; add the optima that were reached, of many rows the best three, to a list if it is given."""
        named = copy.copy(self)  # It gets the number and names of the features.
        with blas_threads(self.n_jobs):
            columns = described_table(named, X, sample_weight)
            features = {name: vars(named)[name] for name in FEATURES if name in vars(named)}
            given = rows_of_table(named, columns, X, sample_weight, is_training=True)
            counted = given.counted()
            require_classes(counted, self.n_components)
            rows = joined_rows(counted, columns)
            prior = resolve_prior(self, rows, columns.columns)
            starts = self._starts(given, counted, rows, columns, prior)
            is_drawn = isinstance(self.init_params, str)

            def attributes_of(fit):
                fitted = FittedClasses(fit.posterior, columns, fit.path)
                return self._attributes_of(features, fitted, rows, is_drawn, fit)

            metadata = None if sample_weight is None else {"sample_weight": sample_weight}
            n_tasks = len(starts) + MOST_OPTIMA * (self.moves == "search")
            with begun_task(self, "fit", n_tasks, X=X, y=y, metadata=metadata) as task:
                best = self._best_fit(starts, rows, task, attributes_of, optima)
                attributes = attributes_of(best)
                attributes["_column_notes"] = notes_of_columns(rows, best.posterior, columns)
                # One class, and too few classes among those that are compared, are expected to be wide.
                is_asked = self.n_components > 1 and optima is None
                overdispersed = overdispersion(rows, best.posterior) if is_asked else []
                if given.is_in_memory:
                    attributes["labels_"] = most_probable_components(given, best.posterior)
                else:  # Rows that are not in memory are not kept.
                    attributes["_last_uncertainty"].source.release_rows(best.e_step_result)
                # What was fitted before goes, also what this fit does not have.
                kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
                self.__dict__ = {**kept, **attributes}
                task.end({})
        if overdispersed:
            place, k, ratio = max(overdispersed, key=lambda found: found[2])
            equal, transformed = columns.columns[place].family.dispersion
            warn_caller(
                f"The variance of column {columns.columns[place].name!r} in class {k} is {ratio:.1f} times "
                f"{equal}: error bars are too small, and classes may be too many. (a) Let its {transformed} "
                "be 'numeric'. (b) Raise n_components, if you expect more kinds of rows. "
                "(c) posterior(method='sandwich') has error bars that hold all the same."
            )
        if not best.converged and self.max_iter > 0:
            warn_caller(
                "A callback stopped the best start before it converged."
                if best.stopped
                else f"The fit did not converge in {best.n_iter} steps. Raise max_iter or n_init, or check "
                "for columns that say the same.",
                ConvergenceWarning,
            )

    def fit_predict(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.intp]:
        """Fit the classes, and return the most probable one of every training row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), Dask data frame or source of batches
            Training rows.

        y : Ignored
            Present for API consistency by convention.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts, as in :meth:`fit`.

        Returns
        -------
        labels : ndarray or Dask array of shape (n_samples,)
            The same as ``fit(X).predict(X)``.

        Raises
        ------
        ValueError
            As :meth:`fit`.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn_lrvb import LRVBLatentClassMixture
        >>> answers = pd.DataFrame({
        ...     "smokes": ["no", "no", "yes", "no", "yes", "yes", "no", "yes", "no", "no", "yes", "no"],
        ...     "sports": ["yes", "yes", "no", "yes", "no", None, "yes", "no", "yes", "no", "no", "yes"],
        ...     "age": [23, 31, 58, 27, 49, 61, 35, 55, 29, 33, None, 26],  # years
        ... })
        >>> classes = LRVBLatentClassMixture(n_components=2, random_state=0)
        >>> classes.fit_predict(answers)
        array([0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0])
        """
        return self.fit(X, y, sample_weight).predict(X)

    def _starts(self, given, counted, rows, columns, prior):
        """The starts of a fit: callables (Ascent) -> Fit, the state before the first step."""
        if not isinstance(self.init_params, str):
            if not given.is_in_memory:
                raise ValueError(
                    "init_params of an array needs X in memory, as a row of it belongs to each row of X."
                )
            kept = given.which_count()
            responsibilities = given_responsibilities(self.init_params, self.n_components, kept)
            start = prior.model.first_posterior(counted, prior, responsibilities)
            return [lambda ascent: ascent.start_at(start)]
        random_state = check_random_state(self.random_state)
        kinds = kinds_of_starts(self.init_params, self.n_init)
        kinds = kinds[:1] if self.n_components == 1 else kinds
        centers = StartingResponsibilities(rows, columns.columns, self.n_components)

        def drawn(kind, ascent):
            return ascent.start_from(centers.responsibilities(kind, random_state), prior)

        return [functools.partial(drawn, kind) for kind in kinds]

    def _best_fit(self, starts, rows, task, attributes_of, optima):
        """The state with the highest lower bound over the starts, its classes by falling weight.

        Of many rows, several starts are compared and searched from on a sample of them, and the best optima
        go on with all.
        """
        is_newton, moves, search = self.solver == "newton", None, None
        if self.moves is not None and is_newton and self.n_components > 1:
            moves = Moves(only_with_surplus=self.moves != "merge")
            search = Moves(searches=True) if self.moves == "search" else None
        ascent = Ascent(rows, self.tol, self.max_iter, moves=moves)
        sample = sampled(rows, SAMPLE_ROWS)
        if len(starts) > 1 and sample is not rows:
            silent = Progress(Lines(0, 1), NO_TASK, self.max_iter, attributes_of)
            multi_start = MultiStart(replace(ascent, rows=sample, on_step=silent.step), is_newton, silent)
            multi_start.best(starts, search)
            posteriors = [optimum.posterior for optimum in multi_start.best_optima()]
            starts = [functools.partial(Ascent.start_at, posterior=posterior) for posterior in posteriors]
            search = None
        max_steps = self.max_iter if search is None else None
        progress = Progress(Lines(self.verbose, self.verbose_interval), task, max_steps, attributes_of)
        reporting = replace(ascent, on_step=progress.step, on_move=progress.move)
        multi_start = MultiStart(reporting, is_newton, progress)
        best = multi_start.best(starts, search)
        if optima is not None:
            optima.extend(multi_start.optima.values())
        return self._in_order(best)

    # What comparisons of fits ask for.

    def _in_order(self, fit):
        order = np.argsort(-fit.posterior.counts, kind="stable")
        if (order == np.arange(len(order))).all():
            return fit
        result = replace(fit.e_step_result, moments=Sums(fit.e_step_result.moments.values[order]))
        return replace(fit, posterior=fit.posterior.reordered(order), e_step_result=result, information=None)

    def _attributes_at(self, rows, fit):
        fitted = self._fitted.at(fit.posterior, fit.path)
        notes = notes_of_columns(rows, fit.posterior, fitted.columns)
        return {**self._attributes_of({}, fitted, rows, False, fit), "_column_notes": notes}

    def _another_prior(self):
        prior, changed, words = self._fitted.posterior.prior, {}, []
        learned = () if prior.learned is None else prior.learned.names
        # How alike classes are in size is not learned.
        factors = {WEIGHT_CONCENTRATION: 0.5} if learned else {}
        for family in prior.families:
            factors |= {name: own for name, own in family.hyperparameters.items() if name not in learned}
        for share, factor in (("a tenth", 0.1), ("half", 0.5)):
            names = [name for name, own in factors.items() if own == factor]
            changed |= {name: factor * prior.hyperparameter(name) for name in names}
            words += [f"{share} of {' and of '.join(names)}"] if names else []
        return changed, ", ".join(words)

    # What the shared methods ask for.

    @property
    def _feature_names(self):
        """Names of the columns that are not ignored, list of str."""
        return [str(name) for name in self._fitted.columns.names]

    def _given_rows(self, X, sample_weight, fitted):
        """Rows that a user has passed, encoded."""
        require_rows_first(X)
        return rows_of_table(self, fitted.columns, X, sample_weight)

    def _posterior_dataset(self, draws):
        """Draws of the parameters for ArviZ: weights by class, and a variable for every column."""
        coords, axes = {"component": np.arange(self.n_components)}, {"weights": ("component",)}
        tables = self.tables_.values()
        for name, table in zip(names_in_draws(self._fitted.columns.columns), tables, strict=True):
            axes[name] = ("component", f"{name}_value")
            values = table.columns.tolist()
            coords[f"{name}_value"] = distinct([str(v) for v in values], lambda v=values: list(map(repr, v)))
        return dataset({name: (axes[name], values) for name, values in draws.items()}, coords, True)

    # The mixture.

    def sample(self, n_samples: int = 1) -> tuple[Any, NDArray[np.intp]]:
        """Draw rows from the mixture at `weights_` and `tables_`.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows, at least one.

        Returns
        -------
        X : table like the training one, without ignored columns
            Class by class.

        y : ndarray of shape (n_samples,)
            The class of every row.

        Raises
        ------
        ValueError
            `n_samples` is no whole number of at least one.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn_lrvb import LRVBLatentClassMixture
        >>> answers = pd.DataFrame({
        ...     "smokes": ["no", "no", "yes", "no", "yes", "yes", "no", "yes", "no", "no", "yes", "no"],
        ...     "sports": ["yes", "yes", "no", "yes", "no", None, "yes", "no", "yes", "no", "no", "yes"],
        ...     "age": [23, 31, 58, 27, 49, 61, 35, 55, 29, 33, None, 26],  # years
        ... })
        >>> classes = LRVBLatentClassMixture(n_components=2, random_state=0).fit(answers)
        >>> rows, labels = classes.sample(1000)
        >>> rows.columns.tolist(), labels.shape
        (['smokes', 'sports', 'age'], (1000,))
        """
        fitted = self._fitted
        require_samples(n_samples)
        random_state, weights = check_random_state(self.random_state), self.weights_
        counts = random_state.multinomial(n_samples, weights / weights.sum())
        rows = sampled_rows(fitted.posterior, counts, random_state)
        return fitted.columns.decoded(rows), np.repeat(np.arange(len(counts)), counts)

    def impute(self, X: ArrayLike, *, return_std: bool = False) -> Any:
        """Fill missing values by what is expected of them, given the values of the row that are there.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), in memory
            Any rows, with NaN, None or NA where a value is missing.

        return_std : bool, default=False
            Whether to return how uncertain the filled values are, too.

        Returns
        -------
        imputed : table like X, without ignored columns
            X with its missing values filled: numbers and counts by their means, categories by the most
            probable one. All other values are as they were, also categories that the fit has not seen.
            Columns keep their dtypes, where these can hold what they are filled with.

        std : ndarray of shape (n_samples, number of columns)
            Standard deviations of filled numbers and counts, because the row's class is uncertain and classes
            are wide, at the posterior means of the parameters. Of filled categories, the probability that it
            is another one. Zero where a value is there. Only if `return_std`.

        Raises
        ------
        ValueError
            On bad input, or rows that are not in memory.

        Examples
        --------
        Does a smoker of 61 years do sports, and how old is a smoker who does none?

        >>> import pandas as pd
        >>> from sklearn_lrvb import LRVBLatentClassMixture
        >>> answers = pd.DataFrame({
        ...     "smokes": ["no", "no", "yes", "no", "yes", "yes", "no", "yes", "no", "no", "yes", "no"],
        ...     "sports": ["yes", "yes", "no", "yes", "no", None, "yes", "no", "yes", "no", "no", "yes"],
        ...     "age": [23, 31, 58, 27, 49, 61, 35, 55, 29, 33, None, 26],  # years
        ... })
        >>> classes = LRVBLatentClassMixture(n_components=2, random_state=0).fit(answers)
        >>> table, std = classes.impute(answers, return_std=True)
        >>> table.loc[[5, 10]].round(0)
           smokes sports   age
        5     yes     no  61.0
        10    yes     no  55.0
        >>> std[10].round(0)
        array([0., 0., 8.])
        """
        require_table(X, "impute, which fills tables,")
        fitted = self._fitted
        values, spreads = filled_rows(self._given_rows(X, None, fitted), fitted.posterior)
        table, is_missing = completed_table(fitted.columns, X, values)
        # A category that the fit has not seen is as good as missing for the others, but it stays.
        return (table, np.where(is_missing, spreads, 0.0)) if return_std else table

    def influence(
        self,
        X: ArrayLike,
        *,
        target: str = "tables",
        perturb: str = "weight",
        out: NDArray[np.floating] | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NDArray[np.floating]:
        """How much each row moves each posterior mean: d E[target] / d weight of the row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), Dask data frame or source of batches
            Any rows; each is treated as a training row of weight 1.

        target : {'tables', 'weights', 'log_weights'}, default='tables'
            Which posterior means are moved.

        perturb : {'weight'}, default='weight'
            How often the row counts. (Categories and counts have no location that could be moved a little.)

        out : ndarray, default=None
            Where to write the result: a C-contiguous array of its shape, of float64 or float32.

        groups : array-like of shape (n_samples,), default=None
            Labels that say which rows belong together. The result is then the influence of every group, in
            the order of ``numpy.unique(groups)``.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the fit, where there were any; only with `groups`.

        Returns
        -------
        influence : ndarray of shape (n_samples, n_components) or (n_samples, n_components, n_values)
            In units of the target per row; the values of 'tables' are in the order of `posterior_names_`.
            Exact derivatives of the fit (paper, Equation 14). Minus the influence is the effect of deleting
            the row, to first order. The prior is held fixed, also where its defaults came from X.

        Raises
        ------
        ValueError
            On bad input, or a fit that is no strict local optimum.

        Examples
        --------
        Which answer makes the class of smokers larger?

        >>> import pandas as pd
        >>> from sklearn_lrvb import LRVBLatentClassMixture
        >>> answers = pd.DataFrame({
        ...     "smokes": ["no", "no", "yes", "no", "yes", "yes", "no", "yes", "no", "no", "yes", "no"],
        ...     "sports": ["yes", "yes", "no", "yes", "no", None, "yes", "no", "yes", "no", "no", "yes"],
        ...     "age": [23, 31, 58, 27, 49, 61, 35, 55, 29, 33, None, 26],  # years
        ... })
        >>> classes = LRVBLatentClassMixture(n_components=2, random_state=0).fit(answers)
        >>> classes.influence(answers, target="weights")[:4, 1].round(2)
        array([-0.03, -0.03,  0.04, -0.03])
        """
        return super().influence(
            X, target=target, perturb=perturb, out=out, groups=groups, sample_weight=sample_weight
        )

    def prior_sensitivity(
        self, target: str = "tables", per_std: bool = False
    ) -> dict[str, NDArray[np.float64]]:
        """How the posterior means move with the hyperparameters, without refitting.

        Parameters
        ----------
        target : {'tables', 'weights', 'log_weights'}, default='tables'
            Which posterior means.

        per_std : bool, default=False
            Whether the moves are in posterior standard deviations.

        Returns
        -------
        sensitivity : dict of ndarray
            For each argument of the constructor that ends in ``_prior`` and has a meaning for this table,
            the derivatives in it: of 'weights' of shape (n_components,), of 'tables' (n_components,
            n_values), in the order of `posterior_names_`. They are exact derivatives of the fit. Where an
            argument is learned they are in what it is expected to be, 1. (Theory page "Latent classes".)

        Raises
        ------
        ValueError
            There is no such target, or the fit is no strict local optimum.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn_lrvb import LRVBLatentClassMixture
        >>> answers = pd.DataFrame({
        ...     "smokes": ["no", "no", "yes", "no", "yes", "yes", "no", "yes", "no", "no", "yes", "no"],
        ...     "sports": ["yes", "yes", "no", "yes", "no", None, "yes", "no", "yes", "no", "no", "yes"],
        ...     "age": [23, 31, 58, 27, 49, 61, 35, 55, 29, 33, None, 26],  # years
        ... })
        >>> classes = LRVBLatentClassMixture(n_components=2, random_state=0).fit(answers)
        >>> moves = classes.prior_sensitivity("weights", per_std=True)
        >>> for name in ("weight_concentration_prior", "mean_precision_prior"):
        ...     print(name, moves[name].round(2))
        weight_concentration_prior [-0.09  0.09]
        mean_precision_prior [-0.  0.]
        """
        uncertainty = self._uncertainty
        (target,) = checked_targets([target], uncertainty.targets.table, ())
        moves, shaped = prior_sensitivity(uncertainty, target), uncertainty.targets[target].shaped
        if per_std:
            std = uncertainty.flat_std(target)
            moves = {name: in_units_of(std, move) for name, move in moves.items()}
        return {name: shaped(move) for name, move in moves.items()}

    def _counted_rows(self, given, fitted):
        """Rows without those of weight zero; equal ones are joined where that pays."""
        return joined_rows(given.counted(), fitted.columns)

    # What other programs for latent classes report.

    def _likelihood(self, X, sample_weight):
        """As for every mixture, at the maximum of the likelihood next to the fit."""
        fitted = self._fitted
        posterior, held = fitted.posterior, occupied(fitted.posterior.counts)
        rows = self._training_rows(X, sample_weight, fitted)
        self._uncertainty.source.check_training_rows(rows)
        per_class = sum(family.n_columns * len(family.scalar_kinds) for family in posterior.prior.families)
        n_free = np.count_nonzero(held) * (1 + per_class) - 1
        return maximum_log_likelihood(rows, posterior, held), n_free, rows.total_weight

    def relative_entropy(self, X: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
        """How far apart the classes are: 1 where every row is of one for certain, 0 where nothing is known.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Any rows.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        relative_entropy : float
            One less the mean entropy of the probabilities of the classes over log K; 1 for a single class.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn_lrvb import LRVBLatentClassMixture
        >>> answers = pd.DataFrame({
        ...     "smokes": ["no", "no", "yes", "no", "yes", "yes", "no", "yes", "no", "no", "yes", "no"],
        ...     "sports": ["yes", "yes", "no", "yes", "no", None, "yes", "no", "yes", "no", "no", "yes"],
        ...     "age": [23, 31, 58, 27, 49, 61, 35, 55, 29, 33, None, 26],  # years
        ... })
        >>> classes = LRVBLatentClassMixture(n_components=2, random_state=0).fit(answers)
        >>> print(f"{classes.relative_entropy(answers):.2f}")
        1.00
        """
        fitted = self._fitted
        if fitted.posterior.n_components == 1:
            return 1.0
        rows = self._given_rows(X, sample_weight, fitted).counted()
        coordinates = fitted.posterior.model.coordinates(fitted.posterior)
        known = rows.total(functools.partial(known_of_classes, coordinates))
        return min(float(known / (rows.total_weight * np.log(fitted.posterior.n_components))), 1.0)
