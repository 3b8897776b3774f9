"""Whether the error bars of linear response can be trusted: the answer of `posterior_check`."""

import html
import textwrap
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import occupied
from sklearn_lrvb.gaussian_mixture.posterior_sampling.labels import evidence_of_all_copies
from sklearn_lrvb.gaussian_mixture.posterior_sampling.sampler import asymmetries, mean_shifts
from sklearn_lrvb.gaussian_mixture.uncertainty.targets import PARAMETERS
from sklearn_lrvb.row_blocks import untracked

_WIDTH = 88  # Columns of the display.
LEAST_DRAWS = 100  # Of importance sampling; with fewer its diagnostics mean nothing.

# Linear response is right where no mean shifts by more than this, in standard deviations; where the asymmetry
# is not above this; and where so large a share of draws is effective. In the study of the benchmarks
# (`benchmarks.accuracy.trust`) the first separates the cases nearly by itself.
_LITTLE_SHIFT, _LITTLE_ASYMMETRY, _MOSTLY_EFFECTIVE = 0.1, 0.4, 0.85
# With fewer rows a parameter than this, errors of higher order count too, and the shift may be half as large.
_FEW_ROWS = 20
# Beyond these importance sampling fails too, as a rule.
_LARGE_SHIFT, _LARGE_ASYMMETRY = 0.3, 0.7


