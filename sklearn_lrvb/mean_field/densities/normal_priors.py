"""Normal densities of factors: numbers and vectors."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sklearn_lrvb.exponential_families import MultivariateNormal, UnivariateNormal
from sklearn_lrvb.mean_field.arguments import spread
from sklearn_lrvb.mean_field.densities.density import Density, described, is_of, required_factor
from sklearn_lrvb.mean_field.densities.normal_terms import (
    Linear,
    linear_part,
    normal_terms,
    number_precision,
    predictor,
)
from sklearn_lrvb.mean_field.densities.rows import Rows
from sklearn_lrvb.mean_field.densities.vector_normal_terms import (
    vector_normal_terms,
    vector_part,
    vector_precision,
)


def normal_prior(
    name: str, mean: "str | Linear | ArrayLike | Sequence", precision: "str | ArrayLike"
) -> Density:
    """Normal density of a factor, or of all its copies.

    Parameters
    ----------
    name : str
        A factor of the family `UnivariateNormal` or `MultivariateNormal`.
    mean : number, array-like of shape (copies..., shape of x), str, Linear, or a list of these
        Known, or linear in other factors; parts of a list are added. A name is one mean for all copies, or
        one for each. A vector's mean is made of vectors, without designs.
    precision : number, array-like, or str
        Of a number one over its variance. Of a vector a matrix (P, P) or (copies..., P, P), or a number that
        stands for so many times the identity. A name is that of a `Gamma` factor, of which a vector has one
        for all of its entries or a copy for each (automatic relevance), or of a `Wishart` factor. It has no
        copies, or one for each copy of ``name``.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    Group effects around a common mean, with unknown variance:

    >>> from sklearn_lrvb.mean_field import normal_prior
    >>> [normal_prior("a", mean="mu", precision="tau_a"), normal_prior("mu", 0.0, precision=1e-4)]
    [normal_prior('a', mean='mu', precision='tau_a'), normal_prior('mu', mean=0.0, precision=0.0001)]

    Coefficients that vary by group, with unknown mean and covariance:

    >>> normal_prior("slopes", mean="common", precision="Lambda")
    normal_prior('slopes', mean='common', precision='Lambda')
    """

    def build(factors):
        factor = required_factor(factors, name, UnivariateNormal, MultivariateNormal)
        if is_of(factor.family, MultivariateNormal):
            return _vector_prior(factors, name, factor, mean, precision)
        rows = Rows(factor.lead or (1,), np.ones(factor.lead or (1,)))
        constant, parts = predictor(mean)
        own = [linear_part(factors, Linear(name), 1.0, rows)]
        own += [linear_part(factors, part, -1.0, rows) for part in parts]
        residual = -spread(f"the mean of {name!r}", constant, rows.shape)
        of_precision = number_precision(factors, precision, None, rows)
        return normal_terms(rows, residual, own, of_precision)

    return Density(described("normal_prior", name, mean=mean, precision=precision), build)


def _vector_prior(factors, name, factor, mean, precision):
    rows, n_features = Rows(factor.lead, np.ones(factor.lead)), factor.family.n_features
    constant, parts = predictor(mean)
    own = [vector_part(factors, Linear(name), 1.0, n_features, rows)]
    own += [vector_part(factors, part, -1.0, n_features, rows) for part in parts]
    residual = -spread(f"the mean of {name!r}", constant, (*rows.shape, n_features))
    of_precision = vector_precision(factors, precision, n_features, rows)
    return vector_normal_terms(rows, residual, own, of_precision)
