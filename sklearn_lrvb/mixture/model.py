"""What the rules of fitting and answering ask of a model: of its rows, its prior and its posterior.

The rules know components only by the classes that a `MixtureModel` lists. They ask ``posterior.model``.

*Conventions.* K components, and L labels: the components and the noise component, if there is one. q is a
function of its sufficient statistics s, which sums over the rows decide; EM(s) are the statistics after an
iteration from q. Vectors (D,) are statistics, or the coefficients beta of changes d rho = beta . h of the log
densities of rows: L intercepts first, which are the coefficients of the feature 1, then those of all other
features of the components. Three kinds of objects have no class here, and have to have this:

*Prior*: ``model``; ``flat``, whether it is improper; ``weights``, its weight prior (`weight_priors`);
``hyperparameters``, their names.

*Moments*, sums over the rows from which q follows: ``counts`` (L,); + and -.

*Posterior*, of which nothing changes. For fits:

* ``model``, ``prior``; ``n_components``, ``n_labels``, ``n_coefficients``: K, L and D
* ``counts`` (K,) and ``label_counts`` (L,), the expected rows
* ``has_scales``, whether rows have a latent scale besides their label, so that merges lose much at first
* ``divergences``, KL(q || prior), with its ``total`` and its part of the ``weights``, floats
* ``expectations.log_weights`` (L,), E log pi
* ``with_prior(moments)``, moments completed by the prior
* ``m_step(moments)``, the posterior that complete moments of the E-step at this one lead to
* ``residual(moments)``, EM(s) - s (D,); ``distance(moments)``, its length in mean-field standard deviations
* ``difference(other)``, statistics of another posterior less its own (D,)
* ``after_step(change)``, the posterior whose statistics differ by (D,). It and ``m_step`` raise
  `DegenerateComponentError` where there is none.
* ``reordered(order)``, with its components in another order, int array (K,)
* ``padded(prior)``, with as many empty components after its own as the prior has more

For answers:

* ``coefficients_of_labels``, places of every label's coefficients in (D,), L int arrays
* ``coefficient_blocks``, dict of slices of (D,) by name, the first of which is "intercept", and
  ``block_shapes``, dict, the numbers of units in a block and of coefficients of each
* ``log_weight_covariance`` (L, L), Cov_q(log pi), and ``intercept_excess`` (L, L), what the covariance of the
  intercepts has besides; ``count_response(b)``, the inverse of the sum of both times b, (..., L) -> (..., L)
* ``with_known_noise(moments)``, moments of rows with the known noise on them
* ``units_of_columns()`` (P,), by which rows are compared
* ``described``, its size in words; ``n_coefficients_with(n_components)``, D of another number of components

For the exact posterior:

* ``log_volume``, twice the log of the integral over what q holds at its mode, a float
* ``is_known_alone``, whether importance sampling misses nothing of the evidence of one component
* ``products_per_row``, about how many multiplications the log densities of a row take under one draw

An object that only predicts needs ``model``, ``n_components``, ``n_labels``, and what its coordinates ask.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.linear_response.solvers import information_from_arrays

# Expected number of rows below which a component counts as empty.
LEAST_COUNT = 0.5


def occupied(counts):
    """Which components hold rows: expected counts (...) -> bool (...)."""
    return counts >= LEAST_COUNT


class DegenerateComponentError(ValueError):
    """A component has no proper posterior: it is empty, or its covariance is singular."""


@dataclass(eq=False)
class MixtureModel:
    """The classes and functions by which a model does its arithmetic. Whoever adds a model writes these.

    Attributes
    ----------
    coordinates : callable (posterior, rows=None) -> Coordinates
        The coordinates that are cheapest for a pass over some rows; without rows, those that are accurate
        whatever the components look like.
    first_posterior : callable (rows, prior, responsibilities) -> posterior
        The M-step from given responsibilities, (n_samples, n_labels), dense or sparse, for the start of a
        fit. Where there are those of the components alone, no row is noise. It may raise
        `DegenerateComponentError`.
    further_starts : callable (posterior, rows, n_starts, random_state)
        Responsibilities of some starts for the prior and number of components of a posterior, as
        `first_posterior` takes them; none is what a single start has by default.
    information : subclass of MixtureInformation, of a posterior
    components : subclass of Components, of a posterior
    split_proposals : subclass of SplitProposals
    sample_rows : int, largest number of rows in which components to split are looked for
    influence_functions : subclass of `answers.influence.InfluenceFunctions`
    responses_of_rows : subclass of `answers.responses.ResponsesOfRows`
    changes_of_prior : callable posterior -> object
        The changes of the prior by which its importance is read, to first order. The object has ``names``,
        tuple of the m hyperparameters; ``in_words``, their changes; ``direction``, int array (n,), the
        hyperparameter of each of n changes; ``sources(slice)``, R^-1 beta of some of them, (D, n);
        ``concentration`` (n,) and ``intercepts`` (n, L), changes of the weights' prior concentration and of
        the intercepts at fixed responsibilities, and what else `Target.beyond_coefficients` needs. Changes of
        one hyperparameter are joined by the root of the sum of squares.
    copula : callable (targets, information, with_excess=True) -> object
        The distribution of draws whose means and covariances are those of linear response. A draw is a
        function of its responses, which are linear functions of standard normal variables. The object has
        ``n_normals``, int, the number of these for a draw; ``responses(normals)``, (n, n_normals) -> (n,
        n_responses); ``draws(responses)``, of a class that is a `DrawArrays`, and its inverse
        ``responses_of(draws)``; ``draws_of_estimates(responses)``, which vary as estimates do, linearly.
        For the density of draws (`sampling.copula`) it has ``response_root(root)`` and ``root_is_lower``, a
        triangular root of the covariance of the responses; ``log_derivatives(responses, draws)``;
        ``slopes(responses, draws, slopes)``; and ``first_order_changes(target, responses)``. For importance
        sampling it has ``of_components_with_rows()``, the copula of what `DrawnParameters.completed` does not
        draw from the prior.
        Without excess, weights do not have the part of their variance that is not of coefficients.
    parameters : subclass of `sampling.draws.DrawnParameters`
    row_scores : class, made of (parameters, rows), whose ``at`` gives `answers.normal_scores.RowScores`
    mode_targets : tuple of str
        Targets whose distance from the fit tells that a draw is in another mode of the posterior.
    ways_to_fewer_unknowns : str, the end of a message, "(a) ... (b) ..."
    way_to_fewer_features : str, in words
    own_margins : callable (target, information) -> object as `answers.margins.FamilyMargins`
        Of targets with `has_own_margins`, if the model has any.
    """

    coordinates: Callable
    first_posterior: Callable
    further_starts: Callable
    information: type
    components: type
    split_proposals: type
    sample_rows: int
    influence_functions: type
    responses_of_rows: type
    changes_of_prior: Callable
    copula: Callable
    parameters: type
    row_scores: type
    mode_targets: tuple[str, ...]
    ways_to_fewer_unknowns: str
    way_to_fewer_features: str
    own_margins: Callable | None = None


class Coordinates(ABC):
    """How rows are represented before anything is computed from them.

    Normal components whiten rows; classes take the features of their columns.

    Attributes
    ----------
    workload : Workload, numbers that a block of represented rows and its temporary arrays take
    posterior : posterior, of coordinates that are accurate whatever the components look like
    round_off : float
        Round-off of the lower bound at most, relative to its size and the number of rows.
    kept_rows : object or None
        The rows with what passes make of them whatever the posterior, where that is kept. Its ``total`` is
        that of `Rows`, and faster.
    """

    round_off = 0.0
    kept_rows: object = None

    @abstractmethod
    def represented(self, block):
        """A `RowBlock` as represented rows, n of them."""

    @abstractmethod
    def log_densities(self, represented):
        """rho (L, n), the expected log densities with log weights; and what q says of scales, or None."""

    def with_scales(self, represented, scales):
        """Whitened rows that know their scales, if they need them."""
        return represented

    @abstractmethod
    def moments(self, represented, weights):
        """Moments of the rows, given weights (L, n) of any sign."""

    def in_own_coordinates(self, moments):
        """The same in the coordinates that are accurate in any case."""
        return moments

    # Of coordinates that are accurate in any case.

    def features(self, represented, k):
        """Expected features h_k of rows with label k, (F, n); the first is 1."""
        raise NotImplementedError

    def of_far_rows(self, block, far):
        """Responsibilities (L, n) and scores (n,) of rows whose log densities overflow, int array (n,)."""
        raise NotImplementedError


class Components(ABC):
    """What the components of a posterior say of merging, emptying and splitting them.

    Parameters
    ----------
    posterior : posterior, under a proper prior for what merges and splits gain
    """

    splits_add_up = True  # Whether splits of several components can be made at once.
    divergence_of_emptied = 0.0  # Contribution of a component without rows to the divergence from the prior.

    def __init__(self, posterior):
        self._posterior = posterior

    @property
    def has_surplus(self):
        """Whether some component has so few rows that it may be one too many."""
        return not occupied(self._posterior.counts).all()

    @property
    @abstractmethod
    def own_divergences(self):
        """Contributions of what is every component's own to the divergence from the prior, (K,)."""

    @abstractmethod
    def merge_gains(self, merges):
        """Gains of the lower bound by merges, without the entropy of the labels that is lost: (n,).

        -inf where there is no merged component.

        Parameters
        ----------
        merges : int array (n, 2), or (n, m, 2) for m disjoint merges at once
        """

    @abstractmethod
    def merged_posterior(self, pairs):
        """The posterior where the first component of every disjoint pair, (m, 2), replaces both.

        The second is at its prior.
        """

    def counts_after(self, merges):
        """Counts of the labels after disjoint merges, (n, m, 2) -> (n, L)."""
        return sums_after(self._posterior.label_counts, merges)

    def gains_of_weights(self, counts, present):
        """Changes of the log evidence of the counts, all in their best order: (n, L), (L,) -> (n,)."""
        weights, counts = self._posterior.prior.weights, np.concatenate([counts, present[None]])
        evidence = weights.log_evidence(counts[np.arange(len(counts))[:, None], weights.best_order(counts)])
        return evidence[:-1] - evidence[-1]

    @abstractmethod
    def emptied(self, components):
        """The posterior with the parameters of some components, an index, at their prior, and its counts."""

    @abstractmethod
    def after_split(self, split, second):
        """The posterior with the two parts of a component in its place and in that of an empty one.

        Parameters
        ----------
        split : Split of `search`
        second : int, the empty component
        """

    def on_trial(self, component):
        """The posterior after a merge into one component that lowers the bound at first."""
        return self._posterior


