"""Features, components and parameters, by number or by name: what users may pass, and what it stands for."""

from collections.abc import Collection, Mapping, Set
from numbers import Integral

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

from sklearn_lrvb.estimators.arguments import holding
from sklearn_lrvb.estimators.posterior import Posterior

_MOST_PANELS = 100  # More are too small to read on any page, and take matplotlib a minute.
_FEWER = (
    "(a) Choose some by features=[...]; for matrices a feature stands for its diagonal entry, and a pair for "
    "the entry off the diagonal. (b) Draw fewer targets."
)


def check_drawn(display, estimator, model=None):
    """Raise an error where an estimator cannot be drawn.

    Parameters
    ----------
    display : class that is to draw it
    estimator : object, what the user passed
    model : class of the estimators that it draws; None means every mixture

    Raises
    ------
    ImportError
        There is no matplotlib.
    NotFittedError
        The estimator is not fitted.
    ValueError
        It is another model.
    """
    check_matplotlib_support(f"{display.__name__}.from_estimator")
    check_is_fitted(estimator)
    if model is not None and not isinstance(estimator, model):
        raise ValueError(
            f"{display.__name__} draws {model.__name__}, got {type(estimator).__name__}. Both are drawn by "
            "PosteriorStdDisplay, PartitionDisplay, DecidingRowsDisplay and ModelChoiceDisplay; latent "
            "classes by ClassProfilesDisplay."
        )


def _are_of_one_fit(*both):
    """Whether two PosteriorUncertainty are the same, or copies: those of a pickle are."""
    means = [np.concatenate([part.flat_value() for part in own.targets.theta]) for own in both]
    return both[0] is both[1] or np.array_equal(*means)


def checked_posterior(estimator, posterior):
    """The posterior that a user has passed; None is the estimator's."""
    if posterior is not None and not isinstance(posterior, Posterior):
        raise ValueError(
            "posterior must be what the estimator's posterior() returns, with rows X posterior(X), got "
            f"{type(posterior).__name__}."
        )
    if posterior is not None and not _are_of_one_fit(posterior._uncertainty, estimator._uncertainty):
        raise ValueError("posterior is of another fit: pass that of this estimator as it is fitted now.")
    return posterior or estimator.posterior()


def check_number_of_panels(n_panels, remedies):
    """Raise ValueError where there are more panels than can be read; the remedies are a sentence."""
    if n_panels > _MOST_PANELS:
        raise ValueError(
            f"The plot would have {n_panels} panels, and at most {_MOST_PANELS} can be read. {remedies}"
        )


def expected_counts(estimator):
    """Expected number of training rows in every component, (K,)."""
    return estimator._uncertainty.fitted.posterior.counts.copy()


def coordinates(estimator, X, features):
    """Columns of rows in memory, NaN where values are missing: (n_samples, n)."""
    return estimator._given_rows(X, None, estimator._fitted).X[:, features].astype(np.float64)


