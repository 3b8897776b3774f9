"""The order of the lessons in ``examples/``; a lesson that is not listed here fails the build."""

COURSE = (
    # A fit, and how sure it is.
    "plot_first_fit.py",
    "plot_mnist_pca_pipeline.py",
    "plot_trust.py",
    # Which model.
    "plot_how_many_clusters.py",
    "plot_model_choice.py",
    "plot_leave_one_out.py",
    # Which rows matter.
    "plot_outliers.py",
    "plot_influence_landscape.py",
    # What the fit assumes.
    "plot_prior.py",
    "plot_weighted_rows.py",
    "plot_holes.py",
    # Other tools.
    "plot_arviz.py",
    "plot_rows_on_a_cluster.py",
    # The method beneath the mixture: where it is exact, and other models.
    "plot_exact_multivariate_normal.py",
    "plot_conjugate_models.py",
    "bring_your_own_model.py",
    "plot_eight_schools.py",
    "plot_crossed_effects.py",
    "plot_local_level.py",
    "plot_topic_model.py",
    "gaussian_mixture_from_parts.py",
    "supplemented_em.py",
)
