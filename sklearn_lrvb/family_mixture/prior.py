"""The prior of a mixture of latent classes, and the features of a table's rows."""

import functools

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

    Attributes
    ----------
    n_components : int, K
    n_features : int, W
    places : tuple of slice, the features of every family
    flat : False, the prior is proper
    numbers : tuple of str, names of the hyperparameters
    """

    flat = False

    def __init__(self, model, weights, families, columns=()):
        self.model, self.weights = model, weights
        self.families, self.columns = tuple(families), tuple(columns)
        self.n_components = weights.n_components
        stops = 1 + np.cumsum([0, *(family.n_columns * family.n_features for family in families)])
        self.places = tuple(map(slice, stops[:-1].tolist(), stops[1:].tolist()))
        self.n_features = int(stops[-1])
        self._values = {WEIGHT_CONCENTRATION: weights.prior_concentration}
        for family in self.families:
            self._values |= family.prior_values
        self.numbers = tuple(self._values)

    def number(self, name):
        """The value of a hyperparameter by its name, a float."""
        return self._values[name]

    def units_of_columns(self):
        """Sizes of the columns' values, (P,)."""
        units = np.ones(sum(family.n_columns for family in self.families))
        for family in self.families:
            units[family.places] = family.units
        return units

    def split(self, sums):
        """The part of every family: (..., W) -> list of (..., c, b)."""
        return [
            sums[..., place].reshape(*sums.shape[:-1], family.n_columns, family.n_features)
            for family, place in zip(self.families, self.places, strict=True)
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
        parts = (family.log_base(values[family.places]) for family in self.families)
        return functools.reduce(np.add, parts, np.zeros(values.shape[1]))

    def are_proper(self, sums):
        """Whether classes have a posterior with these sums: (..., W) -> bool (...)."""
        is_proper = sums[..., 0] >= 0.0
        for family, part in zip(self.families, self.split(sums), strict=True):
            is_proper = is_proper & family.is_proper(part).all(axis=-1)
        return is_proper

    def log_evidence(self, sums):
        """log of the integral of the prior of a class times exp(S.T), without its weight: (n, W) -> (n,)."""
        parts = zip(self.families, self.split(sums), strict=True)
        return sum(family.log_evidence(part).sum(axis=-1) for family, part in parts)
