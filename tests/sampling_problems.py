"""What the tests of this folder share: samplers of fits, and the posterior in scipy's words."""

import functools
import itertools

import numpy as np
from catalogue import (
    MODELS,
    MOST_MODELS,
    dense,
    mixture,
    model_id,
    overlapping,
    posterior_of,
    rows_of,
    type_of,
    uncertainty_of,
)
from scipy import stats
from scipy.special import gammaln, logsumexp

from sklearn_lrvb.sampling.sampler import PosteriorSampler

PROPER = [model for model in MOST_MODELS if model["prior"] != "flat"]
NORMAL = [model for model in PROPER if "noise" not in model and "tails" not in model]
THETA = ("log_weights", "means", "precisions")

__all__ = [
    "MODELS",
    "NORMAL",
    "PROPER",
    "THETA",
    "Problem",
    "labels_and_probabilities",
    "log_density",
    "log_evidence",
    "mean_of_the_mixture",
    "model_id",
    "problem",
    "squared_distances",
    "weights_of_rows",
]


def weights_of_rows(n_rows):
    """Sample weights between 0.3 and 2."""
    return np.random.default_rng(0).uniform(0.3, 2.0, n_rows)


def log_density(X, mean, scale, noise, nu=None):
    """log density of rows in a component, normal or Student's t, by scipy: (..., P) -> (...).

    The known noise, reg_covar times the trace of the precision of what is seen, is added to the squared
    distances.
    """
    if nu is None:
        return stats.multivariate_normal.logpdf(X, mean, scale) - 0.5 * noise
    squares = squared_distances(X, mean, scale)
    of_noise = np.log1p(noise / (nu + squares))
    return stats.multivariate_t.logpdf(X, mean, scale, nu) - 0.5 * (nu + len(mean)) * of_noise


def squared_distances(X, mean, scale):
    """(x - mean)' scale^-1 (x - mean) of rows, (..., P) -> (...)."""
    gaps = X - mean
    return (gaps * np.linalg.solve(scale, gaps.T).T).sum(axis=-1)


