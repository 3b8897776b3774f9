"""The check of linear response, and draws from the exact posterior, against quadrature and identities."""

import numpy as np
import pytest
from mean_field.catalogue import CATALOGUE, fitted
from mean_field.worked_models import exact_pumps
from scipy.special import logsumexp

from sklearn_lrvb.mean_field import (
    Factor,
    Linear,
    MeanFieldModel,
    Term,
    exact,
    gamma_prior,
    normal_likelihood,
    normal_prior,
)
from sklearn_lrvb.mean_field.drawn_joint import DrawnLogJoint
from sklearn_lrvb.mean_field.exponential_families import (
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    UnivariateNormal,
    Wishart,
)
from sklearn_lrvb.mean_field.posterior_check import integrated_factors, log_marginals

N_DRAWS = 5


def crossed(scale=1.0):
    """Three raters by three items, all variances unknown; the posterior, and the ratings."""
    rng = np.random.default_rng(0)
    rater, item = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
    y = rng.normal(size=3)[rater] + 0.6 * rng.normal(size=3)[item] + 0.8 * rng.normal(size=9)
    of_normal, of_gamma = (Factor(UnivariateNormal(), 3), Factor(UnivariateNormal(), 3)), [Gamma()] * 3
    model = MeanFieldModel(
        {
            **dict(zip(("rater", "item"), of_normal, strict=True)),
            "mean": UnivariateNormal(),
            **dict(zip(("noise", "raters", "items"), of_gamma, strict=True)),
        },
        [
            normal_likelihood(
                scale * y, ["mean", Linear("rater", at=rater), Linear("item", at=item)], "noise"
            ),
            normal_prior("mean", 0.0, 0.01 / scale**2),
            normal_prior("rater", 0.0, "raters"),
            normal_prior("item", 0.0, "items"),
            *(gamma_prior(of, 1.0, scale**2) for of in ("noise", "raters", "items")),
        ],
    )
    return model.fit(), y


def statistics_of(posterior, n_draws=N_DRAWS):
    """Statistics of draws of all factors from q, chain by chain."""
    draws = posterior.sample(n_draws, random_state=0)
    return {name: of.family.statistics_of(draws[name]) for name, of in posterior.factors.items()}


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_log_joint_at_draws_is_that_of_their_statistics(name):
    log_joint, statistics = fitted(name).log_joint, statistics_of(fitted(name))
    joint = DrawnLogJoint(log_joint)
    one_by_one = [{of: values[i] for of, values in statistics.items()} for i in range(N_DRAWS)]
    values = [log_joint.value(statistics) for statistics in one_by_one]
    np.testing.assert_allclose(joint.log_marginal(statistics, ()), values, rtol=1e-11)
    for of in log_joint.factors:
        expected = [log_joint.natural_parameters(statistics, of) for statistics in one_by_one]
        found = joint.natural_parameters(statistics, of)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_marginal_density_is_the_joint_over_the_conditional_ones(name):
    """log p(rest) = log p(all) - sum of the log densities of what is integrated out, whatever its values."""
    log_joint, statistics = fitted(name).log_joint, statistics_of(fitted(name))
    joint, integrated = DrawnLogJoint(log_joint), integrated_factors(log_joint)
    expected = joint.log_marginal(statistics, ())
    for of in integrated:
        natural = joint.natural_parameters(statistics, of)
        density = np.sum(natural * statistics[of], axis=-1) - log_joint.factors[of].family.log_partition(
            natural
        )
        expected = expected - density.reshape(N_DRAWS, -1).sum(axis=1)
    np.testing.assert_allclose(joint.log_marginal(statistics, integrated), expected, rtol=1e-10)


def test_weights_count_the_copies_that_are_integrated_out():
    terms = [Term([[0.3, 0.0], [1.0, 0.2]], "z", "p.log", subscripts="nk,nk,"), Term([0.5, 2.0], "p.log")]
    terms = [*terms[:1], Term(2.0, "p.log"), Term(1.0, "p.log_complement")]
    weighted = Factor(Categorical(2), 2, weights=[3.0, 1.0])
    models = [
        MeanFieldModel({"z": weighted, "p": Beta()}, terms),
        MeanFieldModel(
            {"z": Factor(Categorical(2), 4), "p": Beta()},
            [Term([[0.3, 0.0]] * 3 + [[1.0, 0.2]], "z", "p.log", subscripts="nk,nk,"), *terms[1:]],
        ),
    ]
    p = {"p": np.array([0.2, 0.7])}
    found = [log_marginals(model.log_joint, p, ("z",)) for model in models]
    np.testing.assert_allclose(*found, rtol=1e-13)
    with pytest.raises(ValueError, match=r"^'z' has copies with weights"):
        models[0].fit().sample(3, method="exact")


