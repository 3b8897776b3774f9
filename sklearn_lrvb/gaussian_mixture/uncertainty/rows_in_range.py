"""The E-step of rows whose uncertainty or influence is computed, which must not be infinitely far away."""

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect

# Least log-likelihood of such rows. Their uncertainty grows by its square, which is then still a number, with
# a margin for the factors before it.
_LEAST_SCORE = -1e140


def expect_in_range(frames, block, keep_log_densities=False):
    """The E-step of one block, `Expectation`.

    Parameters
    ----------
    frames : OwnFrames
    block : RowBlock
    keep_log_densities : bool, whether to return the log densities too

    Raises
    ------
    ValueError
        A row is so far from all components that squares of its log-likelihood overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        expectation = expect(frames, block, keep_log_densities=keep_log_densities)
    beyond = np.flatnonzero(~(expectation.log_normalizer > _LEAST_SCORE))
    if beyond.size:
        largest = np.abs(block.rows[:, beyond[0]]).max()
        raise ValueError(
            f"Row {block.numbers[beyond[0]]} of X is {largest:.1e} away from the centre of the fit in one of "
            f"its features, and its log-likelihood is below {_LEAST_SCORE:.0e}: error bars and influence, "
            "which grow by the square of that, cannot be computed. (a) Correct the value. (b) Leave the row "
            "out; predict, predict_proba and score_samples without return_std take it."
        )
    return expectation
