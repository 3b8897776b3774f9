"""Which digits move a mean? Scores of 100 digits on both means, as in the paper's Section 6.5.

A score is the largest directional derivative of the mean's squared norm. Component 0 is that of most zeros.
"""

import numpy as np
from paper_mixtures import digits, rounded

_DIGITS = 100
_LARGEST_LOG_ODDS = 15.0  # to which the paper caps them


def measure(settings):
    for fitted in digits(settings):
        n_shown = min(_DIGITS, len(fitted.X))
        chosen = np.random.default_rng(0).choice(len(fitted.X), n_shown, replace=False)
        scores = fitted.mixture.influence_scores(fitted.X)[:, fitted.order]
        for k in (0, 1):
            log_odds = fitted.log_odds * (1 if k else -1)
            yield _row(fitted, k, scores[:, k], log_odds, chosen)


def _row(fitted, k, scores, log_odds, chosen):
    """Scores of the component's digits and of the others: of all, and of those shown."""
    own, capped = log_odds > 0, np.clip(log_odds, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
    return {
        "problem": f"{fitted.name}: component {k}",
        "features": fitted.name,
        "component": k,
        **fitted.sizes,
        "digits": len(chosen),
        "own_digits": int(own[chosen].sum()),
        "own_median_shown": np.median(scores[chosen][own[chosen]]),
        "own_median": np.median(scores[own]),
        "other_median": np.median(scores[~own]),
        "largest": scores.max(),
        "log_odds_of_largest": log_odds[scores.argmax()],
        "norm_of_mean": np.linalg.norm(fitted.mixture.means_[fitted.order[k]]),
        "points": [{"log_odds": rounded(capped[i]), "score": rounded(scores[i])} for i in chosen],
    }
