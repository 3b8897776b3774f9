"""What is asked of a fit: error bars, and the coefficients from which influence is computed.

The estimator's methods call `PosteriorUncertainty`. It solves for `targets` with the observed information M,
which `InformationSource` keeps: the one that the fit has formed, or else one that is formed at first need, by
the cheapest solver, from the training rows. These are kept by reference until then, and `training_sums` say
whether they are still the same. `FitCourse` puts into words how a fit went, for messages.
"""

import contextlib
import functools
import itertools
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from sklearn_lrvb.answers.influence import robust_covariance
from sklearn_lrvb.answers.margins import FamilyMargins, margins_of_entry, with_moments_that_exist
from sklearn_lrvb.answers.targets import covariance, joint_coordinates, variance
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.linear_response import IndefiniteInformationError
from sklearn_lrvb.linear_response.observed_information import MAX_DENSE_SIZE, indefinite_information_error
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.rows import batches, blas_threads, untracked
from sklearn_lrvb.sampling.draws import Entries
from sklearn_lrvb.verdict import Verdict

# Distance from the optimum, in posterior standard deviations, above which linear response warns of its error.
_FAR_FROM_OPTIMUM = 0.1
_FORMED_TO_PICKLE_BYTES = 2**26  # Size of the largest matrix that is formed only for a pickle.

# Size of the largest table that is kept as long as the fit. The exact posterior of a larger one takes long:
# whoever asks for it passes the rows again.
_KEPT_ROWS_BYTES = 2**26

# Difference of sums, relative to the sizes of their terms, up to which rows count as the same: 10^7 times the
# rounding of a number.
_RELATIVE_TOLERANCE = 1e-9


def read_only(value):
    """A value, an array or a tuple of some, that the user cannot change in place any more."""
    for array in value if isinstance(value, tuple) else (value,):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return value


