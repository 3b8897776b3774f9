"""
============================================================================
A time series whose steps depend on each other: does it matter how q is cut?
============================================================================

Mean field cuts the unknowns into independent factors, and linear response repairs the
error bars of what was cut. But it repairs them at the means that mean field finds, and
a bad cut spoils these too. State space models show it: their states depend on each
other so strongly that they belong into one factor.

The data are the yearly discharge of the Nile at Aswan, 1871 to 1970. The *local level*
model says that the level x_t is a random walk, observed with noise:

    y_t ~ normal(x_t, 1/noise),    x_t+1 ~ normal(x_t, 1/drift).

Its exact posterior needs an integral over two numbers only, so that everything can be
checked.
"""

# %%
# The model, with one factor for the whole chain
# ----------------------------------------------
# ``GaussianChain`` is the family of normal vectors in which neighbours depend on each
# other. The densities are written as on paper.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp

from sklearn_lrvb.mean_field import (
    MeanFieldModel,
    gamma_prior,
    normal_likelihood,
    normal_prior,
    random_walk_prior,
)
from sklearn_lrvb.mean_field.exponential_families import (
    Gamma,
    GaussianChain,
    UnivariateNormal,
)

# fmt: off
discharge = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020,
    960, 1180, 799, 958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840,
    874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120,
    1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759, 781, 865,
    845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874,
    848, 890, 744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170,
    912, 746, 919, 718, 714, 740,
])
# fmt: on
years = np.arange(1871, 1971)
y = (discharge - discharge.mean()) / 100  # in 10^10 m^3, around the mean
n_years = len(y)

start_precision, noise_prior, drift_prior = 0.01, (2.0, 2.0), (2.0, 0.2)
priors = [gamma_prior("noise", *noise_prior), gamma_prior("drift", *drift_prior)]
chain = MeanFieldModel(
    {"level": GaussianChain(n_years), "noise": Gamma(), "drift": Gamma()},
    [
        *priors,
        normal_likelihood(y, mean="level", precision="noise"),
        random_walk_prior("level", precision="drift", start_precision=start_precision),
    ],
).fit()
print(f"{chain.n_iter} iterations, lower bound {chain.lower_bound:.1f}")

# %%
# The same model, cut into a factor for every year
# ------------------------------------------------
# Nothing warns of it: coordinate ascent converges, at a maximum of its lower bound.
factors = {f"x{t}": UnivariateNormal() for t in range(n_years)}
cut = MeanFieldModel(
    {**factors, "noise": Gamma(), "drift": Gamma()},
    [
        *priors,
        normal_prior("x0", 0.0, precision=start_precision),
        *(normal_likelihood([y[t]], f"x{t}", "noise") for t in range(n_years)),
        *(normal_prior(f"x{t}", f"x{t - 1}", "drift") for t in range(1, n_years)),
    ],
).fit(max_iter=5000)
print(f"converged: {cut.converged}, distance to the optimum {cut.newton_decrement:.0e}")

# %%
# The exact posterior, on a grid of the two precisions
# ----------------------------------------------------
# Given both, the level is a Gaussian chain, whose log partition function is the log
# density of the precisions.
weights, means, variances, precisions = [], [], [], []
family = GaussianChain(n_years)
for noise in np.exp(np.linspace(-2.5, 2.0, 60)):
    for drift in np.exp(np.linspace(-2.0, 5.0, 80)):
        diagonal = np.full(n_years, noise)
        diagonal[1:] += drift
        diagonal[:-1] += drift
        diagonal[0] += start_precision
        natural = family.pack(noise * y, -0.5 * diagonal, np.full(n_years - 1, drift))
        log_density = family.log_partition(natural) - 0.5 * noise * y @ y
        log_density += (0.5 * n_years + noise_prior[0]) * np.log(noise)
        log_density += (0.5 * (n_years - 1) + drift_prior[0]) * np.log(drift)
        weights.append(log_density - noise_prior[1] * noise - drift_prior[1] * drift)
        moments = family.mean_parameters(natural)
        value, square = moments[:n_years], moments[n_years : 2 * n_years]
        means.append(value)
        variances.append(square - value**2)
        precisions.append((noise, drift))
