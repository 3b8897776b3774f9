"""Sensitivity to the prior against refits, closed forms of one component, and the sum rules it completes."""

import functools

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    INFORMATION,
    MODELS,
    TARGETS,
    WEIGHT_PRIORS,
    deviations_of,
    few_of,
    mixture,
    model_id,
    models_in_turn,
    n_labels,
    overlapping,
    set_sizes,
    targets_of,
    three_blobs,
    type_of,
    types_in_turn,
    uncertainty_of,
    use_information,
    values_of,
)
from sklearn.exceptions import NotFittedError

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.answers.prior_sensitivity import prior_changes, prior_reading
from sklearn_lrvb.gaussian.answers.prior_sensitivity import DIRECTIONS
from sklearn_lrvb.gaussian.answers.targets import PARAMETERS

CONJUGATE = [model for model in few_of(MODELS) if model["prior"] == "fixed"]
catalogue = pytest.mark.parametrize("model", CONJUGATE, ids=model_id)
every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
every_weight_prior = pytest.mark.parametrize("weights", WEIGHT_PRIORS)
X = overlapping()
SCALARS = ("weight_concentration_prior", "mean_precision_prior", "degrees_of_freedom_prior")
HYPERPARAMETERS = (*SCALARS, "mean_prior", "covariance_prior")
SCALE = np.array([[1.0, 0.2, 0.1], [0.2, 0.6, 0.0], [0.1, 0.0, 0.8]])


def with_prior(model, n_features=2, **changed):
    """The model with every hyperparameter given: none moves with the data."""
    return {
        **model,
        "weight_concentration_prior": 0.7,
        "mean_precision_prior": 0.5,
        "mean_prior": np.array([0.6, -0.4, 0.3])[:n_features],
        "degrees_of_freedom_prior": 4.5,
        "covariance_prior": type_of(model).prior(SCALE[:n_features, :n_features]),
        **changed,
    }


@functools.cache
def _given(items):
    return mixture(with_prior(dict(items))).fit(X)


def given(model):
    """`with_prior` fitted to X; shared between tests, so not to be changed."""
    return _given(tuple(model.items()))


def directions(model):
    """(hyperparameter, unit change) for every one of them."""
    shape = np.shape(model["covariance_prior"])
    n_features = len(model["mean_prior"])
    entries = [np.array(1.0)] if shape == () else np.eye(n_features)
    if len(shape) == 2:
        row, column = np.triu_indices(n_features)
        entries = np.zeros((len(row), *shape))
        entries[np.arange(len(row)), row, column] = entries[np.arange(len(row)), column, row] = 1.0
    scalars = [(name, np.array(1.0)) for name in SCALARS]
    means = [("mean_prior", unit) for unit in np.eye(n_features)]
    return scalars + means + [("covariance_prior", entry) for entry in entries]


def along(gradient, change):
    """Sum of gradient times change over the hyperparameter's axes."""
    return (gradient * change).sum(axis=tuple(range(gradient.ndim - change.ndim, gradient.ndim)))


def assert_derivative_of_refits(model, names, rows, n_components=2, sample_weight=None, step=1e-3):
    """To 1e-5 standard deviations a unit of the named hyperparameters (they are all of order one)."""

    def refit(**changed):
        return mixture({**model, **changed}, n_components).fit(rows, sample_weight=sample_weight)

    estimator = refit()
    model = {**model, "init_params": estimator.predict_proba(rows)}  # the same optimum, soon
    sensitivity = {target: estimator.prior_sensitivity(target) for target in targets_of(estimator)}
    for name, change in directions(model):
        if name not in names:
            continue
        more, less = (refit(**{name: model[name] + sign * step * change}) for sign in (1, -1))
        for target, gradients in sensitivity.items():
            expected = (values_of(more, target) - values_of(less, target)) / (2 * step)
            error = np.abs(along(gradients[name], change) - expected)
            np.testing.assert_array_less(
                error, 1e-5 * deviations_of(estimator, target), err_msg=f"{target}, {name}"
            )


@pytest.mark.all_cases
@models_in_turn(CONJUGATE, "name", HYPERPARAMETERS)
def test_sensitivity_is_the_derivative_of_a_refit(model, name):
    assert_derivative_of_refits(with_prior(model), [name], X)


