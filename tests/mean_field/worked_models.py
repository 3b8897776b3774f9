"""Models with a known answer, as factors and terms: locations, a regression, pumps, and EM algorithms."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term
from sklearn_lrvb.mean_field.exponential_families import (
    Beta,
    Categorical,
    Gamma,
    MultivariateNormal,
    UnivariateNormal,
)

LOG_2_PI = np.log(2 * np.pi)


# The location of a multivariate normal.


def location_model(mean, precision):
    """Log density of a multivariate normal, one factor x0, x1, ... for every coordinate."""
    pull = precision @ mean
    n = len(mean)
    terms = [Term(pull[i], f"x{i}.value") for i in range(n)]
    terms += [Term(-0.5 * precision[i, i], f"x{i}.square") for i in range(n)]
    terms += [Term(-precision[i, j], f"x{i}.value", f"x{j}.value") for i in range(n) for j in range(i)]
    terms += [Term(_constant(mean, precision))]
    return MeanFieldModel({f"x{i}": UnivariateNormal() for i in range(n)}, terms)


def block_location_model(mean, precision, blocks):
    """The same density, with a multivariate normal factor for every block of coordinates."""
    pull = precision @ mean
    n = len(blocks)
    terms = [Term(pull[block], f"x{i}.value") for i, block in enumerate(blocks)]
    terms += [Term(-0.5 * precision[np.ix_(block, block)], f"x{i}.outer") for i, block in enumerate(blocks)]
    terms += [
        Term(-precision[np.ix_(blocks[i], blocks[j])], f"x{i}.value", f"x{j}.value")
        for i in range(n)
        for j in range(i)
    ]
    terms += [Term(_constant(mean, precision))]
    return MeanFieldModel({f"x{i}": MultivariateNormal(len(block)) for i, block in enumerate(blocks)}, terms)


def _constant(mean, precision):
    _, log_det = np.linalg.slogdet(precision)
    return 0.5 * log_det - 0.5 * len(mean) * np.log(2 * np.pi) - 0.5 * mean @ precision @ mean


# Linear regression with unknown noise.


@dataclass(frozen=True)
class Prior:
    """Coefficients ~ normal(0, 1/precision) each, noise precision tau ~ gamma(shape, rate)."""

    precision: float = 0.1
    shape: float = 2.0
    rate: float = 1.0


def regression_model(X, y, prior, blocks):
    """Linear regression; the coefficients of a block share a factor w0, w1, ... of q.

    One column of ones, in one block, is the model of a normal with unknown mean and precision.
    """
    n = len(y)
    names = [f"w{i}" for i in range(len(blocks))]
    terms = [
        Term(0.5 * n, "tau.log"),
        Term(-0.5 * y @ y, "tau.value"),
        Term(prior.shape - 1, "tau.log"),
        Term(-prior.rate, "tau.value"),
        Term(
            -0.5 * n * LOG_2_PI
            + 0.5 * X.shape[1] * (np.log(prior.precision) - LOG_2_PI)
            + prior.shape * np.log(prior.rate)
            - gammaln(prior.shape)
        ),
    ]
    for i, block in enumerate(blocks):
        Xi = X[:, block]
        terms += [
            Term(Xi.T @ y, f"w{i}.value", "tau.value", subscripts="p,p,"),
            Term(-0.5 * Xi.T @ Xi, f"w{i}.outer", "tau.value", subscripts="pq,pq,"),
            Term(-0.5 * prior.precision * np.eye(len(block)), f"w{i}.outer"),
        ]
        terms += [
            Term(-Xi.T @ X[:, blocks[j]], f"w{i}.value", f"w{j}.value", "tau.value", subscripts="pq,p,q,")
            for j in range(i)
        ]
    factors = {name: MultivariateNormal(len(block)) for name, block in zip(names, blocks, strict=True)}
    return MeanFieldModel({**factors, "tau": Gamma()}, terms)


@dataclass(frozen=True)
class ExactPosterior:
    """Exact moments by quadrature over log tau."""

    mean: np.ndarray
    covariance: np.ndarray
    tau_mean: float
    tau_sd: float
    log_evidence: float


def exact_regression(X, y, prior):
    """Given tau the coefficients are normal; tau itself is integrated on a fine grid."""
    n, p = X.shape
    log_tau = np.linspace(-12, 8, 20_001)
    tau = np.exp(log_tau)
    eigenvalues, U = np.linalg.eigh(X.T @ X)
    along = U.T @ X.T @ y
    precision = prior.precision + tau[:, None] * eigenvalues
    means = tau[:, None] * along / precision
    log_density = (
        0.5 * n * (log_tau - LOG_2_PI)
        + 0.5 * p * np.log(prior.precision)
        - 0.5 * np.log(precision).sum(axis=1)
        - 0.5 * tau * (y @ y)
        + 0.5 * (tau[:, None] * along * means).sum(axis=1)
        + prior.shape * np.log(prior.rate)
        - gammaln(prior.shape)
        + prior.shape * log_tau  # with the Jacobian d tau = tau d log tau
        - prior.rate * tau
    )
    log_evidence = logsumexp(log_density) + np.log(log_tau[1] - log_tau[0])
    weight = np.exp(log_density - logsumexp(log_density))
    mean = weight @ means
    spread = means - mean
    covariance = np.diag(weight @ (1 / precision)) + (weight[:, None] * spread).T @ spread
    tau_mean = weight @ tau
    return ExactPosterior(
        U @ mean, U @ covariance @ U.T, tau_mean, np.sqrt(weight @ (tau - tau_mean) ** 2), log_evidence
    )


# Failures of ten pumps (Gaver and O'Muircheartaigh, 1987; Gelfand and Smith, 1990).

FAILURES = np.array([5, 1, 5, 14, 3, 19, 1, 1, 4, 22])
HOURS = np.array([94.32, 15.72, 62.88, 125.76, 5.24, 31.44, 1.048, 1.048, 2.096, 10.48])  # thousands
A, G, D = 1.802, 0.1, 1.0


def pumps_model():
    """Ten rates and their common hyper-rate."""
    n = len(FAILURES)
    return MeanFieldModel(
        factors={"rates": Factor(Gamma(), copies=n), "beta": Gamma()},
        terms=[
            Term(FAILURES, "rates.log"),  # s_i ~ Poisson(lambda_i t_i)
            Term(-HOURS, "rates.value"),
            Term(A - 1, "rates.log"),  # lambda_i ~ Gamma(a, beta)
            Term(-1.0, "rates.value", "beta.value"),
            Term(A * n, "beta.log"),
            Term(G - 1, "beta.log"),  # beta ~ Gamma(g, d)
            Term(-D, "beta.value"),
        ],
    )


def exact_pumps():
    """Exact means and standard deviations of the ten rates and of beta, by quadrature over log beta."""
    log_beta = np.linspace(-10, 6, 20_001)[:, None]
    beta, n = np.exp(log_beta), len(FAILURES)
    shape, rate = FAILURES + A, HOURS + beta
    log_density = (G + n * A) * log_beta[:, 0] - D * beta[:, 0] - (shape * np.log(rate)).sum(axis=1)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    conditional_mean = np.hstack([shape / rate, beta])
    conditional_variance = np.hstack([shape / rate**2, np.zeros_like(beta)])
    mean = weight @ conditional_mean
    return mean, np.sqrt(weight @ (conditional_variance + (conditional_mean - mean) ** 2))


# Supplemented EM (Meng and Rubin, 1991).

LINKAGE_COUNTS = np.array([125, 18, 20, 34])


def supplemented_covariance(em_map, optimum, complete_information, step=1e-4):
    """V_SEM = I_oc^-1 (I - DM)^-1; row i of DM is the map's derivative in parameter i (Meng and Rubin)."""
    n = len(optimum)
    DM = np.array([(em_map(optimum + e) - em_map(optimum - e)) / (2 * step) for e in step * np.eye(n)])
    return np.linalg.solve(complete_information, np.linalg.inv(np.eye(n) - DM))


