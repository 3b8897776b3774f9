"""
===========================================================================
Supplemented EM and linear response: are they the same correction?
===========================================================================

Supplemented EM (Meng and Rubin, 1991) derives a covariance of the maximum likelihood estimate from the
complete-data information I_oc and the Jacobian DM of the EM map: V_SEM = I_oc^-1 (I - DM)^-1. The paper
argues (Section 3.1 and its appendix) that this is linear response with two factors, the missing data and the
parameters, in the limit of much data. Here DM is the numerical derivative of the EM map itself, which has no
notion of factors.

What to see. For jointly normal missing data and parameters the two covariances agree to the error of the
difference quotients (and with the truth). For the genetic linkage data of Dempster, Laird and Rubin (1977),
the standard example of EM, the two standard deviations of the log-odds differ by 0.6 percent, and by a tenth
of that with ten times the data: like 1/n, as an asymptotic identity should.
"""

import numpy as np

from sklearn_lrvb.exponential_families import Beta, Categorical, MultivariateNormal
from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term

LINKAGE_COUNTS = np.array([125, 18, 20, 34])


def supplemented_covariance(em_map, optimum, complete_information, step=1e-4):
    """V_SEM = I_oc^-1 (I - DM)^-1; row i of DM is the map's derivative in parameter i (Meng and Rubin)."""
    n = len(optimum)
    DM = np.array([(em_map(optimum + e) - em_map(optimum - e)) / (2 * step) for e in step * np.eye(n)])
    return np.linalg.solve(complete_information, np.linalg.inv(np.eye(n) - DM))


def iterate(em_map, start, n_iter=2000):
    """The fixed point of an EM map."""
    for _ in range(n_iter):
        start = em_map(start)
    return start


# Jointly normal parameters and missing data.


def normal_em_map(mean, precision, n_parameters):
    """theta -> argmax over theta at the conditional mean of the missing data."""
    own, missing = slice(n_parameters), slice(n_parameters, None)

    def em_map(theta):
        deviation = -np.linalg.solve(
            precision[missing, missing], precision[missing, own] @ (theta - mean[own])
        )
        return mean[own] - np.linalg.solve(precision[own, own], precision[own, missing] @ deviation)

    return em_map


def normal_model(mean, precision, n_parameters):
    """Two factors: theta, and the missing data."""
    own, missing = slice(n_parameters), slice(n_parameters, None)
    pull = precision @ mean
    return MeanFieldModel(
        {"missing": MultivariateNormal(len(mean) - n_parameters), "theta": MultivariateNormal(n_parameters)},
        [
            Term(pull[own], "theta.value"),
            Term(pull[missing], "missing.value"),
            Term(-0.5 * precision[own, own], "theta.outer"),
            Term(-0.5 * precision[missing, missing], "missing.outer"),
            Term(-precision[own, missing], "theta.value", "missing.value"),
        ],
    )


def normal_case():
    """V_SEM, LRVB covariance and true covariance of theta."""
    rng = np.random.default_rng(0)
    n_parameters, n = 2, 5
    root = rng.normal(size=(n, 2 * n))
    precision, mean = root @ root.T / n, rng.normal(size=n)
    em_map = normal_em_map(mean, precision, n_parameters)
    optimum = iterate(em_map, np.zeros(n_parameters))
    complete = precision[:n_parameters, :n_parameters]
    sem = supplemented_covariance(em_map, optimum, complete, step=1e-2)
    lrvb = normal_model(mean, precision, n_parameters).fit().covariance("theta.value")
    return sem, lrvb, np.linalg.inv(precision)[:n_parameters, :n_parameters]


# Genetic linkage: cells (1/2 + p/4, (1 - p)/4, (1 - p)/4, p/4); the first is the sum of two unobserved cells.


def linkage_em_map(counts):
    """log-odds of p -> log-odds after an E-step and an M-step."""

    def em_map(log_odds):
        p = 1 / (1 + np.exp(-log_odds))
        second_part = counts[0] * p / (2 + p)
        return np.log(second_part + counts[3]) - np.log(counts[1] + counts[2])

    return em_map


def linkage_model(counts):
    """p, its prior flat in the log-odds, and to which part of the first cell every observation belongs."""
    return MeanFieldModel(
        {"part": Factor(Categorical(2), copies=int(counts[0])), "p": Beta()},
        [
            Term(np.log([1 / 2, 1 / 4]), "part", subscripts="k,nk"),
            Term(np.array([0.0, 1.0]), "part", "p.log", subscripts="k,nk,"),
            Term(counts[3] - 1, "p.log"),
            Term(counts[1] + counts[2] - 1, "p.log_complement"),
        ],
    )


def linkage_case(multiple):
    """EM's estimate of the log-odds, its SEM standard deviation and that of LRVB."""
    counts = multiple * LINKAGE_COUNTS
    em_map = linkage_em_map(counts)
    optimum = iterate(em_map, np.zeros(1))
    p = 1 / (1 + np.exp(-optimum[0]))
    n_complete = counts[0] * p / (2 + p) + counts[1:].sum()
    sem = supplemented_covariance(em_map, optimum, np.array([[n_complete * p * (1 - p)]]))
    contrast = np.array([1.0, -1.0])
    lrvb = contrast @ linkage_model(counts).fit().covariance("p") @ contrast
    return optimum[0], np.sqrt(sem[0, 0]), np.sqrt(lrvb)


def main():
    """Compare both methods in both models."""
    sem, lrvb, exact = normal_case()
    print("jointly normal: covariance of theta")
    print(f"  supplemented EM {sem[0, 0]:.8f} {sem[0, 1]:.8f} {sem[1, 1]:.8f}")
    print(f"  LRVB            {lrvb[0, 0]:.8f} {lrvb[0, 1]:.8f} {lrvb[1, 1]:.8f}")
    errors = np.abs(sem - lrvb).max(), np.abs(lrvb - exact).max()
    print(f"  largest differences: {errors[0]:.0e}, from the truth {errors[1]:.0e}\n")
    print("genetic linkage: log-odds")
    print(f"{'observations':>14}{'EM +- SEM sd':>24}{'LRVB sd / SEM sd - 1':>24}")
    for multiple in (1, 10, 100):
        estimate, sem_sd, lrvb_sd = linkage_case(multiple)
        estimated = f"{estimate:.5f} +- {sem_sd:.5f}"
        print(f"{multiple * LINKAGE_COUNTS.sum():>14}{estimated:>24}{lrvb_sd / sem_sd - 1:>24.6f}")


if __name__ == "__main__":
    main()
