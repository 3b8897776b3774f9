"""Every target over the catalogue: its derivative, its forms and labels; and targets that are new."""

import inspect
import re

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    MOST_MODELS,
    dense,
    fitted,
    information_of,
    mixture,
    model_id,
    overlapping,
    posterior_of,
    set_sizes,
    targets_of,
    type_of,
    uncertainty_of,
    values_of,
)

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.answers.targets import (
    Target,
    WeightTarget,
    covariance,
    joint_coordinates,
    target_class,
    variance,
)
from sklearn_lrvb.displays import InfluenceDisplay, PosteriorIntervalDisplay, PosteriorStdDisplay
from sklearn_lrvb.displays.selection import parameter_entry
from sklearn_lrvb.estimators.posterior import Posterior
from sklearn_lrvb.gaussian.answers.targets import (
    PARAMETERS,
    TARGETS,
    GaussianTarget,
    GaussianTargets,
)
from sklearn_lrvb.gaussian.information.observed_information import GaussianInformation
from sklearn_lrvb.gaussian.posterior.learned_prior import LearnedInformation

catalogue = pytest.mark.parametrize("model", MOST_MODELS, ids=model_id)
some_models = pytest.mark.parametrize("model", MODELS[::7], ids=model_id)
X = overlapping()
NAMES = ["x0", "x1"]
LABEL = re.compile(r"(\w+)\[(.*)\]")


class LogDeterminants(GaussianTarget):
    """log|(E Lambda)^-1| of the precision groups, (S,)."""

    name = "log_determinants"
    entry_name = "log_determinant"
    block = "quadratic"

    def __init__(self, posterior, origin):
        super().__init__(posterior, origin)
        self.n_entries = 1

    def value(self):
        return self.posterior.structure.log_determinants(self.posterior.covariance_cholesky)

    def response(self, coefficients, units=slice(None)):
        structure = self.posterior.structure
        axes = tuple(range(-structure.identity.ndim, 0))
        changes = structure.features.own_precision_response(coefficients) * structure.identity
        return -structure.power * changes.sum(axis=axes)


class LogOdds(WeightTarget):
    """log(pi/(1 - pi)) at E pi."""

    name = "log_odds"
    entry_name = "log_odds"

    @property
    def _per_weight(self):
        weights = self.posterior.prior.weights.mean(self.posterior.label_counts)
        return 1.0 / (weights * (1.0 - weights))

    def value(self):
        weights = self.posterior.prior.weights.mean(self.posterior.label_counts)
        return np.log(weights / (1.0 - weights))

    @property
    def count_jacobian(self):
        return self._per_weight[:, None] * self.posterior.prior.weights.mean_jacobian(
            self.posterior.label_counts
        )

    def concentration_sensitivity(self):
        return self._per_weight * self.posterior.prior.weights.mean_sensitivity(self.posterior.label_counts)


NEW = (LogDeterminants, LogOdds)


def at_fit(estimator, with_new=True):
    """Every target of a fit, the new ones included, and the posterior."""
    found = uncertainty_of(estimator).targets
    made = [found[name] for name in found.names]
    made += [own(found.posterior, found.origin) for own in NEW if with_new]
    return made, found.posterior


def covariance_of_coefficients(information):
    root = information.covariance_root(np.arange(len(information)))
    return root.T @ root


def jacobian(target):
    """J as a matrix, (d, D)."""
    return target.responses(np.eye(target.posterior.structure.layout.n_coefficients)).T


# Derivatives.


