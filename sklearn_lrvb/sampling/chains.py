"""Markov chains whose stationary distribution is the exact posterior; all chains move at once.

*A scan* has two parts. Iterations of Gibbs sampling assign the rows to labels at random, given the
parameters, and draw the parameters given the assignments. They reach whatever the posterior has, also where
many rows change sides. A trajectory of split Hamiltonian Monte Carlo then moves all parameters together,
which is faster where the labels of many rows are uncertain.

*Coordinates of trajectories.* Under linear response the draws of the copula are functions of standard normal
variables e. In the same coordinates the density of the exact posterior is, up to a constant,

    N(e; 0, I) exp r(e),        r = log p(X, theta(e)) less the log density of the copula.

The normal part makes a trajectory a rotation, which is exact; only the slopes of r need steps (B. Shahbaba,
S. Lan, W. O. Johnson and R. M. Neal, "Split Hamiltonian Monte Carlo", Statistics and Computing 24 (2014),
339-349). Where linear response is right, r is nearly constant and a trajectory ends in an independent draw.
Parameters that are far from the fit may have no such coordinates in floating-point numbers. Their chains have
Gibbs iterations alone, as long as they stay there.

*The start* is at draws of linear response, and at the optima of other starts.
"""

import contextlib
from dataclasses import dataclass, fields

import numpy as np

from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.sampling.importance import systematic_sample
from sklearn_lrvb.sampling.labels import closest_orders
from sklearn_lrvb.sampling.random_assignments import can_be_assigned

# 32 chains; of few rows up to four times as many, as long as a pass takes less than 3e4 products a chain:
# much of the time of a pass is then the same for few chains and for many.
N_CHAINS, _PRODUCTS_OF_A_CHAIN, _MOST_TIMES = 32, 3e4, 4

# Angles of trajectories, in units of pi. At 1/2 a constant r would give an independent draw. They are random
# so that trajectories are not periodic.
_LEAST_ANGLE, _LARGEST_ANGLE = 0.45, 0.75
FIRST_STEPS, _MOST_STEPS = 2.0, 24.0  # Of a trajectory.
KEPT_OF_SCAN = 4  # Most states after Gibbs iterations that are kept of a scan, besides the last state.

_N_STARTS = 6  # Others than that of the fit, always with the same random numbers.
_TOLERANCE, _MOST_ITERATIONS = 1e-3, 200  # Of their ascents: chains only start there.
_SAME_BOUND = 0.01  # Nats by which the lower bounds of different optima differ, at least.
# An optimum d nats below the best one has chains in proportion to exp(-d/2), and none where d is above the
# second number: lower bounds are below the evidence by different amounts, up to several nats.
_POWER, _FAR_BELOW = 0.5, 10.0

# Tolerance for parameters that are computed back from their coordinates, relative to 1 + their size: the
# coordinates of very unlikely parameters have lost their digits.
_ROUND_TRIP = 1e-4


def n_chains_of(posterior, n_rows):
    """Number of chains for a posterior given so many rows, int."""
    times = int(_PRODUCTS_OF_A_CHAIN / (n_rows * posterior.products_per_row))
    return N_CHAINS * min(max(times, 1), _MOST_TIMES)


def start_of_chains(sampler, rows, n_chains, random_state):
    """Where chains start: at draws of linear response, and at the optima of other starts.

    The chains of another optimum all start at the same place. None starts at the fit where it is far below
    the best optimum; all do where there are no Gibbs iterations.

    Parameters
    ----------
    sampler : PosteriorSampler
    rows : Rows, the training rows
    n_chains : int
    random_state : RandomState, of the draws

    Returns
    -------
    draws : DrawArrays, of the chains, with their components numbered as those of the fit
    gain : float, nats by which the lower bound of the best other optimum is above that of the fit, or 0
    """
    posterior, ascent = sampler.posterior, Ascent(rows, _TOLERANCE, _MOST_ITERATIONS)
    bounds, draws = [e_step(rows, posterior).lower_bound], [sampler.draws(n_chains, random_state).draws]
    starts = posterior.model.further_starts(posterior, rows, _N_STARTS, np.random.RandomState(0))
    for responsibilities in starts:
        with contextlib.suppress(DegenerateComponentError):
            fit = ascent.newton(ascent.start_from(responsibilities, posterior.prior))
            if np.abs(np.subtract(fit.lower_bound, bounds)).min() > _SAME_BOUND:
                bounds.append(fit.lower_bound)
                draws.append(posterior.model.parameters.draws_at(posterior, fit.posterior))
    gaps = np.subtract(bounds, max(bounds))
    shares = np.exp(_POWER * gaps) * (gaps > -_FAR_BELOW)
    if not can_be_assigned(rows):  # Trajectories alone do not get far from the fit.
        shares = np.arange(len(gaps)) == 0
    chosen = systematic_sample(shares, n_chains, 0.5)
    places = np.where(chosen == 0, np.arange(n_chains), n_chains + chosen - 1)
    parameters = sampler.parameters(DrawArrays.concatenated(draws)[places])
    return parameters.reordered(closest_orders(parameters, posterior)[0]), float(-gaps[0])


