"""Whether the error bars of linear response can be trusted: the answer of `posterior_check`."""

import html
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_lrvb.gaussian_mixture.posterior.occupied_components import occupied
from sklearn_lrvb.gaussian_mixture.posterior_sampling.diagnostics import asymmetries, mean_shifts
from sklearn_lrvb.gaussian_mixture.posterior_sampling.relabellings import log_total_over_one
from sklearn_lrvb.gaussian_mixture.uncertainty.targets import PARAMETERS
from sklearn_lrvb.row_blocks import untracked

LEAST_DRAWS = 100  # Of importance sampling; with fewer its diagnostics mean nothing.

# Asymmetry below which linear response is right, and above which importance sampling fails too.
_SYMMETRIC, _TOO_ASYMMETRIC = 0.1, 0.3
_LITTLE_SHIFT = 0.1  # Largest mean shift, in standard deviations, for which linear response is right.


@dataclass(frozen=True, repr=False)
class PosteriorCheck:
    """How far the exact posterior is from linear response (the result of ``posterior_check``).

    Attributes
    ----------
    verdict : str
        One sentence: what to trust, and why.
    recommendation : {'lrvb', 'importance', 'gibbs'}
        The same in a word: 'lrvb' trusts linear response; the others are values of ``correction`` of
        ``sample_posterior`` and ``posterior_summary``.
    asymmetry : float
        How much the log posterior two standard deviations away from its mode falls short of a quadratic, or
        exceeds it, as a share of it: the largest on both sides of the (at most five) directions in which most
        information is missing. 0 where linear response is exact.
    mean_shift : ndarray of shape (D,)
        By how many LRVB standard deviations the exact posterior means are above `posterior_mean_`, to first
        order, by parameter in the order of `posterior_names_`.
    mean_shift_error : ndarray of shape (D,)
        Monte Carlo standard errors of `mean_shift`.
    names : ndarray of str of shape (D,)
        `posterior_names_`.
    n_rows : float
        Rows, each as often as it counts.
    n_occupied, n_components : int
        Components that hold rows, and all.
    n_draws : int
        Draws of importance sampling. What follows is None where there are fewer than 100.
    log_evidence_bound : float or None
        A lower bound on log p(X) in nats, closer than `lower_bound_`, of the labelling of the fit.
    log_evidence_bound_error : float or None
        Its Monte Carlo standard error.
    log_evidence : float or None
        log p(X) in nats by importance sampling, with all relabellings of the components: log K! more than the
        evidence of the fit's labelling under a Dirichlet prior. None under a Dirichlet process with more than
        12 components.
    log_evidence_error : float or None
        Its Monte Carlo standard error.
    k_hat : float or None
        Shape of the tail of the importance weights (Pareto smoothing); 0 where the weights are so nearly
        equal that it is noise. Above 0.7 importance sampling fails.
    effective_draws : float or None
        Number of draws from the exact posterior that the weighted ones are worth.
    reliable : bool or None
        Whether importance sampling can be relied on, by `k_hat` and `effective_draws`.
    mean, std : ndarray of shape (D,) or None
        Posterior means and standard deviations by importance sampling, in the order of `posterior_names_`.
    lower, upper : ndarray of shape (D,) or None
        Ends of the central 95 % intervals by importance sampling.
    """

    verdict: str
    recommendation: str
    asymmetry: float
    mean_shift: NDArray[np.float64]
    mean_shift_error: NDArray[np.float64]
    names: NDArray[np.str_]
    n_rows: float
    n_occupied: int
    n_components: int
    n_draws: int
    log_evidence_bound: float | None = None
    log_evidence_bound_error: float | None = None
    log_evidence: float | None = None
    log_evidence_error: float | None = None
    k_hat: float | None = None
    effective_draws: float | None = None
    reliable: bool | None = None
    mean: NDArray[np.float64] | None = None
    std: NDArray[np.float64] | None = None
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None

    def __repr__(self):
        width = max(len(name) for name, _ in self._lines())
        lines = [f"  {name:<{width}}  {value}" for name, value in self._lines()]
        return "\n".join([f"PosteriorCheck: {self.verdict}", *lines])

    def _repr_html_(self):
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(value)}</td></tr>'
            for name, value in self._lines()
        )
        return f"<p><b>{html.escape(self.verdict)}</b></p><table>{rows}</table>"

    def _lines(self):
        """Names and values of what is displayed, pairs of str."""
        largest = int(np.argmax(np.abs(self.mean_shift)))
        lines = [
            ("asymmetry", f"{self.asymmetry:.2f}"),
            (
                "largest mean shift",
                f"{self.mean_shift[largest]:+.2f} +- {self.mean_shift_error[largest]:.2f} sd, "
                f"of {self.names[largest]}",
            ),
            ("rows, parameters", f"{self.n_rows:g}, {len(self.names)}"),
            ("occupied components", f"{self.n_occupied} of {self.n_components}"),
        ]
        if self.k_hat is None:
            return lines
        evidence = "not computed for so many components"
        if self.log_evidence is not None:
            evidence = f"{self.log_evidence:.2f} +- {self.log_evidence_error:.2f}"
        return [
            *lines,
            ("effective draws", f"{self.effective_draws:.0f} of {self.n_draws}"),
            ("k hat", f"{self.k_hat:.2f}"),
            ("importance sampling", "reliable" if self.reliable else "not reliable"),
            ("log evidence bound", f"{self.log_evidence_bound:.2f} +- {self.log_evidence_bound_error:.2f}"),
            ("log evidence", evidence),
        ]


