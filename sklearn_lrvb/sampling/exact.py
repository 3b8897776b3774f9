"""The exact posterior: chains that run until their draws are enough.

*When to stop.* Chains run in blocks, and only the last block is kept: the others forget the start. Chains
stop where the limits of 95 % intervals are known to `_ERROR` standard deviations (`ChainDraws.errors`), and
every chain is worth `_LEAST_PER_CHAIN` independent draws: of what a table shows of components that hold rows.
(One that holds none and takes some takes them from these.) While chains still drift, or stay in different
modes, their means differ, and the error tells so. Chains that take longer than a user is ready to wait stop,
and the note says what is known how well.

*How to go on.* Where a scan gives nearly independent draws, the next block has more scans; where not, its
scans have more Gibbs iterations, which cost less than trajectories.

*The start.* Chains start at the fit and at the optima of other starts (`chains`), so that they agree only
where they pass between these.
"""

import copy

import numpy as np

from sklearn_lrvb.rows import untracked
from sklearn_lrvb.sampling.chain_draws import ChainDraws
from sklearn_lrvb.sampling.chains import KEPT_OF_SCAN, Scans, n_chains_of, start_of_chains
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.sampling.labels import in_mode
from sklearn_lrvb.sampling.likelihood import expected_counts
from sklearn_lrvb.sampling.random_assignments import can_be_assigned

# Monte Carlo standard error of the limits of 95 % intervals, in standard deviations: that at which chains
# stop, and that up to which they are called converged.
_ERROR, _LARGEST_ERROR = 0.1, 0.2
_INDEPENDENT_DRAWS = 720  # That have this error where the posterior is normal.
_LEAST_PER_CHAIN = 5.0  # Independent draws of each chain, by which it has forgotten its start.
_FIRST_SCANS, _FIRST_GIBBS = 12, 4  # Of the first block, and Gibbs iterations of its scans.
_LEAST_SCANS = 12  # Of later blocks.
_LEAST_SHARE = 0.25  # Of independent draws in a scan of all chains, below which Gibbs iterations are added.
_MOST_GIBBS, _MORE_GIBBS = 64, 4  # Iterations of a scan, and the factor by which they are added.
_SPARE = 1.2  # Factor of the number of scans that seem to be enough.
_MOST_DRAWS, _MOST_NUMBERS = 8192, 2**24  # That are kept, unless more are asked for; and of their numbers.
# Share of draws in another mode up to which the note says nothing of it, and its largest standard error.
_SMALL_SHARE_AWAY, _ERROR_OF_SHARE = 0.005, 0.05
_LARGE_GAIN = 5.0  # Nats by which another optimum is better than the fit, from which on the note says so.
_LEAST_COUNT = 0.5  # Rows of a component whose parameters are looked at.
# A component whose share is not below so many rows has more than the few that moments need; and draws for
# which rows are counted, about.
_FEW_ROWS, _MOST_COUNTED = 30.0, 1024

# Shares of accepted trajectories beyond which the number of steps changes: by the third and fourth number
# after each of so many first scans, and by one after each later block.
_SCANS_OF_STEPS = 4
_LOW, _HIGH, _STEPS_UP, _STEPS_DOWN = 0.6, 0.9, 1 / 3, 1.0
_LOW_LATER, _HIGH_LATER = 0.5, 0.9

# Chains stop after about so many seconds, or after the second number times what the least number of scans
# takes. They are counted by the passes of all chains over the rows, so that results do not depend on the
# machine.
_SECONDS, _TIMES_LEAST = 15.0, 4.0
_SECONDS_A_PASS, _SECONDS_A_CHAIN, _PRODUCTS_A_SECOND = 3e-4, 4e-6, 1e9
_PASSES_AT_LEAST = 290


