"""PartitionDisplay: how probable it is that rows belong together, by cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sklearn_lrvb.displays.axes import ResultDisplay, given_or_new, label_axes, styled
from sklearn_lrvb.displays.selection import check_drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from sklearn_lrvb import LRVBGaussianMixture

_MOST_ROWS = 300  # More are not told apart in a figure of usual size.
_LEAST_SHARE = 0.04  # Share of the rows from which on there is room for a cluster's number.

_MATRIX: dict[str, Any] = {"cmap": "Blues", "vmin": 0.0, "vmax": 1.0, "interpolation": "nearest"}
_BOUNDARY: dict[str, Any] = {"color": "black", "linewidth": 0.8}


class PartitionDisplay(ResultDisplay):
    """How probable it is that rows belong together: the co-clustering matrix, with rows in clusters.

    Lines divide the rows into the clusters of the partition that stands for the posterior. A square on the
    diagonal is a cluster; it is dark where its rows are together in nearly all draws. Within a cluster the
    most certain rows come first, and the rows in doubt last. A dark place outside of the squares is of rows
    from two clusters that may belong together.

    Create it with :meth:`from_estimator`, or with :meth:`from_result` of a result that is there already.

    Parameters
    ----------
    result : PartitionPosterior
        The result of :meth:`LRVBGaussianMixture.partition_posterior`; it is kept as `result`.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The matrix.

    rows_ : ndarray of int
        Numbers of the rows of X in the order of the matrix; of more than 300 rows with draws, every so many.

    boundaries_ : list of matplotlib Line2D
        The lines between clusters, vertical and horizontal ones in turn.

    colorbar_ : matplotlib Colorbar
        Beside the matrix.

    ax_ : matplotlib Axes
        The axes drawn on.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import PartitionDisplay
    >>> X = load_iris().data[:, 2:]  # length and width of 150 petals
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> display = PartitionDisplay.from_estimator(mixture, X, random_state=0)
    >>> display.result.cluster_sizes
    array([100,  50])
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        n_draws: int = 400,
        method: str = "auto",
        max_rows: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the posterior of the partition, and plot it.

        Parameters
        ----------
        estimator : LRVBGaussianMixture
            A fitted mixture.

        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight, n_draws, method, max_rows, random_state
            As in :meth:`LRVBGaussianMixture.partition_posterior`.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Keyword arguments of matplotlib's `imshow`, which draws the matrix.

        Returns
        -------
        display : PartitionDisplay
            The display, drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            As :meth:`LRVBGaussianMixture.partition_posterior`.
        """
        check_drawn(cls, estimator)
        result = estimator.partition_posterior(
            X,
            sample_weight=sample_weight,
            n_draws=n_draws,
            method=method,
            max_rows=max_rows,
            random_state=random_state,
        )
        return cls(result=result).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the matrix again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Keyword arguments of matplotlib's `imshow`, which draws the matrix.

        Returns
        -------
        display : PartitionDisplay
            The display itself.
        """
        from matplotlib.image import AxesImage

        result = self.result
        labels = result.sampled_labels
        order = np.lexsort((-result.sampled_certainty, labels, labels < 0))  # Noise comes last.
        order = order[:: -(-len(order) // _MOST_ROWS)]
        self.rows_, labels = result.sampled_rows[order], labels[order]
        self.ax_ = ax = given_or_new(ax)
        self.figure_ = ax.figure
        self.image_ = ax.imshow(result.coclustering(self.rows_), **styled(AxesImage, _MATRIX, kwargs))
        edges = np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [len(labels)]])
        self.boundaries_ = [
            line(edge - 0.5, **_BOUNDARY) for edge in edges[1:-1] for line in (ax.axvline, ax.axhline)
        ]
        has_room = np.diff(edges) >= _LEAST_SHARE * len(labels)
        middles, names = (edges[:-1] + edges[1:] - 1) / 2.0, labels[edges[:-1]]
        for set_ticks in (ax.set_xticks, ax.set_yticks):
            set_ticks(middles[has_room], ["noise" if k < 0 else k for k in names[has_room].tolist()])
        ax.tick_params(length=0)
        label_axes(ax, f"rows by cluster, {len(labels)} of {result.n_rows}", "rows by cluster")
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, label="probability to be together")
        return self
