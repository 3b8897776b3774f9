"""How fast? A converged fit with error bars beside BayesianGaussianMixture at its defaults.

    python benchmarks/speed.py [--covariance-type diag]

Both from the same start, in turn, with one BLAS thread; medians of the runs. "off by" is the largest
distance of BayesianGaussianMixture's weights, means and precisions from the optimum, in posterior sds; for
covariance types other than full its optimum is another one, too.
"""

import argparse
import warnings

import numpy as np
from problems import seconds, simulate
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture
from threadpoolctl import threadpool_limits

from sklearn_lrvb import LRVBGaussianMixture

PROBLEMS = [
    # n_samples, n_features, n_components, distance of the centers in standard deviations
    (10_000, 2, 2, 2.5),
    (10_000, 2, 2, 5.0),
    (12_665, 25, 2, 4.0),
    (50_000, 10, 5, 4.0),
    (100_000, 2, 5, 4.0),
]


def off_by(theirs, ours):
    """Largest distance of their fit from ours in posterior standard deviations."""
    return max(
        np.max(
            np.abs(getattr(theirs, name + "_") - getattr(ours, name + "_")) / getattr(ours, name + "_std_")
        )
        for name in ("weights", "means", "precisions")
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--covariance-type", default="full", choices=["full", "tied", "diag", "spherical"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(
        "    N   P  K | ours: fit  steps    sds  influence | theirs: fit  sweeps  off by | fit ratio\n"
        + "-" * 88
    )
    for problem in PROBLEMS:
        X = simulate(*problem)
        n_samples, n_features, n_components, _ = problem
        times = []
        for _ in range(arguments.repeats):
            parameters = {
                "n_components": n_components,
                "covariance_type": arguments.covariance_type,
                "random_state": 0,
            }
            their_time, theirs = seconds(BayesianGaussianMixture(**parameters).fit, X)
            our_time, ours = seconds(LRVBGaussianMixture(**parameters).fit, X)
            sd_time, _ = seconds(getattr, ours, "posterior_std_")
            influence_time, _ = seconds(ours.influence, X)
            times.append((our_time, sd_time, influence_time, their_time))
        our_time, sd_time, influence_time, their_time = np.median(times, axis=0)
        print(
            f"{n_samples:6d} {n_features:2d} {n_components:2d} | {our_time:7.2f} s {ours.n_iter_:5d} "
            f"{sd_time:6.3f} s {influence_time:6.2f} s | {their_time:8.2f} s {theirs.n_iter_:6d} "
            f"{off_by(theirs, ours):7.2f} | {our_time / their_time:8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        main()
