"""P(K | X) of tables by long chains of partitions, stored so that benchmarks and tests need not sample them.

    python -m benchmarks.rivals.number_references                  # the tables drawn from the prior, and iris
    python -m benchmarks.rivals.number_references --data FOLDER    # galaxies, faithful and penguins as well
    python -m benchmarks.rivals.number_references galaxies --data FOLDER  # samples these anew
    python -m benchmarks.rivals.number_references "prior, 14" --chains 256  # more chains, where they differ

`number_references.jsonl` beside this file has a line for every table. FOLDER has galaxies.csv (82 velocities
in 1000 km/s, as in R's MASS), faithful.csv (as in R) and penguins.csv (the 342 complete rows of four
measurements of palmerpenguins), with a line of names above the numbers. Rows are recognised by a checksum.
"""

import argparse
import datetime
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from sklearn.datasets import load_iris

from benchmarks.analysis.partition_chains import PartitionChains, log_joint_weights, number_probabilities
from benchmarks.harness.measuring import cpu
from benchmarks.problems.prior_tables import N_TABLES, PRIOR, ConjugatePrior, prior_table

STORED = Path(__file__).with_suffix(".jsonl")
N_COMPONENTS = 6  # K = 1, ..., 6
_DRAWN = [f"prior, {seed}" for seed in range(N_TABLES)]


@dataclass(frozen=True)
class RealTable:
    """A table that people cluster, its prior, and how long it is sampled: to errors of P(K) below 0.01.

    Attributes
    ----------
    table : str
    n_sweeps : int, of every chain
    covariance, mean_precision : float, factors of C0 and b0 of the default prior
    """

    table: str
    n_sweeps: int
    covariance: float = 1.0
    mean_precision: float = 1.0

    @property
    def is_installed(self):
        """Whether the rows come with scikit-learn, and not from a folder."""
        return self.table == "iris"

    def read(self, folder):
        """The rows, (N, P)."""
        if self.is_installed:
            return load_iris().data
        return np.loadtxt(Path(folder) / f"{self.table}.csv", delimiter=",", skiprows=1, ndmin=2)

    def prior(self, X):
        """The ConjugatePrior of these rows."""
        default = ConjugatePrior.default(X)
        return replace(
            default,
            covariance=self.covariance * default.covariance,
            mean_precision=self.mean_precision * default.mean_precision,
        )


REAL = {
    "galaxies": RealTable("galaxies", 4000),
    "galaxies, C0/10": RealTable("galaxies", 4000, covariance=0.1),
    "galaxies, b0/10": RealTable("galaxies", 4000, mean_precision=0.1),
    "faithful": RealTable("faithful", 2000),
    "iris": RealTable("iris", 2500),
    "iris, C0/10": RealTable("iris", 2500, covariance=0.1),
    "penguins": RealTable("penguins", 1000),
}
NAMES = [*_DRAWN, *REAL]
_N_CHAINS, _N_CHAINS_DRAWN = 256, 32  # Of a real table, and as a rule of each of those drawn from the prior.


@dataclass(frozen=True)
class NumberReference:
    """What chains of partitions say about the number of clusters.

    Attributes
    ----------
    name : str, one of `NAMES`
    n_samples : int
    checksum : float, sum of X
    concentration : float, alpha
    shares : (2, 6) lists, of the draws with 1, ..., 6 occupied components, by two halves of the chains
    errors : (6,) list, standard errors of P(K | X), by the spread of the chains
    n_chains, n_sweeps, n_burn_in : int
    seconds : float, of the processor
    cpu, date : str
    """

    name: str
    n_samples: int
    checksum: float
    concentration: float
    shares: list
    errors: list
    n_chains: int
    n_sweeps: int
    n_burn_in: int
    seconds: float
    cpu: str
    date: str

    def probabilities(self, most=N_COMPONENTS):
        """P(K | X) for K = 1, ..., most."""
        return number_probabilities(np.mean(self.shares, axis=0), self.n_samples, self.concentration, most)

    @property
    def distance(self):
        """Total variation distance of the P(K | X) of the two halves of the chains; their mean is nearer."""
        first, second = number_probabilities(np.array(self.shares), self.n_samples, self.concentration)
        return 0.5 * np.abs(first - second).sum()

    def check(self, X):
        """Raise a ValueError unless these are the rows that were sampled."""
        if len(X) != self.n_samples or not np.isclose(X.sum(), self.checksum, rtol=1e-9):
            raise ValueError(
                f"The chains of '{self.name}' were sampled for {self.n_samples} rows of sum {self.checksum}, "
                f"not for {len(X)} of sum {X.sum()}. Sample them by "
                f"python -m benchmarks.rivals.number_references '{self.name}'."
            )


