"""Draws of the posterior by linear response, and how far these are from the exact posterior.

The exact posterior's density, less that of the draws by linear response, is a log ratio r; both densities are
arithmetic of the model (`MixtureModel`). The variance of r and its slopes tell how good linear response is,
for the price of a few passes over the rows: the *mean shift* is what the means are off by to first order.
Weights of draws (`importance`) tell the evidence. Chains for which r is the potential follow the exact
posterior (`chains`, `exact`).
"""

from functools import cached_property

import numpy as np

from sklearn_lrvb.rows import batches, untracked
from sklearn_lrvb.sampling.copula import CopulaDensity
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.sampling.importance import ImportanceWeights
from sklearn_lrvb.sampling.likelihood import check_log_likelihood_size, log_likelihood_of_draws

_ARRAYS_PER_DRAW = 16  # Number of arrays of the size of the coefficients that exist at once.
# Least prior concentration, and reciprocal of the largest, with which log densities have digits. The
# logarithms of weights are as large as its reciprocal, and differences of order one count.
_LEAST_CONCENTRATION = 1e-12

_N_PAIRS = 32  # Pairs of antithetic draws from which the mean shift is computed.
_NUMBERS_OF_DRAWS, _DRAWS_OF_RATIOS = 1e6, (256, 1024)  # Of `sd_ratios`: at most so many, and so many draws.


class PosteriorSampler:
    """Draws of the posterior.

    Parameters
    ----------
    uncertainty : PosteriorUncertainty
    rows : Rows or None, default=None
        The training rows, if the caller has them.
    """

    def __init__(self, uncertainty, rows=None):
        self.uncertainty, self._rows = uncertainty, rows
        self.fitted, self.posterior = uncertainty.fitted, uncertainty.fitted.posterior
        self.model = self.posterior.model
        self._source, self._targets = uncertainty.source, uncertainty.targets

    def threads(self):
        """Context in which matrices are factored with as many threads as the fit was allowed."""
        return self._source.threads()

    @cached_property
    def _information(self):
        rows, self._rows = self._rows, None  # Samplers may be kept, without rows.
        return self._source.factored(rows)  # All solvers that factor a matrix draw the same.

    @cached_property
    def copula(self):
        """The distribution of draws that linear response describes, of `MixtureModel.copula`."""
        return self.model.copula(self._targets, self._information)

    @cached_property
    def density(self):
        """Its density, which needs a matrix of all parameters: CopulaDensity."""
        self._source.require_size(self._source.size, "The density of draws")
        return CopulaDensity(self.copula, self._information.root)

    @cached_property
    def proposal_density(self):
        """That of draws of importance sampling, less what these have from the prior: CopulaDensity."""
        copula = self.copula.of_components_with_rows()
        return self.density if copula is self.copula else CopulaDensity(copula, self._information.root)

    def proposed(self, normals, generator):
        """Draws of importance sampling and their log density, by normal variables of `proposal_density`."""
        density = self.proposal_density
        responses = density.responses(normals)
        parameters = self.parameters(density.copula.draws(responses)).completed(generator)
        return parameters, density.log_density(normals, responses, parameters.draws)

    def parameters(self, draws):
        """The parameters that draws stand for: DrawnParameters."""
        return self.model.parameters(self.posterior, self.fitted.origin, draws)

    # Linear response.

    def draws(self, n_draws, random_state, tracked=untracked):
        """Draws of the copula: DrawnParameters.

        Every draw uses its own consecutive random numbers, so that the size of batches does not matter.

        Parameters
        ----------
        n_draws : int
        random_state : numpy.random.RandomState
        tracked : Tracked, through which the batches of draws are gone
        """
        n_normals = self.copula.n_normals
        places, parts = batches(n_draws, 8 * _ARRAYS_PER_DRAW * n_normals), []
        with self.threads():
            for batch in tracked(places, len(places)):
                normals = random_state.standard_normal((batch.stop - batch.start, n_normals))
                parts.append(self.copula.draws(self.copula.responses(normals)))
        return self.parameters(DrawArrays.concatenated(parts))

    def require_log_likelihood(self, n_draws, training_rows):
        """Raise an error where `log_likelihood` will be too large, or these are not the rows of the fit."""
        check_log_likelihood_size(n_draws, training_rows.n_samples)
        self._source.check_training_rows(training_rows)

    def log_likelihood(self, rows, parameters):
        """Log likelihood of every row under every draw, (n_draws, n_rows)."""
        with self.threads():
            return log_likelihood_of_draws(rows, parameters)

    # The exact posterior.

    def why_not_exact(self):
        """Why there is no exact posterior to compute, with remedies: str, or None where there is one."""
        prior = self.posterior.prior
        if prior.flat and self.posterior.n_components > 1:
            return (
                'Under prior="flat" a mixture of several components has no posterior: its density does not '
                "fall off as a weight goes to zero or a mean to infinity, so that nothing can be drawn from "
                'it. Linear response describes the optimum alone. Refit with prior="learned".'
            )
        least, concentration = _LEAST_CONCENTRATION, prior.weights.prior_concentration
        if not prior.flat and not least <= concentration <= 1.0 / least:
            return (
                f"weight_concentration_prior is {concentration:.3g}; the exact posterior needs one between "
                f"{least:g} and {1.0 / least:g}, because the densities of weights have no digits beyond. (a) "
                "Use linear response, method='lrvb'. (b) Fit with a concentration in that range."
            )
        return None

    def checked_rows(self, rows):
        """Raise ValueError unless these are the training rows, and the exact posterior exists."""
        reason = self.why_not_exact()
        if reason is not None:
            raise ValueError(reason)
        self._source.check_training_rows(rows)
        return rows

    def importance(self, rows, n_draws, random_state, tracked=untracked):
        """Draws near the posterior, and their weights by the exact one, which tell the evidence.

        They are draws of the copula, but components that hold no rows may be drawn from their prior.

        Parameters
        ----------
        rows : Rows, checked by `checked_rows`
        n_draws : int
        random_state : numpy.random.RandomState
        tracked : Tracked, through which the batches of draws are gone

        Returns
        -------
        parameters : DrawnParameters
        weights : ImportanceWeights
        """
        n_responses, parts = len(self.proposal_density.root), []
        places = batches(n_draws, 8 * _ARRAYS_PER_DRAW * n_responses)
        with self.threads():
            for batch in tracked(places, len(places)):
                normals = random_state.standard_normal((batch.stop - batch.start, n_responses))
                parameters, log_densities = self.proposed(normals, random_state)
                parts.append((parameters.draws, parameters.log_joint(rows) - log_densities))
        draws, log_ratios = zip(*parts, strict=True)
        weights = ImportanceWeights(np.concatenate(log_ratios))
        return self.parameters(DrawArrays.concatenated(draws)), weights

    def log_ratios_of(self, rows, draws):
        """log p(X, theta) less the copula's log density, of draws made otherwise: (n,); inf where it is 0."""
        parts = []
        with self.threads():
            for batch in batches(len(draws), 8 * _ARRAYS_PER_DRAW * len(self.density.root)):
                some = draws[batch]
                responses, normals = self.coordinates_of(some)
                with np.errstate(all="ignore"):  # What is too far out for digits of its density has none.
                    log_density = self.density.log_density(normals, responses, some)
                log_joint = self.parameters(some).log_joint(rows)
                is_near = np.isfinite(log_density) & np.isfinite(responses).all(axis=1)
                parts.append(np.where(is_near, log_joint - log_density, np.inf))
        return np.concatenate(parts)

    def coordinates_of(self, draws):
        """Responses of draws made otherwise, (n, n_responses), not finite far out; and their normals."""
        with np.errstate(all="ignore"):
            responses = self.copula.responses_of(draws)
            return responses, self.density.normals(np.nan_to_num(responses))

    def log_ratios_and_slopes(self, rows, normals):
        """Log ratios r (n,) of draws at some normals, the slopes of r (n, n_responses), and the draws."""
        responses = self.density.responses(normals)
        draws = self.copula.draws(responses)
        log_joint, slopes = self.parameters(draws).log_joint_and_slopes(rows)
        slopes = self.density.slopes_of_log_ratio(normals, draws, slopes)
        return log_joint - self.density.log_density(normals, responses, draws), slopes, draws


