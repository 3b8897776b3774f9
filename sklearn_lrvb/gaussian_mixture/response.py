"""Linear response of the mixture: complete and missing information in whitened coordinates.

A perturbation of the posterior moves the log responsibilities by d rho_k = beta_k . h_k with the features
h of `covariance_structures`, and beta solves (R^-1 - G) beta = source, where

    R^-1 : (V_pi + C)^-1 on the K intercepts, tau_k on y, c_k on svec(y y' - O)/sqrt 2,
           C_k = (Var log|Lambda_k| - 2P/nu_k)/4 + P/(2 tau_k^2),
    G    : sum_n [(r_nk delta_kl - r_nk r_nl) h_nk h_nl']_kl.

It is Eq. nuisance_lrvb_est with E[mu mu'] and log|Lambda| eliminated by hand: half the unknowns, and a
condition number of order one. Coefficients are arrays (K, F), flat where a matrix acts on them.
"""

import functools
import operator

import numpy as np

from sklearn_lrvb.gaussian_mixture.sweep import centred_on_average, expect
from sklearn_lrvb.gaussian_mixture.variational_posterior import Moments
from sklearn_lrvb.linear_response.observed_information import (
    CompleteInformation,
    MatrixFreeInformation,
    ObservedInformation,
)

# Rows whose assignment is certain carry no missing information and are left out; all that is left out
# has a trace below this in units of the complete information.
_NEGLIGIBLE_INFORMATION = 1e-13

_GRAM_BYTES = 2**25  # of features held at once


def complete_information(posterior, quadratic_information=None):
    """R^-1 (Eq. nuisance_lrvb_est without latent variables).

    Parameters
    ----------
    quadratic_information : (K,), default c_k
        nu_k instead gives q's own covariance.
    """
    if quadratic_information is None:
        quadratic_information = posterior.information
    n_coefficients = posterior.structure.n_coefficients
    root = np.ones((posterior.n_components, n_coefficients))
    root[:, 1:] = 1.0 / np.sqrt(
        posterior.structure.complete_information(posterior.mean_precision, quadratic_information)
    )
    return CompleteInformation(
        np.arange(posterior.n_components) * n_coefficients,
        posterior.intercept_root,
        root.ravel(),
    )


def _uncertain_rows(rows, posterior):
    """Yield whitened rows (K, P, n) and responsibilities (K, n) of the rows that count in G."""
    threshold = _NEGLIGIBLE_INFORMATION / rows.n_samples
    origin_norm = np.sqrt(np.einsum("kpq,kpq->k", *2 * [posterior.second_moment_origin]))[:, None]
    intercept_scale = 2.0 * np.square(posterior.intercept_root).sum(axis=1)[:, None]

    def one_block(_, block):
        expectation = expect(posterior, block)
        r = expectation.responsibilities
        squared = np.einsum("kpn,kpn->kn", expectation.whitened, expectation.whitened)
        # trace of T' (this row's share of G) T, from above
        feature_norm = (
            intercept_scale
            + squared / posterior.mean_precision[:, None]
            + 0.5 * (squared + origin_norm) ** 2 / posterior.information[:, None]
        )
        uncertain = np.einsum("kn,kn->n", r * (1.0 - r), feature_norm) > threshold
        return expectation.whitened[:, :, uncertain], r[:, uncertain]

    yield from rows.map(one_block)


def _gathered(parts, n_rows):
    """Concatenate small parts into parts of about ``n_rows`` rows."""
    waiting, size = [], 0
    for part in parts:
        waiting.append(part)
        size += part[1].shape[1]
        if size >= n_rows:
            yield tuple(np.concatenate(arrays, axis=-1) for arrays in zip(*waiting, strict=True))
            waiting, size = [], 0
    if size:
        yield tuple(np.concatenate(arrays, axis=-1) for arrays in zip(*waiting, strict=True))


