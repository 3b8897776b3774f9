"""Influence against refits with a moved row, and the sum rules of shifts and scales."""

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    MOST_MODELS,
    TARGETS,
    assert_equal_to_rounding,
    deviations_of,
    fitted,
    mixture,
    model_id,
    models_in_turn,
    overlapping,
    set_sizes,
    targets_of,
    type_of,
    values_of,
    with_fixed_prior,
)

catalogue = pytest.mark.parametrize("model", MOST_MODELS, ids=model_id)
X = overlapping()


def row_number(responsibilities, name):
    """A row of either component, or one that is as ambiguous as they get."""
    return {"first": 0, "ambiguous": int(np.argmin(responsibilities.max(axis=1))), "last": 230}[name]


every_row_in_turn = models_in_turn(MOST_MODELS, "name", ("first", "ambiguous", "last"))


def attributes(estimator):
    """Every target's value."""
    return {target: values_of(estimator, target) for target in targets_of(estimator)}


@pytest.mark.slow
@every_row_in_turn
def test_influence_is_the_derivative_of_a_refit(model, name):
    model = with_fixed_prior(model)
    estimator = mixture(model).fit(X)
    r = estimator.predict_proba(X)
    refitted = mixture({**model, "init_params": r})  # to the same optimum, in few steps
    row, step = row_number(r, name), 1e-3
    influence = {target: estimator.influence(X[[row]], target=target)[0] for target in targets_of(estimator)}
    for feature in range(2):
        refits = []
        for sign in (1, -1):
            moved = X.copy()
            moved[row, feature] += sign * step
            refits.append(attributes(refitted.fit(moved)))
        for target in targets_of(estimator):
            expected = (refits[0][target] - refits[1][target]) / (2 * step)
            error = np.abs(influence[target][..., feature] - expected)
            np.testing.assert_array_less(error, 1e-5 * deviations_of(estimator, target))


@every_row_in_turn
def test_weight_influence_is_the_derivative_of_a_refit(model, name):
    model = with_fixed_prior(model)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=len(X))
    estimator = mixture(model).fit(X, sample_weight=weights)
    r = estimator.predict_proba(X)
    refitted = mixture({**model, "init_params": r})
    row, step = row_number(r, name), 1e-3
    influence = {
        target: estimator.influence(X[[row]], target=target, perturb="weight")[0]
        for target in targets_of(estimator)
    }
    refits = []
    for sign in (1, -1):
        changed = weights.copy()
        changed[row] += sign * step
        refits.append(attributes(refitted.fit(X, sample_weight=changed)))
    for target in targets_of(estimator):
        expected = (refits[0][target] - refits[1][target]) / (2 * step)
        assert influence[target].shape == np.shape(expected)
        error = np.abs(influence[target] - expected)
        np.testing.assert_array_less(error, 1e-5 * deviations_of(estimator, target))


@catalogue
def test_location_influence_is_the_gradient_of_weight_influence(model):
    # one function holds both: f_j(x) = sum_k r_k(x) p_jk(y_k(x))
    estimator, step = fitted(model), 1e-5
    for target in targets_of(estimator):
        gradient = estimator.influence(X, target=target)
        scale = np.abs(gradient).max()
        for feature, direction in enumerate(step * np.eye(2)):
            ahead, behind = (
                estimator.influence(X + sign * direction, target=target, perturb="weight") for sign in (1, -1)
            )
            np.testing.assert_allclose(
                (ahead - behind) / (2 * step), gradient[..., feature], atol=1e-8 * scale, err_msg=target
            )


