"""What scikit-learn's callbacks are told of fits and of long questions."""

import pickle

import numpy as np
import pytest
from callback_recorder import Recorder
from catalogue import mixture, overlapping, set_sizes, three_blobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_lrvb import number_of_clusters
from sklearn_lrvb.estimators import number_search as model_choice
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.model import DegenerateComponentError

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on.")


class Failing(Recorder):
    """Raises an error when a task ends."""

    def __init__(self, task, error):
        super().__init__()
        self.task, self.error = task, error

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        if context.task_name == self.task:
            raise self.error


def recorded(X, recorder=None, n_components=2, **parameters):
    recorder = recorder or Recorder()
    estimator = mixture({}, n_components, **parameters).set_callbacks(recorder)
    return estimator.fit(X), recorder


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"solver": "coordinate_ascent"},
        {"n_init": 4, "init_params": "random"},
        {"n_init": 3, "init_params": "random", "solver": "coordinate_ascent"},
        {"moves": "search", "n_components": 4},
        {"covariance_type": "tied", "prior": "flat", "moves": None},
    ],
)
def test_a_fit_is_a_tree_of_starts_and_steps(parameters):
    X = three_blobs(200)
    estimator, recorder = recorded(X, **parameters)
    recorder.assert_balanced()
    n_init = parameters.get("n_init", 1)
    assert (recorder.count("end", "fit"), recorder.count("end", "initialization")) == (1, n_init)
    paths = [fitted.lower_bounds_ for task, fitted in recorder.fitted if task == "iteration"]
    # Every step has an estimator whose fit ends there; those of the best start are the path that it reports.
    ends = [path[-1] for path in paths if path == estimator.lower_bounds_[: len(path)]]
    assert ends == estimator.lower_bounds_
    np.testing.assert_array_equal(recorder.fitted[-1][1].means_std_, estimator.means_std_)
    # The fit is that without callbacks.
    alone = clone(estimator).set_callbacks().fit(X)
    assert estimator.lower_bounds_ == alone.lower_bounds_
    assert vars(alone).keys() == vars(estimator).keys() - {"_skl_callbacks"}


@pytest.mark.slow
def test_starts_and_steps_have_their_largest_numbers():
    class Sizes(Recorder):
        def on_fit_task_begin(self, estimator, context):
            self.events.append((context.task_name, context.max_subtasks))

    def sizes(**parameters):
        return dict(e for e in recorded(overlapping(), Sizes(), **parameters)[1].events if len(e) == 2)

    # One more start, on standardized columns, may come where starts are drawn by k-means.
    assert sizes(max_iter=50, tol=1e-3) == {"fit": 2, "initialization": 50, "iteration": 0}
    assert sizes(n_init=2, init_params="random", moves="search")["fit"] == 2
    assert sizes(moves="search", n_components=3)["initialization"] is None


def test_the_start_on_standardized_columns_is_a_task():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(100, 3)), rng.normal(size=(100, 3)) + [0, 4, 0]]) * [1e3, 1e-4, 1.0]
    with pytest.warns(UserWarning, match="reg_covar"):
        recorder = recorded(X)[1]
    recorder.assert_balanced()
    assert recorder.count("end", "initialization on standardized columns") == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A covariance matrix of")
@pytest.mark.parametrize("n_features", [2, 400])  # Fewer features than rows, and more.
def test_fitted_estimators_of_steps_are_those_of_shorter_fits(n_features):
    X = np.pad(overlapping(60), ((0, 0), (0, n_features - 2)))
    X += 0.1 * np.random.default_rng(0).normal(size=X.shape)
    parameters = {"solver": "coordinate_ascent", "init_params": "random", "tol": 0.0}
    with pytest.warns(ConvergenceWarning):
        recorder = recorded(X, **parameters, max_iter=4)[1]
        short = mixture(parameters, max_iter=3).fit(X)
    third = [fitted for task, fitted in recorder.fitted if task == "iteration"][2]
    np.testing.assert_allclose(third.score_samples(X), short.score_samples(X), rtol=1e-10)
    np.testing.assert_allclose(third.means_, short.means_, rtol=1e-9, atol=1e-12)
    assert (third.n_iter_, third.converged_, third.n_features_in_) == (3, False, n_features)


