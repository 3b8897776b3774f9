"""Refits of the mixture with a noise label and Student's t components, written from the model alone.

The log joint density of labels, scales u and parameters is maximized over q by plain coordinate ascent, with
dense matrices and nothing of the library. A tilt t * theta_i of the log joint moves the posterior means by
t times column i of the linear response covariance: differences of refits give it, whatever q is made of.
So are the derivatives in the weights and the positions of the rows, and the leave-one-out scores.

    z_n ~ pi,   pi_0 ~ Beta,   pi_k = (1 - pi_0) times Dirichlet weights or sticks
    x | z = 0 has a constant density
    u | z = k ~ Gamma(nu/2, nu/2),   x | z = k, u ~ N(mu_k, (u Lambda_k)^-1)
    q(z_n, u_n) q(pi) q(mu, Lambda), or q(mu) q(Lambda); nu is the value that maximizes the bound
    q(b0) q(C0) under a learned prior: gamma and Wishart

The vector of means holds log pi, mu, the unique entries of Lambda, as `posterior_names_` has them, then
log pi_0 if there is a noise label, and log nu (one or K numbers) where it is fitted.

    reference = RobustReference.like(estimator, X, nu=4.0, fit_nu="shared")
    fit = reference.fit(responsibilities)
    covariance = reference.covariance(fit)
"""

from dataclasses import dataclass, replace

import numpy as np
from covariance_types import TYPES, CovarianceType
from learned_prior import Hyperprior
from scipy.optimize import brentq
from scipy.special import digamma, gammaln, logsumexp, multigammaln, poch


@dataclass(frozen=True)
class Sums:
    """What the M-step depends on: sums over rows of weight times responsibility, and E b0 and E C0."""

    noise: np.ndarray  # (1,), of the noise label
    counts: np.ndarray  # (K,)
    scales: np.ndarray  # (K,), times E u
    logs: np.ndarray  # (K,), times E log u
    first: np.ndarray  # (K, P), times E u x
    second: np.ndarray  # (K, P, P), times E u x x'
    mean_precision: np.ndarray  # (), E b0
    covariance_prior: np.ndarray  # E C0, in the shape of one precision

    def flat(self):
        return np.concatenate([np.ravel(part) for part in vars(self).values()])

    def from_flat(self, values):
        sizes = [part.size for part in vars(self).values()]
        parts = np.split(values, np.cumsum(sizes)[:-1])
        return Sums(*(a.reshape(b.shape) for a, b in zip(parts, vars(self).values(), strict=True)))


@dataclass(frozen=True)
class Factors:
    """q of the parameters: a Dirichlet distribution in each row of `weights`, a beta variable of the noise,
    mu ~ N(means, (mean_precision Lambda)^-1) or N(means, spread), Lambda ~ Wishart(freedom, scale^-1), nu.

    `slopes` are tilts of the means given Lambda, to first order: (K, P).
    """

    weights: np.ndarray
    noise: np.ndarray
    means: np.ndarray
    mean_precision: np.ndarray
    spread: np.ndarray
    freedom: np.ndarray
    scale: np.ndarray
    nu: np.ndarray
    slopes: np.ndarray
    mean_precision_prior: np.ndarray
    covariance_prior: np.ndarray


@dataclass(frozen=True)
class Fit:
    """A fixed point of the iterations, and what the next refit near it needs."""

    sums: Sums
    factors: Factors
    newton: np.ndarray  # inverse of 1 - d iteration / d sums


