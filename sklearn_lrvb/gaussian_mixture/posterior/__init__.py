"""The variational posterior, its prior, and the statistics that lead from one to the other.

`variational_posterior` has q and its M-step, from the statistics of `sufficient_statistics`. `mixture_prior`
and `weight_priors` have the prior, and `complement` the directions that are left out where rows are projected
onto a subspace. `degenerate_components` has the errors of components without a proper posterior, and
`occupied_components` the rule by which a component counts as empty.
"""