def test_scoring_monitor_scores_every_step():
    X, y = overlapping(), np.arange(240) >= 160
    monitor = callback.ScoringMonitor(scoring="adjusted_rand_score")
    estimator = mixture({}).set_callbacks(monitor).fit(X, y)
    data = monitor.get_logs().data
    assert len(data) == estimator.n_iter_ + 2  # The steps, the start and the fit.
    assert len({row["adjusted_rand_score"] for row in data}) > 1


def stopping_at(task, number):
    return Recorder(lambda context: (context.task_name, context.task_id) == (task, number))


@pytest.mark.parametrize("parameters", [{}, {"solver": "coordinate_ascent"}])
def test_a_callback_ends_an_ascent(parameters):
    X = overlapping()
    with pytest.warns(ConvergenceWarning, match="A callback stopped the best") as warned:
        estimator, recorder = recorded(X, stopping_at("iteration", 2), **parameters)
    assert warned[0].filename == __file__
    recorder.assert_balanced()
    assert (estimator.n_iter_, estimator.converged_) == (3, False)
    full = mixture(parameters).fit(X)
    assert estimator.lower_bounds_ == full.lower_bounds_[:3]
    assert np.isfinite(estimator.score(X))
    with pytest.warns(UserWarning, match="fit without the callback that stopped it"):
        assert np.isfinite(estimator.means_std_).all()


@pytest.mark.parametrize("solver", ["newton", "coordinate_ascent"])
def test_a_callback_ends_the_starts(solver):
    recorder = stopping_at("initialization", 0)
    estimator = recorded(overlapping(), recorder, solver=solver, n_init=5, init_params="random")[0]
    recorder.assert_balanced()
    assert recorder.count("end", "initialization") == 1
    assert estimator.converged_
    with pytest.warns(ConvergenceWarning):  # Every ascent ends where it is asked to, and the others go on.
        recorder = stopping_at("iteration", 1)
        recorded(overlapping(), recorder, solver=solver, n_init=3, init_params="random")
    recorder.assert_balanced()
    assert recorder.count("end", "initialization") == 3


def test_a_start_that_fails_ends_its_tasks(monkeypatch):
    iterations = Ascent._iterated_once
    n_iterations = []

    def failing_once(self, *arguments):
        n_iterations.append(1)
        if len(n_iterations) == 3:
            raise DegenerateComponentError("planted")
        return iterations(self, *arguments)

    monkeypatch.setattr(Ascent, "_iterated_once", failing_once)
    estimator, recorder = recorded(overlapping(), solver="coordinate_ascent", n_init=2, init_params="random")
    recorder.assert_balanced()
    assert recorder.count("end", "initialization") == 2
    assert estimator.converged_


def test_a_stopped_fit_is_at_the_start_that_was_tried_where_the_others_failed():
    made = []

    def start(X, n_components, random_state):
        """The second start is a proper one; under a flat prior a component without rows has no posterior."""
        made.append(len(made))
        empty = np.eye(n_components)[np.zeros(len(X), dtype=int)]
        return random_state.dirichlet(np.ones(n_components), len(X)) if made[-1] == 1 else empty

    recorder = stopping_at("initialization", 2)  # At the failure of the third, before the second is run on.
    with pytest.warns(ConvergenceWarning, match="A callback stopped the best"):
        estimator, _ = recorded(
            overlapping(), recorder, init_params=start, n_init=4, prior="flat", moves=None
        )
    recorder.assert_balanced()
    assert made == [0, 1, 2]
    (tried,) = [fitted for task, fitted in recorder.fitted if task == "initialization"]
    assert estimator.lower_bounds_ == tried.lower_bounds_
    assert estimator.n_iter_ > 0
    np.testing.assert_array_equal(estimator.means_, tried.means_)