@dataclass(frozen=True, repr=False)
class PosteriorCheck:
    """How far the exact posterior is from linear response (the result of ``posterior_check``).

    Attributes
    ----------
    verdict : str
        One sentence: what to trust, and why.
    recommendation : {'lrvb', 'importance', 'gibbs'}
        The same in a word: the `method` to pass to ``sample_posterior`` and
        ``posterior_summary``.
    asymmetry : float
        How much the log posterior two standard deviations away from its mode falls short of a quadratic, or
        exceeds it, as a share of it: the largest on both sides of the (at most five) directions in which most
        information is missing. 0 where linear response is exact.
    mean_shift : ndarray of shape (D,)
        By how many LRVB standard deviations the exact posterior means are above `posterior_mean_`, to first
        order, by parameter in the order of `posterior_names_`.
    mean_shift_error : ndarray of shape (D,)
        Monte Carlo standard errors of `mean_shift`.
    effective_share : float
        Share of draws by linear response that importance weights would leave effective, from those of the
        few draws by which the mean shift is computed.
    names : ndarray of str of shape (D,)
        `posterior_names_`.
    is_of_occupied : ndarray of bool of shape (D,)
        Whether each parameter is of a component that holds rows. The verdict, and the largest mean shift that
        is displayed, are about these.
    n_rows : float
        Rows, each as often as it counts.
    n_occupied, n_components : int
        Components that hold rows, and all.
    n_draws : int
        Draws of importance sampling. What follows is None where there are fewer than 100.
    log_evidence_bound : float or None
        A lower bound on log p(X) in nats, closer than `lower_bound_`, of the labelling of the fit, to compare
        with `log_evidence_`.
    log_evidence_bound_error : float or None
        Its Monte Carlo standard error.
    log_evidence : float or None
        log p(X) in nats by importance sampling: the mode of the fit, with all relabellings of its components
        (`log_evidence_` of the mixture is of one labelling). Other modes are not in it. Draws count if their
        components are closest to those of the fit in the order of the fit, so that copies that overlap are
        not counted twice. None where no draw counts, because many components overlap, and under a Dirichlet
        process with more than 12 components.
    log_evidence_error : float or None
        Its Monte Carlo standard error. What draws do not reach at all is not in it: the evidence is then too
        low, with few rows by 0.2 nats where the error was 0.02.
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

    See Also
    --------
    sklearn_lrvb.LRVBGaussianMixture.posterior_check : Makes it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> X = load_iris().data[:, 2:]  # length and width of 150 petals
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> mixture.posterior_check(X, random_state=0)
    PosteriorCheck: Trust linear response (means off by up to 0.02 sd, asymmetry 0.04).
      asymmetry            0.04
      largest mean shift   -0.02 +- 0.00 sd, of precision[1,x0,x1]
      rows, parameters     150, 12
      occupied components  2 of 2
    """

    asymmetry: float
    mean_shift: NDArray[np.float64]
    mean_shift_error: NDArray[np.float64]
    effective_share: float
    names: NDArray[np.str_]
    is_of_occupied: NDArray[np.bool_]
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

    @property
    def recommendation(self) -> str:
        """What to use: "lrvb", "importance" or "gibbs"."""
        n_empty, little_shift = self.n_components - self.n_occupied, _LITTLE_SHIFT
        if self._rows_per_parameter < _FEW_ROWS:
            little_shift *= 0.5
        # The weights of empty components are uneven, however well the others are known.
        is_near = n_empty > 0 or (
            self.effective_share >= _MOSTLY_EFFECTIVE and self.asymmetry <= _LITTLE_ASYMMETRY
        )
        if is_near and self._largest_shift <= little_shift:
            return "lrvb"
        if self.reliable is not None:
            return "importance" if self.reliable else "gibbs"
        is_near = self._largest_shift <= _LARGE_SHIFT and self.asymmetry <= _LARGE_ASYMMETRY
        return "importance" if is_near and not n_empty else "gibbs"  # NaN is not near.

    @property
    def verdict(self) -> str:
        """The same in a sentence, with the reasons."""
        recommendation, n_empty = self.recommendation, self.n_components - self.n_occupied
        reasons = [f"means off by up to {self._largest_shift:.2f} sd, asymmetry {self.asymmetry:.2f}"]
        empty = f"{n_empty} empty component{'s' * (n_empty > 1)}"
        if recommendation == "lrvb":
            whom = "linear response"
            if n_empty:
                whom += " for the components that hold rows"
                reasons.append(f'{empty}, for whose parameters use method="gibbs"')
            return f"Trust {whom} ({'; '.join(reasons)})."
        if self._rows_per_parameter < _FEW_ROWS:
            reasons.append(f"{self._rows_per_parameter:.0f} rows a parameter")
        if self.reliable is False:
            reasons.append("importance weights too uneven")
        if n_empty:
            reasons.append(empty)
        if recommendation == "gibbs":
            reasons.append("Gibbs sampling does not check its convergence")
        return f'Use method="{recommendation}" ({"; ".join(reasons)}).'

    @property
    def _largest_shift(self):
        return float(np.abs(self.mean_shift[self.is_of_occupied]).max(initial=0.0))

    @property
    def _rows_per_parameter(self):
        return self.n_rows / max(self.is_of_occupied.sum(), 1)

    def __repr__(self):
        width = max(len(name) for name, _ in self._lines())
        lines = [f"  {name:<{width}}  {value}" for name, value in self._lines()]
        said = textwrap.wrap(f"PosteriorCheck: {self.verdict}", _WIDTH, subsequent_indent="  ")
        return "\n".join([*said, *lines])

    def _repr_html_(self):
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(value)}</td></tr>'
            for name, value in self._lines()
        )
        verdict = f"<p><b>{html.escape(self.verdict)}</b></p>"
        return f'{verdict}<table style="margin-left:0">{rows}</table>'

    def _lines(self):
        """Names and values of what is displayed, pairs of str."""
        largest = int(np.argmax(np.where(self.is_of_occupied, np.abs(self.mean_shift), -1.0)))
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
        evidence = "not computed: too many components, or too much overlap"
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
    rows : Rows, checked by ``sampler.checked_rows``
    n_draws : int, at least `LEAST_DRAWS` for importance sampling
    random_state : numpy.random.RandomState
    names : ndarray of str (D,)
    tracked : Tracked, through which the batches of draws are gone
    """
    asymmetry = float(np.abs(asymmetries(sampler, rows)).max(initial=0.0))
    shifts, errors, log_ratios = mean_shifts(sampler, rows, random_state, PARAMETERS)
    found = {}
    if n_draws >= LEAST_DRAWS:
        draws, weights = sampler.importance(rows, n_draws, random_state, tracked)
        moments = [np.array(draws.moments(target)) for target in PARAMETERS]
        ends = [draws.quantiles(target, [0.025, 0.975]) for target in PARAMETERS]
        found["mean"], found["std"] = np.concatenate(moments, axis=1)
        found["lower"], found["upper"] = np.concatenate(ends, axis=1)
        found["log_evidence_bound"] = weights.log_evidence_bound
        found["log_evidence_bound_error"] = weights.log_evidence_bound_error
        evidence = evidence_of_all_copies(draws.parameters, weights)
        found["log_evidence"], found["log_evidence_error"] = evidence
        found["k_hat"], found["effective_draws"] = weights.k_hat, weights.effective_draws
        found["reliable"] = weights.are_reliable
    is_occupied = occupied(sampler.posterior.counts)
    theta = sampler.fitted.targets.theta
    return PosteriorCheck(
        asymmetry=asymmetry,
        mean_shift=shifts,
        mean_shift_error=errors,
        effective_share=float(np.exp(-np.var(log_ratios))),
        names=names,
        is_of_occupied=np.concatenate([occupied(target.counts()) for target in theta]),
        n_rows=rows.total_weight,
        n_occupied=int(is_occupied.sum()),
        n_components=len(is_occupied),
        n_draws=n_draws,
        **found,
    )