def iterate(em_map, start, n_iter=2000):
    """The fixed point of an EM map."""
    for _ in range(n_iter):
        start = em_map(start)
    return start


# Jointly normal parameters and missing data.


def normal_em_map(mean, precision, n_parameters):
    """theta -> argmax over theta at the conditional mean of the missing data."""
    own, missing = slice(n_parameters), slice(n_parameters, None)

    def em_map(theta):
        deviation = -np.linalg.solve(
            precision[missing, missing], precision[missing, own] @ (theta - mean[own])
        )
        return mean[own] - np.linalg.solve(precision[own, own], precision[own, missing] @ deviation)

    return em_map


def normal_model(mean, precision, n_parameters):
    """Two factors: theta, and the missing data."""
    own, missing = slice(n_parameters), slice(n_parameters, None)
    pull = precision @ mean
    return MeanFieldModel(
        {"missing": MultivariateNormal(len(mean) - n_parameters), "theta": MultivariateNormal(n_parameters)},
        [
            Term(pull[own], "theta.value"),
            Term(pull[missing], "missing.value"),
            Term(-0.5 * precision[own, own], "theta.outer"),
            Term(-0.5 * precision[missing, missing], "missing.outer"),
            Term(-precision[own, missing], "theta.value", "missing.value"),
        ],
    )


