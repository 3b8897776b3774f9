"""The same mixture of latent classes, written as a model of `mean_field`: every density is a line."""

import functools
from dataclasses import dataclass

import numpy as np
from latent_class.catalogue import PROBLEMS, RATES, codes_of, fitted, kinds_of, weights_of
from scipy.special import digamma, gammaln, polygamma

from sklearn_lrvb.mean_field import (
    Factor,
    MeanFieldModel,
    Term,
    categorical_prior,
    dirichlet_prior,
    gamma_prior,
)
from sklearn_lrvb.mean_field.exponential_families import Categorical, Dirichlet, ExponentialFamily, Gamma
from sklearn_lrvb.mean_field.exponential_families.family import refuse


@dataclass(frozen=True)
class NormalGamma(ExponentialFamily):
    """Mean mu and precision tau of a normal: tau ~ Gamma(a, rate b), mu given tau ~ N(m, 1/(kappa tau)).

    Natural parameters (a - 1/2, -b - kappa m^2/2, kappa m, -kappa/2).
    """

    @property
    def statistics(self):
        """``log`` log tau, ``precision`` tau, ``product`` tau mu and ``square`` tau mu^2."""
        return {"log": (), "precision": (), "product": (), "square": ()}

    @staticmethod
    def natural_parameters(kappa, mean, shape, rate):
        """Scalars -> (4,)."""
        return np.array([shape - 0.5, -rate - 0.5 * kappa * mean**2, kappa * mean, -0.5 * kappa])

    @staticmethod
    def parameters(natural):
        """kappa, m, a and b: (..., 4) -> (...) each."""
        of_log, of_precision, of_product, of_square = np.moveaxis(np.asarray(natural, dtype=float), -1, 0)
        kappa = -2.0 * of_square
        mean = of_product / kappa
        return kappa, mean, of_log + 0.5, -of_precision - 0.5 * kappa * mean**2

    def log_partition(self, natural):
        """log of the integral over mu and tau."""
        kappa, _, shape, rate = self.parameters(natural)
        return gammaln(shape) - shape * np.log(rate) + 0.5 * np.log(2 * np.pi / kappa)

    def mean_parameters(self, natural):
        """E of the statistics."""
        kappa, mean, shape, rate = self.parameters(natural)
        precision = shape / rate
        log_precision = digamma(shape) - np.log(rate)
        return np.stack(
            [log_precision, precision, precision * mean, precision * mean**2 + 1 / kappa], axis=-1
        )

    def covariance(self, natural):
        """By u = sqrt(tau) (mu - m): tau mu = tau m + sqrt(tau) u, and u is normal and independent of tau."""
        kappa, mean, shape, rate = self.parameters(natural)
        zero, one = np.zeros_like(mean), np.ones_like(mean)
        # Of (log tau, tau, sqrt(tau) u, u^2), and the statistics in these.
        own = [
            [polygamma(1, shape), 1 / rate, zero, zero],
            [1 / rate, shape / rate**2, zero, zero],
            [zero, zero, shape / rate / kappa, zero],
            [zero, zero, zero, 2 / kappa**2],
        ]
        linear = [
            [one, zero, zero, zero],
            [zero, one, zero, zero],
            [zero, mean, one, zero],
            [zero, mean**2, 2 * mean, one],
        ]
        own, linear = (np.moveaxis(np.array(matrix), (0, 1), (-2, -1)) for matrix in (own, linear))
        covariance = linear @ own @ np.swapaxes(linear, -1, -2)
        return 0.5 * (covariance + np.swapaxes(covariance, -1, -2))

    def check_domain(self, natural):
        """kappa, a and b are positive."""
        kappa, _, shape, rate = self.parameters(natural)
        for name, value, statistic in (("kappa", kappa, "square"), ("shape", shape, "log")):
            refuse(value[..., None], ~(value > 0)[..., None], f"the {name} {{}} is not positive", [statistic])
        refuse(rate[..., None], ~(rate > 0)[..., None], "the rate {} is not positive", ["precision"])

    def default_natural_parameters(self):
        """kappa, a and b of one, and a mean of zero."""
        return self.natural_parameters(1.0, 0.0, 1.0, 1.0)

    def sample(self, natural, n_draws, random_state=None):
        """Draws of (mu, tau): (n_draws, ..., 2)."""
        kappa, mean, shape, rate = self.parameters(natural)
        generator = np.random.RandomState(random_state) if isinstance(random_state, int) else random_state
        precision = generator.gamma(shape, 1 / rate, size=(n_draws, *np.shape(mean)))
        return np.stack([generator.normal(mean, 1 / np.sqrt(kappa * precision)), precision], axis=-1)

    def statistics_of(self, value):
        """(mu, tau) -> the statistics: (..., 2) -> (..., 4)."""
        mean, precision = np.moveaxis(np.asarray(value), -1, 0)
        return np.stack([np.log(precision), precision, precision * mean, precision * mean**2], axis=-1)


