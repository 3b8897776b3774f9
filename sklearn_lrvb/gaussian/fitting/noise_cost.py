"""What `reg_covar`, the known noise on the rows, costs a fit.

*Mathematics.* At fixed responsibilities the lower bound depends on a precision group through
-(c/2) log|A|, where A = B + N r I: r is `reg_covar`, N the group's expected count, and B the scatter of the
rows together with what the prior adds. So, under a prior
that is held fixed, the noise costs

    (c/2) log(|B + N r I| / |B|) = (c/2) sum_i log(1 + N r/b_i),

b_i being the eigenvalues of B. (P N r takes the place of N r for "spherical", where B is a number. Where rows
have scales u, N is the sum of responsibilities times u, which are held fixed too.) Less noise lets the
responsibilities improve too, so that a fit to the same rows with ``reg_covar=0`` gains at least as much; with
one component it gains exactly this. (To first order the cost is r N trace(E Lambda)/2, which is how fast the
bound falls as r rises; it is less than the cost.)

In what is reported a direction counts only if the rows add more to b_i than the prior and rounding do. In the
others they hardly vary: constant and duplicated columns, or rows that are equal within a component. There the
noise hides nothing; it is what makes the fit possible, and no value of r other than zero would be small.
Where the covariance of the rows is singular, the default prior has the noise added to it. This part of the
prior shrinks with the noise, and is left out when the two are compared; else noise that exceeds all variances
would hide itself.
"""

import functools
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.gaussian.e_step.frames import OwnFrames
from sklearn_lrvb.mixture.responsibilities import expect
from sklearn_lrvb.symmetric_matrices import round_off, scaled_to_unit_diagonal

# Cost in nats a row above which the noise counts as costly. In 130 fits to breast cancer, wine, diabetes,
# iris and digits data, raw, standardized and in small units, refits without noise found the same clusters
# where it cost less (adjusted Rand index 0.99 or more), and others in some where it cost 0.06 or more (0.72
# to 0.91). Standardized columns cost 0.024 at most, unless they are (nearly) dependent.
COSTLY = 0.05

# Share of `COSTLY` that the proposed smaller noise may cost. The margin is needed because a fit with less
# noise may find tighter components.
_NEGLIGIBLE_SHARE = 0.1


@dataclass(frozen=True)
class NoiseCost:
    """The cost of the noise at the end of a fit.

    Attributes
    ----------
    per_row : float
        Nats per row that a fit without noise gains, or more.
    group : int, the precision group in which one direction costs most
    share : float, share of the noise in the group's variance along this direction
    loadings : (P,), squared loadings of the features on the direction, which sum to one
    variances : (P,), variances of all rows
    noise : float, `reg_covar`
    negligible : float, noise that would cost next to nothing
    falls_with_scaling : bool
        Whether the same noise on standardized features would be less than half of it in this direction.
    may_be_rounding : bool
        Whether the direction may hold rounding errors alone, as the last principal components may.
    exceeds_features : bool, whether noise is more than the variance of whole features
    """

    per_row: float
    group: int
    share: float
    loadings: np.ndarray
    variances: np.ndarray
    noise: float
    negligible: float
    falls_with_scaling: bool
    may_be_rounding: bool
    exceeds_features: bool


def costly_noise(rows, posterior):
    """The cost of the noise, if it is more than `COSTLY` nats a row; otherwise None.

    Fits in which a bound shows that it is less need no eigenvectors.

    Parameters
    ----------
    rows : Rows, the training rows
    posterior : VariationalPosterior, the end of the fit

    Returns
    -------
    cost : NoiseCost or None
    """
    most = COSTLY * rows.total_weight
    if posterior.prior.reg_covar == 0:
        return None
    whiteners = _whiteners_along_rows(rows, posterior)
    if _bound_from_traces(posterior, whiteners) <= most or _bound_from_rows(posterior, whiteners) <= most:
        return None
    directions = _directions(rows, posterior)
    costs = directions.costs
    if not costs.sum() > most:
        return None
    group, number = np.unravel_index(costs.argmax(), costs.shape)
    ratio = directions.ratios[group, number]
    # The cost is concave in the noise, so that a share of the noise costs at most that share of this number.
    linear_cost = 0.5 * posterior.effective_degrees_of_freedom @ directions.ratios_without_ridge.sum(axis=1)
    loadings, noise = directions.loadings(group, number), posterior.prior.reg_covar
    variance = float(loadings @ rows.variances)  # Of the features on which the direction has its loadings.
    # What rounding of the largest feature leaves in linear combinations of all.
    rounding = float(rows.n_features * np.finfo(rows.dtype).eps ** 2 * rows.variances.max())
    return NoiseCost(
        per_row=float(costs.sum() / rows.total_weight),
        group=int(group),
        share=float(ratio / (1.0 + ratio)),
        loadings=loadings,
        variances=rows.variances,
        noise=noise,
        negligible=float(noise * _NEGLIGIBLE_SHARE * most / linear_cost),
        falls_with_scaling=variance < 0.5,
        may_be_rounding=variance <= rounding,
        exceeds_features=noise > variance,
    )


def _whiteners_along_rows(rows, posterior):
    """The whiteners without the coordinates in which rows hold rounding alone, (S, P, coordinates kept).

    N centred rows vary along N - 1 directions of their span. In the last one precisions are largest, and no
    row varies, so that it does not count. Where the prior couples it to others, it has to be kept: what is
    left is not a bound then.
    """
    prior = posterior.prior
    if prior.flat or not prior.resolution.any():
        return posterior.whiteners
    holds_rounding = rows.variances < np.square(prior.resolution)
    if not holds_rounding.any() or prior.mean[holds_rounding].any():
        return posterior.whiteners
    scaled = scaled_to_unit_diagonal(prior.covariance)[0]
    if np.square(scaled[holds_rounding][:, ~holds_rounding]).max(initial=0.0) > round_off(len(scaled)):
        return posterior.whiteners
    return posterior.whiteners[:, :, ~holds_rounding]


