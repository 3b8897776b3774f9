"""The exact log evidence of a mixture for small samples, for every covariance type.

Given the assignments z the evidence has a closed form (normal-Wishart and normal-gamma), and the assignments
of a dozen rows can be enumerated: log p(X) = logsumexp over z of log p(z) + log p(X | z). With Dirichlet
weights the numbers of the components mean nothing, so that partitions of the rows are enough: nine rows have
21,147 of them. Rows that are noise have no component.

Precisions are Wishart blocks (d, d), as `covariance_types.py` has them.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np
from catalogue import mixture
from covariance_types import TYPES
from scipy.special import betaln, gammaln, logsumexp, multigammaln, softmax
from scipy.stats import gamma


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of a mixture whose weights are Dirichlet or sticks."""

    covariance_type: str
    n_features: int
    sticks: bool = False
    concentration: float = 1.5
    mean_precision: float = 0.4
    degrees_of_freedom: float = 3.2
    noise: float | None = None  # Its log density.
    scale: float = 1.0  # Of C0.

    @property
    def mean(self):
        return np.linspace(0.5, -0.4, self.n_features)

    @property
    def covariance(self):
        """C0 in the shape that the covariance type takes."""
        full = 0.3 + np.diag(np.linspace(1.0, 1.6, self.n_features))
        return self.scale * TYPES[self.covariance_type].prior(full)

    @property
    def arguments(self):
        """Of the estimator: dict."""
        return {
            "prior": "fixed",
            "covariance_type": self.covariance_type,
            "reg_covar": 0.0,
            "weight_concentration_prior_type": (
                "dirichlet_process" if self.sticks else "dirichlet_distribution"
            ),
            "weight_concentration_prior": self.concentration,
            "mean_precision_prior": self.mean_precision,
            "mean_prior": self.mean,
            "degrees_of_freedom_prior": self.degrees_of_freedom,
            "covariance_prior": self.covariance,
            "noise": self.noise,
        }

    def fit(self, X, n_components, factorization="joint"):
        """The fitted mixture."""
        return mixture({**self.arguments, "factorization": factorization}, n_components).fit(X)

    def blocks(self, n_components):
        """C0 of every precision, (B, d, d)."""
        covariance_type = TYPES[self.covariance_type]
        size = covariance_type.block_size(self.n_features)
        shape = covariance_type.shape(n_components, self.n_features)
        return np.broadcast_to(self.covariance, shape).reshape(-1, size, size)


@dataclass(frozen=True)
class LearnedPrior(Prior):
    """Hyperparameters b0 ~ Gamma(P/2, P/2) and C0 ~ Gamma(1/2, 1/(2 nu0 S)), which are learned.

    C0 is one number, and S its value for the covariance of the rows. The expectations of b0 and of C0/nu0 are
    ``mean_precision`` and ``scale`` times those.
    """

    concentration: float = 1.0
    mean_precision: float = 1.0
    degrees_of_freedom: float = 5.0
    typical: float = 1.0  # S

    @classmethod
    def of(cls, covariance_type, X):
        typical = TYPES[covariance_type].prior(np.atleast_2d(np.cov(X.T)))
        return cls(covariance_type, X.shape[1], typical=float(np.squeeze(typical)))

    @property
    def covariance(self):
        return np.reshape(self.scale, TYPES[self.covariance_type].prior(np.eye(self.n_features)).shape)

    @property
    def arguments(self):
        names = "mean_precision_prior", "covariance_prior"
        return super().arguments | dict.fromkeys(names) | {"prior": "learned"}

    def grid(self, n_nodes=24):
        """Priors of given hyperparameters on a grid, and log weights of an integral over it: (G,), list."""
        log_b, log_c = np.linspace(-10.0, 3.0, n_nodes), np.linspace(-5.0, 9.0, n_nodes)
        half, own = 0.5 * self.n_features, 2.0 * self.degrees_of_freedom * self.typical * self.scale
        of_b, of_c = gamma(half, scale=self.mean_precision / half), gamma(0.5, scale=own)
        log_weights = (of_b.logpdf(np.exp(log_b)) + log_b)[:, None] + of_c.logpdf(np.exp(log_c)) + log_c
        log_weights += np.log((log_b[1] - log_b[0]) * (log_c[1] - log_c[0]))
        nodes = itertools.product(np.exp(log_b), np.exp(log_c))
        return log_weights.ravel(), [replace(self, mean_precision=b, scale=c) for b, c in nodes]


