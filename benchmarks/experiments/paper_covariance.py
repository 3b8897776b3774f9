"""Posterior covariances by LRVB and by mean field against Gibbs sampling (Section 6.3 of the paper).

Chains are of the posterior that is fitted, prior included, by the sampler of the paper; where R is not there,
stored ones. "independent" is the paper's factorization, of means and precisions; "joint" is the default.
Relative errors of sds, by group of parameters; covariances of different parameters as correlations.
"""

import dataclasses

import bayesm
import gibbs_references
import numpy as np
from gibbs_references import POSTERIORS
from measuring import summary
from near_flat_prior import NearFlatPrior
from parameter_vectors import groups
from problems import PROBLEMS

LEAST_EFFECTIVE_SIZE = 500  # the paper's, by which chains are left out
FACTORIZATIONS = ("independent", "joint")
_WITH_COVARIANCES = 30  # data sets whose covariances are drawn
_QUICK = {"effective_size": LEAST_EFFECTIVE_SIZE, "most_draws": 3000}


def measure(settings):
    for posterior, reference in references(settings):
        yield _row(posterior, reference, settings)
    if settings.published_simulations:
        yield _published(np.load(settings.published_simulations))


def references(settings):
    """Yield posteriors of a few unknowns and their chains, sampled now or stored."""
    chosen = [posterior for posterior in POSTERIORS if posterior.group not in PROBLEMS]
    if settings.quick:
        chosen = [posterior for posterior in chosen if posterior.name in ("paper, 0", "200 rows, 2.9 sd, 1")]
    lacking = bayesm.missing()
    if lacking or settings.stored_chains:
        if lacking:
            print(f"{lacking}: compared with the stored chains")
        yield from [(posterior, gibbs_references.kept(posterior)) for posterior in chosen]
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
        "mean_field": mixtures["independent"].get_posterior_covariance(method="mean_field"),
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
    """What the paper draws: sds of every parameter, and covariances of pairs, these over the Gibbs sds."""
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
    for group, here in groups(2, 2).items():  # as ours are ordered
        # how long the chains were is not published: a bound, as of positively correlated draws
        row[f"gibbs_{group}_error"] = _root_mean_square((2 * published["gibbs_ess"][kept][:, here]) ** -0.5)
        for method, of_sds in errors.items():
            row |= _summarized(f"{method}_{group}", of_sds[:, here])
    ours, gibbs = (_correlations(published[f"{side}_cov"][kept]) for side in ("lrvb", "gibbs"))
    return row | _summarized("lrvb_correlations", ours - gibbs)


def _correlations(covariances):
    """Above the diagonals, of one matrix or a stack."""
    sds = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1))
    above = np.triu_indices(sds.shape[-1], 1)
    return (covariances / (sds[..., :, None] * sds[..., None, :]))[..., *above]
