"""The mixture of every covariance type as factors and terms, fitted by the general mean-field layer.

The factors are those of the paper, q(mu) q(Lambda) q(pi) q(z). Lower bound and linear response follow from
the terms; no formula of the mixture's own is used. The covariance types differ in one linear map alone, from
the values of the factors that the precisions are made of to the matrices Lambda_k.

*Attributes of the mixture* that are read, whether of a fitted one or of a stand-in: ``covariance_type``,
``n_components``, ``prior``, ``weight_concentration_prior_type`` and ``reg_covar``; ``predict_proba`` and
``precisions_``, at which coordinate ascent starts; and under a proper prior
``weight_concentration_prior_``, ``mean_precision_prior_``, ``mean_prior_``, ``degrees_of_freedom_prior_`` and
``covariance_prior_``. Where a learned prior has ``mean_precision_prior`` or ``covariance_prior`` None, b0 or
C0 has a factor of its own.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from covariance_types import TYPES
from learned_prior import Hyperprior
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
    return mixture.prior != "flat" and mixture.weight_concentration_prior_type == "dirichlet_process"


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
    if mixture.prior != "flat":
        hyperprior = Hyperprior.of(mixture, X)
        factors |= hyperparameter_factors(hyperprior, precisions)
        terms += prior_of_means(mixture, precisions, hyperprior)
        terms += prior_of_precisions(mixture, precisions, hyperprior)
    return MeanFieldModel(factors, terms)


def hyperparameter_factors(hyperprior, precisions):
    """A factor of b0, and one of the part of C0 that belongs to every factor of the precisions: dict."""
    factors = {"b0": Factor(Gamma())} if hyperprior.learns_mean_precision else {}
    if hyperprior.learns_covariance:
        factors |= {f"C0_{one.name}": Factor(one.factor.family) for one in precisions}
    return factors


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


def prior_of_means(mixture, precisions, hyperprior):
    """log p(mu | Lambda, b0), around m0 with precision b0 Lambda, and log p(b0) where it is learned."""
    m0, every = mixture.mean_prior_, np.ones(mixture.n_components)
    n_means = mixture.n_components * len(m0)
    terms = [Term(-0.5 * n_means * LOG_2_PI)]
    b0, factor, comma = mixture.mean_precision_prior_, [], ""
    if hyperprior.learns_mean_precision:
        b0, factor, comma = 1.0, ["b0.value"], ","
        terms += [Term(0.5 * n_means, "b0.log")]
        natural = Gamma().natural_parameters(hyperprior.shape, hyperprior.rate)
        terms += log_density("b0", Factor(Gamma()), natural)
    else:
        terms += [Term(0.5 * n_means * np.log(b0))]
    for precision in precisions:
        embedding, value = b0 * precision.embedding, precision.value
        copy, entry = precision.axes
        cross, square = np.tensordot(m0, embedding, 1), np.tensordot(np.outer(m0, m0), embedding, 2)
        squares = np.multiply.outer(every, square)
        own = f"{copy}{entry}{comma}"
        terms += [
            Term(0.5 * precision.power * every, precision.log, subscripts=f"k,{copy}"),
            Term(cross, "mu.value", value, *factor, subscripts=f"r{entry},kr,{own}"),
            Term(-0.5 * embedding, "mu.outer", value, *factor, subscripts=f"qr{entry},kqr,{own}"),
            Term(-0.5 * squares, value, *factor, subscripts=f"k{entry},{own}"),
        ]
    return terms


def prior_of_precisions(mixture, precisions, hyperprior):
    """log p(Lambda | C0), and that of C0 where it is learned."""
    covariance_type, nu0 = TYPES[mixture.covariance_type], mixture.degrees_of_freedom_prior_
    terms = []
    if not hyperprior.learns_covariance:
        for one, scale in zip(precisions, by_factor(covariance_type, mixture.covariance_prior_), strict=True):
            terms += log_density(one.name, one.factor, one.natural_parameters(nu0, scale))
        return terms
    for one, scale in zip(precisions, by_factor(covariance_type, hyperprior.inverse_scale), strict=True):
        own, (copy, entry) = f"C0_{one.name}", one.axes
        identity = np.eye(*scale.shape[:1]) if entry else 1.0
        # The density where C0 is the identity, with the trace of C0 Lambda in place of that of Lambda.
        terms += log_density(one.name, one.factor, one.natural_parameters(nu0, identity))
        terms += [
            Term(0.5 * identity, one.value, subscripts=f"{entry},{copy}{entry}"),
            Term(-0.5, one.value, f"{own}.value", subscripts=f",{copy}{entry},{entry}"),
            Term(0.5 * nu0 * (one.factor.copies or 1), one.log.replace(one.name, own)),
        ]
        terms += log_density(
            own, Factor(one.factor.family), one.natural_parameters(hyperprior.freedom, scale)
        )
    return terms


def log_density(name, factor, natural):
    """log density of all copies of a factor, each with these natural parameters: list of Term."""
    family, copy = factor.family, "k" * len(factor.lead)
    value, logarithm = family.statistics
    linear, logarithmic = (Factor(family).entries(natural, statistic) for statistic in (value, logarithm))
    entry = "st"[: linear.ndim]
    return [
        Term(linear, f"{name}.{value}", subscripts=f"{entry},{copy}{entry}"),
        Term(logarithmic, f"{name}.{logarithm}"),
        Term(-(factor.copies or 1) * family.log_partition(natural)),
    ]


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
