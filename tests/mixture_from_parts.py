"""The mixture of every covariance type as factors and terms, fitted by the general mean-field layer.

The factors are those of the paper, q(mu) q(Lambda) q(pi) q(z). Lower bound and linear response follow from
the terms; no formula of the mixture's own is used. The covariance types differ in one linear map alone, from
the values of the factors that the precisions are made of to the matrices Lambda_k.

*Attributes of the mixture* that are read, whether of a fitted one or of a stand-in: ``covariance_type``,
``n_components``, ``prior``, ``weight_concentration_prior_type`` and ``reg_covar``; ``predict_proba`` and
``precisions_``, at which coordinate ascent starts; and under a conjugate prior
``weight_concentration_prior_``, ``mean_precision_prior_``, ``mean_prior_``, ``degrees_of_freedom_prior_`` and
``covariance_prior_``.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from covariance_types import TYPES
from scipy.special import gammaln

from sklearn_lrvb.mean_field import Factor, MeanFieldModel, MeanFieldPosterior, Term
from sklearn_lrvb.mean_field.exponential_families import (
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    Wishart,
)

LOG_2_PI = np.log(2.0 * np.pi)


@dataclass(frozen=True)
class PrecisionFactor:
    """A factor that the precisions are made of, with a copy for every component or one for all of them.

    Attributes
    ----------
    name : str
    factor : Factor
    embedding : ndarray of shape (P, P, ...)
        Lambda_k is the sum over the factors of embedding times value, (...).
    power : int
        |Lambda_k| is the product over the factors of |value|^power.
    """

    name: str
    factor: Factor
    embedding: np.ndarray
    power: int

    @property
    def value(self):
        """Name of the statistic that is linear in Lambda."""
        return f"{self.name}.value"

    @property
    def log(self):
        """Name of the statistic log|value|."""
        return f"{self.name}.{list(self.factor.family.statistics)[1]}"

    @property
    def axes(self):
        """Subscripts of the copies, and of one copy's value; q and r are those of Lambda."""
        return "k" * len(self.factor.lead), "st"[: self.embedding.ndim - 2]

    @property
    def unique(self):
        """Positions of one copy's unique entries in its flat value."""
        n_rows = self.factor.family.n_features
        return np.flatnonzero(np.triu(np.ones((n_rows, n_rows))))

    def natural_parameters(self, degrees_of_freedom, inverse_scale):
        """Those of Wishart(nu, A^-1), or of gamma(nu/2, A/2)."""
        family = self.factor.family
        if isinstance(family, Gamma):
            return family.natural_parameters(0.5 * degrees_of_freedom, 0.5 * inverse_scale)
        return family.natural_parameters(degrees_of_freedom, inverse_scale)

    def around(self, value):
        """Natural parameters of a barely proper member with this mean."""
        degrees_of_freedom = self.factor.family.n_features
        inverse = 1.0 / value if isinstance(self.factor.family, Gamma) else np.linalg.inv(value)
        return self.natural_parameters(degrees_of_freedom, degrees_of_freedom * inverse)


def precision_factors(covariance_type, n_components, n_features):
    """The factors that the precisions of a covariance type are made of: list of PrecisionFactor."""
    identity = np.eye(n_features)
    n_copies = None if covariance_type.is_shared else n_components
    if covariance_type.is_matrix:
        every_entry = np.einsum("qs,rt->qrst", identity, identity)
        return [PrecisionFactor("Lambda", Factor(Wishart(n_features), n_copies), every_entry, 1)]
    gammas, power = Factor(Gamma(), n_copies), covariance_type.power(n_features)
    # One row of the identity each, or all of them in one.
    embeddings = np.split(identity, covariance_type.n_blocks(n_features))
    return [
        PrecisionFactor(f"lambda{i}", gammas, np.diag(rows.sum(axis=0)), power)
        for i, rows in enumerate(embeddings)
    ]


def by_factor(covariance_type, array):
    """The part of every factor in an array that has the shape of the precisions."""
    return np.moveaxis(array, -1, 0) if covariance_type.n_axes == 1 else [np.asarray(array)]


