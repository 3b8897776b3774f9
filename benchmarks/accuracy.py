"""How accurate are the standard deviations? LRVB and mean field against Gibbs sampling.

    python benchmarks/accuracy.py                      # simulations, about two minutes
    python benchmarks/accuracy.py --quick              # fewer and shorter chains
    python benchmarks/accuracy.py --mnist mnist01.npz --paper-features pca.npz --published mnist.npz

The last compares with the paper's published posterior of MNIST zeros and ones (Section 6.2).
"""

import argparse
import re

import numpy as np
from gibbs import effective_size, sample

from sklearn_lrvb import LRVBGaussianMixture

# rows, distance of the two components in standard deviations; the last three show where LRVB ends
SIMULATIONS = [(5000, 2.0), (5000, 2.6), (5000, 3.5), (500, 3.5), (200, 3.5), (200, 2.9)]


def simulate(n_samples, distance, seed):
    """Two Gaussians in the plane, ``distance`` standard deviations apart, of unequal shape and weight."""
    rng = np.random.default_rng(seed)
    n_first = int(0.6 * n_samples)
    first = rng.normal(size=(n_first, 2)) @ [[1.0, 0.3], [0.0, 0.9]]
    second = rng.normal(size=(n_samples - n_first, 2)) @ [[0.7, 0.0], [-0.2, 0.8]]
    return np.concatenate([first, second + [distance, 0.5 * distance]])


def errors(sd, truth):
    """Median and worst relative error."""
    relative = np.abs(sd / truth - 1)
    return f"{np.median(relative):7.1%} {relative.max():7.1%}"


def mean_field_sd(mixture):
    return np.sqrt(np.diag(mixture.get_posterior_covariance(method="mean_field")))


def against_simulations(n_draws, seeds):
    """One row a simulation, and all standard deviations pooled."""
    print("relative error of a posterior standard deviation, against Gibbs sampling")
    print(f"{'simulation':26} {'draws':>7} {'least ESS':>9}   LRVB: median worst   mean field: median worst")
    pooled = []
    for n_samples, distance in SIMULATIONS:
        for seed in seeds:
            X = simulate(n_samples, distance, seed)
            mixture = LRVBGaussianMixture(
                n_components=2, prior="flat", factorization="independent", reg_covar=0, random_state=0
            ).fit(X)
            start = (mixture.weights_, mixture.means_, mixture.precisions_)
            draws = sample(X, *start, n_draws, n_draws // 10, seed)
            truth, size = draws.std(axis=0), effective_size(draws).min()
            sd, mean_field = mixture.posterior_std_, mean_field_sd(mixture)
            if n_samples >= 5000:
                pooled.append((sd, mean_field, truth))
            print(
                f"{f'N = {n_samples}, {distance} sd, seed {seed}':26} {n_draws:7d} {size:9.0f}   "
                f"{errors(sd, truth):>18}   {errors(mean_field, truth):>24}",
                flush=True,
            )
    sd, mean_field, truth = (np.concatenate(part) for part in zip(*pooled, strict=True))
    print(f"{'pooled, N = 5000':44}   {errors(sd, truth):>18}   {errors(mean_field, truth):>24}")
    print(f"mean-field standard deviations are up to {1 - (mean_field / truth).min():.0%} too small")


def against_published(mnist, paper_features, published):
    """The paper's MNIST posterior: its own LRVB and mean-field sds, and its Gibbs run."""
    digits, pca, truth = np.load(mnist), np.load(paper_features), np.load(published)
    X = (digits["X_train"].view(np.int8) - pca["pixel_mean"]) @ pca["components"].T
    mixture = LRVBGaussianMixture(
        n_components=2, prior="flat", factorization="independent", reg_covar=0, random_state=0
    ).fit(X)
    kinds = {"log_weight": "log_pi", "mean": "mu", "precision": "Lambda"}
    ours = [re.sub(r"x(?=\d)", "", name) for name in mixture.posterior_names_]
    ours = [re.sub(r"^\w+(?=\[)", lambda found: kinds[found[0]], name) for name in ours]
    order = [ours.index(name) for name in truth["params"]]
    sd, mean_field = mixture.posterior_std_[order], mean_field_sd(mixture)[order]
    least = truth["gibbs_ess"].min()
    print(f"MNIST zeros and ones, the paper's features: {X.shape}, {len(order)} parameters")
    print(f"largest gap to the published LRVB sd  {np.abs(sd / truth['lrvb_sd'] - 1).max():.1e}")
    print(f"largest gap to the published MFVB sd  {np.abs(mean_field / truth['mfvb_sd'] - 1).max():.1e}")
    print(f"against the published Gibbs sds (least effective size {least:.0f}): median worst")
    print(f"    LRVB       {errors(sd, truth['gibbs_sd'])}")
    print(f"    mean field {errors(mean_field, truth['gibbs_sd'])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    for name in ("--mnist", "--paper-features", "--published"):
        parser.add_argument(name, metavar="PATH.npz")
    arguments = parser.parse_args()
    paths = (arguments.mnist, arguments.paper_features, arguments.published)
    if all(paths):
        against_published(*paths)
    elif any(paths):
        parser.error("--mnist, --paper-features and --published go together")
    else:
        n_draws, seeds = (3000, (0,)) if arguments.quick else (25_000, (0, 1))
        against_simulations(n_draws, seeds)


if __name__ == "__main__":
    main()