def in_words(names):
    """Names as a list in words: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + names[-1:])


def is_list(value):
    """Whether the value lists several things in order, as columns of a data frame do; a string is one."""
    return isinstance(value, Collection) and not isinstance(value, (str, bytes, Set, Mapping))


def checked_feature(name, value, names):
    """The number of a feature, given by number or by name."""
    number = _feature(value, names)
    if number is None:
        raise ValueError(f"{name} must be {_one_of(names)}, got {value!r}.")
    return number


def checked_features(features, names, n_most=None):
    """The numbers of several different features, as a list.

    Parameters
    ----------
    features : object, what the user passed; None stands for the first two, or the only one
    names : list of P str
    n_most : int or None, how many may be chosen
    """
    if features is None:
        return list(range(min(2, len(names))))
    numbers = [_feature(v, names) for v in features] if is_list(features) else [None]
    if None in numbers or len(set(numbers)) < len(numbers) or not 1 <= len(numbers) <= (n_most or len(names)):
        how_many = "one or two" if n_most == 2 else "one or more"
        raise ValueError(
            f"features must be {how_many} different columns of the {len(names)} that the mixture was fitted "
            f"to, each {_one_of(names)}, got {features!r}."
        )
    return numbers


def checked_components(components, counts, min_count):
    """The numbers of the components to show: those listed, or all with at least ``min_count`` rows."""
    if components is None:
        return np.flatnonzero(holding(counts, min_count)).tolist()
    chosen = list(components) if is_list(components) else []
    known = all(_is_index(k, len(counts)) for k in chosen)
    if not chosen or not known or len(set(chosen)) < len(chosen):
        raise ValueError(
            f"components must be a list of different integers from 0 to {len(counts) - 1}, got "
            f"{components!r}."
        )
    return [int(k) for k in chosen]


def parameter_entry(estimator, target, component, feature):
    """Index into the attribute, and name as in `posterior_names_`: ((0, 1), "mean[0,x1]").

    Parameters
    ----------
    estimator : LRVBGaussianMixture, fitted
    target : str
    component : int, or "noise" for the weight of noise
    feature : int, str or pair of such
        Of precisions and covariances one feature stands for the diagonal entry, and a pair for any.

    Raises
    ------
    ValueError
        There is no such target, component or feature, or no such entry off the diagonal.
    """
    target, names = estimator._uncertainty.targets[target], estimator._feature_names
    if isinstance(component, str) and component == "noise":
        if not has_noise_entry(target):
            raise ValueError(
                "component='noise' is for target='weights' and target='log_weights' of a fit with noise, got "
                f"target={target.name!r}."
            )
        place = target.size - 1
    elif _is_index(component, len(estimator.means_)):
        place = target.flat_index(int(component), *row_and_column(target, feature, names))
    else:
        raise ValueError(
            f"component must be an integer from 0 to {len(estimator.means_) - 1}, got {component!r}."
        )
    index = np.argwhere(target.flat_indices() == place)[0]  # in the upper triangle of a matrix
    return tuple(index.tolist()), target.labels(names)[place]


def chosen_entries(estimator, targets, components, features, min_count):
    """The entries of targets that are drawn: dict of their places to pairs of str, of a row and a panel.

    A place is a position in the flat forms of all targets, one after the other. A row is a component. A panel
    is named by the features of its entries, and by the target too, unless this is alone and several panels
    are under a title that names it.

    Parameters
    ----------
    targets : list of Target
    components, features, min_count : what the user passed; without components, noise has a row
    """
    shown = checked_components(components, expected_counts(estimator), min_count)
    n_components, n_features = estimator.means_.shape
    names, entries, start = estimator._feature_names, {}, 0
    for target in targets:
        pairs = all_entries(target, n_features)
        if features is not None and target.n_feature_axes:
            if not is_list(features) or not len(features):
                raise ValueError(f"features must be a list of features, or None for all, got {features!r}.")
            pairs = dict.fromkeys(tuple(row_and_column(target, feature, names)) for feature in features)
        check_number_of_panels(len(pairs), _FEWER)
        has_features = target.size > target.n_units or (n_features == 1 and target.n_feature_axes)
        entry_name = target.entry_name.replace("_", " ")
        for row, column in pairs:
            label = names[row] if row == column else f"{names[row]}, {names[column]}"
            if not has_features:
                label = entry_name
            elif len(targets) > 1 or len(pairs) == 1:
                label = f"{entry_name} of {label}"
            for k in shown:
                component = "all" if target.n_units < n_components else str(k)
                entries[start + target.flat_index(k, row, column)] = component, label
        if components is None and has_noise_entry(target):
            entries[start + target.size - 1] = "noise", label
        start += target.size
    check_number_of_panels(len({label for _, label in entries.values()}), _FEWER)
    return entries


def has_noise_entry(target):
    """Whether a target has an entry for noise, which is its last one."""
    return target.block == "intercept" and target.posterior.structure.has_noise_component


def row_and_column(target, feature, names):
    """The numbers of an entry's two features, in the order of the upper triangle."""
    if not is_list(feature):
        return [checked_feature("feature", feature, names)] * 2
    if target.n_feature_axes < 2:
        raise ValueError(f"feature must be one feature for target={target.name!r}, got {feature!r}.")
    pair = [_feature(v, names) for v in feature]
    if len(pair) != 2 or None in pair:
        raise ValueError(f"feature must be {_one_of(names)}, or a pair of such, got {feature!r}.")
    return sorted(pair)


def all_entries(target, n_features):
    """Rows and columns of all entries of a component that the target has: list of pairs."""
    if target.n_feature_axes == 2 and not (target.has_diagonal and target.on_diagonal().all()):
        return list(zip(*np.triu_indices(n_features, int(not target.has_diagonal)), strict=True))
    return [(p, p) for p in range(n_features if target.n_feature_axes else 1)]


def _is_index(value, size):
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 <= value < size


def _feature(value, names):
    """The number of a feature, or None where there is no such feature."""
    if isinstance(value, str):
        return names.index(value) if value in names else None
    return int(value) if _is_index(value, len(names)) else None


def _one_of(names):
    """What stands for a feature, in words."""
    named = ", ".join(names) if len(names) <= 6 else f"{names[0]}, {names[1]} to {names[-1]}"
    return f"an integer from 0 to {len(names) - 1} or a name ({named})"
