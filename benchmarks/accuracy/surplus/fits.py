"""Fits of mixtures with more components than clusters, by our moves and without, and by scikit-learn.

Every problem is fitted from the same start by iterations, acceleration and Newton steps alone ("plain"), and
by fits that also merge, delete, sort or split components: under the fixed prior, which is scikit-learn's,
and without moves and at the default under the learned one, too. From the first start of each problem it is
also fitted from ten starts without such moves, and by scikit-learn. Seconds are of the processor. Lower
bounds are of our model, with every constant. The bound of scikit-learn's fit is evaluated at its posterior,
and once more at the optimum to which our fit without moves continues from there.
"""

import copy
import warnings
from dataclasses import dataclass
from time import process_time

import numpy as np
from sklearn.mixture import BayesianGaussianMixture

from benchmarks.accuracy.surplus.tables import AT_DEFAULTS, DEFAULT_STEPS
from benchmarks.problems.surplus_problems import COLUMNS, KNOWN, random_problems
from benchmarks.rivals.libraries import Theirs
from sklearn_lrvb import LRVBGaussianMixture

SIDES = {
    "plain": {"moves": None},
    "auto": {},
    "merge": {"moves": "merge"},
    "search": {"moves": "search"},
    "learned_plain": {"prior": "learned", "moves": None},
    "learned": {"prior": "learned"},
}
_FRESH_SEED = 20261122
_OCCUPIED = 0.5  # least expected number of rows of a component that counts as occupied
_THEIR_TOLERANCE = 1e-8

# How the quick mode makes problems small.
_QUICK_ROWS = 60
_QUICK_COMPONENTS = 10
_QUICK_STRIDE = 30


@dataclass(frozen=True)
class Effort:
    """How long and how often a fit is run.

    Attributes
    ----------
    threads : int
    repeats : int, how often a fit at the defaults is timed
    most_steps : int, largest number of steps of a fit to convergence
    n_init : int, starts of the fits with several starts
    """

    threads: int
    repeats: int = 1
    most_steps: int = 2000
    n_init: int = 10


def measure(settings):
    _warm_up()
    for name, problems in _sets(settings).items():
        effort = _effort(settings, name)
        for problem in problems:
            X = problem.simulate()
            for seed in problem.seeds:
                which = {"problem": f"{name}: {problem.name}, seed {seed}", "set": name, "seed": seed}
                yield which | _sizes(problem, X) | _Fits(problem, X, seed, effort).columns()


def _effort(settings, name):
    """The effort of a set: only the short fits of CTGAN columns are timed repeatedly."""
    if settings.quick:
        return Effort(settings.threads, most_steps=2 * DEFAULT_STEPS, n_init=2)
    return Effort(settings.threads, repeats=settings.repeats if name == "ctgan" else 1)


def _sets(settings):
    """The problems of every set: {name: tuple of SurplusProblem}."""
    sets = {"known": KNOWN, "fresh": random_problems(_FRESH_SEED), "ctgan": COLUMNS}
    return {name: _few(problems) for name, problems in sets.items()} if settings.quick else sets


def _few(problems):
    """Every thirtieth of the problems that have few components, with few rows."""
    small = [problem for problem in problems if problem.n_components <= _QUICK_COMPONENTS]
    return tuple(problem.scaled(_QUICK_ROWS) for problem in small[::_QUICK_STRIDE])


def _sizes(problem, X):
    """Columns of a row: what the problem is."""
    return {
        "name": problem.name,
        "data_set": problem.data_set,
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "n_components": problem.n_components,
        "n_clusters": problem.n_clusters,
        "covariance_type": problem.covariance_type,
    }


def _warm_up():
    """Fit once, so that no timed fit of either library has to import and initialise anything."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    _without_warnings(BayesianGaussianMixture(n_components=2, random_state=0).fit, X)


def _without_warnings(call, *arguments):
    """The result of a call, without warnings: a column of the row says whether a fit converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments)


def expected_counts(mixture):
    """Expected rows of every component of a fitted mixture of either library, (K,)."""
    concentration = mixture.weight_concentration_
    if isinstance(concentration, tuple):
        return concentration[0] - 1.0  # of sticks, whose first beta parameter is one under the prior
    return concentration - mixture.weight_concentration_prior_