class ExactPosterior:
    """The exact posterior of one fit, by draws of many chains.

    Parameters
    ----------
    sampler : PosteriorSampler
    rows : Rows, checked by ``sampler.checked_rows``
    seed : int
    tracked : Tracked, through which the scans are gone

    Attributes
    ----------
    draws : ChainDraws, of the last block
    gain : float, nats by which the lower bound of another start is above that of the fit
    has_gibbs : bool
        Whether scans have Gibbs iterations, for which rows must count a whole number of times.
    share_away : float, of the draws: those in another mode of the posterior than the fit; they are kept
    errors : dict of (d,) arrays
        By the name of a target, `ChainDraws.errors` of the limits of intervals; NaN in components that hold
        no rows.
    few_counts : (n, K)
        Expected rows of the components under those draws in which one may have few; infinite in one row where
        there are no such draws.
    """

    def __init__(self, sampler, rows, seed, tracked=untracked):
        self._sampler, self._seed, self._n_scans, self._n_planned = sampler, seed, 0, _FIRST_SCANS
        self._longer = {}  # By the number of draws that was asked for.
        self.has_gibbs = can_be_assigned(rows)
        self._n_chains = n_chains_of(sampler.posterior, rows.n_samples)
        scans = Scans(sampler, rows, seed, _FIRST_GIBBS * self.has_gibbs)
        with sampler.threads():
            start, self.gain = start_of_chains(
                sampler, rows, self._n_chains, np.random.RandomState(seed % 2**32)
            )
            self._states = [start]
            for _ in tracked(self._blocks(scans, rows), lambda: self._n_planned):
                pass
            self.few_counts = self._few_counts(rows)
        self._way = scans.n_gibbs, scans.n_steps

    def _blocks(self, scans, rows):
        """Run the chains until they have converged, or cannot do so in time; yield after every scan."""
        a_pass = _seconds_of_pass(self._sampler.posterior, rows)
        seconds = max(_SECONDS, _TIMES_LEAST * seconds_of_exact(self._sampler.posterior, rows))
        most_draws = min(_MOST_DRAWS, _MOST_NUMBERS // self._sampler.posterior.n_coefficients)
        for number, share in enumerate(self._block(scans, _FIRST_SCANS, [])):
            if number < _SCANS_OF_STEPS:
                scans.add_steps(_STEPS_UP * (share < _LOW) - _STEPS_DOWN * (share > _HIGH))
            yield
        n_scans = _LEAST_SCANS
        while n_scans:
            seconds -= n_scans * a_pass * _n_passes(scans)
            states, shares = [], []
            for share in self._block(scans, n_scans, states):
                shares.append(share)
                yield
            self._states = states[:: -max(len(states) * self._n_chains // most_draws, 1)][::-1]
            n_scans = min(self._next_scans(scans, shares), int(seconds / (a_pass * _n_passes(scans))))
            if n_scans < _LEAST_SCANS:
                return

    def _next_scans(self, scans, shares):
        """The number of scans of the next block, 0 where the draws are enough; scans change in kind.

        Parameters
        ----------
        scans : Scans
        shares : list of float, those of accepted trajectories in the last block
        """
        needed, n_scans, share = self._assess(), len(shares), np.mean(shares)
        if needed <= 1.0:
            return 0
        scans.add_steps(float(share < _LOW_LATER) - float(share > _HIGH_LATER))
        is_slow = needed * self._n_chains * n_scans * _LEAST_SHARE > _INDEPENDENT_DRAWS
        if is_slow and 0 < scans.n_gibbs < _MOST_GIBBS:
            scans.n_gibbs *= _MORE_GIBBS
            return max(n_scans, _LEAST_SCANS)
        return int(np.ceil(n_scans * max(2.0, _SPARE * needed)))

    def _block(self, scans, n_scans, states):
        """Go on from the last state by some scans, add their states to a list; yield shares accepted."""
        draws, self._n_planned = self._states[-1], self._n_scans + n_scans
        for number in range(1, n_scans + 1):
            kept, share = scans.scan(draws, self._n_scans + number)
            draws = kept[-1]
            states.extend(kept)
            yield share
        self._n_scans += n_scans
        self._states = [draws]

    def _assess(self):
        """Take the draws of the states; return how many times as many would be enough."""
        self.draws, self.share_away, self._error_of_share = self._draws_of(self._states)
        self.errors, targets, worst = {}, self._sampler.fitted.targets, 0.0
        for name in targets.reported:
            is_counted = targets[name].is_reported(_LEAST_COUNT)
            of_means, of_limits = np.where(is_counted, self.draws.errors(name), np.nan)
            self.errors[name] = of_limits
            worst = max(worst, float(np.nanmax(of_means, initial=0.0)))
        for_chains = _LEAST_PER_CHAIN * self._n_chains * np.square(worst)
        return max(float(np.square(self.largest_error / _ERROR)), for_chains)

    @property
    def has_converged(self):
        """Whether the draws are enough."""
        return self.largest_error <= _LARGEST_ERROR and self._error_of_share <= _ERROR_OF_SHARE

    def _few_counts(self, rows):
        parameters, n_components = self.draws.parameters, self._sampler.posterior.n_components
        smallest = parameters.weights[:, :n_components].min(axis=1) * rows.total_weight
        some = np.flatnonzero(smallest < _FEW_ROWS)
        if not some.size:
            return np.full((1, n_components), np.inf)
        some = some[:: max(len(some) // _MOST_COUNTED, 1)]
        return expected_counts(rows, parameters.with_draws(parameters.draws[some]))[:, :n_components]

    def _draws_of(self, states):
        """The draws of some states, ChainDraws; the share in another mode than the fit, and its error."""
        parameters = self._sampler.parameters(DrawArrays.concatenated(states))
        parameters, is_away = in_mode(parameters, self._sampler.uncertainty)
        by_chain = is_away.reshape(-1, self._n_chains).mean(axis=0)
        draws = ChainDraws(parameters, np.arange(len(is_away)) % self._n_chains)
        return draws, float(by_chain.mean()), float(by_chain.std() / np.sqrt(self._n_chains))

    def at_least(self, n_draws, rows, tracked=untracked):
        """With so many draws or more: ExactPosterior. Where these are too few, the chains of a copy go on.

        Parameters
        ----------
        n_draws : int
        rows : Rows or None, the training rows, without which there are no more than those that are kept
        tracked : Tracked, through which further scans are gone
        """
        if len(self.draws) >= n_draws:
            return self
        if n_draws not in self._longer:
            if rows is None:
                raise ValueError(
                    f"{len(self.draws)} draws of the exact posterior are kept, and {n_draws} need the "
                    "training rows: pass X, or ask for fewer."
                )
            longer = copy.copy(self)
            longer._go_on(n_draws, rows, tracked)
            self._longer = {n_draws: longer}
        return self._longer[n_draws]

    def _go_on(self, n_draws, rows, tracked):
        scans, self._longer = Scans(self._sampler, rows, self._seed, *self._way), {}
        n_of_scan = (1 + min(scans.n_gibbs, KEPT_OF_SCAN)) * self._n_chains
        while len(self.draws) < n_draws:
            n_scans, states = -(-(n_draws - len(self.draws)) // n_of_scan), list(self._states)
            with self._sampler.threads():
                for _ in tracked(self._block(scans, n_scans, states), n_scans):
                    pass
                self._states = states
                self._assess()
                self.few_counts = self._few_counts(rows)

    @property
    def is_fit_poor(self):
        """Whether another start is so much better that the fit is not where the posterior is."""
        return self.gain > _LARGE_GAIN

    @property
    def largest_error(self):
        """The largest of `errors`, float."""
        return max(float(np.nanmax(errors, initial=0.0)) for errors in self.errors.values())

    @property
    def note(self):
        """A line that says how good the draws are."""
        if self.has_converged:
            parts = [f"Exact posterior: limits of 95 % intervals to {self.largest_error:.2f} sd or better."]
        else:
            by_target = ", ".join(
                f"{np.nanmax(errors, initial=0.0):.2f} sd ({name.replace('_', ' ')})"
                for name, errors in self.errors.items()
            )
            parts = [
                f"Exact posterior, not converged: limits of 95 % intervals are known to {by_target}. To "
                f"go on, ask for n_draws={4 * len(self.draws)}."
            ]
        if self.share_away > _SMALL_SHARE_AWAY:
            share = f"{100 * self.share_away:.2g} +- {100 * self._error_of_share:.1g} % of the draws"
            share = f"{share} are in another mode of the posterior"
            parts.append(f"{share} than the fit.")
        if self.is_fit_poor:
            parts.append(
                f"The fit is not the best: another start ends {self.gain:.0f} nats higher. Fit again with "
                "n_init=12 or moves='search'."
            )
        if not self.has_gibbs:
            parts.append("Without Gibbs iterations, because sample_weight is not in whole numbers.")
        return " ".join(parts)


def seconds_of_exact(posterior, rows):
    """About how long `ExactPosterior` takes on one core at the least, float, by the size of its products."""
    return _PASSES_AT_LEAST * _seconds_of_pass(posterior, rows)


def _seconds_of_pass(posterior, rows):
    """About how long a pass of all chains over the rows takes."""
    n_rows = rows.n_samples
    a_chain = _SECONDS_A_CHAIN + n_rows * posterior.products_per_row / _PRODUCTS_A_SECOND
    return _SECONDS_A_PASS + n_chains_of(posterior, n_rows) * a_chain * (3.0 if rows.has_missing else 1.0)


def _n_passes(scans):
    """Passes of a scan: of Gibbs iterations one each; of slopes, which take two, one a step and two more."""
    return scans.n_gibbs + 2.0 * (scans.n_steps + 2.0)
