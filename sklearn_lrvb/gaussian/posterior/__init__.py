"""The variational posterior, its prior, and the statistics that lead from one to the other.

`variational_posterior` has q, its sufficient statistics and its M-step. `mixture_prior` has the prior,
`noise_component` and `tails` the parts of a mixture that not every one has. `degenerate_components` has the
messages about components without a proper posterior.
"""