def missing_information(rows, posterior):
    """G, (K F, K F): a pass over the rows, memory independent of their number.

    About n K^2 F^2 flops for n uncertain rows, fewer where a row is uncertain between few components.
    """
    structure, n_components = posterior.structure, posterior.n_components
    n_coefficients = structure.n_coefficients
    missing = np.zeros((n_components, n_coefficients) * 2)
    at_once = max(64, _GRAM_BYTES // (8 * n_components * n_coefficients))
    for whitened, r in _gathered(_uncertain_rows(rows, posterior), at_once):
        for start in range(0, r.shape[1], at_once):
            part = slice(start, start + at_once)
            _add_missing_information(missing, posterior, whitened[:, :, part], r[:, part])
    for k in range(n_components):
        for other in range(k):
            missing[k, :, other] = missing[other, :, k].T
    return missing.reshape(2 * [n_components * n_coefficients])


def _add_missing_information(missing, posterior, whitened, r):
    """Add the rows' share to the blocks k <= l of G."""
    features = [
        posterior.structure.features(rows_k, origin)
        for rows_k, origin in zip(whitened, posterior.second_moment_origin, strict=True)
    ]
    # in units of the complete information, so that an outlier counts by its features, too
    sizes = [
        np.sqrt(np.einsum("fn,fn->n", part, part) / information)
        for part, information in zip(features, posterior.information, strict=True)
    ]
    negligible = _NEGLIGIBLE_INFORMATION / posterior.counts.sum()
    for k, features_k in enumerate(features):
        others = np.delete(r, k, axis=0).sum(axis=0)  # 1 - r_k to the last digit, also where r_k is almost 1
        scaled = features_k * np.sqrt(r[k] * others)
        missing[k, :, k] += scaled @ scaled.T
        for other in range(k + 1, len(features)):
            weight = r[k] * r[other]
            shared = np.flatnonzero(weight * sizes[k] * sizes[other] > negligible)
            if 2 * shared.size < weight.size:
                product = (features_k[:, shared] * weight[shared]) @ features[other][:, shared].T
            else:
                product = (features_k * weight) @ features[other].T
            missing[k, :, other] -= product


def observed_information(rows, posterior):
    """M = R^-1 - G at the posterior, as an ObservedInformation of size K F."""
    return ObservedInformation(complete_information(posterior), missing_information(rows, posterior))


def missing_information_product(rows, posterior, coefficients):
    """G beta for coefficients (K F,), without G: a pass that costs about a sweep and a half."""
    structure = posterior.structure
    constant, linear, quadratic = structure.polynomials(
        coefficients.reshape(posterior.n_components, -1), posterior.second_moment_origin
    )

    def one_block(_, block):
        expectation = expect(posterior, block)
        y, r = expectation.whitened, expectation.responsibilities
        # d rho = beta . h, d r = V_z d rho, then the moments of d r
        moved = constant[:, None] + np.einsum("kpn,kpn->kn", np.matmul(quadratic, y), y)
        moved += np.einsum("kp,kpn->kn", linear, y)
        moved = centred_on_average(moved, r)
        moved *= r
        return Moments(
            moved.sum(axis=1),
            np.einsum("kpn,kn->kp", y, moved),
            structure.signed_second_moments(y, moved),
        )

    moments = functools.reduce(operator.add, rows.map(one_block))
    return structure.feature_moments(
        moments.counts, moments.first, moments.second, posterior.second_moment_origin
    ).ravel()


def matrix_free_information(rows, posterior):
    """M = R^-1 - G through its products with vectors."""
    return MatrixFreeInformation(
        complete_information(posterior),
        functools.partial(missing_information_product, rows, posterior),
    )


def _own_moments(posterior):
    """Complete moments of q in its own frames: N_k, 0, c_k I."""
    identity = np.eye(posterior.n_features)
    return Moments(
        posterior.counts,
        np.zeros_like(posterior.offsets),
        posterior.information[:, None, None] * identity,
    )


def sweep_residual(posterior, moments):
    """EM(s) - s in the coordinates of beta, (K F,): zero at a fixed point of the sweep."""
    own = _own_moments(posterior)
    return posterior.structure.feature_moments(
        moments.counts - own.counts,
        moments.first - own.first,
        moments.second - own.second,
        np.eye(posterior.n_features),
    ).ravel()


def step(posterior, coefficients):
    """The posterior whose sufficient statistics are moved by ``coefficients``, (K F,)."""
    change = Moments(*posterior.structure.moments(coefficients.reshape(posterior.n_components, -1)))
    return posterior.moved(_own_moments(posterior) + change)
