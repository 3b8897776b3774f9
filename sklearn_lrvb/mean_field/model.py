"""Models of named factors and terms, fitted by coordinate ascent (Section 2 of the paper)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Real

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.mean_field.arguments import numbers
from sklearn_lrvb.mean_field.ascent import CoordinateAscent
from sklearn_lrvb.mean_field.densities.density import Density
from sklearn_lrvb.mean_field.exponential_families import ExponentialFamily, NaturalParameterError
from sklearn_lrvb.mean_field.exponential_families.family import require_count
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
    terms : list of Term or Density
        Their sum is the log joint of data and parameters (paper, Equation 3), prior included.
        A constant of the densities that is left out is missing from the lower bound and changes nothing else.
        Densities such as ``gamma_prior("tau", 2.0, 1.0)`` stand for their terms, with all constants.

    Attributes
    ----------
    factors : dict, name -> Factor
        As given, with families made factors of one member, and with the weights of the rows that copies
        belong to.
    terms : tuple of Term
        As given, with densities replaced by their terms.

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
    >>> from sklearn_lrvb.mean_field.exponential_families import Gamma, UnivariateNormal
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

    def __init__(
        self, factors: Mapping[str, Factor | ExponentialFamily], terms: Iterable[Term | Density]
    ) -> None:
        if not isinstance(factors, Mapping) or not factors:
            raise ValueError(
                f"factors must be a dict, name -> Factor or family, with at least one; got {factors!r}."
            )
        if not isinstance(terms, Iterable):
            raise ValueError(f"terms must be a list of Term, [Term(...)] for a single one; got {terms!r}.")
        terms = tuple(terms)
        if not terms:
            raise ValueError("terms must be a list of at least one Term; got none.")
        self.factors = {name: _as_factor(name, of) for name, of in factors.items()}
        self._take_weights(terms)
        single, bound = [], []
        for number, item in enumerate(terms):
            try:
                with np.errstate(over="ignore", invalid="ignore"):  # What is not finite is refused by name.
                    of_item = item.terms(self.factors) if isinstance(item, Density) else [item]
                bound += [bind(term, self.factors) for term in of_item]
            except ValueError as error:
                raise ValueError(f"terms[{number}] = {item!r}: {error}") from None
            single += of_item
        self.terms = tuple(single)
        self.log_joint = LogJoint(self.factors, tuple(bound))

    def _take_weights(self, terms):
        """Give factors the weights of the rows that their copies belong to."""
        for item in terms:
            for name, weights in item.weights.items() if isinstance(item, Density) else ():
                factor = self.factors.get(name)
                if factor is not None and factor.weights is None and factor.lead == weights.shape:
                    self.factors[name] = replace(factor, weights=weights)

    def __repr__(self) -> str:
        factors = ", ".join(f"{name}: {factor}" for name, factor in self.factors.items())
        return f"MeanFieldModel({factors}; {len(self.terms)} terms)"

    def fit(
        self,
        start: Mapping[str, ArrayLike] | MeanFieldPosterior | None = None,
        *,
        tol: float = 1e-8,
        max_iter: int = 1000,
        n_init: int = 1,
        random_state: int | RandomState | None = None,
        accelerate: bool = True,
    ) -> MeanFieldPosterior:
        """Coordinate ascent: every factor in turn gets the best natural parameters given the others.

        Parameters
        ----------
        start : dict or MeanFieldPosterior, default=None
            By name, or the posterior of an earlier fit. Either natural parameters (D,) or (copies, D) by the
            name of the factor, or a guess of the variable by its own name, such as "mu.value",
            "pi.probability", or "z.indicator" for probabilities of the categories
            (`ExponentialFamily.variable`). Every sweep updates the factors without a start first, then those
            with one, each in the order of ``factors``, so that the others follow from a start before it is
            overwritten. A factor without a start begins at its family's default member. Where a model is
            symmetric in its components, as a mixture is, the start must tell them apart: give
            ``{"z.indicator": responsibilities}``, or try several random starts by ``n_init``.
        tol : float, default=1e-8
            Stop when a sweep moves q by at most this many of its own standard deviations: the root of the
            sum of d eta . d m over the factors, about the root of twice the gain of the lower bound. The
            remaining distance is larger by 1/(1 - rate) where coordinate ascent is slow, see
            `MeanFieldPosterior.newton_decrement`. The default costs linear response none of its digits.
        max_iter : int, default=1000
            Largest number of sweeps, for every start.
        n_init : int, default=1
            Number of starts, of which the fit with the highest lower bound is returned. The first is
            ``start``. In each of the others the variables are drawn from their families' default members,
            those of the largest factor being used first.
        random_state : int, RandomState instance or None, default=None
            Seed of the random starts; None uses numpy's global generator.
        accelerate : bool, default=True
            Whether to combine the last sweeps into a longer step (Anderson's acceleration) where that does
            not lower the bound. It changes the number of sweeps, not the fixed points.

        Returns
        -------
        posterior : MeanFieldPosterior
            The optimal q, with moments, draws and the linear response covariance.

        Raises
        ------
        ValueError
            A start does not fit, an update leaves its family, for example because a prior is missing, or the
            data are so extreme that a mean or a variance is not finite.

        Warns
        -----
        ConvergenceWarning
            ``max_iter`` sweeps did not suffice, or q is a saddle point of the lower bound. (Where the second
            derivatives have more than 10,000,000 entries, error bars find out, and raise an error.)
        UserWarning
            A mean is so far from zero that the relative error of covariances may exceed 1e-6.

        Examples
        --------
        Four observations of precision 1 and the prior mu ~ normal(0, 1) give a posterior of precision 5:

        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> x = [2.0, 3.0, 1.0, 4.0]
        >>> terms = [Term(sum(x), "mu.value"), Term(-0.5 * len(x), "mu.square"), Term(-0.5, "mu.square")]
        >>> posterior = MeanFieldModel({"mu": UnivariateNormal()}, terms).fit()
        >>> print(posterior.mean("mu.value").round(6), (posterior.std("mu.value") ** -2).round(6))
        2.0 5.0
        """
        if not isinstance(tol, Real) or not tol >= 0:
            raise ValueError(f"tol={tol!r} must be a number of at least 0.")
        require_count("max_iter", max_iter)
        require_count("n_init", n_init)
        natural, means = self._start(start)
        order = sorted(self.factors, key=lambda name: name in natural or name in means)
        best = self._ascend(natural, means, order, tol, max_iter, accelerate)
        rng = check_random_state(random_state) if n_init > 1 else None
        largest = max(self.factors, key=lambda name: self.factors[name].size)
        largest_last = sorted(self.factors, key=lambda name: name == largest)
        for _ in range(n_init - 1):
            means = {
                name: of.family.statistics_of(of.family.sample(_default(of), 1, rng)[0])
                for name, of in self.factors.items()
            }
            other = self._ascend({}, means, largest_last, tol, max_iter, accelerate)
            best = max(best, other, key=lambda posterior: posterior.lower_bound)
        self._warn(best, max_iter, tol)
        return best

    def _ascend(self, natural, means, order, tol, max_iter, accelerate):
        """Coordinate ascent from natural parameters or means of some factors: a MeanFieldPosterior."""
        natural = {name: natural.get(name, _default(of)) for name, of in self.factors.items()}
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # What is not finite is refused.
            ascent = CoordinateAscent(self.log_joint, natural, means, order, accelerate)
            length = ascent.run(tol, max_iter)
        lower_bounds = np.array(ascent.lower_bounds)
        for array in (*ascent.natural.values(), *ascent.means.values(), lower_bounds):
            array.flags.writeable = False
        return MeanFieldPosterior(
            self.log_joint, ascent.natural, ascent.means, lower_bounds, bool(length <= tol), float(length)
        )

    def _warn(self, posterior, max_iter, tol):
        if not posterior.converged:
            warn_caller(
                f"Coordinate ascent has not converged: sweep {max_iter} (= max_iter) still moved q by "
                f"{posterior.last_step:.1e} of its standard deviations, tol={tol:g}. Raise max_iter, or "
                f"start from this posterior.",
                ConvergenceWarning,
            )
        elif posterior.saddle is not None:
            warn_caller(
                f"Coordinate ascent has not ended at a maximum of the lower bound: {posterior.saddle}",
                ConvergenceWarning,
            )
        if posterior.lost_precision is not None:
            warn_caller(posterior.lost_precision)

    def _start(self, start):
        """Natural parameters, and means, of the factors that have a start: two dicts."""
        if isinstance(start, MeanFieldPosterior):
            start = start.natural_parameters
        if not isinstance(start, Mapping | None):
            raise ValueError(
                f"start must be a dict, factor -> natural parameters, or a MeanFieldPosterior; got {start!r}."
            )
        natural, means = {}, {}
        for key, value in (start or {}).items():
            name, dot, statistic = key.partition(".") if isinstance(key, str) else (key, "", "")
            if name not in self.factors:
                raise ValueError(
                    f"start names {key!r}, which is no factor; the factors are {', '.join(self.factors)}."
                )
            if name in natural or name in means:
                raise ValueError(f"start has two entries for the factor {name!r}.")
            if dot:
                means[name] = self._means_around(name, statistic, value)
            else:
                natural[name] = self._given_natural(name, value)
        return natural, means

    def _means_around(self, name, statistic, value):
        """Mean parameters of a factor for a guess of its variable."""
        factor = self.factors[name]
        family, what = factor.family, f"start[{name + '.' + statistic!r}]"
        if statistic != family.variable:
            raise ValueError(
                f"{what}: a guess of {name!r} is given as "
                f"{name + '.' + family.variable!r}, natural parameters as {name!r}."
            )
        value = numbers(what, value)
        with np.errstate(all="ignore"):  # What is not finite is refused below.
            means = family.means_around(value)
        if means.shape != factor.shape:
            raise ValueError(
                f"{what} has shape {value.shape}, which does not fit the factor's "
                f"copies {factor.lead} and its statistics {family.statistics}."
            )
        if not np.all(np.isfinite(means)):
            raise ValueError(
                f"{what} is outside the range of {type(family).__name__} variables, or at its edge."
            )
        return means

    def _given_natural(self, name, value):
        factor = self.factors[name]
        family = factor.family
        natural = numbers(f"start[{name!r}]", value)
        if natural.shape != factor.shape:
            listed = ", ".join(f"{statistic} {shape}" for statistic, shape in family.statistics.items())
            raise ValueError(
                f"start[{name!r}] has shape {natural.shape}, expected {factor.shape}: natural "
                f"parameters, flat in the order {listed}"
                + ("." if factor.copies is None else f", one row for each of {factor.copies} copies.")
            )
        try:
            family.check(natural)
        except NaturalParameterError as error:
            raise ValueError(f"start[{name!r}]: {error}.") from None
        return natural


def _default(factor):
    """Natural parameters of the default member of its family, for every copy."""
    return np.broadcast_to(factor.family.default_natural_parameters(), factor.shape)


def _as_factor(name, factor):
    if not isinstance(name, str) or not name or "." in name:
        raise ValueError(f"A factor's name must be a string without a dot, and not empty; got {name!r}.")
    return factor if isinstance(factor, Factor) else Factor(factor)
