"""
===================================================================================
A Gaussian mixture of four factors and thirteen terms: does the special code agree?
===================================================================================

`LRVBGaussianMixture` has its own, specialised formulas. Here the same model is written as nothing but named
factors and the terms of its log joint density (Appendix C of the paper), and fitted by the general mean-field
layer: coordinate ascent, the lower bound and linear response follow from the terms.

What to see. Means, standard deviations and the lower bound agree in all printed digits, and no entry of the
posterior covariances differs by more than 1e-9 of the largest. Stick-breaking weights need one term more. The
factor with the most statistics, the indicators of all rows, is eliminated, so that the covariance of the
components' parameters needs no matrix of the size of the data.
"""

import numpy as np
from scipy.special import gammaln

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.exponential_families import Beta, Categorical, Dirichlet, MultivariateNormal, Wishart
from sklearn_lrvb.exponential_families.wishart import log_partition as wishart_log_partition
from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term

LOG_2_PI = np.log(2 * np.pi)


def mixture_model(X, mixture):
    """The model of a fitted mixture of full covariances and independent factors, as factors and terms."""
    n, p = X.shape
    k = mixture.n_components
    sticks = mixture.prior == "conjugate" and mixture.weight_concentration_prior_type == "dirichlet_process"
    noisy = np.einsum("np,nq->npq", X, X) + mixture.reg_covar * np.eye(p)
    factors = {
        "mu": Factor(MultivariateNormal(p), copies=k),
        "Lambda": Factor(Wishart(p), copies=k),
        "weights": Factor(Beta(), copies=k) if sticks else Dirichlet(k),
        "z": Factor(Categorical(k), copies=n),
    }
    terms = [
        Term(-0.5 * n * p * LOG_2_PI),
        Term(0.5, "z", "Lambda.log_det", subscripts=",nk,k"),
        Term(-0.5 * noisy, "z", "Lambda.value", subscripts="npq,nk,kpq"),
        Term(X, "z", "mu.value", "Lambda.value", subscripts="np,nk,kq,kpq"),
        Term(-0.5, "z", "mu.outer", "Lambda.value", subscripts=",nk,kpq,kpq"),
        Term(1.0, "z", "weights.log", subscripts=",nk,k"),
    ]
    if sticks:
        # log pi_k = log v_k + the sum over the sticks j before k of log(1 - v_j)
        terms.append(Term(np.tri(k, k=-1), "z", "weights.log_complement", subscripts="kj,nk,j"))
    return MeanFieldModel(factors, terms + weight_prior(mixture, sticks) + component_prior(mixture, p))


def weight_prior(mixture, sticks):
    """Log prior of the weights; the flat one is constant in log pi."""
    k = mixture.n_components
    if mixture.prior == "flat":
        return [Term(-1.0, "weights.log")]
    concentration = mixture.weight_concentration_prior_
    if sticks:
        return [Term(concentration - 1, "weights.log_complement"), Term(k * np.log(concentration))]
    constant = gammaln(k * concentration) - k * gammaln(concentration)
    return [Term(concentration - 1, "weights.log"), Term(constant)]


def component_prior(mixture, p):
    """Log prior of means and precisions: mu_k normal around m0 given Lambda_k, Lambda_k Wishart."""
    if mixture.prior == "flat":
        return []
    k, b0, m0 = mixture.n_components, mixture.mean_precision_prior_, mixture.mean_prior_
    C0, nu0 = mixture.covariance_prior_, mixture.degrees_of_freedom_prior_
    normal = 0.5 * p * (np.log(b0) - LOG_2_PI)
    wishart = wishart_log_partition(nu0, np.linalg.slogdet(C0)[1], p)
    return [
        Term(b0 * m0, "mu.value", "Lambda.value", subscripts="p,kq,kpq"),
        Term(-0.5 * b0, "mu.outer", "Lambda.value", subscripts=",kpq,kpq"),
        Term(-0.5 * (C0 + b0 * np.outer(m0, m0)), "Lambda.value", subscripts="pq,kpq"),
        Term(0.5 * (1 + nu0 - p - 1), "Lambda.log_det"),
        Term(k * (normal - wishart)),
    ]


def fit_from_parts(X, mixture):
    """Fit the model of a fitted mixture, started at its responsibilities, which name the components."""
    start = {"z": Categorical(mixture.n_components).natural_parameters(mixture.predict_proba(X))}
    return mixture_model(X, mixture).fit(start, tol=1e-10)


def covariance_from_parts(posterior):
    """LRVB covariance in the order of `posterior_covariance_`: log pi, means, unique precisions."""
    k, p = posterior.mean("mu.value").shape
    weights, log_weights = ["weights.log"], np.eye(k)
    if "log_complement" in posterior.factors["weights"].family.statistics:
        weights, log_weights = [*weights, "weights.log_complement"], np.hstack([np.eye(k), np.tri(k, k=-1)])
    covariance = posterior.covariance(*weights, "mu.value", "Lambda.value")
    n_weights = log_weights.shape[1]
    upper = np.flatnonzero(np.triu(np.ones((p, p))))
    rest = np.arange(n_weights, len(covariance))
    precisions = rest[k * p :].reshape(k, p * p)[:, upper].ravel()
    chosen = np.concatenate([rest[: k * p], precisions])
    J = np.zeros((k + len(chosen), len(covariance)))
    J[:k, :n_weights] = log_weights
    J[np.arange(k, len(J)), chosen] = 1.0
    return J @ covariance @ J.T


def main():
    """Fit both ways and compare."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) * 0.7 + [2.3, 1.0]])
    for weights in ("dirichlet_distribution", "dirichlet_process"):
        mixture = LRVBGaussianMixture(
            n_components=2,
            factorization="independent",
            weight_concentration_prior_type=weights,
            tol=1e-9,
            max_iter=2000,
            random_state=0,
        ).fit(X)
        posterior = fit_from_parts(X, mixture)
        covariance = covariance_from_parts(posterior)
        error = np.abs(covariance - mixture.posterior_covariance_).max() / np.abs(covariance).max()
        n_terms = len(posterior.log_joint.terms)
        print(f"{weights}: {n_terms} terms, {len(posterior.names)} statistics, {len(X)} rows")
        print(f"  lower bound {posterior.lower_bound:.8f}, of the mixture {mixture.lower_bound_:.8f}")
        for k in range(2):
            mean, sd = posterior.mean("mu.value")[k], posterior.std("mu.value")[k]
            own, own_sd = mixture.means_[k], mixture.means_std_[k]
            print(
                f"  mean[{k}] {mean[0]:.6f} +- {sd[0]:.6f}, {mean[1]:.6f} +- {sd[1]:.6f}\n"
                f"  mixture {own[0]:.6f} +- {own_sd[0]:.6f}, {own[1]:.6f} +- {own_sd[1]:.6f}"
            )
        print(f"  posterior covariances differ by {error:.0e} of the largest entry\n")


if __name__ == "__main__":
    main()
