"""Tables of a class's methods for its page of the reference; every method has a page of its own.

A class with many methods lists them by the question that they answer, any other class its attributes and
its methods.
"""

import inspect
from functools import cached_property
from importlib import import_module

QUESTIONS = {
    "LRVBGaussianMixture": {
        "Fit, label rows, score them": (
            "fit fit_predict labels_ predict predict_proba score_samples score sample",
            None,
        ),
        "How sure is it?": (
            "posterior weights_std_ means_std_ covariances_std_ precisions_std_ "
            "posterior_mean_ posterior_std_ posterior_covariance_ posterior_names_",
            "how_sure",
        ),
        "Can I trust the error bars?": (
            "posterior_check prior_sensitivity",
            "can_i_trust",
        ),
        "Does the model fit?": ("model_check", "does_the_model_fit"),
        "Which points drive it?": (
            "leverage influence loo_score_samples",
            "which_points",
        ),
        "What if rows belong together?": (
            "posterior leverage influence loo_score_samples",
            "rows_that_belong_together",
        ),
        "Does the answer hang on a few rows?": (
            "deciding_rows",
            "does_it_hang_on_few_rows",
        ),
        "How many clusters?": (
            "log_evidence_ loo_score_samples posterior_check bic aic",
            "how_many_clusters",
        ),
        "Which clusters, and how sure?": (
            "partition_posterior predict predict_proba",
            "which_clusters",
        ),
        "What explains the clusters?": (
            "covariate_effects outcome_differences deciding_rows",
            "what_explains_the_clusters",
        ),
        "Outliers and heavy tails": (
            "noise_weight_std_ tails_std_ scales_std_ predict predict_proba",
            "outliers_and_heavy_tails",
        ),
        "What if values are missing?": (
            "missing_information impute sample_imputations",
            "missing_values",
        ),
        "How do I convert it?": (
            "from_sklearn to_sklearn",
            "from_bayesian_gaussian_mixture",
        ),
    },
    "LRVBLatentClassMixture": {
        "Fit, label rows, score them": (
            "fit fit_predict predict predict_proba score_samples score sample impute columns_ learned_prior_",
            "mixed_tables",
        ),
        "How sure is it?": (
            "posterior tables_ tables_std_ weights_std_ "
            "posterior_mean_ posterior_std_ posterior_covariance_ posterior_names_",
            "how_sure",
        ),
        "Can I trust the error bars?": ("posterior_check prior_sensitivity", "can_i_trust"),
        "Does the model fit?": ("model_check", "does_the_model_fit"),
        "Which rows drive it?": ("leverage influence loo_score_samples deciding_rows", "which_points"),
        "How many classes, and who is in them?": (
            "partition_posterior log_evidence_",
            "mixed_tables",
        ),
        "What explains the classes?": (
            "covariate_effects outcome_differences deciding_rows",
            "what_explains_the_clusters",
        ),
        "What other programs report": ("aic bic relative_entropy", "from_polca_or_stepmix"),
    },
    "MeanFieldPosterior": {
        "Means and error bars": ("summary mean std covariance function names mean_field_covariance", None),
        "Draws": ("sample to_arviz", None),
        "Can I trust the error bars?": ("posterior_check", "your_own_model"),
        "Has the fit arrived?": (
            "lower_bound n_iter newton_decrement flat_directions saddle lost_precision",
            None,
        ),
        "What it is made of": ("factors expected_hessian", None),
    },
}
ROOMS = (
    "sklearn_lrvb",
    "sklearn_lrvb.displays",
    "sklearn_lrvb.mean_field",
    "sklearn_lrvb.mean_field.exponential_families",
    "sklearn_lrvb.mean_field.linear_response",
    "sklearn_lrvb.linear_response",
    "sklearn_lrvb.estimators.posterior",
    "sklearn_lrvb.sampling.posterior_check",
    "sklearn_lrvb.answers.model_check",
    "sklearn_lrvb.answers.deciding_rows",
    "sklearn_lrvb.answers.number_of_clusters",
    "sklearn_lrvb.answers.partitions",
    "sklearn_lrvb.cluster_regression.results",
)
# The classes of rooms that list no public names of their own.
RESULTS = [
    "Posterior",
    "PosteriorCheck",
    "ModelCheck",
    "DecidingRows",
    "NumberOfClusters",
    "PartitionPosterior",
    "CovariateEffects",
    "OutcomeDifferences",
]


def public_classes():
    """Every class that the reference lists, by name."""
    things = {
        name: getattr(module, name)
        for module in map(import_module, ROOMS)
        for name in getattr(module, "__all__", RESULTS)
        if hasattr(module, name)
    }
    return {name: thing for name, thing in things.items() if inspect.isclass(thing)}


def documented_members(cls):
    """Names of the public methods and properties whose docstring is in the class, or in a base of its own."""
    public_bases = set(public_classes().values()) - {cls}
    own = [
        base
        for base in cls.__mro__
        if base.__module__.startswith("sklearn_lrvb") and base not in public_bases
    ]
    members = {name: member for base in reversed(own) for name, member in vars(base).items()}
    kinds = property, cached_property, classmethod, staticmethod
    return [
        name
        for name, member in members.items()
        if not name.startswith("_") and (callable(member) or isinstance(member, kinds)) and member.__doc__
    ]


def tables_of(name, cls):
    """Triples of a heading, a page of the guide or None, and the names below that heading."""
    members = documented_members(cls)
    if name not in QUESTIONS:
        methods = [member for member in members if callable(getattr(cls, member))]
        attributes = [member for member in members if member not in methods]
        tables = [("Attributes", None, attributes), ("Methods", None, methods)]
        return [table for table in tables if table[2]]
    tables = [(heading, page, names.split()) for heading, (names, page) in QUESTIONS[name].items()]
    listed = {member for *_, names in tables for member in names}
    if listed != set(members):
        raise ValueError(
            f"QUESTIONS in docs/method_tables.py has {sorted(listed - set(members))} of {name}, which do not "
            f"exist, and lacks {sorted(set(members) - listed)}: list every method below a question."
        )
    return tables


def all_tables():
    """Of every class that the reference lists its tables, and the class it extends."""
    classes = public_classes()
    names = {cls: name for name, cls in classes.items()}
    return {
        name: {
            "tables": tables_of(name, cls),
            "base": next((names[base] for base in cls.__mro__[1:] if base in names), None),
        }
        for name, cls in classes.items()
    }
