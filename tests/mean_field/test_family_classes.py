"""Every family class against the identities of `check_family`, and against scipy's densities."""

import pickle

import numpy as np
import pytest
import scipy.special
import scipy.stats

from sklearn_lrvb.distributions.dirichlet import log_partition as dirichlet_log_partition
from sklearn_lrvb.distributions.special_functions import stirling_remainder
from sklearn_lrvb.mean_field.exponential_families import (
    Beta,
    Categorical,
    Dirichlet,
    ExponentialFamily,
    Gamma,
    GaussianChain,
    MultivariateNormal,
    NaturalParameterError,
    UnivariateNormal,
    Wishart,
    check_family,
)

normal, gamma, beta = UnivariateNormal(), Gamma(), Beta()
trivariate, dirichlet = MultivariateNormal(3), Dirichlet(4)
chain = GaussianChain(4)
SCALE = np.array([[2.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 3.0]])

ORDINARY = [
    (normal, normal.natural_parameters(1.3, 2.0)),
    (MultivariateNormal(1), MultivariateNormal(1).natural_parameters([-1.0], [[3.0]])),
    (trivariate, trivariate.natural_parameters([1.0, -2.0, 0.5], SCALE)),
    (gamma, gamma.natural_parameters(2.5, 0.3)),
    (Wishart(1), Wishart(1).natural_parameters(1.7, [[0.5]])),
    (Wishart(3), Wishart(3).natural_parameters(4.5, SCALE)),
    (dirichlet, dirichlet.natural_parameters([0.3, 1.0, 4.0, 20.0])),
    (chain, chain.natural_parameters([1.0, -2.0, 0.5, 0.0], [1.0, 2.0, 3.0, 2.0], [-0.8, 1.1, -1.5])),
    (GaussianChain(2), GaussianChain(2).natural_parameters([0.3, 2.0], [1.0, 4.0], [1.5])),
    (Dirichlet(1), Dirichlet(1).natural_parameters([3.0])),
    (beta, beta.natural_parameters(0.5, 3.0)),
    (Categorical(4), np.array([0.0, 1.0, -2.0, 0.3])),
    (Categorical(1), np.array([5.0])),
]
EXTREME = [
    (normal, normal.natural_parameters(1e4, 1.0)),
    (normal, normal.natural_parameters(-1e-5, 1e8)),
    (trivariate, trivariate.natural_parameters([100.0, -2.0, 0.5], np.diag([1e4, 1.0, 1e-4]))),
    (chain, chain.natural_parameters(np.full(4, 50.0), [1.0, 1e4, 1e-2, 1e-4], [-50.0, 0.1, -5e-4])),
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


@pytest.mark.slow
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
def test_pack_puts_every_statistic_into_its_slice(family, natural):
    copies = np.stack([natural, family.default_natural_parameters()])
    entries = [copies[:, family.slices[name]].reshape(2, *shape) for name, shape in family.statistics.items()]
    np.testing.assert_array_equal(family.pack(*entries), copies)
    np.testing.assert_array_equal(family.pack(*(entry[0] for entry in entries)), natural)


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
        (normal, [[1.0, -0.5], [0.0, 0.3]], "square", r"precision .* its diagonal holds -0.6 \(copy 1\)"),
        (
            MultivariateNormal(2),
            [[0.0, 0.0, -2.0, 0.0, 0.0, -1.0], [0.0, 0.0, -0.5, -0.7, -0.7, -0.5]],
            "outer",
            r"precision is not .* smallest eigenvalue -0.4 once it is scaled to unit diagonal \(copy 1\)",
        ),
        (
            MultivariateNormal(2),
            np.append([0.0, 0.0], -np.ones((2, 2))),
            "outer",
            "precision is not positive definite to working precision: smallest eigenvalue",
        ),
        (
            Wishart(2),
            np.append(-np.array([[1e8, 1.0], [1.0, 1e-8]]), 1.0),
            "value",
            "inverse scale is not positive definite to working precision: smallest eigenvalue",
        ),
        (
            trivariate,
            np.append(np.zeros(3), np.diag([-1.0, 0.15, -1.0])),
            "outer",
            "its diagonal holds -0.3",
        ),
        (chain, [*np.zeros(4), -1.0, -1.0, 0.5, -1.0, *np.zeros(3)], "square", "its diagonal holds -1"),
        (
            GaussianChain(2),
            [[0.0, 0.0, -0.5, -0.5, 0.5], [0.0, 0.0, -0.5, -0.5, 1.2]],
            "product",
            r"not positive definite to working precision: smallest pivot -0.44 \(copy 1\)",
        ),
        (gamma, [1.0, 0.0], "value", "the rate -1 is not positive"),
        (gamma, [-1.0, -1.5], "log", "the shape -0.5 is not positive"),
        (Wishart(2), np.append(-np.eye(2), -1.1), "log_det", "0.8 are not above P - 1 = 1"),
        (Wishart(2), np.append(np.diag([-1.0, 0.1]), 1.0), "value", "its diagonal holds -0.2"),
        (Wishart(3), np.append(-np.eye(3), -1.0), "log_det", "freedom 2 are not above P - 1 = 2"),
        (dirichlet, [0.0, 0.0, -1.0, 0.0], "log", "the concentration 0 is not positive"),
        (beta, [[0.0, 1.0], [-1.0, 0.0]], "log", r"the concentration 0 is not positive \(copy 1\)"),
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
    copied = pickle.loads(pickle.dumps(raised.value))
    assert (str(copied), copied.statistic) == (str(raised.value), statistic)
    assert copied.copy == raised.value.copy


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_domain_does_not_depend_on_units(scale):
    """A nearly singular matrix, and one that is well conditioned apart from its units."""
    units = np.array([1.0, scale])
    for correlation, proper in ((1 - 1e-13, True), (1 - 1e-15, False), (-1 + 1e-15, False), (0.0, True)):
        precision = np.array([[1.0, correlation], [correlation, 1.0]]) * np.outer(units, units)
        family = MultivariateNormal(2)
        natural = family.natural_parameters([0.0, 0.0], precision)
        if proper:
            family.check(natural)
        else:
            with pytest.raises(NaturalParameterError, match="to working precision"):
                family.check(natural)


@pytest.mark.parametrize("family", [MultivariateNormal, Wishart, Dirichlet, Categorical])
@pytest.mark.parametrize("size", [0, -1, 2.0, True, "2", None])
def test_sizes_that_are_refused(family, size):
    with pytest.raises(ValueError, match=f"must be a whole number of at least 1; got {size!r}"):
        family(size)
    assert family(np.int64(2)) == family(2)


@pytest.mark.parametrize(("family", "natural"), ORDINARY[:-1], ids=case_id)
def test_lists_and_single_precision(family, natural):
    """Every public function takes what numpy can turn into an array of floats."""
    single = natural.astype(np.float32)
    for method in ("log_partition", "mean_parameters", "covariance"):
        expected = getattr(family, method)(natural)
        np.testing.assert_array_equal(getattr(family, method)(natural.tolist()), expected)
        found = getattr(family, method)(single)
        assert np.asarray(found).dtype == float
        np.testing.assert_array_equal(found, getattr(family, method)(single.astype(float)))
    family.check(natural.tolist())
    draws = family.sample(natural.tolist(), 3, 0)
    np.testing.assert_array_equal(draws, family.sample(natural, 3, 0))
    np.testing.assert_array_equal(family.statistics_of(draws.tolist()), family.statistics_of(draws))


def test_a_chain_is_a_multivariate_normal():
    """Every step of two copies at once, which are one long chain within."""
    rng = np.random.default_rng(0)
    beside = rng.normal(size=(2, 5))
    diagonal = np.abs(np.pad(beside, ((0, 0), (0, 1)))) + np.abs(np.pad(beside, ((0, 0), (1, 0)))) + 0.3
    mean, family, whole = rng.normal(size=(2, 6)), GaussianChain(6), MultivariateNormal(6)
    natural = family.natural_parameters(mean, diagonal, beside)
    precision = np.einsum("ct,ts->cts", diagonal, np.eye(6))
    precision[:, np.arange(5), np.arange(1, 6)] = precision[:, np.arange(1, 6), np.arange(5)] = beside
    expected = whole.natural_parameters(mean, precision)
    np.testing.assert_allclose(family.log_partition(natural), whole.log_partition(expected), rtol=1e-13)
    moments = whole.mean_parameters(expected)
    outer = moments[:, 6:].reshape(2, 6, 6)
    band = [moments[:, :6], np.einsum("ctt->ct", outer), outer[:, np.arange(5), np.arange(1, 6)]]
    np.testing.assert_allclose(family.mean_parameters(natural), np.concatenate(band, axis=1), rtol=1e-12)


def test_chains_that_are_too_short():
    with pytest.raises(ValueError, match=r"n_steps of at least 2; a single step is a UnivariateNormal\(\)"):
        GaussianChain(1)


def test_natural_parameters_of_lists():
    np.testing.assert_array_equal(
        Wishart(1).natural_parameters([2, 3], [[[1]], [[4]]]), [[-0.5, 0], [-2, 0.5]]
    )
    np.testing.assert_array_equal(gamma.natural_parameters([2, 3], 1), [[-1, 1], [-1, 2]])
    np.testing.assert_array_equal(MultivariateNormal(1).natural_parameters([2], [[3]]), [6, -1.5])


def test_categorical_natural_parameters():
    family = Categorical(3)
    probabilities = np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])
    natural = family.natural_parameters(probabilities)
    family.check(natural)
    np.testing.assert_allclose(family.mean_parameters(natural), probabilities, rtol=1e-14, atol=1e-300)
    assert natural[1, 0] == pytest.approx(-708.4, abs=0.01)
    for wrong in (-0.1, np.nan):
        with pytest.raises(ValueError, match=r"Probabilities must not be negative or NaN; got (-0\.1|nan)"):
            family.natural_parameters([0.5, 0.5, wrong])


