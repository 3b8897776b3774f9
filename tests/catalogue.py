"""The one catalogue of models that every property test runs over, and the data they are fitted to."""

import copy
import functools
import itertools
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from covariance_types import TYPES

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.estimators import gaussian_mixture
from sklearn_lrvb.estimators.gaussian_arguments import core_of_outlying_rows, needs_covariances, resolve_prior
from sklearn_lrvb.gaussian.fitting.completion import Completion
from sklearn_lrvb.gaussian.model import GAUSSIAN
from sklearn_lrvb.linear_response.observed_information import SolverCosts
from sklearn_lrvb.rows import rows_of_array

COVARIANCE_TYPES = tuple(TYPES)
SKLEARN_TYPES = tuple(name for name in TYPES if TYPES[name].is_in_scikit_learn)
PRIORS = ("fixed", "flat")
FACTORIZATIONS = ("joint", "independent")
WEIGHT_PRIORS = ("dirichlet_process", "dirichlet_distribution")
SOLVERS = ("newton", "coordinate_ascent")
TARGETS = ("log_weights", "means", "precisions", "weights", "covariances")  # That every mixture has.
INFORMATION = ("primal", "dual", "matrix_free")


def half_of(models):
    """Every other model, such that any choices of three different options are together in some model."""
    return [
        model
        for model in models
        if (
            COVARIANCE_TYPES.index(model["covariance_type"])
            + (model["prior"] == "flat")
            + (model["factorization"] == "joint")
            + (model["weight_concentration_prior_type"] == "dirichlet_process")
            + (model["reg_covar"] > 0)
        )
        % 2
        == 0
    ]


def few_of(models):
    """A third of the models, such that any choices of two different options are together in some model.

    For tests that take long, where the code has no case for a combination of three options. There is one
    model of every covariance type with noise and with a learned prior, and one of each of the first four with
    Student's t components.
    """

    def is_chosen(model):
        if "tails" in model:
            return model in [WITH_TAILS[number] for number in (1, 2, 4, 6, -3)]
        if model["prior"] == "learned" and "noise" not in model:
            return model in WITH_LEARNED_PRIOR[::2]
        is_joint = model["factorization"] == "joint"
        has_sticks = model["weight_concentration_prior_type"] == "dirichlet_process"
        is_outer = model["covariance_type"] in (COVARIANCE_TYPES[0], COVARIANCE_TYPES[3])
        return bool(half_of([model])) and ("noise" in model or is_joint == (is_outer == has_sticks))

    return [model for model in models if is_chosen(model)]


# a flat prior has no kind of weights to choose
EVERY_OPTION = tuple(
    {
        "covariance_type": covariance_type,
        "prior": prior,
        "factorization": factorization,
        "weight_concentration_prior_type": weights,
        "reg_covar": reg_covar,
    }
    for covariance_type, prior, factorization, weights, reg_covar in itertools.product(
        COVARIANCE_TYPES, PRIORS, FACTORIZATIONS, WEIGHT_PRIORS, (0.0, 0.05)
    )
    if prior == "fixed" or weights == "dirichlet_distribution"
)

# The first four types have all that there is: matrices and numbers, of a component and shared, and a power.
# What is special of those after them is a combination, for which a third of their models are enough.
WITHOUT_NOISE = tuple(
    model for model in EVERY_OPTION if model["covariance_type"] in COVARIANCE_TYPES[:4] or few_of([model])
)

