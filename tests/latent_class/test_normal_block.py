"""The Gaussian mixture and the engine of families, to which its components are one family, agree."""

import numpy as np
import pytest
from catalogue import overlapping, three_blobs
from latent_class.normal_block import NormalBlock

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.answers.influence import influence_of_rows
from sklearn_lrvb.answers.targets import variance
from sklearn_lrvb.family_mixture.influence import ClassInfluenceFunctions
from sklearn_lrvb.family_mixture.model import FAMILY_MIXTURE
from sklearn_lrvb.family_mixture.prior import ClassPrior
from sklearn_lrvb.family_mixture.targets import ClassTargets
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.prediction import responsibilities_of_rows, scores_of_rows
from sklearn_lrvb.mixture.weight_priors import DirichletWeights
from sklearn_lrvb.rows import rows_of_array


@pytest.mark.parametrize("X", [overlapping(), three_blobs(150, 4)], ids=["overlapping", "three blobs"])
def test_both_engines_give_the_same_fit_error_bars_and_influence(X):
    mixture = LRVBGaussianMixture(
        n_components=3,
        prior="fixed",
        reg_covar=0.0,
        weight_concentration_prior_type="dirichlet_distribution",
        random_state=0,
    ).fit(X)
    centre = X.mean(axis=0)
    family = NormalBlock(
        mixture.mean_precision_prior_,
        mixture.mean_prior_ - centre,
        mixture.degrees_of_freedom_prior_,
        mixture.covariance_prior_,
    )
    prior = ClassPrior(FAMILY_MIXTURE, DirichletWeights(mixture.weight_concentration_prior_, 3), [family])
    rows = rows_of_array(X - centre, np.zeros(X.shape[1]))
    ascent = Ascent(rows, mixture.tol, mixture.max_iter)
    fit = ascent.newton(ascent.start_from(mixture.predict_proba(X), prior))
    assert fit.lower_bound == pytest.approx(mixture.lower_bound_, rel=1e-12)
    np.testing.assert_allclose(
        responsibilities_of_rows(rows, fit.posterior), mixture.predict_proba(X), atol=1e-8
    )
    np.testing.assert_allclose(scores_of_rows(rows, fit.posterior), mixture.score_samples(X), rtol=1e-8)
    information = fit.with_information(rows).information
    weights = ClassTargets(fit.posterior, rows.origin)["weights"]
    np.testing.assert_allclose(np.sqrt(variance(weights, information)), mixture.weights_std_, rtol=1e-7)
    coefficients = information.solve(weights.transposed_responses(np.eye(3))).T
    functions = [ClassInfluenceFunctions(fit.posterior, coefficients)]
    influence = influence_of_rows(rows, functions, "weight", np.arange(3))
    expected = mixture.influence(X, target="weights", perturb="weight")
    np.testing.assert_allclose(influence, expected, atol=1e-7 * np.abs(expected).max())
