"""The E-step: responsibilities of a block of rows, and their sums over all rows.

*Conventions.* Responsibilities are label-major, (L, n), so that their normalization reduces over the long
axis. The labels are the K components and the noise component, if there is one. rho_nk is the expected log
density of row n with label k, log weights included. Everything of size N x P lives one cache-sized block at
a time. An iteration is one E-step and the M-step from its moments.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

# Responsibilities below exp(-230) = 1e-100 are raised to it: numbers that underflow, here or in products of a
# few of them, take the processor up to forty times as long.
_LEAST_LOG_RESPONSIBILITY = -230.0

# If a block has a smaller logarithm than this, tiny responsibilities become zero instead, which takes a
# little longer. Raising one costs the lower bound 1e-100 times its logarithm, in nats, and the information
# 1e-100 times the square of that.
_LEAST_WHERE_RAISED = -1e35

# Components of smaller responsibility are not counted as possible for a row. The counts serve the cost model
# of the solvers. Where no row has a second possible label, too little information is missing for a fixed
# point to be a saddle.
_LEAST_POSSIBLE_RESPONSIBILITY = 1e-14

# Components of smaller responsibility are left out of a row's score and of its derivatives. This bounds their
# error by a few units in the last digit.
LEAST_RESPONSIBILITY_IN_SCORE = 1e-15

# Where no second component has a larger responsibility, the assignment of a row counts as unchanged by the
# parameters; and a smaller responsibility is reported with a standard deviation of zero. The change that is
# left out, times any feature of the row, is far below round-off.
LEAST_RESPONSIVE_RESPONSIBILITY = 1e-30

# Rows of certain assignment are left out of the missing information. Together their information has a smaller
# trace than this, in units of the complete information: a bound of every posterior variance's relative error.
NEGLIGIBLE_INFORMATION = 1e-11

# Least log-likelihood of rows that error bars and influence are asked of. They grow by its square, which is
# then still a number, with a margin for the factors before it.
_LEAST_SCORE = -1e140


@dataclass
class Expectation:
    """The E-step of one block of n rows; nothing of it changes.

    Attributes
    ----------
    represented : the rows in the coordinates in which densities are computed (`MixtureModel.coordinates`)
    responsibilities : (L, n)
    log_normalizer : (n,), log sum_k exp(rho_nk), which `score_samples` reports
    log_densities : (L, n), rho
    scales : what q says of the rows' scales, or None where they have none
    """

    represented: object
    responsibilities: np.ndarray
    log_normalizer: np.ndarray
    log_densities: np.ndarray
    scales: Any = None

    def weights(self, counted):
        """Weights of the rows in the moments: ``counted`` (L, n), with the scales where rows have any."""
        return counted if self.scales is None else self.scales.weights(counted)


def expect(coordinates, block, without=None):
    """The E-step of one block: `Expectation`.

    Parameters
    ----------
    coordinates : coordinates of a posterior
    block : RowBlock
    without : int or None, a component that no row may belong to
    """
    represented = coordinates.represented(block)
    log_densities, scales = coordinates.log_densities(represented)
    if scales is not None:
        represented = coordinates.with_scales(represented, scales)
    if without is not None:
        log_densities[without] = -np.inf
    return Expectation(represented, *normalized(log_densities), log_densities, scales)


def sums_of_block(coordinates, without, block):
    """Moments, sum of the log normalizers, and numbers of alternatives and of ambiguous pairs of a block."""
    expectation = expect(coordinates, block, without)
    r, log_normalizer = expectation.responsibilities, expectation.log_normalizer
    counted = r
    if block.sample_weight is not None:
        counted, log_normalizer = r * block.sample_weight, log_normalizer * block.sample_weight
    moments = coordinates.moments(expectation.represented, expectation.weights(counted))
    # In wider numbers these counts would take a tenth of an iteration.
    is_possible = r > _LEAST_POSSIBLE_RESPONSIBILITY
    n_possible, n_pairs = np.count_nonzero(is_possible), 0.0
    if n_possible > block.n_rows:
        of_rows = np.ones(len(r), np.float32).dot(is_possible.astype(np.float32))
        n_pairs = 0.5 * (float(of_rows.dot(of_rows)) - n_possible)
    return moments, log_normalizer.sum(), n_possible - block.n_rows, n_pairs


def expect_in_range(coordinates, block):
    """The E-step of one block of which error bars or influence are asked: `Expectation`.

    Parameters
    ----------
    coordinates : coordinates of a posterior, for any rows
    block : RowBlock

    Raises
    ------
    ValueError
        A row is so far from all components that squares of its log-likelihood overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        expectation = expect(coordinates, block)
    nearest = expectation.log_densities[: coordinates.posterior.n_components].max(axis=0)
    beyond = np.flatnonzero(~(nearest > _LEAST_SCORE))
    if beyond.size:
        largest = np.abs(block.rows[:, beyond[0]]).max()
        raise ValueError(
            f"Row {block.numbers[beyond[0]]} of X is {largest:.1e} away from the centre of the fit in one of "
            f"its features, and its log-likelihood is below {_LEAST_SCORE:.0e}: error bars and influence, "
            "which grow by the square of that, cannot be computed. (a) Correct the value. (b) Leave the row "
            "out; predict, predict_proba and score_samples without return_std take it."
        )
    return expectation


