"""The fewest rows without which a conclusion changes: the answer of `deciding_rows`, and the search for it.

The search is greedy. Influence predicts how many rows have to go. The first of them are left out, the mixture
is fitted again without them, and the rest is predicted anew at the new optimum. So rows are found that hide
each other, and to which the first prediction is blind. Once the conclusion has changed, rows are put back as
long as it stays changed. Every refit starts at the fit to all rows; and where the conclusion has changed, all
rows are fitted again from there. If it stays changed then, another optimum decides it, and not the rows. If
that optimum has a higher lower bound, the search ends; if not, the step is not taken.
"""

import contextlib
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_lrvb.answers.conclusions import ConclusionError
from sklearn_lrvb.linear_response import IndefiniteInformationError
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.reports import SentenceAndNumbers

# Share of the rows that are predicted to be enough that is left out in a step. With more rows than the first
# number refits take long. Then a step is as large as the error of the last prediction allows: all of them, if
# that was below a relative 0.02. With more than the second number the first step is all of them too, if they
# are predicted to be enough, and rows are put back once at most.
_SHARE_OF_STEP, _EXACT = 1 / 8, 0.02
_SOME_ROWS, _MANY_ROWS = 10_000, 800_000

# Most refits of a search, and steps of its progress bar. To leave out 100,000 rows takes some 80, and to put
# back another 20. No number is enough where nothing changes the conclusion, although a few rows more always
# seem to be enough. An example is the larger of two weights, which cannot fall below 0.5.
MOST_REFITS = 150

# If at most this many rows are left out, of up to 10,000, each is tried by itself when rows are put back.
_FEW = 20

# A row is passed over where there is no fit without it, or where that fit leads to another, worse optimum.
# After this many in the whole search, the next one ends it.
_MOST_PASSED_OVER = 10

# The sentence speaks of a better optimum that is at least so many nats higher. Refits have errors of 1e-6,
# and fits those of their `tol`.
_HIGHER = 0.01

_MOST_LISTED = 10  # Rows that the display lists.

_FAILURES = (DegenerateComponentError, IndefiniteInformationError, ConclusionError)