def test_categorical_draws_are_integers():
    draws = Categorical(3).sample(np.zeros((2, 3)), 5, 0)
    assert np.issubdtype(draws.dtype, np.integer)
    assert set(np.unique(draws)) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("family", "entries", "message"),
    [
        (MultivariateNormal(2), (1.0, 2.0), r"packs 'value' of shape \(2,\) .* got shape \(\)"),
        (MultivariateNormal(2), (np.ones(2), np.ones(2)), r"packs 'outer' of shape \(2, 2\) .*\(2,\)"),
        (MultivariateNormal(2), (np.ones(1), np.eye(2)), r"packs 'value' of shape \(2,\) .*\(1,\)"),
        (gamma, (1.0,), r"Gamma packs 2 arrays \(value, log\), got 1"),
    ],
)
def test_pack_refuses(family, entries, message):
    with pytest.raises(ValueError, match=message):
        family.pack(*entries)


def test_pack_broadcasts_leading_axes():
    family = MultivariateNormal(2)
    packed = family.pack(np.ones((3, 1, 2)), np.eye(2) * np.arange(4)[:, None, None])
    assert packed.shape == (3, 4, 6)
    np.testing.assert_array_equal(packed[2, 3], [1, 1, 3, 0, 0, 3])


def test_location_deviations():
    for family, natural in (ORDINARY[0], ORDINARY[2]):
        copies = np.stack([natural, family.default_natural_parameters()])
        variances = np.einsum("nii->ni", family.covariance(copies))[:, family.slices["value"]]
        deviations = family.location_deviations(copies)["value"]
        assert deviations.shape == (2, *family.statistics["value"])
        np.testing.assert_allclose(deviations.reshape(2, -1) ** 2, variances, rtol=1e-13)
    assert gamma.location_deviations(gamma.default_natural_parameters()) == {}