def checked_posterior(sampler, rows, n_draws, random_state, names, tracked=untracked):
    """`PosteriorCheck` of a fit.

    Parameters
    ----------
    sampler : PosteriorSampler
    rows : CentredRows, checked by ``sampler.checked_rows``
    n_draws : int, at least `LEAST_DRAWS` for importance sampling
    random_state : numpy.random.RandomState
    names : ndarray of str (D,)
    tracked : Tracked, through which the batches of draws are gone
    """
    counts = sampler.posterior.counts
    asymmetry = float(np.abs(asymmetries(sampler, rows)).max(initial=0.0))
    shifts, errors = mean_shifts(sampler, rows, random_state, PARAMETERS)
    found = {}
    if n_draws >= LEAST_DRAWS:
        found = _importance_sampled(sampler, rows, n_draws, random_state, tracked)
    n_occupied = int(occupied(counts).sum())
    recommendation, verdict = _verdict(
        asymmetry, shifts, errors, len(counts) - n_occupied, rows.total_weight, found
    )
    return PosteriorCheck(
        verdict,
        recommendation,
        asymmetry,
        shifts,
        errors,
        names,
        rows.total_weight,
        n_occupied,
        len(counts),
        n_draws,
        **found,
    )


def _importance_sampled(sampler, rows, n_draws, random_state, tracked):
    """The attributes of `PosteriorCheck` that come from importance sampling: dict by name."""
    draws, weights = sampler.importance(rows, n_draws, random_state, tracked)
    moments = [draws.moments(target) for target in PARAMETERS]
    ends = [draws.quantiles(target, [0.025, 0.975]) for target in PARAMETERS]
    relabelled = log_total_over_one(draws.parameters, weights.weights)
    return {
        "log_evidence_bound": weights.log_evidence_bound,
        "log_evidence_bound_error": weights.log_evidence_bound_error,
        "log_evidence": None if relabelled is None else weights.log_evidence + relabelled,
        "log_evidence_error": weights.log_evidence_error,
        "k_hat": weights.k_hat,
        "effective_draws": weights.effective_draws,
        "reliable": weights.are_reliable,
        "mean": np.concatenate([mean for mean, _ in moments]),
        "std": np.concatenate([std for _, std in moments]),
        "lower": np.concatenate([lower for lower, _ in ends]),
        "upper": np.concatenate([upper for _, upper in ends]),
    }


def _verdict(asymmetry, shifts, errors, n_empty, n_rows, found):
    """The recommendation, and the sentence that says it: a pair of str."""
    # A shift counts as far as it is beyond its own Monte Carlo error.
    shift = float(np.max(np.abs(shifts) - errors, initial=0.0))
    what = f"asymmetry {asymmetry:.2f}, means off by up to {shift:.2f} sd"
    if not math.isfinite(asymmetry):
        what = "the posterior ends within two standard deviations"
    per_parameter = n_rows / len(shifts)
    if per_parameter < 50:
        what += f", {per_parameter:.0f} rows a parameter"
    if n_empty:
        what += f", {n_empty} empty component{'s' * (n_empty > 1)}"
    if asymmetry <= _SYMMETRIC and shift <= _LITTLE_SHIFT and not n_empty:
        return "lrvb", f"Trust linear response ({what})."
    if asymmetry <= _TOO_ASYMMETRIC and not n_empty and found.get("reliable", True):
        return "importance", f'Use correction="importance" ({what}).'
    return "gibbs", f'Use correction="gibbs" ({what}).'
