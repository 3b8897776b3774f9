"""The exact posterior: chains that run until their draws are enough.

*When to stop.* Chains run in blocks, each at least as long as all before it together, and only the last
block is kept: the others forget the start. With S chains the draws of a parameter are worth

    S (variance of all draws) / (variance of the means of the chains)

independent draws. Chains stop where that is 5 S for every parameter of the components that hold rows, or 8 S
where linear response, from which the chains start, is called wrong. Half as many are enough for the weights
of all components: one that holds no rows may be about to take some. While chains still drift, their means
differ, and the number does not double from block to block as it does at the end. Chains stop without
convergence where doubling would come too late.

The rule was chosen on the 103 posteriors of the benchmark "trust". With half as many draws, a dozen more were
called converged while they still drifted, some of them by half a standard deviation.
"""

from functools import cached_property

import numpy as np

from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.rows import untracked
from sklearn_lrvb.sampling.chain_draws import ChainDraws
from sklearn_lrvb.sampling.chains import N_CHAINS, Scans
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.sampling.labels import in_mode
from sklearn_lrvb.sampling.likelihood import expected_counts
from sklearn_lrvb.sampling.random_assignments import can_be_assigned

_BLOCKS = (4, 8, 12, 24, 48, 96)  # Scans. The first block finds the number of steps of a trajectory.

# Effective sample size for each chain that the last block needs, by the check's state; and the share of it
# that the weights of all components need.
_LEAST_PER_CHAIN = {"good": 5.0, "rough": 5.0, "wrong": 8.0}
_SHARE_FOR_WEIGHTS = 0.5
# Chains stop where the draws would be fewer than this share of the needed ones after the last block, if they
# doubled with every block.
_LEAST_HOPE = 0.5
_LARGEST_SHARE_AWAY = 0.5  # Of draws that are left out as another mode; where there are more, all are kept.

_FEW_ROWS = 30.0  # A component whose share is not below so many rows has more than the few that moments need.

# Shares of accepted trajectories beyond which the number of steps changes: by the third and fourth number
# after each scan of the first block, and by one after each later block.
_LOW, _HIGH, _STEPS_UP, _STEPS_DOWN = 0.6, 0.9, 1 / 3, 1.0
_LOW_LATER, _HIGH_LATER = 0.5, 0.9


