"""No two entries of what is reported have one name."""

import numpy as np
import pandas as pd
import pytest
from catalogue import overlapping, require_arviz

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture

RNG = np.random.default_rng(0)
FIRST = RNG.integers(2, size=60)
TABLES = {
    "columns with signs": {"a": np.where(FIRST, "b=c", "q"), "a=b": np.where(RNG.random(60) < 0.5, "c", "d")},
    "numbers and words": {"a": [1 if one else "1" for one in FIRST], "b": np.where(FIRST, "x", "y")},
    "names of other arrays": {
        "weights": np.where(FIRST, "x", "y"),
        "column weights": FIRST + RNG.normal(size=60),
    },
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Categories that differ")
@pytest.mark.parametrize("name", TABLES)
def test_names_of_classes_are_unique(name):
    X = pd.DataFrame({column: pd.Series(values, dtype=object) for column, values in TABLES[name].items()})
    X = X.infer_objects()
    fit = LRVBLatentClassMixture(2, random_state=0, n_init=2).fit(X)
    summary = fit.posterior(method="lrvb").summary()
    assert summary.index.is_unique and len(set(fit.posterior_names_)) == len(fit.posterior_names_)
    entry = summary.index[-1]
    decided = fit.deciding_rows(X, conclusion=entry, threshold=0.4)
    np.testing.assert_allclose(decided.value, summary.loc[entry, "mean"], rtol=1e-12)
    draws = fit.posterior(random_state=0).sample(3)
    assert len(draws) == 1 + X.shape[1]
    require_arviz()
    data = fit.posterior(random_state=0).to_arviz(3)
    assert set(data.posterior.data_vars) == set(draws)
    assert all(data.posterior[axis].to_index().is_unique for axis in data.posterior.coords)


def test_names_of_clusters_are_unique():
    X = pd.DataFrame(overlapping(), columns=["a", "a,a"])
    fit = LRVBGaussianMixture(n_components=2, random_state=0).fit(X.assign(a3=RNG.normal(size=len(X))))
    assert len(set(fit.posterior_names_)) == len(fit.posterior_names_)
    X.columns = ["x", "y,z"]
    wide = X.assign(**{"x,y": RNG.normal(size=len(X)), "z": RNG.normal(size=len(X))})
    fit = LRVBGaussianMixture(n_components=2, random_state=0).fit(wide)
    names = fit.posterior_names_
    assert len(set(names)) == len(names)
    assert "precision[0,x,y,z]" in names and "precision[0,'x,y','z']" in names
