"""The fitted q: moments, draws, V, H and the linear response covariance (Sections 3 and 4)."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.linear_response import IndefiniteInformationError
from sklearn_lrvb.mean_field.delta_method import FunctionOfParameters, value_and_jacobian
from sklearn_lrvb.mean_field.exact import N_CHAINS, exact_draws
from sklearn_lrvb.mean_field.exponential_families import Categorical
from sklearn_lrvb.mean_field.exponential_families.family import require_count
from sklearn_lrvb.mean_field.factor import Factor, entry_label, named_factor
from sklearn_lrvb.mean_field.log_joint import LogJoint
from sklearn_lrvb.mean_field.posterior_check import MeanFieldCheck, checked_posterior, integrated_factors
from sklearn_lrvb.mean_field.quantities import (
    Quantity,
    coordinates,
    correlated_draws,
    own_covariances,
    resolve_quantity,
)
from sklearn_lrvb.mean_field.response import LinearResponse, require_memory
from sklearn_lrvb.reports import dataset, in_arviz, require_arviz, require_interval, required_pandas

if TYPE_CHECKING:
    import arviz
    import pandas as pd
    import xarray as xr

_WARN_FROM_ERROR = 1e-6  # Relative error of covariances, by the cancellation of raw moments, that warns.

# An eigenvalue of the observed information, in units of the complete one, is as uncertain as q is far from
# the fixed point, in its standard deviations. It counts as zero up to ``_FLAT_MARGIN`` times that distance,
# where q is within ``_FLAT_FROM`` of the fixed point.
_FLAT_MARGIN, _FLAT_FROM = 10.0, 1e-6
_CHECKED_UP_TO = 10_000_000  # Number of entries of H up to which a fit looks for a saddle, in about a second.
_FAR_FROM_OPTIMUM = 0.1  # Newton decrement, in posterior standard deviations, that warns.


@dataclass(frozen=True, eq=False, repr=False)
class MeanFieldPosterior:
    """The posterior q(theta) = prod_j q_j(theta_j), as `MeanFieldModel.fit` returns it.

    Attributes
    ----------
    log_joint : LogJoint
        The model's expected log joint, with its factors.
    natural_parameters : dict, name of the factor -> ndarray of shape (D,) or (copies, D)
        eta.
    mean_parameters : dict, name of the factor -> ndarray of the same shape
        m, the means of the statistics under q.
    lower_bounds : ndarray of shape (n_iter,)
        The lower bound on the log evidence after every sweep, in nats.
    converged : bool
        Whether the last sweep moved q by ``tol`` at most.
    last_step : float
        How far the last sweep moved q, in its standard deviations.

    Examples
    --------
    A normal posterior of two numbers with precision [[2, 1], [1, 1]], a factor for each:

    >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
    >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
    >>> posterior = MeanFieldModel(
    ...     {"a": UnivariateNormal(), "b": UnivariateNormal()},
    ...     [Term(-1.0, "a.square"), Term(-0.5, "b.square"), Term(-1.0, "a.value", "b.value")],
    ... ).fit()
    >>> posterior.covariance("a.value", "b.value").round(6)
    array([[ 1., -1.],
           [-1.,  2.]])
    >>> print(posterior.std("b.value").round(6), posterior.std("b.value", method="mean_field"))
    1.414214 1.0
    """

    log_joint: LogJoint
    natural_parameters: dict[str, NDArray[np.float64]]
    mean_parameters: dict[str, NDArray[np.float64]]
    lower_bounds: NDArray[np.float64]
    converged: bool
    last_step: float = 0.0

    @property
    def factors(self) -> dict[str, Factor]:
        """The factors of q by name."""
        return self.log_joint.factors

    @property
    def lower_bound(self) -> float:
        """The ELBO in nats: a lower bound on the log evidence if the terms hold all constants."""
        return float(self.lower_bounds[-1])

    @property
    def n_iter(self) -> int:
        """Number of sweeps of coordinate ascent."""
        return len(self.lower_bounds)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Labels of all statistics, such as "mu.value[0]" or "z.indicator[3,1]", factor by factor."""
        return tuple(np.concatenate([factor.labels(name) for name, factor in self.factors.items()]))

    def __repr__(self) -> str:
        factors = ", ".join(f"{name}: {factor}" for name, factor in self.factors.items())
        state = "converged" if self.converged else "not converged"
        bound = f"lower bound {self.lower_bound:.6g}"
        return f"MeanFieldPosterior({factors}; {state} after {self.n_iter} sweeps, {bound})"

    # Means and draws.

    def mean(self, statistic: str) -> NDArray[np.float64]:
        """Mean of one statistic under q.

        Parameters
        ----------
        statistic : str
            "factor.statistic", or "factor" where its family has one statistic, or a derived function such as
            "pi.probability" (`ExponentialFamily.derived`).

        Returns
        -------
        mean : ndarray
            In the statistic's shape, the axis of copies first; in units of the statistic.

        Raises
        ------
        ValueError
            There is no such statistic.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> log_joint = [  # of a normal distribution with mean (-1, 2) and precision [[2, 1], [1, 1]]
        ...     Term(-1.0, "a.square"), Term(-0.5, "b.square"),
        ...     Term(-1.0, "a.value", "b.value"), Term(1.0, "b.value"),
        ... ]
        >>> posterior = MeanFieldModel({"a": UnivariateNormal(), "b": UnivariateNormal()}, log_joint).fit()
        >>> print(posterior.mean("b.value").round(6))
        2.0
        """
        quantity = resolve_quantity(statistic, self.factors, single=True)
        name = quantity.name
        if not quantity.is_derived:
            return quantity.factor.entries(self.mean_parameters[name], quantity.label.partition(".")[2])
        return quantity.derived_means(self.natural_parameters[name]).reshape(quantity.shape)

    def sample(
        self,
        n_draws: int,
        random_state: int | RandomState | None = None,
        *,
        method: Literal["mean_field", "lrvb", "exact"] = "mean_field",
        names: str | Sequence[str] | None = None,
    ) -> dict[str, NDArray]:
        """Draws from q, with the covariance of linear response, or from the exact posterior.

        Parameters
        ----------
        n_draws : int
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None uses numpy's global generator.
        method : {"mean_field", "lrvb", "exact"}, default="mean_field"
            "mean_field": from q, in which factors, and copies of one factor, are independent of each other.
            "lrvb": of the same shapes and within the same ranges, but with the covariance of linear response
            between all of them, in coordinates that may be any real numbers: x of normal variables, logs of
            positive ones, log-odds of probabilities, logs and entries of a triangular root of precision
            matrices (`ExponentialFamily.coordinates_of`).
            "exact": from the posterior itself, by Gibbs sampling, in 128 chains that start at draws by linear
            response, until each has had three independent draws of every entry, or for 2048 sweeps.
        names : str or sequence of str, default=None
            Factors to draw. By default all, except categories by "lrvb", which have no coordinates.

        Returns
        -------
        draws : dict, name of the factor -> ndarray of shape (n_draws, copies..., shape of the variable)
            Of the variables themselves, not of their statistics.

        Raises
        ------
        ValueError
            ``n_draws`` is no number of at least 1, unknown method or factor, no factor at all, a factor
            without coordinates, or one that changes along a flat direction. By "exact", also a factor whose
            copies have weights.
        IndefiniteInformationError, MemoryError
            As in `covariance`.

        Warns
        -----
        ConvergenceWarning
            The chains of "exact" do not agree.
        UserWarning
            As in `covariance`.

        See Also
        --------
        MeanFieldPosterior.covariance : The covariance itself.

        Examples
        --------
        Under q the variables have precision 2 and 1, and do not depend on each other. Their posterior has the
        standard deviations 1 and 1.4:

        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> log_joint = [  # of a normal distribution with mean (-1, 2) and precision [[2, 1], [1, 1]]
        ...     Term(-1.0, "a.square"), Term(-0.5, "b.square"),
        ...     Term(-1.0, "a.value", "b.value"), Term(1.0, "b.value"),
        ... ]
        >>> posterior = MeanFieldModel({"a": UnivariateNormal(), "b": UnivariateNormal()}, log_joint).fit()
        >>> for method in ("mean_field", "lrvb"):
        ...     draws = posterior.sample(10_000, random_state=0, method=method)
        ...     print(f"{draws['a'].std():.1f} {draws['b'].std():.1f}")
        0.7 1.0
        1.0 1.4
        """
        if method not in ("lrvb", "mean_field", "exact"):
            raise ValueError(f"method={method!r} is none of 'lrvb', 'mean_field' and 'exact'.")
        require_count("n_draws", n_draws)
        names = self._factors_to_draw(names, method)
        rng, natural = check_random_state(random_state), self.natural_parameters
        if method == "exact":
            draws = self._exact_draws(n_draws, rng)
            return {name: draws[name] for name in names}
        draws = {name: self.factors[name].family.sample(natural[name], n_draws, rng) for name in names}
        if method == "mean_field":
            return draws
        quantities, covariance = self._coordinates(names)
        return correlated_draws(quantities, natural, draws, covariance)[0]

    def _exact_draws(self, n_draws, rng):
        """Draws of all factors from the exact posterior, with a warning where the chains do not agree."""
        for name, factor in self.factors.items():
            if factor.weights is not None:
                raise ValueError(
                    f"{name!r} has copies with weights, each of which stands for many members with draws of "
                    "their own: repeat rows instead of weights, or use method='lrvb'."
                )
        start = self.sample(N_CHAINS, rng)
        if any(not isinstance(factor.family, Categorical) for factor in self.factors.values()):
            start |= self.sample(N_CHAINS, rng, method="lrvb")
        draws, effective, is_enough = exact_draws(self.log_joint, start, n_draws, rng)
        if not is_enough:
            warn_caller(
                f"Not converged: {N_CHAINS} chains have {effective:.0f} independent draws of the slowest "
                "entry, not three each. The posterior has several modes, or moves slowly: put unknowns that "
                "determine each other into one factor.",
                ConvergenceWarning,
            )
        return draws

    def _coordinates(self, names):
        """Coordinates of some factors, and their covariance by linear response: a list, and (d, d)."""
        natural = self.natural_parameters
        quantities = [coordinates(name, self.factors[name], natural[name]) for name in names]
        covariance = self._covariance(quantities, "lrvb")
        for quantity in quantities:
            if self._linear_response.is_flat([quantity]).any():
                raise ValueError(
                    f"{quantity.name!r} changes along a flat direction of the log joint (see "
                    "flat_directions), and has no finite variance. Leave it out of names, or add a prior "
                    "that fixes the direction."
                )
        return quantities, covariance

    def to_arviz(
        self,
        n_draws: int = 1000,
        random_state: int | RandomState | None = None,
        *,
        method: Literal["lrvb", "mean_field", "exact"] = "lrvb",
        names: str | Sequence[str] | None = None,
    ) -> "xr.DataTree | arviz.InferenceData":
        """Draws for ArviZ, whose plots and tables then work as for a model that was sampled.

        Parameters
        ----------
        n_draws : int, default=1000
            Number of draws, independent of each other, that form one chain.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws, as in `sample`.
        method : {"lrvb", "mean_field", "exact"}, default="lrvb"
            With the covariance of linear response, from q, or from the exact posterior.
        names : str or sequence of str, default=None
            Factors to draw, as in `sample`.

        Returns
        -------
        data : xarray.DataTree or arviz.InferenceData
            A DataTree where arviz-base is installed, otherwise the InferenceData of arviz 0.x, with the group
            posterior: a variable for every factor, by its name, with the dimensions chain, draw, and
            "name_0", "name_1", ... for the axes of copies and of the variable.

        Raises
        ------
        ImportError
            No ArviZ is installed.
        ValueError, IndefiniteInformationError, MemoryError
            As in `sample`.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term
        >>> terms = [Term([24.0, 4.0], "tau.log"), Term([-50.0, -2.0], "tau.value")]
        >>> posterior = MeanFieldModel({"tau": Factor(Gamma(), 2)}, terms).fit()
        >>> data = posterior.to_arviz(n_draws=100, random_state=0)
        >>> dict(data["posterior"]["tau"].sizes)
        {'chain': 1, 'draw': 100, 'tau_0': 2}
        """
        require_arviz()
        draws = self.sample(n_draws, random_state, method=method, names=names)
        axes = {name: [f"{name}_{axis}" for axis in range(of.ndim - 1)] for name, of in draws.items()}
        variables = {name: (tuple(axes[name]), of) for name, of in draws.items()}
        coords = {
            axis: np.arange(size)
            for name, of in draws.items()
            for axis, size in zip(axes[name], of.shape[1:], strict=True)
        }
        return in_arviz({"posterior": dataset(variables, coords, is_drawn=True)})

    # V, H, and covariances and standard deviations.

    def mean_field_covariance(self) -> NDArray[np.float64]:
        """V, the covariance of all statistics under q, in the order of `names`: (d, d).

        Returns
        -------
        covariance : ndarray of shape (d, d)
            V, block diagonal, in products of the units of the statistics.

        Raises
        ------
        MemoryError
            It would take more than half of the machine's memory (or 2 GB).

        See Also
        --------
        MeanFieldPosterior.covariance : The same of some statistics, and by linear response.

        Examples
        --------
        The variances of a and b under q, one over their precisions 2 and 1:

        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> log_joint = [  # of a normal distribution with mean (-1, 2) and precision [[2, 1], [1, 1]]
        ...     Term(-1.0, "a.square"), Term(-0.5, "b.square"),
        ...     Term(-1.0, "a.value", "b.value"), Term(1.0, "b.value"),
        ... ]
        >>> posterior = MeanFieldModel({"a": UnivariateNormal(), "b": UnivariateNormal()}, log_joint).fit()
        >>> V = posterior.mean_field_covariance()
        >>> print(posterior.names[0], V[0, 0].round(12), posterior.names[2], V[2, 2].round(12))
        a.value 0.5 b.value 1.0
        """
        return self.covariance(*self.factors, method="mean_field")

    def expected_hessian(self) -> NDArray[np.float64]:
        """H, the Hessian of the expected log joint in all mean parameters (paper, Equation 18): (d, d).

        Rows and columns are in the order of `names`.

        Returns
        -------
        hessian : ndarray of shape (d, d)
            H, symmetric, in one over products of the units of the statistics. The covariance of a copy with a
            weight (`Factor`) is that of one member, which V and H alone do not give.

        Raises
        ------
        MemoryError
            It would take more than half of the machine's memory (or 2 GB).

        Examples
        --------
        V and H give the linear response covariance (paper, Equation 10):

        >>> import numpy as np
        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> log_joint = [  # of a normal distribution with mean (-1, 2) and precision [[2, 1], [1, 1]]
        ...     Term(-1.0, "a.square"), Term(-0.5, "b.square"),
        ...     Term(-1.0, "a.value", "b.value"), Term(1.0, "b.value"),
        ... ]
        >>> posterior = MeanFieldModel({"a": UnivariateNormal(), "b": UnivariateNormal()}, log_joint).fit()
        >>> V, H = posterior.mean_field_covariance(), posterior.expected_hessian()
        >>> covariance = np.linalg.solve(np.eye(len(V)) - V @ H, V)
        >>> print(covariance[2, 2].round(12), (posterior.std("b.value") ** 2).round(12))
        2.0 2.0
        """
        self._require_matrix([resolve_quantity(name, self.factors) for name in self.factors], "Hessian")
        counts = np.concatenate([of.counted(np.ones(of.shape)).ravel() for of in self.factors.values()])
        hessian = self.log_joint.hessian(self.mean_parameters, self.factors).toarray()
        hessian *= counts
        hessian *= counts[:, None]
        return hessian

    def covariance(
        self, *statistics: str, method: Literal["lrvb", "mean_field"] = "lrvb"
    ) -> NDArray[np.float64]:
        """Posterior covariance of statistics.

        Factors that share no term with each other, the largest first, are eliminated at once, and of the
        others all that few terms couple (paper, Equation 11). A factor with a copy for every observation
        therefore needs no matrix of its size squared. What is computed for one answer serves all others.

        Parameters
        ----------
        *statistics : str
            "factor.statistic", or "factor" for all of its statistics, or a derived function of a family such
            as "pi.probability" (`ExponentialFamily.derived`). The entries stand one after the other in the
            order asked for, those of a factor in the order of `names`.
        method : {"lrvb", "mean_field"}, default="lrvb"
            Linear response (paper, Equation 10), or q's own covariance V.

        Returns
        -------
        covariance : ndarray of shape (d, d)
            Of the d entries of all ``statistics``, in products of their units.

        Raises
        ------
        ValueError
            Unknown statistic or method.
        IndefiniteInformationError
            q is no strict local optimum. It is a ValueError. Its ``direction`` is the way in which q leaves
            the fixed point, in mean-field standard deviations; its ``names`` label the entries of that.
        MemoryError
            It would take more than half of the machine's memory (or 2 GB); says what to ask for instead.

        Warns
        -----
        UserWarning
            q is more than a tenth of a posterior standard deviation from the optimum.

        See Also
        --------
        MeanFieldPosterior.std : Standard deviations alone, without a matrix.

        Examples
        --------
        The exact covariance of a and b is the inverse of their precision matrix. Linear response finds it, q
        does not:

        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> log_joint = [  # of a normal distribution with mean (-1, 2) and precision [[2, 1], [1, 1]]
        ...     Term(-1.0, "a.square"), Term(-0.5, "b.square"),
        ...     Term(-1.0, "a.value", "b.value"), Term(1.0, "b.value"),
        ... ]
        >>> posterior = MeanFieldModel({"a": UnivariateNormal(), "b": UnivariateNormal()}, log_joint).fit()
        >>> posterior.covariance("a.value", "b.value").round(12)
        array([[ 1., -1.],
               [-1.,  2.]])
        >>> posterior.covariance("a.value", "b.value", method="mean_field").round(12)
        array([[0.5, 0. ],
               [0. , 1. ]])
        """
        _check_method(method)
        if not statistics:
            raise ValueError(f"Name the statistics to report; all are {', '.join(self._all_statistics)}.")
        quantities = [resolve_quantity(text, self.factors) for text in statistics]
        covariance = self._covariance(quantities, method)
        if method == "lrvb":
            flat = self._unidentified(quantities)
            covariance[flat, :] = covariance[:, flat] = np.nan
        return covariance

    def std(self, statistic: str, method: Literal["lrvb", "mean_field"] = "lrvb") -> NDArray[np.float64]:
        """Posterior standard deviations of one statistic.

        No matrix of all statistics is needed.

        Parameters
        ----------
        statistic : str
            "factor.statistic", or "factor" where its family has one statistic, or a derived function such as
            "tau.standard_deviation" (`ExponentialFamily.derived`).
        method : {"lrvb", "mean_field"}, default="lrvb"
            Linear response (paper, Equation 10), or under q itself.

        Returns
        -------
        std : ndarray
            In the statistic's shape, the axis of copies first; in units of the statistic.

        Raises
        ------
        ValueError, IndefiniteInformationError, MemoryError
            As in `covariance`.

        Warns
        -----
        UserWarning
            As in `covariance`.

        See Also
        --------
        MeanFieldPosterior.covariance : With correlations.

        Examples
        --------
        The exact standard deviation of b is the root of 2:

        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> log_joint = [  # of a normal distribution with mean (-1, 2) and precision [[2, 1], [1, 1]]
        ...     Term(-1.0, "a.square"), Term(-0.5, "b.square"),
        ...     Term(-1.0, "a.value", "b.value"), Term(1.0, "b.value"),
        ... ]
        >>> posterior = MeanFieldModel({"a": UnivariateNormal(), "b": UnivariateNormal()}, log_joint).fit()
        >>> print(posterior.std("b.value").round(4), posterior.std("b.value", method="mean_field").round(4))
        1.4142 1.0
        """
        _check_method(method)
        quantity = resolve_quantity(statistic, self.factors, single=True)
        if method == "lrvb":
            self._warn_if_far()
            variance = self._linear_response.variances(quantity)
            variance[self._unidentified([quantity])] = np.nan
        else:
            variance = quantity.variances(self.natural_parameters[quantity.name])
        # Round-off can make the variance of a constant statistic negative.
        return np.sqrt(np.maximum(variance, 0.0)).reshape(quantity.shape)

    def posterior_check(self, random_state: int | RandomState | None = None) -> MeanFieldCheck:
        """Whether linear response is right: a verdict, from draws by it and the log joint at these.

        Unknowns no two of which meet in a term are integrated out, categories first. The others are drawn 512
        times by linear response. The check sees the one optimum that q is at, and no other.

        Parameters
        ----------
        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None uses numpy's global generator.

        Returns
        -------
        check : MeanFieldCheck
            ``state`` is "good" (standard deviations within 10 %, means within 0.2 of them), "rough" (a third,
            and 0.6) or "wrong"; ``verdict`` says so in a sentence.

        Raises
        ------
        ValueError
            Two categorical factors share a term, a factor has no coordinates, or changes along a flat
            direction.
        IndefiniteInformationError, MemoryError
            As in `covariance`.

        Warns
        -----
        UserWarning
            As in `covariance`.

        See Also
        --------
        MeanFieldPosterior.sample : Draws from the exact posterior, method="exact".

        Examples
        --------
        Linear response is exact for normal posteriors:

        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> log_joint = [  # of a normal distribution with precision [[2, 1], [1, 1]]
        ...     Term(-1.0, "a.square"), Term(-0.5, "b.square"), Term(-1.0, "a.value", "b.value"),
        ... ]
        >>> posterior = MeanFieldModel({"a": UnivariateNormal(), "b": UnivariateNormal()}, log_joint).fit()
        >>> print(posterior.posterior_check(random_state=0).verdict)
        Linear response is good: sds within 10 %, means within 0.2 sd.
        """
        integrated = integrated_factors(self.log_joint)
        names = [name for name in self.factors if name not in integrated]
        quantities, covariance = self._coordinates(names) if names else ([], None)
        rng = check_random_state(random_state)
        return checked_posterior(self.log_joint, self.natural_parameters, quantities, covariance, rng)

    # Functions of parameters, and a table.

    def function(
        self, function: Callable, *statistics: str, method: Literal["lrvb", "mean_field"] = "lrvb"
    ) -> FunctionOfParameters:
        """A function of parameters, with its standard deviation by the delta method.

        It is evaluated at the posterior means, and taken to be linear around them. For probabilities,
        variances and other functions of one variable of which a family knows the moments, `mean` and `std`
        need no such approximation (`ExponentialFamily.derived`).

        Parameters
        ----------
        function : callable
            From arrays in the shapes of the statistics, one argument for each, to a number or an array.
        *statistics : str
            "factor.statistic" or "factor.derived", the arguments in order.
        method : {"lrvb", "mean_field"}, default="lrvb"
            Linear response (paper, Equation 10), or q's own covariance V.

        Returns
        -------
        result : FunctionOfParameters
            ``value``, ``std`` and ``covariance``.

        Raises
        ------
        ValueError
            The function is not finite, or an argument is unknown or infinite.
        IndefiniteInformationError, MemoryError
            As in `covariance`.

        Warns
        -----
        UserWarning
            As in `covariance`; the standard deviations of entries that change along a flat direction are nan.

        Examples
        --------
        The difference of two correlated numbers, which depends on both:

        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> log_joint = [  # of a normal distribution with mean (-1, 2) and precision [[2, 1], [1, 1]]
        ...     Term(-1.0, "a.square"), Term(-0.5, "b.square"),
        ...     Term(-1.0, "a.value", "b.value"), Term(1.0, "b.value"),
        ... ]
        >>> posterior = MeanFieldModel({"a": UnivariateNormal(), "b": UnivariateNormal()}, log_joint).fit()
        >>> posterior.function(lambda a, b: a - b, "a.value", "b.value")
        -3.0 +- 2.2
        >>> posterior.function(lambda a, b: a - b, "a.value", "b.value", method="mean_field")
        -3.0 +- 1.2
        """
        _check_method(method)
        if not statistics:
            raise ValueError(f"Name the function's arguments; all are {', '.join(self._all_statistics)}.")
        quantities = [resolve_quantity(text, self.factors, single=True) for text in statistics]
        means = [np.array(self.mean(text)) for text in statistics]
        deviations = [self.std(text, "mean_field") for text in statistics]
        for text, mean, deviation in zip(statistics, means, deviations, strict=True):
            if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(deviation))):
                raise ValueError(f"The mean or the variance of {text!r} is infinite under q.")
        self._require_matrix(quantities, "covariance")
        value, jacobian = value_and_jacobian(function, means, deviations)
        covariance = jacobian @ self._covariance(quantities, method) @ jacobian.T
        if method == "lrvb":
            scaled = jacobian * np.concatenate([deviation.ravel() for deviation in deviations])
            flat = self._unidentified(quantities, scaled)
            covariance[flat, :] = covariance[:, flat] = np.nan
        std = np.sqrt(np.maximum(np.diag(covariance), 0.0)).reshape(value.shape)
        return FunctionOfParameters(value, std, covariance)

    def summary(self, *statistics: str, interval: float = 0.95) -> "pd.DataFrame":
        """Means, standard deviations and credible intervals, as a table.

        Parameters
        ----------
        *statistics : str
            "factor.statistic" or "factor.derived". By default the variables of all factors, such as
            "mu.value" and "pi.probability", except categories (`ExponentialFamily.variable`).
        interval : float, default=0.95
            Probability of the central credible interval, above 0 and below 1.

        Returns
        -------
        summary : pandas.DataFrame
            A row for every entry, with the columns

            * mean: the posterior mean;
            * sd: its standard deviation by linear response;
            * mean_field_sd: that under q, and ratio: sd over mean_field_sd;
            * lower, upper: ends of the central interval, quantiles of a variable of this mean and standard
              deviation: beta for probabilities, gamma for rates and precisions, inverse gamma for variances,
              else normal.

            It is displayed with two digits of every standard deviation, and holds all digits.

        Raises
        ------
        ImportError
            pandas is not installed.
        ValueError
            Unknown statistic, or no probability.
        IndefiniteInformationError, MemoryError
            As in `std`.

        Warns
        -----
        UserWarning
            As in `std`.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> terms = [Term(24.0, "tau.log"), Term(-50.0, "tau.value")]  # tau ~ gamma(shape 25, rate 50)
        >>> posterior = MeanFieldModel({"tau": Gamma()}, terms).fit()
        >>> posterior.summary("tau.value", "tau.standard_deviation")
                                mean    sd mean_field_sd ratio lower upper
        tau.value               0.50  0.10          0.10  1.00  0.32  0.71
        tau.standard_deviation  1.44  0.15          0.15  1.00  1.18  1.76
        """
        require_interval(interval)
        pd = required_pandas("summary")
        from sklearn_lrvb.reports.posterior_summary import PosteriorSummary, summary_rows

        end = norm.ppf(0.5 + 0.5 * interval)
        parts = []
        variables = [
            f"{name}.{factor.family.variable}"
            for name, factor in self.factors.items()
            if not isinstance(factor.family, Categorical)
        ]
        for text in statistics or variables:
            quantity = resolve_quantity(text, self.factors, single=True)
            mean = np.ravel(self.mean(text)).astype(float)
            sd, mean_field_sd = (np.ravel(self.std(text, method)) for method in ("lrvb", "mean_field"))
            ends = [quantity.quantiles(normal, mean, sd) for normal in (-end, end)]
            parts.append(summary_rows(quantity.labels(), mean, sd, mean_field_sd, ends))
        return PosteriorSummary(pd.concat(parts))

    # How far linear response can be trusted.

    @cached_property
    def newton_decrement(self) -> float:
        """Distance to the optimum in posterior standard deviations: sqrt(r' Sigma r), r the residual of eta.

        Half its square is the lower bound still to be gained, in nats. It is infinite where q is no strict
        local optimum.
        """
        try:
            return self._linear_response.decrement(self._residuals)
        except IndefiniteInformationError:
            return np.inf

    @cached_property
    def saddle(self) -> str | None:
        """Why q is no local maximum of the lower bound; None if it is one, or if finding out takes long.

        `fit` warns of it. Where it is not looked for, `std` and `covariance` raise an error.
        """
        if self.log_joint.n_hessian_entries(self.factors) > _CHECKED_UP_TO:
            return None
        with contextlib.suppress(MemoryError):
            try:
                self._linear_response  # noqa: B018
            except IndefiniteInformationError as error:
                return str(error)
        return None

    @cached_property
    def flat_directions(self) -> NDArray[np.float64]:
        """Directions of q along which the log joint is flat, such as rotations: (n_flat, d), often (0, d).

        In mean-field standard deviations of all statistics, in the order of `names`. They are left out of the
        linear response: what changes along them has the standard deviation nan.
        """
        everything = [resolve_quantity(name, self.factors) for name in self.factors]
        return self._linear_response.along_flat(everything).T

    @cached_property
    def lost_precision(self) -> str | None:
        """Which mean is so far from zero that covariances lose digits, and what to do; None if there is none.

        The joint covariance of x and x x' is nearly singular there: relative errors are about
        eps (mean/sd)^2, and are reported from 1e-6.
        """
        worst, message = _WARN_FROM_ERROR, None
        for name, factor in self.factors.items():
            deviations = factor.family.location_deviations(self.natural_parameters[name])
            for statistic, deviation in deviations.items():
                mean = self.mean(f"{name}.{statistic}")
                lost = np.finfo(float).eps * (mean / deviation) ** 2
                position = np.unravel_index(np.argmax(lost), lost.shape)
                if lost[position] > worst:
                    worst = lost[position]
                    message = (
                        f"{entry_label(f'{name}.{statistic}', position)} has mean {mean[position]:.6g} and "
                        f"standard deviation {deviation[position]:.2g}: so far from zero, raw moments lose "
                        f"digits, and covariances have relative errors up to {worst:.0e}. Centre the data."
                    )
        return message

    # What the answers are computed from.

    def _covariance(self, quantities, method):
        """Covariance of quantities, one after the other, also along flat directions: (d, d)."""
        self._require_matrix(quantities, "covariance")
        if method == "lrvb":
            self._warn_if_far()
            return self._linear_response.covariance(quantities)
        covariance = np.zeros(2 * (sum(len(quantity.positions) for quantity in quantities),))
        for part, other, block in own_covariances(quantities, self.natural_parameters, Quantity.covariance):
            covariance[part, other] = block
        return covariance

    @cached_property
    def _linear_response(self):
        squared = 0.0  # of the change by an update of all factors, in mean-field standard deviations
        for name, factor in self.factors.items():
            residual = self._residuals[name][..., None]
            response = factor.family.covariance_product(self.natural_parameters[name], residual)
            squared += np.vdot(residual, factor.counted(response))
        distance = np.sqrt(max(squared, 0.0))
        flat_below = _FLAT_MARGIN * distance if distance <= _FLAT_FROM else None
        remedies = [
            "q is a saddle point, for example two components that coincide: start elsewhere, or try several "
            "random starts (n_init=10).",
            "The log joint is flat or improper along this direction: add the missing prior, or check "
            "the signs.",
        ]
        if not self.converged:
            remedies.insert(0, f"Coordinate ascent stopped early ({self.n_iter} sweeps): raise max_iter.")
        if self.lost_precision is not None:
            remedies.append(self.lost_precision)
        return LinearResponse(
            self.log_joint, self.natural_parameters, self.mean_parameters, flat_below, remedies
        )

    @cached_property
    def _residuals(self):
        """Changes of eta by an update of each factor: dict, name -> ndarray."""
        return {
            name: self.log_joint.natural_parameters(self.mean_parameters, name) - natural
            for name, natural in self.natural_parameters.items()
        }

    # Checks of what is asked for, and warnings about answers.

    def _factors_to_draw(self, names, method):
        """The names of the factors to draw, each once."""
        if names is None:
            without = Categorical if method == "lrvb" else ()
            names = [name for name, of in self.factors.items() if not isinstance(of.family, without)]
        names = list(dict.fromkeys([names] if isinstance(names, str) else names))
        for name in names:
            named_factor(name, self.factors)
        if not names:
            raise ValueError(
                f"there is no factor to draw; name one or more of {', '.join(self.factors)}. Categories are "
                "not drawn by method='lrvb'."
            )
        return names

    @property
    def _all_statistics(self):
        return [f"{name}.{own}" for name, factor in self.factors.items() for own in factor.family.statistics]

    def _require_matrix(self, quantities, what):
        """Raise a MemoryError where a matrix over quantities is too large."""
        sizes = dict.fromkeys(self.factors, 0)
        for quantity in quantities:
            sizes[quantity.name] += len(quantity.positions)
        n_entries, largest = sum(sizes.values()), max(sizes, key=sizes.get)
        label = f"{largest}.{next(iter(self.factors[largest].family.statistics))}"
        require_memory(
            8.0 * n_entries**2,
            f"The {what} of {n_entries} statistics ({sizes[largest]} of factor {largest!r})",
            ["Ask for fewer factors at once.", f"Ask for standard deviations alone: std({label!r})."],
        )

    def _warn_if_far(self):
        if _FAR_FROM_OPTIMUM < self.newton_decrement < np.inf:
            warn_caller(
                f"q is {self.newton_decrement:.2g} posterior standard deviations from the optimum "
                f"(newton_decrement), and linear response is a derivative at the optimum: lower tol or "
                f"raise max_iter."
            )

    def _unidentified(self, quantities, jacobian=None):
        """`LinearResponse.is_flat`, with a warning where some entries or functions change."""
        flat = self._linear_response.is_flat(quantities, jacobian)
        if flat.any():
            n_flat = self._linear_response.n_flat
            largest = np.argsort(-np.linalg.norm(self.flat_directions, axis=0))[:4]
            number = f"{n_flat} direction" + ("s" if n_flat > 1 else "")
            warn_caller(
                f"The log joint is flat along {number} of q, for example a rotation, to the precision of the "
                f"fit (tol): {', '.join(self.names[i] for i in largest)}, ... (see flat_directions). "
                f"{flat.sum()} of the {len(flat)} variances asked for are therefore nan. (a) Ask for what "
                "does not change along them. (b) Add a prior that fixes them; if one does, lower tol."
            )
        return flat


def _check_method(method):
    if method not in ("lrvb", "mean_field"):
        raise ValueError(f"method={method!r} is neither 'lrvb' nor 'mean_field'.")
