"""The order of the lessons in ``examples/``; a lesson that is not listed here fails the build."""

COURSE = (
    "plot_mnist_pca_pipeline.py",
    "plot_how_many_clusters.py",
    "plot_model_choice.py",
    "plot_leave_one_out.py",
    "plot_outliers.py",
    "plot_influence_landscape.py",
    "plot_exact_multivariate_normal.py",
    "plot_conjugate_models.py",
    "bring_your_own_model.py",
    "gaussian_mixture_from_parts.py",
    "supplemented_em.py",
)
