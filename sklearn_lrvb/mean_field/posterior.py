"""The fitted q: moments, draws, V, H and the linear response covariance (Sections 3 and 4)."""

import warnings
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag
from sklearn.utils import check_random_state

from sklearn_lrvb.linear_response import (
    IndefiniteInformationError,
    indefinite_information_error,
    linear_response_covariance,
    schur_linear_response_covariance,
)
from sklearn_lrvb.mean_field.factor import entry_label
from sklearn_lrvb.mean_field.log_joint import LogJoint
from sklearn_lrvb.mean_field.term import resolve_statistic

_LOST = 1e-6  # relative error of covariances from which their raw moments are worth a warning
_LARGEST_BYTES = 2e9  # of dense matrices over the statistics, several of which are held at once
_N_MATRICES = 4


@dataclass(frozen=True, eq=False)
class MeanFieldPosterior:
    """q(theta) = prod_j q_j(theta_j), as `MeanFieldModel.fit` returns it.

    Attributes
    ----------
    log_joint : LogJoint
    natural_parameters : dict, factor -> array (D,) or (copies, D), eta
    mean_parameters : dict, factor -> array of the same shape, m = E_q of the statistics
    lower_bounds : array (n_iter,), the lower bound on the log evidence after every sweep
    converged : bool, whether the last sweep moved q by ``tol`` at most
    """

    log_joint: LogJoint
    natural_parameters: dict
    mean_parameters: dict
    lower_bounds: np.ndarray
    converged: bool
    _responses: dict = field(default_factory=dict, init=False, repr=False)

    @property
    def factors(self):
        """Name -> Factor: dict."""
        return self.log_joint.factors

    @property
    def lower_bound(self):
        """ELBO, in nats; with every constant written in the terms a bound on the log evidence."""
        return float(self.lower_bounds[-1])

    @property
    def n_iter(self):
        """Number of sweeps."""
        return len(self.lower_bounds)

    @cached_property
    def names(self):
        """Labels of all statistics, such as "mu.value[0]" or "z.indicator[3,1]": tuple of str."""
        return tuple(np.concatenate([factor.labels(name) for name, factor in self.factors.items()]))

    def mean(self, statistic):
        """E_q of one statistic.

        Parameters
        ----------
        statistic : str, "factor.statistic", or "factor" where its family has just one

        Returns
        -------
        array in the statistic's shape, the copies' axis first
        """
        name, own = resolve_statistic(statistic, self.factors)
        return self.factors[name].entries(self.mean_parameters[name], own)

    def sample(self, n_draws, random_state=None):
        """Draws from q: factors, and copies, are independent of each other.

        Parameters
        ----------
        n_draws : int
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        dict, factor -> array (n_draws, copies..., shape of the variable)
        """
        random_state = check_random_state(random_state)
        return {
            name: factor.family.sample(self.natural_parameters[name], n_draws, random_state)
            for name, factor in self.factors.items()
        }

    # V, H and what they give.

    def mean_field_covariance(self):
        """V over all statistics, in the order of `names`: (d, d)."""
        return self._mean_field_covariance(list(self.factors))

    def expected_hessian(self):
        """H over all statistics (Eq. h_definition), in the order of `names`: (d, d)."""
        self._require_memory(list(self.factors))
        return self._expected_hessian(list(self.factors), list(self.factors))

    def _blocks(self, name):
        return self.factors[name].covariance_blocks(self.natural_parameters[name])

    def _mean_field_covariance(self, names):
        self._require_memory(names)
        return block_diag(*(block for name in names for block in self._blocks(name)))

    def _require_memory(self, names):
        """Refuse dense matrices over the statistics of these factors where they are too large."""
        sizes = {name: self.factors[name].size for name in names}
        n_statistics, largest = sum(sizes.values()), max(sizes, key=sizes.get)
        n_bytes = 8.0 * _N_MATRICES * n_statistics**2
        if n_bytes > _LARGEST_BYTES:
            label = f"{largest}.{next(iter(self.factors[largest].family.statistics))}"
            remedy = (
                f"ask for fewer factors at once, or for standard deviations alone: std({label!r})"
                if largest == self._nuisance([])
                else f"linear response eliminates one factor only, the largest that is not asked for; "
                f"std({label!r}, method='mean_field') needs no such matrix"
            )
            raise MemoryError(
                f"The covariance of {n_statistics} statistics ({sizes[largest]} of factor {largest!r}) would "
                f"need {n_bytes / 1e9:.1f} GB, more than {_LARGEST_BYTES / 1e9:.0f} GB: {remedy}."
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

    def covariance(self, *statistics, method="lrvb"):
        """Posterior covariance of statistics.

        The factor that is not asked for and has the most statistics is eliminated (Eq.
        nuisance_lrvb_est), so that a factor with a copy for every observation costs no matrix of its size
        squared.

        Parameters
        ----------
        *statistics : str
            "factor.statistic", flattened, or "factor" for all of its statistics in the order of `names`; one
            after the other.
        method : {"lrvb", "mean_field"}, default="lrvb"
            Linear response (Eq. lrvb_est), or q's own covariance V.

        Returns
        -------
        array (d, d)

        Raises
        ------
        IndefiniteInformationError
            Where q is not a strict local optimum; a ValueError. Its ``direction`` is the way in which q
            escapes, in mean-field standard deviations, and its ``names`` are that direction's labels.
        MemoryError
            Where dense matrices of the statistics would take more than 2 GB; it says what to ask for.

        Warns
        -----
        UserWarning
            Where q is more than a tenth of a posterior standard deviation from the optimum.
        """
        _check_method(method)
        if not statistics:
            raise ValueError(f"Name the statistics to report; all are {', '.join(self._all_statistics)}.")
        asked = [self._positions(text) for text in statistics]
        names = list(dict.fromkeys(name for name, _ in asked))
        if method == "lrvb":
            self._warn_if_far(stacklevel=3)
            kept, covariance = self._linear_response(self._nuisance(names))
        else:
            kept, covariance = names, self._mean_field_covariance(names)
        starts = self._starts(kept)
        positions = np.concatenate([starts[name] + own for name, own in asked])
        return covariance[np.ix_(positions, positions)]

    def std(self, statistic, method="lrvb"):
        """Posterior standard deviations of one statistic, in its shape; parameters as in `covariance`.

        A factor with many copies costs no matrix of its size squared, if it is the one with the most
        statistics.
        """
        _check_method(method)
        name, own = resolve_statistic(statistic, self.factors)
        if method == "lrvb":
            self._warn_if_far(stacklevel=3)
            variance = self._linear_response_variance(name)
        else:
            variance = np.einsum("nii->ni", self._blocks(name))
        variance = self.factors[name].entries(variance.reshape(self.factors[name].shape), own)
        return np.sqrt(np.maximum(variance, 0.0))  # round-off of a statistic that does not vary

    def _linear_response_variance(self, name):
        """Diagonal of the linear response covariance of one factor.

        The largest factor, z, takes part in the response of the others, alpha, and nothing else: its
        covariance is V_z + V_z H_z_alpha Sigma_alpha H_alpha_z V_z.
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
        """ "factor.statistic" or "factor" -> the factor, and positions in its flat vector."""
        if isinstance(text, str) and text in self.factors:
            return text, np.arange(self.factors[text].size)
        name, statistic = resolve_statistic(text, self.factors)
        return name, self.factors[name].positions(statistic)

    def _starts(self, names):
        """Factor -> where its statistics start, the factors in this order: dict."""
        sizes = [self.factors[name].size for name in names]
        return dict(zip(names, np.cumsum([0, *sizes[:-1]]), strict=True))

    def _nuisance(self, asked):
        """The factor to eliminate, z: the largest that is not ``asked`` for, or None."""
        others = [name for name in self.factors if name not in asked]
        if len(self.factors) == 1 or not others:
            return None
        return max(others, key=lambda name: self.factors[name].size)

    def _linear_response(self, nuisance):
        """The other factors' names, alpha, and their linear response covariance."""
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
        """The engine's error in terms of the model: the statistics that it is about, and what to do."""
        remedies = [
            "q is a saddle, as where two components coincide: choose another start.",
            "The log joint is flat or improper along this direction: a prior is missing, or a sign wrong.",
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
        """What an update at these means would add to eta, in the factor's shape."""
        return self.log_joint.natural_parameters(means, name) - self.natural_parameters[name]

    @cached_property
    def newton_decrement(self):
        """Distance to the optimum in posterior standard deviations: sqrt(r' Sigma r), r the residual of eta.

        Half its square is the lower bound still to be gained. Infinite where q is no strict local optimum.
        """
        nuisance = self._nuisance([])
        try:
            kept, covariance = self._linear_response(nuisance)
        except IndefiniteInformationError:
            return np.inf
        means, squared = self.mean_parameters, 0.0
        if nuisance is not None:
            # its own response leaves the eliminated factor without a residual, and changes those of the
            # others: eta is linear in its mean parameters
            blocks = self._blocks(nuisance)
            own = self._residual(nuisance, means).reshape(len(blocks), -1)
            response = np.einsum("nij,nj->ni", blocks, own)
            squared = np.vdot(own, response)
            means = {**means, nuisance: means[nuisance] + response.reshape(means[nuisance].shape)}
        residual = np.concatenate([self._residual(name, means).ravel() for name in kept])
        return float(np.sqrt(max(squared + residual @ covariance @ residual, 0.0)))

    def _warn_if_far(self, stacklevel):
        if 0.1 < self.newton_decrement < np.inf:
            warnings.warn(
                f"q is {self.newton_decrement:.2g} posterior standard deviations from the optimum "
                f"(newton_decrement), and linear response is a derivative at the optimum: lower tol or "
                f"raise max_iter.",
                UserWarning,
                stacklevel=stacklevel,
            )

    # What raw moments cost far from zero.

    @cached_property
    def lost_precision(self):
        """Which mean is so far from zero that covariances lose a millionth, and what to do: str or None.

        Of x and x x' the covariance is all but singular there: relative errors are about eps (mean/sd)^2.
        """
        worst, message = _LOST, None
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
                        f"standard deviation {deviation[position]:.2g}: so far from zero raw moments lose "
                        f"digits, and covariances may be off by {worst:.0e} of themselves. Centre the data."
                    )
        return message


def _check_method(method):
    if method not in ("lrvb", "mean_field"):
        raise ValueError(f"method={method!r} is neither 'lrvb' nor 'mean_field'.")
