"""mclust's noise component: the stored fits are of the tables, and R, where installed, finds them again."""

import numpy as np
import pytest

from benchmarks.problems.outliers import N_SAMPLES, outlier_table, outlier_tables
from benchmarks.rivals import noise_references, rscript

STORED = noise_references.stored()


@pytest.mark.slow
def test_every_table_is_stored_with_its_rows():
    tables = {table.name: table for table in outlier_tables()}
    assert set(STORED) == set(tables)
    for name, table in tables.items():
        reference = STORED[name]
        reference.check(table.X)
        assert sum(reference.weights) + reference.noise_weight == pytest.approx(1.0, abs=1e-5)
        assert np.shape(reference.means) == table.population.means.shape
        assert reference.found <= table.is_outlier.sum()
        assert reference.lost <= N_SAMPLES - table.is_outlier.sum()


def test_references_of_other_rows_are_refused():
    with pytest.raises(ValueError, match=r"'clean, P = 2: table 0' is of rows of sum .*noise_references"):
        STORED["clean, P = 2: table 0"].check(outlier_table("clean", 2, 1).X)


@pytest.mark.parametrize("kind", ["20 % uniform", "2 % at 1000 sd"])
def test_rows_start_as_noise_by_distances_that_do_not_depend_on_units(kind):
    table = outlier_table(kind, 5, 0)
    start = noise_references.starts_as_noise(table.X)
    assert start.sum() == N_SAMPLES // 10
    moved = table.X * np.array([1.0, 10.0, 0.1, 1e3, 1.0]) + 7.0
    np.testing.assert_array_equal(noise_references.starts_as_noise(moved), start)
    if "1000" in kind:
        assert start[table.is_outlier].all()


@pytest.mark.skipif(rscript.missing("mclust") != "", reason=rscript.missing("mclust"))
def test_mclust_finds_what_is_stored():
    table = outlier_table("20 % uniform", 5, 0)
    found = noise_references.fitted(table, rscript.versions("mclust")["mclust"])
    reference = STORED[table.name]
    np.testing.assert_allclose(found.means, reference.means, atol=1e-3)
    np.testing.assert_allclose(found.noise_weight, reference.noise_weight, atol=1e-4)
    assert (found.found, found.lost) == (reference.found, reference.lost)