def expect_of_counted(coordinates, block):
    """As `expect_in_range`, with zero responsibilities for rows without any value, which say nothing."""
    expectation = expect_in_range(coordinates, block)
    expectation.responsibilities[:, block.without_value] = 0.0
    return expectation


def normalized(log_densities):
    """Responsibilities (L, n) and log sum_k exp(rho_nk), (n,), from log densities (L, n).

    Responsibilities below 1e-100 are raised to it, or set to zero where raising would show.
    """
    largest = log_densities.max(axis=0)
    responsibilities = log_densities - largest
    least = responsibilities.min(initial=0.0)
    if least < _LEAST_WHERE_RAISED:
        responsibilities[responsibilities < _LEAST_LOG_RESPONSIBILITY] = -np.inf
    elif least < _LEAST_LOG_RESPONSIBILITY:
        np.maximum(responsibilities, _LEAST_LOG_RESPONSIBILITY, out=responsibilities)
    np.exp(responsibilities, out=responsibilities)
    total = responsibilities.sum(axis=0)
    responsibilities *= 1.0 / total
    return responsibilities, largest + np.log(total)


def centred_on_average(changes, responsibilities):
    """d_k - sum_l r_l d_l: changes of log responsibilities from those of log densities.

    (L, n, ...), (L, n) -> (L, n, ...). The average is subtracted twice, so that rows of almost certain
    assignment keep their digits.
    """
    relative = changes - np.einsum("kn,kn...->n...", responsibilities, changes)
    relative -= np.einsum("kn,kn...->n...", responsibilities, relative)
    return relative


def complements(responsibilities):
    """1 - r_k without cancellation where r_k is almost 1, as the sum of the others: (L, n) -> (L, n)."""
    others = np.zeros_like(responsibilities)
    others[1:] = np.cumsum(responsibilities[:-1], axis=0)
    others[:-1] += np.cumsum(responsibilities[:0:-1], axis=0)[::-1]
    return others


@dataclass
class EStepResult:
    """The result of one pass over the rows at q; nothing of it changes.

    Attributes
    ----------
    lower_bound : float, the ELBO at q and the responsibilities that are optimal for it
    moments : moments of the rows, completed by the prior (*Moments* in `model`)
    n_alternatives : int
        Number of labels that a row may have besides the most probable one, summed over the rows.
    n_ambiguous_pairs : int
        Number of pairs of labels that a row may have, summed over the rows.
    """

    lower_bound: float
    moments: Any
    n_alternatives: int
    n_ambiguous_pairs: int


def e_step(rows, posterior, without=None):
    """One pass over the rows: the ELBO at ``posterior`` and the moments of its M-step.

    Parameters
    ----------
    rows : Rows
    posterior : posterior of a mixture
    without : int or None, a component that no row may belong to

    Returns
    -------
    result : EStepResult
    """
    divergence = posterior.divergences.total
    coordinates = posterior.model.coordinates(posterior, rows)
    function = functools.partial(sums_of_block, coordinates, without)
    # The kept rows are in the coordinates already.
    moments, evidence, n_alternatives, n_pairs = (coordinates.kept_rows or rows).total(
        function, coordinates.workload
    )
    moments = posterior.with_prior(coordinates.in_own_coordinates(moments))
    return EStepResult(float(evidence - divergence), moments, n_alternatives, int(n_pairs))