class PosteriorUncertainty:
    """Linear response at a fitted posterior.

    Standard deviations and the covariance of all parameters are computed at first use and kept.

    Parameters
    ----------
    fitted : Fitted
    source : InformationSource

    Attributes
    ----------
    targets : Targets
    """

    def __init__(self, fitted, source):
        self.fitted = fitted
        self.source = source
        self.targets = fitted.targets
        self._model = fitted.posterior.model
        self._std = {}
        self.verdict = None  # The `Verdict` of the fit's `PosteriorCheck`, once somebody has needed it,
        self.exact = ()  # and the first and the last `ExactPosterior`, with their seeds,
        self.labels = None  # the labels of the training rows,
        self.departure = None  # and a sentence on the worst departure from the model, empty if none is gross.
        self._has_warned = False

    def to_state(self):
        """Builtins and arrays from which `from_state` rebuilds this object."""
        state = self.source.to_state()
        # Without the information the standard deviations that are known cannot be computed again.
        std = dict(self._std) if state["information"] is None else {}
        return {**state, "std": std, "verdict": None if self.verdict is None else asdict(self.verdict)}

    @classmethod
    def from_state(cls, state, fitted):
        """The object that `to_state` described."""
        uncertainty = cls(fitted, InformationSource.from_state(state, fitted))
        uncertainty._std = {target: read_only(std) for target, std in state["std"].items()}
        verdict = state.get("verdict")  # Older pickles have none.
        uncertainty.verdict = None if verdict is None else Verdict(**verdict)
        return uncertainty

    # Covariances.

    def covariance(self, names, method, rows=None):
        """Posterior covariance of the flat targets, (d, d).

        Parameters
        ----------
        names : sequence of str, of the targets
        method : {"lrvb", "mean_field", "sandwich"}
        rows : Rows or None, the training rows; "sandwich" needs them
        """
        targets = [self.targets[name] for name in names]
        if method == "sandwich":
            size = sum(target.size for target in targets)
            self.source.require_size(size, "The robust covariance")
            information = self.source.information(size, rows=rows)
            functions = itertools.chain.from_iterable(
                self.influence_functions(name, information=information) for name in names
            )
            with self.source.threads():
                return robust_covariance(rows, self.fitted.posterior, functions, size)
        coordinates = joint_coordinates(targets)
        self.source.require_size(len(coordinates), "The posterior covariance")
        if method == "lrvb":
            information = self.source.information(len(coordinates), rows=rows)
        else:
            information = self.of_mean_field
        with self.source.threads():
            return covariance(targets, coordinates, information)

    @property
    def of_mean_field(self):
        """The inverse covariance of the coefficients under q itself: CompleteInformation."""
        return self._model.information(self.fitted.posterior).mean_field

    def information(self, names, rows=None):
        """The observed information, for the standard deviations of some targets: ObservedInformation.

        Parameters
        ----------
        names : sequence of str, of the targets
        rows : Rows or None, the training rows if the caller has them; they are checked
        """
        size = max(self.targets[name].n_coordinates_at_once for name in names)
        self.source.require_size(size, "The posterior covariance")
        return self.source.information(size, rows=rows)

    @cached_property
    def parameter_covariance(self):
        """Covariance of theta, (D, D)."""
        return read_only(self.covariance(self.targets.parameters, "lrvb"))

    # Standard deviations.

    def flat_std(self, name, information=None):
        """Standard deviations of a flat target, (d,).

        Parameters
        ----------
        name : str
        information : object with ``covariance_root`` (`targets`), such as `of_mean_field`; None is the
            observed information of the fit, by which they are computed once
        """
        if information is None and name in self._std:
            return self._std[name]
        used = self.information([name]) if information is None else information
        with self.source.threads():
            std = read_only(np.sqrt(variance(self.targets[name], used)))
        if information is None and isinstance(name, str):
            self._std[name] = std
        return std

    def std(self, name):
        """LRVB standard deviations, in the shape of the attribute; infinite where there are none."""
        target, flat = self.targets[name], self.flat_std(name)
        has_variance = target.has_moments(self.fitted.posterior.counts[None])[1]
        return read_only(target.shaped(np.where(has_variance, flat, np.inf)))

    def reported_as(self, what):
        """This object, for an attribute by linear response: a warning, once, where it is not good.

        No check is made for that: where none was made, there is no warning.
        """
        if self.verdict is not None and self.verdict.state != "good" and not self._has_warned:
            self._has_warned = True
            sentence = self.verdict.sentence
            warn_caller(f"{what} is by linear response. {sentence} posterior() does not rely on it.")
        return self

    @cached_property
    def parameter_std(self):
        """Standard deviations of theta, (D,)."""
        return read_only(np.concatenate([self.flat_std(name) for name in self.targets.parameters]))

    def margins(self, name, information=None):
        """Posterior means, standard deviations and intervals of the flat entries of a target.

        Parameters
        ----------
        name, information : as in `flat_std`

        Returns
        -------
        margins : Margins, FamilyMargins, or what `MixtureModel.own_margins` returns
        """
        target = self.targets[name]
        if isinstance(name, Entries) and len(name.terms) == 1:
            whole, entry, _ = name.terms[0]
            if self.targets[whole].has_own_margins:
                return margins_of_entry(self.margins(whole, information), entry)
        if target.has_own_margins:
            used = self.information([name]) if information is None else information
            with self.source.threads():
                return self._model.own_margins(target, used)
        deviation = self.flat_std(name, information)
        margins = FamilyMargins(target.flat_value(), deviation, target.families())
        return with_moments_that_exist(margins, target, self.fitted.posterior.counts[None])

    def require_sizes(self, names):
        """Raise MemoryError where the standard deviations of one of these targets need too large a matrix."""
        for name in names:
            size = self.targets[name].n_coordinates_at_once
            words = self.targets[name].name.replace("_", " ")
            self.source.require_size(size, f"The posterior covariance for the {words}")

    def missing_shares(self, names, rows):
        """Shares of the information on flat targets that are missing: list of arrays (2, d).

        The first row is 1 - V_c/V with V the posterior variance and V_c that if nothing were missing, the
        second the part of it that missing values add to unknown labels. Both are zero where V is.

        Parameters
        ----------
        names : sequence of str
        rows : Rows, the training rows; they are checked
        """
        targets, posterior, shares = [self.targets[name] for name in names], self.fitted.posterior, []
        complete = self._model.information(posterior).of_complete_rows
        observed = self.information(names, rows)
        size = max(target.n_coordinates_at_once for target in targets)
        with self.source.threads():
            values_known = observed
            if rows.has_missing:
                result = e_step(rows, posterior)
                informations = self._model.information(posterior)
                values_known = informations.observed(rows, result, size, missing_values=False)
            for target in targets:
                whole = variance(target, observed)
                parts = np.array([variance(target, information) for information in (complete, values_known)])
                shares.append(np.divide(whole - parts, whole, out=np.zeros_like(parts), where=whole > 0))
        return shares

    # Rows.

    def of_rows(self, rows, function, shape=(), tracked=untracked, by_kernels=True):
        """``function(responses, block)`` of all blocks of some rows: (n_given, *shape).

        Parameters
        ----------
        rows : Rows
        function : callable (ResponsesOfRows, RowBlock) -> array (*shape, n)
        shape : tuple of int, of the result for one row
        tracked : Tracked, through which the blocks of rows are gone
        by_kernels : bool, default=True
            Whether the function asks for `ResponsesOfRows.covariances` only.
        """
        posterior, size = self.fitted.posterior, self.source.size
        # Rows in parts are taken to be so many that the inverse pays: to count them may take a pass.
        n_rows = rows.n_samples if rows.is_in_memory else size
        information = self.source.information(min(size, n_rows * posterior.n_labels))
        if rows.is_lazy and information.holds_rows:
            raise MemoryError(
                f"The answer for rows on Dask needs a matrix of all {size} unknowns, which is too large: "
                "without it every row would take passes over all training rows. (a) Ask for some rows, in "
                f"memory: X[...].compute(). (b) {posterior.model.way_to_fewer_features}."
            )
        with self.source.threads():
            responses = self._model.responses_of_rows(information, posterior, n_rows, by_kernels)
            ask = functools.partial(responses.of_rows, function=function, shape=shape)
            return rows.by_array(ask, shape, tracked=tracked)

    # Coefficients of influence functions.

    def influence_functions(self, name, combinations=None, information=None, tracked=untracked):
        """Yield the influence functions of a flat target, batch by batch; arguments as in `coefficients`."""
        for coefficients in self.coefficients(name, combinations, information, tracked):
            yield self._model.influence_functions(self.fitted.posterior, coefficients)

    def coefficients(self, name, combinations=None, information=None, tracked=untracked):
        """Yield rows of J M^-1, (n, D), of a flat target, batch by batch.

        Parameters
        ----------
        name : str
        combinations : array (n, d) or None, linear combinations of the target; None is every entry
        information : ObservedInformation or None, default=None
        tracked : Tracked, through which the batches are gone
        """
        target = self.targets[name]

        def sources(batch):
            if combinations is not None:
                return target.transposed_responses(combinations[batch])
            return target.transposed_responses(np.eye(batch.stop - batch.start, target.size, batch.start))

        n_sources = target.size if combinations is None else len(combinations)
        return self.solutions(n_sources, sources, information, tracked)

    def solutions(self, n_sources, sources, information=None, tracked=untracked):
        """Yield M^-1 times sources as rows (n, D), batch by batch: the responses of the coefficients.

        Parameters
        ----------
        n_sources : int
        sources : callable, slice of ``range(n_sources)`` -> (D, n)
        tracked : Tracked, through which the batches of sources are gone
        """
        information = information or self.source.information(n_sources)
        places = batches(n_sources, 8 * self.source.size)
        for batch in tracked(places, len(places)):
            with self.source.threads():
                solved = information.solve(sources(batch))
            yield solved.T