def twin(values, kinds, n_components, weights, learned=None):
    """The model of a table of numbers and codes, under the prior of fixed numbers: MeanFieldModel.

    Its factors are "pi", "z", and one for every column, by its name.

    Parameters
    ----------
    values : dict, name of a column -> (N,) of numbers, or of codes; NaN where missing. Every row has some.
    kinds : dict, name -> "numeric", one of `RATES`, or the number of categories
    n_components : int, K
    weights : (N,), how often the rows count
    learned : dict or None
        Numbers of the prior by the name of the argument: of categories, whose prior then follows their shares
        in the table, and of counts and durations.
    """
    K = n_components
    factors = {"pi": Dirichlet(K), "z": Factor(Categorical(K), len(weights), weights=weights)}
    terms = [dirichlet_prior("pi", 1.0 / K), categorical_prior("z", "pi")]
    for name, y in values.items():
        of_kind = {"numeric": _normal, **dict.fromkeys(RATES, _with_rate)}.get(kinds[name], _categorical)
        family, own = of_kind(name, y, weights, K, kinds[name], learned)
        factors[name] = Factor(family, K)
        terms += own
    return MeanFieldModel(factors, terms)


@functools.cache
def twin_of(name):
    """The fit of the twin of a problem of the catalogue, from the mixture's optimum: MeanFieldPosterior."""
    problem, weights = PROBLEMS[name], weights_of(PROBLEMS[name])
    kinds, kept = kinds_of(problem.X), weights > 0
    values = dict(zip(kinds, codes_of(problem.X)[kept].T, strict=True))
    start = {"z.indicator": fitted(name).predict_proba(problem.X)[kept]}
    learned = fitted(name).learned_prior_["value"].to_dict() if problem.prior == "learned" else None
    model = twin(values, kinds, problem.n_components, weights[kept], learned)
    return model.fit(start, tol=1e-10, max_iter=20_000)


def _categorical(name, codes, weights, K, n_categories, learned):
    seen, concentration = (codes[:, None] == np.arange(n_categories)).astype(float), 1.0
    if learned is not None:
        numbers = weights @ seen
        concentration = learned["category_concentration_prior"] * (0.8 * numbers / numbers.mean() + 0.2)
    prior = dirichlet_prior(name, concentration)
    return Dirichlet(n_categories), [prior, Term(seen, "z", name, subscripts="nc,nk,kc")]


def _with_rate(name, y, weights, K, kind, learned):
    seen = ~np.isnan(y)
    of_log, of_rate, rest = (np.where(seen, part, 0.0) for part in RATES[kind](np.where(seen, y, 1.0)))
    shape = 1.0 if learned is None else learned["rate_shape_prior"]
    return Gamma(), [
        gamma_prior(name, shape, shape * (weights @ of_rate) / (weights @ of_log)),
        Term(of_log, "z", f"{name}.log", subscripts="n,nk,k"),
        Term(-of_rate, "z", f"{name}.value", subscripts="n,nk,k"),
        Term(weights @ rest),
    ]


def _normal(name, y, weights, K, kind, learned):
    seen, y = (~np.isnan(y)).astype(float), np.nan_to_num(y)
    mean = weights @ y / (weights @ seen)
    variance = weights @ (seen * (y - mean) ** 2) / (weights @ seen)
    prior = NormalGamma.natural_parameters(0.1, mean, 1.0, 0.5 * variance)
    likelihood = {"log": 0.5 * seen, "precision": -0.5 * y**2, "product": y, "square": -0.5 * seen}
    return NormalGamma(), [
        *(Term(of_rows, "z", f"{name}.{key}", subscripts="n,nk,k") for key, of_rows in likelihood.items()),
        *(Term(number, f"{name}.{key}") for number, key in zip(prior, NormalGamma().statistics, strict=True)),
        Term(-K * NormalGamma().log_partition(prior) - 0.5 * np.log(2 * np.pi) * (weights @ seen)),
    ]
