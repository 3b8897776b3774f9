"""What the start by k-means costs beside one sweep and the whole fit."""

from measuring import summary
from problems import FIT
from rivals import Ours, Theirs


def measure(settings):
    return settings.rows(FIT, _times)


def _times(problem, settings):
    X = problem.simulate()
    ours = Ours(problem.n_components, problem.covariance_type, settings.threads)
    theirs = Theirs(problem.n_components, problem.covariance_type)
    fitted = ours.fit(X, "kmeans")
    times = settings.clock.interleaved(
        {
            "start": lambda: ours.fit(X, "kmeans", max_iter=0),
            "their_start": lambda: theirs.fit(X, "kmeans", max_iter=0),
            "sweep": ours.sweeper(fitted, X),
            "fit": lambda: ours.fit(X, "kmeans"),
        }
    )
    return {**summary(times), "iterations": fitted.n_iter_}
