"""Fits to fewer rows than features, in the space that the rows span.

*Mathematics.* Let the columns of Q (P x r, orthonormal) span all centred rows and the prior's mean, and let
the prior be the same in all directions orthogonal to them,

    C0 = Q C Q' + e (I - Q Q').

By default it is: C0 is the covariance of the rows plus e = reg_covar times the identity. Then the means stay
in the span, and every precision of q remains block diagonal, with a multiple of the identity in the
complement that the expected counts alone determine (`posterior.mixture_prior`). So the fit to the projected
rows Q'x under the prior C, with the complement's contributions, has the same responsibilities and lower
bounds as the fit to the rows themselves. Every iteration and every Newton step has the same result; only the
choice between them, which goes by cost, may differ. An iteration takes N^3 flops in place of P^3. Only the
end, which is mapped back once, and a start from an earlier posterior need P dimensions.

`RowSpan` holds the projected rows and prior, and maps posteriors to and from the span. `AscentInSpan` makes
the fit there.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, lapack, qr

from sklearn_lrvb.gaussian.e_step.coordinates import posterior_from_responsibilities
from sklearn_lrvb.gaussian.posterior.mixture_prior import Complement, MixturePrior
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.rows import ArrayRows
from sklearn_lrvb.symmetric_matrices import round_off, scaled_to_unit_diagonal, symmetrized

# Rounding of a given covariance prior, relative to its diagonal, such as the covariance of the rows plus a
# multiple of the identity: sums of a few hundred products.
_ROUNDING_OF_PRIOR = 1e-13

_QR_BLOCK = 32  # Columns that the triangular QR decomposition eliminates at once.


@dataclass(frozen=True)
class RowSpan:
    """Rows and prior, projected onto a subspace that holds all rows.

    Attributes
    ----------
    basis : (P, r), Q
    rows : ArrayRows in r dimensions
    prior : MixturePrior of the projected rows
    all_rows, whole_prior : ArrayRows and MixturePrior in P dimensions
    """

    basis: np.ndarray
    rows: ArrayRows
    prior: MixturePrior
    all_rows: ArrayRows
    whole_prior: MixturePrior

    @classmethod
    def if_smaller(cls, rows, prior):
        """The span of the rows, or None.

        There is none where they outnumber their features or have missing values or scales, or where the prior
        does not allow it. The prior's mean counts as a row if it is not that of the rows.

        Parameters
        ----------
        rows : Rows; no more rows than features are in memory
        prior : MixturePrior
        """
        n_samples, with_mean = rows.n_samples, bool(prior.mean.any())
        size = n_samples + with_mean
        structure = None if size > rows.n_features else prior.structure.projected(size)
        has_other = structure is not None and (structure.has_scales or structure.parts.learns_covariance)
        if prior.flat or structure is None or rows.has_missing or has_other:
            return None
        columns = rows.block(slice(0, n_samples)).rows
        if with_mean:
            columns = np.column_stack([columns, prior.mean])
        basis, coordinates = qr(columns, mode="economic", overwrite_a=True, check_finite=False)
        projected = np.ascontiguousarray(coordinates[:, :n_samples].T)
        projected_rows = replace(rows, X=projected, origin=np.zeros(size))
        if prior.ridge:  # C0 is the covariance of the rows plus this multiple of the identity.
            ridge = prior.ridge
            weighted = projected if rows.sample_weight is None else rows.sample_weight[:, None] * projected
            in_span = projected.T @ weighted / (rows.total_weight - 1.0) + ridge * np.eye(size)
        else:
            divided = _divided_covariance(prior.covariance, basis)
            if divided is None:
                return None
            in_span, ridge = divided
        # A coordinate combines all features, each with its own rounding.
        variances_of_rounding = round_off(rows.n_features) * (rows.variances @ np.square(basis))
        projected_prior = replace(
            prior,
            structure=structure,
            mean=coordinates[:, -1].copy() if with_mean else np.zeros(size),
            covariance=in_span,
            resolution=np.sqrt(variances_of_rounding),
            complement=Complement(rows.n_features - size, ridge, prior.reg_covar),
            learned=prior.learned and replace(prior.learned, structure=structure, covariance=in_span),
        )
        return cls(basis, projected_rows, projected_prior, rows, prior)

    def projected(self, posterior):
        """The image in the span of a posterior in P dimensions that an iteration has led to."""
        images = self.basis.T @ posterior.covariance_cholesky
        factors = np.linalg.qr(images.swapaxes(-1, -2), mode="r")
        return replace(
            posterior,
            prior=self.prior,
            centred_means=posterior.centred_means @ self.basis,
            covariance_cholesky=np.array([_lower_cholesky(factor) for factor in factors]),
        )

    def expanded(self, posterior):
        """A posterior in the span, in P dimensions."""
        groups = zip(posterior.covariance_cholesky, posterior.complement_variance, strict=True)
        return replace(
            posterior,
            prior=self.whole_prior,
            centred_means=posterior.centred_means @ self.basis.T,
            covariance_cholesky=np.array([self._expanded_cholesky(*group) for group in groups]),
        )

    def _expanded_cholesky(self, cholesky, variance):
        """Lower Cholesky factor of Q (L L' - v I) Q' + v I: (r, r), float -> (P, P).

        It is computed from roots of the two terms, whose sum would lose the digits of a small v.
        """
        excess = cholesky @ cholesky.T
        excess[np.diag_indices_from(excess)] -= variance
        factor, order, rank, _ = lapack.dpstrf(excess, tol=0.0, lower=False)
        root = np.triu(factor)[:rank] @ self.basis[:, order - 1].T
        small = np.zeros((len(self.basis), len(self.basis)), order="F")
        np.fill_diagonal(small, np.sqrt(variance))
        block = min(_QR_BLOCK, len(small))
        return _lower_cholesky(lapack.dtpqrt(0, block, small, root, overwrite_a=True, overwrite_b=True)[0])


def _lower_cholesky(factor):
    """L = R' with a positive diagonal for the triangle R of a QR decomposition, which is used up: (n, n)."""
    factor[np.diag(factor) < 0] *= -1.0
    return factor.T


def _divided_covariance(covariance, basis):
    """C and e with C0 = Q C Q' + e (I - Q Q'), or None.

    No eigenvalue of C may be below e: then none of L L' is below v in `RowSpan._expanded_cholesky`.
    """
    n_features, size = basis.shape
    if size == n_features:
        return None
    in_span = symmetrized(basis.T @ (covariance @ basis))
    ridge = float((np.trace(covariance) - np.trace(in_span)) / (n_features - size))
    rest = covariance - basis @ (in_span - ridge * np.eye(size)) @ basis.T - ridge * np.eye(n_features)
    scale = scaled_to_unit_diagonal(covariance)[1]
    is_divided = np.abs(rest / scale[:, None] / scale).max() <= _ROUNDING_OF_PRIOR
    smallest = eigh(in_span, eigvals_only=True, subset_by_index=[0, 0])[0]
    least = ridge - _ROUNDING_OF_PRIOR * np.diag(in_span).max()
    return (in_span, ridge) if is_divided and ridge > 0 and smallest >= least else None


@dataclass(frozen=True)
class AscentInSpan(Ascent):
    """The ascent of a fit in the span of its rows.

    Attributes
    ----------
    span : RowSpan, whose rows are those of the ascent
    """

    span: RowSpan | None = None

    def start_from(self, responsibilities, prior):
        """The state before the first step, after an M-step from given responsibilities, in the span.

        The moments are taken in the whitened coordinates of C0, in which also the directions without scatter
        have variances of order one.

        Parameters
        ----------
        responsibilities : array or sparse array (n_samples, n_labels)
        prior : MixturePrior in P dimensions; that of the span takes its place
        """
        in_span = self.span.prior
        factors = np.repeat(in_span.covariance_cholesky, in_span.structure.n_groups, axis=0)
        return self.start_at(posterior_from_responsibilities(self.rows, in_span, responsibilities, factors))

    def start_at(self, posterior, path=()):
        """The state before the first step, at a posterior.

        A posterior in P dimensions may have means and precisions outside the span. An iteration, the first
        step of the fit, leads into it.
        """
        if posterior.structure is self.span.prior.structure:
            return super().start_at(posterior, path)
        outside = Ascent(self.span.all_rows, self.tol, self.max_iter).start_at(posterior, path)
        if not self.max_iter:
            return outside
        inside = self.span.projected(outside.next_posterior)
        return self._accepted(outside, inside, e_step(self.rows, inside))

    def rows_of(self, fit):
        """The rows in the coordinates of a state: those in P dimensions where it is outside the span."""
        return self.span.all_rows if fit.posterior.structure is self.span.whole_prior.structure else self.rows

    def ended(self, fit):
        """The state at the end of the fit, in P dimensions."""
        if fit.posterior.structure is self.span.whole_prior.structure:
            return fit
        return replace(
            fit,
            posterior=self.span.expanded(fit.posterior),
            e_step_result=None,
            information=None,
            direction=None,
        )
