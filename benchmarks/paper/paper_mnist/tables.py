"""Section on the zeros and ones of MNIST: errors, times, standard deviations."""

from benchmarks.harness.tables import SIZES, table, text, yes
from benchmarks.paper import PAPER_INFLUENCE_SECONDS, PAPER_REFIT_SECONDS

_METHODS = {"lrvb": "LRVB", "mean_field": "mean field"}
_NOISY = 1.1  # root mean square of errors, in units of their noise, that may still be chance


def section(found):
    fits = [row for row in found if row.get("test_error") is not None]
    groups = [row for row in found if row.get("lrvb_worst_error") is not None]
    return f"""A mixture of two components is fitted to zeros and ones without their labels, and every
component stands for the label of most of its test digits. The paper's error of 0.08 belongs to its features:
its program read the pixels as signed bytes (255 became -1) and took the principal components of all ten
digits. "P = 25" and "P = 100" are principal components of the training digits, with the grey levels read
rightly. The model is the paper's (flat prior, independent factors). "Our defaults" are a conjugate prior and
joint factors; raw pixels, some of which are constant, are fitted by these only.

{_errors(fits)}

The next table has the seconds of the questions to one fit, asked in turn on {_threads(fits)}. k-means is part
of the fit, the projection is not. "Covariance" is the time after the fit for all standard deviations: of
weights, means and, except for raw pixels, precisions. Influence is that of all training points, on all means
and log weights, and on all precisions, where the array takes less than 4 GB. The last column is the paper's
time over that of both.

{_papers_times()}

{_times(fits)}

The next table shows how far mean-field standard deviations fall short: the least ratio to those of LRVB in
every group.

{_ratios(fits)}

{_published(groups)}
![Standard deviations and times](paper_mnist.png)
"""


def _threads(found):
    counts = sorted({row["threads"] for row in found})
    return ", ".join("one thread" if count == 1 else f"{count:.0f} threads" for count in counts)


def _papers_times():
    influence, refits = PAPER_INFLUENCE_SECONDS, PAPER_REFIT_SECONDS / 60
    return f"""The paper took {influence:.0f} s for its influence, without the covariance, and {refits:.1f}
min to perturb five points and optimise again, on its authors' machine of its time. It does not say how many
points influenced which parameters, nor how long fit and covariance took."""


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
            ("influence on means and log weights, s", text("influence_seconds", "{:.3g}")),
            ("influence on precisions, s", text("precisions_influence_seconds", "{:.3g}")),
            ("the paper's 37 s over these two", _times_faster),
        ],
        fits,
    )


def _times_faster(row):
    """The paper's time over ours for influence on all parameters, where there are 25 features too."""
    seconds = [row.get(f"{name}_seconds") for name in ("influence", "precisions_influence")]
    if row["mode"] == "quick" or row["n_features"] != 25 or None in seconds:
        return ""
    return f"{PAPER_INFLUENCE_SECONDS / sum(seconds):.2g}"


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
            "The comparison with the published posterior was not measured: it needs `--mnist`, `--pca` and "
            "`--published`.\n"
        )
    same = "equal" if all(row["same_test_table"] for row in groups) else "not equal"
    return f"""The authors published the posterior of their features, whose table of test digits is {same} to
ours. The next table has the largest relative difference from the published LRVB and mean-field standard
deviations, and the largest difference from the published means of mean field and of Gibbs sampling, in
standard deviations.

{_gaps(groups)}

The last table compares with the standard deviations of the published Gibbs sampler: median, largest and mean
relative error. A Gibbs standard deviation has itself a relative error of about 1 / sqrt(2 n), where n is the
number of independent draws that its squared deviations from the mean are worth ("noise", the median of a
group). This is more than the effective sample size of the parameter ("ess"), as in an autoregression of first
order; the chain's length is not published and is taken to be the largest ess. If there were nothing but this
noise, 95 % of the errors would be less than twice the noise, their root mean square would be the noise, and
their mean, as far as parameters are independent, of the size of the noise over the root of their number
("chance of the mean"). A mean beyond that is a true difference.

{_reading(groups)}

{_accuracy(groups)}
"""


def _reading(groups):
    """A sentence about which errors are of the size of the noise."""
    parts = []
    for method, name in _METHODS.items():
        small = [_named(row) for row in groups if row[f"{method}_rms_in_noise"] < _NOISY]
        parts.append(f"{name}'s errors of {', '.join(small) or 'no group'}")
    return f"Errors of the size of the noise (root mean square below {_NOISY}): {'; '.join(parts)}."


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