@pytest.mark.parametrize("small", [1e-3, 2.0, 15.9, 16.1, 1e5])
@pytest.mark.parametrize("large", [1.0, 1e3, 1e8, 1e15])
def test_dirichlet_log_partition_keeps_its_digits(small, large):
    """The recurrence B(a + e_k) = B(a) a_k / sum(a), B(a, 1) = 1/a, and scipy's betaln to its own error."""
    for concentration in (np.array([small, large]), np.array([small, large, 3.0])):
        value = dirichlet_log_partition(concentration)
        for own in range(len(concentration)):
            raised = concentration + (np.arange(len(concentration)) == own)
            expected = np.log(concentration[own]) - np.log(concentration.sum())
            rounding = 1e-13 + 4 * np.spacing(abs(value)) + np.spacing(large) * small / large
            assert dirichlet_log_partition(raised) - value == pytest.approx(expected, abs=rounding)
    for a in (small, large):
        assert dirichlet_log_partition(np.array([1.0, a])) == pytest.approx(-np.log(a), rel=1e-14, abs=1e-13)
    error = 4 * np.spacing(abs(scipy.special.gammaln(small + large))) + 1e-13
    found, expected = dirichlet_log_partition(np.array([small, large])), scipy.special.betaln(small, large)
    assert found == pytest.approx(expected, abs=error)


