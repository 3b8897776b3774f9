"""Coordinate ascent on the lower bound, from a start to a fixed point, and its acceleration.

*Conventions.* The largest factor is *implied*: its update depends on the other factors alone. The state of
the iteration is therefore theirs, taken right before the implied factor is updated, and a proposal of the
acceleration replaces it there. Where a proposal has lowered the bound by the end of its sweep, the ascent
goes back to the state that it replaced.

Near an optimum proposals are Anderson's. Far from one these lower the bound, as Anderson's acceleration seeks
saddle points as well; the last change of the state is then continued by ever more of its length.
"""

import numpy as np

from sklearn_lrvb.anderson_mixing import AndersonMixing
from sklearn_lrvb.mean_field.exponential_families import NaturalParameterError

_PLAIN_SWEEPS = 5  # Number of sweeps before the first proposal: most simple models need hardly more.
_FIRST_STRETCH, _LAST_STRETCH = 1.0, 64.0  # Multiples of the last change that are added to it.
_ROUND_OFF = 1e-14  # Relative fall of the bound that is round-off.


class CoordinateAscent:
    """The state of an ascent.

    Parameters
    ----------
    log_joint : LogJoint
    natural : dict, name -> ndarray
        Natural parameters to start from. The dict is changed, its arrays are not.
    means : dict, name -> ndarray
        Mean parameters to start from in place of those of ``natural``, for any of the factors.
    order : list of str
        Names of the factors in the order of their updates.
    accelerate : bool

    Attributes
    ----------
    natural, means : dict, name -> ndarray
        Present parameters.
    lower_bounds : list of float
        After every sweep.

    Raises
    ------
    ValueError
        Natural parameters to start from are not those of a member of their family.
    """

    def __init__(self, log_joint, natural, means, order, accelerate):
        self.log_joint, self.natural, self._order = log_joint, natural, order
        self.means = {
            name: means[name] if name in means else self._means_of(name, natural[name]) for name in natural
        }
        self._is_member = not means
        self.lower_bounds = []
        self._implied = max(order, key=lambda name: log_joint.factors[name].size)
        self._free = [name for name in order if name != self._implied]
        self._mixing = AndersonMixing() if accelerate and self._free else None
        self._scale = self._before = self._replaced = None
        self._stretch, self._is_stretched = _FIRST_STRETCH, False

    def run(self, tol, max_iter):
        """Sweep until a sweep moves q by ``tol`` at most, or ``max_iter`` times. Returns the last move.

        Raises
        ------
        ValueError
            An update leaves its family, or numbers leave the range of floating point.
        """
        for _ in range(max_iter):
            length = self.sweep()
            if length <= tol:
                break
        self._refuse_extremes()
        return length

    def sweep(self):
        """Update every factor. Returns how far q moved, in its standard deviations."""
        squared_length = 0.0
        for name in self._order:
            if name == self._implied and self._mixing is not None:
                self._propose()
            natural = self.log_joint.natural_parameters(self.means, name)
            mean = self._means_of(name, natural)
            change = self.log_joint.factors[name].counted(mean - self.means[name])
            squared_length += np.vdot(natural - self.natural[name], change)
            self.natural[name], self.means[name] = natural, mean
        bound = lower_bound(self.log_joint, self.natural, self.means)
        if self._replaced is not None:
            if not bound >= self.lower_bounds[-1] - _ROUND_OFF * abs(bound):
                self._go_back()
                return np.inf
            self._accept()
        self.lower_bounds.append(bound)
        if not self._is_member:  # The first sweep replaces means that no natural parameters belong to.
            self._is_member = True
            return np.inf
        return np.sqrt(max(squared_length, 0.0))

    def _propose(self):
        """Replace the state by the one that the last sweeps lead to, where that is the state of some q."""
        if len(self.lower_bounds) < _PLAIN_SWEEPS:
            return
        self._mixing.step()
        if self._scale is None:
            self._scale = self._deviations()
        state = self._flat()
        before, self._before = self._before, state
        if before is None:
            return
        combined = self._mixing.combination(before * self._scale, (state - before) * self._scale)
        self._is_stretched = combined is None
        if self._is_stretched and (len(self.lower_bounds) == _PLAIN_SWEEPS + 1 or not self._stretch):
            self._stretch = _FIRST_STRETCH
            return
        if self._is_stretched:
            combined = (state + self._stretch * (state - before)) * self._scale
        self._replaced = {name: (self.natural[name], self.means[name]) for name in self.natural}
        try:
            self._take(combined / self._scale)
        except ValueError:  # It is the state of no q.
            self._go_back()

    def _take(self, state):
        start = 0
        for name in self._free:
            factor = self.log_joint.factors[name]
            natural = state[start : start + factor.size].reshape(factor.shape)
            mean = self._means_of(name, natural)
            self.natural[name], self.means[name] = natural, mean
            start += factor.size
        self._before = state

    def _go_back(self):
        for name, (natural, mean) in self._replaced.items():
            self.natural[name], self.means[name] = natural, mean
        self._replaced = self._before = None
        if self._is_stretched:
            self._stretch = 0.0
        else:
            self._mixing.reject()

    def _accept(self):
        self._replaced = None
        if self._is_stretched:
            self._stretch = min(2.0 * self._stretch, _LAST_STRETCH)
        else:
            self._mixing.accept()

    def _flat(self):
        return np.concatenate([self.natural[name].ravel() for name in self._free])

    def _deviations(self):
        """Standard deviations of the statistics, in which differences of natural parameters are compared."""
        parts = []
        for name in self._free:
            variances = self.log_joint.factors[name].family.variances(self.natural[name]).ravel()
            parts.append(np.sqrt(np.where(variances > 0, variances, 1.0)))
        return np.concatenate(parts)

    def _means_of(self, name, natural):
        """Mean parameters. A ValueError where there is no such member of the family, or they are infinite."""
        factor = self.log_joint.factors[name]
        try:
            factor.family.check(natural)
        except NaturalParameterError as error:
            label = f"{name}.{error.statistic}"
            remedy = f"No term has {label!r}: its prior is missing."
            if self.log_joint.has(name, error.statistic):
                remedy = (
                    f"The terms in {label!r} do not keep it proper. (a) Add its prior term, if that is "
                    "missing. (b) Check the signs of the coefficients."
                )
            shown = _listed(factor.entries(natural, error.statistic)[error.copy])
            raise ValueError(
                f"The update of factor {name!r} leaves the {type(factor.family).__name__} family: {error}. "
                f"The natural parameter of {label!r} is {shown}. {remedy}"
            ) from None
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

    def _refuse_extremes(self):
        """Raise a ValueError where a variance or the bound leaves the range of floating-point numbers."""
        for name, factor in self.log_joint.factors.items():
            mean, variances = self.means[name], factor.family.variances(self.natural[name])
            underflown = (variances == 0) & (mean != 0) & (np.abs(mean) < np.sqrt(np.finfo(float).tiny))
            wrong = ~np.isfinite(variances) | underflown
            if np.any(wrong):
                first = np.flatnonzero(wrong)[0]
                raise ValueError(
                    f"{factor.labels(name)[first]} has the mean {mean.flat[first]:.3g} and the variance "
                    f"{variances.flat[first]:.3g}, out of the range of floating-point numbers. Give the data "
                    "in units in which they are of the order of 1, and the priors accordingly."
                )
        if not np.isfinite(self.lower_bounds[-1]):
            raise ValueError(
                "The lower bound is not finite. Give the data in other units, of the order of 1."
            )


def lower_bound(log_joint, natural, means):
    """The ELBO in nats: the expected log joint plus the entropies A - eta . m."""
    entropies = (
        np.sum(factor.counted(factor.family.log_partition(natural[name])))
        - np.vdot(natural[name], factor.counted(means[name]))
        for name, factor in log_joint.factors.items()
    )
    return log_joint.value(means) + sum(entropies)


def _listed(entries):
    """A number, or an abridged array, as text."""
    return f"{entries:.4g}" if np.ndim(entries) == 0 else np.array2string(entries, precision=4, threshold=9)
