"""How far the classes of draws are from those of a fit, and draws with their classes in another order."""

import numpy as np

from sklearn_lrvb.families.scalars import stick_logits
from sklearn_lrvb.family_mixture.draws import ClassDraws, Scalars


def component_divergences(parameters, posterior):
    """Kullback and Leibler's divergences, doubled, of the classes of draws from those of a fit: (n, K, K).

    Rows are the fit's classes at what is reported of them; columns are those of the draws.
    """
    prior, pairs = posterior.prior, list(zip(posterior.prior.families, posterior.parts, strict=True))
    ones = np.ones(posterior.n_components)
    features = prior.joined(ones, [family.mean_features(part) for family, part in pairs])[:, 1:]
    of_fit = Scalars(posterior).statistics(draws_at(posterior, posterior).scalars)[0, :, 1:]
    of_draws = features @ parameters.statistics[..., 1:].swapaxes(1, 2)
    return 2.0 * (np.einsum("kw,kw->k", features, of_fit)[:, None] - of_draws)


def draws_at(posterior, other):
    """What another posterior reports, as one draw in the coordinates of the first: ClassDraws."""
    scalars, weights = Scalars(posterior), other.prior.weights.mean(other.counts)
    pairs = zip(posterior.prior.families, posterior.parts, other.parts, strict=True)
    parts = [family.scalars_at(family.values(there)[None], here) for family, here, there in pairs]
    return ClassDraws(scalars.joined(stick_logits(np.log(weights)[None]), parts))


def reordered_draws(parameters, orders):
    """The draws whose class k is class ``orders[:, k]`` of given ones, int array (n, K): ClassDraws."""
    return ClassDraws(Scalars(parameters.posterior).reordered(parameters.draws.scalars, orders))
