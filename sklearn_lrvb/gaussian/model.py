"""Normal components, or Student's t, perhaps with noise: where the rules find their arithmetic."""

from sklearn_lrvb.gaussian.answers.influence import NormalInfluenceFunctions, ResponsesOfNormalRows
from sklearn_lrvb.gaussian.answers.margins import covariance_margins
from sklearn_lrvb.gaussian.answers.prior_sensitivity import changes_of_prior
from sklearn_lrvb.gaussian.answers.row_scores import NormalRowScores
from sklearn_lrvb.gaussian.e_step.coordinates import coordinates_of, posterior_from_responsibilities
from sklearn_lrvb.gaussian.fitting.component_statistics import ComponentStatistics
from sklearn_lrvb.gaussian.fitting.split_proposals import NormalSplitProposals
from sklearn_lrvb.gaussian.fitting.starts import SAMPLE_ROWS, further_starts
from sklearn_lrvb.gaussian.information.observed_information import GaussianInformation
from sklearn_lrvb.gaussian.sampling.copula import GaussianCopula
from sklearn_lrvb.gaussian.sampling.parameters import GaussianParameters
from sklearn_lrvb.mixture.model import MixtureModel

GAUSSIAN = MixtureModel(
    coordinates=coordinates_of,
    first_posterior=posterior_from_responsibilities,
    further_starts=further_starts,
    information=GaussianInformation,
    components=ComponentStatistics,
    split_proposals=NormalSplitProposals,
    sample_rows=SAMPLE_ROWS,
    influence_functions=NormalInfluenceFunctions,
    responses_of_rows=ResponsesOfNormalRows,
    changes_of_prior=changes_of_prior,
    copula=GaussianCopula,
    parameters=GaussianParameters,
    row_scores=NormalRowScores,
    mode_targets=("log_weights", "means"),
    ways_to_fewer_unknowns=(
        "(a) Ask for means and weights alone: summary, covariance and std of posterior() take "
        "target=['weights', 'means']. (b) Reduce the features first, for example with PCA in a pipeline. (c) "
        "Lower n_components."
    ),
    way_to_fewer_features="Reduce the features first, for example with PCA",
    own_margins=covariance_margins,
)
