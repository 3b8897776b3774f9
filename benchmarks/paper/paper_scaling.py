"""How fits with covariances and Gibbs sampling grow with rows, features and components (Section 6.4).

Ours is the fit from the best of ten k-means, whose time is not counted (the paper starts at the truth), and
the joint covariance of all parameters after it. Gibbs sampling is bayesm's time for 1000 effective draws of
its slowest parameter, under the same nearly flat prior, extrapolated from a shorter chain. The chain starts
at the fit's labels, and its burn-in is not counted.
"""

from benchmarks.analysis import growth_curves
from benchmarks.analysis.chains import n_switched
from benchmarks.analysis.growth_curves import curves
from benchmarks.harness.measuring import Clock, sizes, summary
from benchmarks.harness.tables import SIZES, milliseconds, ratio, table, text, text_of
from benchmarks.problems.clusters import SCALING
from benchmarks.problems.near_flat_prior import NearFlatPrior
from benchmarks.rivals import bayesm

TITLE = "Scaling (Section 6.4)"
_EFFECTIVE, _EFFECTIVE_QUICKLY = 200, 10
_MOST_DRAWS, _MOST_DRAWS_QUICKLY = 4_000, 40
_FEWEST_DRAWS = 100
_MOST_WORK = 3e10  # rows x components x draws x (features + 3)^2, some five minutes of sampling
_MOST_ITERATIONS = 1000
_GROWING = {"n_samples": "rows N", "n_features": "features P", "n_components": "components K"}
_PASSES = {
    "LRVB covariance": ("covariance_seconds", None),
    "fit and covariance": ("fit_and_covariance_seconds", None),
    "Gibbs, 1000 effective draws": ("gibbs_seconds", None),
}


def measure(settings):
    """A row for every problem along every size that grows; without R, without Gibbs sampling."""
    lacking = bayesm.missing()
    if lacking:
        print(f"paper_scaling: Gibbs sampling is left out: {lacking}", flush=True)
    for size, problems in SCALING.items():
        for problem in settings.sized(problems):
            yield {"grows": size} | sizes(problem) | _row(problem, settings, not lacking)


def _row(problem, settings, with_gibbs):
    from benchmarks.rivals.libraries import Ours, kmeans_responsibilities

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


def section(found):
    times = table(
        [
            *SIZES,
            ("unknowns", text("n_unknowns", "{:,.0f}")),
            ("fit, ms", milliseconds("fit_seconds")),
            ("LRVB covariance, ms", milliseconds("covariance_seconds")),
            ("Gibbs, s", text("gibbs_seconds")),
            ("effective draws of", _effective_of_draws),
            ("draws that switched labels", text("gibbs_switched", "{:.0f}")),
            ("Gibbs over covariance", text_of(ratio("gibbs_seconds", "covariance_seconds"))),
            ("Gibbs over fit and covariance", text_of(ratio("gibbs_seconds", "fit_and_covariance_seconds"))),
        ],
        found,
    )
    exponents = table(
        [
            ("what grows", lambda curve: _GROWING[curve.grows]),
            ("time of", lambda curve: curve.what),
            ("exponent", lambda curve: f"{curve.exponent:.2f}"),
        ],
        curves(found, _GROWING, _PASSES),
    )
    return f"""The table has the times of the fit from the best of ten k-means (whose own time is not
counted), of the joint covariance of all parameters after it, and of Gibbs sampling (bayesm) until its slowest
parameter has 1000 effective draws. The latter is extrapolated from shorter chains, which start at the fit's
labels; burn-in is not counted. Both have the same nearly flat prior (see
[Covariance](#covariance-section-63)). The rows are drawn from Gaussians, of which the two nearest are 4 sd
apart. The paper starts at the truth, and its times of LRVB are of the covariance alone.

{times}

The exponents are those of time as a power of N, P or K, fitted to the upper half of the range. The paper
found exponents of 1 in N, and slightly less than 2 in P:

{exponents}

![Time of LRVB and of Gibbs sampling as the problem grows](paper_scaling.png)
"""


def _effective_of_draws(row):
    if row.get("gibbs_draws") is None:
        return ""
    return f"{row['gibbs_effective_size']:,.0f} of {row['gibbs_draws']:,.0f}"


def draw(found, path):
    """Times against the sizes that grow."""
    growth_curves.draw(curves(found, _GROWING, _PASSES), _GROWING, path)
