"""The fitted q: moments, draws, V, H and the linear response covariance (Sections 3 and 4)."""

import warnings
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag
from sklearn.utils import check_random_state

from sklearn_lrvb.linear_response import (
    IndefiniteInformationError,
    linear_response_covariance,
    schur_linear_response_covariance,
)
from sklearn_lrvb.mean_field.log_joint import LogJoint
from sklearn_lrvb.mean_field.term import resolve_statistic

_N_NAMED = 4  # statistics named in the message about an unstable fixed point


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
        return self._expected_hessian(list(self.factors), list(self.factors))

    def _blocks(self, name):
        return self.factors[name].covariance_blocks(self.natural_parameters[name])

    def _mean_field_covariance(self, names):
        return block_diag(*(block for name in names for block in self._blocks(name)))

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
            Where q is not a strict local optimum; a ValueError.

        Warns
        -----
        UserWarning
            Where q is more than a tenth of a posterior standard deviation from the optimum.
        """
        if method not in ("lrvb", "mean_field"):
            raise ValueError(f"method={method!r} is neither 'lrvb' nor 'mean_field'.")
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

    def std(self, statistic, method="lrvb"):
        """Posterior standard deviations of one statistic, in its shape; parameters as in `covariance`."""
        name, own = resolve_statistic(statistic, self.factors)
        variance = np.diag(self.covariance(f"{name}.{own}", method=method))
        # round-off of a statistic that does not vary
        return np.sqrt(np.maximum(variance, 0.0)).reshape(self.factors[name].statistic_shape(own))

    @property
    def _all_statistics(self):
        return [f"{name}.{own}" for name, factor in self.factors.items() for own in factor.family.statistics]

    def _positions(self, text):
        """ "factor.statistic" or "factor" -> the factor, and positions in its flat vector."""
        if text in self.factors:
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
        """The engine's error, with the names of the statistics that it is about."""
        labels = np.concatenate([self.factors[name].labels(name) for name in kept])
        size = np.abs(error.direction)
        largest = np.argsort(-size, kind="stable")[:_N_NAMED]
        named = ", ".join(
            f"{labels[i]} ({error.direction[i]:+.2f})" for i in largest if size[i] > 0.1 * size.max()
        )
        error.args = (
            f"q is not a strict local optimum: the smallest eigenvalue of the observed information is "
            f"{error.smallest_eigenvalue:.1e} of q's own. Its direction, in mean-field standard deviations: "
            f"{named}. (a) Coordinate ascent stopped early (n_iter={self.n_iter}, "
            f"converged={self.converged}): raise max_iter. (b) q is a saddle, as where two components "
            f"coincide: choose another start.",
        )
        return error

    # Distance to the optimum.

    @cached_property
    def _residuals(self):
        """Factor -> what another update would add to eta: dict."""
        return {
            name: self.log_joint.natural_parameters(self.mean_parameters, name) - natural
            for name, natural in self.natural_parameters.items()
        }

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
        residual = np.concatenate([self._residuals[name].ravel() for name in kept])
        squared = 0.0
        if nuisance is not None:
            # its own update leaves the eliminated factor without a residual, and changes those of the others
            blocks = self._blocks(nuisance)
            own = self._residuals[nuisance].reshape(len(blocks), -1)
            response = np.einsum("nij,nj->ni", blocks, own)
            residual += self._expected_hessian(kept, [nuisance]) @ response.ravel()
            squared = np.vdot(own, response)
        return float(np.sqrt(max(squared + residual @ covariance @ residual, 0.0)))

    def _warn_if_far(self):
        if 0.1 < self.newton_decrement < np.inf:
            warnings.warn(
                f"q is {self.newton_decrement:.2g} posterior standard deviations from the optimum "
                f"(newton_decrement), and linear response is a derivative at the optimum: lower tol or "
                f"raise max_iter.",
                UserWarning,
                stacklevel=3,
            )
