"""Products of conjugate families: where the rules of a mixture find their arithmetic."""

from sklearn_lrvb.family_mixture.components import ClassComponents, ClassSplitProposals
from sklearn_lrvb.family_mixture.coordinates import ClassCoordinates, posterior_from_responsibilities
from sklearn_lrvb.family_mixture.draws import ClassCopula
from sklearn_lrvb.family_mixture.influence import ClassInfluenceFunctions, ClassResponsesOfRows
from sklearn_lrvb.family_mixture.information import FamilyInformation
from sklearn_lrvb.family_mixture.parameters import ClassParameters
from sklearn_lrvb.family_mixture.prior_changes import changes_of_prior
from sklearn_lrvb.family_mixture.row_scores import ClassRowScores
from sklearn_lrvb.family_mixture.starts import SAMPLE_ROWS, further_starts
from sklearn_lrvb.mixture.model import MixtureModel

FAMILY_MIXTURE = MixtureModel(
    coordinates=ClassCoordinates,
    first_posterior=posterior_from_responsibilities,
    further_starts=further_starts,
    information=FamilyInformation,
    components=ClassComponents,
    split_proposals=ClassSplitProposals,
    sample_rows=SAMPLE_ROWS,
    influence_functions=ClassInfluenceFunctions,
    responses_of_rows=ClassResponsesOfRows,
    changes_of_prior=changes_of_prior,
    copula=ClassCopula,
    parameters=ClassParameters,
    row_scores=ClassRowScores,
    mode_targets=("log_weights", "tables"),
    ways_to_fewer_unknowns=(
        "(a) Lower n_components. (b) Join rare categories, or let columns of many be 'ignore'."
    ),
    way_to_fewer_features="Join rare categories, or let columns of many be 'ignore'",
)