@pytest.mark.parametrize(
    ("family", "natural"),
    [
        (Gamma(), Gamma().natural_parameters(2.5, 0.3)),
        (Beta(), Beta().natural_parameters(2.0, 1.0)),
        (Dirichlet(3), Dirichlet(3).natural_parameters([1.0, 2.0, 0.5])),
        (UnivariateNormal(), UnivariateNormal().natural_parameters(1.0, 2.0)),
        (Wishart(3), Wishart(3).natural_parameters(4.5, np.eye(3) + 0.2)),
    ],
)
def test_volumes_of_coordinates_are_determinants(family, natural):
    coordinates = family.coordinates_of(natural, family.sample(natural, 2, 1))

    def free(u):
        value = family.from_coordinates(natural, u)
        if isinstance(family, Dirichlet) and not isinstance(family, Beta):
            return value[:-1]
        return value[np.tril_indices(3)] if value.ndim == 2 else np.atleast_1d(value)

    differences = []
    for u in coordinates:
        steps = 1e-6 * np.eye(len(u))
        jacobian = np.array([(free(u + step) - free(u - step)) / 2e-6 for step in steps])
        differences.append(np.linalg.slogdet(jacobian)[1])
    volume = family.log_volume(coordinates)
    np.testing.assert_allclose(np.diff(volume), np.diff(differences), atol=1e-7)


@pytest.mark.parametrize("name", ["location", "block location", "one factor"])
def test_where_linear_response_is_exact_nothing_shifts(name):
    check = fitted(name).posterior_check(random_state=0)
    assert check.state == "good"
    assert np.abs(check.mean_shift).max(initial=0.0) < 1e-5
    assert check.variance < 1e-10
    assert len(check.names) == len(check.mean_shift)


@pytest.mark.slow
def test_crossed_effects_are_flagged_and_exact_draws_equal_quadrature():
    """The mean given the three precisions is normal, and these are integrated on a grid."""
    posterior, y = crossed()
    check = posterior.posterior_check(random_state=0)
    assert check.state == "wrong"
    assert "Linear response may be wrong" in check._repr_html_()
    grid = np.exp(np.linspace(-4.5, 4.0, 24))
    noise, raters, items = (of.ravel() for of in np.meshgrid(grid, grid, grid))
    same_rater, same_item = np.kron(np.eye(3), np.ones((3, 3))), np.kron(np.ones((3, 3)), np.eye(3))
    parts = zip((noise, raters, items), (np.eye(9), same_rater, same_item), strict=True)
    covariance = 100.0 + sum(matrix / of[:, None, None] for of, matrix in parts)
    inverse = np.linalg.inv(covariance)
    log_weights = -0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * np.einsum("p,gpq,q->g", y, inverse, y)
    log_weights += sum(np.log(of) - of for of in (noise, raters, items))
    weights = np.exp(log_weights - logsumexp(log_weights))
    means = 100.0 * (inverse @ y).sum(axis=1)
    variances = 100.0 - 1e4 * inverse.sum(axis=(1, 2))
    mean = weights @ means
    sd = np.sqrt(weights @ (variances + (means - mean) ** 2))
    draws = posterior.sample(2000, random_state=0, method="exact")["mean"]
    assert abs(draws.mean() - mean) < 4 * sd / np.sqrt(1000)
    assert abs(draws.std() / sd - 1) < 0.12  # The tails are heavy.
    assert posterior.std("mean.value") < 0.8 * sd


@pytest.mark.slow
def test_exact_draws_of_pumps_equal_quadrature():
    posterior = fitted("pumps")
    draws = posterior.sample(4000, random_state=0, method="exact")
    drawn = np.column_stack([draws["rates"], draws["beta"]])
    mean, sd = exact_pumps()
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean), 4.5 * sd / np.sqrt(3000))
    np.testing.assert_allclose(drawn.std(axis=0) / sd, 1, atol=0.09)
    np.testing.assert_array_equal(
        draws["beta"], posterior.sample(4000, random_state=0, method="exact", names="beta")["beta"]
    )


def test_units_change_nothing():
    (plain, _), (scaled, _) = crossed(), crossed(scale=1000.0)
    checks = [of.posterior_check(random_state=0) for of in (plain, scaled)]
    np.testing.assert_allclose(checks[0].mean_shift, checks[1].mean_shift, atol=1e-6)
    np.testing.assert_allclose(checks[0].variance, checks[1].variance, rtol=1e-5)


def test_chains_that_do_not_agree_warn(monkeypatch):
    monkeypatch.setattr(exact, "_LAST_CHECK", 8)
    with pytest.warns(UserWarning, match="Not converged: 128 chains have"):
        crossed()[0].sample(3, random_state=0, method="exact")


def test_categories_that_depend_on_each_other_are_refused():
    model = MeanFieldModel(
        {"z": Categorical(2), "y": Categorical(2), "p": Beta()},
        [Term(np.eye(2), "z", "y"), Term(1.0, "p.log"), Term(1.0, "p.log_complement")],
    )
    with pytest.raises(ValueError, match="'z' and 'y' are categories that depend on each other"):
        model.fit().posterior_check()
