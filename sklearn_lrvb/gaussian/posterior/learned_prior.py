"""Hyperparameters that are learned: the spread of the means, and the typical covariance of a component.

*Model.* The hyperparameters b0 and C0 of the conjugate prior,

    mu_k | Lambda_k, b0 ~ N(m0, (b0 Lambda_k)^-1),      Lambda_k | C0 ~ Wishart(nu0, C0^-1),

are unknown too, with priors that are conjugate to this one:

    b0 ~ Gamma(s, r),      C0 ~ Wishart(g, A^-1),      A = (g/nu0) S^-1.

C0/nu0 is a typical covariance of components. It is expected to be S, the covariance of the rows, with the
smallest whole number of degrees of freedom that is proper, g = P. With s = r = P/2 the means are expected to
spread like the rows of one component, with as much information as one component has. For "diag" and
"spherical", C0 and S are variances, every one with a gamma distribution, which is a Wishart one with P = 1.

*Updates.* q(b0) and q(C0) enter q(mu, Lambda) by their means alone: the M-step is the one for a prior whose
hyperparameters are

    b0 = s'/r',    s' = s + K P/2,      r' = r + sum_k [P/tau_k + |delta_k|^2]/2,     delta_k = W_k (m0 - m_k)
    C0 = g' H^-1,  g' = g + n nu0,      H  = A + sum of E Lambda over the n precision groups.

As tau_k = b0 + N_k, the first is an equation in b0. (Where rows have scales, their sums stand for the counts
N_k.) So the hyperparameters are a function of the state of q, its expected counts, means and mean precisions,
and have no state of their own. At their optimum the lower bound is the one for given hyperparameters, plus
their log prior densities and constants of the number of components: the terms of `LearnedPrior.bound`.
"""

import functools
import math
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from sklearn_lrvb.distributions.wishart import half_degrees_of_freedom

# Newton's method for log b0: its number of steps and their length at most, and the length of a step that ends
# it, because convergence is quadratic.
_MOST_STEPS, _LONGEST_STEP, _CONVERGED = 50, 2.0, 1e-7

# Share of a change of C0 that an iteration makes, and the precisions with it. Where C0 falls by many
# orders, some of it has to stay, so that the scatter of the rows, to which it is added, keeps its digits.
_MOST_OF_A_CHANGE = 0.999


@dataclass(frozen=True)
class LearnedPrior:
    """What is known of the hyperparameters before the rows are seen.

    Parameters
    ----------
    structure : CovarianceStructure
    shape, rate : float, s and r; the shape is 0 where b0 is given
    freedom : float, g; it is 0 where C0 is given
    covariance : ndarray in the shape of one group, S
    """

    structure: object
    shape: float
    rate: float
    freedom: float
    covariance: np.ndarray

    @classmethod
    def of_structure(cls, structure, covariance):
        """That of the hyperparameters which a structure says are learned, with s = r = P/2 and g = P."""
        shape = 0.5 * structure.n_dimensions * structure.parts.learns_mean_precision
        freedom = float(structure.wisharts.block_size * structure.parts.learns_covariance)
        return cls(structure, shape, shape, freedom, covariance)

    def to_state(self):
        """Builtins and arrays from which, with a structure, this can be made again: dict."""
        return {each.name: getattr(self, each.name) for each in fields(self)[1:]}

    @property
    def expectations(self):
        """What is learned, by argument of the estimator, and the expectations of b0 and of C0/nu0: dict."""
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
                share = b / (b + count)  # Of b0 in tau.
                of_shares += share
                slope += share * (1.0 - share)
            step = (shape - b * rate - half * of_shares) / (b * rate + half * slope)
            b *= math.exp(min(max(step, -_LONGEST_STEP), _LONGEST_STEP))
            if abs(step) < _CONVERGED:
                break
        return b

    def _covariance_root(self, degrees_of_freedom, whiteners):
        """A lower triangular root of C0, (1, ...), by L' H L with L L' = S, which keeps all digits."""
        structure, factor = self.structure, self._factor
        precisions = structure.gram(structure.transposed(structure.composed(whiteners, factor)))
        expected = (self.freedom / degrees_of_freedom) * structure.identity
        root = inverse_roots(structure, expected + precisions.sum(axis=0, keepdims=True))
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

    def change_with_precisions(self, prior, roots, freedom):
        """How C0 changes if the precisions follow it: E (1, ...), where C0 = L L' becomes L (1 + E) L'.

        Precisions at the old C0 hold it back, most of all those of components without rows, which nothing
        else keeps there. In the units of L, with Y = (1 + E)^-1, the precision of a group without rows
        becomes nu0 Y. Others change by less: by w_k (Y - 1), w_k = nu0 (e_k/c_k)^2, where e_k is E Lambda in
        these units, so that e_k = c_k = nu0 without rows. Let H = L' (A + sum of E Lambda) L, and w be the
        sum of w_k. Then C0 = g' H^-1 reads g' Y = H + w (Y - 1), and 1 + E = (g' - w) (H - w)^-1. As w < g',
        C0 does not go too far. In place of a matrix e_k stands a bound of its smallest eigenvalue, so that
        H - w is positive definite. `_MOST_OF_A_CHANGE` of w, and of E, is taken.

        Parameters
        ----------
        prior : MixturePrior, with the C0 for which the precisions were computed
        roots : (S, ...), M with M' M = L' E(Lambda) L in the precision groups
        freedom : (S,), c
        """
        structure, flat = self.structure, roots.reshape(len(roots), -1)
        precisions = structure.gram(structure.transposed(roots))
        traces, size = np.einsum("si,si->s", flat, flat), structure.identity.shape[0]
        shares = np.maximum(traces / freedom - (size - 1.0), 0.0)  # The other eigenvalues are at most one.
        follows = _MOST_OF_A_CHANGE * prior.degrees_of_freedom * float(shares.dot(shares))
        held = self._relative_inverse_scale(prior) + precisions.sum(axis=0) - follows * structure.identity
        own = self.own_freedom(len(roots), prior.degrees_of_freedom)
        change = (own - follows) * structure.gram(inverse_roots(structure, held)) - structure.identity
        return _MOST_OF_A_CHANGE * change

    def responses_of_covariance(self, prior):
        """dC0 by dnu0 at a fixed S, and by a change of the expectation of C0 in proportion: two (1, ...).

        They are E with dC0 = L E L' and L L' = C0, for a given q.
        """
        structure, nu = self.structure, prior.degrees_of_freedom
        own = self.own_freedom(structure.n_groups, nu)
        by_scale = self._relative_inverse_scale(prior) / own
        return by_scale / nu + (structure.n_groups / own) * structure.identity, by_scale

    def gradient_in_expectation(self, prior, gradients):
        """Gradients in the expectation of C0 for a given q, from those in C0: (n, ...) -> (n, ...)."""
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