class Problem:
    """A fit, its rows and its sampler."""

    def __init__(self, model, n_components, X, sample_weight=None):
        self.model, self.n_components, self.X, self.sample_weight = model, n_components, X, sample_weight
        self.mixture = mixture(model, n_components).fit(X, sample_weight=sample_weight)
        self.sampler = PosteriorSampler(uncertainty_of(self.mixture))
        self.rows = rows_of(self.mixture, X, sample_weight)

    def responses(self, n_draws, seed=0):
        """Responses of draws of the copula, (n, n_responses)."""
        copula = self.sampler.copula
        normals = np.random.RandomState(seed).standard_normal((n_draws, copula.n_normals))
        return copula.responses(normals)

    def log_joint(self, draws):
        """log p(X, theta) of draws by scipy, as a density of the logits of sticks, mu and Lambda."""
        prior = posterior_of(self.mixture).prior
        parameters = self.sampler.parameters(draws)
        values = [
            self._log_joint_of_one(prior, *own)
            for own in zip(
                draws.log_stick,
                draws.log_rest,
                parameters.log_weights,
                parameters.means,
                parameters.precisions,
                draws.log_tails,
                strict=True,
            )
        ]
        return np.array(values)

    def _log_joint_of_one(self, prior, log_stick, log_rest, log_weights, means, precisions, log_tails):
        tails = self.model.get("tails", "normal")
        known = None if tails == "normal" else tails
        nu = np.broadcast_to(np.exp(log_tails) if len(log_tails) else known, len(means))
        matrices = dense(self.model, precisions, self.n_components)
        noise = self.model["reg_covar"]
        terms = [
            log_weight + log_density(self.X, mean, np.linalg.inv(matrix), noise * np.trace(matrix), own_nu)
            for log_weight, mean, matrix, own_nu in zip(
                log_weights[: len(means)], means, matrices, nu, strict=True
            )
        ]
        if prior.noise_component is not None:
            terms.append(np.full(len(self.X), log_weights[-1] + prior.noise_component.log_density))
        by_row = logsumexp(terms, axis=0)
        total = by_row.sum() if self.sample_weight is None else self.sample_weight @ by_row
        stick, rest = prior.weights.sticks(np.zeros(prior.structure.n_labels))
        total += (log_tails + stats.expon.logpdf(np.exp(log_tails), scale=10.0)).sum()
        total += (log_stick + log_rest).sum()  # The derivatives of v in its logit are v (1 - v).
        total += stats.beta.logpdf(np.exp(log_stick), stick, rest).sum() if len(stick) else 0.0
        if prior.flat:
            return total
        m0, b0 = self.mixture.mean_prior_, self.mixture.mean_precision_prior_
        for mean, matrix in zip(means, matrices, strict=True):
            total += stats.multivariate_normal.logpdf(mean, m0, np.linalg.inv(b0 * matrix))
        C0 = np.asarray(self.mixture.covariance_prior_)
        total += self._log_density_of_wisharts(precisions, self.mixture.degrees_of_freedom_prior_, C0)
        if prior.learned is not None:
            gaps = means - m0
            squares = np.einsum("kp,kpq,kq->", gaps, matrices, gaps)
            total += self._log_ratio_of_hyperparameters(prior.learned, means.size, squares, precisions)
        return total

    def _log_density_of_wisharts(self, precisions, nu, scale):
        """The log density of matrices or numbers under a Wishart distribution, given its inverse scale."""
        if not type_of(self.model).is_matrix:
            return stats.gamma.logpdf(precisions, 0.5 * nu, scale=2.0 / scale).sum()
        n_features = self.X.shape[1]
        matrices = np.moveaxis(precisions.reshape(-1, n_features, n_features), 0, -1)
        return stats.wishart.logpdf(matrices, nu, np.linalg.inv(scale)).sum()

    def _log_ratio_of_hyperparameters(self, learned, n_means, squares, precisions):
        """log p(b0, C0) - log p(b0, C0 | mu, Lambda): the difference is the same at any b0 and C0."""
        total = 0.0
        if learned.shape:
            before = stats.gamma(learned.shape, scale=1.0 / learned.rate)
            after = stats.gamma(learned.shape + 0.5 * n_means, scale=1.0 / (learned.rate + 0.5 * squares))
            b0 = self.mixture.mean_precision_prior_
            total += before.logpdf(b0) - after.logpdf(b0)
        if learned.freedom:
            is_matrix, nu = type_of(self.model).is_matrix, self.mixture.degrees_of_freedom_prior_
            C0, g = np.asarray(self.mixture.covariance_prior_), learned.freedom
            by_group = precisions.reshape(-1, *C0.shape)
            inverse = np.linalg.inv(learned.covariance) if is_matrix else 1.0 / learned.covariance
            before, own = g / nu * inverse, g + len(by_group) * nu
            total += self._log_density_of_wisharts(C0, g, before)
            total -= self._log_density_of_wisharts(C0, own, before + by_group.sum(axis=0))
        return total


@functools.cache
def _problem(items, n_components, n_rows, weighted):
    weights = weights_of_rows(n_rows) if weighted else None
    return Problem(dict(items), n_components, overlapping(n_rows), weights)


def problem(model, n_components=2, n_rows=100, weighted=False):
    """A problem of `overlapping` rows, shared between tests."""
    return _problem(tuple(model.items()), n_components, n_rows, weighted)


def log_evidence(estimator, X):
    """log p(X) of a mixture in one dimension, by the sum over all assignments."""
    return logsumexp(_assignments(estimator, X)[0])


def mean_of_the_mixture(estimator, X):
    """Exact posterior mean of sum_k pi_k mu_k, by the same sum; weights need not sum to one."""
    log_densities, means = _assignments(estimator, X)
    return np.exp(log_densities - logsumexp(log_densities)) @ means


def labels_and_probabilities(estimator, X):
    """All assignments of the rows of one dimension, (L^N, N), and their posterior probabilities, (L^N,)."""
    log_densities = _assignments(estimator, X)[0]
    labels = itertools.product(range(posterior_of(estimator).n_labels), repeat=len(X))
    return np.array(list(labels)), np.exp(log_densities - logsumexp(log_densities))