@pytest.mark.slow
@pytest.mark.parametrize(("covariance_type", "weights"), types_in_turn(WEIGHT_PRIORS))
def test_sensitivity_of_three_components_in_three_features(covariance_type, weights):
    model = {"covariance_type": covariance_type, "weight_concentration_prior_type": weights}
    model = with_prior({**model, "reg_covar": 0.02}, 3)
    assert_derivative_of_refits(model, HYPERPARAMETERS, three_blobs(150), 3)


@pytest.mark.slow
@every_type
def test_sensitivity_of_a_fit_with_sample_weights(covariance_type):
    model = with_prior({"covariance_type": covariance_type, "reg_covar": 0.02})
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.5], size=len(X))
    assert_derivative_of_refits(model, HYPERPARAMETERS, X, sample_weight=weights)


@every_type
@every_weight_prior
def test_closed_forms_of_one_component(covariance_type, weights):
    model = {"covariance_type": covariance_type, "weight_concentration_prior_type": weights, "reg_covar": 0.0}
    model = with_prior(model)
    estimator = mixture(model, 1).fit(X)
    tau, mean = estimator.mean_precision_[0], estimator.means_[0]
    of_means = estimator.prior_sensitivity("means")
    np.testing.assert_allclose(of_means["mean_prior"][0], 0.5 / tau * np.eye(2), atol=1e-15)
    np.testing.assert_allclose(of_means["mean_precision_prior"][0], (model["mean_prior"] - mean) / tau)
    for name in ("weight_concentration_prior", "degrees_of_freedom_prior", "covariance_prior"):
        np.testing.assert_allclose(of_means[name], 0, atol=1e-15)

    of_covariances = estimator.prior_sensitivity("covariances")
    information = 4.5 + len(X) * type_of(model).power(2)
    change = type_of(model).prior(np.array([[0.3, 0.1], [0.1, -0.2]]))
    covariances = estimator.covariances_
    np.testing.assert_allclose(
        of_covariances["degrees_of_freedom_prior"], -covariances / information, rtol=1e-12, atol=1e-16
    )
    moved = along(of_covariances["covariance_prior"], change)
    moved = moved if type_of(model).is_shared else moved[0]
    np.testing.assert_allclose(moved, change / information, rtol=1e-12)

    for name, gradient in estimator.prior_sensitivity("weights", per_std=True).items():
        np.testing.assert_array_equal(gradient, 0, err_msg=name)  # not 0 / 0
    for name, gradient in estimator.prior_sensitivity("log_weights", per_std=True).items():
        np.testing.assert_array_equal(gradient, 0, err_msg=name)


@catalogue
def test_shapes_and_units(model):
    estimator = given(model)
    shapes = dict.fromkeys(SCALARS, ()) | {"mean_prior": (2,)}
    shapes["covariance_prior"] = np.shape(estimator.covariance_prior_)
    for target in targets_of(estimator):
        shape = np.shape(values_of(estimator, target))
        sensitivity = estimator.prior_sensitivity(target)
        per_std = estimator.prior_sensitivity(target, per_std=True)
        assert sensitivity.keys() == per_std.keys() == shapes.keys()
        for name, gradient in sensitivity.items():
            assert gradient.shape == shape + shapes[name]
            sds = np.reshape(deviations_of(estimator, target), (*shape, *[1] * len(shapes[name])))
            np.testing.assert_allclose(per_std[name] * sds, gradient, rtol=1e-14)
            if target == "weights":
                np.testing.assert_allclose(gradient.sum(axis=0), 0, atol=1e-15)
        if len(shapes["covariance_prior"]) == 2:
            gradient = sensitivity["covariance_prior"]
            np.testing.assert_array_equal(gradient, gradient.swapaxes(-1, -2))
            if target in ("precisions", "covariances", "scales"):
                for gradient in sensitivity.values():
                    axis = len(shape) - 2
                    np.testing.assert_array_equal(gradient, gradient.swapaxes(axis, axis + 1))


@catalogue
def test_shifting_rows_and_prior_shifts_the_means_and_nothing_else(model):
    estimator = given(model)
    for target in targets_of(estimator):
        rows, prior = estimator.influence(X, target=target), estimator.prior_sensitivity(target)["mean_prior"]
        expected = np.eye(2) if target == "means" else 0.0
        scale = np.abs(rows).sum(axis=0).max()
        assert np.abs(prior).max() > 1e-5 * scale
        np.testing.assert_allclose(
            rows.sum(axis=0) + prior, np.broadcast_to(expected, prior.shape), atol=1e-9 * scale
        )


