"""The Gaussian mixture as a kind of mixture: what the rules of `mixtures` ask of it, where it is computed."""

from sklearn_lrvb.gaussian.answers.influence import (
    InfluenceFunctions,
    NormalStatistics,
    ResponsesOfNormalRows,
)
from sklearn_lrvb.gaussian.answers.margins import covariance_margins
from sklearn_lrvb.gaussian.answers.prior_sensitivity import PriorMoves
from sklearn_lrvb.gaussian.answers.scores_without_rows import scores_at
from sklearn_lrvb.gaussian.e_step.far_rows import of_far_rows
from sklearn_lrvb.gaussian.e_step.first_m_step import posterior_from_responsibilities
from sklearn_lrvb.gaussian.e_step.frames import (
    OwnFrames,
    expected_features,
    frames_of,
    round_off_of_bound,
)
from sklearn_lrvb.gaussian.fitting.component_statistics import (
    ComponentStatistics,
    divergence_of_emptied,
    divergence_of_padding,
    emptied,
    has_surplus,
    own_divergences,
)
from sklearn_lrvb.gaussian.fitting.halves import Halves, after_split, on_trial
from sklearn_lrvb.gaussian.fitting.starts import SAMPLE_ROWS
from sklearn_lrvb.gaussian.information.columns import RowColumns
from sklearn_lrvb.gaussian.information.observed_information import (
    complete_information,
    mean_field_information,
    missing_columns,
    missing_information_of_few,
    newton_price,
    observed_information,
    parts_of_direction,
    solver_costs,
)
from sklearn_lrvb.gaussian.posterior.hand_set_densities import HandSetDensities
from sklearn_lrvb.gaussian.posterior.mixture_prior import MixturePrior
from sklearn_lrvb.gaussian.posterior.variational_posterior import VariationalPosterior
from sklearn_lrvb.gaussian.sampling.copula import (
    GaussianCopula,
    GaussianParameters,
    draws_at,
    draws_of_estimates,
)
from sklearn_lrvb.gaussian.sampling.gibbs import (
    draws_given_random_assignments,
    draws_with_moved_tails,
)
from sklearn_lrvb.gaussian.sampling.likelihood import (
    GaussianLikelihood,
    log_joint,
    log_joint_and_slopes,
    prior_numbers,
    prior_slopes,
    products_per_row,
)
from sklearn_lrvb.gaussian.sampling.orders import component_divergences, reordered_draws
from sklearn_lrvb.mixture.model import MixtureModel
from sklearn_lrvb.sampling.copula import CopulaDensity


class GaussianModel(MixtureModel):
    """Normal components, or Student's t, perhaps with a background."""

    frames_of = staticmethod(frames_of)
    own_frames = OwnFrames
    of_far_rows = staticmethod(of_far_rows)
    posterior_from_responsibilities = staticmethod(posterior_from_responsibilities)
    round_off = staticmethod(round_off_of_bound)
    complete_information = staticmethod(complete_information)
    observed_information = staticmethod(observed_information)
    solver_costs = staticmethod(solver_costs)
    newton_price = staticmethod(newton_price)
    has_surplus = staticmethod(has_surplus)
    component_statistics = ComponentStatistics
    emptied = staticmethod(emptied)
    own_divergences = staticmethod(own_divergences)
    divergence_of_emptied = staticmethod(divergence_of_emptied)
    divergence_of_padding = staticmethod(divergence_of_padding)
    sample_rows = SAMPLE_ROWS
    halves = Halves
    after_split = staticmethod(after_split)
    on_trial = staticmethod(on_trial)
    features = staticmethod(expected_features)
    mean_field_information = staticmethod(mean_field_information)
    missing_information = staticmethod(missing_information_of_few)
    missing_columns = staticmethod(missing_columns)
    columns_from_arrays = RowColumns.from_arrays
    influence_functions = InfluenceFunctions
    responses_of_rows = ResponsesOfNormalRows
    block_statistics = NormalStatistics
    scores_at = staticmethod(scores_at)
    own_margins = staticmethod(covariance_margins)
    moves_of_prior = PriorMoves
    parts_of_direction = staticmethod(parts_of_direction)
    ways_to_fewer_unknowns = (
        "(a) Ask for means and weights alone: get_posterior_covariance and posterior_summary take "
        "target=['weights', 'means']. (b) Reduce the features first, for example with PCA in a pipeline. (c) "
        "Lower n_components."
    )
    way_to_fewer_features = "Reduce the features first, for example with PCA"
    mode_targets = ("log_weights", "means")
    products_per_row = staticmethod(products_per_row)
    copula = GaussianCopula
    copula_density = CopulaDensity
    parameters = GaussianParameters
    draws_at = staticmethod(draws_at)
    draws_of_estimates = staticmethod(draws_of_estimates)
    likelihood_of_draws = GaussianLikelihood
    log_joint = staticmethod(log_joint)
    log_joint_and_slopes = staticmethod(log_joint_and_slopes)
    draws_given_random_assignments = staticmethod(draws_given_random_assignments)
    draws_with_moved_rest = staticmethod(draws_with_moved_tails)
    prior_numbers = staticmethod(prior_numbers)
    prior_slopes = staticmethod(prior_slopes)
    component_divergences = staticmethod(component_divergences)

    @staticmethod
    def n_coefficients(posterior, n_components):
        return posterior.structure.resized(n_components).n_coefficients

    @staticmethod
    def is_exact_alone(posterior):
        return not (posterior.structure.has_background or posterior.structure.n_tails)

    reordered_draws = staticmethod(reordered_draws)

    @staticmethod
    def splits_add_up(posterior):
        return posterior.structure.has_own_precisions


# The classes get it here, since the functions stand above them in the table of rooms (CONTRIBUTING.md). The
# package imports this file always, in worker processes too.
MixturePrior.model = VariationalPosterior.model = HandSetDensities.model = GaussianModel()
