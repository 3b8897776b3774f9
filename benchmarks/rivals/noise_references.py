"""mclust's noise component on tables with outliers, stored so that benchmarks and tests need no R.

    python -m benchmarks.rivals.noise_references    # fits all tables anew, in a minute or two

`noise_references.jsonl` beside this file has a line for every table of `problems.outliers`.
"""

import argparse
import datetime
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from benchmarks.harness.measuring import cpu
from benchmarks.problems.outliers import N_CLUSTERS, OUTLIER, outlier_tables
from benchmarks.rivals import rscript

STORED = Path(__file__).with_suffix(".jsonl")
_NEIGHBOUR, _SHARE = 10, 0.1  # rows start as noise whose tenth neighbour is among the farthest tenth


@dataclass(frozen=True)
class NoiseReference:
    """What mclust with a noise component found in a table.

    Attributes
    ----------
    name : str, of the table
    checksum : float, sum of X
    weights : list (K,), of the clusters; with the noise's they sum to one
    means : list (K, P)
    noise_weight : float
    found : int, outliers that are labelled as noise
    lost : int, other rows that are labelled as noise
    agreement : float, adjusted Rand index of labels and truth, noise being a label
    seconds : float, of the processor
    mclust, cpu, date : str
    """

    name: str
    checksum: float
    weights: list
    means: list
    noise_weight: float
    found: int
    lost: int
    agreement: float
    seconds: float
    mclust: str
    cpu: str
    date: str

    def check(self, X):
        """Raise a ValueError unless these are the rows that were fitted."""
        if not np.isclose(X.sum(), self.checksum, rtol=1e-9):
            raise ValueError(
                f"mclust's fit of '{self.name}' is of rows of sum {self.checksum}, not of {X.sum()}. "
                f"Fit them by python -m benchmarks.rivals.noise_references."
            )


def starts_as_noise(X):
    """Which rows are far from others, (N,): the tenth of them with the farthest tenth neighbours.

    Distances are in units of the quartile ranges of the features, which few outliers do not change.
    """
    rows = X / np.diff(np.quantile(X, [0.25, 0.75], axis=0), axis=0)
    distances = NearestNeighbors(n_neighbors=_NEIGHBOUR).fit(rows).kneighbors()[0][:, -1]
    return distances > np.quantile(distances, 1.0 - _SHARE)


def fitted(table, version):
    """mclust's fit of an OutlierTable: a NoiseReference."""
    arrays = {"X": table.X, "start": starts_as_noise(table.X)}
    found = rscript.run("mclust_noise.R", arrays, [*table.X.shape, N_CLUSTERS])
    labels = found["labels"].astype(int) - 1
    is_noise = labels == OUTLIER
    return NoiseReference(
        name=table.name,
        checksum=float(table.X.sum()),
        weights=found["weights"][:-1].round(6).tolist(),
        means=found["means"].reshape(N_CLUSTERS, -1).round(4).tolist(),
        noise_weight=round(float(found["weights"][-1]), 6),
        found=int(np.sum(is_noise & table.is_outlier)),
        lost=int(np.sum(is_noise & ~table.is_outlier)),
        agreement=round(float(adjusted_rand_score(table.labels, labels)), 4),
        seconds=round(float(found["seconds"][0]), 3),
        mclust=version,
        cpu=cpu(),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def stored(path=STORED):
    """The stored references, by name of the table."""
    if not path.exists():
        return {}
    references = (NoiseReference(**json.loads(line)) for line in path.read_text("utf8").splitlines())
    return {reference.name: reference for reference in references}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=STORED)
    output = parser.parse_args().output
    if rscript.missing("mclust"):
        parser.exit(1, f"{rscript.missing('mclust')}\n")
    version = rscript.versions("mclust")["mclust"]
    references = []
    for table in outlier_tables():
        references.append(fitted(table, version))
        print(
            f"{table.name}: {references[-1].found} of {table.is_outlier.sum()} outliers found, "
            f"{references[-1].lost} other rows lost, {references[-1].seconds:.2f} s",
            flush=True,
        )
    lines = [json.dumps(asdict(reference)) for reference in references]
    output.write_text("\n".join(lines) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