@catalogue
def test_response_is_the_derivative_of_the_value(model):
    made, posterior = at_fit(fitted(model))
    complete = covariance_of_coefficients(GaussianInformation(posterior).complete)
    h = 1e-4
    for statistics in np.random.default_rng(0).normal(size=(3, len(complete))):
        coefficients = complete @ statistics
        if posterior.structure.parts.learns_mean_precision:  # A function of the state: it follows the others.
            learned, b0 = LearnedInformation(posterior), posterior.coefficient_blocks["mean_precision"]
            coefficients[b0] = learned.source @ coefficients / learned.of_mean_precision
            statistics = np.linalg.solve(complete, coefficients)
        more, less = (posterior.after_step(sign * h * statistics) for sign in (1, -1))
        for target in made:
            if target.block == "mean_precision":  # A posterior holds the optimal one, wherever it moves.
                continue
            ends = [type(target)(moved, target.origin).flat_value() for moved in (more, less)]
            expected = (ends[0] - ends[1]) / (2 * h)
            np.testing.assert_allclose(
                target.responses(coefficients[None])[0],
                expected,
                atol=1e-6 * np.abs(expected).max(),
                err_msg=target.name,
            )


@catalogue
def test_transposed_responses_are_the_transpose(model, monkeypatch):
    made, _ = at_fit(fitted(model))
    rng = np.random.default_rng(1)
    for sizes in ({}, {"jacobian_size": 1}):
        set_sizes(monkeypatch, **sizes)
        for target in made:
            combinations = rng.normal(size=(4, target.size))
            expected = jacobian(target).T @ combinations.T
            found = target.transposed_responses(combinations)
            np.testing.assert_allclose(found, expected, atol=1e-13 * np.abs(expected).max())
            # combinations that leave units out take a shorter way
            combinations[:, target.size // 2 :] = 0.0
            found = target.transposed_responses(combinations)
            np.testing.assert_allclose(found, jacobian(target).T @ combinations.T, atol=1e-13)


@catalogue
def test_responses_of_some_units_are_those_of_all(model):
    made, posterior = at_fit(fitted(model))
    rows = np.random.default_rng(2).normal(size=(3, posterior.structure.layout.n_coefficients))
    for target in made:
        parts = [
            target.unit_responses(rows[:, target.coordinates(units)], units)
            for units in target.unit_batches(1)
        ]
        np.testing.assert_allclose(np.hstack(parts), target.responses(rows), rtol=1e-13, err_msg=target.name)
        assert len(parts) == (1 if target.couples_units else target.n_units)


# Covariances.


@catalogue
def test_covariance_is_that_of_the_jacobian_plus_the_excess(model):
    estimator = fitted(model)
    made, posterior = at_fit(estimator)
    information = information_of(estimator)
    order = [*np.random.default_rng(3).permutation(len(made)), 1]  # one of them twice
    chosen = [made[i] for i in order]
    stacked = np.concatenate([jacobian(target) for target in chosen])
    expected = stacked @ covariance_of_coefficients(information) @ stacked.T
    stops = np.cumsum([0, *(target.size for target in chosen)])
    for i, first in enumerate(chosen):
        for j, second in enumerate(chosen):
            excess = first.excess_with(second)
            if np.any(excess):
                assert first.block == second.block
                assert first.block != "quadratic" or first.name == second.name == "covariance_prior"
                expected[stops[i] : stops[i + 1], stops[j] : stops[j + 1]] += excess
    found = covariance(chosen, joint_coordinates(chosen), information)
    sd = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(found / np.outer(sd, sd), expected / np.outer(sd, sd), atol=1e-10)
    np.testing.assert_array_equal(found, found.T)
    assert posterior.prior.independent == (not np.any(made[1].excess_with(made[1])))


@catalogue
def test_variance_is_the_diagonal_of_the_covariance_in_batches_too(model, monkeypatch):
    estimator = fitted(model)
    information = information_of(estimator)
    set_sizes(monkeypatch, batch_bytes=5_000)  # some 30 rows
    for sizes in ({}, {"coordinates_at_once": 1}):
        set_sizes(monkeypatch, **sizes)
        for target in at_fit(estimator)[0]:
            expected = np.diag(covariance([target], joint_coordinates([target]), information))
            np.testing.assert_allclose(variance(target, information), expected, rtol=1e-12)


@catalogue
def test_mean_field_covariance_of_weights_is_qs_own_by_the_delta_method(model):
    made, posterior = at_fit(fitted(model))
    of_weights = [target for target in made if isinstance(target, WeightTarget)]
    assert [target.name for target in of_weights] == ["log_weights", "weights", "log_odds"]
    jacobians = np.concatenate([target.log_weight_jacobian for target in of_weights])
    expected = jacobians @ posterior.log_weight_covariance @ jacobians.T
    mean_field = GaussianInformation(posterior).mean_field
    found = covariance(of_weights, joint_coordinates(of_weights), mean_field)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    for target in of_weights:
        through_logs = target.log_weight_jacobian @ posterior.log_weight_covariance
        scale = np.abs(target.count_jacobian).max()
        np.testing.assert_allclose(through_logs, target.count_jacobian, atol=1e-9 * scale)


# Forms and labels.


@catalogue
def test_flat_and_shaped_are_inverses(model):
    estimator = fitted(model)
    rng = np.random.default_rng(4)
    for target in at_fit(estimator)[0]:
        value = target.value()
        assert target.flat(value).shape == (target.size,) == target.flat_value().shape
        np.testing.assert_array_equal(target.shaped(target.flat(value)), value)
        np.testing.assert_array_equal(target.flat_value()[target.flat_indices()], value)
        several = rng.normal(size=(2, 3, target.size))
        shaped = target.shaped(several)
        assert shaped.shape == (2, 3, *value.shape)
        np.testing.assert_array_equal(target.flat(shaped[1, 2]), several[1, 2])
    for name in targets_of(estimator):
        value = uncertainty_of(estimator).targets[name].value()
        np.testing.assert_array_equal(value, values_of(estimator, name))


def label_number(name):
    """Place of a component's weight, or of the weight of noise, by its name."""
    return -1 if name == "noise" else int(name)


def entry_named(model, attribute, label):
    """What a label says, found in the attribute by its component and features."""
    if attribute.ndim == 0:  # Degrees of freedom that all components share.
        return attribute
    parts = LABEL.fullmatch(label).group(2).split(",")
    if label.startswith(("sd", "correlation")):
        is_shared = type_of(model).is_shared
        own = attribute if is_shared else attribute[int(parts[0])]
        is_one = label.startswith("correlation") or own.ndim == 0
        return own.ravel()[0] if is_one else own[NAMES.index(parts[-1])]
    component = int(parts[0]) if parts[0].isdigit() else 0
    features = [NAMES.index(part) for part in parts if not part.isdigit()]
    if label.startswith(("tail", "log_tail")):
        return attribute[component]
    if attribute.ndim > 1 and attribute.shape == (2, 2) and len(features) == 1:
        return attribute[component, features[0]]
    matrices = dense(model, attribute)
    row, column = features if len(features) == 2 else 2 * (features or [0])
    return matrices[component, row, column]


def of_components(estimator):
    """The targets of a fit that are not learned hyperparameters."""
    return [target for target in at_fit(estimator, with_new=False)[0] if not target.name.endswith("_prior")]


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_learned_hyperparameters_have_the_labels_and_counts_of_none(covariance_type):
    made, posterior = at_fit(fitted({"covariance_type": covariance_type}), with_new=False)
    for target in made[-2:]:
        values, labels = target.flat_value(), target.labels(NAMES)
        assert {label.partition("[")[0] for label in labels} == {target.name}
        assert len(set(labels)) == len(values) == target.size
        np.testing.assert_allclose(target.counts(), posterior.counts.sum(), rtol=1e-15)
        for label, value, is_variance in zip(labels, values, target.on_diagonal(), strict=True):
            named = [NAMES.index(part) for part in label.partition("[")[2].rstrip("]").split(",") if part]
            place = 2 * tuple(named) if np.ndim(target.value()) == 2 and len(named) == 1 else tuple(named)
            assert np.asarray(target.value())[place] == value
            assert is_variance == (len(set(named)) <= 1)
            row, column = (2 * named)[:2] or (0, 0)
            assert labels[target.flat_index(0, row, column)] == label


@catalogue
def test_labels_say_where_entries_are(model):
    for target in of_components(fitted(model)):
        labels = target.labels(NAMES)
        assert len(set(labels)) == len(labels) == target.size
        expected = "sd" if target.name == "standard_deviations" else target.name[:-1]
        assert {LABEL.fullmatch(label).group(1) for label in labels} == {expected}
        for label, value in zip(labels, target.flat_value(), strict=True):
            if isinstance(target, WeightTarget):
                assert target.value()[label_number(LABEL.fullmatch(label).group(2))] == value
            else:
                assert entry_named(model, target.value(), label) == value


@catalogue
def test_entries_are_found_by_component_and_features(model):
    has_pairs = type_of(model).is_matrix
    for target in of_components(fitted(model)):
        labels = target.labels(NAMES)
        found = set()
        for component in range(2):
            pairs = [(0, 0), (1, 1), (0, 1)][: 3 if has_pairs else 2]
            for row, column in pairs if target.has_diagonal else pairs[2:]:
                label = labels[target.flat_index(component, row, column)]
                found.add(label)
                subscripts = LABEL.fullmatch(label).group(2).split(",")
                named = [part for part in subscripts if part in NAMES]
                assert named in ([], [NAMES[row]], [NAMES[row], NAMES[column]])
                is_shared = type_of(model).is_shared or "all" in subscripts
                assert (str(component) in subscripts) or is_shared
        assert found == {label for label in labels if "noise" not in label}
        if not target.has_diagonal:
            with pytest.raises(ValueError, match="target='correlations' has no entries on the diagonal"):
                target.flat_index(0, 1, 1)
        if target.n_feature_axes == 2 and not has_pairs:
            with pytest.raises(ValueError, match=f"target='{target.name}' has no entries off the diagonal"):
                target.flat_index(0, 0, 1)


@catalogue
def test_entries_on_a_diagonal_are_of_one_feature(model):
    for target in of_components(fitted(model)):
        subscripts = [LABEL.fullmatch(label).group(2).split(",") for label in target.labels(NAMES)]
        features = [[part for part in parts if part in NAMES] for parts in subscripts]
        expected = [len(set(own)) <= 1 for own in features]
        np.testing.assert_array_equal(target.on_diagonal(), expected)


@catalogue
def test_counts_are_those_of_the_components_in_the_labels(model):
    estimator = fitted(model)
    posterior = posterior_of(estimator)
    for target in of_components(estimator):
        first = [LABEL.fullmatch(label).group(2).split(",")[0] for label in target.labels(NAMES)]
        counts = {"noise": posterior.label_counts[-1]} | {str(k): n for k, n in enumerate(posterior.counts)}
        expected = [counts.get(part, posterior.counts.sum()) for part in first]
        np.testing.assert_allclose(target.counts(), expected, rtol=1e-15)


# The table.


@catalogue
def test_a_direction_is_named_by_the_coefficients_that_it_changes(model):
    targets = uncertainty_of(fitted(model)).targets
    posterior = targets.posterior
    for target in targets.theta:
        for unit in range(min(target.n_units, posterior.n_components)):
            direction = np.zeros(posterior.n_coefficients)
            direction[target.coordinates(slice(unit, unit + 1))] = 1.0
            name, shares = targets.parts_of_direction(direction)
            assert name == target.name
            assert shares.shape == (posterior.n_components,)
            if target.n_units > 1:
                assert np.flatnonzero(shares).tolist() == [unit]


@catalogue
def test_theta_has_one_order(model):
    estimator = fitted(model)
    theta = uncertainty_of(estimator).targets.theta
    names = [target.name for target in theta]
    assert tuple(names) == PARAMETERS + ("log_tails",) * ("log_tails" in targets_of(estimator))
    coordinates = np.concatenate([target.coordinates() for target in theta])
    layout = posterior_of(estimator).structure.layout
    all_coordinates, blocks = np.arange(layout.n_coefficients), layout.blocks
    others = [*all_coordinates[blocks["scale"]], *all_coordinates[blocks["mean_precision"]]]
    # Coefficients of scales belong to no parameter, and that of a learned b0 to the weights.
    expected = np.insert(
        np.delete(all_coordinates, others), layout.n_labels, all_coordinates[blocks["mean_precision"]]
    )
    np.testing.assert_array_equal(coordinates, expected)
    labels = [label for target in theta for label in target.labels(NAMES)]
    np.testing.assert_array_equal(estimator.posterior_names_, labels)
    means = np.concatenate([target.flat_value() for target in theta])
    np.testing.assert_array_equal(estimator.posterior_mean_, means)
    np.testing.assert_array_equal(estimator.posterior(method="lrvb").summary("all").index, labels)
    stops = np.cumsum([0, *(target.size for target in theta)])
    for name, start, stop in zip(names, stops, stops[1:], strict=False):
        own = estimator.posterior(method="lrvb").covariance(name)
        joint = estimator.posterior_covariance_[start:stop, start:stop]
        np.testing.assert_allclose(joint, own, rtol=1e-9, atol=1e-12 * np.abs(own).max())
        np.testing.assert_allclose(estimator.posterior_std_[start:stop] ** 2, np.diag(own), rtol=1e-9)


@pytest.mark.parametrize(
    "function",
    [
        LRVBGaussianMixture.missing_information,
        LRVBGaussianMixture.influence,
        LRVBGaussianMixture.prior_sensitivity,
        InfluenceDisplay.from_estimator,
        PosteriorIntervalDisplay.from_estimator,
        PosteriorStdDisplay.from_estimator,
    ],
    ids=lambda function: function.__qualname__,
)
def test_docstrings_list_all_targets(function):
    listed = re.search(r"(?s)^target : \{(.*?)\}", inspect.getdoc(function), re.M)[1]
    # Latent classes have the docstrings of some, and 'tables' in place of means.
    assert set(re.findall(r"'(\w+)'", listed)) - {"all", "tables"} == set(TARGETS)


def test_the_notes_of_the_posterior_list_all_targets():
    listed = re.search(r"(?s)A `target` is one of (.*?);", inspect.getdoc(Posterior))[1]
    assert set(re.findall(r"'(\w+)'", listed)) == {*TARGETS, "tables"}


@pytest.mark.parametrize("name", ["mean", "", None, 3, ("means",), "Means"])
def test_an_unknown_target_is_refused_everywhere(name):
    estimator = fitted(MODELS[0])
    asked = [
        lambda: target_class(TARGETS, name),
        lambda: uncertainty_of(estimator).targets[name],
        lambda: estimator.influence(X, target=name),
        lambda: estimator.prior_sensitivity(name),
        lambda: estimator.posterior(method="lrvb").covariance([name]),
        lambda: estimator.posterior(method="lrvb").summary([name]),
        lambda: parameter_entry(estimator, name, 0, 0),
        lambda: InfluenceDisplay.from_estimator(estimator, X, target=name),
        lambda: PosteriorStdDisplay.from_estimator(estimator, target=[name]),
    ]
    known = ", ".join(TARGETS)
    for ask in asked:
        with pytest.raises(ValueError, match=re.escape(f"target must be one of {known}")) as error:
            ask()
        assert repr(name) in str(error.value)


def test_targets_of_one_posterior_are_its_own():
    one, other = (uncertainty_of(fitted(model)).targets for model in MODELS[:2])
    assert one["weights"] is one["weights"]
    assert one["weights"] is not other["weights"]
    rebuilt = GaussianTargets(one.posterior, one.origin)
    np.testing.assert_array_equal(rebuilt["means"].value(), one["means"].value())


# Functions of the covariances, by hand.


def fresh(model):
    return mixture(model).fit(X)


def deviations_by_hand(model, estimator):
    """Standard deviations in the target's order, and what they are the roots of: name, flat entries."""
    squares = "covariances"
    on_diagonal = uncertainty_of(estimator).targets[squares].on_diagonal()
    flat = uncertainty_of(estimator).targets[squares].flat_value()
    return np.sqrt(flat[on_diagonal]), squares, on_diagonal


@some_models
@pytest.mark.parametrize("method", ["lrvb", "mean_field", "sandwich"])
def test_standard_deviations_have_the_covariance_of_the_delta_method(model, method):
    estimator = fresh(model)
    deviations, squares, on_diagonal = deviations_by_hand(model, estimator)
    joint = estimator.posterior(X, method=method).covariance([squares, "means"])
    found = estimator.posterior(X, method=method).covariance(["standard_deviations", "means"])
    kept = np.concatenate([on_diagonal, np.ones(4, dtype=bool)])
    scale = np.concatenate([1.0 / (2.0 * deviations), np.ones(4)])
    expected = joint[np.ix_(kept, kept)] * np.outer(scale, scale)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    std = uncertainty_of(estimator).std("standard_deviations")
    lrvb = estimator.posterior(method="lrvb").covariance("standard_deviations")
    np.testing.assert_allclose(std.ravel() ** 2, np.diag(lrvb), rtol=1e-9)


@some_models
@pytest.mark.parametrize("perturb", ["location", "weight"])
def test_standard_deviations_have_influence(model, perturb):
    estimator = fresh(model)
    deviations, squares, on_diagonal = deviations_by_hand(model, estimator)
    found = estimator.influence(X[:9], target="standard_deviations", perturb=perturb)
    of_covariances = estimator.influence(X[:9], target=squares, perturb=perturb)
    target, covariances = (uncertainty_of(estimator).targets[n] for n in ("standard_deviations", squares))
    expected = np.empty((9, target.size, *found.shape[1 + target.value().ndim :]))
    places = [np.argwhere(covariances.flat_indices() == i)[0] for i in np.flatnonzero(on_diagonal)]
    for i, (place, deviation) in enumerate(zip(places, deviations, strict=True)):
        expected[:, i] = of_covariances[:, *place] / (2.0 * deviation)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-11)


