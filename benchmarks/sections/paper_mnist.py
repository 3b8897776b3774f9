"""Zeros and ones of MNIST, Section 6.2 of the paper: errors, times, standard deviations."""

import targets
from tables import SIZES, table, text, yes

_METHODS = {"lrvb": "LRVB", "mean_field": "mean field"}
_NOISY = 1.1  # root mean square of errors, in noise, that may be chance


def section(found):
    fits = [row for row in found if row.get("test_error") is not None]
    groups = [row for row in found if row.get("lrvb_worst_error") is not None]
    return f"""## Zeros and ones of MNIST

Section 6.2 of the paper: a mixture of two components is fitted to zeros and ones without their labels, and
every component is taken for the label of most of the test digits in it. The paper's error of 0.08 belongs to
its features: its program read the pixels as signed bytes (255 became -1) and took the principal components of
all ten digits. "P = 25" and "P = 100" are principal components of the training digits, the grey levels read
rightly. The model is the paper's (flat prior, independent factors); "our defaults" are a conjugate prior and
joint factors, the only ones for raw pixels, some of which are constant.

{_errors(fits)}

Seconds of what is asked in turn of one fit, on {_threads(fits)}. k-means is part of the fit, the projection
is not; covariance is what the fit leaves to do for all standard deviations, of weights, means and, but for
raw pixels, precisions. Influence is of all training points: the paper's scores (on |mu_k|^2), on all means
and log weights, and on all precisions, where the array stays below 4 GB; the paper's time is over that of the
last two together.

{_papers_times()}

{_times(fits)}

How far mean-field standard deviations fall short: the least ratio to those by LRVB, of every group.

{_ratios(fits)}

{_published(groups)}
![Standard deviations and times](paper_mnist.png)
"""


def _threads(found):
    counts = sorted({row["threads"] for row in found})
    return ", ".join("one thread" if count == 1 else f"{count:.0f} threads" for count in counts)


def _papers_times():
    influence, refits = targets.PAPER_INFLUENCE_SECONDS, targets.PAPER_REFIT_SECONDS / 60
    return f"""The paper took {influence:.0f} s for its influence, the covariance not counted, and
{refits:.1f} min to perturb five points and optimise again, on its authors' machine of its time; it does not
say of how many points and on what the influence was, nor how long fit and covariance took."""


def _by_component(name):
    def cell(row):
        return ", ".join(f"{row[f'test_{name}_{component}']:,.0f}" for component in range(2))

    return cell


def _errors(fits):
    return table(
        [
            *SIZES,
            ("test error", text("test_error", "{:.4f}")),
            ("test digits", text("n_test", "{:,.0f}")),
            ("zeros by component", _by_component("zeros")),
            ("ones by component", _by_component("ones")),
            ("training error", text("train_error", "{:.4f}")),
            ("steps", text("iterations", "{:.0f}")),
            ("converged", yes("converged")),
            ("lower bound, nats", text("lower_bound", "{:,.1f}")),
        ],
        fits,
    )


def _times(fits):
    return table(
        [
            *SIZES,
            ("fit, s", text("fit_seconds", "{:.3g}")),
            ("covariance, s", text("covariance_seconds", "{:.3g}")),
            ("influence scores, s", text("scores_seconds", "{:.3g}")),
            ("influence on means and log weights, s", text("influence_seconds", "{:.3g}")),
            ("influence on precisions, s", text("precisions_influence_seconds", "{:.3g}")),
            ("the paper's 37 s over these two", _times_faster),
        ],
        fits,
    )


def _times_faster(row):
    """Influence on all parameters, only where there are 25 features as in the paper, its own or others."""
    seconds = [row.get(f"{name}_seconds") for name in ("influence", "precisions_influence")]
    if row["mode"] == "quick" or row["n_features"] != 25 or None in seconds:
        return ""
    return f"{targets.PAPER_INFLUENCE_SECONDS / sum(seconds):.2g}"


def _ratios(fits):
    return table(
        [
            *SIZES,
            ("log weights", text("log_weights_least_ratio", "{:.3f}")),
            ("means", text("means_least_ratio", "{:.3f}")),
            ("precisions", text("precisions_least_ratio", "{:.3f}")),
        ],
        fits,
    )


def _published(groups):
    if not groups:
        return (
            "The comparison with the published posterior takes `--mnist`, `--pca` and `--published`; it was "
            "not measured.\n"
        )
    same = "equal" if all(row["same_test_table"] for row in groups) else "not equal"
    return f"""Against the published posterior of the paper's features, whose table of test digits is {same}
to ours: largest relative gap to the published LRVB and mean-field standard deviations, and largest gap to the
published mean-field means, and to those of Gibbs sampling, in standard deviations.

{_gaps(groups)}

Against the published Gibbs sampler's standard deviations: median, largest and mean relative error. A Gibbs
standard deviation is itself off by about 1 / sqrt(2 n) of its value, n the independent draws that its squared
deviations from the mean are worth ("noise", the median of a group). They are worth more than the effective
sample size of the parameter ("ess"), by as much as in an autoregression of first order; the chain's length,
not published, is taken for the largest ess. Were there nothing but this noise, 95 % of the errors would be
below twice of it, their root mean square one of it, and their mean, as far as parameters are independent, of
the size of the noise over the root of their number ("chance of the mean"); beyond that the mean is a true
difference.

{_reading(groups)}

{_accuracy(groups)}
"""


def _reading(groups):
    """Which errors are of the size of the noise, in a sentence."""
    parts = []
    for method, name in _METHODS.items():
        small = [_named(row) for row in groups if row[f"{method}_rms_in_noise"] < _NOISY]
        parts.append(f"{name}'s errors of {', '.join(small) or 'no group'}")
    return f"Of the size of the noise (root mean square below {_NOISY}) are {'; '.join(parts)}."


def _named(row):
    return row["group"].replace("_", " ")


def _gaps(groups):
    return table(
        [
            SIZES[0],
            ("parameters", text("n_parameters", "{:.0f}")),
            ("LRVB", text("lrvb_from_published", "{:.0e}")),
            ("mean field", text("mean_field_from_published", "{:.0e}")),
            ("mean-field mean, sd", text("mean_from_published", "{:.0e}")),
            ("Gibbs mean, sd", text("mean_worst_error", "{:.2f}")),
        ],
        groups,
    )


def _accuracy(groups):
    columns = [
        SIZES[0],
        ("least ess", text("least_effective_size", "{:,.0f}")),
        ("noise", text("noise", "{:.1%}")),
        ("chance of the mean", lambda row: f"{row['noise'] / row['n_parameters'] ** 0.5:.1%}"),
    ]
    for method, name in _METHODS.items():
        columns += [
            (f"{name}: median, largest, mean", _three_errors(method)),
            ("below twice the noise", text(f"{method}_within_noise", "{:.0%}")),
            ("rms, in noise", text(f"{method}_rms_in_noise", "{:.2f}")),
        ]
    return table(columns, groups)


def _three_errors(method):
    def cell(row):
        median, worst = row[f"{method}_median_error"], row[f"{method}_worst_error"]
        return f"{median:.1%}, {worst:.1%}, {row[f'{method}_mean_error']:+.1%}"

    return cell
