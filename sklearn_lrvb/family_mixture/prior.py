"""The prior of a mixture of latent classes, and the features of a table's rows."""

import copy

import numpy as np

WEIGHT_CONCENTRATION = "weight_concentration_prior"


class ClassPrior:
    """Priors of the class weights and of the parameters of every family of columns.

    Features of a row come in this order: the number 1, and then family by family, column by column, the
    features of the columns. There are W of them. Every class has a statistic for each feature; of the number
    1 it is log pi_k.

    Parameters
    ----------
    model : MixtureModel
    weights : DirichletWeights of K classes
    families : tuple of ColumnFamily
    columns : tuple of Column, their names and categories by place; for labels
    learned : LearnedPrior or None, of hyperparameters that are not fixed

    Attributes
    ----------
    n_components : int, K
    n_features : int, W
    n_entries : int, largest number of features of a row that are not zero
    places : list of slice, the features of every family
    shapes : list of pairs of int, numbers of columns c and of features b of every family
    flat : False, the prior is proper
    hyperparameters : tuple of str, their names
    learned_values : (L,), the learned hyperparameters
    offset : (W,), what they add to the sums of every class (`learned_prior`)
    """

    flat = False

    def __init__(self, model, weights, families, columns=(), learned=None):
        self.model, self.weights = model, weights
        self.families, self.columns = tuple(families), tuple(columns)
        self.n_components = weights.n_components
        self.places, self.shapes, self.n_features, self.n_entries = [], [], 1, 1
        self._values = {WEIGHT_CONCENTRATION: weights.prior_concentration}
        for family in self.families:
            size = family.n_columns * family.n_features
            self.shapes.append((family.n_columns, family.n_features))
            self.places.append(slice(self.n_features, self.n_features + size))
            self.n_features += size
            self.n_entries += size if family.holds_numbers else family.n_columns
            self._values |= family.prior_values
        self.hyperparameters = tuple(self._values)
        self.learned, self.offset = learned, np.zeros(self.n_features)
        self.learned_values = np.zeros(0) if learned is None else learned.means

    def with_learned(self, values):
        """The same prior with other values of the learned hyperparameters, (L,)."""
        other = copy.copy(self)
        other.learned_values, other.offset = values, self.learned.offset(values)
        return other

    def held(self, weights):
        """The prior with other weights, whose learned hyperparameters are given from now on: ClassPrior."""
        other = ClassPrior(self.model, weights, self.families, self.columns)
        other.offset = self.offset
        return other

    def hyperparameter(self, name):
        """The value of a hyperparameter by its name, a float; of a learned one that which is expected."""
        return self._values[name]

    def split(self, sums):
        """The part of every family: (..., W) -> list of (..., c, b)."""
        return [
            sums[..., place].reshape(*sums.shape[:-1], *shape)
            for place, shape in zip(self.places, self.shapes, strict=True)
        ]

    def joined(self, first, parts):
        """Inverse of `split`, given what belongs to the number 1: (...), list of (..., c, b) -> (..., W)."""
        flat = [part.reshape(*first.shape, -1) for part in parts]
        return np.concatenate([first[..., None], *flat], axis=-1)

    def features(self, values):
        """Features of rows, given their values column by column, NaN where missing: (P, n) -> (W, n)."""
        features = np.empty((self.n_features, values.shape[1]))
        features[0] = 1.0
        for family, place in zip(self.families, self.places, strict=True):
            own = family.features(values[family.places])
            features[place] = own.reshape(-1, values.shape[1])
        return features

    def log_base(self, values):
        """The part of the log density of rows that is the same in all classes: (P, n) -> (n,)."""
        log_base = np.zeros(values.shape[1])
        for family in self.families:
            log_base += family.log_base(values[family.places])
        return log_base

    def expected(self, sums):
        """E T of the classes, (..., W) -> (..., W); NaN where they have no posterior with these sums.

        The statistic of the weight is left zero.
        """
        return self.expected_of(sums + self.offset)

    def expected_of(self, sums):
        """The same, given sums with what learned hyperparameters add."""
        expected = np.zeros(sums.shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            for family, place, part in zip(self.families, self.places, self.split(sums), strict=True):
                expected[..., place] = family.expected(part).reshape(*sums.shape[:-1], -1)
        expected[~(sums[..., 0] >= 0.0)] = np.nan
        return expected

    def covariance_with(self, sums, directions):
        """Cov_q(T) d of the classes, (..., W) and (W,) -> (..., W), zero for the weights."""
        return self.moments_along(sums, directions)[1]

    def moments_along(self, sums, directions):
        """E T and Cov_q(T) d of the classes, zero in families without d: (..., W), (W,) -> (2, ..., W)."""
        moments = np.zeros((2, *sums.shape))
        parts = zip(self.split(sums + self.offset), self.split(directions), strict=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            for family, place, (part, own) in zip(self.families, self.places, parts, strict=True):
                if own.any():
                    of_family = family.expected(part), family.covariance_with(part, own)
                    for moment, own_moment in zip(moments, of_family, strict=True):
                        moment[..., place] = own_moment.reshape(*moment.shape[:-1], -1)
        return moments

    def log_evidence(self, sums):
        """log of the integral of a class's prior times exp(S.T), without its weight: (..., W) -> (...)."""
        rises = self.log_rises(sums + self.offset) - self.log_rises(self.offset)
        return rises.sum(axis=-1)

    def log_rises(self, sums):
        """The same of every column, without learned hyperparameters: (..., W) -> (..., P), by family."""
        parts = zip(self.families, self.split(sums), strict=True)
        return np.concatenate([family.log_evidence(part) for family, part in parts], axis=-1)
