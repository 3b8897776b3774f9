"""The catalogue of mean-field models on which every property test runs."""

import functools

import numpy as np
from mean_field import worked_models
from scipy import sparse

from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term
from sklearn_lrvb.mean_field.exponential_families import (
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    GaussianChain,
    MultivariateNormal,
    UnivariateNormal,
    Wishart,
)


def random_normal(n, seed=0):
    """Mean (n,) and precision (n, n) of a correlated normal."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, 2 * n))
    return rng.normal(size=n), root @ root.T / n


def regression_data(n=25, p=3, seed=1):
    """Correlated features (n, p) and responses (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return X, X @ rng.normal(size=p) + 0.5 * rng.normal(size=n)


def mixture_terms(X):
    """Factors and terms of two Gaussians with proper priors and stick-breaking weights."""
    n, p = X.shape
    k = 2
    factors = {
        "mu": Factor(MultivariateNormal(p), k),
        "Lambda": Factor(Wishart(p), k),
        "sticks": Factor(Beta(), k),
        "z": Factor(Categorical(k), n),
    }
    terms = [
        Term(0.5, "z", "Lambda.log_det", subscripts=",nk,k"),
        Term(-0.5 * np.einsum("np,nq->npq", X, X), "z", "Lambda.value", subscripts="npq,nk,kpq"),
        Term(X, "z", "mu.value", "Lambda.value", subscripts="np,nk,kq,kpq"),
        Term(-0.5, "z", "mu.outer", "Lambda.value", subscripts=",nk,kpq,kpq"),
        Term(1.0, "z", "sticks.log", subscripts=",nk,k"),
        Term(np.tri(k, k=-1), "z", "sticks.log_complement", subscripts="kj,nk,j"),
        Term(0.5, "sticks.log_complement"),
        Term(-0.05 * np.eye(p), "mu.outer", subscripts="pq,kpq"),
        Term(-1.0 * np.eye(p), "Lambda.value", subscripts="pq,kpq"),
        Term(1.0, "Lambda.log_det"),
    ]
    return factors, terms


def normal_mixture():
    """The model, and a start that tells its two components apart."""
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(9, 2)), 0.8 * rng.normal(size=(7, 2)) + [2.5, 1.0]])
    factors, terms = mixture_terms(X)
    side = np.where(np.arange(len(X)) < 9, 2.0, -2.0)
    return MeanFieldModel(factors, terms), {"z": np.stack([side, -side], axis=1)}


def latent_classes():
    """Answers of two classes of people to three yes/no questions, with copies of a Dirichlet."""
    rng = np.random.default_rng(4)
    kind = rng.random(30) < 0.4
    answers = (rng.random((30, 3)) < np.where(kind[:, None], 0.85, 0.25)).astype(float)
    # A copy for every (class, question) holds the probabilities of its two answers.
    membership = np.repeat(np.eye(2), 3, axis=0)
    question = np.tile(np.eye(3), (2, 1))
    given = np.stack([1 - answers, answers], axis=-1)
    model = MeanFieldModel(
        {"classes": Dirichlet(2), "answers": Factor(Dirichlet(2), 6), "z": Factor(Categorical(2), 30)},
        [
            Term(1.0, "z", "classes", subscripts=",nk,k"),
            Term(
                np.einsum("nja,ck,cj->nkca", given, membership, question),
                "z",
                "answers",
                subscripts="nkca,nk,ca",
            ),
            Term(0.5, "classes"),
            Term(0.5, "answers"),
        ],
    )
    return model, {"z": np.stack([3 - 2 * answers.sum(axis=1), np.zeros(30)], axis=1)}


def group_means():
    """Normal observations in groups, with group means, a grand mean and both precisions."""
    rng = np.random.default_rng(5)
    groups, per_group = 5, 6
    y = rng.normal(size=(groups, 1)) + 0.7 * rng.normal(size=(groups, per_group))
    return MeanFieldModel(
        {
            "group": Factor(UnivariateNormal(), groups),
            "grand": UnivariateNormal(),
            "between": Gamma(),
            "within": Gamma(),
        },
        [
            Term(0.5 * y.size, "within.log"),
            Term(-0.5 * np.sum(y**2), "within.value"),
            Term(y.sum(axis=1), "group.value", "within.value", subscripts="g,g,"),
            Term(-0.5 * per_group, "group.square", "within.value"),
            Term(0.5 * groups, "between.log"),
            Term(-0.5, "group.square", "between.value"),
            Term(1.0, "group.value", "grand.value", "between.value"),
            Term(-0.5 * groups, "grand.square", "between.value"),
            Term(-0.05, "grand.square"),
            Term(-1.0, "between.value"),
            Term(2.0, "between.log"),
            Term(-1.0, "within.value"),
            Term(1.0, "within.log"),
        ],
    ), None


