"""The smallest ellipsoid that encloses some points.

By duality its log volume is the maximum over weights u of the points, which sum to one, of

    log ball(r) + r/2 log r + 1/2 log |covariance of the points under u|,

so that any weights give a lower bound. With points q = (1, x) in d = r + 1 dimensions and X = sum u q q', the
determinant is |X|; an upper bound is d/2 log(max kappa / d) above it, with kappa = q' X^-1 q. A step of Todd
and Yildirim (2007, after Khachiyan) moves weight to the point of largest kappa, or away from that of the
least. They converge linearly, and the bound at a quadratic rate: where the certified error is 1e-6, the bound
was within 1e-11 of its limit. Steps go over a few points, to which those outside the ellipsoid are added.
"""

import numpy as np
from scipy.special import gammaln

_LARGEST_ERROR = 1e-6  # Certified, of the log volume; see above for the actual one.
_STEPS_AT_ONCE = 500  # Steps after which the inverse is computed anew, so that rounding does not add up.
_MAX_ROUNDS = 1000
_SHARE_OF_ERROR = 0.1  # A round ends where its own error is this share of that of the last over all points.


def log_volume_of_ball(n_dimensions):
    """log volume of the ball of radius one."""
    return 0.5 * n_dimensions * np.log(np.pi) - gammaln(0.5 * n_dimensions + 1.0)


def log_volume_of_enclosing_ellipsoid(points, enough=np.inf):
    """log volume of the smallest ellipsoid that encloses points, or a lower bound that is enough.

    Parameters
    ----------
    points : (n, r), of full rank; with a covariance near the identity, so that no digits are lost
    enough : float
        The lower bound is returned as soon as it is larger than that.
    """
    n_points, n_dimensions = points.shape
    lifted, size = np.column_stack([np.ones(n_points), points]), n_dimensions + 1
    constant = log_volume_of_ball(n_dimensions) + 0.5 * n_dimensions * np.log(n_dimensions)
    active = _spanning(points)
    weights, error = np.full(len(active), 1.0 / len(active)), np.inf
    _, log_determinant = _inverse_and_log_determinant(lifted, np.full(n_points, 1.0 / n_points))
    for _ in range(_MAX_ROUNDS):
        if constant + 0.5 * log_determinant > enough or error <= _LARGEST_ERROR:
            break
        target = max(0.5 * _LARGEST_ERROR, min(1.0, _SHARE_OF_ERROR * error))
        weights = _ascended(lifted[active], weights, target)
        inverse, log_determinant = _inverse_and_log_determinant(lifted[active], weights)
        kappa = _kappa(inverse, lifted)
        error = 0.5 * size * np.log(kappa.max() / size)
        outside = np.argsort(kappa)[-4 * size :]
        outside = np.setdiff1d(outside[kappa[outside] > size], active[weights > 0])
        active = np.concatenate([active[weights > 0], outside])
        weights = np.concatenate([weights[weights > 0], np.zeros(len(outside))])
    return constant + 0.5 * log_determinant


def _spanning(points):
    """Points to start from, which are of full rank (Kumar and Yildirim 2005): int array, at most (2 r,).

    They are outermost in directions each of which is orthogonal to the differences of the pairs before it.
    """
    outermost, differences = [], np.zeros((0, points.shape[1]))
    for number in range(points.shape[1]):
        direction = np.linalg.qr(differences.T, mode="complete")[0][:, number]
        along = points @ direction
        outermost += [along.argmin(), along.argmax()]
        differences = np.vstack([differences, points[outermost[-1]] - points[outermost[-2]]])
    return np.unique(outermost)


def _inverse_and_log_determinant(lifted, weights):
    """X^-1 (d, d) and log |X| of lifted points (m, d) with weights (m,)."""
    factor = np.linalg.cholesky((lifted.T * weights) @ lifted)
    root = np.linalg.inv(factor)
    return root.T @ root, 2.0 * np.log(np.diag(factor)).sum()


def _kappa(inverse, lifted):
    """kappa of lifted points, (n,)."""
    return np.einsum("nd,nd->n", lifted @ inverse, lifted)


def _ascended(lifted, weights, error):
    """The weights (m,) after steps of lifted points (m, d), until the certified error is as small."""
    weights, size = weights.copy(), lifted.shape[1]
    tolerance = size * np.expm1(2.0 * error / size)
    while True:
        inverse, _ = _inverse_and_log_determinant(lifted, weights)
        kappa = _kappa(inverse, lifted)
        for _ in range(_STEPS_AT_ONCE):
            upper = kappa.argmax()
            lower = np.where(weights > 0, kappa, np.inf).argmin()
            gain, loss = kappa[upper] - size, size - kappa[lower]
            if max(gain, loss) <= tolerance:
                return weights
            chosen = upper if gain > loss else lower
            least = -weights[chosen] / (1.0 - weights[chosen])  # This step removes the point.
            excess = kappa[chosen] - 1.0
            step = max((excess + 1.0 - size) / (size * excess), least) if excess > 0 else least
            weights *= 1.0 - step
            weights[chosen] = weights[chosen] + step if step > least else 0.0
            direction = inverse @ lifted[chosen]
            shrinkage = step / (1.0 - step + step * kappa[chosen])
            kappa -= shrinkage * np.square(lifted @ direction)
            kappa /= 1.0 - step
            inverse -= shrinkage * np.outer(direction, direction)
            inverse /= 1.0 - step