def normal_case():
    """V_SEM, LRVB covariance and true covariance of theta."""
    rng = np.random.default_rng(0)
    n_parameters, n = 2, 5
    root = rng.normal(size=(n, 2 * n))
    precision, mean = root @ root.T / n, rng.normal(size=n)
    em_map = normal_em_map(mean, precision, n_parameters)
    optimum = iterate(em_map, np.zeros(n_parameters))
    complete = precision[:n_parameters, :n_parameters]
    sem = supplemented_covariance(em_map, optimum, complete, step=1e-2)
    lrvb = normal_model(mean, precision, n_parameters).fit().covariance("theta.value")
    return sem, lrvb, np.linalg.inv(precision)[:n_parameters, :n_parameters]


# Genetic linkage: cells (1/2 + p/4, (1 - p)/4, (1 - p)/4, p/4); the first is the sum of two unobserved cells.


def linkage_em_map(counts):
    """log-odds of p -> log-odds after an E-step and an M-step."""

    def em_map(log_odds):
        p = 1 / (1 + np.exp(-log_odds))
        second_part = counts[0] * p / (2 + p)
        return np.log(second_part + counts[3]) - np.log(counts[1] + counts[2])

    return em_map


def linkage_model(counts):
    """p, its prior flat in the log-odds, and to which part of the first cell every observation belongs."""
    return MeanFieldModel(
        {"part": Factor(Categorical(2), copies=int(counts[0])), "p": Beta()},
        [
            Term(np.log([1 / 2, 1 / 4]), "part", subscripts="k,nk"),
            Term(np.array([0.0, 1.0]), "part", "p.log", subscripts="k,nk,"),
            Term(counts[3] - 1, "p.log"),
            Term(counts[1] + counts[2] - 1, "p.log_complement"),
        ],
    )


def linkage_case(multiple):
    """EM's estimate of the log-odds, its SEM standard deviation and that of LRVB."""
    counts = multiple * LINKAGE_COUNTS
    em_map = linkage_em_map(counts)
    optimum = iterate(em_map, np.zeros(1))
    p = 1 / (1 + np.exp(-optimum[0]))
    n_complete = counts[0] * p / (2 + p) + counts[1:].sum()
    sem = supplemented_covariance(em_map, optimum, np.array([[n_complete * p * (1 - p)]]))
    contrast = np.array([1.0, -1.0])
    lrvb = contrast @ linkage_model(counts).fit().covariance("p") @ contrast
    return optimum[0], np.sqrt(sem[0, 0]), np.sqrt(lrvb)
