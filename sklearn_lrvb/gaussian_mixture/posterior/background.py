"""The background: the noise component of a mixture, whose density is the same everywhere.

*Rows with holes.* A density per volume of all P features says nothing of a row that shows only some of them,
the o. Let S be the covariance C0 of the prior, in any unit. The volume of the background is

    V = |S|^(1/2) r^P,        V_o = |S_oo|^(1/2) r^(P_o),

where the first equation defines the length r, and the second is the volume of the background in the features
that are seen. So changes of the features' units change the densities of the components and of the background
by the same factors, and a row without any value has the density one under all of them.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Background:
    """A constant density.

    Attributes
    ----------
    log_density : float, for complete rows
    covariance : (...), S in the shape of the covariance structure
    """

    log_density: float
    covariance: np.ndarray

    def changes_by_holes(self, structure, hidden):
        """What the log density of rows with holes has more than that of complete rows: (g,).

        Parameters
        ----------
        structure : CovarianceStructure
        hidden : bool array (g, P), which features each pattern of holes hides
        """
        whole = 0.5 * structure.log_determinants(structure.cholesky(self.covariance[None]))[0]
        shares = 1.0 - hidden.mean(axis=1)
        return shares * (self.log_density + whole) - self.log_density - self._of_seen(structure, ~hidden)

    def _of_seen(self, structure, seen):
        """log|S_oo|/2 of every pattern, bool array (g, P) -> (g,)."""
        if not structure.is_matrix:
            logs = np.log(structure.diagonal(self.covariance))
            return 0.5 * seen @ np.broadcast_to(logs, seen.shape[1])
        # Hidden features become independent ones of variance one.
        both = seen[:, :, None] & seen[:, None, :]
        return 0.5 * np.linalg.slogdet(np.where(both, self.covariance, np.eye(seen.shape[1])))[1]
