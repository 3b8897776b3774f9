"""All experiments, by page. A new one is a module in the folder of its page, and its name here."""

from importlib import import_module

# Name of the folder: title of the page, and its experiments in the order of their sections.
PAGES = {
    "speed": (
        "Speed",
        "sweep holes robust threads rows_anywhere fit small wide start information influence diagnostics "
        "growth mixed",
    ),
    "accuracy": (
        "Accuracy",
        "coverage trust exactness corrected_coverage default_coverage grouped_coverage missing_values "
        "missing_exactness imputation leave_one_out several_starts priors embeddings number_of_clusters "
        "surplus outliers heavy_tails model_check cluster_regression peers latent_classes",
    ),
    "paper": (
        "The paper's experiments",
        "paper_mnist paper_covariance paper_scaling paper_influence_refits paper_influence_landscape "
        "paper_influence_distribution",
    ),
}
PAGE_OF = {name: page for page, (_, names) in PAGES.items() for name in names.split()}


def module(name):
    """The module of an experiment, imported when it is first asked for."""
    return import_module(f"benchmarks.{PAGE_OF[name]}.{name}")
