"""Rows that belong together: the groups, and the strata of a survey, that users pass with their rows."""

import contextlib
import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from sklearn_lrvb.rows.blocks import rows_in_batch
from sklearn_lrvb.rows.given_rows import is_dask


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Which rows belong together.

    Attributes
    ----------
    names : array (G,), what the user calls the groups, ascending
    codes : int array (n_given,) or Dask array, the place of every row's group among the names
    strata : int array (G,), the number of every group's stratum
    sizes : float array (H,), the number of groups in the population of every stratum; inf where unknown
    stratum_names : sequence of str, to name strata in messages
    """

    names: np.ndarray
    codes: Any
    strata: np.ndarray
    sizes: np.ndarray
    stratum_names: tuple = ("",)

    def __len__(self):
        return len(self.names)

    @property
    def n_strata(self):
        return len(self.sizes)

    @property
    def degrees_of_freedom(self):
        """Those of a variance from the differences between groups: one less for every stratum."""
        return len(self) - self.n_strata

    def _numbers(self):
        """The number of groups in every stratum, (H,)."""
        return np.bincount(self.strata, minlength=self.n_strata)

    def factors(self):
        """Factors of the sums of squares over the groups of every stratum, (1 - n/N) n/(n - 1): (H,)."""
        n_groups = self._numbers()
        return (1.0 - n_groups / self.sizes) * n_groups / (n_groups - 1.0)

    def resampled(self, random_state):
        """How often every row counts if groups are drawn anew, (n_given,) or Dask array (`Bootstrap`)."""
        times = np.empty(len(self))
        members = np.split(np.argsort(self.strata, kind="stable"), np.cumsum(self._numbers())[:-1])
        for own, size in zip(members, self.sizes, strict=True):
            drawn = random_state.randint(len(own), size=len(own) - 1)
            factors = np.bincount(drawn, minlength=len(own)) * (len(own) / (len(own) - 1.0))
            share = np.sqrt(1.0 - len(own) / size)
            times[own] = 1.0 - share + share * factors
        return self.along(times)

    def along(self, values):
        """Values of the groups (G,), for every row: (n_given,) or Dask array."""
        if isinstance(self.codes, np.ndarray):
            return values[self.codes]
        return self.codes.map_blocks(functools.partial(np.take, values), dtype=values.dtype)

    def along_counted(self, given, counted):
        """The same groups along the rows of positive weight, where others are no part of these: RowGroups.

        Parameters
        ----------
        given, counted : Rows, all that were given, and those of them that count
        """
        if counted.n_given == given.n_given:
            return self
        return replace(self, codes=self.codes[given.which_count()])

    def chosen(self, kept):
        """Some of the groups, bool array (G,), at least two in a stratum: RowGroups.

        Raises
        ------
        ValueError
            A stratum has fewer than two of these.
        """
        # Rows of other groups get any place: they are rows that do not count.
        codes = self.codes if kept.all() else self.along(np.cumsum(kept) - 1)
        chosen = replace(self, names=self.names[kept], codes=codes, strata=self.strata[kept])
        n_groups = chosen._numbers()
        if n_groups.min() < 2:
            lonely = int(n_groups.argmin())
            has_strata = self.n_strata > 1
            where = f"Stratum {self.stratum_names[lonely]}" if has_strata else "X"
            remedy = "Join similar strata" if has_strata else "Pass the labels of several groups"
            raise ValueError(
                f"{where} has {n_groups[lonely]} group(s) with rows of positive weight, and error bars need "
                f"the differences between groups: at least two, better fifty in all. (a) {remedy}. (b) Use "
                "smaller groups, if their rows are independent; groups=range(len(X)) if all rows are."
            )
        return chosen

    def each(self, rows):
        """Yield every group's rows: their numbers, ascending int array, and `ArrayRows` with their weights.

        Some groups at a time are brought together, so that rows in parts take a pass for each 32 MiB.

        Parameters
        ----------
        rows : Rows, all that were given, not on Dask
        """
        order = np.argsort(self.codes, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(self.codes, minlength=len(self)))[:-1])
        turns = np.cumsum([len(index) for index in members]) // rows_in_batch(8 * rows.n_features)
        for turn in np.unique(turns):
            some = [members[number] for number in np.flatnonzero(turns == turn)]
            together = np.sort(np.concatenate(some))
            brought = rows.chosen(together)
            for index in some:
                yield index, brought.chosen(np.searchsorted(together, index))


def row_groups(rows, groups=None, strata=None, strata_sizes=None):
    """The groups of rows as a user passes them: RowGroups.

    Parameters
    ----------
    rows : Rows, all that were given
    groups : array-like (n_given,), labels of any kind that can be sorted; None makes each row its own group
    strata : array-like (n_given,) of such labels, or None
    strata_sizes : mapping from strata to numbers of groups in the population, the one number where there are
        no strata, or None

    Raises
    ------
    ValueError
        On a wrong number of labels, missing ones, a group in several strata, or sizes that are no numbers of
        groups.
    """
    if groups is None:
        names, codes = np.arange(rows.n_given), np.arange(rows.n_given)
    else:
        names, codes = _coded(groups, rows, "groups")
    if strata is None:
        of_groups, stratum_names = np.zeros(len(names), dtype=np.intp), ("",)
    else:
        stratum_names, by_row = _coded(strata, rows, "strata")
        of_groups = _strata_of_groups(names, codes, stratum_names, by_row)
    n_groups = np.bincount(of_groups, minlength=len(stratum_names))
    sizes = _checked_sizes(strata_sizes, stratum_names, n_groups, strata is None)
    return RowGroups(names, codes, of_groups, sizes, tuple(stratum_names))


def _coded(labels, rows, name):
    """The different labels, ascending, and the place of each row's among them."""
    if is_dask(labels) and rows.is_lazy:
        return _coded_on_dask(labels, rows, name)
    labels = _checked_labels(labels.compute() if is_dask(labels) else labels, name)
    if len(labels) != rows.n_given:
        raise ValueError(
            f"{name} has {len(labels)} labels, but X has {rows.n_given} rows. (a) Pass one label for every "
            "row of X, in the same order. (b) If X was left out, pass it, and sample_weight if it had one: "
            "the fit keeps only rows with a weight and a value, and latent classes join equal ones."
        )
    with _sorting(name):
        return np.unique(labels, return_inverse=True)