@pytest.mark.parametrize("error", [RuntimeError("planted"), KeyboardInterrupt()])
@pytest.mark.parametrize("task", ["iteration", "initialization"])
def test_an_error_in_a_callback_leaves_the_estimator_as_it_was(task, error):
    failing, recorder = Failing(task, error), Recorder()
    estimator = mixture({}).set_callbacks(recorder, failing)
    before = dict(vars(estimator))
    with pytest.raises(type(error)):
        estimator.fit(overlapping())
    assert vars(estimator) == before
    assert {e[:2] for e in failing.events[-1:]} == {("teardown", "fit")}
    recorder.assert_balanced()


def test_refused_data_are_no_task():
    recorder = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        mixture({}).set_callbacks(recorder).fit(np.full((9, 2), np.nan))
    assert recorder.events == []


def test_metaestimators_pass_callbacks_on():
    X = overlapping()
    for outer in (
        make_pipeline(StandardScaler(), mixture({})),
        GridSearchCV(mixture({}), {"n_components": [1, 2]}, cv=2),
    ):
        recorder = Recorder()
        outer.set_callbacks(recorder).fit(X)
        assert recorder.count("begin", "iteration") == recorder.count("end", "iteration") > 0
        assert recorder.count("setup", "fit") == recorder.count("teardown", "fit") == 1
    assert not hasattr(outer.best_estimator_, "_skl_callbacks")


def test_clones_and_pickles_keep_callbacks():
    monitor = callback.ScoringMonitor(scoring="adjusted_rand_score")
    estimator = mixture({}).set_callbacks(monitor).fit(overlapping(), np.arange(240) >= 160)
    assert clone(estimator)._skl_callbacks == [monitor]
    loaded = pickle.loads(pickle.dumps(estimator))
    assert loaded._skl_callbacks[0].get_logs().data == monitor.get_logs().data
    np.testing.assert_array_equal(loaded.means_std_, estimator.means_std_)


# Long questions.


@pytest.fixture
def small_blocks(monkeypatch):
    """Passes over 240 rows in several blocks, and draws in several batches."""
    set_sizes(monkeypatch, most_rows=64, batch_bytes=2**16)