class InformationSource:
    """The observed information at a fitted posterior, and the training rows as long as it needs them.

    Few rows in memory are kept, because the exact posterior needs them. Others are released once a matrix is
    formed. The matrix-free solver passes over them every time: they are kept as long as it is in use.

    Parameters
    ----------
    fitted : Fitted
    rows : Rows or None, the training rows
    course : FitCourse, for messages
    n_jobs : int or None, threads of matrix factorizations
    sums : (2 + P,), the `training_sums` by which rows are known as those of the fit
    decrement : float or None, the Newton decrement, if it is known
    """

    def __init__(self, fitted, rows, course, n_jobs, sums, decrement):
        self._targets = fitted.targets
        self.size = fitted.posterior.n_coefficients  # Number of unknowns of the whole system, D.
        self._posterior = fitted.posterior
        self._rows = rows
        self._are_small = rows is not None and rows.is_in_memory and rows.X.nbytes <= _KEPT_ROWS_BYTES
        self._course = course
        self._n_jobs = n_jobs
        self._sums = sums
        self._decrement = decrement
        self._matrix = None  # The information by the primal or the dual solver,
        self._packed = None  # or the arrays of its ``to_arrays``, until it is needed.
        self._compared = None  # The last rows that were those of the fit.
        self._is_definite = False  # Whether the matrix was found to be so, by any solver.
        self._has_warned = False

    @classmethod
    def of_fit(cls, fitted, fit, rows, course):
        """The source of a finished fit.

        Parameters
        ----------
        fit : Fit
        rows : Rows, the training rows
        course : FitCourse
        """
        decrement = None if np.isnan(fit.decrement) else fit.decrement
        sums = training_sums(fitted.posterior, rows)[0]
        source = cls(fitted, rows, course, rows.n_jobs, sums, decrement)
        source._keep(fit.information)
        return source

    def _keep(self, information):
        """Keep a matrix that was formed, and release the rows."""
        if information is not None and not information.holds_rows:
            self._matrix = information
            if not self._are_small:
                self._rows = None

    def training_rows(self):
        """The training rows of a fit to few of them in memory, unless they were changed since; or None."""
        if not self._are_small or difference_of_rows(self._rows, self._posterior, self._sums) is not None:
            return None
        return self._rows

    def release_rows(self, result):
        """Form the matrix now, if it is not too large, so that the rows are not needed any more.

        Parameters
        ----------
        result : EStepResult at the posterior
        """
        if self._rows is not None:
            costs = self._posterior.model.information(self._posterior).costs(self._rows, result)
            solver = costs.cheapest(self.size)
            if solver != "matrix_free":
                information, self._decrement = self._formed(self._rows, result, self.size, solver)
                self._keep(information)

    def threads(self):
        """Context in which matrices are factored with as many threads as the fit was allowed."""
        return blas_threads(self._n_jobs)

    # The training rows.

    def check_training_rows(self, rows):
        """Raise ValueError unless these are the rows of the fit; the same rows in parts are compared once."""
        if rows is self._compared and not rows.is_in_memory:
            return
        difference = difference_of_rows(rows, self._posterior, self._sums)
        if difference is not None:
            raise ValueError(
                f"X is not what the mixture was fitted to: {difference}. Pass the training rows, and their "
                "sample_weight if they had one."
            )
        self._compared = rows

    def _kept_rows(self):
        """The rows that are kept, which are still those of the fit."""
        if self._rows is None:
            raise ValueError(
                "This needs the training rows, which are not part of a pickled or copied estimator. Rows of "
                "more than 64 MiB are released once the information matrix is formed. (a) Pass them, as in "
                "posterior(X, ...). (b) Use it before pickling. (c) Fit again."
            )
        difference = difference_of_rows(self._rows, self._posterior, self._sums)
        if difference is not None:
            raise ValueError(f"X was changed in place after fit: {difference}. Fit again.")
        return self._rows

    # The information.

    def information(self, n_targets, solver=None, rows=None):
        """The observed information, positive definite, to solve for about ``n_targets`` right-hand sides.

        Parameters
        ----------
        n_targets : int
        solver : {"primal", "dual", "matrix_free"} or None, default=None
            None uses the one in use, else the cheapest.
        rows : Rows or None, default=None
            The training rows, if the caller has them.

        Returns
        -------
        information : ObservedInformation

        Raises
        ------
        IndefiniteInformationError
            The fit is no strict local optimum. A ValueError.
        ValueError
            The training rows are needed and have been released, or the given rows are not those of the fit.
        """
        if rows is not None:
            self.check_training_rows(rows)
        if self._packed is not None:
            self._matrix = self._posterior.model.information(self._posterior).from_arrays(self._packed)
            self._packed = None
        information = self._matrix
        if information is None or solver not in (None, information.name):
            rows = self._kept_rows() if rows is None else rows
            information, self._decrement = self._formed(rows, None, n_targets, solver)
            if solver is None:
                self._keep(information)
        try:
            if not self._is_definite:
                information.require_positive_definite()
        except IndefiniteInformationError as error:
            raise self._course.indefinite_error(error, self._targets, self._decrement) from None
        self._is_definite = True
        if self._decrement > _FAR_FROM_OPTIMUM and not self._has_warned:
            self._has_warned = True
            warn_caller(
                f"The fit is {self._decrement:.2g} posterior standard deviations away from its "
                f"optimum ({self._course}), so the linear response at it is rough. To come closer, "
                f"{self._course.ways_closer()}."
            )
        return information

    def _formed(self, rows, result, n_targets, solver):
        """The information and the Newton decrement, from the rows and their E-step, or None to make it."""
        result = result or e_step(rows, self._posterior)
        with self.threads():
            informations = self._posterior.model.information(self._posterior)
            information = informations.observed(rows, result, n_targets, solver)
        decrement = self._decrement
        if decrement is None:
            decrement = information.newton_step(self._posterior.residual(result.moments))[1]
        return information, decrement

    def require_size(self, size, what):
        """Raise MemoryError for a matrix of ``size`` unknowns that is too large.

        Parameters
        ----------
        size : int
        what : str, the name of the matrix in the message
        """
        if size > MAX_DENSE_SIZE:
            model = self._posterior.model
            raise MemoryError(
                f"{what} of {self._posterior.described} has "
                f"{size} unknowns, a matrix of {8 * size**2 / 2**30:.1f} GiB; up to {MAX_DENSE_SIZE} are "
                f"solved. {model.ways_to_fewer_unknowns}"
            )

    def factored(self, rows=None):
        """The observed information, by a matrix of all unknowns or the dual one wherever either fits.

        Parameters
        ----------
        rows : Rows or None, the training rows, if the caller has them
        """
        information = self.information(self.size, rows=rows)
        if information.holds_rows and self.size <= MAX_DENSE_SIZE:
            information = self.information(self.size, "primal", rows)
        return information

    # Pickling.

    def to_state(self):
        """Builtins and arrays from which `from_state` makes a source without rows; nothing changes here.

        Where the information is not formed yet, it is formed for the pickle, if a pickle can carry it and the
        rows are still those of the fit. Otherwise the copy asks for the training rows.
        """
        information, decrement = self._matrix, self._decrement
        if information is None and self._rows is not None:
            with contextlib.suppress(ValueError, MemoryError):
                rows = self._kept_rows()
                result = e_step(rows, self._posterior)
                costs = self._posterior.model.information(self._posterior).costs(rows, result)
                solver = costs.cheapest(self.size)
                n_numbers = {
                    "primal": self.size**2,
                    "dual": costs.n_columns * (costs.n_columns + costs.n_numbers_per_column),
                }
                if 8 * n_numbers.get(solver, np.inf) <= _FORMED_TO_PICKLE_BYTES:
                    information, decrement = self._formed(rows, result, self.size, solver)
                else:
                    decrement = self._formed(rows, result, 1, "matrix_free")[1]
        return {
            "course": asdict(self._course),
            "n_jobs": self._n_jobs,
            "training_sums": self._sums,
            "decrement": None if decrement is None else float(decrement),
            "information": self._packed if information is None else information.to_arrays(),
        }

    @classmethod
    def from_state(cls, state, fitted):
        """The source that `to_state` described."""
        course = FitCourse(**state["course"])
        source = cls(fitted, None, course, state["n_jobs"], state["training_sums"], state["decrement"])
        source._packed = state["information"]
        return source


