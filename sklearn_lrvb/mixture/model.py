"""The seam between rules and arithmetic: what a kind of mixture says of its rows, prior and posterior.

The rules of this room, from the E-step to the climb, know components only by `MixtureModel`. They ask
``posterior.model`` or ``prior.model``.

*Conventions.* K components, and L labels: the components and the background, if there is one. D coefficients:
L intercepts first, and the features of all components. A prior, a posterior and the moments of rows are
objects of the kind; the rules ask no more of them than this.

* A prior: ``model``; ``flat``, whether it is improper; ``weights``, its weight prior (`weight_priors`).
* A posterior, of which nothing changes: ``model``, ``prior``; ``n_components``, ``n_labels``,
  ``n_coefficients``, K, L and D; ``counts`` (K,) and ``label_counts`` (L,), the expected rows;
  ``has_scales``, whether every row has a hidden scale besides its label, so that merges lose much at first;
  ``divergences.total``, KL(q || prior), a float; ``expectations.log_weights`` (L,), E log pi;
  ``with_prior(moments)``, moments completed by the prior; ``m_step(moments)``, the posterior that complete
  moments in its frames lead to; ``residual(moments)``, EM(s) - s (D,), from the same; ``difference(other)``,
  statistics of another posterior less its own (D,); ``after_step(change)``, the posterior whose statistics
  differ by (D,); ``deviation(change)``, the length of that in mean-field standard deviations, a float;
  ``intercept_root`` (L, L), the lower Cholesky factor of the intercepts' mean-field covariance V, and
  ``count_response(b)``, V^-1 b, (..., L) -> (..., L);
  ``reordered(order)``, with its components in another order, int array (K,); ``padded(prior)``, with as many
  empty components after its own as the prior has more.
  For answers: ``coefficients_of_labels``, coordinates of every label's coefficients, L int arrays;
  ``coefficient_blocks``, dict of slices of D by name, the first of which is "intercept", and
  ``block_shapes``, dict, the numbers of units in a block and of coefficients of each;
  ``log_weight_covariance`` (L, L), Cov_q(log pi), ``intercept_excess`` (L, L), what the covariance of the
  intercepts has besides, and ``count_response(intercepts)``, the counts that answer to it, (..., L) -> (...,
  L); ``with_noise(moments)``, moments of rows with what is known besides them; ``units_of_columns()`` (P,),
  by which rows are compared; ``log_volume``, twice the log of what q has besides its factors, a float.
  ``m_step`` and ``after_step`` raise `DegenerateComponentError`.
* Moments, sums over the rows: ``counts`` (L,); + and -.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

# Expected number of rows below which a component counts as empty.
_LEAST_COUNT = 0.5


def occupied(counts):
    """Which components hold rows: expected counts (...) -> bool (...)."""
    return counts >= _LEAST_COUNT


class DegenerateComponentError(ValueError):
    """A component has no proper posterior: it is empty, or its covariance is singular."""


class OfModel:
    """What belongs to a kind of mixture: a prior, a posterior, or what takes the place of one.

    Attributes
    ----------
    model : MixtureModel, the same for all objects of a class
    """

    model: ClassVar["MixtureModel"]


class MixtureModel(ABC):
    """A kind of mixture. It has no state: all methods are functions, which a kind assigns as they are."""

    # Passes over the rows.

    @staticmethod
    @abstractmethod
    def frames_of(posterior, rows):
        """Frames in which rows are represented: those that are cheapest for a pass over all of them.

        Parameters
        ----------
        posterior : posterior, or what takes its place for predictions
        rows : Rows

        Returns
        -------
        frames : object with

            * ``workload`` : Workload, numbers that a block of framed rows and its temporary arrays take;
            * ``whiten(block)`` : a RowBlock as framed rows, n of them;
            * ``log_densities(framed)`` : rho (L, n), the expected log densities, log weights included; and
              what q says of the rows' scales, or None;
            * ``with_scales(framed, scales)`` : framed rows that know them, where they are not None. Scales
              have ``weights(counted)``, which makes weights of moments from (L, n);
            * ``moments(framed, weights)`` : moments of the rows, given weights (L, n) of any sign;
            * ``in_own_frames(moments)`` : the same in the frames that `own_frames` makes.
        """

    @staticmethod
    @abstractmethod
    def own_frames(posterior):
        """Frames that are accurate whatever the components look like, as `frames_of`; with ``posterior``."""

    @staticmethod
    @abstractmethod
    def of_far_rows(posterior, block, far):
        """Responsibilities (L, n) and scores (n,) of rows of a block whose log densities overflow.

        Parameters
        ----------
        posterior : as in `frames_of`
        block : RowBlock
        far : int array (n,), places of the rows in the block
        """

    @staticmethod
    @abstractmethod
    def posterior_from_responsibilities(rows, prior, responsibilities):
        """The posterior after an M-step from given responsibilities, for the start of a fit.

        Parameters
        ----------
        rows : Rows
        prior : prior
        responsibilities : array or sparse array (n_samples, n_labels)
            Where there are those of the components alone, no row is of the background.

        Raises
        ------
        DegenerateComponentError
        """

    @staticmethod
    @abstractmethod
    def round_off(posterior):
        """Round-off of the lower bound at most, relative to its size and the number of rows: a float."""

    # The information.

    @staticmethod
    @abstractmethod
    def complete_information(posterior):
        """R^-1, the inverse of the coefficients' mean-field covariance: CompleteInformation of size D."""

    @staticmethod
    @abstractmethod
    def observed_information(rows, posterior, e_step_result, n_targets=1, solver=None, hidden_values=True):
        """M = R^-1 - G at the posterior, with the cheapest solver: ObservedInformation of size D.

        Parameters
        ----------
        rows : Rows
        posterior : posterior
        e_step_result : EStepResult at the posterior
        n_targets : int, number of right-hand sides that will be solved for
        solver : {"primal", "dual", "matrix_free"} or None, which overrules the choice
        hidden_values : bool, whether G has the information that missing values hide
        """

    @staticmethod
    @abstractmethod
    def solver_costs(rows, posterior, e_step_result):
        """Costs of the solvers of the observed information: SolverCosts."""

    @staticmethod
    @abstractmethod
    def newton_price(rows, posterior, e_step_result):
        """The cheapest solver for a Newton step, and what the step costs with it in sweeps: str, float."""

    # Moves between optima.

    @staticmethod
    @abstractmethod
    def has_surplus(posterior):
        """Whether some component has so few rows that it may be one too many: bool."""

    @staticmethod
    @abstractmethod
    def component_statistics(posterior):
        """The complete sufficient statistics of all components under a proper prior.

        Returns
        -------
        statistics : object with

            * ``merge_gains(merges)`` : gain of the lower bound by each merge, without the entropy of the
              assignments that is lost: int array (n, 2), or (n, m, 2) for m disjoint merges at once -> (n,);
              -inf where there is no merged component;
            * ``merged_posterior(pairs)`` : the posterior where the first component of every disjoint pair
              replaces both, and the second is at its prior, (m, 2);
            * ``counts_after(merges)`` : counts of the labels after disjoint merges, (n, m, 2) -> (n, L);
            * ``gains_of_weights(counts, present)`` : changes of the log evidence of the counts from present
              ones to others, both in their best order, (..., L) -> (...).
        """

    @staticmethod
    @abstractmethod
    def emptied(posterior, components):
        """The posterior with the parameters of some components, an index, at their prior, and its counts."""

    @staticmethod
    @abstractmethod
    def own_divergences(posterior):
        """Contributions of what is every component's own to the divergence from the prior, (K,)."""

    @staticmethod
    @abstractmethod
    def divergence_of_emptied(posterior):
        """Contribution of a component without rows to the divergence from the prior, a float."""

    @classmethod
    def divergence_of_padding(cls, posterior, padded):
        """By how much the divergence from the prior grows by empty components, without their weights."""
        n_empty = padded.n_components - posterior.n_components
        return n_empty * cls.divergence_of_emptied(posterior)

    sample_rows: ClassVar[int]  # Largest number of rows in which components to split are found.

    @staticmethod
    @abstractmethod
    def halves(held, posterior, components):
        """The small fits of one and of two components to the rows of one, for splits.

        Parameters
        ----------
        held : RowsOfComponents of `search`
        posterior : posterior, optimal for the responsibilities of the rows
        components : list of int, those that are split

        Returns
        -------
        halves : object with

            * ``whole(rows, component)`` : the posterior of one component that holds all rows;
            * ``starts(rows, component, whole)`` : iterator of callables, each of which makes a posterior of
              two components that the rows are divided between;
            * ``cost(component)`` : what the bound loses by a component more, a float, often zero.
        """

    @staticmethod
    @abstractmethod
    def after_split(posterior, split, second):
        """The posterior with the halves of a component in its place and in that of an empty one, the second.

        Parameters
        ----------
        posterior : posterior
        split : Split of `search`
        second : int
        """

    @staticmethod
    def splits_add_up(posterior):
        """Whether splits of several components can be made at once: bool."""
        return True

    @staticmethod
    def on_trial(posterior, component):
        """The posterior after a merge into one component that lowers the bound at first."""
        return posterior

    # Answers.

    ways_to_fewer_unknowns: ClassVar[str]  # The end of a message: "(a) ... (b) ...".
    way_to_fewer_features: ClassVar[str]  # In words.

    @staticmethod
    def described(posterior):
        """The size of a mixture in words, such as "3 components in 2 features"."""
        return f"{posterior.n_components} components in {posterior.n_features} features"

    @staticmethod
    @abstractmethod
    def features(posterior, framed, k):
        """Expected features h_k of rows with label k, in own frames: (F, n), the first of which is 1."""

    @staticmethod
    @abstractmethod
    def mean_field_information(posterior):
        """The inverse covariance of the coefficients under q itself: CompleteInformation."""

    @staticmethod
    @abstractmethod
    def missing_information(rows, posterior):
        """G of some rows, (D, D)."""

    @staticmethod
    @abstractmethod
    def missing_columns(rows, posterior):
        """A root of G of some rows with few columns, or None: object with len() and ``product((m, c))``."""

    @staticmethod
    @abstractmethod
    def columns_from_arrays(posterior, arrays):
        """The root of G that the "dual" solver has stored as arrays."""

    @staticmethod
    @abstractmethod
    def influence_functions(posterior, coefficients):
        """The influence functions of d targets.

        Parameters
        ----------
        posterior : posterior
        coefficients : (d, D), rows of J M^-1

        Returns
        -------
        functions : object with ``n_functions``, d; ``workload``, a Workload; ``values(block, out)`` and
            ``gradients(block, out)``, which write the weight influence (n, d) and the location influence
            (n, d, P) of a block of n rows
        """

    @staticmethod
    @abstractmethod
    def responses_of_rows(information, posterior, n_rows, by_kernels=True):
        """How the posterior responds to rows: a subclass of `uncertainty.responses.ResponsesOfRows`."""

    @staticmethod
    @abstractmethod
    def block_statistics(posterior, framed):
        """Statistics of rows in own frames, a subclass of `uncertainty.responses.BlockStatistics`."""

    @staticmethod
    @abstractmethod
    def scores_at(posterior, expectation, statistics, left_out):
        """Scores of rows with the statistics moved by left-out rows and by the responses to them: (n,).

        NaN where there is no such posterior.

        Parameters
        ----------
        posterior : posterior
        expectation : Expectation of the rows in own frames
        statistics : what `block_statistics` returns, or ``ResponsesOfRows.without_rows``
        left_out : (L or m, n), weights of every row by label, and by further directions
        """

    @staticmethod
    @abstractmethod
    def own_margins(target, information):
        """Margins of a target with `has_own_margins`, an object as `uncertainty.margins.FamilyMargins`."""

    @staticmethod
    @abstractmethod
    def moves_of_prior(posterior):
        """The moves of the prior by which its importance is read, to first order.

        Returns
        -------
        moves : object with ``names``, tuple of the m hyperparameters; ``in_words``, their moves;
            ``direction``, int array (n,), the hyperparameter of each of n moves; ``sources(slice)``,
            R^-1 beta of some of them, (D, n); ``beyond_coefficients(target, slice)``, changes of a target in
            addition to its responses, (n, d). Moves of one hyperparameter are joined by the root of the sum
            of squares.
        """

    @staticmethod
    @abstractmethod
    def n_coefficients(posterior, n_components):
        """D of a mixture of so many components of the same kind, an int."""

    @staticmethod
    @abstractmethod
    def parts_of_direction(targets, direction):
        """Where a direction of coefficients (D,) mostly points: name of a target, shares of labels (L,)."""

    # Draws of the posterior (`mixtures.posterior_sampling`).

    # Names of the targets whose distance from the fit tells that a draw is in another mode of the posterior.
    mode_targets: ClassVar[tuple[str, ...]]

    # Gibbs sweeps that slow chains make before a trajectory: several where they cost less than it.
    most_sweeps: ClassVar[int] = 1

    @staticmethod
    @abstractmethod
    def products_per_row(posterior):
        """About how many multiplications the log densities of a row take under one draw: an int."""

    @staticmethod
    @abstractmethod
    def copula(targets, information, with_excess=True):
        """The distribution of draws whose means and covariances are those of linear response.

        A draw is a function of its responses, which are linear functions of standard normal variables.

        Parameters
        ----------
        targets : Targets
        information : ObservedInformation, positive definite; or SamplingVariation, for draws of estimates
        with_excess : bool, default=True
            Whether weights have the part of their variance that is not of coefficients: not those of
            estimates.

        Returns
        -------
        copula : object with the following, such as a `PosteriorCopula`, which knows the weights

            * ``n_normals`` : int, number of standard normal variables of a draw;
            * ``responses(normals)`` : responses of these, (n, n_normals) -> (n, n_responses);
            * ``draws(responses)`` : the draws of some responses, of a class that is a `DrawArrays`;
            * ``responses_of(draws)`` : its inverse.
        """

    @staticmethod
    def draws_of_estimates(copula, responses):
        """Draws that are estimates, which vary linearly with the responses: DrawArrays of the kind."""
        return copula.draws(responses)

    @staticmethod
    @abstractmethod
    def copula_density(copula, posterior, root):
        """The density of draws of a copula, and coordinates e that are standard normal under it.

        Parameters
        ----------
        copula : of `copula`
        posterior : posterior
        root : (D, D), `ObservedInformation.root`

        Returns
        -------
        density : object with the following, such as `CopulaDensity` for a `PosteriorCopula`

            * ``root`` : (n_responses, n_responses), upper triangular, with Root Root' the covariance of the
              responses;
            * ``responses(normals)`` and ``normals(responses)`` : Root e from e, and back, (n, n_responses);
            * ``log_density(normals, responses, draws)`` : that of the draws in the coordinates of
              `log_joint`, (n,);
            * ``slopes_of_log_ratio(normals, draws, slopes)`` : derivatives in e of log p(X, theta) less the
              log density, from the slopes of `log_joint_and_slopes`: (n, n_responses);
            * ``scores(target, responses)`` : first-order changes of a flat target, by its name, in its
              standard deviations: (n, d).
        """

    @staticmethod
    @abstractmethod
    def parameters(posterior, origin, draws):
        """The parameters that draws stand for: a `DrawnParameters`.

        Parameters
        ----------
        posterior : posterior, in whose coordinates the draws are
        origin : (P,), from where the posterior's positions are measured
        draws : DrawArrays of the kind
        """

    @staticmethod
    @abstractmethod
    def draws_at(posterior, other):
        """The parameters that another posterior reports, as one draw in the coordinates of the first."""

    @staticmethod
    @abstractmethod
    def likelihood_of_draws(posterior, draws, log_weights):
        """The log densities of rows under some draws: a `LikelihoodOfDraws`.

        Parameters
        ----------
        posterior : posterior
        draws : DrawArrays of the kind, n of them
        log_weights : (n, L)
        """

    @staticmethod
    @abstractmethod
    def log_joint(rows, parameters):
        """log p(X, theta) of draws, (n,): of rows in a `DrawnParameters`, all constants included."""

    @staticmethod
    @abstractmethod
    def log_joint_and_slopes(rows, parameters):
        """The same, and its derivatives in what draws hold: (n,), DrawArrays of the kind."""

    @staticmethod
    @abstractmethod
    def draws_given_random_assignments(rows, parameters, seed, generator):
        """A sweep of Gibbs sampling: rows are assigned to labels at random, then parameters drawn given that.

        Parameters
        ----------
        rows : Rows, each of which counts a whole number of times
        parameters : DrawnParameters, of n draws
        seed : int, of the assignments, which do not depend on the blocks of rows
        generator : numpy.random.Generator, of the parameters

        Returns
        -------
        draws : DrawArrays of the kind
        counts : (n, L), how often rows are assigned to each label
        """

    @staticmethod
    def is_exact_alone(posterior):
        """Whether q of a single component is the exact posterior, so that the lower bound is the evidence."""
        return True

    @staticmethod
    @abstractmethod
    def prior_numbers(prior):
        """Names of the numbers of the prior in which the log evidence has slopes, tuple of m str."""

    @staticmethod
    @abstractmethod
    def prior_slopes(parameters):
        """Derivatives of the log prior density of draws in the logarithms of these numbers: (n, m)."""

    @staticmethod
    def draws_with_moved_rest(rows, parameters, generator):
        """Draws after a move of the parameters that such a sweep leaves as they are, if there are any."""
        return parameters.draws

    @staticmethod
    @abstractmethod
    def component_divergences(parameters, posterior):
        """Kullback and Leibler's divergences, doubled, of the components of draws from a fit's: (n, K, K).

        Rows are the fit's components, over whose densities the expectation is; columns are those of the
        draws. Weights are not in them.

        Parameters
        ----------
        parameters : DrawnParameters, of n draws
        posterior : posterior of as many components, measured from the same origin: the fit
        """

    @staticmethod
    @abstractmethod
    def reordered_draws(parameters, orders):
        """The draws whose component k is component ``orders[:, k]`` of given ones: DrawArrays of the kind.

        Parameters
        ----------
        parameters : DrawnParameters, of n draws
        orders : int array (n, K)
        """
