"""What all covariance structures share: the posterior of the precisions, features and their coefficients.

*Conventions.* K components, P features, S precision groups: the components of a group share one precision,
Lambda_s, and a group is one component or all of them (S = K or 1). Component k is seen in its own frame,
y = W_k (x - m_k) with W_k' W_k = E Lambda_k, where E Lambda is the identity. Rows come feature-major: a block
is (P, n), whitened (K, P, n). A structure looks at y through a statistic s(y) of degree two,

    full, tied: y y' (P, P)      diagonal: y_p^2 (P,)      spherical: |y|^2 (1,)

summed within a group, with s(I) = E s(y) for y ~ N(0, I) its ``identity_statistic``. Maps between frames
and x (``covariance_cholesky``, ``whiteners``) are (S, P, P), or (S, P), (S, 1) where they only stretch. The
features of a row in component k are the Hermite polynomials of degree <= 2 (mathematics in
`information.observed_information`),

    h = (1, y, (s(y) - O_k)/a),        O_k = s(I) - reg_covar s(W_k W_k'),     a^2 = 2 power,

O_k being the unit less the known noise on x, which enters every s(y); matrices as `svec`. Coefficients beta,
flat (..., D), stand for the change d rho_k = beta . h_k of the log responsibilities: first K intercepts,
then (K, P) linear ones, then (S, Q) quadratic ones, those of a group shared by its components.

Every group's precision is made of ``n_blocks`` independent Wishart matrices (``block``, ``block``), and
|Lambda| is the product of their determinants to the ``power``: one matrix of size P; P numbers (a
Wishart matrix of size 1 is a gamma variable with shape nu/2); one number whose P-th power it is.
"""

import itertools

import numpy as np

from sklearn_lrvb.exponential_families import wishart


