"""The prior of a mixture of latent classes, and the features of a table's rows."""

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
    n_entries : int, largest number of features of a row that are not zero
    places : list of slice, the features of every family
    shapes : list of pairs of int, numbers of columns c and of features b of every family
    flat : False, the prior is proper
    hyperparameters : tuple of str, their names
    """

    flat = False

    def __init__(self, model, weights, families, columns=()):
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

    def hyperparameter(self, name):
        """The value of a hyperparameter by its name, a float."""
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
        expected = np.zeros(sums.shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            for family, place, part in zip(self.families, self.places, self.split(sums), strict=True):
                expected[..., place] = family.expected(part).reshape(*sums.shape[:-1], -1)
        expected[~(sums[..., 0] >= 0.0)] = np.nan
        return expected

    def log_evidence(self, sums):
        """log of the integral of the prior of a class times exp(S.T), without its weight: (n, W) -> (n,)."""
        log_evidence = np.zeros(sums.shape[:-1])
        for family, part in zip(self.families, self.split(sums), strict=True):
            log_evidence += family.log_evidence(part).sum(axis=-1)
        return log_evidence