@dataclass(frozen=True)
class RobustReference:
    """The model and its rows. `noise` is a log density or None; `nu` one number, K of them, or None (normal).

    `fit_nu` is None, "shared" or "each". Under a flat prior `mean_precision` is 0. Hyperparameters that the
    `hyperprior` learns are where iterations start.
    """

    X: np.ndarray
    sample_weight: np.ndarray
    n_components: int
    covariance_type: CovarianceType
    independent: bool
    sticks: bool
    concentration: float
    mean_prior: np.ndarray
    mean_precision: np.ndarray
    freedom: float
    covariance_prior: np.ndarray
    hyperprior: Hyperprior
    reg_covar: float = 0.0
    noise: float | None = None
    noise_prior: tuple = (1.0, 1.0)
    nu: object = None
    fit_nu: str | None = None
    nu_prior: tuple = (1.0, 0.1)

    @classmethod
    def like(cls, estimator, X, sample_weight=None, covariance=None, **options):
        """The model of a fitted estimator, with `noise`, `nu` and the other options as given.

        A learned prior expects a `covariance`, by default that of the rows.
        """
        X = np.asarray(X, dtype=float)
        return cls(
            X=X,
            hyperprior=Hyperprior.of(estimator, X, covariance),
            sample_weight=np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float),
            n_components=estimator.n_components,
            covariance_type=TYPES[estimator.covariance_type],
            independent=estimator.factorization == "independent",
            sticks=estimator.prior != "flat"
            and estimator.weight_concentration_prior_type == "dirichlet_process",
            concentration=float(estimator.weight_concentration_prior_),
            mean_prior=np.asarray(estimator.mean_prior_),
            mean_precision=np.asarray(estimator.mean_precision_prior_),
            freedom=float(estimator.degrees_of_freedom_prior_),
            covariance_prior=np.asarray(estimator.covariance_prior_),
            reg_covar=estimator.reg_covar,
            **options,
        )

    # The shape of the precisions: a statistic of symmetric matrices (K, P, P), by precision group.

    @property
    def n_features(self):
        return self.X.shape[1]

    @property
    def power(self):
        return self.covariance_type.power(self.n_features)

    @property
    def block_size(self):
        return self.covariance_type.block_size(self.n_features)

    @property
    def n_blocks(self):
        return self.covariance_type.n_blocks(self.n_features)

    def by_group(self, values):
        return self.covariance_type.pooled(values, keepdims=True)

    def matrices(self, parameters):
        """Every component's matrix: (S, ...) -> (K, P, P)."""
        return self.covariance_type.dense(parameters, self.n_components, self.n_features)

    def log_determinant(self, parameters):
        """Sum of the log determinants of a group's Wishart blocks: (S, ...) -> (S,)."""
        if self.covariance_type.is_matrix:
            return np.linalg.slogdet(parameters)[1]
        return np.log(parameters).reshape(len(parameters), -1).sum(axis=1)

    # Expectations under q of the parameters.

    def expected_precisions(self, q):
        return self.covariance_type.over(q.freedom) * self.covariance_type.inverse(q.scale)

    def expected_log_determinants(self, q):
        """E log|Lambda| of every component, (K,)."""
        of_group = self.power * self.expected_log_determinant(q.freedom, q.scale)
        return np.broadcast_to(of_group, (self.n_components,))

    def expected_log_determinant(self, freedom, scale):
        """E of the log determinant of a group's Wishart blocks, (S,)."""
        places = 0.5 * (freedom[:, None] - np.arange(self.block_size))
        size = self.n_blocks * self.block_size
        of_blocks = self.n_blocks * digamma(places).sum(axis=1) + size * np.log(2.0)
        return of_blocks - self.log_determinant(scale)

    def expected_log_weights(self, q):
        """E log pi (K,), and E log pi_0."""
        logs = digamma(q.weights) - digamma(q.weights.sum(axis=1, keepdims=True))
        earlier = np.concatenate([[0.0], np.cumsum(logs[:-1, 1])])
        logs = logs[:, 0] + earlier if self.sticks else logs[0]
        if self.noise is None:
            return logs, -np.inf
        of_noise, of_rest = digamma(q.noise) - digamma(q.noise.sum())
        return logs + of_rest, of_noise

    def expected_squares(self, q, points):
        """E (x - mu)' Lambda (x - mu) of every row and component, (n, K)."""
        Lambda = self.matrices(self.expected_precisions(q))
        away = points[:, None] - q.means
        squares = np.einsum("nkp,kpq,nkq->nk", away, Lambda, away)
        squares -= 2.0 * np.einsum("nkp,kp->nk", away, q.slopes)
        if self.independent:
            return squares + np.einsum("kpq,kpq->k", Lambda, q.spread)
        return squares + self.n_features / q.mean_precision

    def means(self, q):
        """Posterior means of all parameters, in one vector."""
        log_weights, log_noise = self.expected_log_weights(q)
        means = q.means
        if not self.independent:
            # Where E Lambda^-1 is infinite, the library reports (E Lambda)^-1 in its place.
            beyond = q.freedom - self.block_size - 1
            beyond = np.where(beyond > 0, beyond, q.freedom)
            expected_inverse = self.matrices(q.scale / self.covariance_type.over(beyond))
            means = means + np.einsum("kpq,kq->kp", expected_inverse, q.slopes)
        precisions = self.covariance_type.entries(self.expected_precisions(q))
        log_nu = {None: [], "shared": np.log(q.nu[:1]), "each": np.log(q.nu)}[self.fit_nu]
        of_noise = [] if self.noise is None else [log_noise]
        return np.concatenate([log_weights, means.ravel(), precisions.ravel(), of_noise, log_nu])

    def split_tilt(self, tilt):
        """Tilts of log pi, mu and Lambda (as symmetric matrices), of log pi_0 and log nu, from one vector."""
        K, P = self.n_components, self.n_features
        n_precisions = 1 if self.covariance_type.is_shared else K
        sizes = [K, K * P, self.n_entries, int(self.noise is not None)]
        of_weights, of_means, entries, of_noise, of_nu = np.split(tilt, np.cumsum(sizes))
        if self.covariance_type.is_matrix:
            entries = entries.reshape(n_precisions, -1)
            of_precisions = np.zeros((n_precisions, P, P))
            rows, columns = np.triu_indices(P)
            of_precisions[:, rows, columns] += 0.5 * entries
            of_precisions[:, columns, rows] += 0.5 * entries
        else:
            of_precisions = entries.reshape(n_precisions, *[P] * self.covariance_type.n_axes)
        return of_weights, of_means.reshape(K, P), of_precisions, of_noise, of_nu

    # Coordinate ascent.

    def log_densities(self, q, points):
        """E log p(x, u, z = k) with u integrated out by its optimal factor, and that factor's two parameters.

        The noise label comes last. (n, K + 1), (n, K), (n, K)
        """
        P = self.n_features
        log_weights, log_noise = self.expected_log_weights(q)
        Lambda = self.matrices(self.expected_precisions(q))
        distance = self.expected_squares(q, points) + self.reg_covar * np.einsum("kpp->k", Lambda)
        found = log_weights + 0.5 * self.expected_log_determinants(q) - 0.5 * P * np.log(2.0 * np.pi)
        if self.nu is None:
            shape = rate = np.full(distance.shape, np.inf)
            found = found - 0.5 * distance
        else:
            # log p(x, u | k) = constant + (shape - 1) log u - rate u
            shape, rate = np.broadcast_to(0.5 * (q.nu + P), distance.shape), 0.5 * (q.nu + distance)
            # The integral over u, written so that a large nu loses no digits.
            found = found + np.log(poch(0.5 * q.nu, 0.5 * P)) - 0.5 * P * np.log(0.5 * q.nu)
            found = found - shape * np.log1p(distance / q.nu)
        of_noise = np.full((len(points), 1), -np.inf if self.noise is None else log_noise + self.noise)
        return np.hstack([found, of_noise]), shape, rate

    def e_step(self, q):
        """Responsibilities, the noise last, and the gamma factors of u: (n, K + 1), (n, K), (n, K)."""
        log_densities, shape, rate = self.log_densities(q, self.X)
        return np.exp(log_densities - logsumexp(log_densities, axis=1, keepdims=True)), shape, rate

    def sums(self, responsibilities, shape, rate, q=None):
        """Sums over the rows, and hyperparameters that follow from given factors of the parameters."""
        counted = self.sample_weight[:, None] * responsibilities
        noise, counted = counted[:, -1:].sum(axis=0), counted[:, :-1]
        expected, logs = np.ones_like(counted), np.zeros_like(counted)
        if self.nu is not None:
            expected, logs = shape / rate, digamma(shape) - np.log(rate)
        scaled = counted * expected
        return Sums(
            noise,
            counted.sum(axis=0),
            scaled.sum(axis=0),
            (counted * logs).sum(axis=0),
            scaled.T @ self.X,
            np.einsum("nk,np,nq->kpq", scaled, self.X, self.X),
            *self.hyperparameters(q),
        )

    def hyperparameters(self, q):
        """E b0 and E C0."""
        b0, C0, learned = self.mean_precision, self.covariance_prior, self.hyperprior
        if q is not None and learned.learns_mean_precision:
            squares = self.expected_squares(q, self.mean_prior[None]).sum()
            b0 = (learned.shape + 0.5 * q.means.size) / (learned.rate + 0.5 * squares)
        if q is not None and learned.learns_covariance:
            inverse_scale = learned.inverse_scale + self.expected_precisions(q).sum(axis=0)
            freedom = learned.freedom + len(q.freedom) * self.freedom
            C0 = freedom * self.covariance_type.inverse(inverse_scale)
        return np.asarray(b0), np.asarray(C0)

    def m_step(self, sums, tilt=None):
        """The best factors, given the sums and a tilt of the log joint density (d,)."""
        zero = np.zeros(self.size)
        of_weights, slopes, of_precisions, of_noise, of_nu = self.split_tilt(zero if tilt is None else tilt)
        counts = sums.counts + of_weights
        later = np.concatenate([np.cumsum(counts[::-1])[::-1][1:], [0.0]])
        weights = (self.concentration + counts)[None]
        if self.sticks:
            weights = np.column_stack([1.0 + counts, self.concentration + later])
        noise = np.array(self.noise_prior, dtype=float)
        if self.noise is not None:
            noise += [sums.noise[0] + of_noise[0], counts.sum()]
        freedom = self.freedom + self.power * self.by_group(sums.counts)
        if self.independent:
            freedom = freedom + self.power * self.by_group(np.ones(self.n_components))
        b0, C0 = sums.mean_precision, sums.covariance_prior
        mean_precision = b0 + sums.scales
        nu = self.best_nu(sums, of_nu)
        centres = (sums.first + b0 * self.mean_prior) / mean_precision[:, None]
        spread = np.zeros_like(sums.second)
        scale = self.best_scale(sums, centres, spread, of_precisions)
        q = Factors(weights, noise, centres, mean_precision, spread, freedom, scale, nu, 0.0 * slopes, b0, C0)
        if not self.independent:
            # Given Lambda the mean of mu moves by (tau Lambda)^-1 t. Lambda moves in the second order of t.
            return replace(q, slopes=slopes / mean_precision[:, None])
        for _ in range(200):
            Lambda = self.matrices(self.expected_precisions(q))
            spread = np.linalg.inv(mean_precision[:, None, None] * Lambda)
            means = centres + np.einsum("kpq,kq->kp", spread, slopes)
            scale, before = self.best_scale(sums, means, spread, of_precisions), q.scale
            q = replace(q, means=means, spread=spread, scale=scale)
            if np.abs(scale - before).max() <= 1e-15 * np.abs(scale).max():
                break
        return q

    def best_scale(self, sums, means, spread, tilt):
        """Inverse scale of the Wishart factors: twice the slope of -log p in Lambda."""
        away = means - self.mean_prior
        cross = np.einsum("kp,kq->kpq", sums.first, means)
        scatter = sums.second - cross - cross.swapaxes(1, 2)
        scatter += sums.scales[:, None, None] * (np.einsum("kp,kq->kpq", means, means) + spread)
        scatter += (self.reg_covar * sums.scales)[:, None, None] * np.eye(self.n_features)
        scatter += sums.mean_precision * (np.einsum("kp,kq->kpq", away, away) + spread)
        return self.by_group(self.covariance_type.statistic(scatter)) + sums.covariance_prior - 2.0 * tilt

    def best_nu(self, sums, tilt):
        """Degrees of freedom at which the bound, the log prior of log nu and the tilt are largest, (K,)."""
        if self.nu is None:
            return np.full(self.n_components, np.inf)
        if self.fit_nu is None:
            return np.broadcast_to(np.asarray(self.nu, dtype=float), (self.n_components,))
        counts, excess, (a, b) = sums.counts, sums.logs - sums.scales, self.nu_prior
        if self.fit_nu == "shared":
            counts, excess = counts.sum(keepdims=True), excess.sum(keepdims=True)

        def slope(log_nu, count, excess, tilt):
            half = 0.5 * np.exp(log_nu)
            return half * (count * (np.log(half) + 1.0 - digamma(half)) + excess) + a - 2 * b * half + tilt

        found = [
            brentq(slope, -7.0, 12.0, args=args, xtol=1e-15, rtol=1e-15)
            for args in zip(counts, excess, tilt, strict=True)
        ]
        return np.broadcast_to(np.exp(found), (self.n_components,))

    @property
    def n_entries(self):
        """Number of unique entries of the precisions."""
        shape = self.covariance_type.shape(self.n_components, self.n_features)
        return self.covariance_type.entries(np.zeros(shape)).size

    @property
    def size(self):
        """Number of means."""
        K, P = self.n_components, self.n_features
        of_nu = {None: 0, "shared": 1, "each": K}[self.fit_nu]
        return K + K * P + self.n_entries + int(self.noise is not None) + of_nu

    def iterated(self, sums, tilt=None):
        q = self.m_step(sums, tilt)
        return self.sums(*self.e_step(q), q)

    def fit(self, responsibilities):
        """Iterations from given responsibilities (n, K), (n, K + 1) with noise last, to a fixed point."""
        r = np.asarray(responsibilities, dtype=float)
        if r.shape[1] == self.n_components:
            r = np.hstack([r, np.zeros((len(r), 1))])
        ones = np.ones((len(r), self.n_components))
        return self.ascended(self.sums(r, ones, ones))

    def ascended(self, sums):
        """The fixed point to which iterations from these sums lead, however far it is."""
        for _ in range(20_000):
            before, sums = sums, self.iterated(sums)
            if np.allclose(sums.flat(), before.flat(), rtol=1e-7, atol=1e-7):
                break
        return self.refit(self.at(sums))

    def at(self, sums):
        """The sums as the start of a refit: with the derivative of an iteration, by differences."""
        place = sums.flat()
        columns = []
        for i, number in enumerate(place):
            step = 1e-5 * max(1.0, abs(number)) * np.eye(len(place))[i]
            ends = [self.iterated(sums.from_flat(place + sign * step)).flat() for sign in (1.0, -1.0)]
            columns.append((ends[0] - ends[1]) / (2.0 * step[i]))
        newton = np.linalg.inv(np.eye(len(place)) - np.array(columns).T)
        return Fit(sums, self.m_step(sums), newton)

    def refit(self, fit, tilt=None):
        """The fixed point of the iterations near a fit: Newton steps with that fit's derivative."""
        sums, smallest = fit.sums, np.inf
        for _ in range(100):
            change = self.iterated(sums, tilt).flat() - sums.flat()
            size = np.abs(change / (1.0 + np.abs(sums.flat()))).max()
            if size < 1e-13 or (size < 1e-11 and size >= 0.5 * smallest):
                return replace(fit, sums=sums, factors=self.m_step(sums, tilt))
            smallest = min(size, smallest)
            sums = sums.from_flat(sums.flat() + fit.newton @ change)
        raise RuntimeError(f"iterations still change the sums by {size:.1e}")

    # Derivatives by refits.

    def derivative(self, means_after, step):
        """d means/dt by central differences of fourth order; ``means_after(t)`` refits."""
        near = means_after(step) - means_after(-step)
        far = means_after(2.0 * step) - means_after(-2.0 * step)
        return (8.0 * near - far) / (12.0 * step)

    def covariance(self, fit, tilted=None):
        """Columns of the linear response covariance, (d, number of columns), of all means by default."""
        columns = []
        for i in range(self.size) if tilted is None else tilted:
            unit = np.eye(self.size)[i]

            def means_after(t, unit=unit):
                return self.means(self.refit(fit, t * unit).factors)

            variance = (means_after(1e-6) - means_after(-1e-6))[i] / 2e-6
            columns.append(self.derivative(means_after, 3e-4 / np.sqrt(max(variance, 1e-6))))
        return np.array(columns).T

    def with_weight(self, row, change):
        weight = self.sample_weight.copy()
        weight[row] += change
        return replace(self, sample_weight=weight)

    def weight_influence(self, fit, row):
        """d means / d weight of a row, (d,)."""
        return self.derivative(lambda t: self.means(self.with_weight(row, t).refit(fit).factors), 1e-3)

    def place_influence(self, fit, row):
        """d means / d x of a row, (d, P)."""
        columns = []
        for unit in np.eye(self.n_features):

            def means_after(t, unit=unit):
                X = self.X.copy()
                X[row] += t * unit
                return self.means(replace(self, X=X).refit(fit).factors)

            columns.append(self.derivative(means_after, 1e-3))
        return np.array(columns).T

    def scores(self, q, points=None):
        """log sum_k exp of the expected log densities of every row, (n,)."""
        return logsumexp(self.log_densities(q, self.X if points is None else points)[0], axis=1)

    def left_out_scores(self, fit, rows):
        """The scores of some rows after a refit without all of them, (n,)."""
        without = self.with_weight(rows, -self.sample_weight[rows])
        return without.scores(without.ascended(fit.sums).factors, self.X[rows])

    # The lower bound.

    def lower_bound(self, q):
        """E log p(x, z, u, parameters) - E log q, at the optimal q(z, u).

        Flat priors count as 1, that of the weights in log pi; that of nu is the density of log nu.
        """
        return self.sample_weight @ self.scores(q) - self.divergence(q) + self.log_prior_of_nu(q)

    def divergence(self, q):
        """KL(q || prior) of all parameters but nu."""
        K, P, b0 = self.n_components, self.n_features, q.mean_precision_prior
        if self.sticks:
            prior = np.tile([1.0, self.concentration], (K, 1))
        else:
            prior = np.full((1, K), self.concentration)
        found = dirichlet_divergence(q.weights, prior).sum()
        if self.noise is not None:
            found += dirichlet_divergence(q.noise[None], np.array([self.noise_prior], dtype=float))[0]
        log_det, Lambda = self.expected_log_determinants(q), self.matrices(self.expected_precisions(q))
        if self.independent:
            of_means = -0.5 * (np.linalg.slogdet(q.spread)[1] + P * np.log(2.0 * np.pi) + P)
            traces = np.einsum("kpq,kpq->k", Lambda, q.spread)
        else:
            of_means = 0.5 * (log_det + P * np.log(q.mean_precision / (2.0 * np.pi)) - P)
            traces = P / q.mean_precision
        log_det_of_group = log_det[: len(q.scale)] / self.power
        expected = self.expected_precisions(q)
        of_precisions = self.wishart_log_density(q.freedom, q.scale, log_det_of_group, expected)
        if b0 > 0:
            away = q.means - self.mean_prior
            squares = np.einsum("kp,kpq,kq->k", away, Lambda, away) + traces
            of_means -= 0.5 * (log_det + P * np.log(b0 / (2.0 * np.pi)))
            of_means += 0.5 * b0 * squares
            prior_scale = np.broadcast_to(q.covariance_prior, q.scale.shape)
            freedom = np.full(len(q.freedom), self.freedom)
            of_precisions -= self.wishart_log_density(freedom, prior_scale, log_det_of_group, expected)
        return found + of_means.sum() + of_precisions.sum() + self.divergence_of_hyperparameters(q)

    def divergence_of_hyperparameters(self, q):
        """KL of the factors of b0 and C0, and a correction of the log densities of means and precisions.

        These were taken at E b0 and E C0, whose logarithms exceed E log b0 and E log|C0|.
        """
        found, learned, n_groups = 0.0, self.hyperprior, len(q.freedom)
        if learned.learns_mean_precision:
            shape, b0 = learned.shape + 0.5 * q.means.size, q.mean_precision_prior
            excess = np.log(shape) - digamma(shape)  # log E b0 - E log b0
            found += 0.5 * q.means.size * excess
            found += gamma_log_density(shape, shape / b0, np.log(b0) - excess, b0)
            found -= gamma_log_density(learned.shape, learned.rate, np.log(b0) - excess, b0)
        if learned.learns_covariance:
            C0, freedom = q.covariance_prior[None], np.array([learned.freedom + n_groups * self.freedom])
            log_det = self.expected_log_determinant(freedom, freedom * self.covariance_type.inverse(C0))
            found += 0.5 * n_groups * self.freedom * (self.log_determinant(C0) - log_det)
            inverse_scale = freedom * self.covariance_type.inverse(C0)
            found += self.wishart_log_density(freedom, inverse_scale, log_det, C0)
            found -= self.wishart_log_density(
                np.array([learned.freedom]), learned.inverse_scale[None], log_det, C0
            )
        return np.sum(found)

    def wishart_log_density(self, freedom, scale, log_determinant, expected):
        """E of the log density of Wishart blocks with given freedom and inverse scale, (S,).

        It is given E of the log determinants, (S,), and of the blocks.
        """
        size = self.block_size
        of_blocks = gammaln if size == 1 else np.vectorize(lambda a: multigammaln(a, size))
        trace = (scale * expected).reshape(len(expected), -1).sum(axis=1)
        constant = 0.5 * freedom * (self.log_determinant(scale) - self.n_blocks * size * np.log(2.0))
        constant = constant - self.n_blocks * of_blocks(0.5 * freedom)
        return constant + 0.5 * (freedom - size - 1) * log_determinant - 0.5 * trace

    def log_prior_of_nu(self, q):
        """Log density of log nu under its gamma prior, summed over what is fitted."""
        a, b = self.nu_prior
        nu = {None: q.nu[:0], "shared": q.nu[:1], "each": q.nu}[self.fit_nu]
        return (a * np.log(b) - gammaln(a) + a * np.log(nu) - b * nu).sum()


def gamma_log_density(shape, rate, expected_log, expected):
    """E of the log density of a gamma variable."""
    return shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * expected_log - rate * expected


def dirichlet_divergence(q, prior):
    """KL divergence of Dirichlet distributions, (n,); a prior of zeros counts as 1 in log pi."""
    logs = digamma(q) - digamma(q.sum(axis=1, keepdims=True))
    found = gammaln(q.sum(axis=1)) - gammaln(q).sum(axis=1) + ((q - prior) * logs).sum(axis=1)
    if prior.any():
        found += gammaln(prior).sum(axis=1) - gammaln(prior.sum(axis=1))
    return found
