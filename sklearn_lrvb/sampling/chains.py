"""Markov chains whose stationary distribution is the exact posterior; all chains move at once.

*Coordinates.* Under linear response the draws of the copula are functions of standard normal
variables e. In the same coordinates the density of the exact posterior is, up to a constant,

    N(e; 0, I) exp r(e),        r = log p(X, theta(e)) less the log density of the copula.

*A scan* has two parts. A trajectory of split Hamiltonian Monte Carlo moves all parameters together. The
normal part of the density makes it a rotation, which is exact; only the slopes of r need steps (B. Shahbaba,
S. Lan, W. O. Johnson and R. M. Neal, "Split Hamiltonian Monte Carlo", Statistics and Computing 24 (2014),
339-349). Where linear response is right, r is nearly constant and a trajectory ends in an independent draw.
An iteration of Gibbs sampling assigns the rows to labels at random, given the parameters, and draws the
parameters given the assignments. It reaches regions that trajectories do not, where many rows have changed
sides. Where such iterations cost less than a trajectory, slow chains make several of them in a scan.

*The start.* The first draws are those of linear response, b = 0 in the densities N(e; 0, I) exp(b r). The
power b grows to 1 in steps. At each step the chains are resampled by their weights and then move by
trajectories (annealed importance resampling). Islands of chains are resampled apart, so that differences
between islands show what is left of the start.
"""

from dataclasses import dataclass, fields

import numpy as np

from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.sampling.importance import systematic_sample

N_CHAINS = 32
N_ISLANDS = 4

# Angles of trajectories, in units of pi. At 1/2 a constant r would give an independent draw. They are random
# so that trajectories are not periodic.
_LEAST_ANGLE, _LARGEST_ANGLE = 0.45, 0.75
FIRST_STEPS, _MOST_STEPS = 2.0, 24.0  # Of a trajectory.
_LEAST_EFFECTIVE_SHARE = 0.5  # Of chains, by their weights from one density of the start to the next.
_LEAST_POWER_STEP = 1e-3  # From one density of the start to the next.
_TRAJECTORIES_OF_START = 2  # At every density on the way.

# Tolerance for parameters that are computed back from their coordinates after Gibbs iterations, relative to 1
# + their size. The coordinates of very unlikely parameters have lost their digits; iterations that lead there
# are rejected.
_ROUND_TRIP = 1e-4


