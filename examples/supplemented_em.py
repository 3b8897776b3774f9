"""
==================================================================
Supplemented EM and linear response: are they the same correction?
==================================================================

The EM algorithm finds maximum likelihood estimates where data are missing, but no
error bars. *Supplemented EM* (Meng and Rubin, 1991) adds them: from the information
I_oc that complete data would have, and the Jacobian DM of the EM map (how far an EM
step follows a change of its start), the covariance is V_SEM = I_oc^-1 (I - DM)^-1.
The paper argues (Section 3.1 and its appendix) that this is linear response with two
factors, the missing data and the parameters, in the limit of much data. Here DM is
the numerical derivative of the EM map itself, which has no notion of factors. Do the
two agree?
"""

# %%
# Supplemented EM
# ---------------
import matplotlib.pyplot as plt
import numpy as np

from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term
from sklearn_lrvb.mean_field.exponential_families import (
    Beta,
    Categorical,
    MultivariateNormal,
)


def optimum_of(em_map, n_parameters):
    """The fixed point of an EM map."""
    theta = np.zeros(n_parameters)
    for _ in range(2000):
        theta = em_map(theta)
    return theta


def supplemented_covariance(em_map, optimum, complete_information, step=1e-4):
    """V_SEM; row i of DM is the map's derivative in parameter i (Meng and Rubin)."""
    n = len(optimum)
    DM = np.array(
        [
            (em_map(optimum + e) - em_map(optimum - e)) / (2 * step)
            for e in step * np.eye(n)
        ]
    )
    return np.linalg.solve(complete_information, np.linalg.inv(np.eye(n) - DM))


# %%
# Jointly normal parameters and missing data
# ------------------------------------------
# Two parameters theta and three missing numbers are jointly normal. The E-step takes
# the conditional mean of the missing numbers, the M-step that of theta. Both steps are
# linear, so that a large step serves for DM.
rng = np.random.default_rng(0)
root, mean = rng.normal(size=(5, 10)), rng.normal(size=5)
precision = root @ root.T / 5
own, missing = slice(0, 2), slice(2, 5)


def normal_em_map(theta):
    """An E-step and an M-step."""
    off = -np.linalg.solve(
        precision[missing, missing], precision[missing, own] @ (theta - mean[own])
    )
    return mean[own] - np.linalg.solve(
        precision[own, own], precision[own, missing] @ off
    )


optimum = optimum_of(normal_em_map, 2)
sem = supplemented_covariance(normal_em_map, optimum, precision[own, own], step=1e-2)

pull = precision @ mean
model = MeanFieldModel(
    {"missing": MultivariateNormal(3), "theta": MultivariateNormal(2)},
    [
        Term(pull[own], "theta.value"),
        Term(pull[missing], "missing.value"),
        Term(-0.5 * precision[own, own], "theta.outer"),
        Term(-0.5 * precision[missing, missing], "missing.outer"),
        Term(-precision[own, missing], "theta.value", "missing.value"),
    ],
)
lrvb = model.fit().covariance("theta.value")
exact = np.linalg.inv(precision)[own, own]
print("covariance of theta: its entries 00, 01, 11")
for name, matrix in (
    ("supplemented EM", sem),
    ("linear response", lrvb),
    ("exact", exact),
):
    print(
        f"{name:<18}"
        + "".join(f"{matrix[i, j]:>14.8f}" for i, j in ((0, 0), (0, 1), (1, 1)))
    )
print(f"largest difference of the two: {np.abs(sem - lrvb).max():.0e}")

# %%
# Genetic linkage
# ---------------
# The standard example of EM (Dempster, Laird and Rubin, 1977): 197 animals in four
# cells of probabilities 1/2 + p/4, (1 - p)/4, (1 - p)/4 and p/4. The first cell is the
# sum of two that are not told apart. The parameter is the log-odds of p. Ten and a
# hundred times the data show what the difference does in the limit.
sizes, differences = [], []
print(
    f"{'observations':>12}{'log-odds by EM +- SEM sd':>28}{'LRVB sd / SEM sd - 1':>24}"
)
for multiple in (1, 10, 100):
    counts = multiple * np.array([125, 18, 20, 34])

    def linkage_em_map(log_odds, counts=counts):
        """An E-step and an M-step."""
        p = 1 / (1 + np.exp(-log_odds))
        return np.log(counts[0] * p / (2 + p) + counts[3]) - np.log(
            counts[1] + counts[2]
        )

    optimum = optimum_of(linkage_em_map, 1)
    p = 1 / (1 + np.exp(-optimum[0]))
    n_complete = counts[0] * p / (2 + p) + counts[1:].sum()
    sem_sd = np.sqrt(
        supplemented_covariance(linkage_em_map, optimum, [[n_complete * p * (1 - p)]])[
            0, 0
        ]
    )

    model = MeanFieldModel(
        {"part": Factor(Categorical(2), copies=int(counts[0])), "p": Beta()},
        [
            Term(np.log([1 / 2, 1 / 4]), "part", subscripts="k,nk"),
            Term(np.array([0.0, 1.0]), "part", "p.log", subscripts="k,nk,"),
            Term(counts[3] - 1, "p.log"),
            Term(counts[1] + counts[2] - 1, "p.log_complement"),
        ],
    )
    contrast = np.array([1.0, -1.0])  # log p - log(1 - p)
    lrvb_sd = np.sqrt(contrast @ model.fit().covariance("p") @ contrast)
    sizes.append(counts.sum())
    differences.append(lrvb_sd / sem_sd - 1)
    print(
        f"{counts.sum():>12}{f'{optimum[0]:.5f} +- {sem_sd:.5f}':>28}{differences[-1]:>24.6f}"
    )

# %%
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.loglog(sizes, differences, "o-", label="LRVB sd / SEM sd - 1")
ax.loglog(
    sizes, 1 / np.array(sizes), color="black", lw=0.8, ls="--", label="1 / observations"
)
ax.set(xlabel="observations", title="Two corrections, one limit")
ax.legend()
plt.show()

# %%
# **Answer.** In the limit, yes. For jointly normal data and parameters the covariances
# agree to round-off, and with the truth. For genetic linkage the standard deviations of
# the log-odds, 0.51860 +- 0.22002, differ by 0.6 percent, and by a tenth of that with
# ten times the data: like 1/n, as an asymptotic identity should.
#
# This is the last lesson. The course begins with
# :ref:`sphx_glr_gallery_plot_first_fit.py`.
