"""Leave-one-out scores without refitting, beside refits: how close, and how long for each.

Rows are drawn at random and left out one by one, the fit to the others starting from the responsibilities of
the fit to all; the prior is the same for all of them. Errors in nats, of the score of the row left out:

* of its score in the fit to all rows, which has seen it;
* of score minus leverage, first order throughout (the infinitesimal jackknife);
* of `loo_score_samples`.

The last number of each is the error of the sum over these rows, by which models are compared, as a share of
what the scores in the fit to all rows are too high by.
"""

import numpy as np
from measuring import summary
from problems import LEAVE_ONE_OUT

from sklearn_lrvb import LRVBGaussianMixture

_LEFT_OUT = 100
_LEFT_OUT_QUICKLY = 10
_MOST_STEPS = 300


def measure(settings):
    return settings.rows(LEAVE_ONE_OUT, _row)


def _mixture(problem, X, start):
    """The mixture with a prior that does not follow the rows."""
    return LRVBGaussianMixture(
        n_components=problem.n_components,
        mean_prior=X.mean(axis=0),
        covariance_prior=np.cov(X.T),
        init_params=start,
        max_iter=_MOST_STEPS,
        random_state=0,
    )


def _row(problem, settings):
    X = problem.simulate()
    mixture = _mixture(problem, X, "kmeans").fit(X)
    start = mixture.predict_proba(X)
    _ = mixture.means_std_  # the factored information, which both approximations need
    n_left_out = _LEFT_OUT_QUICKLY if settings.quick else _LEFT_OUT
    left_out = np.random.default_rng(0).choice(len(X), n_left_out, replace=False)

    def refitted_scores():
        return np.array([_score_without(problem, X, start, row) for row in left_out])

    truth = refitted_scores()
    times = settings.clock.interleaved(
        {
            "loo": lambda: mixture.loo_score_samples(X),
            "refit": lambda: _score_without(problem, X, start, left_out[0]),
        }
    )
    scores = mixture.score_samples(X)[left_out]
    found = {
        "seen": scores,
        "first_order": scores - mixture.leverage(X)[left_out],
        "loo": mixture.loo_score_samples(X)[left_out],
    }
    return {"left_out": n_left_out, **summary(times), **_errors(found, truth)}


def _score_without(problem, X, start, row):
    """Score of one row in the fit to all others."""
    kept = np.delete(np.arange(len(X)), row)
    mixture = _mixture(problem, X, start[kept]).fit(X[kept])
    return mixture.score_samples(X[[row]])[0]


def _errors(found, truth):
    """Mean and largest error, and that of the sum in units of the optimism."""
    optimism = np.sum(found["seen"] - truth)
    row = {}
    for name, scores in found.items():
        row[f"{name}_mean_error"] = float(np.abs(scores - truth).mean())
        row[f"{name}_largest_error"] = float(np.abs(scores - truth).max())
        row[f"{name}_error_of_sum"] = float(np.sum(scores - truth) / optimism)
    return row
