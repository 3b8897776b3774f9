"""Normal scores of the values of tables in latent classes, under draws of the parameters."""

import numpy as np

from sklearn_lrvb.answers.normal_scores import RowScores, normal_scores


class ClassRowScores:
    """Normal scores of numbers, counts and durations; categories have none.

    Parameters
    ----------
    parameters : ClassParameters, of all draws
    rows : ArrayRows, encoded, each of which counts once

    Attributes
    ----------
    n_categories : int array (P,), of every column; zero of numbers
    is_normal : bool (P,), which columns have a normal density in a class
    has_free_variances : bool (P,), the same: counts and durations have one parameter
    """

    def __init__(self, parameters, rows):
        self._X, self._shares, self._values = rows.X, parameters.weights, parameters.values()
        self._families = parameters.posterior.prior.families
        self.n_categories = np.zeros(rows.n_features, dtype=np.intp)
        self.is_normal = np.zeros(rows.n_features, dtype=bool)
        for family in self._families:
            self.is_normal[family.places] = family.deviation_entry is not None
            if not family.holds_numbers:
                self.n_categories[family.places] = family.n_features
        self.has_free_variances = self.is_normal

    def at(self, draw, labels, generator):
        """Scores under one of the draws, given labels of the rows, int array (n,): RowScores.

        Those of discrete values are drawn at random between the limits that the value leaves.
        """
        scores, overall = np.full(self._X.shape, np.nan), np.full(self._X.shape, np.nan)
        for family, values in zip(self._families, self._values, strict=True):
            if not family.holds_numbers:
                continue
            own = self._X[:, family.places]
            distribution = family.distribution(values[draw][:, None])  # (K, 1, c)
            below, above = distribution.cdf(own), distribution.sf(own)  # (K, n, c)
            if family.is_discrete:
                within = distribution.pmf(own)
                uniform = generator.random_sample(own.shape)
                below, above = below - uniform * within, above + uniform * within
            in_class = np.maximum(labels, 0)[None, :, None]
            scores[:, family.places] = normal_scores(
                *(np.take_along_axis(part, in_class, axis=0)[0] for part in (below, above))
            )
            overall[:, family.places] = normal_scores(
                *(np.einsum("k,knc->nc", self._shares[draw], part) for part in (below, above))
            )
        scores[labels < 0] = overall[labels < 0] = np.nan
        return RowScores(scores, overall, np.full(len(labels), np.nan), np.eye(self._X.shape[1]))
