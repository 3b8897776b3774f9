"""Models of named factors and terms, fitted by coordinate ascent (Section 2 of the paper)."""

import numbers
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.exponential_families import ExponentialFamily, NaturalParameterError
from sklearn_lrvb.exponential_families.family import require_count
from sklearn_lrvb.mean_field.factor import Factor
from sklearn_lrvb.mean_field.log_joint import LogJoint
from sklearn_lrvb.mean_field.posterior import MeanFieldPosterior
from sklearn_lrvb.mean_field.term import Term, bind


class MeanFieldModel:
    """A conditionally conjugate model: factors of q, and a log joint that is multilinear in their statistics.

    Parameters
    ----------
    factors : dict, name -> Factor or ExponentialFamily
        The factors of q. Coordinate ascent updates them in this order, those with a start last. A family
        alone is one member of it; ``Factor(family, copies=n)`` is n independent members.
    terms : list of Term
        Their sum is the log joint of data and parameters (Eq. nat_param_sum_of_theta_prods), prior included.
        A constant of the densities that is left out is missing from the lower bound and changes nothing else.

    Attributes
    ----------
    factors : dict, name -> Factor
        As given, with families made factors of one member.
    terms : tuple of Term
        As given.

    Raises
    ------
    ValueError
        Factors or terms are missing, a term does not fit the factors, or a factor occurs in no term.

    See Also
    --------
    Factor : A family with several independent members.
    Term : A part of the log joint.
    MeanFieldPosterior : What :meth:`fit` returns.

    Notes
    -----
    Statistics are raw moments, such as x and x x'. Where a mean m lies many posterior standard deviations s
    from zero, covariances lose digits: their relative error is of the order of 2e-16 (m/s)^2, and coordinate
    ascent may not reach ``tol``. `fit` warns from an error of 1e-6, that is from m/s = 70,000. The remedy is
    to centre the data, and in a regression the features.

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

    def __init__(self, factors: Mapping[str, Factor | ExponentialFamily], terms: Iterable[Term]) -> None:
        if not isinstance(factors, Mapping) or not factors:
            raise ValueError(
                f"factors must be a dict, name -> Factor or family, with at least one; got {factors!r}."
            )
        if not isinstance(terms, Iterable):
            raise ValueError(f"terms must be a list of Term, [Term(...)] for a single one; got {terms!r}.")
        terms = tuple(terms)
        if not terms:
            raise ValueError("terms must be a list of at least one Term; got none.")
        self.factors = {name: _as_factor(name, factor) for name, factor in factors.items()}
        bound = tuple(bind(term, number, self.factors) for number, term in enumerate(terms))
        for name in self.factors:
            if all(term.find(name) is None for term in bound):
                raise ValueError(
                    f"Factor {name!r} occurs in no term, so that nothing keeps it proper: add its prior."
                )
        self.terms = terms
        self.log_joint = LogJoint(self.factors, bound)

    def fit(
        self,
        start: "Mapping[str, ArrayLike] | MeanFieldPosterior | None" = None,
        *,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> MeanFieldPosterior:
        """Coordinate ascent: every factor in turn gets the best natural parameters given the others.

        Parameters
        ----------
        start : dict or MeanFieldPosterior, default=None
            Natural parameters (D,) or (copies, D) by the name of the factor, or the posterior of an earlier
            fit. Every sweep updates the factors without a start first, then those with one, each in the
            order of ``factors``, so that the others follow from a start before it is overwritten. A factor
            without a start begins at its family's default member. Where a model is symmetric in its
            components, as a mixture is, the start must tell them apart: give
            ``Categorical(K).natural_parameters(responsibilities)`` for the indicators.
        tol : float, default=1e-8
            Stop when a sweep moves q by at most this many of its own standard deviations: the root of the
            sum of d eta . d m over the factors, about the root of twice the gain of the lower bound. The
            remaining distance is larger by 1/(1 - rate) where coordinate ascent is slow, see
            `MeanFieldPosterior.newton_decrement`. The default costs linear response none of its digits.
        max_iter : int, default=1000
            Largest number of sweeps.

        Returns
        -------
        posterior : MeanFieldPosterior
            The optimal q, with moments, draws and the linear response covariance.

        Raises
        ------
        ValueError
            A start does not fit, an update leaves its family, for example because a prior is missing, or a
            mean is not finite.

        Warns
        -----
        ConvergenceWarning
            ``max_iter`` sweeps did not suffice.
        UserWarning
            A mean is so far from zero that the relative error of covariances may exceed 1e-6.

        Examples
        --------
        Four observations of precision 1 and the prior mu ~ normal(0, 1) give a posterior of precision 5:

        >>> from sklearn_lrvb.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> x = [2.0, 3.0, 1.0, 4.0]
        >>> terms = [Term(sum(x), "mu.value"), Term(-0.5 * len(x), "mu.square"), Term(-0.5, "mu.square")]
        >>> posterior = MeanFieldModel({"mu": UnivariateNormal()}, terms).fit()
        >>> print(posterior.mean("mu.value").round(6), (posterior.std("mu.value") ** -2).round(6))
        2.0 5.0
        """
        if not isinstance(tol, numbers.Real) or not tol >= 0:
            raise ValueError(f"tol={tol!r} must be a number of at least 0.")
        require_count("max_iter", max_iter)
        start = _as_start(start)
        natural = self._start(start)
        means = {name: self._mean(name, natural[name]) for name in self.factors}
        order = sorted(self.factors, key=lambda name: name in start)  # The sort keeps the order otherwise.
        lower_bounds = []
        for _ in range(max_iter):
            length = self._sweep(order, natural, means)
            lower_bounds.append(self._lower_bound(natural, means))
            if length <= tol:
                break
        else:
            warn_caller(
                f"Coordinate ascent has not converged: sweep {max_iter} (= max_iter) still moved q by "
                f"{length:.1e} of its standard deviations, tol={tol:g}. Raise max_iter, or start from "
                f"this posterior.",
                ConvergenceWarning,
            )
        lower_bounds = np.array(lower_bounds)
        for array in (*natural.values(), *means.values(), lower_bounds):
            array.flags.writeable = False
        posterior = MeanFieldPosterior(self.log_joint, natural, means, lower_bounds, bool(length <= tol))
        if posterior.lost_precision is not None:
            warn_caller(posterior.lost_precision)
        return posterior

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

    def _mean(self, name, natural):
        """Mean parameters. A ValueError where they are not finite."""
        factor = self.factors[name]
        mean = factor.family.mean_parameters(natural)
        if not np.all(np.isfinite(mean)):
            position = tuple(np.argwhere(~np.isfinite(mean))[0])
            label = factor.labels(name)[np.ravel_multi_index(position, mean.shape)]
            raise ValueError(
                f"The mean of {label} is {mean[position]}, where the natural parameters of its member are "
                f"{_listed(natural[position[:-1]])}. (a) Check the start. (b) Scale the data, if they are "
                "extreme."
            )
        return mean

    def _sweep(self, order, natural, means):
        """Update every factor in place, and return how far q moved, in its standard deviations."""
        squared_length = 0.0
        for name in order:
            factor = self.factors[name]
            updated = self.log_joint.natural_parameters(means, name)
            try:
                factor.family.check(updated)
            except NaturalParameterError as error:
                raise ValueError(self._improper_update(name, updated, error)) from None
            mean = self._mean(name, updated)
            squared_length += np.vdot(updated - natural[name], mean - means[name])
            natural[name], means[name] = updated, mean
        return np.sqrt(max(squared_length, 0.0))

    def _improper_update(self, name, updated, error):
        factor, statistic = self.factors[name], error.statistic
        shown = _listed(factor.entries(updated, statistic)[error.copy])
        label = f"{name}.{statistic}"
        occurs = any(
            (argument.factor, argument.statistic) == (name, statistic)
            for term in self.log_joint.terms
            for argument in term.arguments
        )
        remedy = (
            f"The terms in {label!r} do not keep it proper. (a) Add its prior term, if that is missing. (b) "
            "Check the signs of the coefficients."
            if occurs
            else f"No term has {label!r}: its prior is missing."
        )
        return (
            f"The update of factor {name!r} leaves the {type(factor.family).__name__} family: {error}. "
            f"The natural parameter of {label!r} is {shown}. {remedy}"
        )

    def _lower_bound(self, natural, means):
        """The ELBO: the expected log joint plus the entropies A - eta . m."""
        entropies = (
            np.sum(factor.family.log_partition(natural[name])) - np.vdot(natural[name], means[name])
            for name, factor in self.factors.items()
        )
        return self.log_joint.value(means) + sum(entropies)


def _listed(entries):
    """A number, or an abridged array, as text."""
    return f"{entries:.4g}" if np.ndim(entries) == 0 else np.array2string(entries, precision=4, threshold=9)


def _as_start(start):
    if start is None:
        return {}
    if isinstance(start, MeanFieldPosterior):
        return start.natural_parameters
    if not isinstance(start, Mapping):
        raise ValueError(
            f"start must be a dict, factor -> natural parameters, or a MeanFieldPosterior; got {start!r}."
        )
    return start


def _as_factor(name, factor):
    if not isinstance(name, str) or not name or "." in name:
        raise ValueError(f"A factor's name must be a string without a dot, and not empty; got {name!r}.")
    return factor if isinstance(factor, Factor) else Factor(factor)
