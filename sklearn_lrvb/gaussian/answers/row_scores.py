"""Normal scores of rows in normal components, or in Student's t, under draws of the parameters."""

import functools

import numpy as np
from scipy.special import betainc, gammainc, gammaincc, ndtr, stdtr

from sklearn_lrvb.answers.normal_scores import RowScores, normal_scores
from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates
from sklearn_lrvb.gaussian.posterior.hand_set_densities import HandSetDensities


class NormalRowScores:
    """Normal scores of the values and distances of some rows.

    Parameters
    ----------
    parameters : GaussianParameters, of all draws
    rows : ArrayRows, each of which counts once

    Attributes
    ----------
    n_categories : int array (P,), zero: all columns are numbers
    is_normal : bool (P,), true
    has_free_variances : bool (P,), whether every component has a variance of its own in a column
    """

    def __init__(self, parameters, rows):
        posterior, structure = parameters.posterior, parameters.posterior.structure
        self._parameters, self._posterior, self._structure = parameters, posterior, structure
        self._rows, self._X = rows, rows.X - rows.origin
        self._means, self._scales = parameters.means - rows.origin, parameters.scales
        self.n_categories = np.zeros(rows.n_features, dtype=np.intp)
        self.is_normal = np.ones(rows.n_features, dtype=bool)
        is_own = structure.has_own_precisions or structure.n_components == 1
        is_by_column = structure.diagonal(structure.identity).size == rows.n_features
        self.has_free_variances = np.full(rows.n_features, is_own and is_by_column)
        self._has_free_correlations = is_own and (structure.is_matrix or rows.n_features == 1)

    def at(self, draw, labels, generator):
        """Scores under one of the draws, given labels of the rows, int array (n,): RowScores."""
        structure, means = self._structure, self._means[draw]
        scales = structure.by_group(self._scales[draw])
        deviations = np.sqrt(structure.layout.per_component(structure.diagonal(scales)))
        deviations = np.broadcast_to(deviations, means.shape)
        nu = None if self._posterior.tails is None else self._parameters.degrees_of_freedom[draw]
        is_in, own = labels >= 0, np.maximum(labels, 0)
        scores = (self._X - means[own]) / deviations[own]
        if nu is not None:
            scores = normal_scores(stdtr(nu[own, None], scores), stdtr(nu[own, None], -scores))
        scores[~is_in] = np.nan
        shares = self._parameters.weights[draw, : structure.n_components]
        overall = self._overall(means, deviations, shares / shares.sum(), nu)
        overall[~is_in] = np.nan
        distances = self._distances(scales, draw, own, nu)
        distances[~is_in] = np.nan
        return RowScores(scores, overall, distances, self._correlations(scales, deviations))

    def _overall(self, means, deviations, shares, nu):
        """Scores of the values in the whole mixture, without noise: (n, P)."""
        below, above = np.zeros(self._X.shape), np.zeros(self._X.shape)
        for k, share in enumerate(shares):
            z = (self._X - means[k]) / deviations[k]
            below += share * (ndtr(z) if nu is None else stdtr(nu[k], z))
            above += share * (ndtr(-z) if nu is None else stdtr(nu[k], -z))
        return normal_scores(below, above)

    def _distances(self, scales, draw, own, nu):
        """Scores of the squared distances of rows from their component, (n,), of the values that are there.

        They have the distribution chi2(p), or p F(p, nu), for p values.
        """
        structure, posterior = self._structure, self._posterior
        whiteners = structure.whiteners(structure.cholesky(scales))
        densities = HandSetDensities(
            posterior.model,
            structure,
            posterior.prior.noise_deviations,
            self._means[draw],
            whiteners,
            posterior.mean_precision,
            posterior.degrees_of_freedom,
            self._parameters.log_weights[draw],
            self._parameters.log_shares[draw],
            posterior.noise_component,
            posterior.tails,
        )
        of_block = functools.partial(_squared_distances, OwnCoordinates(densities))
        by_component = self._rows.each(of_block, (structure.n_components,))
        squares = np.take_along_axis(by_component, own[:, None], axis=1)[:, 0]
        n_seen = (~np.isnan(self._X)).sum(axis=1)
        if nu is None:
            return normal_scores(
                gammainc(0.5 * n_seen, 0.5 * squares), gammaincc(0.5 * n_seen, 0.5 * squares)
            )
        share, half = squares / (squares + nu[own]), 0.5 * nu[own]
        return normal_scores(betainc(0.5 * n_seen, half, share), betainc(half, 0.5 * n_seen, 1.0 - share))

    def _correlations(self, scales, deviations):
        """What the model says of correlations within components: (P, P), or None where they are free."""
        if self._has_free_correlations:
            return None
        if not self._structure.is_matrix:
            return np.eye(self._X.shape[1])
        return scales[0] / np.outer(deviations[0], deviations[0])


def _squared_distances(coordinates, block):
    """Squared distances of a block's rows from every component, of the values that are there: (K, n)."""
    values = coordinates.represented(block).values  # What is missing is where the component expects it.
    return np.einsum("kpn,kpn->kn", values, values)