def inverse_roots(structure, statistics):
    """Lower triangular L with L L' the inverse of a statistic, or NaN: (n, ...) -> (n, ...)."""
    # In reversed order an upper factor of a matrix is lower triangular.
    reverse = (slice(None), *[slice(None, None, -1)] * structure.identity.ndim)
    factors = structure.cholesky(np.ascontiguousarray(statistics[reverse]))
    return structure.transposed(structure.whiteners(factors))[reverse]


@functools.lru_cache(maxsize=64)
def _log_constant(own, g, nu, size):
    """log Gamma_P(g'/2) - log Gamma_P(g/2) + P/2 [g log(g/(2 nu)) + g' (1 - log(g'/2))], for one block."""
    log_gammas = gammaln(half_degrees_of_freedom(own, size)) - gammaln(half_degrees_of_freedom(g, size))
    rest = g * math.log(0.5 * g / nu) + own * (1.0 - math.log(0.5 * own))
    return float(log_gammas.sum()) + 0.5 * size * rest


class LearnedInformation:
    """What learned hyperparameters add to the observed information of q.

    The change of log b0 is a coefficient of its own, x. No row has a feature for it. The means respond to it
    by a source q. At fixed counts the intercepts change by b0 Psi x, Psi_k = P/(2 tau_k^2). C0 is eliminated:
    with its change dC0 = L E L', L L' = C0, the sources are s(M_k E M_k') of the groups, M_k = W_k L, and

        G_new = [ G + Q I^-1 Q'   q ]        I^-1 = 2/g',
                [ q'              0 ]

    while R^-1 has s' - b0^2 (sum Psi - Psi' (V_pi + C)^-1 Psi) for x.

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
        if not structure.has_scales:  # There b0 changes the coefficients of the scales.
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
        """Add it to G, (D, D), in place."""
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
                of_pairs = structure.features.congruences(maps) / (structure.power * self._own_freedom)
                rows += np.concatenate(of_pairs, axis=1)

    @property
    def _own_freedom(self):
        """g'."""
        prior = self._posterior.prior
        return self._learned.own_freedom(self._structure.n_groups, prior.degrees_of_freedom)

    def step_of_rows(self, step):
        """A step of the statistics, with counts and sums of scales of the rows alone: (D,) -> (D,)."""
        posterior, blocks, step = self._posterior, self._structure.layout.blocks, step.copy()
        change = step[blocks["mean_precision"]] / self.of_mean_precision
        step[blocks["intercept"]] -= posterior.counts_by_mean_precision * change
        step[blocks["scale"]] -= posterior.prior.mean_precision * change
        return step

    def product(self, coefficients):
        """What is added to G, times coefficients: (D, m) -> (D, m)."""
        product, structure, blocks = (
            np.zeros_like(coefficients),
            self._structure,
            self._structure.layout.blocks,
        )
        if self._learned.shape:
            of_b0 = blocks["mean_precision"]
            product += self.source[:, None] * coefficients[of_b0]
            product[of_b0] += self.source @ coefficients
        if self._learned.freedom:
            block, root = blocks["quadratic"], self._posterior.whitened_prior_root
            quadratic = coefficients[block].T.reshape(-1, structure.n_groups, structure.n_quadratic)
            sums = structure.features.to_sums(quadratic) / (2.0 * structure.power)
            common = structure.congruence(structure.transposed(root), sums).sum(axis=1, keepdims=True)
            own = structure.congruence(root, np.broadcast_to(common, sums.shape))
            product[block] += (2.0 / self._own_freedom) * structure.features.from_sums(own).reshape(
                len(own), -1
            ).T
        return product