@dataclass(frozen=True)
class FitCourse:
    """How a fit went, and what would bring it closer to a strict optimum: for messages.

    Attributes
    ----------
    n_iter : int
    converged : bool
    max_iter : int
    tol : float
    solver : str
    is_drawn : bool, whether its start was drawn at random, and not given
    stopped : bool, whether a callback ended it
    """

    n_iter: int
    converged: bool
    max_iter: int
    tol: float
    solver: str
    is_drawn: bool
    stopped: bool = False

    def __str__(self):
        return f"n_iter_ = {self.n_iter}, {'converged' if self.converged else 'not converged'}"

    def ways_closer(self):
        """The arguments that would have brought the fit closer to an optimum, in words."""
        if self.stopped:
            ways = ["fit without the callback that stopped it"]
        elif self.converged:
            ways = [f"lower tol (now {self.tol:g})"]
        else:
            ways = [f"raise max_iter (now {self.max_iter}), and see that the fit converges"]
        if self.solver != "newton":
            ways.append("use solver='newton'")
        return ", or ".join(ways)

    def indefinite_error(self, error, targets, decrement):
        """The error of an indefinite information in terms of the mixture.

        It names the parameters and the components concerned, and remedies.

        Parameters
        ----------
        error : IndefiniteInformationError
        targets : Targets at the posterior
        decrement : float, distance of the fit from its optimum in posterior standard deviations
        """
        target_name, shares = targets.parts_of_direction(error.direction)
        most = np.sort(np.argsort(shares)[::-1][:2])
        pair, remedies = " and ".join(str(k) for k in most), []
        leaves_saddles = self.solver == "newton"
        if not (self.converged and leaves_saddles and decrement < _FAR_FROM_OPTIMUM):
            remedies.append(
                f"The fit ended {decrement:.2g} posterior standard deviations from an optimum, or at a "
                f"saddle ({self}): {self.ways_closer()}."
            )
        if len(most) > 1:
            other_starts = "or start from other responsibilities (init_params)"
            if self.is_drawn:
                other_starts = "raise n_init, or change random_state"
            ways = f"lower n_components, {other_starts}."
            remedies.append(
                f"Components {pair} coincide or share one cluster: {ways}"
                if self.converged
                else f"If that does not help, components {pair} may share one cluster: {ways}"
            )
        return indefinite_information_error(
            error.smallest_eigenvalue,
            error.direction,
            subject="The posterior covariance is undefined, as the fit",
            where=f"mostly in the {target_name.replace('_', ' ')} of component{'s' * (len(most) > 1)} {pair}",
            remedies=remedies,
        )


