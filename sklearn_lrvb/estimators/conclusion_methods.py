"""Which rows belong together, and which rows decide: methods of a mixture estimator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from sklearn_lrvb.answers.conclusions import (
    Optimum,
    RivalConclusion,
    check_rival,
    checked_conclusion,
)
from sklearn_lrvb.answers.deciding_rows import MOST_REFITS, DecidingRows, GreedySearch
from sklearn_lrvb.answers.partitions import (
    PartitionPosterior,
    check_sizes,
    note_of_number,
    number_of_rows,
    partition_posterior,
)
from sklearn_lrvb.answers.row_effects import SingleRows, WholeGroups
from sklearn_lrvb.estimators.arguments import checked_method, checked_number
from sklearn_lrvb.estimators.sampling_methods import SamplingMethods
from sklearn_lrvb.rows import blas_threads, row_groups


class ConclusionMethods(SamplingMethods):
    """Methods of a mixture estimator about conclusions; `number_of_clusters` asks for the hooks too."""

    # Parameters of the fits of which P(K | X) is asked: no component is emptied by a move.
    _compared_with: ClassVar[dict[str, Any]] = {"moves": None, "solver": "newton"}

    @abstractmethod
    def _fit(self, X, sample_weight, y=None, *, ends=None):
        """Fit, and add the optima that were reached, Fit, to a list ``ends``, if it is given."""

    @abstractmethod
    def _attributes_at(self, rows, fit):
        """Fitted attributes at another optimum of the same model: of rows, from a Fit."""

    @abstractmethod
    def _another_prior(self):
        """Parameters of another prior, for smaller clusters, further apart; and what is other, in words."""

    def _in_order(self, fit):
        """The state of a fit with its components in the order in which a fit reports them: Fit."""
        return fit

    def _undefined_criteria(self):
        """The criteria of `number_of_clusters` that do not compare fits, and why: dict of str."""
        return {}

    def partition_posterior(
        self,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        n_draws: int = 400,
        method: str = "auto",
        max_rows: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> PartitionPosterior:
        """Which rows belong together, and how sure that is: the posterior of their partition into clusters.

        `predict` says which component is the most probable for each row, as if the parameters were known.
        Here they are drawn from their posterior, and all rows are assigned anew in each draw. What counts is
        which rows are together, so that nothing depends on how components are numbered.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any. A row that counts w times is w rows of the
            partition; with weights that are no whole numbers, rows are sampled in proportion to them. Rows of
            weight zero are placed in the clusters of the others.

        n_draws : int, default=400
            Number of draws, at least two.

        method : {'auto', 'lrvb', 'exact'}, default='auto'
            How parameters are drawn, as in :meth:`sample_posterior`.

        max_rows : int, default=1000
            Most rows from which clusters are found: a random sample, if there are more. All others are placed
            in these clusters, by a pass.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws and of the search, not the estimator's own.

        Returns
        -------
        partition : PartitionPosterior
            Displayed as a sentence and numbers; its attributes are described there. Among them are the
            `labels` of one partition that stands for the posterior, the `certainty` of every row and the
            `stability` of every cluster. Of rows on Dask, what has a value for every row is lazy.

        Raises
        ------
        ValueError
            Bad arguments; X is missing or not what was fitted; fitted arrays were changed since the fit; the
            fit is no strict local optimum, or there is no exact posterior (:meth:`posterior_check`).
        MemoryError
            The draws, or the system, are too large; the message names the size and the way out.

        See Also
        --------
        predict : The most probable component of each row.
        predict_proba : Probabilities of the components, at the estimates.
        sample_posterior : The draws of the parameters.

        Notes
        -----
        The partition has the smallest mean *variation of information* to the draws that a search finds. The
        number of components is that of the fit; `number_of_clusters` says how probable it is, and its result
        has this method too, averaged over the numbers. With noise, rows that are noise are one set in each
        draw; in the result they have the label -1, as in `predict`. (Theory page "Partitions".)

        Examples
        --------
        Short and long waits for a geyser. Least certain is the cluster of the wait of 74 minutes:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> found = mixture.partition_posterior(X, method="lrvb", random_state=0)
        >>> found.labels
        array([0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0])
        >>> X[found.certainty.argmin()], found.certainty.min().round(1).item()
        (array([74]), 0.8)
        """
        method = checked_method(method)

        def drawn(rows, n_draws, generator):
            answer = self._answer_of_posterior(method, rows, random_state)
            note = note_of_number(self._uncertainty.fitted)
            return [answer.parameters(n_draws, generator)], answer.note, note

        return self._partition_posterior(X, sample_weight, n_draws, max_rows, random_state, drawn)

    def _partition_posterior(self, X, sample_weight, n_draws, max_rows, random_state, drawn):
        """The posterior of the partition: PartitionPosterior.

        Parameters
        ----------
        drawn : callable (Rows, int, RandomState) -> list of DrawnParameters, and two notes on them
            Makes the draws. It is called once everything else is known to be right.
        """
        n_draws, max_rows = checked_number(n_draws), checked_number(max_rows, "max_rows", "row")
        if n_draws < 2:
            raise ValueError("n_draws=1 says nothing about how partitions vary: pass 2 or more, such as 400.")
        uncertainty = self._uncertainty
        if X is None:
            raise ValueError("partition_posterior needs the training rows: pass X.")
        given = self._given_rows(X, sample_weight, uncertainty.fitted)
        rows = given.counted()
        uncertainty.source.check_training_rows(rows)
        check_sizes(uncertainty.fitted.posterior, n_draws, max_rows, number_of_rows(rows))
        generator = check_random_state(random_state)
        sources, *notes = drawn(rows, n_draws, generator)
        with uncertainty.source.threads():
            return self._tracked(
                "partition_posterior",
                lambda tracked: partition_posterior(sources, given, max_rows, generator, notes, tracked),
            )

    def deciding_rows(
        self,
        X: ArrayLike,
        *,
        conclusion: str | Callable[[Any], float] | None = None,
        threshold: float = 0.0,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        interval: float | None = None,
        rival: Any = None,
        max_share: float = 0.1,
    ) -> DecidingRows:
        """The fewest rows without which a conclusion changes, as far as a search finds them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        conclusion : str or callable, default=None
            The number that is compared with the threshold: the name of a row of
            ``posterior_summary(target=...)``, such as "weight[0]", for the value in the fit; a difference of
            two, such as "mean[1,x0] - mean[0,x0]"; or a smooth function of the fitted mixture (of
            `predict_proba`, not of `predict`) that returns a number. It is called with copies of the mixture
            that have other `weights_`, `means_`, `covariances_`, `precisions_` (or `tables_`) and
            `lower_bound_`. They predict, without error bars.

        threshold : float, default=0.0
            The conclusion is that the number is on the side of the threshold where it is in the fit.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any. A row is left out with all its weight.

        groups : array-like of shape (n_samples,) or Dask collection, default=None
            Labels of rows that belong together, such as patients. Whole groups are then left out, and the
            search is for the fewest groups.

        interval : float, default=None
            With a name: probability of a credible interval, the estimate plus or minus standard deviations by
            linear response. (Those of `posterior_summary` may be skewed, and so differ a little.) The
            conclusion is that it excludes the threshold, or that it contains it.

        rival : fitted estimator of the same kind, default=None
            In place of a conclusion: a fit to the same rows with another number of components. The conclusion
            is which has the higher lower bound, of one labelling each. (With Dirichlet weights
            ``threshold=log(L! / K!)`` compares all labellings of K with those of L components of the rival.)

        max_share : float, default=0.1
            Largest share of the rows that may be left out, by weight, below 1.

        Returns
        -------
        deciding : DecidingRows
            Displayed as a sentence and numbers. Every step of the search is confirmed by a refit under the
            prior of the fit. A smaller set may exist; and if none is found, there may still be one.

        Raises
        ------
        ValueError
            On bad input, an unknown name, a function that fails or returns no finite number, a number that
            equals the threshold, a rival with another prior or other arguments, X that is not what the
            mixture was fitted to, fitted arrays that were changed since, or a fit that is no strict local
            optimum.

        See Also
        --------
        influence : What every row does to a parameter, to first order.
        leverage : How much the whole fit depends on a row.

        Examples
        --------
        More than half of the waits for a geyser are long. Without how many rows is that not so? One:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.deciding_rows(X, conclusion="weight[1] - weight[0]")
        DecidingRows: 1 of 20 rows (5 %) decides whether weight[1] - weight[0] is above 0:
          without that row it is -0.012, with all rows 0.037.
          rows                     6
          with all rows            0.037
          without them, predicted  -0.0093
          without them, refitted   -0.012
          enough by first order    1
          refits                   2
        """
        _ = self._uncertainty  # It must have been fitted.
        if not isinstance(threshold, Real) or not np.isfinite(threshold):
            raise ValueError(f"threshold must be a finite number, got {threshold!r}.")
        if not isinstance(max_share, Real) or not 0.0 < max_share < 1.0:
            raise ValueError(f"max_share must be above 0 and below 1, got {max_share!r}.")
        if (conclusion is None) == (rival is None):
            raise ValueError(
                "deciding_rows needs one thing that is to change. (a) Pass a conclusion, such as "
                "'weight[0] - weight[1]'; names are those of the rows of posterior_summary(target=...). "
                "(b) Pass rival=, a fit with another n_components. Not both."
            )
        if rival is None:
            mixtures, number = [self], checked_conclusion(self, conclusion, threshold, interval)
        else:
            check_rival(self, rival, interval)
            mixtures, number = [self, rival], RivalConclusion(self, rival)
        with blas_threads(self.n_jobs):
            given, *others = (
                mixture._given_rows(X, sample_weight, mixture._uncertainty.fitted) for mixture in mixtures
            )
            together, optima = None if groups is None else row_groups(given, groups), []
            for mixture, own in zip(mixtures, (given, *others), strict=True):
                optima.append(Optimum(mixture, own.counted()))
                mixture._uncertainty.source.check_training_rows(optima[-1].rows)
            rows, which = optima[0].rows, np.flatnonzero(given.which_count())
            units = SingleRows(rows, which) if together is None else WholeGroups(rows, which, together)
            search = GreedySearch(number, optima, float(threshold), units, max_share)

            def question(tracked):
                for _ in tracked(search.steps(), MOST_REFITS):
                    pass
                return search.result()

            return self._tracked("deciding_rows", question)
