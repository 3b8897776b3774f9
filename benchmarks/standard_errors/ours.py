"""A fit of ours and all its standard deviations."""

from dataclasses import dataclass
from statistics import median
from time import process_time

import sklearn_lrvb
from sklearn_lrvb import LRVBGaussianMixture
from standard_errors.protocol import StandardErrors

_REPEATS = 20


def fitted(X, prior, factorization="joint"):
    """Our fit under the prior, from its default start."""
    mixture = LRVBGaussianMixture(
        n_components=prior.n_components, factorization=factorization, random_state=0, **prior.parameters
    )
    return mixture.fit(X)


@dataclass(frozen=True)
class Ours:
    """`LRVBGaussianMixture`; the median time of some fits."""

    name: str
    factorization: str

    def missing(self):
        return ""

    def version(self):
        return f"sklearn-lrvb {sklearn_lrvb.__version__}"

    def standard_errors(self, task):
        seconds = []
        for _ in range(_REPEATS):
            begin = process_time()
            sds = fitted(task.X, task.prior, self.factorization).posterior_std_
            seconds.append(process_time() - begin)
        return StandardErrors(sds, median(seconds))