def sums_after(sums, merges):
    """Sums over the rows of every label after disjoint merges, (n, m, 2) -> (n, ...)."""
    after = np.repeat(sums[None], len(merges), axis=0)
    rows, first, second = np.arange(len(merges))[:, None], merges[..., 0], merges[..., 1]
    after[rows, first] += after[rows, second]
    after[rows, second] = 0.0
    return after


class SplitProposals(ABC):
    """The small fits of one and of two components to the rows of one, of which a split is made.

    Parameters
    ----------
    held : RowsOfComponents of `search`
    posterior : posterior, optimal for the responsibilities of the rows
    components : list of int, those that are split
    """

    @abstractmethod
    def whole(self, rows, component):
        """The posterior of one component that holds all rows."""

    @abstractmethod
    def starts(self, rows, component, whole):
        """Yield callables, each of which makes a posterior of two components that divide the rows."""

    def cost(self, component):
        """What the bound loses by one component more, a float."""
        return 0.0


class MixtureInformation(ABC):
    """The informations on the coefficients at a posterior: complete, missing and observed.

    Parameters
    ----------
    posterior : posterior
    """

    def __init__(self, posterior):
        self.posterior = posterior

    @property
    @abstractmethod
    def complete(self):
        """R^-1, as if the labels of all rows were known: CompleteInformation of size D."""

    @property
    def of_complete_rows(self):
        """M as if the labels and all values of all rows were known: an information of size D."""
        return self.complete

    @property
    def mean_field(self):
        """The inverse covariance of the coefficients under q itself: CompleteInformation."""
        return self.complete

    @abstractmethod
    def observed(self, rows, result, n_targets=1, solver=None, missing_values=True):
        """M = R^-1 - G with the cheapest solver: ObservedInformation of size D.

        Parameters
        ----------
        rows : Rows; with "matrix_free" the result keeps a reference to them
        result : EStepResult at the posterior
        n_targets : int, number of right-hand sides that will be solved for
        solver : {"primal", "dual", "matrix_free"} or None, which overrules the choice
        missing_values : bool
            Whether G has the information that missing values hide, besides that of unknown labels.
        """

    @abstractmethod
    def costs(self, rows, result):
        """What each solver of the observed information costs: SolverCosts."""

    def from_arrays(self, arrays):
        """The observed information from the arrays of its ``to_arrays``."""
        return information_from_arrays(self.complete, arrays)

    @abstractmethod
    def missing(self, rows):
        """G of some rows, (D, D)."""

    def missing_columns(self, rows):
        """A root of G of some rows with few columns: object with len() and ``product((m, c))``; or None."""
        return
