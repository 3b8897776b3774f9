"""Hyperparameters that are learned: the spread of the means, and the typical covariance of a component.

*Model.* The hyperparameters b0 and C0 of the conjugate prior,

    mu_k | Lambda_k, b0 ~ N(m0, (b0 Lambda_k)^-1),      Lambda_k | C0 ~ Wishart(nu0, C0^-1),

are unknown too, with priors that are conjugate to this one:

    b0 ~ Gamma(s, r),      C0 ~ Wishart(g, A^-1),      A = (g/nu0) S^-1.

C0/nu0 is the typical covariance of a component. Its prior expectation is S, the covariance of the rows, and
g = P is the smallest whole number of degrees of freedom for which this prior is proper. With s = r = P/2, b0
has the prior expectation 1: the means spread as widely as the rows of one component. This prior has as much
information on b0 as one component has. For "diag" and "spherical", C0 and S are variances, and every one has
a gamma distribution of its own, which is a Wishart distribution with P = 1.

*Updates.* q(mu, Lambda) depends on q(b0) and q(C0) through their means alone. So the M-step is that of the
conjugate prior with the hyperparameters

    b0 = s'/r',    s' = s + K P/2,      r' = r + sum_k [P/tau_k + |delta_k|^2]/2,     delta_k = W_k (m0 - m_k)
    C0 = g' H^-1,  g' = g + n nu0,      H  = A + sum of E Lambda over the n precision groups,

where W_k is the whitener of component k, W_k' W_k = E Lambda_k. As tau_k = b0 + N_k, the line for b0 is an
equation in b0. (With Student's t, the sums of the rows' scales replace the counts N_k.) So the optimal
hyperparameters are a function of the rest of q, of its expected counts, means and precisions, and are not
stored as a state of their own. At their optimum the lower bound is the one for given hyperparameters, plus
their log prior densities and constants that depend on the number of components alone (`LearnedPrior.bound`).
"""

import functools
import math
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack
from scipy.special import gammaln

from sklearn_lrvb.distributions.wishart import half_degrees_of_freedom

# Newton's method for log b0: the largest number of steps, the largest length of one, and the length below
# which a step is round-off and is not made. So a start at the root returns it unchanged, and a copy of
# q has the same b0.
_MOST_STEPS, _LONGEST_STEP, _CONVERGED = 50, 2.0, 1e-12

# Share of a Newton step of C0 that is made. The change is added to scatter matrices, which contain C0. Where
# C0 falls by many orders of magnitude in one step, the whole change would leave little but round-off in them.
_MOST_OF_A_CHANGE = 0.999