def test_stirling_remainder_is_continuous():
    """The series takes over from the log gamma function without a step."""
    below, above = stirling_remainder(np.array([np.nextafter(16.0, 0.0), 16.0]))
    assert below == pytest.approx(above, abs=3e-14)


def test_dirichlet_of_huge_counts_is_normal():
    """log B(a, a) from Stirling's leading terms, where log gamma functions would lose every digit."""
    a = 1e15
    expected = -2 * a * np.log(2) + 0.5 * np.log(4 * np.pi / a)
    assert dirichlet_log_partition(np.array([a, a])) == pytest.approx(
        expected, abs=0.5
    )  # half an ulp is 0.25


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
    """The check names the one fault of a family."""

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

    @pytest.mark.parametrize("position", [0, 1])
    def test_nan_in_one_entry(self, position):
        def check(self, natural):
            Gamma.check(
                self, np.where(np.arange(2) == position, Gamma().default_natural_parameters(), natural)
            )

        self.check(f"check accepts nan as natural parameter {position}", check=check)

    def test_default_member(self):
        self.check(
            "default_natural_parameters is no member: the rate 0 is not positive",
            default_natural_parameters=lambda self: np.zeros(2),
        )

    def test_barely_wrong_log_partition(self):
        def log_partition(self, natural):
            return Gamma.log_partition(self, natural) * (1 + 1e-5)

        self.check("mean_parameters is not grad A", log_partition=log_partition)

    def test_barely_indefinite_covariance(self):
        def covariance(self, natural):
            covariance = Gamma.covariance(self, natural)
            limit = np.sqrt(covariance[0, 0] * covariance[1, 1])
            covariance[0, 1] = covariance[1, 0] = limit * (1 + 1e-5)
            return covariance

        self.check("covariance is not positive semidefinite: smallest eigenvalue -1", covariance=covariance)

    def test_location_deviations(self):
        def location_deviations(self, natural):
            return {"value": 1.001 * np.sqrt(Gamma.covariance(self, natural)[..., 0, 0])}

        self.check("location_deviations of 'value' are", location_deviations=location_deviations)

    def test_draws_that_do_not_vary(self):
        def statistics_of(self, value):
            mean = self.mean_parameters(gamma.natural_parameters(2.5, 0.3))
            return np.broadcast_to(mean, (*value.shape, 2))

        self.check("the covariance of the statistics of draws", statistics_of=statistics_of)

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


@pytest.mark.slow
@pytest.mark.parametrize("rare", [1e-12, 1e-7, 1e-5, 1e-4])
def test_check_family_accepts_members_that_hardly_vary(rare):
    """Draws that are all equal have no standard error of their own."""
    for seed in range(5):
        check_family(Categorical(2), np.log([rare, 1 - rare]), random_state=seed)
        check_family(Categorical(3), np.log([rare, 0.5 - rare, 0.5]), random_state=seed)


@pytest.mark.parametrize("n_draws", [1, 99, -1])
def test_check_family_refuses_too_few_draws(n_draws):
    with pytest.raises(ValueError, match=f"n_draws={n_draws} must be 0 or at least 100"):
        check_family(gamma, gamma.natural_parameters(2.5, 0.3), n_draws=n_draws)
