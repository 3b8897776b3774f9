"""Categories, with two values or more: probabilities with a Dirichlet prior."""

import numpy as np
from scipy.special import digamma, zeta

from sklearn_lrvb.distributions import dirichlet
from sklearn_lrvb.distributions.special_functions import beta_quantile
from sklearn_lrvb.families.base import ColumnFamily
from sklearn_lrvb.families.scalars import along_sticks, log_probabilities, stick_logits, stick_slopes, sticks

# The part of a prior centred on the table that is spread evenly, so that rare categories are not ruled out.
_EVENLY = 0.2


class CategoricalColumns(ColumnFamily):
    """Columns with the same number C of categories: p ~ Dirichlet(alpha C m), with m = 1/C or other shares.

    The features of a value are C indicators, and T = log p. Where there is one category alone, log p is zero,
    whatever the values: their feature is zero, and counts as if log p varied by 1 on its own.

    Parameters
    ----------
    places : as for every family
    n_categories : int, C
    concentration : float, alpha
    shares : (c, C) or None, m
    """

    hyperparameters = {"category_concentration_prior": 0.5}
    estimates = {"probability": beta_quantile}
    holds_numbers = False
    is_discrete = True

    def __init__(self, places, n_categories, concentration, shares=None):
        super().__init__(places, np.full(len(places), n_categories), concentration)
        self.n_features, self._identity = n_categories, np.eye(n_categories)
        direction = np.ones((len(places), n_categories)) if shares is None else n_categories * shares
        self._concentration = float(concentration) * direction
        self._of_prior = dirichlet.log_partition(self._concentration)
        self.directions = {"category_concentration_prior": direction} if n_categories > 1 else {}

    @classmethod
    def of_columns(cls, places, means, deviations, total_weight, n_categories, concentration):
        return cls(places, n_categories, concentration)

    def centred(self, sums):
        shares = sums[0] / np.maximum(sums[0].sum(axis=-1, keepdims=True), np.finfo(float).tiny)
        shares = (1.0 - _EVENLY) * shares + _EVENLY / self.n_features
        concentration = self.prior_values["category_concentration_prior"]
        return CategoricalColumns(self.places, self.n_features, concentration, shares)

    def features(self, values):
        if self.n_features == 1:
            return np.zeros((len(values), 1, values.shape[1]))
        return (values[:, None] == np.arange(self.n_features)[:, None]).astype(np.float64)

    def log_evidence(self, sums):
        return dirichlet.log_partition(self._concentration + sums) - self._of_prior

    def expected(self, sums):
        concentration = self._concentration + sums
        expected = digamma(concentration) - digamma(concentration.sum(axis=-1, keepdims=True))
        expected[(concentration <= 0.0).any(axis=-1)] = np.nan
        return expected

    def covariance_root(self, sums):
        # D D - c 1 1' = D (I - c u u') D with D = diag(d) and u = 1/d; and I - c u u' = (I - a u u')^2.
        concentration = self._concentration + sums
        if self.n_features == 1:
            return np.ones((*sums.shape, 1))
        d, c = np.sqrt(zeta(2.0, concentration)), zeta(2.0, concentration.sum(axis=-1))
        u = 1.0 / d
        squared = np.square(u).sum(axis=-1)
        a = (1.0 - np.sqrt(np.maximum(1.0 - c * squared, np.finfo(float).tiny))) / squared
        # D (I - a u u') = D - a 1 u'.
        return d[..., None] * self._identity - (a[..., None] * u)[..., None, :]

    def covariance_with(self, sums, directions):
        concentration = self._concentration + sums
        total = zeta(2.0, concentration.sum(axis=-1, keepdims=True))
        return zeta(2.0, concentration) * directions - total * directions.sum(axis=-1, keepdims=True)

    def values(self, sums):
        concentration = self._concentration + sums
        return concentration / concentration.sum(axis=-1, keepdims=True)

    def jacobian(self, sums):
        total = (self._concentration + sums).sum(axis=-1)[..., None, None]
        return (self._identity - self.values(sums)[..., None]) / total

    def covariance(self, sums):
        total, p = (self._concentration + sums).sum(axis=-1)[..., None, None], self.values(sums)
        return (p[..., None] * self._identity - p[..., None] * p[..., None, :]) / (total + 1.0)

    def effects_of_prior(self, sums, name):
        change = self._concentration / self.prior_values[name]
        return self.covariance_with(sums, change), (self.jacobian(sums) @ change[..., None])[..., 0]

    def estimated(self, sums):
        numbers = np.maximum(sums, np.finfo(float).tiny)
        return numbers / numbers.sum(axis=-1, keepdims=True)

    # The scalars are logits of the sticks: category c has the share v_c of what the ones before it leave.

    @property
    def scalar_kinds(self):
        return ("logit",) * (self.n_features - 1)

    def scalar_parameters(self, sums):
        return sticks(self._concentration + sums)

    def scalar_jacobian(self, sums):
        concentration = self._concentration + sums
        own, later = np.moveaxis(zeta(2.0, sticks(concentration)), -1, 0)
        places = np.arange(self.n_features)
        after = places > places[:-1, None]
        return self._identity[:-1] * own[..., None] - after * later[..., None]

    def statistics_of(self, scalars, sums):
        return log_probabilities(scalars)

    def pulled_back(self, scalars, sums, slopes):
        return stick_slopes(scalars, slopes)

    def prior_score(self, scalars, sums, name):
        distances = log_probabilities(scalars) - dirichlet.expected_log(self._concentration)
        return (distances * self._concentration).sum(axis=(1, 2, 3)) / self.prior_values[name]

    def values_of(self, scalars, sums):
        return np.exp(log_probabilities(scalars))

    def scalars_at(self, values, sums):
        return stick_logits(np.log(values))

    def first_order(self, changes, sums):
        shares = self.scalar_parameters(sums)
        share = shares[..., 0] / shares.sum(axis=-1)
        changes_of_log = along_sticks(changes * (1.0 - share), -changes * share)
        return self.values(sums) * changes_of_log

    def mean_features(self, sums):
        return self.values(sums)

    def filled(self, responsibilities, sums):
        probabilities = np.einsum("kn,kcq->cnq", responsibilities, self.values(sums))
        most_probable = probabilities.argmax(axis=-1)
        # One less the largest would lose digits, and its sign.
        np.put_along_axis(probabilities, most_probable[..., None], 0.0, axis=-1)
        return most_probable.astype(np.float64), probabilities.sum(axis=-1)

    def drawn(self, generator, values, n_rows):
        stops = np.cumsum(values, axis=1)[:, :-1]
        uniforms = generator.random_sample((self.n_columns, n_rows))
        return (uniforms[:, :, None] > stops[:, None]).sum(axis=2).astype(np.float64)