def training_sums(posterior, rows):
    """Sums over the rows of a fit that other rows do not have, and the sizes of their terms: (2, 2 + P).

    Every row x has z, its values in units of the columns, and a weight c between 0 and 1 that depends on all
    of z and on which values are missing. The sums are how many rows there are, and those of c and of c z, all
    as often as rows count. The order of the rows, and how they are stored, change them by round-off of sums
    alone, however dependent columns are: no matrix takes part. The lower bound would not do: where a
    covariance is nearly singular its rounding is amplified as much as a change of X.

    Parameters
    ----------
    posterior : posterior of the fit, which sets the units of the columns
    rows : Rows, measured from the posterior's origin
    """
    units = posterior.units_of_columns()
    return rows.total(functools.partial(_training_sums_of_block, units))


def _training_sums_of_block(units, block):
    """`training_sums` of a block, (2, 2 + P)."""
    z = block.rows / units[:, None]
    direction = np.cos(1.0 + np.arange(len(z)))  # A generic one: no other row is likely to have the same c.
    projection = direction @ z
    if block.missing is not None:
        projection += direction @ block.missing.by_row(block.missing.is_missing.T)
    elif np.isnan(projection).any():  # Rows that are not sorted by their patterns of missing values hold NaN.
        missing = np.isnan(z)
        z[missing] = 0.0
        projection = direction @ z + direction @ missing
    c = block.weighted(1.0 / (1.0 + np.square(projection)))
    totals = [block.counts.sum(), c.sum()]
    return np.array([[*totals, *(z @ c)], [*totals, *(np.abs(z) @ c)]])


def difference_of_rows(rows, posterior, sums):
    """What makes rows others than those of a fit, the end of a sentence; None where they are the same.

    A change of one value by 1e-9 N units of its column, or more, is seen. Smaller changes may pass: they do
    not matter to a fit of N rows.

    Parameters
    ----------
    rows, posterior : as in `training_sums`
    sums : (2 + P,), the first of the `training_sums` over the rows of the fit
    """
    own_sums, sizes = training_sums(posterior, rows)
    changes = np.abs(own_sums - sums)
    changed = ~(changes <= _RELATIVE_TOLERANCE * sizes)  # NaN is a change.
    if not changed.any():
        return None
    if changed[0]:
        return f"it counts {own_sums[0]:.10g} rows, and that of the fit {sums[0]:.10g}"
    largest = np.divide(changes, sizes, out=np.ones_like(changes), where=sizes > 0)[changed].max()
    return f"sums over its rows differ from those of the fit by up to a relative {largest:.1g}"
