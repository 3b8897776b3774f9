"""The fitted q: moments, draws, V, H and the linear response covariance (Sections 3 and 4)."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.linalg import block_diag
from sklearn.utils import check_random_state

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.linear_response import (
    IndefiniteInformationError,
    indefinite_information_error,
    linear_response_covariance,
    schur_linear_response_covariance,
)
from sklearn_lrvb.mean_field.factor import Factor, entry_label
from sklearn_lrvb.mean_field.log_joint import LogJoint
from sklearn_lrvb.mean_field.term import resolve_statistic

_WARN_FROM_ERROR = 1e-6  # Relative error of covariances, by the cancellation of raw moments, that warns.
_FAR_FROM_OPTIMUM = 0.1  # Newton decrement, in posterior standard deviations, that warns.
_LARGEST_BYTES = 2e9  # Largest size of the dense matrices over the statistics that are in memory at once.
_N_MATRICES = 4  # Number of such matrices.


@dataclass(frozen=True, eq=False)
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

    Examples
    --------
    A normal posterior of two numbers with precision [[2, 1], [1, 1]], a factor for each:

    >>> from sklearn_lrvb.exponential_families import UnivariateNormal
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
    _responses: dict = field(default_factory=dict, init=False, repr=False)

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

    def mean(self, statistic: str) -> NDArray[np.float64]:
        """Mean of one statistic under q.

        Parameters
        ----------
        statistic : str
            "factor.statistic", or "factor" where its family has one statistic.

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
        >>> from sklearn_lrvb.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> log_joint = [  # of a normal distribution with mean (-1, 2) and precision [[2, 1], [1, 1]]
        ...     Term(-1.0, "a.square"), Term(-0.5, "b.square"),
        ...     Term(-1.0, "a.value", "b.value"), Term(1.0, "b.value"),
        ... ]
        >>> posterior = MeanFieldModel({"a": UnivariateNormal(), "b": UnivariateNormal()}, log_joint).fit()
        >>> print(posterior.mean("b.value").round(6))
        2.0
        """
        name, own = resolve_statistic(statistic, self.factors)
        return self.factors[name].entries(self.mean_parameters[name], own)

    def sample(self, n_draws: int, random_state: int | RandomState | None = None) -> dict[str, NDArray]:
        """Draws from q, in which factors, and copies of one factor, are independent of each other.

        Parameters
        ----------
        n_draws : int
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None uses numpy's global generator.

        Returns
        -------
        draws : dict, name of the factor -> ndarray of shape (n_draws, copies..., shape of the variable)
            Of the variables themselves, not of their statistics.

        See Also
        --------
        MeanFieldPosterior.covariance : With the correlations that draws from q lack.

        Examples
        --------
        Under q the variables have unit precision 2 and 1, and do not depend on each other:

        >>> from sklearn_lrvb.exponential_families import UnivariateNormal
        >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
        >>> log_joint = [  # of a normal distribution with mean (-1, 2) and precision [[2, 1], [1, 1]]
        ...     Term(-1.0, "a.square"), Term(-0.5, "b.square"),
        ...     Term(-1.0, "a.value", "b.value"), Term(1.0, "b.value"),
        ... ]
        >>> posterior = MeanFieldModel({"a": UnivariateNormal(), "b": UnivariateNormal()}, log_joint).fit()
        >>> draws = posterior.sample(10_000, random_state=0)
        >>> print(f"{draws['a'].std():.1f} {draws['b'].std():.1f}")
        0.7 1.0
        """
        rng = check_random_state(random_state)
        return {
            name: factor.family.sample(self.natural_parameters[name], n_draws, rng)
            for name, factor in self.factors.items()
        }

    # V, H and the covariances that follow from them.

    def mean_field_covariance(self) -> NDArray[np.float64]:
        """V, the covariance of all statistics under q, in the order of `names`: (d, d).

        Returns
        -------
        covariance : ndarray of shape (d, d)
            V, block diagonal, in products of the units of the statistics.

        Raises
        ------
        MemoryError
            Dense matrices of the statistics would take more than 2 GB.

        See Also
        --------
        MeanFieldPosterior.covariance : The same of some statistics, and by linear response.

        Examples
        --------
        The variances of a and b under q, one over their precisions 2 and 1:

        >>> from sklearn_lrvb.exponential_families import UnivariateNormal
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
        return self._mean_field_covariance(list(self.factors))

    def expected_hessian(self) -> NDArray[np.float64]:
        """H, the Hessian of the expected log joint in all mean parameters (Eq. h_definition): (d, d).

        Rows and columns are in the order of `names`.

        Returns
        -------
        hessian : ndarray of shape (d, d)
            H, symmetric, in one over products of the units of the statistics.

        Raises
        ------
        MemoryError
            Dense matrices of the statistics would take more than 2 GB.

        Examples
        --------
        V and H give the linear response covariance (Eq. lrvb_est):

        >>> import numpy as np
        >>> from sklearn_lrvb.exponential_families import UnivariateNormal
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
        self._require_memory(list(self.factors))
        return self._expected_hessian(list(self.factors), list(self.factors))

    def _blocks(self, name):
        return self.factors[name].covariance_blocks(self.natural_parameters[name])

    def _mean_field_covariance(self, names):
        self._require_memory(names)
        return block_diag(*(block for name in names for block in self._blocks(name)))

    def _require_memory(self, names):
        """Raise a MemoryError where dense matrices over the statistics of these factors are too large."""
        sizes = {name: self.factors[name].size for name in names}
        n_statistics, largest = sum(sizes.values()), max(sizes, key=sizes.get)
        n_bytes = 8.0 * _N_MATRICES * n_statistics**2
        if n_bytes > _LARGEST_BYTES:
            label = f"{largest}.{next(iter(self.factors[largest].family.statistics))}"
            remedy = (
                f"(a) Ask for fewer factors at once. (b) Ask for standard deviations alone: std({label!r})."
                if largest == self._nuisance([])
                else "Linear response eliminates one factor only, the largest that is not asked for. "
                f"std({label!r}, method='mean_field') needs no such matrix."
            )
            raise MemoryError(
                f"The covariance of {n_statistics} statistics ({sizes[largest]} of factor {largest!r}) would "
                f"need {n_bytes / 1e9:.1f} GB, more than {_LARGEST_BYTES / 1e9:.0f} GB. {remedy}"
            )

    def _expected_hessian(self, rows, columns):
        blocks = {}
        for row in rows:
            for column in columns:
                known = blocks.get((column, row))
                blocks[row, column] = (
                    self.log_joint.hessian(self.mean_parameters, row, column) if known is None else known.T
                )
        return np.block([[blocks[row, column] for column in columns] for row in rows])

    def covariance(
        self, *statistics: str, method: Literal["lrvb", "mean_field"] = "lrvb"
    ) -> NDArray[np.float64]:
        """Posterior covariance of statistics.

        The factor with the most statistics among those not asked for is eliminated (Eq. nuisance_lrvb_est).
        A factor with a copy for every observation therefore needs no matrix of its size squared.

        Parameters
        ----------
        *statistics : str
            "factor.statistic", or "factor" for all of its statistics. Their entries stand one after the
            other in the order of `names`.
        method : {"lrvb", "mean_field"}, default="lrvb"
            Linear response (Eq. lrvb_est), or q's own covariance V.

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
            Dense matrices of the statistics would take more than 2 GB; says what to ask for instead.

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

        >>> from sklearn_lrvb.exponential_families import UnivariateNormal
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
        asked = [self._positions(text) for text in statistics]
        names = list(dict.fromkeys(name for name, _ in asked))
        if method == "lrvb":
            self._warn_if_far()
            kept, covariance = self._linear_response(self._nuisance(names))
        else:
            kept, covariance = names, self._mean_field_covariance(names)
        starts = self._starts(kept)
        positions = np.concatenate([starts[name] + own for name, own in asked])
        return covariance[np.ix_(positions, positions)]

    def std(self, statistic: str, method: Literal["lrvb", "mean_field"] = "lrvb") -> NDArray[np.float64]:
        """Posterior standard deviations of one statistic.

        The factor with the most statistics needs no matrix of its size squared.

        Parameters
        ----------
        statistic : str
            "factor.statistic", or "factor" where its family has one statistic.
        method : {"lrvb", "mean_field"}, default="lrvb"
            Linear response (Eq. lrvb_est), or under q itself.

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

        >>> from sklearn_lrvb.exponential_families import UnivariateNormal
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
        name, own = resolve_statistic(statistic, self.factors)
        if method == "lrvb":
            self._warn_if_far()
            variance = self._linear_response_variance(name)
        else:
            variance = np.einsum("nii->ni", self._blocks(name))
        variance = self.factors[name].entries(variance.reshape(self.factors[name].shape), own)
        # Round-off can make the variance of a constant statistic negative.
        return np.sqrt(np.maximum(variance, 0.0))

    def _linear_response_variance(self, name):
        """Diagonal of the linear response covariance of one factor.

        The copies of the largest factor, z, interact through the others, alpha, alone: the covariance of z
        is V_z + V_z H_z_alpha Sigma_alpha H_alpha_z V_z.
        """
        largest = self._nuisance([])
        kept, covariance = self._linear_response(largest)
        if name != largest:
            start = self._starts(kept)[name]
            return np.diag(covariance)[start : start + self.factors[name].size]
        blocks = self._blocks(name)
        coupling = self._expected_hessian([name], kept).reshape(*blocks.shape[:2], -1)
        response = blocks @ coupling
        return np.einsum("nii->ni", blocks) + np.sum((response @ covariance) * response, axis=-1)

    @property
    def _all_statistics(self):
        return [f"{name}.{own}" for name, factor in self.factors.items() for own in factor.family.statistics]

    def _positions(self, text):
        """The factor of "factor.statistic" or "factor", and the positions in its flat vector."""
        if isinstance(text, str) and text in self.factors:
            return text, np.arange(self.factors[text].size)
        name, statistic = resolve_statistic(text, self.factors)
        return name, self.factors[name].positions(statistic)

    def _starts(self, names):
        """Start of every factor's statistics in the flat vector of these factors in order: dict."""
        sizes = [self.factors[name].size for name in names]
        return dict(zip(names, np.cumsum([0, *sizes[:-1]]), strict=True))

    def _nuisance(self, asked):
        """The factor z to eliminate, the largest that is not ``asked`` for; None where there is none."""
        others = [name for name in self.factors if name not in asked]
        if len(self.factors) == 1 or not others:
            return None
        return max(others, key=lambda name: self.factors[name].size)

    def _linear_response(self, nuisance):
        """The names of the other factors, alpha, and the linear response covariance of alpha."""
        if nuisance not in self._responses:
            kept = [name for name in self.factors if name != nuisance]
            V, H = self._mean_field_covariance(kept), self._expected_hessian(kept, kept)
            try:
                self._responses[nuisance] = (
                    kept,
                    (
                        linear_response_covariance(V, H)
                        if nuisance is None
                        else schur_linear_response_covariance(
                            V, H, self._expected_hessian(kept, [nuisance]), self._blocks(nuisance)
                        )
                    ),
                )
            except IndefiniteInformationError as error:
                raise self._unstable(kept, error) from None
        return self._responses[nuisance]

    def _unstable(self, kept, error):
        """The solver's error in terms of the model: the statistics concerned, and the remedies."""
        remedies = [
            "q is a saddle point, for example two components that coincide: choose another start.",
            "The log joint is flat or improper along this direction: add the missing prior, or check "
            "the signs.",
        ]
        if not self.converged:
            remedies.insert(0, f"Coordinate ascent stopped early ({self.n_iter} sweeps): raise max_iter.")
        if self.lost_precision is not None:
            remedies.append(self.lost_precision)
        return indefinite_information_error(
            error.smallest_eigenvalue,
            error.direction,
            subject="q",
            remedies=remedies,
            names=tuple(np.concatenate([self.factors[name].labels(name) for name in kept])),
        )

    # Distance to the optimum.

    def _residual(self, name, means):
        """The residual, the change of eta by an update at these means, in the factor's shape."""
        return self.log_joint.natural_parameters(means, name) - self.natural_parameters[name]

    @cached_property
    def newton_decrement(self) -> float:
        """Distance to the optimum in posterior standard deviations: sqrt(r' Sigma r), r the residual of eta.

        Half its square is the lower bound still to be gained, in nats. It is infinite where q is no strict
        local optimum.
        """
        nuisance = self._nuisance([])
        try:
            kept, covariance = self._linear_response(nuisance)
        except IndefiniteInformationError:
            return np.inf
        means, squared = self.mean_parameters, 0.0
        if nuisance is not None:
            # The own response of the eliminated factor removes its residual. The others' residuals change
            # with its mean parameters, in which their eta is linear.
            blocks = self._blocks(nuisance)
            own = self._residual(nuisance, means).reshape(len(blocks), -1)
            response = np.einsum("nij,nj->ni", blocks, own)
            squared = np.vdot(own, response)
            means = {**means, nuisance: means[nuisance] + response.reshape(means[nuisance].shape)}
        residual = np.concatenate([self._residual(name, means).ravel() for name in kept])
        return float(np.sqrt(max(squared + residual @ covariance @ residual, 0.0)))

    def _warn_if_far(self):
        if _FAR_FROM_OPTIMUM < self.newton_decrement < np.inf:
            warn_caller(
                f"q is {self.newton_decrement:.2g} posterior standard deviations from the optimum "
                f"(newton_decrement), and linear response is a derivative at the optimum: lower tol or "
                f"raise max_iter.",
            )

    # Cancellation in raw moments far from zero.

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


def _check_method(method):
    if method not in ("lrvb", "mean_field"):
        raise ValueError(f"method={method!r} is neither 'lrvb' nor 'mean_field'.")
