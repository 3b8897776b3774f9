"""How fits with covariances and Gibbs sampling grow with rows, features and components (Section 6.4).

Ours is the fit from the best of ten k-means, whose time is not counted (the paper starts at the truth), and
the joint covariance of all parameters after it. Gibbs is bayesm's time for 1000 effective draws of its
slowest parameter, under the same nearly flat prior, extrapolated from a shorter chain. The chain starts at
the fit's labels, and its burn-in is not counted.
"""

import bayesm
from label_switching import n_switched
from measuring import Clock, sizes, summary
from near_flat_prior import NearFlatPrior
from problems import SCALING
from rivals import Ours, kmeans_responsibilities

_EFFECTIVE, _EFFECTIVE_QUICKLY = 200, 20
_MOST_DRAWS, _MOST_DRAWS_QUICKLY = 4_000, 100
_FEWEST_DRAWS = 100
_MOST_WORK = 3e10  # rows x components x draws x (features + 3)^2: some five minutes of sampling
_MOST_ITERATIONS = 1000


def measure(settings):
    lacking = bayesm.missing()
    if lacking:
        print(f"{lacking}: Gibbs sampling is left out")
    for size, problems in SCALING.items():
        for problem in settings.sized(problems):
            yield {"grows": size} | sizes(problem) | _row(problem, settings, not lacking)


def _row(problem, settings, with_gibbs):
    X = problem.simulate()
    ours = Ours(problem.n_components, n_jobs=settings.threads)
    prior = NearFlatPrior.around(X, problem.n_components)
    start = kmeans_responsibilities(X, problem.n_components)

    def fit():
        return ours.fit(X, start, max_iter=_MOST_ITERATIONS, **prior.parameters)

    fresh = []  # fits whose covariance has not been asked for
    calls = {"fit": lambda: fresh.append(fit()), "covariance": lambda: fresh.pop().posterior_covariance_}
    row = summary(Clock(settings.clock.repeats, 0.0).interleaved(calls))
    row["fit_and_covariance_seconds"] = row["fit_seconds"] + row["covariance_seconds"]
    mixture = fit()
    row |= {"n_unknowns": len(mixture.posterior_mean_), "iterations": mixture.n_iter_}
    draws = _affordable_draws(problem, settings)
    if with_gibbs and draws >= _FEWEST_DRAWS:
        row |= _sampled(X, mixture.predict(X), prior, draws, settings)
    return row


def _affordable_draws(problem, settings):
    work = problem.n_samples * problem.n_components * (problem.n_features + 3) ** 2
    return min(_MOST_DRAWS_QUICKLY if settings.quick else _MOST_DRAWS, int(_MOST_WORK / work))


def _sampled(X, labels, prior, most_draws, settings):
    goal = _EFFECTIVE_QUICKLY if settings.quick else _EFFECTIVE
    chain = bayesm.sample(X, labels, prior, goal, most_draws, seed=0)
    return {
        "gibbs_seconds": chain.seconds_for(1000),
        "gibbs_draws": len(chain.draws),
        "gibbs_effective_size": float(chain.effective_sizes.min()),
        "gibbs_switched": int(n_switched(chain.draws, X, labels, prior.n_components)),
    }
