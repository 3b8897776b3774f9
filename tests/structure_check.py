"""A compliance test for covariance structures: do their methods agree with each other?"""

import itertools

import numpy as np

from sklearn_lrvb.gaussian.covariance_structures import CovarianceStructure

_STANDARD_ERRORS = 5.0  # Largest error of averages over random draws, in their standard errors.
_DEGREES_OF_FREEDOM = 40.0  # Those of the random precisions; enough for the variances of linear response.


def check_covariance_structure(
    structure_class, *, n_components=3, n_features=3, n_draws=20_000, random_state=0, tolerance=1e-9
):
    """Check a covariance structure against the identities that the mixture relies on.

    Run it on a structure of your own, with several numbers of components and features. It shows that entries
    and statistics, maps and their transposes, Cholesky roots and inverses fit together; that rows are
    whitened and summed as the maps say; that the features are orthonormal under a standard normal; that
    influence functions have the gradients of their values; and that random rows and precisions have the
    moments they should have.

    Parameters
    ----------
    structure_class : type
        Subclass of `CovarianceStructure`, constructed as ``structure_class(n_components, n_features)``.
    n_components : int, default=3
        At least two.
    n_features : int, default=3
        At least one. The features are integrated on a grid of ``3 ** n_features`` points.
    n_draws : int, default=20_000
        Random rows and precisions whose averages are compared, to five standard errors; 0 compares none.
    random_state : int or None, default=0
        Seeds the random numbers of the check.
    tolerance : float, default=1e-9
        Largest error of an identity, relative to the largest number in it.

    Raises
    ------
    TypeError
        Where the class is no subclass of `CovarianceStructure`, or abstract methods are not implemented.
    ValueError
        Where there are fewer than two components or no feature.
    AssertionError
        Naming the identity that fails, and by how much.
    """
    if not (isinstance(structure_class, type) and issubclass(structure_class, CovarianceStructure)):
        raise TypeError(
            f"structure_class must be a subclass of CovarianceStructure, got {structure_class!r}."
        )
    if n_components < 2 or n_features < 1:
        raise ValueError(
            f"The check needs at least two components and one feature, got n_components={n_components} and "
            f"n_features={n_features}."
        )
    structure = structure_class(n_components, n_features)
    check = _Check(structure, np.random.default_rng(random_state), tolerance)
    check.entries()
    check.statistics()
    check.maps()
    check.rows()
    check.features()
    check.influence_functions()
    if n_draws:
        check.random_numbers(n_draws)


