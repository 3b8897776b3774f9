"""Draws of the posterior, by linear response or corrected, at one fitted mixture.

The ratio of the exact posterior's density (`likelihood`) to that of the draws by linear response (`copula`)
weighs the draws (`importance`), is the start of a Gibbs sampler, and tells how far the posterior is from
linear response, for the price of a few sweeps. Linear response is a quadratic approximation of the log
posterior. *Asymmetry* looks at its cubic and quartic parts along the directions in which most information is
missing; the *mean shift* is what they move the means by.

*Gibbs sampling* runs many chains at once. A step assigns every row to a component at random, given the
parameters, and draws the parameters given the assignments, from the conjugate posterior of complete data. Its
invariant distribution is the exact posterior. The slowest linear function of the parameters keeps a share 1 -
1/lambda of its deviation in a step, where lambda is the largest inflation of a variance by missing
information: chains that start from nearly exact draws need few steps, whose number follows from lambda at the
fit. Convergence is not checked. Where the start is far off and the posterior not Gaussian, the number is too
small: for three components on the petals of the irises it is 31, and draws still move until step 300.
"""

import math
from functools import cached_property

import numpy as np

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.gaussian_mixture.information.observed_information import complete_information
from sklearn_lrvb.gaussian_mixture.posterior_sampling.copula import (
    CopulaDensity,
    DrawnParameters,
    ParameterDraws,
    PosteriorCopula,
)
from sklearn_lrvb.gaussian_mixture.posterior_sampling.importance import (
    ImportanceWeights,
    WeightedDraws,
)
from sklearn_lrvb.gaussian_mixture.posterior_sampling.labels import FAR, departed, relabelled
from sklearn_lrvb.gaussian_mixture.posterior_sampling.likelihood import (
    check_log_likelihood_size,
    complete_moments,
    log_joint,
    log_joint_and_slopes,
    log_likelihood_of_draws,
    moments_of_random_assignments,
)
from sklearn_lrvb.row_blocks import batches, untracked

_ARRAYS_PER_DRAW = 16  # Number of arrays of the size of the coefficients that exist at once.
_LEAST_PROPOSALS = 4000  # Draws of the copula from which exact draws are resampled, at least.
_PROPOSALS_PER_DRAW = 4
# Least prior concentration, and reciprocal of the largest, with which log densities have digits. The
# logarithms of weights are as large as its reciprocal, and differences of order one count.
_LEAST_CONCENTRATION = 1e-12

# Steps in units of the slowest function's relaxation time. Draws by unreliable importance weights are wrong
# by up to a standard deviation, of which five leave 0.7 %; those by reliable ones by some tenth of one, and
# those by nearly even ones by some hundredths.
_FROM_AFAR, _FROM_NEAR, _FROM_NEXT_TO_IT = 5.0, 3.0, 0.5
_EVEN_SHARE, _EVEN_K_HAT = 0.9, 0.5  # Effective share and tail shape of nearly even weights.
_N_DIRECTIONS = 5  # Directions of largest inflation that are looked at.
_DISTANCE = 2.0  # How far, in standard deviations.
_N_PAIRS = 32  # Pairs of antithetic draws from which the mean shift is computed.