def n_occupied(mixture):
    """Number of components that hold at least half a row."""
    return int(np.sum(expected_counts(mixture) >= _OCCUPIED))


def has_error_bars(mixture):
    """Whether the mixture gives standard deviations; it refuses them where it is not at a strict optimum."""
    try:
        _without_warnings(lambda: mixture.means_std_)
    except ValueError:
        return False
    return True


class _Fits:
    """All fits of one problem from one start.

    Parameters
    ----------
    problem : SurplusProblem
    X : its rows
    seed : int, ``random_state`` of all fits
    effort : Effort
    """

    def __init__(self, problem, X, seed, effort):
        self._X = X
        self._problem = problem
        self._seed = seed
        self._effort = effort

    def columns(self):
        """Columns of a row; only the first seed of a problem has restarts and fits of scikit-learn."""
        row = {}
        for side, arguments in SIDES.items():
            row |= self._of_side(side, arguments)
        if self._seed != self._problem.seeds[0]:
            return row
        row |= _bounded("restarts", *self._timed(self._ours(moves=None, n_init=self._effort.n_init)))
        row |= _columns("theirs_default", *self._timed(self._theirs(), self._effort.repeats))
        if self._problem.covariance_type == "full":  # the only type for which both have the same model
            row |= self._of_theirs()
        return row

    def _ours(self, max_iter=None, **arguments):
        return LRVBGaussianMixture(
            **self._problem.arguments,
            random_state=self._seed,
            max_iter=self._effort.most_steps if max_iter is None else max_iter,
            n_jobs=self._effort.threads,
            **{"prior": "fixed"} | arguments,
        )

    def _theirs(self, **arguments):
        return BayesianGaussianMixture(**self._problem.arguments, random_state=self._seed, **arguments)

    def _timed(self, mixture, repeats=1):
        """The mixture, fitted, and the least seconds of the processor over repeated fits."""
        seconds = []
        for _ in range(repeats):
            begin = process_time()
            _without_warnings(mixture.fit, self._X)
            seconds.append(process_time() - begin)
        return mixture, min(seconds)

    def _of_side(self, side, arguments):
        """Columns of our fit to convergence, and of the same at the default number of steps."""
        fitted, seconds = self._timed(self._ours(**arguments))
        row = _bounded(side, fitted, seconds)
        if side not in AT_DEFAULTS:
            return row
        if fitted.n_iter_ >= DEFAULT_STEPS or self._effort.repeats > 1:  # otherwise it is the same fit
            fitted, seconds = self._timed(self._ours(DEFAULT_STEPS, **arguments), self._effort.repeats)
        row |= _bounded(f"{side}_default", fitted, seconds)
        return row | {f"{side}_default_error_bars": has_error_bars(fitted)}

    def _of_theirs(self):
        """Columns of scikit-learn's fit to convergence, and of our fit that continues it."""
        settings = {"tol": _THEIR_TOLERANCE, "max_iter": self._effort.most_steps}
        fitted, seconds = self._timed(self._theirs(**settings))
        start = copy.copy(fitted).set_params(tol=LRVBGaussianMixture().tol)
        continued = _without_warnings(LRVBGaussianMixture.from_sklearn, start, self._X)
        bound = _without_warnings(Theirs(fitted.n_components).lower_bound, fitted, self._X)
        return {
            **_columns("theirs", fitted, seconds),
            "theirs_bound": bound,
            "theirs_continued_bound": continued.lower_bound_,
        }


def _bounded(side, fitted, seconds):
    """Columns of one fit of ours, with its lower bound."""
    return _columns(side, fitted, seconds) | {f"{side}_bound": fitted.lower_bound_}


def _columns(side, fitted, seconds):
    """Columns of one fit of either library."""
    return {
        f"{side}_steps": fitted.n_iter_,
        f"{side}_seconds": seconds,
        f"{side}_occupied": n_occupied(fitted),
        f"{side}_converged": bool(fitted.converged_),
    }
