"""ResultDisplay: what displays of a result that some method returned have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.utils._optional_dependencies import check_matplotlib_support

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ResultDisplay:
    """A display of one result, which is kept as `result` and has a `verdict`. A subclass has `plot`."""

    def __init__(self, *, result: Any) -> None:
        self.result = result

    @classmethod
    def from_result(cls, result: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Plot a result that is there already.

        Parameters
        ----------
        result : object
            What the method returned that is named under *Parameters* of the class.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        **kwargs : dict
            As in :meth:`plot`.

        Returns
        -------
        display : instance of the class
            The display, drawn.
        """
        check_matplotlib_support(f"{cls.__name__}.from_result")
        return cls(result=result).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the result on some axes, or on a new figure."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.result.verdict}"
