"""The exact posterior: chains that run until their draws are enough.

*When to stop.* Chains run in blocks, and only the last block is kept: earlier ones are warm-up. Chains stop
when two things hold for everything that a table shows of components that hold rows: the limits of its 95 %
interval are known to 0.1 posterior standard deviations (`ChainDraws.errors`), and chains are worth five
independent draws each, on average. (Empty components are not looked at: the rows that they gain are lost by
one that is.) Chains that still drift, or stay in different modes, have different means, which makes the
error large. Chains that take longer than a user is ready to wait stop too, and the note gives the error of
each kind of parameter.

*How to go on.* Where a scan is worth a quarter of an independent draw a chain, or more, the next block has
more scans. Otherwise its scans have four times as many Gibbs iterations, which cost less than trajectories:
up to 64, and then there are more scans too.

*The start.* Chains start at draws of linear response and at the optima of other starts (`start_of_chains`).
They agree only if they can move between the optima.
"""

import copy

import numpy as np

from sklearn_lrvb.mixture.model import LEAST_COUNT
from sklearn_lrvb.rows import untracked
from sklearn_lrvb.sampling.chain_draws import ChainDraws
from sklearn_lrvb.sampling.chains import KEPT_OF_SCAN, Scans, n_chains_of, start_of_chains
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.sampling.labels import in_mode
from sklearn_lrvb.sampling.likelihood import expected_counts
from sklearn_lrvb.sampling.random_assignments import MOST_COPIES, can_be_assigned

# Monte Carlo standard error of the limits of 95 % intervals, in posterior standard deviations: at which
# chains stop, and above which they are called not converged.
_ERROR, _LARGEST_ERROR = 0.1, 0.2
_INDEPENDENT_DRAWS = 714  # By which a limit of a normal posterior is known to the first error.
_LEAST_PER_CHAIN = 5.0  # Independent draws that each chain is worth, on average, when it may stop.
_FIRST_SCANS, _FIRST_GIBBS = 12, 4  # Of the first block, and Gibbs iterations of its scans.
_LEAST_SCANS = 12  # Of later blocks.
_LEAST_SHARE = 0.25  # Independent draws that a scan of one chain is worth; below, Gibbs iterations are added.
_MOST_GIBBS, _MORE_GIBBS = 64, 4  # Iterations of a scan, and the factor by which they are added.
_SPARE = 1.2  # Factor of the number of scans that seem to be enough.
_MOST_DRAWS, _MOST_NUMBERS = 2**14, 2**24  # That are kept, unless more are asked for; and of their numbers.
_SMALL_SHARE_AWAY = 0.005  # Of draws in another mode, up to which the note says nothing of it.
_LARGE_GAIN = 5.0  # Nats by which another optimum is better than the fit, from which on the note says so.
# A draw has few rows in a component where its smallest weight times the number of rows is below the first
# number. Rows are counted for some of these draws, about as many as the second number.
_FEW_ROWS, _MOST_COUNTED = 30.0, 1024

# After each of the first scans the number of steps of a trajectory rises by 1/3 where fewer than 0.6 of the
# trajectories are accepted, and falls by 1 where more than 0.9 are; after a block it changes by 1.
_SCANS_OF_STEPS = 4
_LOW, _HIGH, _STEPS_UP, _STEPS_DOWN = 0.6, 0.9, 1 / 3, 1.0
_LOW_LATER, _HIGH_LATER = 0.5, 0.9

