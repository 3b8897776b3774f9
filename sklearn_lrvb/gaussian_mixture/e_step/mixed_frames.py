"""Frames of rows of which some have holes: complete blocks in one kind of frames, others in their own.

The interface of all frames is described in `own_frames`. Representations, coefficients and sums are pairs,
for complete blocks and for others.
"""

from sklearn_lrvb.gaussian_mixture.e_step.own_frames import OwnFrames, OwnRows


class MixedFrames:
    """Some frames for complete blocks, and `OwnFrames` for blocks with holes.

    Parameters
    ----------
    complete : CommonFrame
    posterior : VariationalPosterior
    """

    def __init__(self, complete, posterior):
        self._both = complete, OwnFrames(posterior)
        self.numbers_per_row = max(frames.numbers_per_row for frames in self._both)

    def whiten(self, block):
        """The representation of a block in its frames."""
        return self._both[block.holes is not None].whiten(block)

    def _of(self, whitened):
        """The number of the frames of a representation, and these frames."""
        number = int(isinstance(whitened, OwnRows))
        return number, self._both[number]

    def _paired(self, whitened, name, *arguments):
        """What a method of the frames of a representation returns, as a pair with None."""
        number, frames = self._of(whitened)
        result = getattr(frames, name)(whitened, *arguments)
        return (None, result) if number else (result, None)

    def log_densities(self, whitened):
        """rho, (K, n)."""
        return self._of(whitened)[1].log_densities(whitened)

    def moments(self, whitened, weights):
        """Sums of weight times the representation, weights (K, n) >= 0."""
        return self._paired(whitened, "moments", weights)

    def in_own_frames(self, moments):
        """The same sums of y, in every component's frame."""
        return self._summed(moments, "in_own_frames")

    def _summed(self, moments, name):
        there = [
            getattr(frames, name)(part)
            for frames, part in zip(self._both, moments, strict=True)
            if part is not None
        ]
        return there[0] if len(there) == 1 else there[0] + there[1]

    def coefficients(self, constant, linear, curvature):
        """a + b.y + B.s(y) as coefficients in both frames."""
        return tuple(frames.coefficients(constant, linear, curvature) for frames in self._both)

    def changes(self, whitened, coefficients):
        """a + b.y + B.s(y), less what all components share, (K, n)."""
        number, frames = self._of(whitened)
        return frames.changes(whitened, coefficients[number])

    def signed_moments(self, whitened, weights):
        """Sums of weight times the representation, weights whose sum over the components is zero."""
        return self._paired(whitened, "signed_moments", weights)

    def signed_in_own_frames(self, moments):
        """The same sums of y, in every component's frame."""
        return self._summed(moments, "signed_in_own_frames")

    def hidden_moments(self, whitened, coefficients, weights):
        """Changes of the moments by those of the hidden values."""
        number, frames = self._of(whitened)
        return (None, frames.hidden_moments(whitened, coefficients[1], weights)) if number else None