@contextlib.contextmanager
def _sorting(name):
    """Context in which labels are sorted, which those of some types cannot be together."""
    try:
        yield
    except TypeError as error:
        raise ValueError(
            f"{name} has labels of several types, which cannot be sorted ({error}): use one."
        ) from error


def _checked_labels(labels, name, where=""):
    """Labels as an array of one dimension, none of them missing; of a chunk, ``where`` names it."""
    is_masked = np.ma.getmaskarray(labels) if isinstance(labels, np.ma.MaskedArray) else False
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"{name} must have one label for every row, but has the shape {labels.shape}.")
    is_missing = is_masked | _are_missing(labels)
    if np.any(is_missing):
        raise ValueError(
            f"{name} has {np.count_nonzero(is_missing)} missing labels{where}, the first at row "
            f"{int(np.argmax(is_missing))}. Drop these rows, or give every one a label of its own."
        )
    return labels


def _are_missing(labels):
    """Whether labels are None, NaN, NaT or pandas' NA: bool array."""
    if labels.dtype.kind != "O":
        return labels != labels
    return np.array(
        [label is None or type(label).__name__ == "NAType" or label != label for label in labels], dtype=bool
    )


def _coded_on_dask(labels, rows, name):
    """As `_coded`, with the places as Dask array."""
    import dask.array as da

    if not isinstance(labels, da.Array):  # Series of types that are none of NumPy's become objects.
        labels = labels.map_partitions(np.asarray, meta=np.asarray(labels._meta))
    n_chunks = len(rows.survey.lengths)
    is_known = labels.ndim == 1 and not np.isnan(labels.shape[0])
    if is_known and labels.shape[0] == rows.n_given:
        labels = labels.rechunk((tuple(rows.survey.lengths.tolist()),))
    elif labels.ndim != 1 or is_known or labels.numblocks[0] != n_chunks:
        raise ValueError(
            f"{name} has the shape {labels.shape} in {labels.numblocks} chunks, but X has {rows.n_given} "
            f"rows in {n_chunks}: both must have the same rows in the same partitions."
        )
    check = functools.partial(_checked_labels, name=name, where=" in a chunk")
    labels = labels.map_blocks(check, dtype=labels.dtype, meta=np.empty(0, labels.dtype))
    with _sorting(name):
        names = da.unique(labels).compute()
    dtype = np.min_scalar_type(len(names))
    codes = labels.map_blocks(_places, names, dtype, dtype=dtype, meta=np.empty(0, dtype))
    # A few bytes a row: labels are read twice, and not anew for every pass and every refit of the bootstrap.
    return names, codes.persist()


def _places(labels, names, dtype):
    return np.searchsorted(names, labels).astype(dtype)


def _strata_of_groups(names, codes, stratum_names, by_row):
    """The stratum of every group, int array (G,)."""
    if not isinstance(codes, np.ndarray) or not isinstance(by_row, np.ndarray):
        codes, by_row = (np.asarray(values) for values in (codes, by_row))
    of_groups = np.zeros(len(names), dtype=np.intp)
    of_groups[codes] = by_row
    is_other = of_groups[codes] != by_row
    if is_other.any():
        row = int(np.argmax(is_other))
        ours, theirs = (stratum_names[number] for number in (by_row[row], of_groups[codes[row]]))
        raise ValueError(
            f"Group {names[codes[row]]} lies in several strata ({ours} and {theirs}). Where labels of "
            "groups are used anew in every stratum, pass labels that name both."
        )
    return of_groups


def _checked_sizes(sizes, stratum_names, n_groups, has_one):
    """The number of groups in the population of every stratum, (H,); inf where unknown."""
    if sizes is None:
        return np.full(len(n_groups), np.inf)
    if isinstance(sizes, Mapping) == has_one or not isinstance(sizes, (Mapping, Real)):
        raise ValueError(
            "strata_sizes must map every stratum to its number of groups in the population, or be one number "
            f"where there are no strata; got {sizes!r}."
        )
    if has_one:
        sizes = {stratum_names[0]: sizes}
    absent = [name for name in stratum_names if name not in sizes]
    if absent:
        raise ValueError(f"strata_sizes has no size of stratum {absent[0]}.")
    for name, n in zip(stratum_names, n_groups, strict=True):
        if not isinstance(sizes[name], Real) or not sizes[name] >= n:
            where = "the population" if has_one else f"stratum {name}"
            raise ValueError(
                f"strata_sizes says that {where} has {sizes[name]!r} groups, but {n} are here. Pass the "
                "number of groups, not of rows."
            )
    return np.array([sizes[name] for name in stratum_names], dtype=np.float64)
