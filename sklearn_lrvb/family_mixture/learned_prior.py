"""Hyperparameters that are learned from the rows: how alike classes are.

*Model.* A learned hyperparameter u has the prior Gamma(s, s/c), with mean c. All columns whose families have
it share it. The natural parameters of the prior are linear in it: they are those for the value c, which the
families have, and (u - c) d, d being their `directions`. So a prior with another u is the same prior with
(u - c) d more in the sums of every class, and families know nothing of u.

*Updates.* u is the mode of log u given the sums S over the rows of the classes. With A the log partition
function of the columns it maximizes

    F = sum_k [A(S_k + (u - c) d) - A((u - c) d)] + s log u - s u/c,

by Newton's method. The slope of F in u is the sum over the classes of d'(E_q T - E_prior T), and s/u - s/c:
where it is zero, u is also the mean of a mean-field factor q(u), if u is conjugate. So u is a function of S,
and has no state of its own. Classes without rows do not count. The lower bound is the one for given u, and
the log prior density of log u.

*Information.* With R = Cov_q(T), and Q the changes u d of the natural parameters of all classes by log u, the
response of q to a change of its sums is R_new dS, and that of log u is dv, where

    R_new^-1 = R^-1 - Q I^-1 Q',    dv = I^-1 Q' R_new dS,    I = s + u^2 K d' Cov_prior(T) d.

So log u is a hidden variable like the labels: the observed information is M = R^-1 - G - Q I^-1 Q'.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

# Newton's method for log u: its number of steps and their length at most, and the length of a step that ends
# it, because convergence is quadratic.
_MOST_STEPS, _LONGEST_STEP, _CONVERGED = 100, 2.0, 1e-4


@dataclass(frozen=True, eq=False)
class LearnedPrior:
    """What is known of L hyperparameters before the rows are seen.

    Parameters
    ----------
    names : tuple of str, (L,), the arguments that they stand for
    members, member_columns : (W, L) and (P, L), one where a feature or a column, by family, has it, else zero
    directions : (W,), d
    means : (L,), c
    shape : float, s
    """

    names: tuple
    members: np.ndarray
    member_columns: np.ndarray
    directions: np.ndarray
    means: np.ndarray
    shape: float

    @classmethod
    def of_families(cls, families, names, shape):
        """That of the hyperparameters with some names, or None where no family has any.

        Parameters
        ----------
        families : sequence of ColumnFamily, with the values c
        names : collection of str
        shape : float, s
        """
        means, members, columns, directions = {}, [], [], [[0.0]]
        for family in families:
            means |= {name: family.prior_values[name] for name in family.directions if name in names}
        if not means:
            return None
        for family in families:
            own = np.array([name in family.directions for name in means], dtype=np.float64)
            own_directions = sum(family.directions.values(), np.zeros((family.n_columns, family.n_features)))
            columns.append(np.tile(own, (family.n_columns, 1)))
            members.append(np.tile(own, (own_directions.size, 1)))
            directions.append(own_directions.ravel())
        return cls(
            tuple(means),
            np.concatenate([np.zeros((1, len(means))), *members]),
            np.concatenate(columns),
            np.concatenate(directions),
            np.array(list(means.values())),
            shape,
        )

    def offset(self, values):
        """(u - c) d, what some u add to the sums of a class: (..., L) -> (..., W)."""
        return ((values - self.means) @ self.members.T) * self.directions

    def along(self, features):
        """d'x of every u: (..., W) -> (..., L)."""
        return (features * self.directions) @ self.members

    # The mode, given the sums.

    def given(self, prior, sums):
        """The prior with the u that are optimal for sums over the rows of the classes, (K, W): ClassPrior.

        It stays as it is where classes have no posterior with these sums.
        """
        n_components, n_features = sums.shape
        both = np.concatenate([sums, np.zeros((1, n_features))])  # The last one's q is the prior.
        signs = np.append(np.ones(n_components), -n_components)

        def slopes(values, offset):
            return self._slopes(values, *(signs @ prior.moments_along(both + offset, self.directions)))

        return self._at_root(prior, slopes)

    def given_statistics(self, prior, statistics):
        """The same, for a q whose E T, (K, W), does not follow u."""
        n_components, total = len(statistics), statistics.sum(axis=0)

        def slopes(values, offset):
            expected, covariance = n_components * prior.moments_along(offset, self.directions)
            return self._slopes(values, total - expected, -covariance)

        return self._at_root(prior, slopes)

    def _slopes(self, values, expected, covariance):
        """First and second derivatives in log u: (L,) each.

        Parameters
        ----------
        values : (L,), u
        expected, covariance : (W,), whose products with d are the derivatives in u of all but the prior of u
        """
        slope = self.shape * (1.0 - values / self.means) + values * self.along(expected)
        return slope, slope - self.shape + np.square(values) * self.along(covariance)

    def _at_root(self, prior, slopes):
        """A prior with the u at which a function of log u has no slope, by Newton's method within brackets.

        Parameters
        ----------
        prior : ClassPrior, where the search begins
        slopes : callable
            First and second derivatives of the function in log u, (L,) each, at some u, (L,), and what these
            add to the sums beside the u of the prior, (W,).
        """
        logs = np.log(prior.learned_values)
        low, high = np.full(logs.shape, -np.inf), np.full(logs.shape, np.inf)
        for _ in range(_MOST_STEPS):
            values = np.exp(logs)
            slope, curvature = slopes(values, self.offset(values) - prior.offset)
            if not np.isfinite(slope).all():
                return prior
            rises = slope > 0.0
            low, high = np.where(rises, logs, low), np.where(rises, high, logs)
            step = np.divide(-slope, curvature, out=_LONGEST_STEP * np.sign(slope), where=curvature < 0.0)
            step = np.maximum(np.minimum(step, _LONGEST_STEP), -_LONGEST_STEP)
            is_outside = (logs + step > high) | (logs + step < low)
            if is_outside.any():
                step = np.where(is_outside, 0.5 * (low + high) - logs, step)
            logs = logs + step
            if np.abs(step).max() < _CONVERGED:
                break
        return prior.with_learned(np.exp(logs))

    def _variance(self, prior, sums):
        """u^2 d' Cov_q(T) d, summed over some classes: (n, W) -> (L,)."""
        covariance = prior.covariance_with(sums, self.directions).sum(axis=0)
        return np.square(prior.learned_values) * self.along(covariance)

    # The bound, and the information.

    def log_density(self, values):
        """Logarithms of the prior densities of log u: (..., L) -> (..., L)."""
        rates = self.shape / self.means
        constant = self.shape * np.log(rates) - gammaln(self.shape)
        return constant + self.shape * np.log(values) - rates * values

    def information(self, prior):
        """I, (L,), at the u of a prior."""
        nothing = np.zeros((1, len(self.directions)))
        return self.shape + prior.n_components * self._variance(prior, nothing)

    def information_given(self, prior, sums):
        """-d^2 F/(d log u)^2 at the u of a prior that is optimal for the sums, (L,)."""
        return self.information(prior) - self._variance(prior, sums)

    def sources(self, prior):
        """Q of one class, (W, L)."""
        return self.members * self.directions[:, None] * prior.learned_values
