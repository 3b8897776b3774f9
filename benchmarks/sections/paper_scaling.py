"""Growth of LRVB and of Gibbs sampling, Section 6.4."""

from growth_curves import curves
from tables import SIZES, milliseconds, ratio, table, text, text_of

GROWING = {"n_samples": "rows N", "n_features": "features P", "n_components": "components K"}
PASSES = {
    "LRVB covariance": ("covariance_seconds", None),
    "fit and covariance": ("fit_and_covariance_seconds", None),
    "Gibbs, 1000 effective draws": ("gibbs_seconds", None),
}


def section(found):
    times = table(
        [
            *SIZES,
            ("unknowns", text("n_unknowns", "{:,.0f}")),
            ("fit, ms", milliseconds("fit_seconds")),
            ("LRVB covariance, ms", milliseconds("covariance_seconds")),
            ("Gibbs, s", text("gibbs_seconds")),
            ("effective draws of", _sampled),
            ("draws that switched labels", text("gibbs_switched", "{:.0f}")),
            ("Gibbs over covariance", text_of(ratio("gibbs_seconds", "covariance_seconds"))),
            ("Gibbs over fit and covariance", text_of(ratio("gibbs_seconds", "fit_and_covariance_seconds"))),
        ],
        found,
    )
    exponents = table(
        [
            ("what grows", lambda curve: GROWING[curve.grows]),
            ("time of", lambda curve: curve.what),
            ("exponent", lambda curve: f"{curve.exponent:.2f}"),
        ],
        curves(found, GROWING, PASSES),
    )
    return f"""## Scaling (Section 6.4)

Time of the fit from the best of ten k-means, which is not counted, of the joint covariance of all parameters
after it, and of Gibbs sampling (bayesm) until its slowest parameter has 1000 effective draws: extrapolated
from shorter chains, which start at the fit's labels; burn-in is not counted. Both have the same nearly flat
prior (see Covariance). Gaussians, of which the two nearest are 4 sd apart. The paper starts at the truth, and
its times of LRVB are of the covariance alone.

{times}

Exponents on the upper half of the range; the paper saw 1 in N, and slightly less than 2 in P:

{exponents}

![Time of LRVB and of Gibbs sampling as the problem grows](paper_scaling.png)
"""


def _sampled(row):
    if row.get("gibbs_draws") is None:
        return ""
    return f"{row['gibbs_effective_size']:,.0f} of {row['gibbs_draws']:,.0f}"