QUESTIONS = {
    "loo_score_samples": lambda estimator: estimator.loo_score_samples(overlapping()),
    "leverage": lambda estimator: estimator.leverage(overlapping()),
    "score_samples": lambda estimator: estimator.score_samples(overlapping(), return_std=True)[1],
    "predict_proba": lambda estimator: estimator.predict_proba(overlapping(), return_std=True)[1],
    "influence": lambda estimator: estimator.influence(overlapping()),
    "sample": lambda estimator: estimator.posterior(random_state=0, method="lrvb").sample(300)["means"],
    "posterior_check": lambda estimator: (
        estimator.posterior_check(overlapping(), sample_weight=None, n_draws=200, random_state=0).log_evidence
    ),
    "bootstrap": lambda estimator: estimator.posterior(
        method="bootstrap", n_draws=4, random_state=0, groups=np.arange(240) // 5
    ).covariance("means"),
    "deciding_rows": lambda estimator: (
        estimator.deciding_rows(
            overlapping(), conclusion="weight[0]", threshold=estimator.weights_[0] - 0.02
        ).rows
    ),
    "partition_posterior": lambda estimator: (
        estimator.partition_posterior(
            overlapping(), sample_weight=None, n_draws=20, method="lrvb", random_state=0
        ).affinity
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_long_questions_are_tasks(name, small_blocks):
    recorder, n_jobs = Recorder(), 1 + list(QUESTIONS).index(name) % 2
    estimator = mixture({"n_jobs": n_jobs}).fit(overlapping())
    alone = QUESTIONS[name](estimator)
    np.testing.assert_array_equal(QUESTIONS[name](estimator.set_callbacks(recorder)), alone)
    recorder.assert_balanced()
    assert recorder.events[1] == ("begin", name, 0)
    assert recorder.count("end", "block") > 2
    assert "_callback_fit_ctx" not in vars(estimator)


def test_short_questions_are_not_reported():
    recorder = Recorder()
    estimator = mixture({}).fit(overlapping()).set_callbacks(recorder)
    for name in QUESTIONS.keys() - {
        "loo_score_samples",
        "bootstrap",
        "deciding_rows",
        "partition_posterior",
    }:  # They refit, one by one, or search from several orders.
        QUESTIONS[name](estimator)
    assert recorder.events == []


def test_questions_within_a_fit_are_not_reported(small_blocks):
    class Asking(Recorder):
        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            super().on_fit_task_end(estimator, context, fitted_estimator=fitted_estimator)
            if context.task_name == "fit":
                self.leverage = fitted_estimator.leverage(overlapping())

    estimator, recorder = recorded(overlapping(), Asking())
    recorder.assert_balanced()
    assert {name for _, name, _ in recorder.events} == {"fit", "initialization", "iteration"}
    np.testing.assert_array_equal(recorder.leverage, estimator.leverage(overlapping()))


def test_an_interrupted_question_ends_its_tasks(small_blocks):
    recorder = Recorder()
    estimator = mixture({}).fit(overlapping()).set_callbacks(recorder, Failing("block", KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        estimator.leverage(overlapping())
    recorder.assert_balanced()
    assert recorder.count("end", "block") == 1


def test_verbose_prints_the_progress_of_long_questions(small_blocks, capsys):
    estimator = mixture({}).fit(overlapping()).set_params(verbose=1, verbose_interval=2)
    estimator.leverage(overlapping())
    lines = capsys.readouterr().out.splitlines()
    n_blocks = int(lines[1].split()[-1])
    said = [f"  Block {number} of {n_blocks}" for number in range(2, n_blocks + 1, 2)]
    assert lines == ["leverage", *said, "leverage finished."]
    estimator.set_params(verbose=2).leverage(overlapping())
    assert "  Block 2 of" in (out := capsys.readouterr().out)
    assert "\t time lapse " in out


def test_the_progress_bar_shows_fits_and_questions(small_blocks, capsys):
    pytest.importorskip("rich")
    estimator = mixture({}).set_callbacks(callback.ProgressBar())
    estimator.fit(overlapping()).loo_score_samples(overlapping())
    shown = capsys.readouterr().out
    assert "LRVBGaussianMixture - initialization #0" in shown
    assert "LRVBGaussianMixture - loo_score_samples" in shown


@pytest.mark.slow
def test_a_comparison_of_numbers_of_clusters_is_one_task():
    recorder = Recorder()
    estimator = mixture({"weight_concentration_prior_type": "dirichlet_distribution"})
    number_of_clusters(
        estimator.set_callbacks(recorder), overlapping(30), n_components=[1, 2], n_init=1, n_draws=200
    )
    recorder.assert_balanced()
    assert recorder.count("end", "block") == 2 * 6  # Under two priors: two fits, their scores, and chains.


@pytest.mark.slow
def test_a_search_for_more_clusters_raises_the_number_of_its_steps(monkeypatch, capsys):
    monkeypatch.setattr(model_choice, "_LARGEST_AT_FIRST", 2)
    recorder, rows = Recorder(), np.concatenate([overlapping(20) + shift for shift in (0.0, 40.0, 90.0)])
    estimator = mixture({"verbose": 1, "verbose_interval": 1}).set_callbacks(recorder)
    found = number_of_clusters(estimator, rows, n_init=1, n_draws=200, another_prior=False, random_state=0)
    recorder.assert_balanced()
    assert found.n_components[-1] > 2
    steps = [line.split()[1::2] for line in capsys.readouterr().out.splitlines() if "Block" in line]
    done, of = np.array(steps, dtype=int).T
    np.testing.assert_array_equal(done, np.arange(1, len(done) + 1))
    assert of[0] < of[-1] == len(done) == recorder.count("end", "block")
    assert np.all(done <= of)
