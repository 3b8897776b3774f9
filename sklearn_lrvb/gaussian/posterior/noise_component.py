"""The noise component of a mixture, whose density is the same everywhere.

*Rows with missing values.* A density in all P features does not say what it is in the features o that a row
shows. Let S be the prior's C0; a constant factor in it has no effect. With the volume V of the noise
component,

    V = |S|^(1/2) r^P,        V_o = |S_oo|^(1/2) r^(P_o),

the first equation defines r, and the second the volume in the features seen. So a change of units multiplies
the densities of components and noise component by the same factor, and a row without any value has the
density one under the noise component, as it has about one under every component.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class NoiseComponent:
    """A constant density.

    Attributes
    ----------
    log_density : float, for complete rows
    covariance : (...), S in the shape of the covariance structure
    """

    log_density: float
    covariance: np.ndarray

    def log_density_changes(self, structure, is_missing):
        """Log density of rows with missing values minus that of complete rows, (g,).

        Parameters
        ----------
        structure : CovarianceStructure
        is_missing : bool array (g, P), which features are missing in each pattern
        """
        half_log_determinant = 0.5 * structure.log_determinants(structure.cholesky(self.covariance[None]))[0]
        seen_shares = 1.0 - is_missing.mean(axis=1)
        of_unit_volume = seen_shares * (self.log_density + half_log_determinant)
        return of_unit_volume - self.log_density - self._of_seen(structure, ~is_missing)

    def _of_seen(self, structure, seen):
        """log|S_oo|/2 of every pattern, bool array (g, P) -> (g,)."""
        if not structure.is_matrix:
            logs = np.log(structure.diagonal(self.covariance))
            return 0.5 * seen @ np.broadcast_to(logs, seen.shape[1])
        # Missing features become independent ones of variance one.
        both = seen[:, :, None] & seen[:, None, :]
        return 0.5 * np.linalg.slogdet(np.where(both, self.covariance, np.eye(seen.shape[1])))[1]