def test_deleting_a_row_moves_the_posterior_by_minus_its_weight_influence():
    # to first order: the error is of the order of the influence's square
    model = {"prior": "flat"}
    errors = []
    for n_samples in (600, 2400):
        rows = overlapping(n_samples)
        estimator = mixture(model).fit(rows)
        influence = estimator.influence(rows, perturb="weight")
        row = int(np.argmax(np.linalg.norm(influence, axis=(1, 2))))
        without = mixture(model).fit(np.delete(rows, row, axis=0)).means_
        size = np.linalg.norm(influence[row])
        errors.append(np.linalg.norm(without - estimator.means_ + influence[row]) / size)
    assert errors[0] < 0.4
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("perturb", ["location", "weight"])
def test_influence_is_written_where_it_is_asked_to(target, perturb, tmp_path, monkeypatch):
    set_sizes(monkeypatch, most_rows=50)
    estimator = fitted(MODELS[0])
    expected = estimator.influence(X, target=target, perturb=perturb)
    on_disk = np.memmap(tmp_path / "influence", dtype=np.float32, mode="w+", shape=expected.shape)
    for out, tolerance in ((np.full(expected.shape, np.nan), 1e-14), (on_disk, 1e-6)):
        assert estimator.influence(X, target=target, perturb=perturb, out=out) is out
        np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ([[1.0]], "out must be an ndarray of float64 or float32, got list"),
        (np.zeros((240, 2, 2), dtype=int), "got shape .240, 2, 2., dtype int64"),
        (np.zeros((240, 2, 2)), "out must have shape .240, 2, 2, 2."),
        (np.zeros((2, 2, 2, 240)).T, "C-contiguous and writeable; got shape .240, 2, 2, 2., dtype float64$"),
        (np.broadcast_to(0.0, (240, 2, 2, 2)), "read-only"),
        (np.zeros((240, 2, 2, 2), dtype=np.float16), "dtype float16"),
    ],
)
def test_an_output_that_does_not_fit_is_refused(out, message):
    with pytest.raises(ValueError, match=message.rstrip("$")):
        fitted(MODELS[0]).influence(X, out=out)


def test_an_output_that_is_part_of_the_rows_is_refused():
    estimator, memory = fitted(MODELS[0]), np.empty((241, 2))
    memory[:-1] = X
    with pytest.raises(ValueError, match="out shares memory with X"):
        estimator.influence(memory[:-1], target="weights", perturb="weight", out=memory[1:])


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_influence_comes_in_batches_of_functions(covariance_type, monkeypatch):
    estimator = fitted({"covariance_type": covariance_type})
    whole = {
        t: (estimator.influence(X, target=t), estimator.influence(X, target=t, perturb="weight"))
        for t in targets_of(estimator)
    }
    set_sizes(monkeypatch, batch_bytes=1)
    for target, (location, weight) in whole.items():
        assert_equal_to_rounding(estimator.influence(X, target=target), location)
        assert_equal_to_rounding(estimator.influence(X, target=target, perturb="weight"), weight)


@catalogue
def test_shapes(model):
    estimator = fitted(model)
    for target, value in attributes(estimator).items():
        assert estimator.influence(X[:7], target=target).shape == (7, *np.shape(value), 2)
    precisions = estimator.influence(X, target="precisions")
    if type_of(model).is_matrix:
        np.testing.assert_array_equal(precisions, precisions.swapaxes(-3, -2))
    np.testing.assert_allclose(estimator.influence(X, target="weights").sum(axis=1), 0, atol=1e-15)


@pytest.mark.parametrize("model", [m for m in MODELS if m["prior"] == "flat"], ids=model_id)
def test_shifting_all_rows_shifts_the_means_and_nothing_else(model):
    estimator = fitted(model)
    total = {target: estimator.influence(X, target=target).sum(axis=0) for target in targets_of(estimator)}
    np.testing.assert_allclose(total["means"], np.broadcast_to(np.eye(2), (2, 2, 2)), atol=1e-9)
    for target in set(targets_of(estimator)) - {"means"}:
        scale = np.abs(estimator.influence(X, target=target)).sum(axis=0).max()
        np.testing.assert_allclose(total[target], 0, atol=1e-9 * scale)


