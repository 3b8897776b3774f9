"""Leave-one-out scores without refitting, beside refits: how accurate they are, and how long each takes.

Rows are drawn at random and left out one by one. The fit to the other rows starts from the responsibilities
of the fit to all; the prior is the same for all of them. Errors, in nats, are of the score of the row left
out:

* of its score in the fit to all rows, which has seen it;
* of score minus leverage, which is of first order throughout (the infinitesimal jackknife);
* of `loo_score_samples`.

Beside them is the error of the sum over these rows, by which models are compared, as a share of the optimism
of the in-sample score.
"""

import numpy as np

from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import SIZES, milliseconds, spread, table, text
from benchmarks.problems.clusters import LEAVE_ONE_OUT

TITLE = "Leave one out"
_LEFT_OUT, _LEFT_OUT_QUICKLY = 100, 10
_MOST_STEPS = 300


def measure(settings):
    """A row for every problem."""
    return settings.rows(LEAVE_ONE_OUT, _row)


def _mixture(problem, X, start):
    """The mixture with a prior that does not depend on which rows are left out."""
    from sklearn_lrvb import LRVBGaussianMixture

    return LRVBGaussianMixture(
        n_components=problem.n_components,
        prior="fixed",
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
    _ = mixture.means_std_  # factors the information, which both approximations need
    n_left_out = _LEFT_OUT_QUICKLY if settings.quick else _LEFT_OUT
    left_out = np.random.default_rng(0).choice(len(X), n_left_out, replace=False)
    truth = np.array([_score_without(problem, X, start, row) for row in left_out])
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
    """Mean and largest error, and the error of the sum in units of the optimism."""
    optimism = np.sum(found["seen"] - truth)
    row = {}
    for name, scores in found.items():
        row[f"{name}_mean_error"] = float(np.abs(scores - truth).mean())
        row[f"{name}_largest_error"] = float(np.abs(scores - truth).max())
        row[f"{name}_error_of_sum"] = float(np.sum(scores - truth) / optimism)
    return row


def section(found):
    shown = table(
        [
            *SIZES,
            ("rows refitted without", text("left_out", "{:.0f}")),
            ("score, the row seen", _three_errors("seen")),
            ("score - leverage", _three_errors("first_order")),
            ("loo_score_samples", _three_errors("loo")),
            ("loo_score_samples of all rows, ms", milliseconds("loo_seconds")),
            ("one refit, ms", milliseconds("refit_seconds")),
            ("refits of all rows over ours", lambda row: f"{_times_longer(row):,.0f}"),
        ],
        found,
    )
    gains = [row["first_order_mean_error"] / row["loo_mean_error"] for row in found]
    return f"""The table compares scores of rows in fits to all other rows: by `loo_score_samples`, which does
not refit, against refits without the row. The three numbers are the mean and the largest error in nats, and
the error of the sum over the rows as a share of the optimism of the in-sample score. The information has been
factored before. Refits start from the fit to all rows, under the same prior.

{shown}

The mean error of `loo_score_samples` is {spread(gains)} times smaller than that of score minus leverage,
which is its first order. Summed over rows, by which models are compared, the error is at most
{max(abs(row["loo_error_of_sum"]) for row in found):.2%} of the optimism of the in-sample score. Refitting
without every row would take {spread([_times_longer(row) for row in found], "{:,.0f}")} times as long.
"""


def _three_errors(name):
    numbers = (f"{name}_mean_error", f"{name}_largest_error", f"{name}_error_of_sum")
    return lambda row: "{:.1e}, {:.1e}, {:.2%}".format(*(row[number] for number in numbers))


def _times_longer(row):
    """Time of refits without every row over that of `loo_score_samples`."""
    return row["refit_seconds"] * row["n_samples"] / row["loo_seconds"]
