"""The published posterior of the zeros and ones of MNIST, beside a fit of ours to the same features.

Gibbs draws are correlated: the errors of their standard deviations follow from the length of the chain and
the effective sizes (`chains.sd_errors`). The length is not published; it is taken to be the largest effective
size, 2000, as if the best parameters were sampled by independent draws. Errors are also given in units of
this noise.
"""

import re

import numpy as np

from benchmarks.analysis.chains import sd_errors
from benchmarks.harness.inside import lrvb_std, mean_field_std

# Groups of parameters in the order of `posterior_names_`, and their names in the publication.
GROUPS = {"log_weights": "log_pi", "means": "mu", "precisions": "Lambda"}
# Arrays of the publication.
_COLUMNS = ("params", "gibbs_mean", "gibbs_sd", "gibbs_ess", "mfvb_mean", "mfvb_sd", "lrvb_sd")
PUBLISHED = (*_COLUMNS, "test_table")
_DIGITS = 4  # of the coordinates of a point


def comparison(published, mixture):
    """Yield a row for every group of parameters, with a point for every parameter.

    Parameters
    ----------
    published : dict of params (names), gibbs_mean, gibbs_sd, gibbs_ess, mfvb_mean, mfvb_sd, lrvb_sd, (D,)
    mixture : LRVBGaussianMixture, fitted with prior="flat" and factorization="independent"
    """
    order = _places(published, mixture)
    lrvb, mean_field = (
        np.concatenate([std(mixture, group) for group in GROUPS])[order] for std in (lrvb_std, mean_field_std)
    )
    mean = mixture.posterior_mean_[order]
    ess = published["gibbs_ess"]
    noise = sd_errors(round(ess.max()), ess)
    kind = np.array([name.split("[")[0] for name in published["params"]])
    for group, name in GROUPS.items():
        here = kind == name
        truth = {column: published[column][here] for column in _COLUMNS}
        yield {
            "problem": f"published {group.replace('_', ' ')}",
            "group": group,
            **_compared(truth, noise[here], mean[here], lrvb[here], mean_field[here]),
        }


def same_table(published, table):
    """Whether the table of test digits (component, label) is the published one, up to order."""
    theirs = published["test_table"].T.tolist()
    return table.tolist() in (theirs, theirs[::-1])


def _places(published, mixture):
    """Index of every published parameter in `posterior_names_`, components matched by their weights: (D,)."""
    weights = [published["mfvb_mean"][list(published["params"]).index(f"log_pi[{k}]")] for k in range(2)]
    number = np.empty(2, dtype=int)
    number[np.argsort(mixture.weights_)] = np.argsort(weights)
    places = {}
    for place, name in enumerate(mixture.posterior_names_):
        kind, component, features = re.fullmatch(r"(\w+)\[(\d)(.*)\]", name).groups()
        places[f"{GROUPS[kind + 's']}[{number[int(component)]}{features.replace('x', '')}]"] = place
    return np.array([places[name] for name in published["params"]])


def _compared(truth, noise, mean, lrvb, mean_field):
    """Columns and points of one group; the noise is the relative error of the Gibbs sds."""
    points = {
        "lrvb": lrvb,
        "lrvb_over_gibbs": lrvb / truth["gibbs_sd"],
        "mean_field_over_gibbs": mean_field / truth["gibbs_sd"],
    }
    return {
        "n_parameters": len(mean),
        "lrvb_from_published": _furthest(lrvb / truth["lrvb_sd"] - 1),
        "mean_field_from_published": _furthest(mean_field / truth["mfvb_sd"] - 1),
        "mean_from_published": _furthest((mean - truth["mfvb_mean"]) / lrvb),
        "least_effective_size": truth["gibbs_ess"].min(),
        "noise": np.median(noise),
        "mean_worst_error": _furthest((mean - truth["gibbs_mean"]) / truth["gibbs_sd"]),
        **_errors("lrvb", points["lrvb_over_gibbs"] - 1, noise),
        **_errors("mean_field", points["mean_field_over_gibbs"] - 1, noise),
        "points": [
            {name: f"{values[j]:.{_DIGITS}g}" for name, values in points.items()} for j in range(len(mean))
        ],
    }


def _errors(method, errors, noise):
    """Columns about relative errors of one method's standard deviations, also in units of the noise."""
    in_noise = errors / noise
    return {
        f"{method}_median_error": np.median(np.abs(errors)),
        f"{method}_worst_error": _furthest(errors),
        f"{method}_mean_error": errors.mean(),
        f"{method}_within_noise": np.mean(np.abs(in_noise) < 2),
        f"{method}_rms_in_noise": np.sqrt(np.mean(np.square(in_noise))),
    }


def _furthest(values):
    return np.abs(values).max()
