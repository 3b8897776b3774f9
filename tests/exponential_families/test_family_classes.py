"""Every family class against the identities of `check_family`, and against scipy's densities."""

import numpy as np
import pytest
import scipy.stats
from mean_field_catalogue import example

from sklearn_lrvb.exponential_families import (
    Beta,
    Categorical,
    Dirichlet,
    ExponentialFamily,
    Gamma,
    MultivariateNormal,
    NaturalParameterError,
    UnivariateNormal,
    Wishart,
    check_family,
)

normal, gamma, beta = UnivariateNormal(), Gamma(), Beta()
trivariate, dirichlet = MultivariateNormal(3), Dirichlet(4)
SCALE = np.array([[2.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 3.0]])

ORDINARY = [
    (normal, normal.natural_parameters(1.3, 2.0)),
    (MultivariateNormal(1), MultivariateNormal(1).natural_parameters([-1.0], [[3.0]])),
    (trivariate, trivariate.natural_parameters([1.0, -2.0, 0.5], SCALE)),
    (gamma, gamma.natural_parameters(2.5, 0.3)),
    (Wishart(1), Wishart(1).natural_parameters(1.7, [[0.5]])),
    (Wishart(3), Wishart(3).natural_parameters(4.5, SCALE)),
    (dirichlet, dirichlet.natural_parameters([0.3, 1.0, 4.0, 20.0])),
    (Dirichlet(1), Dirichlet(1).natural_parameters([3.0])),
    (beta, beta.natural_parameters(0.5, 3.0)),
    (Categorical(4), np.array([0.0, 1.0, -2.0, 0.3])),
    (Categorical(1), np.array([5.0])),
    (example("bring_your_own_model")["VonMises"](), np.array([3.0, -1.0])),
]
EXTREME = [
    (normal, normal.natural_parameters(1e4, 1.0)),
    (normal, normal.natural_parameters(-1e-5, 1e8)),
    (trivariate, trivariate.natural_parameters([100.0, -2.0, 0.5], np.diag([1e4, 1.0, 1e-4]))),
    (gamma, gamma.natural_parameters(0.01, 1e3)),
    (gamma, gamma.natural_parameters(1e6, 1e-3)),
    (Wishart(3), Wishart(3).natural_parameters(2.1, SCALE)),
    (Wishart(2), Wishart(2).natural_parameters(1e5, 1e4 * SCALE[:2, :2])),
    (dirichlet, dirichlet.natural_parameters([0.01, 1e5, 1.0, 0.2])),
    (beta, beta.natural_parameters(2e3, 0.02)),
    (Categorical(3), np.array([1e4, 1e4 + 1, 0.0])),
    (Categorical(2), np.array([0.0, -30.0])),
]


def case_id(value):
    return type(value).__name__ if isinstance(value, ExponentialFamily) else ""


@pytest.mark.parametrize(("family", "natural"), ORDINARY, ids=case_id)
def test_identities(family, natural):
    check_family(family, natural)
    check_family(family, family.default_natural_parameters())


@pytest.mark.parametrize(("family", "natural"), EXTREME, ids=case_id)
def test_identities_at_the_extremes(family, natural):
    check_family(family, natural, n_draws=0)


