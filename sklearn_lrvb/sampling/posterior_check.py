"""Whether the error bars of linear response can be trusted: the answer of `posterior_check`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.reports import SentenceAndNumbers
from sklearn_lrvb.rows import untracked
from sklearn_lrvb.sampling.labels import are_in_order, evidence_of_all_copies
from sklearn_lrvb.sampling.sampler import mean_shifts, sd_ratios
from sklearn_lrvb.verdict import Verdict

_FEW_PARAMETERS = 20  # Typical number in the fits by which the verdict's rule was chosen.
LEAST_DRAWS = 100  # Of importance sampling; with fewer its diagnostics mean nothing.


@dataclass(frozen=True, repr=False)
class PosteriorCheck(SentenceAndNumbers):
    """How far the exact posterior is from linear response (the result of ``posterior_check``).

    Attributes
    ----------
    state : {'good', 'rough', 'wrong'}
        How good linear response is: 'good' where standard deviations are within 10 % and means within 0.2
        standard deviations of the exact posterior, 'rough' where most are within a third and 0.6, and else
        'wrong'. It is decided by the largest `mean_shift`, by `log_ratio_variance` and by `sd_ratio`; the
        guide "Can I trust these error bars?" says how often it was right.
    verdict : str
        The same in a sentence.
    recommendation : {'lrvb', 'exact'}
        The `method` to pass to ``posterior``, where "auto" does not choose.
    mean_shift : ndarray of shape (D,)
        By how many LRVB standard deviations the exact posterior means are above `posterior_mean_`, to first
        order, by parameter in the order of `posterior_names_`. All but the weights of components that hold no
        rows, under a learned prior, is drawn from its prior instead, and the means are those.
    mean_shift_error : ndarray of shape (D,)
        Monte Carlo standard errors of `mean_shift`.
    log_ratio_variance : float
        Variance of log p(X, theta) less the log density of draws by linear response, of these draws. 0 where
        linear response is exact.
    sd_ratio : ndarray of shape (D,)
        Standard deviations of some hundred draws by linear response over `posterior_std_`; one for weights.
        Draws of a mean depend on its precision, as in the posterior: where few values tell the precision,
        they vary more.
    names : ndarray of str of shape (D,)
        `posterior_names_`.
    is_of_occupied : ndarray of bool of shape (D,)
        Whether each parameter is of a component that holds rows. The state, and the largest mean shift that
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
        equal that it is noise. Above 0.7 the evidence is not reliable.
    effective_draws : float or None
        Number of draws from the exact posterior that the weighted ones are worth.
    reliable : bool or None
        Whether the evidence can be relied on, by `k_hat` and `effective_draws`.

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
    PosteriorCheck: Linear response is good: sds within 10 %, means within 0.2 sd.
      largest mean shift     +0.03 +- 0.01 sd, of precision[1,x0,x0]
      variance of log ratio  0.00
      sd of draws over sd    0.94, of precision[1,x0,x0]
      rows, parameters       150, 12
      occupied components    2 of 2
    """

    mean_shift: NDArray[np.float64]
    mean_shift_error: NDArray[np.float64]
    log_ratio_variance: float
    sd_ratio: NDArray[np.float64]
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

    @property
    def state(self) -> str:
        """How good linear response is: "good", "rough" or "wrong"."""
        return self.decided.state

    @property
    def recommendation(self) -> str:
        """What to use: "lrvb" or "exact"."""
        return "lrvb" if self.decided.is_enough else "exact"

    @property
    def verdict(self) -> str:
        """The state in a sentence."""
        return self.decided.sentence

    @property
    def decided(self) -> Verdict:
        """What `state` and `verdict` are read from: Verdict."""
        # The variance grows with the number of parameters though each error bar stays as right as it is.
        scale = np.sqrt(max(1.0, self.is_of_occupied.sum() / _FEW_PARAMETERS))
        return Verdict(
            self._largest_shift,
            self.log_ratio_variance / scale,
            sd_ratio=float(np.exp(self._log_ratios.max(initial=0.0))),
            has_empty=self.n_occupied < self.n_components,
        )

    @property
    def _largest_shift(self):
        return float(np.abs(self.mean_shift[self.is_of_occupied]).max(initial=0.0))

    @property
    def _log_ratios(self):
        """Distances of `sd_ratio` from one, of occupied components."""
        with np.errstate(divide="ignore"):
            return np.where(self.is_of_occupied, np.abs(np.log(self.sd_ratio)), 0.0)

    def _lines(self):
        largest = int(np.argmax(np.where(self.is_of_occupied, np.abs(self.mean_shift), -1.0)))
        widest = int(np.argmax(self._log_ratios))
        lines = [
            (
                "largest mean shift",
                f"{self.mean_shift[largest]:+.2f} +- {self.mean_shift_error[largest]:.2f} sd, "
                f"of {self.names[largest]}",
            ),
            ("variance of log ratio", f"{self.log_ratio_variance:.2f}"),
            ("sd of draws over sd", f"{self.sd_ratio[widest]:.2f}, of {self.names[widest]}"),
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
            ("evidence", "reliable" if self.reliable else "not reliable"),
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
    parameters = sampler.fitted.targets.parameters
    shifts, errors, log_ratios = mean_shifts(sampler, rows, random_state, parameters)
    evidence = {}
    if n_draws >= LEAST_DRAWS:
        parameters, weights = sampler.importance(rows, n_draws, random_state, tracked)
        log_evidence, error = evidence_of_all_copies(parameters, weights, are_in_order(parameters))
        evidence = {
            "log_evidence_bound": weights.log_evidence_bound,
            "log_evidence_bound_error": weights.log_evidence_bound_error,
            "log_evidence": log_evidence,
            "log_evidence_error": error,
            "k_hat": weights.k_hat,
            "effective_draws": weights.effective_draws,
            "reliable": weights.are_reliable,
        }
    is_occupied = occupied(sampler.posterior.counts)
    theta = sampler.fitted.targets.theta
    return PosteriorCheck(
        mean_shift=shifts,
        mean_shift_error=errors,
        log_ratio_variance=float(np.var(log_ratios)),
        sd_ratio=sd_ratios(sampler, random_state, *sampler.fitted.targets.parameters),
        names=names,
        is_of_occupied=np.concatenate([occupied(target.counts()) for target in theta]),
        n_rows=rows.total_weight,
        n_occupied=int(is_occupied.sum()),
        n_components=len(is_occupied),
        n_draws=n_draws,
        **evidence,
    )