def has_sticks(mixture):
    """Whether the weights are those of a Dirichlet process."""
    return mixture.prior == "conjugate" and mixture.weight_concentration_prior_type == "dirichlet_process"


def log_weight_map(mixture):
    """log pi = map @ weight statistics; with sticks log v_k + the sum over j < k of log(1 - v_j)."""
    identity = np.eye(mixture.n_components)
    return np.hstack([identity, np.tri(mixture.n_components, k=-1)]) if has_sticks(mixture) else identity


def mixture_model(mixture, X):
    """The model: MeanFieldModel."""
    n_samples, n_features = X.shape
    n_components = mixture.n_components
    precisions = precision_factors(TYPES[mixture.covariance_type], n_components, n_features)
    factors = {
        "mu": Factor(MultivariateNormal(n_features), n_components),
        **{precision.name: precision.factor for precision in precisions},
        "weights": Factor(Beta(), n_components) if has_sticks(mixture) else Dirichlet(n_components),
        "z": Factor(Categorical(n_components), n_samples),
    }
    terms = gaussian_terms(X, mixture.reg_covar, precisions) + weight_terms(mixture)
    if mixture.prior == "conjugate":
        terms += component_prior(mixture, precisions)
    return MeanFieldModel(factors, terms)


def gaussian_terms(X, reg_covar, precisions):
    """log p(x | z, mu, Lambda), with reg_covar as known noise on x."""
    noisy = np.einsum("nq,nr->nqr", X, X) + reg_covar * np.eye(X.shape[1])
    terms = [Term(-0.5 * X.size * LOG_2_PI)]
    for precision in precisions:
        embedding, value, log = precision.embedding, precision.value, precision.log
        copy, entry = precision.axes
        square, cross = np.tensordot(noisy, embedding, 2), np.tensordot(X, embedding, 1)
        terms += [
            Term(0.5 * precision.power, "z", log, subscripts=f",nk,{copy}"),
            Term(-0.5 * square, "z", value, subscripts=f"n{entry},nk,{copy}{entry}"),
            Term(cross, "z", "mu.value", value, subscripts=f"nr{entry},nk,kr,{copy}{entry}"),
            Term(-0.5 * embedding, "z", "mu.outer", value, subscripts=f"qr{entry},nk,kqr,{copy}{entry}"),
        ]
    return terms


def weight_terms(mixture):
    """log p(z | pi) and the log prior of the weights; the flat one is constant in log pi."""
    n_components = mixture.n_components
    terms = [Term(1.0, "z", "weights.log", subscripts=",nk,k")]
    if mixture.prior == "flat":
        return [*terms, Term(-1.0, "weights.log")]
    concentration = mixture.weight_concentration_prior_
    if has_sticks(mixture):
        return [
            *terms,
            Term(np.tri(n_components, k=-1), "z", "weights.log_complement", subscripts="kj,nk,j"),
            Term(concentration - 1.0, "weights.log_complement"),
            Term(n_components * np.log(concentration)),
        ]
    constant = gammaln(n_components * concentration) - n_components * gammaln(concentration)
    return [*terms, Term(concentration - 1.0, "weights.log"), Term(constant)]


def component_prior(mixture, precisions):
    """Log prior of means and precisions: mu_k normal around m0 with precision b0 Lambda_k, and Lambda."""
    b0, m0, nu0 = mixture.mean_precision_prior_, mixture.mean_prior_, mixture.degrees_of_freedom_prior_
    every = np.ones(mixture.n_components)
    scales = by_factor(TYPES[mixture.covariance_type], mixture.covariance_prior_)
    terms = [Term(0.5 * mixture.n_components * len(m0) * (np.log(b0) - LOG_2_PI))]
    for precision, inverse_scale in zip(precisions, scales, strict=True):
        embedding, value, log = b0 * precision.embedding, precision.value, precision.log
        copy, entry = precision.axes
        cross, square = np.tensordot(m0, embedding, 1), np.tensordot(np.outer(m0, m0), embedding, 2)
        family, n_copies = precision.factor.family, precision.factor.copies or 1
        natural = precision.natural_parameters(nu0, inverse_scale)
        linear, logarithmic = (Factor(family).entries(natural, name) for name in family.statistics)
        terms += [
            Term(0.5 * precision.power * every, log, subscripts=f"k,{copy}"),
            Term(cross, "mu.value", value, subscripts=f"r{entry},kr,{copy}{entry}"),
            Term(-0.5 * embedding, "mu.outer", value, subscripts=f"qr{entry},kqr,{copy}{entry}"),
            Term(-0.5 * np.multiply.outer(every, square), value, subscripts=f"k{entry},{copy}{entry}"),
            Term(linear, value, subscripts=f"{entry},{copy}{entry}"),
            Term(logarithmic, log),
            Term(-n_copies * family.log_partition(natural)),
        ]
    return terms