def mean_shifts(sampler, rows, random_state, targets):
    """First-order errors of the means by linear response, in its standard deviations, and Monte Carlo errors.

    Let r be the log ratio of the posterior and the copula, a function of the standard normal e. By Stein's
    identity the mean of e under the posterior is, to first order in r, the mean of dr/de under the copula.

    Parameters
    ----------
    sampler : PosteriorSampler
    rows : Rows, the training rows
    random_state : numpy.random.RandomState
    targets : sequence of str

    Returns
    -------
    shifts, errors : (d,), of the flat targets
    log_ratios : (2 pairs,), log p(X, theta) less the log density of the draws
    """
    density = sampler.proposal_density
    half = random_state.standard_normal((_N_PAIRS, len(density.root)))
    with sampler.threads(), np.errstate(all="ignore"):  # Numbers that overflow end in the state "wrong".
        normals = np.concatenate([half, -half])
        parameters, log_densities = sampler.proposed(normals, random_state)
        log_joints, slopes = parameters.log_joint_and_slopes(rows)
        slopes = density.slopes_of_log_ratio(normals, parameters.draws, slopes)
        by_pair = density.responses(0.5 * (slopes[:_N_PAIRS] + slopes[_N_PAIRS:]))
        scores = [_scores(sampler, parameters, target, by_pair) for target in targets]
    scores = np.concatenate(scores, axis=1)
    return scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(_N_PAIRS), log_joints - log_densities


def sd_ratios(sampler, random_state, log_weights, *targets):
    """Standard deviations of draws by linear response over those that it reports, of flat targets: (d,).

    They are the same where a mean does not depend on its uncertain precision, or hardly; those of log weights
    are, but for the tails of components that hold next to nothing.
    """
    n_draws = int(np.clip(_NUMBERS_OF_DRAWS // sampler.posterior.n_coefficients, *_DRAWS_OF_RATIOS))
    with sampler.threads(), np.errstate(all="ignore"):
        parameters = sampler.draws(n_draws, random_state)
        deviations = np.concatenate([parameters.flat(name).std(axis=0) for name in targets])
    reported = np.concatenate([sampler.uncertainty.flat_std(name) for name in targets])
    ratios = np.divide(deviations, reported, out=np.ones_like(deviations), where=reported > 0)
    return np.concatenate([np.ones(sampler.uncertainty.targets[log_weights].size), ratios])


def _scores(sampler, parameters, name, by_pair):
    """Terms of the mean shifts of a target, (pairs, d).

    What draws have from the prior has none by linear response: there the draws are those of the posterior,
    and tell its mean.
    """
    density, deviations = sampler.proposal_density, sampler.uncertainty.flat_std(name)
    from_prior = (density.deviations(name) == 0) & (deviations > 0)
    scores = density.scores(name, by_pair)
    if from_prior.any():
        values = parameters.flat(name).reshape(2, _N_PAIRS, -1).mean(axis=0)
        gaps = values - sampler.uncertainty.targets[name].flat_value()
        scores[:, from_prior] = gaps[:, from_prior] / deviations[from_prior]
    return scores
