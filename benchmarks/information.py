"""What does the covariance cost? The three solvers of the observed information beside a plain Gram product.

    python benchmarks/information.py [--covariance-type diag] [--mnist mnist01.npz --pca mnist_author_pca.npz]

One BLAS thread, one process, the best of the runs, at a converged fit. "naive" is the product of the whole
feature matrix (N x K(1 + P + Q), Q precisions a component) with itself at the speed measured for a large
product here, what a dense missing information costs by its definition. "primal" and "dual" are all there is
to do from the rows to a factored matrix, "one sd" the standard deviation of one mean by conjugate gradients.
A star marks what the cost model takes for the standard deviations of all means.
"""

import argparse
import warnings

import numpy as np
from problems import seconds, simulate
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian_mixture.response import observed_information, solver_costs
from sklearn_lrvb.gaussian_mixture.sweep import sweep
from sklearn_lrvb.row_blocks import CentredRows

PROBLEMS = [
    # n_samples, n_features, n_components, distance of the centers in standard deviations
    (10_000, 2, 2, 2.5),
    (12_665, 25, 2, 3.0),
    (100_000, 10, 10, 3.0),
    (1_000_000, 10, 5, 3.0),
    (100_000, 50, 3, 3.0),
    (20_000, 100, 2, 4.0),
]
SOLVERS = ("primal", "dual", "matrix_free")
LARGEST = {"primal": 12_000, "dual": 8_000, "matrix_free": 20_000}  # unknowns, in less than a minute


def digits(mnist, pca):
    """Yield names and features of the zeros and ones: the paper's, and from grey levels read rightly."""
    pixels = np.load(mnist)["X_train"].reshape(-1, 784)
    if pca:
        projection = np.load(pca)
        signed = pixels.view(np.int8).astype(float)  # as the authors' program read them
        yield "MNIST, paper's 25", (signed - projection["pixel_mean"]) @ projection["components"].T
    for n_features in (25, 100):
        yield f"MNIST, {n_features}", PCA(n_features, random_state=0).fit_transform(pixels.astype(float))
    yield "MNIST, raw pixels", pixels.astype(float)


def product_rate():
    """Flops a second of a large matrix product."""
    matrix = np.random.default_rng(0).normal(size=(1500, 1500))
    return 2 * 1500**3 / min(seconds(matrix.__matmul__, matrix)[0] for _ in range(5))


def best(repeats, call):
    """Shortest time of a call, fewer times where it takes long."""
    times = [seconds(call)[0]]
    while len(times) < repeats and sum(times) < 10:
        times.append(seconds(call)[0])
    return min(times)


def measure(name, X, n_components, covariance_type, repeats, rate):
    """Print one row."""
    mixture = LRVBGaussianMixture(
        n_components=n_components, covariance_type=covariance_type, random_state=0, max_iter=300
    ).fit(X)
    parameters = mixture._uncertainty.map
    posterior, rows = parameters.posterior, CentredRows(X, parameters.origin)
    swept = sweep(rows, posterior)
    size = posterior.structure.n_coefficients
    n_columns = n_components * (1 + X.shape[1] + posterior.structure.n_quadratic)
    means = parameters.coordinates("means")
    sizes = {"primal": size, "dual": swept.n_alternatives, "matrix_free": size}
    naive = 2.0 * len(X) * n_columns**2 / rate
    costs = solver_costs(len(X), posterior, swept.n_alternatives, swept.n_uncertain_pairs)
    chosen = costs.cheapest(len(means))
    cells = []
    for solver in SOLVERS:
        if sizes[solver] > LARGEST[solver] or not sizes[solver]:
            cells.append(f"{'-':>9} ")
            continue

        def standard_deviation(solver=solver):
            information = observed_information(rows, posterior, swept, solver=solver)
            return information.covariance_root(means[:1])

        star = "*" if solver == chosen else " "
        cells.append(f"{1e3 * best(repeats, standard_deviation):9.1f}{star}")
    one_sweep = best(repeats, lambda: sweep(rows, posterior))
    n_samples, n_features = X.shape
    print(
        f"{name:<20}{n_samples:8d}{n_features:5d}{n_components:4d}{size:8d}{swept.n_alternatives:9d} |"
        f"{1e3 * one_sweep:8.1f}{1e3 * naive:11.1f}{''.join(cells)}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--covariance-type", default="full", choices=["full", "tied", "diag", "spherical"])
    parser.add_argument("--mnist", help="npz with X_train, the zeros and ones of MNIST (n, 784)")
    parser.add_argument("--pca", help="npz with pixel_mean and components, the paper's projection")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rate = product_rate()
    print(f"matrix product: {rate / 1e9:.0f} Gflop/s; times in ms")
    print(
        f"{'':<20}{'N':>8}{'P':>5}{'K':>4}{'D':>8}{'doubtful':>9} |{'sweep':>8}{'naive':>11}"
        f"{'primal':>9} {'dual':>9} {'one sd':>9}\n" + "-" * 104
    )
    for n_samples, n_features, n_components, distance in PROBLEMS:
        X = simulate(n_samples, n_features, n_components, distance)
        measure(f"{distance} sd apart", X, n_components, arguments.covariance_type, arguments.repeats, rate)
    if arguments.mnist:
        for name, X in digits(arguments.mnist, arguments.pca):
            measure(name, X, 2, arguments.covariance_type, arguments.repeats, rate)


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        main()