@pytest.mark.parametrize("model", [model for model in CONJUGATE if not model["reg_covar"]], ids=model_id)
def test_eulers_identities_of_scaling(model):
    of_noise = derivative_in_log_density(model) if model.get("noise") else dict.fromkeys(TARGETS, 0.0)
    estimator, model = given(model), with_prior(model)
    degrees = {"log_weights": 0, "weights": 0, "means": 1, "precisions": -2, "covariances": 2}
    for target, degree in degrees.items():
        sensitivity = estimator.prior_sensitivity(target)
        rows = np.einsum("n...p,np->...", estimator.influence(X, target=target), X)
        mean = along(sensitivity["mean_prior"], model["mean_prior"])
        covariance = along(sensitivity["covariance_prior"], np.asarray(model["covariance_prior"]))
        expected = degree * values_of(estimator, target)
        found = rows + mean + 2 * covariance - 2 * of_noise[target]
        np.testing.assert_allclose(found, expected, atol=2e-6 if model.get("noise") else 1e-8)


def derivative_in_log_density(model, step=1e-4):
    """d E[target] / d log density of noise, by refits, by target."""
    start, log_density = given(model).predict_proba(X), given(model).noise_log_density_
    nearby = with_prior(model, init_params=start)
    ends = [mixture({**nearby, "noise": log_density + h}).fit(X) for h in (step, -step)]
    more, less = ({target: values_of(end, target) for target in TARGETS} for end in ends)
    return {target: (more[target] - less[target]) / (2 * step) for target in TARGETS}


def moves_of(estimator, names):
    """The moves by which the prior is read, over standard deviations by linear response: (m, d)."""
    uncertainty = uncertainty_of(estimator)
    return prior_changes(uncertainty, names, np.concatenate([uncertainty.flat_std(name) for name in names]))


def reading_of(estimator, names=PARAMETERS):
    uncertainty = uncertainty_of(estimator)
    stds = np.concatenate([uncertainty.flat_std(name) for name in names])
    return prior_reading(uncertainty, ["x0", "x1"], names, stds)


@pytest.mark.slow
@pytest.mark.parametrize("information", INFORMATION)
def test_every_solver_gives_the_same_in_batches_too(information, monkeypatch):
    expected = given(CONJUGATE[1])
    use_information(information, monkeypatch)
    estimator = mixture(with_prior(CONJUGATE[1])).fit(X)
    moves = moves_of(expected, targets_of(expected))
    for sizes in ({}, {"batch_bytes": 1}):
        set_sizes(monkeypatch, **sizes)
        for target in targets_of(estimator):
            sensitivity = estimator.prior_sensitivity(target)
            for name, gradient in expected.prior_sensitivity(target).items():
                np.testing.assert_allclose(
                    sensitivity[name], gradient, atol=1e-7 * np.abs(gradient).max(), err_msg=name
                )
        found = moves_of(estimator, targets_of(estimator))
        np.testing.assert_allclose(found, moves, rtol=1e-6, atol=1e-9)


# The reading.


@catalogue
def test_moves_of_the_reading_are_those_of_the_gradients(model):
    # sources solved for, against rows of J M^-1 through the transposed sources
    estimator, model = given(model), with_prior(model)
    prior_covariance = np.asarray(model["covariance_prior"]) / 4.5
    if prior_covariance.ndim < 2:
        prior_covariance = prior_covariance * np.eye(2)
    expected = []
    for target in targets_of(estimator):
        gradients = estimator.prior_sensitivity(target, per_std=True)
        moves = {name: np.log(2) * np.abs(gradients[name] * model[name]) for name in SCALARS}
        covariance = along(gradients["covariance_prior"], np.asarray(model["covariance_prior"]))
        moves["covariance_prior"] = np.log(2) * np.abs(covariance)
        moved = gradients["mean_prior"]
        moves["mean_prior"] = np.sqrt(np.einsum("...p,pq,...q->...", moved, prior_covariance, moved))
        flat = uncertainty_of(estimator).targets[target].flat
        expected.append(np.stack([flat(moves[name]) for name in DIRECTIONS]))
    expected = np.hstack(expected)
    moves = moves_of(estimator, targets_of(estimator))
    np.testing.assert_allclose(moves, expected, rtol=1e-8, atol=1e-10)

    assert tuple(targets_of(estimator))[:3] == PARAMETERS
    flat_targets = [uncertainty_of(estimator).targets[name] for name in PARAMETERS]
    own = expected[:, : sum(target.size for target in flat_targets)]
    if model.get("noise") and estimator.predict_proba(X)[:, -1].sum() < 0.5:
        own[:, n_labels(model) - 1] = 0.0  # the rows do not inform it
    direction, entry = np.unravel_index(own.argmax(), own.shape)
    reading = reading_of(estimator)
    assert f": with {DIRECTIONS[direction]} " in reading
    moved = f", {estimator.posterior_names_[entry]} would move by about {own.max():.2g} sd, "
    assert moved in reading