def _assignments(estimator, X):
    """log p(X, labels) and E(sum_k pi_k mu_k given labels) of all labels, (L^N,) each."""
    posterior = posterior_of(estimator)
    learned, nu0 = posterior.prior.learned, estimator.degrees_of_freedom_prior_
    labels = np.array(list(itertools.product(range(posterior.n_labels), repeat=len(X))))
    b0, C0 = estimator.mean_precision_prior_, float(np.ravel(estimator.covariance_prior_)[0])
    if learned is None:
        return _assignments_given(estimator, X, labels, b0, C0)
    of_b0, of_C0 = [(b0, 0.0)], [(C0, 0.0)]
    if learned.shape:
        of_b0 = _quadrature(stats.gamma(learned.shape, scale=1.0 / learned.rate))
    if learned.freedom:
        rate = 0.5 * learned.freedom / (nu0 * float(np.ravel(learned.covariance)[0]))
        of_C0 = _quadrature(stats.gamma(0.5 * learned.freedom, scale=1.0 / rate))
    total, weighted = -np.inf, 0.0
    for (b0, log_weight), (C0, own) in itertools.product(of_b0, of_C0):
        log_density, means = _assignments_given(estimator, X, labels, b0, C0)
        log_density = log_density + log_weight + own
        added = np.logaddexp(total, log_density)
        weighted = weighted * np.exp(total - added) + means * np.exp(log_density - added)
        total = added
    return total, weighted


def _quadrature(distribution, n_nodes=50, tail=1e-9):
    """Nodes and log weights of the trapezoidal rule in the logarithm of a variable: list of pairs."""
    # A factor of the variable's root or more goes to zero with it.
    logs, step = np.linspace(*np.log(distribution.ppf([tail, 1.0 - tail])), n_nodes, retstep=True)
    nodes = np.exp(logs)
    return list(zip(nodes, distribution.logpdf(nodes) + logs + np.log(step), strict=True))


def _assignments_given(estimator, X, labels, b0, c0):
    """The same given b0 and C0, of labels (L^N, N)."""
    posterior = posterior_of(estimator)
    weights, nu0 = posterior.prior.weights, estimator.degrees_of_freedom_prior_
    m0, noise = estimator.mean_prior_[0], posterior.prior.reg_covar

    def of_precision(n_rows, sum_of_squares):
        """log of the integral over one precision, without the factors of the means."""
        return (
            gammaln(0.5 * (nu0 + n_rows))
            - gammaln(0.5 * nu0)
            + 0.5 * nu0 * np.log(0.5 * c0)
            - 0.5 * (nu0 + n_rows) * np.log(0.5 * (c0 + sum_of_squares))
        )

    is_in = labels[:, None] == np.arange(posterior.n_labels)[:, None]
    label_counts, is_in = is_in.sum(axis=2), is_in[:, : posterior.n_components]
    counts = label_counts[:, : posterior.n_components]
    means = (b0 * m0 + is_in @ X[:, 0]) / (b0 + counts)
    squares = np.where(is_in, np.square(X[:, 0] - means[:, :, None]), 0.0).sum(axis=2)
    squares += b0 * (m0 - means) ** 2 + noise * counts
    n_held = counts.sum(axis=1)
    log_density = weights.log_evidence(label_counts)
    log_density += 0.5 * np.log(b0 / (b0 + counts)).sum(axis=1) - 0.5 * n_held * np.log(2 * np.pi)
    if posterior.noise_component is not None:
        log_density += label_counts[:, -1] * posterior.noise_component.log_density
    if posterior.structure.shares_precision:
        log_density += of_precision(n_held, squares.sum(axis=1))
    else:
        log_density += of_precision(counts, squares).sum(axis=1)
    stick, rest = weights.sticks(label_counts)
    shares = np.exp(weights.log_weights(np.log(stick / (stick + rest)), np.log(rest / (stick + rest))))
    return log_density, (shares[:, : means.shape[1]] * means).sum(axis=1)
