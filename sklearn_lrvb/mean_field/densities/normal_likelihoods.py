"""Normal densities of data: numbers and vectors."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from sklearn_lrvb.mean_field.arguments import spread
from sklearn_lrvb.mean_field.densities.density import Density, described
from sklearn_lrvb.mean_field.densities.normal_terms import (
    Linear,
    linear_part,
    normal_terms,
    number_precision,
    predictor,
)
from sklearn_lrvb.mean_field.densities.rows import data_rows, likelihood
from sklearn_lrvb.mean_field.densities.vector_normal_terms import (
    vector_normal_terms,
    vector_part,
    vector_precision,
)


def normal_likelihood(
    y: ArrayLike,
    mean: "str | Linear | ArrayLike | Sequence",
    precision: "str | ArrayLike",
    *,
    precision_at: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    given: str | None = None,
) -> Density:
    """Normal density of data, with a mean that is linear in normal factors.

    Parameters
    ----------
    y : array-like of shape (n,)
        The data.
    mean : str, Linear, number, array-like of shape (n,), or a list of these
        The mean is their sum: names of factors, `Linear` parts with features or groups, and known offsets.
    precision : str, number or array-like of shape (n,)
        One over the variance: the name of a `Gamma` factor, or known.
    precision_at : int array-like of shape (n,), default=None
        The copy of the precision that every row has.
    weights : array-like of shape (n,), default=None
        Case weights: a row counts as that many equal rows, and not at all with weight 0. None is one. With
        ``given``, the row's category, its prior and its entropy count as often (`Factor.weights`), and all
        likelihoods with the same ``given`` need the same weights. Copies of other factors do not belong to a
        row, but are shared by the rows that it counts as.
    given : str, default=None
        A `Categorical` factor with a copy for every row, which chooses among the copies of the mean's and the
        precision's factors: a mixture.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    Linear regression with unknown noise:

    >>> import numpy as np
    >>> from sklearn_lrvb.exponential_families import Gamma, MultivariateNormal
    >>> from sklearn_lrvb.mean_field import (
    ...     Linear, MeanFieldModel, gamma_prior, normal_likelihood, normal_prior
    ... )
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [1.0, 4.0]])
    >>> y = [0.1, 1.2, 1.9, 3.2, 3.9]
    >>> model = MeanFieldModel(
    ...     {"beta": MultivariateNormal(2), "tau": Gamma()},
    ...     [
    ...         normal_likelihood(y, mean=Linear("beta", X), precision="tau"),
    ...         normal_prior("beta", mean=0.0, precision=0.01),
    ...         gamma_prior("tau", shape=1.0, rate=0.1),
    ...     ],
    ... )
    >>> model.fit().mean("beta.value").round(2)
    array([0.14, 0.96])
    """
    values = data_rows(y)
    constant, parts = predictor(mean)
    residual = values - spread("the known part of the mean", constant, values.shape)

    def build(factors, rows):
        own = [linear_part(factors, part, -1.0, rows) for part in parts]
        of_precision = number_precision(factors, precision, precision_at, rows)
        return normal_terms(rows, residual, own, of_precision)

    text = described("normal_likelihood", values, mean=mean, precision=precision)
    return likelihood(text, len(values), weights, given, build)


def multivariate_normal_likelihood(
    X: ArrayLike,
    mean: "str | Linear | ArrayLike | Sequence",
    precision: "str | ArrayLike",
    *,
    weights: ArrayLike | None = None,
    given: str | None = None,
) -> Density:
    """Multivariate normal density of rows, or of a mixture of such.

    Parameters
    ----------
    X : array-like of shape (n, P)
        The data.
    mean : str, Linear, array-like of shape (P,) or (n, P), or a list of these
        The mean is their sum: names of `MultivariateNormal` factors, `Linear` parts with the copy that every
        row has and no design, and known offsets.
    precision : str, number, or array-like of shape (P, P) or (n, P, P)
        The name of a `Wishart` factor, or of a `Gamma` factor as in `normal_prior`, or known.
    weights : array-like of shape (n,), default=None
        Case weights, as in `normal_likelihood`.
    given : str, default=None
        A `Categorical` factor with a copy for every row, which chooses among copies of mean and precision.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb.mean_field import multivariate_normal_likelihood
    >>> multivariate_normal_likelihood(np.zeros((5, 2)), "mu", "Lambda", given="z")
    multivariate_normal_likelihood(array(5, 2), mean='mu', precision='Lambda')
    """
    values = data_rows(X, n_axes=2)
    constant, parts = predictor(mean)
    residual = values - spread("the known part of the mean", constant, values.shape)

    def build(factors, rows):
        n_features = values.shape[1]
        own = [vector_part(factors, part, -1.0, n_features, rows) for part in parts]
        of_precision = vector_precision(factors, precision, n_features, rows)
        return vector_normal_terms(rows, residual, own, of_precision)

    text = described("multivariate_normal_likelihood", values, mean=mean, precision=precision)
    return likelihood(text, len(values), weights, given, build)