@dataclass(frozen=True)
class LearnedPrior:
    """What is known of the hyperparameters before the rows are seen.

    Parameters
    ----------
    structure : CovarianceStructure
    shape, rate : float, s and r of the prior of b0; the shape is 0 where b0 is given
    freedom : float, g, the degrees of freedom of the prior of C0; 0 where C0 is given
    covariance : ndarray in the shape of one group, S
    """

    structure: object
    shape: float
    rate: float
    freedom: float
    covariance: np.ndarray

    @classmethod
    def of_structure(cls, structure, covariance):
        """The default prior, s = r = P/2 and g = P, of the hyperparameters that the structure learns."""
        shape = 0.5 * structure.n_dimensions * structure.parts.learns_mean_precision
        freedom = float(structure.wisharts.block_size * structure.parts.learns_covariance)
        return cls(structure, shape, shape, freedom, covariance)

    def to_state(self):
        """Builtins and arrays from which, with a structure, this can be made again: dict."""
        return {each.name: getattr(self, each.name) for each in fields(self)[1:]}

    @property
    def expectations(self):
        """Prior expectations of b0 and C0/nu0, where learned, by the estimator's argument for them: dict."""
        of_means = {"mean_precision_prior": self.shape / self.rate} if self.shape else {}
        return of_means | ({"covariance_prior": self.covariance} if self.freedom else {})

    def given(self, prior, posterior):
        """The prior with the hyperparameters that are optimal for a q: MixturePrior.

        Parameters
        ----------
        prior : MixturePrior, with other hyperparameters
        posterior : VariationalPosterior, whose ``whitened_prior_mean`` and ``whiteners`` are known
        """
        changes = {}
        if self.shape:
            distances, counts = posterior.whitened_prior_mean.ravel(), posterior.mean_counts
            squares = float(distances.dot(distances))
            changes["mean_precision"] = self._mean_precision(prior.mean_precision, counts, squares)
        if not self.freedom:
            return replace(prior, **changes)
        root = self._covariance_root(prior.degrees_of_freedom, posterior.whiteners)
        given = replace(prior, covariance=self.structure.gram(root)[0], **changes)
        given.covariance_cholesky = root
        return given

    def _mean_precision(self, start, counts, squares):
        """The root b of s' = b r'(b), by Newton's method in log b."""
        half, rate, counts = 0.5 * self.structure.n_dimensions, self.rate + 0.5 * squares, counts.tolist()
        shape, b = self.shape + half * len(counts), start
        for _ in range(_MOST_STEPS):
            of_shares = slope = 0.0
            for count in counts:
                share = b / (b + count)  # b0/tau_k.
                of_shares += share
                slope += share * (1.0 - share)
            step = (shape - b * rate - half * of_shares) / (b * rate + half * slope)
            if abs(step) < _CONVERGED:
                break
            b *= math.exp(min(max(step, -_LONGEST_STEP), _LONGEST_STEP))
        return b

    def _covariance_root(self, degrees_of_freedom, whiteners):
        """Lower triangular root of C0 = g' H^-1, (1, ...), from L' H L with L L' = S, to lose no digits."""
        structure, factor = self.structure, self._factor
        precisions = structure.gram(structure.transposed(structure.composed(whiteners, factor)))
        expected = (self.freedom / degrees_of_freedom) * structure.identity
        # Reversing rows and columns turns an upper triangular factor into a lower triangular one.
        reverse = (slice(None), *[slice(None, None, -1)] * structure.identity.ndim)
        reversed_sums = np.ascontiguousarray((expected + precisions.sum(axis=0, keepdims=True))[reverse])
        root = structure.transposed(structure.whiteners(structure.cholesky(reversed_sums)))[reverse]
        own = self.own_freedom(len(whiteners), degrees_of_freedom)
        return math.sqrt(own) * structure.composed(factor, root)

    def own_freedom(self, n_groups, degrees_of_freedom):
        """g', the degrees of freedom of q(C0)."""
        return self.freedom + n_groups * degrees_of_freedom

    @cached_property
    def _inverse_covariance(self):
        """S^-1, (1, ...)."""
        return self.structure.gram(self.structure.transposed(self._whitener))

    @cached_property
    def _factor(self):
        """L with L L' = S, (1, ...)."""
        return self.structure.cholesky(self.covariance[None])

    @cached_property
    def _whitener(self):
        """L^-1 with L L' = S, (1, ...)."""
        return self.structure.whiteners(self._factor)

    def inverse_scale(self, degrees_of_freedom):
        """A, the inverse scale of C0, (1, ...)."""
        return (self.freedom / degrees_of_freedom) * self._inverse_covariance

    def _relative_root(self, prior):
        """L_S^-1 L with L_S L_S' = S and L L' = C0, (1, ...)."""
        return self.structure.composed(self._whitener, prior.covariance_cholesky)

    def _relative_inverse_scale(self, prior):
        """L' A L with L L' = C0, (1, ...)."""
        roots, nu = self.structure.transposed(self._relative_root(prior)), prior.degrees_of_freedom
        return (self.freedom / nu) * self.structure.gram(roots)

    def followed(self, q, counts, freedom, distances, scatter):
        """m0 - m_k and scatter of components after b0 and C0 have changed: (K, P) and (S, ...).

        An M-step at given b0 and C0 and then their update converge slowly: means and precisions still depend
        on the old b0 and C0, most of all in components with few rows. So all of them change together here;
        nothing does where the scatter is singular to working precision.

        Parameters
        ----------
        q : VariationalPosterior, with the old b0 and C0, as in the other arguments
        counts : (K,), N_k, or with Student's t sums of scales
        freedom : (S,), c_k, the degrees of freedom of q(Lambda)
        distances : (K, P), m0 - m_k, in the whitened coordinates of q, as is the scatter
        scatter : (S, ...), c_k (E Lambda_k)^-1
        """
        structure, b = self.structure, q.prior.mean_precision
        factors = structure.cholesky(scatter / freedom[structure.statistic_axes])
        if np.isnan(factors).any():
            return distances, scatter
        whiteners = structure.whiteners(factors)
        if self.shape:
            whitened = structure.transformed(whiteners, distances).ravel()
            new = self._mean_precision(b, counts, float(whitened.dot(whitened)))
            shares = (b + counts) / (new + counts)  # m0 - m_k is proportional to 1/tau_k.
            squares = structure.sum_of_squares(distances, abs(new - b) * shares)
            scatter = scatter + math.copysign(1.0, new - b) * squares
            distances = shares[:, None] * distances
        if self.freedom:
            roots = structure.composed(whiteners, q.whitened_prior_root)
            change = self._change_of_covariance(q.prior, roots, freedom)
            scatter = scatter + structure.congruence(q.whitened_prior_root, change)
        return distances, scatter

    def _change_of_covariance(self, prior, roots, freedom):
        """E of a Newton step from C0 = L L' to L (1 + E) L', where the precisions follow C0: (1, ...).

        Let Z_k = L' E(Lambda_k) L and h = L' A L + sum of Z_k, so that C0 = g' H^-1 reads h = g' I. If C0
        becomes L C L' and the precisions follow, Z_k becomes c_k (C + R_k)^-1, where L R_k L' is the scatter
        of the group's rows. For numbers, and with a = L' A L, the equation of C is

            a C + sum over k of c_k C/(C + R_k) = g'.

        Its left side is concave in C and convex in 1/C. So a Newton step in C where C0 rises, and one in 1/C
        where it falls, do not go beyond the root. At C = 1 the slope in C is h - d, and in 1/C it is d - h,
        with d the sum of Z_k^2/c_k. For matrices, the step is made along every eigenvector of h.

        Parameters
        ----------
        prior : MixturePrior
        roots : (S, ...), F_k with F_k' F_k = Z_k
        freedom : (S,), c_k, the degrees of freedom of q(Lambda)
        """
        structure, precisions = self.structure, self.structure.gram(self.structure.transposed(roots))
        sums, vectors = self._relative_inverse_scale(prior)[0] + precisions.sum(axis=0), None
        if structure.is_matrix:
            sums, vectors, _ = lapack.dsyevd(sums)  # NumPy's checks take longer than a small matrix.
            precisions = np.square(roots @ vectors).sum(axis=1)
        gap = self.own_freedom(len(roots), prior.degrees_of_freedom) - sums
        slope = sums - np.square(precisions).T @ (1.0 / freedom)
        change = _MOST_OF_A_CHANGE * gap / (slope + np.maximum(-gap, 0.0))
        return (change if vectors is None else (vectors * change) @ vectors.T)[None]

    def responses_of_covariance(self, prior):
        """Derivatives of C0 in nu0 at a fixed S, and in the logarithm of the scale of S: two (1, ...).

        Each is E in dC0 = L E L', L L' = C0, with the other factors of q held fixed.
        """
        structure, nu = self.structure, prior.degrees_of_freedom
        own = self.own_freedom(structure.n_groups, nu)
        by_scale = self._relative_inverse_scale(prior) / own
        return by_scale / nu + (structure.n_groups / own) * structure.identity, by_scale

    def gradient_in_expectation(self, prior, gradients):
        """Gradients in the prior expectation of C0 from those in C0, at fixed q: (n, ...) -> (n, ...)."""
        structure, g, nu = self.structure, self.freedom, prior.degrees_of_freedom
        own, inverse = self.own_freedom(structure.n_groups, nu), self._inverse_covariance / nu
        maps = structure.composed(inverse, prior.covariance[None])
        return (g / own) * structure.congruence(maps, gradients)

    def bound(self, prior):
        """What q(b0) and q(C0) add to the lower bound under given hyperparameters, at their optimum, in nats.

        Parameters
        ----------
        prior : MixturePrior, with the optimal hyperparameters
        """
        structure, total = self.structure, 0.0
        if self.shape:
            b, own = prior.mean_precision, self.shape + 0.5 * structure.n_dimensions * structure.n_components
            total += self.shape * math.log(b * self.rate) - b * self.rate
            total += math.lgamma(own) - math.lgamma(self.shape) - own * (math.log(own) - 1.0)
        if self.freedom:
            wisharts, nu, g = structure.wisharts, prior.degrees_of_freedom, self.freedom
            relative = self._relative_root(prior)
            log_det = float(structure.log_determinants(relative)[0])
            trace = float(np.vdot(relative, relative)) / nu
            total += 0.5 * g * (log_det / structure.power - trace)
            constant = _log_constant(self.own_freedom(structure.n_groups, nu), g, nu, wisharts.block_size)
            total += wisharts.n_blocks * constant
        return total