class CovarianceStructure:
    """One precision for each component, or one for all.

    A structure adds to this the algebra of its statistic and of its maps (`matrices`, or `scales` for
    numbers), how rows are whitened and summed, its pairs (`pairs`), and the shapes in which it is reported.

    Parameters
    ----------
    n_components : int, K
    n_features : int, P

    Attributes
    ----------
    n_precision_groups : int, S
    n_quadratic : int, Q, quadratic coefficients of a group
    block, n_blocks, power : int, how |Lambda| is made of Wishart determinants
    identity_statistic : s(I)
    identity : what a group's precision is in its own frame
    """

    n_blocks = 1
    power = 1

    def __init__(self, n_components, n_features):
        self.n_components = n_components
        self.n_features = n_features

    @property
    def n_precision_groups(self):
        """S."""
        return self.n_components

    @property
    def has_own_precisions(self):
        """Whether every component has a precision of its own, in a group of its own."""
        return self.n_precision_groups == self.n_components

    @property
    def n_coefficients(self):
        """D."""
        return self.n_components * (1 + self.n_features) + self.n_precision_groups * self.n_quadratic

    @property
    def _feature_norm(self):
        """a."""
        return np.sqrt(2.0 * self.power)

    def per_group(self, by_component):
        """Sums over the components of every group: (..., K) -> (..., S)."""
        if self.n_precision_groups == self.n_components:
            return by_component
        return by_component.sum(axis=-1, keepdims=True)

    def per_component(self, by_group):
        """Each component's own: (S, ...) -> (K, ...), without a copy."""
        return np.broadcast_to(by_group, (self.n_components, *by_group.shape[1:]))

    def between_components(self, by_group):
        """Covariance of what the components of a group share: (S,) -> (K, K)."""
        return (
            np.diag(by_group)
            if self.n_precision_groups == self.n_components
            else np.full((self.n_components, self.n_components), by_group[0])
        )

    def precision_group(self, component):
        """Number of a component's group."""
        return component if self.n_precision_groups > 1 else 0

    def components_sharing_precision(self, component):
        """Components that share a component's group, itself among them."""
        return range(self.n_components) if self.n_precision_groups < self.n_components else (component,)

    def expand(self, by_group):
        """Trailing axes of length one, to go with the statistics of precision groups."""
        return np.reshape(by_group, (*np.shape(by_group), *[1] * self.identity_statistic.ndim))

    def reported_number(self, by_group):
        """A number of every group, in the shape of the attribute: (S,) -> (K,), or a float."""
        return by_group.copy()

    # The posterior of the precisions, given expected counts.

    @property
    def _freedom_of_means(self):
        """Degrees of freedom that the means of a group take from a joint factor."""
        return self.power * self.n_components // self.n_precision_groups

    @property
    def flat_degrees_of_freedom(self):
        """nu0 of the improper prior that is constant in means and precisions."""
        return float(self.block + 1 - self._freedom_of_means)

    def effective_degrees_of_freedom(self, counts, prior_degrees_of_freedom):
        """c, with E Lambda = c A^-1: (K,) -> (S,)."""
        return prior_degrees_of_freedom + self.power * self.per_group(counts)

    def degrees_of_freedom(self, effective_degrees_of_freedom, independent):
        """Wishart degrees of freedom nu, (S,)."""
        of_means = self._freedom_of_means if independent else 0
        return effective_degrees_of_freedom + of_means

    def is_proper(self, effective_degrees_of_freedom, independent):
        """Whether the precision groups' Wishart factors exist, (S,) of bool."""
        degrees_of_freedom = self.degrees_of_freedom(effective_degrees_of_freedom, independent)
        return (effective_degrees_of_freedom > 0) & (degrees_of_freedom > self.block - 1)

    def log_det_inverse_scale(self, log_determinants, degrees_of_freedom):
        """Sum of log|A| over the blocks, from log|E(Lambda)^-1|, (S,)."""
        size = self.block * self.n_blocks
        return log_determinants / self.power + size * np.log(degrees_of_freedom)

    def expected_log_determinant(self, degrees_of_freedom, log_det_inverse_scale):
        """E log|Lambda|, (S,)."""
        of_block = wishart.expected_log_determinant(
            degrees_of_freedom, log_det_inverse_scale / self.n_blocks, self.block
        )
        return self.power * self.n_blocks * of_block

    def log_determinant_excess_variance(self, degrees_of_freedom):
        """Var log|Lambda| that Lambda does not explain, (S,)."""
        of_block = wishart.log_determinant_excess_variance(degrees_of_freedom, self.block)
        return self.power**2 * self.n_blocks * of_block

    def expected_log_density(
        self, degrees_of_freedom, log_det_inverse_scale, expected_log_determinant, expected_trace
    ):
        """E log density of the precision groups' Wishart factors, (S,)."""
        return self.n_blocks * wishart.expected_log_density(
            degrees_of_freedom,
            log_det_inverse_scale / self.n_blocks,
            expected_log_determinant / (self.power * self.n_blocks),
            expected_trace / self.n_blocks,
            self.block,
        )

    def log_evidence(self, effective_degrees_of_freedom, log_determinants, independent):
        """What the precision groups' precisions, integrated over, add to the lower bound: (S,), (S,) -> (S,).

        It is the largest that q allows given c and A, up to constants that depend on the sums of c alone
        (independent factors include the entropies of the means' normal factors).

        Parameters
        ----------
        effective_degrees_of_freedom : (S,), c
        log_determinants : (S,), log|A| summed over the blocks
        independent : bool, q(mu) q(Lambda) instead of q(mu, Lambda)
        """
        degrees_of_freedom = self.degrees_of_freedom(effective_degrees_of_freedom, independent)
        size = self.block * self.n_blocks
        stretched = log_determinants + size * np.log(degrees_of_freedom / effective_degrees_of_freedom)
        log_evidence = self.n_blocks * wishart.log_partition(
            degrees_of_freedom, stretched / self.n_blocks, self.block
        )
        if not independent:
            return log_evidence
        return log_evidence + 0.5 * self._freedom_of_means * (
            log_determinants - size * np.log(effective_degrees_of_freedom)
        )

    def expected_own_trace(self, degrees_of_freedom):
        """E trace(A Lambda) of a group's own factors, (S,)."""
        return self.block * self.n_blocks * degrees_of_freedom

    def mean_excess_factor(self, effective_degrees_of_freedom):
        """Student-t excess of Cov(mu) under joint factors over E Sigma/tau, (S,).

        Left out, as zero, where the variance is infinite (c <= block + 1).
        """
        beyond = effective_degrees_of_freedom - (self.block + 1)
        return np.divide(self.block + 1, beyond, out=np.zeros_like(beyond), where=beyond > 0)

    def sum_of_squares(self, vectors, weights):
        """Sums of weight s(v) within the precision groups: (K, P), (K,) -> (S, ...)."""
        return self.signed_second_moments(vectors[:, :, None], weights[:, None])

    # Rows in a frame that all components share.

    prefers_common_frame = True
    prefers_pair_frame = False

    @property
    def n_monomials(self):
        """F, numbers that `monomials` makes of a row."""
        return 1 + self.n_features + self.n_quadratic

    def monomials(self, whitener, center, block):
        """(1, u, s(u)) with u = W (x - c): (1, ...), (P,), (P, n) -> (F, n)."""
        monomials = np.empty((self.n_monomials, block.shape[1]))
        monomials[0] = 1.0
        rows = monomials[1 : 1 + self.n_features]
        self.move_into(whitener, center, block, rows)
        self.add_products(rows, monomials[1 + self.n_features :])
        return monomials

    def add_products(self, rows, products):
        """Write what `monomials` has of degree two: (P, n) into (F - P - 1, n)."""
        self.write_entries(rows, products)

    def monomial_coefficients(self, curvature):
        """B.s(u) as coefficients of those: (S, ...) -> (K, F - P - 1)."""
        return self.per_component(self.entry_coefficients(curvature))

    def monomial_moments(self, monomials, weights):
        """Sums of weight (1, u, s(u)), each as it comes: (F, n), (K, n) -> (K,), (K, P), second."""
        sums = weights @ monomials.T
        linear = 1 + self.n_features
        return sums[:, 0], sums[:, 1:linear], sums[:, linear:]

    def monomial_second_moments(self, second):
        """Those of `monomial_moments` as a statistic, (S, ...)."""
        return second

    def distinct_coefficients(self, curvature):
        """`monomial_coefficients` but for what all components share."""
        return self.monomial_coefficients(curvature)

    def signed_monomial_moments(self, monomials, weights):
        """`monomial_moments` for weights of any sign whose sum over the components is zero."""
        return self.monomial_moments(monomials, weights)

    # The missing information.

    def pairs(self, posterior, pairs_of_a_row):
        """All pairs of components, together or one by one, to add up the missing information (`pairs`).

        Parameters
        ----------
        pairs_of_a_row : callable, () -> float, how many of them an uncertain row is uncertain between
        """
        pairs = itertools.combinations(range(self.n_components), 2)
        return [self.pair(posterior, k, l) for k, l in pairs]

    # Features and their coefficients.

    def coefficient_blocks(self):
        """Where the kinds of coefficients stand: name -> slice of D."""
        linear = self.n_components
        quadratic = linear + self.n_components * self.n_features
        return {
            "intercept": slice(0, linear),
            "linear": slice(linear, quadratic),
            "quadratic": slice(quadratic, self.n_coefficients),
        }

    def split(self, coefficients):
        """(..., D) -> intercepts (..., K), linear (..., K, P), quadratic (..., S, Q)."""
        lead = coefficients.shape[:-1]
        intercepts, linear, quadratic = (
            coefficients[..., part] for part in self.coefficient_blocks().values()
        )
        return (
            intercepts,
            linear.reshape(*lead, self.n_components, self.n_features),
            quadratic.reshape(*lead, self.n_precision_groups, self.n_quadratic),
        )

    def coefficient_slices(self, component):
        """Slices of D with a component's intercept, linear and quadratic coefficients."""
        parts, group = self.coefficient_blocks(), self.precision_group(component)
        linear = parts["linear"].start + component * self.n_features
        quadratic = parts["quadratic"].start + group * self.n_quadratic
        return (
            slice(component, component + 1),
            slice(linear, linear + self.n_features),
            slice(quadratic, quadratic + self.n_quadratic),
        )

    def second_moment_origin(self, whiteners, reg_covar):
        """O, (S, ...)."""
        return self.identity_statistic - reg_covar * self.congruence(whiteners, self.identity_statistic)

    def quadratic_features(self, sums):
        """(s - O)/a, given s - O: (S, ...) -> (S, Q)."""
        return self.flattened(sums) / self._feature_norm

    def component_features(self, whitened, origin):
        """h of rows in one component's frame: (P, n), (...) -> (F, n)."""
        entries = self.quadratic_entries(whitened, origin, np.arange(self.n_quadratic))
        return np.concatenate([np.ones((1, whitened.shape[1])), whitened, entries])

    def quadratic_sums(self, features):
        """Inverse of `quadratic_features`: (..., Q) -> (..., ...)."""
        return self._feature_norm * self.unflattened(features)

    def feature_moments(self, counts, first, second, origin):
        """Sums of h: moments about the frames -> (D,). The transpose of `polynomials`."""
        centred = second - self.expand(self.per_group(counts)) * origin
        return np.concatenate([counts, first.ravel(), self.quadratic_features(centred).ravel()])

    def moments(self, coefficients):
        """Inverse of `feature_moments` for O = s(I): (D,) -> counts, first, second."""
        counts, first, quadratic = self.split(coefficients)
        return (
            counts,
            first,
            self.quadratic_sums(quadratic) + self.expand(self.per_group(counts)) * self.identity_statistic,
        )

    def polynomials(self, coefficients, origin):
        """beta . h as a + b.y + B.s(y): (..., D) -> (..., K), (..., K, P), (..., S, ...)."""
        intercepts, linear, quadratic = self.split(coefficients)
        curvature = self.unflattened(quadratic) / self._feature_norm
        axes = tuple(range(-self.identity_statistic.ndim, 0))
        return intercepts - (curvature * origin).sum(axis=axes), linear, curvature

    def complete_information(self, mean_precision, effective_degrees_of_freedom):
        """Diagonal of R^-1 behind the intercepts: tau on y, c/power on the quadratic ones, (D - K,)."""
        return np.concatenate(
            [
                np.repeat(mean_precision, self.n_features),
                np.repeat(effective_degrees_of_freedom / self.power, self.n_quadratic),
            ]
        )

    def values(self, constant, linear, curvature):
        """a + b.y + B.s(y) in one component, for many functions.

        Parameters
        ----------
        constant : (d,)
        linear : (d, P)
        curvature : (d, ...)

        Returns
        -------
        callable, whitened rows (P, n) -> (d, n)
        """
        polynomials = np.hstack([constant[:, None], linear, self.entry_coefficients(curvature)])
        quadratic = 1 + self.n_features

        def values(rows):
            monomials = np.empty((polynomials.shape[1], rows.shape[1]))
            monomials[0] = 1.0
            monomials[1:quadratic] = rows
            self.write_entries(rows, monomials[quadratic:])
            return polynomials @ monomials

        return values

    # What coefficients say of the parameters: weights depend on the intercepts alone, means on the linear
    # part, precisions and covariances on the quadratic one.

    def mean_response(self, linear, covariance_cholesky):
        """d mu = W^-1 b: (..., K, P) -> (..., K, P)."""
        return self.transformed(covariance_cholesky, linear)

    def own_precision_response(self, quadratic):
        """d Lambda in its own frame, -a/power B: (..., S, Q) -> (..., S, ...)."""
        return -self._feature_norm / self.power * self.unflattened(quadratic)

    def precision_response(self, quadratic, whiteners):
        """d Lambda = -a/power W' B W: (..., S, Q) -> (..., S, ...)."""
        return self.congruence(self.transposed(whiteners), self.own_precision_response(quadratic))

    def covariance_response(self, quadratic, covariance_cholesky):
        """d Lambda^-1 = a/power W^-1 B W^-T: (..., S, Q) -> (..., S, ...)."""
        scale = self._feature_norm / self.power
        return scale * self.congruence(covariance_cholesky, self.unflattened(quadratic))
