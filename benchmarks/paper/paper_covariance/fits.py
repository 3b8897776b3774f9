"""Errors of posterior covariances by LRVB and by mean field, against Gibbs sampling.

The sampler of the paper draws chains of the same posterior that is fitted, prior included; where R is not
installed, stored chains are used. "independent" is the paper's factorization of means and precisions, "joint"
is the default. Errors of sds are relative, by group of parameters; covariances of different parameters are
compared as correlations.
"""

import dataclasses

import numpy as np

from benchmarks.analysis.parameter_vectors import groups
from benchmarks.harness.measuring import summary
from benchmarks.paper.paper_covariance.tables import LEAST_EFFECTIVE_SIZE
from benchmarks.problems.clusters import PROBLEMS
from benchmarks.problems.near_flat_prior import NearFlatPrior
from benchmarks.problems.stored import stored_arrays
from benchmarks.rivals import bayesm, gibbs_references
from benchmarks.rivals.gibbs_references import POSTERIORS

FACTORIZATIONS = ("independent", "joint")
_WITH_COVARIANCES = 30  # number of data sets whose covariances are drawn
_PUBLISHED = ("gibbs_sd", "gibbs_cov", "gibbs_ess", "mfvb_sd", "lrvb_sd", "lrvb_cov")
_QUICK = {"effective_size": LEAST_EFFECTIVE_SIZE, "most_draws": 1000}


def measure(settings):
    """Yield a row for every posterior that was sampled, and for the authors' simulations if given."""
    for posterior, reference in references(settings):
        yield _row(posterior, reference, settings)
    if settings.published_simulations:
        yield _published(stored_arrays(settings.published_simulations, _PUBLISHED))


def references(settings):
    """Yield posteriors with few unknowns and their chains, sampled now or stored."""
    chosen = [posterior for posterior in POSTERIORS if posterior.group not in PROBLEMS]
    if settings.quick:
        chosen = [posterior for posterior in chosen if posterior.name in ("paper, 0", "200 rows, 2.9 sd, 1")]
    lacking = bayesm.missing()
    if lacking or settings.stored_chains:
        if lacking:
            print(f"paper_covariance: {lacking}, so that the stored chains are used", flush=True)
        yield from [(posterior, gibbs_references.stored_reference(posterior)) for posterior in chosen]
        return
    for posterior in chosen:
        if settings.quick:
            posterior = dataclasses.replace(posterior, **_QUICK)
        yield posterior, gibbs_references.sampled(posterior)


def _row(posterior, reference, settings):
    X = posterior.simulate()
    reference.check(X)
    prior = NearFlatPrior.around(X, posterior.n_components)
    mixtures = {name: prior.fitted(X, name) for name in FACTORIZATIONS}
    covariances = {
        "lrvb": mixtures["independent"].posterior_covariance_,
        "mean_field": mixtures["independent"].posterior(method="mean_field").covariance(),
        "joint": mixtures["joint"].posterior_covariance_,
    }
    times = settings.clock.interleaved({"ours": lambda: prior.fitted(X, "independent").posterior_covariance_})
    bias = (mixtures["independent"].posterior_mean_ - reference.mean) / reference.sd
    row = {
        "problem": posterior.name,
        "group": posterior.group,
        "n_samples": len(X),
        "n_features": X.shape[1],
        "n_components": posterior.n_components,
        "n_draws": reference.n_draws,
        "effective_size": reference.least_effective_size,
        "n_chains": 1,
        "n_switched": int(reference.switched > 0),
        "n_short": int(reference.least_effective_size < LEAST_EFFECTIVE_SIZE),
        "gibbs_seconds": reference.seconds,
        "gibbs_date": reference.date,
        "gibbs_cpu": reference.cpu,
        "gibbs_versions": ", ".join(f"{name} {version}" for name, version in reference.versions.items()),
        "gibbs_seconds_per_1000": 1000 * reference.seconds / reference.least_effective_size,
        "converged": mixtures["independent"].converged_,
        "largest_bias": float(np.abs(bias).max()),
        **summary(times),
    }
    places = groups(posterior.n_components, X.shape[1])
    for group, here in places.items():
        row[f"gibbs_{group}_error"] = _root_mean_square(reference.sd_errors[here])
    for method, covariance in covariances.items():
        row |= _errors(method, covariance, reference, places)
    if posterior.group == "paper":
        row["points"] = list(_points(covariances, reference, places, posterior.data_set < _WITH_COVARIANCES))
    return row


def _errors(method, covariance, reference, places):
    """Relative errors of sds by group, and errors of the correlations."""
    sds = np.sqrt(np.diag(covariance))
    row = {}
    for group, here in places.items():
        row |= _summarized(f"{method}_{group}", (sds / reference.sd - 1)[here])
    return row | _summarized(f"{method}_correlations", _correlations(covariance) - reference.correlation)


def _root_mean_square(errors):
    return float(np.sqrt(np.mean(np.square(errors))))


def _summarized(name, errors):
    return {
        f"{name}_rms_error": _root_mean_square(errors),
        f"{name}_largest_error": float(np.abs(errors).max()),
        f"{name}_mean_error": float(errors.mean()),
    }


def _points(covariances, reference, places, with_covariances):
    """Points of the paper's figure: sds of every parameter, and covariances of pairs over the Gibbs sds."""
    sds = {name: np.sqrt(np.diag(covariance)) for name, covariance in covariances.items()}
    sds["gibbs"] = np.array(reference.sd)
    for group, here in places.items():
        for entry in range(len(reference.sd))[here]:
            yield {"group": group} | {side: f"{sd[entry]:.4g}" for side, sd in sds.items()}
    if not with_covariances:
        return
    scale = np.outer(reference.sd, reference.sd)
    both = {"gibbs": reference.covariance / scale, "lrvb": covariances["lrvb"] / scale}
    for entry in zip(*np.triu_indices(len(reference.sd), 1), strict=True):
        yield {"group": "covariances"} | {side: f"{matrix[entry]:.4f}" for side, matrix in both.items()}


def _published(published):
    """The authors' simulations: their LRVB and mean field against their chains of at least 500 draws."""
    sizes = published["gibbs_ess"].min(axis=1)
    kept = sizes >= LEAST_EFFECTIVE_SIZE
    row = {
        "problem": "the authors' simulations",
        "group": "published",
        "n_samples": 10_000,
        "n_features": 2,
        "n_components": 2,
        "effective_size": float(np.median(sizes[kept])),
        "n_chains": len(kept),
        "n_short": int((~kept).sum()),
    }
    errors = {
        method: (published[f"{name}_sd"] / published["gibbs_sd"] - 1)[kept]
        for method, name in (("lrvb", "lrvb"), ("mean_field", "mfvb"))
    }
    for group, here in groups(2, 2).items():  # which are ordered as ours
        # The length of the chains is not published; this is a bound for positively correlated draws.
        row[f"gibbs_{group}_error"] = _root_mean_square((2 * published["gibbs_ess"][kept][:, here]) ** -0.5)
        for method, of_sds in errors.items():
            row |= _summarized(f"{method}_{group}", of_sds[:, here])
    ours, gibbs = (_correlations(published[f"{side}_cov"][kept]) for side in ("lrvb", "gibbs"))
    return row | _summarized("lrvb_correlations", ours - gibbs)


def _correlations(covariances):
    """Correlations above the diagonal, of one matrix or of a stack."""
    sds = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1))
    above = np.triu_indices(sds.shape[-1], 1)
    return (covariances / (sds[..., :, None] * sds[..., None, :]))[..., *above]
