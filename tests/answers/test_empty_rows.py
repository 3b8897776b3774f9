"""Rows without any value have no influence: fits with them, without them and with many of them are equal."""

import numpy as np
import pytest
from catalogue import MODELS, few_of, mixture, model_id, overlapping
from latent_class import catalogue as classes
from numpy.testing import assert_allclose, assert_array_equal

INCOMPLETE = overlapping(120)
INCOMPLETE[np.random.default_rng(0).random(INCOMPLETE.shape) < 0.1] = np.nan
INCOMPLETE[[0, 17, 18]] = np.nan
EMPTY = np.flatnonzero(np.isnan(INCOMPLETE).all(axis=1))


def assert_have_no_influence(fit, X, empty, targets):
    """Rows do nothing to a fit, neither alone nor as groups, and other rows do what they do without them."""
    kept = np.delete(np.arange(len(X)), empty)
    others = X[kept] if isinstance(X, np.ndarray) else X.iloc[kept]
    for target in targets:
        influence = fit.influence(X, target=target, perturb="weight")
        assert not influence[empty].any() and np.abs(influence).max() > 0.0
        assert_allclose(influence[kept], fit.influence(others, target=target, perturb="weight"), rtol=1e-9)
        of_few = fit.influence(X[:20], target=target, perturb="weight")  # From a system for every row.
        assert not of_few[[row for row in empty if row < 20]].any()
        grouped = fit.influence(X, target=target, perturb="weight", groups=np.arange(len(X)))
        assert_allclose(grouped, influence, rtol=1e-7, atol=1e-9 * np.abs(influence).max())
    leverage = fit.leverage(X)
    assert not leverage[empty].any() and leverage[kept].min() > 0.0
    assert_allclose(fit.leverage(X, groups=np.arange(len(X))), leverage, rtol=1e-7, atol=1e-12)
    # The rows are scored by the fit itself, as it is the fit without them.
    assert_allclose(fit.loo_score_samples(X)[empty], fit.score_samples(X)[empty], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* move the fit further than one step")
@pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
def test_empty_rows_do_nothing_to_clusters(model):
    fit = mixture(model).fit(INCOMPLETE)
    assert_have_no_influence(fit, INCOMPLETE, EMPTY, ("means", "weights"))
    weights = np.where(np.isin(np.arange(120), EMPTY), 50.0, 1.0)
    heavy = mixture(model).fit(INCOMPLETE, sample_weight=weights)
    assert_array_equal(heavy.means_, fit.means_)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed", "surplus", "one class"])
def test_empty_rows_do_nothing_to_classes(name):
    problem, fit = classes.PROBLEMS[name], classes.fitted(name)
    assert problem.X.iloc[5].isna().all()
    assert_have_no_influence(
        fit, problem.X, [5], ("tables",) if name == "one class" else ("tables", "weights")
    )


@pytest.mark.parametrize("form", ["batches", "dask"])
def test_empty_rows_do_nothing_in_parts(form):
    problem, fit = classes.PROBLEMS["mixed"], classes.fitted("mixed")
    if form == "batches":
        influence, leverage = (
            method([problem.X[:7], problem.X[7:]]) for method in (fit.influence, fit.leverage)
        )
    else:
        dask, frames = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
        with dask.config.set(scheduler="synchronous"):
            X = frames.from_pandas(problem.X, npartitions=3)
            influence, leverage = (np.asarray(method(X)) for method in (fit.influence, fit.leverage))
    assert not influence[5].any() and leverage[5] == 0.0
    assert_allclose(influence, fit.influence(problem.X), rtol=1e-9, atol=1e-12)
