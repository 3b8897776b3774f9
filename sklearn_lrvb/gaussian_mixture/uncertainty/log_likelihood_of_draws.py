"""Log likelihood of rows under draws of the parameters.

Under weights pi, means mu and precisions Lambda a row counts with the likelihood that the fit maximises,

    log sum_k pi_k N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2),

reg_covar being the known noise on x. In the frame of the fitted component, y = W_k (x - m_k), a draw's mean
is d = W_k (mu_k - m_k) and its precision R = L' Lambda_k L with L = W_k^-1. The logarithm of a component's
term is a polynomial of degree two in y,

    constant - (y - d)' R (y - d)/2,

whose coefficients are of order one where the component holds rows: no digits are lost, wherever X lies. The
values of all draws are one matrix product.
"""

import math

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.own_frames import OwnFrames
from sklearn_lrvb.row_blocks import batches, rows_of_size

_LARGEST_BYTES = 4 * 2**30  # of the result; what reads it makes several copies


def check_log_likelihood_size(n_draws, n_rows):
    """Raise MemoryError where the log likelihood of so many rows under so many draws is too large."""
    size = 8 * n_draws * n_rows
    if size > _LARGEST_BYTES:
        raise MemoryError(
            f"The log likelihood of {n_rows} rows under {n_draws} draws takes {size / 2**30:.1f} GiB; up to "
            f"{_LARGEST_BYTES / 2**30:g} GiB are computed. (a) Ask for fewer draws: n_draws="
            f"{max(1, _LARGEST_BYTES // (8 * n_rows))}. (b) Leave X out, for the posterior alone. (c) "
            "loo_score_samples leaves rows out without draws."
        )


def log_likelihood_of_draws(rows, posterior, origin, draws):
    """Log likelihood of every row, as often as it counts, under every draw: (n_draws, n_rows).

    Parameters
    ----------
    rows : CentredRows
    posterior : VariationalPosterior
    origin : (P,), from where the posterior's positions are measured
    draws : dict of ndarray (n_draws, *shape of the attribute), "weights", "means" and "precisions"
    """
    n_draws = len(draws["weights"])
    by_row = np.empty((rows.n_samples, n_draws))
    # Polynomials of a draw, and values in the rows of a block.
    numbers_per_draw = posterior.structure.n_coefficients + 2 * rows_of_size(2 * n_draws)
    for batch in batches(n_draws, 8 * numbers_per_draw):
        some = {name: values[batch] for name, values in draws.items()}
        likelihood = LogLikelihood(posterior, origin, some)
        rows.write(likelihood.values, by_row[:, batch], likelihood.numbers_per_row)
    return by_row.T


class LogLikelihood:
    """The log likelihood of rows under some draws.

    Parameters
    ----------
    posterior, origin, draws : as in `log_likelihood_of_draws`
    """

    def __init__(self, posterior, origin, draws):
        self._arguments = posterior, origin, draws
        self._frames = OwnFrames(posterior)
        self._log_terms = [
            _log_term(posterior, draws, draws["means"][:, k] - origin, k)
            for k in range(posterior.n_components)
        ]
        self._n_draws = len(draws["weights"])
        self.numbers_per_row = max(2 * self._n_draws, self._frames.numbers_per_row)

    def __reduce__(self):
        # The polynomials cannot be pickled, and are quick to compute again.
        return type(self), self._arguments

    def values(self, block, out):
        """Log likelihood of a block of n rows, each as often as it counts, written to (n, n_draws)."""
        total = np.full((self._n_draws, block.n_rows), -np.inf)
        for log_term, whitened in zip(self._log_terms, self._frames.whiten(block.rows), strict=True):
            np.logaddexp(total, log_term(whitened), out=total)
        out[...] = block.weighted(total).T


def _log_term(posterior, draws, centred_means, k):
    """log pi_k N(x; mu_k, Lambda_k^-1) exp(-reg_covar trace(Lambda_k)/2): callable, (P, n) -> (n_draws, n).

    Parameters
    ----------
    centred_means : (n_draws, P), the draws of mu_k, measured from the posterior's origin
    """
    structure, group = posterior.structure, posterior.structure.layout.precision_group(k)
    precisions = structure.reporting.by_group(draws["precisions"])
    cholesky, whitener = (maps[[group]] for maps in (posterior.covariance_cholesky, posterior.whiteners))
    relative = structure.congruence(structure.transposed(cholesky), precisions[:, [group]])[:, 0]
    means = structure.transformed(whitener, (centred_means - posterior.centred_means[k])[:, None])[:, 0]
    linear = structure.transformed(relative, means)
    with np.errstate(divide="ignore"):
        # Draws from the prior of an empty component may be singular: their density is zero.
        log_determinants = np.nan_to_num(
            structure.log_determinants(structure.cholesky(relative)), nan=-np.inf, neginf=-np.inf
        )
        log_weights = np.log(draws["weights"][:, k])
    log_determinants -= structure.log_determinants(posterior.covariance_cholesky)[group]
    trace = structure.power * structure.trace(precisions[:, group])
    constant = log_weights + 0.5 * (
        log_determinants
        - structure.n_features * math.log(2.0 * math.pi)
        - posterior.prior.reg_covar * trace
        - np.einsum("np,np->n", means, linear)
    )
    return structure.values(constant, linear, -0.5 * relative)
