"""What the covariance costs: the three solvers of the observed information beside a plain matrix product.

"naive" is the product of the whole feature matrix (N x K(1 + P + Q), with Q precisions a component) with
itself at the speed of a large product, which is the cost of the missing information by its definition.
"primal" and "dual" are all work from the rows to a factored matrix, "matrix_free" is the standard deviation
of one mean by conjugate gradients.
"""

from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import SIZES, milliseconds, ratio, table, text, text_of
from benchmarks.problems.clusters import INFORMATION

TITLE = "Covariance"
SOLVERS = ("primal", "dual", "matrix_free")
_LARGEST = {"primal": 12_000, "dual": 8_000, "matrix_free": 20_000}  # unknowns that take less than a minute
_LARGEST_IN_QUICK_MODE = 1_000


def measure(settings):
    """A row for every problem, and for features of MNIST if it is given."""
    yield from settings.rows(INFORMATION, lambda p, settings: _row(p.simulate(), p.n_components, settings))
    for name, X in _digits(settings):
        n_samples, n_features = X.shape
        named = {"problem": name, "n_samples": n_samples, "n_features": n_features, "n_components": 2}
        yield named | _row(X, 2, settings)


def _digits(settings):
    """Yield names and features of the zeros and ones: the paper's, and from grey levels read rightly."""
    from sklearn.decomposition import PCA

    from benchmarks.problems.digits import paper_features, zeros_and_ones

    if not settings.mnist:
        return
    digits = zeros_and_ones(settings.mnist)
    if settings.pca:
        yield "MNIST, the paper's features", paper_features(digits, settings.pca)[0]
    for n_features in (25, 100):
        yield f"MNIST, {n_features}", PCA(n_features, random_state=0).fit_transform(digits.train)
    yield "MNIST, raw pixels", digits.train


def naive_flops(n_samples, n_columns):
    """Flops of the product of the feature matrix with itself."""
    return 2.0 * n_samples * n_columns**2


def _row(X, n_components, settings):
    from benchmarks.harness.inside import InformationPass
    from benchmarks.rivals.libraries import Ours, kmeans_responsibilities

    ours = Ours(n_components, n_jobs=settings.threads)
    # Pixels at the edge are constant and need the library's default noise.
    mixture = ours.fit(X, kmeans_responsibilities(X, n_components), max_iter=300, reg_covar=1e-6)
    information = InformationPass(mixture, X)
    largest = dict.fromkeys(SOLVERS, _LARGEST_IN_QUICK_MODE) if settings.quick else _LARGEST
    calls = {
        solver: lambda solver=solver: information.mean_std(solver)
        for solver in SOLVERS
        if 0 < _matrix_size(information, solver) <= largest[solver]
    }
    calls["sweep"] = ours.single_iteration(mixture, X)
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


def section(found):
    shown = table(
        [
            *SIZES,
            ("unknowns", text("n_unknowns", "{:,.0f}")),
            ("alternatives", text("n_alternatives", "{:,.0f}")),
            ("one iteration, ms", milliseconds("sweep_seconds")),
            ("naive, ms", milliseconds("naive_seconds")),
            *((f"{solver.replace('_', '-')}, ms", _solver_cell(solver)) for solver in SOLVERS),
            ("over naive", text_of(_over_naive)),
        ],
        found,
    )
    return f"""The times are those of all work from the rows to a factored matrix and one standard deviation,
by the three solvers of the observed information:

* *primal* forms the whole matrix of the unknowns from its distinct moments;
* *dual* forms a matrix of the size of the alternatives, which are the components to which rows may belong
  beside their most probable one;
* *matrix-free* makes passes over the rows, here for one standard deviation.

"Naive" is the product of the whole feature matrix (rows by unknowns) with itself at the speed of a large
matrix product: the cost of the missing information by its definition. The time in bold is that of the solver
that the estimator takes for the standard deviations of all means. The rows of MNIST need `--mnist` and
`--pca`.

{shown}
"""


def _solver_cell(solver):
    def cell(row):
        shown = milliseconds(f"{solver}_seconds")(row)
        return f"**{shown}**" if row["cheapest"] == solver and shown else shown

    return cell


def _over_naive(row):
    return ratio(f"{row['cheapest']}_seconds", "naive_seconds")(row)
