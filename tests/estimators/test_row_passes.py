"""Functions of a block travel without the rows: pickled, they are small however many rows there are."""

import pickle

import numpy as np
import pytest
from catalogue import (
    covariance_by,
    mixture,
    overlapping,
    rows_of,
    solvers_of,
    three_blobs,
    types_in_turn,
    uncertainty_of,
    use_information,
)

from sklearn_lrvb.rows import ArrayRows
from sklearn_lrvb.sampling.likelihood import (
    log_likelihood,
    log_likelihood_and_moments,
    moments_of_random_assignments,
)
from sklearn_lrvb.sampling.sampler import PosteriorSampler

VERBS = ("map", "total", "each", "write")


@pytest.fixture
def sizes(monkeypatch):
    """Bytes of every function that was given to a verb; the verbs get what is left of it after a pickle."""
    found = []

    def travelling(verb):
        def call(rows, function, *arguments, **keywords):
            pickled = pickle.dumps(function)
            found.append((_name(function), len(pickled)))
            return verb(rows, pickle.loads(pickled), *arguments, **keywords)

        return call

    def stay(rows):
        raise AssertionError("the rows were pickled with a function of a block")

    monkeypatch.setattr(ArrayRows, "__reduce__", stay)
    for verb in VERBS:
        monkeypatch.setattr(ArrayRows, verb, travelling(getattr(ArrayRows, verb)))
    return found


def largest(sizes):
    """The largest function of each name."""
    return {name: max(size for other, size in sizes if other == name) for name, _ in sizes}


def _name(function):
    function = getattr(function, "func", function)
    named = function if hasattr(function, "__qualname__") else type(function)
    return named.__module__.rpartition(".")[2] + "." + named.__qualname__


def everything(X, weights, **parameters):
    """A fit, and every method that passes over rows."""
    fit, solvers = mixture(parameters, 2).fit(X, sample_weight=weights), solvers_of(parameters)
    (
        fit.predict(X),
        fit.posterior(method="lrvb").predict_proba(X),
        fit.posterior(method="lrvb").score_samples(X),
    )
    fit.influence(X), fit.influence(X, target="covariances", perturb="weight")
    fit.influence(X, out=np.empty((len(X), 2, X.shape[1], X.shape[1]), dtype=np.float32))
    fit.leverage(X), fit.loo_score_samples(X, sample_weight=weights)
    sampler = PosteriorSampler(uncertainty_of(fit))
    rows, parameters = rows_of(fit, X, weights), sampler.draws(3, np.random.RandomState(0))
    sampler.log_likelihood(rows, parameters)
    log_likelihood(rows, parameters), log_likelihood_and_moments(rows, parameters)
    moments_of_random_assignments(rows, parameters, 0)
    fit.posterior(X, method="sandwich", sample_weight=weights).covariance("means")
    groups = np.arange(len(X)) % 20
    fit.posterior(X, sample_weight=weights, groups=groups).covariance("means")
    fit.leverage(X, groups=groups), fit.influence(X, target="means", perturb="weight", groups=groups)
    for solver in solvers:
        covariance = covariance_by(solver, fit, "weights", X=X, sample_weight=weights)
    return fit, covariance


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* move the fit further than one step")
@pytest.mark.parametrize(
    ("covariance_type", "prior", "weighted"),
    types_in_turn(("learned", "flat"), (True, False)),
)
def test_every_function_of_a_block_is_small_and_the_same_after_a_pickle(
    covariance_type, prior, weighted, request
):
    X = overlapping(160)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if weighted else None
    model = {"covariance_type": covariance_type, "prior": prior, "tol": 1e-3}
    fit, covariance = everything(X, weights, **model)
    sizes = request.getfixturevalue("sizes")
    again, same = everything(X, weights, **model)
    assert again.lower_bounds_ == fit.lower_bounds_
    np.testing.assert_array_equal(same, covariance)
    few = largest(sizes)
    assert len(few) > 12
    sizes.clear()
    everything(overlapping(800), None if weights is None else np.tile(weights, 5), **model)
    for name, size in largest(sizes).items():
        # Which rows are refitted, if any, depends on the table.
        assert size < 1.2 * few.get(name, size) + 500, name


@pytest.mark.slow
@pytest.mark.parametrize("moves", ["merge", "search"])
@pytest.mark.parametrize("init_params", ["kmeans", "random", "k-means++"])
def test_moves_and_starts_pass_over_rows_in_the_same_way(moves, init_params, sizes):
    settings = {"moves": moves, "init_params": init_params, "tol": 1e-3}
    few = {}
    for n_samples in (200, 1000):
        sizes.clear()
        mixture(settings, 6).fit(three_blobs(n_samples))
        found = largest(sizes)
        if moves == "search":  # Whether components are merged on the way depends on the start.
            assert {name.partition(".")[0] for name in found} > {"moves", "search", "e_step"}
        for name in few.keys() & found.keys():
            assert found[name] < 1.2 * few[name] + 500, name
        few = few or found


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["primal", "matrix_free"])
def test_responses_of_rows_travel_without_the_training_rows(solver, sizes, monkeypatch):
    use_information(solver, monkeypatch)
    X = three_blobs(300)
    estimator = mixture({"covariance_type": "full"}, 3).fit(X)
    sizes.clear()
    estimator.leverage(X)
    travelled = {name for name, _ in sizes}
    assert ("leave_one_out.leverages" in travelled) == (solver == "primal")