def reading_under(n_samples, **prior):
    estimator = LRVBGaussianMixture(n_components=2, random_state=0, **prior).fit(overlapping(n_samples))
    return reading_of(estimator)


def test_readings_of_weak_and_strong_priors():
    weak = {
        "degrees_of_freedom_prior": 2.0,
        "covariance_prior": 0.5 * np.eye(2),
        "mean_precision_prior": 0.01,
    }
    assert reading_under(20_000, **weak).startswith("The prior hardly matters: ")
    assert reading_under(2_000).startswith("The prior matters somewhat: ")
    strong = reading_under(240, degrees_of_freedom_prior=300.0, mean_precision_prior=50.0)
    assert strong.startswith("The prior matters: ")
    assert reading_under(240, prior="flat") == "The prior is flat: there is nothing to choose."


def test_a_reading_leaves_out_what_has_no_deviation():
    # one component: its log weight under a Dirichlet prior is 0, and known to be
    estimator = mixture(with_prior(CONJUGATE[1]), 1).fit(X)
    assert estimator.posterior_std_[0] == 0
    moves = moves_of(estimator, ("log_weights", "means"))
    np.testing.assert_array_equal(moves[:, 0], 0)
    assert moves[:, 1:].max() > 0
    only = reading_of(estimator, ("means",))
    assert ", mean[0," in only


def test_a_reading_says_which_estimates_it_cannot_measure():
    # a component of one row, whose covariance has no variance
    rows = np.vstack([np.random.default_rng(0).normal(size=(100, 2)), [[1e6, 1e6]]])
    estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(rows)
    table = estimator.posterior(method="lrvb").summary("covariances")
    lone = table.index[np.isinf(table["sd"])]
    assert 0 < len(lone) < len(table)
    assert table.attrs["prior"].endswith(" moves any estimate whose sd is finite.")
    table = estimator.posterior(method="lrvb").summary(lone[0])
    assert table.attrs["prior"].startswith("The prior may matter: ")


def test_a_reading_is_not_about_components_without_rows():
    # which are where the prior puts them, and exactly a standard deviation away where it moves by one
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5000, 2)) + 8.0 * (np.arange(5000) % 2)[:, None]
    estimator = LRVBGaussianMixture(n_components=6, random_state=0, weight_concentration_prior=1e-3)
    estimator.fit(rows)
    occupied = np.flatnonzero(estimator.weights_ > 0.1)
    assert len(occupied) == 2
    reading = reading_of(estimator, ("means",))
    assert reading.startswith("The prior hardly matters: ")
    assert any(
        f"with mean_prior moved by one standard deviation of a cluster (as the prior expects it), mean[{k},"
        in reading
        for k in occupied
    )
    empty = int(estimator.weights_.argmin())
    for target in (f"mean[{empty},x0]", f"weight[{occupied[0]}] - weight[{empty}]"):
        table = estimator.posterior(method="lrvb").summary(target)
        assert table.attrs["prior"].startswith("The prior matters: these are about components without rows")
    one = LRVBGaussianMixture(random_state=0).fit(rows)
    reading = reading_of(one, ("weights",))
    assert reading.startswith("The prior does not matter")


# What is refused.


def test_a_flat_prior_has_no_hyperparameters():
    estimator = mixture({"prior": "flat"}).fit(X)
    with pytest.raises(ValueError, match=r"undefined for prior='flat'. Refit with prior='learned'"):
        estimator.prior_sensitivity()


def test_unknown_requests_are_refused():
    with pytest.raises(NotFittedError):
        LRVBGaussianMixture().prior_sensitivity()
    estimator = mixture(CONJUGATE[0]).fit(X)
    with pytest.raises(ValueError, match="target must be one of log_weights, means"):
        estimator.prior_sensitivity("mean")
