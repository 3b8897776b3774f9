"""Normal densities of factors: numbers and vectors."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sklearn_lrvb.exponential_families import Gamma, MultivariateNormal, UnivariateNormal, Wishart
from sklearn_lrvb.mean_field.densities.density import Density, described, is_of, member_terms, required_factor
from sklearn_lrvb.mean_field.densities.normal_terms import (
    LOG_2_PI,
    Linear,
    known_precision,
    linear_part,
    normal_terms,
    predictor,
)
from sklearn_lrvb.mean_field.term import Term


def normal_prior(
    name: str, mean: "str | Linear | ArrayLike | Sequence", precision: "str | ArrayLike"
) -> Density:
    """Normal density of a factor, or of all its copies.

    Parameters
    ----------
    name : str
        A factor of the family `UnivariateNormal` or `MultivariateNormal`.
    mean : number, array-like of shape (copies..., shape of x), str, or Linear or a list for numbers
        Known, or linear in other factors: a name is one mean for all copies, or one for each.
    precision : number, array-like, or str
        Of a number one over its variance. Of a vector a matrix (..., P, P), or a number that stands for so
        many times the identity. A name is that of a `Gamma` factor, of which a vector has one for all of its
        entries or a copy for each (automatic relevance), or of a `Wishart` factor.

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
    """

    def build(factors):
        factor = required_factor(factors, name, UnivariateNormal, MultivariateNormal)
        known = not isinstance(precision, str) and not predictor(mean)[1]
        if known:
            return member_terms(name, factor, _known_normal(factor.family, mean, precision))
        if not isinstance(factor.family, UnivariateNormal):
            return _vector_prior(factors, name, factor, mean, precision)
        if len(factor.lead) > 1:
            raise ValueError(f"{name!r} has copies of {len(factor.lead)} axes: write its prior by terms.")
        n_rows = factor.n_members
        constant, parts = predictor(mean)
        own = [linear_part(factors, Linear(name), 1.0, n_rows, None)]
        own += [linear_part(factors, part, -1.0, n_rows, None) for part in parts]
        residual = np.broadcast_to(-np.asarray(constant, dtype=float), (n_rows,))
        of_precision = known_precision(factors, precision, None, n_rows, None)
        return normal_terms(factors, residual, own, of_precision, np.ones(n_rows), None)

    return Density(described("normal_prior", name, mean=mean, precision=precision), build)


def _known_normal(family, mean, precision):
    """Natural parameters of a normal density of which mean and precision are known."""
    mean, precision = np.asarray(mean, dtype=float), np.asarray(precision, dtype=float)
    if isinstance(family, UnivariateNormal):
        return family.natural_parameters(mean, precision)
    if precision.ndim == 0:
        precision = precision * np.eye(family.n_features)
    return family.natural_parameters(mean * np.ones(family.n_features), precision)


def _vector_prior(factors, name, factor, mean, precision):
    """Normal density of vectors around a known mean (P,), with a precision that is a factor."""
    n_features, letters = factor.family.n_features, "abcdef"[: len(factor.lead)]
    if predictor(mean)[1] or not isinstance(precision, str):
        raise ValueError(f"The mean of the vector {name!r} must be known here; write its prior by terms.")
    mean = np.broadcast_to(np.asarray(mean, dtype=float), (*factor.lead, n_features))
    of = required_factor(factors, precision, Gamma, Wishart)
    is_matrix = is_of(of.family, Wishart)
    own = letters if of.lead == factor.lead and factor.lead else ""
    if is_matrix:
        log, number, matrix = f"{precision}.log_det", 1.0, own + "pq"
    else:
        is_diagonal = of.lead == (*factor.lead, n_features) or (n_features,) == of.lead
        own = letters if is_diagonal and len(of.lead) > 1 else own
        log, number = f"{precision}.log", 1.0 if is_diagonal else float(n_features)
        matrix = own + "p" if is_diagonal else own
    expected = len(matrix) - 2 * is_matrix
    if len(of.lead) != expected:
        raise ValueError(
            f"{precision!r} has copies {of.lead}, expected none, {factor.lead} as {name!r}, or one for each "
            f"of {n_features} entries."
        )
    second = "pq" if is_matrix else "pp"
    axes = dict(zip(letters + "pq", (*factor.lead, n_features, n_features), strict=True))
    of_log = matrix if not is_matrix else own
    counts = np.prod([axes[letter] for letter in letters if letter not in of_log], initial=1.0)
    square = mean[..., :, None] * mean[..., None, :]
    square = square if second == "pq" else np.einsum("...pp->...p", square)
    return [
        Term(np.full([axes[letter] for letter in of_log], 0.5 * number * counts), log),
        Term(-0.5 * mean.size * LOG_2_PI),
        Term(-0.5, f"{name}.outer", f"{precision}.value", subscripts=f",{letters}{second},{matrix}"),
        Term(mean, f"{name}.value", f"{precision}.value", subscripts=_vector_axes(letters, second, matrix)),
        Term(
            -0.5 * square,
            f"{precision}.value",
            subscripts=f"{letters}{second[: 1 + (second == 'pq')]},{matrix}",
        ),
    ]


def _vector_axes(letters, second, matrix):
    """Subscripts of mean times precision times vector."""
    other = "q" if second == "pq" else "p"
    return f"{letters}p,{letters}{other},{matrix}"
