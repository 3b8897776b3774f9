"""What a family of columns defines: the densities of its columns given a class, and what is known of their
parameters.

*Conventions.* A family holds c columns of one type that have b features each. Given class k a value y of a
column has the log density

    sum_i f_i(y) T_i(theta_k) + base(y),

with features f of the value and statistics T of the parameters. The prior of theta_k is conjugate, so that
q's natural parameters are those of the prior and sums S of features over the rows of the class. Where a value
is missing all its features are zero. Arrays of sums, (K, c, b), have one axis each for classes, columns and
features; there may be axes before these. What is reported of a column in every class are q numbers.

*A new family* is a subclass of `ColumnFamily`, and a line in the table `FAMILIES`. What it has to define
follows in the order in which it is needed:

1. the class itself: what values its columns can have, and how it is made for some columns of a table;
2. seven functions of values or sums, for fits, error bars, influence, leave-one-out, groups, and split and
   merge moves;
3. what else is said of classes: changes of the prior, aic and bic, new rows and missing values;
4. seven functions of scalars behind the parameters, for draws and the exact posterior.

Families of numbers are subclasses of `NumberColumns`, which fills and draws values by their distribution. One
whose parameter is a rate with a gamma prior is a subclass of `RateColumns` (`rate.py`), which has all the
rest: `duration.py` is an example.
"""

from abc import ABC, abstractmethod

import numpy as np

from sklearn_lrvb.families.scalars import DRAWN, LOG_DENSITIES, mixed_moments


