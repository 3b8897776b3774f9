"""Draws of the posterior, by linear response or corrected, at one fitted mixture."""

from functools import cached_property

import numpy as np

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.gaussian_mixture.information.observed_information import complete_information
from sklearn_lrvb.gaussian_mixture.posterior_sampling.copula import PosteriorCopula
from sklearn_lrvb.gaussian_mixture.posterior_sampling.copula_density import CopulaDensity
from sklearn_lrvb.gaussian_mixture.posterior_sampling.gibbs_sampling import (
    check_whole_weights,
    gibbs_chains,
    n_gibbs_steps,
)
from sklearn_lrvb.gaussian_mixture.posterior_sampling.importance_sampling import ImportanceWeights
from sklearn_lrvb.gaussian_mixture.posterior_sampling.label_switching import FAR, departed, relabelled
from sklearn_lrvb.gaussian_mixture.posterior_sampling.likelihood import (
    check_log_likelihood_size,
    log_likelihood_of_draws,
)
from sklearn_lrvb.gaussian_mixture.posterior_sampling.linear_scores import LinearScores
from sklearn_lrvb.gaussian_mixture.posterior_sampling.log_joint import log_joint
from sklearn_lrvb.gaussian_mixture.posterior_sampling.parameter_draws import DrawnParameters, ParameterDraws
from sklearn_lrvb.gaussian_mixture.posterior_sampling.weighted_draws import WeightedDraws
from sklearn_lrvb.row_blocks import batches, untracked

_ARRAYS_PER_DRAW = 16  # Number of arrays of the size of the coefficients that exist at once.
_LEAST_PROPOSALS = 4000  # Draws of the copula from which exact draws are resampled, at least.
_PROPOSALS_PER_DRAW = 4
# Least prior concentration, and reciprocal of the largest, with which log densities have digits. The
# logarithms of weights are as large as its reciprocal, and differences of order one count.
_LEAST_CONCENTRATION = 1e-12