weights = np.exp(np.array(weights) - logsumexp(weights))
exact_level = weights @ means
exact_sd = np.sqrt(weights @ (np.array(variances) + (means - exact_level) ** 2))
exact_precisions = weights @ precisions
precisions_sd = np.sqrt(weights @ (np.array(precisions) - exact_precisions) ** 2)

# %%
# Which of the two is right?
# --------------------------
level = {"chain": chain.mean("level.value"), "cut": np.empty(n_years)}
level_sd = {"chain": chain.std("level.value"), "cut": np.empty(n_years)}
for t in range(n_years):
    level["cut"][t] = cut.mean(f"x{t}.value")
    level_sd["cut"][t] = cut.std(f"x{t}.value")
print(
    f"{'':<10}{'noise':>16}{'drift':>16}{'level off by':>22}{'error bar / exact':>20}"
)
for label, posterior in (("chain", chain), ("cut", cut)):
    cells = [
        f"{posterior.mean(of):.2f} +- {posterior.std(of):.2f}"
        for of in ("noise.value", "drift.value")
    ]
    off = np.abs(level[label] - exact_level) / exact_sd
    ratio = level_sd[label] / exact_sd
    print(
        f"{label:<10}{cells[0]:>16}{cells[1]:>16}{f'up to {off.max():.2f} sd':>22}"
        f"{f'{ratio.min():.2f} to {ratio.max():.2f}':>20}"
    )
cells = [
    f"{m:.2f} +- {sd:.2f}"
    for m, sd in zip(exact_precisions, precisions_sd, strict=True)
]
print(f"{'exact':<10}{cells[0]:>16}{cells[1]:>16}")

# %%
figure, axes = plt.subplots(
    2, 1, figsize=(7.5, 5.6), sharex=True, sharey=True, layout="constrained"
)
titles = {"chain": "one factor for the chain", "cut": "a factor for every year"}
for ax, (label, title) in zip(axes, titles.items(), strict=True):
    ax.plot(years, discharge, ".", color="0.6", label="observed")
    scaled = discharge.mean() + 100 * exact_level
    ax.plot(years, scaled, color="black", lw=1, label="exact, +- 2 sd")
    for sign in (-2, 2):
        ax.plot(years, scaled + 100 * sign * exact_sd, color="black", lw=0.7, ls=":")
    middle, spread = discharge.mean() + 100 * level[label], 100 * level_sd[label]
    color = "#0072B2" if label == "chain" else "#D55E00"
    ax.plot(years, middle, color=color, lw=1.5, label="this fit, +- 2 sd")
    ax.fill_between(
        years, middle - 2 * spread, middle + 2 * spread, color=color, alpha=0.2
    )
    ax.set(title=title, ylabel="discharge (10$^8$ m$^3$)")
    ax.legend(loc="upper right", ncols=3, fontsize="small")
axes[-1].set_xlabel("year")
plt.show()

# %%
# The lower bound holds all constants of the densities, so that it may be compared. The
# two models are one; their bounds differ in how q is cut alone.
print(f"lower bounds: chain {chain.lower_bound:.1f}, cut {cut.lower_bound:.1f}")

# %%
# **Answer.** Yes. With one factor for the chain, the level is right to 0.14 of its error
# bar, the error bars of the level to 5 %, and those of the precisions to 7 %: that of
# the drift, 4.94, would be 1.16 by mean field. Cut into years, the model is sure of
# something else: a drift of 1.00 +- 0.33 where it is 8.94 +- 5.14, so that the level
# follows every flood, up to three error bars from where it should be. Linear response is
# a derivative at the fixed point that it is given: it cannot see that the fixed point is
# a wrong one, and neither can convergence, nor the curvature. So cut a model where its
# parts depend on each other least, and keep chains whole. Lower bounds, -183.4 and
# -196.0, tell the two apart.
