"""Fitted attributes that are computed where they are read: functions of a mixture, with their documentation.

`computed` makes them attributes of a class. Where one cannot be computed it is missing, for `hasattr` and
`getattr`, and says why where it is read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sklearn_lrvb.answers.uncertainty import read_only
from sklearn_lrvb.family_mixture.prior_changes import covariance_of_learned
from sklearn_lrvb.mixture.prediction import most_probable_components
from sklearn_lrvb.reports import required_pandas

if TYPE_CHECKING:
    import pandas as pd

_Value = TypeVar("_Value")


class ComputedAttribute(property, Generic[_Value]):
    """A property whose errors are AttributeErrors too, so that it is missing where it cannot be computed.

    Attributes
    ----------
    exists_with : str or None
        Another attribute, which exists where this one does, for ``dir``: to compute this one may take long.
    """

    exists_with: str | None = None

    def __get__(self, mixture: Any, owner: type | None = None) -> _Value:  # type: ignore[override]
        try:
            return super().__get__(mixture, owner)
        except (AttributeError, ValueError, MemoryError) as error:
            raise _refusal(error, mixture) from error.__cause__


def computed(
    exists_with: str | None = None,
) -> Callable[[Callable[[Any], _Value]], ComputedAttribute[_Value]]:
    """Decorator that makes a `ComputedAttribute` of a function of a mixture."""

    def attribute(function):
        made = ComputedAttribute(function)
        made.exists_with = exists_with
        return made

    return attribute


class MissingCovariances:
    """`covariances_` where a mixture has none: the error says why. Fits with covariances set their own."""

    def __get__(self, mixture, owner=None):
        if mixture is None:
            return self
        uncertainty = vars(mixture).get("_last_uncertainty")
        if uncertainty is not None:
            try:
                uncertainty.fitted.targets["covariances"].factors()
            except ValueError as error:
                raise _refusal(error, mixture) from error.__cause__
        raise AttributeError(f"{type(mixture).__name__!r} object has no attribute 'covariances_'")


def _refusal(error, mixture):
    """An error that is an AttributeError too, besides what it is: the attribute of a mixture is missing."""
    refusal = _attribute_error(type(error), error.args, vars(error))
    # With a name, Python ends the message by asking whether a similar attribute was meant.
    refusal.name, refusal.obj = None, mixture
    return refusal.with_traceback(error.__traceback__)


def _attribute_error(kind: type, arguments: tuple, attributes: dict) -> AttributeError:
    """An error of a class, under its name, that is an AttributeError too."""
    error = _also_attribute_error(kind)(*arguments)
    vars(error).update(attributes)
    return error


@functools.cache
def _also_attribute_error(kind):
    """The class derived from a class of errors and from AttributeError, if the former is not one already."""
    if issubclass(kind, AttributeError):  # As NotFittedError is.
        return kind

    class Refusal(kind, AttributeError):
        # A pickle, as between processes, cannot find this class by its name, and so makes it again.
        def __reduce__(self):
            return _attribute_error, (kind, self.args, vars(self))

    Refusal.__doc__, Refusal.__module__ = kind.__doc__, kind.__module__
    Refusal.__name__, Refusal.__qualname__ = kind.__name__, kind.__qualname__
    return Refusal


@computed()
def posterior_mean_(mixture) -> NDArray[np.float64]:
    """Posterior means of the parameters theta, shape (D,), which are named by `posterior_names_`.

    Raises
    ------
    ValueError
        The estimator is not fitted.
    """
    return np.concatenate([target.flat_value() for target in mixture._fitted.targets.theta])


@computed(exists_with="posterior_mean_")
def log_evidence_(mixture) -> float:
    """log p(X) to second order, in nats, of one labelling: `lower_bound_` and what it misses.

    The lower bound falls short of the evidence, by more where more is unknown: labels of rows between
    clusters, and missing values. To second order the gap is ``-log det(S) / 2``, with S the observed
    information in units of the complete one. Prefer this number to compare models that differ in how much
    is unknown, such as numbers of components for rows with missing values: with 5 to 40 % of 3000 values
    missing, the bound was 1 to 8 nats below the evidence, and this number within 0.01. Prefer `lower_bound_`
    where a guarantee is needed, since this number may be above the evidence; and `log_evidence_bound` of
    :meth:`posterior_check` where rows are few or clusters overlap so much that posteriors are skew.

    Like the bound, it is that of one labelling of the components, by a formula; `log_evidence` of
    :meth:`posterior_check` is that of all labellings, by draws: under a Dirichlet prior log K! more. What
    ``factorization="independent"`` costs is not in it. Where `tails` are fitted, compare fits by this
    number: `lower_bound_` is that of one value of them, and does not count their uncertainty.

    Raises
    ------
    ValueError
        As `posterior_covariance_`.
    MemoryError
        The system is too large; the message names the size and the way out.

    Examples
    --------
    Twenty waiting times for a geyser, in minutes. The bound is 0.4 nats lower, because some labels are in
    doubt:

    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
    ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> print(f"{mixture.lower_bound_:.1f} {mixture.log_evidence_:.1f}")
    -88.1 -87.7
    """
    uncertainty = mixture._uncertainty
    source, information = uncertainty.source, uncertainty.source.factored()
    if not information.has_determinant:
        source.require_size(source.size, "The log evidence")
    # log|S|, with S = I - T' G T and T T' = R. The bound has no factor q of what is taken at its mode.
    fitted = uncertainty.fitted
    return float(fitted.path[-1] + 0.5 * (fitted.posterior.log_volume - information.log_determinant))


@computed(exists_with="posterior_mean_")
def posterior_covariance_(mixture) -> NDArray[np.float64]:
    """Posterior covariance of theta by linear response, shape (D, D), in products of the units of theta.

    Equation 11 of the paper. Under joint factors the variance of a mean includes the excess of its Student t
    over the normal, where that is finite (``degrees_of_freedom_ > n_features + 1``). Computed at first access
    and kept: the array is read-only. Always by linear response, with one warning for each fit if a check
    that was made does not call it good; ``posterior().covariance()`` is exact then.

    Raises
    ------
    ValueError
        The estimator is not fitted, fitted arrays were changed since, the fit is no strict local optimum,
        or the training rows are needed and were left behind by a pickle.
    MemoryError
        More than 14,000 unknowns; the message says what to ask for instead.

    See Also
    --------
    posterior : Covariances of some parameters, and by other methods.

    Examples
    --------
    The means of short and long waits for a geyser hardly depend on each other (correlation 0.04):

    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
    ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> mixture.posterior_covariance_.shape
    (6, 6)
    >>> covariance = mixture.posterior_covariance_[2:4, 2:4]  # see posterior_names_
    >>> print(f"{covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]):.2f}")
    0.04
    """
    return mixture._uncertainty.reported_as("posterior_covariance_").parameter_covariance


@computed(exists_with="posterior_mean_")
def posterior_std_(mixture) -> NDArray[np.float64]:
    """Posterior standard deviations of theta by linear response, shape (D,), in units of theta.

    Square roots of the diagonal of `posterior_covariance_`, computed without that matrix. They are
    computed at first access and kept: the array is read-only. Always by linear response, as that matrix.

    Raises
    ------
    ValueError, MemoryError
        As `posterior_covariance_`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
    ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> np.allclose(mixture.posterior_std_**2, np.diag(mixture.posterior_covariance_))
    True
    """
    return mixture._uncertainty.reported_as("posterior_std_").parameter_std


@computed()
def posterior_names_(mixture) -> NDArray[np.str_]:
    """Names of the entries of theta, array of str of shape (D,).

    "log_weight[0]", "mean[0,x1]" and "precision[0,x1,x2]" ("precision[x1,x2]" for 'tied',
    "precision[0,x1]" for 'diag', "precision[0]" for 'spherical', "precision[x1]" for 'tied_diag'), with the
    feature names of the fit if it had any.

    Raises
    ------
    ValueError
        The estimator is not fitted.

    Examples
    --------
    Names of columns become those of parameters:

    >>> import pandas as pd
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> frame = pd.DataFrame({"wait": [79, 54, 74, 62, 85, 55, 88, 85, 51, 85]})  # minutes
    >>> LRVBGaussianMixture().fit(frame).posterior_names_.tolist()
    ['log_weight[0]', 'mean[0,wait]', 'precision[0,wait,wait]']
    """
    theta = mixture._fitted.targets.theta
    return np.concatenate([target.labels(mixture._feature_names) for target in theta])


@computed(exists_with="weights_")
def weights_std_(mixture) -> NDArray[np.float64]:
    """Posterior standard deviations of `weights_`, shape (n_components,), without unit.

    Always by linear response (paper, Equation 11) and the delta method, at first access; kept and read-only.
    The theory page "Error bars of the mixture" has the derivatives, under reported parameters. There is one
    warning for each fit if a check that was made does not call linear response good:
    ``posterior().std("weights")`` has the standard deviations of the table.

    Raises
    ------
    ValueError, MemoryError
        As `posterior_covariance_`.
    """
    return mixture._uncertainty.reported_as("weights_std_").std("weights")[: len(mixture.weights_)]


# Of Gaussian mixtures.


@computed(exists_with="posterior_mean_")
def labels_(mixture) -> NDArray[np.intp]:
    """Most probable component of every training row, int array (n_samples,); -1 for noise.

    ``predict`` of the training rows, at first access, as long as the fit has them: up to 64 MiB of rows
    in memory, and none in a pickle. `fit_predict` returns them in any case.

    Raises
    ------
    ValueError
        The estimator is not fitted, or the training rows are not there any more: call ``predict(X)``.
    """
    uncertainty = mixture._uncertainty
    if uncertainty.labels is None:
        rows = uncertainty.source.training_rows()
        if rows is None or rows.n_given != mixture._n_given:
            raise ValueError(
                "labels_ needs all training rows. A fit keeps up to 64 MiB of them in memory, none of "
                "weight zero or without a value, and none in a pickle: call predict(X)."
            )
        uncertainty.labels = read_only(most_probable_components(rows, uncertainty.fitted.posterior))
    return uncertainty.labels


@computed()
def gaussian_posterior_mean_(mixture) -> NDArray[np.float64]:
    """Posterior mean of theta = (log weights; means; unique precision entries), shape (D,).

    Log weights, which have no unit, are of weights that sum to one, as `weights_` do. Means have the
    units of X, precisions one over their squares. The entries are named by `posterior_names_`. Like every
    fitted attribute it follows arrays that are set by hand.

    Raises
    ------
    ValueError
        The estimator is not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
    ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> for name, mean in zip(mixture.posterior_names_, mixture.posterior_mean_):
    ...     print(name, mean.round(3))
    log_weight[0] -0.757
    log_weight[1] -0.68
    mean[0,x0] 56.241
    mean[1,x0] 81.106
    precision[0,x0,x0] 0.014
    precision[1,x0,x0] 0.021
    """
    fitted = mixture._fitted
    values = [fitted.posterior.log_shares, mixture.means_, mixture.precisions_]
    if fitted.structure.n_tails:
        values.append(np.log(mixture.tails_))
    named = zip(fitted.targets.theta, map(np.asarray, values), strict=True)
    return np.concatenate([target.flat(value) for target, value in named])


@computed(exists_with="noise_weight_")
def noise_weight_std_(mixture) -> float:
    """Posterior standard deviation of `noise_weight_`, without unit; only with noise.

    Always by linear response, as `weights_std_`. The density of noise is taken as known.

    Raises
    ------
    ValueError, MemoryError
        As `posterior_covariance_`.
    """
    uncertainty = mixture._uncertainty.reported_as("noise_weight_std_")
    if not uncertainty.fitted.structure.has_noise_component:
        raise AttributeError("noise_weight_std_ belongs to a fit with noise: pass noise=True, and fit.")
    return uncertainty.std("weights")[-1]


@computed(exists_with="means_")
def means_std_(mixture) -> NDArray[np.float64]:
    """Posterior standard deviations of `means_`, shape (n_components, n_features), in units of X.

    Always by linear response, as `weights_std_`. Under joint factors they include the excess of the Student t
    over the normal; where it is infinite, they are inf.

    Raises
    ------
    ValueError, MemoryError
        As `posterior_covariance_`.
    """
    return mixture._uncertainty.reported_as("means_std_").std("means")


@computed(exists_with="covariances_")
def covariances_std_(mixture) -> NDArray[np.float64]:
    """Posterior standard deviations of `covariances_`, in its shape and unit, that of X squared.

    Always by linear response, as `weights_std_`; inf where there is none.

    Raises
    ------
    ValueError, MemoryError
        As `posterior_covariance_`.
    """
    return mixture._uncertainty.reported_as("covariances_std_").std("covariances")


@computed(exists_with="precisions_")
def precisions_std_(mixture) -> NDArray[np.float64]:
    """Posterior standard deviations of `precisions_`, in its shape and unit, one over that of X squared.

    Always by linear response, as `weights_std_`.

    Raises
    ------
    ValueError, MemoryError
        As `posterior_covariance_`.
    """
    return mixture._uncertainty.reported_as("precisions_std_").std("precisions")


@computed(exists_with="scales_")
def scales_std_(mixture) -> NDArray[np.float64]:
    """Posterior standard deviations of `scales_`, in its shape and unit; of Student's t components.

    Always by linear response, as `weights_std_`; inf where there is none.

    Raises
    ------
    ValueError, MemoryError
        As `posterior_covariance_`.
    """
    return mixture._uncertainty.reported_as("scales_std_").std("scales")


@computed(exists_with="_tails_target")
def tails_std_(mixture) -> NDArray[np.float64] | float:
    """Posterior standard deviations of `tails_`, in its shape, without unit; where they are fitted.

    Always by linear response, as `weights_std_`, from the logarithm of the degrees of freedom.

    Raises
    ------
    ValueError, MemoryError
        As `posterior_covariance_`.
    """
    return mixture._uncertainty.reported_as("tails_std_").std("tails")


# Of latent classes.


@computed()
def tables_(mixture) -> dict[str, pd.DataFrame]:
    """What describes the classes, by the name of the column.

    A row for every class, and a column for every category (its probability), for 'mean' and 'sd', or for
    'rate'.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    ImportError
        pandas is not installed.
    """
    fitted = mixture._fitted
    return tables_by_column(fitted.columns, fitted.targets["tables"], fitted.targets["tables"].value())


@computed(exists_with="tables_")
def tables_std_(mixture) -> dict[str, pd.DataFrame]:
    """Posterior standard deviations of `tables_`, in its shape and units.

    Always by linear response, as `weights_std_`; inf where there is none.

    Raises
    ------
    ValueError, MemoryError
        The fit is no strict local optimum, or the system is too large; the message says what to do.
    """
    target = mixture._fitted.targets["tables"]
    std = mixture._uncertainty.reported_as("tables_std_").std("tables")
    return tables_by_column(mixture._fitted.columns, target, std)


@computed()
def learned_prior_(mixture) -> pd.DataFrame:
    """The arguments of the prior that were learned: a row for each, with its 'value' and its 'sd'.

    The value is the most probable one, on the scale of the logarithm. The standard deviation, by linear
    response, is that of the logarithm times the value. There are no rows where nothing was learned.

    Raises
    ------
    ValueError, MemoryError
        The fit is no strict local optimum, or the system is too large; the message says what to do.
    """
    pd, prior = required_pandas("learned_prior_"), mixture._fitted.posterior.prior
    names = () if prior.learned is None else prior.learned.names
    deviations = np.sqrt(np.diag(covariance_of_learned(mixture._uncertainty))) if names else np.zeros(0)
    values = {"value": prior.learned_values, "sd": prior.learned_values * deviations}
    return pd.DataFrame(values, index=pd.Index(names, name="argument"))


@computed()
def columns_(mixture) -> pd.DataFrame:
    """What the columns are: a row for each, with its 'kind' and its 'categories'.

    ``columns_.attrs["notes"]`` has remarks, such as which columns of numbers look like codes.
    """
    pd, columns = required_pandas("columns_"), mixture._fitted.columns
    frame = pd.DataFrame(
        {
            "kind": [column.kind for column in columns.columns],
            "categories": [list(column.categories) for column in columns.columns],
        },
        index=pd.Index(columns.names, name="column"),
    )
    frame.attrs["notes"] = list(columns.notes)
    return frame


def tables_by_column(columns, target, values):
    """A data frame for every column: dict by its name.

    Parameters
    ----------
    columns : TableColumns
    target : Tables
    values : (K, entries), in its order
    """
    pd = required_pandas("tables_")
    places, found = target.columns_of_entries()[:, 0], {}
    labels = np.array(target.labels_of_entries(), dtype=object)
    for place, column in enumerate(columns.columns):
        own = places == place
        frame = pd.DataFrame(values[:, own], columns=pd.Index(labels[own], name=column.name))
        frame.index.name = "class"
        found[column.name] = frame
    return found
