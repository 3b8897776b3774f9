"""Which rows belong together, and draws for ArviZ: methods of `LRVBGaussianMixture` about draws."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from sklearn_lrvb.gaussian_mixture.fitted import FittedAttributes
from sklearn_lrvb.gaussian_mixture.partitions import (
    PartitionPosterior,
    check_sizes,
    note_of_number,
    number_of_rows,
    partition_posterior,
)
from sklearn_lrvb.mixtures.estimator.arguments import checked_method, checked_number
from sklearn_lrvb.mixtures.estimator.sampling_methods import SamplingMethods
from sklearn_lrvb.reports import dataset


class PartitionMethods(SamplingMethods, FittedAttributes):
    """Methods of `LRVBGaussianMixture` about partitions of the rows."""

    def partition_posterior(
        self,
        X: ArrayLike,
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
        check_sizes(uncertainty.fitted.structure, n_draws, max_rows, number_of_rows(rows))
        generator = check_random_state(random_state)
        sources, *notes = drawn(rows, n_draws, generator)
        with uncertainty.source.threads():
            return self._tracked(
                "partition_posterior",
                lambda tracked: partition_posterior(sources, given, max_rows, generator, notes, tracked),
            )

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
