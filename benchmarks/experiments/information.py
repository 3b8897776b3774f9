"""What does the covariance cost? The three solvers of the observed information beside a plain Gram product.

"naive" is the product of the whole feature matrix (N x K(1 + P + Q), Q precisions a component) with itself at
the speed of a large product: what the missing information costs by its definition. "primal" and "dual" are
all there is to do from the rows to a factored matrix, "matrix_free" the standard deviation of one mean by
conjugate gradients.
"""

from digits import paper_features, zeros_and_ones
from measuring import summary
from problems import INFORMATION
from rivals import InformationPass, Ours, kmeans_responsibilities
from sklearn.decomposition import PCA

SOLVERS = ("primal", "dual", "matrix_free")
_LARGEST = {"primal": 12_000, "dual": 8_000, "matrix_free": 20_000}  # unknowns, in less than a minute
_LARGEST_IN_QUICK_MODE = 1_000


def measure(settings):
    yield from settings.rows(INFORMATION, lambda p, settings: _row(p.simulate(), p.n_components, settings))
    for name, X in _digits(settings):
        n_samples, n_features = X.shape
        named = {"problem": name, "n_samples": n_samples, "n_features": n_features, "n_components": 2}
        yield named | _row(X, 2, settings)


def _digits(settings):
    """Yield names and features of the zeros and ones: the paper's, and from grey levels read rightly."""
    if not settings.mnist:
        return
    digits = zeros_and_ones(settings.mnist)
    if settings.pca:
        yield "MNIST, the paper's features", paper_features(digits, settings.pca)[0]
    for n_features in (25, 100):
        yield f"MNIST, {n_features}", PCA(n_features, random_state=0).fit_transform(digits.train)
    yield "MNIST, raw pixels", digits.train


def naive_flops(n_samples, n_columns):
    """Of the product of the feature matrix with itself."""
    return 2.0 * n_samples * n_columns**2


def _row(X, n_components, settings):
    ours = Ours(n_components, n_jobs=settings.threads)
    # pixels at the edge are constant, which takes the library's default noise
    mixture = ours.fit(X, kmeans_responsibilities(X, n_components), max_iter=300, reg_covar=1e-6)
    information = InformationPass(mixture, X)
    largest = dict.fromkeys(SOLVERS, _LARGEST_IN_QUICK_MODE) if settings.quick else _LARGEST
    calls = {
        solver: lambda solver=solver: information.mean_std(solver)
        for solver in SOLVERS
        if 0 < _matrix_size(information, solver) <= largest[solver]
    }
    calls["sweep"] = ours.sweeper(mixture, X)
    return {
        **summary(settings.clock.interleaved(calls)),
        "naive_seconds": naive_flops(len(X), information.n_columns) / settings.product_rate,
        "n_unknowns": information.n_unknowns,
        "n_alternatives": information.n_alternatives,
        "cheapest": information.cheapest(),
        "product_gflops": settings.product_rate / 1e9,
    }


def _matrix_size(information, solver):
    return information.n_alternatives if solver == "dual" else information.n_unknowns