# the default; any choices of two different options are together in some model, also in every other one
WITH_LEARNED_PRIOR = tuple(
    {
        "covariance_type": covariance_type,
        "prior": "learned",
        "factorization": FACTORIZATIONS[(number + i) % 2],
        "weight_concentration_prior_type": WEIGHT_PRIORS[(number + i // 2) % 2],
        "reg_covar": (0.0, 0.05)[(number + (i + 1) // 2) % 2],
    }
    for i, covariance_type in enumerate(COVARIANCE_TYPES)
    for number in range(2)
)

# a noise component needs a proper prior; any choices of two different options are together in some model
WITH_NOISE = tuple(
    {
        "covariance_type": covariance_type,
        "prior": ("fixed", "learned")[(number + (i + 1) // 2) % 2],
        "factorization": FACTORIZATIONS[number],
        "weight_concentration_prior_type": WEIGHT_PRIORS[(number + i) % 2],
        "reg_covar": (0.0, 0.05)[(number + i // 2) % 2],
        "noise": True,
    }
    for i, covariance_type in enumerate(COVARIANCE_TYPES)
    for number in range(2)
)

# Both kinds of tails of a covariance type, in turn.
TAILS = (4.0, "student"), ("student", 4.0), ("student_by_component", 4.0), (4.0, "student")

# Student's t components: under all priors, with given degrees of freedom, one that is fitted, or one each
WITH_TAILS = tuple(
    {
        "covariance_type": covariance_type,
        "prior": PRIORS[number],
        "factorization": FACTORIZATIONS[(number + i // 2) % 2],
        "weight_concentration_prior_type": WEIGHT_PRIORS[1 if number else i % 2],
        "reg_covar": (0.0, 0.05)[(number + i) % 2],
        "tails": tails,
    }
    for i, covariance_type in enumerate(COVARIANCE_TYPES)
    for number, tails in enumerate(TAILS[i % len(TAILS)])
) + tuple(
    {
        "covariance_type": covariance_type,
        "prior": "learned",
        "factorization": factorization,
        "weight_concentration_prior_type": weights,
        "reg_covar": reg_covar,
        "tails": tails,
    }
    for covariance_type, factorization, weights, reg_covar, tails in (
        ("full", "independent", WEIGHT_PRIORS[0], 0.05, "student"),
        ("diag", "joint", WEIGHT_PRIORS[1], 0.0, "student_by_component"),
        ("spherical", "joint", WEIGHT_PRIORS[0], 0.05, 4.0),
    )
)
MODELS = WITHOUT_NOISE + WITH_LEARNED_PRIOR + WITH_NOISE + WITH_TAILS


def types_in_turn(*choices):
    """Every covariance type with one of each of some choices in turn: list of tuples."""
    of_types = [itertools.islice(itertools.cycle(some), len(COVARIANCE_TYPES)) for some in choices]
    return list(zip(COVARIANCE_TYPES, *of_types, strict=True))


def rows_around_mean(X, n_jobs=None, sample_weight=None):
    """The rows of an array as a fit has them."""
    return rows_of_array(X, None, n_jobs, sample_weight).around_mean()


# all with a learned prior, noise or heavy tails, and of the others half
MOST_MODELS = (*half_of(WITHOUT_NOISE), *WITH_LEARNED_PRIOR, *WITH_NOISE, *WITH_TAILS)


def model_id(model):
    """Short name of a model for test ids."""
    weights = "sticks" if model["weight_concentration_prior_type"] == "dirichlet_process" else "dirichlet"
    parts = [model["covariance_type"], model["prior"], model["factorization"], weights]
    parts.append("blurred" if model["reg_covar"] else "exact")
    parts += ["noise"] * ("noise" in model)
    return "-".join([*parts, f"t_{model['tails']}"] if "tails" in model else parts)


def models_in_turn(models, name, choices):
    """Parametrize a test that takes long by models, each with one of some choices in turn.

    Every option of the models then meets every choice, but not every combination of options does.
    """
    choices = list(choices)
    n_choices = len(choices)
    # Shifted by one in every round, so that an option that alternates with the models meets all choices.
    pairs = [(model, choices[(i + i // n_choices) % n_choices]) for i, model in enumerate(models)]
    return pytest.mark.parametrize(
        ("model", name), [pytest.param(*pair, id=f"{model_id(pair[0])}-{pair[1]}") for pair in pairs]
    )


# What tests need of the inside of a fit, and of the package's sizes: named here and nowhere else.


def posterior_of(estimator):
    """The posterior q of a fit."""
    return estimator._fitted.posterior


def prior_of(estimator, rows):
    """The prior that follows from the arguments of an estimator and from rows."""
    completion = Completion(rows, needs_covariances(estimator), GAUSSIAN) if rows.has_missing else None
    return resolve_prior(estimator, rows, None, core_of_outlying_rows(estimator, rows, completion))


def rows_of(estimator, X, sample_weight=None, n_jobs=None):
    """The rows of an array, measured from the origin of a fit."""
    return rows_of_array(X, estimator._fitted.origin, n_jobs, sample_weight)


def uncertainty_of(estimator):
    """What answers the questions about the error bars of a fit."""
    return estimator._uncertainty


def information_of(estimator, *solver_and_rows):
    """The observed information of a fit, for one target."""
    return uncertainty_of(estimator).source.information(1, *solver_and_rows)


def formed_information(estimator):
    """The observed information that a fit holds as a matrix, or None."""
    return uncertainty_of(estimator).source._matrix


_SAMPLING = "sampling"
_UNCERTAINTY = "answers"
_SIZES = {
    "most_rows": ["rows.blocks._MAX_ROWS"],  # of a block
    "least_rows": ["rows.blocks._MIN_ROWS"],
    "block_bytes": ["rows.blocks._BLOCK_BYTES"],
    "batch_bytes": ["rows.blocks._BATCH_BYTES"],
    "product_for_threads": ["rows.array_rows._LEAST_PRODUCT_FOR_THREADS"],
    "sample_rows": [
        "gaussian.fitting.starts.SAMPLE_ROWS",
        "gaussian.fitting.core.SAMPLE_ROWS",
        "gaussian.model.GAUSSIAN.sample_rows",
    ],
    "dense_size": [
        f"{module}.MAX_DENSE_SIZE"
        for module in (
            "linear_response.observed_information",
            "gaussian.information.observed_information",
            f"{_UNCERTAINTY}.uncertainty",
        )
    ],
    "pickled_bytes": [f"{_UNCERTAINTY}.uncertainty._FORMED_TO_PICKLE_BYTES"],
    "jacobian_size": [f"{_UNCERTAINTY}.targets._JACOBIAN_SIZE"],
    "coordinates_at_once": [f"{_UNCERTAINTY}.targets._COORDINATES_AT_ONCE"],
    "numbers_per_row": ["sampling.likelihood._NUMBERS_PER_ROW"],
    "numbers_in_own_coordinates": [
        f"gaussian.e_step.coordinates.{name}" for name in ("_FEW_NUMBERS", "_FEW_NUMBERS_OF_OWN_MATRICES")
    ],
    "dense_system": ["mean_field.linear_response.definite_system._DENSE_UP_TO"],
    "entries_eliminated_first": ["mean_field.linear_response.definite_system._FEW_ENTRIES"],
    "rows_eliminated_last": ["mean_field.linear_response.definite_system._MOST_LAST"],
    "stored_statistics": ["mean_field.factor._STORED_UP_TO"],
    "entries_of_monomials": ["mean_field.log_joint._MOST_ENTRIES"],
    "share_of_separate_factors": ["mean_field.response._LEAST_SHARE"],
    "bytes_per_entry": ["mean_field.coupling.BYTES_PER_ENTRY"],
    "dense_blocks_from": ["mean_field.coupling._DENSE_FROM"],
    "entries_checked_for_saddles": ["mean_field.posterior._CHECKED_UP_TO"],
    "parameters_checked": ["answers.error_bars._MOST_PARAMETERS"],
    "error_of_limits": [f"{_SAMPLING}.exact._ERROR"],
    "largest_error": [f"{_SAMPLING}.exact._LARGEST_ERROR"],
    "seconds_of_chains": [f"{_SAMPLING}.exact.{name}" for name in ("_SECONDS", "_TIMES_LEAST")],
    "sweeps_of_numbers": [f"{_SAMPLING}.number_evidence.{name}_ITERATIONS" for name in ("_LEAST", "_MOST")],
    "seconds_of_exact": ["answers.error_bars._MOST_SECONDS"],
    "seconds_of_bootstrap": ["answers.error_bars._MOST_SECONDS_OF_BOOTSTRAP"],
    "kept_rows_bytes": [f"{_UNCERTAINTY}.uncertainty._KEPT_ROWS_BYTES"],
    "first_nu": ["estimators.gaussian_arguments.NU_AT_START"],
    "rows_of_refits": ["answers.deletion._ROWS_OF_REFITS"],
    "least_refits": ["answers.deletion._LEAST_REFITS"],
}


def set_sizes(monkeypatch, **sizes):
    """Have few rows and small matrices count as many and large: sizes by their name in the table above."""
    for name, size in sizes.items():
        for constant in _SIZES[name]:
            monkeypatch.setattr(f"sklearn_lrvb.{constant}", size)


def use_information(solver, monkeypatch):
    """Have the observed information solved by one solver, and Newton's steps taken, whatever they cost."""
    n_products = 50 if solver == "matrix_free" else 0
    monkeypatch.setattr(SolverCosts, "cheapest", lambda costs, n_targets: solver)
    monkeypatch.setattr(SolverCosts, "newton_price", lambda costs: (solver, 0.0))
    monkeypatch.setattr(SolverCosts, "products_for_a_matrix", lambda costs: n_products)


def covariance_by(solver, estimator, target="all", method="lrvb", **given):
    """The covariance of a copy of a fit, from information that one solver forms of given rows."""
    with pytest.MonkeyPatch.context() as patch:
        use_information(solver, patch)
        twin = copy.deepcopy(estimator)
        source = uncertainty_of(twin).source
        source._matrix = source._packed = None
        return twin.posterior(method=method, **given).covariance(target)


def log_share_map(estimator):
    """From theta with E log pi to theta with that of weights that are scaled to sum to one.

    The mean is less by the shift, and changes are multiplied by the jacobian. It is by differences; what it
    is of, `test_weight_priors.py` compares with draws.

    Returns
    -------
    shift : (D,)
    jacobian : (D, D)
    """
    posterior = posterior_of(estimator)
    weights, counts = posterior.prior.weights, posterior.label_counts

    def log_scale(counts):
        return weights.expected_log(counts) - weights.expected_log_shares(counts)

    step, size, n_parameters = 1e-4, len(counts), len(estimator.posterior_names_)
    slopes = [(log_scale(counts + h) - log_scale(counts - h)) / (2 * step) for h in step * np.eye(size)]
    jacobian = np.eye(n_parameters)
    jacobian[:size, :size] -= np.transpose(slopes) @ np.linalg.pinv(weights.covariance_of_log(counts))
    jacobian[0, 0] *= size > 1  # A single weight is certain.
    return np.pad(log_scale(counts), (0, n_parameters - size)), jacobian


def expected_covariance(estimator):
    """The covariance that a learned prior expects of the rows, or of their core; None where C0 is given."""
    learned = posterior_of(estimator).prior.learned
    return learned.covariance if learned is not None and learned.freedom else None


def newton_decrement(estimator):
    """Distance of a fit from its optimum, in posterior standard deviations."""
    return uncertainty_of(estimator).to_state()["decrement"]


def assert_equal_to_rounding(one, other, err_msg=""):
    """Equal but for the last digits: where an array lies in memory may decide them in BLAS and in sums."""
    largest = np.max(np.abs(other), initial=0.0)
    np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13 * largest, err_msg=err_msg)


def assert_same_left_out(found, expected):
    """Leave-one-out scores are the same, up to how near the refits among them end to their optimum.

    Refits of many sweeps amplify round-off.
    """
    difference = np.abs(found - expected)
    assert np.mean(difference < 1e-7) > 0.9 and difference.max() < 1e-2


def require_arviz():
    """Skip the test unless one ArviZ or the other is there."""
    try:
        import arviz_base  # noqa: F401
    except ImportError:
        pytest.importorskip("arviz")


def peak_memory(call):
    """Bytes that a call allocates at most, beyond what there was."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def complete_rows(n_samples):
    """A stand-in for complete rows, of which only the number counts."""
    return SimpleNamespace(n_samples=n_samples, has_missing=False)


def overlapping(n_samples=240, seed=0):
    """Two overlapping 2-D Gaussians of unequal weight and shape, (n_samples, 2)."""
    rng = np.random.default_rng(seed)
    n_first = 2 * n_samples // 3
    first = rng.normal(size=(n_first, 2)) @ [[1.0, 0.4], [0.0, 0.8]]
    second = rng.normal(size=(n_samples - n_first, 2)) @ [[0.6, -0.2], [0.0, 0.9]] + [2.6, 1.2]
    return np.concatenate([first, second])


def three_blobs(n_samples=300, n_features=3, seed=1):
    """Three overlapping Gaussians, (n_samples, n_features)."""
    rng = np.random.default_rng(seed)
    centers = 1.7 * np.eye(3, n_features)
    centers[2, 0] = -2.0
    labels = np.arange(n_samples) % 3
    shapes = 0.7 * np.eye(n_features) + 0.2 * rng.normal(size=(3, n_features, n_features))
    noise = rng.normal(size=(n_samples, n_features))
    return centers[labels] + np.einsum("npq,nq->np", shapes[labels], noise)


@functools.cache
def _fitted(items, n_components):
    return mixture(dict(items), n_components).fit(overlapping())


def mixture(model, n_components=2, **parameters):
    """An unfitted mixture that converges to round-off."""
    given = {"max_iter": 2000, "tol": 1e-9, **model, **parameters}
    kind = given.pop("kind", LRVBGaussianMixture)
    return kind(n_components=n_components, random_state=0, **given)


def fitted(model, n_components=2):
    """The model fitted to `overlapping()`; shared between tests, so not to be changed."""
    return _fitted(tuple(model.items()), n_components)


def with_fixed_prior(model, X=None):
    """The model with a prior, and a density of noise, that do not move with the rows."""
    X = overlapping() if X is None else X
    prior = model.get("prior", "learned")
    if prior == "flat":
        return model
    held = {"mean_prior": X.mean(axis=0)}
    if prior == "learned":
        held["kind"] = learning_as(prior_of(mixture(model), rows_around_mean(X)))
    else:
        held["covariance_prior"] = type_of(model).prior(np.cov(X.T))
    return with_fixed_noise({**model, **held}, X)


def learning_as(prior):
    """The class of mixtures that expect of learned hyperparameters what a prior does, whatever their rows."""

    def resolved(*arguments):
        own = resolve_prior(*arguments)
        learned, noise = own.learned, own.noise_component
        learned = learned and replace(learned, covariance=prior.learned.covariance)
        noise = noise and replace(noise, covariance=prior.noise_component.covariance)
        held = {"covariance": prior.covariance, "ridge": 0.0, "rounding": prior.rounding}
        return replace(own, learned=learned, noise_component=noise, **held)

    class LearningAs(LRVBGaussianMixture):
        def _fit(self, *arguments, **named):
            with mock.patch.object(gaussian_mixture, "resolve_prior", resolved):
                return super()._fit(*arguments, **named)

    return LearningAs


def with_fixed_noise(model, X):
    """The model with the density of noise that it has for some rows."""
    if not model.get("noise"):
        return model
    return {**model, "noise": mixture(model).fit(X).noise_log_density_}


def n_labels(model, n_components=2):
    """Number of components, and the noise if there is any."""
    return n_components + bool(model.get("noise"))


def solvers_of(model):
    """The solvers of the information that a mixture has for complete rows."""
    return ("primal", "matrix_free") if "tails" in model else INFORMATION


WITHOUT_ATTRIBUTE = "standard_deviations", "correlations"


def targets_of(estimator):
    """Names of the targets that a fitted mixture has."""
    return uncertainty_of(estimator).targets.names


def scales_of(estimator):
    """Inverses of the precisions: the scale matrices of Student's t components, or the covariances."""
    return estimator.covariances_ if estimator.tails == "normal" else estimator.scales_


def values_of(estimator, target):
    """A target's posterior mean; of weights with that of the noise, if there is any."""
    if target == "weights" and estimator.noise:
        return np.append(estimator.weights_, estimator.noise_weight_)
    if target == "log_weights":
        return estimator.posterior_mean_[: estimator.n_components + bool(estimator.noise)]
    if target == "log_tails":
        return np.log(estimator.tails_)
    if target in WITHOUT_ATTRIBUTE:
        return uncertainty_of(estimator).targets[target].value()
    return getattr(estimator, f"{target}_")


def deviations_of(estimator, target):
    """A target's posterior standard deviation; of weights with that of the noise, if there is any."""
    if target == "weights" and estimator.noise:
        return np.append(estimator.weights_std_, estimator.noise_weight_std_)
    if target == "log_weights":
        return estimator.posterior_std_[: estimator.n_components + bool(estimator.noise)]
    if target in WITHOUT_ATTRIBUTE or target.endswith("_prior"):
        return uncertainty_of(estimator).std(target)
    if target == "log_tails":
        return estimator.tails_std_ / estimator.tails_
    return getattr(estimator, f"{target}_std_")


def type_of(model):
    """The covariance type of a model: CovarianceType."""
    return TYPES[model.get("covariance_type", "full")]


def dense(model, values, n_components=2):
    """Every component's matrix, of precisions or covariances in the shape of the attribute: (K, P, P)."""
    covariance_type = type_of(model)
    n_features = values.shape[-1] if covariance_type.n_axes else 2
    return covariance_type.dense(values, n_components, n_features)


def unique(model, values):
    """Unique entries of precisions or covariances in the shape of the attribute, (d,)."""
    return type_of(model).entries(values).ravel()


def unique_of_draws(model, values):
    """Unique entries of draws of precisions or covariances, (n, d)."""
    return type_of(model).entries(values).reshape(len(values), -1)