class ExactPosterior:
    """The exact posterior of one fit, by draws of many chains.

    Parameters
    ----------
    sampler : PosteriorSampler
    rows : Rows, checked by ``sampler.checked_rows``
    seed : int
    state : str, how good linear response is (`Verdict.state`)
    tracked : Tracked, through which the scans are gone

    Attributes
    ----------
    draws : ChainDraws, of the last block and in the mode of the fit
    has_gibbs : bool
        Whether scans have Gibbs iterations, for which rows must count a whole number of times.
    share_away : float, of the draws: those in another mode of the posterior than the fit, which are left out
    effective_draws : float
        Independent draws that those of the slowest parameter are worth: of components that hold rows, and of
        all weights.
    has_converged : bool, whether the draws are enough
    few_counts : (n, K)
        Expected rows of the components under those draws in which one may have few; infinite in one row where
        there are no such draws.
    """

    def __init__(self, sampler, rows, seed, state="wrong", tracked=untracked):
        self._sampler, self._seed = sampler, seed
        self._least_draws = N_CHAINS * _LEAST_PER_CHAIN[state]
        self.has_gibbs = can_be_assigned(rows)
        self._later = []  # Chains of scans that were asked for after the end.
        with sampler.threads():
            for _ in tracked(self._blocks(rows), sum(_BLOCKS)):
                pass
            self.few_counts = self._few_counts(rows)

    def _blocks(self, rows):
        """Run the chains until they have converged, or cannot do so in time; yield after every scan."""
        scans = Scans(self._sampler, rows, self._seed, int(self.has_gibbs))
        chains, self._n_scans = scans.start(), 0
        for block, n_scans in enumerate(_BLOCKS):
            kept, shares = [], []
            for _ in range(n_scans):
                self._n_scans += 1
                chains, share = scans.scan(chains, self._n_scans)
                kept.append(chains)
                shares.append(share)
                if block == 0:
                    scans.add_steps(_STEPS_UP * (share < _LOW) - _STEPS_DOWN * (share > _HIGH))
                yield
            if block > 0:
                self._kept, self._of_scan = kept, (scans.n_gibbs, scans.n_steps)
                progress = self._assess()
                if self.has_converged or progress * 2.0 ** (len(_BLOCKS) - 1 - block) < _LEAST_HOPE:
                    return
                share = np.mean(shares)
                scans.add_steps(float(share < _LOW_LATER) - float(share > _HIGH_LATER))
                scans.n_gibbs = min(4 * scans.n_gibbs, self._sampler.model.most_gibbs)

    def _assess(self):
        """Take the draws of the last block; return their share of the draws that are needed."""
        self.draws, self.share_away = self._draws_of(self._kept)
        for_occupied = float(self._in_occupied(self.draws.effective).min())
        for_weights = float(self.draws.effective("weights").min())
        self.effective_draws = min(for_occupied, for_weights)
        progress = min(for_occupied, for_weights / _SHARE_FOR_WEIGHTS) / self._least_draws
        self.has_converged = progress >= 1.0
        return progress

    def _few_counts(self, rows):
        parameters, n_components = self.draws.parameters, self._sampler.posterior.n_components
        smallest = parameters.weights[:, :n_components].min(axis=1) * rows.total_weight
        some = np.flatnonzero(smallest < _FEW_ROWS)
        if not some.size:
            return np.full((1, n_components), np.inf)
        return expected_counts(rows, parameters.with_draws(parameters.draws[some]))[:, :n_components]

    def _draws_of(self, scans):
        """The draws of some scans in the mode of the fit, ChainDraws, and the share of the others."""
        sampler = self._sampler
        parameters = sampler.parameters(DrawArrays.concatenated([chains.draws for chains in scans]))
        parameters, is_away = in_mode(parameters, sampler.uncertainty)
        share_away = float(is_away.mean())
        if share_away > _LARGEST_SHARE_AWAY:
            is_away[:] = False
        here = np.flatnonzero(~is_away)
        normals, slopes = (
            np.concatenate([getattr(chains, name) for chains in scans])[here]
            for name in ("normals", "slopes")
        )
        parameters = sampler.parameters(parameters.draws[here])
        return ChainDraws(parameters, normals, slopes, sampler.density, here % N_CHAINS), share_away

    @cached_property
    def largest_error(self):
        """Monte Carlo standard error of a posterior mean, in standard deviations: the largest, float."""
        return float(self._in_occupied(self.draws.errors).max())

    def _in_occupied(self, function):
        """Values of a function of a target's name, for all parameters of components that hold rows."""
        theta = self._sampler.fitted.targets.theta
        is_occupied = np.concatenate([occupied(target.counts()) for target in theta])
        return np.concatenate([function(target.name) for target in theta])[is_occupied]

    def at_least(self, n_draws, rows, tracked=untracked):
        """So many draws or more: ChainDraws. The chains go on where there are not enough.

        Parameters
        ----------
        n_draws : int
        rows : Rows or None, the training rows, without which there are no more than those that are kept
        tracked : Tracked, through which further scans are gone
        """
        draws, n_later = self.draws, 0
        while len(draws) < n_draws:
            draws_of_scan = max(len(draws) // (len(self._kept) + n_later), 1)
            n_later += -(-(n_draws - len(draws)) // draws_of_scan)
            n_missing = max(n_later - len(self._later), 0)
            if n_missing and rows is None:
                raise ValueError(
                    f"{len(draws)} draws of the exact posterior are kept, and {n_draws} need the training "
                    "rows: pass X, or ask for fewer."
                )
            scans = Scans(self._sampler, rows, self._seed, *self._of_scan)
            with self._sampler.threads():
                for _ in tracked(range(n_missing), n_missing):
                    last, number = (self._kept + self._later)[-1], self._n_scans + len(self._later) + 1
                    self._later.append(scans.scan(last, number)[0])
            draws, _ = self._draws_of(self._kept + self._later[:n_later])
        return draws

    @property
    def note(self):
        """A line that says how good the draws are."""
        says = f"{self.effective_draws:.0f} effective draws of the slowest parameter"
        if self.has_converged:
            parts = [f"Exact posterior: {says}, means to {self.largest_error:.2f} sd."]
        else:
            parts = [f"Exact posterior, not converged: {says}, means to {self.largest_error:.2f} sd at best."]
        if self.share_away:
            share = f"{100 * self.share_away:.2g} % of the draws are in another mode of the posterior"
            parts.append(f"{share}, and left out." if self.share_away <= _LARGEST_SHARE_AWAY else f"{share}.")
        if not self.has_gibbs:
            parts.append("Without Gibbs iterations, because sample_weight is not in whole numbers.")
        return " ".join(parts)


_PASSES = {"good": 60, "rough": 100, "wrong": 400}  # Of all chains over the rows, by the check's state.
_PRODUCTS_A_SECOND = 1e9


def seconds_of_exact(posterior, n_rows, state):
    """About how long `ExactPosterior` takes on one core, float, by the size of its products.

    Parameters
    ----------
    posterior : posterior
    n_rows : int
    state : str, that of `Verdict`
    """
    size = n_rows * posterior.products_per_row
    return size * N_CHAINS * _PASSES[state] / _PRODUCTS_A_SECOND
