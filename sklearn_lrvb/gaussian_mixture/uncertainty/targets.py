"""The parameters reported to users, as functions of q and of its linear response.

theta = (log pi; mu; the unique precision entries), and pi and Sigma_k = Lambda_k^-1 by the delta method. A
response beta (..., D) moves each of them linearly, through one part of beta: weights through the
intercepts, means through the linear coefficients, precisions through the quadratic ones. These maps are J:
the LRVB covariance of g is J M^-1 J' plus an excess, Cov_q(g) - J R J', that is zero but for log pi and,
under joint factors, mu (the Student t's).
"""

from functools import cached_property

import numpy as np
from scipy.linalg import block_diag, cho_solve, lstsq

PARAMETERS = ("log_weights", "means", "precisions")
TARGETS = (*PARAMETERS, "weights", "covariances")

_PART = {
    "log_weights": "intercept",
    "weights": "intercept",
    "means": "linear",
    "precisions": "quadratic",
    "covariances": "quadratic",
}

_ROOT_BYTES = 2**26  # of responses held at once
_GROUP = 4096  # coordinates of components or precision groups that are taken together


class ParameterMap:
    """Values, labels and responses of the targets at one posterior.

    Parameters
    ----------
    posterior : VariationalPosterior
    origin : (P,), from where the posterior's positions are measured
    """

    def __init__(self, posterior, origin):
        self.posterior = posterior
        self.origin = origin

    @cached_property
    def _weight_jacobian(self):
        """d weights / d counts, (K, K)."""
        return self.posterior.prior.weights.mean_jacobian(self.posterior.counts)

    def count_response(self, intercepts):
        """(V_pi + C)^-1 b, how counts respond to intercepts: (..., K) -> (..., K)."""
        flat = intercepts.reshape(-1, intercepts.shape[-1]).T
        return cho_solve((self.posterior.intercept_root, True), flat).T.reshape(intercepts.shape)

    def respond(self, target, part, units=slice(None)):
        """d target, given the part of the coefficients that it depends on, by component or by group.

        (..., units, width) -> (..., units) or (..., units, ...); means and precisions also for some of the
        components or precision groups alone.
        """
        posterior = self.posterior
        structure = posterior.structure
        if target == "log_weights":
            return self.count_response(part[..., 0]) @ posterior.log_weight_covariance
        if target == "weights":
            return self.count_response(part[..., 0]) @ self._weight_jacobian.T
        if target == "means":
            return structure.mean_response(
                part, structure.per_component(posterior.covariance_cholesky)[units]
            )
        if target == "precisions":
            return structure.precision_response(part, posterior.whiteners[units])
        return structure.covariance_response(part, posterior.covariance_cholesky[units])

    def _units(self, target):
        """How many components or groups a target has entries of, and how many coefficients each of them."""
        structure = self.posterior.structure
        return {
            "intercept": (structure.n_components, 1),
            "linear": (structure.n_components, structure.n_features),
            "quadratic": (structure.n_precision_groups, structure.n_quadratic),
        }[_PART[target]]

    def coordinates(self, target, units=slice(None)):
        """Coordinates (of D) of the part that a target depends on, component by component or by group."""
        n_units, width = self._units(target)
        start = self.posterior.structure.coefficient_blocks()[_PART[target]].start
        return start + np.arange(n_units * width).reshape(n_units, width)[units].ravel()

    def _groups(self, target):
        """Units whose entries of a target depend on each other: weights all, others as memory allows."""
        n_units, width = self._units(target)
        at_once = n_units if _PART[target] == "intercept" else max(1, _GROUP // width)
        return [slice(start, start + at_once) for start in range(0, n_units, at_once)]

    def largest_group(self, target):
        """Most coordinates that `variance` asks for at once."""
        return max(len(self.coordinates(target, units)) for units in self._groups(target))

    def value(self, target):
        """E_q of the target, or its value at E_q Lambda for "covariances", in the shape of the attribute."""
        posterior, structure = self.posterior, self.posterior.structure
        if target == "log_weights":
            return posterior.expected_log_weights
        if target == "weights":
            return posterior.prior.weights.mean(posterior.counts)
        if target == "means":
            return self.origin + posterior.centred_means
        if target == "precisions":
            maps = structure.transposed(posterior.whiteners)
            return structure.reported(structure.congruence(maps, structure.identity))
        return structure.reported(structure.congruence(posterior.covariance_cholesky, structure.identity))

    def size(self, target):
        """Number of flat entries."""
        return len(self.coordinates(target))

    def responses(self, target, coefficients):
        """d target of some responses, flat: (n, D) -> (n, d)."""
        return np.concatenate(list(self._flat_responses(target, coefficients[:, self.coordinates(target)])))

    def flat(self, target, values):
        """Unique entries, component by component: (*shape of the attribute) -> (d,)."""
        if _PART[target] == "quadratic":
            return self._flat_by_group(target, self.posterior.structure.by_group(values))
        return values.ravel()

    def _flat_by_group(self, target, values):
        """The same of responses by component or group: (..., units, ...) -> (..., d)."""
        if _PART[target] == "quadratic":
            return self.posterior.structure.unique_entries(values)
        return values if _PART[target] == "intercept" else values.reshape(*values.shape[:-2], -1)

    def shaped(self, target, flat):
        """Inverse of `flat`: (*lead, d) -> (*lead, *shape of the attribute)."""
        if _PART[target] == "intercept":
            return flat
        if _PART[target] == "linear":
            return flat.reshape(*flat.shape[:-1], *self.posterior.centred_means.shape)
        structure = self.posterior.structure
        return structure.reported(structure.from_unique_entries(flat))

    def entries(self, target):
        """Which flat entry every place of the attribute reports, int array of its shape."""
        return self.shaped(target, np.arange(self.size(target))).astype(np.intp)

    def on_diagonal(self, target):
        """Which flat entries are on a matrix's diagonal; all of those that are in no matrix, bool (d,)."""
        if _PART[target] != "quadratic":
            return np.ones(self.size(target), dtype=bool)
        structure = self.posterior.structure
        ones = np.broadcast_to(structure.identity, (structure.n_precision_groups, *structure.identity.shape))
        return structure.unique_entries(ones) > 0

    def labels(self, target, feature_names):
        """Names of the flat entries, such as "mean[0,x1]"."""
        n_components = self.posterior.n_components
        singular = target[:-1]
        if target in ("log_weights", "weights"):
            return [f"{singular}[{k}]" for k in range(n_components)]
        if target == "means":
            return [f"mean[{k},{name}]" for k in range(n_components) for name in feature_names]
        entries = self.posterior.structure.entry_labels(feature_names)
        return [f"{singular}[{entry}]" for entry in entries]

    # Covariances.

    def _flat_responses(self, target, root, units=slice(None)):
        """Yield responses (n, d) to some rows after others of ``root``, (rows, coordinates)."""
        n_units = len(np.arange(self._units(target)[0])[units])
        width = 8 * n_units * (self.posterior.n_features + 1) ** 2
        at_once = max(1, _ROOT_BYTES // width)
        for start in range(0, len(root), at_once):
            part = root[start : start + at_once]
            part = part.reshape(len(part), n_units, -1)
            yield self._flat_by_group(target, self.respond(target, part, units))

    def covariance(self, targets, covariance_root):
        """J M^-1 J' + excess, (d, d): exactly symmetric.

        Parameters
        ----------
        covariance_root : callable, int array of coordinates (m,) -> Y with Y' Y = M^-1 there, (rows, m)
        """
        coordinates = [self.coordinates(target) for target in targets]
        distinct, places = np.unique(np.concatenate(coordinates), return_inverse=True)
        root = covariance_root(distinct)
        places = np.split(places.ravel(), np.cumsum([len(part) for part in coordinates])[:-1])
        responses = np.concatenate(
            [
                np.concatenate(list(self._flat_responses(target, root[:, place])))
                for target, place in zip(targets, places, strict=True)
            ],
            axis=1,
        )
        covariance = responses.T @ responses
        stops = np.cumsum([0] + [self.size(target) for target in targets])
        for i, first in enumerate(targets):
            for j, second in enumerate(targets):
                excess = self._excess(first, second)
                if excess is not None:
                    covariance[stops[i] : stops[i + 1], stops[j] : stops[j + 1]] += excess
        return covariance

    def variance(self, target, covariance_root):
        """Diagonal of `covariance` for one target, without the matrix, (d,)."""
        variances = []
        for units in self._groups(target):
            root = covariance_root(self.coordinates(target, units))
            responses = self._flat_responses(target, root, units)
            variances.append(sum(np.square(part).sum(axis=0) for part in responses))
        variance = np.concatenate(variances)
        if target == "means":
            return variance + np.einsum("kpp->kp", self._mean_excess).ravel()
        excess = self._excess(target, target)
        return variance if excess is None else variance + np.diag(excess)

    def sources(self, target, weights):
        """J' weights': the coefficients of combinations of a flat target, (n, d) -> (D, n)."""
        sources = np.zeros((self.posterior.structure.n_coefficients, len(weights)))
        start = 0
        for units in self._groups(target):
            coordinates = self.coordinates(target, units)
            own = weights[:, start : start + len(coordinates)]
            start += len(coordinates)
            if own.any():
                identity = np.eye(len(coordinates))
                jacobian = np.concatenate(list(self._flat_responses(target, identity, units)))  # J'
                sources[coordinates] = jacobian @ own.T
        return sources

    def _excess(self, first, second):
        """Cov_q - J R J' between two targets, or None where it is zero."""
        if first == second == "means":
            return block_diag(*self._mean_excess)
        if {first, second} <= {"log_weights", "weights"}:
            return self._weight_excess[first, second]
        return None

    @cached_property
    def _weight_excess(self):
        """V_pi - V_pi (V_pi + C)^-1 V_pi = C (V_pi + C)^-1 V_pi of log pi, and what it makes of pi."""
        counts = self.count_response(self.posterior.intercept_excess)  # C (V_pi + C)^-1
        log_weights = counts @ self.posterior.log_weight_covariance
        crossed = counts @ self._weight_jacobian.T
        weights = self._weights_per_log_weights @ crossed
        return {
            ("log_weights", "log_weights"): 0.5 * (log_weights + log_weights.T),
            ("log_weights", "weights"): crossed,
            ("weights", "log_weights"): crossed.T,
            ("weights", "weights"): 0.5 * (weights + weights.T),
        }

    @cached_property
    def _weights_per_log_weights(self):
        """d weights / d E log pi, (K, K)."""
        covariance = self.posterior.log_weight_covariance
        scale = np.sqrt(np.diag(covariance))
        scale = np.where(scale > 0, scale, 1.0)  # V_pi = 0 for one component
        scaled = lstsq(covariance / np.outer(scale, scale), self._weight_jacobian.T / scale[:, None])[0]
        return scaled.T / scale

    @property
    def mean_excess_scale(self):
        """Excess of the Student t over the normal in every mean's covariance, in units of E Sigma, (K,)."""
        posterior = self.posterior
        factor = posterior.structure.mean_excess_factor(posterior.effective_degrees_of_freedom)
        return factor * (not posterior.prior.independent) / posterior.mean_precision

    @property
    def _mean_excess(self):
        """The same in the units of the means, (K, P, P)."""
        covariance_cholesky, structure = self.posterior.covariance_cholesky, self.posterior.structure
        covariances = structure.dense(structure.congruence(covariance_cholesky, structure.identity))
        return self.mean_excess_scale[:, None, None] * covariances