def local_level():
    """Noisy observations of two random walks with one drift, of which some are not observed."""
    rng = np.random.default_rng(6)
    n_chains, n_steps = 2, 7
    level = np.cumsum(0.5 * rng.normal(size=(n_chains, n_steps)), axis=1)
    chain, step = np.nonzero(rng.random((n_chains, n_steps)) < 0.8)
    y = level[chain, step] + 0.7 * rng.normal(size=len(step))
    seen = np.zeros((n_chains, n_steps))
    np.add.at(seen, (chain, step), 1.0)
    total = np.zeros((n_chains, n_steps))
    np.add.at(total, (chain, step), y)
    neighbours = np.r_[1.0, np.full(n_steps - 2, 2.0), 1.0]
    return MeanFieldModel(
        {"level": Factor(GaussianChain(n_steps), n_chains), "noise": Gamma(), "drift": Gamma()},
        [
            Term(0.5 * len(y) + 1.0, "noise.log"),
            Term(-0.5 * y @ y - 1.0, "noise.value"),
            Term(total, "level.value", "noise.value", subscripts="ct,ct,"),
            Term(-0.5 * seen, "level.square", "noise.value", subscripts="ct,ct,"),
            Term(0.5 * n_chains * (n_steps - 1) + 1.0, "drift.log"),
            Term(-1.0, "drift.value"),
            Term(-0.5 * neighbours, "level.square", "drift.value", subscripts="t,ct,"),
            Term(1.0, "level.product", "drift.value", subscripts=",ct,"),
            Term(-0.05 * np.eye(1, n_steps)[0], "level.square", subscripts="t,ct"),
        ],
    ), None


def crossed_groups():
    """Counts of two crossed groupings, with rates of rows, of columns, and of their pairs."""
    rng = np.random.default_rng(7)
    row, column = rng.integers(3, size=15), rng.integers(2, size=15)
    counts = rng.poisson(4.0, size=15).astype(float)
    table = sparse.coo_array((counts, (row, column)), shape=(3, 2))
    exposure = sparse.coo_array((np.ones(15), (row, column)), shape=(3, 2))
    return MeanFieldModel(
        {"row": Factor(Gamma(), 3), "column": Factor(Gamma(), 2), "cell": Factor(Gamma(), (3, 2))},
        [
            Term(table, "row.log", subscripts="rc,r"),
            Term(counts, "column.log", subscripts="n,n", at={"column": column}),
            Term(table, "cell.log"),
            Term(-exposure, "row.value", "column.value", "cell.value", subscripts="rc,r,c,rc"),
            *(Term(2.0, f"{name}.log") for name in ("row", "column", "cell")),
            *(Term(-2.0, f"{name}.value") for name in ("row", "column", "cell")),
            Term(
                -0.1, "cell.value", "row.value", subscripts=",n,m", at={"cell": (row, column), "row": column}
            ),
        ],
    ), None


def factor_analysis(seed=0, n=60, n_features=5, n_components=2):
    """Rows X = W x + noise: what is turned in x is turned back in W."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_features, n_components))
    X = rng.normal(size=(n, n_components)) @ W.T + 0.5 * rng.normal(size=(n, n_features))
    factors = {
        "W": Factor(MultivariateNormal(n_components), n_features),
        "x": Factor(MultivariateNormal(n_components), n),
        "tau": Gamma(),
    }
    terms = [
        Term(0.5 * X.size + 1.0, "tau.log"),
        Term(-0.5 * np.sum(X**2) - 1.0, "tau.value"),
        Term(X, "W.value", "x.value", "tau.value", subscripts="np,pk,nk,"),
        Term(-0.5, "W.outer", "x.outer", "tau.value", subscripts=",pkl,nkl,"),
        Term(-0.5, "x.outer", subscripts=",nkk"),
        Term(-0.5, "W.outer", subscripts=",pkk"),
    ]
    return MeanFieldModel(factors, terms)


def one_factor():
    """A Wishart factor alone, without interactions."""
    return MeanFieldModel(
        {"Lambda": Wishart(2)},
        [Term(-np.array([[1.0, 0.3], [0.3, 2.0]]), "Lambda.value"), Term(1.5, "Lambda.log_det")],
    ), None


def _location():
    return worked_models.location_model(*random_normal(4)), None


def _block_location():
    blocks = [np.array([0, 3]), np.array([1, 2, 4])]
    return worked_models.block_location_model(*random_normal(5), blocks), None


def _regression(blocks):
    return worked_models.regression_model(*regression_data(), worked_models.Prior(), blocks), None


CATALOGUE = {
    "location": _location,
    "block location": _block_location,
    "regression": lambda: _regression([[0, 1, 2]]),
    "split regression": lambda: _regression([[0], [1, 2]]),
    "normal mixture": normal_mixture,
    "latent classes": latent_classes,
    "group means": group_means,
    "pumps": lambda: (worked_models.pumps_model(), None),
    "linkage": lambda: (worked_models.linkage_model(np.array([12, 2, 2, 4])), None),
    "local level": local_level,
    "crossed groups": crossed_groups,
    "one factor": one_factor,
}


@functools.cache
def built(name):
    """Model and start. Tests share them and must not change them."""
    return CATALOGUE[name]()


@functools.cache
def fitted(name):
    """The converged posterior of a model of the catalogue."""
    model, start = built(name)
    return model.fit(start, tol=1e-11, max_iter=20_000)


def statistics_of(posterior):
    """Names of all statistics, such as "mu.value"."""
    factors = posterior.factors.items()
    return [f"{name}.{statistic}" for name, factor in factors for statistic in factor.family.statistics]