@dataclass(frozen=True)
class Chains(DrawArrays):
    """Where chains are.

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
        Of a trajectory, which has the nearest whole number of steps.

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

    def _at(self, normals):
        """`Chains` at some places."""
        with np.errstate(all="ignore"):  # What overflows has no density.
            log_ratios, slopes, draws = self._sampler.log_ratios_and_slopes(self._rows, normals)
        regular = np.isfinite(log_ratios) & np.isfinite(slopes).all(axis=1)
        slopes[~regular] = 0.0
        return Chains(normals, draws, np.where(regular, log_ratios, -np.inf), slopes)

    def start(self):
        """Chains that follow the posterior approximately: Chains."""
        generator = self._generator_of(0)
        n_responses = len(self._sampler.density.root)
        chains, power = self._at(generator.standard_normal((N_CHAINS, n_responses))), 0.0
        while power < 1.0:
            next_power = _next_power(chains.log_ratios, power)
            weights = _relative_weights((next_power - power) * chains.log_ratios)
            islands, index = weights.reshape(N_ISLANDS, -1), np.arange(N_CHAINS).reshape(N_ISLANDS, -1)
            for own_weights, own in zip(islands, index, strict=True):
                if own_weights.any():  # Else all chains of the island stay.
                    own[:] = own[systematic_sample(own_weights, len(own), generator.random())]
            chains, power = chains[index.ravel()], next_power
            if power < 1.0:
                for _ in range(_TRAJECTORIES_OF_START):
                    chains, _ = self._after_trajectory(chains, power, generator)
        return chains

    def _generator_of(self, number):
        """The random numbers of a scan; those of the start have the number 0."""
        return np.random.Generator(np.random.SFC64([self._seed, number]))

    def scan(self, chains, number):
        """Chains after Gibbs iterations and a trajectory, and the share of trajectories that were accepted.

        Parameters
        ----------
        chains : Chains
        number : int, of the scan, from 1 on
        """
        generator = self._generator_of(number)
        if self.n_gibbs:
            chains = self._after_gibbs(chains, generator)
        return self._after_trajectory(chains, 1.0, generator)

    def _after_trajectory(self, chains, power, generator):
        """Chains of the density N(e; 0, I) exp(power r) after a trajectory, and the share accepted."""
        n_chains, n_steps = len(chains.normals), round(self.n_steps)
        angle = np.pi * generator.uniform(_LEAST_ANGLE, _LARGEST_ANGLE, (n_chains, 1)) / n_steps
        momenta = generator.standard_normal(chains.normals.shape)
        moved, ends = self.moved(chains, momenta, angle, n_steps, power)
        with np.errstate(over="ignore", invalid="ignore"):  # Far out, where nothing is accepted.
            change = _log_density(moved, ends, power) - _log_density(chains, momenta, power)
        accepted = np.flatnonzero(np.log1p(-generator.random(n_chains)) < change)
        return chains.replaced(accepted, moved[accepted]), len(accepted) / n_chains

    def moved(self, chains, momenta, angle, n_steps, power):
        """Chains and momenta after some steps of a trajectory: Chains, (n, n_responses).

        Parameters
        ----------
        chains : Chains
        momenta : (n, n_responses)
        angle : (n, 1), of a step, in radians
        n_steps : int
        power : float, of exp(r) in the density
        """
        # tan(h/2) in place of h/2 makes a constant slope exact.
        kick, cosine, sine = power * np.tan(0.5 * angle), np.cos(angle), np.sin(angle)
        for _ in range(n_steps):
            momenta = momenta + kick * chains.slopes
            normals = chains.normals * cosine + momenta * sine
            momenta = momenta * cosine - chains.normals * sine
            chains = self._at(normals)
            momenta += kick * chains.slopes
        return chains, momenta

    def _after_gibbs(self, chains, generator):
        """Chains after some iterations of Gibbs sampling."""
        sampler, draws = self._sampler, chains.draws
        for _ in range(self.n_gibbs):
            parameters, seed = sampler.parameters(draws), int(generator.integers(2**63))
            draws, _ = parameters.given_random_assignments(self._rows, seed, generator)
        with np.errstate(all="ignore"):
            responses = sampler.copula.responses_of(draws)
            normals = sampler.density.normals(np.nan_to_num(responses))
        moved = self._at(normals)
        regular = np.isfinite(responses).all(axis=1) & np.isfinite(moved.log_ratios)
        for field in fields(
            draws
        ):  # Whether they came through their coordinates with the digits that matter.
            before, after = (getattr(own, field.name).reshape(len(draws), -1) for own in (draws, moved.draws))
            regular &= (np.abs(after - before) <= _ROUND_TRIP * (1.0 + np.abs(before))).all(axis=1)
        accepted = np.flatnonzero(regular)
        return chains.replaced(accepted, moved[accepted])


def _log_density(chains, momenta, power):
    """log of the joint density of places and momenta, (n,)."""
    return power * chains.log_ratios - 0.5 * (np.square(chains.normals) + np.square(momenta)).sum(axis=1)


def _relative_weights(log_weights):
    """Weights of which the largest is 1; all are 0 where none has any density."""
    largest = log_weights.max()
    return np.exp(log_weights - largest) if np.isfinite(largest) else np.zeros_like(log_weights)


def _next_power(log_ratios, power):
    """The next power: the step to 1 is halved until half of the chains stay effective, or it is tiny."""
    log_ratios = log_ratios[np.isfinite(log_ratios)]
    step = 1.0 - power
    while len(log_ratios) and step > _LEAST_POWER_STEP:
        weights = _relative_weights(step * log_ratios)
        if np.square(weights.sum()) >= _LEAST_EFFECTIVE_SHARE * len(weights) * np.square(weights).sum():
            break
        step *= 0.5
    return power + step if step < 1.0 - power else 1.0