def sampled(names, X, prior, n_chains, n_sweeps):
    """References of tables of the same shape and prior, sampled together.

    Parameters
    ----------
    names : list of str
    X : (n_tables, N, P)
    prior : ConjugatePrior
    n_chains : int, of every table, even
    n_sweeps : int, after a burn-in of a quarter as many

    Yields
    ------
    NumberReference
    """
    n_samples, concentration, n_burn_in = X.shape[1], prior.concentration, n_sweeps // 4
    log_weights = logsumexp(log_joint_weights(N_COMPONENTS, n_samples, concentration), axis=0)
    before = time.process_time()
    chains = PartitionChains(X, prior, log_weights, n_chains, np.random.default_rng(0))
    draws = chains.occupied_draws(n_sweeps, n_burn_in).reshape(len(X), n_chains, n_sweeps)
    seconds = (time.process_time() - before) / len(X)
    shares = (draws[..., None] == np.arange(1, N_COMPONENTS + 1)).mean(axis=2)
    for name, rows, own in zip(names, X, shares, strict=True):
        probabilities = number_probabilities(own, n_samples, concentration)
        yield NumberReference(
            name=name,
            n_samples=n_samples,
            checksum=float(rows.sum()),
            concentration=concentration,
            shares=own.reshape(2, -1, N_COMPONENTS).mean(axis=1).round(6).tolist(),
            errors=(probabilities.std(axis=0, ddof=1) / np.sqrt(n_chains)).round(5).tolist(),
            n_chains=n_chains,
            n_sweeps=n_sweeps,
            n_burn_in=n_burn_in,
            seconds=round(seconds, 1),
            cpu=cpu(),
            date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )


def _all_sampled(wanted, folder, n_chains):
    """References of the wanted names; tables drawn from the prior have so many chains."""
    drawn = [name for name in _DRAWN if name in wanted]
    if drawn:
        X = np.array([prior_table(_DRAWN.index(name))[0] for name in drawn])
        yield from sampled(drawn, X, PRIOR, n_chains, n_sweeps=4000)
    for name in wanted:
        if name in REAL:
            X = REAL[name].read(folder)
            yield from sampled([name], X[None], REAL[name].prior(X), _N_CHAINS, REAL[name].n_sweeps)


def stored(path=STORED):
    """The stored references, by name."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf8").splitlines()
    return {
        reference.name: reference for reference in (NumberReference(**json.loads(line)) for line in lines)
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="which tables; those that are not stored by default")
    parser.add_argument("--data", type=Path, help="folder of galaxies.csv, faithful.csv and penguins.csv")
    parser.add_argument("--chains", type=int, default=_N_CHAINS_DRAWN, help="of tables drawn from the prior")
    parser.add_argument("--output", type=Path, default=STORED)
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(NAMES)
    if unknown:
        parser.error(f"there are no tables {', '.join(unknown)}; there are {', '.join(NAMES)}")
    wanted = arguments.names or [name for name in NAMES if name not in stored(arguments.output)]
    if arguments.data is None:
        unread = [name for name in wanted if name in REAL and not REAL[name].is_installed]
        if arguments.names and unread:
            parser.error(f"the rows of {', '.join(unread)} are not in this package: give a folder by --data")
        wanted = [name for name in wanted if name not in unread]
    for reference in _all_sampled(wanted, arguments.data, arguments.chains):
        references = stored(arguments.output) | {reference.name: reference}
        lines = [json.dumps(asdict(references[name])) for name in NAMES if name in references]
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf8")
        print(
            f"{reference.name}: P(K) {reference.probabilities().round(3)}, halves differ by "
            f"{reference.distance:.3f}, {reference.seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