# The time that chains have after their first block: so many seconds, or the second number times what the
# least number of scans takes, if that is longer. Time is estimated from the passes of all chains over the
# rows, so that results do not depend on the machine: on the one where it was measured it was within a factor
# of two for 16 tables.
_SECONDS, _TIMES_LEAST = 15.0, 4.0
_SECONDS_A_PASS, _SECONDS_A_COEFFICIENT, _SECONDS_A_LABEL, _SECONDS_A_PRODUCT = 6e-4, 1.5e-7, 5e-9, 1e-10
_PASSES_AT_LEAST = 264


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
    error_in_tails : float
        The largest error of a limit, also in tails that are longer than normal ones.
    few_counts : (n, K)
        Expected rows of the components under some of the draws in which one may have few; one row of
        infinities where there are no such draws.
    """

    def __init__(self, sampler, rows, seed, tracked=untracked):
        self._sampler, self._seed, self._n_scans, self._n_planned = sampler, seed, 0, _FIRST_SCANS
        # The number of draws that `at_least` was last asked for in vain, and the copy that has them.
        self._longer = 0, None
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
        while True:
            seconds -= n_scans * a_pass * _n_passes(scans)
            states, shares = [], []
            for share in self._block(scans, n_scans, states):
                shares.append(share)
                yield
            stride = -(-len(states) * self._n_chains // most_draws)
            self._states = states[::-stride][::-1]
            n_scans = min(self._next_scans(scans, shares), int(seconds / (a_pass * _n_passes(scans))))
            if n_scans < _LEAST_SCANS:
                return

    def _next_scans(self, scans, shares):
        """The number of scans of the next block, 0 where the draws are enough; changes how scans are made.

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
            return n_scans
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
        self.errors, self.error_in_tails, worst = {}, 0.0, 0.0
        targets = self._sampler.fitted.targets
        for name in targets.reported:
            is_counted = targets[name].is_reported(LEAST_COUNT)
            of_means, self.errors[name], of_tails = np.where(is_counted, self.draws.errors(name), np.nan)
            worst = max(worst, float(np.nanmax(of_means, initial=0.0)))
            self.error_in_tails = max(self.error_in_tails, float(np.nanmax(of_tails, initial=0.0)))
        for_chains = _LEAST_PER_CHAIN * self._n_chains * np.square(worst)
        return max(float(np.square(self.largest_error / _ERROR)), for_chains)

    @property
    def has_converged(self):
        """Whether the draws are enough."""
        return self.largest_error <= _LARGEST_ERROR

    def _few_counts(self, rows):
        parameters, n_components = self.draws.parameters, self._sampler.posterior.n_components
        smallest = parameters.weights[:, :n_components].min(axis=1) * rows.total_weight
        some = np.flatnonzero(smallest < _FEW_ROWS)
        if not some.size:
            return np.full((1, n_components), np.inf)
        some = some[:: max(len(some) // _MOST_COUNTED, 1)]
        return expected_counts(rows, parameters.with_draws(parameters.draws[some]))[:, :n_components]

    def _draws_of(self, states):
        """The draws of some states; the share in another mode than the fit, and its error: both float."""
        parameters = self._sampler.parameters(DrawArrays.concatenated(states))
        parameters, is_away = in_mode(parameters, self._sampler.uncertainty)
        by_chain = is_away.reshape(-1, self._n_chains).mean(axis=0)
        draws = ChainDraws(parameters, np.arange(len(is_away)) % self._n_chains)
        return draws, float(by_chain.mean()), float(by_chain.std() / np.sqrt(self._n_chains))

    def at_least(self, n_draws, rows, tracked=untracked):
        """This posterior if it has so many draws, or else a copy whose chains went on: ExactPosterior.

        Parameters
        ----------
        n_draws : int
        rows : Rows or None, the training rows, without which chains cannot go on
        tracked : Tracked, through which further scans are gone

        Raises
        ------
        ValueError
            The chains have to go on without the training rows.
        """
        if len(self.draws) >= n_draws:
            return self
        if self._longer[0] != n_draws:
            if rows is None:
                raise ValueError(
                    f"{len(self.draws)} draws of the exact posterior are kept, and {n_draws} need the "
                    "training rows: pass X, or ask for fewer."
                )
            longer = copy.copy(self)
            longer._go_on(n_draws, rows, tracked)
            self._longer = n_draws, longer
        return self._longer[1]

    def _go_on(self, n_draws, rows, tracked):
        scans, states = Scans(self._sampler, rows, self._seed, *self._way), list(self._states)
        n_of_scan = (1 + min(scans.n_gibbs, KEPT_OF_SCAN)) * self._n_chains
        n_scans = -(-(n_draws - len(self.draws)) // n_of_scan)
        with self._sampler.threads():
            for _ in tracked(self._block(scans, n_scans, states), n_scans):
                pass
            self._states, self._longer = states, (0, None)
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
            tails = f", in long tails to {self.error_in_tails:.1f} sd"
            tails *= self.error_in_tails > _LARGEST_ERROR
            known = f"limits of 95 % intervals to {self.largest_error:.2f} sd or better"
            parts = [f"Exact posterior: {known}{tails}."]
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
            share = f"{100 * self.share_away:.1f} +- {100 * self._error_of_share:.1f} % of the draws"
            parts.append(f"{share} are in another mode of the posterior than the fit.")
        if self.is_fit_poor:
            parts.append(
                f"The fit is not the best: another start has a lower bound {self.gain:.0f} nats higher. Fit "
                "again with n_init=12 or moves='search'."
            )
        if not self.has_gibbs:
            parts.append("Without Gibbs iterations, because sample_weight is not in whole numbers.")
        return " ".join(parts)


def seconds_of_exact(posterior, rows):
    """About how many seconds the first two blocks of `ExactPosterior`, the least, take on one core: float."""
    return _PASSES_AT_LEAST * _seconds_of_pass(posterior, rows)


def _seconds_of_pass(posterior, rows):
    """About how long a pass of all chains over the rows takes."""
    a_row = _SECONDS_A_LABEL * posterior.n_labels + _SECONDS_A_PRODUCT * posterior.products_per_row
    n_labels_drawn = min(rows.total_weight, MOST_COPIES * rows.n_samples)
    a_chain = _SECONDS_A_COEFFICIENT * posterior.n_coefficients + n_labels_drawn * a_row
    factor = 3.0 if rows.has_missing else 1.0
    return _SECONDS_A_PASS + n_chains_of(posterior, rows.n_samples) * a_chain * factor


def _n_passes(scans):
    """Passes that a scan is worth: one a Gibbs iteration, two for slopes, one to find the coordinates."""
    return scans.n_gibbs + 2.0 * (scans.n_steps + 1.0) + 1.0
