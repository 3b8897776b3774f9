"""What every question to a fitted mixture costs, beside one pass over the rows (`score_samples`).

The information is factored before. Flops of the largest products, for N rows, d targets, K components of F =
1 + P + P(P + 1)/2 features, D = K F:

* weight influence: 2 N D d;
* leverage, spread of responsibilities: N K(K + 1) F^2 at most, by pairs of components a row may belong to;
* leave-one-out scores: as much, 2 N D^2 for what all others respond, and N K Cholesky factors of size P;
* robust covariance: 2 N D d + 2 N d^2;
* draws: 2 D^2 each.

With few uncertain rows (`DualInformation`) kernels with these take the place of F^2 and D^2.
"""

from measuring import summary
from problems import DIAGNOSTICS

from sklearn_lrvb import LRVBGaussianMixture

_MOST_STEPS = 300
_DRAWS = 1000
QUESTIONS = {
    "score_samples": lambda mixture, X: mixture.score_samples(X),
    "weight_influence": lambda mixture, X: mixture.influence(X, perturb="weight"),
    "leverage": lambda mixture, X: mixture.leverage(X),
    "spread": lambda mixture, X: mixture.predict_proba(X, return_std=True),
    "leave_one_out": lambda mixture, X: mixture.loo_score_samples(X),
    "sandwich": lambda mixture, X: mixture.get_posterior_covariance("means", "sandwich", X=X),
    "prior_sensitivity": lambda mixture, X: mixture.prior_sensitivity(),
    "draws": lambda mixture, X: mixture.sample_posterior(_DRAWS, 0),
}


def measure(settings):
    return settings.rows(DIAGNOSTICS, _row)


def _row(problem, settings):
    X = problem.simulate()
    mixture = LRVBGaussianMixture(
        n_components=problem.n_components,
        covariance_type=problem.covariance_type,
        max_iter=_MOST_STEPS,
        random_state=0,
        n_jobs=settings.threads,
    ).fit(X)
    _ = mixture.means_std_  # the factored information
    calls = {name: lambda ask=ask: ask(mixture, X) for name, ask in QUESTIONS.items()}
    return summary(settings.clock.interleaved(calls))