@pytest.mark.parametrize(
    ("family", "natural", "scipys"),
    [
        (normal, normal.natural_parameters(1.3, 4.0), scipy.stats.norm(1.3, 0.5)),
        (
            trivariate,
            trivariate.natural_parameters([1.0, -2.0, 0.5], np.linalg.inv(SCALE)),
            scipy.stats.multivariate_normal([1.0, -2.0, 0.5], SCALE),
        ),
        (gamma, gamma.natural_parameters(2.5, 0.3), scipy.stats.gamma(2.5, scale=1 / 0.3)),
        (
            Wishart(3),
            Wishart(3).natural_parameters(4.5, np.linalg.inv(SCALE)),
            scipy.stats.wishart(4.5, SCALE),
        ),
        (
            dirichlet,
            dirichlet.natural_parameters([0.3, 1.0, 4.0, 20.0]),
            scipy.stats.dirichlet([0.3, 1.0, 4.0, 20.0]),
        ),
        (beta, beta.natural_parameters(0.5, 3.0), scipy.stats.beta(0.5, 3.0)),
        (
            Categorical(3),
            np.log([0.2, 0.5, 0.3]) + 7.0,
            scipy.stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3])),
        ),
    ],
    ids=case_id,
)
def test_density_has_all_its_constants(family, natural, scipys):
    log_density = getattr(scipys, "logpdf", None) or scipys.logpmf
    if isinstance(family, Categorical):
        log_density = scipys.logpmf
    for value in family.sample(natural, 5, 0):
        found = family.statistics_of(value) @ natural - family.log_partition(natural)
        assert found == pytest.approx(float(np.squeeze(log_density(value))), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(("family", "natural"), ORDINARY + EXTREME, ids=case_id)
def test_pack_and_unpack(family, natural):
    np.testing.assert_array_equal(family.pack(*family.unpack(natural)), natural)
    copies = np.stack([natural, family.default_natural_parameters()])
    entries = family.unpack(copies)
    assert [entry.shape for entry in entries] == [(2, *shape) for shape in family.statistics.values()]
    np.testing.assert_array_equal(family.pack(*entries), copies)


def test_log_partition_depends_on_the_symmetric_part():
    skew = np.array([[0.0, 0.2, 0.0], [-0.2, 0.0, 0.1], [0.0, -0.1, 0.0]])
    for family, natural in ((trivariate, ORDINARY[2][1]), (Wishart(3), ORDINARY[5][1])):
        moved = natural.copy()
        matrix = next(name for name, shape in family.statistics.items() if len(shape) == 2)
        moved[family.slices[matrix]] += skew.ravel()
        assert family.log_partition(moved) == pytest.approx(family.log_partition(natural), rel=1e-14)
        np.testing.assert_allclose(family.mean_parameters(moved), family.mean_parameters(natural), rtol=1e-12)


def test_categorical_keeps_its_digits_near_certainty():
    p = np.exp(-40.0)
    covariance = Categorical(2).covariance(np.array([0.0, -40.0]))
    np.testing.assert_allclose(covariance, p * np.array([[1.0, -1.0], [-1.0, 1.0]]), rtol=1e-14)
    assert Categorical(2).log_partition(np.array([1e308, 1e308])) == 1e308


@pytest.mark.parametrize(
    ("family", "natural", "statistic", "message"),
    [
        (normal, [[1.0, -0.5], [0.0, 0.3]], "square", r"smallest eigenvalue -0.6 \(copy 1\)"),
        (
            trivariate,
            np.append(np.zeros(3), np.diag([-1.0, 0.15, -1.0])),
            "outer",
            r"smallest eigenvalue -0.3",
        ),
        (gamma, [1.0, 0.0], "value", "the rate -1 is not positive"),
        (gamma, [-1.0, -1.5], "log", "the shape -0.5 is not positive"),
        (Wishart(2), np.append(-np.eye(2), -1.1), "log_det", "0.8 are not above P - 1 = 1"),
        (Wishart(2), np.append(np.diag([-1.0, 0.1]), 1.0), "value", "smallest eigenvalue -0.2"),
        (dirichlet, [0.0, -1.25, 0.0, 0.0], "log", "the concentration -0.25 is not positive"),
        (beta, [0.0, -2.0], "log_complement", "the concentration -1 is not positive"),
        (Categorical(2), [[[0.0, 1.0]], [[0.0, -np.inf]]], "indicator", r"-inf is not finite \(copy 1, 0\)"),
    ],
    ids=case_id,
)
def test_domain(family, natural, statistic, message):
    with pytest.raises(NaturalParameterError, match=message) as raised:
        family.check(np.asarray(natural, dtype=float))
    assert raised.value.statistic == statistic


def test_length_of_natural_parameters():
    with pytest.raises(ValueError, match=r"Gamma takes natural parameters \(..., 2\), got shape \(3,\)"):
        gamma.check(np.zeros(3))


@pytest.mark.parametrize("family", [normal, gamma, beta, Wishart(2), Categorical(3)], ids=case_id)
def test_random_state(family):
    natural = family.default_natural_parameters()
    first, again = (family.sample(natural, 3, state) for state in (7, np.random.RandomState(7)))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, family.sample(natural, 3, 8))


class TestCheckFamilyFinds:
    """A family with one fault: the check names it."""

    def check(self, message, **faults):
        faulty = type("Faulty", (Gamma,), faults)()
        with pytest.raises(AssertionError, match=message):
            check_family(faulty, gamma.natural_parameters(2.5, 0.3))

    def test_wrong_mean(self):
        def mean_parameters(self, natural):
            return Gamma.mean_parameters(self, natural) * (1 + 1e-5)

        self.check("mean_parameters is not grad A: at value", mean_parameters=mean_parameters)

    def test_wrong_covariance(self):
        def covariance(self, natural):
            return Gamma.covariance(self, natural) * (1 + 1e-5)

        self.check("covariance is not the Jacobian of mean_parameters", covariance=covariance)

    def test_asymmetric_covariance(self):
        def covariance(self, natural):
            return Gamma.covariance(self, natural) + [[0.0, 1e-15], [0.0, 0.0]]

        self.check("covariance is not exactly symmetric: off by", covariance=covariance)

    def test_indefinite_covariance(self):
        def covariance(self, natural):
            return Gamma.covariance(self, natural) * [[1.0, 2.0], [2.0, 1.0]]

        self.check("covariance is not positive semidefinite", covariance=covariance)

    def test_negative_variance(self):
        def covariance(self, natural):
            return Gamma.covariance(self, natural) * [[1.0, 0.0], [0.0, -1.0]]

        self.check(r"covariance has a negative variance: -.* of log\[0\]", covariance=covariance)

    def test_mean_of_draws(self):
        def sample(self, natural, n_draws, random_state=None):
            return 1.1 * Gamma.sample(self, natural, n_draws, random_state)

        self.check("the mean of the statistics of draws", sample=sample)

    def test_covariance_of_draws(self):
        def statistics_of(self, value):
            statistics = Gamma.statistics_of(self, value)
            mean = statistics.mean(axis=0)
            return mean + 1.2 * (statistics - mean)

        self.check("the covariance of the statistics of draws", statistics_of=statistics_of)

    def test_domain(self):
        self.check("check accepts nan", check=lambda self, natural: None)

    def test_shapes(self):
        def log_partition(self, natural):
            return Gamma.log_partition(self, natural)[..., None]

        self.check(r"log_partition has shape \(1,\), expected \(\)", log_partition=log_partition)

    def test_copies(self):
        def mean_parameters(self, natural):
            return np.broadcast_to(
                Gamma.mean_parameters(self, natural[(0,) * (natural.ndim - 1)]), natural.shape
            )

        self.check("mean_parameters of copy .* is not that of the member", mean_parameters=mean_parameters)

    def test_copies_of_draws(self):
        def sample(self, natural, n_draws, random_state=None):
            return Gamma.sample(self, natural[(0,) * (natural.ndim - 1)], n_draws, random_state)

        self.check("sample of copies", sample=sample)
