"""Densities by name: their terms are the log densities, with all constants, at any values of the factors."""

import re

import numpy as np
import pytest
from scipy import stats

from sklearn_lrvb.mean_field import (
    Factor,
    Linear,
    MeanFieldModel,
    Term,
    bernoulli_likelihood,
    beta_prior,
    categorical_likelihood,
    categorical_prior,
    dirichlet_prior,
    exponential_likelihood,
    gamma_prior,
    multivariate_normal_likelihood,
    normal_likelihood,
    normal_prior,
    poisson_likelihood,
    random_walk_prior,
    wishart_prior,
)
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

N = 6
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N, 2)), RNG.normal(size=N)
GROUP, WEIGHTS, SLOPE = (
    np.array([0, 2, 1, 0, 2, 2]),
    np.array([1.0, 2.0, 0.0, 0.5, 1.0, 1.0]),
    RNG.normal(size=N),
)
COUNTS = np.array([0.0, 3.0, 1.0, 7.0, 2.0, 0.0])
FACTORS = {
    "mu": UnivariateNormal(),
    "a": Factor(UnivariateNormal(), 3),
    "x": Factor(UnivariateNormal(), N),
    "m": Factor(UnivariateNormal(), 2),
    "beta": MultivariateNormal(2),
    "slopes": Factor(MultivariateNormal(2), 3),
    "centres": Factor(MultivariateNormal(2), 2),
    "level": GaussianChain(N),
    "levels": Factor(GaussianChain(4), 2),
    "tau": Gamma(),
    "taus": Factor(Gamma(), 3),
    "scales": Factor(Gamma(), 2),
    "rates": Factor(Gamma(), N),
    "pairs": Factor(Gamma(), (3, 2)),
    "squares": Factor(Gamma(), (2, 2)),
    "others": Factor(MultivariateNormal(2), 3),
    "table": Factor(UnivariateNormal(), (3, 2)),
    "vectors": Factor(MultivariateNormal(2), (3, 4)),
    "Lambda": Wishart(2),
    "Lambdas": Factor(Wishart(2), 2),
    "p": Beta(),
    "ps": Factor(Beta(), 2),
    "pi": Dirichlet(2),
    "pis": Factor(Dirichlet(2), 3),
    "topics": Factor(Dirichlet(4), 2),
    "z": Factor(Categorical(2), N),
}
A = np.array([[2.0, 0.3], [0.3, 1.0]])


def normal(x, mean, precision):
    return stats.norm(mean, np.asarray(precision) ** -0.5).logpdf(x)


def vector(x, mean, precision):
    return stats.multivariate_normal(mean, np.linalg.inv(precision)).logpdf(x)


