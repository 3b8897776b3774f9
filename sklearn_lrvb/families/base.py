"""What a family of columns defines: the densities of its columns given a class, and what is known of their
parameters.

*Conventions.* A family holds c columns of one kind that have b features each. Given class k a value y of a
column has the log density

    sum_i f_i(y) T_i(theta_k) + base(y),

with features f of the value and statistics T of the parameters. The prior of theta_k is conjugate, so that
q's natural parameters are those of the prior and sums S of features over the rows of the class. Where a value
is missing all its features are zero. Arrays of sums, (K, c, b), have one axis each for classes, columns and
features; there may be axes before these.
"""

from abc import ABC, abstractmethod

import numpy as np


class ColumnFamily(ABC):
    """Some columns of one kind under their prior.

    Parameters
    ----------
    places : int array (c,), numbers of the columns in the encoded table

    Attributes
    ----------
    places : as given
    n_features : int, b, features of every column
    is_indicator : bool, whether no more than one feature of a value is not zero
    estimates : tuple of str (q,), names of what is reported of a column in every class
    prior_numbers : tuple of str, numbers of the prior that the user may choose
    """

    is_indicator = False
    n_features: int
    estimates: tuple
    prior_numbers: tuple

    def __init__(self, places):
        self.places = np.asarray(places, dtype=np.intp)

    @property
    def n_columns(self):
        """c."""
        return len(self.places)

    @abstractmethod
    def prior_number(self, name):
        """The value of one of `prior_numbers`, a float."""

    @abstractmethod
    def units(self):
        """Sizes of the columns' values, (c,)."""

    @abstractmethod
    def features(self, values):
        """Features of values (c, n), NaN where missing: (c, b, n)."""

    def log_base(self, values):
        """Sum over the columns of base(y), of n rows: (n,), or the number 0."""
        return 0.0

    @abstractmethod
    def is_proper(self, sums):
        """Whether there is a q with these sums: (K, c, b) -> bool (K, c)."""

    @abstractmethod
    def expected(self, sums):
        """E T: (K, c, b) -> (K, c, b)."""

    @abstractmethod
    def covariance_root(self, sums):
        """A root Q of Cov_q(T) = Q Q': (K, c, b) -> (K, c, b, b)."""

    @abstractmethod
    def log_evidence(self, sums):
        """log of the integral of prior times exp(S.T): (K, c, b) -> (K, c)."""

    @abstractmethod
    def values(self, sums):
        """What is reported: (K, c, b) -> (K, c, q)."""

    @abstractmethod
    def jacobian(self, sums):
        """d reported / d sums: (K, c, b) -> (K, c, q, b)."""

    @abstractmethod
    def covariance(self, sums):
        """Covariance of what is reported under q: (K, c, b) -> (K, c, q, q)."""

    @abstractmethod
    def effects_of_prior(self, sums, name):
        """Direct effects of a number of the prior, at given sums, on E T and on what is reported.

        Parameters
        ----------
        sums : (K, c, b)
        name : str, one of `prior_numbers`

        Returns
        -------
        of_statistics : (K, c, b)
        of_values : (K, c, q)
        """

    @abstractmethod
    def estimated(self, sums):
        """What is reported, by maximum likelihood: (K, c, b) -> (K, c, q)."""

    # Draws of the parameters, by scalars that are independent under q: logits of beta variables, logarithms
    # of gamma variables, and normal ones of mean zero.

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
    def log_prior(self, scalars, sums):
        """Log prior density of the scalars, (n,), and its slopes, (n, K, c, s)."""

    @abstractmethod
    def prior_score(self, scalars, sums, name):
        """Derivative of the log prior density of the parameters in a number of the prior: (n,).

        Parameters
        ----------
        scalars : (n, K, c, s)
        sums : (K, c, b)
        name : str, one of `prior_numbers`
        """

    @abstractmethod
    def scalars_given(self, drawn_sums, sums, generator):
        """Scalars, of a posterior with given sums, drawn given sums over rows, (n, K, c, b): (n, K, c, s)."""

    @abstractmethod
    def values_of(self, scalars, sums):
        """What is reported at drawn scalars: (n, K, c, s) -> (n, K, c, q)."""

    @abstractmethod
    def scalars_at(self, values, sums):
        """Inverse of `values_of`: (n, K, c, q) -> (n, K, c, s)."""

    def reordered(self, scalars, orders, sums):
        """Drawn scalars whose class k is class ``orders[:, k]`` of given ones: int array (n, K).

        Here they do not depend on the posterior. They are never made values, which may underflow.
        """
        return np.take_along_axis(scalars, orders[:, :, None, None], axis=1)

    @abstractmethod
    def first_order(self, changes, sums):
        """Changes of what is reported by small ones of the scalars: (n, K, c, s) -> (n, K, c, q)."""

    # New rows.

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
