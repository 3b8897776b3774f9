"""Moments of posteriors by long Gibbs chains, stored so that benchmarks and tests need no R.

    python -m benchmarks.rivals.gibbs_references                 # samples what is not stored: an hour or more
    python -m benchmarks.rivals.gibbs_references --again paper   # samples the paper's simulations anew

R's bayesm samples them, and `gibbs_references.jsonl` beside this file has a line for every posterior. The
rows X are simulated by the generators that the names stand for, and are recognised by a checksum.
"""

import argparse
import datetime
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.analysis.chains import n_switched, sd_errors
from benchmarks.harness.measuring import cpu
from benchmarks.problems.clusters import PROBLEMS
from benchmarks.problems.near_flat_prior import NearFlatPrior
from benchmarks.problems.populations import ACCURACY, PAPER
from benchmarks.rivals import bayesm

STORED = Path(__file__).with_suffix(".jsonl")
N_PAPER = 88  # data sets; the paper has 68
_MOST_UNKNOWNS = 100  # of a posterior whose correlations are stored
_DIGITS = {"mean": 10, "sd": 5, "correlation": 4, "effective_sizes": 4}  # significant


@dataclass(frozen=True)
class Posterior:
    """A posterior to sample, and how accurately.

    Attributes
    ----------
    group, name : str
    data_set : int, seed of the chain, and of the rows where a population has several data sets
    simulate : callable, () -> X
    n_components : int
    effective_size : float, least effective size of a parameter at which the chain ends
    most_draws : int
    """

    group: str
    data_set: int
    simulate: Callable
    n_components: int
    effective_size: float
    most_draws: int = 200_000

    @property
    def name(self):
        return f"{self.group}, {self.data_set}"


def _of_population(scenario, n_data_sets, effective_size):
    return [
        Posterior(scenario.name, i, partial(scenario.simulate, i), scenario.n_components, effective_size)
        for i in range(n_data_sets)
    ]


def _of_problem(name, effective_size):
    problem = PROBLEMS[name]
    return Posterior(name, problem.seed, problem.simulate, problem.n_components, effective_size)


POSTERIORS = [
    _of_problem("plane", 5000),
    *(posterior for scenario in ACCURACY for posterior in _of_population(scenario, 2, 2000)),
    _of_problem("digits", 2000),
    *_of_population(PAPER, N_PAPER, 1000),
]


@dataclass(frozen=True)
class Reference:
    """Moments of a chain.

    Attributes
    ----------
    group, data_set : as in `Posterior`
    n_samples : int
    checksum : float, sum of X
    n_draws : int
    switched : int, draws that have the components in another order
    burn_in_seconds, seconds : float, of the processor
    effective_sizes, mean, sd : (D,) lists, in the order of ``posterior_names_``
    correlation : list or None, entries above the diagonal, row by row
    versions : dict, of R and its packages
    cpu, date : str
    """

    group: str
    data_set: int
    n_samples: int
    checksum: float
    n_draws: int
    switched: int
    burn_in_seconds: float
    seconds: float
    effective_sizes: list
    mean: list
    sd: list
    correlation: list | None
    versions: dict
    cpu: str
    date: str

    @property
    def least_effective_size(self):
        return min(self.effective_sizes)

    @property
    def sd_errors(self):
        """Relative standard errors of the sds, (D,)."""
        return sd_errors(self.n_draws, self.effective_sizes)

    @property
    def covariance(self):
        """(D, D)."""
        matrix = np.eye(len(self.sd))
        upper = np.triu_indices(len(self.sd), 1)
        matrix[upper] = matrix.T[upper] = self.correlation
        return matrix * np.outer(self.sd, self.sd)

    def check(self, X):
        """Raise an error unless X are the rows that were sampled for."""
        total = float(X.sum())
        if len(X) != self.n_samples or not np.isclose(total, self.checksum, rtol=1e-9, atol=1e-6):
            raise ValueError(
                f"The chain of {self.group}, {self.data_set} was sampled for {self.n_samples} rows of sum "
                f"{self.checksum}, these are {len(X)} of sum {total}: the generators have changed, sample "
                f"again by python -m benchmarks.rivals.gibbs_references --again '{self.group}'."
            )


def sampled(posterior):
    """Sample a posterior now, and return its Reference."""
    X = posterior.simulate()
    prior = NearFlatPrior.around(X, posterior.n_components)
    labels = prior.fitted(X, "independent").predict(X)
    chain = bayesm.sample(
        X, labels, prior, posterior.effective_size, posterior.most_draws, posterior.data_set
    )
    return summarized(posterior, X, labels, chain)


def summarized(posterior, X, labels, chain):
    """The Reference of a chain that began at the labels."""
    draws = chain.draws
    few = draws.shape[1] <= _MOST_UNKNOWNS
    numbers = {
        "mean": draws.mean(axis=0),
        "sd": draws.std(axis=0),
        "effective_sizes": chain.effective_sizes,
        "correlation": np.corrcoef(draws.T)[np.triu_indices(draws.shape[1], 1)] if few else None,
    }
    return Reference(
        group=posterior.group,
        data_set=posterior.data_set,
        n_samples=len(X),
        checksum=float(X.sum()),
        n_draws=len(draws),
        switched=int(n_switched(draws, X, labels, posterior.n_components)),
        burn_in_seconds=round(float(chain.burn_in_seconds), 2),
        seconds=round(float(chain.seconds), 2),
        versions=bayesm.versions(),
        cpu=cpu(),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **{name: _rounded(values, _DIGITS[name]) for name, values in numbers.items()},
    )


def _rounded(values, digits):
    return None if values is None else [float(f"{value:.{digits - 1}e}") for value in values]


def stored(path=STORED):
    """The stored references, by name of their posterior."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf8").splitlines()
    references = [Reference(**json.loads(line)) for line in lines]
    return {f"{reference.group}, {reference.data_set}": reference for reference in references}


def stored_reference(posterior):
    """The stored reference of a posterior."""
    references = stored()
    if posterior.name not in references:
        raise ValueError(
            f"No chain of '{posterior.name}' is stored. Sample it by "
            f"python -m benchmarks.rivals.gibbs_references '{posterior.group}', which needs R."
        )
    return references[posterior.name]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", help="which posteriors, such as paper or digits; all by default")
    parser.add_argument("--again", action="store_true", help="those that are stored, too")
    parser.add_argument("--output", type=Path, default=STORED)
    arguments = parser.parse_args()
    known = dict.fromkeys(posterior.group for posterior in POSTERIORS)
    unknown = [group for group in arguments.groups if group not in known]
    if unknown:
        parser.error(f"there are no posteriors {', '.join(unknown)}; there are {', '.join(known)}")
    if bayesm.missing():
        parser.exit(1, f"{bayesm.missing()}\n")
    for posterior in POSTERIORS:
        if arguments.groups and posterior.group not in arguments.groups:
            continue
        if posterior.name in stored(arguments.output) and not arguments.again:
            continue
        reference = sampled(posterior)
        references = stored(arguments.output) | {posterior.name: reference}
        order = [one.name for one in POSTERIORS]
        lines = [json.dumps(asdict(references[name])) for name in order if name in references]
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf8")
        print(
            f"{posterior.name}: {reference.n_draws} draws, effective {reference.least_effective_size:.0f}, "
            f"{reference.seconds:.0f} s, {reference.switched} draws switched",
            flush=True,
        )


if __name__ == "__main__":
    main()