@pytest.mark.parametrize(
    "model", [m for m in MODELS if m["prior"] == "flat" and not m["reg_covar"]], ids=model_id
)
def test_eulers_identities_of_scaling(model):
    estimator = fitted(model)
    euler = {
        target: np.einsum("n...p,np->...", estimator.influence(X, target=target), X)
        for target in ("means", "precisions", "covariances", "log_weights")
    }
    np.testing.assert_allclose(euler["means"], estimator.means_, atol=1e-9)
    np.testing.assert_allclose(euler["precisions"], -2 * estimator.precisions_, atol=1e-8)
    np.testing.assert_allclose(euler["covariances"], 2 * estimator.covariances_, atol=1e-8)
    np.testing.assert_allclose(euler["log_weights"], 0, atol=1e-9)


def test_a_row_need_not_be_a_training_row():
    # the effect of a new training point is that of an old one which sits there
    estimator = fitted(MODELS[0])
    new = np.array([[1.3, 0.6], X[5]])
    np.testing.assert_allclose(estimator.influence(new)[1], estimator.influence(X)[5], rtol=1e-12)
    far = estimator.influence([[1e4, -1e4]])
    assert np.all(np.isfinite(far))


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_rows_influence_does_not_depend_on_the_rows_beside_it(covariance_type, monkeypatch):
    # in blocks of rows that are uncertain of their component, of rows that are certain, and of both
    estimator = mixture({"covariance_type": covariance_type}).fit(X)
    uncertain, certain = X[:20], X[:20] - [80.0, 30.0]
    alternatives = estimator.predict_proba(np.concatenate([uncertain, certain])).min(axis=1)
    np.testing.assert_array_equal(alternatives > 1e-30, np.arange(40) < 20)
    rows = np.concatenate([uncertain, certain, np.hstack([uncertain, certain]).reshape(-1, 2)])
    alone = {
        target: np.concatenate([estimator.influence([row], target=target) for row in rows])
        for target in targets_of(estimator)
    }
    set_sizes(monkeypatch, most_rows=7)
    for n_jobs in (1, 2):
        estimator.set_params(n_jobs=n_jobs)
        for target, influence in alone.items():
            assert_equal_to_rounding(estimator.influence(rows, target=target), influence)


@catalogue
def test_the_weight_influence_of_few_rows_is_the_same_as_among_many(model, monkeypatch, tmp_path):
    # Fewer rows than entries of the target are solved for, row by row.
    estimator = fitted(model)
    among_many = {
        target: estimator.influence(X, target=target, perturb="weight") for target in targets_of(estimator)
    }
    on_disk = np.memmap(tmp_path / "influence", dtype=np.float32, mode="w+", shape=(2, 2, 2))
    for batch_bytes in (2**20, 1):
        set_sizes(monkeypatch, batch_bytes=batch_bytes)
        for target, expected in among_many.items():
            assert_equal_to_rounding(
                estimator.influence(X[:2], target=target, perturb="weight"), expected[:2]
            )
    estimator.influence(X[:2], target="means", perturb="weight", out=on_disk)
    np.testing.assert_allclose(on_disk, among_many["means"][:2], rtol=1e-5, atol=1e-6)


def test_unknown_requests_are_refused():
    estimator = fitted(MODELS[0])
    with pytest.raises(ValueError, match="target must be one of log_weights, means"):
        estimator.influence(X, target="mean")
    with pytest.raises(ValueError, match="perturb must be 'location' or 'weight', got 'label'"):
        estimator.influence(X, perturb="label")
    with pytest.raises(ValueError, match=r"perturb must be 'location' or 'weight', got \['weight'\]"):
        estimator.influence(X, perturb=["weight"])
    with pytest.raises(ValueError, match="X has 3 features, but LRVBGaussianMixture is expecting 2"):
        estimator.influence(np.ones((4, 3)))
    with pytest.raises(
        ValueError, match="method must be 'auto', 'lrvb', 'exact', 'mean_field', 'sandwich' or 'bootstrap'"
    ):
        estimator.posterior(method="robust").covariance()
    with pytest.raises(ValueError, match="target must be one of"):
        estimator.posterior(method="lrvb").covariance(["means", "nothing"])
    with pytest.raises(ValueError, match="target is empty"):
        estimator.posterior(method="lrvb").covariance([])