@dataclass(frozen=True)
class MixtureFromParts:
    """The fitted mixture, in the order of theta: log pi; mu; the unique precision entries.

    Attributes
    ----------
    posterior : MeanFieldPosterior
    statistics : tuple of str, those that theta is linear in
    jacobian : (D, d), theta = jacobian @ statistics
    """

    posterior: MeanFieldPosterior
    statistics: tuple
    jacobian: np.ndarray

    @property
    def lower_bound(self):
        """ELBO with every constant; a flat prior's density counts as 1."""
        return self.posterior.lower_bound

    @property
    def mean(self):
        """E_q theta, (D,)."""
        means = [self.posterior.mean(statistic).ravel() for statistic in self.statistics]
        return self.jacobian @ np.concatenate(means)

    @property
    def covariance(self):
        """LRVB covariance of theta, (D, D)."""
        return self.jacobian @ self.posterior.covariance(*self.statistics) @ self.jacobian.T


def fit_from_parts(mixture, X, sample_weight=None):
    """Fit the model of a mixture, started at its responsibilities and precisions: MixtureFromParts.

    Parameters
    ----------
    mixture : LRVBGaussianMixture, or an object with the attributes that the module lists
    X : (N, P)
    sample_weight : int array (N,), how often every row stands there; default once
    """
    if sample_weight is not None:
        X = np.repeat(X, sample_weight, axis=0)
    precisions = precision_factors(TYPES[mixture.covariance_type], mixture.n_components, X.shape[1])
    values = by_factor(TYPES[mixture.covariance_type], mixture.precisions_)
    start = {
        "z": Categorical(mixture.n_components).natural_parameters(mixture.predict_proba(X)),
        **{one.name: one.around(value) for one, value in zip(precisions, values, strict=True)},
    }
    posterior = mixture_model(mixture, X).fit(start, tol=1e-10, max_iter=20_000)
    return MixtureFromParts(posterior, *_parameters(mixture, X.shape[1]))


def _parameters(mixture, n_features):
    """The statistics that theta is linear in, and the matrix of the map."""
    n_components = mixture.n_components
    precisions = precision_factors(TYPES[mixture.covariance_type], n_components, n_features)
    weights = ["weights.log", "weights.log_complement"] if has_sticks(mixture) else ["weights.log"]
    statistics = (*weights, "mu.value", *(precision.value for precision in precisions))
    log_weights = log_weight_map(mixture)
    n_weights, n_means = log_weights.shape[1], n_components * n_features
    stop = n_weights + n_means
    unique = []
    for precision in precisions:
        shape = precision.factor.statistic_shape("value")
        start, stop = stop, stop + prod(shape)
        flat = np.arange(start, stop).reshape(precision.factor.copies or 1, -1)
        unique.append(flat[:, precision.unique])
    # Entries are in the order of the components, also where those of one belong to several factors.
    precision_entries = np.concatenate(unique, axis=1).ravel()
    chosen = np.concatenate([np.arange(n_weights, n_weights + n_means), precision_entries])
    jacobian = np.zeros((n_components + len(chosen), stop))
    jacobian[:n_components, :n_weights] = log_weights
    jacobian[np.arange(n_components, len(jacobian)), chosen] = 1.0
    return statistics, jacobian
