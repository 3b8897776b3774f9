"""How probable every number of clusters is: the answer of `number_of_clusters`."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from sklearn_lrvb.answers.partitions import PartitionPosterior
from sklearn_lrvb.mixture.weight_priors import DirichletWeights
from sklearn_lrvb.sampling.importance import systematic_sample
from sklearn_lrvb.sampling.number_evidence import log_number_prior

CRITERIA = {"probability": "P(K | X)", "second_order": "second order", "leave_one_out": "leave-one-out"}
_ROUGH = 0.1  # Standard error of a probability from which on the sentence calls it rough.
_LEAST_TOLD = 0.02  # Probabilities below this are not in the sentence.
PROBABLE = 0.05  # Probability of the largest number from which on larger ones are worth asking for.
_LARGEST_FACTOR = 20.0  # Of an argument of the prior that the sentence speaks of.
_TINY = 0.05  # Relative change of such an argument that is not told exactly.
_WIDTH = 88  # Columns of the display.
# How cells of the HTML table are set.
_NUMBER = 'style="text-align: right; padding: 0.1em 0.7em"'
_REMARK = 'style="text-align: left; padding: 0.1em 0.7em"'


@dataclass(frozen=True, repr=False)
class NumberOfClusters:
    """How probable every number of clusters is (the result of ``number_of_clusters``).

    Its display is a few sentences and a table. What belongs to P(K | X) is None where that was not asked for.

    Attributes
    ----------
    n_components : ndarray of int of shape (n_fits,)
        The numbers K of components that are compared, rising.
    scores : dict of str to ndarray of shape (n_fits,)
        By criterion. 'probability' is P(K | X), the posterior probability of K, if P(K) is in proportion to
        1/K! before: Poisson with mean 1, given that there is a cluster. 'second_order' is the log evidence
        of the fit in `estimators_` alone, to second order (`log_evidence_`; under a Dirichlet prior of all
        labellings), and 'leave_one_out' its leave-one-out score, both in nats. NaN where a fit has none.
    criteria : tuple of str
        Those that were asked for. The first of them decides which number is `best`. By 'second_order' that is
        where log evidence plus log P(K) is largest; without log P(K) under stick-breaking weights, where the
        log evidence is that of one labelling.
    log_evidence, log_evidence_error : ndarray of shape (n_fits,) or None
        The evidence of K components, log p(X | K), in nats, and its standard error.
    probability_errors : ndarray of shape (n_fits,) or None
        Standard errors of P(K | X): of draws and chains, and an allowance for what importance sampling
        misses.
    occupied : ndarray of shape (max(n_components),) or None
        Probabilities that 1, 2, ... clusters hold rows, over all K. A mixture of K components may have fewer.
    k_hat : ndarray of shape (n_fits,) or None
        How heavy the tail of the importance weights of K components is. Above 0.7 importance sampling is not
        reliable, and draws of Markov chains take part. Infinite where no fit has rows in all K components.
    prior_slopes : dict of str to ndarray of shape (n_fits,) or None
        Derivatives of `log_evidence` in the logarithm of an argument of the prior, by the constructor's
        names; of ``covariance_prior`` in that of a factor of all its entries. Of learned ones it is the
        expectation that changes.
    another_prior : NumberOfClusters or None
        The same under another prior, for clusters that differ more in shape, for smaller ones, further apart,
        for probabilities of categories nearer 0 and 1, or for classes that differ more in size. The sentence
        says which. What is learned is learned under it too.
    n_optima : ndarray of int of shape (n_fits,)
        How many different optima starts, and splits of the best fit of K - 1, led to.
    n_occupied : ndarray of int of shape (n_fits,)
        Components of the fit in `estimators_` that hold rows.
    leave_one_out_std_error : ndarray of shape (n_fits,) or None
        Standard errors of the differences of the leave-one-out scores from the best one, which has 0.
    converged, strict_optimum : ndarray of bool of shape (n_fits,)
        Whether the best fit converged, and whether it is a strict optimum, which has error bars.
    missed : dict of int to float
        The numbers K whose best fit ends below that of K - 1 with an empty component added, and by how many
        nats.
    notes : dict of int to list of str
        Warnings and errors of the fits, by K.
    estimators_ : dict of int to estimator
        The best fits, by K, without those that failed: of the highest lower bound. Where all K components
        hold rows with a probability of a half or more, it is the most probable fit in which they do, if
        there is one.
    stopped : str
        Why the search for larger numbers ended while the largest was probable; empty if it did not.
    departure : str
        How the best fit departs from the model, in a sentence, if that is gross; else empty.

    See Also
    --------
    sklearn_lrvb.number_of_clusters : Makes it, and has an example.
    sklearn_lrvb.displays.ModelChoiceDisplay : Draws it.
    """

    n_components: NDArray[np.intp]
    scores: dict[str, NDArray[np.float64]]
    criteria: tuple[str, ...]
    n_optima: NDArray[np.intp]
    n_occupied: NDArray[np.intp]
    converged: NDArray[np.bool_]
    strict_optimum: NDArray[np.bool_]
    missed: dict[int, float]
    notes: dict[int, list[str]]
    estimators_: dict[int, Any]
    leave_one_out_std_error: NDArray[np.float64] | None = None
    log_evidence: NDArray[np.float64] | None = None
    log_evidence_error: NDArray[np.float64] | None = None
    probability_errors: NDArray[np.float64] | None = None
    occupied: NDArray[np.float64] | None = None
    k_hat: NDArray[np.float64] | None = None
    prior_slopes: dict[str, NDArray[np.float64]] | None = None
    another_prior: Self | None = None
    stopped: str = ""
    departure: str = ""
    _draws: dict[int, Any] = field(default_factory=dict)

    @property
    def best(self) -> int:
        """The number of clusters that is best by the first criterion: the most probable one."""
        criterion = self.criteria[0]
        if criterion not in self.best_:
            raise ValueError(f"No fit has a value of {CRITERIA[criterion]}: see notes.")
        return self.best_[criterion]

    @property
    def best_(self) -> dict[str, int]:
        """The best number by criterion, without criteria that no fit has a value of."""
        log_prior = {"second_order": log_number_prior(self.n_components) * self._has_prior}
        values = {name: self.scores[name] + log_prior.get(name, 0.0) for name in self.criteria}
        return {
            name: int(self.n_components[np.nanargmax(own)])
            for name, own in values.items()
            if not np.isnan(own).all()
        }

    @property
    def _has_prior(self):
        """Whether P(K) is used: not with stick-breaking weights, where K is no number of clusters."""
        priors = [fit._fitted.posterior.prior.weights.of_components for fit in self.estimators_.values()]
        return all(isinstance(prior, DirichletWeights) for prior in priors)

    @property
    def probabilities(self) -> dict[int, float]:
        """P(K | X) by K; empty where it was not asked for."""
        numbers = self.n_components.tolist()
        return dict(zip(numbers, self.scores.get("probability", np.empty(0)).tolist(), strict=False))

    @property
    def reliable(self) -> bool | None:
        """Whether all standard errors of P(K | X) are below 0.1; None where it was not asked for."""
        errors = self.probability_errors
        return None if errors is None else bool(np.nanmax(errors) < _ROUGH)

    @property
    def verdict(self) -> str:
        """What was found, in sentences."""
        if self.criteria[0] not in self.best_:
            return f"No fit has a value of {CRITERIA[self.criteria[0]]}: see notes."
        said = []
        if len(self.n_components) > 1:
            said = [self._answer(), self._clusters_with_rows(), self._doubt(), self._nearest_prior()]
            said.append(self._under_another_prior())
        of_columns = [note.text for note in self.estimators_[self.best]._column_notes]
        said += [self._range(), self._troubles(), *of_columns, self.departure]
        return " ".join(filter(None, said))

    @property
    def _is_at_edge(self):
        """Whether the best number is the largest of several that have a fit: larger ones may be better."""
        return len(self.n_components) > 1 and self.best == max(self.estimators_)

    def _answer(self):
        best, shares = self.best, self.probabilities
        plural = "s" * (best != 1)
        if not shares:
            before = " and P(K)" * (self._has_prior and self.criteria[0] == "second_order")
            return f"{best} component{plural} by {CRITERIA[self.criteria[0]]}{before}."
        others = [k for k in shares if k != best and shares[k] >= _LEAST_TOLD]
        others = ", ".join(f"{k}: {shares[k]:.2f}" for k in sorted(others, key=lambda k: -shares[k]))
        share = _probability(shares[best])
        if self._is_at_edge:
            told = f"{share}; {others}" if others else share
            answer = f"At least {best} clusters: the largest number compared is the most probable ({told})."
        else:
            told = f"{share} ({others})" if others else share
            answer = f"{best} cluster{plural} with probability {told}."
        return answer if shares[best] >= 0.5 else f"Undecided: {answer[0].lower()}{answer[1:]}"

    def _clusters_with_rows(self):
        """What a number of components means whose fit, or whose draws, have rows in fewer."""
        if self.occupied is None:
            return ""
        best, held = self.best, int(self.occupied.argmax()) + 1
        n_fitted = int(self.n_occupied[self.n_components == best][0])
        if held != best:
            share = _probability(self.occupied[held - 1])
            return f"The number of clusters that hold rows is most probably {held} ({share})."
        if n_fitted == best:
            return ""
        told = f"{best} clusters are known by Markov chains alone, as are their rows in partition_posterior."
        if self._draws[best][0] is None:
            told = f"the probability of {best} clusters is a guess."
        return f"No fit has rows in all {best} components, the best one in {n_fitted}: {told}"

    def _doubt(self):
        if self.reliable in (None, True):
            return ""
        error = np.nanmax(self.probability_errors)
        return f"These probabilities are rough, with standard errors of up to {error:.2f}."

    def _nearest_prior(self):
        """Which change of an argument of the prior would, to first order, make another number as probable."""
        if self.prior_slopes is None:
            return ""
        log_joint = self.log_evidence + log_number_prior(self.n_components)
        best, names = int(np.nanargmax(log_joint)), [*self.prior_slopes]
        slopes = np.array([*self.prior_slopes.values()])
        if not np.isfinite(slopes[:, best]).all():
            return ""  # There are no draws to tell it by.
        gaps = log_joint[best] - log_joint
        falls = slopes - slopes[:, [best]]  # How fast the gaps shrink in the logarithm of the argument.
        fitted = next(iter(self.estimators_.values()))._uncertainty.fitted
        least = np.array([[fitted.least_prior_factors.get(name, 0.0)] for name in names])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            changes = np.where(gaps > 0, gaps / falls, np.inf)
            # Where there are no draws a change is NaN, and not possible.
            changes = np.where(np.exp(changes) > least, changes, np.inf)
        argument, other = np.unravel_index(np.abs(changes).argmin(), changes.shape)
        change = changes[argument, other]
        if not abs(change) < np.log(_LARGEST_FACTOR):
            return (
                f"A factor below {_LARGEST_FACTOR:g} of any single argument of the prior would not change "
                "the most probable number, to first order."
            )
        is_told = abs(change) > _TINY
        changed = f"{np.exp(change):.2g} times what it is" if is_told else "changed by less than 5 %"
        name = names[argument]
        what = f"the expectation of {name}" if name in fitted.learned else name
        return f"{self.n_components[other]} would be about as probable if {what} were {changed}."

    def _under_another_prior(self):
        other = self.another_prior
        if other is None:
            return ""
        share = other.probabilities[other.best]
        undecided = "undecided, " if share < 0.5 else ""
        _, words = next(iter(self.estimators_.values()))._another_prior()
        return (
            f"Under another prior ({words}): {undecided}{'at least ' * other._is_at_edge}"
            f"{other.best} with probability {_probability(share)}{'' if other.reliable else ' (rough)'}."
        )

    def _range(self):
        """Whether larger numbers may be better than all that were compared."""
        largest = int(self.n_components[-1])
        if len(self.n_components) == 1:
            return f"{largest} was the only number asked for: ask for others."
        if self.stopped or largest not in self.estimators_:
            return self.stopped  # Or `_troubles` says that there is no fit.
        compared = [own for own in (self, self.another_prior) if own is not None]
        if self._is_at_edge or any(own.probabilities.get(largest, 0.0) >= PROBABLE for own in compared):
            more = f"n_components=range(1, {2 * largest + 1})"
            return f"{largest} was the largest number compared: ask for more, by {more}."
        return ""

    def _troubles(self):
        """Fits that were missed, or failed."""
        # P(K | X) counts the better fit among those of fewer clusters.
        told, parts = [k for k in self.missed if k == self.best or "probability" not in self.scores], []
        if told:
            missed = ", ".join(f"K = {k} by {self.missed[k]:.1f} nats" for k in told)
            parts.append(f"Better fits were missed ({missed}): raise n_init.")
        failed = [f"{k}" for k in self.n_components if k not in self.estimators_]
        if failed:
            parts.append(f"There is no fit of {' and '.join(failed)}: see notes.")
        return " ".join(parts)

    def partition_posterior(
        self,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        n_draws: int = 400,
        max_rows: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> PartitionPosterior:
        """Which rows belong together, averaged over all numbers of clusters by their probabilities.

        Parameters
        ----------
        X, sample_weight
            The same rows and weights as were compared.

        n_draws, max_rows, random_state
            As in :meth:`LRVBGaussianMixture.partition_posterior`.

        Returns
        -------
        partition : PartitionPosterior

        Raises
        ------
        ValueError
            X is not what was compared, P(K | X) was not asked for, or another argument is bad.
        """
        if all(parameters is None for parameters, _ in self._draws.values()):
            raise ValueError(
                "There are no draws to average: P(K | X) was not asked for, or no number has an optimum "
                "with rows in all components. (a) Compare by criteria=['probability'], smaller numbers "
                "too. (b) Ask one of estimators_ for its partition_posterior."
            )
        estimator = self.estimators_[self.best]
        return estimator._partition_posterior(X, sample_weight, n_draws, max_rows, random_state, self._drawn)

    def _drawn(self, rows, n_draws, random_state):
        """Draws of the numbers of components in proportion to P(K | X): sources, and two notes.

        Without chains a number may have no draws, and is left out.
        """
        known = {k: draws for k, draws in self._draws.items() if draws[0] is not None}
        weights = np.concatenate([self.probabilities[k] * own for k, (_, own) in known.items()])
        chosen = systematic_sample(weights, n_draws, random_state.random_sample())
        sources, first = [], 0
        for parameters, own in known.values():
            index = chosen[(chosen >= first) & (chosen < first + len(own))] - first
            if len(index):
                sources.append(parameters.with_draws(parameters.draws[index]))
            first += len(own)
        shares = {k: self.probabilities[k] for k in known}
        numbers = ", ".join(f"{k}: {share:.2f}" for k, share in shares.items() if share >= 0.005)
        share = _probability(self.probabilities[self.best])
        least = "at least " * self._is_at_edge
        of_number = f"The most probable number of components is {least}{self.best} ({share})."
        return (
            sources,
            f"In proportion to P(K | X) ({numbers}).",
            " ".join(filter(None, [of_number, self._nearest_prior(), self._range()])),
        )

    # The table.

    def _table(self):
        """Names of the columns; for every fit its cells, each with whether it is the best, and a remark."""
        columns = [("K", [f"{k}" for k in self.n_components], None)]  # Name, cells, and criterion.
        if self._has_prior and self.criteria != ("leave_one_out",):
            columns.append(("P(K)", _numbers(softmax(log_number_prior(self.n_components)), ".3f"), None))
        if "probability" in self.scores:
            columns.append(("P(K | X)", _numbers(self.scores["probability"], ".3f"), "probability"))
            if self.another_prior is not None:
                shares = self.another_prior.scores["probability"]
                columns.append(("other prior", _numbers(shares, ".3f"), None))
            cells = _numbers(self.log_evidence, ".1f", self.log_evidence_error)
            columns.append(("log evidence", cells, None))
        columns.append(("second order", _numbers(self.scores["second_order"], ".1f"), "second_order"))
        if "leave_one_out" in self.scores:
            scores = self.scores["leave_one_out"]
            columns.append(("leave-one-out", _numbers(scores, ".1f"), "leave_one_out"))
            below = scores - np.fmax.reduce(scores)  # NaN where all are.
            columns.append(("difference", _numbers(below, "z.1f", self.leave_one_out_std_error), None))
        columns.append(("occupied", [f"{n}" for n in self.n_occupied], None))
        rows = []
        for i, k in enumerate(self.n_components.tolist()):
            remarks = ["not converged"] * (not self.converged[i])
            remarks += ["no strict optimum"] * (not self.strict_optimum[i])
            remarks += ["better one missed"] * (k in self.missed)
            is_told = self.probabilities.get(k, 0.0) >= _LEAST_TOLD
            remarks += ["fewer in the fit"] * bool(is_told and self.n_occupied[i] < k)
            remarks = remarks or ["see notes"] * (k in self.notes)
            remark = ", ".join(remarks) if k in self.estimators_ else "failed"
            rows.append(([(own[i], self.best_.get(criterion) == k) for _, own, criterion in columns], remark))
        return [name for name, _, _ in columns], rows

    def __repr__(self) -> str:
        names, rows = self._table()
        lines = [([f"{name} " for name in names], "")]
        lines += [
            ([cell + ("*" if is_best else " ") for cell, is_best in cells], remark) for cells, remark in rows
        ]
        widths = [max(map(len, column)) for column in zip(*(cells for cells, _ in lines), strict=True)]
        table = ["  ".join([*map(str.rjust, cells, widths), remark]).rstrip() for cells, remark in lines]
        said = textwrap.wrap(f"{type(self).__name__}: {self.verdict}", _WIDTH, subsequent_indent="  ")
        return "\n".join([*said, *table])

    def _repr_html_(self) -> str:
        names, rows = self._table()
        head = "".join(f"<th {_NUMBER}>{html.escape(name)}</th>" for name in names)
        body = ""
        for cells, remark in rows:
            shown = [f"<b>{cell}</b>" if is_best else cell for cell, is_best in cells]
            numbers = "".join(f"<td {_NUMBER}>{cell}</td>" for cell in shown)
            said = f"<td {_REMARK}>{html.escape(remark)}</td>" if remark else ""
            body += f"<tr>{numbers}{said}</tr>"
        notes = "".join(
            f"<li>K = {k}: {html.escape(note)}</li>" for k, own in self.notes.items() for note in own
        )
        folded = f"<details><summary>Notes</summary><ul>{notes}</ul></details>" if notes else ""
        return (
            f"<div><p><b>{html.escape(self.verdict)}</b></p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{folded}</div>"
        )


def _probability(share):
    """A probability with two digits, which is not rounded to one."""
    return f"{share:.2f}" if share < 0.995 else "above 0.99"


def _numbers(values, form, errors=None):
    """Numbers as text, with their standard errors if there are any; empty where there is none."""
    errors = (
        [""] * len(values) if errors is None else [f" \N{PLUS-MINUS SIGN} {error:.1f}" for error in errors]
    )
    pairs = zip(values, errors, strict=True)
    return ["" if np.isnan(value) else f"{value:{form}}{error}" for value, error in pairs]
