"""The priors of the hyperparameters b0 and C0 where they are learned, for references and tests.

    b0 ~ Gamma(P/2, P/2),    C0 ~ Wishart(d, A^-1),    A = (d/nu0) S^-1,

with S the covariance of the rows. C0 is of Wishart blocks (d, d), as `covariance_types.py` has them.
"""

from dataclasses import dataclass

import numpy as np
from covariance_types import TYPES


@dataclass(frozen=True)
class Hyperprior:
    """What is known of b0 and C0 before the rows are seen.

    Attributes
    ----------
    shape, rate : float or None, of b0; None where it is given
    freedom : float or None, of C0; None where it is given
    inverse_scale : A in the shape of one precision, or None
    """

    shape: float | None
    rate: float | None
    freedom: float | None
    inverse_scale: np.ndarray | None

    @classmethod
    def of(cls, mixture, X, covariance=None):
        """That of a mixture with ``prior``, ``mean_precision_prior`` and ``covariance_prior``.

        Rows that count several times stand there several times. With noise or heavy tails S, which is then
        that of a core of the rows, is to be passed.
        """
        n_features = X.shape[1]
        shape = freedom = inverse_scale = None
        if mixture.prior == "learned" and mixture.mean_precision_prior is None:
            shape = 0.5 * n_features
        if mixture.prior == "learned" and mixture.covariance_prior is None:
            covariance_type = TYPES[mixture.covariance_type]
            freedom = covariance_type.block_size(n_features)
            if covariance is None:
                covariance = covariance_type.prior(np.cov(X.T).reshape(n_features, n_features))
            inverse_scale = freedom / mixture.degrees_of_freedom_prior_ * covariance_type.inverse(covariance)
        return cls(shape, shape, freedom, inverse_scale)

    @property
    def learns_mean_precision(self):
        return self.shape is not None

    @property
    def learns_covariance(self):
        return self.freedom is not None