@dataclass(frozen=True, repr=False)
class DecidingRows(SentenceAndNumbers):
    """The fewest rows found without which a conclusion changes (the result of ``deciding_rows``).

    Attributes
    ----------
    conclusion : str
        The number that is compared with the threshold.
    threshold : float
        What it is compared with.
    value : float
        The number in the fit to all rows.
    found : bool
        Whether the rows below decide the conclusion: a refit without them confirms that it changes, and from
        there a fit to all rows changes it back.
    rows : ndarray of int of shape (n,)
        Numbers of the rows of X that were left out, those of the largest effect in the fit first (with
        groups: in ascending order). If none were found, those of the last refit that was accepted.
    groups : ndarray of shape (n_groups,) or None
        Labels of the groups that were left out, those of the largest effect first; None without groups.
    share : float
        Their share of all rows, by weight.
    n_rows : int
        All rows of positive weight.
    n_groups : int or None
        All groups.
    predicted : float
        The number without them, to first order from the fit to all rows.
    confirmed : float
        The number in a refit without them; `value` where no refit was accepted.
    first_order_rows : int or None
        How many rows (or groups) are enough to first order; None where no set within `max_share` is. Rough
        where many are needed.
    is_mode : bool
        Whether the conclusion stays changed, at a higher lower bound, when all rows are fitted again from the
        last refit. Then the fit was not the best optimum, and these rows are not the cause.
    mode_gain : float
        Lower bound of the fit to all rows that started at the last refit, less that of the fit, in nats.
        Next to zero where this led back to the fit; 0 where the conclusion never changed.
    failure : str
        Why the search ended before a conclusion changed; empty if nothing failed.
    n_refits : int
        How often the mixture was fitted again.
    path : ndarray of shape (n_steps, 2)
        How many rows (or groups) were left out, and the number in the refit without them, step by step.
    first_order_path : ndarray of shape (n_predicted + 1,)
        The number with none, one, two and more rows (or groups) left out, to first order.
    refit : estimator
        The mixture fitted without the rows, under the prior of the fit; None if no refit was accepted.

    See Also
    --------
    sklearn_lrvb.LRVBGaussianMixture.deciding_rows : Makes it.
    sklearn_lrvb.displays.DecidingRowsDisplay : Draws it.

    Examples
    --------
    Are the petals of the two kinds of irises more than 3.3 centimetres apart in length?

    >>> from sklearn.datasets import load_iris
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> X = load_iris().data[:, 2:]  # length and width of 150 petals
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> mixture.deciding_rows(X, conclusion="mean[0,x0] - mean[1,x0]", threshold=3.3)
    DecidingRows: 9 of 150 rows (6 %) decide whether mean[0,x0] - mean[1,x0] is above 3.3:
      without them it is 3.2906, with all rows 3.44.
      rows                     118, 117, 122, 105, 131, 107, 109, 135, 130
      with all rows            3.44
      without them, predicted  3.3043
      without them, refitted   3.2906
      enough by first order    10
      refits                   18
    """

    conclusion: str
    threshold: float
    value: float
    found: bool
    rows: NDArray[np.intp]
    groups: NDArray | None
    share: float
    n_rows: int
    n_groups: int | None
    predicted: float
    confirmed: float
    first_order_rows: int | None
    is_mode: bool
    mode_gain: float
    failure: str
    n_refits: int
    path: NDArray[np.float64]
    first_order_path: NDArray[np.float64]
    refit: Any

    @property
    def verdict(self) -> str:
        """What was found, in a sentence."""
        side = "above" if self.value > self.threshold else "below"
        question = f"whether {self.conclusion} is {side} {self.threshold:.10g}"
        better = (
            f"{self.mode_gain:.2g} nats higher: fit until converged, with moves='search', a larger n_init or "
            "other init_params."
        )
        if self.is_mode:
            return (
                f"Not rows but another optimum decides {question}: the conclusion stays changed when all "
                f"rows are fitted again from there, and the lower bound is {better}"
            )
        n_all, of_what = (self.n_rows, "") if self.groups is None else (self.n_groups, " of the rows")
        left_out = f"{self.n_left_out} of {n_all} {self.unit} ({100 * self.share:.2g} %{of_what})"
        it_is = f"it is {self._number(self.confirmed)}, with all rows {self._number(self.value)}."
        if self.found:
            is_one = self.n_left_out == 1
            decide, these = ("decides", f"that {self.unit[:-1]}") if is_one else ("decide", "them")
            doubt = f" But another optimum of all rows is {better}" if self.mode_gain > _HIGHER else ""
            return f"{left_out} {decide} {question}: without {these} {it_is}{doubt}"
        why = f" The last attempt failed: {self.failure}" if self.failure else ""
        tried = f"without {left_out} {it_is}{why} That is no proof that there are none."
        if not self.n_left_out:
            none = f"to first order none that max_share allows moves it to {self.threshold:.10g}."
            tried = why.lstrip() or none
        return f"No {self.unit} found that decide {question}: {tried}"

    @property
    def n_left_out(self) -> int:
        """How many rows, or groups, were left out."""
        return len(self.rows if self.groups is None else self.groups)

    @property
    def unit(self) -> str:
        """What was left out as a whole: "rows" or "groups"."""
        return "rows" if self.groups is None else "groups"

    def _number(self, value):
        """A value, rounded such that its distance to the threshold has two digits."""
        distance = abs(value - self.threshold)
        if not 1e-7 < distance < 1e6:
            return f"{value:.3g}"
        return f"{value:.{max(0, 1 - int(np.floor(np.log10(distance))))}f}"

    def _lines(self):
        which = self.rows if self.groups is None else self.groups
        first = ", ".join(map(str, which[:_MOST_LISTED].tolist())) or "none"
        by_first_order = "none" if self.first_order_rows is None else f"{self.first_order_rows}"
        return [
            (self.unit, first + ", ..." * (len(which) > _MOST_LISTED)),
            ("with all rows", self._number(self.value)),
            ("without them, predicted", self._number(self.predicted)),
            ("without them, refitted", self._number(self.confirmed)),
            ("enough by first order", by_first_order),
            ("refits", f"{self.n_refits}"),
        ]