class _Check:
    """The identities, with random numbers of one structure.

    Parameters
    ----------
    structure : CovarianceStructure
    rng : numpy.random.Generator
    tolerance : float
    """

    def __init__(self, structure, rng, tolerance):
        self._structure, self._rng, self._tolerance = structure, rng, tolerance
        self._n_components, self._n_features = structure.n_components, structure.n_features
        self._n_groups = structure.n_groups
        self._covariances = self._random_statistics() + structure.identity
        self._cholesky = structure.cholesky(self._covariances)
        self._whiteners = structure.whiteners(self._cholesky)
        self._means = rng.normal(size=(self._n_components, self._n_features))

    def _random_statistics(self):
        """Averages of s(v) over random v, positive definite: (S, ...)."""
        vectors = self._rng.normal(size=(self._n_components, self._n_features, 8))
        weights = np.full((self._n_components, 8), 1 / 8)
        return self._structure.second_moments(vectors, weights)

    def _agree(self, found, expected, identity, allowed=0.0):
        """Raise unless two arrays are equal to the tolerance, or to a larger allowed error."""
        found, expected = np.asarray(found), np.asarray(expected)
        name = type(self._structure).__name__
        if found.shape != expected.shape:
            raise AssertionError(f"{name}: {identity}: shape {found.shape} instead of {expected.shape}.")
        error = np.abs(found.astype(float) - expected.astype(float))
        allowed = np.maximum(allowed, self._tolerance * (1.0 + np.abs(expected).max(initial=0.0)))
        if not np.all(error <= allowed):
            place = tuple(map(int, np.unravel_index(np.nanargmax(error - allowed), error.shape)))
            raise AssertionError(
                f"{name}: {identity} does not hold: {found[place]:.10g} instead of {expected[place]:.10g} at "
                f"{place} (error {error.max():.2g})."
            )

    def entries(self):
        """Entries are the unique numbers of a statistic, and reported arrays can be converted back."""
        structure, statistics = self._structure, self._covariances
        entries = structure.entries(statistics)
        self._agree(
            entries.shape, (self._n_groups, structure.n_quadratic), "entries has one number per entry count"
        )
        self._agree(structure.from_entries(entries), statistics, "from_entries inverts entries")
        names = structure.entry_names([f"x{p}" for p in range(self._n_features)])
        self._agree(len(names), structure.n_quadratic, "entry_names names every entry")
        self._agree(self._features_in_entries(), self._features_in_names(names), "entry_names name features")
        self._agree(
            structure.by_group(structure.reported(statistics)), statistics, "by_group inverts reported"
        )
        products = np.sum(statistics * structure.identity, axis=tuple(range(1, statistics.ndim)))
        vectors = structure.flattened(statistics) @ structure.flattened(structure.identity)
        self._agree(vectors, products, "vectors have the inner products of statistics (entry_counts)")
        self._agree(
            structure.diagonal(statistics).sum(axis=-1), products, "diagonal holds the diagonal entries"
        )

    def _features_in_names(self, names):
        """Which features an entry is named after, all for one without features in its name: bool (Q, P)."""
        named = [[f"x{p}" in name.split(",") for p in range(self._n_features)] for name in names]
        return np.array(named) | ~np.any(named, axis=1, keepdims=True)

    def _features_in_entries(self):
        """Which features move an entry of s(y), bool (Q, P)."""
        rows = 2.0 + np.concatenate([np.zeros((self._n_features, 1)), np.eye(self._n_features)], axis=1)
        entries = np.empty((self._structure.n_quadratic, rows.shape[1]))
        self._structure.write_entries(rows, entries)
        return entries[:, 1:] != entries[:, :1]

    def statistics(self):
        """The statistic is the same however it is formed, and linear in x x'."""
        structure, rng = self._structure, self._rng
        by_row = structure.statistic_by_row(np.eye(self._n_features))
        self._agree(
            by_row.sum(axis=0),
            structure.identity_statistic,
            "identity_statistic is E s(y) of a standard normal",
        )
        rows = rng.normal(size=(self._n_components, self._n_features, 6))
        weights = rng.normal(size=(self._n_components, 6))
        of_rows = np.stack([structure.statistic_by_row(own) for own in rows])
        sums = weights[structure.statistic_axes] * of_rows
        by_group = structure.layout.per_group(np.moveaxis(sums.sum(axis=1), 0, -1))
        self._agree(
            structure.second_moments(rows, weights),
            np.moveaxis(by_group, -1, 0),
            "second_moments sums weight times s(y)",
        )
        curvature = self._random_statistics()
        of_components = structure.flattened(structure.layout.per_component(curvature))
        self._agree(
            structure.curvature_products(curvature, rows),
            np.einsum("kq,knq->kn", of_components, structure.flattened(of_rows)),
            "curvature_products is the inner product of B and s(y)",
        )

    def maps(self):
        """Maps compose, invert and transpose as linear maps do, and act on statistics by congruence."""
        structure, cholesky, whiteners = self._structure, self._cholesky, self._whiteners
        vectors, others = self._rng.normal(size=(2, self._n_components, self._n_features))
        images = structure.transformed(cholesky, vectors)
        self._agree(structure.transformed(whiteners, images), vectors, "whiteners invert Cholesky roots")
        self._agree(
            structure.transformed(structure.composed(cholesky, cholesky), vectors),
            structure.transformed(cholesky, images),
            "composed maps act one after the other",
        )
        self._agree(
            (structure.transformed(structure.transposed(cholesky), others) * vectors).sum(),
            (others * images).sum(),
            "transposed maps are transposes",
        )
        batch = np.stack([vectors, others])
        self._agree(
            structure.transformed(cholesky, batch)[0], images, "transformed maps batches as single vectors"
        )
        ones = np.ones(self._n_components)
        self._agree(
            structure.congruence(cholesky, structure.sum_of_squares(vectors, ones)),
            structure.sum_of_squares(images, ones),
            "congruence gives s of mapped vectors",
        )
        self._agree(
            structure.outer_products(np.stack([vectors, others]), np.stack([images, vectors]))[1]
            + structure.outer_products(vectors, others),
            structure.sum_of_squares(vectors + others, ones)
            - structure.sum_of_squares(vectors, ones)
            - structure.sum_of_squares(others, ones),
            "outer_products are the polar form of s",
        )
        covariances = structure.congruence(cholesky, structure.identity)
        self._agree(covariances, self._covariances, "cholesky gives roots of covariances")
        self._agree(structure.gram(cholesky), covariances, "gram is the congruence of the identity")
        dense = structure.dense(covariances)
        self._agree(
            structure.layout.per_component(structure.log_determinants(cholesky)),
            np.linalg.slogdet(dense)[1],
            "log_determinants are those of the dense covariances",
        )
        nothing = structure.cholesky(np.zeros_like(covariances))
        is_nan = np.isnan(nothing).astype(float)
        self._agree(is_nan, np.ones_like(is_nan), "cholesky is NaN where a covariance is singular")
        shares = self._rng.dirichlet(np.ones(self._n_groups))
        average = np.tensordot(shares, covariances, axes=1)[None]
        root = structure.average_cholesky(cholesky, shares)
        self._agree(
            structure.congruence(root, structure.identity),
            average,
            "average_cholesky is a root of the average",
        )
        scale = np.exp(self._rng.normal(size=self._n_features))
        scaled = structure.dense(structure.congruence(structure.diagonal_factors(scale), structure.identity))
        self._agree(
            np.trace(scaled, axis1=1, axis2=2),
            np.full(self._n_components, np.square(scale).sum()),
            "diagonal_factors has the columns' variances",
        )

    def _whiten(self, block):
        with_one = np.concatenate([np.ones((1, block.shape[1])), block])
        return self._structure.whiten(self._whiteners, self._means, with_one)

    def rows(self):
        """Rows are whitened by the maps."""
        structure, block = self._structure, self._rng.normal(size=(self._n_features, 7))
        relative = block.T[:, None, :] - self._means
        expected = structure.transformed(self._whiteners, relative).transpose(1, 2, 0)
        whitened = self._whiten(block)
        self._agree(whitened, expected, "whiten gives W (x - m)")
        rows = np.empty_like(block)
        structure.whiten_into(self._whiteners[:1], self._means[0], block, rows)
        self._agree(rows, expected[0], "whiten_into gives W (x - c)")
        by_row = structure.transformed(structure.transposed(self._whiteners), whitened.transpose(2, 0, 1))
        self._agree(
            structure.pulled_back(self._whiteners, whitened),
            by_row.transpose(1, 0, 2),
            "pulled_back gives W'y",
        )
        noise = self._covariances[-1]
        own_roots = np.repeat(self._cholesky[:1], block.shape[1], axis=0)
        squares = np.square(structure.transformed(self._whiteners[:1], block.T[:, None])[:, 0]).sum(axis=1)
        of_noise = structure.diagonal(structure.congruence(self._whiteners, noise))[0].sum()
        self._agree(
            structure.squares_by_row(own_roots, block, noise),
            squares + of_noise,
            "squares_by_row is the trace of (L L')^-1 (v v' + noise)",
        )

    def features(self):
        """The features of a standard normal row are orthonormal, however they are formed."""
        structure = self._structure
        nodes, weights = np.polynomial.hermite_e.hermegauss(3)
        grid = np.array(list(itertools.product(nodes, repeat=self._n_features))).T
        mass = np.prod(list(itertools.product(weights / weights.sum(), repeat=self._n_features)), axis=1)
        features = structure.features.of_component(grid, structure.identity_statistic)
        self._agree(
            (mass * features) @ features.T,
            np.eye(structure.n_component_features),
            "features of a standard normal row are orthonormal (power, entry_counts)",
        )
        origin = structure.identity_statistic - 0.05 * structure.power * structure.gram(self._whiteners)[0]
        rows, others = self._rng.normal(size=(2, self._n_features, 5))
        own, other = (
            structure.features.of_component(y, origin)[1 + self._n_features :] for y in (rows, others)
        )
        self._agree(
            structure.features.kernel(rows, others, rows.T @ others, origin),
            own.T @ other,
            "features.kernel holds inner products of quadratic features",
        )
        self._agree(
            structure.features.products_by_row(rows, others, origin),
            (own * other).sum(axis=0),
            "features.products_by_row holds inner products of quadratic features",
        )

    def influence_functions(self):
        """Gradients are the derivatives of values, which central differences give exactly for quadratics."""
        structure, rng = self._structure, self._rng
        block, weights = rng.normal(size=(self._n_features, 4)), rng.uniform(size=(self._n_components, 4))
        for n_functions in (1, 3 * self._n_features):
            coefficients = rng.normal(size=(n_functions, structure.layout.n_coefficients))
            constant, linear, curvature = structure.features.polynomials(
                coefficients, structure.identity_statistic
            )

            def values(block, constant=constant, linear=linear, curvature=curvature):
                whitened = self._whiten(block)
                of_components = [
                    structure.features.values(
                        constant[:, k], linear[:, k], curvature[:, structure.layout.group_of(k)]
                    )
                    for k in range(self._n_components)
                ]
                parts = zip(weights, of_components, whitened, strict=True)
                return sum(own * polynomials(rows) for own, polynomials, rows in parts)

            steps = np.eye(self._n_features)[:, :, None]
            expected = [(values(block + step) - values(block - step)) / 2.0 for step in steps]
            found = np.empty((block.shape[1], n_functions, self._n_features))
            write = structure.features.gradients(self._whiteners, linear, curvature)
            write(weights, self._whiten(block), found)
            self._agree(found, np.transpose(expected, (2, 1, 0)), "gradients are derivatives of values")

    def random_numbers(self, n_draws):
        """Random rows and precisions have the moments that they should have."""
        structure, rng = self._structure, self._rng
        seeds = np.random.RandomState(rng.integers(2**31))
        covariances = structure.layout.per_component(self._covariances)
        rows = structure.draw(seeds, self._means[0], covariances[0], n_draws) - self._means[0]
        dense = structure.dense(self._covariances)[0]
        deviations = np.sqrt(np.diag(dense))
        error = _STANDARD_ERRORS / np.sqrt(n_draws)
        self._agree(
            rows.mean(axis=0), np.zeros_like(deviations), "draw has the mean", error * deviations.max()
        )
        self._agree(
            rows.T @ rows / n_draws,
            dense,
            "draw has the covariance",
            np.sqrt(2.0) * error * np.outer(deviations, deviations),
        )
        factors = structure.wisharts
        nu = np.full(self._n_groups, _DEGREES_OF_FREEDOM)
        variance = structure.power / _DEGREES_OF_FREEDOM
        normals = np.sqrt(variance) * rng.normal(size=(n_draws, self._n_groups, structure.n_quadratic))
        own_deviations = np.full((self._n_groups, structure.n_quadratic), np.sqrt(variance))
        own_deviations = np.abs(structure.features.own_precision_response(own_deviations))
        random_factors = structure.random_factors_type(
            own_deviations, nu, np.square(structure.diagonal(own_deviations))
        )
        roots = random_factors.factors(structure.features.own_precision_response(normals))
        precisions = structure.congruence(roots, structure.identity)
        expected = np.broadcast_to(structure.identity, precisions.shape[1:])
        spread = precisions.std(axis=0)
        self._agree(precisions.mean(axis=0), expected, "random_factors have the mean I", error * spread)
        log_determinants = structure.log_determinants(roots)
        self._agree(
            log_determinants.mean(axis=0),
            factors.expected_log_determinant(np.zeros(self._n_groups), nu)[0],
            "random_factors have E log|Lambda|",
            error * log_determinants.std(axis=0),
        )
        inverse_scales = np.repeat(self._covariances[None], n_draws, axis=0)
        roots = random_factors.wishart(
            np.random.default_rng(rng.integers(2**31)), np.repeat(nu[None], n_draws, axis=0), inverse_scales
        )
        precisions = structure.congruence(roots, structure.identity)
        expected = nu.reshape(-1, *[1] * structure.identity.ndim) * structure.congruence(
            structure.transposed(self._whiteners), structure.identity
        )
        self._agree(
            precisions.mean(axis=0), expected, "wishart has the mean nu A^-1", error * precisions.std(axis=0)
        )
