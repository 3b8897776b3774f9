"""`check_column_family` names the identity that a family of columns violates, and by how much."""

import numpy as np
from scipy.special import digamma

_STEP = 1e-5


def check_column_family(family, values, rng):
    """Check a family of columns (`sklearn_lrvb.families`).

    Parameters
    ----------
    family : ColumnFamily of c columns
    values : (c, n), values that its columns can have, none of them missing
    rng : numpy.random.RandomState
    """
    check = _Check(family, values, rng)
    for name in dir(check):
        if name.startswith("must"):
            getattr(check, name)()


class _Check:
    def __init__(self, family, values, rng):
        self.family, self.values, self.rng = family, values, rng
        r = rng.dirichlet(np.ones(2), values.shape[1])
        features = family.features(values)
        self.sums = np.einsum("nk,cbn->kcb", r, features)
        shape = (5, *self.sums.shape[:2], len(family.scalar_kinds))
        self.scalars = family.scalar_parameters(self.sums)[..., 0] * 0.0 + 0.3 * rng.normal(size=shape)

    def close(self, what, found, expected, tolerance=1e-6):
        scale = 1.0 + np.abs(expected).max()
        error = np.abs(np.asarray(found) - expected).max() / scale
        assert error < tolerance, f"{type(self.family).__name__}: {what} is off by {error:.1e}, relatively."

    def made(self, name=None, step=0.0):
        """The family that the values have as columns of a table, with another number for a hyperparameter."""
        family, values = self.family, self.values
        numbers = {own: value + step * (own == name) for own, value in family.prior_values.items()}
        moments = values.mean(axis=1), values.std(axis=1), values.shape[1]
        n_categories = 0 if family.holds_numbers else family.n_features
        return type(family).of_columns(family.places, *moments, n_categories, *numbers.values())

    def derivative(self, function, at):
        """Along the last axis of the argument, which is the last one of the result."""
        columns = []
        for unit in np.eye(at.shape[-1]):
            up, down = (function(at + sign * _STEP * unit) for sign in (1, -1))
            columns.append((up - down) / (2 * _STEP))
        return np.stack(columns, axis=-1)

    def must_have_no_features_where_missing(self):
        some = self.values.copy()
        some[:, ::2] = np.nan
        features = self.family.features(some)
        assert not features[..., ::2].any()
        self.close(
            "features beside missing values",
            features[..., 1::2],
            self.family.features(self.values)[..., 1::2],
        )
        base = np.broadcast_to(self.family.log_base(np.full_like(some, np.nan)), some.shape[1])
        assert not base.any()

    def must_take_its_own_values(self):
        family, values = self.family, self.values
        assert not any(family.is_wrong(column).any() for column in values)
        assert np.isfinite([family.compared(column) for column in values]).all()
        made = self.made()
        assert made.prior_values == family.prior_values and made.n_features == family.n_features
        assert (made.units > 0).all() and np.isfinite(made.expected(np.zeros_like(self.sums))).all()

    def must_expect_nothing_of_improper_posteriors(self):
        sums = self.sums.copy()
        sums[0] -= 2.0 * self.values.shape[1] + np.abs(sums[0])
        with np.errstate(invalid="ignore"):
            expected = self.family.expected(sums)
        assert np.isnan(expected[0]).all() and np.isfinite(expected[1]).all()

    def must_respond_to_its_hyperparameters(self):
        made, sums = self.made(), self.sums
        values = made.values_of(self.scalars, sums)
        for name in made.hyperparameters:
            up, down = self.made(name, _STEP), self.made(name, -_STEP)
            of_statistics, of_values = made.effects_of_prior(sums, name)
            for what, found in (("expected", of_statistics), ("values", of_values)):
                difference = getattr(up, what)(sums) - getattr(down, what)(sums)
                self.close(f"effects_of_prior on {what}", found, difference / (2 * _STEP))
            logs = [own.log_prior(own.scalars_at(values, sums), sums)[0] for own in (up, down)]
            score = made.prior_score(made.scalars_at(values, sums), sums, name)
            self.close("prior_score", score, (logs[0] - logs[1]) / (2 * _STEP))

    def must_have_the_density_of_what_is_reported(self):
        # Every constant is there.
        family, sums = self.family, self.sums
        reported = family.values(sums)
        statistics = family.statistics_of(family.scalars_at(reported[None], sums), sums)[0]
        log_densities = np.einsum("kcb,cbn->kn", statistics, family.features(self.values))
        log_densities += family.log_base(self.values)
        if family.holds_numbers:
            distribution = family.distribution(reported[:, :, None])
            log_density = getattr(distribution, "logpmf" if family.is_discrete else "logpdf")
            expected = log_density(self.values)
        else:
            codes = np.broadcast_to(self.values.astype(int), (len(reported), *self.values.shape))
            expected = np.take_along_axis(np.log(reported), codes, axis=2)
        self.close("the density", log_densities, expected.sum(axis=1), 1e-10)

    def must_expect_the_slopes_of_the_evidence(self):
        found = self.derivative(self.family.log_evidence, self.sums)
        self.close("expected", self.family.expected(self.sums), found)
        assert not np.abs(self.family.log_evidence(np.zeros_like(self.sums))).any()

    def must_have_the_covariance_of_the_statistics(self):
        root = self.family.covariance_root(self.sums)
        found = self.derivative(self.family.expected, self.sums)
        self.close("covariance_root", root @ root.swapaxes(-1, -2), found)

    def must_have_the_jacobian_of_the_values(self):
        found = self.derivative(self.family.values, self.sums)
        self.close("jacobian", self.family.jacobian(self.sums), found)

    def must_explain_no_more_than_the_covariance(self):
        family, sums = self.family, self.sums
        half = np.linalg.solve(family.covariance_root(sums), family.jacobian(sums).swapaxes(-1, -2))
        excess = family.covariance(sums) - half.swapaxes(-1, -2) @ half
        smallest = np.linalg.eigvalsh(excess)
        assert smallest.min() > -1e-9 * np.abs(family.covariance(sums)).max()

    def must_have_the_jacobian_of_the_scalars(self):
        def means(sums):
            first, second = np.moveaxis(self.family.scalar_parameters(sums), -1, 0)
            kinds = np.array(self.family.scalar_kinds)
            safe = np.where(second > 0, second, 1.0)
            return np.where(kinds == "logit", digamma(first) - digamma(safe), digamma(first) - np.log(safe))

        known = np.array(self.family.scalar_kinds) != "normal"
        found = self.derivative(means, self.sums)[..., known, :]
        self.close("scalar_jacobian", self.family.scalar_jacobian(self.sums)[..., known, :], found)

    def must_invert_the_values(self):
        family = self.family
        values = family.values_of(self.scalars, self.sums)
        self.close("scalars_at", family.scalars_at(values, self.sums), self.scalars, 1e-9)

    def must_reorder_the_classes(self):
        family, orders = self.family, np.array([[1, 0], [0, 1], [0, 0], [1, 1], [1, 0]])
        found = family.values_of(family.reordered(self.scalars, orders, self.sums), self.sums)
        values = family.values_of(self.scalars, self.sums)
        self.close("reordered", found, np.take_along_axis(values, orders[:, :, None, None], axis=1), 1e-12)

    def must_take_scalars_of_parameters_that_underflow(self):
        # Sparse priors draw logarithms of which the exponential is zero.
        family, kinds, orders = self.family, np.array(self.family.scalar_kinds), np.tile([1, 0], (5, 1))
        signs = np.where(kinds == "logit", self.rng.choice([-1.0, 1.0], size=self.scalars.shape), -1.0)
        scalars = np.where(kinds == "normal", self.scalars, 4000.0 * signs)
        reordered = family.reordered(scalars, orders, self.sums)
        for name, found in {
            "reordered": reordered,
            "statistics_of": family.statistics_of(reordered, self.sums),
            "pulled_back": family.pulled_back(scalars, self.sums, np.ones((5, *self.sums.shape))),
            "log_prior": np.concatenate([part.ravel() for part in family.log_prior(scalars, self.sums)]),
        }.items():
            assert np.isfinite(found).all(), f"{type(family).__name__}: {name} is not finite."

    def must_estimate_by_maximum_likelihood(self):
        # Slopes of S.T(theta), the log likelihood, vanish.
        family, sums = self.family, self.sums
        scalars = family.scalars_at(family.estimated(sums)[None], sums)
        slopes = family.pulled_back(scalars, sums, sums[None])
        self.close("estimated", slopes / np.abs(sums).max(), np.zeros_like(slopes), 1e-12)

    def must_change_values_to_first_order(self):
        family, sums = self.family, self.sums
        kinds = np.array(family.scalar_kinds)
        first, second = np.moveaxis(family.scalar_parameters(sums), -1, 0)
        at = np.log(first) - np.log(np.where(second > 0, second, 1.0))
        at = np.where(kinds == "normal", 0.0, at)[None]
        found = self.derivative(lambda scalars: family.values_of(scalars, sums), at)
        moved = [family.first_order(unit * np.ones_like(at), sums) for unit in np.eye(at.shape[-1])]
        self.close("first_order", np.stack(moved, axis=-1), found)

    def must_pull_slopes_back(self):
        family = self.family
        slopes = self.rng.normal(size=family.statistics_of(self.scalars, self.sums).shape)
        jacobian = self.derivative(lambda scalars: family.statistics_of(scalars, self.sums), self.scalars)
        found = np.einsum("nkcbs,nkcb->nkcs", jacobian, slopes)
        self.close("pulled_back", family.pulled_back(self.scalars, self.sums, slopes), found)

    def must_have_slopes_of_the_prior(self):
        family = self.family
        _, slopes = family.log_prior(self.scalars, self.sums)
        direction = self.rng.normal(size=self.scalars.shape)
        up, down = (family.log_prior(self.scalars + s * _STEP * direction, self.sums)[0] for s in (1, -1))
        found = (slopes * direction).reshape(len(slopes), -1).sum(axis=1)
        self.close("slopes of log_prior", found, (up - down) / (2 * _STEP))

    def must_agree_with_bayes(self):
        # prior(theta) exp(S.T(theta)) / evidence is the density of q, in the scalars: a ratio of two of its
        # values.
        family, n_draws = self.family, 200_000
        sums = np.repeat(self.sums[None], n_draws, axis=0)
        scalars = family.scalars_given(sums, self.sums, np.random.default_rng(0))
        statistics = family.statistics_of(scalars, self.sums)
        error = np.abs(statistics.mean(axis=0) - family.expected(self.sums))
        assert (error < 6.0 * statistics.std(axis=0) / np.sqrt(n_draws) + 1e-12).all()

    def must_draw_rows_like_the_features(self):
        family, n_rows = self.family, 100_000
        values = family.values(self.sums)
        for k, own in enumerate(values):
            features = family.features(family.drawn(self.rng, own, n_rows))
            error = np.abs(features.mean(axis=-1) - family.mean_features(self.sums)[k])
            assert (error < 6.0 * features.std(axis=-1) / np.sqrt(n_rows) + 1e-12).all()

    def must_have_a_mean_density_of_one(self):
        # E of exp(log p(y | theta') - log p(y | theta)) over rows drawn at theta is one.
        family, n_rows = self.family, 100_000
        scalars = family.scalars_at(family.values(self.sums)[None], self.sums)
        own = family.statistics_of(scalars, self.sums)[0]
        other = family.statistics_of(scalars + 0.05, self.sums)[0]
        for k, values in enumerate(family.values(self.sums)):
            features = family.features(family.drawn(self.rng, values, n_rows))
            ratio = np.exp(np.einsum("cb,cbn->cn", other[k] - own[k], features))
            error = np.abs(ratio.mean(axis=1) - 1.0)
            assert (error < 6.0 * ratio.std(axis=1) / np.sqrt(n_rows) + 1e-12).all()
