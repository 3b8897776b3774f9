"""The order of the lessons in ``examples/``, by group; a lesson that is not listed here fails the build."""

GROUPS = {
    "A fit, and how sure it is": (
        "plot_first_fit.py",
        "plot_mnist_pca_pipeline.py",
        "plot_trust.py",
    ),
    "How many clusters, and which model": (
        "plot_how_many_clusters.py",
        "plot_model_choice.py",
        "plot_leave_one_out.py",
        "plot_model_check.py",
    ),
    "What explains the clusters": ("plot_what_explains.py",),
    "Which rows matter": (
        "plot_outliers.py",
        "plot_influence_landscape.py",
        "plot_deciding_rows.py",
    ),
    "Outliers and heavy tails": (
        "plot_noise.py",
        "plot_heavy_tails.py",
    ),
    "Mixed tables": (
        "plot_latent_classes.py",
        "plot_mixed_columns.py",
    ),
    "Priors, weights, groups and missing values": (
        "plot_prior.py",
        "plot_weighted_rows.py",
        "plot_rows_that_belong_together.py",
        "plot_missing_values.py",
    ),
    "Together with ArviZ and Dask": (
        "plot_arviz.py",
        "plot_rows_on_a_cluster.py",
    ),
    "Models of your own": (
        "plot_eight_schools.py",
        "plot_crossed_effects.py",
        "plot_local_level.py",
        "plot_topic_model.py",
        "bring_your_own_model.py",
    ),
    "Why the error bars are right": (
        "plot_exact_multivariate_normal.py",
        "plot_conjugate_models.py",
        "gaussian_mixture_from_parts.py",
        "supplemented_em.py",
    ),
}
COURSE = [lesson for group in GROUPS.values() for lesson in group]
