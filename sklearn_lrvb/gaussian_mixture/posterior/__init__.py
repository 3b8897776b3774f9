"""The variational posterior, its prior, and the statistics that lead from one to the other.

`variational_posterior` has q, its sufficient statistics and its M-step. `mixture_prior` and `weight_priors`
have the prior. `degenerate_components` has the errors of components without a proper posterior.
"""
