"""
===================================================================================
A hierarchical model and a family of your own: what does it take to get error bars?
===================================================================================

Linear response needs no mixture. Any model whose log joint density is a sum of
products of the factors' statistics can be written down term by term, and error bars
follow. How much work is that, and how good are they?

The model here is an example of Gelfand and Smith (1990): ten pumps of a power plant
(Gaver and O'Muircheartaigh, 1987). Pump i fails s_i times in t_i thousand hours, with
s_i ~ Poisson(lambda_i t_i); the rates are lambda_i ~ Gamma(shape a, rate beta), and
beta ~ Gamma(g, d). The exact posterior needs only an integral over beta, so that the
error bars can be checked.
"""

# %%
# The model
# ---------
# Two factors: ten independent rates, and beta. Every line of the log joint density
# becomes a ``Term``.
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import i0e, i1e
from sklearn.utils import check_random_state

from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term
from sklearn_lrvb.mean_field.exponential_families import (
    ExponentialFamily,
    Gamma,
    check_family,
)

failures = np.array([5, 1, 5, 14, 3, 19, 1, 1, 4, 22])
hours = np.array(
    [94.32, 15.72, 62.88, 125.76, 5.24, 31.44, 1.048, 1.048, 2.096, 10.48]
)  # thousands
a, g, d, n = 1.802, 0.1, 1.0, 10

model = MeanFieldModel(
    factors={"rates": Factor(Gamma(), copies=n), "beta": Gamma()},
    terms=[
        Term(failures, "rates.log"),  # s_i ~ Poisson(lambda_i t_i)
        Term(-hours, "rates.value"),
        Term(a - 1, "rates.log"),  # lambda_i ~ Gamma(a, beta)
        Term(-1.0, "rates.value", "beta.value"),
        Term(a * n, "beta.log"),
        Term(g - 1, "beta.log"),  # beta ~ Gamma(g, d)
        Term(-d, "beta.value"),
    ],
)
posterior = model.fit()

# %%
# The exact posterior, by quadrature over log beta
# ------------------------------------------------
log_beta = np.linspace(-10, 6, 20_001)[:, None]
beta = np.exp(log_beta)
shape, rate = failures + a, hours + beta
log_density = (
    (g + n * a) * log_beta[:, 0] - d * beta[:, 0] - (shape * np.log(rate)).sum(axis=1)
)
weights = np.exp(log_density - log_density.max())
weights /= weights.sum()
given_beta = np.hstack([shape / rate, beta])
variance_given_beta = np.hstack([shape / rate**2, np.zeros_like(beta)])
exact_mean = weights @ given_beta
exact_sd = np.sqrt(weights @ (variance_given_beta + (given_beta - exact_mean) ** 2))

# %%
# How good are the error bars?
# ----------------------------
# The last two columns are the error bars of LRVB and of mean field over the exact ones.
mean = np.append(posterior.mean("rates.value"), posterior.mean("beta.value"))
lrvb_sd, mean_field_sd = (
    np.append(posterior.std("rates.value", method), posterior.std("beta.value", method))
    for method in ("lrvb", "mean_field")
)
print(f"{'':<9}{'LRVB':>16}{'exact':>18}{'LRVB / exact':>14}{'mean field':>12}")
for i, name in enumerate([*(f"rate[{i}]" for i in range(n)), "beta"]):
    ours, exact = (
        f"{mean[i]:.3f} +- {lrvb_sd[i]:.3f}",
        f"{exact_mean[i]:.3f} +- {exact_sd[i]:.3f}",
    )
    ratios = f"{lrvb_sd[i] / exact_sd[i]:>14.3f}{mean_field_sd[i] / exact_sd[i]:>12.3f}"
    print(f"{name:<9}{ours:>16}{exact:>18}{ratios}")

# %%
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.axhline(1, color="black", lw=0.8)
ax.plot(hours, lrvb_sd[:n] / exact_sd[:n], "o", color="#0072B2", label="LRVB")
ax.plot(
    hours,
    mean_field_sd[:n] / exact_sd[:n],
    "^",
    color="#D55E00",
    mfc="none",
    label="mean field",
)
ax.set(
    xscale="log",
    xlabel="thousand hours that the pump was watched",
    ylabel="error bar / exact one",
)
ax.set_title("Error bars of the rates of ten pumps")
ax.legend(loc="lower right")
plt.show()