class ColumnFamily(ABC):
    """Some columns of one type under their prior.

    Parameters
    ----------
    places : int array (c,), numbers of the columns in the encoded table
    units : float array (c,), sizes of the columns' values, in which changes of X are measured
    prior_values : float, values of the hyperparameters in their order

    Attributes
    ----------
    places, units : as given
    n_columns : int, c
    n_features : int, b, features of every column
    prior_values : dict, the hyperparameters by name
    """

    # 1. The class itself.

    # The estimator's arguments from which the prior is made, in the order of `of_columns`, each with what is
    # left of it under the other prior by which number_of_clusters tells how much that matters: 0.5, 0.1 or 1.
    hyperparameters: dict
    # What is reported, with the quantile functions of intervals (`special_functions`). Of categories there is
    # one name, that of all their probabilities. Families that share a name share its quantile function.
    estimates: dict
    n_features: int
    holds_numbers = True  # Else values are categories, and the family gets their codes 0, 1, 2, ...
    is_discrete = False  # Whether rows often have the same value, so that equal rows can be joined.
    what_is_wrong = ""  # "are negative, but ...": the end of "2 value(s) of column 'a' of X", if `is_wrong`.
    # Which of what is reported is a standard deviation that maximum likelihood may let fall to zero.
    deviation_entry: int | None = None
    # If the mean of a value decides on its variance: how the variance that the family expects is called, in
    # the warning "the variance is 4 times ...", and the name of a function of the values whose variance does
    # not follow the mean.
    dispersion: tuple | None = None

    # How the prior's natural parameters, (c, b), change with the hyperparameter, by its name, if it can be
    # learned (`family_mixture.learned_prior`). There is no other one then.
    directions: dict = {}

    def __init__(self, places, units, *prior_values):
        self.places, self.n_columns = np.asarray(places, dtype=np.intp), len(places)
        self.units = np.asarray(units, dtype=np.float64)
        self.prior_values = dict(zip(self.hyperparameters, map(float, prior_values), strict=True))

    @classmethod
    @abstractmethod
    def of_columns(cls, places, means, deviations, total_weight, n_categories, *prior_values):
        """The family of some columns of a training table.

        Parameters
        ----------
        places : list of int, (c,)
        means, deviations : (c,), of the columns' values; a deviation is 1 where a column is constant
        total_weight : float, how many rows there are
        n_categories : int, of each of the columns; zero of numbers
        prior_values : float, as the estimator has them
        """

    def centred(self, sums):
        """The family whose prior is centred on the whole table, if it is not: (1, c, b) -> ColumnFamily.

        Parameters
        ----------
        sums : (1, c, b), of the features of all rows
        """
        return self

    @staticmethod
    def is_wrong(numbers):
        """Which numbers such columns cannot have: (n,), NaN where missing -> bool (n,)."""
        return np.zeros(len(numbers), dtype=bool)

    @staticmethod
    def compared(numbers):
        """Numbers on the scale on which rows are near each other or far apart, for starts: (n,) -> (n,)."""
        return numbers

    # 2. Fits, error bars, influence, leave-one-out, groups, and split and merge moves.

    @abstractmethod
    def features(self, values):
        """Features of values (c, n), NaN where missing: (c, b, n)."""

    def log_base(self, values):
        """Sum over the columns of base(y), of n rows: (n,), or the number 0."""
        return 0.0

    @abstractmethod
    def expected(self, sums):
        """E T, NaN of columns that have no q with these sums: (K, c, b) -> (K, c, b)."""

    @abstractmethod
    def log_evidence(self, sums):
        """log of the integral of prior times exp(S.T): (K, c, b) -> (K, c)."""

    @abstractmethod
    def covariance_root(self, sums):
        """A root Q of Cov_q(T) = Q Q': (K, c, b) -> (K, c, b, b)."""

    def covariance_with(self, sums, directions):
        """Cov_q(T) d: (K, c, b) and (c, b) -> (K, c, b)."""
        root = self.covariance_root(sums)
        return (root @ (root.swapaxes(-1, -2) @ directions[..., None]))[..., 0]

    @abstractmethod
    def values(self, sums):
        """What is reported: (K, c, b) -> (K, c, q)."""

    @abstractmethod
    def jacobian(self, sums):
        """d reported / d sums: (K, c, b) -> (K, c, q, b)."""

    @abstractmethod
    def covariance(self, sums):
        """Covariance of what is reported under q: (K, c, b) -> (K, c, q, q)."""

    def degrees_of_freedom(self, counts):
        """Those of Student's t, if q has it for what is reported of classes of so many rows: (K,) -> (K,)."""
        return np.full(np.shape(counts), np.inf)

    # 3. Changes of the prior, aic and bic, new rows and missing values.

    @abstractmethod
    def effects_of_prior(self, sums, name):
        """Direct effects of a hyperparameter, at given sums, on E T and on what is reported.

        Parameters
        ----------
        sums : (K, c, b)
        name : str, one of `hyperparameters`

        Returns
        -------
        of_statistics : (K, c, b)
        of_values : (K, c, q)
        """

    @abstractmethod
    def prior_score(self, scalars, sums, name):
        """Derivative of the log prior density of the parameters in a hyperparameter: (n,).

        Parameters
        ----------
        scalars : (n, K, c, s)
        sums : (K, c, b)
        name : str, one of `hyperparameters`
        """

    @abstractmethod
    def estimated(self, sums):
        """What is reported, by maximum likelihood: (K, c, b) -> (K, c, q)."""

    @abstractmethod
    def mean_features(self, sums):
        """Mean features of a row of every class at what is reported of it: (K, c, b) -> (K, c, b)."""

    @abstractmethod
    def filled(self, responsibilities, sums):
        """Predictions of values of rows whose class is known by probabilities, and how uncertain they are.

        Parameters
        ----------
        responsibilities : (K, n)
        sums : (K, c, b)

        Returns
        -------
        values : (c, n), means of numbers, and the most probable categories
        spreads : (c, n), standard deviations of numbers, and the probability that the category is another one
        """

    @abstractmethod
    def drawn(self, generator, values, n_rows):
        """Values of new rows of one class: values (c, q) -> (c, n_rows)."""

    # 4. Draws of the parameters, by scalars that are independent under q: logits of beta variables,
    # logarithms of gamma variables, and normal ones of mean zero.

    @property
    @abstractmethod
    def scalar_kinds(self):
        """Kinds of the scalars of a column: tuple of "logit", "log_gamma" and "normal", (s,)."""

    @abstractmethod
    def scalar_parameters(self, sums):
        """Parameters of the scalars under q: (K, c, b) -> (K, c, s, 2).

        They are those of the beta variable, shape and rate of the gamma variable, or variance and 0.
        """

    @abstractmethod
    def scalar_jacobian(self, sums):
        """d E scalar / d sums: (K, c, b) -> (K, c, s, b)."""

    @abstractmethod
    def statistics_of(self, scalars, sums):
        """T of drawn scalars, (n, K, c, s), of a posterior with given sums: (n, K, c, b)."""

    @abstractmethod
    def pulled_back(self, scalars, sums, slopes):
        """Slopes in T, (n, K, c, b), as slopes in the scalars, (n, K, c, s)."""

    @abstractmethod
    def values_of(self, scalars, sums):
        """What is reported at drawn scalars: (n, K, c, s) -> (n, K, c, q)."""

    @abstractmethod
    def scalars_at(self, values, sums):
        """Inverse of `values_of`: (n, K, c, q) -> (n, K, c, s)."""

    @abstractmethod
    def first_order(self, changes, sums):
        """Changes of what is reported by small ones of the scalars: (n, K, c, s) -> (n, K, c, q)."""

    # What follows is for scalars that depend neither on each other nor on a posterior: their prior is q at
    # sums of zero.

    def log_prior(self, scalars, sums):
        """Log prior density of the scalars, (n,), and its slopes, (n, K, c, s)."""
        parameters = self.scalar_parameters(np.zeros_like(sums))
        log_density, slopes = np.zeros(len(scalars)), np.empty(scalars.shape)
        for kind, own in self._scalars_by_kind():
            of_kind, slopes[..., own] = LOG_DENSITIES[kind](scalars[..., own], parameters[..., own, :])
            log_density += of_kind
        return log_density, slopes

    def scalars_given(self, drawn_sums, sums, generator):
        """Scalars, of a posterior with given sums, drawn given sums over rows, (n, K, c, b): (n, K, c, s)."""
        parameters = self.scalar_parameters(drawn_sums)
        scalars = np.empty(parameters.shape[:-1])
        for kind, own in self._scalars_by_kind():
            scalars[..., own] = DRAWN[kind](parameters[..., own, :], generator)
        return scalars

    def _scalars_by_kind(self):
        """Every kind of scalars that there is, and which of them, a list of int, are of it."""
        places = {}
        for place, kind in enumerate(self.scalar_kinds):
            places.setdefault(kind, []).append(place)
        return places.items()

    def reordered(self, scalars, orders, sums):
        """Drawn scalars whose class k is class ``orders[:, k]`` of given ones: int array (n, K).

        They are never made values, which may underflow.
        """
        return np.take_along_axis(scalars, orders[:, :, None, None], axis=1)


class NumberColumns(ColumnFamily):
    """Columns of numbers, whose values are filled and drawn by their distribution."""

    @abstractmethod
    def distribution(self, values):
        """Of a value given what is reported: (..., q) -> frozen distribution of SciPy, of shape (...)."""

    def filled(self, responsibilities, sums):
        distribution = self.distribution(self.values(sums))
        return mixed_moments(responsibilities, distribution.mean(), distribution.var())

    def drawn(self, generator, values, n_rows):
        distribution = self.distribution(values[:, None])
        return distribution.rvs((self.n_columns, n_rows), random_state=generator).astype(np.float64)
