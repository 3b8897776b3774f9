"""The arithmetic of latent classes, as the rules of `mixtures` ask for it."""

import numpy as np

from sklearn_lrvb.family_mixture import information
from sklearn_lrvb.family_mixture.component_statistics import ComponentStatistics, emptied
from sklearn_lrvb.family_mixture.draws import ClassCopula, ClassCopulaDensity, ClassParameters
from sklearn_lrvb.family_mixture.frames import ClassFrames, posterior_from_responsibilities
from sklearn_lrvb.family_mixture.halves import Halves, after_split
from sklearn_lrvb.family_mixture.influence import (
    ClassStatistics,
    InfluenceFunctions,
    responses_of_rows,
    scores_at,
)
from sklearn_lrvb.family_mixture.labels import component_divergences, draws_at, reordered_draws
from sklearn_lrvb.family_mixture.likelihood import (
    ClassLikelihood,
    draws_given_random_assignments,
    log_joint,
    log_joint_and_slopes,
    prior_slopes,
    products_per_row,
)
from sklearn_lrvb.family_mixture.posterior import ClassPosterior
from sklearn_lrvb.family_mixture.prior import ClassPrior
from sklearn_lrvb.family_mixture.prior_moves import MovesOfPrior
from sklearn_lrvb.family_mixture.starts import SAMPLE_ROWS
from sklearn_lrvb.mixture.model import MixtureModel, occupied


class LatentClassModel(MixtureModel):
    """A mixture whose columns are independent given the class."""

    own_frames = staticmethod(ClassFrames)
    posterior_from_responsibilities = staticmethod(posterior_from_responsibilities)
    complete_information = staticmethod(information.complete_information)
    observed_information = staticmethod(information.observed_information)
    solver_costs = staticmethod(information.solver_costs)
    newton_price = staticmethod(information.newton_price)
    component_statistics = staticmethod(ComponentStatistics)
    emptied = staticmethod(emptied)
    sample_rows = SAMPLE_ROWS
    halves = Halves
    after_split = staticmethod(after_split)

    @staticmethod
    def frames_of(posterior, rows):
        return ClassFrames(posterior)

    @staticmethod
    def of_far_rows(posterior, block, far):
        raise AssertionError("Log densities of a table's rows are finite: larger numbers are refused.")

    @staticmethod
    def round_off(posterior):
        return 0.0

    @staticmethod
    def has_surplus(posterior):
        return not occupied(posterior.counts).all()

    @staticmethod
    def own_divergences(posterior):
        return posterior.divergences.classes

    @staticmethod
    def divergence_of_emptied(posterior):
        return 0.0

    # Answers.

    ways_to_fewer_unknowns = (
        "(a) Lower n_components. (b) Join rare categories, or let columns of many be 'ignore'."
    )
    way_to_fewer_features = "Join rare categories, or let columns of many be 'ignore'"

    mean_field_information = staticmethod(information.complete_information)
    missing_information = staticmethod(information.missing_information)
    influence_functions = staticmethod(InfluenceFunctions)
    responses_of_rows = staticmethod(responses_of_rows)
    block_statistics = staticmethod(ClassStatistics)
    scores_at = staticmethod(scores_at)
    moves_of_prior = MovesOfPrior

    @staticmethod
    def described(posterior):
        return f"{posterior.n_components} classes with {posterior.prior.n_features} features"

    @staticmethod
    def features(posterior, framed, k):
        return framed.features

    @staticmethod
    def missing_columns(rows, posterior):
        return None

    @staticmethod
    def columns_from_arrays(posterior, arrays):
        raise AssertionError("Latent classes have no dual solver.")

    @staticmethod
    def own_margins(target, information):
        raise AssertionError("No target of latent classes has margins of its own.")

    @staticmethod
    def n_coefficients(posterior, n_components):
        return n_components * posterior.prior.n_features

    @staticmethod
    def parts_of_direction(targets, direction):
        squares = np.square(targets.posterior.array(direction))
        kind = "log_weights" if squares[:, 0].sum() > squares[:, 1:].sum() else "tables"
        return kind, squares.sum(axis=1)

    # Draws.

    @staticmethod
    def prior_numbers(prior):
        return prior.numbers

    mode_targets = ("log_weights", "tables")
    most_sweeps = 64
    copula = staticmethod(ClassCopula)
    copula_density = staticmethod(ClassCopulaDensity)
    parameters = staticmethod(ClassParameters)
    likelihood_of_draws = staticmethod(ClassLikelihood)
    draws_at = staticmethod(draws_at)
    log_joint = staticmethod(log_joint)
    log_joint_and_slopes = staticmethod(log_joint_and_slopes)
    draws_given_random_assignments = staticmethod(draws_given_random_assignments)
    prior_slopes = staticmethod(prior_slopes)
    component_divergences = staticmethod(component_divergences)
    reordered_draws = staticmethod(reordered_draws)
    products_per_row = staticmethod(products_per_row)


ClassPrior.model = ClassPosterior.model = LatentClassModel()