class PosteriorSampler:
    """Draws of the posterior.

    Parameters
    ----------
    uncertainty : PosteriorUncertainty
    """

    def __init__(self, uncertainty):
        self._uncertainty = uncertainty
        self.fitted, self.posterior = uncertainty.fitted, uncertainty.fitted.posterior
        self._source, self._targets = uncertainty.source, uncertainty.targets

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
                "Use linear response, method='lrvb'. (b) Fit with a concentration in that range."
            )
        self._source.check_training_rows(rows)
        return rows

    def importance(self, rows, n_draws, random_state, tracked=untracked):
        """Draws of the copula, weighed by the exact posterior.

        Parameters
        ----------
        rows : Rows, checked by `checked_rows`
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
            lambda target: self.density.scores(target, responses),
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
                'posterior_summary(method="gibbs") leaves these draws out.'
            )
        return parameters

    def _gibbs(self, rows, n_draws, random_state, tracked):
        """Draws by Gibbs sampling, which starts from `resampled`, and which of them are in another mode."""
        check_whole_weights(rows)
        start, weights = self._resampled(rows, n_draws, random_state)
        generator = np.random.Generator(np.random.SFC64(random_state.randint(2**32, size=4, dtype=np.uint32)))
        n_steps = n_gibbs_steps(self.inflations(1)[0][0], weights)
        with self._source.threads():
            parameters = gibbs_chains(rows, start, n_steps, generator, tracked)
        # Components are numbered as in the fit.
        deviations = {name: self._uncertainty.flat_std(name) for name in ("log_weights", "means")}
        parameters = relabelled(parameters, departed(parameters, self._targets, deviations))
        return parameters, departed(parameters, self._targets, deviations)

    def weighted(self, method, rows, n_draws, random_state, tracked=untracked):
        """Corrected draws for moments of the exact posterior: WeightedDraws.

        Parameters
        ----------
        method : {"importance", "gibbs"}
        rows, n_draws, random_state, tracked : as in `importance`
        """
        if method == "gibbs":
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
            f'has the shape {weights.k_hat:.2f} (up to 0.7 is good). Use method="gibbs".'
        )


def _departures(is_elsewhere):
    """What the warnings of draws in another mode have in common."""
    return (
        f"{is_elsewhere.sum()} of {len(is_elsewhere)} draws have left for another mode of the posterior: a "
        f"weight or a mean is more than {FAR:g} standard deviations away from the fit, and no other "
        "numbering of the components brings it closer. The clusters themselves are uncertain: look at these "
        "draws, or fit fewer components."
    )


# Gibbs sampling.


def check_whole_weights(rows):
    """Raise ValueError unless every row counts a whole number of times."""
    if rows.total(_distance_from_whole):
        raise ValueError(
            'method="gibbs" assigns every row to a component as often as it counts: sample_weight must '
            'be whole numbers, but some are not. (a) method="importance" takes any weights. (b) Round '
            "the weights."
        )


def _distance_from_whole(block):
    """Sum of the distances of the weights from whole numbers, a float; None where there are none."""
    weights = block.sample_weight
    return None if weights is None else float(np.abs(weights - np.round(weights)).sum())


def n_gibbs_steps(largest_inflation, weights):
    """Number of steps after which little of the start is left, if the posterior is nearly Gaussian.

    Parameters
    ----------
    largest_inflation : float, of a variance by missing information: the relaxation time in steps
    weights : ImportanceWeights of the start
    """
    times = _FROM_NEAR if weights.are_reliable else _FROM_AFAR
    if weights.k_hat <= _EVEN_K_HAT and weights.effective_draws >= _EVEN_SHARE * len(weights.log_ratios):
        times = _FROM_NEXT_TO_IT
    return math.ceil(times * largest_inflation)


def gibbs_chains(rows, parameters, n_steps, generator, tracked):
    """The last draws of chains that start from given ones: DrawnParameters.

    Parameters
    ----------
    rows : Rows, of whole weights
    parameters : DrawnParameters, one draw for every chain
    n_steps : int
    generator : numpy.random.Generator
    tracked : Tracked, through which the steps are gone
    """
    posterior, origin = parameters.posterior, parameters.origin
    for _ in tracked(range(n_steps), n_steps):
        sums = moments_of_random_assignments(rows, parameters, int(generator.integers(2**63)))
        draws = conditional_draws(posterior, complete_moments(posterior, sums), generator)
        parameters = DrawnParameters(posterior, origin, draws)
    return parameters


def conditional_draws(posterior, moments, generator):
    """Draws of the parameters given the assignments of all rows: ParameterDraws.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose frames the moments and the draws are
    moments : Moments of n draws, prior included
    generator : numpy.random.Generator
    """
    structure, prior = posterior.structure, posterior.prior
    log_stick, log_rest = _log_gammas(np.stack(prior.weights.sticks(moments.counts)), generator)
    log_total = np.logaddexp(log_stick, log_rest)
    mean_precision = prior.mean_precision + moments.counts
    means = moments.first / mean_precision[..., None]
    scatter = moments.second - structure.outer_products(moments.first, means)
    freedom = prior.degrees_of_freedom + structure.power * structure.per_group(moments.counts)
    factors = structure.random_factors_type.wishart(generator, freedom, scatter)
    scaled_means = structure.transformed(structure.transposed(factors), means)
    scaled_means += generator.standard_normal(means.shape) / np.sqrt(mean_precision)[..., None]
    return ParameterDraws(log_stick - log_total, log_rest - log_total, factors, scaled_means)


def _log_gammas(shapes, generator):
    """Logarithms of gamma variables, also where these underflow: (...) -> (...)."""
    log_gammas = np.log(generator.standard_gamma(shapes + 1.0))
    return log_gammas + np.log1p(-generator.random(shapes.shape)) / shapes


# How far the exact posterior is from linear response.


def asymmetries(sampler, rows):
    """Drops of the log posterior on both sides, over those of a quadratic, less one: (directions, 2).

    Parameters
    ----------
    sampler : PosteriorSampler
    rows : Rows, the training rows
    """
    _, directions = sampler.inflations(_N_DIRECTIONS)
    steps = _DISTANCE * np.concatenate([directions, -directions])
    responses = np.concatenate([np.zeros((1, steps.shape[1])), steps])
    # The density in the standard normal coordinates of the copula: a drop of distance^2/2 where it is right.
    log_ratios = sampler.log_ratios(rows, responses, sampler.copula.draws(responses))
    drops = (log_ratios[0] - log_ratios[1:]) / (0.5 * _DISTANCE**2)
    return drops.reshape(2, -1).T


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
    density, root = sampler.density, sampler.density.root
    normals = random_state.standard_normal((_N_PAIRS, sampler.copula.n_normals))
    half = sampler.copula.responses(normals)
    responses = np.concatenate([half, -half])
    draws = sampler.copula.draws(responses)
    log_joint, *slopes = log_joint_and_slopes(rows, sampler.parameters(draws))
    log_ratios = log_joint - density.log_density(responses, draws)
    slopes = density.slopes_of_log_ratio(responses, draws, *slopes)
    by_pair = 0.5 * (slopes[:_N_PAIRS] + slopes[_N_PAIRS:]) @ root @ root.T  # as changes of the responses
    scores = np.concatenate([density.scores(target, by_pair) for target in targets], axis=1)
    return scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(_N_PAIRS), log_ratios