class PosteriorSampler:
    """Draws of the posterior.

    Parameters
    ----------
    uncertainty : PosteriorUncertainty
    """

    def __init__(self, uncertainty):
        self._uncertainty = uncertainty
        self.fitted = uncertainty.fitted
        self._source = uncertainty.source
        self._targets = uncertainty.fitted.parameters

    @property
    def posterior(self):
        """The fitted `VariationalPosterior`."""
        return self.fitted.posterior

    @cached_property
    def _information(self):
        return self._source.factored()  # All solvers that factor a matrix draw the same.

    @cached_property
    def copula(self):
        """`PosteriorCopula`."""
        return PosteriorCopula(self._targets, self._information)

    @cached_property
    def density(self):
        """`CopulaDensity`, which needs a matrix of all parameters."""
        self._source.require_size(self._source.size, "The density of draws")
        return CopulaDensity(self.copula, self.posterior, self._information.covariance())

    @cached_property
    def scores(self):
        """`LinearScores`."""
        return LinearScores(self.copula, self.density, self._targets)

    def parameters(self, draws):
        """The parameters that draws stand for: DrawnParameters."""
        return DrawnParameters(self.posterior, self.fitted.origin, draws)

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
        with self._source.threads():
            parts = [draws for _, draws in self._batches(n_draws, random_state, tracked)]
        return self.parameters(ParameterDraws.concatenated(parts))

    def _batches(self, n_draws, random_state, tracked):
        """Yield responses and the draws of them, batch by batch."""
        n_normals = self.copula.n_normals
        places = batches(n_draws, 8 * _ARRAYS_PER_DRAW * n_normals)
        for batch in tracked(places, len(places)):
            normals = random_state.standard_normal((batch.stop - batch.start, n_normals))
            responses = self.copula.responses(normals)
            yield responses, self.copula.draws(responses)

    def require_log_likelihood(self, n_draws, training_rows):
        """Raise an error where `log_likelihood` will be too large, or these are not the rows of the fit."""
        check_log_likelihood_size(n_draws, training_rows.n_samples)
        self._source.check_training_rows(training_rows)

    def log_likelihood(self, rows, parameters):
        """Log likelihood of every row under every draw, (n_draws, n_rows)."""
        with self._source.threads():
            return log_likelihood_of_draws(rows, parameters)

    # The exact posterior.

    def checked_rows(self, rows):
        """Raise ValueError unless these are the training rows, and the exact posterior exists."""
        prior = self.posterior.prior
        if prior.flat and self.posterior.n_components > 1:
            raise ValueError(
                'Under prior="flat" a mixture of several components has no posterior: its density does not '
                "fall off as a weight goes to zero or a mean to infinity, so that nothing can be drawn from "
                'it. Linear response describes the optimum alone. Refit with prior="conjugate"; a small '
                "mean_precision_prior makes it vague."
            )
        least, concentration = _LEAST_CONCENTRATION, prior.weights.prior_concentration
        if not prior.flat and not least <= concentration <= 1.0 / least:
            raise ValueError(
                f"weight_concentration_prior is {concentration:.3g}; the exact posterior needs one between "
                f"{least:g} and {1.0 / least:g}, because the densities of weights have no digits beyond. (a) "
                "Use linear response, without a correction. (b) Fit with a concentration in that range."
            )
        self._source.check_training_rows(rows)
        return rows

    def importance(self, rows, n_draws, random_state, tracked=untracked):
        """Draws of the copula, weighed by the exact posterior.

        Parameters
        ----------
        rows : CentredRows, checked by `checked_rows`
        n_draws, random_state, tracked : as in `draws`

        Returns
        -------
        draws : WeightedDraws
        weights : ImportanceWeights
        """
        with self._source.threads():
            parts = [
                (*batch, self.log_ratios(rows, *batch))
                for batch in self._batches(n_draws, random_state, tracked)
            ]
        responses, draws, log_ratios = zip(*parts, strict=True)
        responses, weights = np.concatenate(responses), ImportanceWeights(np.concatenate(log_ratios))
        draws = WeightedDraws(
            self.parameters(ParameterDraws.concatenated(draws)),
            weights.weights,
            lambda target: self.scores(target, responses),
        )
        return draws, weights

    def log_ratios(self, rows, responses, draws):
        """log p(X, theta) less the log density of draws, (n,)."""
        return log_joint(rows, self.parameters(draws)) - self.density.log_density(responses, draws)

    def resampled(self, rows, n_draws, random_state, tracked=untracked):
        """Draws of the copula, resampled by their smoothed importance weights: DrawnParameters."""
        parameters, weights = self._resampled(rows, n_draws, random_state, tracked)
        _warn_unreliable(weights)
        return parameters

    def _resampled(self, rows, n_draws, random_state, tracked=untracked):
        n_proposals = max(_LEAST_PROPOSALS, _PROPOSALS_PER_DRAW * n_draws)
        proposals, weights = self.importance(rows, n_proposals, random_state, tracked)
        return self.parameters(proposals.parameters.draws[weights.resampled(n_draws, random_state)]), weights

    def gibbs(self, rows, n_draws, random_state, tracked=untracked):
        """Draws by Gibbs sampling, exact in the limit of many steps: DrawnParameters."""
        parameters, is_elsewhere = self._gibbs(rows, n_draws, random_state, tracked)
        if is_elsewhere.any():
            warn_caller(
                f"{_departures(is_elsewhere)} Averages over all draws mix the modes; "
                'posterior_summary(correction="gibbs") leaves these draws out.'
            )
        return parameters

    def _gibbs(self, rows, n_draws, random_state, tracked):
        """Draws by Gibbs sampling, which starts from `resampled`, and which of them are in another mode."""
        check_whole_weights(rows)
        start, weights = self._resampled(rows, n_draws, random_state)
        generator = np.random.Generator(np.random.SFC64(random_state.randint(2**32, size=4, dtype=np.uint32)))
        n_steps = n_gibbs_steps(self.inflations(1)[0][0], weights)
        with self._source.threads():
            draws = gibbs_chains(
                rows, self.posterior, self.fitted.origin, start.draws, n_steps, generator, tracked
            )
        return self._relabelled(self.parameters(draws))

    def _relabelled(self, parameters):
        """The draws with components numbered as in the fit, and which of them are in another mode."""
        deviations = {name: self._uncertainty.flat_std(name) for name in ("log_weights", "means")}
        parameters = relabelled(parameters, departed(parameters, self._targets, deviations))
        return parameters, departed(parameters, self._targets, deviations)

    def weighted(self, correction, rows, n_draws, random_state, tracked=untracked):
        """Corrected draws for moments of the exact posterior: WeightedDraws.

        Parameters
        ----------
        correction : {"importance", "gibbs"}
        rows, n_draws, random_state, tracked : as in `importance`
        """
        if correction == "gibbs":
            parameters, is_elsewhere = self._gibbs(rows, n_draws, random_state, tracked)
            # One draw has no moments.
            is_here = ~is_elsewhere if (~is_elsewhere).sum() > 1 else np.ones_like(is_elsewhere)
            if is_elsewhere.any():
                use = (
                    "All draws are used, because hardly any is left in the fit's mode."
                    if is_here.all()
                    else "They are left out: the results are for the fit's mode."
                )
                warn_caller(f"{_departures(is_elsewhere)} {use}")
            return WeightedDraws(parameters, is_here / is_here.sum())
        draws, weights = self.importance(rows, n_draws, random_state, tracked)
        _warn_unreliable(weights)
        return draws

    def inflations(self, n_directions):
        """Largest inflations of variances by missing information, and their directions.

        Returns
        -------
        inflations : (n_directions,), falling
        directions : (n_directions, n_responses)
            Of responses, one standard deviation long.
        """
        posterior = self.posterior
        of_logits = np.sqrt(posterior.prior.weights.logit_variance(posterior.counts))
        of_others = complete_information(posterior).deviations[posterior.n_components :]
        return self.density.inflations(np.concatenate([of_logits, of_others]), n_directions)


def _warn_unreliable(weights):
    """Warn where importance sampling cannot be relied on."""
    if not weights.are_reliable:
        warn_caller(
            f"Importance sampling is not reliable here: {len(weights.log_ratios)} draws by linear response "
            f"are worth {weights.effective_draws:.0f} of the exact posterior, and the tail of their weights "
            f'has the shape {weights.k_hat:.2f} (up to 0.7 is good). Use correction="gibbs".'
        )


def _departures(is_elsewhere):
    """What the warnings of draws in another mode have in common."""
    return (
        f"{is_elsewhere.sum()} of {len(is_elsewhere)} draws have left for another mode of the posterior: a "
        f"weight or a mean is more than {FAR:g} standard deviations away from the fit, and no other "
        "numbering of the components brings it closer. The clusters themselves are uncertain: look at these "
        "draws, or fit fewer components."
    )