@pytest.mark.parametrize("model", [model for model in MODELS[::5] if model["prior"] != "flat"])
def test_standard_deviations_have_prior_sensitivity_and_a_summary(model):
    estimator = fresh(model)
    deviations, squares, on_diagonal = deviations_by_hand(model, estimator)
    found = estimator.prior_sensitivity("standard_deviations")
    of_covariances = estimator.prior_sensitivity(squares)
    for name in ("weight_concentration_prior", "mean_precision_prior", "degrees_of_freedom_prior"):
        flat = uncertainty_of(estimator).targets[squares].flat(of_covariances[name])
        expected = flat[on_diagonal] / (2.0 * deviations)
        np.testing.assert_allclose(found[name].ravel(), expected, atol=1e-13, err_msg=name)

    summary = estimator.posterior(method="lrvb").summary(["means", "standard_deviations"])
    own = summary[summary.index.str.startswith("sd[")]
    assert len(own) == len(deviations)
    variances = estimator.posterior(method="lrvb").summary(squares)[on_diagonal]
    np.testing.assert_array_equal(own[["lower", "upper"]], np.sqrt(variances[["lower", "upper"]]))
    assert np.all((own["lower"] < own["mean"]) & (own["mean"] < own["upper"]))
    assert summary.attrs["prior"].startswith("The prior ")


def test_standard_deviations_are_displayed():
    estimator = fresh({"covariance_type": "full"})
    index, name = parameter_entry(estimator, "standard_deviations", 1, 0)
    assert (index, name) == ((1, 0), "sd[1,x0]")
    display = InfluenceDisplay.from_estimator(estimator, X, target="standard_deviations", component=1)
    np.testing.assert_allclose(
        display.influence, estimator.influence(X, target="standard_deviations")[:, 1, 0, 0], atol=1e-12
    )
    shown = PosteriorStdDisplay.from_estimator(estimator, target="standard_deviations")
    assert shown.targets.tolist() == 4 * ["standard_deviations"]
    with pytest.raises(ValueError, match="feature must be one feature for target='standard_deviations'"):
        parameter_entry(estimator, "standard_deviations", 1, (0, 1))


def test_a_target_has_to_say_what_it_is():
    class Nothing(Target):
        pass

    class WithoutJacobian(WeightTarget):
        value = concentration_sensitivity = None

    for unfinished, missing in ((Nothing, "response"), (WithoutJacobian, "count_jacobian")):
        with pytest.raises(TypeError, match=f"abstract.*{missing}"):
            unfinished(None, None)
