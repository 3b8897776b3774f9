"""Whether a mixture fits its rows, and what to do if it does not: the answer of `model_check`."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sklearn_lrvb.answers.model_tests import LEVEL, Examination
from sklearn_lrvb.answers.repeated_values import RepeatedValue
from sklearn_lrvb.reports import required_pandas

if TYPE_CHECKING:
    import pandas as pd

LEAST_GAIN = 3.0  # Nats, from which on a model is better: the odds change by 20.
_MUCH, _BEYOND_DOUBT = 10.0, 100.0
SURE = 1e-3  # Adjusted p-value below which a departure is told as such, even if nothing is better.
_MOST_LINES, _WIDTH = 5, 88  # Departures, and remedies, that are displayed; and columns of the display.


@dataclass(frozen=True)
class Remedy:
    """Another model for the same rows.

    Attributes
    ----------
    kind : {'heavy tails', 'outliers', 'more components', 'covariances', 'skewness', 'start', 'few values', \
            'spike', 'dispersion'}
        What it is a remedy for.
    problem : str, what is wrong with the mixture if this is the remedy, in a sentence
    advice : str, what to do, in words
    gain : float
        By how many nats the log evidence rises; NaN where evidences cannot be compared.
    columns : tuple of str, default=()
        The columns that are changed.
    formulas : tuple of str, default=()
        What they are changed to, if their logarithms or square roots are taken: ``"log('x0' + 5.1)"``.
    is_model : bool, default=True
        Whether it is a model of the package; else the gain is that of a density that it does not have.
    """

    kind: str
    problem: str
    advice: str
    gain: float
    columns: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
    is_model: bool = True

    @property
    def is_better(self) -> bool:
        """Whether it gains 3 nats or more, or cannot be compared."""
        return not self.gain < LEAST_GAIN

    @property
    def sentence(self) -> str:
        """The advice and what it gains."""
        advice = f"{self.advice[0].upper()}{self.advice[1:]}"
        if np.isnan(self.gain) or not self.is_model:
            return f"{advice}."
        much = (
            "beyond doubt" if self.gain > _BEYOND_DOUBT else "much better" if self.gain > _MUCH else "better"
        )
        return f"{advice}: {much}, the log evidence gains {self.gain:.0f} nats."


@dataclass(frozen=True, repr=False)
class ModelCheck:
    """Whether a mixture fits its rows, and what to do if not (the result of ``model_check``).

    Its display is a few sentences, what departs from the model, and what other models gain.

    Attributes
    ----------
    examination : Examination
        The tests, and the scores of the rows that `ModelCheckDisplay` draws.
    remedies : tuple of Remedy
        Other models, the best one first, also those that gain nothing; empty if the mixture fits. If the
        first is another start, the others gain what they have beyond it.
    outlying_rows : ndarray of int
        Numbers of the rows that are too far from their component.
    n_rows : int
        Rows that were tested.
    n_given : float
        Rows of the mixture, each as often as it counts.
    names : list of str
        Of the columns.

    See Also
    --------
    sklearn_lrvb.LRVBGaussianMixture.model_check : Makes it.
    sklearn_lrvb.displays.ModelCheckDisplay : Draws it.

    Examples
    --------
    Rows with long tails, taken for normal:

    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> X = np.random.default_rng(0).standard_t(3, size=(300, 2))
    >>> check = LRVBGaussianMixture(random_state=0).fit(X).model_check(X)
    >>> check.remedies[0].kind
    'heavy tails'
    """

    examination: Examination
    remedies: tuple[Remedy, ...]
    outlying_rows: NDArray[np.intp]
    n_rows: int
    n_given: float
    names: list[str]

    @property
    def p_value(self) -> float:
        """Of all tests together: an upper bound on how often a mixture that fits looks at least as bad."""
        return self.examination.p_value

    @property
    def fits(self) -> bool:
        """Whether nothing departs from the model at the 5 % level, and no spike does."""
        return self.p_value >= LEVEL and not self.examination.gross

    @property
    def repeated(self) -> list[RepeatedValue]:
        """Values that many rows share, which no density can hold."""
        return self.examination.repeated

    @property
    def verdict(self) -> str:
        """What was found and what to do, in sentences."""
        n_tests = len(self.examination.tests)
        if self.fits and all(test.kind == "outliers" for test in self.examination.tests):
            return f"Too little to tell whether the model fits (rows: {self.n_rows}, tests: {n_tests})."
        if self.fits:
            return (
                f"Nothing speaks against the model: p = {self.p_value:.2g} for the largest departure in "
                f"{n_tests} tests of {self.n_rows} rows."
            )
        found, best = self._in_words()[0], next((own for own in self.remedies if own.is_better), None)
        is_sure = self.p_value < SURE or bool(self.examination.gross) or (best is not None and best.is_model)
        said = "The model does not fit." if is_sure else "Something departs from the model, but little."
        if best is None:
            return f"{said} {found}" + " No other model that was tried is better." * bool(self.remedies)
        better = [own for own in self.remedies if own.is_better][: 1 + (best.kind == "start")]
        return " ".join([said, *(f"{own.problem} {own.sentence}" for own in better)])

    def _in_words(self):
        """What departs from the model, the worst first, list of sentences."""
        repeated = [own.sentence(self.names) for own in self.repeated]
        n_gross = len(self.examination.gross)
        tests = [test.sentence(self.names) for test in self.examination.departures]
        return [*repeated[:n_gross], *tests, *repeated[n_gross:]]

    def summary(self) -> pd.DataFrame:
        """All tests, as a table.

        Returns
        -------
        summary : pandas.DataFrame
            A row for every test, that of the smallest p-value first, with the columns kind, component (NA
            for all rows; of dependence the one where it is surest), columns, size and p_value (`ModelTest`
            says what they are), and p_adjusted: the p-value times the number of tests.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        pd, tests = required_pandas("summary"), self.examination.tests
        return pd.DataFrame(
            {
                "kind": [test.kind for test in tests],
                "component": pd.array([test.component for test in tests], dtype="Int64"),
                "columns": [", ".join(self.names[column] for column in test.columns) for test in tests],
                "size": [test.size for test in tests],
                "p_value": [test.p_value for test in tests],
                "p_adjusted": [self.examination.p_adjusted(test) for test in tests],
            }
        )

    def _parts(self):
        """Headings and lines below the verdict: list of pairs (str, list of str)."""
        found, n_more = self._in_words(), len(self._in_words()) - _MOST_LINES
        departures = found[:_MOST_LINES] + [f"... and {n_more} more: summary()"] * (n_more > 0)
        better = [own.sentence for own in self.remedies if own.is_better]
        others = [
            "other starts" if own.kind == "start" else own.advice
            for own in self.remedies
            if not own.is_better and own.is_model
        ]
        remedies = better[:_MOST_LINES] + [f"No better: {'; '.join(others[:_MOST_LINES])}."] * bool(others)
        if any(own.is_model and own.kind != "start" and own.gain >= LEAST_GAIN for own in self.remedies):
            remedies.append("To find these fits, use n_init=12 or more.")
        of_rows = f" of {self.n_given:.10g}" * (self.n_rows < self.n_given)
        n_tests = len(self.examination.tests)
        tests = [f"{n_tests} tests of {self.n_rows}{of_rows} rows, p = {self.p_value:.2g} together."]
        parts = [
            ("Seen besides" if self.fits else "Departures", departures),
            ("Other models", remedies),
            ("Tests", tests),
        ]
        return [part for part in parts if part[1]]

    def __repr__(self):
        lines = textwrap.wrap(f"{type(self).__name__}: {self.verdict}", _WIDTH, subsequent_indent="  ")
        for heading, own in self._parts():
            lines.append(f"  {heading}:")
            for line in own:
                lines += textwrap.wrap(line, _WIDTH, initial_indent="  * ", subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self):
        parts = [
            f"<p>{html.escape(heading)}:</p><ul><li>{'</li><li>'.join(map(html.escape, own))}</li></ul>"
            for heading, own in self._parts()
        ]
        return f"<p><b>{html.escape(self.verdict)}</b></p>{''.join(parts)}"