CASES = {
    "gamma": (
        gamma_prior("taus", [1.0, 2.0, 3.0], 0.5),
        lambda d: stats.gamma([1, 2, 3], scale=2).logpdf(d["taus"]),
    ),
    "gamma, shared rate": (
        gamma_prior("pairs", 2.5, "tau"),
        lambda d: stats.gamma(2.5, scale=1 / d["tau"]).logpdf(d["pairs"]),
    ),
    "gamma, own rates": (
        gamma_prior("a_taus", 2.5, "taus"),
        lambda d: stats.gamma(2.5, scale=1 / d["taus"]).logpdf(d["a_taus"]),
    ),
    "beta": (beta_prior("ps", 2.0, [1.0, 3.0]), lambda d: stats.beta(2.0, [1.0, 3.0]).logpdf(d["ps"])),
    "dirichlet": (
        dirichlet_prior("pis", 0.7),
        lambda d: [stats.dirichlet([0.7, 0.7]).logpdf(p / p.sum()) for p in d["pis"]],
    ),
    "dirichlet, vector": (
        dirichlet_prior("topics", [1.0, 2.0, 0.5, 1.0]),
        lambda d: [stats.dirichlet([1.0, 2.0, 0.5, 1.0]).logpdf(p / p.sum()) for p in d["topics"]],
    ),
    "wishart": (
        wishart_prior("Lambdas", 4.0, A),
        lambda d: [stats.wishart(4.0, np.linalg.inv(A)).logpdf(L) for L in d["Lambdas"]],
    ),
    "normal": (normal_prior("a", [0.0, 1.0, 2.0], 4.0), lambda d: normal(d["a"], [0.0, 1.0, 2.0], 4.0)),
    "normal, unknown": (normal_prior("a", "mu", "tau"), lambda d: normal(d["a"], d["mu"], d["tau"])),
    "normal, own precisions": (normal_prior("a", 0.5, "taus"), lambda d: normal(d["a"], 0.5, d["taus"])),
    "normal, known precision": (
        normal_prior("x", ["mu", 1.0, Linear("a", SLOPE, at=GROUP)], 2.0),
        lambda d: normal(d["x"], d["mu"] + 1.0 + SLOPE * d["a"][GROUP], 2.0),
    ),
    "normal, one": (normal_prior("mu", 0.3, "tau"), lambda d: normal(d["mu"], 0.3, d["tau"])),
    "normal, regression": (
        normal_prior("x", Linear("beta", X), "tau"),
        lambda d: normal(d["x"], X @ d["beta"], d["tau"]),
    ),
    "vector": (normal_prior("slopes", [1.0, 2.0], A), lambda d: vector(d["slopes"], [1.0, 2.0], A)),
    "vector, ridge": (
        normal_prior("beta", 0.5, 3.0),
        lambda d: vector(d["beta"], [0.5, 0.5], 3.0 * np.eye(2)),
    ),
    "vector, wishart": (
        normal_prior("slopes", [1.0, 2.0], "Lambda"),
        lambda d: vector(d["slopes"], [1.0, 2.0], d["Lambda"]),
    ),
    "vectors, wisharts": (
        normal_prior("centres", 0.2, "Lambdas"),
        lambda d: [vector(m, [0.2, 0.2], L) for m, L in zip(d["centres"], d["Lambdas"], strict=True)],
    ),
    "vectors, known matrices": (
        normal_prior("slopes", [[1.0, 2.0], [0.0, 1.0], [3.0, 0.5]], np.stack([A, 2.0 * A, np.eye(2)])),
        lambda d: [
            vector(x, m, L)
            for x, m, L in zip(d["slopes"], [[1, 2], [0, 1], [3, 0.5]], [A, 2.0 * A, np.eye(2)], strict=True)
        ],
    ),
    "vectors, unknown mean and matrix": (
        normal_prior("slopes", "beta", "Lambda"),
        lambda d: vector(d["slopes"] - d["beta"], np.zeros(2), d["Lambda"]),
    ),
    "vectors, sums of means": (
        normal_prior("slopes", ["beta", Linear("centres", at=[1, 0, 1]), [0.5, -1.0]], "pairs"),
        lambda d: normal(d["slopes"], d["beta"] + d["centres"][[1, 0, 1]] + [0.5, -1.0], d["pairs"]),
    ),
    "vectors, own means, known matrix": (
        normal_prior("slopes", "others", A),
        lambda d: vector(d["slopes"] - d["others"], np.zeros(2), A),
    ),
    "table": (
        normal_prior("table", ["mu", np.ones((3, 2))], "pairs"),
        lambda d: normal(d["table"], d["mu"] + 1.0, d["pairs"]),
    ),
    "table of vectors": (
        normal_prior("vectors", "beta", "scales"),
        lambda d: normal(d["vectors"], d["beta"], d["scales"]),
    ),
    "vector, gamma": (normal_prior("slopes", 0.1, "tau"), lambda d: normal(d["slopes"], 0.1, d["tau"])),
    "vectors, gammas": (
        normal_prior("slopes", 0.1, "taus"),
        lambda d: normal(d["slopes"], 0.1, d["taus"][:, None]),
    ),
    "vector, relevance": (normal_prior("beta", 0.1, "scales"), lambda d: normal(d["beta"], 0.1, d["scales"])),
    "vectors, shared relevance": (
        normal_prior("slopes", 0.1, "scales"),
        lambda d: normal(d["slopes"], 0.1, d["scales"]),
    ),
    "vectors, own relevance": (
        normal_prior("slopes", 0.1, "pairs"),
        lambda d: normal(d["slopes"], 0.1, d["pairs"]),
    ),
    "random walk": (
        random_walk_prior("levels", "tau", start_mean=1.0, start_precision=0.5),
        lambda d: [
            normal(d["levels"][:, 0], 1.0, 0.5),
            *normal(d["levels"][:, 1:], d["levels"][:, :-1], d["tau"]).T,
        ],
    ),
    "random walks": (
        random_walk_prior("levels", "scales", start_precision=0.5),
        lambda d: [
            normal(d["levels"][:, 0], 0.0, 0.5),
            *normal(d["levels"][:, 1:], d["levels"][:, :-1], d["scales"][:, None]).T,
        ],
    ),
    "autoregression": (
        random_walk_prior("level", 3.0, start_precision=0.5, memory=0.8),
        lambda d: np.append(
            normal(d["level"][1:], 0.8 * d["level"][:-1], 3.0), normal(d["level"][0], 0.0, 0.5)
        ),
    ),
    "likelihood": (normal_likelihood(Y, "mu", "tau"), lambda d: normal(Y, d["mu"], d["tau"])),
    "likelihood, weights": (
        normal_likelihood(Y, [Linear("beta", X), "mu", 0.5 * Y], "tau", weights=WEIGHTS),
        lambda d: WEIGHTS * normal(Y, X @ d["beta"] + d["mu"] + 0.5 * Y, d["tau"]),
    ),
    "likelihood, groups": (
        normal_likelihood(
            Y,
            [Linear("a", at=GROUP), Linear("slopes", X, at=GROUP), Linear("mu", SLOPE)],
            "taus",
            precision_at=GROUP,
            weights=WEIGHTS,
        ),
        lambda d: (
            WEIGHTS
            * normal(
                Y, d["a"][GROUP] + np.sum(X * d["slopes"][GROUP], axis=1) + SLOPE * d["mu"], d["taus"][GROUP]
            )
        ),
    ),
    "likelihood, known noise": (
        normal_likelihood(Y, "x", np.arange(1.0, N + 1)),
        lambda d: normal(Y, d["x"], np.arange(1.0, N + 1)),
    ),
    "likelihood, chain": (
        normal_likelihood(Y, ["level", Linear("beta", X)], "rates"),
        lambda d: normal(Y, d["level"] + X @ d["beta"], d["rates"]),
    ),
    "likelihood, mixture": (
        normal_likelihood(Y, ["m", Linear("centres", X)], "scales", given="z", weights=WEIGHTS),
        lambda d: (
            WEIGHTS * normal(Y, (d["m"] + X @ d["centres"].T)[np.arange(N), d["z"]], d["scales"][d["z"]])
        ),
    ),
    "likelihood, shared noise": (
        normal_likelihood(Y, ["m", "mu"], "tau", given="z"),
        lambda d: normal(Y, d["m"][d["z"]] + d["mu"], d["tau"]),
    ),
    "rows": (
        multivariate_normal_likelihood(X, "beta", "Lambda", weights=WEIGHTS),
        lambda d: WEIGHTS * vector(X, d["beta"], d["Lambda"]),
    ),
    "rows, groups": (
        multivariate_normal_likelihood(X, ["beta", Linear("slopes", at=GROUP), X], A, weights=WEIGHTS),
        lambda d: WEIGHTS * vector(-d["beta"] - d["slopes"][GROUP], np.zeros(2), A),
    ),
    "rows, known matrices": (
        multivariate_normal_likelihood(X, "beta", np.stack([A, np.eye(2)] * 3)),
        lambda d: [vector(x, d["beta"], L) for x, L in zip(X, [A, np.eye(2)] * 3, strict=True)],
    ),
    "rows, mixture of spheres": (
        multivariate_normal_likelihood(X, "centres", "tau", given="z"),
        lambda d: normal(X, d["centres"][d["z"]], d["tau"]),
    ),
    "rows, mixture of axes": (
        multivariate_normal_likelihood(X, "centres", "squares", given="z"),
        lambda d: normal(X, d["centres"][d["z"]], d["squares"][d["z"]]),
    ),
    "rows, mixture": (
        multivariate_normal_likelihood(X, "centres", "Lambdas", given="z"),
        lambda d: [vector(x, d["centres"][z], d["Lambdas"][z]) for x, z in zip(X, d["z"], strict=True)],
    ),
    "rows, shared matrix": (
        multivariate_normal_likelihood(X, "centres", "Lambda", given="z"),
        lambda d: [vector(x, d["centres"][z], d["Lambda"]) for x, z in zip(X, d["z"], strict=True)],
    ),
    "categories": (categorical_prior("z", "pi"), lambda d: np.log(d["pi"][d["z"]])),
    "categories at": (categorical_prior("z", "pis", at=GROUP), lambda d: np.log(d["pis"][GROUP, d["z"]])),
    "categories, known": (categorical_prior("z", [0.3, 0.7]), lambda d: np.log(np.array([0.3, 0.7])[d["z"]])),
    "words": (
        categorical_likelihood([3, 0, 1, 1, 2, 3], "topics", given="z", weights=WEIGHTS),
        lambda d: WEIGHTS * np.log(d["topics"][d["z"], [3, 0, 1, 1, 2, 3]]),
    ),
    "answers": (
        categorical_likelihood([1, 0, 1, 1, 0, 0], "pis", at=GROUP),
        lambda d: np.log(d["pis"][GROUP, [1, 0, 1, 1, 0, 0]]),
    ),
    "one answer": (categorical_likelihood([1, 0, 1], "pi"), lambda d: np.log(d["pi"][[1, 0, 1]])),
    "counts": (
        poisson_likelihood(COUNTS, "rates", exposure=2.0),
        lambda d: stats.poisson(2.0 * d["rates"]).logpmf(COUNTS),
    ),
    "counts at": (
        poisson_likelihood(COUNTS, "taus", at=GROUP, weights=WEIGHTS),
        lambda d: WEIGHTS * stats.poisson(d["taus"][GROUP]).logpmf(COUNTS),
    ),
    "counts, mixture": (
        poisson_likelihood(COUNTS, "scales", given="z"),
        lambda d: stats.poisson(d["scales"][d["z"]]).logpmf(COUNTS),
    ),
    "times": (
        exponential_likelihood(COUNTS, "tau", weights=WEIGHTS),
        lambda d: WEIGHTS * stats.expon(scale=1 / d["tau"]).logpdf(COUNTS),
    ),
    "events": (
        bernoulli_likelihood([0, 1, 1, 0, 1, 1], "p"),
        lambda d: stats.bernoulli(d["p"]).logpmf([0, 1, 1, 0, 1, 1]),
    ),
    "events, mixture": (
        bernoulli_likelihood([0, 1, 1, 0, 1, 1], "ps", given="z"),
        lambda d: stats.bernoulli(d["ps"][d["z"]]).logpmf([0, 1, 1, 0, 1, 1]),
    ),
}
FACTORS["a_taus"] = Factor(Gamma(), 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_terms_are_the_log_density(name):
    density, expected = CASES[name]
    everywhere = [
        Term(0.0 if shape == () else np.zeros(Factor.statistic_shape(_factor(f), s)), f"{f}.{s}")
        for f in FACTORS
        for s, shape in _factor(f).family.statistics.items()
    ]
    model = MeanFieldModel(FACTORS, [density, *everywhere])
    rng = np.random.RandomState(1)
    for _ in range(2):
        draws = {
            f: of.family.sample(np.broadcast_to(of.family.default_natural_parameters(), of.shape), 1, rng)[0]
            for f, of in model.factors.items()
        }
        statistics = {f: model.factors[f].family.statistics_of(draw) for f, draw in draws.items()}
        found, wanted = model.log_joint.value(statistics), np.sum(expected(draws))
        assert found == pytest.approx(wanted, rel=1e-10, abs=1e-10)


def _factor(name):
    return FACTORS[name] if isinstance(FACTORS[name], Factor) else Factor(FACTORS[name])


def test_the_bound_of_an_exact_posterior_is_the_evidence():
    """One factor, so that q is the posterior: the lower bound is log p(y)."""
    y = np.array([1.0, 2.5, 0.3])
    posterior = MeanFieldModel(
        {"mu": UnivariateNormal()}, [normal_prior("mu", 1.0, 0.5), normal_likelihood(y, "mu", 2.0)]
    ).fit()
    exact = stats.multivariate_normal(np.ones(3), 0.5 * np.eye(3) + 2.0).logpdf(y)
    assert posterior.lower_bound == pytest.approx(exact, rel=1e-12)
    counts = MeanFieldModel(
        {"rate": Gamma()}, [gamma_prior("rate", 2.0, 3.0), poisson_likelihood([4], "rate")]
    ).fit()
    assert counts.lower_bound == pytest.approx(stats.nbinom(2.0, 3.0 / 4.0).logpmf(4), rel=1e-12)


def test_rows_that_need_no_row_of_their_own_are_summed():
    """The terms of a regression have the size of its coefficients, not of the data."""
    density = normal_likelihood(np.zeros(1000), Linear("beta", np.ones((1000, 2))), "tau")
    terms = density.terms({"beta": Factor(MultivariateNormal(2)), "tau": Factor(Gamma())})
    assert max(term.coefficient.size for term in terms) == 4


def test_a_weight_of_two_is_a_row_twice():
    def fit(y, group, weights=None):
        factors = {"a": Factor(UnivariateNormal(), 3), "tau": Gamma()}
        likelihood = normal_likelihood(y, Linear("a", at=group), "tau", weights=weights)
        return MeanFieldModel(
            factors, [likelihood, normal_prior("a", 0.0, 0.1), gamma_prior("tau", 2.0, 1.0)]
        ).fit()

    weighted, repeated = (
        fit(Y, GROUP, [1, 2, 0, 1, 3, 1]),
        fit(*(np.repeat(v, [1, 2, 0, 1, 3, 1]) for v in (Y, GROUP))),
    )
    assert weighted.lower_bound == pytest.approx(repeated.lower_bound, rel=1e-12)
    np.testing.assert_allclose(weighted.std("a.value"), repeated.std("a.value"), rtol=1e-9)


COUNTED = np.array([1, 2, 0, 1, 3, 1, 2, 1, 1, 4])
CLUSTERS = np.array([0.1, 2.9, 0.4, 3.2, 3.0, 0.0, 0.2, 2.7, 0.5, 3.3])
OF_MIXTURES = {  # The factors of components, their priors, and the likelihood of some rows.
    "normal": (
        {"m": Factor(UnivariateNormal(), 2), "tau": Gamma()},
        [normal_prior("m", [0.0, 3.0], 0.5), gamma_prior("tau", 2.0, 1.0)],
        lambda rows, **named: normal_likelihood(CLUSTERS[rows], "m", "tau", **named),
    ),
    "vectors": (
        {"m": Factor(MultivariateNormal(2), 2), "Lambdas": Factor(Wishart(2), 2)},
        [normal_prior("m", [[0.0, 1.0], [3.0, 1.0]], 0.5), wishart_prior("Lambdas", 5.0, np.eye(2))],
        lambda rows, **named: multivariate_normal_likelihood(
            np.c_[CLUSTERS, np.cos(CLUSTERS)][rows], "m", "Lambdas", **named
        ),
    ),
    "counts": (
        {"rates": Factor(Gamma(), 2)},
        [gamma_prior("rates", 2.0, [1.0, 0.5])],
        lambda rows, **named: poisson_likelihood(np.round(3.0 * CLUSTERS)[rows], "rates", **named),
    ),
    "times": (
        {"rates": Factor(Gamma(), 2)},
        [gamma_prior("rates", 2.0, [1.0, 4.0])],
        lambda rows, **named: exponential_likelihood(CLUSTERS[rows], "rates", **named),
    ),
    "events": (
        {"ps": Factor(Beta(), 2)},
        [beta_prior("ps", [1.0, 5.0], [5.0, 1.0])],
        lambda rows, **named: bernoulli_likelihood((CLUSTERS > 1.0)[rows], "ps", **named),
    ),
    "words": (
        {"topics": Factor(Dirichlet(3), 2)},
        [dirichlet_prior("topics", [[3.0, 1.0, 1.0], [1.0, 1.0, 3.0]])],
        lambda rows, **named: categorical_likelihood((CLUSTERS // 1.5)[rows], "topics", **named),
    ),
}


def mixture(name, rows, weights=None, prior=None):
    factors, priors, likelihood = OF_MIXTURES[name]
    factors = {**factors, "pi": Dirichlet(2), "z": Factor(Categorical(2), len(rows))}
    terms = [*priors, dirichlet_prior("pi", 1.0), *(prior or [categorical_prior("z", "pi")])]
    terms.append(likelihood(rows, given="z", weights=weights))
    return MeanFieldModel(factors, terms)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_MIXTURES)
def test_a_weight_counts_all_that_belongs_to_a_row_of_a_mixture(name):
    """Likelihood, prior and entropy of its category: fit, bound and error bars are those of copies."""
    models = mixture(name, np.arange(10), COUNTED), mixture(name, np.repeat(np.arange(10), COUNTED))
    weighted, copies = (model.fit(tol=1e-10) for model in models)
    assert weighted.lower_bound == pytest.approx(copies.lower_bound, rel=1e-10)
    parameters = [of for of in weighted.factors if of != "z"]
    for of in parameters:
        np.testing.assert_allclose(weighted.mean_parameters[of], copies.mean_parameters[of], rtol=1e-7)
    np.testing.assert_allclose(
        weighted.covariance(*parameters), copies.covariance(*parameters), rtol=1e-6, atol=1e-9
    )
    first = np.cumsum([0, *COUNTED[:-1]])[COUNTED > 0]  # One of the copies of every row that has some.
    for of_weighted, of_copies in ((weighted.mean, copies.mean), (weighted.std, copies.std)):
        found, expected = of_weighted("z.indicator")[COUNTED > 0], of_copies("z.indicator")[first]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["vectors", "counts"])
def test_distances_to_the_optimum_count_weights(name):
    models = mixture(name, np.arange(10), COUNTED), mixture(name, np.repeat(np.arange(10), COUNTED))
    weighted, copies = (model.fit(tol=0.05, accelerate=False) for model in models)
    assert weighted.n_iter == copies.n_iter
    assert weighted.last_step == pytest.approx(copies.last_step, rel=1e-9)
    assert weighted.newton_decrement == pytest.approx(copies.newton_decrement, rel=1e-9)


def test_weights_of_a_mixture_belong_to_the_categories():
    """Terms of one's own count them too, and a model made of the parts of another keeps them."""
    model, rows = mixture("normal", np.arange(10), COUNTED), np.arange(10)
    fit = model.fit()
    halves = mixture("normal", np.r_[rows, rows], 0.5 * np.r_[COUNTED, COUNTED])
    by_term = mixture("normal", rows, COUNTED, [Term(1.0, "z", "pi.log", subscripts=",nk,k")])
    for same in (halves, by_term, MeanFieldModel(model.factors, model.terms)):
        other = same.fit()
        assert other.lower_bound == pytest.approx(fit.lower_bound, rel=1e-10)
        np.testing.assert_allclose(other.std("m.value"), fit.std("m.value"), rtol=1e-6)


def latent_classes(rows, weights=None):
    """Two classes of rows with a binary, a count and a numeric column."""
    factors = {"pi": Dirichlet(2), "p": Factor(Beta(), 2), "rates": Factor(Gamma(), 2)}
    factors |= {"m": Factor(UnivariateNormal(), 2), "taus": Factor(Gamma(), 2)}
    of_rows = {"given": "z", "weights": weights}
    densities = [
        dirichlet_prior("pi", 0.5),
        categorical_prior("z", "pi"),
        beta_prior("p", [1.0, 2.0], [2.0, 1.0]),
        gamma_prior("rates", 2.0, [4.0, 0.5]),
        normal_prior("m", 0.0, 0.1),
        gamma_prior("taus", 2.0, 1.0),
        bernoulli_likelihood((CLUSTERS > 0.3)[rows], "p", **of_rows),
        poisson_likelihood(np.round(2.0 * CLUSTERS)[rows], "rates", **of_rows),
        normal_likelihood(np.sin(7.0 * CLUSTERS)[rows], "m", "taus", **of_rows),
    ]
    return {**factors, "z": Factor(Categorical(2), len(rows))}, densities


def topics_of_texts(rows, weights=None):
    """Words of two texts, each with its own probabilities of the topics, which are copies of a factor."""
    factors = {"theta": Factor(Dirichlet(2), 2), "topics": Factor(Dirichlet(3), 2)}
    densities = [
        dirichlet_prior("theta", 1.0),
        dirichlet_prior("topics", [[3.0, 1.0, 1.0], [1.0, 1.0, 3.0]]),
        categorical_prior("z", "theta", at=rows % 2),
        categorical_likelihood((CLUSTERS // 1.5)[rows], "topics", given="z", weights=weights),
    ]
    return {**factors, "z": Factor(Categorical(2), len(rows))}, densities


def regressions(rows, weights=None):
    """Two lines with one noise, the same effects of groups in both, and known shares, which are rounded."""
    factors = {"beta": Factor(MultivariateNormal(2), 2), "a": Factor(UnivariateNormal(), 5), "tau": Gamma()}
    design, effects = np.c_[np.ones(10), np.arange(10.0) / 5.0][rows], Linear("a", at=rows // 2)
    densities = [
        normal_prior("beta", [[0.0, 0.0], [3.0, 0.0]], 0.5),
        normal_prior("a", 0.0, "tau"),
        gamma_prior("tau", 2.0, 1.0),
        categorical_prior("z", [0.333333, 0.666666]),
        normal_likelihood(
            CLUSTERS[rows], [Linear("beta", design), effects], "tau", given="z", weights=weights
        ),
    ]
    return {**factors, "z": Factor(Categorical(2), len(rows))}, densities


def noises_of_rows(rows, weights=None):
    """A precision for every one of ten rows, which all copies of the row share."""
    factors = {"m": Factor(UnivariateNormal(), 2), "taus": Factor(Gamma(), 10)}
    densities = [
        normal_prior("m", [0.0, 3.0], 0.5),
        gamma_prior("taus", 2.0, 1.0),
        categorical_prior("z", [0.4, 0.6]),
        normal_likelihood(CLUSTERS[rows], "m", "taus", precision_at=rows, given="z", weights=weights),
    ]
    return {**factors, "z": Factor(Categorical(2), len(rows))}, densities


@pytest.mark.slow
@pytest.mark.parametrize("build", [latent_classes, topics_of_texts, regressions, noises_of_rows])
def test_weights_of_rows_with_several_densities_are_those_of_copies(build):
    """The bound, all answers about parameters, draws with their covariance, and the check of them."""
    rows, start = np.arange(10), np.where(CLUSTERS[:, None] > 1.0, [0.1, 0.9], [0.9, 0.1])
    copies = np.repeat(rows, COUNTED)
    models = MeanFieldModel(*build(rows, COUNTED)), MeanFieldModel(*build(copies))
    starts = {"z.indicator": start}, {"z.indicator": start[copies]}
    weighted, repeated = (
        model.fit(of, tol=1e-12, max_iter=5000) for model, of in zip(models, starts, strict=True)
    )
    parameters = [name for name in weighted.factors if name != "z"]
    answers = [
        lambda fit: fit.lower_bound,
        *(lambda fit, name=name: fit.mean_parameters[name] for name in parameters),
        lambda fit: fit.covariance(*parameters),
        lambda fit: fit.covariance(*parameters, method="mean_field"),
        lambda fit: fit.summary().to_numpy(),
        *(lambda fit, name=name: fit.sample(5, 0, method="lrvb")[name] for name in parameters),
        lambda fit: fit.posterior_check(0).mean_shift,
        lambda fit: fit.posterior_check(0).variance,
    ]
    for answer in answers:
        np.testing.assert_allclose(answer(weighted), answer(repeated), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "density"),
    [
        ("x", normal_prior("x", 0.0, "tau")),
        ("rates", gamma_prior("rates", 2.0, "tau")),
        ("x", normal_likelihood(Y[:3], "x", "tau")),
        ("rates", normal_likelihood(Y[:3], "mu", "rates")),
        ("rates", poisson_likelihood(COUNTS[:3], "rates", weights=[2.0, 1.0, 3.0])),
    ],
)
def test_densities_refuse_weights_of_what_is_no_category(name, density):
    """Their constants, and their terms in other factors alone, would count once."""
    families = {"x": UnivariateNormal(), "rates": Gamma()}
    factors = {"mu": UnivariateNormal(), "tau": Gamma(), name: Factor(families[name], 3, weights=[2, 1, 3])}
    others = [normal_prior("mu", 0.0, 1.0), gamma_prior("tau", 2.0, 1.0)]
    message = f"terms[2] = {density!r}: {name!r} has copies with weights, which densities count for"
    with pytest.raises(ValueError, match=re.escape(message)):
        MeanFieldModel(factors, [*others, density])


def test_v_and_h_are_derivatives_in_the_means_of_one_member():
    """With weights too: differences of the expected log joint, which is linear in each factor's means."""
    posterior = mixture("normal", np.arange(10), COUNTED).fit()
    means, value = posterior.mean_parameters, posterior.log_joint.value
    places = [("z", (4, 1)), ("m", (1, 0))]

    def shifted(*steps):
        moved = {name: mean.copy() for name, mean in means.items()}
        for (name, place), step in zip(places, steps, strict=True):
            moved[name][place] += step
        return value(moved)

    second = 0.25 * (shifted(1, 1) - shifted(1, -1) - shifted(-1, 1) + shifted(-1, -1))
    row, column = (posterior.names.index(label) for label in ("z.indicator[4,1]", "m.value[1]"))
    hessian = posterior.expected_hessian()
    assert hessian[row, column] == pytest.approx(second, rel=1e-9)
    assert hessian[column, row] == hessian[row, column] != 0


def test_weights_that_differ_within_a_row_are_refused():
    factors = {"m": Factor(UnivariateNormal(), 2), "z": Factor(Categorical(2), N)}
    terms = [normal_prior("m", 0.0, 1.0), categorical_prior("z", [0.5, 0.5])]
    twice = [normal_likelihood(Y, "m", 1.0, given="z", weights=of) for of in (WEIGHTS, None)]
    message = "row 1 has the weight 1, but its copy of 'z' has 2, and a weight counts all that belongs"
    with pytest.raises(ValueError, match=re.escape(message)):
        MeanFieldModel(factors, [*terms, *twice])
    with pytest.raises(ValueError, match=re.escape("weights must be finite and at least 0; got -1")):
        Factor(Categorical(2), 3, weights=[1.0, -1.0, 2.0])
    pair = {name: Factor(Categorical(2), 3, weights=[1.0, 2.0, 3.0]) for name in "uz"}
    with pytest.raises(ValueError, match="'u' and 'z' have copies with weights and share a term"):
        MeanFieldModel(pair, [Term(1.0, "u", "z", subscripts=",nk,nk")])


@pytest.mark.parametrize(
    ("density", "message"),
    [
        (lambda: gamma_prior("nu", 1.0, 1.0), "there is no factor 'nu'; the factors are mu, a, x"),
        (lambda: gamma_prior("mu", 1.0, 1.0), "'mu' is of the family UnivariateNormal(), expected Gamma."),
        (lambda: gamma_prior("tau", -1.0, 1.0), "shape must be finite and above 0; got -1."),
        (
            lambda: gamma_prior("taus", 1.0, "scales"),
            "'scales' has copies (2,), expected none or (3,) as 'taus'.",
        ),
        (lambda: dirichlet_prior("pi", 0.0), "concentration must be finite and above 0; got 0."),
        (
            lambda: normal_prior("beta", "mu", "tau"),
            "'mu' is of the family UnivariateNormal(), expected MultivariateNormal.",
        ),
        (
            lambda: normal_prior("beta", Linear("slopes", X), "tau"),
            "'slopes' is part of the mean of a vector",
        ),
        (lambda: normal_prior("beta", "slopes", "tau"), "'slopes' has copies (3,) for 1 row: say by at"),
        (lambda: normal_prior("slopes", ["beta", "beta"], "tau"), "'beta' occurs twice"),
        (lambda: normal_prior("beta", np.zeros(3), 1.0), "the mean of 'beta' has the shape (3,), which"),
        (lambda: normal_prior("beta", 0.0, [1.0, 2.0]), "the precision has shape (2,), expected a number, a"),
        (
            lambda: normal_prior("beta", 0.0, -A),
            "the precision is not positive definite: its diagonal holds -2",
        ),
        (
            lambda: normal_prior("beta", 0.0, [[1, 0.5], [0, 1]]),
            "the precision is not symmetric: entry (0, 1) is 0.5, and entry (1, 0) is 0.",
        ),
        (lambda: normal_prior("centres", 0.0, "scales"), "the copies (2,) of 'scales' may belong to"),
        (lambda: normal_prior("mu", [1.0, 2.0], 1.0), "the mean of 'mu' has the shape (2,), which does not"),
        (lambda: normal_prior("a", 0.0, [1.0, 2.0]), "the precision has the shape (2,), which does not fit"),
        (lambda: gamma_prior("taus", [1.0, 2.0], 1.0), "for copies (2,) do not fit the copies (3,)"),
        (lambda: normal_prior("beta", 0.0, "taus"), "'taus' has copies (3,), expected none"),
        (lambda: normal_prior("a", 0.0, "scales"), "'scales' has copies (2,) for 3 rows: say by at=..."),
        (lambda: normal_likelihood([[1.0]], "mu", "tau"), "the data have shape (1, 1), expected (n,)."),
        (
            lambda: normal_likelihood([1.0, np.nan], "mu", "tau"),
            "y must be finite; got nan at 1 (1 of 2 entries). Leave such rows out, or",
        ),
        (lambda: normal_likelihood(Y, "a", "tau"), "'a' has copies (3,) for 6 rows: say by at=..."),
        (
            lambda: normal_likelihood(Y, "beta", "tau"),
            "'beta' is a vector of 2 coefficients: give it a design (n, P).",
        ),
        (
            lambda: normal_likelihood(Y, Linear("beta", X[:3]), "tau"),
            "the design of 'beta' has the shape (3, 2), expected the shape (6, 2).",
        ),
        (
            lambda: normal_likelihood(Y, Linear("a", at=GROUP[:2]), "tau"),
            "at of 'a' has shape (2,), expected a copy for each of 6 rows.",
        ),
        (
            lambda: normal_likelihood(Y, Linear("a", at=GROUP + 1), "tau"),
            "at['a'] has position 3, but the copies of 'a' are 0 to 2.",
        ),
        (
            lambda: normal_likelihood(Y, ["mu", Linear("mu", SLOPE)], "tau"),
            "'mu' occurs twice in a normal density",
        ),
        (lambda: normal_likelihood(Y, "mu", 0.0), "the precision must be finite and above 0; got 0."),
        (
            lambda: normal_likelihood(Y, "mu", "tau", weights=[1.0]),
            "weights has the shape (1,), expected the shape (6,).",
        ),
        (
            lambda: normal_likelihood(Y, "mu", "tau", weights=-WEIGHTS),
            "weights must be finite and at least 0; got -1 at 0 (5 of 6 entries).",
        ),
        (
            lambda: normal_likelihood(Y[:3], "m", "tau", given="z"),
            "'z' has copies (6,), expected one for each of 3 rows.",
        ),
        (
            lambda: normal_likelihood(Y[:4], "level", "tau"),
            "the chain 'level' has 6 steps and copies (), expected one step",
        ),
        (lambda: categorical_prior("z", [0.5, 0.6]), "probabilities must have the sum 1; got 1.1."),
        (lambda: categorical_prior("z", "pis"), "say by at=... which of them every copy of 'z' has."),
        (lambda: categorical_likelihood([0, 2], "pi"), "the data of 'pi' are categories 0 to 1; got 2 at 1."),
        (lambda: poisson_likelihood([0.5], "tau"), "y must be whole and at least 0; got 0.5 at 0"),
        (lambda: poisson_likelihood([1], "tau", exposure=0.0), "exposure must be finite and above 0; got 0."),
        (lambda: exponential_likelihood([-1.0], "tau"), "y must be finite and at least 0; got -1"),
        (lambda: bernoulli_likelihood([2], "p"), "y must be zeros and ones; got 2 at 0."),
        (
            lambda: multivariate_normal_likelihood(np.zeros((2, 3)), "beta", 1.0),
            "'beta' has 2 features, expected 3 as the vectors.",
        ),
        (
            lambda: multivariate_normal_likelihood(np.zeros(3), "beta", "Lambda"),
            "the data have shape (3,), expected (n, P).",
        ),
    ],
)
def test_densities_that_do_not_fit(density, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MeanFieldModel(FACTORS, [density()])


@pytest.mark.parametrize(
    ("density", "message"),
    [
        (lambda: normal_likelihood([], "mu", 1.0), "y has the shape (0,), expected at least one number."),
        (
            lambda: multivariate_normal_likelihood(np.zeros((3, 0)), "beta", 1.0),
            "X has the shape (3, 0), expec",
        ),
        (lambda: normal_likelihood(["a"], "mu", 1.0), "y must be real numbers; got ['a']."),
        (lambda: normal_likelihood([1j], "mu", 1.0), "y must be real numbers; got [1j]."),
        (
            lambda: normal_likelihood(np.array([1j]), "mu", 1.0),
            "y must be real numbers; got array([0.+1.j]).",
        ),
        (
            lambda: normal_likelihood(np.array(["2024-01-01"], "datetime64[D]"), "mu", 1.0),
            "y must be real numbers; got array(['2024-01-01']",
        ),
        (
            lambda: normal_likelihood(np.ma.masked_equal([1.0, 1e6], 1e6), "mu", 1.0),
            "y is masked at 1 (1 of 2 entries). Leave such rows out",
        ),
        (
            lambda: normal_likelihood([1.0, 2.0], ["mu", np.ma.masked_equal([5.0, 0.0], 5.0)], 1.0),
            "the known part of the mean is masked at 0 (1 of 2 entries).",
        ),
        (
            lambda: gamma_prior("tau", np.ma.masked, 1.0),
            "shape is masked.",
        ),
        (
            lambda: normal_likelihood([1.0], ["mu", np.inf], 1.0),
            "the known part of the mean must be finite; got",
        ),
        (
            lambda: poisson_likelihood([1, 2], "tau", exposure=[1.0, 2.0, 3.0]),
            "exposure has the shape (3,), which",
        ),
        (
            lambda: poisson_likelihood([1], "tau", exposure=np.inf),
            "exposure must be finite and above 0; got inf.",
        ),
        (
            lambda: poisson_likelihood([1, 2], "tau", weights=[1, -1]),
            "weights must be finite and at least 0; got -1",
        ),
        (lambda: categorical_likelihood([-1], "pi"), "y must be whole and at least 0; got -1 at 0"),
        (lambda: gamma_prior("tau", -1.5, "nu"), "shape must be finite and above 0; got -1.5."),
        (lambda: gamma_prior("tau", None, 1.0), "shape must be finite and above 0; got nan."),
        (lambda: gamma_prior("tau", 1.0, np.inf), "rate must be finite and above 0; got inf."),
        (lambda: beta_prior("p", "x", 1.0), "a must be real numbers; got 'x'."),
        (
            lambda: dirichlet_prior("pi", [1.0, 0.0]),
            "concentration must be finite and above 0; got 0 at 1 (1 of 2",
        ),
        (lambda: wishart_prior("Lambda", np.nan, A), "degrees_of_freedom must be finite; got nan."),
        (lambda: wishart_prior("Lambda", 3.0, "A"), "inverse_scale must be real numbers; got 'A'."),
        (
            lambda: random_walk_prior("level", 1.0, start_precision=0),
            "start_precision must be finite and above 0",
        ),
        (lambda: random_walk_prior("level", [1.0, 2.0], start_precision=1.0), "precision has the shape (2,)"),
        (
            lambda: random_walk_prior("level", 1.0, start_precision=1.0, memory="x"),
            "memory must be real numbers;",
        ),
        (
            lambda: categorical_prior("z", [0.5, np.nan]),
            "probabilities must be finite and at least 0; got nan at 1",
        ),
    ],
)
def test_numbers_are_checked_before_there_is_a_model(density, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        density()


def test_a_mask_that_hides_nothing_changes_nothing():
    factors, given = {"mu": Factor(UnivariateNormal())}, (np.ma.masked_array(Y, mask=False), Y)
    terms = [normal_likelihood(y, "mu", 1.0).terms(factors) for y in given]
    for term, expected in zip(*terms, strict=True):
        np.testing.assert_array_equal(term.coefficient, expected.coefficient)


@pytest.mark.parametrize(
    ("density", "message"),
    [
        (
            lambda: wishart_prior("Lambdas", 3.0, [np.eye(2), [[1.0, 0.9], [0.0, 1.0]]]),
            "inverse_scale is not symmetric: entry (0, 1) of matrix 1 is 0.9, and entry (1, 0) is 0.",
        ),
        (
            lambda: wishart_prior("Lambda", 3.0, np.eye(3)),
            "inverse_scale has the shape (3, 3), expected matrices",
        ),
        (
            lambda: wishart_prior("Lambda", 3.0, [[1, 2], [2, 1]]),
            "inverse_scale is not positive definite to work",
        ),
        (lambda: wishart_prior("Lambda", 1.0, A), "the degrees of freedom 1 are not above P - 1 = 1"),
        (lambda: dirichlet_prior("pi", [1.0, 2.0, 3.0]), "there are numbers for 3 categories, expected 2."),
        (lambda: categorical_prior("z", 1.0), "there are numbers for 1 categories, expected 2."),
        (
            lambda: gamma_prior("taus", [1.0, 2.0], "tau"),
            "shape has the shape (2,), which does not fit (3,).",
        ),
        (
            lambda: normal_likelihood(Y, Linear("a", at=np.ma.masked_equal(np.arange(len(Y)) % 2, 1)), 1.0),
            "at['a'] must be a vector of whole numbers",
        ),
        (
            lambda: normal_likelihood(Y, Linear("mu", "design"), 1.0),
            "the design of 'mu' must be real numbers",
        ),
        (lambda: gamma_prior("tau", 1e308, 1.0), "1 of 1 coefficients are nan or infinite."),
    ],
)
def test_numbers_that_do_not_fit_the_factor(density, message):
    with pytest.raises(ValueError, match=r"^terms\[0\] = .*" + re.escape(message)):
        MeanFieldModel(FACTORS, [density()])


def test_an_asymmetry_of_round_off_is_taken_out():
    """In any units: relative to the diagonal."""
    scale = np.array([[1e8, 1e4 * (0.5 + 1e-12)], [1e4 * 0.5, 1.0]])
    prior = wishart_prior("Lambda", 3.0, scale).terms({"Lambda": Factor(Wishart(2))})[0]
    np.testing.assert_array_equal(prior.coefficient, prior.coefficient.T)


@pytest.mark.parametrize("unit", [1e-100, 1e100, 1e150])
def test_units_beyond_the_range_of_numbers_are_refused(unit):
    terms = [normal_likelihood(unit * Y, "mu", unit**-2), normal_prior("mu", 0.0, 0.1 * unit**-2)]
    with pytest.raises(ValueError, match=r"^mu.square has the mean .*, out of the range of floating-point"):
        MeanFieldModel({"mu": UnivariateNormal()}, terms).fit()


def test_errors_name_the_density_and_its_place():
    with pytest.raises(
        ValueError, match=re.escape("terms[1] = gamma_prior('tau', shape=[...], rate=1.0): param")
    ):
        MeanFieldModel({"tau": Gamma()}, [Term(1.0, "tau.log"), gamma_prior("tau", [1.0, 2.0], 1.0)])
