"""What each question to a default fit costs, beside one pass over the rows.

The information is factored before. Flops of the largest products, for N rows, d targets, K components of F =
1 + P + P(P + 1)/2 features, and D = K F:

* weight influence: 2 N D d;
* leverage, and standard deviations of responsibilities: N K(K + 1) F^2 at most, by pairs of components to
  which a row may belong;
* leave-one-out scores: the same, 2 N D^2 for the response of all other rows, and N K Cholesky factors of size
  P;
* sandwich covariance: 2 N D d + 2 N d^2;
* draws: D^2 each, and D^3/3 once.

With few ambiguous rows (`DualInformation`), kernels with these rows take the place of F^2 and D^2.
"""

from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import SIZES, milliseconds, table
from benchmarks.problems.clusters import DIAGNOSTICS

TITLE = "Diagnostics"
_MOST_STEPS = 300
_DRAWS = 1000
_QUESTIONS = {
    "score_samples": lambda mixture, X: mixture.score_samples(X),
    "weight_influence": lambda mixture, X: mixture.influence(X, perturb="weight"),
    "leverage": lambda mixture, X: mixture.leverage(X),
    "spread": lambda mixture, X: mixture.posterior(method="lrvb").predict_proba(X),
    "leave_one_out": lambda mixture, X: mixture.loo_score_samples(X),
    "sandwich": lambda mixture, X: mixture.posterior(X, method="sandwich").covariance("means"),
    "prior_sensitivity": lambda mixture, X: mixture.prior_sensitivity(),
    "draws": lambda mixture, X: mixture.posterior(random_state=0, method="lrvb").sample(_DRAWS),
    "summary": lambda mixture, X: mixture.posterior(method="lrvb").summary(),
    "check": lambda mixture, X: mixture.posterior_check(X, random_state=0),
}
_HEADERS = {
    "fit": "fit",
    "score_samples": "one pass",
    "weight_influence": "weight influence on the means",
    "leverage": "leverage",
    "spread": "probabilities with sds",
    "leave_one_out": "leave-one-out scores",
    "sandwich": "sandwich of the means",
    "prior_sensitivity": "prior sensitivity",
    "draws": "1000 draws",
    "summary": "summary",
    "check": "posterior check",
}


def measure(settings):
    """A row for every problem."""
    return settings.rows(DIAGNOSTICS, _row)


def _row(problem, settings):
    from sklearn.base import clone

    from sklearn_lrvb import LRVBGaussianMixture

    X = problem.simulate()
    mixture = LRVBGaussianMixture(
        n_components=problem.n_components,
        covariance_type=problem.covariance_type,
        max_iter=_MOST_STEPS,
        random_state=0,
        n_jobs=settings.threads,
    ).fit(X)
    _ = mixture.means_std_  # factors the information
    calls = {name: lambda ask=ask: ask(mixture, X) for name, ask in _QUESTIONS.items()}
    calls["fit"] = lambda: clone(mixture).fit(X)
    return summary(settings.clock.interleaved(calls))


def section(found):
    columns = [(header, milliseconds(f"{name}_seconds")) for name, header in _HEADERS.items()]
    return f"""The table has the times of questions to a default fit, asked of all rows, in milliseconds, and
of the fit itself. The information has been factored before. "One pass" is `score_samples`, and sensitivity to
the prior is that of the means.

{table([*SIZES, *columns], found)}
"""
