"""What `reg_covar` costs: against refits without it, in any units, and the warning that names it."""

import re
import warnings

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    PRIORS,
    learning_as,
    mixture,
    overlapping,
    posterior_of,
    rows_around_mean,
    set_sizes,
    three_blobs,
)
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.fitting.noise_cost import COSTLY, costly_noise
from sklearn_lrvb.gaussian.fitting.starts import STANDARDIZED_KMEANS, starting_responsibilities

every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
every_prior = pytest.mark.parametrize("prior", PRIORS)
all_priors = pytest.mark.parametrize("prior", ["learned", *PRIORS])
WARNING = ".*variance of known noise on every feature, is large"


def quiet(estimator, X, **arguments):
    """The fitted estimator, warnings of noise aside."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", WARNING)
        return estimator.fit(X, **arguments)


def message_of(estimator, X):
    with pytest.warns(UserWarning, match=WARNING) as caught:
        estimator.fit(X)
    # Of columns without variation another warning tells.
    (of_noise,) = (warning for warning in caught if re.search(WARNING, str(warning.message)))
    assert of_noise.filename == __file__
    return str(of_noise.message)


def cost_of(estimator, X, sample_weight=None):
    return costly_noise(rows_around_mean(X, sample_weight=sample_weight), posterior_of(estimator))


def planted(n_features=4, scale=1e-3):
    """Blobs whose third column is small."""
    X = three_blobs(n_features=n_features)
    X[:, 2] *= scale
    return X


# The measure.


@pytest.mark.parametrize("factorization", ["joint", "independent"])
@every_prior
@every_type
def test_of_one_component_it_is_what_a_refit_without_noise_gains(covariance_type, prior, factorization):
    X, model = planted(), {"covariance_type": covariance_type, "prior": prior, "factorization": factorization}
    noisy = quiet(mixture({**model, "reg_covar": 0.3}, 1), X)
    gained = mixture({**model, "reg_covar": 0.0}, 1).fit(X).lower_bound_ - noisy.lower_bound_
    cost = cost_of(noisy, X)
    is_exact = covariance_type not in ("full", "tied")  # Of a matrix it is that of features on their own.
    assert cost.per_row * len(X) == pytest.approx(gained, rel=1e-9 if is_exact else 0.2)
    assert cost.per_row * len(X) <= gained * (1 + 1e-9)
    assert cost.per_row > COSTLY


@all_priors
@every_type
def test_of_several_components_a_refit_gains_that_or_more(covariance_type, prior):
    X, model = overlapping(), {"covariance_type": covariance_type, "prior": prior}
    noisy = quiet(mixture({**model, "reg_covar": 0.1}), X)
    start = noisy.predict_proba(X)
    refit = mixture({**model, "reg_covar": 0.0, "init_params": start}).fit(X)
    gained = (refit.lower_bound_ - noisy.lower_bound_) / len(X)
    assert COSTLY < cost_of(noisy, X).per_row <= gained < 1.5 * cost_of(noisy, X).per_row


@every_type
@pytest.mark.parametrize("parts", [{"tails": 4.0}, {"tails": "student"}, {"tails": 4.0, "noise": -5.0}])
def test_with_scales_a_refit_gains_that_or_more(covariance_type, parts):
    X, model = overlapping(), {"covariance_type": covariance_type, **parts}
    noisy = quiet(mixture({**model, "reg_covar": 0.1}), X)
    prior = {"mean_prior": noisy.mean_prior_, "kind": learning_as(posterior_of(noisy).prior)}
    start = noisy.predict_proba(X)
    refit = mixture({**model, **prior, "reg_covar": 0.0, "init_params": start}).fit(X)
    gained = (refit.lower_bound_ - noisy.lower_bound_) / len(X)
    assert COSTLY < cost_of(noisy, X).per_row <= gained < 2.0 * cost_of(noisy, X).per_row


@every_type
def test_weights_count_rows(covariance_type):
    X = overlapping()
    weights = np.arange(len(X)) % 3 + 1.0
    model = {"covariance_type": covariance_type, "reg_covar": 0.1}
    weighted = quiet(mixture(model), X, sample_weight=weights)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    cost, same = cost_of(weighted, X, weights), cost_of(weighted, repeated)
    for name in ("per_row", "share", "negligible"):
        assert getattr(cost, name) == pytest.approx(getattr(same, name), rel=1e-8)
    assert cost.variance == pytest.approx(same.variance, rel=1e-8)


@pytest.mark.all_cases
@every_type
def test_without_noise_there_is_no_cost(covariance_type):
    X = overlapping()
    estimator = mixture({"covariance_type": covariance_type, "reg_covar": 0.0}).fit(1e-6 * X)
    assert cost_of(estimator, 1e-6 * X) is None


# The warning.


@pytest.mark.parametrize("unit", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
def test_it_names_the_planted_feature_and_values_that_help_in_any_unit(covariance_type, unit):
    X = planted(scale=unit)
    X[:, [0, 1, 3]] *= [1.0, 1e3, 1e6]
    estimator = LRVBGaussianMixture(n_components=2, covariance_type=covariance_type, random_state=0)
    message = message_of(estimator, X)
    assert f" along x2 (variance {X[:, 2].var():.2g} in X)." in message
    assert "(a) scale the columns of X first" in message
    smaller = float(re.search(r"\(b\) pass reg_covar=(\S+),", message)[1])
    estimator.set_params(reg_covar=smaller).fit(X)
    assert cost_of(estimator, X) is None
    estimator.set_params(reg_covar=1e-6).fit(StandardScaler().fit_transform(X))


def test_it_names_features_as_the_frame_does():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(planted(), columns=["height", "weight", "thickness", "age"])
    assert "along thickness (variance" in message_of(LRVBGaussianMixture(n_components=2), frame)


def test_of_a_spherical_fit_it_names_no_direction():
    message = message_of(LRVBGaussianMixture(covariance_type="spherical"), 1e-4 * overlapping())
    assert "in every direction (mean variance of a feature " in message


@every_prior
@every_type
@pytest.mark.filterwarnings("ignore:Columns of X", "ignore:Components have shrunk")
def test_columns_that_do_not_vary_are_no_cause(covariance_type, prior):
    X = overlapping()
    X = np.column_stack([X, np.full(len(X), 0.1), X[:, 0], 2.54 * X[:, 1], np.zeros(len(X))])
    estimator = LRVBGaussianMixture(
        n_components=2, covariance_type=covariance_type, prior=prior, random_state=0
    ).fit(X)
    assert cost_of(estimator, X) is None


@pytest.mark.filterwarnings("ignore:Columns of X", "ignore:Components have shrunk")
def test_equal_rows_within_a_component_are_no_cause():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50_000, 1)) < 0.5, 0.0, rng.normal(3.0, 0.5, size=(50_000, 2)))
    mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    assert mixture.covariances_.min() < 1e-4


@all_priors
def test_large_columns_do_not_hide_what_noise_costs_in_small_ones(prior):
    estimator = LRVBGaussianMixture(n_components=2, prior=prior, random_state=0)
    assert "along x0" in message_of(estimator, three_blobs() * [1e-8, 1e8, 1.0])


@pytest.mark.filterwarnings("ignore:A covariance matrix of")
@pytest.mark.parametrize("unit", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_noise_in_the_default_prior_does_not_hide_itself(covariance_type, unit):
    X, labels = make_blobs(40, 100, centers=3, cluster_std=5, random_state=0)
    estimator = LRVBGaussianMixture(n_components=3, covariance_type=covariance_type, random_state=0)
    proposed = re.search(r"pass reg_covar=(\S+),", message_of(estimator, unit * X))[1]
    labels_found = estimator.set_params(reg_covar=float(proposed)).fit_predict(unit * X)
    assert adjusted_rand_score(labels, labels_found) == 1.0
    assert cost_of(estimator, unit * X) is None


@every_type
@pytest.mark.filterwarnings("ignore:Columns of X with one value")
def test_noise_in_the_prior_of_a_constant_column_does_not_hide_itself(covariance_type):
    X = np.column_stack([1e-5 * three_blobs(), np.ones(len(three_blobs()))])
    estimator = LRVBGaussianMixture(n_components=3, covariance_type=covariance_type, random_state=0)
    proposed = re.search(r"pass reg_covar=(\S+),", message_of(estimator, X))[1]
    assert estimator.set_params(reg_covar=float(proposed)).fit(X).n_occupied_ == 3
    assert cost_of(estimator, X) is None


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
def test_principal_components_of_dependent_columns_are_to_be_dropped(covariance_type):
    X = overlapping()
    X = PCA().fit_transform(np.column_stack([10 * X, X[:, 0] - X[:, 1], 2.54 * X[:, 1], 0.3 * X[:, 0]]))
    estimator = LRVBGaussianMixture(n_components=2, covariance_type=covariance_type, random_state=0)
    for rows in X, X.astype(np.float32):
        assert 0 < rows.var(axis=0).min() < 1e-25
        assert "(c) drop this feature if it holds rounding errors alone" in message_of(estimator, rows)
    assert "rounding" not in message_of(estimator, planted())


def test_a_small_share_is_not_called_none():
    X = make_blobs(40, 200, centers=3, cluster_std=5, random_state=0)[0]
    estimator = LRVBGaussianMixture(n_components=3, covariance_type="diag", random_state=0)
    assert "Noise is 0 %" not in (message := message_of(estimator, 5e-3 * X))
    assert re.search(r"Noise is 0\.\d %", message)


def test_a_chosen_value_may_smooth_but_not_exceed_whole_features():
    X = overlapping()
    estimator = LRVBGaussianMixture(n_components=2, reg_covar=0.1, random_state=0).fit(X)
    assert cost_of(estimator, X).per_row > COSTLY
    assert "reg_covar=5, " in message_of(estimator.set_params(reg_covar=5.0), X)


@pytest.mark.parametrize("solver", ["newton", "coordinate_ascent"])
def test_a_fit_warns_once(solver):
    estimator = LRVBGaussianMixture(
        n_components=2, solver=solver, max_iter=1000, n_init=3, warm_start=True, random_state=0
    )
    message = message_of(estimator, planted())
    assert message_of(estimator, planted()) == message


# The start on standardized columns.


def standardized_kmeans(rows):
    return starting_responsibilities(rows, 3, STANDARDIZED_KMEANS, np.random.RandomState(0), is_flat=False)


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "gain"), [("learned", 200), ("fixed", 700)])
def test_raw_breast_cancer_leaves_the_optimum_that_the_largest_column_leads_to(prior, gain):
    X = load_breast_cancer().data
    estimator = quiet(LRVBGaussianMixture(n_components=2, prior=prior, random_state=0), X)
    labels = KMeans(2, n_init=1, random_state=0).fit_predict(X)
    alone = quiet(LRVBGaussianMixture(n_components=2, prior=prior, init_params=np.eye(2)[labels]), X)
    assert estimator.lower_bound_ > alone.lower_bound_ + gain
    assert np.all(np.diff(estimator.lower_bounds_) >= 0)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["newton", "coordinate_ascent"])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_the_start_never_lowers_the_bound(covariance_type, solver):
    rng = np.random.default_rng(0)
    for seed in range(2):
        X = three_blobs(200, 4, seed) * 10.0 ** rng.uniform(-4, 2, size=4)
        labels = KMeans(4, n_init=1, random_state=seed).fit_predict(X)
        model = {"covariance_type": covariance_type, "solver": solver}
        alone = quiet(mixture(model, 4, init_params=np.eye(4)[labels], moves=None), X)
        both = quiet(mixture(model, 4, moves=None).set_params(random_state=seed), X)
        assert both.lower_bound_ >= alone.lower_bound_ - 1e-8


def test_the_start_is_that_of_k_means_after_the_scaler():
    X = np.column_stack([planted(), np.full(300, 0.1)]) + [0.0, 1e6, 0.0, 0.0, 0.0]
    made = standardized_kmeans(rows_around_mean(X))
    scaled = StandardScaler().fit_transform(X)
    labels = KMeans(3, n_init=1, random_state=0).fit_predict(scaled)
    assert adjusted_rand_score(made.argmax(axis=1), labels) == 1


def test_the_start_of_many_rows_is_that_of_a_sample(monkeypatch):
    X = np.concatenate([planted(), planted()])
    set_sizes(monkeypatch, sample_rows=200)
    rows = rows_around_mean(X)
    function = standardized_kmeans(rows)
    made = rows.each(lambda block: function(block).T, (3,))
    np.testing.assert_array_equal(made[:300], made[300:])
    scaled = StandardScaler().fit_transform(X)
    labels = KMeans(3, n_init=1, random_state=0).fit_predict(scaled)
    assert adjusted_rand_score(made.argmax(axis=1), labels) > 0.9


def test_it_is_reported(capsys):
    quiet(LRVBGaussianMixture(n_components=2, random_state=0, verbose=1), planted())
    assert "Initialization on standardized columns" in capsys.readouterr().out
    quiet(LRVBGaussianMixture(n_components=2, random_state=0, verbose=1), overlapping())
    assert "standardized" not in capsys.readouterr().out