# %%
# A family of your own
# --------------------
# A factor may be of any exponential family. A new one needs its statistics, its log
# partition function with the first two derivatives (mean and covariance of the
# statistics), a sampler, and where it is defined. Here is the von Mises distribution of
# directions x, with the statistic (cos x, sin x) and the natural parameter kappa (cos
# mu, sin mu).


@dataclass(frozen=True)
class VonMises(ExponentialFamily):
    """Direction x; statistic ``vector`` (cos x, sin x), natural parameter kappa (cos mu, sin mu)."""

    @property
    def statistics(self):
        """``vector`` (cos x, sin x)."""
        return {"vector": (2,)}

    def log_partition(self, natural):
        """log(2 pi I_0(kappa))."""
        kappa = np.linalg.norm(natural, axis=-1)
        return np.log(2 * np.pi * i0e(kappa)) + kappa

    def mean_parameters(self, natural):
        """The vector of length I_1(kappa) / I_0(kappa) in the direction of eta."""
        return self._resultant_over_kappa(natural) * natural

    def covariance(self, natural):
        """The derivative of the mean parameters."""
        ratio = self._resultant_over_kappa(natural)[..., None]
        outer = natural[..., :, None] * natural[..., None, :]
        squared = np.square(natural).sum(axis=-1)[..., None, None]
        along = np.where(
            squared > 0,
            (1 - 2 * ratio) / np.where(squared > 0, squared, 1.0) - ratio**2,
            0.0,
        )
        return ratio * np.eye(2) + along * outer

    def _resultant_over_kappa(self, natural):
        kappa = np.linalg.norm(natural, axis=-1, keepdims=True)
        safe = np.where(kappa > 0, kappa, 1.0)
        return np.where(kappa > 0, i1e(safe) / i0e(safe) / safe, 0.5)

    def check_domain(self, natural):
        """Every vector is a valid natural parameter."""

    def default_natural_parameters(self):
        """The uniform distribution of directions."""
        return np.zeros(2)

    def sample(self, natural, n_draws, random_state=None):
        """Angles: (n_draws, ...)."""
        mu, kappa = (
            np.arctan2(natural[..., 1], natural[..., 0]),
            np.linalg.norm(natural, axis=-1),
        )
        return check_random_state(random_state).vonmises(
            mu, kappa, size=(n_draws, *mu.shape)
        )

    def statistics_of(self, value):
        """(cos x, sin x)."""
        return np.stack([np.cos(value), np.sin(value)], axis=-1)


# %%
# ``check_family`` verifies that these agree with each other, and names what does not.
for natural in ([0.3, -0.1], [5.0, 2.0], [0.0, 0.0], [-200.0, 300.0]):
    check_family(VonMises(), natural)
print("check_family passes")

# %%
# Use it: the mean direction of six observations of known concentration 2.
angles = np.array([0.9, 1.4, 0.2, 1.1, 1.9, 0.6])
data = 2.0 * VonMises().statistics_of(angles).sum(axis=0)
direction = MeanFieldModel({"mu": VonMises()}, [Term(data, "mu.vector")]).fit()
(cosine, sine), sd = direction.mean("mu.vector"), direction.std("mu.vector")
print(f"cos(mu) {cosine:.3f} +- {sd[0]:.3f}, sin(mu) {sine:.3f} +- {sd[1]:.3f}")

# %%
# **Answer.** A line for every term of the model, and some thirty for a new family. The
# error bars are those of the truth to a percent for most rates; the worst, of the two
# pumps with the fewest hours, are 4 % too small (0.80 +- 0.51) and by mean field 9 %.
# That of beta, 2.44 +- 0.70, is 2.4 % too small, by mean field 20 %.
#
# Read on: :ref:`sphx_glr_gallery_gaussian_mixture_from_parts.py` writes down the
# mixture itself.