@dataclass(frozen=True)
class Places:
    """Where all chains are, for a trajectory.

    Attributes
    ----------
    normals : (n, n_responses), e
    draws : DrawArrays
    log_ratios : (n,), r; -inf where a draw has no density
    slopes : (n, n_responses), dr/de
    """

    normals: np.ndarray
    draws: DrawArrays
    log_ratios: np.ndarray
    slopes: np.ndarray


class Scans:
    """What moves chains of the exact posterior.

    Parameters
    ----------
    sampler : PosteriorSampler
    rows : Rows, the training rows
    seed : int
        Every scan has random numbers of its own, which depend on the seed and the scan's number alone.
    n_gibbs : int
        Gibbs iterations of a scan. They need rows that count a whole number of times; 0 leaves them out.
    n_steps : float, default=2
        Steps of a trajectory, rounded; fractions let the number change slowly.

    Attributes
    ----------
    n_gibbs : as given
    n_steps : as given, and changed by `add_steps`
    """

    def __init__(self, sampler, rows, seed, n_gibbs, n_steps=FIRST_STEPS):
        self._sampler, self._rows, self._seed = sampler, rows, seed
        self.n_gibbs, self.n_steps = n_gibbs, n_steps

    def add_steps(self, change):
        """Add a number, which may be a fraction, to the steps of a trajectory, within limits."""
        self.n_steps = min(max(self.n_steps + change, 1.0), _MOST_STEPS)

    def scan(self, draws, number):
        """Gibbs iterations and a trajectory.

        Parameters
        ----------
        draws : DrawArrays, where the chains are
        number : int, of the scan

        Returns
        -------
        kept : list of DrawArrays, states of the chains, of which the last is where they are now
        share_accepted : float, of the trajectories
        """
        generator = np.random.Generator(np.random.SFC64([self._seed, number]))
        stride, kept = -(-self.n_gibbs // KEPT_OF_SCAN), []
        for iteration in range(1, self.n_gibbs + 1):
            draws, _ = self._sampler.parameters(draws).after_gibbs(self._rows, generator)
            if iteration % stride == 0:
                kept.append(draws)
        draws, share_accepted = self._after_trajectory(draws, generator)
        return [*kept, draws], share_accepted

    def _after_trajectory(self, draws, generator):
        """Draws after a trajectory, and the share of trajectories that were accepted."""
        chains, has_coordinates = self.chains_at(draws)
        n_chains, n_steps = len(draws), round(self.n_steps)
        angle = np.pi * generator.uniform(_LEAST_ANGLE, _LARGEST_ANGLE, (n_chains, 1)) / n_steps
        momenta = generator.standard_normal(chains.normals.shape)
        with np.errstate(over="ignore", invalid="ignore"):  # Far out, where nothing is accepted.
            moved, ends = self.moved(chains, momenta, angle, n_steps)
            change = _log_density(moved, ends) - _log_density(chains, momenta)
            of_orders = (self._sampler.parameters(own.draws).log_symmetry for own in (moved, chains))
            change += np.subtract(*of_orders)
        is_accepted = np.log1p(-generator.random(n_chains)) < change
        accepted = np.flatnonzero(is_accepted & has_coordinates)
        return draws.replaced(accepted, moved.draws[accepted]), len(accepted) / n_chains

    def chains_at(self, draws):
        """`Places` of some draws, and which draws their coordinates give back: bool (n,)."""
        responses, normals = self._sampler.coordinates_of(draws)
        chains = self._at(normals)
        has_coordinates = np.isfinite(responses).all(axis=1) & np.isfinite(chains.log_ratios)
        for each in fields(draws):
            before, after = (getattr(own, each.name).reshape(len(draws), -1) for own in (draws, chains.draws))
            has_coordinates &= (np.abs(after - before) <= _ROUND_TRIP * (1.0 + np.abs(before))).all(axis=1)
        return chains, has_coordinates

    def _at(self, normals):
        """`Places` at some normals."""
        with np.errstate(all="ignore"):  # What overflows has no density.
            log_ratios, slopes, draws = self._sampler.log_ratios_and_slopes(self._rows, normals)
        regular = np.isfinite(log_ratios) & np.isfinite(slopes).all(axis=1)
        slopes[~regular] = 0.0
        return Places(normals, draws, np.where(regular, log_ratios, -np.inf), slopes)

    def moved(self, chains, momenta, angle, n_steps):
        """Places and momenta after some steps of a trajectory: Places, (n, n_responses).

        Parameters
        ----------
        chains : Places
        momenta : (n, n_responses)
        angle : (n, 1), of a step, in radians
        n_steps : int
        """
        # tan(h/2) in place of h/2 makes a constant slope exact.
        kick, cosine, sine = np.tan(0.5 * angle), np.cos(angle), np.sin(angle)
        for _ in range(n_steps):
            momenta = momenta + kick * chains.slopes
            normals = chains.normals * cosine + momenta * sine
            momenta = momenta * cosine - chains.normals * sine
            chains = self._at(normals)
            momenta += kick * chains.slopes
        return chains, momenta


def _log_density(chains, momenta):
    """log of the joint density of places and momenta, (n,)."""
    return chains.log_ratios - 0.5 * (np.square(chains.normals) + np.square(momenta)).sum(axis=1)