def clusters(n_samples, n_features, distance=5.0):
    """Two clusters of equal size, the second ``distance`` standard deviations away."""
    X = np.random.default_rng(5).normal(size=(n_samples, n_features))
    X[n_samples // 2 :] += distance / np.sqrt(n_features)
    return X - X.mean(axis=0)


# The evidence in closed form.


def log_wishart_integral(degrees_of_freedom, inverse_scale):
    """log of the integral of |L|^((nu - d - 1)/2) exp(-tr(A L)/2) over L: (...), (..., d, d) -> (...)."""
    size, half = inverse_scale.shape[-1], 0.5 * np.asarray(degrees_of_freedom)
    log_det = np.linalg.slogdet(0.5 * inverse_scale)[1]
    return multigammaln(half, size) - half * log_det


def log_evidence_given(assignments, X, prior):
    """log p(X | z) of indicators z (S, N, K): (S,)."""
    n_features = X.shape[1]
    b0, m0 = prior.mean_precision, prior.mean
    counts = assignments.sum(axis=1)
    n_held, tau = counts.sum(axis=1), counts + b0
    means = (np.einsum("snk,np->skp", assignments, X) + b0 * m0) / tau[:, :, None]
    # sum (x - m)(x - m)' + b0 (m0 - m)(m0 - m)', as second moments about m0
    moments = np.einsum("snk,np,nq->skpq", assignments, X - m0, X - m0, optimize=True)
    shift = means - m0
    scatter = moments - tau[:, :, None, None] * shift[:, :, :, None] * shift[:, :, None, :]
    C0 = prior.blocks(assignments.shape[2])
    own_counts, own_scatter = TYPES[prior.covariance_type].blocks_of(counts, scatter)
    posterior = log_wishart_integral(prior.degrees_of_freedom + own_counts, C0 + own_scatter)
    return (
        -0.5 * n_held * n_features * np.log(2.0 * np.pi)
        + (len(X) - n_held) * (prior.noise or 0.0)
        + 0.5 * n_features * np.log(b0 / tau).sum(axis=1)
        + (posterior - log_wishart_integral(prior.degrees_of_freedom, C0)).sum(axis=1)
    )


def log_assignment_probability(assignments, prior):
    """log p(z): (S, N, K) -> (S,)."""
    counts, gamma = assignments.sum(axis=1), prior.concentration
    if prior.noise is not None:  # One label more.
        counts = np.column_stack([counts, assignments.shape[1] - counts.sum(axis=1)])
    n_labels = counts.shape[1]
    if prior.sticks:
        later = counts.sum(axis=1, keepdims=True) - np.cumsum(counts, axis=1)
        return (betaln(1.0 + counts, gamma + later) - betaln(1.0, gamma)).sum(axis=1)
    total = n_labels * gamma
    return (gammaln(gamma + counts) - gammaln(gamma)).sum(axis=1) + (
        gammaln(total) - gammaln(total + counts.sum(axis=1))
    )


def log_evidence(X, n_components, prior):
    """log p(X), by enumeration of all assignments."""
    labels = np.array(list(itertools.product(range(n_components), repeat=len(X))))
    assignments = (labels[:, :, None] == np.arange(n_components)).astype(float)
    return logsumexp(
        log_evidence_given(assignments, X, prior) + log_assignment_probability(assignments, prior)
    )


def partitions(n_samples, most):
    """Labels of all partitions into at most ``most`` sets, numbered as they appear: (S, n_samples)."""
    labels = np.zeros((1, 1), dtype=int)
    for _ in range(n_samples - 1):
        n_sets = labels.max(axis=1) + 1
        labels = np.concatenate(
            [
                np.column_stack([labels[n_sets >= label], np.full(np.sum(n_sets >= label), label)])
                for label in range(most)
            ]
        )
    return labels


def partitions_with_noise(n_samples, most):
    """Labels of all partitions of some rows into at most ``most`` sets, -1 for the others: (S, n_samples)."""
    parts = []
    for n_held in range(1, n_samples + 1):
        own = partitions(n_held, most)
        for held in itertools.combinations(range(n_samples), n_held):
            labels = np.full((len(own), n_samples), -1)
            labels[:, held] = own
            parts.append(labels)
    return np.concatenate(parts)


def _log_joint(X, n_components, prior):
    """log p(X, partition) of all partitions, and the numbers of occupied components: (S,), (S,).

    With noise, those in which all rows are noise are left out.
    """
    all_partitions = partitions if prior.noise is None else partitions_with_noise
    labels = all_partitions(len(X), n_components)
    assignments = (labels[:, :, None] == np.arange(n_components)).astype(float)
    occupied = labels.max(axis=1) + 1
    log_labellings = gammaln(n_components + 1) - gammaln(n_components - occupied + 1)
    log_probability = log_assignment_probability(assignments, prior) + log_labellings
    return log_evidence_given(assignments, X, prior) + log_probability, occupied


def log_evidence_by_number(X, prior, n_components):
    """log p(X | K) for K = 1, ..., n_components, with Dirichlet weights: (n_components,)."""
    return np.array([logsumexp(_log_joint(X, K, prior)[0]) for K in range(1, n_components + 1)])


def number_probabilities(log_evidences):
    """P(K | X) for K = 1, 2, ..., which have the prior 1/K!: (n_components,)."""
    return softmax(log_evidences - np.cumsum(np.log(np.arange(1, len(log_evidences) + 1))))


def learned_log_joints(X, prior, most):
    """Labels of all partitions (S, N), and log p(X, partition | K) for K = 1, ..., most: (most, S).

    The prior is a `LearnedPrior` of components with their own precisions.
    """
    log_weights, priors = prior.grid()
    is_in = np.arange(2 ** len(X))[:, None] >> np.arange(len(X)) & 1  # Of all sets of rows.
    of_sets = np.array([log_evidence_given(is_in[:, :, None], X, given) for given in priors])
    labels = partitions(len(X), most)
    assignments, occupied = labels[:, :, None] == np.arange(most), labels.max(axis=1) + 1
    sets = np.einsum("snk,n->sk", assignments, 2 ** np.arange(len(X)))
    of_rows = logsumexp(of_sets[:, sets].sum(axis=2) + log_weights[:, None], axis=0)
    log_joints = np.full((most, len(labels)), -np.inf)
    for K in range(1, most + 1):
        few = occupied <= K
        log_labellings = gammaln(K + 1) - gammaln(K - occupied[few] + 1)
        of_labels = log_assignment_probability(assignments[few, :, :K], prior)
        log_joints[K - 1, few] = of_rows[few] + of_labels + log_labellings
    return labels, log_joints


def learned_log_evidence_by_number(X, prior, n_components):
    """log p(X | K) with learned hyperparameters for K = 1, ..., n_components: (n_components,)."""
    return logsumexp(learned_log_joints(X, prior, n_components)[1], axis=1)


def log_evidence_by_occupied(X, prior, n_components):
    """log p(X, all t components hold rows | K = t) for t = 1, ..., n_components: (n_components,).

    These are the log E_t of p(X | K) = sum over t <= K of E_t W(K, t)/W(t, t), with Dirichlet weights and
    W(K, t) = K!/(K - t)! Gamma(K alpha)/Gamma(K alpha + N).
    """
    evidences = []
    for n_occupied in range(1, n_components + 1):
        log_joint, occupied = _log_joint(X, n_occupied, prior)
        evidences.append(logsumexp(log_joint[occupied == n_occupied]))
    return np.array(evidences)
