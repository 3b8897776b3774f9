"""Models by named factors and terms, fitted by coordinate ascent (Section 2)."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_lrvb.exponential_families import NaturalParameterError
from sklearn_lrvb.mean_field.factor import Factor
from sklearn_lrvb.mean_field.log_joint import LogJoint
from sklearn_lrvb.mean_field.posterior import MeanFieldPosterior
from sklearn_lrvb.mean_field.term import bind


class MeanFieldModel:
    """A conditionally conjugate model: factors of q, and a log joint that is multilinear in their statistics.

    Parameters
    ----------
    factors : dict, name -> Factor or ExponentialFamily
        The factors of q, in the order in which coordinate ascent updates them. A family alone is one member
        of it; ``Factor(family, copies=n)`` is n independent ones.
    terms : list of Term
        Their sum is the log joint of data and parameters (Eq. nat_param_sum_of_theta_prods), prior included.
        A constant of the densities that is left out is missing from the lower bound and nowhere else.

    Attributes
    ----------
    factors : dict, name -> Factor
    terms : tuple of Term

    Raises
    ------
    ValueError
        Where a term does not fit the factors, or a factor occurs in no term.

    Notes
    -----
    Statistics are raw moments, such as x and x x'. Where a mean lies many thousands of its posterior standard
    deviations from zero their covariance loses digits, and coordinate ascent may not reach ``tol``: centre
    the data.

    Examples
    --------
    Normal observations with unknown mean and precision, of which q(mu, tau) = q(mu) q(tau):

    >>> import numpy as np
    >>> from sklearn_lrvb.exponential_families import Gamma, UnivariateNormal
    >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
    >>> x = np.array([1.2, 0.3, 2.1, 0.7, 1.4])
    >>> model = MeanFieldModel(
    ...     factors={"mu": UnivariateNormal(), "tau": Gamma()},
    ...     terms=[
    ...         Term(0.5 * len(x), "tau.log"),  # log likelihood
    ...         Term(-0.5 * np.sum(x**2), "tau.value"),
    ...         Term(np.sum(x), "mu.value", "tau.value"),
    ...         Term(-0.5 * len(x), "mu.square", "tau.value"),
    ...         Term(-0.5 * 0.01, "mu.square"),  # prior mu ~ normal(0, 1/0.01)
    ...         Term(-1.0, "tau.value"),  # prior tau ~ gamma(shape 2, rate 1)
    ...         Term(2.0 - 1.0, "tau.log"),
    ...     ],
    ... )
    >>> posterior = model.fit()
    >>> print(f"{posterior.mean('mu.value'):.2f} +- {posterior.std('mu.value'):.2f}")
    1.14 +- 0.31
    """

    def __init__(self, factors, terms):
        terms = tuple(terms)
        factors = {name: _as_factor(name, factor) for name, factor in factors.items()}
        bound = tuple(bind(term, number, factors) for number, term in enumerate(terms))
        for name in factors:
            if all(term.find(name) is None for term in bound):
                raise ValueError(
                    f"Factor {name!r} occurs in no term, so that nothing keeps it proper: add its prior."
                )
        self.factors = factors
        self.terms = terms
        self.log_joint = LogJoint(factors, bound)

    def fit(self, start=None, *, tol=1e-8, max_iter=1000):
        """Coordinate ascent: every factor in turn gets the best natural parameters given the others.

        Parameters
        ----------
        start : dict, factor -> natural parameters (D,) or (copies, D), default=None
            For a factor that is not named, the family's default member. Where a model is symmetric in its
            components, as a mixture is, the start has to tell them apart: give log responsibilities as the
            start of the indicators, and put their factor last, so that the others follow from them.
        tol : float, default=1e-8
            Stop when a sweep moves q by at most this many of its own standard deviations: the root of the
            sum of d eta . d m over the factors, about the root of twice the gain of the lower bound. The
            distance that is left is larger by 1/(1 - rate) where coordinate ascent is slow;
            `MeanFieldPosterior.newton_decrement` tells. The default leaves linear response its digits.
        max_iter : int, default=1000
            Largest number of sweeps.

        Returns
        -------
        MeanFieldPosterior

        Raises
        ------
        ValueError
            Where a start does not fit, or an update leaves its family, as for want of a prior.

        Warns
        -----
        ConvergenceWarning
            Where ``max_iter`` sweeps do not suffice.
        """
        if not max_iter >= 1:
            raise ValueError(f"max_iter={max_iter!r} is not a positive number of sweeps.")
        natural = self._start({} if start is None else start)
        means = {name: factor.family.mean_parameters(natural[name]) for name, factor in self.factors.items()}
        lower_bounds = []
        for _ in range(max_iter):
            length = self._sweep(natural, means)
            lower_bounds.append(self._lower_bound(natural, means))
            if length <= tol:
                break
        else:
            warnings.warn(
                f"Coordinate ascent has not converged: sweep {max_iter} (= max_iter) still moved q by "
                f"{length:.1e} of its standard deviations, tol={tol:g}. Raise max_iter, or start from "
                f"the natural_parameters of this posterior.",
                ConvergenceWarning,
                stacklevel=2,
            )
        lower_bounds = np.array(lower_bounds)
        for array in (*natural.values(), *means.values(), lower_bounds):
            array.flags.writeable = False
        return MeanFieldPosterior(self.log_joint, natural, means, lower_bounds, bool(length <= tol))

    def _start(self, start):
        unknown = [name for name in start if name not in self.factors]
        if unknown:
            raise ValueError(
                f"start names {unknown[0]!r}, which is no factor; the factors are {', '.join(self.factors)}."
            )
        natural = {}
        for name, factor in self.factors.items():
            family = factor.family
            value = (
                start[name]
                if name in start
                else np.broadcast_to(family.default_natural_parameters(), factor.shape)
            )
            natural[name] = np.asarray(value, dtype=float)
            if natural[name].shape != factor.shape:
                listed = ", ".join(f"{statistic} {shape}" for statistic, shape in family.statistics.items())
                raise ValueError(
                    f"start[{name!r}] has shape {natural[name].shape}, expected {factor.shape}: natural "
                    f"parameters, flat in the order {listed}"
                    + ("." if factor.copies is None else f", one row for each of {factor.copies} copies.")
                )
            try:
                family.check(natural[name])
            except NaturalParameterError as error:
                raise ValueError(f"start[{name!r}]: {error}.") from None
        return natural

    def _sweep(self, natural, means):
        """Update every factor in place; returns how far q moved, in its standard deviations."""
        squared_length = 0.0
        for name, factor in self.factors.items():
            updated = self.log_joint.natural_parameters(means, name)
            try:
                factor.family.check(updated)
            except NaturalParameterError as error:
                raise ValueError(self._improper_update(name, updated, error)) from None
            mean = factor.family.mean_parameters(updated)
            squared_length += np.vdot(updated - natural[name], mean - means[name])
            natural[name], means[name] = updated, mean
        return np.sqrt(max(squared_length, 0.0))

    def _improper_update(self, name, updated, error):
        factor, statistic = self.factors[name], error.statistic
        entries = factor.entries(updated, statistic)[error.copy]
        shown = f"{entries:.4g}" if entries.ndim == 0 else np.array2string(entries, precision=4, threshold=9)
        label = f"{name}.{statistic}"
        occurs = any(
            (argument.factor, argument.statistic) == (name, statistic)
            for term in self.log_joint.terms
            for argument in term.arguments
        )
        remedy = (
            f"The terms in {label!r} do not keep it proper: is a prior term missing, or a sign wrong?"
            if occurs
            else f"No term has {label!r}: its prior is missing."
        )
        return (
            f"The update of factor {name!r} leaves the {type(factor.family).__name__} family: {error}. "
            f"The natural parameter of {label!r} is {shown}. {remedy}"
        )

    def _lower_bound(self, natural, means):
        """ELBO: expected log joint plus the entropies A - eta . m."""
        entropies = (
            np.sum(factor.family.log_partition(natural[name])) - np.vdot(natural[name], means[name])
            for name, factor in self.factors.items()
        )
        return self.log_joint.value(means) + sum(entropies)


def _as_factor(name, factor):
    if not isinstance(name, str) or not name or "." in name:
        raise ValueError(f"A factor's name is a string without a dot, got {name!r}.")
    return factor if isinstance(factor, Factor) else Factor(factor)