@dataclass(eq=False)
class _State:
    """A step of the search.

    Attributes
    ----------
    left_out : int array, ascending, numbers of the rows or groups that are left out
    weight : float, their weight
    optima : list of Optimum, without them
    value : float, the number there
    rest : float, what is left of the way to the threshold, of which all rows have 1
    gain : float, lower bound of the fit to all rows from there, less that of the fit; 0 where not made
    """

    left_out: NDArray
    weight: float
    optima: list
    value: float
    rest: float = 1.0
    gain: float = 0.0

    @property
    def is_changed(self):
        """Whether the conclusion has changed."""
        return self.rest <= 0.0


class GreedySearch:
    """The search for the fewest rows, or groups, without which a conclusion changes.

    Parameters
    ----------
    conclusion : Conclusion
    optima : list of Optimum, of the fits to all rows
    threshold : float
    units : SingleRows or WholeGroups, what is left out as a whole
    max_share : float, largest share of the rows that may be left out
    """

    def __init__(self, conclusion, optima, threshold, units, max_share):
        self.conclusion, self.threshold, self.units = conclusion, threshold, units
        self.base = _State(np.empty(0, dtype=np.intp), 0.0, optima, conclusion.value(optima))
        # In floats 0.29 * 100 is below 29.
        self._most_weight = max_share * units.rows.total_weight * (1.0 + 1e-12)
        self._are_many = units.rows.n_samples > _MANY_ROWS
        if self.base.value == threshold:
            raise ValueError(
                f"In the fit to all rows {conclusion.text} is the threshold itself, {threshold:.10g}. Pass "
                "another threshold."
            )
        # In these units the effect of the rows that are enough is 1. Minus, because rows are left out.
        self._scale = -1.0 / (threshold - self.base.value)
        self._effects_of_base = conclusion.effects(optima)
        self.state, self.failure, self.path, self.n_refits = self.base, "", [], 0
        self.is_mode = False
        self.ranked = self._ranked(self._effects_of_base)

    def steps(self):
        """Search, and yield after every refit."""
        search = itertools.chain(self._leave_out(), self._put_back())
        yield from itertools.islice(search, MOST_REFITS)
        if self.n_refits == MOST_REFITS:
            self.failure = f"{MOST_REFITS} refits were not enough."

    def _ranked(self, effects, passed_over=()):
        """The rows to leave out next, without those that are passed over: `RankedRows`."""
        state = self.state
        excluded = np.union1d(state.left_out, np.asarray(passed_over, dtype=np.intp))
        most_weight = self._most_weight - state.weight
        return self.units.ranked(effects, self._scale, excluded, state.rest, most_weight)

    def _leave_out(self):
        """Leave out the first of the ranked, until the conclusion changes or nothing more can be done.

        Half as many are tried where these cannot go, and so on. Where the first alone cannot, it is passed
        over.
        """
        ranked, effects, passed_over = self.ranked, self._effects_of_base, []
        share = 1.0 if self._are_many else _SHARE_OF_STEP
        while ranked is not None and len(ranked) and len(passed_over) <= _MOST_PASSED_OVER:
            before, trial = self.state, None
            n = int(np.ceil((share if ranked.are_enough else _SHARE_OF_STEP) * len(ranked)))
            while trial is None and n:
                left_out = np.union1d(before.left_out, ranked.numbers[:n])
                predicted = ranked.effects[:n].sum()
                trial = yield from self._tried(left_out, before.weight + ranked.weights[:n].sum())
                if self.is_mode:
                    return
                n //= 2
            if trial is None:
                passed_over.append(ranked.numbers[0])
            else:
                self._accept(trial)
                if trial.is_changed:
                    return
                error = abs((before.rest - trial.rest) / predicted - 1.0)
                if self.units.rows.n_samples > _SOME_ROWS:
                    share = max(_EXACT / max(error, _EXACT), _SHARE_OF_STEP)
                effects = self._effects()
            ranked = None if effects is None else self._ranked(effects, passed_over)

    def _put_back(self):
        """Put back those of the smallest effects, in halving blocks, while the conclusion stays changed.

        Where few rows are left out, each is then tried by itself, so that no single one can be spared.
        """
        while self.state.is_changed and not self.is_mode and len(self.state.left_out) > 1:
            effects = self._effects()
            if effects is None:
                return
            some = self.units.some(effects, self._scale, self.state.left_out)
            n_predicted = int(np.sum(np.cumsum(some.effects[::-1]) < -self.state.rest))
            n, places = min(n_predicted, len(some) - 1), np.arange(len(some))
            sizes = [n] if n else []
            if not self._are_many:
                sizes = [max(n, 1) >> k for k in range(max(n, 1).bit_length())]
            blocks = [places[-size:] for size in sizes]
            if len(some) <= _FEW and self.units.rows.n_samples <= _SOME_ROWS:
                blocks.extend(places[-2::-1])
            for block in blocks:
                kept = np.delete(places, block)
                trial = yield from self._tried(np.sort(some.numbers[kept]), some.weights[kept].sum())
                if trial is not None and trial.is_changed:
                    break
                if self.is_mode:
                    return
            else:
                return
            self._accept(trial)
            if self._are_many:
                return

    def _accept(self, trial):
        self.state, self.failure = trial, ""
        self.path.append((len(trial.left_out), trial.value))

    def _tried(self, left_out, weight):
        """The state without some rows or groups, ascending, of some weight; None where it cannot be used.

        Where the conclusion has changed, all rows are fitted again from there. If it stays changed, it is
        another optimum that decides.
        """
        trial = self._refitted(self.base, left_out, weight)
        yield
        if trial is None or not trial.is_changed:
            return trial
        all_again = self._refitted(trial, self.base.left_out, 0.0)
        yield
        if all_again is None:
            return None
        # A conclusion may compare two mixtures: that whose lower bound has changed most has moved.
        pairs = zip(all_again.optima, self.base.optima, strict=True)
        trial.gain = max((one.lower_bound - other.lower_bound for one, other in pairs), key=abs)
        if not all_again.is_changed:
            return trial
        self.is_mode = trial.gain > 0.0
        if self.is_mode:
            self._accept(trial)
        else:
            self.failure = (
                f"refits lead to another optimum, whose lower bound is {-trial.gain:.2g} nats lower."
            )
        return None

    def _refitted(self, start, left_out, weight):
        """The state without some rows or groups, reached from another state; None where there is none."""
        self.n_refits += 1
        rows = self.units.rows.reweighted(self.units.factors(left_out))
        with self._failures_kept():
            optima = [optimum.refitted(rows) for optimum in start.optima]
            if all(optimum.fit.converged for optimum in optima):
                value = self.conclusion.value(optima)
                rest = (value - self.threshold) / (self.base.value - self.threshold)
                return _State(left_out, weight, optima, value, rest)
            self.failure = "the refit did not converge."
        return None

    def _effects(self):
        """Effects of rows at the present state; None where there are none."""
        with self._failures_kept():
            return self.conclusion.effects(self.state.optima)
        return None

    @contextlib.contextmanager
    def _failures_kept(self):
        """Context in which a failure ends an attempt, and is kept for the user."""
        try:
            yield
        except _FAILURES as error:
            self.failure = str(error).partition(" (a)")[0]

    def result(self):
        """What the search has ended with: DecidingRows."""
        base, state, threshold = self.base, self.state, self.threshold
        some = self.units.some(self._effects_of_base, self._scale, state.left_out)
        way = threshold - base.value
        rows, groups = self.units.named(some.numbers)
        return DecidingRows(
            conclusion=self.conclusion.text,
            threshold=threshold,
            value=base.value,
            found=state.is_changed and not self.is_mode,
            rows=rows,
            groups=groups,
            share=float(some.weights.sum() / self.units.rows.total_weight),
            n_rows=self.units.rows.n_samples,
            n_groups=self.units.n_groups,
            predicted=base.value + way * float(some.effects.sum()),
            confirmed=state.value,
            first_order_rows=len(self.ranked) if self.ranked.are_enough else None,
            is_mode=self.is_mode,
            mode_gain=state.gain,
            failure="" if state.is_changed else self.failure,
            n_refits=self.n_refits,
            path=np.array(self.path).reshape(-1, 2),
            first_order_path=base.value + way * np.concatenate([[0.0], self.ranked.effects.cumsum()]),
            refit=state.optima[0].as_estimator() if self.path else None,
        )