@functools.lru_cache(maxsize=64)
def _log_constant(own, g, nu, size):
    """log Gamma_P(g'/2) - log Gamma_P(g/2) + P/2 [g log(g/(2 nu)) + g' (1 - log(g'/2))], for one block."""
    log_gammas = gammaln(half_degrees_of_freedom(own, size)) - gammaln(half_degrees_of_freedom(g, size))
    rest = g * math.log(0.5 * g / nu) + own * (1.0 - math.log(0.5 * own))
    return float(log_gammas.sum()) + 0.5 * size * rest


class LearnedInformation:
    """What learned hyperparameters add to the observed information of q.

    Symbols are those of docs/theory/learned_prior.md, with A for A_0. A change of log b0 is one more
    coefficient, x, for which no row has a feature. The vector q (`source`) is the derivative of the
    statistics in x. At fixed counts the intercepts change by b0 Psi x, Psi_k = P/(2 tau_k^2). C0 is
    eliminated: Q maps a change dC0 = L E L', L L' = C0, to those of the groups' quadratic statistics,
    s(F_k E F_k') with F_k = W_k L. So G becomes

        [ G + Q I^-1 Q'   q ]        I^-1 = 2/g',
        [ q'              0 ]

    and the entry of R^-1 for x is s' - b0^2 (sum Psi - Psi' (V_pi + C)^-1 Psi).

    Parameters
    ----------
    posterior : VariationalPosterior, with learned hyperparameters

    Attributes
    ----------
    intercepts : (L,), b0 Psi
    """

    def __init__(self, posterior):
        self._posterior, self._learned = posterior, posterior.prior.learned
        structure = self._structure = posterior.structure
        self.intercepts = np.zeros(posterior.n_labels)
        if not structure.has_scales:  # With scales, b0 changes their coefficients instead.
            psi = 0.5 * structure.n_dimensions / posterior.mean_precision**2
            self.intercepts[: posterior.n_components] = posterior.prior.mean_precision * psi

    @cached_property
    def of_mean_precision(self):
        """R^-1 of log b0, a float."""
        posterior, b = self._posterior, self._posterior.prior.mean_precision
        explained = self.intercepts @ posterior.counts_by_mean_precision
        return self._own_shape - b * self.intercepts.sum() + explained

    @property
    def deviation_under_q(self):
        """Standard deviation of b0 under q, relative to b0, a float."""
        return 1.0 / math.sqrt(self._own_shape)

    @property
    def _own_shape(self):
        """s'."""
        structure = self._structure
        return self._learned.shape + 0.5 * structure.n_dimensions * structure.n_components

    @cached_property
    def source(self):
        """q, (D,)."""
        posterior, structure, blocks = self._posterior, self._structure, self._structure.layout.blocks
        b, distance = posterior.prior.mean_precision, posterior.whitened_prior_mean
        source = np.zeros(posterior.n_coefficients)
        second = structure.sum_of_squares(distance, np.full(len(distance), b))
        source[blocks["intercept"]] = posterior.counts_by_mean_precision
        source[blocks["linear"]] = b * distance.ravel()
        source[blocks["quadratic"]] = structure.features.from_sums(second).ravel()
        source[blocks["scale"]] = b
        return source

    def add_to(self, missing):
        """Add these terms to G, (D, D), in place."""
        structure, blocks = self._structure, self._structure.layout.blocks
        if self._learned.shape:
            of_b0 = blocks["mean_precision"].start
            missing[of_b0] += self.source
            missing[:, of_b0] += self.source
        if self._learned.freedom:
            roots, block = self._posterior.whitened_prior_root, blocks["quadratic"]
            shape = (structure.n_groups, structure.n_quadratic, -1)
            for root, rows in zip(roots, missing[block, block].reshape(*shape), strict=True):
                maps = structure.composed(root[None], structure.transposed(roots))
                of_pairs = structure.features.congruences(maps) / (structure.power * self.own_freedom)
                rows += np.concatenate(of_pairs, axis=1)

    @property
    def own_freedom(self):
        """g'."""
        prior = self._posterior.prior
        return self._learned.own_freedom(self._structure.n_groups, prior.degrees_of_freedom)

    def step_of_rows(self, step):
        """A step of the statistics without what b0 adds to counts and sums of scales: (D,) -> (D,)."""
        posterior, blocks, step = self._posterior, self._structure.layout.blocks, step.copy()
        change = step[blocks["mean_precision"]] / self.of_mean_precision
        step[blocks["intercept"]] -= posterior.counts_by_mean_precision * change
        step[blocks["scale"]] -= posterior.prior.mean_precision * change
        return step

    def product(self, coefficients):
        """The terms of G that are added here, times coefficients: (D, m) -> (D, m)."""
        product, blocks = np.zeros_like(coefficients), self._structure.layout.blocks
        if self._learned.shape:
            of_b0 = blocks["mean_precision"]
            product += self.source[:, None] * coefficients[of_b0]
            product[of_b0] += self.source @ coefficients
        if self._learned.freedom:
            common = self.gathered(coefficients[blocks["quadratic"]])
            product[blocks["quadratic"]] += (2.0 / self.own_freedom) * self.spread(common)
        return product

    def spread(self, changes):
        """Q E, changes s(F_k E F_k') of the statistics by changes E of C0: (m, 1, ...) -> (S Q, m)."""
        structure, roots = self._structure, self._posterior.whitened_prior_root
        shape = len(changes), structure.n_groups, *structure.identity.shape
        sums = structure.congruence(roots, np.broadcast_to(changes, shape))
        return structure.features.from_sums(sums).reshape(len(changes), -1).T

    def gathered(self, quadratic):
        """Q' times quadratic coefficients, the transpose of `spread`: (S Q, m) -> (m, 1, ...)."""
        structure, roots = self._structure, self._posterior.whitened_prior_root
        quadratic = np.ascontiguousarray(quadratic.T).reshape(-1, structure.n_groups, structure.n_quadratic)
        sums = structure.features.to_sums(quadratic) / (2.0 * structure.power)
        return structure.congruence(structure.transposed(roots), sums).sum(axis=1, keepdims=True)
