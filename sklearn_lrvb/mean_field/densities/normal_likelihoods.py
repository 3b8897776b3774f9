"""Normal densities of data: numbers and vectors."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sklearn_lrvb.exponential_families import MultivariateNormal, Wishart
from sklearn_lrvb.mean_field.densities.density import Density, described, required_factor
from sklearn_lrvb.mean_field.densities.normal_terms import (
    LOG_2_PI,
    Linear,
    known_precision,
    linear_part,
    normal_terms,
    predictor,
)
from sklearn_lrvb.mean_field.densities.rows import (
    case_weights,
    data_rows,
    indicator_of,
    lead_letters,
    row_term,
)
from sklearn_lrvb.mean_field.term import Term


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
        Case weights: a row counts as that many rows, and not at all with weight 0. None is one.
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
    rows = data_rows(y)
    constant, parts = predictor(mean)
    of_rows = case_weights(weights, len(rows))

    def build(factors):
        indicator, component = indicator_of(factors, given, len(rows))
        own = [linear_part(factors, part, -1.0, len(rows), component) for part in parts]
        of_precision = known_precision(factors, precision, precision_at, len(rows), component)
        return normal_terms(factors, rows - constant, own, of_precision, of_rows, indicator)

    return Density(described("normal_likelihood", rows, mean=mean, precision=precision), build)


def multivariate_normal_likelihood(
    X: ArrayLike,
    mean: str,
    precision: str,
    *,
    weights: ArrayLike | None = None,
    given: str | None = None,
) -> Density:
    """Multivariate normal density of rows, or of a mixture of such.

    Parameters
    ----------
    X : array-like of shape (n, P)
        The data.
    mean : str
        A `MultivariateNormal` factor.
    precision : str
        A `Wishart` factor.
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
    rows = np.asarray(X, dtype=float)
    if rows.ndim != 2 or not np.all(np.isfinite(rows)):
        raise ValueError(f"the data must be a matrix of finite numbers; got shape {rows.shape}.")
    of_rows = case_weights(weights, len(rows))

    def build(factors):
        indicator, component = indicator_of(factors, given, len(rows))
        own, of = (
            required_factor(factors, mean, MultivariateNormal),
            required_factor(factors, precision, Wishart),
        )
        for name, factor in ((mean, own), (precision, of)):
            if factor.family.n_features != rows.shape[1]:
                raise ValueError(
                    f"{name!r} has {factor.family.n_features} features, but X has {rows.shape[1]}."
                )
        (letters, _), (of_letters, _) = (
            lead_letters(name, factor, None, len(rows), component)
            for name, factor in ((mean, own), (precision, of))
        )
        chosen = [indicator] if indicator else []
        base, of_value = ("n", of_rows), (f"{precision}.value", of_letters + "pq")
        half = ("", np.array(-0.5))
        return [
            Term(-0.5 * rows.shape[1] * LOG_2_PI * of_rows.sum()),
            row_term([("n", 0.5 * of_rows)], [*chosen, (f"{precision}.log_det", of_letters)], None),
            row_term([base, half, ("np", rows), ("nq", rows)], [*chosen, of_value], None),
            row_term([base, ("nq", rows)], [*chosen, (f"{mean}.value", letters + "p"), of_value], None),
            row_term([base, half], [*chosen, (f"{mean}.outer", letters + "pq"), of_value], None),
        ]

    text = described("multivariate_normal_likelihood", rows, mean=mean, precision=precision)
    return Density(text, build)