def _bound_from_traces(posterior, whiteners):
    """A number that the cost does not exceed at a fixed point of the sweeps, in nats.

    The shares of the noise in the variances along a group's directions sum to x = (N/c) r trace(E Lambda).
    They cost most if one direction has it all: -(c/2) log(1 - x). Directions along which no row varies do not
    count.
    """
    structure, freedom = posterior.structure, posterior.effective_degrees_of_freedom
    noise = posterior.prior.reg_covar * structure.per_group(posterior.mean_counts)
    shares = noise * structure.precision_trace(whiteners) / freedom
    return np.inf if shares.max() >= 1.0 else -0.5 * float(freedom @ np.log1p(-shares))


def _bound_from_rows(posterior, whiteners):
    """Another such number in nats, which is smaller where rows vary along few directions.

    Along an eigenvector of the noise let x, y, p and q be the shares of the noise, of the rows, of the prior
    and of the prior's ridge in the variance, so that x + y + p = 1. A direction counts only if y > p - q.
    Then 1 - x - q < 2 y, and hence -log(1 - x) <= x/(1 - x) < 2 x y/((1 - x)(1 - x - q)). In the denominators
    x and q are replaced by bounds of their largest values, Frobenius norms. Directions that do not count have
    x y of at least zero, so that the sum of x y over all directions, a trace, may stand for that over those
    that do.
    """
    prior, structure, freedom = posterior.prior, posterior.structure, posterior.effective_degrees_of_freedom
    if not structure.is_matrix:
        return np.inf
    noise = prior.reg_covar * structure.per_group(posterior.mean_counts)
    gram, of_prior = (
        part / freedom[structure.statistic_axes]
        for part in (structure.gram(whiteners), posterior.second_moments_of_prior)
    )
    largest = np.linalg.norm(gram, axis=(1, 2))
    products = np.trace(gram, axis1=1, axis2=2) - np.einsum("spq,spq->s", gram, of_prior) - noise * largest**2
    without_noise = 1.0 - noise * largest
    without_ridge = without_noise - prior.ridge * largest
    if without_ridge.min() <= 0.0:
        return np.inf
    return float(freedom @ (noise * products / (without_noise * without_ridge)))


@dataclass(frozen=True)
class _Directions:
    """The eigenvectors of the noise in the groups' frames, and how the rows vary along them.

    Attributes
    ----------
    posterior : VariationalPosterior
    vectors : (S, P, P), the directions in columns; None where these are the features themselves
    ratios : (S, Q), N r/b_i, zero where the rows add less to b_i than the prior does
    ratios_without_ridge : (S, Q), the same without the prior's ridge in b_i, which falls with the noise
    """

    posterior: object
    vectors: np.ndarray | None
    ratios: np.ndarray
    ratios_without_ridge: np.ndarray

    @property
    def costs(self):
        """Nats that the noise costs along every direction, (S, Q)."""
        return 0.5 * self.posterior.effective_degrees_of_freedom[:, None] * np.log1p(self.ratios)

    def loadings(self, group, number):
        """Squared loadings of the features on a direction, (P,)."""
        n_features = self.posterior.n_features
        if self.vectors is not None:
            direction = self.vectors[group, :, number]
            return np.square(direction) / (direction @ direction)
        if self.ratios.shape[1] == 1:
            return np.full(n_features, 1.0 / n_features)
        return np.eye(n_features)[number]


def _directions(rows, posterior):
    """The `_Directions` of all groups, by a pass over the rows."""
    prior, structure, frames = posterior.prior, posterior.structure, OwnFrames(posterior)
    moments = rows.total(functools.partial(_moments_of_block, frames), frames.workload)
    of_rows, of_prior = moments.second, posterior.second_moments_of_prior
    of_identity, vectors = structure.gram(posterior.whiteners), None
    # Variances that count as zero. Of the features they are those of a singular covariance
    # (`symmetric_matrices`), and those that rounding gives to a constant column; in any frame, what an
    # eigenvector that is off by round-off has along it.
    relative = round_off(posterior.n_features)
    of_features, of_frame = relative * rows.variances + np.square(prior.resolution), relative**2
    if structure.is_matrix:
        of_identity, axes = np.linalg.eigh(of_identity)
        vectors = structure.transposed(posterior.whiteners) @ axes
        of_rows, of_prior = (np.einsum("sqi,sqi->si", axes, part @ axes) for part in (of_rows, of_prior))
        rounding = np.einsum("p,spi->si", of_features, np.square(vectors)) + of_frame
    else:
        covariances = structure.power * structure.gram(structure.diagonal_factors(np.sqrt(of_features)))
        rounding = structure.congruence(posterior.whiteners, covariances)
        rounding = rounding + of_frame * structure.identity_statistic
    counts = structure.per_group(moments.mean_counts(posterior.n_components))[:, None]
    noise = counts * prior.reg_covar * structure.power * of_identity
    without_ridge = np.maximum(of_prior - prior.ridge * of_identity, 0.0)
    varies = of_rows > without_ridge + counts * rounding
    ratios, ratios_without_ridge = (
        np.divide(noise, of_rows + part, out=np.zeros_like(noise), where=varies)
        for part in (of_prior, without_ridge)
    )
    return _Directions(posterior, vectors, ratios, ratios_without_ridge)


def _moments_of_block(frames, block):
    """Moments of a block's rows in the components' own frames, without noise and prior."""
    expectation = expect(frames, block)
    counted = block.weighted(expectation.responsibilities)
    return frames.moments(expectation.framed, expectation.weights(counted))
