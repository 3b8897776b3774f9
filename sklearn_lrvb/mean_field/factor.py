"""Factors of q, and where their statistics sit in flat vectors.

*Conventions.* The parameters of a factor are an array (D,), or (copies, D). The flat vector of a model runs
factor by factor, then copy by copy, then through the family's statistics.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from sklearn_lrvb.exponential_families import ExponentialFamily
from sklearn_lrvb.exponential_families.family import require_count


@dataclass(frozen=True)
class Factor:
    """One factor of q: a member of a family, or independent copies of it.

    Parameters
    ----------
    family : ExponentialFamily
    copies : int, default=None
        Number of independent members; their statistics then have a leading axis (copies, ...). None is one
        member, without that axis.
    """

    family: ExponentialFamily
    copies: int | None = None

    def __post_init__(self):
        if not isinstance(self.family, ExponentialFamily):
            raise ValueError(
                f"A factor's family is an ExponentialFamily, such as Gamma(); got {self.family!r}."
            )
        if self.copies is not None:
            require_count("A factor's copies", self.copies)

    @property
    def lead(self):
        """Shape of the copies: () or (copies,)."""
        return () if self.copies is None else (self.copies,)

    @property
    def shape(self):
        """Shape of natural and mean parameters."""
        return (*self.lead, self.family.n_statistics)

    @property
    def size(self):
        """Number of statistics of all copies."""
        return prod(self.shape)

    def statistic_shape(self, statistic):
        """Shape of one statistic, the copies' axis first."""
        return (*self.lead, *self.family.statistics[statistic])

    def index(self, statistic):
        """Index of one statistic in the factor's parameters: tuple of slices, one for every axis."""
        return (*(slice(None) for _ in self.lead), self.family.slices[statistic])

    def entries(self, parameters, statistic):
        """The entries of one statistic in its shape: a view of ``parameters``."""
        return parameters[self.index(statistic)].reshape(self.statistic_shape(statistic))

    def positions(self, statistic):
        """Where one statistic's entries are in the factor's flat vector."""
        return self.entries(np.arange(self.size).reshape(self.shape), statistic).ravel()

    def covariance_blocks(self, natural):
        """V of every copy: (1 or copies, D, D)."""
        return self.family.covariance(natural).reshape(-1, self.shape[-1], self.shape[-1])

    def labels(self, name):
        """Labels of the factor's flat vector, such as "mu.value[0]" or "z.indicator[3,1]": (size,)."""
        labels = np.empty(self.size, dtype=object)
        for statistic in self.family.statistics:
            indices = np.ndindex(*self.statistic_shape(statistic))
            labels[self.positions(statistic)] = [entry_label(f"{name}.{statistic}", i) for i in indices]
        return labels


def entry_label(name, index):
    """Label of one entry: "tau.value" has no index, "mu.value[0]" has one."""
    return f"{name}[{','.join(map(str, index))}]" if index else name
