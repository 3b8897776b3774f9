"""Draws by linear response: their covariance, their ranges, and what cannot be drawn."""

import numpy as np
import pytest
from mean_field.catalogue import CATALOGUE, built, factor_analysis, fitted

from sklearn_lrvb.mean_field import Factor, MeanFieldModel, Term
from sklearn_lrvb.mean_field.exponential_families import Categorical, ExponentialFamily, Gamma, Wishart
from sklearn_lrvb.mean_field.quantities import coordinates

N_DRAWS = 4000


def drawn_coordinates(posterior, draws):
    """Coordinates of draws of all factors, (n_draws, d), with their covariance by linear response."""
    natural = posterior.natural_parameters
    quantities = [coordinates(name, posterior.factors[name], natural[name]) for name in draws]
    flat = [
        posterior.factors[name].family.coordinates_of(natural[name], draw).reshape(len(draw), -1)
        for name, draw in draws.items()
    ]
    means = np.concatenate([quantity.derived_means(natural[quantity.name]) for quantity in quantities])
    return np.concatenate(flat, axis=1), means, posterior._linear_response.covariance(quantities)


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_draws_have_the_covariance_of_linear_response(name):
    posterior = fitted(name)
    draws = posterior.sample(N_DRAWS, random_state=0, method="lrvb")
    discrete = {of for of, factor in posterior.factors.items() if isinstance(factor.family, Categorical)}
    assert set(draws) == set(posterior.factors) - discrete
    found, means, covariance = drawn_coordinates(posterior, draws)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - means), 5 * sd / np.sqrt(N_DRAWS))
    correlations = (found - means) / sd
    products = correlations[:, :, None] * correlations[:, None, :]
    error = np.abs(products.mean(axis=0) - covariance / np.outer(sd, sd))
    assert np.all(error <= 6 * products.std(axis=0) / np.sqrt(N_DRAWS) + 1e-9)
    for of, draw in draws.items():
        factor = posterior.factors[of]
        plain = posterior.sample(2, random_state=0, names=[of])[of]
        assert draw.shape == (N_DRAWS, *plain.shape[1:])
        assert np.all(np.isfinite(factor.family.statistics_of(draw)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal mixture", "one factor", "pumps", "local level", "linkage"])
def test_covariances_of_coordinates_respond_as_refits_do(name):
    """Cov(u, T) = d E[u] / dt, in the coordinates of the unmoved posterior, from weighted draws of q."""
    posterior = fitted(name)
    for of, factor in posterior.factors.items():
        if isinstance(factor.family, Categorical):
            continue
        natural = posterior.natural_parameters[of].reshape(-1, factor.shape[-1])[0]
        family = factor.family
        draws = family.sample(natural, 40_000, 0)
        u, T = family.coordinates_of(natural, draws), family.statistics_of(draws)
        mean, cross, covariance = family.coordinate_moments(natural)
        for found, expected in ((T, cross), (u, covariance)):
            centred = (u - mean)[:, :, None] * (found - found.mean(axis=0))[:, None, :]
            error = 5.5 * centred.std(axis=0) / np.sqrt(len(draws))
            np.testing.assert_array_less(np.abs(centred.mean(axis=0) - expected), error + 1e-12)


def test_draws_of_a_normal_posterior_are_exact():
    """The first two moments of 5 correlated numbers, of which q knows no correlation."""
    posterior = fitted("location")
    draws = np.column_stack(list(posterior.sample(N_DRAWS, random_state=0, method="lrvb").values()))
    exact = posterior.covariance(*(f"{name}.value" for name in posterior.factors))
    error = np.sqrt((exact**2 + np.outer(np.diag(exact), np.diag(exact))) / N_DRAWS)
    np.testing.assert_array_less(np.abs(np.cov(draws, rowvar=False) - exact), 5 * error)
    assert np.abs(np.corrcoef(draws, rowvar=False) - np.eye(draws.shape[1])).max() > 0.3


def test_draws_by_name_and_seed():
    posterior = fitted("pumps")
    some = posterior.sample(5, random_state=3, method="lrvb", names=["beta"])
    assert list(some) == ["beta"]
    np.testing.assert_array_equal(
        some["beta"], posterior.sample(5, random_state=3, method="lrvb", names=["beta"])["beta"]
    )
    assert list(posterior.sample(5, names=["beta"])) == ["beta"]


@pytest.mark.slow
def test_draws_that_are_refused():
    posterior = fitted("latent classes")
    with pytest.raises(ValueError, match=r"'z' has no draws by linear response: the family Categorical"):
        posterior.sample(2, method="lrvb", names=["z"])
    with pytest.raises(ValueError, match="there is no factor 'x'; the factors are classes, answers, z"):
        posterior.sample(2, names=["x"])
    with pytest.raises(ValueError, match="method='gibbs' is none of 'lrvb', 'mean_field' and 'exact'"):
        posterior.sample(2, method="gibbs")
    rotated = factor_analysis().fit(n_init=3, random_state=0, max_iter=5000)
    with pytest.raises(ValueError, match=r"'W' changes along a flat direction .* Leave it out of names"):
        rotated.sample(2, method="lrvb")
    assert rotated.sample(2, method="lrvb", names=["tau"])["tau"].shape == (2,)


@pytest.mark.parametrize("method", ["mean_field", "lrvb"])
@pytest.mark.parametrize("n_draws", [-1, 0, 2.5, "3", True])
def test_numbers_of_draws_that_are_none(n_draws, method):
    posterior = fitted("pumps")
    for draw in (posterior.sample, posterior.to_arviz):
        with pytest.raises(
            ValueError, match=f"^n_draws must be a whole number of at least 1; got {n_draws!r}"
        ):
            draw(n_draws, method=method)


@pytest.mark.parametrize("method", ["mean_field", "lrvb"])
def test_one_name_is_a_list_of_one_and_no_name_is_refused(method):
    posterior = fitted("pumps")
    draws = posterior.sample(3, random_state=0, method=method, names=["beta"])
    for names in ("beta", ["beta", "beta"]):
        again = posterior.sample(3, random_state=0, method=method, names=names)
        np.testing.assert_equal(again, draws)
    with pytest.raises(ValueError, match=r"^there is no factor to draw; name one or more of rates, beta\."):
        posterior.sample(3, method=method, names=[])


def test_categories_alone_have_no_draws_by_linear_response():
    posterior = MeanFieldModel({"z": Categorical(2)}, [Term([0.0, 1.0], "z.indicator")]).fit()
    assert list(posterior.sample(3)) == ["z"]
    with pytest.raises(ValueError, match=r"^there is no factor to draw"):
        posterior.sample(3, method="lrvb")


def test_families_without_coordinates_say_so():
    class Plain(Gamma):
        coordinates_of, coordinate_moments = (
            ExponentialFamily.coordinates_of,
            ExponentialFamily.coordinate_moments,
        )

    posterior = MeanFieldModel({"x": Plain()}, [Term(-1.0, "x.value")]).fit()
    with pytest.raises(ValueError, match="defines no coordinates"):
        posterior.sample(2, method="lrvb")


def test_matrices_are_drawn_as_bartlett_does():
    """One Wishart factor alone: linear response is q itself."""
    posterior = fitted("one factor")
    plain = posterior.sample(10, random_state=0)["Lambda"]
    np.testing.assert_allclose(
        posterior.sample(10, random_state=0, method="lrvb")["Lambda"], plain, rtol=1e-8
    )
    copies = Factor(Wishart(2), 3)
    model = MeanFieldModel(
        {"L": copies}, [Term(-np.eye(2), "L.value", subscripts="pq,kpq"), Term(1.0, "L.log_det")]
    )
    assert model.fit().sample(4, random_state=0, method="lrvb")["L"].shape == (4, 3, 2, 2)


def test_catalogue_draws_every_family():
    families = {type(f.family) for name in CATALOGUE for f in built(name)[0].factors.values()}
    assert len(families) == 8


def test_draws_in_containers_of_arviz():
    posterior = fitted("normal mixture")
    data = posterior.to_arviz(7, random_state=0)
    draws = posterior.sample(7, random_state=0, method="lrvb")
    group = data["posterior"]
    assert set(group.data_vars) == set(draws)
    assert dict(group["Lambda"].sizes) == {"chain": 1, "draw": 7, "Lambda_0": 2, "Lambda_1": 2, "Lambda_2": 2}
    np.testing.assert_array_equal(group["mu"].to_numpy()[0], draws["mu"])
